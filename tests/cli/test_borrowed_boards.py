"""``jaxeval leaderboard --by COL --borrow``: small categories that borrow from the other battles."""

import json

import numpy as np
import pandas as pd
import pytest
from command_line import run as command

import jaxeval

B = 20


def run(*arguments):
    return command("leaderboard", *arguments, "--resamples", B)


@pytest.fixture(scope="module")
def votes():
    return jaxeval.simulate_votes(1_200, 6, seed=3).astype(str)


@pytest.fixture(scope="module")
def file(votes, tmp_path_factory):
    path = tmp_path_factory.mktemp("votes") / "votes.csv"
    votes.to_csv(path, index=False)
    return path


@pytest.mark.slow
def test_the_boards_are_those_of_python(votes, file, tmp_path):
    result = run(file, "--by", "language", "--borrow", "--out", tmp_path / "out", "--format", "json", "--full")
    assert result.exit_code == 0, result.output
    boards = jaxeval.small_categories(votes, "language", B)
    found = pd.DataFrame(json.loads((tmp_path / "out" / "leaderboard.json").read_text())["rows"])
    expected = jaxeval.leaderboard(boards)
    for name in ("rating", "lower", "upper", "borrowed"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-6)
    table = pd.DataFrame(json.loads((tmp_path / "out" / "categories.json").read_text())["rows"])
    np.testing.assert_allclose(table["borrowed"], boards.table()["borrowed"], atol=1e-9)


def test_the_screen_says_what_is_borrowed(file):
    result = run(file, "--by", "language", "--borrow", "--full", "--prior-spread", 50)
    told = " ".join(result.output.split())
    assert "What categories borrow" in told
    assert told.count("% borrowed ") == 5  # each category's first sentence
    assert f"{B} draws, seed 0" in told
    assert "50 Elo" in told
    assert "firth" not in told


@pytest.mark.parametrize(("arguments", "told"), [
    ((), "--borrow needs --by"),
    (("--by", "language", "--ties", "davidson"), "--ties and --borrow do not go together"),
    (("--by", "language", "--position"), "--features and --borrow do not go together"),
    (("--by", "language", "--scheme", "poisson"), "--scheme and --borrow do not go together"),
    (("--by", "language", "--checkpoint", "x"), "--checkpoint and --borrow do not go together"),
    (("--by", "language", "--prior-spread", "0"), "--prior-spread"),
    (("--by", "langauge"), "langauge"),
])  # fmt: skip
def test_what_does_not_go_together(file, arguments, told):
    result = run(file, "--borrow", *arguments)
    assert result.exit_code != 0
    assert told in " ".join(result.output.split())


def test_a_prior_without_borrowing(file):
    assert "--prior-spread needs --borrow" in run(file, "--by", "language", "--prior-spread", 20).output
