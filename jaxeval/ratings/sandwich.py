"""The middle of the sandwich: squares of the scores of battles, or of clusters of battles (DOI 10.2307/1912526)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from jaxeval.arrays import Float, Int
from jaxeval.ratings.vote_groups import VoteGroups
from jaxeval.statistics.clusters import cluster_factors


def score_squares(scores: scipy.sparse.csr_array, count: Int, drawn: VoteGroups) -> Float:
    """(P, P) sum of the outer products of independent scores: of battles, or of whole clusters if there are any.

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
