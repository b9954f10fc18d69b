"""Bradley-Terry with covariates ("style control") and tie models: ratings next to what else decides a battle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import jax
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from jaxeval.battles import Battles
from jaxeval.blas import one_blas_thread
from jaxeval.bradley_terry import (
    TOLERANCE_LOGIT,
    Board,
    BradleyTerryFit,
    fit_boards,
    fit_result,
    padded_size,
)
from jaxeval.columns import DataError
from jaxeval.contextual_rows import ContextualCells, compress, counts_by_row, make_rows
from jaxeval.features import Design, FeatureLike, design
from jaxeval.gauge import ELO_PER_LOGIT, Gauge
from jaxeval.kernels import batch, tie_models
from jaxeval.precision import double_precision
from jaxeval.quantiles import checked_level
from jaxeval.resampling import Members, cell_members

Float = NDArray[np.float64]

Ties = Literal["half", "davidson", "rao_kupper"]
TIE_MODELS = {"half": tie_models.HALF, "davidson": tie_models.DAVIDSON, "rao_kupper": tie_models.RAO_KUPPER}

#: Of Newton's method.
MAX_STEPS = 200
# A coefficient is told apart from the ratings if this share of its information is left beside them.
_COLLINEAR = 1e-9


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
    rows: Any  # `contextual.Rows`, NumPy arrays
    members: Members
    ridge: Float  # (P,)
    phi: Float  # (P,)
    inverse: Float  # (P, P) pseudo-inverse of the information
    information_diagonal: Float  # (P,)
    covariance: Float  # (P, P) sandwich
    log_likelihood: float


@dataclass(frozen=True, eq=False)
class ContextualFit(BradleyTerryFit):
    """A fit with covariates, a tie model, or both: ratings as in `BradleyTerryFit`, in the presence of the others.

    A rating difference is that of battles in which all covariates are equal on both sides. With ties as half a win it
    gives the expected result s(theta_i - theta_j); with a tie model it gives the odds of a win against a loss.
    """

    context: ContextualSettings
    _contextual: ContextualBoard = field(repr=False)

    @property
    def tie_parameter(self) -> float:
        """t: Davidson's log nu or Rao and Kupper's threshold, logits; NaN where ties are half a win."""
        return float("nan") if self.context.ties == "half" else float(self._contextual.phi[-1])

    @property
    def tie_parameter_standard_error(self) -> float:
        """Sandwich standard error of ``tie_parameter``."""
        variance = self._contextual.covariance[-1, -1]
        return float("nan") if self.context.ties == "half" else float(np.sqrt(variance))

    def coefficients(self, level: float = 0.95) -> pd.DataFrame:
        """A row per covariate, with sandwich errors and intervals; with a tie model t is the last row.

        Columns are ``coefficient`` (logits for one unit), ``standard_error``, ``lower`` and ``upper``; ``odds_ratio``
        with its ends; ``elo``; and ``unit``, what one unit is on the covariate's own scale.
        """
        size = len(self._contextual.phi) - 1 - len(self.context.features)
        error = np.sqrt(np.maximum(np.diag(self._contextual.covariance)[size:], 0))
        half = ndtri((1 + checked_level(level)) / 2) * error
        estimate = self._contextual.phi[size:]
        return self.coefficient_table(error, estimate - half, estimate + half)

    def coefficient_table(self, error: Float, lower: Float, upper: Float) -> pd.DataFrame:
        """`coefficients` with errors and bounds (D + 1,), those of t last."""
        names, scale = list(self.context.features), list(self._contextual.covariates.scale)
        if self.context.ties != "half":
            names, scale = [*names, "tie parameter"], [*scale, np.nan]
        n = len(names)
        estimate = self._contextual.phi[len(self._contextual.phi) - 1 - len(self.context.features) :][:n]
        columns = {"coefficient": estimate, "standard_error": error[:n], "lower": lower[:n], "upper": upper[:n]}
        ratios = {"odds_ratio": estimate, "odds_ratio_lower": lower[:n], "odds_ratio_upper": upper[:n]}
        index = pd.Index(names, name="feature", dtype=object)
        table = pd.DataFrame({**columns, **{name: np.exp(x) for name, x in ratios.items()}}, index)
        return table.assign(elo=ELO_PER_LOGIT * estimate, unit=scale)

    @property
    def log_likelihood(self) -> float:
        """Log-likelihood at the estimate, without ridge terms: of wins, ties and losses for the tie models."""
        return self._contextual.log_likelihood

    def outcome_probabilities(self, model_a: Any, model_b: Any, **features: float) -> pd.Series:
        """``win``, ``tie`` and ``loss`` of ``model_a`` against ``model_b``, and the ``expected`` result.

        Args:
            model_a: a model of the board.
            model_b: its opponent.
            **features: side A's less side B's value of a covariate, in its own unit; 0 unless given.

        Raises:
            ValueError: an unknown model or covariate.
        """
        probabilities = outcome_probabilities(self, self.theta_of(model_a), self.theta_of(model_b), features)
        return pd.Series({name: float(x) for name, x in probabilities.items()})

    def theta_of(self, model: Any) -> float:
        """Log-strength of a model of the board; infinite or NaN if it has no rating."""
        if model not in self.ratings.index:
            raise ValueError(f"no model {model!r} on the board of {len(self.ratings)}")
        return float(self.logits[model])

    @cached_property
    def _inverse(self) -> Float:
        m = len(self._board.theta)
        return self._contextual.inverse[:m, :m]

    @cached_property
    def _sandwich(self) -> Float:
        m = len(self._board.theta)
        return self._contextual.covariance[:m, :m]


def outcome_probabilities(
    fit: ContextualFit, theta_a: ArrayLike, theta_b: ArrayLike, features: dict[str, float],
    coefficients: Float | None = None, tie: ArrayLike | None = None,
) -> dict[str, Float]:  # fmt: skip
    """``win, tie, loss, expected`` by the fit, or by draws (B,) of strengths, ``coefficients`` (B, D) and ``tie``."""
    covariates, n_features = fit._contextual.covariates, len(fit.context.features)
    unknown = [name for name in features if name not in covariates.names]
    if unknown:
        raise ValueError(f"no covariate {unknown[0]!r}; the fit has {', '.join(map(repr, covariates.names)) or 'none'}")
    x = np.array([features.get(name, 0.0) for name in covariates.names]) / covariates.scale
    own = fit._contextual.phi[len(fit._contextual.phi) - 1 - n_features : -1]
    with np.errstate(invalid="ignore"):
        z = np.asarray(theta_a) - np.asarray(theta_b) + (own if coefficients is None else coefficients) @ x
    t = np.asarray(fit._contextual.phi[-1] if tie is None else tie)
    with double_precision():
        given: Any = np.broadcast_arrays(np.asarray(z, float), t)
        win, tie_, loss = map(np.asarray, tie_models.probabilities(TIE_MODELS[fit.context.ties], *given))
    return {"win": win, "tie": tie_, "loss": loss, "expected": win + tie_ / 2}


def checked_ties(battles: Battles, ties: str) -> int:
    """The code of a tie model that the battles allow.

    Raises:
        ValueError: an unknown model.
        DataError: soft targets, or no ties at all.
    """
    if ties not in get_args(Ties):
        raise ValueError(f"ties must be one of {', '.join(map(repr, get_args(Ties)))}, got {ties!r}")
    if ties != "half":
        soft = ~np.isin(battles.target, (0.0, 0.5, 1.0))
        if soft.any():
            raise DataError(
                f"{soft.sum():,} of {len(soft):,} targets are neither 0, 1/2 nor 1 (first in battle "
                f"{int(soft.argmax())}): a tie model needs wins, ties and losses; ties='half' takes soft targets"
            )
    return TIE_MODELS[ties]


def fit_contextual_boards(
    slices: Sequence[tuple[pd.Index, ContextualCells]],
    covariates: Design,
    ridge: float,
    feature_ridge: float,
    ties: Ties,
    reweight: bool,
    labels: Sequence[str],
) -> list[ContextualBoard]:
    """Fit every slice (its models and cells), named by ``labels``."""
    if not (np.isfinite(feature_ridge) and feature_ridge >= 0):
        raise ValueError(f"feature_ridge must be finite and >= 0, got {feature_ridge!r}")
    boards = fit_boards(slices, ridge, reweight)
    fitted = []
    for (_, cells), board, label in zip(slices, boards, labels, strict=True):
        try:
            fitted.append(_fit(board, cells, covariates, ridge, feature_ridge, ties))
        except DataError as error:
            raise DataError(f"{label}: {error}" if label else str(error)) from error
    return fitted


def _fit(
    board: Board,
    cells: ContextualCells,
    covariates: Design,
    ridge: float,
    feature_ridge: float,
    ties: Ties,
) -> ContextualBoard:
    _reject_collinear(board, cells, covariates, feature_ridge)
    members = cell_members(cells)
    rows = make_rows(cells, members, board.pair_weight)
    size, n_features = padded_size(len(board.theta)), cells.feature.shape[1]
    active = np.zeros(size, bool)
    active[: len(board.theta)] = board.active
    penalty = np.concatenate([np.full(size, ridge), np.full(n_features, feature_ridge), [0.0]])
    start = np.zeros(size + n_features + 1)
    start[: len(board.theta)] = board.theta
    start[-1] = _first_tie_parameter(cells, ties)
    count = counts_by_row(rows, members, cells.count)
    with double_precision(), one_blas_thread():
        found = batch.fit_contextual(rows, count, start, active, penalty, TOLERANCE_LOGIT, TIE_MODELS[ties], MAX_STEPS)
        found = jax.device_get(found)
    theta = np.asarray(found.phi)[: len(board.theta)]
    board = board._replace(
        theta=np.where(board.active, theta, 0.0), cells=cells, status=int(found.status),
        n_steps=int(found.n_steps), grad_norm=float(found.grad_norm),
    )  # fmt: skip
    inverse = np.asarray(found.inverse)
    covariance = inverse @ np.asarray(found.outer) @ inverse
    fitted = ContextualBoard(
        board,
        cells,
        covariates,
        rows,
        members,
        penalty,
        np.asarray(found.phi),
        inverse,
        np.asarray(found.diagonal),
        covariance,
        float("nan"),
    )
    return fitted._replace(log_likelihood=float(np.sum(log_likelihoods(fitted, cells, ties))))


def log_likelihoods(fitted: ContextualBoard, cells: ContextualCells, ties: Ties) -> Float:
    """(C,) log-likelihood of every cell at the fit, its weight and battles included; 0 for unrated models' battles."""
    given: Any = cells.target, predictors(fitted, cells), fitted.phi[-1]
    with double_precision():
        each = np.asarray(tie_models.log_likelihood(TIE_MODELS[ties], *given))
    first, second = cells.first[cells.pair], cells.second[cells.pair]
    factor = cells.count * cells.weight
    if fitted.board.pair_weight is not None:
        factor = factor * fitted.board.pair_weight[first, second]
    active = fitted.board.active
    return np.where(active[first] & active[second], factor * each, 0.0)


