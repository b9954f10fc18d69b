"""Estimates of accuracies in one slice of judged answers, their errors and statuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.accuracy import influence
from jaxeval.accuracy.influence import Contributions
from jaxeval.accuracy.judged_sums import Arrays, Sums
from jaxeval.accuracy.rogan_gladen import ROUNDING
from jaxeval.accuracy.statuses import HAVE_NUMBERS, EstimateStatus, statuses_of
from jaxeval.arrays import Bool, Float, map_tree
from jaxeval.data.judged_answers import JudgedAnswers
from jaxeval.execution.host import evaluate
from jaxeval.kernels import judge_error
from jaxeval.kernels.judge_error import Accuracies, Doubt, JudgedSums, LabelledSums, Rates
from jaxeval.statistics.quantiles import bounds_with_failures, normal_quantile, student_quantile, wilson

Words = NDArray[np.object_]

#: Estimators by the name they have in tables, and what they are.
ESTIMATORS = {
    "naive": "the judge's raw share of right answers, not corrected",
    "calibration_only": "mean label of the calibration items; the judge is not used",
    "difference": "PPI: raw share plus the mean of label minus judgment",
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
#: Those that use all labels and all test answers, also where the judgment is missing; the others are of judged answers.
OF_ALL_ANSWERS = ("calibration_only", *CORRECTED_BY_LABELS)


class Evidence(NamedTuple):
    """Answers that estimates rest on, their sums, and those of the resamples."""

    data: Arrays
    total: Sums
    draws: Sums
    half_draws: LabelledSums


class Slice(NamedTuple):
    """One slice: its answers, and what estimates make of the judged ones and of every one."""

    calibration: JudgedAnswers
    test: JudgedAnswers
    judged: Evidence
    every: Evidence  # missing judgments filled; the same object where none is missing

    def of(self, name: str) -> Evidence:
        """Return what the estimator ``name`` rests on."""
        return self.every if name in OF_ALL_ANSWERS else self.judged

    def labels(self, name: str) -> tuple[LabelledSums, Float | None]:
        """Return sums of the labels that estimator ``name`` uses; (2, J) distinct labels where models share answers."""
        data, total, *_ = self.of(name)
        return (total.shared, data.shared_labels) if name == "rogan_gladen_shared" else (total.own, None)

    def label_counts(self, name: str, labelled: LabelledSums, distinct: Float | None) -> tuple[Float, Float]:
        """Return (M, J) labels wrong and right that an estimator uses: of its sums, or the ``distinct`` ones (2, J)."""
        factor = {"naive": 0.0, "ppi_plus_plus_half": 0.5}.get(name, 1.0)
        right = labelled.label.sum(0)
        counts = (factor * (labelled.n.sum(0) - right), factor * right) if distinct is None else distinct
        return tuple(np.broadcast_to(x, self.test.judged.shape[1:]) for x in counts)  # type: ignore[return-value]

    def truth(self) -> tuple[Float, Float]:
        """Return the mean label (M, J) of labelled test answers, NaN where there are none, and their number."""
        n = (~np.isnan(self.test.label)).sum(0)
        with np.errstate(invalid="ignore"):
            mean = np.nansum(self.test.label, axis=0) / n
        return tuple(np.broadcast_to(x[:, None], self.test.judged.shape[1:]) for x in (mean, n))  # type: ignore[return-value]


def _by_estimator(kernel: Callable[..., Accuracies], judged: Sums, every: Sums, binary: Bool) -> dict[str, Float]:
    """Return values of a kernel by estimator, each from the sums that it rests on."""
    values: dict[str, Float] = evaluate(kernel, judged.own, judged.test, binary)._asdict()
    if every is not judged:
        of_all = evaluate(kernel, every.own, every.test, binary)._asdict()
        values |= {name: of_all[name] for name in OF_ALL_ANSWERS if name in of_all}
    return values


def estimates(judged: Sums, every: Sums, binary: Bool) -> dict[str, Float]:
    """Return (..., M, J) of every estimator but "ppi_plus_plus_half", not clipped; NaN where it is not defined."""
    each = _by_estimator(judge_error.by_stratum, judged, every, binary)
    each["rogan_gladen_shared"] = evaluate(judge_error.with_rates_of, judged.shared, judged.test, binary)
    of_judged, of_all = (judge_error.strata_shares(sums.test) for sums in (judged, every))
    return {
        name: judge_error.add_strata(x, of_all if name in OF_ALL_ANSWERS else of_judged) for name, x in each.items()
    }


def shared_estimates(shared: LabelledSums, test: JudgedSums, binary: Bool) -> Float:
    """Return (..., M, J) Rogan-Gladen with one calibration (..., T, 1, J) for all models, not clipped."""
    each = evaluate(judge_error.with_rates_of, shared, test, binary)
    return np.asarray(judge_error.add_strata(each, judge_error.strata_shares(test)))


def estimate_draws(part: Slice, binary: Bool) -> dict[str, Float]:
    """Return (B, M, J) of every estimator; clipped where that is how its bootstrap is defined."""
    judged, every = part.judged.draws, part.every.draws
    draws = estimates(judged, every, binary)
    half = evaluate(judge_error.ppi_plus_plus, part.every.half_draws, every.test, binary)
    draws["ppi_plus_plus_half"] = judge_error.add_strata(half, judge_error.strata_shares(every.test))
    return {name: np.clip(draws[name], 0, 1) if name in BY_RATES else draws[name] for name in ESTIMATORS}


def contributions(part: Slice, binary: Bool) -> dict[str, Contributions]:
    """Return contributions of items to the estimates that have a closed form."""
    data, total, *_ = part.judged
    all_data, all_total, *_ = part.every
    each = _by_estimator(judge_error.by_stratum, total, all_total, binary)
    shared = evaluate(judge_error.with_rates_of, total.shared, total.test, binary)
    weights = evaluate(judge_error.weights, all_total.own, all_total.test, binary)
    return {
        "naive": influence.naive(data, total, each["naive"]),
        **{
            name: influence.control_variate(all_data, all_total, each[name], weight)
            for name, weight in weights._asdict().items()
        },
        "rogan_gladen": influence.rogan_gladen(data, total, each["rogan_gladen"]),
        "rogan_gladen_shared": influence.shared_rogan_gladen(data, total, total.shared, None, shared),
    }


def excess_variances(part: Slice, binary: Bool) -> dict[str, Float]:
    """Return (M, J) by how much variances grow when they allow for few items, see `judge_error.small_sample_excess`."""
    judged = part.judged.total
    excess = _by_estimator(judge_error.small_sample_excess, judged, part.every.total, binary)
    excess["rogan_gladen_shared"] = evaluate(judge_error.rates_excess, judged.shared, judged.test)
    n = {name: part.of(name).total.test.n for name in excess}
    share = {name: of_stratum / np.maximum(of_stratum.sum(0), 1) for name, of_stratum in n.items()}
    return {name: np.where(share[name] > 0, share[name] ** 2 * x, 0.0).sum(0) for name, x in excess.items()}


def centre_shifts(part: Slice, binary: Bool) -> dict[str, Float]:
    """Give (M, J) where intervals are centred, less the estimate; 0 with several strata, whose shifts would add up."""
    judged = part.judged.total
    zero = dict.fromkeys(ESTIMATORS, np.zeros(judged.test.n.shape[1:]))
    if part.judged.data.n_strata > 1:
        return zero
    shifts = _by_estimator(judge_error.small_sample_shift, judged, part.every.total, binary)
    return zero | {name: x[0] for name, x in shifts.items()}


def degrees(part: Slice, binary: Bool, items: Contributions | None = None) -> Float:
    """Return (M, J) degrees of freedom: infinite for verdicts, labels less 2 for scores; of clusters fewer."""
    labels = np.maximum(part.every.total.own.n.sum(0) - 2, 1)
    freedom = np.where(binary, np.inf, labels)
    return freedom if items is None else np.minimum(freedom, influence.freedom(items, part.judged.data.units))


def design_effects(part: Slice, items: Contributions) -> Float:
    """Return (M, J) by how much variances are larger than if all items were independent."""
    units = part.judged.data.units
    return influence.effect(items.variance(), influence.together(items, units).variance(), units)


def effect_on_rates(part: Slice) -> Float:
    """Return (M, J) the design effect of clusters of labelled items on Youden's J, at least 1."""
    data, total, *_ = part.judged
    if data.units is None or not data.units.clustered:
        return np.ones(total.own.n.shape[1:])
    return np.maximum(design_effects(part, influence.youden_j(data, total)), 1.0)


