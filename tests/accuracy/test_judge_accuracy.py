"""Accuracies by judges against the same from rows, their intervals and resamples, and what has no answer."""

import numpy as np
import pandas as pd
import pytest
import twins
from answers import (
    BINARY,
    CALIBRATION,
    JUDGES,
    MANY,
    MODELS,
    SETTINGS,
    TEST,
    accuracies,
    judged_rows,
    pool,
    read,
    rows,
    simulate,
    stratified,
    without_models,
)
from scipy.stats import binomtest, norm

from jaxeval import DataError, JudgedAnswers
from jaxeval.accuracy.estimates import ESTIMATORS, estimate_draws
from jaxeval.accuracy.judge_accuracy import judge_accuracy
from jaxeval.accuracy.judged_sums import arrays, resampled, with_missing_filled
from jaxeval.accuracy.model_comparison import compare_models
from jaxeval.execution.lanes import LaneRun
from jaxeval.statistics.quantiles import bounds_with_failures

Z = norm.ppf(0.975)
KEY = ["model", "judge", "estimator"]
NO_ANSWER = ("needs verdicts of 0 and 1", "scores are no shares")
NUMBERS = ["estimate", "lower", "upper", "median", "boot_lower", "boot_upper"]


@pytest.fixture(scope="module")
def accuracy():
    return judge_accuracy(read(CALIBRATION), read(TEST), by="topic", **SETTINGS)


@pytest.fixture(scope="module")
def table(accuracy):
    whole = accuracy.table[accuracy.table["slice"] == "all"]
    return whole.drop(columns="slice").set_index(KEY)


def run(calibration=CALIBRATION, test=TEST, **options):
    found = judge_accuracy(read(calibration), read(test), **{**SETTINGS, **options})
    return found.table.set_index(KEY)


def assert_estimates(table, calibration, test, names=ESTIMATORS, judges=JUDGES):
    """Rows of a table, of all models and estimators with a model's own labels, against the rows."""
    for model in MODELS:
        for judge in judges:
            expected = accuracies(calibration, test, model, judge, judge != "score")
            for name in expected.keys() & names:
                value = expected[name]
                found = table.loc[(model, judge, name)]
                if name == "naive" and judge == "score":
                    assert found["status"] == "scores are no shares"
                    assert np.isnan(found["estimate"])
                    continue
                assert found["estimate"] == pytest.approx(np.clip(value, 0, 1), abs=1e-12, nan_ok=True)
                outside = value < -1e-12 or value > 1 + 1e-12
                expected_status = ["J <= 0"] if np.isnan(value) else ["clipped", "outside"] if outside else ["ok"]
                if name == "rogan_gladen" and not np.isnan(value):
                    expected_status += ["J near 0", "few labels of a class"]
                assert found["status"] in expected_status


@pytest.mark.parametrize("part", ["all", "art", "law"])
def test_every_estimate_is_that_of_the_rows(accuracy, part):
    found = accuracy.table[accuracy.table["slice"] == part].set_index(KEY)
    of_part = [frame if part == "all" else frame[frame["topic"] == part] for frame in (CALIBRATION, TEST)]
    assert_estimates(found, *of_part)
    assert set(found.index.get_level_values("estimator")) == set(ESTIMATORS)
    for model in MODELS:
        for judge in JUDGES[:2]:
            q0, q1, m0, m1 = twins.judge_rates(*pool(of_part[0], judge))
            p = of_part[1].query("model == @model")[judge].mean()
            row = found.loc[(model, judge, "rogan_gladen_shared")]
            expected = twins.misclassification_adjusted(p, q0, q1) if q0 + q1 > 1 else np.nan
            assert row["estimate"] == pytest.approx(np.clip(expected, 0, 1), nan_ok=True)
            assert (row["m0"], row["m1"]) == (m0, m1)


def test_counts_and_truth(table):
    for model in MODELS:
        for judge in JUDGES:
            found = table.loc[(model, judge)]
            for name, used in (("ppi_plus_plus", rows), ("rogan_gladen", judged_rows)):
                y, _, g = used(CALIBRATION, TEST, model, judge)
                counts = found.loc[name, ["n_test", "m1", "m0"]].tolist()
                assert counts == [len(g), sum(y), len(y) - sum(y)]
            labels = TEST[TEST["model"] == model]["human"]
            assert found["truth"].to_numpy() == pytest.approx(labels.mean())
            assert (found["n_truth"] == len(labels)).all()
            assert table.loc[(model, judge, "naive"), ["m0", "m1"]].tolist() == [0, 0]


