"""Figures of leaderboards: of one, of two side by side, and of how ratings went from date to date."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, Unpack

import numpy as np
import pandas as pd
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from numpy.typing import NDArray

from jaxeval.arrays import Float
from jaxeval.checks import check_choice
from jaxeval.plots import style
from jaxeval.plots.style import COLOURS, GREY, FigureLabels, Takes, figure_of, finish, joint_name, one_axis, shown_name
from jaxeval.ratings.board_comparison import BoardComparison
from jaxeval.show.shown import rated
from jaxeval.statistics.draws import Draws
from jaxeval.wording import common_noun, counted

_PANELS_A_ROW = 4
JUDGE_ALONE = "#c2447f"
LEADERBOARD = Takes(
    "the table that leaderboard() returns",
    ("model", "rating", "lower", "upper", "rank", "tier", "vote_count", "preliminary", "degenerate_share"),
)
COLOUR, MUTED, _PALE = "#1f5a93", "#8a8f98", "#e9edf2"
_MOST_ROWS = 40
_DRAWS = Takes("Draws, as results hand them out as joint", kinds=(Draws,))


@figure_of("Leaderboard", LEADERBOARD, says=True)
def plot_leaderboard(
    table: pd.DataFrame, top: int | None = 40, panels: int | None = 12, **labels: Unpack[FigureLabels]
) -> Figure:
    """Draw ratings with their intervals, best on top, tiers shaded.

    Categories are panels with the same models in one order, that of the mean rank, and their ranks at the right.

    Args:
        table: as `leaderboard` returns it, or the table of a `MergedBoard`; models without a rank (no finite rating,
            or too few battles) are left out, and counted below the axis.
        top: models shown in each panel.
        panels: number of categories shown, those with the most votes; the figure says how many are not.
    """
    groups: list[tuple[Any, pd.DataFrame]] = [(None, table)]
    if "category" in table:
        groups = list(table.groupby("category", sort=False))
        votes = [block["vote_count"].sum() for _, block in groups]
        most = np.argsort(votes)[::-1][: panels or len(groups)]
        left_out = len(groups) - len(most)
        groups = [groups[k] for k in np.sort(most)]
    several = len(groups) > 1
    ranked = pd.concat([block[block["rank"].notna()] for _, block in groups])
    order = ranked.groupby("model", sort=False)["rank"].mean().sort_values(kind="stable").index[:top]
    blocks = [
        (name, _rows(block, order) if several else _rows(block).head(top or len(block)), block)
        for name, block in groups
    ]
    rows = max(max(len(shown) for _, shown, _ in blocks), 1)
    n_rows = -(-len(blocks) // _PANELS_A_ROW)
    n_columns = -(-len(blocks) // n_rows)
    width = 6.8 if n_columns == 1 else 3.0 + 2.8 * n_columns
    figure = Figure(figsize=(width, n_rows * (1.5 + 0.21 * rows)), layout="constrained")
    if "category" in table and left_out:
        figure.suptitle(
            f"The {counted(len(groups), 'category', 'categories')} with the most votes; "
            f"{counted(left_out, 'more is', 'more are')} not shown",
            fontsize=10,
        )
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axis in axes[len(blocks) :]:
        axis.set_axis_off()
    settings, noun = table.attrs.get("settings", {}), rated(table)
    level = settings.get("level")
    for axis, (name, shown, block) in zip(axes, blocks, strict=False):
        few = (shown["preliminary"] | (shown["degenerate_share"] > 0)).to_numpy(bool)
        names = [shown_name(model) if several else f"{rank}  {shown_name(model)}" for rank, model in _ranks(shown)]
        columns = shown[["rating", "lower", "upper"]]
        colours = np.where(few, MUTED, COLOUR)
        if "rests_on" in shown:  # of a merged board
            colours = np.where(shown["rests_on"] == "judge", JUDGE_ALONE, colours)
        tier = shown["tier"].mask(shown["tier"].notna()) if several else shown["tier"]
        draw_intervals(axis, names, columns, tier, colours, f"no {noun.one} takes a rank")
        if several:
            if not axis.get_subplotspec().is_first_col():
                axis.set_yticklabels([])
            for place, (rank, _) in enumerate(_ranks(shown)):
                at = {"xycoords": ("axes fraction", "data"), "ha": "right", "va": "center"}
                axis.annotate("" if pd.isna(rank) else str(rank), (1.09, place), fontsize=7, color=MUTED, **at)
        axis.set_title(
            "" if name is None else shown_name(name), loc="left", fontsize=11, weight="bold", parse_math=False
        )
        label = "Rating (Elo)" if level is None else f"Rating (Elo) with {100 * level:g}% interval"
        notes = ["at the right: ranks"] if several else ["bands: tiers that the data separate"]
        if "expected_score_rating" in table:
            notes.insert(0, "ratings of a tie model, whose scale is not that of expected scores")
        if (colours == MUTED).any():
            notes.append("grey: few votes")
        if (colours == JUDGE_ALONE).any():
            notes.append("red: from a judge's scores alone")
        notes += filter(None, [style.not_shown(len(block) - int(shown["rank"].notna().sum()), "", noun)])
        axis.set_xlabel("\n".join([label, *notes] if several else [label, "; ".join(notes)]), fontsize=8.5)
    return figure


def _rows(block: pd.DataFrame, order: pd.Index | None = None) -> pd.DataFrame:
    """Return the ranked rows of a board, as they stand or in an order of models, where others are empty."""
    ranked = block[block["rank"].notna()]
    if order is None:
        return ranked
    flags = {"preliminary": False, "degenerate_share": 0.0}
    return ranked.set_index("model").reindex(order).fillna(flags).reset_index()


def _ranks(shown: pd.DataFrame) -> list[tuple[Any, Any]]:
    return list(zip(shown["rank"], shown["model"], strict=True))


@figure_of("Estimates", _DRAWS)
def plot_draws(
    draws: Draws, level: float = 0.95, top: int | None = _MOST_ROWS, x: str = "estimate", **labels: Unpack[FigureLabels]
) -> Figure:
    """Plot estimates with intervals, best on top, tiers shaded; quantities without a finite estimate are left out.

    Args:
        draws: as results hand them out as ``joint``.
        level: of the intervals, and simultaneously of all differences for the tiers.
        top: quantities shown; the figure says how many are not.
        x: the label of the axis, such as the unit of the estimates.
    """
    table = draws.table(level)
    return _figure(table, "estimate", ("lower", "upper"), top, f"{x}, {100 * level:g}% interval")


@figure_of("Ranks", _DRAWS)
def plot_ranks(
    draws: Draws, level: float = 0.95, top: int | None = _MOST_ROWS, simultaneous: bool = False,
    **labels: Unpack[FigureLabels],
) -> Figure:  # fmt: skip
    """Draw the rank of each quantity and the ranks that the draws leave open (see `Draws.rank_sets`), tiers shaded."""
    table = draws.table(level, simultaneous=simultaneous)
    at_once = " for all at once" if simultaneous else ""
    return _figure(table, "rank", ("rank_best", "rank_worst"), top, f"rank, {100 * level:g}% set of ranks{at_once}")


@figure_of("Differences", _DRAWS)
def plot_draw_differences(
    draws: Draws, against: Hashable | None = None, level: float = 0.95, top: int | None = _MOST_ROWS,
    **labels: Unpack[FigureLabels],
) -> Figure:  # fmt: skip
    """Draw differences of all others from the quantity ``against``, by default the best, each with its own interval.

    Raises:
        ValueError: no quantity with a finite estimate is called ``against``, or there is none at all; there are too
            many names for a table of all pairs.
    """
    table = draws.table(level)
    ranked = table.index[table["rank"].notna()]
    if len(ranked) == 0:
        raise ValueError("no quantity has a finite estimate, so that there are no differences to show")
    chosen: Any = ranked[0] if against is None else against
    if chosen not in list(ranked):  # an index of several levels also holds what a name begins with
        raise ValueError(f"no quantity {chosen!r} with a finite estimate among the names")
    lower, upper = draws.difference_interval(level)
    table["estimate"] -= table["estimate"][chosen]
    table = table.assign(lower=lower[chosen], upper=upper[chosen]).drop(index=chosen)
    label = f"difference from {joint_name(chosen)}, {100 * level:g}% interval"
    figure = _figure(table, "estimate", ("lower", "upper"), top, label)
    figure.axes[0].axvline(0, color="black", linewidth=0.8)
    return figure


def _figure(table: pd.DataFrame, value: str, ends: tuple[str, str], top: int | None, label: str) -> Figure:
    """Draw one axis with a row per name of a `Draws.table`: the column ``value`` between the columns ``ends``."""
    table = table[table["rank"].notna()]
    shown = table.head(top or len(table))
    figure, axis = one_axis(7.4, 1.5 + 0.21 * max(len(shown), 1))
    names = [f"{rank}  {joint_name(name)}" for rank, name in zip(shown["rank"], shown.index, strict=True)]
    draw_intervals(axis, names, shown[[value, *ends]], shown["tier"])
    beside = (shown[value] < shown[ends[0]]) | (shown[value] > shown[ends[1]])
    hidden = "; dots beside bars: draws lie to one side of the estimate" if beside.any() else ""
    hidden += style.not_shown(len(table) - len(shown), "; ")
    finish(axis, x=f"{label}\nbands: tiers that the draws separate{hidden}")
    return figure


def draw_intervals(
    axis: Any, names: Sequence[str], columns: pd.DataFrame, tier: pd.Series, colours: Any = COLOUR,
    none: str = "nothing takes a rank",
) -> None:  # fmt: skip
    """Draw rows from the top down, every other tier shaded; unbounded intervals run out of the picture.

    ``columns`` are values, lower and upper ends of their intervals; ``none`` stands where there are no rows.
    """
    value, lower, upper = columns.to_numpy(float, na_value=np.nan).T
    place = np.arange(len(names))
    bounds = np.concatenate([value, lower[np.isfinite(lower)], upper[np.isfinite(upper)]])
    low, high = (bounds.min(), bounds.max()) if len(bounds) else (0.0, 1.0)
    margin = 0.03 * (high - low) or 1.0
    left = np.where(np.isfinite(lower), lower, low - 10 * margin)
    right = np.where(np.isfinite(upper), upper, high + 10 * margin)
    for number in tier.dropna().unique():
        rows = place[(tier == number).fillna(False).to_numpy(bool)]
        if number % 2 == 1:
            axis.axhspan(rows.min() - 0.5, rows.max() + 0.5, color=_PALE, zorder=0, linewidth=0)
    axis.hlines(place, left, right, color=colours, linewidth=2.2, alpha=0.55, zorder=2)
    axis.scatter(value, place, s=20, color=colours, zorder=3)
    axis.set_yticks(place, names, fontsize=8, parse_math=False)
    axis.set_ylim(max(len(names), 1) - 0.5, -0.5)
    if len(names) == 0:
        axis.text(0.5, 0.5, none, transform=axis.transAxes, ha="center", va="center")
    axis.set_xlim(low - margin, high + margin)
    axis.tick_params(axis="y", length=0)
    axis.tick_params(axis="x", labelsize=8)
    axis.grid(axis="x", color="#d5dae1", linewidth=0.6, zorder=1)
    axis.spines[["top", "right", "left"]].set_visible(False)


_NAMES_AN_INCH = 5.0
_ENDS = ["rating", "lower", "upper"]
_UP, _DOWN, _EVEN = "#2f7d4f", "#b5473c", "#1f5a93"


@figure_of("Two leaderboards compared", LEADERBOARD, LEADERBOARD)
def plot_boards(
    one: pd.DataFrame, other: pd.DataFrame, names: tuple[str, str] = ("one", "other"), top: int | None = 40,
    **labels: Unpack[FigureLabels],
) -> Figure:  # fmt: skip
    """Draw the ratings of each model on two leaderboards with their intervals, in the order of the second one.

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
    both = [_one_slice("plot_boards", board).set_index("model") for board in (other, one)]
    models = list(dict.fromkeys(model for board in both for model in board.index[board["rank"].notna()]))
    shown = models[: top or len(models)]
    figure, axis = style.one_axis(7.4, 1.4 + 0.24 * max(len(shown), 1))
    ratings = [board.reindex(shown).where(board["rank"].notna()) for board in both]
    _draw_two(axis, [table[_ENDS] for table in ratings], names[::-1])
    ranks = ["-" if pd.isna(r) else str(r) for table in ratings for r in table["rank"]]
    _name_rows(axis, shown, ranks[: len(shown)], ranks[len(shown) :])
    hidden = style.not_shown(len(models) - len(shown), "\n", common_noun(map(rated, (one, other))))
    style.finish(axis, x=f"rating (Elo) with intervals{hidden}", legend=True)
    return figure


