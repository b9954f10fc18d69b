"""Closed-form intervals of proportions."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

Float = NDArray[np.float64]


def wilson(p: ArrayLike, n: ArrayLike, level: float) -> tuple[Float, Float]:
    """Wilson's score interval of a proportion ``p`` of ``n`` (DOI 10.1080/01621459.1927.10502953)."""
    p, n = np.asarray(p, float), np.asarray(n, float)
    z = scipy.special.ndtri((1 + level) / 2)
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return centre - half, centre + half
