"""Which of the estimates of an accuracy, or of a difference, to believe, and how much it would take to refute them.

What may be believed follows from how the calibration was chosen:

* "random": a random part of the population that the test is of. PPI++ and labels alone need this.
* "by label": labels of each class, in numbers that were chosen, as in Algorithm 1 of arXiv:2511.21140. Its share of
  right answers says nothing about the test. Rogan-Gladen needs the judge's error rates only.
* "borrowed": of another model or day. Its share of right answers is another, and nothing in the data can tell whether
  the judge errs alike.
* None: nobody said. Hausman's test of PPI++ against Rogan-Gladen cannot choose between them: their difference is
  (lambda - 1 / J) times the judge's shift from calibration to test, and a shift that ruins PPI++ is as a rule too small
  to be found. With 1,000 labels and 4,000 answers, a share of right answers that differs by .05 leaves PPI++ a coverage
  of .05 to .21, and a test at 5 % finds it in 21 to 72 of 100 data sets. Rogan-Gladen holds in all of these designs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxeval.accuracy import influence
from jaxeval.accuracy.estimates import BY_RATES, Words
from jaxeval.accuracy.judged_sums import Arrays, Sums
from jaxeval.accuracy.statuses import BOUNDED, EstimateStatus
from jaxeval.arrays import Bool, Float
from jaxeval.checks import check_choice
from jaxeval.kernels.judge_error import SURE_Z
from jaxeval.options.boards import CalibrationSampling
from jaxeval.plain_tables import records_of
from jaxeval.statistics import special

#: Estimators that may be marked, and when.
REASONS = {
    "ppi_plus_plus": "the labelled answers are a random part, so with labels of the model itself it has no bias and "
    "the shortest interval; where the judge knows nothing, it uses the labels alone",
    "rogan_gladen": "it needs no random calibration, whose share of right answers may be another than the test's; it "
    "holds if the judge errs alike on both",
    "calibration_only": "the labels, a random part, are too few, or all of one class, so that they cannot correct the "
    "judge",
}

#: Names of estimators in sentences.
SPOKEN = {
    "ppi_plus_plus": "PPI++",
    "rogan_gladen": "Rogan-Gladen with the models' own labels",
    "calibration_only": "labels alone",
}

#: What is known of the labelled answers under each design.
DESIGNS: dict[CalibrationSampling | None, str] = {
    "random": '"random": the labelled answers are a random part of the same population as the test',
    "by label": '"by label": the numbers of right and wrong answers among the labelled were chosen, and only the '
    "judge's error rates carry over to the test",
    "borrowed": '"borrowed": the labelled answers are of another model or day, and estimates hold only if the judge '
    "errs alike on both, which no data can show",
    None: "nobody said, so Rogan-Gladen alone may be believed",
}
#: What to declare, of answers that are no random part, and of others.
DECLARE_OTHER = (
    "declare how the labelled answers were chosen, with sampling= (on the command line --calibration-sampling): "
    '"by label" if so many of each class were labelled, "borrowed" if they are of another model or day'
)
DECLARE = DECLARE_OTHER.replace(': "', ': "random" if they are a random part, "', 1)


def checked_sampling(
    sampling: CalibrationSampling | None, of_answers: CalibrationSampling | None = None
) -> CalibrationSampling | None:
    """Return ``sampling``, or what the answers say where it is None; a ValueError is raised if it is no design."""
    if sampling is not None:
        check_choice("sampling", sampling, CalibrationSampling, " or None")
    return of_answers if sampling is None else sampling


def shift_z(total: Sums, data: Arrays | None = None) -> Float:
    """Return (M, J) by how many standard errors the judge's mean judgment differs between calibration and test.

    This is Hausman's test of PPI++ against Rogan-Gladen with the model's own labels: the two differ by this shift times
    a constant. All estimates but Rogan-Gladen assume that both are random items of one population. Strata are compared
    one by one, and their differences added up by their test shares. With ``data``, their clusters count.
    """
    labelled, test = total.own, total.test
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where((labelled.n > 0) & (test.n > 0), test.n, 0.0)
        f, g = labelled.judgment / labelled.n, test.judgment / test.n
        n = labelled.n + test.n
        # The variance of both together, as if there were no shift.
        spread = (labelled.judgment_square + test.judgment_square) / n - ((labelled.judgment + test.judgment) / n) ** 2
        gap = np.where(share > 0, share * (g - f), 0.0).sum(0)
        variance = np.where(share > 0, share**2 * np.maximum(spread, 0.0) * (1 / labelled.n + 1 / test.n), 0.0).sum(0)
        gap = np.where(np.abs(gap) > 1e-12 * share.sum(0), gap, 0.0)
        if data is not None and data.units is not None:
            items = influence.shift(data, total)
            grouped = influence.together(items, data.units).variance()
            variance = variance * influence.effect(items.variance(), grouped, data.units)
        return np.where(gap == 0, 0.0, gap / np.sqrt(variance))


def shift_p(total: Sums, data: Arrays | None = None) -> Float:
    """Return (M, J) p-value of `shift_z`; NaN without labels of the model, or without test items."""
    known = ((total.own.n > 0) & (total.test.n > 0)).any(0)
    return np.where(known, 2 * special.ndtr(-np.abs(shift_z(total, data))), np.nan)


def shifted(total: Sums, data: Arrays | None = None) -> Bool:
    """Return (M, J) whether the judge's mean judgment differs between calibration and test at the 99.9 % level."""
    return np.abs(shift_z(total, data)) > SURE_Z


