"""Figures of audits."""

from __future__ import annotations

from typing import Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from jaxeval.plots.heat import SQUARE, HeatLook, heat_map, hidden_text
from jaxeval.plots.style import (
    COLOURS,
    GREY,
    Labels,
    Takes,
    figure_of,
    finish,
    joint_name,
    legend_above,
    one_axis,
    plain,
    shown_name,
)
from jaxeval.show.shown import rated
from jaxeval.wording import counted

_WAYS = ("dropped", "flipped", "added")
_MOST = 40
_TAKES = Takes(
    "the table of pairs of a GoodnessOfFit", ("model_a", "model_b", "votes", "share", "expected", "z", "p_value")
)
_CLEAR = 0.05


@figure_of("How few votes swap neighbours", Takes("the table of fewest_votes()", ("above", "below", *_WAYS)))
def plot_fewest_votes(table: pd.DataFrame, top: int = 30, **labels: Unpack[Labels]) -> Figure:
    """Draw the fewest votes found that swap each two neighbours, on a logarithmic axis; a line leads to what is proved.

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


@figure_of("Points of pairs, and what ratings expect", _TAKES)
def plot_pair_fit(pairs: pd.DataFrame, **labels: Unpack[Labels]) -> Figure:
    """Draw the share of points of each pair's first model against the expected share; larger marks have more votes.

    Args:
        pairs: ``goodness_of_fit(...).pairs``.
    """
    figure, axis = one_axis(5.6, 5.2)
    odd = (pairs["p_value"] <= _CLEAR).to_numpy()
    size = 4 + 60 * pairs["votes"].to_numpy() / max(pairs["votes"].max(), 1)
    for chosen, colour, name in ((~odd, COLOURS[0], "pairs"), (odd, COLOURS[1], "pairs that stick out")):
        if chosen.any():
            x, y = (100 * pairs[column].to_numpy()[chosen] for column in ("expected", "share"))
            axis.scatter(x, y, size[chosen], color=colour, alpha=0.5, linewidth=0, label=name)
    axis.axline((0, 0), slope=1, color=GREY, linewidth=1)
    finish(axis, x=f"expected points of the first {rated(pairs).one}, %", y="points that it took, %", legend=True)
    return figure


@figure_of("Who did better than ratings expect", _TAKES)
def plot_pair_residuals(pairs: pd.DataFrame, top: int | None = _MOST, **labels: Unpack[Labels]) -> Figure:
    """By how many standard errors the row's model did better than expected against the column's.

    Cells of pairs that never met are pale.

    Args:
        pairs: ``goodness_of_fit(...).pairs``.
        top: models shown, those farthest from expectation; the figure says how many are not.
    """
    both = pd.concat([pairs, pairs.rename(columns={"model_a": "model_b", "model_b": "model_a"}).assign(z=-pairs["z"])])
    size = both.assign(square=both["z"] ** 2).groupby("model_a", sort=False)["square"].sum()
    chosen = size.sort_values(ascending=False, kind="stable").index[: top or len(size)]
    table = both.pivot_table(index="model_a", columns="model_b", values="z", aggfunc="first", dropna=False)
    z = table.reindex(index=chosen, columns=chosen).to_numpy(float)
    end = max(3.0, float(np.nanmax(np.abs(z), initial=0.0)))
    names = [joint_name(name) for name in chosen]
    below = hidden_text(len(size), len(names))
    look = HeatLook("RdBu", (-end, end), SQUARE, "standard errors above expectation", below=below, upright=True)
    text = np.array([["" if np.isnan(x) else str(round(x)) for x in row] for row in z], object).reshape(z.shape)
    return heat_map(z, text, names, names, look)
