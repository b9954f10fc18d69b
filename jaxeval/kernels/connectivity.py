"""Which models a resample can compare: two reachability searches from a hub model."""

import jax.numpy as jnp
from jax import Array, lax

# Standing of a model relative to the hub's group. Only models inside have a finite maximum-likelihood rating that
# compares with the others' (Zermelo 1929, DOI 10.1007/BF01180541; Ford 1957, DOI 10.2307/2308513).
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


def standing(wins: Array, hub: Array) -> Array:
    """(M,) int8 standing of every model relative to the models mutually comparable with the ``hub``.

    IDENTIFIED models have a finite maximum-likelihood rating next to the hub's. ABOVE: took points off those, perhaps
    through others, and never lost any back; BELOW the reverse; INCOMPARABLE: no chain of points either way.
    """
    below, above = reachable(wins, hub), reachable(wins.T, hub)
    return jnp.where(
        below & above,
        IDENTIFIED,
        jnp.where(above, ABOVE, jnp.where(below, BELOW, INCOMPARABLE)),
    ).astype(jnp.int8)
