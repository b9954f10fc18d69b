"""Figures of Soft-Elo: held-out ratings, conformal intervals, the worth of score gaps, and the annotation budget."""

from __future__ import annotations

from typing import Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from jaxeval.plots.style import GREY, FigureLabels, Takes, figure_of, finish, legend_name, one_axis, panels, shown_name
from jaxeval.softelo.soft_elo import HeldOutRatings, SoftElo, models_table

_COLOURS = {"hard": "#1f5a93", "soft": "#c2447f"}
_OTHERS = ("#6b8e3d", "#c98a1b", "#6f5aa8", "#3c8f8a", "#8a8f98")
_FEW_BATTLES = 30  # bins with fewer are pale
_RATED = ("model", "method", "human_elo", "judge_elo", "standard_error", "residual")


@figure_of(
    "Held-out ratings of the judge beside human ratings",
    Takes("a SoftElo, as soft_elo() returns it, or its table models", _RATED, (SoftElo, pd.DataFrame)),
    says=True,
)
def plot_held_out(held_out: HeldOutRatings, **labels: Unpack[FigureLabels]) -> Figure:
    """Draw held-out judge rating against human rating, one panel per method (and judge), with the diagonal (Figure 4a).

    Args:
        held_out: a `SoftElo`, or its ``models`` table.
    """
    table = models_table(held_out)
    used = table[np.isfinite(table[["human_elo", "judge_elo"]].to_numpy(float)).all(1)]
    groups = _groups(used)
    n = max(len(groups), 1)
    figure, axes = panels(n, 0.6 + 4.2 * n, 4.4, sharex=True, sharey=True)
    values = used[["human_elo", "judge_elo"]].to_numpy(float)
    low, high = (values.min(), values.max()) if len(values) else (0.0, 1.0)
    margin = 0.05 * (high - low) + 1
    for axis, (name, method, block) in zip(axes, groups, strict=False):
        axis.plot([low - margin, high + margin], [low - margin, high + margin], color=GREY, linewidth=1, linestyle="--")
        axis.errorbar(
            block["human_elo"], block["judge_elo"], yerr=1.96 * block["standard_error"].fillna(0), fmt="o",
            markersize=4.5, color=_colour(method), ecolor=_colour(method), elinewidth=0.8, alpha=0.85,
        )  # fmt: skip
        mae = block["residual"].abs().mean()
        finish(axis, x="human rating (Elo)", title=f"{shown_name(name)}: MAE {mae:.1f} Elo")
    axes[0].set_ylabel("held-out judge rating (Elo), 95 % of resampling")
    axes[0].set_xlim(low - margin, high + margin)
    return figure


@figure_of(
    "The judge's ratings with conformal intervals",
    Takes(
        "the table that leave_one_out_intervals() returns",
        ("model", "method", "human_elo", "judge_elo", "lower", "upper", "width"),
    ),
)
def plot_intervals(intervals: pd.DataFrame, **labels: Unpack[FigureLabels]) -> Figure:
    """Draw conformal intervals of every model by method, sorted by human rating (Figure 1c).

    Args:
        intervals: as `leave_one_out_intervals` returns it; infinite intervals run out of the picture.
    """
    groups = _groups(intervals)
    order = intervals.drop_duplicates("model").sort_values("human_elo")["model"]
    place = pd.Series(np.arange(len(order)), order)
    ratings = intervals[["human_elo", "judge_elo", "lower", "upper"]].to_numpy(float)
    finite = ratings[np.isfinite(ratings)]
    low, high = finite.min(), finite.max()
    margin = 0.04 * (high - low) + 1
    size = 0.8 + 5.0 * len(groups), 1.4 + 0.19 * len(order)
    figure, axes = panels(len(groups), *size, sharex=True, sharey=True)
    for axis, (name, method, block) in zip(axes, groups, strict=True):
        y = place[block["model"]].to_numpy()
        left = np.maximum(block["lower"].to_numpy(float), low - 10 * margin)
        right = np.minimum(block["upper"].to_numpy(float), high + 10 * margin)
        axis.hlines(y, left, right, color=_colour(method), linewidth=3, alpha=0.4)
        axis.scatter(block["judge_elo"], y, s=14, color=_colour(method), zorder=3, label="judge rating")
        axis.scatter(block["human_elo"], y, s=18, color="black", marker="|", zorder=4, label="human rating")
        width = block["width"].median()
        shown = f"median width {width:.0f} Elo" if np.isfinite(width) else "infinite: too few models"
        finish(axis, x="rating (Elo)", title=f"{shown_name(name)}: {shown}")
    level = intervals.attrs.get("settings", {}).get("level")
    axes[0].set_yticks(place.to_numpy(), [shown_name(m) for m in order], fontsize=7.5, parse_math=False)
    axes[0].set_xlim(low - margin, high + margin)
    axes[0].set_ylim(-0.7, len(order) - 0.3)
    title = "Conformal intervals" if level is None else f"{level:.0%} conformal intervals"
    figure.suptitle(f"{title}, each calibrated on all other models", fontsize=9, color=GREY, x=0.01, ha="left")
    axes[-1].legend(fontsize=8, frameon=False, loc="lower right")
    return figure


