"""Ratings against a reference: Beta quantiles, links, corrections, and how often the interval holds the truth."""

import numpy as np
import pytest
from scipy import stats

from jaxeval import anchored_elo
from jaxeval.anchored.elo import SCALES, Scale

GAMMA = 400 / np.log(10)


def test_one_cell_is_the_algorithm():
    found = anchored_elo(64, 10, 26)
    a, b = 64 + 5 + 0.5, 26 + 5 + 0.5
    p, ends = a / (a + b), stats.beta(a, b).ppf([0.025, 0.975])
    assert found.probability == pytest.approx(p, abs=1e-15)
    assert (found.probability_lower, found.probability_upper) == pytest.approx(tuple(ends), rel=1e-12)
    rating = GAMMA * np.log(np.array([p, *ends]) / (1 - np.array([p, *ends])))
    assert (found.rating, found.rating_lower, found.rating_upper) == pytest.approx(tuple(rating))
    se = stats.beta(a, b).std()
    assert found.probability_se == pytest.approx(se)
    assert found.rating_se == pytest.approx(GAMMA / (p * (1 - p)) * se)  # Eq. 4
    assert isinstance(found.rating, float)


def test_a_hundred_elo_are_64_percent():
    assert anchored_elo(6401, 0, 3599).rating == pytest.approx(100, abs=0.1)


@pytest.mark.parametrize("shape", [(), (7,), (3, 2, 4)])
def test_batches_are_their_cells(shape):
    rng = np.random.default_rng(0)
    w, t, lost = rng.integers(0, 30, (3, *shape)) + np.array([0.5, 0.25, 1.0]).reshape(3, *[1] * len(shape))
    found = anchored_elo(w, t, lost, prior=1.0, level=0.8, pool_size=200)
    assert np.shape(found.rating) == shape
    for index in np.ndindex(shape):
        one = anchored_elo(w[index], t[index], lost[index], prior=1.0, level=0.8, pool_size=200)
        for name in ("probability_lower", "rating_upper", "rating_se", "own_upper"):
            assert np.asarray(getattr(found, name))[index] == pytest.approx(getattr(one, name), rel=1e-12)


class TestCorrections:
    N = np.array([16, 24, 32, 40, 64, 80, 120])
    THEORY = np.array([0.117833, 0.098042, 0.085735, 0.077139, 0.061535, 0.055206, 0.045260])
    FINITE = np.array([0.112137, 0.090674, 0.076925, 0.067014, 0.047815, 0.039159, 0.022701])
    KAPPA = np.array([0.095316, 0.077073, 0.065386, 0.056962, 0.040642, 0.033285, 0.019296])

    def test_table_9(self):
        """Its three columns from each other: the pool of 160, and kappa 0.85 applied once."""
        share = 0.5 + np.sqrt(0.25 - self.THEORY[0] ** 2 * 18)  # the win share that its first row has
        wins = share * 17 * self.N / 16 - (share - 0.5) * self.N / 16 - 0.5 * self.N / 16
        for options, column in (
            ({}, self.THEORY),
            ({"pool_size": 160}, self.FINITE),
            ({"pool_size": 160, "kappa": 0.85}, self.KAPPA),
        ):
            found = anchored_elo(wins, 0, self.N - wins, **options)
            np.testing.assert_allclose(found.probability_se, column, rtol=2e-4)

    @pytest.mark.parametrize(
        ("raw", "finite", "adjusted", "empirical", "ratio"),
        [
            (0.0771, 0.0670, 0.0570, 0.0562, 0.99),  # MT-Bench: n = 40 of 160, kappa 0.85
            (0.0066, 0.0062, 0.0058, 0.0058, 1.00),  # FloRES
            (0.0244, 0.0232, 0.0214, 0.0223, 1.04),  # TL;DR
        ],
    )
    def test_table_14(self, raw, finite, adjusted, empirical, ratio):
        """Its columns from each other: the pool that the second has and kappa, once, that the third has."""
        n = 40 if raw == 0.0771 else round(0.25 / raw**2) - 2  # the others are not told: even matches
        win = 0.5 + np.sqrt(max(0.25 - raw**2 * (n + 2), 0.0))
        wins = win * (n + 1) - 0.5
        left = (finite / raw) ** 2
        pool = 160 if raw == 0.0771 else (n - left) / (1 - left)
        kappa = 0.85 if raw == 0.0771 else adjusted / finite
        for options, column in (
            ({}, raw),
            ({"pool_size": pool}, finite),
            ({"pool_size": pool, "kappa": kappa}, adjusted),
        ):
            assert anchored_elo(wins, 0, n - wins, **options).probability_se == pytest.approx(column, abs=1e-4)
        assert empirical / adjusted == pytest.approx(ratio, abs=0.005)

    def test_the_interval_has_the_mean_and_the_corrected_variance(self):
        found = anchored_elo(30, 4, 16, pool_size=80, kappa=0.9)
        shrunk = np.sqrt(30 / 79) * 0.9
        plain = anchored_elo(30, 4, 16)
        assert found.probability == plain.probability
        assert found.probability_se == pytest.approx(shrunk * plain.probability_se)
        assert found.rating_se == pytest.approx(shrunk * plain.rating_se)
        size = found.probability * (1 - found.probability) / found.probability_se**2 - 1
        law = stats.beta(found.probability * size, (1 - found.probability) * size)
        assert law.std() == pytest.approx(found.probability_se)
        assert (found.probability_lower, found.probability_upper) == pytest.approx(tuple(law.ppf([0.025, 0.975])))

    def test_the_whole_pool_leaves_no_uncertainty(self):
        found = anchored_elo(30, 4, 16, pool_size=[50, 51])
        assert found.rating_lower[0] == found.rating[0] == found.rating_upper[0]
        assert found.rating_se[0] == 0
        assert found.rating_lower[1] < found.rating[1] < found.rating_upper[1]


