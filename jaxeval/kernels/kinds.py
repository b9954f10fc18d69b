"""Kinds of arrays, for annotations with shapes: jaxtyping's where it is loaded, as in tests; else arrays of any shape.

Importing jaxtyping and making its annotations would double the time that the import of the kernels takes, and only
tests check them.
"""

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxeval.lazy_names import jnp

__all__ = [
    "Array", "ArrayLike", "Bool", "Float", "Float64", "Int8", "Int32", "Int64", "Integer", "Jaxpr", "Mesh", "Num",
    "Real", "Shaped", "UInt", "UInt8", "UInt32", "UInt64", "Wrapped",
]  # fmt: skip

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from jax import Array
    from jax.extend.core import Jaxpr
    from jax.sharding import Mesh
    from jax.stages import Wrapped
    from jax.typing import ArrayLike
    from jaxtyping import (
        Bool,
        Float,
        Float64,
        Int8,
        Int32,
        Int64,
        Integer,
        Num,
        Real,
        Shaped,
        UInt,
        UInt8,
        UInt32,
        UInt64,
    )  # fmt: skip
else:
    Array = ArrayLike = Jaxpr = Mesh = Wrapped = Any

    class _Unchecked:
        def __class_getitem__(cls, array_and_shape: tuple[Any, str]) -> Any:
            return array_and_shape[0]

    Bool = Float = Float64 = Int8 = Int32 = Int64 = Integer = Num = Real = Shaped = _Unchecked
    UInt = UInt8 = UInt32 = UInt64 = _Unchecked

_HOST = np.ndarray, np.generic, int


def namespace(*arrays: Any) -> Any:
    """Return the namespace that computes with ``arrays``: NumPy where all of them are on the host, else jax.numpy."""
    for x in arrays:
        if not isinstance(x, _HOST):
            return jnp
    return np
