"""Figures of joint draws, whatever estimator made them: intervals with tiers, ranks, and differences."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from jaxeval.plots.labels import Labels, Takes, figure_of
from jaxeval.plots.style import finish, joint_name, one_axis
from jaxeval.statistics.draws import Draws
from jaxeval.wording import counted

COLOUR, MUTED, _PALE = "#1f5a93", "#8a8f98", "#e9edf2"
_MOST_ROWS = 40


_DRAWS = Takes("Draws, as results hand them out as joint", kinds=(Draws,))


@figure_of("Estimates", _DRAWS)
def plot_draws(
    draws: Draws, level: float = 0.95, top: int | None = _MOST_ROWS, x: str = "estimate", **labels: Unpack[Labels]
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
    draws: Draws,
    level: float = 0.95,
    top: int | None = _MOST_ROWS,
    simultaneous: bool = False,
    **labels: Unpack[Labels],
) -> Figure:
    """The rank of each quantity and the ranks that the draws leave open (see `Draws.rank_sets`), tiers shaded."""
    table = draws.table(level, simultaneous=simultaneous)
    at_once = " for all at once" if simultaneous else ""
    return _figure(table, "rank", ("rank_best", "rank_worst"), top, f"rank, {100 * level:g}% set of ranks{at_once}")


@figure_of("Differences", _DRAWS)
def plot_draw_differences(
    draws: Draws,
    against: Hashable | None = None,
    level: float = 0.95,
    top: int | None = _MOST_ROWS,
    **labels: Unpack[Labels],
) -> Figure:
    """Differences of all others from the quantity ``against``, by default the best, each with its own interval.

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
    """One axis with a row per name of a `Draws.table`: the column ``value`` between the columns ``ends``."""
    table = table[table["rank"].notna()]
    shown = table.head(top or len(table))
    figure, axis = one_axis(7.4, 1.5 + 0.21 * max(len(shown), 1))
    names = [f"{rank}  {joint_name(name)}" for rank, name in zip(shown["rank"], shown.index, strict=True)]
    draw_intervals(axis, names, shown[[value, *ends]], shown["tier"])
    hidden = f"; {counted(len(table) - len(shown), 'more', 'more')} not shown" if len(shown) < len(table) else ""
    finish(axis, x=f"{label}\nbands: tiers that the draws separate{hidden}")
    return figure


def draw_intervals(
    axis: Any,
    names: Sequence[str],
    columns: pd.DataFrame,
    tier: pd.Series,
    colours: Any = COLOUR,
    none: str = "nothing takes a rank",
) -> None:
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
