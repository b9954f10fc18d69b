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
    own = accuracy.table[accuracy.table["estimator"] == estimator].set_index("model").loc[board["model_name"]]
    assert board["score"].tolist() == own["estimate"].tolist()
    assert board["score_lower"].tolist() == own["lower"].tolist()
    joint = accuracy.joint.of(estimator=estimator, judge="judge-1")
    assert board["tier"].tolist() == joint.tiers().loc[board["model_name"]].tolist()
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
