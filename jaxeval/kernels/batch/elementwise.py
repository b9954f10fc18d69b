"""Kernels of arrays that broadcast: their leading axes are the batch."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax


@partial(jax.jit, static_argnums=0)
def elementwise(kernel: Callable[..., Any], *arguments: Any) -> Any:
    """``kernel`` of trees of arrays, compiled for each kernel and each shape."""
    return kernel(*arguments)
