"""Build the (M, M) tables that a fit needs from the draws of a resample, and the log-likelihood on them.

sum_ij y_ij log F(theta_i - theta_j) - ridge * ||theta||^2 with F the probability of the link, y_ij = weight * target
(Eq. 1 of arXiv:2606.13221). For the logit, and e = exp(theta), F(theta_i - theta_j) = e_i / (e_i + e_j): M exponentials
instead of M^2.

On the host, tables and strengths may have lanes as leading axes.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxeval.kernels.kinds import Array, Float, Int32, Integer, Num, Real, UInt, namespace
from jaxeval.kernels.links import Link, bend, log_probability, score_of_points, share
from jaxeval.kernels.platforms import added
from jaxeval.kernels.resample import Packing
from jaxeval.lazy_names import jax, jnp


class PairTable(NamedTuple):
    """The sufficient statistics of one Bradley-Terry problem."""

    n: Num[Array, "*lanes M M"]  # symmetric, zero diagonal: total weight of the battles between i and j
    score: Float[Array, "*lanes M"]  # sum of weight * target over the battles of i
    wins: Num[Array, "*lanes M M"] | None = None  # sum of weight * target of i against j, where asked for


class Layout(NamedTuple):
    """Which entries a unit adds to: a grid whose columns belong to pairs, targets being their first model's."""

    # The pair of (i, j) and (j, i); the last, an empty one, if they never met. Of no models where no tables are wanted.
    position: Int32[Array, "... models models"]
    # Factor on every battle of a pair; of P pairs where no tables are wanted.
    pair_weight: Float[Array, "... models models"] | Float[Array, "... P"] | None = None
    weight: Float[Array, "... rows columns"] | None = None  # of one battle of the entry; None where draws are packed
    target: Float[Array, "... rows columns"] | None = None  # its target
    unit: Int32[Array, "... rows columns"] | None = None  # the entry's unit, where units are not entries
    pair: Int32[Array, "... columns"] | None = None  # the pair of each column, where pairs span several columns


def pair_statistics(
    layout: Layout, draws: Num[Array, "K Q"] | UInt[Array, "Q"], n_pairs: int, keep_ties: bool = False
) -> tuple[Num[Array, "{n_pairs}"], ...]:
    """Sum the ``draws`` per pair: one packed word, or weight, weight * target, and, if kept, weight of ties."""
    columns: tuple[Array, ...] = (draws,)
    if layout.weight is not None and layout.target is not None:
        entries = draws if layout.unit is None else draws.reshape(-1)[layout.unit]
        weight = entries * layout.weight
        shares: list[Any] = [1.0, layout.target, *([layout.target == 0.5] if keep_ties else [])]
        columns = tuple((weight * share).sum(0) for share in shares)
    if layout.pair is None:
        return columns
    pair = layout.pair
    xp = namespace(pair)
    if xp is np:
        sums = tuple(xp.zeros(n_pairs, x.dtype) for x in columns)
        for of_pairs, x in zip(sums, columns, strict=True):
            xp.add.at(of_pairs, pair, x)  # exact, as packed words ask for
        return sums
    if not np.issubdtype(columns[0].dtype, np.floating):
        return tuple(jax.ops.segment_sum(x, pair, n_pairs) for x in columns)
    return tuple(added(jnp.zeros(n_pairs, x.dtype), (pair, x)) for x in columns)


def spread(layout: Any, statistics: tuple[Num[Array, "P"], ...]) -> tuple[Num[Array, "models models"], ...]:
    """Gather per-pair ``statistics`` to tables, by the ``position`` of a layout."""
    flat = layout.position.reshape(-1)
    return tuple(x.at[flat].get(mode="promise_in_bounds").reshape(layout.position.shape) for x in statistics)


def of_rows(
    first: Num[Array, "*lanes K M"], n: Num[Array, "*#lanes K M"], models: Integer[Array, "K"] | None = None
) -> Num[Array, "*lanes K M"]:
    """Return what the row's model has of ``n``, from what the ``first`` model of each pair has: the lower one.

    The rows are those of all models, or of some ``models``.
    """
    xp = namespace(n)
    i = xp.arange(n.shape[-1])
    return xp.where((i if models is None else models)[:, None] < i, first, n - first)


def row_sums(table: Num[Array, "*lanes rows columns"]) -> Num[Array, "*lanes rows"]:
    """Sum rows by a product with ones: XLA's CPU reduction of a fused (M, M) expression is several times slower."""
    if namespace(table) is np:
        return np.matmul(table, np.ones(table.shape[-1], table.dtype))
    return jnp.matmul(table, jnp.ones(table.shape[-1], table.dtype), precision="highest")


def points(wins: Num[Array, "*lanes rows columns"]) -> Num[Array, "*lanes rows"]:
    """Sum rows of ``wins``, which are made as they are read: four blocks of columns are added before any is written."""
    quarter, rest = divmod(wins.shape[-1], 4)
    if namespace(wins) is np or rest:
        return row_sums(wins)
    return row_sums(sum((wins[:, k * quarter : (k + 1) * quarter] for k in range(1, 4)), wins[:, :quarter]))


def unpacked(
    statistics: tuple[Num[Array, "*shape"], ...], packing: Packing, dtype: type
) -> tuple[Float[Array, "*shape"], ...]:
    """Return weights of battles, what the first model took of them, and the ties if kept, from per-pair ``statistics``.

    Counts in halves or thirds of 32-bit words (16 or 10 bits), or in thirds of 64-bit words (21 bits), are exact in
    single precision, which halves what the solver reads. Counts in halves of 64-bit words are not: they come in
    ``dtype``.
    """
    if packing.word is None:
        return tuple(x.astype(dtype) for x in statistics)
    (word,) = statistics
    exact = np.float32 if packing.bits < 24 else dtype
    n, twice_first, *ties = packing.fields(word)
    return n.astype(exact), 0.5 * twice_first.astype(exact), *(x.astype(exact) for x in ties)


