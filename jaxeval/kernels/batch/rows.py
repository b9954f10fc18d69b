"""Fits and refits of boards that are no tables: with covariates, of rankings, of panels, prediction-powered."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from jaxeval.kernels import (
    connectivity,
    contextual,
    dense_solve,
    judge_panel,
    lane_draws,
    likelihood,
    plackett_luce,
    prediction_powered,
    resample,
)
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.batch.refits import Refits, Solver, rated, refit_program, stored
from jaxeval.kernels.judge_panel import Contests, Sizes, Verdicts
from jaxeval.kernels.kinds import Bool, Float, Int8, Int32, Integer, Num, Real, UInt64
from jaxeval.kernels.links import Link
from jaxeval.kernels.pair_tables import PairTable, row_sums
from jaxeval.kernels.plackett_luce import Choices, ChoiceUse, ItemBase
from jaxeval.kernels.prediction_powered import Form, PairSums, Powered, PoweredEntries, Tuning
from jaxeval.kernels.solve import Solution, Status, Terms, pseudo_inverse
from jaxeval.kernels.tie_models import Response


class ContextualProblem(NamedTuple):
    """One slice with covariates or a tie model: what is resampled, and the full-data fit that refits start from."""

    units: resample.Units
    rows: contextual.Rows
    stream: UInt64[Array, ""]
    phi: Float[Array, "P"]  # full-data parameters
    inverse: Float[Array, "P P"]  # pseudo-inverse of the full-data information
    information_diagonal: Float[Array, "P"]
    free: Bool[Array, "_"]  # which of the D coefficients are fitted, and whether t is
    main_battles: Float[Array, "M"]  # as in `PairProblem`


class ContextualForm(NamedTuple):
    """Static choices, as in `RefitForm`."""

    response: Response
    scheme: resample.DrawScheme
    count_dtype: type  # of a row's draws
    solver: Solver


class ContextualSolution(NamedTuple):
    """A full-data fit of P parameters."""

    phi: Float[Array, "P"]
    status: Int8[Array, ""]
    n_steps: Int32[Array, ""]
    grad_norm: Float[Array, ""]
    inverse: Float[Array, "P P"]  # pseudo-inverse of the information
    diagonal: Float[Array, "P"]  # of the information


@program("response")
def fit_contextual(
    rows: contextual.Rows,
    count: Num[Array, "T E G"],
    start: Float[Array, "P"],
    active: Bool[Array, "M"],
    free: Bool[Array, "D+1"],
    response: Response,
    terms: Terms,
) -> ContextualSolution:
    """Newton's method from ``start`` on one slice: ``count`` battles of ``active`` models, ``free`` parameters."""
    n_models = len(active)
    count = contextual.among(rows, count[..., None], active[:, None])
    moves = contextual.alive(response, rows, count, active[:, None], free)
    end, (matrix,) = contextual.newton(response, rows, start[:, None], count, moves, terms)
    moves = moves[:, 0]
    return ContextualSolution(
        phi=end.theta[:, 0],
        status=end.status[0],
        n_steps=end.n_steps[0],
        grad_norm=end.grad_norm[0],
        inverse=pseudo_inverse(matrix, moves, n_models, terms.ridge[0]),
        diagonal=jnp.where(moves, jnp.diagonal(matrix), 0.0),
    )


def count_rows(
    problem: ContextualProblem, form: ContextualForm, seed: Integer[Array, ""], numbers: Integer[Array, "R"]
) -> Num[Array, "T E G R"]:
    """Draws of every row's unit in the resamples ``numbers``."""
    drawn = lane_draws.draw(problem.units, form.scheme, form.count_dtype, seed, problem.stream, numbers)
    return contextual.counts_of_rows(problem.rows, drawn)


def _at_estimate(problem: ContextualProblem, form: ContextualForm) -> tuple[ContextualProblem, contextual.RowBase]:
    """The problem, and its rows at the full data's estimate."""
    n_models = len(problem.main_battles)
    of_fit = problem.phi, n_models, problem.inverse, problem.information_diagonal
    return problem, contextual.at_estimate(form.response, problem.rows, *of_fit)


