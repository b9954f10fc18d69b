"""Draws of `resample` for many resamples at once, resamples last: how kernels that read rows lane by lane want them.

A draw is that of `resample`, to the bit. Here a unit's constants and table serve all R lanes from registers, which on a
CPU takes a seventh of the time of a lane after the other, and nothing is transposed afterwards.
"""

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxeval.kernels import resample, squares
from jaxeval.kernels.resample import Units


def _keys(seed: Array, stream: Array, numbers: Array, attempt: Array) -> Array:
    return jax.vmap(lambda r, a: squares.stream_key(seed, stream, r, a))(numbers, attempt)


def _poisson(units: Units, key: Array, dtype: type) -> Array:
    """(K Q, R) Poisson draws of all units, row-major, under the lanes' keys (R,)."""
    shift, offset, first = (x.reshape(-1, 1) for x in (units.shift, units.offset, units.first))
    word = squares.words32(resample.counters(units).reshape(-1, 1), key)
    return resample.poisson_of_words(word, shift, offset, first, units.table).astype(dtype)


def poisson(units: Units, seed: Array, stream: Array, numbers: Array, dtype: type) -> Array:
    """(K Q, R) draws of `resample.poisson` in the resamples ``numbers`` (R,)."""
    return _poisson(units, _keys(seed, stream, numbers, jnp.zeros_like(numbers)), dtype)


def multinomial(
    units: Units, row_bits: int, top_up_size: int, seed: Array, stream: Array, numbers: Array, dtype: type
) -> Array:
    """(K Q, R) draws of `resample.multinomial` in the resamples ``numbers`` (R,).

    ``dtype`` must hold the largest draw of a unit.
    """

    def usable(missing: Array) -> Array:
        return (missing >= 0) & (missing <= jnp.minimum(2 * units.shortfall, top_up_size))

    def advance(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        _, missing, attempt = state
        # Lanes that are done keep their attempt, and so draw the same again.
        attempt = attempt + ~usable(missing)
        key = _keys(seed, stream, numbers, attempt)
        # Keys are odd: the condition holds, and keeps the generator from being fused into the sum as well.
        drawn = lax.cond(
            key[0] != 0, lambda k: _poisson(units, k, dtype), lambda k: jnp.zeros((units.size.size, len(k)), dtype), key
        )
        return drawn, units.total - jnp.sum(drawn, 0, dtype=jnp.int32), attempt

    nothing = jnp.full(numbers.shape, -1, jnp.int32)
    empty = jnp.zeros((units.size.size, len(numbers)), dtype)
    drawn, missing, attempt = lax.while_loop(lambda s: ~jnp.all(usable(s[1])), advance, (empty, nothing, nothing))
    key = _keys(seed, stream, numbers, attempt)
    number = jax.vmap(lambda k: resample.uniform_units(units, top_up_size, k), out_axes=1)(key)
    column, row = number >> row_bits, number & ((1 << row_bits) - 1)
    # Flat: XLA's scatter on the CPU is several times as fast on one axis as on two.
    place = (row * units.size.shape[1] + column) * len(numbers) + jnp.arange(len(numbers), dtype=jnp.int32)
    needed = (jnp.arange(top_up_size)[:, None] < missing).astype(dtype)
    return resample.add_at(drawn.reshape(-1), place.reshape(-1), needed.reshape(-1)).reshape(drawn.shape)


def bayesian(units: Units, seed: Array, stream: Array, numbers: Array) -> Array:
    """(K Q, R) weights of `resample.bayesian` in the resamples ``numbers`` (R,)."""
    weights = jax.vmap(lambda r: resample.bayesian(units, seed, stream, r), out_axes=2)(numbers)
    return weights.reshape(-1, len(numbers))
