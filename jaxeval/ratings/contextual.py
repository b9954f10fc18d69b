"""Bradley-Terry with covariates ("style control") and tie models: ratings next to what else decides a battle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike, NDArray

from jaxeval.checks import checked_number
from jaxeval.data.features import Design
from jaxeval.data.report import DataReport
from jaxeval.errors import DataError
from jaxeval.execution.blas import one_blas_thread
from jaxeval.execution.precision import double_precision
from jaxeval.kernels import batch, tie_models
from jaxeval.kernels.solve import Terms
from jaxeval.kernels.tie_models import NO_TIES, TieModel
from jaxeval.ratings.boards import TOLERANCE_LOGIT, Board, battle_weights, fit_boards, padded_size
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit, fit_result
from jaxeval.ratings.contextual_rows import ContextualCells, counts_by_row, make_rows
from jaxeval.ratings.drawn_votes import ClusterRows, Members, cell_members
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.ratings.options import FitOptions, Ties
from jaxeval.ratings.sandwich import score_squares, strength_slopes
from jaxeval.statistics.quantiles import checked_level
from jaxeval.wording import counted, did_you_mean

Float = NDArray[np.float64]

TIE_MODELS = {"half": TieModel.HALF, "davidson": TieModel.DAVIDSON, "rao_kupper": TieModel.RAO_KUPPER}

#: Of Newton's method.
MAX_STEPS = 200
#: Covariates that move some difference by so many logits have no finite coefficients: odds of 1 in 1e13.
RUNAWAY_LOGIT = 30.0
_LANES_AT_ONCE = 32
# A coefficient is told apart from the ratings if this share of its information is left beside them.
_COLLINEAR = 1e-7


class ContextualSettings(NamedTuple):
    """Covariates and tie model of a fit."""

    features: tuple[str, ...]
    normalized: bool
    feature_ridge: float
    ties: Ties


class ContextualBoard(NamedTuple):
    """One fitted slice with covariates or a tie model; the parameters are M' (padded) log-strengths, D, and t."""

    board: Board
    cells: ContextualCells
    covariates: Design
    rows: Any  # `battle_rows.Rows`, NumPy arrays
    members: Members
    ridge: Float  # (P,) of the parameters as they are found
    free: NDArray[np.bool_]  # (D + 1,) coefficients that are fitted, and t
    phi: Float  # (P,)
    inverse: Float  # (P, P) pseudo-inverse of the information
    information_diagonal: Float  # (P,)
    undecided: NDArray[np.bool_]  # (D,) covariates without a coefficient, held at 0: the models or others decide them
    tie_limit: float  # what t is told as in resamples without ties; NaN where there is nothing else
    tie_model: TieModel
    flags: tuple[str, ...]  # what of covariates and ties the battles cannot say
    log_likelihood: float

    def told(self) -> Float:
        """(D + 1,) coefficients of one unit of each covariate, infinite or NaN where the data set none; then t."""
        d = self.cells.feature.shape[1]
        own = self.phi[len(self.phi) - 1 - d :]
        return np.append(tell_coefficients(own[None, :d], self)[0], tell_ties(own[-1:], self))