@figure_of(
    "Two boards compared",
    Takes("the BoardComparison that compare_boards() returns", kinds=(BoardComparison,)),
    says=True,
)
def plot_comparison(comparison: BoardComparison, top: int | None = 40, **labels: Unpack[FigureLabels]) -> Figure:
    """Draw the ratings of each model on both boards, in one gauge, and the differences, in colour of those that moved.

    Beside each name stands its rank on board b and, in brackets, on board a, among the models that are compared.

    Args:
        comparison: as `compare_boards` returns it.
        top: models shown, the best of board b; the figure says how many are not.
    """
    table = comparison.table.sort_values("rating_b", ascending=False, kind="stable")
    shown = table.head(top or len(table))
    figure = Figure(figsize=(9.4, 1.5 + 0.24 * max(len(shown), 1)), layout="constrained")
    ratings, differences = figure.subplots(1, 2, sharey=True, width_ratios=[3, 2])
    ends = [shown[[f"rating_{side}", f"rating_{side}_lower", f"rating_{side}_upper"]] for side in "ba"]
    _draw_two(ratings, ends, comparison.names[::-1])
    colours = shift_colours(shown["moved"] == "up", shown["moved"] == "down")
    draw_shifts(differences, shown[["difference", "at_once_lower", "at_once_upper"]], colours)
    _name_rows(ratings, list(shown["model"]), list(shown["rank_b"]), list(shown["rank_a"]))
    level = f"{100 * comparison.level:g}%"
    names = [style.shown_name(name) for name in comparison.names]
    hidden = style.not_shown(len(table) - len(shown), "\n", comparison.competitor)
    style.finish(ratings, x=f"rating (Elo), {level} interval; rank on {names[1]} ({names[0]}){hidden}", legend=True)
    style.finish(differences, x=f"{names[1]} less {names[0]} (Elo), {level} interval\nfor all at once; coloured: moved")
    return figure


