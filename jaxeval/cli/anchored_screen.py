"""Ratings above a reference in a terminal, under the leaderboard's headings, and what the judges are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from jaxeval.anchored.scores import ROLE_WORDS, differing_roles, highest_rated
from jaxeval.show.rated import board_grid
from jaxeval.show.screens import Grid, Screen, columns_of, grid_of
from jaxeval.wording import counted, named, visible_line

if TYPE_CHECKING:
    import pandas as pd

#: Columns that are written and not printed: there is no room.
_FILES_ONLY = [
    "probability_se", "rating_se", "own_se", "rating_se_predicted", "rating_se_predicted_observed", "informative",
    "squares",
]  # fmt: skip
#: Further tables, in the order in which they are printed.
_FURTHER = {
    "summary": "Means over judges",
    "kappas": "Cohen's kappa between judges",
    "abstention": "Without the answers that judges are not sure of",
    "guarded": "Direct and anchored scores, with and without such answers",
    "dispersion": "Dispersion of direct and anchored scores over judges",
    "direct_agreement": "Agreement of judges' direct scores",
    "prior": "Ratings under another prior (Elo)",
    "heterogeneity": "Variance between tasks",
    "subsamples": "Errors of subsamples of prompts",
}


def anchored_screen(
    tables: Mapping[str, pd.DataFrame], titles: Mapping[str, str], notes: Sequence[str], warnings: Sequence[str]
) -> Screen:
    """The screen of anchored ratings: the mean over the strong judges first, where there is one.

    Args:
        tables: "scores", and perhaps "judges", "pooled", "anchor_coverage" and "anchor_swap".
        titles: of the judges and of the mean over them.
        notes: what was read and set.
        warnings: sentences.
    """
    boards = {"pooled": titles["pooled"], "scores": "Ratings above the reference (Elo)"}
    grids = [_board(tables[name], title) for name, title in boards.items() if name in tables]
    found = []
    if "judges" in tables:
        least = ("single_boot", "average_boot", "n_incomplete", "n", "n_runs")
        judges = tables["judges"].drop(columns=_FILES_ONLY, errors="ignore")
        found.append(grid_of(judges, titles["judges"], rows="judge", kept=("strong",), least=least))
    if "anchor_coverage" in tables:
        meaning = "share of probabilities in the informative range, at floor and ceiling"
        found.append(grid_of(tables["anchor_coverage"], "References", meaning=meaning, rows="reference"))
    if "anchor_swap" in tables:
        swap = tables["anchor_swap"].drop(columns=_FILES_ONLY, errors="ignore")
        found.append(grid_of(swap, "References against each other (Elo)", rows="pair"))
    found += [grid_of(tables[name], title) for name, title in _FURTHER.items() if name in tables]
    return Screen(_answer(tables), [*grids, *found[:1]], found[1:], notes=notes, warnings=warnings)


def _answer(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """Who is rated highest, and which judges can be relied on."""
    name = "pooled" if "pooled" in tables else "scores"
    sentences = [highest_rated(tables[name], name == "pooled")]
    if "judges" in tables:
        judges = tables["judges"]
        strong = judges.loc[judges["strong"].astype(bool), "judge"].map(visible_line)
        whose = f": {named(list(strong), 4)}" if len(strong) else ""
        sentences.append(f"{len(strong):,} of {counted(len(judges), 'judge')} repeat themselves reliably{whose}")
    return sentences


def _board(table: pd.DataFrame, title: str) -> Grid:
    shown = table.sort_values("rating", ascending=False, kind="stable")
    extra = columns_of(shown[differing_roles(shown)], 2)
    for names, order in ((["probability"], 7), (["wins", "ties", "losses"], 8)):
        extra += columns_of(shown[[name for name in names if name in shown]], order)
    n = shown.get("n_items")
    if n is None and "wins" in shown:
        n = shown["wins"] + shown["losses"] + shown.get("ties", 0)
    if n is not None:
        extra += columns_of(n.to_frame("n"), 6)
    alike = [
        f"{role} {visible_line(shown[role].iloc[0])}"
        for role in ROLE_WORDS
        if role in shown and role not in differing_roles(shown)
    ]
    grid = board_grid(
        title,
        list(shown["model"]) if "model" in shown else ["the model"] * len(shown),
        *(shown[name].to_numpy(float) for name in ("rating", "rating_lower", "rating_upper")),
        rank=range(1, len(shown) + 1) if len(shown) == (shown["model"].nunique() if "model" in shown else 0) else (),
        extra=extra,
        rows="rating",
    )
    return grid._replace(meaning=", ".join(text for text in alike if "(one " not in text))
