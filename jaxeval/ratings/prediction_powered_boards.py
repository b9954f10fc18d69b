"""Boards of few human outcomes and many of a judge: lam, the sums that are fitted, their fit and their refits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Float, as_leaf
from jaxeval.data.verdict_rows import VerdictCells
from jaxeval.execution.precision import double_precision, one_blas_thread
from jaxeval.execution.shapes import padded_pairs, padded_size
from jaxeval.kernels.batch.prediction_powered import (
    Form,
    PairSums,
    Powered,
    PoweredData,
    Tuning,
    fit_powered,
    refit_powered,
    tune,
)
from jaxeval.kernels.batch.refits import Solver
from jaxeval.kernels.connectivity import Standing
from jaxeval.kernels.solve import Status
from jaxeval.lazy_names import jax, pd, scipy
from jaxeval.ratings.boards import MOST_INVERTED, Board, fit_terms, strength_slopes
from jaxeval.ratings.connectivity import analyse, per_model
from jaxeval.ratings.options import BootstrapOptions, FitOptions
from jaxeval.ratings.pair_refits import MAX_STEPS
from jaxeval.ratings.refits import BoardRefits, lane_refits, refit_problem
from jaxeval.ratings.vote_groups import VoteGroups, is_secure_board, vote_draws
from jaxeval.resampling.units import pad
from jaxeval.statistics.comparison import check_square
from jaxeval.wording import counted, named

# lam and the strengths that it is chosen by are found in turns; lam moves little after the first turn.
_TURNS, _SETTLED = 20, 1e-9
_FIRST_LAM = 0.5
# The ridge of the judge's own strengths, which makes all of them finite.
_JUDGE_RIDGE = 0.5


@dataclass(frozen=True, eq=False, kw_only=True)
class PoweredBoard(Board):
    """One fitted slice, of effective battles and points; M' is the number of models with padding, P' that of pairs."""

    cells: VerdictCells
    inverse: Float  # (M', M')
    form: Form
    tuning: Tuning  # (P',), (D, M'); NumPy arrays
    lam: float
    gain: float  # variance without the judge, divided by that with it
    start: Float  # (M',)
    information_diagonal: Float  # (M',)

    def scores(self) -> scipy.sparse.csr_array:
        """Return (C, M) what a battle of each cell adds to the gradient: its residual, and lam times the judge's."""
        cells, n_pairs = self.cells, len(self.cells.first)
        slopes = strength_slopes(cells, len(self.theta))
        p = self.expected(slopes @ self.theta)
        count = cells.count * cells.used
        n, n_others = (np.bincount(cells.pair, count * sample, n_pairs) for sample in (cells.labelled, ~cells.labelled))
        centre, ratio = np.asarray(self.tuning.judge_mean)[:n_pairs], n / np.maximum(n_others, 1)
        known = n_others > 0
        if self.form == Form.POOLED:
            known, ratio = np.full(n_pairs, n_others.any()), np.full(n_pairs, n.sum() / max(n_others.sum(), 1))
        centre = p if self.form == Form.POOLED else centre[cells.pair]
        judge = np.where(known[cells.pair], cells.verdict - centre, 0.0)
        of_people = cells.target - p - self.lam * judge
        residual = np.where(cells.labelled, of_people, self.lam * ratio[cells.pair] * judge)
        both = self.active[cells.first] & self.active[cells.second]
        return scipy.sparse.csr_array(slopes * np.where(both[cells.pair] & cells.used, residual, 0.0)[:, None])

    def score_variance(self) -> Float:
        """Give (M, M) variance of the sum of all scores if battles are independent; no model of the judge is needed."""
        scores = self.scores()
        return np.asarray((scores.T @ scores.multiply(self.cells.count[:, None])).toarray())


def _moments(cells: VerdictCells) -> list[Float]:
    """Return (cells,) each: what one battle of each cell adds to the sums of `PairSums.of`."""
    y, f = np.where(cells.labelled, cells.target, 0.0), cells.verdict
    return [cells.used * x for x in (np.ones(len(y)), y, f, y**2, y * f, f**2)]


