"""Refits to sums by pair, on (M, M) tables or on a graph: what is drawn, and the cascades of solvers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

import numpy as np
from jax import Array
from numpy.typing import NDArray

from jaxeval.arrays import Float, as_leaf
from jaxeval.execution.precision import on_device
from jaxeval.execution.shapes import (
    REFITS,
    SPARSE_REFITS,
    held_numbers,
    padded_few,
    padded_pairs,
    padded_size,
    side_by_side,
)
from jaxeval.execution.threads import in_threads
from jaxeval.kernels.batch import refits, sparse
from jaxeval.kernels.batch.refits import PairProblem, RefitForm, Solver
from jaxeval.kernels.batch.sparse import SLOTS, SparseProblem
from jaxeval.kernels.tie_models import TieModel
from jaxeval.ratings.boards import Board, battles_per_model, inverse_information, main_battles
from jaxeval.ratings.drawn_votes import drawn_entries, is_secure_board
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.refits import BoardRefits, Refitted, Stage, refit_form
from jaxeval.ratings.sparse_boards import recentred
from jaxeval.ratings.vote_groups import VoteGroups
from jaxeval.resampling.units import pad, stacked

# In turn, each for the lanes that those before it left; Firth's penalty has one solver of its own.
_MAX_STEPS = {Solver.CHORD: 40, Solver.NEWTON_CG: 60, Solver.NEWTON: 200}
_FIRTH_STEPS = {Solver.FIRTH: 200}
# Tables that a lane works on; Newton's factor is one more.
_TABLES = {Solver.CHORD: 1, Solver.NEWTON_CG: 3, Solver.NEWTON: 4, Solver.FIRTH: 12}
# The most that a compiled chunk takes for each number that a lane works on, by XLA's own figures.
_BYTES_PER_WORD = 10

#: A model's variance times its own curvature. From this value on, groups are joined by so little that the few inner
#: steps of Newton-CG may miss it. It is near 1 on a well connected board, and 4,000 where one vote of target 0.01 joins
#: two groups of 600 battles.
_WEAKLY_JOINED = 1e4


def table_words(problems: PairProblem, solver: Solver) -> int:
    """Numbers that a lane works on."""
    units, layout = problems.units, problems.layout
    tables = _of_slice(layout.position) * _TABLES[solver]
    return tables + _of_slice(units.size) + (0 if layout.weight is None else 4 * _of_slice(layout.weight))


def _of_slice(stacked: Array) -> int:
    """How many numbers one slice has. The shape says it: to index the array would be a call of its own."""
    return held_numbers(stacked.shape[1:])


def dense_refits(
    boards: Sequence[Board], labels: Sequence[str], drawn: Sequence[VoteGroups], options: BootstrapOptions
) -> BoardRefits:
    """The refits of fitted ``boards``, one a slice.

    By chord steps where practically no resample separates models, by Newton-CG where groups are not weakly joined, and
    of what those leave by dense Newton.

    Args:
        labels: names of the slices, which choose their random numbers.
        drawn: per slice, what is drawn together, and within which strata.
    """
    inverse, diagonal = inverse_information(boards)
    start = np.stack([pad(board.theta, inverse.shape[-1:]) for board in boards])
    problems, form = pair_problems(boards, labels, drawn, options, (start, inverse, diagonal))
    worth = np.diagonal(inverse, axis1=-2, axis2=-1) * diagonal
    secure = np.array([is_secure_board(board, own.clusters) for board, own in zip(boards, drawn, strict=True)])
    takes = {Solver.CHORD: secure, Solver.NEWTON_CG: worth.max(-1) <= _WEAKLY_JOINED}
    ways = [
        Stage(
            solver,
            steps,
            REFITS,
            table_words(problems, solver),
            _BYTES_PER_WORD * max(table_words(problems, s) for s in (solver, Solver.NEWTON)),
            takes=takes.get(solver),
        )
        for solver, steps in (_FIRTH_STEPS if options.penalty == "firth" else _MAX_STEPS).items()
    ]
    return BoardRefits(options, refits.refit, problems, form, ways, start.shape[-1], len(boards))


def pair_problems(
    boards: Sequence[Board],
    labels: Sequence[str],
    drawn: Sequence[VoteGroups],
    options: BootstrapOptions,
    full: tuple[Float, Float, Float],
) -> tuple[PairProblem, RefitForm]:
    """What is drawn, and how chord steps refit it; arguments as in `dense_refits`.

    ``full`` holds the parameters (S, P) of the full data, the pseudo-inverse of their information, and its diagonal.
    """
    size = padded_size(max(len(board.theta) for board in boards))
    # One pair more than there are: models that never met share an empty one.
    n_pairs = padded_pairs(max(len(board.cells.first) for board in boards) + 1, size)
    keep_ties = options.response.ties != TieModel.HALF
    entries = drawn_entries([board.cells for board in boards], options.drawn, drawn, n_pairs, keep_ties)
    packing = entries.packing(max(battles_per_model(board.cells, len(board.theta)).max() for board in boards))
    draws = in_threads(entries.draw, range(len(boards)), repeat(options.drawn), labels, repeat(packing))
    problems = [
        PairProblem(
            units=draw.units,
            layout=entries.layout(s, *_tables_of_pairs(board, size, n_pairs - 1)),
            stream=as_leaf(draw.stream, np.uint64),
            start=as_leaf(full[0][s], np.float64),
            inverse=as_leaf(full[1][s], np.float64),
            information_diagonal=as_leaf(full[2][s], np.float64),
            main_battles=as_leaf(pad(main_battles(board), (size,)), np.float64),
        )
        for s, (board, draw) in enumerate(zip(boards, draws, strict=True))
    ]
    return on_device(stacked(problems, padded_few(len(boards)))), refit_form(options, packing, n_pairs, Solver.CHORD)


def _tables_of_pairs(board: Board, size: int, no_pair: int) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """(M', M') number of every pair, ``no_pair`` for models that never met; and the factor in its weight, if any."""
    cells = board.cells
    position = np.full((size, size), no_pair)
    position[cells.first, cells.second] = position[cells.second, cells.first] = np.arange(len(cells.first))
    if board.pair_weight is None:
        return position, None
    factor = np.zeros((size, size))
    factor[cells.first, cells.second] = factor[cells.second, cells.first] = board.pair_weight
    return position, factor


_SPARSE_STEPS = 200
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
    problem = SparseProblem(
        units=draw.units,
        layout=entries.layout(0, np.zeros((0, 0), np.int64), weight),  # no tables
        stream=as_leaf(draw.stream, np.uint64),
        graph=wide.graph,
        start=as_leaf(wide.numbered(board.theta), np.float64),
        main_battles=as_leaf(wide.numbered(main_battles(board)), np.float64),
    )
    form = refit_form(options, packing, n_pairs, Solver.SPARSE)
    # The weights by slot, which every step passes over.
    slot_bytes = 3 * wide.graph.adjacency.owner.size * SLOTS * np.dtype(form.dtype).itemsize

    def on_board(refitted: Refitted) -> Refitted:
        """(B, M) refits with models as on the board, from those of the graph."""
        theta = recentred(refitted.theta[:, wide.number], board.connectivity, options.ridge)
        return refitted._replace(parameters=theta, standing=refitted.standing[:, wide.number])

    return BoardRefits(
        options,
        sparse.refit_sparse,
        on_device(problem),
        form,
        [Stage(Solver.SPARSE, _SPARSE_STEPS, SPARSE_REFITS, slot_bytes, _SLOT_COPIES * slot_bytes)],
        len(board.theta),
        on_board=on_board,
        fixed_bytes=(side_by_side() - 1) * _SLOT_COPIES * slot_bytes,
    )
