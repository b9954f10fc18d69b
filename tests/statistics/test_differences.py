"""Tiers and sets of ranks: their definitions in loops, the output of csranks, awkward draws, and what they cover."""

import numpy as np
import pytest
import twins

from jaxeval.statistics import differences as module
from jaxeval.statistics.differences import differences


def compared(draws, estimate, noise=0.0):
    """Differences of all models that have a finite estimate."""
    return differences(draws, estimate, np.isfinite(estimate), noise)


def tiers(draws, estimate, level, noise=0.0):
    return compared(draws, estimate, noise).tiers(level).tolist()


def rank_sets(draws, estimate, level, simultaneous=False, noise=0.0):
    best, worst = compared(draws, estimate, noise).rank_sets(level, simultaneous)
    return list(zip(best.tolist(), worst.tolist(), strict=True))


def simultaneous_halfwidth(draws, estimate, level):
    """(M, M), in the order of the models; 0 on the diagonal, where a standard error is noise."""
    found = compared(draws, estimate)
    place = np.argsort(found.models)
    halfwidth = found.critical(level) * found.errors(slice(None))[np.ix_(place, place)]
    assert np.isnan(np.diag(halfwidth)).all()
    np.fill_diagonal(halfwidth, 0.0)
    return halfwidth


def correlated_draws(rng, estimate, n_draws):
    mixing = rng.normal(size=(len(estimate), len(estimate)))
    return estimate + rng.normal(size=(n_draws, len(estimate))) @ mixing


class TestCriticalValue:
    @pytest.mark.parametrize(("level", "n_draws"), [(0.95, 200), (0.9, 57), (0.8, 2), (0.55, 100), (0.68, 75)])
    def test_simultaneous_halfwidth_agrees_with_a_double_loop(self, level, n_draws):
        """At levels 0.55 and 0.68 a rank computed in floating point is one too high."""
        rng = np.random.default_rng(0)
        estimate = rng.normal(0, 1, 5)
        draws = correlated_draws(rng, estimate, n_draws)
        expected = twins.simultaneous_halfwidth(draws, estimate, level)
        np.testing.assert_allclose(simultaneous_halfwidth(draws, estimate, level), expected, rtol=1e-9, atol=1e-12)

    @pytest.mark.slow
    def test_simultaneous_intervals_cover_all_differences_at_once(self):
        rng = np.random.default_rng(1)
        truth, replications, n_draws = np.array([0.0, 0.5, 1.0, 3.0, 3.1]), 1000, 400
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

    @pytest.mark.parametrize(("n_clusters", "n_models"), [(10, 12), (20, 6)])
    def test_means_of_few_clusters_are_seldom_told_apart_if_equal(self, n_clusters, n_models):
        """Twelve equal means of ten were on several tiers in .18 of the cases by the factor of one difference."""
        rng, n, told = np.random.default_rng(0), 400, 0
        for _ in range(n):
            x = rng.normal(size=(n_clusters, n_models))
            share = rng.multinomial(n_clusters, np.full(n_clusters, 1 / n_clusters), 300) / n_clusters
            found = differences(share @ x, x.mean(0), np.ones(n_models, bool), freedom=n_clusters - 1.0)
            told += found.tiers(0.95).max() > 1
        assert told / n <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n)

    @pytest.mark.parametrize("level", [0, 1, -1, 2, 95, np.nan, "0.95", None])
    def test_levels_are_checked(self, level):
        for ask in (tiers, rank_sets):
            with pytest.raises(ValueError, match="level must be between 0 and 1"):
                ask(np.zeros((9, 2)), np.zeros(2), level)

    def test_the_size_of_the_pieces_changes_nothing(self, monkeypatch):
        rng = np.random.default_rng(3)
        estimate = rng.normal(0, 8, 23)
        draws = correlated_draws(rng, estimate, 101)
        expected = compared(draws, estimate)
        monkeypatch.setattr(module, "_BLOCK", 5)
        monkeypatch.setattr(module, "_DIFFERENCES", 70)
        found = compared(draws, estimate)
        np.testing.assert_array_equal(found._largest, expected._largest)
        np.testing.assert_array_equal(found.rank_sets(0.9), expected.rank_sets(0.9))

    def test_too_many_differences(self, monkeypatch):
        found = compared(np.zeros((10, 5)), np.arange(5.0))
        assert found.n_comparisons == 100
        monkeypatch.setattr(module, "MOST_COMPARISONS", 99)
        assert not found.within_reach
        for ask in (found.tiers, found.rank_sets):
            with pytest.raises(ValueError, match="here 100 differences, beyond the 99 that are done in seconds"):
                ask(0.95)


