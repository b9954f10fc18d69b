"""Bradley-Terry ratings by (regularised) maximum likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
import pandas as pd

from jaxeval.arrays import Float
from jaxeval.data.battles import Battles, as_battles
from jaxeval.data.features import FeatureLike, design
from jaxeval.execution.signatures import spelled_out
from jaxeval.kernels.solve import Status
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit
from jaxeval.ratings.contextual_boards import fit_slices
from jaxeval.ratings.contextual_fit import board_fit
from jaxeval.ratings.gauge import ELO_PER_UNIT
from jaxeval.ratings.options import FitArguments, FitOptions
from jaxeval.ratings.slices import whole_board


@spelled_out(FitOptions)
def fit_bradley_terry(
    battles: Battles | Any,
    ridge: float = 0.0,
    *,
    features: Sequence[FeatureLike] = (),
    start: BradleyTerryFit | pd.Series | None = None,
    **options: Unpack[FitArguments],
) -> BradleyTerryFit:
    """Bradley-Terry ratings by maximum likelihood.

    Maximises sum_b w_b [y_b log F(d_b) + (1 - y_b) log F(-d_b)] - ridge ||theta||^2 with d_b = theta_i - theta_j
    and F the logistic function (DOI 10.2307/2334029; a tie is y = 1/2). With ``features`` x_b, d_b = theta_i - theta_j
    + x_b . coefficient, less feature_ridge ||coefficient||^2. rating = base + (400 / ln 10) theta.

    With ``link="probit"`` F is the normal distribution function: Thurstone's Case V (DOI 10.1037/h0070288; Mosteller
    1951, DOI 10.1007/BF02313422). theta is then in probits, and rating = base + (400 / ln 10) 1.702 theta.

    With ``penalty="firth"`` it maximises the log-likelihood + 1/2 log det of the information (Firth 1993, DOI
    10.1093/biomet/80.1.27; Kosmidis and Firth 2009, DOI 10.1093/biomet/asp055): the bias of order 1 / battles is gone,
    and all models that met, directly or through others, have finite ratings, undefeated and winless ones too. It is
    what R's BradleyTerry2 does with ``br = TRUE``.

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
        ties: "half": a tie counts half a win; "davidson" or "rao_kupper": a tie model. Its ratings are on another
            scale, see `ContextualFit`; its ``expected_score`` has the ratings on the scale of "half".
        link: "logit" or "probit", from strengths to the probability of a win. Tie models take "logit" only.
        penalty: "firth" for all ratings, "none", or "auto": ratings are those of "none", and intervals of models with
            fewer than 200 battles come from the fit with Firth's penalty, see `BradleyTerryFit.interval`. The penalty
            is for logits and ties as half, without a ridge, features or the sparse method; beside these, and with
            ``reweight`` or more than 1,000 models, "auto" is "none". It takes a battle of weight w for w battles. As
            ``reweight`` gives most battles a weight of a fiftieth, it makes the penalty fifty times as strong.
        interval: "auto" or "wald", see `BradleyTerryFit.interval`; "percentile" and "basic" are for `bootstrap`.
        cluster: column of the clusters (prompts, voters, sessions) that ``standard_errors`` and ``covariance`` take as
            independent, in place of battles; the ratings do not change.
        strata: column of strata, each with a fixed number of battles, or clusters: ``standard_errors`` and
            ``covariance`` then leave out the variance between strata. No cluster may lie in several strata.
        start: a previous fit, or its ratings (Elo) by model, to start from: the same ratings in fewer steps. Models
            that it does not rate start at its mean. Not for fits with features or a tie model.
        method: "dense", on (M, M) tables; "sparse", on the graph of pairs, which takes memory for the pairs only; or
            "auto", which chooses by the number of models. Features and tie models are dense.

    Returns:
        The fit; a `ContextualFit` with features or a tie model.

    Raises:
        ValueError: a negative ridge, a ``feature_ridge`` without features, an impossible gauge, an unknown link, a
            tie model with another link than the logit, or a penalty with an option that it excludes.
        TypeError: ``features`` is no list of covariates.
        DataError: ``battles`` is a table that cannot be read; a feature is missing, or the models determine it;
            ``cluster`` or ``strata`` names no column, or one with missing values.

    Examples:
        >>> import jaxeval
        >>> fit = jaxeval.fit_bradley_terry(jaxeval.simulate_battles(2_000, 4, seed=0))
        >>> fit.ratings.round().astype(int).to_dict()
        {'model-1': 1098, 'model-2': 992, 'model-3': 968, 'model-4': 942}
        >>> fit.standard_errors.round(1).tolist()
        [8.5, 6.5, 7.8, 7.3]
        >>> fit.win_probability.loc["model-1", "model-2"].round(2)
        np.float64(0.65)
    """
    battles = as_battles(battles)
    asked = FitOptions(ridge=ridge, features=features, **options).checked(battles)
    if asked.contextual and start is not None:
        raise ValueError("start= is for fits without features and tie models")
    return _fit(battles, asked, None if start is None else _start(start, battles.models, asked))


def _fit(battles: Battles, options: FitOptions, start: Float | None = None) -> BradleyTerryFit:
    covariates = design(battles, options.features, options.normalize)
    cells, drawn = whole_board(battles, covariates, options)
    slices = [(battles.models, cells)]
    (fitted,) = fit_slices(slices, covariates, options, starts=None if start is None else [start])
    if start is not None and fitted.board.status != Status.CONVERGED:  # ratings on another scale, say
        (fitted,) = fit_slices(slices, covariates, options)
    fit = board_fit(fitted, drawn, battles.report, options)
    if options.ties == "half":
        return fit
    return replace(fit, _ties_as_half=_fit(battles, replace(options, ties="half", method="dense")))


def _start(start: BradleyTerryFit | pd.Series, models: pd.Index, options: FitOptions) -> Float:
    """(M,) strengths to start from, in the unit of the link; ratings of another link are similar enough."""
    ratings = start.ratings if isinstance(start, BradleyTerryFit) else start
    if not isinstance(ratings, pd.Series):
        raise TypeError(f"start must be a fit or a Series of ratings by model, got {type(start).__name__}")
    if not ratings.index.is_unique:
        twice = ratings.index[ratings.index.duplicated()][0]
        raise TypeError(f"start must be a fit or a Series with each model once: it has {str(twice)!r} more than once")
    try:
        theta = ratings.reindex(models).to_numpy(np.float64, na_value=np.nan) / ELO_PER_UNIT[options.response.link]
    except (TypeError, ValueError) as error:
        raise TypeError(f"start must hold ratings, which are numbers: {error}") from error
    known = np.isfinite(theta)
    return np.where(known, theta - theta[known].mean(), 0.0) if known.any() else np.zeros(len(models))
