import numpy as np
import pytest
import twins

from jaxeval.statistics.quantiles import bounds_with_failures, interval_bounds

LEVELS = [0.5, 0.8, 0.95, 0.99]


def draws_with(share_missing, share_infinite, shape, seed=0):
    rng = np.random.default_rng(seed)
    draws = rng.normal(size=shape)
    draws[rng.random(shape) < share_infinite] = np.inf
    draws[rng.random(shape) < share_infinite] = -np.inf
    draws[rng.random(shape) < share_missing] = np.nan
    return draws


def assert_is_twin(draws, level):
    lower, upper = interval_bounds(draws, level)
    assert lower.shape == upper.shape == draws.shape[1:]
    tail = (1 - level) / 2
    columns = draws.reshape(len(draws), -1).T
    for bound, q in ((lower, tail), (upper, 1 - tail)):
        expected = [twins.quantile(column, q) for column in columns]
        np.testing.assert_allclose(bound.ravel(), expected, rtol=1e-12)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("shape", [(1, 3), (2, 3), (57, 4), (200, 3, 3), (64,)])
def test_finite_draws_have_the_quantiles_of_numpy(shape, level):
    draws = draws_with(0, 0, shape)
    bounds = interval_bounds(draws, level)
    np.testing.assert_allclose(bounds, np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0), rtol=1e-12)
    assert_is_twin(draws, level)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("share_infinite", [0, 0.02, 0.3])
@pytest.mark.parametrize("share_missing", [0.01, 0.5])
def test_missing_draws_are_left_out(share_missing, share_infinite, level):
    draws = draws_with(share_missing, share_infinite, (101, 12))
    draws[:, 0] = np.nan
    draws[:, 1] = np.nan
    draws[7, 1] = 3.0
    assert_is_twin(draws, level)
    lower, upper = interval_bounds(draws, level)
    assert np.isnan([lower[0], upper[0]]).all()
    assert lower[1] == upper[1] == 3.0


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("share_infinite", [0.004, 0.03, 0.3])
def test_infinite_draws_are_the_largest_or_smallest(share_infinite, level):
    assert_is_twin(draws_with(0, share_infinite, (400, 12)), level)


@pytest.mark.parametrize("missing", [False, True])
def test_a_bound_between_a_finite_draw_and_an_infinite_one_is_infinite(missing):
    """One winless resample in a hundred: the lower bound falls between it and the next."""
    draws = np.arange(100.0)
    draws[0] = -np.inf
    draws = np.stack([draws, -draws], 1)
    if missing:
        draws = np.concatenate([draws, np.full((3, 2), np.nan)])
    lower, upper = interval_bounds(draws, 0.99)
    assert lower.tolist() == [-np.inf, pytest.approx(-98.505)]
    assert upper.tolist() == [pytest.approx(98.505), np.inf]


@pytest.mark.parametrize("level", [0, 1, -0.5, 1.5, 95, np.nan])
def test_levels_out_of_range_are_refused(level):
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        interval_bounds(np.zeros((5, 2)), level)


@pytest.mark.parametrize("failures", [0, 3, 40, 100])
def test_failures_enter_both_bounds(failures):
    """As if each draw that failed were the least for the lower bound and the greatest for the upper one."""
    draws = np.random.default_rng(3).normal(size=(100, 4))
    draws[:failures, 1:] = np.nan
    median, lower, upper, share = bounds_with_failures(draws, 0.9, -9.0, 9.0)
    filled = [np.where(np.isnan(draws), end, draws) for end in (-9.0, 9.0)]
    expected = np.quantile(filled[0], 0.05, axis=0), np.quantile(filled[1], 0.95, axis=0)
    if failures == 100:
        expected = [np.where(np.arange(4) > 0, np.nan, x) for x in expected]
    np.testing.assert_allclose(lower, expected[0])
    np.testing.assert_allclose(upper, expected[1])
    good = draws[failures:] if failures < 100 else np.full((1, 4), np.nan)
    np.testing.assert_allclose(median[1:], np.median(good, axis=0)[1:])
    np.testing.assert_allclose(share, [0, *[failures / 100] * 3])
