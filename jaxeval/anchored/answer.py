"""Ratings above a reference for people, under the leaderboard's headings, and what the judges are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from jaxeval.anchored.scores import ROLE_WORDS, differing_roles, highest_rated
from jaxeval.show.boards import board_part
from jaxeval.show.screens import further_columns
from jaxeval.show.shown import Answer, Part
from jaxeval.wording import counted, named, visible_line

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


def anchored_answer(
    tables: Mapping[str, pd.DataFrame], titles: Mapping[str, str], notes: Sequence[str], warnings: Sequence[str]
) -> Answer:
    """What anchored ratings say: the mean over the strong judges first, where there is one.

    Args:
        tables: "scores", and perhaps "judges", "pooled", "anchor_coverage" and "anchor_swap".
        titles: of the judges and of the mean over them.
        notes: what was read and set.
        warnings: sentences.
    """
    title = "Ratings above the reference (Elo)"
    parts = [_board(tables["pooled"], titles["pooled"])] if "pooled" in tables else []
    parts.append(_board(tables["scores"], title))
    shown = {name: table.drop(columns=_FILES_ONLY, errors="ignore") for name, table in tables.items()}
    further = []
    if "judges" in tables:
        least = ("single_boot", "average_boot", "n_incomplete", "n", "n_runs")
        further.append(Part(titles["judges"], shown["judges"], rows="judge", kept=("strong",), least=least))
    if "anchor_coverage" in tables:
        meaning = "share of probabilities in the informative range, at floor and ceiling"
        further.append(Part("References", tables["anchor_coverage"], meaning, rows="reference"))
    if "anchor_swap" in tables:
        further.append(Part("References against each other (Elo)", shown["anchor_swap"], rows="pair"))
    further += [Part(text, tables[name]) for name, text in _FURTHER.items() if name in tables]
    parts += [part._replace(more=k > 0) for k, part in enumerate(further)]
    said = _answer(tables)
    return Answer(title, tables["scores"], "", warnings, sentences=said, notes=notes, parts=parts, tables=tables)


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


def _board(table: pd.DataFrame, title: str) -> Part:
    shown = table.sort_values("rating", ascending=False, kind="stable")
    extra = further_columns(shown[differing_roles(shown)], 2)
    for names, order in ((["probability"], 7), (["wins", "ties", "losses"], 8)):
        extra += further_columns(shown[[name for name in names if name in shown]], order)
    n = shown.get("n_items")
    if n is None and "wins" in shown:
        n = shown["wins"] + shown["losses"] + shown.get("ties", 0)
    if n is not None:
        extra += further_columns(n.to_frame("n"), 6)
    alike = [
        f"{role} {visible_line(shown[role].iloc[0])}"
        for role in ROLE_WORDS
        if role in shown and role not in differing_roles(shown)
    ]
    part = board_part(
        title,
        list(shown["model"]) if "model" in shown else ["the model"] * len(shown),
        *(shown[name].to_numpy(float) for name in ("rating", "rating_lower", "rating_upper")),
        rank=range(1, len(shown) + 1) if len(shown) == (shown["model"].nunique() if "model" in shown else 0) else (),
        extra=extra,
        rows="rating",
    )
    return part._replace(meaning=", ".join(text for text in alike if "(one " not in text))
