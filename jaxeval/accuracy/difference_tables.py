"""Tables of differences in accuracy between models, and of whether a shared calibration can be believed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
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
    rates_of,
    shared_estimates,
    status_of,
)
from jaxeval.accuracy.influence import Contributions
from jaxeval.accuracy.statuses import BOUNDED, UNBOUNDED, Status
from jaxeval.execution.elementwise import evaluate
from jaxeval.kernels import judge_error
from jaxeval.kernels.judge_error import LabelledSums, Rates
from jaxeval.statistics.quantiles import bounds_with_failures, normal_quantile

Float = NDArray[np.float64]
Bool = NDArray[np.bool_]
Words = NDArray[np.object_]
Columns = Mapping[str, NDArray[Any]]
Pair = tuple[Hashable, Hashable]

_SHARED = "rogan_gladen_shared"


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


class _Estimates(NamedTuple):
    """Accuracies of all models by one estimator."""

    name: str
    estimate: Float  # (M, J)
    draws: Float  # (B, M, J)
    status: Words  # (M, J)
    labels: Float  # (M, J) that the estimate uses
    items: Contributions | None  # None without a closed form
    excess: Float  # (M, J) by how much the variance grows as items are few
    shift: Float  # (M, J) from the estimate to the centre of its interval


class _Rates(NamedTuple):
    """Rates of the judges on all models, and of their resamples."""

    point: Rates  # (M, J)
    draws: Rates  # (B, M, J)
    items: Contributions  # to J


class _Shared(NamedTuple):
    """Rogan-Gladen with one calibration for all models."""

    estimates: _Estimates
    rates: Rates  # (1, J)
    labels_of: str


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
    level, binary, judged = accuracy.settings.level, accuracy.binary, part.judged
    own, quantile = _own(part, binary), critical_values(part, binary, level)
    corrected, (truth, _) = own["rogan_gladen"].status == Status.OK, part.truth()
    items = influence.youden_j(judged.data, judged.total)
    rates = _Rates(rates_of(judged.total.own), rates_of(judged.draws.own), items)
    has_labels = (judged.total.own.n > 0).all((0, 2))
    shared = cache(partial(_shared, part, accuracy))
    differences, stabilities = [], []
    for pair in pairs:
        a, b = (part.test.models.get_loc(model) for model in pair)
        with_one = shared(b if labels_of_b and has_labels[b] else None)
        z = np.maximum(quantile[a], quantile[b])
        estimators = own | {_SHARED: with_one.estimates}
        marked = believed_of_pair(believe[a], believe[b], corrected[a] & corrected[b])
        rows = [_difference(estimators[name], a, b, z, level, marked) for name in ESTIMATORS]
        columns = {key: np.stack([row[key] for row in rows], -1) for key in rows[0]}
        columns["truth"] = np.broadcast_to((truth[a] - truth[b])[:, None], columns["labels"].shape)
        differences.append(columns)
        checked = _stability(a, b, rates, np.clip(own["rogan_gladen"].estimate, 0, 1), with_one, level)
        stabilities.append(
            {key: x if key == "shared_labels" else np.where(binary, x, np.nan) for key, x in checked.items()}
        )
    return _labelled(pairs, part, differences), _labelled(pairs, part, stabilities)


def _labelled(pairs: Sequence[Pair], part: Slice, columns: Sequence[Columns]) -> pd.DataFrame:
    """A row per pair, judge (and estimator) of the columns (J,) or (J, E) of each pair."""
    j = len(part.test.judges)
    n = next(iter(columns[0].values())).size // j
    first, second = (np.array([pair[k] for pair in pairs], dtype=object) for k in (0, 1))
    return pd.DataFrame(
        {
            "judge": np.tile(np.repeat(part.test.judges.to_numpy(), n), len(pairs)),
            "model_a": np.repeat(first, j * n),
            "model_b": np.repeat(second, j * n),
            **{name: np.concatenate([own[name].reshape(-1) for own in columns]) for name in columns[0]},
        }
    ).infer_objects()


def _own(part: Slice, binary: Bool) -> dict[str, _Estimates]:
    """Accuracies by estimator, every model with its own calibration."""
    estimate = estimates(part.judged.total, part.every.total, binary)
    draws = estimate_draws(part, binary)
    # Random halves leave no one estimate: the median of the resamples stands for it.
    estimate["ppi_plus_plus_half"] = np.median(draws["ppi_plus_plus_half"], 0)
    items, excess, shift = contributions(part, binary), excess_variances(part, binary), centre_shifts(part, binary)
    return {
        name: _Estimates(
            name=name,
            estimate=x,
            draws=draws[name],
            status=status_of(name, part, x, binary),
            labels=np.add(*part.label_counts(name, *part.labels(name))),
            items=items.get(name),
            excess=excess.get(name, np.zeros(x.shape)),
            shift=shift[name],
        )
        for name, x in estimate.items()
        if name != _SHARED
    }


def _shared(part: Slice, accuracy: AccuracyTables, only: int | None) -> _Shared:
    """With the calibration of model number ``only``, or the one that models share."""
    data, total, drawn, _ = part.judged
    labelled, draws, name, binary = total.shared, drawn.shared, accuracy.settings.shared, accuracy.binary
    if only is not None:
        labelled, draws = (LabelledSums(*(x[..., only : only + 1, :] for x in s.own)) for s in (total, drawn))
        name = str(part.test.models[only])
    each = evaluate(judge_error.with_rates_of, labelled, total.test, binary)
    estimate = shared_estimates(labelled, total.test, binary)
    distinct = data.shared_labels if only is None else None
    found = _Estimates(
        name=_SHARED,
        estimate=estimate,
        draws=np.clip(shared_estimates(draws, drawn.test, binary), 0, 1),
        status=status_of(_SHARED, part, estimate, binary, labelled),
        labels=np.add(*part.label_counts(_SHARED, labelled, distinct)),
        items=influence.shared_rogan_gladen(data, total, labelled, only, each),
        excess=np.zeros(estimate.shape),
        shift=np.zeros(estimate.shape),
    )
    return _Shared(found, rates_of(labelled), name)


def _difference(found: _Estimates, a: int, b: int, quantile: Float, level: float, believe: Words) -> Columns:
    """Columns (J,) of the difference between models ``a`` and ``b`` by one estimator; ``believe`` names the best."""
    median, boot_lower, boot_upper, failed = bounds_with_failures(
        found.draws[:, a] - found.draws[:, b], level, -1.0, 1.0
    )
    estimate = np.clip(found.estimate, 0, 1) if found.name in BY_RATES else found.estimate
    difference = median if found.name == "ppi_plus_plus_half" else estimate[a] - estimate[b]
    status = _worse(found.status[a], found.status[b])
    centre, half = difference + found.shift[a] - found.shift[b], np.full(difference.shape, np.nan)
    if found.items is not None:
        # What is added for few items goes together as the items' contributions do.
        spread, excess = found.items.variance(), found.excess
        with np.errstate(invalid="ignore", divide="ignore"):
            rho = np.nan_to_num(found.items.covariance(a, b) / np.sqrt(spread[a] * spread[b])).clip(0, 1)
            added = excess[a] + excess[b] - 2 * rho * np.sqrt(excess[a] * excess[b])
            half = quantile * np.sqrt(found.items.difference_variance(a, b) + added)
    shown = where_defined(status, difference, (centre - half, centre + half), (median, boot_lower, boot_upper))
    shown = {key: np.where(np.isinf(x), np.sign(x), x) for key, x in shown.items()}
    return {
        "estimator": np.full(status.shape, found.name, object),
        "difference": shown.pop("estimate"),
        "lower": np.clip(shown.pop("lower"), -1, 1),
        "upper": np.clip(shown.pop("upper"), -1, 1),
        **shown,
        "failed_share": failed,
        "status": status,
        "believe": believe == found.name,
        # Labels that both models share count once.
        "labels": found.labels[a] if found.name == _SHARED else found.labels[a] + found.labels[b],
    }


def _worse(one: Words, other: Words) -> Words:
    """The status that has no number, else no bounds, else no resamples, else the one that is not "ok"."""

    def rank(x: Words) -> NDArray[np.int64]:
        order = [x == Status.OK, np.isin(x, BOUNDED), x == Status.ONE_CLASS, np.isin(x, UNBOUNDED)]
        return np.select(order, [0, 1, 2, 3], 4)

    return np.where(rank(one) >= rank(other), one, other)


def _stability(a: int, b: int, rates: _Rates, theta: Float, shared: _Shared, level: float) -> Columns:
    """Columns (J,): how the judges' rates differ between the models, and the bias of a shared calibration."""
    point, draws, _ = rates
    with np.errstate(invalid="ignore", divide="ignore"):
        centres, variance = (np.asarray(x) for x in judge_error.youden_j(point))
        # Judgments of both models on an item go together.
        together = variance[a] + variance[b] - 2 * rates.items.covariance(a, b)
        bias_a, bias_b = (
            np.asarray(judge_error.shared_calibration_bias(theta[x], Rates(*(y[x] for y in point)), shared.rates))[0]
            for x in (a, b)
        )
    centre, half = centres[a] - centres[b], normal_quantile(level) * np.sqrt(np.maximum(together, 0.0))
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
    columns["shared_bias"] = bias_a - bias_b
    columns["shared_labels"] = np.full(centre.shape, shared.labels_of, object)
    return columns
