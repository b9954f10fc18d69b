"""What chance alone gives: misfit of boards that one number per model fits, by simulation or by random signs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy

from jaxeval.arrays import Float, Int
from jaxeval.audits.simulated_boards import ExpectedResults, PairVotes, measured, refitted, simulated_boards
from jaxeval.execution.progress import Advance
from jaxeval.execution.runs import Identity, RunOptions, open_run
from jaxeval.kernels.solve import Status
from jaxeval.ratings.boards import Board, battle_weights
from jaxeval.ratings.contextual_boards import Likelihood
from jaxeval.ratings.vote_groups import VoteGroups
from jaxeval.resampling.units import stream_number

_NUMBERS_AT_ONCE = 2**23
_MOST_LEVERAGE = 0.95


class Chance(NamedTuple):
    """Misfit of the votes, and of B boards of chance; None for what is not defined."""

    pearson: Float  # (B,)
    pair: Float  # (P,) how far the votes of each pair stick out
    largest_pair: Float  # (B,)
    triad: Float  # (T,) log-odds around each triad by their standard error
    largest_triad: Float  # (B,)
    deviance: float = np.nan
    deviances: Float | None = None  # (B,)
    cyclic: float = np.nan  # weighted squares of the log-odds that no strengths explain
    total: float = np.nan  # of all log-odds
    cyclics: Float | None = None  # (B,)
    n_failed: int = 0  # boards that could not be fitted, which count as boards of more misfit


def share_above(value: Float | float, draws: Float) -> Float:
    """The p-values of ``value`` (...) among B ``draws``: (1 + draws as large) / (B + 1); NaN draws count as larger."""
    known = np.sort(draws[~np.isnan(draws)])
    below = np.searchsorted(known, np.asarray(value) * (1 - 1e-9), side="left")
    return np.asarray((1 + len(draws) - below) / (len(draws) + 1))


def _identity(votes: PairVotes, triads: Int, n_resamples: int, seed: int) -> Identity:
    return Identity({"seed": seed}, [votes, triads], {"n_resamples": n_resamples}, noun="votes")


def simulated_chance(
    board: Board, votes: PairVotes, triads: Int, n_resamples: int, seed: int, running: RunOptions
) -> Chance:
    """By boards simulated at the fit, of independent votes for a win, a tie or a loss."""
    simulated = simulated_boards(board, votes, triads, n_resamples, seed)
    with open_run(partial(_identity, votes, triads, n_resamples, seed), n_resamples, "boards", **running) as run:
        misfit = refitted(simulated, run)
    failed = misfit.status != Status.CONVERGED
    pearson, deviances, cyclics, pair, triad = (
        np.where(failed, np.nan, x)
        for x in (misfit.pearson, misfit.deviance, misfit.cyclic, misfit.largest_pair, misfit.largest_triad)
    )
    of_votes = measured(simulated, votes)
    p, t = len(votes.n), triads.shape[1]
    sign = np.sign(votes.points - votes.expected)
    return Chance(
        pearson=pearson,
        pair=sign * np.sqrt(np.asarray(of_votes.deviance)[:p]),
        largest_pair=pair,
        triad=(np.asarray(of_votes.cycle) / np.sqrt(np.asarray(of_votes.cycle_variance)))[:t],
        largest_triad=triad,
        deviance=float(np.asarray(of_votes.deviance).sum()),
        deviances=deviances,
        cyclic=float(of_votes.cyclic),
        total=float(of_votes.total),
        cyclics=cyclics,
        n_failed=int(failed.sum()),
    )


def signed_chance(
    fitted: Likelihood,
    response: ExpectedResults,
    votes: PairVotes,
    triads: Int,
    drawn: VoteGroups,
    n_resamples: int,
    seed: int,
    running: RunOptions,
) -> Chance:
    """By random signs of clusters, or of votes; log-odds that no strengths explain vary as X2 does, to first order."""
    multipliers = Multipliers.of(fitted, response, drawn)
    with open_run(partial(_identity, votes, triads, n_resamples, seed), n_resamples, "boards", **running) as run:
        chance = multipliers.misfit(votes, triads, n_resamples, seed, run.advance)
    if isinstance(fitted, Board) and fitted.cells.hard:
        of_votes = measured(simulated_boards(fitted, votes, triads, 0, seed), votes)
        chance = chance._replace(
            deviance=float(np.asarray(of_votes.deviance).sum()),
            cyclic=float(of_votes.cyclic),
            total=float(of_votes.total),
            cyclics=chance.pearson,
        )
    return chance


@dataclass(frozen=True, eq=False)
class Multipliers:
    """What signs of units do to the residuals of P pairs."""

    residuals: scipy.sparse.csr_array  # (P, C) of one vote of each cell, its weight included
    taken: scipy.sparse.csr_array  # (P, K) change of the expected points by the parameters
    scores: scipy.sparse.csr_array  # (C, K)
    inverse: Float  # (K, K)
    times: scipy.sparse.csr_array | None  # (U, C) votes of each cluster in each cell; None where each vote is alone
    count: Int  # (C,) votes
    stretch: Float  # (C,) `_stretch` of single votes

    @classmethod
    def of(cls, fitted: Likelihood, response: ExpectedResults, drawn: VoteGroups) -> Multipliers:
        """Return those of a ``fitted`` board, whose units are the clusters ``drawn`` together, or single votes.

        The fit follows the votes, and so takes up a share of a unit's residuals, its leverage h. Divided by 1 - h,
        their variance is what it was before the fit (DOI 10.1016/0304-4076(85)90158-7). For a cluster h is that of its
        votes on a pair.
        """
        cells = fitted.board.cells
        p, c = len(cells.first), len(cells.count)
        weight, inverse = battle_weights(fitted.board, cells), fitted.inverse_information()
        by_pair = scipy.sparse.csr_array((np.ones(c), (cells.pair, np.arange(c))), (p, c))
        variance = inverse.diagonal()
        spread = variance[cells.first] + variance[cells.second] - 2 * inverse[cells.first, cells.second]
        leverage = (weight * response.expected * (1 - response.expected)) * spread[cells.pair]  # of a vote
        clusters, times = drawn.repeating, None
        if clusters is not None:
            key, place = np.unique(clusters.cluster * p + cells.pair[clusters.cell], return_inverse=True)
            of_pair = np.bincount(place, clusters.times * leverage[clusters.cell], len(key)).astype(float)[place]
            entries = clusters.times * _stretch(of_pair), (clusters.cluster, clusters.cell)
            times = scipy.sparse.csr_array(entries, (len(clusters.size), c))
        return cls(
            residuals=by_pair * (weight * (cells.target - response.expected))[None],
            taken=scipy.sparse.csr_array((by_pair * (weight * cells.count)[None]) @ response.slopes),
            scores=fitted.scores(),
            inverse=inverse,
            times=times,
            count=cells.count,
            stretch=_stretch(leverage),
        )

    @property
    def squares(self) -> Float:
        """(P,) sum over units of the squared residuals of each pair."""
        if self.times is None:
            return np.asarray(self.residuals.power(2) @ (self.count * self.stretch**2))
        return np.asarray((self.times @ self.residuals.T.tocsr()).power(2).sum(0))

    def signed(self, n_resamples: int, seed: int) -> Iterator[Float]:
        """Yield residuals of the pairs, (P, some lanes) at a time, in ``n_resamples`` lanes in all."""
        n_units = len(self.count) if self.times is None else self.times.shape[0]
        n_lanes = max(_NUMBERS_AT_ONCE // max(n_units, len(self.count)), 1)
        of_cells = None if self.times is None else self.times.T.tocsr()
        of_parameters = self.scores.T.tocsr()
        stream = stream_number("signs")
        for start in range(0, n_resamples, n_lanes):
            lanes = range(start, min(start + n_lanes, n_resamples))
            signs = np.empty((n_units, len(lanes)))
            for column, r in enumerate(lanes):
                rng = np.random.default_rng([seed, stream, r])
                if of_cells is None:  # the sum of as many signs as a cell has votes
                    signs[:, column] = self.stretch * (2 * rng.binomial(self.count, 0.5) - self.count)
                else:
                    signs[:, column] = 2 * rng.integers(0, 2, n_units, dtype=np.int8) - 1
            times = signs if of_cells is None else of_cells @ signs
            moved = self.inverse @ (of_parameters @ times)
            yield self.residuals @ times - self.taken @ moved

    def misfit(self, votes: PairVotes, triads: Int, n_resamples: int, seed: int, advance: Advance) -> Chance:
        """Return the misfit of the votes, and of ``n_resamples`` lanes.

        Triads are of log-odds to first order in the residuals, and their standard errors are those of the lanes.
        """
        variance = np.where(votes.variance > 0, votes.variance, np.inf)
        share = votes.expected / np.where(votes.n > 0, votes.n, 1.0)
        steep = np.where(votes.met, votes.n * share * (1 - share), np.inf)
        steep = np.where(steep > 0, steep, np.inf)
        # Errors of a few units can be small by luck; units of dependent votes vary no less than independent votes.
        error = np.sqrt(np.maximum(self.squares, votes.variance))
        error = np.where(error > 0, error, np.inf)
        around = _Circles(triads, len(share))
        drawn = []
        for part in self.signed(n_resamples, seed):
            drawn.append(part)
            advance(part.shape[1])
        pearson = np.concatenate([(e**2 / variance[:, None]).sum(0) for e in drawn])
        pairs = np.concatenate([np.abs(e / error[:, None]).max(0, initial=0.0) for e in drawn])
        total = sum(around.squares(e / steep[:, None]) for e in drawn)
        spread = np.sqrt(total / n_resamples)
        spread = np.where(spread > 0, spread, np.inf)
        largest = np.concatenate([around.largest(e / steep[:, None], spread) for e in drawn])
        residual = votes.points - votes.expected
        of_triads = around.of((residual / steep)[:, None])[:, 0] / spread
        return Chance(pearson, residual / error, pairs, of_triads, largest)


def _stretch(leverage: Float) -> Float:
    """Return what brings residuals back to the variance that they had before the fit."""
    return np.asarray(1 / np.sqrt(1 - np.clip(leverage, 0.0, _MOST_LEVERAGE)))


class _Circles:
    """Sums around triads (3, T) of what pairs have, some triads at a time."""

    def __init__(self, triads: Int, n_pairs: int) -> None:
        t = triads.shape[1]
        entries = np.repeat([1.0, 1.0, -1.0], t), (np.tile(np.arange(t), 3), triads.reshape(-1))
        self.table = scipy.sparse.csr_array(entries, (t, n_pairs))

    def of(self, values: Float) -> Float:
        """Return (T, B) of ``values`` (P, B)."""
        return np.asarray(self.table @ values)

    def _parts(self, values: Float) -> Iterator[tuple[slice, Float]]:
        step = max(_NUMBERS_AT_ONCE // max(values.shape[1], 1), 1)
        for start in range(0, self.table.shape[0], step):
            part = slice(start, start + step)
            yield part, np.asarray(self.table[part] @ values)

    def squares(self, values: Float) -> Float:
        """Return (T,) sums over the lanes."""
        return np.concatenate([np.zeros(0), *((x**2).sum(1) for _, x in self._parts(values))])

    def largest(self, values: Float, spread: Float) -> Float:
        """Return (B,) over the triads, each by its ``spread`` (T,)."""
        largest = np.zeros(values.shape[1])
        for part, x in self._parts(values):
            largest = np.maximum(largest, np.abs(x / spread[part, None]).max(0, initial=0.0))
        return largest