def standard_errors(part: Slice, binary: Bool) -> dict[str, Float]:
    """Return (M, J) standard errors in closed form, of the estimators that have one; resamples play no part in them."""
    excess = excess_variances(part, binary)
    return {
        name: np.sqrt((items.variance() + excess[name]) * design_effects(part, items))
        for name, items in contributions(part, binary).items()
    }


def sensitivities(part: Slice, binary: Bool) -> dict[str, Float]:
    """Return (M, J) by how much estimates move, if the calibration differs from the test by 1, by estimator.

    What differs is the share of right answers: labels alone move with it, and an estimate with the weight lambda by
    1 - lambda J. For Rogan-Gladen it is the judge's rates, both in the direction that does most harm: the error
    (theta delta-q1 - (1 - theta) delta-q0) / J of arXiv:2605.06939, Appendix C, is then 1 / J.
    """
    judged, every = part.judged.total, part.every.total
    weights = evaluate(judge_error.weights, every.own, every.test, binary)._asdict()
    moves = {name: _by_test_shares(every, 1 - weight * _skill(every.own)) for name, weight in weights.items()}
    moves["calibration_only"] = np.ones_like(moves["calibration_only"])
    moves["rogan_gladen"] = sensitivity_to_rates(judged.own, judged)
    moves["rogan_gladen_shared"] = sensitivity_to_rates(judged.shared, judged)
    return moves


