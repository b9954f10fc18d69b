"""Figures of judged accuracies: estimates, differences, the judge's rates, and the use of calibration labels."""

from __future__ import annotations

from typing import Unpack

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxeval.accuracy.accuracy_tables import AccuracyTables, of_slice
from jaxeval.accuracy.calibration_planning import allocate_calibration, interval_length, variance_ratio
from jaxeval.accuracy.difference_tables import DifferenceTables
from jaxeval.agreement.judge_agreement import JudgeAgreement
from jaxeval.plots import style
from jaxeval.plots.style import COLOURS, GREY, FigureLabels, Takes, figure_of
from jaxeval.wording import did_you_mean

#: Name and colour of each estimator and method.
_STYLES = {
    "naive": ("naive", "#8a8f98"), "calibration_only": ("labels only", "#3c8f8a"), "difference": ("PPI", "#6f5aa8"),
    "ppi_plus_plus_half": ("PPI++ half", "#c98ab0"), "ppi_plus_plus": ("PPI++", "#c2447f"),
    "conditional": ("conditional", "#6b8e3d"), "eif": ("EIF", "#c98a1b"),
    "rogan_gladen_shared": ("RG shared", "#7aa6cf"), "rogan_gladen": ("RG own", "#1f5a93"),
    "rogan_gladen_adaptive": ("RG, Algorithm 1", "#6b8e3d"),
}  # fmt: skip
#: The estimators that arXiv:2605.06939 compares.
FIVE = ("naive", "rogan_gladen_shared", "rogan_gladen", "ppi_plus_plus_half", "ppi_plus_plus")
_MOST = 30
_ACCURACY = Takes("a JudgeAccuracy, as judge_accuracy() returns it", kinds=(AccuracyTables,))
_BIASES = {"flips": "flips with the order", "first_chosen": "first answer", "longer_chosen": "longer answer",
           "own_family": "own family"}  # fmt: skip
_MARKS = "osD^vP"


@figure_of("Accuracies of models", _ACCURACY)
def plot_accuracy(
    accuracy: AccuracyTables, estimators: tuple[str, ...] = FIVE, label: str = "all", **labels: Unpack[FigureLabels]
) -> Figure:
    """Plot bootstrap medians and intervals of every model, one panel per judge; a line marks the truth where known.

    The figure follows Figure 2 of arXiv:2605.06939.

    Args:
        accuracy: a `JudgeAccuracy`.
        estimators: to draw.
        label: the slice to draw.
    """
    _check_estimators("plot_accuracy", estimators)
    table = of_slice(accuracy.table, label)
    xlabel = f"accuracy, {100 * accuracy.settings.level:g}% bootstrap interval"
    figure = _intervals(table, ["model"], estimators, xlabel, (1.6, 4.4))
    _left_out(figure, table["model"].nunique(), "models")
    return figure


@figure_of(
    "Differences in accuracy", Takes("a ModelComparison, as compare_models() returns it", kinds=(DifferenceTables,))
)
def plot_differences(
    comparison: DifferenceTables, estimators: tuple[str, ...] = FIVE, label: str = "all", **labels: Unpack[FigureLabels]
) -> Figure:
    """Draw bootstrap medians and intervals of the differences of every pair of models, one panel per judge."""
    _check_estimators("plot_differences", estimators)
    table = of_slice(comparison.table, label)
    xlabel = f"difference in accuracy, {100 * comparison.accuracy.settings.level:g}% bootstrap interval"
    figure = _intervals(table, ["model_a", "model_b"], estimators, xlabel, (2.2, 4.2))
    for axis in figure.axes:
        axis.axvline(0, color=GREY, linewidth=1)
    _left_out(figure, len(table.drop_duplicates(["model_a", "model_b"])), "pairs")
    return figure


def _check_estimators(function: str, estimators: tuple[str, ...]) -> None:
    if unknown := [name for name in estimators if name not in _STYLES]:
        hint = did_you_mean(unknown[0], _STYLES)
        raise ValueError(f"{function} draws the estimators {', '.join(_STYLES)}, not {unknown[0]!r}{hint}")


