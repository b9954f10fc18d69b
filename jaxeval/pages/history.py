"""Dated boards: a small table to which each run adds its board, and what a page shows of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd

from jaxeval.errors import DataError
from jaxeval.execution.atomic_write import whole_file
from jaxeval.pages.boards import Given, scale_of
from jaxeval.wording import counted, named

#: Columns of the table: a row for each model of each board of each day. ``board`` is the category, or empty. Ratings of
#: one ``scale`` (gauge, link, ties, covariates) can be compared.
COLUMNS = ("date", "board", "scale", "model_name", "rating", "rank", "vote_count")


def history_rows(table: pd.DataFrame, day: date) -> pd.DataFrame:
    """Return a leaderboard as rows of a history."""
    board = table["category"].astype(str) if "category" in table else pd.Series("", table.index)
    return pd.DataFrame({
        "date": day.isoformat(),
        "board": board.to_numpy(object),
        "scale": scale_of(table.attrs.get("settings") or {}),
        "model_name": table["model_name"].astype(str).to_numpy(object),
        "rating": table["rating"].to_numpy(float),
        "rank": table["rank"].astype("Int64").array,
        "vote_count": table["vote_count"].astype("int64").array,
    })  # fmt: skip


def with_board(history: pd.DataFrame | None, table: pd.DataFrame, day: date) -> pd.DataFrame:
    """Return the history with the leaderboard of a day, which replaces an earlier one of the same day."""
    new = history_rows(table, day)
    if history is None or history.empty:
        return new
    kept = history[history["date"] != day.isoformat()]
    return pd.concat([kept, new], ignore_index=True).sort_values("date", kind="stable", ignore_index=True)


def read_history(path: str | Path) -> pd.DataFrame:
    """Return a history that `write_history` wrote.

    Raises:
        DataError: the file holds no history.
        OSError: it cannot be read.
    """
    with Path(path).open("rb") as file:
        try:
            table = pd.read_parquet(file)
        except Exception as error:  # of pyarrow, several without a common class
            raise DataError(f"{path} is no history of boards: {error}; delete it to begin anew") from error
    return checked_history(table, str(path))


def checked_history(history: pd.DataFrame, name: str = "history=") -> pd.DataFrame:
    """Return ``history`` checked, with days as 2026-09-13; errors call it ``name``.

    Raises:
        DataError: a column is missing, or a date cannot be read.
    """
    missing = [column for column in COLUMNS if column not in history]
    if missing:
        raise DataError(f"{name} has no {named(missing)}: a history of boards has the columns {', '.join(COLUMNS)}")
    days = history["date"].astype(str)
    known = {}
    for day in days.unique():
        try:
            known[day] = date.fromisoformat(day).isoformat()
        except ValueError as error:
            raise DataError(f"{name} has the date {day!r}, which is none such as 2026-09-13") from error
    text = {column: history[column].fillna("").astype(str) for column in ("board", "scale")}
    return history.assign(date=days.map(known), **text)


def write_history(history: pd.DataFrame, path: str | Path) -> None:
    """Write a history as Parquet, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    with whole_file(path) as file:
        history[list(COLUMNS)].to_parquet(file, index=False)


def add_history(boards: Sequence[dict[str, Any]], history: pd.DataFrame, made: date, number: Mapping[str, int]) -> None:
    """Give boards the ratings and ranks of earlier days, and their rows those of the last day before ``made``.

    Days with ratings on another scale are left out, and a note of the board says so.
    """
    history = history[history["date"] <= made.isoformat()]
    of_board = dict(list(history.groupby("board", sort=False)))
    for board in boards:
        past = of_board.get(board["category"] or "")
        if past is None:
            continue
        alike = past["scale"] == board["scale"]
        other = sorted(set(past["date"]) - set(past["date"][alike]))
        past = past[alike]
        if other and not (board.get("without") or board.get("controlled")):
            are = "is" if len(other) == 1 else "are"
            board["notes"].append(
                f"{counted(len(other), 'day')} of the history, the last {other[-1]}, {are} left out: ratings then were "
                f"on another scale than now ({board['scale']})"
            )
        if past.empty:
            continue
        dates = sorted(past["date"].unique())
        known = past[past["model_name"].isin(number.keys())].drop_duplicates(["date", "model_name"])
        models: dict[int, dict[str, list[Any]]] = {}
        for name, rows in known.groupby("model_name", sort=False):
            by_day = rows.set_index("date").reindex(dates)
            models[number[str(name)]] = {
                "rating": [None if x is pd.NA or x != x or abs(x) == float("inf") else round(float(x), 3)
                           for x in by_day["rating"]],
                "rank": [None if pd.isna(x) else int(x) for x in by_day["rank"]],
            }  # fmt: skip
        board["history"] = {"dates": dates, "models": models}
        before = [day for day in dates if day < made.isoformat()]
        if before:
            add_earlier([board], past[past["date"] == before[-1]], number)
            board["since"] = before[-1]


def add_earlier(boards: Iterable[dict[str, Any]], rows: pd.DataFrame, number: Mapping[str, int]) -> None:
    """Give the rows of boards the rating and rank that they have in ``rows`` of a history on the same scale."""
    was: dict[tuple[str, str, int], dict[str, Any]] = {}
    for row in rows.to_dict("records"):
        if row["model_name"] in number:
            known: dict[str, Any] = {}
            if row["rating"] == row["rating"] and abs(row["rating"]) != float("inf"):
                known["rating"] = round(float(row["rating"]), 6)
            if not pd.isna(row["rank"]):
                known["rank"] = int(row["rank"])
            was[row["board"], row["scale"], number[row["model_name"]]] = known
    for board in boards:
        for row in board["rows"]:
            row_then = was.get((board["category"] or "", board["scale"], row["model"]))
            if row_then is not None and "rating" in row:
                row["was"] = row_then


def earlier_rows(given: Sequence[Given]) -> pd.DataFrame:
    """Return an earlier leaderboard as rows of a history."""
    return pd.concat([history_rows(own.table, date.min) for own in given], ignore_index=True)
