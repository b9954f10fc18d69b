"""Refits with covariates or a tie model: what is drawn, and the cascade of solvers.

The weights of all resamples are never held at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jaxeval.arrays import as_leaf
from jaxeval.execution.lanes import Solver, Task
from jaxeval.execution.precision import on_device
from jaxeval.execution.shapes import CONTEXTUAL_REFITS, REFITS, padded_size, side_by_side
from jaxeval.kernels import batch
from jaxeval.kernels.resample import DrawScheme, Packing
from jaxeval.kernels.solve import Status, Terms
from jaxeval.ratings.boards import main_battles
from jaxeval.ratings.contextual_boards import ContextualBoard, unit_coefficients
from jaxeval.ratings.contextual_rows import make_rows, unit_columns
from jaxeval.ratings.dense_refits import pair_problems, table_words
from jaxeval.ratings.drawn_votes import is_secure_board, unit_members
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.refits import BoardRefits, Refitted
from jaxeval.ratings.vote_groups import VoteGroups
from jaxeval.resampling.draw import unit_draw
from jaxeval.resampling.units import pad

# A chord that has not converged by then hardly will; the next solver takes its lane.
_MAX_STEPS = {
    batch.Solver.CHORD: 20,
    batch.Solver.SCALED_CHORD: 30,
    batch.Solver.NEWTON_CG: 60,
    batch.Solver.NEWTON: 60,
}
# In turn, each for the lanes that those before it left; chord steps only on boards that no resample separates.
_SOLVERS = {
    batch.Solver.CHORD: "chord",
    batch.Solver.SCALED_CHORD: "scaled-chord",
    batch.Solver.NEWTON_CG: "newton-cg",
    batch.Solver.NEWTON: "newton",
}
# The most that a compiled chunk takes for each entry of a lane, and once more for all lanes together.
_BYTES_PER_ENTRY = 20


@dataclass(frozen=True, eq=False)
class ContextualRefits(BoardRefits):
    """Refits of one slice by two kinds of chord steps, Newton-CG and Newton.

    Without covariates the first solver takes the same draws as sums by pair, in a hundredth of the time of rows.
    """

    problem: batch.ContextualProblem
    form: batch.ContextualForm  # of chord steps
    secure: bool  # practically no resample separates models
    fitted: ContextualBoard
    pairs: tuple[batch.Problem, batch.RefitForm] | None  # of plain chord steps without covariates

    def solvers(self) -> list[Solver]:
        """The fastest first; plain chord steps only where no resample separates models."""
        return [
            Solver(code, name, self._task(code), np.array([self.secure or code != batch.Solver.CHORD]))
            for code, name in _SOLVERS.items()
        ]

    def _task(self, solver: batch.Solver) -> Task:
        """The work of a solver, and the memory of its draws, its weights and (for Newton) its tables of models."""
        ridge, max_steps = self.fitted.ridge, _MAX_STEPS[solver]
        if solver == batch.Solver.CHORD and self.pairs is not None:
            program = self.program(batch.refit, *self.pairs, ridge, max_steps)
            entries, budget = table_words(self.pairs[0], solver), REFITS
        else:
            form = self.form._replace(solver=solver)
            program = self.program(batch.refit_contextual, self.problem, form, ridge, max_steps)
            entries, budget = self._entries(solver), CONTEXTUAL_REFITS
        hungriest = _BYTES_PER_ENTRY * self._entries(batch.Solver.NEWTON)
        held = self.held_bytes(self.problem, len(self.fitted.phi))
        return Task(program, budget, entries, lane_bytes=hungriest, fixed_bytes=held + side_by_side() * hungriest)

    def _entries(self, solver: batch.Solver) -> int:
        """Numbers that a lane works on."""
        rows = self.problem.rows.unit.size
        entries = self.problem.units.size.size + rows
        if solver != batch.Solver.CHORD:
            entries += rows + (8 if solver == batch.Solver.NEWTON else 2) * len(self.fitted.ridge) ** 2
        return int(entries)

    def terms(self, ridge: ArrayLike, max_steps: int) -> Terms:
        """As for all refits, with a stricter tolerance if there are covariates.

        Covariates that hardly differ hide part of an error from its prediction.
        """
        terms = super().terms(ridge, max_steps)
        return terms._replace(tolerance=terms.tolerance / 4) if self.fitted.n_features else terms

    def on_board(self, refitted: Refitted) -> Refitted:
        """The refits. A lane whose coefficient runs away counts as converged: its other parameters are at a limit."""
        coefficients = refitted.parameters[:, len(self.fitted.phi) - 1 - self.fitted.n_features : -1]
        ran = np.isinf(unit_coefficients(coefficients, self.fitted)).any(1)
        at_limit = (refitted.status == Status.STEP_LIMIT) & ran
        return refitted._replace(status=np.where(at_limit, np.int8(Status.CONVERGED), refitted.status))


def contextual_refits(
    fitted: ContextualBoard, label: str, drawn: VoteGroups, options: BootstrapOptions
) -> ContextualRefits:
    """The refits of a slice called ``label``: battles are drawn, or the clusters of its rows."""
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
    secure, pairs = is_secure_board(board, drawn.repeating), None
    if secure and fitted.n_features == 0:
        full = fitted.phi[None], fitted.inverse[None], fitted.information_diagonal[None]
        pairs = pair_problems([board], [label], [drawn], options, full)
    return ContextualRefits(options, on_device(problem), form, secure, fitted, pairs)
