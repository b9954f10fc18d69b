"""Leaderboards of scores: the time and memory of large ones, and NumPy and SciPy in a loop beside smaller ones.

    python benchmarks/scores.py
    python benchmarks/scores.py --items 2000 --models 50   # a quick look: nothing is written

The loop is what is written by hand today: draw items, take means, and then the largest difference of all pairs over its
standard error. It runs on a smaller board, where both are timed, and the answers are compared. Beside it are metrics of
an evaluation harness, Inspect, where that is installed: a bootstrap of each model by itself, and closed forms.
"""

from __future__ import annotations

import resource
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import scipy
from harness import asked_sizes, peak_memory_mb, save, seconds
from numpy.typing import NDArray

from jaxeval import ItemScores, compare_scores, score_leaderboard
from jaxeval.data.item_scores import ItemGroups

Array = NDArray[np.float64]
FULL = (400, 14_000, 10_000)
SMALL = (40, 2_000, 2_000)


def answers(n_models: int, n_items: int) -> ItemScores:
    """Right and wrong answers of models whose abilities differ, to items whose difficulties do."""
    rng = np.random.default_rng(0)
    ability, hard = np.sort(rng.normal(size=n_models)), rng.normal(size=(n_items, 1))
    right = rng.random((n_items, n_models)) < scipy.special.expit(1.5 * (ability - hard))
    names = pd.Index([f"model-{m:03d}" for m in range(n_models)])
    return ItemScores(right[:, None].astype(float), pd.RangeIndex(n_items), pd.Index(["score"]), names)


def by_loop(right: Array, n_resamples: int) -> dict[str, Any]:
    """Standard errors by resamples in a loop, and the critical value of the largest difference (max-t)."""
    rng = np.random.default_rng(1)
    n, mean = len(right), right.mean(0)
    draws = np.stack([right[rng.integers(0, n, n)].mean(0) for _ in range(n_resamples)])
    first, second = np.triu_indices(right.shape[1], 1)
    largest = np.zeros(n_resamples)
    for a, b in zip(first, second, strict=True):
        off = draws[:, a] - draws[:, b]
        error = off.std(ddof=1)
        if error > 0:
            largest = np.maximum(largest, np.abs(off - (mean[a] - mean[b])) / error)
    return {"errors": draws.std(0, ddof=1), "critical": float(np.quantile(largest, 0.95))}


def tests_by_scipy(right: Array) -> tuple[float, Array]:
    """Seconds of SciPy's exact McNemar p for the first model against each other one, and the p."""
    start = time.perf_counter()
    found = []
    for other in range(1, right.shape[1]):
        up, down = int((right[:, 0] > right[:, other]).sum()), int((right[:, 0] < right[:, other]).sum())
        found.append(scipy.stats.binomtest(up, up + down).pvalue if up + down else 1.0)
    return time.perf_counter() - start, np.array(found)


def by_inspect(right: Array, cluster: NDArray[np.intp], n_resamples: int) -> dict[str, Any] | None:
    """Standard errors of each model by Inspect's metrics, and processor seconds; None where it is not installed.

    Inspect knows one model at a time: no pairs, ranks or tiers come of it.
    """
    try:
        from inspect_ai.scorer import SampleScore, Score, bootstrap_stderr, stderr
    except ImportError:
        return None
    models = [
        [
            SampleScore(score=Score(value=float(x)), sample_metadata={"passage": int(c)})
            for x, c in zip(own, cluster, strict=True)
        ]
        for own in right.T
    ]
    metrics = {
        "bootstrap_stderr": bootstrap_stderr(num_samples=n_resamples),
        "stderr": stderr(),
        "clustered_stderr": stderr(cluster="passage"),
    }
    found: dict[str, Any] = {}
    for name, metric in metrics.items():
        used = cpu_seconds()
        found[name] = np.array([metric(scores) for scores in models])
        found[f"{name}_cpu_seconds"] = cpu_seconds() - used
    return found


