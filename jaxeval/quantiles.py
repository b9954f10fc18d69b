"""Quantiles of draws that may be infinite or missing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def checked_level(level: float) -> float:
    """``level`` itself, or a ValueError if it is no number strictly between 0 and 1."""
    if not (isinstance(level, int | float | np.number) and 0 < level < 1):
        raise ValueError(f"level must be between 0 and 1, got {level!r}")
    return float(level)


def interval_bounds(draws: NDArray[np.float64], level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Equal-tailed bounds over the first axis of (B, ...) ``draws``, by linear interpolation of order statistics.

    NaN draws are left out; infinite ones are the largest or smallest. All-NaN columns give NaN.

    Raises:
        ValueError: ``level`` is not between 0 and 1.
    """
    tail = (1 - checked_level(level)) / 2
    missing = np.isnan(draws).sum(0)
    if not missing.any():
        return _quantile(draws, tail), _quantile(draws, 1 - tail)
    ordered = np.sort(draws, axis=0)  # NaN last
    n = len(draws) - missing
    return _at(ordered, tail * (n - 1)), _at(ordered, (1 - tail) * (n - 1))


def _quantile(draws: NDArray[np.float64], q: float) -> NDArray[np.float64]:
    position = q * (len(draws) - 1)
    low, high = int(np.floor(position)), int(np.ceil(position))
    ordered = np.partition(draws, sorted({low, high}), axis=0)
    return _between(ordered[low], ordered[high], position - low)


def _at(ordered: NDArray[np.float64], position: NDArray[np.float64]) -> NDArray[np.float64]:
    position = np.maximum(position, 0)
    low, high = np.floor(position).astype(np.intp), np.ceil(position).astype(np.intp)
    take = np.take_along_axis
    return _between(take(ordered, low[None], 0)[0], take(ordered, high[None], 0)[0], position - low)


def _between(
    low: NDArray[np.float64], high: NDArray[np.float64], share: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    # Anything between a finite value and an infinite one is infinite; between -inf and inf nothing is known.
    with np.errstate(invalid="ignore"):
        mixed = np.where(np.isfinite(low) & np.isfinite(high), low + share * (high - low), low + high)
    return np.where((low == high) | (share == 0), low, mixed)
