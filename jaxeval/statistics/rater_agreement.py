"""Measure agreement of raters beyond chance (Cohen's kappa, Krippendorff's alpha), and errors of their probabilities.

The expected calibration error has bins with predictions p, agreement a and a share w of the battles. The error is sum
w |d| with d = mean a - mean p. Each difference d carries the noise of its battles, and the absolute value of noise has
a mean above zero. So even a judge without error shows the floor F = sum w s sqrt(2 / pi), where s is the standard error
of d.

The error without noise is the plug-in error, sum w |d|, less its bias. The bias is computed as if the true differences
were the shrunk ones, d sqrt(max(1 - sum w s^2 / sum w d^2, 0)) (positive-part James and Stein). The interval holds
however the error is spread over the bins, by two bounds on the mean of the plug-in error where the true error is e. It
is at most e + F, because |x + y| <= |x| + |y|. It is at least what it is for differences in proportion to s, because
E|x + noise| is convex in |x|.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Float
from jaxeval.lazy_names import pd, scipy
from jaxeval.statistics.clusters import design_effect

# The variance of a bin is taken at an agreement to which so many battles are added that agree as often as predicted:
# without them, a bin in which all battles agree would have no variance.
_PRIOR_BATTLES = 2.0
_ADDED = 2.0  # battles of either kind (Agresti and Coull 1998, DOI 10.1080/00031305.1998.10480550)


def calibration_error(
    predicted: Sequence[Float],
    agree: Sequence[Float],
    clusters: Sequence[NDArray[np.intp]] | None = None,
    level: float = 0.95,
) -> dict[str, float]:
    """Return the error of K bins, by name: ``ece, ece_floor, ece_debiased, ece_lower, ece_upper``; NaN without battles.

    Args:
        predicted: per bin, (n,) probabilities of its battles.
        agree: per bin, (n,) what happened, 1 or 0.
        clusters: per bin, (n,) clusters of the battles; independent by default.
        level: of the interval of the error without noise.
    """
    bins = [k for k, spread in enumerate(agree) if len(spread)]
    n = np.array([len(agree[k]) for k in bins], float)
    share = n / n.sum()
    spreads = [p * (1 - p) for p in predicted]
    mean_p, mean_a, at_p = (np.array([x[k].mean() for k in bins]) for x in (predicted, agree, spreads))
    effect = np.array(
        [design_effect(agree[k] - agree[k].mean(), None if clusters is None else clusters[k]) for k in bins]
    )
    shrunk_a = (n * mean_a + _PRIOR_BATTLES * mean_p) / (n + _PRIOR_BATTLES)
    null, spread = np.sqrt(at_p * effect / n), np.sqrt(shrunk_a * (1 - shrunk_a) * effect / n)
    error = float(share @ np.abs(mean_a - mean_p))
    floor = float(share @ _absolute_normal(np.zeros(len(bins)), null)[0])
    squares, noise = share @ (mean_a - mean_p) ** 2, share @ spread**2
    kept = np.sqrt(max(1 - noise / squares, 0.0)) if squares > 0 else 0.0
    shrunk = kept * (mean_a - mean_p)
    mean, _ = _absolute_normal(shrunk, spread)
    debiased = error - share @ (mean - np.abs(shrunk))
    # Five battles that all agree, as predicted at .99, may well be of a judge that errs in a tenth, or in a third.
    added_a = (n * mean_a + _ADDED) / (n + 2 * _ADDED)
    wide = np.sqrt(added_a * (1 - added_a) * effect / (n + 2 * _ADDED)) + np.abs(added_a - mean_a) / _ADDED
    wide = np.maximum(spread, wide)
    root = 0.0
    if clusters is not None and bins:  # those in several bins make these err together
        sign = np.where(mean_a < mean_p, -1.0, 1.0)
        away = np.concatenate([sign[i] * (agree[k] - mean_a[i]) for i, k in enumerate(bins)]) / n.sum()
        _, unit = np.unique(np.concatenate([clusters[k] for k in bins]), return_inverse=True)
        root = float(np.sqrt((np.bincount(unit, away) ** 2).sum()))
    values = error, floor, debiased, *_bounds(error, share * wide, root, level)
    names = "ece", "ece_floor", "ece_debiased", "ece_lower", "ece_upper"
    return {name: float(np.maximum(x, 0.0)) if bins else np.nan for name, x in zip(names, values, strict=True)}


def _bounds(error: float, noise: Float, least: float, level: float) -> tuple[float, float]:
    """Return bounds of the error without noise, from (K,) ``noise``: each bin's standard error times its share.

    The standard error of all bins together is at ``least`` that.
    """
    z, total = float(scipy.special.ndtri((1 + level) / 2)), float(noise.sum())
    root = max(float(np.sqrt(noise @ noise)), least)

    def above(t: float) -> float:
        """Return by how much the plug-in's lower quantile exceeds ``error`` if differences are t standard errors."""
        mean, variance = _absolute_normal(np.array(t), np.array(1.0))
        return float(total * mean - z * root * np.sqrt(variance)) - error

    if not np.isfinite(total) or total == 0:
        return error + total, error + total
    most = (error + z * root) / total
    upper = 0.0 if above(0.0) >= 0 else total * scipy.optimize.brentq(above, 0.0, most + 1.0)
    return error - np.sqrt(2 / np.pi) * total - z * root, upper


