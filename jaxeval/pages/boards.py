"""Leaderboards as a page shows them: boards of rows in types that JSON has, and metadata of the models."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from jaxeval.pages.document import free_id, number_of
from jaxeval.pages.given import Given, scale_of
from jaxeval.show.boards import more_columns, row_notes
from jaxeval.show.cells import cell_text
from jaxeval.show.headings import heading
from jaxeval.wording import Noun, named, slice_title, visible_line

#: Rows of a board, and of all of them, that a page holds.
MOST_ROWS, MOST_ROWS_IN_ALL = 1_000, 20_000
_FEWEST_ROWS = 20
#: Columns, beside ``p_rank_<k>``, that belong to a row of a board and not to its model.
_OF_ROWS = {"borrowed"}
_BY_SCORE = ("expected_score_rating", "expected_score_lower", "expected_score_upper")
_ADDRESS = re.compile(r"https?://[^\s/?#]+(?:[/?#]\S*)?", re.IGNORECASE)


class Models:
    """The models that boards show: the number of each, and its name with all characters visible."""

    def __init__(self, given: Sequence[Given]) -> None:
        most = most_rows(given)
        names = dict.fromkeys(str(name) for own in given for name in _first_rows(own.table, most)["model_name"])
        self.number = {name: k for k, name in enumerate(names)}
        self.shown = [shown_name(name) for name in names]

    def alike(self, competitor: Noun) -> list[str]:
        """Return a sentence on names that differ only by space around them."""
        trimmed: dict[str, list[str]] = {}
        for name, shown in zip(self.number, self.shown, strict=True):
            trimmed.setdefault(name.strip(), []).append(shown)
        same = [", ".join(shown) for shown in trimmed.values() if len(shown) > 1]
        if not same:
            return []
        many = competitor.many
        return [f"names that differ only by space around them are different {many} here: {named(same, 5)}"]


def shown_name(name: str) -> str:
    """Return a name on one line, in quotes if it is empty, or begins or ends with a space, which nobody would see."""
    return visible_line(name) if name and name == name.strip() else f'"{visible_line(name)}"'


def boards_of(given: Sequence[Given], models: Models, columns: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the boards of all categories, with ids for permalinks."""
    boards, taken = [], set[str]()
    titles = Counter(board_title(name, own) for own in given for name in categories(own))
    most = most_rows(given)
    for own in given:
        groups: list[tuple[Any, pd.DataFrame]] = [(None, own.table)]
        if "category" in own.table:
            groups = list(own.table.groupby("category", sort=False))
        warnings = _by_slice(own, [name for name, _ in groups])
        answers = str(own.table.attrs.get("answer", "")).splitlines()
        for k, (name, table) in enumerate(groups):
            title = board_title(name, own)
            if titles[title] > 1 and own.title is not None and name is not None:
                title = f"{own.title}: {title}"
            notes = [visible_line(answers[k])] if len(answers) == len(groups) else []
            if len(table) > most:
                notes.append(
                    f"{own.competitor.counted(len(table))}, of which the first {most:,} by rank are here; the table of "
                    "the command (--out) has all"
                )
            rows = [_row(row, models, columns) for row in table.head(most).to_dict("records")]
            if not any("lower" in row for row in rows):
                notes.append(
                    f"no {own.competitor.one} of this board has an interval: nothing shows how uncertain its ratings "
                    "are"
                )
            board: dict[str, Any] = {
                "id": free_id(title, taken),
                "title": visible_line(title),
                "category": None if name is None else str(name),
                "controls": list(map(str, own.settings.get("features") or [])),
                "scale": scale_of(own.settings),
                "rows": rows,
                "n_models": len(table),
                "n_votes": int(table["vote_count"].sum()) // 2,
                "notes": notes,
                "warnings": [visible_line(sentence) for sentence in warnings[name]],
                "pairs": None,
                "what_if": "What-if is off: no votes came with this page.",
            }
            boards.append(board)
    _join_controls(boards)
    return boards


