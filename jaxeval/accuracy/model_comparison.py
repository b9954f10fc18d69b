"""Differences in accuracy between models by LLM judges, and whether a shared calibration can be believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from jaxeval.accuracy import influence
from jaxeval.accuracy.belief import believed_of_pair
from jaxeval.accuracy.estimates import (
    BY_RATES,
    ESTIMATORS,
    Slice,
    Words,
    centre_shifts,
    contributions,
    critical_values,
    estimate_draws,
    estimates,
    excess_variances,
    label_counts,
    rates_of,
    shared_estimates,
    status_of,
    truth_of,
)
from jaxeval.accuracy.judge_accuracy import JudgeAccuracy, joined, judge_accuracy
from jaxeval.accuracy.judged_sums import POOLED
from jaxeval.accuracy.statuses import BOUNDED, HAVE_NUMBERS, OK, ONE_CLASS, UNBOUNDED, WITHOUT_RESAMPLES
from jaxeval.data.judged_answers import ONLY_MODEL, JudgedAnswers
from jaxeval.errors import DataError
from jaxeval.execution.precision import double_precision
from jaxeval.kernels import batch, judge_error
from jaxeval.kernels.judge_error import LabelledSums, Rates
from jaxeval.statistics.quantiles import bounds_with_failures
from jaxeval.wording import did_you_mean

Float = NDArray[np.float64]
Pair = tuple[Any, Any]

_SHARED = "rogan_gladen_shared"
_PAIRS_AT_A_TIME = 64


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """Accuracy of model A minus that of model B.

    ``table`` has a row per slice, judge, pair and estimator: ``difference`` of the estimates; ``lower`` and ``upper``
    from the influence of every item (Appendix B of arXiv:2605.06939 for a shared calibration), which keeps test items
    paired; ``median``, ``boot_lower``, ``boot_upper`` of the paired resamples; ``failed_share`` of resamples without an
    estimate, which enter the ends as -1 and 1; ``labels`` that the estimator used, of both models; ``status``, the
    worse of the two models', in the words of `STATUSES`; ``believe``, True for the one difference to believe, by the
    rule of `believed_of_pair`; ``truth``, the difference of the mean labels of the test answers that have one.

    Where the status says that nothing bounds an estimate (`UNBOUNDED`), the intervals are [-1, 1].

    ``stability`` has a row per slice, judge and pair: ``delta_j`` = J_A - J_B from all labels of the two models, with
    an interval of adjusted rates that keeps items paired (one of the resamples beside, ``delta_j_boot``), ``delta_q0``
    and ``delta_q1`` with percentile intervals, and ``shared_bias``: the bias of the difference by
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
        from jaxeval.accuracy.report import judge_report

        return judge_report(self.accuracy, self)


def compare_models(
    calibration: JudgedAnswers,
    test: JudgedAnswers,
    pairs: Sequence[Pair] | Pair | None = None,
    *,
    shared: Any = None,
    by: str | None = None,
    stratify: str | None = None,
    level: float = 0.95,
    n_resamples: int = 10_000,
    n_halves: int = 20,
    seed: int = 0,
    memory_limit: int | None = None,
    checkpoint: str | Path | None = None,
    progress: bool | None = None,
) -> ModelComparison:
    """Compares models A and B by every judge and estimator, as arXiv:2605.06939 does.

    Test items are resampled with the judgments of all models on them, calibration items apart.

    Args:
        calibration: answers with labels, as in `judge_accuracy`.
        test: answers to compare.
        pairs: (A, B), or several such pairs; by default all.
        shared: whose labels "rogan_gladen_shared" uses for both models: by default those of B (the incumbent that has
            labels), or of the one model of a calibration without model column; "pooled", or a model.
        by: as in `judge_accuracy`, like all other arguments.

    Raises:
        DataError: a model is unknown, or as in `judge_accuracy`.
    """
    chosen = checked_pairs(test, pairs)
    accuracy = judge_accuracy(
        calibration, test, by=by, stratify=stratify, shared=POOLED if shared is None else shared, level=level,
        n_resamples=n_resamples, n_halves=n_halves, seed=seed, memory_limit=memory_limit, checkpoint=checkpoint,
        progress=progress,
    )  # fmt: skip
    return compare(accuracy, chosen, labels_of_b=shared is None)


