import numpy as np
import pytest
import twins
from scipy.stats import kendalltau, spearmanr

from jaxeval.evaluators.rank_correlation import rank_agreement
from jaxeval.statistics import comparison
from jaxeval.statistics.comparison import ranking_agreement


def awkward_draws(seed, n_draws=60, n_models=6):
    """Draws with ties, infinite and missing values, a model that is always missing, and two that never meet."""
    rng = np.random.default_rng(seed)
    draws = rng.integers(0, 5, (n_draws, n_models)) + rng.normal(0, 1, n_models).round()
    draws[rng.random(draws.shape) < 0.05] = np.inf
    draws[rng.random(draws.shape) < 0.05] = -np.inf
    draws[rng.random(draws.shape) < 0.1] = np.nan
    draws[:, 2] = np.nan
    draws[::2, 0] = np.nan
    draws[1::2, 1] = np.nan
    return draws


@pytest.mark.parametrize("seed", range(5))
def test_beat_share_agrees_with_a_double_loop(seed):
    draws = awkward_draws(seed)
    share = comparison.beat_share(draws)
    np.testing.assert_allclose(share, twins.beat_share(draws), rtol=1e-14)
    np.testing.assert_allclose(share + share.T, np.where(np.isnan(share), np.nan, 1), rtol=1e-14)
    assert np.isnan(share[0, 1])


def test_equal_draws_count_half_infinite_ones_too():
    draws = np.array([[1.0, 1.0, 0.0], [np.inf, np.inf, -np.inf]])
    share = comparison.beat_share(draws)
    assert share[0, 1] == share[1, 0] == 0.5
    assert share[0, 2] == 1
    assert share[2, 0] == 0


@pytest.mark.parametrize("seed", range(5))
def test_difference_bounds_agree_with_a_double_loop(seed):
    draws = awkward_draws(seed)
    lower, upper = comparison.difference_bounds(draws, 0.875)  # tails that are exact in binary
    m = draws.shape[1]
    for i in range(m):
        for j in range(m):
            # Two equal infinities have no difference: left out.
            difference = [a - b for a, b in draws[:, [i, j]] if not (np.isinf(a) and a == b)]
            low, high = (twins.quantile(difference, q) if i != j else np.nan for q in (0.0625, 0.9375))
            np.testing.assert_allclose([lower[i, j], upper[i, j]], [low, high], atol=1e-12)


def test_differences_do_not_depend_on_the_gauge():
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(500, 5))
    shifted = draws + rng.normal(0, 100, (500, 1))
    for here, there in zip(
        comparison.difference_bounds(draws, 0.95), comparison.difference_bounds(shifted, 0.95), strict=True
    ):
        np.testing.assert_allclose(here, there, atol=1e-11)
    np.testing.assert_array_equal(comparison.beat_share(draws), comparison.beat_share(shifted))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 2, 4, 6])
def test_rank_at_most_share_agrees_with_a_double_loop(seed, k):
    draws = awkward_draws(seed)
    np.testing.assert_allclose(comparison.rank_at_most_share(draws, k), twins.rank_at_most_share(draws, k), rtol=1e-13)


def test_ranks_of_equal_draws_count_half():
    """Whatever the ties, k places are given away in every draw."""
    draws = np.array([[3.0, 3.0, 1.0, 0.0]])
    assert comparison.rank_at_most_share(draws, 1).tolist() == [0.5, 0.5, 0, 0]
    tied = np.random.default_rng(0).integers(0, 3, (40, 6)).astype(float)
    for k in range(1, 7):
        assert comparison.rank_at_most_share(tied, k).sum() == pytest.approx(k)


def test_rank_at_most_share_without_ties():
    draws = np.array([[3.0, 2.0, np.nan, -np.inf], [1.0, 2.0, 0.0, 3.0]])
    assert comparison.rank_at_most_share(draws, 1).tolist() == [0.5, 0, 0, 0.5]
    assert comparison.rank_at_most_share(draws, 3).tolist() == [1, 1, 0, 1]


@pytest.mark.parametrize("seed", range(3))
def test_the_distribution_of_ranks_adds_up_to_the_shares_of_the_best_ranks(seed):
    draws = np.random.default_rng(seed).integers(0, 4, (50, 6)).astype(float)
    draws[::7, 2] = np.nan
    draws[:, 4] = [np.inf, -np.inf] * 25
    found = comparison.rank_distribution(draws)
    at_most = [comparison.rank_at_most_share(draws, k) for k in range(1, 7)]
    np.testing.assert_allclose(found.cumsum(1), np.transpose(at_most), atol=1e-12)
    assert np.isnan(comparison.rank_distribution(np.full((3, 2), np.nan))).all()


def test_bias_corrected_bounds_leave_out_nan_and_keep_infinite_draws():
    draws = np.array([[1.0, 1.0, np.nan], [2.0, np.inf, np.nan], [3.0, np.inf, np.nan], [np.nan, -np.inf, np.nan]])
    lower, upper = comparison.bias_corrected_bounds(draws, 0.5, np.array([2.0, 1.0, 1.0]))
    # The first: the estimate is the median. The second: 1.5 of 4 draws are below it, so that both ends move down.
    assert (lower[0], upper[0]) == pytest.approx((1.5, 2.5))
    assert (lower[1], upper[1]) == (-np.inf, np.inf)
    assert np.isnan([lower[2], upper[2]]).all()
    plain = np.random.default_rng(0).normal(size=(999, 2))
    median = np.median(plain, axis=0)
    corrected, percentiles = comparison.bias_corrected_bounds(plain, 0.9, median), comparison.draw_bounds(plain, 0.9)
    np.testing.assert_allclose(corrected, percentiles, atol=1e-12)


@pytest.fixture(scope="module")
def both():
    rng = np.random.default_rng(0)
    one = rng.normal(size=(20, 9)).round(1)
    other = (one + rng.normal(size=one.shape)).round(0)
    one[3, 2] = other[5, 1] = other[5, 4] = np.nan
    one[7, 0] = np.inf
    return one, other


def test_against_scipy(both):
    found = ranking_agreement(*both, 3)
    for b, (x, y) in enumerate(zip(*both, strict=True)):
        there = ~np.isnan(x + y)
        assert found["kendall_tau"][b] == pytest.approx(kendalltau(x[there], y[there]).statistic)
        finite = np.where(np.isinf(x), 99, x)
        assert found["spearman"][b] == pytest.approx(spearmanr(finite[there], y[there]).statistic)


def test_against_the_measures_of_evaluators(both):
    one, other = both
    own = {name: values[0] for name, values in ranking_agreement(one, other, 3).items()}
    rankings_table = rank_agreement(one[0], other[0], top=3, n_resamples=0).set_index("measure")["value"]
    assert own == pytest.approx(rankings_table[list(own)].to_dict())


def test_what_has_no_agreement():
    one, other = np.array([[1.0, 1, 1], [1, 2, np.nan]]), np.array([[1.0, 2, 3], [1, 2, 3]])
    found = ranking_agreement(one, other, 3)
    assert np.isnan(found["kendall_tau"][0])
    assert np.isnan(found["spearman"][0])
    assert np.isnan(found["top_overlap"][1])
    close = ranking_agreement(np.array([[1.0, 1 + 1e-9, 2]]), np.array([[1.0, 0, 2]]), 2, precision=1e-6)
    assert close["kendall_tau"][0] == pytest.approx(2 / np.sqrt(6))
    nothing = ranking_agreement(np.full((1, 3), np.nan), other[:1], 1)
    assert np.isnan(nothing["kendall_tau"][0])