def _absolute_normal(mean: Float, deviation: Float) -> tuple[Float, Float]:
    """Return the mean and variance of |x| for normal x."""
    z = np.abs(mean) / np.maximum(deviation, np.finfo(float).tiny)
    expected = deviation * np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + np.abs(mean) * (1 - 2 * scipy.special.ndtr(-z))
    return expected, mean**2 + deviation**2 - expected**2


def reliability_bins(
    predicted: Float, agree: Float, unit: NDArray[np.intp], n_bins: int, level: float = 0.95
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Compare predicted and observed agreement in bins of about as many battles each; return `calibration_error`, too.

    Probabilities (N,) meet what happened, 1 or 0; ``unit`` (N,) numbers what each battle is sampled with, a cluster or
    the battle itself. Equal predictions fall into one bin: in several, their errors would not be independent.
    """
    order = np.argsort(predicted, kind="stable")
    first = np.cumsum([len(part) for part in np.array_split(order, n_bins)])[:-1]
    starts = np.searchsorted(predicted[order], predicted[order][first[first < len(order)]])
    parts = np.split(order, np.setdiff1d(starts, 0))
    predictions, agreements = ([x[rows] for rows in parts] for x in (predicted, agree))
    clusters = [unit[rows] for rows in parts]
    return bin_rates(predictions, agreements, clusters), calibration_error(predictions, agreements, clusters, level)


def bin_rates(predicted: Sequence[Float], agree: Sequence[Float], clusters: Sequence[NDArray[np.intp]]) -> pd.DataFrame:
    """Return a row per bin: mean prediction, agreement, its standard error over clusters, and the number of battles."""
    n = np.array([len(a) for a in agree])
    rate = np.array([a.mean() if len(a) else np.nan for a in agree])
    effect = [design_effect(a - p, cluster) for a, p, cluster in zip(agree, rate, clusters, strict=True)]
    error = np.sqrt(rate * (1 - rate) * effect / np.maximum(n, 1))
    mean = [p.mean() if len(p) else np.nan for p in predicted]
    return pd.DataFrame({"predicted": mean, "agreement": rate, "standard_error": error, "n_battles": n})


def label_table(x: NDArray[Any], y: NDArray[Any], labels: NDArray[Any]) -> Float:
    """Count pairs by label (L, L): rows are the sorted ``labels`` in ``x`` (N,), columns those in ``y`` (N,)."""
    size = len(labels)
    pair = np.searchsorted(labels, x) * size + np.searchsorted(labels, y)
    return np.bincount(pair, minlength=size * size).reshape(size, size).astype(float)


def cohen_kappa(table: Float, distance: Float | None = None) -> tuple[Float, Float, Float]:
    """Return observed agreement, that expected by chance, and kappa, from (..., L, L) counts of two raters' labels.

    With (L, L) ``distance`` of labels, kappa is the weighted one (Cohen 1968, DOI 10.1037/h0026256): 1 - observed /
    expected distance. All are NaN without a pair, and kappa also where both raters give one and the same label only.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        share = table / table.sum((-1, -2), keepdims=True)
        observed = np.einsum("...bb->...", share)
        expected = (share.sum(-1) * share.sum(-2)).sum(-1)
        if distance is not None:
            apart = (share.sum(-1)[..., :, None] * share.sum(-2)[..., None, :] * distance).sum((-1, -2))
            kappa = np.where(apart > 1e-12, 1 - (share * distance).sum((-1, -2)) / apart, np.nan)
            return observed, expected, kappa
        kappa = np.where(expected < 1 - 1e-12, (observed - expected) / (1 - expected), np.nan)
    return observed, expected, kappa


def coincidences(counts: Float) -> Float:
    """Return (N, L, L) coincidences of labels within units: all ordered pairs of a unit's m labels, each 1 / (m - 1).

    Units with fewer than two labels have none.

    Args:
        counts: (N, L) how many raters gave each unit each label.
    """
    m = counts.sum(1)
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(counts.shape[1])
    return np.asarray(pairs / np.maximum(m - 1, 1)[:, None, None])


def krippendorff_alpha(coincidence: Float, distance: Float | None = None) -> Float:
    """Return alpha of (..., L, L) sums of coincidences: 1 - observed / expected disagreement.

    With (L, L) squared ``distance`` of labels, alpha is that of interval data. See Hayes and Krippendorff 2007, DOI
    10.1080/19312450709336664. NaN without a pair, or where all labels are equal.
    """
    n = coincidence.sum((-1, -2))
    of_label = coincidence.sum(-1)
    if distance is not None:
        apart = (of_label[..., :, None] * of_label[..., None, :] * distance).sum((-1, -2))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(
                np.where(apart > 1e-9, 1 - (n - 1) * (coincidence * distance).sum((-1, -2)) / apart, np.nan)
            )
    observed = n - np.einsum("...aa->...", coincidence)
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = (n**2 - (of_label**2).sum(-1)) / (n - 1)
        return np.asarray(np.where(expected > 1e-9, 1 - observed / expected, np.nan))


def label_counts(codes: NDArray[np.intp], n_labels: int) -> Float:
    """Return (N, L) how many of the (N, R) ``codes`` are each label; -1 is none."""
    return np.asarray((codes[:, :, None] == np.arange(n_labels)).sum(1), float)
