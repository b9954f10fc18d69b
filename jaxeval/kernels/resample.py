"""Bootstrap weights of the resampling units: multinomial, Poisson and Bayesian, drawn from counters.

A *unit* is what the bootstrap draws. All battles of one cell (same pair, target and weight) are exchangeable, so one
unit stands for ``count`` of them and a draw says how many of its battles the resample holds; a cluster is a unit of
size 1.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.custom_batching import custom_vmap

from jaxeval.kernels import squares

# Counters of disjoint ranges under one key: column + row * 2**32 for the units, all above 2**62 for the top-up.
_ROW_STRIDE = np.uint64(1 << 32)
_TOP_UP = np.uint64(1 << 62)
_LOW32 = np.uint64(0xFFFFFFFF)


class Units(NamedTuple):
    """Resampling units on a (K, Q) grid, and the alias tables that draw them.

    Unit (k, q) has the number q * 2**row_bits + k. A unit of size 0 is padding and always draws 0. One Poisson table
    serves all units of one size: 2**b words of a threshold (upper 32 - b bits) and an alias (lower b bits).
    """

    size: Array  # (K, Q) int32: battles, or clusters, in the unit
    shift: Array  # (K, Q) uint32: 32 - b of the unit's Poisson table
    offset: Array  # (K, Q) int32: where that table starts
    first: Array  # (K, Q) int32: its smallest value
    table: Array  # (T,) uint32: all Poisson tables, end to end
    category: Array  # (G,) uint64: alias table over unit numbers by size: threshold << 32 | alias
    n_categories: Array  # () uint64: its columns in use
    total: Array  # () int32: sum of the sizes
    shortfall: Array  # () int32: by how much the Poisson rates fall short of the total


class Singles(NamedTuple):
    """N battles drawn one by one: units of size 1 that need no alias tables."""

    total: Array  # () int32: N
    shortfall: Array  # () int32: by how much the Poisson rates fall short of the total
    threshold: Array  # (T,) uint32: 2**32 P(X <= k) of the Poisson count X of one battle, k = 0 .. T - 1


class Tally(NamedTuple):
    """How the draws of all units of a resample are held: static, one of two forms.

    Unpacked: a (K, Q) integer array. Packed, for hard outcomes (K = 3: loss, tie, win of the pair's first model): one
    word a pair, the number of battles in its upper half and twice the score in its lower.
    """

    word: type | None  # unsigned type of packed words, None for unpacked
    row_bits: int

    @property
    def half(self) -> int:
        """Bits of half a packed word."""
        return np.iinfo(self.word).bits // 2 if self.word else 0

    def collect(self, rows: list[Array]) -> Array:
        """The tally of all units' draws, given row by row."""
        if self.word is None:
            return jnp.stack(rows)
        losses, ties, wins = (row.astype(self.word) for row in rows)
        return ((losses + ties + wins) << self.half) | (2 * wins + ties)

    def total(self, draws: Array) -> Array:
        """Number of battles (or clusters) drawn."""
        return jnp.sum(draws >> self.half if self.word else draws, dtype=jnp.int32)

    def add_one(self, draws: Array, number: Array, valid: Array) -> Array:
        """``draws`` with one more of each unit ``number`` (int32) where ``valid``."""
        column, row = number >> self.row_bits, number & ((1 << self.row_bits) - 1)
        if self.word is None:
            flat = add_at(draws.reshape(-1), row * draws.shape[1] + column, valid.astype(draws.dtype))
            return flat.reshape(draws.shape)
        one_battle = row.astype(self.word) + self.word(1 << self.half)
        return add_at(draws, column, jnp.where(valid, one_battle, 0))


@custom_vmap
def add_at(table: Array, index: Array, value: Array) -> Array:
    """``table`` (Q,) with ``value`` (T,) added at ``index`` (T,), repeated ones too; all must be in bounds.

    Under vmap the tables are laid end to end: XLA's scatter on the CPU is three times as fast on one axis as on two.
    """
    return table.at[index].add(value, mode="promise_in_bounds")


@add_at.def_vmap
def _add_at_lanes(lanes: int, is_batched: list[bool], table: Array, index: Array, value: Array) -> tuple[Array, bool]:
    table, index, value = (
        x if batched else jnp.broadcast_to(x, (lanes, *x.shape))
        for x, batched in zip((table, index, value), is_batched, strict=True)
    )
    start = jnp.arange(lanes, dtype=index.dtype)[:, None] * table.shape[1]
    flat = add_at(table.reshape(-1), (start + index).reshape(-1), value.reshape(-1))
    return flat.reshape(table.shape), True


def _take(table: Array, index: Array) -> Array:
    return table.at[index].get(mode="promise_in_bounds")


def counters(units: Units) -> Array:
    """(K, Q) uint64: what each unit's word is drawn from, under the key of a resample."""
    column, row = (lax.broadcasted_iota(jnp.uint64, units.size.shape, axis) for axis in (1, 0))
    return column + row * _ROW_STRIDE


def poisson_of_words(word: Array, shift: Array, offset: Array, first: Array, table: Array) -> Array:
    """int32 Poisson draws from uint32 words and the units' entries in `Units`, which broadcast."""
    column = (word >> shift).astype(jnp.int32)
    entry = _take(table, offset + column)
    bits = 32 - shift
    keep = (word & ((jnp.uint32(1) << shift) - 1)) < (entry >> bits)
    alias = (entry & ((jnp.uint32(1) << bits) - 1)).astype(jnp.int32)
    return first + jnp.where(keep, column, alias)


def _poisson_row(units: Units, row: int, key: Array) -> Array:
    shift, offset, first = (x[row] for x in (units.shift, units.offset, units.first))
    counter = jnp.arange(shift.shape[0], dtype=jnp.uint64) + row * _ROW_STRIDE
    return poisson_of_words(squares.words32(counter, key), shift, offset, first, units.table)


def poisson(units: Units, tally: Tally, seed: Array, stream: Array, resample: Array) -> Array:
    """Tally of independent Poisson draws, at the rates that the tables of ``units`` were built for."""
    key = squares.stream_key(seed, stream, resample, 0)
    rows = [_poisson_row(units, row, key) for row in range(units.shift.shape[0])]
    return tally.collect(rows)


def uniform_units(units: Units, size: int, key: Array) -> Array:
    """(size,) int32 numbers of units drawn in proportion to their sizes."""
    word = squares.words64(_TOP_UP + jnp.arange(size, dtype=jnp.uint64), key)
    # A product's high half is a uniform column, its low half an independent uniform fraction.
    column, fraction = _product(word, units.n_categories)
    entry = _take(units.category, column.astype(jnp.int32))
    return jnp.where(fraction < (entry >> 32), column, entry & _LOW32).astype(jnp.int32)


def multinomial(units: Units, tally: Tally, top_up_size: int, seed: Array, stream: Array, resample: Array) -> Array:
    """Tally of ``units.total`` battles (or clusters) drawn uniformly with replacement, exactly.

    Independent Poisson counts are multinomial given their total, whatever law the total has. Here it falls short of
    N by ``units.shortfall`` on average. Where it exceeds N, or falls short by twice that or more than ``top_up_size``
    (once in a thousand resamples or less), the draw is repeated under another key; the battles that then are missing
    are drawn one by one.
    """
    limit = jnp.minimum(2 * units.shortfall, top_up_size)

    def draw(attempt: Array) -> tuple[Array, Array, Array, Array]:
        key = squares.stream_key(seed, stream, resample, attempt)
        draws = tally.collect([_poisson_row(units, row, key) for row in range(units.shift.shape[0])])
        return draws, uniform_units(units, top_up_size, key), attempt, units.total - tally.total(draws)

    def unusable(state: tuple[Array, Array, Array, Array]) -> Array:
        *_, missing = state
        return (missing < 0) | (missing > limit)

    # The first draw stands outside of the loop, which under vmap would copy the draws of all lanes at every turn. What
    # passes through the loop is in memory afterwards: XLA's CPU scatter is slow with a computation of indices fused in.
    first = draw(jnp.int32(0))
    draws, extra, _, missing = lax.while_loop(unusable, lambda state: draw(state[2] + 1), first)
    return tally.add_one(draws, extra, jnp.arange(top_up_size) < missing)


def _product(word: Array, n: Array) -> tuple[Array, Array]:
    """The 128-bit product ``word`` * ``n`` (n < 2**32): its upper 64 bits, and bits 32 to 63."""
    return ((word >> 32) * n + (((word & _LOW32) * n) >> 32)) >> 32, (word * n) >> 32


def poisson_singles(battles: Singles, size: int, key: Array) -> Array:
    """(Q,) uint8 independent Poisson counts of ``size`` battles under ``key``; 0 beyond the first N.

    A word is compared with every threshold, which vectorises: a third of the time of an alias table's gather.
    """
    slot = jnp.arange(size, dtype=jnp.int32)
    word = squares.words32(slot.astype(jnp.uint64), key)
    count = sum((word >= threshold).astype(jnp.uint8) for threshold in battles.threshold)
    return jnp.where(slot < battles.total, count, jnp.uint8(0))


def singles(battles: Singles, size: int, top_up_size: int, seed: Array, stream: Array, numbers: Array) -> Array:
    """(R, Q) uint8: how often each battle is in the resamples ``numbers`` (R,); exactly N in every one.

    All lanes at once: drawn lane by lane, as `multinomial` does, they take 1.6 times as long on a CPU. The last of the
    Q = ``size`` slots is no battle, and takes what the top-up does not need.
    """

    def keys(attempt: Array) -> Array:
        return jax.vmap(lambda r, a: squares.stream_key(seed, stream, r, a))(numbers, attempt)

    def more(state: tuple[Array, Array, Array]) -> Array:
        return ~jnp.all(is_usable(battles, state[1], top_up_size))

    def advance(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        _, missing, attempt = state
        # Lanes that are done keep their attempt, and so draw the same again.
        attempt = attempt + ~is_usable(battles, missing, top_up_size)
        key = keys(attempt)
        # Keys are odd: the condition holds, and keeps the generator from being fused into the sum as well.
        draws = lax.cond(
            key[0] != 0,
            jax.vmap(partial(poisson_singles, battles, size)),
            lambda key: jnp.zeros((key.shape[0], size), jnp.uint8),
            key,
        )
        drawn = jnp.matmul(draws.astype(jnp.float32), jnp.ones(size, jnp.float32), precision="highest")
        return draws, battles.total - drawn.astype(jnp.int32), attempt

    first = jnp.zeros((numbers.shape[0], size), jnp.uint8), jnp.full(numbers.shape, -1, jnp.int32)
    draws, missing, attempt = lax.while_loop(more, advance, (*first, jnp.full(numbers.shape, -1, jnp.int32)))
    return jax.vmap(lambda d, m, key: top_up_singles(battles, d, m, top_up_size, key))(draws, missing, keys(attempt))


def is_usable(battles: Singles, missing: Array, top_up_size: int) -> Array:
    """Whether a draw that lacks so many battles can be topped up, see `multinomial`."""
    return (missing >= 0) & (missing <= jnp.minimum(2 * battles.shortfall, top_up_size))


def top_up_singles(battles: Singles, draws: Array, missing: Array, top_up_size: int, key: Array) -> Array:
    """``draws`` (Q,) with the ``missing`` battles drawn uniformly; the last slot, no battle, takes what is not used."""
    index = jnp.arange(top_up_size, dtype=jnp.int32)
    number, _ = _product(squares.words64(_TOP_UP + index.astype(jnp.uint64), key), battles.total.astype(jnp.uint64))
    number = jnp.where(index < missing, number.astype(jnp.int32), draws.shape[0] - 1)
    return draws.at[number].add(jnp.uint8(1), mode="promise_in_bounds")


def bayesian(units: Units, seed: Array, stream: Array, resample: Array) -> Array:
    """(K, Q) Dirichlet weights times the number of battles: the Bayesian bootstrap (DOI 10.1214/aos/1176345338).

    Each battle has an exponential weight, so a unit's is Gamma(size), drawn by the squeeze of Marsaglia and Tsang
    (DOI 10.1145/358407.358414).
    """
    d = units.size - 1.0 / 3.0
    c = 1.0 / jnp.sqrt(9.0 * jnp.maximum(d, 0.5))
    counter = counters(units)

    def attempt(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        weight, done, number = state
        uniforms = [
            squares.uniform(squares.words64(counter, squares.stream_key(seed, stream, resample, number, part)))
            for part in range(3)
        ]
        normal = jnp.sqrt(-2 * jnp.log(uniforms[0])) * jnp.cos(2 * np.pi * uniforms[1])
        v = (1 + c * normal) ** 3
        log_v = jnp.log(jnp.where(v > 0, v, 1.0))
        accept = (v > 0) & (jnp.log(uniforms[2]) < 0.5 * normal**2 + d * (1 - v + log_v))
        return jnp.where(done, weight, d * v), done | accept, number + 1

    start = (jnp.zeros(d.shape), units.size == 0, jnp.int32(1))
    weight, _, _ = lax.while_loop(lambda state: ~jnp.all(state[1]), attempt, start)
    return weight * (units.total / jnp.sum(weight))
