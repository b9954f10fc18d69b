"""How two rankings of the same quantities agree, draw by draw."""

from __future__ import annotations

import numpy as np

from jaxeval.arrays import Float
from jaxeval.kernels.rank_agreement import PairSums, tau_b
from jaxeval.statistics.comparison import places

#: The least and the greatest value of each measure.
RANGES = {"kendall_tau": (-1.0, 1.0), "spearman": (-1.0, 1.0), "top_overlap": (0.0, 1.0)}


def ranking_agreement(one: Float, other: Float, top: int, precision: float = 0.0) -> dict[str, Float]:
    """Measures (B,) of agreement of two rankings by (B, M) values, the largest first, in each of B draws.

    "kendall_tau" is tau-b, "spearman" the correlation of ranks, and "top_overlap" the share of the first ``top`` of one
    that are among the first ``top`` of the other; ties share their places. Values that are NaN on a side are left out
    of their draw. The correlations are NaN where a side ties all values, the overlap with fewer values than ``top``.

    Args:
        precision: values that are closer than this are equal.
    """
    there = ~(np.isnan(one) | np.isnan(other))
    one, other = (np.where(there, x, np.nan) for x in (one, other))
    sums = np.zeros((4, len(one)))
    for i in range(one.shape[1] - 1):
        with np.errstate(invalid="ignore"):  # both infinite: no difference to speak of
            gaps = [x[:, i, None] - x[:, i + 1 :] for x in (one, other)]
        known = ~np.isnan(gaps[0] + gaps[1])
        first, second = (np.where(known & (np.abs(gap) > precision), np.sign(gap), 0.0) for gap in gaps)
        sums += [(first * second).sum(1), known.sum(1), (known & (first == 0)).sum(1), (known & (second == 0)).sum(1)]
    step = precision or None
    ranks = [places(x if step is None else np.round(x / step) * step) for x in (one, other)]
    means = [(best + worst) / 2 for best, worst in ranks]
    n = there.sum(1, keepdims=True)
    centred = [np.where(there, rank - (n + 1) / 2, 0.0) for rank in means]
    spread = np.sqrt((centred[0] ** 2).sum(1) * (centred[1] ** 2).sum(1))
    inside = [np.clip(top + 1 - best, 0, worst - best + 1) / (worst - best + 1) for best, worst in ranks]
    with np.errstate(invalid="ignore", divide="ignore"):  # a side that ties all values
        spearman = np.clip((centred[0] * centred[1]).sum(1) / spread, -1, 1)
    overlap = np.where(n[:, 0] >= top, np.nansum(np.minimum(*inside), 1) / top, np.nan)
    return {"kendall_tau": np.asarray(tau_b(PairSums(*sums))), "spearman": spearman, "top_overlap": overlap}
