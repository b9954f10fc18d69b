"""Agreement of a judge with humans, and whether its scores say how sure to be (arXiv:2606.13221, Appendix G).

Every function takes battles with human labels (`verdict_disagreement` those with verdicts) and returns a DataFrame;
``attrs`` holds ``warnings`` (sentences) and ``settings`` (with the scalars that belong to the table). Decided
battles ("decisive" in tables) are those on which human and judge both chose a side. ``cluster`` names a column of
battles that belong together, prompts or voters: errors and intervals then take clusters, not battles, as independent.
With one battle per cluster they are the plain ones, bit for bit. `jaxeval.judge_agreement` compares verdicts alone, of
several judges and several people; what both need is in `jaxeval.statistics`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from jaxeval.arrays import Bool, Float
from jaxeval.checks import checked_integer
from jaxeval.data.judged_battles import JudgedBattles
from jaxeval.errors import DataError
from jaxeval.show.cells import with_kinds
from jaxeval.softelo.own_battles import units
from jaxeval.softelo.soft_elo import HeldOutRatings, models_table
from jaxeval.softelo.temperature import fit_temperature
from jaxeval.statistics.clusters import (
    design_effect,
    effective_clusters,
    few_clusters_text,
    freedom_of,
    widening,
    wilson_share,
)
from jaxeval.statistics.rater_agreement import bin_rates, cohen_kappa, label_table, reliability_bins
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
    return with_kinds(result, elo="residual")


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


#: Edges of the |score difference| bins of Figures 3 and 7; the last bin is open.
SCORE_GAP_EDGES = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, np.inf)
#: Level of all intervals of the diagnostics.
LEVEL = 0.95


def decisive(battles: JudgedBattles) -> Bool:
    """Return (N,) battles on which human and judge both chose a side."""
    return np.isin(battles.human, (0.0, 1.0)) & np.isin(battles.hard, (0.0, 1.0))


def reliability(
    battles: JudgedBattles, beta: float | None = None, n_bins: int = 10, *, cluster: str | None = None
) -> pd.DataFrame:
    """Return the predicted against observed agreement on decided battles (Appendix G).

    The prediction is s(beta |score difference|), the probability that the judge's side is the human's. The bins hold
    equal numbers of battles, up to one; equal predictions may fall into two bins. See `calibration_error` for what the
    error means.

    Args:
        battles: with human labels.
        beta: temperature; `fit_temperature` on all human non-ties by default.
        n_bins: deciles by default.

    Returns:
        One row per bin: ``predicted, agreement, standard_error, n_battles``. ``attrs["settings"]`` has ``ece``, the
        mean |predicted - agreement| weighted by battles; ``ece_floor``, what it is on average for a judge without
        error; ``ece_debiased``, the error without that noise, with its 95 % interval ``ece_lower, ece_upper``; and
        ``beta``.
    """
    checked_integer("n_bins", n_bins, 1)
    if beta is None:
        fit = fit_temperature(battles.score_difference, battles.human)
        if not np.isfinite(fit.beta):
            raise ValueError(f"the temperature cannot be fitted on {fit.n_battles:,} human non-ties: {fit.status}")
        beta = fit.beta
    beta = float(beta)
    rows = decisive(battles)
    gap = np.abs(battles.score_difference[rows])
    agree = (battles.human == battles.hard)[rows].astype(float)
    unit = units(battles, cluster)[rows]
    table, error = reliability_bins(1 / (1 + np.exp(-beta * gap)), agree, unit, n_bins, LEVEL)
    warnings = _few_clusters(cluster, unit)
    if not len(gap):
        warnings.append("no battle on which human and judge both chose a side: no calibration error")
    settings = {**error, "beta": beta, "n_battles": len(gap)}
    table.attrs = {"warnings": warnings, "settings": settings}
    return table


def agreement_by_score_gap(
    battles: JudgedBattles, edges: Sequence[float] = SCORE_GAP_EDGES, *, cluster: str | None = None
) -> pd.DataFrame:
    """Return the agreement of judge and human on decided battles by |score difference| (Figures 3a and 7).

    Args:
        battles: with human labels.
        edges: of the bins, increasing.

    Returns:
        One row per bin (upper edge included; the first bin's lower edge too): ``lower, upper, agreement,
        standard_error, n_battles``. ``attrs["settings"]`` has Pearson's ``r`` of |score difference| and agreement over
        battles, with its 95 % interval ``r_lower, r_upper`` (Fisher's z with the jackknife's standard error, which does
        not presume normality).
    """
    if len(edges) < 2 or np.any(np.diff(edges) <= 0):
        raise ValueError(f"edges must increase, got {list(edges)}")
    rows = decisive(battles)
    gap = np.abs(battles.score_difference[rows])
    agree = (battles.human == battles.hard)[rows].astype(float)
    place = np.maximum(np.searchsorted(np.asarray(edges), gap, side="left") - 1, 0)
    unit = units(battles, cluster)[rows]
    bins = [place == k for k in range(len(edges) - 1)]
    parts, clusters = [agree[rows] for rows in bins], [unit[rows] for rows in bins]
    table = bin_rates([np.array([np.nan])] * len(parts), parts, clusters).drop(columns="predicted")
    table.insert(0, "lower", list(edges[:-1]))
    table.insert(1, "upper", list(edges[1:]))
    r, lower, upper = correlation_interval(gap, agree, clusters=unit)
    warnings = _few_clusters(cluster, unit)
    if np.isnan(r):
        warnings.append(
            f"{counted(len(gap), 'decided battle does', 'decided battles do')} not show whether larger score "
            "differences mean more agreement (all scores, or all agreements, are equal): soft targets rest on an "
            "assumption that this data cannot test"
        )
    elif lower <= 0 <= upper:
        warnings.append(
            f"larger score differences do not reliably mean more agreement with humans (r = {r:.3f}, 95% interval "
            f"{lower:.3f} to {upper:.3f}): soft targets may compress and reorder the board; compare with the hard "
            "ratings before use"
        )
    elif upper < 0:
        warnings.append(
            f"larger score differences mean less agreement with humans (r = {r:.3f}, 95% interval {lower:.3f} to "
            f"{upper:.3f}): do not use soft targets with this judge"
        )
    table.attrs = {
        "warnings": warnings,
        "settings": {"r": r, "r_lower": lower, "r_upper": upper, "n_battles": len(gap), "level": LEVEL},
    }
    return table


def correlation_interval(
    x: ArrayLike, y: ArrayLike, level: float = LEVEL, clusters: NDArray[np.intp] | None = None
) -> tuple[float, float, float]:
    """Return Pearson's r with a confidence interval, by Fisher's z and the infinitesimal jackknife; NaN without spread.

    ``clusters`` (N,) says which points belong together.
    """
    a, b = np.asarray(x, float), np.asarray(y, float)
    if len(a) < 4 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return np.nan, np.nan, np.nan
    u, v = (a - a.mean()) / a.std(), (b - b.mean()) / b.std()
    r = float(np.mean(u * v))
    if abs(r) > 1 - 1e-12:
        return r, r, r
    influence = u * v - r / 2 * (u**2 + v**2)
    error = np.sqrt(np.mean(influence**2) / len(a) * design_effect(influence, clusters)) / (1 - r**2)
    half = ndtri((1 + level) / 2) * widening(freedom_of(clusters), level) * error
    return r, float(np.tanh(np.arctanh(r) - half)), float(np.tanh(np.arctanh(r) + half))


def agreement(battles: JudgedBattles, *, cluster: str | None = None) -> pd.DataFrame:
    """Return Cohen's kappa of judge and human (DOI 10.1177/001316446002000104), with its 95 % interval.

    Returns:
        Rows ``all`` (three labels: A, tie, B) and ``decisive`` (both chose a side): ``observed`` and ``expected``
        agreement, ``kappa``, ``standard_error`` (Fleiss, Cohen and Everitt 1969, DOI 10.1037/h0028106), ``lower``,
        ``upper``, ``n_battles``.
    """
    human, judge = battles.human, battles.hard
    known = ~(np.isnan(human) | np.isnan(judge))
    both = known & (human != 0.5) & (judge != 0.5)
    unit = units(battles, cluster)
    masks = {"all": known, "decisive": both}
    rows = {name: _kappa(human[mask], judge[mask], unit[mask]) for name, mask in masks.items()}
    columns = ["observed", "expected", "kappa", "standard_error", "lower", "upper", "n_battles"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("battles")
    warnings = _few_clusters(cluster, unit)
    warnings += [f"no kappa on {name} battles: one label only" for name in table.index[table["kappa"].isna()]]
    table.attrs = {"warnings": warnings, "settings": {"level": LEVEL}}
    return with_kinds(table, ends_of="kappa")


def _kappa(x: Float, y: Float, clusters: NDArray[np.intp] | None = None) -> tuple[float, ...]:
    n = len(x)
    if n == 0:
        return (*[np.nan] * 6, 0)
    labels = np.array([0.0, 0.5, 1.0])
    table = label_table(x, y, labels)
    observed, expected, kappa = map(float, cohen_kappa(table))
    if np.isnan(kappa):
        return (observed, expected, *[np.nan] * 4, n)
    share = table / n
    row, column = share.sum(1), share.sum(0)
    outer = column[:, None] + row  # column share of the row's label plus row share of the column's label
    diagonal = np.diag(share) * (1 - np.diag(outer) * (1 - kappa)) ** 2
    off = share * outer**2
    variance = diagonal.sum() + (1 - kappa) ** 2 * (off.sum() - np.trace(off))
    variance -= (kappa - expected * (1 - kappa)) ** 2
    # What one battle adds to kappa, up to a factor: the mean of its square is the variance above.
    influence = (x == y) - (1 - kappa) * outer[np.searchsorted(labels, x), np.searchsorted(labels, y)]
    effect = design_effect(influence - influence.mean(), clusters)
    error = np.sqrt(max(variance, 0) / n * effect) / (1 - expected)
    half = ndtri((1 + LEVEL) / 2) * widening(freedom_of(clusters), LEVEL) * error
    return observed, expected, kappa, error, float(np.maximum(kappa - half, -1)), float(np.minimum(kappa + half, 1)), n


def verdict_disagreement(battles: JudgedBattles, *, cluster: str | None = None) -> pd.DataFrame:
    """Return where the judge's verdicts and its scores disagree (Appendix G).

    Returns:
        Rows ``opposite`` (the verdict names the side that the judge scored lower, of verdicts for a side and unequal
        scores) and ``label`` (the verdict is not the label that the scores give, ties included); with scores and
        verdicts of both orders also ``opposite, a first`` and ``opposite, b first``, of single judgments; with verdicts
        of both orders also ``flip`` (the two name different sides, of battles with verdicts for a side in both).
        Columns ``share, lower, upper`` (Wilson, 95 %), ``n_battles``, and ``n_different``, how many of these battles
        differ.
    """
    if battles.verdict is None:
        raise DataError("the battles have no column of verdicts: name it when reading them (verdict=, --verdict)")
    unit = units(battles, cluster)
    kinds = {"opposite": _opposite(battles.verdict, battles.score_difference)}
    kinds["label"] = battles.verdict != battles.judge, ~np.isnan(battles.verdict)
    if battles.verdict_orders is not None:
        first, second = battles.verdict_orders.T
        if battles.orders is not None and battles.scored:
            kinds["opposite, a first"] = _opposite(first, battles.orders[:, 0])
            kinds["opposite, b first"] = _opposite(second, battles.orders[:, 1])
        kinds["flip"] = first != second, np.isin(first, (0.0, 1.0)) & np.isin(second, (0.0, 1.0))
    shares = {
        name: wilson_share(different[rows], unit[rows]) | {"n_different": int(different[rows].sum())}
        for name, (different, rows) in kinds.items()
    }
    table = pd.DataFrame.from_dict(shares, orient="index").rename_axis("disagreement")
    warnings, share = _few_clusters(cluster, unit), table["share"].iloc[0]
    if share > 0.5:
        warnings.append(
            f"the verdict names the side that the judge scored lower in {share:.0%} of battles: check what the labels "
            "of verdicts mean (label_coding=, --labels)"
        )
    table.attrs = {"warnings": warnings, "settings": {"level": LEVEL}}
    return table


def _opposite(verdict: Float, gap: Float) -> tuple[Bool, Bool]:
    """Return (N,) verdicts against the sign of a score difference, and (N,) where both choose a side."""
    return (verdict == 1) != (gap > 0), np.isin(verdict, (0.0, 1.0)) & (gap != 0) & ~np.isnan(gap)


def _few_clusters(cluster: str | None, unit: NDArray[np.intp]) -> list[str]:
    if cluster is None or not len(unit):
        return []
    _, size = np.unique(unit, return_counts=True)
    return few_clusters_text(len(size), effective_clusters(size))
