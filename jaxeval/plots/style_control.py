"""Figures of style control: how far models move, and the coefficients of the covariates."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from jaxeval.plots.labels import Labels, Takes, figure_of
from jaxeval.plots.style import GREY, finish, one_axis, plain, shown_name, width_of
from jaxeval.tables.shown import rated
from jaxeval.wording import counted

_UP, _DOWN, _EVEN = "#2f7d4f", "#b5473c", "#1f5a93"


@figure_of(
    "Ratings with style control and without",
    Takes(
        "the table that style_effect() returns",
        ("model_name", "rating", "rating_plain", "rank", "rank_plain", "shift", "shift_lower", "shift_upper"),
    ),
)
def plot_style_effect(effect: pd.DataFrame, top: int = 40, **labels: Unpack[Labels]) -> Figure:
    """Each model's rating without control (hollow) and with it (full), and the shift with its interval.

    Args:
        effect: as `style_effect` returns it; models without ranks are left out.
        top: models shown, the best with control; the figure says how many are not.
    """
    shown = effect[effect["rank"].notna() & effect["rank_plain"].notna()].head(top)
    place = np.arange(len(shown))
    figure = Figure(figsize=(8.6, 1.5 + 0.21 * max(len(shown), 1)), layout="constrained")
    ratings, shifts = figure.subplots(1, 2, sharey=True, width_ratios=[3, 2])
    colours = shift_colours(shown["shift_lower"] > 0, shown["shift_upper"] < 0)
    ratings.hlines(place, shown["rating_plain"], shown["rating"], color=colours, linewidth=2, alpha=0.6)
    ratings.scatter(shown["rating_plain"], place, s=18, facecolors="white", edgecolors=GREY, zorder=3, label="plain")
    ratings.scatter(shown["rating"], place, s=20, color=_EVEN, zorder=3, label="controlled")
    names = [f"{now}  {shown_name(name)}  ({was})" for now, name, was in
             zip(shown["rank"], shown["model_name"], shown["rank_plain"], strict=True)]  # fmt: skip
    ratings.set_yticks(place, names, fontsize=8, parse_math=False)
    ratings.set_ylim(max(len(shown), 1) - 0.5, -0.5)
    hidden = len(effect) - len(shown)
    one, many = rated(effect)
    more = f"\n{counted(hidden, f'more {one}', f'more {many}')} not shown" if hidden else ""
    ratings.set_xlabel(f"rating (Elo); rank with control, and (without){more}", fontsize=8.5)
    ratings.legend(frameon=False, fontsize=8, loc="lower right")
    draw_shifts(shifts, shown[["shift", "shift_lower", "shift_upper"]], colours)
    level = effect.attrs.get("settings", {}).get("level", 0.95)
    shifts.set_xlabel(f"shift by control (Elo), {100 * level:g}% interval", fontsize=8.5)
    for axis in (ratings, shifts):
        plain(axis)
        axis.tick_params(axis="y", length=0, labelsize=8)
    return figure


def shift_colours(up: pd.Series, down: pd.Series) -> NDArray[Any]:
    """Colours of rows that surely went up or surely went down, and grey for the others."""
    return np.select([up, down], [_UP, _DOWN], GREY)


def draw_shifts(axis: Any, columns: pd.DataFrame, colours: NDArray[Any]) -> None:
    """Rows from the top down about a line at 0; ``columns`` are shifts, lower and upper ends of their intervals."""
    shift, lower, upper = columns.to_numpy(float, na_value=np.nan).T
    place = np.arange(len(columns))
    axis.hlines(place, lower, upper, color=colours, linewidth=2.2, alpha=0.5)
    axis.scatter(shift, place, s=16, color=colours, zorder=3)
    axis.axvline(0, color="black", linewidth=0.8)


@figure_of(
    "Coefficients of the covariates",
    Takes(
        "the table that coefficients() of a fit or bootstrap returns", ("coefficient", "lower", "upper", "odds_ratio")
    ),
)
def plot_coefficients(coefficients: pd.DataFrame, **labels: Unpack[Labels]) -> Figure:
    """Odds ratio of one unit of each covariate, with its interval.

    Coefficients of the probit link have no odds ratios: the figure shows the coefficients themselves.

    Args:
        coefficients: as ``coefficients()`` of a fit or bootstrap gives them.
    """
    place = np.arange(len(coefficients))
    names = [shown_name(name) for name in coefficients.index]
    figure, axis = one_axis(4.2 + width_of(names), 1.1 + 0.32 * len(coefficients))
    has_odds = bool(coefficients["odds_ratio"].notna().any())
    columns = ["odds_ratio", "odds_ratio_lower", "odds_ratio_upper"] if has_odds else ["coefficient", "lower", "upper"]
    estimate, low, high = (coefficients[name] for name in columns)
    axis.hlines(place, low, high, color=_EVEN, linewidth=2.5, alpha=0.5)
    axis.scatter(estimate, place, s=22, color=_EVEN, zorder=3)
    axis.axvline(1 if has_odds else 0, color="black", linewidth=0.8)
    if has_odds:
        axis.set_xscale("log")
        ticks = np.array([0.25, 0.5, 0.67, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 4])
        ends = min(low.min(), 0.95), max(high.max(), 1.05)
        ticks = ticks[(ticks >= ends[0] / 1.05) & (ticks <= ends[1] * 1.05)]
        axis.set_xticks(ticks, [f"{t:g}" for t in ticks])
        axis.minorticks_off()
    axis.set_yticks(place, names, fontsize=8.5, parse_math=False)
    axis.set_ylim(len(coefficients) - 0.5, -0.5)
    finish(axis, x=f"{'odds ratio' if has_odds else 'coefficient (probits)'} of one unit of the covariate")
    return figure
