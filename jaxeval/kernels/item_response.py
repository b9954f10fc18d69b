"""Item response models whose items are drawn from a population: one set of models, items and weights of items.

A model of ability t solves item i with probability 1 / (1 + exp(-a_i (t - b_i))). Log-slopes log a_i are N(0, s^2) and
difficulties b_i are N(m, d^2) over the items. The abilities, m and the spreads s and d maximise the likelihood from
which the items are integrated out: there are few models, and items without number, each answered by few. So the slopes
are shrunk to each other as far as the data say, and without any spread (s = 0) the model is Rasch's. Abilities are
N(0, v) over the models, and v is the one at which they and their errors have this variance (Laplace's approximation).

The integral of each item is a Gauss-Hermite sum around its posterior (Naylor and Smith, DOI 10.2307/2347995). Steps are
Newton's, with the information of the observed data (Louis 1982, DOI 10.1111/j.2517-6161.1982.tb01203.x).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxeval.kernels.kinds import Bool, Float, Num
from jaxeval.kernels.solve import Solution, Terms, iterate, solved_and_log_det

#: By which a step may change a parameter: far from the maximum full steps overshoot.
_LONGEST = 0.5
#: Spreads that count at all, and of log-slopes: at the widest the middle 95 % of slopes differ by a factor of 19.
_NARROWEST, _WIDEST = 0.05, 0.75
_COARSE = 100.0  # places of nodes may be less exact than what is estimated with them, by this factor
_INNER = 3  # steps to the peak by difficulty at each log-slope


class Responses(NamedTuple):
    """Scores of M models on I items."""

    score: Float[Array, "M I"]  # right answers; 0 where missing
    present: Float[Array, "M I"]  # answers; 0 where missing
    is_model: Bool[Array, "M"]  # false for padding
    # Gauss-Hermite rules for standard normal distributions: of log-slopes and of difficulties.
    slope_node: Float[Array, "_"]
    log_slope_weight: Float[Array, "_"]
    node: Float[Array, "_"]
    log_weight: Float[Array, "_"]


class Parameters(NamedTuple):
    """What the iteration moves. Log-slopes have mean 0: abilities and difficulties are in units of the mean slope."""

    ability: Float[Array, "M"]
    population: Float[Array, "3"]  # of items: spread of log-slopes, mean and spread of difficulties
    log_scale: Float[Array, "1"]  # log of the standard deviation of abilities
    place: Float[Array, "3 I"]  # of nodes: centre and log width of log-slopes, and the peak of difficulties there


class Estimates(NamedTuple):
    """What the scores say of items, given the parameters, and how well they say it of abilities."""

    slope: Float[Array, "I"]  # means of the posteriors
    difficulty: Float[Array, "I"]
    log_likelihood: Float[Array, "I"]
    spread: Float[Array, "M"]  # standard errors of abilities, about their mean


def split(theta: Float[Array, "P"], n_models: int) -> Parameters:
    """The parameters that ``theta`` concatenates."""
    end = n_models + 4
    place = theta[end:].reshape(3, -1) * _COARSE
    return Parameters(theta[:n_models], theta[n_models : end - 1], theta[end - 1 : end], place)


def _joined(parameters: Parameters) -> Float[Array, "P"]:
    return jnp.concatenate([*parameters[:3], parameters.place.reshape(-1) / _COARSE])


class _Nodes(NamedTuple):
    """Posteriors of items at Q nodes around their modes."""

    at: Float[Array, "Q 2 I"]
    share: Float[Array, "Q I"]  # of the posterior; sums to 1 over the nodes
    log_likelihood: Float[Array, "I"]


class _Sums(NamedTuple):
    """Sums over nodes, with derivatives by the abilities and then by the mean of the difficulties."""

    score: Float[Array, "P I"]  # derivatives of each item's log-likelihood
    product: Float[Array, "P P"]  # what the products of derivatives are on average, summed over the items
    steep: Float[Array, "M"]  # information on each ability, if the items were known
    square: Float[Array, "2 I"]  # of log-slopes and of difficulties, in their prior's deviations
    fourth: Float[Array, "2 I"]  # the squares' squares
    slope: Float[Array, "I"]
    difficulty: Float[Array, "I"]


def _product(left: Array, right: Array) -> Array:
    return jnp.matmul(left, right, precision="highest")


def _curves(ability: Array, population: Array, z: Float[Array, "2 I"]) -> tuple[Array, Array]:
    """Slopes (I,) and logits (M, I) of items at ``z``."""
    slope = jnp.exp(population[0] * z[0])
    return slope, slope * (ability[:, None] - population[1] - population[2] * z[1])


def _residuals(responses: Responses, logit: Float[Array, "M I"]) -> tuple[Array, Array]:
    """Scores less what is expected, and the variances of scores."""
    p = jax.nn.sigmoid(logit)
    return responses.score - responses.present * p, responses.present * p * (1 - p)


def _nodes(responses: Responses, now: Parameters) -> tuple[Float[Array, "3 I"], _Nodes]:
    """Changes of the places of nodes, and the nodes.

    Those of log-slopes lie around the means of the posteriors, as these may have several peaks, and are spaced by the
    posteriors' deviations or the curvature, whichever is more. At each of them those of difficulties lie around the
    peak that the posterior has there.
    """
    slope_spread, _, spread = now.population

    def by_difficulty(z: Array) -> tuple[Array, Array, tuple[Array, ...]]:
        """The step to the peak, the information, which is positive, and what they are made of."""
        slope, logit = _curves(now.ability, now.population, z)
        residual, variance = _residuals(responses, logit)
        shift = -spread * slope
        c = 1 + shift**2 * jnp.sum(variance, 0)
        return (
            jnp.clip((shift * jnp.sum(residual, 0) - z[1]) / c, -1.0, 1.0),
            c,
            (shift, variance, slope_spread * logit),
        )

    centre, log_width, peak = now.place
    step, c, (shift, variance, lean) = by_difficulty(jnp.stack([centre, peak]))
    b = shift * jnp.sum(variance * lean, 0)
    information = 1 + jnp.sum(variance * lean**2, 0) - b**2 / c

    def of_slope(node: Array) -> tuple[Array, Array]:
        away = node * jnp.exp(log_width)
        start = jnp.stack([centre + away, peak - b / c * away])
        z = lax.fori_loop(0, _INNER, lambda _, z: z.at[1].add(by_difficulty(z)[0]), start)
        return z, by_difficulty(z)[1]

    def of_node(z: Array) -> Array:
        logit = _curves(now.ability, now.population, z)[1]
        return jnp.sum(responses.score * logit - responses.present * jax.nn.softplus(logit), 0)

    top, c = lax.map(of_slope, responses.slope_node)
    first, second = jnp.broadcast_arrays(responses.slope_node[:, None], responses.node)
    at = jnp.stack(
        [
            jnp.broadcast_to(top[:, None, 0], (*first.shape, len(peak))),
            top[:, None, 1] + second[..., None] / jnp.sqrt(c)[:, None],
        ],
        2,
    )
    # The rule is for the normal distribution of the nodes; what is integrated is the likelihood times N(0, 1).
    rule = (first**2 + second**2) / 2 + responses.log_slope_weight[:, None] + responses.log_weight
    log_ratio = rule[..., None] - jnp.sum(at**2, 2) / 2 + log_width - jnp.log(c)[:, None] / 2
    at, log_ratio = at.reshape(-1, 2, len(peak)), log_ratio.reshape(-1, len(peak))
    log_joint = lax.map(of_node, at) + log_ratio
    total = jax.nn.logsumexp(log_joint, axis=0)
    share = jnp.exp(log_joint - total)
    mean = jnp.sum(share * at[:, 0], 0)
    width = jnp.maximum(jnp.sum(share * (at[:, 0] - mean) ** 2, 0), 1 / information) ** 0.5
    # Half of the way: full changes may swing back and forth.
    change = jnp.stack([(mean - centre) / 2, (jnp.log(width) - log_width) / 2, step])
    return change, _Nodes(at, share, total)


def _sums(responses: Responses, now: Parameters, nodes: _Nodes, weight: Num[Array, "I"]) -> _Sums:
    def of_node(z: Array, share: Array) -> _Sums:
        slope, logit = _curves(now.ability, now.population, z)
        residual, variance = _residuals(responses, logit)
        score = jnp.concatenate([slope * residual, -slope * jnp.sum(residual, 0, keepdims=True)])
        own = weight * share
        return _Sums(
            share * score,
            _product(score * own, score.T),
            _product(variance, slope**2 * own),
            share * z**2,
            share * z**4,
            share * slope,
            share * (now.population[1] + now.population[2] * z[1]),
        )

    def add(sums: _Sums, node: tuple[Array, Array]) -> tuple[_Sums, None]:
        return jax.tree.map(jnp.add, sums, of_node(*node)), None

    first = of_node(nodes.at[0], nodes.share[0])
    return lax.scan(add, first, (nodes.at[1:], nodes.share[1:]))[0]


def _spreads(now: Parameters, sums: _Sums, weight: Num[Array, "I"], free: Bool[Array, "2"]) -> Float[Array, "2"]:
    """Changes of the spreads of log-slopes and of difficulties: Newton's steps of their logs, each by itself.

    They are steps of EM, lengthened by what the scores leave open, a hundredfold at most: EM alone is slow for few
    models. A spread under `_NARROWEST` ends at 0: without that of slopes the model is Rasch's.
    """
    n = jnp.sum(weight)
    grad = _product(sums.square - 1, weight)
    information = 2 * n - _product(sums.fourth - sums.square**2, weight)
    longer = jnp.exp(jnp.clip(grad / jnp.maximum(information, 0.02 * n), -_LONGEST, _LONGEST))
    spread = now.population[jnp.asarray([0, 2])]
    new = jnp.minimum(spread * longer, jnp.asarray([_WIDEST, jnp.inf]))
    return jnp.where(free, jnp.where(new < _NARROWEST, 0.0, new) - spread, 0.0)


def _change(
    responses: Responses,
    now: Parameters,
    weight: Num[Array, "I"],
    free: Bool[Array, "2"],
    variance: Float[Array, "M"] | None = None,
) -> tuple[Parameters, Float[Array, "P"], Estimates]:
    """One step: the changes, the gradient by abilities and mean difficulty, and what is known here.

    Abilities and mean go by Newton's method, with the observed information (Louis): that of known items less what the
    scores leave open of them. ``variance`` of the abilities, if it is known, spares the inverse.
    """
    n, is_model = len(now.ability), responses.is_model
    moved, nodes = _nodes(responses, now)
    sums = _sums(responses, now, nodes, weight)
    prior = jnp.where(is_model, jnp.exp(-2 * now.log_scale[0]), 0.0)
    grad = _product(sums.score, weight) - jnp.append(prior * now.ability, 0.0)
    # Adding to the mean of the difficulties is subtracting from all abilities. Padding has a unit diagonal.
    diagonal = jnp.append(sums.steep + prior + ~is_model, jnp.sum(sums.steep))
    known = jnp.diag(diagonal).at[n, :n].set(-sums.steep).at[:n, n].set(-sums.steep)
    information = known - (sums.product - _product(sums.score * weight, sums.score.T))
    right = grad[:, None] if variance is not None else jnp.concatenate([jnp.eye(n + 1), grad[:, None]], 1)
    solution, log_det = solved_and_log_det(information, right)
    # Far from the maximum it may be indefinite: go half as far as if the items were known.
    solution = jnp.where(jnp.isfinite(log_det), solution, right / (2 * diagonal[:, None]))
    step = solution[:, -1]
    step = step * jnp.minimum(1.0, _LONGEST / jnp.maximum(jnp.max(jnp.abs(step)), 1e-300))
    if variance is None:
        # The error of the abilities' mean is that of the scale's origin.
        covariance, inside = solution[:n, :n], jnp.where(is_model, 1.0, 0.0) / jnp.sum(is_model)
        along = jnp.matmul(covariance, inside, precision="highest")
        whole = jnp.vdot(inside, along, precision="highest")
        variance = jnp.where(is_model, jnp.diagonal(covariance) - 2 * along + whole, 0.0)
    scale = jnp.sqrt(jnp.sum(jnp.where(is_model, now.ability**2, 0.0) + variance) / jnp.sum(is_model))
    slopes, difficulties = _spreads(now, sums, weight, free)
    population = jnp.stack([slopes, step[n], difficulties])
    change = Parameters(step[:n], population, jnp.log(scale)[None] - now.log_scale, moved)
    return change, grad, Estimates(sums.slope, sums.difficulty, nodes.log_likelihood, jnp.sqrt(variance))


def fit(
    responses: Responses,
    free: Bool[Array, "2"],
    start: Parameters,
    weight: Num[Array, "I"],
    terms: Terms,
    variance: Float[Array, "M"] | None = None,
) -> Solution:
    """The maximum, whose ``theta`` is the concatenation of `Parameters`; ``terms.ridge`` is not used.

    ``free`` says whether the spreads of log-slopes and of difficulties are fitted, or stay, and ``variance`` that of
    the abilities' errors, if it stays too.
    """

    def step(theta: Array) -> tuple[Array, Array]:
        change, grad, _ = _change(responses, split(theta, len(start.ability)), weight, free, variance)
        return _joined(change), grad

    return iterate(step, _joined(start), terms.tolerance, terms.max_steps)


def standardised(responses: Responses, now: Parameters) -> Float[Array, "M"]:
    """Abilities with mean 0 and variance 1, which includes their errors."""
    origin = jnp.sum(jnp.where(responses.is_model, now.ability, 0.0)) / jnp.sum(responses.is_model)
    return jnp.where(responses.is_model, now.ability - origin, 0.0) / jnp.exp(now.log_scale[0])


def estimates(responses: Responses, now: Parameters, weight: Num[Array, "I"]) -> Estimates:
    """Items and the errors of abilities, on the scale of `standardised`."""
    _, _, found = _change(responses, now, weight, jnp.zeros(2, bool))
    scale = jnp.exp(now.log_scale[0])
    origin = jnp.sum(jnp.where(responses.is_model, now.ability, 0.0)) / jnp.sum(responses.is_model)
    return Estimates(
        found.slope * scale, (found.difficulty - origin) / scale, found.log_likelihood, found.spread / scale
    )
