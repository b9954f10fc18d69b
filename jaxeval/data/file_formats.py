"""What kind of table a file is: by its first bytes, and by its ending where they do not say."""

from __future__ import annotations

import atexit
import codecs
import csv
import os
import re
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from enum import StrEnum
from functools import cache, lru_cache, wraps
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from jaxeval.errors import DataError
from jaxeval.execution.atomic_write import try_lock

if TYPE_CHECKING:
    import pyarrow as pa


T = TypeVar("T")


class Kind(StrEnum):
    """How a table is written."""

    PARQUET = "Parquet"
    ARROW = "Arrow"
    EXCEL = "Excel"
    CSV = "CSV"
    TSV = "TSV"  # the same with tabs
    JSON = "JSON"  # lines, or one array
    PREFLIB = "PrefLib"  # rankings and their counts


_KINDS = {
    ".parquet": Kind.PARQUET, ".pq": Kind.PARQUET, ".feather": Kind.ARROW, ".arrow": Kind.ARROW, ".xlsx": Kind.EXCEL,
    ".csv": Kind.CSV, ".tsv": Kind.TSV, ".jsonl": Kind.JSON, ".ndjson": Kind.JSON, ".json": Kind.JSON,
    ".soc": Kind.PREFLIB, ".soi": Kind.PREFLIB, ".toc": Kind.PREFLIB, ".toi": Kind.PREFLIB,
}  # fmt: skip
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_BEGINNINGS = {b"PAR1": Kind.PARQUET, b"ARROW1": Kind.ARROW, b"PK\x03\x04": Kind.EXCEL}
_COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
#: Marks at the beginning of text that is not UTF-8; that of UTF-32 begins as that of UTF-16 does.
_MARKS = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32", codecs.BOM_UTF16_LE: "utf-16",
          codecs.BOM_UTF16_BE: "utf-16"}  # fmt: skip
#: Where the letters of ASCII are among zeros, in four bytes.
_ZEROS = {(1, 0, 1, 0): "utf-16-le", (0, 1, 0, 1): "utf-16-be", (1, 0, 0, 0): "utf-32-le", (0, 0, 0, 1): "utf-32-be"}
#: Files of archives that are read as such: Excel, logs of Inspect, draws.
_EXCEL_MARK = "[Content_Types].xml"
_ARCHIVES = {"header.json", "_journal/start.json", "about.npy"}
#: Names of an archive that are no files of its owner: folders, and what systems add.
_OF_NO_FILE = re.compile(r"/$|^__MACOSX|(^|/)\.")
_making = Lock()  # of the folder of copies
_HEAD_BYTES = 2**16
_HEAD_LINES = 20  # among which the header of CSV is
_PIECE_BYTES = 2**20
#: The beginning of the names of folders of copies; each folder has a file that is locked while its process lives.
_FOLDER, _LOCK = "jaxeval-copies-", "lock"

WRITE_AGAIN = "; it may be cut short or damaged: copy or write it again"
#: Known endings, in words.
ENDINGS = f"{', '.join(_KINDS)} (text also with {', '.join(_COMPRESSIONS)}), .zip"


class FileFormat(NamedTuple):
    """How a file is read."""

    kind: Kind
    compression: str | None = None  # as Arrow calls it
    delimiter: str = ","  # of CSV
    skipped: int = 0  # lines of CSV above the header

    @property
    def told(self) -> tuple[str, ...]:
        """What is unusual about it, in sentences."""
        signs = () if self.delimiter in ",\t" else (f"values of the file are separated by {self.delimiter!r}",)
        return (*signs, *([f"the header is in line {self.skipped + 1} of the file"] if self.skipped else []))


def has_known_ending(path: Path) -> bool:
    """Return whether a file's name says that it is a table, or a log of Inspect."""
    return _kind_by_name(path) is not None or path.suffix.lower() in (".eval", ".zip")


def while_unchanged(read: Callable[[Path], T], most: int | None = None) -> Callable[[Path], T]:
    """Let a file be read anew only where its size or time has changed; what the last ``most`` files gave is kept."""
    kept = lru_cache(most)(lambda path, size, time: read(path))

    @wraps(read)
    def read_once(path: Path) -> T:
        state = path.stat()
        return kept(path, state.st_size, state.st_mtime_ns)

    return read_once


