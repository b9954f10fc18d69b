"""Probabilities of win, tie and loss by the difference z of two log-strengths: score and information of one battle.

All are concave in (z, t), t being the tie parameter. Functions broadcast, and take arrays of NumPy as well as of JAX;
those of tables take one (M, M) table of pairs of JAX, without covariates, whose parameters phi (M + 1,) are the
log-strengths and t.
"""

from enum import IntEnum
from functools import partial
from typing import NamedTuple

from jaxeval.kernels import links
from jaxeval.kernels.kinds import Array, Float, Num, Real, namespace
from jaxeval.kernels.links import Link, Values
from jaxeval.kernels.pair_tables import Layout, oriented, quotient_sums, row_sums
from jaxeval.kernels.resample import Packing
from jaxeval.lazy_names import jnp


class TieModel(IntEnum):
    """What a tie is."""

    HALF = 0
    "Half a win: F(z) of the link is the expected result, of any target in [0, 1]."
    DAVIDSON = 1
    "win : tie : loss = exp(z / 2) : exp(t) : exp(-z / 2) (DOI 10.1080/01621459.1970.10481082)."
    RAO_KUPPER = 2
    "A win if z plus logistic noise exceeds t > 0, a loss if it is under -t (DOI 10.1080/01621459.1967.10482901)."


class Response(NamedTuple):
    """What decides a battle's result."""

    ties: TieModel
    link: Link = Link.LOGIT  # of HALF; the other two have formulas of their own, of logits


#: The t of boards without ties: it gives ties a probability under 1e-20, and keeps all formulas finite.
NO_TIES = {TieModel.HALF: 0.0, TieModel.DAVIDSON: -50.0, TieModel.RAO_KUPPER: 1e-20}


class Score(NamedTuple):
    """Derivatives of the log-likelihood by z and by t."""

    z: Values
    t: Values


class Information(NamedTuple):
    """Negative second derivatives."""

    zz: Values
    zt: Values
    tt: Values


def probabilities(model: Response, z: Values, t: Values) -> tuple[Values, Values, Values]:
    """Return the probabilities of win, tie and loss; for HALF F(z), 0 and F(-z)."""
    xp = namespace(z)
    if model.ties == TieModel.DAVIDSON:
        largest = xp.maximum(abs(z) / 2, t)
        win, tie, loss = xp.exp(z / 2 - largest), xp.exp(t - largest), xp.exp(-z / 2 - largest)
        total = win + tie + loss
        return win / total, tie / total, loss / total
    if model.ties == TieModel.RAO_KUPPER:
        win, loss = _logit(z - t), _logit(-z - t)
        return win, -xp.expm1(-2 * t) * _logit(z + t) * _logit(t - z), loss
    return links.probability(model.link, z), xp.zeros_like(z), links.probability(model.link, -z)


_logit = partial(links.probability, Link.LOGIT)


def expected(model: Response, z: Values, t: Values) -> Values:
    """Return the expected result, a tie counting half."""
    win, tie, _ = probabilities(model, z, t)
    return win + tie / 2


def expected_slopes(model: Response, z: Values, t: Values) -> tuple[Values, Values, Values]:
    """Return the expected result, and its derivatives by z and by t."""
    win, tie, loss = probabilities(model, z, t)
    mean = win + tie / 2
    if model.ties == TieModel.DAVIDSON:
        return mean, *information(model, mean, z, t)[:2]
    if model.ties == TieModel.RAO_KUPPER:
        up, down = win * (1 - win) / 2, loss * (1 - loss) / 2
        return mean, up + down, down - up
    return mean, win * links.slope(model.link, z), tie


def log_likelihood(model: Response, target: Values, z: Values, t: Values) -> Values:
    """Return the log-likelihood of one battle with result ``target``: 0, 1/2 or 1; for HALF any in [0, 1]."""
    if model.ties == TieModel.HALF:
        return links.log_likelihood(model.link, target, z)
    win, tie, loss = probabilities(model, z, t)
    xp = namespace(z)
    return xp.log(xp.where(target == 1, win, xp.where(target == 0, loss, tie)))


def score(model: Response, target: Values, z: Values, t: Values) -> Score:
    """Return the score of one battle with result ``target``: 0, 1/2 or 1; for HALF any in [0, 1]."""
    xp = namespace(z)
    if model.ties == TieModel.DAVIDSON:
        win, tie, _ = probabilities(model, z, t)
        return Score(target - win - tie / 2, (target == 0.5) - tie)
    if model.ties == TieModel.RAO_KUPPER:
        up, down = xp.where(target > 0, _logit(t - z), 0.0), xp.where(target < 1, _logit(t + z), 0.0)
        of_tie = xp.where(target == 0.5, -2 / xp.expm1(-2 * t), 0.0)
        return Score(up - down, of_tie - up - down)
    return Score(links.score(model.link, target, z), xp.zeros_like(z))


