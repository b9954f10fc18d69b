"""Battles with covariates as rows: their sums for many resamples at once, gradient and information among them.

The parameters phi (P,) are M log-strengths, D coefficients and the tie parameter t (unused where ties are half a win);
a row's z is theta_first - theta_second + feature . coefficient. Rows do not compress into cells. So lanes are the last
axis here, except in the information: a row's constants are read once for all R lanes, and the weights of rows exist for
only R lanes at a time.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from jaxeval.kernels import tie_models
from jaxeval.kernels.additions import added
from jaxeval.kernels.kinds import Bool, Float, Int32, Integer, Num
from jaxeval.kernels.tie_models import Response


class Rows(NamedTuple):
    """Rows in T blocks of E groups of G rows, or those of one block; a group's rows are of one pair.

    Padding has factor 0.
    """

    feature: Float[Array, "... E G D"]
    target: Float[Array, "... E G"]  # of the pair's first model
    factor: Float[Array, "... E G"]  # weight of one draw of the row's unit
    unit: Int32[Array, "... E G"]  # the unit of a (K, Q) grid of draws, row-major
    first: Int32[Array, "... E"]
    second: Int32[Array, "... E"]
    n_blocks: Int32[Array, ""]  # blocks in use


def _block(rows: Rows, t: Integer[Array, ""]) -> Rows:
    return rows._replace(**{name: getattr(rows, name)[t] for name in Rows._fields[:-1]})


def over_blocks(rows: Rows, add: Callable[[Rows, Array, Any], Any], zero: Any) -> Any:
    """The total after ``add(block, its number, total)`` of all blocks in use, one after the other, from ``zero`` on."""
    return lax.fori_loop(0, rows.n_blocks, lambda t, total: add(_block(rows, t), t, total), zero)


def predictor(block: Rows, phi: Float[Array, "P R"], n_models: int) -> Float[Array, "E G R"]:
    """The z of a block's rows."""
    pair = phi[block.first] - phi[block.second]
    z = jnp.broadcast_to(pair[:, None], (*block.target.shape, phi.shape[1]))
    for d in range(block.feature.shape[-1]):  # unrolled, it fuses with what follows; a product does not
        z = z + block.feature[..., d, None] * phi[n_models + d]
    return z


def add_score(
    block: Rows, total: Float[Array, "P R"], z: Float[Array, "E G R"], t: Float[Array, "E G R"] | None, n_models: int
) -> Float[Array, "P R"]:
    """``total`` plus a block's sums of weighted scores: ``z``, the derivatives by z, and ``t``, those by t."""
    # In the precision of the total: few lanes are added in another order than many, and this makes no difference then.
    z = z.astype(total.dtype)
    of_group = jnp.sum(z, 1)
    total = added(total, (block.first, of_group), (block.second, -of_group))
    n_rows, n_features = z.shape[0] * z.shape[1], block.feature.shape[-1]
    if n_features:
        feature = block.feature.reshape(n_rows, n_features).astype(z.dtype)
        of_features = jnp.matmul(feature.T, z.reshape(n_rows, -1), precision="highest")
        total = total.at[n_models : n_models + n_features].add(of_features)
    return total if t is None else total.at[-1].add(jnp.sum(t, (0, 1)))


def counts_of_rows(rows: Rows, drawn: Num[Array, "units R"]) -> Num[Array, "T E G R"]:
    """Draws of every row's unit, from those of all units; 0 in blocks that are not in use."""

    def gather(t: Array, count: Array) -> Array:
        return count.at[t].set(drawn.at[rows.unit[t]].get(mode="promise_in_bounds"))

    return lax.fori_loop(0, rows.n_blocks, gather, jnp.zeros((*rows.unit.shape, drawn.shape[1]), drawn.dtype))


def among(rows: Rows, count: Num[Array, "T E G R"], active: Bool[Array, "M R"]) -> Num[Array, "T E G R"]:
    """``count`` of battles between ``active`` models, 0 for all others."""
    both = active[rows.first] & active[rows.second]
    return jnp.where(both[:, :, None], count, jnp.zeros((), count.dtype))


def pair_tables(
    rows: Rows, count: Num[Array, "T E G R"], n_models: int
) -> tuple[Float[Array, "R {n_models} {n_models}"], Float[Array, "R {n_models} {n_models}"]]:
    """Weights of battles and of wins of i against j."""
    n_lanes = count.shape[-1]

    def add(block: Rows, t: Array, total: tuple[Array, Array]) -> tuple[Array, Array]:
        weight = count[t] * block.factor[..., None]
        won = weight * block.target[..., None]
        there, back = block.first * n_models + block.second, block.second * n_models + block.first
        n, wins = total
        of_group, of_first, of_second = jnp.sum(weight, 1), jnp.sum(won, 1), jnp.sum(weight - won, 1)
        return added(n, (there, of_group), (back, of_group)), added(wins, (there, of_first), (back, of_second))

    zero = jnp.zeros((n_models**2, n_lanes))
    tables = over_blocks(rows, add, (zero, zero))
    n, wins = (x.T.reshape(n_lanes, n_models, n_models) for x in tables)
    return n, wins


