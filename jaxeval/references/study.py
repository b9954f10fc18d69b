"""Which reference ranks models as all the votes do: single references, several under one budget, and how sure that is.

After Xu, Gaur, Leqi and Goyal, "Revisiting meta-evaluation standards of LLM evaluators" (Setting 1, Tables 3, 4 and 6,
Figures 1 and 2), with bootstrap intervals.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

import jax
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.checks import checked_integer, checked_numbers, checked_positive, checked_resamples
from jaxeval.data.battles import Battles, as_battles
from jaxeval.evaluators.few_pairs import FEW_PAIRS
from jaxeval.execution.precision import device_name, versions
from jaxeval.execution.processes import n_sharing, together
from jaxeval.execution.runs import Identity, RunOptions, open_run
from jaxeval.kernels import batch
from jaxeval.ratings.bootstrap import bootstrap
from jaxeval.ratings.bradley_terry import fit_bradley_terry
from jaxeval.references.advice import close_advice, set_advice, single_advice, tier_advice, weak_points
from jaxeval.references.rankings import ReferenceBoard, ReferenceStudySettings, rankings
from jaxeval.references.sets import Sets, default_sets, model_numbers, named_sets, tiers_of
from jaxeval.references.tables import (
    budget_table,
    count_by_tier,
    grid,
    mean_by_tier,
    overall_change,
    relative_changes,
    same_models_table,
    with_bounds,
)
from jaxeval.statistics.quantiles import checked_level

Float = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ReferenceStudy:
    """How rankings against references agree with the full Bradley-Terry ranking of the same votes.

    ``tau`` is Kendall's tau-b; with a ``delta`` it is of the pairs of models whose scores, in percent, differ by less
    than delta (infinity: all pairs). ``misordered`` is the share of these pairs in the wrong order, ties counting half:
    the expected loss. ``rank_change`` is the mean |rank - rank in the full ranking| (Eq. 4), both ranks being among the
    models that the reference ranks. Intervals, of what another study of this size would give on average, come from
    resamples of the votes, in each of which the full ranking is refitted too (see `centred`); there are none without
    resamples. The reference's own votes are part of the full ranking. Tier 1 is the top one.

    References rank different models and numbers of them. ``relative_change`` is ``rank_change`` over the greatest there
    is, the number of models ranked less one. Means over a tier are of the references with enough pairs
    (``few_pairs``; ``n_references`` counts them, and ``n_tau_references`` those with enough pairs inside the tier of
    the models). ``gain`` is the tau of a set less the mean ``tau_alone`` of its references, every one of them with the
    same budget and on the models that all rank.
    """

    by_reference: pd.DataFrame  # a row per reference, best first
    by_delta: pd.DataFrame  # a row per reference and delta
    by_test_tier: pd.DataFrame  # a row per reference and tier of the models ranked (Figure 1)
    by_tier: pd.DataFrame  # a row per tier of the references and delta: means over those with enough pairs (Table 4)
    by_tier_and_test_tier: pd.DataFrame  # a row per tier of the references and tier of the models (Figure 2)
    by_budget: pd.DataFrame  # a row per set of references, budget and delta: means over repeats (Table 6)
    by_set: pd.DataFrame  # a row per set of several and budget: beside its references alone, on the same models
    advice: list[str]
    warnings: list[str]
    settings: ReferenceStudySettings
    tier: pd.Series = field(repr=False)  # of every model; missing without a rating
    tau_draws: Float = field(repr=False)  # (B, L, D) resamples of by_delta's tau, as they are
    budget_tau_draws: Float = field(repr=False)  # (B, S, budgets, D) and of by_budget's


def reference_study(
    battles: Battles | Any,
    *,
    references: Sequence[Hashable] | None = None,
    sets: Sets | None = None,
    deltas: Sequence[float] = (2.0, 5.0, 10.0, 20.0),
    budgets: Sequence[int] = (25, 50, 100, 200),
    n_tiers: int = 4,
    n_repeats: int = 10,
    n_resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    cluster: str | None = None,
    item: str | None = None,
    ridge: float = 0.01,
    few_pairs: int = FEW_PAIRS,
    chunk_size: int | None = None,
    memory_limit: int | None = None,
    checkpoint: str | Path | None = None,
    progress: bool | None = None,
) -> ReferenceStudy:
    """Rank the models by their votes against single references and sets of them, and compare with all votes' ranking.

    Against one reference models are ranked by win rate, ties counting half (Eq. 1). The reference itself and models
    that never met it are left out, and so are models without a comparable rating on all votes; all are counted. tau of
    close pairs takes those whose win rates differ by less than delta percentage points, strictly: the scores of the
    evaluator, not of the full ranking (Section 2.3).

    Under a budget every model has so many votes, drawn without replacement from its own (from the resample's, in a
    resample): for each vote a reference of the set, all with votes left being alike, and then one of the votes between
    the two. A model with fewer votes has all of them. One reference ranks by win rate; several by the Bradley-Terry
    model of the votes drawn, whose score is the mean win probability against the set, percent, so that delta means the
    same. References of a set are not ranked by it. With ``item``, where models met references on the same prompts, a
    budget is a number of items, drawn without replacement, and each draws one reference of the set for all models.

    Resample r and its repeats are functions of (seed, r) alone.

    Args:
        battles: `Battles`, or a table with the standard columns.
        references: models to study as single references; all of them by default.
        sets: several references under one budget, by name or not; by default the tier combinations of Table 6, each
            tier by its model with most battles.
        deltas: margins, percentage points of win rate.
        budgets: votes of every model; none leaves the study of budgets out.
        n_tiers: of equal numbers of models, by rating; a reference belongs to the tier of its own rating.
        n_repeats: studies of every budget, in the data and in every resample; the numbers are their means.
        n_resamples: bootstrap resamples of the votes; 0 for none.
        seed: any integer from 0 to 2**63 - 1.
        level: of the intervals.
        cluster: column of clusters (prompts, voters) that are resampled whole.
        item: column of prompts, on nearly all of which models met all references: these draw the references of sets,
            and are resampled whole.
        ridge: > 0, coefficient of the squared norm in the fits to several references, which keeps models finite that
            won all their votes.
        few_pairs: references with fewer pairs of models enter no mean over a tier and no advice; 0 takes all.
        chunk_size: resamples computed together; by default sized to the cache, or to 1 GB of an accelerator.
        memory_limit: bytes that resamples and their results may take, as in `bootstrap`.
        checkpoint: folder that finished resamples are kept in, as in `bootstrap`.
        progress: show a bar on standard error; by default only on a terminal, for work over 0.7 s.

    Raises:
        ValueError: a number out of range, a reference that is not on the board, or a set twice.
        TypeError: a number that must be an integer is none.
        DataError: ``battles`` is a table that cannot be read, ``cluster`` or ``item`` no column of it, or the
            items have too few of the verdicts.
    """
    battles = as_battles(battles)
    with together(battles.n_processes):
        if item is not None and cluster is not None:
            raise ValueError(f"items are resampled whole: give item={item!r} or cluster={cluster!r}, not both")
        settings = ReferenceStudySettings(
            deltas=_checked_deltas(deltas),
            budgets=_checked_budgets(budgets),
            n_tiers=checked_integer("n_tiers", n_tiers, 1),
            n_repeats=checked_integer("n_repeats", n_repeats, 1),
            n_resamples=checked_resamples(n_resamples),
            seed=checked_integer("seed", seed),
            level=checked_level(level),
            cluster=cluster,
            item=item,
            ridge=checked_positive("ridge", ridge, ": it keeps undefeated models finite"),
            device=device_name(),
            n_devices=jax.local_device_count() * n_sharing(),
            few_pairs=checked_integer("few_pairs", few_pairs),
            versions=versions(),
        )
        chosen = model_numbers(references, battles.models) if references is not None else np.arange(battles.n_models)
        named = named_sets(sets, battles.models) if sets is not None else None
        return _study(
            battles, settings, chosen, named,
            chunk_size=chunk_size, memory_limit=memory_limit, checkpoint=checkpoint, progress=progress,
        )  # fmt: skip


def _study(
    battles: Battles,
    settings: ReferenceStudySettings,
    chosen: NDArray[np.intp],
    named: dict[str, NDArray[np.intp]] | None,
    **options: Unpack[RunOptions],
) -> ReferenceStudy:
    """The study of the references ``chosen``, and of the sets that are ``named`` or else those of the tiers."""
    n_resamples, column = settings.n_resamples, settings.item or settings.cluster

    def identity() -> Identity:
        drawn = ("deltas", "budgets", "n_tiers", "n_repeats", "seed", "ridge", "cluster", "item")
        shown = ("n_resamples", "level", "few_pairs")
        rows = battles.model_a, battles.model_b, battles.target, battles.weight, battles.count
        groups = None if column is None else battles.codes(column)[0]
        return Identity(
            {name: getattr(settings, name) for name in drawn},
            (battles.models, rows, groups, chosen, named),
            {name: getattr(settings, name) for name in shown},
            noun="battles",
        )

    with open_run(identity, n_resamples + 1, "rankings against references", **options) as run:
        if n_resamples:
            gold = bootstrap(battles, n_resamples, settings.seed, cluster=column)
            fit, warnings, draws = gold.fit, gold.warnings, gold.draws_logit
        else:
            fit = fit_bradley_terry(battles)
            warnings, draws = fit.warnings, np.empty((0, battles.n_models))
        theta = fit.logits.to_numpy()
        tier = tiers_of(theta, settings.n_tiers)
        chosen = chosen[np.argsort(-theta[chosen], kind="stable")]  # best first, the unrated last
        several = named or {}
        if named is None and settings.budgets:
            several = default_sets(chosen, tier, fit.n_battles.to_numpy())
        board = ReferenceBoard(battles.models, chosen, several, tier, np.concatenate([theta[None], draws]))
        single, under_budget, same = rankings(battles, board, settings, run)
    return _result(battles, board, single, under_budget, same, settings, warnings)


def _checked_deltas(deltas: Sequence[float]) -> tuple[float, ...]:
    """The finite ones, ascending."""
    margins = np.unique(checked_numbers("deltas", deltas))
    if not (margins > 0).all():
        raise ValueError(f"deltas must be > 0 percentage points, got {deltas!r}")
    return tuple(margins[np.isfinite(margins)].tolist())


def _checked_budgets(budgets: Sequence[int]) -> tuple[int, ...]:
    """Ascending."""
    votes = np.unique(np.asarray(budgets))
    if len(votes) and not (np.issubdtype(votes.dtype, np.integer) and (votes > 0).all() and (votes < 2**31).all()):
        raise ValueError(f"budgets must be whole numbers of votes, from 1 to 2**31 - 1, got {budgets!r}")
    return tuple(votes.astype(int).tolist())


def _result(
    battles: Battles,
    board: ReferenceBoard,
    single: batch.SingleReferences,
    under_budget: batch.BudgetSums,
    same: batch.SameModelSums,
    settings: ReferenceStudySettings,
    warnings: Sequence[str],
) -> ReferenceStudy:
    level, n_tiers, margins = settings.level, settings.n_tiers, settings.margins
    rank = pd.Series(-board.theta[0]).rank(method="min")
    members = board.references
    tier, names = board.tier[members], board.models[members]
    n, _ = battles.cells.tables(battles.n_models)
    n = n[:, members]
    rated = ~np.isnan(board.theta[0])
    labels = {"reference": names, "tier": pd.array(tier, "Int64")}
    labels["tier"][tier == 0] = pd.NA
    with np.errstate(invalid="ignore"):
        median = pd.DataFrame(np.where(n > 0, n, np.nan)).median()
    by_reference = pd.DataFrame(
        {
            **labels,
            "rank": rank.iloc[members].astype("Int64").array,
            "n_battles": n.sum(0),
            "battles_per_model": median.to_numpy(),
            "n_models": ((n > 0) & rated[:, None]).sum(0),
            "n_never_met": (n == 0).sum(0) - 1,
            "n_unrated": ((n > 0) & ~rated[:, None]).sum(0),
            "n_pairs": np.asarray(single.pairs)[0, -1].astype(int),
            **with_bounds("tau", single.tau[:, -1], level),
            **with_bounds("misordered", single.misordered[:, -1], level),
            **with_bounds("rank_change", overall_change(single), level),
        }
    )
    tau = np.swapaxes(single.tau, 1, 2)  # (B + 1, L, D)
    by_delta = grid(labels, {"delta": margins}).assign(
        n_pairs=single.pairs[0].T.reshape(-1).astype(int),
        **with_bounds("tau", tau, level),
        **with_bounds("misordered", np.swapaxes(single.misordered, 1, 2), level),
    )
    all_tiers = np.arange(1, n_tiers + 1)
    rank_change, tier_tau = (np.swapaxes(x, 1, 2) for x in (single.rank_change, single.tier_tau))
    by_test_tier = grid(labels, {"test_tier": all_tiers}).assign(
        n_models=single.tier_models[0].T.reshape(-1).astype(int),
        **with_bounds("rank_change", rank_change, level),
        n_pairs=single.tier_pairs[0].T.reshape(-1).astype(int),
        **with_bounds("tau", tier_tau, level),
    )

    def averaged(values: Any, enough: NDArray[np.bool_]) -> Float:
        """(..., T of references, D or T of models) means of (..., D or T, L)."""
        return np.swapaxes(mean_by_tier(np.asarray(values), tier, n_tiers, enough), -1, -2)

    def counted(enough: NDArray[np.bool_]) -> NDArray[np.int64]:
        return count_by_tier(enough, tier, n_tiers).T.reshape(-1)

    few = settings.few_pairs
    under = np.asarray(single.pairs[0]) >= few  # (D, L)
    inside = np.asarray(single.tier_pairs[0]) >= few  # (T, L)
    ranking = np.broadcast_to(under[-1], inside.shape)
    by_tier = grid({"tier": all_tiers}, {"delta": margins}).assign(
        n_references=counted(under),
        n_pairs=averaged(single.pairs[0], under).reshape(-1),
        **with_bounds("tau", averaged(single.tau, under), level),
        **with_bounds("misordered", averaged(single.misordered, under), level),
    )
    relative = averaged(relative_changes(single), ranking)  # (B + 1, T, T)
    by_both = grid({"tier": all_tiers}, {"test_tier": all_tiers}).assign(
        n_references=counted(ranking),
        **with_bounds("rank_change", averaged(single.rank_change, ranking), level),
        **with_bounds("relative_change", relative, level),
        n_tau_references=counted(inside),
        n_pairs=averaged(single.tier_pairs[0], inside).reshape(-1),
        **with_bounds("tau", averaged(single.tier_tau, inside), level),
    )
    by_budget, budget_tau = budget_table(battles, board, labels["tier"], under_budget, settings)
    by_set = same_models_table(battles, board, same, settings)
    advice = [
        *tier_advice(relative, by_both, settings),
        *single_advice(budget_tau[:, : len(names), :, -1], by_budget, rated.sum(), settings),
        *close_advice(by_delta, settings),
        *set_advice(by_set, board, settings),
    ]
    return ReferenceStudy(
        by_reference, by_delta, by_test_tier, by_tier, by_both, by_budget, by_set, advice,
        [*warnings, *weak_points(by_reference, settings)], settings,
        pd.Series(board.tier, board.models, name="tier", dtype="Int64").where(board.tier > 0),
        tau[1:], budget_tau[1:],
    )  # fmt: skip
