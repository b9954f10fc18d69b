"""Figures of reference-anchored scores: by judge, under several references, and the use of screening and pooling."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.sparse.csgraph import connected_components

from jaxeval.anchored.diagnostics import rating_board
from jaxeval.anchored.screening import JudgeScreen
from jaxeval.arrays import Float
from jaxeval.errors import DataError
from jaxeval.plots import style
from jaxeval.plots.style import COLOURS, GREY, FigureLabels, Takes, figure_of
from jaxeval.wording import counted

_MOST_MODELS = 40
_POOLING = {"empirical": "resampled items", "predicted": "by ICC(3,k)", "predicted_observed": "by observed correlation"}
_SUBSAMPLES = ("empirical", "theoretical", "corrected", "adjusted")


@figure_of(
    "Ratings above the reference",
    Takes("the table that anchored_scores() returns", ("model", "rating", "rating_lower", "rating_upper")),
    says=True,
)
def plot_anchored(scores: pd.DataFrame, strong: list[Hashable] | None = None, **labels: Unpack[FigureLabels]) -> Figure:
    """Plot models' ratings with intervals: one point per judge, one panel per reference and task (Figure 2, left).

    If there are more than 40 models, the figure shows the 40 with the largest mean rating, and says so.

    Args:
        scores: as `anchored_scores` returns it, by model, judge, anchor and task (or fewer of them).
        strong: judges that pass the screen; the others are drawn pale.
    """
    table = scores.assign(**{c: "" for c in ("judge", "anchor", "task") if c not in scores})
    ranked = list(table.groupby("model", observed=True)["rating"].mean().sort_values().index)
    models = ranked[-_MOST_MODELS:]
    panels = list(dict.fromkeys(zip(table["anchor"], table["task"], strict=True)))
    several = [len(set(names)) > 1 for names in zip(*panels, strict=True)]
    judges = list(dict.fromkeys(table["judge"]))
    height = 1.2 + 0.09 * (min(len(judges), 8) + 2) * len(models)
    figure, axes = style.grid(len(panels), (1.8, 4.2), (0.0, height), sharex=True, sharey=True)
    offsets = np.linspace(-0.3, 0.3, len(judges)) if len(judges) > 1 else np.zeros(1)
    for axis, (anchor, task) in zip(axes, panels, strict=True):
        block = table[(table["anchor"] == anchor) & (table["task"] == task) & table["model"].isin(models)]
        for k, judge in enumerate(judges):
            of_judge = block[block["judge"] == judge]
            y = np.array([models.index(model) for model in of_judge["model"]]) + offsets[k]
            pale = strong is not None and judge not in strong
            colour = COLOURS[k % len(COLOURS)]
            axis.hlines(
                y, of_judge["rating_lower"], of_judge["rating_upper"], color=colour, alpha=0.15 if pale else 0.5
            )
            label = f"{style.legend_name(judge)} (weak)" if pale else style.legend_name(judge)
            axis.scatter(of_judge["rating"], y, s=14, color=colour, alpha=0.3 if pale else 1.0, zorder=3, label=label)
        axis.axvline(0, color=GREY, linewidth=1, linestyle="--")
        titles = [text for text, more in zip((f"against {anchor}", task), several, strict=True) if more]
        axis.set_title(", ".join(map(style.shown_name, titles)), loc="left", fontsize=10, parse_math=False)
        style.plain(axis)
    for axis in axes[-style.A_ROW :]:
        axis.set_xlabel("rating above the reference (Elo)")
    axes[0].set_yticks(np.arange(len(models)), [style.shown_name(m) for m in models], fontsize=8.5, parse_math=False)
    if len(models) < len(ranked):
        figure.suptitle(f"the best {len(models)} of {counted(len(ranked), 'model')}", x=0, ha="left", fontsize=9)
    if len(judges) > 1:
        style.legend_beside(figure, *axes[0].get_legend_handles_labels())
    return figure


@figure_of(
    "Ratings under each reference",
    Takes("the table that anchored_scores() returns, by model and anchor", ("model", "anchor", "rating")),
)
def plot_anchor_swap(scores: pd.DataFrame, **labels: Unpack[FigureLabels]) -> Figure:
    """Plot centred ratings under each reference, a line per model; parallel lines are stable ratings (Figure 2, right).

    A model's ratings are averaged over the judges and tasks that its references share. Every reference is centred by
    the models that it shares with others. A reference that shares no model is left out, and the figure says so.

    Raises:
        DataError: no two references have a model in common by the same judge and task.
    """
    other = scores[scores["model"].astype(str) != scores["anchor"].astype(str)]
    board = rating_board(other)
    lines = _comparable(board)
    figure, axis = style.one_axis(1.6 + 1.6 * len(lines.columns), 4.2)
    for k, (model, row) in enumerate(lines.iterrows()):
        place = np.flatnonzero(row.notna())
        y = row.iloc[place]
        axis.plot(place, y, "o-", markersize=3.5, linewidth=1, color=COLOURS[k % len(COLOURS)])
        if len(lines) <= 12:
            axis.annotate(
                f"  {style.shown_name(model)}", (place[-1], y.iloc[-1]), fontsize=7.5, va="center", parse_math=False
            )
    axis.set_xticks(np.arange(len(lines.columns)), [style.shown_name(c) for c in lines], fontsize=8.5, parse_math=False)
    axis.set_ylabel("centred rating (Elo)")
    if absent := [style.shown_name(c) for c in board if c not in lines]:
        why = f"without {', '.join(absent)}: no model in common by the same judges and tasks"
        axis.set_title(why, loc="left", fontsize=8, parse_math=False)
    style.plain(axis)
    return figure


def _comparable(board: pd.DataFrame) -> pd.DataFrame:
    """Return centred ratings of models under references, NaN where there is none, of the largest connected set."""
    means = {model: _shared_mean(rows.to_numpy()) for model, rows in board.groupby(level="model", observed=True)}
    table = pd.DataFrame.from_dict(means, orient="index", columns=board.columns).dropna(thresh=2)
    if len(table) == 0:
        raise DataError(
            "no two references have a model in common by the same judge and task: there is nothing to compare"
        )
    there = np.asarray(table.notna())
    _, part = connected_components(there.T.astype(int) @ there)
    of_model = part[there.argmax(1)]
    largest = np.bincount(of_model).argmax()
    table = table.loc[of_model == largest, part == largest]
    # By least squares of model and reference; where nothing is missing it is the mean of a column.
    m, r = np.nonzero(table.notna().to_numpy())
    design = np.concatenate([np.eye(len(table))[m], np.eye(len(table.columns))[r]], axis=1)
    effects = np.linalg.lstsq(design, table.to_numpy()[m, r], rcond=None)[0][len(table) :]
    centred = table - effects
    centred -= np.nanmean(centred.to_numpy())
    return centred.loc[centred.mean(axis=1).sort_values().index]


def _shared_mean(ratings: Float) -> Float:
    """Mean (A,) of a model's ratings (cells, A) over the cells that its references share; NaN for those left out."""
    there = np.asarray(~np.isnan(ratings))
    used = np.asarray(there.any(0))
    shared = there.T.astype(int) @ there
    while used.sum() > 1 and not there[:, used].all(1).any():
        with_others = np.where(used, shared[:, used].sum(1) - shared.diagonal(), len(there) * len(used))
        used[with_others.argmin()] = False
    cells = there[:, used].all(1)
    mean = np.full(len(used), np.nan)
    mean[used] = ratings[np.ix_(cells, used)].mean(0)
    return mean


