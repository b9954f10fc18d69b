"""The two steps of a fold: anchors without the held-out model, then its strength alone (arXiv:2606.13221)."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from jaxeval.kernels import likelihood, solve
from jaxeval.kernels.pair_tables import row_sums


class HeldOut(NamedTuple):
    """Folds of target maps, leading axes L and F."""

    anchors: Array  # (F, M) log-strengths, 0 for the held-out model
    anchor_status: Array  # (F,) int8
    anchor_steps: Array  # (F,) int32
    score: Array  # (F,) of the held-out model
    anchor_score: Array  # (F, M) scores against anchors alone
    theta: Array  # (F,) log-strength of the held-out model
    status: Array  # (F,) int8


def anchors(
    n: Array,
    score: Array,
    held_out: Array,
    start: Array,
    inverse: Array,
    active: Array,
    ridge: Array,
    tolerance: Array,
    max_steps: int,
) -> solve.Solution:
    """(M,) log-strengths of all models but ``held_out``, mean zero, by chord steps; 0 for the held-out one.

    ``n`` (M, M) holds all battles, those of the held-out model too, and is shared by the folds: its column is taken
    off. ``score`` (M,) is without them. ``inverse`` (M, M) is the pseudo-inverse of the full data's information; cut
    to the anchors it is that of a graph in which the held-out model's battles still tie its opponents together,
    which has all the curvature of the fold and some more: the steps fall short, by the model's share in the battles.
    """
    kept = active & (jnp.arange(len(score)) != held_out)
    n_kept = jnp.maximum(jnp.sum(kept), 1)
    column = n[:, held_out]

    def step(theta: Array) -> tuple[Array, Array]:
        grad = likelihood.gradient(theta, n, score, ridge)
        strength = jnp.exp(theta)
        grad = jnp.where(kept, grad + column * strength / (strength + 1.0), 0.0)  # the held-out model stands at 0
        change = jnp.where(kept, jnp.matmul(inverse, grad, precision="highest"), 0.0)
        return change - jnp.where(kept, jnp.sum(change) / n_kept, 0.0), grad

    first = jnp.where(kept, start - jnp.sum(jnp.where(kept, start, 0.0)) / n_kept, 0.0)
    return solve.iterate(step, first, tolerance, max_steps)


def rating(
    anchor: Array, n: Array, score: Array, start: Array, ridge: Array, tolerance: Array, max_steps: int
) -> solve.Solution:
    """Log-strength () of one model that met the (M,) fixed ``anchor`` strengths ``n`` (M,) times and took ``score`` ().

    Newton's method, its steps capped at 2 logits, on a concave function of one variable.
    """
    e = jnp.exp(anchor)
    n = n.astype(anchor.dtype)

    def step(theta: Array) -> tuple[Array, Array]:
        own = jnp.exp(theta)
        p = own / (own + e)
        expected = n * p
        moments = row_sums(jnp.stack([expected, expected * p]))
        grad = score - moments[0] - 2 * ridge * theta
        information = moments[0] - moments[1] + 2 * ridge
        return jnp.clip(grad / information, -2.0, 2.0), grad

    return solve.iterate(step, start, tolerance, max_steps)


def fold(
    n: Array,
    wins: Array,
    held_out: Array,
    start: Array,
    inverse: Array,
    active: Array,
    ridge: Array,
    tolerance: Array,
    max_steps: int,
) -> HeldOut:
    """Both steps of one fold given the (M, M) tables of all battles."""
    rows = row_sums(wins)
    score = rows - wins[:, held_out]
    found = anchors(n, score, held_out, start, inverse, active, ridge, tolerance, max_steps)
    own = rating(found.theta, n[held_out], rows[held_out], start[held_out], ridge, tolerance, max_steps)
    return HeldOut(found.theta, found.status, found.n_steps, rows[held_out], score, own.theta, own.status)
