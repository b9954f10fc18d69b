"""Figures of a study of references: agreement by reference and by tier, and loss against the budget."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from matplotlib.figure import Figure

from jaxeval.evaluators.model_scores import hide_few_pairs
from jaxeval.lab.reference_study import ReferenceStudy
from jaxeval.plots.style import (
    COLOURS,
    GREY,
    Labels,
    Takes,
    figure_of,
    finish,
    legend_above,
    legend_beside,
    legend_name,
    one_axis,
    shown_name,
    width_of,
)
from jaxeval.wording import counted

_MOST_REFERENCES = 60


_STUDY = Takes("a ReferenceStudy, as reference_study() returns it", kinds=(ReferenceStudy,))


@figure_of("Agreement of single references with the full ranking", _STUDY)
def plot_references(study: ReferenceStudy, delta: float = np.inf, **labels: Unpack[Labels]) -> Figure:
    """Draw tau-b of the pairs within ``delta`` points with its interval: one row per reference, the best model on top.

    A reference with fewer pairs than the study's ``few_pairs`` shows only its number of pairs. References with more
    votes agree better.
    """
    rows = study.by_delta[study.by_delta["delta"] == delta]
    if len(rows) == 0:
        known = ", ".join(f"{d:g}" for d in study.by_delta["delta"].unique())
        raise ValueError(f"delta {delta:g} was not studied; there are {known}")
    rows = rows.dropna(subset=["tau"]).head(_MOST_REFERENCES)
    names = [shown_name(name) for name in rows["reference"]]
    figure, axis = one_axis(3.6 + width_of(names), 1.2 + 0.2 * len(rows))
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
    legend_above(figure, *axis.get_legend_handles_labels())
    finish(axis, x=f"Kendall's tau-b with the ranking of all votes\n{pairs}")
    return figure


@figure_of("Rank changes by tier of the reference", _STUDY)
def plot_reference_tiers(study: ReferenceStudy, **labels: Unpack[Labels]) -> Figure:
    """Draw the mean rank change by tier of the reference and of the models ranked, with intervals (Figures 1 and 2).

    Cells show percent of the greatest possible change, as references rank different numbers of models; below it stand
    places.
    """
    table = study.by_tier_and_test_tier
    change = 100 * table.pivot_table(index="tier", columns="test_tier", values="relative_change", dropna=False)
    figure, axis = one_axis(1.9 + 1.15 * len(change.columns), 1.3 + 0.75 * len(change))
    image = axis.imshow(change, cmap="YlOrRd", aspect="auto")
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
def plot_reference_budgets(study: ReferenceStudy, delta: float = np.inf, **labels: Unpack[Labels]) -> Figure:
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
    figure, axis = one_axis(6.4, 3.8)
    for k, (tier, line) in enumerate(single.groupby(level="tier")):
        label = f"one of tier {tier}, mean"
        axis.plot(line.index.get_level_values("budget"), line, "--", color=GREY, alpha=1 - 0.18 * (k % 5), label=label)
        axis.annotate(f" {tier}", (line.index[-1][1], line.iloc[-1]), fontsize=7.5, color=GREY, va="center")
    several = rows[rows["n_references"] > 1]
    for k, (name, line) in enumerate(several.groupby("references", sort=False)):
        colour, ends = COLOURS[k % len(COLOURS)], (line["misordered_lower"], line["misordered_upper"])
        axis.plot(line["budget"], line["misordered"], "o-", markersize=3.5, color=colour, label=legend_name(name))
        axis.fill_between(line["budget"], *ends, color=colour, alpha=0.12)
    axis.set_xscale("log")
    axis.set_xticks(study.settings.budgets, [f"{b:,}" for b in study.settings.budgets])
    axis.minorticks_off()
    legend_beside(figure, *axis.get_legend_handles_labels())
    finish(axis, x="votes of a model", y="share of pairs in the wrong order")
    return figure
