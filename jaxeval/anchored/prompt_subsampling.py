"""How well the closed-form error of a reference-anchored score predicts what subsamples of prompts show (Table 9)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from jaxeval.anchored.elo import checked_prior
from jaxeval.checks import checked_integer
from jaxeval.wording import counted

_HELD = 2**22  # outcomes held at a time


def subsample_study(
    outcomes: ArrayLike,
    sizes: ArrayLike = (16, 24, 32, 40, 64, 80, 120),
    *,
    kappa: float = 1.0,
    prior: float = 0.5,
    n_repeats: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Empirical and theoretical standard errors of the win probability of n prompts out of the M in ``outcomes``.

    All sizes are one batch, with as many repeats as fit the memory: a repeat is a random order of the prompts, a size
    its first n.

    Args:
        outcomes: (M,) or (M, G) outcomes of each prompt (averages over runs), of G models or judges.
        sizes: n, up to M.
        kappa: reliability factor of the adjusted error.
        n_repeats: random orders R.

    Returns:
        A row per size: ``empirical`` standard deviation over repeats (mean over G), ``theoretical`` Beta error,
        ``corrected`` for the finite pool, ``adjusted`` by kappa too, and the empirical one over each; NaN where that is
        0, as of the whole pool.

    Raises:
        ValueError: outcomes lie outside of [0, 1] or are missing, a size is no whole number between 1 and M, or there
            is no repeat.
    """
    values = np.asarray(outcomes, float)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"outcomes must be (M,) or (M, G) numbers in [0, 1], none missing; got shape {values.shape}")
    m, given = len(values), np.asarray(sizes, float)
    if given.ndim != 1 or not ((given >= 1) & (given <= m) & (given == np.rint(given))).all():
        raise ValueError(f"sizes must be whole numbers between 1 and the {counted(m, 'prompt')}, got {sizes!r}")
    prior, given_kappa = checked_prior(prior), np.asarray(kappa, float)
    if given_kappa.ndim or not 0 < given_kappa <= 1:
        raise ValueError(f"kappa must lie in (0, 1], got {kappa!r}")
    checked_integer("n_repeats", n_repeats, 1)
    n = given.astype(int)
    rng = np.random.default_rng(seed)
    total = np.empty((n_repeats, len(n), values.shape[1]))
    size = max(1, _HELD // max(m, n.max(initial=1) * values.shape[1]))
    for start in range(0, n_repeats, size):
        part = total[start : start + size]
        order = rng.permuted(np.broadcast_to(np.arange(m), (len(part), m)), axis=1)[:, : n.max(initial=0)]
        part[:] = np.cumsum(values[order], axis=1)[:, n - 1]
    a, b = total + prior, n[:, None] - total + prior
    left = (m - n) / max(m - 1, 1)
    beta = np.sqrt(a * b / ((a + b) ** 2 * (a + b + 1)))
    theoretical = beta.mean((0, 2))
    corrected = theoretical * np.sqrt(left)
    empirical = (a / (a + b)).std(0, ddof=1).mean(1) if n_repeats > 1 else np.full(len(n), np.nan)
    empirical = np.where(n == m, 0 * empirical, empirical)  # the same prompts in other orders
    table = pd.DataFrame(
        {
            "n": n,
            "empirical": empirical,
            "theoretical": theoretical,
            "corrected": corrected,
            "adjusted": kappa * corrected,
        }
    )
    for name in ("theoretical", "corrected", "adjusted"):
        error = table[name].to_numpy()
        table[f"empirical_over_{name}"] = np.divide(empirical, error, out=np.full(len(n), np.nan), where=error > 0)
    return table
