from fractions import Fraction
from math import ceil

import numpy as np
import pytest

from jaxeval.softelo.calibrated_methods import conformal_quantile, floor_spread, half_widths


def pool(n, seed=0):
    """Residuals of n models and their standard errors."""
    rng = np.random.default_rng(seed)
    noise = rng.uniform(10, 30, n)
    return rng.normal(0, np.hypot(noise, 15)), noise


def naive(residual, noise, prediction_noise, level, weights, draws):
    """(D,) smallest h that holds the weight that the level asks for, by drawing the added noise."""
    z = np.random.default_rng(1).normal(size=(draws, len(residual)))
    far = np.abs(residual + np.sqrt(np.maximum(prediction_noise**2 - noise**2, 0)) * z)
    order = np.argsort(far, axis=1)
    reached = np.cumsum(weights[order], axis=1) >= float(level) * (weights.sum() + weights.mean()) - 1e-9
    return np.take_along_axis(far, order, 1)[np.arange(draws), reached.argmax(axis=1)]


@pytest.mark.parametrize("level", [0.3, 0.68, 0.9, "0.95"])
@pytest.mark.parametrize("v", [5.0, 20.0, 25.0, 80.0])
def test_half_width_is_the_median_of_the_drawn_ones(level, v):
    residual, noise = pool(20)
    (half,) = half_widths(residual, noise, v, level)
    drawn = naive(residual, noise, v, level, np.ones(20), 40_000)
    below, upto = (drawn < half - 1e-9).mean(), (drawn <= half + 1e-9).mean()
    assert below - 4 * 0.5 / 200 < 0.5 < upto + 4 * 0.5 / 200


def test_weighted_half_width_is_the_median_of_the_drawn_ones():
    residual, noise = pool(15, 3)
    weights = np.random.default_rng(4).integers(0, 5, 15) / 4
    (half,) = half_widths(residual, noise, 40.0, 0.8, weights)
    drawn = naive(residual, noise, 40.0, 0.8, weights, 40_000)
    assert abs((drawn <= half).mean() - 0.5) < 4 * 0.5 / 200


@pytest.mark.parametrize("n", [1, 9, 13, 40])
@pytest.mark.parametrize("level", [0.5, 0.68, 0.9])
def test_a_quieter_prediction_takes_the_conformal_quantile_exactly(n, level):
    residual, noise = pool(n, n)
    expected = conformal_quantile(np.abs(residual), level)
    np.testing.assert_allclose(half_widths(residual, noise, [0.0, noise.min()], level), expected, rtol=1e-14)
    weights = np.random.default_rng(n).integers(1, 6, n).astype(float)
    weighted = conformal_quantile(np.abs(residual), level, weights)
    weights *= 60 / weights.max()  # whole parts of the largest
    np.testing.assert_allclose(half_widths(residual, noise, 0.0, level, weights), weighted, rtol=1e-14)


def test_it_is_infinite_where_the_level_is_beyond_the_pool_and_missing_where_the_noise_is():
    residual, noise = pool(13)
    found = half_widths(residual, noise, [20.0, np.nan], 0.95)
    assert found[0] == np.inf
    assert np.isnan(found[1])
    found = half_widths(residual, noise, [20.0, np.nan], 0.9)
    assert np.isfinite(found[0])
    assert np.isnan(found[1])
    with pytest.raises(ValueError, match="weights must be finite, >= 0 and not all zero"):
        half_widths(residual, noise, 20.0, 0.9, np.full(13, np.nan))


def test_each_prediction_is_on_its_own_and_more_noise_never_narrows():
    residual, noise = pool(20)
    v = np.linspace(0, 100, 30)
    together = half_widths(residual, noise, v, 0.9)
    np.testing.assert_array_equal(together, [half_widths(residual, noise, x, 0.9)[0] for x in v])
    assert (np.diff(together) >= 0).all()


@pytest.mark.slow
def test_coverage_is_the_expected_one_at_other_noise_than_the_pools():
    """Known noises and a judge's error of 15: predictions with 0.2 to 4 times the pool's noise."""
    rng, trials, n, level = np.random.default_rng(5), 50, 20, 0.9
    expected = ceil(Fraction("0.9") * 21) / 21
    v = np.array([4.0, 10.0, 20.0, 40.0, 80.0])
    held = np.zeros((trials, len(v)))
    for k in range(trials):
        residual = rng.normal(0, np.hypot(20, 15), n)
        new = rng.normal(0, np.hypot(v, 15), (20, len(v)))
        held[k] = (np.abs(new) <= half_widths(residual, np.full(n, 20.0), v, level)).mean(axis=0)
    error = held.std(axis=0, ddof=1) / np.sqrt(trials)
    short = held.mean(axis=0) - expected
    assert (short > -4 * error).all()
    # Residuals cannot be made less noisy: the first two predictions get intervals that are too long.
    assert (short[2:] < 4 * error[2:] + 0.03).all()


def test_floor_is_the_spread_that_the_noise_leaves():
    rng = np.random.default_rng(6)
    noise = rng.uniform(5, 30, 4000)
    residual = rng.normal(0, np.hypot(noise, 12))
    tau = floor_spread(residual, noise)
    assert (residual**2 / (noise**2 + tau**2)).sum() == pytest.approx(4000, rel=1e-6)
    assert tau == pytest.approx(12, abs=1.5)
    assert floor_spread(0.1 * noise, noise) == 0
    assert floor_spread(np.zeros(5), np.ones(5)) == 0
    assert floor_spread([30.0], [10.0]) == pytest.approx(np.sqrt(800))
    assert floor_spread([30.0, 40.0], [0.0, 0.0]) == pytest.approx(np.sqrt(1250))
