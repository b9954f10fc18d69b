"""Runs the batched refit of all slices and resamples, solver by solver."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from jaxeval.execution.lanes import LaneRun, Lanes, Task, device_mesh
from jaxeval.execution.precision import double_precision
from jaxeval.execution.shapes import REFITS
from jaxeval.kernels import batch
from jaxeval.kernels.resample import DrawScheme
from jaxeval.kernels.solve import Status, Terms
from jaxeval.ratings.bootstrap_plan import Plan

# Refits stop when the error predicted to remain is under this, logits (1e-8 is 2e-6 Elo).
TOLERANCE_LOGIT = {"float64": 1e-8, "float32": 2e-5}
_MAX_STEPS = {batch.Solver.CHORD: 40, batch.Solver.NEWTON_CG: 60, batch.Solver.NEWTON: 200}
# What a compiled chunk takes for each number that a lane works on, at most: seen in XLA's own figures.
_BYTES_PER_WORD = 10
#: What a model takes in a resample's results, at most: strengths and standing, the ratings made of them, and the arrays
#: on the way there.
RESULT_BYTES = 50
_SOLVERS = {batch.Solver.CHORD: "chord", batch.Solver.NEWTON_CG: "newton-cg", batch.Solver.NEWTON: "newton"}


class Refitted(NamedTuple):
    """`batch.Refits` on the host."""

    theta: NDArray[np.float64]
    status: NDArray[np.int8]
    n_steps: NDArray[np.int32]
    grad_norm: NDArray[np.float64]
    standing: NDArray[np.int8]
    solver: NDArray[np.int8]  # of `batch`: the one that came last

    def of_slice(self, s: int) -> Refitted:
        """The lanes of one slice."""
        return Refitted(*(x[s] for x in self))


def refit_all(
    plan: Plan,
    scheme: DrawScheme,
    n_resamples: int,
    seed: int,
    ridge: float,
    dtype: str,
    run: LaneRun,
    section: str = "lanes",
) -> Refitted:
    """Refits (S, B, ...): secure boards by chord steps, the rest by Newton-CG, what that leaves by dense Newton.

    ``section`` names the slices in the run's checkpoint.
    """
    n_slices = len(plan.secure)
    lanes = Lanes.of(n_slices, n_resamples)
    n_lanes, size = len(lanes.slices), plan.problems.start.shape[-1]
    results = Refitted(
        theta=np.zeros((n_lanes, size)),
        status=np.full(n_lanes, -1, np.int8),
        n_steps=np.zeros(n_lanes, np.int32),
        grad_norm=np.zeros(n_lanes),
        standing=np.zeros((n_lanes, size), np.int8),
        solver=np.full(n_lanes, batch.Solver.CHORD, np.int8),
    )
    refits = Refitting(plan, scheme, seed, ridge, dtype, n_lanes * size * RESULT_BYTES)

    def solve(which: NDArray[np.intp], solver: batch.Solver) -> None:
        found: Any = batch.Refits(*results[:-1])  # type: ignore[arg-type]  # of NumPy arrays
        run.run(refits.task(solver), lanes, which, found, f"{section}-{_SOLVERS[solver]}")

    solve(np.flatnonzero(plan.secure[lanes.slices]), batch.Solver.CHORD)
    for solver in (batch.Solver.NEWTON_CG, batch.Solver.NEWTON):
        usual = (solver == batch.Solver.NEWTON) | ~plan.weakly_joined[lanes.slices]
        rest = np.flatnonzero((results.status != Status.CONVERGED) & usual)
        results.solver[rest] = solver
        solve(rest, solver)
    return jax.tree.map(lambda x: x.reshape(n_slices, n_resamples, *x.shape[1:]), results)


class Refitting:
    """The batched refit of a plan."""

    def __init__(self, plan: Plan, scheme: DrawScheme, seed: int, ridge: float, dtype: str, result_bytes: int) -> None:
        self.plan, self.scheme, self.seed = plan, scheme, np.uint64(seed)
        self.type = np.dtype(dtype).type
        self.ridge, self.tolerance = self.type(ridge), self.type(TOLERANCE_LOGIT[dtype])
        self.result_bytes = result_bytes
        self.mesh = device_mesh()
        with double_precision():
            self.problems = jax.tree.map(jax.numpy.asarray, plan.problems)

    def task(self, solver: batch.Solver) -> Task:
        """The refit by one of the solvers."""
        problem_bytes = sum(x.nbytes for x in jax.tree.leaves(self.plan.problems))
        return Task(
            partial(self, self.method(solver)),
            REFITS,
            self._words(solver),
            lane_bytes=_BYTES_PER_WORD * self._words(batch.Solver.NEWTON),
            fixed_bytes=self.result_bytes + 2 * problem_bytes,
        )

    def method(self, solver: batch.Solver) -> batch.RefitForm:
        """The static choices of the calls by one of the solvers."""
        plan = self.plan
        return batch.RefitForm(self.scheme, plan.packing, plan.n_pairs, solver, self.type)

    def __call__(
        self,
        form: batch.RefitForm,
        slices: NDArray[np.int32],
        numbers: NDArray[np.int64],
        n_chunks: NDArray[np.int32],
    ) -> batch.Refits:
        """Refit chunks: `lanes.Call`."""
        terms = Terms.of(self.ridge, self.tolerance, _MAX_STEPS[form.solver])
        with double_precision():
            return batch.refit(self.problems, form, self.mesh, self.seed, terms, slices, numbers, n_chunks)

    def _words(self, solver: batch.Solver) -> int:
        """Numbers that a lane works on."""
        units, layout = self.plan.problems.units, self.plan.problems.layout
        words = layout.position[0].size * (1 if solver == batch.Solver.CHORD else 4)
        return words + units.size[0].size + (0 if layout.weight is None else 4 * layout.weight[0].size)
