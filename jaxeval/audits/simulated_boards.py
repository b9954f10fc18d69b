"""Compare votes of pairs with what a fitted board expects, and with boards simulated at its strengths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import scipy

from jaxeval.arrays import Bool, Float, Int, as_leaf
from jaxeval.data.cells import Cells
from jaxeval.execution.host import HostTask, evaluate, evaluate_of_choice, fetched, is_for_host, lanes_at_once
from jaxeval.execution.lanes import LaneRun, Lanes, LaneSolver, Task, device_mesh
from jaxeval.execution.precision import in_threads, on_device, one_blas_thread
from jaxeval.execution.shapes import REFITS, padded_columns, padded_pairs, padded_size
from jaxeval.kernels import tie_models
from jaxeval.kernels.batch import changed_boards
from jaxeval.kernels.batch.changed_boards import Measures, Misfit, MisfitDesign, SimulatedLanes
from jaxeval.kernels.batch.refits import Solver
from jaxeval.kernels.solve import Terms
from jaxeval.kernels.tie_models import Response
from jaxeval.lazy_names import jax
from jaxeval.ratings.boards import Board, battle_weights, fit_boards, inverse_information
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit
from jaxeval.ratings.contextual_boards import ContextualBoard
from jaxeval.ratings.vote_groups import VoteGroups, is_secure_board, score_squares
from jaxeval.resampling.units import pad, stream_number

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


def responses(fitted: Board) -> tuple[Float, scipy.sparse.csr_array]:
    """Return what a ``fitted`` board expects of a vote of each cell (C,), and how it moves with K parameters (C, K)."""
    cells = fitted.cells
    if isinstance(fitted, ContextualBoard):
        _, z, t = fitted.predictors()
        expected, of_z, of_t = evaluate_of_choice(tie_models.expected_slopes, fitted.response, z, t)
        slopes = [fitted.slopes * of_z[:, None], scipy.sparse.csr_array(of_t[:, None])]
        return expected, scipy.sparse.csr_array(scipy.sparse.hstack(slopes))
    difference = (fitted.theta[cells.first] - fitted.theta[cells.second])[cells.pair]
    response = Response(tie_models.TieModel.HALF, fitted.link)
    expected, of_z, _ = evaluate_of_choice(tie_models.expected_slopes, response, difference, 0.0)
    rows = np.arange(0, 2 * len(expected) + 1, 2)
    models = np.stack([cells.first, cells.second], 1)[cells.pair].ravel()
    values = np.stack([of_z, -of_z], 1).ravel()
    return expected, scipy.sparse.csr_array((values, models, rows), (len(expected), len(fitted.theta)))


def pair_votes(fitted: Board) -> PairVotes:
    """Return votes of a ``fitted`` board by pair.

    The variance of votes for a win, a tie or a loss is that of two results, less a quarter of the pair's own share of
    ties. With other targets the variance of all pairs has one factor, by which the residuals are smaller.
    """
    (expected, _), cells, p = responses(fitted), fitted.cells, len(fitted.cells.first)
    weight = battle_weights(fitted, cells)
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
        spread = spread - by_pair(squares) * evaluate(changed_boards.shares_of_ties, share, votes, tied, odds) / 4
    elif spread.sum() > 0:
        spread = spread * (squares @ (cells.target - expected) ** 2) / spread.sum()
    return PairVotes(
        first=cells.first.astype(np.int64), second=cells.second.astype(np.int64), n=by_pair(rated * weight),
        votes=votes, points=by_pair(rated * weight * cells.target), ties=tied, expected=points, variance=spread,
    )  # fmt: skip


def tie_odds(expected: Float, n: Float, ties: Float) -> float:
    """Return the odds of Davidson's model that expect as many ``ties`` in all as came, at ``expected`` shares (P,)."""
    total = float(ties.sum())

    def more(log_odds: float) -> float:
        return float(n @ evaluate(changed_boards.tie_share, expected, np.exp(log_odds)) - total)

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


