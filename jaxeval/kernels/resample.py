"""Bootstrap weights of the resampling units: multinomial, Poisson and Bayesian, drawn from counters.

A *unit* is what the bootstrap draws. All battles of one cell (same pair, target and weight) are exchangeable, so one
unit stands for ``count`` of them and a draw says how many of its battles the resample holds; a cluster is a unit of
size 1. A *stratum* is a set of units of which every resample holds the same number. As a rule there is one stratum:
everything.

Every function draws R resamples at once. Arrays have the lanes first; `lane_draws` has them last.

Multinomial draws are written for JAX and NumPy alike: a few resamples of a few units take NumPy less time than JAX
takes to start.
"""

from collections.abc import Callable
from enum import IntEnum
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from jaxeval.kernels import squares
from jaxeval.kernels.kinds import (
    Array,
    Bool,
    Float,
    Int32,
    Integer,
    Num,
    Shaped,
    UInt,
    UInt8,
    UInt32,
    UInt64,
    namespace,
)
from jaxeval.kernels.platforms import add_at, added, by_platform
from jaxeval.lazy_names import jax, jnp, lax

# Counters of disjoint ranges under one key: column + row * 2**32 for the units, all above 2**62 for the single draws.
_ROW_STRIDE = np.uint64(1 << 32)
_SINGLE_DRAWS = np.uint64(1 << 62)
_LOW32 = np.uint64(0xFFFFFFFF)

_FEW_LANES = 16  # that an accelerator draws again together
_BLOCKS = 16  # of columns that are added on a CPU
_PLACES, _LEAST_PLACES = 2**14, 256  # for single draws of all lanes of a block on a CPU, and of a lane

# Without tables, battles are drawn in rounds, each of which aims so many standard deviations under what is missing: one
# resample in 100,000 is drawn again. Few are then left to single draws, be there 2**53 battles.
ROUNDS = 3
ROUND_SHORTFALL = 4.5


class DrawScheme(IntEnum):
    """How a resample weights the battles (or the clusters, or the items)."""

    MULTINOMIAL = 0
    """As many as there are, drawn with replacement."""
    POISSON = 1
    """Each of them an independent Poisson(1) number of times."""
    BAYESIAN = 2
    """Dirichlet weights that sum to their number."""


class Strata(NamedTuple):
    """The S strata, each of units with consecutive numbers, and how every resample gets the right number of each.

    Most battles are drawn by the units' Poisson counts, whose rates fall short of the total. The rest is drawn one by
    one.
    """

    total: Integer[Array, "... S"]  # battles, or clusters, of a stratum in every resample
    limit: Int32[Array, "... S"]  # how many of them at most are drawn one by one
    first: Int32[Array, "... S"]  # number of its first unit
    n_numbers: UInt64[Array, "... S"]  # numbers of units from there on
    # The stratum of every place for a single draw, `limit` in a row of each; 0 of further ones.
    place: Int32[Array, "... places"]
    column: Int32[Array, "... Q"] | None = None  # the stratum of the units of each column; None with one stratum


class RateTables(NamedTuple):
    """Alias tables that draw units by their Poisson rates, and the constants of each unit.

    One table serves all units of one rate: 2**b words of a threshold (upper 32 - b bits) and an alias (lower b bits).
    """

    shift: UInt32[Array, "... K Q"]  # 32 - b of the unit's table
    offset: Int32[Array, "... K Q"]  # where that table starts
    least: Int32[Array, "... K Q"]  # its smallest value
    words: UInt32[Array, "... words"]  # all tables, end to end

    def draw(
        self, word: UInt32[Array, "*#units"], of_units: Callable[[Array], Array] = lambda x: x
    ) -> Int32[Array, "*#units"]:
        """Return Poisson draws from words and the constants ``of_units``, which broadcast."""
        shift, offset, least = (of_units(x) for x in self[:3])
        column = (word >> shift).astype(np.int32)
        entry = _take(self.words, offset + column)
        bits = 32 - shift
        keep = (word & ((np.uint32(1) << shift) - 1)) < (entry >> bits)
        alias = (entry & ((np.uint32(1) << bits) - 1)).astype(np.int32)
        return least + namespace(word).where(keep, column, alias)


