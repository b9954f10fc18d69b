"""The simulated studies of arXiv:2511.21140 and arXiv:2605.06939, with fewer replications, against what they found."""

import numpy as np
import pandas as pd
import pytest

import jaxeval
from jaxeval import DataError, JudgedAnswers
from jaxeval.accuracy.judge_accuracy import judge_accuracy
from jaxeval.lab.accuracy_studies import _weights, comparison_study, coverage_study, shift_study, split_study
from jaxeval.lab.simulate.judged import simulate_judged_answers

R = 2000
THETA = np.arange(21) / 20
JUDGES = np.array([(0.7, 0.7), (0.7, 0.9), (0.9, 0.7), (0.9, 0.9)])
# Five standard errors of a coverage of 95 %.
SLACK = 5 * np.sqrt(0.95 * 0.05 / R)
JUDGES_OF_SPLITS = ["judge-1", "judge-2"]


@pytest.fixture(scope="module")
def study():
    """All 168 settings."""
    return coverage_study(
        THETA[:, None, None], JUDGES[:, 0, None], JUDGES[:, 1, None], 1000, np.array([200, 500]), replications=R
    )


class TestCoverage:
    def test_the_interval_covers_at_every_setting(self, study):
        found = study[study["method"] != "naive"]
        assert len(found) == 2 * 168
        assert found["coverage"].min() > 0.94 - SLACK
        assert found["coverage"].max() < 0.98 + SLACK

    def test_it_is_conservative_for_a_poor_judge_and_at_the_ends(self, study):
        found = study[study["method"] == "rogan_gladen"]
        poor = found[(found["q0"] == 0.7) & (found["q1"] == 0.7) & (found["m"] == 200)]
        assert poor["coverage"].mean() == pytest.approx(0.96, abs=0.005)
        ends = found[found["theta"].isin([0, 1])]
        assert ends["coverage"].between(0.96 - SLACK, 0.973 + SLACK).all()

    def test_the_correction_has_no_bias_and_the_raw_share_that_of_the_formula(self, study):
        inside = study[study["theta"].between(0.2, 0.8) & (study["method"] != "naive")]
        # A ratio of estimates keeps a bias of order 1 / m.
        assert (inside["bias"].abs() < 5 * inside["bias_se"] + 0.01).all()
        naive = study[study["method"] == "naive"]
        bias = (1 - naive["q0"]) * (1 - naive["theta"]) - (1 - naive["q1"]) * naive["theta"]
        assert ((naive["bias"] - bias).abs() < 5 * naive["bias_se"] + 1e-12).all()

    def test_algorithm_1_is_no_longer_than_the_equal_split(self, study):
        lengths = study.pivot_table(index=["theta", "q0", "q1", "m"], columns="method", values="length")
        ratio = lengths["rogan_gladen_adaptive"] / lengths["rogan_gladen"]
        assert ratio.max() < 1.02
        assert (ratio < 1).mean() > 0.8
        untruncated = study.pivot_table(index=["theta", "q0", "q1", "m"], columns="method", values="length_untruncated")
        assert (untruncated["rogan_gladen"] >= lengths["rogan_gladen"] - 1e-12).all()

    def test_algorithm_1_labels_more_of_the_class_that_matters(self, study):
        found = study[(study["method"] == "rogan_gladen_adaptive") & (study["m"] == 500)]
        by_theta = found.groupby("theta")["mean_m1"].mean()
        assert by_theta.is_monotonic_increasing
        assert by_theta[0.0] < 150 < 350 < by_theta[1.0]

    def test_a_judge_that_knows_nothing_is_undefined_and_counted(self):
        found = coverage_study(0.5, 0.5, 0.5, 1000, 40, replications=R).set_index("method")
        assert 0.3 < found.loc["rogan_gladen", "undefined_share"] < 0.7
        assert found.loc["rogan_gladen", "coverage"] <= 1 - found.loc["rogan_gladen", "undefined_share"] + 1e-12
        assert found.loc["rogan_gladen", "length"] > 0.99  # with J > 0 by chance, nothing bounds it

    def test_a_seed_gives_the_same_study(self):
        first, again, other = (coverage_study([0.3, 0.6], 0.8, 0.9, replications=50, seed=s) for s in (1, 1, 2))
        pd.testing.assert_frame_equal(first, again)
        assert not first.equals(other)


