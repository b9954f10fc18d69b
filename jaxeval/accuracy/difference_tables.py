"""Tables of differences in accuracy between models, and of whether a shared calibration can be believed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxeval.accuracy import influence
from jaxeval.accuracy.accuracy_tables import AccuracyTables, where_defined
from jaxeval.accuracy.belief import believed_of_pair, tolerance, tolerance_of
from jaxeval.accuracy.estimates import (
    BY_RATES,
    ESTIMATORS,
    Estimated,
    Slice,
    Words,
    degrees,
    estimated,
    rates_of,
    sensitivity_to_rates,
    shared_estimates,
    status_of,
)
from jaxeval.accuracy.judged_sums import DrawnItems
from jaxeval.accuracy.statuses import BOUNDED, UNBOUNDED, EstimateStatus
from jaxeval.arrays import Float
from jaxeval.execution.host import evaluate
from jaxeval.kernels import judge_error
from jaxeval.kernels.judge_error import LabelledSums, Rates
from jaxeval.lazy_names import pd
from jaxeval.show.cells import with_kinds
from jaxeval.show.shown import Answer, Result
from jaxeval.statistics.quantiles import student_quantile
from jaxeval.wording import counted

Int = NDArray[np.intp]
Columns = Mapping[str, NDArray[Any]]
Pair = tuple[Hashable, Hashable]

_SHARED = "rogan_gladen_shared"
_PAIRS_AT_A_TIME = 64


@dataclass(frozen=True, eq=False, repr=False)
class DifferenceTables(Result):
    """Differences between the two models of each of the ``pairs``, and how alike the judges' rates on them are."""

    table: pd.DataFrame
    stability: pd.DataFrame
    accuracy: AccuracyTables
    pairs: list[Pair] = field(repr=False)

    def _shown(self) -> Answer:
        title = f"{type(self).__name__}: {counted(len(self.pairs), 'pair')} of models; the differences to believe"
        believed = self.table[self.table["believe"]].drop(columns=["believe"]).reset_index(drop=True)
        return Answer(title, believed, self.accuracy.settings, self.accuracy.warnings)

    def by_pair(self) -> list[pd.DataFrame]:
        """Return the rows of ``table`` of each slice, judge and pair."""
        keys = [c for c in ("slice", "judge", "model_a", "model_b") if c in self.table]
        return [rows for _, rows in self.table.groupby(keys, sort=False)]


#: Rogan-Gladen with one calibration for all models: accuracies, rates (1, J), and whose labels.
_Shared = tuple[Estimated, Rates, str]


