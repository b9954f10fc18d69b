"""Draw rows: one by one, equal ones together, in clusters, in stages, within strata; and sum resampled items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Float, Int, as_leaf, distinct
from jaxeval.checks import check_room
from jaxeval.execution.host import is_for_host
from jaxeval.execution.lanes import LaneRun, Lanes, Task, device_mesh
from jaxeval.execution.precision import double_precision, one_blas_thread
from jaxeval.execution.shapes import ITEMS, Budget, Step, padded, padded_columns, padded_few
from jaxeval.kernels.batch.programs import Program
from jaxeval.kernels.batch.weighted import Factor, RowForm, Stages, WeighedRows, drawn_rows, row_sums
from jaxeval.kernels.resample import DrawScheme, Packing, Singles, Units
from jaxeval.lazy_names import jax
from jaxeval.resampling.units import (
    checked_strata,
    make_singles,
    make_units,
    pad,
    shortfall_of,
    stacked,
    stream_number,
    unit_draw,
)

# Equal rows are drawn together if they are this many on average: drawing rows one by one is three times as fast.
_ALIKE = 4
_OF_UNITS = ("shift", "offset", "least")  # constants of `RateTables`, of each unit


class Slots(NamedTuple):
    """The order in which rows are drawn, with room for more."""

    units: Units | Singles
    size: int  # slots
    source: Int  # (n,) the row that each of the first slots stands for; further slots are empty
    times: Int  # (n,) how many equal rows that is

    @property
    def drawn(self) -> int:
        """How many numbers a resample draws: one a slot, and the places for single draws."""
        return len(self.source) + int(self.units.strata.limit.sum())

    def without_room(self) -> Slots:
        """Return the same draws without the further slots, which only compiled programs need."""
        n, units = len(self.source), self.units
        column = units.strata.column
        strata = units.strata._replace(column=None if column is None else column[:n])
        if isinstance(units, Units):
            assert units.tables is not None  # as `slots_of_kinds` has them
            tables = units.tables._replace(**{name: getattr(units.tables, name)[:, :n] for name in _OF_UNITS})
            units = units._replace(size=units.size[:, :n], tables=tables)
        return Slots(units._replace(strata=strata), n, self.source, self.times)

    def rows_of(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return ``values`` (N, ...) of the rows in the order of the slots, 0 in empty ones."""
        return pad(values[self.source], (self.size, *values.shape[1:]))


def worth_merging(pattern: Int) -> bool:
    """Return whether rows of equal ``pattern`` (N,) are drawn together."""
    return len(pattern) >= _ALIKE * (int(pattern.max(initial=-1)) + 1)


def slots_one_by_one(pattern: Int, strata: Int | None = None, kept: NDArray[np.intp] | None = None) -> Slots:
    """Return rows drawn one by one, ordered by their strata and values: their own order does not matter.

    ``kept`` are the rows that take part; all by default. The slots are those of all rows.
    """
    order = np.argsort(pattern, kind="stable")
    if kept is not None:
        among = np.zeros(len(order), bool)
        among[kept] = True
        order = order[among[order]]
    size = padded(len(pattern) + 1, Step.ITEMS)
    units = make_singles(len(order), size, None if strata is None else strata[order])
    return Slots(units, size, order, np.ones(len(order), np.int64))


def slots_of_kinds(pattern: Int, strata: Int | None = None, kept: NDArray[np.intp] | None = None) -> Slots:
    """Return equal rows drawn together: a slot for each ``pattern`` (N,) from 0 on, also where no row is ``kept``."""
    first = np.unique(pattern, return_index=True)[1]
    size = padded(len(first), Step.ITEMS)
    count = np.bincount(pattern if kept is None else pattern[kept], minlength=size)
    most = shortfall_of(np.array(padded(len(pattern), Step.ITEMS)))  # the largest of all row counts of this size
    ordered = None if strata is None else strata[first]
    units = make_units(count[None], ordered, least_places=2 * int(most), large=False)  # subsets are drawn alike
    return Slots(units, size, first, count[: len(first)])