@pytest.mark.parametrize("name", SCALES)
def test_links_increase_and_have_their_derivatives(name):
    p = np.linspace(0.01, 0.99, 99)
    values = SCALES[name].map(p)
    assert (np.diff(values) > 0).all()
    numeric = (SCALES[name].map(p + 1e-6) - SCALES[name].map(p - 1e-6)) / 2e-6
    np.testing.assert_allclose(SCALES[name].derivative(p), numeric, rtol=1e-6)
    found = anchored_elo([3, 20, 37], 0, [37, 20, 3], link=name)
    np.testing.assert_array_equal(found.probability, anchored_elo([3, 20, 37], 0, [37, 20, 3]).probability)
    np.testing.assert_allclose(found.rating_lower, GAMMA * SCALES[name].map(found.probability_lower))


def test_any_link_may_be_given():
    double = Scale(lambda p: 2 * np.log(p / (1 - p)), lambda p: 2 / (p * (1 - p)))
    one, two = anchored_elo(10, 5, 3), anchored_elo(10, 5, 3, link=double)
    assert two.rating == pytest.approx(2 * one.rating)
    assert two.rating_se == pytest.approx(2 * one.rating_se)
    assert two.link == "custom"


def test_swapping_wins_and_losses_turns_the_sign():
    one, other = anchored_elo([5, 9], 3, [2, 0]), anchored_elo([2, 0], 3, [5, 9])
    np.testing.assert_allclose(one.rating, -other.rating)
    np.testing.assert_allclose(one.rating_lower, -other.rating_upper, rtol=1e-9)


def test_all_wins_stay_finite():
    found = anchored_elo(40, 0, 0)
    assert np.isfinite([found.rating, found.rating_lower, found.rating_upper]).all()
    assert found.probability == pytest.approx(40.5 / 41)


