"""The maximum of the likelihood with covariates and tie models, for many resamples at once: three kinds of steps."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jax import Array, lax

from jaxeval.kernels import tie_models
from jaxeval.kernels.battle_rows import (
    Rows,
    add_diagonal,
    add_score,
    derivatives,
    over_blocks,
    predictor,
    weighted,
)
from jaxeval.kernels.solve import CONVERGED, NON_FINITE, STEP_LIMIT

_CAP = 2.0  # logits a Newton step may change a parameter by: far from the optimum full steps overshoot


# Of t where there are no ties: a probability of ties under 1e-20, and still numbers to work with.
NO_TIES = {tie_models.HALF: 0.0, tie_models.DAVIDSON: -50.0, tie_models.RAO_KUPPER: 1e-20}


class Solution(NamedTuple):
    """Where the iteration of each lane ended and how."""

    phi: Array  # (P, R)
    status: Array  # (R,) int8
    n_steps: Array  # (R,) int32
    grad_norm: Array  # (R,) largest absolute gradient component before the last step


class Base(NamedTuple):
    """What rows have at the full data's estimate, from which chord steps depart."""

    z: Array  # (T, E, G)
    score: tie_models.Score  # (T, E, G)
    phi: Array  # (P,)
    inverse: Array  # (P, P) pseudo-inverse of the full data's information
    diagonal: Array  # (P,) of that information


def at_estimate(model: int, rows: Rows, phi: Array, n_models: int, inverse: Array, diagonal: Array) -> Base:
    """The rows at ``phi`` (P,)."""
    z = phi[rows.first] - phi[rows.second]
    z = z[..., None] + jnp.sum(rows.feature * phi[n_models:-1], -1)
    return Base(z, tie_models.score(model, rows.target, z, phi[-1]), phi, inverse, diagonal)


def _iterate(
    step: Callable[[Array], tuple[Array, Array, Any]], start: Array, tolerance: Array, max_steps: int, found: Any = ()
) -> tuple[Solution, Any]:
    """As `solve.iterate`, for the lanes (P, R) together: a lane that has converged stays, whatever the others do.

    What ``step`` has ``found`` besides the change and the gradient is kept from the last step.
    """

    def go_on(state: Any) -> Array:
        return (state[3] > tolerance) & (state[5] < max_steps)

    def advance(state: Any) -> Any:
        phi, size, rate, _, _, n_steps, _ = state
        change, grad, found = step(phi)
        new_size = jnp.max(jnp.abs(change), 0)
        new_rate = jnp.minimum(new_size / size, 0.99)
        worst = jnp.maximum(new_rate, rate)
        remaining = jnp.where(n_steps > 0, new_size * worst / (1 - worst), new_size)
        new = phi + change, new_size, new_rate, remaining, jnp.max(jnp.abs(grad), 0), n_steps + 1
        going = go_on(state)
        return *(jnp.where(going, x, y) for x, y in zip(new, state[:-1], strict=True)), found

    infinite = jnp.full(start.shape[1], jnp.inf)
    first = start, infinite, jnp.zeros_like(infinite), infinite, infinite, jnp.zeros(start.shape[1], jnp.int32), found
    phi, _, _, remaining, grad_norm, n_steps, found = lax.while_loop(lambda s: jnp.any(go_on(s)), advance, first)
    finite = jnp.all(jnp.isfinite(phi), 0) & jnp.isfinite(grad_norm)
    status = jnp.where(remaining <= tolerance, CONVERGED, STEP_LIMIT)
    return Solution(phi, jnp.where(finite, status, NON_FINITE).astype(jnp.int8), n_steps, grad_norm), found


