"""Misfit of pairs and triads, against loops in NumPy."""

from itertools import combinations

import jax
import numpy as np
import pytest

from jaxeval.kernels.batch import changed_boards
from jaxeval.kernels.solve import Status

pytestmark = pytest.mark.usefixtures("x64")

M = 5
PAIRS = list(combinations(range(M), 2))
TRIADS = list(combinations(range(M), 3))


def example(tied):
    rng = np.random.default_rng(0)
    n = rng.integers(4, 60, len(PAIRS))
    n[3] = 0
    ties = rng.binomial(n, 0.3) if tied else np.zeros_like(n)
    points = rng.binomial(n - ties, 0.6) + ties / 2
    return n, points, ties, rng.normal(size=M)


def design_of(n, odds):
    first, second = np.array(PAIRS).T
    position = np.zeros((M, M), int)
    position[first, second] = position[second, first] = np.arange(len(n))
    position[np.diag_indices(M)] = 3  # a pair without votes
    weight = np.where(n > 0, 0.2 * n, 0.0)
    laplacian = np.zeros((M, M))
    for (i, j), w in zip(PAIRS, weight, strict=True):
        laplacian[[i, j], [i, j]] += w
        laplacian[[i, j], [j, i]] -= w
    triads = np.array([[PAIRS.index(p) for p in ((i, j), (j, k), (i, k))] for i, j, k in TRIADS]).T
    return changed_boards.MisfitDesign(
        first=first.astype(np.int32),
        second=second.astype(np.int32),
        position=position.astype(np.int32),
        n=n.astype(float),
        tie_odds=np.float64(odds),
        weight=weight,
        gradient=np.linalg.pinv(laplacian),
        triads=triads.astype(np.int32),
    )


def share_of_ties(p, odds):
    """By bisection: win + tie / 2 = p, and tie ** 2 = odds * win * loss."""
    low, high = 0.0, 2 * min(p, 1 - p)
    for _ in range(200):
        tie = (low + high) / 2
        low, high = (tie, high) if tie**2 < odds * (p - tie / 2) * (1 - p - tie / 2) else (low, tie)
    return low


@pytest.mark.parametrize("tied", [False, True])
def test_measures_are_those_of_loops(tied):
    odds = 0.9 if tied else np.exp(-60)
    n, points, ties, theta = example(tied)
    design = design_of(n, odds)
    found = changed_boards.measures(design, points, ties, theta)
    for host, by_jax in zip(found, jax.jit(changed_boards.measures)(design, points, ties, theta), strict=True):
        np.testing.assert_allclose(host, by_jax, rtol=1e-12, atol=1e-12)
    log_odds, error = np.zeros(len(n)), np.full(len(n), np.inf)
    for k, (i, j) in enumerate(PAIRS):
        if n[k] == 0:
            assert found.pearson[k] == found.deviance[k] == 0
            continue
        p = 1 / (1 + np.exp(theta[j] - theta[i]))

        def variance(p, k=k):
            own = (ties[k] + changed_boards.TIE_PRIOR * share_of_ties(p, odds)) / (n[k] + changed_boards.TIE_PRIOR)
            return p * (1 - p) - min(own, 2 * min(p, 1 - p)) / 4

        v, lost = variance(p), n[k] - points[k]
        parts = [x * np.log(x / m) if x else 0 for x, m in ((points[k], n[k] * p), (lost, n[k] * (1 - p)))]
        np.testing.assert_allclose(found.variance[k], v, rtol=1e-9)
        np.testing.assert_allclose(found.pearson[k], (points[k] - n[k] * p) ** 2 / (n[k] * v), rtol=1e-9)
        np.testing.assert_allclose(found.deviance[k], 2 * sum(parts) * p * (1 - p) / v, rtol=1e-9, atol=1e-12)
        share = (points[k] + 0.5) / (n[k] + 1)
        log_odds[k] = np.log(share / (1 - share))
        error[k] = variance(share) / (n[k] * (share * (1 - share)) ** 2)
    for t, (i, j, k) in enumerate(TRIADS):
        a, b, c = (PAIRS.index(p) for p in ((i, j), (j, k), (i, k)))
        np.testing.assert_allclose(found.cycle[t], log_odds[a] + log_odds[b] - log_odds[c], rtol=1e-9)
        np.testing.assert_allclose(found.cycle_variance[t], error[a] + error[b] + error[c], rtol=1e-9)
    slopes = np.zeros((len(n), M))
    for k, (i, j) in enumerate(PAIRS):
        slopes[k, i], slopes[k, j] = 1, -1
    root = np.sqrt(np.asarray(design.weight))
    potential = np.linalg.lstsq(root[:, None] * slopes, root * log_odds, rcond=None)[0]
    np.testing.assert_allclose(found.cyclic, ((root * (log_odds - slopes @ potential)) ** 2).sum(), rtol=1e-9)
    np.testing.assert_allclose(found.total, ((root * log_odds) ** 2).sum(), rtol=1e-12)


def test_the_whole_board_has_the_sums_and_the_largest():
    n, points, ties, theta = example(True)
    measured = jax.jit(changed_boards.measures)(design_of(n, 0.5), points, ties, theta)
    found = changed_boards.misfit(measured, np.int8(Status.CONVERGED))
    np.testing.assert_allclose(found.pearson, np.sum(measured.pearson))
    np.testing.assert_allclose(found.largest_pair**2, np.max(measured.deviance))
    around = np.abs(measured.cycle) / np.sqrt(measured.cycle_variance)
    np.testing.assert_allclose(found.largest_triad, around.max())


def test_ties_of_numpy_and_their_limits():
    p = np.array([0.02, 0.3, 0.5, 0.9])
    for odds in (np.exp(-60), 0.3, 4.0, 50.0):
        expected = [share_of_ties(x, odds) for x in p]
        np.testing.assert_allclose(changed_boards.tie_share(p, odds), expected, rtol=1e-8, atol=1e-12)
    # A pair of ties alone keeps some variance; no share of ties is larger than the expected points allow.
    assert np.all(changed_boards.vote_variance(p, 5, 5, 1.0) > 0)
    np.testing.assert_allclose(changed_boards.shares_of_ties(np.array([0.02]), 100, 90, 1.0), 0.04)
