"""Scores that a judge gave, corrected by human labels, from the command line."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from command_line import run

import jaxeval
from jaxeval.data.score_files import read_judged_scores

RANDOM = ["--human", "human", "--calibration-sampling", "random"]
FEW = ["--resamples", 20, "--quiet"]


@pytest.fixture(scope="module")
def table():
    """Labels of the first third of the items; judge-2 errs more often."""
    found = jaxeval.simulate_judged_answers(
        [0.85, 0.6, 0.58], q0=[[0.85, 0.7]], q1=[[0.9, 0.75]], n_items=300, seed=1
    )  # of each model
    found.loc[found["item"] >= 100, "human"] = np.nan
    return found


@pytest.fixture(scope="module")
def file(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("judged") / "judged.csv"
    table.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def long_file(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("judged") / "long.csv"
    table.melt(["item", "model", "human"], ["judge-1", "judge-2"], "judge", "score").to_csv(path, index=False)
    return path


def call(*arguments, code=0):
    found = run(*arguments)
    assert found.exit_code == code, found.output
    return " ".join(found.output.split())


def accuracy_of(table):
    """As a user of the library would: calibration are the labelled answers, the test the others."""
    known = table["human"].notna()
    columns = {"judgment": "judge-1", "model": "model", "item": "item"}
    parts = [jaxeval.JudgedAnswers.from_pandas(table[own], **columns) for own in (known, ~known)]
    return jaxeval.judge_accuracy(*parts, sampling="random", progress=False, n_resamples=20)


@pytest.fixture(scope="module")
def accuracy(table):
    return accuracy_of(table)


@pytest.fixture(scope="module")
def written(file):
    """The board by each estimator, as the command writes it."""

    @cache
    def board(estimator):
        out = file.with_name(f"{estimator}.csv")
        call("scores", file, "--score", "judge-1", *RANDOM, "--estimator", estimator, *FEW, "--out", out)
        return pd.read_csv(out)

    return board


@pytest.mark.parametrize("estimator", ["ppi_plus_plus", "rogan_gladen", "naive"])
def test_scores_are_judge_accuracies(accuracy, written, estimator):
    own = jaxeval.score_leaderboard(accuracy, estimator=estimator)
    for column in ("score", "lower", "upper", "standard_error", "rank_worst", "tier"):
        assert written(estimator)[column].to_numpy(float) == pytest.approx(own[column].to_numpy(float)), column


def test_every_judge_has_a_board_and_an_answer(long_file, written, tmp_path):
    out = tmp_path / "board.csv"
    printed = call("scores", long_file, "--judge", "judge", *RANDOM, "--resamples", 20, "--out", out)
    assert "judge-1: model-1 is first with 0." in printed
    assert "judge-2: model-1 is first with 0." in printed
    assert "3 models, 300 items, 2 judges, 1,800 judged answers, 300 human labels" in printed
    both, one = pd.read_csv(out), written("ppi_plus_plus")
    first = both[both["judge"] == "judge-1"]
    # Closed forms do not depend on what else is drawn.
    for column in ("score", "lower", "upper", "standard_error"):
        assert first[column].to_numpy() == pytest.approx(one[column].to_numpy()), column


def test_differences_are_those_of_compare_judges(accuracy, file, tmp_path):
    out = tmp_path / "difference.csv"
    options = ["--score", "judge-1", *RANDOM, "--margin", 0.05, "--quiet", "--out", out]
    call("compare-scores", "model-1", "model-2", file, *options)
    own = jaxeval.compare_scores(accuracy, "model-1", "model-2", margin=0.05)
    row = pd.read_csv(out).iloc[0]
    for column in ("difference", "lower", "upper", "standard_error", "p_student", "p_non_inferior"):
        assert row[column] == pytest.approx(getattr(own, column)), column
    assert np.isnan(row["p_mcnemar"])
    assert own.lower < own.difference < own.upper
    assert own.standard_error == pytest.approx((own.upper - own.lower) / 2 / 1.959964, rel=1e-5)
    printed = call("compare-scores", "model-1", "all", file, "--score", "judge-1", *RANDOM)
    assert "of 2 models 0 are above model-1 and 2 below it" in printed


@pytest.mark.slow
def test_corrected_differences_hold_the_truth_as_often_as_they_say():
    """95 % intervals of the difference by PPI++, in 60 sets of 120 labels; at four standard errors."""
    held = 0
    for seed in range(60):
        table = jaxeval.simulate_judged_answers([0.7, 0.6], q0=[[0.7]], q1=[[0.95]], n_items=360, seed=seed)
        table.loc[table["item"] >= 120, "human"] = np.nan
        found = jaxeval.compare_scores(accuracy_of(table), "model-1", "model-2")
        held += found.lower <= 0.1 <= found.upper
    assert abs(held / 60 - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 60)


def test_errors_are_nan_where_nothing_bounds_a_score(table):
    few = table[(table["item"] < 2) | (table["item"] >= 100)]
    board = jaxeval.score_leaderboard(accuracy_of(few), estimator="rogan_gladen")
    assert board["standard_error"].isna().all()
    assert (board["flags"] != "").all()


@pytest.mark.parametrize(("options", "message"), [
    (["--judge", "judge"], "--judge needs --human: the labels that correct the scores"),
    (["--human", "human", "--only-judge", "x"], "--only-judge needs --judge"),
    (["--human", "human", "--pass-at", 2], "--pass-at and --human do not go together"),
    (["--human", "human", "--population", "trials"], "--population and --human do not go together"),
    (["--human", "label"], "label"),
    (["--human", "human", "--wide"], "a wide table has no place for labels of single answers"),
    (["--human", "human", "--judge", "judge-2", "--only-judge", "gpt"], "no judge is called 'gpt'"),
    (["--human", "human", "--cluster", "judge-2"], "70 items lie in several clusters"),
])  # fmt: skip
def test_what_is_refused(file, options, message):
    code = 2 if message.startswith("--") else 1
    assert message in call("scores", file, "--score", "judge-1", *options, code=code)


def test_labels_of_all_or_of_none_are_refused(table, tmp_path):
    for name, human in (("no answer has", np.nan), ("all answers have", 1.0)):
        table.assign(human=human).to_csv(tmp_path / "file.csv", index=False)
        printed = call("scores", tmp_path / "file.csv", "--score", "judge-1", "--human", "human", code=1)
        assert f"{name} a human label" in printed


def test_missing_answers_are_counted(table, tmp_path):
    path = tmp_path / "lacking.csv"
    table.drop(index=[701, 702]).to_csv(path, index=False)
    with pytest.raises(jaxeval.DataError, match=r"models lack answers to items \(2 pairs"):
        read_judged_scores(path, human="human", score="judge-1")
    complete = read_judged_scores(path, human="human", score="judge-1", missing="complete")
    assert complete.answered.all()
    assert len(read_judged_scores(path, human="human", score="judge-1", missing="available").items) == 300


def test_several_judges_are_too_many_for_a_comparison(long_file):
    options = ["--judge", "judge", *RANDOM]
    printed = call("compare-scores", "model-1", "model-2", long_file, *options, code=2)
    assert "name it with --only-judge" in printed
    printed = call("compare-scores", "model-1", "model-2", long_file, *options, "--only-judge", "judge-2")
    assert "model-1 is above model-2: difference +" in printed


def test_estimators_that_give_nothing_say_so(table, tmp_path):
    graded = table.assign(graded=table["judge-1"] * 0.7 + 0.1)
    graded.to_csv(tmp_path / "graded.csv", index=False)
    options = ["--score", "graded", "--human", "human", "--estimator", "rogan_gladen"]
    printed = call("scores", tmp_path / "graded.csv", *options, "--resamples", 20)
    assert "no model has a score; the flags say why" in printed
    printed = call("compare-scores", "model-1", "model-2", tmp_path / "graded.csv", *options)
    assert "model-1 and model-2 cannot be compared" in printed
    assert "nan" not in printed.split("Scores compared")[0]


def test_a_first_model_that_nothing_bounds_is_told_from_nobody(table, tmp_path):
    """One label, which is right: the score is 1, and its ranks are all open."""
    first = table[(table["model"] == "model-3") & (table["human"] == 1)].index[0]
    lost = (table["model"] == "model-3") & (table.index != first)
    table.assign(human=table["human"].where(~lost)).to_csv(tmp_path / "one.csv", index=False)
    printed = call("scores", tmp_path / "one.csv", "--score", "judge-1", *RANDOM, "--resamples", 20)
    assert "model-3 is first with 1.000; " in printed
    assert "not told apart from it" in printed


def test_no_peeking_at_corrected_scores(file):
    options = ["--score", "judge-1", "--human", "human", "--margin", 0.1, "--gate", "--peek"]
    assert "--peek and --human do not go together" in call(
        "compare-scores", "model-1", "model-2", file, *options, code=3
    )


def test_rows_of_several_judges_ask_for_the_column_of_judges(long_file):
    with pytest.raises(jaxeval.DataError) as refused:
        read_judged_scores(long_file, human="human")
    assert str(refused.value).endswith(
        "900 rows repeat another one of the same model, item (first in row 900: model 'model-1', item 0; rows count "
        "from 0): name the column of "
        "judges (judge=, --judge) or of trials (trial=, --trial), or drop the duplicates"
    )
    printed = call("scores", long_file, "--human", "human", code=1)
    assert "name the column of judges (judge=, --judge)" in printed
    assert "np." not in printed


def test_rows_that_repeat_a_trial_are_copies(long_file, tmp_path):
    path = tmp_path / "copies.csv"
    rows = pd.read_csv(long_file).assign(trial=1)
    pd.concat([rows, rows.iloc[5:7]]).to_csv(path, index=False)
    with pytest.raises(jaxeval.DataError, match=r"2 rows repeat .* item, judge, trial .*, trial 1; .*\): drop the"):
        read_judged_scores(path, human="human", judge="judge")


def test_labels_in_words(table, tmp_path):
    path, other = tmp_path / "words.csv", tmp_path / "others.csv"
    table.assign(human=table["human"].map({1: "yes", 0: "no"})).to_csv(path, index=False)
    options = ["--score", "judge-1", "--human", "human"]
    printed = call("scores", path, path, *options, "--resamples", 20)
    assert "900 judged answers, 300 human labels; words.csv is named twice, and counts once; column 'human'" in printed
    assert "'yes' as 1" in printed
    table.assign(human=table["human"].map({1: "sure", 0: "no"})).to_csv(other, index=False)
    refused = call("scores", other, *options, code=1)
    assert "column 'human' holds 'sure' beside 'no', which alone " in refused
    assert "write labels as 1 and 0;" in refused  # there is no --positive here
    table.assign(**{"judge-1": [*["fine"], *table["judge-1"][1:].astype(str)]}).to_csv(other, index=False)
    assert "'fine'. Write scores as numbers, or leave them empty" in call("scores", other, *options, code=1)


def test_labels_that_are_true_or_false_are_read(table, tmp_path):
    path = tmp_path / "booleans.csv"
    table.assign(human=table["human"].map({1: True, 0: False})).to_csv(path, index=False)
    assert read_judged_scores(path, human="human", score="judge-1").report.n_labels == 300


def test_advice_on_labels_of_some_models_only_fits_command_and_python(table, tmp_path):
    path = tmp_path / "some.csv"
    table.assign(human=table["human"].mask(table["model"] == "model-3")).to_csv(path, index=False)
    printed = call("scores", path, "--score", "judge-1", *RANDOM, "--resamples", 20)
    assert (
        "for 100 items people labelled the answers of some models only, and 200 labelled answers belong to" in printed
    )
    assert "label all models' answers to an item or none" in printed
    assert "missing=" not in printed


def test_an_undeclared_design_corrects_by_rogan_gladen(table, file, tmp_path):
    out = tmp_path / "board.csv"
    printed = call("scores", file, "--score", "judge-1", "--human", "human", "--resamples", 20, "--out", out)
    assert "nobody said how the labelled answers were chosen" in printed
    answers = read_judged_scores(file, human="human", score="judge-1")
    accuracy = jaxeval.judge_accuracy(*answers.by_label(), n_resamples=20, progress=False)
    own = jaxeval.score_leaderboard(accuracy)
    assert own.attrs["settings"]["estimator"] == "rogan_gladen"
    for column in ("score", "lower", "upper", "standard_error"):
        assert pd.read_csv(out)[column].to_numpy() == pytest.approx(own[column].to_numpy()), column
    # The test are all answers, as those without a label may be no sample.
    assert own["n_items"].tolist() == [300] * 3
    options = ["--score", "judge-1", "--human", "human", "--calibration-sampling", "by-label"]
    printed = call("compare-scores", "model-1", "model-2", file, *options)
    found = jaxeval.compare_scores(accuracy, "model-1", "model-2")
    assert f"difference {found.difference:+.3f}" in printed
    assert "nobody said" not in printed


def test_scores_of_an_undeclared_design_say_what_to_declare(table, tmp_path):
    graded = table.assign(grade=table["judge-1"] * 0.6 + 0.1 * (table["item"] % 5))
    graded.to_csv(tmp_path / "graded.csv", index=False)
    printed = call("scores", tmp_path / "graded.csv", "--score", "grade", "--human", "human", "--resamples", 20)
    assert "3 scores that nothing here makes believable: Rogan-Gladen: needs verdicts of 0 and 1" in printed
    assert 'declare sampling="random" (--calibration-sampling random)' in printed
    printed = call("scores", tmp_path / "graded.csv", "--score", "grade", *RANDOM, "--resamples", 20)
    assert "nothing here makes believable" not in printed


def test_scores_have_clusters(table, tmp_path):
    path, lengths = tmp_path / "passages.csv", {}
    again = pd.concat([table.assign(item=table["item"] + 300 * k, passage=table["item"]) for k in range(3)])
    again.to_csv(path, index=False)
    for cluster in ("passage", None):
        out = tmp_path / "board.csv"
        options = [*RANDOM, "--score", "judge-1", *(["--cluster", cluster] if cluster else []), *FEW]
        call("scores", path, *options, "--out", out)
        board = pd.read_csv(out)
        lengths[cluster] = (board["upper"] - board["lower"]).to_numpy()
    assert (lengths["passage"] > 1.5 * lengths[None]).all()
    printed = call("compare-scores", "model-1", "model-2", path, *RANDOM, "--score", "judge-1", "--cluster", "passage")
    assert "model-1 is above model-2" in printed
