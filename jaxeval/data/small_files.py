"""Small files of CSV and of JSON lines, read without Arrow and pandas, whose import takes longer than most of them."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxeval.data.columns import Columns
from jaxeval.data.file_formats import Kind, format_of, while_unchanged
from jaxeval.data.json_lines import rows_of_document
from jaxeval.plain_tables import PlainTable, objects

#: Larger files take Arrow and pandas less time, import and all: to read scores of 1.7 MB of CSV took .70 s of processor
#: time here and .68 s there, of 3.4 MB 1.3 and .72 s; of 2.8 MB of JSON lines .87 and .74 s.
MOST_BYTES = 3 * 2**19
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,14})")
_NUMBER = re.compile(rf"{_WHOLE.pattern}(\.\d+)?([eE][-+]?\d{{1,3}})?")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_TRUTHS = {word: word[0] in "tT" for word in ("true", "True", "TRUE", "false", "False", "FALSE")}
#: Text as which Arrow reads all of a column, and words that it takes for numbers, or for truth values.
_TEXT, _DATE = re.compile("[A-Za-z]|.*[_/#|()]"), re.compile(r"\d{4}-\d\d-\d\d")
_NO_TEXT = {"true", "false", "nan", "inf", "infinity"}


def small_table(path: Path, needed: Columns) -> PlainTable | None:
    """Give the needed columns of a small file; None where Arrow is to read it, as it may find other types, or an error.

    Columns are whole numbers, numbers, truth values or text; None, or NaN among numbers, where a value is missing.
    """
    columns = _columns(path)
    if not columns:
        return None
    if not columns.keys() >= {*needed.named} and any(
        isinstance(x, dict) for values in columns.values() for x in values
    ):
        return None  # a name may be the path of a field within objects
    names = needed.choose(list(columns))
    if isinstance(columns[names[0]], tuple):
        typed = {name: _of_texts(columns[name]) for name in names}
    else:
        typed = {name: _of_values(values) for name, values in columns.items() if name in names}
    return None if any(values is None for values in typed.values()) else PlainTable(typed)


@partial(while_unchanged, most=4)
def _columns(path: Path) -> Mapping[str, Sequence[Any]]:
    """Return the columns of CSV as tuples of text, those of JSON lines as lists of values; none of other files."""
    if not 0 < path.stat().st_size <= MOST_BYTES:
        return {}
    try:
        form = format_of(path)
        if form.compression or form.skipped or form.kind not in (Kind.CSV, Kind.TSV, Kind.JSON):
            return {}
        text = path.read_bytes().decode("utf-8-sig")
        return _of_json(text) if form.kind == Kind.JSON else _of_csv(text, form.delimiter)
    except (OSError, ValueError, csv.Error, RecursionError):  # which is told when it is read as other files are
        return {}


def _of_csv(text: str, delimiter: str) -> Mapping[str, Sequence[Any]]:
    names, *rows = (row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True) if row)
    if len({*names}) < len(names) or any(len(row) != len(names) for row in rows):
        return {}
    return dict(zip(names, zip(*rows, strict=True), strict=True))


def _of_json(text: str) -> Mapping[str, Sequence[Any]]:
    if _SURROGATE.search(text):
        return {}
    read = partial(json.loads, parse_constant=_refuse, object_pairs_hook=_once)
    is_list = text.lstrip().startswith("[")
    rows = read(text) if is_list else [read(line) for line in text.split("\n") if line.strip()]
    if not all(isinstance(row, dict) for row in rows):
        return {}
    if len(rows) == 1 and not is_list and (within := rows_of_document(rows[0])) is not None:
        rows = within
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no value of JSON")


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    if len(row := dict(pairs)) < len(pairs):
        raise ValueError("a name is there twice")
    return row


def _of_texts(values: Sequence[str]) -> NDArray[Any] | None:
    there = [value for value in values if value]
    if not there:
        return None
    if all(map(_NUMBER.fullmatch, there)):
        whole = all(map(_WHOLE.fullmatch, there)) and len(there) == len(values)
        return _exact(np.array([int(x) if whole else float(x or "nan") for x in values]))
    if _TRUTHS.keys() >= {*values}:
        return np.array([_TRUTHS[value] for value in values])
    return _text([x or None for x in values], lambda x: _TEXT.match(x) and x.casefold() not in _NO_TEXT)


def _of_values(values: Sequence[Any]) -> NDArray[Any] | None:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {str}:
        return _text(values, lambda x: not _DATE.match(x))
    if kinds == {bool} and None not in values:
        return np.array(values)
    if not kinds or not kinds <= {int, float}:
        return None
    whole = kinds == {int} and None not in values
    return _exact(np.array([x if whole else float("nan" if x is None else x) for x in values]))


def _exact(values: NDArray[Any]) -> NDArray[Any] | None:
    """Return numbers that doubles hold."""
    return values if values.dtype.kind in "if" and not (np.abs(values) >= 2.0**53).any() else None


def _text(values: Sequence[str | None], is_text: Callable[[str], Any]) -> NDArray[Any] | None:
    """Return text; None where all of it may be dates or other things than text."""
    if not any(x is not None and is_text(x) for x in values):
        return None
    return objects(values)
