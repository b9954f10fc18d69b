"""All diagnostics of one judge in one call, with a sentence for each that the data does not allow."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtri

from jaxeval.data.judged_battles import JudgedBattles
from jaxeval.softelo.judge_agreement import LEVEL, agreement, agreement_by_score_gap, reliability, verdict_disagreement
from jaxeval.softelo.judge_biases import (
    family_excess,
    length_correlation,
    longer_answer_preference,
    position_bias,
    single_order_ratings,
)
from jaxeval.softelo.rating_errors import units
from jaxeval.softelo.residuals import human_ratings, residual_ramp, score_gap_by_strength
from jaxeval.softelo.soft_elo import HeldOutRatings
from jaxeval.softelo.temperature import fit_temperature
from jaxeval.tables.shown import Shown


@dataclass(frozen=True, eq=False, repr=False)
class Diagnostics(Shown):
    """All diagnostics of one judge: ``headline`` has one row per measure, ``tables`` has the rest by name."""

    headline: pd.DataFrame
    tables: dict[str, pd.DataFrame]
    warnings: list[str]
    left_out: list[str]  # sentences on diagnostics that the data does not allow


def diagnose(
    battles: JudgedBattles,
    held_out: HeldOutRatings,
    *,
    length_a: str | None = None,
    length_b: str | None = None,
    families: Mapping[Hashable, str] | None = None,
    judge_family: str | None = None,
    ridge: float = 0.01,
    cluster: str | None = None,
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
    human_elo = human_ratings(held_out)
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
    add("reliability", lambda: reliability(battles, cluster=cluster))
    add("agreement_by_score_gap", lambda: agreement_by_score_gap(battles, cluster=cluster))
    add("agreement", lambda: agreement(battles, cluster=cluster))
    add("verdict_disagreement", lambda: verdict_disagreement(battles, cluster=cluster),
        "" if battles.verdict is not None else "no verdict column was named")  # fmt: skip
    add("score_gap_by_strength", lambda: score_gap_by_strength(battles, human_elo))
    add("residual_ramp", lambda: residual_ramp(held_out))
    add("position_bias", lambda: position_bias(battles, cluster=cluster), one_order)
    add("single_order_ratings", lambda: single_order_ratings(battles, ridge), one_order)

    def preference() -> pd.DataFrame:
        return longer_answer_preference(battles, length_a or "", length_b or "", cluster=cluster)

    add("longer_answer_preference", preference, lengths)
    add("length_correlation", lambda: length_correlation(battles, held_out, length_a or "", length_b or ""), lengths)
    add("family_excess", lambda: family_excess(held_out, families or {}, judge_family or ""), family)
    warnings = list(dict.fromkeys(w for table in tables.values() for w in table.attrs["warnings"]))
    return Diagnostics(_headline(tables, battles, cluster), tables, warnings, left_out)


def _headline(tables: Mapping[str, pd.DataFrame], battles: JudgedBattles, cluster: str | None) -> pd.DataFrame:
    """One row per measure: value, lower, upper, n."""
    rows: dict[str, tuple[float, float, float, int]] = {}
    gap = np.abs(battles.score_difference)
    rows["mean |score difference|"] = float(gap.mean()), np.nan, np.nan, len(gap)
    unit = None if cluster is None else units(battles, cluster)
    fit = fit_temperature(battles.score_difference, battles.human, cluster=unit)
    half = float(ndtri((1 + LEVEL) / 2)) * fit.standard_error
    rows["temperature (beta)"] = fit.beta, fit.beta - half, fit.beta + half, fit.n_battles
    if "agreement" in tables:
        for name, row in tables["agreement"].iterrows():
            rows[f"kappa, {name} battles"] = row["kappa"], row["lower"], row["upper"], int(row["n_battles"])
    if "reliability" in tables:
        found = tables["reliability"].attrs["settings"]
        n = found["n_battles"]
        rows["calibration error (ECE)"] = found["ece"], np.nan, np.nan, n
        rows["ECE of a judge without error"] = found["ece_floor"], np.nan, np.nan, n
        rows["ECE without that noise"] = found["ece_debiased"], found["ece_lower"], found["ece_upper"], n
    if "agreement_by_score_gap" in tables:
        found = tables["agreement_by_score_gap"].attrs["settings"]
        rows["r(|score difference|, agreement)"] = found["r"], found["r_lower"], found["r_upper"], found["n_battles"]
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
    return headline.rename_axis("measure")
