"""Boards: the cells of a slice, what they identify, and its fitted log-strengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from jaxeval.arrays import Bool, Float, as_leaf
from jaxeval.data.cells import Cells
from jaxeval.execution.host import evaluate_of_choice
from jaxeval.execution.precision import one_blas_thread
from jaxeval.execution.shapes import padded_size
from jaxeval.kernels import dense_solve, links
from jaxeval.kernels.connectivity import Standing
from jaxeval.kernels.kinds import Array
from jaxeval.kernels.links import Link
from jaxeval.kernels.pair_tables import PairTable
from jaxeval.kernels.solve import Solution, Terms
from jaxeval.lazy_names import pd, scipy
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


class Linear(NamedTuple):
    """Log-likelihoods of one judgment of each of C cells: weight (target log F(z) + (1 - target) log F(-z))."""

    slopes: scipy.sparse.csr_array  # (C, P) derivatives of z by all parameters
    weight: Float  # (C,) 0 where a judgment is not used
    target: Float  # (C,)
    z: Float  # (C,)


@dataclass(frozen=True, eq=False)
class Board:
    """One fitted slice: what its battles identify, log-strengths in the mean-zero gauge, and their likelihood.

    The likelihood is that of Bradley and Terry, or of Thurstone. A kind of boards says what differs; its log-strengths
    are the first M of P parameters.
    """

    models: pd.Index
    cells: Cells
    connectivity: Connectivity
    active: Bool  # (M,) models with a finite rating
    theta: Float  # (M,) 0 for inactive models
    status: int
    n_steps: int
    grad_norm: float
    ridge: float
    n: Float = field(default_factory=lambda: _NO_PAIR)  # (P,) weight of the battles of each pair
    wins: Float = field(default_factory=lambda: _NO_PAIR)  # (P,) the part of it that the pair's first model won
    pair_weight: Float | None = None  # (P,) the factor that `n` and `wins` contain
    link: Link = Link.LOGIT
    graph: WideGraph | None = None  # of the sparse method
    inverse: Float | None = None  # (P', P') pseudo-inverse of the information, with padding, where the fit brings it
    flags: tuple[str, ...] = ()  # what the battles cannot say, in words

    @classmethod
    def at(cls, end: Solution, models: pd.Index, cells: Cells, active: Bool, **further: Any) -> Self:
        """Return the board where an iteration ended, with ``further`` fields."""
        theta = np.where(active, np.asarray(end.theta)[: len(models)], 0.0)
        further |= {"status": int(end.status), "n_steps": int(end.n_steps), "grad_norm": float(end.grad_norm)}
        return cls(models=models, cells=cells, active=active, theta=theta, **further)

    @classmethod
    def of(cls, board: Board, **further: Any) -> Self:
        """Return a ``board`` as one of this kind, with ``further`` fields."""
        return cls(**{**vars(board), **further})

    @property
    def method(self) -> Literal["dense", "sparse"]:
        """How it was fitted."""
        return "dense" if self.graph is None else "sparse"

    @property
    def is_plain(self) -> bool:
        """Whether nothing but strengths decides, and a tie is half a win."""
        return type(self) is Board

    def rated_tables(self) -> tuple[Float, Float]:
        """Return (M, M) battle weights and wins among the models with a finite rating.

        Raises:
            ValueError: too many models for tables.
        """
        _check_room([self])
        n, wins = np.zeros((2, len(self.theta), len(self.theta)))
        self.cells.fill_tables(self.n, self.wins, n, wins)
        _leave_out(~self.active, n, wins)
        return n, wins

    def inverse_information(self) -> Float:
        """Return the pseudo-inverse of the information, as a rule (M, M) of log-strengths alone.

        Raises:
            ValueError: too many models for tables.
        """
        m = len(self.theta)
        return (inverse_information([self])[0][0] if self.inverse is None else self.inverse)[:m, :m]

    def linear(self) -> Linear:
        """Return the likelihood of each cell."""
        slopes = strength_slopes(self.cells, len(self.theta))
        return Linear(slopes, battle_weights(self, self.cells), self.cells.target, slopes @ self.theta)

    def scores(self) -> scipy.sparse.csr_array:
        """Return the (C, P) derivatives of one judgment's log-likelihood in each cell, its weight included."""
        slopes, weight, target, z = self.linear()
        return slopes * (weight * self._by_link(links.score, target, z))[:, None]

    def score_variance(self) -> Float:
        """Return the (P, P) variance of the sum of all scores if the model is right and judgments are independent."""
        slopes, weight, target, z = self.linear()
        spread = slopes * (weight * np.sqrt(self._by_link(links.information, target, z)))[:, None]
        return np.asarray((spread.T @ spread.multiply(self.cells.count[:, None])).toarray())

    def log_likelihood(self) -> float:
        """Return the log-likelihood of the battles of models with a finite rating, without ridge terms."""
        cells = self.cells
        both = self.active[cells.first] & self.active[cells.second]
        target = self.wins / np.where(self.n > 0, self.n, 1.0)
        each = self._by_link(links.log_likelihood, target, self.theta[cells.first] - self.theta[cells.second])
        return float(self.n[both] @ each[both])

    def expected(self, difference: Float) -> Float:
        """Return the expected results of two models, a tie counting half, by differences of their strengths."""
        return self._by_link(links.probability, difference)

    def _by_link(self, function: Callable[..., Array], *values: Float) -> Float:
        """Return what a function of `kernels.links` gives."""
        values_by_link: Float = evaluate_of_choice(function, self.link, *values)
        return values_by_link


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
        n, wins = (x if factor is None else x * factor for x in cells.pair_sums())
        fit = _fit_sparse if resolved(options.method, len(models)) == "sparse" else _fit_dense
        end, further = fit(len(models), cells, n, wins, options, None if starts is None else starts[s])
        further |= {"pair_weight": factor, "ridge": options.ridge, "link": options.response.link}
        boards.append(Board.at(end, models, cells, n=n, wins=wins, **further))
    return boards


