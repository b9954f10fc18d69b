"""What a judge's scores are worth: calibration, agreement, and the biases that could explain its residuals.

Every function returns a DataFrame; ``attrs`` holds ``warnings`` (sentences) and ``settings`` (with the scalars that
belong to the table). Equation, figure and appendix numbers are those of arXiv:2606.13221. "Decisive" battles are those
on which human and judge both chose a side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from jaxeval.battles import DataError
from jaxeval.judged_battles import JudgedBattles
from jaxeval.softelo import soft_elo
from jaxeval.temperature import fit_temperature

Float = NDArray[np.float64]
Bool = NDArray[np.bool_]

#: Edges of the |score difference| bins of Figures 3 and 7; the last bin is open.
SCORE_GAP_EDGES = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, np.inf)
#: Judge scores so close call for length or position to decide (Figure 12).
NEAR_TIE = 0.3
_LEVEL = 0.95
#: Bins and groups with fewer battles (models) are kept in tables but not in figures.
FEW_BATTLES, FEW_MODELS = 30, 4


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """All diagnostics of one judge: ``headline`` has one row a measure, ``tables`` the rest by name."""

    headline: pd.DataFrame
    tables: dict[str, pd.DataFrame]
    warnings: list[str]
    left_out: list[str]  # what the data had no columns for, in words


def decisive(battles: JudgedBattles) -> Bool:
    """(N,) battles on which human and judge both chose a side."""
    return np.isin(battles.human, (0.0, 1.0)) & np.isin(battles.hard, (0.0, 1.0))


def reliability(battles: JudgedBattles, beta: float | None = None, n_bins: int = 10) -> pd.DataFrame:
    """Predicted against observed agreement on decisive battles (Appendix G).

    The prediction is s(beta |score difference|), the probability that the judge's side is the human's. The bins hold
    equal numbers of battles, up to one; equal predictions may fall into two bins.

    Args:
        battles: with human labels.
        beta: temperature; `fit_temperature` on all human non-ties by default.
        n_bins: deciles by default.

    Returns:
        One row a bin: ``predicted, agreement, standard_error, n_battles``. ``attrs["settings"]`` has ``ece``, the mean
        |predicted - agreement| weighted by battles, and ``beta``.
    """
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1, got {n_bins}")
    beta = _beta(battles) if beta is None else float(beta)
    rows = decisive(battles)
    gap = np.abs(battles.score_difference[rows])
    agree = (battles.human == battles.hard)[rows].astype(float)
    order = np.lexsort([agree, gap])
    # Within equal predictions agreement is dealt out evenly, not sorted: bins must not depend on the order of rows.
    order = _deal_ties(order, gap, agree)
    predicted = 1 / (1 + np.exp(-beta * gap[order]))
    parts = np.array_split(np.arange(len(order)), n_bins)
    table = _bins([predicted[p] for p in parts], [agree[order][p] for p in parts])
    weight = table["n_battles"] / max(len(order), 1)
    ece = float((weight * (table["predicted"] - table["agreement"]).abs()).sum()) if len(order) else np.nan
    warnings = [] if len(order) else ["no battle on which human and judge both chose a side: no calibration error"]
    table.attrs = {"warnings": warnings, "settings": {"ece": ece, "beta": beta, "n_battles": len(order)}}
    return table


def agreement_by_score_gap(battles: JudgedBattles, edges: Sequence[float] = SCORE_GAP_EDGES) -> pd.DataFrame:
    """Agreement of judge and human on decisive battles by |score difference| (Figures 3a and 7).

    Returns:
        One row a bin (upper edge included; the first bin's lower edge too): ``lower, upper, agreement,
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
    parts = [agree[place == k] for k in range(len(edges) - 1)]
    table = _bins([np.array([np.nan])] * len(parts), parts).drop(columns="predicted")
    table.insert(0, "lower", list(edges[:-1]))
    table.insert(1, "upper", list(edges[1:]))
    r, lower, upper = correlation_interval(gap, agree)
    warnings = []
    if np.isnan(r):
        warnings.append(
            f"{len(gap):,} decisive battles do not show whether larger score differences mean more agreement (all "
            "scores, or all agreements, are equal): soft targets rest on an assumption that this data cannot test"
        )
    elif lower <= 0 <= upper:
        warnings.append(
            f"larger score differences do not reliably mean more agreement with humans (r = {r:.3f}, 95 % interval "
            f"{lower:.3f} to {upper:.3f}): soft targets may compress and reorder the board; compare with the hard "
            "ratings before use"
        )
    elif upper < 0:
        warnings.append(
            f"larger score differences mean less agreement with humans (r = {r:.3f}, 95 % interval {lower:.3f} to "
            f"{upper:.3f}): soft targets are not to be used with this judge"
        )
    table.attrs = {
        "warnings": warnings,
        "settings": {"r": r, "r_lower": lower, "r_upper": upper, "n_battles": len(gap), "level": _LEVEL},
    }
    return table


def correlation_interval(x: ArrayLike, y: ArrayLike, level: float = _LEVEL) -> tuple[float, float, float]:
    """Pearson's r with a confidence interval, by Fisher's z and the infinitesimal jackknife; NaN without spread."""
    a, b = np.asarray(x, float), np.asarray(y, float)
    if len(a) < 4 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return np.nan, np.nan, np.nan
    u, v = (a - a.mean()) / a.std(), (b - b.mean()) / b.std()
    r = float(np.mean(u * v))
    if abs(r) > 1 - 1e-12:
        return r, r, r
    influence = u * v - r / 2 * (u**2 + v**2)
    error = np.sqrt(np.mean(influence**2) / len(a)) / (1 - r**2)
    half = ndtri((1 + level) / 2) * error
    return r, float(np.tanh(np.arctanh(r) - half)), float(np.tanh(np.arctanh(r) + half))


def agreement(battles: JudgedBattles) -> pd.DataFrame:
    """Cohen's kappa of judge and human (DOI 10.1177/001316446002000104), with its 95 % interval.

    Returns:
        Rows ``all`` (three labels: A, tie, B) and ``decisive`` (both chose a side): ``observed`` and ``expected``
        agreement, ``kappa``, ``standard_error`` (Fleiss, Cohen and Everitt 1969, DOI 10.1037/h0028106), ``lower``,
        ``upper``, ``n_battles``.
    """
    human, judge = battles.human, battles.hard
    known = ~(np.isnan(human) | np.isnan(judge))
    both = known & (human != 0.5) & (judge != 0.5)
    rows = {name: _kappa(human[mask], judge[mask]) for name, mask in (("all", known), ("decisive", both))}
    columns = ["observed", "expected", "kappa", "standard_error", "lower", "upper", "n_battles"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("battles")
    warnings = [f"no kappa on {name} battles: one label only" for name in table.index[table["kappa"].isna()]]
    table.attrs = {"warnings": warnings, "settings": {"level": _LEVEL}}
    return table


def _kappa(x: Float, y: Float) -> tuple[float, ...]:
    n = len(x)
    if n == 0:
        return (*[np.nan] * 6, 0)
    share = np.zeros((3, 3))
    np.add.at(share, ((2 * x).astype(int), (2 * y).astype(int)), 1 / n)
    row, column = share.sum(1), share.sum(0)
    observed, expected = np.trace(share), row @ column
    if expected > 1 - 1e-12:
        return (observed, expected, *[np.nan] * 4, n)
    kappa = (observed - expected) / (1 - expected)
    outer = column[:, None] + row  # column share of the row's label plus row share of the column's label
    diagonal = np.diag(share) * (1 - np.diag(outer) * (1 - kappa)) ** 2
    off = share * outer**2
    variance = diagonal.sum() + (1 - kappa) ** 2 * (off.sum() - np.trace(off))
    variance -= (kappa - expected * (1 - kappa)) ** 2
    error = np.sqrt(max(variance, 0) / n) / (1 - expected)
    half = ndtri((1 + _LEVEL) / 2) * error
    return observed, expected, kappa, error, kappa - half, kappa + half, n


def verdict_disagreement(battles: JudgedBattles) -> pd.DataFrame:
    """Share of battles whose verdict names the side that the judge scored lower (Appendix G).

    Returns:
        One row: ``share, lower, upper`` (Wilson, 95 %), ``n_battles`` with a verdict for a side and unequal scores.
    """
    if battles.verdict is None:
        raise DataError("the battles have no verdict column: name it when reading them")
    verdict, gap = battles.verdict, battles.score_difference
    rows = np.isin(verdict, (0.0, 1.0)) & (gap != 0)
    table = pd.DataFrame([_share(((verdict == 1) != (gap > 0))[rows])])
    table.attrs = {"warnings": [], "settings": {"level": _LEVEL}}
    return table


def score_gap_by_strength(battles: JudgedBattles, human_elo: pd.Series, n_groups: int = 4) -> pd.DataFrame:
    """|Score difference| by the strength groups of the two models (section 4.2); group 1 is the weakest.

    Returns:
        One row a pairing: ``weaker, stronger, median, mean, n_battles``. ``attrs["settings"]["mean"]`` is over all.
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
    """Group of each model, 1 = weakest: equal numbers of models, up to one."""
    known = human_elo[np.isfinite(human_elo.to_numpy(float))]
    if len(known) < n_groups:
        raise ValueError(f"{n_groups} strength groups need as many models with a human rating, found {len(known)}")
    place = known.rank(method="first").to_numpy() - 1
    return pd.Series((place * n_groups // len(known)).astype(int) + 1, known.index, name="group")


def residual_ramp(held_out: Any, n_groups: int = 4) -> pd.DataFrame:
    """Signed residual, judge minus human, by human-Elo group (Figures 2b and 14): a ramp is a stretched ruler.

    Args:
        held_out: a `SoftElo`, or its ``models`` table.
        n_groups: quartiles by default; group 1 is the weakest.

    Returns:
        One row a method and group: ``residual`` (mean, Elo), ``standard_error`` of the mean, ``n_models``, and for
        the method as a whole ``slope`` (of the residual on the human rating, Elo per Elo) and Pearson's ``r``.
    """
    table = _usable(held_out)
    blocks = []
    for key, block in table.groupby(_keys(table), sort=False):
        elo = block.set_index("model")["human_elo"]
        if len(elo) < n_groups:
            continue
        residual = block.set_index("model")["residual"]
        grouped = residual.groupby(strength_group(elo, n_groups))
        n = grouped.size()
        part = pd.DataFrame({"residual": grouped.mean(), "standard_error": grouped.std() / np.sqrt(n), "n_models": n})
        slope, r = _slope(elo.to_numpy(), residual.to_numpy())
        names = dict(zip(_keys(table), key if isinstance(key, tuple) else (key,), strict=True))
        blocks.append(part.assign(slope=slope, r=r, **names).reset_index())
    if not blocks:
        raise ValueError(f"{n_groups} strength groups need as many models with a residual under a method")
    result = pd.concat(blocks, ignore_index=True)
    result = result[[*_keys(table), "group", "residual", "standard_error", "n_models", "slope", "r"]]
    result.attrs = {"warnings": [], "settings": {"n_groups": n_groups}}
    return result


def position_bias(battles: JudgedBattles) -> pd.DataFrame:
    """How often the first answer shown wins, and how often the verdict flips with the order (Figure 11a).

    Returns:
        Rows ``position_1`` (share of single judgments with unequal scores that favour the answer shown first) and
        ``flip`` (share of battles whose two orders both chose a side, but not the same): ``share, lower, upper``
        (Wilson, 95 %), ``n_battles`` (judgments for position_1). ``attrs["settings"]["advantage"]`` is the mean score
        advantage of the first answer, in score points.
    """
    first, second = _orders(battles)
    # Columns: A minus B with A shown first, and with B shown first.
    shown_first = np.concatenate([first, -second])
    chosen = shown_first[np.isfinite(shown_first) & (shown_first != 0)]
    both = np.isfinite(first) & np.isfinite(second) & (first != 0) & (second != 0)
    rows = {"position_1": _share(chosen > 0), "flip": _share((first > 0)[both] != (second > 0)[both])}
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("rate")
    advantage = float(np.nanmean(shown_first))
    table.attrs = {"warnings": [], "settings": {"advantage": advantage, "level": _LEVEL}}
    return table


def single_order_ratings(
    battles: JudgedBattles, ridge: float = 0.01, methods: Sequence[Any] = ("hard",)
) -> pd.DataFrame:
    """Held-out ratings from each presentation order alone (Figure 11b).

    Returns:
        One row a model and method: ``human_elo``, ``a_first`` and ``b_first`` (judge ratings from one order),
        ``difference`` (Elo). ``attrs["settings"]["mae"]`` has the MAE by order and method.
    """
    first, second = _orders(battles)
    parts = {}
    for name, gap in (("a_first", first), ("b_first", second)):
        one = _with_scores(battles, gap)
        parts[name] = soft_elo(one, ridge=ridge, n_resamples=2, methods=methods).models.set_index(["model", "method"])
    table = parts["a_first"][["human_elo"]].copy()
    for name, part in parts.items():
        table[name] = part["judge_elo"]
    table["difference"] = table["a_first"] - table["b_first"]
    mae = {name: part["residual"].abs().groupby(level="method").mean().to_dict() for name, part in parts.items()}
    table = table.reset_index()
    table.attrs = {"warnings": [], "settings": {"ridge": ridge, "mae": mae}}
    return table


def _with_scores(battles: JudgedBattles, gap: Float) -> JudgedBattles:
    """The battles as if ``gap`` were all that the judge said; where it is missing the battle goes."""
    rows = np.isfinite(gap)
    label = np.where(gap > 0, 1.0, np.where(gap < 0, 0.0, 0.5))
    whole = replace(battles, score_difference=gap, judge=label, orders=None, verdict=None)
    return whole if rows.all() else whole.subset(rows)


def longer_answer_preference(
    battles: JudgedBattles, length_a: str, length_b: str, near_tie: float = NEAR_TIE
) -> pd.DataFrame:
    """How often the judge prefers the longer answer where its scores hardly differ (Figure 12).

    Args:
        battles: with columns of lengths, in any unit.
        length_a: column of the length of A's answer.
        length_b: of B's.
        near_tie: largest |score difference|.

    Returns:
        One row: ``share, lower, upper`` (Wilson, 95 %), ``n_battles`` near ties with a side chosen (by the verdict
        where there is one, by the scores' sign otherwise) and unequal lengths.
    """
    longer = _column(battles, length_a) - _column(battles, length_b)
    gap = battles.score_difference
    choice = battles.hard
    rows = (np.abs(gap) <= near_tie) & np.isin(choice, (0.0, 1.0)) & np.isfinite(longer) & (longer != 0)
    table = pd.DataFrame([_share(((choice == 1) == (longer > 0))[rows])])
    table.attrs = {"warnings": [], "settings": {"near_tie": near_tie, "level": _LEVEL}}
    return table


def length_correlation(battles: JudgedBattles, held_out: Any, length_a: str, length_b: str) -> pd.DataFrame:
    """Partial correlation of residual and mean answer length, given human Elo (Appendix F.1).

    Returns:
        One row a method: ``r`` (partial), ``lower, upper`` (95 %, Fisher's z), ``n_models``.
    """
    lengths = np.concatenate([_column(battles, length_a), _column(battles, length_b)])
    codes = np.concatenate([battles.model_a, battles.model_b])
    known = np.isfinite(lengths)
    n = np.bincount(codes[known], minlength=len(battles.models))
    with np.errstate(invalid="ignore"):
        mean = np.bincount(codes[known], lengths[known], len(battles.models)) / n
    by_model, table = pd.Series(mean, battles.models), _usable(held_out)
    rows = []
    for key, block in table.groupby(_keys(table), sort=False):
        length = by_model.reindex(block["model"]).to_numpy(float)
        used = np.isfinite(length)
        elo, residual = block["human_elo"].to_numpy(float)[used], block["residual"].to_numpy(float)[used]
        names = dict(zip(_keys(table), key if isinstance(key, tuple) else (key,), strict=True))
        r = _partial_correlation(residual, length[used], elo)
        half = ndtri((1 + _LEVEL) / 2) / np.sqrt(used.sum() - 4) if used.sum() > 4 else np.nan
        z = np.arctanh(np.clip(r, -1, 1))
        bounds = {"lower": float(np.tanh(z - half)), "upper": float(np.tanh(z + half))}
        rows.append({**names, "r": r, **bounds, "n_models": int(used.sum())})
    result = pd.DataFrame(rows)
    result.attrs = {"warnings": [], "settings": {"level": _LEVEL}}
    return result


def family_excess(held_out: Any, families: Mapping[Any, str], judge_family: Mapping[str, str] | str) -> pd.DataFrame:
    """Residual of models of the judge's own family minus that of the others (Figure 13b).

    With several judges the residuals are first taken relative to the median of the *other* judges on the same model.
    The score-level excess of Figure 13a needs scores of single answers, which judged battles do not keep.

    Args:
        held_out: a `SoftElo`, or its ``models`` table.
        families: family of each model; models without one are left out.
        judge_family: family of the judge, or of each judge by name.

    Returns:
        One row a judge and method: ``excess`` (Elo), ``standard_error`` (Welch), ``n_own``, ``n_other``.
    """
    table = _usable(held_out)
    keys = _keys(table)
    table = table.assign(family=[families.get(m) for m in table["model"]])
    n_left_out = int(table.loc[table["family"].isna(), "model"].nunique())
    table = table[table["family"].notna()]
    several = "judge" in keys and len(set(table["judge"])) > 1
    if several:
        wide = table.pivot_table(index=["method", "model"], columns="judge", values="residual")
        others = {j: wide.drop(columns=j).median(axis=1) for j in wide.columns}
        reference = [
            others[j].get((m, x), np.nan)
            for j, m, x in zip(table["judge"], table["method"], table["model"], strict=True)
        ]
        table = table.assign(residual=table["residual"] - reference)
    rows, warnings = [], []
    for key, block in table.groupby(keys, sort=False):
        names = dict(zip(keys, key if isinstance(key, tuple) else (key,), strict=True))
        family = judge_family if isinstance(judge_family, str) else judge_family[names.get("judge", "")]
        own = block.loc[block["family"] == family, "residual"].dropna()
        other = block.loc[block["family"] != family, "residual"].dropna()
        enough = len(own) > 1 and len(other) > 1
        error = np.sqrt(own.var() / len(own) + other.var() / len(other)) if enough else np.nan
        excess = own.mean() - other.mean() if len(own) and len(other) else np.nan
        rows.append({**names, "excess": excess, "standard_error": error, "n_own": len(own), "n_other": len(other)})
        if not enough:
            warnings.append(f"{' '.join(map(str, names.values()))}: {len(own)} models of family {family!r}, too few")
    if n_left_out:
        warnings.append(f"{n_left_out} models without a family are left out")
    result = pd.DataFrame(rows)
    result.attrs = {"warnings": warnings, "settings": {"relative_to_other_judges": several}}
    return result


def diagnose(
    battles: JudgedBattles,
    held_out: Any,
    *,
    length_a: str | None = None,
    length_b: str | None = None,
    families: Mapping[Any, str] | None = None,
    judge_family: str | None = None,
    ridge: float = 0.01,
) -> Diagnostics:
    """All diagnostics that the data allows for one judge, and a sentence for each that it does not.

    Args:
        battles: the judge's battles, with human labels.
        held_out: their `SoftElo`.
        length_a: column of answer lengths on side A, with ``length_b`` for the effects of verbosity.
        length_b: on side B.
        families: family of each model, with ``judge_family`` for the same-family excess.
        judge_family: family of the judge.
        ridge: of the single-order ratings.
    """
    human_elo = _human_elo(held_out)
    tables: dict[str, pd.DataFrame] = {}
    left_out: list[str] = []

    def add(name: str, make: Callable[[], pd.DataFrame], absent: str = "") -> None:
        if absent:
            left_out.append(f"{name.replace('_', ' ')}: {absent}")
            return
        try:
            tables[name] = make()
        except ValueError as error:
            left_out.append(f"{name.replace('_', ' ')}: {error}")

    one_order = "" if battles.orders is not None else "the data has one score per battle, not both presentation orders"
    lengths = "" if length_a and length_b else "no length columns were named"
    family = "" if families and judge_family else "no families were given"
    add("reliability", lambda: reliability(battles))
    add("agreement_by_score_gap", lambda: agreement_by_score_gap(battles))
    add("agreement", lambda: agreement(battles))
    add("verdict_disagreement", lambda: verdict_disagreement(battles),
        "" if battles.verdict is not None else "no verdict column was named")  # fmt: skip
    add("score_gap_by_strength", lambda: score_gap_by_strength(battles, human_elo))
    add("residual_ramp", lambda: residual_ramp(held_out))
    add("position_bias", lambda: position_bias(battles), one_order)
    add("single_order_ratings", lambda: single_order_ratings(battles, ridge), one_order)
    add("longer_answer_preference", lambda: longer_answer_preference(battles, length_a or "", length_b or ""), lengths)
    add("length_correlation", lambda: length_correlation(battles, held_out, length_a or "", length_b or ""), lengths)
    add("family_excess", lambda: family_excess(held_out, families or {}, judge_family or ""), family)
    warnings = [w for table in tables.values() for w in table.attrs["warnings"]]
    return Diagnostics(_headline(tables, battles), tables, warnings, left_out)


def _headline(tables: Mapping[str, pd.DataFrame], battles: JudgedBattles) -> pd.DataFrame:
    """One row a measure: value, lower, upper, n."""
    rows: dict[str, tuple[float, float, float, int]] = {}
    gap = np.abs(battles.score_difference)
    rows["mean |score difference|"] = float(gap.mean()), np.nan, np.nan, len(gap)
    if "agreement" in tables:
        for name, row in tables["agreement"].iterrows():
            rows[f"kappa, {name} battles"] = row["kappa"], row["lower"], row["upper"], int(row["n_battles"])
    if "reliability" in tables:
        found = tables["reliability"].attrs["settings"]
        rows["calibration error (ECE)"] = found["ece"], np.nan, np.nan, found["n_battles"]
    if "agreement_by_score_gap" in tables:
        found = tables["agreement_by_score_gap"].attrs["settings"]
        rows["r(|score difference|, agreement)"] = found["r"], found["r_lower"], found["r_upper"], found["n_battles"]
    for name, label in (
        ("verdict_disagreement", "verdict against score"),
        ("longer_answer_preference", "longer answer preferred"),
    ):
        if name in tables:
            row = tables[name].iloc[0]
            rows[label] = row["share"], row["lower"], row["upper"], int(row["n_battles"])
    if "position_bias" in tables:
        for name, row in tables["position_bias"].iterrows():
            label = {"position_1": "first answer preferred", "flip": "verdict flips with the order"}[str(name)]
            rows[label] = row["share"], row["lower"], row["upper"], int(row["n_battles"])
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["value", "lower", "upper", "n"])
    return table.rename_axis("measure")


def _beta(battles: JudgedBattles) -> float:
    fit = fit_temperature(battles.score_difference, battles.human)
    if not np.isfinite(fit.beta):
        raise ValueError(f"the temperature cannot be fitted on {fit.n_battles:,} human non-ties: {fit.status}")
    return float(fit.beta)


def _deal_ties(order: NDArray[np.intp], gap: Float, agree: Float) -> NDArray[np.intp]:
    """``order`` (by ``gap``, then ``agree``) with the agreements of equal gaps spread evenly among them."""
    _, group = np.unique(gap[order], return_inverse=True)
    kind = 2 * group + (agree[order] == 1)
    size = np.bincount(kind, minlength=1)
    # The k-th of each kind goes to the k-th of as many evenly spaced places.
    rank = np.arange(len(order)) - (np.cumsum(size) - size)[kind]
    return order[np.lexsort([kind, (rank + 0.5) / size[kind], group])]


def _bins(predicted: Sequence[Float], agree: Sequence[Float]) -> pd.DataFrame:
    n = np.array([len(a) for a in agree])
    rate = np.array([a.mean() if len(a) else np.nan for a in agree])
    error = np.sqrt(rate * (1 - rate) / np.maximum(n, 1))
    mean = [p.mean() if len(p) else np.nan for p in predicted]
    return pd.DataFrame({"predicted": mean, "agreement": rate, "standard_error": error, "n_battles": n})


def _share(hits: Bool) -> dict[str, float]:
    """Share with its Wilson interval (DOI 10.1080/01621459.1927.10502953)."""
    n = len(hits)
    if n == 0:
        return {"share": np.nan, "lower": np.nan, "upper": np.nan, "n_battles": 0}
    p, z = float(np.mean(hits)), ndtri((1 + _LEVEL) / 2)
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return {"share": p, "lower": max(centre - half, 0.0), "upper": min(centre + half, 1.0), "n_battles": n}


def _slope(x: Float, y: Float) -> tuple[float, float]:
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.nan, np.nan
    u, v = x - x.mean(), y - y.mean()
    return float(u @ v / (u @ u)), float(u @ v / np.sqrt((u @ u) * (v @ v)))


def _partial_correlation(x: Float, y: Float, given: Float) -> float:
    if len(x) < 4:
        return np.nan
    design = np.stack([np.ones_like(given), given], 1)
    rest = [v - design @ np.linalg.lstsq(design, v, rcond=None)[0] for v in (x, y)]
    return _slope(*rest)[1]


def _orders(battles: JudgedBattles) -> tuple[Float, Float]:
    if battles.orders is None:
        raise DataError("the battles have one score each: position effects need both presentation orders")
    return battles.orders[:, 0], battles.orders[:, 1]


def _column(battles: JudgedBattles, name: str) -> Float:
    if name not in battles.columns.columns:
        have = ", ".join(map(repr, battles.columns.columns))
        raise DataError(f"no column {name!r} beside the battles; there are {have or 'none'} (read it with keep=)")
    return np.asarray(pd.to_numeric(battles.columns[name]), float)


def _human_elo(held_out: Any) -> pd.Series:
    table = held_out if isinstance(held_out, pd.DataFrame) else held_out.models
    return table.drop_duplicates("model").set_index("model")["human_elo"]


def _usable(held_out: Any) -> pd.DataFrame:
    table = held_out if isinstance(held_out, pd.DataFrame) else held_out.models
    used = np.isfinite(table["residual"].to_numpy(float))
    return table[used & table["averaged"].to_numpy(bool)] if "averaged" in table.columns else table[used]


def _keys(table: pd.DataFrame) -> list[str]:
    return ["judge", "method"] if "judge" in table.columns else ["method"]
