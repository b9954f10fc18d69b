"""Refits of one board with changed votes, many at a time: each change is a lane."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Literal, NamedTuple, Self, TypeAlias, get_args

import numpy as np
import scipy
from scipy.special import expit

from jaxeval.arrays import Bool, Float, Int, as_leaf
from jaxeval.execution.host import HostTask, is_for_host, lanes_at_once
from jaxeval.execution.lanes import LaneRun, Lanes, Task, device_mesh
from jaxeval.execution.precision import on_device, one_blas_thread
from jaxeval.execution.shapes import REFITS, padded_rows, padded_size
from jaxeval.kernels.batch import changed_boards
from jaxeval.kernels.batch.changed_boards import Change, Changed, FullBoard
from jaxeval.kernels.solve import Status, Terms
from jaxeval.lazy_names import jax
from jaxeval.ratings.boards import TOLERANCE_LOGIT, Board, battle_weights
from jaxeval.ratings.vote_groups import ClusterRows
from jaxeval.resampling.units import pad

#: Limits of chord steps and of Newton's steps. A change that leaves a model without a finite rating uses up the latter.
_CHORD_STEPS, _NEWTON_STEPS = 30, 25
#: VoteChanges of a lane, at least, and by what factor they grow: each number of them is compiled.
_FEWEST_ENTRIES, _STEP = 1024, 16
_BYTES_PER_WORD = 10
#: About how many changes an audit refits, for each model of the board.
_REFITS_OF_MODEL = 20
#: A model has passed another if it is ahead by this many logits: a hundred times the error of a refit, and 2e-5 Elo.
SWAPPED_BY = 1e-7
#: Votes that may be added to a pair of models: as many as anybody wants.
MOST_ADDED = 1e12
#: Gains that are computed at once.
_BLOCK = 2**22


class VoteChanges(NamedTuple):
    """Changes of L lanes: K entries each, of which those without weight and points are padding."""

    first: Int  # (L, K) models
    second: Int
    weight: Float  # (L, K) added to the weight of the votes between them
    points: Float  # (L, K) added to the points of the first model


@dataclass(frozen=True, eq=False)
class ChangedBoards:
    """A fitted board, ready to be refitted with changes."""

    board: Board
    run: LaneRun
    size: int = field(default=0)
    on_host: bool = False

    @classmethod
    def of(cls, board: Board, run: LaneRun) -> Self:
        """Return the changes of a board by logits, without a ridge."""
        m = len(board.theta)
        on_host = is_for_host(_REFITS_OF_MODEL * m * m**2)
        return cls(board, replace(run, advance=lambda n: None), m if on_host else padded_size(m), on_host)

    @cached_property
    def inverse(self) -> Float:
        """(M, M) pseudo-inverse of the information."""
        return self.board.inverse_information()

    @cached_property
    def _full(self) -> FullBoard:
        n, wins, inverse = (pad(x, (self.size, self.size)) for x in (*self.board.rated_tables(), self.inverse))
        return FullBoard(*(as_leaf(x, np.float64) for x in (n, wins.sum(1), inverse)))

    @cached_property
    def _placed(self) -> FullBoard:
        return on_device(self._full)

    def refit(
        self, entries: VoteChanges, start: Float, pairs: Int, which: Int, section: str
    ) -> tuple[Float, Float, Bool]:
        """Refit the lanes ``which``; the others come back as zeros that did not converge.

        Each of all L lanes has what it changes, log-strengths to ``start`` from (L, M), and two models (L, 2) whose
        difference is asked for. ``section`` names this part of the work in a checkpoint.

        Returns:
            Log-strengths (L, M); the inverse information times the difference of the two models (L, M); and which lanes
            converged (L,).
        """
        above, below = pairs.T
        starts = np.pad(start, [(0, 0), (0, self.size - start.shape[1])])
        if not self.on_host:
            n_entries = _FEWEST_ENTRIES
            while n_entries < entries.first.shape[1]:
                n_entries *= _STEP
            widths = [(0, 0), (0, n_entries - entries.first.shape[1])]
            entries = VoteChanges(*(padded_rows(np.pad(x, widths)) for x in entries))
            starts, above, below = map(padded_rows, (starts, above, below))
        first, second, weight, points = entries
        change = Change(
            as_leaf(first, np.int32), as_leaf(second, np.int32), as_leaf(weight, np.float64),
            as_leaf(points, np.float64), start=as_leaf(starts, np.float64), above=as_leaf(above, np.int32),
            below=as_leaf(below, np.int32),
        )  # fmt: skip
        lanes = Lanes(np.zeros(len(start), np.int64), np.arange(len(start)))
        n = len(start)
        results = Changed(
            theta=as_leaf(np.zeros((n, self.size)), np.float64), n_steps=as_leaf(np.zeros(n), np.int32),
            status=as_leaf(np.full(n, Status.STEP_LIMIT), np.int8), grad_norm=as_leaf(np.zeros(n), np.float64),
            pull=as_leaf(np.zeros((n, self.size)), np.float64),
        )  # fmt: skip
        with one_blas_thread():
            self.run.run(self._task(change, False), lanes, which, results, f"{section}-chord")
            status = np.asarray(results.status)
            left = which[(status[which] != Status.CONVERGED) & (status[which] != Status.TOO_FEW)]
            self.run.run(self._task(change, True), lanes, left, results, f"{section}-newton")
        m = len(self.board.theta)
        return np.asarray(results.theta)[:, :m], np.asarray(results.pull)[:, :m], status == Status.CONVERGED

    def _task(self, change: Change, newton: bool) -> Task | HostTask:
        terms = Terms.of(0.0, TOLERANCE_LOGIT, _NEWTON_STEPS if newton else _CHORD_STEPS)
        if self.on_host:
            refit = partial(changed_boards.refit, self._full, change, terms, newton)
            return HostTask([refit], [lanes_at_once(self.size**2)])
        change = on_device(change)
        call = partial(changed_boards.refit_changed, self._placed, change, device_mesh(), terms, newton=newton)
        words = (5 if newton else 3) * self.size**2 + 4 * change.first.shape[-1]
        held = 2 * sum(x.nbytes for x in jax.tree.leaves((self._placed, change)))
        return Task(call, REFITS, words, lane_bytes=_BYTES_PER_WORD * words, fixed_bytes=held)


#: What is done to a vote: it is left out; its winner becomes its loser, and a tie stays; or a new one is added, which
#: one of any two rated models wins (a tie would do less).
Way: TypeAlias = Literal["dropped", "flipped", "added"]
WAYS: tuple[Way, ...] = get_args(Way)


@dataclass(frozen=True, eq=False)
class VoteMoves:
    """V moves of single votes: each changes one pair of models, and may be made as often as its ``capacity`` says."""

    way: Way
    first: Int  # (V,) models
    second: Int
    weight: Float  # (V,) what a move adds to the weight of the votes between them
    points: Float  # (V,) what a move adds to the points of the first model
    target: Float  # (V,) the first model's result, of a flipped vote before that
    capacity: Float  # (V,)
    fixed: bool = field(default=False, init=False)  # whether gains are those at the full board all the way

    @classmethod
    def of(cls, board: Board, way: Way) -> Self:
        """Return all moves of a kind on a board; votes of models without a finite rating count for nothing."""
        if way == "added":
            rated = np.flatnonzero(board.active)
            winner, loser = (x.reshape(-1) for x in np.meshgrid(rated, rated, indexing="ij"))
            other = winner != loser
            one = np.ones(int(other.sum()))
            winner, loser = winner[other], loser[other]
            return cls(way, first=winner, second=loser, weight=one, points=one, target=one, capacity=one * MOST_ADDED)
        cells = board.cells
        weight = battle_weights(board, cells)
        kept = weight > 0
        flipped = way == "flipped"
        if flipped:
            kept &= cells.target != 0.5
        first, second = (x[cells.pair[kept]].astype(np.int64) for x in (cells.first, cells.second))
        weight, target, capacity = weight[kept], cells.target[kept], cells.count[kept].astype(float)
        return cls(
            way, first=first, second=second, weight=np.zeros(len(weight)) if flipped else -weight,
            points=weight * (1 - 2 * target) if flipped else -weight * target, target=target, capacity=capacity,
        )  # fmt: skip

    @property
    def width(self) -> int:
        """Numbers that the gains of a lane take."""
        return len(self.first)

    def gains(self, theta: Float, pull: Float, at: Int | None = None) -> Float:
        """Return how much each move closes each lane's gap, to first order: (L, V), or (L, K) of moves ``at`` (L, K).

        ``theta`` is (M,) or (L, M) log-strengths, ``pull`` (L, M) the inverse information times above less below.
        """
        if at is None:
            expected = expit(theta[self.first] - theta[self.second])
            score = self.points - self.weight * expected
            return (pull[:, self.second] - pull[:, self.first]) * score
        i, j = self.first[at], self.second[at]
        expected = expit(np.take_along_axis(theta, i, 1) - np.take_along_axis(theta, j, 1))
        toward = np.take_along_axis(pull, j, 1) - np.take_along_axis(pull, i, 1)
        return toward * (self.points[at] - self.weight[at] * expected)

    def entries(self, at: Int, times: Float) -> VoteChanges:
        """Return what the moves ``at`` (L, K) change, each made so many ``times`` (L, K)."""
        return VoteChanges(self.first[at], self.second[at], self.weight[at] * times, self.points[at] * times)


@dataclass(frozen=True, eq=False)
class VoterMoves:
    """Moves of voters: all votes of one are dropped."""

    votes: VoteMoves  # of every cell, dropped
    times: scipy.sparse.csr_array  # (V, C) votes of each voter
    capacity: Float
    fixed: bool = field(default=True, init=False)

    @classmethod
    def of(cls, board: Board, voters: ClusterRows) -> Self:
        """Return the voters of a board; unrated models' votes count for nothing."""
        counts = battle_weights(board, board.cells) > 0
        shape = len(voters.size), len(counts)
        times = scipy.sparse.csr_array((voters.times.astype(float), (voters.cluster, voters.cell)), shape)[:, counts]
        return cls(VoteMoves.of(board, "dropped"), times, np.ones(shape[0]))

    @property
    def width(self) -> int:
        """As of `VoteMoves`: those of the cells, and of the voters."""
        return sum(self.times.shape)

    def gains(self, theta: Float, pull: Float, at: Int | None = None) -> Float:
        """Sum the gains of each voter's votes, as `VoteMoves` gives them."""
        if at is not None:
            raise NotImplementedError("gains of voters are those at the full board")
        return np.asarray((self.times @ self.votes.gains(theta, pull).T).T)

    def entries(self, at: Int, times: Float) -> VoteChanges:
        """Return the changes of `VoteMoves`: the cells of all voters of a lane, summed."""
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


Moves: TypeAlias = VoteMoves | VoterMoves


def most_promising(moves: Moves, theta: Float, pull: Float, n: int) -> tuple[Int, Float]:
    """Return the ``n`` moves of most gain for each of L lanes, best first, and their gains: (L, K) each."""
    chosen = []
    n = min(n, len(moves.capacity))
    for some in np.array_split(pull, max(len(pull) * moves.width // _BLOCK, 1)):
        gains = moves.gains(theta, some)
        best = np.argpartition(-gains, n - 1, 1)[:, :n] if n < gains.shape[1] else np.argsort(-gains, 1)
        largest = np.take_along_axis(gains, best, 1)
        order = np.argsort(-largest, 1, kind="stable")
        chosen.append((np.take_along_axis(best, order, 1), np.take_along_axis(largest, order, 1)))
    at, gain = (np.concatenate(parts) for parts in zip(*chosen, strict=True))
    return at, gain