def _fit_dense(
    m: int, cells: Cells, pair_n: Float, pair_wins: Float, options: FitOptions, start: Float | None
) -> tuple[Solution, dict[str, Any]]:
    """Fit on (M, M) tables, on the host: one fit takes less time there than a program for it takes to compile."""
    if options.penalty == "firth":
        check_square(m, MOST_INVERTED, "the inverse that Firth's penalty needs", 'penalty="none"')
    n, wins = np.zeros((2, m, m))
    cells.fill_tables(pair_n, pair_wins, n, wins)
    connectivity, active = identified(n, wins, options)
    _leave_out(~active, n, wins)
    problem = _pair_table(n, wins), as_leaf(active, np.bool_), fit_terms(options.ridge)
    begin = None if start is None else as_leaf(start, np.float64)
    with np.errstate(all="ignore"), one_blas_thread():
        if options.penalty == "firth":
            end = dense_solve.newton_firth(*problem, begin)
        else:
            end = dense_solve.newton_on_host(options.response.link, *problem, begin)
    return end, {"connectivity": connectivity, "active": active}


def _pair_table(n: Float, wins: Float) -> PairTable:
    """Return the (M, M) tables for kernels, which compute on the host then."""
    return PairTable(as_leaf(n, np.float64), as_leaf(wins.sum(1), np.float64), as_leaf(wins, np.float64))


