"""Levels that a number of scores supports, and conformal quantiles of scores, in exact arithmetic.

The interval of a model is rating +- q * standard error, with q a conformal quantile of the scores
|residual| / standard error of other models (arXiv:2606.13221, Eqs. 2-4; DOI 10.1080/01621459.2017.1307116).
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, nextafter

import numpy as np
from numpy.typing import ArrayLike

from jaxeval.arrays import Float
from jaxeval.wording import counted

#: A level as typed: a float is read by its shortest decimal form, so 0.9 is nine tenths.
Level = float | str | Fraction
#: Level of the intervals where none is given and there are enough calibration models for it.
DEFAULT_LEVEL = Fraction(9, 10)


def exact_level(level: Level) -> Fraction:
    """Return the level as the fraction that its decimal form says.

    Raises:
        ValueError: it is not a number strictly between 0 and 1.
    """
    try:
        exact = Fraction(str(level))
    except ValueError:
        exact = Fraction(0)
    if not 0 < exact < 1:
        raise ValueError(f"level must be a number strictly between 0 and 1, got {level!r}")
    return exact


def conformal_rank(n: int, level: Level) -> int:
    """Rank ceil(level * (n + 1)) of the conformal quantile among n scores, in exact arithmetic; n + 1 if infinite."""
    if n < 0:
        raise ValueError(f"the number of scores must not be negative, got {n}")
    return ceil(exact_level(level) * (n + 1))


def expected_coverage(n: int, level: Level) -> float:
    """Return the coverage of split conformal intervals from n exchangeable scores: ceil(level * (n + 1)) / (n + 1)."""
    return conformal_rank(n, level) / (n + 1)


def largest_supported_level(n: int) -> float:
    """Return the largest level, n / (n + 1) rounded down, at which n scores give a finite interval."""
    if n < 1:
        raise ValueError(f"no level is supported without calibration scores, got n={n}")
    level = n / (n + 1)
    while Fraction(str(level)) > Fraction(n, n + 1):
        level = nextafter(level, 0.0)
    return level


def chosen_level(level: Level | None, n: int, use: str) -> tuple[Fraction, list[str]]:
    """Return the level of intervals from n scores: the one that is given, or the default as far as n scores support it.

    A default that n scores do not support is lowered to the largest level that they do, rounded down to four decimals.
    A level that is given is never changed.

    Args:
        level: 1 - alpha, or None for the default.
        n: scores.
        use: what the level is for, in words.

    Returns:
        The level, and a sentence where it was lowered.
    """
    if level is not None:
        return exact_level(level), []
    if n < 1 or conformal_rank(n, DEFAULT_LEVEL) <= n:
        return DEFAULT_LEVEL, []
    text = supported_level_text(n)
    return Fraction(text), [
        f"{use}: {counted(n, 'calibration model supports', 'calibration models support')} levels up to {text}, so the "
        f"default level of {float(DEFAULT_LEVEL):g} is lowered to {text}; a level that you name is never changed"
    ]


def smallest_calibration(level: Level) -> int:
    """Return the fewest calibration scores that give a finite interval at ``level``."""
    exact = exact_level(level)
    return ceil(exact / (1 - exact))


def supported_level_text(n: int) -> str:
    """Return the largest supported level, four decimals, rounded down; in words where there is none."""
    return "none" if n < 1 else f"{int(10_000 * Fraction(n, n + 1)) / 10_000:g}"


def conformal_quantile(
    scores: ArrayLike, level: Level, weights: ArrayLike | None = None, new_weight: float | None = None
) -> float:
    """The conformal quantile of (n,) ``scores``: the ceil(level * (n + 1))-th smallest; infinite when that exceeds n.

    Args:
        scores: finite or +inf; for ratings |residual| / standard error.
        level: 1 - alpha, taken by its decimal form and compared exactly.
        weights: (n,) weights >= 0, for calibration models that are not exchangeable with the new one: likelihood
            ratios of the new population to that of the calibration (weighted conformal prediction, arXiv:1904.06019).
            The quantile is then the smallest score up to which the weights reach ``level`` of their sum, which includes
            the new model's weight.
        new_weight: the new model's own weight; the mean of ``weights`` by default. Equal weights give the
            unweighted quantile.

    Raises:
        ValueError: a level outside (0, 1), a NaN score, weights of another length, negative, infinite or all zero.

    Examples:
        >>> import jaxeval
        >>> scores = [0.3, 1.2, 0.7, 0.5, 0.9]
        >>> jaxeval.conformal_quantile(scores, 0.8)
        1.2
        >>> jaxeval.conformal_quantile(scores, 0.9)
        inf
    """
    values = np.asarray(scores, float)
    if values.ndim != 1:
        raise ValueError(f"scores must be one-dimensional, got shape {values.shape}")
    missing = np.isnan(values)
    if missing.any():
        raise ValueError(
            f"{missing.sum():,} of {counted(len(values), 'score is', 'scores are')} NaN (first at "
            f"{int(missing.argmax())}): leave out models without a residual or a standard error"
        )
    if weights is None:
        if new_weight is not None:
            raise ValueError("new_weight is used only together with weights: give both or none")
        rank = conformal_rank(len(values), level)
        return float(np.partition(values, rank - 1)[rank - 1]) if rank <= len(values) else float("inf")
    return _weighted_quantile(values, exact_level(level), np.asarray(weights, float), new_weight)


def _weighted_quantile(values: Float, level: Fraction, weights: Float, new_weight: float | None) -> float:
    if weights.shape != values.shape:
        raise ValueError(
            f"{counted(len(values), 'score needs', 'scores need')} as many weights, got shape {weights.shape}"
        )
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        raise ValueError(
            f"weights must be finite and >= 0; {bad.sum():,} of {len(weights):,} are not, the first is "
            f"{weights[bad][0]:g}"
        )
    if not weights.any():
        raise ValueError("weights must not all be zero")
    exact = [Fraction(float(w)) for w in weights]
    added = sum(exact) / len(exact) if new_weight is None else Fraction(float(new_weight))
    if added < 0:
        raise ValueError(f"new_weight must be >= 0, got {new_weight}")
    needed, reached = level * (sum(exact) + added), Fraction(0)
    for i in np.argsort(values, kind="stable"):
        reached += exact[i]
        if reached >= needed:
            return float(values[i])
    return float("inf")


def conformity_scores(residual: ArrayLike, standard_error: ArrayLike) -> Float:
    """|residual| / standard error (Eq. 3). Without spread a miss is infinite and a hit 0; NaN if either is missing."""
    size, error = np.abs(np.asarray(residual, float)), np.asarray(standard_error, float)
    without = np.where(size > 0, np.inf, size)
    return np.where(error > 0, size / np.where(error > 0, error, 1.0), np.where(np.isnan(error), np.nan, without))
