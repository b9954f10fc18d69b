"""What kind of table a file is: by its ending, and by its content where the ending does not say."""

from __future__ import annotations

import codecs
import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jaxeval.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa


class Kind(StrEnum):
    """How a table is written."""

    PARQUET = "Parquet"
    ARROW = "Arrow"
    EXCEL = "Excel"
    CSV = "CSV"
    TSV = "TSV"  # the same with tabs
    JSON = "JSON"  # lines, or one array


_KINDS = {
    ".parquet": Kind.PARQUET, ".pq": Kind.PARQUET, ".feather": Kind.ARROW, ".arrow": Kind.ARROW, ".xlsx": Kind.EXCEL,
    ".csv": Kind.CSV, ".tsv": Kind.TSV, ".jsonl": Kind.JSON, ".ndjson": Kind.JSON, ".json": Kind.JSON,
}  # fmt: skip
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_BEGINNINGS = {b"PAR1": Kind.PARQUET, b"ARROW1": Kind.ARROW, b"PK\x03\x04": Kind.EXCEL}
_COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
_HEAD_BYTES = 2**16

#: Known endings, in words.
ENDINGS = f"{', '.join(_KINDS)} (text also with {', '.join(_COMPRESSIONS)})"


class FileFormat(NamedTuple):
    """How a file is read."""

    kind: Kind
    compression: str | None = None  # as Arrow calls it
    delimiter: str = ","  # of CSV

    @property
    def told(self) -> tuple[str, ...]:
        """What is unusual about it, in sentences."""
        return () if self.delimiter in ",\t" else (f"values of the file are separated by {self.delimiter!r}",)


def has_known_ending(path: Path) -> bool:
    """Whether a file's name says that it is a table, or a log of Inspect."""
    return _by_name(path)[0] is not None or path.suffix.lower() == ".eval"


def format_of(path: Path) -> FileFormat:
    """The format of a file.

    Raises:
        DataError: neither its name nor its content says which.
    """
    kind, compression = _by_name(path)
    with path.open("rb") as file:
        head = file.read(max(map(len, _BEGINNINGS)))
    if kind is None:
        kind = next((kind for start, kind in _BEGINNINGS.items() if head.startswith(start)), None)
        compression = next((name for start, name in _COMPRESSED.items() if head.startswith(start)), None)
    if kind not in (None, Kind.CSV):
        return FileFormat(kind, compression, "\t" if kind == Kind.TSV else ",")
    with opened(path, compression)[0] as content:
        text = content.read(_HEAD_BYTES)
    text = text.removeprefix(codecs.BOM_UTF8)
    if kind is None and text.lstrip()[:1] in (b"{", b"["):
        return FileFormat(Kind.JSON, compression)
    header, second, *_ = (re.sub(b'"[^"]*"', b"", line) for line in (*text.lstrip().split(b"\n", 2), b""))
    found = next((sign for sign in (b",", b"\t", b";") if sign in header), None)
    # A bar may be part of a name, and begins the lines of Markdown: it separates only if the next line has as many.
    if found is None and 0 < header.count(b"|") == second.count(b"|") and not header.startswith(b"|"):
        found = b"|"
    if kind is None and (found is None or b"\0" in text):
        raise DataError(f"unknown file type; known endings are {ENDINGS}")
    return FileFormat(Kind.CSV, compression, (found or b",").decode())


def opened(path: Path, compression: str | None) -> tuple[pa.NativeFile, pa.NativeFile]:
    """The content of a file, and the file itself, whose position says how much has been read."""
    import pyarrow as pa

    raw = pa.OSFile(str(path))
    return (raw if compression is None else pa.CompressedInputStream(raw, compression)), raw


def _by_name(path: Path) -> tuple[Kind | None, str | None]:
    """Kind and compression by the ending of a file's name."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = _COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    kind = _KINDS.get((suffixes[:-1] if compression else suffixes)[-1]) if suffixes[bool(compression) :] else None
    if compression and kind not in (Kind.CSV, Kind.TSV, Kind.JSON):
        return None, None
    return kind, compression