def identified(n: Float, wins: Float, options: FitOptions) -> tuple[Connectivity, Bool]:
    """Return what (M, M) tables identify, and (M,) models with a finite rating.

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
    """Return the terms of a fit of the full data, with a ridge for all parameters or one for each."""
    return Terms.of(ridge, TOLERANCE_LOGIT, _MAX_NEWTON_STEPS)


def _fit_sparse(
    m: int, cells: Cells, n: Float, wins: Float, options: FitOptions, start: Float | None
) -> tuple[Solution, dict[str, Any]]:
    """Fit on the graph of pairs."""
    connectivity, end, graph = fit_sparse(cells, n, wins, m, fit_terms(options.ridge), start, options.response.link)
    active = (connectivity.standing == Standing.IDENTIFIED) | (options.ridge > 0)
    return end, {"connectivity": connectivity, "active": active, "graph": graph}


def _leave_out(models: Bool, *tables: Float) -> None:
    """Write zeros into the rows and columns of ``models`` (M,)."""
    for table in tables if models.any() else ():
        table[np.flatnonzero(models)] = table[:, np.flatnonzero(models)] = 0


def _check_room(boards: Sequence[Board]) -> None:
    """Raise an error if a board has too many models for tables."""
    widest = max(len(board.theta) for board in boards)
    check_square(widest, MOST_INVERTED, "the covariance of a fit", "a bootstrap's standard_errors")


def inverse_information(boards: Sequence[Board]) -> tuple[Float, Float]:
    """Return (S, M', M') pseudo-inverse and (S, M') diagonal of the information of boards; M' is padded.

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
    """Invert the information (P, P) among what ``moves``, at right angles to the ``gauge`` (U, P); 0 elsewhere."""
    moved, inverse = np.flatnonzero(moves), np.zeros(information.shape)
    if len(moved) and np.isfinite(information[np.ix_(moved, moved)]).all():
        with one_blas_thread():
            basis = scipy.linalg.null_space(gauge[:, moved]) if gauge.any() else np.eye(len(moved))
            within = basis.T @ information[np.ix_(moved, moved)] @ basis
            inverse[np.ix_(moved, moved)] = basis @ np.linalg.pinv(within, hermitian=True) @ basis.T
    return inverse


def weight_scale(cells: Cells, factor: Float | None) -> float:
    """Return the factor that divides weights so that their sum is that of their squares; 1 without weights.

    A penalty adds battles, and weights are no numbers of battles: a factor in all of them must change nothing. Then
    they add up to as many equal weights as would say as much (Kish 1965).
    """
    weight = cells.weight if factor is None else cells.weight * factor[cells.pair]
    total = float(cells.count @ weight)
    return float(cells.count @ weight**2) / total if total > 0 else 1.0


def battle_weights(board: Board, cells: Cells) -> Float:
    """Return (C,) weight of one battle of each of the ``cells``, its pair's factor included; 0 for unrated models'."""
    weight = cells.weight
    if board.pair_weight is not None:
        weight = weight * board.pair_weight[cells.pair]
    both = board.active[cells.first] & board.active[cells.second]
    return np.where(both[cells.pair], weight, 0.0)


def strength_slopes(cells: Cells, n_models: int) -> scipy.sparse.csr_array:
    """Return (C, M) derivatives of the difference of log-strengths by each strength: 1 for `first`, -1 for `second`."""
    models = np.stack([cells.first, cells.second], 1)[cells.pair]
    n = len(models)
    return scipy.sparse.csr_array((np.tile([1.0, -1.0], n), models.ravel(), np.arange(0, 2 * n + 1, 2)), (n, n_models))


def rated_theta(board: Board) -> Float:
    """Return (M,) log-strengths; +inf, -inf or NaN where the data give no finite one."""
    unrated = np.array([0.0, np.inf, -np.inf, np.nan])[board.connectivity.standing]
    return np.where(board.active, board.theta, unrated)


def battles_per_model(cells: Cells, n_models: int) -> Float:
    """Return (M,) battles of each model."""
    return per_model(cells.first, cells.second, cells.battles, n_models)


def main_battles(board: Board) -> Float:
    """Return (M,) battles of the models of the main group.

    Where a resample falls into several groups, these numbers choose the main one, and not the resample's own numbers.
    So the choice is the same in every resample. Otherwise groups of about equal size would take turns. Weights are
    rounded so that sums of them are exact: groups of one weight are told apart alike, in whatever order it is added up.
    """
    battles = per_model(board.cells.first, board.cells.second, board.n, len(board.theta))
    is_main = board.active if board.ridge == 0 else board.connectivity.standing == Standing.IDENTIFIED
    unit = 2 * np.spacing(battles.sum())
    return np.where(is_main, np.round(battles / unit) * unit, 0.0)
