"""Figures of pairs of models: the points of each beside those that ratings expect."""

from __future__ import annotations

from typing import Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from jaxeval.plots.heat import SQUARE, HeatLook, heat_map, hidden_text
from jaxeval.plots.labels import Labels, Takes, figure_of
from jaxeval.plots.style import COLOURS, GREY, finish, joint_name, one_axis
from jaxeval.tables.shown import rated

_MOST = 40
_TAKES = Takes(
    "the table of pairs of a GoodnessOfFit", ("model_a", "model_b", "votes", "share", "expected", "z", "p_value")
)
_CLEAR = 0.05


@figure_of("Points of pairs, and what ratings expect", _TAKES)
def plot_pair_fit(pairs: pd.DataFrame, **labels: Unpack[Labels]) -> Figure:
    """The share of points of each pair's first model against the expected share; larger marks have more votes.

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
