"""Votes by pair of rated models, beside what a fitted board expects of them, and triads of pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from jaxeval.arrays import Bool, Float, Int
from jaxeval.execution.elementwise import evaluate, evaluate_compiled
from jaxeval.kernels import misfit, tie_models
from jaxeval.kernels.tie_models import Response
from jaxeval.ratings.boards import battle_weights
from jaxeval.ratings.contextual_boards import ContextualBoard, Likelihood

#: Models, those with most votes, whose triads are looked at.
MOST_IN_TRIADS = 100
#: Votes of each pair of a triad, below which its log-odds say too little.
FEWEST_IN_TRIADS = 20
_FAR = 60.0  # logarithm of odds


class PairVotes(NamedTuple):
    """The votes of P pairs; those with a model that has no rating count as none."""

    first: Int  # (P,) lower model
    second: Int  # (P,)
    n: Float  # (P,) weight of the votes
    votes: Float  # (P,) votes, whatever their weight
    points: Float  # (P,) weight times target of the first model
    ties: Float  # (P,)
    expected: Float  # (P,) of the points
    variance: Float  # (P,) of the points, if votes are independent

    @property
    def met(self) -> Bool:
        """(P,)."""
        return self.votes > 0

    @property
    def pearson(self) -> Float:
        """(P,) parts of X2."""
        squares = (self.points - self.expected) ** 2
        return np.where(self.met, squares / np.where(self.variance > 0, self.variance, 1.0), 0.0)


class ExpectedResults(NamedTuple):
    """Expected result of a vote of each of C cells, by a fitted board, and how it moves with P parameters."""

    expected: Float  # (C,)
    slopes: scipy.sparse.csr_array  # (C, P)


def responses(fitted: Likelihood) -> ExpectedResults:
    """Return the expected results of the cells of a ``fitted`` board."""
    cells, board = fitted.board.cells, fitted.board
    if isinstance(fitted, ContextualBoard):
        _, z, t = fitted.predictors()
        expected, of_z, of_t = evaluate_compiled(tie_models.expected_slopes, fitted.response, z, t)
        slopes = [fitted.slopes * of_z[:, None], scipy.sparse.csr_array(of_t[:, None])]
        return ExpectedResults(expected, scipy.sparse.csr_array(scipy.sparse.hstack(slopes)))
    difference = (board.theta[cells.first] - board.theta[cells.second])[cells.pair]
    response = Response(tie_models.TieModel.HALF, board.link)
    expected, of_z, _ = evaluate_compiled(tie_models.expected_slopes, response, difference, 0.0)
    rows = np.arange(0, 2 * len(expected) + 1, 2)
    models = np.stack([cells.first, cells.second], 1)[cells.pair].ravel()
    values = np.stack([of_z, -of_z], 1).ravel()
    return ExpectedResults(expected, scipy.sparse.csr_array((values, models, rows), (len(expected), len(board.theta))))


def pair_votes(fitted: Likelihood, expected: Float) -> PairVotes:
    """Return votes of a ``fitted`` board by pair, with the ``expected`` results of its cells (C,).

    The variance of votes for a win, a tie or a loss is that of two results, less a quarter of the pair's own share of
    ties. With other targets the variance of all pairs has one factor, by which the residuals are smaller.
    """
    cells, p = fitted.board.cells, len(fitted.board.cells.first)
    weight = battle_weights(fitted.board, cells)
    rated = cells.count.astype(float) * (weight > 0)

    def by_pair(x: Float) -> Float:
        return np.asarray(np.bincount(cells.pair, x, p), np.float64)

    votes, tied = by_pair(rated), by_pair(rated * (cells.target == 0.5))
    squares = rated * weight**2
    spread = by_pair(squares * expected * (1 - expected))
    points = by_pair(rated * weight * expected)
    if np.isin(cells.target, (0.0, 0.5, 1.0)).all():
        total = by_pair(rated * weight)
        share = points / np.where(total > 0, total, 1.0)
        odds = tie_odds(share, votes, tied)
        spread = spread - by_pair(squares) * evaluate(misfit.shares_of_ties, share, votes, tied, odds) / 4
    elif spread.sum() > 0:
        spread = spread * (squares @ (cells.target - expected) ** 2) / spread.sum()
    return PairVotes(
        first=cells.first.astype(np.int64),
        second=cells.second.astype(np.int64),
        n=by_pair(rated * weight),
        votes=votes,
        points=by_pair(rated * weight * cells.target),
        ties=tied,
        expected=points,
        variance=spread,
    )


def tie_odds(expected: Float, n: Float, ties: Float) -> float:
    """The odds of Davidson's model that expect as many ``ties`` in all as there were, at ``expected`` shares (P,)."""
    total = float(ties.sum())

    def more(log_odds: float) -> float:
        return float(n @ evaluate(misfit.tie_share, expected, np.exp(log_odds)) - total)

    # Where there are no ties, or nothing else, the odds are nearly zero, or large.
    ends = [-_FAR, _FAR]
    at_ends = [more(end) for end in ends]
    if at_ends[0] >= 0 or at_ends[1] <= 0:
        return float(np.exp(ends[0] if at_ends[0] >= 0 else ends[1]))
    return float(np.exp(scipy.optimize.brentq(more, *ends)))


def triads_of(votes: PairVotes, n_models: int) -> Int:
    """Return (3, T) the pairs of (i, j), (j, k) and (i, k) of the triads i < j < k with enough votes."""
    enough = votes.votes >= FEWEST_IN_TRIADS
    of_model = np.bincount(votes.first, votes.votes, n_models) + np.bincount(votes.second, votes.votes, n_models)
    chosen = np.sort(np.argsort(-of_model, kind="stable")[:MOST_IN_TRIADS])
    place = np.full(n_models, -1)
    place[chosen] = np.arange(len(chosen))
    pairs = np.flatnonzero(enough & (place[votes.first] >= 0) & (place[votes.second] >= 0))
    pair = np.full((len(chosen), len(chosen)), -1)
    pair[place[votes.first[pairs]], place[votes.second[pairs]]] = pairs
    there = pair >= 0
    i, j, k = np.nonzero(there[:, :, None] & there[None, :, :] & there[:, None, :])
    return np.stack([pair[i, j], pair[j, k], pair[i, k]])
