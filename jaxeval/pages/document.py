"""One HTML file from a template, plain scripts and styles, and data; nothing else can run in it or be fetched.

A page has at most `MOST_BYTES`: rows are packed as columns, votes by pair and histories are there while there is room.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.execution.atomic_write import whole_file
from jaxeval.show.documents import LATEX, LATEX_SIGN, MARKDOWN_SIGN
from jaxeval.show.files import FORMULA
from jaxeval.wording import counted

#: Files of this package that become one script, in this order: the others declare, and `main.js` starts.
SCRIPTS = (
    "dom.js", "format.js", "packed.js", "state.js", "copying.js", "tables.js", "charts.js", "board.js", "intervals.js",
    "prices.js", "categories.js", "history.js", "refit.js", "what_if.js", "heat_maps.js", "results.js", "about.js",
    "main.js",
)  # fmt: skip
#: Further ones of a page that reads votes, before `main.js`.
READING = ("resample.js", "votes_file.js", "blank.js")
LOADER, STYLES = "loader.js", ("page.css",)
#: Characters that could end the element around the data, or begin another one.
_IN_MARKUP = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def document(
    template: str, data: Mapping[str, Any], reads: bool = False, page: Mapping[str, Any] | None = None,
    small: bool = False,
) -> str:  # fmt: skip
    """Return the page of a template in ``templates``, which extends ``base.html.jinja``.

    The script gets the ``data``; it ``reads`` files of votes and resamples them in a worker, or is ``small``: packed,
    and started by ``loader.js``. The template shows the ``page``, by default the data, to readers without scripts.
    """
    scripts, style = [script_text(reads)], style_text()
    code = packed_text(scripts[0].encode()) if small else None
    if small:
        scripts.insert(0, _joined([LOADER]))
    values = {
        "policy": policy(scripts, style, reads), "script": scripts[0], "code": code, "style": style,
        "data": json_in_html(data), "page": data if page is None else page,
    }  # fmt: skip
    return f"{_environment().get_template(template).render(**values).strip()}\n"


def packed_text(content: bytes) -> str:
    """Return bytes as base64 of gzip."""
    return b64encode(gzip.compress(content, 9, mtime=0)).decode("ascii")


def write_document(html: str, path: str | Path) -> None:
    """Write a page as UTF-8, whole or not at all."""
    with whole_file(path) as file:
        file.write(html.encode())


def policy(scripts: Sequence[str], style: str, reads: bool = False) -> str:
    """Return the content-security policy: only these scripts and this style may run, and no request is allowed.

    A page that ``reads`` votes may start a worker from a text of its own, which obeys the same policy.
    """
    rules = [
        "default-src 'none'",
        f"script-src {' '.join(map(_hash, scripts))}",
        f"style-src {_hash(style)}",
        "img-src data:",  # the icon, without which browsers ask servers for one
        *(["worker-src blob:"] if reads else []),
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join(rules)


def json_in_html(data: Mapping[str, Any]) -> str:
    """Return ``data`` as ASCII JSON without characters of markup, whatever names it holds."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for sign, escape in _IN_MARKUP.items():
        text = text.replace(sign, escape)
    return text


@cache
def script_text(reads: bool = False) -> str:
    """Return all scripts within one function, so that they declare no global name."""
    *names, main = SCRIPTS
    text = written_signs() + _joined([*names, *(READING if reads else ()), main])
    return f'(() => {{\n"use strict";\n{text}}})();\n'


def written_signs() -> str:
    """Return what `jaxeval.show` escapes in CSV, Markdown and LaTeX, for the script that copies tables."""
    patterns = {"formula": FORMULA, "markdown": MARKDOWN_SIGN, "latex": LATEX_SIGN}
    signs = {name: pattern.pattern for name, pattern in patterns.items()} | {"latex_signs": LATEX}
    return f"const WRITTEN = {json.dumps(signs)};\n"


@cache
def style_text() -> str:
    """Return all styles."""
    return _joined(STYLES)


