"""Tables and labels in NumPy, which become those of pandas when somebody asks for what only pandas has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxeval.lazy_names import pa, pd


class Names:
    """Labels in their order, as an index of pandas has them; any further attribute is that of this index."""

    def __init__(self, values: Iterable[Any], name: str | Sequence[str] | None = None) -> None:
        self.values, self.name = objects(list(values)), name

    @cached_property
    def index(self) -> pd.Index:
        """The same in pandas; labels that are tuples are those of several levels."""
        if self.name is None or isinstance(self.name, str):
            return pd.Index(list(self.values), name=self.name)
        return pd.MultiIndex.from_tuples(list(self.values), names=self.name)

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {value: place for place, value in enumerate(self.values)}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # of copies and pickles, which ask before there are values
            raise AttributeError(name)
        return getattr(self.index, name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.to_numpy(), dtype)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __contains__(self, value: Any) -> bool:
        return value in self._places

    def __getitem__(self, places: Any) -> Any:
        found = self.values[places]
        return Names(found, self.name) if isinstance(places, slice | list | np.ndarray) else found

    def __eq__(self, other: object) -> Any:
        return self.index == other

    __hash__ = None  # type: ignore[assignment]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of labels, as of an array."""
        return self.values.shape

    @property
    def is_unique(self) -> bool:
        """Whether each label is there once."""
        return len(self._places) == len(self.values)

    def rename(self, name: str) -> Names:
        """Return the same labels under another name."""
        return type(self)(self.values, name)

    def map(self, function: Callable[[Any], Any]) -> Names:
        """Apply a function to each label."""
        return Names(map(function, self.values))

    def isin(self, others: Any) -> NDArray[np.bool_]:
        """Return which labels are among others."""
        known = set(others)
        return np.array([value in known for value in self.values], bool)

    def get_indexer(self, labels: Any) -> NDArray[np.intp]:
        """Return the position of each of some labels here; -1 of one that is not there."""
        return np.array([self._places.get(label, -1) for label in labels], np.intp)

    get_indexer_for = get_indexer

    def tolist(self) -> list[Any]:
        """Return the labels."""
        return list(self.values.tolist())

    def to_numpy(self) -> NDArray[Any]:
        """Return the labels as an array, of numbers where all are."""
        return _array(self.tolist())

    def get_loc(self, value: Any) -> int:
        """Return the position of a label."""
        return self._places[value]


class RowNumbers(Names):
    """Numbers of rows, where nothing else names them."""

    @cached_property
    def index(self) -> pd.Index:
        """The same in pandas."""
        first, step = (self.values[0], next(iter(self._steps), 1)) if len(self) else (0, 1)
        return pd.RangeIndex(first, first + step * len(self), step, name=self.name)

    @property
    def _steps(self) -> set[int]:
        return {*np.diff(self.values.astype(int)).tolist()}

    def __getitem__(self, places: Any) -> Any:
        """Take some of the numbers, which stay numbers of rows where each is as far from the next one, as in pandas."""
        found = super().__getitem__(places)
        if not isinstance(found, Names):
            return found
        rows = RowNumbers(found.values, self.name)
        return rows if len(rows._steps - {0}) == len(rows._steps) < 2 else found


def counts_rows(names: Any) -> bool:
    """Return whether names, in pandas or not, are numbers of rows."""
    return isinstance(names, RowNumbers) or (not isinstance(names, Names) and isinstance(names, pd.RangeIndex))


class Whole(np.ndarray):
    """Whole numbers as doubles, NaN where one is missing."""


class Coded(np.ndarray):
    """Text, of which one knows (N,) the number of each row's value, and the values in the order of their first rows.

    Some of the rows are an array like any other.
    """

    coded: tuple[NDArray[np.intp], list[str]] | None = None

    @classmethod
    def of(cls, codes: NDArray[Any], values: Sequence[str]) -> Coded:
        """Return the rows of all ``values`` that occur, from their numbers (N,)."""
        first = np.full(len(values), len(codes))
        first[codes[::-1]] = np.arange(len(codes))[::-1]
        order = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(codes))]
        rank = np.empty(len(values), np.intp)
        rank[order] = np.arange(len(order))
        text = objects(values)[codes].view(cls)
        text.coded = rank[codes], [values[k] for k in order]
        return text


