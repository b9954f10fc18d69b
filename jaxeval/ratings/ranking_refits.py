"""Refits to resampled rankings: what is drawn, and the cascade of solvers."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxeval.arrays import as_leaf
from jaxeval.execution.precision import on_device
from jaxeval.execution.shapes import CONTEXTUAL_REFITS, UNIT_ROWS, padded_cells, padded_units
from jaxeval.kernels import batch
from jaxeval.kernels.batch.plackett_luce import RankingForm, RankingProblem, refit_rankings
from jaxeval.kernels.resample import DrawScheme, Packing
from jaxeval.ratings.drawn_votes import unit_members
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.ranking_boards import RankingBoard, padded_use
from jaxeval.ratings.refits import BoardRefits, Way
from jaxeval.ratings.vote_groups import VoteGroups
from jaxeval.resampling.rows import unit_draw
from jaxeval.resampling.units import pad

# In turn, each for the lanes that those before it left; and their limits of steps.
_MAX_STEPS = {batch.Solver.CHORD: 30, batch.Solver.NEWTON_CG: 60, batch.Solver.NEWTON: 200}
# Numbers that a lane has for each set, for each ranking and for each pair of items, at most.
_PER_SET, _PER_CELL, _PER_PAIR = 8, 4, 4


def ranking_refits(fitted: RankingBoard, label: str, drawn: VoteGroups, options: BootstrapOptions) -> BoardRefits:
    """The refits of a slice called ``label``: rankings are drawn, or clusters of them.

    Chord steps leave resamples that do not rate the same items as the full data.
    """
    members = unit_members(fitted.cells, drawn)
    n_columns = padded_units(members.units.shape[1])
    column, row = np.divmod(members.unit, UNIT_ROWS)
    grid = pad(members.units, (UNIT_ROWS, n_columns))
    draw = unit_draw(grid, options.drawn, label, Packing(None), members.stratum)
    m, size = len(fitted.board.theta), len(fitted.base.theta)
    problem = RankingProblem(
        units=draw.units,
        members=padded_use(members.cell, row * n_columns + column, members.times.astype(float)),
        choices=fitted.choices,
        stream=as_leaf(draw.stream, np.uint64),
        base=fitted.base,
        is_item=as_leaf(np.arange(size) < m, np.bool_),
        main_weight=as_leaf(pad(fitted.main_weight, (size,)), np.float64),
    )
    count_dtype: Any = np.float64 if options.drawn == DrawScheme.BAYESIAN else np.int32
    n_cells = padded_cells(len(fitted.cells.count))
    form = RankingForm(options.drawn, count_dtype, n_cells, batch.Solver.CHORD)
    entries = _PER_SET * sum(s.shape[1] for s in fitted.choices.sets) + _PER_CELL * n_cells
    ways = [
        Way(
            solver,
            steps,
            CONTEXTUAL_REFITS,
            entries + (_PER_PAIR if solver == batch.Solver.NEWTON else 1) * size**2,
            8 * (entries + _PER_PAIR * size**2),
        )
        for solver, steps in _MAX_STEPS.items()
    ]
    return BoardRefits(options, refit_rankings, on_device(problem), form, ways, size)
