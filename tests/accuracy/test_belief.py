"""Which estimate is marked, and when calibration and test are not of one population."""

import numpy as np
import pytest
from answers import CALIBRATION, SETTINGS, TEST, read, simulate

from jaxeval import JudgedAnswers, compare_models, judge_accuracy, simulate_judged_answers
from jaxeval.accuracy.belief import REASONS, believed, believed_of_pair, shifted
from jaxeval.accuracy.estimates import ESTIMATORS
from jaxeval.accuracy.judged_sums import POOLED, Sums, arrays, sums
from jaxeval.kernels.judge_error import SURE_Z, JudgedSums, LabelledSums

#: PPI++, Rogan-Gladen, labels alone, whether calibration and test differ; what is marked.
RULE = [
    ("ok", "ok", "ok", False, "ppi_plus_plus"),
    ("clipped", "ok", "ok", False, "ppi_plus_plus"),
    ("ok", "J near 0", "ok", False, "ppi_plus_plus"),
    ("outside", "ok", "ok", False, "calibration_only"),
    ("labels of one class", "labels of one class only", "ok", False, "calibration_only"),
    ("too few labels", "needs verdicts of 0 and 1", "ok", False, "calibration_only"),
    ("no calibration items", "no calibration items", "no calibration items", False, ""),
    ("ok", "ok", "ok", True, "rogan_gladen"),
    ("ok", "clipped", "ok", True, "rogan_gladen"),
    ("ok", "outside", "ok", True, ""),
    ("ok", "J near 0", "ok", True, ""),
]


@pytest.mark.parametrize(("ppi", "rogan_gladen", "labels", "shift", "expected"), RULE)
def test_the_rule(ppi, rogan_gladen, labels, shift, expected):
    words = {"ppi_plus_plus": ppi, "rogan_gladen": rogan_gladen, "calibration_only": labels}
    status = {name: np.array([[word]], object) for name, word in words.items()}
    assert believed(status, np.array([[shift]]), "random").tolist() == [[expected]]
    assert expected in {"", *REASONS}
    # Of no other calibration may PPI++ or labels alone be believed, whether a shift shows or not.
    other = "rogan_gladen" if rogan_gladen in ("ok", "clipped") else ""
    for sampling in ("by label", "borrowed", None):
        assert believed(status, np.array([[shift]]), sampling).tolist() == [[other]]


@pytest.mark.parametrize(("a", "b", "corrected", "expected"), [
    ("ppi_plus_plus", "ppi_plus_plus", False, "ppi_plus_plus"),
    ("ppi_plus_plus", "", True, ""),
    ("ppi_plus_plus", "calibration_only", True, "calibration_only"),
    ("rogan_gladen", "ppi_plus_plus", True, "rogan_gladen"),
    ("rogan_gladen", "ppi_plus_plus", False, ""),
    ("rogan_gladen", "calibration_only", False, ""),
])  # fmt: skip
def test_the_rule_of_pairs(a, b, corrected, expected):
    for one, other in ((a, b), (b, a)):
        names = (np.array([[name]], object) for name in (one, other))
        assert believed_of_pair(*names, np.array([[corrected]])).tolist() == [[expected]]


@pytest.mark.slow
def test_each_model_and_judge_has_at_most_one_mark():
    found = compare_models(read(CALIBRATION), read(TEST), by="topic", **SETTINGS)
    for table, keys in ((found.accuracy.table, ["model"]), (found.table, ["model_a", "model_b"])):
        marks = table.groupby(["slice", *keys, "judge"])["believe"].sum()
        assert marks.max() == 1
        assert not table.loc[table["estimator"].isin(["naive", "rogan_gladen_shared"]), "believe"].any()
    assert set(found.accuracy.table["estimator"]) == set(ESTIMATORS)


def of(calibration, test):
    return shifted(sums(arrays(read(calibration), read(test), None, POOLED)))


def test_chance_is_no_shift_and_another_share_of_right_answers_is():
    calibration, test = simulate(400, 1), simulate(800, 2, first=400)
    assert not of(calibration, test).any()
    easier = calibration[(calibration["human"] == 1) | (calibration["item"].str[-1] < "3")]
    found = of(easier, test)
    assert found[:, [0, 2]].any(axis=1).all()  # by the good judge or the scores; the poor one says nearly nothing
    assert not found[:, 1].any()


def test_a_shift_is_found_by_the_z_of_two_shares_together():
    """In two strata, which have a quarter and three quarters of the test: verdicts of 1 on k of 40 labelled answers."""
    labelled, n, right = np.array([20, 40]), np.array([250, 750]), np.array([100, 400])
    found, expected = [], []
    for k in range(41):
        judged = np.array([9, k])
        share, p = n / n.sum(), (judged + right) / (labelled + n)
        gap = share @ (right / n - judged / labelled)
        variance = share**2 @ (p * (1 - p) * (1 / labelled + 1 / n))
        expected.append(abs(gap) > SURE_Z * np.sqrt(variance))
        own, test = (x[:, None, None].astype(float) for x in (judged, right))
        nothing = np.zeros((2, 1, 1))
        total = Sums(
            JudgedSums(n[:, None, None], test, test),
            LabelledSums(labelled[:, None, None], nothing, own, nothing, own, nothing),
            LabelledSums(*[nothing] * 6),
        )
        found.append(bool(shifted(total)[0, 0]))
    assert found == expected
    assert 0 < sum(expected) < 41


def test_judgments_that_never_vary_are_no_shift():
    assert not of(*(frame.assign(good=1.0, score=0.1) for frame in (simulate(40, 1), simulate(80, 2)))).any()


@pytest.mark.slow
def test_a_calibration_of_easier_items_marks_rogan_gladen():
    """Half of the wrong answers are left out of the calibration: PPI++ is then off, Rogan-Gladen is not."""
    table = simulate_judged_answers([0.6, 0.6], 0.9, 0.9, 3000, seed=3)
    table = table[(table["item"] >= 1000) | (table["human"] == 1) | (table["item"] % 4 == 0)]
    answers = JudgedAnswers.from_pandas(table, judgment="judge-1", model="model", item="item")
    calibration, test = (answers.take(answers.items.to_numpy() < 1000), answers.take(answers.items.to_numpy() >= 1000))
    found = judge_accuracy(calibration, test, sampling="random", **SETTINGS)
    rows = found.table[found.table["model"] == "model-1"].set_index("estimator")
    assert rows.index[rows["believe"]].tolist() == ["rogan_gladen"]
    assert rows.loc["rogan_gladen", "lower"] < 0.6 < rows.loc["rogan_gladen", "upper"]
    assert rows.loc["ppi_plus_plus", "lower"] > 0.6
    report = found.report()
    assert "another share" in {caution.kind for caution in report.cautions}
    assert "believe rogan_gladen: it needs no random calibration" in report.text
    comparison = compare_models(calibration, test, **SETTINGS)
    assert comparison.table.loc[comparison.table["believe"], "estimator"].tolist() == ["rogan_gladen"]
    (claim,) = comparison.report().claims()
    assert "by Rogan-Gladen with the models' own labels" in claim
