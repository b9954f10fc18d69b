"""The tables of a study of references: values of the full data, with intervals from the resamples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.data.battles import Battles
from jaxeval.kernels import batch
from jaxeval.references.rankings import ReferenceBoard, ReferenceStudySettings, battle_counts
from jaxeval.statistics.quantiles import centred, interval_bounds

RANGES = {
    "tau": (-1.0, 1.0),
    "misordered": (0.0, 1.0),
    "rank_change": (0.0, np.inf),
    "relative_change": (0.0, 1.0),
    "tau_alone": (-1.0, 1.0),
    "gain": (-2.0, 2.0),
}


def study_table(rows: Mapping[str, Any], inner: Mapping[str, Any], level: float, **columns: Any) -> pd.DataFrame:
    """A row per combination of the labels ``rows``, which vary slowest, and ``inner``.

    Args:
        rows: lists of one length N.
        inner: lists of one length K; without any, K = 1.
        level: of the intervals.
        **columns: (N, K), or (N,). Those that `RANGES` names are (B + 1, N, K), the full data first; such a column
            gets its interval, by the centred resamples, and without resamples NaN.
    """
    n, k = len(next(iter(rows.values()))), len(next(iter(inner.values()), [None]))
    found = {name: pd.Series(x).repeat(k).array for name, x in rows.items()}
    found |= {name: np.tile(np.asarray(x), n) for name, x in inner.items()}
    for name, values in columns.items():
        if name not in RANGES:
            values = values[:, None] if values.ndim == 1 else values.reshape(n, k)
            found[name] = np.broadcast_to(values, (n, k)).reshape(-1)
            continue
        ends = [np.full(n * k, np.nan)] * 2
        if len(values) > 1:
            ends = [np.clip(x, *RANGES[name]).reshape(-1) for x in interval_bounds(centred(np.asarray(values)), level)]
        found |= {name: np.reshape(values[0], -1), f"{name}_lower": ends[0], f"{name}_upper": ends[1]}
    return pd.DataFrame(found)


def mean_by_tier(values: Float, tier: Int, n_tiers: int, enough: Bool | None = None) -> Float:
    """(..., T) means of ``values`` (..., L) over the references of every tier; those without a value are left out.

    Args:
        enough: (..., L) references whose values rest on enough pairs to be averaged, which broadcasts to ``values``; by
            default all.
    """
    own = tier[:, None] == np.arange(1, n_tiers + 1)
    known = ~np.isnan(values) if enough is None else ~np.isnan(values) & enough
    n = known.astype(float) @ own
    with np.errstate(invalid="ignore"):
        return np.where(n > 0, np.where(known, values, 0.0) @ own / n, np.nan)


def count_by_tier(enough: Bool, tier: Int, n_tiers: int) -> Int:
    """(..., T) how many references `mean_by_tier` averages."""
    return np.asarray(enough.astype(np.int64) @ (tier[:, None] == np.arange(1, n_tiers + 1)))


def budget_table(
    battles: Battles, board: ReferenceBoard, tier: Any, sums: batch.BudgetSums, settings: ReferenceStudySettings
) -> tuple[pd.DataFrame, Float]:
    """The table of references and sets under every budget, and the mean tau (B + 1, S, budgets, D)."""
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
    votes = _votes_of_sets(battles, board, members, np.sum, settings)
    ranked, short = _ranked_and_short(votes, board, settings)
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
    battles: Battles, board: ReferenceBoard, sums: batch.SameModelSums, settings: ReferenceStudySettings
) -> pd.DataFrame:
    """Sets of references compared with their members alone, under the same budget and on the same models."""
    # From (B + 1, budgets, S).
    sums = jax.tree.map(lambda x: np.swapaxes(x, 1, 2), sums)
    times = np.where(np.asarray(sums.defined) > 0, sums.defined, np.nan)
    together, alone, pairs = sums.together / times, sums.alone / times, np.asarray(sums.pairs / times)
    sets = board.sets if settings.budgets else {}
    votes = _votes_of_sets(battles, board, list(sets.values()), np.min, settings)
    ranked, short = _ranked_and_short(votes, board, settings)
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


def _votes_of_sets(
    battles: Battles,
    board: ReferenceBoard,
    members: Sequence[NDArray[np.intp]],
    reduce: Callable[..., Int],
    settings: ReferenceStudySettings,
) -> Int:
    """(S, M) votes of every model that a budget counts: ``reduce`` over the members of its votes against each one.

    The members themselves have 0.
    """
    count, model = battle_counts(battles.cells, len(board.models)), np.arange(len(board.models))
    votes = [np.where(np.isin(model, own), 0, reduce(count[:, own], axis=1)) for own in members]
    found = np.array(votes, np.int64).reshape(len(members), len(model))
    # A budget of items counts items, and all models share them.
    return found if settings.item is None else np.where(found > 0, len(battles.codes(settings.item)[1]), 0)


def _ranked_and_short(votes: Int, board: ReferenceBoard, settings: ReferenceStudySettings) -> tuple[Bool, Bool]:
    """(S, M) models ranked, and (S, budgets, M) those of them with fewer ``votes`` (S, M) than a budget."""
    ranked = (votes > 0) & ~np.isnan(board.theta[0])
    return ranked, ranked[:, None] & (votes[:, None] < np.array(settings.budgets, int)[:, None])


def relative_changes(single: batch.SingleReferences) -> Float:
    """(B + 1, L, T) rank changes by tier as shares of the greatest possible one: the number of models ranked, less 1.

    References rank different numbers of models, and one that ranks few cannot be many places off.
    """
    places = np.asarray(single.tier_models).sum(2, keepdims=True) - 1
    return np.asarray(single.rank_change) / np.where(places > 0, places, np.nan)


def overall_change(single: batch.SingleReferences) -> Float:
    """(B + 1, L) mean rank change of all models."""
    change, models = np.nan_to_num(single.rank_change), np.asarray(single.tier_models)
    with np.errstate(invalid="ignore"):
        return np.asarray((change * models).sum(2) / models.sum(2))
