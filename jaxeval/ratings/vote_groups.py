"""Which votes are drawn together, within which strata, and how much their scores vary (DOI 10.2307/1912526)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Float, Int
from jaxeval.data.battles import Battles
from jaxeval.data.cells import count_by
from jaxeval.execution.shapes import BATTLE_PLACES, UNIT_ROWS
from jaxeval.kernels.resample import DrawScheme, Packing
from jaxeval.lazy_names import pd, scipy
from jaxeval.resampling.units import UnitDraw, checked_strata, pad, shortfall_of, stratum_of_groups, unit_draw
from jaxeval.statistics.clusters import cluster_factors


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

    Sums of clusters have the factors of `cluster_factors`, as the estimate follows the largest ones.

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
