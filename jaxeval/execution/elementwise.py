"""Calls of elementwise kernels on arrays of any shapes: broadcast, few compilations, double precision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxeval.execution.precision import double_precision

Float = NDArray[np.float64]

_SMALLEST = 64


def apply(function: Callable[..., Any], *arrays: Float) -> Any:
    """``function`` of flat arrays, jitted by the caller, on ``arrays`` of one shape; the same tree of that shape.

    Flat sizes are rounded up to powers of two by repeating the last element: a jitted function compiles for each size.
    """
    shape = arrays[0].shape
    size = int(np.prod(shape))
    if size == 0:
        arrays, size = tuple(np.full(1, np.nan) for _ in arrays), 0
    width = max(_SMALLEST, 1 << max(size - 1, 0).bit_length())
    flat = [np.pad(x.reshape(-1), (0, width - max(size, 1)), mode="edge") for x in arrays]
    with double_precision():
        found = jax.device_get(function(*flat))
    return jax.tree.map(lambda x: np.asarray(x)[:size].reshape(shape), found)


def broadcast(**arguments: ArrayLike) -> dict[str, Float]:
    """Arguments as float64 arrays of one shape.

    Raises:
        ValueError: an argument is not numeric, or the shapes do not fit.
    """
    arrays = {}
    for name, value in arguments.items():
        try:
            arrays[name] = np.asarray(value, np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must be numeric, got {value!r}") from error
    try:
        return dict(zip(arrays, np.broadcast_arrays(*arrays.values()), strict=True))
    except ValueError as error:
        shapes = ", ".join(f"{name} {x.shape}" for name, x in arrays.items())
        raise ValueError(f"arguments do not broadcast: {shapes}") from error


def require(arrays: Mapping[str, Float], name: str, good: NDArray[np.bool_], rule: str) -> None:
    """A ValueError that shows the first value of ``arrays[name]`` that is not ``good``."""
    if not np.all(good):
        bad = arrays[name][~good]
        raise ValueError(f"{name} must {rule}; {bad.size:,} of {arrays[name].size:,} do not, the first is {bad[0]:g}")


def scalar_or_array(x: NDArray[Any]) -> Any:
    """A Python scalar for an array of no dimensions, else the array."""
    return x.item() if x.ndim == 0 else x