def _intervals(
    table: pd.DataFrame, models: list[str], estimators: tuple[str, ...], xlabel: str, inches: tuple[float, float]
) -> Figure:
    """Draw medians and intervals of what the columns ``models`` name, one panel per judge.

    ``inches`` are the width of the names, and of a panel.
    """
    subjects = list(dict.fromkeys(zip(*(table[name] for name in models), strict=True)))[:_MOST]
    judges = list(dict.fromkeys(table["judge"]))
    step = len(estimators) + 1
    size = inches[0] + inches[1] * len(judges), 1.2 + 0.16 * step * len(subjects)
    figure, axes = style.panels(len(judges), *size, sharex=True, sharey=True)
    places = {subject: -place * step for place, subject in enumerate(subjects)}
    for axis, judge in zip(axes, judges, strict=True):
        for subject, rows in table[table["judge"] == judge].set_index("estimator").groupby(models, sort=False):
            if (top := places.get(subject)) is None:
                continue
            truth = rows["truth"].iloc[0]
            if np.isfinite(truth):
                axis.plot([truth, truth], [top + 0.5, top - step + 1.5], color="black", linewidth=1, linestyle=":")
            for k, name in enumerate(estimators):
                row, (text, colour) = rows.loc[name], _STYLES[name]
                if not np.isnan(row["median"]):
                    ends = row["boot_lower"], row["boot_upper"]
                    axis.hlines(top - k, *ends, color=colour, linewidth=2.2, alpha=0.55)
                axis.plot(row["median"], top - k, "o", markersize=4, color=colour, label=None if top else text)
        style.finish(axis, x=xlabel, title=style.shown_name(judge))
    centres = [top - (len(estimators) - 1) / 2 for top in places.values()]
    names = [" minus\n".join(map(style.shown_name, subject)) for subject in subjects]
    axes[0].set_yticks(centres, names, fontsize=8.5, parse_math=False)
    handles, labels = axes[0].get_legend_handles_labels()
    style.legend_above(figure, handles, labels)
    return figure


@figure_of("Rates of the judges", _ACCURACY)
def plot_rates(accuracy: AccuracyTables, label: str = "all", **labels: Unpack[FigureLabels]) -> Figure:
    """Draw specificity, sensitivity and J of every judge on every model, with their intervals."""
    table = of_slice(accuracy.rates, label).dropna(subset=["j"])
    models = list(dict.fromkeys(table["model"]))[:_MOST]
    judges = list(dict.fromkeys(table["judge"]))
    figure, axes = style.panels(3, 10.0, 1.3 + 0.17 * (len(judges) + 1) * max(len(models), 1), sharey=True)
    colours, handles = [colour for _, colour in _STYLES.values()], []
    titles = {"q0": "specificity q0", "q1": "sensitivity q1", "j": "Youden's J"}
    for axis, (name, title) in zip(axes, titles.items(), strict=True):
        for k, judge in enumerate(judges):
            rows = table[table["judge"] == judge].set_index("model").reindex(models)
            y = -np.arange(len(models)) * (len(judges) + 1) - k
            colour = colours[(4 + 4 * k) % len(colours)]
            axis.hlines(y, rows[f"{name}_lower"], rows[f"{name}_upper"], color=colour, linewidth=2, alpha=0.5)
            points = axis.scatter(rows[name], y, s=16, color=colour, zorder=3)
            if axis is axes[2]:
                handles.append(points)
        style.finish(axis, title=title)
    axes[2].axvline(0, color=GREY, linewidth=1, linestyle="--")
    centres = -np.arange(len(models)) * (len(judges) + 1) - (len(judges) - 1) / 2
    axes[0].set_yticks(centres, [style.shown_name(m) for m in models], fontsize=8.5, parse_math=False)
    if handles:
        style.name_legend(axes[2], handles, [style.legend_name(judge) for judge in judges])
    _left_out(figure, table["model"].nunique(), "models")
    return figure


