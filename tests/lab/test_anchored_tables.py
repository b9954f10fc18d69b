"""What subsamples of prompts show beside the closed-form error: against loops, and the theory of a simple sample."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from jaxeval.anchored.elo import anchored_elo
from jaxeval.lab import anchored_tables
from jaxeval.lab.anchored_tables import subsample_study


@pytest.fixture(scope="module")
def outcomes():
    """Of 160 prompts and three judges, averages over runs."""
    return np.random.default_rng(0).binomial(5, [[0.7, 0.6, 0.3]] * 160) / 5


def loops(outcomes, sizes, n_repeats, seed, prior=0.5, kappa=1.0):
    """A twin with the same orders of the prompts, one score at a time."""
    m, g = outcomes.shape
    rng = np.random.default_rng(seed)
    orders = rng.permuted(np.tile(np.arange(m), (n_repeats, 1)), axis=1)
    rows = []
    for n in sizes:
        p, errors = np.empty((n_repeats, g)), np.empty((3, n_repeats, g))
        for r, order in enumerate(orders):
            for j in range(g):
                wins = outcomes[order[:n], j].sum()
                a, b = wins + prior, n - wins + prior
                p[r, j] = a / (a + b)
                plain = np.sqrt(a * b / ((a + b) ** 2 * (a + b + 1)))
                finite = plain * np.sqrt((m - n) / (m - 1))
                errors[:, r, j] = plain, finite, kappa * finite
        rows.append([n, np.mean([p[:, j].std(ddof=1) for j in range(g)]), *errors.mean((1, 2))])
    return np.array(rows)


def test_against_loops(outcomes):
    found = subsample_study(outcomes, (16, 40, 120), kappa=0.85, prior=1.0, n_repeats=30, seed=4)
    twin = loops(outcomes, (16, 40, 120), 30, 4, prior=1.0, kappa=0.85)
    np.testing.assert_allclose(found[["n", "empirical", "theoretical", "corrected", "adjusted"]], twin)
    for k, name in enumerate(("theoretical", "corrected", "adjusted")):
        np.testing.assert_allclose(found[f"empirical_over_{name}"], twin[:, 1] / twin[:, 2 + k])


def test_the_theory_of_a_simple_random_sample(outcomes):
    """sqrt((M - n) / (M - 1)) sd / sqrt(n) of a mean without replacement, shrunk by the prior to n / (n + 1)."""
    n, m = np.array([16, 24, 32, 40, 64, 80, 120]), 160
    found = subsample_study(outcomes[:, 0], n, n_repeats=4000)
    exact = np.sqrt((m - n) / (m - 1)) * outcomes[:, 0].std() / np.sqrt(n) * n / (n + 1)
    np.testing.assert_allclose(found["empirical"], exact, rtol=5 / np.sqrt(2 * 4000))


def test_coins_are_as_predicted_and_averages_less(outcomes):
    """Of wins and losses the corrected error is the empirical one but for the prior; averages over runs vary less."""
    coins = np.repeat([1.0, 0.0], [110, 50])
    found = subsample_study(coins, (40, 64, 80), n_repeats=4000, seed=1)
    np.testing.assert_allclose(found["empirical_over_corrected"], 1, rtol=0.03 + 5 / np.sqrt(8000))
    assert (subsample_study(outcomes)["empirical_over_corrected"] < 0.8).all()


def test_table_9():
    """Errors of a pool with that win share: its three columns, through the mean over subsamples."""
    coins = np.repeat([1.0, 0.0], [76, 84])
    found = subsample_study(coins, kappa=0.85, n_repeats=1000)
    published = [0.117833, 0.098042, 0.085735, 0.077139, 0.061535, 0.055206, 0.045260]
    np.testing.assert_allclose(found["corrected"] / found["theoretical"], np.sqrt((160 - found["n"]) / 159))
    np.testing.assert_allclose(found["adjusted"], 0.85 * found["corrected"])
    np.testing.assert_allclose(found["theoretical"], published, rtol=0.03)


def test_the_whole_pool_leaves_nothing(outcomes):
    found = subsample_study(outcomes, [160], n_repeats=20)
    assert found["empirical"][0] == 0
    assert found["corrected"][0] == 0
    assert found["empirical_over_theoretical"][0] == 0
    assert found[["empirical_over_corrected", "empirical_over_adjusted"]].isna().all(axis=None)
    assert found["theoretical"][0] == pytest.approx(
        anchored_elo(outcomes.sum(0), 0, 160 - outcomes.sum(0)).probability_se.mean()
    )


def test_repeats_in_parts_are_the_repeats(outcomes, monkeypatch):
    whole = subsample_study(outcomes, (16, 40), n_repeats=50, seed=3)
    monkeypatch.setattr(anchored_tables, "_HELD", 7 * 160)
    pd.testing.assert_frame_equal(subsample_study(outcomes, (16, 40), n_repeats=50, seed=3), whole)


def test_memory():
    """Of 2,000 prompts of 20 judges, and 500 repeats, 40 prompts are gathered at a time."""
    tracemalloc.start()
    subsample_study(np.random.default_rng(0).random((2000, 20)), [40], n_repeats=500)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6


def test_seeds_and_one_repeat(outcomes):
    one, again, other = (subsample_study(outcomes, [30], n_repeats=50, seed=s) for s in (0, 0, 1))
    assert one.equals(again)
    assert one["empirical"][0] != other["empirical"][0]
    assert np.isnan(subsample_study(outcomes, [30], n_repeats=1)["empirical"][0])


@pytest.mark.parametrize(("values", "sizes", "message"), [
    ([0.5, 1.2], [1], r"outcomes must be \(M,\) or \(M, G\) numbers in \[0, 1\], none missing; got shape \(2, 1\)"),
    ([0.5, np.nan], [1], "none missing"),
    (np.ones((2, 2, 2)), [1], r"got shape \(2, 2, 2\)"),
    ([0.5, 1.0], [1, 3], r"sizes must be whole numbers between 1 and the 2 prompts, got \[1, 3\]"),
    ([0.5, 1.0], [0], "sizes must be whole numbers between 1 and the 2 prompts"),
    ([0.5, 1.0], 1, "sizes must be whole numbers between 1 and the 2 prompts, got 1"),
])  # fmt: skip
def test_errors(values, sizes, message):
    with pytest.raises(ValueError, match=message):
        subsample_study(values, sizes)


def test_kappa_is_a_factor():
    with pytest.raises(ValueError, match=r"kappa must lie in \(0, 1\]"):
        subsample_study([0.0, 1.0], [1], kappa=1.5)


def test_repeats_are_needed():
    with pytest.raises(ValueError, match="n_repeats must be at least 1, got 0"):
        subsample_study([0.5, 1.0], [1], n_repeats=0)
