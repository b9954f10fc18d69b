"""What joint draws say about pairs and ranks: shares of resamples, difference intervals, tiers.

Differences do not depend on the gauge, so a model with few votes does not widen those between two others.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from jaxeval.statistics.quantiles import checked_level, interval_bounds

Float = NDArray[np.float64]


def beat_share(draws: Float) -> Float:
    """(M, M) share of (B, M) ``draws`` in which the row's model is above the column's, half for equal ones.

    Draws in which either is NaN are left out; NaN on the diagonal and where no draw is left.
    """
    n_models = draws.shape[1]
    share = np.full((n_models, n_models), np.nan)
    for i in range(n_models):
        own = draws[:, i, None]
        both = ~(np.isnan(own) | np.isnan(draws))
        points = (own > draws).sum(0) + 0.5 * ((own == draws) & both).sum(0)
        n = both.sum(0)
        share[i] = np.where(n > 0, points / np.maximum(n, 1), np.nan)
    np.fill_diagonal(share, np.nan)
    return share


def difference_bounds(draws: Float, level: float) -> tuple[Float, Float]:
    """(M, M) percentile bounds of row minus column, draw by draw; NaN on the diagonal."""
    n_models = draws.shape[1]
    lower, upper = np.full((2, n_models, n_models), np.nan)
    for i in range(n_models - 1):
        with np.errstate(invalid="ignore"):  # both infinite: no difference to speak of
            difference = draws[:, i, None] - draws[:, i + 1 :]
        low, high = interval_bounds(difference, level)
        lower[i, i + 1 :], upper[i, i + 1 :] = low, high
        lower[i + 1 :, i], upper[i + 1 :, i] = -high, -low
    return lower, upper


class SimultaneousDifferences(NamedTuple):
    """Intervals that cover all pairwise differences at once (max-t); row by row, as M^2 of them may not fit in memory.

    The half-width of a difference is ``critical`` times its standard error. Of differences with a standard error of at
    most ``noise``, the precision of the draws, nothing is known: theirs are infinite.
    """

    centred: Float  # (M, B) draws less their mean
    variance: Float  # (M,) of the draws
    critical: float
    noise: float

    def errors(self, i: int) -> Float:
        """(M,) standard errors of the differences of model ``i`` to every model."""
        covariance = self.centred @ self.centred[i] / (self.centred.shape[1] - 1)
        return np.sqrt(np.maximum(self.variance[i] + self.variance - 2 * covariance, 0))

    def halfwidth(self, i: int) -> Float:
        """(M,) half-widths of the differences of model ``i`` to every model; 0 to itself."""
        errors = self.errors(i)
        width = np.where(errors > self.noise, self.critical * errors, np.inf)
        width[i] = 0.0
        return width


def simultaneous_differences(
    draws: Float, estimate: Float, level: float, noise: float = 0.0
) -> SimultaneousDifferences:
    """Intervals for all differences of (B, M) finite ``draws`` with the (M,) ``estimate`` at the joint ``level``.

    The critical value is the ``level`` quantile, over draws, of the largest |difference - its estimate| in units of its
    own standard error.
    """
    centred = np.ascontiguousarray((draws - draws.mean(0)).T)
    deviation = np.ascontiguousarray((draws - estimate).T)
    found = SimultaneousDifferences(centred, np.sum(centred**2, 1) / (len(draws) - 1), np.nan, noise)
    largest = np.zeros(len(draws))
    for i in range(len(centred) - 1):
        errors = found.errors(i)[i + 1 :]
        scale = np.divide(1.0, errors, out=np.zeros_like(errors), where=errors > noise)
        t = np.abs(deviation[i + 1 :] - deviation[i])
        t *= scale[:, None]
        np.maximum(largest, t.max(0), out=largest)
    # The smallest draw that reaches the level, so that never less than the level is covered.
    critical = np.sort(largest)[ceil(Fraction(str(level)) * len(largest)) - 1]
    return found._replace(critical=float(critical))


def n_comparisons(draws: Float) -> int:
    """Differences that `tiers` looks at: those of all pairs in all of (B, M) ``draws``."""
    n_models = int(np.isfinite(draws).all(0).sum())
    return len(draws) * n_models * (n_models - 1) // 2


def tiers(draws: Float, estimate: Float, level: float, noise: float = 0.0) -> NDArray[np.int64]:
    """(M,) tiers, 1 = top; 0 for models without a finite estimate, or with draws that are not finite.

    From the top down, a new tier starts at the first model whose simultaneous difference interval from its tier's
    leader excludes 0. ``noise``: see `SimultaneousDifferences`.
    """
    tier = np.zeros(len(estimate), np.int64)
    level = checked_level(level)
    family = np.flatnonzero(np.isfinite(estimate) & np.isfinite(draws).all(0))
    if len(family) == 0:
        return tier
    family = family[np.argsort(-estimate[family], kind="stable")]
    if len(family) == 1 or len(draws) < 2:
        tier[family] = 1
        return tier
    intervals = simultaneous_differences(draws[:, family], estimate[family], level, noise)
    current, leader, halfwidth = 1, 0, intervals.halfwidth(0)
    for k in range(len(family)):
        if estimate[family[leader]] - estimate[family[k]] > halfwidth[k]:
            current, leader, halfwidth = current + 1, k, intervals.halfwidth(k)
        tier[family[k]] = current
    return tier


def rank_at_most_share(draws: Float, k: int) -> Float:
    """(M,) share of ``draws`` in which a model ranks k-th or better.

    Equal draws share the places that they cover: of two models that tie for the first, each is first in half a draw.
    Models that are NaN in a draw take no rank in it, and it does not count for them.
    """
    best = rankdata(-draws, axis=1, method="min", nan_policy="omit")
    worst = rankdata(-draws, axis=1, method="max", nan_policy="omit")
    n = (~np.isnan(best)).sum(0)
    share = np.clip((k + 1 - best) / (worst - best + 1), 0, 1)
    return np.where(n > 0, np.nansum(share, 0) / np.maximum(n, 1), np.nan)


def rank_spread(lower: Float, upper: Float) -> tuple[Float, Float]:
    """Best and worst rank that intervals leave open: 1 + #{lower_j > upper_i} and 1 + #{upper_j > lower_i, j != i}.

    NaN for models without an interval, which do not count for the others either.
    """
    missing = np.isnan(lower) | np.isnan(upper)
    lowers, uppers = np.sort(lower[~missing]), np.sort(upper[~missing])
    best = 1.0 + len(lowers) - np.searchsorted(lowers, upper, side="right")
    # Its own upper bound is no lower than the lower one: among those above it, unless the two are one.
    worst = 1.0 + len(uppers) - np.searchsorted(uppers, lower, side="right") - (upper > lower)
    return np.where(missing, np.nan, best), np.where(missing, np.nan, worst)
