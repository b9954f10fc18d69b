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
from jaxeval.softelo.rating_errors import units
from jaxeval.softelo.temperature import fit_temperature
from jaxeval.statistics.calibration_error import bin_rates, reliability_bins
from jaxeval.statistics.clusters import (
    design_effect,
    effective_clusters,
    few_clusters_text,
    freedom_of,
    widening,
    wilson_share,
)
from jaxeval.statistics.rater_agreement import cohen_kappa, label_table
from jaxeval.wording import counted

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
    beta = _beta(battles) if beta is None else float(beta)
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
    return table


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


def _beta(battles: JudgedBattles) -> float:
    fit = fit_temperature(battles.score_difference, battles.human)
    if not np.isfinite(fit.beta):
        raise ValueError(f"the temperature cannot be fitted on {fit.n_battles:,} human non-ties: {fit.status}")
    return float(fit.beta)