def _draw_two(axis: Any, boards: Sequence[pd.DataFrame], names: Sequence[str]) -> None:
    """Draw two ratings of each row, joined by a line, with intervals; ``boards`` hold values, lower and upper ends."""
    values = [board.to_numpy(float, na_value=np.nan).T for board in boards]
    place = np.arange(len(boards[0]))
    axis.hlines(place, *np.sort(np.array([rating for rating, _, _ in values]), axis=0), color="#c9d0d8", linewidth=1,
                zorder=1)  # fmt: skip
    for (rating, lower, upper), name, colour, shift in zip(values, names, COLOURS, (0.14, -0.14), strict=False):
        ends = np.isfinite(lower) & np.isfinite(upper)
        axis.hlines((place + shift)[ends], lower[ends], upper[ends], color=colour, linewidth=2, alpha=0.5)
        axis.scatter(rating, place + shift, s=18, color=colour, zorder=3, label=style.legend_name(name))


def _name_rows(axis: Any, models: Sequence[Any], now: Sequence[Any], was: Sequence[Any]) -> None:
    """Write names beside the rows, from the top down, with two ranks of each."""
    text = [f"{new} ({old})  {style.shown_name(m)}" for new, old, m in zip(now, was, models, strict=True)]
    axis.set_yticks(np.arange(len(models)), text, fontsize=8, parse_math=False)
    axis.set_ylim(max(len(models), 1) - 0.5, -0.5)


