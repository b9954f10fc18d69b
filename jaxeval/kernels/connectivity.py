"""Which models a resample can compare: the main group of its own graph of wins, and where the others stand to it."""

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from jaxeval.kernels.kinds import Array, Bool, Int8, Integer, Num, Shaped
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


def reachable(grow: Grow, start: Bool[Array, "M *lanes"]) -> Bool[Array, "M *lanes"]:
    """Return the models reached from the models ``start``."""

    def advance(state: tuple[Array, Array]) -> tuple[Array, Array]:
        reached, _ = state
        grown = grow(reached)
        return grown, jnp.any(grown != reached)

    reached, _ = lax.while_loop(lambda state: state[1], advance, (start, jnp.bool_(True)))
    return reached


def along(edge: Shaped[Array, "M M"]) -> Grow:
    """Return a step along a table of edges, nonzero from row to column."""
    return lambda reached: reached | _product(reached, edge > 0)


def against(edge: Shaped[Array, "M M"]) -> Grow:
    """As `along`, but from column to row of the same table: to transpose it would take longer than a step."""
    return lambda reached: reached | _product(edge > 0, reached)


def _product(left: Bool[Array, "..."], right: Bool[Array, "..."]) -> Bool[Array, "M"]:
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


def standing(wins: Num[Array, "M M"], weight: Num[Array, "M"]) -> Int8[Array, "M"]:
    """Return `standing_of` the models of whose ``wins`` the row's are against the column's."""
    everyone, edge = jnp.ones(len(wins), bool), wins > 0
    took, lost = _product(edge, everyone), _product(everyone, edge)
    return standing_of(Results(along(edge), against(edge), took, lost, jnp.arange(len(wins))), weight)


def standing_of(results: Results, weight: Num[Array, "M *lanes"]) -> Int8[Array, "M *lanes"]:
    """`Standing` of every model to the main group of ``results``, lane by lane.

    Groups are the strongly connected components, of two models or more, of the graph "took points off". The main group
    is the one with most ``weight``; of equal ones, the one that holds the model of the first ``place``. A group of
    weight 0 does not count.
    """
    number = jnp.arange(weight.shape[0]).reshape(-1, *(1,) * (weight.ndim - 1))

    def first(group: Array) -> Array:
        return jnp.min(jnp.where(group, results.place, number.size), 0)

    def more(search: _Search) -> Array:
        # No group among the models left can weigh more than all of them.
        enough = jnp.sum(jnp.where(search.left, weight, 0), 0) >= search.heaviest
        return jnp.any(jnp.any(search.left, 0) & enough)

    def look(search: _Search) -> _Search:
        # A lane that is done goes on with the others, and meets no better group any more.
        start = number == jnp.argmax(jnp.where(search.left, weight, -1), 0)
        below, above = reachable(results.wins, start), reachable(results.losses, start)
        group, best = below & above, search.below & search.above
        size = jnp.sum(jnp.where(group, weight, 0), 0)
        earlier = (size == search.heaviest) & (first(group) < first(best))
        better = (jnp.sum(group, 0) > 1) & ((size > search.heaviest) | earlier)
        after = _Search(search.left & ~group, size, below, above)
        keep = search._replace(left=after.left)
        return _Search(*(jnp.where(better, new, old) for new, old in zip(after, keep, strict=True)))

    nothing = jnp.zeros(weight.shape, bool)
    end = lax.while_loop(more, look, _Search(weight > 0, jnp.zeros(weight.shape[1:], weight.dtype), nothing, nothing))
    is_group = jnp.any(end.below, 0)
    above = jnp.where(is_group, end.above, results.took & ~results.lost)
    below = jnp.where(is_group, end.below, results.lost & ~results.took)
    outside = jnp.where(above, Standing.ABOVE, jnp.where(below, Standing.BELOW, Standing.INCOMPARABLE))
    return jnp.where(below & above, Standing.IDENTIFIED, outside).astype(jnp.int8)
