"""Battles on prompts that favour some models, each prompt used again and again: what belongs together."""

import numpy as np
import pandas as pd


def prompted(rng, taste, n_prompts=60, times=40, m=8):
    """Models and prompt of each battle, and the difference of strengths on that prompt, logits.

    ``taste`` is the standard deviation of a model's strength over prompts.
    """
    prompt = np.repeat(np.arange(n_prompts), times)
    a = rng.integers(m, size=len(prompt))
    b = (a + rng.integers(1, m, size=len(prompt))) % m
    strength = np.linspace(-0.8, 0.8, m) + rng.normal(0, taste, (n_prompts, m))
    names = np.array([f"m{k}" for k in range(m)])
    frame = pd.DataFrame({"model_a": names[a], "model_b": names[b], "prompt": prompt})
    return frame, strength[prompt, a] - strength[prompt, b]
