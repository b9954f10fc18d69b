"""Simulated votes have the strengths, ties and labels that they say."""

import numpy as np
import pandas as pd
import pytest

import jaxeval
from jaxeval import (
    Battles,
    fit_bradley_terry,
    fit_plackett_luce,
    simulate_battles,
    simulate_evaluators,
    simulate_judges,
    simulate_rankings,
    simulate_scores,
    simulate_strengths,
    simulate_votes,
)

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

    @pytest.mark.parametrize(("options", "match"), [
        ({"n_battles": 0}, "n_battles must be at least 1, got 0"),
        ({"n_battles": -3}, "n_battles must be at least 1, got -3"),
        ({"n_battles": 10**23}, "n_battles must be an integer from 1 to 2"),
        ({"n_models": 1}, "n_models must be at least 2"),
        ({"n_models": 10**23}, "n_models must be an integer from 2 to 2"),
        ({"seed": 10**23}, "seed must be an integer from 0 to 2"),
        ({"strengths": pd.Series({"a": 0.0})}, "strengths must have at least two models, got 1"),
        ({"tie_rate": -0.1}, r"tie_rate must lie in \[0, 0.5\], got -0.1"),
        ({"tie_rate": 0.51}, "tie_rate must lie in"),
        ({"tie_rate": np.nan}, "tie_rate must lie in"),
        ({"strengths": pd.Series({"a": 0.0, "b": np.nan})}, "strengths"),
    ])  # fmt: skip
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


@pytest.fixture(scope="module")
def detailed():
    return simulate_votes(60_000, 9, tie_rate=0, details=True, seed=4)


class TestDetails:
    @pytest.mark.slow
    def test_the_other_columns_are_the_same(self, detailed):
        votes = simulate_votes(60_000, 9, tie_rate=0, seed=4)
        pd.testing.assert_frame_equal(detailed[votes.columns], votes)

    @pytest.mark.parametrize("n_models", [2, 9])
    def test_no_prompt_comes_twice_for_two_models(self, n_models):
        votes = simulate_votes(4_000, n_models, details=True).astype({"model_a": str, "model_b": str})
        sides = np.sort(votes[["model_a", "model_b"]].to_numpy(), axis=1)
        keys = pd.DataFrame({"prompt": votes["prompt"], "one": sides[:, 0], "other": sides[:, 1]})
        assert not keys.duplicated().any()
        assert votes["prompt"].nunique() <= max(1_000, 4_000 * (n_models == 2))

    @pytest.mark.slow
    def test_length_is_a_covariate_of_the_known_coefficient(self, detailed):
        """.0015 logits a token; and the strengths are those beside it less what a model's own length gives."""
        battles = Battles.from_pandas(detailed, keep=["length_a", "length_b"])
        fit = fit_bradley_terry(battles, features=[("length_a", "length_b")], normalize=False)
        coefficients = fit.coefficients().iloc[0]
        assert abs(coefficients["coefficient"] - 0.0015) < 4 * coefficients["standard_error"]
        plain = fit_bradley_terry(battles)
        wordy = (
            sum(detailed.groupby(f"model_{side}", observed=True)[f"length_{side}"].mean() for side in "ab").to_numpy()
            / 2
        )
        moved = (fit.ratings - plain.ratings)[detailed["model_a"].cat.categories].to_numpy() / 400 * np.log(10)
        assert np.corrcoef(moved, wordy)[0, 1] < -0.9

    def test_times_and_numbers_follow_the_rows(self, detailed):
        assert detailed["time"].is_monotonic_increasing
        assert detailed["time"].iloc[0] >= pd.Timestamp("2026-01-01")
        assert detailed["time"].iloc[-1] < pd.Timestamp("2026-01-31")
        assert detailed["vote"].tolist() == list(range(60_000))


class TestJudges:
    def test_how_often_they_repeat_people(self):
        """A judge without a taste of its own repeats an outcome, or decides as people do."""
        table = simulate_judges(40_000, 6, agreement=[1.0, 0.5, 0.0], taste=0.0, tie_rate=0.0, seed=2)
        assert (table["human"].astype(str) == table["judge-1"]).all()
        again, alone = ((table["human"].astype(str) == table[f"judge-{k}"]).mean() for k in (2, 3))
        assert abs(again - (0.5 + 0.5 * alone)) < 4 * np.sqrt(0.25 / 40_000)

    def test_side_bias(self):
        equal = pd.Series({"x": 0.0, "y": 0.0})
        table = simulate_judges(
            20_000, agreement=[0.0, 0.0], side_biases=[0.0, 1.0], taste=0.0, strengths=equal, tie_rate=0.0
        )
        shares = [(table[f"judge-{k}"] == "model_a").mean() for k in (1, 2)]
        np.testing.assert_allclose(shares, [0.5, 1 / (1 + np.exp(-1))], atol=4 * np.sqrt(0.25 / 20_000))

    @pytest.mark.parametrize(("options", "match"), [
        ({"agreement": []}, "every judge needs an agreement and a side bias, got 0 for agreement and 0 for"),
        ({"side_biases": [0.5]}, "got 3 for agreement and 1 for side_biases"),
        ({"agreement": [1.1]}, r"agreement must lie in \[0, 1\], got 1.1"),
        ({"taste": -1}, "taste must be >= 0 and finite, got -1"),
    ])  # fmt: skip
    def test_errors(self, options, match):
        with pytest.raises(ValueError, match=match):
            simulate_judges(10, 4, **options)


