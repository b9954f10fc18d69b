"""Boards: the cells of a slice, what they identify, and its fitted log-strengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
import scipy
from jax import Array

from jaxeval.arrays import Bool, Float, as_leaf
from jaxeval.data.cells import Cells
from jaxeval.execution.elementwise import evaluate_of_choice
from jaxeval.execution.precision import one_blas_thread
from jaxeval.execution.shapes import padded_size
from jaxeval.kernels import dense_solve, links
from jaxeval.kernels.connectivity import Standing
from jaxeval.kernels.links import Link
from jaxeval.kernels.pair_tables import PairTable
from jaxeval.kernels.solve import Solution, Terms
from jaxeval.ratings.connectivity import Connectivity, analyse, per_model
from jaxeval.ratings.options import FitOptions
from jaxeval.ratings.sparse_boards import WideGraph, fit_sparse, resolved
from jaxeval.statistics.comparison import check_square

#: Largest error left in any strength (1e-9 is 2e-7 Elo of logits, 3e-7 of probits).
TOLERANCE_LOGIT = 1e-9
_MAX_NEWTON_STEPS = 200
#: An inverse takes several (M, M) tables and about M^3 operations: ten seconds or more for 6,000 models.
MOST_INVERTED = 6_000
#: The inverse-pair-frequency weights of the Arena: 1 / max(battles of the pair, 50).
PAIR_FREQUENCY_FLOOR = 50


_NO_PAIR = np.zeros(1)


class Board(NamedTuple):
    """One fitted slice: sums by pair, what they identify, log-strengths in the mean-zero gauge (without padding)."""

    models: pd.Index
    cells: Cells
    n: Float  # (P,) weight of the battles of each pair
    wins: Float  # (P,) the part of that weight that the first model of the pair won
    pair_weight: Float | None  # (P,) the factor that `n` and `wins` contain
    connectivity: Connectivity
    active: Bool  # (M,) models with a finite rating
    theta: Float  # (M,) 0 for inactive models
    status: int
    n_steps: int
    grad_norm: float
    ridge: float
    link: Link
    graph: WideGraph | None = None  # of the sparse method
    flags: tuple[str, ...] = ()  # what the battles cannot say, here nothing

    @classmethod
    def at(
        cls, end: Solution, models: pd.Index, cells: Cells, n: Float = _NO_PAIR, wins: Float = _NO_PAIR, *,
        connectivity: Connectivity, active: Bool, ridge: float,
    ) -> Board:  # fmt: skip
        """Return the board of logits where an iteration ended; ``n`` and ``wins`` are of boards that have pairs."""
        theta = np.where(active, np.asarray(end.theta)[: len(models)], 0.0)
        how = int(end.status), int(end.n_steps), float(end.grad_norm), ridge, Link.LOGIT
        return cls(models, cells, n, wins, None, connectivity, active, theta, *how)

    @property
    def board(self) -> Board:
        """Itself: the board of a likelihood."""
        return self

    @property
    def method(self) -> Literal["dense", "sparse"]:
        """How it was fitted."""
        return "dense" if self.graph is None else "sparse"

    def rated_tables(self) -> tuple[Float, Float]:
        """(M, M) battle weights and wins among the models with a finite rating.

        Raises:
            ValueError: too many models for tables.
        """
        _check_room([self])
        n, wins = np.zeros((2, len(self.theta), len(self.theta)))
        self.cells.fill_tables(self.n, self.wins, n, wins)
        _leave_out(~self.active, n, wins)
        return n, wins

    def inverse_information(self) -> Float:
        """(M, M) pseudo-inverse of the information.

        Raises:
            ValueError: too many models for tables.
        """
        m = len(self.theta)
        return inverse_information([self])[0][0, :m, :m]

    def scores(self) -> scipy.sparse.csr_array:
        """(C, M) derivatives of one battle's log-likelihood in each cell, its weight included."""
        slopes = strength_slopes(self.cells, len(self.theta))
        score = self._by_link(links.score, self.cells.target, slopes @ self.theta)
        return slopes * (battle_weights(self, self.cells) * score)[:, None]

    def score_variance(self) -> Float:
        """(M, M) variance of the sum of all scores if the model is right and battles are independent."""
        slopes = strength_slopes(self.cells, len(self.theta))
        information = self._by_link(links.information, self.cells.target, slopes @ self.theta)
        spread = slopes * (battle_weights(self, self.cells) * np.sqrt(information))[:, None]
        return np.asarray((spread.T @ spread.multiply(self.cells.count[:, None])).toarray())

    def log_likelihood(self) -> float:
        """Log-likelihood of the battles of models with a finite rating."""
        cells = self.cells
        both = self.active[cells.first] & self.active[cells.second]
        target = self.wins / np.where(self.n > 0, self.n, 1.0)
        each = self._by_link(links.log_likelihood, target, self.theta[cells.first] - self.theta[cells.second])
        return float(self.n[both] @ each[both])

    def expected(self, difference: Float) -> Float:
        """Probabilities of a win, a tie counting half, by differences of strengths."""
        return self._by_link(links.probability, difference)

    def _by_link(self, function: Callable[..., Array], *values: Float) -> Float:
        """What a function of `kernels.links` gives."""
        values_by_link: Float = evaluate_of_choice(function, self.link, *values)
        return values_by_link


