"""Counter-based random words: Widynski's Squares generator, keyed by (seed, stream, resample).

A word is a function of its key and its counter alone, so a resample does not depend on how resamples are
chunked, ordered or spread over devices. Squares (arXiv:2004.06278) is four rounds of 64-bit arithmetic, which a
CPU fuses into the loop that consumes the words; Threefry costs twenty times as much there. Its keys should look
random, which the SplitMix64 finaliser (Steele, Lea and Flood 2014, DOI 10.1145/2714064.2660195) provides.

Poisson draws of any rate up to 2**53 come from such words without a table: time and memory do not grow with the rate.
"""

import math

import numpy as np

from jaxeval.kernels.kinds import Array, Float64, Integer, UInt32, UInt64, namespace
from jaxeval.kernels.platforms import by_platform, polynomial
from jaxeval.lazy_names import jnp, lax

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_LARGE = 10.0  # the least rate that is drawn by rejection
# Draws of smaller rates are below this, but for a chance of 1e-70.
_MOST_SMALL = 128
_FEW = 16
# log k! - (k log k - k) of k = 0 .. 15; Stirling's series is exact to the last digit from there on.
_REMAINDER = np.array([math.lgamma(k + 1) - (k * math.log(k) if k else 0.0) + k for k in range(_FEW)])


def _mix(x: UInt64[Array, "*shape"]) -> UInt64[Array, "*shape"]:
    """Apply SplitMix64's finaliser: a bijection of 64-bit words without visible structure."""
    x = (x ^ (x >> 30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> 27)) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> 31)


def stream_key(*parts: Integer[Array, "*#shape"] | int) -> UInt64[Array, "*#shape"]:
    """Return the odd 64-bit key of a stream named by integers, for instance (seed, slice, resample, attempt)."""
    xp = namespace(*parts)
    key = xp.uint64(0)
    with np.errstate(over="ignore"):  # of single numbers, of which NumPy warns
        for part in parts:
            key = _mix(key * _GOLDEN + xp.asarray(part).astype(np.uint64) + _GOLDEN)
    return key | np.uint64(1)


def _square(x: UInt64[Array, "*shape"], more: UInt64[Array, "*shape"]) -> UInt64[Array, "*shape"]:
    """Return x * x + ``more``; here and below an array of NumPy is changed in place, which takes half the time."""
    x *= x
    x += more
    return x


def _swap_halves(x: UInt64[Array, "*shape"]) -> UInt64[Array, "*shape"]:
    low = x >> 32
    x <<= 32
    x |= low
    return x


def _rounds(
    product: UInt64[Array, "*#shape"], key: UInt64[Array, "*#shape"]
) -> tuple[UInt64[Array, "*#shape"], UInt64[Array, "*#shape"]]:
    """Return four rounds on a counter times ``key``, and what a fifth one adds."""
    y, z = product, product + key
    x = _swap_halves(y * y + y)
    x = _swap_halves(_square(x, z))
    x = _swap_halves(_square(x, y))
    return _square(x, z), y


def words32(counter: UInt64[Array, "*#shape"], key: UInt64[Array, "*#shape"]) -> UInt32[Array, "*#shape"]:
    """Return uniform words of ``counter`` under ``key``."""
    return words32_of_product(counter * key, key)


def words32_of_product(product: UInt64[Array, "*#shape"], key: UInt64[Array, "*#shape"]) -> UInt32[Array, "*#shape"]:
    """Return `words32` of a counter times ``key``: the products of a sum of counters are sums of products."""
    return (_rounds(product, key)[0] >> 32).astype(np.uint32)


def words64(counter: UInt64[Array, "*#shape"], key: UInt64[Array, "*#shape"]) -> UInt64[Array, "*#shape"]:
    """Return uniform words of ``counter`` under ``key``."""
    x, y = _rounds(counter * key, key)
    fifth = _square((x >> 32) | (x << 32), y)
    fifth >>= 32
    fifth ^= x
    return fifth


def uniform(words: UInt64[Array, "*shape"]) -> Float64[Array, "*shape"]:
    """Return doubles uniform on the open interval (0, 1) from ``words``."""
    return ((words >> 12).astype(jnp.float64) + 0.5) * 2.0**-52


#: Of artanh(x) / x by x^2 up to 0.172, and of sin(x) / x by x^2 up to pi / 2; the highest power first.
_ARTANH = [1 / (2 * k + 1) for k in range(11, -1, -1)]
_SINE = [(-1.0) ** k / math.factorial(2 * k + 1) for k in range(11, -1, -1)]
_ROOT_OF_HALF = np.float64(math.sqrt(0.5)).view(np.int64)


