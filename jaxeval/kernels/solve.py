"""How every maximum is found: the outer loop and when it ends, conjugate gradients, the cap on steps, the gauge.

Lanes, if any, are the trailing axes: parameters are (P, ...), what belongs to a lane is (...). Kernels of tables have
none: they know one problem, and `kernels.batch` vmaps them. Kernels of graphs and of rows have one axis of lanes, the
last one: they gather and scatter, which is several times faster for lanes that lie side by side. A lane's result does
not depend on the others. What solves one table takes arrays of NumPy, too, and then runs on the host, in less time than
JAX compiles it.
"""

from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from jaxeval.kernels.kinds import Array, ArrayLike, Bool, Float, Int8, Int32, Real, namespace
from jaxeval.kernels.platforms import by_platform, one_by_one, product
from jaxeval.lazy_names import jnp, jsl, lax, spares_jax

Memory = TypeVar("Memory")

#: Logits that a step may change a parameter by: far from the optimum full steps overshoot.
LONGEST_STEP = 2.0
#: Logits that the rounding of a gradient may be worth where an iteration converges, by a bound of about ten times the
#: real error. It is exceeded where hardly anything joins groups of models whose battles weigh far more.
MOST_ROUNDING = {"float64": 1e-6, "float32": 5e-3}
# The error that conjugate gradients leave, in units of what they say that it is: at most that in measurements.
_SAFELY = 3.0


class Status(IntEnum):
    """How an iteration ended."""

    CONVERGED = 0
    "The error predicted to remain is under the tolerance, and what rounding may be worth under `MOST_ROUNDING`."
    STEP_LIMIT = 1
    "It ran out of steps, or rounding leaves more than may be trusted."
    NON_FINITE = 2
    "It diverged to infinite or undefined values."
    SEPARABLE = 3
    "The likelihood has no maximum: it grows forever."
    TOO_FEW = 4
    "Hardly any battle says anything about what is fitted."


class Terms(NamedTuple):
    """What is maximised, and when the iteration ends."""

    # Coefficient of the squared norm in the log-likelihood, or one per parameter.
    ridge: Real[Array, ""] | Real[Array, "P"]
    tolerance: Real[Array, ""]  # logits, of the error that remains in any parameter
    max_steps: Real[Array, ""]

    @classmethod
    def of(cls, ridge: ArrayLike, tolerance: ArrayLike, max_steps: int) -> "Terms":
        """Make terms from numbers of the host, which compiled functions take as they are."""
        return cls(*cast("tuple[Array, Array, Array]", (ridge, tolerance, max_steps)))


class Solution(NamedTuple):
    """Where the iteration ended and how."""

    theta: Float[Array, "..."]  # (P, ...) log-strengths and other parameters
    status: Int8[Array, "..."]  # a `Status`
    n_steps: Int32[Array, "..."]
    # Largest absolute component of the gradient: before the last step, where a solver does not say otherwise.
    grad_norm: Float[Array, "..."]


class SolveStep(NamedTuple):
    """What an iteration does at one point."""

    change: Float[Array, "P *lanes"]
    grad: Float[Array, "_ *lanes"]  # or a part of it, where the other parameters follow
    memory: Any  # for the next step; a step must itself leave the memory of lanes at rest as it is
    # Error that it predicts to remain after the change, NaN where it gives up; None: `loop` predicts it from the rate.
    remaining: Float[Array, "*lanes"] | None = None
    # Error that the change has as a solution of its equations, which a rate does not show: at least this remains.
    left: Float[Array, "*lanes"] | float = 0.0


class _State(NamedTuple):
    theta: Float[Array, "P *lanes"]
    size: Float[Array, "*lanes"]
    rate: Float[Array, "*lanes"]
    remaining: Float[Array, "*lanes"]
    grad_norm: Float[Array, "*lanes"]
    n_steps: Int32[Array, "*lanes"]