class Units(NamedTuple):
    """Resampling units on a (K, Q) grid, and the alias tables that draw them.

    Unit (k, q) has the number q * 2**b + k, 2**b being the least power of two from K on. A unit of size 0 is padding
    and always draws 0. Tables grow with the roots of the sizes. Where these are so large that tables would take more
    than they save, there are none: units are drawn by `squares.draws`, and sizes are doubles.
    """

    size: Num[Array, "... K Q"]  # battles, or clusters, in the unit
    tables: RateTables | None
    category: UInt64[Array, "... G"]  # alias tables over a stratum's unit numbers by size: threshold << 32 | alias
    strata: Strata


class Singles(NamedTuple):
    """N battles (or clusters, or items) drawn one by one: units of size 1 that need no alias tables."""

    threshold: UInt32[Array, "... S T"]  # 2**32 P(X <= k) of the Poisson count X of one battle, k = 0 .. T - 1
    strata: Strata


class Packing(NamedTuple):
    """How the draws of the units of R resamples are held: static, one of two forms.

    Unpacked: an (R, K, Q) integer array. Packed, for hard outcomes (K = 3: loss, tie, win of the pair's first model):
    (R, Q) words, one per pair. The lowest bits hold twice the score, the next ones the ties if they are kept, and the
    highest the number of battles.
    """

    word: type | None  # unsigned type of packed words, None for unpacked
    keeps_ties: bool = False

    @property
    def bits(self) -> int:
        """Bits of each number in a packed word: a half of the word's, or a third."""
        return np.iinfo(self.word).bits // (2 + self.keeps_ties) if self.word else 0

    def pack(self, rows: list[Num[Array, "*shape"]]) -> Num[Array, "R K Q"] | UInt[Array, "*shape"]:
        """Return the draws of all units, given row by row."""
        if self.word is None:
            return namespace(*rows).stack(rows, axis=1)
        losses, ties, wins = (row.astype(self.word) for row in rows)
        fields = [losses + ties + wins, *([ties] if self.keeps_ties else []), 2 * wins + ties]
        return reduce(lambda word, field: (word << self.bits) | field, fields)

    def fields(self, words: UInt[Array, "*shape"]) -> tuple[UInt[Array, "*shape"], ...]:
        """Return number of battles, twice the score, and the ties if they are kept."""
        low = words.dtype.type((1 << self.bits) - 1)
        ties = ((words >> self.bits) & low,) if self.keeps_ties else ()
        return self.battles(words), words & low, *ties

    def battles(self, draws: Num[Array, "R K Q"] | UInt[Array, "R Q"]) -> Num[Array, "R Q"]:
        """Return battles (or clusters) drawn, by column."""
        return draws >> (1 + self.keeps_ties) * self.bits if self.word else namespace(draws).sum(draws, axis=1)

    def add(
        self,
        draws: Num[Array, "R *units"],
        column: Int32[Array, "R T"],
        row: Int32[Array, "R T"],
        needed: Bool[Array, "R T"],
    ) -> Num[Array, "R *units"]:
        """Return ``draws`` with one more of each unit at ``column`` and ``row`` where ``needed``."""
        if self.word is None:
            flat = draws.reshape(len(draws), -1)
            return add_at(flat, row * draws.shape[2] + column, needed).reshape(draws.shape)
        one_battle = self.pack([(row == k).astype(self.word) for k in range(3)])
        return add_at(draws, column, namespace(needed).where(needed, one_battle, one_battle.dtype.type(0)))


def _take(table: Any, index: Any) -> Any:
    return table[index] if isinstance(table, np.ndarray) else table.at[index].get(mode="promise_in_bounds")


def of_strata(
    values: Shaped[Array, "*shape"], stratum: Int32[Array, "units"] | None, axis: int = 1
) -> Shaped[Array, "..."]:
    """Gather ``values`` of strata (along ``axis``) for the units of a ``stratum``; None leaves them to broadcast."""
    if stratum is None:
        return values
    return _take(values, (slice(None),) * axis + (stratum,))


def by_stratum(strata: Strata, columns: Num[Array, "R Q"]) -> Num[Array, "R S"]:
    """Return sums of ``columns`` within the strata."""
    if strata.column is None:
        return _row_totals(columns)
    if np.issubdtype(columns.dtype, np.floating):
        return added(jnp.zeros((len(strata.total), len(columns)), columns.dtype), (strata.column, columns.T)).T
    xp = namespace(columns)
    sums = xp.zeros((len(columns), len(strata.total)), columns.dtype)
    return add_at(sums, xp.broadcast_to(strata.column, columns.shape), columns)


