"""Joint sampling errors of new models' ratings and of the people's board, by the delta method.

A new model is rated by three fits, one after the other: the temperature, the judge's strengths of the anchors, and its
own battles. The people's board is a fourth fit, of the human labels on the same battles. Each is an equation
sum_b score_b(parameters) = 0. To first order the parameters move by the inverse derivative of the equations times the
scores, so that the covariance of all of them follows from one matrix: the products of scores, summed by what is sampled
together (battles, or clusters of them).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.special import expit

from jaxeval.arrays import Bool, Float

Int = NDArray[np.intp]


class JudgedSide(NamedTuple):
    """Judged battles as the fits see them, (N,) each. Numbers are of anchors, or of new models on side A."""

    a: Int
    b: Int
    target: Float  # that A wins, by the judge's target map
    difference: Float  # score of A minus that of B
    unit: Int  # number of the battle's sampling unit, the same in all tables


class Strengths(NamedTuple):
    """What the fits gave, logits."""

    anchors: Float  # (M,) by the judge
    new: Float  # (J,) by the judge
    people: Float  # (M,) by human votes; not finite where these set none
    beta: float | None  # temperature; None for a target map without one
    ridge: float  # of the judge's fits


class JointErrors(NamedTuple):
    """Covariances, logits^2, of strengths less the mean strength of the anchors that hold the zero."""

    new: Float  # (J, J)
    new_people: Float  # (J, M)
    people: Float  # (M, M)


def joint_errors(
    known: JudgedSide, own: JudgedSide, human: Float, strengths: Strengths, zero: Bool, *, on_board: bool
) -> JointErrors:
    """Covariances of new models' strengths and of the people's, from the battles that both rest on.

    Args:
        known: the battles between anchors, which calibrate.
        own: those of the new models, A being the new model and B the anchor.
        human: (N,) human targets of the ``known`` battles, from which the temperature comes; NaN without a label.
        strengths: of the fits.
        zero: (M,) anchors whose mean strength is the zero.
        on_board: whether the people's board rests on these labels, too. If not, it is independent of the judge's fits.
    """
    m, j = len(strengths.anchors), len(strengths.new)
    beta, theta = strengths.beta or 0.0, strengths.anchors
    p = expit(theta[known.a] - theta[known.b])
    own_p = expit(strengths.new[own.a] - theta[own.b])
    with np.errstate(invalid="ignore"):  # two models beyond all others
        human_p = expit(strengths.people[known.a] - strengths.people[known.b])
    voted = ~(np.isnan(human) | np.isnan(human_p)) & on_board
    decided = np.isin(human, (0.0, 1.0))

    # Scores: of the judge's anchors (M), of the new models (J), of the temperature (1), of the people's strengths (M).
    judge_error = known.target - p
    human_error = np.where(voted, human - human_p, 0.0)
    of_beta = np.where(decided, known.difference * (human - expit(beta * known.difference)), 0.0)
    entries = [
        (known.unit, known.a, judge_error),
        (known.unit, known.b, -judge_error),
        (own.unit, m + own.a, own.target - own_p),
        (known.unit, np.full(len(p), m + j), of_beta),
        (known.unit, m + j + 1 + known.a, human_error),
        (known.unit, m + j + 1 + known.b, -human_error),
    ]
    row, column, value = (np.concatenate(part) for part in zip(*entries, strict=True))
    scores = coo_array((value, (row, column)), shape=(row.max() + 1, 2 * m + j + 1)).tocsr()
    products = (scores.T @ scores).toarray()

    # How much each parameter moves with each score.
    of_anchors = np.linalg.inv(_information(known.a, known.b, p * (1 - p), m) + 2 * strengths.ridge * np.eye(m))
    slope, own_slope = (0.0 * x.target for x in (known, own))
    steepness = np.zeros(0)
    if strengths.beta is not None:
        slope, own_slope = (x.difference * x.target * (1 - x.target) for x in (known, own))
        steepness = (known.difference**2 * known.target * (1 - known.target))[decided]
    per_beta = of_anchors @ (np.bincount(known.a, slope, m) - np.bincount(known.b, slope, m))
    weight = np.bincount(own.a * m + own.b, own_p * (1 - own_p), j * m).reshape(j, m)
    information = weight.sum(1) + 2 * strengths.ridge
    own_per_beta = (np.bincount(own.a, own_slope, j) + weight @ per_beta) / information
    answer = np.zeros((j + m, 2 * m + j + 1))
    share = zero / zero.sum()
    answer[:j, :m] = (weight / information[:, None] - share) @ of_anchors
    answer[:j, m : m + j] = np.diag(1 / information)
    if steepness.sum() > 0:
        answer[:j, m + j] = (own_per_beta - share @ per_beta) / steepness.sum()
    human_weight = np.where(voted, human_p * (1 - human_p), 0.0)
    of_people = np.linalg.pinv(_information(known.a, known.b, human_weight, m), hermitian=True)
    answer[j:, m + j + 1 :] = of_people - share @ of_people
    covariance = answer @ products @ answer.T
    return JointErrors(covariance[:j, :j], covariance[:j, j:], covariance[j:, j:])


def _information(a: Int, b: Int, weight: Float, m: int) -> Float:
    """(M, M) information of a Bradley-Terry fit, from the p (1 - p) of its battles."""
    met = np.bincount(a * m + b, weight, m * m).reshape(m, m)
    met += met.T
    return np.asarray(np.diag(met.sum(1)) - met)
