"""Figures of several leaderboards of the same models: two side by side, and how ratings went from date to date."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Literal, Unpack

import numpy as np
import pandas as pd
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from numpy.typing import NDArray

from jaxeval.arrays import Float
from jaxeval.plots.labels import Labels, Takes, figure_of
from jaxeval.plots.leaderboard import LEADERBOARD
from jaxeval.plots.style import COLOURS, finish, legend_name, one_axis, shown_name
from jaxeval.wording import counted

_NAMES_AN_INCH = 5.0
_ENDS = ["rating", "rating_lower", "rating_upper"]


@figure_of("Two leaderboards compared", LEADERBOARD, LEADERBOARD)
def plot_boards(
    one: pd.DataFrame,
    other: pd.DataFrame,
    names: tuple[str, str] = ("one", "other"),
    top: int | None = 40,
    **labels: Unpack[Labels],
) -> Figure:
    """The ratings of each model on two leaderboards with their intervals, in the order of the second one.

    Beside each name stands its rank on the second board and, in brackets, on the first one. A board that does not
    rank a model shows no point, and a dash in place of the rank.

    Args:
        one: as `leaderboard` returns it.
        other: the same of other votes, settings or methods.
        names: what the legend calls the two.
        top: models shown, the best of the second board; the figure says how many are not.

    Raises:
        TypeError: one of them is no table.
        ValueError: one of them is no leaderboard, or has several slices.
    """
    both = [_one_slice("plot_boards", board).set_index("model_name") for board in (other, one)]
    models = list(dict.fromkeys(model for board in both for model in board.index[board["rank"].notna()]))
    shown = models[: top or len(models)]
    figure, axis = one_axis(7.4, 1.4 + 0.24 * max(len(shown), 1))
    place = np.arange(len(shown))
    ratings = [board.reindex(shown).where(board["rank"].notna()) for board in both]
    joined = np.array([table["rating"].to_numpy(float, na_value=np.nan) for table in ratings])
    axis.hlines(place, *np.sort(joined, axis=0), color="#c9d0d8", linewidth=1, zorder=1)
    for table, name, colour, shift in zip(ratings, names[::-1], COLOURS, (0.14, -0.14), strict=False):
        rating, lower, upper = table[_ENDS].to_numpy(float, na_value=np.nan).T
        ends = np.isfinite(lower) & np.isfinite(upper)
        axis.hlines((place + shift)[ends], lower[ends], upper[ends], color=colour, linewidth=2, alpha=0.5)
        axis.scatter(rating, place + shift, s=18, color=colour, zorder=3, label=legend_name(name))
    ranks = ["-" if pd.isna(r) else str(r) for table in ratings for r in table["rank"]]
    text = [f"{now} ({was})  {shown_name(m)}" for now, was, m in zip(ranks, ranks[len(shown) :], shown, strict=False)]
    axis.set_yticks(place, text, fontsize=8, parse_math=False)
    axis.set_ylim(max(len(shown), 1) - 0.5, -0.5)
    hidden = f"\n{counted(len(models) - len(shown), 'more model')} not shown" if len(shown) < len(models) else ""
    finish(axis, x=f"rating (Elo) with intervals{hidden}", legend=True)
    return figure


_BOARDS = Takes("a mapping of dates to tables that leaderboard() returns", kinds=(Mapping,))


@figure_of("Ratings from date to date", _BOARDS)
def plot_history(
    boards: Mapping[Any, pd.DataFrame],
    value: Literal["rating", "rank"] = "rating",
    top: int = 15,
    **labels: Unpack[Labels],
) -> Figure:
    """Lines of the best models of the last leaderboard through all of them, ratings with their intervals as bands.

    Args:
        boards: leaderboards by date, as `leaderboard` returns them. Keys are dates or times, which then stand at their
            places in time; or other labels, which stand side by side in the order of the mapping.
        value: what the lines show.
        top: lines; the figure says how many models of the last board it leaves out.

    Raises:
        TypeError: ``boards`` is no mapping, or a value in it is no table.
        ValueError: there are no boards; one of them is no leaderboard, or has several slices; a ``value`` that is none.
    """
    if value not in ("rating", "rank"):
        raise ValueError(f"value must be 'rating' or 'rank', got {value!r}")
    if not boards:
        raise ValueError("plot_history takes a mapping of dates to leaderboards, and this one is empty")
    for board in boards.values():
        LEADERBOARD.check("plot_history", board)
    tables = [_one_slice("plot_history", board).set_index("model_name") for board in boards.values()]
    times = _times(list(boards))
    order = np.argsort(times, kind="stable")
    tables, times = [tables[k] for k in order], times[order]
    ranked = tables[-1].index[tables[-1]["rank"].notna()]
    shown = list(ranked[:top])
    figure, axis = one_axis(8.6, max(3.2, 1.2 + 0.24 * len(shown)))
    last = []
    for k, model in enumerate(shown):
        rows = pd.DataFrame([t.loc[model] if model in t.index else pd.Series(dtype=object) for t in tables])
        line = rows.reindex(columns=[*_ENDS, "rank"]).where(rows["rank"].notna())
        numbers = {name: line[name].to_numpy(float, na_value=np.nan) for name in line}
        colour, style = COLOURS[k % len(COLOURS)], "-" if k < len(COLOURS) else "--"
        if value == "rating":
            ends = (np.where(np.isfinite(numbers[end]), numbers[end], np.nan) for end in _ENDS[1:])
            axis.fill_between(times, *ends, color=colour, alpha=0.1, linewidth=0)
        axis.plot(times, numbers[value], style, marker="o", markersize=3, linewidth=1.3, color=colour)
        last.append(numbers[value][-1])
    if value == "rank":
        axis.invert_yaxis()
    _name_ends(axis, times, np.array(last), [shown_name(model) for model in shown])
    if times.dtype.kind == "M":
        axis.xaxis.set_major_formatter(ConciseDateFormatter(locator := AutoDateLocator(maxticks=7)))
        axis.xaxis.set_major_locator(locator)
    else:
        axis.set_xticks(times, [shown_name(name) for name in boards], fontsize=8, parse_math=False)
    hidden = f"{counted(len(ranked) - len(shown), 'more model')} not shown" if len(shown) < len(ranked) else ""
    finish(axis, x=hidden, y="rating (Elo)" if value == "rating" else "rank")
    return figure


def _one_slice(function: str, table: pd.DataFrame) -> pd.DataFrame:
    if table["model_name"].duplicated().any():
        raise ValueError(
            f"{function} takes leaderboards of one slice; choose one, as table[table['category'] == 'english']"
        )
    return table


def _times(keys: list[Hashable]) -> NDArray[Any]:
    """Places of the keys: in time, if all are dates or times, else side by side."""
    kinds = pd.api.types.infer_dtype(keys, skipna=False)
    return pd.to_datetime(keys).to_numpy() if kinds in ("date", "datetime", "datetime64") else np.arange(len(keys))


def _name_ends(axis: Any, times: NDArray[Any], last: Float, names: list[str]) -> None:
    """The names of lines at their right ends, moved apart where they would lie on each other."""
    low, high = sorted(axis.get_ylim())
    gap = (high - low) / (axis.figure.get_size_inches()[1] * _NAMES_AN_INCH)
    order = np.argsort(last)
    # Pools of names that would touch stand evenly about the mean of their lines.
    pools: list[list[float]] = []
    for y in last[order]:
        pools.append([y])
        while len(pools) > 1 and _bottom(pools[-2], gap) + gap * len(pools[-2]) > _bottom(pools[-1], gap):
            pools[-2:] = [[*pools[-2], *pools[-1]]]
    moved = [_bottom(pool, gap) + k * gap for pool in pools for k in range(len(pool))]
    for k, y in zip(order, moved, strict=True):
        colour = COLOURS[k % len(COLOURS)]
        axis.annotate(
            names[k], (times[-1], last[k]), (24, y), textcoords=("offset points", "data"), color=colour, fontsize=7.5,
            va="center", parse_math=False, annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 1, "shrinkB": 2},
        )  # fmt: skip


def _bottom(pool: list[float], gap: float) -> float:
    """The lowest name of a pool, ``gap`` from the next."""
    return float(np.mean(pool)) - gap * (len(pool) - 1) / 2
