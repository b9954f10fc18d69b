"""The gauge: which common shift of all ratings is printed. Differences do not depend on it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxeval.arrays import Bool, Float, Int
from jaxeval.checks import checked_rating
from jaxeval.kernels.links import Link
from jaxeval.lazy_names import pd
from jaxeval.options.boards import Gauge
from jaxeval.wording import MODEL, Noun, did_you_mean

#: Elo points per logit: a difference of 400 means odds of ten to one.
ELO_PER_LOGIT = 400 / np.log(10)

#: Elo points per unit of strength. The logistic law of slope 1.702 is within 0.01 of the normal law everywhere (Camilli
#: 1994, DOI 10.2307/1165298), so that ratings of both links are about alike.
ELO_PER_UNIT = {Link.LOGIT: ELO_PER_LOGIT, Link.PROBIT: 1.702 * ELO_PER_LOGIT}

_BLOCK = 2**16  # draws that are aligned at once


class RatingScale(NamedTuple):
    """rating = base + unit * (theta - weights @ theta)."""

    weights: Float  # (M,) sum 1, zero for models without a comparable rating; all zero if none has one
    base: float
    gauge: str  # in words, for the settings
    anchored: bool = False  # whether one model that somebody named fixes it
    unit: float = ELO_PER_LOGIT  # Elo per unit of theta

    def ratings(self, theta: Float) -> Float:
        """Return Elo ratings of (..., M) log-strengths; models of weight 0 may be infinite or NaN."""
        used = self.weights > 0
        centre = theta[..., used] @ self.weights[used]
        return self.base + self.unit * (theta - centre[..., None])

    def aligned_ratings(self, draws: Float, theta: Float) -> Float:
        """Return Elo ratings of (B, M) ``draws`` of log-strengths, in the gauge of the estimate ``theta`` (M,).

        In a draw that leaves some models without a finite value, the others hold the gauge: their weighted mean is the
        one that they have in the estimate. If no model with a weight has a finite value, the finite values become NaN.
        Infinite values stay.
        """
        ratings = np.empty(draws.shape)
        rows = max(_BLOCK // max(len(theta), 1), 1)
        for start in range(0, len(draws), rows):  # what the cache holds
            self._align(draws[start : start + rows], theta, ratings[start : start + rows])
        return ratings

    def _align(self, draws: Float, theta: Float, ratings: Float) -> None:
        """Write `aligned_ratings` into ``ratings``, row by row: no row depends on the others."""
        with np.errstate(invalid="ignore", divide="ignore"):
            centre = np.multiply(draws, self.weights, out=ratings).sum(1) / self.weights.sum()
            lacking = ~np.isfinite(centre)  # rows with a value that is not finite, whatever its weight
            if lacking.any():
                finite = np.isfinite(draws[lacking])
                weights, off = np.where(finite, self.weights, 0.0), np.where(finite, draws[lacking] - theta, 0.0)
                total = weights.sum(1)
                shift = np.where(total > 0, (weights * off).sum(1) / total, np.nan)
                centre[lacking] = theta @ self.weights + shift
            np.subtract(draws, centre[:, None], out=ratings)
            ratings *= self.unit
            ratings += self.base
        if lacking.any():
            np.copyto(ratings, draws, where=np.isinf(draws))

    def covariance(self, covariance: Float) -> Float:
        """Return (M, M) covariance of the ratings, Elo^2, from that of theta in any gauge."""
        shift = covariance @ self.weights
        variance = self.weights @ shift
        return self.unit**2 * (covariance - shift[:, None] - shift + variance)


def make_scale(
    gauge: Gauge, base: float, models: pd.Index, battles: Float | Int, identified: Bool, unit: float = ELO_PER_LOGIT,
    noun: Noun = MODEL,
) -> RatingScale:  # fmt: skip
    """Return the scale of a board.

    Args:
        gauge: "mean" (mean rating = ``base``), "votes" (mean weighted by battles = ``base``), or (model, rating).
        battles: (M,) battles of each model.
        identified: (M,) models that have a comparable rating; only those enter a mean.
        unit: Elo per unit of strength.
        noun: the word for a model in errors.
    """
    base = checked_rating("base", base)
    if isinstance(gauge, str) and gauge in ("mean", "votes"):
        weights = np.where(identified, battles if gauge == "votes" else 1.0, 0.0)
        weights /= max(weights.sum(), np.finfo(float).tiny)
        return RatingScale(
            weights, base, f"mean rating {'weighted by battles ' if gauge == 'votes' else ''}{base:g}", unit=unit
        )
    if not (isinstance(gauge, tuple) and len(gauge) == 2):
        raise ValueError(f"gauge must be 'mean', 'votes' or (model, rating), got {gauge!r}")
    anchor, rating = gauge[0], checked_rating("the rating that fixes the gauge", gauge[1])
    if anchor not in models:
        hint = did_you_mean(anchor, models)
        raise ValueError(f"the anchor {noun.one} {anchor!r} is not among the {noun.counted(len(models))}{hint}")
    position = models.get_loc(anchor)
    if not identified[position]:
        raise ValueError(
            f"the anchor {noun.one} {anchor!r} has no rating that compares with the others' (its wins or losses do not "
            "connect it with the main group); choose another"
        )
    weights = np.zeros(len(models))
    weights[position] = 1.0
    return RatingScale(weights, rating, f"{anchor} = {rating:g}", anchored=True, unit=unit)
