"""Numbers of the paper on meta-evaluation that public files hold, beside those of tests/evaluators."""

import numpy as np
import pandas as pd
import pytest
from evaluated import ARENA, wildbench_rewards

from jaxeval import kendall_tau_delta

#: Printed in Table 9, in percent: haiku, llama, gpt4t, mean. Two cells of gpt4t lost their columns in print.
TABLE_9 = {
    "Mistral-7B-Instruct-v0.2": (-19.34, 3.61, -54.74, -23.49), "mistral-large-2402": (-2.98, 18.43, -46.39, -10.31),
    "gemma-2b-it": (-69.63, -58.84, -86.08, -71.52), "gpt-3.5-turbo-0125": (-27.44, -4.35, -64.84, -32.21),
    "Nous-Hermes-2-Mixtral-8x7B-DPO": (-16.28, 2.44, -54.74, -22.86),
    "gpt-4-0125-preview": (37.84, 51.32, -4.25, 28.30), "tulu-2-dpo-70b": (-16.99, 3.22, -54.93, -22.90),
    "nemotron-4-340b-instruct": (28.86, 42.58, -21.04, 16.80), "Yi-1.5-34B-Chat": (24.76, 40.57, -17.29, 16.01),
    "gpt-4o-2024-05-13": (43.26, 52.54, 1.66, 32.49), "Qwen2-72B-Instruct": (13.04, 31.84, -34.08, 3.60),
    "Mixtral-8x7B-Instruct-v0.1": (-11.62, 9.67, -50.15, -17.37), "gemma-7b-it": (-52.44, -35.87, -77.25, -55.19),
    "Starling-LM-7B-beta": (-3.22, 15.87, -47.02, -11.46), "deepseek-coder-v2": (20.21, 36.43, -26.44, 10.07),
    "claude-3-5-sonnet-20240620": (40.92, 50.15, -4.39, 28.89), "gemini-1.5-flash": (27.15, 40.09, -11.28, 18.65),
    "gemini-1.5-pro": (39.06, 47.95, -1.32, 28.56), "Llama-2-7b-chat-hf": (-39.05, -25.20, -66.60, -43.62),
    "Meta-Llama-3-70B-Instruct": (30.06, 45.80, -18.43, 19.14),
    "Meta-Llama-3-8B-Instruct": (-7.28, 14.45, -46.34, -13.05),
}  # fmt: skip


def test_table_9_is_the_released_counts(data):
    found = wildbench_rewards(data)
    assert set(TABLE_9) == set(ARENA) == set(found.index)
    printed = pd.DataFrame.from_dict(TABLE_9, orient="index", columns=["haiku", "llama", "gpt4t", "reward"])
    np.testing.assert_allclose(found.loc[printed.index, printed.columns], printed, atol=0.0051)


def test_mt_bench_of_table_1(data):
    """Four of its seven numbers; the other three differ by .001 to .005, as pairs at the edge of a gap do."""
    board = pd.read_csv(data / "alpacaeval_notebook_benchmarks.csv.gz").dropna(subset="Model").set_index("Model")
    deltas = [0.3, 0.5, 1, 2, 5, 10, np.inf]
    gold = board["Arena Elo [Feb 2, 2024]"]
    found = kendall_tau_delta(board[["MT-bench (multi-turn)"]], gold, deltas, n_resamples=0)["tau"].to_numpy()
    printed = np.array([0.216, 0.349, 0.583, 0.746, 0.788, 0.788, 0.788])
    cut = np.trunc(1000 * found) / 1000
    assert (cut == printed).tolist() == [True, False, False, False, True, True, True]
    assert np.abs(found - printed).max() < 0.005
    assert found[1:4] == pytest.approx([0.3448, 0.5816, 0.7457], abs=1e-4)
