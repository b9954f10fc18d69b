"""Equal rows: of one table, which are merged; of two inputs, whose judgments would count twice."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Int
from jaxeval.data.columns import Rows, frame_of
from jaxeval.data.table_files import is_text
from jaxeval.errors import DataError
from jaxeval.lazy_names import pa, pc, pd
from jaxeval.plain_tables import in_arrow, in_numpy
from jaxeval.wording import counted, named

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


def reject_same(content: Content, name: str, other: str, advice: str = "") -> str:
    """Return a sentence on a file that holds the rows of ``other``; the error ends with ``advice``."""
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


def one_table(frames: Sequence[pd.DataFrame], names: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows of several tables, those of files called ``names``; and sentences on few rows that come again."""
    for frame, name in zip(frames, names, strict=True):
        if odd := sorted(map(str, set(frame.columns) ^ set(frames[0].columns))):
            raise DataError(f"{name} and {names[0]} do not have the same columns: only one of them has {named(odd)}")
    sentences = reject_same_tables(frames, names)
    return pd.concat(frames, ignore_index=True), sentences


def _codes(column: pd.Series, of_name: np.uint64) -> _Codes:
    """Return a number for each value of a column whose name has the number ``of_name``."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        values = _codes(column.cat.categories.to_series(), of_name)
        return np.append(values, of_name)[column.cat.codes.to_numpy()]  # -1 where a value is missing
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        seconds = column.astype("datetime64[ns, UTC]" if column.dt.tz else "datetime64[ns]").astype("int64") / 1e9
        return _of_numbers(seconds.where(column.notna()).to_numpy(np.float64), of_name)
    if pd.api.types.is_numeric_dtype(column.dtype):
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


def table_digest(table: pa.Table, text: str) -> str:
    """Return the SHA-256 of the columns of a table, their names and values, and of a ``text``.

    Chunks, the order of dictionaries, and units of times that Parquet does not have make no difference.
    """
    rows = with_codes(table).unify_dictionaries().combine_chunks()
    parts = [text.encode()]
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        parts += [name.encode(), *_parts(column.combine_chunks())]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))  # so that the end of each part counts
        digest.update(part)
    return digest.hexdigest()


def _parts(values: pa.Array) -> Iterator[bytes]:
    if pa.types.is_dictionary(values.type):
        yield from _text_parts(values)
        return
    kind = values.type
    if pa.types.is_timestamp(kind) and kind.unit == "s":
        kind = pa.timestamp("ms", kind.tz)
    kind = {pa.time32("s"): pa.time32("ms"), pa.date64(): pa.date32()}.get(kind, kind)  # as Parquet saves it
    values = values.cast(kind)
    if pa.types.is_primitive(kind):
        yield str(kind).encode()
        if pa.types.is_temporal(kind):
            values = values.view(pa.int32() if kind.bit_width == 32 else pa.int64())
        if values.null_count:
            yield values.is_null().to_numpy(zero_copy_only=False).tobytes()
            values = values.fill_null(pa.scalar(0).cast(values.type))
        yield values.to_numpy(zero_copy_only=False).tobytes()
    else:
        yield repr(values.to_pylist()).encode()


def _text_parts(values: pa.DictionaryArray) -> Iterator[bytes]:
    """Yield codes in order of first appearance, the last code for missing values, and the texts in that order."""
    n = len(values.dictionary)
    codes = values.indices.fill_null(n).to_numpy()
    first = np.full(n + 1, len(codes))
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    first[n] = len(codes)
    order = np.argsort(first, kind="stable")
    rank = np.empty(n + 1, np.int32)
    rank[order] = np.arange(n + 1)
    used = order[: np.searchsorted(first[order], len(codes))]
    rank[n] = len(used)
    text = values.dictionary.take(pa.array(used))
    yield rank[codes].tobytes()
    yield pc.binary_length(text).to_numpy().tobytes()
    yield "".join(text.to_pylist()).encode()


#: Rows that are collected before equal ones are merged.
_PIECE_ROWS = 2**21
#: If merging leaves more than this share of a piece, hardly any two rows are equal: merging more is not worth the time.
_HARDLY_ANY = 0.75
#: The table of first rows by key may be this many times as long as the rows: 64 bytes per row, but faster than hashing.
_PLACES_PER_ROW = 16
# Names that no column of a file has.
_TIMES, _FIRST = "\0times", "\0first"


class EqualRows:
    """Merges equal rows of the tables that are added.

    A column that another table lacks is missing there. Columns of strings become dictionaries. The columns ``aside``
    tell no rows apart: they are left out where rows are merged, or where a table lacks them.
    """

    def __init__(self, aside: Sequence[str] = ()) -> None:
        self.n_rows = 0
        self._aside = aside
        self._types: dict[str, tuple[pa.DataType, str]] = {}
        self._waiting: list[pa.Table] = []  # rows as they came, and their times and first places
        self._n_waiting = 0
        self._merged: list[pa.Table] = []
        self._worthwhile = True

    def add(self, table: pa.Table, source: str, times: Int | None = None) -> None:
        """Add the rows of ``table``, each standing for ``times`` (N,) equal ones; errors call it ``source``."""
        n, table = len(table), with_codes(self._with_text_aside(table))
        self._check_types(table, source)
        table = table.append_column(_TIMES, in_arrow(np.ones(n, np.int64) if times is None else times))
        self._waiting.append(table.append_column(_FIRST, in_arrow(np.arange(n) + self.n_rows)))
        self.n_rows += n
        self._n_waiting += n
        self._merge_if_many()

    def add_all(self, other: EqualRows, columns: Sequence[str], source: str) -> None:
        """Add the ``columns`` of all rows of ``other``; errors call it ``source``. What it has merged stays merged."""
        for tables, target in ((other._merged, self._merged), (other._waiting, self._waiting)):
            for table in tables:
                part = table.select([name for name in table.column_names if name in columns])
                self._check_types(part, source)
                first = in_arrow(in_numpy(table[_FIRST]) + self.n_rows)
                target.append(part.append_column(_TIMES, table[_TIMES]).append_column(_FIRST, first))
        self.n_rows += other.n_rows
        self._n_waiting += other._n_waiting
        self._worthwhile &= other._worthwhile
        self._merge_if_many()

    @property
    def columns(self) -> list[str]:
        """The columns that any of the tables has."""
        names = [name for table in (*self._merged, *self._waiting) for name in table.column_names]
        return [name for name in dict.fromkeys(names) if name not in (_TIMES, _FIRST)]

    def content(self, columns: Sequence[str]) -> Content:
        """Return what the ``columns`` of all rows hold; those of lists and objects, which take long, do not count."""
        parts = []
        for table in (*self._merged, *self._waiting):
            names = [
                field.name for field in table.schema if field.name in columns and not pa.types.is_nested(field.type)
            ]
            parts.append(content_of(frame_of(table.select(names)), in_numpy(table[_TIMES])))
        digest, n_rows = sum(part.digest for part in parts) % 2**64, sum(part.n_rows for part in parts)
        return Content(digest, n_rows, any(part.telling for part in parts))

    def result(self, always: bool = False) -> tuple[pa.Table, Rows]:
        """Return all rows, and what each stands for.

        They are merged if they are over two million and merging is worth the time, or if ``always``.
        """
        tables = [*self._merged, *self._waiting]
        merging = always or (self._merged and self._worthwhile)
        if merging or any(name not in table.column_names for table in tables for name in self._aside):
            tables = self._without_aside(tables)
        rows = _merge_rows(tables) if merging else _together(tables)
        times, first = (in_numpy(rows[name]) for name in (_TIMES, _FIRST))
        return rows.drop_columns([_TIMES, _FIRST]), Rows(times, first)

    def _with_text_aside(self, table: pa.Table) -> pa.Table:
        """Return the columns aside as text, as nobody asked for them in a type; without those of lists or records."""
        for name in set(self._aside) & set(table.column_names):
            try:
                text = table[name].cast(pa.string())
            except pa.ArrowException:
                table = table.drop_columns([name])
            else:
                table = table.set_column(table.column_names.index(name), name, text)
        return table

    def _without_aside(self, tables: list[pa.Table]) -> list[pa.Table]:
        return [table.drop_columns([name for name in self._aside if name in table.column_names]) for table in tables]

    def _merge_if_many(self) -> None:
        n_merged = sum(map(len, self._merged))
        # As many rows wait as are merged: so each is merged again a few times only.
        if not self._worthwhile or self._n_waiting < max(_PIECE_ROWS, n_merged):
            return
        rows = _merge_rows([*self._merged, *self._without_aside(self._waiting)])
        self._worthwhile = len(rows) - n_merged <= _HARDLY_ANY * self._n_waiting
        self._merged, self._waiting, self._n_waiting = [rows], [], 0

    def _check_types(self, table: pa.Table, source: str) -> None:
        """Check that a column has one type in all tables; types of numbers, and units of times, may differ."""
        for name, kind in zip(table.column_names, table.schema.types, strict=True):
            if pa.types.is_null(kind):
                continue
            known, before = self._types.setdefault(name, (kind, source))
            if not _go_together(known, kind):
                where = f"{before} and {_type_name(kind)} in {source}"
                if source == before:
                    where = f"the first rows of {source} and {_type_name(kind)} from row {self.n_rows:,} on"
                raise DataError(
                    f"column {name!r} holds {_type_name(known)} in {where}: write the whole column in one type"
                )


def _together(tables: list[pa.Table]) -> pa.Table:
    # Promotion unites types of numbers, units of times, and objects with different fields; no other types differ here.
    try:
        return pa.concat_tables(tables, promote_options="permissive").unify_dictionaries().combine_chunks()
    except pa.ArrowException as error:
        raise DataError(f"a column has types that cannot be united: {error}") from error


def _merge_rows(tables: list[pa.Table]) -> pa.Table:
    """Return the distinct rows of all tables, in the order in which they are first found."""
    rows = _together(tables)
    keys = [name for name in rows.column_names if name not in (_TIMES, _FIRST)]
    if any(pa.types.is_nested(rows.schema.field(name).type) for name in keys):
        return rows  # lists and the like cannot be compared
    times, first = (in_numpy(rows[name]) for name in (_TIMES, _FIRST))
    place, total = _distinct(*_keys_of(rows.select(keys)), times)
    merged = rows.select(keys).take(pa.array(place))
    return merged.append_column(_TIMES, in_arrow(total)).append_column(_FIRST, in_arrow(first[place]))


def _keys_of(table: pa.Table) -> tuple[Int, int]:
    """Number rows (N,), the same for equal rows and only for them; return a bound above all numbers, too."""
    key, size = np.zeros(len(table), np.int64), 1
    for name, column in zip(table.column_names, table.columns, strict=True):
        # One piece, as all are combined; missing values get the number after the last.
        values = column.combine_chunks()
        try:
            codes = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
        except pa.ArrowNotImplementedError as error:
            raise DataError(
                f"column {name!r} holds values of type {values.type}, which cannot be compared: make them text"
            ) from error
        n_values = len(codes.dictionary) + 1
        if size * n_values >= 2**62:
            key, distinct = pd.factorize(key)
            size = len(distinct)
        key = key * n_values + codes.indices.fill_null(n_values - 1).to_numpy()
        size *= n_values
    return key, size


def _distinct(key: Int, size: int, times: Int) -> tuple[NDArray[np.intp], Int]:
    """Return the first row of each ``key`` (N,), and the sum of ``times`` of all its rows; keys are below ``size``."""
    n_rows = len(key)
    if size > _PLACES_PER_ROW * n_rows + 2**20:  # too many keys for a table with a place for each
        key, distinct = pd.factorize(key)
        size = len(distinct)
    rows = np.arange(n_rows, dtype=np.int32 if n_rows < 2**31 else np.int64)
    first = np.empty(size, rows.dtype)
    first[key[::-1]] = rows[::-1]  # the first of equal rows is written last
    first_equal = first[key]
    place = np.flatnonzero(first_equal == rows)
    total = np.bincount(first_equal, times, n_rows)  # as doubles, exact up to 2**53
    return place, total[place].astype(np.int64)


def with_codes(table: pa.Table) -> pa.Table:
    """Return ``table`` with strings as dictionaries of one type, and other dictionaries as the values they hold."""
    text = pa.dictionary(pa.int32(), pa.string())
    for k, (name, kind) in enumerate(zip(table.column_names, table.schema.types, strict=True)):
        if kind == text:
            continue
        if is_text(kind):
            table = table.set_column(k, name, table[name].cast(pa.string()).dictionary_encode())
        elif pa.types.is_dictionary(kind):
            held = text if is_text(kind.value_type) else kind.value_type
            try:
                table = table.set_column(k, name, table[name].cast(held))
            except pa.ArrowException as error:
                raise DataError(f"column {name!r} holds categories of type {held}: make them text") from error
    return table


def _go_together(one: pa.DataType, other: pa.DataType) -> bool:
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other):
        return bool(one.tz == other.tz)
    if pa.types.is_nested(one) and pa.types.is_nested(other):
        return True  # an empty list has no type to compare
    return one == other or all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in (one, other))


def _type_name(kind: pa.DataType) -> str:
    return "text" if pa.types.is_dictionary(kind) else f"values of type {kind}"
