"""Residuals of held-out ratings, and score differences, by the strength of the models (arXiv:2606.13221, section 4).

Every function that returns a table keeps ``warnings`` and ``settings`` in its ``attrs``.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from jaxeval.arrays import Float
from jaxeval.data.judged_battles import JudgedBattles
from jaxeval.softelo.soft_elo import HeldOutRatings, models_table
from jaxeval.wording import counted


def score_gap_by_strength(battles: JudgedBattles, human_elo: pd.Series, n_groups: int = 4) -> pd.DataFrame:
    """Return |Score difference| by the strength groups of the two models (section 4.2); group 1 is the weakest.

    Returns:
        One row per pair of groups: ``weaker, stronger, median, mean, n_battles``. ``attrs["settings"]["mean"]`` is over
        all.
    """
    group = strength_group(human_elo, n_groups).reindex(battles.models).to_numpy(float)
    gap = np.abs(battles.score_difference)
    pair = np.sort(np.stack([group[battles.model_a], group[battles.model_b]]), axis=0)
    known = ~np.isnan(pair).any(0)
    frame = pd.DataFrame({"weaker": pair[0], "stronger": pair[1], "gap": gap})[known].astype(
        {"weaker": int, "stronger": int}
    )
    grouped = frame.groupby(["weaker", "stronger"])["gap"]
    table = pd.DataFrame({"median": grouped.median(), "mean": grouped.mean(), "n_battles": grouped.size()})
    table = table.reset_index()
    table.attrs = {"warnings": [], "settings": {"mean": float(gap.mean()), "n_groups": n_groups}}
    return table


def strength_group(human_elo: pd.Series, n_groups: int = 4) -> pd.Series:
    """Return the group of each model, 1 = weakest; numbers of models in the groups differ by one at most."""
    known = human_elo[np.isfinite(human_elo.to_numpy(float))]
    if len(known) < n_groups:
        raise ValueError(
            f"{counted(n_groups, 'strength group')} need as many models with a human rating, found {len(known):,}"
        )
    place = known.rank(method="first").to_numpy() - 1
    return pd.Series((place * n_groups // len(known)).astype(int) + 1, known.index, name="group")


def residual_ramp(held_out: HeldOutRatings, n_groups: int = 4) -> pd.DataFrame:
    """Give signed residual, judge minus human, by human-Elo group (Figures 2b and 14): a ramp means a stretched scale.

    Args:
        held_out: a `SoftElo`, or its ``models`` table.
        n_groups: quartiles by default; group 1 is the weakest.

    Returns:
        One row per method and group: ``residual`` (mean, Elo), ``standard_error`` of the mean, ``n_models``, and for
        the method as a whole ``slope`` (of the residual on the human rating, Elo per Elo) and Pearson's ``r``.
    """
    table = usable_rows(held_out)
    blocks = []
    for key, block in table.groupby(grouping(table), sort=False):
        elo = block.set_index("model")["human_elo"]
        if len(elo) < n_groups:
            continue
        residual = block.set_index("model")["residual"]
        grouped = residual.groupby(strength_group(elo, n_groups))
        n = grouped.size()
        part = pd.DataFrame({"residual": grouped.mean(), "standard_error": grouped.std() / np.sqrt(n), "n_models": n})
        slope, r = slope_and_correlation(elo.to_numpy(), residual.to_numpy())
        names = dict(zip(grouping(table), key, strict=True))
        blocks.append(part.assign(slope=slope, r=r, **names).reset_index())
    if not blocks:
        raise ValueError(f"{counted(n_groups, 'strength group')} need as many models with a residual under one method")
    result = pd.concat(blocks, ignore_index=True)
    result = result[[*grouping(table), "group", "residual", "standard_error", "n_models", "slope", "r"]]
    result.attrs = {"warnings": [], "settings": {"n_groups": n_groups}}
    return result


def usable_rows(held_out: HeldOutRatings) -> pd.DataFrame:
    """Return rows of a `SoftElo` or its table that have a residual and are in its averages."""
    table = models_table(held_out)
    used = np.isfinite(table["residual"].to_numpy(float))
    return table[used & table["averaged"].to_numpy(bool)] if "averaged" in table.columns else table[used]


def usable_models(soft_elo: HeldOutRatings) -> tuple[pd.DataFrame, list[str]]:
    """Return rows of a `SoftElo` or its table that have a residual and a standard error, and a sentence on the others.

    Rows that `soft_elo` flagged and left out of its averages do not calibrate either.
    """
    table = models_table(soft_elo)
    needed = ["model", "method", "human_elo", "judge_elo", "residual", "standard_error"]
    absent = [c for c in needed if c not in table.columns]
    if absent:
        raise ValueError(f"not a table of held-out ratings: it has no column {', '.join(map(repr, absent))}")
    finite = np.isfinite(table[["residual", "standard_error"]].to_numpy(float)).all(1)
    if "averaged" in table.columns:
        finite &= table["averaged"].to_numpy(bool)
    used = table[finite]
    if len(used) == 0:
        doubts = {str(f) for f in table.get("flags", []) if f}
        if "n_clusters" in table.columns and (table["n_clusters"] < 2).any():
            doubts.add("all battles of a model lie in one cluster")
        flags = "; ".join(sorted(doubts))
        raise ValueError(
            f"none of {counted(len(table), 'held-out rating')} has a residual and a standard error without a flag: "
            f"nothing to calibrate{f' ({flags})' if flags else ''}"
        )
    warnings = []
    if not finite.all():
        names = ", ".join(map(str, table.loc[~finite, "model"].unique()[:8]))
        warnings.append(
            f"left out: {counted((~finite).sum(), 'row')} without a residual or a standard error, or flagged ({names})"
        )
    return used.reset_index(drop=True), warnings


def grouping(table: pd.DataFrame) -> list[str]:
    """Return columns that name whose residuals a row holds."""
    return ["judge", "method"] if "judge" in table.columns else ["method"]


def human_ratings(held_out: HeldOutRatings) -> pd.Series:
    """Return (M,) human ratings by model, Elo."""
    table = models_table(held_out)
    return table.drop_duplicates("model").set_index("model")["human_elo"]


def slope_and_correlation(x: Float, y: Float) -> tuple[float, float]:
    """Return the slope of y on x, and Pearson's r; NaN without spread."""
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.nan, np.nan
    u, v = x - x.mean(), y - y.mean()
    return float(u @ v / (u @ u)), float(u @ v / np.sqrt((u @ u) * (v @ v)))