def iterate(
    step: Callable[[Array], tuple[Array, Array]],
    start: Float[Array, "P *lanes"],
    terms: Terms,
    first: tuple[Array, Array] | None = None,
    order: int = 1,
) -> Solution:
    """Apply ``step`` (theta to (change, gradient)) until the error predicted to remain is under the tolerance.

    The tolerance of the ``terms`` is for the largest component; the prediction is that of `loop` for the ``order`` of
    convergence. The step from ``start`` is ``first``, where that is known for less work.
    """
    known = None if first is None else SolveStep(*first, ())
    return loop(lambda theta, _, memory: SolveStep(*step(theta), memory), start, (), terms, known, order)[0]


def loop(
    step: Callable[[Array, Array, Memory], SolveStep],
    start: Float[Array, "P *lanes"],
    memory: Memory,
    terms: Terms,
    first: SolveStep | None = None,
    order: int = 1,
) -> tuple[Solution, Memory]:
    """Iterate as `iterate` does. A ``step`` takes theta, the lanes that run (...) and what the last step remembered.

    After a change of size d_k at rate r_k = d_k / d_(k-1) an iteration of ``order`` 1 is d_k r / (1 - r) from its
    limit, where r is the larger of the last two rates, as one lucky step may hide a slow direction. One of order 2, as
    Newton's with exact derivatives, is c d_k^2 from it, where c is the larger of r_k / d_(k-1) and the one before; a
    tenth of the tolerance is left for a c that still grows. A lane at rest stays, whatever the others do.
    """
    xp, lanes = namespace(start), start.shape[1:]
    alone = xp is np and not lanes  # then its numbers are Python's, each of whose operations takes a tenth of the time
    numbers: tuple[Any, Any, Any] = min, max, lambda condition, if_so, else_: if_so if condition else else_
    least, most, where = numbers if alone else (xp.minimum, xp.maximum, xp.where)

    def running(state: _State) -> Array:
        return (state.remaining > terms.tolerance) & (state.n_steps < terms.max_steps)

    def advance(carry: tuple[_State, Memory]) -> tuple[_State, Memory]:
        state, memory = carry
        return moved(state, step(state.theta, running(state), memory))

    def moved(state: _State, taken: SolveStep) -> tuple[_State, Memory]:
        size = abs(taken.change).max(0)
        rate = least(size / state.size, 0.99)
        remaining = taken.remaining
        if remaining is None:
            worst = most(rate, state.rate)
            ahead = size * worst / (1 - worst)
            if order == 2:  # steps that no longer shrink have met the limit of precision
                ahead = where(worst < 0.5, 10 * size * rate * most(rate, state.rate**2), ahead)
            # The first change has no rate to go by.
            remaining = most(where(state.n_steps > 0, ahead, size), taken.left)
        grad_norm = abs(taken.grad).max(0)
        new = _State(state.theta + taken.change, size, rate, remaining, grad_norm, state.n_steps + 1)
        if alone:  # its loop ends when it does
            return new, taken.memory
        runs = running(state)
        return _State(*(where(runs, x, old) for x, old in zip(new, state, strict=True))), taken.memory

    infinite = xp.full(lanes, xp.inf, start.dtype)
    at_start = _State(start, infinite, xp.zeros_like(infinite), infinite, infinite, xp.zeros(lanes, xp.int32))
    begun = (at_start, memory) if first is None else moved(at_start, first)

    def goes_on(carry: tuple[_State, Memory]) -> Array:
        return running(carry[0]).any()

    end, memory = _repeated(xp, goes_on, advance, begun)
    status = where(end.remaining <= terms.tolerance, Status.CONVERGED, Status.STEP_LIMIT)
    finite = xp.all(xp.isfinite(end.theta), 0) & xp.isfinite(end.grad_norm)
    status = xp.asarray(where(finite, status, Status.NON_FINITE), xp.int8)
    return Solution(end.theta, status, end.n_steps, end.grad_norm), memory


def _repeated(xp: Any, goes_on: Callable[[Any], Array], advance: Callable[[Any], Any], state: Any) -> Any:
    """Return the ``state`` that ends a loop, of the namespace's own."""
    if xp is not np:
        return lax.while_loop(goes_on, advance, state)
    while goes_on(state):
        state = advance(state)
    return state


def capped(change: Float[Array, "P *lanes"]) -> Float[Array, "P *lanes"]:
    """Return ``change``, shrunk so that no parameter's exceeds `LONGEST_STEP`."""
    xp = namespace(change)
    return change * xp.minimum(1.0, LONGEST_STEP / xp.maximum(abs(change).max(0), 1e-300))


