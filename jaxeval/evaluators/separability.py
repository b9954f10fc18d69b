"""Separability with confidence: pairs of models that an evaluator's own intervals tell apart, and gold on them.

Separability is that of Arena-Hard (arXiv:2406.11939): the share of pairs whose intervals do not overlap.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import ndtri

from jaxeval.arrays import Float
from jaxeval.data.columns import plain
from jaxeval.errors import DataError
from jaxeval.evaluators.model_scores import Gold, ModelScores, Scores, score_table
from jaxeval.evaluators.rank_correlation import FEW_SCORED
from jaxeval.evaluators.resamples import ModelResampling, Resampling, in_slots, opened, resampled
from jaxeval.evaluators.tables import evaluator_table, first_reason, interval_columns
from jaxeval.execution.signatures import spelled_out
from jaxeval.kernels.rank_agreement import separation as separation_sums
from jaxeval.statistics.quantiles import checked_level
from jaxeval.wording import counted

# A score may lie at the end of its interval: rounding must not put it outside.
_ROUNDING = 1e-9
NONE_APART = "no pair is separated"
ALL_TIED = "gold ties all separated pairs"


@spelled_out(Resampling)
def separability(
    scores: Scores,
    gold: Gold,
    *,
    lower: pd.DataFrame | pd.Series | ArrayLike | None = None,
    upper: pd.DataFrame | pd.Series | ArrayLike | None = None,
    standard_error: pd.DataFrame | pd.Series | ArrayLike | None = None,
    score_level: float = 0.95,
    **options: Unpack[ModelResampling],
) -> pd.DataFrame:
    """Share of the pairs of models that an evaluator's own intervals separate, and how often gold agrees with these.

    Args:
        scores, gold: as in `kendall_tau_delta`, like all other arguments.
        lower, upper: ends of the evaluator's intervals, of the shape of ``scores``, and matched like them.
        standard_error: standard errors of the scores, for normal intervals, instead of ``lower`` and ``upper``.
        score_level: level of the normal intervals.

    Returns:
        A row per evaluator: ``evaluator`` (if they have names); ``separated``, the share of the pairs whose intervals
        do not overlap; ``agreement``, the share of those that gold orders alike, without the pairs that gold ties;
        ``n_separated``, ``n_pairs``, ``n_models``, ``n_missing`` and ``status``. With resamples also
        ``separated_lower``, ``separated_upper``, ``agreement_lower``, ``agreement_upper`` and ``failed_share``, the
        share of the resamples without separated pairs; their agreement counts as 0 in the lower end and as 1 in the
        upper one.

    Raises:
        DataError: as in `kendall_tau_delta`; or intervals are missing, end before they begin, name a model or an
            evaluator twice, are not numeric, or do not contain their scores.

    Examples:
        >>> judge, people = [8.1, 7.9, 6.2, 5.0, 4.4, 3.1], [1250, 1270, 1180, 1100, 1090, 1010]
        >>> table = separability(judge, people, standard_error=[0.4] * 6, n_resamples=0)
        >>> table[["separated", "agreement", "n_separated"]].round(3)
           separated  agreement  n_separated
        0      0.733        1.0           11
    """
    checked_level(score_level)
    aligned, settings = opened(scores, gold, options)
    ends = _ends(scores, aligned, lower, upper, standard_error, score_level)
    aligned = _with_intervals(aligned, ends)
    by_model = np.stack([in_slots(end, settings, of_models=True) for end in ends], axis=1)
    sums = resampled(separation_sums, aligned, (by_model,), settings, 4 * len(aligned.gold))
    pairs, apart, ordered, agreeing = (np.asarray(x) for x in sums)
    separated = np.where(pairs > 0, apart / np.where(pairs > 0, pairs, 1), np.nan)
    agreement = np.where(ordered > 0, agreeing / np.where(ordered > 0, ordered, 1), np.nan)
    columns: dict[str, Any] = {
        "separated": separated[0],
        "agreement": agreement[0],
        "n_separated": apart[0].astype(int),
        "n_pairs": pairs[0].astype(int),
        "n_models": aligned.n_models,
        "n_missing": aligned.n_missing,
        "status": first_reason(
            (aligned.n_models < 2, FEW_SCORED), (apart[0] == 0, NONE_APART), (ordered[0] == 0, ALL_TIED)
        ),
    }
    for name, x in (("separated", separated), ("agreement", agreement)):
        for key, values in interval_columns(x, settings, 0.0, 1.0).items():
            columns[key if key == "failed_share" else f"{name}_{key}"] = values
    return evaluator_table(aligned, [], columns, settings)


def _ends(
    scores: Scores, aligned: ModelScores, lower: Any, upper: Any, standard_error: Any, level: float
) -> tuple[Float, Float]:
    """Return (E, M) ends of the intervals."""
    if (lower is None) != (upper is None) or (lower is None) == (standard_error is None):
        raise DataError("give lower and upper, or standard_error: one of the two")
    if standard_error is not None:
        error = _like(scores, aligned, standard_error, "standard_error")
        if (error < 0).any():
            raise DataError(f"standard_error has {counted((error < 0).sum(), 'negative value')}")
        half = ndtri((1 + level) / 2) * error
        return aligned.scores - half, aligned.scores + half
    low, high = (_like(scores, aligned, x, name) for x, name in ((lower, "lower"), (upper, "upper")))
    if (low > high).any():
        backwards = counted((low > high).sum(), "interval ends before it begins", "intervals end before they begin")
        raise DataError(f"{backwards}: are lower and upper swapped?")
    slack = _ROUNDING * np.abs(aligned.scores)
    outside = (aligned.scores < low - slack) | (aligned.scores > high + slack)
    if outside.any():
        e, m = np.argwhere(outside)[0]
        lie = counted(outside.sum(), "score lies outside its own interval", "scores lie outside their own intervals")
        raise DataError(
            f"{lie}, the first that of model {plain(aligned.models[m])!r} by {plain(aligned.evaluators[e])!r}, "
            f"{aligned.scores[e, m]:g} with [{low[e, m]:g}, {high[e, m]:g}]: do lower and upper belong to these "
            "scores, in the same order?"
        )
    return low, high


def _like(scores: Scores, aligned: ModelScores, values: Any, name: str) -> Float:
    """Return (E, M) ``values`` of the models and evaluators of ``aligned``; by position where they have no labels."""
    if isinstance(values, pd.Series):
        values = values.to_frame(aligned.evaluators[0])
    if not isinstance(values, pd.DataFrame):
        index = score_table(scores)[0].index
        array = np.asarray(values)
        if array.shape not in ((len(index), len(aligned.evaluators)), (len(index),) * (len(aligned.evaluators) == 1)):
            raise DataError(
                f"{name} has shape {array.shape}, but scores have {counted(len(index), 'model')} by "
                f"{counted(len(aligned.evaluators), 'evaluator')}"
            )
        values = pd.DataFrame(array.reshape(len(index), -1), index, aligned.evaluators)
    lacking = [column for column in aligned.evaluators if column not in values]
    if lacking:
        raise DataError(f"{name} has no column {plain(lacking[0])!r}, which scores have")
    if values.index.has_duplicates:
        twice = values.index[values.index.duplicated()][0]
        raise DataError(f"model {plain(twice)!r} has more than one row in {name}: keep one")
    columns = values.loc[:, values.columns.isin(aligned.evaluators)]
    if columns.columns.has_duplicates:
        twice = columns.columns[columns.columns.duplicated()][0]
        raise DataError(f"{name} has more than one column {plain(twice)!r}: keep one")
    try:
        return columns[list(aligned.evaluators)].reindex(aligned.models).to_numpy(np.float64, na_value=np.nan).T
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} is not numeric ({error})") from error


def _with_intervals(aligned: ModelScores, ends: tuple[Float, Float]) -> ModelScores:
    """Return ``aligned`` with NaN for scores that have no interval."""
    lacking = np.isnan(ends[0]) | np.isnan(ends[1])
    more = (lacking & ~np.isnan(aligned.scores)).sum(1)
    values = np.where(lacking, np.nan, aligned.scores)
    return replace(aligned, scores=values, n_missing=aligned.n_missing + more, items=None)
