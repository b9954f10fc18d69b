"""The plan of a bootstrap: which units are drawn, from which tables, and what each adds to."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import pdtr

from jaxeval.alias import Int, category_table, poisson_tables
from jaxeval.boards import Board, battles_per_model, inverse_information
from jaxeval.cells import Cells, count_by
from jaxeval.connectivity import is_secure, per_model
from jaxeval.kernels import batch
from jaxeval.kernels.connectivity import IDENTIFIED
from jaxeval.kernels.pair_tables import Layout
from jaxeval.kernels.resample import Singles, Tally, Units

SCHEMES = {
    "multinomial": batch.MULTINOMIAL,
    "poisson": batch.POISSON,
    "bayesian": batch.BAYESIAN,
}

# Least sizes of arrays, so that small boards share one compilation, which takes far longer than what they add.
_SMALLEST_TOP_UP, _SMALLEST_TABLE, _SMALLEST_CATEGORY = 1024, 8192, 512

# Battles drawn one by one: the total of their Poisson draws in standard deviations under N, at which one resample in
# 30,000 is drawn again; and a battle is drawn more often than this with less than probability 2**-32.
_SINGLES_SHORTFALL, _THRESHOLDS = 4.0, 12

# Units stacked in one column, and the bits of the row in a unit's number. Constants, as all that places a slice's
# units, and thereby names their random numbers, must not depend on the other slices.
UNIT_ROWS, ROW_BITS = 4, 2


class Entries(NamedTuple):
    """What a slice's draws add to: (K, Q) entries, each of a pair column, and the units that they belong to."""

    units: Int  # (Ku, Qu) battles, or clusters, in each unit
    weight: NDArray[np.float64]  # (K, Q)
    target: NDArray[np.float64]  # (K, Q)
    pair: Int  # (Q,)
    unit: Int | None  # (K, Q) unit number, column * UNIT_ROWS + row, where units are not entries; row-major once padded
    cell: Int  # (K, Q) the entry's cell; no meaning where the weight is 0


class ClusterRows(NamedTuple):
    """Whose battles are drawn together: distinct (cluster, cell), sorted, whatever rows the battles were in."""

    cluster: Int  # (R,) from 0 to K - 1
    cell: Int  # (R,)
    times: Int  # (R,) battles
    size: Int  # (K,) battles of each cluster

    @property
    def repeats(self) -> bool:
        """Whether some cluster holds several battles."""
        return bool((self.size > 1).any())


def cluster_rows(cluster: NDArray[np.intp], cell_of_row: NDArray[np.intp], count: Int | None) -> ClusterRows:
    """The battles of rows by cluster and cell; rows stand for ``count`` battles each, None for one."""
    names, number = np.unique(cluster, return_inverse=True)
    n_cells = int(cell_of_row.max()) + 1
    keys, row = np.unique(number * n_cells + cell_of_row, return_inverse=True)
    times = count_by(row, count, len(keys))
    cluster, cell = np.divmod(keys, n_cells)
    return ClusterRows(cluster, cell, times, count_by(cluster, times, len(names)))


class Plan(NamedTuple):
    """Everything that the batched refit needs, slices stacked."""

    problems: batch.Problem
    tally: Tally
    n_pairs: int
    top_up_size: int
    secure: NDArray[np.bool_]  # (S,) practically no resample separates models