def predictors(fitted: ContextualBoard, cells: ContextualCells) -> Float:
    """(C,) z of every cell at the fit."""
    theta, n_features = fitted.board.theta, cells.feature.shape[1]
    coefficients = fitted.phi[len(fitted.phi) - 1 - n_features : -1]
    return theta[cells.first[cells.pair]] - theta[cells.second[cells.pair]] + cells.feature @ coefficients


def _first_tie_parameter(cells: ContextualCells, ties: Ties) -> float:
    """What would give models of equal strength the share of ties that there is."""
    if ties == "half":
        return 0.0
    weight = cells.count * cells.weight
    share = float(weight[cells.target == 0.5].sum() / weight.sum())
    if not 0 < share < 1:
        raise DataError(f"{'no' if share == 0 else 'only'} ties among {cells.count.sum():,} battles: no tie model fits")
    return float(np.log(2 * share / (1 - share)) if ties == "davidson" else 2 * np.arctanh(share))


def _reject_collinear(board: Board, cells: ContextualCells, covariates: Design, feature_ridge: float) -> None:
    """An error if the models (and other covariates) decide a covariate: no battles tell their effects apart."""
    d, m = cells.feature.shape[1], len(board.theta)
    if d == 0 or feature_ridge > 0:
        return
    first, second = cells.first[cells.pair], cells.second[cells.pair]
    weight = np.where(board.active[first] & board.active[second], cells.count * cells.weight, 0.0)
    if board.pair_weight is not None:
        weight = weight * board.pair_weight[first, second]
    weighted = weight[:, None] * cells.feature
    own = weighted.T @ cells.feature
    cross = np.stack([np.bincount(first, x, m) - np.bincount(second, x, m) for x in weighted.T], 1)
    n = np.where(board.active[:, None] & board.active, board.n, 0.0)
    left = own - cross.T @ np.linalg.pinv(np.diag(n.sum(1)) - n, rcond=1e-12, hermitian=True) @ cross
    scale = np.sqrt(np.maximum(np.diag(own), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(left / np.outer(scale, scale))
    if values[0] < _COLLINEAR:
        part = np.abs(vectors[:, 0])
        names = [name for name, p in zip(covariates.names, part, strict=True) if p > 0.1 * part.max()]
        raise DataError(
            f"the models and other features decide {' and '.join(map(repr, names))}: their effects cannot be told "
            "apart; leave one out, or take a feature_ridge > 0"
        )


def fit_contextual(
    battles: Battles,
    ridge: float,
    gauge: Gauge,
    base: float,
    reweight: bool,
    features: Sequence[FeatureLike],
    normalize: bool,
    feature_ridge: float,
    ties: Ties,
) -> ContextualFit:
    """`fit_bradley_terry` with covariates or a tie model."""
    checked_ties(battles, ties)
    found = design(battles, features, normalize)
    cells, _ = compress(battles, slice(None), found.matrix)
    (fitted,) = fit_contextual_boards([(battles.models, cells)], found, ridge, feature_ridge, ties, reweight, [""])
    context = ContextualSettings(found.names, normalize, float(feature_ridge), ties)
    return contextual_result(battles, fitted, ridge, gauge, base, reweight, context)


def contextual_result(
    battles: Battles, fitted: ContextualBoard, ridge: float, gauge: Gauge, base: float, reweight: bool,
    context: ContextualSettings,
) -> ContextualFit:  # fmt: skip
    """The public face of a fitted board."""
    plain = fit_result(battles.report, fitted.board, ridge, gauge, base, reweight)
    values = {f.name: getattr(plain, f.name) for f in fields(BradleyTerryFit)}
    return ContextualFit(**values, context=context, _contextual=fitted)
