"""How many points groups of votes give to models, beside what the fitted board expects of them.

A group is a voter, or a time. Votes for a side ("decided" ones) are compared with a board that is fitted to them alone:
a voter who calls many battles ties does not stand out for that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.data.cells import Cells, count_by
from jaxeval.ratings.boards import Board
from jaxeval.statistics.chance_sums import ChanceSums

#: Larger squares of standard scores count as 4. Odd groups must not hide behind a spread that they made themselves.
_MOST_SQUARE = 4.0
#: E min(z^2, 4) of a standard normal z.
_MEAN_SQUARE = 0.9205366
#: The variance of min(z^2, 4).
_SQUARE_VARIANCE = 1.2326
#: Groups of so much variance (about five votes) tell how far groups differ in general.
_ENOUGH_VARIANCE = 1.0
_FEWEST_TO_TELL = 30
_MOST_TASTE = 3.0


class GroupedVotes(NamedTuple):
    """Decided votes of rated models by G groups: distinct (group, cell), sorted."""

    group: NDArray[np.intp]  # (E,)
    first: NDArray[np.int32]  # (E,) model of lower index
    second: NDArray[np.int32]  # (E,)
    won: Float  # (E,) 1 where `first` won, else 0
    logit: Float  # (E,) difference of the fitted log-strengths
    times: Float  # (E,) votes
    n_groups: int

    @classmethod
    def of(cls, cells: Cells, board: Board, group: Int, cell: Int, times: Int | None, n_groups: int) -> GroupedVotes:
        """Those of rows of ``group`` (R,), -1 for none, and ``cell`` (R,), which stand for ``times`` votes each."""
        decided = (cells.target == 0) | (cells.target == 1)
        rated = board.active[cells.first] & board.active[cells.second]
        usable = decided & rated[cells.pair]
        own = (group >= 0) & usable[cell]
        keys, row = np.unique(group[own].astype(np.int64) * len(usable) + cell[own], return_inverse=True)
        found, cell = np.divmod(keys, len(usable))
        pair = cells.pair[cell]
        first, second = cells.first[pair], cells.second[pair]
        return cls(
            group=found,
            first=first,
            second=second,
            won=cells.target[cell],
            logit=board.theta[first] - board.theta[second],
            times=count_by(row, None if times is None else times[own], len(keys)).astype(float),
            n_groups=n_groups,
        )

    def take(self, which: Bool) -> GroupedVotes:
        """The votes of the groups ``which`` (G,), numbered anew."""
        number = np.cumsum(which) - 1
        own = which[self.group]
        return GroupedVotes(
            group=number[self.group[own]],
            first=self.first[own],
            second=self.second[own],
            won=self.won[own],
            logit=self.logit[own],
            times=self.times[own],
            n_groups=int(which.sum()),
        )

    @property
    def sizes(self) -> Float:
        """(G,) votes of each group."""
        return np.asarray(np.bincount(self.group, self.times, self.n_groups))

    @property
    def spread(self) -> Float:
        """(E,) p (1 - p) of one vote."""
        p = scipy.special.expit(self.logit)
        return np.asarray(p * (1 - p))


class Taste(NamedTuple):
    """How far groups differ in what they like."""

    logit: float  # standard deviation of a group's liking of a model
    z: float  # standard errors by which it is above 0, as if the points of a group for two models were independent


class Points(NamedTuple):
    """Points of (group, model), a row for each that met, sorted."""

    group: NDArray[np.intp]  # (K,)
    model: NDArray[np.intp]  # (K,)
    n: Float  # (K,) votes
    points: Float  # (K,) of them for the model
    expected: Float  # (K,)
    variance: Float  # (K,) of the points, if the group votes as the board does
    taste_variance: Float  # (K,) added to it for every squared logit by which groups differ in what they like
    third: Float  # (K,) third cumulant of the points, as `variance`
    fourth: Float  # (K,) fourth cumulant of the points
    p_plain: Float  # (K,) of two sides, of groups that do not differ; NaN for groups that were not asked for

    @property
    def excess(self) -> Float:
        """(K,) points above the expected ones."""
        return self.points - self.expected

    def taste(self) -> Taste:
        """By how many logits the groups' likings of a model differ: standard deviation, robust to a few odd groups.

        It is the s with which the mean of min(z^2, 4) is that of a normal z, where z^2 = excess^2 / (variance + s^2
        taste variance), over all rows with a variance of 1 or more. It is 0 if fewer than 30 rows have one.
        """
        told = self.variance >= _ENOUGH_VARIANCE
        if told.sum() < _FEWEST_TO_TELL:
            return Taste(0.0, 0.0)
        square, own, more = self.excess[told] ** 2, self.variance[told], self.taste_variance[told]

        def surplus(s: float) -> float:
            return float(np.minimum(square / (own + s**2 * more), _MOST_SQUARE).mean() - _MEAN_SQUARE)

        z = surplus(0.0) / np.sqrt(_SQUARE_VARIANCE / told.sum())
        if z <= 0:
            return Taste(0.0, float(z))
        most = surplus(_MOST_TASTE) > 0
        return Taste(_MOST_TASTE if most else float(scipy.optimize.brentq(surplus, 0.0, _MOST_TASTE)), float(z))

    def p_values(self, taste: float) -> Float:
        """(K,) p-values of two sides, of groups that differ by ``taste`` (logits) in what they like."""
        return widened(self.p_plain / 2, self.variance, taste**2 * self.taste_variance, sides=2)


def points_of(votes: GroupedVotes, asked: Bool, n_models: int) -> Points:
    """The points that every group gives to every model; p-values for the groups ``asked`` (G,) only."""
    p = scipy.special.expit(votes.logit)
    sides = np.concatenate([votes.first, votes.second]).astype(np.int64)
    keys, row = np.unique(np.tile(votes.group, 2).astype(np.int64) * n_models + sides, return_inverse=True)
    group, model = np.divmod(keys, n_models)
    times, probability = np.tile(votes.times, 2), np.concatenate([p, 1 - p])
    spread = probability * (1 - probability)
    sums = ChanceSums(row, probability, np.ones(len(row)), times, len(keys))
    points = sums.total(np.concatenate([votes.won, 1 - votes.won]))
    variance = sums.variance
    of_pair = _squares_by_pair(votes, times * spread, row, len(keys))
    p_plain = np.full(len(keys), np.nan)
    own = asked[group]
    p_plain[own] = sums.take(own).p_values(points[own])
    return Points(
        group=group,
        model=model,
        n=sums.total(np.ones(len(row))),
        points=points,
        expected=sums.mean,
        variance=variance,
        taste_variance=variance**2 + of_pair,
        third=sums.total(spread * (1 - 2 * probability)),
        fourth=sums.total(spread * (1 - 6 * spread)),
        p_plain=p_plain,
    )


def _squares_by_pair(votes: GroupedVotes, variance: Float, row: NDArray[np.intp], n_rows: int) -> Float:
    """(K,) sums over the opponents of (group, model) of the squared variance of the votes between both."""
    # Votes are sorted by group and cell, so that those of a group and pair are neighbours.
    changes = np.diff(votes.group) | np.diff(votes.first) | np.diff(votes.second)
    block = np.concatenate([[0], np.cumsum(changes != 0)]) if len(votes.group) else np.zeros(0, np.intp)
    n = len(block)
    of_block = np.bincount(block, variance[:n])
    starts = np.flatnonzero(np.diff(block, prepend=-1))
    squares = of_block**2
    return np.asarray(np.bincount(row[starts], squares, n_rows) + np.bincount(row[n + starts], squares, n_rows))


def widened(tail: Float, variance: Float, more: Float, sides: int = 1) -> Float:
    """p-values from tails (K,) of sums with a ``variance``, if the sums vary by as much ``more``."""
    z = scipy.special.ndtri(np.clip(tail, 1e-300, 1.0))
    narrower = np.sqrt(variance / np.maximum(variance + more, 1e-300))
    p = np.where(z < 0, sides * scipy.special.ndtr(z * narrower), sides * tail)
    return np.asarray(np.minimum(p, 1.0))


class Preference(NamedTuple):
    """How far each of G groups prefers the models that the board rates higher."""

    agreement: Float  # (G,) share of votes for the higher rated model
    expected: Float  # (G,) the same, of a group that votes as the board does
    p_honest: Float  # (G,) chance that such a group prefers them so little


def preference(votes: GroupedVotes, taste: float, n_models: int) -> Preference:
    """A vote for the higher rated model adds the difference of log-strengths: the best test of coins against the board.

    ``taste``: logits by which groups differ in what they like, as in `Points.taste`.
    """
    gap, higher = np.abs(votes.logit), np.where(votes.logit >= 0, votes.won, 1 - votes.won)
    likely = scipy.special.expit(gap)
    own = ChanceSums(votes.group, likely, gap, votes.times, votes.n_groups)
    by_model = np.concatenate([votes.first, votes.second]).astype(np.int64)
    keys, row = np.unique(np.tile(votes.group, 2).astype(np.int64) * n_models + by_model, return_inverse=True)
    moved = votes.times * votes.spread * votes.logit
    slope = np.bincount(row, np.concatenate([moved, -moved]), len(keys))
    more = np.asarray(taste**2 * np.bincount(keys // n_models, slope**2, votes.n_groups), np.float64)
    n = np.maximum(votes.sizes, 1)
    return Preference(
        agreement=own.total(higher) / n,
        expected=own.total(likely) / n,
        p_honest=widened(own.tail(own.total(gap * higher), np.zeros(len(n), bool), whole=False), own.variance, more),
    )


def beside_coins(votes: GroupedVotes) -> tuple[Float, Float]:
    """(G,) chances that coins prefer higher rated models as little as each group, or less; and as much, or more."""
    gap, higher = np.abs(votes.logit), np.where(votes.logit >= 0, votes.won, 1 - votes.won)
    coins = ChanceSums(votes.group, np.full(len(gap), 0.5), gap, votes.times, votes.n_groups)
    observed, above = coins.total(gap * higher), np.ones(votes.n_groups, bool)
    return coins.tail(observed, ~above, whole=False), coins.tail(observed, above, whole=False)
