"""Columns of tables of runs and of scores: by the names that are usual, or those that the caller has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pandas as pd

from jaxeval.arrays import Float
from jaxeval.data.columns import as_frame, reject_missing, require_column
from jaxeval.data.labels import SCORES_IN_WORDS
from jaxeval.data.numbers import numbers
from jaxeval.data.roles import usual_column
from jaxeval.errors import ColumnError, DataError
from jaxeval.wording import named

#: Names that columns have in public files; the first one that is there is read, in any spelling.
USUAL = {
    "agent": ("agent", "alias", "model"),
    "task": ("task", "task_id"),
    "family": ("family", "task_family"),
    "minutes": ("minutes", "human_minutes"),
    "success": ("success", "score_binarized"),
    "model": ("model", "model_name", "model_id"),
    "benchmark": ("benchmark", "benchmark_name", "benchmark_id"),
    "score": ("score", "performance", "share"),
}
#: Options of the command that have another name than in Python.
_FLAGS = {"score": "share"}


def columns_by_role(
    table: Any, names: Mapping[str, str | None], noun: str, optional: tuple[str, ...] = ()
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return a table of ``noun``, and which of its columns has each role: the caller's name of it, or a usual one.

    Roles that are ``optional`` and have no column are left out.
    """
    frame, columns = as_frame(table), {}
    for role, name in names.items():
        column = usual_column(frame, name, USUAL[role])
        if column is not None:
            columns[role] = column
        elif role not in optional:
            flag = _FLAGS.get(role, role)
            raise ColumnError(
                f"no column of the {role}: name it by {role}= (on the command line --{flag}); looked for "
                f"{named(USUAL[role])}, and the columns are {named(frame.columns)}"
            )
    if not len(frame):
        raise DataError(f"the table has no {noun}")
    return frame, columns


_MINUTES = {"s": 1 / 60, "sec": 1 / 60, "m": 1.0, "min": 1.0, "h": 60.0, "hr": 60.0, "hour": 60.0, "d": 1440.0,
            "day": 1440.0}  # fmt: skip
_QUANTITY = re.compile(r"([\d.]+(?:e[+-]?\d+)?) *(%|[a-z]+?)s?")


def shares(frame: pd.DataFrame, name: str) -> Float:
    """Return shares, where they may be written as 40% or as pass and fail."""
    return numbers(_in_units(frame[name], {"%": 0.01}, SCORES_IN_WORDS), name)


def minutes_of(frame: pd.DataFrame, name: str) -> Float:
    """Return lengths in minutes, where they may have a unit: 90 s, 5 min, 1.5h, 2 days."""
    return numbers(_in_units(frame[name], _MINUTES, {}), name)


def _in_units(column: pd.Series, units: Mapping[str, float], words: Mapping[str, float]) -> pd.Series:
    """Return a column of text as numbers, if all of it can be read as such; else the column itself."""
    if column.dtype == bool or not pd.api.types.is_string_dtype(column):
        return column
    read: dict[Any, float] = {}
    for value in column.dropna().unique():
        text = str(value).strip().casefold()
        match = _QUANTITY.fullmatch(text)
        if text in words:
            read[value] = words[text]
        elif match is not None and match[2] in units:
            read[value] = float(match[1]) * units[match[2]]
        else:
            try:
                read[value] = float(text)
            except ValueError:
                return column
    return column.map(read)


def texts(frame: pd.DataFrame, column: str) -> pd.Series:
    """Return the names in a column, as text."""
    reject_missing(frame[column].isna().to_numpy(), column)
    return frame[column].astype(str).reset_index(drop=True)


def of_each(table: Any, name: str | None, role: str, column: str) -> dict[str, Any]:
    """Return the value of ``column`` that each agent or model has, by its name.

    Raises:
        DataError: there is no such column, or one has several values.
    """
    frame, columns = columns_by_role(table, {role: name}, "rows")
    require_column(frame, column)
    key = columns[role]
    values = frame.dropna(subset=[column]).groupby(frame[key].astype(str))[column]
    several = values.nunique()
    if several.max() > 1:
        raise DataError(f"{several.idxmax()!r} has several values of {column!r}, and each {key} has one")
    each: dict[str, Any] = values.first().to_dict()
    return each
