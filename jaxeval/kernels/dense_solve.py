"""Maximum of the likelihood on an (M, M) table of pairs, one problem at a time: by steps of four kinds, and Firth's."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from jaxeval.kernels import pair_tables, solve
from jaxeval.kernels.kinds import Array, Bool, Float, Int32, Num, Real, namespace
from jaxeval.kernels.links import Link, share
from jaxeval.kernels.pair_tables import PairTable, row_sums
from jaxeval.kernels.platforms import product
from jaxeval.kernels.solve import (
    LONGEST_STEP,
    Solution,
    SolveStep,
    Status,
    Terms,
    capped,
    centred,
    conjugate_gradients,
    factored,
    inverse_and_diagonal,
    loop,
    regular,
    solved_and_log_det,
)
from jaxeval.lazy_names import jnp, lax

Table = TypeVar("Table", bound=tuple[Any, ...])


def chord(
    gradient: Callable[[Array, Table], Array],
    table: Table,
    start: Float[Array, "P *lanes"],
    inverse: Float[Array, "P P"],
    terms: Terms,
) -> Solution:
    """Solve as `solve.chord` does, with a ``gradient`` that takes parameters and the ``table``."""
    return solve.chord(lambda theta: gradient(*_as_kept(theta, table)), inverse, start, terms)


def chord_of_link(
    link: Link, table: PairTable, start: Float[Array, "M *lanes"], inverse: Float[Array, "M M"], terms: Terms
) -> Solution:
    """Return `chord` steps by the gradient of the ``link``."""
    return chord(
        lambda theta, table: pair_tables.gradient(link, theta.T, table, terms.ridge).T, table, start, inverse, terms
    )


def newton(
    link: Link,
    table: PairTable,
    active: Bool[Array, "M *lanes"],
    terms: Terms,
    start: Float[Array, "M *lanes"] | None = None,
) -> Solution:
    """Solve by Newton's method from ``start``, or from each model's own score.

    ``table`` holds no battles of models that are not ``active``: their theta stays 0. On the host there may be lanes,
    the first axis of tables and the last one of all else.

    It has not converged where the rounding of the gradient may be worth more than `solve.MOST_ROUNDING`. Of all signs
    that roundings of the models may have, those are tried in turn that the last ones moved (Hager 1984, DOI
    10.1137/0905023): they come to weigh down one of two groups that little joins.
    """
    xp = namespace(table.n)
    battles = row_sums(table.n).astype(table.score.dtype)
    if start is None:
        start = xp.log((table.score + 1) / (battles - table.score + 1)).T
    noise = _rounding(battles)

    def step(theta: Array, running: Array, moved: Array) -> SolveStep:
        grad, matrix = _gradient_and_information(link, theta, table, terms.ridge)
        matrix, _ = regular(matrix, active.T, len(active), terms.ridge)
        right = xp.stack([grad.T, xp.where(moved.T > 0, noise, -noise)], -1)
        both = centred(xp.moveaxis(solved_and_log_det(matrix, right)[0], -2, 0), active[..., None])
        return SolveStep(capped(both[..., 0]), grad, xp.where(running, both[..., 1], moved))

    start = centred(start, active)
    end, moved = loop(step, start, start, terms, order=2)
    # The last step may take most of the gradient with it.
    grad_norm = abs(pair_tables.gradient(link, end.theta.T, table, terms.ridge)).max(-1)
    return _unless_rough(end._replace(grad_norm=grad_norm), moved)


# Logits of a change after which the next one is 1e-8 or less, and needs no new factor: what then remains is 1e-12.
_NEAR = 2e-4


def newton_on_host(
    link: Link, table: PairTable, active: Bool[Array, "M"], terms: Terms, start: Float[Array, "M"] | None = None
) -> Solution:
    """Solve one problem of NumPy as `newton` does: from a better start, and with the last factor for the last steps.

    Without ``start`` a model's score is one against its mean opponent. Logits of scores shrink by sqrt(1 + pi v / 8)
    where opponents' strengths have the variance v (MacKay 1992, DOI 10.1162/neco.1992.4.5.720), which is that of their
    own logits, of which all shrink.
    """
    battles = row_sums(table.n)
    if start is None:
        each = np.maximum(battles, 1e-300)
        logit: Any = np.log((table.score + 1) / (battles - table.score + 1))
        mean = np.matmul(table.n, logit) / each
        variance = np.matmul(table.n, logit**2) / each - mean**2
        start = (logit + mean) / np.sqrt(np.maximum(1 - np.pi / 8 * variance, 0.1))

    def step(theta: Array, _: Array, memory: tuple[Any, Any]) -> SolveStep:
        solution, last = memory
        is_near = last < _NEAR
        if is_near:
            grad = pair_tables.gradient(link, theta, table, terms.ridge)
        else:
            grad, matrix = _gradient_and_information(link, theta, table, terms.ridge)
            solution, _ = factored(regular(matrix, active, len(active), terms.ridge)[0])
        change = solution(grad)
        size = abs(change).max()
        change = change if size < LONGEST_STEP else capped(change)
        return SolveStep(change, grad, (solution, size), size**2 / last if is_near else None)

    nothing: tuple[Any, Any] = None, np.inf
    end, (solution, _) = loop(step, start - start.mean(), nothing, terms, order=2)
    moved, noise = start, _rounding(battles)
    for _ in range(3):
        moved = solution(np.copysign(noise, moved))
    theta = centred(end.theta, active)
    grad_norm = abs(pair_tables.gradient(link, theta, table, terms.ridge)).max()
    return _unless_rough(end._replace(theta=theta, grad_norm=grad_norm), moved)


def _rounding(battles: Float[Array, "*lanes M"]) -> Float[Array, "*lanes M"]:
    """Return what rounding may be worth in the gradient: uneven, as whole numbers of battles may cancel."""
    xp = namespace(battles)
    uneven = 1 + 0.1 * xp.sin(xp.arange(battles.shape[-1], dtype=battles.dtype))
    return np.finfo(battles.dtype).eps * battles * uneven


def _unless_rough(end: Solution, moved: Float[Array, "M *lanes"]) -> Solution:
    """Return the ``end``, not converged where rounding has ``moved`` a strength by more than may be trusted."""
    xp = namespace(moved)
    is_rough = abs(moved).max(0) > solve.MOST_ROUNDING[moved.dtype.name]
    worse = xp.maximum(end.status, np.int8(Status.STEP_LIMIT))  # what diverged, has
    return end._replace(status=xp.where(is_rough, worse, end.status))


def newton_cg(
    link: Link,
    table: PairTable,
    start: Float[Array, "M"],
    inverse: Float[Array, "M M"],
    information_diagonal: Float[Array, "M"],
    terms: Terms,
) -> Solution:
    """Solve as `solve.newton_cg` does; ``inverse`` and ``information_diagonal`` are of the full data."""

    def products(theta: Array) -> tuple[Array, Array, Callable[[Array], Array]]:
        theta, counts = _as_kept(theta, table)
        v = pair_tables.curvature(link, theta, counts)
        diagonal = row_sums(v) + 2 * terms.ridge
        grad = pair_tables.gradient(link, theta, counts, terms.ridge)
        return grad, diagonal, lambda p: diagonal * p - jnp.matmul(v, p, precision="highest")

    return solve.newton_cg(products, inverse, information_diagonal, start, terms, len(start))


class TableRows(NamedTuple):
    """Rows of a table, of some of its models; M stands for no model, whose row is empty."""

    models: Int32[Array, "K"]
    n: Num[Array, "K M"]
    wins: Num[Array, "K M"]


# Of the squared error at the start, by the information, that is left in the part of models of few battles: more would
# hide how slowly a group converges that hardly met the others.
_ENOUGH = 1e-6


def chord_with_newton(
    link: Link,
    table: PairTable,
    few: TableRows,
    active: Bool[Array, "M"],
    start: Float[Array, "M"],
    inverse: Float[Array, "M M"],
    terms: Terms,
) -> Solution:
    """Take `chord` steps, in which the models of ``few`` battles move by Newton's method.

    The information is H = [[A, B'], [B, C]], C being that of the models of few battles. A step eliminates them: B and C
    are those of the table at this point, and the inverse of A - B' C^-1 B is that of the full data, a block of their
    ``inverse``. It converges as chord steps do where all models have many battles: what remains is predicted by the
    rate of the others' steps, as those by Newton's method may hide it. The tables hold no battles of models that are
    not ``active``.
    """
    chosen = few.models[:, None] == jnp.arange(len(active))
    others = ~chosen.any(0)

    def step(theta: Array, running: Array, last: tuple[Array, Array]) -> SolveStep:
        theta, (counts, rows) = _as_kept(theta, (table, few))
        grad = pair_tables.gradient(link, theta, counts, terms.ridge)
        v = pair_tables.row_curvature(link, theta, rows.models, rows.n, rows.wins)
        diagonal = v.sum(-1) + 2 * terms.ridge
        diagonal = jnp.where(diagonal > 0, diagonal, 1.0)
        among = v.at[:, rows.models].get(mode="fill", fill_value=0)

        def solved(right: Array) -> Array:
            return conjugate_gradients(
                lambda p: diagonal * p - product(among, p), lambda r: r / diagonal, diagonal, right,
                lambda start, least: _ENOUGH * least * start, len(diagonal),
            ).solution  # fmt: skip

        alone = solved(grad.at[rows.models].get(mode="fill", fill_value=0))
        rest = jnp.where(others, product(inverse, jnp.where(others, grad + product(alone, v), 0.0)), 0.0)
        along = alone + solved(product(v, rest))
        size = jnp.stack([abs(rest).max(), abs(along).max()])
        rate = jnp.minimum(size / jnp.where(last[0] > 0, last[0], 1.0), 0.99)
        worst = jnp.maximum(rate, last[1]).max()
        change = capped(centred(rest + product(along, chosen.astype(along.dtype)), active))
        kept = tuple(jnp.where(running, new, old) for new, old in zip((size, rate), last, strict=True))
        return SolveStep(change, grad, kept, abs(change).max() * worst / (1 - worst))

    nothing = jnp.full(2, jnp.inf, start.dtype), jnp.full(2, 0.99, start.dtype)
    return loop(step, start, nothing, terms)[0]


def _as_kept(theta: Float[Array, "P *lanes"], table: Table) -> tuple[Float[Array, "P *lanes"], Table]:
    """Return both as they are, for one step of a loop.

    XLA would otherwise move the conversion of the counts to floats out of the loop, and read twice the bytes in it.
    """
    if namespace(theta) is np:
        return theta, table
    kept: tuple[Array, Table] = lax.optimization_barrier((theta, table))
    return kept


def information(
    link: Link, theta: Float[Array, "*lanes M"], table: PairTable, ridge: Real[Array, ""]
) -> Float[Array, "*lanes M M"]:
    """Return the negative Hessian of the penalised log-likelihood."""
    v = pair_tables.curvature(link, theta, table)
    diagonal = v.sum(-1) + 2 * ridge
    if namespace(theta) is np:  # in place: lanes have large tables
        matrix: Any = np.negative(v)
        np.einsum("...ii->...i", matrix)[...] += diagonal
        return matrix
    return jnp.diag(diagonal) - v


def _gradient_and_information(
    link: Link, theta: Float[Array, "M *lanes"], table: PairTable, ridge: Real[Array, ""]
) -> tuple[Float[Array, "M *lanes"], Float[Array, "*lanes M M"]]:
    """Return both; those of the logit on the host from one pass of divisions, and in place."""
    if namespace(theta) is not np or link != Link.LOGIT:
        grad = pair_tables.gradient(link, theta.T, table, ridge).T
        return grad, information(link, theta.T, table, ridge)
    e: Any = np.exp(theta.T)
    matrix: Any = e[..., None] + e[..., None, :]
    np.divide(e[..., None], matrix, out=matrix)
    expected = table.n * matrix
    matrix *= expected
    matrix -= expected
    np.einsum("...ii->...i", matrix)[...] += 2 * ridge - row_sums(matrix)
    return (table.score - row_sums(expected)).T - 2 * ridge * theta, matrix


def inverse_information(
    link: Link, theta: Float[Array, "M"], table: PairTable, ridge: Real[Array, ""], active: Bool[Array, "M"]
) -> tuple[Float[Array, "M M"], Float[Array, "M"]]:
    """Return the pseudo-inverse of the ``active`` models' information, and the diagonal of the information itself."""
    return inverse_and_diagonal(information(link, theta, table, ridge), active, len(active), ridge)


class _Best(NamedTuple):
    """The point from which the last step was taken."""

    theta: Float[Array, "M"]
    value: Float[Array, ""]  # penalised log-likelihood there
    is_concave: Bool[Array, ""]  # whether it is concave there


def newton_firth(
    table: PairTable, active: Bool[Array, "M"], terms: Terms, start: Float[Array, "M"] | None = None
) -> Solution:
    """Maximise the log-likelihood + 1/2 log det information of logits, from ``start`` or from equal strengths.

    That is the likelihood times Jeffreys' prior (Firth 1993, DOI 10.1093/biomet/80.1.27). Its gradient is that of a
    table in which every pair has h more battles and either side h / 2 more points, h being the pair's leverage: the sum
    of the hat values of its battles (Kosmidis and Firth 2009, DOI 10.1093/biomet/asp055). The maximum is finite for all
    models that met, directly or through others (Kosmidis and Firth 2021, DOI 10.1093/biomet/asaa052).

    Far from the maximum the penalty may be convex: steps are then those of the table with leverages, whose information
    is positive. A step that loses penalised likelihood is halved. A fit that ends between two maxima has not converged:
    a model that beat a far weaker one and lost to a far stronger one may have its maximum near either. ``table`` holds
    wins, but no battles of models that are not ``active``, whose theta stays 0; ``terms`` have no ridge.
    """
    xp = namespace(table.n)
    if start is None:
        start = xp.zeros_like(table.score)
    wins = xp.asarray(table.wins)  # tables for this fit have them

    def solve(matrices: Array, right: Array) -> tuple[Array, Array]:
        moves = xp.broadcast_to(active, matrices.shape[:-1])
        matrices, shift = regular(matrices, moves, len(active), terms.ridge)
        solution, log_det = solved_and_log_det(matrices, xp.broadcast_to(right, (*moves.shape, right.shape[-1])))
        return solution, log_det - xp.log(shift)  # without the curvature that `regular` gave the common shift

    def step(theta: Array, _: Array, best: _Best) -> SolveStep:
        e = xp.exp(theta)
        p, q = share(e[:, None], e), share(e, e[:, None])
        v = table.n * p * q
        inverse, log_det = solve(_laplacian(v), xp.eye(len(theta), dtype=theta.dtype))
        variance = xp.diagonal(inverse)
        leverage = v * (variance[:, None] + variance - 2 * inverse)
        value = xp.sum(xp.where(wins > 0, wins * xp.log(p), 0.0)) + log_det / 2
        grad = table.score + row_sums(leverage / 2 - (table.n + leverage) * p)
        bent = _laplacian(v + leverage * (3 * p * q - 0.5)) + _squared_products(v * (q - p), inverse) / 2
        # In one call: jaxlib's LAPACK shares batches out to the threads of XLA, and two calls side by side, one on
        # each of two threads, wait for each other's share for ever.
        systems = xp.stack([bent, _laplacian(v + leverage * p * q)])
        (exact, adjusted), log_dets = solve(systems, grad[:, None])
        is_concave = xp.isfinite(log_dets[0])
        ahead = capped(centred(xp.where(is_concave, exact, adjusted)[:, 0], active))
        rounding = 100 * xp.finfo(theta.dtype).eps * xp.abs(value)
        gains = value >= best.value - rounding
        here = _Best(theta, value, is_concave)
        kept = _Best(*(xp.where(gains, new, old) for new, old in zip(here, best, strict=True)))
        return SolveStep(xp.where(gains, ahead, (best.theta - theta) / 2), grad, kept)

    nowhere = _Best(start, xp.full_like(start, -xp.inf, shape=()), xp.bool_(False))
    end, best = loop(step, centred(start, active), nowhere, terms)
    between = (end.status == Status.CONVERGED) & ~best.is_concave
    return end._replace(status=xp.where(between, xp.int8(Status.STEP_LIMIT), end.status))


def _laplacian(v: Float[Array, "M M"]) -> Float[Array, "M M"]:
    """Return sum_e v_e b_e b_e' over pairs e = (i, j), b_e being 1 for i, -1 for j."""
    xp = namespace(v)
    return xp.diag(row_sums(v)) - v


def _squared_products(u: Float[Array, "M M"], c: Float[Array, "M M"]) -> Float[Array, "M M"]:
    """Return sum_ef u_e u_f (b_e' C b_f)^2 b_e b_f' over pairs e and f, in five products of tables; u_ij = -u_ji.

    With u the slopes of the information's weights and C its inverse, it is minus the part of the second derivatives of
    log det that comes from two pairs.
    """
    square, total, uc = c * c, row_sums(u), product(u, c)
    us, crossed, mixed = product(u, square), product(uc, u.T), product(c * uc, u.T)
    # Each entry is the sum of u_ka u_lb (c_kl - c_kb - c_al + c_ab)^2 over a and b, term by term.
    half = total * us - 2 * total * c * uc - 2 * mixed
    return half + half.T + total[:, None] * total * square + product(us, u.T) + 2 * c * crossed + 2 * uc * uc.T
