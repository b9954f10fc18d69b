"""The bootstrap over items: every resample's sums of many columns in one batched call."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Float, Int
from jaxeval.checks import check_room
from jaxeval.execution.lanes import LaneRun, Lanes
from jaxeval.execution.shapes import ITEMS, Step, padded
from jaxeval.kernels.batch.weighted import row_sums
from jaxeval.resampling.rows import (
    form_of,
    lanes_task,
    pattern_of,
    slots_of_kinds,
    slots_one_by_one,
    stacked_rows,
    worth_merging,
)
from jaxeval.resampling.units import checked_strata, pad, stream_number

# Of an item in a lane: its count, and the same number as what the columns are multiplied by.
_BYTES_PER_ITEM = 24
_EXACT = 2**24  # whole numbers under this have no rounding in single precision


def resampled_sums(
    columns: Float,
    n_resamples: int,
    seed: int,
    stream: str,
    subsets: NDArray[np.intp] | None = None,
    run: LaneRun | None = None,
    strata: Int | None = None,
    part: int = 0,
) -> Float:
    """Return (B, K) column sums of resamples of the N rows (items) of ``columns`` (N, K).

    Resample r draws N rows with replacement, as a function of (seed, stream, r) and the set of rows alone: not of
    their order, of B, of the chunks or of the devices.

    Args:
        columns: (N, K) values of the items.
        n_resamples: B.
        seed: of the draws.
        stream: names the random numbers, and the work in a checkpoint.
        subsets: (H, n) row numbers. With them the result is (2, B, K): resample r of all rows, and one of n rows of
            subset r mod H.
        run: how the resamples are run.
        strata: (N,) stratum of each item: every resample holds as many of a stratum as there are, and one of a subset
            as many as the subset has.
        part: tells calls of one stream apart in a checkpoint.
    """
    check_room(n_resamples, 8 * columns.shape[1] * (1 if subsets is None else 2))
    values, of_column = _distinct_columns(columns)
    strata = None if strata is None else checked_strata(strata)
    pattern = pattern_of(values, strata)
    kept = [None, *([] if subsets is None else subsets)]
    slots_of = slots_of_kinds if worth_merging(pattern) else slots_one_by_one
    slots = [slots_of(pattern, strata, subset) for subset in kept]
    streams = [stream_number(stream)] + [stream_number(f"{stream} half")] * (len(kept) - 1)
    table = slots[0].rows_of(values)
    rows_of_sets = None
    if slots_of is slots_one_by_one:  # the rows of the table that each set draws, and an empty row
        place = np.argsort(slots[0].source)
        rows_of_sets = np.full((len(kept), len(table)), len(table) - 1, np.int32)
        for k, of_set in enumerate(slots):
            rows_of_sets[k, : len(of_set.source)] = place[of_set.source]
    parts, order = _by_precision(table, len(columns))
    width = sum(x.shape[1] for x in parts)
    task = lanes_task(
        row_sums,
        {"rows": stacked_rows(slots, streams), "columns": parts, "own": rows_of_sets, "seed": np.uint64(seed)},
        {"form": form_of(slots[0])},
        ITEMS,
        entries=len(table),
        lane_bytes=_BYTES_PER_ITEM * len(table) + 16 * width,
        result_bytes=16 * n_resamples * width * min(len(kept), 2),
    )
    number = np.arange(n_resamples)
    halved = [1 + number % (len(kept) - 1)] if len(kept) > 1 else []
    sets = np.concatenate([np.zeros_like(number), *halved])
    lanes, section = Lanes(sets, np.tile(number, 1 + len(halved))), f"items-{stream_number(stream):x}-{part}"
    sums = (run or LaneRun()).results(task, lanes, section)
    sums = sums[:, order[of_column]]
    return sums if subsets is None else sums.reshape(2, n_resamples, -1)


def halves(columns: Float, n_halves: int, seed: int) -> NDArray[np.intp]:
    """(H, N // 2) sorted row numbers of random halves of ``columns`` (N, K), the same in whatever order rows come."""
    n = len(columns)
    order = np.argsort(pattern_of(_distinct_columns(columns)[0]), kind="stable")
    rng = np.random.default_rng([seed, n, 2])
    return np.stack([np.sort(order[rng.permutation(n)[: n // 2]]) for _ in range(n_halves)])


def _by_precision(table: Float, n: int) -> tuple[tuple[NDArray[np.floating[Any]], ...], NDArray[np.intp]]:
    """Return columns whose sums are exact in single precision, and the others; and where each of the D columns went."""
    whole = (table == np.round(table)).all(0) & (np.abs(table).max(0) * n < _EXACT)
    single, double = np.flatnonzero(whole), np.flatnonzero(~whole)
    parts = [(table[:, single], np.float32), (table[:, double], np.float64)]
    kept = [pad(x, (len(x), padded(x.shape[1], Step.SUMS))).astype(dtype) for x, dtype in parts if x.shape[1]]
    order = np.empty(table.shape[1], np.intp)
    order[single] = np.arange(len(single))
    order[double] = np.arange(len(double)) + (kept[0].shape[1] if len(single) else 0)
    return tuple(kept), order


def _distinct_columns(columns: Float) -> tuple[Float, NDArray[np.intp]]:
    """(N, D) distinct columns and, for each of the K, which of them it is: binary judgments are their own squares."""
    seen: dict[bytes, int] = {}
    inverse = np.array([seen.setdefault(column.tobytes(), len(seen)) for column in np.ascontiguousarray(columns.T)])
    return columns[:, np.unique(inverse, return_index=True)[1]], inverse
