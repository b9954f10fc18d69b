"""Accuracy from a judge's share of right answers, by its specificity and sensitivity (Rogan and Gladen 1978)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from jaxeval.accuracy.statuses import (
    CLIPPED,
    FEW_OF_CLASS,
    INCLUDES_0,
    NEAR_0,
    NO_CLASS,
    NO_SKILL,
    OK,
    OUTSIDE,
    UNBOUNDED,
)
from jaxeval.execution.elementwise import apply, broadcast, require, scalar_or_array
from jaxeval.kernels import judge_error
from jaxeval.statistics.intervals import wilson
from jaxeval.statistics.quantiles import checked_level

Float = NDArray[np.float64]

#: An estimate this far outside of [0, 1] is on its edge, and a J this close to 0 is 0 with its rounding.
ROUNDING = 1e-12

_DOUBTS = {judge_error.NO_SKILL: NO_SKILL, judge_error.FEW_OF_CLASS: FEW_OF_CLASS, judge_error.NEAR_0: NEAR_0}


@dataclass(frozen=True)
class RoganGladen:
    """Corrected accuracy; scalars, or arrays of the broadcast shape of the arguments.

    ``status`` is "ok"; "clipped" where the estimate left [0, 1]; "outside" where the whole interval did, so that the
    judged share is not one that the rates allow; "few labels of a class" where m0 or m1 is below 5, and "J near 0"
    where the 99.9 % interval of J includes 0; "J <= 0" where the judge is no better than chance, before or after the
    adjustment of the interval; "labels of one class only" where m0 or m1 is 0.

    With "few labels of a class" and "J near 0" the data do not bound the accuracy: the estimate is there, the interval
    is [0, 1], and its untruncated ends are infinite. With the last two statuses all numbers are NaN. `STATUSES` has a
    sentence for each status; `judge_error.doubt` says how often intervals miss with these limits and without them.
    """

    estimate: Any  # in [0, 1]
    lower: Any  # truncated to [0, 1]
    upper: Any
    status: Any
    lower_untruncated: Any
    upper_untruncated: Any
    j: Any  # q0 + q1 - 1
    level: float


def rogan_gladen(
    p: ArrayLike,
    q0: ArrayLike,
    q1: ArrayLike,
    n: ArrayLike,
    m0: ArrayLike,
    m1: ArrayLike,
    level: float = 0.95,
) -> RoganGladen:
    """Accuracy (p + q0 - 1) / (q0 + q1 - 1) with its interval (arXiv:2511.21140, Eq. 5 to 8).

    The interval is that of Lang and Reiczigel (DOI 10.1016/j.prevetmed.2013.09.015): all three proportions are adjusted
    (z^2/2 successes in z^2 for p, 1 in 2 for q0 and q1), and nothing is clipped before its ends.

    Args:
        p: share of test items that the judge called right.
        q0: specificity, the share of wrong calibration items that it called wrong; may be NaN where m0 is 0.
        q1: sensitivity, the share of right calibration items that it called right; may be NaN where m1 is 0.
        n: test items; infinite where p is known.
        m0: calibration items labelled wrong.
        m1: calibration items labelled right.
        level: confidence level.

    Raises:
        ValueError: an argument is out of range, or the shapes do not broadcast.
    """
    z = scipy.special.ndtri((1 + checked_level(level)) / 2)
    given = broadcast(p=p, q0=q0, q1=q1, n=n, m0=m0, m1=m1)
    require(given, "p", (given["p"] >= 0) & (given["p"] <= 1), "lie in [0, 1]")
    require(given, "n", given["n"] > 0, "be positive")
    for rate, count in (("q0", "m0"), ("q1", "m1")):
        require(given, count, given[count] >= 0, "not be negative")
        value = given[rate]
        require(given, rate, (given[count] == 0) | ((value >= 0) & (value <= 1)), "lie in [0, 1]")
    return _rogan_gladen(given, z, level)


@jax.jit
def _kernel(p: Any, q0: Any, q1: Any, n: Any, m0: Any, m1: Any, z: Any) -> Any:
    rates = judge_error.Rates(q0, q1, m0, m1)
    interval = judge_error.rogan_gladen_interval(p, n, rates, z)
    return judge_error.rogan_gladen(p, q0, q1), interval, judge_error.doubt(rates)


def _rogan_gladen(given: dict[str, Float], z: float, level: float) -> RoganGladen:
    with np.errstate(invalid="ignore"):
        j = given["q0"] + given["q1"] - 1
    raw, (lower, upper), doubt = apply(_kernel, *given.values(), np.full(j.shape, z))
    one_class = (given["m0"] == 0) | (given["m1"] == 0)
    status = np.select(
        [
            one_class,
            ~(j > ROUNDING),
            *(doubt == code for code in _DOUBTS),
            (upper < 0) | (lower > 1),
            (raw < -ROUNDING) | (raw > 1 + ROUNDING),
        ],
        [NO_CLASS, NO_SKILL, *_DOUBTS.values(), OUTSIDE, CLIPPED],
        OK,
    )
    undefined, unbounded = np.isin(status, (NO_CLASS, NO_SKILL)), np.isin(status, UNBOUNDED)
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


@dataclass(frozen=True)
class YoudenJ:
    """How much a judge knows: J = q0 + q1 - 1 is 1 for a perfect judge and 0 for one that guesses."""

    estimate: Any
    lower: Any
    upper: Any
    status: Any  # "ok", "J <= 0", "includes 0" for an interval with 0 in it, "labels of one class only" (then NaN)
    q0_lower: Any
    q0_upper: Any
    q1_lower: Any
    q1_upper: Any
    level: float


def youden_j(q0: ArrayLike, q1: ArrayLike, m0: ArrayLike, m1: ArrayLike, level: float = 0.95) -> YoudenJ:
    """Youden's J with the interval of Agresti and Caffo (DOI 10.1080/00031305.2000.10474560), Wilson's for the rates.

    One success and one failure are added to each class, as in the interval of `rogan_gladen`, so that a judge who never
    erred on a few labels is not taken for perfect. ``q0`` and ``q1`` are specificity and sensitivity among ``m0`` and
    ``m1`` labels.

    Raises:
        ValueError: an argument is out of range, or the shapes do not broadcast.
    """
    z = scipy.special.ndtri((1 + checked_level(level)) / 2)
    given = broadcast(q0=q0, q1=q1, m0=m0, m1=m1)
    for rate, count in (("q0", "m0"), ("q1", "m1")):
        require(given, count, given[count] >= 0, "not be negative")
        require(given, rate, (given[count] == 0) | ((given[rate] >= 0) & (given[rate] <= 1)), "lie in [0, 1]")
    j = given["q0"] + given["q1"] - 1
    centre, variance = judge_error.youden_j(judge_error.Rates(**given))
    one_class = (given["m0"] == 0) | (given["m1"] == 0)
    lower, upper = np.maximum(centre - z * np.sqrt(variance), -1), np.minimum(centre + z * np.sqrt(variance), 1)
    status = np.select([one_class, ~(j > ROUNDING), lower <= 0], [NO_CLASS, NO_SKILL, INCLUDES_0], OK)
    with np.errstate(invalid="ignore", divide="ignore"):
        q0_lower, q0_upper = wilson(given["q0"], given["m0"], level)
        q1_lower, q1_upper = wilson(given["q1"], given["m1"], level)
    return YoudenJ(
        estimate=scalar_or_array(np.where(one_class, np.nan, j)),
        lower=scalar_or_array(np.where(one_class, np.nan, lower)),
        upper=scalar_or_array(np.where(one_class, np.nan, upper)),
        status=scalar_or_array(status),
        q0_lower=scalar_or_array(np.asarray(q0_lower)),
        q0_upper=scalar_or_array(np.asarray(q0_upper)),
        q1_lower=scalar_or_array(np.asarray(q1_lower)),
        q1_upper=scalar_or_array(np.asarray(q1_upper)),
        level=level,
    )


def naive_bias(theta: ArrayLike, q0: ArrayLike, q1: ArrayLike) -> Any:
    """Bias of the judge's own share at accuracy ``theta``, (2 - q0 - q1) (crossover - theta) (arXiv:2511.21140, Eq. 9).

    It is positive below the crossover (1 - q0) / (2 - q0 - q1) and negative above.
    """
    given = broadcast(theta=theta, q0=q0, q1=q1)
    for name, x in given.items():
        require(given, name, (x >= 0) & (x <= 1), "lie in [0, 1]")
    theta, q0, q1 = given.values()
    return scalar_or_array(np.asarray((1 - q0) * (1 - theta) - (1 - q1) * theta))


def crossover(q0: ArrayLike, q1: ArrayLike) -> Any:
    """Accuracy at which the judge's own share is unbiased, (1 - q0) / (2 - q0 - q1); NaN for a perfect judge."""
    given = broadcast(q0=q0, q1=q1)
    for name, x in given.items():
        require(given, name, (x >= 0) & (x <= 1), "lie in [0, 1]")
    errors = 2 - given["q0"] - given["q1"]
    return scalar_or_array(np.where(errors > 0, (1 - given["q0"]) / np.where(errors > 0, errors, 1.0), np.nan))
