"""The bootstrap over items: every resample's sums of many columns in one batched call."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Float, Int, as_leaf
from jaxeval.checks import check_room
from jaxeval.execution.lanes import LaneRun, Lanes, Task, device_mesh
from jaxeval.execution.precision import double_precision
from jaxeval.execution.shapes import ITEMS, Step, padded
from jaxeval.kernels import batch
from jaxeval.resampling.strata import checked_strata
from jaxeval.resampling.units import make_singles, make_units, pad, shortfall_of, stacked, stream_number

# Equal items are drawn together if they are this many on average: drawing items one by one is three times as fast.
_ALIKE = 4
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
    """(B, K) column sums of resamples of the N rows (items) of ``columns`` (N, K).

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
    pattern = _pattern(values, strata)
    rows = [np.arange(len(columns)), *([] if subsets is None else subsets)]
    streams = np.array([stream_number(stream)] + [stream_number(f"{stream} half")] * (len(rows) - 1), np.uint64)
    items, table = _items(values, pattern, rows, streams, strata)
    parts, order = _by_precision(table, len(columns))

    mesh = device_mesh()
    with double_precision():
        items, parts = jax.device_put((items, parts))
    call = partial(batch.item_sums, items, parts, mesh, np.uint64(seed))
    width = sum(x.shape[1] for x in parts)
    held = sum(x.nbytes for x in jax.tree.leaves((items, parts))) + 16 * n_resamples * width * min(len(rows), 2)
    task = Task(call, ITEMS, len(table), lane_bytes=_BYTES_PER_ITEM * len(table) + 16 * width, fixed_bytes=held)
    number = np.arange(n_resamples)
    halved = [1 + number % (len(rows) - 1)] if len(rows) > 1 else []
    sets = np.concatenate([np.zeros_like(number), *halved])
    lanes, section = Lanes(sets, np.tile(number, 1 + len(halved))), f"items-{stream_number(stream):x}-{part}"
    sums = (run or LaneRun()).results(task, lanes, section)
    sums = sums[:, order[of_column]]
    return sums if subsets is None else sums.reshape(2, n_resamples, -1)


def halves(columns: Float, n_halves: int, seed: int) -> NDArray[np.intp]:
    """(H, N // 2) sorted row numbers of random halves of ``columns`` (N, K), the same in whatever order rows come."""
    n = len(columns)
    order = np.argsort(_pattern(_distinct_columns(columns)[0]), kind="stable")
    rng = np.random.default_rng([seed, n, 2])
    return np.stack([np.sort(order[rng.permutation(n)[: n // 2]]) for _ in range(n_halves)])


def _items(
    values: Float, pattern: Int, rows: list[NDArray[np.intp]], streams: NDArray[np.uint64], strata: Int | None
) -> tuple[Any, Float]:
    """The items to draw from, and the (Q, D) values of each one that is drawn."""
    first = np.unique(pattern, return_index=True)[1]
    if len(pattern) >= _ALIKE * len(first):
        table = np.zeros((padded(len(first), Step.ITEMS), values.shape[1]))
        table[: len(first)] = values[first]
        counts = [np.bincount(pattern[own], minlength=len(table))[None] for own in rows]
        of_column = None if strata is None else strata[first]
        most = shortfall_of(np.array(padded(len(pattern), Step.ITEMS)))  # the largest of all item counts of this size
        units = stacked([make_units(count, of_column, least_places=2 * int(most)) for count in counts])
        return batch.Items(units=units, row=None, stream=as_leaf(streams, np.uint64)), table
    # By stratum and values, so that the order of the rows does not matter; zeros where there is no item.
    ordered = np.argsort(pattern, kind="stable")
    place = np.empty(len(ordered), np.intp)
    place[ordered] = np.arange(len(ordered))
    table = np.zeros((padded(len(ordered) + 1, Step.ITEMS), values.shape[1]))
    table[: len(ordered)] = values[ordered]
    row = np.full((len(rows), len(table)), len(table) - 1, np.int32)
    for p, own in enumerate(rows):
        row[p, : len(own)] = np.sort(place[own])
    of_slot = None if strata is None else strata[ordered]
    singles = stacked(
        [make_singles(len(own), len(table), None if of_slot is None else of_slot[np.sort(place[own])]) for own in rows]
    )
    return batch.Items(units=singles, row=as_leaf(row, np.int32), stream=as_leaf(streams, np.uint64)), table


def _by_precision(table: Float, n: int) -> tuple[tuple[NDArray[Any], ...], NDArray[np.intp]]:
    """Columns whose sums are exact in single precision, and the others; and where each of the D columns went."""
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


def _pattern(values: Float, strata: Int | None = None) -> Int:
    """(N,) number of each row among the distinct rows, whose order depends on their strata and values alone."""
    if strata is not None:
        number, _ = pd.factorize(strata * len(values) + _pattern(values), sort=True)
        return number
    if values.shape[1] > len(values):  # by the bytes of whole rows; adding 0 turns -0 into 0
        rows = np.ascontiguousarray(values + 0.0).view(np.dtype((np.void, 8 * values.shape[1])))
        return np.unique(rows.reshape(-1), return_inverse=True)[1].reshape(-1)
    number = np.zeros(len(values), np.int64)
    for column in values.T:
        codes, levels = pd.factorize(column, sort=True)
        number, _ = pd.factorize(number * len(levels) + codes, sort=True)
    return number