class FittedBoard:
    """A log-likelihood at its maximum: what it says of P parameters, of which the first M are log-strengths.

    A kind of boards writes what differs from the Bradley-Terry model of its ``board``.
    """

    board: Board
    inverse: Float  # (P', P') pseudo-inverse of the information, with padding
    flags: tuple[str, ...] = ()  # what the data cannot say, in words

    def inverse_information(self) -> Float:
        """Return the (P, P) pseudo-inverse of the information, as a rule of log-strengths alone."""
        m = len(self.board.theta)
        return self.inverse[:m, :m]

    def scores(self) -> scipy.sparse.csr_array:
        """Return the (C, P) derivatives of one judgment's log-likelihood in each cell, its weight included."""
        return self.board.scores()

    def score_variance(self) -> Float:
        """Return the (P, P) variance of the sum of all scores if the model is right and judgments are independent."""
        return self.board.score_variance()

    def log_likelihood(self) -> float:
        """Return the log-likelihood of all judgments, without ridge terms."""
        return self.board.log_likelihood()

    def expected(self, difference: Float) -> Float:
        """Return the expected results of two models, a tie counting half, by differences of their strengths."""
        return self.board.expected(difference)


def fit_boards(
    slices: Sequence[tuple[pd.Index, Cells]], options: FitOptions, starts: Sequence[Float] | None = None
) -> list[Board]:
    """Fit every slice (its models and cells), from ``starts`` (log-strengths) if given."""
    boards = []
    for s, (models, cells) in enumerate(slices):
        factor = np.asarray(1 / np.maximum(cells.battles, PAIR_FREQUENCY_FLOOR)) if options.reweight else None
        if options.penalty == "firth":
            scale = weight_scale(cells, factor)
            factor = factor if scale == 1 else (np.ones(len(cells.first)) if factor is None else factor) / scale
        n, wins = cells.pair_sums()
        board = models, cells, *((n, wins, None) if factor is None else (n * factor, wins * factor, factor))
        fit = _fit_sparse if resolved(options.method, len(models)) == "sparse" else _fit_dense
        boards.append(fit(board, options, None if starts is None else starts[s]))
    return boards


#: Models and cells of a slice; (P,) the weight of each pair's battles, the wins of its first model, the factor in both.
_Given = tuple[pd.Index, Cells, Float, Float, Float | None]


def _fit_dense(board: _Given, options: FitOptions, start: Float | None) -> Board:
    """Fit on (M, M) tables, on the host: one fit takes less time there than a program for it takes to compile."""
    models, cells, pair_n, pair_wins, _ = board
    m, link = len(models), options.response.link
    if options.penalty == "firth":
        check_square(m, MOST_INVERTED, "the inverse that Firth's penalty needs", 'penalty="none"')
    n, wins = np.zeros((2, m, m))
    cells.fill_tables(pair_n, pair_wins, n, wins)
    connectivity, active = _identified(n, wins, options)
    _leave_out(~active, n, wins)
    problem = _pair_table(n, wins), as_leaf(active, np.bool_), fit_terms(options.ridge)
    begin = None if start is None else as_leaf(start, np.float64)
    with np.errstate(all="ignore"), one_blas_thread():
        if options.penalty == "firth":
            end = dense_solve.newton_firth(*problem, begin)
        else:
            end = dense_solve.newton(link, *problem, begin)
    how = int(end.status), int(end.n_steps), float(end.grad_norm), options.ridge, link
    return Board(*board, connectivity, active, np.asarray(end.theta), *how)


def _pair_table(n: Float, wins: Float) -> PairTable:
    """Return the (M, M) tables for kernels, which compute on the host then."""
    return PairTable(as_leaf(n, np.float64), as_leaf(wins.sum(1), np.float64), as_leaf(wins, np.float64))


def _identified(n: Float, wins: Float, options: FitOptions) -> tuple[Connectivity, Bool]:
    """What (M, M) tables identify, and (M,) models with a finite rating.

    With Firth's penalty all models of the largest component have one. Their standing to its main group is still kept.
    """
    if options.penalty != "firth":
        connectivity = analyse(n, wins)
        return connectivity, (connectivity.standing == Standing.IDENTIFIED) | (options.ridge > 0)
    met = analyse(n, n)
    active = met.standing == Standing.IDENTIFIED
    among_active = analyse(np.where(active, n, 0), np.where(active, wins, 0))
    return met._replace(standing=np.where(active, among_active.standing, met.standing)), active


def fit_terms(ridge: float | Float) -> Terms:
    """What a fit of the full data maximises, with a ridge for all parameters or one for each, and when it ends."""
    return Terms.of(ridge, TOLERANCE_LOGIT, _MAX_NEWTON_STEPS)


