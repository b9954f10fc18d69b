"""Refit tables of pairs: on (M, M) tables, by NumPy where they are few, or on a graph."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, map_tree
from jaxeval.execution.host import HostTask, lanes_at_once
from jaxeval.execution.precision import in_threads, on_device
from jaxeval.execution.shapes import (
    REFITS,
    SPARSE_REFITS,
    held_numbers,
    padded_few,
    padded_pairs,
    padded_size,
    power_of_two,
    side_by_side,
)
from jaxeval.kernels.batch import refits, sparse
from jaxeval.kernels.batch.refits import RefitForm, RefitProblem, Solver
from jaxeval.kernels.batch.sparse import SLOTS, SparseData
from jaxeval.kernels.kinds import Array
from jaxeval.kernels.resample import DrawScheme
from jaxeval.kernels.solve import MOST_ROUNDING
from jaxeval.kernels.tie_models import TieModel
from jaxeval.ratings.boards import Board, battles_per_model, inverse_information, main_battles
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.refits import BoardRefits, Refitted, Stage, refit_problem, weights_alike
from jaxeval.ratings.sparse_boards import recentred
from jaxeval.ratings.vote_groups import VoteGroups, drawn_entries, secure_on_board
from jaxeval.resampling.units import pad, stacked

#: Solvers in turn, each for the lanes that those before it left, and their limits of steps.
MAX_STEPS = {Solver.CHORD: 40, Solver.CHORD_WITH_NEWTON: 40, Solver.NEWTON_CG: 60, Solver.NEWTON: 200}
_FIRTH_STEPS = {Solver.FIRTH: 200}  # a solver of its own
# Tables that a lane works on; Newton's factor is one more.
_TABLES = {Solver.CHORD: 1, Solver.CHORD_WITH_NEWTON: 1, Solver.NEWTON_CG: 3, Solver.NEWTON: 4, Solver.FIRTH: 12}
_FEW = 8  # models that move by Newton's method at least: fewer would take as long
_WITHOUT_TABLES = 16  # numbers that a draw of a unit without tables works on, in rounds
# The most that a compiled chunk takes for each number that a lane works on, by XLA's own figures.
_BYTES_PER_WORD = 10

#: A model's variance times its own curvature. From this value on, groups are joined by so little that the few inner
#: steps of Newton-CG may miss it. It is near 1 on a well connected board, and 4,000 where one vote of target 0.01 joins
#: two groups of 600 battles.
_WEAKLY_JOINED = 1e4
# Of a model with less of it, in battles of equals fewer than 200, the information varies so much from resample to
# resample that chord steps take half as many steps again.
_LITTLE_INFORMATION = 50.0
_OF_UNITS = ("shift", "offset", "least")


def table_words(problems: RefitProblem, solver: Solver) -> int:
    """Return numbers that a lane works on."""
    units, layout = problems.units, problems.data
    tables = _of_slice(layout.position) * _TABLES[solver]
    drawn = _of_slice(units.size) * (1 if units.tables is not None else _WITHOUT_TABLES)
    return tables + drawn + (0 if layout.weight is None else 4 * _of_slice(layout.weight))


def _of_slice(stacked: Array) -> int:
    """Return how many numbers one slice has. The shape says it: to index the array would be a call of its own."""
    return held_numbers(stacked.shape[1:])


def dense_refits(
    boards: Sequence[Board], labels: Sequence[str], drawn: Sequence[VoteGroups], options: BootstrapOptions
) -> BoardRefits:
    """Return the refits of fitted ``boards``, one a slice.

    By chord steps where practically no resample separates models, with Newton's method for some models where most are
    so, by Newton-CG of other boards where groups are not weakly joined and battles weigh about as much, and of what
    those leave by dense Newton. It alone takes boards on which rounding may be worth too much, and says of which lanes.

    Args:
        labels: names of the slices, which choose their random numbers.
        drawn: per slice, what is drawn together, and within which strata.
    """
    inverse, diagonal = inverse_information(boards)
    start = np.stack([pad(board.theta, inverse.shape[-1:]) for board in boards])
    problems, form = pair_problems(boards, labels, drawn, options, start=start, inverse=inverse, diagonal=diagonal)
    worth = np.diagonal(inverse, axis1=-2, axis2=-1) * diagonal
    secure = [secure_on_board(board, groups.clusters) for board, groups in zip(boards, drawn, strict=True)]
    few, takes_few = _models_of_few_battles(secure, diagonal)
    problems = problems._replace(few=few)
    rounding = np.finfo(float).eps * np.einsum("sij,sj->si", abs(inverse), problems.main[: len(boards)])
    exact = rounding.max(-1) <= MOST_ROUNDING["float64"]
    alike = np.array([weights_alike(board.cells.weight) for board in boards])
    takes = {
        Solver.CHORD: np.array([models.all() for models in secure]) & exact,
        Solver.CHORD_WITH_NEWTON: takes_few & exact,
        Solver.NEWTON_CG: (worth.max(-1) <= _WEAKLY_JOINED) & ~takes_few & exact & alike,
    }
    ways = [
        Stage(
            solver,
            steps,
            REFITS,
            table_words(problems, solver),
            _BYTES_PER_WORD * max(table_words(problems, s) for s in (solver, Solver.NEWTON)),
            takes=takes.get(solver),
        )
        for solver, steps in (_FIRTH_STEPS if options.penalty == "firth" else MAX_STEPS).items()
    ]
    able = (
        options.dtype == "float64" and options.drawn != DrawScheme.BAYESIAN and options.penalty != "firth"
        and options.response.ties == TieModel.HALF and problems.units.tables is not None
    )  # fmt: skip
    return BoardRefits(
        options, refits.refit, problems, form, ways, start.shape[-1], len(boards), on_host=_host_task if able else None
    )


def _models_of_few_battles(secure: Sequence[Bool], diagonal: Float) -> tuple[NDArray[np.int32], Bool]:
    """Return models (S, K) that move by Newton's method beside chord steps, and the slices (S,) that are refitted so.

    They are those that some resample separates, which are not ``secure``, and those of little information, whose
    ``diagonal`` (S, M') this is. At least half of a board are others; where all are secure, chord steps take it.
    """
    n_models = np.array([len(models) for models in secure])
    few = [~models | (own[: len(models)] < _LITTLE_INFORMATION) for models, own in zip(secure, diagonal, strict=False)]
    n_few = np.array([np.count_nonzero(models) for models in few])
    takes = np.array([not models.all() for models in secure]) & (2 * n_few <= n_models) & (n_models > _FEW)
    width = max(power_of_two(int(n_few[takes].max(initial=0))), _FEW)
    rows = np.full((padded_few(len(few)), width), diagonal.shape[1], np.int32)
    for s in np.flatnonzero(takes):
        # The places that are left go to the next ones.
        order = np.lexsort([diagonal[s, : n_models[s]], ~few[s]])[: min(width, n_models[s] - 2)]
        rows[s, : len(order)] = order
    return rows, takes


def pair_problems(
    boards: Sequence[Board], labels: Sequence[str], drawn: Sequence[VoteGroups], options: BootstrapOptions,
    *, start: Float, inverse: Float, diagonal: Float,
) -> tuple[RefitProblem, RefitForm]:  # fmt: skip
    """Return what is drawn, and how chord steps refit it; arguments as in `dense_refits`.

    ``start`` holds the parameters (S, P) of the full data, ``inverse`` the pseudo-inverse of their information, and
    ``diagonal`` its diagonal.
    """
    size = padded_size(max(len(board.theta) for board in boards))
    # One pair more than there are: models that never met share an empty one.
    n_pairs = padded_pairs(max(len(board.cells.first) for board in boards) + 1, size)
    keep_ties = options.response.ties != TieModel.HALF
    entries = drawn_entries([board.cells for board in boards], options.drawn, drawn, n_pairs, keep_ties)
    packing = entries.packing(max(battles_per_model(board.cells, len(board.theta)).max() for board in boards))
    draws = in_threads(entries.draw, range(len(boards)), repeat(options.drawn), labels, repeat(packing))
    problems = [
        refit_problem(
            draw,
            entries.layout(s, *_tables_of_pairs(board, size, n_pairs - 1)),
            start[s],
            pad(main_battles(board), (size,)),
            inverse[s],
            diagonal[s],
        )
        for s, (board, draw) in enumerate(zip(boards, draws, strict=True))
    ]
    form = RefitForm(options.drawn, Solver.CHORD, np.dtype(options.dtype).type, options.response, packing, n_pairs)
    return stacked(problems, padded_few(len(boards))), form


def _tables_of_pairs(board: Board, size: int, no_pair: int) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Return (M', M') number of every pair, ``no_pair`` for models that never met; and its weight's factor, if any."""
    cells, position = board.cells, board.cells.positions(size, no_pair)
    if board.pair_weight is None:
        return position, None
    factor = np.zeros((size, size))
    factor[cells.first, cells.second] = factor[cells.second, cells.first] = board.pair_weight
    return position, factor


_SPARSE_STEPS = 200
_SLOT_COPIES = 3  # of the weights by slot, with what a step makes of them


def sparse_refits(board: Board, label: str, drawn: VoteGroups, options: BootstrapOptions) -> BoardRefits:
    """Return the refits of a board called ``label``, whose draws are those of `dense_refits`."""
    if board.graph is None:
        raise ValueError("the board was fitted by the dense method")
    wide, n_pairs = board.graph, len(board.graph.graph.first)
    entries = drawn_entries([board.cells], options.drawn, [drawn], n_pairs)
    packing = entries.packing(battles_per_model(board.cells, len(board.theta)).max())
    draw = entries.draw(0, options.drawn, label, packing)
    weight = None if board.pair_weight is None else pad(board.pair_weight, (n_pairs,))
    data = SparseData(entries.layout(0, np.zeros((0, 0), np.int64), weight), wide.graph)  # no tables
    problem = refit_problem(draw, data, wide.numbered(board.theta), wide.numbered(main_battles(board)))
    form = RefitForm(options.drawn, Solver.SPARSE, np.dtype(options.dtype).type, options.response, packing, n_pairs)
    # The weights by slot, which every step passes over.
    slot_bytes = 3 * wide.graph.adjacency.owner.size * SLOTS * np.dtype(form.dtype).itemsize

    def on_board(refitted: Refitted) -> Refitted:
        """Return (B, M) refits with models as on the board, from those of the graph."""
        theta = recentred(refitted.theta[:, wide.number], board.connectivity, options.ridge)
        return refitted._replace(parameters=theta, standing=refitted.standing[:, wide.number])

    return BoardRefits(
        options, sparse.refit_sparse, on_device(problem), form,
        [Stage(Solver.SPARSE, _SPARSE_STEPS, SPARSE_REFITS, slot_bytes, _SLOT_COPIES * slot_bytes)], len(board.theta),
        on_board=on_board, fixed_bytes=(side_by_side() - 1) * _SLOT_COPIES * slot_bytes,
    )  # fmt: skip


def _host_task(boards: BoardRefits, way: Stage, n_models: Sequence[int]) -> HostTask:
    """Return how the host refits all lanes; the results are as wide as those of the largest board."""
    form, terms, width = boards.form._replace(solver=way.solver), boards.terms(way), max(n_models)
    seed: Any = np.uint64(boards.options.seed)

    def refit(problem: RefitProblem, numbers: Any) -> Any:
        refitted: Any = refits.refit_on_host(problem, form, seed, terms, numbers)
        wide = len(numbers), width
        return refitted._replace(theta=pad(refitted.theta, wide), standing=pad(refitted.standing, wide))

    every = [_without_padding(map_tree(lambda x, s=s: x[s], boards.problem), m) for s, m in enumerate(n_models)]
    at_once = [lanes_at_once(_TABLES[way.solver] * m**2) for m in n_models]
    return HostTask([partial(refit, problem) for problem in every], at_once)


def _without_padding(problem: RefitProblem, n_models: int) -> RefitProblem:
    """Return a problem of the host without models, and where that can be without pairs, that only fill its shape."""
    units, layout = problem.units, problem.data
    position = layout.position[:n_models, :n_models]
    if layout.pair is None and layout.unit is None and units.tables is not None:
        n_columns = np.flatnonzero(units.size.any(0))[-1] + 2  # and one of a pair that never met
        kept = slice(None), slice(n_columns)
        tables = units.tables._replace(**{name: getattr(units.tables, name)[kept] for name in _OF_UNITS})
        units = units._replace(size=units.size[kept], tables=tables)
        position = np.minimum(position, n_columns - 1)
        if layout.weight is not None:
            layout = layout._replace(weight=layout.weight[kept], target=layout.target[kept])
    if layout.pair_weight is not None:
        layout = layout._replace(pair_weight=layout.pair_weight[:n_models, :n_models])
    return problem._replace(
        units=units, data=layout._replace(position=position), start=problem.start[:n_models],
        main=problem.main[:n_models], inverse=problem.inverse[:n_models, :n_models],
        diagonal=problem.diagonal[:n_models],
    )  # fmt: skip
