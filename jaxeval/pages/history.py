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
COLUMNS = ("date", "board", "scale", "model", "rating", "rank", "vote_count", "lower", "upper")


def history_rows(table: pd.DataFrame, day: date) -> pd.DataFrame:
    """Return a leaderboard as rows of a history."""
    board = table["category"].astype(str) if "category" in table else pd.Series("", table.index)
    return pd.DataFrame({
        "date": day.isoformat(),
        "board": board.to_numpy(object),
        "scale": scale_of(table.attrs.get("settings") or {}),
        "model": table["model"].astype(str).to_numpy(object),
        "rating": table["rating"].to_numpy(float),
        "rank": table["rank"].astype("Int64").array,
        "vote_count": table["vote_count"].astype("int64").array,
        "lower": table["lower"].to_numpy(float),
        "upper": table["upper"].to_numpy(float),
    })  # fmt: skip


def with_board(history: pd.DataFrame | None, table: pd.DataFrame, day: date) -> pd.DataFrame:
    """Return the history with the leaderboard of a day, which replaces an earlier one of the same day."""
    new = history_rows(table, day)
    if history is None or history.empty:
        return new
    kept = history[history["date"] != day.isoformat()]
    return pd.concat([kept, new], ignore_index=True).sort_values("date", kind="stable", ignore_index=True)


def read_history(path: str | Path) -> pd.DataFrame:
    """Return a history that `write_history` wrote."""
    with Path(path).open("rb") as file:
        try:
            table = pd.read_parquet(file)
        except Exception as error:  # of pyarrow, several without a common class
            raise DataError(f"{path} is no history of boards: {error}; delete it to begin anew") from error
    return checked_history(table, str(path))


def checked_history(history: pd.DataFrame, name: str = "history=") -> pd.DataFrame:
    """Return ``history`` checked, with days as 2026-09-13; errors call it ``name``."""
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
    """Write a history as Parquet, whole or not at all."""
    with whole_file(path) as file:
        history[[*COLUMNS]].to_parquet(file, index=False)


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
        known = past[past["model"].isin(number.keys())].drop_duplicates(["date", "model"])
        models: dict[int, dict[str, list[Any]]] = {}
        for name, rows in known.groupby("model", sort=False):
            by_day = rows.set_index("date").reindex(dates)
            models[number[str(name)]] = {
                "rating": _finite(by_day["rating"], 3),
                "rank": [None if pd.isna(x) else int(x) for x in by_day["rank"]],
                **{end: _finite(by_day[end], 1) for end in ("lower", "upper")},
            }
        board["history"] = {"dates": dates, "models": models}
        before = [day for day in dates if day < made.isoformat()]
        if before:
            add_earlier([board], past[past["date"] == before[-1]], number)
            board["since"] = before[-1]


def _finite(values: pd.Series, decimals: int) -> list[float | None]:
    return [None if pd.isna(x) or abs(x) == float("inf") else round(float(x), decimals) for x in values]


def add_earlier(boards: Iterable[dict[str, Any]], rows: pd.DataFrame, number: Mapping[str, int]) -> None:
    """Give the rows of boards the rating and rank that they have in ``rows`` of a history on the same scale.

    ``half`` of an earlier rating is half the 95 % interval of its change; see `_half_of_change`.
    """
    was: dict[tuple[str, str, int], dict[str, Any]] = {}
    for row in rows.to_dict("records"):
        if row["model"] in number:
            known: dict[str, Any] = {}
            if row["rating"] == row["rating"] and abs(row["rating"]) != float("inf"):
                known["rating"] = round(float(row["rating"]), 6)
            if not pd.isna(row["rank"]):
                known["rank"] = int(row["rank"])
            known["votes"] = int(row["vote_count"])
            was[row["board"], row["scale"], number[row["model"]]] = known
    for board in boards:
        there = [(row, was.get((board["category"] or "", board["scale"], row["model"]))) for row in board["rows"]]
        met = [(row, then) for row, then in there if then is not None and "rating" in row]
        kept = all(row["votes"] >= then["votes"] for row, then in met)
        grown = sum(row["votes"] for row, _ in met) / max(sum(then["votes"] for _, then in met), 1)
        for row, then in met:
            half = _half_of_change(row, then["votes"], kept, grown)
            row["was"] = {name: x for name, x in then.items() if name != "votes"} | half


def _half_of_change(row: Mapping[str, Any], before: int, kept: bool, grown: float) -> dict[str, float]:
    """Return half the interval of a rating's change since there were ``before`` votes; nothing if it has no interval.

    An estimate of n votes has the variance V / n. If the votes of the earlier board are among those of the later one,
    the covariance of two efficient estimates is the variance of the later one (Hausman 1978, DOI 10.2307/1913827), so
    that their difference has V / n_before - V / n. Other votes are independent: the variances add up. A model with few
    new votes moves with the others: its votes count as ``grown`` as those of the board at least.
    """
    lower, upper = row.get("lower"), row.get("upper")
    if not isinstance(lower, int | float) or not isinstance(upper, int | float) or before == 0:
        return {}
    times = max(row["votes"] / before, grown)
    return {"half": round((upper - lower) / 2 * (times - 1 if kept else times + 1) ** 0.5, 6)}


def earlier_rows(tables: Sequence[Given]) -> pd.DataFrame:
    """Return an earlier leaderboard as rows of a history."""
    return pd.concat([history_rows(board.table, date.min) for board in tables], ignore_index=True)