@dataclass(frozen=True, eq=False)
class ContextualFit(BradleyTerryFit):
    """A fit with covariates, a tie model, or both: ratings as in `BradleyTerryFit`, in the presence of the others.

    A rating difference is that of battles in which all covariates are equal on both sides. Its scale depends on how
    ties are treated. Ratings on different scales must not be compared.

    - As half a win: the log-odds of the expected score, P(win) + P(tie) / 2 = s(theta_i - theta_j). This is the scale
      of fits without a tie model.
    - Davidson: the log-odds of decisive battles, P(win) / P(loss) = exp(theta_i - theta_j). The more ties, the wider
      these ratings are spread: some move by 50 Elo on votes of the Arena, and by 150 Elo where models differ more.
    - Rao and Kupper: the log-odds s(theta_i - theta_j) of a win if the slightest advantage decided every battle. A tie
      is an advantage under the threshold t. These ratings are mostly spread wider, too.

    ``expected_score`` has the ratings on the first scale beside those of a tie model.
    """

    context: ContextualSettings
    _contextual: ContextualBoard = field(repr=False)
    _ties_as_half: BradleyTerryFit | None = field(default=None, repr=False)

    @property
    def expected_score(self) -> BradleyTerryFit:
        """The fit of the same battles with ties as half a win, whose ratings are on the scale of expected scores.

        It is the Bradley-Terry model that is closest to the battles' results in Kullback-Leibler divergence: every
        model's expected scores add up to the points that it took. Davidson's model without covariates has the same
        sums, so that this fit is also the closest one to Davidson's expected scores. With ties as half a win it is this
        fit itself.
        """
        return self if self._ties_as_half is None else self._ties_as_half

    @property
    def tie_parameter(self) -> float:
        """t: Davidson's log nu or Rao and Kupper's threshold, logits; NaN where ties are half a win.

        A slice without ties has it at its limit, -inf or 0.
        """
        return float("nan") if self.context.ties == "half" else float(self._contextual.told()[-1])

    @property
    def tie_parameter_standard_error(self) -> float:
        """Sandwich standard error of ``tie_parameter``; NaN where that is at its limit."""
        variance = self._covariance[-1, -1]
        return float(np.sqrt(variance)) if self._contextual.free[-1] else float("nan")

    def coefficients(self, level: float = 0.95) -> pd.DataFrame:
        """A row per covariate, with sandwich errors and intervals; with a tie model t is the last row.

        Columns are ``coefficient`` (logits for one unit), ``standard_error``, ``lower`` and ``upper``; ``odds_ratio``
        with its ends; ``elo``; and ``unit``, what one unit is on the covariate's own scale.
        """
        size = len(self._contextual.phi) - 1 - len(self.context.features)
        error = np.sqrt(np.maximum(np.diag(self._covariance)[size:], 0))
        error = error * np.append(self._contextual.covariates.factor, 1.0)
        half = scipy.special.ndtri((1 + checked_level(level)) / 2) * error
        estimate = self._contextual.told()
        return self.coefficient_table(error, estimate - half, estimate + half)

    def coefficient_table(self, error: Float, lower: Float, upper: Float) -> pd.DataFrame:
        """`coefficients` with errors and bounds (D + 1,), those of t last."""
        names, unit, d = list(self.context.features), list(self._contextual.covariates.unit), len(self.context.features)
        if self.context.ties != "half":
            names, unit = [*names, "tie parameter"], [*unit, np.nan]
        n = len(names)
        estimate = self._contextual.told()[:n]
        without = ~np.isfinite(estimate) | np.append(np.zeros(d, bool), not self._contextual.free[-1])[:n]
        error, lower, upper = (np.where(without, np.nan, x[:n]) for x in (error, lower, upper))
        columns = {"coefficient": estimate, "standard_error": error, "lower": lower, "upper": upper}
        # An odds ratio of the tie parameter, and its Elo, would mean nothing.
        of_features = np.arange(n) < d
        ratios = {"odds_ratio": estimate, "odds_ratio_lower": lower, "odds_ratio_upper": upper}
        with np.errstate(over="ignore", under="ignore"):
            columns |= {name: np.where(of_features, np.exp(x), np.nan) for name, x in ratios.items()}
        table = pd.DataFrame(columns, pd.Index(names, name="feature", dtype=object))
        return table.assign(elo=np.where(of_features, ELO_PER_LOGIT * estimate, np.nan), unit=unit)

    @property
    def warnings(self) -> list[str]:
        """What the data cannot say, in words."""
        told = self._contextual.told()[: len(self.context.features)]
        runaway = [name for name, x in zip(self.context.features, told, strict=True) if np.isinf(x)]
        messages = [*super().warnings, *self._contextual.flags]
        if runaway:
            messages.append(
                f"{' and '.join(map(repr, runaway))}: the side that has more of it won all its battles, or lost them "
                "all, whatever the models: no finite coefficient (a feature_ridge > 0 gives one)"
            )
        return messages

    @property
    def log_likelihood(self) -> float:
        """Log-likelihood at the estimate, without ridge terms: of wins, ties and losses for the tie models."""
        return self._contextual.log_likelihood

    @property
    def win_probability(self) -> pd.DataFrame:
        """(M, M) expected result of the row's model against the column's, a tie counting half, all covariates even."""
        theta = self.logits.to_numpy()
        found = outcome_probabilities(self, theta[:, None], theta, {})["expected"]
        np.fill_diagonal(found, np.where(np.isnan(theta), np.nan, 0.5))
        return pd.DataFrame(found, self.ratings.index, self.ratings.index)

    def outcome_probabilities(
        self, model_a: Any, model_b: Any, features: Mapping[str, float] | None = None
    ) -> pd.Series:
        """``win``, ``tie`` and ``loss`` of ``model_a`` against ``model_b``, and the ``expected`` result.

        Args:
            model_a: a model of the board.
            model_b: its opponent.
            features: by name, side A's less side B's value of a covariate on its own scale; 0 unless given.

        Raises:
            ValueError: an unknown model or covariate.
        """
        probabilities = outcome_probabilities(self, self.theta_of(model_a), self.theta_of(model_b), features or {})
        return pd.Series({name: float(x) for name, x in probabilities.items()})

    def theta_of(self, model: Any) -> float:
        """Log-strength of a model of the board; infinite or NaN if it has no rating."""
        if model not in self.ratings.index:
            hint = did_you_mean(model, self.ratings.index)
            raise ValueError(f"no model {model!r} on the board of {len(self.ratings)}{hint}")
        return float(self.logits[model])

    @cached_property
    def _inverse(self) -> Float:
        m = len(self._board.theta)
        return self._contextual.inverse[:m, :m]

    @cached_property
    def _sandwich(self) -> Float:
        m = len(self._board.theta)
        return self._covariance[:m, :m]

    @cached_property
    def _covariance(self) -> Float:
        """(P, P) sandwich covariance of all parameters."""
        inverse, cells = self._contextual.inverse, self._contextual.cells
        return np.asarray(inverse @ score_squares(self._scores, cells.count, self._clusters) @ inverse)

    @property
    def _scores(self) -> scipy.sparse.csr_array:
        """(C, P) derivatives of one battle's log-likelihood in each cell, its weight included."""
        fitted = self._contextual
        given: Any = fitted.cells.target, predictors(fitted, fitted.cells), fitted.phi[-1]
        weight = battle_weights(fitted.board, fitted.cells)
        with double_precision():
            score = tie_models.score(fitted.tie_model, *given)
        of_z, of_t = (weight * np.asarray(x) for x in score)
        return scipy.sparse.hstack(
            [_parameter_slopes(fitted) * of_z[:, None], scipy.sparse.csr_array(of_t[:, None])], format="csr"
        )

    @cached_property
    def _model_based(self) -> Float:
        m, inverse = len(self._board.theta), self._contextual.inverse
        return (inverse @ self._score_variance @ inverse)[:m, :m]

    @property
    def _score_variance(self) -> Float:
        """(P, P) variance of the sum of all scores if the model is right and battles are independent."""
        fitted, cells = self._contextual, self._contextual.cells
        given: Any = cells.target, predictors(fitted, cells), fitted.phi[-1]
        with double_precision():
            information = tie_models.information(fitted.tie_model, *given)
        square = cells.count * battle_weights(fitted.board, cells) ** 2
        zz, zt, tt = (square * np.asarray(x) for x in information)
        slopes = _parameter_slopes(fitted)
        cross = slopes.T @ zt
        of_others = (slopes.T @ (slopes * zz[:, None])).toarray()
        return np.block([[of_others, cross[:, None]], [cross[None], tt.sum()]])


