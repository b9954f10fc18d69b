"""Double precision inside, whatever the caller's JAX configuration, which is never written to."""

from __future__ import annotations

import platform
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import jax


def double_precision() -> AbstractContextManager[Any]:
    """A context in which JAX arrays may have 64 bits, and types and ranks mix as usual.

    The caller's own settings are back afterwards.
    """
    contexts = ExitStack()
    contexts.enter_context(jax.enable_x64(True))
    contexts.enter_context(jax.numpy_dtype_promotion("standard"))
    contexts.enter_context(jax.numpy_rank_promotion("allow"))
    contexts.enter_context(jax.transfer_guard("allow"))
    return contexts


def versions() -> str:
    """Versions that a result depends on, in one line."""
    from jaxeval._version import __version__

    return f"jaxeval {__version__}, jax {jax.__version__}, Python {platform.python_version()}"