@figure_of(
    "What a gap of the judge's scores is worth",
    Takes(
        "the table that agreement_by_score_gap() returns",
        ("lower", "upper", "agreement", "standard_error", "n_battles"),
        settings=("r",),
    ),
    Takes(
        "the table that reliability() returns",
        ("predicted", "agreement", "standard_error", "n_battles"),
        settings=("ece",),
    ),
)
def plot_calibration(agreement: pd.DataFrame, reliability: pd.DataFrame, **labels: Unpack[FigureLabels]) -> Figure:
    """Draw the agreement by score gap, and the reliability diagram (Figures 3 and 7).

    Args:
        agreement: as `agreement_by_score_gap` returns it; bins under 30 battles are drawn pale.
        reliability: as `reliability` returns it.
    """
    figure, (left, right) = panels(2, 9.6, 4.0)
    measures = agreement.attrs["settings"]
    place = np.arange(len(agreement))
    pale = np.where(agreement["n_battles"] < _FEW_BATTLES, 0.3, 0.85)
    for x, (_, row), alpha in zip(place, agreement.iterrows(), pale, strict=True):
        if row["n_battles"]:
            left.bar(x, row["agreement"], width=0.75, color=_COLOURS["soft"], alpha=alpha)
            left.errorbar(x, row["agreement"], yerr=row["standard_error"], color="black", linewidth=1, capsize=2)
        left.text(x, 0.02, f"n={int(row['n_battles']):,}", ha="center", fontsize=7.5, color="black")
    names = [
        f"{a:g}-{b:g}" if np.isfinite(b) else f">{a:g}"
        for a, b in zip(agreement["lower"], agreement["upper"], strict=True)
    ]
    left.axhline(0.5, color=GREY, linewidth=1, linestyle="--")
    left.set_xticks(place, names)
    left.set_ylim(0, 1.02)
    bounds = f"{measures['r']:.2f} [{measures['r_lower']:.2f}, {measures['r_upper']:.2f}]"
    title = "r undefined" if np.isnan(measures["r"]) else f"r = {bounds}"
    finish(left, x="|score difference|", y="agreement with humans", title=title)

    known = reliability[reliability["n_battles"] > 0]
    right.plot([0.45, 1], [0.45, 1], color=GREY, linewidth=1, linestyle="--")
    right.errorbar(
        known["predicted"], known["agreement"], yerr=known["standard_error"], fmt="o-", markersize=4.5, linewidth=1.2,
        color=_COLOURS["soft"], elinewidth=0.9,
    )  # fmt: skip
    settings = reliability.attrs["settings"]
    title = f"ECE {settings['ece']:.3f} at beta {settings['beta']:.3f}"
    finish(right, x="predicted agreement s(beta |score difference|)", y="agreement with humans", title=title)
    right.text(
        0.98, 0.03,
        f"a judge without error shows {settings['ece_floor']:.3f}\n"
        f"without that noise {settings['ece_debiased']:.3f} [{settings['ece_lower']:.3f}, {settings['ece_upper']:.3f}]",
        transform=right.transAxes, ha="right", va="bottom", fontsize=8.5,
    )  # fmt: skip
    return figure