def _parameter_slopes(fitted: ContextualBoard) -> scipy.sparse.csr_array:
    """(C, M' + D) derivatives of every cell's z by log-strengths and coefficients."""
    n_models = len(fitted.phi) - 1 - fitted.cells.feature.shape[1]
    return scipy.sparse.hstack(
        [strength_slopes(fitted.cells, n_models), scipy.sparse.csr_array(fitted.cells.feature)], format="csr"
    )


def tell_coefficients(found: Float, fitted: ContextualBoard) -> Float:
    """(B, D) coefficients for one unit of the covariates, from those of the rows.

    Infinite where they ran away, NaN where the battles cannot say.
    """
    feature = fitted.cells.feature
    with np.errstate(invalid="ignore"):
        runaway = np.abs(found) * np.abs(feature).max(0, initial=0.0) > RUNAWAY_LOGIT
        # Covariates that hardly differ have large coefficients, too, but together they move nothing far.
        large = np.flatnonzero(runaway.any(1))
        for some in np.array_split(large, -(-len(large) // _LANES_AT_ONCE) or 1):
            runaway[some] &= np.abs(feature @ found[some].T).max(0, initial=0.0)[:, None] > RUNAWAY_LOGIT
        told = np.where(runaway, np.sign(found) * np.inf, found * fitted.covariates.factor)
    return np.where(fitted.undecided, np.nan, told)


def tell_ties(found: Float, fitted: ContextualBoard) -> Float:
    """(B,) tie parameters, of resamples without ties at its limit."""
    return np.where(found == NO_TIES[fitted.tie_model], fitted.tie_limit, found)


def outcome_probabilities(
    fit: ContextualFit, theta_a: ArrayLike, theta_b: ArrayLike, features: Mapping[str, float],
    coefficients: Float | None = None, tie: ArrayLike | None = None,
) -> dict[str, Float]:  # fmt: skip
    """``win, tie, loss, expected`` by the fit, or by draws (B,) of strengths, ``coefficients`` (B, D) and ``tie``."""
    covariates, n_features = fit._contextual.covariates, len(fit.context.features)
    if not isinstance(features, Mapping):
        raise TypeError(f"features must be values by name, as {{'length': 2.0}}, got {features!r}")
    unknown = [name for name in features if name not in covariates.names]
    if unknown:
        raise ValueError(f"no covariate {unknown[0]!r}; the fit has {', '.join(map(repr, covariates.names)) or 'none'}")
    values = np.array([checked_number(f"feature {name!r}", features.get(name, 0.0)) for name in covariates.names])
    if not np.isfinite(values).all():
        raise ValueError(f"features must be finite, got {features!r}")
    x = values / covariates.unit
    own = fit._contextual.told()
    with np.errstate(invalid="ignore"):
        # A covariate that is even does not matter, whatever its coefficient.
        of_features = np.where(x == 0, 0.0, own[:n_features] if coefficients is None else coefficients) @ x
        z = np.asarray(theta_a) - np.asarray(theta_b) + of_features
    t = np.asarray(own[-1] if tie is None else tie)
    with double_precision():
        given: Any = np.broadcast_arrays(np.asarray(z, float), t)
        win, tie_, loss = map(np.asarray, tie_models.probabilities(TIE_MODELS[fit.context.ties], *given))
    return {"win": win, "tie": tie_, "loss": loss, "expected": win + tie_ / 2}


def fit_contextual_boards(
    slices: Sequence[tuple[pd.Index, ContextualCells]], covariates: Design, options: FitOptions, strict: bool = True
) -> list[ContextualBoard]:
    """Fit every slice (its models and cells).

    Args:
        strict: what battles cannot say of covariates and ties is an error; else that slice has it in its ``flags``.

    Raises:
        DataError: if ``strict``, covariates that the models decide, or a tie model without ties.
    """
    boards = fit_boards(slices, replace(options, method="dense"))
    fitted = []
    for (_, cells), board in zip(slices, boards, strict=True):
        found = _fit(board, cells, covariates, options)
        if strict and found.flags:
            raise DataError(found.flags[0])
        fitted.append(found)
    return fitted


def _fit(board: Board, cells: ContextualCells, covariates: Design, options: FitOptions) -> ContextualBoard:
    flags, feature_ridge, ties = [], options.feature_ridge, options.ties
    has_features = cells.feature.shape[1] > 0 and feature_ridge == 0
    undecided = _undecided(board, cells) if has_features else np.zeros(cells.feature.shape[1], bool)
    if undecided.any():
        flags.append(_why_undecided(covariates, undecided))
    weight = cells.count * battle_weights(board, cells)
    share = float(weight[cells.target == 0.5].sum() / max(weight.sum(), np.finfo(float).tiny))
    tied = ties != "half"
    if tied and not 0 < share < 1:
        n = int(cells.count[weight > 0].sum())
        flags.append(
            f"{'no' if share == 0 else 'only'} ties among {counted(n, 'battle')} of rated models: no tie model fits"
        )
    members = cell_members(cells)
    rows = make_rows(cells, members, board.pair_weight)
    size, n_features = padded_size(len(board.theta)), cells.feature.shape[1]
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
    with double_precision(), one_blas_thread():
        found = batch.fit_contextual(
            rows, count, start, active, free, TIE_MODELS[ties], Terms.of(penalty, TOLERANCE_LOGIT, MAX_STEPS)
        )
        found = jax.device_get(found)
    theta = np.asarray(found.phi)[: len(board.theta)]
    board = board._replace(
        theta=np.where(board.active, theta, 0.0), cells=cells, status=int(found.status),
        n_steps=int(found.n_steps), grad_norm=float(found.grad_norm),
    )  # fmt: skip
    fitted = ContextualBoard(
        board=board,
        cells=cells,
        covariates=covariates,
        rows=rows,
        members=members,
        ridge=penalty,
        free=free,
        phi=np.asarray(found.phi),
        inverse=np.asarray(found.inverse),
        information_diagonal=np.asarray(found.diagonal),
        undecided=undecided,
        tie_limit=np.nan if share == 1 else {"half": 0.0, "davidson": -np.inf, "rao_kupper": 0.0}[ties],
        tie_model=TIE_MODELS[ties],
        flags=tuple(flags),
        log_likelihood=float("nan"),
    )
    if tied and share == 1:
        return fitted
    return fitted._replace(log_likelihood=float(np.sum(log_likelihoods(fitted, cells, ties))))


def log_likelihoods(fitted: ContextualBoard, cells: ContextualCells, ties: Ties) -> Float:
    """(C,) log-likelihood of every cell at the fit, its weight and battles included; 0 for unrated models' battles."""
    given: Any = cells.target, predictors(fitted, cells), fitted.phi[-1]
    with double_precision():
        each = np.asarray(tie_models.log_likelihood(TIE_MODELS[ties], *given))
    weight = cells.count * battle_weights(fitted.board, cells)
    return np.where(weight > 0, weight * each, 0.0)


def predictors(fitted: ContextualBoard, cells: ContextualCells) -> Float:
    """(C,) z of every cell at the fit."""
    theta, n_features = fitted.board.theta, cells.feature.shape[1]
    coefficients = fitted.phi[len(fitted.phi) - 1 - n_features : -1]
    return theta[cells.first[cells.pair]] - theta[cells.second[cells.pair]] + cells.feature @ coefficients


def _first_tie_parameter(share: float, ties: Ties) -> float:
    """What gives models of equal strength that ``share`` of ties."""
    return float(np.log(2 * share / (1 - share)) if ties == "davidson" else 2 * np.arctanh(share))


def _undecided(board: Board, cells: ContextualCells) -> NDArray[np.bool_]:
    """(D,) covariates that the models and the covariates before them decide: no battles tell their effects apart."""
    d, m = cells.feature.shape[1], len(board.theta)
    first, second = cells.first[cells.pair], cells.second[cells.pair]
    weighted = (cells.count * battle_weights(board, cells))[:, None] * cells.feature
    own = weighted.T @ cells.feature
    cross = np.stack([np.bincount(first, x, m) - np.bincount(second, x, m) for x in weighted.T], 1, dtype=float)
    n = board.rated_tables()[0]
    left = own - cross.T @ np.linalg.pinv(np.diag(n.sum(1)) - n, rcond=1e-12, hermitian=True) @ cross
    scale = np.sqrt(np.maximum(np.diag(own), np.finfo(float).tiny))
    left = left / np.outer(scale, scale)
    decided: list[int] = []
    for k in range(d):
        with_it = [*decided, k]
        if np.linalg.eigvalsh(left[np.ix_(with_it, with_it)])[0] >= _COLLINEAR:
            decided = with_it
    return ~np.isin(np.arange(d), decided)


def _why_undecided(covariates: Design, undecided: NDArray[np.bool_]) -> str:
    names = " and ".join(repr(name) for name, one in zip(covariates.names, undecided, strict=True) if one)
    return (
        f"the models and other features decide {names}: effects that cannot be told apart, and no coefficient; leave "
        "it out, or take a feature_ridge > 0"
    )


def contextual_result(
    report: DataReport, fitted: ContextualBoard, options: FitOptions, clusters: ClusterRows | None = None
) -> ContextualFit:
    """The public face of a fitted board."""
    names = fitted.covariates.names
    plain = fit_result(report, fitted.board, options, clusters, names)
    values = {f.name: getattr(plain, f.name) for f in fields(BradleyTerryFit)}
    context = ContextualSettings(names, options.normalize, options.feature_ridge, options.ties)
    return ContextualFit(**values, context=context, _contextual=fitted)