def test_labels_of_the_test_are_not_used(table):
    truth = ["truth", "n_truth"]
    for human in (np.nan, 1 - TEST["human"]):
        other = run(test=TEST.assign(human=human))
        pd.testing.assert_frame_equal(other.drop(columns=truth), table.drop(columns=truth))
    blind = run(test=TEST.assign(human=np.nan))
    assert blind["truth"].isna().all()
    assert (blind["n_truth"] == 0).all()


@pytest.mark.parametrize(("model", "judge"), [("a", "good"), ("b", "poor"), ("c", "score")])
def test_intervals_are_the_closed_forms(table, model, judge):
    y, f, g = rows(CALIBRATION, TEST, model, judge)
    found = table.loc[(model, judge)]

    def ends(name):
        return found.loc[name, ["lower_untruncated", "upper_untruncated"]].tolist()

    labels = binomtest(int(sum(y)), len(y)).proportion_ci(method="wilson")
    assert ends("calibration_only") == pytest.approx(labels)
    binary = judge != "score"
    weights = {"difference": 1.0, "ppi_plus_plus": twins.ppi_lambda(y, f, g, 1.0 if binary else np.inf)}
    if binary:
        conditional = twins.moments(y, f) / (np.mean(f) * (1 - np.mean(f)))
        weights |= {"conditional": conditional, "eif": conditional / (1 + len(y) / len(g))}
        known, verdicts, judged = judged_rows(CALIBRATION, TEST, model, judge)
        wilson = binomtest(int(sum(judged)), len(judged)).proportion_ci(method="wilson")
        assert ends("naive") == pytest.approx(list(wilson))
        q0, q1, m0, m1 = twins.judge_rates(known, verdicts)
        interval = twins.misclassification_interval(np.mean(judged), q0, q1, len(judged), m0, m1)
        near_0 = found.loc["rogan_gladen", "status"] == "J near 0"
        assert near_0 == (judge == "poor")
        assert ends("rogan_gladen") == pytest.approx([-np.inf, np.inf] if near_0 else interval)
    else:
        assert np.isnan(ends("naive")).all()  # scores beyond 1
    for name, lam in weights.items():
        assert ends(name) == pytest.approx(twins.ppi_interval(y, f, g, lam, binary), abs=1e-12)
    there = ~found["status"].isin(NO_ANSWER)
    ends = found.loc[there, ["lower_untruncated", "upper_untruncated"]].clip(0, 1).to_numpy()
    np.testing.assert_array_equal(found.loc[there, ["lower", "upper"]], ends)


def items_of(sums, lane, model):
    """Rows of a resample of verdicts, as far as estimates depend on them: rebuilt from its sums."""
    n, right, judged, both, *_ = (round(x[lane, 0, model, 0]) for x in sums)
    wrong = n - right
    f = [1] * both + [0] * (right - both) + [1] * (judged - both) + [0] * (wrong - judged + both)
    return [1] * right + [0] * wrong, f


def test_resamples_are_estimates_of_resampled_rows():
    """Of complete answers: what is filled in for a missing judgment cannot be told from sums."""
    accuracy = judge_accuracy(read(simulate(60, 1)), read(simulate(100, 2, first=60)), **SETTINGS)
    part = accuracy.slices[""]
    assert part.every is part.judged
    draws = estimate_draws(part, accuracy.binary)
    for lane in range(0, 400, 57):
        for model in range(3):
            n, judged, _ = (round(x[lane, 0, model, 0]) for x in part.judged.draws.test)
            g = [1] * judged + [0] * (n - judged)
            y, f = items_of(part.judged.draws.own, lane, model)
            expected = twins.accuracies(y, f, g, True)
            expected["rogan_gladen"] = np.clip(expected["rogan_gladen"], 0, 1)
            y, f = items_of(part.every.half_draws, lane, model)
            expected["ppi_plus_plus_half"] = twins.accuracies(y, f, g, True)["ppi_plus_plus"]
            q0, q1, _, _ = twins.judge_rates(*items_of(part.judged.draws.shared, lane, 0))
            adjusted = twins.misclassification_adjusted(judged / n, q0, q1)
            expected["rogan_gladen_shared"] = np.clip(adjusted, 0, 1) if q0 + q1 > 1 else np.nan
            for name, value in expected.items():
                assert draws[name][lane, model, 0] == pytest.approx(value, abs=1e-12, nan_ok=True)


