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

    component: NDArray[np.int64]  # (M,) connected component, 1 = the one with most battles
    n_components: int
    standing: NDArray[np.int8]  # (M,) IDENTIFIED, ABOVE, BELOW or INCOMPARABLE
    hub: int  # the most-voted model of the main group


def analyse(n: NDArray[np.float64], wins: NDArray[np.float64]) -> Connectivity:
    """Connectivity of (M, M) tables: battle weights ``n`` and ``wins`` of i against j.

    The main group is the strongly connected component of the graph "i took points off j" with most battles. ABOVE:
    took points off it, directly or through others, and never lost any back; BELOW the reverse; INCOMPARABLE: no
    chain of points either way, or no battles.
    """
    battles = n.sum(1)
    hub = int(np.argmax(battles))
    if _reachable(wins > 0, hub).all() and _reachable(wins.T > 0, hub).all():
        # A healthy board, told without a search for components.
        return Connectivity(np.ones(len(n), np.int64), 1, np.full(len(n), IDENTIFIED, np.int8), hub)
    n_components, label = connected_components(csr_array(n > 0), directed=False)
    order = np.argsort(-np.bincount(label, battles), kind="stable")
    component = np.argsort(order)[label] + 1

    beats = csr_array(wins > 0)
    _, group = connected_components(beats, directed=True, connection="strong")
    main = np.argmax(np.bincount(group, battles))
    hub = int(np.argmax(np.where(group == main, battles, -1)))
    below, above = _reachable(wins > 0, hub), _reachable(wins.T > 0, hub)
    standing = np.full(len(n), INCOMPARABLE, np.int8)
    standing[below & ~above] = BELOW
    standing[above & ~below] = ABOVE
    standing[above & below] = IDENTIFIED
    return Connectivity(component, n_components, standing, hub)


def _reachable(edge: NDArray[np.bool_], start: int) -> NDArray[np.bool_]:
    reached = np.zeros(len(edge), bool)
    front = np.array([start])
    while len(front):
        reached[front] = True
        front = np.flatnonzero(edge[front].any(0) & ~reached)
    return reached


def is_secure(units: NDArray[np.float64], hub: int) -> bool:
    """Whether practically every resample leaves all models comparable.

    ``units[i, j]`` counts the independently drawn units in which i takes points off j. Starting from the hub, a
    model joins the secure set when it took points off the set in at least 40 units, and lost points to it in as
    many. If all models join, some resample among B separates them with probability under 2 M B exp(-40).
    """
    joined = np.zeros(len(units), bool)
    joined[hub] = True
    while not joined.all():
        up, down = units[:, joined].sum(1), units[joined].sum(0)
        ready = (np.minimum(up, down) >= _SECURE_UNITS) & ~joined
        if not ready.any():
            return False
        joined |= ready
    return True
