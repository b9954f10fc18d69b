"""Judge accuracy: 10,000 resamples of every estimator, model and judge, and the Monte Carlo study of arXiv:2511.21140.

    python benchmarks/judge.py
    python benchmarks/judge.py --resamples 1000   # a quick look: nothing is written

The same estimates three other ways: by a plain NumPy loop over resamples, models, judges and estimators; by a loop over
resamples alone, NumPy doing the rest at once; and by ppi-python, PPI++ alone. Loops are timed on a part of their work
and scaled. Compiling is timed apart (the first call less a later one).
"""

from __future__ import annotations

import time
from math import sqrt
from typing import Any

import numpy as np
from harness import asked_sizes, compared, first_and_later, peak_memory_mb, save
from scipy.stats import norm

import jaxeval
from jaxeval.lab.accuracy_studies import coverage_study

N_MODELS, N_JUDGES, N_TEST, N_CALIBRATION = 12, 3, 2000, 400
N_RESAMPLES = 10_000
LOOPED, VECTORISED, PPI = 100, 1000, 20  # resamples timed of the loops
EXPERIMENTS = 20_000  # of the paper's own code


def answers() -> tuple[jaxeval.JudgedAnswers, jaxeval.JudgedAnswers]:
    rng = np.random.default_rng(0)
    table = jaxeval.simulate_judged_answers(
        rng.uniform(0.5, 0.85, N_MODELS),
        rng.uniform(0.6, 0.9, (N_MODELS, N_JUDGES)),
        rng.uniform(0.7, 0.95, (N_MODELS, N_JUDGES)),
        N_TEST + N_CALIBRATION,
    )
    judges = [f"judge-{k + 1}" for k in range(N_JUDGES)]
    both = jaxeval.JudgedAnswers.from_pandas(table, judgment=judges, model="model", item="item")
    return both.split(N_CALIBRATION / (N_TEST + N_CALIBRATION))


# Estimators from calibration labels and judgments (n, ...) and test judgments (N, ...).


def naive(y: np.ndarray, f: np.ndarray, g: np.ndarray) -> np.ndarray:
    return g.mean(0)


def calibration_only(y: np.ndarray, f: np.ndarray, g: np.ndarray) -> np.ndarray:
    return y.mean(0)


def difference(y: np.ndarray, f: np.ndarray, g: np.ndarray) -> np.ndarray:
    return g.mean(0) + (y - f).mean(0)


def ppi_plus_plus(y: np.ndarray, f: np.ndarray, g: np.ndarray) -> np.ndarray:
    covariance = (y * f).mean(0) - y.mean(0) * f.mean(0)
    weight = np.clip(covariance / (f.var(0) + len(f) / len(g) * g.var(0)), 0, 1)
    return y.mean(0) + weight * (g.mean(0) - f.mean(0))


def by_verdict(y: np.ndarray, f: np.ndarray, share: np.ndarray) -> np.ndarray:
    return (y * f).sum(0) / f.sum(0) * share + (y * (1 - f)).sum(0) / (1 - f).sum(0) * (1 - share)


def conditional(y: np.ndarray, f: np.ndarray, g: np.ndarray) -> np.ndarray:
    return by_verdict(y, f, g.mean(0))


def eif(y: np.ndarray, f: np.ndarray, g: np.ndarray) -> np.ndarray:
    return by_verdict(y, f, (f.sum(0) + g.sum(0)) / (len(f) + len(g)))


def rogan_gladen(y: np.ndarray, f: np.ndarray, g: np.ndarray) -> np.ndarray:
    q1, q0 = (y * f).sum(0) / y.sum(0), ((1 - y) * (1 - f)).sum(0) / (1 - y).sum(0)
    return np.clip((g.mean(0) + q0 - 1) / (q0 + q1 - 1), 0, 1)


ESTIMATORS = (naive, calibration_only, difference, ppi_plus_plus, conditional, eif, rogan_gladen)


