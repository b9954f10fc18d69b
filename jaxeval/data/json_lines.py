"""JSON lines as tables, within limits; Python's parser reads what Arrow's cannot."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from json import dumps, loads
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxeval.data.columns import Columns
from jaxeval.data.nested_columns import field_names, fields_of_rows, taken, value_at
from jaxeval.errors import DataError
from jaxeval.lazy_names import lazy_module, pa

json = lazy_module("pyarrow.json")
#: Bytes of a line, at most: 32 MiB.
MOST_BYTES = 2**25
#: The deepest nesting of lists and objects; at some twenty thousand levels, Arrow's parser ends the process.
MOST_LEVELS = 200

_PIECE = 2**17  # bytes looked at together: they stay in a core's cache
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
#: One pattern of both takes five times as long: it has no first letter to search for.
_NULLS = re.compile(rb"\n[ \t\r]*null"), re.compile(rb"\}[ \t\r]*null")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}\n"))


def check_lines(block: bytes, start: int) -> int:
    """Count the lines of ``block``, and check that they are within the limits; ``start`` lines are before them.

    Raises:
        DataError: a line is too long, or nested too deep; the error names the line.
    """
    text = np.frombuffer(block, np.uint8)
    ends = _places(text, lambda piece: piece == 0x0A)
    longer = np.diff(ends, prepend=-1, append=len(text)) > MOST_BYTES + 1
    if longer.any():
        raise too_long(start + int(longer.argmax()) + 1)
    opening = _places(text, lambda piece: piece | 0x20 == 0x7B)  # the codes of "[" and "{" differ in one bit
    # Between an object and the next one nothing is open. Other line ends may stand within an object.
    last = ends[(ends > 1) & (ends < len(text) - 1)]
    before = np.where(text[last - 1] == ord("\r"), text[last - 2], text[last - 1])
    last = last[(before == ord("}")) & (text[last + 1] == ord("{"))]
    bounds = np.concatenate([[0], last + 1, [len(text)]])
    for k in np.flatnonzero(np.diff(np.searchsorted(opening, bounds)) > MOST_LEVELS):
        low, high = bounds[k : k + 2]
        _check_depth(block[low:high], start + int(np.searchsorted(ends, low)))
    return len(ends)


def too_long(number: int) -> DataError:
    """Return the error about a line that is too long, by its number from 1."""
    return DataError(f"line {number:,} is longer than {MOST_BYTES:,} bytes: write one row per line")


def _places(text: NDArray[np.uint8], chosen: Callable[[NDArray[np.uint8]], Any]) -> NDArray[np.intp]:
    """Return where the bytes are that are ``chosen`` of each piece."""
    found = [start + np.flatnonzero(chosen(text[start : start + _PIECE])) for start in range(0, len(text), _PIECE)]
    return np.concatenate([np.empty(0, np.intp), *found])


def _check_depth(lines: bytes, start: int) -> None:
    signs = np.frombuffer(_STRING.sub(b"", lines).translate(None, _NO_BRACKETS), np.uint8)
    step = np.isin(signs, list(b"[{")).astype(np.int32) - np.isin(signs, list(b"]}"))
    depth = np.cumsum(step, dtype=np.int32)
    if depth.max(initial=0) > MOST_LEVELS:
        first = np.flatnonzero((depth == 1) & (step == 1))
        first = first[first <= depth.argmax()].max(initial=0)  # where the row begins
        raise DataError(
            f"line {start + 1 + np.count_nonzero(signs[:first] == 0x0A):,} nests lists and objects {depth.max():,} "
            f"deep, more than {MOST_LEVELS}: leave that column out, or write it as text"
        )


_PIECE_BYTES = 2**25
#: Keys of an object under which a table stands.
_HOLDS_ROWS = {"data", "rows", "records", "results", "votes", "battles", "judgments", "judgements", "items", "examples"}
_BLANKS = 4096  # bytes among which the first character of a file is, if blanks come before it


def lines_of_json(read: Callable[[int], bytes]) -> bytes:
    """Return the beginning of what ``read`` gives, as lines of JSON; all of it, if one array or one table of pandas.

    Raises:
        DataError: it is an array, and none of JSON objects.
    """
    begun = read(_BLANKS).removeprefix(BOM_UTF8)
    first = begun.lstrip()[:1]
    if first == b"[":
        return _lines_of_array(begun + read(-1))
    if first != b"{":
        return begun
    while b"\n" not in begun.lstrip() and len(begun) < MOST_BYTES and (more := read(_PIECE_BYTES)):
        begun += more
    line, _, rest = begun.lstrip().partition(b"\n")
    if rest.strip() and line.rstrip()[-1:] not in b"{[,":
        return begun  # an object on every line
    begun += read(-1)
    try:
        rows = rows_of_document(loads(begun))
    except (ValueError, RecursionError):
        return begun  # the line that is broken is named when it is read
    return begun if rows is None else b"\n".join(dumps(row).encode() for row in rows)


def rows_of_document(document: Any) -> list[dict[str, Any]] | None:
    """Return the rows of one JSON object that is a table; None for other objects.

    It is one as pandas writes it (``orient`` "columns", "list", "split" or "table"), leaderbot's pairs and counts, or
    it has rows under a key such as "data", beside what it says of all of them.
    """
    if not isinstance(document, dict) or not document:
        return None
    if {"columns", "data"} <= document.keys():
        return [dict(zip(document["columns"], row, strict=True)) for row in document["data"]]
    if {"schema", "data"} <= document.keys():
        return list(document["data"])
    if {"models", "X", "Y"} <= document.keys():
        names = document["models"]
        return [
            {"model_a": names[one], "model_b": names[other], "wins_a": won, "ties": tied, "wins_b": lost}
            for (one, other), (won, lost, tied) in zip(document["X"], document["Y"], strict=True)
        ]
    if (rows := _rows_within(document)) is not None:
        return rows
    columns = list(document.values())
    if len(columns) > 1 and all(isinstance(column, list) and len(column) == len(columns[0]) > 0 for column in columns):
        return [dict(zip(document, row, strict=True)) for row in zip(*columns, strict=True)]
    if len(columns) < 2 or not all(
        isinstance(column, dict) and column and column.keys() == columns[0].keys() for column in columns
    ):
        return None
    return [{name: column[row] for name, column in document.items()} for row in columns[0]]


def _rows_within(document: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return the rows of an object that has them under a key such as "data", with what it says of all of them."""
    lists = [key for key, value in document.items() if isinstance(value, list)]
    if len(lists) != 1 or lists[0].casefold() not in _HOLDS_ROWS:
        return None
    rows = document[lists[0]]
    if not rows or not all(isinstance(row, dict) for row in rows):
        return None
    of_all = {key: value for key, value in document.items() if isinstance(value, str | int | float)}
    return [of_all | row for row in rows]