# A ridge that moves no rating, and gives models that win all of their simulated votes a finite one.
_RIDGE = 1e-6
_TOLERANCE_LOGIT = 1e-6
_MAX_STEPS = {Solver.CHORD: 40, Solver.NEWTON: 200}
_NAMES = {Solver.CHORD: "chord", Solver.NEWTON: "newton"}
_DRAWS_OF_A_THREAD = 2**17
# Tables that a lane works on, and bytes that it takes for each number of them.
_TABLES, _BYTES_PER_WORD = {Solver.CHORD: 2, Solver.NEWTON: 4}, 10
#: VoteChanges of the (M, M) tables of all boards in one batched call, which cost about 170 bytes each; and boards.
_TABLE_ENTRIES = 2**21
_MOST_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class SimulatedBoards:
    """B boards simulated at a fit, and their refits."""

    boards: SimulatedLanes
    secure: bool  # practically no board separates models

    def solvers(self) -> list[LaneSolver]:
        """Return chord steps where no simulated board separates models, then Newton's method."""
        every = np.ones(1, bool)
        return [
            LaneSolver(code, name, self._task(code), every & (self.secure or code == Solver.NEWTON))
            for code, name in _NAMES.items()
        ]

    @cached_property
    def _placed(self) -> SimulatedLanes:
        return on_device(self.boards)

    def _task(self, solver: Solver) -> Task | HostTask:
        design, size = self.boards.design, len(self.boards.start)
        words = _TABLES[solver] * size**2 + 3 * design.triads.shape[1] + 8 * len(design.n)
        terms = Terms.of(np.float64(_RIDGE), np.float64(_TOLERANCE_LOGIT), _MAX_STEPS[solver])
        if is_for_host(len(self.boards.wins) * size**2):
            return HostTask([partial(changed_boards.misfit_of, self.boards, solver, terms)], [lanes_at_once(size**2)])
        call = partial(changed_boards.refit_misfit, self._placed, device_mesh(), solver, terms)
        held = 2 * sum(x.nbytes for x in jax.tree.leaves(self.boards))
        return Task(call, REFITS, words, lane_bytes=_BYTES_PER_WORD * words, fixed_bytes=held)


