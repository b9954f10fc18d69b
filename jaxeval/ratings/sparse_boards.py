"""Fits of wide boards: from about a thousand models on a graph of pairs, without any (M, M) table."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from jaxeval.data.cells import Cells
from jaxeval.execution.precision import double_precision
from jaxeval.kernels import batch
from jaxeval.kernels.solve import Terms
from jaxeval.ratings.adjacency import make_adjacency
from jaxeval.ratings.connectivity import Connectivity, per_model, with_components

Float = NDArray[np.float64]

Method = Literal["auto", "dense", "sparse"]

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


def resolved(method: Method, n_models: int) -> Literal["dense", "sparse"]:
    """The method for a board of M models."""
    if method == "auto":
        return "sparse" if n_models >= SPARSE_MODELS else "dense"
    if method not in ("dense", "sparse"):
        raise ValueError(f"method must be 'auto', 'dense' or 'sparse', got {method!r}")
    return method


def check_dense(method: Method) -> None:
    """An error if the sparse method is asked for where there is none."""
    if resolved(method, 0) == "sparse":
        raise ValueError("method='sparse' knows no features and no tie model: leave it out")


def make_graph(cells: Cells, n_models: int) -> WideGraph:
    """The graph of the pairs of ``cells``, one of them padding."""
    n_pairs = len(cells.first) + 1
    adjacency, number = make_adjacency(cells.first, cells.second, n_models, n_pairs)
    place = np.empty(n_models + 1, np.int32)
    place[number], place[-1] = np.arange(n_models), n_models
    ends = [np.append(number[models], n_models).astype(np.int32) for models in (cells.first, cells.second)]
    arrays: Any = (*ends, place)
    return WideGraph(batch.Graph(adjacency, *arrays), number)


def fit_sparse(
    cells: Cells,
    n: Float,
    wins: Float,
    n_models: int,
    terms: Terms,
    start: Float | None = None,
) -> SparseFit:
    """Fit one board to the weights ``n`` (P,) of the pairs' battles and what their first models took of them.

    From ``start`` (M,), log-strengths, if given.
    """
    wide = make_graph(cells, n_models)
    begin = None if start is None else wide.numbered(start)
    with double_precision():
        found = batch.fit_sparse(wide.graph, np.append(n, 0.0), np.append(wins, 0.0), terms, begin)
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