@pytest.fixture(scope="module")
def bias():
    found = shift_study(np.array([0.25, 0.5, 0.75]), replications=R)
    return found.pivot_table(index="calibration_theta", columns="estimator", values="bias")


class TestShift:
    """Figure 7: test accuracy 1/2, calibration with other shares of right answers."""

    def test_only_rogan_gladen_stays_unbiased(self, bias):
        assert (bias["rogan_gladen"].abs() < 0.012).all()
        for name in ("calibration_only", "difference", "conditional", "eif", "ppi_plus_plus"):
            assert (bias.loc[[0.25, 0.75], name].abs() > 0.09).all()

    def test_the_others_are_biased_as_their_formulas_say(self, bias):
        q0, q1 = 0.7, 0.9
        for theta, row in bias.iterrows():
            p_test, p = (t * q1 + (1 - t) * (1 - q0) for t in (0.5, theta))
            expected = {
                "naive": p_test - 0.5,
                "calibration_only": theta - 0.5,
                "difference": p_test + theta - p - 0.5,
                "conditional": p_test * theta * q1 / p + (1 - p_test) * theta * (1 - q1) / (1 - p) - 0.5,
            }
            for name, value in expected.items():
                assert row[name] == pytest.approx(value, abs=0.005)

    def test_without_a_shift_all_corrections_are_unbiased(self, bias):
        assert (bias.loc[0.5].drop("naive").abs() < 0.006).all()


class TestComparison:
    """Figure 1: accuracies 0.7 and 0.75, the labels of A shared."""

    def test_a_shared_calibration_is_worse_than_none_where_the_judge_differs(self):
        found = comparison_study(0.3, 0.3, n=20_000, m=40_000, replications=200).set_index("estimator")["bias"]
        assert found["rogan_gladen_shared"] == pytest.approx(0.25, abs=0.01)
        assert found["naive"] == pytest.approx(0.04, abs=0.003)
        assert found.drop(["rogan_gladen_shared", "naive"]).abs().max() < 0.005

    def test_intervals_cover_as_the_paper_found(self):
        found = comparison_study(0.3, np.array([0.0, 0.3]), replications=R)
        coverage = found.pivot_table(index="delta_j", columns="estimator", values="coverage")
        for name in ("ppi_plus_plus", "ppi_plus_plus_half"):
            assert (abs(coverage[name] - 0.95) < SLACK + 0.005).all()
        assert (coverage["rogan_gladen"] > 0.95 - SLACK).all()
        assert coverage.loc[0.3, "rogan_gladen_shared"] < coverage.loc[0.3, "naive"] < 0.7
        assert coverage.loc[0.0, "rogan_gladen_shared"] > 0.95 - SLACK

    def test_more_labels_shorten_the_interval_of_ppi(self):
        length = comparison_study(0.5, 0.1, replications=200).set_index("estimator")["length"]
        assert length["ppi_plus_plus"] < length["ppi_plus_plus_half"]
        assert length["ppi_plus_plus"] < length["rogan_gladen"]

    def test_rates_beyond_one_are_an_error(self):
        with pytest.raises(ValueError, match=r"j_a \+ delta_j must lie in \[-1, 1\], got 1.1"):
            comparison_study(0.9, 0.2)
        with pytest.raises(ValueError, match=r"j_a must lie in \[-1, 1\], got 1.2"):
            comparison_study(1.2, -0.5)
        with pytest.raises(ValueError, match=r"j_a \+ delta_j must lie in \[-1, 1\], got -1.1"):
            comparison_study(-0.9, -0.2)