@partial(refit_program, ready=_at_estimate)
def refit_contextual(
    posed: tuple[ContextualProblem, contextual.RowBase],
    form: ContextualForm,
    seed: Integer[Array, ""],
    terms: Terms,
    numbers: Integer[Array, "R"],
) -> Refits:
    """Refit resamples of one slice, as `refit` does. The ridge is (P,), a coefficient for each parameter."""
    problem, base = posed
    rows, n_models = problem.rows, problem.main_battles.shape[0]
    count = count_rows(problem, form, seed, numbers)
    if form.solver == Solver.CHORD:
        end = contextual.chord(form.response, rows, base, count, terms)
        nobody = jnp.zeros((numbers.shape[0], n_models), jnp.int8)
        return Refits(end.theta.T, end.status, end.n_steps, end.grad_norm, nobody)
    tables = contextual.pair_tables(rows, count, n_models)
    standing = jax.vmap(lambda n, wins: connectivity.standing(n, wins, problem.main_battles))(*tables)
    active = rated(standing, terms.ridge[0]).T
    count = contextual.among(rows, count, active)
    moves = contextual.alive(form.response, rows, count, active, problem.free)
    if form.solver == Solver.NEWTON:
        end, _ = contextual.newton(form.response, rows, problem.phi[:, None], count, moves, terms)
    else:
        solve = contextual.scaled_chord if form.solver == Solver.SCALED_CHORD else contextual.newton_cg
        end = solve(form.response, rows, base, count, moves, terms)
    return Refits(end.theta.T, end.status, end.n_steps, end.grad_norm, standing)


class RankingProblem(NamedTuple):
    """One slice: what is resampled, and the full-data fit that refits start from."""

    units: resample.Units
    members: ChoiceUse  # rankings of each cell (``number``) by unit (``cell``)
    choices: Choices
    stream: UInt64[Array, ""]  # names the slice's random numbers
    base: ItemBase
    is_item: Bool[Array, "M"]  # false for padding
    main_weight: Float[Array, "M"]  # full-data meetings of the items of its main group, 0 for the others


class RankingForm(NamedTuple):
    """Static choices, as in `RefitForm`."""

    scheme: resample.DrawScheme
    count_dtype: type  # of a unit's draws
    n_cells: int
    solver: Solver


def _standing(choices: Choices, count: Num[Array, "C R"], main_weight: Float[Array, "M"]) -> Int8[Array, "M R"]:
    """Standing of every item, see `connectivity.standing_of`."""
    edges = plackett_luce.edges(choices, count, len(main_weight))
    return jax.vmap(lambda edge: connectivity.standing(edge, edge, main_weight))(edges).T


@program()
def fit_rankings(
    choices: Choices, count: Num[Array, "C"], standing: Int8[Array, "M"], is_item: Bool[Array, "M"], terms: Terms
) -> tuple[Solution, Float[Array, "M M"], Float[Array, "M"]]:
    """Newton's method on one slice with ``count`` rankings of every cell, whose items have that ``standing``.

    It also returns the pseudo-inverse of the information, and the diagonal of the information itself.
    """
    m = len(is_item)
    own = plackett_luce.counted_choices(choices, count[:, None].astype(float), m)
    rated = plackett_luce.rated_items(standing[:, None], is_item, terms)
    end, (matrix,) = plackett_luce.newton(choices, own, rated, jnp.zeros((m, 1)), terms)
    active = rated.active[:, 0]
    inverse = pseudo_inverse(matrix, active, m, terms.ridge)
    return jax.tree.map(lambda x: x[..., 0], end), inverse, jnp.where(active, jnp.diagonal(matrix), 0.0)


def count_rankings(
    problem: RankingProblem, form: RankingForm, seed: Integer[Array, ""], numbers: Integer[Array, "R"]
) -> Num[Array, "C R"]:
    """Rankings of every cell in the resamples ``numbers``."""
    drawn = lane_draws.draw(problem.units, form.scheme, form.count_dtype, seed, problem.stream, numbers)
    return plackett_luce.used(problem.members, drawn, form.n_cells)


@refit_program
def refit_rankings(
    problem: RankingProblem, form: RankingForm, seed: Integer[Array, ""], terms: Terms, numbers: Integer[Array, "R"]
) -> Refits:
    """Refit resamples of one slice, as `refit` does; every solver looks for separated items first."""
    choices, base = problem.choices, problem.base
    count = count_rankings(problem, form, seed, numbers)
    standing = _standing(choices, count, problem.main_weight)
    rated = plackett_luce.rated_items(standing, problem.is_item, terms)
    own = plackett_luce.counted_choices(choices, count, len(base.theta))
    if form.solver == Solver.CHORD:
        end = plackett_luce.chord(choices, own, rated, base, terms)
    elif form.solver == Solver.NEWTON_CG:
        end = plackett_luce.newton_cg(choices, own, rated, base, terms)
    else:
        end, _ = plackett_luce.newton(choices, own, rated, jnp.zeros(rated.active.shape), terms)
    return Refits(end.theta.T, end.status, end.n_steps, end.grad_norm, standing.T)


class PanelEntries(NamedTuple):
    """What the draws add to: a grid, each of whose columns belongs to one contest."""

    unit: Int32[Array, "rows columns"] | None  # flat number of the unit that draws the entry; None: its own place
    weight: Float[Array, "rows columns"]  # that a draw of the unit adds, 0 where there is none
    target: Float[Array, "rows columns"]
    contest: Int32[Array, "columns"]


