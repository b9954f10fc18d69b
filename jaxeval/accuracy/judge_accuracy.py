"""Accuracies of models by LLM judges, corrected by labelled items: every estimator, with both kinds of interval."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from jaxeval.accuracy.accuracy_tables import (
    AccuracySettings,
    AccuracyTables,
    FacetedAccuracies,
    accuracy_table,
    joined,
    rates_table,
)
from jaxeval.accuracy.belief import checked_sampling
from jaxeval.accuracy.estimates import Evidence, Slice
from jaxeval.accuracy.judged_sums import POOLED, arrays, doubts_of_slice, resampled, sums, with_missing_filled
from jaxeval.accuracy.report import JudgeReport, judge_report
from jaxeval.arrays import Bool, Int
from jaxeval.data.judged_answers import JudgedAnswers
from jaxeval.errors import DataError
from jaxeval.execution.precision import backend_name, versions
from jaxeval.execution.runs import Identity, of_run, open_run
from jaxeval.execution.signatures import spelled_out
from jaxeval.lazy_names import scipy
from jaxeval.options.boards import AccuracyOptions, CalibrationSampling
from jaxeval.options.resampling import RunningOptions
from jaxeval.plain_tables import Names, counts_rows, in_pandas
from jaxeval.statistics.quantiles import checked_level
from jaxeval.statistics.variance_components import facet_names
from jaxeval.wording import counted, did_you_mean, named

if TYPE_CHECKING:
    from jaxeval.options.arguments import JudgeAccuracyArguments

#: Missing shares are reported to differ where chance makes such a difference more rarely than this.
_RARE = 0.01
_OF_JUDGED = "the raw share and Rogan-Gladen use judged answers alone"


def missing_judgments(calibration: JudgedAnswers, test: JudgedAnswers) -> list[str]:
    """Warn of labelled answers of ``calibration`` and answers of ``test`` that the same judges did not judge.

    Shares that are missing are compared between answers labelled wrong and right, between models, and between
    calibration and test, for every judge, by Fisher's exact test (two groups) or the chi-square test, at level 0.01.
    """
    labelled = ~np.isnan(calibration.label)
    messages = []
    for k, judge in enumerate(test.judges):
        # A judge who judged no answer of a model was not asked about it.
        answered = test.answered & test.judged[:, :, k].any(axis=0)
        of_asked = np.isin(calibration.models, test.models[answered.any(axis=0)])
        known = labelled & (of_asked | calibration.judged[:, :, k].any(axis=0))
        gap, test_gap = (there & ~x.judged[:, :, k] for there, x in ((known, calibration), (answered, test)))
        if not (gap.any() or test_gap.any()):
            continue
        messages.append(
            f"{judge}: {gap.sum():,} of {counted(known.sum(), 'labelled calibration answer')} and {test_gap.sum():,} "
            f"of {counted(answered.sum(), 'test answer has', 'test answers have')} no judgment; labels alone and PPI++ "
            f"use these answers, too, but {_OF_JUDGED}"
        )
        messages += _differences(calibration, test, known, answered, gap, test_gap, f"{judge}: judgments are missing")
    return messages


def _differences(
    calibration: JudgedAnswers, test: JudgedAnswers, known: Bool, answered: Bool, gap: Bool, test_gap: Bool, about: str
) -> Iterator[str]:
    of_class = [(gap & (calibration.label == y), known & (calibration.label == y)) for y in (0, 1)]
    by_class = np.array([[missing.sum(), n.sum()] for missing, n in of_class])
    if _differ(by_class):
        yield (
            f"{about} for {_share(by_class[0])} of the answers labelled wrong and {_share(by_class[1])} of those "
            f"labelled right, more than chance explains: {_OF_JUDGED}, which are not like the others"
        )
    models = list(test.models[answered.any(axis=0)])
    by_model = np.stack([test_gap.sum(0), answered.sum(0)], axis=1)[answered.any(axis=0)]
    where = calibration.models.get_indexer(models)
    by_model += np.where((where >= 0)[:, None], np.stack([gap.sum(0), known.sum(0)], axis=1)[where], 0)
    if _differ(by_model):
        order = np.argsort(by_model[:, 0] / by_model[:, 1], kind="stable")
        least, most = order[0], order[-1]
        yield (
            f"{about} for {_share(by_model[least])} of the answers of {models[least]} and {_share(by_model[most])} of "
            f"those of {models[most]}, more than chance explains: {_OF_JUDGED}, and so compare unlike answers"
        )
    by_part = np.array([[x.sum(), n.sum()] for x, n in ((gap, known), (test_gap, answered))])
    if _differ(by_part):
        yield (
            f"{about} for {_share(by_part[0])} of the labelled calibration answers and {_share(by_part[1])} of the "
            "test answers, more than chance explains: PPI++ is unbiased only if they are missing at random"
        )


def _differ(counts: Int) -> bool:
    """Return whether groups' missing shares differ beyond chance, by each group's missing and all answers (K, 2)."""
    counts = counts[counts[:, 1] > 0]
    table = np.stack([counts[:, 0], counts[:, 1] - counts[:, 0]])
    if len(counts) < 2 or (table.sum(1) == 0).any():
        return False
    test = scipy.stats.fisher_exact(table) if len(counts) == 2 else scipy.stats.chi2_contingency(table)
    return bool(test.pvalue < _RARE)


def _share(counts: Int) -> str:
    return f"{counts[0] / counts[1]:.1%} ({counts[0]:,} of {counts[1]:,})"


def aligned(
    calibration: JudgedAnswers, test: JudgedAnswers, shared: Hashable, sampling: CalibrationSampling | None = None
) -> tuple[JudgedAnswers, list[str]]:
    """Return ``calibration`` with the judges of ``test`` in its order, and what is noteworthy about the two."""
    if np.isnan(calibration.label).all():
        raise DataError("the calibration answers have no human labels: name the column of labels (label=, --human)")
    for role, one, other in (("models", calibration.models, test.models), ("judges", calibration.judges, test.judges)):
        alike = set(one.map(str)) & set(other.map(str))
        if alike and not one.isin(other).any():
            raise DataError(
                f"calibration and test name {role} by values of different types, {type(one[0]).__name__} and "
                f"{type(other[0]).__name__} ({sorted(alike)[0]!r} in both): make them one type, such as text"
            )
    unknown = [judge for judge in test.judges if judge not in calibration.judges]
    if unknown:
        have = ", ".join(map(repr, calibration.judges))
        raise DataError(
            f"the test has judgments by {', '.join(map(repr, unknown))}, the calibration has none; its judges are "
            f"{have}: give both the judgments of the same judges"
        )
    if shared != POOLED and shared not in calibration.models:
        have = ", ".join(map(repr, calibration.models))
        hint = did_you_mean(shared, [*calibration.models, POOLED])
        raise DataError(f"shared={shared!r} is no model of the calibration; its models are {have}, or 'pooled'{hint}")
    where = calibration.judges.get_indexer(test.judges)
    ours = replace(
        calibration,
        judges=test.judges,
        judgment=calibration.judgment[:, :, where],
        binary=calibration.binary[where],
        sampling=None,  # a setting of the call, and no part of the data
    )
    warnings = []
    unlabelled = int((ours.judged & np.isnan(ours.label)[:, :, None]).any(2).sum())
    if unlabelled:
        warnings.append(f"left out: {counted(unlabelled, 'calibration answer')} without a label")
    without = [str(model) for model in test.models if model not in calibration.models]
    if without:
        several = f"{', '.join(without[:8])}{' and others' if len(without) > 8 else ''}"
        warnings.append(f"no calibration labels of {several}: only a shared calibration can correct them")
    # With a calibration by label the test may well be all answers.
    both = _in_both(ours, test) if sampling in ("random", "borrowed") else 0
    if both and not counts_rows(ours.items):
        warnings.append(
            f"{counted(both, 'item is', 'items are')} in the calibration and in the test: intervals allow for it, but "
            "PPI++ weighs the two as if they were independent, so leave these items out of one of them"
        )
    return ours, warnings + _unlike_items(ours, test) + missing_judgments(ours, test) + _truth_warnings(test)


def _in_both(calibration: JudgedAnswers, test: JudgedAnswers) -> int:
    """Count items of both; where models have labels of their own, those with an answer of one model in both."""
    # As text: one file may hold items as numbers, and another not.
    here = calibration.items.map(str).get_indexer_for(test.items.map(str))
    of_model = calibration.models.get_indexer(test.models)
    if (of_model < 0).any():
        return int((here >= 0).sum())
    labelled = ~np.isnan(calibration.label[here][:, of_model])
    return int(((here >= 0)[:, None] & labelled & test.judged.any(2)).any(1).sum())


def _unlike_items(calibration: JudgedAnswers, test: JudgedAnswers) -> list[str]:
    """Say why some models have a judgment of a test item and others have none, and what to do."""
    answered = np.asarray(test.judged).max(axis=2)
    absent = answered.max(axis=1, keepdims=True) & ~answered
    if not absent.any():
        return []
    about = "models were judged on different items"
    if answered.sum(axis=1).max() == 1:
        return [
            f"{about}: no test item has judgments of two models; where models answered the same items, name the column "
            "of items (item=, --item)"
        ]
    # Answers with a label may have been set apart for the calibration, as `JudgedAnswers.by_label` does.
    place = calibration.items.map(str).get_indexer_for(test.items.map(str))
    of_model = calibration.models.get_indexer(test.models)
    known = ~np.isnan(calibration.label[place][:, of_model]) & (place >= 0)[:, None] & (of_model >= 0)
    set_apart, lacking = int((absent & known).sum()), int((absent & ~known).sum())
    consequence = "each model is scored on its own items"
    messages = []
    if set_apart:
        items = counted(int((absent & known).any(axis=1).sum()), "item")
        answers = counted(set_apart, "labelled answer belongs", "labelled answers belong")
        messages.append(
            f"{about}: for {items} people labelled the answers of some models only, and {answers} to the calibration, "
            f"not to the test; {consequence}. To compare models on the same items, label all models' answers to an "
            "item or none"
        )
    if lacking:
        messages.append(
            f"{about}: {counted(lacking, 'time')} a model has no judgment of an item where another model has "
            f"one; {consequence}. To keep only the items that all models have, read the answers with "
            "missing='complete' (on the command line --missing complete)"
        )
    return messages


def _truth_warnings(test: JudgedAnswers) -> list[str]:
    n, known = test.answered.sum(0), (test.answered & ~np.isnan(test.label)).sum(0)
    partly = np.flatnonzero((known > 0) & (known < n))
    if not len(partly):
        return []
    of = ", ".join(f"{test.models[k]} ({known[k]:,} of {n[k]:,})" for k in partly[:8])
    return [
        f"not all test answers have a label, so the truth is the mean of those that have one: {of}"
        f"{' and others' if len(partly) > 8 else ''}"
    ]


def slices_of(
    calibration: JudgedAnswers, test: JudgedAnswers, by: str | None
) -> dict[str, tuple[JudgedAnswers, JudgedAnswers]]:
    """Return calibration and test of every value of ``by``."""
    if by is None:
        return {}
    calibration.covariate(by)
    levels = test.covariate(by).levels
    names = levels.map(str)
    if "all" in names or "" in names or names.has_duplicates:
        raise DataError(
            f"column {by!r} has values that cannot name slices (it holds {named(list(map(repr, levels)), 5)}): rename "
            "'all' (the name of all items together), empty values, and values that are alike as text"
        )
    return {str(level): (_only(calibration, by, level), _only(test, by, level)) for level in levels}


def _only(answers: JudgedAnswers, by: str, level: Hashable) -> JudgedAnswers:
    """Return the answers whose ``by`` is ``level``."""
    covariate = answers.covariate(by)
    number = covariate.levels.get_indexer([level])[0]
    return answers.only(np.logical_and(covariate.number == number, number >= 0))


@dataclass(frozen=True, eq=False, repr=False)
class JudgeAccuracy(AccuracyTables):
    """Accuracies (``table``), how good the judges are (``rates``), and what the data cannot say (``warnings``).

    ``table`` has a row per slice, model, judge and estimator:

    * ``estimate``;
    * ``lower`` and ``upper`` in closed form, truncated to [0, 1]; ``lower_untruncated`` and ``upper_untruncated``. The
      closed form adds a few observations (for scores, it has Student's quantiles), so that a judge who never erred on a
      few labels is not taken for perfect. The resamples do take such a judge for perfect;
    * ``median``, ``boot_lower`` and ``boot_upper`` of the resamples;
    * ``failed_share`` of resamples in which the estimate is not defined. They enter the lower end as 0 and the upper
      end as 1;
    * ``status``, in the words of `STATUSES`; with strata, that of the worst stratum. Where nothing bounds an estimate
      (`UNBOUNDED`), its intervals are [0, 1] and the untruncated ends are infinite;
    * ``believe``: True for the one estimate to believe, by the rule of `believed`;
    * ``n_test``: number of test items;
    * ``m0`` and ``m1``: labels wrong and right that the estimator used. An answer that several models share is one
      label;
    * ``tolerance``: by how much the calibration may differ from the test until the truth leaves the interval.
      ``tolerance_of`` says what differs: "prevalence", the share of right answers; or "error rates", q0 and q1 both, in
      the direction that does most harm;
    * ``truth``: the mean label of the model's test answers; ``n_truth``: how many of them have a label. No estimate
      uses the truth. Intervals are for the population that the items stand for, whose mean label is another number.

    ``rates`` has a row per slice, model and judge: specificity ``q0``, sensitivity ``q1`` and Youden's ``j`` from all
    labels of the model, with intervals in closed form (`youden_j`) and of the resamples. ``p_same_share`` is the
    p-value of Hausman's test of PPI++ against Rogan-Gladen: it is small if the calibration is no random part.

    Where judgments are missing (read with missing="drop"), labels alone, PPI, PPI++, "conditional" and "eif" still use
    all labels and all test answers. A missing judgment counts as the judge's mean judgment of the model's test answers,
    in calibration and test alike. If the calibration is a random part, and judgments are missing alike in both, these
    estimates stay unbiased for all answers. The raw share, Rogan-Gladen and ``rates`` are of judged answers alone.
    ``warnings`` count missing judgments. They also say where judgments are missing more often for one class, for one
    model, or in one of calibration and test.

    Examples:
        >>> from jaxeval import JudgedAnswers, judge_accuracy, simulate_judged_answers
        >>> table = simulate_judged_answers([0.8, 0.6], q0=[[0.8]], q1=[[0.9]], n_items=600)
        >>> answers = JudgedAnswers.from_pandas(table, judgment="judge-1", model="model", item="item")
        >>> accuracy = judge_accuracy(*answers.split(1 / 3), n_resamples=200, progress=False)
        >>> accuracy.settings.sampling
        'random'
        >>> accuracy.rates[["model", "q0", "q1", "j"]].round(3)
             model     q0     q1      j
        0  model-1  0.818  0.904  0.722
        1  model-2  0.823  0.942  0.765
    """

    @cached_property
    def report(self) -> JudgeReport:
        """The accuracies with their cautions, in words."""
        return judge_report(self)


@spelled_out(AccuracyOptions, RunningOptions)
def judge_accuracy(
    calibration: JudgedAnswers,
    test: JudgedAnswers,
    *,
    random: str | Sequence[str] = (),
    shared: Hashable = POOLED,
    **options: Unpack[JudgeAccuracyArguments],
) -> JudgeAccuracy:
    """Estimate each ``test`` model's accuracy by every judge, corrected by the labelled items of ``calibration``.

    Test items and calibration items are resampled apart, in batched calls. An item is drawn as a whole: the judgments
    of all models and judges on it stay together.

    Args:
        calibration: answers with labels. Answers without a label are left out and counted. Without a model column it is
            one calibration that all models share; estimators that need a model's own calibration then say so.
        test: answers to rate. Their labels, if any, are shown as ``truth`` and not used; a warning says where only some
            answers of a model have a label.
        sampling: how the labelled answers were chosen, which decides what may be believed. "random": they are a random
            part of the population of the test. "by label": so many of each class were labelled. "borrowed": they are of
            another model or day. By default, what ``calibration`` says of itself, as `JudgedAnswers.split` does. Where
            nobody says, Rogan-Gladen alone may be believed, which holds in all three designs if the judge errs alike.
        by: column kept with both. Every value is a slice of its own, beside all items together.
        stratify: column kept with both. Answers are corrected within its values and added up by test shares, for judges
            whose errors depend on it.
        strata: column kept with both. Every resample holds as many test items, and as many calibration items, of each
            of its values as there are, as in `bootstrap`. Intervals in closed form do not know of these strata.
        cluster: column kept with both, of what items belong to: a passage, a conversation. Clusters are drawn whole,
            and a cluster with items in both is drawn for both at once. Intervals in closed form allow for them by the
            variance between clusters (CR2). For few clusters, these and intervals of resamples are longer by Student's
            t. Not with ``strata``, which a cluster may cross.
        random: what another evaluation would draw anew besides items: columns kept with both (a prompt, a seed; each
            item has one), or "judge". Intervals of ``table`` count the columns, by variance components of what items
            contribute; ``rates`` do not. With "judge", ``over_judges`` has accuracies by judges like these: means over
            judges, with degrees of freedom as in `error_budget`. Not with ``by``, ``stratify`` and ``strata``; joint
            draws and comparisons of models are refused.
        shared: whose labels the shared calibration uses: "pooled", of all models; or a model.

    Raises:
        TypeError: a number that must be an integer is not one.
        ValueError: a number is out of range, ``sampling`` is no design of a calibration, or there are both ``strata``
            and ``cluster``.
        DataError: calibration and test do not fit: no label, another judge, an unknown model or stratum; or
            an item lies in several ``strata`` or clusters.
        MemoryLimitError: this machine's memory cannot hold the results of so many resamples, or not even one resample
            at a time fits ``memory_limit``.

    Examples:
        >>> from jaxeval import JudgedAnswers, judge_accuracy, simulate_judged_answers
        >>> table = simulate_judged_answers([0.8, 0.6], q0=[[0.8]], q1=[[0.9]], n_items=600)
        >>> answers = JudgedAnswers.from_pandas(table, judgment="judge-1", model="model", item="item")
        >>> calibration, test = answers.split(1 / 3)
        >>> found = judge_accuracy(calibration, test, n_resamples=200, progress=False).table
        >>> found.loc[found["believe"], ["model", "estimator", "estimate", "lower", "upper"]].round(2)
              model      estimator  estimate  lower  upper
        3   model-1  ppi_plus_plus      0.80   0.75   0.85
        12  model-2  ppi_plus_plus      0.61   0.56   0.66
    """
    asked = AccuracyOptions.of(options)
    level, by, stratify = checked_level(asked.level), asked.by, asked.stratify
    strata, cluster = asked.strata, asked.cluster
    if strata is not None and cluster is not None:
        raise ValueError(
            "strata= and cluster= (--strata, --cluster) do not go together: a cluster may lie in several strata, so "
            "that it cannot be drawn whole within each; leave strata= out, which at worst makes intervals longer, or "
            "correct within its values with stratify= (--stratify), which goes with clusters"
        )
    facets = facet_names(random)
    if facets and (by or stratify or strata):
        raise ValueError("random= does not go with by=, stratify= and strata=: leave one out")
    sampling = checked_sampling(asked.sampling, calibration.sampling)
    asked = replace(asked, sampling=sampling, **asked.checked_values())
    columns = [*facets, *(name for name in (by, stratify, strata, cluster) if name is not None)]
    if columns or not all(isinstance(x.models, Names) for x in (calibration, test)):
        calibration, test = calibration.with_pandas(), test.with_pandas()
    calibration, warnings = aligned(calibration, test, shared, sampling)
    slices = {}
    parts = {"": (calibration, test), **slices_of(calibration, test, by)}
    draws = asked.arguments("seed", "n_halves", "by", "stratify", "strata", "cluster") | {"shared": str(shared)}
    others = asked.arguments("level", "n_resamples", "sampling")
    n_lanes = len(parts) * 3 * asked.n_resamples
    with open_run(lambda: Identity(draws, (calibration, test), others), n_lanes, "resamples", **of_run(options)) as run:
        for label, (labelled, judged) in parts.items():
            try:
                data = arrays(labelled, judged, stratify, shared, strata, cluster)
            except DataError as error:
                raise DataError(f"slice {label!r} of {by!r}: {error}" if label else str(error)) from error
            filled = with_missing_filled(data)
            sets = [data] if filled is data else [data, filled]
            drawn = resampled(sets, label, asked.n_resamples, asked.n_halves, asked.seed, run)
            evidence = [Evidence(x, sums(x), *of_x) for x, of_x in zip(sets, drawn, strict=True)]
            slices[label] = Slice(labelled, judged, evidence[0], evidence[-1])
    warnings += [
        f"slice {label!r} of {by}: {text}" if label else text
        for label, part in slices.items()
        for text in doubts_of_slice(part.test, part.judged.data)
    ]
    binary = calibration.binary & test.binary
    table = joined({label: accuracy_table(part, binary, level, sampling) for label, part in slices.items()}, by)
    of_facets: dict[str, Any] = {}
    if facets:
        errors = FacetedAccuracies(slices[""], facets, cluster)
        table = errors.widened(in_pandas(table), binary, level)
        of_facets = {"over_judges": errors.over_judges(table, binary, level), "_about": errors.facets.about}
        warnings += errors.facets.warnings
    return JudgeAccuracy(
        rows={
            "table": table,
            "rates": joined({label: rates_table(part, binary, level) for label, part in slices.items()}, by),
        },
        warnings=warnings,
        settings=AccuracySettings(
            **asked.arguments(), shared=str(shared), random=tuple(facets), device=backend_name(), versions=versions()
        ),
        slices=slices,
        binary=binary,
        **of_facets,
    )
