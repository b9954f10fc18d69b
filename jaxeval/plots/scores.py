"""Figures of the errors of scores."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from matplotlib.figure import Figure

from jaxeval.plots.style import COLOURS, GREY, FigureLabels, Takes, figure_of, finish, one_axis, shown_name
from jaxeval.scores.error_budget import ErrorBudget
from jaxeval.statistics.variance_components import RESIDUAL
from jaxeval.wording import counted


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
    left_out = len(table) - len(shown)
    note = f"; {counted(left_out, 'more pair')} not shown" if left_out else ""
    finish(axis, x=f"variance of the estimate, by what was sampled{note}", legend=True)
    return figure
