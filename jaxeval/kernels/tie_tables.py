"""Tie models on an (M, M) table of pairs, without covariates: sufficient statistics, and the score of all parameters.

The parameters phi (M + 1,) are the log-strengths and the tie parameter t. One problem at a time.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from jaxeval.kernels.kinds import Float, Num, Real
from jaxeval.kernels.likelihood import quotient_sums
from jaxeval.kernels.pair_tables import Layout, oriented, row_sums
from jaxeval.kernels.resample import Packing
from jaxeval.kernels.tie_models import TieModel


class TieTable(NamedTuple):
    """The sufficient statistics of one tie model: two numbers of every pair, or a sum for each model."""

    # Weight of battles between i and j. Davidson: of all; Rao and Kupper: of those that i did not lose.
    battles: Num[Array, "M M"]
    # Davidson: sum of weight * target over the battles of i; Rao and Kupper: the transpose of ``battles``.
    own: Float[Array, "M"] | Num[Array, "M M"]
    ties: Float[Array, ""]  # weight of all ties


def tie_table(
    model: TieModel, layout: Layout, dense: tuple[Num[Array, "M M"], ...], packing: Packing, dtype: type
) -> TieTable:
    """The table from gathered statistics, ties among them; sums in ``dtype``."""
    n, points, ties = oriented(layout, dense, packing, dtype)
    n_ties = jnp.sum(row_sums(ties.astype(dtype))) / 2
    if model == TieModel.DAVIDSON:
        return TieTable(n, row_sums(points.astype(dtype)), n_ties)
    return TieTable(points + ties / 2, n - points + ties / 2, n_ties)


def gradient(model: TieModel, phi: Float[Array, "P"], table: TieTable, ridge: Real[Array, "P"]) -> Float[Array, "P"]:
    """Gradient of the penalised log-likelihood; M must be a multiple of 4."""
    of_models, of_t = (_davidson if model == TieModel.DAVIDSON else _rao_kupper)(phi[:-1], phi[-1], table)
    return jnp.append(of_models, of_t) - 2 * ridge * phi


def _davidson(theta: Float[Array, "M"], t: Float[Array, ""], table: TieTable) -> tuple[Array, Array]:
    """Score of log-strengths and of t.

    With a = exp(theta / 2), nu = exp(t) and w_ij = n_ij / (a_i^2 + nu a_i a_j + a_j^2), model i wins a_i^2 sum_j w_ij
    battles on average, and ties nu a_i sum_j w_ij a_j.
    """
    a, nu = jnp.exp(theta / 2), jnp.exp(t)
    own, square = a[:, None], a**2

    def total(block: slice) -> Array:
        return (square[:, None] + square[block]) + nu * own * a[block]

    def battles(block: slice) -> Array:
        return table.battles[:, block].astype(theta.dtype)

    wins = square * quotient_sums(len(a), lambda block: (battles(block), total(block)))
    ties = nu * a * quotient_sums(len(a), lambda block: (battles(block) * a[block], total(block)))
    return table.own - wins - ties / 2, table.ties - jnp.sum(ties) / 2


def _rao_kupper(theta: Float[Array, "M"], t: Float[Array, ""], table: TieTable) -> tuple[Array, Array]:
    """Score of log-strengths and of t.

    With e = exp(theta) and b = e exp(t), model i beats j with probability f_ij = e_i / (e_i + b_j), and they tie with
    probability (exp(2 t) - 1) f_ij f_ji. The log-likelihood is sum_ij battles_ij log f_ij + ties log(exp(2 t) - 1).
    """
    e, b = jnp.exp(theta), jnp.exp(theta + t)

    def up(block: slice) -> tuple[Array, Array]:
        return table.battles[:, block].astype(theta.dtype) * b[block], e[:, None] + b[block]

    def down(block: slice) -> tuple[Array, Array]:
        return table.own[:, block].astype(theta.dtype), b[:, None] + e[block]

    rises = quotient_sums(len(e), up)
    return rises - b * quotient_sums(len(e), down), -2 / jnp.expm1(-2 * t) * table.ties - jnp.sum(rises)