class PanelProblem(NamedTuple):
    """One slice: what is resampled, and the full-data fit that refits start from."""

    units: resample.Units
    entries: PanelEntries
    contests: Contests
    stream: UInt64[Array, ""]  # names the slice's random numbers
    start: Float[Array, "P"]
    weights: Float[Array, "K"]  # of the gauge
    inverse: Float[Array, "P P"]  # of the information, within the gauge
    moves: Bool[Array, "P"]  # what is fitted
    main_verdicts: Float[Array, "M"]  # full-data verdicts on the models of its main group, 0 for the others


class PanelForm(NamedTuple):
    """Static choices, as in `RefitForm`."""

    scheme: resample.DrawScheme
    count_dtype: type  # of a unit's draws
    sizes: Sizes
    solver: Solver


@program("sizes")
def fit_panel(
    contests: Contests,
    verdicts: Verdicts,
    start: Float[Array, "P"],
    weights: Float[Array, "K"],
    moves: Bool[Array, "P"],
    sizes: Sizes,
    terms: Terms,
) -> Solution:
    """The fit of the full data, whose ``verdicts`` are (C, 1)."""
    end = judge_panel.newton(contests, verdicts, start[:, None], weights, moves[:, None], sizes, terms)
    return jax.tree.map(lambda x: x[..., 0], end)


def count_verdicts(
    problem: PanelProblem, form: PanelForm, seed: Integer[Array, ""], numbers: Integer[Array, "R"]
) -> Verdicts:
    """Verdicts of the resamples ``numbers``."""
    draws = lane_draws.draw(problem.units, form.scheme, form.count_dtype, seed, problem.stream, numbers)
    own, n_contests = problem.entries, len(problem.contests.first)
    n, points = lane_draws.sums(draws, own.unit, own.contest, n_contests, (own.weight, own.weight * own.target))
    return Verdicts(n, points)


@refit_program
def refit_panels(
    problem: PanelProblem, form: PanelForm, seed: Integer[Array, ""], terms: Terms, numbers: Integer[Array, "R"]
) -> Refits:
    """Refit resamples of one slice, as `refit` does; every solver looks for separated models first.

    Parameters of a judge that are not fitted are NaN. Chord steps leave out resamples in which other parameters move
    than in the full data.
    """
    contests, sizes = problem.contests, form.sizes
    verdicts = count_verdicts(problem, form, seed, numbers)
    tables = judge_panel.pair_tables(contests, verdicts, sizes)
    standing = jax.vmap(lambda n, wins: connectivity.standing(n, wins, problem.main_verdicts))(*tables)
    found = rated(standing, terms.ridge).T & problem.moves[: sizes.models, None]
    verdicts, moves = judge_panel.among(contests, verdicts, found, problem.moves, sizes)
    if form.solver == Solver.CHORD:
        alike = jnp.all(moves == problem.moves[:, None], 0)  # other lanes, without verdicts, end at once
        own = Verdicts(*(jnp.where(alike, x, 0.0) for x in verdicts))
        end = judge_panel.chord(contests, own, problem.start, problem.inverse, sizes, terms)
        end = end._replace(status=jnp.where(alike, end.status, Status.STEP_LIMIT).astype(jnp.int8))
    else:
        start, weights = problem.start[:, None], problem.weights
        end = judge_panel.newton(contests, verdicts, start, weights, moves, sizes, terms)
    fitted = moves | (jnp.arange(len(moves)) < sizes.models)[:, None]
    theta = jnp.where(fitted, end.theta, jnp.nan)
    return Refits(theta.T, end.status, end.n_steps, end.grad_norm, standing)


class PoweredProblem(NamedTuple):
    """One slice: what is resampled, and the full-data fit that refits start from."""

    units: resample.Units
    entries: PoweredEntries
    stream: UInt64[Array, ""]  # names the slice's random numbers
    position: Int32[Array, "M M"]  # the pair of (i, j) and (j, i); the last, an empty one, if they never met
    tuning: Tuning
    lam: Float[Array, ""]  # NaN: the best one of each resample
    start: Float[Array, "M"]
    inverse: Float[Array, "M M"]
    information_diagonal: Float[Array, "M"]
    main_battles: Float[Array, "M"]  # full-data battles of the models of its main group, 0 for the others


class PoweredForm(NamedTuple):
    """Static choices, as in `RefitForm`."""

    scheme: resample.DrawScheme
    count_dtype: type  # of a unit's draws
    n_pairs: int
    solver: Solver
    form: Form


