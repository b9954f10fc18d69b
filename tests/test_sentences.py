"""Sentences in tests follow what is said now, but not their numbers, names and options."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sentences import NotFollowedError, escaped, followed, followed_pattern

TOOL = Path(__file__).with_name("sentences.py")

SAID = """
import warnings

def read(path):
    raise ValueError(f"the file {path!r} has no column named 'winner'; its columns are 'a' and 'b' (--columns)")

LONG = "the board has more models than a reader looks at: it shows the first of them, " * 2 + "and all by --full"

def board(n):
    warnings.warn(f"the board rests on {n} votes only, too few to tell its models apart", stacklevel=2)
    return [f"Ratings of {n} votes", LONG, "All of the models fall into one group."]
"""

TESTS = r"""
import pytest
from said import board, read

LINE = "Every model falls into one group."

def test_raises():
    with pytest.raises(ValueError, match=r"'x\.csv' lacks a column called 'winner'; its columns") as error:
        read("x.csv")
    assert "its columns are these: 'a' and 'b' (--columns)" in str(error.value)

def test_type():
    with pytest.raises(KeyError, match="the file lacks a column"):
        read("x.csv")

@pytest.mark.parametrize(("path", "told"), [("x", "'x' lacks a column called"), ("y", r"'y' .* column named 'winner'")])
def test_parametrised(path, told):
    with pytest.raises(ValueError, match=told):
        read(path)

@pytest.mark.parametrize("name", ["winner", "loser"])
def test_fields(name):
    with pytest.raises(ValueError, match=rf"^'{name}\.csv' lacks a column called 'winner'"):
        read(f"{name}.csv")

def test_warns():
    with pytest.warns(UserWarning, match="rests on 20 votes alone, "
                      "too few to tell"):
        assert board(20)[-1] == LINE
    with pytest.warns(UserWarning):
        assert any("models fall in one group" in text for text in board(20))

@pytest.mark.filterwarnings("ignore")
def test_start():
    assert board(30)[0].startswith("The ratings of 30 votes")

@pytest.mark.filterwarnings("ignore")
def test_long():
    assert ("the board holds more models than a reader looks at: it shows the first of them, the board has more models "
            "than a reader looks at: it shows the first of them, and all by --full") == board(1)[1]
    assert not board(1)[1].startswith("the board has more")

@pytest.mark.filterwarnings("ignore")
def test_number():
    assert "Ratings of 20 such votes" in board(30)[0]
"""


@pytest.mark.slow
def test_a_run_rewrites_sentences_and_leaves_numbers(tmp_path):
    (tmp_path / "said.py").write_text(SAID)
    file = tmp_path / "test_said.py"
    file.write_text(TESTS)
    done = subprocess.run(
        [sys.executable, TOOL, file], cwd=tmp_path, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTEST_ADDOPTS": "-p no:jaxtyping -p no:anyio"},
    )  # fmt: skip
    found = file.read_text()
    for old, new in (
        (
            r"'x\.csv' lacks a column called 'winner'; its columns",
            r"'x\.csv' has no column named 'winner'; its columns",
        ),
        ("its columns are these: 'a' and 'b' (--columns)", "its columns are 'a' and 'b' (--columns)"),
        ("'x' lacks a column called", "'x' has no column named"),
        (r"^'{name}\.csv' lacks", r"^the file '{name}\.csv' has no column named 'winner'"),
        ('alone, "\n                      "too', "only, too"),
        ("Every model falls into one group.", "All of the models fall into one group."),
        ("models fall in one group", "models fall into one group"),
        ("The ratings of 30", "Ratings of 30"),
    ):
        assert old not in found, done.stdout
        assert new in found, done.stdout
    assert "Ratings of 20 such votes" in found  # another number
    assert "the file lacks a column" in found  # another exception
    assert "'y' .* column named 'winner'" in found  # it matches
    assert "  - The ratings of 30 votes\n  + Ratings of 30 votes\n" in done.stdout
    assert done.returncode == 1
    assert "3 tests still fail" in done.stdout
    assert "the board holds" not in found
    assert max(map(len, found.splitlines())) <= 120
    assert "numbers, names or options are others: 'Ratings of 30 votes'" in done.stdout


@pytest.mark.parametrize(("old", "said", "new"), [
    ("expected a pandas DataFrame", "it wanted a pandas DataFrame, got list", "wanted a pandas DataFrame"),
    ("the cities fall into 2 groups", "the board: the towns fall into 2 groups. More", "the towns fall into 2 groups"),
    ("no judge", "there are no judges here", "no judges"),
    ("none that jaxeval saved", "holds no battles that jaxeval saved", "no battles that jaxeval saved"),
    ("which is no number", "which is neither a number nor a text", "which is neither a number"),
    ("line 2 nests 9 lists", "of line 2: it nests lists 9 deep", "line 2: it nests lists 9"),
    ("name it by --item", "name the column by --item, or drop it", "name the column by --item"),
])  # fmt: skip
def test_what_corresponds_to_a_sentence(old, said, new):
    assert followed(old, said) == new


@pytest.mark.parametrize(("old", "said"), [
    ("no column 'a' here", "no column 'b' here"),
    ("name it by --item", "name it by --column"),
    ("it lacks 2,000 votes", "it lacks 3,000 votes"),
    ("every model lost", "this is about something else"),
    ("Category", "Categories"),
    ("no model lost a vote", "a model lost a vote"),
])  # fmt: skip
def test_what_does_not_follow(old, said):
    with pytest.raises(NotFollowedError):
        followed(old, said)


def test_patterns_keep_their_expressions():
    said = "the fetch takes 0.1 MB, but /tmp/x has 5 MB left (set TMPDIR)"
    new = r"the fetch takes 0\.1 MB, but .* has \d+ MB left \(set"
    assert followed_pattern(r"fetching it takes 0\.1 MB, but .* has \d+ MB free \(set", said) == new
    assert followed_pattern(new, said) == new
    assert escaped("(a) 1.5 - b") == r"\(a\) 1\.5 - b"
    for old in ("one model|two models", r"but .* has 6 MB free"):
        with pytest.raises(NotFollowedError):
            followed_pattern(old, said)
