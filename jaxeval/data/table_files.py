"""Tables in files of every format, read piece by piece, and only the columns that are needed."""

from __future__ import annotations

import codecs
import csv as csv_text
import io
import json
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from jaxeval.data.columns import ALL_COLUMNS, Columns, frame_of, renames
from jaxeval.data.file_formats import (
    WRITE_AGAIN,
    FileFormat,
    Kind,
    archived,
    folder_of_copies,
    format_of,
    opened,
    stream_of,
)
from jaxeval.data.file_lists import check_regular, local_file
from jaxeval.data.json_lines import MOST_BYTES, json_tables, lines_of_json
from jaxeval.data.nested_columns import field_names, fields_of_rows, taken
from jaxeval.data.numbers import numeric_but_for_gaps
from jaxeval.data.remote_files import fetch_columns
from jaxeval.data.remote_names import FileName, base_name
from jaxeval.data.small_files import small_table
from jaxeval.errors import ColumnError, DataError
from jaxeval.lazy_names import lazy_module, pa, pd
from jaxeval.plain_tables import PlainTable
from jaxeval.wording import counted, named

if TYPE_CHECKING:
    from jaxeval.execution.progress import Advance


T = TypeVar("T")
csv = lazy_module("pyarrow.csv")

#: Metadata of a Parquet file that `Battles.save` wrote.
STATE_KEY = b"jaxeval"
_PARQUET_ROWS = 2**19  # of a piece
_HEAD_BYTES = 2**20  # of JSON, which come before larger pieces: whoever looks at a file needs no more
_TEXT_BYTES = 2**20  # that are decoded at once
#: From here on one double may stand for several whole numbers.
_INEXACT = 2.0**53
_PADDED = "\0padded"  # of the types of `with_types`: the copy whose rows have all values


class WiderType(Exception):  # noqa: N818
    """A CSV column does not hold what its first megabyte suggested: the file must be read again, with other types."""


def read_whole_table(name: FileName, text: Sequence[str]) -> pd.DataFrame:
    """Return all columns of a file; ``text`` columns are read as strings."""
    return frame_of(_whole_table(local_file(name), text))


def read_plain_table(name: FileName, text: Sequence[str] = ()) -> PlainTable | None:
    """Return all columns of a small file; None of another one, and where `read_whole_table` may find other types.

    Columns of whole numbers among ``text`` are their digits.

    Raises:
        FileNotFoundError: there is no such file.
    """
    path = local_file(name)
    check_regular(path)
    table = small_table(path, ALL_COLUMNS)
    there = [] if table is None else [x for x in (*text, *renames(text, table.columns)) if x in table]
    if table is None or any(table[name].dtype.kind in "bf" for name in there):
        return None
    digits = {name: list(map(str, table[name].tolist())) for name in there if table[name].dtype.kind == "i"}
    return table.assign(**digits)


def _whole_table(path: Path, text: Sequence[str]) -> pa.Table:
    concat = partial(pa.concat_tables, promote_options="permissive")
    return with_types(path, lambda wide: concat(pieces(path, ALL_COLUMNS, text, wide)))


def read_as(
    make: Callable[..., T], name: FileName, text: Sequence[str], columns: Mapping[str, Any], plain: bool = False
) -> T:
    """Return ``make(table, **columns)`` of a file's whole table (`read_whole_table`); errors begin with its name.

    With ``plain`` the table is that of `read_plain_table` where there is one.
    """
    path = local_file(name)
    with naming(path):
        table: Any = read_plain_table(path, text) if plain else None
        if table is None:
            table = read_whole_table(path, [*text, *renames(text, head_names(path))])
        return make(table, **columns)


def column_names(name: FileName) -> list[str]:
    """Return names of the columns of a file, as `read_whole_table` reads it."""
    path = local_file(name)
    with naming(path):
        check_regular(path)
        if (small := small_table(path, ALL_COLUMNS)) is not None:
            return small.columns
        if format_of(path).kind == Kind.JSON:  # whose lines may have names of their own
            return list(_whole_table(path, ()).column_names)
        with undamaged():
            return _head(path)[0]


