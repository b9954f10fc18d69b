"""Columns whose values look like others, or like numbers, and are not."""

import re
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from command_line import run

import jaxeval
from jaxeval import Battles, DataError
from jaxeval.data.conditions import rows_where
from jaxeval.data.numbers import numbers_or_nan
from jaxeval.wording import look_of

VOTES = pd.DataFrame({"model_a": [*"xyxz"], "model_b": [*"yxzx"], "winner": ["x", "y", "z", "x"]})
PADDED = VOTES.assign(model_b=" " + VOTES["model_b"])
STRIPPED = "column 'model_b': all values begin or end with a blank, which was taken off"


@pytest.mark.parametrize("made", [
    lambda table: table.to_dict("records"), lambda table: table.to_dict("list"),
    lambda table: {name: table[name].to_numpy() for name in table},
])  # fmt: skip
def test_rows_and_columns_of_python_are_a_table(made):
    found = Battles.from_pandas(made(VOTES))
    pd.testing.assert_frame_equal(found.to_pandas(), Battles.from_pandas(VOTES).to_pandas())
    assert found.report == Battles.from_pandas(VOTES).report


@pytest.mark.parametrize(("table", "error", "said"), [
    (VOTES["winner"], TypeError, "a dict of columns, got Series$"),
    ([], TypeError, "a dict of columns, got list$"),
    (pl.from_pandas(VOTES).lazy(), TypeError, r"got LazyFrame; collect\(\) it first$"),
    ("votes.csv", TypeError, "got str; read the file first, by read_battles, read_scores or such$"),
    ({"model_a": ["x"], "model_b": ["x", "y"]}, DataError, "the dict is no table of rows or columns: All arrays"),
])  # fmt: skip
def test_what_is_no_table(table, error, said):
    with pytest.raises(error, match=said):
        Battles.from_pandas(table)


class TestBlanks:
    def test_around_all_names_of_a_column(self):
        """As after each comma of a file; the winner's name is found, too."""
        battles, expected = Battles.from_pandas(PADDED), Battles.from_pandas(VOTES)
        assert battles.models.tolist() == ["x", "y", "z"]
        np.testing.assert_array_equal(battles.target, expected.target)
        assert STRIPPED in battles.report.read_as

    def test_around_some_names_alone(self):
        """Somebody may have meant them so: they stay, and are told."""
        some = VOTES.assign(model_b=[" y", "x", "z", "x"], winner=["model_a", "model_b"] * 2)
        assert " y" in Battles.from_pandas(some).models
        assert not Battles.from_pandas(some).report.read_as

    def test_in_a_file_of_the_command(self, tmp_path):
        rows = [f"{a}, {b}, {winner}" for a, b, winner in VOTES.itertuples(index=False)]
        (tmp_path / "votes.csv").write_text("\n".join(["model_a, model_b, winner", *rows * 3]))
        output = run("leaderboard", tmp_path / "votes.csv", "--resamples", "20").output
        assert "12 battles between 3 models" in output
        assert STRIPPED in output

    @pytest.mark.parametrize("values", [[1, 2], [" x", None], ["x ", " y"], [" ", " "], ["\tx", "\ty"]])
    def test_what_is_text(self, values):
        """Missing names stay missing; a name of blanks is an error, and no empty name."""
        frame = pd.DataFrame({"model_a": values, "model_b": ["p", "q"], "winner": "tie"})
        if values in ([1, 2], ["x ", " y"], ["\tx", "\ty"]):
            expected = [1, 2] if values == [1, 2] else ["x", "y"]
            frame["model_b"] = expected[::-1]
            assert Battles.from_pandas(frame).models.tolist() == expected
        else:
            with pytest.raises(DataError, match="1 missing value" if None in values else "2 missing values"):
                Battles.from_pandas(frame)

    def test_of_judges(self):
        verdicts = PADDED.assign(winner="model_a", verdict="model_a", human="model_b", judge="j")
        assert jaxeval.JudgedBattles.from_pandas(verdicts).models.tolist() == ["x", "y", "z"]
        panel = jaxeval.fit_judge_panel(pd.concat([verdicts] * 9), n_resamples=5, progress=False)
        assert panel.fit.report.n_models == 3
        assert STRIPPED in panel.fit.report.read_as
        agreement = jaxeval.judge_agreement(verdicts, "human", judges=["verdict"], n_resamples=20)
        assert STRIPPED in agreement.notes


@pytest.mark.parametrize(
    ("one", "other"),
    [("GPT-4", "gpt-4"), ("a-1", "a\u20131"), ("a b", "a\u00a0 b "), ("abc", "a\u200bbc"), ("\uff41\uff42", "ab")],
)
def test_names_that_look_alike(one, other):
    assert look_of(one) == look_of(other)
    votes = pd.DataFrame({"model_a": [one, other], "model_b": [other, one], "winner": "model_a"})
    (said,) = [line for line in jaxeval.fit_bradley_terry(votes).warnings if "differ only in" in line]
    assert said.endswith(f"{min(one, other)!r} and {max(one, other)!r}")