def most_rows(given: Sequence[Given]) -> int:
    """Return rows of each board that a page holds."""
    n_boards = sum(len(categories(own)) for own in given)
    return min(MOST_ROWS, max(MOST_ROWS_IN_ALL // max(n_boards, 1), _FEWEST_ROWS))


def _first_rows(table: pd.DataFrame, most: int) -> pd.DataFrame:
    return table.groupby("category", sort=False).head(most) if "category" in table else table.head(most)


def categories(own: Given) -> list[Any]:
    """Return names of its categories; only None for one board of all votes."""
    return list(own.table["category"].unique()) if "category" in own.table else [None]


def board_title(name: Any, own: Given) -> str:
    """Return the name of a category; a name that is no text comes with its column, as "1" alone says nothing."""
    if name is None:
        return own.title or "All votes"
    return str(name) if isinstance(name, str) else slice_title(name, own.by)


def columns_of(given: Sequence[Given]) -> list[dict[str, Any]]:
    """Columns beyond those of every leaderboard, with their kinds; they are of models ("model") or of rows ("row")."""
    found: dict[str, dict[str, Any]] = {}
    for own in given:
        for name in more_columns(own.table):
            of_row = name in _OF_ROWS or re.fullmatch(r"p_rank_\d+", str(name)) is not None
            column = own.table[name]
            found.setdefault(
                str(name),
                {
                    "key": str(name),
                    "title": visible_line(_title(str(name))),
                    "kind": "share" if of_row else _kind(column),
                    "of": "row" if of_row else "model",
                },
            )
        if _BY_SCORE[0] in own.table:
            found.setdefault(
                _BY_SCORE[0], {"key": _BY_SCORE[0], "title": "By expected score", "kind": "number", "of": "row"}
            )
    return list(found.values())


def about_models(given: Sequence[Given], models: Models, columns: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each model with its name and its metadata."""
    known: list[dict[str, Any]] = [{"name": name, "about": {}} for name in models.shown]
    of_models = [column for column in columns if column["of"] == "model"]
    for own in given:
        for column in of_models:
            if column["key"] not in own.table:
                continue
            shown = own.table[own.table["model_name"].astype(str).isin(models.number)]
            for name, value in zip(shown["model_name"], shown[column["key"]], strict=True):
                if (plain := _value(value, column["kind"])) is not None:
                    known[models.number[str(name)]]["about"].setdefault(column["key"], plain)
    return known


def is_address(value: Any) -> bool:
    """Return whether text is a web address, which a reader may follow; other schemes may run code."""
    return isinstance(value, str) and _ADDRESS.fullmatch(value) is not None


def _row(row: Mapping[Any, Any], models: Models, columns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    rating = number_of(row["rating"])
    cells = {
        "model": models.number[str(row["model_name"])],
        "rank": number_of(row["rank"]),
        "best": number_of(row.get("rank_best")),
        "worst": number_of(row.get("rank_worst")),
        "rating": None if isinstance(rating, str) else rating,
        "lower": number_of(row["rating_lower"]),
        "upper": number_of(row["rating_upper"]),
        "tier": number_of(row.get("tier")),
        "votes": number_of(row["vote_count"]),
        "flags": visible_line(row_notes(dict(row))) or None,
    }
    if isinstance(rating, str) or rating is None:
        cells["lower"] = cells["upper"] = None
    more = {
        column["key"]: value
        for column in columns
        if column["of"] == "row" and (value := number_of(row.get(column["key"]))) is not None
    }
    return {name: value for name, value in {**cells, "more": more or None}.items() if value is not None}


def _kind(column: pd.Series) -> str:
    known = column.dropna()
    if is_numeric_dtype(column.dtype) and not is_bool_dtype(column.dtype):
        return "number"
    return "link" if len(known) and all(map(is_address, known)) else "text"


def _title(name: str) -> str:
    chance = re.fullmatch(r"p_rank_(\d+)", name)
    return f"P(top {chance[1]})" if chance else heading(name)


def _value(value: Any, kind: str) -> Any:
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return None
    return number_of(value) if kind == "number" else cell_text(value)


def _by_slice(own: Given, names: Iterable[Any]) -> dict[Any, list[str]]:
    """Return warnings of each category, without its name; `general_warnings` has those of no category."""
    names = list(names)
    warnings = list(own.table.attrs.get("warnings", ()))
    if names == [None]:
        return {None: warnings}
    found: dict[Any, list[str]] = {name: [] for name in names}
    for sentence in warnings:
        name = _slice_of(sentence, own, names)
        if name is not None:
            found[name].append(sentence.removeprefix(f"{slice_title(name, own.by)}: "))
    return found


def general_warnings(given: Sequence[Given]) -> list[str]:
    """Return warnings that belong to no single category."""
    messages = []
    for own in given:
        if "category" in own.table:
            names = categories(own)
            warnings = own.table.attrs.get("warnings", ())
            messages += [visible_line(text) for text in warnings if _slice_of(text, own, names) is None]
    return list(dict.fromkeys(messages))


def _slice_of(sentence: str, own: Given, names: Sequence[Any]) -> Any:
    """Return the category that a sentence begins with, or None; the longest, as one name may begin with another."""
    fits = [name for name in names if sentence.startswith(f"{slice_title(name, own.by)}: ")]
    return max(fits, key=lambda name: len(str(name)), default=None)


def _join_controls(boards: Sequence[dict[str, Any]]) -> None:
    """Where a category has one board with covariates and one without, each names the other."""
    of_category: dict[Any, list[dict[str, Any]]] = {}
    for board in boards:
        of_category.setdefault(board["category"], []).append(board)
    for pair in of_category.values():
        if len(pair) == 2 and bool(pair[0]["controls"]) != bool(pair[1]["controls"]):
            without, controlled = sorted(pair, key=lambda board: bool(board["controls"]))
            without["controlled"], controlled["without"] = controlled["id"], without["id"]
