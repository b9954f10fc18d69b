"""Refits of a wide board on its graph of pairs: what is drawn, and the one solver."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxeval.arrays import as_leaf
from jaxeval.execution.lanes import Solver, Task
from jaxeval.execution.precision import on_device
from jaxeval.execution.shapes import SPARSE_REFITS, side_by_side
from jaxeval.kernels import batch
from jaxeval.kernels.adjacency import SLOTS
from jaxeval.ratings.boards import Board, battles_per_model, main_battles
from jaxeval.ratings.drawn_votes import drawn_entries
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.refits import BoardRefits, Refitted, refit_form
from jaxeval.ratings.sparse_boards import recentred
from jaxeval.ratings.vote_groups import VoteGroups
from jaxeval.resampling.units import pad

_MAX_STEPS = 200
_SLOT_COPIES = 3  # of the weights by slot, with what a step makes of them


@dataclass(frozen=True, eq=False)
class SparseRefits(BoardRefits):
    """Refits of one board by Newton's method on the graph of pairs."""

    problem: batch.SparseProblem
    form: batch.RefitForm
    board: Board

    def solvers(self) -> list[Solver]:
        """The one solver of sparse boards."""
        program = self.program(batch.refit_sparse, self.problem, self.form, self.options.ridge, _MAX_STEPS)
        # The weights by slot, which every step passes over.
        slot_bytes = 3 * self.problem.graph.adjacency.owner.size * SLOTS * np.dtype(self.form.dtype).itemsize
        task = Task(
            program,
            SPARSE_REFITS,
            slot_bytes,
            lane_bytes=_SLOT_COPIES * slot_bytes,
            fixed_bytes=self.held_bytes(self.problem, len(self.board.theta))
            + (side_by_side() - 1) * _SLOT_COPIES * slot_bytes,
        )
        return [Solver(batch.Solver.SPARSE, "sparse", task, np.ones(1, bool))]

    def on_board(self, refitted: Refitted) -> Refitted:
        """(B, M) refits with models as on the board, from those of the graph."""
        if self.board.graph is None:
            raise ValueError("the board was fitted by the dense method")
        number = self.board.graph.number
        theta = recentred(refitted.theta[:, number], self.board.connectivity, self.options.ridge)
        return refitted._replace(parameters=theta, standing=refitted.standing[:, number])


def sparse_refits(board: Board, label: str, drawn: VoteGroups, options: BootstrapOptions) -> SparseRefits:
    """The refits of a board called ``label``, whose draws are those of `dense_refits`."""
    if board.graph is None:
        raise ValueError("the board was fitted by the dense method")
    wide, n_pairs = board.graph, len(board.graph.graph.first)
    entries = drawn_entries([board.cells], options.drawn, [drawn], n_pairs)
    packing = entries.packing(battles_per_model(board.cells, len(board.theta)).max())
    draw = entries.draw(0, options.drawn, label, packing)
    weight = None if board.pair_weight is None else pad(board.pair_weight, (n_pairs,))
    problem = batch.SparseProblem(
        units=draw.units,
        layout=entries.layout(0, np.zeros((0, 0), np.int64), weight),  # no tables
        stream=as_leaf(draw.stream, np.uint64),
        graph=wide.graph,
        start=as_leaf(wide.numbered(board.theta), np.float64),
        main_battles=as_leaf(wide.numbered(main_battles(board)), np.float64),
    )
    form = refit_form(options, packing, n_pairs, batch.Solver.SPARSE)
    return SparseRefits(options, on_device(problem), form, board)