def sensitivity_to_rates(labelled: LabelledSums, total: Sums) -> Float:
    """Return (M, J) by how much Rogan-Gladen with the rates of ``labelled`` moves with them: see `sensitivities`."""
    with np.errstate(divide="ignore"):
        return _by_test_shares(total, 1 / _skill(labelled))


def _skill(labelled: LabelledSums) -> Float:
    """Return mean judgment of right answers less that of wrong ones: Youden's J, of verdicts."""
    with np.errstate(invalid="ignore", divide="ignore"):
        wrong = (labelled.judgment - labelled.product) / (labelled.n - labelled.label)
        return np.asarray(labelled.product / labelled.label - wrong)


def _by_test_shares(total: Sums, each: Float) -> Float:
    shares = judge_error.strata_shares(total.test)
    return np.asarray(judge_error.add_strata(np.broadcast_to(each, total.test.n.shape), shares))


class Estimated(NamedTuple):
    """Accuracies of M models by one estimator; (M, J) where nothing else is said."""

    name: str
    estimate: Float
    draws: Float  # (B, M, J)
    status: Words
    labels: tuple[Float, Float]  # wrong and right ones that the estimate uses
    items: Contributions | None  # None without a closed form
    like: Contributions  # those of an estimator that follows clusters as this one does
    excess: Float  # by how much the variance grows as items are few
    shift: Float  # from the estimate to the centre of its interval
    moves: Float  # of `sensitivities`
    degrees: Float  # of freedom


def estimated(part: Slice, binary: Bool) -> dict[str, Estimated]:
    """Return what every estimator makes of a slice, each model with its own calibration."""
    values, draws = estimates(part.judged.total, part.every.total, binary), estimate_draws(part, binary)
    # Random halves leave no one estimate: the median of the resamples stands for it, whatever the level.
    values["ppi_plus_plus_half"] = bounds_with_failures(draws["ppi_plus_plus_half"], 0.5, 0.0, 1.0)[0]
    items, excess, shift = contributions(part, binary), excess_variances(part, binary), centre_shifts(part, binary)
    moves, shape = sensitivities(part, binary), part.test.judged.shape[1:]
    return {
        name: Estimated(
            name=name,
            estimate=values[name],
            draws=draws[name],
            status=status_of(name, part, values[name], binary),
            labels=part.label_counts(name, *part.labels(name)),
            items=items.get(name),
            like=items.get(name, items["ppi_plus_plus"]),
            excess=excess.get(name, np.zeros(shape)),
            shift=shift[name],
            moves=moves.get(name, np.full(shape, np.nan)),
            degrees=degrees(part, binary, items.get(name)),
        )
        for name in ESTIMATORS
    }


def closed_form(part: Slice, own: Mapping[str, Estimated], binary: Bool, level: float) -> dict[str, tuple[Float, ...]]:
    """Return untruncated ends (M, J) by estimator."""
    items = {name: x.items for name, x in own.items() if x.items is not None}
    quantile = {name: student_quantile(level, own[name].degrees) for name in items}
    ends: dict[str, tuple[Float, ...]] = {}
    for name in items:
        centre = own[name].estimate + own[name].shift
        half = quantile[name] * np.sqrt((items[name].variance() + own[name].excess) * design_effects(part, items[name]))
        ends[name] = centre - half, centre + half
    if part.judged.data.n_strata > 1:
        return ends
    test, labelled, shared = map_tree(lambda x: x[0], part.judged.total)
    proportions = intervals_of_proportions(labelled, test, map_tree(lambda x: x[0], part.every.total.own), level)
    proportions["naive"] = tuple(
        np.where(binary, x, y) for x, y in zip(proportions["naive"], ends["naive"], strict=True)
    )
    # Labels of several models on an item are not independent, as Eq. 6 takes them.
    if part.judged.data.shared.used.any(axis=(0, 2)).sum() <= 1:
        lower, upper = evaluate(judge_error.interval_with_rates_of, shared, test, normal_quantile(level))
        proportions["rogan_gladen_shared"] = np.broadcast_to(lower, test.n.shape), np.broadcast_to(upper, test.n.shape)
    if part.judged.data.units is None:
        return ends | proportions
    for name, (lower, upper) in proportions.items():
        longer = np.sqrt(design_effects(part, items[name])) * quantile[name] / normal_quantile(level)
        if name == "naive":
            longer = np.where(binary, longer, 1.0)  # those of scores are long enough
        centre, half = (lower + upper) / 2, (upper - lower) / 2 * longer
        proportions[name] = centre - half, centre + half
    return ends | proportions


