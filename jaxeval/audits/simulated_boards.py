"""Boards simulated at the fitted strengths and refitted: how far honest, independent votes are from their own fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import numpy as np

from jaxeval.arrays import Bool, Float, Int, as_leaf
from jaxeval.audits.pair_votes import PairVotes, tie_odds
from jaxeval.execution.blas import one_blas_thread
from jaxeval.execution.elementwise import evaluate
from jaxeval.execution.lanes import LaneRun, Solver, Task, device_mesh
from jaxeval.execution.precision import double_precision, on_device
from jaxeval.execution.shapes import REFITS, padded_columns, padded_pairs
from jaxeval.execution.threads import in_threads
from jaxeval.kernels import batch, misfit
from jaxeval.kernels.misfit import Design, Measures, Misfit
from jaxeval.kernels.solve import Terms
from jaxeval.ratings.boards import Board, inverse_information
from jaxeval.ratings.drawn_votes import is_secure_board
from jaxeval.resampling.units import pad, stream_number

# A ridge that moves no rating, and gives models that win all of their simulated votes a finite one.
_RIDGE = 1e-6
_TOLERANCE_LOGIT = 1e-6
_MAX_STEPS = {batch.Solver.CHORD: 40, batch.Solver.NEWTON: 200}
_NAMES = {batch.Solver.CHORD: "chord", batch.Solver.NEWTON: "newton"}
_DRAWS_OF_A_THREAD = 2**17
# Tables that a lane works on, and bytes that it takes for each number of them.
_TABLES, _BYTES_PER_WORD = {batch.Solver.CHORD: 2, batch.Solver.NEWTON: 4}, 10


@dataclass(frozen=True, eq=False)
class SimulatedBoards:
    """B boards simulated at a fit, and their refits: a `Problem`."""

    boards: batch.Simulated
    secure: bool  # practically no board separates models

    @property
    def n_slices(self) -> int:
        """One board."""
        return 1

    @property
    def n_resamples(self) -> int:
        """B."""
        return len(self.boards.wins)

    def solvers(self) -> list[Solver]:
        """Chord steps where no simulated board separates models, then Newton's method."""
        held = 2 * sum(x.nbytes for x in jax.tree.leaves(self.boards))
        every = np.ones(1, bool)
        return [
            Solver(code, name, self._task(code, held), every & (self.secure or code == batch.Solver.NEWTON))
            for code, name in _NAMES.items()
        ]

    def _task(self, solver: batch.Solver, held: int) -> Task:
        design, size = self.boards.design, len(self.boards.start)
        words = _TABLES[solver] * size**2 + 3 * design.triads.shape[1] + 8 * len(design.n)
        terms = Terms.of(np.float64(_RIDGE), np.float64(_TOLERANCE_LOGIT), _MAX_STEPS[solver])
        call = partial(batch.refit_misfit, self.boards, device_mesh(), solver, terms)
        return Task(call, REFITS, words, lane_bytes=_BYTES_PER_WORD * words, fixed_bytes=held)


def simulated_boards(board: Board, votes: PairVotes, triads: Int, n_resamples: int, seed: int) -> SimulatedBoards:
    """Boards of as many votes for each pair as there were.

    Results have the shares that the fit expects, ties the pair's own share (see `misfit.shares_of_ties`).
    """
    inverse, _ = inverse_information([board])
    size = inverse.shape[-1]
    share = np.where(votes.met, votes.expected / np.where(votes.met, votes.votes, 1.0), 0.5)
    odds = tie_odds(share, votes.votes, votes.ties)
    tied = evaluate(misfit.shares_of_ties, share, votes.votes, votes.ties, odds)
    variance = share * (1 - share) - tied / 4
    weight = votes.votes * (share * (1 - share)) ** 2 / np.where(variance > 0, variance, np.inf)
    q, n_pairs = len(share), padded_pairs(len(share) + 1, size)
    position = np.full((size, size), n_pairs - 1)
    position[votes.first, votes.second] = position[votes.second, votes.first] = np.arange(q)
    n_triads = padded_columns(triads.shape[1])
    design = Design(
        first=as_leaf(pad(votes.first, (n_pairs,)), np.int32),
        second=as_leaf(pad(votes.second, (n_pairs,)), np.int32),
        position=as_leaf(position, np.int32),
        n=as_leaf(pad(votes.votes, (n_pairs,)), np.float64),
        tie_odds=as_leaf(odds, np.float64),
        weight=as_leaf(pad(weight, (n_pairs,)), np.float64),
        gradient=as_leaf(pad(_laplacian_inverse(votes, weight, board.active), (size, size)), np.float64),
        triads=as_leaf(
            np.pad(triads, [(0, 0), (0, n_triads - triads.shape[1])], constant_values=n_pairs - 1), np.int32
        ),
    )
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
    boards = batch.Simulated(
        design=design,
        wins=as_leaf(wins, np.int32),
        ties=as_leaf(ties, np.int32),
        start=as_leaf(pad(board.theta, (size,)), np.float64),
        inverse=as_leaf(inverse[0], np.float64),
        active=as_leaf(pad(board.active, (size,)), np.bool_),
    )
    return SimulatedBoards(on_device(boards), secure=is_secure_board(board, None))


def measured(simulated: SimulatedBoards, votes: PairVotes) -> Measures:
    """What the votes themselves say against their fit."""
    boards, size = simulated.boards, len(simulated.boards.design.n)
    points, ties = pad(votes.points, (size,)), pad(votes.ties.astype(np.int32), (size,))
    with double_precision():
        found: Measures = jax.device_get(batch.measure(boards.design, points, ties, boards.start))
        return found


def refitted(simulated: SimulatedBoards, run: LaneRun) -> Misfit:
    """Misfit of the simulated boards, (B,) each."""
    with one_blas_thread():
        found: Misfit = run.solve(simulated, "simulated boards").results
        return found


def _laplacian_inverse(votes: PairVotes, weight: Float, active: Bool) -> Float:
    """(M, M) pseudo-inverse of the Laplacian of ``weight`` (P,) of pairs, 0 for models that are not ``active``."""
    m = len(active)
    table = np.zeros((m, m))
    table[votes.first, votes.second] = table[votes.second, votes.first] = weight
    matrix = (np.diag(table.sum(1)) - table)[np.ix_(active, active)]
    shift = np.trace(matrix) / len(matrix) ** 2  # curvature for the common level, which the weights do not see
    found = np.zeros((m, m))
    found[np.ix_(active, active)] = np.linalg.inv(matrix + shift) - 1 / (shift * len(matrix) ** 2)
    return found