class TestAnswers:
    def test_they_have_the_rates_asked_for(self):
        n = 20_000
        q0, q1 = np.array([[0.8, 0.6], [0.7, 0.9]]), np.array([[0.9, 0.95], [0.85, 0.7]])
        answers = jaxeval.simulate_judged_answers([0.7, 0.5], q0, q1, n, seed=3)
        for m, (model, rows) in enumerate(answers.groupby("model")):
            assert model == f"model-{m + 1}"
            assert rows["human"].mean() == pytest.approx([0.7, 0.5][m], abs=5 * 0.5 / np.sqrt(n))
            for j in range(2):
                verdict = rows[f"judge-{j + 1}"]
                tolerance = 5 * 0.5 / np.sqrt(0.3 * n)
                assert verdict[rows["human"] == 1].mean() == pytest.approx(q1[m, j], abs=tolerance)
                assert verdict[rows["human"] == 0].mean() == pytest.approx(1 - q0[m, j], abs=tolerance)

    def test_items_are_harder_for_all(self):
        together, apart = (
            jaxeval.simulate_judged_answers([0.5, 0.5], 0.8, 0.9, 4000, correlation=c).pivot_table(
                index="item", columns="model", values="human"
            ).corr().iloc[0, 1]
            for c in (0.8, 0.0)
        )  # fmt: skip
        assert together > 0.5
        assert abs(apart) < 5 / np.sqrt(4000)

    def test_shares_beyond_one_are_an_error(self):
        with pytest.raises(ValueError, match="accuracy must lie in"):
            jaxeval.simulate_judged_answers([1.2])


@pytest.mark.parametrize("study", [coverage_study, shift_study, comparison_study])
@pytest.mark.parametrize(("options", "error", "message"), [
    ({"replications": 0}, ValueError, "replications must be at least 1, got 0"),
    ({"replications": 2.5}, TypeError, "replications must be an integer, got 2.5"),
    ({"seed": True}, TypeError, "seed must be an integer, got True"),
    ({"level": 1}, ValueError, "level must be between 0 and 1, got 1"),
    ({"levels": 0.9}, TypeError, "levels"),
])  # fmt: skip
def test_options_that_are_none(study, options, error, message):
    with pytest.raises(error, match=message):
        study(*(0.5, 0.5, 0.5)[: 2 if study is comparison_study else 3], **options)


@pytest.mark.parametrize("options", [{"n_items": 0}, {"n_items": 2.0}, {"seed": True}, {"seed": -1}])
def test_answers_of_numbers_that_are_none(options):
    with pytest.raises((TypeError, ValueError), match=f"{next(iter(options))} must be"):
        simulate_judged_answers(**options)


def read(table, **options):
    return JudgedAnswers.from_pandas(table, judgment=JUDGES_OF_SPLITS, model="model", item="item", **options)


@pytest.fixture(scope="module")
def answers():
    return read(jaxeval.simulate_judged_answers(n_items=300, seed=5))


@pytest.mark.slow
def test_a_study_is_the_mean_over_its_splits(answers):
    found = split_study(answers, 0.4, 3, seed=2)
    calibration, _ = _weights(300, 0.4, 3, False, 2)
    parts = []
    for weight in calibration:
        part = judge_accuracy(answers.take(weight > 0), answers.take(weight == 0), n_resamples=16).table
        part["error"] = part["estimate"] - part["truth"]
        part["covers"] = (part["lower"] <= part["truth"]) & (part["truth"] <= part["upper"])
        part["length"] = part["upper"] - part["lower"]
        parts.append(part)
    key = ["model", "judge", "estimator"]
    means = pd.concat(parts).groupby(key)[["error", "covers", "length"]].mean()
    rows = means.loc[[tuple(k) for k in found[key].to_numpy()]]
    np.testing.assert_allclose(found["bias"], rows["error"], atol=1e-12)
    np.testing.assert_allclose(found["coverage"], rows["covers"], atol=1e-12)
    np.testing.assert_allclose(found["length"], rows["length"], atol=1e-9)


