"""Refits to resampled verdicts of panels: what is drawn, and the cascade of solvers."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxeval.arrays import as_leaf
from jaxeval.execution.precision import on_device
from jaxeval.execution.shapes import REFITS
from jaxeval.kernels import batch
from jaxeval.kernels.batch.judge_panel import PanelEntries, PanelForm, PanelProblem, refit_panels
from jaxeval.kernels.resample import DrawScheme
from jaxeval.ratings.connectivity import per_model
from jaxeval.ratings.drawn_votes import vote_draws
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.panel_boards import PanelBoard, padded_contests, padded_panel, sizes_of, typical
from jaxeval.ratings.refits import BoardRefits, Refitted, Way
from jaxeval.ratings.vote_groups import VoteGroups
from jaxeval.resampling.units import pad

# In turn, each for the lanes that those before it left; and their limits of steps.
_MAX_STEPS = {batch.Solver.CHORD: 40, batch.Solver.NEWTON: 200}
# Numbers that a lane has for each entry that is drawn and each contest, at most.
_PER_ENTRY, _PER_CONTEST = 2, 10


def panel_refits(fitted: PanelBoard, label: str, drawn: VoteGroups, options: BootstrapOptions) -> BoardRefits:
    """The refits of a slice called ``label``: verdicts are drawn, or clusters of them."""
    cells, board = fitted.cells, fitted.board
    m, k = len(board.theta), len(fitted.judges)
    sizes, contests = sizes_of(m, k), padded_contests(cells)
    draws = vote_draws(cells, drawn, options.drawn, label, len(np.asarray(contests.first)))
    own = draws.entries
    weight = (1.0 if own.times is None else own.times) * (cells.weight * fitted.used[cells.pair])[own.cell]
    entries = PanelEntries(
        unit=None if own.unit is None else as_leaf(own.on_grid(own.place), np.int32),
        weight=as_leaf(own.on_grid(weight), np.float64),
        target=as_leaf(own.on_grid(cells.target[own.cell]), np.float64),
        contest=as_leaf(own.pair, np.int32),
    )
    at, weights = fitted.working
    inverse = fitted.inverse(at, weights)
    places = padded_panel(np.arange(1, len(inverse) + 1), sizes, m)
    there = places > 0
    wide = np.zeros((len(places), len(places)))
    wide[np.ix_(there, there)] = inverse
    main = per_model(cells.first, cells.second, fitted.sums[0], m)
    problem = PanelProblem(
        units=draws.units,
        entries=entries,
        contests=contests,
        stream=as_leaf(draws.stream, np.uint64),
        start=as_leaf(padded_panel(np.concatenate(at), sizes, m), np.float64),
        weights=as_leaf(pad(weights, (sizes.judges,)), np.float64),
        inverse=as_leaf(wide, np.float64),
        moves=as_leaf(padded_panel(fitted.moves, sizes, m), np.bool_),
        main_verdicts=as_leaf(pad(np.where(board.active, main, 0.0), (sizes.models,)), np.float64),
    )
    count_dtype: Any = np.float64 if options.drawn == DrawScheme.BAYESIAN else np.int32
    form = PanelForm(options.drawn, count_dtype, sizes, batch.Solver.CHORD)
    p = len(wide)
    held = _PER_ENTRY * (draws.units.size.size + entries.weight.size) + _PER_CONTEST * len(contests.first)
    tables = {batch.Solver.CHORD: 2 * sizes.models**2, batch.Solver.NEWTON: 4 * p**2}
    ways = [Way(own, steps, REFITS, held + tables[own], 8 * (held + 4 * p**2)) for own, steps in _MAX_STEPS.items()]

    def on_board(refitted: Refitted) -> Refitted:
        """Scale the parameters, without padding, as those of the fit."""
        theta, g, b = np.split(refitted.parameters, [sizes.models, sizes.models + sizes.judges], axis=1)
        scale = typical(g[:, :k], fitted.shares)[:, None]
        scale = np.where(scale > 0, scale, 1.0)
        parameters = np.concatenate([theta[:, :m] * scale, g[:, :k] / scale, b[:, :k]], axis=1)
        return refitted._replace(parameters=parameters, standing=refitted.standing[:, :m])

    return BoardRefits(options, refit_panels, on_device(problem), form, ways, p, on_board=on_board)