def test_failed_resamples_are_counted_and_enter_both_ends(accuracy, table):
    draws = estimate_draws(accuracy.slices[""], accuracy.binary)
    for name in ("rogan_gladen", "rogan_gladen_shared", "ppi_plus_plus", "ppi_plus_plus_half"):
        for m, model in enumerate(MODELS[:2]):
            for j, judge in enumerate(JUDGES[:2]):
                drawn = draws[name][:, m, j]
                failed = np.isnan(drawn)
                row = table.loc[(model, judge, name)]
                assert row["failed_share"] == failed.mean()
                lower = twins.quantile(np.where(failed, 0.0, drawn), 0.025)
                upper = twins.quantile(np.where(failed, 1.0, drawn), 0.975)
                assert (row["boot_lower"], row["boot_upper"]) == pytest.approx((lower, upper))
                assert row["median"] == pytest.approx(twins.quantile(drawn, 0.5))
    assert table.loc[("a", "poor", "rogan_gladen"), "failed_share"] > 0.05
    assert table.loc[("c", "poor", "rogan_gladen"), "failed_share"] > 0.3  # and J <= 0 in the sample itself


def test_bounds_take_failures_for_the_worst_on_either_side():
    draws = np.stack([np.linspace(0.4, 0.6, 101), np.full(101, np.nan)], 1)
    assert [x[0] for x in bounds_with_failures(draws, 0.9, 0.0, 1.0)] == pytest.approx([0.5, 0.41, 0.59, 0])
    draws[::10, 0] = np.nan  # 11 of 101: more than 5 %
    median, lower, upper, share = bounds_with_failures(draws, 0.9, 0.0, 1.0)
    assert (lower[0], upper[0], share[0]) == (0, 1, 11 / 101)
    assert (median[0], share[1]) == (pytest.approx(0.5), 1)
    assert np.isnan([median[1], lower[1], upper[1]]).all()
    few = np.append(np.linspace(0.4, 0.6, 99), [np.nan] * 2)[:, None]  # 2 of 101: less than that
    lower, upper = (x[0] for x in bounds_with_failures(few, 0.9, 0.0, 1.0)[1:3])
    assert lower == pytest.approx(twins.quantile([0, 0, *few[:-2, 0]], 0.05))
    assert upper == pytest.approx(twins.quantile([*few[:-2, 0], 1, 1], 0.95))


def test_the_level_is_the_share_of_draws_between_the_ends(accuracy):
    found, draws = run(level=0.2), estimate_draws(accuracy.slices[""], accuracy.binary)
    for judge, name in (("good", "ppi_plus_plus"), ("good", "rogan_gladen")):
        drawn = draws[name][:, 0, JUDGES.index(judge)]
        ends = [twins.quantile(np.where(np.isnan(drawn), at, drawn), q) for at, q in ((0, 0.4), (1, 0.6))]
        row = found.loc[("a", judge, name)]
        assert row[["boot_lower", "boot_upper"]].tolist() == pytest.approx(ends)
        assert 0 < ends[0] < ends[1] < 1
    found = found.loc[("a", "good", "ppi_plus_plus")]
    y, f, g = rows(CALIBRATION, TEST, "a", "good")
    ends = twins.ppi_interval(y, f, g, twins.ppi_lambda(y, f, g, 1.0), True, 0.2)
    assert found[["lower", "upper"]].tolist() == pytest.approx(ends)


