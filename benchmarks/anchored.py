"""Reference-anchored Elo: a study of 100 models, 20 judges, 5 references, 5 runs and 10 tasks, 1,000 item resamples.

    python benchmarks/anchored.py
    python benchmarks/anchored.py --models 10   # a quick look: nothing is written

The scores of every model, judge, reference and task with Beta and percentile intervals, and the reliability of every
judge with its own; against the same by scipy.stats and pingouin in a loop, and by NumPy in a loop. Loops are timed on a
part of their work and scaled. Compiling is timed apart (the first call less a later one).
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from harness import asked_sizes, compared, first_and_later, peak_memory_mb, save
from scipy import stats

from jaxeval import AnchoredVerdicts, JudgeScreen, screen_judges
from jaxeval.anchored.scores import bootstrap_scores

MODELS, JUDGES, ANCHORS, RUNS, TASKS, PROMPTS = 100, 20, 5, 5, 10, 8  # prompts of a task
RESAMPLES = 1000
BY = ("model", "judge", "anchor", "task")
GROUPS_TIMED, SCREENS_TIMED, NUMPY_SCREENS_TIMED = 300, 3, 30


def study(n_models: int) -> tuple[AnchoredVerdicts, np.ndarray]:
    """Verdicts, and their outcomes by model, judge, reference, task, prompt and run."""
    rng = np.random.default_rng(0)
    shape = n_models, JUDGES, ANCHORS, TASKS, PROMPTS, RUNS
    strength = np.linspace(-1, 1, n_models).reshape(-1, 1, 1, 1, 1, 1)
    reference = np.linspace(-0.5, 0.5, ANCHORS).reshape(-1, 1, 1, 1)
    noise = np.linspace(0.2, 1.5, JUDGES).reshape(-1, 1, 1, 1, 1)
    latent = strength - reference + rng.standard_normal((n_models, 1, ANCHORS, TASKS, PROMPTS, 1))
    latent = latent + 0.3 * rng.standard_normal((*shape[:-1], 1)) + noise * rng.standard_normal(shape)
    outcome = np.where(np.abs(latent) < 0.4, 0.5, latent > 0)
    model, judge, anchor, task, prompt, run = np.indices(shape).reshape(6, -1)
    number = {"model": model, "judge": judge, "anchor": anchor, "task": task, "run": run}
    number["item"] = task * PROMPTS + prompt
    levels = {role: pd.Index([f"{role}-{k}" for k in range(values.max() + 1)]) for role, values in number.items()}
    return AnchoredVerdicts(outcome.reshape(-1), number, levels, outcome.size, 0), outcome


def scipy_scores(means: np.ndarray, groups: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Seconds, Beta intervals and percentile intervals of some of the (G, prompts) groups."""
    beta_ends, boot_ends = np.empty((2, len(groups), 2))
    start = time.perf_counter()
    for k, group in enumerate(groups):
        y = means[group]
        a, b = y.sum() + 0.5, len(y) - y.sum() + 0.5
        beta_ends[k] = stats.beta.ppf([0.025, 0.975], a, b)

        def smoothed(sample: np.ndarray, axis: int) -> np.ndarray:
            return (sample.sum(axis=axis) + 0.5) / (sample.shape[axis] + 1)

        found = stats.bootstrap((y,), smoothed, n_resamples=RESAMPLES, method="percentile", rng=int(group))
        boot_ends[k] = found.confidence_interval
    return time.perf_counter() - start, beta_ends, boot_ends


def numpy_scores(means: np.ndarray, groups: np.ndarray) -> float:
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    for group in groups:
        y = means[group]
        stats.beta.ppf([0.025, 0.975], y.sum() + 0.5, len(y) - y.sum() + 0.5)
        drawn = y[rng.integers(len(y), size=(RESAMPLES, len(y)))].sum(1)
        np.quantile((drawn + 0.5) / (len(y) + 1), [0.025, 0.975])
    return time.perf_counter() - start


