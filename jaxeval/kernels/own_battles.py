"""The battles of one model against fixed opponents, and what a resample of them adds up to (arXiv:2606.13221)."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxeval.kernels import resample, squares
from jaxeval.kernels.pair_tables import row_sums


class OwnBattles(NamedTuple):
    """What the bootstrap of one model draws from, its opponents fixed; stacked, a leading axis S."""

    battles: resample.Singles
    stream: Array  # () uint64
    opponent: Array  # (Q,) int32; M where there is no battle, as in the last slot
    target: Array  # (Q, K) by target map; 0 where there is no battle
    anchors: Array  # (K, M)
    start: Array  # (K,)


def draw(own: OwnBattles, seed: Array, numbers: Array, top_up_size: int) -> Array:
    """(R, Q) uint8: how often each battle is in the resamples ``numbers`` (R,); exactly N in every one.

    All lanes at once: drawn lane by lane, as `resample.multinomial` does, they take 1.6 times as long on a CPU.
    """
    battles, size = own.battles, own.opponent.shape[0]

    def keys(attempt: Array) -> Array:
        return jax.vmap(lambda r, a: squares.stream_key(seed, own.stream, r, a))(numbers, attempt)

    def more(state: tuple[Array, Array, Array]) -> Array:
        return ~jnp.all(resample.is_usable(battles, state[1], top_up_size))

    def advance(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        _, missing, attempt = state
        # Lanes that are done keep their attempt, and so draw the same again.
        attempt = attempt + ~resample.is_usable(battles, missing, top_up_size)
        key = keys(attempt)
        # Keys are odd: the condition holds, and keeps the generator from being fused into the sum as well.
        draws = lax.cond(
            key[0] != 0,
            jax.vmap(partial(resample.poisson_singles, battles, size)),
            lambda key: jnp.zeros((key.shape[0], size), jnp.uint8),
            key,
        )
        return draws, battles.total - row_sums(draws.astype(jnp.float32)).astype(jnp.int32), attempt

    first = jnp.zeros((numbers.shape[0], size), jnp.uint8), jnp.full(numbers.shape, -1, jnp.int32)
    draws, missing, attempt = lax.while_loop(more, advance, (*first, jnp.full(numbers.shape, -1, jnp.int32)))
    return jax.vmap(lambda d, m, key: resample.top_up_singles(battles, d, m, top_up_size, key))(
        draws, missing, keys(attempt)
    )


def sums(own: OwnBattles) -> Callable[[Array], tuple[Array, Array]]:
    """From (R, Q) draws to (R, M) battles by opponent and (R, K) scores, in one product in single precision.

    Counts under 2**24 are exact there. A target is split into a multiple of a power of two, whose sums are exact too,
    and a rest so small that its rounding is below 1e-8 of a battle.
    """
    n_models, n_maps = own.anchors.shape[1], own.anchors.shape[0]
    met = own.opponent[:, None] == jnp.arange(n_models)
    bits = 23 - jnp.ceil(jnp.log2(own.battles.total.astype(jnp.float64)))
    scale = jnp.ldexp(jnp.float64(1), bits.astype(jnp.int32))
    coarse = jnp.round(own.target * scale) / scale
    columns = jnp.concatenate([x.astype(jnp.float32) for x in (met, coarse, own.target - coarse)], axis=1)

    def of_draws(draws: Array) -> tuple[Array, Array]:
        found = jnp.matmul(draws.astype(jnp.float32), columns, precision="highest").astype(jnp.float64)
        n, coarse, rest = jnp.split(found, [n_models, n_models + n_maps], axis=1)
        return n, coarse + rest

    return of_draws
