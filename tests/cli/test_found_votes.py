"""Votes whose columns have names of their own: found by their values, and told; or asked for with the line to type."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest
from command_line import run

N = 60
_RNG = np.random.default_rng(0)
A = _RNG.integers(0, 4, N)
B = (A + _RNG.integers(1, 4, N)) % 4
FIRST, SECOND = (np.array(["alpha", "beta", "gamma", "delta"])[side] for side in (A, B))
RESULT = _RNG.choice(3, N, p=[0.5, 0.4, 0.1])  # side A, side B, a tie
FEW = ("--resamples", "20", "--out", "-", "--format", "json")


def words(*three):
    return np.array(three)[RESULT]


VOTES = pd.DataFrame({"model_a": FIRST, "model_b": SECOND, "winner": words("model_a", "model_b", "tie")})
FILES = {
    "chess": {"White": FIRST, "Black": SECOND, "Result": words("1-0", "0-1", "1/2-1/2")},
    "letters": {"left": FIRST, "right": SECOND, "preferred": words("L", "R", "both")},
    "neither": {"left": FIRST, "right": SECOND, "preferred": words("L", "R", "neither")},
    "images": {"image_left": FIRST, "image_right": SECOND, "picked": words("left", "right", "tie")},
    "names of winners": {"image_left": FIRST, "image_right": SECOND,
                         "picked": np.select([RESULT == 0, RESULT == 1], [FIRST, SECOND], "tie")},
    "another language": {"Wine A": FIRST, "Wine B": SECOND, "Besser": words("A", "B", "gleich")},
    "names of columns": {"Wine A": FIRST, "Wine B": SECOND, "Besser": words("Wine A", "Wine B", "tie")},
    "numbered": {"model_1": FIRST, "model_2": SECOND, "winner": words("model_1", "model_2", "tie")},
    "prompts": {"prompt_a": FIRST, "prompt_b": SECOND, "winner": words("a", "b", "tie")},
    "answers": {"answer_a": FIRST, "answer_b": SECOND, "verdict": words("A", "B", "tie")},
    "any names": {"foo": FIRST, "bar": SECOND, "better": words("foo", "bar", "equal")},
}  # fmt: skip


def written(folder, columns):
    path = folder / "votes.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    return run("leaderboard", written(tmp_path_factory.mktemp("usual"), VOTES), *FEW).stdout


@pytest.mark.parametrize("name", FILES)
def test_the_board_is_that_of_the_usual_names(name, usual, tmp_path):
    result = run("leaderboard", written(tmp_path, FILES[name]), *FEW, "--competitor-name", "model")
    assert result.exit_code == 0, result.output
    table, expected = (json.loads(text) for text in (result.stdout, usual))
    assert table["rows"] == expected["rows"]


def test_what_was_taken_is_told(tmp_path):
    path = written(tmp_path, FILES["chess"])
    result = run("leaderboard", path, "--resamples", "20")
    assert "read as --model-a White --model-b Black --winner Result" in result.stderr


def test_blanks_after_commas_are_no_part_of_names(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("a, b, winner\n" + "x, y, x\ny, z, tie\nz, x, z\n" * 20)
    result = run("leaderboard", path, "--resamples", "20")
    assert "read as --model-a a --model-b b" in result.stderr
    assert "60 battles between 3 models" in result.stdout


@pytest.mark.parametrize("command", ["audit", "next"])
def test_other_commands_find_them_too(command, tmp_path):
    extra = {"audit": ["--resamples", "20", "--parts", "board"], "next": ["--k", "2"]}[command]
    result = run(command, written(tmp_path, FILES["any names"]), *extra)
    assert "--model-a foo --model-b bar --winner better" in result.stderr, result.output


PEOPLE, OTHERS = (np.array(["ann", "bob", "cy", "dee"])[side] for side in (A, B))
SAID = np.array(["It is so.", "No.", "I think it may be.", "Yes, it is."])
GOALS = {"home_goals": _RNG.integers(0, 4, N), "away_goals": _RNG.integers(0, 4, N)}
UNSURE = {
    "where they stood": {"foo": FIRST, "bar": SECOND, "shown_left": np.where(RESULT == 0, FIRST, SECOND)},
    "who won the toss": {"team1": FIRST, "team2": SECOND, "toss_winner": np.where(RESULT == 0, FIRST, SECOND)},
    "the arm of a test": {"foo": FIRST, "bar": SECOND, "arm": np.where(RESULT == 0, "A", "B")},
    "whose win": {"opponent": FIRST, "player": SECOND, "outcome": words("win", "loss", "draw")},
    "halves": {"home": FIRST, "away": SECOND, "home_goals_ht": GOALS["away_goals"],
               "away_goals_ht": GOALS["home_goals"], **GOALS},
    "counts": {"left": FIRST, "right": SECOND, "preferred": words("L", "R", "both"), "count": A + 1},
    "who won by name": {"foo": FIRST, "bar": SECOND, "winner_name": np.where(RESULT == 0, FIRST, SECOND),
                        "shown_left": np.where(RESULT == 1, FIRST, SECOND)},
    "winners and losers": {"winner": FIRST, "loser": SECOND},
    "numbers": {"option1": FIRST, "option2": SECOND, "choice": np.where(RESULT == 0, 1, 2)},
    "two results": {"foo": FIRST, "bar": SECOND, "one": words("foo", "bar", "tie"), "two": words("bar", "foo", "tie")},
    "no result": {"foo": FIRST, "bar": SECOND, "comment": [f"c{k}" for k in range(N)]},
    "labels of judges": {"item": np.arange(N), "judge_1": words("good", "bad", "fair"),
                         "judge_2": words("good", "bad", "bad")},
    "people": {"annotator_1": PEOPLE, "annotator_2": OTHERS, "preference": words("A", "B", "tie")},
    "whole answers": {"answer_a": SAID[A], "answer_b": SAID[B], "verdict": words("A", "B", "tie")},
    "true and predicted": {"truth": FIRST, "prediction": SECOND, "correct": words("yes", "no", "no")},
    "whether it is": {"foo": FIRST, "bar": SECOND, "first_better": words(True, False, False)},
    "ratings before": {"player1": FIRST, "player2": SECOND, "rating1": A + 1000, "rating2": B + 1000},
    "a grade beside ids": {"prompt": N - np.arange(N), "foo_a": FIRST, "foo_b": SECOND, "grade": 1 + (A + B) % 7},
    "a grade beside counted rows": {"row": np.arange(N), "foo_a": FIRST, "foo_b": SECOND, "grade": 1 + (A + B) % 7},
    "texts": {"question": [f"why {k}?" for k in range(N)], "answer_a": [f"as {k}" for k in range(N)],
              "answer_b": [f"so {k}" for k in range(N)], "verdict": words("A", "B", "tie")},
}  # fmt: skip


@pytest.mark.parametrize("name", UNSURE)
def test_what_is_not_sure_is_asked_for_by_a_line_to_type(name, tmp_path):
    path = written(tmp_path, UNSURE[name])
    result = run("leaderboard", path, "--resamples", "20")
    assert result.exit_code == 1
    first = result.stderr.splitlines()[0]
    assert first.startswith(f"Error: say it so: jaxeval leaderboard {path} --")
    if "COLUMN" not in first:
        line = shlex.split(first.removeprefix("Error: say it so: jaxeval "))
        assert run(*line, "--resamples", "20").exit_code == 0


@pytest.mark.parametrize(("name", "line"), [
    ("numbers", "--model-a option1 --model-b option2 --winner choice --labels 1=model_a,2=model_b,0=tie"),
    ("halves", "--model-a home --model-b away --scores home_goals:away_goals"),
    ("counts", "--model-a left --model-b right --winner preferred --count count"),
    ("whose win", "--model-a opponent --model-b player --winner outcome"),
    ("winners and losers", "--winner-model winner --loser-model loser"),
    ("whole answers", "--model-a COLUMN --model-b COLUMN --winner COLUMN"),
    ("people", "--model-a COLUMN --model-b COLUMN --winner COLUMN"),
    ("a grade beside ids", "--model-a COLUMN --model-b COLUMN --winner COLUMN"),
    ("a grade beside counted rows", "--model-a COLUMN --model-b COLUMN --winner COLUMN"),
])  # fmt: skip
def test_the_line_to_type(name, line, tmp_path):
    path = written(tmp_path, UNSURE[name])
    assert run("leaderboard", path).stderr.splitlines()[0].endswith(f" {path} {line}")


def test_two_results_that_agree_are_one(tmp_path):
    agree = {"home": FIRST, "away": SECOND, "home_goals": (RESULT == 0) + 0, "away_goals": (RESULT == 1) + 0,
             "result": words("home", "away", "draw")}  # fmt: skip
    result = run("leaderboard", written(tmp_path, agree), "--resamples", "20")
    assert result.exit_code == 0, result.output
    assert "read as --model-a home --model-b away --scores home_goals:away_goals" in result.stderr


def test_labels_may_say_left_and_right(tmp_path):
    path = written(tmp_path, {"foo": FIRST, "bar": SECOND, "better": words("x", "y", "z")})
    named = ("--model-a", "foo", "--model-b", "bar", "--winner", "better", "--labels", "x=left,y=right,z=both")
    assert run("leaderboard", path, *named, *FEW).exit_code == 0


def test_named_columns_are_taken_as_they_are(tmp_path):
    path = written(tmp_path, FILES["chess"])
    result = run("leaderboard", path, "--winner", "Result", "--resamples", "20")
    assert result.exit_code == 1
    assert "no column 'model_a'" in result.stderr
