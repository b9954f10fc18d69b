import numpy as np
import pytest
import twins

from jaxeval.ratings import comparison


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


def test_rank_spread_is_the_definition():
    rng = np.random.default_rng(0)
    for _ in range(20):
        # Rounded, so that bounds coincide: coinciding bounds do not separate.
        lower = rng.normal(0, 1, 9).round(1)
        upper = lower + rng.gamma(1.0, 0.5, 9).round(1)
        lower[3], upper[4] = -np.inf, np.inf
        lower[7] = upper[7] = np.nan
        best, worst = comparison.rank_spread(lower, upper)
        for i in range(9):
            others = [j for j in range(9) if j not in (i, 7)]
            expected = [1 + sum(lower[j] > upper[i] for j in others), 1 + sum(upper[j] > lower[i] for j in others)]
            assert [best[i], worst[i]] == expected if i != 7 else np.isnan([best[i], worst[i]]).all()


@pytest.mark.parametrize("bound", [0, 1])
def test_a_model_without_an_interval_takes_no_rank_from_others(bound):
    bounds = np.array([[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]])
    bounds[bound, 1] = np.nan
    best, worst = comparison.rank_spread(*bounds)
    assert best[[0, 2]].tolist() == worst[[0, 2]].tolist() == [2, 1]
    assert np.isnan([best[1], worst[1]]).all()


def simultaneous_halfwidth(*given, **settings):
    found = comparison.simultaneous_differences(*given, **settings)
    return np.stack([found.halfwidth(i) for i in range(len(found.centred))])


def correlated_draws(rng, estimate, n_draws):
    mixing = rng.normal(size=(len(estimate), len(estimate)))
    return estimate + rng.normal(size=(n_draws, len(estimate))) @ mixing


@pytest.mark.parametrize(("level", "n_draws"), [(0.95, 200), (0.9, 57), (0.8, 2), (0.55, 100), (0.68, 75)])
def test_simultaneous_halfwidth_agrees_with_a_double_loop(level, n_draws):
    """At levels 0.55 and 0.68 a rank computed in floating point is one too high."""
    rng = np.random.default_rng(0)
    estimate = rng.normal(0, 1, 5)
    draws = correlated_draws(rng, estimate, n_draws)
    halfwidth = simultaneous_halfwidth(draws, estimate, level)
    np.testing.assert_allclose(halfwidth, twins.simultaneous_halfwidth(draws, estimate, level), rtol=1e-9, atol=1e-12)


def test_a_difference_that_no_draw_moves_separates_nobody():
    """Noise of the refits is no knowledge: the first two always differ by 5, the third moves."""
    rng = np.random.default_rng(0)
    draws = np.array([1005.0, 1000.0, 900.0]) + rng.normal(size=(200, 1)) * [1, 1, 0]
    draws[:, 0] += 1e-6 * rng.normal(size=200)
    estimate = np.array([1005.0, 1000.0, 900.0])
    halfwidth = simultaneous_halfwidth(draws, estimate, 0.95, noise=1e-5)
    assert halfwidth[0, 1] == halfwidth[1, 0] == np.inf
    assert 0 < halfwidth[0, 2] < 5
    assert np.all(np.diag(halfwidth) == 0)
    assert comparison.tiers(draws, estimate, 0.95, noise=1e-5).tolist() == [1, 1, 2]


def test_simultaneous_intervals_cover_all_differences_at_once():
    rng = np.random.default_rng(1)
    truth, replications, n_draws = np.array([0.0, 0.5, 1.0, 3.0, 3.1]), 2000, 400
    scale = np.array([1.0, 0.2, 0.5, 3.0, 0.1])
    covered = one_covered = 0
    for _ in range(replications):
        estimate = truth + scale * rng.normal(size=5)
        draws = estimate + scale * rng.normal(size=(n_draws, 5))
        halfwidth = simultaneous_halfwidth(draws, estimate, 0.9)
        miss = (estimate - truth)[:, None] - (estimate - truth)
        inside = np.abs(miss) <= halfwidth
        covered += inside.all()
        one_covered += inside[0, 1]
    error = np.sqrt(0.9 * 0.1 / replications)
    assert abs(covered / replications - 0.9) < 5 * error
    # One difference alone is covered more often: what holding all of them at once costs.
    assert one_covered / replications > 0.9 + 5 * error


def naive_tiers(estimate, halfwidth):
    order = sorted(range(len(estimate)), key=lambda i: -estimate[i])
    tier, leader, current = {}, order[0], 1
    for i in order:
        if estimate[leader] - estimate[i] > halfwidth[leader, i]:
            leader, current = i, current + 1
        tier[i] = current
    return [tier[i] for i in range(len(estimate))]


def test_tiers_are_told_apart_from_their_leader_not_from_the_next_model():
    """Steps of 0.6 half-widths: every model overlaps the next, every second one is told apart from the leader."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(400, 5))
    halfwidth = simultaneous_halfwidth(noise, np.zeros(5), 0.95)
    step = halfwidth[~np.eye(5, dtype=bool)].mean()
    estimate = -0.6 * step * np.array([2.0, 0.0, 4.0, 1.0, 3.0])
    assert comparison.tiers(noise + estimate, estimate, 0.95).tolist() == [2, 1, 3, 1, 2]


@pytest.mark.parametrize("seed", range(10))
def test_tiers_agree_with_a_loop(seed):
    rng = np.random.default_rng(seed)
    estimate = rng.normal(0, 12, 8)
    draws = correlated_draws(rng, estimate, 100)
    expected = naive_tiers(estimate, twins.simultaneous_halfwidth(draws, estimate, 0.9))
    assert comparison.tiers(draws, estimate, 0.9).tolist() == expected
    assert 1 < max(expected) < 8


def test_models_without_finite_draws_have_no_tier_and_change_none():
    rng = np.random.default_rng(0)
    estimate = np.array([30.0, 20.0, 10.0, 0.0])
    draws = estimate + rng.normal(size=(100, 4))
    expected = comparison.tiers(draws, estimate, 0.95)
    assert expected.tolist() == [1, 2, 3, 4]
    more = np.concatenate([draws, draws[:, :1], draws[:, :1], draws[:, :1]], 1)
    more[5, 4], more[6, 5] = np.inf, np.nan
    tiers = comparison.tiers(more, np.append(estimate, [30.0, 30.0, np.inf]), 0.95)
    assert tiers.tolist() == [1, 2, 3, 4, 0, 0, 0]
    assert comparison.tiers(np.full((5, 2), np.nan), np.array([np.nan, np.inf]), 0.95).tolist() == [0, 0]


def test_one_model_or_one_draw_is_one_tier():
    assert comparison.tiers(np.zeros((9, 1)), np.zeros(1), 0.95).tolist() == [1]
    assert comparison.tiers(np.array([[5.0, 0.0]]), np.array([5.0, 0.0]), 0.95).tolist() == [1, 1]


@pytest.mark.parametrize("level", [0, 1, -1, 2, 95, np.nan, "0.95", None])
def test_levels_are_checked(level):
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        comparison.tiers(np.zeros((9, 2)), np.zeros(2), level)
