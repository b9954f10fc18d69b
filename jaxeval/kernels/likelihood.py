"""The log-likelihood on a pair table: value, gradient and Hessian weights.

sum_ij y_ij log F(theta_i - theta_j) - ridge * ||theta||^2 with F the probability of the link, y_ij = weight * target
(Eq. 1 of arXiv:2606.13221). For the logit, and e = exp(theta), F(theta_i - theta_j) = e_i / (e_i + e_j): M exponentials
instead of M^2.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from jaxeval.kernels.kinds import Float, Num, Real
from jaxeval.kernels.links import Link, bend, log_probability, score_of_points, share
from jaxeval.kernels.pair_tables import PairTable, row_sums


def log_likelihood(
    link: Link, theta: Float[Array, "M"], wins: Num[Array, "M M"], ridge: Real[Array, ""]
) -> Float[Array, ""]:
    """Penalised log-likelihood of log-strengths given ``wins``."""
    log_prob = log_probability(link, theta[:, None] - theta)
    return jnp.sum(jnp.where(wins > 0, wins * log_prob, 0.0)) - ridge * jnp.sum(theta**2)


def expected_score(theta: Float[Array, "M"], n: Num[Array, "M M"]) -> Float[Array, "M"]:
    """Expected scores sum_j n_ij e_i / (e_i + e_j) of the logit; M must be a multiple of 4.

    The product of four strengths overflows only where |theta| exceeds 170 in double and 20 in single precision.
    """
    e = jnp.exp(theta)
    return e * quotient_sums(n.shape[1], lambda block: (n[:, block].astype(theta.dtype), e[:, None] + e[block]))


def quotient_sums(
    n_columns: int, terms: Callable[[slice], tuple[Float[Array, "M columns"], Float[Array, "M columns"]]]
) -> Float[Array, "M"]:
    """Row sums of a quotient, whose dividend and divisor ``terms`` gives for a block of columns.

    Four columns share one division (a / x + b / y = (a y + b x) / (x y)), which is what limits such a pass.
    """
    quarter = n_columns // 4
    (a, w), (b, x), (c, y), (d, z) = (terms(slice(k * quarter, (k + 1) * quarter)) for k in range(4))
    wx, yz = w * x, y * z
    return row_sums(((a * x + b * w) * yz + (c * z + d * y) * wx) / (wx * yz))


def gradient(link: Link, theta: Float[Array, "M"], table: PairTable, ridge: Real[Array, ""]) -> Float[Array, "M"]:
    """Gradient of the penalised log-likelihood; all links but the logit need the table's wins."""
    if link == Link.LOGIT:
        return table.score - expected_score(theta, table.n) - 2 * ridge * theta
    wins = jnp.asarray(table.wins)  # tables for this link have them
    return row_sums(score_of_points(link, wins, table.n - wins, theta[:, None] - theta)) - 2 * ridge * theta


def curvature(link: Link, theta: Float[Array, "M"], table: PairTable) -> Float[Array, "M M"]:
    """Pair weights v_ij of the observed information D - V, D = diag(row sums of V)."""
    if link == Link.LOGIT:
        e = jnp.exp(theta)
        p = share(e[:, None], e)
        return table.n.astype(theta.dtype) * p * (1 - p)
    bent = bend(link, theta[:, None] - theta) * table.wins  # type: ignore[operator]
    return bent + bent.T
