"""Checks the shapes in the kernels' annotations: ``pytest --jaxtyping-packages=jaxeval.kernels,shapes.checked``.

jaxtyping checks the arguments and the results of functions. It does not look into NamedTuples, in which kernels take
most arrays: this does, with the same letters. Tests may give NumPy's arrays, or numbers, where kernels say `Array`.
"""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial, reduce
from inspect import isclass
from operator import or_
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import jax
from beartype import beartype
from beartype.door import is_bearable
from beartype.vale import Is, IsAttr
from jaxtyping import AbstractArray, ArrayLike, jaxtyped


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, which refuses arguments and results of other types, kinds or shapes than it says."""
    function.__annotations__ = {name: _deep(hint) for name, hint in function.__annotations__.items()}
    return beartype(function)


def _deep(hint: Any) -> Any:
    """``hint`` for any arrays, and that of the fields included where it is a NamedTuple."""
    if hint is jax.Array:
        return ArrayLike
    if isclass(hint) and issubclass(hint, AbstractArray):
        return hint.dtype[ArrayLike, hint.dim_str]
    if get_origin(hint) in (UnionType, Union):
        return reduce(or_, map(_deep, get_args(hint)))
    if get_origin(hint) is tuple:
        return tuple[tuple(map(_deep, get_args(hint)))]
    if get_origin(hint) is list:
        return list[_deep(*get_args(hint))]
    if not hasattr(hint, "_fields"):
        return hint
    fields = get_type_hints(hint, include_extras=True).items()
    return Annotated[hint, *(IsAttr[name, Is[partial(_bears, _deep(one))]] for name, one in fields)]


def _bears(hint: Any, value: Any) -> bool:
    """Whether a field's ``value`` is as ``hint`` says; the letters of a NamedTuple inside another are its own."""
    with jaxtyped("context") if hasattr(value, "_fields") else nullcontext():
        return is_bearable(value, hint)
