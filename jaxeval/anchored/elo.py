"""Reference-anchored Elo: a model's rating from wins, ties and losses against one fixed reference, in closed form.

Outcomes are averaged to a win probability (a tie is half a win), smoothed by a symmetric Beta prior, and mapped to the
Elo scale, whose zero is the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainccinv, betaincinv, betaln, expit, ndtr, ndtri

from jaxeval.arrays import Bool, Float
from jaxeval.checks import broadcast, check_choice, require, scalars_or_arrays
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.show.shown import Result
from jaxeval.statistics.quantiles import checked_level
from jaxeval.wording import counted


class Scale(NamedTuple):
    """A smooth increasing map of probabilities to the reporting scale, the inverse of a link F; and its derivative."""

    map: Callable[[Float], Float]
    derivative: Callable[[Float], Float]
    inverse: Callable[[Float], Float] | None = None  # F itself; only pooled probabilities need it


#: Scales by the names of their links. Only "logit" gives Elo gaps in the usual sense; the others keep the order.
SCALES = {
    "logit": Scale(lambda p: np.log(p) - np.log1p(-p), lambda p: 1 / (p * (1 - p)), expit),
    "probit": Scale(ndtri, lambda p: np.sqrt(2 * np.pi) * np.exp(ndtri(p) ** 2 / 2), ndtr),
    "cloglog": Scale(
        lambda p: np.log(-np.log1p(-p)), lambda p: -1 / ((1 - p) * np.log1p(-p)), lambda x: -np.expm1(-np.exp(x))
    ),
}
#: Up to parameters of this size SciPy gives Beta quantiles. Beyond, it loses digits, and they come from a normal
#: distribution with a correction for skewness, to 1e-8 of a standard deviation.
_LARGE = 1e9
_TINY = 1e-300  # doubles do not hold smaller quantiles


@dataclass(frozen=True, repr=False)
class AnchoredElo(Result):
    """Ratings against the reference; scalars, or arrays of the broadcast shape of the counts.

    Probabilities lie in (0, 1). Ratings are in Elo above the reference; the complementary log-log link does not give an
    even probability the rating 0. ``own_lower``, ``own_upper`` and ``own_se`` are the interval and the standard error
    of the probability by the prompts' own variance. Ties, averages over runs and outcomes between a win and a loss vary
    less than coins do. There the Beta interval is too long: it covers more often than its level.

    Examples:
        >>> import jaxeval
        >>> result = jaxeval.anchored_elo(wins=60, ties=20, losses=20)
        >>> round(result.probability, 3)
        0.698
        >>> round(result.own_lower, 3), round(result.own_upper, 3)
        (0.617, 0.773)
    """

    probability: float | Float
    probability_lower: float | Float
    probability_upper: float | Float
    probability_se: float | Float
    rating: float | Float
    rating_lower: float | Float
    rating_upper: float | Float
    rating_se: float | Float
    own_lower: float | Float
    own_upper: float | Float
    own_se: float | Float
    n: float | Float  # outcomes
    prior: float
    level: float
    link: str

    def _sentences(self) -> list[str]:
        if np.ndim(self.rating):
            return list(super()._sentences())
        return [
            f"{self.rating:+.1f} Elo ({self.rating_lower:+.1f} to {self.rating_upper:+.1f}) above the reference; "
            f"probability {self.probability:.3f}"
        ]


def anchored_elo(
    wins: ArrayLike,
    ties: ArrayLike,
    losses: ArrayLike,
    prior: float = 0.5,
    *,
    level: float = 0.95,
    pool_size: ArrayLike | None = None,
    kappa: ArrayLike = 1.0,
    link: str | Scale = "logit",
    squares: ArrayLike | None = None,
) -> AnchoredElo:
    """Give win probability and Elo gap from counts against a reference, with Beta intervals (Algorithm 1, Eq. 2 to 4).

    With a = W + T/2 + prior and b = L + T/2 + prior the probability is a / (a + b), and its interval holds the
    quantiles of Beta(a, b). The rating is (400 / ln 10) link(probability). The ends of its interval go through the same
    link, and its standard error is that of the delta method. The own interval is that of another Beta distribution: its
    variance has (squares + prior) / (n + 2 prior) - probability^2 in place of probability (1 - probability).

    Args:
        wins: (...) prompts won against the reference; counts may be fractional, as averages over runs are.
        ties: (...) prompts tied.
        losses: (...) prompts lost.
        prior: of each outcome: 0.5 is Jeffreys', 1 is Laplace's.
        level: level of the intervals.
        pool_size: (...) prompts M that the n were drawn from without replacement: variances shrink by
            (M - n) / (M - 1), and at n = M there is no uncertainty left.
        kappa: (...) reliability factor, the root of the mean Cohen's kappa between judges: standard errors are
            multiplied by it. It is empirical, and less agreement gives a shorter interval; 1 leaves it out.
        link: "logit", "probit", "cloglog", or a `Scale`.
        squares: (...) sum over prompts of the squared outcome, a prompt's runs averaged first, for the own interval.
            By default W + T/4, that of whole wins, ties and losses.

    Raises:
        ValueError: counts are negative or not finite, there is no prompt, n > M, squares are not those of such
            outcomes, or an argument is out of range.

    Examples:
        >>> import jaxeval
        >>> result = jaxeval.anchored_elo(wins=[60, 45], ties=[20, 10], losses=[20, 45])
        >>> result.rating.round(1).tolist()
        [145.6, 0.0]
        >>> result.rating_lower.round(1).tolist(), result.rating_upper.round(1).tolist()
        ([74.4, -68.1], [223.1, 68.1])
    """
    level, prior, chosen = checked_level(level), checked_prior(prior), checked_scale(link)
    counts = {"wins": wins, "ties": ties, "losses": losses} | ({} if squares is None else {"squares": squares})
    arrays = broadcast(**counts, pool_size=np.inf if pool_size is None else pool_size, kappa=kappa)
    for name in ("wins", "ties", "losses"):
        require(arrays, name, np.isfinite(arrays[name]) & (arrays[name] >= 0), "be finite and not negative")
    w, t, lost, pool, kappa = (arrays[name] for name in ("wins", "ties", "losses", "pool_size", "kappa"))
    n = w + t + lost
    if (n == 0).any():
        first = int((n == 0).argmax())
        raise ValueError(
            f"{(n == 0).sum():,} of {counted(n.size, 'cell has', 'cells have')} no outcome at all (the first is number "
            f"{first}, from 0): leave them out"
        )
    # Averages over runs may add up to a little more than they should.
    require(arrays, "pool_size", n <= pool * (1 + 1e-9), "be no less than the number of outcomes")
    require(arrays, "kappa", (kappa > 0) & (kappa <= 1), "lie in (0, 1]")
    # By how much the outcomes' squares are less than those of wins and losses with the same mean.
    lack = t / 4
    if squares is not None:
        won, rounding = w + t / 2, 1e-9 * n
        square = arrays["squares"]
        possible = (square >= won * (won / n) - rounding) & (square <= w + t / 4 + rounding)
        require(arrays, "squares", possible, "lie between (W + T/2)^2 / n and W + T/4")
        lack = np.maximum(won - square, 0.0)

    a, b = w + t / 2 + prior, lost + t / 2 + prior
    size = a + b
    p, q = a / size, b / size  # both, since one of them may round to 1
    with np.errstate(invalid="ignore", divide="ignore", under="ignore"):
        left = np.where(np.isinf(pool), 1.0, np.where(pool > 1, np.maximum(pool - n, 0) / (pool - 1), 0.0))
        error = np.sqrt(p * q / (size + 1) * left) * kappa
        own_share = np.maximum(1 - lack / size / (p * q), 0.0)
        sizes = [np.where(left > 0, (size + 1) / (left * share * kappa**2) - 1, np.inf) for share in (1.0, own_share)]
    ends = beta_interval(p, q, sizes[0], level)
    lengthened = own_share < 1  # elsewhere it is the same interval
    own_ends = [end.p.copy() for end in ends]
    others = beta_interval(p[lengthened], q[lengthened], sizes[1][lengthened], level)
    for mine, end in zip(own_ends, others, strict=True):
        mine[lengthened] = end.p
    points = Point(p=p, q=q, log_p=np.log(p), log_q=np.log(q)), *ends
    rating, lower, upper = (linked_rating(link, chosen, point) for point in points)
    slope = np.asarray(1 / (p * q) if link == "logit" else chosen.derivative(_inside(p)))
    numbers = scalars_or_arrays(
        probability=p, probability_lower=ends[0].p, probability_upper=ends[1].p, probability_se=error, rating=rating,
        rating_lower=lower, rating_upper=upper, rating_se=ELO_PER_LOGIT * slope * error, own_lower=own_ends[0],
        own_upper=own_ends[1], own_se=error * np.sqrt(own_share), n=n,
    )  # fmt: skip
    return AnchoredElo(**numbers, prior=prior, level=level, link=link if isinstance(link, str) else "custom")


def checked_prior(prior: object) -> float:
    """Return ``prior`` itself, or a ValueError if it is not a positive number."""
    number = prior.item() if isinstance(prior, np.ndarray) and prior.ndim == 0 else prior
    if isinstance(number, bool | np.bool_) or not isinstance(number, Real) or not 0 < float(number) < np.inf:
        raise ValueError(f"prior must be positive, one number for all cells, got {prior!r}")
    return float(number)


def checked_scale(link: object) -> Scale:
    """Return the `Scale` of that name, or ``link`` itself; a ValueError if it is neither."""
    if isinstance(link, Scale):
        return link
    check_choice("link", link, SCALES, " or a Scale")
    return SCALES[str(link)]


class Point(NamedTuple):
    """Probabilities p, q = 1 - p, and the logarithms of both: all four, since p or q may round to 1."""

    p: Float
    q: Float
    log_p: Float
    log_q: Float


def linked_rating(name: str | Scale, link: Scale, point: Point) -> Float:
    """Return Elo of a point, through the ``link`` called ``name``."""
    linked = point.log_p - point.log_q if name == "logit" else link.map(_inside(point.p))
    return np.asarray(ELO_PER_LOGIT * linked)


def _inside(p: Float) -> Float:
    """Return probabilities that are 0 or 1 by rounding alone, as the nearest numbers between."""
    return np.clip(p, np.finfo(float).tiny, 1 - np.finfo(float).epsneg)


def beta_interval(p: Float, q: Float, size: Float, level: float) -> tuple[Point, Point]:
    """Return equal-tailed quantiles of Beta(p size, q size), p + q = 1; the mean itself where the size is infinite."""
    (p_, q_, size_), where = _distinct(*(x.reshape(-1) for x in (p, q, size)))
    swap = p_ > q_  # the side of the smaller mean has the finer numbers
    mean, rest = np.where(swap, q_, p_), np.where(swap, p_, q_)

    def end(lower: bool) -> Point:
        x = _quantile(mean, rest, size_, (1 - level) / 2, swap ^ lower)
        sides = (x.p, x.q), (x.q, x.p), (x.log_p, x.log_q), (x.log_q, x.log_p)
        of_side, other, log_own, log_other = (np.where(swap, v, u)[where].reshape(p.shape) for u, v in sides)
        return Point(p=of_side, q=other, log_p=log_own, log_q=log_other)

    return end(lower=True), end(lower=False)


def _quantile(p: Float, q: Float, size: Float, tail: float, below: Bool) -> Point:
    """Return points (D,) that Beta(p size, q size) is ``below`` with probability ``tail``, or else above."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        a, b, small = p * size, q * size, p * size <= _LARGE
        skewness = 2 * (q - p) / np.sqrt(size * p * q)
        z = np.where(below, 1, -1) * ndtri(tail)
        x = np.where(small, 0.0, p + np.sqrt(p * q / (size + 1)) * (z + (z**2 - 1) * skewness / 6))
    x[small] = _inverse(a[small], b[small], tail, below[small])
    y = np.where(np.isinf(size), q, 1 - x)
    near = small & (x > 0.9)
    y[near] = _inverse(b[near], a[near], tail, ~below[near])
    x[near] = 1 - y[near]
    # Where x is next to nothing, I_x(a, b) = x^a / (a B(a, b)).
    gone = small & (x <= _TINY)
    log_x = np.log(np.where(gone, 1.0, x))
    log_x[gone] = (np.where(below, np.log(tail), np.log1p(-tail))[gone] + (np.log(a) + betaln(a, b))[gone]) / a[gone]
    return Point(p=x, q=y, log_p=log_x, log_q=np.log(y))


def _inverse(a: Float, b: Float, tail: float, below: Bool) -> Float:
    x = np.empty_like(a)
    x[below] = betaincinv(a[below], b[below], tail)
    x[~below] = betainccinv(a[~below], b[~below], tail)
    return x


def _distinct(p: Float, q: Float, size: Float) -> tuple[list[Float], NDArray[np.intp] | slice]:
    """Return the distinct rows, and the number of each row's: counts repeat, and few of a thousand cells differ."""
    number = np.zeros(len(p), np.int64)
    for x in (size, np.where(p > q, -q, p)):  # of p and 1 - p the one that has not been rounded away
        codes, values = pd.factorize(x)
        if 2 * len(values) > len(p):  # not worth it
            return [p, q, size], slice(None)
        number, _ = pd.factorize(number * len(values) + codes)
    first = np.unique(number, return_index=True)[1]
    return [x[first] for x in (p, q, size)], number
