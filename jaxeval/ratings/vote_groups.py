"""Votes as units of a bootstrap: which are drawn together, where they stand on a grid, and how their scores vary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Float, Int, as_leaf
from jaxeval.data.battles import Battles
from jaxeval.data.cells import Cells, count_by
from jaxeval.execution.shapes import BATTLE_PLACES, UNIT_ROWS, Step, entry_rows, padded, padded_columns
from jaxeval.kernels.lane_draws import DrawnSums
from jaxeval.kernels.pair_tables import Layout
from jaxeval.kernels.resample import DrawScheme, Packing
from jaxeval.lazy_names import pd, scipy
from jaxeval.ratings.boards import Board
from jaxeval.ratings.connectivity import secure_models
from jaxeval.resampling.units import (
    UnitDraw,
    checked_strata,
    pad,
    shortfall_of,
    stratum_of_groups,
    unit_draw,
    without_tables,
)
from jaxeval.statistics.clusters import cluster_factors

# If a pair has fewer battles, twice those of a resample take less than half of 64 bits.
_MOST_OF_HALF = 2**30
# If a pair has fewer battles, a resample has under 2**20 of them: twice their score takes less than a third of 64 bits.
_MOST_OF_THIRD = 1_000_000
_OF_WHOLE_BOARDS: WeakKeyDictionary[Cells, dict[tuple[tuple[int, ...], DrawScheme], UnitDraw]] = WeakKeyDictionary()


class ClusterRows(NamedTuple):
    """Which battles are drawn together: distinct (cluster, cell), sorted, whatever rows the battles were in."""

    cluster: Int  # (R,) from 0 to K - 1
    cell: Int  # (R,)
    times: Int  # (R,) battles
    size: Int  # (K,) battles of each cluster

    @property
    def repeats(self) -> bool:
        """Whether some cluster holds several battles."""
        return bool((self.size > 1).any())


def cluster_rows(cluster: NDArray[np.intp], cell_of_row: NDArray[np.intp], count: Int | None) -> ClusterRows:
    """Return the battles of rows by cluster and cell; rows stand for ``count`` battles each, None for one."""
    names, number = np.unique(cluster, return_inverse=True)
    n_cells = int(cell_of_row.max()) + 1
    keys, row = np.unique(number * n_cells + cell_of_row, return_inverse=True)
    times = count_by(row, count, len(keys))
    cluster, cell = np.divmod(keys, n_cells)
    return ClusterRows(cluster, cell, times, count_by(cluster, times, len(names)))


class StratumRows(NamedTuple):
    """Within which strata votes are drawn: distinct (stratum, cell), sorted, whatever rows the votes were in."""

    stratum: Int  # (R,) from 0 to S - 1
    cell: Int  # (R,)
    alone: Int  # (R,) votes that are drawn one by one: those of clusters of several are not
    size: Int  # (S,) votes, or clusters, of each stratum
    of_cluster: Int | None  # (K,) stratum of each cluster


class UnitMembers(NamedTuple):
    """Units on a grid, and the battles that each draws: ``times`` (E,) battles of ``cell`` (E,) for ``unit`` (E,)."""

    units: Int  # (UNIT_ROWS, C) battles, or clusters, in each unit
    unit: Int  # unit number, column * UNIT_ROWS + row
    cell: Int
    times: Int
    stratum: Int | None  # (C,) of each column of units; None where there is one
    cluster: Int | None  # (K,) unit numbers of the clusters of several battles, -1 of the others

    def drawn(self, n_columns: int, scheme: DrawScheme, label: str) -> tuple[UnitDraw, Int]:
        """Return the draw of the units on a grid of ``n_columns``, and (E,) the place of each unit on it, row-major.

        There are as many places for single draws as votes on a full grid need: grids of one size share a compilation.
        """
        column, row = np.divmod(self.unit, UNIT_ROWS)
        grid = pad(self.units, (UNIT_ROWS, n_columns))
        places = max(BATTLE_PLACES, 2 * int(shortfall_of(np.array(grid.size))))
        return unit_draw(grid, scheme, label, Packing(None), self.stratum, places), row * n_columns + column

    def of_cells(self, number: Int) -> UnitMembers:
        """Give the same units with the battles of another table of cells: ``number`` (C,) of each cell, -1 for none."""
        cell = number[self.cell]
        order = np.argsort(cell, kind="stable")
        there = order[cell[order] >= 0]
        return self._replace(unit=self.unit[there], cell=cell[there], times=self.times[there])


class VoteGroups(NamedTuple):
    """Which votes of a slice are drawn together, and within which strata."""

    clusters: ClusterRows | None = None
    strata: StratumRows | None = None  # None also for a single stratum
    shared: UnitMembers | None = (
        None  # the units of a draw from more votes than the slice's own, which other boards share
    )

    @property
    def repeating(self) -> ClusterRows | None:
        """The clusters, where some hold several votes."""
        return self.clusters if self.clusters is not None and self.clusters.repeats else None

    @property
    def together(self) -> bool:
        """Whether units are drawn that are not single votes of the slice."""
        return self.repeating is not None or self.shared is not None


class GroupCodes(NamedTuple):
    """The clusters and strata of rows of votes, by number; None for none."""

    cluster: NDArray[np.intp] | None  # (R,)
    names: pd.Index  # of the clusters
    stratum: NDArray[np.intp] | None  # (R,)
    strata: str  # the column of strata
    votes: Int | None  # (R,) that each row stands for; None: one

    def __call__(self, rows: slice | NDArray[np.intp], cell: NDArray[np.intp]) -> VoteGroups:
        """Return the groups of some ``rows``, from the cell of each.

        Raises:
            DataError: a cluster lies in several strata.
        """
        count = None if self.votes is None else self.votes[rows]
        clusters = None if self.cluster is None else cluster_rows(self.cluster[rows], cell, count)
        stratum = None if self.stratum is None else checked_strata(self.stratum[rows])
        if stratum is None:
            return VoteGroups(clusters)
        if self.cluster is None:
            return VoteGroups(None, _stratum_rows(stratum, cell, count))
        clusters_there, number = np.unique(self.cluster[rows], return_inverse=True)
        by_cluster = stratum_of_groups(stratum, number, self.names[clusters_there], self.strata)
        times = np.ones(len(cell), np.int64) if count is None else count
        alone = count_by(number, times, len(clusters_there))[number] == 1
        rows_of_strata = _stratum_rows(stratum, cell, np.where(alone, times, 0))
        return VoteGroups(clusters, rows_of_strata._replace(size=np.bincount(by_cluster), of_cluster=by_cluster))


def vote_groups(battles: Battles, cluster: str | None, strata: str | None) -> GroupCodes:
    """Return what gives the clusters and strata of any rows of ``battles``, by the columns of those names.

    Raises:
        DataError: there is no such column, or values are missing.
    """
    of_cluster, names = (None, pd.Index([])) if cluster is None else battles.codes(cluster)
    stratum = None if strata is None else battles.codes(strata)[0]
    return GroupCodes(of_cluster, names, stratum, strata or "", battles.count)


def _stratum_rows(stratum: Int, cell_of_row: NDArray[np.intp], times: Int | None) -> StratumRows:
    """Return the strata of rows whose votes, ``times`` each (None: one), are drawn one by one."""
    n_cells = int(cell_of_row.max()) + 1
    keys, row = np.unique(stratum * n_cells + cell_of_row, return_inverse=True)
    of_row, cell = np.divmod(keys, n_cells)
    size = count_by(stratum, times, int(stratum.max()) + 1)
    return StratumRows(stratum=of_row, cell=cell, alone=count_by(row, times, len(keys)), size=size, of_cluster=None)


def score_squares(scores: scipy.sparse.csr_array, count: Int, drawn: VoteGroups) -> Float:
    """Return (P, P) sum of the outer products of independent scores: of battles, or of whole clusters if there are any.

    Sums of clusters have the factors of `cluster_factors`, as the estimate follows the largest ones. All are the
    middle of the sandwich (White 1982, DOI 10.2307/1912526).

    Within strata the mean score of the stratum is taken off: differences between strata do not count as variance.

    Args:
        scores: (C, P) score of one battle of each cell, its weight included.
        count: (C,) battles of the cells.
        drawn: which battles belong together, and to which strata. Clusters of one battle each give what battles give,
            bit for bit; a single cluster of several gives NaN, as its scores add up to zero at the estimate.
    """
    clusters, strata = drawn.repeating, drawn.strata
    if clusters is None:
        squares = scores.T @ scores.multiply(count[:, None])
        members = None if strata is None else _table(strata.alone, strata.stratum, strata.cell, len(count)) @ scores
    elif len(clusters.size) == 1:
        return np.full((scores.shape[1],) * 2, np.nan)
    else:
        of_cluster = _table(clusters.times, clusters.cluster, clusters.cell, len(count)) @ scores
        of_cluster = scipy.sparse.csr_array(of_cluster.multiply(cluster_factors(clusters.size)[:, None]))
        squares = of_cluster.T @ of_cluster
        members = None
        if strata is not None and strata.of_cluster is not None:
            k = len(strata.of_cluster)
            members = _table(np.ones(k), strata.of_cluster, np.arange(k), k) @ of_cluster
    if strata is not None and members is not None:
        squares = squares - members.T @ members.multiply(1 / strata.size[:, None])
    return np.asarray(squares.toarray())


def _table(times: NDArray[Any], row: Int, column: Int, width: int) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array((times.astype(float), (row, column)), (int(row.max()) + 1, width))


class Entries(NamedTuple):
    """What a slice's draws add to: E entries on a (K, Q) grid, and the units that they belong to."""

    units: Int  # (Ku, Qu) battles, or clusters, in each unit
    row: Int  # (E,)
    column: Int  # (E,)
    cell: Int  # (E,) of the entry's battles
    times: Int | None  # (E,) how many of them a draw of the unit adds; None for one
    pair: Int  # (Q,) of each column
    n_rows: int  # K
    unit: Int | None  # (E,) unit number, column * UNIT_ROWS + row, where units are not entries
    stratum: Int | None  # (C,) stratum of the first C columns of units; the others are empty. None for one stratum

    def on_grid(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return (K, Q) ``values`` (E,) of the entries, 0 elsewhere."""
        grid = np.zeros((self.n_rows, len(self.pair)), values.dtype)
        grid[self.row, self.column] = values
        return grid

    @property
    def place(self) -> Int:
        """(E,) flat numbers of the units, (Ku, Qu) row by row."""
        if self.unit is None:
            return self.row * self.units.shape[1] + self.column
        return self.unit % UNIT_ROWS * self.units.shape[1] + self.unit // UNIT_ROWS

    def sums(self, shares: Iterable[NDArray[Any]]) -> DrawnSums:
        """Return what draws add to by pair: ``shares``, (cells,) each, of one battle of each cell; NumPy arrays."""
        times = 1.0 if self.times is None else self.times
        return DrawnSums(
            unit=None if self.unit is None else as_leaf(self.on_grid(self.place), np.int32),
            of_column=as_leaf(self.pair, np.int32),
            shares=tuple(as_leaf(self.on_grid(times * share[self.cell]), np.float64) for share in shares),
        )


class DrawnEntries(NamedTuple):
    """What the draws of several slices add to, in one shape."""

    of_slice: list[Entries]
    cells: Sequence[Cells]
    packed: bool  # whether packed words hold the draws
    one_column: bool  # whether every pair has one column
    keep_ties: bool  # whether ties are kept apart

    def packing(self, heaviest: float) -> Packing:
        """Return how draws are kept if no model has more than ``heaviest`` battles."""
        if not self.packed:
            return Packing(None, self.keep_ties)
        return Packing(packed_word(self.cells, heaviest, 3 if self.keep_ties else 2), self.keep_ties)

    def draw(self, s: int, scheme: DrawScheme, label: str, packing: Packing) -> UnitDraw:
        """Return what is drawn for slice ``s``, called ``label``.

        The tables of a whole board are kept as long as its cells: they are the same for every seed and every number of
        resamples.
        """
        entries = self.of_slice[s]
        if label or entries.unit is not None or entries.stratum is not None:
            return unit_draw(entries.units, scheme, label, packing, entries.stratum)
        kept = _OF_WHOLE_BOARDS.setdefault(self.cells[s], {})
        key = entries.units.shape, scheme
        if key not in kept:
            kept[key] = unit_draw(entries.units, scheme, label, packing)
        return kept[key]._replace(packing=packing)

    def layout(self, s: int, position: Int, pair_weight: NDArray[np.float64] | None) -> Layout:
        """Return how the kernels turn the draws of slice ``s`` into sums by pair; NumPy arrays."""
        entries, cells = self.of_slice[s], self.cells[s]
        weight = target = unit = None
        if not self.packed:
            weights = cells.weight[entries.cell]
            weights = weights if entries.times is None else entries.times * weights
            weight = as_leaf(entries.on_grid(weights), np.float64)
            target = as_leaf(entries.on_grid(cells.target[entries.cell]), np.float64)
            unit = None if entries.unit is None else as_leaf(entries.on_grid(entries.place), np.int32)
        return Layout(
            position=as_leaf(position, np.int32),
            pair_weight=None if pair_weight is None else as_leaf(pair_weight, np.float64), weight=weight, target=target,
            unit=unit, pair=None if self.one_column else as_leaf(entries.pair, np.int32),
        )  # fmt: skip


def drawn_entries(
    cells: Sequence[Cells], scheme: DrawScheme, groups: Sequence[VoteGroups], n_pairs: int, keep_ties: bool = False
) -> DrawnEntries:
    """Return what the draws add to; arguments as in `dense_refits`, and ``n_pairs`` is P with padding."""
    clustered, stratified = any(g.together for g in groups), any(g.strata for g in groups)
    most = max(of_slice.battles.max() for of_slice in cells)
    packed = not clustered and scheme != DrawScheme.BAYESIAN and all(of_slice.hard for of_slice in cells)
    packed = packed and most < (_MOST_OF_THIRD if keep_ties else _MOST_OF_HALF)  # by two numbers a word, or three
    n_rows = 3 if packed else UNIT_ROWS
    entries = [
        _member_entries(of_slice, unit_members(of_slice, g)) if clustered else _cell_entries(of_slice, n_rows, g.strata)
        for of_slice, g in zip(cells, groups, strict=True)
    ]
    one_column = not stratified and all(
        len(e.pair) == len(of_slice.first) for e, of_slice in zip(entries, cells, strict=True)
    )
    if stratified:  # a slice of one stratum says so, too: all slices have one form
        entries = [
            e if e.stratum is not None else e._replace(stratum=np.zeros(e.units.shape[1], np.int64)) for e in entries
        ]
    return DrawnEntries(_padded(entries, n_pairs), cells, packed, one_column, keep_ties)


def are_large(cells: Cells, groups: VoteGroups) -> bool:
    """Return whether the votes of ``cells``, or their clusters, are `without_tables`: not drawn beside other boards."""
    if groups.together:
        return without_tables(unit_members(cells, groups).units)
    return without_tables(cells.count if groups.strata is None else groups.strata.alone)


def vote_draws(
    cells: Cells, groups: VoteGroups, scheme: DrawScheme = DrawScheme.MULTINOMIAL, label: str = "",
    n_pairs: int | None = None,
) -> tuple[UnitDraw, Entries, Int | None]:  # fmt: skip
    """Return how the votes of ``cells``, or their clusters, are drawn; arguments as for a slice of `dense_refits`.

    The draws are those of `dense_refits`, which sums them by pair. ``n_pairs`` is the number of pairs with padding.

    Returns:
        The draw; what it adds to, by entry; and with clusters flat numbers of the units of those of two battles or
        more, -1 of the others.
    """
    number = None
    if groups.repeating:
        members = unit_members(cells, groups)
        of_cells, number = _member_entries(cells, members), members.cluster
    else:
        of_cells = _cell_entries(cells, 3 if cells.hard else UNIT_ROWS, groups.strata)
    n_columns = None if n_pairs is None else padded(len(of_cells.pair), Step.COLUMNS)
    (entries,) = _padded([of_cells], n_pairs or padded_columns(len(cells.first) + 1), n_columns)
    if number is not None:
        number = np.where(number < 0, -1, entries._replace(unit=number).place)
    return unit_draw(entries.units, scheme, label, Packing(None), entries.stratum), entries, number


def _grid(pair: Int, rows: int) -> tuple[Int, Int, Int]:
    """Return row and column of entries sorted by ``pair``, and columns' pairs: every ``rows`` entries a new column."""
    per_pair = np.bincount(pair)
    within = np.arange(len(pair)) - (np.cumsum(per_pair) - per_pair)[pair]
    columns = -(-per_pair // rows)
    start = np.cumsum(columns) - columns
    return within % rows, start[pair] + within // rows, np.repeat(np.arange(len(per_pair)), columns)


def _cell_entries(cells: Cells, n_rows: int, strata: StratumRows | None) -> Entries:
    """Give battles drawn one by one: every cell is a unit and an entry, in each stratum, which has columns of its own.

    Columns are by pair. Hard outcomes have one column a pair, whose row 0, 1, 2 are its losses, ties and wins.
    """
    n_pairs = len(cells.first)
    if strata is None:
        cell, alone, pairs, group = np.arange(len(cells.count)), cells.count, np.arange(n_pairs), cells.pair
    else:
        cell, alone = strata.cell, strata.alone
        pairs, group = np.unique(strata.stratum * n_pairs + cells.pair[cell], return_inverse=True)
    if cells.hard:
        row, column, of_column = (2 * cells.target[cell]).astype(np.int64), group, np.arange(len(pairs))
    else:
        row, column, of_column = _grid(group, UNIT_ROWS)
    stratum, pair = np.divmod(pairs[of_column], n_pairs)
    count = np.zeros((n_rows, len(pair)), np.int64)
    count[row, column] = alone
    return Entries(
        units=count, row=row, column=column, cell=cell, times=None, pair=pair, n_rows=n_rows, unit=None,
        stratum=None if strata is None else stratum,
    )  # fmt: skip


def unit_members(cells: Cells, groups: VoteGroups) -> UnitMembers:
    """Return the units of votes and clusters, and their members.

    Clusters of one vote are exchangeable within their cell. Every other cluster is a unit of its own. In every stratum
    single votes come first, placed as votes drawn one by one; clusters follow in further columns. Units that several
    boards share are given, and returned as they are.
    """
    if groups.shared is not None:
        return groups.shared
    clusters, strata = groups.repeating, groups.strata
    at = _cell_entries(cells, UNIT_ROWS, strata)
    stratum = np.zeros(len(at.pair), np.int64) if at.stratum is None else at.stratum
    alone, size, together = at.units[at.row, at.column], np.zeros(0, np.int64), np.zeros(0, bool)
    if clusters is not None:
        size = clusters.size
        together = size[clusters.cluster] > 1
        if strata is None:
            alone = np.bincount(clusters.cell[~together], minlength=len(cells.count))
    several = np.flatnonzero(size > 1)
    of_several = np.zeros(len(several), np.int64)
    if strata is not None and strata.of_cluster is not None:
        of_several = strata.of_cluster[several]
    n_strata = int(max(stratum.max(), of_several.max(initial=0))) + 1
    n_alone, n_several = (np.bincount(x, minlength=n_strata) for x in (stratum, of_several))
    columns = n_alone - (-n_several // UNIT_ROWS)
    start = np.cumsum(columns) - columns
    column = at.column + (start - (np.cumsum(n_alone) - n_alone))[stratum][at.column]
    order = np.argsort(of_several, kind="stable")
    rank = np.arange(len(several)) - (np.cumsum(n_several) - n_several)[of_several[order]]
    number = np.full(len(size), -1)
    number[several[order]] = (start + n_alone)[of_several[order]] * UNIT_ROWS + rank
    units = np.zeros((UNIT_ROWS, int(columns.sum())), np.int64)
    units[at.row, column] = alone
    units[number[several] % UNIT_ROWS, number[several] // UNIT_ROWS] = 1
    single = np.flatnonzero(alone)
    unit, cell, times = column[single] * UNIT_ROWS + at.row[single], at.cell[single], np.ones(len(single), np.int64)
    if clusters is not None:
        unit = np.concatenate([unit, number[clusters.cluster[together]]])
        cell = np.concatenate([cell, clusters.cell[together]])
        times = np.concatenate([times, clusters.times[together]])
    order = np.argsort(cell, kind="stable")
    return UnitMembers(
        units=units, unit=unit[order], cell=cell[order], times=times[order],
        stratum=None if strata is None else np.repeat(np.arange(n_strata), columns),
        cluster=None if clusters is None else number,
    )  # fmt: skip


def _member_entries(cells: Cells, members: UnitMembers) -> Entries:
    """Make every member of a unit an entry."""
    pair_of_entry = cells.pair[members.cell]
    per_pair = np.bincount(pair_of_entry)
    rows = entry_rows(per_pair)
    row, column, pair = _grid(pair_of_entry, rows)
    return Entries(
        units=members.units, row=row, column=column, cell=members.cell, times=members.times, pair=pair, n_rows=rows,
        unit=members.unit, stratum=members.stratum,
    )  # fmt: skip


def _padded(entries: Sequence[Entries], n_pairs: int, n_columns: int | None = None) -> list[Entries]:
    """Return all slices' entries on grids of one shape. Padding has no entries, and units of size 0.

    The grids have ``n_columns``. None: as many as pairs if that is enough.
    """
    if n_columns is None:
        n_columns = max(len(e.pair) for e in entries)
        n_columns = n_pairs if n_columns <= n_pairs else padded_columns(n_columns)
    n_rows = max(e.n_rows for e in entries)
    n_units = padded_columns(max(e.units.shape[1] for e in entries))
    return [
        e._replace(
            units=pad(e.units, (n_rows, n_columns) if e.unit is None else (UNIT_ROWS, n_units)),
            pair=np.pad(e.pair, (0, n_columns - len(e.pair)), constant_values=n_pairs - 1),
            n_rows=n_rows,
        )
        for e in entries
    ]


def packed_word(cells: Sequence[Cells], heaviest: float, n_parts: int) -> type:
    """Choose the narrowest packed word that is exact in every resample.

    Each of its two or three parts must hold twice the battles of any pair; and a model's score, a sum of halves in
    single precision for 32 bits, must stay under 2**23.
    """
    most = max(of_slice.battles.max() for of_slice in cells)
    fits = 2 * _largest_draw(most) < 2 ** (32 // n_parts) and _largest_draw(heaviest) < 2**23
    return np.uint32 if fits else np.uint64


def _largest_draw(count: float) -> float:
    return count + 12 * float(np.sqrt(count)) + 40


def secure_on_board(board: Board, clusters: ClusterRows | None, cells: Cells | None = None) -> NDArray[np.bool_]:
    """See `connectivity.secure_models`; a unit is a battle, by default of the board, or a cluster of some.

    Strata make no difference: with strata, a resample misses given units no more often.
    """
    cells, m = cells or board.cells, len(board.theta)
    count = cells.count.astype(float)
    if clusters is not None:
        # A cluster counts once, however many of its battles qualify: each has its share of the cluster.
        share = clusters.times / clusters.size[clusters.cluster]
        count = np.bincount(clusters.cell, share, minlength=len(cells.count))
    units = np.zeros((m, m))
    n_pairs = len(cells.first)
    units[cells.first, cells.second] = np.bincount(cells.pair, count * (cells.target > 0), n_pairs)
    units[cells.second, cells.first] = np.bincount(cells.pair, count * (cells.target < 1), n_pairs)
    rated = board.active & (board.connectivity.standing == 0)
    return rated & secure_models(np.where(rated[:, None] & rated, units, 0.0))


def is_secure_board(board: Board, clusters: ClusterRows | None, cells: Cells | None = None) -> bool:
    """Return whether all models are secure, as in `secure_on_board`."""
    return bool(secure_on_board(board, clusters, cells).all())
