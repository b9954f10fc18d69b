"""Panels of judges: strengths, and how far and to which side each judge follows them, for many resamples at once.

A judge k prefers model i, on side A, to model j with probability s(g_k (theta_i - theta_j) + b_k), s being the logistic
function (arXiv:2601.21817; the side biases b are an addition). Parameters are stacked: M strengths, K discriminations
g, K side biases b. The common shift of strengths, and the scale that strengths and discriminations share, stay as in
the start.

Lanes are the last axis.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, nn

from jaxeval.kernels import connectivity, lane_draws, resample
from jaxeval.kernels.batch import choice_models
from jaxeval.kernels.batch.choice_models import LaneDerivatives
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.batch.refits import LaneForm, Refits, Solver, lane_draws_of, rated, refit_program
from jaxeval.kernels.kinds import Bool, Float, Int32, Integer, UInt64
from jaxeval.kernels.platforms import added
from jaxeval.kernels.solve import Solution, Status, Terms


class Contests(NamedTuple):
    """C contests, each of a judge and two models on their sides; padding ones have no verdicts."""

    first: Int32[Array, "C"]  # model on side A
    second: Int32[Array, "C"]
    judge: Int32[Array, "C"]


class ContestVerdicts(NamedTuple):
    """What the verdicts of each contest say."""

    n: Float[Array, "C *R"]  # their weight
    points: Float[Array, "C *R"]  # of side A


class Sizes(NamedTuple):
    """Numbers of models and judges, with padding. Static."""

    models: int
    judges: int


class _Moments(NamedTuple):
    """Derivatives of each contest's log-likelihood by its linear predictor, and the parts of the predictor."""

    difference: Float[Array, "C R"]  # of the strengths
    discrimination: Float[Array, "C R"]
    residual: Float[Array, "C R"]  # points less expected points
    information: Float[Array, "C R"]


def _moments(contests: Contests, verdicts: ContestVerdicts, phi: Float[Array, "P R"], sizes: Sizes) -> _Moments:
    theta, g, b = jnp.split(phi, [sizes.models, sizes.models + sizes.judges])
    difference = theta[contests.first] - theta[contests.second]
    discrimination = g[contests.judge]
    p = nn.sigmoid(discrimination * difference + b[contests.judge])
    return _Moments(difference, discrimination, verdicts.points - verdicts.n * p, verdicts.n * p * (1 - p))


def _places(contests: Contests, sizes: Sizes) -> tuple[Array, ...]:
    """Rows of the parameters that a contest depends on: two strengths, a discrimination, a side bias."""
    g = sizes.models + contests.judge
    return contests.first, contests.second, g, g + sizes.judges


def _gradient(
    contests: Contests, at: _Moments, phi: Float[Array, "P R"], sizes: Sizes, ridge: Float[Array, ""]
) -> Float[Array, "P R"]:
    """Derivatives of the log-likelihood less ridge ||theta||^2."""
    first, second, g, b = _places(contests, sizes)
    of_strength = at.discrimination * at.residual
    parts = (first, of_strength), (second, -of_strength), (g, at.difference * at.residual), (b, at.residual)
    return added(jnp.zeros(phi.shape), *parts).at[: sizes.models].add(-2 * ridge * phi[: sizes.models])


def _information(
    contests: Contests, at: _Moments, phi: Float[Array, "P R"], sizes: Sizes, ridge: Float[Array, ""]
) -> Float[Array, "R P P"]:
    """The expected information, that of the ridge included."""
    places, p = _places(contests, sizes), len(phi)
    slopes = at.discrimination, -at.discrimination, at.difference, jnp.ones_like(at.difference)
    parts = [
        (places[j] * p + places[k], at.information * slopes[j] * slopes[k]) for j in range(4) for k in range(j + 1)
    ]
    half = added(jnp.zeros((p * p, phi.shape[1])), *parts).T.reshape(-1, p, p)
    diagonal = jnp.diagonal(half, axis1=-2, axis2=-1)
    own = jnp.where(jnp.arange(p) < sizes.models, 2 * ridge, 0.0) - diagonal
    return half + jnp.swapaxes(half, -1, -2) + own[..., None] * jnp.eye(p)


def _derivatives(contests: Contests, verdicts: ContestVerdicts, sizes: Sizes, terms: Terms) -> LaneDerivatives:
    """Written by hand, which takes a third of the time of those that follow from log-probabilities."""

    def moments(phi: Array) -> _Moments:
        return _moments(contests, verdicts, phi, sizes)

    return LaneDerivatives(
        lambda phi: _gradient(contests, moments(phi), phi, sizes, terms.ridge),
        lambda phi: _information(contests, moments(phi), phi, sizes, terms.ridge),
    )


