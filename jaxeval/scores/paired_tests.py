"""Tests and intervals of paired scores: of two models, and of all pairs, with Holm's steps.

In simulations of right and wrong answers by ten equal models, with 400 boards each and a nominal error of .05, the
largest of all differences by draws (max-t) falsely told two models apart on .155 of the boards with 30 items, on .11
with 60, and on .05 to .1 with 100 to 200. Holm's steps of exact tests stay under .05 everywhere. Where few answers
differ, or models have different items, variances at the data are too small, whatever the number of items: at a rate of
.9 and 5 and 100 items of their own, Student's t told two equal models apart on .55 of the boards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from jaxeval.arrays import Bool, Float, Int
from jaxeval.data.item_scores import ItemScores
from jaxeval.errors import DataError
from jaxeval.plain_tables import Whole, counts_from_one
from jaxeval.scores.estimates import ScoreEstimates, item_shares
from jaxeval.statistics import special
from jaxeval.statistics.clusters import changed_effect, freedom_of, widening
from jaxeval.statistics.differences import open_ranks, tiers_below
from jaxeval.statistics.p_values import holm, p_above, p_of_equal_shares, root_between, score_interval
from jaxeval.statistics.quantiles import checked_level, skewed_interval, skewed_p, skewness_of

Alternative = Literal["two-sided", "greater", "less"]
#: With so many differences or fewer that are not 0, signs are flipped in all ways.
_ALL_FLIPS = 16
#: Random flips where there are more differences: a p of .05 then has a standard error of .0007.
N_FLIPS = 100_000
#: Flips times units held at once.
_AT_ONCE = 4_000_000
_BETS = 100
#: Degrees of freedom from which on differences of all pairs at once keep their level by draws.
ENOUGH_FOR_DRAWS = 299
_MANY = 64  # units that differ: one sign for all has a chance of 1e-19
_BLOCK = 1024


def mcnemar(only_a: Int | int, only_b: Int | int, alternative: Alternative = "two-sided") -> Float:
    """Return McNemar's exact p (DOI 10.1007/BF02295996), from the items that only one of two models solves.

    Under the null each such item is solved by either model with probability 1/2. Without one, p is 1.
    """
    a, b = np.asarray(only_a, np.int64), np.asarray(only_b, np.int64)
    least = {"two-sided": np.minimum(a, b), "greater": b, "less": a}[alternative]  # the fewer, the smaller p
    tail = special.bdtr(least.astype(float), a + b, 0.5)
    return np.minimum(2 * tail, 1.0) if alternative == "two-sided" else np.asarray(tail)


def least_p(n: Int | int, alternative: Alternative = "two-sided") -> Float:
    """Return the smallest p-value of any exact test of ``n`` differences that are not 0: one sign for all."""
    return np.asarray(0.5 ** np.maximum(np.asarray(n) - (alternative == "two-sided"), 0))


def sign_flips(difference: Float, seed: int, alternative: Alternative = "two-sided") -> tuple[float, int]:
    """Return the p-value of a sign-flip test of the mean of (U,) differences, and its random flips: 0 if all counted.

    The null leaves signs to chance (Fisher's randomisation).
    Few differences, and differences of one size (as of right and wrong answers), are flipped in all ways: the p is
    exact, and for those of one size equal to `mcnemar`. Others are flipped at random, and p = (1 + n) / (1 + flips),
    with n the number of flips whose sum is at least as far from 0.
    """
    moved = difference[difference != 0]
    if len(moved) == 0:
        return 1.0, 0
    size = np.abs(moved)
    if np.ptp(size) <= 1e-12 * size.max():
        up = int((moved > 0).sum())
        return float(mcnemar(up, len(moved) - up, alternative)), 0
    total = moved.sum()
    if len(moved) <= _ALL_FLIPS:
        sums = np.zeros(1)
        for x in size:
            sums = np.concatenate([sums + x, sums - x])
        return float(_as_far(sums, total, alternative, size.sum()).mean()), 0
    rng = np.random.default_rng([seed, len(moved)])
    step, n = max(_AT_ONCE // len(moved), 1), 0
    for start in range(0, N_FLIPS, step):
        signs = 2.0 * rng.integers(0, 2, (min(step, N_FLIPS - start), len(moved)), np.int8) - 1
        n += int(_as_far(signs @ size, total, alternative, size.sum()).sum())
    return (1 + n) / (1 + N_FLIPS), N_FLIPS


def _as_far(sums: Float, total: float, alternative: Alternative, largest: float) -> Bool:
    """Return which sums are at least as extreme as the ``total``, up to rounding."""
    slack = 1e-12 * largest
    if alternative == "two-sided":
        return np.abs(sums) >= abs(total) - slack
    return sums >= total - slack if alternative == "greater" else sums <= total + slack


def student_p(difference: float, error: float, dof: float, alternative: Alternative = "two-sided") -> float:
    """Return the p-value of a difference whose standard error has ``dof`` degrees of freedom; NaN without an error."""
    if not error > 0:
        return float("nan")
    t = difference / error
    if alternative == "two-sided":
        return float(2 * special.stdtr(dof, -abs(t)))
    return float(special.stdtr(dof, -t if alternative == "greater" else t))


def anytime_p(difference: Float, alternative: Alternative = "two-sided", null: float = 0.0) -> float:
    """Return a p-value of the mean of (U,) differences between -1 and 1 that holds at every look at growing data.

    A gambler who bets a share x of the wealth on each difference ends with prod(1 + x (d_u - null)) times the start.
    Under the null, a mean of ``null``, this is a fair game for every x, and so is the mean over many x. Wealth then
    exceeds 1 / p at any time with probability p at most (Ville 1939; Waudby-Smith and Ramdas 2024, DOI
    10.1093/jrsssb/qkad009). The order of the differences does not matter.
    """
    share = (np.arange(_BETS) + 0.5) / _BETS / (1 + abs(null))  # so that wealth stays above 0
    stakes = {"two-sided": np.concatenate([-share, share]), "greater": share, "less": -share}[alternative]
    value, times = np.unique(np.clip(difference, -1, 1), return_counts=True)
    wealth = np.log1p(stakes[:, None] * (value - null)) @ times
    most = wealth.max()
    return float(np.exp(-max(most + np.log(np.exp(wealth - most).mean()), 0.0)))


#: The p-value, at every look, of an alternative to a null.
Anytime = Callable[[Alternative, float], float]
#: The p-value of the null that the difference is as given or less (side 1), or more (-1).
Beyond = Callable[[float, int], float]


def check_margin(margin: float | None, widest: float) -> None:
    """Refuse a margin that no two scores differ by, of which every model would be within."""
    if margin is not None and margin >= widest:
        points = f": {margin:g} percentage points are {margin / 100:g}" if widest == 1 else ""
        raise DataError(f"the margin {margin:g} is not below {widest:g}, the largest difference of such scores{points}")


def of_margin(margin: float | None, p_beyond: Beyond, anytime: Anytime) -> dict[str, float]:
    """Return the tests of a margin, by name. Those for every look are never more lenient than the others."""
    if margin is None:
        return {}
    not_worse, worse, below = p_beyond(-margin, 1), p_beyond(-margin, -1), p_beyond(margin, -1)
    return {
        "p_non_inferior": not_worse, "p_inferior": worse, "p_equivalent": max(not_worse, below),
        "p_anytime_non_inferior": max(anytime("greater", -margin), not_worse),
        "p_anytime_inferior": max(anytime("less", -margin), worse),
    }  # fmt: skip


def interval_of_answers(differences: ItemScores, shared: Bool, level: float) -> tuple[float, float, Beyond]:
    """Return Tango's interval of right and wrong answers, and his test.

    Weighted items, benchmarks and clusters hold as much as their effective number of items.
    """
    apart, share, residual = item_shares(differences, shared)
    cluster = None if differences.cluster is None else differences.cluster.number[shared]
    freedom = freedom_of(cluster)
    effect = 1.0 if cluster is None or freedom is None else changed_effect(residual, share, cluster)
    effect *= widening(freedom, level) ** 2
    if effect != effect:  # one cluster shows no error
        return np.nan, np.nan, lambda null, side: np.nan
    n = float(1 / (share @ share)) / effect
    only_a, only_b = n * float(share @ (apart > 0)), n * float(share @ (apart < 0))
    lower, upper = score_interval(only_a, only_b, n, level)

    def p_beyond(null: float, side: int) -> float:
        return p_above(*((only_a, only_b) if side > 0 else (only_b, only_a)), n, side * null)

    return lower, upper, p_beyond


def interval_of_scores(
    estimates: ScoreEstimates, level: float, anytime: Anytime, scale: float, bounded: bool
) -> tuple[float, float, Beyond]:
    """Return `interval_of_answers` of other scores: Student's and Hall's; without variance, what holds at every look.

    Differences as large as the ``scale`` may not have been seen, so that no p-value is smaller than theirs would be.
    """
    difference, error, dof, skew = (
        float(x[0]) for x in (estimates.score, estimates.standard_errors, estimates.dof, estimates.skew)
    )

    def p_beyond(null: float, side: int) -> float:
        gap, n = side * (difference - null), estimates.n_effective
        if estimates.in_one_cluster:
            return float("nan")
        if error > 0:
            gained, share, trials = side * difference / scale * n, side * null / scale, max(round(n), 1)
            if share > 0:
                unseen = special.bdtrc(np.ceil(gained - 1e-9) - 1, trials, min(share, 1.0)) if gained > 0 else 1.0
            else:
                unseen = special.bdtr(np.floor(max(-gained, 0.0) + 1e-9), trials, min(-share, 1.0))
            return float(max(skewed_p(np.array(gap / error), np.array(dof), np.array(side * skew)), unseen))
        p = anytime("greater" if side > 0 else "less", null)
        if p == p or not bounded:
            return p
        room = scale + side * difference  # how far below the others an item can be
        return float((1 - np.clip(gap / room, 0.0, 1.0)) ** n) if room > 0 else float(gap <= 0)

    if error > 0:
        ends = skewed_interval(estimates.score, estimates.standard_errors, estimates.dof, estimates.skew, level)
        lower, upper = (float(end[0]) for end in ends)
    else:
        lower, upper = (_end(partial(p_beyond, side=k), difference, -k * scale, level) for k in (1, -1))
    return lower, upper, p_beyond


def _end(p: Callable[[float], float], difference: float, limit: float, level: float) -> float:
    """Find where the p-value of nulls from ``difference`` to a ``limit`` falls below that of one side; NaN without."""
    tail = (1 - level) / 2
    at_limit = p(limit)
    if at_limit >= tail or at_limit != at_limit:
        return limit if at_limit == at_limit else float("nan")
    return root_between(lambda null: p(null) - tail, limit, difference)


def anytime_test(
    parts: Float, estimates: ScoreEstimates, pair: Float, bounds: tuple[float, float] | None, weighted: bool
) -> tuple[Anytime, float, bool]:
    """Return the p-value of a null that holds at every look, the scale of the scores, and whether it is known.

    The p-value is NaN without bounds, or where units do not count alike. Without bounds, the scale is what scores span.
    """
    low, high = (0.0, 1.0) if bounds is None else bounds
    inside = bool(pair.min() >= low and pair.max() <= high)
    if not high > low or (bounds is not None and not inside):
        raise ValueError(f"bounds must hold all scores, from {pair.min():g} to {pair.max():g}, got {bounds!r}")
    scale = float(high - low if inside else np.ptp(pair))
    if not inside or estimates.unit != "item" or weighted:
        return lambda alternative, null: float("nan"), scale, inside
    scaled = parts * len(parts) / scale
    return lambda alternative, null: anytime_p(scaled, alternative, null / scale), scale, True


@dataclass(frozen=True, eq=False)
class PairwiseDifferences:
    """Differences of all pairs of M models, each with a test of its own; like `Differences` of draws.

    A pair without a p-value is never told apart. A model without any has no rank set and no tier.
    """

    estimate: Float  # (M,)
    p_values: Float  # (M, M) two-sided, one pair at a time; NaN without a test
    known: Bool  # (M,) models that have a test

    def tiers(self, level: float) -> Int:
        """Return (M,) tiers, 1 = top: each starts at the first model told apart from the leader of the tier above.

        0 for models that are not known.
        """
        apart = self._apart_at_once(level)
        tier = np.zeros(len(self.estimate), np.int64)
        models = np.argsort(-self.estimate, kind="stable")
        models = models[self.known[models]]
        tier[models] = tiers_below(len(models), lambda leader: apart[models[leader], models])
        return tier

    def rank_sets(self, level: float, simultaneous: bool = False) -> tuple[Int, Int]:
        """Return (M,) best and worst ranks that the differences leave open, each set at ``level``, or all at once."""
        if simultaneous:
            apart = self._apart_at_once(level)
        else:
            apart = np.stack([holm(row) for row in self.p_values]) <= 1 - checked_level(level)
        return open_ranks(self.estimate, apart, len(self.estimate))

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
    """Count units (M, M) to which two models owe different parts of their scores; from 64 on not counted to an end.

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
