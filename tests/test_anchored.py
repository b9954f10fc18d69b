"""Ratings against a reference: Beta quantiles, links, corrections, and how often the interval holds the truth."""

import numpy as np
import pytest
from scipy import stats

from jaxeval import anchored_elo
from jaxeval.anchored import LINKS, Link

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


@pytest.mark.parametrize("name", LINKS)
def test_links_increase_and_have_their_derivatives(name):
    p = np.linspace(0.01, 0.99, 99)
    values = LINKS[name].map(p)
    assert (np.diff(values) > 0).all()
    numeric = (LINKS[name].map(p + 1e-6) - LINKS[name].map(p - 1e-6)) / 2e-6
    np.testing.assert_allclose(LINKS[name].derivative(p), numeric, rtol=1e-6)
    found = anchored_elo([3, 20, 37], 0, [37, 20, 3], link=name)
    np.testing.assert_array_equal(found.probability, anchored_elo([3, 20, 37], 0, [37, 20, 3]).probability)
    np.testing.assert_allclose(found.rating_lower, GAMMA * LINKS[name].map(found.probability_lower))


def test_any_link_may_be_given():
    double = Link(lambda p: 2 * np.log(p / (1 - p)), lambda p: 2 / (p * (1 - p)))
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


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((-1, 0, 3), {}, "wins must be finite and not negative; 1 of 1 do not, the first is -1"),
        ((1, np.nan, 3), {}, "ties must be finite"),
        (([1, 0], [0, 0], [3, 0]), {}, "1 of 2 cells have no outcome"),
        ((5, 0, 6), {"pool_size": 10}, "pool_size must be no less than the number of outcomes"),
        ((5, 0, 6), {"kappa": 1.2}, r"kappa must lie in \(0, 1\]"),
        ((5, 0, 6), {"kappa": -0.1}, "kappa must lie in"),
        ((5, 0, 6), {"prior": 0}, "prior must be positive"),
        ((5, 0, 6), {"level": 1.0}, "level must be between 0 and 1"),
        ((5, 0, 6), {"link": "log"}, "link must be one of 'logit', 'probit', 'cloglog'"),
        (([1, 2], 0, [1, 2, 3]), {}, "do not broadcast"),
    ],
)
def test_bad_arguments(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        anchored_elo(*arguments, **options)