def difference_tables(
    part: Slice, accuracy: AccuracyTables, believe: Words, pairs: Sequence[Pair], labels_of_b: bool
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return `ModelComparison.table` and ``stability`` of one slice, where the estimates ``believe`` (M, J) are marked.

    With ``labels_of_b`` the shared calibration is that of B where B has labels; else the one of ``accuracy``.
    """
    level, judged = accuracy.settings.level, part.judged
    a, b = np.array([[part.test.models.get_loc(model) for model in pair] for pair in pairs]).T
    of_own = estimated(part, accuracy.binary)
    has_labels = (judged.total.own.n > 0).all((0, 2))
    only = [int(k) if labels_of_b and has_labels[k] else None for k in b]
    shared = {which: _shared(part, accuracy, which) for which in dict.fromkeys(only)}
    with_one = [(x, np.flatnonzero([k == which for k in only])) for which, (x, *_) in shared.items()]
    corrected = np.isin(of_own["rogan_gladen"].status, (EstimateStatus.OK, EstimateStatus.CLIPPED))
    truth, _ = part.truth()
    marked = believed_of_pair(believe[a], believe[b], corrected[a] & corrected[b])
    frames = []
    for name in ESTIMATORS:
        groups = with_one if name == _SHARED else [(of_own[name], np.arange(len(pairs)))]
        blocks = [
            _differences(estimates, judged.data.units, a[some], b[some], level)
            for estimates, which in groups
            for some in _blocks(which)
        ]
        order = np.argsort(np.concatenate([which for _, which in groups]))
        columns = {key: np.concatenate([block[key] for block in blocks])[order] for key in blocks[0]}
        columns |= {"believe": marked == name, "labels": columns.pop("labels")}
        columns |= {key: columns.pop(key) for key in ("tolerance", "tolerance_of")} | {"truth": truth[a] - truth[b]}
        frames.append(columns)
    differences = {key: np.stack([columns[key] for columns in frames], -1) for key in frames[0]}
    checks = _stability(a, b, part, of_own["rogan_gladen"].estimate, [shared[which] for which in only], level)
    stability = {key: np.where(accuracy.binary, x, np.nan) for key, x in checks.items()}
    names = np.array([[shared[which][2]] for which in only], object)
    stability["shared_labels"] = np.broadcast_to(names, stability["delta_j"].shape)
    table = with_kinds(_labelled(pairs, part, differences), ends_of="difference")
    return table, _labelled(pairs, part, stability)


def _blocks(which: Int) -> list[Int]:
    """Return pairs whose resamples are in memory together."""
    return np.split(which, np.arange(_PAIRS_AT_A_TIME, len(which), _PAIRS_AT_A_TIME))


def _labelled(pairs: Sequence[Pair], part: Slice, columns: Columns) -> pd.DataFrame:
    """Return a row per pair, judge (and estimator) of ``columns`` (P, J) or (P, J, E)."""
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


def _shared(part: Slice, accuracy: AccuracyTables, only: int | None) -> _Shared:
    """Estimate with the calibration of model number ``only``, or with the one that models share."""
    data, total, drawn, _ = part.judged
    labelled, draws, name, binary = total.shared, drawn.shared, accuracy.settings.shared, accuracy.binary
    if only is not None:
        labelled, draws = (LabelledSums(*(x[..., only : only + 1, :] for x in s.own)) for s in (total, drawn))
        name = str(part.test.models[only])
    each = evaluate(judge_error.with_rates_of, labelled, total.test, binary)
    estimate = shared_estimates(labelled, total.test, binary)
    distinct = data.shared_labels if only is None else None
    items = influence.shared_rogan_gladen(data, total, labelled, only, each)
    of_shared = Estimated(
        name=_SHARED,
        estimate=estimate,
        draws=np.clip(shared_estimates(draws, drawn.test, binary), 0, 1),
        status=status_of(_SHARED, part, estimate, binary, labelled),
        labels=part.label_counts(_SHARED, labelled, distinct),
        items=items,
        like=items,
        excess=np.zeros(estimate.shape),
        shift=np.zeros(estimate.shape),
        moves=np.broadcast_to(sensitivity_to_rates(labelled, total), estimate.shape),
        degrees=degrees(part, binary, items),
    )
    return of_shared, rates_of(labelled), name


def _differences(by_model: Estimated, units: DrawnItems | None, a: Int, b: Int, level: float) -> Columns:
    """Return columns (P, J) of the differences between models ``a`` and ``b`` (P,) by one estimator."""
    freedom, draws = influence.freedom(by_model.like, units), by_model.draws
    freedom = np.minimum(freedom[a], freedom[b])
    *drawn, failed = influence.bounds_of_draws(draws[:, a] - draws[:, b], freedom, level, -1.0, 1.0)
    estimate = np.clip(by_model.estimate, 0, 1) if by_model.name in BY_RATES else by_model.estimate
    difference = drawn[0] if by_model.name == "ppi_plus_plus_half" else estimate[a] - estimate[b]
    status = _worse(by_model.status[a], by_model.status[b])
    centre, half = difference + by_model.shift[a] - by_model.shift[b], np.full(difference.shape, np.nan)
    if by_model.items is not None:
        # What is added for few items goes together as the items' contributions do.
        items, excess, variance = by_model.items, by_model.excess, by_model.items.variance()
        with np.errstate(invalid="ignore", divide="ignore"):
            rho = np.nan_to_num(items.covariance(a, b) / np.sqrt(variance[a] * variance[b])).clip(0, 1)
            added = excess[a] + excess[b] - 2 * rho * np.sqrt(excess[a] * excess[b])
            alone = items.difference_variance(a, b)
            grouped = influence.together(items, units).difference_variance(a, b)
            quantile = student_quantile(level, np.minimum(by_model.degrees[a], by_model.degrees[b]))
            half = quantile * np.sqrt((alone + added) * influence.effect(alone, grouped, units))
    shown = where_defined(status, difference, (centre - half, centre + half), drawn)
    labels = np.add(*by_model.labels)
    # Until the nearer end reaches 0, if the calibrations of the two differ in opposite directions.
    nearer = np.minimum(np.abs(shown["lower"]), np.abs(shown["upper"]))
    moves = np.abs(by_model.moves[a]) + np.abs(by_model.moves[b])
    shown = {key: np.where(np.isinf(x), np.sign(x), x) for key, x in shown.items()}
    return {
        "estimator": np.full(status.shape, by_model.name, object),
        "difference": shown.pop("estimate"),
        "lower": np.clip(shown.pop("lower"), -1, 1),
        "upper": np.clip(shown.pop("upper"), -1, 1),
        **shown,
        "failed_share": failed,
        "status": status,
        "tolerance": tolerance(nearer, moves),
        "tolerance_of": np.full(status.shape, tolerance_of(by_model.name), object),
        # Labels that both models share count once.
        "labels": labels[a] if by_model.name == _SHARED else labels[a] + labels[b],
    }


def _worse(one: Words, other: Words) -> Words:
    """Return the worse of two statuses: no number, then no bounds, then no resamples, then any but "ok"."""

    def rank(x: Words) -> NDArray[np.int64]:
        order = [x == EstimateStatus.OK, np.isin(x, BOUNDED), x == EstimateStatus.ONE_CLASS, np.isin(x, UNBOUNDED)]
        return np.select(order, [0, 1, 2, 3], 4)

    return np.where(rank(one) >= rank(other), one, other)


def _stability(a: Int, b: Int, part: Slice, theta: Float, shared: Sequence[_Shared], level: float) -> Columns:
    """Return columns (P, J): how the judges' rates differ between the models, and the bias of a shared calibration."""
    judged = part.judged
    point, draws = rates_of(judged.total.own), rates_of(judged.draws.own)
    used = Rates(*(np.concatenate(x) for x in zip(*(rates for _, rates, _ in shared), strict=True)))
    with np.errstate(invalid="ignore", divide="ignore"):
        centres, variance = (np.asarray(x) for x in judge_error.youden_j(point))
        # Judgments of both models on an item go together.
        items, units = influence.youden_j(judged.data, judged.total), judged.data.units
        alone, grouped = (x.difference_variance(a, b) for x in (items, influence.together(items, units)))
        spread = np.maximum(variance[a] + variance[b] - 2 * items.covariance(a, b), 0.0)
        spread = spread * np.maximum(influence.effect(alone, grouped, units), 1.0)
        bias_a, bias_b = (
            judge_error.shared_calibration_bias(np.clip(theta[x], 0, 1), Rates(*(y[x] for y in point)), used)
            for x in (a, b)
        )
    freedom = influence.freedom(items, units)
    freedom = np.minimum(freedom[a], freedom[b])
    centre, half = centres[a] - centres[b], student_quantile(level, freedom) * np.sqrt(spread)
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
        bounds = [
            influence.bounds_of_draws(drawn[:, a[some]] - drawn[:, b[some]], freedom[some], level, -most, most)
            for some in _blocks(np.arange(len(a)))
        ]
        _, lower, upper, _ = (np.concatenate(ends) for ends in zip(*bounds, strict=True))
        columns |= {} if value is None else {name: value[a] - value[b]}
        columns |= {f"{name}_lower": lower, f"{name}_upper": upper}
    columns["shared_bias"] = bias_a - bias_b
    return columns
