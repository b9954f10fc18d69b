"""Time horizons and the capability index, beside scikit-learn in a loop and SciPy's least squares.

    python benchmarks/headline.py
    python benchmarks/headline.py --resamples 50   # a quick look: nothing is written

Horizons: 14 agents, 228 tasks in 80 families, 25,536 runs. The loop draws families, tasks and runs by pandas and fits
each agent by scikit-learn's logistic regression; `time_horizons` draws the same stages, and families alone. The index:
as many models, benchmarks and scores as the public table of December 2025, of simulated shares; the loop is SciPy's
trust-region least squares with an analytic sparse Jacobian, begun at the full fit. Loops are timed for a few resamples,
of which the seconds of all follow. Estimates of the data are compared.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from harness import asked_sizes, first_and_later, save
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.sparse import coo_array
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import jaxeval

Array = NDArray[np.float64]
FULL = 1000
STAGES = ("family", "task", "run")
RIDGE = 1e-5


def fitted(runs: pd.DataFrame) -> dict[str, float]:
    """Log2 of the horizons at one half, by scikit-learn."""
    found = {}
    for agent, own in runs.groupby("agent", sort=True):
        if own["success"].nunique() < 2:
            found[str(agent)] = np.nan
            continue
        model = LogisticRegression(C=1 / RIDGE, tol=1e-8, max_iter=1000)
        model.fit(np.log2(own[["minutes"]].to_numpy()), own["success"], sample_weight=own["weight"])
        found[str(agent)] = float(-model.intercept_[0] / model.coef_[0, 0])
    return found


def drawn(runs: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """A resample: families, tasks of each, and runs of each agent on each task."""
    parts = []
    by_family = dict(list(runs.groupby("family")))
    for family in rng.choice(list(by_family), len(by_family)):
        by_task = dict(list(by_family[family].groupby("task")))
        for task in rng.choice(list(by_task), len(by_task)):
            for _, own in by_task[task].groupby("agent"):
                parts.append(own.iloc[rng.integers(0, len(own), len(own))])
    return pd.concat(parts)


def horizons(n_resamples: int, looped: int) -> dict[str, Any]:
    """Both, and how far their estimates are apart."""
    runs = jaxeval.simulate_runs(14, 228, 80, 8, seed=0)
    call = partial(jaxeval.time_horizons, runs, ridge=RIDGE, n_resamples=n_resamples, progress=False)
    ours, first, later = first_and_later(call, 3)
    staged, _, of_stages = first_and_later(partial(call, resample=STAGES), 1)
    sizes = runs.groupby(["agent", "family"])["task"].transform("nunique")
    weight = 1 / runs.groupby(["agent", "task"])["task"].transform("size") / np.sqrt(sizes)
    runs = runs.assign(weight=weight / weight.groupby(runs["agent"]).transform("sum"))
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    draws = pd.DataFrame([fitted(drawn(runs, rng)) for _ in range(looped)])
    loop = (time.perf_counter() - start) / looped * n_resamples
    estimate = ours.joint.of(level=0.5)
    theirs = fitted(runs)
    errors = staged.joint.of(level=0.5).standard_errors
    return {
        "runs": len(runs),
        "first_seconds": first,
        "seconds": later,
        "seconds_of_stages": of_stages,
        "loop_seconds": loop,
        "looped_resamples": looped,
        "times_faster": loop / later["median"],
        "estimates_apart_log2": float(np.abs(estimate.estimate - [theirs[a] for a in estimate.names]).max()),
        "ratio_of_standard_errors": float(np.median(draws.std(ddof=1)[estimate.names] / errors)),
    }  # fmt: skip


def simulated_scores() -> pd.DataFrame:
    """Shares of 179 models on 38 benchmarks, about 1,324 of them."""
    return jaxeval.simulate_benchmark_scores(179, 38, observed=0.195, noise=0.06, seed=0)


def by_scipy(scores: pd.DataFrame, easiest: str, looped: int) -> tuple[float, Array, float]:
    """Seconds of a refit, capabilities of the data, and the objective."""
    m, models = pd.factorize(scores["model"], sort=True)
    b, benchmarks = pd.factorize(scores["benchmark"], sort=True)
    y, n_m, n_b = scores["score"].clip(1e-3, 1 - 1e-3).to_numpy(), len(models), len(benchmarks)
    held, n = list(benchmarks).index(easiest), len(models) + 2 * len(benchmarks) - 1
    column = n_m + n_b + np.where(np.arange(n_b) < held, np.arange(n_b), np.arange(n_b) - 1)

    def split(p: Array) -> tuple[Array, Array, Array]:
        return p[:n_m], p[n_m : n_m + n_b], np.insert(p[n_m + n_b :], held, 1.0)

    def residuals(p: Array, m: Any, b: Any, y: Array) -> Array:
        c, d, a = split(p)
        return np.append(expit(a[b] * (c[m] - d[b])) - y, np.sqrt(0.1 * np.mean(p**2)))

    def jacobian(p: Array, m: Any, b: Any, y: Array) -> Any:
        c, d, a = split(p)
        z, free, row = c[m] - d[b], b != held, np.arange(len(y))
        s = expit(a[b] * z)
        bend = s * (1 - s)
        last = 0.1 / n / max(np.sqrt(0.1 * np.mean(p**2)), 1e-12) * p
        values = np.concatenate([bend * a[b], -bend * a[b], (bend * z)[free], last])
        rows = np.concatenate([row, row, row[free], np.full(n, len(y))])
        columns = np.concatenate([m, n_m + b, column[b[free]], np.arange(n)])
        return coo_array((values, (rows, columns)), shape=(len(y) + 1, n)).tocsr()

    bounds = np.r_[np.full(n_m + n_b, -10.0), np.full(n_b - 1, 0.1)], np.full(n, 10.0)

    def fit(start: Array, *data: Any, **tight: float) -> Any:
        return least_squares(residuals, start, jac=jacobian, args=data, bounds=bounds, **tight)

    best = fit(np.r_[np.zeros(n_m + n_b), np.ones(n_b - 1)], m, b, y, ftol=1e-14, xtol=1e-14, gtol=1e-9)
    rng, rows = np.random.default_rng(0), [np.flatnonzero(m == k) for k in range(n_m)]
    start = time.perf_counter()
    for _ in range(looped):
        own = np.concatenate([rng.choice(q, len(q)) for q in rows])
        fit(best.x, m[own], b[own], y[own])
    return (time.perf_counter() - start) / looped, best.x[:n_m], float(best.cost)


def index(n_resamples: int, looped: int) -> dict[str, Any]:
    """Both by least squares, and how far their estimates are apart; and the likelihood, the default loss, by itself."""
    scores = simulated_scores()
    call = partial(jaxeval.capability_index, scores, n_resamples=n_resamples, progress=False)
    ours, first, later = first_and_later(partial(call, loss="squared"), 3)
    start = time.process_time()
    call(loss="squared")
    cpu = time.process_time() - start
    _, _, likelihood = first_and_later(call, 3)
    each, capability, cost = by_scipy(scores, ours.settings["easiest"], looped)
    scaled = 100 + 15 * (capability - capability.mean()) / capability.std()
    return {
        "scores": len(scores),
        "first_seconds": first,
        "seconds": later,
        "cpu_seconds": cpu,
        "likelihood_seconds": likelihood,
        "loop_seconds": each * n_resamples,
        "looped_resamples": looped,
        "times_faster": each * n_resamples / later["median"],
        "indices_apart": float(np.abs(scaled - ours.joint.estimate).max()),
        "objectives": [ours.objective, cost],
    }


if __name__ == "__main__":
    asked = asked_sizes(__doc__, resamples=FULL, looped=5)
    found = {"horizons": horizons(asked.resamples, asked.looped), "index": index(asked.resamples, asked.looped)}
    for name, one in found.items():
        print(name, one)
    if asked.resamples == FULL:
        save("headline", found)
