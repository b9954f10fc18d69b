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
from scipy.special import expit

from jaxeval.arrays import Float
from jaxeval.data.judged_battles import JudgedBattles
from jaxeval.softelo.held_out import hold_out
from jaxeval.softelo.judged_cells import compress
from jaxeval.softelo.target_maps import targets

Int = NDArray[np.intp]


class RatingErrors(NamedTuple):
    """Standard errors of M models' held-out ratings by K target maps, logits; NaN where one unit is all there is.

    Both ratings rest on the same battles. So the square of ``residual`` is that of ``judge`` plus that of ``human``
    minus twice their covariance.
    """

    judge: Float  # (K, M) of the judge's rating
    human: Float  # (K, M) of the human rating
    residual: Float  # (K, M) of judge minus human


def held_out_errors(
    battles: JudgedBattles, methods: Sequence[str], ridge: float, cluster: str | None = None
) -> RatingErrors:
    """Errors of the ratings that `soft_elo` gives every model from its own battles.

    Args:
        battles: with human labels; those without one move the judge's rating only.
        methods: target maps.
        ridge: > 0, as in `soft_elo`.
        cluster: column of the battles whose equal values are sampled together: prompts, voters. None: single battles.
    """
    (folds,) = hold_out([compress(battles)], methods, float(ridge))
    model = np.concatenate([battles.model_a, battles.model_b]).astype(np.intp)
    opponent = np.concatenate([battles.model_b, battles.model_a]).astype(np.intp)
    unit, n = np.tile(units(battles, cluster), 2), len(battles.models)

    def moved(place: int, target: Float) -> Float:
        of_side = np.concatenate([target, 1 - target])
        return influence(model, opponent, of_side, folds.theta[place], folds.anchors[place], ridge)

    human = moved(0, battles.human)
    rows = []
    for k, method in enumerate(methods, start=1):
        # The temperature of a battle's soft target is that of the held-out model: it differs between the two sides.
        y_a, y_b = (
            targets(method, battles.score_difference, battles.hard, folds.beta[side])
            for side in (battles.model_a, battles.model_b)
        )
        judge = influence(model, opponent, np.concatenate([y_a, 1 - y_b]), folds.theta[k], folds.anchors[k], ridge)
        rows.append([standard_errors(model, unit, x, n) for x in (judge, human, judge - human)])
    of_judge, of_human, of_residual = np.array(rows).transpose(1, 0, 2)
    return RatingErrors(judge=of_judge, human=of_human, residual=of_residual)


def units(battles: JudgedBattles, cluster: str | None) -> Int:
    """(N,) number of each battle's sampling unit: the battle itself, or its cluster.

    Raises:
        DataError: there is no column of that name, or it has missing values.
    """
    if cluster is None:
        return np.arange(battles.n_battles)
    return battles.codes(cluster)[0]


def influence(model: Int, opponent: Int, target: Float, theta: Float, anchors: Float, ridge: float) -> Float:
    """(N,) by how much each battle moves its model's rating, logits; 0 without a target.

    Args:
        model: (N,) number of the model that is rated.
        opponent: (N,) number of its opponent.
        target: (N,) that the model wins; NaN without a label.
        theta: (M,) ratings, logits.
        anchors: (M, A) strengths of the opponents as each model sees them, logits.
        ridge: coefficient of theta^2.
    """
    p = expit(theta[model] - anchors[model, opponent])
    known = ~np.isnan(target)
    information = np.bincount(model, np.where(known, p * (1 - p), 0.0), len(theta)) + 2 * ridge
    return np.where(known, target - p, 0.0) / information[model]


def standard_errors(model: Int, unit: Int, moved: Float, n_models: int) -> Float:
    """(M,) standard errors from the influence ``moved`` (N,) of battles that are sampled by ``unit`` (N,).

    With G units of a model and their totals t: sqrt(G / (G - 1) * sum (t - mean t)^2). NaN with fewer than two units.
    """
    pairs, which = np.unique(model * (unit.max() + 1) + unit, return_inverse=True)
    total, of = np.bincount(which, moved), pairs // (unit.max() + 1)
    count = np.bincount(of, minlength=n_models)
    mean = np.bincount(of, total, n_models) / np.maximum(count, 1)
    squares = np.bincount(of, (total - mean[of]) ** 2, n_models)
    return np.sqrt(np.where(count > 1, squares * count / np.maximum(count - 1, 1), np.nan))
