"""Results other than leaderboards, as a page shows them: sentences, and tables with intervals as bars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from jaxeval.audits.audit import Audit
from jaxeval.pages.document import free_id, number_of
from jaxeval.show.cells import as_numbers, cell_texts, find_intervals, with_index
from jaxeval.show.headings import heading
from jaxeval.show.shown import Shown, rated, settings_line, view_of
from jaxeval.wording import Noun, counted, visible_line

#: Rows of a table that a page holds.
MOST_ROWS = 1_000


def sections_of(results: Iterable[tuple[str | None, Any]]) -> list[dict[str, Any]]:
    """A section for each table of the results, with an id for permalinks."""
    found, taken = [], set[str]()
    for title, result in results:
        for name, table, notes, warnings in _parts(title, result):
            found.append(
                {
                    "id": free_id(name, taken),
                    "title": visible_line(name),
                    "notes": [visible_line(line) for line in notes if line],
                    "warnings": [visible_line(text) for text in dict.fromkeys(map(str, warnings))],
                    **_table(table, rated(result)),
                }
            )
    return found


_Part = tuple[str, pd.DataFrame | None, Sequence[str], Sequence[str]]


def _parts(title: str | None, result: Any) -> Iterator[_Part]:
    """Title, table, notes and warnings of each section."""
    start = "" if title is None else f"{title}: "
    if isinstance(result, Audit):
        yield f"{start}Can this leaderboard be believed?", None, result.verdict, result.warnings
        for name, question in result.questions.items():
            if name in result.absent:
                yield f"{start}{question}", None, [f"No answer: {result.absent[name]}"], ()
                continue
            part = result.answers[name]
            yield f"{start}{question}", part.table, [finding.text for finding in part.findings()], ()
        yield f"{start}What it rests on", None, result.rests_on, ()
        return
    if isinstance(result, pd.DataFrame) and not isinstance(result, Shown):
        yield title or "Table", result, [settings_line(result.attrs.get("settings"))], result.attrs.get("warnings", ())
        return
    view = view_of(result)
    notes = [*view.sentences, view.title if title else "", settings_line(view.settings)]
    yield title or view.title, view.table, notes, view.warnings
    for name, table in _further_tables(result, view.table):
        yield f"{title or type(result).__name__}: {heading(name)}", table, [], ()


def _further_tables(result: Any, shown: pd.DataFrame | None) -> Iterator[tuple[str, pd.DataFrame]]:
    """Tables among a result's fields, without the one that it shows first."""
    if not is_dataclass(result):
        return
    for field in fields(result):
        table = getattr(result, field.name)
        if isinstance(table, pd.DataFrame) and len(table) and not field.name.startswith("_"):
            if shown is not None and (table is shown or table.equals(shown)):
                continue
            yield field.name, table


def _table(frame: pd.DataFrame | None, competitor: Noun) -> dict[str, Any]:
    """Columns of a table with their texts, numbers to sort by, and bars of intervals."""
    if frame is None or not frame.shape[1]:
        return {"columns": [], "n_rows": 0, "left_out": ""}
    table, n_names = with_index(frame.head(MOST_ROWS))
    texts = cell_texts(table)
    bars = {own.upper: own for own in find_intervals(table)}
    columns: list[dict[str, Any]] = []
    for k, name in enumerate(table.columns):
        column, parts = table.iloc[:, k], name if isinstance(name, tuple) else (name,)
        is_number = is_numeric_dtype(column.dtype) and not is_bool_dtype(column.dtype)
        head = ", ".join(heading(part, competitor) for part in parts)
        own: dict[str, Any] = {"title": visible_line(head), "text": texts[k]}
        if is_number:
            own["value"] = [number_of(x) for x in as_numbers(column)]
        columns.append({**own, "name": k < n_names})
        if k in bars:
            ends = {end: [number_of(x) for x in as_numbers(table.iloc[:, at])] for end, at in bars[k]._asdict().items()}
            columns.append({"title": "", "bar": ends, "text": [""] * len(table), "name": False})
    if not n_names:  # the first column of words names the rows
        for own in columns:
            if "value" not in own and "bar" not in own:
                own["name"] = True
                break
    more = len(frame) - len(table)
    return {"columns": columns, "n_rows": len(table), "left_out": counted(more, "more row") if more else ""}


def is_result(result: Any) -> bool:
    """Whether a page can show it as sentences and tables."""
    return isinstance(result, Audit | Shown) or (isinstance(result, pd.DataFrame) and np.prod(result.shape) > 0)
