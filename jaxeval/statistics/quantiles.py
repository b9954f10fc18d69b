"""Levels of confidence, quantiles of draws that may be infinite or missing, and intervals of proportions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxeval.arrays import Float, Int
from jaxeval.statistics import special

_LEAST = 1e-6  # of a skewness: the limit is a division by 0


def checked_level(level: float, name: str = "level") -> float:
    """Return ``level`` itself, or a ValueError with its ``name`` if it is no number strictly between 0 and 1."""
    if not (isinstance(level, int | float | np.number) and 0 < level < 1):
        got = level.item() if isinstance(level, np.generic) else level
        raise ValueError(f"{name} must be between 0 and 1, got {got!r}")
    return float(level)


def normal_quantile(level: float) -> float:
    """Return the normal quantile z of a two-sided interval: 1.96 for ``level`` 0.95."""
    return float(special.ndtri((1 + checked_level(level)) / 2))


def wilson(p: ArrayLike, n: ArrayLike, level: float) -> tuple[Float, Float]:
    """Return Wilson's score interval of a proportion ``p`` of ``n`` (DOI 10.1080/01621459.1927.10502953)."""
    p, n = np.asarray(p, float), np.asarray(n, float)
    z = normal_quantile(level)
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return centre - half, centre + half


def exact_share(p: ArrayLike, n: ArrayLike, level: float) -> tuple[Float, Float]:
    """Return Clopper and Pearson's interval of a proportion ``p`` of ``n`` (DOI 10.1093/biomet/26.4.404).

    It holds at least its level at every proportion. ``n`` need not be whole: of dependent observations it is an
    effective number (Korn and Graubard 1998).

    Examples:
        >>> [round(float(end), 3) for end in exact_share(0.9, 10, 0.95)]
        [0.555, 0.997]
    """
    n, tail = np.asarray(n, float), (1 - checked_level(level)) / 2
    k = np.asarray(p, float) * n
    k = np.where(np.abs(k - np.round(k)) < 1e-9 * n, np.round(k), k)
    with np.errstate(invalid="ignore"):
        lower = np.where(k > 0, special.betaincinv(np.maximum(k, 1e-300), n - k + 1, tail), 0.0)
        upper = np.where(k < n, special.betaincinv(k + 1, np.maximum(n - k, 1e-300), 1 - tail), 1.0)
    return lower, upper


def interval_bounds(draws: Float, level: float) -> tuple[Float, Float]:
    """Give equal-tailed bounds over the first axis of (B, ...) ``draws``, by linear interpolation of order statistics.

    NaN draws are left out; infinite ones are the largest or smallest. All-NaN columns give NaN.
    """
    tail = (1 - checked_level(level)) / 2
    ordered, n = _ordered(draws, tail, 1 - tail)
    return _at(ordered, n, tail * (n - 1)), _at(ordered, n, (1 - tail) * (n - 1))


def centred(values: Float) -> Float:
    """Return (B, ...) resamples ``values[1:]``, moved to have the estimate ``values[0]`` as their mean.

    For agreement with noisy scores: the scores have their noise (of items, of votes) already, and those of a resample
    have it twice over, which lowers every agreement. As they are, most resamples may lie below the estimate. Moved,
    they surround what another sample of the same size gives on average. Without an estimate all are NaN.
    """
    known = (~np.isnan(values[1:])).sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(values[1:] + (values[0] - np.nansum(values[1:], 0) / known))


def bounds_with_failures(
    draws: Float, level: float, least: ArrayLike, most: ArrayLike
) -> tuple[Float, Float, Float, Float]:
    """Return the median, equal-tailed bounds and share of failures over the first axis of (B, ...) ``draws``.

    A failed draw (NaN) counts as ``least`` in the lower bound and as ``most`` in the upper one. The median is that of
    the other draws. Where all draws fail, the median and the bounds are NaN.
    """
    tail = (1 - checked_level(level)) / 2
    ordered, n = _ordered(draws, tail, 0.5, 1 - tail)
    failed, last = len(draws) - n, len(draws) - 1.0
    lower = _at(ordered, n, tail * last - failed, least)
    upper = _at(ordered, n, np.full(n.shape, (1 - tail) * last), most)
    lower, upper = (np.where(n > 0, x, np.nan) for x in (lower, upper))
    return _at(ordered, n, (n - 1) / 2), lower, upper, failed / len(draws)


