"""Figures of leaderboards."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from jaxeval.plots import style
from jaxeval.plots.style import FigureLabels, Takes, figure_of, finish, joint_name, one_axis, shown_name
from jaxeval.show.shown import rated
from jaxeval.statistics.draws import Draws
from jaxeval.wording import counted

_PANELS_A_ROW = 4
JUDGE_ALONE = "#c2447f"
LEADERBOARD = Takes(
    "the table that leaderboard() returns",
    ("model", "rating", "lower", "upper", "rank", "tier", "vote_count", "preliminary", "degenerate_share"),
)
COLOUR, MUTED, _PALE = "#1f5a93", "#8a8f98", "#e9edf2"
_MOST_ROWS = 40


_DRAWS = Takes("Draws, as results hand them out as joint", kinds=(Draws,))


@figure_of("Leaderboard", LEADERBOARD, says=True)
def plot_leaderboard(
    table: pd.DataFrame, top: int | None = 40, panels: int | None = 12, **labels: Unpack[FigureLabels]
) -> Figure:
    """Draw ratings with their intervals, best on top, tiers shaded.

    Categories are panels with the same models in one order, that of the mean rank, and their ranks at the right.

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
        most = np.argsort(votes)[::-1][: panels or len(groups)]
        left_out = len(groups) - len(most)
        groups = [groups[k] for k in np.sort(most)]
    several = len(groups) > 1
    ranked = pd.concat([block[block["rank"].notna()] for _, block in groups])
    order = ranked.groupby("model", sort=False)["rank"].mean().sort_values(kind="stable").index[:top]
    blocks = [
        (name, _rows(block, order) if several else _rows(block).head(top or len(block)), block)
        for name, block in groups
    ]
    rows = max(max(len(shown) for _, shown, _ in blocks), 1)
    n_rows = -(-len(blocks) // _PANELS_A_ROW)
    n_columns = -(-len(blocks) // n_rows)
    width = 6.8 if n_columns == 1 else 3.0 + 2.8 * n_columns
    figure = Figure(figsize=(width, n_rows * (1.5 + 0.21 * rows)), layout="constrained")
    if "category" in table and left_out:
        figure.suptitle(
            f"The {counted(len(groups), 'category', 'categories')} with the most votes; "
            f"{counted(left_out, 'more is', 'more are')} not shown",
            fontsize=10,
        )
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axis in axes[len(blocks) :]:
        axis.set_axis_off()
    settings, noun = table.attrs.get("settings", {}), rated(table)
    level = settings.get("level")
    for axis, (name, shown, block) in zip(axes, blocks, strict=False):
        few = (shown["preliminary"] | (shown["degenerate_share"] > 0)).to_numpy(bool)
        names = [shown_name(model) if several else f"{rank}  {shown_name(model)}" for rank, model in _ranks(shown)]
        columns = shown[["rating", "lower", "upper"]]
        colours = np.where(few, MUTED, COLOUR)
        if "rests_on" in shown:  # of a merged board
            colours = np.where(shown["rests_on"] == "judge", JUDGE_ALONE, colours)
        tier = shown["tier"].mask(shown["tier"].notna()) if several else shown["tier"]
        draw_intervals(axis, names, columns, tier, colours, f"no {noun.one} takes a rank")
        if several:
            if not axis.get_subplotspec().is_first_col():
                axis.set_yticklabels([])
            for place, (rank, _) in enumerate(_ranks(shown)):
                at = {"xycoords": ("axes fraction", "data"), "ha": "right", "va": "center"}
                axis.annotate("" if pd.isna(rank) else str(rank), (1.09, place), fontsize=7, color=MUTED, **at)
        axis.set_title(
            "" if name is None else shown_name(name), loc="left", fontsize=11, weight="bold", parse_math=False
        )
        label = "Rating (Elo)" if level is None else f"Rating (Elo) with {100 * level:g}% interval"
        notes = ["at the right: ranks"] if several else ["bands: tiers that the data separate"]
        if "expected_score_rating" in table:
            notes.insert(0, "ratings of a tie model, whose scale is not that of expected scores")
        if (colours == MUTED).any():
            notes.append("grey: few votes")
        if (colours == JUDGE_ALONE).any():
            notes.append("red: from a judge's scores alone")
        notes += filter(None, [style.not_shown(len(block) - int(shown["rank"].notna().sum()), "", noun)])
        axis.set_xlabel("\n".join([label, *notes] if several else [label, "; ".join(notes)]), fontsize=8.5)
    return figure


def _rows(block: pd.DataFrame, order: pd.Index | None = None) -> pd.DataFrame:
    """Return the ranked rows of a board, as they stand or in an order of models, where others are empty."""
    ranked = block[block["rank"].notna()]
    if order is None:
        return ranked
    flags = {"preliminary": False, "degenerate_share": 0.0}
    return ranked.set_index("model").reindex(order).fillna(flags).reset_index()


def _ranks(shown: pd.DataFrame) -> list[tuple[Any, Any]]:
    return list(zip(shown["rank"], shown["model"], strict=True))


@figure_of("Estimates", _DRAWS)
def plot_draws(
    draws: Draws, level: float = 0.95, top: int | None = _MOST_ROWS, x: str = "estimate", **labels: Unpack[FigureLabels]
) -> Figure:
    """Estimates with their intervals, best on top, tiers shaded; quantities without a finite estimate are left out.

    Args:
        draws: as results hand them out as ``joint``.
        level: of the intervals, and simultaneously of all differences for the tiers.
        top: quantities shown; the figure says how many are not.
        x: the label of the axis, such as the unit of the estimates.
    """
    table = draws.table(level)
    return _figure(table, "estimate", ("lower", "upper"), top, f"{x}, {100 * level:g}% interval")


@figure_of("Ranks", _DRAWS)
def plot_ranks(
    draws: Draws, level: float = 0.95, top: int | None = _MOST_ROWS, simultaneous: bool = False,
    **labels: Unpack[FigureLabels],
) -> Figure:  # fmt: skip
    """Draw the rank of each quantity and the ranks that the draws leave open (see `Draws.rank_sets`), tiers shaded."""
    table = draws.table(level, simultaneous=simultaneous)
    at_once = " for all at once" if simultaneous else ""
    return _figure(table, "rank", ("rank_best", "rank_worst"), top, f"rank, {100 * level:g}% set of ranks{at_once}")


@figure_of("Differences", _DRAWS)
def plot_draw_differences(
    draws: Draws, against: Hashable | None = None, level: float = 0.95, top: int | None = _MOST_ROWS,
    **labels: Unpack[FigureLabels],
) -> Figure:  # fmt: skip
    """Draw differences of all others from the quantity ``against``, by default the best, each with its own interval.

    Raises:
        ValueError: no quantity with a finite estimate is called ``against``, or there is none at all; there are too
            many names for a table of all pairs.
    """
    table = draws.table(level)
    ranked = table.index[table["rank"].notna()]
    if len(ranked) == 0:
        raise ValueError("no quantity has a finite estimate, so that there are no differences to show")
    chosen: Any = ranked[0] if against is None else against
    if chosen not in list(ranked):  # an index of several levels also holds what a name begins with
        raise ValueError(f"no quantity {chosen!r} with a finite estimate among the names")
    lower, upper = draws.difference_interval(level)
    table["estimate"] -= table["estimate"][chosen]
    table = table.assign(lower=lower[chosen], upper=upper[chosen]).drop(index=chosen)
    label = f"difference from {joint_name(chosen)}, {100 * level:g}% interval"
    figure = _figure(table, "estimate", ("lower", "upper"), top, label)
    figure.axes[0].axvline(0, color="black", linewidth=0.8)
    return figure


def _figure(table: pd.DataFrame, value: str, ends: tuple[str, str], top: int | None, label: str) -> Figure:
    """Draw one axis with a row per name of a `Draws.table`: the column ``value`` between the columns ``ends``."""
    table = table[table["rank"].notna()]
    shown = table.head(top or len(table))
    figure, axis = one_axis(7.4, 1.5 + 0.21 * max(len(shown), 1))
    names = [f"{rank}  {joint_name(name)}" for rank, name in zip(shown["rank"], shown.index, strict=True)]
    draw_intervals(axis, names, shown[[value, *ends]], shown["tier"])
    hidden = style.not_shown(len(table) - len(shown), "; ")
    finish(axis, x=f"{label}\nbands: tiers that the draws separate{hidden}")
    return figure


def draw_intervals(
    axis: Any, names: Sequence[str], columns: pd.DataFrame, tier: pd.Series, colours: Any = COLOUR,
    none: str = "nothing takes a rank",
) -> None:  # fmt: skip
    """Rows from the top down, every other tier shaded; unbounded intervals run out of the picture.

    ``columns`` are values, lower and upper ends of their intervals; ``none`` stands where there are no rows.
    """
    value, lower, upper = columns.to_numpy(float, na_value=np.nan).T
    place = np.arange(len(names))
    bounds = np.concatenate([value, lower[np.isfinite(lower)], upper[np.isfinite(upper)]])
    low, high = (bounds.min(), bounds.max()) if len(bounds) else (0.0, 1.0)
    margin = 0.03 * (high - low) or 1.0
    left = np.where(np.isfinite(lower), lower, low - 10 * margin)
    right = np.where(np.isfinite(upper), upper, high + 10 * margin)
    for number in tier.dropna().unique():
        rows = place[(tier == number).fillna(False).to_numpy(bool)]
        if number % 2 == 1:
            axis.axhspan(rows.min() - 0.5, rows.max() + 0.5, color=_PALE, zorder=0, linewidth=0)
    axis.hlines(place, left, right, color=colours, linewidth=2.2, alpha=0.55, zorder=2)
    axis.scatter(value, place, s=20, color=colours, zorder=3)
    axis.set_yticks(place, names, fontsize=8, parse_math=False)
    axis.set_ylim(max(len(names), 1) - 0.5, -0.5)
    if len(names) == 0:
        axis.text(0.5, 0.5, none, transform=axis.transAxes, ha="center", va="center")
    axis.set_xlim(low - margin, high + margin)
    axis.tick_params(axis="y", length=0)
    axis.tick_params(axis="x", labelsize=8)
    axis.grid(axis="x", color="#d5dae1", linewidth=0.6, zorder=1)
    axis.spines[["top", "right", "left"]].set_visible(False)
