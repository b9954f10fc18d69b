"""Panels of judges: strengths, and how far and to which side each judge follows them, for many resamples at once.

A judge k prefers model i, on side A, to model j with probability s(g_k (theta_i - theta_j) + b_k), s being the logistic
function (arXiv:2601.21817; the side biases b are an addition). Parameters are stacked: M strengths, K discriminations
g, K side biases b. The common shift of strengths, and the scale that strengths and discriminations share, stay as in
the start.

Lanes are the last axis.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, nn

from jaxeval.kernels import choice_models
from jaxeval.kernels.additions import added
from jaxeval.kernels.choice_models import LaneDerivatives
from jaxeval.kernels.kinds import Bool, Float, Int32
from jaxeval.kernels.solve import Solution, Terms


class Contests(NamedTuple):
    """C contests, each of a judge and two models on their sides; padding ones have no verdicts."""

    first: Int32[Array, "C"]  # model on side A
    second: Int32[Array, "C"]
    judge: Int32[Array, "C"]


class Verdicts(NamedTuple):
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


def _moments(contests: Contests, verdicts: Verdicts, phi: Float[Array, "P R"], sizes: Sizes) -> _Moments:
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


def _derivatives(contests: Contests, verdicts: Verdicts, sizes: Sizes, terms: Terms) -> LaneDerivatives:
    """Written by hand, which takes a third of the time of those that follow from log-probabilities."""

    def moments(phi: Array) -> _Moments:
        return _moments(contests, verdicts, phi, sizes)

    return LaneDerivatives(
        lambda phi: _gradient(contests, moments(phi), phi, sizes, terms.ridge),
        lambda phi: _information(contests, moments(phi), phi, sizes, terms.ridge),
    )


def newton(
    contests: Contests,
    verdicts: Verdicts,
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
    verdicts: Verdicts,
    start: Float[Array, "P"],
    inverse: Float[Array, "P P"],
    sizes: Sizes,
    terms: Terms,
) -> Solution:
    """`choice_models.chord`."""
    gradient = _derivatives(contests, verdicts, sizes, terms).gradient
    return choice_models.chord(gradient, start, inverse, verdicts.n.shape[1], terms)


def pair_tables(
    contests: Contests, verdicts: Verdicts, sizes: Sizes
) -> tuple[Float[Array, "R M M"], Float[Array, "R M M"]]:
    """Weight of the verdicts on two models, and the points of the row's model, over all judges and both sides."""
    m, (n, points) = sizes.models, verdicts
    there, back = contests.first * m + contests.second, contests.second * m + contests.first
    zero = jnp.zeros((m * m, n.shape[1]))
    tables = added(zero, (there, n), (back, n)), added(zero, (there, points), (back, n - points))
    return tables[0].T.reshape(-1, m, m), tables[1].T.reshape(-1, m, m)


def among(
    contests: Contests, verdicts: Verdicts, rated: Bool[Array, "M R"], moves: Bool[Array, "P"], sizes: Sizes
) -> tuple[Verdicts, Bool[Array, "P R"]]:
    """The verdicts between ``rated`` models, and what moves in each lane: a judge without verdicts does not."""
    used = rated[contests.first] & rated[contests.second]
    own = Verdicts(jnp.where(used, verdicts.n, 0.0), jnp.where(used, verdicts.points, 0.0))
    seen = added(jnp.zeros((sizes.judges, rated.shape[1])), (contests.judge, own.n)) > 0
    return own, moves[:, None] & jnp.concatenate([rated, seen, seen])
