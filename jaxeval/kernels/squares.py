"""Counter-based random words: Widynski's Squares generator, keyed by (seed, stream, resample).

A word is a function of its key and its counter alone, so a resample does not depend on how resamples are
chunked, ordered or spread over devices. Squares (arXiv:2004.06278) is four rounds of 64-bit arithmetic, which a
CPU fuses into the loop that consumes the words; Threefry costs twenty times as much there. Its keys should look
random, which the SplitMix64 finaliser (Steele, Lea and Flood 2014, DOI 10.1145/2714064.2660195) provides.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxeval.kernels.kinds import Float64, Integer, UInt32, UInt64

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mix(x: UInt64[Array, "*shape"]) -> UInt64[Array, "*shape"]:
    """SplitMix64 finaliser: a bijection of 64-bit words without visible structure."""
    x = (x ^ (x >> 30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> 27)) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> 31)


def stream_key(*parts: Integer[Array, "*#shape"] | int) -> UInt64[Array, "*#shape"]:
    """Odd 64-bit key of a stream named by integers, for instance (seed, slice, resample, attempt)."""
    key = jnp.uint64(0)
    for part in parts:
        key = _mix(key * _GOLDEN + jnp.asarray(part).astype(jnp.uint64) + _GOLDEN)
    return key | np.uint64(1)


def _swap_halves(x: UInt64[Array, "*shape"]) -> UInt64[Array, "*shape"]:
    return (x >> 32) | (x << 32)


def _rounds(
    product: UInt64[Array, "*#shape"], key: UInt64[Array, "*#shape"]
) -> tuple[UInt64[Array, "*#shape"], UInt64[Array, "*#shape"]]:
    """Four rounds on a counter times ``key``, and what a fifth one adds."""
    x = y = product
    z = y + key
    x = _swap_halves(x * x + y)
    x = _swap_halves(x * x + z)
    x = _swap_halves(x * x + y)
    return x * x + z, y


def words32(counter: UInt64[Array, "*#shape"], key: UInt64[Array, "*#shape"]) -> UInt32[Array, "*#shape"]:
    """Uniform words of ``counter`` under ``key``."""
    return words32_of_product(counter * key, key)


def words32_of_product(product: UInt64[Array, "*#shape"], key: UInt64[Array, "*#shape"]) -> UInt32[Array, "*#shape"]:
    """As `words32`, of a counter times ``key``: the products of a sum of counters are sums of products."""
    return (_rounds(product, key)[0] >> 32).astype(jnp.uint32)


def words64(counter: UInt64[Array, "*#shape"], key: UInt64[Array, "*#shape"]) -> UInt64[Array, "*#shape"]:
    """Uniform words of ``counter`` under ``key``."""
    x, y = _rounds(counter * key, key)
    return x ^ ((_swap_halves(x) * _swap_halves(x) + y) >> 32)


def uniform(words: UInt64[Array, "*shape"]) -> Float64[Array, "*shape"]:
    """Doubles uniform on the open interval (0, 1) from ``words``."""
    return ((words >> 12).astype(jnp.float64) + 0.5) * 2.0**-52