def compare(accuracy: JudgeAccuracy, pairs: Sequence[Pair], labels_of_b: bool = True) -> ModelComparison:
    """The comparison of ``pairs`` from accuracies already computed.

    Args:
        labels_of_b: the shared calibration is that of B where B has labels; else the one of ``accuracy``.
    """
    tables, stabilities = {}, {}
    for label, part in accuracy.slices.items():
        own, believe = _own(part, accuracy), _believed(accuracy, label)
        numbers = np.array([[part.test.models.get_loc(model) for model in pair] for pair in pairs])
        has_labels = (part.judged.total.own.n > 0).all((0, 2))
        only = [int(b) if labels_of_b and has_labels[b] else None for _, b in numbers]
        of_model = {which: _shared(part, accuracy, which) for which in dict.fromkeys(only)}
        rows, checks = [], []
        for start in range(0, len(pairs), _PAIRS_AT_A_TIME):
            some = slice(start, start + _PAIRS_AT_A_TIME)
            shared = [of_model[which] for which in only[some]]
            a, b = numbers[some].T
            rows.append(_differences(a, b, part, own, shared, believe, accuracy))
            checks.append(_stability(a, b, own, shared, accuracy))
        tables[label], stabilities[label] = (
            _labelled(pairs, part, {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]})
            for blocks in (rows, checks)
        )
    by = accuracy.settings.by
    return ModelComparison(joined(tables, by), joined(stabilities, by), accuracy, list(pairs))


def _labelled(pairs: Sequence[Pair], part: Slice, columns: Mapping[str, NDArray[Any]]) -> pd.DataFrame:
    """A row per pair, judge (and estimator) of ``columns`` (P, J) or (P, J, E)."""
    j = len(part.test.judges)
    n = next(iter(columns.values())).size // (len(pairs) * j)
    first, second = (np.array([pair[k] for pair in pairs], dtype=object) for k in (0, 1))
    return pd.DataFrame(
        {
            "judge": np.tile(np.repeat(part.test.judges.to_numpy(), n), len(pairs)),
            "model_a": np.repeat(first, j * n),
            "model_b": np.repeat(second, j * n),
            **{name: x.reshape(-1) for name, x in columns.items()},
        }
    ).infer_objects()


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
                hint = did_you_mean(model, test.models)
                if list(test.models) == [ONLY_MODEL]:
                    hint = ": name the column of models, model= (--model)"
                raise DataError(f"no model {model!r} in the test; its models are {have}{hint}")
        if pair[0] == pair[1]:
            raise ValueError(f"a pair needs two models, got {pair[0]!r} twice")
    return [(a, b) for a, b in several]


class _Own(NamedTuple):
    """With every model's own calibration: estimates (M, J), draws (B, M, J), covariances (J, M, M), statuses (M, J)."""

    estimate: Mapping[str, Float]
    draws: Mapping[str, Float]
    covariance: Mapping[str, Float]
    excess: Mapping[str, Float]
    shift: Mapping[str, Float]
    status: Mapping[str, Words]
    quantile: Float  # (M, J)
    rates: Rates
    rate_draws: Rates
    j_covariance: Float


class _Shared(NamedTuple):
    """Rogan-Gladen with one calibration for all models."""

    labelled: LabelledSums  # (T, 1, J)
    estimate: Float
    draws: Float
    items: influence.Contributions
    status: Words
    distinct: Float | None  # (2, J) labels wrong and right, where some are of one answer of several models
    name: str


def _own(part: Slice, accuracy: JudgeAccuracy) -> _Own:
    binary = accuracy.binary
    estimate = estimates(part.judged.total, part.every.total, binary)
    draws = estimate_draws(part, binary)
    # Random halves leave no one estimate: the median of the resamples stands for it.
    estimate["ppi_plus_plus_half"] = np.median(draws["ppi_plus_plus_half"], 0)
    judged = part.judged
    return _Own(
        estimate,
        draws,
        {name: items.covariance() for name, items in contributions(part, binary).items()},
        excess_variances(part, binary),
        centre_shifts(part, binary),
        {name: status_of(name, part, x, binary) for name, x in estimate.items()},
        critical_values(part, binary, accuracy.settings.level),
        rates_of(judged.total.own),
        rates_of(judged.draws.own),
        influence.youden_j(judged.data, judged.total).covariance(),
    )