def group_factor(
    group: Int, scheme: DrawScheme, label: str, strata: Int | None = None, size: Int | None = None
) -> tuple[Factor, int, Int]:
    """Return groups drawn whole, as rows of ``group`` (N,) from 0 on; the slots of groups; and the slot of each row.

    The ``label`` names the random numbers. Of each of the ``strata`` (K,) of the groups every resample holds as many as
    there are. A group may stand for several equal units, ``size`` (K,), of which each is drawn.
    """
    n = int(group.max()) + 1
    order = np.arange(n) if strata is None else np.argsort(strata, kind="stable")
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    ordered = None if strata is None else strata[order]
    stream = as_leaf(stream_number(label), np.uint64)
    units: Any
    if scheme == DrawScheme.MULTINOMIAL and size is None:
        width = padded(n + 1, Step.ITEMS)
        units = make_singles(n, width, ordered)
    else:
        width = padded_columns(n)
        count = pad(np.ones(n, np.int64) if size is None else size[order], (width,))
        units = unit_draw(count[None], scheme, label, Packing(None), ordered).units
    return Factor(units, stream, None), width, place[group]


def stages_factor(levels: Sequence[Int], label: str) -> tuple[Factor, int, Int]:
    """Return groups drawn in stages, from the outermost of ``levels`` (N,) to the innermost; as `group_factor`.

    Groups of an inner level are told apart within those of the outer ones.
    """
    first, size, place = [], [], []
    parent = np.zeros(len(levels[0]), np.int64)
    n_parents = 1
    for level in levels:
        keys, number = np.unique(parent * (int(level.max()) + 1) + level, return_inverse=True)
        of_parent = keys // (int(level.max()) + 1)
        n_children = np.bincount(of_parent, minlength=n_parents)
        room = padded_few(n_parents)
        first.append(as_leaf(pad(np.cumsum(n_children) - n_children, (room,)), np.int32))
        size.append(as_leaf(pad(n_children, (room,)), np.int32))
        place.append(as_leaf(np.arange(padded_few(int(n_children.max()))), np.int32))
        parent, n_parents = number, len(keys)
    stages = Stages(tuple(first), tuple(size), tuple(place))
    return Factor(stages, as_leaf(stream_number(label), np.uint64), None), padded(n_parents + 1, Step.ITEMS), parent


def drawn_numbers(factor: Factor) -> int:
    """Return how many random numbers a lane takes for a factor."""
    if isinstance(factor.units, Stages):
        return int(np.prod([len(place) for place in factor.units.place]))
    return int(np.prod(factor.units.size.shape)) if isinstance(factor.units, Units) else 0


def stacked_rows(slots: Sequence[Slots], streams: Sequence[int]) -> WeighedRows:
    """Return the rows of several sets, drawn each by itself."""
    stream = as_leaf(streams, np.uint64)
    return WeighedRows((Factor(units=stacked([slot.units for slot in slots]), stream=stream, place=None),))


def form_of(slots: Slots) -> RowForm:
    """Return how `stacked_rows` are drawn."""
    return RowForm(DrawScheme.MULTINOMIAL, (slots.size,))


def lanes_task(
    program: Program[Any], arrays: Mapping[str, Any], static: Mapping[str, Any], budget: Budget, *, entries: int,
    lane_bytes: int, result_bytes: int,
) -> Task:  # fmt: skip
    """Return a program of `kernels.batch.weighted` as work for `LaneRun`.

    Its arguments are trees of arrays and static ones; the devices are added. A lane works on so many ``entries``, and
    takes ``lane_bytes``; all results take ``result_bytes``.
    """
    with double_precision():
        held = jax.device_put(dict(arrays))
    size = sum(x.nbytes for x in jax.tree.leaves(held)) + result_bytes
    order = list(program.signature.parameters)[:-1]  # the chunks come last, by position
    arguments = {**static, **held, "mesh": device_mesh()}
    return Task(partial(program, *(arguments[name] for name in order)), budget, entries, lane_bytes, size)


def pattern_of(values: Float, strata: Int | None = None) -> Int:
    """Return (N,) number of each row among the distinct rows, whose order depends on their strata and values alone."""
    if strata is not None:
        return distinct(strata * len(values) + pattern_of(values))[0]
    if values.shape[1] > len(values):  # by the bytes of whole rows; adding 0 turns -0 into 0
        rows = np.ascontiguousarray(values + 0.0).view(np.dtype((np.void, 8 * values.shape[1])))
        return np.unique(rows.reshape(-1), return_inverse=True)[1].reshape(-1)
    number = np.zeros(len(values), np.int64)
    for column in values.T:
        codes, levels = distinct(column)
        number, _ = distinct(number * len(levels) + codes)
    return number


