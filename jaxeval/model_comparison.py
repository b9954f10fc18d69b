"""Differences in accuracy between models by LLM judges, and whether a shared calibration can be believed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm

from jaxeval.columns import DataError
from jaxeval.judge_accuracy import ESTIMATORS, Block, JudgeAccuracy, accuracies, bounds, estimate_draws, judge_accuracy, rates_of
from jaxeval.judged_answers import JudgedAnswers
from jaxeval.kernels import judge_error
from jaxeval.kernels.judge_error import LabelledSums, Rates

Float = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """Accuracy of model A minus that of model B.

    ``table`` has a row per slice, judge, pair and estimator: ``difference`` of the estimates; ``lower`` and ``upper``
    from the influence of every item (Appendix B of arXiv:2605.06939 for a shared calibration), which keeps test items
    paired; ``median``, ``boot_lower``, ``boot_upper`` of the paired resamples; ``failed_share`` of resamples without an
    estimate, which enter the ends as -1 and 1; ``labels`` that the estimator used, of both models; ``status``; ``truth``
    where the test items have labels.

    ``stability`` has a row per slice, judge and pair: ``delta_j`` = J_A - J_B, ``delta_q0`` and ``delta_q1`` with
    percentile intervals from all labels, and ``shared_bias``, the bias that Appendix C predicts for the difference with
    a shared calibration, (theta_A delta_J - delta_q0) / J_B, theta_A by Rogan-Gladen with A's own calibration.
    """

    table: pd.DataFrame
    stability: pd.DataFrame
    accuracy: JudgeAccuracy
    pairs: list[tuple[Any, Any]] = field(repr=False)

    @property
    def warnings(self) -> list[str]:
        """What the data cannot say."""
        return self.accuracy.warnings

    def report(self) -> Any:
        """A `JudgeReport` of the comparison, with its cautions in words."""
        from jaxeval.judge_report import judge_report

        return judge_report(self.accuracy, self)


def compare_models(
    calibration: JudgedAnswers,
    test: JudgedAnswers,
    pairs: Sequence[tuple[Any, Any]] | tuple[Any, Any] | None = None,
    *,
    shared: Any = None,
    **settings: Any,
) -> ModelComparison:
    """Compares models A and B by every judge and estimator, as arXiv:2605.06939 does.

    Test items are resampled with the judgments of all models on them, calibration items apart.

    Args:
        calibration: answers with labels, as in `judge_accuracy`.
        test: answers to compare.
        pairs: (A, B), or several such pairs; by default all.
        shared: whose labels "rogan_gladen_shared" uses for both models: by default those of B (the incumbent that has
            labels), or of the unnamed model of a calibration without model column; "pooled", or a model.
        **settings: of `judge_accuracy`: by, stratify, level, n_resamples, n_halves, seed, progress.

    Raises:
        DataError: a model is unknown, or as in `judge_accuracy`.
    """
    chosen = _pairs(test, pairs)
    fixed = shared if shared is not None else "pooled"
    accuracy = judge_accuracy(calibration, test, shared=fixed, **settings)
    return compare(accuracy, chosen, own_of_b=shared is None)


def compare(accuracy: JudgeAccuracy, pairs: Sequence[tuple[Any, Any]], own_of_b: bool = True) -> ModelComparison:
    """`ModelComparison` of ``pairs`` from computed accuracies."""
    level = accuracy.settings.level
    tables, stabilities = [], []
    for label, block in accuracy.blocks.items():
        binary = accuracy.binary
        influences = _Influences(accuracy, label)
        own_draws = estimate_draws(block, binary)
        values = accuracies(block.own, block.pooled, block.test, binary)
        truth = _truth(accuracy, label)
        of_b: dict[int, tuple[LabelledSums, dict[str, Float], dict[str, Float]]] = {}
        for a, b in pairs:
            i, k = accuracy.test.models.get_loc(a), accuracy.test.models.get_loc(b)
            use_b = own_of_b and bool((block.own.n[:, k].sum(0) > 0).all())
            if use_b and k not in of_b:
                shared, shared_draws = _of_model(block.own, k), _of_model(block.own_draws, k)
                of_b[k] = (
                    shared,
                    accuracies(block.own, shared, block.test, binary),
                    estimate_draws(block, binary, shared_draws),
                )
            shared, value, draws = of_b[k] if use_b else (block.pooled, values, own_draws)
            table = _differences(
                (i, k), block, shared, value, draws, accuracy, influences, level, use_b
            )
            judges = accuracy.test.judges.to_numpy()
            table.insert(0, "judge", np.tile(judges, len(ESTIMATORS)))
            table.insert(1, "model_a", a)
            table.insert(2, "model_b", b)
            table["truth"] = np.tile(truth[i] - truth[k], len(ESTIMATORS))
            tables.append(table.assign(slice=label or "all"))
            stability = _stability(i, k, block, shared, value, binary, level)
            stability.insert(0, "judge", judges)
            stability.insert(1, "model_a", a)
            stability.insert(2, "model_b", b)
            stabilities.append(stability.assign(slice=label or "all"))
    found = [pd.concat(parts, ignore_index=True) for parts in (tables, stabilities)]
    if accuracy.settings.by is None:
        found = [table.drop(columns="slice") for table in found]
    else:
        found = [table[["slice", *(c for c in table.columns if c != "slice")]] for table in found]
    return ModelComparison(*found, accuracy, list(pairs))


def _pairs(test: JudgedAnswers, pairs: Any) -> list[tuple[Any, Any]]:
    if pairs is None:
        if len(test.models) < 2:
            raise DataError(f"a comparison needs two models, the test has {len(test.models)}: name their column, model=")
        return list(combinations(test.models, 2))
    several = list(pairs) if isinstance(pairs, Sequence) else [pairs]
    if len(several) == 2 and not any(isinstance(x, tuple | list) for x in several):
        several = [(several[0], several[1])]
    for pair in several:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(f"pairs must be (A, B) or a list of such pairs, got {pair!r}")
        for model in pair:
            if model not in test.models:
                have = ", ".join(map(repr, test.models))
                raise DataError(f"no model {model!r} in the test; its models are {have}")
        if pair[0] == pair[1]:
            raise ValueError(f"a pair needs two models, got {pair[0]!r} twice")
    return [(a, b) for a, b in several]


def _of_model(sums: LabelledSums, k: int) -> LabelledSums:
    """Sums (..., T, 1, J) of one model."""
    return LabelledSums(*(x[..., k : k + 1, :] for x in sums))


def _truth(accuracy: JudgeAccuracy, label: str) -> Float:
    table = accuracy.table if not label and accuracy.settings.by is None else accuracy.table[
        accuracy.table["slice"] == (label or "all")
    ]
    first = table[table["estimator"] == "naive"]
    return first["truth"].to_numpy().reshape(len(accuracy.test.models), len(accuracy.test.judges))
