"""Kinds of arrays, for annotations with shapes: jaxtyping's where it is loaded, as in tests; else arrays of any shape.

Importing jaxtyping and making its annotations would double the time that the import of the kernels takes, and only
tests check them.
"""

import sys
from typing import TYPE_CHECKING, Any

__all__ = [
    "Bool",
    "Float",
    "Float64",
    "Int8",
    "Int32",
    "Int64",
    "Integer",
    "Num",
    "Real",
    "Shaped",
    "UInt",
    "UInt8",
    "UInt32",
    "UInt64",
]

if TYPE_CHECKING or "jaxtyping" in sys.modules:
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

    class _Unchecked:
        def __class_getitem__(cls, array_and_shape: tuple[Any, str]) -> Any:
            return array_and_shape[0]

    Bool = Float = Float64 = Int8 = Int32 = Int64 = Integer = Num = Real = Shaped = _Unchecked
    UInt = UInt8 = UInt32 = UInt64 = _Unchecked
