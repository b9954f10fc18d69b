"""Which reference ranks models as all the votes do: single references, several under one budget, and how sure that is.

After Xu, Gaur, Leqi and Goyal, "Revisiting meta-evaluation standards of LLM evaluators" (Setting 1, Tables 3, 4 and 6,
Figures 1 and 2), with bootstrap intervals.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Float, Int
from jaxeval.checks import checked_integer, checked_numbers, checked_positive, checked_resamples
from jaxeval.data.battles import Battles, as_battles
from jaxeval.evaluators.model_scores import FEW_PAIRS
from jaxeval.execution.precision import device_name, versions
from jaxeval.execution.processes import n_sharing, together
from jaxeval.execution.runs import Identity, RunOptions, open_run
from jaxeval.execution.signatures import spelled_out
from jaxeval.kernels.batch.references import BudgetSums, SameModelSums, SingleReferences
from jaxeval.lab import reference_tables
from jaxeval.lab.reference_rankings import ReferenceBoard, ReferenceStudySettings, rankings
from jaxeval.lab.reference_tables import close_advice, mean_by_tier, set_advice, single_advice, tier_advice, weak_points
from jaxeval.lazy_names import jax
from jaxeval.ratings.bootstrap import bootstrap, fit_bradley_terry
from jaxeval.show.shown import Answer, Result
from jaxeval.statistics.draws import Draws
from jaxeval.statistics.quantiles import centred, checked_level
from jaxeval.wording import counted, did_you_mean, named

Sets = Mapping[str, Sequence[Hashable]] | Sequence[Sequence[Hashable]]

_COMBINATIONS = ((1, 2, 3, 4), (1, 2, 3), (2, 3, 4), (3, 4), (1, 4), (1, 3))  # of tiers, Table 6


@dataclass(frozen=True, eq=False, repr=False)
class ReferenceStudy(Result):
    """How rankings against references agree with the full Bradley-Terry ranking of the same votes.

    ``tau`` is Kendall's tau-b, over the pairs of models whose scores differ by less than ``delta`` percentage points;
    an infinite delta takes all pairs. ``misordered`` is the share of these pairs in the wrong order, the expected loss;
    ties count as half. ``rank_change`` is the mean |rank - rank in the full ranking| (Eq. 4); both ranks are among the
    models that the reference ranks. The full ranking uses the reference's own votes, too. Tier 1 is the top one.
    Intervals are for what unlimited votes would give. They hold the resamples of the votes, each of which refits the
    full ranking, and the same resamples moved by twice their bias: votes that vary put models in disorder, and
    resamples once more. With some 20 votes a pair of models, intervals of .95 hold .9.

    References rank different models and different numbers of them. ``relative_change`` is ``rank_change`` as a share of
    the greatest possible change, the number of ranked models less one. Means over a tier take the references with
    enough pairs (``few_pairs``): ``n_references`` of them, and ``n_tau_references`` inside the tier of the models.
    ``gain`` is the tau of a set less ``tau_alone``, the mean tau of its references alone. Each of these has the same
    budget, and all taus are over the models that all of them rank.

    Examples:
        >>> import jaxeval
        >>> votes = jaxeval.simulate_battles(400, 5, seed=1)
        >>> study = jaxeval.reference_study(votes, budgets=[5], n_repeats=2, n_tiers=2, n_resamples=0)
        >>> study.by_set[["references", "budget", "n_models", "n_repeats"]]
           references  budget  n_models  n_repeats
        0  tiers 1, 2       5         3          2
    """

    by_reference: pd.DataFrame  # a row per reference, best first
    by_delta: pd.DataFrame  # a row per reference and delta
    by_test_tier: pd.DataFrame  # a row per reference and tier of the models ranked (Figure 1)
    by_tier: pd.DataFrame  # a row per tier of the references and delta: means over those with enough pairs (Table 4)
    by_tier_and_test_tier: pd.DataFrame  # a row per tier of the references and tier of the models (Figure 2)
    by_budget: pd.DataFrame  # a row per set of references, budget and delta: means over repeats (Table 6)
    by_set: pd.DataFrame  # a row per set and budget: compared with its references alone, on the same models
    advice: list[str]
    warnings: list[str]
    settings: ReferenceStudySettings
    tier: pd.Series = field(repr=False)  # of every model; missing without a rating
    tau_draws: Float = field(repr=False)  # (B, L, D) by_delta's tau in the resamples, not centred
    budget_tau_draws: Float = field(repr=False)  # (B, S, budgets, D) by_budget's tau in the resamples, not centred

    def _shown(self) -> Answer:
        title = f"ReferenceStudy: {counted(len(self.by_reference), 'reference')} of {counted(len(self.tier), 'model')}"
        return Answer(title, self.by_reference, self.settings, self.warnings)

    def _sentences(self) -> list[str]:
        return self.advice

    @property
    def joint(self) -> Draws:
        """The ``tau`` of ``by_delta`` as joint draws; the names have the levels ``reference`` and ``delta``.

        A resample without a tau counts as -1 in the lower end of an interval of these draws and as 1 in the upper end;
        the tables leave it out.
        """
        return self._taus(self.by_delta, ["reference", "delta"], self.tau_draws)

    @property
    def joint_under_budget(self) -> Draws:
        """The ``tau`` of ``by_budget`` as joint draws; the names have the levels ``references``, ``budget``, ``delta``.

        They come from the same resamples of the votes as those of `joint`.
        """
        return self._taus(self.by_budget, ["references", "budget", "delta"], self.budget_tau_draws)

    def _taus(self, table: pd.DataFrame, keys: list[str], drawn: Float) -> Draws:
        estimate = table["tau"].to_numpy()
        draws = centred(np.concatenate([estimate[None], drawn.reshape(len(drawn), len(table))]))
        return Draws(
            table.set_index(keys).index, estimate, draws, limits=reference_tables.RANGES["tau"],
            warnings=tuple(self.warnings), settings=self.settings,
        )  # fmt: skip


@spelled_out()
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
    strata: str | None = None,
    item: str | None = None,
    ridge: float = 0.01,
    few_pairs: int = FEW_PAIRS,
    **options: Unpack[RunOptions],
) -> ReferenceStudy:
    """Study how rankings by votes against one reference, or a set of them, agree with the ranking by all votes.

    Against one reference, models are ranked by win rate; a tie counts as half (Eq. 1). The ranking leaves out the
    reference itself, models that never met it, and models without a comparable rating on all votes; tables count them.
    Close pairs are those whose win rates differ by less than delta percentage points. These are the scores of the
    evaluator, not those of the full ranking (Section 2.3).

    Under a budget, every model has that many votes, drawn without replacement from its own votes (in a resample, from
    those of the resample). Each vote draws one of the set's references that have votes left, and then one of the votes
    between the two. A model with fewer votes has all of them. One reference ranks by win rate. Several references rank
    by the Bradley-Terry model of the drawn votes: the score is the mean win probability against the set in percent, so
    delta means the same. A set does not rank its own references. With ``item``, a budget is a number of items, drawn
    without replacement; each item draws one reference of the set for all models.

    Resample r and its repeats are functions of (seed, r) alone.

    Args:
        battles: `Battles`, or a table with the standard columns.
        references: models to study as single references; all of them by default.
        sets: several references under one budget, with or without names; by default the tier combinations of Table 6,
            where the model with most battles stands for its tier.
        deltas: margins in percentage points of win rate.
        budgets: votes of every model; an empty list leaves the study of budgets out.
        n_tiers: number of tiers, equal parts of the models by rating. A reference is in the tier of its own rating.
        n_repeats: how often every budget is drawn, in the data and in every resample; the numbers are means.
        n_resamples: bootstrap resamples of the votes; 0 for none.
        level: level of the intervals.
        cluster: column of clusters (prompts, voters) that are resampled whole.
        strata: column of strata, of which every resample holds as many votes (or clusters, or items) as there are, as
            in `bootstrap`.
        item: column of prompts, where models met the references on nearly all of them. Items are resampled whole.
        ridge: > 0, coefficient of the squared norm in the fits to several references. It keeps models finite that won
            all their votes.
        few_pairs: references with fewer pairs of models enter no mean over a tier and no advice; 0 takes all.
        chunk_size, memory_limit, checkpoint, progress: as in `bootstrap`. A checkpoint keeps the resamples of the full
            ranking, too.

    Raises:
        ValueError: a number is out of range, a reference is not on the board, or a set is named twice.
        TypeError: a number that must be an integer is not one.
        DataError: ``battles`` is a table that cannot be read, it has no column ``cluster``, ``strata`` or ``item``, a
            cluster or an item lies in several strata, or the items have too few of the verdicts.

    Examples:
        >>> import jaxeval
        >>> votes = jaxeval.simulate_battles(400, 5, seed=1)
        >>> study = jaxeval.reference_study(votes, budgets=[], n_tiers=2, n_resamples=0)
        >>> study.by_reference[["reference", "rank", "n_pairs", "tau"]].round(3).head(3)
          reference  rank  n_pairs    tau
        0   model-2     1        6  0.667
        1   model-1     2        6  0.667
        2   model-4     3        6  1.000
    """
    battles = as_battles(battles)
    with together(battles.n_processes):
        if item is not None and cluster is not None:
            raise ValueError(
                f"items are resampled whole: give item={item!r} or cluster={cluster!r}, not both (on the command line "
                "--item, --cluster)"
            )
        settings = ReferenceStudySettings(
            deltas=_checked_deltas(deltas), budgets=_checked_budgets(budgets),
            n_tiers=checked_integer("n_tiers", n_tiers, 1), n_repeats=checked_integer("n_repeats", n_repeats, 1),
            n_resamples=checked_resamples(n_resamples), seed=checked_integer("seed", seed),
            level=checked_level(level), cluster=cluster, strata=strata, item=item,
            ridge=checked_positive("ridge", ridge, ": it keeps undefeated models finite"), device=device_name(),
            n_devices=jax.local_device_count() * n_sharing(), few_pairs=checked_integer("few_pairs", few_pairs),
            versions=versions(),
        )  # fmt: skip
        chosen = model_numbers(references, battles.models) if references is not None else np.arange(battles.n_models)
        own_sets = named_sets(sets, battles.models) if sets is not None else None
        return _study(battles, settings, chosen, own_sets, **options)


def _study(
    battles: Battles,
    settings: ReferenceStudySettings,
    chosen: NDArray[np.intp],
    own_sets: dict[str, NDArray[np.intp]] | None,
    **options: Unpack[RunOptions],
) -> ReferenceStudy:
    n_resamples, column = settings.n_resamples, settings.item or settings.cluster

    def identity() -> Identity:
        names = ("deltas", "budgets", "n_tiers", "n_repeats", "seed", "ridge", "cluster", "strata", "item")
        drawn = {name: getattr(settings, name) for name in names}
        shown = {name: getattr(settings, name) for name in ("n_resamples", "level", "few_pairs")}
        rows = battles.model_a, battles.model_b, battles.target, battles.weight, battles.count
        groups = [battles.codes(name)[0] for name in (column, settings.strata) if name is not None]
        return Identity(drawn, (battles.models, rows, groups, chosen, own_sets), shown, noun="battles")

    with open_run(identity, n_resamples + 1, "rankings against references", **options) as run:
        if n_resamples:
            gold = bootstrap(battles, n_resamples, settings.seed, cluster=column, strata=settings.strata)
            fit, warnings, draws = gold.fit, gold.warnings, gold.draws_logit
        else:
            fit = fit_bradley_terry(battles)
            warnings, draws = fit.warnings, np.empty((0, battles.n_models))
        theta = fit.logits.to_numpy()
        tier = tiers_of(theta, settings.n_tiers)
        chosen = chosen[np.argsort(-theta[chosen], kind="stable")]  # best first, the unrated last
        several = own_sets or {}
        if own_sets is None and settings.budgets:
            several = default_sets(chosen, tier, fit.n_battles.to_numpy())
        draws = np.concatenate([theta[None], draws])
        board = ReferenceBoard(models=battles.models, references=chosen, sets=several, tier=tier, theta=draws)
        single, under_budget, same = rankings(battles, board, settings, run)
    return _result(battles, board, single, under_budget, same, settings, warnings)


def _checked_deltas(deltas: Sequence[float]) -> tuple[float, ...]:
    margins = np.unique(checked_numbers("deltas", deltas))
    if not (margins > 0).all():
        raise ValueError(f"deltas must be > 0 percentage points, got {named(margins.tolist())}")
    return tuple(margins[np.isfinite(margins)].tolist())


def _checked_budgets(budgets: Sequence[int]) -> tuple[int, ...]:
    votes = np.unique(np.asarray(budgets))
    if len(votes) and not (np.issubdtype(votes.dtype, np.integer) and (votes > 0).all() and (votes < 2**31).all()):
        got = named(votes.tolist())
        raise ValueError(f"budgets must be whole numbers of votes, from 1 to {2**31 - 1:,}, got {got}")
    return tuple(votes.astype(int).tolist())


def _result(
    battles: Battles, board: ReferenceBoard, single: SingleReferences, under_budget: BudgetSums, same: SameModelSums,
    settings: ReferenceStudySettings, warnings: Sequence[str],
) -> ReferenceStudy:  # fmt: skip
    level, n_tiers, few = settings.level, settings.n_tiers, settings.few_pairs
    members, rated = board.references, ~np.isnan(board.theta[0])
    tier, names = board.tier[members], board.models[members]
    rank = pd.Series(-board.theta[0]).rank(method="min").iloc[members].astype("Int64").array
    n = battles.cells.tables(battles.n_models)[0][:, members]
    labels = {"reference": names, "tier": pd.array(tier, "Int64")}
    labels["tier"][tier == 0] = pd.NA
    # From (B + 1, deltas or tiers, L).
    single = jax.tree.map(lambda x: np.swapaxes(x, 1, 2), single)
    by_reference = reference_tables.study_table(
        {**labels, "rank": rank}, {}, level,
        n_battles=n.sum(0),
        battles_per_model=pd.DataFrame(np.where(n > 0, n, np.nan)).median().to_numpy(),
        n_models=((n > 0) & rated[:, None]).sum(0),
        n_never_met=(n == 0).sum(0) - 1,
        n_unrated=((n > 0) & ~rated[:, None]).sum(0),
        n_pairs=single.pairs[0, :, -1].astype(int),
        tau=single.tau[..., -1],
        misordered=single.misordered[..., -1],
        rank_change=reference_tables.overall_change(single),
    )  # fmt: skip
    deltas, all_tiers = {"delta": settings.margins}, np.arange(1, n_tiers + 1)
    in_tier = tier == all_tiers[:, None]  # (T, L)
    by_delta = reference_tables.study_table(
        labels, deltas, level, n_pairs=single.pairs[0].astype(int), tau=single.tau, misordered=single.misordered
    )
    by_test_tier = reference_tables.study_table(
        labels, {"test_tier": all_tiers}, level,
        n_models=single.tier_models[0].astype(int),
        rank_change=single.rank_change,
        n_pairs=single.tier_pairs[0].astype(int),
        tau=single.tier_tau,
    )  # fmt: skip
    averaged = partial(mean_by_tier, in_tier=in_tier)
    under, inside = np.asarray(single.pairs[0]) >= few, np.asarray(single.tier_pairs[0]) >= few
    ranking = np.broadcast_to(under[:, -1:], inside.shape)
    by_tier = reference_tables.study_table(
        {"tier": all_tiers}, deltas, level,
        n_references=in_tier.astype(int) @ under,
        n_pairs=averaged(single.pairs[0], enough=under),
        tau=averaged(single.tau, enough=under),
        misordered=averaged(single.misordered, enough=under),
    )  # fmt: skip
    relative = averaged(reference_tables.relative_changes(single), enough=ranking)  # (B + 1, T, T)
    by_both = reference_tables.study_table(
        {"tier": all_tiers}, {"test_tier": all_tiers}, level,
        n_references=in_tier.astype(int) @ ranking,
        rank_change=averaged(single.rank_change, enough=ranking),
        relative_change=relative,
        n_tau_references=in_tier.astype(int) @ inside,
        n_pairs=averaged(single.tier_pairs[0], enough=inside),
        tau=averaged(single.tier_tau, enough=inside),
    )  # fmt: skip
    by_budget, budget_tau = reference_tables.budget_table(battles, board, labels["tier"], under_budget, settings)
    by_set = reference_tables.same_models_table(battles, board, same, settings)
    advice = [
        *single_advice(budget_tau[:, : len(names), :, -1], by_budget, rated.sum(), settings),
        *tier_advice(relative, by_both, settings),
        *close_advice(by_delta, settings),
        *set_advice(by_set, board, settings),
    ]
    tiers = pd.Series(board.tier, board.models, name="tier", dtype="Int64").where(board.tier > 0)
    return ReferenceStudy(
        by_reference, by_delta, by_test_tier, by_tier, by_both, by_budget, by_set, advice,
        warnings=[*warnings, *weak_points(by_reference, settings)], settings=settings, tier=tiers,
        tau_draws=np.asarray(single.tau[1:]), budget_tau_draws=budget_tau[1:],
    )  # fmt: skip


def model_numbers(names: Sequence[Hashable], models: pd.Index) -> NDArray[np.intp]:
    """Return numbers of the models named."""
    if isinstance(names, str) or len(names) == 0:
        got = f"the text {names!r}" if isinstance(names, str) else "none"
        raise ValueError(f"references must be a list of one or more models, got {got}")
    number = models.get_indexer(pd.Index(list(names)))
    missing = [name for name, n in zip(names, number, strict=True) if n < 0]
    if missing:
        raise ValueError(
            f"no model {named(missing)} on the board, whose models are "
            f"{named(models)}{did_you_mean(missing[0], models)}"
        )
    if len(set(number)) < len(number):
        twice = pd.Index(list(names))
        raise ValueError(f"references are named twice: {named(twice[twice.duplicated()].unique())}")
    return np.asarray(number)


def named_sets(sets: Sets, models: pd.Index) -> dict[str, NDArray[np.intp]]:
    """Return numbers of the models of every set, by its name or those of its models."""
    items = sets.items() if isinstance(sets, Mapping) else ((" + ".join(map(str, names)), names) for names in sets)
    numbers_of: dict[str, NDArray[np.intp]] = {}
    label_of: dict[frozenset[int], str] = {}
    for key, names in items:
        label, numbers = str(key), model_numbers(names, models)
        first = label_of.setdefault(frozenset(numbers.tolist()), label)
        if label in numbers_of or first != label:
            raise ValueError(f"sets are named twice: {label}{f' is {first} again' if first != label else ''}")
        numbers_of[label] = numbers
    alone = [label for label, numbers in numbers_of.items() if len(numbers) < 2]
    if alone:
        raise ValueError(
            f"sets need two references or more: {named(alone)} (name single ones with references=, on the command line "
            "--reference)"
        )
    return numbers_of


def tiers_of(theta: Float, n_tiers: int) -> Int:
    """Return (M,) tiers of equal numbers of models by rating, as in `stratified_rank_change`: 1 = top, 0 = unrated."""
    rank = pd.Series(-theta).rank().to_numpy()
    size, more = divmod(int((~np.isnan(rank)).sum()), n_tiers)
    better = np.arange(1, n_tiers)
    tier = 1 + (rank[:, None] > better * size + np.minimum(better, more)).sum(1)
    return np.where(np.isnan(rank), 0, tier).astype(np.int64)


def default_sets(chosen: NDArray[np.intp], tier: Int, n_battles: Int) -> dict[str, NDArray[np.intp]]:
    """Return the combinations of tiers of Table 6 of Xu et al. (see `reference_study`).

    Of each tier, the one of the ``chosen`` references that has most battles.
    """
    best = {
        t: in_tier[np.argmax(n_battles[in_tier])]
        for t in np.unique(tier[chosen])
        if t > 0
        for in_tier in [chosen[tier[chosen] == t]]
    }
    wanted = (tuple(t for t in tiers if t in best) for tiers in _COMBINATIONS)
    return {
        f"tiers {', '.join(map(str, tiers))}": np.array([best[t] for t in tiers])
        for tiers in dict.fromkeys(wanted)
        if len(tiers) > 1
    }
