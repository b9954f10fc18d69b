"""Which of the estimates of an accuracy, or of a difference, to believe."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from jaxeval.accuracy.judged_sums import Sums
from jaxeval.accuracy.statuses import Status
from jaxeval.arrays import Bool
from jaxeval.kernels.judge_error import SURE_Z

Words = NDArray[np.object_]

#: Estimators that may be marked, and when.
REASONS = {
    "ppi_plus_plus": "with labels of the model itself it is unbiased and has the shortest interval; where the judge "
    "knows nothing, it uses the labels alone",
    "rogan_gladen": "the judge calls a different share right in the calibration than in the test, and this estimate "
    "alone holds when the calibration has another share of right answers",
    "calibration_only": "the labels are too few, or all of one class, so that they cannot correct the judge",
}


def shifted(total: Sums) -> Bool:
    """(M, J) whether the judge's mean judgment differs between calibration and test at the 99.9 % level.

    All estimates but Rogan-Gladen assume that both are random items of one population. Strata are compared one by one,
    and their differences added up by their test shares.
    """
    own, test = total.own, total.test
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where((own.n > 0) & (test.n > 0), test.n, 0.0)
        f, g = own.judgment / own.n, test.judgment / test.n
        n = own.n + test.n
        # The variance of both together, as if there were no shift.
        spread = (own.judgment_square + test.judgment_square) / n - ((own.judgment + test.judgment) / n) ** 2
        gap = np.where(share > 0, share * (g - f), 0.0).sum(0)
        variance = np.where(share > 0, share**2 * np.maximum(spread, 0.0) * (1 / own.n + 1 / test.n), 0.0).sum(0)
    return np.abs(gap) > SURE_Z * np.sqrt(variance) + 1e-12 * share.sum(0)


def believed(status: Mapping[str, Words], shift: Bool) -> Words:
    """(M, J) name of the estimate to believe, "" for none, by statuses (M, J) and `shifted` (M, J).

    The first of these that applies:

    1. If the judge's mean judgment differs between calibration and test: "rogan_gladen" with the model's own labels,
       if its status is "ok"; else none, as all others take the calibration for items like those of the test.
    2. "ppi_plus_plus", if its status is "ok" or "clipped".
    3. "calibration_only", if the model has labels.

    The raw share is biased, and so is an estimate with a calibration of other models. Only labels of the model itself
    can tell by how much, so neither is ever marked.
    """
    return np.select(
        [
            shift & (status["rogan_gladen"] == Status.OK),
            shift,
            np.isin(status["ppi_plus_plus"], (Status.OK, Status.CLIPPED)),
            np.isin(status["calibration_only"], (Status.OK, Status.CLIPPED)),
        ],
        ["rogan_gladen", "", "ppi_plus_plus", "calibration_only"],
        "",
    ).astype(object)


def believed_of_pair(a: Words, b: Words, both_corrected: Bool) -> Words:
    """Name of the difference to believe, by those of the two accuracies; "" for none.

    The estimator of both, where it is the same. Rogan-Gladen, where one of the two needs it and the other's has the
    status "ok" too (``both_corrected``). Labels alone, where one of the two has no better.
    """
    either = (a == "rogan_gladen") | (b == "rogan_gladen")
    return np.select(
        [(a == "") | (b == ""), a == b, either & both_corrected, either],
        ["", a, "rogan_gladen", ""],
        "calibration_only",
    ).astype(object)
