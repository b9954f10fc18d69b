"""Draws in stages: groups with replacement, then groups within each group drawn, and so on down to units."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from jaxeval.kernels import squares
from jaxeval.kernels.kinds import Int32, Integer
from jaxeval.kernels.resample import add_at


class Stages(NamedTuple):
    """A tree of groups, stage by stage from the whole, which is one group, down to the units.

    Groups of a stage are numbered parent by parent.
    """

    first: tuple[Int32[Array, "... _"], ...]  # number of the first child of each group, in the next stage
    size: tuple[Int32[Array, "... _"], ...]  # children of each group
    place: tuple[Int32[Array, "... _"], ...]  # 0, 1, ...: as many as the largest group of the stage has children


def nested(
    stages: Stages, size: int, seed: Integer[Array, ""], stream: Integer[Array, ""], numbers: Integer[Array, "R"]
) -> Int32[Array, "R {size}"]:
    """How often each unit is in the resamples ``numbers``: in slots from 0 to ``size``.

    Of each group that is drawn, as many children are drawn with replacement as it has. A group that is drawn twice
    draws its children twice, independently.
    """
    group = jnp.zeros((len(numbers), 1), jnp.int32)
    there = jnp.ones(group.shape, bool)
    for stage, (first, n_children, place) in enumerate(zip(*stages, strict=True)):
        n = n_children[group][:, :, None]
        counter = jnp.arange(group.shape[1])[:, None] * len(place) + place
        word = squares.words32(
            counter.astype(jnp.uint64), squares.stream_key(seed, stream, numbers, stage)[:, None, None]
        )
        child = (word.astype(jnp.uint64) * n.astype(jnp.uint64)) >> 32
        there = there[:, :, None] & (place < n)
        group = jnp.where(there, first[group][:, :, None] + child.astype(jnp.int32), 0).reshape(len(numbers), -1)
        there = there.reshape(len(numbers), -1)
    return add_at(jnp.zeros((len(numbers), size), jnp.int32), group, there)
