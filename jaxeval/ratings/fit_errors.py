"""What a fit says of its errors without draws: widths of intervals, and errors of differences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.ratings.gauge import RatingScale
from jaxeval.ratings.thin_models import UNPLACED_ELO
from jaxeval.statistics.clusters import widening
from jaxeval.statistics.quantiles import normal_quantile


class FitErrors(NamedTuple):
    """Log-strengths and what is known of their errors: those of a fit, or of its penalised twin."""

    theta: Float  # (M,)
    of_battles: Float  # (M, M) covariance for independent battles, without the dispersion
    dispersion: float  # variance of results over that of wins and losses alone
    over_clusters: Float | None  # (M, M) sandwich covariance, whose errors are the least ones; None without clusters
    freedom: float | None  # degrees of freedom of the clusters

    def half_widths(self, scale: RatingScale, active: Bool, level: float) -> Float:
        """Return half the Wald intervals of the ratings (M,), Elo; NaN for one cluster, which shows no uncertainty."""
        z, half = normal_quantile(level), np.sqrt(self.dispersion * _variance(scale.covariance(self.of_battles)))
        if self.over_clusters is None:
            return np.asarray(z * half)
        wider = widening(self.freedom, level)
        over_clusters = np.where(active, np.sqrt(_variance(scale.covariance(self.over_clusters))), np.nan)
        return np.fmax(z * half, wider * z * over_clusters) if np.isfinite(wider) else np.full(len(half), np.nan)

    def of_differences(self, rows: NDArray[np.intp], level: float, shown: Bool, battles_of_one: float = 1.0) -> Float:
        """Return (R, M) errors of the strengths at ``rows`` less all others; infinite for one cluster.

        Of clusters they are those between the models ``shown`` (M,), by Student's quantile at ``level``. The battles of
        the others cannot show how much clusters differ: as if each cluster were one of its ``battles_of_one``.
        """
        error = np.sqrt(self.dispersion) * _errors_of_differences(self.of_battles, rows)
        if self.over_clusters is None:
            return np.asarray(error)
        wider = widening(self.freedom, level)
        if not np.isfinite(wider):
            return np.full(error.shape, np.inf)
        known = wider * _errors_of_differences(self.over_clusters, rows)
        alike = wider * np.sqrt(battles_of_one) * error
        return np.fmax(error, np.where(shown[rows, None] & shown, known, alike))

    def vague(self, active: Bool, unit: float) -> Bool:
        """Return which ratings (M,), ``unit`` Elo per unit of theta, have a standard error above `UNPLACED_ELO`.

        The gauge is the mean of the ``active`` models, whatever that of the fit.
        """
        covariance, weights = self.dispersion * self.of_battles, active / max(active.sum(), 1)
        shift = covariance @ weights
        variance = np.diag(covariance) - 2 * shift + weights @ shift
        return np.asarray(unit * np.sqrt(np.maximum(variance, 0)) > UNPLACED_ELO)

    def apart_from_others(self, active: Bool) -> Float:
        """Return standard errors (M,) of strengths less the mean of all other ``active`` models."""
        variance, some = np.diag(self.of_battles), active.astype(float)
        total, n = self.of_battles @ some, np.maximum(some.sum() - some, 1)
        others = (some @ total - 2 * some * total + some * variance) / n**2
        apart = np.maximum(variance - 2 * (total - some * variance) / n + others, 0)
        return np.asarray(np.sqrt(self.dispersion * apart))


def _variance(covariance: Float) -> Float:
    return np.maximum(np.diag(covariance), 0)


def _errors_of_differences(covariance: Float, rows: NDArray[np.intp]) -> Float:
    """Return (R, M) errors of differences by an (M, M) covariance."""
    variance = np.diag(covariance)
    return np.asarray(np.sqrt(np.maximum(variance[rows, None] + variance - 2 * covariance[rows], 0)))