_BOARDS = Takes("a mapping of dates to tables that leaderboard() returns", kinds=(Mapping,))


@figure_of("Ratings from date to date", _BOARDS)
def plot_history(
    boards: Mapping[Any, pd.DataFrame], value: Literal["rating", "rank"] = "rating", top: int = 15,
    **labels: Unpack[FigureLabels],
) -> Figure:  # fmt: skip
    """Draw lines of the best models of the last leaderboard through all of them, ratings with their intervals as bands.

    Args:
        boards: leaderboards by date, as `leaderboard` returns them. Dates and times as keys stand at their places in
            time; other labels stand side by side in the order of the mapping.
        value: what the lines show.
        top: lines; the figure says how many models of the last board it leaves out.

    Raises:
        TypeError: ``boards`` is no mapping, or a value in it is no table.
        ValueError: there are no boards; one of them is no leaderboard, or has several slices; ``value`` is unknown.
    """
    check_choice("value", value, ("rating", "rank"))
    if not boards:
        raise ValueError("plot_history takes a mapping of dates to leaderboards, and this one is empty")
    for board in boards.values():
        LEADERBOARD.check("plot_history", board)
    tables = [_one_slice("plot_history", board).set_index("model") for board in boards.values()]
    times = _times(list(boards))
    order = np.argsort(times, kind="stable")
    tables, times = [tables[k] for k in order], times[order]
    ranked = tables[-1].index[tables[-1]["rank"].notna()]
    shown = list(ranked[:top])
    figure, axis = style.one_axis(8.6, max(3.2, 1.2 + 0.24 * len(shown)))
    last = []
    for k, model in enumerate(shown):
        rows = pd.DataFrame([t.loc[model] if model in t.index else pd.Series(dtype=object) for t in tables])
        line = rows.reindex(columns=[*_ENDS, "rank"]).where(rows["rank"].notna())
        numbers = {name: line[name].to_numpy(float, na_value=np.nan) for name in line}
        colour, dash = COLOURS[k % len(COLOURS)], "-" if k < len(COLOURS) else "--"
        if value == "rating":
            ends = (np.where(np.isfinite(numbers[end]), numbers[end], np.nan) for end in _ENDS[1:])
            axis.fill_between(times, *ends, color=colour, alpha=0.1, linewidth=0)
        axis.plot(times, numbers[value], dash, marker="o", markersize=3, linewidth=1.3, color=colour)
        last.append(numbers[value][-1])
    if value == "rank":
        axis.invert_yaxis()
    _name_ends(axis, times, np.array(last), [style.shown_name(model) for model in shown])
    if times.dtype.kind == "M":
        axis.xaxis.set_major_formatter(ConciseDateFormatter(locator := AutoDateLocator(maxticks=7)))
        axis.xaxis.set_major_locator(locator)
    else:
        axis.set_xticks(times, [style.shown_name(name) for name in boards], fontsize=8, parse_math=False)
    hidden = style.not_shown(len(ranked) - len(shown), what=rated(boards))
    style.finish(axis, x=hidden, y="rating (Elo)" if value == "rating" else "rank")
    return figure


