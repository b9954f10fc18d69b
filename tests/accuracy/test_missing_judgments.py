"""Missing judgments: labels stay, estimates of all answers stay unbiased, and what is not missing by chance is said."""

import numpy as np
import pandas as pd
import pytest
from answers import CALIBRATION, MODELS, SETTINGS, TEST, read, rows, simulate

from jaxeval import JudgedAnswers
from jaxeval.accuracy.judge_accuracy import judge_accuracy, missing_judgments
from jaxeval.accuracy.judged_sums import POOLED, arrays, with_missing_filled

NAMES = {"judgment": "good", "model": "model", "item": "item", "missing": "drop"}


def few(judgments, labels, test=(1.0, 0.0, 1.0, 1.0)):
    """One model with these calibration items, and these test judgments."""
    return (
        JudgedAnswers.from_pandas(pd.DataFrame(columns), judgment="good", missing="drop")
        for columns in ({"good": judgments, "human": labels}, {"good": test})
    )


def test_labels_without_a_judgment_stay():
    """Labels alone use all three; complete rows would say 1/2."""
    found = judge_accuracy(*few([1.0, 1.0, np.nan], [1, 0, 1]), **SETTINGS).table.set_index("estimator")
    assert found.loc["calibration_only", "estimate"] == pytest.approx(2 / 3)
    assert found.loc["calibration_only", ["m0", "m1"]].tolist() == [1, 2]
    assert found.loc["rogan_gladen", ["m0", "m1"]].tolist() == [1, 1]


@pytest.mark.parametrize("stratify", [None, "topic"])
def test_missing_judgments_are_the_mean_of_the_test(stratify):
    calibration, test = read(CALIBRATION), read(TEST)
    data = arrays(calibration, test, stratify, POOLED)
    filled = with_missing_filled(data)
    np.testing.assert_array_equal(filled.own.used.all(2), ~np.isnan(data.human))
    assert filled.test.judged.all()
    for m, model in enumerate(MODELS):
        parts = [(CALIBRATION, TEST)]
        if stratify:
            parts = [[frame[frame["topic"] == topic] for frame in (CALIBRATION, TEST)] for topic in ("art", "law")]
        y, f, g = (np.concatenate(x) for x in zip(*(rows(*part, model, "good") for part in parts), strict=True))
        used = filled.own.used[:, m, 0]
        for found, expected in (
            (filled.own.label[used, m, 0], y),
            (filled.own.judgment[used, m, 0], f),
            (filled.test.judgment[:, m, 0], g),
        ):
            np.testing.assert_allclose(np.sort(found), np.sort(expected))


def test_complete_data_are_left_as_they_are():
    data = arrays(read(simulate(20, 1, unlabelled=0.2)), read(simulate(30, 2, first=20)), None, POOLED)
    assert with_missing_filled(data) is data


def test_an_answer_that_is_not_there_is_not_filled():
    """A model without an answer to an item, and a judge who was not asked about a model."""
    test = TEST[(TEST["model"] != "b") | (TEST["item"] > "q0080")]
    test = test.assign(poor=test["poor"].mask(test["model"] == "c"))
    filled = with_missing_filled(arrays(read(CALIBRATION), read(test), None, POOLED))
    assert filled.test.judged[:, 1, 0].sum() == (test["model"] == "b").sum()
    assert not filled.test.judged[:, 2, 1].any()
    assert filled.test.judged[:, 2, 0].all()


def gaps(frame, seed, wrong, right, of=None):
    """A share of the judgments of answers labelled wrong and right is missing."""
    missing = np.random.default_rng(seed).random(len(frame)) < np.where(frame["human"] == 0, wrong, right)
    return frame.assign(good=frame["good"].mask(missing & (True if of is None else frame["model"] == of)))


def warnings_of(calibration, test):
    return missing_judgments(*(JudgedAnswers.from_pandas(frame, **NAMES) for frame in (calibration, test)))


FULL = simulate(200, 5), simulate(300, 6, first=200)


def test_nothing_missing_and_missing_at_random():
    assert warnings_of(*FULL) == []
    (counted,) = warnings_of(*(gaps(frame, 0, 0.1, 0.1) for frame in FULL))
    known, asked = (gaps(frame, 0, 0.1, 0.1)["good"].isna().sum() for frame in FULL)
    assert f"{known} of 600 labelled calibration answers and {asked} of 900 test answers have no judgment" in counted


