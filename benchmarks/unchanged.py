"""Whether a change of the code moved any number: saves what every estimator gives, and compares two such files.

    python benchmarks/unchanged.py save before.npz            # on the commit before
    python benchmarks/unchanged.py save after.npz             # on the commit after
    python benchmarks/unchanged.py compare before.npz after.npz

Ratings and draws are on the Elo scale, shares are times 400. The comparison prints the largest difference of every
array, and exits with 1 where one is above 1e-10 or where missing and infinite values are in other places. Public data
are used where the data folder is there (JAXEVAL_DATA, or ../shared/data beside the checkout), simulated boards always.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import jaxeval
from jaxeval.anchored.pooling import pooled_scores
from jaxeval.anchored.scores import bootstrap_scores
from jaxeval.anchored.simulation import simulate_anchored_verdicts

TOLERANCE = 1e-10
SHARE = 400.0  # a share of the judgments is compared as finely as a rating
DATA = Path(os.environ.get("JAXEVAL_DATA") or Path(__file__).parents[2] / "shared" / "data")

Arrays = Iterator[tuple[str, Any]]


def votes() -> Arrays:
    """Bradley-Terry on tables of all pairs: schemes, slices, clusters, ridge, weights and a sparse part."""
    battles = jaxeval.simulate_battles(6_000, 25, seed=1)
    yield from _board("plain", battles, 120)
    for scheme in ("poisson", "bayesian"):
        yield from _board(scheme, battles, 60, scheme=scheme)
    yield from _board("single", battles, 60, dtype="float32")
    yield from _board("ridge", battles, 60, ridge=0.01, gauge="votes", reweight=True)
    yield from _board("thin", jaxeval.simulate_battles(400, 30, seed=2), 80)
    table = jaxeval.simulate_votes(5_000, 12, seed=3)
    rng = np.random.default_rng(3)
    table["language"] = rng.choice(["en", "de", "fr"], len(table), p=[0.7, 0.2, 0.1])
    table["voter"] = rng.integers(0, 300, len(table))
    sliced = jaxeval.Battles.from_pandas(table)
    for name, draws in jaxeval.bootstrap(sliced, 60, by="language", progress=False).items():
        yield f"by/{name}", draws.draws
    yield from _board("clusters", sliced, 60, cluster="voter")
    for path in sorted(DATA.glob("arena*_votes.parquet")):
        frame = pd.read_parquet(path)
        frame = frame[frame["model_a"] != frame["model_b"]]
        yield from _board(path.stem, jaxeval.Battles.from_pandas(frame), 200)


def sparse() -> Arrays:
    """The graph of pairs."""
    yield from _board("sparse", jaxeval.simulate_battles(6_000, 300, seed=4), 40, method="sparse")


def context() -> Arrays:
    """Covariates and tie models."""
    table = jaxeval.simulate_votes(4_000, 12, seed=5)
    table["length"] = np.random.default_rng(5).normal(size=len(table))
    battles = jaxeval.Battles.from_pandas(table)
    for ties in ("half", "davidson", "rao_kupper"):
        result = jaxeval.bootstrap(battles, 60, features=["length"], ties=ties, progress=False)
        yield f"{ties}/ratings", result.fit.ratings
        yield f"{ties}/draws", result.draws
        yield f"{ties}/coefficients", result.coefficient_draws


def soft_elo() -> Arrays:
    """Held-out models, their resamples, temperatures and the calibration."""
    battles = {"simulated": jaxeval.simulate_judged_battles(3_000, 9, seed=6)}
    path = DATA / "softelo_sample.csv"
    if path.exists():
        battles["sample"] = jaxeval.read_judged_battles(path, label_coding="a_wins_1")
    for name, judged in battles.items():
        result = jaxeval.soft_elo(judged, n_resamples=100, progress=False)
        yield f"{name}/models", result.models.select_dtypes(float)
        yield f"{name}/temperature", 400 * jaxeval.fit_temperature(judged.score_difference, judged.human).beta


def accuracy() -> Arrays:
    """Judge accuracy and comparisons."""
    table, judges = jaxeval.simulate_judged_answers(n_items=600, seed=7), ["judge-1", "judge-2"]
    answers = [
        jaxeval.JudgedAnswers.from_pandas(part, judgment=judges, label="human", model="model", item="item")
        for part in (table[table["item"] % 3 == 0], table[table["item"] % 3 > 0])
    ]
    result = jaxeval.judge_accuracy(*answers, n_resamples=500, progress=False)
    yield "table", SHARE * result.table.select_dtypes(float)
    yield "rates", SHARE * result.rates.select_dtypes(float)


def anchored() -> Arrays:
    """Scores against a reference, pooling and screening."""
    verdicts = jaxeval.AnchoredVerdicts.from_pandas(simulate_anchored_verdicts(seed=8))
    yield "scores", bootstrap_scores(verdicts, n_resamples=200).select_dtypes(float)
    screen = jaxeval.screen_judges(verdicts, n_resamples=200)
    yield "screen", SHARE * screen.table.select_dtypes(float)
    yield "pooled", pooled_scores(verdicts, screen=screen).select_dtypes(float)


def evaluators() -> Arrays:
    """Agreement of evaluators with gold scores, and the study of references."""
    rng = np.random.default_rng(9)
    gold = pd.Series(rng.normal(size=40), [f"model-{k}" for k in range(40)])
    scores = pd.DataFrame({f"judge-{k}": gold + rng.normal(scale=k, size=40) for k in (0.3, 0.6, 1.2)}, gold.index)
    for resample in ("models",):
        found = jaxeval.kendall_tau_delta(scores, gold, [0.5, 1, np.inf], n_resamples=200, resample=resample)
        yield f"delta/{resample}", SHARE * found.select_dtypes(float)
    yield "agreement", SHARE * jaxeval.rank_agreement(scores, gold, top=5, n_resamples=200).select_dtypes(float)
    study = jaxeval.reference_study(jaxeval.simulate_battles(3_000, 10, seed=10), n_resamples=30, progress=False)
    yield "by_reference", study.by_reference.select_dtypes(float)
    yield "by_budget", study.by_budget.select_dtypes(float)


ESTIMATORS = (votes, sparse, context, soft_elo, accuracy, anchored, evaluators)


def _board(name: str, battles: jaxeval.Battles, n_resamples: int, **options: Any) -> Arrays:
    result = jaxeval.bootstrap(battles, n_resamples, progress=False, **options)
    yield f"{name}/ratings", result.fit.ratings
    yield f"{name}/draws", result.draws


def save(path: Path) -> None:
    """Write what every estimator gives."""
    found = {f"{of.__name__}/{name}": np.asarray(x, float) for of in ESTIMATORS for name, x in of()}
    np.savez_compressed(path, **found)
    print(f"{len(found)} arrays in {path}")


def differences(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """How far ``y`` is from ``x``; what is missing or infinite in only one of them is not finite."""
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    with np.errstate(invalid="ignore"):
        return np.where(same, 0.0, np.abs(x - y))


def compare(before: Path, after: Path) -> int:
    """Print the differences; 1 where something moved."""
    with np.load(before) as old, np.load(after) as new:
        names = [*old, *(name for name in new if name not in old)]
        moved = 0
        for name in names:
            if name not in old or name not in new:
                what = "only before" if name in old else "only after"
            elif old[name].shape != new[name].shape:
                what = f"shape {old[name].shape} before, {new[name].shape} after"
            else:
                gap = differences(old[name], new[name])
                what = "" if (gap <= TOLERANCE).all() else "moved: "
                what += (
                    f"{np.nanmax(gap, initial=0):.1e}" if np.isfinite(gap).all() else "missing or infinite elsewhere"
                )
                if what[0].isdigit():
                    print(f"{name:40} {what}")
                    continue
            moved += 1
            print(f"{name:40} {what}")
    print(f"{moved} of {len(names)} arrays moved" if moved else f"nothing moved in {len(names)} arrays")
    return int(moved > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("save").add_argument("path", type=Path)
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.command == "save":
        save(given.path)
    else:
        sys.exit(compare(given.before, given.after))