def chord(model: int, rows: Rows, base: Base, count: Array, ridge: Array, tolerance: Array, max_steps: int) -> Solution:
    """Steps by the full data's information, shared by all lanes, for resamples whose information is not far from it.

    The gradient is that of the resample at the full data's estimate, plus what has changed since. The change is small,
    so that where ties are half a win single precision gives it to 1e-9 of a battle, at a third of the cost.
    """
    n_lanes = count.shape[-1]
    n_models = len(base.phi) - rows.feature.shape[-1] - 1
    half = model == tie_models.HALF

    def add_base(block: Rows, t: Array, total: Array) -> Array:
        weight = count[t] * block.factor[..., None]
        of_t = None if half else weight * base.score.t[t][..., None]
        return add_score(block, total, weight * base.score.z[t][..., None], of_t, n_models)

    zero = jnp.zeros((len(base.phi), n_lanes))
    at_base = over_blocks(rows, add_base, zero) - 2 * ridge[:, None] * base.phi[:, None]
    if half:
        p = tie_models.expected(model, base.z, base.phi[-1])
        slope, skew = (2 * p * (1 - p) * rows.factor).astype(jnp.float32), (2 * p - 1).astype(jnp.float32)
        single = rows._replace(feature=rows.feature.astype(jnp.float32))

    def change_of_score(moved: Array) -> Array:
        def add_half(block: Rows, t: Array, total: Array) -> Array:
            # s(z + d) - s(z) = 2 s(z) s(-z) T / (1 + (2 s(z) - 1) T) with T = tanh(d / 2): no digits cancel.
            tangent = jnp.tanh(predictor(block, moved.astype(jnp.float32) / 2, n_models))
            drop = slope[t][..., None] * tangent / (1 + skew[t][..., None] * tangent)
            return add_score(block, total, -drop * count[t].astype(jnp.float32), None, n_models)

        def add_any(block: Rows, t: Array, total: Array) -> Array:
            z = base.z[t][..., None] + predictor(block, moved, n_models)
            new = tie_models.score(model, block.target[..., None], z, base.phi[-1] + moved[-1])
            weight = count[t] * block.factor[..., None]
            of_z, of_t = (weight * (x - y[t][..., None]) for x, y in zip(new, base.score, strict=True))
            return add_score(block, total, of_z, of_t, n_models)

        return over_blocks(single, add_half, zero) if half else over_blocks(rows, add_any, zero)

    def step(moved: Array) -> tuple[Array, Array, Any]:
        grad = at_base + change_of_score(moved) - 2 * ridge[:, None] * moved
        return jnp.matmul(base.inverse, grad, precision="highest"), grad, ()

    end, _ = _iterate(step, zero, tolerance, max_steps)
    return end._replace(phi=base.phi[:, None] + end.phi)


def alive(model: int, rows: Rows, count: Array, active: Array, free: Array) -> Array:
    """(P, R) parameters that move: those of ``active`` (M, R) models, and the ``free`` (D + 1,) others.

    In a lane without ties t is at its limit, and does not move either. ``count`` is that `among` active models.
    """

    def add(block: Rows, t: Array, total: Array) -> Array:
        tied = block.factor * (block.target == 0.5)
        return total + jnp.einsum("egr,eg->r", count[t].astype(jnp.float64), tied, precision="highest")

    others = jnp.broadcast_to(free[:, None], (len(free), active.shape[1]))
    if model != tie_models.HALF:
        n_ties = over_blocks(rows, add, jnp.zeros(active.shape[1]))
        others = others.at[-1].set(free[-1] & (n_ties > 0))
    return jnp.concatenate([active, others])


def _at_limit(model: int, phi: Array, moves: Array) -> Array:
    """``phi`` (P, R) with t at its limit where it does not move."""
    return phi.at[-1].set(jnp.where(moves[-1], phi[-1], NO_TIES[model]))


def newton(
    model: int,
    rows: Rows,
    start: Array,
    count: Array,
    moves: Array,
    ridge: Array,
    tolerance: Array,
    max_steps: int,
) -> tuple[Solution, Array]:
    """Newton's method by each lane's own information, from ``start`` (P, R), of the parameters that ``moves`` (P, R).

    ``count`` is that `among` models that move. Also the information (R, P, P) of the last step, that of the solution
    up to the tolerance.
    """
    n_models, n_lanes = len(ridge) - rows.feature.shape[-1] - 1, start.shape[1]
    active = moves[:n_models]

    def step(phi: Array) -> tuple[Array, Array, Array]:
        grad, matrix = derivatives(model, rows, phi, count, moves, ridge)
        change = jsl.cho_solve(jsl.cho_factor(matrix), grad.T[..., None])[..., 0].T
        strengths = change[:n_models]
        mean = jnp.sum(jnp.where(active, strengths, 0.0), 0) / jnp.maximum(jnp.sum(active, 0), 1)
        change = change.at[:n_models].set(jnp.where(active, strengths - mean, 0.0))
        return _damped(model, phi, change), grad, matrix

    matrix = jnp.zeros((n_lanes, len(ridge), len(ridge)))
    return _iterate(step, _at_limit(model, start, moves), tolerance, max_steps, matrix)


