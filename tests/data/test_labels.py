"""Results in the words of others."""

import numpy as np
import pandas as pd
import pytest

import jaxeval
from jaxeval import Battles, read_battles
from jaxeval.errors import DataError

PAIRS = pd.DataFrame({"model_a": list("xyzx"), "model_b": list("yzxz")})


def read(results, **options):
    return Battles.from_pandas(PAIRS.assign(winner=results), **options)


def message(results, **options):
    with pytest.raises(DataError) as error:
        read(results, **options)
    return str(error.value)


@pytest.mark.parametrize(("labels", "words"), [
    (["A", "B", "tie", "A"], "the sides A and B"),
    (["a", "b", "Draw", "a"], "the sides A and B"),
    (["[[A]]", "[[B]]", " tie ", "[[A]]"], "the sides A and B"),
    (["left", "RIGHT", "equal", "Left"], "the sides left and right"),
    (["first", "second", "tie", "first"], "the sides first and second"),
    (["win", "loss", "draw", "Win"], "wins and losses of the first side"),
    (["H", "A", "D", "H"], "home and away, the first side being at home"),
    (["1-0", "0-1", "1/2-1/2", "1-0"], "results of chess games"),
    (["G", "B", "S", "g"], "good, same and bad, of the first side (GSB)"),
    (["A is better", "Response B is slightly better", "about the same", "A is a bit better"],
     'phrases from "A is much better" to "B is much better"'),
    (["Model_A", "model_b ", "TIE", "model_a"], "the sides model_a and model_b"),
    (["x", "z", "tie", "x"], "names of the winners"),
    (["X", "Z", "tie", "X"], "names of the winners"),
])  # fmt: skip
def test_whole_columns_in_the_words_of_others(labels, words):
    battles = read(labels)
    assert battles.target.tolist() == [1, 0, 0.5, 1]
    assert battles.weight is None
    (sentence,) = battles.report.read_as
    assert sentence.startswith("column 'winner': read ")
    assert sentence.endswith(f" as {words}")
    assert sentence in str(battles.report)


def test_jaxevals_own_words_are_not_told():
    assert read(["model_a", "model_b", "tie", "both_bad"]).report.read_as == ()


def test_both_bad_in_other_words():
    battles = read(["A", "B", "tie (bothbad)", "A"], both_bad="drop")
    assert (battles.n_battles, battles.report.n_both_bad) == (3, 1)


def test_both_bad_beside_names_of_winners():
    battles = read(["x", "z", "both_bad", "draw"], both_bad="drop")
    assert (battles.n_battles, battles.report.n_both_bad) == (3, 1)


def test_much_better_weighs_as_a_strong_grade():
    phrases = ["A is much better", "B is significantly better", "A is slightly better", "about the same"]
    battles = read(phrases)
    assert battles.target.tolist() == [1, 0, 1, 0.5]
    assert battles.weight.tolist() == [3, 3, 1, 1]


def test_grades_weigh_as_in_arena_hard():
    battles = read(["A>>B", "B>A", "A=B", "B>>A"])
    assert battles.target.tolist() == [1, 0, 0.5, 0]
    assert battles.weight.tolist() == [3, 1, 1, 3]
    weighted = Battles.from_pandas(PAIRS.assign(winner=["A>B", "A<<B", "A=B", "A>B"], w=[2, 1, 1, 1]), weight="w")
    assert weighted.weight.tolist() == [2, 3, 1, 1]


@pytest.mark.parametrize(
    "numbers", [[0, 1, 1, 0], [True, False, True, True], ["0", "1", "1", "0"], [1.0, 2.0, 1.0, 2.0]]
)
def test_numbers_are_never_guessed(numbers):
    found = message(numbers)
    for part in (
        "'winner'",
        "labels='a_wins_1'",
        "labels='a_wins_0'",
        "--labels a_wins_1",
        "': 'model_a', '",
        "=model_b (or the sides the other way round)",
    ):
        assert part in found


