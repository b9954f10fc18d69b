"""Simulated judged battles in two orders, raw: what the tests of the diagnostics read."""

import numpy as np
import pandas as pd
from scipy.special import expit

import jaxeval


def two_orders(n=600, m=6, seed=0, noise=2.0, slope=3.0):
    rng = np.random.default_rng(seed)
    theta = np.linspace(-0.8, 0.8, m)
    a = rng.integers(m, size=n)
    b = (a + rng.integers(1, m, size=n)) % m
    gap = theta[a] - theta[b]
    orders = np.round((slope * gap + rng.normal(0.4, noise, n))[:, None] + rng.normal(0, 0.7, (n, 2)) + [0.5, -0.5], 1)
    human = np.where(rng.random(n) < 0.2, 0.5, rng.random(n) < expit(gap)).astype(float)
    human[rng.random(n) < 0.05] = np.nan
    names = np.array([f"m{k}" for k in range(m)])
    return pd.DataFrame(
        {
            "model_a": names[a],
            "model_b": names[b],
            "a1": 5 + orders[:, 0],
            "b1": 5.0,
            "a2": 5 + orders[:, 1],
            "b2": 5.0,
            "human": human,
            "verdict": np.where(rng.random(n) < 0.1, 1 - (orders.mean(1) > 0), orders.mean(1) > 0).astype(float),
            "long_a": rng.integers(10, 500, n),
            "long_b": rng.integers(10, 500, n),
            "language": rng.choice(["en", "de"], n, p=[0.7, 0.3]),
        }
    )


def read(frame, **options):
    return jaxeval.JudgedBattles.from_pandas(
        frame, scores_a="a1", scores_b="b1", scores_a_swapped="a2", scores_b_swapped="b2", human="human",
        label_coding="a_wins_1", **options,
    )  # fmt: skip


def residual_table(n=40, seed=0, **columns):
    rng = np.random.default_rng(seed)
    human = rng.normal(1500, 80, n)
    residual = 0.3 * (human - 1500) + rng.normal(0, 10, n)
    return pd.DataFrame(
        {"model": [f"m{k}" for k in range(n)], "method": "hard", "human_elo": human, "judge_elo": human + residual,
         "residual": residual, "standard_error": 10.0, **columns}
    )  # fmt: skip
