"""Refits to resampled verdicts of panels: what is drawn, and the cascade of solvers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxeval.arrays import as_leaf
from jaxeval.execution.lanes import Solver, Task
from jaxeval.execution.precision import on_device
from jaxeval.execution.shapes import REFITS
from jaxeval.kernels import batch
from jaxeval.kernels.batch.judge_panel import PanelEntries, PanelForm, PanelProblem, refit_panels
from jaxeval.kernels.resample import DrawScheme
from jaxeval.ratings.connectivity import per_model
from jaxeval.ratings.drawn_votes import vote_draws
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.panel_boards import PanelBoard, padded_contests, padded_panel, sizes_of, typical
from jaxeval.ratings.refits import BoardRefits, Refitted
from jaxeval.ratings.vote_groups import VoteGroups
from jaxeval.resampling.units import pad

# In turn, each for the lanes that those before it left; and their limits of steps.
_SOLVERS = {batch.Solver.CHORD: ("chord", 40), batch.Solver.NEWTON: ("newton", 200)}
# Numbers that a lane has for each entry that is drawn and each contest, at most.
_PER_ENTRY, _PER_CONTEST = 2, 10


@dataclass(frozen=True, eq=False)
class PanelRefits(BoardRefits):
    """Refits of one slice by chord steps and Newton."""

    problem: PanelProblem
    form: PanelForm  # of chord steps
    fitted: PanelBoard

    def solvers(self) -> list[Solver]:
        """The fastest first."""
        return [
            Solver(code, name, self._task(code, max_steps), np.array([True]))
            for code, (name, max_steps) in _SOLVERS.items()
        ]

    def _task(self, solver: batch.Solver, max_steps: int) -> Task:
        p = len(self.problem.start)
        drawn = self.problem.units.size.size + self.problem.entries.weight.size
        entries = _PER_ENTRY * drawn + _PER_CONTEST * len(self.problem.contests.first)
        tables = (4 * p**2) if solver == batch.Solver.NEWTON else 2 * self.form.sizes.models**2
        form = self.form._replace(solver=solver)
        return Task(
            self.program(refit_panels, self.problem, form, self.options.ridge, max_steps),
            REFITS,
            entries + tables,
            lane_bytes=8 * (entries + 4 * p**2),
            fixed_bytes=self.held_bytes(self.problem, p),
        )

    def on_board(self, refitted: Refitted) -> Refitted:
        """Scale the parameters, without padding, as those of the fit."""
        m, k, sizes = len(self.fitted.board.theta), len(self.fitted.judges), self.form.sizes
        theta, g, b = np.split(refitted.parameters, [sizes.models, sizes.models + sizes.judges], axis=1)
        scale = typical(g[:, :k], self.fitted.shares)[:, None]
        scale = np.where(scale > 0, scale, 1.0)
        parameters = np.concatenate([theta[:, :m] * scale, g[:, :k] / scale, b[:, :k]], axis=1)
        return refitted._replace(parameters=parameters, standing=refitted.standing[:, :m])


def panel_refits(fitted: PanelBoard, label: str, drawn: VoteGroups, options: BootstrapOptions) -> PanelRefits:
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
    return PanelRefits(options, on_device(problem), form, fitted)
