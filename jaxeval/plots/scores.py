"""Figures of scores: their errors, time horizons, capability indices, and fronts of cost and quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from jaxeval.capability.capability_index import CapabilityIndex
from jaxeval.capability.pareto import ParetoFront
from jaxeval.capability.time_horizons import TimeHorizons, spelled_minutes
from jaxeval.capability.trends import dated
from jaxeval.plots import style
from jaxeval.plots.boards import draw_intervals
from jaxeval.plots.style import COLOURS, GREY, FigureLabels, Takes, figure_of, finish, one_axis, plain, shown_name
from jaxeval.scores.error_budget import ErrorBudget
from jaxeval.statistics.variance_components import RESIDUAL

_TICKS = np.array([1 / 60, 1 / 4, 1, 4, 15, 60, 240, 960, 3840, 15360, 61440])  # minutes
_ON_DATES = 60  # points of a line


@figure_of("Success by the length of tasks", Takes("what time_horizons() returns", kinds=(TimeHorizons,)), says=True)
def plot_success_curves(
    horizons: TimeHorizons, agents: Sequence[str] | None = None, n_bins: int = 8, **labels: Unpack[FigureLabels]
) -> Figure:
    """Draw each agent's curve of success, its shares of success among tasks of about one length, and its horizons.

    Bars of dots are two standard errors between tasks; lines across are the intervals of the horizons.

    Args:
        horizons: as `time_horizons` returns it.
        agents: a panel for each; by default the 12 with the longest horizons.
        n_bins: dots of an agent.
    """
    table, points, bins = horizons.table, horizons.curve_points(), horizons.by_length(n_bins)
    first = table["level"] == horizons.settings["levels"][0]
    known = table["agent"][first & table["horizon"].notna()].head(12)
    shown = list(known) if agents is None else list(agents)
    figure, axes = style.grid(max(len(shown), 1), (0.7, 2.6), (0.6, 2.1), sharex=True, sharey=True)
    for axis, agent in zip(axes, shown, strict=False):
        dots, line, horizon = (x[x["agent"] == agent] for x in (bins, points, table))
        bars = 2 * dots["standard_error"].fillna(0.0)
        ends = np.minimum(bars, dots["success"]), np.minimum(bars, (1 - dots["success"]).clip(0))
        axis.errorbar(dots["minutes"], dots["success"], yerr=ends, fmt="o", color=GREY, markersize=3.5, linewidth=0.9)
        axis.plot(line["minutes"], line["level"], color=COLOURS[0])
        whole = horizon[horizon["horizon"].notna()]
        axis.hlines(whole["level"], whole["lower"], whole["upper"], color=COLOURS[1], linewidth=1.6)
        axis.plot(whole["horizon"], whole["level"], "D", color=COLOURS[1], markersize=4)
        axis.set_title(shown_name(agent), loc="left", fontsize=9.5, parse_math=False)
        plain(axis)
    axes[0].set_visible(len(shown) > 0)
    x = horizons._tasks.table["minutes"]
    axes[0].set_xscale("log")
    _in_minutes(axes[0].xaxis, x.min() / 2, x.max() * 2)
    axes[0].set_xlim(x.min() / 2, x.max() * 2)
    axes[0].set_ylim(-0.03, 1.03)
    figure.supxlabel("time that people take", fontsize=9)
    figure.supylabel("share of successes", fontsize=9)
    return figure


@figure_of("Capability indices", Takes("what capability_index() returns", kinds=(CapabilityIndex,)), says=True)
def plot_index(index: CapabilityIndex, top: int | None = 40, **labels: Unpack[FigureLabels]) -> Figure:
    """Draw indices with their intervals, best on top, tiers shaded; models without a rank are left out.

    Args:
        index: as `capability_index` returns it.
        top: models shown; the figure says how many are not.
    """
    table = index.table
    shown = table[table["rank_best"].notna()].head(top or len(table))
    ranks = zip(shown["rank_best"], shown["rank_worst"], strict=True)
    names = [
        f"{best if best == worst else f'{best}-{worst}'}  {shown_name(model)}"
        for (best, worst), model in zip(ranks, shown["model"], strict=True)
    ]
    figure, axis = one_axis(7.4, 1.5 + 0.21 * max(len(shown), 1))
    draw_intervals(axis, names, shown[["index", "lower", "upper"]], shown["tier"])
    hidden = style.not_shown(len(table) - len(shown), "; ", ("model", "models"))
    label = f"index, {index.level:.0%} interval; before names: the ranks that the scores leave open"
    finish(axis, x=f"{label}\nbands: tiers that the scores separate{hidden}")
    return figure


@figure_of("Over release dates", Takes("what time_horizons() or capability_index() returns",
                                       kinds=(TimeHorizons, CapabilityIndex)))  # fmt: skip
def plot_over_time(
    found: TimeHorizons | CapabilityIndex, released: Mapping[str, Any], frontier: bool = True, days_ahead: int = 180,
    **labels: Unpack[FigureLabels],
) -> Figure:  # fmt: skip
    """Draw horizons or indices by release date with their intervals, and the line of the trend with its band.

    Args:
        found: as `time_horizons` or `capability_index` returns it.
        released: date of each agent or model, by name.
        frontier: as in the trends of both: whether the line is of those alone that were the best at their date.
        days_ahead: how far the line goes beyond the last date.
    """
    is_time, table = isinstance(found, TimeHorizons), found.table
    name, value = ("agent", "horizon") if is_time else ("model", "index")
    if is_time:
        table = table[table["level"] == found.settings["levels"][0]]
    dates = dated(released).rename("released")
    table = table.merge(dates, left_on=name, right_index=True).dropna(subset=["released", value])
    last = table["released"].max() + pd.Timedelta(days=days_ahead)
    at = pd.date_range(table["released"].min(), last, periods=_ON_DATES).normalize().unique()
    figure, axis = one_axis(7.2, 4.2)
    trend = found.trend(released, frontier=frontier, at=list(at))
    if isinstance(trend, pd.DataFrame):
        line, on_line = trend.iloc[1:].rename(columns={"estimate": value}), trend.attrs["models"]
        slope = "{:.1f} points a year ({:.1f} to {:.1f})".format(*trend.iloc[0])
    else:
        line, on_line, slope = trend.forecast, trend.agents.to_dict("records"), trend.answer.sentences[0]
    axis.fill_between(at, line["lower"], line["upper"], color=COLOURS[0], alpha=0.15, linewidth=0)
    axis.plot(at, line[value], color=COLOURS[0])
    behind = table[name].isin([row[name] for row in on_line])
    for rows, colour in ((table[~behind], GREY), (table[behind], COLOURS[1])):
        axis.vlines(rows["released"], rows["lower"], rows["upper"], color=colour, linewidth=1.2)
        axis.plot(rows["released"], rows[value], "o", color=colour, markersize=4)
    for row in table[behind].itertuples():
        text = shown_name(getattr(row, name))
        axis.annotate(text, (row.released, getattr(row, value)), (4, 4), textcoords="offset points", fontsize=7,
                      parse_math=False)  # fmt: skip
    what = f"horizon at {found.settings['levels'][0]:.0%}" if is_time else "index"
    finish(axis, x=f"release date; {slope}", y=f"{what}, {found.level:.0%} interval")
    if is_time:
        axis.set_yscale("log")
        _in_minutes(axis.yaxis, *axis.get_ylim())
    figure.autofmt_xdate()
    return figure


@figure_of("Cost and quality", Takes("what pareto_front() returns", kinds=(ParetoFront,)), says=True)
def plot_front(front: ParetoFront, names: int = 15, **labels: Unpack[FigureLabels]) -> Figure:
    """Draw models by cost and quality with their intervals, and the front as a line with its band.

    Costs are on a scale of logarithms if all of them are above 0 and the largest is ten times the least.

    Args:
        front: as `pareto_front` returns it.
        names: most models that are named: those on the front, the surest first.
    """
    table, band = front.table, front.band()
    figure, axis = one_axis(7.2, 4.4)
    axis.fill_between(band["cost"], band["lower"], band["upper"], step="post", color=COLOURS[0], alpha=0.15,
                      linewidth=0)  # fmt: skip
    axis.step(band["cost"], band["quality"], where="post", color=COLOURS[0], label="the best for the cost")
    kinds = ((table["dominated_by"].notna(), GREY, "surely worse than one no dearer"),
             (table["dominated_by"].isna(), COLOURS[1], "may be on the front"))  # fmt: skip
    for which, colour, text in kinds:
        rows = table[which]
        axis.vlines(rows["cost"], rows["lower"], rows["upper"], color=colour, linewidth=1.2)
        axis.plot(rows["cost"], rows["quality"], "o", color=colour, markersize=4, label=text)
    named = table[table["on_front"]].sort_values("p_front", ascending=False, kind="stable").head(names)
    for row in named.itertuples():
        axis.annotate(f"{shown_name(row.model)}, {row.p_front:.0%}", (row.cost, row.quality), (4, 4),
                      textcoords="offset points", fontsize=7, parse_math=False)  # fmt: skip
    least, most = table["cost"].min(), table["cost"].max()
    if least > 0 and most >= 10 * least:
        axis.set_xscale("log")
    note = style.not_shown(int(table["on_front"].sum()) - len(named), "; ", ("name", "names"))
    y = f"quality, {front.level:.0%} interval"
    finish(axis, x=f"cost; in per cent: how surely a model is on the front{note}", y=y, legend=True)
    return figure


def _in_minutes(axis: Any, least: float, most: float) -> None:
    """Set ticks at lengths that people say."""
    ticks = [x for x in _TICKS if least <= x <= most]
    axis.set_ticks(ticks, labels=[spelled_minutes(x) for x in ticks])
    axis.set_ticks([], minor=True)


@figure_of("Which error is it?", Takes("what error_budget() returns", kinds=(ErrorBudget,)), says=True)
def plot_error_budget(budget: ErrorBudget, most: int = 20, **labels: Unpack[FigureLabels]) -> Figure:
    """Draw the variance of each difference, or of each score where there is one model, as a bar of its parts.

    Args:
        budget: as `error_budget` returns it.
        most: differences that are drawn: those of the best models with their neighbours, then others.
    """
    table = budget.models
    texts = [shown_name(name) for name in table["model"]]
    if len(budget.differences):
        rank = {name: k for k, name in enumerate(budget.models["model"])}
        table = budget.differences
        places = [sorted((rank[a], rank[b])) for a, b in zip(table["model_a"], table["model_b"], strict=True)]
        order = np.lexsort(([a for a, _ in places], [b - a for a, b in places]))
        table = table.iloc[order]
        texts = [
            f"{shown_name(a)} less {shown_name(b)}" for a, b in zip(table["model_a"], table["model_b"], strict=True)
        ]
    shown = table.head(most)
    figure, axis = one_axis(7.2, 1.2 + 0.28 * max(len(shown), 1))
    parts = [str(name) for name in shown if str(name).startswith("variance_")]
    left, y = np.zeros(len(shown)), np.arange(len(shown))[::-1]
    colours = iter([*COLOURS] * len(parts))
    for name in parts:
        facet = name.removeprefix("variance_")
        colour = GREY if facet == RESIDUAL else next(colours)
        width = np.nan_to_num(shown[name].to_numpy(float))
        axis.barh(y, width, left=left, height=0.7, color=colour, label=shown_name(facet))
        left = left + width
    axis.set_yticks(y, texts[: len(shown)], parse_math=False)
    note = style.not_shown(len(table) - len(shown), "; ", ("pair", "pairs"))
    finish(axis, x=f"variance of the estimate, by what was sampled{note}", legend=True)
    return figure
