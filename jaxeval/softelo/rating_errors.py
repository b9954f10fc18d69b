"""Sampling errors of held-out ratings in closed form: how much ratings would differ with other battles.

The strengths of the opponents are fixed, as in the bootstrap of Algorithm 1 (arXiv:2606.13221). A battle moves a
rating by its influence (y - p) / (sum of p (1 - p) + 2 ridge) to first order. The variance of a rating is the sum of
the squared influences, and with clusters the sum of the squared totals of each cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.special import expit

from jaxeval.arrays import Bool, Float
from jaxeval.data.judged_battles import JudgedBattles
from jaxeval.softelo.held_out import Folds, hold_out
from jaxeval.softelo.temperature import compress, targets

Int = NDArray[np.intp]


def held_out_errors(battles: JudgedBattles, methods: Sequence[str], ridge: float, cluster: str | None = None) -> Float:
    """Return (3, K, M) standard errors of the ratings that `soft_elo` gives M models from their own battles, logits.

    By K target maps: of the judge's rating, of the human one, and of judge minus human, which rest on the same battles.
    NaN where one unit is all there is. Battles without a human label move the judge's rating only; those with equal
    values in the column ``cluster`` are sampled together.
    """
    (folds,) = hold_out([compress(battles)], methods, float(ridge))
    model = np.concatenate([battles.model_a, battles.model_b]).astype(np.intp)
    unit, n = np.tile(units(battles, cluster), 2), len(battles.models)
    human, *judged = held_out_influences(battles, methods, folds, ridge)
    rows = [[standard_errors(model, unit, x, n) for x in (judge, human, judge - human)] for judge in judged]
    return np.array(rows).transpose(1, 0, 2)


def held_out_influences(battles: JudgedBattles, methods: Sequence[str], folds: Folds, ridge: float) -> list[Float]:
    """Return by how much each battle moves the rating of its side A, then that of its side B, logits: (2 N,) each.

    The first is of human ratings, the others are of the judge's by target map.
    """
    model = np.concatenate([battles.model_a, battles.model_b]).astype(np.intp)
    opponent = np.concatenate([battles.model_b, battles.model_a]).astype(np.intp)
    # The temperature of a battle's soft target is that of the held-out model: it differs between the two sides.
    sides = [(battles.human, battles.human)] + [
        tuple(
            targets(method, battles.score_difference, battles.hard, folds.beta[side])
            for side in (battles.model_a, battles.model_b)
        )
        for method in methods
    ]
    return [
        influence(model, opponent, np.concatenate([of_a, 1 - of_b]), folds.theta[k], folds.anchors[k], ridge)
        for k, (of_a, of_b) in enumerate(sides)
    ]


def units(battles: JudgedBattles, cluster: str | None) -> Int:
    """Return (N,) number of each battle's sampling unit: the battle itself, or its cluster.

    A column that is not there, or has missing values, is a DataError.
    """
    if cluster is None:
        return np.arange(battles.n_battles)
    return battles.codes(cluster)[0]


def influence(model: Int, opponent: Int, target: Float, theta: Float, anchors: Float, ridge: float) -> Float:
    """Return (N,) by how much each battle moves its model's rating, logits; 0 without a target.

    Battles (N,) are of a model and its opponent, by number, with the target that the model wins. Ratings ``theta`` (M,)
    and the strengths of the opponents as each model sees them, ``anchors`` (M, A), are in logits.
    """
    p = expit(theta[model] - anchors[model, opponent])
    known = ~np.isnan(target)
    information = np.bincount(model, np.where(known, p * (1 - p), 0.0), len(theta)) + 2 * ridge
    return np.where(known, target - p, 0.0) / information[model]


def standard_errors(model: Int, unit: Int, moved: Float, n_models: int) -> Float:
    """Return (M,) standard errors from the influence ``moved`` (N,) of battles that are sampled by ``unit`` (N,).

    With G units of a model and their totals t: sqrt(G / (G - 1) * sum (t - mean t)^2). NaN with fewer than two units.
    """
    pairs, which = np.unique(model * (unit.max() + 1) + unit, return_inverse=True)
    total, of = np.bincount(which, moved), pairs // (unit.max() + 1)
    count = np.bincount(of, minlength=n_models)
    mean = np.bincount(of, total, n_models) / np.maximum(count, 1)
    squares = np.bincount(of, (total - mean[of]) ** 2, n_models)
    return np.sqrt(np.where(count > 1, squares * count / np.maximum(count - 1, 1), np.nan))


class JudgedSide(NamedTuple):
    """Judged battles as the fits see them, (N,) each. Numbers are of anchors, or of new models on side A."""

    a: Int
    b: Int
    target: Float  # that A wins, by the judge's target map
    difference: Float  # score of A minus that of B
    unit: Int  # number of the battle's sampling unit, the same in all tables


def joint_errors(
    known: JudgedSide, placed: JudgedSide, human: Float, zero: Bool, *, anchors: Float, new: Float, people: Float,
    beta: float | None, ridge: float, on_board: bool,
) -> Float:  # fmt: skip
    """Return (J + M, J + M) covariances of new models' strengths and of the people's, from battles that both rest on.

    They are of strengths less the mean strength of the anchors that hold the zero, logits^2. The judge's fits, with a
    ``ridge``, gave the strengths of ``anchors`` (M,) and of ``new`` models (J,), and the temperature ``beta`` (None for
    a target map without one); human votes those of ``people`` (M,), which are not finite where votes set none.

    The ``known`` battles between anchors calibrate, with the ``human`` targets (N,), NaN without a label, that give the
    temperature; those ``placed`` have a new model on side A. The mean strength of the anchors ``zero`` (M,) is the
    zero. The people's board rests on these labels, too (``on_board``), or is independent of the judge's fits.
    """
    m, j = len(anchors), len(new)
    p = expit(anchors[known.a] - anchors[known.b])
    placed_p = expit(new[placed.a] - anchors[placed.b])
    with np.errstate(invalid="ignore"):  # two models beyond all others
        human_p = expit(people[known.a] - people[known.b])
    voted = ~(np.isnan(human) | np.isnan(human_p)) & on_board
    decided = np.isin(human, (0.0, 1.0))

    # Scores: of the judge's anchors (M), of the new models (J), of the temperature (1), of the people's strengths (M).
    judge_error = known.target - p
    human_error = np.where(voted, human - human_p, 0.0)
    of_beta = np.where(decided, known.difference * (human - expit((beta or 0.0) * known.difference)), 0.0)
    entries = [
        (known.unit, known.a, judge_error),
        (known.unit, known.b, -judge_error),
        (placed.unit, m + placed.a, placed.target - placed_p),
        (known.unit, np.full(len(p), m + j), of_beta),
        (known.unit, m + j + 1 + known.a, human_error),
        (known.unit, m + j + 1 + known.b, -human_error),
    ]
    row, column, value = (np.concatenate(part) for part in zip(*entries, strict=True))
    scores = coo_array((value, (row, column)), shape=(row.max() + 1, 2 * m + j + 1)).tocsr()
    products = (scores.T @ scores).toarray()

    # How much each parameter moves with each score.
    of_anchors = np.linalg.inv(_information(known.a, known.b, p * (1 - p), m) + 2 * ridge * np.eye(m))
    slope, placed_slope = (0.0 * x.target for x in (known, placed))
    steepness = np.zeros(0)
    if beta is not None:
        slope, placed_slope = (x.difference * x.target * (1 - x.target) for x in (known, placed))
        steepness = (known.difference**2 * known.target * (1 - known.target))[decided]
    per_beta = of_anchors @ (np.bincount(known.a, slope, m) - np.bincount(known.b, slope, m))
    weight = np.bincount(placed.a * m + placed.b, placed_p * (1 - placed_p), j * m).reshape(j, m)
    information = weight.sum(1) + 2 * ridge
    placed_per_beta = (np.bincount(placed.a, placed_slope, j) + weight @ per_beta) / information
    answer = np.zeros((j + m, 2 * m + j + 1))
    share = zero / zero.sum()
    answer[:j, :m] = (weight / information[:, None] - share) @ of_anchors
    answer[:j, m : m + j] = np.diag(1 / information)
    if steepness.sum() > 0:
        answer[:j, m + j] = (placed_per_beta - share @ per_beta) / steepness.sum()
    human_weight = np.where(voted, human_p * (1 - human_p), 0.0)
    of_people = np.linalg.pinv(_information(known.a, known.b, human_weight, m), hermitian=True)
    answer[j:, m + j + 1 :] = of_people - share @ of_people
    return answer @ products @ answer.T


def _information(a: Int, b: Int, weight: Float, m: int) -> Float:
    """Return (M, M) information of a Bradley-Terry fit, from the p (1 - p) of its battles."""
    met = np.bincount(a * m + b, weight, m * m).reshape(m, m)
    met += met.T
    return np.asarray(np.diag(met.sum(1)) - met)
