"""Printed numbers of arXiv:2605.06939, and the study of arXiv:2511.21140 on Arena votes with other judges."""

import pandas as pd
import pytest

import jaxeval
from jaxeval.lab.accuracy_studies import split_study

#: Tables 1, 3, 6 and 7 by subject and judge: q0 and q1 of Gemma 3 and of Qwen 2.5, J of both, naive share, estimate
#: by the model's own rates, and for Gemma by Qwen's (medians of resamples).
RATES = {
    ("math", "Mistral"): ((0.509, 0.887, 0.397, 0.776, 0.720), (0.569, 0.947, 0.516, 0.822, 0.756), 0.668),
    ("math", "Gemma"): ((0.764, 0.878, 0.642, 0.710, 0.739), (0.752, 0.919, 0.671, 0.749, 0.747), 0.690),
    ("biology", "Mistral"): ((0.348, 0.746, 0.094, 0.699, 0.575), (0.395, 0.988, 0.382, 0.826, 0.577), 0.244),
    ("biology", "Gemma"): ((0.435, 0.746, 0.181, 0.667, 0.570), (0.553, 0.975, 0.528, 0.782, 0.634), 0.417),
    ("law", "Mistral"): ((0.279, 0.862, 0.142, 0.723, 0.019), (0.342, 0.842, 0.184, 0.698, 0.216), 0.351),
    ("law", "Gemma"): ((0.624, 0.768, 0.393, 0.480, 0.263), (0.637, 0.850, 0.486, 0.519, 0.319), 0.238),
    ("engineering", "Mistral"): ((0.637, 0.705, 0.342, 0.476, 0.331), (0.796, 0.650, 0.446, 0.383, 0.402), 0.610),
    ("engineering", "Gemma"): ((0.891, 0.475, 0.366, 0.242, 0.364), (0.915, 0.512, 0.428, 0.230, 0.338), 0.367),
}
#: Tables 2 and 4: true difference; intervals of naive, RG, RG 2x, PPI++, PPI++ 2x.
INTERVALS = [
    (0.003, (-0.078, -0.016), (-0.156, -0.030), (-0.176, 0.081), (-0.084, 0.059), (-0.050, 0.034)),
    (0.003, (-0.070, -0.007), (-0.106, -0.010), (-0.086, 0.072), (-0.083, 0.060), (-0.044, 0.037)),
    (0.048, (-0.173, -0.079), (-0.493, -0.194), (-0.635, 0.528), (0.059, 0.237), (0.090, 0.195)),
    (0.048, (-0.165, -0.063), (-0.341, -0.117), (-0.641, 0.346), (0.042, 0.224), (0.082, 0.185)),
    (0.026, (-0.014, 0.064), (-0.071, 0.374), (-0.457, 0.245), (-0.077, 0.103), (-0.045, 0.068)),
    (0.026, (-0.083, 0.005), (-0.177, 0.011), (-0.245, 0.129), (-0.076, 0.096), (-0.045, 0.064)),
    (0.012, (0.056, 0.128), (0.122, 0.319), (-0.291, 0.122), (-0.049, 0.133), (-0.010, 0.102)),
    (0.012, (-0.019, 0.043), (-0.046, 0.108), (-0.118, 0.174), (-0.039, 0.148), (-0.001, 0.110)),
]


def test_j_of_tables_1_and_3_is_that_of_the_rates_of_table_6():
    for gemma, qwen, _ in RATES.values():
        for q0, q1, j, *_ in (gemma, qwen):
            assert jaxeval.youden_j(q0, q1, 200, 200).estimate == pytest.approx(j, abs=0.0011)


def test_estimates_of_table_7_follow_from_their_rates():
    """Medians of resamples are the estimate where J is not small: within a hundredth."""
    for gemma, qwen, shared in RATES.values():
        for q0, q1, j, p, own in (gemma, qwen):
            if j > 0.3:
                assert jaxeval.rogan_gladen(p, q0, q1, 800, 120, 300).estimate == pytest.approx(own, abs=0.011)
        if qwen[2] > 0.3:  # Gemma's answers by Qwen's rates
            assert jaxeval.rogan_gladen(gemma[3], *qwen[:2], 800, 120, 300).estimate == pytest.approx(shared, abs=0.011)


def test_intervals_of_tables_2_and_4_that_hold_the_difference():
    """Of 8 each. The text calls PPI++ well behaved: with all labels it misses in biology by both judges."""
    held = [sum(low <= own[0] <= high for own in INTERVALS for low, high in [own[k]]) for k in range(1, 6)]
    assert held == [2, 2, 8, 7, 6]


def test_win_rates_on_the_arena_by_judges_that_were_released(data):
    """Figure 6 and Table 1 of arXiv:2511.21140: six models, 100 splits, a tenth calibrates; here by GPT-4 of 2024."""
    votes = pd.read_parquet(data / "arena27k_human_3judges.parquet")
    votes = votes[votes["human"].isin(["model_a", "model_b"])]
    models = ["alpaca-13b", "claude-v1", "fastchat-t5-3b", "gpt-4", "llama-13b", "vicuna-13b"]
    rows = []
    for side in ("model_a", "model_b"):
        own = votes[votes[side].isin(models)]
        preferred = {name: (own[name] == side).astype(float) for name in ("human", "gpt4_0125")}
        rows.append(pd.DataFrame({"item": own["row"], "model": own[side], **preferred}))
    answers = jaxeval.JudgedAnswers.from_pandas(pd.concat(rows), judgment="gpt4_0125", label="human", model="model")
    found = split_study(answers, 0.1, 100).set_index(["estimator", "model"])
    naive, corrected = (found.loc[name].loc[models] for name in ("naive", "rogan_gladen"))
    assert naive["bias"].abs().min() > 0.06
    assert corrected["bias"].abs().max() < 0.02
    assert corrected["coverage"].between(0.90, 1).all()  # published: .95 to .99
    assert corrected["coverage"].mean() > 0.95
    assert naive["coverage"].max() < 0.05
    assert corrected["length"].between(0.2, 0.5).all()  # published: .18 to .27, by GPT-4.1-mini
    assert (corrected["undefined_share"] == 0).all()
