"""What a file holds, read from its beginning; and published formats: their marks, and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from jaxeval.data.columns import ALL_COLUMNS, Columns, folded, frame_of
from jaxeval.data.equal_rows import reject_same_tables
from jaxeval.data.file_formats import Kind, archived, format_of
from jaxeval.data.file_lists import local_file
from jaxeval.data.harness_runs import document_of
from jaxeval.data.numbers import numeric_but_for_gaps
from jaxeval.data.remote_files import fetch_columns
from jaxeval.data.remote_names import FileName, is_remote
from jaxeval.data.roles import is_plain
from jaxeval.data.saved_battles import is_saved
from jaxeval.data.small_files import small_table
from jaxeval.data.table_files import head_names, naming, pieces, undamaged, with_types
from jaxeval.lazy_names import pa, pc, pd

#: Rows that are read to tell what a file is.
HEAD_ROWS = 1000
_NUMBER = r"^\s*[-+]?\d*\.?\d+([eE][-+]?\d+)?\s*$"
_PIECES = 2  # of a file: the first one may be short
#: A JSON file is looked at as one object, which may be of a known format, up to this number of bytes.
_MOST_BYTES = 2**27
#: Of a table that is read as a whole: rows and bytes of Parquet, bytes of text, and of Excel, which is read slowly.
_MOST_ROWS, _MOST_VALUES, _MOST_TEXT, _MOST_EXCEL = 2**20, 2**28, 2**25, 2**17
_MOST_FIELDS = 4  # of an object that may hold the sides of a battle
#: What one judgment is of: of two sides, of one answer to an item, or of several items in an order.
Shape = Literal["pair", "answer", "ranking"]


class Head(NamedTuple):
    """The beginning of a file."""

    form: str  # of the file, in words
    names: Sequence[str] = ()  # columns of a table, or keys of a JSON object
    rows: pd.DataFrame | None = None  # the first ones of a table
    document: Mapping[str, Any] | None = None  # the JSON object
    saved: str | None = None  # the name of the format, if jaxeval saved the file
    doubled: Sequence[str] = ()  # names that several columns have
    path: Path | None = None  # of a table that has more rows than the first ones

    def all_rows(self) -> pd.DataFrame | None:
        """Read all rows of a table that goes on below the first ones; None of a large one, or without rows below."""
        if self.path is None or self.rows is None or not _is_small(self.path):
            return None
        own = head_names(self.path)
        names = [name for name in self.rows if is_plain(self.rows[name]) and name in own]
        frame = whole_table(self.path, Columns(tuple(names), ()), nested=False)
        is_number = pd.api.types.is_numeric_dtype
        words = [name for name in names if is_number(self.rows[name]) and not is_number(frame[name])]
        return frame.assign(**{name: numeric_but_for_gaps(frame[name]) for name in words})


def read_head(name: FileName) -> Head:
    """Return the beginning of a file; no more of the file is read than that.

    A Parquet file on another machine is fetched with all of its columns.

    Raises:
        DataError: it is no table, JSON or archive that can be read; the error begins with its name.
        FileNotFoundError: there is no such file.
    """
    path = local_file(name)
    with naming(name):
        members = archived(path) if path.is_file() else []
        if {"draws.npy", "about.npy"} <= {*members}:
            return Head("a NumPy archive", saved="jaxeval draws")
        document = document_of(path, _MOST_BYTES)
        if document is not None:
            what, keys = ("a log of Inspect", ["eval", "samples"]) if members else ("a JSON object", list(document))
            saved = document.get("format") if isinstance(document.get("format"), str) else None
            return Head(what, keys, saved=saved, document=document)
        form = format_of(path)
        names = head_names(path)
        if form.kind == Kind.PARQUET and is_remote(name):
            fetch_columns(path, names)
        if form.kind == Kind.PARQUET and is_saved(path):
            return Head("Parquet", names, saved="jaxeval battles")
        shown = Kind.TSV if (form.kind, form.delimiter) == (Kind.CSV, "\t") else form.kind
        rows = with_types(path, lambda widened: _first(path, form.kind, widened))
        again = rows.columns.duplicated()
        doubled = [str(name) for name in dict.fromkeys(rows.columns[again])]
        rows = rows.loc[:, ~again]
        rows = pd.DataFrame({name: numeric_but_for_gaps(rows[name]) for name in rows} | _fields(rows))
        below = path if len(rows) >= HEAD_ROWS and not doubled else None
        return Head(str(shown), list(rows.columns), rows, doubled=doubled, path=below)


def _is_small(path: Path) -> bool:
    """Return whether a table is read and counted in a second."""
    form = format_of(path)
    if form.kind == Kind.PARQUET:
        import pyarrow.parquet as pq

        about = pq.read_metadata(path)
        n_bytes = sum(about.row_group(k).total_byte_size for k in range(about.num_row_groups))
        return about.num_rows <= _MOST_ROWS and n_bytes <= _MOST_VALUES
    if form.kind == Kind.EXCEL:
        return path.stat().st_size <= _MOST_EXCEL
    return path.stat().st_size <= (_MOST_TEXT if form.compression is None else _MOST_TEXT // 8)


def _fields(rows: pd.DataFrame) -> dict[str, list[Any]]:
    """Return values within objects of a few texts each, under names by which columns are read: models.a, models.b."""
    columns: dict[str, list[Any]] = {}
    for name in rows:
        values = [value for value in rows[name] if value is not None]
        if values and all(isinstance(value, dict) and len(value) <= _MOST_FIELDS for value in values):
            for field in dict.fromkeys(field for value in values for field in value):
                column = [value.get(field) if isinstance(value, dict) else None for value in rows[name]]
                if all(isinstance(value, str | None) for value in column):
                    columns[f"{name}.{field}"] = column
    return columns


def _first(path: Path, kind: Kind, widened: dict[str, Any]) -> pd.DataFrame:
    if kind == Kind.PARQUET:
        import pyarrow.parquet as pq

        with undamaged(), pq.ParquetFile(path) as file:
            batch = next(file.iter_batches(HEAD_ROWS), None)
            return frame_of(file.schema_arrow.empty_table() if batch is None else pa.Table.from_batches([batch]))
    parts: list[pd.DataFrame] = []
    for piece in islice(pieces(path, ALL_COLUMNS, (), widened), _PIECES):
        n = HEAD_ROWS - sum(map(len, parts))
        part = frame_of(piece.slice(0, n))
        for place, column in enumerate(piece.columns) if kind == Kind.CSV else ():
            text = pa.types.is_string(column.type)
            if text and pc.all(pc.match_substring_regex(column.slice(0, n), _NUMBER)).as_py():
                # These numbers are text as a gap (NA) follows below them.
                part.isetitem(place, numeric_but_for_gaps(column.to_pandas())[:n])
        parts.append(part)
        if sum(map(len, parts)) >= HEAD_ROWS:
            break
    return parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)


@dataclass(frozen=True)
class Source:
    """Files of one format, and what their reader said; a `Format` reads them.

    ``name`` is the file's as its reader wrote it. ``document`` is the object of a JSON document, None for tables;
    ``names`` are its keys, or the columns of a table. ``baseline``, ``score`` and ``output_filter`` are the options of
    those names, None where they are not said. ``keep`` are further columns that are wanted.
    """

    name: FileName
    paths: tuple[Path, ...] = ()
    names: Sequence[str] = ()
    document: Any = None
    table: pd.DataFrame | None = None  # in place of files
    baseline: str | None = None
    score: str | None = None
    output_filter: str | None = None
    keep: Sequence[str] = ()

    @classmethod
    def of(cls, name: FileName, path: Path, **options: Any) -> Source:
        """Open a file, which is at ``path``."""
        document = document_of(path)
        return cls(name, (path,), head_names(path) if document is None else list(document), document, **options)

    def first_rows(self) -> pd.DataFrame | None:
        """Read the first rows of a table; None of a document."""
        return read_head(self.name).rows

    def columns(
        self, required: Sequence[str] = (), beside: Sequence[str] = (), *, nested: bool = False, plain: bool = False
    ) -> Any:
        """Read the ``required`` columns, and those of ``beside`` and ``keep`` that are there; by default all columns.

        With ``nested``, columns of objects and lists stay columns of Arrow. With ``plain``, a small file is a
        ``PlainTable``.

        Raises:
            DataError: a required column is not there, or a file cannot be read; the error begins with its name.
        """
        if self.table is not None:
            return self.table
        needed = Columns(tuple(required), (*beside, *self.keep)) if required else ALL_COLUMNS
        parts = []
        for path in self.paths:
            with naming(self.name if len(self.paths) == 1 else path):
                parts.append(whole_table(path, needed, nested, plain=plain and len(self.paths) == 1))
        reject_same_tables(parts, [path.name for path in self.paths])
        return parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)


def whole_table(path: Path, needed: Columns, nested: bool, text: Sequence[str] = (), plain: bool = False) -> Any:
    """Read the needed columns of a file, those of ``text`` as strings; the rest is as in `Source.columns`."""
    if plain and (small := small_table(path, needed)) is not None:
        return small
    parts = with_types(path, lambda wide: [frame_of(piece, nested) for piece in pieces(path, needed, text, wide)])
    return pd.concat(parts, ignore_index=True)


@dataclass(frozen=True)
class Format:
    """A format in which judgments are published: one entry of `jaxeval.formats`.

    Args:
        name: what it is called in messages, such as "Arena-Hard's judgments".
        marks: the columns by which it is recognised; of a JSON document its keys. "a|b" stands for one of two.
        read: makes a table of a `Source`: with the columns model_a, model_b and winner or target (shape "pair", as
            `Battles.from_pandas` reads them), or model, item and score (shape "answer"). Further columns stay.
        shape: "pair" for battles, "answer" for scores of models on items.
        about: how it is read, in words for the report.
        hint: what somebody who has such a file has to decide, in words; said beside options of ``asks``.
        asks: makes of the first rows of a table, or of a document, the options that the command needs, with blanks in
            capitals.
        one_of: makes of these the names of which an option of the command, by which they are given, chooses one.
        is_document: whether ``marks`` are keys of one JSON object, and not columns of a table; with shape "answer".
        fits: says of the first rows whether they are of the format, where the names of columns do not tell any.
        reference: makes of battles the model that all others met, for each; None if the rows say it themselves.
        unless: columns, in any spelling, of which one shows that a table with the marks is something else.

    Examples:
        >>> import jaxeval
        >>> form = jaxeval.formats()["AlpacaEval's annotations"]
        >>> form.marks, form.shape
        (('generator_1', 'generator_2', 'preference'), 'pair')
    """

    name: str
    marks: tuple[str, ...]
    read: Callable[[Source], pd.DataFrame]
    shape: Shape = "pair"
    about: str = ""
    hint: str = ""
    asks: Callable[[Any], tuple[str, ...]] = lambda rows: ()
    one_of: Callable[[Any], Mapping[str, Sequence[str]]] = lambda rows: {}
    is_document: bool = False
    fits: Callable[[pd.DataFrame], Any] | None = None
    reference: Callable[[pd.DataFrame], pd.Series] | None = None
    unless: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that battles are rows of a table."""
        if self.is_document and self.shape != "answer":
            raise ValueError(f"{self.name}: a document holds scores of answers, got shape={self.shape!r}")

    @property
    def read_as(self) -> str:
        """How files are read, in words for the report."""
        return f"read as {self.name}: {self.about}" if self.about else f"read as {self.name}"

    def seen(self, names: Sequence[str]) -> list[str]:
        """Return the marks among the names of columns, or among the keys; none unless all are there."""
        present = [next((x for x in mark.split("|") if x in names), None) for mark in self.marks]
        if None in present or not {*map(folded, names)}.isdisjoint(map(folded, self.unless)):
            return []
        return [x for x in present if x is not None]
