"""Which models a resample can compare: the main group of its own graph of wins, and where the others stand to it."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from jaxeval.kernels.pair_tables import row_sums

# Standing of a model next to the main group. Only models inside have a finite maximum-likelihood rating that compares
# with the others' (Zermelo 1929, DOI 10.1007/BF01180541; Ford 1957, DOI 10.2307/2308513).
IDENTIFIED, ABOVE, BELOW, INCOMPARABLE = 0, 1, 2, 3


def reachable(edge: Array, start: Array) -> Array:
    """(M,) models reached from model ``start`` along (M, M) ``edge`` (nonzero from row to column)."""
    edge = (edge > 0).astype(jnp.float32)
    first = jnp.zeros(edge.shape[0], jnp.float32).at[start].set(1.0)

    def grow(state: tuple[Array, Array]) -> tuple[Array, Array]:
        reached, _ = state
        grown = jnp.minimum(reached + jnp.matmul(reached, edge, precision="highest"), 1.0)
        return grown, jnp.any(grown != reached)

    reached, _ = lax.while_loop(lambda state: state[1], grow, (first, jnp.bool_(True)))
    return reached > 0


class _Search(NamedTuple):
    left: Array  # (M,) models whose group has not been looked at
    heaviest: Array  # () weight of the best group so far
    below: Array  # (M,) models that it reaches by wins, itself included
    above: Array  # (M,) models that reach it


def standing(n: Array, wins: Array, weight: Array) -> Array:
    """(M,) int8 standing of every model next to the main group of (M, M) battle weights ``n`` and ``wins``.

    Groups are the strongly connected components, of two models or more, of the graph "took points off"; the main one
    has most ``weight`` (M,), and of equals the first model; a group of weight 0 is none. IDENTIFIED: a member. ABOVE:
    took points off it, perhaps through others, and never lost any back; BELOW the reverse; INCOMPARABLE: no chain of
    points either way, or no battles. Without any group, ABOVE never lost a point at all, and BELOW never took one.
    """
    battles = row_sums(n)

    def more(search: _Search) -> Array:
        # No group among the models left can weigh more than all of them.
        return jnp.any(search.left) & (jnp.sum(jnp.where(search.left, weight, 0)) >= search.heaviest)

    def look(search: _Search) -> _Search:
        start = jnp.argmax(jnp.where(search.left, weight, -1))
        below, above = reachable(wins, start), reachable(wins.T, start)
        group, best = below & above, search.below & search.above
        own = jnp.sum(jnp.where(group, weight, 0))
        earlier = (own == search.heaviest) & (jnp.argmax(group) < jnp.argmax(best))
        better = (jnp.sum(group) > 1) & ((own > search.heaviest) | earlier)
        found = _Search(search.left & ~group, own, below, above)
        keep = search._replace(left=found.left)
        return _Search(*(jnp.where(better, new, old) for new, old in zip(found, keep, strict=True)))

    nothing = jnp.zeros(battles.shape, bool)
    end = lax.while_loop(more, look, _Search(weight > 0, jnp.zeros((), weight.dtype), nothing, nothing))
    is_group = jnp.any(end.below)
    above = jnp.where(is_group, end.above, (battles > 0) & (row_sums(wins.T) == 0))
    below = jnp.where(is_group, end.below, (battles > 0) & (row_sums(wins) == 0))
    return jnp.where(
        below & above,
        IDENTIFIED,
        jnp.where(above, ABOVE, jnp.where(below, BELOW, INCOMPARABLE)),
    ).astype(jnp.int8)
