"""Answers on which a judge's runs disagree, left out: by hand, and what moves."""

import numpy as np
import pandas as pd
import pytest

from jaxeval.anchored.abstention import abstain
from jaxeval.anchored.elo import anchored_elo
from jaxeval.anchored.scores import anchored_scores
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.data.simulate.verdicts import simulate_anchored_verdicts
from jaxeval.errors import DataError

OUTCOME = {"win": 1.0, "tie": 0.5, "loss": 0.0}


def verdicts(answers):
    """From {(model, judge): a word of w, t and l per item}."""
    label = {"w": "win", "t": "tie", "l": "loss"}
    rows = [
        (model, judge, item, run, label[letter])
        for (model, judge), words in answers.items()
        for item, word in enumerate(words.split())
        for run, letter in enumerate(word)
    ]
    return AnchoredVerdicts.from_pandas(pd.DataFrame(rows, columns=["model", "judge", "item", "run", "verdict"]))


def test_by_hand():
    """Deviations 0, 1/2, 1/4 and 0: at 0.25 the second goes."""
    found = abstain(verdicts({("a", "x"): "ww wl wt ll"}))
    (row,) = found.table.itertuples(index=False)
    assert (row.coverage, row.n_items, row.n_items_trusted) == (0.75, 4, 3)
    everything, trusted = anchored_elo(1 + 0.5 + 0.5, 0.5, 1 + 0.5), anchored_elo(1.5, 0.5, 1)
    assert (row.probability, row.probability_trusted) == (everything.probability, trusted.probability)
    assert row.probability_shift == pytest.approx(trusted.probability - everything.probability)
    assert row.rating_shift == pytest.approx(trusted.rating - everything.rating)
    assert len(found.trusted.outcome) == 6
    assert found.threshold == 0.25


@pytest.mark.parametrize(("threshold", "kept"), [(0.0, 2), (0.249, 2), (0.25, 3), (0.49, 3), (0.5, 4)])
def test_thresholds_are_reached(threshold, kept):
    assert abstain(verdicts({("a", "x"): "ww wl wt ll"}), threshold).table["n_items_trusted"].tolist() == [kept]


@pytest.mark.parametrize(("words", "deviation"), [("wwl lwl", np.sqrt(2) / 3), ("wllll tllll", 0.4), ("wtl", 6**-0.5)])
def test_rounding_does_not_pass_the_threshold(words, deviation):
    assert abstain(verdicts({("a", "x"): words}), deviation).table["coverage"].tolist() == [1]


def test_against_pandas():
    table = simulate_anchored_verdicts(n_items=30, n_judges=3, n_runs=3, run_sd=1.0, seed=3)
    found = abstain(AnchoredVerdicts.from_pandas(table), 0.3, prior=1.0)
    outcome = table.assign(o=table["verdict"].map(OUTCOME))
    sd = outcome.groupby(["model", "judge", "item"])["o"].transform("std", ddof=0)
    left = table[sd <= 0.3]
    by = ["model", "judge"]
    twin = anchored_scores(AnchoredVerdicts.from_pandas(left), by, prior=1.0)
    np.testing.assert_allclose(found.table["probability_trusted"], twin["probability"])
    np.testing.assert_allclose(found.table["rating_trusted"], twin["rating"])
    np.testing.assert_allclose(found.table["coverage"], left.groupby(by)["item"].nunique() / 30)

    for model, block in found.table.groupby("model"):
        row = found.summary.set_index("model").loc[model]
        assert row["coverage"] == pytest.approx(block["coverage"].mean())
        for ending in ("", "_trusted"):
            p = block[f"probability{ending}"]
            assert row[f"standard_error{ending}"] == pytest.approx(block[f"probability_se{ending}"].mean())
            assert row[f"cv{ending}"] == pytest.approx(p.std(ddof=1) / p.mean())


def test_a_judge_of_whom_nothing_is_left():
    found = abstain(verdicts({("a", "x"): "wl lw", ("a", "y"): "ww ww", ("b", "x"): "ww wl"}))
    row = found.table.set_index(["model", "judge"]).loc[("a", "x")]
    assert (row["coverage"], row["n_items_trusted"]) == (0, 0)
    assert np.isnan(row["probability_trusted"])
    summary = found.summary.set_index("model")
    assert summary.loc["a", "coverage"] == 0.5
    assert np.isnan(summary.loc["a", "cv_trusted"])
    assert summary.loc["a", "cv"] > 0


def test_answers_with_a_single_run_are_no_answers_to_trust():
    table = pd.DataFrame({"item": [1, 1, 2], "run": [1, 2, 1], "verdict": ["win", "loss", "win"]})
    with pytest.raises(DataError, match="or have one run"):
        abstain(AnchoredVerdicts.from_pandas(table))
    table.loc[1, "verdict"] = "win"
    assert abstain(AnchoredVerdicts.from_pandas(table)).table["n_items_trusted"].tolist() == [1]


def test_judges_that_repeat_themselves_are_left_alone():
    table = simulate_anchored_verdicts(n_items=20, n_judges=2, n_runs=3, run_sd=0.0)
    found = abstain(AnchoredVerdicts.from_pandas(table), 0.0)
    assert (found.table["coverage"] == 1).all()
    assert (found.table[["probability_shift", "rating_shift"]] == 0).all(axis=None)


def test_errors():
    one = pd.DataFrame({"item": [1, 2], "verdict": ["win", "loss"]})
    with pytest.raises(DataError, match=r"abstention needs repeated runs: name the column .* \(run=, --run\)"):
        abstain(AnchoredVerdicts.from_pandas(one))
    with pytest.raises(DataError, match=r"vary by more than 0\.1 between runs, or have one run: nothing is left"):
        abstain(verdicts({("a", "x"): "wl wt"}), 0.1)


@pytest.mark.parametrize("threshold", [-0.1, float("nan"), float("inf"), "0.25", None])
def test_a_threshold_is_a_standard_deviation(threshold):
    verdicts = AnchoredVerdicts.from_pandas(simulate_anchored_verdicts(n_items=4, n_judges=1, n_runs=2))
    with pytest.raises((TypeError, ValueError), match=r"threshold must be (a number|finite and >= 0), got"):
        abstain(verdicts, threshold)
