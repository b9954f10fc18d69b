import itertools

import numpy as np
import pytest
import scipy
from numpy.testing import assert_allclose

from jaxeval.scores.paired_tests import N_FLIPS, anytime_p, mcnemar, sign_flips, student_p


@pytest.mark.parametrize(("a", "b"), [(0, 0), (3, 0), (0, 1), (10, 10), (25, 9), (400, 353)])
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_mcnemar_is_the_binomial_test(a, b, alternative):
    expected = scipy.stats.binomtest(a, a + b, 0.5, alternative).pvalue if a + b else 1.0
    assert_allclose(mcnemar(a, b, alternative), expected, rtol=1e-12)


def test_mcnemar_takes_arrays():
    assert_allclose(mcnemar(np.array([3, 5]), np.array([0, 5])), [0.25, 1.0])


def test_the_unpaired_test_misses_what_mcnemar_finds():
    """Pull request 3868 of lm-evaluation-harness: of 220 items the unpaired z-test gives p .080, McNemar's .008."""
    n, both, only_a, only_b = 220, 109, 30, 12
    a, b = (both + only_a) / n, (both + only_b) / n
    z = (a - b) / np.sqrt((a * (1 - a) + b * (1 - b)) / n)
    assert round(2 * scipy.stats.norm.sf(z), 3) == 0.080
    assert np.round(mcnemar(only_a, only_b), 3) == 0.008


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_few_differences_are_flipped_in_all_ways(alternative):
    x = np.array([0.3, -0.1, 0.7, 0.0, 0.2, 0.45])
    sums = np.array([np.dot(s, x) for s in itertools.product([-1, 1], repeat=6)])
    total = x.sum()
    beyond = {"two-sided": abs(sums) >= abs(total) - 1e-12, "greater": sums >= total - 1e-12,
              "less": sums <= total + 1e-12}[alternative]  # fmt: skip
    assert sign_flips(x, 0, alternative) == (pytest.approx(beyond.mean(), abs=1e-15), 0)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_flips_of_right_and_wrong_are_mcnemar_to_1e15(alternative):
    x = np.r_[np.ones(31), -np.ones(17), np.zeros(100)]
    p, n_flips = sign_flips(x / len(x), 0, alternative)
    assert n_flips == 0
    assert_allclose(p, mcnemar(31, 17, alternative), atol=1e-15)


def test_random_flips_agree_with_exact_ones_and_with_the_seed():
    """Integers of several sizes: the exact distribution of the sum is a convolution."""
    rng = np.random.default_rng(0)
    size = rng.integers(1, 4, 60)
    x = size * rng.choice([-1, 1], 60, p=[0.35, 0.65])
    chance = np.ones(1)
    for step in size:
        chance = np.convolve(chance, np.bincount([0, 2 * step]) / 2)
    sums = np.arange(len(chance)) - size.sum()
    exact = chance[abs(sums) >= abs(x.sum())].sum()
    p, n_flips = sign_flips(x.astype(float), 1)
    assert (p, n_flips) == sign_flips(x.astype(float), 1)
    assert n_flips == N_FLIPS
    assert abs(p - exact) < 4 * np.sqrt(exact * (1 - exact) / N_FLIPS)


def test_the_sum_that_was_seen_is_one_of_the_flips():
    """No other flip of forty positive differences, in 100,000, is as far: of 2**40 only two are."""
    assert sign_flips(np.linspace(1, 2, 40), 0) == (1 / (1 + N_FLIPS), N_FLIPS)


def test_without_a_difference_p_is_1():
    assert sign_flips(np.zeros(5), 0) == (1.0, 0)


def test_student():
    rng = np.random.default_rng(0)
    x = rng.normal(0.2, 1, 40)
    for alternative in ("two-sided", "greater", "less"):
        expected = scipy.stats.ttest_1samp(x, 0, alternative=alternative).pvalue
        assert_allclose(student_p(x.mean(), x.std(ddof=1) / np.sqrt(40), 39, alternative), expected, rtol=1e-10)
    assert np.isnan(student_p(0.1, 0.0, 10))


def test_a_fair_game_naively():
    x = np.random.default_rng(0).uniform(-1, 1, 30) * 0.5 + 0.3
    x = np.clip(x, -1, 1)
    share = (np.arange(100) + 0.5) / 100
    wealth = np.mean([np.prod(1 + s * x) for s in (*-share, *share)])
    assert anytime_p(x) == pytest.approx(1 / wealth)
    assert anytime_p(x, "greater") < anytime_p(x) < anytime_p(x, "less") == 1.0
    assert anytime_p(np.zeros(4)) == 1.0


#: Looks at data that grow, on each of so many boards.
LOOKS, N_BOARDS = np.arange(25, 1001, 25), 150


def outcomes(rng, chances):
    """Boards of wins, draws and losses (-1, 0, 1)."""
    return rng.choice([-1.0, 0.0, 1.0], (N_BOARDS, 1000), p=chances)


def passes(x, *options):
    """Share of the boards on which the bet is sure of a difference at some look."""
    return np.mean([any(anytime_p(own[:n], *options) <= 0.05 for n in LOOKS) for own in x])


def seen(x):
    """Sums (boards, looks) of what has been seen at each look."""
    return np.cumsum(x, axis=1)[:, LOOKS - 1]


AT_MOST = 0.05 + 4 * np.sqrt(0.05 * 0.95 / N_BOARDS)


@pytest.mark.slow
def test_forty_looks_raise_few_false_alarms():
    """At some of the looks at equal models p is under .05 seldom enough; McNemar's p is so far too often."""
    rng = np.random.default_rng(1)
    x = outcomes(rng, [0.2, 0.6, 0.2])
    assert passes(x) < AT_MOST
    assert (mcnemar(seen(x > 0), seen(x < 0)) <= 0.05).any(1).mean() > 0.15
    moved = np.clip(x + rng.choice([0.0, 1.0], x.shape, p=[0.85, 0.15]), -1, 1)
    assert np.mean([anytime_p(own) <= 0.05 for own in moved]) > 0.9


@pytest.mark.parametrize("null", [-0.1, 0.0, 0.2])
def test_a_null_that_is_not_zero(null):
    """The naive product of bets on x - null, of which none loses what is not there."""
    x = np.random.default_rng(2).uniform(-1, 1, 40)
    share = (np.arange(100) + 0.5) / 100 / (1 + abs(null))
    wealth = np.mean([np.prod(1 + s * (x - null)) for s in share])
    assert anytime_p(x, "greater", null) == pytest.approx(min(1 / wealth, 1))
    assert min(1 + s * (y - null) for s in share for y in (-1.0, 1.0)) > 0


@pytest.mark.slow
def test_a_gate_that_is_looked_at_often_passes_few_that_are_worse_by_the_margin():
    """Models worse by exactly the margin: the bet passes 1 in 20 at most at some look, Student's test more."""
    rng = np.random.default_rng(3)
    x = outcomes(rng, [0.25, 0.6, 0.15])  # mean -.1
    assert passes(x, "greater", -0.1) < AT_MOST
    means = seen(x) / LOOKS
    errors = np.sqrt((seen(x**2) / LOOKS - means**2) / (LOOKS - 1))
    assert (means + 0.1 > 1.645 * np.maximum(errors, 0.01)).any(1).mean() > 0.15
    better = outcomes(rng, [0.18, 0.62, 0.2])
    assert np.mean([anytime_p(own, "greater", -0.1) <= 0.05 for own in better]) > 0.9
