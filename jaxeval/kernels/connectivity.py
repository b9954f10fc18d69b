"""Which models a resample can compare: the main group of its own graph of wins, and where the others stand to it."""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple, TypeVar

import numpy as np

from jaxeval.kernels.kinds import Array, Bool, Int8, Integer, Num, Shaped, namespace
from jaxeval.lazy_names import jnp, lax


class Standing(IntEnum):
    """How a model stands to the main group.

    Only models inside have a finite maximum-likelihood rating that compares with the others' (Zermelo 1929, DOI
    10.1007/BF01180541; Ford 1957, DOI 10.2307/2308513). Without any group, a model is ABOVE if it never lost a point at
    all, and BELOW if it never took one.
    """

    IDENTIFIED = 0
    "It is a member."
    ABOVE = 1
    "It took points off the group, perhaps through others, and never lost any back."
    BELOW = 2
    "It lost points to the group, perhaps through others, and never took any back."
    INCOMPARABLE = 3
    "No chain of points leads either way, or it has no battles."


Models = Bool[Array, "M ..."]
#: One step of a search: from the models reached to those and their successors.
Grow = Callable[[Models], Models]
State = TypeVar("State")


def _until_done(more: Callable[[State], Any], advance: Callable[[State], State], state: State) -> State:
    """Return ``state`` after as many steps as there are more of: on the host where all of it is there."""
    if namespace(*state) is not np:  # type: ignore[misc]
        end: State = lax.while_loop(more, advance, state)
        return end
    while more(state):
        state = advance(state)
    return state


def reachable(grow: Grow, start: Bool[Array, "M *lanes"]) -> Bool[Array, "M *lanes"]:
    """Return the models reached from the models ``start``."""

    def advance(state: tuple[Array, Array]) -> tuple[Array, Array]:
        reached, _ = state
        grown = grow(reached)
        return grown, (grown != reached).any()

    reached, _ = _until_done(lambda state: state[1], advance, (start, namespace(start).bool_(True)))
    return reached


def along(edge: Shaped[Array, "M M"]) -> Grow:
    """Return a step along a table of edges, nonzero from row to column."""
    return lambda reached: reached | _product(reached, edge > 0)


def against(edge: Shaped[Array, "M M"]) -> Grow:
    """Return a step as `along` does, but from column to row: to transpose the table would take longer than a step."""
    return lambda reached: reached | _product(edge > 0, reached)


def _product(left: Bool[Array, "..."], right: Bool[Array, "..."]) -> Bool[Array, "M"]:
    if namespace(left, right) is np:
        return np.matmul(left.astype(np.float32), right.astype(np.float32)) > 0
    return jnp.matmul(left.astype(jnp.float32), right.astype(jnp.float32), precision="highest") > 0


class Results(NamedTuple):
    """Which models took points off which, as the search for groups needs it."""

    wins: Grow  # from models to those that lost points to them
    losses: Grow  # from models to those that took points off them
    took: Bool[Array, "M *lanes"]  # models that took points
    lost: Bool[Array, "M *lanes"]  # models that lost some
    place: Integer[Array, "M #*lanes"]  # of the model among all; of equal groups, the one with the first model counts


class _Search(NamedTuple):
    left: Bool[Array, "M *lanes"]  # models whose group has not been looked at
    heaviest: Num[Array, "*lanes"]  # weight of the best group so far
    below: Bool[Array, "M *lanes"]  # models that it reaches by wins, itself included
    above: Bool[Array, "M *lanes"]  # models that reach it


def standing(
    wins: Shaped[Array, "M M"], weight: Num[Array, "M"], place: Integer[Array, "M"] | None = None
) -> Int8[Array, "M"]:
    """Return `standing_of` the models of whose ``wins`` the row's are against the column's; in order of ``place``."""
    everyone, edge = jnp.ones(len(wins), bool), wins > 0
    took, lost = _product(edge, everyone), _product(everyone, edge)
    place = jnp.arange(len(wins)) if place is None else place
    return standing_of(Results(along(edge), against(edge), took, lost, place), weight)