def believed(status: Mapping[str, Words], shift: Bool, sampling: CalibrationSampling | None) -> Words:
    """Return (M, J) name of the estimate to believe, "" for none, by statuses (M, J) and `shifted` (M, J).

    Unless the calibration is declared "random", it is "rogan_gladen" with the model's own labels, if its status is "ok"
    or "clipped"; else none. Of a "random" one, the first of these that applies:

    1. If the judge's mean judgment differs between calibration and test all the same: "rogan_gladen", or none.
    2. "ppi_plus_plus", if its status is "ok" or "clipped".
    3. "calibration_only", if the model has labels.

    The raw share is biased, and so is an estimate with a calibration of other models. Only labels of the model itself
    can tell by how much, so neither is ever marked.
    """
    sound = {name: np.isin(words, (EstimateStatus.OK, EstimateStatus.CLIPPED)) for name, words in status.items()}
    by_rates = np.where(sound["rogan_gladen"], "rogan_gladen", "")
    if sampling != "random":
        return by_rates.astype(object)
    return np.select(
        [shift, sound["ppi_plus_plus"], sound["calibration_only"]], [by_rates, "ppi_plus_plus", "calibration_only"], ""
    ).astype(object)


def believed_of_pair(a: Words, b: Words, both_corrected: Bool) -> Words:
    """Name of the difference to believe, by those of the two accuracies; "" for none.

    The estimator of both, where it is the same. Rogan-Gladen, where one of the two needs it and the other's can be
    believed too (``both_corrected``). Labels alone, where one of the two has no better.
    """
    either = (a == "rogan_gladen") | (b == "rogan_gladen")
    return np.select(
        [(a == "") | (b == ""), a == b, either & both_corrected, either],
        ["", a, "rogan_gladen", ""],
        "calibration_only",
    ).astype(object)


def usual_estimator(sampling: CalibrationSampling | None, binary: Bool) -> str:
    """Return the estimator of a board of judged scores: the one that can be believed of most of its scores."""
    return "ppi_plus_plus" if sampling == "random" or not binary.all() else "rogan_gladen"


def why_none(status: Mapping[str, str], sampling: CalibrationSampling | None) -> str:
    """Say why no estimate is believed, by the statuses of the estimators, and what to do."""
    ppi, by_rates = status["ppi_plus_plus"], status["rogan_gladen"]
    if ppi in (EstimateStatus.NO_LABELS, EstimateStatus.NO_TEST):
        return ppi
    if sampling == "random":
        return "calibration and test differ" if ppi in BOUNDED else ppi
    advice = ""
    if by_rates == EstimateStatus.NOT_BINARY:
        advice = "; turn scores into verdicts (threshold=, --threshold)"
    if sampling is None:
        declare = 'declare sampling="random" (--calibration-sampling random) if'
        advice += f" or {declare} it is" if advice else f"; {declare} the labelled answers are a random part"
    return f"Rogan-Gladen: {by_rates}{advice}"


def tolerance_of(name: str) -> str:
    """Return what must differ for an estimate to move: "prevalence", "error rates", or "" where it has no tolerance."""
    return "" if name in ("naive", "ppi_plus_plus_half") else "error rates" if name in BY_RATES else "prevalence"


def tolerance(distance: Float, sensitivity: Float) -> Float:
    """Return how far the calibration may differ until an estimate has moved by ``distance``; 1 is as far as can be."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.isfinite(distance), np.minimum(np.abs(distance) / np.abs(sensitivity), 1.0), np.nan)


def what_to_believe(table: Any, sampling: CalibrationSampling | None) -> str:
    """Say which estimator to believe, for how many models by a judge; ``table`` is that of `AccuracyTables`."""
    rows = records_of(table)
    marked = [row for row in rows if row["believe"]]
    n_all = len({tuple(row[name] for name in ("slice", "model", "judge") if name in row) for row in rows})
    if not marked:
        statuses = [row["status"] for row in rows if row["estimator"] == "ppi_plus_plus"]
        if not all(status == EstimateStatus.NO_LABELS for status in statuses):
            if sampling is None:
                return f"Believe none of these estimates: the notes say why. First of all, {DECLARE}"
            return "Believe none of these estimates: the notes say why"
        return (
            "Believe none of these estimates for sure: no model has labels of its own that tell how far the judge is "
            "off. The shared calibration holds if the judge errs alike on all models"
        )
    times = dict(Counter(row["estimator"] for row in marked).most_common())
    if len(times) == 1 and len(marked) == n_all:
        unsaid = "" if sampling else "; nobody said how the labelled answers were chosen (--calibration-sampling)"
        return f"Believe {SPOKEN[next(iter(times))]}, and not the judge's raw share{unsaid}"
    parts = [f"{SPOKEN[name]} for {n:,}" for name, n in times.items()]
    parts += [f"none for {n_all - len(marked):,}"] if len(marked) < n_all else []
    of = "models" if len({row["judge"] for row in rows}) == 1 else "models by judges"
    return f"Believe, of {n_all:,} {of}, {', '.join(parts)}; the judge's raw share never"