def _ordered(draws: Float, *quantiles: float) -> tuple[Float, Int]:
    """Return (..., B) draws in order, NaN last, and (...) how many are not NaN.

    If none is NaN, only the draws at the places of ``quantiles`` are put in order.
    """
    # NumPy sorts contiguous rows several times as fast.
    lanes = np.ascontiguousarray(np.moveaxis(draws, 0, -1))
    last, n = lanes.shape[-1] - 1.0, np.asarray((~np.isnan(lanes)).sum(-1))
    if (n <= last).any():
        return np.sort(lanes, axis=-1), n
    positions = last * np.array(quantiles)
    return np.partition(lanes, sorted({*np.floor(positions).astype(int), *np.ceil(positions).astype(int)}), -1), n


def _at(ordered: Float, n: Int, position: NDArray[np.floating[Any]], missing: ArrayLike = np.nan) -> Float:
    """Return values at a ``position`` (...) of the first ``n`` in order, interpolated; ``missing`` beyond them."""

    def one(place: NDArray[np.intp]) -> Float:
        value = np.take_along_axis(ordered, np.clip(place, 0, np.maximum(n - 1, 0))[..., None], -1)[..., 0]
        return np.where((place < 0) | (place >= n), missing, value)

    place = np.floor(position).astype(np.intp)
    low, high, share = one(place), one(np.ceil(position).astype(np.intp)), position - place
    # Anything between a finite value and an infinite one is infinite; between -inf and inf nothing is known.
    with np.errstate(invalid="ignore"):
        mixed = np.where(np.isfinite(low) & np.isfinite(high), low + share * (high - low), low + high)
    return np.where((low == high) | (share == 0), low, mixed)


def skewness_of(third: Float, variance: Float, dof: Float) -> Float:
    """Give skewness over samples of means with that ``variance``, from the sums of the cubed influences of their units.

    These are too small by a factor that n = dof + 1 units have; with hardly more than two there is none, and that of
    three is the largest. A mean without variance has the skewness 0.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        unbiased = np.sqrt(dof * (dof + 1)) / np.maximum(dof - 1, 1.0)
        return np.where(variance > 0, third / variance**1.5 * unbiased, 0.0)


def student_quantile(level: float, dof: Float | float) -> Float:
    """Return two-sided quantiles of Student's t; infinite degrees give the normal ones."""
    p = (1 + level) / 2
    return np.where(np.isinf(dof), special.ndtri(p), special.stdtrit(np.minimum(dof, 1e10), p))


def skewed_interval(mean: Float, error: Float, dof: Float, skew: Float, level: float) -> tuple[Float, Float]:
    """Return both ends of the interval of means with standard errors of ``dof`` degrees of freedom."""
    half, wide = student_quantile(level, dof), student_quantile(level, _of_hall(dof))
    skew = np.where(np.abs(skew) > _LEAST, skew, _LEAST)

    def turned(t: Float) -> Float:
        return 3 / skew * (np.cbrt(1 + skew * (t - skew / 6)) - 1)

    return mean - error * np.maximum(half, turned(wide)), mean + error * np.maximum(half, -turned(-wide))


def skewed_p(t: Float, dof: Float, skew: Float) -> Float:
    """Return the p-value, on one side, of means that are ``t`` standard errors above the null: the larger of both."""
    turned = t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / 6
    return np.asarray(np.maximum(special.stdtr(dof, -t), special.stdtr(_of_hall(dof), -turned)))


def _of_hall(dof: Float) -> Float:
    return np.maximum(np.asarray(dof, float) - 1, 1.0)