@figure_of("Length of the Rogan-Gladen interval")
def plot_interval_length(
    p: tuple[float, ...] = (0.3, 0.5, 0.7, 0.9), q0: float = 0.7, q1: float = 0.9, n: float = np.inf,
    level: float = 0.95, most: int = 1000, **labels: Unpack[FigureLabels],
) -> Figure:  # fmt: skip
    """Draw the length of the Rogan-Gladen interval against the number of calibration labels.

    Labels are split in halves between the classes (dashed), or by Algorithm 1. The figure follows Figure 3 of
    arXiv:2511.21140.
    """
    figure, axis = style.one_axis(6.0, 4.0)
    m = np.arange(20, most + 1, 10)
    for share, colour in zip(p, ("#c0392b", "#c98a1b", "#6b8e3d", "#1f5a93", "#6f5aa8"), strict=False):
        split = allocate_calibration(m, share, q0, q1, 0)
        m0, m1 = (np.maximum(np.asarray(x), 1) for x in (split.m0, split.m1))
        axis.plot(m, interval_length(share, q0, q1, n, m / 2, m / 2, level), color=colour, linestyle="--", linewidth=1)
        axis.plot(m, interval_length(share, q0, q1, n, m0, m1, level), color=colour, label=f"p = {share:g}")
    axis.set_title(f"q0 = {q0:g}, q1 = {q1:g}; dashed: half of each class", loc="left", fontsize=10)
    length = f"length of the {100 * level:g}% interval"
    style.finish(axis, x="calibration labels", y=length, legend=True, from_zero=True)
    return figure


@figure_of("Where a judge with a calibration beats the same labels alone")
def plot_regimes(theta: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9), **labels: Unpack[FigureLabels]) -> Figure:
    """Plot variances with a judge over those with the same labels alone; a line at 1 (Figure 4 of arXiv:2511.21140)."""
    figure, axes = style.panels(len(theta), 2.4 * len(theta) + 0.8, 2.9, sharey=True)
    q = np.linspace(0.5, 1, 201)
    for axis, truth in zip(axes, theta, strict=True):
        ratio = variance_ratio(truth, q[:, None], q)
        image = axis.imshow(
            np.log2(np.clip(ratio, 1 / 8, 8)), origin="lower", extent=(0.5, 1, 0.5, 1), vmin=-3, vmax=3,
            cmap=style.LESS_IS_BETTER, aspect="auto",
        )  # fmt: skip
        axis.contour(q, q, ratio, levels=[1.0], colors="black", linewidths=1)
        axis.set_title(f"accuracy {truth:g}", loc="left", fontsize=10)
        axis.set_xlabel("sensitivity q1")
        axis.tick_params(labelsize=8)
    axes[0].set_ylabel("specificity q0")
    bar = figure.colorbar(image, ax=axes, ticks=[-3, -1, 0, 1, 3])
    bar.ax.set_yticklabels(["1/8", "1/2", "1", "2", "8"])
    bar.set_label("variance with judge / without", fontsize=8.5)
    return figure


_WORDS = {
    "theta": "accuracy of the model", "calibration_theta": "share of right answers in the calibration",
    "delta_j": "J of the judge on model B less that on model A", "j_a": "J of the judge on model A",
    "q0": "specificity q0", "q1": "sensitivity q1", "m": "labelled answers", "n": "answers",
    "coverage": "share of intervals that hold the truth", "bias": "mean error of the estimate",
}  # fmt: skip


@figure_of("Simulated study", Takes("the table of a simulated study"))
def plot_study(
    study: pd.DataFrame, x: str, y: str, by: str, level: float | None = None, **labels: Unpack[FigureLabels]
) -> Figure:
    """Draw one column of a simulated study against another, with a line for each value of ``by``."""
    if missing := [name for name in (x, y, by) if name not in study]:
        raise ValueError(f"plot_study finds no column {missing[0]!r}{did_you_mean(missing[0], study.columns)}")
    figure, axis = style.one_axis(5.4, 3.6)
    for name, rows in study.groupby(by, sort=False):
        label, colour = _STYLES.get(str(name), (style.legend_name(name), None))
        axis.plot(rows[x], rows[y], "o-", markersize=3.5, color=colour, label=label)
    if level is not None:
        axis.axhline(level, color="black", linewidth=1, linestyle=":")
    style.finish(axis, x=_WORDS.get(x, x.replace("_", " ")), y=_WORDS.get(y, y.replace("_", " ")), legend=True)
    return figure


