"""Limits of JSON lines: longer or deeper lines are refused before a parser spends memory or stack on them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from jaxeval.errors import DataError

#: Bytes of a line, at most: 32 MiB.
MOST_BYTES = 2**25
#: The deepest nesting of lists and objects; at some twenty thousand levels, Arrow's parser ends the process.
MOST_LEVELS = 200

_PIECE = 2**17  # bytes looked at together: they stay in a core's cache
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_BRACKETS = b"[]{}"
_NO_BRACKETS = bytes(set(range(256)) - set(_BRACKETS))
# Signs before a bracket that begins a value. Where blanks come before it, it may also follow the object above.
_BEFORE, _BLANK, _BEFORE_BLANK = (
    np.isin(np.arange(256), list(signs)) for signs in (b":,[{", b" \t\r\n", b":,[{ \t\r\n}")
)


def check_lines(block: bytes, start: int) -> None:
    """Check that the lines of ``block``, which has ``start`` lines before it, are within the limits.

    Raises:
        DataError: a line is too long, or nested too deep; the error names the line.
    """
    _check_length(block, start)
    opening = _opening(block)
    half = MOST_LEVELS // 2
    checked = 0
    # A value that is nested too deep holds two of these brackets in a row, with no end of an object between them.
    for low, high in zip(opening[:-half:half].tolist(), opening[half::half].tolist(), strict=True):
        if low < checked or _object_end(block, low, high) >= 0:
            continue
        first = _last_object_end(block, low) + 1
        end = _object_end(block, high, len(block))
        checked = len(block) if end < 0 else end
        if np.searchsorted(opening, checked) - np.searchsorted(opening, first) > MOST_LEVELS:
            _check_depth(block[first:checked], start + count_lines(block[:first]))


def count_lines(block: bytes) -> int:
    """The number of line ends in ``block``: four times as fast as `bytes.count` if there are many."""
    return sum(int(np.count_nonzero(piece == 0x0A)) for _, piece in _pieces(block))


def too_long(number: int) -> DataError:
    """The error about a line that is too long, by its number from 1."""
    return DataError(f"line {number:,} is longer than {MOST_BYTES:,} bytes: write one row per line")


def _check_length(block: bytes, start: int) -> None:
    position = 0
    while len(block) - position > MOST_BYTES:
        end = block.rfind(b"\n", position, position + MOST_BYTES + 1)
        if end < 0:
            raise too_long(start + count_lines(block[:position]) + 1)
        position = end + 1


def _opening(block: bytes) -> NDArray[np.intp]:
    """Where lists and objects may begin: brackets in places of values, and by mistake a few within strings."""
    text = np.frombuffer(block, np.uint8)
    found = [np.empty(0, np.intp)]
    for start, piece in _pieces(block):
        # The codes of "[" and "{" differ in one bit.
        place = start + np.flatnonzero(piece | 0x20 == 0x7B)
        before, further = text[np.maximum(place - 1, 0)], text[np.maximum(place - 2, 0)]
        found.append(place[_BEFORE[before] | (_BLANK[before] & _BEFORE_BLANK[further])])
    return np.concatenate(found)


def _pieces(block: bytes) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    text = np.frombuffer(block, np.uint8)
    for start in range(0, len(text), _PIECE):
        yield start, text[start : start + _PIECE]


def _object_end(block: bytes, start: int, end: int) -> int:
    """The first line end between two positions that ends an object of its own, or -1.

    Other line ends may stand within an object: the parser does not mind them.
    """
    at = block.find(b"\n", start, end)
    while at >= 0 and not _ends_object(block, at):
        at = block.find(b"\n", at + 1, end)
    return at


def _last_object_end(block: bytes, end: int) -> int:
    at = block.rfind(b"\n", 0, end)
    while at >= 0 and not _ends_object(block, at):
        at = block.rfind(b"\n", 0, at)
    return at


def _ends_object(block: bytes, at: int) -> bool:
    if block[at - 1 : at + 2] == b"}\n{":
        return True
    before, after = block[max(at - 64, 0) : at].rstrip(), block[at + 1 : at + 65].lstrip()
    # Within a value, a comma or another end would follow.
    return before.endswith(b"}") and after[:1] not in (b"", b",", b"}", b"]")


def _check_depth(lines: bytes, start: int) -> None:
    brackets = np.frombuffer(_STRING.sub(b"", lines).translate(None, _NO_BRACKETS), np.uint8)
    depth = np.cumsum(np.where(np.isin(brackets, list(b"[{")), 1, -1).astype(np.int32), dtype=np.int32)
    if len(depth) and depth.max() > MOST_LEVELS:
        raise DataError(
            f"line {start + 1:,} nests lists and objects {depth.max():,} deep, more than {MOST_LEVELS}: leave that "
            "column out, or write it as text"
        )
