"""The capability index: shares of benchmarks as sigmoid(a_b (C_m - D_b)), by penalised least squares or likelihood."""

from collections.abc import Mapping
from typing import NamedTuple

from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.kinds import Array, Bool, Float
from jaxeval.kernels.links import softplus
from jaxeval.kernels.solve import Solution, SolveStep, Terms, loop
from jaxeval.lazy_names import jax, jnp

#: Bounds of capabilities and difficulties (to both sides of 0), and of slopes.
MOST, FLATTEST, STEEPEST = 10.0, 0.1, 10.0
_MOST_STEPS = 200
_LEFT = 0.03  # of the right side, where conjugate gradients end
_DAMPING, _LESS, _MORE = (1.0, 3.0, 8.0)  # at first; a better step divides it, a worse one multiplies it


class IndexScale(NamedTuple):
    """Parameters of M models and K benchmarks."""

    capability: Float[Array, "M"]
    difficulty: Float[Array, "K"]
    slope: Float[Array, "K"]


def fit(
    weight: Float[Array, "M K"], share: Float[Array, "M K"], start: IndexScale, free: Bool[Array, "K"], ridge: Array,
    likelihood: bool, tolerance: float,
) -> tuple[IndexScale, Float[Array, ""], Solution]:  # fmt: skip
    """Minimise the loss of all cells and ridge / 2 times the sum of squares of all parameters that are free.

    The loss of a cell is (sigmoid - share)^2 / 2, or that of a binomial. Newton's steps, damped as Levenberg and
    Marquardt do: capabilities are eliminated first, as each meets the others only through benchmarks. Steps leave out
    what a bound holds. Near a bound, or where a benchmark has few models, the second derivative of the product
    a (C - D) is half of the curvature: without it two in five resamples of a public table do not get to the minimum.

    Args:
        weight: of each cell, 0 without a share.
        share: of right answers.
        start: where the steps begin.
        free: benchmarks whose slope is fitted; that of the others is held.
        ridge: of one parameter.
        likelihood: whether the loss is the binomial's.
        tolerance: of the gradient.

    Returns:
        The scale, the objective there, and how the steps ended: the gradient is that in what no bound holds.
    """
    n_models, n_benchmarks = weight.shape
    is_free = free.astype(share.dtype)

    def scale_of(theta: Array) -> IndexScale:
        return IndexScale(*jnp.split(theta, [n_models, n_models + n_benchmarks]))

    def objective(scale: IndexScale) -> Array:
        eta = scale.slope * (scale.capability[:, None] - scale.difficulty)
        loss = softplus(eta) - share * eta if likelihood else (jax.nn.sigmoid(eta) - share) ** 2 / 2
        squares = (scale.capability**2).sum() + (scale.difficulty**2).sum() + (is_free * scale.slope**2).sum()
        return (weight * loss).sum() + ridge / 2 * squares

    def step(theta: Array, _: Array, last: tuple[Array, Array]) -> SolveStep:
        lowest, damping = last
        c, d, a = scale_of(theta)
        z = c[:, None] - d
        s = jax.nn.sigmoid(a * z)
        bend = s * (1 - s)
        e, h = (weight * (s - share), weight * bend) if likelihood else (weight * (s - share) * bend, weight * bend**2)
        curved = h if likelihood else h + e * (1 - 2 * s)
        gc = (e * a).sum(1) + ridge * c
        gd = -(e * a).sum(0) + ridge * d
        ga = (e * z).sum(0) + ridge * a
        moves_c, moves_d = _moves(c, gc, -MOST, MOST), _moves(d, gd, -MOST, MOST)
        moves_a = _moves(a, ga, FLATTEST, STEEPEST) & free
        gc, gd, ga = jnp.where(moves_c, gc, 0.0), jnp.where(moves_d, gd, 0.0), jnp.where(moves_a, ga, 0.0)

        def diagonal(moves: Array, by: Array, axis: int) -> Array:
            exact, safe = (curved * by).sum(axis) + ridge, (h * by).sum(axis) + ridge
            return jnp.where(moves, exact + damping * safe, 1.0)

        of_c, of_d, of_a = (diagonal(*x) for x in ((moves_c, a**2, 1), (moves_d, a**2, 0), (moves_a, z**2, 0)))
        mixed = curved * a * z + e
        to_d = jnp.where(moves_c[:, None] & moves_d, -curved * a**2, 0.0)
        to_a = jnp.where(moves_c[:, None] & moves_a, mixed, 0.0)
        of_da = jnp.where(moves_d & moves_a, -mixed.sum(0), 0.0)
        across = jnp.concatenate([to_d, to_a], 1)  # (M, 2K)
        scaled = across / of_c[:, None]
        side = -jnp.concatenate([gd, ga]) + _product(scaled.T, gc)
        move = _by_gradients(across, scaled, of_d, of_a, of_da, side)
        dc = -(gc + _product(across, move)) / of_c
        dd, da = jnp.split(move, 2)
        moved = IndexScale(
            jnp.clip(c + dc, -MOST, MOST),
            jnp.clip(d + dd, -MOST, MOST),
            jnp.where(free, jnp.clip(a + da, FLATTEST, STEEPEST), a),
        )
        value = objective(moved)
        better = value <= lowest + 1e-13 * jnp.abs(lowest)
        after = jnp.where(better, jnp.maximum(damping / _LESS, 1e-12), jnp.minimum(damping * _MORE + 1e-6, 1e6))
        change = jnp.where(better, jnp.concatenate(moved) - theta, 0.0)
        grad = jnp.concatenate([gc, gd, ga])
        left = jnp.where(after < 1e5, jnp.abs(grad).max(), jnp.nan)
        return SolveStep(change, grad, (jnp.where(better, value, lowest), after), left)

    terms = Terms.of(0.0, tolerance, _MOST_STEPS)
    end, (lowest, _) = loop(step, jnp.concatenate(start), (objective(start), jnp.full((), _DAMPING)), terms)
    return scale_of(end.theta), lowest, end


