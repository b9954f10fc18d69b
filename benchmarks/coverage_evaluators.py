"""Coverage of the measures of evaluators: 30 models whose scores correlate with those of people by .8."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from coverage_rows import Row, inside, part, row
from scipy.special import expit

import jaxeval

M, RHO, POPULATION = 30, 0.8, 3000
OPTIONS: Any = {"n_resamples": 1000, "progress": False}
WHAT_THEY_ESTIMATE = "the value at this number of models, which is what resamples of the models vary about"


def drawn(rng: np.random.Generator, n_models: int) -> tuple[pd.DataFrame, Any]:
    """Scores by two evaluators, of correlation .8 and .6 with gold, and gold."""
    gold = rng.normal(size=n_models)
    noise = rng.normal(size=(2, n_models))
    scores = {f"e{k}": rho * gold + np.sqrt(1 - rho**2) * noise[k] for k, rho in enumerate((RHO, 0.6))}
    return pd.DataFrame(scores), gold


def coverage(
    n: int, compute: Callable[..., pd.DataFrame], seed: int, index: list[str], **names: tuple[str, str, str]
) -> dict[Any, Any]:
    """By row of the table and measure: what n intervals of 30 models hold.

    The truth is the same table of a population of models; ``names`` are of the columns: value, lower, upper.
    """
    scores, gold = drawn(np.random.default_rng(99), POPULATION)
    truth = compute(scores, gold, n_resamples=0, progress=False).set_index(index)
    tables = []
    for number in range(n):
        scores, gold = drawn(np.random.default_rng([seed, number]), M)
        tables.append(compute(scores, gold, **OPTIONS).set_index(index))
    found = {}
    for key in truth.index:
        for measure, (value, lower, upper) in names.items():
            own = pd.DataFrame([table.loc[key] for table in tables])
            values = own[value].to_numpy(float)
            found[key, measure] = (
                inside(own, truth.loc[key, value], (lower, upper)),
                inside(own, np.nanmean(values), (lower, upper)),
            )
    return found


@part(1_500)
def correlations(n: int) -> list[Row]:
    """Rank correlations, over all pairs and under a gap."""
    case, ends, rows = f"{M} models, correlation .8", ("lower", "upper"), []
    found = coverage(
        n, lambda s, g, **o: jaxeval.kendall_tau_delta(s, g, [0.5, np.inf], **o), 1, ["evaluator", "delta"],
        tau=("tau", *ends),
    )  # fmt: skip
    names = ("kendall_tau", "kendall_tau_delta", "joint_tau")
    rows.append(row(names, "Kendall's tau", case, found[("e0", np.inf), "tau"][0]))
    rows.append(row("kendall_tau_delta", "tau of pairs under a gap of .5", case, found[("e0", 0.5), "tau"][0]))
    found = coverage(n, jaxeval.rank_agreement, 2, ["evaluator", "measure"], value=("value", *ends))
    for measure in ("spearman", "pair_accuracy"):
        rows.append(row("rank_agreement", measure, case, found[("e0", measure), "value"][0]))
    for measure in ("top_overlap", "rank_deviation"):
        own = found[("e0", measure), "value"][1]
        rows.append(
            row("rank_agreement", measure, case, own, note="of its own mean: it depends on the number of models")
        )
    return [*rows, differences_of_tau(n, case)]


def differences_of_tau(n: int, case: str) -> Row:
    """Evaluators of correlation .8 and .6, whichever comes first."""
    true = 2 / np.pi * (np.arcsin(RHO) - np.arcsin(0.6))
    held = []
    for number in range(n):
        scores, gold = drawn(np.random.default_rng([3, number]), M)
        found = jaxeval.compare_evaluators(scores, gold, **OPTIONS)
        sign = 1 if found["evaluator"].iloc[0] == "e0" else -1
        held.append(inside(found, sign * true))
    return row("compare_evaluators", "difference of two evaluators' tau", f"{case} and .6", held)


@part(1_200)
def gaps(n: int) -> list[Row]:
    """Probability of agreement at a gap, and the gap for a probability, where the model of the curve is right."""
    slope, rows = 1.5, []
    curve: dict[str, list[Any]] = {"at": [], "gap": []}
    for number in range(n):
        rng = np.random.default_rng([4, number])
        scores, gold = bradley_terry_gold(rng, 60, slope)
        found = jaxeval.agreement_by_gap(scores, gold, [1.0], **OPTIONS)
        curve["at"].append(inside(found, expit(slope)))
        found = jaxeval.smallest_gap(scores, gold, 0.75, **OPTIONS)
        curve["gap"].append(inside(found, np.log(3) / slope))
    case = "60 models, gold's order by a logistic of the gap"
    rows.append(row("agreement_by_gap", "probability of agreement at a gap of 1", case, curve["at"]))
    rows.append(row("smallest_gap", "smallest gap of agreement .75", case, curve["gap"]))
    return rows


def bradley_terry_gold(rng: np.random.Generator, n_models: int, slope: float) -> tuple[pd.DataFrame, Any]:
    """Gold is the score and Gumbel noise: the difference of two is then logistic about the gap."""
    score = rng.normal(size=n_models)
    return pd.DataFrame({"e": score}), slope * score + rng.gumbel(size=n_models)


@part(300)
def tiers_and_separation(n: int) -> list[Row]:
    """Rank changes by tier, of their own mean, and pairs that an evaluator separates."""
    case, rows = f"{M} models, correlation .8", []
    found = coverage(
        n, jaxeval.stratified_rank_change, 5, ["evaluator", "tier"], change=("rank_change", "lower", "upper")
    )
    for tier in (1, 2, 3, 4):
        own = found[("e0", tier), "change"][1]
        note = "of its own mean: resamples hold models twice, which moves ranks"
        rows.append(row("stratified_rank_change", f"rank change in tier {tier}", case, own, note=note))

    def separated(scores: pd.DataFrame, gold: Any, **options: Any) -> pd.DataFrame:
        return jaxeval.separability(scores, gold, standard_error=0 * scores + 0.3, **options)

    found = coverage(
        n, separated, 6, ["evaluator"],
        separated=("separated", "separated_lower", "separated_upper"),
        agreement=("agreement", "agreement_lower", "agreement_upper"),
    )  # fmt: skip
    for name in ("separated", "agreement"):
        title = {"separated": "share of pairs that are separated", "agreement": "agreement of these with gold"}[name]
        rows.append(row("separability", title, case, found["e0", name][0]))
    return rows
