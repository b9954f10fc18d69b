"""Refits to resampled human outcomes and verdicts: what is drawn, and the cascade of solvers."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxeval.arrays import as_leaf
from jaxeval.data.verdict_rows import VerdictCells
from jaxeval.execution.precision import on_device
from jaxeval.execution.shapes import REFITS
from jaxeval.kernels import batch
from jaxeval.kernels.batch.powered import PoweredForm, PoweredProblem, refit_powered
from jaxeval.kernels.prediction_powered import Entries
from jaxeval.kernels.resample import DrawScheme
from jaxeval.ratings.connectivity import per_model
from jaxeval.ratings.drawn_votes import Entries as DrawnTo
from jaxeval.ratings.drawn_votes import is_secure_board, vote_draws
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.powered_boards import PoweredBoard
from jaxeval.ratings.refits import BoardRefits, Way
from jaxeval.ratings.vote_groups import VoteGroups
from jaxeval.resampling.units import pad

# In turn, each for the lanes that those before it left; and their limits of steps.
_MAX_STEPS = {batch.Solver.CHORD: 40, batch.Solver.NEWTON_CG: 60, batch.Solver.NEWTON: 200}
# Numbers that a lane has for each entry that is drawn, each pair and each pair of models, at most.
_PER_ENTRY, _PER_PAIR, _TABLES = 2, 24, 4


def powered_refits(
    fitted: PoweredBoard, label: str, drawn: VoteGroups, options: BootstrapOptions, lam: float | None
) -> BoardRefits:
    """The refits of a slice called ``label``; ``lam`` is None where every resample takes its best one.

    Chord steps take only boards on which no resample leaves a model without a strength.
    """
    cells, m, size = fitted.cells, len(fitted.board.theta), len(fitted.start)
    n_pairs = len(np.asarray(fitted.tuning.first))
    draws = vote_draws(cells.by_sample(n_pairs), drawn, options.drawn, label, 2 * n_pairs)
    position = np.full((size, size), n_pairs - 1)
    position[cells.first, cells.second] = position[cells.second, cells.first] = np.arange(len(cells.first))
    main = per_model(cells.first, cells.second, fitted.board.n, m)
    problem = PoweredProblem(
        units=draws.units,
        entries=_entries(draws.entries, cells),
        stream=as_leaf(draws.stream, np.uint64),
        position=as_leaf(position, np.int32),
        tuning=fitted.tuning,
        lam=as_leaf(np.nan if lam is None else lam, np.float64),
        start=as_leaf(fitted.start, np.float64),
        inverse=as_leaf(fitted.inverse, np.float64),
        information_diagonal=as_leaf(fitted.information_diagonal, np.float64),
        main_battles=as_leaf(pad(np.where(fitted.board.active, main, 0.0), (size,)), np.float64),
    )
    count_dtype: Any = np.float64 if options.drawn == DrawScheme.BAYESIAN else np.int32
    form = PoweredForm(options.drawn, count_dtype, n_pairs, batch.Solver.CHORD, fitted.form)
    secure = _is_secure(fitted, drawn)
    held = _PER_ENTRY * (draws.units.size.size + problem.entries.times.size) + _PER_PAIR * n_pairs
    ways = [
        Way(
            solver,
            steps,
            REFITS,
            held + (_TABLES if solver == batch.Solver.NEWTON else 1) * size**2,
            8 * (held + _TABLES * size**2),
            takes=np.array([secure or solver != batch.Solver.CHORD]),
        )
        for solver, steps in _MAX_STEPS.items()
    ]
    return BoardRefits(options, refit_powered, on_device(problem), form, ways, size)


def _entries(entries: DrawnTo, cells: VerdictCells) -> Entries:
    """What the draws add to, as the kernels take it; NumPy arrays."""
    times = (1.0 if entries.times is None else entries.times) * cells.used[entries.cell]
    return Entries(
        unit=None if entries.unit is None else as_leaf(entries.on_grid(entries.place), np.int32),
        times=as_leaf(entries.on_grid(times), np.float64),
        human=as_leaf(entries.on_grid(np.where(cells.labelled, cells.target, 0.0)[entries.cell]), np.float64),
        judge=as_leaf(entries.on_grid(cells.verdict[entries.cell]), np.float64),
        pair=as_leaf(entries.pair, np.int32),
    )


def _is_secure(fitted: PoweredBoard, drawn: VoteGroups) -> bool:
    """Whether hardly any resample leaves a model without a finite strength, by the human outcomes alone.

    A board with clusters never counts as secure, as clusters also hold the judge's verdicts.
    """
    alone = fitted.board._replace(cells=fitted.cells.of_people)
    return drawn.repeating is None and is_secure_board(alone, None)
