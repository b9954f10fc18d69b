"""The tables of a study of references: values of the full data, with intervals from the resamples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.data.battles import Battles
from jaxeval.evaluators.model_scores import hide_few_pairs
from jaxeval.kernels.batch.references import BudgetSums, SameModelSums, SingleReferences
from jaxeval.lab.reference_rankings import ReferenceBoard, ReferenceStudySettings, battle_counts
from jaxeval.lazy_names import jax
from jaxeval.statistics.quantiles import centred, interval_bounds
from jaxeval.wording import counted, named

RANGES = {
    "tau": (-1.0, 1.0), "misordered": (0.0, 1.0), "rank_change": (0.0, np.inf), "relative_change": (0.0, 1.0),
    "tau_alone": (-1.0, 1.0), "gain": (-2.0, 2.0),
}  # fmt: skip
#: With fewer votes than this of a model against the reference (median), win rates are mostly noise.
FEW_VOTES = 30
#: Share of resamples from which on a choice counts as settled.
SETTLED = 0.95
_MOST_SHORT = 0.1  # a budget is compared if at most this share of the models has fewer votes than it


def study_table(rows: Mapping[str, Any], inner: Mapping[str, Any], level: float, **columns: Any) -> pd.DataFrame:
    """Return a row per combination of the labels ``rows`` (N,), which vary slowest, and ``inner`` (K,); K = 1 without.

    Columns are (N, K), or (N,). Those that `RANGES` names are (B + 1, N, K), the full data first; such a column gets
    its interval at ``level``, see `_bounds`, and without resamples NaN.
    """
    n, k = len(next(iter(rows.values()))), len(next(iter(inner.values()), [None]))
    table = {name: pd.Series(x).repeat(k).array for name, x in rows.items()}
    table |= {name: np.tile(np.asarray(x), n) for name, x in inner.items()}
    for name, values in columns.items():
        if name not in RANGES:
            values = values[:, None] if values.ndim == 1 else values.reshape(n, k)
            table[name] = np.broadcast_to(values, (n, k)).reshape(-1)
            continue
        ends = [np.full(n * k, np.nan)] * 2
        if len(values) > 1:
            ends = [np.clip(x, *RANGES[name]).reshape(-1) for x in _bounds(np.asarray(values), level)]
        table |= {name: np.reshape(values[0], -1), f"{name}_lower": ends[0], f"{name}_upper": ends[1]}
    return pd.DataFrame(table)


def _bounds(values: Float, level: float) -> tuple[Float, Float]:
    """Return bounds of (1 + B, ...) ``values``, the full data first, that hold what unlimited votes would give.

    Votes that vary put models in disorder, so that a tau lies below that of unlimited votes; resamples vary once more
    and lie below it again. Percentiles cannot reach up that far. Moved up they can, but few models have few different
    taus, and a moved end misses one by a little. The bounds hold both: the resamples, and these moved by twice their
    distance from the estimate.
    """
    lower, upper = interval_bounds(values[1:], level)
    moved_lower, moved_upper = interval_bounds(2 * centred(values) - values[1:], level)
    return np.fmin(lower, moved_lower), np.fmax(upper, moved_upper)


def mean_by_tier(values: Any, in_tier: Bool, enough: Bool | bool = True) -> Float:
    """Return (..., T, K) means of (..., L, K) over references ``in_tier`` (T, L) that have a value and enough pairs."""
    known = ~np.isnan(values) & enough
    n = in_tier @ known.astype(float)
    with np.errstate(invalid="ignore"):
        return np.where(n > 0, in_tier @ np.where(known, values, 0.0) / n, np.nan)


def budget_table(
    battles: Battles, board: ReferenceBoard, tier: Any, sums: BudgetSums, settings: ReferenceStudySettings
) -> tuple[pd.DataFrame, Float]:
    """Return the table of references and sets under every budget, and the mean tau (B + 1, S, budgets, D)."""
    sets = board.sets if settings.budgets else {}
    margins = settings.margins
    # From (B + 1, D, budgets, S).
    sums = jax.tree.map(lambda x: np.swapaxes(x, 1, 3), sums)
    times = np.where(sums.defined > 0, sums.defined, np.nan)
    tau, wrong, pairs = sums.tau / times, sums.misordered / times, sums.pairs / times
    with np.errstate(invalid="ignore", divide="ignore"):
        square = sums.tau_square[0] / times[0] - tau[0] ** 2
        spread = np.sqrt(np.where(square > 1e-12, square, 0.0) * times[0] / (times[0] - 1))
    members = [*board.references[:, None], *sets.values()]
    labels = {
        "references": [*board.models[board.references], *sets],
        "n_references": list(map(len, members)),
        "tier": [*tier, *[pd.NA] * len(sets)],
    }
    ranked, short = _ranked_and_short(battles, board, members, np.sum, settings)
    inner = {
        "budget": np.repeat(np.array(settings.budgets, int), len(margins)),
        "delta": np.tile(margins, len(settings.budgets)),
    }
    table = study_table(
        labels, inner, settings.level,
        n_models=ranked.sum(1),
        n_short=np.repeat(short.sum(2), len(margins), 1),
        n_pairs=pairs[0],
        tau=tau,
        tau_spread=spread,
        misordered=wrong,
        n_repeats=np.asarray(sums.defined)[0].astype(int),
    )  # fmt: skip
    return table, np.asarray(tau)


def same_models_table(
    battles: Battles, board: ReferenceBoard, sums: SameModelSums, settings: ReferenceStudySettings
) -> pd.DataFrame:
    """Return sets of references compared with their members alone, under the same budget and on the same models."""
    # From (B + 1, budgets, S).
    sums = jax.tree.map(lambda x: np.swapaxes(x, 1, 2), sums)
    times = np.where(np.asarray(sums.defined) > 0, sums.defined, np.nan)
    together, alone, pairs = sums.together / times, sums.alone / times, np.asarray(sums.pairs / times)
    sets = board.sets if settings.budgets else {}
    ranked, short = _ranked_and_short(battles, board, list(sets.values()), np.min, settings)
    rows = {"references": list(sets), "n_references": list(map(len, sets.values()))}
    return study_table(
        rows, {"budget": np.array(settings.budgets, int)}, settings.level,
        n_models=ranked.sum(1),
        n_short=short.sum(2),
        n_pairs=pairs[0],
        tau=together,
        tau_alone=alone,
        gain=together - alone,
        n_repeats=np.asarray(sums.defined)[0].astype(int),
    )  # fmt: skip


def _ranked_and_short(
    battles: Battles, board: ReferenceBoard, members: Sequence[NDArray[np.intp]], reduce: Callable[..., Int],
    settings: ReferenceStudySettings,
) -> tuple[Bool, Bool]:  # fmt: skip
    """Return (S, M) models that the members of a set rank, and (S, budgets, M) those with fewer votes than a budget.

    Votes are ``reduce`` over the members of a model's votes against each one; the members themselves have 0.
    """
    count, model = battle_counts(battles.cells, len(board.models)), np.arange(len(board.models))
    each = [np.where(np.isin(model, references), 0, reduce(count[:, references], axis=1)) for references in members]
    votes = np.array(each, np.int64).reshape(len(members), len(model))
    if settings.item is not None:  # a budget of items counts items, and all models share them
        votes = np.where(votes > 0, len(battles.codes(settings.item)[1]), 0)
    ranked = (votes > 0) & ~np.isnan(board.theta[0])
    return ranked, ranked[:, None] & (votes[:, None] < np.array(settings.budgets, int)[:, None])


def relative_changes(single: SingleReferences) -> Float:
    """Return (B + 1, L, T) rank changes by tier over the greatest possible one: the number of models ranked, less 1.

    References rank different numbers of models, and one that ranks few cannot be many places off.
    """
    places = np.asarray(single.tier_models).sum(2, keepdims=True) - 1
    return np.asarray(single.rank_change) / np.where(places > 0, places, np.nan)


def overall_change(single: SingleReferences) -> Float:
    """Return (B + 1, L) mean rank change of all models."""
    change, models = np.nan_to_num(single.rank_change), np.asarray(single.tier_models)
    with np.errstate(invalid="ignore"):
        return np.asarray((change * models).sum(2) / models.sum(2))


def tier_advice(change: Float, table: pd.DataFrame, settings: ReferenceStudySettings) -> Iterator[str]:
    """Yield which tier of references serves which tier of models.

    By relative rank changes (B + 1, T of references, T of models), as references rank different numbers of models.
    """
    usable = ~np.isnan(change[0]).all(1)
    if usable.sum() < 2:
        return
    for t in range(settings.n_tiers):
        rows = table[table["test_tier"] == t + 1].set_index("tier")[usable]
        if np.isnan(change[0, usable, t]).any():
            yield f"models of tier {t + 1}: not every tier has references that rank them; nothing to advise"
            continue
        if rows["n_references"].min() == 0:
            yield (
                f"models of tier {t + 1}: some tiers have no reference that ranks "
                f"{counted(settings.few_pairs, 'pair')} of models or more, so none is advised; take fewer tiers "
                "(n_tiers=, on the command line --tiers), or take references with fewer pairs, too (few_pairs=, on the "
                "command line --few-pairs)"
            )
            continue
        best, worst = rows.loc[rows["relative_change"].idxmin()], rows.loc[rows["relative_change"].idxmax()]
        yield (
            f"models of tier {t + 1} are ranked best by references of tier {best.name}: {best['rank_change']:.1f} "
            f"places off, {best['relative_change']:.1%} of the most possible"
            f"{_interval(best, 'relative_change', '.1%')} (by those of tier "
            f"{worst.name}, the worst, {worst['relative_change']:.1%}){_sure(-change[:, :, t])}"
        )


def single_advice(tau: Float, table: pd.DataFrame, n_rated: int, settings: ReferenceStudySettings) -> Iterator[str]:
    """Yield the single reference that agrees best under a budget: with all votes, the one with most of them would win.

    It compares references against which nearly all models have as many votes as the budget. The budget is the largest
    under which half of the references can be compared, or else as many of them as under any budget. ``tau`` is (B + 1,
    L, budgets), the ``table`` that of `budget_table`.
    """
    n_single, n_budgets = tau.shape[1:]
    if n_single < 2:
        return
    if n_budgets == 0:
        yield "no budgets were studied, and single references with more votes agree better for that reason alone"
        return
    rows = table[np.isinf(table["delta"])].head(n_single * n_budgets)
    pairs, whole = (
        x.to_numpy().reshape(n_single, n_budgets) for x in (rows["n_pairs"], rows["n_models"] - rows["n_short"])
    )
    enough = (pairs >= settings.few_pairs) & ~np.isnan(tau[0])
    if not enough.any():
        yield (
            f"no reference has {counted(settings.few_pairs, 'pair')} of models or more to rank: these votes say "
            "nothing about references"
        )
        return
    fair = enough & (whole >= (1 - _MOST_SHORT) * (n_rated - 1))
    n_fair = fair.sum(0)
    if n_fair.max() < 2:
        yield (
            f"no two references have {counted(settings.budgets[0], 'vote')} of nearly every model, so their agreement "
            "cannot be compared: it depends on their votes and their models, too; name smaller budgets (budgets=, on "
            "the command line --budgets)"
        )
        return
    b = np.flatnonzero(n_fair >= min(n_fair.max(), max(2, n_single / 2)))[-1]
    compared = np.flatnonzero(fair[:, b])
    row = rows.iloc[compared[tau[0, compared, b].argmax()] * n_budgets + b]
    yield (
        f"of the {counted(len(compared), 'single reference')} (of {n_single:,}) with "
        f"{counted(settings.budgets[b], 'vote')} of nearly every model, {row['references']} agrees best with "
        f"the ranking of all votes under that budget: tau "
        f"{row['tau']:.2f}{_interval(row, 'tau')} over {counted(row['n_pairs'], 'pair')}{_sure(tau[:, compared, b])}"
    )


def close_advice(by_delta: pd.DataFrame, settings: ReferenceStudySettings) -> Iterator[str]:
    """Say how well close pairs are ordered, at the smallest delta with enough pairs for half of the references."""
    for delta, rows in by_delta[np.isfinite(by_delta["delta"])].groupby("delta"):
        known = hide_few_pairs(rows, "tau", settings.few_pairs).dropna(subset="tau")
        if 2 * len(known) >= len(rows):
            yield (
                f"win rates within {counted(delta, 'point')} of each other: tau {known['tau'].mean():.2f} on average "
                f"over the references with enough such pairs ({len(known):,}), and {known['misordered'].mean():.0%} of "
                "the pairs in the wrong order"
            )
            return


def set_advice(table: pd.DataFrame, board: ReferenceBoard, settings: ReferenceStudySettings) -> Iterator[str]:
    """Compare sets of references with their members alone, at the largest budget that nearly all models have."""
    shown = hide_few_pairs(table, "gain", settings.few_pairs)
    fair = shown["n_short"] <= _MOST_SHORT * shown["n_models"]
    for label, rows in shown[fair & shown["gain"].notna()].groupby("references", sort=False):
        row = rows.iloc[-1]
        yield (
            f"{label} ({named(board.models[board.sets[label]])}) under {counted(row['budget'], 'vote')} a model: tau "
            f"{row['tau']:.2f}, the same references alone {row['tau_alone']:.2f} on average on the same models "
            f"(difference {row['gain']:+.2f}{_interval(row, 'gain', '+.2f')}; {counted(row['n_pairs'], 'pair')})"
        )


def weak_points(table: pd.DataFrame, settings: ReferenceStudySettings) -> Iterator[str]:
    """Yield too few pairs, votes or resamples, and models left out; ``table`` has a row per reference."""
    few = table.loc[table["n_pairs"] < settings.few_pairs, "reference"]
    if len(few):
        yield (
            f"{named(list(few))}: fewer than {counted(settings.few_pairs, 'pair')} of models, so the agreement says "
            "little"
        )
    unsure = table.loc[(table["battles_per_model"] < FEW_VOTES) & (table["n_pairs"] >= settings.few_pairs), "reference"]
    if len(unsure):
        yield (
            f"{named(list(unsure))}: fewer than {FEW_VOTES} votes against half of the models or more, so win rates are "
            "mostly noise"
        )
    missing = table["n_never_met"] + table["n_unrated"]
    n = int((missing > 0).sum())
    if n:
        worst = table.loc[missing.idxmax()]
        yield (
            f"{n:,} of {counted(len(table), 'reference')} {'does' if n == 1 else 'do'} not rank all other "
            f"models: most are missing from {worst['reference']} ({worst['n_never_met']:,.0f} never met it, "
            f"{counted(worst['n_unrated'], 'has', 'have')} no comparable rating). Numbers of different references rest "
            "on different models"
        )
    enough = int(np.ceil(2 / (1 - settings.level) - 1e-9))
    if 0 < settings.n_resamples < enough:
        yield (
            f"{counted(settings.n_resamples, 'resample is', 'resamples are')} too few for {100 * settings.level:g}% "
            f"intervals, whose tails each hold less than one of them: take {enough:,} or more"
        )


def _sure(score: Float) -> str:
    """Say in how many resamples the candidate of the highest ``score`` (B + 1, candidates) is that of the full data."""
    if len(score) == 1:
        return "; without resamples nothing says how sure that is"
    draws = centred(score)
    best = np.where(np.isnan(draws), -np.inf, draws).argmax(1)
    share = float((best == np.nanargmax(score[0])).mean())
    if share >= SETTLED:
        return f", as in {share:.0%} of the resamples"
    return f", but in only {share:.0%} of the resamples: the votes do not settle it"


def _interval(row: Any, name: str, form: str = ".2f") -> str:
    lower, upper = row[f"{name}_lower"], row[f"{name}_upper"]
    return "" if np.isnan(lower) else f" [{lower:{form}}, {upper:{form}}]"