@while_unchanged
def format_of(path: Path) -> FileFormat:
    """Return the format of a file."""
    kind, compression = _kind_by_name(path), None
    with path.open("rb") as file:
        head = file.read(max(map(len, _BEGINNINGS)))
    if head:
        kind, compression = _by_bytes(_BEGINNINGS, head) or kind, _by_bytes(_COMPRESSED, head)
    if kind is not None and kind in (Kind.PREFLIB, _by_bytes(_BEGINNINGS, head)):
        return FileFormat(kind, compression)
    try:
        with stream_of(path, compression) as content:
            text = content.read(_HEAD_BYTES)
    except OSError as error:
        raise DataError(f"cannot be read: {error}{WRITE_AGAIN}") from error
    text = text.removeprefix(codecs.BOM_UTF8)
    if kind is not None and kind in _BEGINNINGS.values():
        if b"\0" in text or not text.strip():
            return FileFormat(kind)  # it is damaged, or not all of it is here
        kind = None  # text, whatever its name says
    if kind == Kind.JSON or text.lstrip()[:1] == b"{" or (kind is None and text.lstrip()[:1] == b"["):
        return FileFormat(Kind.JSON, compression)
    first, second, *_ = (re.sub(b'"[^"]*"', b"", line) for line in (*text.lstrip().split(b"\n", 2), b""))
    signs = (b"\t", b",", b";") if kind == Kind.TSV else (b",", b"\t", b";")
    separator = next((sign for sign in signs if sign in first), None)
    # A bar may be part of a name, and begins the lines of Markdown: it separates only if the next line has as many.
    if separator is None and 0 < first.count(b"|") == second.count(b"|") and not first.startswith(b"|"):
        separator = b"|"
    skipped, sign = _title(text.decode("utf-8", "replace"), [sign.decode() for sign in (*signs, b"|")])
    if kind is None and (separator is None or b"\0" in text):
        raise DataError(f"unknown file type; known endings are {ENDINGS}" if text else "the file is empty")
    return FileFormat(Kind.CSV, compression, sign if skipped else (separator or signs[0]).decode(), skipped)


def _title(text: str, signs: Sequence[str]) -> tuple[int, str]:
    """Return lines of a title above a CSV header, and what separates values: programs that export sheets write so."""
    lines = text.splitlines(keepends=True)[:_HEAD_LINES]
    sign = max(signs, key=lambda sign: sum(sign in line for line in lines))
    rows = csv.reader(lines, delimiter=sign)
    cells, ends = list[list[str]](), list[int]()
    with suppress(csv.Error):
        for row in rows:
            cells.append([cell.strip() for cell in row])
            ends.append(rows.line_num)
    filled = [sum(map(bool, row)) for row in cells]
    top = next((k for k, n in enumerate(filled) if n >= max(2, max(filled) / 2)), 0)
    header, below = [cell for cell in cells[top] if cell] if cells else [], cells[top + 1 :]
    again = any(cell and cell == row[k] for row in below for k, cell in enumerate(cells[top]) if k < len(row))
    longer = sum(n > max(filled[:top], default=0) for n in filled[top + 1 :])
    # What comes again below, or is a number, is no header: then the first line is one, of rows that are too long.
    if top == 0 or 2 * longer <= len(below) or again or len({*header}) < len(header) or any(map(_is_number, header)):
        return 0, sign
    return ends[top - 1], sign


def _is_number(cell: str) -> bool:
    with suppress(ValueError):
        return float(cell.replace(",", ".")) is not None
    return False


def unwrapped(path: Path) -> Path:
    """Return ``path``, or a copy of what it wraps: an archive's one table, a compressed binary table, text as UTF-8.

    Copies last as long as the process, and have the name of the file.

    Raises:
        DataError: an archive holds several files, or what is wrapped is damaged.
    """
    return _unwrapped(path) if path.is_file() else path


