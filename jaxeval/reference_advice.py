"""A study of references in words: which reference serves which models, what several buy, and what is weak."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.bradley_terry import named
from jaxeval.model_scores import FEW_PAIRS
from jaxeval.quantiles import centred
from jaxeval.reference_rankings import ReferenceBoard, ReferenceStudySettings
from jaxeval.reference_tables import centred_interval

Float = NDArray[np.float64]

#: Under so many votes of a model against the reference (median), win rates are mostly noise.
FEW_VOTES = 30
#: Share of resamples from which on a choice counts as settled.
SETTLED = 0.95
_MOST_SHORT = 0.1  # share of models without the votes of a budget, for this budget to be compared


def tier_advice(change: Float, table: pd.DataFrame, n_tiers: int) -> Iterator[str]:
    """Which tier of references serves which tier of models; ``change`` is (B + 1, T of references, T of models)."""
    usable = ~np.isnan(change[0]).all(1)
    if usable.sum() < 2:
        return
    for t in range(n_tiers):
        rows = table[table["test_tier"] == t + 1].set_index("tier")
        if np.isnan(change[0, usable, t]).any():
            yield f"models of tier {t + 1}: not every tier has references that rank them; nothing to advise"
            continue
        pairs = rows["n_pairs"].min()
        if pairs < FEW_PAIRS:
            yield (
                f"models of tier {t + 1}: only {pairs:.0f} pairs of them behind some numbers (under {FEW_PAIRS}), too "
                "few to choose a reference by"
            )
            continue
        own, worst = rows.loc[rows["rank_change"].idxmin()], rows["rank_change"].idxmax()
        yield (
            f"models of tier {t + 1} are ranked best by references of tier {own.name}: {own['rank_change']:.1f} places "
            f"off{_interval(own, 'rank_change')}, with references of tier {worst} {rows['rank_change'].max():.1f}"
            f"{_sure(-change[:, :, t])}"
        )


def single_advice(tau: Float, table: pd.DataFrame, by_delta: pd.DataFrame) -> Iterator[str]:
    """The single reference that agrees best, and what close pairs are worth; ``tau`` is (B + 1, L)."""
    enough = (table["n_pairs"] >= FEW_PAIRS).to_numpy() & ~np.isnan(tau[0])
    if not enough.any():
        yield f"no reference has {FEW_PAIRS} pairs of models to rank: nothing can be said of references here"
        return
    row = table[enough].loc[table["tau"][enough].idxmax()]
    if enough.sum() > 1:
        yield (
            f"of single references, {row['reference']} agrees best with the ranking of all votes: tau {row['tau']:.2f}"
            f"{_interval(row, 'tau')} over {row['n_pairs']:,} pairs{_sure(tau[:, enough])}"
        )
    for delta, rows in by_delta[np.isfinite(by_delta["delta"])].groupby("delta"):
        if rows["n_pairs"].median() >= FEW_PAIRS:
            yield (
                f"win rates within {delta:g} points of each other: tau {rows['tau'].mean():.2f} on average over the "
                f"references, {rows['misordered'].mean():.0%} of these pairs in the wrong order"
            )
            break


def budget_advice(
    tau: Float, table: pd.DataFrame, board: ReferenceBoard, settings: ReferenceStudySettings
) -> Iterator[str]:
    """Several references against the same ones alone, under one budget; ``tau`` is (B + 1, S, budgets, D)."""
    if not settings.budgets:
        return
    number = {reference: k for k, reference in enumerate(board.references)}
    all_pairs = table[np.isinf(table["delta"])]
    short = (all_pairs["n_short"] / all_pairs["n_models"]).to_numpy().reshape(-1, len(settings.budgets))
    pairs = all_pairs["n_pairs"].to_numpy().reshape(short.shape)
    for s, (label, members) in enumerate(board.sets.items()):
        if not all(member in number for member in members):
            continue
        of_members = [number[member] for member in members]
        # The largest budget that nearly all models have votes for, also from each reference alone.
        enough = np.flatnonzero((short[[*of_members, len(number) + s]] <= _MOST_SHORT).all(0))
        if len(enough) == 0:
            continue
        b = enough[-1]
        own, alone = tau[:, len(number) + s, b, -1], tau[:, of_members, b, -1].mean(1)
        if np.isnan(own[0]) or np.isnan(alone[0]) or pairs[len(number) + s, b] < FEW_PAIRS:
            continue
        gain = own - alone
        lower, upper = centred_interval(gain, settings.level, (-2.0, 2.0))
        sure = "" if np.isnan(lower) else f" (difference {gain[0]:+.2f} [{lower:+.2f}, {upper:+.2f}])"
        yield (
            f"{label} ({named(board.models[members])}) under {settings.budgets[b]:,} votes a model: tau {own[0]:.2f}, "
            f"the same references alone {alone[0]:.2f} on average{sure}"
        )


def weak_points(table: pd.DataFrame, settings: ReferenceStudySettings) -> Iterator[str]:
    """Too few pairs, votes or resamples, and models left out; ``table`` has a row per reference."""
    few = table.loc[table["n_pairs"] < FEW_PAIRS, "reference"]
    if len(few):
        yield f"under {FEW_PAIRS} pairs of models behind the agreement of {named(list(few))}: it says little"
    unsure = table.loc[(table["battles_per_model"] < FEW_VOTES) & (table["n_pairs"] >= FEW_PAIRS), "reference"]
    if len(unsure):
        yield (
            f"{named(list(unsure))}: under {FEW_VOTES} votes against half of the models or more, win rates are mostly "
            "noise"
        )
    missing = table["n_never_met"] + table["n_unrated"]
    if (missing > 0).any():
        worst = table.loc[missing.idxmax()]
        yield (
            f"{(missing > 0).sum()} of {len(table)} references do not rank all other models: most are missing from "
            f"{worst['reference']} ({worst['n_never_met']:.0f} never met it, {worst['n_unrated']:.0f} have no "
            "comparable rating). Numbers of different references rest on different models"
        )
    enough = int(np.ceil(2 / (1 - settings.level) - 1e-9))
    if 0 < settings.n_resamples < enough:
        yield (
            f"{settings.n_resamples:,} resamples are too few for {100 * settings.level:g}% intervals, whose tails each "
            f"hold less than one of them: take {enough:,} or more"
        )


def _sure(score: Float) -> str:
    """In how many resamples the best of ``score`` (B + 1, candidates), the highest, is that of the full data."""
    if len(score) == 1:
        return "; without resamples nothing says how sure that is"
    draws = centred(score)
    best = np.where(np.isnan(draws), -np.inf, draws).argmax(1)
    share = float((best == np.nanargmax(score[0])).mean())
    if share >= SETTLED:
        return f", as in {share:.0%} of the resamples"
    return f", but in only {share:.0%} of the resamples: the votes do not settle it"


def _interval(row: Any, name: str) -> str:
    lower, upper = row[f"{name}_lower"], row[f"{name}_upper"]
    return "" if np.isnan(lower) else f" [{lower:.2f}, {upper:.2f}]"