class TestScores:
    def test_shares_are_those_of_the_curve(self):
        """Items of one difficulty: a model of ability t solves s(t) of them."""
        abilities = pd.Series({"a": 1.0, "b": 0.0, "c": -2.0})
        scores = simulate_scores(20_000, abilities=abilities, difficulty_sd=0, seed=1)
        share = scores.groupby("model")["score"].mean()
        np.testing.assert_allclose(share, 1 / (1 + np.exp(-abilities)), atol=4 * np.sqrt(0.25 / 20_000))

    def test_rows_and_columns(self):
        scores = simulate_scores(10, 3, n_benchmarks=3, n_trials=2, items_per_passage=4)
        assert len(scores) == 10 * 3 * 2
        assert not scores.duplicated(["model", "item", "trial"]).any()
        of_items = scores.groupby("item")[["benchmark", "passage"]].first()
        assert of_items["benchmark"].value_counts().to_dict() == {"benchmark-1": 4, "benchmark-2": 3, "benchmark-3": 3}
        assert of_items["passage"].tolist() == [0] * 4 + [1] * 4 + [2] * 2
        assert list(simulate_scores(10, 3).columns) == ["model", "item", "score"]

    def test_items_of_a_passage_are_alike(self):
        """Half of the variance of difficulties is a passage's: items of one correlate by a half."""
        scores = simulate_scores(1_000, abilities=pd.Series(np.zeros(400), [f"m{k}" for k in range(400)]),
                                 items_per_passage=2)  # fmt: skip
        share = scores.groupby("item")["score"].mean().to_numpy().reshape(-1, 2)
        logits = np.log(share.clip(0.002, 0.998) / (1 - share.clip(0.002, 0.998)))
        assert abs(np.corrcoef(logits.T)[0, 1] - 0.5) < 0.13  # 4 standard errors of 500 pairs

    @pytest.mark.parametrize(("options", "match"), [
        ({"n_items": 0}, "n_items must be at least 1, got 0"),
        ({"n_benchmarks": 11}, "n_benchmarks=11 is more than n_items=10"),
        ({"difficulty_sd": -1}, "difficulty_sd must be >= 0 and finite, got -1"),
        ({"n_trials": 0}, "n_trials must be at least 1"),
        ({"items_per_passage": 0}, "items_per_passage must be at least 1"),
    ])  # fmt: skip
    def test_errors(self, options, match):
        with pytest.raises(ValueError, match=match):
            simulate_scores(**{"n_items": 10, **options})


class TestEvaluators:
    def test_errors_are_those_asked_for(self):
        table = simulate_evaluators(2_000, errors=[0.0, 30.0], seed=5)
        off = [10 * (table[f"evaluator-{k}"] - 50) - (table["arena"] - 1000) for k in (1, 2)]
        assert off[0].abs().max() < 0.6  # rounding
        assert off[1].std() == pytest.approx(30, rel=4 / np.sqrt(4_000))

    @pytest.mark.parametrize("errors", [[], [-1.0], [np.inf]])
    def test_errors(self, errors):
        with pytest.raises(ValueError, match="errors must be finite and >= 0 for at least one evaluator"):
            simulate_evaluators(10, errors=errors)


class TestRankings:
    def test_the_fit_finds_the_strengths(self, strengths):
        table = simulate_rankings(4_000, strengths=strengths, length=3, tie_rate=0.0, seed=1)
        fit = fit_plackett_luce(jaxeval.Rankings.from_pandas(table))
        z = (fit.strengths - (strengths - strengths.mean())) / (fit.standard_errors * np.log(10) / 400)
        assert z.abs().max() < 4

    def test_lengths_and_ties(self):
        table = simulate_rankings(2_000, 5, length=4, tie_rate=0.3)
        signs = table["ranking"].str.findall("[>=]")
        assert signs.str.len().eq(3).all()
        assert abs(np.mean([sign == "=" for own in signs for sign in own]) - 0.3) < 4 * np.sqrt(0.21 / 6_000)

    @pytest.mark.parametrize(("options", "match"), [
        ({"length": 5}, "length must lie between 2 and the 4 items, got 5"),
        ({"tie_rate": 1.5}, r"tie_rate must lie in \[0, 1\]"),
        ({"n_rankings": 0}, "n_rankings must be at least 1"),
    ])  # fmt: skip
    def test_errors(self, options, match):
        with pytest.raises(ValueError, match=match):
            simulate_rankings(**{"n_rankings": 10, "n_items": 4, **options})
