"""Refits of a wide board: the plan of its bootstrap on a graph of pairs, and its lanes."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from jaxeval.execution.lanes import LaneRun, Lanes, Task, device_mesh
from jaxeval.execution.precision import double_precision
from jaxeval.execution.shapes import SPARSE_REFITS
from jaxeval.kernels import batch
from jaxeval.kernels.adjacency import SLOTS
from jaxeval.kernels.pair_tables import Layout
from jaxeval.kernels.resample import DrawScheme, Packing
from jaxeval.kernels.solve import Terms
from jaxeval.ratings.boards import Board, battles_per_model
from jaxeval.ratings.bootstrap_plan import ClusterRows, drawn_entries, main_battles, packed_word
from jaxeval.ratings.refits import RESULT_BYTES, TOLERANCE_LOGIT, Refitted
from jaxeval.ratings.sparse_boards import WideGraph, recentred
from jaxeval.resampling.units import make_units, stream_number

_MAX_STEPS = 200


class SparsePlan(NamedTuple):
    """Everything that the batched refit of a wide board needs; NumPy arrays until the call."""

    problem: batch.SparseProblem
    method: batch.RefitForm
    wide: WideGraph


def make_sparse_plan(
    board: Board,
    scheme: DrawScheme,
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
    packing = Packing(packed_word([entries], heaviest) if packed else None)
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
        units=make_units(entries.units, None if scheme == DrawScheme.MULTINOMIAL else 0),
        layout=Layout(*arrays),
        stream=np.uint64(stream_number(label)),  # type: ignore[arg-type]
        graph=wide.graph,
        start=wide.numbered(board.theta),  # type: ignore[arg-type]
        main_battles=wide.numbered(main_battles(board)),  # type: ignore[arg-type]
    )
    method = batch.RefitForm(scheme, packing, n_pairs, batch.Solver.SPARSE, np.dtype(dtype).type)
    return SparsePlan(problem, method, wide)


def refit_sparse(
    board: Board, plan: SparsePlan, n_resamples: int, seed: int, ridge: float, run: LaneRun, section: str
) -> Refitted:
    """B refits of one board; ``section`` names it in the run's checkpoint."""
    m = len(board.theta)
    mesh, kind, number = device_mesh(), plan.method.dtype, plan.wide.number
    terms = Terms.of(kind(ridge), kind(TOLERANCE_LOGIT[np.dtype(kind).name]), _MAX_STEPS)
    with double_precision():
        problem = jax.tree.map(jax.numpy.asarray, plan.problem)

    def call(slices: NDArray[np.int32], numbers: NDArray[np.int64], n_chunks: NDArray[np.int32]) -> batch.Refits:
        with double_precision():
            return batch.refit_sparse(problem, plan.method, mesh, np.uint64(seed), terms, numbers, n_chunks)

    # The weights by slot, which every step passes over.
    slot_bytes = 3 * plan.problem.graph.adjacency.owner.size * SLOTS * np.dtype(kind).itemsize
    held = n_resamples * m * RESULT_BYTES + 2 * sum(x.nbytes for x in jax.tree.leaves(plan.problem))
    task = Task(call, SPARSE_REFITS, slot_bytes, lane_bytes=2 * slot_bytes, fixed_bytes=held)
    found = run.results(task, Lanes.of(1, n_resamples), f"{section}-sparse")
    return Refitted(
        theta=recentred(found.theta[:, number], board.connectivity, ridge),
        status=found.status,
        n_steps=found.n_steps,
        grad_norm=found.grad_norm,
        standing=found.standing[:, number],
        solver=np.full(n_resamples, batch.Solver.SPARSE, np.int8),
    )
