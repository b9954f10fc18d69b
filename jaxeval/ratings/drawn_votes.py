"""Votes as units of a bootstrap: which of them are drawn together, and what each draw adds to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.data.cells import Cells, count_by
from jaxeval.kernels.resample import DrawScheme, Packing, Units
from jaxeval.ratings.boards import Board
from jaxeval.ratings.connectivity import is_secure
from jaxeval.resampling.alias import Int
from jaxeval.resampling.units import UNIT_ROWS, make_units, pad, rounded


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


def drawn_entries(
    cells: Sequence[Cells],
    scheme: DrawScheme,
    clusters: Sequence[ClusterRows | None],
    n_pairs: int,
) -> tuple[list[Entries], bool, bool]:
    """What the draws of every slice add to, of one shape; whether packed words hold it; whether pairs have one column.

    Arguments as of `dense_refits`; ``n_pairs`` is P with padding.
    """
    clustered = any(c is not None and c.repeats for c in clusters)
    packed = not clustered and scheme != DrawScheme.BAYESIAN and all(own.hard for own in cells)
    if clustered:
        entries = [_cluster_entries(*given) for given in zip(cells, clusters, strict=True)]
    else:
        entries = [_cell_entries(own, 3 if packed else UNIT_ROWS) for own in cells]
    one_column = all(len(e.pair) == len(own.first) for e, own in zip(entries, cells, strict=True))
    return _padded(entries, n_pairs), packed, one_column


class VoteDraws(NamedTuple):
    """The multinomial draws of one board, kept by entry: those of `dense_refits`, which sums them by pair."""

    units: Units
    packing: Packing
    entries: Entries
    cluster: Int | None  # flat numbers of the units of the clusters of two battles or more; -1 of the others


def vote_draws(cells: Cells, clusters: ClusterRows | None) -> VoteDraws:
    """How the votes of ``cells`` are drawn, or their clusters; arguments as of a slice of `dense_refits`."""
    clustered = clusters is not None and clusters.repeats
    own = _cluster_entries(cells, clusters) if clustered else _cell_entries(cells, 3 if cells.hard else UNIT_ROWS)
    (entries,) = _padded([own], rounded(len(cells.first) + 1))
    number = None
    if clustered and clusters is not None:
        number = _cluster_numbers(clusters.size, len(_places(cells)[2]))
        number = np.where(number < 0, -1, number % UNIT_ROWS * entries.units.shape[1] + number // UNIT_ROWS)
    return VoteDraws(make_units(entries.units), Packing(None), entries, number)


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