def standing_beside(
    wins: Num[Array, "K M"], losses: Num[Array, "K M"], models: Integer[Array, "K"], weight: Num[Array, "M"]
) -> Int8[Array, "M"]:
    """Return `standing` of all models, where all but these K ``models`` are known to have taken points off each other.

    Then two nodes of a small graph stand for all others, of which there are two at least. Places among ``models`` that
    are M are empty.
    """
    m, k = wins.shape[1], len(models)
    chosen = models[:, None] == jnp.arange(m)
    others = ~chosen.any(0)
    node = jnp.zeros((k + 2, k + 2), bool).at[0, 1].set(True).at[1, 0].set(True)
    node = node.at[2:, 0].set(((wins > 0) & others).any(1)).at[0, 2:].set(((losses > 0) & others).any(1))
    node = node.at[2:, 2:].set(wins.at[:, models].get(mode="fill", fill_value=0) > 0)
    total = jnp.sum(jnp.where(others, weight, 0))
    weights = jnp.concatenate([jnp.stack([total, 0 * total]), weight.at[models].get(mode="fill", fill_value=0)])
    first = jnp.argmax(others)
    found = standing(node, weights, jnp.concatenate([jnp.stack([first, first]), models]))
    return jnp.where(others, found[0], jnp.max(jnp.where(chosen, found[2:, None], 0), 0))


def lane_standings(wins: Num[Array, "R M M"], weight: Num[Array, "M"]) -> Int8[Array, "M R"]:
    """Return `standing` in R lanes of the host."""
    xp = namespace(wins)
    edge = (wins > 0).astype(np.float32)
    back = edge.swapaxes(1, 2)

    def along(edge: Any) -> Grow:
        return lambda reached: reached | (np.matmul(edge, reached.T[:, :, None].astype(np.float32))[:, :, 0] > 0).T

    took, lost = edge.any(2).T, edge.any(1).T
    numbers = xp.arange(len(weight))[:, None]
    return standing_of(Results(along(back), along(edge), took, lost, numbers), xp.repeat(weight[:, None], len(wins), 1))


def standing_of(results: Results, weight: Num[Array, "M *lanes"]) -> Int8[Array, "M *lanes"]:
    """Return the `Standing` of every model to the main group of ``results``, lane by lane.

    Groups are the strongly connected components, of two models or more, of the graph "took points off". The main group
    is the one with most ``weight``; of equal ones, the one that holds the model of the first ``place``. A group of
    weight 0 does not count.
    """
    xp = namespace(weight)
    number = xp.arange(weight.shape[0]).reshape(-1, *(1,) * (weight.ndim - 1))

    def first(group: Array) -> Array:
        return xp.where(group, results.place, number.size).min(0)

    def more(search: _Search) -> Array:
        # No group among the models left can weigh more than all of them.
        enough = xp.sum(xp.where(search.left, weight, 0), 0) >= search.heaviest
        return xp.any(xp.any(search.left, 0) & enough)

    def look(search: _Search) -> _Search:
        # A lane that is done goes on with the others, and meets no better group any more.
        start = number == xp.argmax(xp.where(search.left, weight, -1), 0)
        below, above = reachable(results.wins, start), reachable(results.losses, start)
        group, best = below & above, search.below & search.above
        size = xp.sum(xp.where(group, weight, 0), 0)
        earlier = (size == search.heaviest) & (first(group) < first(best))
        better = (xp.sum(group, 0) > 1) & ((size > search.heaviest) | earlier)
        after = _Search(search.left & ~group, size, below, above)
        keep = search._replace(left=after.left)
        return _Search(*(xp.where(better, new, old) for new, old in zip(after, keep, strict=True)))

    nothing = xp.zeros(weight.shape, bool)
    end = _until_done(more, look, _Search(weight > 0, xp.zeros(weight.shape[1:], weight.dtype), nothing, nothing))
    is_group = xp.any(end.below, 0)
    above = xp.where(is_group, end.above, results.took & ~results.lost)
    below = xp.where(is_group, end.below, results.lost & ~results.took)
    outside = xp.where(above, Standing.ABOVE, xp.where(below, Standing.BELOW, Standing.INCOMPARABLE))
    return xp.where(below & above, Standing.IDENTIFIED, outside).astype(xp.int8)
