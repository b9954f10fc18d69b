"""What is said of a judge: all diagnostics that the data allows, and all of `soft-elo FILE`, each model held out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import ndtri

from jaxeval.arrays import Float
from jaxeval.data.judged_battles import JudgedBattles, sign_labels
from jaxeval.errors import DataError
from jaxeval.execution.runs import RunOptions
from jaxeval.lab import held_out_sweeps
from jaxeval.show.boards import board_part
from jaxeval.show.cells import with_kinds
from jaxeval.show.shown import Answer, Part, Shown
from jaxeval.softelo import judge_agreement
from jaxeval.softelo.own_battles import units
from jaxeval.softelo.soft_elo import HeldOutRatings, how_close, soft_elo
from jaxeval.softelo.temperature import fit_temperature
from jaxeval.statistics.clusters import wilson_share
from jaxeval.wording import counted, visible_line

#: Where the judge's scores are this close, length or position may decide (Figure 12).
NEAR_TIE = 0.3
_HEADS = ("judge", "method", "n_models", "n_left_out", "mae", "mae_lower", "mae_upper", "spearman", "kendall", "beta")
_TITLE = "Held-out ratings against human ratings (Elo)"
#: Half of a 95 % interval, in standard errors; for ratings that have no conformal interval.
_Z = 1.959964


@dataclass(frozen=True, eq=False, repr=False)
class Diagnostics(Shown):
    """All diagnostics of one judge: ``headline`` has one row per measure, ``tables`` has the rest by name."""

    headline: pd.DataFrame
    tables: dict[str, pd.DataFrame]
    warnings: list[str]
    left_out: list[str]  # sentences on diagnostics that the data does not allow


def diagnose(
    battles: JudgedBattles, held_out: HeldOutRatings, *, length_a: str | None = None, length_b: str | None = None,
    families: Mapping[Hashable, str] | None = None, judge_family: str | None = None, ridge: float = 0.01,
    cluster: str | None = None,
) -> Diagnostics:  # fmt: skip
    """Return all diagnostics that the data allows for one judge, and a sentence for each that it does not.

    Args:
        battles: the judge's battles, with human labels.
        held_out: their `SoftElo`.
        length_a: column of answer lengths on side A, with ``length_b`` for the effects of verbosity.
        length_b: on side B.
        families: family of each model, with ``judge_family`` for the same-family excess.
        judge_family: family of the judge.
        ridge: of the single-order ratings.
        cluster: column of the clusters, prompts or voters. Errors and intervals over battles then take clusters, not
            battles, as independent.

    Raises:
        DataError: a column that was named is not there, or a cluster is missing.
        ValueError: the column of one side's lengths is named without the other's.
    """
    if (length_a is None) != (length_b is None):
        raise ValueError(f"columns of lengths are needed for both sides, got {length_a!r} for A and {length_b!r} for B")
    for column in (length_a, length_b):
        if column is not None:
            battles.column(column)
    if cluster is not None:
        battles.codes(cluster)
    human_elo = judge_agreement.human_ratings(held_out)
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
    add("reliability", lambda: judge_agreement.reliability(battles, cluster=cluster))
    add("agreement_by_score_gap", lambda: judge_agreement.agreement_by_score_gap(battles, cluster=cluster))
    add("agreement", lambda: judge_agreement.agreement(battles, cluster=cluster))
    add("verdict_disagreement", lambda: judge_agreement.verdict_disagreement(battles, cluster=cluster),
        "" if battles.verdict is not None else "no verdict column was named")  # fmt: skip
    add("score_gap_by_strength", lambda: judge_agreement.score_gap_by_strength(battles, human_elo))
    add("residual_ramp", lambda: judge_agreement.residual_ramp(held_out))
    add("position_bias", lambda: position_bias(battles, cluster=cluster), one_order)
    add("single_order_ratings", lambda: single_order_ratings(battles, ridge), one_order)

    a, b = length_a or "", length_b or ""
    add("longer_answer_preference", lambda: longer_answer_preference(battles, a, b, cluster=cluster), lengths)
    add("length_correlation", lambda: length_correlation(battles, held_out, a, b), lengths)
    add("family_excess", lambda: family_excess(held_out, families or {}, judge_family or ""), family)
    warnings = list(dict.fromkeys(w for table in tables.values() for w in table.attrs["warnings"]))
    return Diagnostics(_headline(tables, battles, cluster), tables, warnings, left_out)


def _headline(tables: Mapping[str, pd.DataFrame], battles: JudgedBattles, cluster: str | None) -> pd.DataFrame:
    """Return one row per measure: value, lower, upper, n."""
    rows: dict[str, tuple[float, float, float, int]] = {}
    gap = np.abs(battles.score_difference)
    rows["mean |score difference|"] = float(gap.mean()), np.nan, np.nan, len(gap)
    unit = None if cluster is None else units(battles, cluster)
    fit = fit_temperature(battles.score_difference, battles.human, cluster=unit)
    half = float(ndtri((1 + judge_agreement.LEVEL) / 2)) * fit.standard_error
    rows["temperature (beta)"] = fit.beta, fit.beta - half, fit.beta + half, fit.n_battles
    if "agreement" in tables:
        for name, row in tables["agreement"].iterrows():
            rows[f"kappa, {name} battles"] = row["kappa"], row["lower"], row["upper"], int(row["n_battles"])
    if "reliability" in tables:
        measures = tables["reliability"].attrs["settings"]
        n = measures["n_battles"]
        rows["calibration error (ECE)"] = measures["ece"], np.nan, np.nan, n
        rows["ECE of a judge without error"] = measures["ece_floor"], np.nan, np.nan, n
        rows["ECE without that noise"] = measures["ece_debiased"], measures["ece_lower"], measures["ece_upper"], n
    if "agreement_by_score_gap" in tables:
        of_gap = tables["agreement_by_score_gap"].attrs["settings"]
        r, lower, upper, n = (of_gap[name] for name in ("r", "r_lower", "r_upper", "n_battles"))
        rows["r(|score difference|, agreement)"] = r, lower, upper, n
    for table, kind, label in (
        ("verdict_disagreement", "opposite", "verdict against score"),
        ("verdict_disagreement", "label", "verdict is not the label of the scores"),
        ("verdict_disagreement", "flip", "verdict flips with the order"),
        ("longer_answer_preference", 0, "longer answer preferred"),
        ("position_bias", "position_1", "first answer preferred"),
        ("position_bias", "flip", "sign of the scores flips with the order"),
    ):
        if table in tables and kind in tables[table].index:
            row = tables[table].loc[kind]
            rows[label] = row["share"], row["lower"], row["upper"], int(row["n_battles"])
    headline = pd.DataFrame.from_dict(rows, orient="index", columns=["value", "lower", "upper", "n"])
    return with_kinds(headline.rename_axis("measure"), ends_of="value")


def position_bias(battles: JudgedBattles, *, cluster: str | None = None) -> pd.DataFrame:
    """Return how often the first answer shown wins, and how often the scores' sign flips with the order (Figure 11a).

    The battles must be judged in both orders.

    Returns:
        Rows ``position_1`` (share of single judgments with unequal scores that favour the answer shown first) and
        ``flip`` (share of battles whose two orders both chose a side, but not the same): ``share, lower, upper``
        (Wilson, 95 %), ``n_battles`` (judgments for position_1). ``attrs["settings"]["advantage"]`` is the mean score
        advantage of the first answer, in score points.
    """
    first, second = _orders(battles)
    # Columns: A minus B with A shown first, and with B shown first.
    shown_first = np.concatenate([first, -second])
    chosen = np.isfinite(shown_first) & (shown_first != 0)
    both = np.isfinite(first) & np.isfinite(second) & (first != 0) & (second != 0)
    unit = units(battles, cluster)
    rows = {
        # The two judgments of a battle are independent where no clusters are named.
        "position_1": wilson_share(shown_first[chosen] > 0, None if cluster is None else np.tile(unit, 2)[chosen]),
        "flip": wilson_share((first > 0)[both] != (second > 0)[both], unit[both]),
    }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("rate")
    advantage = float(np.nanmean(shown_first))
    table.attrs = {"warnings": [], "settings": {"advantage": advantage, "level": judge_agreement.LEVEL}}
    return table


def single_order_ratings(
    battles: JudgedBattles, ridge: float = 0.01, methods: Sequence[str] = ("hard",)
) -> pd.DataFrame:
    """Return held-out ratings (Elo) from each presentation order alone, and their difference (Figure 11b).

    The hard label is the sign of the order's scores; its verdict where verdicts of both orders make the hard label.
    ``attrs["settings"]["mae"]`` has the MAE by order and method.
    """
    orders = {name: _one_order(battles, k) for k, name in enumerate(("a_first", "b_first"))}
    models = soft_elo(orders, ridge=ridge, n_resamples=0, methods=methods).models
    parts = {name: part.set_index(["model", "method"]) for name, part in models.groupby("judge", sort=False)}
    table = parts["a_first"][["human_elo"]].copy()
    for name, part in parts.items():
        table[name] = part["judge_elo"]
    table["difference"] = table["a_first"] - table["b_first"]
    mae = {name: part["residual"].abs().groupby(level="method").mean().to_dict() for name, part in parts.items()}
    table = table.reset_index()
    table.attrs = {"warnings": [], "settings": {"ridge": ridge, "mae": mae}}
    return table


def _one_order(battles: JudgedBattles, k: int) -> JudgedBattles:
    """Return the battles as if the judge had seen the k-th order alone; battles without a score in it are left out."""
    gap = _orders(battles)[k]
    rows = np.isfinite(gap)
    verdict = None if battles.verdict_orders is None else battles.verdict_orders[:, k]
    whole = replace(
        battles, score_difference=gap, judge=sign_labels(gap, None), orders=None, verdict=verdict, verdict_orders=None,
        hard_label="scores" if verdict is None else battles.hard_label,
    )  # fmt: skip
    return whole if rows.all() else whole.subset(rows)


def longer_answer_preference(
    battles: JudgedBattles, length_a: str, length_b: str, near_tie: float = NEAR_TIE, *, cluster: str | None = None
) -> pd.DataFrame:
    """Return how often the judge prefers the longer answer where its scores hardly differ (Figure 12).

    One row: ``share, lower, upper`` (Wilson, 95 %), ``n_battles`` near ties with a side chosen (by the hard label) and
    unequal lengths, in any unit.
    """
    longer = _lengths(battles, length_a) - _lengths(battles, length_b)
    gap = battles.score_difference
    choice = battles.hard
    rows = (np.abs(gap) <= near_tie) & np.isin(choice, (0.0, 1.0)) & np.isfinite(longer) & (longer != 0)
    unit = units(battles, cluster)[rows]
    table = pd.DataFrame([wilson_share(((choice == 1) == (longer > 0))[rows], unit)])
    table.attrs = {"warnings": [], "settings": {"near_tie": near_tie, "level": judge_agreement.LEVEL}}
    return table


def length_correlation(battles: JudgedBattles, held_out: HeldOutRatings, length_a: str, length_b: str) -> pd.DataFrame:
    """Return the partial correlation of residual and mean answer length, given human Elo (Appendix F.1).

    Returns:
        One row per method: ``r`` (partial), ``lower, upper`` (95 %, Fisher's z), ``n_models``.
    """
    lengths = np.concatenate([_lengths(battles, length_a), _lengths(battles, length_b)])
    models, known = battles.models[np.concatenate([battles.model_a, battles.model_b])], np.isfinite(lengths)
    by_model = pd.Series(lengths[known]).groupby(models[known], observed=True).mean()
    rows, table = [], judge_agreement.usable_rows(held_out)
    for key, block in table.groupby(judge_agreement.grouping(table), sort=False):
        length = by_model.reindex(block["model"]).to_numpy(float)
        used = np.isfinite(length)
        elo, residual = block["human_elo"].to_numpy(float)[used], block["residual"].to_numpy(float)[used]
        names = dict(zip(judge_agreement.grouping(table), key, strict=True))
        r = np.nan
        if len(elo) > 3:  # partial: of what the human ratings leave of both
            design = np.stack([np.ones_like(elo), elo], 1)
            rest = [v - design @ np.linalg.lstsq(design, v, rcond=None)[0] for v in (residual, length[used])]
            r = judge_agreement.slope_and_correlation(*rest)[1]
        half = ndtri((1 + judge_agreement.LEVEL) / 2) / np.sqrt(used.sum() - 4) if used.sum() > 4 else np.nan
        z = np.arctanh(np.clip(r, -1, 1))
        bounds = {"lower": float(np.tanh(z - half)), "upper": float(np.tanh(z + half))}
        rows.append({**names, "r": r, **bounds, "n_models": int(used.sum())})
    result = pd.DataFrame(rows)
    result.attrs = {"warnings": [], "settings": {"level": judge_agreement.LEVEL}}
    return result


def family_excess(
    held_out: HeldOutRatings, families: Mapping[Hashable, str], judge_family: Mapping[str, str] | str
) -> pd.DataFrame:
    """Return the residual (Elo) of models of the judge's own family minus that of the others, by judge and method.

    With several judges the residuals are first taken relative to the median of the *other* judges on the same model
    (Figure 13b). The score-level excess of Figure 13a needs scores of single answers, which judged battles do not keep.
    Errors are Welch's. Models without a family are left out.
    """
    table = judge_agreement.usable_rows(held_out)
    keys = judge_agreement.grouping(table)
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
        names = dict(zip(keys, key, strict=True))
        family = judge_family if isinstance(judge_family, str) else judge_family[names.get("judge", "")]
        of_family = block.loc[block["family"] == family, "residual"].dropna()
        other = block.loc[block["family"] != family, "residual"].dropna()
        enough = len(of_family) > 1 and len(other) > 1
        error = np.sqrt(of_family.var() / len(of_family) + other.var() / len(other)) if enough else np.nan
        excess = of_family.mean() - other.mean() if len(of_family) and len(other) else np.nan
        rows.append(
            {**names, "excess": excess, "standard_error": error, "n_own": len(of_family), "n_other": len(other)}
        )
        if not enough:
            warnings.append(
                f"{' '.join(map(str, names.values()))}: no standard error with {counted(len(of_family), 'model')} of "
                f"family {family!r} and {len(other):,} of others; two of each are needed"
            )
    if n_left_out:
        warnings.append(f"{counted(n_left_out, 'model without a family is', 'models without a family are')} left out")
    result = pd.DataFrame(rows)
    result.attrs = {"warnings": warnings, "settings": {"relative_to_other_judges": several}}
    return result


def _orders(battles: JudgedBattles) -> tuple[Float, Float]:
    if battles.orders is None:
        raise DataError("the battles have one score each: effects of position need both presentation orders")
    return battles.orders[:, 0], battles.orders[:, 1]


def _lengths(battles: JudgedBattles, name: str) -> Float:
    return np.asarray(pd.to_numeric(battles.column(name)), float)


def error_of(study: Answer) -> float:
    """Mean error of the best method; infinite where no model could be rated."""
    error = study.tables["summary"]["mae"].min()
    return float(error) if error == error else float("inf")


def of_several(each: Mapping[str, Answer]) -> Answer:
    """Say what holding models out shows of the best of several judges, with the tables, notes and warnings of all."""
    best = min(each, key=lambda judge: error_of(each[judge]))
    if len(each) == 1:
        return each[best]
    names = dict.fromkeys(name for study in each.values() for name in study.tables)
    tables = {}
    for name in names:
        held = [study.tables[name].assign(judge=judge) for judge, study in each.items() if name in study.tables]
        table = pd.concat(held, ignore_index=True)
        tables[name] = table[["judge", *table.columns.drop("judge")]]
    judges = [best, *(judge for judge in each if judge != best)]
    first, *others = each[best].parts
    about = [text for text in each[best].sentences or () if text.startswith("standard errors are ")]
    return each[best]._replace(
        sentences=[*about, *how_close(tables["summary"])],
        warnings=[f"{judge}: {text}" for judge, study in each.items() for text in study.warnings],
        notes=[f"{judge}: {text}" for judge in judges for text in each[judge].notes],
        parts=[first._replace(table=_heads(tables["summary"])), *others],
        tables=tables,
    )


def held_out_answer(
    battles: JudgedBattles, running: RunOptions, *, level: float | None, splits: int, methods: tuple[str, ...],
    cluster: str | None, strata: str | None, by: str | None, length_a: str | None, length_b: str | None, budget: bool,
    smoothing: bool, ridge: float, n_resamples: int, seed: int, base: float, random: Sequence[str] | None = None,
) -> Answer:  # fmt: skip
    """Hold out every model of one judge in turn."""
    held_out = soft_elo(
        battles, ridge, n_resamples, seed, methods or ("hard", "soft"), base=base, cluster=cluster, strata=strata,
        random=random or (), **running,
    )  # fmt: skip
    diagnostics = diagnose(battles, held_out, length_a=length_a, length_b=length_b, ridge=ridge, cluster=cluster)
    tables = {
        "models": held_out.models,
        "summary": held_out.summary.reset_index(),
        "diagnostics": diagnostics.headline.reset_index(),
        **diagnostics.tables,
    }
    warnings = [*held_out.warnings, *diagnostics.warnings]
    drawn = counted(n_resamples, "resample") + (f" of {cluster}" if cluster else "")
    drawn += f" within {strata}" if strata else ""
    used = f"ridge {ridge:g}; {drawn}, seed {seed}"
    try:
        study = held_out_sweeps.conformal_study(held_out, level, splits, seed=seed)
        tables["conformal"], tables["conformal_splits"] = study.summary.reset_index(), study.splits
        tables["intervals"] = held_out_sweeps.leave_one_out_intervals(held_out, level)
        widths = held_out_sweeps.width_decomposition(held_out, level)
        tables["widths"] = widths.reset_index()
        warnings += [*study.warnings, *tables["intervals"].attrs["warnings"], *widths.attrs["warnings"]]
        made = study.settings
        calibrate = counted(made["n_calibration"], "model calibrates", "models calibrate")
        used += f"; random splits at level {made['level']:g}: {calibrate}, {made['n_test']} tested"
    except ValueError as error:  # too few models: their ratings are shown all the same
        warnings.append(f"no conformal intervals: {error}")

    def within(name: str) -> RunOptions:
        folder = running["checkpoint"]
        return {**running, "checkpoint": None if folder is None else Path(folder) / name}

    if by:
        tables["slices"] = held_out_sweeps.slice_ratings(battles, by, ridge, **within("slices"))
        warnings += tables["slices"].attrs["warnings"]
    if budget:
        tables["budget"] = held_out_sweeps.budget_sweep(
            battles, ridge=ridge, seed=seed, cluster=cluster, **within("budget")
        )
        warnings += tables["budget"].attrs["warnings"]

    if smoothing:
        tables["smoothing"] = held_out_sweeps.label_smoothing_sweep(battles, ridge=ridge)

    notes = [str(battles.report), f"{used}; {held_out.settings.versions}"]
    notes += [f"left out: {'; '.join(diagnostics.left_out)}"] if diagnostics.left_out else []
    return Answer(
        _TITLE, held_out.models, held_out.settings, warnings, sentences=held_out._sentences(), notes=notes,
        parts=_parts(tables, splits, by), tables=tables,
    )  # fmt: skip


def _heads(summary: pd.DataFrame) -> pd.DataFrame:
    return summary.sort_values("mae", kind="stable").filter(_HEADS)


def _parts(tables: Mapping[str, pd.DataFrame], splits: int, by: str | None) -> list[Part]:
    """Return the best method's error first, then its ratings beside those of the humans."""
    heads = _heads(tables["summary"])
    parts = [Part(_TITLE, heads, rows="method"), _board(tables, heads["method"].iloc[0])]
    if "smoothing" in tables:
        parts.append(Part("Label smoothing by its constant (Elo)", tables["smoothing"]))
    if "slices" in tables:
        parts.append(Part(f"Slices by {by}, against the global human rating (Elo)", tables["slices"], rows="slice"))
    if "conformal" in tables:
        title = f"Split conformal intervals, {counted(splits, 'random split')} (Elo)"
        parts.append(Part(title, tables["conformal"], rows="method", more=True))
    parts.append(Part("The judge's scores", tables["diagnostics"], rows="measure", more=True))
    if "budget" in tables:
        parts.append(Part("By the annotation budget (Elo)", tables["budget"], more=True))
    return parts


def _board(tables: Mapping[str, pd.DataFrame], method: str) -> Part:
    models = tables["models"]
    of_method = models[models["method"] == method].sort_values("judge_elo", ascending=False, kind="stable")
    half, what = _Z * of_method["standard_error"], "95% intervals of sampling"
    board = pd.DataFrame({
        "rank": range(1, len(of_method) + 1), "model": of_method["model"], "rating": of_method["judge_elo"],
        "lower": of_method["judge_elo"] - half, "upper": of_method["judge_elo"] + half,
        "human": of_method["human_elo"], "off_by": of_method["residual"], "vote_count": of_method["n_human"],
        "notes": of_method["flags"].astype(str),
    })  # fmt: skip
    if "intervals" in tables:
        ends = tables["intervals"]
        what = f"leave-one-out conformal intervals at the {100 * ends.attrs['settings']['level']:g}% level"
        ends = ends[ends["method"] == method].set_index("model")[["lower", "upper"]].reindex(of_method["model"])
        board[["lower", "upper"]] = ends.to_numpy(float)
    title = f"{visible_line(method).capitalize()} ratings of models held out, with {what} (Elo)"
    return board_part(title, with_kinds(board, elo="human off_by"), kept=("human", "off_by"))
