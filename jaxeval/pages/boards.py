"""Leaderboards as a page shows them: boards of rows in types that JSON has, and metadata of the models."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_float_dtype, is_numeric_dtype

from jaxeval.data.battles import Battles
from jaxeval.data.model_tables import join_metadata
from jaxeval.errors import DataError
from jaxeval.pages.document import free_id, number_of
from jaxeval.ratings import boards
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit
from jaxeval.ratings.leaderboard import PRELIMINARY_VOTES, leaderboard
from jaxeval.show.boards import is_board, more_columns, row_notes
from jaxeval.show.cells import SHARE, cell_text, heading, kinds_of
from jaxeval.show.shown import Shown
from jaxeval.wording import Noun, competitor_of, competitor_settings, named, slice_title, visible_line

#: Rows of a board, and of all of them, that a page holds.
MOST_ROWS, MOST_ROWS_IN_ALL = 1_000, 20_000
_FEWEST_ROWS = 20
_BY_SCORE = "expected_score_rating"
_ADDRESS = re.compile(r"https?://[^\s/?#]+(?:[/?#]\S*)?", re.IGNORECASE)


class Models:
    """The models that boards show: the number of each, and its name with all characters visible."""

    def __init__(self, tables: Sequence[Given]) -> None:
        most, all_of = most_rows(tables), [board.table for board in tables]
        shown = [(x.groupby("category", sort=False) if "category" in x else x).head(most)["model"] for x in all_of]
        names = dict.fromkeys(str(name) for column in shown for name in column)
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


def boards_of(tables: Sequence[Given], models: Models, columns: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the boards of all categories, with ids for permalinks."""
    boards, taken = [], set[str]()
    titles = Counter(board_title(name, shown) for shown in tables for name in categories(shown))
    most = most_rows(tables)
    for shown in tables:
        groups: list[tuple[Any, pd.DataFrame]] = [(None, shown.table)]
        if "category" in shown.table:
            groups = list(shown.table.groupby("category", sort=False))
        warnings = _by_slice(shown, [name for name, _ in groups])
        answers = str(shown.table.attrs.get("answer", "")).splitlines()
        for k, (name, table) in enumerate(groups):
            title = board_title(name, shown)
            if titles[title] > 1 and shown.title is not None and name is not None:
                title = f"{shown.title}: {title}"
            notes = []
            if len(table) > most:
                notes.append(
                    f"{shown.competitor.counted(len(table))}, of which the first {most:,} by rank are here; the table "
                    "of the command (--out) has all"
                )
            rows = [_row(row, models, columns) for row in table.head(most).to_dict("records")]
            if not any("lower" in row for row in rows):
                notes.append(
                    f"no {shown.competitor.one} of this board has an interval: nothing shows how uncertain its ratings "
                    "are"
                )
            board: dict[str, Any] = {
                "id": free_id(title, taken), "title": visible_line(title),
                "category": None if name is None else str(name),
                "controls": list(map(str, shown.settings.get("features") or [])), "scale": scale_of(shown.settings),
                "rows": rows,
                "answer": _answer(answers[k], name, shown, title) if len(answers) == len(groups) else None,
                "n_models": len(table), "n_votes": int(table["vote_count"].sum()) // 2, "notes": notes,
                "warnings": [visible_line(sentence) for sentence in warnings[name]], "pairs": None,
                "what_if": "What-if is off: no votes came with this page.",
            }  # fmt: skip
            boards.append(board)
    _join_controls(boards)
    return boards


def _answer(sentence: str, name: Any, board: Given, title: str) -> str:
    """Return who leads a board, in a sentence that begins with what readers call its category."""
    if name is None:
        return visible_line(sentence)
    return visible_line(f"{title}: {sentence.removeprefix(f'{slice_title(name, board.by)}: ')}")


