"""The capability index: shares of benchmarks as sigmoid(a_b (C_m - D_b)), by penalised least squares or likelihood."""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.kinds import Bool, Float, Int32

#: Bounds of capabilities and difficulties (to both sides of 0), and of slopes.
MOST, FLATTEST, STEEPEST = 10.0, 0.1, 10.0
_MOST_STEPS = 200


class Scale(NamedTuple):
    """Parameters of M models and K benchmarks."""

    capability: Float[Array, "M"]
    difficulty: Float[Array, "K"]
    slope: Float[Array, "K"]


class Index(NamedTuple):
    """A fit, its objective, and the largest entry of its gradient in what no bound holds."""

    scale: Scale
    objective: Float[Array, ""]
    gradient: Float[Array, ""]
    n_steps: Int32[Array, ""]


class _Step(NamedTuple):
    scale: Scale
    objective: Array
    gradient: Array
    damping: Array
    n_steps: Array


def fit(
    weight: Float[Array, "M K"], share: Float[Array, "M K"], start: Scale, free: Bool[Array, "K"], ridge: Array,
    likelihood: bool, tolerance: float,
) -> Index:  # fmt: skip
    """Minimise the loss of all cells and ridge / 2 times the sum of squares of all parameters that are free.

    The loss of a cell is (sigmoid - share)^2 / 2, or that of a binomial. Levenberg and Marquardt's steps: capabilities
    are eliminated first, as each meets the others only through benchmarks.

    Args:
        weight: of each cell, 0 without a share.
        share: of right answers.
        start: where the steps begin.
        free: benchmarks whose slope is fitted; that of the others is held.
        ridge: of one parameter.
        likelihood: whether the loss is the binomial's.
        tolerance: of the gradient.
    """
    is_free = free.astype(share.dtype)

    def objective(scale: Scale) -> Array:
        eta = scale.slope * (scale.capability[:, None] - scale.difficulty)
        loss = jnp.logaddexp(0.0, eta) - share * eta if likelihood else (jax.nn.sigmoid(eta) - share) ** 2 / 2
        squares = (scale.capability**2).sum() + (scale.difficulty**2).sum() + (is_free * scale.slope**2).sum()
        return (weight * loss).sum() + ridge / 2 * squares

    def step(scale: Scale, damping: Array) -> tuple[Scale, Array]:
        c, d, a = scale
        z = c[:, None] - d
        s = jax.nn.sigmoid(a * z)
        bend = s * (1 - s)
        e, h = (weight * (s - share), weight * bend) if likelihood else (weight * (s - share) * bend, weight * bend**2)
        of_slope = h * a * z
        gc = (e * a).sum(1) + ridge * c
        gd = -(e * a).sum(0) + ridge * d
        ga = ((e * z).sum(0) + ridge * a) * is_free
        more = 1 + damping
        of_c = ((h * a**2).sum(1) + ridge) * more
        of_d = ((h * a**2).sum(0) + ridge) * more
        of_a = jnp.where(free, ((h * z**2).sum(0) + ridge) * more, 1.0)
        of_da = -of_slope.sum(0) * is_free
        across = jnp.concatenate([-h * a**2, of_slope * is_free], 1)  # (M, 2K)
        scaled = across / of_c[:, None]
        rest = jnp.block([[jnp.diag(of_d), jnp.diag(of_da)], [jnp.diag(of_da), jnp.diag(of_a)]]) - _product(
            across.T, scaled
        )
        gb = jnp.concatenate([gd, ga])
        factor = jnp.linalg.cholesky(rest)
        db = -jax.scipy.linalg.cho_solve((factor, True), gb - _product(scaled.T, gc))
        dc = -(gc + _product(across, db)) / of_c
        k = len(d)
        moved = Scale(
            jnp.clip(c + dc, -MOST, MOST),
            jnp.clip(d + db[:k], -MOST, MOST),
            jnp.where(free, jnp.clip(a + db[k:], FLATTEST, STEEPEST), a),
        )
        held = jnp.concatenate(
            [_outward(c, gc, -MOST, MOST), _outward(d, gd, -MOST, MOST), _outward(a, ga, FLATTEST, STEEPEST) | ~free]
        )
        return moved, jnp.abs(jnp.where(held, 0.0, jnp.concatenate([gc, gd, ga]))).max()

    def body(now: _Step) -> _Step:
        moved, gradient = step(now.scale, now.damping)
        value = objective(moved)
        better = value <= now.objective + 1e-13 * jnp.abs(now.objective)
        damping = jnp.where(better, jnp.maximum(now.damping / 8, 1e-12), jnp.minimum(now.damping * 6 + 1e-6, 1e6))
        scale = jax.tree.map(lambda new, old: jnp.where(better, new, old), moved, now.scale)
        return _Step(scale, jnp.where(better, value, now.objective), gradient, damping, now.n_steps + 1)

    def goes_on(now: _Step) -> Array:
        return (now.gradient > tolerance) & (now.n_steps < _MOST_STEPS) & (now.damping < 1e5)

    begin = _Step(start, objective(start), jnp.full((), jnp.inf), jnp.full((), 1e-3), jnp.zeros((), jnp.int32))
    end = lax.while_loop(goes_on, body, begin)
    return Index(end.scale, end.objective, end.gradient, end.n_steps)


def _product(one: Array, other: Array) -> Array:
    return jnp.matmul(one, other, precision="highest")


def _outward(value: Array, gradient: Array, least: float, most: float) -> Array:
    """Where a bound holds a parameter."""
    return ((value <= least) & (gradient > 0)) | ((value >= most) & (gradient < 0))


def indices(
    weights: Float[Array, "N"], cells: Mapping[str, Array], *, start: Scale, free: Bool[Array, "K"], ridge: float,
    likelihood: bool, tolerance: float,
) -> Float[Array, "parameters"]:  # fmt: skip
    """Return capabilities, difficulties and slopes, end to end, of N cells under ``weights``.

    Args:
        weights: of the cells.
        cells: ``model``, ``benchmark`` (N,) numbers, ``share``, and ``questions``, what a cell weighs besides.
        start, free, ridge, likelihood, tolerance: as in `fit`.
    """
    shape = len(start.capability), len(start.difficulty)
    place = cells["model"], cells["benchmark"]
    weight = jnp.zeros(shape).at[place].add(weights * cells["questions"])
    total = jnp.zeros(shape).at[place].add(weights * cells["questions"] * cells["share"])
    share = jnp.where(weight > 0, total / jnp.where(weight > 0, weight, 1.0), 0.5)
    start = Scale(*map(jnp.asarray, start))
    end = fit(weight, share, start, jnp.asarray(free), jnp.asarray(ridge), likelihood, tolerance)
    empty = weight.sum(1) <= 0  # a model without cells has no capability
    return jnp.concatenate([jnp.where(empty, jnp.nan, end.scale.capability), end.scale.difficulty, end.scale.slope])


@program("likelihood", "tolerance")
def fit_capability(
    weight: Float[Array, "M K"], share: Float[Array, "M K"], start: Scale, free: Bool[Array, "K"], ridge: Array,
    likelihood: bool, tolerance: float,
) -> Index:  # fmt: skip
    """Run `fit`."""
    return fit(weight, share, start, free, ridge, likelihood, tolerance)
