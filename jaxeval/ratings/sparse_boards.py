"""Fits of wide boards: from about a thousand models on a graph of pairs, without any (M, M) table."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Float, as_leaf
from jaxeval.checks import check_choice
from jaxeval.data.cells import Cells
from jaxeval.execution.precision import double_precision
from jaxeval.execution.shapes import padded_graph, padded_models
from jaxeval.kernels.batch import sparse
from jaxeval.kernels.batch.sparse import SLOTS, Adjacency, Graph
from jaxeval.kernels.links import Link
from jaxeval.kernels.solve import Solution, Terms
from jaxeval.lazy_names import jax, scipy
from jaxeval.options.boards import FitMethod
from jaxeval.ratings.connectivity import Connectivity, per_model, with_components
from jaxeval.resampling.units import pad

Index = NDArray[np.integer[Any]]
#: From so many models on "auto" is sparse. At 40 matches a model the graph of pairs is the faster one from about 125 on
#: (benchmarks/wide.py), but boards where all models met are not sparse, and every wide slice is compiled anew.
SPARSE_MODELS = 1000
# Merges of rows: enough for 4,096 opponents; more are made if a model has more.
_MERGES = 3


class WideGraph(NamedTuple):
    """`Graph` of a board, and the number of each of its models (M,) there."""

    graph: Graph
    number: NDArray[np.intp]

    def numbered(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return (..., M') values of the models as the graph numbers them, and 0 for padding, from (..., M)."""
        placed = np.zeros((*values.shape[:-1], self.graph.adjacency.n_models), values.dtype)
        placed[..., self.number] = values
        return placed


def resolved(method: FitMethod, n_models: int) -> Literal["dense", "sparse"]:
    """Return the method for a board of M models."""
    if method == "auto":
        return "sparse" if n_models >= SPARSE_MODELS else "dense"
    check_choice("method", method, FitMethod)
    return method


def check_dense(method: FitMethod) -> None:
    """Raise an error if the sparse method is asked for where there is none."""
    if resolved(method, 0) == "sparse":
        raise ValueError("method='sparse' takes no features and no tie model: leave it out")


def make_graph(cells: Cells, n_models: int) -> WideGraph:
    """Return the graph of the pairs of ``cells``, padded."""
    adjacency, number, n_pairs = make_adjacency(cells.first, cells.second, n_models)
    size = adjacency.n_models
    place = np.full(size, size)
    place[number] = np.arange(n_models)
    first, second = (_padded(number[models], n_pairs, size - 1) for models in (cells.first, cells.second))
    return WideGraph(Graph(adjacency, first, second, as_leaf(place, np.int32)), number)


def _padded(index: Index, size: int, nothing: int) -> Any:
    """Return (size,) ``index``, and ``nothing`` behind it."""
    return as_leaf(np.pad(index, (0, size - len(index)), constant_values=nothing), np.int32)


def fit_sparse(
    cells: Cells, n: Float, wins: Float, n_models: int, terms: Terms, start: Float | None = None,
    link: Link = Link.LOGIT,
) -> tuple[Connectivity, Solution, WideGraph]:  # fmt: skip
    """Fit one board to the weights ``n`` (P,) of the pairs' battles and what their first models took of them.

    From ``start`` (M,), log-strengths, if given. Models of the result are as on the board.
    """
    wide = make_graph(cells, n_models)
    begin = None if start is None else wide.numbered(start)
    with double_precision():
        sums = (pad(x, wide.graph.first.shape) for x in (n, wins))
        solution = sparse.fit_sparse(wide.graph, *sums, terms, begin, link)
        theta, status, n_steps, grad_norm, standing = jax.device_get(solution)
    battles = per_model(cells.first, cells.second, n, n_models)
    connectivity = with_components(cells.first, cells.second, battles, standing[wide.number])
    on_board: Any = recentred(theta[wide.number], connectivity, float(terms.ridge))
    return connectivity, Solution(on_board, status, n_steps, grad_norm), wide


