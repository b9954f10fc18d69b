"""Reference-anchored Elo: a model's rating from wins, ties and losses against one fixed reference, in closed form.

Outcomes are averaged to a win probability (a tie is half a win), smoothed by a symmetric Beta prior, and mapped to the
Elo scale, whose zero is the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtri

from jaxeval.elementwise import broadcast, require, scalar_or_array
from jaxeval.gauge import ELO_PER_LOGIT
from jaxeval.quantiles import checked_level

Float = NDArray[np.float64]


class Link(NamedTuple):
    """A smooth increasing map from probabilities to the reporting scale, and its derivative."""

    map: Callable[[Float], Float]
    derivative: Callable[[Float], Float]


def _logit(p: Float) -> Float:
    return np.log(p) - np.log1p(-p)


def _cloglog(p: Float) -> Float:
    return np.log(-np.log1p(-p))


#: Links by name. Only "logit" gives Elo gaps in the usual sense; the others keep the order.
LINKS = {
    "logit": Link(_logit, lambda p: 1 / (p * (1 - p))),
    "probit": Link(ndtri, lambda p: np.sqrt(2 * np.pi) * np.exp(ndtri(p) ** 2 / 2)),
    "cloglog": Link(_cloglog, lambda p: -1 / ((1 - p) * np.log1p(-p))),
}


@dataclass(frozen=True)
class AnchoredElo:
    """Ratings against the reference; scalars, or arrays of the broadcast shape of the counts.

    Probabilities lie in (0, 1); ratings are Elo above the reference (by the complementary log-log link an even
    probability is not 0). ``own_lower`` and ``own_upper`` are the interval of the probability by the outcomes' own
    variance, which ties make less than that of a coin: with ties the Beta interval covers more often than its level.
    Counts that are averages over runs vary less still, which only `bootstrap_scores` sees.
    """

    probability: Any
    probability_lower: Any
    probability_upper: Any
    probability_se: Any
    rating: Any
    rating_lower: Any
    rating_upper: Any
    rating_se: Any
    own_lower: Any
    own_upper: Any
    n: Any  # outcomes
    prior: float
    level: float
    link: str


def anchored_elo(
    wins: ArrayLike,
    ties: ArrayLike,
    losses: ArrayLike,
    prior: float = 0.5,
    level: float = 0.95,
    pool_size: ArrayLike | None = None,
    kappa: ArrayLike = 1.0,
    link: str | Link = "logit",
) -> AnchoredElo:
    """Win probability and Elo gap from counts against a reference, with Beta intervals (Algorithm 1, Eq. 2 to 4).

    a = W + T/2 + prior and b = L + T/2 + prior; the probability is a / (a + b), its interval the quantiles of
    Beta(a, b), and the rating (400 / ln 10) link(probability), the ends through the same link; the standard error of
    the rating is that of the delta method.

    Args:
        wins: (...) prompts won against the reference; counts may be fractional, as averages over runs are.
        ties: (...) prompts tied.
        losses: (...) prompts lost.
        prior: of each outcome: 0.5 is Jeffreys', 1 is Laplace's.
        level: level of the intervals.
        pool_size: (...) prompts M that the n were drawn from without replacement: variances shrink by
            (M - n) / (M - 1), and at n = M there is no uncertainty left.
        kappa: (...) reliability factor, the root of the mean Cohen's kappa between judges: standard errors shrink by
            it. It is empirical, and less agreement gives a shorter interval: 1 unless asked for.
        link: "logit", "probit", "cloglog", or a `Link`.

    Raises:
        ValueError: counts are negative or not finite, there is no prompt, n > M, or an argument is out of range.
    """
    level = checked_level(level)
    if not (np.isfinite(prior) and prior > 0):
        raise ValueError(f"prior must be positive, got {prior!r}")
    if isinstance(link, str) and link not in LINKS:
        raise ValueError(f"link must be one of {', '.join(map(repr, LINKS))} or a Link, got {link!r}")
    chosen = LINKS[link] if isinstance(link, str) else link
    given = broadcast(
        wins=wins, ties=ties, losses=losses, pool_size=np.inf if pool_size is None else pool_size, kappa=kappa
    )
    for name in ("wins", "ties", "losses"):
        require(given, name, np.isfinite(given[name]) & (given[name] >= 0), "be finite and not negative")
    w, t, lost, pool, kappa = given.values()
    n = w + t + lost
    if (n == 0).any():
        raise ValueError(f"{(n == 0).sum():,} of {n.size:,} cells have no outcome at all: leave them out")
    # Averages over runs may add up to a little more than they should.
    require(given, "pool_size", n <= pool * (1 + 1e-9), "be no less than the number of outcomes")
    require(given, "kappa", (kappa > 0) & (kappa <= 1), "lie in (0, 1]")

    a, b = w + t / 2 + prior, lost + t / 2 + prior
    p = a / (a + b)
    with np.errstate(invalid="ignore", divide="ignore"):
        left = np.where(np.isinf(pool), 1.0, np.where(pool > 1, np.maximum(pool - n, 0) / (pool - 1), 0.0))
    shrunk = left * kappa**2
    variance = p * (1 - p) / (a + b + 1) * shrunk
    # Outcomes of 1, 1/2 and 0, with the prior's as a win and a loss.
    spread = np.maximum((w + t / 4 + prior) / (n + 2 * prior) - p**2, 0.0)
    lower, upper = _interval(p, variance, level)
    own_lower, own_upper = _interval(p, spread / (a + b + 1) * shrunk, level)
    with np.errstate(divide="ignore"):
        rating, rating_lower, rating_upper = (ELO_PER_LOGIT * chosen.map(x) for x in (p, lower, upper))
    error = ELO_PER_LOGIT * chosen.derivative(p) * np.sqrt(variance)
    return AnchoredElo(
        probability=scalar_or_array(p),
        probability_lower=scalar_or_array(lower),
        probability_upper=scalar_or_array(upper),
        probability_se=scalar_or_array(np.sqrt(variance)),
        rating=scalar_or_array(np.asarray(rating)),
        rating_lower=scalar_or_array(np.asarray(rating_lower)),
        rating_upper=scalar_or_array(np.asarray(rating_upper)),
        rating_se=scalar_or_array(np.asarray(error)),
        own_lower=scalar_or_array(own_lower),
        own_upper=scalar_or_array(own_upper),
        n=scalar_or_array(n),
        prior=float(prior),
        level=level,
        link=link if isinstance(link, str) else "custom",
    )


def _interval(mean: Float, variance: Float, level: float) -> tuple[Float, Float]:
    """Equal-tailed quantiles of the Beta distribution of these moments; the mean itself without variance."""
    spread = variance > 0
    size = np.where(spread, mean * (1 - mean) / np.where(spread, variance, 1.0) - 1, 1.0)
    # Counts repeat: of a thousand cells few are different.
    parameters = np.stack([mean * size, (1 - mean) * size], axis=-1).reshape(-1, 2)
    distinct, where = np.unique(parameters, axis=0, return_inverse=True)
    ends = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        quantile = betaincinv(distinct[:, 0], distinct[:, 1], tail)[where.reshape(-1)].reshape(mean.shape)
        ends.append(np.where(spread, quantile, mean))
    return ends[0], ends[1]
