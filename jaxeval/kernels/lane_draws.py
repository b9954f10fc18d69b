"""Draws of `resample` with the resamples on the last axis, for kernels that have their lanes there.

The draws are those of `resample`, to the bit. Here a unit's constants and table serve all R lanes from registers, which
on a CPU takes a seventh of the time of one lane after the other, and nothing is transposed afterwards.
"""

from collections.abc import Sequence
from functools import partial

import jax.numpy as jnp
from jax import Array

from jaxeval.kernels import resample, squares
from jaxeval.kernels.kinds import Float, Int32, Integer, Num, UInt64
from jaxeval.kernels.platforms import added
from jaxeval.kernels.resample import DrawScheme, Packing, Units


def draw(
    units: Units,
    scheme: DrawScheme,
    dtype: type,
    seed: Integer[Array, ""],
    stream: Integer[Array, ""],
    numbers: Integer[Array, "R"],
) -> Num[Array, "K*Q R"]:
    """Draws of all units, row-major, in the resamples ``numbers``.

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


def sums(
    draws: Num[Array, "units R"],
    unit: Int32[Array, "rows columns"] | None,
    of_column: Int32[Array, "columns"],
    size: int,
    weights: Sequence[Float[Array, "rows columns"]],
) -> list[Float[Array, "{size} R"]]:
    """Sums of the draws of entries on a grid, by what their columns belong to: an array for each of the ``weights``.

    Args:
        draws: of all units.
        unit: flat number of the unit that an entry is drawn with; None where units are entries.
        of_column: number of what the column belongs to, less than ``size``.
        size: of the sums.
        weights: what a draw of an entry adds.
    """
    drawn = draws if unit is None else draws.at[unit.reshape(-1)].get(mode="promise_in_bounds")
    drawn = drawn.reshape(*weights[0].shape, draws.shape[-1])

    def by_column(weight: Array) -> Array:
        # Row by row, which XLA on the CPU vectorises.
        columns = sum(
            (weight[row, :, None] * drawn[row] for row in range(1, len(drawn))), weight[0, :, None] * drawn[0]
        )
        return added(jnp.zeros((size, draws.shape[-1])), (of_column, columns))

    return [by_column(weight) for weight in weights]


def _poisson(units: Units, dtype: type, key: UInt64[Array, "R S"]) -> Num[Array, "K*Q R"]:
    """Poisson draws of all units under the keys."""
    assert units.tables is not None
    word = squares.words32(resample.counters(units).reshape(-1, 1), resample.of_strata(key.T, _strata(units), 0))
    return units.tables.draw(word, lambda x: x.reshape(-1, 1)).astype(dtype)


def _strata(units: Units) -> Int32[Array, "K*Q"] | None:
    """The stratum of every unit."""
    column = units.strata.column
    return None if column is None else jnp.tile(column, len(units.size))


def _multinomial(
    units: Units, dtype: type, seed: Integer[Array, ""], stream: Integer[Array, ""], numbers: Integer[Array, "R"]
) -> Num[Array, "K*Q R"]:
    stratum = _strata(units)

    def count(drawn: Array) -> Array:
        if stratum is None:
            return jnp.sum(drawn, 0, dtype=jnp.int32)[:, None]
        sums = jnp.zeros((len(units.strata.total), drawn.shape[1]), jnp.int32)
        return sums.at[stratum].add(drawn.astype(jnp.int32)).T

    draws, number, needed = resample.draw_exactly(
        units.strata, units.category, partial(_poisson, units, dtype), count, seed, stream, numbers, lane_axis=1
    )
    column, row = resample.split_number(units, number)
    kind = resample.index_dtype(draws.size)
    lane = jnp.arange(len(numbers), dtype=kind)[:, None]
    # Flat, as in `resample.add_at`.
    place = (row * units.size.shape[1] + column).astype(kind) * len(numbers) + lane
    return resample.add_at(draws.reshape(1, -1), place.reshape(1, -1), needed.reshape(1, -1)).reshape(draws.shape)
