"""What every batched call does: one part on each device, and there chunk after chunk."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.sharding import Mesh, PartitionSpec

from jaxeval.kernels.kinds import Integer


def over_devices(function: Callable[..., Any], mesh: Mesh, whole: tuple[Any, ...], split: tuple[Any, ...]) -> Any:
    """``function(*whole, *split)`` on every device, which gets all of ``whole`` and its own part of ``split``.

    Arrays are split, and results put together, along the first axis, whose length the devices divide.
    """
    everywhere, part = PartitionSpec(), PartitionSpec("lanes")
    specs = (*(everywhere for _ in whole), *(part for _ in split))
    # What is computed of whole arrays alone is the same everywhere, which loops hide from the check.
    return jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=part, check_vma=False)(*whole, *split)


def run_chunks(chunk: Callable[[Array], Any], n_slots: int, n_chunks: Integer[Array, ""]) -> Any:
    """``chunk(t)`` for the first ``n_chunks`` of ``n_slots`` (static) chunks, with leading axes (1, n_slots).

    The first axis is the device's in `jax.shard_map`; slots without a chunk hold zeros.
    """

    def run(t: Array, results: Any) -> Any:
        return jax.tree.map(lambda all_, one: all_.at[t].set(one), results, chunk(t))

    shapes = jax.eval_shape(chunk, jnp.int32(0))
    empty = jax.tree.map(lambda s: jnp.zeros((n_slots, *s.shape), s.dtype), shapes)
    return jax.tree.map(lambda x: x[None], lax.fori_loop(0, n_chunks, run, empty))


def over_lanes(
    chunk: Callable[..., Any],
    mesh: Mesh,
    problems: Any,
    shared: tuple[Any, ...],
    slices: Integer[Array, "devices chunks"],
    numbers: Integer[Array, "devices chunks R"],
    n_chunks: Integer[Array, "devices"],
) -> Any:
    """``chunk(problem, numbers, *shared)`` for every chunk of a call of `jaxeval.execution.lanes`.

    Args:
        chunk: gives what the lanes ``numbers`` (R,) of one slice give, with leading axes (R,).
        mesh: the devices.
        problems: a tree of arrays, whose first axes number the slices.
        shared: what every chunk gets.
        slices: slice of each chunk.
        numbers: lanes of each chunk.
        n_chunks: chunks that each device runs, the first ones.

    Returns:
        The results with leading axes (devices, T, R); slots without a chunk hold zeros.
    """

    def on_device(problems: Any, shared: tuple[Any, ...], slices: Array, numbers: Array, n_chunks: Array) -> Any:
        def one(t: Array) -> Any:
            return chunk(jax.tree.map(lambda x: x[slices[0, t]], problems), numbers[0, t], *shared)

        return run_chunks(one, slices.shape[1], n_chunks[0])

    return over_devices(on_device, mesh, (problems, shared), (slices, numbers, n_chunks))