def centred(change: Float[Array, "M *lanes"], among: Bool[Array, "M *#lanes"]) -> Float[Array, "M *lanes"]:
    """Return ``change`` without the common shift of the models ``among``, and none for others.

    The optimum has mean zero, by the gauge or by the ridge; rounding must not add up in that direction.
    """
    xp = namespace(change)
    mean = xp.where(among, change, 0.0).sum(0) / xp.maximum(among.sum(0), 1)
    return xp.where(among, change - mean, 0.0)


def chord(
    gradient: Callable[[Array], Array],
    inverse: Float[Array, "P P"],
    start: Float[Array, "P *lanes"],
    terms: Terms,
    first: Float[Array, "P *lanes"] | None = None,
    project: Callable[[Array], Array] = lambda change: change,
) -> Solution:
    """Solve by Newton's method with one fixed ``inverse`` of the information, that of the full data.

    Batched over resamples, the step is a single matrix product. It diverges where a resample's information is far from
    the full data's. The gradient at ``start`` is ``first``, where that is known for less work. No step leaves the space
    to which ``project`` takes it.
    """

    def along(grad: Array) -> tuple[Array, Array]:
        return project(product(inverse, grad)), grad

    known = None if first is None else along(first)
    return iterate(lambda theta: along(gradient(theta)), start, terms, known)


def newton_step(
    grad: Float[Array, "P *lanes"],
    matrix: Float[Array, "*lanes P P"],
    moves: Bool[Array, "P *lanes"],
    n_models: int,
    ridge: Real[Array, ""],
) -> Float[Array, "P *lanes"]:
    """Return a step by the information ``matrix``, in what ``moves``: ``n_models`` strengths, and other parameters."""
    change = solved(regular(matrix, moves.T, n_models, ridge)[0], grad.T).T
    if n_models == len(moves):
        return centred(change, moves)
    strengths = centred(change[:n_models], moves[:n_models])
    xp = namespace(change)
    return xp.concatenate([strengths, xp.where(moves[n_models:], change[n_models:], 0.0)])


class ConjugateSolution(NamedTuple):
    """How far conjugate gradients came."""

    solution: Float[Array, "P *lanes"]
    is_solved: Bool[Array, "*lanes"]  # whether the residual became small enough
    least: Float[Array, "*lanes"]  # curvature of the weakest direction that was met, in units of the preconditioner's
    left: Float[Array, "*lanes"]  # largest error, by the preconditioned residual and this curvature


def conjugate_gradients(
    product: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    diagonal: Float[Array, "P *lanes"],
    right: Float[Array, "P *lanes"],
    enough: Callable[[Array, Array], Array],
    most_steps: int,
    *,
    running: Bool[Array, "*lanes"] | bool = True,
    least: Float[Array, "*lanes"] | float = 1.0,
) -> ConjugateSolution:
    """Solve information * x = ``right``, from x = 0, for the lanes ``running``.

    Args:
        product: multiplies (P, ...) by the information.
        precondition: multiplies by something near its inverse.
        diagonal: of the information.
        right: the right-hand side.
        enough: from r' z at the start and the least curvature so far, both (...), to the r' z at which a lane is
            solved: r being the residual, and z the preconditioned one.
        most_steps: the limit.
        running: lanes to solve.
        least: the least curvature that is already known, in units of the preconditioner's.
    """
    xp = namespace(right)
    eps = np.finfo(right.dtype).eps

    def dot(a: Array, b: Array) -> Array:
        return (a * b).sum(0)

    z = precondition(right)
    rz_start = dot(right, z)
    known = xp.broadcast_to(xp.asarray(least, right.dtype), rz_start.shape)

    def unsolved(rz: Array, least: Array) -> Array:
        return rz > enough(rz_start, least)

    def more(state: tuple[Any, ...]) -> Array:
        *_, go, n_steps = state
        return xp.any(go) & (n_steps < most_steps)

    def advance(state: tuple[Any, ...]) -> tuple[Any, ...]:
        x, r, z, p, rz, scale, least, go, n_steps = state
        hp = product(p)
        curvature = dot(p, hp)
        # With less curvature, rounding decides, as along the common shift, which has none.
        go = go & (curvature > 100 * eps * dot(p, diagonal * p))
        least = xp.where(go, xp.minimum(least, curvature / xp.where(go, scale, 1.0)), least)
        alpha = xp.where(go, rz / xp.where(go, curvature, 1.0), 0.0)
        x, r = x + alpha * p, r - alpha * hp
        z = precondition(r)
        rz_next = dot(r, z)
        beta = rz_next / xp.where(go, rz, 1.0)
        # The curvature of the new p by the preconditioner, in which z and the old p are at right angles.
        scale = xp.where(go, rz_next + beta**2 * scale, scale)
        p = xp.where(go, z + beta * p, p)
        return x, r, z, p, xp.where(go, rz_next, rz), scale, least, go & unsolved(rz_next, least), n_steps + 1

    go = running & unsolved(rz_start, known)
    start: tuple[Any, ...] = xp.zeros_like(right), right, z, z, rz_start, rz_start, known, go, xp.int32(0)
    x, _, z, _, rz, _, met, _, _ = _repeated(xp, more, advance, start)
    return ConjugateSolution(x, ~unsolved(rz, met), met, _SAFELY * abs(z).max(0) / met)


