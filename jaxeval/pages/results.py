"""Results other than leaderboards, as a page shows them: sentences, and tables with intervals as bars."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from jaxeval.pages.document import free_id, number_of
from jaxeval.show.cells import as_numbers, cell_texts, find_intervals, with_index
from jaxeval.show.headings import heading
from jaxeval.show.shown import Shown, rated, view_of
from jaxeval.show.table import Table
from jaxeval.wording import Noun, counted, visible_line

#: Rows of a table that a page holds.
MOST_ROWS = 1_000


def sections_of(results: Iterable[tuple[str | None, Any]]) -> list[dict[str, Any]]:
    """A section for each table of the results, with an id for permalinks."""
    found, taken = [], set[str]()
    for title, given in results:
        result = given if isinstance(given, Shown) else Table.of(given, "Table")
        start, warnings = "" if title is None else f"{title}: ", view_of(result).warnings
        for part in result._sections():
            name = f"{start}{part.title}"
            found.append(
                {
                    "id": free_id(name, taken),
                    "title": visible_line(name),
                    "notes": [visible_line(line) for line in part.below if line],
                    "warnings": [visible_line(text) for text in dict.fromkeys(map(str, warnings))],
                    **_table(part.table, rated(result)),
                }
            )
            warnings = ()  # the first section has them
    return found


def _table(frame: Any, competitor: Noun) -> dict[str, Any]:
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
    return isinstance(result, Shown) or (isinstance(result, pd.DataFrame) and np.prod(result.shape) > 0)
