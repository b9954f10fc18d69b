"""Chunks one after the other: what every batched call does on each device."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax


def run_chunks(chunk: Callable[[Array], Any], n_slots: int, n_chunks: Array) -> Any:
    """``chunk(t)`` for the first ``n_chunks`` of ``n_slots`` (static) chunks, with leading axes (1, n_slots).

    The first axis is the device's in `jax.shard_map`; slots without a chunk hold zeros.
    """

    def run(t: Array, results: Any) -> Any:
        return jax.tree.map(lambda all_, one: all_.at[t].set(one), results, chunk(t))

    shapes = jax.eval_shape(chunk, jnp.int32(0))
    empty = jax.tree.map(lambda s: jnp.zeros((n_slots, *s.shape), s.dtype), shapes)
    return jax.tree.map(lambda x: x[None], lax.fori_loop(0, n_chunks, run, empty))