def test_rates(accuracy):
    found = accuracy.rates[accuracy.rates["slice"] == "law"].set_index(["model", "judge"])
    known = CALIBRATION[CALIBRATION["topic"] == "law"]
    drawn = accuracy.slices["law"].judged.draws.own
    for m, model in enumerate(MODELS):
        for j, judge in enumerate(JUDGES[:2]):
            q0, q1, m0, m1 = twins.judge_rates(*judged_rows(known, TEST, model, judge)[:2])
            row = found.loc[(model, judge)]
            assert row[["q0", "q1", "j", "m0", "m1"]].tolist() == pytest.approx([q0, q1, q0 + q1 - 1, m0, m1])
            q1_draws = (drawn.product / drawn.label)[:, 0, m, j]
            assert row["q1_boot_upper"] == pytest.approx(twins.quantile(q1_draws, 0.975))
    scores = found.xs("score", level="judge")
    assert scores["q0"].isna().all()
    assert (scores["status"] == "needs verdicts of 0 and 1").all()


def test_runs_are_averaged_so_that_n_counts_items():
    """Three runs of every judge: estimates are those of the means; by verdict, of all runs."""
    frames = [pd.concat([simulate(n, seed, n).assign(run=k) for k in range(3)]) for n, seed in ((60, 1), (100, 2))]
    rng = np.random.default_rng(0)
    for frame in frames:
        for judge in JUDGES[:2]:
            frame[judge] = np.where(rng.random(len(frame)) < 0.2, 1 - frame[judge], frame[judge])
    found = judge_accuracy(*(read(frame, run="run") for frame in frames), **SETTINGS).table.set_index(KEY)
    means = [frame.groupby(["item", "model"], as_index=False)[["human", *JUDGES]].mean() for frame in frames]
    assert_estimates(found, *means, {"naive", "difference", "ppi_plus_plus", "rogan_gladen"}, ["good", "score"])
    for model in MODELS:
        row = found.loc[(model, "good", "eif")]
        y, f, g = rows(*frames, model, "good")
        assert row["estimate"] == pytest.approx(twins.by_verdict(y, f, [*f, *g]))
        assert row["n_test"] == 100


# --- shared calibrations, strata ----------------------------------------------------------------


def adjusted(model, judge, labelled):
    q0, q1, _, _ = twins.judge_rates(*labelled)
    p = TEST.query("model == @model")[judge].mean()
    return np.clip(twins.misclassification_adjusted(p, q0, q1), 0, 1)


def test_a_named_model_shares_its_calibration(table):
    found = run(shared="b")
    for model in MODELS:
        expected = adjusted(model, "good", judged_rows(CALIBRATION, TEST, "b", "good")[:2])
        assert found.loc[(model, "good", "rogan_gladen_shared"), "estimate"] == pytest.approx(expected)
    own = found.loc[("b", "good", "rogan_gladen"), NUMBERS].astype(float)
    shared = found.loc[("b", "good", "rogan_gladen_shared"), NUMBERS].astype(float)
    np.testing.assert_allclose(shared, own)


def test_an_answer_of_two_models_is_one_label_that_weighs_twice(table):
    """The shared rates are those of the models' answers; the labels are as many as people gave."""
    calibration = simulate(60, 1).assign(text=lambda frame: np.arange(len(frame)))
    same = (calibration["model"] == "b") & (calibration["item"].str[-1].astype(int) < 5)
    columns = ["human", *JUDGES, "text"]
    calibration.loc[same, columns] = calibration.loc[np.flatnonzero(same) - 1, columns].to_numpy()
    found = judge_accuracy(read(calibration, answer="text"), read(TEST), **SETTINGS).table.set_index(KEY)
    assert_estimates(found, calibration, TEST, {"calibration_only", "difference"})
    once = calibration[~same]
    for model in MODELS:
        row = found.loc[(model, "good", "rogan_gladen_shared")]
        assert row["estimate"] == pytest.approx(adjusted(model, "good", pool(calibration, "good")))
        assert row["m0"] + row["m1"] == len(once)


def test_a_calibration_without_models_is_shared():
    found = without_models()
    rogan_gladen = found.table.set_index(KEY)
    for model in MODELS:
        expected = adjusted(model, "good", pool(CALIBRATION, "good"))
        row = rogan_gladen.loc[(model, "good", "rogan_gladen_shared")]
        assert (row["estimate"], row["status"]) == (pytest.approx(expected), "ok")
        assert rogan_gladen.loc[(model, "good", "naive"), "status"] == "ok"
        for name in ("calibration_only", "difference", "ppi_plus_plus", "ppi_plus_plus_half", "eif", "rogan_gladen"):
            row = rogan_gladen.loc[(model, "good", name)]
            assert row["status"] == "no calibration items"
            assert row[NUMBERS].isna().all()
    assert "no calibration labels of a, b, c: only a shared calibration can correct them" in found.warnings
    assert (found.rates["status"][:2] == "no calibration items").all()


