"""Which votes are on two boards: by name, by label, by equal rows, or as parts of one table."""

import numpy as np
import pandas as pd
import pytest

from jaxeval import Battles, DataError, simulate_votes
from jaxeval.data.shared_votes import look_equal, shared_votes


@pytest.fixture(scope="module")
def votes():
    return simulate_votes(300, 4, seed=0).astype({"model_a": str, "model_b": str}).reset_index(names="vote")


@pytest.fixture(scope="module")
def weeks(votes):
    """Votes 0 to 199 and, in another order, 100 to 299."""
    return votes.head(200), votes.tail(200).sample(frac=1, random_state=0)


def read(*tables):
    return [Battles.from_pandas(table) for table in tables]


def pairs(a, b, found):
    """The names of shared votes on both boards."""
    return [x.column("vote").to_numpy()[rows].tolist() for x, rows in ((a, found.a), (b, found.b))]


@pytest.mark.parametrize(
    "how", [{"id": ["vote"]}, {"sharing": "index"}, {"sharing": "rows"}, {"id": ["vote", "voter"]}]
)
def test_two_weeks(weeks, how):
    a, b = read(*weeks)
    found = shared_votes(a, b, **how)
    first, second = pairs(a, b, found)
    assert sorted(first) == list(range(100, 200))
    assert first == second
    assert found.n_battles == 100
    assert found.same_result(a, b).all()


def test_nothing_is_guessed_and_what_looks_alike_is_counted(weeks):
    a, b = read(*weeks)
    assert shared_votes(a, b).n_battles == 0
    assert look_equal(a, b) == 100
    few = [week[["model_a", "model_b", "winner"]] for week in weeks]
    assert look_equal(*read(*few)) == 0  # nothing tells votes apart
    other = weeks[1].assign(vote=weeks[1]["vote"] + 1000)
    assert look_equal(*read(weeks[0], other)) == 0


def test_parts_of_one_table(votes):
    battles = Battles.from_pandas(votes)
    a, b = (
        battles.filter(lambda t: t["vote"] < 200),
        battles.filter(lambda t: t["vote"] >= 100).rename({"model-1": "x"}),
    )
    with pytest.raises(DataError, match="between other models"):
        shared_votes(a, b)
    b = battles.filter(lambda t: t["vote"] >= 100)
    first, second = pairs(a, b, shared_votes(a, b))
    assert first == second == list(range(100, 200))
    assert shared_votes(a, b, "none").n_battles == 0
    assert shared_votes(battles, battles).n_battles == 300


def test_counted_votes_are_shared_with_their_number():
    table = pd.DataFrame({"model_a": [*"xy"], "model_b": [*"yz"], "wins_a": [3, 1], "ties": [2, 0], "wins_b": [4, 5]})
    battles = Battles.from_pandas(table)
    a, b = battles.filter(battles.target > 0), battles.filter(battles.target < 1)
    found = shared_votes(a, b)
    assert found.n_battles == 2  # the ties
    assert a.target[found.a].tolist() == b.target[found.b].tolist() == [0.5]


def test_equal_rows_are_shared_as_often_as_both_have_them():
    row = {"model_a": "x", "model_b": "y", "winner": "model_a"}
    other = {**row, "winner": "tie"}
    a, b = read(pd.DataFrame([row] * 3 + [other]), pd.DataFrame([row] * 2 + [other] * 5))
    assert shared_votes(a, b, "rows").n_battles == 3
    merged = [Battles.concat([x]) for x in (a, b)]
    assert merged[0].count.tolist() != [1, 1]
    found = shared_votes(*merged, "rows")
    assert found.n_battles == 3
    assert np.bincount(found.a, found.times).max() == 2


def test_a_judge_has_other_results(votes):
    a, b = read(votes, votes.assign(winner="tie"))
    found = shared_votes(a, b, id=["vote"])
    assert found.n_battles == 300
    assert (~found.same_result(a, b)).sum() == (a.target != 0.5).sum()
    swapped = votes.assign(model_a=votes["model_b"], model_b=votes["model_a"], target=1 - a.target)
    turned = Battles.from_pandas(swapped.drop(columns="winner"))
    assert shared_votes(a, turned, id=["vote"]).same_result(a, turned).all()


class TestErrors:
    def test_a_name_that_several_votes_have(self, weeks):
        message = r"the column 'language': 200 rows of board a share their value .*first in row 0.*name further columns"
        with pytest.raises(DataError, match=message):
            shared_votes(*read(*weeks), id=["language"])

    def test_a_name_of_other_models(self, weeks):
        a, b = read(weeks[0], weeks[1].assign(vote=np.arange(200)))
        with pytest.raises(DataError, match=r"of 200 shared votes are between other models on board b \(first in row"):
            shared_votes(a, b, id=["vote"])

    def test_missing_names(self, weeks):
        a, b = read(weeks[0].assign(vote=weeks[0]["vote"].where(weeks[0]["vote"] > 2)), weeks[1])
        with pytest.raises(DataError, match="column 'vote' has 3 missing values"):
            shared_votes(a, b, id=["vote"])

    def test_columns_of_lists(self, weeks):
        a, b = read(*(week.assign(turns=[[1]] * len(week)) for week in weeks))
        with pytest.raises(DataError, match="column 'turns' holds values that cannot be compared"):
            shared_votes(a, b, "rows")
        assert look_equal(a, b) == 100

    def test_options(self, weeks):
        a, b = read(*weeks)
        with pytest.raises(ValueError, match="shared must be one of 'rows', 'index', 'none', got 'all'"):
            shared_votes(a, b, "all")
        with pytest.raises(ValueError, match="both say which votes are shared"):
            shared_votes(a, b, "rows", ["vote"])
        with pytest.raises(DataError, match="no column 'vot'"):
            shared_votes(a, b, id=["vot"])