def make_plan(
    boards: Sequence[Board],
    scheme: int,
    labels: Sequence[str],
    ridge: float,
    clusters: Sequence[ClusterRows | None],
) -> Plan:
    """The plan for fitted ``boards``, one a slice.

    Args:
        labels: names of the slices, which name their random numbers.
        clusters: per slice, what is drawn together, or None where battles are.
    """
    # One pair more than there are: models that never met share an empty one.
    n_pairs = rounded(max(len(board.cells.first) for board in boards) + 1)
    entries, packed, one_column = drawn_entries([b.cells for b in boards], scheme, clusters, n_pairs)
    heaviest = max(battles_per_model(board.cells, len(board.theta)).max() for board in boards)
    tally = Tally(packed_word(entries, heaviest) if packed else None, ROW_BITS)
    totals = [int(e.units.sum()) for e in entries]
    shortfalls = [shortfall_of(n) for n in totals]
    top_up_size = top_up_size_of(max(shortfalls))
    multinomial = scheme == batch.MULTINOMIAL
    inverse, diagonal = inverse_information(boards, ridge)
    size = inverse.shape[-1]
    units = [
        make_units(e.units, tally, shortfall if multinomial else 0)
        for e, shortfall in zip(entries, shortfalls, strict=True)
    ]
    layouts = [_layout(board, e, size, n_pairs, packed, one_column) for board, e in zip(boards, entries, strict=True)]
    problems = [
        batch.Problem(
            units=unit,
            layout=layout,
            stream=_as(stream_number(label), np.uint64),
            start=_as(pad(board.theta, (size,)), np.float64),
            inverse=_as(inverse[s], np.float64),
            information_diagonal=_as(diagonal[s], np.float64),
            main_battles=_as(pad(main_battles(board), (size,)), np.float64),
        )
        for s, (unit, layout, label, board) in enumerate(zip(units, layouts, labels, boards, strict=True))
    ]
    secure = np.array([is_secure_board(board, cluster) for board, cluster in zip(boards, clusters, strict=True)])
    return Plan(_stack(problems), tally, n_pairs, top_up_size, secure)


def drawn_entries(
    cells: Sequence[Cells],
    scheme: int,
    clusters: Sequence[ClusterRows | None],
    n_pairs: int,
) -> tuple[list[Entries], bool, bool]:
    """What the draws of every slice add to, of one shape; whether packed words hold it; whether pairs have one column.

    Arguments as of `make_plan`; ``n_pairs`` is P with padding.
    """
    clustered = any(c is not None and c.repeats for c in clusters)
    packed = not clustered and scheme != batch.BAYESIAN and all(own.hard for own in cells)
    if clustered:
        entries = [_cluster_entries(*given) for given in zip(cells, clusters, strict=True)]
    else:
        entries = [_cell_entries(own, 3 if packed else UNIT_ROWS) for own in cells]
    one_column = all(len(e.pair) == len(own.first) for e, own in zip(entries, cells, strict=True))
    return _padded(entries, n_pairs), packed, one_column


class VoteDraws(NamedTuple):
    """The multinomial draws of one board, kept by entry: those of `make_plan`, which sums them by pair."""

    units: Units
    tally: Tally
    top_up_size: int
    entries: Entries
    cluster: Int | None  # flat numbers of the units of the clusters of two battles or more; -1 of the others


