"""Threads: of NumPy's linear algebra, and those that work on parts of a task."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from threading import Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")
_lock = Lock()
_inside: list[Any] = []  # the one limit, once for each block that is running


def in_threads(function: Callable[..., T], *of_slices: Iterable[Any]) -> list[T]:
    """Return ``map(function, *of_slices)`` as a list, by threads; a single slice stays in this thread.

    An error, or Ctrl-C, ends the wait: calls that have not begun are cancelled.
    """
    arguments = list(zip(*of_slices, strict=False))  # as map does: itertools.repeat has no end
    if len(arguments) < 2:
        return [function(*values) for values in arguments]
    with ThreadPoolExecutor(min(len(arguments), os.cpu_count() or 1)) as pool:
        try:
            return list(pool.map(function, *zip(*arguments, strict=True)))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


@cache
def _controller() -> ThreadpoolController:
    import_module("scipy.linalg")  # JAX calls its OpenBLAS; the controller knows only libraries that are already loaded
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which BLAS libraries use one thread; their number is restored afterwards.

    OpenBLAS, which JAX calls for Cholesky factors on the CPU, keeps its other threads spinning for tens of
    milliseconds after each call, on cores that the next computation wants. At the sizes of leaderboards they do not
    speed up the factorisation either. The number is global to the process: the first thread that enters sets it, and
    the last one that leaves restores it.
    """
    with _lock:
        _inside.append(_inside[0] if _inside else _controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            limit = _inside.pop()
            if not _inside:
                limit.restore_original_limits()
