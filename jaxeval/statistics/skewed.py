"""Means of skewed values: Student's t, and Hall's transformation of it, whose errors are an order smaller.

Hall 1992, DOI 10.1111/j.2517-6161.1992.tb01872.x. Student's interval of 10 skewed values holds .87 where .95 is asked
for, and that of 30 .92; Hall's is too short where values are symmetric with long tails. So the longer one counts, on
each side. The skewness of few values is itself uncertain: it takes a degree of freedom.
"""

from __future__ import annotations

import numpy as np
import scipy

from jaxeval.arrays import Float

_LEAST = 1e-6  # of a skewness: the limit is a division by 0


def skewness_of(third: Float, variance: Float, dof: Float) -> Float:
    """Skewness over samples of means with that ``variance``, from the sums of the cubed influences of their units.

    These are too small by a factor that n = dof + 1 units have; with hardly more than two there is none, and that of
    three is the largest. A mean without variance has the skewness 0.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        unbiased = np.sqrt(dof * (dof + 1)) / np.maximum(dof - 1, 1.0)
        return np.where(variance > 0, third / variance**1.5 * unbiased, 0.0)


def student_quantile(level: float, dof: Float | float) -> Float:
    """Two-sided quantiles of Student's t; infinite degrees give the normal ones."""
    p = (1 + level) / 2
    return np.where(np.isinf(dof), scipy.special.ndtri(p), scipy.special.stdtrit(np.minimum(dof, 1e10), p))


def skewed_interval(mean: Float, error: Float, dof: Float, skew: Float, level: float) -> tuple[Float, Float]:
    """Both ends of the interval of means with standard errors of ``dof`` degrees of freedom."""
    half, wide = student_quantile(level, dof), student_quantile(level, _of_hall(dof))
    skew = np.where(np.abs(skew) > _LEAST, skew, _LEAST)

    def turned(t: Float) -> Float:
        return 3 / skew * (np.cbrt(1 + skew * (t - skew / 6)) - 1)

    return mean - error * np.maximum(half, turned(wide)), mean + error * np.maximum(half, -turned(-wide))


def skewed_p(t: Float, dof: Float, skew: Float) -> Float:
    """The p-value, on one side, of means that are ``t`` standard errors above the null: the larger of both."""
    turned = t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / 6
    return np.asarray(np.maximum(scipy.special.stdtr(dof, -t), scipy.special.stdtr(_of_hall(dof), -turned)))


def _of_hall(dof: Float) -> Float:
    return np.maximum(np.asarray(dof, float) - 1, 1.0)
