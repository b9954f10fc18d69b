"""The cells of a DataFrame as text with equal decimals in a column, and which columns are intervals."""

from __future__ import annotations

from math import floor, log10
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_float_dtype, is_integer_dtype, is_numeric_dtype

from jaxeval.arrays import Float
from jaxeval.wording import visible_line

MISSING = "-"
#: Numbers beyond these are written with an exponent.
_LARGEST, _SMALLEST = 1e15, 1e-4


class Interval(NamedTuple):
    """Positions of three columns: an estimate, and the ends of its interval."""

    estimate: int
    lower: int
    upper: int


def with_index(frame: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The frame with its index as leading columns, and their number: 0 where the index only numbers the rows."""
    index = frame.index
    if isinstance(index, pd.RangeIndex) and index.name is None:
        return frame, 0
    levels = [index.get_level_values(k) for k in range(index.nlevels)]
    leading = pd.concat([pd.Series(level, frame.index) for level in levels], axis=1)
    leading.columns = ["" if name is None else name for name in index.names]
    leading = leading.astype(object)  # names, also where they are numbers
    if frame.columns.nlevels > 1:
        leading.columns, frame = pd.Index(leading.columns), frame.set_axis(frame.columns.to_flat_index(), axis=1)
    return pd.concat([leading, frame], axis=1), index.nlevels


def find_intervals(frame: pd.DataFrame) -> list[Interval]:
    """Estimates that have an interval: columns ``x``, ``x_lower``, ``x_upper``, or a number followed by its ends.

    A column ``y_lower`` without a column ``y`` belongs to the nearest number on its left that lies between the ends.
    """
    names = [str(name) for name in frame.columns]
    found = []
    for low, name in enumerate(names):
        if not (name == "lower" or name.endswith("_lower")) or f"{name[:-5]}upper" not in names:
            continue
        high = names.index(f"{name[:-5]}upper")
        stem = name.removesuffix("lower").removesuffix("_")
        if (middle := _estimate_of(frame, names, stem, low, high)) is not None:
            found.append(Interval(middle, low, high))
    return found


def _estimate_of(frame: pd.DataFrame, names: list[str], stem: str, low: int, high: int) -> int | None:
    ends = as_numbers(frame.iloc[:, low]), as_numbers(frame.iloc[:, high])
    if stem in names:
        return names.index(stem)
    for k in range(low - 1, -1, -1):
        if is_float_dtype(frame.iloc[:, k].dtype) and not names[k].endswith(("error", "_lower", "_upper")):
            value = as_numbers(frame.iloc[:, k])
            known = ~(np.isnan(value) | np.isnan(ends[0]) | np.isnan(ends[1]))
            if known.any() and ((ends[0] <= value) & (value <= ends[1]))[known].all():
                return k
    return None


def as_numbers(column: pd.Series) -> Float:
    """(R,) doubles, NaN where a value is missing or no number."""
    if is_numeric_dtype(column.dtype):
        return column.to_numpy(float, na_value=np.nan)
    return np.full(len(column), np.nan)


def cell_texts(frame: pd.DataFrame) -> list[list[str]]:
    """The cells of each column; an estimate and the ends of its interval have equally many decimals."""
    together = [[k] for k in range(frame.shape[1])]
    for own in find_intervals(frame):
        for k in own:
            together[k] = list(own)
    return [_column(frame.iloc[:, k], frame.iloc[:, like]) for k, like in enumerate(together)]


def _column(column: pd.Series, like: pd.DataFrame) -> list[str]:
    """The cells of a column; floating-point numbers get the decimals that suit the columns ``like``."""
    if is_bool_dtype(column.dtype):
        return [MISSING if value is pd.NA else "yes" if value else "no" for value in column]
    if is_integer_dtype(column.dtype):
        return [MISSING if value is pd.NA else f"{value:,}" for value in column]
    if is_float_dtype(column.dtype):
        decimals = _decimals(np.concatenate([as_numbers(like.iloc[:, k]) for k in range(like.shape[1])]))
        return [number_text(value, decimals) for value in as_numbers(column).tolist()]
    return [cell_text(value) for value in column]


def cell_text(value: Any) -> str:
    """One cell of a column of mixed values: names on one line, their invisible characters written out."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return number_text(float(value), _decimals(np.array([value], float)))
    return MISSING if value is None or value is pd.NA or value is pd.NaT else visible_line(value)


def _decimals(values: Float) -> int:
    """Decimals for four digits of the largest value: at most three unless all are small, none for whole numbers."""
    finite = np.abs(values[np.isfinite(values)])
    largest = finite.max(initial=0.0)
    if (finite == np.round(finite)).all():
        return 0
    if not _SMALLEST <= largest < _LARGEST:
        return 3
    place = floor(log10(largest))
    return 2 - place if place < -1 else min(max(3 - place, 0), 3)


def number_text(value: float, decimals: int) -> str:
    """A number with so many decimals; with an exponent if these would show only zeros, or if it is very large."""
    if np.isnan(value):
        return MISSING
    if value == 0 or np.isinf(value):
        return f"{value + 0.0:.{decimals}f}" if value == 0 else f"{value:g}"
    shown = f"{value:,.{decimals}f}" if abs(value) >= 10_000 else f"{value:.{decimals}f}"
    nothing = not any(digit in shown for digit in "123456789")
    return f"{value:.1g}" if nothing else f"{value:.4g}" if abs(value) >= _LARGEST else shown