def simulated_boards(board: Board, votes: PairVotes, triads: Int, n_resamples: int, seed: int) -> SimulatedBoards:
    """Simulate boards of as many votes for each pair as there were.

    Results have the shares that the fit expects, ties the pair's own share (see `changed_boards.shares_of_ties`).
    """
    inverse, _ = inverse_information([board])
    size = inverse.shape[-1]
    share = np.where(votes.met, votes.expected / np.where(votes.met, votes.votes, 1.0), 0.5)
    odds = tie_odds(share, votes.votes, votes.ties)
    tied = evaluate(changed_boards.shares_of_ties, share, votes.votes, votes.ties, odds)
    variance = share * (1 - share) - tied / 4
    weight = votes.votes * (share * (1 - share)) ** 2 / np.where(variance > 0, variance, np.inf)
    q, n_pairs = len(share), padded_pairs(len(share) + 1, size)
    position = np.full((size, size), n_pairs - 1)
    position[votes.first, votes.second] = position[votes.second, votes.first] = np.arange(q)
    n_triads = padded_columns(triads.shape[1])
    gradient = _laplacian_inverse(votes, weight, board.active)
    around = np.pad(triads, [(0, 0), (0, n_triads - triads.shape[1])], constant_values=n_pairs - 1)

    def by_pair(values: Float | Int, kind: Any) -> Any:
        return as_leaf(pad(values, (n_pairs,)), kind)

    design = MisfitDesign(
        by_pair(votes.first, np.int32), by_pair(votes.second, np.int32), position=as_leaf(position, np.int32),
        n=by_pair(votes.votes, np.float64), tie_odds=as_leaf(odds, np.float64), weight=by_pair(weight, np.float64),
        gradient=as_leaf(pad(gradient, (size, size)), np.float64), triads=as_leaf(around, np.int32),
    )  # fmt: skip
    n = votes.votes.astype(np.int64)
    chance = np.clip(np.where(tied < 1, (share - tied / 2) / np.where(tied < 1, 1 - tied, 1.0), 0.5), 0.0, 1.0)
    wins, ties = np.zeros((2, n_resamples, n_pairs), np.int32)

    stream = stream_number("simulated boards")

    def draw(lanes: Int) -> None:
        for r in lanes:
            rng = np.random.default_rng([seed, stream, r])
            ties[r, :q] = rng.binomial(n, tied)
            wins[r, :q] = rng.binomial(n - ties[r, :q], chance)

    in_threads(draw, np.array_split(np.arange(n_resamples), -(-n_resamples * q // _DRAWS_OF_A_THREAD) or 1))
    boards = SimulatedLanes(
        design=design, wins=as_leaf(wins, np.int32), ties=as_leaf(ties, np.int32),
        start=as_leaf(pad(board.theta, (size,)), np.float64), inverse=as_leaf(inverse[0], np.float64),
        active=as_leaf(pad(board.active, (size,)), np.bool_),
    )  # fmt: skip
    return SimulatedBoards(boards, secure=is_secure_board(board, None))


def measured(simulated: SimulatedBoards, votes: PairVotes) -> Measures:
    """Return what the votes themselves say against their fit."""
    boards, size = simulated.boards, len(simulated.boards.design.n)
    points, ties = pad(votes.points, (size,)), pad(votes.ties.astype(np.int32), (size,))
    return fetched(changed_boards.measure, boards.design, points, ties, boards.start)


@one_blas_thread()
def refitted(simulated: SimulatedBoards, run: LaneRun) -> Misfit:
    """Return misfit of the simulated boards, (B,) each."""
    lanes = Lanes.of(1, len(simulated.boards.wins))
    misfit: Misfit = run.solve(simulated.solvers(), lanes, "simulated boards")[0]
    return misfit


def _laplacian_inverse(votes: PairVotes, weight: Float, active: Bool) -> Float:
    """Give (M, M) pseudo-inverse of the Laplacian of ``weight`` (P,) of pairs, 0 for models that are not ``active``."""
    m = len(active)
    table = np.zeros((m, m))
    table[votes.first, votes.second] = table[votes.second, votes.first] = weight
    matrix = (np.diag(table.sum(1)) - table)[np.ix_(active, active)]
    shift = np.trace(matrix) / len(matrix) ** 2  # curvature for the common level, which the weights do not see
    inverse = np.zeros((m, m))
    inverse[np.ix_(active, active)] = np.linalg.inv(matrix + shift) - 1 / (shift * len(matrix) ** 2)
    return inverse


class PossibleVotes(NamedTuple):
    """What the votes of each cell of a board may come out as: U kinds of votes, of a pair and a weight."""

    cells: Cells  # of three results for every kind: lost, tied, won by the pair's first model
    n: Int  # (U,) votes
    chances: Float  # (U, 3) of the three results


def outcomes(fit: BradleyTerryFit) -> PossibleVotes:
    """Return the chances of all results at the fitted values, which expect what the fit expects.

    A pair ties as often as its own votes do, shrunk to what the board suggests, as in `changed_boards.shares_of_ties`.
    Between models without a finite rating, chances are the shares of the votes.
    """
    board = fit._board
    cells, n_pairs = board.cells, len(board.cells.first)
    kinds, kind = np.unique(np.stack([cells.pair, cells.weight]), axis=1, return_inverse=True)
    pair = kinds[0].astype(np.int64)
    n = np.bincount(kind, cells.count, len(pair))
    first, second = board.cells.first[pair], board.cells.second[pair]
    both = board.active[first] & board.active[second]
    share = np.bincount(kind, cells.count * cells.target, len(pair)) / n
    p = np.where(both, fit._board.expected(board.theta[first] - board.theta[second]), share)
    ties = np.bincount(cells.pair, cells.count * (cells.target == 0.5), n_pairs)[pair]
    votes = cells.battles[pair]
    odds = tie_odds(p, n.astype(float), ties * n / votes)
    tie = np.where(both, evaluate(changed_boards.shares_of_ties, p, votes, ties, odds), ties / votes)
    chances = np.clip(np.stack([1 - p - tie / 2, tie, p - tie / 2], 1), 0, None)
    simulated = Cells(
        first=cells.first, second=cells.second, pair=np.repeat(pair, 3), target=np.tile([0.0, 0.5, 1.0], len(pair)),
        weight=np.repeat(kinds[1], 3), count=np.zeros(3 * len(pair), np.int64),
    )  # fmt: skip
    return PossibleVotes(simulated, n.astype(np.int64), chances / chances.sum(1, keepdims=True))


def simulated_counts(possible: PossibleVotes, seed: int, number: int) -> Int:
    """Simulate (3 U,) votes of the cells on simulated board ``number``, which depends on nothing else but the seed."""
    rng = np.random.default_rng([seed, 0, number])
    lost = rng.binomial(possible.n, possible.chances[:, 0])
    left = 1 - possible.chances[:, 0]
    tied = rng.binomial(
        possible.n - lost, np.minimum(possible.chances[:, 1] / np.maximum(left, np.finfo(float).tiny), 1)
    )
    return np.stack([lost, tied, possible.n - lost - tied], 1).reshape(-1)


def separated_chances(possible: PossibleVotes, n_models: int) -> Float:
    """Return each model's chance (M,) to win or lose all votes on a simulated board, and so have no finite rating."""
    cells = possible.cells
    first, second = (side[cells.pair[::3]] for side in (cells.first, cells.second))
    with np.errstate(divide="ignore"):
        lost, won = (possible.n * np.log(possible.chances[:, k]) for k in (0, 2))
    all_won = np.bincount(first, won, n_models) + np.bincount(second, lost, n_models)
    all_lost = np.bincount(first, lost, n_models) + np.bincount(second, won, n_models)
    return np.asarray(np.exp(all_won) + np.exp(all_lost))


def expected_covariance(fit: BradleyTerryFit, possible: PossibleVotes) -> Float:
    """Return (M, M) sandwich covariance of the strengths for the numbers of votes that are expected."""
    expected = np.sqrt(possible.n[:, None] * possible.chances).reshape(-1)  # squares of scores hold the weight twice
    cells = replace(possible.cells, weight=possible.cells.weight * expected, count=np.ones_like(possible.cells.count))
    (covariance,) = sandwiches([replace(fit._board, cells=cells)])
    return covariance


def half_counts(cells: Cells, drawn: VoteGroups, seed: int, number: int) -> tuple[Int, Int]:
    """Return (C,) votes of both halves of split ``number``: a coin decides for each vote, or for each whole cluster."""
    rng = np.random.default_rng([seed, 1, number])
    clusters = drawn.clusters
    if clusters is None:
        first = rng.binomial(cells.count, 0.5)
    else:
        heads = rng.random(len(clusters.size)) < 0.5
        first = np.bincount(clusters.cell, clusters.times * heads[clusters.cluster], len(cells.count)).astype(np.int64)
    return first, cells.count - first


def refitted_boards(fit: BradleyTerryFit, cells: Cells, counts: Iterable[Int], n_boards: int) -> Iterator[list[Board]]:
    """Yield boards of ``counts`` (C,) votes of the ``cells``, fitted as ``fit`` was, some at a time."""
    models = fit.ratings.index
    room = min(_TABLE_ENTRIES // padded_size(len(models)) ** 2, _MOST_AT_ONCE)
    at_once = 2 ** (max(room, 1).bit_length() - 1)  # sizes that a program is compiled for
    options = replace(fit.settings, method="dense")
    start = np.where(fit._board.active, fit.theta, 0.0)
    counts = iter(counts)
    for numbers in np.array_split(np.arange(n_boards), -(-n_boards // at_once)):
        boards = [(models, replace(cells, count=count)) for count in islice(counts, len(numbers))]
        yield fit_boards(boards, options, [start] * len(boards))


def sandwiches(boards: list[Board]) -> Iterator[Float]:
    """Yield (M, M) sandwich covariance of the strengths of each board; its votes are independent."""
    inverses, _ = inverse_information(boards)
    for board, inverse in zip(boards, inverses, strict=True):
        among_models = inverse[: len(board.theta), : len(board.theta)]
        yield among_models @ score_squares(board.scores(), board.cells.count, VoteGroups()) @ among_models
