"""Kendall's tau under a gap: 20 evaluators x 10 gaps x 10,000 resamples of 300 models in one call.

    python benchmarks/meta_evaluation.py
    python benchmarks/meta_evaluation.py --models 60   # a quick look: nothing is written

Against SciPy (all pairs) and NumPy (pairs under a gap) in a loop over resamples, evaluators and gaps; and against a
lean loop of NumPy that forms the differences of a resample's pairs once for all gaps. Loops are timed on a part of
their work and scaled, and there the answers are compared. Scores are whole numbers, so differences have no rounding.
Compiling is timed apart (the first call less a later one).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
from harness import asked_sizes, compared, first_and_later, peak_memory_mb, save
from scipy import stats

from jaxeval import kendall_tau_delta
from jaxeval.evaluators.model_scores import align_scores
from jaxeval.evaluators.resamples import EvaluatorResamples, resampled, resampled_delta_sums
from jaxeval.kernels.rank_agreement import delta_sums, tau_b

MODELS, EVALUATORS, RESAMPLES = 300, 20, 10_000
DELTAS = np.array([1, 2, 3, 5, 8, 12, 20, 30, 50, np.inf])
RESAMPLES_TIMED = 4


def counts_of(scores: Any, gold: Any, counts: Any) -> Any:
    return counts[None]


def board(n_models: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores (models, evaluators) with ties, and gold ones."""
    rng = np.random.default_rng(0)
    gold = rng.permutation(n_models).astype(float)
    noise = np.linspace(5, 40, EVALUATORS)
    return np.round(100 * gold[:, None] / n_models + noise * rng.standard_normal((n_models, EVALUATORS))), gold


def tau_under(x: np.ndarray, gold: np.ndarray, model: np.ndarray, delta: float) -> float:
    """Tau-b of the rows' pairs under ``delta``; copies of a model, which tie on both sides, fall out of it."""
    if np.isinf(delta):
        return stats.kendalltau(x, gold).statistic
    first, second = np.triu_indices(len(x), 1)
    gap, gold_gap = x[first] - x[second], gold[first] - gold[second]
    keep = (np.abs(gap) < delta) & (model[first] != model[second])
    gap, gold_gap = gap[keep], gold_gap[keep]
    product = np.count_nonzero(gap) * np.count_nonzero(gold_gap)
    return np.sum(np.sign(gap) * np.sign(gold_gap)) / np.sqrt(product) if product else np.nan


def lean_taus(scores: np.ndarray, gold: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(E, D) taus of a resample, what pairs share being formed once."""
    model = np.repeat(np.arange(len(gold)), counts)
    first, second = np.triu_indices(len(model), 1)
    apart = model[first] != model[second]
    first, second = model[first[apart]], model[second[apart]]
    gold_order = np.sign(gold[first] - gold[second])
    ordered = gold_order != 0
    taus = np.empty((scores.shape[1], len(DELTAS)))
    for e, x in enumerate(scores.T):
        gap = x[first] - x[second]
        size, agree, untied = np.abs(gap), np.sign(gap) * gold_order, gap != 0
        for d, delta in enumerate(DELTAS):
            near = size < delta
            product = np.count_nonzero(near & untied) * np.count_nonzero(near & ordered)
            taus[e, d] = agree[near].sum() / np.sqrt(product) if product else np.nan
    return taus


def main() -> None:
    n_models = asked_sizes(__doc__, models=MODELS).models
    scores, gold = board(n_models)

    def run() -> pd.DataFrame:
        return kendall_tau_delta(scores, gold, DELTAS, n_resamples=RESAMPLES, progress=False)

    _, first, ours = first_and_later(run, 5)

    aligned = align_scores(scores, gold)
    settings = EvaluatorResamples(RESAMPLES_TIMED, run={"progress": False})
    found = tau_b(resampled_delta_sums(aligned, DELTAS, settings))[1:]
    general = tau_b(resampled(delta_sums, aligned, (DELTAS,), settings, 4 * n_models**2))[1:]
    counts = resampled(counts_of, aligned, (), settings, n_models)[1:, 0, :n_models].astype(int)

    start = time.perf_counter()
    looped = np.empty_like(found)
    for r, c in enumerate(counts):
        model = np.repeat(np.arange(n_models), c)
        for e, x in enumerate(aligned.scores):
            for d, delta in enumerate(DELTAS):
                looped[r, e, d] = tau_under(x[model], aligned.gold[model], model, delta)
    loop = (time.perf_counter() - start) / RESAMPLES_TIMED * RESAMPLES
    start = time.perf_counter()
    lean = np.stack([lean_taus(aligned.scores.T, aligned.gold, c) for c in counts])
    lean_loop = (time.perf_counter() - start) / RESAMPLES_TIMED * RESAMPLES

    row = {
        "models": n_models,
        "evaluators": EVALUATORS,
        "gaps": len(DELTAS),
        "resamples": RESAMPLES,
        **compared(ours, first, scipy_and_numpy_loop=loop, lean_numpy_loop=lean_loop),
        "max_difference": {
            "loop": float(np.nanmax(np.abs(looped - found))),
            "lean": float(np.nanmax(np.abs(lean - found))),
            "scores_recomputed_by_lane": float(np.nanmax(np.abs(general - found))),
        },
        "same_missing": bool((np.isnan(looped) == np.isnan(found)).all()),
        "peak_memory_mb": peak_memory_mb(),
    }
    print(
        f"{EVALUATORS} evaluators x {len(DELTAS)} gaps x {RESAMPLES:,} resamples of {n_models} models: "
        f"{ours['median']:.2f} s (compiling {row['compile_seconds']:.1f} s); SciPy and NumPy in a loop {loop:,.0f} s "
        f"({row['scipy_and_numpy_loop_ratio']:,.0f} times), lean NumPy loop {lean_loop:,.0f} s "
        f"({row['lean_numpy_loop_ratio']:,.0f} times)"
    )
    print(f"largest differences {row['max_difference']}, peak memory {row['peak_memory_mb']:,.0f} MB")
    if n_models == MODELS:
        save("meta_evaluation", row)


if __name__ == "__main__":
    main()
