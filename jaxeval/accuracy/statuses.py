"""What a status of an estimate means: every word that the tables of `jaxeval.accuracy` use, with one sentence each."""

from __future__ import annotations

OK, CLIPPED, OUTSIDE = "ok", "clipped", "outside"
NEAR_0, FEW_OF_CLASS = "J near 0", "few labels of a class"
ONE_CLASS, NO_VARIATION = "labels of one class", "judgments do not vary"
TOO_FEW_LABELS, TOO_FEW_ITEMS = "too few labels", "too few test items"
NO_SKILL, INCLUDES_0, NO_CLASS = "J <= 0", "includes 0", "labels of one class only"
NO_LABELS, NO_TEST = "no calibration items", "no test items"
NO_SUCH_VERDICT = "a verdict of the test is not in the calibration"
NOT_BINARY, NOT_SHARES = "needs verdicts of 0 and 1", "scores are no shares"
SINGULAR, CLASS_WITHOUT_LABEL = "singular confusion matrix", "a class has no label"

#: Every status and what it means. Reports and the command line print these sentences.
STATUSES = {
    OK: "the estimate lies in [0, 1], and none of the checks found a reason to doubt its interval",
    CLIPPED: "the estimate left [0, 1] and is clipped: the judged share is hard to reconcile with the calibration",
    OUTSIDE: "the whole interval left [0, 1]: the judged share is not one that the calibration allows",
    NEAR_0: "the 99.9% interval of J includes 0; the correction divides by J, so nothing bounds the estimate and its "
    "interval is the whole range",
    FEW_OF_CLASS: "there are fewer than 5 labels of a class; the judge's errors on it are not known, so nothing "
    "bounds the estimate and its interval is the whole range",
    ONE_CLASS: "all labels are of one class; nothing is known of the judge's errors on the other, and resamples "
    "repeat that one class",
    NO_VARIATION: "the judgments do not vary, so the estimate is the mean label",
    TOO_FEW_LABELS: "there are too few labels to estimate a variance, so nothing bounds the estimate",
    TOO_FEW_ITEMS: "one test item with a score has no variance to estimate, so nothing bounds the estimate",
    NO_SKILL: "the judge is no better than chance on the labels, so there is no correction",
    INCLUDES_0: "the interval of J includes 0: the labels do not tell the judge from one that guesses",
    NO_CLASS: "all labels are of one class, so one of the judge's rates is unknown and there is no correction",
    NO_LABELS: "no calibration item of the model has a label that the estimate can use",
    NO_TEST: "the model has no judged test item",
    NO_SUCH_VERDICT: "a verdict of the test does not occur in the calibration, so no label says what it is worth",
    NOT_BINARY: "the estimate needs verdicts of 0 and 1, and the judge gives scores",
    NOT_SHARES: "the judge's scores leave [0, 1], so their mean is no share of right answers",
    SINGULAR: "the confusion matrix cannot be inverted: the judge does not tell some of the classes apart",
    CLASS_WITHOUT_LABEL: "a class has no label, so the judge's errors on it are unknown",
}
#: Statuses of estimates whose interval is the one of their formula.
BOUNDED = (OK, CLIPPED, OUTSIDE)
#: Statuses of estimates that nothing bounds: the interval is the whole range, and its untruncated ends are infinite.
UNBOUNDED = (NEAR_0, FEW_OF_CLASS, TOO_FEW_LABELS, TOO_FEW_ITEMS)
#: Statuses of all estimates that have a number; the others have NaN.
HAVE_NUMBERS = (*BOUNDED, ONE_CLASS, *UNBOUNDED)
#: Statuses of estimates whose resamples repeat what is unknown, and are not shown.
WITHOUT_RESAMPLES = (ONE_CLASS, TOO_FEW_LABELS, TOO_FEW_ITEMS)