def test_judges_of_the_test_choose_those_of_the_calibration():
    test = read(TEST, judgment=JUDGES[::-1])
    found = judge_accuracy(read(CALIBRATION), test, **SETTINGS).table
    plain = judge_accuracy(read(CALIBRATION, judgment=JUDGES[::-1]), test, **SETTINGS).table
    pd.testing.assert_frame_equal(found, plain)
    assert found["judge"].unique().tolist() == JUDGES[::-1]


@pytest.mark.slow
def test_strata_are_corrected_apart_and_added_up_by_test_shares():
    found = stratified().table.set_index(KEY)
    for model in MODELS:
        for judge, binary in zip(JUDGES, BINARY, strict=True):
            expected = dict.fromkeys(ESTIMATORS, 0.0)
            n, n_judged = (len(used(*MANY, model, judge)[2]) for used in (rows, judged_rows))
            for topic in ("art", "law"):
                calibration, test = (frame[frame["topic"] == topic] for frame in MANY)
                g, judged = (used(calibration, test, model, judge)[2] for used in (rows, judged_rows))
                for name, value in accuracies(calibration, test, model, judge, binary).items():
                    of_judged = name in ("naive", "rogan_gladen")
                    expected[name] += (len(judged) / n_judged if of_judged else len(g) / n) * value
                if binary:
                    q0, q1, _, _ = twins.judge_rates(*pool(calibration, judge))
                    shared = twins.misclassification_adjusted(np.mean(judged), q0, q1) if q0 + q1 > 1 else np.nan
                    expected["rogan_gladen_shared"] += len(judged) / n_judged * shared
            for name, value in expected.items():
                row = found.loc[(model, judge, name)]
                if name != "ppi_plus_plus_half" and row["status"] not in NO_ANSWER:
                    assert row["estimate"] == pytest.approx(np.clip(value, 0, 1), nan_ok=True)
                    assert (row["status"] == "J <= 0") == np.isnan(value)


# --- invariances --------------------------------------------------------------------------------


def assert_same_draws(one, other, rtol=1e-12):
    for a, b in zip((*one.test, *one.own, *one.shared), (*other.test, *other.own, *other.shared), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-9)


def test_names_of_items_do_not_matter(accuracy):
    """Their order neither, save for the random halves."""
    turned = [frame.assign(item=frame["item"].map(lambda name: name[::-1])) for frame in (CALIBRATION, TEST)]
    assert_same_draws(
        judge_accuracy(*map(read, turned), **SETTINGS).slices[""].judged.draws, accuracy.slices[""].judged.draws
    )


def test_seeds_and_slices_have_draws_of_their_own(accuracy):
    data = arrays(read(CALIBRATION), read(TEST), None, "pooled")
    plain = accuracy.slices[""].judged.draws.test.judgment
    for label, seed in (("", 1), ("law", 0)):
        (other, _), _ = resampled([data, with_missing_filled(data)], label, 400, 4, seed, LaneRun())
        assert not np.isclose(other.test.judgment, plain).all((1, 2, 3)).any()


def test_test_and_calibration_are_drawn_apart_and_judges_together():
    draws = stratified().slices[""].judged.draws
    test, own, n = draws.test.judgment.sum(1), draws.own.judgment.sum(1), draws.test.n.sum(1)
    for j in range(3):
        assert abs(np.corrcoef(test[:, 0, j], own[:, 0, j])[0, 1]) < 5 / np.sqrt(400)
    # All have about the same items: scores and verdicts rise with the right answers among them.
    assert np.corrcoef(test[:, 0, 0] / n[:, 0, 0], test[:, 0, 2] / n[:, 0, 2])[0, 1] > 5 / np.sqrt(400)


# --- no answer ----------------------------------------------------------------------------------


def status(calibration=CALIBRATION, test=TEST, **options):
    return run(calibration, test, **options).pivot_table("status", KEY[:2], "estimator", "first")


