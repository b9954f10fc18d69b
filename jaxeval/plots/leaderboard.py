"""Figures of leaderboards."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from jaxeval.plots.draws import COLOUR, MUTED, draw_intervals
from jaxeval.plots.labels import Labels, Takes, figure_of
from jaxeval.plots.style import save_figure, shown_name
from jaxeval.tables.shown import rated
from jaxeval.wording import counted

_PANELS_A_ROW = 4
JUDGE_ALONE = "#c2447f"
LEADERBOARD = Takes(
    "the table that leaderboard() returns",
    (
        "model_name",
        "rating",
        "rating_lower",
        "rating_upper",
        "rank",
        "tier",
        "vote_count",
        "preliminary",
        "degenerate_share",
    ),
)


@figure_of("Leaderboard", LEADERBOARD)
def plot_leaderboard(
    table: pd.DataFrame, top: int | None = 40, panels: int | None = 12, **labels: Unpack[Labels]
) -> Figure:
    """Ratings with their intervals, best on top, tiers shaded; one panel per category.

    Args:
        table: as `leaderboard` returns it, or the table of a `MergedBoard`; models without a rank (no finite rating,
            or too few battles) are left out, and counted below the axis.
        top: models shown in each panel.
        panels: number of categories shown, those with the most votes; the figure says how many are not.
    """
    groups: list[tuple[Any, pd.DataFrame]] = [(None, table)]
    if "category" in table:
        groups = list(table.groupby("category", sort=False))
        votes = [block["vote_count"].sum() for _, block in groups]
        shown = np.argsort(votes)[::-1][: panels or len(groups)]
        left_out = len(groups) - len(shown)
        groups = [groups[k] for k in np.sort(shown)]
    blocks = [(name, block[block["rank"].notna()].head(top or len(block)), block) for name, block in groups]
    rows = max(max(len(shown) for _, shown, _ in blocks), 1)
    n_rows = -(-len(blocks) // _PANELS_A_ROW)
    n_columns = -(-len(blocks) // n_rows)
    figure = Figure(figsize=(0.6 + 6.2 * n_columns, n_rows * (1.5 + 0.21 * rows)), layout="constrained")
    if "category" in table and left_out:
        figure.suptitle(
            f"The {counted(len(groups), 'category', 'categories')} with the most votes; "
            f"{counted(left_out, 'more is', 'more are')} not shown",
            fontsize=10,
        )
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axis in axes[len(blocks) :]:
        axis.set_axis_off()
    settings, (one, many) = table.attrs.get("settings", {}), rated(table)
    level = settings.get("level")
    for axis, (name, shown, block) in zip(axes, blocks, strict=False):
        few = shown["preliminary"] | (shown["degenerate_share"] > 0)
        names = [f"{rank}  {shown_name(name)}" for rank, name in zip(shown["rank"], shown["model_name"], strict=True)]
        columns = shown[["rating", "rating_lower", "rating_upper"]]
        colours = np.where(few, MUTED, COLOUR)
        if "rests_on" in shown:  # of a merged board
            colours = np.where(shown["rests_on"] == "judge", JUDGE_ALONE, colours)
        draw_intervals(axis, names, columns, shown["tier"], colours, f"no {one} takes a rank")
        axis.set_title(
            "" if name is None else shown_name(name), loc="left", fontsize=11, weight="bold", parse_math=False
        )
        label = "Rating (Elo)" if level is None else f"Rating (Elo) with {100 * level:g}% interval"
        notes = ["bands: tiers that the data separate"]
        if "expected_score_rating" in table:
            notes.insert(0, "ratings of a tie model, whose scale is not that of expected scores")
        if (colours == MUTED).any():
            notes.append("grey: few votes")
        if (colours == JUDGE_ALONE).any():
            notes.append("red: from a judge's scores alone")
        if len(shown) < len(block):
            notes.append(f"{counted(len(block) - len(shown), f'more {one}', f'more {many}')} not shown")
        axis.set_xlabel(f"{label}\n{'; '.join(notes)}", fontsize=8.5)
    return figure


def save_leaderboard(table: pd.DataFrame, path: str | Path) -> None:
    """Write `plot_leaderboard` to ``path``; the format follows from its ending (png, svg, pdf)."""
    save_figure(plot_leaderboard(table), path, dpi=160)
