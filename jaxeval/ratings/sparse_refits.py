"""Refits of a wide board on its graph of pairs: what is drawn, and the one solver."""

from __future__ import annotations

import numpy as np

from jaxeval.arrays import as_leaf
from jaxeval.execution.precision import on_device
from jaxeval.execution.shapes import SPARSE_REFITS, side_by_side
from jaxeval.kernels import batch
from jaxeval.kernels.adjacency import SLOTS
from jaxeval.ratings.boards import Board, battles_per_model, main_battles
from jaxeval.ratings.drawn_votes import drawn_entries
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.refits import BoardRefits, Refitted, Way, refit_form
from jaxeval.ratings.sparse_boards import recentred
from jaxeval.ratings.vote_groups import VoteGroups
from jaxeval.resampling.units import pad

_MAX_STEPS = 200
_SLOT_COPIES = 3  # of the weights by slot, with what a step makes of them


def sparse_refits(board: Board, label: str, drawn: VoteGroups, options: BootstrapOptions) -> BoardRefits:
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
    # The weights by slot, which every step passes over.
    slot_bytes = 3 * wide.graph.adjacency.owner.size * SLOTS * np.dtype(form.dtype).itemsize

    def on_board(refitted: Refitted) -> Refitted:
        """(B, M) refits with models as on the board, from those of the graph."""
        theta = recentred(refitted.theta[:, wide.number], board.connectivity, options.ridge)
        return refitted._replace(parameters=theta, standing=refitted.standing[:, wide.number])

    return BoardRefits(
        options,
        batch.refit_sparse,
        on_device(problem),
        form,
        [Way(batch.Solver.SPARSE, _MAX_STEPS, SPARSE_REFITS, slot_bytes, _SLOT_COPIES * slot_bytes)],
        len(board.theta),
        on_board=on_board,
        fixed_bytes=(side_by_side() - 1) * _SLOT_COPIES * slot_bytes,
    )
