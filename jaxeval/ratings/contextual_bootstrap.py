"""Bootstrap of fits with covariates or a tie model: resamples refitted chunk by chunk, weights never held for all."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.execution.lanes import LaneRun, Lanes, Task, device_mesh
from jaxeval.execution.precision import double_precision
from jaxeval.execution.shapes import CONTEXTUAL_REFITS
from jaxeval.kernels import batch
from jaxeval.kernels.resample import DrawScheme
from jaxeval.kernels.solve import Status, Terms
from jaxeval.ratings.boards import padded_size
from jaxeval.ratings.bootstrap_plan import ClusterRows, cluster_members, is_secure_board, main_battles
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.ratings.contextual import (
    TIE_MODELS,
    ContextualBoard,
    ContextualFit,
    Ties,
    outcome_probabilities,
    tell_coefficients,
    tell_ties,
)
from jaxeval.ratings.contextual_rows import make_rows, unit_columns
from jaxeval.ratings.refits import RESULT_BYTES, TOLERANCE_LOGIT, Refitted
from jaxeval.resampling.units import make_units, pad, stream_number
from jaxeval.statistics.quantiles import interval_bounds

Float = NDArray[np.float64]

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
# What a compiled chunk takes for each of a lane's entries, and once more for the lanes together, at most.
_BYTES_PER_ENTRY = 20


class ContextualRefitted(NamedTuple):
    """`batch.Refits` of B resamples on the host."""

    phi: Float  # (B, P)
    status: NDArray[np.int8]
    n_steps: NDArray[np.int32]
    grad_norm: Float
    standing: NDArray[np.int8]  # (B, M')
    solver: NDArray[np.int8]

    def of_models(self) -> Refitted:
        """Without the other parameters."""
        theta = self.phi[:, : self.standing.shape[1]]
        return Refitted(theta, self.status, self.n_steps, self.grad_norm, self.standing, self.solver)


@dataclass(frozen=True, eq=False)
class ContextualBootstrap(Bootstrap):
    """B refitted resamples with covariates or a tie model: a `Bootstrap`, with the draws of the other parameters."""

    fit: ContextualFit
    coefficient_draws: Float = field(repr=False)  # (B, D) logits per unit of the (normalised) covariates
    tie_draws: Float = field(repr=False)  # (B,) t; 0 where ties are half a win
    _ties_as_half: Bootstrap | None = field(default=None, repr=False)

    @property
    def expected_score(self) -> Bootstrap:
        """The resamples refitted with ties as half a win: ratings and intervals on the scale of expected scores.

        See `ContextualFit.expected_score`. With ties as half a win they are these resamples themselves.
        """
        return self if self._ties_as_half is None else self._ties_as_half

    @property
    def warnings(self) -> list[str]:
        """What the data or the computation leave open, in words."""
        messages = super().warnings
        share = np.isinf(self.coefficient_draws).mean(0)
        for name, own in zip(self.fit.context.features, share, strict=True):
            if own > 0:
                messages.append(
                    f"{name!r} has no finite coefficient in {own:.1%} of the resamples, where the side that has more "
                    "of it won all its battles, or lost them all: its interval is unreliable"
                )
        without = float((self.tie_draws == self.fit._contextual.tie_limit).mean())
        if without > 0 and self.fit._contextual.free[-1]:
            messages.append(f"{without:.1%} of the resamples have no ties: the tie parameter is at its limit in them")
        return messages

    def coefficients(self, level: float = 0.95) -> pd.DataFrame:
        """A row per covariate: the full-data estimate, errors and percentile intervals of the draws.

        With a tie model its parameter t is the last row, "tie parameter".
        """
        draws = np.column_stack([self.coefficient_draws, self.tie_draws])
        kept = np.where(self.converged[:, None], draws, np.nan)
        lower, upper = interval_bounds(kept, level)
        finite = np.where(np.isfinite(kept), kept, np.nan)
        few = np.isfinite(finite).sum(0) < 2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of columns without draws
            error = np.nanstd(finite, 0, ddof=1)
        error, lower, upper = (np.where(few, np.nan, x) for x in (error, lower, upper))
        return self.fit.coefficient_table(error, lower, upper)

    def outcome_probabilities(
        self, model_a: Any, model_b: Any, features: Mapping[str, float] | None = None, level: float = 0.95
    ) -> pd.DataFrame:
        """``win``, ``tie``, ``loss`` and ``expected`` of one model against another, with percentile intervals.

        Args:
            model_a: a model of the board.
            model_b: its opponent.
            features: as in `ContextualFit.outcome_probabilities`.
            level: of the intervals.
        """
        fit = self.fit
        point = fit.outcome_probabilities(model_a, model_b, features)
        a, b = (self.models.get_loc(model) for model in (model_a, model_b))
        draws = outcome_probabilities(
            fit, self.draws_logit[:, a], self.draws_logit[:, b], features or {}, self.coefficient_draws, self.tie_draws
        )
        together = np.where(self.converged[:, None], np.stack(list(draws.values()), 1), np.nan)
        lower, upper = interval_bounds(together, level)
        return pd.DataFrame({"probability": point, "lower": lower, "upper": upper}, pd.Index(draws, name="outcome"))


def refit_contextual(
    fitted: ContextualBoard,
    scheme: DrawScheme,
    label: str,
    clusters: ClusterRows | None,
    ties: Ties,
    n_resamples: int,
    seed: int,
    run: LaneRun,
    section: str,
) -> ContextualRefitted:
    """B refits of one slice, each solver taking the lanes that the faster ones before it left.

    ``section`` names the slice in the run's checkpoint.
    """
    board = fitted.board
    plan = make_contextual_plan(fitted, scheme, label, clusters, ties)
    refits = _Refitting(plan, fitted.ridge, seed, n_resamples * len(fitted.phi) * RESULT_BYTES)
    size = padded_size(len(board.theta))
    lanes = ContextualRefitted(
        phi=np.zeros((n_resamples, len(fitted.phi))),
        status=np.full(n_resamples, -1, np.int8),
        n_steps=np.zeros(n_resamples, np.int32),
        grad_norm=np.zeros(n_resamples),
        standing=np.zeros((n_resamples, size), np.int8),
        solver=np.full(n_resamples, batch.Solver.CHORD, np.int8),
    )
    every = Lanes.of(1, n_resamples)
    found: Any = batch.Refits(*lanes[:-1])  # type: ignore[arg-type]  # of NumPy arrays
    for solver in _SOLVERS:
        if solver == batch.Solver.CHORD and not plan.secure:
            continue
        rest = np.flatnonzero(lanes.status != Status.CONVERGED)
        lanes.solver[rest] = solver
        run.run(refits.task(solver), every, rest, found, f"{section}-{_SOLVERS[solver]}")
    # What is left of a lane whose coefficient runs away is at its limit.
    d = len(fitted.free) - 1
    ran = np.isinf(tell_coefficients(lanes.phi[:, len(fitted.ridge) - 1 - d : -1], fitted)).any(1)
    lanes.status[(lanes.status == Status.STEP_LIMIT) & ran] = Status.CONVERGED
    return lanes


class ContextualPlan(NamedTuple):
    """Everything that the batched refit of a slice needs."""

    problem: batch.ContextualProblem  # NumPy arrays until the call
    method: batch.ContextualForm  # by chord steps
    secure: bool  # practically no resample separates models


def make_contextual_plan(
    fitted: ContextualBoard,
    scheme: DrawScheme,
    label: str,
    clusters: ClusterRows | None,
    ties: Ties,
) -> ContextualPlan:
    """The plan of a slice called ``label``: battles are drawn, or the clusters of its rows."""
    board, members, rows = fitted.board, fitted.members, fitted.rows
    if clusters is not None and clusters.repeats:
        members = cluster_members(fitted.cells, clusters)
        rows = make_rows(fitted.cells, members, board.pair_weight)
    else:
        clusters = None
    grid = pad(members.units, (members.units.shape[0], unit_columns(members)))
    # Of a unit of one battle there are never as many as 255 draws.
    count_dtype = np.float64 if scheme == DrawScheme.BAYESIAN else np.uint8 if grid.max() == 1 else np.int32
    battles = pad(main_battles(board), (padded_size(len(board.theta)),))
    arrays: Any = (
        np.asarray(stream_number(label), np.uint64),
        fitted.phi,
        fitted.inverse,
        fitted.information_diagonal,
        fitted.free,
        battles,
    )
    problem = batch.ContextualProblem(make_units(grid, None if scheme == DrawScheme.MULTINOMIAL else 0), rows, *arrays)
    method = batch.ContextualForm(TIE_MODELS[ties], scheme, count_dtype, batch.Solver.CHORD)
    return ContextualPlan(problem, method, is_secure_board(board, clusters))


class _Refitting:
    """The batched refit of a plan."""

    def __init__(self, plan: ContextualPlan, ridge: Float, seed: int, result_bytes: int) -> None:
        self.plan, self.ridge, self.seed = plan, ridge, np.uint64(seed)
        self.result_bytes = result_bytes
        self.mesh = device_mesh()
        with double_precision():
            self.problem = jax.tree.map(jax.numpy.asarray, plan.problem)

    def task(self, solver: batch.Solver) -> Task:
        """The refit by one of the solvers: draws, weights and (by Newton) the tables of models stay within bounds."""
        hungriest = _BYTES_PER_ENTRY * self._entries(batch.Solver.NEWTON)
        problem_bytes = sum(x.nbytes for x in jax.tree.leaves(self.plan.problem))
        return Task(
            partial(self, self.method(solver)),
            CONTEXTUAL_REFITS,
            self._entries(solver),
            lane_bytes=hungriest,
            fixed_bytes=self.result_bytes + 2 * problem_bytes + hungriest,
        )

    def method(self, solver: batch.Solver) -> batch.ContextualForm:
        """The static choices of the calls by one of the solvers."""
        return self.plan.method._replace(solver=solver)

    def __call__(
        self,
        form: batch.ContextualForm,
        slices: NDArray[np.int32],
        numbers: NDArray[np.int64],
        n_chunks: NDArray[np.int32],
    ) -> batch.Refits:
        """Refit chunks of the one slice: `lanes.Call`."""
        terms = Terms.of(self.ridge, TOLERANCE_LOGIT["float64"], _MAX_STEPS[form.solver])
        with double_precision():
            return batch.refit_contextual(self.problem, form, self.mesh, self.seed, terms, numbers, n_chunks)

    def _entries(self, solver: batch.Solver) -> int:
        """Numbers that a lane works on."""
        rows = self.problem.rows.unit.size
        entries = self.problem.units.size.size + rows
        if solver != batch.Solver.CHORD:
            entries += rows + (8 if solver == batch.Solver.NEWTON else 2) * len(self.ridge) ** 2
        return int(entries)


def contextual_bootstrap_result(
    plain: Bootstrap, fit: ContextualFit, lanes: ContextualRefitted, ties_as_half: Bootstrap | None
) -> ContextualBootstrap:
    """``plain`` with the draws of the other parameters; with a tie model, beside the one with ties as half a win."""
    if ties_as_half is not None:
        fit = replace(fit, _ties_as_half=ties_as_half.fit)
    values = {f.name: getattr(plain, f.name) for f in fields(Bootstrap)} | {"fit": fit}
    n_features = len(fit.context.features)
    p = lanes.phi.shape[1]
    kept = np.where((lanes.status == Status.CONVERGED)[:, None], lanes.phi, np.nan)
    return ContextualBootstrap(
        **values,
        coefficient_draws=tell_coefficients(kept[:, p - 1 - n_features : -1], fit._contextual),
        tie_draws=tell_ties(kept[:, -1], fit._contextual),
        _ties_as_half=ties_as_half,
    )