def newton_cg_step(
    product: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    diagonal: Float[Array, "P *lanes"],
    grad: Float[Array, "P *lanes"],
    least: Float[Array, "*lanes"] | float = 1.0,
) -> ConjugateSolution:
    """Return the change by a few steps of conjugate gradients, fewer where only rounding noise is left."""
    rounding = 100 * np.finfo(grad.dtype).eps
    return conjugate_gradients(product, precondition, diagonal, grad, lambda start, _: rounding * start, 4, least=least)


def newton_cg(
    products: Callable[[Array], tuple[Array, Array, Callable[[Array], Array]]],
    inverse: Float[Array, "P P"],
    full_diagonal: Float[Array, "P"],
    start: Float[Array, "P *lanes"],
    terms: Terms,
    n_models: int,
    moves: Bool[Array, "P *lanes"] | bool = True,
    limited: Callable[[Array, Array], Array] = lambda _, change: capped(change),
) -> Solution:
    """Solve by Newton's method with steps by preconditioned conjugate gradients: for resamples of sparse boards.

    In a resample, the information of a model with a handful of battles is far from the full data's, for which the
    `preconditioner` corrects. What few steps leave of the gap between groups that a resample hardly joins is predicted
    from the weakest direction that any step met.

    Args:
        products: from parameters to the gradient, the diagonal of the information, and what multiplies by it; 0 for
            what does not move.
        inverse: of the information of the full data, from which resamples know how parameters depend on each other.
        full_diagonal: of that information itself.
        start: where to begin.
        terms: when to end; the ridge is that of the models.
        n_models: how many of the parameters are strengths, the first ones.
        moves: what is fitted.
        limited: from parameters and a change of them to a change that is not too long.
    """

    def step(theta: Array, running: Array, least: Array) -> SolveStep:
        grad, diagonal, product = products(theta)
        apply = preconditioner(inverse, full_diagonal, diagonal, terms.ridge, n_models)
        found = newton_cg_step(product, lambda r: jnp.where(moves, apply(r), 0.0), diagonal, grad, least)
        least = jnp.where(running, found.least, least)
        return SolveStep(limited(theta, found.solution), grad, least, left=found.left)

    return loop(step, start, jnp.ones(start.shape[1:], start.dtype), terms)[0]


