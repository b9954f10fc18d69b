"""Figures of evaluators and gold: tau by gap, rank changes by tier, and agreement against the gap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from jaxeval.evaluators.model_scores import FEW_PAIRS, hide_few_in_agreement, hide_few_pairs
from jaxeval.evaluators.resamples import with_evaluator
from jaxeval.plots.heat import HeatLook, heat_map
from jaxeval.plots.style import COLOURS, GREY, Labels, Takes, figure_of, plain, shown_name

_MOST_ROWS = 40


@figure_of(
    "Agreement of the close pairs with gold",
    Takes("the table that kendall_tau_delta() returns", ("delta", "tau", "n_pairs")),
)
def plot_tau_delta(taus: pd.DataFrame, few_pairs: int = FEW_PAIRS, **labels: Unpack[Labels]) -> Figure:
    """Tau by evaluator and delta as a heat table; each cell shows its number of pairs, and its interval if it has one.

    Args:
        taus: as `kendall_tau_delta` returns it.
        few_pairs: taus of fewer pairs are hidden, but not their numbers of pairs; 0 shows all.
    """
    shown = hide_few_pairs(taus, "tau", few_pairs)
    text = [_cell(row, "tau", f"{row.n_pairs:,} pairs", "+.2f") for row in shown.itertuples()]
    heads = ["all pairs" if np.isinf(delta) else f"Δ < {delta:g}" for delta in dict.fromkeys(shown["delta"])]
    return _heat(shown, "tau", heads, text, "RdBu", (-1.0, 1.0), "Kendall's tau-b with gold")


@figure_of(
    "Changes of ranks by tier",
    Takes("the table that stratified_rank_change() returns", ("tier", "rank_change", "n_models")),
)
def plot_rank_change(changes: pd.DataFrame, few_pairs: int = FEW_PAIRS, **labels: Unpack[Labels]) -> Figure:
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
    return _heat(shown, "rank_change", heads, text, "YlOrBr", scale, "mean |rank - gold rank| (places)")


@figure_of(
    "Agreement with gold by the gap of scores",
    Takes("the table that agreement_by_gap() returns", ("delta", "probability", "average_below", "observed")),
)
def plot_agreement(
    curve: pd.DataFrame, probability: float | None = None, few_pairs: int = FEW_PAIRS, **labels: Unpack[Labels]
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
    columns = min(len(evaluators), 4)
    rows = -(-len(evaluators) // columns)
    figure = Figure(figsize=(1.0 + 3.0 * columns, 0.8 + 2.5 * rows), layout="constrained")
    axes = np.atleast_1d(figure.subplots(rows, columns, sharey=True, squeeze=False)).reshape(-1)
    for k, (axis, evaluator) in enumerate(zip(axes, evaluators, strict=False)):
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
            axis.set_title(shown_name(evaluator), loc="left", fontsize=9.5, parse_math=False)
        axis.set_xlabel("gap of scores (points)", fontsize=9)
        plain(axis)
    for axis in axes[len(evaluators) :]:
        axis.set_visible(False)
    axes[0].set_ylabel("probability that gold agrees", fontsize=9)
    axes[0].legend(frameon=False, fontsize=7.5, loc="lower right")
    return figure


def _cell(row: Any, name: str, count: str, form: str) -> str:
    if np.isnan(getattr(row, name)):
        return count
    ends = f"\n{row.lower:{form}} to {row.upper:{form}}" if hasattr(row, "lower") else ""
    return f"{getattr(row, name):{form}}{ends}\n{count}"


def _heat(
    table: pd.DataFrame,
    name: str,
    labels: Sequence[str],
    text: Sequence[str],
    colours: str,
    ends: tuple[float, float],
    title: str,
) -> Figure:
    """A heat table of the column ``name``: a row per evaluator, as many columns as ``labels``; NaN cells are pale."""
    evaluators = list(dict.fromkeys(with_evaluator(table)["evaluator"]))[:_MOST_ROWS]
    shape = len(evaluators), len(labels)
    size = shape[0] * shape[1]
    values = table[name].to_numpy()[:size].reshape(shape)
    names = [shown_name(evaluator) for evaluator in evaluators]
    look = HeatLook(colours, ends, inches=(1.05, 0.55), above=title)
    return heat_map(values, np.reshape(text[:size], shape), names, labels, look)
