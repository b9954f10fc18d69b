"""What votes can say at all: connected groups, separation, and boards that no resample can break; and it in words."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.execution.precision import one_blas_thread
from jaxeval.kernels.connectivity import Standing
from jaxeval.kernels.solve import Status
from jaxeval.lazy_names import pd, scipy
from jaxeval.wording import MODEL, Noun, alike_names, named

# A resample lacks all of k given battles with probability at most exp(-k).
_SECURE_UNITS = 40
_MOST_CUTS = 3
STATUS_TEXT: dict[int, str] = {
    Status.CONVERGED: "converged",
    Status.STEP_LIMIT: "stopped before converging, at the step limit or at the limit of double precision",
    Status.NON_FINITE: "diverged to non-finite values",
}
STANDING_TEXT: dict[int, str] = {
    Standing.IDENTIFIED: "",
    Standing.ABOVE: "undefeated",
    Standing.BELOW: "winless",
    Standing.INCOMPARABLE: "not comparable",
}


class Connectivity(NamedTuple):
    """Groups of models by who met, and by who can be compared at ridge 0."""

    component: Int  # (M,) connected component, 1 = that of the main group; the others by battles
    n_components: int
    standing: NDArray[np.int8]  # (M,) Standing.IDENTIFIED, Standing.ABOVE, Standing.BELOW or Standing.INCOMPARABLE


def analyse(n: Float, wins: Float) -> Connectivity:
    """Find the connectivity of (M, M) tables: battle weights ``n`` and ``wins`` of i against j.

    ``kernels.connectivity.standing_of`` defines the main group and the standings.
    """
    start = int(np.argmax(n.sum(1)))
    below, above = wins[start] > 0, wins[:, start] > 0
    below[start] = above[start] = True
    if (below @ wins + below > 0).all() and (wins @ above + above > 0).all():
        # A healthy board, on which two steps lead to and from everyone, is known without a search for components.
        return Connectivity(np.ones(len(n), np.int64), 1, np.full(len(n), Standing.IDENTIFIED, np.int8))
    first, second = np.nonzero(np.triu(n))
    return analyse_pairs(first, second, n[first, second], wins[first, second], wins[second, first], len(n))


def analyse_pairs(
    first: NDArray[np.integer[Any]], second: NDArray[np.integer[Any]], n: Float, wins: Float, losses: Float,
    n_models: int,
) -> Connectivity:  # fmt: skip
    """Find M models' connectivity from P pairs: battles' weight ``n``, what the first took of it and what it lost.

    All are (P,), with each pair once.
    """
    battles = per_model(first, second, n, n_models)
    winner = np.concatenate([first[wins > 0], second[losses > 0]])
    loser = np.concatenate([second[wins > 0], first[losses > 0]])
    return with_components(first, second, battles, _standing(battles, winner, loser))


def per_model(first: NDArray[np.integer[Any]], second: NDArray[np.integer[Any]], values: Float, n_models: int) -> Float:
    """Return (M,) sums of the ``values`` (P,) of every model's pairs."""
    return np.asarray(np.bincount(first, values, n_models) + np.bincount(second, values, n_models), np.float64)


def with_components(
    first: NDArray[np.integer[Any]], second: NDArray[np.integer[Any]], battles: Float, standing: NDArray[np.int8]
) -> Connectivity:
    """Return the components that P pairs make of M models with ``battles`` (M,) and a known ``standing`` (M,)."""
    graph = _graph(first, second, len(battles))
    n_components, label = scipy.sparse.csgraph.connected_components(graph, directed=False)
    holds_main_group = np.bincount(label, standing == Standing.IDENTIFIED) > 0
    order = np.lexsort([-np.bincount(label, battles), ~holds_main_group])
    component = np.argsort(order)[label] + 1
    return Connectivity(component, n_components, standing)


def _graph(start: NDArray[np.integer[Any]], end: NDArray[np.integer[Any]], n_models: int) -> Any:
    return scipy.sparse.coo_array((np.ones(len(start), np.int8), (start, end)), shape=(n_models, n_models)).tocsr()


def _standing(battles: Float, winner: NDArray[np.integer[Any]], loser: NDArray[np.integer[Any]]) -> NDArray[np.int8]:
    m = len(battles)
    edges = _graph(winner, loser, m)
    _, label = scipy.sparse.csgraph.connected_components(edges, directed=True, connection="strong")
    weight, size = np.bincount(label, battles), np.bincount(label)
    weight[size == 1] = 0  # one model is no group: nothing compares it with itself
    below, above = np.zeros((2, m), bool)
    if weight.any():
        member = int(np.argmax(weight[label]))  # of equal groups, the one that has the first model
        below[scipy.sparse.csgraph.breadth_first_order(edges, member, return_predecessors=False)] = True
        above[scipy.sparse.csgraph.breadth_first_order(edges.T.tocsr(), member, return_predecessors=False)] = True
    else:
        below[loser] = above[winner] = True
        below, above = below & ~above, above & ~below
    standing = np.full(m, Standing.INCOMPARABLE, np.int8)
    standing[below & ~above] = Standing.BELOW
    standing[above & ~below] = Standing.ABOVE
    standing[above & below] = Standing.IDENTIFIED
    return standing