def preconditioner(
    inverse: Float[Array, "P P"],
    full_diagonal: Float[Array, "P"],
    diagonal: Float[Array, "P ..."],
    ridge: Real[Array, ""],
    n_models: int,
) -> Callable[[Array], Array]:
    """Return the function that takes (P, ...) gradients to steps: D^-1/2 (D0^1/2 inverse D0^1/2) D^-1/2.

    How parameters depend on each other comes from the full data's ``inverse``; D0 = ``full_diagonal`` is the diagonal
    of the information that it inverts. How much is known of each parameter comes from the lane's own ``diagonal`` D
    (P, ...): a model with few battles may have none there, or twice as many. The first ``n_models`` parameters are
    log-strengths, with the ``ridge``; those without a diagonal are padding, which stays where it is.
    """
    of_lanes = (slice(None), *[None] * (diagonal.ndim - 1))
    known = (full_diagonal > 0)[of_lanes]
    is_model = known & (jnp.arange(len(inverse)) < n_models)[of_lanes]
    root = jnp.sqrt(full_diagonal)
    scaled_inverse = root[:, None] * inverse * root
    scale = jnp.where(diagonal > 0, 1 / jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1.0)), 0.0)
    curvature = 2 * jnp.sum(is_model) * ridge
    shift_inverse = jnp.where(curvature > 0, 1 / jnp.where(curvature > 0, curvature, 1.0), 0.0)

    def apply(r: Array) -> Array:
        # The full data's inverse is blind to models that it could not rate; their own curvature stands in.
        scaled = jnp.where(known, 0.0, scale * r)
        z = scale * (jnp.matmul(scaled_inverse, scale * r, precision="highest") + scaled)
        # It is blind to the common shift too, where only the ridge has curvature.
        return z + is_model * (jnp.sum(is_model * r, 0) * shift_inverse)

    return apply


def regular(
    matrix: Float[Array, "*lanes P P"], moves: Bool[Array, "*lanes P"], n_models: int, ridge: Real[Array, ""]
) -> tuple[Float[Array, "*lanes P P"], Float[Array, "*lanes"]]:
    """Return the information of what ``moves``, regular in all other directions too.

    What stays gets a unit diagonal, and so does what ran so far that rounding leaves no information. The likelihood
    does not see a common shift of the models that move. Along its unit vector the matrix gets the mean curvature of the
    models, in place of the curvature of the ``ridge``; this curvature is returned, too. The inverse in other directions
    does not change, and the matrix is well conditioned for battles of any weight.
    """
    xp = namespace(matrix)
    if xp is np and moves.shape[-1] == n_models and moves.all():  # as most often
        mean = matrix.trace(axis1=-2, axis2=-1) / n_models
        mean = xp.where(mean > 0, mean, 1.0)
        return matrix + ((mean - 2 * ridge) / n_models)[..., None, None], mean
    active = moves & (xp.arange(moves.shape[-1]) < n_models)
    n_active = xp.maximum(active.sum(-1), 1)
    diagonal = xp.diagonal(matrix, axis1=-2, axis2=-1)
    mean = xp.where(active, diagonal, 0.0).sum(-1) / n_active
    mean = xp.where(mean > 0, mean, 1.0)
    shift = (mean - 2 * ridge) / n_active
    shift = shift[..., None, None]
    inside = xp.where(_both(moves), matrix, 0.0) + xp.where(moves & (diagonal != 0), 0.0, 1.0)[..., None] * xp.eye(
        moves.shape[-1], dtype=matrix.dtype
    )
    return inside + xp.where(_both(active), shift, 0.0), mean


def solved(matrix: Float[Array, "*lanes P P"], right: Float[Array, "*lanes P"]) -> Float[Array, "*lanes P"]:
    """Solve ``matrix`` x = ``right``, the matrix being positive definite."""
    if namespace(matrix, right) is np:
        return _by_lapack(matrix, right[..., None])[0][..., 0]
    return solved_and_log_det(matrix, right[..., None])[0][..., 0]