def _lines_of_array(text: bytes) -> bytes:
    try:
        values = loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"cannot be read as an array of JSON objects: {error}") from error
    odd = next((k for k, value in enumerate(values) if not isinstance(value, dict)), None)
    if odd is not None:
        raise DataError(f"value {odd + 1:,} of the array is no JSON object, {{...}}, but {type(values[odd]).__name__}")
    return b"\n".join(dumps(value).encode() for value in values)


def json_tables(read: Callable[[int], bytes], needed: Columns, text: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the needed columns of what ``read`` gives, piece by piece; columns of ``text`` hold strings."""
    names: dict[str, None] = {}
    fields: dict[str, None] = {}
    rest, line = b"", 0
    piece = read(_PIECE_BYTES)
    while piece:
        following = read(_PIECE_BYTES)
        # Strings of JSON hold no line ends: every line end is between values.
        end = piece.rfind(b"\n") + 1 if following else len(piece)
        block, rest = (b"".join([rest, memoryview(piece)[:end]]), piece[end:]) if end else (b"", rest + piece)
        n_lines = check_lines(block, line)
        if len(rest) > MOST_BYTES:
            raise too_long(line + n_lines + 1)
        if block and not block.isspace():
            table, columns, within = _json_block(block, line, needed, text)
            names |= dict.fromkeys(columns)
            fields |= dict.fromkeys(within)
            yield table
        line += n_lines
        piece = following
    if not names:
        raise DataError("the file is empty: it has blank lines only")
    needed.choose(list(names), list(fields))


def _json_block(
    block: bytes, start: int, needed: Columns, text: Sequence[str]
) -> tuple[pa.Table, list[str], list[str]]:
    """Return the needed columns of some lines, the names of all columns, and the paths of all fields within them.

    There are ``start`` lines before the first of these.
    """
    if _holds_null(block):  # in place of an object: Arrow's parser may end the process; Python's names the line
        return _mixed_json_block(block, start, needed)
    # Arrow adds the columns that its schema names, so only those that are there may be named.
    there = [name for name in text if b'"%b"' % name.encode() in block]
    try:
        table = _parsed_json(block, there)
        filled = [name for name in there if table[name].null_count < len(table)]
        if filled != there:
            table = _parsed_json(block, filled)
        names, fields = table.column_names, field_names(table.schema)
        chosen = taken(table, needed.among(names, fields))
        chosen.validate(full=True)  # the parser takes bytes that are no UTF-8
    except (pa.ArrowInvalid, UnicodeDecodeError):
        # Some column, perhaps not a needed one, has values of several types, or a name is a number: only Python's
        # parser reads that. Or a line is broken: Python's parser says which one.
        return _mixed_json_block(block, start, needed)
    return chosen, names, fields


def _holds_null(block: bytes) -> bool:
    """Return whether null begins a line, but for lines within an object, or follows an object."""
    places = (found.start() for null in _NULLS for found in null.finditer(block))
    before = (block[max(place - 64, 0) : place + 1].rstrip() for place in places)
    return block.lstrip().startswith(b"null") or any(text[-1:] not in (b":", b",", b"[") for text in before)


def _parsed_json(block: bytes, text: Sequence[str]) -> pa.Table:
    """Return a table of lines; columns of ``text`` hold strings, even if they look like dates."""
    schema = pa.schema([(name, pa.string()) for name in text])
    parse = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer")
    try:
        return json.read_json(pa.BufferReader(block), parse_options=parse)  # in parallel
    except pa.ArrowInvalid as error:
        if "straddl" not in str(error):
            raise
        return json.read_json(pa.BufferReader(block), json.ReadOptions(block_size=len(block)), parse)


def _mixed_json_block(block: bytes, start: int, needed: Columns) -> tuple[pa.Table, list[str], list[str]]:
    rows: dict[int, Any] = {}
    for number, line in enumerate(block.split(b"\n"), start=start + 1):
        if not line.strip():
            continue
        try:
            rows[number] = loads(line)
        except ValueError as error:
            hint = "; save the file as UTF-8" if isinstance(error, UnicodeDecodeError) else ""
            raise DataError(f"line {number:,} cannot be read as JSON: {error}{hint}") from error
        if not isinstance(rows[number], dict):
            raise DataError(f"line {number:,} cannot be read: every line must hold one JSON object, {{...}}")
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    fields = [] if set(needed.named) <= set(names) else fields_of_rows(list(rows.values()))
    table = {}
    for name in needed.among(names, fields):
        values = [value_at(row, name) for row in rows.values()]
        if not _is_writable(name):
            number = next(n for n, row in rows.items() if name in row)
            raise DataError(
                f"line {number:,}: the name of column {name!r} holds half of a surrogate pair, which is not a "
                "character: correct that line"
            )
        try:
            table[name] = pa.array(values)
        except UnicodeEncodeError as error:
            number = next(n for n, value in zip(rows, values, strict=True) if not _is_writable(value))
            raise DataError(
                f"line {number:,}: column {name!r} holds half of a surrogate pair, {error.object[error.start]!r}, "
                "which is not a character: correct that line"
            ) from error
        except OverflowError as error:
            raise DataError(f"column {name!r} holds numbers of more than 64 bits: write them as text") from error
        except pa.ArrowException as error:
            there = [(type(x).__name__, line) for x, line in zip(values, rows, strict=True) if x is not None]
            kinds = Counter(kind for kind, _ in there)
            if len(kinds) == 1 and kinds.keys() <= {"dict", "list"}:
                raise DataError(
                    f"column {name!r} holds {'objects' if 'dict' in kinds else 'lists'} whose own values mix types: "
                    "write what you need of them as columns, in lines of one kind"
                ) from error
            lines = ", ".join(f"{next(line for its_kind, line in there if its_kind == kind):,}" for kind in kinds)
            mixture = f"{', '.join(f'{kind} ({count:,})' for kind, count in kinds.items())}, first in lines {lines}"
            raise DataError(f"column {name!r} mixes values of types {mixture}; write names as text") from error
    return pa.table(table), names, fields


def _is_writable(value: Any) -> bool:
    """Return whether all text within a value of JSON can be written in UTF-8."""
    try:
        dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
