"""Temperature of a judge: maximum of the logistic likelihood y = s(beta d) (Eq. 6 of arXiv:2606.13221)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

# Statuses beyond those of `solve`: no maximum exists, or hardly any battle speaks on beta.
SEPARABLE, TOO_FEW = 3, 4


class Temperature(NamedTuple):
    """Where the likelihood is greatest, and its shape there."""

    beta: Array  # () 1 / score; +-inf where SEPARABLE, NaN where TOO_FEW
    information: Array  # () minus the second derivative, score^2
    log_likelihood: Array  # ()
    status: Array  # () int8
    n_steps: Array  # () int32


def fit(level: Array, n: Array, wins: Array, fewest: Array, tolerance: Array, max_steps: int) -> Temperature:
    """Newton's method from zero on the (L,) score levels.

    ``n`` is the weight of the battles at a level and ``wins`` their weight times target: all that the likelihood
    sees. Its derivative falls in beta, ever more slowly away from 0, so Newton's steps from 0 never overshoot.
    ``tolerance`` is in logits at the largest |level|. Under ``fewest`` battles off level 0 nothing is fitted.
    """
    used = (n > 0) & (level != 0)
    reach = jnp.max(jnp.where(used, jnp.abs(level), 0.0))
    agree = jnp.sum(jnp.where(used, jnp.where(level > 0, wins, n - wins), 0.0))
    total = jnp.sum(jnp.where(used, n, 0.0))
    separable = (agree <= 0) | (agree >= total)
    too_few = (total <= 0) | (total < fewest)

    def information(beta: Array) -> Array:
        return jnp.sum(n * level**2 * jax.nn.sigmoid(beta * level) * jax.nn.sigmoid(-beta * level))

    def more(state: tuple[Array, Array, Array]) -> Array:
        _, size, n_steps = state
        return (size > tolerance) & (n_steps < max_steps)

    def advance(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        beta, _, n_steps = state
        # Either side's tail to full relative precision: wins - n p would lose it where p is nearly 1.
        p, q = jax.nn.sigmoid(beta * level), jax.nn.sigmoid(-beta * level)
        slope = jnp.sum(level * (wins * q - (n - wins) * p))
        curvature = information(beta)
        change = jnp.where(curvature > 0, slope / jnp.where(curvature > 0, curvature, 1.0), 0.0)
        return beta + change, jnp.abs(change) * reach, n_steps + 1

    # Lanes without a maximum do not hold up the others.
    size = jnp.where(separable | too_few, 0.0, jnp.inf)
    beta, size, n_steps = lax.while_loop(more, advance, (jnp.zeros(()), size, jnp.int32(0)))
    curvature = information(beta)
    value = jnp.sum(wins * jax.nn.log_sigmoid(beta * level) + (n - wins) * jax.nn.log_sigmoid(-beta * level))
    status = jnp.where(jnp.isfinite(beta), jnp.where(size <= tolerance, 0, 1), 2)
    status = jnp.where(separable, SEPARABLE, status)
    beta = jnp.where(separable, jnp.where(agree > 0, jnp.inf, -jnp.inf), beta)
    beta = jnp.where(too_few, jnp.nan, beta)
    status = jnp.where(too_few, TOO_FEW, status).astype(jnp.int8)
    return Temperature(beta, curvature, value, status, n_steps)
