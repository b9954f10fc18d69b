"""Standard errors of Pearson's r and of Cohen's kappa are those of the delta method, whose derivatives are numeric."""

import numpy as np
import pytest
from scipy.stats import norm, t

from jaxeval.softelo import judge_agreement
from jaxeval.statistics.clusters import degrees_of_freedom


def delta_method(statistic, n, cluster):
    """Standard error of a ``statistic`` of the weights of n battles; whole clusters of them vary together.

    Clusters have the factors of CR2, by their shares of the battles.
    """
    step = 1e-5
    slopes = np.empty(n)
    for k in range(n):
        up, down = np.ones((2, n))
        up[k], down[k] = 1 + step, 1 - step
        slopes[k] = (statistic(up) - statistic(down)) / (2 * step)
    share = np.bincount(cluster) / n
    factor = (1 - 1 / n) / (1 - share) if len(share) < n else 1.0  # 1 on average, of battles in no cluster
    return np.sqrt((factor * np.bincount(cluster, slopes) ** 2).sum())


@pytest.fixture(scope="module")
def clusters():
    return np.random.default_rng(1).integers(0, 25, 80)


@pytest.mark.parametrize("clustered", [False, True])
def test_the_interval_of_r(clusters, clustered):
    rng = np.random.default_rng(0)
    x = rng.exponential(size=80)
    y = x + rng.exponential(size=80)

    def fisher_z(weight):
        (vx, c), (_, vy) = np.cov(x, y, aweights=weight, ddof=0)
        return np.arctanh(c / np.sqrt(vx * vy))

    r, lower, upper = judge_agreement.correlation_interval(x, y, 0.9, clusters if clustered else None)
    quantile = t.ppf(0.95, degrees_of_freedom(np.bincount(clusters))) if clustered else norm.ppf(0.95)
    half = quantile * delta_method(fisher_z, 80, clusters if clustered else np.arange(80))
    assert np.arctanh([r, lower, upper]) == pytest.approx(fisher_z(np.ones(80)) + half * np.array([0, -1, 1]), rel=1e-6)


@pytest.mark.parametrize("clustered", [False, True])
def test_the_error_of_kappa(clusters, clustered):
    """Of a judge that says "tie" more often than people do."""
    rng = np.random.default_rng(2)
    human = rng.choice([0, 0.5, 1], 80, p=[0.5, 0.1, 0.4])
    judge = np.where(rng.random(80) < 0.5, human, rng.choice([0, 0.5, 1], 80, p=[0.1, 0.7, 0.2]))

    def kappa(weight):
        share = weight / weight.sum()
        observed = share @ (human == judge)
        expected = sum((share @ (human == label)) * (share @ (judge == label)) for label in (0, 0.5, 1))
        return (observed - expected) / (1 - expected)

    found = judge_agreement._kappa(human, judge, clusters if clustered else None)
    error = delta_method(kappa, 80, clusters if clustered else np.arange(80))
    assert found[2:4] == pytest.approx((kappa(np.ones(80)), error), rel=1e-6)