def pingouin_screen(tables: np.ndarray, times: int) -> tuple[float, float]:
    """Seconds of a resample of a judge, and the largest difference of the ICCs of all prompts from ours.

    ``tables`` is (judges, answers, prompts, runs); prompts are resampled with their answers.
    """
    import pingouin

    from jaxeval import icc3

    rng = np.random.default_rng(0)
    prompts = np.arange(tables.shape[2])
    elapsed, worst = 0.0, 0.0
    for k in range(times):
        chosen = prompts if k == 0 else rng.integers(len(prompts), size=len(prompts))
        start = time.perf_counter()
        drawn = tables[k][:, chosen].reshape(-1, RUNS)
        long = pd.DataFrame(
            {
                "answer": np.repeat(np.arange(len(drawn)), RUNS),
                "run": np.tile(np.arange(RUNS), len(drawn)),
                "outcome": drawn.reshape(-1),
            }
        )
        found = pingouin.intraclass_corr(long, targets="answer", raters="run", ratings="outcome").set_index("Type")
        elapsed += time.perf_counter() - start
        ours = icc3(drawn)
        single, average = found["ICC"].iloc[2], found["ICC"].iloc[5]  # consistency, of one run and of all
        worst = max(worst, abs(ours.single - single), abs(ours.average - average))
    return elapsed / times, worst


def numpy_screen(tables: np.ndarray, times: int) -> float:
    """Seconds of a resample of a judge, mean squares by NumPy."""
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    for _ in range(times):
        drawn = tables[0][:, rng.integers(tables.shape[2], size=tables.shape[2])].reshape(-1, RUNS)
        centred = drawn - drawn.mean()
        of_answers, of_runs = centred.mean(1), centred.mean(0)
        between = RUNS * (of_answers**2).sum() / (len(drawn) - 1)
        error = ((centred - of_answers[:, None] - of_runs) ** 2).sum() / ((len(drawn) - 1) * (RUNS - 1))
        (between - error) / (between + (RUNS - 1) * error)
    return (time.perf_counter() - start) / times


def main() -> None:
    n_models = asked_sizes(__doc__, models=MODELS).models
    verdicts, outcome = study(n_models)

    def run() -> tuple[pd.DataFrame, JudgeScreen]:
        scores = bootstrap_scores(verdicts, BY, n_resamples=RESAMPLES, progress=False)
        return scores, screen_judges(verdicts, n_resamples=RESAMPLES, progress=False)

    (scores, screen), first, ours = first_and_later(run, 3)

    means = outcome.mean(-1).reshape(-1, PROMPTS)
    groups = np.random.default_rng(1).choice(len(means), GROUPS_TIMED, replace=False)
    scipy_seconds, beta_ends, boot_ends = scipy_scores(means, groups)
    # (judges, answers of a prompt, prompts, runs)
    tables = outcome.transpose(1, 0, 2, 3, 4, 5).reshape(JUDGES, n_models * ANCHORS, TASKS * PROMPTS, RUNS)
    pingouin_seconds, worst_icc = pingouin_screen(tables, SCREENS_TIMED)
    loop = scipy_seconds / GROUPS_TIMED * len(means) + pingouin_seconds * JUDGES * RESAMPLES
    plain = (
        numpy_scores(means, groups) / GROUPS_TIMED * len(means)
        + numpy_screen(tables, NUMPY_SCREENS_TIMED) * JUDGES * RESAMPLES
    )
    table = scores.iloc[groups]
    width = (table["boot_upper"] - table["boot_lower"]).to_numpy()
    theirs = boot_ends[:, 1] - boot_ends[:, 0]
    wide = theirs > 0
    row = {
        "verdicts": len(verdicts.outcome),
        "scores": len(scores),
        "judges": len(screen.table),
        "resamples": RESAMPLES,
        **compared(ours, first, scipy_and_pingouin=loop, numpy_loop=plain),
        "of_which_scipy_seconds": scipy_seconds / GROUPS_TIMED * len(means),
        "max_difference_of_beta_ends": float(
            np.abs(table[["probability_lower", "probability_upper"]].to_numpy() - beta_ends).max()
        ),
        "max_difference_of_icc": worst_icc,
        # Both are Monte Carlo.
        "interval_width_ratio": {
            "mean": float((width[wide] / theirs[wide]).mean()),
            "std": float((width[wide] / theirs[wide]).std()),
        },
        "peak_memory_mb": peak_memory_mb(),
    }
    print(
        f"{row['verdicts']:,} verdicts, {row['scores']:,} scores, {RESAMPLES:,} resamples: {ours['median']:.2f} s "
        f"(compiling {row['compile_seconds']:.1f} s); scipy.stats and pingouin {loop:,.0f} s "
        f"({row['scipy_and_pingouin_ratio']:,.0f} times), NumPy loop {plain:,.0f} s "
        f"({row['numpy_loop_ratio']:.0f} times)\n"
        f"Beta ends within {row['max_difference_of_beta_ends']:.1e}, ICC within {worst_icc:.1e}; width of percentile "
        f"intervals over scipy's {row['interval_width_ratio']}"
    )
    if n_models == MODELS:
        save("anchored", row)


if __name__ == "__main__":
    main()