def _product(one: Array, other: Array) -> Array:
    return jnp.matmul(one, other, precision="highest")


def _moves(value: Array, gradient: Array, least: float, most: float) -> Array:
    """Return which parameters no bound holds."""
    return ~(((value <= least) & (gradient > 0)) | ((value >= most) & (gradient < 0)))


def _by_gradients(across: Array, scaled: Array, of_d: Array, of_a: Array, of_da: Array, side: Array) -> Array:
    """Solve for the steps (2K,) of the benchmarks by conjugate gradients, for which no matrix of them is made."""
    k = len(of_d)

    def times(v: Array) -> Array:
        d, a = v[:k], v[k:]
        return jnp.concatenate([of_d * d + of_da * a, of_da * d + of_a * a]) - _product(scaled.T, _product(across, v))

    inner = (across * scaled).sum(0)
    dd, aa = of_d - inner[:k], of_a - inner[k:]
    da = of_da - (across[:, :k] * scaled[:, k:]).sum(0)
    det = dd * aa - da**2
    good = (det > 1e-12 * dd * aa) & (dd > 0)

    def each(v: Array) -> Array:  # solves for every benchmark by itself
        d, a = v[:k], v[k:]
        alone = jnp.concatenate([(aa * d - da * a) / det, (dd * a - da * d) / det])
        return jnp.where(jnp.tile(good, 2), alone, v / jnp.concatenate([of_d, of_a]))

    return jax.scipy.sparse.linalg.cg(times, side, tol=_LEFT, maxiter=2 * k, M=each)[0]


def indices(
    weights: Float[Array, "N"], cells: Mapping[str, Array], *, n_models: int, n_benchmarks: int, ridge: float,
    likelihood: bool, tolerance: float,
) -> Float[Array, "parameters"]:  # fmt: skip
    """Return capabilities, difficulties and slopes, end to end, of N cells under ``weights``.

    Args:
        weights: of the cells.
        cells: ``model``, ``benchmark`` (N,) numbers, ``share``, and ``questions``, what a cell weighs besides. Also
            where the steps begin, ``capability``, ``difficulty``, ``slope`` and ``free``, of its model and benchmark:
            as constants they would be compiled anew for other data.
        n_models, n_benchmarks: M and K.
        ridge, likelihood, tolerance: as in `fit`.
    """
    shape = n_models, n_benchmarks
    model, benchmark = cells["model"], cells["benchmark"]
    weight = jnp.zeros(shape).at[model, benchmark].add(weights * cells["questions"])
    total = jnp.zeros(shape).at[model, benchmark].add(weights * cells["questions"] * cells["share"])
    share = jnp.where(weight > 0, total / jnp.where(weight > 0, weight, 1.0), 0.5)

    def of_each(name: str, number: Array, size: int) -> Array:
        return jnp.zeros(size, cells[name].dtype).at[number].set(cells[name])

    start = IndexScale(
        of_each("capability", model, n_models),
        of_each("difficulty", benchmark, n_benchmarks),
        of_each("slope", benchmark, n_benchmarks),
    )
    free = of_each("free", benchmark, n_benchmarks)
    scale, *_ = fit(weight, share, start, free, jnp.asarray(ridge), likelihood, tolerance)
    empty = weight.sum(1) <= 0  # a model without cells has no capability
    return jnp.concatenate([jnp.where(empty, jnp.nan, scale.capability), scale.difficulty, scale.slope])


fit_capability = program("likelihood", "tolerance", runs="briefly")(fit)
