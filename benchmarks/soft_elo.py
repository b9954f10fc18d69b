"""Leave-one-model-out Soft-Elo with 1,000 resamples: jaxeval against a vectorised NumPy and SciPy rendering of it.

    python benchmarks/soft_elo.py                  # 25,000 battles, 55 models, 1 and 8 judges; 1,000,000 and 300
    python benchmarks/soft_elo.py --skip-large
    python benchmarks/soft_elo.py --battles 3000 --models 20 --skip-large  # a quick look: nothing is written

The rendering has no Python loop over battles or resamples: tables by bincount, Newton's method on the M x M table for
the anchors of each fold and target map, multinomial counts over a model's opponents and distinct targets, and Newton's
method on all its resamples at once. Compiling is timed apart (the first call less a later one).
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from typing import Any

import numpy as np
from harness import environment, peak_memory_mb, save, seconds
from scipy.special import expit

import jaxeval
from jaxeval.lab.held_out_sweeps import budget_sweep, conformal_study, leave_one_out_intervals, width_decomposition
from jaxeval.lab.judge_diagnostics import diagnose
from jaxeval.ratings.gauge import ELO_PER_LOGIT

DEFAULT = (25_000, 55)  # battles, models: those of the paper
N_RESAMPLES = 1000
RIDGE = 0.01


def temperature(d: np.ndarray, y: np.ndarray) -> float:
    beta = 0.0
    for _ in range(50):
        p = expit(beta * d)
        step = np.sum(d * (y - p)) / np.sum(d**2 * p * (1 - p))
        beta += step
        if abs(step) < 1e-11:
            break
    return beta


def anchors(a: np.ndarray, b: np.ndarray, y: np.ndarray, m: int) -> np.ndarray:
    n = np.bincount(a * m + b, minlength=m * m).reshape(m, m)
    wins = np.bincount(a * m + b, y, m * m).reshape(m, m)
    score = wins.sum(1) + (n - wins).sum(0)
    n = n + n.T
    theta = np.zeros(m)
    for _ in range(50):
        p = expit(theta[:, None] - theta)
        v = n * p * (1 - p)
        grad = score - (n * p).sum(1) - 2 * RIDGE * theta
        step = np.linalg.solve(np.diag(v.sum(1) + 2 * RIDGE) - v, grad)
        theta += step
        if np.abs(step).max() < 1e-10:
            break
    return theta


def strengths(anchor: np.ndarray, n: np.ndarray, score: np.ndarray) -> np.ndarray:
    """(R,) strengths given (R, K) battles against the (K,) anchors."""
    theta = np.zeros(len(score))
    for _ in range(100):
        p = expit(theta[:, None] - anchor)
        grad = score - np.sum(n * p, 1) - 2 * RIDGE * theta
        step = np.clip(grad / (np.sum(n * p * (1 - p), 1) + 2 * RIDGE), -2, 2)
        theta += step
        if np.abs(step).max() < 1e-10:
            break
    return theta


def rendering(battles: jaxeval.JudgedBattles, n_resamples: int) -> tuple[np.ndarray, np.ndarray]:
    """Ratings (3, M) by human, hard and soft targets, and standard errors (2, M) of the latter, Elo."""
    a, b, d = battles.model_a.astype(np.int64), battles.model_b.astype(np.int64), battles.score_difference
    human, m = battles.human, battles.n_models
    rng = np.random.default_rng(0)
    theta, error = np.empty((3, m)), np.empty((2, m))
    for i in range(m):
        own = (a == i) | (b == i)
        fitting = ~own & ((human == 0) | (human == 1))
        soft = expit(temperature(d[fitting], human[fitting]) * d)
        first = a[own] == i
        opponent = np.where(first, b[own], a[own])
        targets = [np.where(first, y[own], 1 - y[own]) for y in (human, battles.hard, soft)]
        met, which = np.unique(opponent, return_inverse=True)
        strength = [anchors(a[~own], b[~own], y[~own], m)[met] for y in (human, battles.hard, soft)]
        n = np.bincount(which)[None]
        for k in range(3):
            theta[k, i] = strengths(strength[k], n, targets[k].sum()[None])[0]
        if not n_resamples:
            continue
        # Rows with the same opponent and targets are exchangeable.
        rows = np.stack([which, targets[1], targets[2]])
        cells, count = np.unique(rows, axis=1, return_counts=True)
        draws = rng.multinomial(count.sum(), count / count.sum(), n_resamples).astype(float)
        start = np.flatnonzero(np.diff(cells[0], prepend=-1))
        drawn = np.add.reduceat(draws, start, axis=1)
        for k in (1, 2):
            error[k - 1, i] = strengths(strength[k], drawn, draws @ cells[k]).std(ddof=1)
    return 1500 + ELO_PER_LOGIT * theta, ELO_PER_LOGIT * error


def study(battles: jaxeval.JudgedBattles) -> None:
    """Everything that `jaxeval soft-elo` shows."""
    held_out = jaxeval.soft_elo(battles, n_resamples=N_RESAMPLES, progress=False)
    conformal_study(held_out)
    leave_one_out_intervals(held_out)
    width_decomposition(held_out)
    diagnose(battles, held_out, length_a="log_length_a", length_b="log_length_b")


def compare(n_battles: int, n_models: int) -> dict[str, Any]:
    battles = jaxeval.simulate_judged_battles(n_battles, n_models)
    start = time.perf_counter()
    result = jaxeval.soft_elo(battles, n_resamples=N_RESAMPLES, progress=False)
    first_call = time.perf_counter() - start
    ours = seconds(lambda: jaxeval.soft_elo(battles, n_resamples=N_RESAMPLES, progress=False), 7)
    start = time.perf_counter()
    ratings, error = rendering(battles, N_RESAMPLES)
    theirs = time.perf_counter() - start
    table = result.models
    shape = (n_models, 2)
    found = table["judge_elo"].to_numpy().reshape(shape).T
    ratio = table["standard_error"].to_numpy().reshape(shape).T / error
    judges = {f"judge-{k}": jaxeval.simulate_judged_battles(n_battles, n_models, seed=k) for k in range(8)}
    jaxeval.soft_elo(judges, n_resamples=N_RESAMPLES, progress=False)
    eight = seconds(lambda: jaxeval.soft_elo(judges, n_resamples=N_RESAMPLES, progress=False), 3)
    study(battles)
    whole = seconds(lambda: study(battles), 5)
    budget_sweep(battles)
    sweep = seconds(lambda: budget_sweep(battles), 1)
    row = {
        "battles": n_battles,
        "models": n_models,
        "resamples": N_RESAMPLES,
        "jaxeval_seconds": ours,
        "compile_seconds": first_call - ours["median"],
        "rendering_seconds": theirs,
        "ratio": theirs / ours["median"],
        "max_difference_elo": float(np.abs(found - ratings[1:]).max()),
        # Both are Monte Carlo: their ratio has a standard deviation of 1 / sqrt(B).
        "standard_error_ratio": {"mean": float(ratio.mean()), "std": float(ratio.std())},
        "study_with_conformal_and_diagnostics_seconds": whole,
        "budget_sweep_seconds": sweep,
        "eight_judges_seconds": eight,
        "eight_judges_ratio": eight["median"] / ours["median"],
        "peak_memory_mb": peak_memory_mb(),
    }
    print(
        f"{n_battles:,} battles, {n_models} models: {ours['median']:.3f} s (compiling {row['compile_seconds']:.1f} s), "
        f"rendering {theirs:.2f} s ({row['ratio']:.0f} times), answers within {row['max_difference_elo']:.1e} Elo; "
        f"eight judges {eight['median']:.3f} s ({row['eight_judges_ratio']:.1f} times one)"
    )
    print(
        f"with conformal intervals and diagnostics {whole['median']:.3f} s; budget sweep "
        f"{sweep['median']:.1f} s; peak {row['peak_memory_mb']:.0f} MB"
    )
    return row


def large(n_battles: int, n_models: int) -> dict[str, Any]:
    """One study in a process of its own, for its peak memory."""
    battles = jaxeval.simulate_judged_battles(n_battles, n_models)
    before = peak_memory_mb()
    start = time.perf_counter()
    jaxeval.soft_elo(battles, n_resamples=N_RESAMPLES, progress=False)
    elapsed = time.perf_counter() - start
    peak = peak_memory_mb()
    print(
        f"{n_battles:,} battles, {n_models} models: {elapsed:.1f} s with compiling, {peak:.0f} MB ({before:.0f} before)"
    )
    return {"seconds_with_compiling": elapsed, "peak_memory_mb": peak, "peak_memory_before_mb": before}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--battles", type=int, default=DEFAULT[0])
    parser.add_argument("--models", type=int, default=DEFAULT[1])
    parser.add_argument("--skip-large", action="store_true")
    arguments = parser.parse_args()
    print(environment())
    result = {"board": compare(arguments.battles, arguments.models)}
    if not arguments.skip_large:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            result["large"] = pool.apply(large, (1_000_000, 300))
    if (arguments.battles, arguments.models) == DEFAULT:
        save("soft_elo", result)


if __name__ == "__main__":
    main()
