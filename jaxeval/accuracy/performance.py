"""How well an estimator does over replications of a study: bias, coverage and length of its intervals."""

from __future__ import annotations

import numpy as np

from jaxeval.arrays import Float


def performance(estimate: Float, lower: Float, upper: Float, truth: Float, axis: int) -> dict[str, Float]:
    """Bias, its Monte Carlo error, coverage, length and the share of undefined estimates, by name.

    Replications are on ``axis``. Undefined ones (NaN) are left out of bias and length. They cover the truth only if
    their ends do.
    """
    defined = ~(np.isnan(estimate) | np.isnan(lower))
    count = defined.sum(axis)
    error = np.where(defined, estimate - truth, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        bias = error.sum(axis) / count
        variance = np.where(defined, (error - np.expand_dims(bias, axis)) ** 2, 0.0).sum(axis) / count
        return {
            "bias": bias,
            "bias_se": np.sqrt(variance / count),
            "coverage": np.where(count > 0, ((lower <= truth) & (truth <= upper)).mean(axis), np.nan),
            "length": np.where(defined, upper - lower, 0.0).sum(axis) / count,
            "undefined_share": 1 - count / estimate.shape[axis],
        }
