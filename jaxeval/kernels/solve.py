"""Maximum of the Bradley-Terry likelihood by Newton-like steps; one loop serves every kind of step."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jax import Array, lax

from jaxeval.kernels import likelihood
from jaxeval.kernels.pair_tables import PairTable, row_sums

CONVERGED, STEP_LIMIT, NON_FINITE = 0, 1, 2


class Solution(NamedTuple):
    """Where the iteration ended and how."""

    theta: Array  # (M,) log-strengths
    status: Array  # () int8: CONVERGED, STEP_LIMIT or NON_FINITE
    n_steps: Array  # () int32
    grad_norm: Array  # () largest absolute gradient component before the last step


class _State(NamedTuple):
    theta: Array
    size: Array
    rate: Array
    remaining: Array
    grad_norm: Array
    n_steps: Array


def predict(size: Array, last_size: Array, last_rate: Array, n_steps: Array) -> tuple[Array, Array]:
    """The rate of convergence, and the error predicted to remain after a change of ``size``.

    After a change of size d_k at rate r = d_k / d_(k-1) a linearly convergent iteration is d_k r / (1 - r) from its
    limit; r is the larger of the last two rates, as one lucky step may hide a slow direction.
    """
    rate = jnp.minimum(size / last_size, 0.99)
    worst = jnp.maximum(rate, last_rate)
    # The first change has no rate to go by.
    return rate, jnp.where(n_steps > 0, size * worst / (1 - worst), size)


def iterate(step: Callable[[Array], tuple[Array, Array]], start: Array, tolerance: Array, max_steps: int) -> Solution:
    """Apply ``step`` (theta to (change, gradient)) until the error predicted to remain is under ``tolerance``.

    ``tolerance`` is in logits, for the largest component; see `predict`.
    """

    def more(state: _State) -> Array:
        return (state.remaining > tolerance) & (state.n_steps < max_steps)

    def advance(state: _State) -> _State:
        change, grad = step(state.theta)
        size = jnp.max(jnp.abs(change))
        rate, remaining = predict(size, state.size, state.rate, state.n_steps)
        return _State(state.theta + change, size, rate, remaining, jnp.max(jnp.abs(grad)), state.n_steps + 1)

    infinite = jnp.full((), jnp.inf, start.dtype)
    end = lax.while_loop(
        more, advance, _State(start, infinite, jnp.zeros_like(infinite), infinite, infinite, jnp.int32(0))
    )
    status = jnp.where(end.remaining <= tolerance, CONVERGED, STEP_LIMIT)
    finite = jnp.all(jnp.isfinite(end.theta)) & jnp.isfinite(end.grad_norm)
    status = jnp.where(finite, status, NON_FINITE).astype(jnp.int8)
    return Solution(end.theta, status, end.n_steps, end.grad_norm)


def chord(table: PairTable, start: Array, inverse: Array, ridge: Array, tolerance: Array, max_steps: int) -> Solution:
    """Newton's method with one fixed ``inverse`` (M, M) of the information, that of the full data.

    Batched over resamples, the step is a single matrix product. Diverges where a resample's information is far from
    the full data's.
    """

    def step(theta: Array) -> tuple[Array, Array]:
        grad = likelihood.gradient(theta, table.n, table.score, ridge)
        return jnp.matmul(inverse, grad, precision="highest"), grad

    return iterate(step, start, tolerance, max_steps)


def capped(change: Array) -> Array:
    """``change`` (M, ...) shrunk so that no model's exceeds 2 logits: far from the optimum full steps overshoot."""
    return change * jnp.minimum(1.0, 2.0 / jnp.maximum(jnp.max(jnp.abs(change), 0), 1e-300))


def centred(change: Array, among: Array) -> Array:
    """``change`` (M, ...) without the common shift of the models ``among`` (M, ...) bool, and none for others.

    The optimum has mean zero, by the gauge or by the ridge; rounding must not add up in that direction.
    """
    mean = jnp.sum(jnp.where(among, change, 0.0), 0) / jnp.maximum(jnp.sum(among, 0), 1)
    return jnp.where(among, change - mean, 0.0)


def information(theta: Array, n: Array, ridge: Array, active: Array) -> tuple[Array, Array]:
    """(M, M) negative Hessian over the ``active`` models, made regular in the directions that do not matter; and ().

    Inactive models get a unit diagonal. The common shift of the active ones, which the likelihood does not see, gets
    along its unit vector (in place of that of the ridge) the mean curvature of the models, which is returned too: the
    inverse then leaves it alone, and battles of any weight leave it well conditioned.
    """
    v = likelihood.curvature(theta, n)
    own = jnp.where(active, jnp.sum(v, 1) + 2 * ridge, 0.0)
    n_active = jnp.maximum(jnp.sum(active), 1)
    mean = jnp.sum(own) / n_active
    mean = jnp.where(mean > 0, mean, 1.0)
    shift = (mean - 2 * ridge) / n_active * (active[:, None] & active)
    return jnp.diag(jnp.where(active, own, 1.0)) - v + shift, mean


