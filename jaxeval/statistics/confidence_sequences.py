"""Intervals that hold at all times at once, however often one looks (confidence sequences).

With I_t = 1 / standard error^2, estimate times I_t moves about as a Brownian motion at time I_t. Robbins' mixture of
normal distributions bounds that at all times at once: |estimate - truth| <= standard error sqrt((1 + 1 / u) log((1 + u)
/ alpha^2)) with u = I_t / r, for every r > 0 that was chosen before looking (Robbins 1970, DOI
10.1214/aoms/1177696786; asymptotic confidence sequences: Waudby-Smith et al., arXiv:2103.06476).
"""

from __future__ import annotations

import numpy as np
import scipy

from jaxeval.arrays import Float


def anytime_factor(standard_error: Float, tuned_for: float, alpha: float) -> Float:
    """Half-widths in standard errors, valid at all times with probability 1 - ``alpha``.

    Args:
        standard_error: now.
        tuned_for: the standard error at which the interval is as narrow as it can be; chosen before looking.
        alpha: the chance of missing the truth at any time.
    """
    with np.errstate(divide="ignore"):
        u = _best_ratio(alpha) * (tuned_for / standard_error) ** 2
        # An infinite standard error gives u = 0 and an infinite factor: there is no interval yet. So does one of 0.
        return np.asarray(np.sqrt((1 + 1 / u) * np.log((1 + u) / alpha**2)))


def _best_ratio(alpha: float) -> float:
    """The u at which the factor is least: log((1 + u) / alpha^2) = u."""
    return -1 - float(scipy.special.lambertw(-(alpha**2) / np.e, -1).real)