def _row_totals(columns: Num[Array, "R Q"]) -> Num[Array, "R 1"]:
    """Return row sums; on a CPU whole numbers are added block by block of the columns, which XLA vectorises."""

    def summed(columns: Array) -> Array:
        return namespace(columns).sum(columns, axis=1, keepdims=True, dtype=columns.dtype)

    def by_block(columns: Array) -> Array:
        size = columns.shape[1] // _BLOCKS
        blocks = sum((columns[:, k * size : (k + 1) * size] for k in range(1, _BLOCKS)), columns[:, :size])
        total = jnp.matmul(blocks.astype(jnp.float64), np.ones((size, 1)), precision="highest").astype(columns.dtype)
        return total + summed(columns[:, _BLOCKS * size :])

    if namespace(columns) is np or np.issubdtype(columns.dtype, np.floating):
        return summed(columns)
    return by_platform(columns, cpu=by_block, default=summed)


def split_number(units: Units, number: Int32[Array, "*shape"]) -> tuple[Int32[Array, "*shape"], Int32[Array, "*shape"]]:
    """Return the column and row of the units of these numbers."""
    row_bits = (len(units.size) - 1).bit_length()
    return number >> row_bits, number & ((1 << row_bits) - 1)


def counters(units: Units) -> UInt64[Array, "K Q"]:
    """Return the counter of each unit: with the key of a resample it gives the unit's random word."""
    column, row = (lax.broadcasted_iota(jnp.uint64, units.size.shape, axis) for axis in (1, 0))
    return column + row * _ROW_STRIDE


def draw(
    units: Units,
    scheme: DrawScheme,
    packing: Packing,
    seed: Integer[Array, ""],
    stream: Integer[Array, ""],
    numbers: Integer[Array, "R"],
) -> Num[Array, "R K Q"] | UInt[Array, "R Q"]:
    """Draw all units in the resamples ``numbers``, in the form of ``packing``; Bayesian weights are unpacked.

    Poisson draws have the rates that the tables of ``units`` were built for.
    """
    if scheme == DrawScheme.MULTINOMIAL:
        return multinomial(units, packing, seed, stream, numbers)
    if scheme == DrawScheme.POISSON:
        return poisson_draws(units, packing, squares.stream_key(seed, stream, numbers[:, None], 0))
    return bayesian(units, seed, stream, numbers)


def _in_rounds(units: Units, key: UInt64[Array, "R S"]) -> Float[Array, "R K Q"]:
    """Return Poisson draws whose rates follow what the rounds before left. Given their sum, they are multinomial."""
    strata = units.strata
    total = strata.total.astype(jnp.float64)
    missing, drawn = jnp.broadcast_to(total, key.shape), jnp.float64(0)
    for number in range(ROUNDS):
        left = jnp.maximum(missing, 0)
        share = jnp.maximum(left - ROUND_SHORTFALL * jnp.sqrt(left), 0) / jnp.maximum(total, 1)
        more = _of_rates(units, share, squares.stream_key(key, number))
        drawn, missing = drawn + more, missing - by_stratum(strata, jnp.sum(more, axis=1))
    return drawn


def _of_rates(units: Units, share: Float[Array, "*#lanes"], key: UInt64[Array, "R S"]) -> Float[Array, "R K Q"]:
    """Return independent Poisson draws of all units at ``share`` of their sizes."""
    share, key = (of_strata(x, units.strata.column)[:, None] for x in (share, key))
    return squares.draws(units.size * share, counters(units), key)


