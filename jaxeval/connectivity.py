"""What votes can say at all: connected groups, separation, and boards that no resample can break."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from jaxeval.kernels.connectivity import ABOVE, BELOW, IDENTIFIED, INCOMPARABLE

# A resample lacks all of k given battles with probability at most exp(-k).
_SECURE_UNITS = 40


class Connectivity(NamedTuple):
    """Groups of models by who met, and by who can be compared at ridge 0."""

    component: NDArray[np.int64]  # (M,) connected component, 1 = that of the main group; the others by battles
    n_components: int
    standing: NDArray[np.int8]  # (M,) IDENTIFIED, ABOVE, BELOW or INCOMPARABLE


def analyse(n: NDArray[np.float64], wins: NDArray[np.float64]) -> Connectivity:
    """Connectivity of (M, M) tables: battle weights ``n`` and ``wins`` of i against j.

    ``kernels.connectivity.standing`` defines the main group and the standings.
    """
    battles = n.sum(1)
    start = int(np.argmax(battles))
    if _reachable(wins > 0, start).all() and _reachable(wins.T > 0, start).all():
        # A healthy board, told without a search for components.
        return Connectivity(np.ones(len(n), np.int64), 1, np.full(len(n), IDENTIFIED, np.int8))
    standing = _standing(battles, wins)
    n_components, label = connected_components(csr_array(n > 0), directed=False)
    holds_main_group = np.bincount(label, standing == IDENTIFIED) > 0
    order = np.lexsort([-np.bincount(label, battles), ~holds_main_group])
    component = np.argsort(order)[label] + 1
    return Connectivity(component, n_components, standing)


def _standing(battles: NDArray[np.float64], wins: NDArray[np.float64]) -> NDArray[np.int8]:
    _, label = connected_components(csr_array(wins > 0), directed=True, connection="strong")
    weight, size = np.bincount(label, battles), np.bincount(label)
    weight[size == 1] = 0  # one model is no group: nothing compares it with itself
    if weight.any():
        member = int(np.argmax(weight[label]))  # of equal groups, the one that has the first model
        below, above = _reachable(wins > 0, member), _reachable(wins.T > 0, member)
    else:
        below, above = (battles > 0) & (wins.sum(1) == 0), (battles > 0) & (wins.sum(0) == 0)
    standing = np.full(len(battles), INCOMPARABLE, np.int8)
    standing[below & ~above] = BELOW
    standing[above & ~below] = ABOVE
    standing[above & below] = IDENTIFIED
    return standing


def _reachable(edge: NDArray[np.bool_], start: int) -> NDArray[np.bool_]:
    reached = np.zeros(len(edge), bool)
    front = np.array([start])
    while len(front):
        reached[front] = True
        front = np.flatnonzero(edge[front].any(0) & ~reached)
    return reached


def is_secure(units: NDArray[np.float64]) -> bool:
    """Whether practically every resample leaves all models comparable.

    ``units[i, j]`` counts the independently drawn units in which i takes points off j. Starting from the model with
    most of them, a model joins the secure set when it took points off the set in at least 40 units, and lost points
    to it in as many. If all models join, some resample among B separates them with probability under
    2 M B exp(-40).
    """
    joined = np.zeros(len(units), bool)
    joined[np.argmax(units.sum(0) + units.sum(1))] = True
    while not joined.all():
        up, down = units[:, joined].sum(1), units[joined].sum(0)
        ready = (np.minimum(up, down) >= _SECURE_UNITS) & ~joined
        if not ready.any():
            return False
        joined |= ready
    return True
