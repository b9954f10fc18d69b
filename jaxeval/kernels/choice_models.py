"""Any model of choices by its log-probabilities: derivatives by JAX, and the maximum for many resamples at once.

A model is a function from parameters (P, R) to the log-probabilities (K, C, R) of what may be chosen on each of C
occasions; data are counts (K, C, R) of what was chosen. Gradient and information follow, unless a model brings faster
ones. Lanes are the last axis.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxeval.kernels.kinds import Bool, Float
from jaxeval.kernels.solve import Solution, Terms, capped, iterate, solved

#: Log-probabilities (K, C, R) by parameters (P, R).
LogProbabilities: TypeAlias = Callable[[Array], Array]
# Every parameter has at least this share of the mean information: it changes the steps and not the solution.
_LEAST = 1e-10


class LaneDerivatives(NamedTuple):
    """Those of each lane's log-likelihood less the ridge, at parameters (P, R)."""

    gradient: Callable[[Array], Array]  # (P, R)
    information: Callable[[Array], Array]  # (R, P, P), expected


def derived(model: LogProbabilities, counts: Float[Array, "K C R"], ridge: Float[Array, "P"]) -> LaneDerivatives:
    """LaneDerivatives by JAX. Lanes do not depend on each other, so that the gradient of their sum has those of all."""

    def value(phi: Array) -> Array:
        log_p = model(phi)
        return jnp.sum(jnp.where(counts != 0, counts * log_p, 0.0)) - jnp.sum(ridge[:, None] * phi**2)

    def information(phi: Array) -> Array:
        log_p, along = jax.linearize(model, phi)
        weight = jnp.exp(log_p) * jnp.sum(counts, 0)
        back = jax.linear_transpose(along, phi)

        def column(k: Array) -> Array:
            unit = jnp.zeros(phi.shape).at[k].set(1.0)
            (product,) = back(weight * along(unit))
            return jnp.asarray(product) + 2 * ridge[:, None] * unit

        return jnp.moveaxis(lax.map(column, jnp.arange(len(phi))), -1, 0)

    return LaneDerivatives(jax.grad(value), information)


def newton(
    of_lanes: LaneDerivatives,
    start: Float[Array, "P #R"],
    moves: Bool[Array, "P R"],
    gauge: Float[Array, "U P"],
    terms: Terms,
) -> Solution:
    """Steps by each lane's own expected information, in all parameters that ``moves``, at once.

    No step goes along the ``gauge``: vectors, at right angles to each other whatever moves, about which the data say
    nothing.
    """
    fixed = _unit(gauge, moves)
    both = moves.T[:, :, None] & moves.T[:, None, :]

    def within(x: Array) -> Array:
        """``x`` (R, P, ...) without its part along the gauge."""
        return x - jnp.einsum("rup,ruq->rpq", fixed, jnp.einsum("rup,rpq->ruq", fixed, x, precision="highest"),
                              precision="highest")  # fmt: skip

    def step(phi: Array) -> tuple[Array, Array]:
        grad = jnp.where(moves, of_lanes.gradient(phi), 0.0)
        matrix = jnp.where(both, of_lanes.information(phi), 0.0)
        # The information has a scale, and the unit vectors of the gauge have none: they get its mean.
        scale = jnp.sum(jnp.diagonal(matrix, axis1=-2, axis2=-1), -1) / jnp.maximum(jnp.sum(moves, 0), 1)
        scale = jnp.where(scale > 0, scale, 1.0)[:, None, None]
        along = jnp.einsum("rup,ruq->rpq", fixed, fixed, precision="highest")
        matrix = within(jnp.swapaxes(within(matrix), -1, -2)) + scale * along
        # The data may say nothing of a parameter at this point, as of a discrimination while all strengths are equal:
        # it waits for the next step.
        matrix += (jnp.where(moves.T, 0.0, 1.0)[..., None] + _LEAST * scale) * jnp.eye(len(phi))
        right = within(grad.T[..., None])[..., 0]
        change = within(solved(matrix, right)[..., None])[..., 0].T
        return capped(jnp.where(moves, change, 0.0)), right.T

    return iterate(step, jnp.broadcast_to(start, moves.shape), terms.tolerance, terms.max_steps)


def _unit(gauge: Float[Array, "U P"], moves: Bool[Array, "P R"]) -> Float[Array, "R U P"]:
    """The vectors of the ``gauge`` among what ``moves``, of length 1."""
    own = gauge[:, :, None] * moves
    return (own / jnp.sqrt(jnp.maximum(jnp.sum(own**2, 1, keepdims=True), 1e-300))).transpose(2, 0, 1)


def chord(
    gradient: Callable[[Array], Array],
    start: Float[Array, "P"],
    inverse: Float[Array, "P P"],
    n_lanes: int,
    terms: Terms,
) -> Solution:
    """Steps by the ``inverse`` of the full data's information, for resamples whose information is not far from it.

    The inverse is taken within the gauge, so that no step leaves it.
    """

    def step(phi: Array) -> tuple[Array, Array]:
        grad = gradient(phi)
        return jnp.matmul(inverse, grad, precision="highest"), grad

    return iterate(step, jnp.broadcast_to(start[:, None], (len(start), n_lanes)), terms.tolerance, terms.max_steps)


def determined(
    information: Float[Array, "R P P"], moves: Bool[Array, "P"], gauge: Float[Array, "U P"], least: float
) -> Bool[Array, "R"]:
    """Whether the data of a lane say something of every direction of what ``moves`` but the ``gauge``.

    The smallest eigenvalue of the information, scaled to a diagonal of 1, must exceed ``least``.
    """
    diagonal = jnp.diagonal(information, axis1=-2, axis2=-1)
    known = jnp.all(~moves | (diagonal > 0), -1)
    root = jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1.0))
    both = moves[:, None] & moves
    scaled = jnp.where(both, information / (root[:, :, None] * root[:, None, :]), 0.0)
    # Scaled, the directions of the gauge are those times the root.
    fixed = gauge * moves * root[:, None, :]
    fixed /= jnp.sqrt(jnp.maximum(jnp.sum(fixed**2, -1, keepdims=True), 1e-300))
    scaled += jnp.einsum("rup,ruq->rpq", fixed, fixed, precision="highest")
    scaled += jnp.where(moves, 0.0, 1.0) * jnp.eye(len(moves))
    eigenvalues = jnp.linalg.eigvalsh(jnp.where(jnp.isfinite(scaled), scaled, 0.0))
    return known & (eigenvalues[:, 0] > least)
