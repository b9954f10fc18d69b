"""Draw evaluators and gold: tau by gap, rank changes by tier, agreement against the gap, and studies of references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from jaxeval.evaluators.model_scores import FEW_PAIRS, hide_few_in_agreement, hide_few_pairs
from jaxeval.evaluators.resamples import with_evaluator
from jaxeval.lab.reference_study import ReferenceStudy
from jaxeval.plots import style
from jaxeval.plots.heat import HeatLook, heat_map
from jaxeval.plots.style import ABOUT_A_MIDDLE, AMOUNTS, COLOURS, GREY, FigureLabels, Takes, figure_of
from jaxeval.wording import counted

_MOST_REFERENCES = 60
_STUDY = Takes("a ReferenceStudy, as reference_study() returns it", kinds=(ReferenceStudy,))


@figure_of("Agreement of single references with the full ranking", _STUDY)
def plot_references(study: ReferenceStudy, delta: float = np.inf, **labels: Unpack[FigureLabels]) -> Figure:
    """Draw tau-b of the pairs within ``delta`` points with its interval: one row per reference, the best model on top.

    A reference with fewer pairs than the study's ``few_pairs`` shows only its number of pairs. References with more
    votes agree better.
    """
    rows = study.by_delta[study.by_delta["delta"] == delta]
    if len(rows) == 0:
        known = ", ".join(f"{d:g}" for d in study.by_delta["delta"].unique())
        raise ValueError(f"delta {delta:g} was not studied; there are {known}")
    rows = rows.dropna(subset=["tau"]).head(_MOST_REFERENCES)
    names = [style.shown_name(name) for name in rows["reference"]]
    figure, axis = style.one_axis(3.6 + style.width_of(names), 1.2 + 0.2 * len(rows))
    if len(rows) == 0:
        axis.set_axis_off()
        axis.set_title("no reference has two models to rank", loc="left", fontsize=10)
        return figure
    rows = hide_few_pairs(rows, "tau", study.settings.few_pairs)
    y = -np.arange(len(rows))
    number = rows["tier"].fillna(0).to_numpy(int)
    colours = [GREY if t == 0 else COLOURS[(t - 1) % len(COLOURS)] for t in number]
    axis.hlines(y, rows["tau_lower"], rows["tau_upper"], color=colours, alpha=0.5, linewidth=2.2)
    axis.scatter(rows["tau"], y, s=16, color=colours, zorder=3)
    for k in np.flatnonzero(rows["tau"].isna()):
        place = 0.01, y[k]
        text = counted(rows["n_pairs"].iloc[k], "pair")
        axis.annotate(text, place, xycoords=("axes fraction", "data"), fontsize=7, color=GREY, va="center")
    for t in np.unique(number[number > 0]):
        label = f"reference of tier {t}" if t == 1 else f"tier {t}"
        axis.scatter([], [], s=16, color=COLOURS[(t - 1) % len(COLOURS)], label=label)
    axis.margins(y=0.02)
    axis.set_yticks(y, names, fontsize=7.5, parse_math=False)
    pairs = "all pairs" if np.isinf(delta) else f"pairs within {counted(delta, 'point')} of win rate"
    style.legend_above(figure, *axis.get_legend_handles_labels())
    style.finish(axis, x=f"Kendall's tau-b with the ranking of all votes\n{pairs}")
    return figure


@figure_of("Rank changes by tier of the reference", _STUDY)
def plot_reference_tiers(study: ReferenceStudy, **labels: Unpack[FigureLabels]) -> Figure:
    """Draw the mean rank change by tier of the reference and of the models ranked, with intervals (Figures 1 and 2).

    Cells show percent of the greatest possible change, as references rank different numbers of models; below it stand
    places.
    """
    table = study.by_tier_and_test_tier
    change = 100 * table.pivot_table(index="tier", columns="test_tier", values="relative_change", dropna=False)
    figure, axis = style.one_axis(1.9 + 1.15 * len(change.columns), 1.3 + 0.75 * len(change))
    image = axis.imshow(change, cmap=AMOUNTS, aspect="auto")
    middle = (np.nanmax(change.to_numpy()) + np.nanmin(change.to_numpy())) / 2 if change.notna().any(axis=None) else 0
    for row in table.itertuples():
        if np.isnan(row.relative_change):
            continue
        value, lower, upper = (100 * getattr(row, f"relative_change{end}") for end in ("", "_lower", "_upper"))
        ends = "" if np.isnan(lower) else f"\n[{lower:.1f}, {upper:.1f}]"
        place = row.test_tier - 1, row.tier - 1
        colour = "white" if value > middle else "black"
        text = f"{value:.1f} %{ends}\n{row.rank_change:.1f} places"
        axis.annotate(text, place, ha="center", va="center", fontsize=7.5, color=colour)
    axis.set_xticks(np.arange(len(change.columns)), [f"tier {t}" for t in change.columns], fontsize=8.5)
    sizes = table.groupby("tier")["n_references"].first()
    axis.set_yticks(np.arange(len(change)), [f"tier {t} ({sizes[t]})" for t in change.index], fontsize=8.5)
    axis.set_xlabel("models ranked")
    axis.set_ylabel("references (how many)")
    figure.colorbar(image, ax=axis).set_label("mean rank change (% of the greatest)", fontsize=8.5)
    return figure


@figure_of("Wrongly ordered pairs by the budget of votes", _STUDY)
def plot_reference_budgets(study: ReferenceStudy, delta: float = np.inf, **labels: Unpack[FigureLabels]) -> Figure:
    """Draw share of pairs in the wrong order against the votes of a model: sets of references, and single ones by tier.

    A line turns flat where models run out of votes (``n_short`` in the table). It ends where it rests on fewer pairs
    than the study's ``few_pairs``. Single references with fewer pairs do not enter the mean of their tier. Single
    references rank other models than sets do, unlike in ``by_set``.
    """
    rows = study.by_budget[study.by_budget["delta"] == delta]
    if len(rows) == 0:
        raise ValueError(f"no budget was studied with delta {delta:g}")
    rows = hide_few_pairs(rows, "misordered", study.settings.few_pairs).dropna(subset="misordered")
    single = rows[rows["n_references"] == 1].groupby(["tier", "budget"])["misordered"].mean()
    figure, axis = style.one_axis(6.4, 3.8)
    for k, (tier, line) in enumerate(single.groupby(level="tier")):
        label = f"one of tier {tier}, mean"
        axis.plot(line.index.get_level_values("budget"), line, "--", color=GREY, alpha=1 - 0.18 * (k % 5), label=label)
        axis.annotate(f" {tier}", (line.index[-1][1], line.iloc[-1]), fontsize=7.5, color=GREY, va="center")
    several = rows[rows["n_references"] > 1]
    for k, (name, line) in enumerate(several.groupby("references", sort=False)):
        colour, ends = COLOURS[k % len(COLOURS)], (line["misordered_lower"], line["misordered_upper"])
        axis.plot(line["budget"], line["misordered"], "o-", markersize=3.5, color=colour, label=style.legend_name(name))
        axis.fill_between(line["budget"], *ends, color=colour, alpha=0.12)
    axis.set_xscale("log")
    axis.set_xticks(study.settings.budgets, [f"{b:,}" for b in study.settings.budgets])
    axis.minorticks_off()
    style.legend_beside(figure, *axis.get_legend_handles_labels())
    style.finish(axis, x="votes of a model", y="share of pairs in the wrong order")
    return figure


_MOST_ROWS = 40


@figure_of(
    "Agreement of the close pairs with gold",
    Takes("the table that kendall_tau_delta() returns", ("delta", "tau", "n_pairs")),
)
def plot_tau_delta(taus: pd.DataFrame, few_pairs: int = FEW_PAIRS, **labels: Unpack[FigureLabels]) -> Figure:
    """Plot tau by evaluator and delta as a heat table; each cell shows its number of pairs, and its interval if any.

    Args:
        taus: as `kendall_tau_delta` returns it.
        few_pairs: taus of fewer pairs are hidden, but not their numbers of pairs; 0 shows all.
    """
    shown = hide_few_pairs(taus, "tau", few_pairs)
    text = [_cell(row, "tau", f"{row.n_pairs:,} pairs", "+.2f") for row in shown.itertuples()]
    heads = ["all pairs" if np.isinf(delta) else f"gap under {delta:g}" for delta in dict.fromkeys(shown["delta"])]
    return _heat(shown, "tau", heads, text, ABOUT_A_MIDDLE, (-1.0, 1.0), "Kendall's tau-b with gold")


@figure_of(
    "Changes of ranks by tier",
    Takes("the table that stratified_rank_change() returns", ("tier", "rank_change", "n_models")),
)
def plot_rank_change(changes: pd.DataFrame, few_pairs: int = FEW_PAIRS, **labels: Unpack[FigureLabels]) -> Figure:
    """Mean change of ranks by evaluator and tier as a heat table, the best tier first (Figures 1 and 2 of Xu et al.).

    Each cell shows its number of models in parentheses, and its interval if it has one.

    Args:
        changes: as `stratified_rank_change` returns it.
        few_pairs: changes of fewer pairs are hidden, but not their numbers of models; 0 shows all.
    """
    shown = hide_few_pairs(changes, "rank_change", few_pairs)
    text = [_cell(row, "rank_change", f"({row.n_models})", ".1f") for row in shown.itertuples()]
    tiers = shown["tier"].unique()
    ends = np.round(100 * np.arange(len(tiers), -1, -1) / len(tiers)).astype(int)
    heads = [f"tier {t}\n{low}-{high} %" for t, high, low in zip(tiers, ends[:-1], ends[1:], strict=True)]
    most = shown["rank_change"].max()
    scale = (0.0, most if most > 0 else 1.0)  # NaN is not
    return _heat(shown, "rank_change", heads, text, AMOUNTS, scale, "mean |rank - gold rank| (places)")


@figure_of(
    "Agreement with gold by the gap of scores",
    Takes("the table that agreement_by_gap() returns", ("delta", "probability", "average_below", "observed")),
)
def plot_agreement(
    curve: pd.DataFrame, probability: float | None = None, few_pairs: int = FEW_PAIRS, **labels: Unpack[FigureLabels]
) -> Figure:
    """Draw the probability that gold agrees, by the gap of scores: one panel per evaluator, with a line and its band.

    The dotted line is the average of all smaller gaps. Steps are the observed shares of agreeing pairs; where they
    leave the line, the model behind the line does not fit.

    Args:
        curve: as `agreement_by_gap` returns it; a dozen gaps or more make a smooth line.
        probability: a probability to mark with a dashed line.
        few_pairs: lines and steps end where they rest on fewer pairs; 0 shows all.
    """
    curve = with_evaluator(hide_few_in_agreement(curve, few_pairs))
    evaluators = list(dict.fromkeys(curve["evaluator"]))
    figure, axes = style.grid(len(evaluators), (1.0, 3.0), (0.8, 2.5), sharey=True)
    for k, (axis, evaluator) in enumerate(zip(axes, evaluators, strict=True)):
        line = curve[curve["evaluator"] == evaluator].sort_values("delta")
        colour = COLOURS[k % len(COLOURS)]
        if "lower" in line:
            axis.fill_between(line["delta"], line["lower"], line["upper"], color=colour, alpha=0.18, linewidth=0)
        axis.plot(line["delta"], line["probability"], color=colour, label="at this gap")
        axis.plot(
            line["delta"], line["average_below"], color=colour, linestyle=":", label="average below it, (1 + tau)/2"
        )
        axis.step(line["delta"], line["observed"], where="mid", color="black", linewidth=0.9, label="observed, by bins")
        axis.axhline(0.5, color=GREY, linewidth=0.8)
        if probability is not None:
            axis.axhline(probability, color="black", linewidth=0.8, linestyle="--")
        axis.set_ylim(0, 1.02)
        if evaluator:
            axis.set_title(style.shown_name(evaluator), loc="left", fontsize=9.5, parse_math=False)
        axis.set_xlabel("gap of scores (points)", fontsize=9)
        style.plain(axis)
    axes[0].set_ylabel("probability that gold agrees", fontsize=9)
    axes[0].legend(frameon=False, fontsize=7.5, loc="lower right")
    return figure


def _cell(row: Any, name: str, count: str, form: str) -> str:
    if np.isnan(getattr(row, name)):
        return count
    ends = f"\n{row.lower:{form}} to {row.upper:{form}}" if hasattr(row, "lower") else ""
    return f"{getattr(row, name):{form}}{ends}\n{count}"


def _heat(
    table: pd.DataFrame, name: str, labels: Sequence[str], text: Sequence[str], colours: str, ends: tuple[float, float],
    title: str,
) -> Figure:  # fmt: skip
    """Draw a heat table of column ``name``: a row per evaluator, as many columns as ``labels``; NaN cells are pale."""
    evaluators = list(dict.fromkeys(with_evaluator(table)["evaluator"]))[:_MOST_ROWS]
    shape = len(evaluators), len(labels)
    size = shape[0] * shape[1]
    values = table[name].to_numpy()[:size].reshape(shape)
    names = [style.shown_name(evaluator) for evaluator in evaluators]
    look = HeatLook(colours, ends, inches=(1.05, 0.55), above=title)
    return heat_map(values, np.reshape(text[:size], shape), names, labels, look)