def _left_out(figure: Figure, n: int, what: str) -> None:
    if n > _MOST:
        figure.supxlabel(f"the first {_MOST} of {n:,} {what}", fontsize=8.5, color=GREY)


@figure_of("Judges and people", Takes("a JudgeAgreement, as judge_agreement() returns it", kinds=(JudgeAgreement,)))
def plot_judge_agreement(agreement: JudgeAgreement, **labels: Unpack[FigureLabels]) -> Figure:
    """Draw agreement on decided battles, agreement by the gap of people's ratings, and biases, with their intervals.

    The band shows how far people agree with each other; it is drawn where battles have labels of two people.

    Args:
        agreement: as `jaxeval.judge_agreement` returns it.
    """
    table = agreement.table[agreement.table["judge"] != "people"]
    people = agreement.table[agreement.table["judge"] == "people"].iloc[0]
    height = 1.8 + 0.3 * len(table)
    has_gaps = len(agreement.by_gap) > 0
    axes = style.panels(3 if has_gaps else 2, 13.0 if has_gaps else 9.0, max(height, 3.4))
    figure, (left, *between, right) = axes
    _intervals_of_raters(left, table, {"agreement": "agreement"})
    for axis in (left, *between):
        if np.isfinite(people["agreement"]):
            ends = people["agreement_lower"], people["agreement_upper"]
            (axis.axvspan if axis is left else axis.axhspan)(*ends, color=GREY, alpha=0.25, linewidth=0)
    known = "\n(band: people with each other)" if np.isfinite(people["agreement"]) else ""
    style.finish(left, x=f"agreement with people{known}")
    for middle in between:
        _by_gap(middle, agreement)
    biases = {name: text for name, text in _BIASES.items() if name in table}
    _intervals_of_raters(right, table, biases)
    right.axvline(0.5, color=GREY, linewidth=1, linestyle="--")
    style.finish(right, x="share of verdicts", legend=bool(biases))
    return figure


def _by_gap(middle: Axes, agreement: JudgeAgreement) -> None:
    bins = agreement.by_gap[["gap_from", "gap_to"]].drop_duplicates().to_numpy()
    for k, (name, block) in enumerate(agreement.by_gap.groupby("judge", sort=False)):
        x = np.arange(len(bins)) + 0.06 * k
        ends_of = block["agreement"] - block["lower"], block["upper"] - block["agreement"]
        colour = COLOURS[k % len(COLOURS)]
        middle.errorbar(x, block["agreement"], yerr=np.clip(ends_of, 0, 1), fmt="o-", markersize=4, linewidth=1,
                        color=colour, label=style.legend_name(name))  # fmt: skip
    middle.set_xticks(
        np.arange(len(bins)), [f"{a:g}-{b:g}" if np.isfinite(b) else f">{a:g}" for a, b in bins], fontsize=8
    )
    style.finish(middle, x="gap of people's ratings (Elo)", y="agreement", legend=True)


def _intervals_of_raters(axis: Axes, table: pd.DataFrame, measures: dict[str, str]) -> None:
    """Draw one row per judge from the top down, with the intervals of some measures."""
    place = np.arange(len(table))
    for k, (name, text) in enumerate(measures.items()):
        y = place + 0.14 * (k - (len(measures) - 1) / 2)
        colour = COLOURS[k % len(COLOURS)]
        axis.hlines(y, table[f"{name}_lower"], table[f"{name}_upper"], color=colour, linewidth=2, alpha=0.5)
        axis.plot(table[name], y, _MARKS[k % len(_MARKS)], markersize=4.5, color=colour, label=text)
    axis.set_yticks(place, [style.shown_name(name) for name in table["judge"]], fontsize=8, parse_math=False)
    axis.set_ylim(len(table) - 0.5, -0.5)
    axis.set_xlim(0, 1)
