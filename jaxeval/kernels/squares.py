"""Counter-based random words: Widynski's Squares generator, keyed by (seed, stream, resample).

A word is a function of its key and its counter alone, so a resample does not depend on how resamples are
chunked, ordered or spread over devices. Squares (arXiv:2004.06278) is four rounds of 64-bit arithmetic, which a
CPU fuses into the loop that consumes the words; Threefry costs twenty times as much there. Its keys should look
random, which the SplitMix64 finaliser (Steele, Lea and Flood 2014, DOI 10.1145/2714064.2660195) provides.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mix(x: Array) -> Array:
    """SplitMix64 finaliser: a bijection of 64-bit words without visible structure."""
    x = (x ^ (x >> 30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> 27)) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> 31)


def stream_key(*parts: Array | int) -> Array:
    """Odd 64-bit key of a stream named by integers, for instance (seed, slice, resample, attempt)."""
    key = jnp.uint64(0)
    for part in parts:
        key = _mix(key * _GOLDEN + jnp.asarray(part).astype(jnp.uint64) + _GOLDEN)
    return key | np.uint64(1)


def _swap_halves(x: Array) -> Array:
    return (x >> 32) | (x << 32)


def _rounds(counter: Array, key: Array) -> tuple[Array, Array]:
    """Four rounds on ``counter`` (uint64, any shape), and what a fifth one adds."""
    x = counter * key
    y, z = x, x + key
    x = _swap_halves(x * x + y)
    x = _swap_halves(x * x + z)
    x = _swap_halves(x * x + y)
    return x * x + z, y


def words32(counter: Array, key: Array) -> Array:
    """Uniform uint32 words of ``counter`` (uint64, any shape) under one ``key``."""
    return (_rounds(counter, key)[0] >> 32).astype(jnp.uint32)


def words64(counter: Array, key: Array) -> Array:
    """Uniform uint64 words of ``counter`` (uint64, any shape) under one ``key``."""
    x, y = _rounds(counter, key)
    return x ^ ((_swap_halves(x) * _swap_halves(x) + y) >> 32)


def uniform(words: Array) -> Array:
    """Doubles uniform on the open interval (0, 1) from uint64 ``words``."""
    return ((words >> 12).astype(jnp.float64) + 0.5) * 2.0**-52
