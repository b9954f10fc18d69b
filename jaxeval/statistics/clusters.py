"""Observations that belong together: how much more, or less, their mean varies than that of independent ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.lazy_names import pd
from jaxeval.statistics import special
from jaxeval.statistics.quantiles import checked_level, normal_quantile, wilson
from jaxeval.wording import counted

#: With fewer effective clusters, errors and intervals over clusters come with a warning (DOI 10.1162/rest.90.3.414).
FEW_CLUSTERS = 30


def effective_clusters(size: ArrayLike) -> float:
    """Return how many clusters of equal size hold as much as clusters of these sizes: (sum n)^2 / sum n^2 (Kish 1965).

    Examples:
        >>> effective_clusters([40] * 60), round(effective_clusters([30] * 59 + [950]), 1)
        (60.0, 7.7)
    """
    n = np.asarray(size, float)
    return float(n.sum() ** 2 / (n**2).sum())


def cluster_factors(size: ArrayLike) -> Float:
    """Return factors (K,) of the sums of residuals of clusters, for the variance of a mean: 1 / sqrt(1 - n_k / n).

    A mean follows its largest clusters, whose residuals come out too small. With these factors (CR2, Bell and McCaffrey
    2002; Pustejovsky and Tipton 2018, DOI 10.1080/07350015.2016.1247004) the variance is right on average where
    observations are independent; with equal clusters their square is K / (K - 1). A single cluster has no factor: NaN.
    """
    n = np.asarray(size, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(1 / np.sqrt(np.where(n < n.sum(), 1 - n / n.sum(), np.nan)))


def degrees_of_freedom(size: ArrayLike) -> float:
    """Return Satterthwaite's degrees of freedom of the variance that `cluster_factors` gives (Bell and McCaffrey 2002).

    K - 1 for K equal clusters, fewer for unequal ones; NaN for one cluster.

    Examples:
        >>> round(degrees_of_freedom([40] * 60), 1), round(degrees_of_freedom([30] * 59 + [950]), 1)
        (59.0, 7.6)
    """
    n = np.asarray(size, float)
    if len(n) < 2:
        return float("nan")
    corrected = (cluster_factors(n) * n) ** 2
    return float(n.sum() ** 2 / ((n**2).sum() + (corrected.sum() ** 2 - (corrected**2).sum()) / n.sum() ** 2))


def widening(freedom: float | None, level: float) -> float:
    """Return how much longer Student's interval with these degrees of freedom is than the normal one; 1 for None.

    Infinite where there is one cluster, whose degrees of freedom are NaN.
    """
    if freedom is None:
        return 1.0
    if np.isnan(freedom):
        return float("inf")
    return float(special.stdtrit(freedom, (1 + checked_level(level)) / 2)) / normal_quantile(level)


def widening_of_draws(freedom: float | None, level: float) -> float:
    """Return `widening` of intervals of resamples, which vary by K - 1 over K too little where K clusters are drawn."""
    return 1.0 if freedom is None else widening(freedom, level) * float(np.sqrt(1 + 1 / freedom))


def numbered(cluster: Any) -> NDArray[np.intp]:
    """Give (N,) cluster numbers in order of first appearance: clusters of one observation are numbered as the rows are.

    A missing cluster is a ValueError.
    """
    values = np.asarray(cluster)
    if values.dtype.kind in "biu":  # none is missing, and NumPy does without pandas
        _, first, number = np.unique(values, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[number]
    codes, _ = pd.factorize(values)
    if (codes < 0).any():
        n = int((codes < 0).sum())
        raise ValueError(
            f"{n:,} of {counted(len(codes), 'battle')} {'has' if n == 1 else 'have'} no cluster (first in row "
            f"{int((codes < 0).argmax())}; rows count from 0): fill them or drop those rows first"
        )
    return codes


def design_effect(influence: Float, cluster: NDArray[np.intp] | None) -> float:
    """Give variance of the sum of (N,) influences drawn by clusters, divided by that of independent draws (Kish 1965).

    Sums of clusters take the factors of `cluster_factors`, so that the effect of clusters without any is 1 on average.
    Influences have mean zero. The effect is 1 without clusters, or with one observation in each. Where all influences
    are 0, it is the mean size of a cluster, as if all of its members were one; with a single cluster it is NaN.
    """
    if cluster is None or len(influence) == 0:
        return 1.0
    number = numbered(cluster)
    of_cluster, n = np.bincount(number, influence), len(influence)
    if len(of_cluster) == 1 < n:
        return float("nan")
    alone = np.sum(influence**2)
    if not alone > 0:
        return n / len(of_cluster)
    if len(of_cluster) == n:  # and not only up to rounding
        return 1.0
    return float(np.sum((cluster_factors(np.bincount(number)) * of_cluster) ** 2) / alone * (1 - 1 / n))


def changed_effect(influence: Float, share: Float, cluster: NDArray[np.intp]) -> float:
    """Give the design effect of a mean of (N,) items that few of change, as `design_effect` shows it too seldom.

    Items of a cluster are correlated by r, and the effect is 1 + r (b - 1), with b items in a cluster by their
    ``share`` in the mean (Kish). r is the mean, over changed items, of what the others of the item's cluster did: which
    sizes of clusters changed does not move it, as it moves the squares of sums, which are small by chance just where
    few items are lost. To it are added one cluster that changes as a whole, which may not have been seen, and half of
    its standard error. NaN for one cluster.
    """
    number = numbered(cluster)
    whole, alone = np.bincount(number, share) ** 2, np.bincount(number, share**2)
    seen = np.bincount(number, influence**2)
    sums = cluster_factors(np.bincount(number)) * np.bincount(number, influence)
    size, several = whole.sum() / alone.sum(), whole > alone * (1 + 1e-9)
    together = (sums**2 - seen)[several] * (alone / np.where(several, whole - alone, 1.0))[several]
    unseen = size * alone.sum() ** 2
    total = seen[several].sum() + unseen
    r = (together.sum() + unseen) / total
    error = np.sqrt(np.sum((together - r * seen[several]) ** 2)) / total
    return float(1 + np.clip(r + error / 2, 0.0, 1.0) * (size - 1))


def freedom_of(cluster: NDArray[np.intp] | None) -> float | None:
    """Give degrees of freedom of the variance of a mean over (N,) observations; None where each is drawn by itself."""
    size = np.zeros(0) if cluster is None else np.bincount(numbered(cluster))
    return None if cluster is None or len(size) == len(cluster) else degrees_of_freedom(size)


def wilson_share(hits: Bool, clusters: NDArray[np.intp] | None = None, level: float = 0.95) -> dict[str, float]:
    """Return the share with its Wilson interval (DOI 10.1080/01621459.1927.10502953).

    With ``clusters`` (N,), the interval takes as many battles as would give the share the variance that it has over the
    clusters, if they were independent; fewer for few clusters, by Student's t. Where hits and misses cancel in every
    cluster, one more is counted whose members are all alike.
    """
    n = len(hits)
    if n == 0:
        return {"share": np.nan, "lower": np.nan, "upper": np.nan, "n_battles": 0}
    p = np.mean(hits)
    effect = design_effect(hits - p, clusters)
    if clusters is not None and effect <= n * np.finfo(float).eps:
        effect = n / len(np.unique(clusters)) ** 2
    lower, upper = wilson(p, n / (effect * widening(freedom_of(clusters), level) ** 2), level)
    return {
        "share": float(p),
        "lower": float(np.maximum(lower, 0)),
        "upper": float(np.minimum(upper, 1)),
        "n_battles": n,
    }


def few_clusters_text(n_clusters: int | None, n_effective: float | None = None) -> list[str]:
    """Return a sentence on clusters that are too few to rely on; none where there are no clusters.

    With ``n_effective``, clusters of unequal size count as many as there would be of equal size.
    """
    n = n_clusters if n_effective is None else n_effective
    if n_clusters is None or n is None or round(n) >= FEW_CLUSTERS:
        return []
    if n_clusters == 1:
        return [
            "all lies in one cluster, which shows no error and gives no interval: name another column as cluster= (on "
            "the command line --cluster), or none"
        ]
    unequal = n < 0.9 * n_clusters
    worth = f", of such unequal size that they are worth {max(round(n), 1):,} equal ones" if unequal else ""
    return [
        f"{'' if unequal else 'only '}{counted(n_clusters, 'cluster')}{worth}: standard errors and intervals from "
        f"fewer than {FEW_CLUSTERS} are unreliable, as a rule too narrow"
    ]
