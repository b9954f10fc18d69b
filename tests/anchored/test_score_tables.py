"""Tables over judges: by hand, and as the method's papers lay them out."""

import numpy as np
import pandas as pd
import pytest

from jaxeval.anchored.direct_scoring import direct_win_probability
from jaxeval.anchored.elo import anchored_elo
from jaxeval.anchored.scores import anchored_scores
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.errors import DataError
from jaxeval.lab.anchored_tables import (
    abstain,
    guarded_scores,
    heterogeneity,
    method_tables,
    prior_sensitivity,
    prompt_subsamples,
    summarised_scores,
)
from jaxeval.lab.simulate.verdicts import simulate_anchored_verdicts

OUTCOME = {"win": 1.0, "tie": 0.5, "loss": 0.0}


@pytest.fixture(scope="module")
def table():
    frame = simulate_anchored_verdicts(n_items=40, n_judges=3, n_runs=3, run_sd=(0.2, 0.3, 1.5), seed=1)
    rng = np.random.default_rng(0)
    return frame.assign(task=np.where(frame["item"] % 2, "t", "u"), confidence=rng.random(len(frame)).round(2))


@pytest.fixture(scope="module")
def verdicts(table):
    return AnchoredVerdicts.from_pandas(table)


@pytest.mark.parametrize("by", [("model", "anchor"), ("model", "task")])
def test_means_over_judges_and_the_errors_of_the_strong(verdicts, by):
    found = summarised_scores(verdicts, by, strong=["judge-1", "judge-2"]).set_index(list(by))
    scores = anchored_scores(verdicts, [*by, "judge"])
    for key, own in scores.groupby(list(by)):
        row = found.loc[key]
        p = own["probability"]
        assert row["probability"] == pytest.approx(p.mean())
        assert row["probability_se"] == pytest.approx(own["probability_se"].mean())
        assert row["cv"] == pytest.approx(p.std() / p.mean())
        assert row["rating_se_of_mean"] == pytest.approx(own["rating"].std() / np.sqrt(3))
        two = own[own["judge"] != "judge-3"]
        assert row["rating_se_strong"] == pytest.approx(two["rating_se"].mean())
        se = two["probability"].std() / np.sqrt(2)
        assert row["probability_se_reduction"] == pytest.approx(1 - se / row["probability_se_of_mean"])
    with pytest.raises(DataError, match="no verdicts of 1 strong judge: judge-9"):
        summarised_scores(verdicts, strong=["judge-9"])


def test_the_prior_moves_ratings_little(verdicts):
    (row,) = prior_sensitivity(verdicts).itertuples(index=False)
    boards = [
        anchored_scores(verdicts, ["model", "judge"], prior=prior).groupby("model")["rating"].mean()
        for prior in (0.5, 1.0)
    ]
    apart = (boards[0] - boards[1]).abs()
    assert (row.kendall, row.n_models) == (1.0, 4)
    assert row.mean_difference == pytest.approx(apart.mean())
    assert row.largest_difference == pytest.approx(apart.max())
    assert row.within_20 == np.mean(apart <= 20)
    assert prior_sensitivity(verdicts, "task")["task"].tolist() == ["t", "u"]


def test_answers_are_left_out_by_stated_confidence(table, verdicts):
    found = abstain(verdicts, confidence=0.5)
    stated = table.groupby(["model", "judge", "task", "item"])["confidence"].mean()
    share = (stated >= 0.5).groupby(level=["model", "judge"]).mean()
    for row in found.table.itertuples():
        assert row.coverage == pytest.approx(share[row.model, row.judge])
    both = abstain(verdicts, confidence=0.5, by_runs=True)
    assert (both.table["coverage"] <= found.table["coverage"]).all()
    with pytest.raises(DataError, match="have a confidence below 1, or none: nothing is left"):
        abstain(verdicts, confidence=1.0)
    with pytest.raises(ValueError, match=r"confidence must lie in \[0, 1\]"):
        abstain(verdicts, confidence=50)
    with pytest.raises(DataError, match="no confidence was stated"):
        abstain(AnchoredVerdicts.from_pandas(table.drop(columns="confidence")), confidence=0.5)