def oriented(
    layout: Layout, dense: tuple[Num[Array, "M M"], ...], packing: Packing, dtype: type,
    models: Integer[Array, "K"] | None = None,
) -> tuple[Float[Array, "_ M"], ...]:  # fmt: skip
    """Return weights of battles, what the row's model took of them, and the ties if kept, from gathered statistics.

    The rows are those of all models, or of some ``models``; rows of model M are empty.
    """
    if models is not None:
        dense = tuple(x.at[models].get(mode="fill", fill_value=0) for x in dense)
    n, first, *ties = unpacked(dense, packing, dtype)
    if packing.word is None:  # sums of weights: who won all battles of a pair may lack rounding, which is no loss
        first = namespace(n).where(abs(n - first) <= 4 * np.finfo(n.dtype).eps * n, n, first)
    tables = n, of_rows(first, n, models), *ties
    if layout.pair_weight is None:
        return tables
    weight = layout.pair_weight if models is None else layout.pair_weight.at[models].get(mode="fill", fill_value=0)
    return tuple(x * weight.astype(dtype) for x in tables)


def pair_table(
    layout: Layout, dense: tuple[Num[Array, "M M"], ...], packing: Packing, dtype: type, keep_wins: bool
) -> PairTable:
    """Return the table from gathered statistics, scores in ``dtype``."""
    n, wins = oriented(layout, dense, packing, dtype)
    return table_of(n, wins, dtype, keep_wins)


def table_of(
    n: Float[Array, "*lanes M M"], wins: Float[Array, "*lanes M M"], dtype: type, keep_wins: bool
) -> PairTable:
    """Return the table of weights ``n`` and ``wins``, scores in ``dtype``."""
    return PairTable(n, points(wins).astype(dtype), wins if keep_wins else None)


def log_likelihood(
    link: Link, theta: Float[Array, "M"], wins: Num[Array, "M M"], ridge: Real[Array, ""]
) -> Float[Array, ""]:
    """Return the penalised log-likelihood of log-strengths given ``wins``."""
    log_prob = log_probability(link, theta[:, None] - theta)
    return jnp.sum(jnp.where(wins > 0, wins * log_prob, 0.0)) - ridge * jnp.sum(theta**2)


def expected_score(theta: Float[Array, "*lanes M"], n: Num[Array, "*#lanes M M"]) -> Float[Array, "*lanes M"]:
    """Return expected scores sum_j n_ij e_i / (e_i + e_j) of the logit; of JAX's arrays M must be a multiple of 4.

    The product of four strengths overflows only where |theta| exceeds 170 in double and 20 in single precision.
    """
    xp = namespace(theta)
    e = xp.exp(theta)
    if xp is np:  # where divisions take no longer than what would stand for them; in place, as new memory takes longer
        quotient: Any = e[..., None] + e[..., None, :]
        return e * row_sums(np.divide(n, quotient, out=quotient))
    return e * quotient_sums(n.shape[1], lambda block: (n[:, block].astype(theta.dtype), e[:, None] + e[block]))


def quotient_sums(
    n_columns: int, terms: Callable[[slice], tuple[Float[Array, "M columns"], Float[Array, "M columns"]]]
) -> Float[Array, "M"]:
    """Return row sums of a quotient, whose dividend and divisor ``terms`` gives for a block of columns.

    Four columns share one division (a / x + b / y = (a y + b x) / (x y)), which is what limits such a pass.
    """
    quarter = n_columns // 4
    (a, w), (b, x), (c, y), (d, z) = (terms(slice(k * quarter, (k + 1) * quarter)) for k in range(4))
    wx, yz = w * x, y * z
    return row_sums(((a * x + b * w) * yz + (c * z + d * y) * wx) / (wx * yz))


def gradient(
    link: Link, theta: Float[Array, "*lanes M"], table: PairTable, ridge: Real[Array, ""]
) -> Float[Array, "*lanes M"]:
    """Return gradient of the penalised log-likelihood; all links but the logit need the table's wins."""
    if link == Link.LOGIT:
        return table.score - expected_score(theta, table.n) - 2 * ridge * theta
    wins = namespace(theta).asarray(table.wins)  # tables for this link have them
    z = theta[..., None] - theta[..., None, :]
    return row_sums(score_of_points(link, wins, table.n - wins, z)) - 2 * ridge * theta


def curvature(link: Link, theta: Float[Array, "*lanes M"], table: PairTable) -> Float[Array, "*lanes M M"]:
    """Pair weights v_ij of the observed information D - V, D = diag(row sums of V)."""
    if link == Link.LOGIT:
        e = namespace(theta).exp(theta)
        p = share(e[..., None], e[..., None, :])
        return table.n.astype(theta.dtype, copy=False) * p * (1 - p)
    bent = bend(link, theta[..., None] - theta[..., None, :]) * table.wins  # type: ignore[operator]
    return bent + bent.swapaxes(-1, -2)


def row_curvature(
    link: Link, theta: Float[Array, "M"], models: Int32[Array, "K"], n: Num[Array, "K M"], wins: Num[Array, "K M"]
) -> Float[Array, "K M"]:
    """Return rows of the `curvature` of some ``models``, from theirs of the table; those of model M are zero."""
    mine = theta.at[models].get(mode="fill", fill_value=0)[:, None]
    if link == Link.LOGIT:
        p = share(jnp.exp(mine), jnp.exp(theta))
        return n * p * (1 - p)
    return bend(link, mine - theta) * wins + bend(link, theta - mine) * (n - wins)