def test_one_class_and_no_labels():
    calibration = CALIBRATION.assign(
        human=CALIBRATION["human"].mask(CALIBRATION["model"] == "a", 1.0).mask(CALIBRATION["model"] == "b")
    )
    found = status(calibration)
    assert found.loc[("a", "good"), "rogan_gladen"] == "labels of one class only"
    assert found.loc[("a", "good"), "ppi_plus_plus"] == "labels of one class"
    assert found.loc[("a", "good"), "calibration_only"] == "ok"
    assert found.loc[("b", "good"), "ppi_plus_plus"] == "no calibration items"
    assert found.loc[("b", "good"), "rogan_gladen_shared"] == "J near 0"
    assert found.loc[("c", "score"), "eif"] == "needs verdicts of 0 and 1"
    assert found.loc[("c", "poor"), "rogan_gladen"] == "J <= 0"


def test_a_judge_who_always_says_the_same():
    """It adds nothing to the labels: no estimate that uses them may have a shorter interval than they have."""
    calibration, test = (frame.assign(good=1.0) for frame in (CALIBRATION, TEST))
    found = run(calibration, test).xs("good", level="judge")
    for name in ("conditional", "eif", "ppi_plus_plus"):
        for model in MODELS:
            y = rows(calibration, test, model, "good")[0]
            row = found.loc[(model, name)]
            assert (row["estimate"], row["status"]) == (pytest.approx(np.mean(y)), "ok")
            half = Z * np.sqrt(np.var(y) / len(y))
            assert row["upper_untruncated"] - row["lower_untruncated"] > 1.9 * half
    assert (found.xs("rogan_gladen", level="estimator")["status"] == "J <= 0").all()


def test_a_verdict_that_the_calibration_lacks():
    found = status(CALIBRATION.assign(good=1.0))
    assert (found.xs("good", level="judge")["eif"] == "a verdict of the test is not in the calibration").all()
    assert (found.xs("good", level="judge")["difference"] == "ok").all()


def test_no_test_items_in_a_slice():
    test = TEST[(TEST["model"] != "b") | (TEST["topic"] == "art")]
    found = judge_accuracy(read(CALIBRATION), read(test), by="topic", **SETTINGS)
    law = found.table[(found.table["slice"] == "law") & (found.table["model"] == "b")]
    assert (law["status"] == "no test items").all()
    assert law[NUMBERS].isna().all(axis=None)
    assert (law["n_test"] == 0).all()
    assert "slice 'law' of topic: no test items of b" in found.warnings
    (unlike,) = (warning for warning in found.warnings if "judged on different items" in warning)
    assert "missing='complete' (on the command line --missing complete)" in unlike


def test_models_that_share_no_item_are_told_to_name_the_items():
    apart = TEST.assign(item=np.arange(len(TEST)))
    found = judge_accuracy(read(CALIBRATION), read(apart), **SETTINGS)
    assert any("name the column of items (item=, --item)" in warning for warning in found.warnings)
    assert not any("missing=" in warning for warning in found.warnings)


def test_a_slice_without_calibration():
    found = judge_accuracy(read(CALIBRATION[CALIBRATION["topic"] == "art"]), read(TEST), by="topic", **SETTINGS)
    law = found.table[found.table["slice"] == "law"].pivot_table("status", KEY[:2], "estimator", "first")
    assert law["naive"].isin(["ok", "scores are no shares"]).all()
    assert (law.loc[("a", "good")].drop("naive") == "no calibration items").all()


def test_a_model_that_no_judge_judged_is_named():
    test = TEST.assign(**{judge: TEST[judge].mask(TEST["model"] == "c") for judge in JUDGES})
    found = judge_accuracy(read(CALIBRATION), read(test), **SETTINGS)
    assert "no test items of c" in found.warnings
    assert (found.table[found.table["model"] == "c"]["status"] == "no test items").all()