def newton(
    contests: Contests,
    verdicts: ContestVerdicts,
    start: Float[Array, "P #R"],
    weights: Float[Array, "K"],
    moves: Bool[Array, "P R"],
    sizes: Sizes,
    terms: Terms,
) -> Solution:
    """`choice_models.newton`, which holds the mean of the strengths, and of the discriminations by ``weights``.

    ``verdicts`` are those between models that move, of judges that move. Alternating between strengths and judges would
    take many more steps, because they depend on each other.
    """
    gauge = jnp.zeros((2, len(moves))).at[0, : sizes.models].set(1.0)
    gauge = gauge.at[1, sizes.models : sizes.models + sizes.judges].set(weights)
    return choice_models.newton(_derivatives(contests, verdicts, sizes, terms), start, moves, gauge, terms)


def chord(
    contests: Contests,
    verdicts: ContestVerdicts,
    start: Float[Array, "P"],
    inverse: Float[Array, "P P"],
    sizes: Sizes,
    terms: Terms,
) -> Solution:
    """`choice_models.chord`."""
    gradient = _derivatives(contests, verdicts, sizes, terms).gradient
    return choice_models.chord(gradient, start, inverse, verdicts.n.shape[1], terms)


def win_tables(contests: Contests, verdicts: ContestVerdicts, sizes: Sizes) -> Float[Array, "R M M"]:
    """Return the points of the row's model against the column's, over all judges and both sides."""
    m, (n, points) = sizes.models, verdicts
    there, back = contests.first * m + contests.second, contests.second * m + contests.first
    table = added(jnp.zeros((m * m, n.shape[1])), (there, points), (back, n - points))
    return table.T.reshape(-1, m, m)


def among(
    contests: Contests, verdicts: ContestVerdicts, rated: Bool[Array, "M R"], moves: Bool[Array, "P"], sizes: Sizes
) -> tuple[ContestVerdicts, Bool[Array, "P R"]]:
    """The verdicts between ``rated`` models, and what moves in each lane: a judge without verdicts does not."""
    used = rated[contests.first] & rated[contests.second]
    own = ContestVerdicts(jnp.where(used, verdicts.n, 0.0), jnp.where(used, verdicts.points, 0.0))
    seen = added(jnp.zeros((sizes.judges, rated.shape[1])), (contests.judge, own.n)) > 0
    return own, moves[:, None] & jnp.concatenate([rated, seen, seen])


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


@program("sizes")
def fit_panel(
    contests: Contests,
    verdicts: ContestVerdicts,
    start: Float[Array, "P"],
    weights: Float[Array, "K"],
    moves: Bool[Array, "P"],
    sizes: Sizes,
    terms: Terms,
) -> Solution:
    """The fit of the full data, whose ``verdicts`` are (C, 1)."""
    end = newton(contests, verdicts, start[:, None], weights, moves[:, None], sizes, terms)
    return jax.tree.map(lambda x: x[..., 0], end)


def count_verdicts(
    problem: PanelProblem, form: LaneForm, seed: Integer[Array, ""], numbers: Integer[Array, "R"]
) -> ContestVerdicts:
    """Verdicts of the resamples ``numbers``."""
    draws = lane_draws_of(problem, form, seed, numbers)
    own, n_contests = problem.entries, len(problem.contests.first)
    n, points = lane_draws.sums(draws, own.unit, own.contest, n_contests, (own.weight, own.weight * own.target))
    return ContestVerdicts(n, points)


@refit_program
def refit_panels(
    problem: PanelProblem, form: LaneForm, seed: Integer[Array, ""], terms: Terms, numbers: Integer[Array, "R"]
) -> Refits:
    """Refit resamples of one slice, as `refit` does; every solver looks for separated models first.

    Parameters of a judge that are not fitted are NaN. Chord steps leave out resamples in which other parameters move
    than in the full data.
    """
    contests, sizes = problem.contests, form.model
    verdicts = count_verdicts(problem, form, seed, numbers)
    wins = win_tables(contests, verdicts, sizes)
    standing = jax.vmap(lambda wins: connectivity.standing(wins, problem.main_verdicts))(wins)
    found = rated(standing, terms.ridge).T & problem.moves[: sizes.models, None]
    verdicts, moves = among(contests, verdicts, found, problem.moves, sizes)
    if form.solver == Solver.CHORD:
        alike = jnp.all(moves == problem.moves[:, None], 0)  # other lanes, without verdicts, end at once
        own = ContestVerdicts(*(jnp.where(alike, x, 0.0) for x in verdicts))
        end = chord(contests, own, problem.start, problem.inverse, sizes, terms)
        end = end._replace(status=jnp.where(alike, end.status, Status.STEP_LIMIT).astype(jnp.int8))
    else:
        start, weights = problem.start[:, None], problem.weights
        end = newton(contests, verdicts, start, weights, moves, sizes, terms)
    fitted = moves | (jnp.arange(len(moves)) < sizes.models)[:, None]
    theta = jnp.where(fitted, end.theta, jnp.nan)
    return Refits(theta.T, end.status, end.n_steps, end.grad_norm, standing)
