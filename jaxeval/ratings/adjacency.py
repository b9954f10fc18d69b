"""The graph of pairs as rows of slots, which the sparse kernels add over."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from jaxeval.kernels.adjacency import SLOTS, Adjacency

Index = NDArray[np.integer[Any]]


def make_adjacency(first: Index, second: Index, n_models: int, n_pairs: int) -> tuple[Adjacency, NDArray[np.intp]]:
    """Slots of the pairs ``first``, ``second`` (P,) of M models, and the number of each model (M,) in them.

    The graph gets one model more, and has ``n_pairs`` > P pairs, the last of each being padding. NumPy arrays.
    """
    degree = np.bincount(first, minlength=n_models) + np.bincount(second, minlength=n_models)
    order = np.argsort(-degree, kind="stable")
    number = np.empty(n_models, np.intp)
    number[order] = np.arange(n_models)
    degree = np.append(degree[order], 0)
    # A counting sort of both directions of all pairs by their owner.
    code = np.arange(2 * len(first))  # of a pair's first model p, of its second P + p
    owner, opponent = np.concatenate([number[first], number[second]]), np.concatenate([number[second], number[first]])
    unsorted = scipy.sparse.coo_array((code, (owner, opponent)), shape=(n_models + 1, n_models + 1))
    unsorted.has_canonical_format = True  # no pair is listed twice: nothing to sort and merge within a row
    graph = unsorted.tocsr()

    n_rows = np.maximum(-(-degree // SLOTS), 1)
    start = np.cumsum(n_rows) - n_rows
    place = np.repeat(SLOTS * start - graph.indptr[:-1], degree) + np.arange(len(code))

    def in_slots(values: NDArray[Any], empty: int | bool, dtype: type) -> NDArray[Any]:
        flat = np.full(SLOTS * n_rows.sum(), empty, dtype)
        flat[place] = values
        return np.ascontiguousarray(flat.reshape(-1, SLOTS).T)

    merges, single = _merges(n_rows)
    arrays: Any = (
        in_slots(graph.indices, n_models, np.int32),
        in_slots(graph.data % len(first), n_pairs - 1, np.int32),
        in_slots(graph.data < len(first), False, bool),
        np.repeat(np.arange(n_models + 1, dtype=np.int32), n_rows),
        tuple(merges),
        tuple(single),
    )
    return Adjacency(*arrays), number


def _merges(n_rows: Index) -> tuple[list[NDArray[np.int32]], list[int]]:
    """How the rows of models with ``n_rows`` (M,), not increasing, are added up; see `Adjacency`."""
    merges, single = [], []
    while n_rows[0] > 1:
        several = n_rows[n_rows > 1]
        start = np.cumsum(several) - several
        merged = -(-several // SLOTS)
        within = np.arange(merged.sum()) - np.repeat(np.cumsum(merged) - merged, merged)
        row = np.repeat(start, merged) + SLOTS * within + np.arange(SLOTS)[:, None]
        own = row < np.repeat(start + several, merged)
        merges.append(np.where(own, row, n_rows.sum() - 1).astype(np.int32))
        single.append(int(several.sum()))
        n_rows = np.concatenate([merged, n_rows[len(several) :]])
    return merges, single
