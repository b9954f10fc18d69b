"""Judged battles of one set, compressed: equal battles are one cell."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from jaxeval.arrays import Bool, Float, Int
from jaxeval.data.judged_battles import JudgedBattles
from jaxeval.wording import did_you_mean


class JudgedCells(NamedTuple):
    """Judged battles compressed: equal (pair, score difference, hard label, human label) are one cell."""

    n_models: int
    first: Int  # (C,) lower model index
    second: Int  # (C,)
    pair: Int  # (C,) number of the pair, sorted
    label: Int  # (C,)
    battles: Int  # (C,) how many
    pairs: tuple[Int, Int]  # (P,) models of each pair
    labels: Float  # (U, 3) score difference, hard label, human label (NaN without one), of the first model
    own: list[Int]  # per model, its cells in order
    own_first: list[Bool]  # and whether it is the first model of them
    of_battle: Int  # (N,) the cell of each battle


def compress(battles: JudgedBattles, rows: NDArray[np.intp] | slice = slice(None)) -> JudgedCells:
    """Return the cells of the battles, or of some ``rows`` of them; the models stay numbered as they are."""
    a, b = battles.model_a[rows].astype(np.int64), battles.model_b[rows].astype(np.int64)
    m, swap = len(battles.models), a > b
    score = battles.score_difference[rows]
    difference = np.where(swap, -score, score) + 0.0
    hard, human = (np.where(swap, 1 - x[rows], x[rows]) for x in (battles.hard, battles.human))
    codes = [np.unique(x, return_inverse=True) for x in (difference, hard, human)]
    joint = np.zeros(len(a), np.int64)
    for values, code in codes:
        joint = joint * len(values) + code
    kinds, label = np.unique(joint, return_inverse=True)
    parts = np.unravel_index(kinds, [len(values) for values, _ in codes])
    labels = np.stack([values[part] for (values, _), part in zip(codes, parts, strict=True)], axis=1)
    pair = np.where(swap, b, a) * m + np.where(swap, a, b)
    keys, of_battle, count = np.unique(pair * len(kinds) + label, return_inverse=True, return_counts=True)
    pairs, of_cell = np.unique(keys // len(kinds), return_inverse=True)
    first, second = divmod(pairs, m)
    own, own_first = by_model(first[of_cell], second[of_cell], m)
    return JudgedCells(
        n_models=m, first=first[of_cell], second=second[of_cell], pair=of_cell, label=keys % len(kinds),
        battles=count, pairs=(first, second), labels=labels, own=own, own_first=own_first, of_battle=of_battle,
    )  # fmt: skip


def by_model(first: Int, second: Int, n_models: int) -> tuple[list[Int], list[Bool]]:
    """Per model, the places in order where it is (N,) ``first`` or ``second``, and whether it is the first there."""
    model, place = np.concatenate([first, second]), np.tile(np.arange(len(first)), 2)
    order = np.lexsort((place, model))
    ends = np.cumsum(np.bincount(model, minlength=n_models))[:-1]
    return np.split(place[order], ends), np.split(order < len(first), ends)


def smoothing(method: str) -> float:
    """Return the constant of a target map that moves hard labels: 1 for "hard", c for "smooth:c" (Appendix H).

    Raises:
        ValueError: there is no such map, or c lies outside [0.5, 1].
    """
    name, _, text = method.partition(":")
    try:
        constant = 1.0 if method == "hard" else float(text)
    except ValueError:
        constant = np.nan
    if not (method == "hard" or name == "smooth") or not 0.5 <= constant <= 1:
        raise ValueError(
            f"unknown method {method!r}: expected 'hard', 'soft', or 'smooth:c' with c in [0.5, 1], such as "
            f"'smooth:0.8'{did_you_mean(method, ('hard', 'soft', 'smooth:0.8'))}"
        )
    return constant


def targets(method: str, score_difference: Float, hard: Float, beta: float | Float | None) -> Float:
    """Targets that A wins by a target map: "soft" is s(beta d), the others move the hard label and need no ``beta``."""
    if method == "soft":
        return np.asarray(expit(np.nan if beta is None else beta * score_difference))
    return 0.5 + (2 * smoothing(method) - 1) * (hard - 0.5)