def beside_inspect(small: ItemScores, n_resamples: int) -> dict[str, Any]:
    """Both on the same scores: processor seconds, and the largest relative differences of the closed forms."""
    cluster = np.arange(len(small.items)) // 5
    found = by_inspect(small.scores[:, 0], cluster, n_resamples)
    if found is None:
        return {"status": "inspect-ai is not installed"}
    clustered = replace(small, cluster=ItemGroups("passage", pd.RangeIndex(cluster.max() + 1), cluster))
    rows = {}
    for name, scores in (("stderr", small), ("clustered_stderr", clustered)):
        used = cpu_seconds()
        board = score_leaderboard(scores, n_resamples=n_resamples, progress=False)
        rows[f"jaxeval_cpu_seconds_{name}"] = cpu_seconds() - used
        own = board.set_index("model")["standard_error"].loc[small.models].to_numpy()
        rows[f"{name}_largest_relative_difference"] = float(np.abs(own / found[name] - 1).max())
    resampled = found["bootstrap_stderr"] / found["stderr"]
    return {
        "resamples": n_resamples, **rows, **{name: x for name, x in found.items() if name.endswith("seconds")},
        "bootstrap_ratio_min": float(resampled.min()), "bootstrap_ratio_max": float(resampled.max()),
    }  # fmt: skip


def cpu_seconds() -> float:
    """Of this process so far, all threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def timed_board(scores: ItemScores, n_resamples: int, repeats: int) -> dict[str, Any]:
    """Wall-clock and processor seconds of a leaderboard: the first run, which compiles, and later ones."""

    def run() -> pd.DataFrame:
        return score_leaderboard(scores, n_resamples=n_resamples, progress=False)

    start, used = time.perf_counter(), cpu_seconds()
    board = run()
    first, first_cpu = time.perf_counter() - start, cpu_seconds() - used
    used = cpu_seconds()
    later = seconds(run, repeats)
    cpu = (cpu_seconds() - used) / repeats
    return {
        "first_seconds": first, "first_cpu_seconds": first_cpu, "later_seconds": later, "later_cpu_seconds": cpu,
        "n_tiers": int(board["tier"].max()),
    }  # fmt: skip


def main() -> None:
    """Prints what it finds; a whole run writes it."""
    asked = asked_sizes(__doc__, models=FULL[0], items=FULL[1], resamples=FULL[2], repeats=2)
    small = answers(*SMALL[:2])
    right = small.scores[:, 0]
    board = score_leaderboard(small, n_resamples=SMALL[2], progress=False)
    ours = timed_board(small, SMALL[2], 3)
    start, used = time.perf_counter(), cpu_seconds()
    looped = by_loop(right, SMALL[2])
    loop_seconds, loop_cpu = time.perf_counter() - start, cpu_seconds() - used
    errors = board.set_index("model")["standard_error"].loc[small.models].to_numpy()
    scipy_seconds, p = tests_by_scipy(right)
    own_p = [compare_scores(small, small.models[0], other).p_mcnemar for other in small.models[1:]]
    side_by_side = {
        "models": SMALL[0], "items": SMALL[1], "resamples": SMALL[2],
        "jaxeval": ours,
        "loop": {"seconds": loop_seconds, "cpu_seconds": loop_cpu, "critical_value": looped["critical"]},
        "scipy_mcnemar_seconds": scipy_seconds,
        # Of 2,000 resamples, a standard error is known to 1.6 %.
        "errors_ratio_min": float((looped["errors"] / errors).min()),
        "errors_ratio_max": float((looped["errors"] / errors).max()),
        "p_mcnemar_largest_difference": float(np.abs(np.array(own_p) - p).max()),
    }  # fmt: skip
    print(side_by_side)
    harness = beside_inspect(small, SMALL[2])
    print(harness)
    large = answers(asked.models, asked.items)
    before = peak_memory_mb()
    found = timed_board(large, asked.resamples, asked.repeats)
    data_mb = large.scores.nbytes / 1e6
    full = {
        "models": asked.models, "items": asked.items, "resamples": asked.resamples, **found,
        "data_mb": data_mb, "peak_mb": peak_memory_mb(), "peak_mb_before": before,
    }  # fmt: skip
    print(full)
    if (asked.models, asked.items, asked.resamples) == FULL:
        save("scores", {"side_by_side": side_by_side, "inspect": harness, "large": full})


if __name__ == "__main__":
    main()