def _believed(accuracy: JudgeAccuracy, label: str) -> Words:
    """(M, J) name of the estimate to believe in a slice, "" for none."""
    table = accuracy.table
    rows = table[table["slice"] == (label or "all")] if "slice" in table else table
    chosen = rows["believe"].to_numpy().reshape(len(accuracy.models), len(accuracy.judges), len(ESTIMATORS))
    return np.where(chosen.any(-1), np.array(list(ESTIMATORS), object)[chosen.argmax(-1)], "")


def _shared(part: Slice, accuracy: JudgeAccuracy, only: int | None) -> _Shared:
    data, total, drawn, _ = part.judged
    labelled, draws, name = total.shared, drawn.shared, accuracy.settings.shared
    if only is not None:
        labelled, draws = (LabelledSums(*(x[..., only : only + 1, :] for x in s.own)) for s in (total, drawn))
        name = str(part.test.models[only])
    with double_precision():
        each = np.asarray(batch.with_rates_of(labelled, total.test, accuracy.binary))
    estimate = shared_estimates(labelled, total.test, accuracy.binary)
    return _Shared(
        labelled,
        estimate,
        np.clip(shared_estimates(draws, drawn.test, accuracy.binary), 0, 1),
        influence.shared_rogan_gladen(data, total, labelled, only, each),
        status_of(_SHARED, part, estimate, accuracy.binary, labelled),
        data.shared_labels if only is None else None,
        name,
    )


def _differences(
    a: NDArray[np.intp],
    b: NDArray[np.intp],
    part: Slice,
    own: _Own,
    shared: Sequence[_Shared],
    believe: Words,
    accuracy: JudgeAccuracy,
) -> dict[str, NDArray[Any]]:
    """Columns (P, J, E) of pairs of models ``a`` and ``b`` (P,); ``believe`` (M, J) estimates of their accuracies."""
    level = accuracy.settings.level
    m, j = part.test.judged.shape[1:]
    truth, _ = truth_of(part.test)
    quantile = np.maximum(own.quantile[a], own.quantile[b])
    both_corrected = (own.status["rogan_gladen"][a] == OK) & (own.status["rogan_gladen"][b] == OK)
    believe = believed_of_pair(believe[a], believe[b], both_corrected)
    blocks: list[dict[str, NDArray[Any]]] = []
    for name in ESTIMATORS:
        if name == _SHARED:
            estimate = [np.stack([s.estimate[k] for s, k in zip(shared, x, strict=True)]) for x in (a, b)]
            drawn = np.stack([s.draws[:, i] - s.draws[:, k] for s, i, k in zip(shared, a, b, strict=True)], axis=1)
            variance = np.stack([s.items.difference_variance(i, k) for s, i, k in zip(shared, a, b, strict=True)])
            status = _worse(*(np.stack([s.status[k] for s, k in zip(shared, x, strict=True)]) for x in (a, b)))
            labels = np.stack([np.add(*label_counts(name, s.labelled, (m, j), s.distinct))[0] for s in shared])
        else:
            estimate = [own.estimate[name][x] for x in (a, b)]
            drawn = own.draws[name][:, a] - own.draws[name][:, b]
            status = _worse(own.status[name][a], own.status[name][b])
            each = np.add(*label_counts(name, part.of(name).total.own, (m, j)))
            labels = each[a] + each[b]
            variance = np.full(labels.shape, np.nan)
            if name in own.covariance:
                c, excess = own.covariance[name], own.excess[name]
                together = c[:, a, b].T
                variance = np.maximum((c[:, a, a] + c[:, b, b]).T - 2 * together, 0.0)
                # What is added for few items goes together as the items' contributions do.
                with np.errstate(invalid="ignore", divide="ignore"):
                    rho = np.nan_to_num(together / np.sqrt(c[:, a, a] * c[:, b, b]).T).clip(0, 1)
                    variance += excess[a] + excess[b] - 2 * rho * np.sqrt(excess[a] * excess[b])
        if name in BY_RATES:
            estimate = [np.clip(x, 0, 1) for x in estimate]
        median, boot_lower, boot_upper, failed = bounds_with_failures(drawn, level, -1.0, 1.0)
        difference = median if name == "ppi_plus_plus_half" else estimate[0] - estimate[1]
        with np.errstate(invalid="ignore"):
            half = quantile * np.sqrt(variance)
        shift = own.shift.get(name)
        centre = difference if shift is None or name in BY_RATES else difference + shift[a] - shift[b]
        unbounded = np.isin(status, UNBOUNDED)
        lower, upper = np.maximum(centre - half, -1), np.minimum(centre + half, 1)
        lower, boot_lower = (np.where(unbounded & ~np.isnan(x), -1.0, x) for x in (lower, boot_lower))
        upper, boot_upper = (np.where(unbounded & ~np.isnan(x), 1.0, x) for x in (upper, boot_upper))
        there = np.isin(status, HAVE_NUMBERS)
        resampled = there & ~np.isin(status, WITHOUT_RESAMPLES)
        blocks.append(
            {
                "estimator": np.full(status.shape, name, object),
                "difference": np.where(there, difference, np.nan),
                "lower": np.where(there, lower, np.nan),
                "upper": np.where(there, upper, np.nan),
                "median": np.where(resampled, median, np.nan),
                "boot_lower": np.where(resampled, boot_lower, np.nan),
                "boot_upper": np.where(resampled, boot_upper, np.nan),
                "failed_share": failed,
                "status": status,
                "believe": believe == name,
                "labels": labels,
                "truth": truth[a] - truth[b],
            }
        )
    return {key: np.stack([block[key] for block in blocks], -1) for key in blocks[0]}


