"""Direct 1-10 scoring: statistics by hand, the ordinal map against a general optimiser, dispersion beside verdicts."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit

from jaxeval.anchored.direct_scoring import (
    cumulative_logit,
    direct_score_agreement,
    direct_score_statistics,
    direct_win_probability,
    dispersion,
)
from jaxeval.anchored.scores import anchored_scores
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.errors import DataError
from jaxeval.lab.simulate.verdicts import simulate_anchored_verdicts


def simulated(**options):
    return simulate_anchored_verdicts(**{"n_items": 40, "n_judges": 3, "n_runs": 2, "seed": 1, **options})


class TestStatistics:
    def test_moments(self):
        scores = np.array([10, 9, 10, 8, 10, 2])
        table = pd.DataFrame({"model": "a", "judge": "x", "score": scores})
        (row,) = direct_score_statistics(table).itertuples(index=False)
        assert (row.judge, row.model, row.n, row.ceiling) == ("x", "a", 6, 0.5)
        assert (row.mean, row.sd) == pytest.approx((scores.mean(), scores.std(ddof=1)))
        centred = scores - scores.mean()
        assert row.kurtosis == pytest.approx((centred**4).mean() / (centred**2).mean() ** 2 - 3)
        assert direct_score_statistics(table, top=9)["ceiling"].tolist() == [4 / 6]

    def test_a_row_a_judge_and_model(self):
        table = simulated()
        found = direct_score_statistics(table).set_index(["judge", "model"])
        assert len(found) == 12
        for key, block in table.groupby(["judge", "model"]):
            assert found.loc[key, "kurtosis"] == pytest.approx(stats.kurtosis(block["score"]))

    def test_one_score_has_no_kurtosis(self):
        table = pd.DataFrame({"model": "a", "judge": "x", "score": [10, 10, 10]})
        assert np.isnan(direct_score_statistics(table)["kurtosis"][0])

    def test_other_names_and_errors(self):
        table = simulated().rename(columns={"score": "mark"})
        assert len(direct_score_statistics(table, "mark")) == 12
        with pytest.raises(DataError, match="no column 'score'"):
            direct_score_statistics(table)
        with pytest.raises(DataError, match="column 'mark' is not numeric"):
            direct_score_statistics(table.assign(mark="good"), "mark")


class TestAgreement:
    def test_pairs_by_hand(self):
        table = pd.DataFrame(
            {"model": "a", "judge": ["x"] * 4 + ["y"] * 4, "item": [*range(4)] * 2, "score": [9, 8, 9, 7, 8, 8, 9, 6]}
        )
        (row,) = direct_score_agreement(table).itertuples(index=False)
        assert row.n_pairs == 1
        assert row.pearson == pytest.approx(np.corrcoef([9, 8, 9, 7], [8, 8, 9, 6])[0, 1])
        assert row.kendall == pytest.approx(stats.kendalltau([9, 8, 9, 7], [8, 8, 9, 6]).statistic)
        expected = (2 * 1 + 1 * 2) / 16  # of nines and of eights
        assert row.kappa == pytest.approx((0.5 - expected) / (1 - expected))

    def test_runs_are_averaged_and_pairs_share_items(self):
        table = simulated().sample(frac=0.8, random_state=0)
        found = direct_score_agreement(table).set_index("model")
        for model, block in table.groupby("model"):
            means = block.pivot_table("score", "item", "judge")
            r = [means[a].corr(means[b]) for k, a in enumerate(means) for b in list(means)[:k]]
            assert found.loc[model, "pearson"] == pytest.approx(np.mean(r))
            assert found.loc[model, "n_pairs"] == 3

    def test_a_judge_that_never_varies(self):
        """Also by scores whose mean over runs is not exact."""
        rows = [(j, i, s) for i in range(50) for j, marks in (("x", (8, 8, 9)), ("y", (i % 9,) * 3)) for s in marks]
        table = pd.DataFrame(rows, columns=["judge", "item", "score"]).assign(model="a")
        (row,) = direct_score_agreement(table).itertuples(index=False)
        assert np.isnan([row.pearson, row.kendall]).all()
        assert row.kappa == pytest.approx(0)

    def test_one_judge_has_no_pair(self):
        table = pd.DataFrame({"model": "a", "judge": "x", "item": [1, 2], "score": [8, 9]})
        (row,) = direct_score_agreement(table).itertuples(index=False)
        assert row.n_pairs == 0
        assert np.isnan([row.pearson, row.kendall, row.kappa]).all()

    def test_errors(self):
        with pytest.raises(DataError, match="no column 'item'"):
            direct_score_agreement(simulated().drop(columns="item"))
        with pytest.raises(DataError, match="column 'score' is not numeric"):
            direct_score_agreement(simulated().assign(score="good"))


def likelihood(theta, x, level):
    below = expit(theta[:2] - theta[2] * x[:, None])
    p = np.stack([below[:, 0], below[:, 1] - below[:, 0], 1 - below[:, 1]], 1)[np.arange(len(x)), level]
    return -np.log(np.maximum(p, 1e-300)).sum()


def drawn(seed, n=300, cuts=(-0.7, 0.3), slope=0.8):
    rng = np.random.default_rng(seed)
    x = rng.integers(-4, 5, n).astype(float)
    return x, np.searchsorted(cuts, rng.logistic(size=n) + slope * x)


class TestCumulativeLogit:
    @pytest.mark.parametrize("seed", range(5))
    def test_against_a_general_optimiser(self, seed):
        x, level = drawn(seed)
        found, status = cumulative_logit(x, level)

        def loss(free):  # cuts in order
            return likelihood(np.array([free[0], free[0] + np.exp(free[1]), free[2]]), x, level)

        twin = minimize(loss, [-0.5, 0.0, 0.1], method="BFGS", options={"gtol": 1e-6}).x
        np.testing.assert_allclose(found, [twin[0], twin[0] + np.exp(twin[1]), twin[2]], atol=1e-4)
        assert status == "ok"

    @pytest.mark.parametrize("seed", range(5))
    def test_without_ties_it_is_a_logistic_regression(self, seed):
        x, level = drawn(seed, cuts=(0.4, 0.4))
        found, status = cumulative_logit(x, level)
        win = level == 2
        twin = minimize(lambda t: -np.log(expit(np.where(win, 1, -1) * (t[1] * x - t[0]))).sum(), [0.0, 0.1]).x
        np.testing.assert_allclose(found, [twin[0], twin[0], twin[1]], atol=1e-5)
        assert status == "ok"

    @pytest.mark.parametrize("seed", range(5))
    def test_steep_without_ties(self, seed):
        x, level = drawn(seed, 200, cuts=(0.02, 0.02), slope=5.0)
        found, _ = cumulative_logit(x, level)
        below = expit(found[0] - found[2] * x)
        # The score equations of a logistic regression.
        residual = below - (level == 0)
        assert found[0] == found[1]
        np.testing.assert_allclose([residual.sum(), residual @ x], 0, atol=1e-4)

    @pytest.mark.parametrize(("lowest", "cut"), [(1, 1), (0, 0)])
    def test_without_losses_or_wins_too(self, lowest, cut):
        x, level = drawn(7, cuts=(0.4, 0.4))
        win = level == 2
        found, _ = cumulative_logit(x, lowest + win)
        twin = minimize(lambda t: -np.log(expit(np.where(win, 1, -1) * (t[1] * x - t[0]))).sum(), [0.0, 0.1]).x
        np.testing.assert_allclose(found[[cut, 2]], twin, atol=1e-4)

    def test_turning_the_scores_turns_the_slope(self):
        x, level = drawn(9)
        found, other = cumulative_logit(x, level)[0], cumulative_logit(-x, 2 - level)[0]
        np.testing.assert_allclose(other, [-found[1], -found[0], found[2]], atol=1e-6)

    @pytest.mark.parametrize("cuts", [(-0.5, 0.5), (0.5, 0.5)])
    def test_separated(self, cuts):
        x = np.repeat(np.arange(-3.0, 4.0), 5)
        level = np.searchsorted(cuts, x)
        found, status = cumulative_logit(x, level)
        assert status == "separated"
        assert np.isfinite(found).all()
        assert likelihood(found, x, level) < 0.01

    @pytest.mark.parametrize(
        ("x", "level", "status"),
        [
            ([1, 2, 3], [0, 1, 2], "separated"),
            ([1, 2, 3, 4], [0, 0, 2, 2], "separated"),
            ([1, 2, 3, 4], [2, 2, 1, 1], "separated"),
            ([1, 2, 2, 3], [0, 0, 1, 2], "quasi-separated"),
            ([3, 2, 2, 1], [1, 1, 2, 2], "quasi-separated"),
            ([1, 1, 2], [0, 1, 2], "quasi-separated"),
            ([0, 0, 0], [0, 1, 2], "ok"),
            ([1, 2, 3], [0, 2, 0], "ok"),
            ([1, 2, 3, 3], [0, 1, 2, 0], "ok"),
            ([1, 2, 3], [2, 2, 2], "one level"),
            ([1], [1], "one level"),
            ([-9] * 20_000 + [9] * 20_000, [0] * 19_999 + [2] * 20_001, "quasi-separated"),
            ([-9] * 20_000 + [9] * 20_000, [2] + [0] * 19_999 + [2] * 19_999 + [0], "ok"),  # two exceptions
        ],
    )
    def test_separation_by_the_scores_themselves(self, x, level, status):
        found, told = cumulative_logit(np.array(x, float), np.array(level))
        assert told == status
        assert np.isfinite(found).all()

    def test_equal_scores_have_no_slope(self):
        level = np.repeat([0, 1, 2], [2, 3, 5])
        found, status = cumulative_logit(np.zeros(10), level)
        np.testing.assert_allclose(found, [np.log(0.2 / 0.8), 0, 0], atol=1e-8)
        assert status == "ok"


class TestWinProbability:
    def test_the_mean_over_answers(self):
        table = simulated()
        found = direct_win_probability(table).set_index(["model", "judge"])
        assert len(found) == 12
        for judge, block in table.groupby("judge"):
            x = (block["score"] - block["reference_score"]).to_numpy(float)
            level = block["verdict"].map({"loss": 0, "tie": 1, "win": 2}).to_numpy()
            c1, c2, b = minimize(
                lambda t, x, k: likelihood(t, x, k) if t[0] < t[1] else 1e9,
                [-0.5, 0.5, 0.1],
                (x, level),
                "Nelder-Mead",
                options={"xatol": 1e-8, "fatol": 1e-10, "maxiter": 2000},
            ).x
            win, tie = 1 - expit(c2 - b * x), expit(c2 - b * x) - expit(c1 - b * x)
            p = (win + tie / 2).reshape(4, 40, 2).mean(2)  # models, items, runs
            for k in range(4):
                row = found.loc[f"model-{k + 1}", judge]
                assert row["probability"] == pytest.approx(p[k].mean(), abs=1e-5)
                assert row["slope"] == pytest.approx(b, abs=1e-4)

    def test_the_error_is_that_of_leaving_items_out(self):
        """The jackknife refits the map without each item; an item of one model, with fewer runs, is one too."""
        table = simulated(n_items=30, n_judges=2, run_sd=1.5)
        table = table[(table["item"] > 0) | ((table["model"] == "model-1") & (table["run"] == 0))]
        found = direct_win_probability(table).set_index(["model", "judge"])
        left_out = [direct_win_probability(table[table["item"] != i]).assign(out=i) for i in range(30)]
        draws = pd.concat(left_out).pivot_table("probability", ["model", "judge"], "out")
        jackknife = draws.std(axis=1, ddof=0) * np.sqrt(29)
        np.testing.assert_allclose(found["standard_error"], jackknife, rtol=0.04)

    @pytest.mark.parametrize("run_sd", [0.3, pytest.param(2.5, marks=pytest.mark.slow)])
    def test_its_error_is_that_of_other_items(self, run_sd):
        """Replicates of a judge, each with items of its own."""
        n = 100
        replicates = [
            simulated(n_judges=1, n_runs=1, run_sd=run_sd, drift_sd=0, seed=k).assign(judge=k) for k in range(n)
        ]
        found = direct_win_probability(pd.concat(replicates, ignore_index=True))
        by_model = found.groupby("model")
        ratio = by_model["standard_error"].mean() / by_model["probability"].std()
        np.testing.assert_allclose(ratio, 1, atol=4 / np.sqrt(2 * n))
        away = (found["probability"] - by_model["probability"].transform("mean")).abs()
        covered = (away < 1.96 * found["standard_error"]).groupby(found["model"]).mean()
        assert covered.min() > 0.95 - 4 * np.sqrt(0.95 * 0.05 / n)

    def test_a_separated_map_adds_no_error(self):
        """Its steps stay where they are: the probability is the share of wins and half of the ties."""
        table = simulated(n_judges=1)
        table["verdict"] = np.sign(table["score"] - table["reference_score"]).map({-1: "loss", 0: "tie", 1: "win"})
        outcome = table.assign(outcome=table["verdict"].map({"win": 1, "tie": 0.5, "loss": 0}))
        items = outcome.groupby(["model", "item"])["outcome"].mean().groupby("model")
        found = direct_win_probability(table).set_index("model")
        assert (found["status"] == "separated").all()
        np.testing.assert_allclose(found["probability"], items.mean(), atol=1e-3)
        np.testing.assert_allclose(found["standard_error"], items.sem(), atol=1e-3)

    def test_verdicts_of_one_level_tell_no_error(self):
        found = direct_win_probability(simulated().assign(verdict="win"))
        assert (found["status"] == "one level").all()
        assert (found["probability"] > 0.99).all()
        assert found["standard_error"].isna().all()

    def test_the_index_does_not_matter(self):
        table = simulated()
        shuffled = table.sample(frac=1, random_state=0).set_axis([0] * len(table))
        pd.testing.assert_frame_equal(direct_win_probability(shuffled), direct_win_probability(table))

    def test_separated_judges_are_told(self):
        table = simulated()
        gap = np.sign(table["score"] - table["reference_score"])
        sure = table["judge"] == "judge-2"
        table.loc[sure, "verdict"] = gap.map({-1: "loss", 0: "tie", 1: "win"})[sure]
        found = direct_win_probability(table)
        assert (found["status"] == np.where(found["judge"] == "judge-2", "separated", "ok")).all()
        assert np.isfinite(found["slope"]).all()

    def test_one_item_has_no_error(self):
        found = direct_win_probability(simulated(n_items=1, strengths=(0.0, 0.0, 0.0)))
        assert found["standard_error"].isna().all()

    @pytest.mark.parametrize(("change", "message"), [
        ({"verdict": "win?"},
         "column 'verdict' has 480 values that are not 'win', 'tie' or 'loss': 'win\\?' \\(480\\)"),
        ({"verdict": None}, r"column 'verdict' has 480 values that are not .*: missing \(480\)"),
        ({"score": "good"}, "column 'score' is not numeric"),
        ({"reference_score": np.nan}, "column 'reference_score' has 480 missing values"),
    ])  # fmt: skip
    def test_errors(self, change, message):
        with pytest.raises(DataError, match=message):
            direct_win_probability(simulated(n_items=20).assign(**change))

    @pytest.mark.parametrize("column", ["model", "judge", "item", "score", "reference_score", "verdict"])
    def test_columns_are_needed(self, column):
        with pytest.raises(DataError, match=f"no column '{column}'"):
            direct_win_probability(simulated().drop(columns=column))


def test_dispersion():
    direct = pd.DataFrame(
        {
            "model": [*"aabb"],
            "judge": [*"xyxy"],
            "probability": [0.4, 0.6, 0.5, 0.7],
            "standard_error": [0.1, 0.1, 0.2, 0.2],
        }
    )
    anchored = direct[["model", "judge"]].assign(probability=[0.5, 0.5, 0.6, 0.7], probability_se=0.1, own_se=0.06)
    found = dispersion(direct, anchored)
    by_hand = (np.sqrt(0.02) / 0.5 + np.sqrt(0.02) / 0.6) / 2, np.sqrt(0.005) / 0.65 / 2
    assert found["standard_error"].tolist() == pytest.approx([0.15, 0.1, 1 / 3])
    assert found["own_se"].tolist() == pytest.approx([0.15, 0.06, 0.6])
    assert found["cv"].tolist() == pytest.approx([*by_hand, 1 - by_hand[1] / by_hand[0]])

    with pytest.raises(
        DataError, match=r"1 row by model, judge is in one of the tables only \(the first: model '.*', judge '.*'\)"
    ):
        dispersion(direct, anchored[:3])
    twice = pd.concat([anchored.assign(anchor=a) for a in "rs"])
    with pytest.raises(DataError, match="the anchored scores have several references"):
        dispersion(direct, twice)


def test_references_and_tasks_that_share_items_are_kept_apart():
    parts = [simulated(seed=s).assign(anchor=anchor, task=task) for s, (anchor, task) in enumerate(("rt", "ru", "st"))]
    table = pd.concat(parts, ignore_index=True)
    found = direct_win_probability(table)
    for anchor in "rs":
        own = table[table["anchor"] == anchor]
        own = own.assign(item=own["task"] + own["item"].astype(str)).drop(columns=["anchor", "task"])
        mine = found[found["anchor"] == anchor].drop(columns="anchor").reset_index(drop=True)
        pd.testing.assert_frame_equal(mine, direct_win_probability(own))
    items = table.assign(item=table["anchor"] + table["task"] + table["item"].astype(str))
    agreement = direct_score_agreement(items.drop(columns=["anchor", "task"]))
    pd.testing.assert_frame_equal(direct_score_agreement(table), agreement)
    anchored = anchored_scores(AnchoredVerdicts.from_pandas(table))
    assert np.isfinite(dispersion(found, anchored)).all(axis=None)


@pytest.mark.parametrize("column", ["model", "judge", "item"])
def test_rows_without_a_model_judge_or_item_are_refused(column):
    table = simulated(n_items=5).astype({column: object})
    table.loc[3, column] = None
    for function in (direct_score_statistics, direct_score_agreement, direct_win_probability):
        with pytest.raises(DataError, match=rf"column '{column}' has 1 missing value \(first in row 3"):
            function(table)


def test_scales_drift_and_verdicts_do_not():
    still, drifting = (simulated(n_items=80, n_judges=6, drift_sd=d) for d in (0.0, 1.5))
    assert (still["verdict"] == drifting["verdict"]).all()
    spread = [direct_score_statistics(t).groupby("model")["mean"].std().mean() for t in (still, drifting)]
    assert spread[1] > 5 * spread[0]
    anchored = anchored_scores(AnchoredVerdicts.from_pandas(drifting), ["model", "judge"])
    assert dispersion(direct_win_probability(drifting), anchored)["cv"]["anchored"] < 0.1
