"""Which kind of device a program is traced for, so that only its own branch of what differs is traced."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import reduce
from typing import Any, TypeVar

import numpy as np

from jaxeval.kernels.kinds import Array, Float, Int32, Integer, Num, Real, Shaped, namespace
from jaxeval.lazy_names import custom_batching, jax, jnp, lax

_MOST_INT32 = 2**31 - 1
_BITS = 61  # of the largest possible sum; words have 63, which leaves room for their rounding


def added(
    total: Float[Array, "rows *lanes"], *parts: tuple[Int32[Array, "..."], Float[Array, "..."]]
) -> Float[Array, "rows *lanes"]:
    """Return ``total`` plus the values (E, *lanes) of each of the ``parts``, added at the part's rows (E,).

    A GPU adds to one place in any order, and sums of floating-point numbers depend on the order. There the values are
    added as whole multiples of a small unit, in words of 64 bits, whose sums have no rounding. The unit of a lane is
    2**-61 of the largest sum that is possible, so the result is closer to the true sum than one of doubles.
    """

    def in_turn(total: Array, parts: tuple[tuple[Array, Array], ...]) -> Array:
        for row, value in parts:
            total = total.at[row].add(value)
        return total

    if namespace(total) is np:
        of_lanes = np.arange(total[0].size)
        for row, value in parts:
            at: Any = row.reshape(-1, 1) * len(of_lanes) + of_lanes
            total = total + np.bincount(at.reshape(-1), value.reshape(-1), total.size).reshape(total.shape)
        return total

    def in_any_order(total: Array, parts: tuple[tuple[Array, Array], ...]) -> Array:
        values = [value.astype(jnp.float64) for _, value in parts]
        largest = sum(jnp.max(jnp.abs(value), 0) * len(value) for value in values)
        unit = jnp.where(largest == 0, 1.0, largest * 2.0**-_BITS)  # NaN stays, and makes the lane's sums NaN
        words = jnp.zeros(total.shape, jnp.int64)
        for (row, _), value in zip(parts, values, strict=True):
            words = words.at[row].add(jnp.round(value / unit).astype(jnp.int64))
        return total + (words * unit).astype(total.dtype)

    return by_platform(total, parts, gpu=in_any_order, default=in_turn)


T = TypeVar("T")

_KINDS = {"cuda": "gpu", "rocm": "gpu"}
_kind: ContextVar[str | None] = ContextVar("kind", default=None)


@contextmanager
def traced_for(platform: str) -> Iterator[None]:
    """Let what is traced within this context be for devices of this JAX ``platform``.

    A function that `jax.jit` has traced before keeps what it was traced for. So the platform must follow from a static
    argument, such as the mesh of devices.
    """
    token = _kind.set(_KINDS.get(platform, platform))
    try:
        yield
    finally:
        _kind.reset(token)


def by_platform(*arguments: Any, default: Callable[..., T], **branches: Callable[..., T]) -> T:
    """Return the branch for ``cpu``, ``gpu`` or ``tpu`` of the ``arguments``, or else the ``default``.

    Outside of `traced_for`, all branches are traced, by `jax.lax.platform_dependent`, and the compiler takes one.
    """
    kind = _kind.get()
    if kind is not None:
        return branches.get(kind, default)(*arguments)
    gpu = branches.pop("gpu", None)
    if gpu is not None:
        branches |= {"cuda": gpu, "rocm": gpu}
    chosen: T = lax.platform_dependent(*arguments, default=default, **branches)
    return chosen


def increased(total: Num[Array, "rows *lanes"], at: slice | int, value: Num[Array, "..."]) -> Num[Array, "rows *lanes"]:
    """Return ``total`` plus the ``value`` at the rows ``at``."""
    if namespace(total) is np:
        sums: Any = total.copy()
        sums[at] += value
        return sums
    return total.at[at].add(value)


def polynomial(coefficients: Sequence[float], x: Real[Array, "*shape"]) -> Real[Array, "*shape"]:
    """Return the polynomial at ``x``; the coefficient of the highest power comes first."""
    first, *rest = coefficients
    return reduce(lambda so_far, coefficient: so_far * x + coefficient, rest, namespace(x).full_like(x, first))


def product(a: Num[Array, "..."], b: Num[Array, "..."]) -> Num[Array, "..."]:
    """Return the product of matrices in full precision, of JAX's arrays or of NumPy's."""
    return np.matmul(a, b) if namespace(a, b) is np else jnp.matmul(a, b, precision="highest")


def einsum(subscripts: str, *factors: Num[Array, "..."]) -> Num[Array, "..."]:
    """Multiply as `product` does, over any axes."""
    if namespace(*factors) is np:
        return np.einsum(subscripts, *factors, optimize=True)
    return jnp.einsum(subscripts, *factors, precision="highest")


def index_dtype(size: int) -> type:
    """Return the integers that hold every index below ``size``, and ``size`` itself."""
    return np.int32 if size <= _MOST_INT32 else np.int64


def add_at(table: Num[Array, "R Q"], index: Integer[Array, "R T"], value: Shaped[Array, "R T"]) -> Num[Array, "R Q"]:
    """Return ``table`` with ``value`` added at ``index``, repeated ones too; all must be in bounds.

    Rows are laid end to end: XLA's scatter on the CPU is three times as fast on one axis as on two. There, adding zeros
    takes less time than leaving them out. On a GPU, where every addition is an atomic one, they are left out.
    """
    if namespace(table) is np:
        at: Any = np.arange(len(table))[:, None] * table.shape[1] + index
        amount: Any = value
        added = np.bincount(at[amount != 0], amount[amount != 0], table.size)
        return table + added.reshape(table.shape).astype(table.dtype)
    kind = index_dtype(table.size)
    start = jnp.arange(len(table), dtype=kind)[:, None] * table.shape[1]
    place, value = (start + index.astype(kind)).reshape(-1), value.astype(table.dtype).reshape(-1)

    def every(flat: Array) -> Array:
        return flat.at[place].add(value, mode="promise_in_bounds")

    def nonzero(flat: Array) -> Array:
        return flat.at[jnp.where(value != 0, place, flat.size)].add(value, mode="drop")

    return by_platform(table.reshape(-1), cpu=every, default=nonzero).reshape(table.shape)


def one_by_one(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a ``function`` of single matrices that takes stacks of them, on a CPU: one after the other.

    Of a stack, jaxlib 0.10.0 to 0.11.1 hands parts to the threads that XLA computes with, and one of these waits for
    them. Where each thread waits, as with several devices, or several calls at a time, none is left to do a part, and
    the process stands still for ever. A single matrix is computed by the thread that comes to it. Other versions take
    the matrices of a stack one after the other by themselves.
    """
    single = custom_batching.sequential_vmap(lambda *matrices: function(*matrices))

    def stacked(*matrices: Array) -> Any:
        lanes = matrices[0].shape[:-2]
        if not lanes:
            return single(*matrices)
        flat = tuple(x.reshape(-1, *x.shape[-2:]) for x in matrices)
        in_turn = lax.map(lambda each: single(*each), flat)
        return jax.tree.map(lambda x: x.reshape(*lanes, *x.shape[1:]), in_turn)

    return stacked