def plain_loop(y: np.ndarray, f: np.ndarray, g: np.ndarray, n_resamples: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    draws = np.empty((n_resamples, len(ESTIMATORS), N_MODELS, N_JUDGES))
    for b in range(n_resamples):
        i, k = rng.integers(len(y), size=len(y)), rng.integers(len(g), size=len(g))
        for m in range(N_MODELS):
            for j in range(N_JUDGES):
                resample = y[i, m], f[i, m, j], g[k, m, j]
                for e, estimator in enumerate(ESTIMATORS):
                    draws[b, e, m, j] = estimator(*resample)
    return draws


def vectorised_loop(y: np.ndarray, f: np.ndarray, g: np.ndarray, n_resamples: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    draws = np.empty((n_resamples, len(ESTIMATORS), N_MODELS, N_JUDGES))
    wide = np.broadcast_to(y[:, :, None], f.shape)
    for b in range(n_resamples):
        i, k = rng.integers(len(y), size=len(y)), rng.integers(len(g), size=len(g))
        resample = wide[i], f[i], g[k]
        draws[b] = [estimator(*resample) for estimator in ESTIMATORS]
    return draws


def ppi_python(y: np.ndarray, f: np.ndarray, g: np.ndarray, n_resamples: int) -> float:
    from ppi_py import ppi_mean_pointestimate

    rng = np.random.default_rng(1)
    start = time.perf_counter()
    for _ in range(n_resamples):
        i, k = rng.integers(len(y), size=len(y)), rng.integers(len(g), size=len(g))
        for m in range(N_MODELS):
            for j in range(N_JUDGES):
                ppi_mean_pointestimate(y[i, m], f[i, m, j], g[k, m, j])
    return time.perf_counter() - start


def parity(y: np.ndarray, f: np.ndarray, g: np.ndarray) -> dict[str, float]:
    """Largest differences between our pooled-variance form and ppi-python."""
    from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

    worst = {"estimate": 0.0, "interval": 0.0}
    for m in range(N_MODELS):
        for j in range(N_JUDGES):
            args = y[:, m], f[:, m, j], g[:, m, j]
            ours = jaxeval.ppi_plus_plus(*args, pooled_variance=True)
            theirs = float(ppi_mean_pointestimate(*args)[0])
            lower, upper = (float(x[0]) for x in ppi_mean_ci(*args, alpha=0.05))
            worst["estimate"] = max(worst["estimate"], abs(ours.estimate - theirs))
            worst["interval"] = max(worst["interval"], abs(ours.lower - lower), abs(ours.upper - upper))
    return worst


def study(n_resamples: int) -> dict[str, Any]:
    calibration, test = answers()

    def run() -> Any:
        return jaxeval.judge_accuracy(calibration, test, n_resamples=n_resamples, progress=False)

    result, first, ours = first_and_later(run, 7)
    y, f, g = calibration.label, calibration.judgment, test.judgment
    start = time.perf_counter()
    plain_loop(y, f, g, LOOPED)
    loop = (time.perf_counter() - start) * n_resamples / LOOPED
    start = time.perf_counter()
    draws = vectorised_loop(y, f, g, VECTORISED)
    vectorised = (time.perf_counter() - start) * n_resamples / VECTORISED
    ppi = ppi_python(y, f, g, PPI) * n_resamples / PPI
    table = result.table.set_index(["estimator", "model", "judge"])
    names = [estimator.__name__ for estimator in ESTIMATORS]
    point = [estimator(np.broadcast_to(y[:, :, None], f.shape), f, g) for estimator in ESTIMATORS]
    shape = N_MODELS, N_JUDGES
    exact = max(
        float(np.abs(table.loc[name, "estimate"].to_numpy().reshape(shape) - value).max())
        for name, value in zip(names, point, strict=True)
    )
    width = np.stack(
        [(table.loc[n, "boot_upper"] - table.loc[n, "boot_lower"]).to_numpy().reshape(shape) for n in names]
    )
    theirs = np.quantile(draws, 0.975, axis=0) - np.quantile(draws, 0.025, axis=0)
    row = {
        "models": N_MODELS,
        "judges": N_JUDGES,
        "test_items": N_TEST,
        "calibration_items": N_CALIBRATION,
        "resamples": n_resamples,
        "estimators": int(result.table["estimator"].nunique()),
        "estimators_of_the_loops": len(ESTIMATORS),
        **compared(ours, first, plain_loop=loop, vectorised_loop=vectorised, ppi_python=ppi),
        "max_difference_of_estimates": exact,
        # Both are Monte Carlo.
        "interval_width_ratio": {"mean": float((width / theirs).mean()), "std": float((width / theirs).std())},
        "max_difference_from_ppi_python": parity(y, f, g),
        "peak_memory_mb": peak_memory_mb(),
    }
    print(
        f"{N_MODELS} models, {N_JUDGES} judges, {n_resamples:,} resamples: {ours['median']:.3f} s (compiling "
        f"{row['compile_seconds']:.1f} s); plain loop {loop:.0f} s ({row['plain_loop_ratio']:.0f} times), vectorised "
        f"loop {vectorised:.1f} s ({row['vectorised_loop_ratio']:.0f} times), ppi-python for PPI++ alone {ppi:.0f} s "
        f"({row['ppi_python_ratio']:.0f} times)"
    )
    print(f"answers within {exact:.1e}, of ppi-python within {row['max_difference_from_ppi_python']}")
    return row


def papers_code(p: float, q0: float, q1: float, n: float, m0: float, m1: float, z: float) -> tuple[float, float]:
    """The interval as arXiv:2511.21140 prints it, for one experiment."""
    p, q0, q1 = (n * p + z**2 / 2) / (n + z**2), (m0 * q0 + 1) / (m0 + 2), (m1 * q1 + 1) / (m1 + 2)
    n, m0, m1 = n + z**2, m0 + 2, m1 + 2
    theta = (p + q0 - 1) / (q0 + q1 - 1)
    shift = 2 * z**2 * (-(1 - theta) * q0 * (1 - q0) / m0 + theta * q1 * (1 - q1) / m1)
    spread = p * (1 - p) / n + (1 - theta) ** 2 * q0 * (1 - q0) / m0 + theta**2 * q1 * (1 - q1) / m1
    half = z * sqrt(spread) / (q0 + q1 - 1)
    return min(max(theta + shift - half, 0.0), 1.0), min(max(theta + shift + half, 0.0), 1.0)


def monte_carlo() -> dict[str, Any]:
    theta = np.arange(21) / 20
    judges = np.array([(0.7, 0.7), (0.7, 0.9), (0.9, 0.7), (0.9, 0.9)])

    def run() -> Any:
        return coverage_study(theta[:, None, None], judges[:, 0, None], judges[:, 1, None], 1000, np.array([200, 500]))

    result, first, ours = first_and_later(run, 3)
    z = float(norm.ppf(0.975))
    rng = np.random.default_rng(0)
    p = rng.binomial(1000, 0.55, EXPERIMENTS) / 1000
    q0, q1 = rng.binomial(100, 0.7, EXPERIMENTS) / 100, rng.binomial(100, 0.9, EXPERIMENTS) / 100
    start = time.perf_counter()
    loop = [papers_code(*x, 1000, 100, 100, z) for x in zip(p.tolist(), q0.tolist(), q1.tolist(), strict=True)]
    elapsed = time.perf_counter() - start
    ends = jaxeval.rogan_gladen(p, q0, q1, 1000, 100, 100)
    worst = float(np.abs(np.stack([ends.lower, ends.upper], 1) - np.array(loop)).max())
    experiments = 21 * 8 * 10_000
    corrected = result[result["method"] != "naive"]
    row = {
        "experiments_per_method": experiments,
        "methods": int(result["method"].nunique()),
        "jaxeval_seconds": ours,
        "compile_seconds": first - ours["median"],
        # Of its intervals alone: its experiments are not drawn.
        "papers_code_seconds_per_method": elapsed * experiments / EXPERIMENTS,
        "max_difference_of_intervals": worst,
        "coverage": [float(corrected["coverage"].min()), float(corrected["coverage"].max())],
    }
    print(
        f"Monte Carlo study of {experiments:,} experiments, three methods: {ours['median']:.2f} s; the paper's "
        f"interval code, one method: {row['papers_code_seconds_per_method']:.1f} s; same ends within {worst:.1e}; "
        f"coverage {row['coverage'][0]:.3f} to {row['coverage'][1]:.3f}"
    )
    return row


def main() -> None:
    arguments = asked_sizes(__doc__, resamples=N_RESAMPLES)
    result = {"study": study(arguments.resamples), "monte_carlo": monte_carlo()}
    if arguments.resamples == N_RESAMPLES:
        save("judge", result)


if __name__ == "__main__":
    main()
