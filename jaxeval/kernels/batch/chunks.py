"""What every batched call does: one part on each device, and there chunk after chunk."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.sharding import Mesh, PartitionSpec


def over_devices(
    function: Callable[..., Any], mesh: Mesh, whole: tuple[Any, ...], split: tuple[Any, ...], axis: int = 0
) -> Any:
    """``function(*whole, *split)`` on every device, which gets all of ``whole`` and its own part of ``split``.

    Arrays are split, and results put together, along ``axis``, whose length the devices divide.
    """
    everywhere, part = PartitionSpec(), PartitionSpec(*[None] * axis, "lanes")
    specs = (*(everywhere for _ in whole), *(part for _ in split))
    # What is computed of whole arrays alone is the same everywhere, which loops hide from the check.
    return jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=part, check_vma=False)(*whole, *split)


def run_chunks(chunk: Callable[[Array], Any], n_slots: int, n_chunks: Array) -> Any:
    """``chunk(t)`` for the first ``n_chunks`` of ``n_slots`` (static) chunks, with leading axes (1, n_slots).

    The first axis is the device's in `jax.shard_map`; slots without a chunk hold zeros.
    """

    def run(t: Array, results: Any) -> Any:
        return jax.tree.map(lambda all_, one: all_.at[t].set(one), results, chunk(t))

    shapes = jax.eval_shape(chunk, jnp.int32(0))
    empty = jax.tree.map(lambda s: jnp.zeros((n_slots, *s.shape), s.dtype), shapes)
    return jax.tree.map(lambda x: x[None], lax.fori_loop(0, n_chunks, run, empty))
