"""Fits of wide boards: from about a thousand models on a graph of pairs, without any (M, M) table."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import jax
import numpy as np
import scipy
from numpy.typing import NDArray

from jaxeval.arrays import Float, as_leaf
from jaxeval.data.cells import Cells
from jaxeval.execution.precision import double_precision
from jaxeval.kernels import batch
from jaxeval.kernels.adjacency import SLOTS, Adjacency
from jaxeval.kernels.links import Link
from jaxeval.kernels.solve import Terms
from jaxeval.ratings.connectivity import Connectivity, per_model, with_components

Index = NDArray[np.integer[Any]]

FitMethod = Literal["auto", "dense", "sparse"]

#: From so many models on "auto" is sparse. At 40 matches a model the graph of pairs is the faster one from about 125 on
#: (benchmarks/wide.py), but boards where all models met are not sparse, and every wide slice is compiled anew.
SPARSE_MODELS = 1000


class WideGraph(NamedTuple):
    """`batch.Graph` of a board, and the number of each of its models (M,) there."""

    graph: batch.Graph
    number: NDArray[np.intp]

    def numbered(self, values: NDArray[Any]) -> NDArray[Any]:
        """(..., M + 1) values of the models as the graph numbers them, and 0 for padding, from (..., M)."""
        placed = np.zeros((*values.shape[:-1], len(self.number) + 1), values.dtype)
        placed[..., self.number] = values
        return placed


class SparseFit(NamedTuple):
    """A fit on a graph of pairs, models as on the board."""

    connectivity: Connectivity
    theta: Float  # (M,)
    status: int
    n_steps: int
    grad_norm: float
    graph: WideGraph


def resolved(method: FitMethod, n_models: int) -> Literal["dense", "sparse"]:
    """The method for a board of M models."""
    if method == "auto":
        return "sparse" if n_models >= SPARSE_MODELS else "dense"
    if method not in ("dense", "sparse"):
        raise ValueError(f"method must be 'auto', 'dense' or 'sparse', got {method!r}")
    return method


def check_dense(method: FitMethod) -> None:
    """An error if the sparse method is asked for where there is none."""
    if resolved(method, 0) == "sparse":
        raise ValueError("method='sparse' knows no features and no tie model: leave it out")


def make_graph(cells: Cells, n_models: int) -> WideGraph:
    """The graph of the pairs of ``cells``, one of them padding."""
    n_pairs = len(cells.first) + 1
    adjacency, number = make_adjacency(cells.first, cells.second, n_models, n_pairs)
    place = np.empty(n_models + 1, np.int32)
    place[number], place[-1] = np.arange(n_models), n_models
    first, second = (as_leaf(np.append(number[models], n_models), np.int32) for models in (cells.first, cells.second))
    return WideGraph(batch.Graph(adjacency, first, second, as_leaf(place, np.int32)), number)


def fit_sparse(
    cells: Cells,
    n: Float,
    wins: Float,
    n_models: int,
    terms: Terms,
    start: Float | None = None,
    link: Link = Link.LOGIT,
) -> SparseFit:
    """Fit one board to the weights ``n`` (P,) of the pairs' battles and what their first models took of them.

    From ``start`` (M,), log-strengths, if given.
    """
    wide = make_graph(cells, n_models)
    begin = None if start is None else wide.numbered(start)
    with double_precision():
        found = batch.fit_sparse(wide.graph, np.append(n, 0.0), np.append(wins, 0.0), terms, begin, link)
        theta, status, n_steps, grad_norm, standing = jax.device_get(found)
    battles = per_model(cells.first, cells.second, n, n_models)
    connectivity = with_components(cells.first, cells.second, battles, standing[wide.number])
    theta = recentred(theta[wide.number], connectivity, float(terms.ridge))
    return SparseFit(connectivity, theta, int(status), int(n_steps), float(grad_norm), wide)


def recentred(theta: Float, connectivity: Connectivity, ridge: float) -> Float:
    """(..., M) log-strengths with mean 0 in every component, where a ridge has them so at its maximum.

    A small ridge tells the solver too little about the level of a component, which nothing else decides.
    """
    if ridge == 0 or connectivity.n_components == 1:
        return theta
    label = connectivity.component - 1
    order = np.argsort(label, kind="stable")
    start = np.searchsorted(label[order], np.arange(connectivity.n_components))
    total = np.add.reduceat(theta[..., order], start, axis=-1)
    return theta - (total / np.bincount(label))[..., label]


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

    def in_slots(values: NDArray[Any], empty: int | bool, dtype: type) -> Any:
        flat = np.full(SLOTS * n_rows.sum(), empty, dtype)
        flat[place] = values
        return np.ascontiguousarray(flat.reshape(-1, SLOTS).T)

    merges, single = _merges(n_rows)
    adjacency = Adjacency(
        opponent=in_slots(graph.indices, n_models, np.int32),
        pair=in_slots(graph.data % len(first), n_pairs - 1, np.int32),
        is_first=in_slots(graph.data < len(first), False, bool),
        owner=as_leaf(np.repeat(np.arange(n_models + 1), n_rows), np.int32),
        merges=tuple(as_leaf(merge, np.int32) for merge in merges),
        single=tuple(single),
    )
    return adjacency, number


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
