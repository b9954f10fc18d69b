"""Columns of an input table as arrays, or an error that says what was found, where, and what to do."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Int
from jaxeval.errors import ColumnError, DataError
from jaxeval.lazy_names import is_frame, pa, pc, pd
from jaxeval.plain_tables import Names
from jaxeval.wording import counted, did_you_mean, listed, named

#: Columns of counts, in other words, where those of wins of both sides are there.
_ONE_OF = {
    "wins_a": ("winsa", "wina", "awins"), "ties": ("ties", "tie", "draws", "draw", "tied", "drawn"),
    "wins_b": ("winsb", "winb", "bwins"),
}  # fmt: skip
_MOST_FIELDS = 12
#: What values are that cannot be told apart.
NO_GROUPS = "lists or objects, which make no groups"


class Rows(NamedTuple):
    """The rows of the input that each row (N,) of a table stands for, where equal ones were merged.

    Errors count the rows of the input. Rows of the table are in the order of their first places there.
    """

    times: Int  # (N,) number of rows of the input
    first: Int | None  # (N,) position of the first of them, from 0; None where that is not known
    files: tuple[tuple[str, int], ...] = ()  # names of several files, and the number of the first row of each

    def of(self, index: NDArray[np.intp]) -> Rows:
        """Return the rows of the input for some rows of the table."""
        return self._replace(times=self.times[index], first=None if self.first is None else self.first[index])

    def place(self, row: int) -> str:
        """Return where a row of the table is first found, in words."""
        if self.first is None:
            return ""
        number = int(self.first[row])
        file = next(((name, start) for name, start in reversed(self.files) if start <= number), None)
        return f"row {number}" if file is None else f"row {number - file[1]} of {file[0]}"


def count_rows(which: Bool, rows: Rows | None) -> int:
    """Return how many rows of the input ``which`` (N,) are."""
    return int(which.sum() if rows is None else rows.times[which].sum())


def first_place(which: Bool, rows: Rows | None = None, shown: str = "") -> str:
    """Return where the first of ``which`` (N,) is in the input, and what is ``shown`` of it, in brackets.

    This is " (first in row 3: -1; rows count from 0)", or empty where the place is not known.
    """
    row = int(which.argmax())
    place = f"row {row}" if rows is None else rows.place(row)
    return f" (first in {place}{shown}; rows count from 0)" if place else ""


def as_frame(table: Any) -> pd.DataFrame:
    """Return ``table`` if it is a DataFrame; else that of `Judgments`, or what Arrow's interface or pandas makes of it.

    These are tables with the Arrow interface, lists of rows as mappings, and mappings of columns.
    """
    if isinstance(table, pd.DataFrame):
        return table
    if hasattr(table, "roles") and is_frame(table.table):
        return table.table
    if isinstance(table, Mapping) or (isinstance(table, list) and table and isinstance(table[0], Mapping)):
        try:
            return pd.DataFrame(table)
        except (TypeError, ValueError) as error:
            raise DataError(f"the {type(table).__name__} is no table of rows or columns: {error}") from error
    if hasattr(table, "__arrow_c_stream__"):
        with contextlib.suppress(pa.ArrowInvalid):  # one column
            return frame_of(pa.table(table))
    advice = "; read the file first, by read_battles, read_scores or such" if isinstance(table, str | Path) else ""
    advice = "; collect() it first" if hasattr(table, "collect") else advice
    raise TypeError(
        "expected a pandas DataFrame, a table with the Arrow interface, a list of rows as dicts or a dict of columns, "
        f"got {type(table).__name__}{advice}"
    )


def rows_of(table: Any, empty: str = "the table has no rows") -> pd.DataFrame:
    """Return `as_frame` with rows that count from 0; raise an error in the words ``empty`` where there are none."""
    frame = as_frame(table).reset_index(drop=True)
    if len(frame) == 0:
        raise DataError(empty)
    return frame


def frame_of(table: pa.Table, nested: bool = False) -> pd.DataFrame:
    """Return the columns of ``table``, with those that pandas saved as an index; large whole numbers stay exact.

    With ``nested``, columns of objects and lists stay columns of Arrow, which takes a thousandth of the time.
    """
    table = table.replace_schema_metadata(None)
    for k, column in enumerate(table.columns):
        # Categories of polars have unsigned codes, which Arrow cannot turn into pandas.
        if pa.types.is_dictionary(column.type) and pa.types.is_unsigned_integer(column.type.index_type):
            signed = pa.dictionary(pa.int64(), column.type.value_type)
            table = table.set_column(k, table.column_names[k], column.cast(signed))
        elif pa.types.is_nested(column.type) and "string_view" in str(column.type):  # lists of text of polars
            table = table.set_column(k, table.column_names[k], column.cast(_without_views(column.type)))
    kept = (lambda kind: pd.ArrowDtype(kind) if pa.types.is_nested(kind) else None) if nested else None
    frame = table.to_pandas(types_mapper=kept)
    for k, column in enumerate(table.columns):
        if column.null_count and pa.types.is_int64(column.type) and pc.max(pc.abs(column)).as_py() >= 2**53:
            frame.isetitem(k, column.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get))
    return frame


def _without_views(kind: pa.DataType) -> pa.DataType:
    """Return a type of lists of strings, or of lists of such lists, as one that Arrow can turn into pandas."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_without_views(kind.value_type))
    return pa.string() if pa.types.is_string_view(kind) else kind


