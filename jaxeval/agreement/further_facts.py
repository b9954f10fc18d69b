"""What else speaks for and against a judge, in words: ties, the order shown, the ranking; and what to run next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from jaxeval.agreement.good_enough import GoodEnough
from jaxeval.agreement.measures import PANEL
from jaxeval.arrays import Float
from jaxeval.data.battles import Battles
from jaxeval.data.labelled_verdicts import LabelledVerdicts
from jaxeval.ratings.bradley_terry import fit_bradley_terry
from jaxeval.wording import counted, visible_line

#: Of people's ratings, and of the judge's: with it every model has one.
RIDGE = 0.01
_UNLIKE = 0.05  # shares of ties that differ by less are not worth a word
_MANY_FLIPS = 0.1


def further_facts(
    battles: LabelledVerdicts, table: pd.DataFrame, ends: pd.DataFrame, whole: Mapping[str, Float], name: Any,
    place: int, answer: GoodEnough,
) -> list[str]:  # fmt: skip
    """Facts about a judge, or the panel, that the answer names after its agreement."""
    verdict = battles.panel if name == PANEL else battles.verdict[:, place]
    return [
        *_ties(battles, verdict),
        *_orders(battles, ends, name),
        *_ranking(battles, verdict),
        *_next(battles, ends, name, answer),
    ]


def _ties(battles: LabelledVerdicts, verdict: Float) -> list[str]:
    """Shares of ties, or of answers that were not attempted, where the judge and people differ."""
    both = ~np.isnan(verdict) & ~np.isnan(battles.human).all(1)
    if not battles.scale.has_middle or not both.any():
        return []
    given = ~np.isnan(battles.human[both])
    own = float((verdict[both] == 0.5).mean())
    people = float(((battles.human[both] == 0.5).sum(1) / given.sum(1)).mean())
    if abs(own - people) < _UNLIKE:
        return []
    word = "neither right nor wrong" if battles.scale.kind == "answers" else "a tie"
    return [f"it says {word} on {100 * own:.0f}%, people on {100 * people:.0f}%"]


def _orders(battles: LabelledVerdicts, ends: pd.DataFrame, name: Any) -> list[str]:
    """How far verdicts follow the order shown."""
    judges = battles.judges if name == PANEL else [name]
    known = [own for own in judges if ("flips", own) in ends.index]
    if known:
        own = max(known, key=lambda one: float(ends.loc[("flips", one), "value"]))
        value, lower, upper = 100 * ends.loc[("flips", own)].to_numpy(float)
        who = f"{visible_line(own)} names" if name == PANEL else "it names"
        return [f"{who} another side in {value:.0f}% [{lower:.0f}, {upper:.0f}] when the order is swapped"]
    if battles.scale.kind in ("pairs", "sides"):
        return ["no order shown is known, so that a preference for a position is hidden"]
    return []


def _ranking(battles: LabelledVerdicts, verdict: Float) -> list[str]:
    """How far the judge's ranking of models is people's, on the same battles or answers."""
    people, models = battles.people, battles.models
    both = ~np.isnan(verdict) & ~np.isnan(people)
    if battles.scale.kind == "pairs":
        used = np.union1d(battles.model_a[both], battles.model_b[both])
        if len(used) < 2:
            return []
        sides = {"model_a": models[battles.model_a[both]], "model_b": models[battles.model_b[both]]}
        ratings = [
            fit_bradley_terry(Battles.from_pandas(pd.DataFrame({**sides, "target": own[both]}), target="target"), RIDGE)
            .logits.reindex(models[used]).to_numpy()
            for own in (people, verdict)
        ]  # fmt: skip
    elif battles.answers_of is not None:
        used, code = np.unique(battles.answers_of[both], return_inverse=True)
        ratings = [np.bincount(code, own[both]) / np.bincount(code) for own in (people, verdict)]
    else:
        return []
    if len(used) < 2:
        return []
    signs = [np.sign(np.round(own[:, None] - own, 9))[np.triu_indices(len(used), 1)] for own in ratings]
    n, swapped = len(signs[0]), int((signs[0] * signs[1] < 0).sum())
    first = [models[used[int(np.argmax(own))]] for own in ratings]
    lead = (
        "the same first one"
        if first[0] == first[1]
        else (f"{visible_line(first[1])} first, where people have {visible_line(first[0])}")
    )
    who = f"its ranking of {counted(len(used), 'model')}"
    return [f"{who} has {swapped:,} of {counted(n, 'pair')} the other way round than people's, and {lead}"]


def _next(battles: LabelledVerdicts, ends: pd.DataFrame, name: Any, answer: GoodEnough) -> list[str]:
    """The command to run next."""
    judge = battles.judges[0] if name == PANEL else name
    if answer.beside is None:
        kappa = ends.loc[("kappa", name)] if ("kappa", name) in ends.index else None
        told = [] if kappa is None else [f"kappa {kappa['value']:.2f} [{kappa['lower']:.2f}, {kappa['upper']:.2f}]"]
        if answer.verdict == "not known":
            told.append("no item has labels of two people, so that nobody knows how far people agree")
        more = "have a second person label some of the items, then run jaxeval agreement again"
    elif answer.items_needed is not None:
        told, more = (
            [],
            (f"about {answer.items_needed:,} items with labels of two people would tell: jaxeval agreement FILE"),
        )
    else:
        told, more = [], ""
    if answer.verdict == "not known":
        return [*told, f"next: {more}"] if more else [*told, "next: jaxeval agreement FILE with more items"]
    if battles.scale.kind == "answers":
        line = f"jaxeval judge --calibration FILE --test ANSWERS --judgment {visible_line(judge)}"
        return [*told, f"next: {line}, which corrects its errors"]
    if battles.scale.kind == "pairs":
        line = "jaxeval leaderboard VOTES --judged VERDICTS --item ITEM"
        return [*told, f"next: {line}, which corrects its errors by people's votes"]
    if answer.verdict == "yes":
        return [*told, "next: jaxeval panel FILE or jaxeval leaderboard FILE with the models that it compares"]
    return [*told, "next: jaxeval agreement FILE for another judge or prompt"]
