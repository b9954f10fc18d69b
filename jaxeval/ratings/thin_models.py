"""Models with few battles: their penalised strengths and errors, from which their intervals come.

Percentiles of resamples fall short where battles are few: those of 95 % hold .93 at 20 battles a model. Wald's interval
about the maximum of Firth's penalised likelihood holds .95 to .98 there. So a board whose ratings have no penalty takes
that interval for its thin models alone. It is found with NumPy: to compile the program that fits every resample with
the penalty takes longer than all else on a small board.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxeval.arrays import Float

#: From this many battles on, percentiles of resamples hold what they promise (benchmarks/few_battles.py).
ENOUGH_BATTLES = 200
#: Tables of more models take seconds.
MOST_MODELS = 1_000

_MOST_STEPS, _TOLERANCE, _LONGEST_STEP = 100, 1e-8, 1.0


class Penalised(NamedTuple):
    """The maximum of the log-likelihood + 1/2 log det information, in logits."""

    theta: Float  # (M,) mean 0
    covariance: Float  # (M, M) pseudo-inverse of the information there


def penalised(n: Float, wins: Float, start: Float) -> Penalised | None:
    """Maximise Firth's penalised likelihood of (M, M) tables of battles and wins, from ``start`` (M,).

    The models must have met, directly or through others. `jaxeval.kernels.firth` says what is solved; here each step
    takes the adjusted score alone.

    Returns:
        None where the steps do not end.
    """
    m, theta = len(start), start - start.mean()
    for _ in range(_MOST_STEPS):
        p = 1 / (1 + np.exp(theta - theta[:, None]))
        v = n * p * (1 - p)
        try:
            inverse = np.linalg.inv(np.diag(v.sum(1)) - v + 1 / m) - 1 / m
        except np.linalg.LinAlgError:
            return None
        own = np.diag(inverse)
        leverage = v * (own[:, None] + own - 2 * inverse)
        step = inverse @ (wins.sum(1) + leverage.sum(1) / 2 - ((n + leverage) * p).sum(1))
        longest = np.abs(step).max()
        if not np.isfinite(longest):
            return None
        if longest < _TOLERANCE:
            return Penalised(theta, inverse)
        theta = theta + step * min(1.0, _LONGEST_STEP / longest)
    return None