def plain(value: Any) -> Any:
    """Return NumPy scalars, also in a tuple, as those of Python, which print without types; others as they are."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value.item() if isinstance(value, np.generic) else value


def renames(wanted: Iterable[str], columns: Sequence[Any]) -> dict[Any, str]:
    """Return wanted names by ``columns`` that are the same but for case, blanks, hyphens and underscores.

    A wanted name is left out if a column has exactly this name, or if several columns resemble it.
    """
    by_key: dict[str, list[Any]] = {}
    for column in columns:
        by_key.setdefault(folded(column), []).append(column)
    wanted = list(wanted)
    near = {name: by_key.get(folded(name), []) for name in wanted if name not in columns}
    if _ONE_OF.keys() <= {*wanted}:
        of_counts = {
            name: next((by_key[word] for word in words if word in by_key), []) for name, words in _ONE_OF.items()
        }
        if of_counts["wins_a"] and of_counts["wins_b"]:
            near |= {name: similar for name, similar in of_counts.items() if name not in columns}
    return {similar[0]: name for name, similar in near.items() if len(similar) == 1}


@lru_cache(4096, typed=True)
def folded(name: Any) -> str:
    """Return a name without case, blanks, hyphens and underscores."""
    return re.sub(r"[\s_-]+", "", str(name).casefold())


def told_renames(renamed: Mapping[Any, str]) -> tuple[str, ...]:
    """Return sentences on what `renames` found."""
    return tuple(f"column {column!r}: read as {name!r}" for column, name in renamed.items())


def under_names(table: Any, wanted: Iterable[str]) -> tuple[Any, tuple[str, ...]]:
    """Return a table whose columns have the ``wanted`` names where theirs resemble them, and sentences on these."""
    renamed = renames(wanted, list(table.columns))
    return table.rename(columns=renamed), told_renames(renamed)


def without_blanks(frame: pd.DataFrame, names: Iterable[str]) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Take off the blanks around values, in columns of text all of whose values begin or end with one.

    So are the second and later columns of files whose values are separated by ", ".

    Returns:
        The table, and a sentence for each column that was changed.
    """
    stripped = {}
    for name in dict.fromkeys(names):
        there = frame[name].dropna()
        if _padded(there.iloc[:1]) and _padded(there):  # mostly the first value tells
            stripped[name] = frame[name].astype(object).map(str.strip, na_action="ignore")
    notes = tuple(f"column {name!r}: all values begin or end with a blank, which was taken off" for name in stripped)
    return (frame.assign(**stripped) if stripped else frame), notes


def _padded(values: pd.Series) -> bool:
    """Return whether there are values, and all of them are text that begins or ends with a blank."""
    return len(values) > 0 and all(isinstance(value, str) and value != value.strip() for value in values)


