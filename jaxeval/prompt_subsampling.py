"""How well the closed-form error of a reference-anchored score predicts what subsamples of prompts show (Table 9)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from jaxeval.anchored import anchored_elo


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

    All sizes and repeats are one batch: a repeat is a random order of the prompts, a size its first n.

    Args:
        outcomes: (M,) or (M, G) outcomes of each prompt (averages over runs), of G models or judges.
        sizes: n, up to M.
        kappa: reliability factor of the adjusted error.
        n_repeats: random orders R.

    Returns:
        A row per size: ``empirical`` standard deviation over repeats (mean over G), ``theoretical`` Beta error,
        ``corrected`` for the finite pool, ``adjusted`` by kappa too, and the empirical one over each.

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
        raise ValueError(f"sizes must be whole numbers between 1 and the {m} prompts, got {sizes!r}")
    if n_repeats < 1:
        raise ValueError(f"n_repeats must be at least 1, got {n_repeats!r}")
    n = given.astype(int)
    rng = np.random.default_rng(seed)
    order = rng.permuted(np.broadcast_to(np.arange(m), (n_repeats, m)), axis=1)
    total = np.cumsum(values[order], axis=1)[:, n - 1]  # (R, S, G)
    found = [
        anchored_elo(total, 0.0, n[:, None] - total, prior, pool_size=pool, kappa=factor)
        for pool, factor in ((None, 1.0), (m, 1.0), (m, kappa))
    ]
    empirical = found[0].probability.std(0, ddof=1).mean(1) if n_repeats > 1 else np.full(len(n), np.nan)
    errors = [f.probability_se.mean((0, 2)) for f in found]
    table = pd.DataFrame(
        {"n": n, "empirical": empirical, "theoretical": errors[0], "corrected": errors[1], "adjusted": errors[2]}
    )
    for name in ("theoretical", "corrected", "adjusted"):
        with np.errstate(divide="ignore", invalid="ignore"):
            table[f"empirical_over_{name}"] = table["empirical"] / table[name]
    return table
