"""The fewest moves that swap two models: chosen by their influence, counted by exact refits.

Each lane is a pair of models and a kind of move. A lane takes the moves of most influence, half as many as the first
order asks for, is refitted, and looks again from there. Once a refit has swapped the models, the number is between the
last refit that had not and this one, and the lane closes in. So every number is that of a refit that did swap them, and
an upper bound: other moves might do with fewer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from jaxeval.arrays import Bool, Float, Int
from jaxeval.audits.changed_boards import MOST_ADDED, SWAPPED_BY, ChangedBoards, Moves, VoteMoves, most_promising
from jaxeval.ratings.boards import Board, battle_weights

#: Rounds of half steps; the others take all that the first order asks for.
_HALVES = 3
_MOST_ROUNDS = 60
#: Moves that a lane chooses from.
_FEWEST_CANDIDATES, _MOST_CANDIDATES = 64, 4096
#: Models with fewer votes may be maximised out.
_FEW_VOTES = (0, 5, 30, 150)
#: Logits beyond which no epsilon is tried, the factor by which it grows, and the most changed votes of a bound.
_LARGEST, _GROWTH, _MOST_VOTES = 2.0, 1.001, 1000
#: Terms of a pair that are looked at one by one; all others are taken as equal to the next.
_TERMS = 2048
_BLOCK = 2**22


def fewest_moves(boards: ChangedBoards, moves: Moves, pairs: Int, section: str) -> tuple[Float, Int, Float]:
    """Return the fewest ``moves`` found that put the second model of each of T ``pairs`` (T, 2) ahead of the first.

    ``section`` names the refits in a checkpoint.

    Returns:
        The number of moves (T,) after which the models are swapped, NaN where none were found; the moves (T, K) that
        were chosen from, and how often each is made (T, K).
    """
    if len(moves.capacity) == 0:  # such as ties, which are not flipped
        nothing = np.zeros((len(pairs), 0))
        return np.full(len(pairs), np.nan), nothing.astype(np.int64), nothing
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
        lanes.look(open_, pairs, *boards.refit(entries, lanes.theta, pairs, open_, f"{section}-{number}"), moves)
    return np.where(np.isfinite(lanes.high), lanes.high, np.nan), lanes.at, lanes.best


def _needed(gain: Float, capacity: Float, gap: Float) -> Float:
    """Return (T,) moves that close the gaps at first order, the best first: whole ones, infinite where all do not."""
    worth = gain > 0
    room = np.where(worth, capacity, 0.0)
    closed = np.cumsum(np.where(worth, gain, 0.0) * room, 1)
    reached = closed > gap[:, None]
    k = np.argmax(reached, 1)
    lane = np.arange(len(gap))
    before = np.where(k > 0, closed[lane, k - 1], 0.0)
    taken = np.where(k > 0, np.cumsum(room, 1)[lane, k - 1], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        more = np.floor((gap - before) / gain[lane, k]) + 1
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

    def look(self, open_: Int, pairs: Int, theta: Float, pull: Float, converged: Bool, moves: Moves) -> None:
        """Take in what the refits of the lanes ``open_`` say."""
        lane = np.arange(len(pairs))
        gap = theta[lane, pairs[:, 0]] - theta[lane, pairs[:, 1]]
        of_open = np.zeros(len(gap), bool)
        of_open[open_] = True
        number = self.trial.sum(1)
        swapped = of_open & converged & (gap < -SWAPPED_BY)
        failed = of_open & ~converged
        ahead = of_open & ~swapped & ~failed
        self.high, self.behind = np.where(swapped, number, self.high), np.where(swapped, gap, self.behind)
        self.best[swapped] = self.trial[swapped]
        self.low, self.gap = np.where(ahead, number, self.low), np.where(ahead, gap, self.gap)
        self.made[ahead] = self.trial[ahead]
        self.theta[ahead], self.pull[ahead] = theta[ahead], pull[ahead]
        alone = np.flatnonzero(failed & (number - self.low <= 1))  # a move that may not be made now
        self.capacity[alone, self.foremost[alone]] = self.made[alone, self.foremost[alone]]
        self.longest = np.where(failed, np.maximum(np.floor((number - self.low) / 2), 1), self.longest)
        self.longest = np.where(ahead, np.inf, self.longest)
        if not self.fixed and ahead.any():
            self.gain[ahead] = moves.gains(self.theta[ahead], self.pull[ahead], self.at[ahead])


def surely_needed(board: Board, inverse: Float, moves: VoteMoves, pairs: Int) -> Float:
    """Return (T,) the fewest changed votes that are not ruled out for each of the ``pairs`` (T, 2): 1 or more.

    With fewer ``moves`` the second model of a pair surely does not get ahead of the first. ``inverse`` is that of the
    board's information.
    """
    least, sizes = np.ones(len(pairs)), set()
    votes = np.bincount(board.cells.first, board.cells.battles, len(board.theta))
    votes += np.bincount(board.cells.second, board.cells.battles, len(board.theta))
    for few in _FEW_VOTES:
        core = board.active & (votes >= few)
        inside = core[pairs].all(1)
        if core.sum() in sizes or not inside.any():
            continue
        sizes.add(core.sum())
        problem = _Bound.of(board, inverse, core, moves)
        if problem is not None:
            least[inside] = np.maximum(least[inside], _needed_surely(problem, board.theta, pairs[inside]))
    return least


class _Bound(NamedTuple):
    """Terms of the votes that may be changed; those of models outside the core have one model, and any score.

    K is the number of changed votes for which the bound holds at all.
    """

    inverse: Float  # (M, M) of the information of the votes of the core, 0 for other models
    first: Int  # (V,)
    second: Int
    capacity: Float
    score: Float  # (V,) s_v, 0 with one model
    reach: Float  # (V,) the largest |s_v| with one model, else 0
    size: Float  # (V,) |s_v| times the length of its x_v by the inverse
    always: Float  # (U,) what votes with models outside may change the score of their opponents by, in any case
    opponent: Int  # (U,)
    middle: Float  # (K,) m
    half: Float  # (K,) h

    @classmethod
    def of(cls, board: Board, inverse: Float, core: Bool, moves: VoteMoves) -> _Bound | None:
        """Return a bound; None where votes of the ``core`` do not connect it, or one change is too much already."""
        cells, theta = board.cells, board.theta
        i, j = (x[cells.pair].astype(np.int64) for x in (cells.first, cells.second))
        weight = battle_weights(board, cells) * cells.count
        within = core[i] & core[j] & (weight > 0)
        across = (core[i] != core[j]) & (weight > 0)
        if across.any():
            graph = coo_array((np.ones(within.sum()), (i[within], j[within])), (len(core), len(core)))
            if len(np.unique(connected_components(graph, directed=False)[1][core])) > 1:
                return None
            inverse = _inverse_within(core, i[within], j[within], weight[within], theta)
        variance = np.diag(inverse)
        opponent = np.where(core[i], i, j)[across]
        residual = np.abs(cells.target - expit(theta[i] - theta[j])) if moves.way == "flipped" else np.zeros(len(i))
        always = (weight * (1 + residual))[across]

        kept = core[moves.first] & core[moves.second]
        first, second, capacity = moves.first[kept], moves.second[kept], moves.capacity[kept]
        chance = expit(theta[first] - theta[second])
        size_of_move = np.abs(moves.weight[kept])
        score = moves.weight[kept] * chance - moves.points[kept]
        length = _distance(inverse, first, second)
        bent, most = size_of_move * chance * (1 - chance) * length, size_of_move * length / 4
        spread, reach = np.abs(score) * _spread(inverse, core, first, second), np.zeros(len(first))
        size = np.abs(score) * np.sqrt(length)
        if moves.way == "added" and across.any():  # such votes may be added, too
            more = np.flatnonzero(core)
            none = np.zeros(len(more))
            first, second = np.append(first, more), np.append(second, more)
            score, reach = np.append(score, none), np.append(reach, none + 1)
            capacity = np.append(capacity, none + MOST_ADDED)
            spread = np.append(spread, _spread(inverse, core, more))
            size = np.append(size, np.sqrt(variance[more]))
            most = np.append(most, variance[more] / 4)
        always_spread = float(always @ _spread(inverse, core, opponent)), float(always @ np.sqrt(variance[opponent]))
        sums = [_running_sums(x, capacity, _MOST_VOTES) for x in (spread, size)]
        sums = [x + y for x, y in zip(sums, always_spread, strict=True)]
        lost, gained = np.zeros((2, _MOST_VOTES)), np.zeros(_MOST_VOTES)
        if moves.way == "dropped":
            lost = np.stack([_running_sums(x, capacity, _MOST_VOTES) for x in (bent, most)])
        elif moves.way == "added":
            gained = _running_sums(most, capacity, _MOST_VOTES)
        stiffer = float((weight[across] / 4) @ variance[opponent])
        longest = np.sqrt(_distance(inverse, i[within], j[within]).max(initial=0.0))
        middle, half = _limits(sums[0], longest * sums[1], lost, gained + stiffer)
        if len(middle) == 0:
            return None
        return cls(
            inverse=inverse, first=first, second=second, capacity=capacity, score=score, reach=reach, size=size,
            always=always, opponent=opponent, middle=middle, half=half,
        )  # fmt: skip

    def terms(self, pull: Float) -> Float:
        """Return (T, V) by how much a vote of each term closes the gaps at first order, at most."""
        toward = (pull[:, self.first] - pull[:, self.second]) * self.score
        if not self.reach.any():
            return toward
        return toward + np.abs(pull - _centre(pull))[:, self.first] * self.reach


def _needed_surely(problem: _Bound, theta: Float, pairs: Int) -> Float:
    """Return (T,) one more than the most changed votes that surely do not swap the pairs."""
    counts = []
    by_size = np.argsort(-problem.size)
    everywhere, others = by_size[:_TERMS], by_size[_TERMS:]
    for some in np.array_split(pairs, max(len(pairs) * len(problem.first) // _BLOCK, 1)):
        pull = problem.inverse[some[:, 0]] - problem.inverse[some[:, 1]]
        length = np.sqrt(_distance(problem.inverse, some[:, 0], some[:, 1]))[:, None]
        gap = theta[some[:, 0]] - theta[some[:, 1]]
        terms = problem.terms(pull)
        kept = np.tile(everywhere, (len(some), 1))
        if len(others) > _TERMS:  # the last one kept stands for all the rest
            best = np.argpartition(-terms[:, others], _TERMS, 1)[:, : _TERMS + 1]
            kept = np.append(kept, others[best], 1)
        else:
            kept = np.append(kept, np.tile(others, (len(some), 1)), 1)
        gain, size, capacity = np.take_along_axis(terms, kept, 1), problem.size[kept], problem.capacity[kept]
        if len(others) > _TERMS:
            size[:, -1], capacity[:, -1] = problem.size[others[0]], MOST_ADDED
        always = (np.abs(pull - _centre(pull))[:, problem.opponent] @ problem.always)[:, None]
        always_size = float(np.sqrt(np.diag(problem.inverse)[problem.opponent]) @ problem.always)

        low, high = np.zeros(len(some), np.int64), np.full(len(some), len(problem.middle) + 1)
        while (open_ := high - low > 1).any():
            middle = np.where(open_, (low + high) // 2, 1)
            m, h = problem.middle[middle - 1, None], problem.half[middle - 1, None] * length
            closed = _sum_of_largest(m * gain + h * size, capacity, middle) + (m * always + h * always_size)[:, 0]
            held = closed < gap - SWAPPED_BY
            low, high = np.where(open_ & held, middle, low), np.where(open_ & ~held, middle, high)
        counts.append(low + 1.0)
    return np.concatenate(counts)


def _limits(first: Float, second: Float, lost: Float, gained: Float) -> tuple[Float, Float]:
    """Return M and h for 1 to K changed votes, as far as an epsilon holds: T(epsilon) = m ``first`` + h ``second``.

    ``lost`` (2, K) is l before its factor psi, and the most that it can be; ``gained`` (K,) is l'.
    """
    middle: list[float] = []
    half: list[float] = []
    epsilon = 0.0
    for k in range(len(first)):
        while epsilon <= _LARGEST:
            phi, psi = (-np.expm1(-epsilon) / epsilon, np.expm1(epsilon) / epsilon) if epsilon else (1.0, 1.0)
            low = phi - min(psi * lost[0, k], lost[1, k])
            if low <= 0:
                return np.array(middle), np.array(half)
            m, h = (1 / low + 1 / (psi + gained[k])) / 2, (1 / low - 1 / (psi + gained[k])) / 2
            moved = m * first[k] + h * second[k]
            if moved < epsilon:
                break
            epsilon = moved * _GROWTH + 1e-12
        else:
            break
        middle.append(m)
        half.append(h)
    return np.array(middle), np.array(half)


def _inverse_within(core: Bool, i: Int, j: Int, weight: Float, theta: Float) -> Float:
    """Return (M, M) pseudo-inverse of the information of some votes of the ``core``, 0 for other models."""
    m = len(core)
    chance = expit(theta[i] - theta[j])
    table = coo_array((weight * chance * (1 - chance), (i, j)), (m, m)).toarray()
    table += table.T
    inside = np.ix_(core, core)
    inverse = np.zeros((m, m))
    inverse[inside] = np.linalg.pinv((np.diag(table.sum(1)) - table)[inside], hermitian=True)
    return inverse


def _distance(inverse: Float, i: Int, j: Int) -> Float:
    """Return the variance of the difference of models ``i`` and ``j``."""
    variance = np.diag(inverse)
    return np.maximum(variance[i] + variance[j] - 2 * inverse[i, j], 0.0)


def _spread(inverse: Float, core: Bool, first: Int, second: Int | None = None) -> Float:
    """Return (V,) the largest |f' H^-1 x_v| for a difference f of two models of the ``core``."""
    columns = inverse[:, core]
    if second is None:
        return np.ptp(columns, 1)[first] if len(first) else np.zeros(0)
    pairs, which = np.unique(first * len(inverse) + second, return_inverse=True)
    i, j = np.divmod(pairs, len(inverse))
    blocks = np.array_split(np.arange(len(pairs)), max(len(pairs) * columns.shape[1] // _BLOCK, 1))
    return np.concatenate([np.ptp(columns[i[some]] - columns[j[some]], 1) for some in blocks])[which]


def _centre(pull: Float) -> Float:
    """Return (T, 1) the middle of the pulls of a lane: scores of votes with models outside the core sum to 0."""
    return (pull.max(1, keepdims=True) + pull.min(1, keepdims=True)) / 2


def _running_sums(terms: Float, capacity: Float, n: int) -> Float:
    """Give (n,) sums of the 1 to n largest of ``terms`` (V,) >= 0, each of which is there as often as its capacity."""
    order = np.argsort(-terms)[:n]
    times = np.minimum(capacity[order], n).astype(np.int64)
    each = np.repeat(terms[order], times)[:n]
    return np.cumsum(np.append(each, np.zeros(n - len(each))))


def _sum_of_largest(terms: Float, capacity: Float, number: Int) -> Float:
    """Give (T,) sums of the largest ``number`` (T,) of ``terms`` (T, V) that are > 0, each as often as its capacity."""
    order = np.argsort(-terms, 1)
    value, room = np.take_along_axis(terms, order, 1), np.take_along_axis(capacity, order, 1)
    before = np.cumsum(room, 1) - room
    return np.asarray((np.maximum(value, 0) * np.clip(number[:, None] - before, 0, room)).sum(1))