@pytest.mark.parametrize("numbers", [[1, 0, 0.5, 1], ["1", "0", "0.5", "1.0"]])
def test_codings_of_numbers(numbers):
    assert read(numbers, labels="a_wins_1").target.tolist() == [1, 0, 0.5, 1]
    assert read(numbers, labels="a_wins_0").target.tolist() == [0, 1, 0.5, 0]


def test_mappings():
    chosen = {1: "model_a", "2": "model_b", "none": "both_bad"}
    battles = read(["1", "2", "none", "tie"], labels=chosen)
    assert battles.target.tolist() == [1, 0, 0.5, 0.5]
    assert battles.report.read_as == (
        "column 'winner': read '1' as model_a, '2' as model_b, 'none' as both_bad, 'tie' as tie",
    )
    assert read([True, False, True, False], labels={"true": "model_b", "false": "model_a"}).target.tolist() == [
        0,
        1,
        0,
        1,
    ]
    assert "unknown labels: '3' (2); labels= maps '1', '2'" in message(
        [1, 2, 3, 3], labels={"1": "model_a", "2": "model_b"}
    )


@pytest.mark.parametrize(("labels", "error"), [
    ({"A": "left"}, "'left'"),
    ({}, "an empty mapping"),
    ({"1": "model_a", 1.0: "model_b"}, "maps '1' twice"),
    ("b_wins", "labels must be one of 'a_wins_1', 'a_wins_0', 'labels', 'names', or a mapping"),
])  # fmt: skip
def test_bad_mappings(labels, error):
    with pytest.raises(ValueError, match=error):
        read(["A"] * 4, labels=labels)


class TestTwoReadings:
    def test_a_model_called_as_a_side(self):
        frame = pd.DataFrame({"model_a": ["B", "A"], "model_b": ["A", "B"], "winner": ["A", "B"]})
        with pytest.raises(DataError, match="may hold the sides A and B, or names of the winners, with different"):
            Battles.from_pandas(frame)
        read = Battles.from_pandas(frame, labels={"A": "model_a", "B": "model_b"})
        assert read.target.tolist() == [1, 0]
        with pytest.raises(DataError, match=r"say labels='names' \(--labels names\) if they are names of the winners"):
            Battles.from_pandas(frame)
        assert Battles.from_pandas(frame, labels="names").target.tolist() == [0, 0]
        with pytest.raises(DataError, match=r"takes the name of either side of the row.* some labels are neither"):
            Battles.from_pandas(frame.assign(winner="model_a"), labels="names")
        same = Battles.from_pandas(frame.assign(model_a=["A", "A"], model_b=["B", "B"]))
        assert same.target.tolist() == [1, 0]

    def test_a_model_called_tie(self):
        frame = pd.DataFrame({"model_a": ["tie", "x"], "model_b": ["x", "tie"], "winner": ["tie", "tie"]})
        with pytest.raises(DataError, match="may hold the sides model_a and model_b, or names of the winners"):
            Battles.from_pandas(frame)

    def test_a_model_called_tie_beside_names_of_winners(self):
        frame = pd.DataFrame(
            {"model_a": ["tie", "x", "tie"], "model_b": ["x", "tie", "x"], "winner": ["x", "x", "tie"]}
        )
        with pytest.raises(DataError, match="may hold names of the winners, or the same with words for ties"):
            Battles.from_pandas(frame)

    def test_a_standard_name_in_another_case(self):
        frame = pd.DataFrame({"model_a": ["x"], "model_b": ["y"], "Winner": ["x"], "target": [0.0]})
        with pytest.raises(DataError, match="both a 'winner' and a 'target' column"):
            Battles.from_pandas(frame)
        with pytest.raises(DataError, match="has a column 'count' beside 'winner'"):
            Battles.from_pandas(frame.drop(columns="target").assign(Count=3))

    def test_models_called_as_numbers(self):
        frame = pd.DataFrame({"model_a": [17, 23], "model_b": [23, 40], "winner": [23, 40]})
        assert Battles.from_pandas(frame).target.tolist() == [0, 0]
        with pytest.raises(DataError, match="numbers are never guessed"):
            Battles.from_pandas(pd.DataFrame({"model_a": [0, 1], "model_b": [1, 0], "winner": [0, 1]}))


