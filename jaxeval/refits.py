"""Runs the batched refit: cuts lanes (slice, resample) into chunks, calls until all are done, reports progress."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh
from numpy.typing import NDArray

from jaxeval.kernels import batch
from jaxeval.kernels.solve import CONVERGED
from jaxeval.precision import double_precision
from jaxeval.progress import Advance
from jaxeval.resampling import Plan

# Refits stop when the error predicted to remain is under this, logits (1e-8 is 2e-6 Elo).
TOLERANCE_LOGIT = {"float64": 1e-8, "float32": 2e-5}
_MAX_STEPS = {batch.CHORD: 40, batch.NEWTON_CG: 60, batch.NEWTON: 200}
_CHUNKS_PER_CALL = 32


class Lanes(NamedTuple):
    """`batch.Refits` on the host."""

    theta: NDArray[np.float64]
    status: NDArray[np.int8]
    n_steps: NDArray[np.int32]
    grad_norm: NDArray[np.float64]
    standing: NDArray[np.int8]
    solver: NDArray[np.int8]  # of `batch`: the one that came last

    def set(self, lanes: NDArray[np.intp], refits: batch.Refits, device: int, slot: int) -> None:
        """Store what one chunk gave for ``lanes``; lanes beyond them were padding."""
        for into, values in zip(self[:-1], refits, strict=True):
            np.asarray(into)[lanes] = np.asarray(values)[device, slot, : len(lanes)]

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
    chunk_size: int | None,
    advance: Advance,
) -> Lanes:
    """Refits (S, B, ...): secure boards by chord steps, the rest by Newton-CG, what that leaves by dense Newton."""
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
    run = _Runner(plan, scheme, seed, ridge, dtype, chunk_size)
    secure = np.flatnonzero(plan.secure[slices])
    run(secure, slices, numbers, results, batch.CHORD, advance)
    for solver in (batch.NEWTON_CG, batch.NEWTON):
        rest = np.flatnonzero(results.status != CONVERGED)
        results.solver[rest] = solver
        run(rest, slices, numbers, results, solver, advance)
    shape = n_slices, n_resamples
    return Lanes(
        results.theta.reshape(*shape, size),
        results.status.reshape(shape),
        results.n_steps.reshape(shape),
        results.grad_norm.reshape(shape),
        results.standing.reshape(*shape, size),
        results.solver.reshape(shape),
    )


class _Runner:
    """Cuts lanes into chunks of one slice each and calls the batched refit until all are done."""

    def __init__(self, plan: Plan, scheme: int, seed: int, ridge: float, dtype: str, chunk_size: int | None) -> None:
        self.plan, self.scheme, self.seed, self.ridge = plan, scheme, seed, float(ridge)
        self.dtype, self.chunk_size = dtype, chunk_size
        self.mesh = Mesh(np.array(jax.local_devices()), ("lanes",))
        with double_precision():
            self.problems = jax.tree.map(jax.numpy.asarray, plan.problems)

    def __call__(
        self,
        lanes: NDArray[np.intp],
        slices: NDArray[np.intp],
        numbers: NDArray[np.intp],
        results: Lanes,
        solver: int,
        advance: Advance,
    ) -> None:
        """Refit ``lanes`` and write them into ``results``."""
        if len(lanes) == 0:
            return
        size = self.chunk_size or self._chunk_size(solver)
        chunks = [
            part
            for s in np.unique(slices[lanes])
            for own in [lanes[slices[lanes] == s]]
            for part in np.split(own, np.arange(size, len(own), size))
        ]
        n_devices = self.mesh.size
        method = batch.Method(
            self.scheme,
            self.plan.tally,
            self.plan.n_pairs,
            self.plan.top_up_size,
            solver,
            np.dtype(self.dtype).type,
            _MAX_STEPS[solver],
        )
        per_call = n_devices * _CHUNKS_PER_CALL
        for start in range(0, len(chunks), per_call):
            called = chunks[start : start + per_call]
            # Chunk c goes to device c % D; slots without a chunk are not run.
            slot_slices = np.zeros((_CHUNKS_PER_CALL, n_devices), np.int32)
            slot_numbers = np.zeros((_CHUNKS_PER_CALL, n_devices, size), np.int64)
            for c, part in enumerate(called):
                slot_slices[divmod(c, n_devices)] = slices[part[0]]
                # A short chunk repeats its last resample.
                padded = np.pad(numbers[part], (0, size - len(part)), mode="edge")
                slot_numbers[divmod(c, n_devices)] = padded
            n_chunks = [len(range(d, len(called), n_devices)) for d in range(n_devices)]
            with double_precision():
                refits = jax.device_get(
                    batch.refit(
                        self.problems,
                        method,
                        self.mesh,
                        np.uint64(self.seed),
                        np.dtype(self.dtype).type(self.ridge),
                        np.dtype(self.dtype).type(TOLERANCE_LOGIT[self.dtype]),
                        slot_slices.T,
                        slot_numbers.transpose(1, 0, 2),
                        np.array(n_chunks, np.int32),
                    )
                )
            for c, part in enumerate(called):
                slot, device = divmod(c, n_devices)
                results.set(part, refits, device, slot)
            advance(sum(map(len, called)))

    def _chunk_size(self, solver: int) -> int:
        """Lanes whose tables fit the cache of a CPU core, or a gigabyte of an accelerator."""
        units, layout = self.plan.problems.units, self.plan.problems.layout
        words = layout.position[0].size * (1 if solver == batch.CHORD else 4)
        words += units.size[0].size + (0 if layout.weight is None else 4 * layout.weight[0].size)
        # No more than the usual number of resamples needs: a chunk always runs in full.
        budget, most = (2_000_000, 1024) if jax.default_backend() == "cpu" else (2**28, 4096)
        lanes = int(np.clip(budget // words, 1, most))
        return lanes if lanes < 8 else lanes // 8 * 8  # XLA vectorises odd numbers of lanes badly
