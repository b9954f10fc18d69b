"""Wide tables for people: estimates with their intervals and pairs, a column for each value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from jaxeval.show.cells import Lines
from jaxeval.wording import counted, visible_line

_LABELS: dict[str, Callable[[Any], str]] = {
    "delta": lambda delta: "all pairs" if delta == float("inf") else f"< {delta:g}",
    "tier": "tier {:g}".format,  # rows of numbers hold whole ones as floats
    "test_tier": "tier {:g}".format,
    "budget": lambda budget: counted(budget, "vote"),
}


def wide(
    table: pd.DataFrame,
    rows: str,
    columns: str,
    cell: Callable[[pd.Series], str],
    label: Callable[[Any], str] | None = None,
) -> pd.DataFrame:
    """A row per value of ``rows`` and a column per value of ``columns``, the cells as text."""
    name = label or _LABELS.get(columns, visible_line)
    found: dict[Any, dict[str, Any]] = {}
    for _, row in table.iterrows():
        first = _LABELS.get(rows, visible_line)(row[rows])
        found.setdefault(first, {rows: first})[name(row[columns])] = Lines(cell(row))
    return pd.DataFrame(list(found.values()), dtype=object)  # a column of text would forget which cells have lines


def pairs_cell(name: str, between: str = "\n") -> Callable[[pd.Series], str]:
    """Cells of the estimate ``name`` and its pairs; the pairs alone where it is missing or hidden."""

    def cell(row: pd.Series) -> str:
        n = 0 if row["n_pairs"] != row["n_pairs"] else row["n_pairs"]
        return estimate(row, name, count=f" ({n:,.0f})", between=between)

    return cell


def estimate(row: pd.Series, name: str, form: str = ".3f", count: str = "", between: str = "\n") -> str:
    """A cell of a number and, on the next line, its interval; a dash where there is none."""
    if row[name] != row[name]:
        return f"-{count}"
    own = f"{name}_" if f"{name}_lower" in row else ""
    lower, upper = row.get(f"{own}lower", float("nan")), row.get(f"{own}upper", float("nan"))
    short = ".1f" if form == ".1f" else ".2f"
    ends = "" if lower != lower else f"{between}[{lower:{short}}, {upper:{short}}]"
    return f"{row[name]:{form}}{count}{ends}"
