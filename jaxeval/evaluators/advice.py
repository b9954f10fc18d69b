"""Evaluators compared with gold, in words: tau over close models, and how many points are an improvement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from jaxeval.evaluators.few_pairs import FEW_PAIRS, hide_few_in_agreement, hide_few_pairs
from jaxeval.evaluators.meaningful_gaps import AT_ONCE, NEVER
from jaxeval.evaluators.tables import with_evaluator
from jaxeval.wording import counted, named

_MOST_NAMES = 4
_FALL = 0.1  # a tau of close models that is lower by more than this is introduced by "but"


def evaluator_advice(
    taus: pd.DataFrame,
    changes: pd.DataFrame | None = None,
    gaps: pd.DataFrame | None = None,
    improvements: pd.DataFrame | None = None,
    comparison: pd.DataFrame | None = None,
    few_pairs: int = FEW_PAIRS,
) -> list[str]:
    """Sentences on every evaluator, from the tables that are given.

    Args:
        taus: as `kendall_tau_delta` returns it.
        changes: as `stratified_rank_change` returns it.
        gaps: as `smallest_gap` returns it.
        improvements: as `agreement_by_gap` returns it.
        comparison: as `compare_evaluators` returns it.
        few_pairs: numbers from fewer pairs of models are left out.
    """
    found = [] if comparison is None else list(_best(hide_few_pairs(comparison, "difference", few_pairs)))
    for evaluator, own in with_evaluator(taus).groupby("evaluator", sort=False):
        sentences = [*_close_models(own, few_pairs)]
        for table, of_table in ((changes, _tiers), (gaps, _smallest_gap), (improvements, _improvements)):
            if table is not None:
                sentences += of_table(table[with_evaluator(table)["evaluator"] == evaluator], few_pairs)
        found += [f"{evaluator}: {sentence}" if "evaluator" in taus else sentence for sentence in sentences]
    return found


def _best(comparison: pd.DataFrame) -> Iterator[str]:
    """The evaluator that ranks most like gold, the others that the data tell from it, and those that they do not."""
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
    worse, better = rows["lower"] > 0, rows["upper"] < 0
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
    """Tau over all models, and over the closest ones of which there are enough pairs."""
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
    """The tiers that it ranks best and worst, where the intervals tell them apart."""
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


def _ends(row: Any, form: str = ".2f") -> str:
    if "lower" not in row or np.isnan(row["lower"]):
        return ""
    upper = "no upper end" if np.isinf(row["upper"]) else f"{row['upper']:{form}}"
    return f" [{row['lower']:{form}}, {upper}]"
