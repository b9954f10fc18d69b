"""Accuracies of models by LLM judges, corrected by labelled items: every estimator, with both kinds of interval."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Unpack

import jax

from jaxeval.accuracy.accuracy_tables import AccuracySettings, AccuracyTables, accuracy_table, joined, rates_table
from jaxeval.accuracy.belief import checked_sampling
from jaxeval.accuracy.calibration_and_test import aligned, slices_of, without_items
from jaxeval.accuracy.estimates import Evidence, Slice
from jaxeval.accuracy.judged_sums import POOLED, arrays, few_clusters, lone_items, resampled, sums, with_missing_filled
from jaxeval.accuracy.report import JudgeReport, judge_report
from jaxeval.checks import checked_integer
from jaxeval.data.judged_answers import CalibrationSampling, JudgedAnswers
from jaxeval.errors import DataError
from jaxeval.execution.precision import versions
from jaxeval.execution.runs import Identity, RunOptions, open_run
from jaxeval.execution.signatures import spelled_out
from jaxeval.statistics.quantiles import checked_level


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


@spelled_out()
def judge_accuracy(
    calibration: JudgedAnswers,
    test: JudgedAnswers,
    *,
    sampling: CalibrationSampling | None = None,
    by: str | None = None,
    stratify: str | None = None,
    strata: str | None = None,
    cluster: str | None = None,
    shared: Hashable = POOLED,
    level: float = 0.95,
    n_resamples: int = 10_000,
    n_halves: int = 20,
    seed: int = 0,
    **running: Unpack[RunOptions],
) -> JudgeAccuracy:
    """Accuracy of every model of ``test`` by every judge, corrected by the labelled items of ``calibration``.

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
            variance between clusters (CR2), and for few clusters by Student's t. Not with ``strata``.
        shared: whose labels the shared calibration uses: "pooled", of all models; or a model.
        level: confidence level of all intervals.
        n_resamples: number of resamples, B.
        n_halves: number of random halves of the calibration items behind "ppi_plus_plus_half"; the resamples take
            turns.
        seed: of resamples and halves.
        chunk_size, memory_limit, checkpoint, progress: as in `bootstrap`.

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
    checked_level(level)
    if strata is not None and cluster is not None:
        raise ValueError("strata= and cluster= (--strata, --cluster) do not go together: leave one out")
    for name, value, least in (("n_resamples", n_resamples, 2), ("n_halves", n_halves, 1), ("seed", seed, 0)):
        checked_integer(name, value, least)
    sampling = checked_sampling(sampling, calibration.sampling)
    calibration, warnings = aligned(calibration, test, shared, sampling)
    slices = {}
    parts = {"": (calibration, test), **slices_of(calibration, test, by)}
    draws: dict[str, Any] = {
        "seed": seed,
        "n_halves": n_halves,
        "by": by,
        "stratify": stratify,
        "strata": strata,
        "cluster": cluster,
        "shared": str(shared),
    }
    others: dict[str, Any] = {"level": level, "n_resamples": n_resamples, "sampling": sampling}
    n_lanes = len(parts) * 3 * n_resamples
    with open_run(lambda: Identity(draws, (calibration, test), others), n_lanes, "resamples", **running) as run:
        for label, (labelled, judged) in parts.items():
            try:
                data = arrays(labelled, judged, stratify, shared, strata, cluster)
            except DataError as error:
                raise DataError(f"slice {label!r} of {by!r}: {error}" if label else str(error)) from error
            filled = with_missing_filled(data)
            sets = [data] if filled is data else [data, filled]
            drawn = resampled(sets, label, n_resamples, n_halves, seed, run)
            evidence = [Evidence(x, sums(x), *of_x) for x, of_x in zip(sets, drawn, strict=True)]
            slices[label] = Slice(labelled, judged, evidence[0], evidence[-1])
    warnings += [
        f"slice {label!r} of {by}: {text}" if label else text
        for label, part in slices.items()
        for text in [*without_items(part.test), *lone_items(part.judged.data), *few_clusters(part.judged.data)]
    ]
    binary = calibration.binary & test.binary
    return JudgeAccuracy(
        table=joined({label: accuracy_table(part, binary, level, sampling) for label, part in slices.items()}, by),
        rates=joined({label: rates_table(part, binary, level) for label, part in slices.items()}, by),
        warnings=warnings,
        settings=AccuracySettings(**draws, **others, device=jax.default_backend(), versions=versions()),
        slices=slices,
        binary=binary,
    )