def poisson_draws(
    units: Units, packing: Packing, key: UInt64[Array, "R S"], in_rounds: bool = False
) -> Num[Array, "R K Q"] | UInt[Array, "R Q"]:
    """Return independent Poisson draws under the keys of lanes and strata.

    Those of units without tables are at the rates of their sizes, or ``in_rounds`` short of the total.
    """
    tables = units.tables
    if tables is None:
        drawn = _in_rounds(units, key) if in_rounds else _of_rates(units, jnp.ones(key.shape), key)
        return packing.pack([drawn[:, row] for row in range(len(units.size))])
    key = of_strata(key, units.strata.column)
    # For every column's counter in row 0, once for all rows: multiplications of 64 bits limit the speed of draws.
    product = namespace(key).arange(units.size.shape[1], dtype=np.uint64) * key

    def of_row(row: int) -> Array:
        word = squares.words32_of_product(product + row * _ROW_STRIDE * key, key)
        return tables.draw(word, lambda x: x[row])

    return packing.pack([of_row(row) for row in range(len(units.size))])


class _Drawn(NamedTuple):
    """The attempts to draw R resamples."""

    draws: Num[Array, "..."]  # Poisson draws of all units
    missing: Integer[Array, "R S"]  # battles that the draws leave to single draws
    attempt: Int32[Array, "R S"]


