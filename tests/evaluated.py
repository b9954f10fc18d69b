"""Evaluators' scores beside gold: what the tests of the measures of evaluators read."""

import numpy as np
import pandas as pd

from jaxeval import kendall_tau_delta
from jaxeval.evaluators.resamples import EvaluatorResamples, resampled

M, B = 12, 120
DELTAS = [1.5, 3.0, 6.0, np.inf]
RNG = np.random.default_rng(0)
MODELS = [f"m{k:02d}" for k in range(M)]
GOLD = pd.Series(RNG.permutation(M) * 10.0 + 1000, MODELS)
SCORES = pd.DataFrame({e: (GOLD / 10 + RNG.normal(0, s, M)).round() for e, s in (("x", 2), ("y", 5))})
GAPS = SCORES.copy()
GAPS.loc[["m03", "m07"], "y"] = np.nan


def taus(scores=GAPS, gold=GOLD, deltas=DELTAS, n_resamples=B, **options):
    return kendall_tau_delta(scores, gold, deltas, n_resamples=n_resamples, **options)


def settings(n_resamples=B, resample="models", **run):
    return EvaluatorResamples(n_resamples=n_resamples, resample=resample, run=run)


def counts_of(scores, gold, counts):
    return counts[None]


def drawn_models(aligned, settings):
    """(1 + B, M) how often each model is drawn."""
    return resampled(counts_of, aligned, (), settings, M)[:, 0, : len(aligned.gold)].astype(int)


ARENA = {
    "Mistral-7B-Instruct-v0.2": 1072, "mistral-large-2402": 1157, "gemma-2b-it": 990, "gpt-3.5-turbo-0125": 1106,
    "Nous-Hermes-2-Mixtral-8x7B-DPO": 1084, "gpt-4-0125-preview": 1245, "tulu-2-dpo-70b": 1099,
    "nemotron-4-340b-instruct": 1209, "Yi-1.5-34B-Chat": 1157, "gpt-4o-2024-05-13": 1285, "Qwen2-72B-Instruct": 1187,
    "Mixtral-8x7B-Instruct-v0.1": 1114, "gemma-7b-it": 1037, "Starling-LM-7B-beta": 1119, "deepseek-coder-v2": 1178,
    "claude-3-5-sonnet-20240620": 1268, "gemini-1.5-flash": 1227, "gemini-1.5-pro": 1260, "Llama-2-7b-chat-hf": 1037,
    "Meta-Llama-3-70B-Instruct": 1206, "Meta-Llama-3-8B-Instruct": 1152,
}  # fmt: skip


def wildbench_rewards(data):
    counts = pd.read_csv(data / "wildbench_pairwise_counts.csv.gz")
    counts = counts[(counts["length_margin_K"] == -1) & counts["model"].isin(ARENA)]
    board = 100 * counts.pivot_table(index="model", columns="opponent", values="reward")
    return board.assign(reward=board.mean(axis=1))[["reward", "gpt4t", "haiku", "llama"]]
