"""Tables in Parquet, CSV and JSON-lines files, read piece by piece, and only the columns that are needed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from jaxeval.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from jaxeval.execution.progress import Advance


class Needed(Protocol):
    """Which columns of a file are read."""

    def choose(self, names: Sequence[str]) -> list[str]:
        """Those out of all that a file has, or an error."""

    def may(self, name: str) -> bool:
        """Whether a column is needed if it is there."""


class AllColumns:
    """Every column of a file is read."""

    def choose(self, names: Sequence[str]) -> list[str]:
        """All of them."""
        return list(names)

    def may(self, name: str) -> bool:
        """Always."""
        return True


T = TypeVar("T")

#: Metadata of a Parquet file that `Battles.save` wrote.
STATE_KEY = b"jaxeval"
_PARQUET = (".parquet", ".pq")
_CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_JSON_LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
_ENDINGS = (*_PARQUET, *_CSV, *_JSON_LINES)

_PARQUET_ROWS = 2**19  # of a piece
_JSON_BYTES = 2**25


class WiderType(Exception):  # noqa: N818
    """A CSV column does not hold what its first megabyte suggested: the file must be read again, with other types."""


def files_of(path: str | Path | Sequence[str | Path]) -> list[Path]:
    """The files that a path, a folder, a glob, or a list of those stands for, each once.

    Those of a folder (and of the folders in it) and of a glob come by name; names that begin with "_" or "." are
    hidden.

    Raises:
        DataError: a folder holds no table, or files that are none.
        FileNotFoundError: there is no such file.
    """
    if isinstance(path, str | Path):
        return _files_of_one(path)
    files = [file for one in path for file in _files_of_one(one)]
    if not files:
        raise FileNotFoundError("the list of files is empty")
    return list(dict.fromkeys(files))


def _files_of_one(path: str | Path) -> list[Path]:
    found = Path(path)
    if found.is_dir():
        files = sorted(file for file in found.rglob("*") if file.is_file() and not _hidden(file.relative_to(found)))
        others = [file for file in files if not file.name.lower().endswith(_ENDINGS)]
        if others or not files:
            what = f"holds {others[0].name}, which is no table" if others else "holds no file"
            raise DataError(
                f"{found.name}: the directory {what}; known endings are {', '.join(_ENDINGS)} (a pattern such as "
                f"{found.name}/*.parquet chooses files)"
            )
        return files
    if not found.exists() and any(sign in str(path) for sign in "*?["):
        files = sorted(Path(file) for file in glob(str(path), recursive=True) if Path(file).is_file())
        if not files:
            raise FileNotFoundError(f"no file matches {path}")
        return files
    if not found.exists():
        raise FileNotFoundError(f"no such file: {found}")
    return [found]


def _hidden(path: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.parts)


def read_whole_table(path: Path, text: Sequence[str]) -> pa.Table:
    """All columns of a file; ``text`` columns are read as strings.

    Raises:
        DataError: the file cannot be read as a table.
        FileNotFoundError: there is no such file.
    """
    import pyarrow as pa

    def whole(widened: dict[str, Any]) -> pa.Table:
        return pa.concat_tables(pieces(path, AllColumns(), text, widened), promote_options="permissive")

    return with_types(path, whole)


def column_names(path: Path) -> list[str]:
    """Names of the columns of a file, as `read_whole_table` reads it."""
    if path.name.lower().endswith(_PARQUET) and path.exists():
        import pyarrow.parquet as pq

        with _told(path):
            return list(pq.read_schema(path).names)
    return list(read_whole_table(path, ()).column_names)


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
    path: Path, needed: Needed, text: Sequence[str], widened: dict[str, Any], advance: Advance | None = None
) -> Iterator[pa.Table]:
    """The needed columns of a file, in pieces of bounded memory, at least one; those of JSON lines may lack some.

    Args:
        needed: the columns to read.
        text: columns that are read as strings.
        widened: see `with_types`.
        advance: told the bytes read.
    """
    name = path.name.lower()
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    if not name.endswith(_ENDINGS):
        raise DataError(f"unknown file type; known endings are {', '.join(_ENDINGS)}")
    advance = advance or (lambda n: None)
    if name.endswith(_PARQUET):
        yield from _parquet(path, needed, advance)
        return
    if path.stat().st_size == 0:
        raise DataError("the file is empty")
    read = _csv(path, needed, text, widened) if name.endswith(_CSV) else _json_lines(path, needed)
    done = 0
    for table, position in read:
        yield table
        advance(position - done)
        done = position


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
        hint = (
            "; save the file as UTF-8"
            if "UTF8" in text
            else "; write every line with the columns of the first"
            if re.search(r"Expected \d+ columns", text)
            else "; it may be cut short: copy or write it again"
            if path.name.lower().endswith((*_PARQUET, ".gz"))
            else ""
        )
        raise DataError(f"cannot be read: {text}{hint}") from error


def _parquet(path: Path, needed: Needed, advance: Advance) -> Iterator[pa.Table]:
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
            yield file.schema_arrow.empty_table().select(columns)
            return
        done = 0
        for batch in file.iter_batches(_PARQUET_ROWS, columns=columns):
            yield pa.Table.from_batches([batch]).select(columns)
            before, done = done, done + batch.num_rows
            total = file.metadata.num_rows
            advance(done * size // total - before * size // total)


def _csv(path: Path, needed: Needed, text: Sequence[str], widened: dict[str, Any]) -> Iterator[tuple[pa.Table, int]]:
    import pyarrow as pa
    from pyarrow import csv

    tab = ".tsv" in path.name.lower()
    parse = csv.ParseOptions(delimiter="\t" if tab else ",", newlines_in_values=True)
    with _opened(path)[0] as file, csv.open_csv(file, parse_options=parse) as reader:
        names = reader.schema.names
    columns = needed.choose(names)
    strings = {c: pa.dictionary(pa.int32(), pa.string()) for c in text if c in names}
    convert = csv.ConvertOptions(
        include_columns=columns,
        column_types=strings | widened,
        # Only an empty field is missing: "NA" or "null" may be somebody's label.
        null_values=[""],
        strings_can_be_null=True,
    )
    stream, raw = _opened(path)
    schema = None
    try:
        with stream, csv.open_csv(stream, parse_options=parse, convert_options=convert) as reader:
            schema, n_batches = reader.schema, 0
            for n_batches, batch in enumerate(reader, start=1):  # noqa: B007
                yield pa.Table.from_batches([batch]), raw.tell()
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

    return [
        pa.null(),
        pa.int64(),
        pa.bool_(),
        pa.date32(),
        pa.time32("s"),
        pa.timestamp("s"),
        pa.timestamp("ns"),
        pa.float64(),
        pa.string(),
    ]


def _json_lines(path: Path, needed: Needed) -> Iterator[tuple[pa.Table, int]]:
    names: dict[str, None] = {}
    rest, line = b"", 0
    stream, raw = _opened(path)
    with stream:
        read = stream.read(_JSON_BYTES)
        while read:
            following = stream.read(_JSON_BYTES)
            # No value of JSON holds a line end.
            block, cut, rest = (rest + read).rpartition(b"\n") if following else (rest + read, b"", b"")
            if block.strip():
                table, found = _json_block(block, line, needed)
                names |= dict.fromkeys(found)
                yield table, raw.tell()
            line += block.count(b"\n") + len(cut)
            read = following
    if not names:
        raise DataError("the file is empty: it has blank lines only")
    needed.choose(list(names))


def _json_block(block: bytes, start: int, needed: Needed) -> tuple[pa.Table, list[str]]:
    """The needed columns of some lines, the first of which has ``start`` before it; and the names of all columns."""
    import pyarrow as pa
    from pyarrow import json

    try:
        try:
            table = json.read_json(pa.BufferReader(block))  # in parallel
        except pa.ArrowInvalid as error:
            if "straddl" not in str(error):
                raise
            table = json.read_json(pa.BufferReader(block), json.ReadOptions(block_size=len(block)))
    except pa.ArrowInvalid:
        # Some column, of no concern to us perhaps, has values of several types, which only Python reads; or a line is
        # broken, which Python names.
        return _mixed_json_block(block, start, needed)
    return table.select([c for c in table.column_names if needed.may(c)]), table.column_names


def _mixed_json_block(block: bytes, start: int, needed: Needed) -> tuple[pa.Table, list[str]]:
    import json

    import pyarrow as pa

    rows = []
    for number, line in enumerate(block.split(b"\n"), start=start + 1):
        if not line.strip():
            continue
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            raise DataError(f"line {number:,} cannot be read as JSON: {error}") from error
        if not isinstance(rows[-1], dict):
            raise DataError(f"line {number:,} cannot be read: every line must hold one JSON object, {{...}}")
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = {}
    for name in filter(needed.may, names):
        values = [row.get(name) for row in rows]
        try:
            table[name] = pa.array(values)
        except pa.ArrowException as error:
            kinds = Counter(type(value).__name__ for value in values if value is not None)
            found = ", ".join(f"{kind} ({count:,})" for kind, count in kinds.items())
            raise DataError(f"column {name!r} mixes values of types {found}; make them one, text for names") from error
    return pa.table(table), names


def _opened(path: Path) -> tuple[pa.NativeFile, pa.NativeFile]:
    """The content of a file, and the file itself, whose position tells how much is read."""
    import pyarrow as pa

    raw = pa.OSFile(str(path))
    return (pa.CompressedInputStream(raw, "gzip") if path.suffix.lower() == ".gz" else raw), raw


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of that type holds strings, plain ones."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
