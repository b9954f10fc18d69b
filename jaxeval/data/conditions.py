"""Which rows of a table meet a condition in SQL, as DuckDB understands it; nothing is ever run as Python."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxeval.arrays import Bool
from jaxeval.data.columns import renames
from jaxeval.data.nested_columns import arrow_of, is_nested, within
from jaxeval.errors import DataError, NoRowsError
from jaxeval.lazy_names import pa, pc, pd
from jaxeval.plain_tables import PlainTable, in_arrow
from jaxeval.wording import counted, did_you_mean, listed

if TYPE_CHECKING:
    import duckdb

_ROW = "number of the row, for jaxeval"
#: No file is read, and a condition that makes lists or text without end stops before it has taken all memory.
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "threads": "2",
    "memory_limit": "4GB",
}
#: Functions of chance and of the time.
_OTHER_EACH_TIME = {
    "random", "setseed", "uuid", "uuidv4", "uuidv7", "gen_random_uuid", "nextval", "currval", "txid_current", "now",
    "today", "transaction_timestamp", "get_current_time", "get_current_timestamp", "current_date", "current_time",
    "current_timestamp", "current_localtime", "current_localtimestamp",
}  # fmt: skip


def columns_of(condition: str) -> tuple[str, ...]:
    """Return names of the columns that a condition is about, or paths of fields within them: "x.y" for field y."""
    return tuple(map(".".join, _references(_parsed(condition))))


def equality(name: str, value: Any) -> str:
    """Return the condition that a column has a value."""
    is_number = isinstance(value, Number | np.number)
    shown = str(value).removesuffix(".0") if is_number else _quoted(str(value), "'")
    column = name if _is_bare(name) else _quoted(name, '"')
    return f"{column} = {shown}"


def _quoted(text: str, sign: str) -> str:
    return sign + text.replace(sign, 2 * sign) + sign


def _is_bare(name: str) -> bool:
    """Return whether DuckDB takes a name without quotes for that of a column, as it does not take its own words."""
    try:
        return re.fullmatch(r"[a-z_]\w*", name) is not None and columns_of(f"{name} = 0") == (name,)
    except (DataError, ImportError):
        return False


@lru_cache  # a command asks which columns to read, and then which rows meet it, of each piece of a long file
def _parsed(condition: str) -> list[dict[str, Any]]:
    with _connection() as connection:
        query = f"SELECT ({condition}\n) FROM battles"  # the line's end ends a comment
        ((answer,),) = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    tree = json.loads(answer)
    if tree["error"] or len(tree["statements"]) != 1:
        raise DataError(
            f"{condition!r} is no condition in SQL: {tree.get('error_message', 'it is several statements')} (put "
            "names of columns with blanks or dots in double quotes)"
        )
    parts = [part for part in _parts(tree) if "class" in part]
    for part in parts:
        if part["class"] == "STAR":
            raise DataError(f"condition {condition!r}: * and COLUMNS() stand for no column: name the columns")
        if part["class"] == "FUNCTION" and part["function_name"].casefold() in _OTHER_EACH_TIME:
            raise DataError(
                f"condition {condition!r}: {part['function_name']}() gives another value each time, whatever the seed: "
                "write its value into the condition, or make it a column of the table"
            )
    return parts


def _references(parts: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return the columns in a condition, each once: its name, and those of fields within each other."""
    return list(dict.fromkeys(tuple(part["column_names"]) for part in parts if part["class"] == "COLUMN_REF"))


def rows_that_meet(frame: Any, condition: str) -> tuple[Any, str]:
    """Return the rows that meet a condition, and how many these are, in words."""
    met = rows_where(frame, condition)
    if not met.any():
        raise NoRowsError(f"no row of {len(frame):,} meets the condition {condition!r}")
    left = frame[met] if isinstance(frame, PlainTable) else frame[met].reset_index(drop=True)
    return left, f"{condition}: {met.sum():,} of {counted(len(frame), 'row')}"


