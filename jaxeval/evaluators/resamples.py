"""Resample models, items or both, and tabulate measures of evaluators with their intervals and warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from jaxeval.arrays import Bool, Float, Int, as_leaf
from jaxeval.checks import check_room, checked_numbers, checked_resamples
from jaxeval.data.item_scores import step_of_means
from jaxeval.errors import DataError
from jaxeval.evaluators.model_scores import OK, Gold, ModelScores, Scores, align_scores, of_evaluators
from jaxeval.execution.lanes import LaneRun, Lanes, Task, device_mesh
from jaxeval.execution.precision import double_precision
from jaxeval.execution.runs import Identity, RunOptions, digest_of, of_run, open_run
from jaxeval.execution.shapes import DRAWS, EVALUATORS, Step, padded, padded_rows, power_of_two
from jaxeval.kernels import rank_agreement
from jaxeval.kernels.batch.items import ItemTotals, delta_sums, evaluator_resamples
from jaxeval.kernels.batch.weighted import row_counts
from jaxeval.lazy_names import jax
from jaxeval.options.field import again, option
from jaxeval.options.resampling import DrawnTogether, DrawOptions
from jaxeval.resampling.rows import form_of, lanes_task, slots_one_by_one, stacked_rows
from jaxeval.resampling.units import checked_strata, pad, small_strata_text, stratum_of_groups, stream_number
from jaxeval.show.table import Table
from jaxeval.statistics.comparison import draw_bounds
from jaxeval.statistics.quantiles import centred, checked_level
from jaxeval.wording import counted, named, visible_line

Counts = NDArray[np.uint8]
Resample: TypeAlias = Literal["models", "items", "both"]

_BYTES_PER_NUMBER = 10  # that a lane works on, at most
_ROUNDING = 1e-9  # differences of decimal numbers are exact to about this share of them
_EXACT = 2**24  # whole numbers under this have no rounding in single precision
_COLUMNS = 2**24  # directions of pairs held at a time
_PAIRS = 256  # of a block: so few that their weights stay in the cache, so many that little of a block is padding


class EvaluatorResamples(DrawOptions):
    """What a measure draws, and how its resamples run."""

    resample: Resample = option("models", "What is drawn: models, items, or both; scores by item have items.", flag="")
    strata: str | None = again(DrawnTogether, "strata")
    run: RunOptions = field(default_factory=RunOptions)

    def check(self, scores: ModelScores) -> None:
        """Raise ValueError or TypeError for a setting out of range, DataError where there are no items to draw."""
        checked_level(self.level)
        checked_resamples(self.n_resamples)
        replace(self, n_resamples=2).checked_values()
        if self.resample != "models" and scores.items is None:
            raise DataError(
                f"resample={self.resample!r} needs scores by item: pass ItemScores.from_pandas(table) as scores"
            )
        if self.resample == "models" and self.strata is not None:
            raise ValueError(
                "strata= names strata of items, and resample='models' draws no items: set resample='items' or 'both', "
                "or leave out strata="
            )
        self.item_strata(scores)

    def item_strata(self, scores: ModelScores) -> Int | None:
        """Return (I,) the stratum of each item; None without strata, and where there is only one.

        An item in several strata, and a column that was not kept, are a DataError.
        """
        if self.strata is None or scores.by_item is None:
            return None
        column, items = scores.by_item.column(self.strata), scores.by_item.items
        return checked_strata(stratum_of_groups(column.number, column.item, items, self.strata, "item"))


def opened(scores: Scores, gold: Gold, options: Mapping[str, Any]) -> tuple[ModelScores, EvaluatorResamples]:
    """Return the scores aligned with gold, and the settings of a measure, both checked."""
    settings, aligned = EvaluatorResamples.of({**options, "run": of_run(options)}), align_scores(scores, gold)
    settings.check(aligned)
    return aligned, settings


def resampled(
    measure: Callable[..., Any],
    scores: ModelScores,
    arguments: tuple[Any, ...],
    settings: EvaluatorResamples,
    size: int,
) -> Any:
    """Return what ``measure``, of `kernels.rank_agreement`, gives of data, then of resamples, on a leading axis 1 + B.

    It is a kernel of scores (E, M), gold (M,), counts (M,) and ``arguments``, of results (E, ...). The arguments are
    the same in every resample; those by evaluator or model are `in_slots`. A lane holds ``size`` numbers at a time.
    """
    data: Any = in_slots(scores.scores, settings, of_models=True)
    m = padded(len(scores.gold), Step.MODELS)
    if settings.resample != "models" and scores.items is not None:
        data = _item_totals(pad(scores.items, (*scores.items.shape[:2], m), np.nan))
    gold = pad(scores.gold, (m,), np.nan)
    program = partial(evaluator_resamples, measure, data, gold, arguments)
    section = f"{measure.__name__}-{digest_of((arguments, scores.scores, scores.items, settings.item_strata(scores)))}"
    results = run_lanes(program, drawn_counts(scores, settings), size, scores.gold, settings, section)
    return jax.tree.map(lambda x: x[:, : len(scores.scores)], results)


def checked_deltas(deltas: Sequence[float] | ArrayLike, finite: bool = False) -> Float:
    """Return the gaps (D,) of scores, or a ValueError if they are not one or more numbers above 0, all ``finite``."""
    gaps = checked_numbers("deltas", deltas)
    if gaps.ndim != 1 or gaps.size == 0 or not ((gaps > 0) & (np.isfinite(gaps) | (not finite))).all():
        got, numbers = named(gaps.reshape(-1).tolist()) or "none", "finite numbers" if finite else "numbers"
        raise ValueError(f"deltas must be {numbers} above 0, one or more in a list, in points; got {got}")
    return gaps


def in_slots(x: Float, settings: EvaluatorResamples, of_models: bool = False) -> Float:
    """Return ``x`` (E, ...) or (E, M) padded with NaN to the slots of evaluators and, if ``of_models``, of models."""
    # Scores by item are averaged anew for every evaluator and resample: an empty slot would cost time.
    n = padded(len(x), Step.EVALUATORS) if settings.resample == "models" else len(x)
    further = (padded(x.shape[1], Step.MODELS),) if of_models else x.shape[1:]
    return pad(np.asarray(x, float), (n, *further), np.nan)


def run_lanes(
    program: Callable[..., Any], counts: Any, size: int, gold: Float, settings: EvaluatorResamples, section: str
) -> Any:
    """Return what ``program(counts, mesh, chunks)`` returns for all lanes.

    A lane is a row of ``counts`` (1 + B, Q), and works on ``size`` numbers.
    """
    mesh, n_lanes = device_mesh(), len(jax.tree.leaves(counts)[0])
    with double_precision():
        counts = jax.device_put(jax.tree.map(padded_rows, counts))
    call = partial(program, counts, mesh)
    held = sum(x.nbytes for x in jax.tree.leaves(counts))
    task = Task(call=call, budget=EVALUATORS, entries=size, lane_bytes=_BYTES_PER_NUMBER * size, fixed_bytes=held)

    def identity() -> Identity:
        """Let measures, and the parts of one measure, share a folder; sections tell them apart."""
        drawn = {"resample": settings.resample, "strata": settings.strata, "seed": settings.seed}
        return Identity(drawn, gold, {"n_resamples": settings.n_resamples, "level": settings.level}, section)

    with open_run(identity, n_lanes, "resamples", **settings.run) as run:
        return run.results(task, Lanes.of(1, n_lanes), section)


def drawn_counts(scores: ModelScores, settings: EvaluatorResamples) -> tuple[Counts, ...]:
    """Return (1 + B, Q) counts of each model in the data and resamples; for scores by item, then those of each item."""
    draws: list[tuple[int, str, bool, Int | None]] = [(len(scores.gold), "models", settings.resample != "items", None)]
    if settings.resample != "models" and scores.items is not None:
        draws.append((len(scores.items), "items", True, settings.item_strata(scores)))
    check_room(settings.n_resamples, sum(size for size, *_ in draws))
    times = []
    for n, stream, varies, stratum in draws:
        counts = np.zeros((1 + settings.n_resamples, _width(n)), np.uint8)
        counts[:, :n] = 1
        if varies and settings.n_resamples:
            counts[1:] = _draws(n, stream, settings, stratum)
        times.append(counts)
    return tuple(times)


def _draws(n: int, stream: str, settings: EvaluatorResamples, stratum: Int | None) -> Counts:
    """Return (B, Q) how often each of ``n`` things is drawn: a function of seed, stream and the resample's number."""
    order = np.arange(n) if stratum is None else np.argsort(stratum, kind="stable")
    slots = slots_one_by_one(np.argsort(order), None if stratum is None else stratum)
    task = lanes_task(
        row_counts,
        {"rows": stacked_rows([slots], [stream_number(stream)]), "seed": as_leaf(settings.seed, np.uint64)},
        {"form": form_of(slots)},
        DRAWS,
        entries=slots.size,
        lane_bytes=24 * slots.size,
        result_bytes=settings.n_resamples * slots.size,
    )
    drawn = np.asarray(LaneRun().results(task, Lanes.of(1, settings.n_resamples), stream))
    return drawn[:, np.concatenate([np.argsort(order), np.arange(n, slots.size)])]


