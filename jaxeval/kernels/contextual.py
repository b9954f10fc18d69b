"""The maximum of the likelihood with covariates and tie models, for many resamples at once: four kinds of steps.

Lanes are the last axis, as in `kernels.battle_rows`.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from jaxeval.kernels import tie_models
from jaxeval.kernels.battle_rows import Rows, add_diagonal, add_score, derivatives, over_blocks, predictor, weighted
from jaxeval.kernels.kinds import Bool, Float, Num
from jaxeval.kernels.solve import (
    Solution,
    Step,
    Terms,
    capped,
    centred,
    iterate,
    loop,
    newton_cg_step,
    preconditioner,
    regular,
    solved,
)
from jaxeval.kernels.tie_models import NO_TIES, Response, TieModel


class Base(NamedTuple):
    """The rows at the full data's estimate, from which chord steps start."""

    z: Float[Array, "T E G"]
    score: tie_models.Score
    phi: Float[Array, "P"]
    inverse: Float[Array, "P P"]  # pseudo-inverse of the full data's information
    diagonal: Float[Array, "P"]  # of that information


def at_estimate(
    model: Response,
    rows: Rows,
    phi: Float[Array, "P"],
    n_models: int,
    inverse: Float[Array, "P P"],
    diagonal: Float[Array, "P"],
) -> Base:
    """The rows at ``phi``."""
    z = phi[rows.first] - phi[rows.second]
    z = z[..., None] + jnp.sum(rows.feature * phi[n_models:-1], -1)
    return Base(z, tie_models.score(model, rows.target, z, phi[-1]), phi, inverse, diagonal)


def chord(model: Response, rows: Rows, base: Base, count: Num[Array, "T E G R"], terms: Terms) -> Solution:
    """Steps by the full data's information, shared by all lanes, for resamples whose information is not far from it.

    The gradient is that of the resample at the full data's estimate, plus what has changed since. The change is small:
    where ties are half a win, and the link is the logit, single precision gives it to 1e-9 of a battle, at a third of
    the cost.
    """
    n_lanes, ridge = count.shape[-1], terms.ridge[:, None]
    n_models = len(base.phi) - rows.feature.shape[-1] - 1
    is_quick = model == Response(TieModel.HALF)

    def add_base(block: Rows, t: Array, total: Array) -> Array:
        weight = count[t] * block.factor[..., None]
        of_t = None if is_quick else weight * base.score.t[t][..., None]
        return add_score(block, total, weight * base.score.z[t][..., None], of_t, n_models)

    zero = jnp.zeros((len(base.phi), n_lanes))
    at_base = over_blocks(rows, add_base, zero) - 2 * ridge * base.phi[:, None]
    if is_quick:
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

        return over_blocks(single, add_half, zero) if is_quick else over_blocks(rows, add_any, zero)

    def step(moved: Array) -> tuple[Array, Array]:
        grad = at_base + change_of_score(moved) - 2 * ridge * moved
        return jnp.matmul(base.inverse, grad, precision="highest"), grad

    end = iterate(step, zero, terms.tolerance, terms.max_steps)
    return end._replace(theta=base.phi[:, None] + end.theta)


def alive(
    model: Response, rows: Rows, count: Num[Array, "T E G R"], active: Bool[Array, "M R"], free: Bool[Array, "D+1"]
) -> Bool[Array, "M+D+1 R"]:
    """Parameters that move: those of ``active`` models, and the ``free`` others.

    In a lane without ties, t is at its limit, and does not move either. ``count`` is that of `among` active models.
    """

    def add(block: Rows, t: Array, total: Array) -> Array:
        tied = block.factor * (block.target == 0.5)
        return total + jnp.einsum("egr,eg->r", count[t].astype(jnp.float64), tied, precision="highest")

    others = jnp.broadcast_to(free[:, None], (len(free), active.shape[1]))
    if model.ties != TieModel.HALF:
        n_ties = over_blocks(rows, add, jnp.zeros(active.shape[1]))
        others = others.at[-1].set(free[-1] & (n_ties > 0))
    return jnp.concatenate([active, others])


def _at_limit(model: Response, phi: Float[Array, "P #R"], moves: Bool[Array, "P R"]) -> Float[Array, "P R"]:
    """``phi`` for every lane, with t at its limit where it does not move."""
    phi = jnp.broadcast_to(phi, moves.shape)
    return phi.at[-1].set(jnp.where(moves[-1], phi[-1], NO_TIES[model.ties]))


def newton(
    model: Response,
    rows: Rows,
    start: Float[Array, "P #R"],
    count: Num[Array, "T E G R"],
    moves: Bool[Array, "P R"],
    terms: Terms,
) -> tuple[Solution, Float[Array, "R P P"]]:
    """Newton's method by each lane's own information, from ``start``, for the parameters that ``moves``.

    ``count`` is that of `among` models that move. It returns the information of the last step, too, which is that of
    the solution up to the tolerance.
    """
    ridge = terms.ridge
    n_models, n_lanes = len(ridge) - rows.feature.shape[-1] - 1, moves.shape[1]

    def step(phi: Array, _: Array, __: Array) -> Step:
        grad, matrix = derivatives(model, rows, phi, count, ridge)
        grad = jnp.where(moves, grad, 0.0)
        change = solved(regular(matrix, moves.T, n_models, ridge[0])[0], grad.T).T
        change = change.at[:n_models].set(centred(change[:n_models], moves[:n_models]))
        return Step(_damped(model, phi, jnp.where(moves, change, 0.0)), grad, matrix)

    matrix = jnp.zeros((n_lanes, len(ridge), len(ridge)))
    return loop(step, _at_limit(model, start, moves), matrix, terms.tolerance, terms.max_steps)


