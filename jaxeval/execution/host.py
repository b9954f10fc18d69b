"""Small work, which NumPy does on the host in less time than JAX takes to start or to compile."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Int, map_tree
from jaxeval.execution.precision import double_precision, each_in_threads, one_blas_thread
from jaxeval.execution.shapes import ELEMENTS
from jaxeval.kernels.batch import programs
from jaxeval.lazy_names import jax, spares_jax

T = TypeVar("T")
#: Numbers, those of all lanes together, up to which work is small; and passes of a fit over its arguments.
_MOST, _PASSES = 2**23, 32
_CACHE = 2**17  # numbers that the cache of a core holds


def is_for_host(numbers: int) -> bool:
    """Return whether the host does work on so many ``numbers``, in a process that has no JAX yet and ends soon."""
    return numbers <= _MOST and spares_jax()


def lanes_at_once(entries: int) -> int:
    """Return how many lanes, each of so many ``entries``, the cache of a core holds."""
    return max(_CACHE // entries, 8)


class HostTask(NamedTuple):
    """What lanes compute on the host, in place of a program."""

    kernels: Sequence[Callable[[Int], Any]]  # of each slice: from the numbers of R lanes to a tree with the axis R
    at_once: Sequence[int]  # lanes of each slice that are computed together

    def computed(self, s: int, numbers: Int) -> Any:
        """Return what lanes of the slice ``s`` give."""
        with np.errstate(all="ignore"):  # lanes at rest, and those that diverge, divide as in JAX
            return self.kernels[s](numbers)

    def finished(self, parts: Sequence[Int], slices: Int, numbers: Int, results: Any) -> Iterator[Int]:
        """Yield ``parts`` of all lanes, each of one slice, as soon as ``results`` holds what they give."""

        def finish(part: Int) -> Int:
            def write(into: NDArray[Any], values: NDArray[Any]) -> None:
                into[part] = values

            map_tree(write, results, self.computed(slices[part[0]], numbers[part]))
            return part

        return each_in_threads(finish, parts)


def fetched(program: Callable[..., T], *arguments: Any) -> T:
    """Return on the host what a ``program`` of `kernels.batch` gives, whose kernel takes arrays of NumPy, too."""
    sizes: list[int] = []
    map_tree(lambda x: sizes.append(np.size(x)), arguments)
    with one_blas_thread():
        if is_for_host(_PASSES * sum(sizes)):
            kernel: Any = program.__wrapped__  # type: ignore[attr-defined]
            with np.errstate(all="ignore"):
                result: T = kernel(*arguments)
        else:
            with double_precision():
                result = jax.device_get(program(*arguments))
    return result


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
    """Evaluate ``kernel(choice, *arguments)``, as `evaluate` does."""
    return evaluate(_of_choice(kernel, choice), *arguments)


@cache
def _of_choice(kernel: Callable[..., Any], choice: Hashable) -> Callable[..., Any]:
    """Return the same function object for equal arguments, because compiled programs are found by their function."""
    return partial(kernel, choice)