def _one_slice(function: str, table: pd.DataFrame) -> pd.DataFrame:
    if table["model"].duplicated().any():
        raise ValueError(
            f"{function} takes leaderboards of one slice; choose one, as table[table['category'] == 'english']"
        )
    return table


def _times(keys: list[Hashable]) -> NDArray[Any]:
    """Return places of the keys: in time, if all are dates or times, else side by side."""
    kinds = pd.api.types.infer_dtype(keys, skipna=False)
    return pd.to_datetime(keys).to_numpy() if kinds in ("date", "datetime", "datetime64") else np.arange(len(keys))


def _name_ends(axis: Any, times: NDArray[Any], last: Float, names: list[str]) -> None:
    """Write the names of lines at their right ends, moved apart where they would lie on each other."""
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
    """Return the lowest name of a pool, ``gap`` from the next."""
    return float(np.mean(pool)) - gap * (len(pool) - 1) / 2


@figure_of(
    "Ratings with style control and without",
    Takes(
        "the table that style_effect() returns",
        ("model", "rating", "rating_plain", "rank", "rank_plain", "shift", "shift_lower", "shift_upper"),
    ),
)
def plot_style_effect(effect: pd.DataFrame, top: int = 40, **labels: Unpack[FigureLabels]) -> Figure:
    """Draw each model's rating without control (hollow) and with it (full), and the shift with its interval.

    Args:
        effect: as `style_effect` returns it; models without ranks are left out.
        top: models shown, the best with control; the figure says how many are not.
    """
    shown = effect[effect["rank"].notna() & effect["rank_plain"].notna()].head(top)
    place = np.arange(len(shown))
    figure = Figure(figsize=(8.6, 1.5 + 0.21 * max(len(shown), 1)), layout="constrained")
    ratings, shifts = figure.subplots(1, 2, sharey=True, width_ratios=[3, 2])
    colours = shift_colours(shown["shift_lower"] > 0, shown["shift_upper"] < 0)
    ratings.hlines(place, shown["rating_plain"], shown["rating"], color=colours, linewidth=2, alpha=0.6)
    ratings.scatter(shown["rating_plain"], place, s=18, facecolors="white", edgecolors=GREY, zorder=3, label="plain")
    ratings.scatter(shown["rating"], place, s=20, color=_EVEN, zorder=3, label="controlled")
    names = [f"{now}  {style.shown_name(name)}  ({was})" for now, name, was in
             zip(shown["rank"], shown["model"], shown["rank_plain"], strict=True)]  # fmt: skip
    ratings.set_yticks(place, names, fontsize=8, parse_math=False)
    ratings.set_ylim(max(len(shown), 1) - 0.5, -0.5)
    more = style.not_shown(len(effect) - len(shown), "\n", rated(effect))
    ratings.set_xlabel(f"rating (Elo); rank with control, and (without){more}", fontsize=8.5)
    ratings.legend(frameon=False, fontsize=8, loc="lower right")
    draw_shifts(shifts, shown[["shift", "shift_lower", "shift_upper"]], colours)
    level = effect.attrs.get("settings", {}).get("level", 0.95)
    shifts.set_xlabel(f"shift by control (Elo), {100 * level:g}% interval", fontsize=8.5)
    for axis in (ratings, shifts):
        style.plain(axis)
        axis.tick_params(axis="y", length=0, labelsize=8)
    return figure


