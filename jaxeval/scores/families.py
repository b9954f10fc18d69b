"""Which models few items tell apart: a test of each pair, with Holm's steps.

In simulations of right and wrong answers by ten equal models, with 400 boards each and a nominal error of .05, the
largest of all differences by draws (max-t) falsely told two models apart on .155 of the boards with 30 items, on .11
with 60, and on .05 to .1 with 100 to 200. Holm's steps of exact tests stay under .05 everywhere. Where few answers
differ, or models have different items, variances at the data are too small, whatever the number of items: at a rate of
.9 and 5 and 100 items of their own, Student's t told two equal models apart on .55 of the boards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxeval.arrays import Bool, Float, Int
from jaxeval.plain_tables import Whole, counts_from_one
from jaxeval.scores.estimates import ScoreEstimates
from jaxeval.scores.paired_tests import least_p, mcnemar
from jaxeval.statistics.multiplicity import holm
from jaxeval.statistics.paired import p_of_equal_shares
from jaxeval.statistics.quantiles import checked_level, skewed_p, skewness_of

#: Degrees of freedom from which on differences of all pairs at once keep their level by draws.
ENOUGH_FOR_DRAWS = 299
_MANY = 64  # units that differ: one sign for all has a chance of 1e-19
_BLOCK = 1024


@dataclass(frozen=True, eq=False)
class PairwiseDifferences:
    """Differences of all pairs of M models, each with a test of its own; like `Differences` of draws.

    A pair without a p-value is never told apart. A model without any has no rank set and no tier.
    """

    estimate: Float  # (M,)
    p_values: Float  # (M, M) two-sided, one pair at a time; NaN without a test
    known: Bool  # (M,) models that have a test

    def tiers(self, level: float) -> Int:
        """(M,) tiers, 1 = top: each starts at the first model that is told apart from the leader of the tier above.

        0 for models that are not known.
        """
        apart = self._apart_at_once(level)
        tier = np.zeros(len(self.estimate), np.int64)
        current, below = 0, np.ones(len(tier), bool)
        for model in np.argsort(-self.estimate, kind="stable"):
            if not self.known[model]:
                continue
            if below[model]:
                current, below = current + 1, apart[model]
            tier[model] = current
        return tier

    def rank_sets(self, level: float, simultaneous: bool = False) -> tuple[Int, Int]:
        """Return (M,) best and worst ranks that the differences leave open, each set at ``level``, or all at once."""
        if simultaneous:
            apart = self._apart_at_once(level)
        else:
            apart = np.stack([holm(row) for row in self.p_values]) <= 1 - checked_level(level)
        above = self.estimate > self.estimate[:, None]
        below = self.estimate < self.estimate[:, None]
        return 1 + (apart & above).sum(1), len(self.estimate) - (apart & below).sum(1)

    def ranks(self, level: float, simultaneous: bool) -> dict[str, Whole]:
        """Return (M,) columns ``rank_best, rank_worst, tier``."""
        best, worst = self.rank_sets(level, simultaneous)
        columns = {"rank_best": best, "rank_worst": worst, "tier": self.tiers(level)}
        return {name: counts_from_one(np.where(self.known, x, 0)) for name, x in columns.items()}

    def _apart_at_once(self, level: float) -> Bool:
        first, second = np.triu_indices(len(self.estimate), 1)
        apart = np.zeros(self.p_values.shape, bool)
        apart[first, second] = holm(self.p_values[first, second]) <= 1 - checked_level(level)
        return apart | apart.T


def pairwise(estimates: ScoreEstimates, estimate: Float) -> PairwiseDifferences:
    """Return the differences of all pairs of models, ranked by their ``estimate`` (M,).

    Shares of right answers are compared by exact tests. Other scores are compared by Student's t and Hall's, but no
    p-value is smaller than that of one sign for all units that differ.
    """
    if estimates.answers is not None:
        return PairwiseDifferences(estimate, _p_of_shares(estimates.answers, estimate), np.ones(len(estimate), bool))
    known = np.isfinite(estimates.unseen) & (estimates.freedom > 0)
    dof = np.fmin(estimates.freedom[:, None], estimates.freedom)
    gap = estimate[:, None] - estimate
    t = np.abs(gap) / np.where(known[:, None] & known, estimates.difference_errors(), np.nan)
    p = 2 * skewed_p(t, dof, np.sign(gap) * _skewness_of_differences(estimates, dof))
    if estimates.parts is not None:
        p = np.maximum(p, least_p(units_that_differ(estimates.parts)))
    return PairwiseDifferences(estimate, np.minimum(p, 1.0), known)


def by_pairs(estimates: ScoreEstimates, level: float) -> bool:
    """Return whether pairs are to be tested one by one, as draws of all pairs at once err too often.

    So it is for right and wrong answers, whose tests are exact, for few units, for equal scores, which show no
    variance, and where some two models differ on few units.
    """
    few = not (np.nan_to_num(estimates.dof) >= ENOUGH_FOR_DRAWS).all()
    return estimates.answers is not None or few or _few_differ(estimates, level)


def _few_differ(estimates: ScoreEstimates, level: float) -> bool:
    """Return whether some two models differ on so few units that draws of all pairs at once err too often.

    Fewer than would tell them from chance, if all had one sign, by Bonferroni's correction. Equal scores of two models
    are told apart by no draws.
    """
    n_models = len(estimates.models)
    enough = 1 + np.log2(max(n_models * (n_models - 1) / 2, 1) / (1 - level))
    if estimates.parts is None:
        return False
    differ = units_that_differ(estimates.parts)
    return bool(((differ < enough) & (differ > 0)).any())


def units_that_differ(parts: Float) -> Int:
    """(M, M) units to which two models owe different parts of their scores; from 64 on they are not counted to an end.

    From (U, M) ``parts``.
    """
    first, second = np.triu_indices(parts.shape[1], 1)
    n = np.zeros(len(first), np.int64)
    least = 1e-12 * np.abs(parts).max(initial=0.0)
    for start in range(0, len(parts), _BLOCK):
        few = np.flatnonzero(n < _MANY)
        block = parts[start : start + _BLOCK]
        for pairs in np.array_split(few, max(len(few) // _BLOCK, 1)):
            n[pairs] += (np.abs(block[:, first[pairs]] - block[:, second[pairs]]) > least).sum(0)
    counts = np.zeros((parts.shape[1],) * 2, np.int64)
    counts[first, second] = n
    return counts + counts.T


def _skewness_of_differences(estimates: ScoreEstimates, dof: Float) -> Float:
    """Return (M, M) skewness of the score of one model less that of another."""
    if estimates.influence is None:
        return np.zeros(dof.shape)
    influence = estimates.influence
    cubes, crossed = (influence**3).sum(0), (influence**2).T @ influence
    third = cubes[:, None] - cubes - 3 * (crossed - crossed.T)
    return skewness_of(third, estimates.difference_errors() ** 2, dof)


def _p_of_shares(answers: Float, estimate: Float) -> Float:
    """Return (M, M) exact p-values of equal shares of right answers, from (I, M) answers with NaN where there is none.

    A pair whose test is of the other sign than the difference of the scores, as where one model has the easier items,
    has the p-value 1.
    """
    there, right_here = (~np.isnan(answers)).astype(float), np.nan_to_num(answers)
    right_of_both = right_here.T @ there
    counts = (
        right_of_both - right_here.T @ right_here,  # (M, M) items that both have, and the model alone has right
        there.sum(0)[:, None] - there.T @ there,  # items that the other lacks,
        right_here.sum(0)[:, None] - right_of_both,  # and of these, right ones
    )
    only, alone, right = (np.rint(each).astype(np.int64) for each in counts)
    p = mcnemar(only, only.T)
    away = (only - only.T) / 2
    for a, b in np.argwhere(np.triu((alone > 0) & (alone.T > 0))):
        ones = only[a, b], only[b, a], right[a, b], alone[a, b], right[b, a], alone[b, a]
        p[a, b] = p[b, a] = p_of_equal_shares(*ones)
    n = alone + alone.T
    away = away + right - np.where(n > 0, (right + right.T) * alone / np.maximum(n, 1), 0.0)
    against = away * (estimate[:, None] - estimate) <= 0
    p = np.where(against, 1.0, p)
    np.fill_diagonal(p, np.nan)
    return p