def require_column(frame: Any, *columns: str, fields: Sequence[str] = ()) -> None:
    """Raise an error unless a table, or a list of names, has exactly one column of each name.

    A column may also be one of the ``fields`` within others, by its path.
    """
    names = list(getattr(frame, "columns", frame))
    for column in columns:
        times = names.count(column)
        if times > 1:
            raise DataError(f"the table has {times} columns named {column!r}; rename or drop all but one")
        if times == 0 and column not in fields:
            advice = f" (name your own: {column}=, on the command line --{column.replace('_', '-')})"
            raise ColumnError(
                f"no column {column!r} in the table; its columns are {listed(names)}"
                f"{advice if column in ('model_a', 'model_b') else ''}{told_fields(column, fields)}"
                f"{did_you_mean(column, [*names, *fields])}"
            )


def told_fields(name: str, fields: Sequence[str]) -> str:
    """Give which ``fields`` there are in the column that a path begins with: "; within 'x' there are 'x.a', 'x.b'"."""
    parts = name.split(".")
    for n in range(len(parts) - 1, 0, -1):
        within = [field for field in fields if field.startswith(f"{'.'.join(parts[:n])}.")]
        if within:
            direct = [one for one in within if not any(one.startswith(f"{other}.") for other in within)]
            return f"; within {'.'.join(parts[:n])!r} there are {named(list(map(repr, direct)), _MOST_FIELDS)}"
    return ""


class Columns(NamedTuple):
    """Columns to read of a table in a file: the ``named``, which it must have, and those ``beside`` that it has."""

    named: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    #: Which of those beside count in a table with some names; or an error, where the names lack something.
    pick: Callable[[Sequence[str]], Sequence[str]] | None = None
    every: bool = False  # all columns are read, whatever is named

    def among(self, names: Sequence[str], fields: Sequence[str] = ()) -> list[str]:
        """Return those of the columns ``names``, and of the ``fields`` within them, that may be needed."""
        if self.every:
            return list(names)
        within = [name for name in dict.fromkeys(self.named) if name not in names and name in fields]
        return [name for name in names if name in self.named or name in self.beside] + within

    def choose(self, names: Sequence[str], fields: Sequence[str] = ()) -> list[str]:
        """Return the columns to read of a table with these ``names``, and ``fields``; an error if one is missing."""
        if self.every:
            return list(names)
        there = [name for name in self.beside if name in names]
        require_column(names, *there, *self.named, fields=fields)
        return list(dict.fromkeys([*self.named, *(there if self.pick is None else self.pick(names))]))

    def spelled(self, names: Sequence[str], fields: Sequence[str] = ()) -> dict[Any, str]:
        """Return the needed names, by the table's names of the same columns in another spelling."""
        within = renames([name for name in self.named if name not in names], fields)
        return renames([*self.named, *self.beside], names) | within

    def renamed(self, spelled: Mapping[Any, str]) -> Columns:
        """Return the same columns under the table's own names, which `spelled` found."""
        if not spelled:
            return self
        of_table, pick = {name: column for column, name in spelled.items()}, self.pick
        named, beside = (tuple(of_table.get(c, c) for c in columns) for columns in (self.named, self.beside))

        def renamed(names: Sequence[str]) -> list[str]:
            assert pick is not None
            return [of_table.get(c, c) for c in pick([spelled.get(name, name) for name in names])]

        return self._replace(named=named, beside=beside, pick=None if pick is None else renamed)


#: Every column of a table is read.
ALL_COLUMNS = Columns(every=True)


def reject_again(again: Bool, what: str, advice: str) -> None:
    """Raise an error that counts the rows which are there ``again`` (N,), if any: "2 rows repeat ..."."""
    if again.any():
        n = counted(again.sum(), "row repeats", "rows repeat")
        raise DataError(f"{n} {what}{first_place(again)}{advice}")


