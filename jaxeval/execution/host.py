"""Small work, which NumPy does on the host in less time than JAX takes to start: what is small, and how it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Int, map_tree
from jaxeval.execution.precision import double_precision, each_in_threads, one_blas_thread
from jaxeval.lazy_names import jax, spares_jax

T = TypeVar("T")
#: Numbers, those of all lanes together, up to which work is small; and passes of a fit over its arguments.
_MOST, _PASSES = 8_000_000, 30
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