def newton(
    table: PairTable, active: Array, ridge: Array, tolerance: Array, max_steps: int, start: Array | None = None
) -> Solution:
    """Newton's method from ``start``, or from each model's own score.

    ``table`` holds no battles of inactive models: theta stays 0.
    """
    if start is None:
        battles = row_sums(table.n).astype(table.score.dtype)
        start = jnp.log((table.score + 1) / (battles - table.score + 1))
    start = centred(start, active)

    def step(theta: Array) -> tuple[Array, Array]:
        grad = likelihood.gradient(theta, table.n, table.score, ridge)
        factor = jsl.cho_factor(information(theta, table.n, ridge, active)[0])
        return capped(centred(jsl.cho_solve(factor, grad), active)), grad

    return iterate(step, start, tolerance, max_steps)


def inverse_information(theta: Array, n: Array, ridge: Array, active: Array) -> Array:
    """(M, M) pseudo-inverse of the information: 0 for inactive models and in the common shift of the active ones.

    It is the model-based covariance of the estimate in the mean-zero gauge.
    """
    matrix, shift = information(theta, n, ridge, active)
    inverse = jsl.cho_solve(jsl.cho_factor(matrix), jnp.eye(len(active), dtype=n.dtype))
    n_active = jnp.maximum(jnp.sum(active), 1)
    return jnp.where(active[:, None] & active, inverse - 1.0 / (shift * n_active), 0.0)


def newton_cg(
    table: PairTable,
    start: Array,
    inverse: Array,
    information_diagonal: Array,
    ridge: Array,
    tolerance: Array,
    max_steps: int,
) -> Solution:
    """Newton's method with the steps found by preconditioned conjugate gradients: for resamples of sparse boards.

    A model with a handful of battles has, in a resample, an information far from the full data's. The preconditioner
    D^-1/2 (D0^1/2 inverse D0^1/2) D^-1/2 corrects for that: D is the resample's own diagonal, D0 =
    ``information_diagonal`` and ``inverse`` belong to the full data.
    """
    root = jnp.sqrt(information_diagonal)
    scaled_inverse = root[:, None] * inverse * root
    inner_steps = 4
    shift_inverse = jnp.where(ridge > 0, 1 / (2 * len(start) * jnp.where(ridge > 0, ridge, 1.0)), 0.0)
    rounding = 100 * jnp.finfo(start.dtype).eps

    def step(theta: Array) -> tuple[Array, Array]:
        grad = likelihood.gradient(theta, table.n, table.score, ridge)
        v = likelihood.curvature(theta, table.n)
        diagonal = row_sums(v) + 2 * ridge
        scale = jnp.where(diagonal > 0, 1 / jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1.0)), 0.0)

        def precondition(r: Array) -> Array:
            # The full data's inverse is blind to models that it could not rate; their own curvature stands in.
            own = jnp.where(information_diagonal > 0, 0.0, scale * r)
            z = scale * (jnp.matmul(scaled_inverse, scale * r, precision="highest") + own)
            # It is blind to the common shift too, where only the ridge has curvature.
            return z + jnp.sum(r) * shift_inverse

        def inner(_: int, state: tuple[Array, ...]) -> tuple[Array, ...]:
            x, r, p, rz = state
            hp = diagonal * p - jnp.matmul(v, p, precision="highest")
            curvature, scale_of_it = jnp.vdot(p, hp), jnp.vdot(p, diagonal * p)
            # Once solved, rounding noise is left, part of it in the common shift where there is no curvature.
            go_on = (rz > rounding * rz_start) & (curvature > rounding * scale_of_it)
            alpha = jnp.where(go_on, rz / jnp.where(go_on, curvature, 1.0), 0.0)
            x, r = x + alpha * p, r - alpha * hp
            z = precondition(r)
            rz_next = jnp.where(go_on, jnp.vdot(r, z), 0.0)
            return x, r, z + jnp.where(go_on, rz_next / jnp.where(go_on, rz, 1.0), 0.0) * p, rz_next

        z = precondition(grad)
        rz_start = jnp.vdot(grad, z)
        x, *_ = lax.fori_loop(0, inner_steps, inner, (jnp.zeros_like(grad), grad, z, rz_start))
        return capped(x), grad

    return iterate(step, start, tolerance, max_steps)
