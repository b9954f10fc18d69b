"""How many calibration labels, of which class, and whether a judge pays off (arXiv:2511.21140, sections 4 to 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxeval.accuracy.rogan_gladen import rogan_gladen
from jaxeval.arrays import Bool, Float, Int, Numbers
from jaxeval.checks import broadcast, require, require_share, scalar_or_array, shares
from jaxeval.show.shown import Result
from jaxeval.statistics.quantiles import checked_level
from jaxeval.wording import counted

_PILOT = 10
_MOST_SAID = 3  # sentences on arrays
_MOST_LABELS = 10**9
_THEN = 'the calibration is then one "by label" (sampling=): only Rogan-Gladen holds, and PPI++ does not'


@dataclass(frozen=True, repr=False)
class Allocation(Result):
    """Calibration labels of each class: scalars, or arrays of the broadcast shape of the arguments."""

    m0: int | Int  # items labelled wrong
    m1: int | Int  # items labelled right
    more0: int | Int  # items labelled wrong, beyond those of the pilot
    more1: int | Int  # items labelled right, beyond those of the pilot

    def _sentences(self) -> list[str]:
        return [str(sentence) for sentence in np.ravel(self.advice)[:_MOST_SAID]]

    @property
    def advice(self) -> str | NDArray[np.object_]:
        """The allocation in words."""
        words = np.frompyfunc(
            lambda more0, more1: (
                f"label {counted(int(more1), 'more item that turns', 'more items that turn')} out right and "
                f"{counted(int(more0), 'more that turns', 'more that turn')} out wrong; {_THEN}"
            ),
            2, 1,
        )  # fmt: skip
        advice: str | NDArray[np.object_] = words(self.more0, self.more1)
        return advice


def allocate_calibration(
    m: ArrayLike,
    p: ArrayLike,
    q0: ArrayLike,
    q1: ArrayLike,
    pilot0: ArrayLike = _PILOT,
    pilot1: ArrayLike | None = None,
) -> Allocation:
    """Split ``m`` calibration labels so that the interval of `rogan_gladen` is about shortest.

    This is Algorithm 1 of arXiv:2511.21140: m0 / m1 = (1 / p - 1) sqrt(kappa) with kappa = (1 - q0) / (1 - q1), where
    the pilot's rates have one success and one failure more. No class gets fewer labels than the pilot already has.

    A calibration with these labels is chosen by label (``sampling="by label"`` of `judge_accuracy`): its share of right
    answers is no estimate. Rogan-Gladen corrects by it, and PPI++ and labels alone do not hold.

    Args:
        m: number of labels, those of the pilot included.
        p: share of test items that the judge called right.
        q0: specificity among the pilot's items labelled wrong.
        q1: sensitivity among the pilot's items labelled right.
        pilot0: number of pilot items labelled wrong.
        pilot1: number of pilot items labelled right; by default ``pilot0``.

    Raises:
        ValueError: the pilot has more labels than ``m``, or an argument is out of range.

    Examples:
        A pilot of ten labels of each class, and 180 labels more:

        >>> print(allocate_calibration(200, p=0.6, q0=0.7, q1=0.9, pilot0=10).advice.split(";")[0])
        label 93 more items that turn out right and 87 more that turn out wrong
    """
    arrays = broadcast(m=m, p=p, q0=q0, q1=q1, pilot0=pilot0, pilot1=pilot0 if pilot1 is None else pilot1)
    require_share(arrays, "p", "q0", "q1")
    for name in ("m", "pilot0", "pilot1"):
        x = arrays[name]
        require(arrays, name, np.isfinite(x) & (x >= 0) & (x == np.floor(x)), "be a whole number")
    m, p, q0, q1, pilot0, pilot1 = arrays.values()
    require(arrays, "m", m >= pilot0 + pilot1, "be no less than the pilot's labels")
    m1 = np.clip(_labelled_right(m, p, q0, q1, pilot0, pilot1), pilot1, m - pilot0)
    m0 = m - m1
    return Allocation(*(scalar_or_array(x.astype(np.int64)) for x in (m0, m1, m0 - pilot0, m1 - pilot1)))


def _labelled_right(m: Float, p: Float, q0: Float, q1: Float, known0: Float, known1: Float) -> Float:
    """Return how many of ``m`` labels Algorithm 1 gives to right answers.

    The rates come from ``known0`` and ``known1`` labels, with one success and one failure more in each class.
    """
    wrong0, wrong1 = 1 - (known0 * q0 + 1) / (known0 + 2), 1 - (known1 * q1 + 1) / (known1 + 2)
    ratio = np.where(p > 0, 1 / np.where(p > 0, p, 1.0) - 1, np.inf) * np.sqrt(wrong0 / wrong1)
    return np.round(m / (1 + ratio))


def minimum_calibration_size(q: ArrayLike) -> Numbers:
    """Return number of labels from which on Rogan-Gladen has less bias than the judge's raw share at any accuracy.

    Half of the labels are of each class. The number is 2 q / (2 q - 1)^2 for a judge with q0 = q1 = ``q`` (Proposition
    5.1), and infinite at 1/2.

    Raises:
        ValueError: ``q`` is not between 1/2 and 1.
    """
    arrays = broadcast(q=q)
    q = arrays["q"]
    require(arrays, "q", (q >= 0.5) & (q <= 1), "lie in [0.5, 1]")
    return scalar_or_array(np.where(q > 0.5, 2 * q / np.where(q > 0.5, 2 * q - 1, 1.0) ** 2, np.inf))


def interval_length(
    p: ArrayLike, q0: ArrayLike, q1: ArrayLike, n: ArrayLike, m0: ArrayLike, m1: ArrayLike, level: float = 0.95, *,
    truncated: bool = True,
) -> Numbers:  # fmt: skip
    """Return the length of the interval of `rogan_gladen`; ``n`` may be infinite (Figure 3).

    It is NaN where the interval is undefined. Where J is near 0 or a class has few labels, it is 1, or infinite if not
    truncated.
    """
    interval = rogan_gladen(p, q0, q1, n, m0, m1, level)
    if truncated:
        return interval.upper - interval.lower
    return interval.upper_untruncated - interval.lower_untruncated


def labels_for_length(
    length: ArrayLike,
    p: ArrayLike,
    q0: ArrayLike,
    q1: ArrayLike,
    n: ArrayLike = np.inf,
    level: float = 0.95,
    *,
    adaptive: bool = True,
    truncated: bool = True,
) -> Numbers:
    """Return the fewest calibration labels (both classes) for an interval of `rogan_gladen` of at most ``length``.

    Args:
        length: of the interval, at most.
        p: expected share of test items that the judge calls right.
        q0: expected specificity of the judge.
        q1: expected sensitivity of the judge.
        n: number of test items.
        level: confidence level.
        adaptive: split the labels as `allocate_calibration` does, with ten or more of each class where there are
            twenty; else half and half.
        truncated: measure the interval truncated to [0, 1].

    Returns:
        Whole numbers as floats. They are infinite where the test items alone make the interval longer, or where the
        judge knows nothing.
    """
    arrays = broadcast(length=length, p=p, q0=q0, q1=q1, n=n)
    require(arrays, "length", arrays["length"] > 0, "be positive")
    length, p, q0, q1, n = arrays.values()

    def long(m: Float) -> Bool:
        if adaptive:
            least = np.minimum(_PILOT, np.floor(m / 2))
            m1 = np.clip(_labelled_right(m, p, q0, q1, m / 2, m / 2), least, m - least)
            m0 = m - m1
        else:
            m0 = m1 = np.maximum(m / 2, 0.5)
        lengths = interval_length(p, q0, q1, n, m0, m1, level, truncated=truncated)
        return ~(np.asarray(lengths) <= length)

    low, high = np.zeros(length.shape), np.full(length.shape, 2.0)
    while (more := long(high) & (high < _MOST_LABELS)).any():
        low, high = np.where(more, high, low), np.where(more, 2 * high, high)
    never = long(high)
    while ((high - low) > 1).any():
        middle = np.floor((low + high) / 2)
        above = long(middle)
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return scalar_or_array(np.where(never, np.inf, high))


def variance_ratio(theta: ArrayLike, q0: ArrayLike, q1: ArrayLike) -> Numbers:
    """Return the variance of Rogan-Gladen over that of as many human labels alone, with unlimited test items.

    ((1 - theta) q0 (1 - q0) + theta q1 (1 - q1)) / (J^2 theta (1 - theta)), where a share ``theta`` of the calibration
    items is right, as in the test (Eq. 14). Below 1 the judge pays off (Figure 4). The ratio is infinite at J <= 0, and
    at theta 0 or 1 unless the judge is perfect.
    """
    theta, q0, q1 = shares(theta=theta, q0=q0, q1=q1).values()
    j = q0 + q1 - 1
    errors = (1 - theta) * q0 * (1 - q0) + theta * q1 * (1 - q1)
    alone = theta * (1 - theta)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(errors == 0, np.where(j > 0, 0.0, np.inf), errors / (j**2 * alone))
    return scalar_or_array(np.where(j > 0, ratio, np.inf))


def judge_pays(theta: ArrayLike, q: ArrayLike, m: ArrayLike = np.inf, delta: float = 0.05) -> bool | Bool:
    """Return whether ``m`` labels with a judge of q0 = q1 = ``q`` beat ``m`` labels alone (Proposition 6.1).

    The condition is sufficient with probability 1 - ``delta`` over the labels. For infinite ``m`` it is necessary, too.
    The result is False also where the proposition says nothing: where epsilon = sqrt(log(2 / delta) / (2 m)) is not
    less than both theta and 1 - theta.
    """
    checked_level(delta, "delta")
    arrays = broadcast(theta=theta, q=q, m=m)
    require_share(arrays, "theta", "q")
    theta, q, m = arrays.values()
    require(arrays, "m", m > 0, "be positive")
    epsilon = np.sqrt(np.log(2 / delta) / (2 * m))
    with np.errstate(invalid="ignore", divide="ignore"):
        odds = q * (1 - q) / (2 * q - 1) ** 2
        more = 1 + (1 - theta) * epsilon / (1 - theta - epsilon) + theta * epsilon / (theta - epsilon)
        more = np.where(epsilon == 0, 1.0, more)
        pays = (q > 0.5) & (theta * (1 - theta) >= odds * more)
    return scalar_or_array(pays & ((epsilon == 0) | (epsilon < np.minimum(theta, 1 - theta))))