def test_a_model_called_tie_where_others_tie():
    """Between others "tie" can only be a tie; where the model plays, it may have won."""
    frame = pd.DataFrame({"model_a": ["tie", "x", "tie"], "model_b": ["x", "y", "y"], "winner": ["tie", "tie", "y"]})
    with pytest.raises(DataError, match="may hold names of the winners, or the same with words for ties"):
        Battles.from_pandas(frame)
    assert Battles.from_pandas(frame[1:]).target.tolist() == [0.5, 0]


def test_a_winner_that_is_no_model():
    frame = pd.DataFrame({"model_a": [*"xyz"], "model_b": [*"yzx"], "winner": ["x", "tie", "kebab"]})
    with pytest.raises(DataError, match=r"unknown labels: 'kebab' \(1\); .*neither side in 1 row \(first in row 2"):
        Battles.from_pandas(frame)


def test_a_winner_that_is_neither_side():
    found = message(["x", "y", "y", "x"])
    assert "unknown labels: 'x' (2), 'y' (2)" in found
    assert "the label names neither side in 1 row (first in row 2; rows count from 0)" in found


class TestScores:
    def test_the_larger_wins(self):
        frame = PAIRS.assign(home=[2, 0, 1, 3], away=[1, 2, 1, 2.5])
        assert Battles.from_pandas(frame, scores=("home", "away")).target.tolist() == [1, 0, 0.5, 1]
        close = Battles.from_pandas(frame, scores=("home", "away"), tie_within=1)
        assert close.target.tolist() == [0.5, 0, 0.5, 0.5]
        tenths = PAIRS.assign(home=[1.1, 0.3, 1.0, 1.2], away=[1.0, 0.2, 1.1, 1.0])
        assert Battles.from_pandas(tenths, scores=("home", "away"), tie_within=0.1).target.tolist() == [
            0.5,
            0.5,
            0.5,
            1,
        ]

    @pytest.mark.parametrize(("home", "error"), [
        ([1, -2, 0, 1], "scores must be finite and >= 0; 1 value is wrong: -2"),
        ([1, np.inf, 0, 1], "scores must be finite and >= 0; 1 value is wrong: inf"),
        ([1, np.nan, 0, 1], "column 'home' has 1 missing value"),
        (["a", "b", "c", "d"], "column 'home' is not numeric"),
    ])  # fmt: skip
    def test_bad_ones(self, home, error):
        with pytest.raises(DataError, match=error):
            Battles.from_pandas(PAIRS.assign(home=home, away=0), scores=("home", "away"))

    @pytest.mark.parametrize("options", [
        {"scores": ("home", "away"), "winner": "winner"},
        {"scores": ("home", "away"), "labels": "a_wins_1"},
        {"scores": "home"},
        {"scores": ("home", "away"), "tie_within": -1},
        {"tie_within": 1},
    ])  # fmt: skip
    def test_bad_options(self, options):
        with pytest.raises(ValueError, match="scores"):
            Battles.from_pandas(PAIRS.assign(home=1, away=0, winner="tie"), **options)


class TestWinnersAndLosers:
    FRAME = pd.DataFrame({"won": list("xyz"), "lost": list("yzx"), "other": 1})

    def test_side_a_always_wins(self):
        battles = Battles.from_pandas(self.FRAME, winner_model="won", loser_model="lost")
        assert battles.target.tolist() == [1, 1, 1]
        assert battles.models[battles.model_a].tolist() == list("xyz")
        assert list(battles.columns) == ["other"]

    def test_both_are_named(self):
        with pytest.raises(ValueError, match="winner_model= and loser_model= go together"):
            Battles.from_pandas(self.FRAME, winner_model="won")
        with pytest.raises(ValueError, match="give the result once, got winner= and winner_model= and loser_model="):
            Battles.from_pandas(self.FRAME, winner="other", winner_model="won", loser_model="lost")


