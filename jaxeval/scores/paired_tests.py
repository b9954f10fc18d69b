"""Tests and intervals of paired scores: McNemar's exact test, sign flips, Student's t, Tango's, margins."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from jaxeval.arrays import Bool, Float, Int
from jaxeval.data.item_scores import ItemScores
from jaxeval.scores.estimates import ScoreEstimates, item_shares
from jaxeval.statistics import special
from jaxeval.statistics.clusters import changed_effect, freedom_of, widening
from jaxeval.statistics.paired import p_above, root_between, score_interval
from jaxeval.statistics.quantiles import skewed_interval, skewed_p

Alternative = Literal["two-sided", "greater", "less"]
#: With so many differences or fewer that are not 0, signs are flipped in all ways.
_ALL_FLIPS = 16
#: Random flips where there are more differences: a p of .05 then has a standard error of .0007.
N_FLIPS = 100_000
#: Flips times units held at once.
_AT_ONCE = 4_000_000
_BETS = 100


class FlipTest(NamedTuple):
    """The p-value of a sign-flip test."""

    p: float
    n_flips: int  # random flips; 0 where all were counted


def mcnemar(only_a: Int | int, only_b: Int | int, alternative: Alternative = "two-sided") -> Float:
    """Exact p of McNemar's test (DOI 10.1007/BF02295996), from the items that only one of two models solves.

    Under the null each such item is solved by either model with probability 1/2. Without one, p is 1.
    """
    a, b = np.asarray(only_a, np.int64), np.asarray(only_b, np.int64)
    least = {"two-sided": np.minimum(a, b), "greater": b, "less": a}[alternative]  # the fewer, the smaller p
    tail = special.bdtr(least.astype(float), a + b, 0.5)
    return np.minimum(2 * tail, 1.0) if alternative == "two-sided" else np.asarray(tail)


def least_p(n: Int | int, alternative: Alternative = "two-sided") -> Float:
    """The smallest p-value of any exact test of ``n`` differences that are not 0: that of one sign for all."""
    return np.asarray(0.5 ** np.maximum(np.asarray(n) - (alternative == "two-sided"), 0))


def sign_flips(difference: Float, seed: int, alternative: Alternative = "two-sided") -> FlipTest:
    """Sign-flip test (Fisher's randomisation) of the mean of (U,) differences, whose signs the null leaves to chance.

    Few differences, and differences of one size (as of right and wrong answers), are flipped in all ways: the p is
    exact, and for those of one size equal to `mcnemar`. Others are flipped at random, and p = (1 + n) / (1 + flips),
    with n the number of flips whose sum is at least as far from 0.
    """
    moved = difference[difference != 0]
    if len(moved) == 0:
        return FlipTest(1.0, 0)
    size = np.abs(moved)
    if np.ptp(size) <= 1e-12 * size.max():
        up = int((moved > 0).sum())
        return FlipTest(float(mcnemar(up, len(moved) - up, alternative)), 0)
    total = moved.sum()
    if len(moved) <= _ALL_FLIPS:
        sums = np.zeros(1)
        for x in size:
            sums = np.concatenate([sums + x, sums - x])
        return FlipTest(float(_as_far(sums, total, alternative, size.sum()).mean()), 0)
    rng = np.random.default_rng([seed, len(moved)])
    step, n = max(_AT_ONCE // len(moved), 1), 0
    for start in range(0, N_FLIPS, step):
        signs = 2.0 * rng.integers(0, 2, (min(step, N_FLIPS - start), len(moved)), np.int8) - 1
        n += int(_as_far(signs @ size, total, alternative, size.sum()).sum())
    return FlipTest((1 + n) / (1 + N_FLIPS), N_FLIPS)


def _as_far(sums: Float, total: float, alternative: Alternative, largest: float) -> Bool:
    """Sums that are at least as extreme as the ``total``, up to rounding."""
    slack = 1e-12 * largest
    if alternative == "two-sided":
        return np.abs(sums) >= abs(total) - slack
    return sums >= total - slack if alternative == "greater" else sums <= total + slack


def student_p(difference: float, error: float, dof: float, alternative: Alternative = "two-sided") -> float:
    """The p-value of a difference with a standard error of ``dof`` degrees of freedom; NaN without an error."""
    if not error > 0:
        return float("nan")
    t = difference / error
    if alternative == "two-sided":
        return float(2 * special.stdtr(dof, -abs(t)))
    return float(special.stdtr(dof, -t if alternative == "greater" else t))


def anytime_p(difference: Float, alternative: Alternative = "two-sided", null: float = 0.0) -> float:
    """A p-value of the mean of (U,) differences between -1 and 1 that holds at every look at growing data.

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
_OF_MARGIN = ("p_non_inferior", "p_inferior", "p_equivalent", "p_anytime_non_inferior", "p_anytime_inferior")


def of_margin(margin: float | None, p_beyond: Beyond, anytime: Anytime) -> dict[str, float]:
    """The tests of a margin, by their names. Those that hold at every look are never more lenient than the others."""
    if margin is None:
        return dict.fromkeys(_OF_MARGIN, np.nan)
    not_worse, worse, below = p_beyond(-margin, 1), p_beyond(-margin, -1), p_beyond(margin, -1)
    at_every_look = max(anytime("greater", -margin), not_worse), max(anytime("less", -margin), worse)
    values = not_worse, worse, max(not_worse, below), *at_every_look
    return dict(zip(_OF_MARGIN, values, strict=True))


def interval_of_answers(differences: ItemScores, shared: Bool, level: float) -> tuple[float, float, Beyond]:
    """Tango's interval of right and wrong answers, and his test.

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
    """As `interval_of_answers`, of other scores: Student's and Hall's, without variance by what holds at every look.

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
    """Where the p-value of nulls from the ``difference`` to a ``limit`` falls below that of one side; NaN without."""
    tail = (1 - level) / 2
    at_limit = p(limit)
    if at_limit >= tail or at_limit != at_limit:
        return limit if at_limit == at_limit else float("nan")
    return root_between(lambda null: p(null) - tail, limit, difference)


def anytime_test(
    parts: Float, estimates: ScoreEstimates, pair: Float, bounds: tuple[float, float] | None, weighted: bool
) -> tuple[Anytime, float, bool]:
    """The p-value, of a null, that holds at every look, the scale of the scores, and whether it is known.

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
