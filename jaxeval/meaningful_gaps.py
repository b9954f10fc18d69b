"""Does an improvement of so many points mean anything? The probability that gold agrees, by the gap of the scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from jaxeval.kernels.rank_agreement import GapRegression, gap_regression, tau_b
from jaxeval.kernels.solve import CONVERGED
from jaxeval.model_scores import (
    OK,
    ModelScores,
    Resample,
    Resampling,
    Scores,
    align_scores,
    evaluator_table,
    interval_columns,
    resampled,
    resampled_delta_sums,
)
from jaxeval.quantiles import centred
from jaxeval.rank_correlation import CONSTANT, CONSTANT_GOLD, FEW_SCORED
from jaxeval.resampling import rounded

Float = NDArray[np.float64]

ALL_AGREE, NONE_AGREE = "gold agrees on every pair", "gold agrees on no pair"
NEVER, AT_ONCE, FAILED = "never reached", "reached at any gap", "the regression did not converge"
FALLS, BEYOND = "agreement falls with the gap", "beyond the largest gap"

_TOLERANCE_LOGIT = 1e-9


def agreement_by_gap(
    scores: Scores,
    gold: pd.Series | ArrayLike | str,
    deltas: Sequence[float] | ArrayLike,
    *,
    ridge: float = 0.01,
    n_resamples: int = 1000,
    resample: Resample = "models",
    level: float = 0.95,
    seed: int = 0,
    progress: bool | None = None,
) -> pd.DataFrame:
    """The probability that gold orders two models as the evaluator does whose scores differ by delta.

    Logistic regression of agreement on |gap| over all pairs that the evaluator orders; ties in gold are half an
    agreement. Pairs share models, so the intervals come from resamples and not from the regression.

    Args:
        deltas: gaps in the evaluator's points, more than 0 and finite.
        ridge: penalty on the squares of the intercept and of the slope per standard deviation of the gap; it keeps
            them finite where all pairs agree.
        scores: as in `kendall_tau_delta`, like all other arguments.

    Returns:
        A row per evaluator and delta: ``evaluator`` (if they have names), ``delta``; ``probability`` at that gap;
        ``average_below``, (1 + tau_delta) / 2, the average over the pairs under it; ``n_pairs`` under it; ``n_models,
        n_missing, status``; with resamples ``lower, upper`` of the probability, ``average_below_lower,
        average_below_upper`` and ``failed_share``, of the resamples without a regression, which count as 0 and 1. A
        gap beyond the largest between two models has no probability. Intervals hold if agreement is logistic in the
        gap. Where items are drawn they are `centred` in logits, as they are for taus.

    Raises:
        DataError: as in `kendall_tau_delta`; ValueError too.
    """
    settings = Resampling(n_resamples, resample, level, seed, progress)
    gaps = np.atleast_1d(np.asarray(deltas, float))
    if gaps.ndim != 1 or gaps.size == 0 or not ((gaps > 0) & np.isfinite(gaps)).all():
        raise ValueError(f"deltas must be finite numbers above 0, in the evaluator's points, got {deltas!r}")
    aligned = align_scores(scores, gold)
    settings.check(aligned)
    fits = _fits(aligned, ridge, settings)
    probability = expit(fits.intercept[..., None] + fits.slope[..., None] * gaps)
    # The regression is not asked about what nobody saw.
    beyond = gaps > _largest_gaps(aligned)[:, None]
    probability = np.where(beyond, np.nan, probability)
    sums = resampled_delta_sums(aligned, gaps, settings)
    below = (1 + tau_b(sums)) / 2
    shape = probability.shape[1:]
    columns: dict[str, Any] = {
        "probability": probability[0],
        "average_below": below[0],
        "n_pairs": sums.pairs[0].astype(int),
        "n_models": np.broadcast_to(aligned.n_models[:, None], shape),
        "n_missing": np.broadcast_to(aligned.n_missing[:, None], shape),
        "status": np.where(
            beyond & (_status(aligned, fits) == OK)[:, None],
            BEYOND,
            np.broadcast_to(_status(aligned, fits)[:, None], shape),
        ),
    }
    for key, values in interval_columns(below, settings, 0.0, 1.0).items():
        if key != "failed_share":
            columns[f"average_below_{key}"] = values
    columns |= interval_columns(probability, settings, 0.0, 1.0, centre=False)
    table = evaluator_table(aligned, [("delta", gaps)], columns, settings)
    table.attrs["settings"]["ridge"] = ridge
    return table


def smallest_gap(
    scores: Scores,
    gold: pd.Series | ArrayLike | str,
    probability: float = 0.75,
    *,
    ridge: float = 0.01,
    n_resamples: int = 1000,
    resample: Resample = "models",
    level: float = 0.95,
    seed: int = 0,
    progress: bool | None = None,
) -> pd.DataFrame:
    """The smallest gap of scores at which gold agrees with at least ``probability``, by `agreement_by_gap`.

    A gap greater than any between two models is not reached: the regression is not asked about what nobody saw.

    Args:
        probability: between 0.5 and 1.
        scores: as in `agreement_by_gap`, like all other arguments.

    Returns:
        A row per evaluator: ``evaluator`` (if they have names); ``delta``, the gap in the evaluator's points, infinite
        if it is never reached and 0 if any gap does; ``largest_gap`` seen; ``n_pairs`` that the evaluator orders;
        ``n_models, n_missing, status``; with resamples ``lower, upper``, infinite where resamples do not reach it,
        ``reached_share`` of the resamples that do, and ``failed_share``.

    Raises:
        DataError: as in `kendall_tau_delta`; ValueError too.
    """
    settings = Resampling(n_resamples, resample, level, seed, progress)
    if not 0.5 < probability < 1:
        raise ValueError(f"probability must lie between 0.5 and 1, got {probability!r}")
    aligned = align_scores(scores, gold)
    settings.check(aligned)
    fits = _fits(aligned, ridge, settings)
    most = _largest_gaps(aligned)
    gap = _gap_at(fits, probability, most)
    status = _status(aligned, fits)
    told = np.isin(status, (OK, ALL_AGREE, NONE_AGREE))
    falls = (np.asarray(fits.slope[0]) < 0) & np.isinf(gap[0])
    status = np.where((status == OK) & falls, FALLS, status)
    status = np.where((status == OK) & np.isinf(gap[0]), NEVER, status)
    status = np.where((status == OK) & (gap[0] == 0), AT_ONCE, status)
    columns: dict[str, Any] = {
        "delta": np.where(told, gap[0], np.nan),
        "largest_gap": most,
        "n_pairs": fits.pairs[0].astype(int),
        "n_models": aligned.n_models,
        "n_missing": aligned.n_missing,
        "status": status,
        **interval_columns(gap, settings, 0.0, np.inf, centre=False),
    }
    if settings.n_resamples:
        columns["reached_share"] = np.isfinite(gap[1:]).mean(0)
    table = evaluator_table(aligned, [], columns, settings)
    table.attrs["settings"] |= {"ridge": ridge, "probability": probability}
    return table


def _largest_gaps(scores: ModelScores) -> Float:
    """(E,) largest gap between two models; NaN where an evaluator has none."""
    known = [own[~np.isnan(own)] for own in scores.scores]
    return np.array([np.ptp(own) if len(own) else np.nan for own in known])


def _gap_at(fits: GapRegression, probability: float, most: Float) -> Float:
    """(1 + B, E) gap of that probability; 0 if it is exceeded at once, infinite if not up to ``most`` (E,)."""
    wanted = logit(probability) - np.asarray(fits.intercept)
    slope = np.asarray(fits.slope)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Where agreement falls with the gap it must hold up to the largest.
        always = (wanted <= 0) & (slope * most >= wanted)
        gap = np.where(always, 0.0, np.where((wanted > 0) & (slope > 0), wanted / slope, np.inf))
        gap = np.where(gap > most, np.inf, gap)
    return np.where(np.isnan(wanted), np.nan, gap)


def _fits(scores: ModelScores, ridge: float, settings: Resampling) -> GapRegression:
    """(1 + B, E) regressions; NaN where there are no pairs or the iteration did not converge."""
    if not (np.isfinite(ridge) and ridge > 0):
        raise ValueError(f"ridge must be positive, got {ridge!r}")
    e, m = scores.scores.shape
    first, second = np.triu_indices(m, 1)
    scale = np.ones(e)
    for k, own in enumerate(scores.scores):
        gap = np.abs(own[first] - own[second])
        gap = gap[~np.isnan(gap) & (gap > 0)]
        spread = gap.std() if len(gap) else 0.0
        scale[k] = spread if spread > 0 else gap.max(initial=0.0) or 1.0
    fill = rounded(max(len(first), 1)) - len(first)
    # Padding pairs a model with itself: a gap of 0 has no weight.
    pair = tuple(np.pad(x, (0, fill)).astype(np.int32) for x in (first, second))
    arguments = (*pair, scale, float(ridge), _TOLERANCE_LOGIT)
    found = resampled(gap_regression, scores, arguments, settings, 6 * len(pair[0]))
    told = (found.pairs > 0) & (found.status == CONVERGED) & ~scores.constant_gold
    intercept, slope = (np.where(told, x, np.nan) for x in (found.intercept, found.slope))
    if settings.n_resamples and settings.resample != "models":
        # In logits, and not in gaps, which may be infinite.
        intercept, slope = (np.concatenate([x[:1], centred(x)]) for x in (intercept, slope))
    return found._replace(intercept=intercept, slope=slope)


def _status(scores: ModelScores, fits: GapRegression) -> NDArray[Any]:
    """(E,) "ok", or what is wrong with the regression of the data."""
    pairs, agreeing, code = (np.asarray(x[0]) for x in (fits.pairs, fits.agreeing, fits.status))
    return np.select(
        [scores.n_models < 2, pairs == 0, scores.constant_gold, code != CONVERGED, agreeing == pairs, agreeing == 0],
        [FEW_SCORED, CONSTANT, CONSTANT_GOLD, FAILED, ALL_AGREE, NONE_AGREE],
        OK,
    ).astype(object)
