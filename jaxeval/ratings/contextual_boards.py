"""Boards with covariates ("style control") or a tie model: what else decides a battle, and their refits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from jaxeval.arrays import Bool, Float
from jaxeval.data.cells import Cells
from jaxeval.data.features import Design
from jaxeval.errors import DataError
from jaxeval.execution.host import evaluate_of_choice, fetched
from jaxeval.execution.precision import on_device, one_blas_thread
from jaxeval.execution.shapes import CONTEXTUAL_REFITS, REFITS, drawn_words, padded_size, side_by_side
from jaxeval.kernels import tie_models
from jaxeval.kernels.batch import contextual, refits
from jaxeval.kernels.batch.refits import Solver
from jaxeval.kernels.links import Link
from jaxeval.kernels.solve import Status
from jaxeval.kernels.tie_models import NO_TIES, Response, TieModel
from jaxeval.lazy_names import pd, scipy
from jaxeval.options.boards import Ties
from jaxeval.ratings.boards import (
    Board,
    battle_weights,
    fit_boards,
    fit_terms,
    identified,
    main_battles,
    strength_slopes,
)
from jaxeval.ratings.options import BootstrapOptions, FitOptions
from jaxeval.ratings.pair_refits import pair_problems, table_words
from jaxeval.ratings.refits import BoardRefits, Refitted, lane_form, refit_problem, stages, weights_alike
from jaxeval.ratings.slices import ContextualCells, counts_by_row, make_rows, unit_columns
from jaxeval.ratings.vote_groups import UnitMembers, VoteGroups, is_secure_board, unit_members
from jaxeval.resampling.units import pad
from jaxeval.wording import counted

#: Covariates that move some difference so far have no finite coefficients: odds of 1 in 1e13.
_RUNAWAY = {Link.LOGIT: 30.0, Link.PROBIT: 7.3}
_LANES_AT_ONCE = 32
# A coefficient is told apart from the ratings if this share of its information is left beside them.
_COLLINEAR = 1e-7
_ALONE = VoteGroups()


@dataclass(frozen=True, eq=False, kw_only=True)
class ContextualBoard(Board):
    """One fitted slice with covariates or a tie model; the parameters are M' (padded) log-strengths, D, and t."""

    cells: ContextualCells
    inverse: Float  # (P, P)
    covariates: Design
    penalty: Float  # (P,) the ridge of each parameter as they are found
    free: Bool  # (D + 1,) coefficients that are fitted, and t
    phi: Float  # (P,)
    information_diagonal: Float  # (P,)
    undecided: Bool  # (D,) covariates without a coefficient, held at 0: the models or others decide them
    tie_limit: float  # the value that stands for t in resamples without ties; NaN if all battles are ties
    response: Response

    @property
    def n_features(self) -> int:
        """D."""
        return self.cells.n_features

    def rows(self, drawn: VoteGroups = _ALONE) -> tuple[contextual.ContextualRows, UnitMembers]:
        """Return what is ``drawn``, by default single battles, as rows; made when needed, as they are large."""
        return _rows(self, self.cells, drawn)

    @property
    def slopes(self) -> scipy.sparse.csr_array:
        """(C, M' + D) derivatives of every cell's z by log-strengths and coefficients."""
        of_models = strength_slopes(self.cells, len(self.phi) - 1 - self.n_features)
        return scipy.sparse.hstack([of_models, scipy.sparse.csr_array(self.cells.feature)], format="csr")

    def estimates(self) -> Float:
        """Return (D + 1,) coefficients for one unit of each covariate, infinite or NaN if the data give none; and t."""
        of_context = self.phi[len(self.phi) - 1 - self.n_features :]
        return np.append(unit_coefficients(of_context[None, :-1], self)[0], tie_parameters(of_context[-1:], self))

    def inverse_information(self) -> Float:
        """Return (P, P) pseudo-inverse of the information."""
        return self.inverse

    def scores(self) -> scipy.sparse.csr_array:
        """Return (C, P) derivatives of one battle's log-likelihood in each cell, its weight included."""
        weight = battle_weights(self, self.cells)
        of_z, of_t = (weight * x for x in evaluate_of_choice(tie_models.score, self.response, *self.predictors()))
        of_others = self.slopes * of_z[:, None]
        return scipy.sparse.hstack([of_others, scipy.sparse.csr_array(of_t[:, None])], format="csr")

    def score_variance(self) -> Float:
        """Return (P, P) variance of the sum of all scores if the model is right and battles are independent."""
        square = self.cells.count * battle_weights(self, self.cells) ** 2
        zz, zt, tt = (square * x for x in evaluate_of_choice(tie_models.information, self.response, *self.predictors()))
        slopes = self.slopes
        cross = slopes.T @ zt
        of_others = (slopes.T @ (slopes * zz[:, None])).toarray()
        return np.block([[of_others, cross[:, None]], [cross[None], tt.sum()]])

    def log_likelihood(self) -> float:
        """Return the log-likelihood of rated models' battles: of wins, ties, losses for tie models; NaN if all tie."""
        if self.response.ties != TieModel.HALF and np.isnan(self.tie_limit):
            return float("nan")
        weight = self.cells.count * battle_weights(self, self.cells)
        each = evaluate_of_choice(tie_models.log_likelihood, self.response, *self.predictors())
        return float(np.sum(np.where(weight > 0, weight * each, 0.0)))

    def outcomes(self, z: Float, t: ArrayLike) -> tuple[Float, Float, Float]:
        """Return probabilities of win, tie and loss by predictors ``z`` and the tie parameter, which broadcast."""
        win, tie, loss = evaluate_of_choice(tie_models.probabilities, self.response, z, np.asarray(t, float))
        return win, tie, loss

    def expected(self, difference: Float) -> Float:
        """Return expected results by differences of log-strengths, all covariates equal on both sides."""
        win, tie, _ = self.outcomes(difference, self.estimates()[-1])
        return win + tie / 2

    def predictors(self) -> tuple[Float, Float, Float]:
        """Return target, z and t of every cell."""
        theta, cells = self.theta, self.cells
        z = theta[cells.first[cells.pair]] - theta[cells.second[cells.pair]]
        z = z + cells.feature @ self.phi[len(self.phi) - 1 - self.n_features : -1]
        return cells.target, z, self.phi[-1]


