"""Agreement of raters beyond chance: Cohen's kappa and Krippendorff's alpha."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Float


def label_table(x: NDArray[Any], y: NDArray[Any], labels: NDArray[Any]) -> Float:
    """(L, L) counts of pairs by label: rows are the sorted ``labels`` in ``x`` (N,), columns those in ``y`` (N,)."""
    size = len(labels)
    pair = np.searchsorted(labels, x) * size + np.searchsorted(labels, y)
    return np.bincount(pair, minlength=size * size).reshape(size, size).astype(float)


def cohen_kappa(table: Float, distance: Float | None = None) -> tuple[Float, Float, Float]:
    """Observed agreement, agreement expected by chance, and kappa, from (..., L, L) counts of the two raters' labels.

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
