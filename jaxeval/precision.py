"""Double precision inside, whatever the caller's JAX configuration, which is never written to."""

from __future__ import annotations

import platform
from contextlib import AbstractContextManager
from typing import Any

import jax


def double_precision() -> AbstractContextManager[Any]:
    """A context in which JAX arrays may have 64 bits; the caller's own setting is back afterwards."""
    return jax.enable_x64(True)


def versions() -> str:
    """Versions that a result depends on, in one line."""
    from jaxeval._version import __version__

    return f"jaxeval {__version__}, jax {jax.__version__}, Python {platform.python_version()}"
