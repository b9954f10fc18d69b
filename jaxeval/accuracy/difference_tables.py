"""Tables of differences in accuracy between models, and of whether a shared calibration can be believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.accuracy import influence
from jaxeval.accuracy.accuracy_tables import AccuracyTables, where_defined
from jaxeval.accuracy.belief import believed_of_pair
from jaxeval.accuracy.estimates import (
    BY_RATES,
    ESTIMATORS,
    Slice,
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
from jaxeval.accuracy.statuses import BOUNDED, UNBOUNDED, Status
from jaxeval.execution.elementwise import evaluate
from jaxeval.kernels import judge_error
from jaxeval.kernels.judge_error import LabelledSums, Rates
from jaxeval.statistics.quantiles import bounds_with_failures, normal_quantile

Float = NDArray[np.float64]
Int = NDArray[np.intp]
Words = NDArray[np.object_]
Columns = Mapping[str, NDArray[Any]]
Pair = tuple[Any, Any]

_SHARED = "rogan_gladen_shared"
_PAIRS_AT_A_TIME = 64  # whose resamples are in memory together


@dataclass(frozen=True, eq=False)
class DifferenceTables:
    """Differences between the two models of each of the ``pairs``, and how alike the judges' rates on them are."""

    table: pd.DataFrame
    stability: pd.DataFrame
    accuracy: AccuracyTables
    pairs: list[Pair] = field(repr=False)

    def by_pair(self) -> list[pd.DataFrame]:
        """The rows of ``table`` of each slice, judge and pair."""
        keys = [c for c in ("slice", "judge", "model_a", "model_b") if c in self.table]
        return [rows for _, rows in self.table.groupby(keys, sort=False)]


class _Own(NamedTuple):
    """Accuracies of all models, each with its own calibration; by estimator, where there are several."""

    estimate: Mapping[str, Float]  # (M, J)
    draws: Mapping[str, Float]  # (B, M, J)
    covariance: Mapping[str, Float]  # (J, M, M)
    excess: Mapping[str, Float]  # (M, J) by how much variances grow as items are few
    shift: Mapping[str, Float]  # (M, J) from the estimate to the centre of its interval
    status: Mapping[str, Words]  # (M, J)
    quantile: Float  # (M, J)
    rates: Rates  # (M, J)
    rate_draws: Rates  # (B, M, J)
    j_covariance: Float  # (J, M, M)


class _Shared(NamedTuple):
    """Rogan-Gladen of all models with one calibration."""

    labelled: LabelledSums  # (T, 1, J)
    estimate: Float  # (M, J)
    draws: Float  # (B, M, J)
    items: influence.Contributions
    status: Words  # (M, J)
    distinct: Float | None  # (2, J) labels wrong and right, where some are of one answer of several models
    name: str


