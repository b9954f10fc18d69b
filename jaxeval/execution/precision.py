"""Double precision inside, whatever the caller's JAX configuration, which is never written to."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import jax
import numpy as np

from jaxeval.errors import ProcessError
from jaxeval.execution.forks import without_threads_of_jax

T = TypeVar("T")


@contextmanager
def double_precision() -> Iterator[None]:
    """A context in which JAX arrays may have 64 bits, types and ranks mix as usual, and small numbers may become 0.

    The caller's own settings, of JAX and of NumPy's errors, are back afterwards.

    Raises:
        ProcessError: the process was forked from one in which JAX was at work, where every computation would hang.
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


def versions() -> str:
    """Return versions that a result depends on, in one line."""
    from jaxeval._version import __version__

    return f"jaxeval {__version__}, jax {jax.__version__}, Python {platform.python_version()}"


def device_name() -> str:
    """Return the kind of the default device."""
    return str(jax.devices()[0].device_kind)


def on_device(tree: T) -> T:
    """Return the arrays of a ``tree`` on the default device; arrays of 64 bits keep them."""
    with double_precision():
        moved: T = jax.device_put(tree)
        return moved
