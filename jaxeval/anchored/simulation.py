"""Simulated verdicts against a reference, and direct scores of the same answers by judges whose scales drift."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd


def simulate_anchored_verdicts(
    strengths: Sequence[float] = (1.0, 0.5, 0.0, -0.5),
    n_items: int = 80,
    n_judges: int = 6,
    n_runs: int = 5,
    *,
    item_sd: float = 1.0,
    judge_sd: float = 0.3,
    run_sd: float | Sequence[float] = 0.5,
    tie_width: float = 0.4,
    drift_sd: float = 0.8,
    seed: int = 0,
) -> pd.DataFrame:
    """Verdicts of M models' answers against a reference by J judges in K runs, and direct 1-10 scores of both.

    A judge sees an answer's advantage over the reference: strength + item effect + its own taste for the item + the
    noise of the run. Within ``tie_width`` of 0 it calls a tie. Its direct scores are on a scale of its own, shifted and
    stretched by ``drift_sd``, and stop at 10.

    Args:
        strengths: of the models over the reference, in units of the latent advantage.
        item_sd: spread of the items' effects, which all judges share.
        judge_sd: spread of each judge's own taste.
        run_sd: noise of a run, one number or one per judge: the larger, the less reliable.
        drift_sd: spread of the judges' scales.
        seed: the same seed gives the same verdicts.

    Returns:
        A row per model, judge, item and run: ``verdict`` ("win", "tie", "loss"), ``score`` and ``reference_score``.
    """
    rng = np.random.default_rng(seed)
    noise = np.broadcast_to(np.asarray(run_sd, float), n_judges)
    shape = len(strengths), n_judges, n_items, n_runs
    item = item_sd * rng.standard_normal((len(strengths), 1, n_items, 1))
    taste = judge_sd * rng.standard_normal((len(strengths), n_judges, n_items, 1))
    latent = np.asarray(strengths, float)[:, None, None, None] + item + taste
    advantage = latent + noise[:, None, None] * rng.standard_normal(shape)
    verdict = np.where(np.abs(advantage) < tie_width, "tie", np.where(advantage > 0, "win", "loss"))
    offset = 8.0 + drift_sd * rng.standard_normal(n_judges)[:, None, None]
    stretch = np.exp(drift_sd / 2 * rng.standard_normal(n_judges))[:, None, None]

    def scored(value: np.ndarray) -> np.ndarray:
        error = noise[:, None, None] * rng.standard_normal(shape)
        return np.clip(np.rint(offset + stretch * (value + error)), 1, 10).astype(int)

    model, judge, prompt, run = (x.reshape(-1) for x in np.indices(shape))
    return pd.DataFrame(
        {
            "model": np.array([f"model-{k + 1}" for k in range(len(strengths))], object)[model],
            "judge": np.array([f"judge-{k + 1}" for k in range(n_judges)], object)[judge],
            "item": prompt,
            "run": run,
            "verdict": verdict.reshape(-1),
            "score": scored(latent).reshape(-1),
            "reference_score": scored(np.zeros(shape)).reshape(-1),
        }
    )