def naive_tiers(estimate, halfwidth):
    order = sorted(range(len(estimate)), key=lambda i: -estimate[i])
    tier, leader, current = {}, order[0], 1
    for i in order:
        if estimate[leader] - estimate[i] > halfwidth[leader, i]:
            leader, current = i, current + 1
        tier[i] = current
    return [tier[i] for i in range(len(estimate))]


class TestTiers:
    def test_models_are_told_apart_from_their_leader_not_from_the_next_model(self):
        """Steps of 0.6 half-widths: every model overlaps the next, every second one is told apart from the leader."""
        rng = np.random.default_rng(0)
        noise = rng.normal(size=(400, 5))
        halfwidth = simultaneous_halfwidth(noise, np.zeros(5), 0.95)
        step = halfwidth[~np.eye(5, dtype=bool)].mean()
        estimate = -0.6 * step * np.array([2.0, 0.0, 4.0, 1.0, 3.0])
        assert tiers(noise + estimate, estimate, 0.95) == [2, 1, 3, 1, 2]

    @pytest.mark.parametrize("seed", range(10))
    def test_they_agree_with_a_loop(self, seed):
        rng = np.random.default_rng(seed)
        estimate = rng.normal(0, 12, 8)
        draws = correlated_draws(rng, estimate, 100)
        expected = naive_tiers(estimate, twins.simultaneous_halfwidth(draws, estimate, 0.9))
        assert tiers(draws, estimate, 0.9) == expected
        assert 1 < max(expected) < 8

    def test_one_model_or_one_draw_is_one_tier(self):
        assert tiers(np.zeros((9, 1)), np.zeros(1), 0.95) == [1]
        assert tiers(np.array([[5.0, 0.0]]), np.array([5.0, 0.0]), 0.95) == [1, 1]


