"""Figures of the agreement of judges with people."""

from __future__ import annotations

from typing import Unpack

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxeval.agreement.judge_agreement import JudgeAgreement
from jaxeval.plots.labels import Labels, Takes, figure_of
from jaxeval.plots.style import COLOURS, GREY, finish, legend_name, panels, shown_name

_BIASES = {"flips": "flips with the order", "first_chosen": "first answer", "longer_chosen": "longer answer",
           "own_family": "own family"}  # fmt: skip
_MARKS = "osD^vP"


@figure_of("Judges and people", Takes("a JudgeAgreement, as judge_agreement() returns it", kinds=(JudgeAgreement,)))
def plot_judge_agreement(found: JudgeAgreement, **labels: Unpack[Labels]) -> Figure:
    """Agreement on decided battles, agreement by the gap of people's ratings, and biases, with their intervals.

    The band shows how far people agree with each other; it is drawn where battles have labels of two people.

    Args:
        found: as `jaxeval.judge_agreement` returns it.
    """
    table = found.table[found.table["judge"] != "people"]
    people = found.table[found.table["judge"] == "people"].iloc[0]
    height = 1.8 + 0.3 * len(table)
    has_gaps = len(found.by_gap) > 0
    axes = panels(3 if has_gaps else 2, 13.0 if has_gaps else 9.0, max(height, 3.4))
    figure, (left, *between, right) = axes
    _intervals(left, table, {"agreement": "agreement"})
    for axis in (left, *between):
        if np.isfinite(people["agreement"]):
            ends = people["agreement_lower"], people["agreement_upper"]
            (axis.axvspan if axis is left else axis.axhspan)(*ends, color=GREY, alpha=0.25, linewidth=0)
    known = "\n(band: people with each other)" if np.isfinite(people["agreement"]) else ""
    finish(left, x=f"agreement with people{known}")
    for middle in between:
        _by_gap(middle, found)
    biases = {name: text for name, text in _BIASES.items() if name in table}
    _intervals(right, table, biases)
    right.axvline(0.5, color=GREY, linewidth=1, linestyle="--")
    finish(right, x="share of verdicts", legend=bool(biases))
    return figure


def _by_gap(middle: Axes, found: JudgeAgreement) -> None:
    """Agreement by the gap of people's ratings."""
    bins = found.by_gap[["gap_from", "gap_to"]].drop_duplicates().to_numpy()
    for k, (name, block) in enumerate(found.by_gap.groupby("judge", sort=False)):
        x = np.arange(len(bins)) + 0.06 * k
        ends_of = block["agreement"] - block["lower"], block["upper"] - block["agreement"]
        colour = COLOURS[k % len(COLOURS)]
        middle.errorbar(x, block["agreement"], yerr=np.clip(ends_of, 0, 1), fmt="o-", markersize=4, linewidth=1,
                        color=colour, label=legend_name(name))  # fmt: skip
    middle.set_xticks(
        np.arange(len(bins)), [f"{a:g}-{b:g}" if np.isfinite(b) else f">{a:g}" for a, b in bins], fontsize=8
    )
    finish(middle, x="gap of people's ratings (Elo)", y="agreement", legend=True)


def _intervals(axis: Axes, table: pd.DataFrame, measures: dict[str, str]) -> None:
    """One row per judge from the top down, with the intervals of some measures."""
    place = np.arange(len(table))
    for k, (name, text) in enumerate(measures.items()):
        y = place + 0.14 * (k - (len(measures) - 1) / 2)
        colour = COLOURS[k % len(COLOURS)]
        axis.hlines(y, table[f"{name}_lower"], table[f"{name}_upper"], color=colour, linewidth=2, alpha=0.5)
        axis.plot(table[name], y, _MARKS[k % len(_MARKS)], markersize=4.5, color=colour, label=text)
    axis.set_yticks(place, [shown_name(name) for name in table["judge"]], fontsize=8, parse_math=False)
    axis.set_ylim(len(table) - 0.5, -0.5)
    axis.set_xlim(0, 1)
