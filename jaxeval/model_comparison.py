"""Differences in accuracy between models by LLM judges, and whether a shared calibration can be believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm

from jaxeval import influence
from jaxeval.columns import DataError
from jaxeval.influence import Contributions
from jaxeval.judge_accuracy import (
    BY_RATES,
    ESTIMATORS,
    HAVE_NUMBERS,
    JudgeAccuracy,
    Slice,
    Words,
    contributions,
    estimate_draws,
    estimates,
    joined,
    judge_accuracy,
    label_counts,
    rates_of,
    shared_estimates,
    status_of,
    truth_of,
)
from jaxeval.judged_answers import JudgedAnswers
from jaxeval.judged_sums import POOLED
from jaxeval.kernels import batch, judge_error
from jaxeval.kernels.judge_error import LabelledSums, Rates
from jaxeval.precision import double_precision
from jaxeval.quantiles import bounds_with_failures
from jaxeval.rogan_gladen import OK

Float = NDArray[np.float64]
Pair = tuple[Any, Any]


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """Accuracy of model A minus that of model B.

    ``table`` has a row per slice, judge, pair and estimator: ``difference`` of the estimates; ``lower`` and ``upper``
    from the influence of every item (Appendix B of arXiv:2605.06939 for a shared calibration), which keeps test items
    paired; ``median``, ``boot_lower``, ``boot_upper`` of the paired resamples; ``failed_share`` of resamples without an
    estimate, which enter the ends as -1 and 1; ``labels`` that the estimator used, of both models; ``status``;
    ``truth`` where all test items have labels.

    ``stability`` has a row per slice, judge and pair: ``delta_j`` = J_A - J_B, ``delta_q0``, ``delta_q1`` from all
    labels of the two models, with percentile intervals, and ``shared_bias``: the bias of the difference by
    "rogan_gladen_shared" that Appendix C predicts, (theta_A delta_J - delta_q0) / J of the shared calibration for A,
    less the same for B; theta by Rogan-Gladen with the model's own calibration.
    """

    table: pd.DataFrame
    stability: pd.DataFrame
    accuracy: JudgeAccuracy
    pairs: list[Pair] = field(repr=False)

    @property
    def warnings(self) -> list[str]:
        """What is noteworthy about the data."""
        return self.accuracy.warnings

    def report(self) -> Any:
        """A `JudgeReport` of the comparison, with its cautions in words."""
        from jaxeval.judge_report import judge_report

        return judge_report(self.accuracy, self)


def compare_models(
    calibration: JudgedAnswers,
    test: JudgedAnswers,
    pairs: Sequence[Pair] | Pair | None = None,
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
            labels), or of the one model of a calibration without model column; "pooled", or a model.
        **settings: of `judge_accuracy`: by, stratify, level, n_resamples, n_halves, seed, progress.

    Raises:
        DataError: a model is unknown, or as in `judge_accuracy`.
    """
    chosen = checked_pairs(test, pairs)
    accuracy = judge_accuracy(calibration, test, shared=POOLED if shared is None else shared, **settings)
    return compare(accuracy, chosen, labels_of_b=shared is None)


def compare(accuracy: JudgeAccuracy, pairs: Sequence[Pair], labels_of_b: bool = True) -> ModelComparison:
    """The comparison of ``pairs`` from accuracies already computed.

    Args:
        labels_of_b: the shared calibration is that of B where B has labels; else the one of ``accuracy``.
    """
    tables, stabilities = {}, {}
    for label, part in accuracy.slices.items():
        own = _own(part, accuracy)
        of_model: dict[int | None, _Shared] = {}
        rows, checks = [], []
        for pair in pairs:
            a, b = (part.test.models.get_loc(model) for model in pair)
            only = b if labels_of_b and (part.total.own.n[:, b].sum(0) > 0).all() else None
            if only not in of_model:
                of_model[only] = _shared(part, accuracy, only)
            shared = of_model[only]
            rows.append(_differences(pair, a, b, part, own, shared, accuracy))
            checks.append(_stability(pair, a, b, part, own, shared, accuracy))
        tables[label] = pd.concat(rows, ignore_index=True)
        stabilities[label] = pd.concat(checks, ignore_index=True)
    by = accuracy.settings.by
    return ModelComparison(joined(tables, by), joined(stabilities, by), accuracy, list(pairs))


def checked_pairs(test: JudgedAnswers, pairs: Any) -> list[Pair]:
    """``pairs`` as a list of pairs of models of ``test``; all of them for None.

    Raises:
        DataError: a model is unknown, or the test has one only.
        ValueError: something else than pairs of two models.
    """
    if pairs is None:
        if len(test.models) < 2:
            raise DataError("a comparison needs two models, and the test has one: name the column of models, model=")
        return list(combinations(test.models, 2))
    several = list(pairs)
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


class _Own(NamedTuple):
    """Estimates with every model's own calibration: (M, J), draws (B, M, J), contributions of items."""

    estimate: Mapping[str, Float]
    draws: Mapping[str, Float]
    items: Mapping[str, Contributions]
    rates: Rates
    rate_draws: Rates


class _Shared(NamedTuple):
    """Rogan-Gladen with one calibration for all models."""

    labelled: LabelledSums  # (T, 1, J)
    estimate: Float
    draws: Float
    items: Contributions
    distinct: Float | None  # (2, J) labels wrong and right, where some are of one answer of several models
    name: str