def _fit_sparse(board: _Given, options: FitOptions, start: Float | None) -> Board:
    """Fit on the graph of pairs."""
    models, cells, n, wins, _ = board
    link = options.response.link
    connectivity, end, graph = fit_sparse(cells, n, wins, len(models), fit_terms(options.ridge), start, link)
    active = (connectivity.standing == Standing.IDENTIFIED) | (options.ridge > 0)
    how = int(end.status), int(end.n_steps), float(end.grad_norm), options.ridge, link
    return Board(*board, connectivity, active, np.asarray(end.theta), *how, graph=graph)


def _leave_out(models: Bool, *tables: Float) -> None:
    """Write zeros into the rows and columns of ``models`` (M,)."""
    for table in tables if models.any() else ():
        table[np.flatnonzero(models)] = table[:, np.flatnonzero(models)] = 0


def _check_room(boards: Sequence[Board]) -> None:
    """An error if a board has too many models for tables."""
    widest = max(len(board.theta) for board in boards)
    check_square(widest, MOST_INVERTED, "the covariance of a fit", "a bootstrap's standard_errors")


def inverse_information(boards: Sequence[Board]) -> tuple[Float, Float]:
    """(S, M', M') pseudo-inverse and (S, M') diagonal of the information of boards; M' is padded.

    All have the ridge and the link of the first.
    """
    _check_room(boards)
    size = padded_size(max(len(board.theta) for board in boards))
    inverse, diagonal = np.zeros((len(boards), size, size)), np.zeros((len(boards), size))
    ridge, link = as_leaf(boards[0].ridge, np.float64), boards[0].link
    with np.errstate(all="ignore"), one_blas_thread():
        for s, board in enumerate(boards):
            m, active = len(board.theta), as_leaf(board.active, np.bool_)
            table, theta = _pair_table(*board.rated_tables()), as_leaf(board.theta, np.float64)
            found = dense_solve.inverse_information(link, theta, table, ridge, active)
            inverse[s, :m, :m], diagonal[s, :m] = found
    return inverse, diagonal


def inverse_within(information: Float, moves: Bool, gauge: Float) -> Float:
    """(P, P) inverse of the information among what ``moves``, at right angles to the ``gauge`` (U, P); 0 elsewhere."""
    moved, inverse = np.flatnonzero(moves), np.zeros(information.shape)
    if len(moved) and np.isfinite(information[np.ix_(moved, moved)]).all():
        with one_blas_thread():
            basis = scipy.linalg.null_space(gauge[:, moved]) if gauge.any() else np.eye(len(moved))
            within = basis.T @ information[np.ix_(moved, moved)] @ basis
            inverse[np.ix_(moved, moved)] = basis @ np.linalg.pinv(within, hermitian=True) @ basis.T
    return inverse


def weight_scale(cells: Cells, factor: Float | None) -> float:
    """The factor by which weights are divided so that their sum is that of their squares, and 1 without weights.

    A penalty adds battles, and weights are no numbers of battles: a factor in all of them must change nothing. Then
    they add up to as many equal weights as would say as much (Kish 1965).
    """
    weight = cells.weight if factor is None else cells.weight * factor[cells.pair]
    total = float(cells.count @ weight)
    return float(cells.count @ weight**2) / total if total > 0 else 1.0


def battle_weights(board: Board, cells: Cells) -> Float:
    """(C,) weight of one battle of each of the ``cells``, the factor of its pair included; 0 for unrated models'."""
    weight = cells.weight
    if board.pair_weight is not None:
        weight = weight * board.pair_weight[cells.pair]
    both = board.active[cells.first] & board.active[cells.second]
    return np.where(both[cells.pair], weight, 0.0)


def strength_slopes(cells: Cells, n_models: int) -> scipy.sparse.csr_array:
    """(C, M) derivatives of the difference of log-strengths by every strength: 1 for `first`, -1 for `second`."""
    models = np.stack([cells.first, cells.second], 1)[cells.pair]
    n = len(models)
    return scipy.sparse.csr_array((np.tile([1.0, -1.0], n), models.ravel(), np.arange(0, 2 * n + 1, 2)), (n, n_models))


def rated_theta(board: Board) -> Float:
    """(M,) log-strengths; +inf, -inf or NaN where the data give no finite one."""
    unrated = np.array([0.0, np.inf, -np.inf, np.nan])[board.connectivity.standing]
    return np.where(board.active, board.theta, unrated)


def battles_per_model(cells: Cells, n_models: int) -> Float:
    """(M,) battles of each model."""
    return per_model(cells.first, cells.second, cells.battles, n_models)


def main_battles(board: Board) -> Float:
    """(M,) battles of the models of the main group.

    Where a resample falls into several groups, these numbers choose the main one, and not the resample's own numbers.
    So the choice is the same in every resample. Otherwise groups of about equal size would take turns.
    """
    battles = per_model(board.cells.first, board.cells.second, board.n, len(board.theta))
    is_main = board.active if board.ridge == 0 else board.connectivity.standing == Standing.IDENTIFIED
    return np.where(is_main, battles, 0.0)
