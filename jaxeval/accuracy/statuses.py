"""What a status of an estimate means: every word that the tables of `jaxeval.accuracy` use, with one sentence each."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxeval.kernels.judge_error import Doubt


class EstimateStatus(StrEnum):
    """The word that a table shows. Reports and the command line print the ``sentence`` beside it."""

    sentence: str

    def __new__(cls, word: str, sentence: str) -> EstimateStatus:
        """Return the member that equals ``word``."""
        status = str.__new__(cls, word)
        status._value_, status.sentence = word, sentence
        return status

    OK = "ok", "the estimate lies in [0, 1], and none of the checks found a reason to doubt its interval"
    CLIPPED = "clipped", "the estimate left [0, 1] and is clipped: the judge's raw share hardly fits the calibration"
    OUTSIDE = "outside", "the whole interval left [0, 1]: the calibration does not allow the judge's raw share"
    NEAR_0 = (
        "J near 0",
        "the 99.9% interval of J includes 0; the correction divides by J, so nothing bounds the estimate and its "
        "interval is the whole range",
    )
    FEW_OF_CLASS = (
        "few labels of a class",
        "there are fewer than 5 labels of a class; the judge's errors on it are not known, so nothing bounds the "
        "estimate and its interval is the whole range",
    )
    ONE_CLASS = (
        "labels of one class",
        "all labels are of one class; nothing is known of the judge's errors on the other, and resamples repeat that "
        "one class",
    )
    NO_VARIATION = "judgments do not vary", "the judgments do not vary, so the estimate is the mean label"
    TOO_FEW_LABELS = "too few labels", "labels are too few to estimate a variance, so nothing bounds the estimate"
    TOO_FEW_ITEMS = "too few test items", "one test item with a score has no variance, so nothing bounds the estimate"
    NO_SKILL = "J <= 0", "the judge is no better than chance on the labels, so there is no correction"
    INCLUDES_0 = "includes 0", "the interval of J includes 0: the labels do not tell the judge from one that guesses"
    NO_CLASS = "labels of one class only", "a class has no labels, so the judge's rate on it is unknown: no correction"
    NO_LABELS = "no calibration items", "no calibration item of the model has a label that the estimate can use"
    NO_TEST = "no test items", "the model has no judged test item"
    NO_SUCH_VERDICT = (
        "a verdict of the test is not in the calibration",
        "a verdict of the test does not occur in the calibration, so no label says what it is worth",
    )
    NOT_BINARY = "needs verdicts of 0 and 1", "the estimate needs verdicts of 0 and 1, and the judge gives scores"
    NOT_SHARES = "scores are no shares", "the judge's scores leave [0, 1]: their mean is not a share of right answers"
    SINGULAR = "singular confusion matrix", "the judge does not tell some of the classes apart: there is no inverse"
    CLASS_WITHOUT_LABEL = "a class has no label", "no label is of this class, so the judge's errors on it are unknown"


#: The sentence of each status.
STATUSES = {status.value: status.sentence for status in EstimateStatus}
#: Statuses of estimates whose interval is the one of their formula.
BOUNDED = (EstimateStatus.OK, EstimateStatus.CLIPPED, EstimateStatus.OUTSIDE)
#: Statuses of estimates that nothing bounds: the interval is the whole range, and its untruncated ends are infinite.
UNBOUNDED = (
    EstimateStatus.NEAR_0,
    EstimateStatus.FEW_OF_CLASS,
    EstimateStatus.TOO_FEW_LABELS,
    EstimateStatus.TOO_FEW_ITEMS,
)
#: Statuses of all estimates that have a number; the others have NaN.
HAVE_NUMBERS = (*BOUNDED, EstimateStatus.ONE_CLASS, *UNBOUNDED)
#: Statuses of estimates whose resamples only repeat the few labels or items that there are, and are not shown.
WITHOUT_RESAMPLES = (EstimateStatus.ONE_CLASS, EstimateStatus.TOO_FEW_LABELS, EstimateStatus.TOO_FEW_ITEMS)


def statuses_of(doubts: NDArray[np.int8]) -> NDArray[np.str_]:
    """Return the status of each `Doubt`, which has the same name."""
    return np.array([EstimateStatus[doubt.name] for doubt in Doubt])[doubts]


def in_words(what: str, estimate: Any) -> list[str]:
    """Return a sentence on a single estimate with its status; none on arrays."""
    if np.ndim(estimate.estimate):
        return []
    if np.isnan(estimate.estimate):
        return [f"no estimate: {estimate.status}"]
    doubt = "" if estimate.status == "ok" else f"; {estimate.status}"
    return [f"{what} {estimate.estimate:.3f} ({estimate.lower:.3f} to {estimate.upper:.3f}){doubt}"]
