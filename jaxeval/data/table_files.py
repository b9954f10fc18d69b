"""Tables in Parquet, CSV and JSON-lines files, read piece by piece, and only the columns that are needed."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from jaxeval.data.columns import frame_of
from jaxeval.data.json_limits import MOST_BYTES
from jaxeval.data.json_lines import json_tables
from jaxeval.data.needed_columns import ALL_COLUMNS, NeededColumns
from jaxeval.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import csv

    from jaxeval.execution.progress import Advance


T = TypeVar("T")

#: Metadata of a Parquet file that `Battles.save` wrote.
STATE_KEY = b"jaxeval"
_PARQUET = (".parquet", ".pq")
_TSV = (".tsv", ".tsv.gz")
_CSV = (".csv", ".csv.gz", *_TSV)
_JSON_LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
_ENDINGS = (*_PARQUET, *_CSV, *_JSON_LINES)

_PARQUET_ROWS = 2**19  # of a piece
#: From here on doubles do not tell all whole numbers apart.
_INEXACT = 2.0**53
_WRITE_AGAIN = "; it may be cut short or damaged: copy or write it again"


class WiderType(Exception):  # noqa: N818
    """A CSV column does not hold what its first megabyte suggested: the file must be read again, with other types."""


def files_of(path: str | Path | Sequence[str | Path]) -> list[Path]:
    """The files that a path, a folder, a glob, or a list of those stands for, each once.

    Those of a folder (and of the folders in it) and of a glob, which may match folders, come by name; names that begin
    with "_" or "." are hidden, unless the glob spells that out.

    Raises:
        DataError: a folder holds no table, or files that are none.
        FileNotFoundError: there is no such file.
    """
    files = [file for one in ([path] if isinstance(path, str | Path) else path) for file in _files_of_one(one)]
    if not files:
        raise FileNotFoundError("the list of files is empty")
    once: dict[Path, Path] = {}
    for file in files:
        once.setdefault(file.resolve(), file)
    return list(once.values())


def _files_of_one(path: str | Path) -> list[Path]:
    found = Path(path)
    if found.is_dir():
        files = sorted(file for file in found.rglob("*") if file.is_file() and not _hidden(file.relative_to(found)))
        others = [file for file in files if not file.name.lower().endswith(_ENDINGS)]
        if others or not files:
            what = f"holds {others[0].name}, which is no table" if others else "holds no file"
            name = found.name or found  # "." has no name
            raise DataError(
                f"{name}: the directory {what}; known endings are {', '.join(_ENDINGS)} (a pattern such as "
                f"{name}/*.parquet chooses files)"
            )
        return files
    if not found.exists() and any(sign in str(path) for sign in "*?["):
        matches = sorted(Path(match) for match in glob(str(path), recursive=True))
        matches = [match for match in matches if not _hidden(match, found.parts)]
        if not matches:
            raise FileNotFoundError(f"no file matches {path}")
        return [file for match in matches for file in _files_of_one(match)]
    check_regular(found)
    return [found]


def check_regular(path: Path) -> None:
    """See to it that ``path`` is a file that can be read again and again.

    Raises:
        FileNotFoundError: there is nothing.
        DataError: it is a pipe, a device or a socket.
    """
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "a pipe" if path.is_fifo() else "a device or a socket"
        raise DataError(f"{path.name} is {kind}, and no file: write its content to a file, which is read twice")


def _hidden(path: Path, patterns: Sequence[str] = ()) -> bool:
    """Whether a name in the path begins with "_" or ".", which none of the ``patterns`` of names spells out."""
    marks = ("_", ".")
    spelled = [pattern for pattern in patterns if pattern.startswith(marks)]
    return any(
        part.startswith(marks) and not any(fnmatchcase(part, pattern) for pattern in spelled) for part in path.parts
    )


def read_whole_table(path: Path, text: Sequence[str]) -> pa.Table:
    """All columns of a file; ``text`` columns are read as strings.

    Raises:
        DataError: the file cannot be read as a table.
        FileNotFoundError: there is no such file.
    """
    import pyarrow as pa

    def whole(widened: dict[str, Any]) -> pa.Table:
        return pa.concat_tables(pieces(path, ALL_COLUMNS, text, widened), promote_options="permissive")

    return with_types(path, whole)


def read_as(make: Callable[..., T], path: str | Path, text: Sequence[str], columns: Mapping[str, Any]) -> T:
    """``make(table, **columns)`` of the whole table in a file, whose name errors begin with; see `read_whole_table`."""
    path = Path(path)
    with naming(path):
        return make(frame_of(read_whole_table(path, text)), **columns)


def column_names(path: Path) -> list[str]:
    """Names of the columns of a file, as `read_whole_table` reads it.

    Raises:
        DataError: the file cannot be read as a table; the error names it.
        FileNotFoundError: there is no such file.
    """
    with naming(path):
        if path.name.lower().endswith(_PARQUET) and path.exists():
            import pyarrow.parquet as pq

            with undamaged():
                return list(pq.read_schema(path).names)
        return list(read_whole_table(path, ()).column_names)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Errors about the content of a file begin with its name."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{path.name}: {error}") from error


def with_types(path: Path, read: Callable[[dict[str, Any]], T]) -> T:
    """``read`` of the types of columns of the CSV file ``path`` that differ from what its beginning suggests.

    They are found by reading again, from the beginning, each time one turns out to be different.
    """
    widened: dict[str, Any] = {}
    while True:
        try:
            with _told(path):
                return read(widened)
        except WiderType:
            continue


def pieces(
    path: Path, needed: NeededColumns, text: Sequence[str], widened: dict[str, Any], advance: Advance | None = None
) -> Iterator[pa.Table]:
    """The needed columns of a file, in pieces of bounded memory, at least one; those of JSON lines may lack some.

    Args:
        needed: the columns to read.
        text: columns that are read as strings.
        widened: see `with_types`.
        advance: told the bytes read.
    """
    check_regular(path)
    name = path.name.lower()
    if not name.endswith(_ENDINGS):
        raise DataError(f"unknown file type; known endings are {', '.join(_ENDINGS)}")
    advance = advance or (lambda n: None)
    if name.endswith(_PARQUET):
        with undamaged():
            yield from _parquet(path, needed, advance)
        return
    if path.stat().st_size == 0:
        raise DataError("the file is empty")
    with _opened(path)[0] as file:
        if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise DataError("cannot be read: it is UTF-16 text; save the file as UTF-8")
    read = _csv(path, needed, text, widened) if name.endswith(_CSV) else _json_lines(path, needed, text)
    done = 0
    for table, position in read:
        yield table
        advance(position - done)
        done = position


def head_names(path: Path) -> list[str]:
    """Names of the columns that the beginning of a file has; none of a file that `pieces` cannot read either."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    name = path.name.lower()
    with suppress(pa.ArrowException, OSError, ValueError, AttributeError):
        if name.endswith(_PARQUET):
            return list(pq.read_schema(path).names)
        with _opened(path)[0] as file:
            if name.endswith(_CSV):
                return list(csv.open_csv(file, parse_options=_delimited(path)).schema.names)
            if name.endswith(_JSON_LINES):
                return list(json.loads(file.read(MOST_BYTES).lstrip().split(b"\n", 1)[0]).keys())
    return []


