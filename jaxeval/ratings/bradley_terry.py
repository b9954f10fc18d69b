"""Bradley-Terry ratings by (regularised) maximum likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.data.battles import Battles, as_battles
from jaxeval.data.features import FeatureLike, design
from jaxeval.kernels.solve import Status
from jaxeval.ratings.boards import fit_boards
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit, fit_result
from jaxeval.ratings.contextual import contextual_result, fit_contextual_boards
from jaxeval.ratings.gauge import ELO_PER_LOGIT, Gauge
from jaxeval.ratings.options import FitOptions, Ties
from jaxeval.ratings.slices import whole_board
from jaxeval.ratings.sparse_boards import FitMethod


def fit_bradley_terry(
    battles: Battles | Any,
    ridge: float = 0.0,
    *,
    gauge: Gauge = "mean",
    base: float = 1000.0,
    reweight: bool = False,
    features: Sequence[FeatureLike] = (),
    normalize: bool = True,
    feature_ridge: float = 0.0,
    ties: Ties = "half",
    cluster: str | None = None,
    start: BradleyTerryFit | pd.Series | None = None,
    method: FitMethod = "auto",
) -> BradleyTerryFit:
    """Bradley-Terry ratings by maximum likelihood.

    Maximises sum_b w_b [y_b log s(d_b) + (1 - y_b) log s(-d_b)] - ridge ||theta||^2 with d_b = theta_i - theta_j
    (DOI 10.2307/2334029; a tie is y = 1/2). With ``features`` x_b, d_b = theta_i - theta_j + x_b . coefficient, less
    feature_ridge ||coefficient||^2. rating = base + (400 / ln 10) theta.

    Args:
        battles: `Battles`, or a table with the standard columns.
        ridge: >= 0, coefficient of the squared norm. With 0, models that the data cannot place get infinite or
            NaN ratings and are named in ``warnings``.
        gauge: "mean", "votes" (mean weighted by battles), or (model, rating) to hold a model at a rating.
        base: the mean rating of the first two gauges.
        reweight: inverse-pair-frequency weights: each battle counts 1 / max(battles of its pair, 50).
        features: covariates ("style control"): columns of differences, side A less side B; pairs of columns; or
            `position_advantage`, `same_group`.
        normalize: divide columns by their root mean square over all battles.
        feature_ridge: >= 0, of the normalised coefficients; infinite to hold them at 0.
        ties: "half" a win; or a model of ties, "davidson" or "rao_kupper". A model of ties has ratings on another
            scale, see `ContextualFit`; its ``expected_score`` has those on the scale of "half".
        cluster: column of the clusters (prompts, voters, sessions) that ``standard_errors`` and ``covariance`` take as
            independent, in place of battles; the ratings stay what they are.
        start: a previous fit, or its ratings (Elo) by model, to start from: the same ratings in fewer steps. Models
            that it does not rate start at its mean. Not for fits with features or a tie model.
        method: "dense", on (M, M) tables; "sparse", on the graph of pairs, which takes memory for the pairs only; or
            "auto", which chooses by the number of models. Features and tie models are dense.

    Returns:
        The fit; a `ContextualFit` with features or a tie model.

    Raises:
        ValueError: a negative ridge, a ``feature_ridge`` without features, or an impossible gauge.
        TypeError: ``features`` is no list of covariates.
        DataError: ``battles`` is a table that cannot be read, a feature is missing or undone by the models, or
            ``cluster`` names no column, or one with missing values.
    """
    given = locals()  # the options, which are not listed again
    battles = as_battles(battles)
    options = FitOptions.of(given).checked(battles)
    if options.contextual and start is not None:
        raise ValueError("start= is for fits without features and tie models")
    return _fit(battles, options, None if start is None else _start(start, battles.models))


def _fit(battles: Battles, options: FitOptions, start: NDArray[np.float64] | None = None) -> BradleyTerryFit:
    covariates = design(battles, options.features, options.normalize)
    cells, clusters = whole_board(battles, covariates, options)
    slices: Any = [(battles.models, cells)]
    if options.contextual:
        (fitted,) = fit_contextual_boards(slices, covariates, options)
        fit = contextual_result(battles.report, fitted, options, clusters)
        half = None if options.ties == "half" else _fit(battles, replace(options, ties="half", method="dense"))
        return replace(fit, _ties_as_half=half)
    (board,) = fit_boards(slices, options, None if start is None else [start])
    if start is not None and board.status != Status.CONVERGED:  # ratings on another scale, say
        (board,) = fit_boards(slices, options)
    return fit_result(battles.report, board, options, clusters)


def _start(start: BradleyTerryFit | pd.Series, models: pd.Index) -> NDArray[np.float64]:
    """(M,) log-strengths to start from, logits."""
    ratings = start.ratings if isinstance(start, BradleyTerryFit) else start
    if not isinstance(ratings, pd.Series) or not ratings.index.is_unique:
        raise TypeError(f"start must be a fit or a Series of ratings by model, each once, got {start!r}")
    try:
        theta = ratings.reindex(models).to_numpy(np.float64, na_value=np.nan) / ELO_PER_LOGIT
    except (TypeError, ValueError) as error:
        raise TypeError(f"start must hold ratings, which are numbers: {error}") from error
    known = np.isfinite(theta)
    return np.where(known, theta - theta[known].mean(), 0.0) if known.any() else np.zeros(len(models))
