"""The leaderboard in a terminal, and its warnings in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from jaxeval.cli.outputs import Findings
from jaxeval.ratings.slices import slice_title
from jaxeval.show.boards import more_columns, penalised_line, rank_spread, row_notes, settings_lines
from jaxeval.show.rated import board_grid
from jaxeval.show.screens import Column, Grid, Screen, columns_of, grid_of, print_screen
from jaxeval.wording import Noun, competitor_of, counted, visible_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

_BORROWING = "share from the other battles; spread: how far ratings differ from theirs, Elo"


def print_leaderboard(table: pd.DataFrame, console: Console, top: int | None = None, full: bool = False) -> None:
    """Print a `leaderboard` table: who leads, the board of each category, what it rests on and what it cannot say."""
    print_screen(leaderboard_screen(table, top), console, full)


def board_findings(table: pd.DataFrame, top: int | None, notes: Sequence[str] = ()) -> Findings:
    """What the command writes and prints of a `leaderboard` table, with ``notes`` of what else is to be known."""

    def figures() -> dict[str, Figure]:
        from jaxeval.plots.leaderboard import plot_leaderboard

        return {"leaderboard": plot_leaderboard(table)}

    tables = {"leaderboard": table}
    if table.attrs.get("coefficients"):
        tables["coefficients"] = pd.DataFrame(table.attrs["coefficients"])
    for name in ("judge", "judges", "categories"):
        if table.attrs.get(name):
            tables[name] = pd.DataFrame(table.attrs[name])
    return Findings(
        screen=lambda: leaderboard_screen(table, top, notes),
        tables=tables,
        warnings=table.attrs["warnings"],
        title="Leaderboard",
        notes=[*notes, *settings_lines(table)],
        figures=figures,
    )


def leaderboard_screen(table: pd.DataFrame, top: int | None = None, notes: Sequence[str] = ()) -> Screen:
    """The screen of a `leaderboard` table, with the first ``top`` models of each category."""
    settings = table.attrs["settings"]
    blocks: list[tuple[str | None, pd.DataFrame]] = [(None, table)]
    if "category" in table:
        groups = table.groupby("category", sort=False)
        blocks = [(slice_title(category, settings["by"]), block) for category, block in groups]
    own = competitor_of(settings)
    grids = [_board(title, block, top, own) for title, block in blocks]
    grids[-1] = grids[-1]._replace(below=[*grids[-1].below, *filter(None, [penalised_line(table)])])
    if table.attrs.get("coefficients"):
        grids.append(_coefficients(pd.DataFrame(table.attrs["coefficients"]), settings["link"]))
    borrowing = pd.DataFrame(table.attrs.get("categories", []))
    borrowed: dict[str | None, str] = {
        slice_title(own["category"], settings["by"]): f"; {own['borrowed']:.0%} borrowed"
        for own in borrowing.to_dict("records")
        if own["borrowed"] >= 0
    }
    if len(borrowing):
        grids.insert(0, grid_of(borrowing, "What categories borrow", meaning=_BORROWING, rows="group"))
    if table.attrs.get("judges"):
        grids.append(_judges(pd.DataFrame(table.attrs["judges"])))
    answers = table.attrs.get("answer", "").splitlines() or [""] * len(blocks)
    return Screen(
        answer=[
            *(said + borrowed.get(title, "") for said, (title, _) in zip(answers, blocks, strict=True)),
            *(_worth(record, settings) for record in table.attrs.get("judge", [])),
        ],
        grids=grids,
        notes=[*notes, *settings_lines(table)],
        warnings=table.attrs["warnings"],
    )


def looked_at_again(table: pd.DataFrame, n_looks: int) -> list[str]:
    """What to say of the intervals of a board that grows with every run, and was looked at ``n_looks`` times."""
    from jaxeval.audits.anytime import wider_at_all_looks

    lower, upper = (table[name].to_numpy(float) for name in ("rating_lower", "rating_upper"))
    times = wider_at_all_looks(lower, upper, table.attrs["settings"]["level"])
    if np.isnan(times):
        return []
    return [
        f"this board has {counted(n_looks, 'file')}, and each is a look: intervals that hold at all looks at once are "
        f"{times:.2f} times as wide (jaxeval.anytime_intervals)"
    ]


def _worth(judge: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """What a judge's verdicts are worth."""
    start = f"{slice_title(judge['category'], settings['by'])}: the" if "category" in judge else "The"
    ends = f"[{judge['worth_lower']:,.0f}, {judge['worth_upper']:,.0f}]"
    return (
        f"{start} judge's {judge['n_judge_only']:,} verdicts are worth {judge['worth']:,.0f} {ends} votes, beside the "
        f"{judge['n_human']:,} of people (weight lam {judge['lam']:.2f})"
    )


def _board(title: str | None, block: pd.DataFrame, top: int | None, competitor: Noun) -> Grid:
    rows = block.to_dict("records")
    extra = []
    if "expected_score_rating" in block:
        extra = [Column("By expected score", [_by_score(row) for row in rows], order=7)]
    extra += columns_of(block[more_columns(block)], 10, competitor)  # they go first, bars next
    return board_grid(
        None if title is None else visible_line(title),
        list(block["model_name"]),
        *(block[name].to_numpy(float) for name in ("rating", "rating_lower", "rating_upper")),
        rank=list(block["rank"]),
        spread=[rank_spread(row) for row in rows],
        votes=list(block["vote_count"]),
        tier=list(block["tier"]) if "tier" in block else (),
        notes=[row_notes(row) for row in rows],
        extra=extra,
        competitor=competitor,
        top=None if top is None else min(top, len(block)),
    )


def _coefficients(table: pd.DataFrame, link: str) -> Grid:
    heads = {"coefficient": f"{link}s", "unit": "one_unit_is"}
    names = [name for name in ("category", "feature", "coefficient", "lower", "upper", "elo", "odds_ratio", "unit")
             if name in table]  # fmt: skip
    return grid_of(table[names].rename(columns=heads), "Covariates", rows="covariate", kept=("feature", f"{link}s"))


def _judges(table: pd.DataFrame) -> Grid:
    """The judges of a panel."""
    return grid_of(
        table.drop(columns=[name for name in table if str(name).endswith("_standard_error")]),
        "Judges",
        meaning="discrimination: how sharply a judge follows the ratings, root mean square 1; side bias: logits",
        rows="judge",
        kept=("judge", "discrimination"),
    )


def _by_score(row: dict[Any, Any]) -> str:
    """The rating on the scale of expected scores, with its interval."""
    if not np.isfinite(row["expected_score_rating"]):
        return "unrated"
    ends = row["expected_score_lower"], row["expected_score_upper"]
    interval = "" if pd.isna(ends[0]) else f" [{ends[0]:.0f}, {ends[1]:.0f}]"
    return f"{row['expected_score_rating']:.1f}{interval}"
