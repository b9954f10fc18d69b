"""What chance alone gives: misfit of boards that one number per model fits, by simulation or by random signs."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from jaxeval.arrays import Float, Int
from jaxeval.audits.multipliers import Multipliers
from jaxeval.audits.pair_votes import PairVotes, Responses
from jaxeval.audits.simulated_boards import measured, refitted, simulated_boards
from jaxeval.execution.runs import Identity, RunOptions, open_run
from jaxeval.kernels.solve import Status
from jaxeval.ratings.boards import Board
from jaxeval.ratings.contextual_boards import Likelihood
from jaxeval.ratings.vote_groups import VoteGroups


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
        found = refitted(simulated, run)
    failed = found.status != Status.CONVERGED
    pearson, deviances, cyclics, pair, triad = (
        np.where(failed, np.nan, x)
        for x in (found.pearson, found.deviance, found.cyclic, found.largest_pair, found.largest_triad)
    )
    own = measured(simulated, votes)
    p, t = len(votes.n), triads.shape[1]
    sign = np.sign(votes.points - votes.expected)
    return Chance(
        pearson=pearson,
        pair=sign * np.sqrt(np.asarray(own.deviance)[:p]),
        largest_pair=pair,
        triad=(np.asarray(own.cycle) / np.sqrt(np.asarray(own.cycle_variance)))[:t],
        largest_triad=triad,
        deviance=float(np.asarray(own.deviance).sum()),
        deviances=deviances,
        cyclic=float(own.cyclic),
        total=float(own.total),
        cyclics=cyclics,
        n_failed=int(failed.sum()),
    )


def signed_chance(
    fitted: Likelihood,
    response: Responses,
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
        chance = Chance(*multipliers.misfit(votes, triads, n_resamples, seed, run.advance))
    if isinstance(fitted, Board) and fitted.cells.hard:
        own = measured(simulated_boards(fitted, votes, triads, 0, seed), votes)
        chance = chance._replace(
            deviance=float(np.asarray(own.deviance).sum()),
            cyclic=float(own.cyclic),
            total=float(own.total),
            cyclics=chance.pearson,
        )
    return chance