class TestMissing:
    FRAME = PAIRS.assign(winner=["model_a", None, "tie", "model_b"]).assign(model_a=["x", "y", " ", "x"])

    def test_rows_are_dropped_on_request_and_counted(self):
        with pytest.raises(DataError, match="missing"):
            Battles.from_pandas(self.FRAME)
        battles = Battles.from_pandas(self.FRAME, missing="drop")
        assert battles.target.tolist() == [1, 0]
        assert (battles.report.n_rows, battles.report.n_missing) == (4, 2)
        assert "2 rows without a model or a result left out on request" in str(battles.report)

    def test_columns_that_are_not_the_result_may_be_empty(self):
        battles = Battles.from_pandas(
            PAIRS.assign(winner="tie", winner_tie=None, wins_a=[1, None, 2, 3]), missing="drop"
        )
        assert (battles.n_battles, battles.report.n_missing) == (4, 0)

    def test_lists_are_no_results(self):
        with pytest.raises(DataError, match="no labels"):
            Battles.from_pandas(PAIRS.assign(winner=[["a"], None, ["b"], {}]), missing="drop")

    def test_further_errors_name_rows_of_the_input(self):
        frame = self.FRAME.assign(w=[1, 1, 1, -1])
        with pytest.raises(DataError, match="first in row 3"):
            Battles.from_pandas(frame, weight="w", missing="drop")

    def test_no_row_is_left(self):
        with pytest.raises(DataError, match="every row lacks a model or a result"):
            Battles.from_pandas(PAIRS.assign(winner=None), missing="drop")

    def test_a_bad_word(self):
        with pytest.raises(ValueError, match="missing must be one of 'error', 'drop'"):
            Battles.from_pandas(self.FRAME, missing="label")


def test_columns_in_another_spelling(tmp_path):
    frame = PAIRS.assign(winner=["A", "B", "tie", "A"], day=[1, 2, 3, 4])
    path = tmp_path / "votes.csv"
    named = frame.rename(columns={"model_a": "Model A", "winner": "WINNER", "day": "The-Day"})
    named.to_csv(path, index=False)
    battles = read_battles(path, keep=["the_day"])
    assert battles.target.tolist() == [1, 0, 0.5, 1]
    assert battles.column("the_day").tolist() == [1, 2, 3, 4]
    assert battles.report.read_as[:2] == (
        "column 'Model A': read as 'model_a'", "column 'The-Day': read as 'the_day'",
    )  # fmt: skip
    assert battles.report.read_as == (*battles.report.read_as[:2], "column 'WINNER': read as 'winner'",
                                      *battles.report.read_as[3:])  # fmt: skip
    assert Battles.from_pandas(named).report.read_as[0] == "column 'Model A': read as 'model_a'"


def test_a_name_in_two_spellings_is_not_guessed():
    frame = PAIRS.rename(columns={"model_a": "Model A"}).assign(MODEL_A="q", winner="tie")
    with pytest.raises(DataError, match="no column 'model_a'"):
        Battles.from_pandas(frame)


def test_judged_battles_know_the_same_words():
    frame = PAIRS.assign(human=["A", "B", "tie", None], gap=[1.0, -1, 0, 2])
    battles = jaxeval.JudgedBattles.from_pandas(frame, score_difference="gap")
    np.testing.assert_array_equal(battles.human, [1, 0, 0.5, np.nan])
    assert "as the sides A and B" in str(battles.report)
    coded = jaxeval.JudgedBattles.from_pandas(
        frame.assign(human=[1, 2, 3, None]), score_difference="gap",
        label_coding={"1": "model_a", "2": "model_b", "3": "tie"},
    )  # fmt: skip
    np.testing.assert_array_equal(coded.human, battles.human)


def test_saved_battles_remember(tmp_path):
    battles = read(["A", "B", "tie", "A"])
    battles.save(tmp_path / "votes.parquet")
    assert Battles.load(tmp_path / "votes.parquet").report == battles.report
    assert Battles.concat([battles, battles]).report.read_as == battles.report.read_as