@while_unchanged
def _unwrapped(path: Path) -> Path:
    with path.open("rb") as file:
        start = file.read(max(map(len, _BEGINNINGS)))
    members = archived(path)
    members = [] if _ARCHIVES & {*members} else members
    if len(members) > 1:
        raise DataError(f"{path.name} is an archive of {len(members):,} files: unpack it, and name the file to read")
    compression = _by_bytes(_COMPRESSED, start)
    head = start
    with suppress(OSError), stream_of(path, compression) as content:  # damaged files are reported when they are read
        head = content.read(_HEAD_BYTES)
    encoding = _encoding(head)
    if not members and encoding is None and (compression is None or _by_bytes(_BEGINNINGS, head) is None):
        return path
    copy = Path(tempfile.mkdtemp(dir=folder_of_copies())) / path.name
    try:
        with ExitStack() as stack, copy.open("wb") as target:
            archive = stack.enter_context(zipfile.ZipFile(path)) if members else None
            source = archive.open(members[0]) if archive else stream_of(path, compression)
            source = source if encoding is None else codecs.EncodedFile(source, "utf-8", encoding)
            shutil.copyfileobj(stack.enter_context(source), target, _PIECE_BYTES)
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        how = f"it is {encoding.upper()} text, and " if encoding else ""
        raise DataError(f"{path.name}: cannot be read: {how}{error}; copy or write it again") from error
    return unwrapped(copy)


def folder_of_copies() -> Path:
    """Return the folder of copies, for the rest of the process; if that is killed, the next one removes them."""
    with _making:  # of two folders of two threads, one would stay
        return _made_folder()


@cache
def _made_folder() -> Path:
    _remove_left()
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER))
    with suppress(OSError):  # without locks, no other process removes the folder
        handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT)
        try_lock(handle)  # until the process ends
        os.write(handle, b"locked")
    atexit.register(remove_copies)
    return folder


def _remove_left() -> None:
    """Remove the copies of processes that were killed."""
    for lock in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*/{_LOCK}"):
        # A folder of another user, gone meanwhile, or open on Windows stays. So does one whose lock is still empty.
        with suppress(OSError), lock.open("rb+") as file:
            if lock.stat().st_size and try_lock(file.fileno()):
                shutil.rmtree(lock.parent, ignore_errors=True)


def remove_copies() -> None:
    """Remove all copies of this process; it is called at its end, also when it ends at once."""
    if _made_folder.cache_info().currsize:
        shutil.rmtree(_made_folder(), ignore_errors=True)


def archived(path: Path) -> list[str]:
    """Return names of the files in a zip archive, but of Excel; empty for other files."""
    names = list(entries_of(path))
    return [] if _EXCEL_MARK in names else [name for name in names if not _OF_NO_FILE.search(name)]


@while_unchanged
def entries_of(path: Path) -> Mapping[str, zipfile.ZipInfo]:
    """Return what a zip archive says of its members, read once; nothing for other files, and for damaged ones."""
    with path.open("rb") as file:
        if _by_bytes(_BEGINNINGS, file.read(4)) != Kind.EXCEL:
            return {}
        # Of damaged ones zipfile raises whatever their bytes lead to.
        with (
            suppress(zipfile.BadZipFile, NotImplementedError, OSError, ValueError, struct.error),
            zipfile.ZipFile(file) as archive,
        ):
            return {entry.filename: entry for entry in archive.infolist()}
    return {}


def _encoding(head: bytes) -> str | None:
    """Return how text that begins so is encoded: UTF-16 or UTF-32, with a mark or not; None for other content."""
    marked = _by_bytes(_MARKS, head)
    if marked is not None or len(head) < 8:
        return marked
    cut = head[: len(head) // 4 * 4][:256]
    shares = [sum(byte == 0 for byte in cut[k::4]) / (len(cut) // 4) for k in range(4)]
    for letters, name in _ZEROS.items():
        # Letters of other alphabets have no zeros, and no text has zeros among its letters.
        if all(share == 0 if is_letter else share > 0.5 for is_letter, share in zip(letters, shares, strict=True)):
            return name
    return None


def _by_bytes(table: dict[bytes, Any], head: bytes) -> Any:
    return next((value for start, value in table.items() if head.startswith(start)), None)


def stream_of(path: Path, compression: str | None) -> Any:
    """Return the content of a file, for which Arrow is imported only where it is compressed."""
    return path.open("rb") if compression is None else opened(path, compression)[0]


def opened(path: Path, compression: str | None) -> tuple[pa.NativeFile, pa.NativeFile]:
    """Return the content of a file, and the file itself, whose position says how much has been read."""
    import pyarrow as pa

    raw = pa.OSFile(str(path))
    return (raw if compression is None else pa.CompressedInputStream(raw, compression)), raw


def _kind_by_name(path: Path) -> Kind | None:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compressed = bool(suffixes) and suffixes[-1] in _COMPRESSIONS
    return _KINDS.get(suffixes[-1 - compressed]) if suffixes[compressed:] else None
