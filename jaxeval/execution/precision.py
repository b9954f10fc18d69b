"""Compute in double precision and with few threads, whatever the caller's settings, which are never written to."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec, module_from_spec
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from jaxeval.errors import ProcessError
from jaxeval.execution.forks import without_threads_of_jax
from jaxeval.lazy_names import ends_soon, jax, spares_jax

Part = TypeVar("Part")
T = TypeVar("T")
#: What JAX calls on the CPU.
_OF_JAX = "scipy.linalg.cython_blas", "scipy.linalg.cython_lapack"
_lock = Lock()
_inside = 0  # blocks that are running
_before: list[tuple[Any, int]] = []  # BLAS libraries and the threads that they had before these


def n_cores() -> int:
    """Return how many cores this process may use, where the system tells; else how many there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(function: Callable[..., Part], *of_slices: Iterable[Any]) -> list[Part]:
    """Return ``map(function, *of_slices)`` as a list, by threads; a single slice stays in this thread.

    An error, or Ctrl-C, ends the wait: calls that have not begun are cancelled.
    """
    return list(each_in_threads(function, *of_slices))


def each_in_threads(function: Callable[..., Part], *of_slices: Iterable[Any]) -> Iterator[Part]:
    """Yield what `in_threads` returns, one after the other as soon as it is there."""
    arguments = list(zip(*of_slices, strict=False))  # as map does: itertools.repeat has no end
    if len(arguments) < 2:
        yield from (function(*values) for values in arguments)
        return
    with ThreadPoolExecutor(min(len(arguments), n_cores())) as pool:
        try:
            yield from pool.map(function, *zip(*arguments, strict=True))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _blas() -> list[Any]:
    if not (spares_jax() or _OF_JAX[-1] in sys.modules):
        _load_lapack()
    return _loaded_blas(_OF_JAX[-1] in sys.modules)


def _load_lapack() -> None:
    """Load SciPy's OpenBLAS, which JAX calls.

    A process that ends soon imports the two modules that JAX asks for without their package, which takes .12 s.
    """
    spec = find_spec("scipy.linalg") if ends_soon() and "scipy.linalg" not in sys.modules else None
    if spec is not None:
        sys.modules[spec.name] = module_from_spec(spec)  # which is not executed
    try:
        for name in _OF_JAX:
            import_module(name)
    finally:
        if spec is not None:
            del sys.modules[spec.name]


@cache
def _loaded_blas(with_scipy: bool) -> list[Any]:
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS libraries use one thread in this context; their number is restored afterwards.

    OpenBLAS, which JAX calls for Cholesky factors on the CPU, keeps its other threads spinning for tens of
    milliseconds after each call, on cores that the next computation wants. At the sizes of leaderboards they do not
    speed up the factorisation either. The number is global to the process: the first thread that enters sets it, and
    the last one that leaves restores it.
    """
    global _inside
    with _lock:
        if not _inside:
            _before.extend((library, library.get_num_threads()) for library in _blas())
            for library, _ in _before:
                library.set_num_threads(1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            while _before and not _inside:
                library, n_threads = _before.pop()
                library.set_num_threads(n_threads)


@contextmanager
def double_precision() -> Iterator[None]:
    """Let JAX arrays have 64 bits in this context, types and ranks mix as usual, and small numbers become 0.

    The caller's own settings, of JAX and of NumPy's errors, are back afterwards.
    """
    if without_threads_of_jax():
        raise ProcessError(
            "this process was forked from one in which JAX had started, and JAX would hang in it: start processes by "
            "multiprocessing.get_context('spawn') or 'forkserver' (concurrent.futures takes it as mp_context=), or "
            "fork before the first computation"
        )
    with (
        np.errstate(under="ignore"),  # of constants that are too small for single precision
        jax.enable_x64(True),
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
        jax.transfer_guard("allow"),
    ):
        yield


@cache
def versions() -> str:
    """Return versions that a result depends on, in one line."""
    from jaxeval._version import __version__

    parts = [f"jaxeval {__version__}"]
    with suppress(PackageNotFoundError):  # without it, nothing depends on its version
        parts.append(f"jax {version('jax')}")
    return ", ".join([*parts, f"Python {platform.python_version()}"])


def backend_name() -> str:
    """Return the kind of JAX's default backend; "cpu" where nothing needed JAX."""
    return str(jax.default_backend()) if "jax" in sys.modules else "cpu"


def device_name() -> str:
    """Return the kind of the default device; "cpu" where nothing needed JAX."""
    if spares_jax():
        return "cpu"
    return str(jax.devices()[0].device_kind)


def n_devices() -> int:
    """Return the number of devices of this process; 1 where nothing needed JAX."""
    return 1 if spares_jax() else int(jax.local_device_count())


def on_device(tree: T) -> T:
    """Return the arrays of a ``tree`` on the default device; arrays of 64 bits keep them."""
    with double_precision():
        moved: T = jax.device_put(tree)
        return moved