class TestNumbers:
    @pytest.mark.parametrize(("values", "what"), [
        (pd.date_range("2026-01-01", periods=4), "dates or times"),
        (pd.date_range("2026-01-01", periods=4, tz="UTC"), "dates or times"),
        (pd.to_timedelta(range(4), unit="s"), "durations"),
        (np.arange(4) + 0j, "complex numbers"),
    ])  # fmt: skip
    def test_what_is_none(self, values, what):
        """As a weight NumPy would take nanoseconds since 1970."""
        table = VOTES.assign(value=values)
        for options in ({"weight": "value"}, {"target": "value"}, {"scores": ("value", "value")}):
            with pytest.raises(DataError, match=f"column 'value' holds {what}: expected real numbers"):
                Battles.from_pandas(table, **options)
        with pytest.raises(DataError, match=f"column 'value' holds {what}: expected real numbers"):
            jaxeval.fit_bradley_terry(table, features=["value"])
        scores = pd.DataFrame({"model": [*"xyxy"], "item": [1, 1, 2, 2], "score": values})
        with pytest.raises(DataError, match=f"column 'score' holds {what}: expected real numbers"):
            jaxeval.ItemScores.from_pandas(scores)

    @pytest.mark.parametrize("kind", ["int64", "Int64", "uint64", object])
    def test_whole_numbers_are_not_rounded(self, kind):
        exact = pd.Series([2**53, 2**60, 3], dtype=kind)
        np.testing.assert_array_equal(numbers_or_nan(exact, "score"), [2.0**53, 2.0**60, 3])
        with pytest.raises(DataError, match=r"1 whole number that .* such as 9007199254740993 \(first in row 1"):
            numbers_or_nan(pd.Series([2**53, 2**53 + 1, 3], dtype=kind), "score")

    @pytest.mark.parametrize(("written", "meant"), [
        (["40%", "12.5 %", "", "-3 %"], [0.4, 0.125, np.nan, -0.03]),
        (["40,5 %", "7%"], [0.405, 0.07]),
        (["1,234.5", "987", "NA", "-2,000"], [1234.5, 987, np.nan, -2000]),
        (["1,234,567", "2,000"], [1234567, 2000]),
    ])  # fmt: skip
    def test_percentages_and_thousands_as_spreadsheets_show_them(self, written, meant):
        np.testing.assert_array_equal(numbers_or_nan(pd.Series(written), "score"), meant)

    @pytest.mark.parametrize(("written", "advice"), [
        (["40%", "0.5"], ": write all values with %, or none"),
        (["1,234", "987"], ": write 1234 for 1,234, or 1.234"),
    ])  # fmt: skip
    def test_numbers_that_can_be_read_in_two_ways(self, written, advice):
        with pytest.raises(DataError, match=re.escape(f"{written[0]!r} (first in row 0; rows count from 0){advice}")):
            numbers_or_nan(pd.Series(written), "score")

    def test_floats_and_missing_values_stay(self):
        found = numbers_or_nan(pd.Series([1e300, None, np.inf]), "score")
        np.testing.assert_array_equal(found, [1e300, np.nan, np.inf])


@pytest.mark.parametrize("condition", ["COLUMNS(*) > 1", "COLUMNS('n') > 1", "n > 1 AND * > 0"])
def test_a_condition_names_its_columns(condition):
    """There is a column beside those of the table: the number of the row."""
    pytest.importorskip("duckdb")
    with pytest.raises(DataError, match=r"name the columns|is no condition in SQL"):
        rows_where(pd.DataFrame({"n": [1, 2, 3]}), condition)


def test_a_condition_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ImportError, match=r"the extra jaxeval\[sql\]: pip install duckdb"):
        rows_where(pd.DataFrame({"n": [1, 2, 3]}), "n > 1")


class TestListsInPlaceOfNames:
    """Columns of lists and of objects, such as chat prompts, make no groups."""

    chats = pd.DataFrame({"model_a": [*"xy"], "model_b": [*"yx"], "prompt": [[{"role": "user"}]] * 2,
                          "scores_a": 1, "scores_b": 2})  # fmt: skip

    def test_they_are_refused(self):
        places = pd.DataFrame({"ranking": [[1], [1]], "item": [*"ab"], "rank": [1, 2]})
        with pytest.raises(DataError, match="column 'ranking' must name the ranking of each row, and holds lists"):
            jaxeval.Rankings.from_pandas(places)
        replies = pd.DataFrame({"model": [*"xy"], "judge": [{"name": 1}] * 2, "output": ["[[A]]", "[[B]]"]})
        with pytest.raises(DataError, match="column 'judge' holds values that cannot be compared"):
            jaxeval.AnchoredVerdicts.from_pandas(replies, reference="A")
        with pytest.raises(DataError, match="column 'prompt' holds lists or objects, which make no groups"):
            jaxeval.JudgedBattles.from_pandas(self.chats, item="prompt")

    def test_nobody_asked_for_them(self):
        assert jaxeval.JudgedBattles.from_pandas(self.chats).n_battles == 2

    def test_columns_that_are_there_twice_have_no_role(self):
        votes = pd.DataFrame([[*"xyA."], [*"yxB."]], columns=["left", "right", "winner", "note"])
        votes = pd.concat([votes, votes[["note"]]], axis=1)
        assert jaxeval.Judgments.from_pandas(votes).roles == {"model_a": "left", "model_b": "right", "winner": "winner"}