def weighted(
    model: Response, block: Rows, phi: Float[Array, "P R"], count: Num[Array, "E G R"], n_models: int
) -> tuple[tie_models.Score, tie_models.Information]:
    """Scores and information (E, G, R) of a block's rows at ``phi``, times their weights."""
    z, target, t = predictor(block, phi, n_models), block.target[..., None], phi[-1]
    weight = count * block.factor[..., None]
    score = tie_models.Score(*(weight * x for x in tie_models.score(model, target, z, t)))
    return score, tie_models.Information(*(weight * x for x in tie_models.information(model, target, z, t)))


def add_diagonal(
    block: Rows, total: Float[Array, "P R"], of_rows: tie_models.Information, n_models: int
) -> Float[Array, "P R"]:
    """``total`` plus what the rows of a block (E, G, R) add to the diagonal of the information."""
    of_group = jnp.sum(of_rows.zz, 1)
    total = added(total, (block.first, of_group), (block.second, of_group))
    n_features = block.feature.shape[-1]
    if n_features:
        squares = block.feature.reshape(-1, n_features) ** 2
        of_features = jnp.matmul(squares.T, of_rows.zz.reshape(len(squares), -1), precision="highest")
        total = total.at[n_models : n_models + n_features].add(of_features)
    return total.at[-1].add(jnp.sum(of_rows.tt, (0, 1)))


def derivatives(
    model: Response, rows: Rows, phi: Float[Array, "P R"], count: Num[Array, "T E G R"], ridge: Float[Array, "P"]
) -> tuple[Float[Array, "P R"], Float[Array, "R P P"]]:
    """Gradient and information of the penalised log-likelihood, l(phi) - sum ridge phi^2, by all parameters."""
    n_models, n_lanes = len(ridge) - rows.feature.shape[-1] - 1, phi.shape[1]

    def add(block: Rows, t: Array, total: tuple[Array, _Parts]) -> tuple[Array, _Parts]:
        score, information = weighted(model, block, phi, count[t], n_models)
        grad = add_score(block, total[0], score.z, score.t, n_models)
        return grad, _add_information(block, total[1], information, n_models)

    grad, parts = over_blocks(rows, add, (jnp.zeros(phi.shape), _no_information(rows, n_models, n_lanes)))
    return grad - 2 * ridge[:, None] * phi, _assembled(parts, n_models, n_lanes) + 2 * jnp.diag(ridge)


#: Information of pairs of models, of models with the N = D + 1 other parameters, and of the others among themselves.
_Parts = tuple[Float[Array, "pairs R"], Float[Array, "M N R"], Float[Array, "N N R"]]


def _no_information(rows: Rows, n_models: int, n_lanes: int) -> _Parts:
    n_others = rows.feature.shape[-1] + 1
    shapes = (n_models**2,), (n_models, n_others), (n_others, n_others)
    pairs, cross, others = (jnp.zeros((*shape, n_lanes)) for shape in shapes)
    return pairs, cross, others


def _add_information(block: Rows, total: _Parts, of_rows: tie_models.Information, n_models: int) -> _Parts:
    """The parts ``total`` of the information plus what the rows of a block (E, G, R) add."""
    pairs, cross, others = total
    zz, zt, tt = of_rows
    pairs = added(pairs, (block.first * n_models + block.second, jnp.sum(zz, 1)))
    feature = block.feature
    # (E, D + 1, R): of a group's pair with every other parameter.
    of_group = jnp.concatenate(
        [jnp.einsum("egd,egr->edr", feature, zz, precision="highest"), jnp.sum(zt, 1)[:, None]], 1
    )
    cross = added(cross, (block.first, of_group), (block.second, -of_group))
    features = jnp.einsum("egd,egc,egr->dcr", feature, feature, zz, precision="highest")
    with_t = jnp.einsum("egd,egr->dr", feature, zt, precision="highest")
    n_features = feature.shape[-1]
    others = others.at[:n_features, :n_features].add(features)
    others = others.at[:n_features, -1].add(with_t).at[-1, :n_features].add(with_t)
    return pairs, cross, others.at[-1, -1].add(jnp.sum(tt, (0, 1)))


def _assembled(parts: _Parts, n_models: int, n_lanes: int) -> Float[Array, "R P P"]:
    """The information of all parameters from its parts."""
    pairs, cross, others = (jnp.moveaxis(x, -1, 0) for x in parts)
    v = pairs.reshape(n_lanes, n_models, n_models)
    v = v + jnp.swapaxes(v, 1, 2)
    strengths = jnp.sum(v, 2)[:, :, None] * jnp.eye(n_models) - v
    above = jnp.concatenate([strengths, cross], 2)
    return jnp.concatenate([above, jnp.concatenate([jnp.swapaxes(cross, 1, 2), others], 2)], 1)
