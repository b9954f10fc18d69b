"""Tests of paired scores: McNemar's exact test, sign flips, and Student's t."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from jaxeval.arrays import Bool, Float, Int
from jaxeval.statistics import special

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