def reject_missing(
    missing: Bool, column: str, rows: Rows | None = None, advice: str = "fill in values or drop those rows first"
) -> None:
    """Raise an error that counts the ``missing`` rows (N,) of a column, if there are any."""
    if missing.any():
        raise DataError(
            f"column {column!r} has {counted(count_rows(missing, rows), 'missing value')}{first_place(missing, rows)}: "
            f"{advice}"
        )


def reject_repeats(
    again: Bool, row: Any, frame: pd.DataFrame, columns: Mapping[str, str], noun: tuple[str, str], advice: str
) -> None:
    """Raise an error that counts the rows which are there ``again`` (N,), if any, the first with the label ``row``.

    ``columns`` are those of the keys, by what they are called; ``noun`` is what repeats, for one and for many.
    """
    if again.any():
        n = int(again.sum())
        of = ", ".join(f"{name} {plain(frame[column][row])!r}" for name, column in columns.items())
        raise DataError(
            f"{counted(n, f'{noun[0]} repeats', f'{noun[1]} repeat')} another one of the same {', '.join(columns)} "
            f"(first in row {row}: {of}; rows count from 0): {f'{advice}, or ' if advice else ''}drop the duplicates"
        )


def seen_before(numbers: NDArray[Any]) -> Bool:
    """Return (N,) which of the numbers (N,) were there before."""
    again = np.ones(len(numbers), bool)
    again[np.unique(numbers, return_index=True)[1]] = False
    return again


def distinct_values(column: Any) -> list[Any]:
    """Return the different values of a column, in pandas or not, that are not missing.

    Raises:
        TypeError: it holds lists or objects.
    """
    if isinstance(column, np.ndarray):
        return list(dict.fromkeys(value for value in column.tolist() if value is not None and value == value))
    return list(column.dropna().unique())


def texts_of(column: pd.Series) -> NDArray[np.object_]:
    """Return (N,) values as text, in which those of two tables are compared: 7, 7.0 and "7" are the same."""
    if pd.api.types.is_float_dtype(column.dtype) and (column == column.round()).all():
        column = column.astype("int64")
    return column.astype(str).to_numpy(object)


