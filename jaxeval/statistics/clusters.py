"""Observations that belong together: how much more, or less, their mean varies than that of independent ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.statistics.quantiles import wilson
from jaxeval.wording import counted

#: With fewer clusters, errors and intervals over clusters come with a warning (DOI 10.1162/rest.90.3.414).
FEW_CLUSTERS = 30


def numbered(cluster: Any) -> NDArray[np.intp]:
    """(N,) cluster numbers in order of first appearance: clusters of one observation are numbered as the rows are.

    Raises:
        ValueError: a cluster is missing.
    """
    codes, _ = pd.factorize(np.asarray(cluster))
    if (codes < 0).any():
        n = int((codes < 0).sum())
        raise ValueError(
            f"{n:,} of {counted(len(codes), 'battle')} {'has' if n == 1 else 'have'} no cluster (first in row "
            f"{int((codes < 0).argmax())}; rows count from 0): fill them or drop those rows first"
        )
    return codes


def design_effect(influence: Float, cluster: NDArray[np.intp] | None) -> float:
    """Variance of the sum of (N,) influences drawn by clusters, divided by that of independent draws (Kish 1965).

    Influences have mean zero. The effect is 1 without clusters, or with one observation in each. Where all influences
    are 0, it is the mean size of a cluster, as if all of its members were one; with a single cluster it is NaN.
    """
    if cluster is None or len(influence) == 0:
        return 1.0
    of_cluster = np.bincount(numbered(cluster), influence)
    if len(of_cluster) == 1 < len(influence):
        return float("nan")
    alone = np.sum(influence**2)
    return float(np.sum(of_cluster**2) / alone) if alone > 0 else len(influence) / len(of_cluster)


def wilson_share(hits: Bool, clusters: NDArray[np.intp] | None = None, level: float = 0.95) -> dict[str, float]:
    """Share with its Wilson interval (DOI 10.1080/01621459.1927.10502953).

    With ``clusters`` (N,), the interval takes as many battles as would give the share the variance that it has over the
    clusters, if they were independent.
    """
    n = len(hits)
    if n == 0:
        return {"share": np.nan, "lower": np.nan, "upper": np.nan, "n_battles": 0}
    p = np.mean(hits)
    effect = design_effect(hits - p, clusters)
    lower, upper = wilson(p, n / np.maximum(effect, np.finfo(float).eps), level)
    return {
        "share": float(p),
        "lower": float(np.maximum(lower, 0)),
        "upper": float(np.minimum(upper, 1)),
        "n_battles": n,
    }


def few_clusters_text(n_clusters: int | None) -> list[str]:
    """A sentence on clusters that are too few to rely on; none where there are no clusters."""
    if n_clusters is None or n_clusters >= FEW_CLUSTERS:
        return []
    return [
        f"only {counted(n_clusters, 'cluster')}: standard errors and intervals from fewer than {FEW_CLUSTERS} are "
        "unreliable, as a rule too narrow"
    ]
