"""Pooling judges: ratings, their error against the number of judges, differences between tasks."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from panels import OUTCOME, answers, simulated
from scipy import stats

from jaxeval.anchored.elo import SCALES, Scale, anchored_elo
from jaxeval.anchored.pooling import pooled_scores, pooled_variance, pooling_curve, task_heterogeneity
from jaxeval.anchored.scores import anchored_scores
from jaxeval.anchored.screening import screen_judges, width_by_threshold
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.errors import DataError
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.resampling.rows import resampled_sums


@pytest.fixture(scope="module")
def screen(verdicts):
    return screen_judges(verdicts, n_resamples=10)


@pytest.fixture(scope="module")
def curve(verdicts, screen):
    return pooling_curve(verdicts, "model-1", screen=screen, n_resamples=500)


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
            # The prompts' outcomes by judge, and the prior's two prompts, which all judges share.
            means = np.stack([answers(frame)[judge].loc[model].mean(axis=1) for judge in chosen])
            p = elo.probability[:, None]
            away = np.concatenate([means - p, 1 - p, -p], axis=1)
            covariance = away @ away.T * np.outer(slope := ELO_PER_LOGIT / (p * (1 - p)), slope) / (62 * 63)
            assert row["rating_se"] == pytest.approx(np.sqrt(covariance.mean()))
            variance = np.diag(covariance).mean()
            assert row["rating_se_predicted"] ** 2 == pytest.approx(variance * (rho + (1 - rho) / j))
            observed = variance * (np.mean(seen) * (j - 1) + 1) / j
            assert row["rating_se_predicted_observed"] ** 2 == pytest.approx(observed)
            assert np.isnan(row["spread"]) if j == 1 else row["spread"] == pytest.approx(elo.rating.std(ddof=1))

    @pytest.mark.parametrize("link", SCALES)
    def test_the_probability_is_the_rating_mapped_back(self, verdicts, screen, link):
        """Corollary 1; and the interval is the Beta quantiles of that mean and error."""
        found = pooled_scores(verdicts, screen=screen, level=0.8, link=link)
        for end in ("", "_lower", "_upper"):
            mapped = ELO_PER_LOGIT * SCALES[link].map(found[f"probability{end}"].to_numpy())
            np.testing.assert_allclose(found[f"rating{end}"], mapped, rtol=1e-9)
        p, error = found["probability"], found["probability_se"]
        np.testing.assert_allclose(error * ELO_PER_LOGIT * SCALES[link].derivative(p), found["rating_se"])
        size = p * (1 - p) / error**2 - 1
        ends = stats.beta(p * size, (1 - p) * size).ppf([[0.1], [0.9]])
        np.testing.assert_allclose(found[["probability_lower", "probability_upper"]].T, ends, rtol=1e-9)

    @pytest.mark.parametrize("options", [{}, {"prior": 1.0, "level": 0.8, "pool_size": 90}, {"pool_size": 60}])
    def test_one_judge_has_its_own_interval(self, verdicts, screen, options):
        scores = anchored_scores(verdicts, ["model", "judge", "anchor"], **options).query("judge == 'judge-2'")
        found = pooled_scores(verdicts, ["judge-2"], screen=screen, **options)
        for pooled, single in (("", "probability"), ("_lower", "own_lower"), ("_upper", "own_upper")):
            np.testing.assert_allclose(found[f"probability{pooled}"], scores[single], rtol=1e-9)

    @pytest.mark.parametrize(
        ("strength", "run_sd"),
        [(0.5, 0.3), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((0.5, 1.5), (2.0, 0.3)))],
    )
    def test_intervals_hold_the_truth_as_often_as_they_say(self, strength, run_sd):
        """Replicates of a model, each with prompts of its own, by three judges who have tastes."""
        n = 150
        options = {"n_judges": 3, "n_runs": 3, "run_sd": run_sd}
        replicates = AnchoredVerdicts.from_pandas(simulated(**options, strengths=[strength] * n))
        found = pooled_scores(replicates, replicates.levels["judge"], screen=screen_judges(replicates, n_resamples=2))
        truth = simulated(**options, strengths=[strength], n_items=50_000, seed=3)["verdict"].map(OUTCOME).mean()
        covered = found["probability_lower"].le(truth) & found["probability_upper"].ge(truth)
        assert covered.mean() == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / n))
        rating = ELO_PER_LOGIT * np.log(truth / (1 - truth))
        assert (found["rating_lower"].le(rating) & found["rating_upper"].ge(rating) == covered).all()
        if strength < 1:  # the logarithm bends too much for the delta method beyond
            ratio = np.sqrt((found["rating_se"] ** 2).mean()) / found["rating"].std()
            assert ratio == pytest.approx(1, abs=4 / np.sqrt(2 * n))

    def test_judges_that_contradict_each_other_leave_everything_open(self):
        rows = [(j, i, r, v) for j, v in (("x", "win"), ("y", "loss")) for i in range(20) for r in range(2)]
        verdicts = AnchoredVerdicts.from_pandas(pd.DataFrame(rows, columns=["judge", "item", "run", "verdict"]))
        screen = screen_judges(verdicts, n_resamples=2)
        (row,) = pooled_scores(verdicts, ["x", "y"], screen=screen, prior=1e-3).itertuples()
        assert row.probability == pytest.approx(0.5)
        assert (row.probability_lower, row.probability_upper) == pytest.approx((0, 1))

    def test_a_link_needs_its_inverse(self, verdicts, screen):
        link = SCALES["probit"]
        given = pooled_scores(verdicts, screen=screen, link=Scale(*link))
        pd.testing.assert_frame_equal(given, pooled_scores(verdicts, screen=screen, link="probit"))
        with pytest.raises(ValueError, match=r"need the inverse of the link: give Scale\(map, derivative, inverse\)"):
            pooled_scores(verdicts, screen=screen, link=Scale(link.map, link.derivative))

    @pytest.mark.parametrize("backend", ["pyarrow", "numpy_nullable"])
    def test_names_of_other_types(self, frame, verdicts, screen, backend):
        typed = AnchoredVerdicts.from_pandas(frame.convert_dtypes(dtype_backend=backend))
        own = screen_judges(typed, n_resamples=10)
        found = pooled_scores(typed, screen=own)
        np.testing.assert_allclose(found["rating_se"], pooled_scores(verdicts, screen=screen)["rating_se"])
        assert len(pooling_curve(typed, "model-1", screen=own, n_resamples=20)) == 3

    def test_there_must_be_a_judge(self, verdicts):
        none = screen_judges(verdicts, 1.0, n_resamples=10)
        with pytest.raises(
            DataError, match=r"no judge reaches an ICC\(3,k\) of 1: choose judges, or a lower threshold \(--min-icc\)"
        ):
            pooled_scores(verdicts, screen=none)
        with pytest.raises(DataError, match=r"no judge 'judge-9'; there are 'judge-1', .*; did you mean 'judge-"):
            pooled_scores(verdicts, ["judge-9"], screen=none)
        with pytest.raises(DataError, match=r"0 judges of this model reach an ICC\(3,k\) of 1: a curve needs two"):
            pooling_curve(verdicts, "model-1", screen=none)


class TestJudgesThatAreNotThere:
    def test_they_are_left_out_of_the_rating_and_its_error(self, frame, verdicts, screen):
        part = AnchoredVerdicts.from_pandas(frame[frame["judge"] != "judge-1"])
        found = pooled_scores(part, screen=screen)
        expected = pooled_scores(verdicts, ["judge-2", "judge-3"], screen=screen)
        pd.testing.assert_frame_equal(found, expected)
        assert found.attrs["warnings"] == ["left out, as they gave no verdict here: judge-1"]
        assert expected.attrs["warnings"] == []

    def test_every_rating_has_the_error_of_its_own_judges(self, frame, verdicts, screen):
        gone = (frame["judge"] == "judge-1") & (frame["model"] == "model-2")
        found = pooled_scores(AnchoredVerdicts.from_pandas(frame[~gone]), screen=screen)
        all_three, two = (
            pooled_scores(verdicts, screen=screen),
            pooled_scores(verdicts, ["judge-2", "judge-3"], screen=screen),
        )
        pd.testing.assert_frame_equal(found, pd.concat([all_three[:1], two[1:]]))

    def test_judges_that_were_not_screened(self, frame, verdicts, screen):
        renamed = frame.assign(judge=frame["judge"].replace({"judge-2": "new"}))
        found = pooled_scores(AnchoredVerdicts.from_pandas(renamed), screen=screen)
        assert found["n_judges"].tolist() == [2, 2]
        assert found.attrs["warnings"] == [
            "left out, as they gave no verdict here: judge-2",
            "left out, as they were not screened: new",
        ]
        widths = width_by_threshold(AnchoredVerdicts.from_pandas(renamed), screen, [0.0])
        assert widths["n_judges"].tolist() == [3]
        assert widths.attrs["warnings"][1] == "left out, as they were not screened: new"

    def test_none_is_left(self, frame, screen):
        others = AnchoredVerdicts.from_pandas(frame.assign(judge=frame["judge"] + "-new"))
        message = r"the screened judges \(judge-1, .*\) gave none of .*, which are by judge-1-new, .*: screen"
        with pytest.raises(DataError, match=message):
            pooled_scores(others, screen=screen)
        with pytest.raises(DataError, match=message):
            width_by_threshold(others, screen)

    def test_a_judge_of_one_run_is_told(self, frame):
        once = AnchoredVerdicts.from_pandas(frame[(frame["judge"] != "judge-1") | (frame["run"] == 0)])
        screen = screen_judges(once, n_resamples=10)
        some = pooled_scores(once, ["judge-1", "judge-2"], screen=screen)
        assert some.attrs["warnings"] == [
            "the reliability of 1 judge is not known (judge-1): rating_se_predicted rests on that of the others"
        ]
        assert some["rating_se_predicted"].notna().all()
        alone = pooled_scores(once, ["judge-1"], screen=screen)
        assert alone.attrs["warnings"] == [
            "the reliability of 1 judge is not known (judge-1): rating_se_predicted is missing"
        ]
        assert alone["rating_se_predicted"].isna().all()
        assert (alone["rating_se"] > 0).all()  # which needs no reliability

    def test_a_negative_reliability_is_none(self, frame):
        noise = frame.assign(verdict=np.random.default_rng(2).choice(["win", "loss"], len(frame)))
        verdicts = AnchoredVerdicts.from_pandas(noise[noise["item"] < 6])
        screen = screen_judges(verdicts, n_resamples=10)
        worst = [screen.table["average"].idxmin()]
        assert screen.table.loc[worst, "average"].item() < 0
        others = [*worst, *screen.table.index[screen.table["average"] < 0.1]]
        found = pooled_scores(verdicts, others, screen=screen)
        assert found["rating_se_predicted"].notna().all()


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
        assert without.attrs["warnings"] == ["left out, as they gave no verdict here: judge-1"]
        seen = screen.correlation.loc["judge-2", "judge-3"]
        assert without["predicted_observed"][1] == pytest.approx(without["empirical"][0] * (1 + seen) / 2)

    def test_a_variance_needs_two_resamples(self, verdicts, screen):
        with pytest.raises(ValueError, match="n_resamples must be at least 2, got 1"):
            pooling_curve(verdicts, "model-1", screen=screen, n_resamples=1)

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
        with pytest.raises(ValueError, match="at least two tasks are needed, with positive standard errors"):
            task_heterogeneity(y, s)


class TestPropositions:
    """Repeated studies of 200 items, four judges and three runs; an item is won with a probability of its own."""

    REPEATS, JUDGES, RUNS = 1500, 4, 3

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
