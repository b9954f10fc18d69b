"""The bootstrap over items: every resample's sums of many columns in one batched call."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.checks import check_room
from jaxeval.execution.lanes import device_mesh
from jaxeval.execution.precision import double_precision
from jaxeval.execution.progress import Advance
from jaxeval.kernels import batch
from jaxeval.kernels.resample import Tally
from jaxeval.resampling.units import (
    make_singles,
    make_units,
    shortfall_of,
    singles_top_up_size,
    stream_number,
    top_up_size_of,
)

Float = NDArray[np.float64]
Int = NDArray[np.int64]

_TALLY = Tally(None, 0)
# Items that are alike are drawn together where the average number of them is this; singles are three times as fast.
_ALIKE = 4
_SMALLEST_TOP_UP = 128  # items are few, beside the battles of a leaderboard
_WORDS = {"cpu": 2**18}  # lanes x items that fit the cache of a core
_ACCELERATOR_WORDS = 2**26
_MOST_LANES = 512
_CALL_LANES = 4096  # between two steps of the progress bar
_EXACT = 2**24  # whole numbers under this have no rounding in single precision


def resampled_sums(
    columns: Float,
    n_resamples: int,
    seed: int,
    stream: str,
    subsets: NDArray[np.intp] | None = None,
    advance: Advance = lambda n: None,
    chunk_size: int | None = None,
) -> Float:
    """(B, K) column sums of resamples of the N rows (items) of ``columns`` (N, K).

    Resample r draws N rows with replacement, as a function of (seed, stream, r) and the set of rows alone: not of
    their order, of B, of the chunks or of the devices.

    Args:
        subsets: (H, n) row numbers. With them the result is (2, B, K): resample r of all rows, and one of n rows of
            subset r mod H.
    """
    check_room(n_resamples, 8 * columns.shape[1] * (1 if subsets is None else 2))
    values, of_column = _distinct_columns(columns)
    pattern = _pattern(values)
    rows = [np.arange(len(columns)), *([] if subsets is None else subsets)]
    streams = np.array([stream_number(stream)] + [stream_number(f"{stream} half")] * (len(rows) - 1), np.uint64)
    items, top_up_size, table = _items(values, pattern, rows, streams)
    parts, order = _by_precision(table, len(columns))

    everything = np.arange(n_resamples)
    lanes = [everything, *(everything[h :: len(rows) - 1] for h in range(len(rows) - 1))]
    size = chunk_size or _chunk_size(max(len(own) for own in lanes[1:] or lanes), len(table))
    chunks = [(p, own[start : start + size]) for p, own in enumerate(lanes) for start in range(0, len(own), size)]
    sums = np.empty((1 if subsets is None else 2, n_resamples, len(of_column)))
    mesh = device_mesh()
    # All calls have one shape; chunk c goes to device c % D.
    per_device = min(-(-_CALL_LANES // size), -(-len(chunks) // mesh.size))
    take = order[of_column]
    for start in range(0, len(chunks), per_device * mesh.size):
        called = chunks[start : start + per_device * mesh.size]
        filled = called + called[-1:] * (per_device * mesh.size - len(called))
        sets = np.array([p for p, _ in filled], np.int32)
        numbers = np.stack([np.pad(own, (0, size - len(own)), mode="edge") for _, own in filled])
        with double_precision():
            found = np.asarray(
                batch.item_sums(
                    items,
                    parts,
                    mesh,
                    np.uint64(seed),
                    sets.reshape(per_device, mesh.size).T,
                    numbers.reshape(per_device, mesh.size, size).transpose(1, 0, 2),
                    top_up_size,
                )
            )
        for c, (p, own) in enumerate(called):
            sums[min(p, 1), own] = found[c % mesh.size, c // mesh.size, : len(own)][:, take]
        advance(sum(len(own) for _, own in called))
    return sums[0] if subsets is None else sums


def halves(columns: Float, n_halves: int, seed: int) -> NDArray[np.intp]:
    """(H, N // 2) sorted row numbers of random halves of ``columns`` (N, K), the same in whatever order rows come."""
    n = len(columns)
    order = np.argsort(_pattern(_distinct_columns(columns)[0]), kind="stable")
    rng = np.random.default_rng([seed, n, 2])
    return np.stack([np.sort(order[rng.permutation(n)[: n // 2]]) for _ in range(n_halves)])


def _items(
    values: Float, pattern: Int, rows: list[NDArray[np.intp]], streams: NDArray[np.uint64]
) -> tuple[Any, int, Float]:
    """What is drawn from, the room of the top-up, and the (Q, D) values of what is drawn."""
    first = np.unique(pattern, return_index=True)[1]
    if len(pattern) >= _ALIKE * len(first):
        table = np.zeros((_width(len(first)), values.shape[1]))
        table[: len(first)] = values[first]
        counts = [np.bincount(pattern[own], minlength=len(table))[None] for own in rows]
        shortfalls = [shortfall_of(int(count.sum())) for count in counts]
        units = _stacked([make_units(count, _TALLY, less) for count, less in zip(counts, shortfalls, strict=True)])
        together: Any = units, None, streams
        return batch.Items(*together), top_up_size_of(max(shortfalls), _SMALLEST_TOP_UP), table
    # In the order of their values, so that the order of the rows does not matter; zeros where there is no item.
    ordered = np.argsort(pattern, kind="stable")
    place = np.empty(len(ordered), np.intp)
    place[ordered] = np.arange(len(ordered))
    table = np.zeros((_width(len(ordered) + 1), values.shape[1]))
    table[: len(ordered)] = values[ordered]
    row = np.full((len(rows), len(table)), len(table) - 1, np.int32)
    for p, own in enumerate(rows):
        row[p, : len(own)] = np.sort(place[own])
    one_by_one: Any = _stacked([make_singles(len(own)) for own in rows]), row, streams
    return batch.Items(*one_by_one), singles_top_up_size(len(table)), table


def _by_precision(table: Float, n: int) -> tuple[tuple[NDArray[Any], ...], NDArray[np.intp]]:
    """Columns whose sums are exact in single precision, and the others; and where each of the D columns went."""
    whole = (table == np.round(table)).all(0) & (np.abs(table).max(0) * n < _EXACT)
    single, double = np.flatnonzero(whole), np.flatnonzero(~whole)
    parts = [(table[:, single], np.float32), (table[:, double], np.float64)]
    padded = [np.pad(x, [(0, 0), (0, -x.shape[1] % 8)]).astype(dtype) for x, dtype in parts if x.shape[1]]
    order = np.empty(table.shape[1], np.intp)
    order[single] = np.arange(len(single))
    order[double] = np.arange(len(double)) + (padded[0].shape[1] if len(single) else 0)
    return tuple(padded), order


def _distinct_columns(columns: Float) -> tuple[Float, NDArray[np.intp]]:
    """(N, D) distinct columns and, for each of the K, which of them it is: binary judgments are their own squares."""
    seen: dict[bytes, int] = {}
    inverse = np.array([seen.setdefault(column.tobytes(), len(seen)) for column in np.ascontiguousarray(columns.T)])
    return columns[:, np.unique(inverse, return_index=True)[1]], inverse


def _pattern(values: Float) -> Int:
    """(N,) number of each row among the distinct rows, which are in an order that their values give."""
    if values.shape[1] > len(values):  # by the bytes of whole rows; adding 0 makes one zero of two
        rows = np.ascontiguousarray(values + 0.0).view(np.dtype((np.void, 8 * values.shape[1])))
        return np.unique(rows.reshape(-1), return_inverse=True)[1].reshape(-1)
    number = np.zeros(len(values), np.int64)
    for column in values.T:
        codes, levels = pd.factorize(column, sort=True)
        number, _ = pd.factorize(number * len(levels) + codes, sort=True)
    return number


def _width(size: int) -> int:
    """``size`` rounded up by at most a third, so that slices of different sizes share compilations."""
    step = max(128, 1 << max(size.bit_length() - 2, 0))
    return -(-size // step) * step


def _chunk_size(n_lanes: int, width: int) -> int:
    """Lanes of a chunk, a multiple of 8, which XLA vectorises best."""
    words = _WORDS.get(jax.default_backend(), _ACCELERATOR_WORDS)
    most = int(np.clip(words // width, 8, _MOST_LANES)) // 8 * 8
    return min(most, -(-n_lanes // 8) * 8)


def _stacked(units: list[Any]) -> Any:
    def stack(*leaves: NDArray[Any]) -> NDArray[Any]:
        longest = max(np.shape(leaf)[-1] if np.ndim(leaf) else 0 for leaf in leaves)
        return np.stack([np.pad(x, (0, longest - len(x))) if np.ndim(x) == 1 else x for x in leaves])

    return jax.tree.map(stack, *units)
