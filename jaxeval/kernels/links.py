"""Links: the probability F(z) that the better of two wins by z, what log F looks like, and battles made of it.

F(z) + F(-z) = 1 and log F is concave, so that the log-likelihood of any battles is concave. Functions broadcast.
"""

from enum import IntEnum
from math import pi, sqrt

import jax.numpy as jnp
from jax import Array
from jax.nn import log_sigmoid, sigmoid
from jax.scipy.special import erfc, log_ndtr, ndtr
from jaxtyping import Float

# Arguments and results broadcast.
Values = Float[Array, "*#battles"]


class Link(IntEnum):
    """How the difference z of two strengths becomes a probability."""

    LOGIT = 0
    "F(z) = 1 / (1 + exp(-z)): Bradley and Terry (DOI 10.2307/2334029)."
    PROBIT = 1
    "F is the normal distribution function: Thurstone's Case V (DOI 10.1037/h0070288), Mosteller."


def probability(link: Link, z: Values) -> Values:
    """F(z)."""
    return sigmoid(z) if link == Link.LOGIT else ndtr(z)


def log_probability(link: Link, z: Values) -> Values:
    """Log of F(z), also where F(z) is too small for a number."""
    return log_sigmoid(z) if link == Link.LOGIT else log_ndtr(z)


def slope(link: Link, z: Values) -> Values:
    """Derivative of log F, exact in both tails; of the probit the inverse Mills ratio."""
    if link == Link.LOGIT:
        return sigmoid(-z)
    # By erfc, several times as fast as by log_ndtr; where that underflows, by its asymptotic series, to the last digit.
    far = 20.0 if z.dtype == jnp.float64 else 10.0
    near = jnp.maximum(z, -far)
    ratio = jnp.exp(-(near**2) / 2) * sqrt(2 / pi) / erfc(-near * sqrt(0.5))
    u, series = jnp.minimum(z, -far) ** -2, jnp.ones_like(z)
    for odd in range(15, 0, -2):
        series = 1 - odd * u * series
    return jnp.where(z < -far, -z / series, ratio)


def bend(link: Link, z: Values) -> Values:
    """Minus the second derivative of log F, positive: the logit's is the same at -z."""
    if link == Link.LOGIT:
        return sigmoid(z) * sigmoid(-z)
    own = slope(link, z)
    return own * (own + z)


def log_likelihood(link: Link, target: Values, z: Values) -> Values:
    """Of a battle at z, of which the first one takes the share ``target`` in [0, 1]."""
    return target * log_probability(link, z) + (1 - target) * log_probability(link, -z)


def score(link: Link, target: Values, z: Values) -> Values:
    """Derivative of the log-likelihood by z."""
    if link == Link.LOGIT:
        return target - probability(link, z)
    return target * slope(link, z) - (1 - target) * slope(link, -z)


def information(link: Link, target: Values, z: Values) -> Values:
    """Minus the second derivative: observed. That of the logit does not depend on who won."""
    if link == Link.LOGIT:
        p = probability(link, z)
        return p * (1 - p)
    return target * bend(link, z) + (1 - target) * bend(link, -z)


def share(own: Values, other: Values) -> Values:
    """The logit's F(log own - log other) by one division, where the exponentials of the strengths are at hand."""
    return own / (own + other)
