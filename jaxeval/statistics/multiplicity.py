"""p-values of many tests at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jaxeval.arrays import Float


def holm(p: Float) -> Float:
    """Return p-values adjusted by Holm's steps (1979): the chance of any false alarm. NaN stay, and are not counted."""
    return _by_steps(p, lambda sorted_p: np.maximum.accumulate(sorted_p * np.arange(len(sorted_p), 0, -1)))


def benjamini_hochberg(p: Float) -> Float:
    """Return p-values adjusted for the expected share of false alarms among all, of independent tests.

    Benjamini and Hochberg 1995, DOI 10.1111/j.2517-6161.1995.tb02031.x. NaN stay, and are not counted.
    """

    def steps(sorted_p: Float) -> Float:
        return np.minimum.accumulate((sorted_p * len(sorted_p) / np.arange(1, len(sorted_p) + 1))[::-1])[::-1]

    return _by_steps(p, steps)


def _by_steps(p: Float, steps: Callable[[Float], Float]) -> Float:
    """Return ``steps`` of the known p-values in ascending order, put back in their places."""
    p = np.asarray(p, np.float64)
    known = ~np.isnan(p)
    order = np.argsort(p[known], kind="stable")
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(steps(p[known][order]), 1.0)
    result = np.full(p.shape, np.nan)
    result[known] = adjusted
    return result
