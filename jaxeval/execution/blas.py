"""One BLAS thread at a time for LAPACK calls made through JAX."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = Lock()
_inside: list[Any] = []  # the one limit, once for each block that is running


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