def _joined(names: Sequence[str]) -> str:
    home = files(__package__)
    return "".join(home.joinpath(name).read_text(encoding="utf-8") for name in names)


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _environment() -> Any:
    """Return the templates. They escape all values but our own script, style and JSON, which they mark as safe."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("jaxeval.pages"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "rating": lambda value: "unrated" if value is None else f"{value:.1f}",
        "interval": _interval,
        "count": lambda value: f"{value:,.6g}" if isinstance(value, float) else f"{value:,}",
    }
    return environment


def _interval(row: Mapping[str, Any]) -> str:
    """Return the ends of an interval as distances from the rating."""
    if "rating" not in row or "lower" not in row:
        return ""
    upper, lower = (float(row[end]) - row["rating"] for end in ("upper", "lower"))
    return f"{upper:+.1f} / {lower:+.1f}".replace("-", "\u2212").replace("inf", "\u221e")


def number_of(value: Any) -> float | int | str | None:
    """Return a number for JSON, rounded to a millionth: "inf" and "-inf" for infinite ones, None for missing ones."""
    if value is None or pd.isna(value):
        return None
    if isinstance(value, int | np.integer):
        return int(value)
    if np.isinf(value):
        return "inf" if value > 0 else "-inf"
    rounded = round(float(value), 6)
    return int(rounded) if rounded == int(rounded) else rounded


def free_id(title: str, taken: set[str]) -> str:
    """Return a short id of letters and digits that is not ``taken``; it is added to those."""
    stem = re.sub(r"[\W_]+", "-", title.casefold()).strip("-")[:40] or "part"
    name, k = stem, 2
    while name in taken:
        name, k = f"{stem}-{k}", k + 1
    taken.add(name)
    return name


#: Bytes of a page. A larger one rounds its numbers to what is printed, and leaves out votes by pair and histories.
MOST_BYTES = 400_000
#: Rows that readers without scripts see; other boards than the first have at least so many.
_STATIC_ROWS, _FEWEST_STATIC = 400, 5
#: Decimals of a whole page, of one that is rounded, and of changes of ratings on that.
_EXACT, _PRINTED, _CHANGES = 6, 1, 3
#: Codes of values that are no numbers; numbers follow.
_CODES = {None: 0, "inf": 1, "-inf": 2}
#: Values of rows that differ little from one row to the next.
_IN_STEPS = {"rank", "best", "worst", "tier", "rating"}
_PARTS = ("more", "was")
#: Values that are told by their distance from the rating, and its sign.
_FROM_RATING = {(None, "lower"): -1, (None, "upper"): 1, ("was", "rating"): -1}


def packed_numbers(columns: Sequence[NDArray[np.int64]]) -> dict[str, Any]:
    """Return columns of whole numbers from 0 on: ``bytes``, how many each number of a column has, and ``text``.

    A column's lowest bytes come first, then all second ones, and so on, as bytes of one place are alike.
    """
    sizes = [max((int(column.max(initial=0)).bit_length() + 7) // 8, 1) for column in columns]
    planes = [
        ((column >> (8 * place)) & 255).astype(np.uint8).tobytes()
        for column, size in zip(columns, sizes, strict=True)
        for place in range(size)
    ]
    return {"bytes": sizes, "text": packed_text(b"".join(planes))}


def codes(values: Iterable[Any], steps: bool = False) -> NDArray[np.int64]:
    """Return whole numbers, "inf", "-inf" and None as numbers from 0 on; of numbers in ``steps`` the differences."""
    texts = list(values)
    special = np.array([_CODES.get(value, -1) if value is None or isinstance(value, str) else -1 for value in texts])
    whole = np.array([value for value, code in zip(texts, special, strict=True) if code < 0], np.int64)
    if steps:
        whole = np.diff(whole, prepend=0)
    special[special < 0] = len(_CODES) + np.where(whole < 0, -2 * whole - 1, 2 * whole)
    return special.astype(np.int64)


def packed_rows(boards: Sequence[Mapping[str, Any]], decimals: int) -> dict[str, Any]:
    """Return the rows of all boards, one after another, as columns ``{key, part, decimals, steps}`` and their numbers.

    Ends of intervals are distances from the rating, and so is an earlier rating. ``part`` is "more", "was" or None.
    """
    rows = [row for board in boards for row in board["rows"]]
    flags = list(dict.fromkeys(row["flags"] for row in rows if "flags" in row))
    place = {text: k for k, text in enumerate(flags)}
    keys: dict[tuple[str | None, str], None] = {(None, key): None for row in rows for key in row if key not in _PARTS}
    keys |= dict.fromkeys((part, key) for part in _PARTS for row in rows for key in row.get(part, {}))
    columns, numbers = [], []
    # The rating comes first: others are told from it.
    for part, key in sorted(keys, key=lambda name: name != (None, "rating")):
        part_rows = [row if part is None else row.get(part, {}) for row in rows]
        if part is None and key == "flags":
            values, places = [place.get(row.get(key)) for row in rows], 0
        else:
            places, values = _scaled(part, key, rows, part_rows, decimals)
        steps = key in _IN_STEPS and part is None
        columns.append({"key": key, "part": part, "decimals": places, "steps": steps})
        numbers.append(codes(values, steps))
    return {"columns": columns, "flags": flags, **packed_numbers(numbers)}


def _scaled(
    part: str | None, key: str, rows: Sequence[Mapping[str, Any]], part_rows: Sequence[Mapping[str, Any]], decimals: int
) -> tuple[int, list[Any]]:
    """Return the decimals of a column, and its values times that power of ten."""
    values = [row.get(key) for row in part_rows]
    sign = _FROM_RATING.get((part, key))
    if sign is None and not any(isinstance(x, float) for x in values):
        return 0, values
    if part is not None:
        decimals = max(decimals, _CHANGES)
    if sign is not None:
        start = [row.get("rating", 0) for row in rows]
        values = [
            x if x is None or isinstance(x, str) else sign * (x - at) for x, at in zip(values, start, strict=True)
        ]
    # Rounded as it is printed.
    return decimals, [
        x if x is None or isinstance(x, str) else round(round(x, decimals) * 10**decimals) for x in values
    ]


def packed_history(history: Mapping[str, Any], decimals: int) -> dict[str, Any]:
    """Return ``dates`` and, for each of the models, its ratings, ranks and ends of intervals (as distances) by day."""
    models = history["models"]
    keys = list(dict.fromkeys(key for series in models.values() for key in series))
    numbers = [codes(models, True)]
    for key in keys:
        rows = [{"rating": rating or 0, key: x} for series in models.values()
                for rating, x in zip(series["rating"], series[key], strict=True)]  # fmt: skip
        values = _scaled(None, key, rows, rows, decimals)[1] if key != "rank" else [row[key] for row in rows]
        numbers.append(codes(values, True))
    return {"dates": history["dates"], "keys": keys, "decimals": decimals, "n": len(models), **packed_numbers(numbers)}


def fitted(data: Mapping[str, Any], size: Callable[[Mapping[str, Any], bool], int]) -> tuple[dict[str, Any], bool]:
    """Return the packed data of a page, without what has no room on it, which boards then say; and whether it is small.

    ``size`` gives bytes of the page of such data, small or not.
    """
    boards = [dict(board) for board in data["boards"]]
    for piece, same in (("pairs", lambda x: x), ("levers", _counts)):
        first: list[tuple[Any, str]] = []
        for board in boards:  # boards with and without covariates are of the same votes
            votes_of_board = board.get(piece)
            if (one := next((name for votes, name in first if votes_of_board == votes), None)) is not None:
                board[piece] = one
            elif votes_of_board is not None:
                first.append((same(votes_of_board), board["id"]))
    for decimals, small in ((_EXACT, False), (_EXACT, True), (_PRINTED, True)):
        packed = _packed({**data, "boards": boards}, decimals)
        if size(packed, small) <= MOST_BYTES:
            return packed, small
    bare = _packed({**data, "boards": _without(boards, {})}, _PRINTED)
    kept = _first_ones(boards, MOST_BYTES - size(bare, True))
    rounded = "Numbers of this page are rounded as they are shown, so that it has at most 400 kB."
    return _packed({**data, "about": [*data["about"], rounded], "boards": _without(boards, kept)}, _PRINTED), True


def _counts(levers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return levers as boards without covariates have them."""
    return [{key: x for key, x in lever.items() if key != "offsets"} for lever in levers]


