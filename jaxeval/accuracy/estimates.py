"""Estimates of accuracies in one slice of judged answers, their errors and statuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t

from jaxeval.accuracy import influence
from jaxeval.accuracy.influence import Contributions
from jaxeval.accuracy.judged_sums import Arrays, Sums
from jaxeval.accuracy.rogan_gladen import CLIPPED, NO_CLASS, NO_SKILL, OK, OUTSIDE
from jaxeval.data.judged_answers import JudgedAnswers
from jaxeval.execution.precision import double_precision
from jaxeval.kernels import batch, judge_error
from jaxeval.kernels.judge_error import JudgedSums, LabelledSums, Rates
from jaxeval.statistics.intervals import wilson

Float = NDArray[np.float64]
Bool = NDArray[np.bool_]
Words = NDArray[np.object_]

#: Estimators by the name they have in tables, and what they are.
ESTIMATORS = {
    "naive": "the judge's own share of right answers, not corrected",
    "calibration_only": "mean label of the calibration items; the judge is not used",
    "difference": "PPI: judged share plus the mean of label minus judgment",
    "ppi_plus_plus": "PPI++: mean label plus lambda times the judge's shift from calibration to test",
    "ppi_plus_plus_half": "PPI++ with the labels of half of the calibration items",
    "conditional": "mean label by verdict, weighted by the verdicts' test shares",
    "eif": "mean label by verdict, weighted by the verdicts' shares in test and calibration together",
    "rogan_gladen": "Rogan-Gladen with the model's own calibration",
    "rogan_gladen_shared": "Rogan-Gladen with a calibration that models share",
}
#: Those that correct by specificity and sensitivity. Their resamples are clipped to [0, 1] one by one.
BY_RATES = ("rogan_gladen", "rogan_gladen_shared")
_BY_VERDICT = ("conditional", "eif", *BY_RATES)
#: Those that take the labelled items' errors as they are: labels of one class tell them nothing about the other.
CORRECTED_BY_LABELS = ("difference", "ppi_plus_plus", "ppi_plus_plus_half", "conditional", "eif")

NO_LABELS = "no calibration items"
_WORDS = {
    judge_error.FINE: OK,
    judge_error.NO_ITEMS: NO_LABELS,
    judge_error.NO_CLASS: NO_CLASS,
    judge_error.NO_SKILL: NO_SKILL,
    judge_error.NO_SUCH_VERDICT: "a verdict of the test is not in the calibration",
}
NOT_BINARY, NOT_SHARES, NO_TEST = "needs verdicts of 0 and 1", "scores are no shares", "no test items"
#: Statuses of numbers that are there.
HAVE_NUMBERS = (OK, CLIPPED, OUTSIDE)
#: Estimate and closed form are there, for what they are worth; resamples repeat the one class and say nothing.
ONE_CLASS = "labels of one class"
_ROUNDING = 1e-12


class Slice(NamedTuple):
    """One slice: its answers, their sums, and those of the resamples."""

    calibration: JudgedAnswers
    test: JudgedAnswers
    data: Arrays
    total: Sums
    draws: Sums
    half_draws: LabelledSums


def estimates(total: Sums, binary: Bool) -> dict[str, Float]:
    """(..., M, J) of every estimator but "ppi_plus_plus_half", not clipped; NaN where it is not defined."""
    with double_precision():
        found = jax.device_get(batch.accuracies(total.own, total.test, binary))
    shared = shared_estimates(total.shared, total.test, binary)
    return {**{name: np.asarray(x) for name, x in found._asdict().items()}, "rogan_gladen_shared": shared}


def shared_estimates(shared: LabelledSums, test: JudgedSums, binary: Bool) -> Float:
    """(..., M, J) Rogan-Gladen with one calibration (..., T, 1, J) for all models, not clipped."""
    with double_precision():
        return np.asarray(batch.shared_accuracy(shared, test, binary))


def estimate_draws(part: Slice, binary: Bool) -> dict[str, Float]:
    """(B, M, J) of every estimator; clipped where that is how its bootstrap is defined."""
    found = estimates(part.draws, binary)
    with double_precision():
        found["ppi_plus_plus_half"] = np.asarray(batch.ppi_accuracy(part.half_draws, part.draws.test, binary))
    return {name: np.clip(found[name], 0, 1) if name in BY_RATES else found[name] for name in ESTIMATORS}


def contributions(part: Slice, binary: Bool) -> dict[str, Contributions]:
    """Contributions of items to the estimates that have a closed form."""
    data, total = part.data, part.total
    with double_precision():
        each, shared, weights = jax.device_get(
            (
                batch.by_stratum(total.own, total.test, binary),
                batch.with_rates_of(total.shared, total.test, binary),
                batch.weights(total.own, total.test, binary),
            )
        )
    return {
        "naive": influence.naive(data, total, each.naive),
        **{
            name: influence.control_variate(data, total, getattr(each, name), weight)
            for name, weight in weights._asdict().items()
        },
        "rogan_gladen": influence.rogan_gladen(data, total, each.rogan_gladen),
        "rogan_gladen_shared": influence.shared_rogan_gladen(data, total, total.shared, None, shared),
    }


def excess_variances(part: Slice, binary: Bool) -> dict[str, Float]:
    """(M, J) by how much variances grow when they allow for few items, see `judge_error.small_sample_excess`."""
    with double_precision():
        own, shared = jax.device_get(
            (
                batch.small_sample_excess(part.total.own, part.total.test, binary),
                batch.rates_excess(part.total.shared, part.total.test),
            )
        )
    share = part.total.test.n / np.maximum(part.total.test.n.sum(0), 1)
    return {
        name: np.where(share > 0, share**2 * x, 0.0).sum(0)
        for name, x in {**own._asdict(), "rogan_gladen_shared": shared}.items()
    }


def centre_shifts(part: Slice, binary: Bool) -> dict[str, Float]:
    """(M, J) where intervals are centred, less the estimate; 0 with several strata, whose shifts would add up."""
    zero = np.zeros(part.total.test.n.shape[1:])
    if part.data.n_strata > 1:
        return dict.fromkeys(ESTIMATORS, zero)
    with double_precision():
        found = jax.device_get(batch.small_sample_shift(part.total.own, part.total.test, binary))
    return {**dict.fromkeys(ESTIMATORS, zero), **{name: np.asarray(x)[0] for name, x in found._asdict().items()}}


def critical_values(part: Slice, binary: Bool, level: float) -> Float:
    """(M, J) quantiles: normal; of scores, Student's t by the number of labels."""
    labels = np.maximum(part.total.own.n.sum(0) - 2, 1)
    return np.where(binary, norm.ppf((1 + level) / 2), t.ppf((1 + level) / 2, labels))


