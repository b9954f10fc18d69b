"""Corrections for many tests are those of the textbook."""

import numpy as np
from numpy.testing import assert_allclose

from jaxeval.statistics.p_values import benjamini_hochberg, holm


def test_holm_and_benjamini_hochberg():
    p = np.array([0.01, np.nan, 0.04, 0.03, 0.005])
    assert_allclose(holm(p), [0.03, np.nan, 0.06, 0.06, 0.02])
    assert_allclose(benjamini_hochberg(p), [0.02, np.nan, 0.04, 0.04, 0.02])
    assert len(holm(np.array([]))) == len(benjamini_hochberg(np.array([]))) == 0


def test_adjusted_p_values_are_those_of_scipy():
    from scipy.stats import false_discovery_control

    p = np.random.default_rng(0).uniform(size=40) ** 3
    assert_allclose(benjamini_hochberg(p), false_discovery_control(p))