class TestRankSets:
    @pytest.mark.parametrize("seed", range(10))
    def test_they_agree_with_a_loop(self, seed):
        """The loop steps down by itself; two of its models share an estimate."""
        rng = np.random.default_rng(seed)
        estimate = rng.normal(0, 6, 9)
        estimate[3] = estimate[7]
        draws = correlated_draws(rng, estimate, 80)
        assert rank_sets(draws, estimate, 0.9) == twins.rank_sets(draws, estimate, 0.9, 9)

    @pytest.mark.parametrize("seed", range(3))
    def test_the_output_of_csranks(self, seed):
        """R csranks with known standard errors, independent normals, level 0.95, two-sided, step-down.

        Its estimates, and normal draws around them in place of its simulated critical values. All 20 best and 20 worst
        ranks are equal. The simultaneous ones are those of a single step: csranks steps down by one-sided differences,
        which lowers its critical value from 3.11 to 3.00 here; the nearest difference is at 2.96.
        """
        estimate = np.array([3, 2.9, 2.5, 2.4, 2.0, 1.2, 1.1, 1.0, 0.2, 0])
        error = np.array([0.10, 0.10, 0.15, 0.10, 0.60, 0.10, 0.12, 0.10, 0.10, 0.05])
        draws = estimate + error * np.random.default_rng(seed).normal(size=(20_000, 10))
        best, worst = compared(draws, estimate).rank_sets(0.95)
        assert best.tolist() == [1, 1, 2, 3, 1, 5, 5, 5, 9, 9]
        assert worst.tolist() == [3, 4, 5, 5, 8, 8, 8, 8, 10, 10]
        best, worst = compared(draws, estimate).rank_sets(0.95, simultaneous=True)
        assert best.tolist() == [1, 1, 1, 3, 1, 5, 5, 5, 8, 9]
        assert worst.tolist() == [4, 4, 5, 5, 9, 8, 8, 8, 10, 10]

    def test_stepping_down_takes_far_models_out_of_the_comparison(self):
        """Thirty models far below leave two close ones to a comparison of their own, at 1.96 standard errors."""
        rng = np.random.default_rng(0)
        estimate = np.concatenate([[3.2, 0.0], np.full(30, -500.0)])
        draws = estimate + rng.normal(size=(2000, 32))
        best, worst = compared(draws, estimate).rank_sets(0.95)
        assert best[:2].tolist() == [1, 2]
        assert worst[:2].tolist() == [1, 2]
        assert rank_sets(draws, estimate, 0.95, simultaneous=True)[:2] == [(1, 2), (1, 2)]

    def test_a_shift_of_each_draw_changes_nothing(self):
        """That is what another gauge does; the shift is exact in binary."""
        rng = np.random.default_rng(0)
        estimate = np.round(rng.normal(0, 8, 12) * 64) / 64
        draws = np.round((estimate + rng.normal(0, 3, (200, 12))) * 64) / 64
        shifted = draws + rng.integers(-4000, 4000, (200, 1))
        assert rank_sets(draws, estimate, 0.95) == rank_sets(shifted, estimate, 0.95)
        assert len(set(rank_sets(draws, estimate, 0.95))) > 3

    def test_one_model_or_one_draw(self):
        assert rank_sets(np.zeros((9, 1)), np.zeros(1), 0.95) == [(1, 1)]
        for simultaneous in (False, True):
            sets = rank_sets(np.array([[5.0, 0.0]]), np.array([5.0, 0.0]), 0.95, simultaneous)
            assert sets == [(1, 2), (1, 2)]
        assert rank_sets(np.full((5, 2), np.nan), np.array([np.nan, np.inf]), 0.95) == [(0, 0), (0, 0)]

    @pytest.mark.slow
    def test_they_cover_ranks_at_once_or_one_by_one(self):
        """Blocks of equal models: a set must hold all ranks of its block. Known normal errors."""
        rng = np.random.default_rng(2)
        truth = np.repeat([0.0, 2.0, 9.0], [4, 2, 2])
        first = 1 + (truth > truth[:, None]).sum(1)
        last = 8 - (truth < truth[:, None]).sum(1)
        scale = np.array([1.0, 0.5, 2.0, 1.0, 1.0, 0.3, 1.0, 1.0])
        noise = scale * rng.normal(size=(1000, 8))
        covered = {False: [], True: []}
        for _ in range(400):
            estimate = truth + scale * rng.normal(size=8)
            found = compared(noise + estimate, estimate)
            for simultaneous, held in covered.items():
                best, worst = found.rank_sets(0.9, simultaneous)
                held.append((best <= first) & (worst >= last))
        error = np.sqrt(0.9 * 0.1 / 400)
        assert np.mean(np.all(covered[True], 1)) > 0.9 - 5 * error
        assert np.mean(covered[False], 0).min() > 0.9 - 5 * error
        assert np.mean(np.all(covered[False], 1)) < 0.9 - 3 * error  # which is what the other option is for


