"""Figures of audits."""

from __future__ import annotations

from typing import Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from jaxeval.plots.labels import Labels, Takes, figure_of
from jaxeval.plots.style import COLOURS, legend_above, one_axis, plain, shown_name
from jaxeval.wording import counted

_WAYS = ("dropped", "flipped", "added")


@figure_of("How few votes swap neighbours", Takes("the table of fewest_votes()", ("above", "below", *_WAYS)))
def plot_fewest_votes(table: pd.DataFrame, top: int = 30, **labels: Unpack[Labels]) -> Figure:
    """The fewest votes found that swap each two neighbours, on a logarithmic axis; a line leads to what is proved.

    Args:
        table: as `fewest_votes` gives it.
        top: pairs shown, the best; the figure says how many are not.
    """
    shown = table.head(top)
    place = np.arange(len(shown))
    figure, axis = one_axis(8, 1.2 + 0.26 * max(len(shown), 1))
    for k, (way, colour) in enumerate(zip(_WAYS, COLOURS, strict=False)):
        votes, at = shown[way].astype(float).to_numpy(), place + 0.22 * (k - 1)
        least = shown.get(f"{way}_at_least", shown[way]).astype(float).to_numpy()
        axis.hlines(at, least, votes, color=colour, linewidth=1.5, alpha=0.5)
        axis.scatter(votes, at, s=16, color=colour, label=way, zorder=3)
    axis.set_xscale("log")
    names = [f"{shown_name(a)} > {shown_name(b)}" for a, b in zip(shown["above"], shown["below"], strict=True)]
    axis.set_yticks(place, names, fontsize=8, parse_math=False)
    axis.set_ylim(max(len(shown), 1) - 0.5, -0.5)
    hidden = len(table) - len(shown)
    more = f"; {counted(hidden, 'more pair')} not shown" if hidden else ""
    axis.set_xlabel(f"votes; lines begin at what is surely needed{more}", fontsize=8.5)
    legend_above(figure, *axis.get_legend_handles_labels())
    plain(axis)
    return figure
