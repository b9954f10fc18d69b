"""Accuracy from a judge's share of right answers, by its specificity and sensitivity (Rogan and Gladen 1978)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from jaxeval.accuracy.statuses import Status
from jaxeval.arrays import Float
from jaxeval.execution.elementwise import (
    Numbers,
    Words,
    broadcast,
    evaluate,
    require,
    require_share,
    scalar_or_array,
    shares,
)
from jaxeval.kernels import judge_error
from jaxeval.kernels.judge_error import Doubt, Rates
from jaxeval.show.shown import Result
from jaxeval.statistics.quantiles import normal_quantile, wilson

#: An estimate this far outside of [0, 1] is on its edge, and a J this close to 0 is 0 with its rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, repr=False)
class RoganGladen(Result):
    """Corrected accuracy: scalars, or arrays of the broadcast shape of the arguments.

    ``status`` is one of these; `STATUSES` has a sentence for each.

    * "ok"; "clipped": the estimate left [0, 1]; "outside": the whole interval did, so the rates do not allow ``p``;
    * "few labels of a class": m0 or m1 is below 5; "J near 0": the 99.9 % interval of J includes 0. Then nothing bounds
      the estimate: the interval is [0, 1], its untruncated ends are infinite. `judge_error.doubt` explains the limits;
    * "J <= 0": the judge is no better than chance, before or after the adjustment of the interval; "labels of one class
      only": m0 or m1 is 0. Then all numbers are NaN.
    """

    estimate: Numbers  # in [0, 1]
    lower: Numbers  # truncated to [0, 1]
    upper: Numbers
    status: Words
    lower_untruncated: Numbers
    upper_untruncated: Numbers
    j: Numbers  # q0 + q1 - 1
    level: float

    def _sentences(self) -> list[str]:
        return _in_words("accuracy", self)


def rogan_gladen(
    p: ArrayLike, q0: ArrayLike, q1: ArrayLike, n: ArrayLike, m0: ArrayLike, m1: ArrayLike, level: float = 0.95
) -> RoganGladen:
    """Accuracy (p + q0 - 1) / (q0 + q1 - 1) with its interval (arXiv:2511.21140, Eq. 5 to 8).

    The interval is that of Lang and Reiczigel (DOI 10.1016/j.prevetmed.2013.09.015). It adjusts all three proportions:
    it adds z^2/2 successes among z^2 items to p, and 1 success among 2 labels to q0 and to q1. Only its ends are
    clipped.

    Args:
        p: share of test items that the judge called right.
        q0: specificity: the share of wrong calibration items that the judge called wrong. It may be NaN where m0 is 0.
        q1: sensitivity: the share of right calibration items that the judge called right. It may be NaN where m1 is 0.
        n: number of test items; infinite where p is known.
        m0: number of calibration items labelled wrong.
        m1: number of calibration items labelled right.
        level: confidence level.

    Raises:
        ValueError: an argument is out of range, or the shapes do not broadcast.

    Examples:
        The judge calls 60 % of 1,000 answers right. On 200 labelled answers it recognised 80 % of the wrong and 90 %
        of the right ones.

        >>> found = rogan_gladen(0.6, q0=0.8, q1=0.9, n=1000, m0=100, m1=100)
        >>> print(f"{found.estimate:.3f} [{found.lower:.3f}, {found.upper:.3f}], {found.status}")
        0.571 [0.490, 0.655], ok
    """
    z = normal_quantile(level)
    given = broadcast(p=p, q0=q0, q1=q1, n=n, m0=m0, m1=m1)
    require_share(given, "p")
    require(given, "n", given["n"] > 0, "be positive")
    rates = _checked_rates(given)
    raw, lower, upper, doubt = evaluate(judge_error.corrected, given["p"], given["n"], rates, z)
    with np.errstate(invalid="ignore"):
        j = rates.q0 + rates.q1 - 1
    one_class = (rates.m0 == 0) | (rates.m1 == 0)
    undefined = one_class | ~(j > ROUNDING) | (doubt == Doubt.NO_SKILL)
    unbounded = ~undefined & (doubt != Doubt.OK)
    found = {
        Status.NO_CLASS: one_class,
        Status.NO_SKILL: undefined,
        Status.FEW_OF_CLASS: doubt == Doubt.FEW_OF_CLASS,
        Status.NEAR_0: unbounded,
        Status.OUTSIDE: (upper < 0) | (lower > 1),
        Status.CLIPPED: (raw < -ROUNDING) | (raw > 1 + ROUNDING),
    }
    status = np.select(list(found.values()), list(found), Status.OK)
    lower, upper = np.where(unbounded, -np.inf, lower), np.where(unbounded, np.inf, upper)
    estimate, lower, upper = (np.where(undefined, np.nan, x) for x in (raw, lower, upper))
    return RoganGladen(
        estimate=scalar_or_array(np.clip(estimate, 0, 1)),
        lower=scalar_or_array(np.clip(lower, 0, 1)),
        upper=scalar_or_array(np.clip(upper, 0, 1)),
        status=scalar_or_array(status),
        lower_untruncated=scalar_or_array(lower),
        upper_untruncated=scalar_or_array(upper),
        j=scalar_or_array(np.where(one_class, np.nan, j)),
        level=level,
    )


def _checked_rates(given: Mapping[str, Float]) -> Rates:
    for rate, count in (("q0", "m0"), ("q1", "m1")):
        require(given, count, given[count] >= 0, "not be negative")
        require(given, rate, (given[count] == 0) | ((given[rate] >= 0) & (given[rate] <= 1)), "lie in [0, 1]")
    return Rates(q0=given["q0"], q1=given["q1"], m0=given["m0"], m1=given["m1"])


@dataclass(frozen=True, repr=False)
class YoudenJ(Result):
    """How much a judge knows: J = q0 + q1 - 1 is 1 for a perfect judge and 0 for one that guesses."""

    estimate: Numbers
    lower: Numbers
    upper: Numbers
    status: Words  # "ok", "J <= 0", "includes 0" (the interval does), "labels of one class only" (numbers are NaN)
    q0_lower: Numbers
    q0_upper: Numbers
    q1_lower: Numbers
    q1_upper: Numbers
    level: float

    def _sentences(self) -> list[str]:
        return _in_words("J is", self)


def youden_j(q0: ArrayLike, q1: ArrayLike, m0: ArrayLike, m1: ArrayLike, level: float = 0.95) -> YoudenJ:
    """Youden's J with the interval of Agresti and Caffo (DOI 10.1080/00031305.2000.10474560), Wilson's for the rates.

    The interval of J adds one success and one failure to each class, as that of `rogan_gladen` does. A judge who never
    erred on a few labels is thus not taken for perfect.

    Args:
        q0: specificity among the ``m0`` labels that are wrong.
        q1: sensitivity among the ``m1`` labels that are right.
        m0, m1, level: as in `rogan_gladen`.

    Raises:
        ValueError: an argument is out of range, or the shapes do not broadcast.

    Examples:
        >>> found = youden_j(q0=0.8, q1=0.9, m0=100, m1=100)
        >>> print(f"{found.estimate:.2f} [{found.lower:.2f}, {found.upper:.2f}], {found.status}")
        0.70 [0.59, 0.79], ok
    """
    z = normal_quantile(level)
    rates = _checked_rates(broadcast(q0=q0, q1=q1, m0=m0, m1=m1))
    j = rates.q0 + rates.q1 - 1
    centre, variance = judge_error.youden_j(rates)
    one_class = (rates.m0 == 0) | (rates.m1 == 0)
    lower, upper = np.maximum(centre - z * np.sqrt(variance), -1), np.minimum(centre + z * np.sqrt(variance), 1)
    reasons = [Status.NO_CLASS, Status.NO_SKILL, Status.INCLUDES_0]
    status = np.select([one_class, ~(j > ROUNDING), lower <= 0], reasons, Status.OK)
    with np.errstate(invalid="ignore", divide="ignore"):
        q0_lower, q0_upper = wilson(rates.q0, rates.m0, level)
        q1_lower, q1_upper = wilson(rates.q1, rates.m1, level)
    return YoudenJ(
        estimate=scalar_or_array(np.where(one_class, np.nan, j)),
        lower=scalar_or_array(np.where(one_class, np.nan, lower)),
        upper=scalar_or_array(np.where(one_class, np.nan, upper)),
        status=scalar_or_array(status),
        q0_lower=scalar_or_array(q0_lower),
        q0_upper=scalar_or_array(q0_upper),
        q1_lower=scalar_or_array(q1_lower),
        q1_upper=scalar_or_array(q1_upper),
        level=level,
    )


def naive_bias(theta: ArrayLike, q0: ArrayLike, q1: ArrayLike) -> Numbers:
    """Bias of the judge's raw share at accuracy ``theta``, (2 - q0 - q1) (crossover - theta) (arXiv:2511.21140, Eq. 9).

    It is positive below the crossover (1 - q0) / (2 - q0 - q1) and negative above.
    """
    theta, q0, q1 = shares(theta=theta, q0=q0, q1=q1).values()
    return scalar_or_array((1 - q0) * (1 - theta) - (1 - q1) * theta)


def crossover(q0: ArrayLike, q1: ArrayLike) -> Numbers:
    """Accuracy at which the judge's raw share is unbiased, (1 - q0) / (2 - q0 - q1); NaN for a perfect judge."""
    q0, q1 = shares(q0=q0, q1=q1).values()
    errors = 2 - q0 - q1
    return scalar_or_array(np.where(errors > 0, (1 - q0) / np.where(errors > 0, errors, 1.0), np.nan))


def _in_words(what: str, found: RoganGladen | YoudenJ) -> list[str]:
    """Return a sentence on a single estimate; none on arrays."""
    if np.ndim(found.estimate):
        return []
    if np.isnan(found.estimate):
        return [f"no estimate: {found.status}"]
    doubt = "" if found.status == "ok" else f"; {found.status}"
    return [f"{what} {found.estimate:.3f} ({found.lower:.3f} to {found.upper:.3f}){doubt}"]