def unit_coefficients(coefficients: Float, fitted: ContextualBoard) -> Float:
    """Return (B, D) coefficients for one unit of the covariates, from those for their values in the rows.

    Infinite where they ran away, NaN where the battles do not determine them.
    """
    cells, far = fitted.cells, _RUNAWAY[fitted.response.link]
    with np.errstate(invalid="ignore"):
        runaway = np.abs(coefficients) * cells.widest > far
        # Covariates that hardly differ have large coefficients, too, but together they move nothing far.
        large = np.flatnonzero(runaway.any(1))
        for start in range(0, len(large), _LANES_AT_ONCE):
            some = large[start : start + _LANES_AT_ONCE]
            runaway[some] &= np.abs(cells.feature @ coefficients[some].T).max(0, initial=0.0)[:, None] > far
        by_unit = np.where(runaway, np.sign(coefficients) * np.inf, coefficients * fitted.covariates.factor)
    return np.where(fitted.undecided, np.nan, by_unit)


def tie_parameters(logarithms: Float, fitted: ContextualBoard) -> Float:
    """Return (B,) tie parameters; in resamples without ties, their limit."""
    return np.where(logarithms == NO_TIES[fitted.response.ties], fitted.tie_limit, logarithms)


def fit_slices(
    slices: Sequence[tuple[pd.Index, Cells]], covariates: Design, options: FitOptions, *, strict: bool = True,
    starts: Sequence[Float] | None = None,
) -> Sequence[Board]:  # fmt: skip
    """Fit every slice (its models and cells), by `fit_contextual_boards` with covariates or a tie model."""
    if options.contextual:
        return fit_contextual_boards(slices, covariates, options, strict)
    return fit_boards(slices, options, starts)


def fit_contextual_boards(
    slices: Sequence[tuple[pd.Index, Cells]], covariates: Design, options: FitOptions, strict: bool = True
) -> list[ContextualBoard]:
    """Fit every slice (its models and cells).

    Args:
        strict: raise an error for what the battles cannot say of covariates and ties; else it goes into ``flags``.
    """
    boards = fit_boards(slices, replace(options, method="dense"))
    fitted = []
    for (models, cells), board in zip(slices, boards, strict=True):
        assert isinstance(cells, ContextualCells)
        if board.active.sum() == 2 and options.ties != "half":  # beside ties, one that alone wins leads without end
            decisive = replace(cells, count=np.where(cells.target == 0.5, 0, cells.count))
            connectivity, active = identified(cells.tables(len(models))[0], decisive.tables(len(models))[1], options)
            board = replace(board, connectivity=connectivity, active=active)
        fit = _fit(board, cells, covariates, options)
        if strict and fit.flags:
            raise DataError(fit.flags[0])
        fitted.append(fit)
    return fitted