class PlainTable:
    """Columns of one length, by name, as arrays of numbers or objects; ``attrs`` as of a DataFrame.

    Any further attribute is that of this DataFrame.
    """

    def __init__(
        self, columns: Mapping[str, Any], attrs: Mapping[str, Any] | None = None, n_rows: int | None = None
    ) -> None:
        self._columns = {name: _array(values) for name, values in columns.items()}
        self.attrs: dict[str, Any] = dict(attrs or {})
        self._n_rows = len(next(iter(self._columns.values()), ())) if n_rows is None else n_rows

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[Any]], names: Sequence[str]) -> PlainTable:
        """Make the table of rows with a value for each name."""
        return cls({name: [row[k] for row in rows] for k, name in enumerate(names)})

    @classmethod
    def of_arrow(cls, table: pa.Table) -> PlainTable | None:
        """Make the table of one of Arrow if it holds texts by their codes and numbers alone, and nothing is missing."""
        columns: dict[str, Any] = {}
        for name, column in zip(table.column_names, table.columns, strict=True):
            values = column.combine_chunks()
            if values.null_count or name in columns:
                return None
            if pa.types.is_dictionary(values.type) and pa.types.is_string(values.type.value_type):
                columns[name] = Coded.of(in_numpy(values.indices), values.dictionary.to_pylist())
            elif values.type in (pa.int64(), pa.float64()):
                columns[name] = in_numpy(values)
            else:
                return None
        return cls(columns)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._columns)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self), len(self._columns)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The same in pandas."""
        frame = pd.DataFrame(
            {name: pd.Series(x).astype("Int64") if isinstance(x, Whole) else x for name, x in self._columns.items()},
            pd.RangeIndex(len(self)),
        ).infer_objects()
        frame.attrs = self.attrs
        return frame

    def __len__(self) -> int:
        return self._n_rows

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # of copies and pickles, and of Arrow's and pandas' own ways
            raise AttributeError(name)
        return getattr(self.frame, name)

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __getitem__(self, name: Any) -> Any:
        """Return a column by its name, some columns by theirs, or the rows of a mask or of places."""
        if isinstance(name, list):
            return PlainTable({column: self._columns[column] for column in name}, self.attrs, len(self))
        if not isinstance(name, np.ndarray):
            return self._columns[name]
        return PlainTable({column: values[name] for column, values in self._columns.items()}, self.attrs)

    def __setitem__(self, name: str, values: Any) -> None:
        self._columns = self.assign(**{name: values})._columns
        self.__dict__.pop("frame", None)

    def head(self, n: int) -> PlainTable:
        """Return the first rows."""
        return PlainTable({name: values[:n] for name, values in self._columns.items()}, self.attrs)

    def assign(self, **columns: Any) -> PlainTable:
        """Return the table with further columns, or other ones; a single value stands in all rows."""
        full = {
            name: [x] * len(self) if isinstance(x, str) or not hasattr(x, "__len__") else x
            for name, x in columns.items()
        }
        return PlainTable({**self._columns, **full}, self.attrs)

    def rename(self, columns: Mapping[str, str]) -> PlainTable:
        """Return the table with other names of columns."""
        return PlainTable({columns.get(name, name): values for name, values in self._columns.items()}, self.attrs)

    def drop(self, columns: str | Sequence[str]) -> PlainTable:
        """Return the table without some columns, where it has them."""
        dropped = [columns] if isinstance(columns, str) else columns
        return PlainTable({name: x for name, x in self._columns.items() if name not in dropped}, self.attrs)

    def records(self) -> list[dict[str, Any]]:
        """Return the rows, each by the names of columns; missing whole numbers are None."""
        columns = [
            [None if np.isnan(x) else int(x) for x in values] if isinstance(values, Whole) else values.tolist()
            for values in self._columns.values()
        ]
        return [dict(zip(self._columns, row, strict=True)) for row in zip(*columns, strict=True)]


def _array(values: Any) -> NDArray[Any]:
    """Return values as numbers where all are, and else as they are."""
    if isinstance(values, np.ndarray):
        return values
    kinds = {type(value) for value in values}
    is_number = kinds and kinds <= {int, float, np.float64, np.int64}
    return np.array(values) if is_number or kinds == {bool} else objects(list(values))


def in_numpy(column: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Return a column of numbers, of which none is missing, as an array. Arrow's own way to do that imports pandas."""
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    kind = values.type.to_pandas_dtype()
    end = values.offset + len(values)
    return np.frombuffer(values.buffers()[1], kind)[values.offset : end] if len(values) else np.zeros(0, kind)


def in_arrow(values: NDArray[Any]) -> pa.Array:
    """Return numbers, truth values or text, NaN and None where one is missing, as an array of Arrow, without pandas."""
    missing: NDArray[np.bool_] = values != values
    if values.dtype.kind == "O":
        missing = np.array([text is None for text in values], bool)
        texts = [b"" if text is None else text.encode() for text in values.tolist()]
        kind, data = pa.large_string(), [np.cumsum([0, *map(len, texts)], dtype=np.int64), b"".join(texts)]
    elif values.dtype.kind == "b":
        kind, data = pa.bool_(), [np.packbits(values, bitorder="little")]
    else:
        kind = pa.float64() if values.dtype.kind == "f" else pa.int64()
        data = [np.ascontiguousarray(values, np.float64 if values.dtype.kind == "f" else np.int64)]
    there = np.packbits(~missing, bitorder="little") if missing.any() else None
    return pa.Array.from_buffers(kind, len(values), [None if x is None else pa.py_buffer(x) for x in (there, *data)])


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """Return an array of values as they are, also of tuples."""
    made = np.empty(len(values), object)
    made[:] = values
    return made


def stacked(tables: Sequence[Any]) -> Any:
    """Put the rows of several tables below each other; those of pandas where one is."""
    if all(isinstance(table, PlainTable) and {*table} == {*tables[0]} for table in tables):
        parts = {name: [table[name] for table in tables] for name in tables[0]}
        return PlainTable({name: np.concatenate(x).view(type(x[0])) for name, x in parts.items()})
    return pd.concat([in_pandas(table) for table in tables], ignore_index=True)


def records_of(table: Any) -> list[dict[Any, Any]]:
    """Return the rows of a table, in pandas or not, by the names of columns."""
    rows: list[dict[Any, Any]] = table.records() if isinstance(table, PlainTable) else table.to_dict("records")
    return rows


def in_pandas(table: Any) -> Any:
    """Return a table, or labels, as pandas has them; anything else as it is."""
    return table.frame if isinstance(table, PlainTable) else table.index if isinstance(table, Names) else table


def held_table(name: str, doc: str) -> Any:
    """Return a property of a result: the table ``name`` among its ``rows``, as pandas has it."""
    return property(lambda result: in_pandas(result.rows[name]), doc=doc)


def counts_from_one(numbers: NDArray[Any]) -> Whole:
    """Return whole numbers from 1, missing where there is 0."""
    return np.where(numbers > 0, numbers, np.nan).view(Whole)