def test_warnings_and_settings(accuracy):
    unlabelled = int(CALIBRATION["human"].isna().sum())
    assert f"left out: {unlabelled} calibration answers without a label" in accuracy.warnings
    assert not any("no test items" in warning for warning in accuracy.warnings)
    overlap = judge_accuracy(read(CALIBRATION), read(CALIBRATION), sampling="random", **SETTINGS)
    assert any("60 items are in the calibration and in the test" in warning for warning in overlap.warnings)
    settings = accuracy.settings
    assert (settings.level, settings.n_resamples, settings.n_halves, settings.by) == (0.95, 400, 4, "topic")
    assert "jaxeval" in settings.versions
    assert accuracy.models.tolist() == MODELS
    assert accuracy.judges.tolist() == JUDGES


@pytest.mark.parametrize(("change", "options", "error", "message"), [
    ({"human": np.nan}, {}, DataError, "the calibration answers have no human labels"),
    ({}, {"shared": "z"}, DataError, "shared='z' is no model of the calibration; its models are 'a', 'b', 'c'"),
    ({"topic": "art"}, {"stratify": "topic"}, DataError, "no calibration labels where 'topic' is 'law'"),
    ({}, {"n_resamples": 0}, ValueError, "n_resamples must be at least 2, got 0"),
    ({}, {"n_halves": 0}, ValueError, "n_halves must be at least 1, got 0"),
])  # fmt: skip
def test_wrong_arguments(change, options, error, message):
    with pytest.raises(error, match=message):
        judge_accuracy(read(CALIBRATION.assign(**change)), read(TEST), **options)


def test_another_judge():
    with pytest.raises(DataError, match="the test has judgments by 'score', the calibration has none; its judges are"):
        judge_accuracy(read(CALIBRATION, judgment=["good", "poor"]), read(TEST))


# --- what reviewers broke -----------------------------------------------------------------------


def few(labels, judgments, n_test=60, seed=0):
    """A model with these calibration items, and test items judged right three times in four; and its double."""
    rng = np.random.default_rng(seed)
    calibration = pd.DataFrame({"item": range(len(labels)), "human": labels, "good": judgments})
    test = pd.DataFrame({"item": range(1000, 1000 + n_test), "good": (rng.random(n_test) < 0.75).astype(float)})
    frames = (pd.concat([frame.assign(model=m) for m in "ab"]) for frame in (calibration, test))
    return (JudgedAnswers.from_pandas(frame, judgment="good", model="model", item="item") for frame in frames)


def of_few(*arguments):
    """Rows of that model by estimator."""
    table = judge_accuracy(*few(*arguments), **SETTINGS).table
    return table[table["model"] == "a"].set_index("estimator")


@pytest.mark.slow
def test_a_judge_who_never_erred_on_few_labels_is_not_taken_for_perfect():
    row = of_few([1.0] * 28 + [0.0] * 12, [1.0] * 28 + [0.0] * 12, 5000).loc["ppi_plus_plus"]
    assert row["upper"] - row["lower"] > 0.1
    assert row["boot_upper"] - row["boot_lower"] < 0.05  # the resamples do take it for that


@pytest.mark.parametrize(("labels", "judgments", "status"), [
    ([0.0] * 4 + [1.0] * 30, [0.0] * 4 + [1.0] * 30, "few labels of a class"),
    ([0.0] * 30 + [1.0] * 30, [0.0, 1.0, 0.0] * 10 + [1.0, 1.0, 0.0] * 10, "J near 0"),
])  # fmt: skip
def test_what_the_labels_do_not_bound_has_the_whole_range(labels, judgments, status):
    """In closed form, by resamples, and in differences; the estimate stays."""
    answers = tuple(few(labels, judgments))
    found = judge_accuracy(*answers, **SETTINGS).table
    row = found[found["model"] == "a"].set_index("estimator").loc["rogan_gladen"]
    assert row["status"] == status
    ends = ["lower", "upper", "boot_lower", "boot_upper", "lower_untruncated", "upper_untruncated"]
    assert row[ends].tolist() == [0, 1, 0, 1, -np.inf, np.inf]
    assert 0 <= row["estimate"] <= 1
    pair = compare_models(*answers, ("a", "b"), **SETTINGS).table.set_index("estimator").loc["rogan_gladen"]
    assert pair["status"] == status
    assert pair[ends[:4]].tolist() == [-1, 1, -1, 1]


