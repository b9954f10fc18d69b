"""Pair counts of a board for a page: the exact wins, ties and losses of every pair in a short text."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Float
from jaxeval.data.cells import Cells

#: The most models that a browser refits and that heat maps show.
MOST_MODELS = 300

_OUTCOMES = (1.0, 0.5, 0.0)  # targets of a win, a tie and a loss of a pair's first model


class PairCounts(NamedTuple):
    """Battles of P pairs by outcome, of the models ``first`` and ``second``.

    Outcomes are a win, a tie and a loss of the first model. Weights are None where each battle counts as one.
    """

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    battles: Float  # (3, P) their number
    weight: Float | None  # (3, P) their weight
    square: Float | None  # (3, P) sum of their squared weights


def pair_data(cells: Cells, models: Sequence[int], shown: Sequence[int] | None = None) -> dict[str, Any]:
    """The battles between M models in the form that a page's heat maps and refits need.

    Args:
        cells: the battles.
        models: (M,) number of each model on the page.
        shown: positions of the models to keep, at most `MOST_MODELS`; all by default.

    Returns:
        ``models``, their numbers on the page, which pairs refer to by position; ``kind`` "counts", "weights" or "soft";
        and ``text``, columns as `packed`: wins, ties and losses of the first model. If battles have weights other than
        1, the sums of their weights and of their squared weights follow. Soft targets have other columns: the number of
        battles, then their weight and the points of the first model.
    """
    kept = np.arange(len(models)) if shown is None else np.sort(np.asarray(shown, np.intp))
    place = np.full(len(models), -1)
    place[kept] = np.arange(len(kept))
    first, second = place[cells.first], place[cells.second]
    both = (first >= 0) & (second >= 0)
    kind, whole, real = _columns(cells)
    text = packed(first[both], second[both], [x[both] for x in whole], [x[both] for x in real], len(kept))
    return {"models": [int(models[k]) for k in kept], "kind": kind, "text": text}


def has_outcomes(cells: Cells) -> bool:
    """Whether all battles are wins, ties and losses."""
    return bool(np.isin(cells.target, _OUTCOMES).all())


def _columns(cells: Cells) -> tuple[str, list[Float], list[Float]]:
    """The kind of battles, columns of whole numbers, and others."""
    if not has_outcomes(cells):
        return "soft", [cells.battles], [*cells.pair_sums()]
    pairs = counts_by_pair(cells)
    if pairs.weight is None or pairs.square is None:
        return "counts", [*pairs.battles], []
    return "weights", [*pairs.battles], [*pairs.weight, *pairs.square]


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

    The bytes begin with whole numbers, seven bits to a byte, the lowest bits first; all but a number's last byte have
    128 added. These numbers are P; the difference of each pair (first * M + second) from the pair before; and each
    column of ``whole``. From the next multiple of eight bytes on follow the columns of ``real`` as little-endian
    doubles.
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