def difference_tables(
    part: Slice, accuracy: AccuracyTables, believe: Words, pairs: Sequence[Pair], labels_of_b: bool
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`ModelComparison.table` and ``stability`` of one slice.

    Args:
        part: the slice.
        accuracy: accuracies of all slices.
        believe: (M, J) names of the estimates to believe in the slice.
        pairs: models A and B.
        labels_of_b: the shared calibration is that of B where B has labels; else the one of ``accuracy``.
    """
    own = _own(part, accuracy)
    numbers = np.array([[part.test.models.get_loc(model) for model in pair] for pair in pairs])
    has_labels = (part.judged.total.own.n > 0).all((0, 2))
    only = [int(b) if labels_of_b and has_labels[b] else None for _, b in numbers]
    of_model = {which: _shared(part, accuracy, which) for which in dict.fromkeys(only)}
    rows, checks = [], []
    for start in range(0, len(pairs), _PAIRS_AT_A_TIME):
        some = slice(start, start + _PAIRS_AT_A_TIME)
        shared = [of_model[which] for which in only[some]]
        a, b = numbers[some].T
        rows.append(_differences(a, b, part, own, shared, believe, accuracy.settings.level))
        checks.append(_stability(a, b, own, shared, accuracy))
    return _labelled(pairs, part, rows), _labelled(pairs, part, checks)


def _labelled(pairs: Sequence[Pair], part: Slice, blocks: Sequence[Columns]) -> pd.DataFrame:
    """A row per pair, judge (and estimator) of the columns (P, J) or (P, J, E) of blocks of pairs."""
    columns = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
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


def _own(part: Slice, accuracy: AccuracyTables) -> _Own:
    binary, judged = accuracy.binary, part.judged
    estimate = estimates(judged.total, part.every.total, binary)
    draws = estimate_draws(part, binary)
    # Random halves leave no one estimate: the median of the resamples stands for it.
    estimate["ppi_plus_plus_half"] = np.median(draws["ppi_plus_plus_half"], 0)
    return _Own(
        estimate=estimate,
        draws=draws,
        covariance={name: items.covariance() for name, items in contributions(part, binary).items()},
        excess=excess_variances(part, binary),
        shift=centre_shifts(part, binary),
        status={name: status_of(name, part, x, binary) for name, x in estimate.items()},
        quantile=critical_values(part, binary, accuracy.settings.level),
        rates=rates_of(judged.total.own),
        rate_draws=rates_of(judged.draws.own),
        j_covariance=influence.youden_j(judged.data, judged.total).covariance(),
    )


def _shared(part: Slice, accuracy: AccuracyTables, only: int | None) -> _Shared:
    """With the calibration of model number ``only``, or the one that models share."""
    data, total, drawn, _ = part.judged
    labelled, draws, name = total.shared, drawn.shared, accuracy.settings.shared
    if only is not None:
        labelled, draws = (LabelledSums(*(x[..., only : only + 1, :] for x in s.own)) for s in (total, drawn))
        name = str(part.test.models[only])
    each = evaluate(judge_error.with_rates_of, labelled, total.test, accuracy.binary)
    estimate = shared_estimates(labelled, total.test, accuracy.binary)
    return _Shared(
        labelled=labelled,
        estimate=estimate,
        draws=np.clip(shared_estimates(draws, drawn.test, accuracy.binary), 0, 1),
        items=influence.shared_rogan_gladen(data, total, labelled, only, each),
        status=status_of(_SHARED, part, estimate, accuracy.binary, labelled),
        distinct=data.shared_labels if only is None else None,
        name=name,
    )


class _Pairs(NamedTuple):
    """What one estimator says of P pairs of models."""

    estimates: tuple[Float, Float]  # (P, J) of A and of B
    drawn: Float  # (B, P, J) differences of the resamples
    variance: Float  # (P, J)
    status: Words  # (P, J)
    labels: Float  # (P, J) of both models


def _with_shared(a: Int, b: Int, part: Slice, shared: Sequence[_Shared]) -> _Pairs:
    """Rogan-Gladen, each pair with the calibration that its models share."""

    def of(x: Int) -> tuple[Float, Words]:
        each = [(s.estimate[k], s.status[k]) for s, k in zip(shared, x, strict=True)]
        return np.stack([estimate for estimate, _ in each]), np.stack([status for _, status in each])

    shape = part.test.judged.shape[1:]
    (one, status_a), (other, status_b) = of(a), of(b)
    together = list(zip(shared, a, b, strict=True))
    return _Pairs(
        estimates=(one, other),
        drawn=np.stack([s.draws[:, i] - s.draws[:, k] for s, i, k in together], axis=1),
        variance=np.stack([s.items.difference_variance(i, k) for s, i, k in together]),
        status=_worse(status_a, status_b),
        labels=np.stack([np.add(*label_counts(_SHARED, s.labelled, s.distinct, shape))[0] for s in shared]),
    )


def _with_own(name: str, a: Int, b: Int, part: Slice, own: _Own) -> _Pairs:
    """An estimator with every model's own calibration."""
    estimate, drawn, status = own.estimate[name], own.draws[name], own.status[name]
    labels = np.add(*label_counts(name, *part.labels(name), part.test.judged.shape[1:]))
    variance = np.full(status[a].shape, np.nan)
    if name in own.covariance:
        c, excess = own.covariance[name], own.excess[name]
        together = c[:, a, b].T
        variance = np.maximum((c[:, a, a] + c[:, b, b]).T - 2 * together, 0.0)
        # What is added for few items goes together as the items' contributions do.
        with np.errstate(invalid="ignore", divide="ignore"):
            rho = np.nan_to_num(together / np.sqrt(c[:, a, a] * c[:, b, b]).T).clip(0, 1)
            variance += excess[a] + excess[b] - 2 * rho * np.sqrt(excess[a] * excess[b])
    return _Pairs(
        estimates=(estimate[a], estimate[b]),
        drawn=drawn[:, a] - drawn[:, b],
        variance=variance,
        status=_worse(status[a], status[b]),
        labels=labels[a] + labels[b],
    )


def _differences(
    a: Int, b: Int, part: Slice, own: _Own, shared: Sequence[_Shared], believe: Words, level: float
) -> Columns:
    """Columns (P, J, E) of pairs of models ``a`` and ``b`` (P,); ``believe`` (M, J) estimates of their accuracies."""
    truth, _ = truth_of(part.test)
    quantile = np.maximum(own.quantile[a], own.quantile[b])
    corrected = own.status["rogan_gladen"] == Status.OK
    believe = believed_of_pair(believe[a], believe[b], corrected[a] & corrected[b])
    blocks: list[Columns] = []
    for name in ESTIMATORS:
        found = _with_shared(a, b, part, shared) if name == _SHARED else _with_own(name, a, b, part, own)
        one, other = (np.clip(x, 0, 1) if name in BY_RATES else x for x in found.estimates)
        median, boot_lower, boot_upper, failed = bounds_with_failures(found.drawn, level, -1.0, 1.0)
        difference = median if name == "ppi_plus_plus_half" else one - other
        shift = own.shift.get(name)
        centre = difference if shift is None or name in BY_RATES else difference + shift[a] - shift[b]
        with np.errstate(invalid="ignore"):
            half = quantile * np.sqrt(found.variance)
        ends, drawn = (centre - half, centre + half), (median, boot_lower, boot_upper)
        shown = where_defined(found.status, difference, ends, drawn)
        bounded = {key: np.where(np.isinf(x), np.sign(x), x) for key, x in shown.items()}
        bounded |= {key: np.clip(bounded[key], -1, 1) for key in ("lower", "upper")}
        blocks.append(
            {
                "estimator": np.full(found.status.shape, name, object),
                "difference": bounded.pop("estimate"),
                **bounded,
                "failed_share": failed,
                "status": found.status,
                "believe": believe == name,
                "labels": found.labels,
                "truth": truth[a] - truth[b],
            }
        )
    return {key: np.stack([block[key] for block in blocks], -1) for key in blocks[0]}


def _worse(one: Words, other: Words) -> Words:
    """The status that has no number, else no bounds, else no resamples, else the one that is not "ok"."""

    def rank(x: Words) -> NDArray[np.int64]:
        order = [x == Status.OK, np.isin(x, BOUNDED), x == Status.ONE_CLASS, np.isin(x, UNBOUNDED)]
        return np.select(order, [0, 1, 2, 3], 4)

    return np.where(rank(one) >= rank(other), one, other)


def _stability(a: Int, b: Int, own: _Own, shared: Sequence[_Shared], accuracy: AccuracyTables) -> Columns:
    """Columns (P, J): how the judges' rates differ between the models, and the bias of a shared calibration."""
    point, draws, level = own.rates, own.rate_draws, accuracy.settings.level
    with np.errstate(invalid="ignore", divide="ignore"):
        centres, variance = (np.asarray(x) for x in judge_error.youden_j(point))
        # Judgments of both models on an item go together.
        together = np.stack([own.j_covariance[:, i, k] for i, k in zip(a, b, strict=True)])
        error = np.sqrt(np.maximum(variance[a] + variance[b] - 2 * together, 0.0))
    centre, half = centres[a] - centres[b], normal_quantile(level) * error
    columns: dict[str, NDArray[Any]] = {
        "delta_j": (point.q0 + point.q1)[a] - (point.q0 + point.q1)[b],
        "delta_j_lower": np.maximum(centre - half, -2),
        "delta_j_upper": np.minimum(centre + half, 2),
    }
    for name, drawn, value, most in (
        ("delta_j_boot", draws.q0 + draws.q1, None, 2.0),
        ("delta_q0", draws.q0, point.q0, 1.0),
        ("delta_q1", draws.q1, point.q1, 1.0),
    ):
        _, lower, upper, _ = bounds_with_failures(drawn[:, a] - drawn[:, b], level, -most, most)
        columns |= {} if value is None else {name: value[a] - value[b]}
        columns |= {f"{name}_lower": lower, f"{name}_upper": upper}
    theta = np.clip(own.estimate["rogan_gladen"], 0, 1)
    used = Rates(*(np.concatenate(x) for x in zip(*(rates_of(s.labelled) for s in shared), strict=True)))
    with np.errstate(invalid="ignore", divide="ignore"):
        bias_a, bias_b = (
            np.asarray(judge_error.shared_calibration_bias(theta[x], Rates(*(y[x] for y in point)), used))
            for x in (a, b)
        )
    columns["shared_bias"] = bias_a - bias_b
    columns = {name: np.where(accuracy.binary, x, np.nan) for name, x in columns.items()}
    names = np.array([s.name for s in shared], object)
    columns["shared_labels"] = np.broadcast_to(names[:, None], columns["delta_j"].shape)
    return columns
