"""Anytime intervals hold at all looks at a Brownian motion, and are narrowest where they are tuned."""

import numpy as np
import pytest

from jaxeval.statistics.confidence_sequences import anytime_factor


@pytest.mark.parametrize(("level", "ratio"), [(0.95, 1.549), (0.99, 1.387)])
def test_they_are_narrowest_where_they_are_tuned(level, ratio):
    from scipy.stats import norm

    z = norm.ppf((1 + level) / 2)
    errors = 10 * np.geomspace(0.1, 10, 401)
    factors = anytime_factor(errors, 10.0, 1 - level) / z
    assert abs(errors[factors.argmin()] / 10 - 1) < 0.03
    assert factors.min() == pytest.approx(ratio, abs=0.01)


def test_they_are_wider_for_more_pairs_and_far_from_where_they_are_tuned():
    near, far = anytime_factor(np.array([10.0, 20.0]), 10.0, 0.05)
    assert far / near == pytest.approx(1.07, abs=0.01)
    assert anytime_factor(np.array([10.0]), 10.0, 0.05 / 100) > near
    assert np.isinf(anytime_factor(np.array([np.inf]), 10.0, 0.05)[0])


def test_they_hold_at_all_looks_where_fixed_ones_do_not():
    rng = np.random.default_rng(0)
    times = np.geomspace(0.1, 100, 200)
    steps = rng.normal(size=(4000, 200)) * np.sqrt(np.diff(times, prepend=0))
    score = np.abs(steps.cumsum(1) / np.sqrt(times))
    missed = (score > anytime_factor(1 / np.sqrt(times), 1.0, 0.05)).any(1).mean()
    assert 0.01 < missed < 0.05
    assert (score > 1.96).any(1).mean() > 0.3