def closed_form(part: Slice, values: Mapping[str, Float], binary: Bool, level: float) -> dict[str, tuple[Float, Float]]:
    """Untruncated ends (M, J) by estimator."""
    z = norm.ppf((1 + level) / 2)
    quantile, excess = critical_values(part, binary, level), excess_variances(part, binary)
    shift = centre_shifts(part, binary)
    ends = {}
    for name, items in contributions(part, binary).items():
        half = quantile * np.sqrt(items.variance() + excess[name])
        centre = values[name] + shift[name]
        ends[name] = centre - half, centre + half
    if part.data.n_strata > 1:
        return ends
    test = JudgedSums(*(x[0] for x in part.total.test))
    own, shared = (LabelledSums(*(x[0] for x in sums)) for sums in (part.total.own, part.total.shared))
    with np.errstate(invalid="ignore", divide="ignore"), double_precision():
        p = test.judgment / test.n
        # Labels of several models on an item are not independent, as Eq. 6 takes them.
        one_model = part.data.shared.any(axis=(0, 2)).sum() <= 1
        for name, labelled in (("rogan_gladen", own), *([("rogan_gladen_shared", shared)] if one_model else [])):
            rates = judge_error.rates(labelled)
            lower, upper, _ = (np.asarray(x) for x in batch.rogan_gladen_interval(p, test.n, rates, z))
            ends[name] = np.broadcast_to(lower, p.shape), np.broadcast_to(upper, p.shape)
        score = wilson(p, test.n, level)
        ends["naive"] = tuple(np.where(binary, a, b) for a, b in zip(score, ends["naive"], strict=True))  # type: ignore[assignment]
        ends["calibration_only"] = wilson(own.label / own.n, own.n, level)
    return ends


