"""Beliefs about categories: against dense normal posteriors in other parameters, and an integral."""

import jax
import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.special import expit
from twins import borrowed_belief

from jaxeval.kernels.batch.small_categories import Split, category_beliefs
from jaxeval.kernels.solve import Status, Terms

pytestmark = pytest.mark.usefixtures("x64")

M = 6
SPREADS = np.array([0.0, 0.1, 0.5, 2.0])


def wins(rng, theta, n):
    """Half points of pairs that meet ``n`` times on average."""
    m = len(theta)
    table = np.zeros((m, m))
    for i in range(m):
        for j in range(i):
            times = rng.poisson(n)
            won = rng.binomial(2 * times, expit(theta[i] - theta[j])) / 2
            table[i, j], table[j, i] = won, times - won
    return table


@pytest.fixture(scope="module")
def tables():
    """A category of few battles and one of many, of six models and two of padding; and the others."""
    rng = np.random.default_rng(0)
    theta = rng.normal(0, 0.7, M)
    others = wins(rng, theta, 30) / 0.8
    own = [wins(rng, theta + rng.normal(0, 0.4, M), n) / 0.7 for n in (0.3, 20)]
    return np.stack(own), np.stack([others, others])


def beliefs(own, others, spreads=SPREADS, active=None):
    """Of two categories at four spreads, whatever is asked: one program is compiled."""
    spreads = np.resize(spreads, 4)

    def padded(x):
        return np.resize(np.pad(x, [(0, 0), (0, 8 - x.shape[1]), (0, 8 - x.shape[1])]), (2, 8, 8))

    active = np.arange(8) < own.shape[1] if active is None else active
    split = Split(padded(own), padded(others), np.tile(active, (2, 1)))
    return jax.device_get(category_beliefs(split, spreads, np.zeros(8), Terms.of(0.0, 1e-10, 100)))


def test_beliefs_are_those_of_the_dense_posterior(tables):
    found = beliefs(*tables)
    assert (np.asarray(found.status) == Status.CONVERGED).all()
    for s, (own, others) in enumerate(zip(*tables, strict=True)):
        naive = [borrowed_belief(own, others, spread) for spread in SPREADS[1:]]
        for k, (mean, covariance, _, borrowed) in enumerate(naive, 1):
            np.testing.assert_allclose(found.mean[s, k, :M], mean, atol=1e-9)
            np.testing.assert_allclose(found.covariance[s, k, :M, :M], covariance, atol=1e-9)
            np.testing.assert_allclose(found.borrowed[s, k, :M], borrowed, atol=1e-9)
        evidence = np.array([x[2] for x in naive])
        np.testing.assert_allclose(np.diff(found.evidence[s, 1:]), np.diff(evidence), atol=1e-8)
    assert not np.asarray(found.mean)[:, :, M:].any()
    assert not np.asarray(found.covariance)[:, :, M:].any()


def test_a_spread_of_zero_is_the_limit_and_one_beyond_reason_the_category_alone(tables):
    own, others = tables
    found = beliefs(own[1:], others[1:], np.array([0.0, 1e-6, 1e4]))
    np.testing.assert_allclose(found.mean[0, 0], found.mean[0, 1], atol=1e-9)
    np.testing.assert_allclose(found.evidence[0, 0], found.evidence[0, 1], atol=1e-6)
    pooled = beliefs((own + others)[1:], np.zeros((1, M, M)), np.array([0.0]))
    np.testing.assert_allclose(found.mean[0, 0], pooled.mean[0, 0], atol=1e-9)
    np.testing.assert_allclose(pooled.borrowed[0, 0, :M], 0, atol=1e-9)
    alone = beliefs(own[1:], np.zeros((1, M, M)), np.array([0.0]))
    np.testing.assert_allclose(found.mean[0, 2], alone.mean[0, 0], atol=1e-5)
    np.testing.assert_allclose(found.covariance[0, 2], alone.covariance[0, 0], atol=1e-5)
    assert np.all(np.asarray(found.borrowed[0, 2, :M]) < 1e-5)


def test_the_evidence_is_nearly_the_integral():
    """Of two models: over both differences of log-strengths; Laplace's error falls with the battles."""
    own = np.array([[[0.0, 14.0], [8.0, 0.0]]])
    others = np.array([[[0.0, 30.0], [45.0, 0.0]]])
    spreads = np.array([0.2, 0.8])
    found = np.asarray(beliefs(own, others, spreads).evidence[0])

    def integral(spread):
        def density(d, x):  # the difference of two independent ones has twice the variance
            points = [(30, x), (45, -x), (14, x + d), (8, -x - d)]
            value = sum(n * np.log(expit(z)) for n, z in points)
            return np.exp(value + 65 - d**2 / (4 * spread**2)) / np.sqrt(4 * np.pi * spread**2)

        return np.log(dblquad(density, -2, 1.5, -6 * spread, 6 * spread, epsabs=1e-10)[0])

    np.testing.assert_allclose(found[1] - found[0], integral(0.8) - integral(0.2), atol=0.01)
