import json
import shlex
from functools import partial

import numpy as np
import pandas as pd
import pytest
from command_line import run as command

import jaxeval

run = partial(command, "next")


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    path = tmp_path_factory.mktemp("votes") / "votes.csv"
    jaxeval.simulate_votes(400, 6, seed=0).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def fit(votes):
    return jaxeval.fit_bradley_terry(jaxeval.read_battles(votes))


def test_a_list_of_battles(votes, fit, tmp_path):
    result = run(votes, "--k", 50, "--goal", "top", "--top-size", 3, "--seed", 4, "--out", tmp_path / "plan")
    assert result.exit_code == 0, result.output
    expected = jaxeval.next_battles(fit, 50, goal="top", top=3, seed=4)
    text = " ".join(result.stdout.split())
    assert text.startswith("50 battles for the ratings of the top 3: 40 that tell most, and 10 at random.")
    assert "inverse propensities" in text
    assert "random share 0.2" in text
    written = {path.stem: pd.read_csv(path) for path in (tmp_path / "plan").glob("*.csv")}
    assert set(written) == {"battles", "each", "expected", "by_model"}
    pd.testing.assert_frame_equal(written["battles"], pd.DataFrame(expected.battles), check_dtype=False)
    pd.testing.assert_frame_equal(written["each"], pd.DataFrame(expected.each()), check_dtype=False)
    assert (tmp_path / "plan" / "answer.txt").read_text().splitlines()[:-1] == list(expected.answer.sentences)


def test_the_new_votes_come_back_with_their_propensity(votes, fit, tmp_path):
    """In the line that the command prints: the check of a plan."""
    day = tmp_path / "my plan" / "each.csv"
    planned = run(votes, "--k", 200, "--out", day.parent, "--full")
    line = " ".join(planned.stdout.split()).split("has its winners: ")[1].split(" * ")[0]
    each = pd.read_csv(day)
    rng = np.random.default_rng(0)
    each.assign(winner=rng.choice(["model_a", "model_b"], len(each))).to_csv(day, index=False)
    out = tmp_path / "board.csv"
    arguments = shlex.split(line)[:5]
    assert arguments == ["jaxeval", "leaderboard", str(day), "--propensity", "propensity"]
    result = command(*arguments[1:], "--resamples", "20", "--out", out)
    assert result.exit_code == 0, result.output
    assert "battles count by their inverse propensities, and say about as much as" in " ".join(result.stdout.split())
    battles = jaxeval.read_battles(day, propensity="propensity")
    found = pd.read_csv(out).set_index("model")["rating"]
    np.testing.assert_allclose(found, jaxeval.fit_bradley_terry(battles).ratings[found.index])


def test_a_newcomer(votes):
    result = run(votes, "--newcomer", "new", "--width", 80, "--out", "-", "--format", "json")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    assert {row["model_b"] for row in rows} == {"new"}
    assert len(rows) == 6
    assert "new has no rating so far" in result.stderr


def test_how_many_votes(votes, fit):
    asked = ["--plan", "--width", 30, "--width", 20, "--difference", 50, "--votes", 1000]
    asked += ["--pair", "model-1", "model-2"]
    result = run(votes, *asked, "--out", "-", "--format", "json")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    expected = jaxeval.plan_votes(fit, width=[30, 20], difference=50, votes=1000, pair=("model-1", "model-2"))
    assert [row["votes"] for row in rows] == expected["votes"].tolist()
    screen = run(votes, *asked)
    assert "Votes for the difference of model-1 and model-2" in screen.stdout
    assert "power 0.8" in screen.stdout
    never = run(votes, "--plan", "--width", 0.001)
    assert never.stdout.count("never") >= 2


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_options_of_the_fit(votes, link):
    options = ["--link", link, "--ridge", 0.1, "--gauge", "model-1=1000", "--cluster", "voter", "--reweight"]
    result = run(votes, "--k", 10, *options, "--out", "-")
    assert result.exit_code == 0, result.output
    fit = jaxeval.fit_bradley_terry(
        jaxeval.read_battles(votes, keep=["voter"]), ridge=0.1, link=link, gauge=("model-1", 1000), cluster="voter",
        reweight=True,
    )  # fmt: skip
    assert len(result.stdout.splitlines()) == 1 + len(jaxeval.next_battles(fit, 10).battles)


@pytest.mark.parametrize(("options", "code", "message"), [
    ([], 2, "give --k"),
    (["--k", 5, "--width", 20], 2, "give --k"),
    (["--width", 20, "--width", 30], 2, "give --k"),
    (["--k", 5, "--votes", 5], 2, "--votes needs --plan"),
    (["--plan", "--k", 5], 2, "say --votes"),
    (["--k", 5, "--top-size", 3, "--goal", "board"], 2, "leave one out"),
    (["--k", 5, "--power", 0.9], 2, "--power needs --plan"),
    (["--k", 5, "--top-size", 1, "--goal", "top"], 2, "--top-size"),
    (["--k", 5, "--features", "nowhere"], 1, "nowhere"),
])  # fmt: skip
def test_hostile_options(votes, options, code, message):
    result = run(votes, *options)
    assert result.exit_code == code
    assert message in result.output
