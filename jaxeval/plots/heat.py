"""Draw tables as coloured cells: who beats whom, who met whom, likely ranks, models by slice, and what audits see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Unpack

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from jaxeval.arrays import Float
from jaxeval.checks import check_choice
from jaxeval.data.battles import Battles
from jaxeval.plots import style
from jaxeval.plots.boards import LEADERBOARD
from jaxeval.plots.style import ABOUT_A_MIDDLE, AMOUNTS, COLOURS, GREY, LESS_IS_BETTER, FigureLabels, Takes, figure_of
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit
from jaxeval.show.shown import rated
from jaxeval.statistics.draws import Draws

_EMPTY = "#f2f4f7"
_MOST = 60
#: Inches of a cell that holds three signs.
SQUARE = (0.34, 0.24)


class HeatLook(NamedTuple):
    """How a heat map looks."""

    colours: str  # a colour map
    ends: tuple[float, float]  # values of its first and last colour
    inches: tuple[float, float]  # width and height of a cell
    above: str = ""  # what the columns are, or the cells
    beside: str = ""  # what the rows are
    below: str = ""  # what is left out
    upright: bool = False  # whether the names of columns stand upright
    log: bool = False  # colours by the logarithm


def heat_map(values: Float, text: NDArray[Any], rows: Sequence[str], columns: Sequence[str], look: HeatLook) -> Figure:
    """Draw coloured cells (R, C) with their text, a name for every row and column; NaN cells are pale."""
    size = 6.5 if look.inches[1] < 0.3 else 7.0
    height = look.inches[1] * len(rows) + (0.075 * max(map(len, columns), default=1) if look.upright else 0.4)
    width = 1.2 + style.width_of(rows) + max(look.inches[0] * len(columns), style.width_of([look.above]))
    figure, axis = style.one_axis(width, height + 0.7)
    axis.set_facecolor(_EMPTY)
    norm = {"norm": LogNorm(*look.ends)} if look.log else {"vmin": look.ends[0], "vmax": look.ends[1]}
    shown = np.ma.masked_invalid(values)
    there = ~np.ma.getmaskarray(shown)
    image = axis.imshow(shown, cmap=look.colours, aspect="auto", **norm)
    for row, column in np.ndindex(values.shape):
        red, green, blue, _ = image.cmap(image.norm(values[row, column])) if there[row, column] else (1.0,) * 4
        dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.5
        colour = "white" if dark else "black" if there[row, column] else GREY
        axis.text(column, row, text[row, column], ha="center", va="center", fontsize=size, color=colour)
    axis.set_xticks(np.arange(len(columns)), columns, fontsize=8, rotation=90 if look.upright else 0, parse_math=False)
    axis.set_yticks(np.arange(len(rows)), rows, fontsize=8, parse_math=False)
    axis.xaxis.tick_top()
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    axis.set_title(look.above, loc="left", fontsize=9)
    axis.set_ylabel(look.beside, fontsize=9)
    axis.set_xlabel(look.below, fontsize=8.5)
    return figure


@figure_of(
    "Who beats whom",
    Takes(
        "a fit, a bootstrap, Draws, or a table of all pairs such as win_probability or beat_share",
        kinds=(BradleyTerryFit, Bootstrap, Draws, pd.DataFrame),
    ),
)
def plot_win_probability(
    pairs: BradleyTerryFit | Bootstrap | Draws | pd.DataFrame, top: int | None = _MOST, **labels: Unpack[FigureLabels]
) -> Figure:
    """Draw the probability that the row's model beats the column's, in percent, with the best model on top.

    Args:
        pairs: a fit, or a bootstrap, whose ``win_probability`` is drawn; `Draws`, whose ``beat_share`` is drawn, the
            share of the draws in which the row is above the column; or such a table, best first.
        top: models shown; the figure says how many are not.

    Raises:
        TypeError: ``pairs`` is anything else.
        ValueError: a table whose rows and columns have other names, or values that are no probabilities; too many
            models for a table of all pairs.
    """
    fit = pairs.fit if isinstance(pairs, Bootstrap) else pairs
    meaning = "expected points of the row, %"
    if isinstance(fit, BradleyTerryFit):
        table = fit.win_probability.loc[(order := fit._best_first().index), order]
    elif isinstance(fit, Draws):
        order = fit.names[np.argsort(-np.nan_to_num(fit.estimate, nan=-np.inf), kind="stable")]
        table, meaning = fit.beat_share.loc[order, order], "% of the draws in which the row is above the column"
    else:
        table = _checked_pairs(fit)
    shown = table.iloc[: top or None, : top or None].to_numpy(float, copy=True)
    np.fill_diagonal(shown, np.nan)
    names = [style.joint_name(name) for name in table.index[: len(shown)]]
    far = max(0.1, float(np.nanmax(np.abs(shown - 0.5), initial=0.0)))  # the colours are those of the values
    ends = (0.5 - far, 0.5 + far)
    look = HeatLook(ABOUT_A_MIDDLE, ends, SQUARE, meaning, below=style.not_shown(len(table) - len(names)), upright=True)
    return heat_map(shown, _whole(100 * shown), names, names, look)


def _checked_pairs(table: pd.DataFrame) -> pd.DataFrame:
    if table.empty:
        raise ValueError("plot_win_probability takes a table of all pairs, and this one is empty")
    if not table.index.equals(table.columns):
        raise ValueError("plot_win_probability takes a table with the same names for rows and columns, in one order")
    values = table.to_numpy(float, na_value=np.nan)
    if np.any((values < 0) | (values > 1)):
        raise ValueError("plot_win_probability takes probabilities; this table has values below 0 or above 1")
    return table


@figure_of("Who met whom", Takes("Battles", kinds=(Battles,)))
def plot_battle_counts(battles: Battles, top: int | None = _MOST, **labels: Unpack[FigureLabels]) -> Figure:
    """Draw the number of battles of every pair of models, models with the most battles first; pale where two never met.

    Args:
        battles: as `read_battles` or `Battles.from_pandas` makes them.
        top: models shown; the figure says how many are not.
    """
    cells = battles.cells
    first, second = cells.first[cells.pair], cells.second[cells.pair]
    m = battles.n_models
    of_model = np.bincount(np.concatenate([first, second]), np.tile(cells.count, 2), m)
    shown = np.argsort(-of_model, kind="stable")[: top or m]
    place = np.full(m, -1)
    place[shown] = np.arange(len(shown))
    row, column = place[first], place[second]
    both = (row >= 0) & (column >= 0)
    counts = np.zeros((len(shown), len(shown)))
    np.add.at(counts, (row[both], column[both]), cells.count[both])
    counts += counts.T
    met = np.where(counts > 0, counts, np.nan)
    names = [style.joint_name(name) for name in battles.models[shown]]
    least = float(np.nanmin(met, initial=np.inf)) if (counts > 0).any() else 1.0
    ends = (least, max(least + 1.0, counts.max(initial=0)))
    look = HeatLook(AMOUNTS, ends, SQUARE, "battles", below=style.not_shown(m - len(names)), upright=True, log=True)
    text = _texts(met, lambda n: "" if np.isnan(n) else _short_count(n))
    return heat_map(met, text, names, names, look)


@figure_of("Which ranks the draws take", Takes("Draws, as results hand them out as joint", kinds=(Draws,)))
def plot_rank_distribution(draws: Draws, top: int | None = 40, **labels: Unpack[FigureLabels]) -> Figure:
    """Plot the percentage of draws in which each quantity takes each rank, best on top; empty below half a percent.

    Args:
        draws: as results hand them out as ``joint``.
        top: quantities shown; the figure says how many are not.

    Raises:
        TypeError: ``draws`` is anything else.
        ValueError: too many names for a table of all ranks.
    """
    order = draws.rank().dropna().sort_values(kind="stable").index
    share = draws.rank_distribution().loc[order]
    rows = share.iloc[: top or len(share)].to_numpy()
    taken = np.flatnonzero((rows > 0.005).any(0))
    rows = rows[:, : taken.max(initial=-1) + 1]
    shown = np.where(rows > 0.005, rows, np.nan)
    names = [style.joint_name(name) for name in order[: len(rows)]]
    ranks = [str(k + 1) for k in range(rows.shape[1])]
    hidden = style.not_shown(len(order) - len(names))
    look = HeatLook(AMOUNTS, (0.0, 1.0), SQUARE, "rank; % of the draws", below=hidden)
    return heat_map(shown, _whole(100 * shown), names, ranks, look)


@figure_of("{heads} by slice", Takes("the table that leaderboard(by=...) returns", (*LEADERBOARD.columns, "category")))
def plot_slices(
    table: pd.DataFrame, value: Literal["rating", "rank"] = "rating", top: int | None = _MOST,
    **labels: Unpack[FigureLabels],
) -> Figure:  # fmt: skip
    """Draw the rating, or the rank, of every model in every slice, coloured by the rank within the slice.

    Models stand in the order of their mean rank; those without a rank in a slice have a pale cell there.

    Args:
        table: as ``leaderboard(by=...)`` returns it.
        value: what the cells say.
        top: models shown; the figure says how many are not.

    Raises:
        TypeError: ``table`` is none.
        ValueError: the table has no slices, or no such ``value``.
    """
    check_choice("value", value, ("rating", "rank"))
    slices = list(dict.fromkeys(table["category"]))
    names = list(dict.fromkeys(table["model"]))
    rank, ranking = (
        table.pivot_table(index="model", columns="category", values=name, aggfunc="first", dropna=False)
        .reindex(index=names, columns=slices)
        .to_numpy(float, na_value=np.nan)
        for name in ("rank", value)
    )
    known = ~np.isnan(rank)
    of_slice = np.maximum(known.sum(0), 2)
    share = (rank - 1) / (of_slice - 1)  # 0 for the best, 1 for the last
    mean = np.where(known.any(1), np.nansum(share, 1) / np.maximum(known.sum(1), 1), np.inf)
    order = np.argsort(mean, kind="stable")[: top or len(names)]
    look = HeatLook(
        LESS_IS_BETTER, (0.0, 1.0), (max(0.55, 0.075 * max(map(len, map(style.joint_name, slices)))), 0.21),
        f"{value}; coloured by the rank within the slice", below=style.not_shown(len(names) - len(order)),
    )  # fmt: skip
    text = _whole(np.where(known, ranking, np.nan)[order])
    rows = [style.joint_name(names[k]) for k in order]
    return heat_map(share[order], text, rows, list(map(style.joint_name, slices)), look)


def _whole(values: Float) -> NDArray[Any]:
    return _texts(values, lambda x: f"{x:.0f}" if np.isfinite(x) else "")


def _texts(values: Float, text: Callable[[float], str]) -> NDArray[Any]:
    return pd.DataFrame(values).map(text).to_numpy(object)


def _short_count(n: float) -> str:
    return f"{n:.0f}" if n < 1000 else f"{n / 1000:.1f}k" if n < 9950 else f"{n / 1000:.0f}k"


_WAYS = ("dropped", "flipped", "added")
_MOST_PAIRS = 40
_TAKES = Takes(
    "the table of pairs of a GoodnessOfFit", ("model_a", "model_b", "votes", "share", "expected", "z", "p_value")
)
_CLEAR = 0.05


@figure_of("How few votes swap neighbours", Takes("the table of fewest_votes()", ("above", "below", *_WAYS)))
def plot_fewest_votes(table: pd.DataFrame, top: int = 30, **labels: Unpack[FigureLabels]) -> Figure:
    """Draw the fewest votes found that swap each two neighbours, on a logarithmic axis; a line leads to what is proved.

    Args:
        table: as `fewest_votes` gives it.
        top: pairs shown, the best; the figure says how many are not.
    """
    shown = table.head(top)
    place = np.arange(len(shown))
    figure, axis = style.one_axis(8, 1.2 + 0.26 * max(len(shown), 1))
    for k, (way, colour) in enumerate(zip(_WAYS, COLOURS, strict=False)):
        votes, at = shown[way].astype(float).to_numpy(), place + 0.22 * (k - 1)
        least = shown.get(f"{way}_at_least", shown[way]).astype(float).to_numpy()
        axis.hlines(at, least, votes, color=colour, linewidth=1.5, alpha=0.5)
        axis.scatter(votes, at, s=16, color=colour, label=way, zorder=3)
    axis.set_xscale("log")
    pairs = zip(*(map(style.shown_name, shown[name]) for name in ("above", "below")), strict=True)
    names = [" > ".join(pair) for pair in pairs]
    axis.set_yticks(place, names, fontsize=8, parse_math=False)
    axis.set_ylim(max(len(shown), 1) - 0.5, -0.5)
    more = style.not_shown(len(table) - len(shown), "; ", ("pair", "pairs"))
    axis.set_xlabel(f"votes; lines begin at what is surely needed{more}", fontsize=8.5)
    style.legend_above(figure, *axis.get_legend_handles_labels())
    style.plain(axis)
    return figure


@figure_of("Points of pairs, and what ratings expect", _TAKES)
def plot_pair_fit(pairs: pd.DataFrame, **labels: Unpack[FigureLabels]) -> Figure:
    """Draw the share of points of each pair's first model against the expected share; larger marks have more votes.

    Args:
        pairs: ``goodness_of_fit(...).pairs``.
    """
    figure, axis = style.one_axis(5.6, 5.2)
    odd = (pairs["p_value"] <= _CLEAR).to_numpy()
    size = 4 + 60 * pairs["votes"].to_numpy() / max(pairs["votes"].max(), 1)
    for chosen, colour, name in ((~odd, COLOURS[0], "pairs"), (odd, COLOURS[1], "pairs that stick out")):
        if chosen.any():
            x, y = (100 * pairs[column].to_numpy()[chosen] for column in ("expected", "share"))
            axis.scatter(x, y, size[chosen], color=colour, alpha=0.5, linewidth=0, label=name)
    axis.axline((0, 0), slope=1, color=GREY, linewidth=1)
    style.finish(axis, x=f"expected points of the first {rated(pairs).one}, %", y="points that it took, %", legend=True)
    return figure


@figure_of("Who did better than ratings expect", _TAKES)
def plot_pair_residuals(pairs: pd.DataFrame, top: int | None = _MOST_PAIRS, **labels: Unpack[FigureLabels]) -> Figure:
    """Plot by how many standard errors the row's model did better than expected against the column's.

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
    names = [style.joint_name(name) for name in chosen]
    below = style.not_shown(len(size) - len(names))
    look = HeatLook(ABOUT_A_MIDDLE, (-end, end), SQUARE, "standard errors above expectation", below=below, upright=True)
    return heat_map(z, _texts(z, lambda x: "" if np.isnan(x) else str(round(x))), names, names, look)