def draw_exactly(
    strata: Strata,
    category: UInt64[Array, "G"] | None,
    draw: Callable[[UInt64[Array, "R S"]], Array],
    count: Callable[[Array], Integer[Array, "R S"]],
    add: Callable[[Array, Int32[Array, "R taken"], Bool[Array, "R taken"]], Array],
    seed: Integer[Array, ""],
    stream: Integer[Array, ""],
    numbers: Integer[Array, "R"],
    *,
    lane_axis: int = 0,
) -> Array:
    """Return Poisson draws, completed by single draws.

    Independent Poisson counts are multinomial given their total, whatever law the total has. Here it falls short of
    the stratum's total by half of ``strata.limit`` on average. Where it exceeds the total, or falls short by more than
    the limit (once in a thousand resamples or less), the stratum is drawn again in that lane, under another key.

    Args:
        strata: what every resample must hold.
        category: alias tables of `Units`; None where all units have one size.
        draw: from keys of the lanes and strata to the Poisson draws of all units.
        count: from these draws to the numbers of battles.
        add: from draws, numbers of units, and which of these are needed, to the draws with them.
        seed: of the run.
        stream: names the random numbers.
        numbers: of the resamples.
        lane_axis: that of the lanes in the Poisson draws.
    """

    def usable(missing: Array) -> Array:
        return (missing >= 0) & (missing <= strata.limit)

    def apart(function: Callable[[Array], Array], key: Array) -> Array:
        # Keys are odd: the condition holds. It keeps XLA on the CPU from fusing the generator into the sum as well, and
        # the numbers into the scatter that uses them, which is slow then.
        form = jax.eval_shape(function, key)
        return lax.cond(key[0, 0] != 0, function, lambda _: jnp.zeros(form.shape, form.dtype), key)

    def keys(lanes: Array, attempt: Array) -> Array:
        return squares.stream_key(seed, stream, lanes[:, None], attempt)

    def all_again(once: Callable[[Array], Array], state: _Drawn) -> _Drawn:
        # Those that are done keep their attempt, and so draw the same again.
        attempt = state.attempt + ~usable(state.missing)
        draws = once(keys(numbers, attempt))
        return _Drawn(draws, strata.total - count(draws), attempt)

    def few_again(state: _Drawn) -> _Drawn:
        # The first that are not done, and others where there are fewer: these draw the same again.
        _, lane = lax.top_k(jnp.any(~usable(state.missing), 1).astype(jnp.int32), n_few)
        attempt = state.attempt[lane] + ~usable(state.missing[lane])
        draws = draw(keys(numbers[lane], attempt))
        of_lanes = (slice(None),) * lane_axis + (lane,)
        return _Drawn(
            draws=state.draws.at[of_lanes].set(draws),
            missing=state.missing.at[lane].set(strata.total - count(draws)),
            attempt=state.attempt.at[lane].set(attempt),
        )

    def until_usable(again: Callable[[_Drawn], _Drawn], start: _Drawn) -> _Drawn:
        return lax.while_loop(lambda state: ~jnp.all(usable(state.missing)), again, start)

    def on_host() -> tuple[Array, Array, Array]:
        attempt: Any = np.zeros((len(numbers), len(strata.total)), np.int32)
        key: Any = keys(numbers, attempt)
        draws = draw(key)
        missing = strata.total - count(draws)
        while len(lane := np.flatnonzero(~usable(missing).all(1))):
            attempt[lane] += ~usable(missing[lane])
            key[lane] = keys(numbers[lane], attempt[lane])
            draws[lane] = draw(key[lane])
            missing[lane] = strata.total - count(draws[lane])
        return draws, key, missing

    def needed(missing: Array, place: Array) -> Array:
        start = _of_places(strata, namespace(missing).cumsum(strata.limit) - strata.limit, 0)
        return place - start < _of_places(strata, missing, 1)

    if namespace(numbers, strata.total) is np:
        draws, key, missing = on_host()
        if strata.column is None:  # the places of one stratum are taken from the first on
            strata = strata._replace(place=strata.place[: missing.max(initial=0)])
        place: Any = np.arange(len(strata.place), dtype=np.int32)
        is_needed = needed(missing, place)
        return add(draws, _singly(strata, category, key, place, is_needed), is_needed)
    shape, n_few, n_places = (len(numbers), len(strata.total)), min(_FEW_LANES, len(numbers)), len(strata.place)

    def completed(state: _Drawn, first: Array | int, size: int, once: Callable[..., Array]) -> Array:
        place = first + jnp.arange(size, dtype=jnp.int32)
        number = once(lambda key: _singly(strata, category, key, place), keys(numbers, state.attempt))
        return add(state.draws, number, needed(state.missing, place))

    def in_blocks(start: _Drawn) -> Array:
        # Places of one stratum that no lane needs are left out: they are the last.
        state = until_usable(partial(all_again, partial(apart, draw)), start)
        size = n_places if strata.column is not None else min(max(_PLACES // len(numbers), _LEAST_PLACES), n_places)
        n_blocks = (jnp.max(state.missing) + size - 1) // size
        return lax.fori_loop(
            0, n_blocks, lambda t, draws: completed(state._replace(draws=draws), t * size, size, apart), state.draws
        )

    def at_once(start: _Drawn) -> Array:
        # The chunks of an accelerator have thousands of lanes: hardly a chunk would need no second attempt.
        state = until_usable(few_again, all_again(draw, start))
        return completed(state, 0, n_places, lambda function, key: function(key))

    none = jnp.full(shape, -1, strata.total.dtype)
    form = jax.eval_shape(draw, none.astype(jnp.uint64))
    nothing = _Drawn(jnp.zeros(form.shape, form.dtype), none, none.astype(jnp.int32))
    return by_platform(nothing, cpu=in_blocks, default=at_once)


def _of_places(strata: Strata, values: Shaped[Array, "*shape"], axis: int) -> Shaped[Array, "..."]:
    """Return ``values`` by stratum for the places of single draws."""
    return of_strata(values, None if strata.column is None else strata.place, axis)


def _singly(
    strata: Strata,
    category: UInt64[Array, "G"] | None,
    key: UInt64[Array, "R S"],
    place: Int32[Array, "taken"],
    needed: Bool[Array, "R taken"] | None = None,
) -> Int32[Array, "R taken"]:
    """Return numbers of units drawn in proportion to their sizes; on the host 0 where none is ``needed``."""
    xp = namespace(key)

    def where_needed(values: Any) -> Any:
        if needed is None:
            return values
        return values.reshape(-1) if values.size == 1 else np.broadcast_to(values, needed.shape)[needed]

    counter = where_needed(_SINGLE_DRAWS + place.astype(np.uint64))
    word = squares.words64(counter, where_needed(_of_places(strata, key, 1)))
    # A product's high half is a uniform number, its low half an independent uniform fraction.
    number, fraction = _product(word, where_needed(_of_places(strata, strata.n_numbers, 0)))
    first = where_needed(_of_places(strata, strata.first, 0))
    if category is not None:
        at = number.astype(np.int32) + first
        # All are in bounds. But XLA on the CPU computes index and entry in one vectorised loop only in this mode.
        entry = category[at] if xp is np else category.at[at].get(mode="fill", fill_value=0)
        number = xp.where(fraction < (entry >> 32), number, entry & _LOW32)
    number = number.astype(np.int32) + first
    if needed is None:
        return number
    every: Any = np.zeros(needed.shape, np.int32)
    every[needed] = number
    return every


def multinomial(
    units: Units, packing: Packing, seed: Integer[Array, ""], stream: Integer[Array, ""], numbers: Integer[Array, "R"]
) -> Num[Array, "R K Q"] | UInt[Array, "R Q"]:
    """Draw exactly as many battles (or clusters) as each stratum holds, uniformly with replacement.

    The resamples are ``numbers``, in the form of ``packing``.
    """
    return draw_exactly(
        units.strata,
        units.category,
        partial(poisson_draws, units, packing, in_rounds=True),
        lambda draws: by_stratum(units.strata, packing.battles(draws).astype(units.strata.total.dtype)),
        lambda draws, number, needed: packing.add(draws, *split_number(units, number), needed),
        seed,
        stream,
        numbers,
    )


def _product(
    word: UInt64[Array, "*#shape"], n: UInt64[Array, "*#shape"]
) -> tuple[UInt64[Array, "*#shape"], UInt64[Array, "*#shape"]]:
    """Return the 128-bit product ``word`` * ``n`` (n < 2**32): its upper 64 bits, and bits 32 to 63."""
    return ((word >> 32) * n + (((word & _LOW32) * n) >> 32)) >> 32, (word * n) >> 32


def singles(
    battles: Singles, size: int, seed: Integer[Array, ""], stream: Integer[Array, ""], numbers: Integer[Array, "R"]
) -> UInt8[Array, "R {size}"]:
    """Return how often each of N battles is in the resamples ``numbers``; 0 in the slots from N to ``size``.

    A resample holds exactly as many of each stratum as the data. A word is compared with every threshold, which
    vectorises and takes a third of the time of an alias table's gather.
    """
    strata = battles.strata
    thresholds = of_strata(battles.threshold, strata.column, 0)
    xp = namespace(numbers, strata.total)
    n = xp.sum(strata.total)

    def draw(key: Array) -> Array:
        slot = xp.arange(size, dtype=np.int32)
        word = squares.words32(slot.astype(np.uint64), of_strata(key, strata.column))
        count = sum((word >= threshold).astype(np.uint8) for threshold in thresholds.T)
        return xp.where(slot < n, count, xp.uint8(0))

    def count(draws: Array) -> Array:
        if strata.column is not None:
            return by_stratum(strata, draws.astype(np.int32))
        if xp is np:
            return draws.sum(1, dtype=np.int32)[:, None]
        ones = jnp.ones(size, jnp.float32)  # a product is faster than a sum, and exact
        return jnp.matmul(draws.astype(jnp.float32), ones, precision="highest").astype(jnp.int32)[:, None]

    return draw_exactly(strata, None, draw, count, add_at, seed, stream, numbers)


def bayesian(
    units: Units, seed: Integer[Array, ""], stream: Integer[Array, ""], numbers: Integer[Array, "R"]
) -> Float[Array, "R K Q"]:
    """Return Dirichlet weights times the number of battles: the Bayesian bootstrap (DOI 10.1214/aos/1176345338).

    Each battle has an exponential weight, so a unit's is Gamma(size), drawn by the squeeze of Marsaglia and Tsang
    (DOI 10.1145/358407.358414). The weights of each stratum sum to its number of battles.
    """
    d = units.size - 1.0 / 3.0
    c = 1.0 / jnp.sqrt(9.0 * jnp.maximum(d, 0.5))
    counter = counters(units)

    def attempt(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        weight, done, number = state
        radius, angle, share = (
            squares.words64(counter, squares.stream_key(seed, stream, lanes, number, part)) for part in range(3)
        )
        normal = squares.normal(radius, angle)
        t = c * normal
        v = (1 + t) ** 3
        # 1 - v + log v, of which large sizes leave little.
        exponent = 3 * squares.log1p(jnp.where(v > 0, t, 0.0)) - t * (3 + t * (3 + t))
        accept = (v > 0) & (squares.log(squares.uniform(share)) < 0.5 * normal**2 + d * exponent)
        return jnp.where(done, weight, d * v), done | accept, number + 1

    lanes = numbers[:, None, None]
    shape = len(numbers), *d.shape
    start = jnp.zeros(shape), jnp.broadcast_to(units.size == 0, shape), jnp.int32(1)
    weight, _, _ = lax.while_loop(lambda state: ~jnp.all(state[1]), attempt, start)
    strata = units.strata
    factor = strata.total / by_stratum(strata, jnp.sum(weight, axis=1))
    return weight * of_strata(factor, strata.column)[:, None]
