"""Small tables and labels in NumPy, which become those of pandas when somebody asks for what only pandas has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxeval.lazy_names import pd


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
        """The same labels under another name."""
        return type(self)(self.values, name)

    def map(self, function: Callable[[Any], Any]) -> Names:
        """A function of each label."""
        return Names(map(function, self.values))

    def isin(self, others: Any) -> NDArray[np.bool_]:
        """Which labels are among others."""
        known = set(others)
        return np.array([value in known for value in self.values], bool)

    def get_indexer(self, labels: Any) -> NDArray[np.intp]:
        """The position of each of some labels here; -1 of one that is not there."""
        return np.array([self._places.get(label, -1) for label in labels], np.intp)

    get_indexer_for = get_indexer

    def tolist(self) -> list[Any]:
        """The labels."""
        return list(self.values.tolist())

    def to_numpy(self) -> NDArray[Any]:
        """The labels as an array, of numbers where all are."""
        return _array(self.tolist())

    def get_loc(self, value: Any) -> int:
        """The position of a label."""
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
        """Some of the numbers, which stay numbers of rows where each is as far from the next one, as in pandas."""
        found = super().__getitem__(places)
        if not isinstance(found, Names):
            return found
        rows = RowNumbers(found.values, self.name)
        return rows if len(rows._steps - {0}) == len(rows._steps) < 2 else found


def counts_rows(names: Any) -> bool:
    """Whether names, in pandas or not, are numbers of rows."""
    return isinstance(names, RowNumbers) or (not isinstance(names, Names) and isinstance(names, pd.RangeIndex))


class Whole(np.ndarray):
    """Whole numbers as doubles, NaN where one is missing."""


class PlainTable:
    """Columns of one length, by name, as arrays of numbers or objects; ``attrs`` as of a DataFrame."""

    def __init__(self, columns: Mapping[str, Any], attrs: Mapping[str, Any] | None = None) -> None:
        self._columns = {name: _array(values) for name, values in columns.items()}
        self.attrs: dict[str, Any] = dict(attrs or {})

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[Any]], names: Sequence[str]) -> PlainTable:
        """The table of rows with a value for each name."""
        return cls({name: [row[k] for row in rows] for k, name in enumerate(names)})

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
            {name: pd.Series(x).astype("Int64") if isinstance(x, Whole) else x for name, x in self._columns.items()}
        ).infer_objects()
        frame.attrs = self.attrs
        return frame

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()))) if self._columns else 0

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __getitem__(self, name: Any) -> Any:
        """A column by its name, some columns by theirs, or the rows of a mask or of places."""
        if isinstance(name, list):
            return PlainTable({column: self._columns[column] for column in name}, self.attrs)
        if not isinstance(name, np.ndarray):
            return self._columns[name]
        return PlainTable({column: values[name] for column, values in self._columns.items()}, self.attrs)

    def __setitem__(self, name: str, values: Any) -> None:
        self._columns = self.assign(**{name: values})._columns
        self.__dict__.pop("frame", None)

    def head(self, n: int) -> PlainTable:
        """The first rows."""
        return PlainTable({name: values[:n] for name, values in self._columns.items()}, self.attrs)

    def assign(self, **columns: Any) -> PlainTable:
        """The table with further columns, or other ones; a single value stands in all rows."""
        full = {
            name: [x] * len(self) if isinstance(x, str) or not hasattr(x, "__len__") else x
            for name, x in columns.items()
        }
        return PlainTable({**self._columns, **full}, self.attrs)

    def rename(self, columns: Mapping[str, str]) -> PlainTable:
        """The table with other names of columns."""
        return PlainTable({columns.get(name, name): values for name, values in self._columns.items()}, self.attrs)

    def drop(self, columns: str | Sequence[str]) -> PlainTable:
        """The table without some columns, where it has them."""
        dropped = [columns] if isinstance(columns, str) else columns
        return PlainTable({name: x for name, x in self._columns.items() if name not in dropped}, self.attrs)

    def records(self) -> list[dict[str, Any]]:
        """The rows, each by the names of columns; missing whole numbers are None."""
        columns = [
            [None if np.isnan(x) else int(x) for x in values] if isinstance(values, Whole) else values.tolist()
            for values in self._columns.values()
        ]
        return [dict(zip(self._columns, row, strict=True)) for row in zip(*columns, strict=True)]


def _array(values: Any) -> NDArray[Any]:
    """Values as numbers where all are, and else as they are."""
    if isinstance(values, np.ndarray):
        return values
    kinds = {type(value) for value in values}
    is_number = kinds and kinds <= {int, float, np.float64, np.int64}
    return np.array(values) if is_number or kinds == {bool} else objects(list(values))


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """An array of values as they are, also of tuples."""
    made = np.empty(len(values), object)
    made[:] = values
    return made


def stacked(tables: Sequence[Any]) -> Any:
    """The rows of several tables below each other; those of pandas where one is."""
    if all(isinstance(table, PlainTable) and {*table} == {*tables[0]} for table in tables):
        parts = {name: [table[name] for table in tables] for name in tables[0]}
        return PlainTable({name: np.concatenate(x).view(type(x[0])) for name, x in parts.items()})
    return pd.concat([in_pandas(table) for table in tables], ignore_index=True)


def records_of(table: Any) -> list[dict[Any, Any]]:
    """The rows of a table, in pandas or not, by the names of columns."""
    rows: list[dict[Any, Any]] = table.records() if isinstance(table, PlainTable) else table.to_dict("records")
    return rows


def in_pandas(table: Any) -> Any:
    """A table, or labels, as pandas has them; anything else as it is."""
    return table.frame if isinstance(table, PlainTable) else table.index if isinstance(table, Names) else table


def counts_from_one(numbers: NDArray[Any]) -> Whole:
    """Whole numbers from 1, missing where there is 0."""
    return np.where(numbers > 0, numbers, np.nan).view(Whole)
