"""Distributions of a few values against SciPy's, which takes over from more."""

import numpy as np
import pytest
import scipy

from jaxeval.statistics import special

RNG = np.random.default_rng(0)
N = 4 * special.FEW
P = np.concatenate([RNG.random(N), 10.0 ** -RNG.uniform(0, 300, N)])
TRIALS = np.round(10 ** RNG.uniform(0, 5, N))
COUNT, SHARE = np.floor(RNG.random(N) * TRIALS), RNG.random(N)
DOF, T = 10 ** RNG.uniform(-0.3, 10, N), RNG.normal(0, 3, N)
A, B = 10 ** RNG.uniform(-1, 5, (2, N))
BETA = scipy.special.betainc
CASES = [
    (special.ndtr, scipy.special.ndtr, (RNG.normal(0, 6, N),)),
    (special.ndtri, scipy.special.ndtri, (P,)),
    (special.bdtr, lambda k, n, p: BETA(n - k, k + 1, 1 - p), (np.minimum(COUNT, TRIALS - 1), TRIALS, SHARE)),
    (special.bdtrc, lambda k, n, p: BETA(k + 1, n - k, p), (np.minimum(COUNT, TRIALS - 1), TRIALS, SHARE)),
    (special.betainc, BETA, (A, B, SHARE)),
    (special.stdtr, scipy.special.stdtr, (np.minimum(DOF, 1e4), T)),
    (special.stdtr, scipy.special.stdtr, (np.maximum(DOF, 1e9), T)),
    (special.stdtrit, scipy.special.stdtrit, (np.minimum(DOF, 1e9), SHARE)),
    (special.betaincinv, scipy.special.betaincinv, (A, B, SHARE)),
]


@pytest.mark.parametrize(("own", "other", "values"), CASES)
def test_few_values_are_those_of_many(own, other, values):
    """On both sides of the number from which on SciPy computes them."""
    every = other(*values)
    for n in (1, special.FEW, special.FEW + 1):
        np.testing.assert_allclose(own(*(x[:n] for x in values)), every[:n], rtol=1e-12, atol=1e-300)
    each = [own(*row) for row in zip(*(x.tolist() for x in values), strict=True)]
    np.testing.assert_allclose(each, every, rtol=1e-12, atol=1e-300)


def test_ends_and_missing_values():
    assert special.ndtri(np.array([0.0, 0.5, 1.0])).tolist() == [-np.inf, 0.0, np.inf]
    assert special.bdtr([0, 3, 5], [0, 3, 4], 0.5).tolist() == [1, 1, 1]
    assert special.bdtrc([-1, 4], 4, 0.5).tolist() == [1, 0]
    assert special.stdtrit(5.0, [0.0, 0.5, 1.0]).tolist() == [-np.inf, 0.0, np.inf]
    assert special.stdtrit([1e-300, 0.001], 0.975).tolist() == [np.inf, np.inf]  # and it ends
    assert np.isnan(special.stdtrit([0.0, -1.0], 0.975)).all()
    assert special.stdtr(np.inf, [-np.inf, np.inf]).tolist() == [0, 1]
    assert special.betaincinv([1e-300, 3.0], [3.0, 1e-300], 0.5).tolist() == [0, 1]
    assert special.betaincinv(2.0, 3.0, [0.0, 1.0]).tolist() == [0, 1]
    tiny = [1e-15, 1e-17, 1e-60]  # the mean, 1 less the shape over 5, is rounded to 1
    np.testing.assert_allclose(special.betaincinv(5.0, tiny, 0.975), 1.0, rtol=1e-15)
    np.testing.assert_allclose(special.betaincinv(tiny, 5.0, 0.025), 0.0, atol=1e-70)
    assert np.isnan(special.stdtr([np.nan, 3], [1, np.nan])).all()
