"""Screening judges by their repeated runs, what they agree on, and what pooling them buys."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from jaxeval import judge_screening
from jaxeval.anchored import anchored_elo
from jaxeval.anchored_simulation import simulate_anchored_verdicts
from jaxeval.anchored_verdicts import AnchoredVerdicts
from jaxeval.columns import DataError
from jaxeval.gauge import ELO_PER_LOGIT
from jaxeval.icc import icc3
from jaxeval.item_resampling import resampled_sums
from jaxeval.judge_screening import (
    judge_kappas,
    pooled_scores,
    pooled_variance,
    pooling_curve,
    reliability_factor,
    screen_judges,
    single_run_reliability,
    task_heterogeneity,
    width_by_threshold,
)

OUTCOME = {"win": 1.0, "tie": 0.5, "loss": 0.0}
NOISE = (0.2, 0.2, 0.3, 2.5)


def simulated(**options):
    options = {
        "strengths": (0.8, 0.0),
        "n_items": 60,
        "n_judges": 4,
        "n_runs": 4,
        "run_sd": NOISE,
        "seed": 2,
        **options,
    }
    return simulate_anchored_verdicts(**options)


def answers(frame):
    """(answers x runs) of each judge."""
    frame = frame.assign(outcome=frame["verdict"].map(OUTCOME))
    return {j: t.pivot_table("outcome", ["model", "item"], "run") for j, t in frame.groupby("judge")}


@pytest.fixture(scope="module")
def frame():
    return simulated()


@pytest.fixture(scope="module")
def verdicts(frame):
    return AnchoredVerdicts.from_pandas(frame)


@pytest.fixture(scope="module")
def screen(verdicts):
    return screen_judges(verdicts, n_resamples=2000)


@pytest.fixture(scope="module")
def curve(verdicts, screen):
    return pooling_curve(verdicts, "model-1", screen=screen, n_resamples=500)


class TestScreening:
    def test_judges_one_by_one(self, frame, screen):
        for judge, table in answers(frame).items():
            found = icc3(table)
            for name in ("single", "single_lower", "single_upper", "average", "average_lower", "average_upper", "n"):
                assert screen.table.loc[judge, name] == pytest.approx(getattr(found, name))
        assert screen.strong == ["judge-1", "judge-2", "judge-3"]
        assert (screen.threshold, screen.k) == (0.9, 4)
        assert (screen.table["status"] == "ok").all()

    def test_the_threshold_is_reached(self, verdicts, screen):
        exactly = screen.table["average"].sort_values().iloc[1]
        assert len(screen_judges(verdicts, exactly, n_resamples=10).strong) == 3
        assert len(screen_judges(verdicts, exactly + 1e-9, n_resamples=10).strong) == 2

    def test_correlation_of_run_means(self, frame, screen):
        means = pd.DataFrame({judge: table.mean(axis=1) for judge, table in answers(frame).items()})
        np.testing.assert_allclose(screen.correlation, means.corr())
        rho = screen.table["average"]
        assert screen.bound.loc["judge-1", "judge-4"] == pytest.approx(np.sqrt(rho["judge-1"] * rho["judge-4"]))
        np.testing.assert_array_equal(np.diag(screen.bound), 1)

    @pytest.mark.parametrize("name", ["single", "average"])
    def test_resamples_are_naive_resamples_in_law(self, frame, screen, name):
        """Items with all their models: ends of the interval within the Monte Carlo error of both sides."""
        rng = np.random.default_rng(0)
        for judge in ("judge-1", "judge-4"):
            table = answers(frame)[judge].to_numpy().reshape(2, 60, 4)
            drawn = table[:, rng.integers(60, size=(2000, 60))].transpose(1, 0, 2, 3).reshape(2000, 120, 4)
            twin = getattr(icc3(drawn), name)
            for tail, end in ((0.025, "lower"), (0.975, "upper")):
                mine = screen.table.loc[judge, f"{name}_boot_{end}"]
                # The share of naive resamples below it, twice binomial.
                assert np.mean(twin < mine) == pytest.approx(tail, abs=5 * np.sqrt(2 * 0.025 * 0.975 / 2000))

    def test_a_resample_is_the_table_with_items_repeated(self, frame, monkeypatch):
        gone = (frame["judge"] == "judge-2") & (frame["item"] < 9) & (frame["run"] == 1)
        times = np.random.default_rng(1).multinomial(60, np.full(60, 1 / 60))
        monkeypatch.setattr(judge_screening, "resampled_sums", lambda columns, *_, **__: times[None] @ columns)
        found = screen_judges(AnchoredVerdicts.from_pandas(frame[~gone]), n_resamples=1).table
        for judge, table in answers(frame[~gone]).items():
            twin = icc3(table.loc[np.repeat(table.index, times[table.index.get_level_values("item")])].dropna())
            assert found.loc[judge, "single_boot_lower"] == pytest.approx(twin.single)
            assert found.loc[judge, "average_boot_upper"] == pytest.approx(twin.average)

    def test_seeds(self, verdicts, screen):
        again, other = screen_judges(verdicts, n_resamples=2000), screen_judges(verdicts, n_resamples=2000, seed=1)
        pd.testing.assert_frame_equal(again.table, screen.table)
        assert (other.table["single_boot_lower"] != screen.table["single_boot_lower"]).any()

    def test_the_order_of_rows_does_not_matter(self, frame, screen):
        shuffled = AnchoredVerdicts.from_pandas(frame.sample(frac=1, random_state=0))
        pd.testing.assert_frame_equal(screen_judges(shuffled, n_resamples=2000).table, screen.table)

    def test_judges_that_differ_are_told(self):
        found = screen_judges(AnchoredVerdicts.from_pandas(simulated(judge_sd=2.0)), n_resamples=10)
        assert any("pairs of judges correlate less than their reliabilities promise" in w for w in found.warnings)
        same = screen_judges(AnchoredVerdicts.from_pandas(simulated(judge_sd=0.0, run_sd=0.4)), n_resamples=10)
        assert not any("correlate" in w for w in same.warnings)

    def test_an_interval_below_the_threshold_is_told(self, verdicts, screen):
        unclear = screen.table.loc["judge-3"]
        threshold = (unclear["average_lower"] + unclear["average"]) / 2
        found = screen_judges(verdicts, threshold, n_resamples=10)
        assert any(f"judge-3 reach below {threshold:g}: more answers would tell" in w for w in found.warnings)
        assert not any("reach below" in w for w in screen_judges(verdicts, -9.0, n_resamples=10).warnings)

    def test_resamples_are_needed(self, verdicts):
        with pytest.raises(ValueError, match="n_resamples must be at least 1, got 0"):
            screen_judges(verdicts, n_resamples=0)

    def test_one_run_is_not_enough(self, frame):
        with pytest.raises(DataError, match="reliability needs repeated runs: name the column"):
            screen_judges(AnchoredVerdicts.from_pandas(frame[frame["run"] == 0]))


class TestIncomplete:
    def test_answers_without_a_run_are_left_out(self, frame):
        gone = (frame["judge"] == "judge-2") & (frame["item"] < 3) & (frame["run"] == 1)
        found = screen_judges(AnchoredVerdicts.from_pandas(frame[~gone]), n_resamples=20)
        row = found.table.loc["judge-2"]
        assert (row["n"], row["n_incomplete"]) == (114, 6)
        assert row["single"] == pytest.approx(icc3(answers(frame[~gone])["judge-2"].dropna()).single)
        assert found.warnings[0].startswith("6 answers that 1 judges judged in some runs, not in all 4")
        full = screen_judges(AnchoredVerdicts.from_pandas(frame), n_resamples=20).table
        assert found.table.loc["judge-1", "single_boot_lower"] != row["single_boot_lower"]
        assert found.table.loc["judge-1", "single"] == full.loc["judge-1", "single"]

    def test_answers_that_a_judge_never_saw(self, frame):
        gone = (frame["judge"] == "judge-2") & (frame["item"] < 30)
        found = screen_judges(AnchoredVerdicts.from_pandas(frame[~gone]), n_resamples=20)
        tables = answers(frame[~gone])
        means = pd.DataFrame({judge: tables[judge].mean(axis=1) for judge in ("judge-1", "judge-2")})
        assert found.correlation.loc["judge-1", "judge-2"] == pytest.approx(means.corr().iloc[0, 1])
        curve = pooling_curve(AnchoredVerdicts.from_pandas(frame[~gone]), "model-1", screen=found, n_resamples=20)
        assert np.isfinite(curve).all(axis=None)

    def test_a_judge_of_whom_nothing_is_complete(self, frame):
        gone = (frame["judge"] == "judge-2") & (frame["run"] == 1)
        found = screen_judges(AnchoredVerdicts.from_pandas(frame[~gone]), n_resamples=20)
        assert found.table.loc["judge-2", "status"] == "fewer than two complete items"
        assert np.isnan(
            found.table.loc["judge-2", ["single", "single_boot_lower", "average_boot_upper"]].astype(float)
        ).all()
        assert "judge-2" not in found.strong

    def test_a_judge_that_never_varies_or_never_errs(self, frame):
        flat = frame.assign(verdict=frame["verdict"].where(frame["judge"] != "judge-4", "win"))
        first = frame[(frame["judge"] == "judge-1") & (frame["run"] == 0)].set_index(["model", "item"])["verdict"]
        sure = flat["judge"] == "judge-1"
        flat.loc[sure, "verdict"] = first[pd.MultiIndex.from_frame(flat.loc[sure, ["model", "item"]])].to_numpy()
        table = screen_judges(AnchoredVerdicts.from_pandas(flat), n_resamples=20).table
        assert table.loc["judge-4", "status"] == "items do not vary"
        assert table.loc["judge-1", "status"] == "runs never differ"
        assert table.loc["judge-1", ["average", "average_boot_lower", "average_boot_upper"]].tolist() == pytest.approx(
            [1.0] * 3
        )

    def test_items_of_tasks_that_share_names(self, frame):
        """Also where task and item read the same together."""
        table = frame.assign(task=np.where(frame["item"] < 30, "t", "t / 1"), item=frame["item"] % 30)
        table["item"] = np.where(table["task"] == "t", "1 / " + table["item"].astype(str), table["item"].astype(str))
        found = screen_judges(AnchoredVerdicts.from_pandas(table), n_resamples=20).table
        np.testing.assert_allclose(
            found["single"], screen_judges(AnchoredVerdicts.from_pandas(frame), n_resamples=20).table["single"]
        )


def cohen(x, y):
    observed = np.mean(x == y)
    expected = sum(np.mean(x == c) * np.mean(y == c) for c in ("win", "tie", "loss"))
    return (observed - expected) / (1 - expected)


class TestKappa:
    def test_pairs_one_by_one(self, frame):
        some = frame.sample(frac=0.8, random_state=3)
        found = judge_kappas(AnchoredVerdicts.from_pandas(some))
        wide = some.pivot_table("verdict", ["model", "item", "run"], "judge", aggfunc="first")
        for a, b in combinations(wide.columns, 2):
            both = wide[[a, b]].dropna()
            assert found.loc[a, b] == pytest.approx(cohen(both[a], both[b]))
            assert found.loc[b, a] == found.loc[a, b]
        np.testing.assert_allclose(np.diag(found), 1)

    def test_one_verdict_only_has_none(self):
        table = pd.DataFrame({"judge": ["x", "y"] * 2, "item": [1, 1, 2, 2], "verdict": "win"})
        assert judge_kappas(AnchoredVerdicts.from_pandas(table)).isna().all(axis=None)

    def test_it_needs_verdicts(self):
        table = pd.DataFrame({"judge": ["x", "y"], "item": [1, 1], "verdict": [0.3, 1.0]})
        with pytest.raises(DataError, match="Cohen's kappa needs verdicts of win, tie and loss"):
            judge_kappas(AnchoredVerdicts.from_pandas(table))

    def test_the_factor_is_the_root_of_the_mean(self):
        kappas = pd.DataFrame([[1, 0.5, 0.7], [0.5, 1, np.nan], [0.7, np.nan, 1]])
        assert reliability_factor(kappas) == pytest.approx(np.sqrt(0.6))
        with pytest.raises(ValueError, match=r"the mean kappa of 1 pairs of judges is -0\.2: there is no such factor"):
            reliability_factor(pd.DataFrame([[1, -0.2], [-0.2, 1]]))
        with pytest.raises(ValueError, match="the mean kappa of 0 pairs of judges is nan"):
            reliability_factor(pd.DataFrame([[1.0]]))


class TestPooling:
    def test_the_variance_is_that_of_a_mean_of_correlated_ratings(self):
        for n in (1, 2, 7):
            covariance = 9.0 * (0.6 + 0.4 * np.eye(n))
            assert pooled_variance(9.0, 0.6, n) == pytest.approx(np.ones(n) @ covariance @ np.ones(n) / n**2)
        np.testing.assert_allclose(pooled_variance([1, 2], 1.0, [[1], [5]]), [[1, 2], [1, 2]])

    @pytest.mark.parametrize("judges", [None, ["judge-4", "judge-1"], ["judge-2"]])
    def test_scores_are_means_over_judges(self, frame, verdicts, screen, judges):
        chosen = screen.strong if judges is None else judges
        found = pooled_scores(verdicts, judges, screen=screen, level=0.8, prior=1.0).set_index("model")
        share = frame.assign(o=frame["verdict"].map(OUTCOME)).groupby(["model", "judge"])["o"].mean()
        rho = screen.table.loc[chosen, "average"].mean()
        seen = [screen.correlation.loc[a, b] for a, b in combinations(chosen, 2)] or [rho]
        for model in ("model-1", "model-2"):
            elo = anchored_elo(60 * share[model][chosen], 0, 60 - 60 * share[model][chosen], prior=1.0)
            row, j = found.loc[model], len(chosen)
            assert row["n_judges"] == j
            assert row["rating"] == pytest.approx(elo.rating.mean())
            variance = (elo.rating_se**2).mean()
            assert row["rating_se"] ** 2 == pytest.approx(variance * (rho + (1 - rho) / j))
            assert row["rating_se_observed"] ** 2 == pytest.approx(variance * (np.mean(seen) * (j - 1) + 1) / j)
            assert row["rating_upper"] - row["rating"] == pytest.approx(1.2815515655446 * row["rating_se"])
            assert row["rating"] - row["rating_lower"] == pytest.approx(1.2815515655446 * row["rating_se"])
            assert np.isnan(row["spread"]) if j == 1 else row["spread"] == pytest.approx(elo.rating.std(ddof=1))

    def test_there_must_be_a_judge(self, verdicts):
        none = screen_judges(verdicts, 1.0, n_resamples=10)
        with pytest.raises(
            DataError, match=r"no judge reaches an ICC\(3,k\) of 1: choose judges, or a lower threshold"
        ):
            pooled_scores(verdicts, screen=none)
        with pytest.raises(DataError, match="no judge 'judge-9'; there are 'judge-1', "):
            pooled_scores(verdicts, ["judge-9"], screen=none)
        with pytest.raises(DataError, match=r"0 judges reach an ICC\(3,k\) of 1; a curve needs two"):
            pooling_curve(verdicts, "model-1", screen=none)


class TestCurve:
    def test_the_mean_over_all_sets_of_judges(self, frame, screen, curve):
        tables = answers(frame[frame["model"] == "model-1"])
        means = np.stack([tables[judge].mean(axis=1) for judge in screen.strong], 1)
        total = resampled_sums(means, 500, 0, "pooling")
        p = (total + 0.5) / 61
        ratings = ELO_PER_LOGIT * np.log(p / (1 - p))
        for j in (1, 2, 3):
            sets = [ratings[:, list(chosen)].mean(1).var(ddof=1) for chosen in combinations(range(3), j)]
            assert curve["empirical"][j - 1] == pytest.approx(np.mean(sets), rel=1e-6)

    def test_it_is_that_of_naive_resamples(self, frame, screen, curve):
        rng = np.random.default_rng(4)
        tables = answers(frame[frame["model"] == "model-1"])
        means = np.stack([tables[judge].mean(axis=1) for judge in screen.strong], 1)
        p = (means[rng.integers(60, size=(2000, 60))].sum(1) + 0.5) / 61
        twin = (ELO_PER_LOGIT * np.log(p / (1 - p))).mean(1).var()
        assert curve["empirical"][2] == pytest.approx(twin, rel=5 * np.sqrt(2 / 500 + 2 / 2000))

    def test_predictions(self, screen, curve):
        one = curve["empirical"][0]
        rho = screen.table.loc[screen.strong, "average"].mean()
        seen = np.mean([screen.correlation.loc[a, b] for a, b in combinations(screen.strong, 2)])
        j = np.array([1, 2, 3])
        np.testing.assert_array_equal(curve["n_judges"], j)
        np.testing.assert_allclose(curve["predicted"], one * (rho + (1 - rho) / j))
        np.testing.assert_allclose(curve["predicted_observed"], one * (seen + (1 - seen) / j))
        # What judges' tastes add is in the observed correlation, not in their reliabilities.
        np.testing.assert_allclose(curve["empirical"], curve["predicted_observed"], rtol=0.05)
        assert (curve["predicted"] >= curve["predicted_observed"]).all()

    def test_a_judge_that_saw_nothing_of_it_is_left_out(self, frame, screen):
        gone = (frame["judge"] == "judge-1") & (frame["model"] == "model-1")
        some = AnchoredVerdicts.from_pandas(frame[~gone])
        without = pooling_curve(some, "model-1", screen=screen, n_resamples=50)
        assert without["n_judges"].tolist() == [1, 2]
        seen = screen.correlation.loc["judge-2", "judge-3"]
        assert without["predicted_observed"][1] == pytest.approx(without["empirical"][0] * (1 + seen) / 2)

    def test_names(self, verdicts, screen):
        with pytest.raises(DataError, match="no model 'model-9'; there are 'model-1', 'model-2'"):
            pooling_curve(verdicts, "model-9", screen=screen)
        with pytest.raises(DataError, match=r"no anchor 'one'; there are '\(one anchor\)'"):
            pooling_curve(verdicts, "model-1", "one", screen=screen)

    def test_references_apart(self, frame, screen):
        two = pd.concat([frame.assign(anchor="one"), simulated(seed=5).assign(anchor="two")])
        read = AnchoredVerdicts.from_pandas(two)
        one = pooling_curve(read, "model-2", "one", screen=screen, n_resamples=50)
        alone = pooling_curve(AnchoredVerdicts.from_pandas(frame), "model-2", screen=screen, n_resamples=50)
        np.testing.assert_allclose(one, alone)


def test_width_by_threshold(verdicts, frame, screen):
    found = width_by_threshold(verdicts, screen, [0.0, 0.9, 1.0], level=0.9)
    share = frame.assign(o=frame["verdict"].map(OUTCOME)).groupby(["judge", "model"])["o"].mean()
    elo = anchored_elo(60 * share, 0, 60 - 60 * share, level=0.9)
    width = pd.Series(elo.probability_upper - elo.probability_lower, share.index)
    assert list(found["n_judges"]) == [4, 3, 0]
    assert found["median_width"][0] == pytest.approx(width.median())
    assert found["median_width"][1] == pytest.approx(width[screen.strong].median())
    assert np.isnan(found["median_width"][2])
    np.testing.assert_allclose(width_by_threshold(verdicts, screen)["threshold"], np.linspace(0, 1, 21))


class TestHeterogeneity:
    def test_by_hand(self):
        """Weights 1, 4, 4: mean 3, Q = 9 + 4 + 4 (1), C = 9 - 33/9."""
        y, s = [0.0, 4.0, 2.75], [1.0, 0.5, 0.5]
        assert task_heterogeneity(y, s) == pytest.approx((9 + 4 + 0.25 - 2) / (9 - 33 / 9))

    def test_none_is_zero_and_batches_are_rows(self):
        y = np.array([[0.0, 4.0, 2.75], [1.0, 1.0, 1.01]])
        found = task_heterogeneity(y, [1.0, 0.5, 0.5])
        np.testing.assert_allclose(found, [task_heterogeneity(row, [1.0, 0.5, 0.5]) for row in y])
        assert found[1] == 0

    def test_it_is_unbiased_where_it_is_large(self):
        rng = np.random.default_rng(6)
        s = np.array([0.1, 0.2, 0.3, 0.15, 0.1])
        y = rng.normal(size=(20_000, 5)) * np.sqrt(0.5 + s**2)
        found = task_heterogeneity(y, s)
        assert found.mean() == pytest.approx(0.5, abs=5 * found.std() / np.sqrt(20_000))

    @pytest.mark.parametrize(("y", "s"), [([1.0], [1.0]), ([1.0, 2.0], [1.0, 0.0]), ([1.0, 2.0], [1.0, np.nan])])
    def test_what_is_needed(self, y, s):
        with pytest.raises(ValueError, match="two tasks at least are needed, with positive standard errors"):
            task_heterogeneity(y, s)


def test_reliability_of_a_single_run(screen):
    np.testing.assert_allclose(single_run_reliability(screen.table["average"], screen.k), screen.table["single"])


def test_real_runs(data):
    """Scores of four responses a prompt in eight runs, some of them missing, by two judges."""
    runs = pd.read_parquet(data / "rb2_judge_k8_runs.parquet").query("collection == 'base_both_k8'")
    long = runs.melt(["judge", "item", "response_idx"], [f"s{r}" for r in range(1, 9)], "run", "score").dropna()
    table = long.assign(verdict=(long["score"].astype(float) - 1) / 9, model=long["response_idx"])
    found = screen_judges(AnchoredVerdicts.from_pandas(table), n_resamples=200)
    for judge, single, average, n in (
        ("gpt-5.4", 0.963919, 0.995343, 6914),
        ("gpt-5.4-mini", 0.930897, 0.990806, 6910),
    ):
        row = found.table.loc[judge]
        assert (row["single"], row["average"]) == pytest.approx((single, average), abs=5e-7)
        assert row["n"] == n
        # Answers to a prompt are alike, which the F interval does not know.
        assert row["single_boot_lower"] < row["single"] < row["single_boot_upper"]
        assert row["single_boot_upper"] - row["single_boot_lower"] > row["single_upper"] - row["single_lower"]
    assert found.correlation.iloc[0, 1] < found.bound.iloc[0, 1]
    assert any("correlate less than their reliabilities promise" in w for w in found.warnings)


class TestPropositions:
    """Repeated studies of 200 items, four judges and three runs; an item is won with a probability of its own."""

    REPEATS, JUDGES, RUNS = 4000, 4, 3

    def studies(self, taste):
        rng = np.random.default_rng(5)
        shape = self.REPEATS, 1, 200
        p = rng.beta(1.5, 1.0, shape)
        if taste:  # half of the judges' answers follow a probability of the judge's own
            own = rng.beta(1.5, 1.0, (self.REPEATS, self.JUDGES, 200))
            p = np.where(rng.random(own.shape) < 0.5, own, p)
        share = rng.binomial(self.RUNS, np.broadcast_to(p, (self.REPEATS, self.JUDGES, 200))) / self.RUNS
        wins = share.sum(-1)
        return anchored_elo(wins, 0.0, 200 - wins).rating  # (repeats, judges)

    def reliability(self):
        mean, variance = 0.6, 0.6 * 0.4 / 3.5
        return variance / (variance + (mean * (1 - mean) - variance) / self.RUNS)

    def test_ratings_of_judges_correlate_by_icc3k(self):
        ratings, rho = self.studies(taste=False), self.reliability()
        seen = np.corrcoef(ratings.T)[np.triu_indices(self.JUDGES, 1)]
        assert np.abs(seen - rho).max() < 4 * (1 - rho**2) / np.sqrt(self.REPEATS)

    def test_the_variance_of_their_mean(self):
        ratings, rho = self.studies(taste=False), self.reliability()
        expected = pooled_variance(ratings.var(0, ddof=1).mean(), rho, np.arange(1, self.JUDGES + 1))
        for j in range(1, self.JUDGES + 1):
            seen = ratings[:, :j].mean(1).var(ddof=1)
            assert seen == pytest.approx(expected[j - 1], rel=4 * np.sqrt(2 / self.REPEATS))

    def test_both_promise_too_much_of_judges_with_tastes_of_their_own(self):
        ratings, rho = self.studies(taste=True), self.reliability()
        seen = np.corrcoef(ratings.T)[np.triu_indices(self.JUDGES, 1)]
        assert seen.max() < rho / 2
