"""Conformal intervals from residuals that are first given the noise of the prediction.

A residual of a calibration model holds the judge's own error and the noise of finite battles, s_i. The prediction of a
new model holds the same kind of error and another noise v, as it rests on other numbers of battles and votes. A
residual that is less noisy than the prediction gets the difference d_i = sqrt(max(0, v^2 - s_i^2)) as normal noise z_i.
The half width is the median over z of the k-th smallest |r_i + d_i z_i|, with k the conformal rank. It follows from the
Poisson-binomial distribution of how many of them lie within h, so no random numbers are drawn.

A residual cannot be made less noisy. Where the prediction is less noisy than the pool, its interval is too long.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import ndtr

from jaxeval.arrays import Float, Int
from jaxeval.softelo.conformal import Level, exact_level

# After this number of halvings no double is left between the ends, unless the half width is less than 1/2,000 of the
# first one.
_HALVINGS = 64
# Noise beyond this number of standard deviations has a probability that doubles cannot hold beside 1.
_FARTHEST = 9.0
# Weights are rounded to this fraction of the largest weight. Equal weights and simple ratios stay exact.
_WEIGHT_STEPS = 240


def half_widths(
    residual: ArrayLike, noise: ArrayLike, prediction_noise: ArrayLike, level: Level, weights: ArrayLike | None = None
) -> Float:
    """(S,) half widths of the intervals of S predictions, in the unit of the residuals.

    Where no residual is less noisy than the prediction, this is the conformal quantile of |residual|.

    Args:
        residual: (n,) residuals of the calibration models.
        noise: (n,) standard errors of these residuals.
        prediction_noise: (S,) standard errors of the predictions' residuals.
        level: 1 - alpha, taken by its decimal form and compared exactly.
        weights: (n,) >= 0 and not all zero, for calibration models that are not exchangeable with the new ones
            (arXiv:1904.06019). The weight within the half width reaches ``level`` of the total, to which the new model
            adds the mean of the others. They are rounded to 1/240 of the largest. Equal weights change nothing.

    Returns:
        Infinite where the level cannot be reached; NaN where the prediction's noise is NaN.
    """
    r, s = np.asarray(residual, float), np.asarray(noise, float)
    v = np.atleast_1d(np.asarray(prediction_noise, float))
    steps = np.ones(len(r), np.int64)
    if weights is not None:
        given = np.asarray(weights, float)
        if not (np.isfinite(given).all() and (given >= 0).all() and given.any()):
            raise ValueError("weights must be finite, >= 0 and not all zero")
        steps = np.rint(_WEIGHT_STEPS * given / given.max()).astype(np.int64)
    total = int(steps.sum())
    needed = ceil(exact_level(level) * (total + Fraction(total, max(len(r), 1))))
    if needed > total:
        return np.where(np.isnan(v), np.nan, np.inf)
    added = np.sqrt(np.maximum(v[:, None] ** 2 - s**2, 0))
    below, above = np.zeros(len(v)), np.abs(r).max() + _FARTHEST * added.max(axis=1)
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        enough = _reaches(_within(r, added, middle), steps, needed) >= 0.5
        below, above = np.where(enough, below, middle), np.where(enough, middle, above)
    return above


def floor_spread(residual: ArrayLike, noise: ArrayLike) -> float:
    """tau, the judge's own error, which no number of battles removes: root mean square over models.

    The estimate of Paule and Mandel (1982) about zero: sum r_i^2 / (s_i^2 + tau^2) = n. It is 0 where the residuals
    are no larger than their noise.

    Args:
        residual: (n,) residuals.
        noise: (n,) their standard errors.
    """
    squares, variance = np.asarray(residual, float) ** 2, np.asarray(noise, float) ** 2
    most = float(squares.sum())

    def excess(tau_squared: float) -> float:
        return float((squares / (variance + tau_squared)).sum()) - len(squares)

    least = 1e-12 * most
    return float(np.sqrt(brentq(excess, least, most))) if most > 0 and excess(least) > 0 else 0.0


def _within(residual: Float, added: Float, half: Float) -> Float:
    """(S, n) probability that each residual lies within its prediction's half width (S,)."""
    has_noise, h = added > 0, half[:, None]
    scale = np.where(has_noise, added, 1.0)
    noisy = ndtr((h - residual) / scale) - ndtr((-h - residual) / scale)
    return np.where(has_noise, noisy, np.abs(residual) <= h)


def _reaches(p: Float, steps: Int, needed: int) -> Float:
    """(S,) probability that independent events of probability ``p`` (S, n) weigh ``needed`` or more together."""
    # Column w is the probability that the weight is w so far; the last one takes all from ``needed`` on.
    weight = np.zeros((len(p), needed + 1))
    weight[:, 0] = 1.0
    for i, step in enumerate(np.minimum(steps, needed)):
        if step:
            moved = weight * p[:, i, None]
            weight -= moved
            weight[:, step:] += moved[:, : needed + 1 - step]
            weight[:, -1] += moved[:, needed + 1 - step :].sum(axis=1)
    return np.asarray(weight[:, -1])