def vote_draws(cells: Cells, clusters: ClusterRows | None) -> VoteDraws:
    """How the votes of ``cells`` are drawn, or their clusters; arguments as of a slice of `make_plan`."""
    clustered = clusters is not None and clusters.repeats
    own = _cluster_entries(cells, clusters) if clustered else _cell_entries(cells, 3 if cells.hard else UNIT_ROWS)
    (entries,) = _padded([own], rounded(len(cells.first) + 1))
    tally = Tally(None, ROW_BITS)
    shortfall = shortfall_of(int(entries.units.sum()))
    number = None
    if clustered and clusters is not None:
        number = _cluster_numbers(clusters.size, len(_places(cells)[2]))
        number = np.where(number < 0, -1, number % UNIT_ROWS * entries.units.shape[1] + number // UNIT_ROWS)
    return VoteDraws(make_units(entries.units, tally, shortfall), tally, top_up_size_of(shortfall), entries, number)


def shortfall_of(total: int) -> int:
    """By how much the Poisson draws of ``total`` battles aim under it.

    Beyond k standard deviations (sqrt(total)) either way the draws of a chunk are repeated, which costs the same on
    every board, as chunks have one size in memory; within, each missing battle costs a random access. The sum is least
    where exp(-k^2 / 2) is proportional to sqrt(total); timings gave the factor (k is 4.0 at 25,000 battles, 3.4 at
    2 million).
    """
    sd = np.sqrt(total)
    k = np.sqrt(2 * np.log(max(4.7e5 / sd, 20.0)))
    return min(int(np.ceil(k * sd)), total)


def top_up_size_of(shortfall: int, least: int = _SMALLEST_TOP_UP) -> int:
    """Draws that a top-up has room for: twice the shortfall, rounded up."""
    return max(-(-2 * shortfall // 128) * 128, least)


def _as(x: Any, dtype: type) -> Any:
    """``x`` as a NumPy array, untyped: the kernels' tuples, written for JAX arrays, hold NumPy ones until the call."""
    return np.asarray(x, dtype)


def stream_number(label: str) -> int:
    """A number for a slice's name, the same on every machine; 0 for the whole board."""
    return int.from_bytes(hashlib.blake2b(label.encode(), digest_size=8).digest()) if label else 0


def _grid(pair: Int, rows: int) -> tuple[Int, Int, Int]:
    """Row and column of entries sorted by ``pair``, and each column's pair: every ``rows`` entries a new column."""
    per_pair = np.bincount(pair)
    within = np.arange(len(pair)) - (np.cumsum(per_pair) - per_pair)[pair]
    columns = -(-per_pair // rows)
    start = np.cumsum(columns) - columns
    return within % rows, start[pair] + within // rows, np.repeat(np.arange(len(per_pair)), columns)


def _places(cells: Cells) -> tuple[Int, Int, Int]:
    """Row and column of every cell, and each column's pair.

    Hard outcomes have one column a pair, whose row 0, 1, 2 are its losses, ties and wins.
    """
    if cells.hard:
        return (2 * cells.target).astype(np.int64), cells.pair, np.arange(len(cells.first))
    return _grid(cells.pair, UNIT_ROWS)


def _cell_entries(cells: Cells, n_rows: int) -> Entries:
    """Battles drawn one by one: every cell is a unit and an entry."""
    row, column, pair = _places(cells)
    shape = (n_rows, len(pair))
    count, weight, target = np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape)
    cell = np.zeros(shape, np.int64)
    count[row, column] = cells.count
    weight[row, column] = cells.weight
    target[row, column] = cells.target
    cell[row, column] = np.arange(len(cells.count))
    return Entries(count, weight, target, pair, None, cell)


class Members(NamedTuple):
    """Units on a grid, and the battles that each draws: ``times`` (E,) battles of ``cell`` (E,) for ``unit`` (E,)."""

    units: Int  # (UNIT_ROWS, Q) battles, or clusters, in each unit
    unit: Int  # unit number, column * UNIT_ROWS + row
    cell: Int
    times: Int


def cell_members(cells: Cells) -> Members:
    """Battles drawn one by one: every cell is a unit."""
    row, column, pair = _places(cells)
    units = np.zeros((UNIT_ROWS, len(pair)), np.int64)
    units[row, column] = cells.count
    cell = np.arange(len(cells.count))
    return Members(units, column * UNIT_ROWS + row, cell, np.ones(len(cell), np.int64))


def cluster_members(cells: Cells, clusters: ClusterRows) -> Members:
    """Clusters: those of one battle are exchangeable within their cell, any other is a unit of its own.

    The former are placed as battles drawn one by one, the latter in further columns.
    """
    size = clusters.size
    alone = size[clusters.cluster] == 1
    row, column, pair = _places(cells)
    singles = np.bincount(clusters.cell[alone], minlength=len(cells.count))
    multi = np.flatnonzero(size > 1)
    units = np.zeros((UNIT_ROWS, len(pair) + -(-len(multi) // UNIT_ROWS)), np.int64)
    units[row, column] = singles
    number = _cluster_numbers(size, len(pair))
    units[number[multi] % UNIT_ROWS, number[multi] // UNIT_ROWS] = 1
    single = np.flatnonzero(singles)
    unit = np.concatenate([column[single] * UNIT_ROWS + row[single], number[clusters.cluster[~alone]]])
    cell = np.concatenate([single, clusters.cell[~alone]])
    times = np.concatenate([np.ones(len(single), np.int64), clusters.times[~alone]])
    order = np.argsort(cell, kind="stable")
    return Members(units, unit[order], cell[order], times[order])


def _cluster_entries(cells: Cells, clusters: ClusterRows | None) -> Entries:
    """Every member of a unit is an entry."""
    if clusters is None:
        raise ValueError("all slices must have clusters, or none")
    units, unit, cell, times = cluster_members(cells, clusters)
    pair_of_entry = cells.pair[cell]
    per_pair = np.bincount(pair_of_entry)
    rows = int(min(per_pair.max(), max(UNIT_ROWS, np.ceil(per_pair.mean()))))
    row, column, pair = _grid(pair_of_entry, rows)
    shape = (rows, len(pair))
    entry_unit, weight, target = np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape)
    entry_cell = np.zeros(shape, np.int64)
    entry_unit[row, column] = unit
    weight[row, column] = times * cells.weight[cell]
    target[row, column] = cells.target[cell]
    entry_cell[row, column] = cell
    return Entries(units, weight, target, pair, entry_unit, entry_cell)


def _cluster_numbers(size: Int, n_columns: int) -> Int:
    """Unit numbers of clusters of the given sizes: those of several battles after ``n_columns``, -1 for the others."""
    return np.where(size > 1, n_columns * UNIT_ROWS + np.cumsum(size > 1) - 1, -1)


def rounded(size: int) -> int:
    """``size`` rounded up by at most a sixteenth, so that similar boards share one compilation, and all small ones."""
    step = max(128, 1 << max(size.bit_length() - 5, 0))
    return -(-size // step) * step


def _padded(entries: Sequence[Entries], n_pairs: int) -> list[Entries]:
    """All slices' entries on grids of one shape; what is added has count and weight 0."""
    own_units = entries[0].unit is None
    n_columns = max(len(e.pair) for e in entries)
    n_columns = n_pairs if n_columns <= n_pairs else rounded(n_columns)
    n_rows = max(e.weight.shape[0] for e in entries)
    n_units = rounded(max(e.units.shape[1] for e in entries))
    grid = (n_rows, n_columns)
    return [
        Entries(
            units=pad(e.units, grid if own_units else (UNIT_ROWS, n_units)),
            weight=pad(e.weight, grid),
            target=pad(e.target, grid),
            pair=np.pad(e.pair, (0, n_columns - len(e.pair)), constant_values=n_pairs - 1),
            unit=None if e.unit is None else pad(e.unit % UNIT_ROWS * n_units + e.unit // UNIT_ROWS, grid),
            cell=pad(e.cell, grid),
        )
        for e in entries
    ]


def packed_word(entries: Sequence[Entries], heaviest: float) -> type:
    """Narrowest packed word that is exact in every resample.

    Half of it must hold twice the battles of any pair; and a model's score, a sum of halves in single precision for 32
    bits, must stay under 2**23.
    """
    most = max(int(e.units.sum(0).max()) for e in entries)
    fits = 2 * _largest_draw(most) < 2**16 and _largest_draw(heaviest) < 2**23
    return np.uint32 if fits else np.uint64


def _largest_draw(count: float) -> float:
    return count + 12 * float(np.sqrt(count)) + 40


def make_units(count: Int, tally: Tally, shortfall: int) -> Units:
    """Units of sizes ``count`` (K, Q), whose Poisson rates fall short of the total by ``shortfall``."""
    which, distinct = pd.factorize(count.reshape(-1), sort=True)  # by hashing: ten times as fast as np.unique
    which = which.reshape(count.shape)
    total = int(count.sum())
    if total >= 2**31:
        raise ValueError(f"a resample draws fewer than {2**31:,} battles or clusters, got {total:,}")
    tables = poisson_tables(distinct.astype(np.float64) * (1 - shortfall / total))
    words = np.zeros(1 << max(len(tables.words) - 1, _SMALLEST_TABLE - 1).bit_length(), np.uint32)
    words[: len(tables.words)] = tables.words
    # Without the padding columns, which depend on the other slices: the picks from this table must not.
    used = count[:, : int(np.flatnonzero(count.sum(0))[-1]) + 1]
    by_number = np.zeros((used.shape[1], 1 << tally.row_bits), np.int64)
    by_number[:, : used.shape[0]] = used.T
    category = np.zeros(rounded(max(by_number.size, _SMALLEST_CATEGORY)), np.uint64)
    category[: by_number.size] = category_table(by_number.reshape(-1))
    return Units(
        size=_as(count, np.int32),
        shift=_as(32 - tables.bits[which], np.uint32),
        offset=_as(tables.offset[which], np.int32),
        first=_as(tables.first[which], np.int32),
        table=_as(words, np.uint32),
        category=_as(category, np.uint64),
        n_categories=_as(by_number.size, np.uint64),
        total=_as(total, np.int32),
        shortfall=_as(shortfall, np.int32),
    )


def make_singles(n: int) -> Singles:
    """N battles, or items, drawn one by one."""
    below = pdtr(np.arange(_THRESHOLDS), 1 - _singles_shortfall(n) / n)
    threshold = np.minimum(np.rint(below * 2.0**32), 2.0**32 - 1)
    return Singles(_as(n, np.int32), _as(_singles_shortfall(n), np.int32), _as(threshold, np.uint32))


def singles_top_up_size(n: int) -> int:
    """Draws that a top-up of ``n`` or fewer battles has room for."""
    return -(-2 * _singles_shortfall(n) // 64) * 64


def _singles_shortfall(n: int) -> int:
    return min(int(np.ceil(_SINGLES_SHORTFALL * np.sqrt(n))), n)


def _layout(board: Board, entries: Entries, size: int, n_pairs: int, packed: bool, one_column: bool) -> Layout:
    cells = board.cells
    position = np.full((size, size), n_pairs - 1, np.int32)
    pairs = np.arange(len(cells.first), dtype=np.int32)
    position[cells.first, cells.second] = position[cells.second, cells.first] = pairs
    factor = None
    if board.pair_weight is not None:
        factor = np.zeros((size, size))
        factor[cells.first, cells.second] = factor[cells.second, cells.first] = board.pair_weight
    return Layout(
        position=_as(position, np.int32),
        pair_weight=None if factor is None else _as(factor, np.float64),
        weight=None if packed else _as(entries.weight, np.float64),
        target=None if packed else _as(entries.target, np.float64),
        unit=None if entries.unit is None else _as(entries.unit, np.int32),
        pair=None if one_column else _as(entries.pair, np.int32),
    )


def is_secure_board(board: Board, clusters: ClusterRows | None) -> bool:
    """See `connectivity.is_secure`; a unit is a battle, or a cluster that holds such a battle."""
    if not board.active.all() or (board.connectivity.standing != 0).any():
        return False
    cells, m = board.cells, len(board.theta)
    count = cells.count.astype(float)
    if clusters is not None:
        # A cluster counts once, however many of its battles qualify: each has its share of the cluster.
        share = clusters.times / clusters.size[clusters.cluster]
        count = np.bincount(clusters.cell, share, minlength=len(cells.count))
    units = np.zeros((m, m))
    n_pairs = len(cells.first)
    units[cells.first, cells.second] = np.bincount(cells.pair, count * (cells.target > 0), n_pairs)
    units[cells.second, cells.first] = np.bincount(cells.pair, count * (cells.target < 1), n_pairs)
    return is_secure(units)


def main_battles(board: Board) -> NDArray[np.float64]:
    """(M,) battles of the models of the main group.

    Where a resample falls into several groups, it is this number, not its own, that chooses the main one: the same in
    every resample that has it. Groups of about equal size would else take turns.
    """
    battles = per_model(board.cells.first, board.cells.second, board.n, len(board.theta))
    return np.where(board.connectivity.standing == IDENTIFIED, battles, 0.0)


def pad(x: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """``x`` with zeros up to ``shape``."""
    return np.pad(x, [(0, size - have) for size, have in zip(shape, x.shape, strict=True)])


def _stack(problems: Sequence[batch.Problem]) -> batch.Problem:
    """Slices on a leading axis; alias tables, which alone differ in size, padded with zeros."""
    import jax

    def stack(*leaves: NDArray[Any]) -> NDArray[Any]:
        arrays = [np.asarray(leaf) for leaf in leaves]
        if len({a.shape for a in arrays}) == 1:
            return np.stack(arrays)
        return np.stack([np.pad(a, (0, max(map(len, arrays)) - len(a))) for a in arrays])

    return jax.tree.map(stack, *problems)
