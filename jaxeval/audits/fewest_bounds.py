r"""How many changed votes surely do not swap two models: a bound that is proved, without a search.

Let theta maximise the log-likelihood, H be its information, and let the models of a pair differ by e' theta = g > 0.
Change a set D of votes. The score at theta then is -s, s being the sum over D of s_v x_v: x_v is +1 and -1 for the
models of a vote, and s_v = w (y - P) where the vote is dropped, w (2 y - 1) where it is flipped, w (P - y) where it is
added. The new estimate is theta + d with A d = -s. A is the information of the changed votes, averaged on the way from
theta to theta + d. Let no two models that met move against each other by more than epsilon on that way. The slope of
the logarithm of P (1 - P) is between -1 and 1, so that

    phi H - l H <= A <= psi H + l' H,    phi = (1 - exp(-epsilon)) / epsilon,    psi = (exp(epsilon) - 1) / epsilon,

where l is the sum of P (1 - P) x_v' H^-1 x_v over dropped votes (times psi, and with at most 1/4 for P (1 - P)), and l'
the sum of x_v' H^-1 x_v / 4 over added ones. Write 1 / b <= B <= 1 / a for the eigenvalues of B = H^1/2 A^-1 H^1/2,
m for the mean of both ends and h for half their distance. So for every f, such as e,

    |f' d - m f' H^-1 s| <= h sqrt(f' H^-1 f) sqrt(s' H^-1 s) <= h sqrt(f' H^-1 f) sum_D |s_v| sqrt(x_v' H^-1 x_v).

That bounds what D does to the gap by a sum over its votes: k votes do no more than the k largest terms. The same bound
for all f of models that met is a function T(epsilon). Where T(epsilon) < epsilon, epsilon holds: take D away little by
little; the estimate moves without jumps from d = 0, and no two models can come to be exactly epsilon apart.

Models with a handful of votes would spoil T. So the bound is also taken without some of them: their strengths are
maximised out. What is left of their votes is a concave function of the others' strengths, whatever happens to these
votes. So its information only adds to H, by at most w / 4 for an opponent; and its score changes by at most w for each
of their votes (w + |s_v| where it may be flipped). That goes to s, and is counted in full for all of these votes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from jaxeval.arrays import Bool, Float, Int
from jaxeval.audits.vote_moves import MOST_ADDED, SWAPPED_BY, VoteMoves, Way
from jaxeval.ratings.boards import Board, battle_weights

#: Models with fewer votes may be maximised out.
_FEW_VOTES = (0, 5, 30, 150)
#: Logits beyond which no epsilon is tried, the factor by which it grows, and the most changed votes of a bound.
_LARGEST, _GROWTH, _MOST_VOTES = 2.0, 1.001, 1000
#: Terms of a pair that are looked at one by one; all others are taken as equal to the next.
_TERMS = 2048
_BLOCK = 2**22


def surely_needed(board: Board, inverse: Float, moves: VoteMoves, pairs: Int) -> Float:
    """(T,) the fewest changed votes that are not ruled out for each of the ``pairs`` (T, 2): 1 or more.

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
        problem = _Problem.of(board, inverse, core, moves)
        if problem is not None:
            least[inside] = np.maximum(least[inside], _needed(problem, board.theta, pairs[inside]))
    return least


class _Problem(NamedTuple):
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
    def of(cls, board: Board, inverse: Float, core: Bool, moves: VoteMoves) -> _Problem | None:
        """None where the votes of the ``core`` do not connect it, or where one changed vote is too much already."""
        cells, theta = board.cells, board.theta
        i, j = (x[cells.pair].astype(np.int64) for x in (cells.first, cells.second))
        weight = battle_weights(board, cells) * cells.count
        within = core[i] & core[j] & (weight > 0)
        across = (core[i] != core[j]) & (weight > 0)
        if across.any():
            if not _connected(core, i[within], j[within]):
                return None
            inverse = _inverse_within(core, i[within], j[within], weight[within], theta)
        variance = np.diag(inverse)
        opponent = np.where(core[i], i, j)[across]
        residual = np.abs(cells.target - expit(theta[i] - theta[j])) if moves.way is Way.FLIPPED else np.zeros(len(i))
        always = (weight * (1 + residual))[across]

        kept = core[moves.first] & core[moves.second]
        first, second, capacity = moves.first[kept], moves.second[kept], moves.capacity[kept]
        chance = expit(theta[first] - theta[second])
        own = np.abs(moves.weight[kept])
        score = moves.weight[kept] * chance - moves.points[kept]
        length = _distance(inverse, first, second)
        bent, most = own * chance * (1 - chance) * length, own * length / 4
        spread, reach = np.abs(score) * _spread(inverse, core, first, second), np.zeros(len(first))
        size = np.abs(score) * np.sqrt(length)
        if moves.way is Way.ADDED and across.any():  # such votes may be added, too
            more = np.flatnonzero(core)
            none = np.zeros(len(more))
            first, second = np.append(first, more), np.append(second, more)
            score, reach = np.append(score, none), np.append(reach, none + 1)
            capacity = np.append(capacity, none + MOST_ADDED)
            spread = np.append(spread, _spread(inverse, core, more))
            size = np.append(size, np.sqrt(variance[more]))
            most = np.append(most, variance[more] / 4)
        own_spread = float(always @ _spread(inverse, core, opponent)), float(always @ np.sqrt(variance[opponent]))
        sums = [_running_sums(x, capacity, _MOST_VOTES) for x in (spread, size)]
        sums = [x + y for x, y in zip(sums, own_spread, strict=True)]
        lost, gained = np.zeros((2, _MOST_VOTES)), np.zeros(_MOST_VOTES)
        if moves.way is Way.DROPPED:
            lost = np.stack([_running_sums(x, capacity, _MOST_VOTES) for x in (bent, most)])
        elif moves.way is Way.ADDED:
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
        """(T, V) by how much a vote of each term closes the gaps at first order, at most."""
        toward = (pull[:, self.first] - pull[:, self.second]) * self.score
        if not self.reach.any():
            return toward
        return toward + np.abs(pull - _centre(pull))[:, self.first] * self.reach


