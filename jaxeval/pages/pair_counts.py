"""Pair counts of a board as a page carries them: wins, ties and losses of every pair, exact, in a short text."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Float
from jaxeval.data.cells import Cells
from jaxeval.kernels.tie_models import NO_TIES, TieModel
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit
from jaxeval.ratings.contextual_fit import ContextualFit
from jaxeval.ratings.panel_ratings import JudgePanelFit
from jaxeval.ratings.plackett_luce import PlackettLuceFit
from jaxeval.ratings.prediction_powered import PredictionPoweredFit
from jaxeval.ratings.small_categories import CategoryFit
from jaxeval.wording import counted

#: Models that a browser refits, and that heat maps show.
MOST_MODELS = 300

_OUTCOMES = (1.0, 0.5, 0.0)  # targets of a win, a tie and a loss of a pair's first model
_OF_ITS_BATTLES = (BradleyTerryFit, ContextualFit, CategoryFit)  # whose cells are battles of two models


class PairCounts(NamedTuple):
    """Battles of P pairs by outcome, of the models ``first`` and ``second``.

    Outcomes are a win, a tie and a loss of the first model. Weights are None where each battle counts as one.
    """

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    count: Float  # (3, P) battles
    weight: Float | None  # (3, P) their weight
    square: Float | None  # (3, P) sum of their squared weights


def why_no_what_if(fit: BradleyTerryFit) -> str | None:
    """Why a page cannot refit a board in the browser, as a sentence; None if it can.

    The browser maximises the plain likelihood of wins, ties as half and losses. What takes more than pair counts, or
    another likelihood, it leaves to Python.
    """
    options = fit.settings
    kinds = {
        PlackettLuceFit: "its votes are rankings of several models, and the page carries pairs only",
        JudgePanelFit: "its ratings are fitted together with the habits of several judges",
        PredictionPoweredFit: "its ratings join votes of people with verdicts of a judge",
        CategoryFit: "its ratings borrow from the battles of other categories",
    }
    of_kind = next((why for kind, why in kinds.items() if isinstance(fit, kind)), None)
    if of_kind is None and type(fit) not in _OF_ITS_BATTLES:
        of_kind = "its ratings are no plain Bradley-Terry ratings of battles"
    reasons = [
        (of_kind is not None, of_kind),
        (options.ties != "half", "it has a model of ties, whose ratings take more than a refit of pairs"),
        (len(options.features) > 0, "its ratings are adjusted for covariates, which the page does not carry"),
        (options.ridge > 0, f"it has a ridge ({options.ridge:g}), and the browser fits without one"),
        (options.penalty != "none", f"it has a penalty ({options.penalty}), and the browser fits without one"),
        (options.link != "logit", f"its link is the {options.link}, and the browser fits logits"),
        (
            len(fit.ratings) > MOST_MODELS,
            f"it has {counted(len(fit.ratings), 'model')}, and the browser refits up to {MOST_MODELS}",
        ),
    ]
    why = next((why for holds, why in reasons if holds), None)
    if why is None and not np.isin(fit._board.cells.target, _OUTCOMES).all():
        why = "its battles have soft targets, which are neither wins, ties nor losses"
    return None if why is None else f"What-if is off for this board: {why}."


def pair_data(fit: BradleyTerryFit, models: Sequence[int], shown: Sequence[int] | None = None) -> dict[str, Any] | None:
    """What a page's heat maps and refits take of a board; None if they can say nothing.

    Args:
        fit: a board of M models.
        models: (M,) number of each model on the page.
        shown: positions of the models to keep, in any order; the best `MOST_MODELS` by default.

    Returns:
        ``models``, their numbers on the page, which pairs refer to by position; ``law``, how a difference of strengths
        becomes an expected result; ``gauge``; ``reweight``; and the pairs: ``kind`` "counts", "weights", "soft" or
        "none", and ``text``, see `packed`.
    """
    shown = _best(fit.ratings) if shown is None else np.asarray(shown[:MOST_MODELS], np.intp)
    shown = np.sort(shown)
    own = {"models": [int(models[k]) for k in shown], "law": _law(fit), "gauge": _gauge(fit)}
    own |= {"reweight": fit.settings.reweight}
    if type(fit) not in _OF_ITS_BATTLES:
        return own | {"kind": "none", "text": ""}
    cells = fit._board.cells
    place = np.full(len(fit.ratings), -1)
    place[shown] = np.arange(len(shown))
    if np.isin(cells.target, _OUTCOMES).all():
        pairs = counts_by_pair(cells)
        columns = [*pairs.count]
        kind = "counts" if pairs.weight is None else "weights"
        if pairs.weight is not None and pairs.square is not None:
            columns += [*pairs.weight, *pairs.square]
    else:
        kind, columns = "soft", [cells.battles, *cells.pair_sums()]
    first, second = place[cells.first], place[cells.second]
    both = (first >= 0) & (second >= 0)
    n_whole = {"counts": 3, "weights": 3, "soft": 1}[kind]
    whole, real = columns[:n_whole], columns[n_whole:]
    text = packed(first[both], second[both], [x[both] for x in whole], [x[both] for x in real], len(shown))
    return own | {"kind": kind, "text": text}


def counts_by_pair(cells: Cells) -> PairCounts:
    """Battles of wins, ties and losses, by pair."""
    n_pairs = len(cells.first)
    outcome = 2 - (2 * cells.target).astype(np.int64)  # in the order of _OUTCOMES

    def sums(of_cell: NDArray[Any]) -> Float:
        by_both = np.bincount(outcome * n_pairs + cells.pair, of_cell, 3 * n_pairs)
        return np.asarray(by_both.reshape(3, n_pairs), np.float64)

    count = sums(cells.count)
    if np.all(cells.weight == 1):
        return PairCounts(cells.first, cells.second, count, None, None)
    weight, square = (sums(cells.count * cells.weight**power) for power in (1, 2))
    return PairCounts(cells.first, cells.second, count, weight, square)


def packed(
    first: NDArray[np.integer[Any]], second: NDArray[np.integer[Any]], whole: Sequence[Float], real: Sequence[Float],
    n_models: int,
) -> str:  # fmt: skip
    """Columns of P pairs as base64 of gzip.

    Within are whole numbers of seven bits a byte, the lowest first, 128 added to all but a number's last byte: P; how
    far each pair, first * M + second, is beyond the one before; and each column of ``whole``. Then, from the next
    multiple of eight bytes, come the columns of ``real`` as doubles, the low byte first.
    """
    key = first.astype(np.int64) * n_models + second
    order = np.argsort(key)
    gaps = np.diff(key[order], prepend=0)
    numbers = np.concatenate([[len(key)], gaps, *(np.asarray(x)[order] for x in whole)]).astype(np.uint64)
    content = _sevens(numbers)
    content += bytes(-len(content) % 8)
    content += np.concatenate([np.zeros(0), *(np.asarray(x)[order] for x in real)]).astype("<f8").tobytes()
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode("ascii")


def _sevens(numbers: NDArray[np.uint64]) -> bytes:
    """Each number as bytes of seven bits."""
    digits = numbers[:, None] >> np.arange(0, 64, 7, dtype=np.uint64)
    low = (digits & np.uint64(127)).astype(np.uint8)
    low[digits > 127] |= 128
    used = digits > 0
    used[:, 0] = True
    return low[used].tobytes()


def _best(ratings: pd.Series) -> NDArray[np.intp]:
    order = np.argsort(-ratings.fillna(-np.inf).to_numpy(), kind="stable")
    return order[:MOST_MODELS]


def _law(fit: BradleyTerryFit) -> dict[str, Any]:
    """How a difference of ratings, over ``unit``, becomes an expected result with covariates even."""
    name = fit.settings.link if fit.settings.ties == "half" else fit.settings.ties
    tie = None
    if isinstance(fit, ContextualFit) and fit.settings.ties != "half":
        limits = {kind.name.lower(): limit for kind, limit in NO_TIES.items() if kind != TieModel.HALF}
        tie = fit.tie_parameter if np.isfinite(fit.tie_parameter) else limits[fit.settings.ties]
    return {"name": name, "tie": tie, "unit": fit.scale.unit}


def _gauge(fit: BradleyTerryFit) -> dict[str, Any]:
    """What fixes the zero of the ratings: a mean, or a model, by its position among all."""
    scale = fit.scale
    if scale.anchored:
        return {"kind": "model", "model": str(fit.ratings.index[int(np.argmax(scale.weights))]), "rating": scale.base}
    by_votes = "weighted by battles" in scale.gauge
    return {"kind": "votes" if by_votes else "mean", "model": None, "rating": scale.base}