def _packed(data: Mapping[str, Any], decimals: int) -> dict[str, Any]:
    """Return data with rows as columns, histories as numbers, and lists of categories that add up named once."""
    pools: list[list[str]] = []
    boards = []
    for board in data["boards"]:
        smaller = {**board, "rows": len(board["rows"])}
        if "history" in board:
            smaller["history"] = packed_history(board["history"], min(decimals, _CHANGES))
        if "pool" in board:
            ids = [one["id"] for one in data["boards"] if one["id"] in board["pool"]["ids"] and one["pairs"]]
            if ids not in pools:
                pools.append(ids)
            smaller["pool"] = {**board["pool"], "ids": pools.index(ids)}
        boards.append(smaller)
    packed = {**data, "pools": pools, "rows": packed_rows(data["boards"], decimals), "boards": boards}
    if decimals == _PRINTED:
        packed["models"] = packed_text(json.dumps(data["models"], separators=(",", ":")).encode())
    return packed


#: What boards may lack, each with what it needs.
_PIECES = {"pairs": None, "offsets": "pairs", "levers": "pairs", "history": None}
_ORDER = (("pairs", "offsets"), ("history",), ("levers",))
_LEAST_DAYS = 8


def _first_ones(boards: Sequence[Mapping[str, Any]], room: int) -> dict[tuple[str, str], Any]:
    """Return the pieces that have room, by board and kind: of the first board, then of those with the most votes."""
    room -= 120 * len(boards)  # for sentences on what is left out
    first = {boards[0]["id"], boards[0].get("controlled"), boards[0].get("without")}
    order = sorted(boards, key=lambda board: (board["id"] not in first, -board["n_votes"]))
    kept: dict[tuple[str, str], Any] = {}
    for group in ([board for board in order if (board["id"] in first) is is_first] for is_first in (True, False)):
        for kinds in _ORDER:
            for board in group:
                for kind in kinds:
                    piece, needed = board.get(kind), _PIECES[kind]
                    if piece is None or (needed is not None and (board["id"], needed) not in kept):
                        continue
                    if kind == "history":
                        piece = _thinned(piece, room // 2 if group[0]["id"] in first else room)
                    if isinstance(piece, str) and (piece, kind) not in kept:
                        continue
                    cost = len(json.dumps(packed_history(piece, _PRINTED) if kind == "history" else piece))
                    if cost <= room:
                        room -= cost
                        kept[board["id"], kind] = piece
    return kept


def _thinned(history: Mapping[str, Any], room: int) -> Mapping[str, Any]:
    """Return a history with every second day, or fewer, down to a few, if it is larger than ``room``."""
    while len(history["dates"]) > _LEAST_DAYS and len(json.dumps(packed_history(history, _PRINTED))) > room:
        days = list(range(len(history["dates"])))[::-2][::-1]
        models = {
            m: {key: [x[k] for k in days] for key, x in series.items()} for m, series in history["models"].items()
        }
        history = {"dates": [history["dates"][k] for k in days], "models": models}
    return history


def _without(boards: Sequence[Mapping[str, Any]], kept: Mapping[tuple[str, str], Any]) -> list[dict[str, Any]]:
    """Return boards with the ``kept`` pieces alone, and with sentences on the others."""
    n_pairs = sum((board["id"], "pairs") in kept for board in boards)
    kept_boards = []
    for board in boards:
        pieces = {key: x for key, x in board.items() if key not in _PIECES}
        pieces |= {kind: kept[board["id"], kind] for kind in _PIECES if (board["id"], kind) in kept}
        pieces.setdefault("pairs", None)
        notes = []
        if board["pairs"] is not None and pieces["pairs"] is None:
            notes.append("its votes by pair")
        if "history" in board and "history" not in pieces:
            notes.append("its history")
        elif "history" in board and len(pieces["history"]["dates"]) < len(board["history"]["dates"]):
            notes.append(
                f"{counted(len(board['history']['dates']) - len(pieces['history']['dates']), 'day')} of its history"
            )
        if "levers" in board and "levers" not in pieces:
            notes.append("the votes on short answers")
        if notes:
            pieces["notes"] = [*board["notes"], f"No room on a page of 400 kB for {' and '.join(notes)}."]
        needs = "offsets" if "offsets" in board else "pairs"
        if board["what_if"] is None and board.get(needs) is not None and pieces.get(needs) is None:
            pieces["what_if"] = (
                f"What-if is off: the page has room for the votes by pair of {counted(n_pairs, 'board')} of "
                f"{len(boards)}, those with the most votes."
            )
        kept_boards.append(pieces)
    return kept_boards


def static_boards(boards: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return boards as readers without scripts see them: of many rows most are of the first board."""
    left = _STATIC_ROWS
    bounded = []
    for k, board in enumerate(boards):
        most = max(left // (len(boards) - k) if k else left, _FEWEST_STATIC)
        shown = board["rows"][:most]
        left -= len(shown)
        more = len(board["rows"]) - len(shown)
        bounded.append({**board, "rows": shown, "more": f"{counted(more, 'more row')} with scripts" if more else ""})
    return bounded
