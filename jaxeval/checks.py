"""Settings that are checked in the same words wherever they are asked for."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from jaxeval.arrays import Float
from jaxeval.errors import MemoryLimitError

#: Seeds and numbers of resamples are less.
MOST = 2**63
_MOST_RATING = 1e9


def checked_integer(name: str, value: Any, least: int = 0) -> int:
    """``value`` as Python's integer.

    Raises:
        TypeError: it is none, as 2.5, 2.0 and True are not.
        ValueError: it is less than ``least``, or 2**63 or more.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    if value >= MOST:
        raise ValueError(f"{name} must be an integer from {least} to 2**63 - 1, got {value}")
    return int(value)


def checked_resamples(value: Any) -> int:
    """``value`` as a number of resamples: 0, or 2 and more, since one has no spread."""
    if checked_integer("n_resamples", value) == 1:
        raise ValueError("n_resamples must be 0 or at least 2, got 1")
    return int(value)


def checked_number(name: str, value: Any) -> float:
    """``value`` as Python's number.

    Raises:
        TypeError: it is none.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        raise TypeError(f"{name} must be a number, got {value!r}")
    return float(value)


def checked_finite(name: str, value: Any, least: float = -np.inf, why: str = "") -> float:
    """``value`` as Python's number, finite and at least ``least``; ``why`` ends the message.

    Raises:
        TypeError: it is no number, as "1000" and True are not.
        ValueError: it is infinite, NaN or less.
    """
    number = checked_number(name, value)
    if not (np.isfinite(number) and number >= least):
        bound = "" if least == -np.inf else f" and >= {least:g}"
        raise ValueError(f"{name} must be finite{bound}, got {value!r}{why}")
    return number


def checked_rating(name: str, value: Any) -> float:
    """``value`` as a rating that others are measured from: Python's number, and small enough to tell them apart.

    Raises:
        TypeError: it is no number.
        ValueError: it is NaN, or beyond a billion: doubles there hold less than a millionth of a point.
    """
    number = checked_finite(name, value)
    if abs(number) > _MOST_RATING:
        raise ValueError(f"{name} must lie within {_MOST_RATING:,.0f} of 0, got {value!r}: others are lost beside it")
    return number


def checked_positive(name: str, value: Any, why: str = "") -> float:
    """``value`` as Python's number, finite and above 0; ``why`` ends the message.

    Raises:
        TypeError: it is no number.
        ValueError: it is infinite, NaN, 0 or less.
    """
    number = checked_number(name, value)
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be finite and > 0, got {value!r}{why}")
    return number


def check_room(n_resamples: int, bytes_each: int) -> None:
    """An error for resamples whose results the memory of this machine cannot hold, before any is drawn.

    Raises:
        MemoryLimitError: it tells the bytes.
    """
    memory = _memory()
    if n_resamples * bytes_each > memory:
        raise MemoryLimitError(
            f"n_resamples={n_resamples:,}: their results would take {n_resamples * bytes_each:,} bytes, and this "
            f"machine has {memory:,}; {memory // bytes_each:,} resamples are the most"
        )


def _memory() -> int:
    """Bytes of memory of this machine; what a process can address where nobody tells."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 2**47


def checked_numbers(name: str, values: Any) -> Float:
    """``values``, one number or several, as an array of at least one axis.

    Raises:
        TypeError: they are none.
    """
    try:
        return np.atleast_1d(np.asarray(values, np.float64))
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be numbers, got {values!r}") from None
