"""Item response models by marginal maximum likelihood: one set of models, items and weights of items.

A model of ability t solves item i with probability 1 / (1 + exp(-(a_i t + d_i))); abilities are N(0, 1). The items'
parameters maximise the likelihood from which abilities are integrated out, by the EM of Bock and Aitkin
(DOI 10.1007/BF02293801). The integral of each model is a Gauss-Hermite sum around its own posterior (Naylor and Smith,
DOI 10.2307/2347995). A grid that all models share would need a step smaller than the error of an ability, and a
thousand items make that error about a twentieth.
"""

from enum import IntEnum
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxeval.kernels.kinds import Bool, Float, Num
from jaxeval.kernels.solve import LONGEST_STEP, Solution, Terms, iterate


class Curves(IntEnum):
    """How the chance to solve an item rises with ability."""

    RASCH = 0
    """All items have one slope."""
    TWO_PARAMETER = 1
    """Every item has a slope of its own, with a weak normal prior of mean 1."""


class Responses(NamedTuple):
    """Scores of M models on I items."""

    score: Float[Array, "M I"]  # right answers; 0 where missing
    present: Float[Array, "M I"]  # answers; 0 where missing
    is_model: Bool[Array, "M"]  # false for padding
    node: Float[Array, "Q"]  # of the Gauss-Hermite rule for the standard normal distribution
    node_weight: Float[Array, "Q"]  # sums to 1
    prior: Float[Array, ""]  # of slopes: one over the variance


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
    """The parameters that ``theta`` concatenates."""
    n_items = (len(theta) - n_models) // 2
    return Parameters(theta[:n_models], theta[n_models : n_models + n_items], theta[n_models + n_items :])


def posterior(responses: Responses, now: Parameters, weight: Num[Array, "I"]) -> Posterior:
    """Posteriors of abilities given the items, at nodes around ``now.mean``, spaced by the curvature there.

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
        return start + along * ability - jnp.sum(present * jax.nn.softplus(logit), axis=1)

    # The rule is for N(now.mean, width^2); what is integrated is the likelihood times N(0, 1).
    log_ratio = (z**2 - at**2) / 2 + jnp.log(width) + jnp.log(responses.node_weight)[:, None]
    log_joint = lax.map(of_node, at) + log_ratio
    total = jax.nn.logsumexp(log_joint, axis=0)
    share = jnp.exp(log_joint - total)
    mean = jnp.sum(share * at, axis=0)
    return Posterior(at, share, mean, jnp.sqrt(jnp.sum(share * (at - mean) ** 2, axis=0)), total)


def _product(matrix: Float[Array, "M I"], vector: Float[Array, "I"]) -> Float[Array, "M"]:
    return jnp.matmul(matrix, vector, precision="highest")


def _item_sums(responses: Responses, now: Parameters, own: Posterior) -> tuple[Array, Array]:
    """Sums over the models of expected successes times 1 and t (2, I), and of p (1 - p) times 1, t and t^2 (3, I)."""

    def add(sums: tuple[Array, Array], node: tuple[Array, Array]) -> tuple[tuple[Array, Array], None]:
        ability, share = node
        p = jax.nn.sigmoid(ability[:, None] * now.slope + now.intercept)
        expected = responses.present * share[:, None] * p
        powers = jnp.stack([jnp.ones_like(ability), ability, ability**2])
        steep = jnp.matmul(powers, expected * (1 - p), precision="highest")
        return (sums[0] + jnp.matmul(powers[:2], expected, precision="highest"), sums[1] + steep), None

    none = jnp.zeros((2, len(now.slope)), own.mean.dtype), jnp.zeros((3, len(now.slope)), own.mean.dtype)
    return lax.scan(add, none, (own.ability, own.share))[0]


def change(
    responses: Responses, curves: Curves, now: Parameters, weight: Num[Array, "I"]
) -> tuple[Parameters, Float[Array, "_"]]:
    """One turn of EM: the changes of the parameters, and the gradient by those of the items.

    The M step is one step of Newton's method for every item. The level of the abilities is free within a turn, and so
    is their scale in Rasch's model, whose items share one slope; both are then put back to N(0, 1), and the items
    follow (parameter expansion, Liu, Rubin and Wu 1998, DOI 10.1093/biomet/85.4.755). EM by itself does this slowly.
    Items of weight 0 stay as they are.
    """
    own, is_model = posterior(responses, now, weight), responses.is_model
    mean = own.mean
    (expected, moment), (flat, tilt, bend) = _item_sums(responses, now, own)
    powers = jnp.stack([jnp.where(is_model, 1.0, 0.0), jnp.where(is_model, mean, 0.0)])
    solved, along = jnp.matmul(powers, responses.score, precision="highest")
    drawn = weight > 0
    level_grad = jnp.where(drawn, solved - expected, 0.0)
    if curves == Curves.TWO_PARAMETER:
        slope_grad = jnp.where(drawn, along - moment - responses.prior * (now.slope - 1), 0.0)
        bend = bend + responses.prior
        determinant = jnp.maximum(flat * bend - tilt**2, 1e-12)
        d = (bend * level_grad - tilt * slope_grad) / determinant
        a = (flat * slope_grad - tilt * level_grad) / determinant
    else:
        slope_grad, d, a = jnp.zeros_like(now.slope), level_grad / jnp.maximum(flat, 1e-12), jnp.zeros_like(now.slope)
    shrink = jnp.minimum(1.0, LONGEST_STEP / jnp.maximum(jnp.maximum(jnp.abs(a), jnp.abs(d)), 1e-300))
    slope, intercept = now.slope + shrink * a, now.intercept + shrink * d
    n = jnp.sum(is_model)
    shift = jnp.sum(jnp.where(is_model, mean, 0.0)) / n
    scale = jnp.asarray(1.0)
    if curves == Curves.RASCH:
        scale = jnp.sqrt(jnp.sum(jnp.where(is_model, (mean - shift) ** 2 + own.spread**2, 0.0)) / n)
    new = Parameters(
        mean=jnp.where(is_model, (mean - shift) / scale, now.mean),
        slope=jnp.where(drawn, slope * scale, now.slope),
        intercept=jnp.where(drawn, intercept + slope * shift, now.intercept),
    )
    return jax.tree.map(lambda x, old: x - old, new, now), jnp.concatenate([level_grad, slope_grad])


def fit(responses: Responses, curves: Curves, start: Parameters, weight: Num[Array, "I"], terms: Terms) -> Solution:
    """The maximum, whose ``theta`` is the concatenation of `Parameters`; ``terms.ridge`` is not used."""

    def step(theta: Array) -> tuple[Array, Array]:
        moved, grad = change(responses, curves, split(theta, len(start.mean)), weight)
        return jnp.concatenate(moved), grad

    return iterate(step, jnp.concatenate(start), terms.tolerance, terms.max_steps)
