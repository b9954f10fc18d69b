"""Temperature of a judge: the beta of greatest likelihood, where score differences d give targets with mean s(beta d).

This is Eq. 6 of arXiv:2606.13221; s is the logistic function.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from jaxeval.kernels.kinds import Float, Int8, Int32, Num
from jaxeval.kernels.links import Link, bend, log_probability, slope
from jaxeval.kernels.solve import Status, Step, Terms, loop


class TemperatureFit(NamedTuple):
    """Where the likelihood is greatest, and its shape there."""

    beta: Float[Array, "..."]  # 1 / score; +-inf where SEPARABLE, NaN where TOO_FEW
    information: Float[Array, "..."]  # minus the second derivative, score^2
    log_likelihood: Float[Array, "..."]
    status: Int8[Array, "..."]  # a `Status`
    n_steps: Int32[Array, "..."]


def fit(
    level: Float[Array, "L"], n: Float[Array, "L"], wins: Float[Array, "L"], fewest: Num[Array, ""], terms: Terms
) -> TemperatureFit:
    """Newton's method from zero on the score levels.

    ``n`` is the weight of the battles at a level and ``wins`` their weight times target: all that the likelihood
    sees. Its derivative falls in beta, ever more slowly away from 0, so Newton's steps from 0 never overshoot.
    The tolerance is in logits, at the largest |level|. With under ``fewest`` battles off level 0 nothing is fitted.
    """
    used = (n > 0) & (level != 0)
    reach = jnp.max(jnp.where(used, jnp.abs(level), 0.0))
    agree = jnp.sum(jnp.where(used, jnp.where(level > 0, wins, n - wins), 0.0))
    total = jnp.sum(jnp.where(used, n, 0.0))
    separable = (agree <= 0) | (agree >= total)
    too_few = (total <= 0) | (total < fewest)
    losses = n - wins

    def curvature(beta: Array) -> Array:
        return jnp.sum(n * level**2 * bend(Link.LOGIT, beta * level))

    def step(beta: Array, _: Array, memory: tuple[()]) -> Step:
        z = beta * level
        # Either side's tail to full relative precision: wins - n p would lose it where p is nearly 1.
        grad = jnp.sum(level * (wins * slope(Link.LOGIT, z) - losses * slope(Link.LOGIT, -z)))
        information = curvature(beta)
        # Lanes without a maximum do not hold up the others.
        moves = (information > 0) & ~(separable | too_few)
        change = jnp.where(moves, grad / jnp.where(moves, information, 1.0), 0.0)
        # The steps shrink ever faster: each is more than what remains after it.
        return Step(change[None], grad[None], memory, jnp.abs(change) * reach)

    end, _ = loop(step, jnp.zeros(1), (), terms.tolerance, terms.max_steps)
    (beta,) = end.theta
    z = beta * level
    value = jnp.sum(wins * log_probability(Link.LOGIT, z) + losses * log_probability(Link.LOGIT, -z))
    status = jnp.where(separable, Status.SEPARABLE, end.status)
    status = jnp.where(too_few, Status.TOO_FEW, status).astype(jnp.int8)
    estimate = jnp.where(separable, jnp.where(agree > 0, jnp.inf, -jnp.inf), beta)
    estimate = jnp.where(too_few, jnp.nan, estimate)
    n_steps = jnp.where(separable | too_few, 0, end.n_steps)
    return TemperatureFit(estimate, curvature(beta), value, status, n_steps)