def recentred(theta: Float, connectivity: Connectivity, ridge: float) -> Float:
    """Return (..., M) log-strengths with mean 0 in every component, as they have at the maximum with a ridge.

    A small ridge tells the solver too little about the level of a component, which nothing else decides.
    """
    if ridge == 0 or connectivity.n_components == 1:
        return theta
    label = connectivity.component - 1
    order = np.argsort(label, kind="stable")
    start = np.searchsorted(label[order], np.arange(connectivity.n_components))
    total = np.add.reduceat(theta[..., order], start, axis=-1)
    return theta - (total / np.bincount(label))[..., label]


def make_adjacency(first: Index, second: Index, n_models: int) -> tuple[Adjacency, NDArray[np.intp], int]:
    """Return slots of P pairs ``first``, ``second`` of M models, the number of each (M,) in them, and of all pairs.

    The graph has padding models and padding pairs. NumPy arrays.
    """
    degree = np.bincount(first, minlength=n_models) + np.bincount(second, minlength=n_models)
    order = np.argsort(-degree, kind="stable")
    n_rows = np.maximum(-(-degree[order] // SLOTS), 1)
    n_several = int((n_rows > 1).sum())
    before = padded_models(n_several)  # numbers of models with several rows
    size = before + padded_models(n_models - n_several + 1)
    number = np.empty(n_models, np.intp)
    number[order] = np.arange(n_models)
    number[order[n_several:]] += before - n_several
    start = np.cumsum(n_rows) - n_rows
    n_pairs, n_padded_rows = padded_graph(len(first) + 1, int(n_rows.sum()) + 1)
    # A counting sort of both directions of all pairs by their owner.
    code = np.arange(2 * len(first))  # of a pair's first model p, of its second P + p
    owner, opponent = np.concatenate([number[first], number[second]]), np.concatenate([number[second], number[first]])
    unsorted = scipy.sparse.coo_array((code, (owner, opponent)), shape=(size, size))
    unsorted.has_canonical_format = True  # no pair is listed twice: nothing to sort and merge within a row
    graph = unsorted.tocsr()
    place = np.repeat(SLOTS * start - graph.indptr[number[order]], degree[order]) + np.arange(len(code))

    def in_slots(values: NDArray[Any], empty: int | bool, dtype: type) -> Any:
        flat: NDArray[Any] = np.full(SLOTS * n_padded_rows, empty, dtype)
        flat[place] = values
        return np.ascontiguousarray(flat.reshape(-1, SLOTS).T)

    merges, several = _merges(n_rows[:n_several], n_padded_rows)
    adjacency = Adjacency(
        opponent=in_slots(graph.indices, size - 1, np.int32),
        pair=in_slots(graph.data % len(first), n_pairs - 1, np.int32),
        is_first=in_slots(graph.data < len(first), False, bool),
        owner=_padded(np.repeat(number[order], n_rows), n_padded_rows, size - 1),
        merges=tuple(as_leaf(merge, np.int32) for merge in merges),
        several=_padded(several, before, merges[0].shape[1] - 1),
        single=_padded(start[n_several:], size - before, n_padded_rows - 1),
    )
    return adjacency, number, n_pairs


def _merges(left: Index, n_rows: int) -> tuple[list[Index], Index]:
    """Say how the rows of models that have several ``left`` (A,) are added up, and where the sums are; see `Adjacency`.

    They are the first ones of ``n_rows`` rows, of which the last is empty.
    """
    merges: list[Index] = []
    where, models, done = np.zeros(len(left), np.int64), np.arange(len(left)), 0
    start = np.cumsum(left) - left
    while len(models) or len(merges) < _MERGES:
        merged = -(-left // SLOTS)
        first = np.cumsum(merged) - merged
        row = np.repeat(start - SLOTS * first, merged) + SLOTS * np.arange(merged.sum()) + np.arange(SLOTS)[:, None]
        is_left = row < np.repeat(start + left, merged)
        merge = np.full((SLOTS, padded_models(int(merged.sum()) + 1)), n_rows - 1)
        merge[:, : row.shape[1]] = np.where(is_left, row, n_rows - 1)
        merges.append(merge)
        where[models] = done + first  # of those that are added up further, overwritten
        done, n_rows, more = done + merge.shape[1], merge.shape[1], merged > 1
        models, left, start = models[more], merged[more], first[more]
    return merges, where
