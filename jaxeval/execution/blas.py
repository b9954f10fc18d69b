"""One BLAS thread at a time for LAPACK calls made through JAX."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from threading import Lock

from threadpoolctl import ThreadpoolController

_lock = Lock()


@cache
def _controller() -> ThreadpoolController:
    import_module("scipy.linalg")  # whose OpenBLAS JAX calls; the controller knows what is loaded when it is made
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which BLAS libraries use one thread; their number is restored afterwards.

    OpenBLAS, which JAX calls for Cholesky factors on the CPU, keeps its other threads spinning for tens of
    milliseconds after each call, on cores that the next computation wants. At the sizes of leaderboards they do not
    speed up the factorisation either. The number is global to the process: a lock keeps calls from different threads
    from restoring each other's.
    """
    with _lock, _controller().limit(limits=1, user_api="blas"):
        yield