def group_numbers(*codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return (N,) numbers of groups of rows, which have all ``codes`` (N,) in common, in the order of first rows."""
    key = codes[0]
    for code in codes[1:]:
        key = np.unique(key, return_inverse=True)[1] * (code.max(initial=-1) + 2) + code + 1
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number]


def is_missing(column: Any) -> Bool:
    """Return (N,) whether a value of a column, in pandas or not, is missing."""
    if isinstance(column, np.ndarray):
        return np.array([value is None or value != value for value in column.tolist()], bool)
    return np.asarray(column.isna())


def factorized(column: Any) -> tuple[NDArray[np.intp], Any]:
    """Return (N,) codes of a column, in pandas or not, -1 where it is missing, and its values."""
    try:
        if not isinstance(column, np.ndarray):
            return pd.factorize(column)
        if (coded := getattr(column, "coded", None)) is not None:
            return coded
        places: dict[Any, int] = {}
        codes = [-1 if x is None or x != x else places.setdefault(x, len(places)) for x in column.tolist()]
        return np.array(codes, np.intp), list(places)
    except (NotImplementedError, TypeError) as error:
        raise TypeError(NO_GROUPS) from error


def factorize_sorted(
    column: Any, name: str, rows: Rows | None = None, may_miss: bool = False
) -> tuple[NDArray[np.intp], pd.Index]:
    """Return (N,) codes of a column, and its sorted values; missing values have the code -1 if they are allowed."""
    try:
        codes, values = factorized(column) if isinstance(column, np.ndarray) else pd.factorize(column)
    except (NotImplementedError, TypeError) as error:
        raise DataError(f"column {name!r} holds values that cannot be compared: {NO_GROUPS}") from error
    if not may_miss and codes.min(initial=0) < 0:
        reject_missing(codes < 0, name, rows)
    if isinstance(column, np.ndarray) and len({*map(type, values)}) < 2:
        names = Names(sorted(values))
        return names.get_indexer([*values, None])[codes], names
    values = pd.Index(values)
    if isinstance(values, pd.CategoricalIndex):
        values = pd.Index(values.astype(values.categories.dtype))
    try:
        order = values.argsort()
    except TypeError as error:
        times = None if rows is None else rows.times
        there = codes >= 0
        times = times if times is None else times[there]
        counts = pd.Series(np.bincount(codes[there], times, minlength=len(values)).astype(int))
        kinds = counts.groupby([type(v).__name__ for v in values]).sum()
        types = ", ".join(f"{kind} ({count:,})" for kind, count in kinds.items())
        raise DataError(
            f"column {name!r} mixes values of types {types}; make all of them text (in pandas by .astype(str))"
        ) from error
    rank = np.full(len(values) + 1, -1, np.intp)  # the last one is that of the code -1
    rank[order] = np.arange(len(values))
    return rank[codes], values[order]


def codes_of(frame: Any, column: str | None, default: Any) -> tuple[NDArray[np.intp], pd.Index]:
    """Return (N,) codes and sorted values of a column; without one those of ``default``, one value or one per row."""
    if column is not None:
        return factorize_sorted(frame[column], column)
    return np.arange(len(frame)) if len(default) == len(frame) else np.zeros(len(frame), np.intp), default


def encode_models(
    frame: Any, model_a: str, model_b: str, rows: Rows | None = None
) -> tuple[pd.Index, NDArray[np.int32], NDArray[np.int32]]:
    """Return the sorted models of both columns, and the (N,) codes of each column."""
    codes_a, values_a = factorize_sorted(frame[model_a], model_a, rows)
    codes_b, values_b = factorize_sorted(frame[model_b], model_b, rows)
    for column, codes, values in ((model_a, codes_a, values_a), (model_b, codes_b, values_b)):
        blank = np.array([isinstance(name, str) and not name.strip() for name in values], bool)
        if blank.any():
            reject_missing(blank[codes], column, rows)
    if isinstance(values_a, Names) and isinstance(values_b, Names) and len({*map(type, (*values_a, *values_b))}) == 1:
        models: Any = Names(sorted({*values_a, *values_b}))
    else:
        values_a, values_b = (x.index if isinstance(x, Names) else x for x in (values_a, values_b))
        if values_a.dtype != values_b.dtype:
            _check_names(values_a, values_b, model_a, model_b)
        try:
            models = values_a.union(values_b).sort_values()
        except TypeError as error:
            kinds = " and ".join(type(values[0]).__name__ for values in (values_a, values_b))
            raise DataError(
                f"columns {model_a!r} and {model_b!r} name models by values of different types, {kinds}; make both "
                "text (in pandas by .astype(str))"
            ) from error
    models.name = "model"
    first = models.get_indexer(values_a).astype(np.int32)[codes_a]
    second = models.get_indexer(values_b).astype(np.int32)[codes_b]
    return models, first, second


def renumbered(n: int, *numbers: NDArray[Any]) -> tuple[Bool, list[NDArray[np.int32]]]:
    """Return (n,) which of ``n`` things occur in ``numbers``, and ``numbers`` with only those things counted."""
    there = np.zeros(n, bool)
    for of_rows in numbers:
        there[of_rows] = True
    rank = (np.cumsum(there) - 1).astype(np.int32)
    return there, [rank[of_rows] for of_rows in numbers]


def _check_names(values_a: pd.Index, values_b: pd.Index, model_a: str, model_b: str) -> None:
    """Raise an error if a common type for both columns would turn a name into that of another model."""
    for whole, other in ((values_a, values_b), (values_b, values_a)):
        if not pd.api.types.is_integer_dtype(whole.dtype):
            continue
        beyond = (whole >= 2**53) | (whole <= -(2**53))
        inexact = pd.api.types.is_float_dtype(other.dtype)
        if pd.api.types.is_bool_dtype(other.dtype) or (inexact and beyond.any()):
            names = f", beyond 2**53 ({whole[beyond][0]})" if inexact else ""
            raise DataError(
                f"columns {model_a!r} and {model_b!r} name models by values of different types, whole numbers{names} "
                f"and {other.dtype.name}, which do not match: make both text (in pandas by .astype(str))"
            )