def fit_powered_board(
    models: pd.Index, cells: VerdictCells, options: FitOptions, form: Form, lam: float | None = None,
    difference: tuple[int, int] | None = None,
) -> PoweredBoard:  # fmt: skip
    """Fit one slice: its models and cells.

    Args:
        models: (M,) that people judged.
        cells: of both samples.
        options: ridge.
        form: how the samples are compared.
        lam: weight of the judge; None for the best one.
        difference: models whose difference lam is to be best for; None for all models at once.

    Raises:
        ValueError: too many models for tables of all pairs.
        DataError: no maximum was found even without the judge.
    """
    m, n_real = len(models), len(cells.first)
    check_square(m, MOST_INVERTED, "the covariance that lam is chosen by", "the battles of the models that you compare")
    size = padded_size(m)
    n_pairs = padded_pairs(n_real + 1, size)
    pair = cells.by_sample(n_pairs).pair
    sums = PairSums.of([np.bincount(pair, cells.count * x, 2 * n_pairs)[:, None] for x in _moments(cells)])
    first, second = (pad(x, (n_pairs,)) for x in (cells.first, cells.second))
    fixed = np.nan if lam is None else lam
    now, probability, worth = _FIRST_LAM if lam is None else lam, np.full(n_pairs, 0.5), np.zeros(n_pairs)
    moves = np.zeros((size if difference is None else 1, size))
    judge_mean = _judge_mean(cells, sums, first, second, size)

    def tuning() -> Tuning:
        return Tuning(
            first=as_leaf(first, np.int32), second=as_leaf(second, np.int32),
            probability=as_leaf(probability, np.float64), judge_mean=as_leaf(judge_mean, np.float64),
            moves=as_leaf(moves, np.float64), worth=as_leaf(worth, np.float64),
        )  # fmt: skip

    for _ in range(_TURNS):
        with double_precision(), one_blas_thread():
            powered = _tuned(sums, form, tuning(), now)
            board, inverse, diagonal = _fitted(models, cells, powered, size, options)
        moves = inverse if difference is None else (inverse[difference[0]] - inverse[difference[1]])[None]
        theta = pad(board.theta, (size,))
        active = pad(board.active, (size,))
        probability = board.expected(theta[first] - theta[second])
        worth = np.where(active[first] & active[second], ((moves[:, first] - moves[:, second]) ** 2).sum(0), 0.0)
        with double_precision():
            best = _tuned(sums, form, tuning(), fixed)
        before, now = now, float(best.lam[0])
        if abs(now - before) < _SETTLED or board.status != Status.CONVERGED:
            break
    known = bool(np.asarray(sums.n).any())
    return PoweredBoard.of(
        board, form=form, tuning=tuning(), lam=float(powered.lam[0]) if known else np.nan,
        gain=float(best.gain[0]) if known else np.nan, start=theta, inverse=inverse, information_diagonal=diagonal,
        flags=_flags(board),
    )  # fmt: skip


def _judge_mean(cells: VerdictCells, sums: PairSums, first: NDArray[Any], second: NDArray[Any], size: int) -> Float:
    """Return (P',) the mean outcome that the judge gives to each pair, by strengths fitted to the judge's verdicts.

    If a pair has few verdicts, their own mean lies too near to them: they would seem to vary less than they do, and lam
    and worth would come out too large.
    """
    n_real = len(cells.first)
    n, points = (np.asarray(x)[:n_real, 0] for x in (sums.n + sums.n_others, sums.judge + sums.judge_others))
    tables = np.zeros((2, size, size))
    cells.fill_tables(n, points, *tables)
    every = np.full(size, Standing.IDENTIFIED, np.int8)
    terms = fit_terms(_JUDGE_RIDGE)
    with double_precision(), one_blas_thread():
        end, *_ = jax.device_get(fit_powered(*tables, every, np.ones(size, bool), terms))
    return np.asarray(1 / (1 + np.exp(end.theta[second] - end.theta[first])))


