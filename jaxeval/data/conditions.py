"""Which rows of a table meet a condition in SQL, as DuckDB understands it; nothing is ever run as Python."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from jaxeval.arrays import Bool
from jaxeval.errors import DataError
from jaxeval.wording import did_you_mean

if TYPE_CHECKING:
    import duckdb


def columns_of(condition: str) -> tuple[str, ...]:
    """Names of the columns that a condition is about; (x, y) of x.y is "x".

    Raises:
        DataError: it is no condition in SQL.
        ImportError: DuckDB is not installed.
    """
    with _connection() as connection:
        query = f"SELECT ({condition}\n) FROM battles"  # the line's end ends a comment
        ((answer,),) = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    found = json.loads(answer)
    if found["error"] or len(found["statements"]) != 1:
        raise DataError(
            f"{condition!r} is no condition in SQL: {found.get('error_message', 'it is several statements')}"
        )
    return tuple(dict.fromkeys(_referred(found)))


def rows_where(frame: pd.DataFrame, condition: str) -> Bool:
    """(N,) which rows meet a condition such as ``language = 'en' AND turn = 1``; NULL does not.

    Raises:
        DataError: it is no condition in SQL, or about columns that are not there.
        ImportError: DuckDB is not installed.
    """
    import duckdb

    needed = columns_of(condition)
    by_name = {str(column).casefold(): column for column in frame.columns}
    for name in needed:
        if name.casefold() not in by_name:
            have = ", ".join(map(repr, frame.columns))
            raise DataError(
                f"condition {condition!r}: no column {name!r}; there are {have}{did_you_mean(name, by_name)}"
            )
    used = [by_name[name.casefold()] for name in needed]
    table = _arrow(frame[used] if used else pd.DataFrame({"row": np.zeros(len(frame))}))
    with _connection() as connection:
        try:
            meets = connection.from_arrow(table).project(duckdb.SQLExpression(condition)).fetchnumpy()
        except duckdb.Error as error:
            raise DataError(f"condition {condition!r}: {str(error).splitlines()[0]}") from error
    (values,) = meets.values()
    if values.dtype != bool:
        raise DataError(
            f"condition {condition!r} is neither true nor false, but {values.dtype}: compare it, as in x = 1"
        )
    return np.asarray(np.ma.filled(values, False))


def _connection() -> duckdb.DuckDBPyConnection:
    """DuckDB in memory, which reads no file and no other variable."""
    try:
        import duckdb
    except ImportError as error:
        raise ImportError("conditions in SQL need DuckDB: pip install 'jaxeval[sql]'") from error
    return duckdb.connect(":memory:", config={"enable_external_access": "false", "threads": "2"})


def _arrow(frame: pd.DataFrame) -> Any:
    import pyarrow as pa

    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"a column of the condition mixes values of several types: {error}") from error


def _referred(node: Any) -> Iterator[str]:
    """First names of all columns in a parsed query."""
    if isinstance(node, dict):
        if node.get("class") == "COLUMN_REF":
            yield node["column_names"][0]
        node = list(node.values())
    if isinstance(node, list):
        for part in node:
            yield from _referred(part)