def most_rows(tables: Sequence[Given]) -> int:
    """Return rows of each board that a page holds."""
    n_boards = sum(len(categories(board)) for board in tables)
    return min(MOST_ROWS, max(MOST_ROWS_IN_ALL // max(n_boards, 1), _FEWEST_ROWS))


def categories(board: Given) -> list[Any]:
    """Return names of its categories; only None for one board of all votes."""
    return list(board.table["category"].unique()) if "category" in board.table else [None]


def board_title(name: Any, board: Given) -> str:
    """Return the label of a category, or its name; one that is no text comes with its column, as "1" says nothing."""
    if name is None:
        return board.title or "All votes"
    if str(name) in board.labels:
        return board.labels[str(name)]
    return str(name) if isinstance(name, str) else slice_title(name, board.by)


def columns_of(tables: Sequence[Given]) -> list[dict[str, Any]]:
    """Return columns beyond those of every leaderboard, with their kinds, of models ("model") or of rows ("row")."""
    columns: dict[str, dict[str, Any]] = {}
    for board in tables:
        kinds = dict(zip(board.table.columns, kinds_of(board.table), strict=True))
        for name in more_columns(board.table):
            column = board.table[name]
            of_row = is_float_dtype(column.dtype) and (kinds[name].percent or kinds[name] == SHARE)
            kind, of = ("share", "row") if of_row else (_kind(column), "model")
            entry = {"key": str(name), "title": visible_line(_title(str(name))), "kind": kind, "of": of}
            columns.setdefault(str(name), entry)
        if _BY_SCORE in board.table:
            entry = {"key": _BY_SCORE, "title": "By expected score", "kind": "number", "of": "row"}
            columns.setdefault(_BY_SCORE, entry)
    return list(columns.values())


def about_models(tables: Sequence[Given], models: Models, columns: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each model with its name and its metadata."""
    known: list[dict[str, Any]] = [{"name": name, "about": {}} for name in models.shown]
    of_models = [column for column in columns if column["of"] == "model"]
    for board in tables:
        for column in of_models:
            if column["key"] not in board.table:
                continue
            shown = board.table[board.table["model"].astype(str).isin(models.number)]
            for name, value in zip(shown["model"], shown[column["key"]], strict=True):
                if (plain := _value(value, column["kind"])) is not None:
                    known[models.number[str(name)]]["about"].setdefault(column["key"], plain)
    return known


def is_address(value: Any) -> bool:
    """Return whether text is a web address, which a reader may follow; other schemes may run code."""
    return isinstance(value, str) and _ADDRESS.fullmatch(value) is not None


def _row(row: Mapping[Any, Any], models: Models, columns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    rating = number_of(row["rating"])
    cells = {
        "model": models.number[str(row["model"])], "rank": number_of(row["rank"]),
        "best": number_of(row.get("rank_best")), "worst": number_of(row.get("rank_worst")),
        "rating": None if isinstance(rating, str) else rating, "lower": number_of(row["lower"]),
        "upper": number_of(row["upper"]), "tier": number_of(row.get("tier")), "votes": number_of(row["vote_count"]),
        "flags": visible_line(row_notes(dict(row))) or None,
    }  # fmt: skip
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


def _by_slice(board: Given, names: Iterable[Any]) -> dict[Any, list[str]]:
    """Return warnings of each category, without its name; `general_warnings` has those of no category."""
    names = list(names)
    warnings = list(board.table.attrs.get("warnings", ()))
    if names == [None]:
        return {None: warnings}
    by_name: dict[Any, list[str]] = {name: [] for name in names}
    for sentence in warnings:
        name = _slice_of(sentence, board, names)
        if name is not None:
            by_name[name].append(sentence.removeprefix(f"{slice_title(name, board.by)}: "))
    return by_name


def general_warnings(tables: Sequence[Given]) -> list[str]:
    """Return warnings that belong to no single category."""
    messages = []
    for board in tables:
        if "category" in board.table:
            names = categories(board)
            warnings = board.table.attrs.get("warnings", ())
            messages += [visible_line(text) for text in warnings if _slice_of(text, board, names) is None]
    return list(dict.fromkeys(messages))


def _slice_of(sentence: str, board: Given, names: Sequence[Any]) -> Any:
    """Return the category that a sentence begins with, or None; the longest, as one name may begin with another."""
    fits = [name for name in names if sentence.startswith(f"{slice_title(name, board.by)}: ")]
    return max(fits, key=lambda name: len(str(name)), default=None)


def _join_controls(boards: Sequence[dict[str, Any]]) -> None:
    """Name in each board of a category, one with covariates and one without, the other."""
    of_category: dict[Any, list[dict[str, Any]]] = {}
    for board in boards:
        of_category.setdefault(board["category"], []).append(board)
    for pair in of_category.values():
        if len(pair) == 2 and bool(pair[0]["controls"]) != bool(pair[1]["controls"]):
            without, controlled = sorted(pair, key=lambda board: bool(board["controls"]))
            without["controlled"], controlled["without"] = controlled["id"], without["id"]


TAKEN = (
    "a leaderboard, as leaderboard() returns it, what bootstrap(), audit(), soft_elo() and others return, or several "
    "of them as a list or as a mapping of titles"
)


class Given(NamedTuple):
    """A leaderboard, which may have several categories."""

    title: str | None
    table: pd.DataFrame
    labels: Mapping[str, str] = {}  # of categories, in words

    @property
    def settings(self) -> Mapping[str, Any]:
        """What made it; nothing where it does not say so."""
        return cast("Mapping[str, Any]", self.table.attrs.get("settings") or {})

    @property
    def competitor(self) -> Noun:
        """What it rates."""
        return competitor_of(self.settings)

    @property
    def controls(self) -> bool:
        """Whether it controls for covariates."""
        return bool(self.settings.get("features"))

    @property
    def by(self) -> list[str]:
        """The columns whose groups are its categories."""
        return list(self.settings.get("by") or [])


def scale_of(settings: Mapping[str, Any]) -> str:
    """Say all that ratings of two days must share to be compared: gauge, link, ties and covariates."""
    usual = {"link": "logit", "ties": "half", "features": ()}
    parts = [str(settings.get("gauge", ""))]
    for name, value in usual.items():
        units = settings.get(name) or value
        if list(units) != list(value):
            parts.append(f"{name} {', '.join(map(str, units)) if isinstance(units, list | tuple) else units}")
    return ", ".join(filter(None, parts))


def given_boards(results: Any, metadata: Any = None) -> tuple[list[Given], list[tuple[str | None, Any]]]:
    """Return the leaderboards of ``results``, with what ``metadata`` know of their models; and other results."""
    each: list[tuple[str | None, Any]] = [(None, results)]
    in_order = False
    if isinstance(results, pd.DataFrame | Shown) or _of_slices(results):
        pass
    elif isinstance(results, Mapping):
        each = [(str(title), result) for title, result in results.items()]
    elif in_order := isinstance(results, Sequence) and not isinstance(results, str | bytes):
        each = [(None, result) for result in results]
    else:
        raise TypeError(f"a page takes {TAKEN}; got {type(results).__name__}")
    if not each:
        raise DataError(f"there is nothing to show: a page takes {TAKEN}")
    tables = [(title, result, _table(result)) for title, result in each]
    of_boards = [Given(title, table) for title, _, table in tables if table is not None]
    others = [(title, result) for title, result, table in tables if table is None]
    with_and_without = len(of_boards) == 2 and len({board.controls for board in of_boards}) == 2
    if in_order and len(of_boards) > 1 and not with_and_without:
        of_boards = [board._replace(title=f"Board {k}") for k, board in enumerate(of_boards, 1)]
    for title, table, _ in of_boards:
        if table.empty:
            which, noun = "" if title is None else f" {title!r}", competitor_of(table.attrs.get("settings"))
            raise DataError(f"the leaderboard{which} has no {noun.many}")
    if metadata is None:
        return of_boards, others
    if not of_boards:
        raise DataError("metadata= are about the models of a leaderboard, and there is none")
    return [noun._replace(table=join_metadata(noun.table, metadata)) for noun in of_boards], others


def _of_slices(results: Any) -> bool:
    return isinstance(results, Mapping) and bool(results) and all(isinstance(x, Bootstrap) for x in results.values())


def _table(result: Any) -> pd.DataFrame | None:
    """Return a result that is a leaderboard, or becomes one, as its table; None for others."""
    if isinstance(result, Bootstrap) or _of_slices(result):
        return leaderboard(cast("Bootstrap | Mapping[Hashable, Bootstrap]", result))
    if isinstance(result, BradleyTerryFit):
        return fit_table(result)
    if isinstance(result, pd.DataFrame) and is_board(result):
        return result
    known = isinstance(result, Shown) or (isinstance(result, pd.DataFrame) and np.prod(result.shape) > 0)
    if not known or isinstance(result, Battles):
        raise TypeError(f"a page takes {TAKEN}; got {type(result).__name__}")
    return None


def fit_table(fit: BradleyTerryFit, level: float = 0.95) -> pd.DataFrame:
    """Return a fit in the columns of `leaderboard`: with intervals from its errors; no tiers, no rank sets.

    A board that is too wide for a table of all pairs of models has no errors, and so no intervals.
    """
    rating = fit.ratings.to_numpy()
    rated, warnings = np.isfinite(rating), list(fit.warnings)
    if len(rating) > boards.MOST_INVERTED:
        ends, errors = pd.DataFrame(np.nan, fit.ratings.index, ["lower", "upper"]), np.full(len(rating), np.nan)
        best = fit.ratings[rated].idxmax() if rated.any() else None
        answer = "" if best is None else f"{best} has the highest rating, {fit.ratings[best]:.1f}"
        many = fit.competitor.many
        warnings.append(
            f"ratings have no intervals: errors of a fit need its covariance, a table of all pairs of {many}, and "
            f"{len(rating):,} {many} are too many. Those of resamples need none: page(bootstrap(battles), ...)"
        )
    else:
        ends, errors = fit.interval(level), fit.standard_errors.to_numpy()
        answer = str(fit.answer)
    table = pd.DataFrame({
        "model": fit.ratings.index.to_numpy(), "rating": rating, "lower": ends["lower"].to_numpy(),
        "upper": ends["upper"].to_numpy(), "variance": np.where(rated, errors**2, np.nan),
        "vote_count": fit.n_battles.to_numpy(),
        "rank": pd.Series(rating).where(rated).rank(ascending=False, method="first").astype("Int64").array,
        "component": fit.component.to_numpy(), "standing": fit.standing.to_numpy(),
        "preliminary": fit.n_battles.to_numpy() < PRELIMINARY_VOTES, "degenerate_share": 0.0,
    })  # fmt: skip
    order = np.lexsort([table["model"].astype(str), -np.nan_to_num(rating), ~rated])
    table = table.iloc[order].reset_index(drop=True)
    made = {"level": level, "interval": "wald", "n_resamples": 0, "by": [], "min_battles": 0}
    settings = {**asdict(fit.settings), **made, "simultaneous_ranks": False, **competitor_settings(fit.competitor)}
    table.attrs = {"answer": answer, "warnings": warnings, "report": str(fit.report), "settings": settings}
    return table
