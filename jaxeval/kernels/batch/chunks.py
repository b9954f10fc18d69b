"""What every batched call does: each device gets a part of the chunks, and runs one after the other."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.sharding import Mesh, PartitionSpec

from jaxeval.kernels.kinds import Integer
from jaxeval.kernels.platforms import traced_for


class Chunks(NamedTuple):
    """The chunks of a call of `jaxeval.execution.lanes`, T per device, each of R lanes of one slice."""

    slices: Integer[Array, "devices chunks"]
    numbers: Integer[Array, "devices chunks R"]  # which resample of its slice each lane is
    n_chunks: Integer[Array, "devices"]  # that each device runs, the first ones


def over_lanes(
    chunk: Callable[..., Any], mesh: Mesh, chunks: Chunks, shared: tuple[Any, ...], problems: Any = None
) -> Any:
    """``chunk(numbers, *shared)`` for every one of the ``chunks``, shared out to the devices.

    Args:
        chunk: computes the lanes ``numbers`` (R,) of one slice; its results have the leading axis R.
        mesh: the devices.
        chunks: slices and lanes.
        shared: what every chunk gets.
        problems: a tree of arrays, whose first axes number the slices: ``chunk`` gets that of its slice as first
            argument. None where there is one slice.

    Returns:
        The results with leading axes (devices, T, R); slots without a chunk hold zeros.
    """

    def on_device(chunks: Chunks, shared: tuple[Any, ...], problems: Any) -> Any:
        # The first axis is the device's.
        slices, numbers, n_chunks = (x[0] for x in chunks)

        # Jitted, so that it is traced only once, for the shapes and for the loop.
        @partial(jax.jit, inline=True)
        def one(t: Array) -> Any:
            own = () if problems is None else (jax.tree.map(lambda x: x[slices[t]], problems),)
            return chunk(*own, numbers[t], *shared)

        def run(t: Array, results: Any) -> Any:
            return jax.tree.map(lambda all_, found: all_.at[t].set(found), results, one(t))

        shapes = jax.eval_shape(one, jnp.int32(0))
        empty = jax.tree.map(lambda s: jnp.zeros((len(numbers), *s.shape), s.dtype), shapes)
        return jax.tree.map(lambda x: x[None], lax.fori_loop(0, n_chunks, run, empty))

    everywhere, part = PartitionSpec(), PartitionSpec("lanes")
    # What is computed from shared arrays alone is the same on all devices, but the check cannot see it through loops.
    spread = jax.shard_map(
        on_device, mesh=mesh, in_specs=(part, everywhere, everywhere), out_specs=part, check_vma=False
    )
    with traced_for(mesh.devices.flat[0].platform):
        return spread(chunks, shared, problems)
