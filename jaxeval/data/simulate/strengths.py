"""Models of known strengths, and the languages of simulated battles."""

from __future__ import annotations

import numpy as np
import pandas as pd

from jaxeval.checks import checked_integer

#: Shares of the languages.
LANGUAGES = {"English": 0.55, "Chinese": 0.15, "Russian": 0.12, "German": 0.1, "Japanese": 0.08}


def simulate_strengths(n_models: int = 55, spread: float = 1.0, seed: int = 0) -> pd.Series:
    """Normal log-strengths (logits) of standard deviation ``spread``, mean zero, best first, by model name.

    Examples:
        >>> import jaxeval
        >>> jaxeval.simulate_strengths(3).round(2).to_dict()
        {'model-1': 0.43, 'model-2': -0.09, 'model-3': -0.34}
    """
    n_models = checked_integer("n_models", n_models, 2)
    theta = np.random.default_rng(seed).normal(0, spread, n_models)
    names = [f"model-{k:0{len(str(n_models))}d}" for k in range(1, n_models + 1)]
    index = pd.Index(names, name="model")
    return pd.Series(np.sort(theta - theta.mean())[::-1], index, name="logit")


def given_or_drawn(strengths: pd.Series | None, n_models: int, n: int, seed: int, name: str = "n_battles") -> pd.Series:
    """The ``strengths``, or those of `simulate_strengths`; an error if there are fewer than two, or no battle."""
    checked_integer(name, n, 1)
    checked_integer("seed", seed)
    if strengths is None:
        strengths = simulate_strengths(n_models, seed=seed)
    if len(strengths) < 2:
        raise ValueError(f"strengths must have at least two models, got {len(strengths)}")
    return strengths