def log(x: Float64[Array, "*shape"]) -> Float64[Array, "*shape"]:
    """Return logarithms of normal doubles above 0. On a CPU XLA does not vectorise its own, which takes far longer."""

    def by_polynomial(x: Array) -> Array:
        bits = lax.bitcast_convert_type(x, jnp.int64)
        exponent = (bits - _ROOT_OF_HALF) >> 52
        mantissa = lax.bitcast_convert_type(bits - (exponent << 52), jnp.float64)  # from sqrt(1/2) to sqrt(2)
        part = (mantissa - 1) / (mantissa + 1)
        return exponent * math.log(2) + 2 * part * polynomial(_ARTANH, part**2)

    return by_platform(x, cpu=by_polynomial, default=jnp.log)


def log1p(x: Float64[Array, "*shape"]) -> Float64[Array, "*shape"]:
    """Return log(1 + x), x > -1, by `log` but for small x."""
    part = x / (2 + x)
    return jnp.where(jnp.abs(x) < 0.25, 2 * part * polynomial(_ARTANH, part**2), log(1 + x))


def normal(radius: UInt64[Array, "*shape"], angle: UInt64[Array, "*shape"]) -> Float64[Array, "*shape"]:
    """Return standard normal numbers from two words each (Box and Muller 1958, DOI 10.1214/aoms/1177706645)."""
    half_turn = math.pi * (uniform(angle) - 0.5)
    sine = half_turn * polynomial(_SINE, half_turn**2)
    return jnp.sqrt(-2 * log(uniform(radius))) * (2 * sine**2 - 1)  # the cosine of the whole angle


def log_mass(k: Float64[Array, "*#shape"], rate: Float64[Array, "*#shape"]) -> Float64[Array, "*#shape"]:
    """Return log of the Poisson mass at whole numbers k >= 0, by Loader's saddle-point form (2000).

    k log(rate / k) + k - rate is formed from the difference of k and rate, which is exact: near the mode of a large
    rate all digits of k log rate - rate - log k! would cancel.
    """
    off = (k - rate) / rate
    deviance = rate * ((1 + off) * jnp.log1p(jnp.maximum(off, -1 + 2.0**-53)) - off)
    large = jnp.maximum(k, _FEW)
    series = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / large**2) / large**2) / large**2) / large
    few = jnp.asarray(_REMAINDER).at[jnp.minimum(k, _FEW - 1).astype(jnp.int32)].get(mode="promise_in_bounds")
    return -deviance - jnp.where(k < _FEW, few, 0.5 * jnp.log(2 * np.pi * large) + series)


def draws(
    rate: Float64[Array, "*#shape"], counter: UInt64[Array, "*#shape"], key: UInt64[Array, "*#shape"]
) -> Float64[Array, "*#shape"]:
    """Return independent Poisson draws, whole numbers, from the words of each ``counter`` under its ``key``."""
    return jnp.where(rate < _LARGE, _by_inversion(rate, counter, key), _by_rejection(rate, counter, key))


def _uniform(counter: Array, key: Array, *parts: Array | int) -> Array:
    return uniform(words64(counter, stream_key(key, *parts)))


def _by_inversion(rate: Array, counter: Array, key: Array) -> Array:
    """Return the first k whose cumulative mass reaches a uniform number; 0 where the rate is large."""
    uniform = _uniform(counter, key, 0)

    def more(state: tuple[Array, Array, Array]) -> Array:
        return (state[2] < uniform) & (rate < _LARGE) & (state[0] < _MOST_SMALL)

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        k, mass, below = state
        goes_on = more(state)
        mass = jnp.where(goes_on, mass * rate / (k + 1), mass)
        return jnp.where(goes_on, k + 1, k), mass, jnp.where(goes_on, below + mass, below)

    mass = jnp.broadcast_to(jnp.exp(-rate), uniform.shape)
    k, _, _ = lax.while_loop(lambda state: jnp.any(more(state)), step, (jnp.zeros_like(mass), mass, mass))
    return k


def _by_rejection(rate: Array, counter: Array, key: Array) -> Array:
    """Draw by Hörmann's transformed rejection (1993, DOI 10.1016/0167-6687(93)90997-4); 0 where the rate is small."""
    large = jnp.maximum(rate, _LARGE)
    b = 0.931 + 2.53 * jnp.sqrt(large)
    a = -0.059 + 0.02483 * b
    inverse_alpha, v_r = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)

    def attempt(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        drawn, done, number = state
        u, v = _uniform(counter, key, number, 0) - 0.5, _uniform(counter, key, number, 1)
        us = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / us + b) * u + large + 0.43)
        possible = (k >= 0) & ((us >= 0.013) | (v <= us))
        ratio = jnp.log(v * inverse_alpha / (a / us**2 + b))
        accept = ((us >= 0.07) & (v <= v_r)) | (possible & (ratio <= log_mass(jnp.maximum(k, 0.0), large)))
        return jnp.where(done | ~accept, drawn, k), done | accept, number + 1

    shape = jnp.broadcast_shapes(rate.shape, counter.shape, key.shape)
    start = jnp.zeros(shape), jnp.broadcast_to(rate < _LARGE, shape), jnp.int32(1)
    drawn, _, _ = lax.while_loop(lambda state: ~jnp.all(state[1]), attempt, start)
    return drawn