def status_of(name: str, labelled: LabelledSums, n_test: Float, estimate: Float, binary: Bool, shares: Bool) -> Words:
    """(M, J) status of the estimates (M, J) by sums (T, M, J), in words; ``shares`` (J,): judgments lie in [0, 1]."""
    status = np.where((estimate < -_ROUNDING) | (estimate > 1 + _ROUNDING), CLIPPED, OK).astype(object)
    if name == "naive":
        status = np.where(np.broadcast_to(shares, status.shape), status, NOT_SHARES)
    else:
        if name in BY_RATES:
            with double_precision():
                code = np.asarray(batch.failure(labelled, np.maximum(n_test, 1)))
            code = np.where((code == judge_error.FINE) & ~(_adjusted_j(labelled) > 0), judge_error.NO_SKILL, code)
        else:
            code = np.where(labelled.n == 0, judge_error.NO_ITEMS, judge_error.FINE)
        worst = np.where(n_test > 0, code, judge_error.FINE).max(0)
        worst = np.where((worst == judge_error.FINE) & np.isnan(estimate), judge_error.NO_SUCH_VERDICT, worst)
        words = np.array([_WORDS[number] for number in range(len(_WORDS))], object)
        status = np.where(worst > 0, words[worst], status)
        if name in CORRECTED_BY_LABELS:
            right, n = labelled.label.sum(0), labelled.n.sum(0)
            one_class = ((right == 0) | (right == n)) & (n > 0)
            status = np.where(one_class & (worst == judge_error.FINE), ONE_CLASS, status)
        if name in _BY_VERDICT:
            status = np.where(np.broadcast_to(binary, status.shape), status, NOT_BINARY)
    return np.where(n_test.sum(0) == 0, NO_TEST, status)


def _adjusted_j(labelled: LabelledSums) -> Float:
    """J with one success and one failure more in each class, as the interval of Eq. 6 has it."""
    m1, m0 = labelled.label, labelled.n - labelled.label
    passed = labelled.judgment - labelled.product
    return (m0 - passed + 1) / (m0 + 2) + (labelled.product + 1) / (m1 + 2) - 1


def label_counts(
    name: str, labelled: LabelledSums, shape: tuple[int, int], distinct: Float | None = None
) -> tuple[Float, Float]:
    """(M, J) labels wrong and right that an estimator uses: those of its sums, or the ``distinct`` ones (2, J)."""
    if distinct is not None:
        return np.broadcast_to(distinct[0], shape), np.broadcast_to(distinct[1], shape)
    m1 = np.broadcast_to(labelled.label.sum(0), shape)
    m0 = np.broadcast_to(labelled.n.sum(0), shape) - m1
    factor = {"naive": 0.0, "ppi_plus_plus_half": 0.5}.get(name, 1.0)
    return factor * m0, factor * m1


def truth_of(test: JudgedAnswers) -> Float:
    """(M, J) mean label of the judged test answers, NaN unless all of them have one."""
    label = np.where(test.judged, test.label[:, :, None], 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return label.sum(0) / test.judged.sum(0)


def rates_of(labelled: LabelledSums) -> Rates:
    """(..., M, J) rates, strata together."""
    total = LabelledSums(*(x.sum(-3) for x in labelled))
    with np.errstate(invalid="ignore", divide="ignore"):
        return Rates(*(np.asarray(x) for x in judge_error.rates(total)))