def information(model: Response, target: Values, z: Values, t: Values) -> Information:
    """Return one battle's observed information: positive semidefinite, as the log-likelihood is concave."""
    xp = namespace(z)
    if model.ties == TieModel.DAVIDSON:
        win, tie, _ = probabilities(model, z, t)
        mean = win + tie / 2
        return Information(win + tie / 4 - mean**2, tie * (0.5 - mean), tie * (1 - tie))
    if model.ties == TieModel.RAO_KUPPER:
        a, b = _logit(t - z), _logit(t + z)
        up, down = xp.where(target > 0, a * (1 - a), 0.0), xp.where(target < 1, b * (1 - b), 0.0)
        of_tie = xp.where(target == 0.5, 4 * xp.exp(-2 * t) / xp.expm1(-2 * t) ** 2, 0.0)
        return Information(up + down, down - up, up + down + of_tie)
    return Information(links.information(model.link, target, z), xp.zeros_like(z), xp.zeros_like(z))


class TieTable(NamedTuple):
    """The sufficient statistics of one tie model: two numbers of every pair, or a sum for each model."""

    # Weight of battles between i and j. Davidson: of all; Rao and Kupper: of those that i did not lose.
    battles: Num[Array, "M M"]
    # Davidson: sum of weight * target over the battles of i; Rao and Kupper: the transpose of ``battles``.
    points: Float[Array, "M"] | Num[Array, "M M"]
    ties: Float[Array, ""]  # weight of all ties


def tie_table(
    model: TieModel, layout: Layout, dense: tuple[Num[Array, "M M"], ...], packing: Packing, dtype: type
) -> TieTable:
    """Return the table from gathered statistics, ties among them; sums in ``dtype``."""
    n, points, ties = oriented(layout, dense, packing, dtype)
    n_ties = jnp.sum(row_sums(ties.astype(dtype))) / 2
    if model == TieModel.DAVIDSON:
        return TieTable(n, row_sums(points.astype(dtype)), n_ties)
    return TieTable(points + ties / 2, n - points + ties / 2, n_ties)


def table_gradient(
    model: TieModel, phi: Float[Array, "P"], table: TieTable, ridge: Real[Array, "P"]
) -> Float[Array, "P"]:
    """Return gradient of the penalised log-likelihood; M must be a multiple of 4."""
    of_models, of_t = (_davidson if model == TieModel.DAVIDSON else _rao_kupper)(phi[:-1], phi[-1], table)
    return jnp.append(of_models, of_t) - 2 * ridge * phi


def _davidson(theta: Float[Array, "M"], t: Float[Array, ""], table: TieTable) -> tuple[Array, Array]:
    """Return the score of log-strengths and of t.

    With a = exp(theta / 2), nu = exp(t) and w_ij = n_ij / (a_i^2 + nu a_i a_j + a_j^2), model i wins a_i^2 sum_j w_ij
    battles on average, and ties nu a_i sum_j w_ij a_j.
    """
    a, nu = jnp.exp(theta / 2), jnp.exp(t)
    half, square = a[:, None], a**2

    def total(block: slice) -> Array:
        return (square[:, None] + square[block]) + nu * half * a[block]

    def battles(block: slice) -> Array:
        return table.battles[:, block].astype(theta.dtype)

    wins = square * quotient_sums(len(a), lambda block: (battles(block), total(block)))
    ties = nu * a * quotient_sums(len(a), lambda block: (battles(block) * a[block], total(block)))
    return table.points - wins - ties / 2, table.ties - jnp.sum(ties) / 2


def _rao_kupper(theta: Float[Array, "M"], t: Float[Array, ""], table: TieTable) -> tuple[Array, Array]:
    """Return the score of log-strengths and of t.

    With e = exp(theta) and b = e exp(t), model i beats j with probability f_ij = e_i / (e_i + b_j), and they tie with
    probability (exp(2 t) - 1) f_ij f_ji. The log-likelihood is sum_ij battles_ij log f_ij + ties log(exp(2 t) - 1).
    """
    e, b = jnp.exp(theta), jnp.exp(theta + t)

    def up(block: slice) -> tuple[Array, Array]:
        return table.battles[:, block].astype(theta.dtype) * b[block], e[:, None] + b[block]

    def down(block: slice) -> tuple[Array, Array]:
        return table.points[:, block].astype(theta.dtype), b[:, None] + e[block]

    rises = quotient_sums(len(e), up)
    return rises - b * quotient_sums(len(e), down), -2 / jnp.expm1(-2 * t) * table.ties - jnp.sum(rises)
