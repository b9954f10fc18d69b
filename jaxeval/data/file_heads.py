"""What a file holds, read from its beginning: its format, its columns, and its first rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from jaxeval.data.columns import ALL_COLUMNS, frame_of
from jaxeval.data.file_formats import Kind, archived, format_of
from jaxeval.data.file_lists import local_file
from jaxeval.data.harness_runs import document_of
from jaxeval.data.numbers import numeric_but_for_gaps
from jaxeval.data.remote_files import fetch_columns
from jaxeval.data.remote_names import FileName, is_remote
from jaxeval.data.saved_battles import is_saved
from jaxeval.data.table_files import head_names, naming, pieces, undamaged, with_types
from jaxeval.lazy_names import pd

#: Rows that are read to tell what a file is.
HEAD_ROWS = 1000
_NUMBER = r"^\s*[-+]?\d*\.?\d+([eE][-+]?\d+)?\s*$"
_PIECES = 2  # of a file: the first one may be short
#: A JSON file is looked at as one object, which may be of a known format, up to this number of bytes.
_MOST_BYTES = 2**27
_MOST_FIELDS = 4  # of an object that may hold the sides of a battle


class Head(NamedTuple):
    """The beginning of a file."""

    form: str  # of the file, in words
    names: Sequence[str] = ()  # columns of a table, or keys of a JSON object
    rows: pd.DataFrame | None = None  # the first ones of a table
    document: Mapping[str, Any] | None = None  # the JSON object
    saved: str | None = None  # the name of the format, if jaxeval saved the file
    doubled: Sequence[str] = ()  # names that several columns have


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
        return Head(str(shown), list(rows.columns), rows, doubled=doubled)


def _fields(rows: pd.DataFrame) -> dict[str, list[Any]]:
    """Values within the objects of a few texts each, under the names by which columns are read: models.a, models.b."""
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
