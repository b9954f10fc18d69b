"""Sums over the opponents of every model, on a graph of pairs instead of an (M, M) table.

A model's opponents lie in rows of eight slots: one row for up to eight, further ones for more. A sum over them adds the
eight slots of every row, then the rows of a model in groups of eight, and again until one is left: gathers and dense
additions only, which vectorise, and which (unlike a scatter) add in the same order on every device. Lanes (resamples)
are the last axis of all values, so that one gathered index serves all of them from one line of memory.

Models with several rows are numbered first, those with one row after them; padding follows both.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from jaxeval.kernels.kinds import Bool, Int32, Integer, Shaped
from jaxeval.kernels.platforms import by_platform

SLOTS = 8


class Adjacency(NamedTuple):
    """Slots of M models in R rows, and P pairs; the last of each is padding, and others may be.

    A padding model's sum is that of an empty row.
    """

    opponent: Int32[Array, "8 R"]  # model in the slot; M - 1 in empty ones
    pair: Int32[Array, "8 R"]  # pair of owner and opponent; P - 1 in empty ones
    is_first: Bool[Array, "8 R"]  # whether the owner is its pair's first model
    owner: Int32[Array, "R"]  # model of the row, the last one for empty rows; rows of a model are neighbours
    merges: tuple[Int32[Array, "8 _"], ...]  # rows of the level before to add up; its last row is empty
    several: Int32[Array, "A"]  # where the sums of the models with several rows are, among those of all merges
    single: Int32[Array, "_"]  # the row of each further model

    @property
    def n_models(self) -> int:
        """M."""
        return self.several.shape[0] + self.single.shape[0]


def take(values: Shaped[Array, "rows ..."], index: Integer[Array, "..."]) -> Shaped[Array, "..."]:
    """``values[index]`` along the first axis, unchecked."""
    return values.at[index].get(mode="promise_in_bounds")


def opponent_sums(
    adjacency: Adjacency, slot: Callable[[int], Shaped[Array, "R *lanes"]]
) -> Shaped[Array, "{adjacency.n_models} ..."]:
    """Sum of ``slot(k)``, k = 0 .. 7, over all slots of every model; empty slots must hold 0."""
    # One addition after the other: XLA's CPU reduction over an axis takes four times as long.
    return _merged(adjacency, sum((slot(k) for k in range(1, SLOTS)), start=slot(0)), jnp.add)


def any_opponent(
    adjacency: Adjacency, slot: Callable[[Array | int], Bool[Array, "R *lanes"]]
) -> Bool[Array, "{adjacency.n_models} ..."]:
    """Whether ``slot(k)`` holds in any slot of a model; empty slots must not."""
    return _merged(adjacency, _over_slots(slot, jnp.logical_or), jnp.logical_or)


def _merged(
    adjacency: Adjacency, rows: Shaped[Array, "R *lanes"], combine: Callable[[Array, Array], Array]
) -> Shaped[Array, "{adjacency.n_models} *lanes"]:
    """The ``rows`` of every model, combined into one."""
    levels = [rows]
    for merge in adjacency.merges:
        levels.append(_over_slots(partial(_merged_slot, levels[-1], jnp.asarray(merge)), combine))
    several = take(jnp.concatenate(levels[1:]), adjacency.several)
    return jnp.concatenate([several, take(rows, adjacency.single)])


def _merged_slot(rows: Shaped[Array, "_ *lanes"], merge: Int32[Array, "8 R_k"], k: Array | int) -> Array:
    return take(rows, merge[k])


def _over_slots(
    slot: Callable[[Array | int], Shaped[Array, "R *lanes"]], combine: Callable[[Array, Array], Array]
) -> Shaped[Array, "R *lanes"]:
    """``slot(k)``, k = 0 .. 7, combined one after the other."""

    def turns(start: Array, unroll: bool | None) -> Array:
        return lax.fori_loop(1, SLOTS, lambda k, so_far: combine(so_far, slot(k)), start, unroll=unroll)

    # A loop compiles faster. But on an accelerator each of its turns is a launch; unrolled, all turns are one launch.
    return by_platform(slot(0), cpu=partial(turns, unroll=None), default=partial(turns, unroll=True))
