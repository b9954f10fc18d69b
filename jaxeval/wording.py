"""Words that messages share: counted things, similar names, and characters that a terminal must not obey."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_MOST_HINTS = 3
#: Control and format characters, lone surrogates, line and paragraph separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def counted(n: Any, one: str, many: str | None = None, digits: int = 6) -> str:
    """A number and what it counts: "1 file", "2,000 files".

    Args:
        n: the number.
        one: the words after 1.
        many: the words after every other number; by default ``one`` and an s.
        digits: significant digits to which a number that is not whole is rounded.
    """
    number = f"{n:,.0f}" if n == round(n) else f"{n:,.{digits}g}"
    return f"{number} {one if number == '1' else many or f'{one}s'}"


def named(names: pd.Index | Sequence[Any], limit: int = 8) -> str:
    """The first ``limit`` names, and how many more there are."""
    shown = ", ".join(map(str, names[:limit]))
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit:,} more"


def did_you_mean(name: Any, known: Iterable[Any]) -> str:
    """The end of an error about an unknown ``name``: "; did you mean 'winner'?"; empty if no ``known`` name is similar.

    Names that contain ``name`` come first, and then names that differ in few letters. Case does not matter.
    """
    by_key: dict[str, list[str]] = {}
    for other in known:
        by_key.setdefault(str(other).casefold(), []).append(repr(str(other)))
    key = str(name).casefold()
    near = [k for k in by_key if key.strip() and key in k]
    near += [k for k in get_close_matches(key, by_key, _MOST_HINTS, 0.7) if k not in near]
    found = [other for k in near for other in by_key[k]][:_MOST_HINTS]
    return f"; did you mean {' or '.join(found)}?" if found else ""


def visible(text: str) -> str:
    r"""``text`` with every invisible character written as Python writes it: \x1b, \r, \u202e.

    Invisible are control characters, which a terminal obeys; format characters, such as overrides of the direction of
    writing and spaces without width, which make one name look like another; and lone surrogates. Line feeds stay.
    """
    if text.isprintable():
        return text
    return "".join(_escaped(sign) if unicodedata.category(sign) in _HIDDEN else sign for sign in text)


def visible_line(value: Any) -> str:
    r"""``value`` as `visible` text on one line, with line feeds written as ``\n``."""
    return visible(str(value)).replace("\n", "\\n")


def shortened(text: str, most: int) -> str:
    """``text`` without its middle where it is longer than ``most`` characters."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}…{text[half + 1 - most :]}"


def _escaped(sign: str) -> str:
    return sign if sign == "\n" else repr(sign)[1:-1]
