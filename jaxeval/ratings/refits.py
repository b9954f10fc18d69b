"""Runs the batched refit of all slices and resamples, solver by solver."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from jaxeval.execution.lanes import Chunks, Spread, device_mesh, lanes_within, run_lanes
from jaxeval.execution.precision import double_precision
from jaxeval.kernels import batch
from jaxeval.kernels.solve import CONVERGED
from jaxeval.ratings.bootstrap_plan import Plan

# Refits stop when the error predicted to remain is under this, logits (1e-8 is 2e-6 Elo).
TOLERANCE_LOGIT = {"float64": 1e-8, "float32": 2e-5}
#: Chunks of a call.
CHUNKS_PER_CALL = 32
_MAX_STEPS = {batch.CHORD: 40, batch.NEWTON_CG: 60, batch.NEWTON: 200}
# What a compiled chunk takes for each word of a lane that `chunk_size` counts, at most: seen in XLA's own figures.
_BYTES_PER_WORD = 10
#: What a model takes in a resample's results, at most: strengths and standing, the ratings made of them, and the arrays
#: on the way there.
RESULT_BYTES = 50
_SOLVERS = {batch.CHORD: "chord", batch.NEWTON_CG: "newton-cg", batch.NEWTON: "newton"}


class Lanes(NamedTuple):
    """`batch.Refits` on the host."""

    theta: NDArray[np.float64]
    status: NDArray[np.int8]
    n_steps: NDArray[np.int32]
    grad_norm: NDArray[np.float64]
    standing: NDArray[np.int8]
    solver: NDArray[np.int8]  # of `batch`: the one that came last

    def of_slice(self, s: int) -> Lanes:
        """The lanes of one slice."""
        return Lanes(*(x[s] for x in self))


def refit_all(
    plan: Plan,
    scheme: int,
    n_resamples: int,
    seed: int,
    ridge: float,
    dtype: str,
    spread: Spread,
    section: str = "lanes",
) -> Lanes:
    """Refits (S, B, ...): secure boards by chord steps, the rest by Newton-CG, what that leaves by dense Newton.

    ``section`` names the slices in the run's checkpoint.
    """
    n_slices = len(plan.secure)
    slices = np.repeat(np.arange(n_slices), n_resamples)
    numbers = np.tile(np.arange(n_resamples), n_slices)
    size = plan.problems.start.shape[-1]
    results = Lanes(
        theta=np.zeros((len(slices), size)),
        status=np.full(len(slices), -1, np.int8),
        n_steps=np.zeros(len(slices), np.int32),
        grad_norm=np.zeros(len(slices)),
        standing=np.zeros((len(slices), size), np.int8),
        solver=np.full(len(slices), batch.CHORD, np.int8),
    )
    refits = Refitting(plan, scheme, seed, ridge, dtype, spread, len(slices) * size * RESULT_BYTES)

    def run(lanes: NDArray[np.intp], solver: int) -> None:
        call, chunks = partial(refits, refits.method(solver)), Chunks(refits.chunk_size(solver), CHUNKS_PER_CALL)
        found: Any = batch.Refits(*results[:-1])  # type: ignore[arg-type]  # of NumPy arrays
        run_lanes(lanes, slices, numbers, chunks, call, found, f"{section}-{_SOLVERS[solver]}", spread)

    run(np.flatnonzero(plan.secure[slices]), batch.CHORD)
    for solver in (batch.NEWTON_CG, batch.NEWTON):
        rest = np.flatnonzero((results.status != CONVERGED) & ((solver == batch.NEWTON) | ~plan.weakly_joined[slices]))
        results.solver[rest] = solver
        run(rest, solver)
    shape = n_slices, n_resamples
    return Lanes(
        results.theta.reshape(*shape, size),
        results.status.reshape(shape),
        results.n_steps.reshape(shape),
        results.grad_norm.reshape(shape),
        results.standing.reshape(*shape, size),
        results.solver.reshape(shape),
    )


class Refitting:
    """The batched refit of a plan."""

    def __init__(
        self, plan: Plan, scheme: int, seed: int, ridge: float, dtype: str, spread: Spread, result_bytes: int
    ) -> None:
        self.plan, self.scheme, self.seed = plan, scheme, np.uint64(seed)
        self.type = np.dtype(dtype).type
        self.ridge, self.tolerance = self.type(ridge), self.type(TOLERANCE_LOGIT[dtype])
        self.spread, self.result_bytes = spread, result_bytes
        self.mesh = device_mesh()
        with double_precision():
            self.problems = jax.tree.map(jax.numpy.asarray, plan.problems)

    def method(self, solver: int) -> batch.Method:
        """The static choices of the calls by one of the solvers."""
        plan = self.plan
        return batch.Method(
            self.scheme, plan.tally, plan.n_pairs, plan.top_up_size, solver, self.type, _MAX_STEPS[solver]
        )

    def __call__(
        self,
        method: batch.Method,
        slices: NDArray[np.int32],
        numbers: NDArray[np.int64],
        n_chunks: NDArray[np.int32],
    ) -> batch.Refits:
        """Refit chunks: `lanes.Call`."""
        with double_precision():
            return batch.refit(
                self.problems,
                method,
                self.mesh,
                self.seed,
                self.ridge,
                self.tolerance,
                slices,
                numbers,
                n_chunks,
            )

    def chunk_size(self, solver: int) -> int:
        """Lanes whose tables fit the cache of a CPU core, or a gigabyte of an accelerator, and the memory limit."""
        # No more than the usual number of resamples needs: a chunk always runs in full.
        budget, most = (2_000_000, 1024) if jax.default_backend() == "cpu" else (2**28, 4096)
        lanes = self.spread.chunk_size or int(np.clip(budget // self._words(solver), 1, most))
        if self.spread.memory_limit is not None:
            taken = self.result_bytes + 2 * sum(x.nbytes for x in jax.tree.leaves(self.plan.problems))
            hungriest = _BYTES_PER_WORD * self._words(batch.NEWTON)
            lanes = min(lanes, lanes_within(self.spread.memory_limit, taken, hungriest))
        if self.spread.chunk_size is not None or lanes < 8:
            return lanes
        return lanes // 8 * 8  # XLA vectorises odd numbers of lanes badly

    def _words(self, solver: int) -> int:
        """Numbers that a lane works on."""
        units, layout = self.plan.problems.units, self.plan.problems.layout
        words = layout.position[0].size * (1 if solver == batch.CHORD else 4)
        return words + units.size[0].size + (0 if layout.weight is None else 4 * layout.weight[0].size)
