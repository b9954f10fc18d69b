"""Simulated votes have the strengths, ties and labels that they say."""

import numpy as np
import pandas as pd
import pytest

from jaxeval import Battles, fit_bradley_terry, simulate_battles, simulate_strengths, simulate_votes

TARGET = {"model_a": 1.0, "model_b": 0.0, "tie": 0.5, "both_bad": 0.5}


@pytest.fixture(scope="module")
def strengths():
    return pd.Series({"weak": -1.5, "fair": 0.0, "good": 0.4, "best": 1.1})


@pytest.fixture(scope="module")
def votes(strengths):
    return simulate_votes(200_000, strengths=strengths, tie_rate=0.4, seed=11)


@pytest.fixture(scope="module")
def pairs(votes, strengths):
    """Every ordered pair: votes, expected score, and the counts of the labels."""
    counts = pd.crosstab([votes.model_a, votes.model_b], votes.winner)
    n = counts.sum(axis=1)
    a, b = (strengths[counts.index.get_level_values(k)].to_numpy() for k in (0, 1))
    return counts, n, 1 / (1 + np.exp(b - a))


class TestVotes:
    def test_expected_score(self, pairs):
        """A tie counting half, exactly s(theta_a - theta_b): 12 ordered pairs within 4 standard errors."""
        counts, n, p = pairs
        assert len(n) == 12
        score = (counts.model_a + 0.5 * (counts.tie + counts.both_bad)) / n
        tie = 0.4 * 4 * p * (1 - p)
        error = np.sqrt((p * (1 - p) - tie / 4) / n)
        assert (np.abs(score - p) / error).max() < 4

    def test_tie_rate(self, pairs):
        """0.4 between equals, 0.4 * 4 p (1 - p) between others; two fifths of ties are both-bad."""
        counts, n, p = pairs
        tie = 0.4 * 4 * p * (1 - p)
        share = (counts.tie + counts.both_bad) / n
        assert (np.abs(share - tie) / np.sqrt(tie * (1 - tie) / n)).max() < 4
        ties = (counts.tie + counts.both_bad).sum()
        assert abs(counts.both_bad.sum() / ties - 0.4) < 4 * np.sqrt(0.4 * 0.6 / ties)

    def test_sides_are_exchangeable(self, votes):
        n = votes.groupby(["model_a", "model_b"], observed=True).size()
        swapped = n.reorder_levels([1, 0]).reindex(n.index)
        assert (np.abs(n - swapped) / np.sqrt(n + swapped)).max() < 4

    def test_the_fit_finds_the_strengths(self, votes, strengths):
        fit = fit_bradley_terry(votes)
        truth = 1000 + 400 / np.log(10) * (strengths - strengths.mean())
        z = (fit.ratings - truth[fit.ratings.index]) / fit.standard_errors
        assert z.abs().max() < 4

    def test_no_self_battles_and_only_known_labels(self, votes):
        assert (votes.model_a.astype(str) != votes.model_b.astype(str)).all()
        assert set(votes.winner) == set(TARGET)

    def test_columns(self, votes):
        assert votes.columns.tolist() == ["model_a", "model_b", "winner", "language", "voter"]
        assert len(votes) == 200_000
        assert votes.notna().all(axis=None)
        assert votes.voter.nunique() > 50_000
        shares = votes.language.value_counts(normalize=True)
        assert abs(shares["English"] - 0.55) < 4 * np.sqrt(0.55 * 0.45 / 200_000)
        assert len(shares) == 5

    @pytest.mark.parametrize("exponent", [0.0, 1.0, 0.6, 0, 1])
    def test_popularity(self, exponent):
        votes = simulate_votes(40_000, 8, popularity_exponent=exponent, seed=2)
        n = pd.concat([votes.model_a.astype(str), votes.model_b.astype(str)]).value_counts()
        if exponent == 0:
            assert (np.abs(n - 10_000) / np.sqrt(10_000 * 7 / 8)).max() < 4
        else:
            assert n.max() / n.min() > 8**exponent / 2  # less than 8^exponent, as no model meets itself

    def test_no_ties(self):
        assert set(simulate_votes(2000, 5, tie_rate=0.0).winner) == {"model_a", "model_b"}

    def test_seeds(self):
        one, same, other = (simulate_votes(500, 6, seed=s) for s in (3, 3, 4))
        pd.testing.assert_frame_equal(one, same)
        assert (one.model_a.astype(str) != other.model_a.astype(str)).any()
        strengths = simulate_strengths(6, seed=3)
        pd.testing.assert_frame_equal(one, simulate_votes(500, strengths=strengths, seed=3))
        assert not one.equals(simulate_votes(500, strengths=strengths, seed=4))

    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"n_battles": 0}, "n_battles must be at least 1, got 0"),
            ({"n_battles": -3}, "n_battles must be at least 1, got -3"),
            ({"n_battles": 10**23}, "n_battles must be an integer from 1 to 2"),
            ({"n_models": 1}, "n_models must be at least 2"),
            ({"n_models": 10**23}, "n_models must be an integer from 2 to 2"),
            ({"seed": 10**23}, "seed must be an integer from 0 to 2"),
            ({"strengths": pd.Series({"a": 0.0})}, "strengths need two models or more, got 1"),
            ({"tie_rate": -0.1}, r"tie_rate must lie in \[0, 0.5\], got -0.1"),
            ({"tie_rate": 0.51}, "tie_rate must lie in"),
            ({"tie_rate": np.nan}, "tie_rate must lie in"),
            ({"strengths": pd.Series({"a": 0.0, "b": np.nan})}, "strengths"),
        ],
    )
    def test_errors(self, options, match):
        with pytest.raises(ValueError, match=match):
            simulate_votes(**{"n_battles": 10, "n_models": 4, **options})


class TestStrengths:
    def test_best_first_and_centred(self):
        strengths = simulate_strengths(200, 2.0, seed=1)
        assert strengths.is_monotonic_decreasing
        assert abs(strengths.mean()) < 1e-12
        # A standard deviation of 200 normals has relative standard error 1 / sqrt(400).
        assert strengths.std() == pytest.approx(2.0, rel=4 / np.sqrt(400))
        assert strengths.index[0] == "model-001"
        assert strengths.index.is_monotonic_increasing

    def test_seeds(self):
        assert simulate_strengths(9, seed=1).equals(simulate_strengths(9, seed=1))
        assert not simulate_strengths(9, seed=1).equals(simulate_strengths(9, seed=2))

    def test_too_few(self):
        with pytest.raises(ValueError, match="n_models must be at least 2, got 1"):
            simulate_strengths(1)


def test_battles_are_the_votes():
    battles, votes = simulate_battles(500, 6, seed=3), simulate_votes(500, 6, seed=3)
    expected = Battles.from_pandas(votes)
    assert battles.report == expected.report
    np.testing.assert_array_equal(battles.target, expected.target)
    np.testing.assert_array_equal(battles.target, votes.winner.map(TARGET).astype(float))
    np.testing.assert_array_equal(battles.models[battles.model_a], votes.model_a.astype(str))
    assert battles.codes("language")[0].tolist() == expected.codes("language")[0].tolist()