@contextmanager
def naming(name: FileName) -> Iterator[None]:
    """Let errors about the content of a file begin with its name, once."""
    try:
        yield
    except DataError as error:
        if error.file != base_name(name):
            error.args = (f"{base_name(name)}: {error}", *error.args[1:])
            error.file = base_name(name)
        raise


def with_types(path: Path, read: Callable[[dict[str, Any]], T]) -> T:
    """Return ``read(widened)``: ``widened`` has the types of CSV columns that the file's beginning suggests wrongly.

    Each time a column turns out to have another type, the file is read again from the beginning.
    """
    widened: dict[str, Any] = {}
    while True:
        try:
            with _told(path):
                return read(widened)
        except WiderType:
            continue


def pieces(
    path: Path, needed: Columns, text: Sequence[str], widened: dict[str, Any], advance: Advance | None = None
) -> Iterator[pa.Table]:
    """Yield needed columns of a file, in one or more pieces of bounded memory; those of JSON lines may lack columns.

    Columns of ``text`` are read as strings; for ``widened`` see `with_types`. ``advance`` is called with the number of
    bytes read since its last call.
    """
    check_regular(path)
    if path.stat().st_size == 0:
        raise DataError("the file is empty")
    form, done = format_of(path), 0
    with undamaged() if form.kind in (Kind.PARQUET, Kind.ARROW) else nullcontext():
        for table, position in _READERS.get(form.kind, _csv)(path, form, needed, text, widened):
            yield table
            if advance is not None:
                advance(position - done)
            done = position


def head_names(name: FileName) -> list[str]:
    """Return names of the columns at a file's beginning; an empty list where `pieces` cannot read the file either."""
    return head_columns(name)[0]


def head_columns(name: FileName) -> tuple[list[str], list[str]]:
    """Return `head_names`, and the paths of the fields within those columns."""
    path = local_file(name)
    try:
        return _head(path)
    except (OSError, ValueError, AttributeError, LookupError, DataError, RecursionError):
        return [], []
    except pa.ArrowException:  # which is imported by now
        return [], []


def _head(path: Path) -> tuple[list[str], list[str]]:
    form = format_of(path)
    if form.kind == Kind.PARQUET:
        import pyarrow.parquet as pq

        schema = pq.read_schema(path)
        return schema.names, field_names(schema)
    if form.kind == Kind.ARROW:
        schema = pa.ipc.open_file(str(path)).schema
        return schema.names, field_names(schema)
    if form.kind in (Kind.EXCEL, Kind.PREFLIB):
        return next(pieces(path, ALL_COLUMNS, (), {})).column_names, []
    if form.kind != Kind.JSON:
        return _csv_names(path, form), []
    with stream_of(path, form.compression) as file:
        begun = lines_of_json(lambda n: file.read() if n < 0 else file.read(n)).lstrip()
        while b"\n" not in begun and len(begun) < MOST_BYTES and (more := file.read(MOST_BYTES)):
            begun += more
        row = json.loads(begun.split(b"\n", 1)[0])
        return list(row.keys()), fields_of_rows([row])


@contextmanager
def undamaged(problem: str = "cannot be read", advice: str = WRITE_AGAIN) -> Iterator[None]:
    """Turn the errors of Arrow about damaged Parquet into one that says what to do."""
    try:
        yield
    except (DataError, FileNotFoundError):
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError, OverflowError, MemoryError) as error:
        raise DataError(f"{problem}: {error}{advice}") from error


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn the errors of Arrow about a file into one that says what to do."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        text = str(error)
        quotes = ", and end every quoted value" if "\n" in text else ""
        hints = {
            "UTF8": "; save the file as UTF-8",
            r"Expected \d+ columns": f"; give every line as many values as the first{quotes}",
            "Empty CSV": "; it has a header, and no row below",
            "straddling": "; a quoted value does not end, or is longer than a megabyte",
        }
        cut = "; it may be cut short: copy or write it again" if path.name.lower().endswith(".gz") else ""
        hint = next((said for sign, said in hints.items() if re.search(sign, text)), cut)
        raise DataError(f"cannot be read: {text}{hint}") from error


