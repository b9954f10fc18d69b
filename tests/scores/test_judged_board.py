import numpy as np
import pytest

import jaxeval
from jaxeval import score_leaderboard


@pytest.fixture(scope="module")
def accuracy():
    table = jaxeval.simulate_judged_answers([0.85, 0.6, 0.58], q0=[[0.8]], q1=[[0.9]], n_items=600)
    answers = jaxeval.JudgedAnswers.from_pandas(table, judgment="judge-1", model="model", item="item")
    return jaxeval.judge_accuracy(*answers.split(1 / 3), n_resamples=200, progress=False)


@pytest.mark.parametrize("estimator", ["ppi_plus_plus", "naive"])
def test_scores_are_those_of_the_accuracies(accuracy, estimator):
    board = score_leaderboard(accuracy, estimator=estimator)
    own = accuracy.table[accuracy.table["estimator"] == estimator].set_index("model").loc[board["model"]]
    assert board["score"].tolist() == own["estimate"].tolist()
    assert board["lower"].tolist() == own["lower"].tolist()
    joint = accuracy.joint.of(estimator=estimator, judge="judge-1")
    assert board["tier"].tolist() == joint.tiers().loc[board["model"]].tolist()
    assert board["rank"].tolist() == [1, 2, 3]


def test_the_same_columns_as_boards_of_items(accuracy):
    values = np.random.default_rng(0).random((200, 2))
    import pandas as pd

    scores = jaxeval.ItemScores(values[:, None], pd.RangeIndex(200), pd.Index(["s"]), pd.Index(["a", "b"]))
    of_items = score_leaderboard(scores, n_resamples=20, progress=False)
    assert score_leaderboard(accuracy).columns.tolist() == of_items.columns.tolist()


def test_what_is_refused(accuracy):
    with pytest.raises(ValueError, match=r"no estimator 'ppi_plus'.*did you mean 'ppi_plus_plus'"):
        score_leaderboard(accuracy, estimator="ppi_plus")
    with pytest.raises(ValueError, match="no judge 'judge-2'; there are judge-1"):
        score_leaderboard(accuracy, judge="judge-2")


def partly_labelled(n_items=400, by_answer=False, seed=0):
    table = jaxeval.simulate_judged_answers(
        [0.85, 0.6], q0=[[0.8], [0.6]], q1=[[0.9], [0.95]], n_items=n_items, seed=seed
    )
    rng = np.random.default_rng(seed)
    chosen = rng.random(len(table)) < 0.3 if by_answer else (rng.random(n_items) < 0.3)[table["item"]]
    return table.assign(human=table["human"].where(chosen))


@pytest.mark.parametrize("by_answer", [False, True])
def test_answers_with_and_without_labels(by_answer):
    table = partly_labelled(by_answer=by_answer)
    answers = jaxeval.JudgedAnswers.from_pandas(table, judgment="judge-1", model="model", item="item")
    labelled, rest = answers.by_label("random")
    assert labelled.report.n_labels == labelled.report.n_judgments == table["human"].notna().sum()
    assert rest.report.n_judgments == table["human"].isna().sum()
    assert rest.report.n_labels == 0
    accuracy = jaxeval.judge_accuracy(labelled, rest, n_resamples=20, progress=False)
    assert not any("in the calibration and in the test" in text for text in accuracy.warnings)
    with pytest.raises(jaxeval.DataError, match="no answer has a human label"):
        rest.by_label()


def test_a_difference_is_that_of_the_comparison():
    table = partly_labelled()
    answers = jaxeval.JudgedAnswers.from_pandas(table, judgment="judge-1", model="model", item="item")
    accuracy = jaxeval.judge_accuracy(*answers.by_label("random"), n_resamples=50, progress=False)
    found = jaxeval.compare_scores(accuracy, "model-1", "model-2", margin=0.1)
    own = jaxeval.compare_models(
        *answers.by_label("random"), ("model-1", "model-2"), n_resamples=50, progress=False
    ).table
    row = own[own["estimator"] == "ppi_plus_plus"].iloc[0]
    assert (found.difference, found.lower, found.upper) == (row["difference"], row["lower"], row["upper"])
    assert np.isnan([found.p_mcnemar, found.p_sign_flip, found.p_anytime]).all()
    assert (found.p_student < 0.05) == (found.lower > 0 or found.upper < 0)
    at_the_end = jaxeval.compare_scores(accuracy, "model-1", "model-2", margin=0.1, alternative="greater")
    assert at_the_end.p_student == pytest.approx(found.p_student / 2)
    beside = jaxeval.compare_with_baseline(accuracy, "model-2")
    assert beside["p"].tolist() == [found.p_student]