class TestCoverage:
    def test_it_is_the_level_on_average_over_the_prior(self):
        """Bayesian intervals cover on average over p ~ Beta(1/2, 1/2), without ties."""
        rng = np.random.default_rng(1)
        p = rng.beta(0.5, 0.5, 40_000)
        wins = rng.binomial(60, p)
        found = anchored_elo(wins, 0, 60 - wins)
        share = np.mean((found.probability_lower <= p) & (p <= found.probability_upper))
        assert share == pytest.approx(0.95, abs=5 * np.sqrt(0.95 * 0.05 / len(p)))

    def test_ties_make_it_conservative_and_the_outcomes_own_interval_does_not(self):
        rng = np.random.default_rng(2)
        counts = rng.multinomial(80, [0.45, 0.4, 0.15], 20_000)
        found = anchored_elo(*counts.T)
        truth = 0.45 + 0.2
        beta = np.mean((found.probability_lower <= truth) & (truth <= found.probability_upper))
        own = np.mean((found.own_lower <= truth) & (truth <= found.own_upper))
        assert beta > 0.97
        assert own == pytest.approx(0.95, abs=0.01)

    def test_without_ties_both_are_the_same(self):
        found = anchored_elo([3, 20], 0, [30, 20])
        np.testing.assert_allclose(found.own_lower, found.probability_lower)


class TestSquares:
    def test_the_own_interval_is_that_of_the_prompts_variance(self):
        outcomes = np.array([1, 0.8, 0.6, 0.6, 0.2, 0, 1, 0.9])
        win, loss = np.maximum(2 * outcomes - 1, 0).sum(), np.maximum(1 - 2 * outcomes, 0).sum()
        found = anchored_elo(win, 8 - win - loss, loss, prior=1.0, level=0.9, squares=np.sum(outcomes**2))
        with_prior = np.append(outcomes, [0.0, 1.0])
        p, variance = with_prior.mean(), with_prior.var() / 11
        size = p * (1 - p) / variance - 1
        ends = stats.beta(p * size, (1 - p) * size).ppf([0.05, 0.95])
        assert (found.own_lower, found.own_upper) == pytest.approx(tuple(ends), rel=1e-12)
        plain = anchored_elo(win, 8 - win - loss, loss, prior=1.0, level=0.9)
        assert found.own_upper - found.own_lower < plain.own_upper - plain.own_lower
        assert (found.probability_lower, found.rating_se) == (plain.probability_lower, plain.rating_se)

    def test_by_default_ties_are_whole(self):
        found = anchored_elo([30, 3], [10, 1], [20, 4], squares=[32.5, 3.25])
        plain = anchored_elo([30, 3], [10, 1], [20, 4])
        np.testing.assert_array_equal(found.own_lower, plain.own_lower)

    @pytest.mark.parametrize("squares", [32.6, 20.4, -1, np.nan])
    def test_squares_of_other_outcomes(self, squares):
        with pytest.raises(ValueError, match=r"squares must lie between \(W \+ T/2\)\^2 / n and W \+ T/4"):
            anchored_elo(30, 10, 20, squares=squares)