def test_intervals_cover_the_population_that_items_are_drawn_from(answers):
    found = split_study(answers, 1 / 3, 2000, replacement=True)
    coverage = found.groupby("estimator")["coverage"].mean()
    for name in ("calibration_only", "difference", "ppi_plus_plus", "conditional", "eif", "rogan_gladen"):
        # Normal intervals of 100 labels cover a little less.
        assert coverage[name] == pytest.approx(0.95, abs=0.02)
        assert found.loc[found["estimator"] == name, "bias"].abs().max() < 0.01
    assert coverage["naive"] < 0.8


def test_splits_are_of_the_size_asked_for_and_cover_every_item_once():
    calibration, test = _weights(90, 1 / 3, 50, False, 0)
    assert (calibration.sum(1) == 30).all()
    np.testing.assert_array_equal(calibration + test, 1)
    drawn, rest = _weights(90, 1 / 3, 50, True, 0)
    assert (drawn.sum(1) == 30).all()
    assert (rest.sum(1) == 60).all()
    assert drawn.max() > 1


def test_answers_without_a_label_are_left_out_and_counted():
    table = jaxeval.simulate_judged_answers(n_items=60, seed=1).astype({"human": float})
    table.loc[:4, "human"] = np.nan
    assert split_study(read(table), 0.5, 20).attrs["n_unlabelled"] == 5


def test_scores_have_no_rates():
    table = jaxeval.simulate_judged_answers(n_items=80, seed=1)
    table["judge-2"] = table["judge-2"] * 0.8 + 0.1
    found = split_study(read(table), 0.5, 20).set_index(["estimator", "judge"])
    for name in ("rogan_gladen", "rogan_gladen_shared", "conditional", "eif"):
        assert (found.loc[(name, "judge-2"), "undefined_share"] == 1).all()
        assert found.loc[(name, "judge-2"), "coverage"].isna().all()
    assert found.loc[("ppi_plus_plus", "judge-2"), "coverage"].notna().all()


@pytest.mark.parametrize(("share", "message"), [(0.0, "between 0 and 1"), (0.001, "no calibration")])
def test_shares_that_leave_nothing_are_an_error(answers, share, message):
    with pytest.raises(ValueError, match=message):
        split_study(answers, share)


def test_no_labels_are_an_error():
    table = jaxeval.simulate_judged_answers(n_items=20).drop(columns="human")
    with pytest.raises(DataError, match="no judged answer has a label"):
        split_study(read(table))


def test_real_judges(data):
    """What the notebook teaches: raw shares miss, own labels cover, and a shared calibration is biased."""
    nq = pd.read_parquet(data / "nqopen301_human_vs_judges.parquet")
    labelled = JudgedAnswers.from_pandas(
        nq, judgment=["judge_gpt4", "judge_davinci003"], model="model", item="item", answer="answer", missing="drop"
    )
    found = split_study(labelled, 1 / 3, 500, replacement=True).groupby("estimator")
    coverage, bias = found["coverage"].mean(), found["bias"].apply(lambda x: x.abs().mean())
    assert coverage["naive"] < 0.85
    for name in ("calibration_only", "difference", "ppi_plus_plus", "rogan_gladen"):
        assert coverage[name] == pytest.approx(0.95, abs=0.02)
        assert bias[name] < 0.006
    assert bias["rogan_gladen_shared"] > 0.015


@pytest.mark.parametrize("options", [{"n_splits": 0}, {"n_splits": True}, {"seed": 1.5}, {"seed": -1}])
def test_numbers_that_are_none(answers, options):
    with pytest.raises((TypeError, ValueError), match=f"{next(iter(options))} must be"):
        split_study(answers, **options)
