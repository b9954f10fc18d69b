"""Scores of models by evaluators beside gold ones, and every measure's resamples in one batched call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import jax
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pandas.api.types import is_numeric_dtype

from jaxeval.checks import check_room, checked_integer, checked_resamples
from jaxeval.data.columns import as_frame
from jaxeval.data.item_scores import ItemScores, step_of_means
from jaxeval.errors import DataError
from jaxeval.execution.lanes import LaneRun, Lanes, Task, device_mesh
from jaxeval.execution.precision import double_precision
from jaxeval.execution.runs import Identity, digest_of, open_run
from jaxeval.execution.shapes import DRAWS, EVALUATORS, padded_rows
from jaxeval.kernels import batch, rank_agreement
from jaxeval.ratings.bradley_terry import named
from jaxeval.resampling.units import make_singles, rounded, stream_number
from jaxeval.statistics.quantiles import bounds_with_failures, centred, checked_level
from jaxeval.wording import counted, did_you_mean

Float = NDArray[np.float64]
Scores: TypeAlias = pd.DataFrame | pd.Series | ItemScores | ArrayLike
Resample: TypeAlias = Literal["models", "items", "both"]

#: Models under which percentile intervals over models say little.
FEW_MODELS = 10
# Differences of decimal numbers are exact to about this share of them.
_ROUNDING = 1e-9
OK = "ok"

_STEP = 64  # slots of models come in multiples of this, so that similar tables share compilations
_EXACT = 2**24  # whole numbers under this have no rounding in single precision
_COLUMNS = 2**24  # directions of pairs held at a time
_BYTES_PER_NUMBER = 10  # that a lane works on, at most


@dataclass(frozen=True, eq=False)
class ModelScores:
    """Scores of the models that have a gold score and one by some evaluator, by gold score and then label.

    ``labelled`` says whether the evaluators came as columns with names.
    """

    scores: Float  # (E, M) evaluators' points, NaN where missing
    gold: Float  # (M,)
    models: pd.Index
    evaluators: pd.Index
    labelled: bool
    n_missing: NDArray[np.int64]  # (E,) models with one of the two scores only
    items: Float | None  # (I, E, M), NaN where missing

    @property
    def n_models(self) -> NDArray[np.int64]:
        """(E,) models that each evaluator has scored."""
        return (~np.isnan(self.scores)).sum(1)

    @property
    def constant(self) -> NDArray[np.bool_]:
        """(E,) evaluators whose scores are all the same."""
        return np.array([len(np.unique(x[~np.isnan(x)])) == 1 for x in self.scores])

    @property
    def constant_gold(self) -> NDArray[np.bool_]:
        """(E,) evaluators whose models all have the same gold score."""
        return np.array([len(np.unique(self.gold[~np.isnan(x)])) == 1 for x in self.scores])


def align_scores(scores: Scores, gold: pd.Series | ArrayLike | str) -> ModelScores:
    """Evaluators' scores and gold ones of the same models.

    Args:
        scores: one row a model and one column an evaluator; one evaluator's scores; or `ItemScores`. A table of polars
            or another library with the Arrow interface may name the models in its one column of text.
        gold: (M,) gold scores; matched by index where both have one, else by position; or the name of their column.

    Raises:
        DataError: models repeat, lengths differ, a column is not numeric, scores are infinite, or no model has both.
    """
    items = scores if isinstance(scores, ItemScores) else None
    table, labelled = score_table(scores)
    if isinstance(gold, str):
        if gold not in table.columns or isinstance(scores, ItemScores):
            have = ", ".join(map(repr, table.columns))
            hint = did_you_mean(gold, table.columns)
            raise DataError(f"no column {gold!r} of gold scores; the columns are {have}{hint}")
        target, table = table[gold], table.drop(columns=gold)
    elif isinstance(gold, pd.Series) and (
        isinstance(scores, pd.DataFrame | pd.Series | ItemScores) or not isinstance(table.index, pd.RangeIndex)
    ):
        target = gold
    else:
        target = pd.Series(np.asarray(gold).reshape(-1))
        if len(target) != len(table):
            raise DataError(
                f"{counted(len(table), 'model has a score', 'models have scores')}, but there are "
                f"{counted(len(target), 'gold score')}"
            )
        target.index = table.index
    if table.shape[1] == 0:
        raise DataError("there is no evaluator: scores need a column besides the gold one")
    for name, index in (("scores", table.index), ("gold", target.index)):
        if index.has_duplicates:
            twice = index[index.duplicated()][0]
            raise DataError(f"model {twice!r} has more than one row in {name}: keep one, or average them first")
    values = np.stack([_numbers(table.iloc[:, k], table.columns[k]) for k in range(table.shape[1])])
    true = pd.Series(_numbers(target, "gold"), target.index)
    beside = true.reindex(table.index).to_numpy()
    both = ~np.isnan(values) & ~np.isnan(beside)
    n_gold = int(true.notna().sum())
    n_missing = (~np.isnan(values)).sum(1) + n_gold - 2 * both.sum(1)
    keep = np.flatnonzero(both.any(0))
    if len(keep) == 0:
        raise DataError(
            f"no model has both a score and a gold score: {counted(len(table), 'model')} in scores (the first is "
            f"{table.index[0]!r}), {len(true):,} in gold (the first is {true.index[0]!r}); do their names agree?"
            if len(table) and len(true)
            else "there is no model"
        )
    # Resamples are to be the same in whatever order the rows come.
    labels = pd.Series(table.index[keep])
    by_label = np.empty(len(keep), np.intp)
    by_label[labels.argsort() if _sortable(labels) else np.arange(len(keep))] = np.arange(len(keep))
    keep = keep[np.lexsort([by_label, beside[keep]])]
    return ModelScores(
        values[:, keep],
        beside[keep],
        table.index[keep],
        table.columns,
        labelled,
        n_missing,
        None if items is None else items.scores[:, :, keep],
    )


def score_table(scores: Scores) -> tuple[pd.DataFrame, bool]:
    """A row per model and a column per evaluator, and whether these have names."""
    if isinstance(scores, ItemScores):
        return scores.means(), True
    if isinstance(scores, pd.DataFrame):
        return scores, True
    if isinstance(scores, pd.Series):
        return scores.to_frame(), False
    if hasattr(scores, "__arrow_c_stream__") and hasattr(scores, "columns"):
        frame = as_frame(scores)
        text = [name for name in frame if not is_numeric_dtype(frame[name])]
        return (frame.set_index(text[0]) if len(text) == 1 else frame), True
    values = np.asarray(scores)
    if values.ndim not in (1, 2):
        raise DataError(f"scores must be of one axis, or of two (models, evaluators), got shape {values.shape}")
    return pd.DataFrame(values if values.ndim == 2 else values[:, None]), values.ndim == 2


def _numbers(column: pd.Series, name: Any) -> Float:
    try:
        values = column.to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"column {name!r} is not numeric ({error}): put the models' names in the index, and drop other columns"
        ) from error
    if np.isinf(values).any():
        raise DataError(
            f"column {name!r} has {counted(np.isinf(values).sum(), 'infinite score')}: make them finite or missing"
        )
    return values


def _sortable(labels: pd.Series) -> bool:
    try:
        labels.argsort()
    except TypeError:
        return False
    return True


@dataclass(frozen=True)
class Resampling:
    """Settings that the measures share; as `kendall_tau_delta` describes them."""

    n_resamples: int
    resample: Resample
    level: float
    seed: int
    progress: bool | None
    memory_limit: int | None = None
    checkpoint: str | Path | None = None

    def check(self, scores: ModelScores) -> None:
        """A ValueError or TypeError for settings out of range, a DataError where there are no items to draw."""
        checked_level(self.level)
        if self.resample not in ("models", "items", "both"):
            raise ValueError(f"resample must be 'models', 'items' or 'both', got {self.resample!r}")
        checked_resamples(self.n_resamples)
        checked_integer("seed", self.seed)
        if self.resample != "models" and scores.items is None:
            raise DataError(
                f"resample={self.resample!r} needs scores by item: pass ItemScores.from_pandas(table) as scores"
            )


def resampled(
    measure: Callable[..., Any],
    scores: ModelScores,
    arguments: tuple[Any, ...],
    settings: Resampling,
    size: int,
    chunk_size: int | None = None,
) -> Any:
    """What ``measure``, of `kernels.rank_agreement`, returns, with a leading axis 1 + B: the data, then the resamples.

    Args:
        size: numbers that a lane holds at a time, for chunks to fit the memory.
    """
    by_item = settings.resample != "models" and scores.items is not None
    data: Any = _item_totals(scores) if by_item else scores.scores

    program = partial(batch.evaluator_resamples, measure, data, scores.gold, arguments)
    section = f"{measure.__name__}-{digest_of((arguments, scores.scores, scores.items))}"
    return _run(program, _counts(scores, settings), size, scores.gold, settings, chunk_size, section)


def resampled_delta_sums(
    scores: ModelScores, deltas: Float, settings: Resampling, chunk_size: int | None = None
) -> rank_agreement.PairSums:
    """(1 + B, E, D) sums over the pairs under each of ``deltas`` (D,): of the data, then of the resamples."""
    e, m = scores.scores.shape
    # Of decimal numbers that differ by exactly delta, rounding must not bring some under it.
    deltas = np.where(np.isinf(deltas), deltas, deltas * (1 - _ROUNDING))
    if settings.resample != "models":
        return resampled(rank_agreement.delta_sums, scores, (deltas,), settings, 4 * m * m, chunk_size)
    counts = _counts(scores, settings)
    part = max(1, _COLUMNS // max(len(deltas) * m * m // 2, 1))
    parts = []
    for start in range(0, e, part):
        pairs = delta_pairs(scores.scores[start : start + part], scores.gold, deltas, counts[0].shape[1])
        with double_precision():
            pairs = jax.device_put(pairs)

        program = partial(batch.delta_sums, pairs)
        section = f"deltas-{digest_of((deltas, scores.scores))}-{start}"
        parts.append(_run(program, counts[0], len(pairs.first), scores.gold, settings, chunk_size, section))
    return jax.tree.map(lambda *x: np.concatenate(x, axis=1), *parts)


def pair_type(n_models: int) -> type:
    """Single precision where it is exact: all pairs of ``n_models`` drawn weigh at most half the square of that."""
    return np.float32 if n_models**2 / 2 < _EXACT else np.float64


def delta_pairs(scores: Float, gold: Float, deltas: Float, width: int) -> rank_agreement.DeltaPairs:
    """What the pairs of ``scores`` (E, M) are to ``deltas`` (D,), for models in ``width`` slots."""
    e, m = scores.shape
    dtype = pair_type(m)
    first, second = np.triu_indices(m, 1)
    gap = scores[:, first] - scores[:, second]
    near = np.abs(gap)[:, None] < deltas[:, None]  # NaN is not
    gold_order = np.sign(gold[first] - gold[second])
    agree = np.nan_to_num(np.sign(gap) * gold_order).astype(np.int8)
    direction = (near * agree[:, None]).reshape(e * len(deltas), -1)
    level = np.flatnonzero(gold_order == 0)
    used = np.flatnonzero((near.any(1) & (agree != 0)).any(0))
    parts: list[Any] = []
    for rows, columns in ((used, direction), (level, near.reshape(direction.shape))):
        fill = rounded(max(len(rows), 1)) - len(rows)  # similar tables share compilations
        parts += [np.pad(x[rows], (0, fill)).astype(np.int32) for x in (first, second)]
        parts.append(np.pad(columns[:, rows], [(0, 0), (0, fill)]).astype(dtype))
    order = np.full((e, width), width - 1, np.int32)
    end = np.ones((e, 1 + len(deltas), width), np.int32)
    for k, own in enumerate(scores):
        there = np.flatnonzero(~np.isnan(own))
        place = there[np.argsort(own[there], kind="stable")]
        order[k, : len(place)] = place
        gaps = own[place] - own[place][:, None]  # rises along a row: counting says where it ends
        for d, inside in enumerate([gaps <= 0, *(gaps < delta for delta in deltas)]):
            end[k, d, : len(place)] = inside.sum(1)
    parts += [order, end]
    return rank_agreement.DeltaPairs(*parts)


def _counts(scores: ModelScores, settings: Resampling) -> tuple[NDArray[np.uint8], ...]:
    """(1 + B, Q) how often each model is in the data and the resamples; and, of scores by item, each item."""
    own = [(len(scores.gold), "models", settings.resample != "items")]
    if settings.resample != "models" and scores.items is not None:
        own.append((len(scores.items), "items", True))
    check_room(settings.n_resamples, sum(size for size, *_ in own))
    found = []
    for n, stream, varies in own:
        width = -(-(n + 1) // _STEP) * _STEP
        counts = np.zeros((1 + settings.n_resamples, width), np.uint8)
        counts[:, :n] = 1
        if varies and settings.n_resamples:
            counts[1:] = _draws(n, width, stream, settings)
        found.append(counts)
    return tuple(found)


def _draws(n: int, width: int, stream: str, settings: Resampling) -> NDArray[np.uint8]:
    """(B, Q) how often each of ``n`` is drawn, a function of the seed, the stream and the resample's number."""
    mesh = device_mesh()
    singles: Any = make_singles(n, width)
    names: Any = np.uint64(settings.seed), np.uint64(stream_number(stream))

    def call(slices: NDArray[np.int32], numbers: NDArray[np.int64], n_chunks: NDArray[np.int32]) -> Any:
        with double_precision():
            return batch.draw_singles(singles, mesh, *names, numbers, n_chunks, width)

    task = Task(call, DRAWS, width, lane_bytes=24 * width, fixed_bytes=settings.n_resamples * width)
    return np.asarray(LaneRun().results(task, Lanes.of(1, settings.n_resamples), stream))


