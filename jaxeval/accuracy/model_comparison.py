"""Differences in accuracy between models by LLM judges, and whether a shared calibration can be believed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from jaxeval.accuracy.accuracy_tables import joined, of_slice, reject_facets
from jaxeval.accuracy.difference_tables import DifferenceTables, Pair, difference_tables
from jaxeval.accuracy.estimates import ESTIMATORS, Words
from jaxeval.accuracy.judge_accuracy import JudgeAccuracy, judge_accuracy
from jaxeval.accuracy.judged_sums import POOLED
from jaxeval.accuracy.report import JudgeReport, judge_report
from jaxeval.data.judged_answers import ONLY_MODEL, JudgedAnswers
from jaxeval.errors import DataError
from jaxeval.execution.signatures import spelled_out
from jaxeval.options.boards import AccuracyOptions
from jaxeval.options.resampling import RunningOptions
from jaxeval.statistics.draws import Draws
from jaxeval.wording import did_you_mean

if TYPE_CHECKING:
    from jaxeval.options.arguments import JudgeAccuracyArguments


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison(DifferenceTables):
    """Accuracy of model A minus that of model B, for the ``pairs`` of models; ``accuracy`` is that of each model.

    ``table`` has a row per slice, judge, pair and estimator:

    * ``difference`` of the estimates;
    * ``lower`` and ``upper``, from the influence of every item (Appendix B of arXiv:2605.06939 for a shared
      calibration), which keeps test items paired;
    * ``median``, ``boot_lower``, ``boot_upper`` of the paired resamples;
    * ``failed_share`` of resamples without an estimate. They enter the ends as -1 and 1;
    * ``status``: the worse of the two models', in the words of `STATUSES`. Where nothing bounds an estimate
      (`UNBOUNDED`), its intervals are [-1, 1];
    * ``believe``: True for the one difference to believe, by the rule of `believed_of_pair`;
    * ``labels`` that the estimator used, of both models;
    * ``tolerance``: by how much the calibrations may differ from the tests, of A and B in opposite directions, until
      the end of the interval that is nearer to 0 reaches 0; ``tolerance_of``: "prevalence" or "error rates", as in
      `JudgeAccuracy`;
    * ``truth``: the difference of the mean labels of the test answers that have one.

    ``stability`` has a row per slice, judge and pair:

    * ``delta_j`` = J_A - J_B from all labels of the two models. Its interval is of adjusted rates and keeps items
      paired; the ends ``delta_j_boot`` are of the resamples;
    * ``delta_q0`` and ``delta_q1``, the differences of the rates, with percentile intervals;
    * ``shared_bias``: the bias that Appendix C predicts for the difference by "rogan_gladen_shared". It is
      (theta_A delta_J - delta_q0) / J for A, less the same for B. J is that of the shared calibration, and theta is
      Rogan-Gladen with the model's own calibration;
    * ``shared_labels``: whose labels the shared calibration uses.

    Examples:
        >>> from jaxeval import JudgedAnswers, compare_models, simulate_judged_answers
        >>> table = simulate_judged_answers([0.8, 0.6], q0=[[0.8]], q1=[[0.9]], n_items=600)
        >>> answers = JudgedAnswers.from_pandas(table, judgment="judge-1", model="model", item="item")
        >>> comparison = compare_models(*answers.split(1 / 3), n_resamples=200, progress=False)
        >>> print(*comparison.report.claims())
        judge-1, model-1 against model-2: model-1 is ahead, +0.192 [+0.128, +0.250] by PPI++
    """

    accuracy: JudgeAccuracy

    @property
    def joint(self) -> Draws:
        """The accuracies as joint draws, those of `accuracy`: differences of models are paired."""
        return self.accuracy.joint

    @property
    def warnings(self) -> list[str]:
        """What is noteworthy about the data."""
        return self.accuracy.warnings

    @cached_property
    def report(self) -> JudgeReport:
        """The comparison with its cautions, in words."""
        return judge_report(self.accuracy, self)

    def _sentences(self) -> list[str]:
        return list(self.report().answer.sentences)


@spelled_out(AccuracyOptions, RunningOptions)
def compare_models(
    calibration: JudgedAnswers,
    test: JudgedAnswers,
    pairs: Sequence[Pair] | Pair | None = None,
    *,
    shared: Hashable | None = None,
    **options: Unpack[JudgeAccuracyArguments],
) -> ModelComparison:
    """Compare models A and B by every judge and estimator, as arXiv:2605.06939 does.

    Test items are resampled with the judgments of all models on them. Calibration items are resampled apart.

    Args:
        calibration: answers with labels, as in `judge_accuracy`.
        test: answers to compare.
        pairs: (A, B), or several such pairs; by default all.
        sampling: how the labelled answers were chosen, as in `judge_accuracy`.
        shared: whose labels "rogan_gladen_shared" uses for both models: "pooled", or a model. By default they are those
            of B (the incumbent that has labels), or of the one model of a calibration without model column.
        **options: as in `judge_accuracy`.

    Raises:
        DataError: a model is unknown, or as in `judge_accuracy`.

    Examples:
        >>> from jaxeval import JudgedAnswers, compare_models, simulate_judged_answers
        >>> table = simulate_judged_answers([0.8, 0.6], q0=[[0.8]], q1=[[0.9]], n_items=600)
        >>> answers = JudgedAnswers.from_pandas(table, judgment="judge-1", model="model", item="item")
        >>> calibration, test = answers.split(1 / 3)
        >>> found = compare_models(calibration, test, ("model-1", "model-2"), n_resamples=200, progress=False)
        >>> found.table.loc[found.table["believe"], ["estimator", "difference", "lower", "upper"]].round(2)
               estimator  difference  lower  upper
        3  ppi_plus_plus        0.19   0.13   0.25
    """
    chosen = checked_pairs(test, pairs)
    accuracy = judge_accuracy(calibration, test, shared=POOLED if shared is None else shared, **options)
    return compare(accuracy, chosen, labels_of_b=shared is None)


def compare(accuracy: JudgeAccuracy, pairs: Sequence[Pair], labels_of_b: bool = True) -> ModelComparison:
    """Return the comparison of ``pairs`` from accuracies already computed; see `difference_tables`."""
    reject_facets(accuracy.settings.random, "differences of accuracies")
    differences, stabilities = {}, {}
    for label, part in accuracy.slices.items():
        believe = _believed(accuracy, label)
        differences[label], stabilities[label] = difference_tables(part, accuracy, believe, pairs, labels_of_b)
    by = accuracy.settings.by
    return ModelComparison(joined(differences, by), joined(stabilities, by), accuracy, list(pairs))


def _believed(accuracy: JudgeAccuracy, label: str) -> Words:
    """Return (M, J) name of the estimate to believe in a slice, "" for none."""
    chosen = (
        of_slice(accuracy.table, label or "all")["believe"]
        .to_numpy()
        .reshape(len(accuracy.models), len(accuracy.judges), len(ESTIMATORS))
    )
    return np.where(chosen.any(-1), np.array(list(ESTIMATORS), object)[chosen.argmax(-1)], "")


def checked_pairs(test: JudgedAnswers, pairs: Sequence[Pair] | Pair | None) -> list[Pair]:
    """Return ``pairs`` as a list of pairs of models of ``test``; all of them for None."""
    if pairs is None:
        if len(test.models) < 2:
            raise DataError(
                "a comparison needs two models, and the test has one: name the column of models (model=, --model)"
            )
        return list(combinations(test.models, 2))
    several: list[Any] = list(pairs)
    if len(several) == 2 and not any(isinstance(x, tuple | list) for x in several):
        several = [several]
    chosen: list[Pair] = []
    for pair in several:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(f"pairs must be (A, B) or a list of such pairs, got {pair!r}")
        for model in pair:
            if model not in test.models:
                have = ", ".join(map(repr, test.models))
                hint = did_you_mean(model, test.models)
                if list(test.models) == [ONLY_MODEL]:
                    hint = ": name the column of models (model=, --model)"
                raise DataError(f"no model {model!r} in the test; its models are {have}{hint}")
        if pair[0] == pair[1]:
            raise ValueError(f"a pair needs two models, got {pair[0]!r} twice")
        chosen.append((pair[0], pair[1]))
    return chosen
