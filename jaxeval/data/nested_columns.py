"""Fields within columns of objects, by dotted paths such as conv_metadata.turns; Arrow calls such columns structs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from jaxeval.data.columns import frame_of, renames, told_fields
from jaxeval.errors import DataError
from jaxeval.lazy_names import pa, pc, pd
from jaxeval.plain_tables import in_pandas
from jaxeval.wording import did_you_mean, listed

T = TypeVar("T")
_NESTED = (Mapping, list, tuple, set, frozenset, np.ndarray)


def field_names(kind: Any) -> list[str]:
    """Return the paths of all fields within the columns of a schema, or within the fields of a struct."""
    structs = [field for field in kind if pa.types.is_struct(field.type)]
    return [f"{field.name}.{name}" for field in structs for name in _names(field.type)]


def _names(kind: Any) -> list[str]:
    return [*dict.fromkeys(field.name for field in kind), *field_names(kind)]


def keys_of(kind: Any, name: str) -> list[str]:
    """Return the names that a path stands for in a schema or a struct, outermost first; empty if it leads nowhere.

    A column or a field whose own name holds a dot comes before the path.
    """
    if name in [field.name for field in kind]:
        return [name]
    for field in kind:
        if pa.types.is_struct(field.type) and name.startswith(f"{field.name}."):
            rest = keys_of(field.type, name.removeprefix(f"{field.name}."))
            if rest:
                return [field.name, *rest]
    return []


def taken(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return columns of a table, and fields within them, in that order."""
    if all(name in table.column_names for name in names):
        return table.select(names)
    columns = {}
    for name in names:
        column, *fields = keys_of(table.schema, name)
        columns[name] = pc.struct_field(table[column], fields) if fields else table[column]
    return pa.table(columns)


def fields_of_rows(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return `field_names` of objects of JSON."""
    return list(dict.fromkeys(path for row in rows for path in _paths(row)))


def _paths(row: Mapping[str, Any]) -> Iterator[str]:
    for key, value in row.items():
        if isinstance(value, Mapping):
            yield from (f"{key}.{name}" for name in [*value, *_paths(value)])


def value_at(row: Mapping[str, Any], name: str) -> Any:
    """Return the value that a path leads to in an object of JSON; None if it leads nowhere."""
    if name in row:
        return row[name]
    within = (
        value_at(value, name.removeprefix(f"{key}."))
        for key, value in row.items()
        if isinstance(value, Mapping) and name.startswith(f"{key}.")
    )
    return next((value for value in within if value is not None), None)


def is_nested(column: pd.Series) -> bool:
    """Return whether a column holds objects or lists."""
    if isinstance(column.dtype, pd.ArrowDtype):
        return bool(pa.types.is_nested(column.dtype.pyarrow_dtype))
    if column.dtype != object:
        return False
    return any(isinstance(value, _NESTED) for value in column[column.notna()].iloc[:1])


def arrow_of(column: pd.Series) -> pa.ChunkedArray:
    """Return a column that `is_nested`, as a column of Arrow."""
    name = column.name
    try:
        if not isinstance(column.dtype, pd.ArrowDtype):
            column = pd.Series([_of_python(value) for value in column], dtype=object)
        values = pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"column {name!r} mixes values of several types: {error}") from error
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])


def _of_python(value: Any) -> Any:
    """Return a list for a set, which Arrow does not know, or for an array, which has a type even if it is empty."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return sorted(value) if isinstance(value, set | frozenset) else value


def within(frame: pd.DataFrame, name: str) -> pd.Series | None:
    """Return the field that a path leads to in a column of objects; None if the path begins with no such column."""
    fields: list[str] = []
    for k, column in enumerate(frame.columns):
        texts = isinstance(column, str) and isinstance(name, str)  # a column may be named by a number, too
        if not (texts and name.startswith(f"{column}.") and is_nested(frame.iloc[:, k])):
            continue
        values = arrow_of(frame.iloc[:, k])
        if not pa.types.is_struct(values.type):
            continue
        keys = keys_of(values.type, name.removeprefix(f"{column}."))
        if keys:
            table = pa.table({name: pc.struct_field(values, keys)})
            return frame_of(table, nested=True)[name].set_axis(frame.index)
        fields += [f"{column}.{path}" for path in _names(values.type)]
    if fields:
        raise DataError(f"no field {name!r} in the table{told_fields(name, fields)}{did_you_mean(name, fields)}")
    return None


def with_fields(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return the table with a column more for each of the ``names`` that is the path of a field."""
    columns = {name: within(frame, name) for name in names if name not in frame.columns}
    there = {name: field for name, field in columns.items() if field is not None}
    return frame.assign(**there) if there else frame


class LaterColumns(Mapping[str, T]):
    """Further columns of a table, and fields within them, each encoded when somebody first asks for it.

    Those in ``keep`` are encoded at once. Iteration gives those that are encoded.
    """

    def __init__(
        self, table: Any, encode: Callable[[Any, str], T], keep: Sequence[str] = (),
        changes: Sequence[Callable[[T], T]] = (),
    ) -> None:  # fmt: skip
        self._table, self._encode, self._changes = table, encode, changes
        self._encoded: dict[str, T] = {}
        for name in keep:
            self[name]

    def __getitem__(self, name: str) -> T:
        if not isinstance(name, Hashable):
            raise TypeError(f"name one column, got {name!r}")
        if name not in self._encoded:
            names = list(self._table.columns)
            of_table = name if name in names else next(iter(renames([name], names)), name)
            column = self._table[of_table] if of_table in names else within(self._table, name)
            if column is None:
                have = f"the further columns are: {listed(names)}{did_you_mean(name, names)}"
                raise DataError(f"no column {name!r} to group by; {have}")
            encoded = self._encode(column, name)
            for change in self._changes:
                encoded = change(encoded)
            self._encoded[name] = encoded
        return self._encoded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._encoded or name in self._table

    def __iter__(self) -> Iterator[str]:
        return iter(self._encoded)

    def __len__(self) -> int:
        return len(self._encoded)

    def then(self, change: Callable[[T], T]) -> LaterColumns[T]:
        """Return the same columns, each changed after it is encoded."""
        later = LaterColumns(self._table, self._encode, changes=(*self._changes, change))
        later._encoded = {name: change(column) for name, column in self._encoded.items()}
        return later


def levels_in_pandas(column: T) -> T:
    """Return an encoded column with its levels as pandas has them."""
    encoded: Any = column
    return encoded._replace(levels=in_pandas(encoded.levels))
