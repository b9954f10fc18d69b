"""The leaderboard in a terminal, and its warnings in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from rich.cells import cell_len
from rich.console import Console

from jaxeval.cli.terminal import new_grid, note, warn
from jaxeval.ratings.slices import slice_title
from jaxeval.wording import counted, visible_line

_BAR, _BAR_WIDTH = 5, 24  # its column, and its characters
_FOLDED = 32  # characters from which on names and notes may be folded to make room for bars
_TIE_SCALES = {
    "davidson": "Davidson: ratings are log-odds of decisive battles",
    "rao_kupper": "Rao and Kupper: ratings are log-odds of a win if the slightest advantage decided",
}
_MOST_WARNINGS = 25
#: Boards of more models are cut to so many rows, unless told how many.
_MOST_ROWS = 200


def print_leaderboard(table: pd.DataFrame, console: Console, top: int | None = None) -> None:
    """Print a `leaderboard` table: one block per category, then what was read and what the data cannot say.

    Of a block the first ``top`` models; by default all, of a wide board the first 200.
    """
    if "category" in table:
        for category, block in table.groupby("category", sort=False):
            _print_block(block, console, slice_title(category, table.attrs["settings"]["by"]), top)
    else:
        _print_block(table, console, None, top)
    if table.attrs.get("coefficients"):
        _print_coefficients(pd.DataFrame(table.attrs["coefficients"]), table.attrs["settings"]["link"], console)
    for text in (table.attrs["report"], _settings_line(table.attrs["settings"])):
        note(console, text)
    warnings = table.attrs["warnings"]
    if len(warnings) > _MOST_WARNINGS:
        more = f"and {len(warnings) - _MOST_WARNINGS:,} more (in Python: leaderboard(...).attrs['warnings'])"
        warnings = [*warnings[:_MOST_WARNINGS], more]
    warn(console, warnings)


def _print_block(block: pd.DataFrame, console: Console, title: str | None, top: int | None) -> None:
    shown = block.head(top or _MOST_ROWS)
    grid = new_grid(None if title is None else visible_line(title))
    grid.add_column("Rank", justify="right")
    grid.add_column("Spread", justify="center")
    grid.add_column("Model", overflow="fold")
    grid.add_column("Rating", justify="right")
    grid.add_column("+/-", justify="left")
    grid.add_column("", style="cyan", no_wrap=True)
    by_score = "expected_score_rating" in block
    if by_score:
        grid.add_column("By expected score", justify="right")
    grid.add_column("Votes", justify="right")
    grid.add_column("Tier", justify="right")
    grid.add_column("Notes", overflow="fold", style="yellow")
    bars = _bars(shown)
    rows = []
    for (_, row), bar in zip(shown.iterrows(), bars, strict=True):
        rows.append(
            [
                _whole(row["rank"]),
                "" if pd.isna(row["rank_best"]) else f"{row['rank_best']}-{row['rank_worst']}",
                visible_line(row["model_name"]),
                f"{row['rating']:.1f}" if np.isfinite(row["rating"]) else "unrated",
                _plus_minus(row),
                bar,
                *([_by_score(row)] if by_score else []),
                f"{row['vote_count']:,}",
                _whole(row["tier"]),
                _notes(row),
            ]
        )
    heads = [str(column.header) for column in grid.columns]
    taken = sum(min(max(map(cell_len, column)), _FOLDED) + 2 for column in zip(heads, *rows, strict=True))
    for cells in rows:
        if taken > console.width:  # a bar that is cut would show another interval
            cells[_BAR] = ""
        grid.add_row(*cells)
    console.print(grid)
    if len(shown) < len(block):
        more = "" if top else " (--top K prints K of them, --out writes all)"
        note(console, f"... and {counted(len(block) - len(shown), 'more model')}{more}")
    console.print()


def _print_coefficients(table: pd.DataFrame, link: str, console: Console) -> None:
    grid = new_grid("Covariates")
    names = ["category"] if "category" in table else []
    for name in (*names, "feature"):
        grid.add_column(name.capitalize(), overflow="fold")
    for name in (f"{link.capitalize()}s", "Interval", "Odds ratio", "Elo", "One unit is"):
        grid.add_column(name, justify="right")
    for row in table.itertuples():
        grid.add_row(
            *(visible_line(getattr(row, name)) for name in (*names, "feature")),
            f"{row.coefficient:+.3f}",
            "" if pd.isna(row.lower) else f"{row.lower:+.3f} to {row.upper:+.3f}",
            "" if pd.isna(row.odds_ratio) else f"{row.odds_ratio:.3f}",
            "" if pd.isna(row.elo) else f"{row.elo:+.1f}",
            "" if pd.isna(row.unit) else f"{row.unit:.4g}",
        )
    console.print(grid)
    console.print()


def _whole(value: object) -> str:
    return "" if pd.isna(value) else str(value)


def _plus_minus(row: pd.Series) -> str:
    if not np.isfinite(row["rating"]) or pd.isna(row["rating_lower"]):
        return ""
    return f"{row['rating_upper'] - row['rating']:+.1f}/{row['rating_lower'] - row['rating']:+.1f}"


def _by_score(row: pd.Series) -> str:
    """The rating on the scale of expected scores, with its interval."""
    if not np.isfinite(row["expected_score_rating"]):
        return "unrated"
    ends = row["expected_score_lower"], row["expected_score_upper"]
    interval = "" if pd.isna(ends[0]) else f" [{ends[0]:.0f}, {ends[1]:.0f}]"
    return f"{row['expected_score_rating']:.1f}{interval}"


def _notes(row: pd.Series) -> str:
    notes = []
    if row["component"] > 1:
        notes.append(f"group {row['component']}")
    elif row["standing"]:
        notes.append(str(row["standing"]))
    if row["preliminary"]:
        notes.append("preliminary")
    if np.isfinite(row["rating"]) and row["degenerate_share"] > 0:
        notes.append(f"no rating in {row['degenerate_share']:.1%} of resamples")
    return ", ".join(notes)


def _bars(block: pd.DataFrame) -> list[str]:
    """Intervals drawn in characters over the range of all finite bounds."""
    bounds = block[["rating_lower", "rating_upper"]].to_numpy(float)
    finite = bounds[np.isfinite(bounds)]
    if len(finite) == 0 or finite.max() == finite.min():
        return [""] * len(block)
    low, width = finite.min(), finite.max() - finite.min()
    bars = []
    for rating, (lower, upper) in zip(block["rating"], bounds, strict=True):
        if not (np.isfinite(rating) and np.isfinite(lower) and np.isfinite(upper)):
            bars.append("")
            continue
        left, at, right = (round((x - low) / width * (_BAR_WIDTH - 1)) for x in (lower, rating, upper))
        line = [" "] * _BAR_WIDTH
        line[left : right + 1] = "─" * (right - left + 1)
        line[min(max(at, 0), _BAR_WIDTH - 1)] = "●"
        bars.append("".join(line))
    return bars


def _settings_line(settings: dict[str, Any]) -> str:
    weights = ", inverse-pair-frequency weights" if settings["reweight"] else ""
    if settings.get("features"):
        unit = "normalized" if settings["normalize"] else "raw"
        features = counted(len(settings["features"]), f"{unit} feature")
        weights += f"; {features}, with ridge {settings['feature_ridge']:g}"
    if settings.get("ties", "half") != "half":
        weights += f"; ties by {_TIE_SCALES[settings['ties']]}; by expected score: a tie is half a win"
    if settings.get("link", "logit") != "logit":
        weights += f"; {settings['link']} link"
    cluster = f" of {settings['cluster']}" if settings["cluster"] else ""
    cluster += f" within {settings['strata']}" if settings["strata"] else ""
    few = f"; models under {settings['min_battles']:,} votes take no rank" if settings["min_battles"] else ""
    return (
        f"{counted(settings['n_resamples'], settings['scheme'] + ' resample')}{cluster}, seed {settings['seed']}; "
        f"{100 * settings['level']:g}% {settings['interval']} intervals; ridge {settings['ridge']:g}{weights}; "
        f"gauge: {settings['gauge']}\n"
        f"rank spread: by differences to all other models, {100 * settings['level']:g}% "
        f"{'for all models at once' if settings['simultaneous_ranks'] else 'for each model by itself'}{few}\n"
        f"{settings['dtype']}, {settings['method']} method, on {settings['n_devices']} x {settings['device']}; "
        f"{settings['versions']}"
    )