def _own(part: Slice, accuracy: JudgeAccuracy) -> _Own:
    return _Own(
        estimates(part.total, accuracy.binary),
        estimate_draws(part, accuracy.binary),
        contributions(part, accuracy.binary),
        rates_of(part.total.own),
        rates_of(part.draws.own),
    )


def _shared(part: Slice, accuracy: JudgeAccuracy, only: int | None) -> _Shared:
    labelled, draws, name = part.total.shared, part.draws.shared, accuracy.settings.shared
    if only is not None:
        labelled, draws = (LabelledSums(*(x[..., only : only + 1, :] for x in s.own)) for s in (part.total, part.draws))
        name = str(part.test.models[only])
    with double_precision():
        each = np.asarray(batch.with_rates_of(labelled, part.total.test, accuracy.binary))
    return _Shared(
        labelled,
        shared_estimates(labelled, part.total.test, accuracy.binary),
        np.clip(shared_estimates(draws, part.draws.test, accuracy.binary), 0, 1),
        influence.shared_rogan_gladen(part.data, part.total, labelled, only, each),
        part.data.shared_labels if only is None else None,
        name,
    )


def _differences(
    pair: Pair, a: int, b: int, part: Slice, own: _Own, shared: _Shared, accuracy: JudgeAccuracy
) -> pd.DataFrame:
    level, binary = accuracy.settings.level, accuracy.binary
    z = norm.ppf((1 + level) / 2)
    shape = len(part.test.models), len(part.test.judges)
    truth = truth_of(part.test)
    blocks = []
    for name in ESTIMATORS:
        is_shared = name == "rogan_gladen_shared"
        labelled = shared.labelled if is_shared else part.total.own
        draws = shared.draws if is_shared else own.draws[name]
        median, lower, upper, failed = bounds_with_failures(draws[:, a] - draws[:, b], level, -1.0, 1.0)
        if is_shared or name in own.estimate:
            values = shared.estimate if is_shared else own.estimate[name]
            items = shared.items if is_shared else own.items[name]
            clipped = np.clip(values, 0, 1) if name in BY_RATES else values
            difference, half = clipped[a] - clipped[b], z * np.sqrt(items.difference_variance(a, b))
        else:
            # Random halves leave no one estimate: the median of the resamples stands for it.
            values = np.median(draws, 0)
            difference, half = median, np.full(shape[1], np.nan)
        status = _worse(status_of(name, labelled, part.total.test.n, values, binary, part.test.shares)[[a, b]])
        m0, m1 = label_counts(name, labelled, shape, shared.distinct if is_shared else None)
        labels = m0 + m1
        there = np.isin(status, HAVE_NUMBERS)
        numbers = {
            "difference": difference,
            "lower": np.maximum(difference - half, -1),
            "upper": np.minimum(difference + half, 1),
            "median": median,
            "boot_lower": lower,
            "boot_upper": upper,
        }
        blocks.append(
            {
                "estimator": np.full(shape[1], name, object),
                **{key: np.where(there, x, np.nan) for key, x in numbers.items()},
                "failed_share": failed,
                "status": status,
                "labels": labels[a] if is_shared else labels[a] + labels[b],
                "truth": truth[a] - truth[b],
            }
        )
    columns = {key: np.stack([block[key] for block in blocks], -1).reshape(-1) for key in blocks[0]}
    judges = np.repeat(part.test.judges.to_numpy(), len(blocks))
    return pd.DataFrame({"judge": judges, "model_a": pair[0], "model_b": pair[1], **columns})


def _worse(status: Words) -> Words:
    """(J,) of (2, J): the first that has no number, else the first that is not "ok"."""
    rank = np.where(status == OK, 0, np.where(np.isin(status, HAVE_NUMBERS), 1, 2))
    return np.where(rank[0] >= rank[1], status[0], status[1])


def _stability(
    pair: Pair, a: int, b: int, part: Slice, own: _Own, shared: _Shared, accuracy: JudgeAccuracy
) -> pd.DataFrame:
    """Differences of the judges' rates between the models, and the bias that a shared calibration then has."""
    point, draws = own.rates, own.rate_draws
    columns: dict[str, Any] = {}
    for name, value, drawn, most in (
        ("delta_j", point.q0 + point.q1, draws.q0 + draws.q1, 2.0),
        ("delta_q0", point.q0, draws.q0, 1.0),
        ("delta_q1", point.q1, draws.q1, 1.0),
    ):
        _, lower, upper, _ = bounds_with_failures(drawn[:, a] - drawn[:, b], accuracy.settings.level, -most, most)
        columns |= {name: value[a] - value[b], f"{name}_lower": lower, f"{name}_upper": upper}
    used = Rates(*(x[0] for x in rates_of(shared.labelled)))
    theta = np.clip(own.estimate["rogan_gladen"], 0, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        bias = [
            np.asarray(judge_error.shared_calibration_bias(theta[k], Rates(*(x[k] for x in point)), used))
            for k in (a, b)
        ]
    columns["shared_bias"] = bias[0] - bias[1]
    columns = {name: np.where(accuracy.binary, x, np.nan) for name, x in columns.items()}
    judges = part.test.judges.to_numpy()
    table = pd.DataFrame({"judge": judges, "model_a": pair[0], "model_b": pair[1], **columns})
    return table.assign(shared_labels=shared.name)
