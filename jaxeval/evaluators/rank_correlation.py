"""Rank correlations of evaluators with gold, over all pairs of models and over close ones, with intervals.

Kendall's tau-b is (P - Q) / sqrt((P + Q + T) (P + Q + U)). P pairs are in the order of gold and Q pairs against it; the
scores alone tie T pairs, and gold alone ties U pairs. tau_delta is tau-b over the pairs whose scores by the evaluator
differ by less than delta (Deutsch, Dror and Roth 2022, DOI 10.18653/v1/2022.naacl-main.442). Both are used as in Xu,
Gaur, Leqi and Goyal, "Revisiting meta-evaluation standards of LLM evaluators" (Eq. 3, Table 1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from jaxeval.arrays import Float, as_leaf
from jaxeval.checks import checked_integer
from jaxeval.errors import DataError
from jaxeval.evaluators import resamples
from jaxeval.evaluators.model_scores import FEW_PAIRS, OK, Gold, ModelScores, Scores, hide_few_pairs
from jaxeval.execution.signatures import spelled_out
from jaxeval.kernels.rank_agreement import RankedPairs, rank_measures, tau_b, tier_changes
from jaxeval.options.resampling import RunningOptions
from jaxeval.statistics.draws import Draws
from jaxeval.wording import counted

if TYPE_CHECKING:
    from jaxeval.options.arguments import KendallTauArguments

#: Why there is no number.
FEW_SCORED, CONSTANT, CONSTANT_GOLD = "fewer than two models", "scores are constant", "gold scores are constant"
NO_PAIRS, ALL_TIED, ALL_TIED_GOLD = "no pair under delta", "all pairs under delta are tied", "gold ties all pairs"
FEW_FOR_TOP = "fewer models than the top has"

MEASURES = ("kendall_tau", "spearman", "pair_accuracy", "top_overlap", "rank_deviation")
NO_MODEL = "no model of the tier is scored"


@spelled_out(resamples.EvaluatorResamples, RunningOptions)
def kendall_tau_delta(
    scores: Scores, gold: Gold, deltas: Sequence[float] | ArrayLike, **options: Unpack[KendallTauArguments]
) -> pd.DataFrame:
    """Return Kendall's tau-b with gold over the pairs of models whose scores differ by less than each delta.

    Intervals over models are for the tau of the population that the models come from. They are conservative, because a
    resampled model brings the noise of single pairs along: with 10 to 40 models, 95 % intervals held the true tau 96 to
    97 times in 100, and intervals of small gaps held it more often. Intervals over items are for the mean tau of
    evaluations with as many other items. With endlessly many items tau would be higher, because scores have the noise
    of their items. The scores of a resample have this noise twice, so resamples are `centred`. Intervals over both are
    conservative, because drawn models bring the noise of their items along.

    Args:
        scores: a table with a row per model and a column per evaluator; the scores of one evaluator, a Series or an
            array; or `ItemScores`. A missing score takes the model out of the evaluator's pairs.
        gold: gold scores, matched by index if both have one; or the name of their column in ``scores``.
        deltas: gaps in the evaluator's points, more than 0; infinity gives the standard tau-b.
        n_resamples: resamples behind the intervals; 0 for none.
        resample: what is drawn with replacement. "models" draws from the models that gold and some evaluator scored;
            every evaluator has the same draws, and no model is paired with its own copy. "items" draws the items of
            `ItemScores` and recomputes every score. "both" draws both.
        strata: column of strata, kept with the items: every resample holds as many items of each as there are, as in
            `bootstrap`.
        level: level of the percentile intervals.
        seed: the same seed gives the same draws for every measure and every ``n_resamples``.
        chunk_size, memory_limit, checkpoint, progress: as in `bootstrap`. Measures may share the folder of a checkpoint
            if they have the same gold scores, seed and ``resample``.

    Returns:
        A row per evaluator and delta: ``evaluator`` (if they have names), ``delta``, ``tau``, ``n_pairs``,
        ``n_models``, ``n_missing`` (models with only one of the two scores) and ``status``, "ok" or why there is no
        tau. With resamples also ``lower``, ``upper`` and ``failed_share``, the share of the resamples without a tau;
        these count as -1 in ``lower`` and as 1 in ``upper``. Where all pairs agree no resample of models disagrees:
        ``lower`` is then the tau at which that happens in (1 - level) / 2 of the cases. ``attrs`` holds ``warnings``
        and ``settings``.

    Raises:
        DataError: as `align_scores` describes, or there are no items to draw.
        TypeError, ValueError: a setting has the wrong type, or is out of range.

    Examples:
        >>> judge, people = [8.1, 7.9, 6.2, 5.0, 4.4, 3.1], [1250, 1270, 1180, 1100, 1090, 1010]
        >>> table = kendall_tau_delta(judge, people, [2.0, np.inf], n_resamples=0)
        >>> table[["delta", "tau", "n_pairs"]].round(3)
           delta    tau  n_pairs
        0    2.0  0.750        8
        1    inf  0.867       15
    """
    aligned, gaps, sums, settings = _delta_sums(scores, gold, deltas, options)
    tau = tau_b(sums)
    ends = resamples.open_ends("kendall_tau", sums.pairs[0], aligned.n_models, settings.level)
    columns = {
        "tau": tau[0],
        "n_pairs": sums.pairs[0].astype(int),
        "n_models": aligned.n_models,
        "n_missing": aligned.n_missing,
        "status": tau_status(aligned, sums),
        **resamples.interval_columns(tau, settings, -1.0, 1.0, ends=ends),
    }
    return resamples.evaluator_table(aligned, [("delta", gaps)], columns, settings)


@spelled_out(resamples.EvaluatorResamples, RunningOptions)
def kendall_tau(scores: Scores, gold: Gold, **options: Unpack[KendallTauArguments]) -> pd.DataFrame:
    """Return Kendall's tau-b with gold over all pairs: `kendall_tau_delta` at infinity, a row per evaluator.

    Examples:
        >>> kendall_tau([8.1, 7.9, 6.2, 5.0], [1250, 1270, 1180, 1100], n_resamples=0)[["tau", "n_pairs"]].round(3)
             tau  n_pairs
        0  0.667        6
    """
    return kendall_tau_delta(scores, gold, [np.inf], **options).drop(columns="delta")


@spelled_out(resamples.EvaluatorResamples, RunningOptions)
def joint_tau(
    scores: Scores, gold: Gold, deltas: Sequence[float] | ArrayLike = (np.inf,), **options: Unpack[KendallTauArguments]
) -> Draws:
    """Return the taus of `kendall_tau_delta` as joint draws, whose names have the levels ``evaluator`` and ``delta``.

    All evaluators have the same resamples, so that differences, tiers and ranks of evaluators are paired. Each tau is
    over the models that its evaluator scored; `compare_evaluators` compares two on those that both scored.

    Args:
        scores, gold: as in `kendall_tau_delta`, like all other arguments.
        deltas: by default infinity alone, the standard tau-b.

    Raises:
        DataError, TypeError, ValueError: as in `kendall_tau_delta`, or there are no resamples.

    Examples:
        >>> scores = pd.DataFrame({"judge": [8.1, 7.9, 6.2, 5.0, 4.4, 3.1], "length": [5.0, 7.5, 3.9, 6.1, 2.2, 2.9]})
        >>> joint = joint_tau(scores, [1250, 1270, 1180, 1100, 1090, 1010], n_resamples=100)
        >>> joint.of(delta=np.inf).tiers().to_dict()
        {'judge': 1, 'length': 1}
    """
    aligned, gaps, sums, settings = _delta_sums(scores, gold, deltas, options)
    tau = tau_b(sums)
    return Draws(
        pd.MultiIndex.from_product([aligned.evaluators, gaps], names=["evaluator", "delta"]),
        tau[0].reshape(-1),
        resamples.shown_draws(tau, settings).reshape(settings.n_resamples, -1),
        limits=(-1.0, 1.0),
        status=tau_status(aligned, sums).reshape(-1),
        settings={key: getattr(settings, key) for key in resamples.SHOWN},
    )


def _delta_sums(
    scores: Scores, gold: Gold, deltas: Sequence[float] | ArrayLike, options: Mapping[str, Any]
) -> tuple[ModelScores, Float, RankedPairs, resamples.EvaluatorResamples]:
    """Return the scores aligned with gold, the checked deltas, the sums that give each tau, and the settings."""
    gaps = resamples.checked_deltas(deltas)
    aligned, settings = resamples.opened(scores, gold, options)
    return aligned, gaps, resamples.resampled_delta_sums(aligned, gaps, settings), settings


@spelled_out(resamples.EvaluatorResamples, RunningOptions)
def rank_agreement(scores: Scores, gold: Gold, *, top: int = 5, **options: Unpack[KendallTauArguments]) -> pd.DataFrame:
    """Return every measure of agreement over all models: five rows per evaluator.

    ``kendall_tau`` is tau-b. ``spearman`` is the correlation of ranks. ``pair_accuracy`` is the share of the pairs
    ordered by gold that the evaluator orders alike; a tie counts as half. ``top_overlap`` is the share of gold's
    ``top`` models that are in the evaluator's top; ties on the border share its places. ``rank_deviation`` is the mean
    of |rank - gold rank| over the models, in places; 0 is best. Ties share the average of their ranks.

    Args:
        scores, gold: as in `kendall_tau_delta`, like all other arguments.
        top: how many models the top has.

    Returns:
        A row per evaluator and measure: ``evaluator`` (if they have names), ``measure``, ``value``, ``n_models``,
        ``n_pairs``, ``n_missing`` and ``status``; with resamples also ``lower``, ``upper`` and ``failed_share``. A
        resample without a deviation counts as 0 in ``lower``, and in ``upper`` as the number of models less 1. Where no
        resample of models disagrees with gold, the lower end of each measure, or the upper one of the deviation, is
        that of an evaluator who agrees so in (1 - level) / 2 of the samples.

    Raises:
        DataError, TypeError, ValueError: as in `kendall_tau_delta`; or ``top`` is not an integer, or less than 1.

    Examples:
        >>> judge, people = [8.1, 7.9, 6.2, 5.0, 4.4, 3.1], [1250, 1270, 1180, 1100, 1090, 1010]
        >>> rank_agreement(judge, people, top=2, n_resamples=0)[["measure", "value"]].round(3)
                  measure  value
        0     kendall_tau  0.867
        1        spearman  0.943
        2   pair_accuracy  0.933
        3     top_overlap  1.000
        4  rank_deviation  0.333
    """
    top = checked_integer("top", top, 1)
    aligned, settings = resamples.opened(scores, gold, options)
    sums = resamples.resampled_delta_sums(aligned, np.array([np.inf]), settings)
    m = len(aligned.gold)
    size = 4 * m * (1 if settings.resample == "models" else m)
    ranks = resamples.resampled(rank_measures, aligned, (float(top),), settings, size)
    draws = {
        "kendall_tau": (tau_b(sums)[..., 0], -1.0, 1.0),
        "spearman": (ranks.spearman, -1.0, 1.0),
        "pair_accuracy": (accuracy(sums)[..., 0], 0.0, 1.0),
        "top_overlap": (ranks.top_overlap, 0.0, 1.0),
        "rank_deviation": (ranks.rank_deviation, 0.0, m - 1.0),
    }
    about = sums.pairs[0, :, 0], aligned.n_models, settings.level, top
    ends = [
        resamples.interval_columns(x, settings, least, most, ends=resamples.open_ends(name, *about))
        for name, (x, least, most) in draws.items()
    ]
    if settings.n_resamples:
        ends[-1]["upper"] = np.minimum(ends[-1]["upper"], np.maximum(aligned.n_models - 1.0, 0))
    status = np.repeat(tau_status(aligned, sums), len(MEASURES), axis=1)
    short = (aligned.n_models < top) & (status[:, 3] == OK)
    status[short, 3] = FEW_FOR_TOP
    columns: dict[str, Any] = {
        "value": np.stack([x[0] for x, _, _ in draws.values()], -1),
        "n_models": aligned.n_models,
        "n_pairs": sums.pairs[0].astype(int),
        "n_missing": aligned.n_missing,
        "status": status,
        **{name: np.stack([one[name] for one in ends], -1) for name in ends[0]},
    }
    return resamples.evaluator_table(aligned, [("measure", list(MEASURES))], columns, settings)


def accuracy(sums: RankedPairs) -> Float:
    """Share of the pairs ordered by gold that the scores order alike, ties as half; NaN where a side ties all pairs."""
    ordered = np.asarray(sums.pairs - sums.tied_gold)
    known = (ordered > 0) & np.asarray(sums.pairs > sums.tied_scores)
    return np.where(known, (1 + sums.concordance / np.where(known, ordered, 1)) / 2, np.nan)


def tau_status(scores: ModelScores, sums: RankedPairs) -> NDArray[Any]:
    """Return (E, D) "ok", or why the data have no tau."""
    pairs, tied, tied_gold = (np.asarray(x[0]) for x in (sums.pairs, sums.tied_scores, sums.tied_gold))
    return resamples.first_reason(
        (scores.n_models[:, None] < 2, FEW_SCORED),
        (scores.constant[:, None], CONSTANT),
        (scores.constant_gold[:, None], CONSTANT_GOLD),
        (pairs == 0, NO_PAIRS),
        (tied == pairs, ALL_TIED),
        (tied_gold == pairs, ALL_TIED_GOLD),
    )


def delta_table(taus: pd.DataFrame, few_pairs: int = FEW_PAIRS) -> pd.DataFrame:
    """Return taus of `kendall_tau_delta` with a row per evaluator and a column per delta, as in Table 1 of Xu et al.

    Args:
        few_pairs: taus of fewer pairs are hidden (NaN); 0 shows all.
    """
    shown = resamples.with_evaluator(hide_few_pairs(taus, "tau", few_pairs))
    order = list(dict.fromkeys(shown["evaluator"]))
    return shown.set_index(["evaluator", "delta"])["tau"].unstack().loc[order]  # noqa: PD010


@spelled_out(resamples.EvaluatorResamples, RunningOptions)
def stratified_rank_change(
    scores: Scores, gold: Gold, n_tiers: int = 4, *, within_tier: bool = False, **options: Unpack[KendallTauArguments]
) -> pd.DataFrame:
    """Return the mean |rank by the evaluator - rank by gold| of the models in each tier of gold, in places.

    Tier 1 is the best. The tiers split the models that gold and some evaluator scored into equal parts; if they cannot
    be equal, the better tiers have one model more. Models that gold ties stay in one tier. Ties share the average of
    their ranks. A resample of models has tiers and ranks of its own.

    Args:
        scores, gold: as in `kendall_tau_delta`, like all other arguments.
        n_tiers: number of tiers; 1 gives the mean deviation of all ranks.
        within_tier: rank the models of a tier among themselves, instead of among all that the evaluator scored.

    Returns:
        A row per evaluator and tier: ``evaluator`` (if they have names), ``tier``, ``rank_change``, ``n_models`` (those
        of the tier that the evaluator scored), ``n_pairs`` (pairs of models that are ranked against each other, with
        one or both in the tier), ``n_missing`` (models with only one of the two scores) and ``status``. With resamples
        also ``lower``, ``upper`` and ``failed_share``, the share of the resamples without models in the tier; these
        count as 0 in ``lower``, and in ``upper`` as the greatest change that is possible.

    Raises:
        DataError, TypeError, ValueError: as in `kendall_tau_delta`, or there are fewer models than tiers.

    Examples:
        >>> judge, people = [8.1, 7.9, 6.2, 5.0, 4.4, 3.1], [1250, 1270, 1180, 1100, 1090, 1010]
        >>> table = stratified_rank_change(judge, people, n_tiers=2, n_resamples=0)
        >>> table[["tier", "rank_change", "n_models"]].round(2)
           tier  rank_change  n_models
        0     1         0.67         3
        1     2         0.00         3
    """
    n_tiers = checked_integer("n_tiers", n_tiers, 1)
    aligned, settings = resamples.opened(scores, gold, options)
    m = len(aligned.gold)
    if m < n_tiers:
        few = f"{counted(m, 'model')} cannot be split into {counted(n_tiers, 'tier')}"
        raise DataError(f"{few}: ask for fewer (n_tiers=, on the command line --tiers)")
    size = 6 * m * (1 if settings.resample == "models" else m)
    tiers = as_leaf(np.arange(n_tiers), np.int64), as_leaf(within_tier, np.bool_)
    change, n_changed = resamples.resampled(tier_changes, aligned, tiers, settings, size)
    n = aligned.n_models[:, None]
    status = resamples.first_reason(
        (n < 2, FEW_SCORED),
        (aligned.constant[:, None], CONSTANT),
        (aligned.constant_gold[:, None], CONSTANT_GOLD),
        (n_changed[0] == 0, NO_MODEL),
    )
    of_tier = n_changed[0].astype(int)
    inside = of_tier * (of_tier - 1) // 2
    columns: dict[str, Any] = {
        "rank_change": np.where(status == OK, change[0], np.nan),
        "n_models": of_tier,
        "n_pairs": inside if within_tier else inside + of_tier * (n - of_tier),
        "n_missing": aligned.n_missing,
        "status": status,
        **resamples.interval_columns(np.where(status == OK, change, np.nan), settings, 0.0, m - 1.0),
    }
    if settings.n_resamples:  # no model of those that the evaluator scored can move by more
        columns["upper"] = np.minimum(columns["upper"], np.maximum(n - 1.0, 0))
    table = resamples.evaluator_table(aligned, [("tier", np.arange(1, n_tiers + 1))], columns, settings)
    table.attrs["settings"] |= {"n_tiers": n_tiers, "within_tier": within_tier}
    return table
