"""Refits with covariates or a tie model: what is drawn, and the cascade of solvers.

The weights of all resamples are never held at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxeval.arrays import as_leaf
from jaxeval.execution.precision import on_device
from jaxeval.execution.shapes import CONTEXTUAL_REFITS, REFITS, padded_size, side_by_side
from jaxeval.kernels import batch
from jaxeval.kernels.resample import DrawScheme, Packing
from jaxeval.kernels.solve import Status
from jaxeval.ratings.boards import main_battles
from jaxeval.ratings.contextual_boards import ContextualBoard, unit_coefficients
from jaxeval.ratings.contextual_rows import make_rows, unit_columns
from jaxeval.ratings.dense_refits import pair_problems, table_words
from jaxeval.ratings.drawn_votes import is_secure_board, unit_members
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.refits import BoardRefits, Refitted, Way
from jaxeval.ratings.vote_groups import VoteGroups
from jaxeval.resampling.rows import unit_draw
from jaxeval.resampling.units import pad

# In turn, each for the lanes that those before it left. A chord that has not converged by then hardly will.
_MAX_STEPS = {
    batch.Solver.CHORD: 20,
    batch.Solver.SCALED_CHORD: 30,
    batch.Solver.NEWTON_CG: 60,
    batch.Solver.NEWTON: 60,
}
# The most that a compiled chunk takes for each entry of a lane, and once more for all lanes together.
_BYTES_PER_ENTRY = 20


def contextual_refits(fitted: ContextualBoard, label: str, drawn: VoteGroups, options: BootstrapOptions) -> BoardRefits:
    """The refits of a slice called ``label``: battles are drawn, or the clusters of its rows.

    Plain chord steps take only boards that practically no resample separates. Without covariates they take the same
    draws as sums by pair, in a hundredth of the time of rows.
    """
    board, members, rows = fitted.board, fitted.members, fitted.rows
    if drawn.together or drawn.strata:
        members = unit_members(fitted.cells, drawn)
        rows = make_rows(fitted.cells, members, board.pair_weight)
    grid = pad(members.units, (members.units.shape[0], unit_columns(members)))
    draw = unit_draw(grid, options.drawn, label, Packing(None), members.stratum)
    # A unit of one battle is never drawn as often as 255 times.
    count_dtype: Any = np.float64 if options.drawn == DrawScheme.BAYESIAN else np.uint8 if grid.max() == 1 else np.int32
    problem = batch.ContextualProblem(
        units=draw.units,
        rows=rows,
        stream=as_leaf(draw.stream, np.uint64),
        phi=as_leaf(fitted.phi, np.float64),
        inverse=as_leaf(fitted.inverse, np.float64),
        information_diagonal=as_leaf(fitted.information_diagonal, np.float64),
        free=as_leaf(fitted.free, np.bool_),
        main_battles=as_leaf(pad(main_battles(board), (padded_size(len(board.theta)),)), np.float64),
    )
    form = batch.ContextualForm(options.response, options.drawn, count_dtype, batch.Solver.CHORD)
    secure = is_secure_board(board, drawn.repeating)

    def words(solver: batch.Solver) -> int:
        """Draws, weights and (for Newton) tables of models."""
        n_rows = problem.rows.unit.size
        tables = n_rows + (8 if solver == batch.Solver.NEWTON else 2) * len(fitted.ridge) ** 2
        return int(problem.units.size.size + n_rows + (0 if solver == batch.Solver.CHORD else tables))

    hungriest = _BYTES_PER_ENTRY * words(batch.Solver.NEWTON)
    ways = [Way(solver, steps, CONTEXTUAL_REFITS, words(solver), hungriest) for solver, steps in _MAX_STEPS.items()]
    ways[0] = ways[0]._replace(takes=np.array([secure]))
    full = fitted.phi[None], fitted.inverse[None], fitted.information_diagonal[None]
    by_pair = None
    if secure and fitted.n_features == 0:
        by_pair = pair_problems([board], [label], [drawn], options, full)
    if by_pair is not None:
        entries = table_words(by_pair[0], batch.Solver.CHORD)
        ways[0] = ways[0]._replace(
            budget=REFITS, words=entries, program=batch.refit, problem=by_pair[0], form=by_pair[1]
        )

    def on_board(refitted: Refitted) -> Refitted:
        """A lane whose coefficient runs away counts as converged: its other parameters are at a limit."""
        coefficients = refitted.parameters[:, len(fitted.phi) - 1 - fitted.n_features : -1]
        ran = np.isinf(unit_coefficients(coefficients, fitted)).any(1)
        at_limit = (refitted.status == Status.STEP_LIMIT) & ran
        return refitted._replace(status=np.where(at_limit, np.int8(Status.CONVERGED), refitted.status))

    return BoardRefits(
        options,
        batch.refit_contextual,
        on_device(problem),
        form,
        ways,
        len(fitted.phi),
        on_board=on_board,
        ridge=fitted.ridge,
        # Covariates that hardly differ hide part of an error from its prediction.
        stricter=4.0 if fitted.n_features else 1.0,
        fixed_bytes=side_by_side() * hungriest,
    )
