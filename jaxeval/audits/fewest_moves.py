"""The fewest moves that swap two models: chosen by their influence, counted by exact refits.

Each lane is a pair of models and a kind of move. A lane takes the moves of most influence, half as many as the first
order asks for, is refitted, and looks again from there. Once a refit has swapped the models, the number is between the
last refit that had not and this one, and the lane closes in. So every number is that of a refit that did swap them, and
an upper bound: other moves might do with fewer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxeval.arrays import Float, Int
from jaxeval.audits.changed_boards import ChangedBoards, Refitted
from jaxeval.audits.vote_moves import SWAPPED_BY, Moves, most_promising

#: Rounds of half steps; the others take all that the first order asks for.
_HALVES = 3
_MOST_ROUNDS = 60
#: Moves that a lane chooses from.
_FEWEST_CANDIDATES, _MOST_CANDIDATES = 64, 4096


class FewestMoves(NamedTuple):
    """What was found for T lanes."""

    number: Float  # (T,) moves after which the models are swapped; NaN where none were found
    move: Int  # (T, K) the moves that were chosen from,
    times: Float  # (T, K) and how often each is made


def fewest_moves(boards: ChangedBoards, moves: Moves, pairs: Int, section: str) -> FewestMoves:
    """The fewest ``moves`` found that put the second model of each of T ``pairs`` (T, 2) ahead of the first.

    ``section`` names the refits in a checkpoint.
    """
    if len(moves.capacity) == 0:  # such as ties, which are not flipped
        nothing = np.zeros((len(pairs), 0))
        return FewestMoves(np.full(len(pairs), np.nan), nothing.astype(np.int64), nothing)
    theta = boards.board.theta
    pull = boards.inverse[pairs[:, 0]] - boards.inverse[pairs[:, 1]]
    gap = theta[pairs[:, 0]] - theta[pairs[:, 1]]
    at, gain = most_promising(moves, theta, pull, _MOST_CANDIDATES)
    capacity = moves.capacity[at]
    used = (np.cumsum(capacity, 1) < 2 * _needed(gain, capacity, gap)[:, None]).sum(1).max(initial=0) + 1
    n = min(max(2 * int(used), _FEWEST_CANDIDATES), at.shape[1])
    lanes = _Lanes(at[:, :n], gain[:, :n], capacity[:, :n], gap, np.tile(theta, (len(pairs), 1)), pull, moves.fixed)
    for number in range(_MOST_ROUNDS):
        open_ = lanes.take(half=number < _HALVES)
        if len(open_) == 0:
            break
        entries = moves.entries(lanes.at, lanes.trial)
        found = boards.refit(entries, lanes.theta, pairs, open_, f"{section}-{number}")
        own = np.arange(len(pairs))
        lanes.look(open_, found.theta[own, pairs[:, 0]] - found.theta[own, pairs[:, 1]], found, moves)
    return FewestMoves(np.where(np.isfinite(lanes.high), lanes.high, np.nan), lanes.at, lanes.best)


def _needed(gain: Float, capacity: Float, gap: Float) -> Float:
    """(T,) moves that close the gaps at first order, the best first: whole ones, infinite where all do not."""
    worth = gain > 0
    room = np.where(worth, capacity, 0.0)
    closed = np.cumsum(np.where(worth, gain, 0.0) * room, 1)
    reached = closed > gap[:, None]
    k = np.argmax(reached, 1)
    own = np.arange(len(gap))
    before = np.where(k > 0, closed[own, k - 1], 0.0)
    taken = np.where(k > 0, np.cumsum(room, 1)[own, k - 1], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        more = np.floor((gap - before) / gain[own, k]) + 1
    return np.where(reached.any(1), taken + more, np.inf)


class _Lanes:
    """Where the search stands: ``low`` moves that do not swap the models yet, and ``high`` ones that do."""

    def __init__(
        self, at: Int, gain: Float, capacity: Float, gap: Float, theta: Float, pull: Float, fixed: bool
    ) -> None:
        t = len(at)
        self.at, self.gain, self.capacity, self.fixed = at, gain, capacity.copy(), fixed
        self.theta, self.pull = theta, pull  # after the moves made so far
        self.made = np.zeros(at.shape)  # (T, K) moves so far, which do not swap the models
        self.gap, self.low = gap.copy(), np.zeros(t)  # that they leave; how many they are
        self.best = np.zeros(at.shape)  # the moves that do,
        self.high, self.behind = np.full(t, np.inf), np.zeros(t)  # how many, and the gap then, which is negative
        self.longest = np.full(t, np.inf)  # so many moves at once, as more of them left a model without a rating
        self.trial, self.foremost = np.zeros(at.shape), np.zeros(t, np.int64)

    def take(self, half: bool) -> Int:
        """Choose the next moves of all lanes that are open, and return these."""
        room = np.where(self.gain > 0, self.capacity - self.made, 0.0)
        order = np.argsort(-np.where(room > 0, self.gain, -np.inf), 1, kind="stable")
        self.foremost = order[:, 0]
        room, gain = np.take_along_axis(room, order, 1), np.take_along_axis(self.gain, order, 1)
        total, needed = room.sum(1), _needed(gain, room, self.gap)
        step = np.where(np.isfinite(needed), needed, total)
        step = np.ceil(step / 2) if half else step
        known = np.isfinite(self.high)
        most = np.where(known, self.high, 0.0) - self.low
        share = self.gap / np.where(known, self.gap - self.behind, 1.0)  # of the way, on which the gap closes
        step = np.where(known, np.ceil(most * share), step)
        most = np.where(known, most - 1, np.inf)
        step = np.minimum(np.maximum(step, 1), np.minimum(np.minimum(most, total), self.longest))
        taken = np.clip(step[:, None] - (np.cumsum(room, 1) - room), 0, room)
        np.put_along_axis(self.trial, order, np.take_along_axis(self.made, order, 1) + taken, 1)
        return np.flatnonzero(step >= 1)

    def look(self, open_: Int, gap: Float, found: Refitted, moves: Moves) -> None:
        """Take in what the refits of the lanes ``open_`` say."""
        of_open = np.zeros(len(gap), bool)
        of_open[open_] = True
        number = self.trial.sum(1)
        swapped = of_open & found.converged & (gap < -SWAPPED_BY)
        failed = of_open & ~found.converged
        ahead = of_open & ~swapped & ~failed
        self.high, self.behind = np.where(swapped, number, self.high), np.where(swapped, gap, self.behind)
        self.best[swapped] = self.trial[swapped]
        self.low, self.gap = np.where(ahead, number, self.low), np.where(ahead, gap, self.gap)
        self.made[ahead] = self.trial[ahead]
        self.theta[ahead], self.pull[ahead] = found.theta[ahead], found.pull[ahead]
        alone = np.flatnonzero(failed & (number - self.low <= 1))  # a move that may not be made now
        self.capacity[alone, self.foremost[alone]] = self.made[alone, self.foremost[alone]]
        self.longest = np.where(failed, np.maximum(np.floor((number - self.low) / 2), 1), self.longest)
        self.longest = np.where(ahead, np.inf, self.longest)
        if not self.fixed and ahead.any():
            self.gain[ahead] = moves.gains(self.theta[ahead], self.pull[ahead], self.at[ahead])