def _parquet(path: Path, form: FileFormat, needed: Columns, *_: Any) -> Iterator[tuple[pa.Table, int]]:
    import pyarrow.parquet as pq

    schema = pq.read_schema(path)
    if STATE_KEY in (schema.metadata or {}):
        raise DataError(
            "it holds battles that jaxeval saved, not votes: load it with Battles.load; on the command line name it "
            "alone, or with --state"
        )
    columns = needed.choose(schema.names, field_names(schema))
    fetch_columns(path, columns)
    # Dictionary pages arrive as codes: strings are then never built row by row.
    strings = [c for c in columns if c in schema.names and is_text(schema.field(c).type)]
    size, done = path.stat().st_size, 0
    with pq.ParquetFile(path, read_dictionary=strings, page_checksum_verification=True) as file:
        n_rows = file.metadata.num_rows
        if n_rows == 0:
            yield _checked(file.schema_arrow.empty_table(), columns), size
            return
        for batch in file.iter_batches(_PARQUET_ROWS, columns=columns):
            done += batch.num_rows
            yield _checked(pa.Table.from_batches([batch]), columns), done * size // n_rows


def _arrow(path: Path, form: FileFormat, needed: Columns, *_: Any) -> Iterator[tuple[pa.Table, int]]:
    with pa.memory_map(str(path)) as source:
        file = pa.ipc.open_file(source)
        columns, n = needed.choose(file.schema.names, field_names(file.schema)), file.num_record_batches
        yield _checked(file.schema.empty_table(), columns), 0
        for k in range(n):
            yield _checked(pa.Table.from_batches([file.get_batch(k)]), columns), (k + 1) * path.stat().st_size // n


