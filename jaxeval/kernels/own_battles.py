"""The battles of one model against fixed opponents, and what a resample of them adds up to (arXiv:2606.13221)."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from jaxeval.kernels import resample


class OwnBattles(NamedTuple):
    """What the bootstrap of one model draws from, its opponents fixed; stacked, a leading axis S."""

    units: resample.Singles  # its battles, or the clusters that they come in
    most: Array  # () float64: battles that a resample holds at most
    stream: Array  # () uint64
    opponent: Array  # (Q,) int32; M where there is no battle, as in the last slot
    target: Array  # (Q, K) by target map; 0 where there is no battle
    unit: Array | None  # (Q,) int32: the unit that draws each battle; None where units are battles
    anchors: Array  # (K, M)
    start: Array  # (K,)


def sums(own: OwnBattles) -> Callable[[Array], tuple[Array, Array]]:
    """From (R, Q) draws of units to (R, M) battles by opponent and (R, K) scores, in one product in single precision.

    Counts under 2**24 are exact there. A target is split into a multiple of a power of two, whose sums are exact too,
    and a rest so small that its rounding is below 1e-8 of a battle; with clusters of very different sizes, below 1e-8
    of the model's battles.
    """
    n_models, n_maps = own.anchors.shape[1], own.anchors.shape[0]
    met = own.opponent[:, None] == jnp.arange(n_models)
    bits = 23 - jnp.ceil(jnp.log2(own.most))
    scale = jnp.ldexp(jnp.float64(1), bits.astype(jnp.int32))
    coarse = jnp.round(own.target * scale) / scale
    columns = jnp.concatenate([x.astype(jnp.float32) for x in (met, coarse, own.target - coarse)], axis=1)

    def of_draws(draws: Array) -> tuple[Array, Array]:
        if own.unit is not None:
            draws = draws[:, own.unit]
        found = jnp.matmul(draws.astype(jnp.float32), columns, precision="highest").astype(jnp.float64)
        n, coarse, rest = jnp.split(found, [n_models, n_models + n_maps], axis=1)
        return n, coarse + rest

    return of_draws