def intervals_of_proportions(
    labelled: LabelledSums, test: JudgedSums, every: LabelledSums, level: float
) -> dict[str, tuple[Float, ...]]:
    """Return ends (..., M, J) of the intervals of verdicts that have a formula; ``every`` are sums of all labels."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "naive": wilson(test.judgment / test.n, test.n, level),
            "calibration_only": wilson(every.label / every.n, every.n, level),
            "rogan_gladen": evaluate(judge_error.interval_with_rates_of, labelled, test, normal_quantile(level)),
        }


def status_of(name: str, part: Slice, estimate: Float, binary: Bool, labelled: LabelledSums | None = None) -> Words:
    """Return one estimator's status (M, J) in words by its estimates (M, J); ``labelled`` for its own labels."""
    n_test, shares = part.of(name).total.test.n, part.test.shares
    units = part.judged.data.units
    if name == "rogan_gladen" and labelled is None:
        # Clusters of labels are worth fewer labels.
        labelled = LabelledSums(*(x / effect_on_rates(part) for x in part.labels(name)[0]))
    labelled = labelled or part.labels(name)[0]
    status = np.where(
        (estimate < -ROUNDING) | (estimate > 1 + ROUNDING), EstimateStatus.CLIPPED, EstimateStatus.OK
    ).astype(object)
    one_score = ~binary & ((n_test > 0) & (n_test < 2)).any(0)  # in some stratum
    if name == "naive":
        status = np.where(one_score, EstimateStatus.TOO_FEW_ITEMS, status)
        status = np.where(np.broadcast_to(shares, status.shape), status, EstimateStatus.NOT_SHARES)
    else:
        if name in BY_RATES:
            code = evaluate(judge_error.doubt_of_sums, labelled, np.maximum(n_test, 1))
        else:
            code = np.where(labelled.n == 0, Doubt.NO_LABELS, Doubt.OK)
        worst = np.where(n_test > 0, code, Doubt.OK).max(0)
        worst = np.where((worst == Doubt.OK) & np.isnan(estimate), Doubt.NO_SUCH_VERDICT, worst)
        status = np.where(worst > Doubt.OK, statuses_of(worst).astype(object), status)
        if name in CORRECTED_BY_LABELS:
            right, n = labelled.label.sum(0), labelled.n.sum(0)
            one_class = ((right == 0) | (right == n)) & (n > 0)
            few = ~binary & ((n_test > 0) & (labelled.n < 3)).any(0)
            doubts = np.select(
                [few, one_score, one_class],
                [EstimateStatus.TOO_FEW_LABELS, EstimateStatus.TOO_FEW_ITEMS, EstimateStatus.ONE_CLASS],
                EstimateStatus.OK,
            )
            status = np.where((doubts != EstimateStatus.OK) & (worst == Doubt.OK), doubts, status)
        if name in _BY_VERDICT:
            status = np.where(np.broadcast_to(binary, status.shape), status, EstimateStatus.NOT_BINARY)
    if units is not None and units.clustered:
        few_units = [len(size) < 2 for size in units.sizes()]
        numbers = np.isin(status, HAVE_NUMBERS)
        if few_units[0] and name != "naive":
            status = np.where(numbers, EstimateStatus.TOO_FEW_LABELS, status)
        elif few_units[1] and name != "calibration_only":
            status = np.where(numbers, EstimateStatus.TOO_FEW_ITEMS, status)
    return np.where(n_test.sum(0) == 0, EstimateStatus.NO_TEST, status)


def rates_of(labelled: LabelledSums) -> Rates:
    """Return (..., M, J) rates, strata together."""
    total = LabelledSums(*(x.sum(-3) for x in labelled))
    with np.errstate(invalid="ignore", divide="ignore"):
        return Rates(*(np.asarray(x) for x in judge_error.rates(total)))
