"""Refits of a wide board: the plan of its bootstrap on a graph of pairs, and its lanes."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from jaxeval.execution.lanes import Chunks, Spread, device_mesh, lanes_within, run_lanes
from jaxeval.execution.precision import double_precision
from jaxeval.kernels import batch
from jaxeval.kernels.adjacency import SLOTS
from jaxeval.kernels.pair_tables import Layout
from jaxeval.kernels.resample import Tally
from jaxeval.ratings.boards import Board, battles_per_model
from jaxeval.ratings.bootstrap_plan import ClusterRows, drawn_entries, main_battles, packed_word
from jaxeval.ratings.refits import RESULT_BYTES, TOLERANCE_LOGIT, Lanes
from jaxeval.ratings.sparse_boards import WideGraph, recentred
from jaxeval.resampling.units import ROW_BITS, make_units, shortfall_of, stream_number, top_up_size_of

_MAX_STEPS = 200
_CHUNKS_PER_CALL = 32
# Lanes side by side share gathered lines of memory, but wait for the slowest of them, and their arrays leave the cache:
# four took half the time of sixteen on a CPU. And the bytes that they may take.
_MOST_LANES = {"cpu": 4}
_ACCELERATOR_LANES = 128
_BYTES = {"cpu": 2**28}
_ACCELERATOR_BYTES = 2**32


class SparsePlan(NamedTuple):
    """Everything that the batched refit of a wide board needs; NumPy arrays until the call."""

    problem: batch.SparseProblem
    method: batch.Method
    wide: WideGraph


def make_sparse_plan(
    board: Board,
    scheme: int,
    label: str,
    clusters: ClusterRows | None,
    dtype: str,
) -> SparsePlan:
    """The plan of a board called ``label``, whose draws are those of `resampling.make_plan`."""
    if board.graph is None:
        raise ValueError("the board was fitted by the dense method")
    wide, n_pairs = board.graph, len(board.cells.first) + 1
    ((entries,), packed, one_column) = drawn_entries([board.cells], scheme, [clusters], n_pairs)
    heaviest = battles_per_model(board.cells, len(board.theta)).max()
    tally = Tally(packed_word([entries], heaviest) if packed else None, ROW_BITS)
    shortfall = shortfall_of(int(entries.units.sum()))
    weight: Any = None if board.pair_weight is None else np.append(board.pair_weight, 0.0)
    arrays: Any = (
        np.zeros((0, 0), np.int32),  # no tables
        weight,
        None if packed else entries.weight,
        None if packed else entries.target,
        None if entries.unit is None else entries.unit.astype(np.int32),
        None if one_column else entries.pair.astype(np.int32),
    )
    problem = batch.SparseProblem(
        units=make_units(entries.units, tally, shortfall if scheme == batch.MULTINOMIAL else 0),
        layout=Layout(*arrays),
        stream=np.uint64(stream_number(label)),  # type: ignore[arg-type]
        graph=wide.graph,
        start=wide.numbered(board.theta),  # type: ignore[arg-type]
        main_battles=wide.numbered(main_battles(board)),  # type: ignore[arg-type]
    )
    method = batch.Method(
        scheme, tally, n_pairs, top_up_size_of(shortfall), batch.SPARSE, np.dtype(dtype).type, _MAX_STEPS
    )
    return SparsePlan(problem, method, wide)


def refit_sparse(
    board: Board, plan: SparsePlan, n_resamples: int, seed: int, ridge: float, spread: Spread, section: str
) -> Lanes:
    """B refits of one board; ``section`` names it in the run's checkpoint."""
    m = len(board.theta)
    lanes = Lanes(
        theta=np.zeros((n_resamples, m)),
        status=np.full(n_resamples, -1, np.int8),
        n_steps=np.zeros(n_resamples, np.int32),
        grad_norm=np.zeros(n_resamples),
        standing=np.zeros((n_resamples, m), np.int8),
        solver=np.full(n_resamples, batch.SPARSE, np.int8),
    )
    mesh, kind, number = device_mesh(), plan.method.dtype, plan.wide.number
    tolerance = kind(TOLERANCE_LOGIT[np.dtype(kind).name])
    with double_precision():
        problem = jax.tree.map(jax.numpy.asarray, plan.problem)

    def call(slices: NDArray[np.int32], numbers: NDArray[np.int64], n_chunks: NDArray[np.int32]) -> batch.Refits:
        with double_precision():
            found = jax.device_get(
                batch.refit_sparse(
                    problem, plan.method, mesh, np.uint64(seed), kind(ridge), tolerance, numbers, n_chunks
                )
            )
        return found._replace(theta=found.theta[..., number], standing=found.standing[..., number])

    result_bytes = n_resamples * m * RESULT_BYTES
    chunks = Chunks(_chunk_size(plan, -(-n_resamples // mesh.size), result_bytes, spread), _CHUNKS_PER_CALL)
    every = np.arange(n_resamples)
    results: Any = batch.Refits(*lanes[:-1])  # type: ignore[arg-type]  # of NumPy arrays
    run_lanes(every, np.zeros_like(every), every, chunks, call, results, f"{section}-sparse", spread)
    return lanes._replace(theta=recentred(lanes.theta, board.connectivity, ridge))


def _chunk_size(plan: SparsePlan, n_resamples: int, result_bytes: int, spread: Spread) -> int:
    """Lanes of a chunk: those whose weights by slot, which every step passes over, take some 256 MB (CPU) or 4 GB."""
    backend = jax.default_backend()
    per_lane = 3 * plan.problem.graph.adjacency.owner.size * SLOTS * np.dtype(plan.method.dtype).itemsize
    lanes = _BYTES.get(backend, _ACCELERATOR_BYTES) // per_lane
    most = min(_MOST_LANES.get(backend, _ACCELERATOR_LANES), -(-n_resamples // 4) * 4)
    lanes = spread.chunk_size or int(np.clip(lanes, 1, most))
    if spread.memory_limit is None:
        return lanes
    taken = result_bytes + 2 * sum(x.nbytes for x in jax.tree.leaves(plan.problem))
    return min(lanes, lanes_within(spread.memory_limit, taken, 2 * per_lane))
