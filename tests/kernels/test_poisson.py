"""Poisson draws without tables, against SciPy's distribution."""

import jax
import numpy as np
import pytest
from scipy import stats
from twins import FIVE_SE

from jaxeval.kernels import squares

pytestmark = pytest.mark.usefixtures("x64")

#: The smallest are drawn by inversion; 9e15 is nearly 2**53.
RATES = np.array([0.0, 1e-9, 0.3, 9.99, 10.0, 27.0, 1e4, 3e9, 9e15])
N = 20_000

log_mass = jax.jit(squares.log_mass)


@pytest.fixture(scope="module")
def drawn():
    counter = np.arange(N, dtype=np.uint64)[:, None]
    key = np.uint64(0x9E3779B97F4A7C15) * np.arange(1, len(RATES) + 1, dtype=np.uint64) | np.uint64(1)
    return np.asarray(jax.jit(squares.draws)(RATES, counter, key))


def test_masses_are_those_of_scipy():
    k, rate = np.arange(0, 60.0)[:, None], np.array([0.3, 5.0, 23.4])
    np.testing.assert_allclose(log_mass(k, rate), stats.poisson.logpmf(k, rate), atol=2e-13)


def test_masses_of_large_rates_keep_their_digits():
    """Near the mode, the log of the ratio of masses is -(k - rate)**2 / 2 rate, and SciPy's digits cancel."""
    z = np.linspace(-6, 6, 25)
    for rate in (1e10, 2.0**52):
        k = np.round(rate + z * np.sqrt(rate))
        expected = -((k - rate) ** 2) / (2 * rate) + (k - rate) * ((k - rate) ** 2 / rate - 3) / (6 * rate)
        found = np.asarray(log_mass(k, rate)) - log_mass(np.full(25, rate), rate)
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("column", range(len(RATES)), ids=map(str, RATES))
def test_draws_are_poisson(drawn, column):
    rate, values = RATES[column], drawn[:, column]
    assert ((values >= 0) & (values == np.round(values))).all()
    edges = np.unique(stats.poisson(rate).ppf(np.linspace(0.01, 0.99, 30)))
    if rate > 1e6:  # of which SciPy's own digits are few
        edges = np.round(rate + np.sqrt(rate) * stats.norm.ppf(np.linspace(0.01, 0.99, 30)))
        cumulative = stats.norm.cdf((edges + 0.5 - rate) / np.sqrt(rate))
    else:
        cumulative = stats.poisson(rate).cdf(edges)
    expected = N * np.diff(cumulative, prepend=0, append=1)
    observed = np.bincount(np.searchsorted(edges, values), minlength=len(expected))
    if rate < 1e-3:
        assert not values.any()
    else:
        assert stats.chisquare(observed, expected).pvalue > FIVE_SE


def test_errors_of_means_and_variances(drawn):
    with np.errstate(invalid="ignore"):
        z = (drawn - RATES)[:, 2:] / np.sqrt(RATES[2:])
    rate = RATES[2:]
    assert (np.abs(z.mean(0)) < 5 / np.sqrt(N)).all()
    assert (np.abs(z.var(0) - 1) < 5 * np.sqrt((2 + 1 / rate) / N)).all()