def test_one_score_to_test_and_two_labels_do_not_bound_the_accuracy():
    """Their variance is unknown: the interval was the whole range, "ok"."""
    for labels, n_test, status in (([1.0, 0.0, 1.0], 1, "too few test items"), ([1.0, 0.0], 9, "too few labels")):
        calibration = pd.DataFrame({"good": np.linspace(0.1, 0.8, len(labels)), "human": labels})
        test = pd.DataFrame({"good": np.linspace(0.2, 0.9, n_test)})
        parts = (JudgedAnswers.from_pandas(frame, judgment="good") for frame in (calibration, test))
        rows_of = judge_accuracy(*parts, sampling="random", **SETTINGS).table.set_index("estimator")
        for name in ("difference", "ppi_plus_plus"):
            row = rows_of.loc[name]
            assert (row["status"], row["lower"], row["upper"]) == (status, 0, 1)
            assert row[["median", "boot_lower"]].isna().all()
        assert rows_of.loc["calibration_only", "status"] == "ok"
        assert rows_of.index[rows_of["believe"]].tolist() == ["calibration_only"]


def test_labels_of_one_class_have_no_resamples():
    row = of_few([1.0] * 8, [1.0] * 8).loc["ppi_plus_plus"]
    assert row["status"] == "labels of one class"
    assert row["lower"] < 0.8
    assert row[["median", "boot_lower", "boot_upper"]].isna().all()


def test_one_test_item_is_not_exact():
    row = of_few([1.0, 0.0] * 20, [1.0, 0.0] * 20, 1)
    for name in ("naive", "ppi_plus_plus", "rogan_gladen"):
        assert row.loc[name, "upper"] - row.loc[name, "lower"] > 0.3


def test_j_that_the_adjustment_takes_to_0_is_a_status():
    row = of_few([0.0] + [1.0] * 20, [0.0] + [1.0] * 5 + [0.0] * 15).loc["rogan_gladen"]
    assert row["status"] == "J <= 0"
    assert row[["estimate", "lower", "upper", "boot_lower"]].isna().all()


@pytest.mark.slow
def test_rates_of_averaged_runs_have_no_rounding_beyond_their_range():
    rng = np.random.default_rng(0)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        items = np.repeat(np.arange(30), 3)
        right = items % 2
        frame = pd.DataFrame(
            {"item": items, "run": np.tile(range(3), 30), "human": right,
             "good": np.where(right == 0, 1.0, rng.random(90) < 0.5)}
        )  # fmt: skip
        answers = JudgedAnswers.from_pandas(frame, judgment="good", item="item", run="run")
        found = judge_accuracy(answers.take(np.arange(20)), answers.take(np.arange(20, 30)), n_resamples=16)
        assert 0 <= found.rates["q0"].iloc[0] < 1e-12


def test_names_of_slices_must_tell_them_apart():
    for value in ("all", ""):
        frames = [frame.assign(topic=frame["topic"].replace("law", value)) for frame in (CALIBRATION, TEST)]
        with pytest.raises(DataError, match="values that cannot name slices"):
            judge_accuracy(*map(read, frames), by="topic", **SETTINGS)


def test_an_empty_stratum_names_its_slice():
    """Of the calibration's law there is none with the stratum x, of the test's there is."""
    frames = [frame.assign(kind="y") for frame in (CALIBRATION, TEST)]
    frames[0].loc[frames[0]["topic"] == "art", "kind"] = "x"
    frames[1].loc[frames[1].index[::2], "kind"] = "x"
    answers = [
        JudgedAnswers.from_pandas(
            f, judgment="good", model="model", item="item", keep=["topic", "kind"], missing="drop"
        )
        for f in frames
    ]
    with pytest.raises(DataError, match="slice 'art' of 'topic': no calibration labels where 'kind' is 'y'"):
        judge_accuracy(*answers, by="topic", stratify="kind", **SETTINGS)


def test_models_named_by_other_types_are_an_error():
    numbered = [frame.assign(model=frame["model"].map({"a": 1, "b": 2, "c": 3})) for frame in (CALIBRATION, TEST)]
    with pytest.raises(DataError, match="name models by values of different types, int64 and str"):
        judge_accuracy(read(numbered[0]), read(numbered[1].assign(model=numbered[1]["model"].astype(str))), **SETTINGS)


# --- several processes --------------------------------------------------------------------------