def shift_colours(up: pd.Series, down: pd.Series) -> NDArray[Any]:
    """Return colours of rows that surely went up or surely went down, and grey for the others."""
    return np.select([up, down], [_UP, _DOWN], GREY)


def draw_shifts(axis: Any, columns: pd.DataFrame, colours: NDArray[Any]) -> None:
    """Draw rows from the top down about a line at 0; ``columns`` are shifts, lower and upper ends of intervals."""
    shift, lower, upper = columns.to_numpy(float, na_value=np.nan).T
    place = np.arange(len(columns))
    axis.hlines(place, lower, upper, color=colours, linewidth=2.2, alpha=0.5)
    axis.scatter(shift, place, s=16, color=colours, zorder=3)
    axis.axvline(0, color="black", linewidth=0.8)


@figure_of(
    "Coefficients of the covariates",
    Takes(
        "the table that coefficients() of a fit or bootstrap returns", ("coefficient", "lower", "upper", "odds_ratio")
    ),
)
def plot_coefficients(coefficients: pd.DataFrame, **labels: Unpack[FigureLabels]) -> Figure:
    """Draw odds ratio of one unit of each covariate, with its interval.

    Coefficients of the probit link have no odds ratios: the figure shows the coefficients themselves.

    Args:
        coefficients: as ``coefficients()`` of a fit or bootstrap gives them.
    """
    place = np.arange(len(coefficients))
    names = [style.shown_name(name) for name in coefficients.index]
    figure, axis = style.one_axis(4.2 + style.width_of(names), 1.1 + 0.32 * len(coefficients))
    has_odds = bool(coefficients["odds_ratio"].notna().any())
    columns = ["odds_ratio", "odds_ratio_lower", "odds_ratio_upper"] if has_odds else ["coefficient", "lower", "upper"]
    estimate, low, high = (coefficients[name] for name in columns)
    axis.hlines(place, low, high, color=_EVEN, linewidth=2.5, alpha=0.5)
    axis.scatter(estimate, place, s=22, color=_EVEN, zorder=3)
    axis.axvline(1 if has_odds else 0, color="black", linewidth=0.8)
    if has_odds:
        axis.set_xscale("log")
        ticks = np.array([0.25, 0.5, 0.67, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 4])
        ends = min(low.min(), 0.95), max(high.max(), 1.05)
        ticks = ticks[(ticks >= ends[0] / 1.05) & (ticks <= ends[1] * 1.05)]
        axis.set_xticks(ticks, [f"{t:g}" for t in ticks])
        axis.minorticks_off()
    axis.set_yticks(place, names, fontsize=8.5, parse_math=False)
    axis.set_ylim(len(coefficients) - 0.5, -0.5)
    style.finish(axis, x=f"{'odds ratio' if has_odds else 'coefficient (probits)'} of one unit of the covariate")
    return figure
