"""Links: the probability F(z) of a win against a model that is weaker by z, and the derivatives of log-likelihoods.

F(z) + F(-z) = 1 and log F is concave, so the log-likelihood of any battles is concave. Functions broadcast, and take
arrays of NumPy as well as of JAX.
"""

from enum import IntEnum
from math import pi, sqrt
from typing import Any

import numpy as np

from jaxeval.kernels.kinds import Array, Float, namespace
from jaxeval.kernels.platforms import polynomial
from jaxeval.lazy_names import scipy, special

# Arguments and results broadcast.
Values = Float[Array, "*#battles"]


class Link(IntEnum):
    """How the difference z of two strengths becomes a probability."""

    LOGIT = 0
    "F(z) = 1 / (1 + exp(-z)): Bradley and Terry (DOI 10.2307/2334029)."
    PROBIT = 1
    "F is the normal distribution function: Thurstone's Case V (DOI 10.1037/h0070288), Mosteller."


def probability(link: Link, z: Values) -> Values:
    """Return F(z)."""
    of = _special(z)
    p: Array = of.expit(z) if link == Link.LOGIT else of.ndtr(z)
    return p


def log_probability(link: Link, z: Values) -> Values:
    """Return log of F(z), also where F(z) itself would underflow to 0."""
    if link == Link.LOGIT:
        return -namespace(z).logaddexp(-z, 0.0)
    of: Array = _special(z).log_ndtr(z)
    return of


def _special(z: Values) -> Any:
    """Return the special functions for ``z``."""
    return scipy.special if namespace(z) is np else special


def slope(link: Link, z: Values) -> Values:
    """Return the derivative of log F, exact in both tails; of the probit it is the inverse Mills ratio."""
    if link == Link.LOGIT:
        return probability(link, -z)
    xp = namespace(z)
    up, down, density, beyond = _mills(xp.abs(z))
    is_low = z < 0
    hazard = xp.where(is_low, down, density * down) / xp.where(is_low, up, down - density * up)
    return hazard + xp.where(is_low, beyond, 0.0)


#: Mills' ratio (1 - F(x)) / f(x) of the normal distribution, x >= 0, is the quotient of these polynomials, the highest
#: power first, to 5e-16: the best such quotient, found by repeated least squares in 60 digits. No digits cancel.
_UP = (
    1.0, 25.413994349195750539, 319.3619855063656019, 2557.1292919928317071, 14242.217581561259328,
    56957.336912354619853, 163422.16112286346523, 325404.73388265398101, 411502.49657666550037, 256472.95638950454851,
)  # fmt: skip
_DOWN = (
    1.0, 25.413994349194796603, 320.36198550676163063, 2582.5432862787513736, 14559.57957229425272,
    59463.63795530050001, 177035.66333856511435, 377501.75075879224403, 549563.33695333092271, 491607.24386546852953,
    204635.81216665235171,
)  # fmt: skip


def _mills(x: Values) -> tuple[Values, Values, Values, Values]:
    """Return Mills' ratio at x >= 0 as dividend and divisor, the density, and how far x is beyond polynomials' range.

    F(-x) = density dividend / divisor. Beyond the range, where powers would overflow, the ratio is 1 / x to the last
    digit.
    """
    xp = namespace(x)
    near = xp.minimum(x, 1e20 if x.dtype == np.float64 else 1e3)
    density = xp.exp(-(x**2) / 2) * (1 / sqrt(2 * pi))
    return polynomial(_UP, near), polynomial(_DOWN, near), density, x - near


def bend(link: Link, z: Values) -> Values:
    """Return minus the second derivative of log F, which is positive; the logit's is the same at -z."""
    if link == Link.LOGIT:
        return probability(link, z) * probability(link, -z)
    first = slope(link, z)
    return first * (first + z)


def log_likelihood(link: Link, target: Values, z: Values) -> Values:
    """Return the log-likelihood of a battle at z, of which the first model takes the share ``target`` in [0, 1]."""
    return target * log_probability(link, z) + (1 - target) * log_probability(link, -z)


def score(link: Link, target: Values, z: Values) -> Values:
    """Return the derivative of the log-likelihood by z."""
    return score_of_points(link, target, 1 - target, z)


def score_of_points(link: Link, won: Values, lost: Values, z: Values) -> Values:
    """Return the derivative by z of battles' log-likelihood, where the first model ``won`` and ``lost`` such points.

    It is won * slope(z) - lost * slope(-z); for the probit, the two share nearly all of their work.
    """
    if link == Link.LOGIT:
        return won - (won + lost) * probability(link, z)
    xp = namespace(z)
    up, down, density, beyond = _mills(xp.abs(z))
    is_low = z < 0
    # The points of the weaker side count by the steep slope, those of the stronger one by the flat slope.
    of_weak, of_strong = xp.where(is_low, won, -lost), xp.where(is_low, -lost, won)
    return of_weak * (down / up + beyond) + of_strong * (density * down / (down - density * up))


def information(link: Link, target: Values, z: Values) -> Values:
    """Return the observed information, minus `log_likelihood`'s second derivative; the logit's ignores who won."""
    if link == Link.LOGIT:
        p = probability(link, z)
        return p * (1 - p)
    return target * bend(link, z) + (1 - target) * bend(link, -z)


def share(strength: Values, other: Values) -> Values:
    """Return the logit's F(log strength - log other) by one division, from the exponentials of the log-strengths."""
    return strength / (strength + other)


#: Of artanh(x) / x by x^2, the highest power first: to the last digit up to 1 / 3.
_ARTANH = tuple(1 / (2 * k + 1) for k in range(15, -1, -1))


def softplus(x: Values) -> Values:
    """Return log(1 + exp(x)), for kernels that do not differentiate it: at 0 that would go wrong.

    XLA's logarithm of doubles on a CPU is not vectorised, and makes JAX's own function take two to three times as long.
    """
    xp = namespace(x)
    less = xp.exp(-xp.abs(x))
    part = less / (2 + less)  # log(1 + y) = 2 artanh(y / (2 + y))
    return xp.maximum(x, 0.0) + 2 * part * polynomial(_ARTANH, part**2)
