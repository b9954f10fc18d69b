"""Cohen's kappa: agreement of two raters beyond chance (DOI 10.1177/001316446002000104)."""

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