def _tuned(sums: PairSums, form: Form, tuning: Tuning, lam: float) -> Powered:
    """Return `Powered` as NumPy arrays (P', 1)."""
    tuned: Powered = jax.device_get(tune(sums, form, tuning, as_leaf(lam, np.float64)))
    return tuned


def _fitted(
    models: pd.Index, cells: VerdictCells, powered: Powered, size: int, options: FitOptions
) -> tuple[Board, Float, Float]:
    """Return the board, and its (M', M') pseudo-inverse and (M',) diagonal of the information."""
    m, n_real = len(models), len(cells.first)
    n, points = (np.asarray(x)[:n_real, 0] for x in (powered.n, powered.points))
    tables = np.zeros((2, size, size))
    cells.fill_tables(n, points, *tables)
    met = analyse(tables[0, :m, :m], tables[0, :m, :m])
    standing = pad(met.standing, (size,))
    standing[m:] = Standing.INCOMPARABLE
    terms = fit_terms(options.ridge)
    judged = cells.by_people(m) > 0
    end, standing_at_end, inverse, diagonal = jax.device_get(
        fit_powered(*tables, standing, pad(judged, (size,)), terms)
    )
    standing = np.asarray(standing_at_end)[:m]
    active = judged & ((standing == Standing.IDENTIFIED) | (options.ridge > 0))
    connectivity = met._replace(standing=standing)
    board = Board.at(
        end, models, cells, connectivity=connectivity, active=active, ridge=options.ridge, n=n, wins=points
    )
    return board, inverse, diagonal


def _flags(board: Board) -> tuple[str, ...]:
    """Return a warning about points that no battles could give."""
    cells = board.cells
    outside = (board.wins < -1e-9) | (board.wins > board.n + 1e-9)
    if not outside.any():
        return ()
    pairs = [f"{board.models[cells.first[p]]} and {board.models[cells.second[p]]}" for p in np.flatnonzero(outside)]
    return (
        f"in {len(pairs):,} of {counted(len(outside), 'pair')} the judge's verdicts move the points beyond what human "
        f"battles can give, as there are few human battles: {named(pairs)}",
    )


# Numbers that a lane has for each entry that is drawn, each pair and each pair of models, at most.
_PER_ENTRY, _PER_PAIR, _TABLES = 2, 24, 4


def powered_refits(
    fitted: PoweredBoard, label: str, drawn: VoteGroups, options: BootstrapOptions, lam: float | None
) -> BoardRefits:
    """Return the refits of a slice called ``label``; ``lam`` is None where every resample takes its best one.

    Chord steps take only boards on which no resample leaves a model without a strength.
    """
    cells, m, size = fitted.cells, len(fitted.theta), len(fitted.start)
    n_pairs = len(np.asarray(fitted.tuning.first))
    draw, entries, _ = vote_draws(cells.by_sample(n_pairs), drawn, options.drawn, label, 2 * n_pairs)
    main = per_model(cells.first, cells.second, fitted.n, m)
    data = PoweredData(
        entries=entries.sums(_moments(cells)),
        position=as_leaf(cells.positions(size, n_pairs - 1), np.int32),
        tuning=fitted.tuning,
        lam=as_leaf(np.nan if lam is None else lam, np.float64),
    )
    problem = refit_problem(
        draw,
        data,
        fitted.start,
        main=pad(np.where(fitted.active, main, 0.0), (size,)),
        inverse=fitted.inverse,
        diagonal=fitted.information_diagonal,
        moves=np.arange(size) < m,
    )
    # By the human outcomes alone; a board with clusters is not secure, as clusters also hold the judge's verdicts.
    secure = drawn.repeating is None and is_secure_board(fitted, None, cells.of_people)
    held = _PER_ENTRY * (draw.units.size.size + data.entries.shares[0].size) + _PER_PAIR * n_pairs

    def words(solver: Solver) -> int:
        return held + (_TABLES if solver == Solver.NEWTON else 1) * size**2

    return lane_refits(options, refit_powered, fitted.form, problem, MAX_STEPS, words, secure=secure)