@pytest.mark.parametrize(("shares", "words"), [
    (((0.3, 0.05, None), (0.3, 0.05, None)), "of the answers labelled wrong and"),
    (((0.3, 0.3, "b"), (0.3, 0.3, "b")), "of the answers of a and"),
    (((0.0, 0.0, None), (0.2, 0.2, None)), "of the labelled calibration answers and"),
])  # fmt: skip
@pytest.mark.slow
def test_missing_shares_that_differ_are_named(shares, words):
    parts = [gaps(frame, 1, *share) for frame, share in zip(FULL, shares, strict=True)]
    found = warnings_of(*parts)
    assert any(words in warning and "more than chance explains" in warning for warning in found)
    calibration, test = (JudgedAnswers.from_pandas(frame, **NAMES) for frame in parts)
    assert set(found) <= set(judge_accuracy(calibration, test, **SETTINGS).warnings)


def test_a_calibration_without_models_is_counted_too():
    calibration = FULL[0].drop(columns=["model", "item"]).assign(good=FULL[0]["good"].mask(FULL[0].index < 30))
    parts = (JudgedAnswers.from_pandas(calibration, judgment="good", missing="drop"),
             JudgedAnswers.from_pandas(FULL[1], **NAMES))  # fmt: skip
    counted, *_ = missing_judgments(*parts)
    assert "30 of 600 labelled calibration answers and 0 of 900 test answers" in counted


def test_labels_that_some_test_answers_lack_are_counted():
    test = TEST.assign(human=TEST["human"].mask((TEST["model"] == "a") & (TEST["item"] < "q0090")))
    found = judge_accuracy(read(CALIBRATION), read(test), **SETTINGS)
    assert any("not all test answers have a label" in warning and "a (70 of 100)" in warning
               for warning in found.warnings)  # fmt: skip
    of_a = found.table[found.table["model"] == "a"]
    left = test[(test["model"] == "a") & test["human"].notna()]["human"]
    assert of_a["truth"].to_numpy() == pytest.approx(left.mean())
    assert (of_a["n_truth"] == 70).all()
    complete = judge_accuracy(read(CALIBRATION), read(TEST), **SETTINGS)
    assert not any("truth" in warning for warning in complete.warnings)


@pytest.mark.slow
@pytest.mark.parametrize("wrong_and_right", [((0.4, 0.05), (0.4, 0.05)), ((0.3, 0.3), (0.0, 0.0))])
def test_intervals_cover_whatever_is_missing(wrong_and_right):
    """Missing by class alike in calibration and test, or at random in one: 500 data sets, one a model."""
    theta, q0, q1, repeats = 0.7, 0.8, 0.9, 500
    rng = np.random.default_rng(0)
    answers = []
    for n, missing in zip((150, 1000), wrong_and_right, strict=True):
        right = rng.random((n, repeats)) < theta
        verdict = (rng.random(right.shape) < np.where(right, q1, 1 - q0)).astype(float)
        verdict[rng.random(right.shape) < np.where(right, missing[1], missing[0])] = np.nan
        item, model = np.indices(right.shape).reshape(2, -1)
        frame = pd.DataFrame({"item": item + n, "model": model, "human": right.ravel() * 1.0, "good": verdict.ravel()})
        answers.append(JudgedAnswers.from_pandas(frame, **NAMES))
    table = judge_accuracy(*answers, n_resamples=2, n_halves=1).table
    for name in ("calibration_only", "difference", "ppi_plus_plus", "conditional", "eif"):
        found = table[table["estimator"] == name]
        error = found["estimate"] - theta
        assert abs(error.mean()) < 5 * error.std() / np.sqrt(repeats), name
        covered = ((found["lower"] <= theta) & (theta <= found["upper"])).mean()
        assert abs(covered - 0.95) < 5 * np.sqrt(0.95 * 0.05 / repeats), name
    spread = table.groupby("estimator")["estimate"].std()
    assert spread["ppi_plus_plus"] < spread["calibration_only"]
