"""The word for what is rated, on everything that the commands print and write."""

import json
import re

import pandas as pd
import pytest
from command_line import said

import jaxeval

SIDES = ("--model-a", "player_1", "--model-b", "player_2")
FEW = ("--resamples", "20")
#: A word of models that is one of statistics: what a test presumes, an error by it, models of ties.
_OF_STATISTICS = re.compile(r"where the model misfits|the model is right|errors of the model|Model error|model of ties")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Games of players, one of whom never lost, two of whom met nobody else."""
    path = tmp_path_factory.mktemp("games")
    votes = jaxeval.simulate_votes(600, 6, seed=0, details=True).rename(
        columns={"model_a": "player_1", "model_b": "player_2"}
    )
    for side in ("player_1", "player_2"):
        votes[side] = votes[side].astype(str).str.replace("model", "player")
    few = {"player_1": ["hero"] * 3 + ["x", "y"], "player_2": ["player-1"] * 3 + ["y", "x"], "winner": "model_a"}
    games = pd.concat([votes.astype({"winner": str}), pd.DataFrame(few)], ignore_index=True).ffill()
    games["language"] = games["language"].where(games["language"] == "English", "Chinese")
    games.to_csv(path / "games.csv", index=False)
    games[:400].to_csv(path / "before.csv", index=False)
    return path


def of_models(text):
    """Lines that call something a model."""
    said = [
        line for line in text.splitlines() if re.search(r"\bmodels?\b", _OF_STATISTICS.sub("", line), re.IGNORECASE)
    ]
    return [line for line in said if "model_a" not in line]


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (("leaderboard", "games.csv", "--min-votes", "10"), "3 players have fewer than 10 battles"),
        (("leaderboard", "games.csv", "--simultaneous-ranks", "--ridge", "0.1"), "for all players at once"),
        (("leaderboard", "games.csv", "--by", "language"), "  Player "),
        pytest.param(
            ("leaderboard", "games.csv", "--features", "length_a:length_b", "--ties", "davidson"), "  Player ",
            marks=pytest.mark.slow,
        ),
        (("compare-boards", "before.csv", "games.csv"), "none of 6 players moved at the 95% level"),
        (("next", "games.csv", "--k", "40"), "Expected intervals by player"),
        (("next", "games.csv", "--plan", "--votes", "100"), "Votes for the ratings of 9 players"),
    ],
)  # fmt: skip
def test_screens(folder, command, shown, monkeypatch):
    monkeypatch.chdir(folder)
    resampled = () if command[0] == "next" else FEW
    text = said(*command, *SIDES, *resampled, "--full")
    assert shown in text
    assert of_models(text) == []


def test_what_a_leaderboard_writes(folder, tmp_path):
    written = {name: tmp_path / f"board.{name}" for name in ("md", "tex", "html", "json", "svg")}
    asked = ("leaderboard", folder / "games.csv", *SIDES, *FEW)
    for name in ("md", "tex", "html"):
        said(*asked, "--out", written[name], "--quiet")
    published = ("--eval-results", tmp_path / "hub", "--eval-benchmark", "a/b:c")
    text = said(*asked, "--out", written["json"], "--plot", written["svg"], *published)
    assert "wrote results of 6 players to" in text
    for name in ("md", "tex", "html"):
        assert of_models(written[name].read_text()) == [], name
    assert "| Rank | Spread | Player | Rating |" in written["md"].read_text()
    found = json.loads(written["json"].read_text())
    assert found["settings"]["competitor"] == ["player", "players"]
    assert "model" in found["rows"][0]  # columns are an interface


def test_another_word(folder, tmp_path):
    asked = ("leaderboard", folder / "games.csv", *SIDES, *FEW)
    text = said(*asked, "--competitor-name", "city,cities")
    assert "the cities fall into 2 groups" in text
    assert "player_1" not in text
    assert of_models(text) == []
    result = said(*asked, "--competitor-name", ",", code=2)
    assert "Invalid value for '--competitor-name': ',' is no word such as 'player'" in result
    assert "may have 40 characters" in said(*asked, "--competitor-name", "p" * 41, code=2)


def test_errors(folder):
    asked = ("leaderboard", folder / "games.csv", *SIDES, *FEW)
    assert "no player 'nobody' among the 9" in said(*asked, "--exclude", "nobody", code=1)
    assert "the anchor player 'nobody' is not among the 9 players" in said(*asked, "--gauge", "nobody=1000", code=1)
    assert "no player has 9,999 battles or more" in said(*asked, "--min-votes", "9999", code=1)
    newcomer = ("next", folder / "games.csv", *SIDES, "--k", "5", "--pair", "nobody", "hero")
    assert "no player 'nobody' on the board" in said(*newcomer, code=1)


def test_the_word_stays_in_a_state(folder, tmp_path):
    state, asked = tmp_path / "state.parquet", (*SIDES, *FEW, "--state", tmp_path / "state.parquet")
    assert "  Player " in said("leaderboard", folder / "before.csv", *asked)
    assert jaxeval.Battles.load(state).competitor.one == "player"
    assert "  Knight " in said("leaderboard", folder / "games.csv", *asked, "--competitor-name", "knight")
    assert jaxeval.Battles.load(state).competitor.many == "knights"


@pytest.mark.parametrize(("parts", "shown"), [
    (["--parts", "board,who_votes"], "Who votes"),
    pytest.param([], "Does one number per player fit?", marks=pytest.mark.slow),
])  # fmt: skip
def test_the_audit(folder, tmp_path, parts, shown):
    out = tmp_path / "audit"
    columns = ("--voter", "voter", "--time", "time", "--by", "language")
    text = said("audit", folder / "games.csv", *SIDES, *columns, *parts, *FEW, "--full", "--out", out)
    assert shown in text
    assert re.search(r"^ +-  hero +unrated +3$", text, re.MULTILINE)
    for page in (text, (out / "audit.md").read_text(), (out / "audit.html").read_text()):
        assert of_models(page) == []
    assert "<th" in (out / "audit.html").read_text()
    assert "| Rank | Player | Rating |" in (out / "audit.md").read_text()


@pytest.mark.parametrize(
    "column", [*(pytest.param(word, marks=pytest.mark.slow) for word in ("model", "player")), "Player"]
)
def test_tables_of_players(folder, tmp_path, column):
    names, facts = tmp_path / "names.csv", tmp_path / "facts.csv"
    names.write_text(f"{column},name\nplayer-1,Ada\n")
    facts.write_text(f"{column},country\nAda,Wales\n")
    known = (*SIDES, *FEW, "--rename", names, "--metadata", facts)
    assert re.search(r" Ada .* Wales", said("leaderboard", folder / "games.csv", *known, "--full"))
    compared = said("compare-boards", folder / "before.csv", folder / "games.csv", *known, "--out", "-")
    assert re.search(r"^Ada,.*,Wales$|\| Ada \|.*\| Wales \|", compared, re.MULTILINE)


@pytest.mark.slow
def test_rankings(tmp_path):
    path = tmp_path / "races.csv"
    rows = [
        (race, name, rank) for race in range(40) for rank, name in enumerate("abc"[race % 3 :] + "abc"[: race % 3], 1)
    ]
    pd.DataFrame(rows, columns=["race", "runner", "rank"]).to_csv(path, index=False)
    asked = ("rankings", path, "--ranking", "race", "--item", "runner", *FEW)
    text = said(*asked)
    assert "40 rankings of 3 runners" in text
    assert "  Runner " in text
    assert of_models(text) == []
    assert "  Athlete " in said(*asked, "--competitor-name", "athlete")


@pytest.mark.slow
def test_panels(tmp_path):
    path = tmp_path / "panel.csv"
    verdicts = jaxeval.simulate_panel(150, 4, seed=0).rename(
        columns={"model_a": "left_image", "model_b": "right_image"}
    )
    verdicts.to_csv(path, index=False)
    asked = ("panel", path, "--model-a", "left_image", "--model-b", "right_image", *FEW)
    assert "  Image " in said(*asked)
    assert "  Photo " in said(*asked, "--competitor-name", "photo")
