"""Kernels of arrays that broadcast: their leading axes are the batch."""

from collections.abc import Callable
from typing import Any

from jaxeval.kernels.batch.programs import program


@program("kernel")
def elementwise(kernel: Callable[..., Any], *arguments: Any) -> Any:
    """``kernel`` of trees of arrays, compiled for each kernel and each shape."""
    return kernel(*arguments)