def solved_and_log_det(
    matrix: Float[Array, "*lanes P P"], right: Float[Array, "*lanes P K"]
) -> tuple[Float[Array, "*lanes P K"], Float[Array, "*lanes"]]:
    """Solve ``matrix`` X = ``right``; return X and the log of the determinant: NaN if it is not positive definite.

    XLA for TPUs factors no double-precision matrix where several devices share the lanes. There Gauss-Jordan
    elimination takes the factor's place: for a positive definite matrix it needs no pivoting.
    """
    if namespace(matrix, right) is np:
        solution, diagonal = _by_lapack(matrix, right)
        return solution, 2 * np.log(diagonal).sum(-1)

    def by_factor(matrix: Array, right: Array) -> tuple[Array, Array]:
        factor = jsl.cho_factor(matrix)
        return jsl.cho_solve(factor, right), 2 * jnp.sum(jnp.log(jnp.diagonal(factor[0], axis1=-2, axis2=-1)), -1)

    def by_elimination(matrix: Array, right: Array) -> tuple[Array, Array]:
        row = jnp.arange(right.shape[-2])[:, None]

        def eliminate(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
            table, log_det = state
            pivot_row = lax.dynamic_index_in_dim(table, k, -2)
            pivot = lax.dynamic_index_in_dim(pivot_row, k, -1)
            pivot_row = pivot_row / pivot
            left = jnp.where(row == k, pivot_row, table - lax.dynamic_index_in_dim(table, k, -1) * pivot_row)
            return left, log_det + jnp.log(pivot[..., 0, 0])

        start = jnp.concatenate([matrix, right], -1), jnp.zeros(matrix.shape[:-2], matrix.dtype)
        table, log_det = lax.fori_loop(0, right.shape[-2], eliminate, start)
        return table[..., right.shape[-2] :], log_det

    result: tuple[Array, Array] = by_platform(
        matrix, right, cpu=one_by_one(by_factor), tpu=by_elimination, default=by_factor
    )
    return result


def _by_lapack(matrix: Any, right: Any) -> tuple[Any, Any]:
    """Return solutions, and the diagonals of the factors, on the host; NaN where a matrix has none."""
    if matrix.ndim > 2:
        solutions, diagonals = zip(*map(_by_lapack, matrix, right), strict=True)
        return np.stack(solutions), np.stack(diagonals)
    solution, diagonal = factored(matrix)
    return solution(right), diagonal


def factored(matrix: Any) -> tuple[Callable[[Any], Any], Any]:
    """Return what solves equations of the ``matrix`` on the host, and its factor's diagonal; NaN where it has none.

    A process that ends soon spares the import of `scipy.linalg`, which takes as long as 2,000 of NumPy's solutions for
    55 models. Each of these takes three times as long as by LAPACK's factor.
    """
    if spares_jax():
        with suppress(np.linalg.LinAlgError):
            diagonal = np.linalg.cholesky(matrix).diagonal()
            return lambda right: np.linalg.solve(matrix, right), diagonal
    else:
        from scipy.linalg.lapack import dpotrf, dpotrs

        factor, failed = dpotrf(matrix.T, clean=0)  # transposed, as LAPACK stores it
        if not failed:
            return lambda right: dpotrs(factor, right)[0], factor.diagonal()
    return lambda right: np.full(right.shape, np.nan), np.full(len(matrix), np.nan)


def pseudo_inverse(
    matrix: Float[Array, "P P"], moves: Bool[Array, "P"], n_models: int, ridge: Real[Array, ""]
) -> Float[Array, "P P"]:
    """Return the pseudo-inverse of the information: 0 for what does not move and in the common shift of the models.

    It is the model-based covariance of the estimate in the mean-zero gauge.
    """
    xp = namespace(matrix)
    matrix, shift = regular(matrix, moves, n_models, ridge)

    def by_factor(matrix: Array) -> Array:
        return jsl.cho_solve(jsl.cho_factor(matrix), jnp.eye(len(matrix), dtype=matrix.dtype))

    if xp is np:
        inverse = _by_lapack(matrix, np.eye(len(matrix)))[0]
    else:
        inverse = by_platform(matrix, cpu=one_by_one(by_factor), default=by_factor)
    active = moves & (xp.arange(len(moves)) < n_models)
    n_active = xp.maximum(xp.sum(active), 1)
    return xp.where(_both(moves), inverse, 0.0) - xp.where(_both(active), 1 / (shift * n_active), 0.0)


def inverse_and_diagonal(
    matrix: Float[Array, "P P"], moves: Bool[Array, "P"], n_models: int, ridge: Real[Array, ""]
) -> tuple[Float[Array, "P P"], Float[Array, "P"]]:
    """Return the `pseudo_inverse` of the information, and its own diagonal; 0 for what does not move."""
    xp = namespace(matrix)
    return pseudo_inverse(matrix, moves, n_models, ridge), xp.where(moves, xp.diagonal(matrix), 0.0)


def _both(kept: Bool[Array, "*lanes P"]) -> Bool[Array, "*lanes P P"]:
    return kept[..., :, None] & kept[..., None, :]
