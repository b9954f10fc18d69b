"""Ratings of models in a terminal: one table with the same headings for every command that rates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from jaxeval.arrays import Float
from jaxeval.show.boards import plus_minus
from jaxeval.show.screens import Column, Grid
from jaxeval.wording import MODEL, Noun, visible_line

_BAR_WIDTH = 24


def board_grid(
    title: str | None,
    models: Sequence[object],
    rating: Float,
    lower: Float,
    upper: Float,
    *,
    rank: Sequence[object] = (),
    spread: Sequence[str] = (),
    votes: Sequence[object] = (),
    tier: Sequence[object] = (),
    notes: Sequence[str] = (),
    extra: Sequence[Column] = (),
    decimals: int = 1,
    rows: str | Noun | None = None,
    competitor: Noun = MODEL,
    top: int | None = None,
) -> Grid:
    """Models and their ratings, with intervals as distances and as bars; what is not known stays away.

    Args:
        title: above the table.
        models: (M,) names.
        rating: (M,) ratings; those that are not finite are shown as "unrated".
        lower, upper: (M,) ends of the intervals.
        rank, spread, votes, tier, notes: (M,) each, or nothing.
        extra: columns between the ratings and the votes.
        decimals: of the ratings.
        rows: what a row is called; by default a competitor.
        competitor: what is rated.
        top: rows to show.
    """
    distances = [plus_minus(*own, decimals) for own in zip(rating, lower, upper, strict=True)]
    known = [column for column in (
        Column("Rank", list(map(whole, rank)), order=3) if len(rank) else None,
        Column("Spread", list(spread), right=False, order=4) if len(spread) else None,
        Column(competitor.head, list(map(visible_line, models)), right=False, folds=True),
        Column("Rating", [f"{x:.{decimals}f}" if np.isfinite(x) else "unrated" for x in rating]),
        Column("+/-", distances, right=False, order=1),
        Column("", bars(rating, lower, upper), right=False, order=9, style="cyan"),
        *extra,
        Column("Votes", list(map(whole, votes)), order=5) if len(votes) else None,
        Column("Tier", list(map(whole, tier)), order=6) if len(tier) else None,
        Column("Notes", list(notes), right=False, order=2, folds=True, style="yellow") if len(notes) else None,
    ) if column is not None]  # fmt: skip
    return Grid(title, known, rows=rows or competitor, top=top)


def whole(value: object) -> str:
    """A whole number as a cell; empty where it is missing."""
    return "" if pd.isna(value) else f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"


def bars(rating: Float, lower: Float, upper: Float) -> list[str]:
    """Intervals drawn in characters over the range of all finite bounds."""
    bounds = np.column_stack([lower, upper])
    finite = bounds[np.isfinite(bounds)]
    if len(rating) < 2 or len(finite) == 0 or finite.max() == finite.min():
        return [""] * len(rating)
    low, width = finite.min(), finite.max() - finite.min()
    bars = []
    for x, (a, b) in zip(rating, bounds, strict=True):
        if not (np.isfinite(x) and np.isfinite(a) and np.isfinite(b)):
            bars.append("")
            continue
        left, at, right = (round((y - low) / width * (_BAR_WIDTH - 1)) for y in (a, x, b))
        line = [" "] * _BAR_WIDTH
        line[left : right + 1] = "─" * (right - left + 1)
        line[min(max(at, 0), _BAR_WIDTH - 1)] = "●"
        bars.append("".join(line))
    return bars
