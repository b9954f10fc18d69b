"""What may be done to votes: drop one, flip it, add one, or drop all votes of a voter; and what each does to a gap."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, Self

import numpy as np
import scipy
from scipy.special import expit

from jaxeval.arrays import Float, Int
from jaxeval.audits.changed_boards import Entries
from jaxeval.ratings.boards import Board, battle_weights
from jaxeval.ratings.vote_groups import ClusterRows

#: A model has passed another if it is ahead by this many logits: a hundred times the error of a refit, and 2e-5 Elo.
SWAPPED_BY = 1e-7
#: Votes that may be added to a pair of models: as many as anybody wants.
MOST_ADDED = 1e12
#: Gains that are computed at once.
_BLOCK = 2**22


class Way(StrEnum):
    """What is done to a vote."""

    DROPPED = "dropped"
    "It is left out."
    FLIPPED = "flipped"
    "Its winner becomes its loser; a tie has none."
    ADDED = "added"
    "A vote between any two rated models, which one of them wins. A tie would do less."


class Moves(Protocol):
    """V moves, each of which may be made as often as its ``capacity`` (V,) says."""

    @property
    def capacity(self) -> Float:
        """(V,)."""
        ...

    @property
    def fixed(self) -> bool:
        """Whether gains are those at the full board all the way."""
        ...

    @property
    def width(self) -> int:
        """Numbers that the gains of a lane take."""
        ...

    def gains(self, theta: Float, pull: Float, at: Int | None = None) -> Float:
        """(L, V) how much each move closes the gap of each lane, at first order; of the moves ``at`` (L, K), (L, K).

        ``theta`` is (M,) or (L, M) log-strengths, ``pull`` (L, M) the inverse information times above less below.
        """
        ...

    def entries(self, at: Int, times: Float) -> Entries:
        """What the moves ``at`` (L, K) change, each made so many ``times`` (L, K)."""
        ...


@dataclass(frozen=True, eq=False)
class VoteMoves:
    """Moves of single votes: each changes one pair of models."""

    way: Way
    first: Int  # (V,) models
    second: Int
    weight: Float  # (V,) what a move adds to the weight of the votes between them
    points: Float  # (V,) what a move adds to the points of the first model
    target: Float  # (V,) the first model's result, of a flipped vote before that
    capacity: Float
    fixed: bool = field(default=False, init=False)

    @classmethod
    def of(cls, board: Board, way: Way) -> Self:
        """All moves of a kind on a board; votes of models without a finite rating count for nothing."""
        if way is Way.ADDED:
            rated = np.flatnonzero(board.active)
            winner, loser = (x.reshape(-1) for x in np.meshgrid(rated, rated, indexing="ij"))
            other = winner != loser
            one = np.ones(int(other.sum()))
            winner, loser = winner[other], loser[other]
            return cls(way, first=winner, second=loser, weight=one, points=one, target=one, capacity=one * MOST_ADDED)
        cells = board.cells
        weight = battle_weights(board, cells)
        kept = weight > 0
        if way is Way.FLIPPED:
            kept &= cells.target != 0.5
        first, second = (x[cells.pair[kept]].astype(np.int64) for x in (cells.first, cells.second))
        weight, target, capacity = weight[kept], cells.target[kept], cells.count[kept].astype(float)
        flipped = way is Way.FLIPPED
        return cls(
            way,
            first=first,
            second=second,
            weight=np.zeros(len(weight)) if flipped else -weight,
            points=weight * (1 - 2 * target) if flipped else -weight * target,
            target=target,
            capacity=capacity,
        )

    @property
    def width(self) -> int:
        """As in `Moves`."""
        return len(self.first)

    def gains(self, theta: Float, pull: Float, at: Int | None = None) -> Float:
        """As in `Moves`."""
        if at is None:
            expected = expit(theta[self.first] - theta[self.second])
            score = self.points - self.weight * expected
            return (pull[:, self.second] - pull[:, self.first]) * score
        i, j = self.first[at], self.second[at]
        expected = expit(np.take_along_axis(theta, i, 1) - np.take_along_axis(theta, j, 1))
        toward = np.take_along_axis(pull, j, 1) - np.take_along_axis(pull, i, 1)
        return toward * (self.points[at] - self.weight[at] * expected)

    def entries(self, at: Int, times: Float) -> Entries:
        """As in `Moves`."""
        return Entries(self.first[at], self.second[at], self.weight[at] * times, self.points[at] * times)


@dataclass(frozen=True, eq=False)
class VoterMoves:
    """Moves of voters: all votes of one are dropped."""

    votes: VoteMoves  # of every cell, dropped
    times: scipy.sparse.csr_array  # (V, C) votes of each voter
    capacity: Float
    fixed: bool = field(default=True, init=False)

    @classmethod
    def of(cls, board: Board, voters: ClusterRows) -> Self:
        """The voters of a board; unrated models' votes count for nothing."""
        counts = battle_weights(board, board.cells) > 0
        shape = len(voters.size), len(counts)
        times = scipy.sparse.csr_array((voters.times.astype(float), (voters.cluster, voters.cell)), shape)[:, counts]
        return cls(VoteMoves.of(board, Way.DROPPED), times, np.ones(shape[0]))

    @property
    def width(self) -> int:
        """As in `Moves`: those of the cells, and of the voters."""
        return sum(self.times.shape)

    def gains(self, theta: Float, pull: Float, at: Int | None = None) -> Float:
        """As in `Moves`."""
        if at is not None:
            raise NotImplementedError("gains of voters are those at the full board")
        return np.asarray((self.times @ self.votes.gains(theta, pull).T).T)

    def entries(self, at: Int, times: Float) -> Entries:
        """As in `Moves`: the cells of all voters of a lane, summed."""
        lanes = np.repeat(np.arange(len(at)), at.shape[1])
        chosen = scipy.sparse.csr_array((times.reshape(-1), (lanes, at.reshape(-1))), (len(at), len(self.capacity)))
        chosen.eliminate_zeros()
        votes = scipy.sparse.csr_array(chosen @ self.times)
        n_entries = np.diff(votes.indptr)
        width = max(int(n_entries.max(initial=0)), 1)
        place = np.arange(width) < n_entries[:, None]
        cell, count = np.zeros((len(at), width), np.int64), np.zeros((len(at), width))
        cell[place], count[place] = votes.indices, votes.data
        return self.votes.entries(cell, count)


def most_promising(moves: Moves, theta: Float, pull: Float, n: int) -> tuple[Int, Float]:
    """The ``n`` moves of most gain for each of L lanes, best first, and their gains: (L, K) each."""
    found = []
    n = min(n, len(moves.capacity))
    for some in np.array_split(pull, max(len(pull) * moves.width // _BLOCK, 1)):
        gains = moves.gains(theta, some)
        best = np.argpartition(-gains, n - 1, 1)[:, :n] if n < gains.shape[1] else np.argsort(-gains, 1)
        own = np.take_along_axis(gains, best, 1)
        order = np.argsort(-own, 1, kind="stable")
        found.append((np.take_along_axis(best, order, 1), np.take_along_axis(own, order, 1)))
    at, gain = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return at, gain