class TestAwkwardDraws:
    def test_a_difference_that_no_draw_moves_tells_nobody_apart(self):
        """Noise of the refits is no knowledge: the first two always differ by 5, the third moves."""
        rng = np.random.default_rng(0)
        draws = np.array([1005.0, 1000.0, 900.0]) + rng.normal(size=(200, 1)) * [1, 1, 0]
        draws[:, 0] += 1e-6 * rng.normal(size=200)
        estimate = np.array([1005.0, 1000.0, 900.0])
        assert tiers(draws, estimate, 0.95, noise=1e-5) == [1, 1, 2]
        for simultaneous in (False, True):
            sets = rank_sets(draws, estimate, 0.95, simultaneous, noise=1e-5)
            assert sets == [(1, 2), (1, 2), (3, 3)]

    def test_equal_draws_of_models_that_vary_widely(self):
        """Their difference is 5 in every draw; what is left of its standard error is rounding."""
        wide = 1e4 * np.random.default_rng(0).normal(size=(500, 1)) / 3
        estimate = np.array([5.0, 0.0])
        assert rank_sets(wide + estimate, estimate, 0.95) == [(1, 2), (1, 2)]

    def test_models_that_are_seldom_finite_are_told_apart_from_nobody(self):
        """Above 1 % of the draws. They add a place on each side, and leave the critical values and tiers alone."""
        rng = np.random.default_rng(0)
        estimate = np.array([30.0, 20.0, 10.0, 0.0])
        draws = estimate + rng.normal(size=(100, 4))
        assert rank_sets(draws, estimate, 0.95) == [(1, 1), (2, 2), (3, 3), (4, 4)]
        thin = np.stack([900 + 300 * rng.normal(size=100), -900 + 300 * rng.normal(size=100)], 1)
        thin[:2, 0], thin[[5, 6], 1] = np.inf, [-np.inf, np.nan]
        assert (~np.isfinite(thin)).mean(0).tolist() == [0.02, 0.02]
        more = np.concatenate([draws, thin, draws[:, :1]], 1)
        with_thin = np.append(estimate, [900.0, -900.0, np.inf])  # and one without a finite rating
        expected = [(1, 3), (2, 4), (3, 5), (4, 6), (1, 6), (1, 6), (0, 0)]
        for simultaneous in (False, True):
            assert rank_sets(more, with_thin, 0.95, simultaneous) == expected
        assert tiers(more, with_thin, 0.95) == [1, 2, 3, 4, 0, 0, 0]
        assert compared(more, with_thin).critical(0.95) == compared(draws, estimate).critical(0.95)

    def test_a_missing_draw_is_left_out_for_its_own_model(self):
        """At most 1 % of the draws. Taken for infinite, those of ten models would fill the tail: all would be one."""
        rng = np.random.default_rng(4)
        estimate = np.append(np.arange(0.0, 50.0, 5.0), 47.0)
        draws = estimate + rng.normal(size=(200, 11))
        for j in range(10):
            draws[[2 * j, 2 * j + 1], j] = np.inf, np.nan
        expected = twins.rank_sets(np.where(np.isfinite(draws), draws, np.nan), estimate, 0.95, 11)
        assert rank_sets(draws, estimate, 0.95) == expected
        assert expected[0] == (11, 11)

    def test_draws_of_failed_refits_are_left_out(self):
        rng = np.random.default_rng(0)
        estimate = np.array([30.0, 20.0, 10.0, 0.0])
        draws = estimate + 4 * rng.normal(size=(100, 4))
        failed = np.insert(draws, [3, 50, 70], np.nan, axis=0)
        expected, ranked = compared(draws, estimate), np.ones(4, bool)
        found = differences(failed, estimate, ranked, converged=np.isfinite(failed).all(1))
        np.testing.assert_array_equal(found.rank_sets(0.95), expected.rank_sets(0.95))
        np.testing.assert_array_equal(found.tiers(0.95), expected.tiers(0.95))

    def test_a_draw_in_which_no_model_has_a_value_counts_for_each(self):
        """Two models of which one won once and tied once: half of the resamples leave both without a rating."""
        rng = np.random.default_rng(0)
        estimate = np.array([10.0, 0.0])
        draws = estimate + rng.normal(size=(100, 2))
        draws[:2] = np.nan
        assert rank_sets(draws, estimate, 0.95) == [(1, 2), (1, 2)]
        assert tiers(draws, estimate, 0.95) == [0, 0]
        draws[1] = estimate
        assert rank_sets(draws, estimate, 0.95) == [(1, 1), (2, 2)]  # 1 % of the draws

    def test_a_difference_that_is_its_critical_value_up_to_rounding_is_none(self):
        """In a twentieth of the draws both are equal: the critical value is the difference's own."""
        estimate = np.array([0.3, 0.1]) * 400
        draws = np.tile(estimate, (100, 1))
        draws[:6] = 0.2 * 400 + 1e-13 * np.arange(6)[:, None]
        assert rank_sets(draws, estimate, 0.95, noise=1e-9) == [(1, 2), (1, 2)]
