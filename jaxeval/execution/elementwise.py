"""Calls of elementwise kernels on arrays of any shapes: broadcast, few compilations, double precision."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxeval.arrays import Float, map_tree
from jaxeval.execution.precision import double_precision
from jaxeval.execution.shapes import ELEMENTS
from jaxeval.kernels.batch import programs
from jaxeval.lazy_names import jax

#: What a function of scalars or arrays returns.
Numbers = float | NDArray[np.float64]
Words = str | NDArray[np.str_]


def evaluate(kernel: Callable[..., Any], *arguments: Any) -> Any:
    """Call ``kernel`` on trees of arrays that broadcast, in double precision; gives a tree of arrays of their shape.

    A kernel works element by element, on arrays of NumPy as well as of JAX. NumPy computes few numbers in less time
    than JAX compiles. Many are computed in blocks of one size, so that a kernel is compiled once whatever their shape.
    """
    leaves: list[Any] = []
    map_tree(leaves.append, arguments)
    shape = np.broadcast_shapes(*map(np.shape, leaves))
    if math.prod(shape) <= ELEMENTS:
        with np.errstate(all="ignore"):
            return map_tree(np.asarray, kernel(*map_tree(lambda x: np.broadcast_to(x, shape), arguments)))
    leaves, tree = jax.tree.flatten(arguments)
    flat, size = [np.broadcast_to(x, shape).reshape(-1) for x in leaves], math.prod(shape)

    def block(start: int) -> Any:
        parts = [x[start : start + ELEMENTS] for x in flat]
        return jax.tree.unflatten(tree, [np.pad(x, (0, ELEMENTS - len(x)), mode="edge") for x in parts])

    with double_precision():
        blocks = jax.device_get([programs.elementwise(kernel, *block(start)) for start in range(0, size, ELEMENTS)])
    return jax.tree.map(lambda *x: np.concatenate(x)[:size].reshape(shape), *blocks)


def evaluate_of_choice(kernel: Callable[..., Any], choice: Hashable, *arguments: Any) -> Any:
    """`evaluate` of ``kernel(choice, *arguments)``."""
    return evaluate(_of_choice(kernel, choice), *arguments)


@cache
def _of_choice(kernel: Callable[..., Any], choice: Hashable) -> Callable[..., Any]:
    """Return the same function object for equal arguments, because compiled programs are found by their function."""
    return partial(kernel, choice)


def broadcast(**arguments: ArrayLike) -> dict[str, Float]:
    """Return arguments as float64 arrays of one shape.

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
        do = "does" if bad.size == 1 else "do"
        raise ValueError(f"{name} must {rule}; {bad.size:,} of {arrays[name].size:,} {do} not, the first is {bad[0]:g}")


def require_share(arrays: Mapping[str, Float], *names: str) -> None:
    """A ValueError that shows the first value of the arrays ``names`` outside of [0, 1]."""
    for name in names:
        require(arrays, name, (arrays[name] >= 0) & (arrays[name] <= 1), "lie in [0, 1]")


def shares(**arguments: ArrayLike) -> dict[str, Float]:
    """Return `broadcast` of arguments that must all lie in [0, 1]."""
    arrays = broadcast(**arguments)
    require_share(arrays, *arrays)
    return arrays


def scalar_or_array(x: NDArray[Any]) -> Any:
    """Return a Python scalar for an array of no dimensions, else the array."""
    return x.item() if x.ndim == 0 else x


def scalars_or_arrays(**fields: NDArray[Any]) -> dict[str, Any]:
    """Return `scalar_or_array` of the fields of a result, by their names."""
    return {name: scalar_or_array(x) for name, x in fields.items()}
