"""Means over random weights of items, the Bayesian bootstrap: what they could be, had others like these come up."""

from __future__ import annotations

import numpy as np

from jaxeval.arrays import Float

_N_DRAWS, _AT_ONCE = 2000, 2**22


def means_over_weights(count: Float, terms: Float) -> Float:
    """Return (B, C) means of the ``terms`` (U, C), each row with a random weight (Rubin 1981).

    Weights are of Dirichlet's distribution with the parameters ``count`` (U,): how many items a row stands for. Half an
    item of each kind that few items may lack makes intervals hold where they are rare (as Jeffreys' prior does for a
    share; DOI 10.1214/aos/1176345338).

    Examples:
        >>> right, wrong = [1.0], [0.0]
        >>> drawn = means_over_weights(np.array([8.5, 2.5]), np.array([right, wrong]))  # 8 of 10 are right
        >>> np.quantile(drawn, [0.025, 0.975]).round(1).tolist()
        [0.5, 1.0]
    """
    rng, step = np.random.default_rng(0), max(_AT_ONCE // len(count), 1)
    means = []
    for start in range(0, _N_DRAWS, step):
        weight = rng.standard_gamma(count, (min(step, _N_DRAWS - start), len(count)))
        means.append(weight @ terms / weight.sum(1, keepdims=True))
    return np.concatenate(means)