def _damped(model: int, phi: Array, change: Array) -> Array:
    """``change`` (P, R) of each lane, shrunk where it exceeds 2 logits; a threshold t stays positive."""
    change = change * jnp.minimum(1.0, _CAP / jnp.maximum(jnp.max(jnp.abs(change), 0), 1e-300))
    return change.at[-1].max(-0.75 * phi[-1]) if model == tie_models.RAO_KUPPER else change


def _preconditioner(base: Base, moves: Array, diagonal: Array, ridge: Array, n_models: int) -> Callable[[Array], Array]:
    """What takes (P, R) gradients to steps, given the ``diagonal`` (P, R) of each lane's information.

    D^-1/2 (D0^1/2 inverse D0^1/2) D^-1/2: how parameters hang together is taken from the full data, of which D0 is the
    diagonal, and how much is known of each one from the lane, where a model with few battles may have none or twice
    as many.
    """
    known = base.diagonal > 0
    root = jnp.sqrt(base.diagonal)
    scaled_inverse = root[:, None] * base.inverse * root
    scale = jnp.where(diagonal > 0, 1 / jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1.0)), 0.0)
    # Only the ridge has curvature along the common shift, to which the full data's inverse is blind.
    shift_inverse = jnp.where(ridge[0] > 0, 1 / (2 * n_models * jnp.where(ridge[0] > 0, ridge[0], 1.0)), 0.0)

    def apply(r: Array) -> Array:
        # It is blind, too, to models that the full data could not rate: their own curvature stands in.
        own = jnp.where(known[:, None], 0.0, scale * r)
        z = scale * (jnp.matmul(scaled_inverse, scale * r, precision="highest") + own)
        return jnp.where(moves, z.at[:n_models].add(jnp.sum(r[:n_models], 0) * shift_inverse), 0.0)

    return apply


def scaled_chord(
    model: int, rows: Rows, base: Base, count: Array, moves: Array, ridge: Array, tolerance: Array, max_steps: int
) -> Solution:
    """Chord steps scaled to each lane's own curvature: for boards on which some models have few battles.

    One pass over the rows a step, in double precision; ``count`` is that `among` models that move.
    """
    n_models, n_lanes = len(ridge) - rows.feature.shape[-1] - 1, moves.shape[1]

    def step(phi: Array) -> tuple[Array, Array, Any]:
        def add(block: Rows, t: Array, total: tuple[Array, Array]) -> tuple[Array, Array]:
            score, information = weighted(model, block, phi, count[t], n_models)
            grad = add_score(block, total[0], score.z, score.t, n_models)
            return grad, add_diagonal(block, total[1], information, n_models)

        zero = jnp.zeros(phi.shape)
        grad, diagonal = over_blocks(rows, add, (zero, zero))
        grad, diagonal = _with_ridge(phi, grad, diagonal, moves, ridge)
        return _damped(model, phi, _preconditioner(base, moves, diagonal, ridge, n_models)(grad)), grad, ()

    start = jnp.broadcast_to(base.phi[:, None], (len(base.phi), n_lanes))
    return _iterate(step, _at_limit(model, start, moves), tolerance, max_steps)[0]


def _with_ridge(phi: Array, grad: Array, diagonal: Array, moves: Array, ridge: Array) -> tuple[Array, Array]:
    """Gradient and diagonal of what moves, those of the ridge included."""
    grad, diagonal = grad - 2 * ridge[:, None] * phi, diagonal + 2 * ridge[:, None]
    return jnp.where(moves, grad, 0.0), jnp.where(moves, diagonal, 0.0)


