"""Figures of leaderboards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from jaxeval.plots.style import save_figure, shown_name
from jaxeval.wording import counted

_COLOUR, _MUTED, _PALE = "#1f5a93", "#8a8f98", "#e9edf2"


def plot_leaderboard(table: pd.DataFrame, top: int | None = 40, panels: int | None = 12) -> Figure:
    """Ratings with their intervals, best on top, tiers shaded; one panel a category.

    Args:
        table: as `leaderboard` returns it; models without a rank (no finite rating, or too few battles) are left
            out, and counted below the axis.
        top: models shown in each panel.
        panels: categories shown, those with most votes; the figure says how many are not.
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
    n_columns = min(len(blocks), 4)
    n_rows = -(-len(blocks) // n_columns)
    figure = Figure(figsize=(0.6 + 6.2 * n_columns, n_rows * (1.5 + 0.21 * rows)), layout="constrained")
    if "category" in table and left_out:
        figure.suptitle(
            f"The {counted(len(groups), 'category', 'categories')} with most votes; "
            f"{counted(left_out, 'more is', 'more are')} not shown",
            fontsize=10,
        )
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axis in axes[len(blocks) :]:
        axis.set_axis_off()
    settings = table.attrs.get("settings", {})
    level = settings.get("level")
    for axis, (name, shown, block) in zip(axes, blocks, strict=False):
        _draw(axis, shown)
        axis.set_title(
            "" if name is None else shown_name(name), loc="left", fontsize=11, weight="bold", parse_math=False
        )
        label = "Rating (Elo)" if level is None else f"Rating (Elo) with {100 * level:g}% interval"
        notes = ["bands: tiers that the data separate"]
        if "expected_score_rating" in table:
            notes.insert(0, "ratings of a tie model, whose scale is not that of expected scores")
        if (shown["preliminary"] | (shown["degenerate_share"] > 0)).any():
            notes.append("grey: few votes")
        if len(shown) < len(block):
            notes.append(f"{counted(len(block) - len(shown), 'more model')} not shown")
        axis.set_xlabel(f"{label}\n{'; '.join(notes)}", fontsize=8.5)
    return figure


def save_leaderboard(table: pd.DataFrame, path: str | Path) -> None:
    """Write `plot_leaderboard` to ``path``; the format follows from its ending (png, svg, pdf)."""
    save_figure(plot_leaderboard(table), path, dpi=160)


def _draw(axis, shown: pd.DataFrame) -> None:  # type: ignore[no-untyped-def]
    place = np.arange(len(shown))
    rating = shown["rating"].to_numpy(float)
    lower, upper = shown["rating_lower"].to_numpy(float), shown["rating_upper"].to_numpy(float)
    bounds = np.concatenate([rating, lower[np.isfinite(lower)], upper[np.isfinite(upper)]])
    low, high = (bounds.min(), bounds.max()) if len(bounds) else (0.0, 1.0)
    margin = 0.03 * (high - low) + 1
    # An unbounded interval runs out of the picture.
    left = np.where(np.isfinite(lower), lower, low - 10 * margin)
    right = np.where(np.isfinite(upper), upper, high + 10 * margin)

    tier = shown["tier"]
    for number in tier.dropna().unique():
        rows = place[(tier == number).fillna(False).to_numpy(bool)]
        if number % 2 == 1:
            axis.axhspan(rows.min() - 0.5, rows.max() + 0.5, color=_PALE, zorder=0, linewidth=0)
    colours = np.where(shown["preliminary"] | (shown["degenerate_share"] > 0), _MUTED, _COLOUR)
    axis.hlines(place, left, right, color=colours, linewidth=2.2, alpha=0.55, zorder=2)
    axis.scatter(rating, place, s=20, color=colours, zorder=3)
    names = [
        f"{rank}  {shown_name(name)}" for name, rank in zip(shown["model_name"], shown["rank"].astype(str), strict=True)
    ]
    axis.set_yticks(place, names, fontsize=8, parse_math=False)
    axis.set_ylim(max(len(shown), 1) - 0.5, -0.5)
    if len(shown) == 0:
        axis.text(0.5, 0.5, "no model takes a rank", transform=axis.transAxes, ha="center", va="center")
    axis.set_xlim(low - margin, high + margin)
    axis.tick_params(axis="y", length=0)
    axis.tick_params(axis="x", labelsize=8)
    axis.grid(axis="x", color="#d5dae1", linewidth=0.6, zorder=1)
    axis.spines[["top", "right", "left"]].set_visible(False)
