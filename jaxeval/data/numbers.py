"""Numbers of an input table, also as people write them: with words for gaps, commas and signs of per cent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxeval.arrays import Bool, Float, Int
from jaxeval.data.columns import Rows, count_rows, first_place, reject_missing
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.wording import counted

#: Kinds of values that NumPy would turn into numbers: of nanoseconds, or without an imaginary part.
_NO_NUMBERS = {"M": "dates or times", "m": "durations", "c": "complex numbers"}
#: What R, Excel and others write in place of a missing number.
GAPS = ("NA", "N/A", "#N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "-", "")
_DECIMAL = re.compile(r"[-+]?\d*,\d+")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?")
_PERCENTAGE = re.compile(r"\s*[-+]?\d+(\.\d+|,\d{1,2})?\s*%\s*")
_FRACTION = re.compile(r"\s*(\d+)\s*/\s*(\d+)\s*")
#: Up to here doubles hold every whole number.
_EXACT = 2.0**53


def numbers(column: pd.Series, name: str, rows: Rows | None = None) -> Float:
    """Return (N,) numbers, none of them missing."""
    values = numbers_or_nan(column, name, rows)
    reject_missing(np.isnan(values), name, rows)
    return values


def whole_numbers(column: pd.Series, name: str, rows: Rows | None = None) -> Int:
    """Return (N,) whole numbers >= 0, none of them missing."""
    values = numbers(column, name, rows)
    bad = ~((values >= 0) & (values == np.floor(values)))
    reject_values(values, bad, name, "counts must come as whole numbers >= 0", rows)
    reject_values(values, values >= _EXACT, name, "counts must be below 2**53", rows)
    return values.astype(np.int64)


def weights_of(column: Any, name: str, rows: Rows | None = None) -> Float:
    """Return (N,) weights >= 0, none of them missing, and none whose square has no double."""
    values = numbers(column, name, rows)
    reject_values(values, (values < 0) | np.isinf(values), name, "weights must be finite and >= 0", rows)
    extreme = (values > 0) & ((values < 1e-100) | (values > 1e100))
    rule = "weights must lie between 1e-100 and 1e100, or be 0 (only ratios matter)"
    reject_values(values, extreme, name, rule, rows)
    return values


def numbers_or_nan(column: pd.Series, name: str, rows: Rows | None = None) -> Float:
    """Return (N,) numbers, NaN where missing; whole ones that a double would round are an error."""
    if (what := _NO_NUMBERS.get(getattr(column.dtype, "kind", ""))) is not None:
        raise DataError(f"column {name!r} holds {what}: expected real numbers, such as days since a date")
    if isinstance(column, np.ndarray) and column.dtype.kind in "bif":
        return column.astype(np.float64)
    column = pd.Series(column)
    try:
        values = column.to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        if (numeric := numeric_but_for_gaps(column)) is not column:
            return numbers_or_nan(numeric, name, rows)
        detail = _first_text(column, rows) or f": {error}"
        raise DataError(f"column {name!r} is not numeric ({column.dtype}){detail}") from error
    _reject_rounded(column, values, name, rows)
    return values


def numeric_but_for_gaps(column: pd.Series) -> pd.Series:
    """Return the column as numbers, if it is one of numbers and of words for missing ones; else the column itself.

    Numbers may have decimal commas, or commas of thousands, where a value tells which; 40% is 0.4 if all have a %.
    """
    try:
        there = column.astype(object).mask(column.isin(GAPS))
        texts = [text for text in there.dropna() if isinstance(text, str)]
        if texts and len(texts) == there.count() and all(map(_PERCENTAGE.fullmatch, texts)):
            return pd.to_numeric(there.str.strip("% \u00a0").str.replace(",", ".")) / 100
        if _have_thousands(texts):
            there = there.map(lambda value: value.replace(",", "") if isinstance(value, str) else value)
        # 1,234 alone may be one thousand and more.
        elif any(len(text.rpartition(",")[2]) != 3 or text[:2] == "0," for text in filter(_DECIMAL.fullmatch, texts)):
            there = there.map(lambda value: value.replace(",", ".") if isinstance(value, str) else value)
        elif there.count() in (0, column.count()):
            return column
        return pd.to_numeric(there)
    except (NotImplementedError, TypeError, ValueError):  # lists or objects, or words
        return column


def _have_thousands(texts: Sequence[str]) -> bool:
    """Return whether commas are those of thousands, as one can be nothing else: 1,234.5 or 1,234,567."""
    commas = [text for text in texts if "," in text]
    return any("." in text or text.count(",") > 1 for text in commas) and all(map(_THOUSANDS.fullmatch, commas))


def _reject_rounded(column: pd.Series, values: Float, name: str, rows: Rows | None) -> None:
    """Raise an error if a whole number of the column is another one among its ``values`` (N,), which are doubles."""
    large = np.flatnonzero(np.abs(values) >= _EXACT)  # NaN is not
    if not len(large):
        return
    there = column.iloc[large].tolist()
    rounded = np.zeros(len(values), bool)
    rounded[large] = [isinstance(x, int) and int(y) != x for x, y in zip(there, values[large].tolist(), strict=True)]
    if rounded.any():
        first = next(x for x, row in zip(there, large, strict=True) if rounded[row])
        n = counted(count_rows(rounded, rows), "whole number that a double rounds", "whole numbers that doubles round")
        raise DataError(
            f"column {name!r} has {n}, beyond 2**53, such as {first}{first_place(rounded, rows)}: subtract or divide "
            "first, or store them as floats"
        )


def finite_or_nan(column: pd.Series, name: str) -> Float:
    """Return (N,) finite numbers, NaN where missing."""
    values = numbers_or_nan(column, name)
    reject_infinite(np.isinf(values), f"column {name!r}")
    return values


def reject_infinite(infinite: Bool, what: str, noun: str = "value", rows: Rows | None = None) -> None:
    """Raise an error that counts the rows (N,) in which ``what`` has an ``infinite`` value, if there are any."""
    if infinite.any():
        n = count_rows(infinite, rows)
        raise DataError(
            f"{what} has {counted(n, f'infinite {noun}')}{first_place(infinite, rows)}: drop or correct them first"
        )


def _first_text(column: pd.Series, rows: Rows | None) -> str:
    """Return the first value of a column that is no number, and where it is, in words."""
    for row, value in enumerate(column):
        try:
            float(value)
        except (TypeError, ValueError):
            if value is not None and value is not pd.NA:
                return f": {value!r}{first_place(np.arange(len(column)) == row, rows)}{_as_number(value)}"
    return ""


def _as_number(value: Any) -> str:
    """Return what to write in place of a value that is no number, where that is known: ": write 0.5 for 0,5"."""
    if isinstance(value, str):
        if _PERCENTAGE.fullmatch(value):
            return ": write all values with %, or none"
        if (part := _FRACTION.fullmatch(value)) is not None and int(part[2]):
            return f": write {int(part[1]) / int(part[2]):.4g} for {value}"
        if _THOUSANDS.fullmatch(value):
            return f": write {value.replace(',', '')} for {value}, or {value.replace(',', '.')}"
        return ": write 0.5 for 0,5" if _DECIMAL.fullmatch(value) else ""
    if isinstance(value, Mapping) and value:
        return f": write one number, or name a field of the objects in a file by its path, COLUMN.{next(iter(value))}"
    return ": write one number" if isinstance(value, Mapping | Sequence | np.ndarray) else ""


def reject_values(values: Float, bad: Bool, name: str, rule: str, rows: Rows | None = None) -> None:
    """Raise an error that states the broken ``rule`` and shows the ``bad`` values (N,), if there are any."""
    if bad.any():
        first = first_place(bad, rows, f": {values[bad.argmax()]:.16g}")
        n = counted(count_rows(bad, rows), "value is wrong", "values are wrong")
        least, most = values[bad].min(), values[bad].max()
        bounds = f": {least:.16g}" if least == most else f", from {least:.16g} to {most:.16g}"
        raise DataError(f"column {name!r}: {rule}; {n}{bounds}{first}")
