"""Boards that a board is compared with: votes simulated at its fitted values, and random halves of its own votes.

Every board has the design of the first one: the same pairs with the same numbers of votes (halves have parts of them).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from jaxeval.arrays import Float, Int
from jaxeval.audits.pair_votes import tie_odds
from jaxeval.data.cells import Cells
from jaxeval.execution.elementwise import evaluate
from jaxeval.execution.shapes import padded_size
from jaxeval.kernels import misfit
from jaxeval.ratings.boards import Board, fit_boards, inverse_information
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit
from jaxeval.ratings.sandwich import score_squares
from jaxeval.ratings.vote_groups import VoteGroups

#: Entries of the (M, M) tables of all boards in one batched call, which cost about 170 bytes each; and boards.
_TABLE_ENTRIES = 2**21
_MOST_AT_ONCE = 64


class Outcomes(NamedTuple):
    """What the votes of each cell of a board may come out as: U kinds of votes, of a pair and a weight."""

    cells: Cells  # of three results for every kind: lost, tied, won by the pair's first model
    n: Int  # (U,) votes
    chances: Float  # (U, 3) of the three results


def outcomes(fit: BradleyTerryFit) -> Outcomes:
    """The chances of all results at the fitted values, which expect what the fit expects.

    A pair ties as often as its own votes do, shrunk to what the board suggests, as in `misfit.shares_of_ties`.
    Between models without a finite rating, chances are the shares of the votes.
    """
    board = fit._likelihood.board
    cells, n_pairs = board.cells, len(board.cells.first)
    kinds, kind = np.unique(np.stack([cells.pair, cells.weight]), axis=1, return_inverse=True)
    pair = kinds[0].astype(np.int64)
    n = np.bincount(kind, cells.count, len(pair))
    first, second = board.cells.first[pair], board.cells.second[pair]
    both = board.active[first] & board.active[second]
    share = np.bincount(kind, cells.count * cells.target, len(pair)) / n
    p = np.where(both, fit._likelihood.expected(board.theta[first] - board.theta[second]), share)
    ties = np.bincount(cells.pair, cells.count * (cells.target == 0.5), n_pairs)[pair]
    votes = cells.battles[pair]
    odds = tie_odds(p, n.astype(float), ties * n / votes)
    tie = np.where(both, evaluate(misfit.shares_of_ties, p, votes, ties, odds), ties / votes)
    chances = np.clip(np.stack([1 - p - tie / 2, tie, p - tie / 2], 1), 0, None)
    simulated = Cells(
        first=cells.first,
        second=cells.second,
        pair=np.repeat(pair, 3),
        target=np.tile([0.0, 0.5, 1.0], len(pair)),
        weight=np.repeat(kinds[1], 3),
        count=np.zeros(3 * len(pair), np.int64),
    )
    return Outcomes(simulated, n.astype(np.int64), chances / chances.sum(1, keepdims=True))


def simulated_counts(found: Outcomes, seed: int, number: int) -> Int:
    """(3 U,) votes of the cells on simulated board ``number``, which depends on nothing else but the seed."""
    rng = np.random.default_rng([seed, 0, number])
    lost = rng.binomial(found.n, found.chances[:, 0])
    left = 1 - found.chances[:, 0]
    tied = rng.binomial(found.n - lost, np.minimum(found.chances[:, 1] / np.maximum(left, np.finfo(float).tiny), 1))
    return np.stack([lost, tied, found.n - lost - tied], 1).reshape(-1)


def separated_chances(found: Outcomes, n_models: int) -> Float:
    """(M,) chance that a model wins or loses all of its votes on a simulated board, and so has no finite rating."""
    cells = found.cells
    first, second = (side[cells.pair[::3]] for side in (cells.first, cells.second))
    with np.errstate(divide="ignore"):
        lost, won = (found.n * np.log(found.chances[:, k]) for k in (0, 2))
    all_won = np.bincount(first, won, n_models) + np.bincount(second, lost, n_models)
    all_lost = np.bincount(first, lost, n_models) + np.bincount(second, won, n_models)
    return np.asarray(np.exp(all_won) + np.exp(all_lost))


def expected_covariance(fit: BradleyTerryFit, found: Outcomes) -> Float:
    """(M, M) sandwich covariance of the strengths for the numbers of votes that are expected."""
    expected = np.sqrt(found.n[:, None] * found.chances).reshape(-1)  # squares of scores hold the weight twice
    cells = replace(found.cells, weight=found.cells.weight * expected, count=np.ones_like(found.cells.count))
    (covariance,) = sandwiches([fit._likelihood.board._replace(cells=cells)])
    return covariance


def half_counts(cells: Cells, drawn: VoteGroups, seed: int, number: int) -> tuple[Int, Int]:
    """(C,) votes of both halves of split ``number``: a coin decides for each vote, or for each whole cluster."""
    rng = np.random.default_rng([seed, 1, number])
    clusters = drawn.clusters
    if clusters is None:
        first = rng.binomial(cells.count, 0.5)
    else:
        heads = rng.random(len(clusters.size)) < 0.5
        first = np.bincount(clusters.cell, clusters.times * heads[clusters.cluster], len(cells.count)).astype(np.int64)
    return first, cells.count - first


def refitted(fit: BradleyTerryFit, cells: Cells, counts: Iterable[Int], n_boards: int) -> Iterator[list[Board]]:
    """The boards of ``counts`` (C,) votes of the ``cells``, fitted as ``fit`` was, as many at a time as memory allows.

    Args:
        n_boards: how many there are.
    """
    models = fit.ratings.index
    room = min(_TABLE_ENTRIES // padded_size(len(models)) ** 2, _MOST_AT_ONCE)
    at_once = 2 ** (max(room, 1).bit_length() - 1)  # sizes that a program is compiled for
    options = replace(fit.settings, method="dense")
    start = np.where(fit._likelihood.board.active, fit.theta, 0.0)
    counts = iter(counts)
    for numbers in np.array_split(np.arange(n_boards), -(-n_boards // at_once)):
        boards = [(models, replace(cells, count=count)) for count in islice(counts, len(numbers))]
        yield fit_boards(boards, options, [start] * len(boards))


def sandwiches(boards: list[Board]) -> Iterator[Float]:
    """(M, M) sandwich covariance of the strengths of each board; its votes are independent."""
    inverses, _ = inverse_information(boards)
    for board, inverse in zip(boards, inverses, strict=True):
        own = inverse[: len(board.theta), : len(board.theta)]
        yield own @ score_squares(board.scores(), board.cells.count, VoteGroups()) @ own