def _item_totals(items: Float) -> ItemTotals:
    """Return scores by item (I, E, M) in as many slots as `drawn_counts` has."""
    n = len(items)
    values = items.reshape(n, -1)
    there, fill = ~np.isnan(values), [(0, _width(n) - n), (0, 0)]
    return ItemTotals(
        score=as_leaf(np.pad(np.where(there, values, 0.0), fill), np.float64),
        present=as_leaf(np.pad(there, fill), np.float64),
        step=as_leaf(step_of_means(values), np.float64),
    )


def _width(n: int) -> int:
    """Return how many slots ``n`` models or items have, the last of which is empty."""
    return padded(n + 1, Step.ITEMS)


def resampled_delta_sums(
    scores: ModelScores, deltas: Float, settings: EvaluatorResamples
) -> rank_agreement.RankedPairs:
    """Return (1 + B, E, D) sums over the pairs under each of ``deltas`` (D,): of the data, then of the resamples."""
    e, m = scores.scores.shape
    # Two decimal numbers may differ by exactly delta: rounding must not bring their difference under it.
    deltas = np.where(np.isinf(deltas), deltas, deltas * (1 - _ROUNDING))
    if settings.resample != "models":
        return resampled(rank_agreement.delta_sums, scores, (deltas,), settings, 4 * m * m)
    (counts,) = drawn_counts(scores, settings)
    part = max(1, _COLUMNS // max(len(deltas) * m * m // 2, 1))
    parts = []
    for start in range(0, e, part):
        points = scores.scores[start : start + part]
        pairs = delta_pairs(points, scores.gold, deltas, counts.shape[1])
        with double_precision():
            pairs = jax.device_put(pairs)
        program = partial(delta_sums, pairs)
        section = f"deltas-{digest_of((deltas, scores.scores))}-{start}"
        size = _PAIRS + 3 * len(pairs.end) + 2 * pairs.order.shape[1]
        sums = run_lanes(program, counts, size, scores.gold, settings, section)
        n = len(points) * len(deltas)
        parts.append(jax.tree.map(lambda x: x[:, :n].reshape(len(x), -1, len(deltas)), sums))  # noqa: B023
    return jax.tree.map(lambda *x: np.concatenate(x, axis=1), *parts)


def pair_type(n_models: int) -> type:
    """Return float32 if sums are exact in it, else float64: pairs of M drawn models together weigh at most M^2 / 2."""
    return np.float32 if n_models**2 / 2 < _EXACT else np.float64


def delta_pairs(scores: Float, gold: Float, deltas: Float, width: int) -> rank_agreement.DeltaPairs:
    """Return the pairs of ``scores`` (E, M) under each of ``deltas`` (D,), as the kernel takes them.

    Models have ``width`` slots, the last of which is empty.
    """
    e, m = scores.shape
    dtype = pair_type(m)
    first, second = np.triu_indices(m, 1)
    gap = scores[:, first] - scores[:, second]
    near = np.abs(gap)[:, None] < deltas[:, None]  # False for NaN
    gold_order = np.sign(gold[first] - gold[second])
    agree = np.nan_to_num(np.sign(gap) * gold_order).astype(np.int8)
    direction = (near * agree[:, None]).reshape(e * len(deltas), -1)
    level = np.flatnonzero(gold_order == 0)
    used = np.flatnonzero((near.any(1) & (agree != 0)).any(0))

    size, slots = padded(len(direction), Step.PAIR_ROWS), padded(m, Step.MODELS)
    most = -(-slots * (slots - 1) // (2 * _PAIRS))

    def blocks(pairs: NDArray[np.intp], rows: NDArray[Any], n_blocks: int) -> rank_agreement.PairBlocks:
        shape = n_blocks, _PAIRS
        sign = pad(rows[:, pairs], (size, n_blocks * _PAIRS)).reshape(size, *shape).swapaxes(0, 1)
        return rank_agreement.PairBlocks(
            first=as_leaf(pad(first[pairs], (n_blocks * _PAIRS,)).reshape(shape), np.int32),
            second=as_leaf(pad(second[pairs], (n_blocks * _PAIRS,)).reshape(shape), np.int32),
            sign=as_leaf(sign, dtype),
            n_blocks=as_leaf(-(-len(pairs) // _PAIRS), np.int32),
        )

    n_ends = 1 + len(deltas)
    order = np.full((size, slots), width - 1, np.int32)
    end = np.ones((2 * size, slots), np.int32)
    for k, points in enumerate(scores):
        there = np.flatnonzero(~np.isnan(points))
        place = there[np.argsort(points[there], kind="stable")]
        order[k, : len(place)] = place
        gaps = (
            points[place] - points[place][:, None]
        )  # rises along a row, so a count says where the pairs under a gap end
        for d, inside in enumerate([gaps <= 0, *(gaps < delta for delta in deltas)]):
            end[k * n_ends + d, : len(place)] = inside.sum(1)
    row = np.arange(e * len(deltas))
    ties, gap = row // len(deltas) * n_ends, row // len(deltas) * n_ends + 1 + row % len(deltas)
    return rank_agreement.DeltaPairs(
        ordered=blocks(used, direction, most),
        tied=blocks(level, near.reshape(direction.shape), min(most, power_of_two(-(-len(level) // _PAIRS)))),
        n_evaluators=as_leaf(e, np.int32),
        n_ends=as_leaf(n_ends, np.int32),
        order=as_leaf(order, np.int32),
        end=as_leaf(end, np.int32),
        end_of_ties=as_leaf(pad(ties, (size,)), np.int32),
        end_of_gap=as_leaf(pad(gap, (size,)), np.int32),
    )


#: Settings that tables and draws show.
SHOWN = ("n_resamples", "resample", "strata", "level", "seed")
#: Percentile intervals over fewer models say little.
FEW_MODELS = 10
_SLACK = 1e-9  # a number so little outside its interval, as a share of the number, counts as inside
#: Where so many pairs of models, times ln(2 / (1 - level)), are expected to disagree, none does in (1 - level) / 2 of
#: the samples. In simulations of 5 to 50 models with normal scores it is 1.0 to 1.17; of independent pairs it is 1.
_NONE_SEEN = 1.1
#: As many models of the top, times ln(2 / (1 - level)) over the models but one, are then expected to be missed: no
#: resample of .95 of the samples misses one. Beyond ten models those far from the top tell nothing of it.
_NONE_MISSED, _NEAR_TOP = 1.3, 10


def open_ends(measure: str, pairs: Any, n_models: Any, level: float, top: int = 1) -> tuple[Any, Any]:
    """Give the lower end of a ``measure`` where all pairs agree in all resamples, and the upper one where none does.

    That is the measure of an evaluator who orders all of ``pairs`` like gold, or all the other way, in (1 - level) / 2
    of the samples. Spearman's correlation follows from tau for normal scores (Kendall 1948, Rank Correlation Methods):
    in simulations of 5 to 50 models within .01. ``n_models`` is (E,), as are the ``pairs`` of all but tau.
    """
    log, n = np.log(2 / (1 - level)), np.maximum(n_models, 2)
    share = np.minimum(_NONE_SEEN * log / np.maximum(pairs, 1), 1.0)
    tau = 1 - 2 * share
    if measure == "kendall_tau":
        return tau, -tau
    if measure == "pair_accuracy":
        return 1 - share, share
    if measure == "spearman":
        of_many = 6 / np.pi * np.arcsin(np.sin(np.pi * tau / 2) / 2)
        spearman = of_many + 3 * (tau - of_many) / (n + 1)
        return spearman, -spearman
    if measure == "top_overlap":  # whoever draws lots finds top / n
        return 1 - np.minimum(_NONE_MISSED * log / (np.minimum(n, _NEAR_TOP) - 1), 1.0) / top, np.minimum(top / n, 1.0)
    return np.inf, 2 * share * pairs / n  # rank_deviation: a pair that disagrees moves both models by a place


def interval_columns(
    values: Float, settings: EvaluatorResamples, least: float, most: float, centre: bool = True,
    ends: tuple[Any, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Give columns ``lower, upper, failed_share`` of (1 + B, ...) ``values``, the data's first; none without resamples.

    A resample without a number counts as ``least`` in the lower end and as ``most`` in the upper one. Resamples that
    recompute scores are `centred`; ``centre=False`` leaves them alone, if they already are. Where all resamples of
    models are ``most``, the lower end is at most the first of ``ends`` (...), and where all are ``least`` the upper one
    is at least the second: see `open_ends`.
    """
    if settings.n_resamples == 0:
        return {}
    draws = shown_draws(values, settings) if centre else values[1:]
    lower, upper = draw_bounds(draws, settings.level, (least, most))
    failed = np.isnan(values[1:]).mean(0)
    if ends is not None and settings.resample != "items":
        known = ~np.isnan(values[0])
        none_less = (np.nan_to_num(values, nan=most) >= most - _SLACK).all(0)
        none_more = (np.nan_to_num(values, nan=least) <= least + _SLACK).all(0)
        lower = np.where(known & none_less, np.minimum(lower, ends[0]), lower)
        upper = np.where(known & none_more, np.maximum(upper, ends[1]), upper)
    return {"lower": lower, "upper": upper, "failed_share": failed}


def shown_draws(values: Float, settings: EvaluatorResamples) -> Float:
    """Return (B, ...) resamples of (1 + B, ...) ``values``: `centred` where scores are recomputed."""
    return values[1:] if settings.resample == "models" else centred(values)


def first_reason(*reasons: tuple[Bool, str]) -> NDArray[Any]:
    """Return the text of the first condition that holds, else "ok"; conditions broadcast to the result's shape."""
    conditions = np.broadcast_arrays(*(condition for condition, _ in reasons))
    return np.select(conditions, [text for _, text in reasons], OK).astype(object)


def evaluator_table(
    scores: ModelScores, inner: Sequence[tuple[str, Any]], columns: dict[str, Any], settings: EvaluatorResamples
) -> pd.DataFrame:
    """Return a row per evaluator and inner value, with the settings and warnings.

    ``columns`` are of shape (E, inner values), or (E,) where the inner values share them. The intervals are of the
    first column.
    """
    e, n_inner = len(scores.scores), len(inner[0][1]) if inner else 1
    table = pd.DataFrame(
        {
            **({"evaluator": np.repeat(scores.evaluators.to_numpy(), n_inner)} if scores.labelled else {}),
            **{name: np.tile(np.asarray(values), e) for name, values in inner},
            **{name: np.broadcast_to(x.reshape(e, -1), (e, n_inner)).reshape(-1) for name, x in columns.items()},
        }
    )
    first = next(iter(columns))
    table.attrs = table_attributes(scores, table, first, settings)
    table.attrs["answer"] = "\n".join(_said(table, first, [name for name, _ in inner]))
    return Table.of(table, f"Evaluators: {first.replace('_', ' ')}", ends_of=first)


def _said(table: pd.DataFrame, name: str, inner: Sequence[str]) -> Iterator[str]:
    """Say of each evaluator its number with the interval, at the last of the ``inner`` values that has one."""
    known = with_evaluator(table)
    known = known[known[name].notna()]
    for evaluator, rows in known.groupby("evaluator", sort=False):
        row = rows.iloc[-1]
        ends = row.get("lower", np.nan), row.get("upper", np.nan)
        interval = "" if np.isnan(ends[0]) else f" ({ends[0]:.3g} to {ends[1]:.3g})"
        at = "".join(f" at {text.replace('_', ' ')} {row[text]}" for text in inner)
        who = f"{visible_line(evaluator)}: " if "evaluator" in table else ""
        yield f"{who}{name.replace('_', ' ')}{at} is {row[name]:.3g}{interval}"


def with_evaluator(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table, with an empty name where the one evaluator has none."""
    return table if "evaluator" in table else table.assign(evaluator="")


def table_attributes(
    scores: ModelScores, table: pd.DataFrame, name: str, settings: EvaluatorResamples
) -> dict[str, Any]:
    """Return ``settings`` and ``warnings`` of a table whose intervals are of the column ``name``."""
    shown = {key: getattr(settings, key) for key in SHOWN}
    warnings = [*_warnings(scores, table, settings), *_outside(table, name)]
    return {"settings": shown | {"n_models": len(scores.gold)}, "warnings": warnings}


def _warnings(scores: ModelScores, table: pd.DataFrame, settings: EvaluatorResamples) -> list[str]:
    sentences = []
    n, missing = scores.n_models, scores.n_missing
    if missing.any():
        left = [f"{m:,} of {k + m:,}" for k, m in zip(n, missing, strict=True)]
        sentences.append(
            "models that lack one of the two scores are left out: " + of_evaluators(scores, missing > 0, left)
        )
    few = n < FEW_MODELS
    if few.any() and settings.n_resamples and settings.resample != "items":
        sentences.append(
            f"intervals over fewer than {FEW_MODELS} models say little: "
            + of_evaluators(scores, few, [counted(k, "model") for k in n])
        )
    strata = settings.item_strata(scores)
    if settings.n_resamples and strata is not None:
        sentences += small_strata_text(np.bincount(strata), "item")
    if "failed_share" in table:
        some = table["failed_share"][(table["failed_share"] > 0) & (table["failed_share"] < 1)]
        if len(some):
            sentences.append(
                f"{len(some):,} of {counted(len(table), 'number')} {'is' if len(some) == 1 else 'are'} missing in some "
                f"resamples, up to {some.max():.1%} of them: those resamples count as the least possible value in the "
                "lower end of the interval and as the greatest in the upper end"
            )
    return sentences


def _outside(table: pd.DataFrame, name: str) -> list[str]:
    ends = ("lower", "upper") if "lower" in table else (f"{name}_lower", f"{name}_upper")
    if ends[0] not in table:
        return []
    slack = _SLACK * (1 + table[name].abs())
    below, above = table[name] < table[ends[0]] - slack, table[name] > table[ends[1]] + slack
    n = int((below | above).sum())
    outside = counted(n, "number lies outside its own interval", "numbers lie outside their own intervals")
    return [f"{outside}, of {len(table):,}: resamples are biased there"] if n else []