def secure_models(units: Float) -> Bool:
    """Return models (M,) that practically every resample leaves comparable with each other.

    ``units[i, j]`` counts the independently drawn units in which i takes points off j. Starting from the model with
    most of them, a model joins when it took points off those that joined in at least 40 units, and lost points to them
    in as many. Some resample among B separates two of them with probability under 2 M B exp(-40). Where many models met
    a few times each, others start together, see `_well_joined`.
    """
    alone = np.zeros(len(units), bool)
    alone[np.argmax(units.sum(0) + units.sum(1))] = True
    joined = _grown(units, alone)
    return joined if joined.all() else max(joined, _grown(units, _well_joined(units)), key=np.count_nonzero)


def _grown(units: Float, joined: Bool) -> Bool:
    """Return the models ``joined``, and those that join them and each other by forty units either way."""
    while True:
        ready = np.minimum(units[:, joined].sum(1), units[joined].sum(0)) >= _SECURE_UNITS
        if not (ready & ~joined).any():
            return joined
        joined = joined | ready


def _well_joined(units: Float) -> Bool:
    """Return models with no small cut between any of them and the others of them; none if they are hard to find.

    Between i and j are at least ``both[i, j]`` units in which i takes points off j, and as many in which j does off i.
    """
    both = np.minimum(units, units.T)
    least, kept = _SECURE_UNITS + np.log(len(units)), np.ones(len(units), bool)
    for _ in range(_MOST_CUTS):
        while (thin := kept & (both[:, kept].sum(1) < least)).any():
            kept = kept & ~thin
        if _has_no_small_cut(both[np.ix_(kept, kept)]):
            return kept
        least *= 1.5
    return np.zeros(len(units), bool)


def _has_no_small_cut(both: Float) -> bool:
    """Return whether hardly a resample lacks all units, either way, between any set of models and the others.

    With lambda the second eigenvalue of the Laplacian of the graph of ``both``, a set of s of M models has
    lambda s (M - s) / M units or more with the others (Fiedler 1973), and there are C(M, s) such sets. If each size of
    sets has 40 units beyond the logarithm of their number, some resample among B separates models with probability
    under M B exp(-40).
    """
    m = len(both)
    degree = both.sum(1) - both.diagonal()
    if m < 2 or degree.min() < _SECURE_UNITS + np.log(m):  # lambda is at most M / (M - 1) of the least degree
        return False
    laplacian = np.diag(degree + both.diagonal()) - both
    with one_blas_thread():  # on a busy machine, several wait for each other
        least = scipy.linalg.eigvalsh(laplacian, subset_by_index=[1, 1])[0]
    s = np.arange(1, m // 2 + 1)
    sets = scipy.special.gammaln(m + 1) - scipy.special.gammaln(s + 1) - scipy.special.gammaln(m - s + 1)
    return bool((least * s * (m - s) / m - sets >= _SECURE_UNITS).all())


def board_warnings(
    models: pd.Index, component: Int, standing: NDArray[np.object_], ridge: float, penalty: str, status: str,
    far: pd.Index, noun: Noun = MODEL,
) -> list[str]:  # fmt: skip
    """Return sentences on what a board identifies and on its fit; ``far`` are models with ratings beyond reason.

    ``component`` and ``standing`` are those of the M ``models``, which ``noun`` is the word for.
    """
    messages = []
    holds = f"the ridge of {ridge:g}" if ridge > 0 else "the penalty" if penalty == "firth" else ""
    held = f" ({holds} alone makes it finite)" if holds else ""
    n_components = component.max()
    if n_components > 1:
        sizes = np.unique(component, return_counts=True)[1]
        outside = models[component > 1]
        messages.append(
            f"the {noun.many} fall into {n_components:,} groups that never met ({named(sizes)} {noun.many}); "
            + (
                f"ratings compare only inside a group. Outside the first: {named(outside)}"
                if ridge > 0
                else f"only the first is rated (rate another on its own battles). Outside it: {named(outside)}"
            )
        )
    if not (standing == "").any():
        messages.append(
            f"no two {noun.many} took points off each other, directly or through others: no {noun.one} has a finite "
            f"rating{held}"
        )
        return [*messages, *alike_names(models, noun.many), *_not_converged(status, far)]
    for text, why in (
        ("undefeated", "never lost a point to the main group: no finite rating"),
        ("winless", "never took a point off the main group: no finite rating"),
        ("not comparable", "no chain of wins both ways with the main group: no comparable rating"),
    ):
        concerned = models[(standing == text) & (component == 1)]
        if len(concerned):
            messages.append(f"{named(concerned)}: {why}{held}")
    return [*messages, *alike_names(models, noun.many), *_not_converged(status, far)]


def _not_converged(status: str, far: pd.Index) -> list[str]:
    if status == STATUS_TEXT[Status.CONVERGED]:
        return []
    why = f": the battles hardly determine the rating of {named(far)}; a ridge > 0 would" if len(far) else ""
    return [f"the fit {status}{why}"]
