"""Coverage over repeated splits, against the same computed split by split."""

import numpy as np
import pandas as pd
import pytest

import jaxeval
from jaxeval import DataError, JudgedAnswers
from jaxeval.accuracy.judge_accuracy import judge_accuracy
from jaxeval.accuracy.split_study import _weights, split_study

JUDGES = ["judge-1", "judge-2"]


def read(table, **options):
    return JudgedAnswers.from_pandas(table, judgment=JUDGES, model="model", item="item", **options)


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