def _needed(problem: _Problem, theta: Float, pairs: Int) -> Float:
    """(T,) one more than the most changed votes that surely do not swap the pairs."""
    found = []
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
        found.append(low + 1.0)
    return np.concatenate(found)


def _limits(first: Float, second: Float, lost: Float, gained: Float) -> tuple[Float, Float]:
    """M and h for 1 to K changed votes, as far as an epsilon holds: T(epsilon) = m ``first`` + h ``second``.

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


def _connected(core: Bool, i: Int, j: Int) -> bool:
    """Whether votes between ``i`` and ``j`` connect the models of the ``core``."""
    m = len(core)
    graph = coo_array((np.ones(len(i)), (i, j)), (m, m))
    return len(np.unique(connected_components(graph, directed=False)[1][core])) == 1


def _inverse_within(core: Bool, i: Int, j: Int, weight: Float, theta: Float) -> Float:
    """(M, M) pseudo-inverse of the information of some votes of the ``core``, 0 for other models."""
    m = len(core)
    chance = expit(theta[i] - theta[j])
    table = coo_array((weight * chance * (1 - chance), (i, j)), (m, m)).toarray()
    table += table.T
    own = np.ix_(core, core)
    inverse = np.zeros((m, m))
    inverse[own] = np.linalg.pinv((np.diag(table.sum(1)) - table)[own], hermitian=True)
    return inverse


def _distance(inverse: Float, i: Int, j: Int) -> Float:
    """Variance of the difference of models ``i`` and ``j``."""
    variance = np.diag(inverse)
    return np.maximum(variance[i] + variance[j] - 2 * inverse[i, j], 0.0)


def _spread(inverse: Float, core: Bool, first: Int, second: Int | None = None) -> Float:
    """(V,) the largest |f' H^-1 x_v| for a difference f of two models of the ``core``."""
    own = inverse[:, core]
    if second is None:
        return np.ptp(own, 1)[first] if len(first) else np.zeros(0)
    pairs, which = np.unique(first * len(inverse) + second, return_inverse=True)
    i, j = np.divmod(pairs, len(inverse))
    blocks = np.array_split(np.arange(len(pairs)), max(len(pairs) * own.shape[1] // _BLOCK, 1))
    return np.concatenate([np.ptp(own[i[some]] - own[j[some]], 1) for some in blocks])[which]


def _centre(pull: Float) -> Float:
    """(T, 1) the middle of the pulls of a lane: scores of votes with models outside the core sum to 0."""
    return (pull.max(1, keepdims=True) + pull.min(1, keepdims=True)) / 2


def _running_sums(terms: Float, capacity: Float, n: int) -> Float:
    """(n,) sums of the 1 to n largest of ``terms`` (V,) >= 0, each of which is there as often as its capacity."""
    order = np.argsort(-terms)[:n]
    times = np.minimum(capacity[order], n).astype(np.int64)
    each = np.repeat(terms[order], times)[:n]
    return np.cumsum(np.append(each, np.zeros(n - len(each))))


def _sum_of_largest(terms: Float, capacity: Float, number: Int) -> Float:
    """(T,) sums of the largest ``number`` (T,) of ``terms`` (T, V) that are > 0, each as often as its capacity."""
    order = np.argsort(-terms, 1)
    value, room = np.take_along_axis(terms, order, 1), np.take_along_axis(capacity, order, 1)
    before = np.cumsum(room, 1) - room
    return np.asarray((np.maximum(value, 0) * np.clip(number[:, None] - before, 0, room)).sum(1))