@program("form")
def tune(sums: PairSums, form: Form, tuning: Tuning, lam: Real[Array, ""]) -> Powered:
    """`prediction_powered.powered` of the full data, whose ``sums`` are (P, 1)."""
    return prediction_powered.powered(sums, form, tuning, lam)


@program()
def fit_powered(
    n: Float[Array, "M M"],
    points: Float[Array, "M M"],
    standing: Int8[Array, "M"],
    is_model: Bool[Array, "M"],
    terms: Terms,
) -> tuple[Solution, Int8[Array, "M"], Float[Array, "M M"], Float[Array, "M"]]:
    """Newton's method on the full data, whose models (and padding) have that ``standing`` in the graph of who met.

    It also returns the standing of all, the pseudo-inverse of the information, and the diagonal of the information
    itself.
    """
    table, found = _table(n, points, standing, terms)
    active = rated(found, terms.ridge) & is_model
    end = dense_solve.newton(Link.LOGIT, table, active, terms, jnp.zeros(len(n)))
    return end, found, *dense_solve.inverse_information(Link.LOGIT, end.theta, table, terms.ridge, active)


def _table(
    n: Float[Array, "M M"], points: Float[Array, "M M"], standing: Int8[Array, "M"], terms: Terms
) -> tuple[PairTable, Int8[Array, "M"]]:
    """What is fitted, and the standing of all models: with a ridge nobody is left out."""
    less, own, found = prediction_powered.without_optimum(n, points, standing)
    held = terms.ridge > 0
    return PairTable(jnp.where(held, n, less), row_sums(jnp.where(held, points, own))), found


def powered_sums(
    problem: PoweredProblem, form: PoweredForm, seed: Integer[Array, ""], numbers: Integer[Array, "R"]
) -> PairSums:
    """Sums by pair of the resamples ``numbers``."""
    draws = lane_draws.draw(problem.units, form.scheme, form.count_dtype, seed, problem.stream, numbers)
    return prediction_powered.pair_sums(problem.entries, draws, form.n_pairs)


@refit_program
def refit_powered(
    problem: PoweredProblem, form: PoweredForm, seed: Integer[Array, ""], terms: Terms, numbers: Integer[Array, "R"]
) -> Refits:
    """Refit resamples of one slice, as `refit` does; lam and the gain follow the strengths."""
    sums = powered_sums(problem, form, seed, numbers)
    powered = prediction_powered.powered(sums, form.form, problem.tuning, problem.lam)
    on_tables = jax.vmap(partial(_spread, problem))
    shape = problem.position.shape
    if form.solver == Solver.CHORD:
        score = prediction_powered.by_model(
            problem.tuning, powered.points, powered.n - powered.points, len(problem.start)
        )
        (n,) = stored(on_tables, (powered.n.T,), shape)
        refits = jax.vmap(partial(_chord, problem, terms))(n, score.T)
    else:
        n, points = stored(on_tables, (powered.n.T, powered.points.T), shape)
        refits = jax.vmap(partial(_solve, problem, form, terms))(n, points)
    extra = jnp.stack([powered.lam, powered.gain], 1)
    return refits._replace(theta=jnp.concatenate([refits.theta, extra], 1))


def _spread(problem: PoweredProblem, statistics: tuple[Num[Array, "P"], ...]) -> tuple[Num[Array, "M M"], ...]:
    return tuple(x.at[problem.position].get(mode="promise_in_bounds") for x in statistics)


def _chord(problem: PoweredProblem, terms: Terms, n: Float[Array, "M M"], score: Float[Array, "M"]) -> Refits:
    of_link = partial(likelihood.gradient, Link.LOGIT, ridge=terms.ridge)
    end = dense_solve.chord(of_link, PairTable(n, score), problem.start, problem.inverse, terms)
    return Refits(*end, jnp.zeros(len(score), jnp.int8))


def _solve(
    problem: PoweredProblem, form: PoweredForm, terms: Terms, n: Float[Array, "M M"], first: Float[Array, "M M"]
) -> Refits:
    """Refit the models with a finite strength by conjugate gradients or factors.

    ``first`` are the points of each pair's first model.
    """
    i = jnp.arange(len(n))
    own = jnp.where(i[:, None] < i, first, n - first)
    # Models compare as soon as they met: their points may lie outside of what battles can give.
    table, standing = _table(n, own, connectivity.standing(n, n, problem.main_battles), terms)
    active = rated(standing, terms.ridge)
    if form.solver == Solver.NEWTON:
        end = dense_solve.newton(Link.LOGIT, table, active, terms, problem.start)
    else:
        diagonal = problem.information_diagonal
        end = dense_solve.newton_cg(Link.LOGIT, table, problem.start, problem.inverse, diagonal, terms)
    return Refits(*end, standing)
