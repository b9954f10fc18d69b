"""Is the reference a good one? Informative range, the same ranking under another reference, additive gaps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from jaxeval.columns import require_column

#: A probability in this range is informative; a reference should have nearly all models there.
MID_REGION = (0.2, 0.8)
ENOUGH = 0.95
SAME_RANKING = 0.9
_FLOOR, _CEILING = 0.05, 0.95


@dataclass(frozen=True, eq=False)
class AnchorDiagnostics:
    """What speaks for and against each reference.

    ``coverage`` has a row per reference: the share of probabilities below, in and above [0.2, 0.8], at the floor (under
    0.05) and at the ceiling (over 0.95). ``swap`` has a row per pair of references: Kendall's tau-b of the two
    leaderboards and the centred shifts of ratings, Elo. ``additivity`` has a row per chain B - A - C in which A is
    reference and model: the rating of B against C less the sum over the chain, its standard error and their ratio.
    ``advice`` says it in words.
    """

    coverage: pd.DataFrame
    swap: pd.DataFrame
    additivity: pd.DataFrame
    advice: list[str]


def diagnose_anchors(scores: pd.DataFrame) -> AnchorDiagnostics:
    """Coverage, swaps and additivity of the references in a table of `anchored_scores`.

    Ratings are averaged over the judges and tasks that all references compared have; a model is left out where it is
    its own reference.

    Raises:
        DataError: a column is missing: "model", "anchor", "probability", "rating" or "rating_se".
    """
    for column in ("model", "anchor", "probability", "rating", "rating_se"):
        require_column(scores, column)
    scores = scores[scores["model"].astype(str) != scores["anchor"].astype(str)]
    p = scores["probability"]
    grouped = scores.assign(
        below=p < MID_REGION[0], mid_region=p.between(*MID_REGION), above=p > MID_REGION[1],
        floor=p < _FLOOR, ceiling=p > _CEILING,
    ).groupby("anchor")  # fmt: skip
    coverage = grouped[["below", "mid_region", "above", "floor", "ceiling"]].mean().assign(n=grouped.size())
    swap, chains = _swaps(rating_board(scores)), _chains(scores)
    return AnchorDiagnostics(coverage, swap, chains, list(_advice(coverage, swap, chains)))


def rating_board(scores: pd.DataFrame) -> pd.DataFrame:
    """Ratings of models by each judge in each task, a row each, by references; NaN where there is none."""
    index = [c for c in ("model", "judge", "task") if c in scores]
    return scores.pivot_table(index=index, columns="anchor", values="rating", aggfunc="mean", observed=True)


def _swaps(board: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for a, b in combinations(board.columns, 2):
        # Judges and tasks that both references have: others would pass for a shift.
        both = board[[a, b]].dropna().groupby(level="model", observed=True).mean()
        shift = (both[a] - both[a].mean()) - (both[b] - both[b].mean())
        tau = kendalltau(both[a], both[b]).statistic if len(both) > 1 else np.nan
        rows.append((a, b, len(both), tau, both[a].mean() - both[b].mean(), shift.abs().mean(), shift.abs().max()))
    columns = ["anchor_a", "anchor_b", "n_models", "kendall", "offset", "mean_shift", "largest_shift"]
    return pd.DataFrame(rows, columns=columns)


def _chains(scores: pd.DataFrame) -> pd.DataFrame:
    """Chains B - A - C of references A and C, A being a model, too (Appendix B.8 of the method)."""
    by = [c for c in ("judge", "task") if c in scores]
    keyed = scores.astype(dict.fromkeys(by, str)).assign(variance=scores["rating_se"] ** 2)
    keyed["row"] = keyed.groupby(["model", "anchor", *by], observed=True).cumcount()
    cells = {
        key: block.set_index([*by, "row"])[["rating", "variance"]]
        for key, block in keyed.groupby(["model", "anchor"], observed=True)
    }
    models = list(dict.fromkeys(scores["model"]))
    rows = []
    for a, c in permutations(dict.fromkeys(scores["anchor"]), 2):
        if a not in models:
            continue
        for b in models:
            parts = [(b, c), (b, a), (a, c)]
            if b in (a, c) or any(part not in cells for part in parts):
                continue
            direct, first, second = (cells[part] for part in parts)
            common = direct.index.intersection(first.index).intersection(second.index)
            if len(common) == 0:
                continue
            direct, first, second = (part.loc[common] for part in (direct, first, second))
            gap = float((direct["rating"] - first["rating"] - second["rating"]).mean())
            variance = (direct["variance"] + first["variance"] + second["variance"]).sum()
            error = float(np.sqrt(variance)) / len(common)
            rows.append((b, a, c, gap, error, gap / error if error > 0 else np.nan))
    return pd.DataFrame(rows, columns=["model", "through", "anchor", "gap", "standard_error", "z"])


def _advice(coverage: pd.DataFrame, swap: pd.DataFrame, chains: pd.DataFrame) -> Iterator[str]:
    if len(coverage) == 0:
        yield "every model here is its own reference: nothing can be told about the references"
    for anchor, row in coverage.iterrows():
        if row["mid_region"] >= ENOUGH:
            continue
        low, high = row["below"], row["above"]
        side = "is too weak for" if high > low else "is too strong for" if low > high else "lies far from many of"
        extreme = f", {row['floor'] + row['ceiling']:.0%} at floor or ceiling" if row["floor"] + row["ceiling"] else ""
        yield (
            f"reference {anchor}: {row['mid_region']:.0%} of {row['n']:,.0f} probabilities lie in [0.2, 0.8] (95 % are "
            f"wanted), {low:.0%} below and {high:.0%} above{extreme}: it {side} these models, and large gaps are "
            "poorly measured"
        )
    for row in swap.itertuples():
        if row.n_models > 1 and not row.kendall >= SAME_RANKING:
            yield (
                f"references {row.anchor_a} and {row.anchor_b} rank {row.n_models} models with Kendall's tau "
                f"{row.kendall:.2f}, and ratings shift by {row.mean_shift:.0f} Elo on average after centring: say "
                "which reference a ranking has"
            )
    if len(chains) and (chains["z"].abs() > 3).mean() > 0.05:
        worst = chains.loc[chains["z"].abs().idxmax()]
        yield (
            f"gaps do not add up: {worst['model']} against {worst['anchor']} is {worst['gap']:+.0f} Elo from the sum "
            f"through {worst['through']} ({abs(worst['z']):.1f} standard errors); ratings against different references "
            "are not on one scale"
        )
    if len(coverage) > 1 and not len(chains):
        yield (
            "whether gaps add up cannot be checked: no reference has been judged as a model against another, by judges "
            "and with models in common"
        )
    best = coverage["mid_region"].idxmax() if len(coverage) else None
    if best is not None and len(coverage) > 1:
        yield f"of these references, {best} has most probabilities in the informative range"