def _worse(one: Words, other: Words) -> Words:
    """The status that has no number, else no bounds, else no resamples, else the one that is not "ok"."""
    rank_one, rank_other = (
        np.select([x == OK, np.isin(x, BOUNDED), x == ONE_CLASS, np.isin(x, UNBOUNDED)], [0, 1, 2, 3], 4)
        for x in (one, other)
    )
    return np.where(rank_one >= rank_other, one, other)


def _stability(
    a: NDArray[np.intp], b: NDArray[np.intp], own: _Own, shared: Sequence[_Shared], accuracy: JudgeAccuracy
) -> dict[str, NDArray[Any]]:
    """Columns (P, J): how the judges' rates differ between the models, and the bias of a shared calibration."""
    point, draws, level = own.rates, own.rate_draws, accuracy.settings.level
    columns: dict[str, NDArray[Any]] = {}
    with np.errstate(invalid="ignore", divide="ignore"):
        centres, variance = (np.asarray(x) for x in judge_error.youden_j(point))
        # Judgments of both models on an item go together.
        together = np.stack([own.j_covariance[:, i, k] for i, k in zip(a, b, strict=True)])
        error = np.sqrt(np.maximum(variance[a] + variance[b] - 2 * together, 0.0))
    centre = centres[a] - centres[b]
    half = scipy.special.ndtri((1 + level) / 2) * error
    columns["delta_j"] = (point.q0 + point.q1)[a] - (point.q0 + point.q1)[b]
    columns["delta_j_lower"], columns["delta_j_upper"] = np.maximum(centre - half, -2), np.minimum(centre + half, 2)
    for name, drawn, value, most in (
        ("delta_j_boot", draws.q0 + draws.q1, None, 2.0),
        ("delta_q0", draws.q0, point.q0, 1.0),
        ("delta_q1", draws.q1, point.q1, 1.0),
    ):
        _, lower, upper, _ = bounds_with_failures(drawn[:, a] - drawn[:, b], level, -most, most)
        columns |= {} if value is None else {name: value[a] - value[b]}
        columns |= {f"{name}_lower": lower, f"{name}_upper": upper}
    theta = np.clip(own.estimate["rogan_gladen"], 0, 1)
    used = Rates(*(np.stack(x) for x in zip(*([y[0] for y in rates_of(s.labelled)] for s in shared), strict=True)))
    with np.errstate(invalid="ignore", divide="ignore"):
        bias = [
            np.asarray(judge_error.shared_calibration_bias(theta[x], Rates(*(y[x] for y in point)), used))
            for x in (a, b)
        ]
    columns["shared_bias"] = bias[0] - bias[1]
    columns = {name: np.where(accuracy.binary, x, np.nan) for name, x in columns.items()}
    names = np.array([s.name for s in shared], object)
    columns["shared_labels"] = np.broadcast_to(names[:, None], columns["delta_j"].shape)
    return columns
