"""Which rows of a table meet a condition in SQL, as DuckDB understands it; nothing is ever run as Python."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from jaxeval.arrays import Bool
from jaxeval.data.columns import renames
from jaxeval.errors import DataError
from jaxeval.wording import did_you_mean

if TYPE_CHECKING:
    import duckdb

_ROW = "number of the row, for jaxeval"


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

    columns = {name: _meant(name, frame.columns, condition) for name in columns_of(condition)}
    table = _arrow({_ROW: np.arange(len(frame)), **{name: frame[column] for name, column in columns.items()}})
    with _connection() as connection:
        try:
            chosen = duckdb.SQLExpression(condition).alias("meets"), duckdb.ColumnExpression(_ROW)
            found = connection.from_arrow(table).project(*chosen).fetchnumpy()
        except duckdb.Error as error:
            raise DataError(f"condition {condition!r}: {str(error).splitlines()[0]}") from error
    values, rows = found["meets"], np.asarray(found[_ROW])
    if values.dtype != bool:
        raise DataError(
            f"condition {condition!r} is neither true nor false, but {values.dtype}: compare it, as in x = 1"
        )
    if not np.array_equal(np.sort(rows), np.arange(len(frame))):
        raise DataError(
            f"condition {condition!r} does not say yes or no once for each row: leave unnest and the like out"
        )
    meets = np.zeros(len(frame), bool)
    meets[rows] = np.ma.filled(values, False)  # window functions change the order
    return meets


def _meant(name: str, columns: pd.Index, condition: str) -> Any:
    """The column that a condition calls ``name``, whatever the case, blanks and underscores."""
    if name in columns:
        return name
    near = [column for column in columns if str(column).casefold() == name.casefold()]
    near = near or list(renames([name], list(columns)))
    if len(near) != 1:
        have = ", ".join(map(repr, columns))
        raise DataError(f"condition {condition!r}: no column {name!r}; there are {have}{did_you_mean(name, columns)}")
    return near[0]


def _connection() -> duckdb.DuckDBPyConnection:
    """DuckDB in memory, which reads no file and no other variable."""
    try:
        import duckdb
    except ImportError as error:
        raise ImportError("conditions in SQL need DuckDB: pip install 'jaxeval[sql]'") from error
    return duckdb.connect(":memory:", config={"enable_external_access": "false", "threads": "2"})


def _arrow(columns: Mapping[str, Any]) -> Any:
    """A table of columns; of those that differ in case only, which are the same to SQL, the first."""
    import pyarrow as pa

    once: dict[str, str] = {}
    for name in columns:
        once.setdefault(name.casefold(), name)
    try:
        return pa.table({name: pa.array(columns[name], from_pandas=True) for name in once.values()})
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