@figure_of(
    "Reliability of the judges", Takes("a JudgeScreen, as screen_judges() returns it", kinds=(JudgeScreen,)), says=True
)
def plot_screen(screen: JudgeScreen, **labels: Unpack[FigureLabels]) -> Figure:
    """Draw ICC(3,k) of every judge with its interval, and the threshold."""
    table = screen.table.sort_values("average")
    figure, axis = style.one_axis(5.2, 1.1 + 0.24 * len(table))
    y = np.arange(len(table))
    colours = np.where(table["strong"], COLOURS[0], GREY)
    axis.hlines(y, table["average_lower"], table["average_upper"], color=colours, linewidth=2.5, alpha=0.5)
    axis.scatter(table["average"], y, s=18, color=colours, zorder=3)
    axis.axvline(screen.threshold, color="black", linewidth=1, linestyle=":")
    axis.set_yticks(y, [style.shown_name(j) for j in table.index], fontsize=8.5, parse_math=False)
    runs = screen.table["n_runs"].unique()
    style.finish(axis, x=f"ICC(3,{runs[0] if len(runs) == 1 else 'k'})")
    return figure


@figure_of("What more judges buy", Takes("the table that pooling_curve() returns", ("n_judges", *_POOLING)))
def plot_pooling(curve: pd.DataFrame, **labels: Unpack[FigureLabels]) -> Figure:
    """Draw the variance of the pooled rating against the number of judges, as `pooling_curve` returns it (Figure 5)."""
    return _curves(curve, _POOLING, x=("n_judges", "strong judges"), y="variance of the mean rating (Elo²)")


@figure_of("Standard errors of fewer prompts", Takes("the table that subsample_study() returns", ("n", *_SUBSAMPLES)))
def plot_subsamples(study: pd.DataFrame, **labels: Unpack[FigureLabels]) -> Figure:
    """Draw empirical and predicted standard errors against the number of prompts, as `subsample_study` returns them."""
    return _curves(
        study, {name: name for name in _SUBSAMPLES}, x=("n", "prompts"), y="standard error of the probability"
    )


def _curves(table: pd.DataFrame, labels: dict[str, str], x: tuple[str, str], y: str) -> Figure:
    """Draw the columns of ``labels`` as lines over the column ``x[0]``, which the axis calls ``x[1]``."""
    figure, axis = style.one_axis(5.0, 3.4)
    column, shown = x
    for colour, (name, label) in zip(COLOURS, labels.items(), strict=False):
        axis.plot(table[column], table[name], "o-", markersize=4, color=colour, label=label)
    style.finish(axis, x=shown, y=y, legend=True, from_zero=True)
    return figure
