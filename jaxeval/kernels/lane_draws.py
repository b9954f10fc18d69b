"""Draws of `resample` with the resamples on the last axis, for kernels that have their lanes there.

The draws are those of `resample`, to the bit. Here a unit's constants and table serve all R lanes from registers, which
on a CPU takes a seventh of the time of one lane after the other, and nothing is transposed afterwards.
"""

from functools import partial
from typing import NamedTuple

from jaxeval.kernels import resample, squares
from jaxeval.kernels.kinds import Array, Float, Int32, Integer, Num, Shaped, UInt64
from jaxeval.kernels.platforms import add_at, added, by_platform, index_dtype
from jaxeval.kernels.resample import DrawScheme, Packing, Units
from jaxeval.lazy_names import jnp, lax


def draw(
    units: Units,
    scheme: DrawScheme,
    dtype: type,
    seed: Integer[Array, ""],
    stream: Integer[Array, ""],
    numbers: Integer[Array, "R"],
) -> Num[Array, "K*Q R"]:
    """Return draws of all units, row-major, in the resamples ``numbers``.

    Args:
        units: what is drawn.
        scheme: how.
        dtype: holds the largest draw of a unit; weights, and draws of units without tables, are doubles.
        seed: of the run.
        stream: names the random numbers.
        numbers: of the resamples.
    """
    if scheme == DrawScheme.BAYESIAN:
        return resample.bayesian(units, seed, stream, numbers).reshape(len(numbers), -1).T
    if units.tables is None:
        return resample.draw(units, scheme, Packing(None), seed, stream, numbers).reshape(len(numbers), -1).T
    if scheme == DrawScheme.POISSON:
        return _poisson(units, dtype, squares.stream_key(seed, stream, numbers[:, None], 0))
    return _multinomial(units, dtype, seed, stream, numbers)


class DrawnSums(NamedTuple):
    """What draws add to: entries on a grid, each of whose columns belongs to one thing that is summed for."""

    unit: Int32[Array, "rows columns"] | None  # flat number of the unit that draws the entry; None: its own place
    of_column: Int32[Array, "columns"]  # number of what a column belongs to
    shares: tuple[Float[Array, "rows columns"], ...]  # what a draw of an entry adds to each of several sums

    def of(self, draws: Num[Array, "units R"], size: int) -> list[Float[Array, "{size} R"]]:
        """Give sums of the ``draws`` of all units, an array for each of the shares; ``size`` things are summed for."""
        drawn = draws if self.unit is None else draws.at[self.unit.reshape(-1)].get(mode="promise_in_bounds")
        drawn = drawn.reshape(*self.shares[0].shape, draws.shape[-1])

        def by_column(share: Array) -> Array:
            # Row by row, which XLA on the CPU vectorises.
            columns = sum(
                (share[row, :, None] * drawn[row] for row in range(1, len(drawn))), share[0, :, None] * drawn[0]
            )
            return added(jnp.zeros((size, draws.shape[-1])), (self.of_column, columns))

        return [by_column(share) for share in self.shares]


def _poisson(units: Units, dtype: type, key: UInt64[Array, "R S"]) -> Num[Array, "K*Q R"]:
    """Return Poisson draws of all units under the keys; on a CPU, by blocks of the columns in use, without strata."""
    tables, stratum = units.tables, _strata(units)
    assert tables is not None

    def at_once(key: Array) -> Array:
        word = squares.words32(resample.counters(units).reshape(-1, 1), resample.of_strata(key.T, stratum, 0))
        return tables.draw(word, lambda x: x.reshape(-1, 1)).astype(dtype)

    def by_block(key: Array) -> Array:
        def add(t: Array, drawn: Array) -> Array:
            word = squares.words32(_block(resample.counters(units), t)[..., None], key.T)
            own = tables.draw(word, lambda x: _block(x, t)[..., None]).astype(dtype)
            return lax.dynamic_update_slice_in_dim(drawn, own, t * _BLOCK, 1)

        drawn = jnp.zeros((*units.size.shape, len(key)), dtype)
        return lax.fori_loop(0, _blocks(units), add, drawn).reshape(-1, len(key))

    if stratum is not None or units.size.shape[1] % _BLOCK:
        return at_once(key)
    return by_platform(key, cpu=by_block, default=at_once)


_BLOCK = 1024  # columns


def _block(grid: Shaped[Array, "K Q ..."], t: Integer[Array, ""]) -> Shaped[Array, "K columns ..."]:
    return lax.dynamic_slice_in_dim(grid, t * _BLOCK, _BLOCK, 1)


def _blocks(units: Units) -> Int32[Array, ""]:
    """Return how many blocks of columns are in use."""
    column = jnp.arange(units.size.shape[1], dtype=jnp.int32)
    return (jnp.max(jnp.where(jnp.any(units.size > 0, 0), column, -1)) + _BLOCK) // _BLOCK


def _total(units: Units, drawn: Num[Array, "K*Q R"]) -> Int32[Array, "R"]:
    """Return the sum of the draws of all units."""

    def at_once(drawn: Array) -> Array:
        return jnp.sum(drawn, 0, dtype=jnp.int32)

    def by_block(drawn: Array) -> Array:
        # Column by column of a block, which XLA on the CPU vectorises.
        n_lanes = drawn.shape[1]
        grid = drawn.reshape(*units.size.shape, n_lanes)

        def add(t: Array, total: Array) -> Array:
            own = _block(grid, t).astype(jnp.int32)
            return sum((own[row] for row in range(len(own))), total)

        of_columns = lax.fori_loop(0, _blocks(units), add, jnp.zeros((_BLOCK, n_lanes), jnp.int32))
        return at_once(of_columns)

    if units.size.shape[1] % _BLOCK:
        return at_once(drawn)
    return by_platform(drawn, cpu=by_block, default=at_once)


def _strata(units: Units) -> Int32[Array, "K*Q"] | None:
    """Return the stratum of every unit."""
    column = units.strata.column
    return None if column is None else jnp.tile(column, len(units.size))


def _multinomial(
    units: Units, dtype: type, seed: Integer[Array, ""], stream: Integer[Array, ""], numbers: Integer[Array, "R"]
) -> Num[Array, "K*Q R"]:
    stratum = _strata(units)

    def count(drawn: Array) -> Array:
        if stratum is None:
            return _total(units, drawn)[:, None]
        sums = jnp.zeros((len(units.strata.total), drawn.shape[1]), jnp.int32)
        return sums.at[stratum].add(drawn.astype(jnp.int32)).T

    def add(draws: Array, number: Array, needed: Array) -> Array:
        column, row = resample.split_number(units, number)
        kind = index_dtype(draws.size)
        lane = jnp.arange(len(numbers), dtype=kind)[:, None]
        # Flat, as in `add_at`.
        place = (row * units.size.shape[1] + column).astype(kind) * len(numbers) + lane
        return add_at(draws.reshape(1, -1), place.reshape(1, -1), needed.reshape(1, -1)).reshape(draws.shape)

    return resample.draw_exactly(
        units.strata, units.category, partial(_poisson, units, dtype), count, add, seed, stream, numbers, lane_axis=1
    )