@contextmanager
def undamaged(found: str = "cannot be read", advice: str = _WRITE_AGAIN) -> Iterator[None]:
    """Whatever Arrow makes of damaged Parquet, as an error that says so."""
    import pyarrow as pa

    try:
        yield
    except (DataError, FileNotFoundError):
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError, OverflowError, MemoryError) as error:
        raise DataError(f"{found}: {error}{advice}") from error


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """What Arrow says about a file, as errors that say what to do."""
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        text = str(error)
        quotes = ", and end every quoted value" if "\n" in text else ""
        hint = (
            "; save the file as UTF-8"
            if "UTF8" in text
            else f"; write every line with the columns of the first{quotes}"
            if re.search(r"Expected \d+ columns", text)
            else "; a quoted value does not end, or is longer than a megabyte"
            if "straddling" in text
            else "; it may be cut short: copy or write it again"
            if path.name.lower().endswith(".gz")
            else ""
        )
        raise DataError(f"cannot be read: {text}{hint}") from error


def _parquet(path: Path, needed: NeededColumns, advance: Advance) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.read_schema(path)
    if STATE_KEY in (schema.metadata or {}):
        raise DataError(
            "it holds battles that jaxeval saved, not votes: load them by Battles.load, or name them as --state"
        )
    columns = needed.choose(schema.names)
    # Dictionary pages arrive as codes: strings are then never built row by row.
    strings = [c for c in columns if is_text(schema.field(c).type)]
    size = path.stat().st_size
    with pq.ParquetFile(path, read_dictionary=strings, page_checksum_verification=True) as file:
        if file.metadata.num_rows == 0:
            yield file.schema_arrow.empty_table().select(columns).replace_schema_metadata(None)
            return
        done = 0
        for batch in file.iter_batches(_PARQUET_ROWS, columns=columns):
            # Without what pandas notes about its index: every column is one like the others.
            piece = pa.Table.from_batches([batch]).select(columns).replace_schema_metadata(None)
            piece.validate(full=True)
            yield piece
            before, done = done, done + batch.num_rows
            total = file.metadata.num_rows
            advance(done * size // total - before * size // total)


def _delimited(path: Path) -> csv.ParseOptions:
    """How values are told apart."""
    from pyarrow import csv

    return csv.ParseOptions(delimiter="\t" if path.name.lower().endswith(_TSV) else ",", newlines_in_values=True)


def _csv(
    path: Path, needed: NeededColumns, text: Sequence[str], widened: dict[str, Any]
) -> Iterator[tuple[pa.Table, int]]:
    import pyarrow as pa
    from pyarrow import csv

    parse = _delimited(path)
    with _opened(path)[0] as file, csv.open_csv(file, parse_options=parse) as reader:
        names = reader.schema.names
    columns = needed.choose(names)
    strings = {c: pa.dictionary(pa.int32(), pa.string()) for c in text if c in names}
    # Only an empty field is missing: "NA" or "null" may be somebody's label.
    convert = csv.ConvertOptions(
        include_columns=columns, column_types=strings | widened, null_values=[""], strings_can_be_null=True
    )
    stream, raw = _opened(path)
    schema = None
    try:
        with stream, csv.open_csv(stream, parse_options=parse, convert_options=convert) as reader:
            schema, n_batches = reader.schema, 0
            for n_batches, batch in enumerate(reader, start=1):  # noqa: B007
                piece = pa.Table.from_batches([batch])
                if inexact := _inexact(piece):
                    widened.update(dict.fromkeys(inexact, pa.string()))
                    raise WiderType
                yield piece, raw.tell()
            if n_batches == 0:
                yield schema.empty_table(), raw.tell()
    except pa.ArrowInvalid as error:
        column = re.search(r"In CSV column #(\d+)", str(error))
        name = names[int(column[1])] if column else None
        if name is None or name in strings or "UTF8" in str(error):
            raise
        found = widened.get(name, None if schema is None else schema.field(name).type)
        ladder = _ladder()
        if found is None or found not in ladder[:-1]:
            raise
        widened[name] = ladder[ladder.index(found) + 1]
        raise WiderType from error


def _ladder() -> list[Any]:
    """Types of a CSV column in the order in which Arrow tries them."""
    import pyarrow as pa

    times = pa.date32(), pa.time32("s"), pa.timestamp("s"), pa.timestamp("ns")
    return [pa.null(), pa.int64(), pa.bool_(), *times, pa.float64(), pa.string()]


def _inexact(table: pa.Table) -> list[str]:
    """Columns of doubles that may stand for several whole numbers each: codes of people and the like."""
    import pyarrow as pa

    found = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.type == pa.float64():
            size = np.abs(column.to_numpy())
            if ((size >= _INEXACT) & (size < np.inf)).any():
                found.append(name)
    return found


def _json_lines(path: Path, needed: NeededColumns, text: Sequence[str]) -> Iterator[tuple[pa.Table, int]]:
    stream, raw = _opened(path)
    with stream:
        for table in json_tables(stream.read, needed, text):
            if inexact := _inexact(table):
                raise DataError(
                    f"column {inexact[0]!r} holds numbers beyond 2**53, which are not read exactly: make them text"
                )
            yield table, raw.tell()


def _opened(path: Path) -> tuple[pa.NativeFile, pa.NativeFile]:
    """The content of a file, and the file itself, whose position tells how much is read."""
    import pyarrow as pa

    raw = pa.OSFile(str(path))
    return (pa.CompressedInputStream(raw, "gzip") if path.suffix.lower() == ".gz" else raw), raw


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of that type holds strings, plain ones."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