def rows_where(frame: Any, condition: str, counted: bool = False) -> Bool:
    """Return (N,) which rows meet a condition in SQL such as ``language = 'en' AND turn = 1``; NULL does not.

    If rows are ``counted``, one may stand for several equal ones: a condition that looks at other rows is refused.
    """
    parts = _parsed(condition)
    columns: dict[str, Any] = {_ROW: np.arange(len(frame))}
    if counted and any(part["class"] == "WINDOW" for part in parts):
        raise DataError(
            f"condition {condition!r} looks at other rows (OVER), but equal battles are merged here, and it would "
            "count them as one: choose the rows before they are counted, in the relation or by a column of the file"
        )
    for names in sorted(_references(parts), key=len):  # a whole column comes before its fields
        _place(columns, names, _values(".".join(names), frame, condition))
    table = pa.table({name: _arrow(name, values) for name, values in columns.items()})
    with _connection() as connection:  # which says what to install where DuckDB is not there
        import duckdb

        try:
            chosen = duckdb.SQLExpression(condition).alias("meets"), duckdb.ColumnExpression(_ROW)
            arrays = connection.from_arrow(table).project(*chosen).fetchnumpy()
        except duckdb.Error as error:
            message = str(error).splitlines()[0]
            if "GROUP BY" in message:
                message = "it is about all rows together, as count(*) is: compare the columns of one row, or use OVER"
            raise DataError(f"condition {condition!r}: {message}") from error
    values, rows = arrays["meets"], np.asarray(arrays[_ROW])
    if values.dtype != bool:
        raise DataError(
            f"condition {condition!r} is neither true nor false, but {values.dtype}: compare it, as in x = 1"
        )
    if not np.array_equal(np.sort(rows), np.arange(len(frame))):
        raise DataError(f"condition {condition!r} does not give one answer for each row: leave out unnest and the like")
    meets = np.zeros(len(frame), bool)
    meets[rows] = np.ma.filled(values, False)  # window functions change the order
    return meets


def _values(name: str, frame: Any, condition: str) -> Any:
    """Find the column, or field within one, that a condition calls ``name``, whatever its case, blanks, underscores."""
    columns = frame.columns
    near = [name] if name in columns else [c for c in columns if str(c).casefold() == name.casefold()]
    near = near or list(renames([name], list(columns)))
    if len(near) == 1:
        return frame[near[0]]
    try:
        field = None if near else within(frame, name)
    except DataError as error:
        raise DataError(f"condition {condition!r}: {error}") from error
    if field is None:
        have = f"there are {listed(columns)}{did_you_mean(name, columns)}"
        raise DataError(f"condition {condition!r}: no column {name!r}; {have}")
    return field


def _place(columns: dict[str, Any], names: Sequence[str], values: Any) -> None:
    """Add a column to the others, or a field to a column; names that differ only in case are the same to SQL."""
    place: Any = columns
    for name in names[:-1]:
        place = place.setdefault(name.casefold(), {})
        if not isinstance(place, dict):
            return  # the whole column is there
    place.setdefault(names[-1].casefold(), values)


def _arrow(name: str, values: Any) -> pa.Array:
    """Return a column, or the column whose fields ``values`` holds; errors call it ``name``."""
    if isinstance(values, dict):
        fields = [_arrow(f"{name}.{field}", part) for field, part in values.items()]
        return pa.StructArray.from_arrays(fields, list(values))
    if isinstance(values, np.ndarray):
        return in_arrow(values)
    try:
        nested = isinstance(values, pd.Series) and is_nested(values)
        array = arrow_of(values) if nested else pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"column {name!r} of the condition mixes values of several types: {error}") from error
    if pa.types.is_floating(array.type):  # Arrow's own columns may hold NaN, which SQL takes for more than any number
        array = pc.if_else(pc.is_nan(array), None, array)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _connection() -> duckdb.DuckDBPyConnection:
    """Open DuckDB in memory, which reads no file and no other variable."""
    try:
        import duckdb
    except ImportError as error:
        raise ImportError("conditions in SQL need DuckDB, the extra jaxeval[sql]: pip install duckdb") from error
    return duckdb.connect(":memory:", config=_CONFIG)


def _parts(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    if isinstance(node, list):
        for part in node:
            yield from _parts(part)