def _rows(board: Board, cells: ContextualCells, drawn: VoteGroups) -> tuple[contextual.ContextualRows, UnitMembers]:
    members = unit_members(cells, drawn)
    return make_rows(cells, members, board.pair_weight), members


def _fit(board: Board, cells: ContextualCells, covariates: Design, options: FitOptions) -> ContextualBoard:
    flags, feature_ridge, ties = [], options.feature_ridge, options.ties
    has_features = cells.n_features > 0 and feature_ridge == 0
    undecided = _undecided(board, cells) if has_features else np.zeros(cells.n_features, bool)
    if undecided.any():
        flags.append(_why_undecided(covariates, undecided))
    weight = cells.count * battle_weights(board, cells)
    share = float(weight[cells.target == 0.5].sum() / max(weight.sum(), np.finfo(float).tiny))
    tied = ties != "half"
    if tied and not 0 < share < 1:
        n = int(cells.count[weight > 0].sum())
        flags.append(
            f"{'no' if share == 0 else 'only'} ties among {counted(n, 'battle')} of rated models: no tie model fits"
            if n
            else "no model has a finite rating (of two models, each must win a battle): no tie model fits without a "
            "ridge > 0 (on the command line --ridge)"
        )
    rows, members = _rows(board, cells, _ALONE)
    size, n_features = padded_size(len(board.theta)), cells.n_features
    active = np.zeros(size, bool)
    active[: len(board.theta)] = board.active
    held = np.isinf(feature_ridge)
    of_features = np.zeros(n_features) if held else feature_ridge * covariates.factor**2
    penalty = np.concatenate([np.full(size, options.ridge), of_features, [0.0]])
    free = np.append(~undecided & (not held), tied and 0 < share < 1)
    start = np.zeros(size + n_features + 1)
    start[: len(board.theta)] = board.theta
    start[-1] = _first_tie_parameter(share, ties) if free[-1] else 0.0
    count = counts_by_row(rows, members, cells.count)
    program, terms = contextual.fit_contextual, fit_terms(penalty)
    end, inverse, diagonal = fetched(program, rows, count, start, active, free, options.response, terms)
    phi = np.asarray(end.theta)
    return ContextualBoard.of(
        board, theta=np.where(board.active, phi[: len(board.theta)], 0.0), cells=cells, status=int(end.status),
        n_steps=int(end.n_steps), grad_norm=float(end.grad_norm), covariates=covariates,
        penalty=penalty, free=free, phi=phi, inverse=np.asarray(inverse),
        information_diagonal=np.asarray(diagonal), undecided=undecided,
        tie_limit=np.nan if share == 1 else {"half": 0.0, "davidson": -np.inf, "rao_kupper": 0.0}[ties],
        response=options.response, flags=tuple(flags),
    )  # fmt: skip


def _first_tie_parameter(share: float, ties: Ties) -> float:
    """Return the tie parameter with which models of equal strength have that ``share`` of ties."""
    return float(np.log(2 * share / (1 - share)) if ties == "davidson" else 2 * np.arctanh(share))


def _undecided(board: Board, cells: ContextualCells) -> Bool:
    """Find (D,) covariates that models and the covariates before determine: no battles tell their effects apart."""
    feature, d, m = cells.feature, cells.n_features, len(board.theta)
    first, second = cells.first[cells.pair], cells.second[cells.pair]
    weighted = (cells.count * battle_weights(board, cells))[:, None] * feature
    squares = weighted.T @ feature
    cross = np.stack([np.bincount(first, x, m) - np.bincount(second, x, m) for x in weighted.T], 1, dtype=float)
    n = board.rated_tables()[0]
    with one_blas_thread():  # on a busy machine, several wait for each other
        left = squares - cross.T @ np.linalg.pinv(np.diag(n.sum(1)) - n, rcond=1e-12, hermitian=True) @ cross
    scale = np.sqrt(np.maximum(np.diag(squares), np.finfo(float).tiny))
    left = left / np.outer(scale, scale)
    decided: list[int] = []
    for k in range(d):
        with_it = [*decided, k]
        if np.linalg.eigvalsh(left[np.ix_(with_it, with_it)])[0] >= _COLLINEAR:
            decided = with_it
    return ~np.isin(np.arange(d), decided)


