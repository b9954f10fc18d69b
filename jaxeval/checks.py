"""Checks of settings and of arrays: the same words for the same mistake, wherever the setting is asked for."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxeval.arrays import Float
from jaxeval.errors import MemoryLimitError
from jaxeval.wording import counted, did_you_mean

#: Seeds and numbers of resamples must be less than this.
MOST = 2**63
_MOST_RATING = 1e9


def checked_integer(name: str, value: Any, least: int = 0) -> int:
    """Return ``value`` as an integer of Python.

    Raises:
        TypeError: it is no integer; 2.5, 2.0 and True are none.
        ValueError: it is less than ``least``, or 2**63 or more.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer, got {_shown(value)}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    if value >= MOST:
        raise ValueError(f"{name} must be an integer from {least} to 2**63 - 1, got {value}")
    return int(value)


def checked_resamples(value: Any) -> int:
    """Return ``value`` as a number of resamples: 0, or at least 2, since a single resample has no spread."""
    if checked_integer("n_resamples", value) == 1:
        raise ValueError("n_resamples must be 0 or at least 2, got 1")
    return int(value)


def checked_number(name: str, value: Any) -> float:
    """Return ``value`` as a float of Python, or raise a TypeError where it is no number."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        raise TypeError(f"{name} must be a number, got {_shown(value)}")
    return float(value)


def checked_finite(name: str, value: Any, least: float = -np.inf, why: str = "") -> float:
    """Return ``value`` as a float of Python, finite and at least ``least``; ``why`` ends the message.

    Raises:
        TypeError: it is no number; "1000" and True are none.
        ValueError: it is infinite, NaN or less than ``least``.
    """
    number = checked_number(name, value)
    if not (np.isfinite(number) and number >= least):
        bound = "" if least == -np.inf else f" and >= {least:g}"
        raise ValueError(f"{name} must be finite{bound}, got {_shown(value)}{why}")
    return number


def checked_rating(name: str, value: Any) -> float:
    """Return ``value`` as a rating that others are measured from: so small that differences survive rounding.

    Raises:
        TypeError: it is no number.
        ValueError: it is infinite, NaN, or beyond a billion, where doubles are too coarse for differences of ratings.
    """
    number = checked_finite(name, value)
    if abs(number) > _MOST_RATING:
        raise ValueError(
            f"{name} must lie within {_MOST_RATING:,.0f} of 0, got {_shown(value)}: rounding would hide the "
            "differences of ratings"
        )
    return number


def checked_positive(name: str, value: Any, why: str = "") -> float:
    """Return ``value`` as a float of Python, finite and above 0; ``why`` ends the message.

    Raises:
        TypeError: it is no number.
        ValueError: it is infinite, NaN, 0 or less.
    """
    number = checked_number(name, value)
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be finite and > 0, got {_shown(value)}{why}")
    return number


def check_choice(name: str, value: Any, known: Any, also: str = "") -> None:
    """Check that ``value`` is one of the ``known`` values, or of a `Literal` type; ``also`` says what else it may be.

    Raises:
        ValueError: it is none of them. The message lists them, and names those that are spelled alike.
    """
    choices = get_args(known) or tuple(known)
    if not (isinstance(value, Hashable) and value in choices):
        listed = ", ".join(map(repr, choices))
        raise ValueError(f"{name} must be one of {listed}{also}, got {value!r}{did_you_mean(value, choices)}")


def check_room(n_resamples: int, bytes_each: int) -> None:
    """Check, before any resample is drawn, that this machine's memory can hold the results of all resamples.

    Raises:
        MemoryLimitError: it cannot. The message gives the bytes that are needed and the bytes that there are.
    """
    memory = _memory()
    if n_resamples * bytes_each > memory:
        raise MemoryLimitError(
            f"n_resamples={n_resamples:,}: the results would take {n_resamples * bytes_each:,} bytes, and this "
            f"machine has {memory:,}; ask for at most {counted(memory // bytes_each, 'resample')}"
        )


def _shown(value: Any) -> str:
    """Show ``value`` as Python writes it, NumPy's scalars without their type."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def _memory() -> int:
    """Return bytes of memory of this machine; the bytes that a process can address where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 2**47


def checked_numbers(name: str, values: Any) -> Float:
    """Return ``values``, one number or several, as an array of at least one axis; raise a TypeError for others."""
    try:
        return np.atleast_1d(np.asarray(values, np.float64))
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be numbers, got {values!r}") from None


def broadcast(**arguments: ArrayLike) -> dict[str, Float]:
    """Return arguments as float64 arrays of one shape.

    Raises:
        ValueError: an argument is not numeric, or the shapes do not fit.
    """
    arrays = {}
    for name, value in arguments.items():
        try:
            arrays[name] = np.asarray(value, np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must be numeric, got {value!r}") from error
    try:
        return dict(zip(arrays, np.broadcast_arrays(*arrays.values()), strict=True))
    except ValueError as error:
        shapes = ", ".join(f"{name} {x.shape}" for name, x in arrays.items())
        raise ValueError(f"arguments do not broadcast: {shapes}") from error


def require(arrays: Mapping[str, Float], name: str, good: NDArray[np.bool_], rule: str) -> None:
    """Raise a ValueError that shows the first value of ``arrays[name]`` that is not ``good``."""
    if not np.all(good):
        bad = arrays[name][~good]
        do = "does" if bad.size == 1 else "do"
        raise ValueError(f"{name} must {rule}; {bad.size:,} of {arrays[name].size:,} {do} not, the first is {bad[0]:g}")


def require_share(arrays: Mapping[str, Float], *names: str) -> None:
    """Raise a ValueError that shows the first value of the arrays ``names`` outside of [0, 1]."""
    for name in names:
        require(arrays, name, (arrays[name] >= 0) & (arrays[name] <= 1), "lie in [0, 1]")


def shares(**arguments: ArrayLike) -> dict[str, Float]:
    """Return `broadcast` of arguments that must all lie in [0, 1]."""
    arrays = broadcast(**arguments)
    require_share(arrays, *arrays)
    return arrays


def scalar_or_array(x: NDArray[Any]) -> Any:
    """Return a Python scalar for an array of no dimensions, else the array."""
    return x.item() if x.ndim == 0 else x


def scalars_or_arrays(**fields: NDArray[Any]) -> dict[str, Any]:
    """Return `scalar_or_array` of the fields of a result, by their names."""
    return {name: scalar_or_array(x) for name, x in fields.items()}