def newton_cg(
    model: int, rows: Rows, base: Base, count: Array, moves: Array, ridge: Array, tolerance: Array, max_steps: int
) -> Solution:
    """Newton's method with steps by preconditioned conjugate gradients: for resamples of sparse boards.

    As `solve.newton_cg`, with products by the information found in a pass over the rows: on wide boards far cheaper
    than an (M, M) table for every lane. ``count`` is that `among` models that move.
    """
    n_models, n_lanes = len(ridge) - rows.feature.shape[-1] - 1, moves.shape[1]
    inner_steps = 4
    rounding = 100 * jnp.finfo(jnp.float64).eps

    def curvature(phi: Array) -> tuple[Array, Array, tie_models.Information]:
        """Gradient and diagonal (P, R), and the information of every row, of t in sum (R,)."""

        def add(block: Rows, t: Array, total: tuple[Array, ...]) -> tuple[Array, ...]:
            grad, diagonal, zz, zt, tt = total
            score, information = weighted(model, block, phi, count[t], n_models)
            grad = add_score(block, grad, score.z, score.t, n_models)
            diagonal = add_diagonal(block, diagonal, information, n_models)
            zt = zt if model == tie_models.HALF else zt.at[t].set(information.zt)
            return grad, diagonal, zz.at[t].set(information.zz), zt, tt + jnp.sum(information.tt, (0, 1))

        by_row = jnp.zeros((*rows.target.shape, n_lanes))
        of_ties = jnp.zeros((1, 1, 1, 1)) if model == tie_models.HALF else by_row
        zero = jnp.zeros(phi.shape), jnp.zeros(phi.shape), by_row, of_ties, jnp.zeros(n_lanes)
        grad, diagonal, zz, zt, tt = over_blocks(rows, add, zero)
        return *_with_ridge(phi, grad, diagonal, moves, ridge), tie_models.Information(zz, zt, tt)

    def product(of_rows: tie_models.Information, p: Array) -> Array:
        def add(block: Rows, t: Array, total: Array) -> Array:
            z = predictor(block, p, n_models)
            along = of_rows.zz[t] * z
            if model == tie_models.HALF:
                return add_score(block, total, along, None, n_models)
            return add_score(block, total, along + of_rows.zt[t] * p[-1], of_rows.zt[t] * z, n_models)

        found = over_blocks(rows, add, jnp.zeros(p.shape)) + 2 * ridge[:, None] * p
        return jnp.where(moves, found.at[-1].add(of_rows.tt * p[-1]), 0.0)

    def step(phi: Array) -> tuple[Array, Array, Any]:
        grad, diagonal, of_rows = curvature(phi)
        precondition = _preconditioner(base, moves, diagonal, ridge, n_models)

        def inner(_: int, state: tuple[Array, ...]) -> tuple[Array, ...]:
            x, r, p, rz = state
            hp = product(of_rows, p)
            along, scale_of_it = jnp.sum(p * hp, 0), jnp.sum(p * diagonal * p, 0)
            go_on = (rz > rounding * rz_start) & (along > rounding * scale_of_it)
            alpha = jnp.where(go_on, rz / jnp.where(go_on, along, 1.0), 0.0)
            x, r = x + alpha * p, r - alpha * hp
            z = precondition(r)
            rz_next = jnp.where(go_on, jnp.sum(r * z, 0), 0.0)
            return x, r, z + jnp.where(go_on, rz_next / jnp.where(go_on, rz, 1.0), 0.0) * p, rz_next

        z = precondition(grad)
        rz_start = jnp.sum(grad * z, 0)
        x, *_ = lax.fori_loop(0, inner_steps, inner, (jnp.zeros_like(grad), grad, z, rz_start))
        return _damped(model, phi, x), grad, ()

    start = jnp.broadcast_to(base.phi[:, None], (len(base.phi), n_lanes))
    return _iterate(step, _at_limit(model, start, moves), tolerance, max_steps)[0]
