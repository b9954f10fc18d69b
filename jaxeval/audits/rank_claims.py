"""What a board claims by its standard errors: intervals, sets of ranks and tiers; and whether the truth is as it says.

It is the closed form of what `Draws` finds from resamples: normal noise takes the place of draws, so that thousands of
boards cost what the resamples of one do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.ratings.gauge import Scale
from jaxeval.statistics.quantiles import normal_quantile

#: Draws of noise behind critical values.
_NOISE = 1_000


class Held(NamedTuple):
    """Whether the claims of one board hold, and how wide they are; NaN for models without a rating on it."""

    ratings: Float  # (M,) 1 where the interval of the rating holds the truth, else 0
    ratings_width: Float  # (M,) Elo
    neighbours: Float  # (M - 1,) 1 where the interval of the difference of two neighbours does
    neighbours_width: Float
    ranks: Float  # (M,) 1 where the set of ranks holds all true ranks of the model
    ranks_width: Float  # (M,) ranks in the set
    all_ranks: float  # whether sets that hold all at once do
    all_ranks_width: float  # ranks in them, on average
    tiers: float  # whether the first model of every tier is worse than the first of the tier above
    n_tiers: float


@dataclass(frozen=True, eq=False)
class TrueBoard:
    """The strengths that boards are simulated at, and the critical values of their claims.

    Args:
        theta: (M,) strengths; NaN for models without a rating.
        scale: of the ratings, with their gauge.
        compared: (M,) models that may be told apart from others; the rest too often have no finite rating.
        critical: (M, M) critical value of the differences of a model to its k nearest, k from 0 on.
        critical_of_all: that of the differences of all pairs.
        level: of every claim.
    """

    theta: Float
    scale: Scale
    compared: Bool
    critical: Float
    critical_of_all: float
    level: float

    @classmethod
    def of(cls, theta: Float, covariance: Float, scale: Scale, compared: Bool, level: float, seed: int) -> TrueBoard:
        """Critical values (max-t) from normal noise with the ``covariance`` (M, M) of the strengths."""
        m, error = len(theta), _errors(covariance)
        values, vectors = np.linalg.eigh(covariance)
        noise = np.random.default_rng([seed, 2]).normal(size=(_NOISE, m)) * np.sqrt(np.maximum(values, 0)) @ vectors.T
        critical, largest = np.zeros((m, m)), np.zeros(_NOISE)
        for i in np.flatnonzero(compared):
            others = np.flatnonzero(compared & (error[i] > 0))
            if len(others) == 0:
                continue
            others = others[np.argsort(np.abs(theta[others] - theta[i]) / error[i, others], kind="stable")]
            statistic = np.abs(noise[:, others] - noise[:, [i]]).T / error[i, others, None]
            np.maximum.accumulate(statistic, axis=0, out=statistic)
            found = np.quantile(statistic, level, axis=1, method="inverted_cdf")
            critical[i, 1 : len(others) + 1], critical[i, len(others) + 1 :] = found, found[-1]
            np.maximum(largest, statistic[-1], out=largest)
        of_all = float(np.quantile(largest, level, method="inverted_cdf"))
        return cls(theta, scale, compared, critical, of_all, level)

    def held(self, theta: Float, covariance: Float) -> Held:
        """Whether what a board with these strengths (M,), NaN without a rating, and errors claims is true."""
        rated = np.isfinite(theta) & np.isfinite(self.theta)
        truth, z, unit = np.where(rated, self.theta, np.nan), normal_quantile(self.level), self.scale.unit
        own = np.sqrt(np.maximum(np.diag(self.scale.covariance(covariance)), 0))
        own = np.where(rated & (own > 0), own, np.nan)  # a model that the gauge holds has no interval
        at = np.nan_to_num(self.theta)
        off = self.scale.aligned_ratings(theta[None], at)[0] - self.scale.ratings(at)
        error = _errors(covariance)
        order = np.argsort(-self.theta, kind="stable")
        above, below = order[:-1], order[1:]
        apart_by = theta[above] - theta[below] - (truth[above] - truth[below])
        with np.errstate(invalid="ignore", divide="ignore"):
            statistic = np.abs(theta[:, None] - theta) / error
        comparable = rated & self.compared
        statistic[~(comparable[:, None] & comparable) | (error == 0)] = 0.0
        ranks, width = self._ranks(theta, truth, statistic > self._critical_of_each(statistic)[:, None])
        all_ranks, all_width = self._ranks(theta, truth, statistic > self.critical_of_all)
        starts = self._tier_starts(theta, statistic, comparable)
        return Held(
            ratings=_share(np.abs(off) <= z * own, own),
            ratings_width=2 * z * own,
            neighbours=_share(np.abs(apart_by) <= z * error[above, below], apart_by),
            neighbours_width=np.where(np.isnan(apart_by), np.nan, 2 * z * unit * error[above, below]),
            ranks=ranks,
            ranks_width=width,
            all_ranks=float(np.nanmin(all_ranks, initial=1.0)),
            all_ranks_width=float(all_width[rated].mean()) if rated.any() else np.nan,
            tiers=float((truth[starts[:-1]] > truth[starts[1:]]).all()),
            n_tiers=float(len(starts)),
        )

    def _critical_of_each(self, statistic: Float) -> Float:
        """(M,) critical values by steps down, see `Differences.rank_sets`; of k models left, those of the k nearest."""
        models = np.arange(len(statistic))
        left = np.full(len(models), len(models) - 1)
        while True:
            critical = self.critical[models, left]
            still = ((statistic <= critical[:, None]) & self.compared).sum(1) - self.compared
            still = np.where(still > 0, np.minimum(still, left), left)
            if (still == left).all():
                return critical
            left = still

    def _ranks(self, theta: Float, truth: Float, apart: Bool) -> tuple[Float, Float]:
        """(M,) whether sets of ranks hold, and how many ranks they have, from which pairs are told ``apart`` (M, M)."""
        n = np.isfinite(truth).sum()
        best, worst = 1 + (apart & (theta > theta[:, None])).sum(1), n - (apart & (theta < theta[:, None])).sum(1)
        true_best, true_worst = 1 + (truth > truth[:, None]).sum(1), n - (truth < truth[:, None]).sum(1)
        holds = _share((best <= true_best) & (true_worst <= worst), truth)
        return holds, np.where(np.isnan(truth), np.nan, worst - best + 1)

    def _tier_starts(self, theta: Float, statistic: Float, comparable: Bool) -> NDArray[np.intp]:
        """The first models of all tiers, from the top down; see `Differences.tiers`."""
        models = np.flatnonzero(comparable)
        models = models[np.argsort(-theta[models], kind="stable")]
        starts = [0] if len(models) else []
        while starts:
            below = statistic[models[starts[-1]], models] > self.critical_of_all
            below[: starts[-1] + 1] = False
            if not below.any():
                break
            starts.append(int(below.argmax()))
        return models[starts]


def _errors(covariance: Float) -> Float:
    """(M, M) standard errors of differences."""
    variance = np.diag(covariance)
    return np.sqrt(np.maximum(variance[:, None] + variance - 2 * covariance, 0))


def _share(holds: Bool, known: Float) -> Float:
    """1 where something holds, 0 where not, NaN where ``known`` is."""
    return np.where(np.isnan(known), np.nan, holds)
