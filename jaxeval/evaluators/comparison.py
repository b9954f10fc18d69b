"""Compare evaluators: which ranks more like gold, and which tells models apart by its intervals.

Separability is that of Arena-Hard (arXiv:2406.11939): the share of pairs whose intervals do not overlap.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import expit, logit, ndtri

from jaxeval.arrays import Float, Int
from jaxeval.checks import checked_integer
from jaxeval.data.columns import plain
from jaxeval.errors import DataError
from jaxeval.evaluators import resamples
from jaxeval.evaluators.meaningful_gaps import AT_ONCE, NEVER
from jaxeval.evaluators.model_scores import (
    FEW_PAIRS,
    OK,
    Gold,
    ModelScores,
    Scores,
    hide_few_in_agreement,
    hide_few_pairs,
    score_table,
)
from jaxeval.evaluators.rank_correlation import FEW_SCORED, tau_status
from jaxeval.execution.signatures import spelled_out
from jaxeval.kernels.rank_agreement import separation as separation_sums
from jaxeval.kernels.rank_agreement import tau_b
from jaxeval.options.resampling import RunningOptions
from jaxeval.show.table import Table
from jaxeval.statistics.quantiles import checked_level, exact_share, student_quantile
from jaxeval.wording import counted, named

if TYPE_CHECKING:
    from jaxeval.options.arguments import KendallTauArguments, SeparabilityArguments

# A score may lie at the end of its interval: rounding must not put it outside.
_ROUNDING = 1e-9
NONE_APART = "no pair is separated"
ALL_TIED = "gold ties all separated pairs"


@spelled_out(resamples.EvaluatorResamples, RunningOptions, without="resample strata")
def separability(
    scores: Scores,
    gold: Gold,
    *,
    lower: pd.DataFrame | pd.Series | ArrayLike | None = None,
    upper: pd.DataFrame | pd.Series | ArrayLike | None = None,
    standard_error: pd.DataFrame | pd.Series | ArrayLike | None = None,
    score_level: float = 0.95,
    **options: Unpack[SeparabilityArguments],
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
        upper one. Intervals are symmetric in log-odds, by the standard deviation of the resamples and Student's
        quantile.

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
    aligned, settings = resamples.opened(scores, gold, options)
    ends = _interval_ends(scores, aligned, lower, upper, standard_error, score_level)
    aligned = _with_intervals(aligned, ends)
    by_model = np.stack([resamples.in_slots(end, settings, of_models=True) for end in ends], axis=1)
    sums = resamples.resampled(separation_sums, aligned, (by_model,), settings, 4 * len(aligned.gold))
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
        "status": resamples.first_reason(
            (aligned.n_models < 2, FEW_SCORED), (apart[0] == 0, NONE_APART), (ordered[0] == 0, ALL_TIED)
        ),
    }
    for name, x in (("separated", separated), ("agreement", agreement)):
        columns |= _share_columns(name, x, settings, aligned.n_models)
    return resamples.evaluator_table(aligned, [], columns, settings)


def _interval_ends(
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


_MOST_NAMES = 4
_FALL = 0.1  # a tau of close models that is lower by more than this is introduced by "but"


@spelled_out(resamples.EvaluatorResamples, RunningOptions)
def compare_evaluators(
    scores: Scores, gold: Gold, *, few_pairs: int = FEW_PAIRS, **options: Unpack[KendallTauArguments]
) -> pd.DataFrame:
    """Return differences of Kendall's tau-b with gold between all pairs of evaluators, the best evaluators first.

    Both taus of a difference are over the models that both evaluators scored. All evaluators have the same resamples,
    so the interval of a difference knows how the two taus vary together. It is shorter than the intervals of the two
    taus suggest. In simulations with 30 models, 95 % intervals held the true difference 95 to 96 times in 100. Each
    interval holds by itself; ``told_apart`` holds for all pairs at once. The evaluator that comes out best of many owes
    part of that to luck.

    Args:
        scores, gold: as in `kendall_tau_delta`, like all other arguments.
        few_pairs: evaluators with fewer pairs of models come last, because a tau of so few pairs says little.

    Returns:
        A row per pair of evaluators. ``evaluator`` has the larger tau over all models that it scored, ``other`` the
        smaller. ``tau`` and ``other_tau`` are over the ``n_models`` that both scored and their ``n_pairs``;
        ``difference`` is the first less the second. ``status`` is "ok", or why there is no difference. With resamples
        also ``lower`` and ``upper`` of the difference and ``failed_share``, the share of the resamples without it;
        these count as -2 in ``lower`` and as 2 in ``upper``; and ``told_apart``. Rows are sorted by the tau of
        ``evaluator`` and then of ``other``. ``attrs`` holds ``warnings`` and ``settings``.

    Raises:
        DataError, TypeError, ValueError: as in `kendall_tau_delta`, or there are fewer than two evaluators.

    Examples:
        >>> scores = pd.DataFrame({"judge": [8.1, 7.9, 6.2, 5.0, 4.4, 3.1], "length": [5.0, 7.5, 3.9, 6.1, 2.2, 2.9]})
        >>> table = compare_evaluators(scores, [1250, 1270, 1180, 1100, 1090, 1010], few_pairs=0, n_resamples=0)
        >>> table[["evaluator", "other", "tau", "other_tau", "difference"]].round(3)
          evaluator   other    tau  other_tau  difference
        0     judge  length  0.867        0.6       0.267
    """
    few_pairs = checked_integer("few_pairs", few_pairs)
    aligned, settings = resamples.opened(scores, gold, options)
    n = len(aligned.scores)
    if n < 2:
        raise DataError(f"a comparison needs two evaluators or more, got {n}")
    there = ~np.isnan(aligned.scores)
    first, second = np.triu_indices(n, 1)
    shared = there[first] & there[second]
    # First every evaluator on its own models, then both evaluators of each pair on the models that they share.
    evaluator = np.concatenate([np.arange(n), first, second])
    needed = np.concatenate([evaluator[:, None], np.concatenate([there, shared, shared])], axis=1)
    distinct, number = np.unique(needed, axis=0, return_inverse=True)
    parts = aligned.of(distinct[:, 0], distinct[:, 1:].astype(bool))
    sums = resamples.resampled_delta_sums(parts, np.array([np.inf]), settings)
    tau, pairs, status = tau_b(sums)[..., 0], np.asarray(sums.pairs)[0, :, 0], tau_status(parts, sums)[:, 0]
    number = number.reshape(-1)
    alone, of_first, of_second = np.split(number, [n, n + len(first)])
    place = np.argsort(np.lexsort([-tau[0, alone], pairs[alone] < few_pairs]))  # NaN last
    swap = place[first] > place[second]
    better, other = np.where(swap, second, first), np.where(swap, first, second)
    of_better, of_other = np.where(swap, of_second, of_first), np.where(swap, of_first, of_second)
    difference = tau[:, of_better] - tau[:, of_other]
    table = pd.DataFrame(
        {
            "evaluator": aligned.evaluators[better],
            "other": aligned.evaluators[other],
            "tau": tau[0, of_better],
            "other_tau": tau[0, of_other],
            "difference": difference[0],
            "n_models": shared.sum(1),
            "n_pairs": pairs[of_better].astype(int),
            "status": np.where(status[of_better] == OK, status[of_other], status[of_better]),
            **_ends_of_differences(difference, settings),
        }
    )
    table = table.iloc[np.lexsort([place[other], place[better]])].reset_index(drop=True)
    table.attrs = resamples.table_attributes(aligned, table, "difference", settings)
    table.attrs["warnings"] += _few_shared(table, aligned, settings)
    table.attrs["answer"] = "\n".join(_best(table))
    return Table.of(table, f"Evaluators compared: {counted(len(table), 'pair')}")


def _ends_of_differences(difference: Float, settings: resamples.EvaluatorResamples) -> dict[str, Any]:
    """Return the columns of intervals of (1 + B, P) differences, and which stand out of all at once (max-t).

    The best of several is chosen, and compared with all others: without it .37 of 300 sets of six equal evaluators of
    30 models had one that was told from the best.
    """
    columns = resamples.interval_columns(difference, settings, -2.0, 2.0)
    if not columns:
        return {}
    draws = resamples.shown_draws(difference, settings) - difference[0]
    with np.errstate(invalid="ignore", divide="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no resample has a difference
        error = np.nanstd(draws, axis=0)
        largest = np.nanmax(np.where(error > 0, np.abs(draws) / error, 0.0), axis=1)
    known = largest[~np.isnan(largest)]
    critical = np.quantile(known, settings.level) if len(known) else np.inf
    apart = (columns["lower"] > 0) | (columns["upper"] < 0)
    return {**columns, "told_apart": apart & (np.abs(difference[0]) > critical * error)}


def _few_shared(table: pd.DataFrame, scores: ModelScores, settings: resamples.EvaluatorResamples) -> list[str]:
    if not settings.n_resamples or settings.resample == "items":
        return []
    enough = pd.Series(scores.n_models >= resamples.FEW_MODELS, scores.evaluators)
    both = enough.loc[table["evaluator"]].to_numpy() & enough.loc[table["other"]].to_numpy()
    n = int((both & table["difference"].notna() & (table["n_models"] < resamples.FEW_MODELS)).sum())
    if n == 0:
        return []
    are = "is" if n == 1 else "are"
    return [
        f"{n:,} of {counted(len(table), 'difference')} {are} over fewer than {resamples.FEW_MODELS} models that both "
        "evaluators scored: intervals over so few say little"
    ]


def evaluator_advice(
    taus: pd.DataFrame,
    changes: pd.DataFrame | None = None,
    gaps: pd.DataFrame | None = None,
    improvements: pd.DataFrame | None = None,
    comparison: pd.DataFrame | None = None,
    few_pairs: int = FEW_PAIRS,
) -> list[str]:
    """Return sentences on every evaluator, from the tables that are given.

    Args:
        taus: as `kendall_tau_delta` returns it.
        changes: as `stratified_rank_change` returns it.
        gaps: as `smallest_gap` returns it.
        improvements: as `agreement_by_gap` returns it.
        comparison: as `compare_evaluators` returns it.
        few_pairs: numbers from fewer pairs of models are left out.
    """
    sentences_of_all = [] if comparison is None else list(_best(hide_few_pairs(comparison, "difference", few_pairs)))
    for evaluator, rows in resamples.with_evaluator(taus).groupby("evaluator", sort=False):
        sentences = [*_close_models(rows, few_pairs)]
        for table, of_table in ((changes, _tiers), (gaps, _smallest_gap), (improvements, _improvements)):
            if table is not None:
                sentences += of_table(table[resamples.with_evaluator(table)["evaluator"] == evaluator], few_pairs)
        sentences_of_all += [f"{evaluator}: {sentence}" if "evaluator" in taus else sentence for sentence in sentences]
    return sentences_of_all


def _best(comparison: pd.DataFrame) -> Iterator[str]:
    """Name the evaluator that ranks most like gold, the others that the data tell from it, and those they do not."""
    rows = comparison[comparison["evaluator"] == comparison["evaluator"].iloc[0]]
    known = rows["difference"].notna()
    if not known.any():
        return
    text = f"{rows['evaluator'].iloc[0]} ranks most like gold"
    if "lower" not in rows:
        yield f"{text}; without resamples nothing says how sure that is"
        return
    # The best evaluator has the largest tau over its own models; on the models that it shares with another, its tau may
    # be the smaller one.
    worse, better = (rows["told_apart"] & (sign * rows["difference"] > 0) for sign in (1, -1))
    parts = [
        f"{what} {named(list(rows.loc[which, 'other']), _MOST_NAMES)}"
        for what, which in (
            ("more so than", worse),
            ("but less so, on the models that both scored, than", better),
            ("it is not told apart from", known & ~worse & ~better),
            ("it cannot be compared with", ~known),
        )
        if which.any()
    ]
    yield f"{text}: {'; '.join(parts)}"


def _close_models(rows: pd.DataFrame, few_pairs: int) -> Iterator[str]:
    all_pairs = rows[np.isinf(rows["delta"])]
    near = rows[np.isfinite(rows["delta"])].sort_values("delta")
    if len(all_pairs) == 0 or np.isnan(all_pairs["tau"].iloc[0]):
        reason = all_pairs["status"].iloc[0] if len(all_pairs) else ""
        if reason:
            yield f"no tau, {reason}"
        return
    row = all_pairs.iloc[0]
    if row["n_pairs"] < few_pairs:
        yield f"{counted(row['n_pairs'], 'pair')} of models in all, too few to say anything"
        return
    text = f"tau {row['tau']:.2f}{_ends(row)} over all {counted(row['n_pairs'], 'pair')}"
    if row.get("upper", 0.0) < 0:
        yield f"{text}: it ranks in reverse; if its lower scores are the better ones, change their sign"
        return
    if len(near) == 0:
        yield text
        return
    if near["n_pairs"].min() == row["n_pairs"]:
        yield f"{text}; all of them lie under every delta, so choose smaller ones"
        return
    near = hide_few_pairs(near, "tau", few_pairs)
    known = near[near["tau"].notna() & (near["n_pairs"] < row["n_pairs"])]
    if len(known) == 0:
        enough = counted(few_pairs, "pair")
        yield f"{text}; no delta has {enough} or more under it and others above it, so choose other deltas"
        return
    close = known.iloc[0]
    word = "but" if close["tau"] < row["tau"] - _FALL else "and"
    doubt = "; it may be guessing between models so close" if close.get("lower", 1.0) <= 0 else ""
    yield (
        f"{text}, {word} {close['tau']:.2f}{_ends(close)} over the {close['n_pairs']:,} within "
        f"{counted(close['delta'], 'point')}{doubt}"
    )


def _tiers(rows: pd.DataFrame, few_pairs: int) -> Iterator[str]:
    rows = hide_few_pairs(rows, "rank_change", few_pairs).dropna(subset="rank_change")
    if "lower" not in rows or len(rows) < 2:
        return
    best, worst = rows.loc[rows["rank_change"].idxmin()], rows.loc[rows["rank_change"].idxmax()]
    if best["upper"] < worst["lower"]:
        yield (
            f"ranks models of tier {best['tier']} best, {best['rank_change']:.1f} places off{_ends(best, '.1f')}, and "
            f"models of tier {worst['tier']} worst, {worst['rank_change']:.1f}{_ends(worst, '.1f')}"
        )


def _smallest_gap(rows: pd.DataFrame, few_pairs: int) -> Iterator[str]:
    wanted = rows.attrs.get("settings", {}).get("probability")
    often = "as often as asked" if wanted is None else f"with probability {wanted:g}"
    for _, row in hide_few_pairs(rows, "delta", few_pairs).iterrows():
        if row["status"] == NEVER:
            yield f"gold does not agree {often} at any gap seen, up to {counted(row['largest_gap'], 'point', digits=3)}"
        elif row["status"] == AT_ONCE:
            yield f"gold agrees {often} at any gap{_ends(row, '.3g')}"
        elif np.isfinite(row["delta"]) and row["delta"] > 0:
            yield f"gold agrees {often} from a gap of {counted(row['delta'], 'point', digits=3)} on{_ends(row, '.3g')}"


def _improvements(rows: pd.DataFrame, few_pairs: int) -> Iterator[str]:
    for _, row in hide_few_in_agreement(rows, few_pairs).dropna(subset="probability").iterrows():
        below = f"; {row['average_below']:.2f} on average below it ({counted(row['n_pairs'], 'pair')})"
        observed = "" if np.isnan(row["observed"]) else f", {row['observed']:.2f} observed"
        doubt = f"; the regression does not fit{observed}" if row.get("lack_of_fit", False) else ""
        yield (
            f"an improvement of {counted(row['delta'], 'point')} is one for gold with probability "
            f"{row['probability']:.2f}{_ends(row)}{doubt}{'' if np.isnan(row['average_below']) else below}"
        )


def _share_columns(name: str, values: Float, settings: resamples.EvaluatorResamples, n_models: Int) -> dict[str, Any]:
    """Give the interval columns of a share, (1 + B, E) ``values``; percentiles fall short where it is near 0 or 1.

    The interval is symmetric in log-odds, with Student's quantile. It is that of so many independent models where all
    resamples have one share, and reaches as far as percentiles do where some resamples have none.
    """
    columns = resamples.interval_columns(values, settings, 0.0, 1.0)
    if not columns:
        return {}
    share, failed = values[0], columns["failed_share"]
    with np.errstate(invalid="ignore", divide="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no resample has a share
        error = np.nanstd(values[1:], axis=0) / (share * (1 - share))
        half = student_quantile(settings.level, np.maximum(n_models - 1.0, 1.0)) * error
        by_odds = [expit(logit(share) + side * half) for side in (-1, 1)]
    ends = [
        np.where(error > 0, x, y) for x, y in zip(by_odds, exact_share(share, n_models, settings.level), strict=True)
    ]
    return {
        f"{name}_lower": np.where(failed > 0, np.fmin(ends[0], columns["lower"]), ends[0]),
        f"{name}_upper": np.where(failed > 0, np.fmax(ends[1], columns["upper"]), ends[1]),
        "failed_share": failed,
    }


def _ends(row: Any, form: str = ".2f") -> str:
    if "lower" not in row or np.isnan(row["lower"]):
        return ""
    upper = "no upper end" if np.isinf(row["upper"]) else f"{row['upper']:{form}}"
    return f" [{row['lower']:{form}}, {upper}]"
