"""The middle of the sandwich: squares of the scores of battles, or of clusters of battles (DOI 10.2307/1912526)."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from jaxeval.data.cells import Cells
from jaxeval.ratings.drawn_votes import ClusterRows

Float = NDArray[np.float64]


def strength_slopes(cells: Cells, n_models: int) -> scipy.sparse.csr_array:
    """(C, M) derivatives of the difference of log-strengths by every strength: 1 for `first`, -1 for `second`."""
    models = np.stack([cells.first, cells.second], 1)[cells.pair]
    n = len(models)
    return scipy.sparse.csr_array((np.tile([1.0, -1.0], n), models.ravel(), np.arange(0, 2 * n + 1, 2)), (n, n_models))


def score_squares(scores: scipy.sparse.csr_array, count: NDArray[np.int64], clusters: ClusterRows | None) -> Float:
    """(P, P) sum of the outer products of independent scores: of battles, or of whole clusters if there are any.

    Args:
        scores: (C, P) score of one battle of each cell, its weight included.
        count: (C,) battles of the cells.
        clusters: which battles belong together. Clusters of one battle each give what battles give, bit for bit; a
            single cluster of several gives NaN, as its scores add up to zero at the estimate.
    """
    if clusters is None or not clusters.repeats:
        return np.asarray((scores.T @ scores.multiply(count[:, None])).toarray())
    if len(clusters.size) == 1:
        return np.full((scores.shape[1],) * 2, np.nan)
    shape = len(clusters.size), len(count)
    of_cluster = (
        scipy.sparse.csr_array((clusters.times.astype(float), (clusters.cluster, clusters.cell)), shape) @ scores
    )
    return np.asarray((of_cluster.T @ of_cluster).toarray())