def _checked(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return some columns of a table, without pandas' notes on its index: a column of it is one like the others."""
    piece = taken(table, columns).replace_schema_metadata(None)
    piece.validate(full=True)
    return piece


def _excel(
    path: Path, form: FileFormat, needed: Columns, text: Sequence[str], *_: Any
) -> Iterator[tuple[pa.Table, int]]:
    """Yield the only sheet of a file."""
    if members := archived(path):
        raise DataError(f"it is an archive of {named(members, 4)}, and no table; jaxeval FILE says what reads it")
    dtype = dict.fromkeys(text, str)
    try:
        with pd.ExcelFile(path, engine="openpyxl") as book:
            blank = {"keep_default_na": False, "na_values": [""]}
            sheets = pd.read_excel(book, sheet_name=None, header=None, dtype=object, **blank)
            filled = {name: sheet for name, sheet in sheets.items() if sheet.notna().any(axis=None)}
            if not filled:
                raise DataError("no sheet of the file has values")
            if len(filled) > 1:
                names = ", ".join(map(repr, filled))
                raise DataError(
                    f"it has {len(filled)} sheets with values ({names}): save the one to read in a file of its own"
                )
            ((name, sheet),) = filled.items()
            width = sheet.notna().sum(axis=1).to_numpy()
            top = int(np.argmax(width >= max(min(2, width.max()), width.max() / 2)))  # a title may stand above it
            columns = np.flatnonzero(sheet.iloc[top:].notna().any())
            frame = pd.read_excel(book, sheet_name=name, dtype=dtype, skiprows=top, **blank)
    except ImportError as error:
        raise ImportError("Excel files need openpyxl, the extra jaxeval[excel]: pip install openpyxl") from error
    except DataError:
        raise
    except (ValueError, LookupError, OSError, zipfile.BadZipFile) as error:
        raise DataError(f"cannot be read: {error}{WRITE_AGAIN}") from error
    frame = frame.iloc[:, columns].dropna(how="all")
    frame = pd.concat([frame[c] if c in text else numeric_but_for_gaps(frame[c]) for c in frame], axis=1)
    # pandas adds a number to a name that is there twice.
    columns_read = [
        str(header if pd.isna(name) else name) for header, name in zip(frame, sheet.iloc[top, columns], strict=True)
    ]
    chosen = (
        range(len(columns_read)) if needed.every else [columns_read.index(name) for name in needed.choose(columns_read)]
    )
    table = pa.Table.from_pandas(frame.iloc[:, list(chosen)].infer_objects(), preserve_index=False)
    yield table.rename_columns([columns_read[k] for k in chosen]), path.stat().st_size


def _preflib(path: Path, form: FileFormat, needed: Columns, *_: Any) -> Iterator[tuple[pa.Table, int]]:
    """Read rankings of PrefLib, "count" times each; alternatives that a ranking does not name are not in it.

    Alternatives have names in lines as "# ALTERNATIVE NAME 1: a"; a line such as "3: 1,{2,4}" is of three rankings. In
    files of before, the lines are their number, "1,a" for each, the numbers of rankings, and "3,1,{2,4}".
    """
    with opened(path, form.compression)[0] as file:
        lines = [line.strip() for line in file.read().decode("utf-8-sig", "replace").splitlines() if line.strip()]
    names = {m[1]: m[2] for line in lines if (m := re.match(r"# ALTERNATIVE NAME (\d+):\s*(.*)", line))}
    rows = [line.partition(":") for line in lines if not line.startswith("#")]
    if not names and lines and lines[0].isdecimal():
        names = dict(line.split(",", 1) for line in lines[1 : int(lines[0]) + 1] if "," in line)
        rows = [line.partition(",") for line in lines[int(lines[0]) + 2 :]]
    if not names or not rows:
        raise DataError("it names no alternatives, or has no rankings: expected a file of PrefLib")
    rankings, counts = [], []
    for number, (count, _, text) in enumerate(rows, 1):
        levels = [x.strip("{}").split(",") for x in re.findall(r"\{[^{}]*\}|[^,{}]+", text.replace(" ", ""))]
        if not count.strip().isdecimal() or not levels or any(x not in names for level in levels for x in level):
            raise DataError(f"ranking {number:,} is not as PrefLib writes one: {count}:{text}")
        rankings.append([[names[x].strip() for x in level] for level in levels])
        counts.append(int(count))
    table = pa.table({"ranking": rankings, "count": counts})
    yield table.select(needed.choose(table.column_names)), path.stat().st_size


def _csv(
    path: Path, form: FileFormat, needed: Columns, text: Sequence[str], widened: dict[str, Any]
) -> Iterator[tuple[pa.Table, int]]:
    names = _csv_names(path, form)
    padded = widened.get(_PADDED)
    if padded is not None:
        path, form = padded, form._replace(compression=None, skipped=0)
    skip = csv.ReadOptions(skip_rows=form.skipped)
    parse = csv.ParseOptions(delimiter=form.delimiter, newlines_in_values=True)
    try:
        columns = needed.choose(names)
    except ColumnError:  # the header may lack a name
        _reject_wide_rows(path, form, skip, parse)
        raise
    types = {name: kind for name, kind in widened.items() if name != _PADDED}
    strings = {c: pa.dictionary(pa.int32(), pa.string()) for c in text if c in names}
    # Only an empty field is missing: "NA" or "null" may be somebody's label.
    convert = csv.ConvertOptions(
        include_columns=columns, column_types=strings | types, null_values=[""], strings_can_be_null=True
    )
    stream, raw = opened(path, form.compression)
    schema = None
    try:
        with stream, csv.open_csv(stream, skip, parse, convert) as reader:
            schema, n_batches = reader.schema, 0
            for n_batches, batch in enumerate(reader, start=1):  # noqa: B007
                piece = pa.Table.from_batches([batch])
                if any(map(pa.types.is_binary, piece.schema.types)):  # as which Arrow reads what is no text
                    _reject_other_encodings(path, form)
                if inexact := _inexact(piece):
                    widened.update(dict.fromkeys(inexact, pa.string()))
                    raise WiderType
                yield piece, raw.tell()
            if n_batches == 0:
                yield schema.empty_table(), raw.tell()
    except pa.ArrowInvalid as error:
        if "UTF8" in str(error):
            _reject_other_encodings(path, form)
        if padded is None and _ends_early(error):
            widened[_PADDED] = _padded(path, form, len(names), error)
            raise WiderType from error
        column = re.search(r"In CSV column #(\d+)", str(error))
        name = names[int(column[1])] if column else None
        if name is None or name in strings or "UTF8" in str(error):
            raise
        its_type = widened.get(name, None if schema is None else schema.field(name).type)
        times = pa.date32(), pa.time32("s"), pa.timestamp("s"), pa.timestamp("ns")
        # In the order in which Arrow tries them.
        ladder = [pa.null(), pa.int64(), pa.bool_(), *times, pa.float64(), pa.string()]
        if its_type is None or its_type not in ladder[:-1]:
            raise
        widened[name] = ladder[ladder.index(its_type) + 1]
        raise WiderType from error


def _reject_wide_rows(path: Path, form: FileFormat, skip: Any, parse: Any) -> None:
    """Raise an error if a row near the beginning has more values than the header, before any that has fewer."""
    try:
        with opened(path, form.compression)[0] as file, csv.open_csv(file, skip, parse):
            pass
    except pa.ArrowInvalid as error:
        if re.search(r"Expected \d+ columns", str(error)) and not _ends_early(error):
            raise


def _reject_other_encodings(path: Path, form: FileFormat) -> None:
    """Raise an error if a file of text is not UTF-8."""
    decode, line = codecs.getincrementaldecoder("utf-8")().decode, 1
    with opened(path, form.compression)[0] as file:
        while text := file.read(_TEXT_BYTES):
            try:
                decode(text)
            except UnicodeDecodeError as error:
                line += error.object[: error.start].count(b"\n")
                as_by = f", as by iconv -f LATIN1 -t UTF-8 {path.name} > utf8-{path.name} where it is Latin-1"
                raise DataError(
                    f"line {line:,} is not UTF-8, the byte 0x{error.object[error.start]:02x}: save the file as UTF-8"
                    f"{'' if form.compression else as_by}"
                ) from error
            line += text.count(b"\n")


def _csv_names(path: Path, form: FileFormat) -> list[str]:
    try:
        names = next(filter(None, _csv_rows(path, form)), None)
        if names and "\n" in names[-1]:  # it may hold all lines of the file
            next(filter(None, _csv_rows(path, form, strict=True)))
    except csv_text.Error as error:
        quotes = "; end every quoted value" if "unexpected end" in str(error) else ""
        raise DataError(f"cannot be read: {error}{quotes}") from error
    if names is None:
        raise DataError(f"the file is empty, or has blank lines only{WRITE_AGAIN if form.compression else ''}")
    if any("\udc80" <= sign <= "\udcff" for name in names for sign in name):
        _reject_other_encodings(path, form)
    return names


def _csv_rows(path: Path, form: FileFormat, **how: Any) -> Iterator[list[str]]:
    """Yield the rows of CSV from the header on; bytes that are no UTF-8 are lone surrogates."""
    with stream_of(path, form.compression) as file:
        lines = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
        yield from csv_text.reader(islice(lines, form.skipped, None), delimiter=form.delimiter, **how)


def _ends_early(error: Exception) -> bool:
    """Return whether Arrow met a row with fewer values than the header."""
    match = re.search(r"Expected (\d+) columns, got (\d+)", str(error))
    return match is not None and int(match[2]) < int(match[1])


def _padded(path: Path, form: FileFormat, n_columns: int, error: Exception) -> Path:
    """Return a copy of a file whose rows that end early have as many values as the header, the last ones missing."""
    copy = Path(tempfile.mkdtemp(dir=folder_of_copies())) / path.name
    try:
        with copy.open("w", newline="", encoding="utf-8") as target:
            writer, short, n_rows = csv_text.writer(target, delimiter=form.delimiter), [], -1  # the header is no row
            for row in _csv_rows(path, form, strict=True):
                short += [n_rows] if 0 < len(row) < n_columns else []
                n_rows += len(row) > 0
                writer.writerow(row + [""] * (n_columns - len(row)) if row else row)
    except (csv_text.Error, ValueError):
        raise error from None
    _ENDED_EARLY[path] = short, n_rows
    return copy


#: Rows of files that ended early, and were read; and how many rows there are.
_ENDED_EARLY: dict[Path, tuple[list[int], int]] = {}


def told_of(path: Path) -> list[str]:
    """Return what was unusual about a file that has been read, in sentences."""
    form = format_of(path)
    short, n_rows = _ENDED_EARLY.get(path, ([], 0))
    advice = "its last values are missing; if the file was cut off, write it anew, else drop that row"
    if short == [n_rows - 1] or (not short and _without_last_value(path, form)):
        where = f"row {short[0]} of {path.name}; rows count from 0" if short else f"of {path.name}"
        return [*form.told, f"the last row ({where}) ends early: {advice}"]
    first = f"first in row {short[0]} of {path.name}; rows count from 0" if short else ""
    note = f"{counted(len(short), 'row ends', 'rows end')} early ({first}): the last values are missing there"
    return [*form.told, *([note] if short else [])]


def _without_last_value(path: Path, form: FileFormat) -> bool:
    """Return whether a file of CSV ends behind a delimiter, with no line end: as one does that was cut off."""
    if form.kind not in (Kind.CSV, Kind.TSV) or form.compression or not path.stat().st_size:
        return False
    with path.open("rb") as file:
        file.seek(-1, io.SEEK_END)
        return file.read() == form.delimiter.encode()


def _inexact(table: pa.Table) -> list[str]:
    """Return columns with doubles that may stand for several whole numbers: IDs of people, for instance."""
    names = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.type == pa.float64():
            size = np.abs(column.to_numpy())
            if ((size >= _INEXACT) & (size < np.inf)).any():
                names.append(name)
    return names


def _json(
    path: Path, form: FileFormat, needed: Columns, text: Sequence[str], widened: dict[str, Any]
) -> Iterator[tuple[pa.Table, int]]:
    """Read lines of JSON, or one array of objects, which is held as a whole."""
    stream, raw = opened(path, form.compression)
    with stream:
        begun = io.BytesIO(lines_of_json(lambda n: stream.read() if n < 0 else stream.read(n)))
        first = [_HEAD_BYTES]

        def read(n: int) -> bytes:
            return begun.read(n) or stream.read(first.pop() if first else n)

        for table in json_tables(read, needed, text):
            if inexact := _inexact(table):
                raise DataError(
                    f"column {inexact[0]!r} holds numbers beyond 2**53, which cannot be read exactly: write them as "
                    "text, in quotes"
                )
            yield table, raw.tell()


_READERS: Mapping[Kind, Callable[..., Iterator[tuple[pa.Table, int]]]] = {
    Kind.PARQUET: _parquet, Kind.ARROW: _arrow, Kind.EXCEL: _excel, Kind.PREFLIB: _preflib, Kind.JSON: _json,
}  # fmt: skip


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of that type holds strings, plain ones."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
