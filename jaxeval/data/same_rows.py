"""Inputs that hold the same rows in whatever format: their judgments would count twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_datetime64_any_dtype, is_numeric_dtype

from jaxeval.arrays import Int
from jaxeval.errors import DataError
from jaxeval.wording import counted

#: Files with as many rows, but fewer distinct ones, may be equal by chance, as of two days with few votes each.
_FEW_ROWS, _FEW_DISTINCT = 4096, 10
_Codes = NDArray[np.uint64]
_ROWS = "rows "


class Content(NamedTuple):
    """What rows hold, whatever their format, their order, and the order of their columns."""

    digest: int
    n_rows: int
    telling: bool  # whether other rows would hardly be the same by chance

    @property
    def key(self) -> str:
        """Name the content in a dictionary of files, beside the SHA-256 of their bytes."""
        return f"{_ROWS}{self.digest:016x}"


def content_of(frame: pd.DataFrame, times: Int | None = None) -> Content:
    """Return the content of a table, each row of which stands for ``times`` (N,) rows.

    Numbers, and text that reads as the same numbers, are alike; so are missing values of all kinds.
    """
    row = np.zeros(len(frame), np.uint64)
    for name in frame:
        row += _codes(frame[name], pd.util.hash_array(np.array([str(name)], object))[0])
    row = _mixed(row)
    counts = np.ones(len(frame), np.uint64) if times is None else times.astype(np.uint64)
    n_rows = int(counts.sum())
    telling = n_rows > _FEW_ROWS or len(np.unique(row)) >= _FEW_DISTINCT  # the second is slow for many rows
    return Content(int((row * counts).sum()), n_rows, telling)


def n_files(known: Mapping[str, str]) -> int:
    """Return how many files a dictionary knows, some of them by bytes and by content."""
    return sum(not key.startswith(_ROWS) for key in known)


def together(contents: Sequence[Content]) -> Content:
    """Return the content of several tables as one."""
    digest = sum(one.digest for one in contents) % 2**64
    return Content(digest, sum(one.n_rows for one in contents), any(one.telling for one in contents))


def reject_same(content: Content, name: str, other: str, advice: str = "") -> str:
    """Return a sentence on a file that holds the rows of ``other``; the error ends with ``advice``.

    Raises:
        DataError: there are too many rows to be the same by chance.
    """
    same = f"{name} has the same {counted(content.n_rows, 'row')} as {other}"
    if content.telling:
        raise DataError(f"{same}: they would count twice. Leave it out{advice}")
    return f"{same}: they count again, which is right for other votes only"


def reject_same_tables(frames: Sequence[pd.DataFrame], names: Sequence[str]) -> list[str]:
    """Return sentences on those of several files, called ``names``, that hold the few rows of another.

    Raises:
        DataError: one holds the rows of another, too many to be the same by chance.
    """
    sentences = []
    before: dict[str, str] = {}
    for frame, name in zip(frames, names, strict=True) if len(frames) > 1 else ():
        content = content_of(frame)
        if content.key in before:
            sentences.append(reject_same(content, name, before[content.key]))
        before[content.key] = name
    return sentences


def _codes(column: pd.Series, of_name: np.uint64) -> _Codes:
    """Return a number for each value of a column whose name has the number ``of_name``."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        values = _codes(column.cat.categories.to_series(), of_name)
        return np.append(values, of_name)[column.cat.codes.to_numpy()]  # -1 where a value is missing
    if is_datetime64_any_dtype(column.dtype):
        seconds = column.astype("datetime64[ns, UTC]" if column.dt.tz else "datetime64[ns]").astype("int64") / 1e9
        return _of_numbers(seconds.where(column.notna()).to_numpy(np.float64), of_name)
    if is_numeric_dtype(column.dtype):
        return _of_numbers(column.to_numpy(np.float64, na_value=np.nan), of_name)
    text = column.where(column.notna(), "").map(str).to_numpy(object)
    number = pd.to_numeric(pd.Series(text, dtype=object), errors="coerce").to_numpy(np.float64)
    is_text = np.isnan(number) & (text != "")
    return np.where(is_text, _mixed(pd.util.hash_array(text) ^ of_name), _of_numbers(number, of_name))


def _of_numbers(values: NDArray[np.float64], of_name: np.uint64) -> _Codes:
    return np.where(np.isnan(values), of_name, _mixed((values + 0.0).view(np.uint64) ^ of_name))


def _mixed(codes: _Codes) -> _Codes:
    """Return numbers whose bits all depend on all bits of the codes, as splitmix64 does."""
    codes = (codes ^ (codes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    codes = (codes ^ (codes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return codes ^ (codes >> np.uint64(31))
