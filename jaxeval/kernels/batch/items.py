"""Resample items and models: sums of columns, measures of evaluators, and item response models.

Item response models are fitted by marginal maximum likelihood.

A model of ability t solves item i with probability 1 / (1 + exp(-(a_i t + d_i))); abilities are N(0, 1). The items'
parameters maximise the likelihood from which abilities are integrated out, by the EM of Bock and Aitkin
(DOI 10.1007/BF02293801). The integral of each model is a Gauss-Hermite sum around its own posterior (Naylor and Smith,
DOI 10.2307/2347995). A grid that all models share would need a step smaller than the error of an ability, and a
thousand items make that error about a twentieth.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

from jaxeval.kernels import rank_agreement
from jaxeval.kernels.batch.programs import Chunks, over_lanes, program
from jaxeval.kernels.batch.weighted import RowForm, WeighedRows, over_weights
from jaxeval.kernels.kinds import Array, Bool, Float, Int8, Int32, Integer, Mesh, Num
from jaxeval.kernels.links import softplus
from jaxeval.kernels.solve import LONGEST_STEP, Solution, Terms, iterate
from jaxeval.lazy_names import jax, jnp, lax

_LEAST_SLOPE = 0.1  # of a mean, so that shares of it are numbers
_LEAST_KNOWN = 1e-9  # share of what is known of the scale of abilities, of what they would say themselves


class Curves(IntEnum):
    """How the chance to solve an item rises with ability."""

    RASCH = 0
    """All items have one slope."""
    TWO_PARAMETER = 1
    """Every item has a slope of its own, whose share of the mean slope has a normal prior of mean 1."""


class Responses(NamedTuple):
    """Scores of M models on I items."""

    score: Float[Array, "M I"]  # right answers; 0 where missing
    present: Float[Array, "M I"]  # answers; 0 where missing
    is_model: Bool[Array, "M"]  # false for padding
    node: Float[Array, "Q"]  # of the Gauss-Hermite rule for the standard normal distribution
    node_weight: Float[Array, "Q"]  # sums to 1
    prior: Float[Array, ""]  # of slopes, as shares of their mean: one over the variance


class Parameters(NamedTuple):
    """What the iteration moves."""

    mean: Float[Array, "M"]  # of the posterior of each ability
    slope: Float[Array, "I"]
    intercept: Float[Array, "I"]


class Posterior(NamedTuple):
    """What the scores say of abilities, at Q nodes around each."""

    ability: Float[Array, "Q M"]
    share: Float[Array, "Q M"]  # of the posterior at each node; sums to 1 over the nodes
    mean: Float[Array, "M"]
    spread: Float[Array, "M"]  # standard deviation
    log_likelihood: Float[Array, "M"]


def split(theta: Float[Array, "P"], n_models: int) -> Parameters:
    """Return the parameters that ``theta`` concatenates."""
    n_items = (len(theta) - n_models) // 2
    return Parameters(theta[:n_models], theta[n_models : n_models + n_items], theta[n_models + n_items :])


def posterior(responses: Responses, now: Parameters, weight: Num[Array, "I"]) -> Posterior:
    """Return posteriors of abilities given the items, at nodes around ``now.mean``, spaced by the curvature there.

    The posteriors' own standard deviations would not do as spacings: they collapse where the nodes miss the posterior.
    """
    scored, present = responses.score * weight, responses.present * weight
    start, along = _product(scored, now.intercept), _product(scored, now.slope)
    p = jax.nn.sigmoid(now.mean[:, None] * now.slope + now.intercept)
    width = 1 / jnp.sqrt(1 + _product(present * p * (1 - p), now.slope**2))
    z = responses.node[:, None]
    at = now.mean + width * z

    def of_node(ability: Array) -> Array:
        logit = ability[:, None] * now.slope + now.intercept
        return start + along * ability - jnp.sum(present * softplus(logit), axis=1)

    # The rule is for N(now.mean, width^2); what is integrated is the likelihood times N(0, 1).
    log_ratio = (z**2 - at**2) / 2 + jnp.log(width) + jnp.log(responses.node_weight)[:, None]
    log_joint = lax.map(of_node, at) + log_ratio
    total = jax.nn.logsumexp(log_joint, axis=0)
    share = jnp.exp(log_joint - total)
    mean = jnp.sum(share * at, axis=0)
    return Posterior(at, share, mean, jnp.sqrt(jnp.sum(share * (at - mean) ** 2, axis=0)), total)


def _product(matrix: Float[Array, "M I"], vector: Float[Array, "I"]) -> Float[Array, "M"]:
    return jnp.matmul(matrix, vector, precision="highest")


def _item_sums(responses: Responses, now: Parameters, abilities: Posterior) -> tuple[Array, Array]:
    """Sum over the models: expected successes times 1 and t (2, I), and p (1 - p) times 1, t and t^2 (3, I)."""

    def add(sums: tuple[Array, Array], node: tuple[Array, Array]) -> tuple[tuple[Array, Array], None]:
        ability, share = node
        p = jax.nn.sigmoid(ability[:, None] * now.slope + now.intercept)
        expected = responses.present * share[:, None] * p
        powers = jnp.stack([jnp.ones_like(ability), ability, ability**2])
        steep = jnp.matmul(powers, expected * (1 - p), precision="highest")
        return (sums[0] + jnp.matmul(powers[:2], expected, precision="highest"), sums[1] + steep), None

    none = jnp.zeros((2, len(now.slope)), abilities.mean.dtype), jnp.zeros((3, len(now.slope)), abilities.mean.dtype)
    return lax.scan(add, none, (abilities.ability, abilities.share))[0]


def spread_of_slopes(responses: Responses, now: Parameters, weight: Num[Array, "I"]) -> Float[Array, ""]:
    """Return the standard deviation of slopes, as shares of their mean, by moments at a fit ``now`` with one slope.

    An item's score g of its slope, with its intercept projected out, has variance v + s^2 v^2, v its information and
    s^2 the variance of slopes: s^2 = sum(g^2 - v) / sum(v^2). One standard error of equal slopes, sqrt(2 / sum(v^2)),
    is taken off, or all: of few models a spread that is too small costs less than one that is too large.
    """
    abilities = posterior(responses, now, weight)
    (expected, moment), (flat, tilt, bend) = _item_sums(responses, now, abilities)
    powers = jnp.stack([jnp.ones_like(abilities.mean), abilities.mean]) * responses.is_model
    solved, along = jnp.matmul(powers, responses.score, precision="highest")
    share = tilt / jnp.maximum(flat, 1e-12)
    score, information = along - moment - share * (solved - expected), bend - share * tilt
    of_items = jnp.where(weight > 0, jnp.stack([score**2 - information, information**2]), 0.0)
    excess, total = jnp.sum(of_items, axis=1)
    slope = jnp.sum(jnp.where(weight > 0, now.slope, 0.0)) / jnp.sum(weight > 0)
    return jnp.sqrt(jnp.maximum(excess - jnp.sqrt(2 * total), 0.0) / total) / slope


def change(
    responses: Responses, curves: Curves, now: Parameters, weight: Num[Array, "I"]
) -> tuple[Parameters, Float[Array, "_"]]:
    """Take one turn of EM: return the changes of the parameters, and the gradient by those of the items.

    The M step is one step of Newton's method for every item. The level and the scale of the abilities are free within a
    turn, as the prior is of slopes a as shares of their mean: -prior / 2 sum (a / mean(a) - 1)^2. Both are then put
    back to N(0, 1), and the items follow (parameter expansion, Liu, Rubin and Wu 1998, DOI 10.1093/biomet/85.4.755).
    EM by itself does this slowly. Of the scale the scores know the less the more alike models are: the step is divided
    by the share that they know (Louis 1982, DOI 10.1111/j.2517-6161.1982.tb01203.x), as equal models would take
    thousands of turns otherwise. Items of weight 0 stay as they are.
    """
    abilities, is_model = posterior(responses, now, weight), responses.is_model
    mean = abilities.mean
    (expected, moment), (flat, tilt, bend) = _item_sums(responses, now, abilities)
    powers = jnp.stack([jnp.where(is_model, 1.0, 0.0), jnp.where(is_model, mean, 0.0)])
    solved, along = jnp.matmul(powers, responses.score, precision="highest")
    drawn = weight > 0
    level_grad = jnp.where(drawn, solved - expected, 0.0)
    if curves == Curves.TWO_PARAMETER:
        mean_slope = jnp.maximum(jnp.sum(weight * now.slope) / jnp.sum(weight), _LEAST_SLOPE)
        pull = responses.prior / mean_slope**2
        centre = jnp.sum(weight * now.slope**2) / jnp.sum(weight) / mean_slope  # as the mean moves with a slope, too
        slope_grad = jnp.where(drawn, along - moment - pull * (now.slope - centre), 0.0)
        bend = bend + pull
        determinant = jnp.maximum(flat * bend - tilt**2, 1e-12)
        d = (bend * level_grad - tilt * slope_grad) / determinant
        a = (flat * slope_grad - tilt * level_grad) / determinant
    else:
        slope_grad, d, a = jnp.zeros_like(now.slope), level_grad / jnp.maximum(flat, 1e-12), jnp.zeros_like(now.slope)
    shrink = jnp.minimum(1.0, LONGEST_STEP / jnp.maximum(jnp.maximum(jnp.abs(a), jnp.abs(d)), 1e-300))
    slope, intercept = now.slope + shrink * a, now.intercept + shrink * d
    n = jnp.sum(is_model)
    shift = jnp.sum(jnp.where(is_model, mean, 0.0)) / n
    square = (abilities.ability - shift) ** 2
    expected_square = jnp.sum(abilities.share * square, axis=0)
    variance = jnp.sum(abilities.share * (square - expected_square) ** 2, axis=0)
    second, missing = (jnp.sum(jnp.where(is_model, x, 0.0)) / n for x in (expected_square, variance / 2))
    known = jnp.maximum(1 - missing / second**2, _LEAST_KNOWN)
    scale = jnp.exp(jnp.clip(jnp.log(second) / known, -1.0, 1.0) / 2)
    new = Parameters(
        mean=jnp.where(is_model, (mean - shift) / scale, now.mean),
        slope=jnp.where(drawn, slope * scale, now.slope),
        intercept=jnp.where(drawn, intercept + slope * shift, now.intercept),
    )
    return jax.tree.map(lambda x, old: x - old, new, now), jnp.concatenate([level_grad, slope_grad])


def fit(responses: Responses, curves: Curves, start: Parameters, weight: Num[Array, "I"], terms: Terms) -> Solution:
    """Return the maximum, whose ``theta`` is the concatenation of `Parameters`; ``terms.ridge`` is not used."""

    def step(theta: Array) -> tuple[Array, Array]:
        moved, grad = change(responses, curves, split(theta, len(start.mean)), weight)
        return jnp.concatenate(moved), grad

    return iterate(step, jnp.concatenate(start), terms)


class ItemTotals(NamedTuple):
    """Scores item by item, in Q slots of items and E M columns, a row of M for every evaluator."""

    score: Float[Array, "Q columns"]  # 0 where missing
    present: Float[Array, "Q columns"]  # 1, or 0 where missing
    # A power of two. Means are its multiples, so that equal ones are equal whatever the order of a sum.
    step: Float[Array, ""]


def _item_scores(totals: ItemTotals, n_models: int, counts: Num[Array, "R Q"]) -> Float[Array, "R E {n_models}"]:
    """Return mean scores over the items drawn, NaN where a model has none."""
    total, n = (jnp.matmul(counts.astype(jnp.float64), x, precision="highest") for x in totals[:2])
    mean = jnp.round(total / jnp.maximum(n, 1) / totals.step) * totals.step
    return jnp.where(n > 0, mean, jnp.nan).reshape(len(counts), -1, n_models)


@program("measure", "mesh")
def evaluator_resamples(
    measure: Callable[..., Any],
    scores: Float[Array, "E M"] | ItemTotals,
    gold: Float[Array, "M"],
    arguments: tuple[Array | rank_agreement.GapQuestion, ...],
    counts: tuple[Num[Array, "_ _"], ...],
    mesh: Mesh,
    chunks: Chunks,
) -> Any:
    """Return ``measure(scores (E, M), gold (M,), counts (M,), *arguments)`` of resamples.

    ``measure`` is of `rank_agreement`. ``counts`` (L, Q) of all resamples are those of models in Q slots and, for
    scores by item, those of items. What ``measure`` returns gets the leading axes (devices, T, R).
    """

    def chunk(
        numbers: Array, scores: Array | ItemTotals, gold: Array, arguments: tuple[Any, ...], counts: tuple[Array, ...]
    ) -> Any:
        weights = counts[0][numbers, : len(gold)].astype(jnp.float64)
        if isinstance(scores, ItemTotals):
            lanes, along = _item_scores(scores, len(gold), counts[1][numbers]), 0
        else:
            lanes, along = scores, None
        return jax.vmap(lambda x, c: measure(x, gold, c, *arguments), in_axes=(along, 0))(lanes, weights)

    return over_lanes(chunk, mesh, chunks, (scores, gold, arguments, counts))


@program("mesh")
def delta_sums(
    pairs: rank_agreement.DeltaPairs, counts: Num[Array, "_ Q"], mesh: Mesh, chunks: Chunks
) -> rank_agreement.RankedPairs:
    """Sum over pairs of fixed scores in resamples: (devices, T, R, E, D); ``counts`` are of models in all of them."""

    def chunk(numbers: Array, pairs: rank_agreement.DeltaPairs, counts: Array) -> rank_agreement.RankedPairs:
        return rank_agreement.delta_sums_of_draws(counts[numbers], pairs)

    return over_lanes(chunk, mesh, chunks, (pairs, counts))


class Abilities(NamedTuple):
    """Abilities in resamples, with the lanes as leading axes."""

    ability: Float[Array, "... M"]
    status: Int8[Array, "..."]
    n_steps: Int32[Array, "..."]


@program("curves")
def fit_item_response(
    responses: Responses, curves: Curves, start: Parameters, weight: Float[Array, "I"], terms: Terms
) -> tuple[Solution, Posterior, Float[Array, ""]]:
    """Fit all items; return also the posteriors of abilities there, and the spread of slopes if they have one slope."""
    end = fit(responses, curves, start, weight, terms)
    now = split(end.theta, len(start.mean))
    spread = spread_of_slopes(responses, now, weight) if curves == Curves.RASCH else jnp.nan
    return end, posterior(responses, now, weight), jnp.asarray(spread)


@program("curves", "form", "mesh")
def refit_item_response(
    curves: Curves,
    rows: WeighedRows,
    form: RowForm,
    data: tuple[Responses, Parameters, Terms],
    mesh: Mesh,
    seed: Integer[Array, ""],
    chunks: Chunks,
) -> Abilities:
    """Refit to resamples of items, from the fit to all; results have the leading axes (devices, T, R)."""

    def abilities(weights: Array, data: tuple[Responses, Parameters, Terms]) -> Abilities:
        responses, start, terms = data
        end = fit(responses, curves, start, weights.astype(jnp.float64), terms)
        return Abilities(end.theta[: len(start.mean)], end.status, end.n_steps)

    return over_weights(abilities, rows, form, data, mesh, seed, chunks)