class TestExtremes:
    """Finite numbers without warnings, where probabilities round to 0 or 1 and quantiles lose their digits."""

    @pytest.mark.parametrize("wins", [1e9, 1e17, 1e200])
    @pytest.mark.parametrize("prior", [1e-10, 0.5])
    def test_all_wins(self, wins, prior):
        found, lost = anchored_elo(wins, 0, 0, prior), anchored_elo(0, 0, wins, prior)
        assert found.rating == pytest.approx(GAMMA * (np.log(wins) - np.log(prior)))
        assert found.rating_lower < found.rating_upper < np.inf
        assert (found.rating, found.rating_lower, found.rating_upper) == (
            -lost.rating, -lost.rating_upper, -lost.rating_lower,
        )  # fmt: skip
        if prior == 0.5:  # 1 - p is a gamma variate over the wins
            ends = stats.gamma(0.5).ppf([0.975, 0.025])
            expected = GAMMA * (np.log(wins) - np.log(ends))
            assert (found.rating_lower, found.rating_upper) == pytest.approx(tuple(expected), rel=1e-8)

    @pytest.mark.parametrize("link", SCALES)
    def test_other_links(self, link):
        found = anchored_elo([1e17, 0, 1e6], 0, [0, 1e17, 0], link=link)
        assert np.isfinite([found.rating, found.rating_lower, found.rating_upper, found.rating_se]).all()
        assert (found.rating_lower <= found.rating).all()

    def test_quantiles_that_have_left_the_numbers(self):
        """Of x^b / (b B(a, b)), next to 0, b = 1e-3."""
        found = anchored_elo(0, 0, 1, prior=1e-3)
        assert found.probability_lower < 1e-300
        expected = GAMMA * np.log(0.025) / 1e-3
        assert found.rating_lower == pytest.approx(expected, rel=1e-3)

    @pytest.mark.parametrize("p", [0.02, 0.3, 0.9])
    def test_large_counts_are_normal(self, p):
        for n in (1e8, 1e10, 1e12, 1e14, 1e16):
            found = anchored_elo(p * n, 0, (1 - p) * n)
            sd = np.sqrt(p * (1 - p) / n)
            z = [(found.probability_lower - p) / sd, (found.probability_upper - p) / sd]
            assert z == pytest.approx([-1.959964, 1.959964], abs=2 / np.sqrt(n * p * (1 - p)) + 1e-6 + 1e-16 / sd)

    def test_kappa_shrinks_by_what_it_is(self):
        for kappa in (1e-3, 1e-6, 1e-9, 1e-12, 1e-100, 1e-200):
            found = anchored_elo(10, 0, 5, kappa=kappa)
            half = 1.959963984540054 * found.probability_se
            assert found.probability_se == pytest.approx(kappa * anchored_elo(10, 0, 5).probability_se)
            assert found.probability_upper - found.probability == pytest.approx(half, rel=1e-2, abs=2e-16)
            assert found.own_upper - found.probability == pytest.approx(half, rel=1e-2, abs=2e-16)


def test_cells_that_repeat_and_cells_that_do_not():
    rng = np.random.default_rng(5)
    wins = np.concatenate([rng.integers(0, 9, 300), rng.uniform(0, 9, 100)])
    found = anchored_elo(wins, 3 * (wins < 4), 9 - wins)
    for k in (0, 57, 299, 300, 399):
        one = anchored_elo(wins[k], 3 * (wins[k] < 4), 9 - wins[k])
        for name in ("probability_lower", "probability_upper", "own_lower", "own_upper", "rating_upper"):
            assert getattr(found, name)[k] == getattr(one, name)
    extreme = anchored_elo([1e17] * 6, 0, [0, 1, 2, 0, 1, 2])
    assert len(set(extreme.rating_lower)) == 3


@pytest.mark.parametrize(("arguments", "options", "message"), [
    ((-1, 0, 3), {}, "wins must be finite and not negative; 1 of 1 does not, the first is -1"),
    ((1, np.nan, 3), {}, "ties must be finite"),
    (([1, 0], [0, 0], [3, 0]), {}, r"1 of 2 cells have no outcome at all \(the first is number 1"),
    ((5, 0, 6), {"pool_size": 10}, "pool_size must be no less than the number of outcomes"),
    ((5, 0, 6), {"kappa": 1.2}, r"kappa must lie in \(0, 1\]"),
    ((5, 0, 6), {"kappa": -0.1}, "kappa must lie in"),
    ((5, 0, 6), {"prior": 0}, "prior must be positive"),
    ((5, 0, 6), {"prior": np.array([0.5, 1.0])}, "prior must be positive, one number for all cells, got array"),
    ((5, 0, 6), {"prior": "a"}, "prior must be positive, one number for all cells, got 'a'"),
    ((5, 0, 6), {"prior": None}, "prior must be positive, one number for all cells, got None"),
    ((5, 0, 6), {"prior": np.nan}, "prior must be positive"),
    ((5, 0, 6), {"link": None}, "link must be one of 'logit', 'probit', 'cloglog' or a Scale, got None"),
    ((5, 0, 6), {"link": ["logit"]}, "link must be one of"),
    ((5, 0, 6), {"level": 1.0}, "level must be between 0 and 1"),
    ((5, 0, 6), {"link": "log"}, "link must be one of 'logit', 'probit', 'cloglog'"),
    (([1, 2], 0, [1, 2, 3]), {}, "do not broadcast"),
])  # fmt: skip
def test_bad_arguments(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        anchored_elo(*arguments, **options)