def _item_totals(scores: ModelScores) -> Any:
    """Scores by item in as many slots as `_counts` has."""
    if scores.items is None:
        raise ValueError("there are no scores by item")
    n = len(scores.items)
    values = scores.items.reshape(n, -1)
    fill = [(0, -(-(n + 1) // _STEP) * _STEP - n), (0, 0)]
    there = ~np.isnan(values)
    totals: Any = np.pad(np.where(there, values, 0.0), fill), np.pad(there.astype(float), fill), step_of_means(values)
    return batch.ItemTotals(*totals)


def _run(
    program: Callable[..., Any],
    counts: Any,
    size: int,
    gold: Float,
    settings: Resampling,
    chunk_size: int | None,
    section: str,
) -> Any:
    """``program(counts, mesh, numbers, n_chunks)`` of all lanes of ``counts`` (1 + B, Q), of ``size`` numbers each."""
    mesh, n_lanes = device_mesh(), len(jax.tree.leaves(counts)[0])
    with double_precision():
        counts = jax.device_put(jax.tree.map(padded_rows, counts))

    def call(slices: NDArray[np.int32], numbers: NDArray[np.int64], n_chunks: NDArray[np.int32]) -> Any:
        with double_precision():
            return program(counts, mesh, numbers, n_chunks)

    held = sum(x.nbytes for x in jax.tree.leaves(counts))
    task = Task(call, EVALUATORS, size, lane_bytes=_BYTES_PER_NUMBER * size, fixed_bytes=held)

    def identity() -> Identity:
        """Measures, and parts of one, share a folder, where sections tell them apart."""
        drawn, shown = {"resample": settings.resample, "seed": settings.seed}, {"n_resamples": settings.n_resamples}
        return Identity(drawn, gold, shown | {"level": settings.level}, section)

    with open_run(
        identity, n_lanes, "resamples", chunk_size=chunk_size, memory_limit=settings.memory_limit,
        checkpoint=settings.checkpoint, progress=settings.progress,
    ) as run:  # fmt: skip
        return run.results(task, Lanes.of(1, n_lanes), section)


def interval_columns(
    values: Float, settings: Resampling, least: float, most: float, centre: bool = True
) -> dict[str, Any]:
    """Columns ``lower, upper, failed_share`` of (1 + B, ...) ``values``, the data's first; none without resamples.

    A resample without a number counts as ``least`` in the lower end and as ``most`` in the upper one. Those in which
    scores are recomputed are `centred`, unless ``centre`` is false: they are already.
    """
    if settings.n_resamples == 0:
        return {}
    draws = values[1:]
    if centre and settings.resample != "models":
        draws = np.clip(centred(values), least, most)
    _, lower, upper, _ = bounds_with_failures(draws, settings.level, least, most)
    failed = np.isnan(values[1:]).mean(0)
    return {"lower": lower.reshape(-1), "upper": upper.reshape(-1), "failed_share": failed.reshape(-1)}


def evaluator_table(
    scores: ModelScores, inner: Sequence[tuple[str, Any]], columns: dict[str, Any], settings: Resampling
) -> pd.DataFrame:
    """A row per evaluator and inner value, as (E, ...) ``columns`` have them; what is told of the settings.

    The first of the columns is what the intervals are of.
    """
    n_inner = len(inner[0][1]) if inner else 1
    table = pd.DataFrame(
        {
            **({"evaluator": np.repeat(scores.evaluators.to_numpy(), n_inner)} if scores.labelled else {}),
            **{name: np.tile(np.asarray(values), len(scores.scores)) for name, values in inner},
            **{name: np.asarray(values).reshape(-1) for name, values in columns.items()},
        }
    )
    table.attrs = table_attributes(scores, table, next(iter(columns)), settings)
    return table


def table_attributes(scores: ModelScores, table: pd.DataFrame, name: str, settings: Resampling) -> dict[str, Any]:
    """``settings`` and ``warnings`` of a table whose intervals are of the column ``name``."""
    return {
        "settings": {
            "n_resamples": settings.n_resamples,
            "resample": settings.resample,
            "level": settings.level,
            "seed": settings.seed,
            "n_models": len(scores.gold),
        },
        "warnings": [*_warnings(scores, table, settings), *_outside(table, name)],
    }


def _warnings(scores: ModelScores, table: pd.DataFrame, settings: Resampling) -> list[str]:
    found = []
    n, missing = scores.n_models, scores.n_missing
    if missing.any():
        left = [f"{m:,} of {k + m:,}" for k, m in zip(n, missing, strict=True)]
        found.append("models that lack one of the two scores are left out: " + of_evaluators(scores, missing > 0, left))
    few = n < FEW_MODELS
    if few.any() and settings.n_resamples and settings.resample != "items":
        found.append(
            f"intervals over fewer than {FEW_MODELS} models say little: "
            + of_evaluators(scores, few, [counted(k, "model") for k in n])
        )
    if "failed_share" in table:
        some = table["failed_share"][(table["failed_share"] > 0) & (table["failed_share"] < 1)]
        if len(some):
            found.append(
                f"{len(some):,} of {counted(len(table), 'number is', 'numbers are')} missing in some resamples, up to "
                f"{some.max():.1%} of them: there the ends of the intervals take the least and the greatest value that "
                "there is"
            )
    return found


def of_evaluators(scores: ModelScores, chosen: NDArray[np.bool_], facts: Sequence[str], limit: int = 5) -> str:
    """The facts (E,) of the ``chosen`` evaluators, each with its evaluator's name; equal facts are told once."""
    if not scores.labelled:
        return facts[0]
    by_fact: dict[str, list[Any]] = {}
    for k in np.flatnonzero(chosen).tolist():
        by_fact.setdefault(facts[k], []).append(scores.evaluators[k])
    told = [f"{fact} ({named(names)})" for fact, names in by_fact.items()]
    return "; ".join(told[:limit]) + f"; and {len(told) - limit} more such" * (len(told) > limit)


def _outside(table: pd.DataFrame, name: str) -> list[str]:
    """What the resamples do not surround."""
    ends = ("lower", "upper") if "lower" in table else (f"{name}_lower", f"{name}_upper")
    if ends[0] not in table:
        return []
    slack = _ROUNDING * (1 + table[name].abs())
    below, above = table[name] < table[ends[0]] - slack, table[name] > table[ends[1]] + slack
    n = int((below | above).sum())
    outside = counted(n, "number lies outside its own interval", "numbers lie outside their own intervals")
    return [f"{outside}, of {len(table):,}: resamples are biased there"] if n else []