@pytest.mark.parametrize("confidence", [None, 0.4])
def test_direct_and_anchored_scores_with_and_without_unsure_answers(table, verdicts, confidence):
    found = guarded_scores(table, confidence=confidence).set_index(["model", "method", "filter"])
    anchored = abstain(verdicts, confidence=confidence).summary.set_index("model")
    direct = direct_win_probability(table)
    answer = table.groupby(["model", "judge", "task", "item"])
    kept = (
        answer["score"].transform("std", ddof=0) <= 0.5
        if confidence is None
        else answer["confidence"].transform("mean") >= confidence - 1e-9
    )
    for model in table["model"].unique():
        assert found.loc[(model, "anchored", "trusted"), "cv"] == anchored.loc[model, "cv_trusted"]
        assert found.loc[(model, "anchored", "trusted"), "coverage"] == anchored.loc[model, "coverage"]
        own = direct[direct["model"] == model]
        assert found.loc[(model, "direct", "none"), "standard_error"] == pytest.approx(own["standard_error"].mean())
        share = kept[table["model"] == model].mean()
        assert found.loc[(model, "direct", "trusted"), "coverage"] == pytest.approx(share)
    assert (found.xs("none", level="filter")["coverage"] == 1).all()


def test_all_tables_at_once_and_what_cannot_be_made(table, verdicts):
    tables, left_out = method_tables(verdicts, table, strong=["judge-1"], confidence=0.3)
    assert set(tables) == {
        "summary", "kappas", "prior", "abstention", "heterogeneity", "subsamples", "direct_agreement", "dispersion",
        "guarded",
    }  # fmt: skip
    assert left_out == []
    assert (tables["heterogeneity"]["n_tasks"] == 2).all()
    assert tables["subsamples"]["n"].tolist() == [16, 24, 32, 40]
    few = verdicts.take(verdicts.number["item"] < 3)
    tables, left_out = method_tables(few)
    assert "no table 'subsamples': 3 prompts have the verdicts" in " ".join(left_out)


def test_no_heterogeneity_and_no_subsamples_without_the_data(table, verdicts):
    one = AnchoredVerdicts.from_pandas(table.drop(columns="task"))
    with pytest.raises(DataError, match="no judge saw a model in two tasks"):
        heterogeneity(one)
    single = prompt_subsamples(one.take(one.number["judge"] == 0))
    np.testing.assert_array_equal(single["adjusted"], single["corrected"])


def repeated_verdicts(answers):
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
    found = abstain(repeated_verdicts({("a", "x"): "ww wl wt ll"}))
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
    assert abstain(repeated_verdicts({("a", "x"): "ww wl wt ll"}), threshold).table["n_items_trusted"].tolist() == [
        kept
    ]


@pytest.mark.parametrize(("words", "deviation"), [("wwl lwl", np.sqrt(2) / 3), ("wllll tllll", 0.4), ("wtl", 6**-0.5)])
def test_rounding_does_not_pass_the_threshold(words, deviation):
    assert abstain(repeated_verdicts({("a", "x"): words}), deviation).table["coverage"].tolist() == [1]


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
    found = abstain(repeated_verdicts({("a", "x"): "wl lw", ("a", "y"): "ww ww", ("b", "x"): "ww wl"}))
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
        abstain(repeated_verdicts({("a", "x"): "wl wt"}), 0.1)


@pytest.mark.parametrize("threshold", [-0.1, float("nan"), float("inf"), "0.25", None])
def test_a_threshold_is_a_standard_deviation(threshold):
    repeated_verdicts = AnchoredVerdicts.from_pandas(simulate_anchored_verdicts(n_items=4, n_judges=1, n_runs=2))
    with pytest.raises((TypeError, ValueError), match=r"threshold must be (a number|finite and >= 0), got"):
        abstain(repeated_verdicts, threshold)