@figure_of(
    "Residuals by strength",
    Takes("the table that residual_ramp() returns", ("method", "group", "residual", "standard_error")),
)
def plot_ramp(ramp: pd.DataFrame, **labels: Unpack[FigureLabels]) -> Figure:
    """Draw the mean residual by human-Elo group, one line per method (Figure 14).

    Args:
        ramp: as `residual_ramp` returns it.
    """
    figure, axis = one_axis(5.2, 3.8)
    for name, method, block in _groups(ramp):
        axis.errorbar(block["group"], block["residual"], yerr=block["standard_error"].fillna(0), fmt="o-",
                      markersize=4.5, color=_colour(method), capsize=2, label=legend_name(name))  # fmt: skip
    axis.axhline(0, color=GREY, linewidth=1, linestyle="--")
    groups = sorted(set(ramp["group"]))
    axis.set_xticks(groups, [f"Q{g}" for g in groups])
    finish(axis, x="group of human rating, weakest to strongest", y="judge minus human (Elo)", legend=True)
    return figure


@figure_of("What more battles buy", Takes("the table that budget_sweep() returns", ("method", "budget", "beta", "mae")))
def plot_budget(sweep: pd.DataFrame, **labels: Unpack[FigureLabels]) -> Figure:
    """Draw the temperature and held-out MAE against battles per model (Figure 6).

    Args:
        sweep: as `budget_sweep` returns it.
    """
    figure, (left, right) = panels(2, 9.6, 3.8)
    soft = sweep[sweep["method"] == "soft"]
    final = soft.loc[soft["budget"].idxmax(), "beta"]
    left.axhspan(final - 0.05, final + 0.05, color="#f3dfe9", linewidth=0)
    left.scatter(soft["budget"], soft["beta"], s=10, color=_COLOURS["soft"], alpha=0.5)
    left.plot(soft.groupby("budget")["beta"].mean(), color=_COLOURS["soft"])
    for method, block in sweep.groupby("method", sort=False):
        right.scatter(block["budget"], block["mae"], s=10, color=_colour(method), alpha=0.35)
        right.plot(block.groupby("budget")["mae"].mean(), color=_colour(method), label=legend_name(method))
    finish(left, x="battles per model", y="beta", title=f"beta of all battles {final:.3f}, band +-0.05")
    finish(right, x="battles per model", y="held-out MAE (Elo)", title="error against budget", legend=True,
           from_zero=True)  # fmt: skip
    ticks = sorted(set(sweep["budget"]))
    for axis in (left, right):
        axis.set_xscale("log")
        axis.set_xticks(ticks, [f"{t:.0f}" for t in ticks], minor=False)
        axis.tick_params(axis="x", which="minor", length=0, labelbottom=False)
    return figure


@figure_of(
    "Label smoothing beside hard and soft targets",
    Takes("the table that label_smoothing_sweep() returns", ("method", "constant", "mae")),
)
def plot_smoothing(sweep: pd.DataFrame, **labels: Unpack[FigureLabels]) -> Figure:
    """Draw held-out MAE of label smoothing by its constant, beside hard and soft targets (Table 8).

    Args:
        sweep: as `label_smoothing_sweep` returns it.
    """
    figure, axis = one_axis(5.2, 3.8)
    constants = sweep[~sweep["method"].isin(["hard", "soft"])].sort_values("constant")
    axis.plot(constants["constant"], constants["mae"], "o-", markersize=4.5, color=_OTHERS[0], label="label smoothing")
    for method in ("hard", "soft"):
        axis.axhline(sweep.set_index("method")["mae"][method], color=_COLOURS[method], linestyle="--", label=method)
    finish(axis, x="constant c: the judge's side wins with c", y="held-out MAE (Elo)", legend=True, from_zero=True)
    return figure


def _groups(table: pd.DataFrame) -> list[tuple[str, str, pd.DataFrame]]:
    """Return (title, method, rows) of each method, or judge and method."""
    if "judge" in table.columns:
        return [(f"{j}, {m}", str(m), block) for (j, m), block in table.groupby(["judge", "method"], sort=False)]
    return [(str(m), str(m), block) for m, block in table.groupby("method", sort=False)]


def _colour(method: str) -> str:
    name = str(method)
    return _COLOURS.get(name) or _OTHERS[sum(map(ord, name)) % len(_OTHERS)]
