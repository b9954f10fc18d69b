"""Do predicted Soft-Elo intervals hold? Coverage on simulated pools, by judge, pool, bias and numbers of battles.

    python benchmarks/forward_coverage.py
    python benchmarks/forward_coverage.py --pools 20   # a quick look: nothing is written

A pool of models with human votes is calibrated. New models, each with another number of judged battles, are predicted
with the same calibration. Two truths are held against the intervals: the rating that the board of the pool's human
votes shows after as many human votes on other battles (200, as the calibration models have), and the true strength. The
same pools are given to three rules:

    matched      the library's: residuals matched in noise with the prediction, `jaxeval.softelo.calibrated_methods`
    closed form  q * sqrt(V_J + V_H + tau^2), with q the conformal quantile of |r_i| / sqrt(s_i^2 + tau^2)
    paper        q * standard error, with q the conformal quantile of |r_i| / standard error_i

With the data folder, the same is done with real votes: 20 models, human votes and verdicts of three judges on the same
battles; a random half of the models calibrates.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from harness import environment, save
from numpy.typing import NDArray
from scipy.special import expit

import jaxeval
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.softelo.calibrated_methods import conformal_quantile, conformal_rank, conformity_scores, half_widths
from jaxeval.softelo.own_battles import OwnBattles, strengths

Float = NDArray[np.float64]
Int = NDArray[np.intp]

SLOPES = {"neutral": 0.72, "stretched": 1.2}  # points of score difference per logit of strength, beyond the human's own
POOLS, BIASES = (10, 20, 60), (0.0, 0.15, 0.4)  # models that calibrate; sd of the judge's error of a model, logits
RATIOS = (0.2, 1.0, 2.0, 5.0, 20.0)  # battles of a new model over those of a calibration model
N_BATTLES, N_NEW, SPREAD, RIDGE, LEVEL = 200, 8, 0.8, 0.01, 0.9
REAL_BATTLES, REAL_RATIOS = 100, (0.2, 1.0, 2.0, 5.0, 10.0)
REAL_JUDGES = ("gpt4_0125", "claude3_opus", "gpt35_turbo")
DEFAULT_POOLS = 250
CELLS = [(judge, n, bias, False) for judge in SLOPES for n in POOLS for bias in BIASES]
CELLS += [(judge, 20, 0.15, True) for judge in SLOPES]
RULES = ("matched", "closed form", "paper")
TARGETS = ("board", "strength")


class Judge(NamedTuple):
    """Scores slope * (difference of strengths and of the judge's errors) + 1 towards the human's choice + noise."""

    slope: float
    rng: np.random.Generator

    def battles(self, strength: Float, error: Float) -> tuple[Float, Float]:
        """Human choices and score differences of battles with such differences of strength, and of errors."""
        human = (self.rng.random(strength.shape) < expit(strength)).astype(float)
        noise = self.rng.normal(0, 1.2, strength.shape)
        return human, np.round(6 * (self.slope * (strength + error) + 2 * human - 1 + noise)) / 6


@cache
def template() -> jaxeval.JudgedBattles:
    frame = pd.DataFrame({"model_a": ["x"], "model_b": ["y"], "gap": [1.0]})
    return jaxeval.JudgedBattles.from_pandas(frame, score_difference="gap")


def judged(names: NDArray[np.str_], a: Int, b: Int, score: Float, human: Float) -> jaxeval.JudgedBattles:
    """Battles between numbered models, which are not read from a table for speed; ``human`` is NaN without votes."""
    return replace(
        template(),
        models=pd.Index(names, name="model"),
        model_a=a.astype(np.int32),
        model_b=b.astype(np.int32),
        score_difference=score,
        human=human,
        judge=(1 + np.sign(score)) / 2,
        columns=pd.DataFrame(index=range(len(a))),
    )


def board(battles: jaxeval.JudgedBattles) -> Float:
    """Strengths of the models on the board of human votes, logits about their mean."""
    table = pd.DataFrame(
        {
            "model_a": battles.models[battles.model_a],
            "model_b": battles.models[battles.model_b],
            "target": battles.human,
        }
    ).dropna()
    logits = jaxeval.fit_bradley_terry(jaxeval.Battles.from_pandas(table), RIDGE).logits[battles.models]
    return np.asarray(logits - logits.mean())


def human_ratings(opponent: Int, votes: Float, anchors: Float) -> Float:
    """(S,) ratings of new models on the board from votes (S, n) against opponents (S, n), Elo from its zero."""
    each = [
        OwnBattles("", of_model, points[None], anchors[None], np.zeros(1))
        for of_model, points in zip(opponent, votes, strict=True)
    ]
    return ELO_PER_LOGIT * strengths(each, RIDGE)[:, 0]


def opponents_of(rng: np.random.Generator, model: Int, n: int) -> Int:
    """Another of n models for each of ``model``, all equally likely."""
    other = rng.integers(0, n - 1, model.shape)
    return other + (other >= model)


class SimulatedPool(NamedTuple):
    """A pool of n models with human votes, and judged battles of new models. Strengths are logits."""

    battles: jaxeval.JudgedBattles
    new: jaxeval.JudgedBattles
    theta: Float  # (n,) of the pool
    strength: Float  # (S,) of the new models
    label: NDArray[np.str_]
    rng: np.random.Generator  # for what comes after


def draw_pool(
    seed: int, slope: float, n: int, bias: float, uneven: bool = False, ratio: Float | None = None
) -> SimulatedPool:
    """A pool, and new models with ``ratio`` (S,) times as many battles as those of the pool.

    In an ``uneven`` pool some calibration models are drawn up to ten times as often as others.
    """
    rng = np.random.default_rng([seed, round(100 * slope), n, round(100 * bias)])
    judge = Judge(slope, rng)
    theta, error = rng.normal(0, SPREAD, n), rng.normal(0, bias, n)
    names = np.array([f"model-{k:02d}" for k in range(n)])
    popularity = np.exp(rng.uniform(np.log(0.3), np.log(3), n)) if uneven else np.ones(n)
    a = rng.choice(n, n * N_BATTLES // 2, p=popularity / popularity.sum())
    b = opponents_of(rng, a, n)
    human, score = judge.battles(theta[a] - theta[b], error[a] - error[b])
    battles = judged(names, a, b, score, human)

    ratio = np.repeat(RATIOS, N_NEW) if ratio is None else ratio
    strength, own_error = rng.normal(0, SPREAD, len(ratio)), rng.normal(0, bias, len(ratio))
    label = np.array([f"new-{k:02d}" for k in range(len(ratio))])
    row = np.repeat(np.arange(len(ratio)), np.rint(ratio * N_BATTLES).astype(int))
    opponent = rng.integers(0, n, len(row))
    _, score = judge.battles(strength[row] - theta[opponent], own_error[row] - error[opponent])
    new = judged(np.concatenate([names, label]), n + row, opponent, score, np.full(len(row), np.nan))
    return SimulatedPool(battles=battles, new=new, theta=theta, strength=strength, label=label, rng=rng)


def simulated_pool(seed: int, slope: float, n: int, bias: float, uneven: bool = False) -> pd.DataFrame:
    """Predictions of new models by every rule, with their truths, after one simulated pool of n models calibrated."""
    battles, new, theta, strength, label, rng = draw_pool(seed, slope, n, bias, uneven)
    ratio = np.repeat(RATIOS, N_NEW)
    calibration = jaxeval.SoftEloCalibration.fit(battles, RIDGE, ("soft",))
    table = predictions(calibration, new).loc[label]

    others = rng.integers(0, n, (len(ratio), N_BATTLES))
    votes = (rng.random(others.shape) < expit(strength[:, None] - theta[others])).astype(float)
    return table.assign(
        ratio=ratio,
        board=human_ratings(others, votes, board(battles)),
        strength=ELO_PER_LOGIT * (strength - theta.mean()),
    )


def predictions(
    calibration: jaxeval.SoftEloCalibration, new: jaxeval.JudgedBattles, n_votes: int = N_BATTLES
) -> pd.DataFrame:
    """(S models) ``rating`` about the board's zero, and the half width of every rule for both targets, Elo."""
    models = calibration.methods["soft"].models
    table = calibration.predict(new, LEVEL, human_votes=n_votes).set_index("model").sort_index()
    error, settings = table["standard_error"].to_numpy(), table.attrs["settings"]
    residual, noise, tau = models["residual"], models["residual_error"], settings["floor"]
    closed = conformal_quantile(np.abs(residual) / np.hypot(noise, tau), LEVEL)
    paper = conformal_quantile(conformity_scores(residual, models["standard_error"]), LEVEL)
    result = pd.DataFrame({"rating": table["rating"] - calibration.settings.base})
    result["matched, board"] = (table["upper"] - table["lower"]) / 2
    result["matched, strength"] = half_widths(residual, noise, error, LEVEL)  # as predict gives it for endless votes
    for target, human_error in zip(TARGETS, (settings["human_error"], 0.0), strict=True):
        result[f"closed form, {target}"] = closed * np.sqrt(error**2 + human_error**2 + tau**2)
        result[f"paper, {target}"] = paper * error
    return result


def coverage(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Coverage of each rule, target and ratio by ``keys``, its standard error over pools, and the median width, Elo."""
    rows = []
    for key, block in table.groupby([*keys, "ratio"]):
        cell = dict(zip([*keys, "ratio"], key, strict=True))
        expected = conformal_rank(cell["models"], LEVEL) / (cell["models"] + 1)
        for rule in RULES:
            for target in [t for t in TARGETS if block[t].notna().any()]:
                half = block[f"{rule}, {target}"]
                held = ((block["rating"] - block[target]).abs() <= half).groupby(block["pool"]).mean()
                found = {"coverage": held.mean(), "standard_error": held.std(ddof=1) / np.sqrt(len(held))}
                width = {"expected": expected, "median_width_elo": 2 * half.median()}
                rows.append(cell | {"rule": rule, "target": target} | found | width)
    return pd.DataFrame(rows)


@cache
def real_votes(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path)


def real_pool(seed: int, arena: pd.DataFrame, judge: str) -> pd.DataFrame:
    """The same with real votes: half of the models calibrate on 100 battles each, the others are new.

    The board's rating of a new model comes from 100 votes on battles that the judge's rating does not rest on. The
    strength is not known. The models are split again where some have too few battles to calibrate, or where the judge
    agrees with people so little that no calibration is possible.
    """
    rng = np.random.default_rng(seed)
    models = np.unique(arena[["model_a", "model_b"]])
    n_calibrating, half = 0, len(models) // 2
    while n_calibrating < half:
        names = np.sort(rng.permutation(models)[:half])
        known_a, known_b = (arena[side].isin(names).to_numpy() for side in ("model_a", "model_b"))
        inside = rng.permutation(np.flatnonzero(known_a & known_b))[: half * REAL_BATTLES // 2]
        battles = jaxeval.JudgedBattles.from_pandas(
            arena.iloc[inside], human="human", verdict=judge, label_coding="labels", judge_name=judge
        )
        try:
            calibration = jaxeval.SoftEloCalibration.fit(battles, RIDGE, ("soft",))
        except ValueError:
            continue
        n_calibrating = len(calibration.methods["soft"].models)
    anchors = board(battles)

    parts, votes = [], {}
    for model in np.setdiff1d(models, names):
        of_model = (arena["model_a"] == model) | (arena["model_b"] == model)
        mine = arena[of_model & (arena["model_a"].isin(names) | arena["model_b"].isin(names))]
        mine = mine.iloc[rng.permutation(len(mine))]
        on_board, rest = mine[:REAL_BATTLES], mine[REAL_BATTLES:]
        is_a = on_board["model_a"] == model
        opponent = np.searchsorted(names, np.where(is_a, on_board["model_b"], on_board["model_a"]))
        target = on_board["human"].map({"model_a": 1.0, "model_b": 0.0}).fillna(0.5).to_numpy()
        votes[model] = human_ratings(opponent[None], np.where(is_a, target, 1 - target)[None], anchors)[0]
        for ratio in REAL_RATIOS:
            size = round(ratio * REAL_BATTLES)
            if size <= len(rest):
                parts.append(rest[:size].replace({"model_a": model, "model_b": model}, f"{model}|{ratio}"))
    new = jaxeval.JudgedBattles.from_pandas(
        pd.concat(parts), human=False, verdict=judge, label_coding="labels", judge_name=judge
    )
    table = predictions(calibration, new, REAL_BATTLES)
    found = [name.split("|") for name in table.index]
    return table.assign(ratio=[float(r) for _, r in found], board=[votes[m] for m, _ in found], strength=np.nan)


def one_pool(task: tuple[Any, ...]) -> pd.DataFrame:
    """The pool of a cell of `CELLS`, or of a judge of `REAL_JUDGES`, by its number."""
    seed, cell, path = task
    if path is not None:
        return real_pool(seed, real_votes(path), cell).assign(judge=cell, pool=seed)
    judge, n, bias, uneven = cell
    table = simulated_pool(seed, SLOPES[judge], n, bias, uneven)
    return table.assign(judge=judge, models=n, bias=bias, uneven=uneven, pool=seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pools", type=int, default=DEFAULT_POOLS)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    print(environment())
    path = Path(os.environ.get("JAXEVAL_DATA", "../shared/data")) / "arena27k_human_3judges.parquet"
    real, start = None, time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as workers:
        tasks = [(seed, cell, None) for seed in range(arguments.pools) for cell in CELLS]
        simulated = pd.concat(workers.imap(one_pool, tasks, len(CELLS)))
        if path.exists():
            tasks = [(seed, judge, path) for seed in range(arguments.pools) for judge in REAL_JUDGES]
            real = pd.concat(workers.imap(one_pool, tasks, len(REAL_JUDGES)))
    print(f"{arguments.pools} pools of {len(CELLS)} cells: {time.perf_counter() - start:.0f} s")
    cells = coverage(simulated, ["judge", "models", "bias", "uneven"])
    print(
        cells.pivot_table("coverage", ["judge", "models", "bias", "uneven", "rule", "target"], "ratio")
        .round(3)
        .to_string()
    )
    print(summary(cells).round(3).to_string())
    overall = summary(cells).reset_index().to_dict("records")
    result = {"pools": arguments.pools, "summary": overall, "simulated": cells.to_dict("records")}
    if real is not None:
        votes = coverage(real.assign(models=10), ["judge", "models"])
        print(votes.pivot_table(["coverage", "median_width_elo"], ["judge", "rule"], "ratio").round(3).to_string())
        result["real"] = votes.to_dict("records")
    if arguments.pools == DEFAULT_POOLS:
        save("forward_coverage", result)


def summary(cells: pd.DataFrame) -> pd.DataFrame:
    """Over all cells: coverage less the expected, on average and at the ends, and in standard errors; widths."""
    short = cells.assign(short=cells["coverage"] - cells["expected"])
    short["z"] = short["short"] / short["standard_error"]
    by = short.groupby(["rule", "target"], sort=False)
    width = cells.pivot_table("median_width_elo", ["rule", "target", "judge", "models", "bias", "uneven"], "ratio")
    growth = (width[RATIOS[-1]] / width[1.0]).groupby(["rule", "target"]).max()
    return pd.DataFrame(
        {
            "mean": by["short"].mean(),
            "least": by["short"].min(),
            "most": by["short"].max(),
            "least_z": by["z"].min(),
            "largest_width_at_20_over_at_1": growth,
            "median_width_elo": by["median_width_elo"].median(),
        }
    )


if __name__ == "__main__":
    main()