def _why_undecided(covariates: Design, undecided: Bool) -> str:
    names = [repr(name) for name, one in zip(covariates.names, undecided, strict=True) if one]
    its, it = ("its effect", "it") if len(names) == 1 else ("their effects", "them")
    return (
        f"the models and other features determine {' and '.join(names)}: no battle tells {its} apart from those, and "
        f"there is no coefficient. Leave {it} out, or take a feature_ridge > 0 (on the command line --feature-ridge)"
    )


# In turn, each for the lanes that those before it left. A chord that has not converged by then hardly will.
_MAX_STEPS = {Solver.CHORD: 20, Solver.SCALED_CHORD: 30, Solver.NEWTON_CG: 60, Solver.NEWTON: 60}
# The most that a compiled chunk takes for each entry of a lane, and once more for all lanes together.
_BYTES_PER_ENTRY = 20


def contextual_refits(fitted: ContextualBoard, label: str, drawn: VoteGroups, options: BootstrapOptions) -> BoardRefits:
    """Return the refits of a slice called ``label``: battles are drawn, or the clusters of its rows.

    Plain chord steps take only boards that practically no resample separates. Without covariates they take the same
    draws as sums by pair, in a hundredth of the time of rows.
    """
    rows, members = fitted.rows(drawn if drawn.together or drawn.strata else _ALONE)
    draw, _ = members.drawn(unit_columns(members), options.drawn, label)
    size = padded_size(len(fitted.theta))
    moves = np.concatenate([np.arange(size) < len(fitted.theta), fitted.free])
    main, diagonal = pad(main_battles(fitted), (size,)), fitted.information_diagonal
    problem = on_device(refit_problem(draw, rows, fitted.phi, main, fitted.inverse, diagonal, moves))
    # A unit of one battle is never drawn as often as 255 times.
    form = lane_form(options, options.response, np.uint8 if members.units.max() == 1 else np.int32)
    secure = is_secure_board(fitted, drawn.repeating)

    n_rows, n_drawn, square = rows.unit.size, problem.units.size.size + rows.unit.size, len(fitted.penalty) ** 2

    def words(solver: Solver) -> int:
        """Return draws of units and of rows; but for plain chord steps also weights and tables of models."""
        tables = n_rows + (8 if solver == Solver.NEWTON else 2) * square
        return drawn_words(n_drawn, form.dtype) + (0 if solver == Solver.CHORD else tables)

    hungriest = _BYTES_PER_ENTRY * (n_drawn + n_rows + 8 * square)
    ways = stages(_MAX_STEPS, CONTEXTUAL_REFITS, words, hungriest, secure, weights_alike(fitted.cells.weight))
    by_pair = None
    if secure and fitted.n_features == 0:
        by_pair = pair_problems(
            [fitted], [label], [drawn], options,
            start=fitted.phi[None], inverse=fitted.inverse[None], diagonal=diagonal[None],
        )  # fmt: skip
    if by_pair is not None:
        entries = table_words(by_pair[0], Solver.CHORD)
        ways[0] = ways[0]._replace(
            budget=REFITS, words=entries, program=refits.refit, problem=by_pair[0], form=by_pair[1]
        )

    def on_board(refitted: Refitted) -> Refitted:
        """Count a lane whose coefficient runs away as converged: its other parameters are at a limit."""
        coefficients = refitted.parameters[:, len(fitted.phi) - 1 - fitted.n_features : -1]
        ran = np.isinf(unit_coefficients(coefficients, fitted)).any(1)
        at_limit = (refitted.status == Status.STEP_LIMIT) & ran
        return refitted._replace(status=np.where(at_limit, np.int8(Status.CONVERGED), refitted.status))

    return BoardRefits(
        options,
        contextual.refit_contextual,
        problem,
        form,
        ways,
        len(fitted.phi),
        on_board=on_board,
        ridge=fitted.penalty,
        # Covariates that hardly differ hide part of an error from its prediction.
        stricter=4.0 if fitted.n_features else 1.0,
        fixed_bytes=side_by_side() * hungriest,
    )