# Of an item in a lane: its count, and the same number as what the columns are multiplied by.
_BYTES_PER_ITEM = 24
_EXACT = 2**24  # whole numbers under this have no rounding in single precision
#: Up to so many draws are always NumPy's, which makes them in .1 s: JAX takes 2 s to be imported and to compile.
_ON_HOST = 2**22
_HOST_BLOCK = 2**17  # draws that NumPy makes at a time: they stay in the cache


def resampled_sums(
    columns: Float, n_resamples: int, seed: int, stream: str, subsets: NDArray[np.intp] | None = None,
    run: LaneRun | None = None, strata: Int | None = None, part: int = 0,
) -> Float:  # fmt: skip
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
    number = np.arange(n_resamples)
    halved = [1 + number % (len(kept) - 1)] if len(kept) > 1 else []
    sets = np.concatenate([np.zeros_like(number), *halved])
    lanes, section = Lanes(sets, np.tile(number, 1 + len(halved))), f"items-{stream_number(stream):x}-{part}"
    run = run or LaneRun()
    draws = len(sets) * max(slot.drawn for slot in slots)
    if run.is_plain and (draws <= _ON_HOST or is_for_host(draws // 2)):  # a number of a refit takes twice as long
        sums = _sums_on_host(slots, streams, table, rows_of_sets, seed, lanes)
        run.advance(len(sets))
        return sums[:, of_column] if subsets is None else sums[:, of_column].reshape(2, n_resamples, -1)
    parts, order = _by_precision(table, len(columns))
    width = sum(x.shape[1] for x in parts)
    task = lanes_task(
        row_sums,
        {"rows": stacked_rows(slots, streams), "columns": parts, "entry": rows_of_sets, "seed": np.uint64(seed)},
        {"form": form_of(slots[0])},
        ITEMS,
        entries=len(table),
        lane_bytes=_BYTES_PER_ITEM * len(table) + 16 * width,
        result_bytes=16 * n_resamples * width * min(len(kept), 2),
    )
    sums = run.results(task, lanes, section)
    sums = sums[:, order[of_column]]
    return sums if subsets is None else sums.reshape(2, n_resamples, -1)


@one_blas_thread()
def _sums_on_host(
    slots: Sequence[Slots], streams: Sequence[int], table: Float, rows_of_sets: NDArray[np.int32] | None, seed: int,
    lanes: Lanes,
) -> Float:  # fmt: skip
    """Return (L, D) sums of the ``table`` (Q, D) in the lanes, by NumPy: from the draws that `row_sums` makes."""
    sums = np.zeros((len(lanes.slices), table.shape[1]))
    at_once = max(_HOST_BLOCK // max(slot.drawn for slot in slots), 1)
    for k, (padded_slots, stream) in enumerate(zip(slots, streams, strict=True)):
        slot = padded_slots.without_room()
        values = (table if rows_of_sets is None else table[rows_of_sets[k]])[: slot.size]
        mine = np.flatnonzero(lanes.slices == k)
        for start in range(0, len(mine), at_once):
            block = mine[start : start + at_once]
            factor = Factor(slot.units, as_leaf(stream, np.uint64), None)
            number, of_seed = as_leaf(lanes.numbers[block], np.int64), as_leaf(seed, np.uint64)
            # Blocks of one size: the rounding of BLAS depends on it, and must not depend on how many lanes follow.
            weights = np.zeros((at_once, slot.size))
            weights[: len(block)] = drawn_rows(factor, slot.size, DrawScheme.MULTINOMIAL, of_seed, number)
            sums[block] = (weights @ values)[: len(block)]
    return sums


def sums_by(group: NDArray[np.intp], values: Float) -> Float:
    """Return (G, ...) sums of (N, ...) ``values`` over the rows of each group that has any, by the groups' numbers."""
    order = np.argsort(group, kind="stable")
    return np.add.reduceat(values[order], np.flatnonzero(np.diff(group[order], prepend=-1)), axis=0)


def halves(columns: Float, n_halves: int, seed: int) -> NDArray[np.intp]:
    """Draw (H, N // 2) sorted row numbers of random halves of ``columns`` (N, K), the same in any order of rows."""
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
    """Return (N, D) distinct columns and which of them each of K is: binary judgments are their own squares."""
    seen: dict[bytes, int] = {}
    inverse = np.array([seen.setdefault(column.tobytes(), len(seen)) for column in np.ascontiguousarray(columns.T)])
    return columns[:, np.unique(inverse, return_index=True)[1]], inverse