def _damped(model: Response, phi: Float[Array, "P R"], change: Float[Array, "P R"]) -> Float[Array, "P R"]:
    """``change`` of each lane, shrunk where it is too long; a threshold t stays positive."""
    change = capped(change)
    return change.at[-1].max(-0.75 * phi[-1]) if model.ties == TieModel.RAO_KUPPER else change


def _preconditioner(
    base: Base, moves: Bool[Array, "P R"], diagonal: Float[Array, "P R"], ridge: Float[Array, "P"], n_models: int
) -> Callable[[Array], Array]:
    """The preconditioner of `solve`, for the parameters that ``moves``."""
    apply = preconditioner(base.inverse, base.diagonal, diagonal, ridge[0], n_models)
    return lambda r: jnp.where(moves, apply(r), 0.0)


def scaled_chord(
    model: Response, rows: Rows, base: Base, count: Num[Array, "T E G R"], moves: Bool[Array, "P R"], terms: Terms
) -> Solution:
    """Chord steps scaled to each lane's own curvature: for boards on which some models have few battles.

    Each step is one pass over the rows, in double precision; ``count`` is that of `among` models that move.
    """
    ridge = terms.ridge
    n_models = len(ridge) - rows.feature.shape[-1] - 1

    def step(phi: Array) -> tuple[Array, Array]:
        def add(block: Rows, t: Array, total: tuple[Array, Array]) -> tuple[Array, Array]:
            score, information = weighted(model, block, phi, count[t], n_models)
            grad = add_score(block, total[0], score.z, score.t, n_models)
            return grad, add_diagonal(block, total[1], information, n_models)

        zero = jnp.zeros(phi.shape)
        grad, diagonal = over_blocks(rows, add, (zero, zero))
        grad, diagonal = _with_ridge(phi, grad, diagonal, moves, ridge)
        return _damped(model, phi, _preconditioner(base, moves, diagonal, ridge, n_models)(grad)), grad

    return iterate(step, _at_limit(model, base.phi[:, None], moves), terms.tolerance, terms.max_steps)


def _with_ridge(
    phi: Float[Array, "P R"],
    grad: Float[Array, "P R"],
    diagonal: Float[Array, "P R"],
    moves: Bool[Array, "P R"],
    ridge: Float[Array, "P"],
) -> tuple[Float[Array, "P R"], Float[Array, "P R"]]:
    """Gradient and diagonal with those of the ridge, for the parameters that ``moves``; 0 for the others."""
    grad, diagonal = grad - 2 * ridge[:, None] * phi, diagonal + 2 * ridge[:, None]
    return jnp.where(moves, grad, 0.0), jnp.where(moves, diagonal, 0.0)


def newton_cg(
    model: Response, rows: Rows, base: Base, count: Num[Array, "T E G R"], moves: Bool[Array, "P R"], terms: Terms
) -> Solution:
    """Newton's method with steps by preconditioned conjugate gradients: for resamples of sparse boards.

    As `dense_solve.newton_cg`, but a pass over the rows gives each product with the information: on wide boards this is
    far cheaper than an (M, M) table for every lane. ``count`` is that of `among` models that move.
    """
    ridge = terms.ridge
    n_models, n_lanes = len(ridge) - rows.feature.shape[-1] - 1, moves.shape[1]

    def curvature(phi: Array) -> tuple[Array, Array, tie_models.Information]:
        """Gradient and diagonal (P, R), and the information of every row; that of t is summed over the rows (R,)."""

        def add(block: Rows, t: Array, total: tuple[Array, ...]) -> tuple[Array, ...]:
            grad, diagonal, zz, zt, tt = total
            score, information = weighted(model, block, phi, count[t], n_models)
            grad = add_score(block, grad, score.z, score.t, n_models)
            diagonal = add_diagonal(block, diagonal, information, n_models)
            zt = zt if model.ties == TieModel.HALF else zt.at[t].set(information.zt)
            return grad, diagonal, zz.at[t].set(information.zz), zt, tt + jnp.sum(information.tt, (0, 1))

        by_row = jnp.zeros((*rows.target.shape, n_lanes))
        of_ties = jnp.zeros((1, 1, 1, 1)) if model.ties == TieModel.HALF else by_row
        zero = jnp.zeros(phi.shape), jnp.zeros(phi.shape), by_row, of_ties, jnp.zeros(n_lanes)
        grad, diagonal, zz, zt, tt = over_blocks(rows, add, zero)
        return *_with_ridge(phi, grad, diagonal, moves, ridge), tie_models.Information(zz, zt, tt)

    def product(of_rows: tie_models.Information, p: Array) -> Array:
        def add(block: Rows, t: Array, total: Array) -> Array:
            z = predictor(block, p, n_models)
            along = of_rows.zz[t] * z
            if model.ties == TieModel.HALF:
                return add_score(block, total, along, None, n_models)
            return add_score(block, total, along + of_rows.zt[t] * p[-1], of_rows.zt[t] * z, n_models)

        found = over_blocks(rows, add, jnp.zeros(p.shape)) + 2 * ridge[:, None] * p
        return jnp.where(moves, found.at[-1].add(of_rows.tt * p[-1]), 0.0)

    def step(phi: Array) -> tuple[Array, Array]:
        grad, diagonal, of_rows = curvature(phi)
        precondition = _preconditioner(base, moves, diagonal, ridge, n_models)
        change = newton_cg_step(lambda p: product(of_rows, p), precondition, diagonal, grad)
        return _damped(model, phi, change), grad

    return iterate(step, _at_limit(model, base.phi[:, None], moves), terms.tolerance, terms.max_steps)
