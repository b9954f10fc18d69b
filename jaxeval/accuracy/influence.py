"""What every item contributes to the error of an accuracy, to first order: variances, paired or not, by adding squares.

The error of an estimate is about a sum of independent contributions of its test and calibration items. The error of a
difference between models is the sum of the differences of their contributions, so pairing needs no formula of its own.
For a shared calibration this gives Appendix B of arXiv:2605.06939, for one model Eq. 10 of arXiv:2511.21140.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.accuracy.judged_sums import Arrays, LabelledAnswers, Sums
from jaxeval.arrays import Float
from jaxeval.kernels import judge_error
from jaxeval.kernels.judge_error import LabelledSums

Int = NDArray[np.intp]


class Contributions(NamedTuple):
    """Of the test items (N, M, J) and of the calibration items (n, M, J) to the error of each model's accuracy."""

    test: Float
    calibration: Float

    def variance(self) -> Float:
        """Variance (M, J) of each accuracy."""
        return (self.test**2).sum(0) + (self.calibration**2).sum(0)

    def covariance(self, a: Int | int, b: Int | int) -> Float:
        """Covariances (..., J) of the accuracies of models ``a`` and ``b`` (...)."""
        test, calibration = (x[:, a] * x[:, b] for x in self)
        return np.asarray(test.sum(0) + calibration.sum(0))

    def difference_variance(self, a: Int | int, b: Int | int) -> Float:
        """Variances (..., J) of the accuracies of models ``a`` minus those of ``b`` (...)."""
        test, calibration = ((x[:, a] - x[:, b]) ** 2 for x in self)
        return np.asarray(test.sum(0) + calibration.sum(0))


def control_variate(data: Arrays, total: Sums, each: Float, weight: Float) -> Contributions:
    """Contributions to estimates ``each`` (T, M, J): mean label plus ``weight`` (T, M, J) times the judge's shift."""
    used, y, f = data.own.by_stratum(data.n_strata)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (total.own.label - weight * total.own.judgment) / total.own.n
        calibration = (y - weight * f - used * mean) * _share(total) / total.own.n
    return Contributions(_of_test(data, total, each, weight), _over_strata(calibration))


def naive(data: Arrays, total: Sums, each: Float) -> Contributions:
    """Contributions to the judge's raw share."""
    return Contributions(_of_test(data, total, each, np.ones_like(each)), np.zeros_like(data.own.label))


def rogan_gladen(data: Arrays, total: Sums, each: Float) -> Contributions:
    """Contributions with every model's own calibration."""
    wrong, right = _of_rates(data.own, total.own, data.n_strata)
    return _with_rates(data, total, total.own, each, wrong, right)


def shared_rogan_gladen(
    data: Arrays, total: Sums, shared: LabelledSums, only: int | None, each: Float
) -> Contributions:
    """Contributions with one calibration (T, 1, J) for all models: that of model ``only``, or of those that share."""
    answers = data.shared if only is None else data.own.of_model(only)
    parts = _of_rates(answers, shared, data.n_strata)
    wrong, right = (x.sum(2, keepdims=True) for x in parts)
    return _with_rates(data, total, shared, each, wrong, right)


def youden_j(data: Arrays, total: Sums) -> Contributions:
    """Contributions to Youden's J of each model, strata together; test items have none."""
    whole = LabelledSums(*(x.sum(0) for x in total.own))
    with np.errstate(invalid="ignore", divide="ignore"):
        q0, q1, m0, m1 = (np.asarray(x) for x in judge_error.rates(whole))
        label, judgment, used, _ = data.own
        found = (used - label) * (1 - judgment - q0) / m0 + label * (judgment - q1) / m1
    return Contributions(np.zeros((1, *found.shape[1:])), np.nan_to_num(found, posinf=0.0, neginf=0.0))


def _share(total: Sums) -> Float:
    return total.test.n / total.test.n.sum(0)


def _over_strata(x: Float) -> Float:
    """(n, M, J) sums over strata; one without test items, where nothing is defined, counts for nothing."""
    return np.nan_to_num(x, posinf=0.0, neginf=0.0).sum(1)


def _of_test(data: Arrays, total: Sums, each: Float, slope: Float) -> Float:
    """(N, M, J): the judgment's deviation times d theta / d p, and the deviation of the item's stratum."""
    judged, f = data.test.by_stratum(data.n_strata)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(total.test.n > 0, _share(total) * each, 0.0).sum(0)
        p = total.test.judgment / total.test.n
        return _over_strata((slope * (f - judged * p) + judged * (each - mean)) / total.test.n.sum(0))


def _of_rates(answers: LabelledAnswers, labelled: LabelledSums, n_strata: int) -> tuple[Float, Float]:
    """(n, T, K, J) contributions to specificity and to sensitivity."""
    u, y, f = answers.by_stratum(n_strata)
    with np.errstate(invalid="ignore", divide="ignore"):
        q0, q1, m0, m1 = (np.asarray(x) for x in judge_error.rates(labelled))
        return (u - y) * (1 - f - q0) / m0, y * (f - q1) / m1


def _with_rates(
    data: Arrays, total: Sums, labelled: LabelledSums, each: Float, wrong: Float, right: Float
) -> Contributions:
    with np.errstate(invalid="ignore", divide="ignore"):
        q0, q1, _, _ = (np.asarray(x) for x in judge_error.rates(labelled))
        slope = np.broadcast_to(1 / (q0 + q1 - 1), each.shape)
        calibration = _share(total) * slope * ((1 - each) * wrong - each * right)
    return Contributions(_of_test(data, total, each, slope), _over_strata(calibration))
