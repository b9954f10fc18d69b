"""Tests of two proportions, Tango's score interval of their difference, and p-values of many tests at once.

Student's interval takes the variance of the differences at the data, which is 0 for equal answers and far too small for
a few unlike ones. The score takes it at the difference that is asked about.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jaxeval.arrays import Float
from jaxeval.lazy_names import scipy
from jaxeval.statistics import special
from jaxeval.statistics.quantiles import normal_quantile


def score_z(only_a: float, only_b: float, n: float, null: float) -> float:
    """Return Tango's score of the difference ``null``: (b - c - n null) / its standard error there.

    With b items that ``only_a`` has right, c that ``only_b`` has, of ``n``; the share q of the latter is estimated
    under the null (Tango 1998, DOI 10.1002/(SICI)1097-0258(19980430)17:8<891::AID-SIM780>3.0.CO;2-B). The numbers need
    not be whole: of dependent items they are effective ones.
    """
    linear = (2 * n - only_a + only_b) * null - only_a - only_b
    q = (np.sqrt(max(linear**2 + 8 * n * only_b * null * (1 - null), 0.0)) - linear) / (4 * n)
    variance = n * (2 * q + null * (1 - null))
    apart = only_a - only_b - n * null
    return float(apart / np.sqrt(variance)) if variance > 1e-12 else float(np.copysign(np.inf, apart) if apart else 0.0)


def score_interval(only_a: float, only_b: float, n: float, level: float) -> tuple[float, float]:
    """Return the differences that the score does not refuse at ``level``, two-sided; never empty, and within [-1, 1].

    Examples:
        >>> [round(end, 4) for end in score_interval(0, 0, 500, 0.95)]
        [-0.0076, 0.0076]
        >>> [round(end, 3) for end in score_interval(50, 0, 200, 0.95)]
        [0.195, 0.314]
    """
    z, estimate = normal_quantile(level), (only_a - only_b) / n

    def end(limit: float, side: int) -> float:
        def beyond(null: float) -> float:
            return side * score_z(only_a, only_b, n, null) + z

        # The score of the limit itself may have no variance.
        far = limit - side * 1e-9
        if abs(estimate - far) < 1e-9 or beyond(far) > 0:
            return limit
        return root_between(beyond, estimate, far)

    return end(-1.0, -1), end(1.0, 1)


def root_between(function: Callable[[float], float], a: float, b: float) -> float:
    """Return where a function of unlike signs at ``a`` and ``b`` is 0, to 1e-12, by halving.

    SciPy's root finders come with all of its optimisers, whose import takes longer than a comparison.
    """
    sign = function(a) > 0
    while abs(b - a) > 1e-12 * max(1.0, abs(a)):
        middle = (a + b) / 2
        if (function(middle) > 0) == sign:
            a = middle
        else:
            b = middle
    return float((a + b) / 2)


def p_above(only_a: float, only_b: float, n: float, null: float) -> float:
    """Return the p-value of the null that the difference is ``null`` or less.

    It is that of the score with half an item less (a correction for continuity), or a larger one of these. Of all
    shares of unlike answers, no exact test has a smaller one than that of a binomial number: below 0 of c, as where a
    is never right alone; above 0 of b, where b never is. And where a is right alone: that of b among the unlike
    answers, whose share is as seen. Errors of the first kind at .05, summed over all outcomes of 2 to 200 items
    of which any share differs, at nulls of .02 to .3, are then .0505 at most above 0, and .05 below (where two items
    at -.5 get to .0625); those of the score alone get to .13. Between whole numbers, as of effective items, a beta
    integral continues the binomial sums. Below 0 the correction takes .01 of the power of equal
    models on average, .06 at most from 200 items on, and .18 with fewer: .24 becomes .06 where the margin is two items.

    Examples:
        >>> f"{p_above(0, 0, 500, -0.02):.1g} {p_above(0, 1, 500, -0.02):.1g} {p_above(20, 0, 500, 0.02):.1g}"
        '0.0007 0.002 0.003'
    """
    ahead = only_a - only_b
    score = special.ndtr(-score_z(max(only_a - 0.5, 0.0), only_b, n, null))
    if ahead <= 0:
        least = 1.0 if null > 0 or ahead <= -n else special.betainc(n + ahead, 1 - ahead, 1 + null)
    else:
        least = special.betainc(ahead, n - ahead + 1, null) if null > 0 else 0.0
    if only_a <= 0:
        return float(max(score, least))
    share = np.clip((1 + null * n / (only_a + only_b)) / 2, 0.0, 1.0)
    return float(max(score, least, special.betainc(only_a, only_b + 1, share)))


def p_of_equal_shares(only_a: int, only_b: int, right_a: int, n_a: int, right_b: int, n_b: int) -> float:
    """Give the exact two-sided p-value of the null that two models are right equally often, on items that one may lack.

    Of the items that both have, a alone is right on ``only_a`` and b alone on ``only_b``; of the ``n_a`` and ``n_b``
    that one of them has, they are right on ``right_a`` and ``right_b``. Given how many answers are right, the null
    leaves to chance which model has them: a binomial number of the first kind (McNemar's test), a hypergeometric one of
    the second (Fisher's). The statistic is their sum, on which alone the difference of the two scores depends.

    Examples:
        >>> round(p_of_equal_shares(5, 0, 0, 0, 0, 0), 4), round(p_of_equal_shares(0, 0, 1, 1, 15, 30), 4)
        (0.0625, 1.0)
    """
    unlike, right, n = only_a + only_b, right_a + right_b, n_a + n_b
    h = np.arange(max(0, right - n_b), min(right, n_a) + 1.0)
    log = scipy.special.gammaln
    chance = np.exp(
        log(n_a + 1) + log(n_b + 1) + log(right + 1) + log(n - right + 1) - log(n + 1)
        - log(h + 1) - log(n_a - h + 1) - log(right - h + 1) - log(n_b - right + h + 1)
    )  # fmt: skip
    left = only_a + right_a - h
    at_most = np.where(left < 0, 0.0, special.bdtr(np.clip(left, 0, unlike), unlike, 0.5))
    at_least = np.where(left > unlike, 0.0, special.bdtr(np.clip(unlike - left, 0, unlike), unlike, 0.5))
    return float(min(1.0, 2 * min(chance @ at_most, chance @ at_least)))


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
