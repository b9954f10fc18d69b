"""One table with roles, and the views of it: each is what its class reads of the table itself."""

import json

import numpy as np
import pandas as pd
import pytest
from command_line import run

import jaxeval
from jaxeval import Judgments
from jaxeval.data.roles import ROLES
from jaxeval.errors import DataError

GAMES = pd.DataFrame({"White": [*"xyxy"], "Black": [*"yxyx"], "Result": ["1-0", "0-1", "1-0", "1/2-1/2"]})
ANSWERS = pd.DataFrame({"model": [*"xxyy"], "item": [1, 2, 1, 2], "judgment": [1, 0, 1, 1], "human": [1, 0, None, 1]})
SCORED = pd.DataFrame({"model_a": [*"xyx"], "model_b": [*"yxy"], "scores_a": [1, 2, 3.0], "scores_b": [2, 1, 1.0]})
CALLS = pd.DataFrame({"item": [1, 1], "model_a": [*"xy"], "model_b": [*"yx"], "output": ["[[A]]", "[[B]]"]})
PLACES = pd.DataFrame({"race": [7, 7, 7, 8, 8], "driver": [*"abcab"], "rank": [1, 2, 2, 2, 1]})


def test_battles_are_found_by_their_values():
    judgments = Judgments.from_pandas(GAMES)
    assert judgments.shape == "pair"
    assert judgments.roles == {"model_a": "White", "model_b": "Black", "winner": "Result"}
    direct = jaxeval.Battles.from_pandas(GAMES, model_a="White", model_b="Black", winner="Result")
    np.testing.assert_array_equal(judgments.battles().target, direct.target)
    assert str(judgments).splitlines() == [
        "4 judgments of pairs: model_a, model_b, winner",
        "two sides in 'White' and 'Black', results in 'Result'",
        "column 'White': read as model_a", "column 'Black': read as model_b", "column 'Result': read as winner",
    ]  # fmt: skip


def test_each_view_is_what_its_class_reads():
    scores = ANSWERS.rename(columns={"judgment": "score"})
    verdicts = ANSWERS[["model", "item"]].assign(verdict=["win", "loss", "win", "tie"])
    for table, view, made in [
        (ANSWERS, Judgments.answers, jaxeval.JudgedAnswers.from_pandas(ANSWERS, model="model", item="item").judgment),
        (scores, Judgments.scores, jaxeval.ItemScores.from_pandas(scores).scores),
        (verdicts, Judgments.verdicts, jaxeval.AnchoredVerdicts.from_pandas(verdicts).outcome),
        (SCORED, Judgments.judged_battles, jaxeval.JudgedBattles.from_pandas(SCORED).score_difference),
        (CALLS, Judgments.replies, jaxeval.JudgeOutputs.from_pandas(CALLS).battles["verdict"]),
    ]:
        found = view(Judgments.from_pandas(table))
        of = {"JudgedAnswers": "judgment", "ItemScores": "scores", "AnchoredVerdicts": "outcome",
              "JudgedBattles": "score_difference"}  # fmt: skip
        values = getattr(found, of[type(found).__name__]) if type(found).__name__ in of else found.battles["verdict"]
        np.testing.assert_array_equal(values, made)


def test_rankings_and_what_is_said():
    judgments = Judgments.from_pandas(PLACES, ranked="driver", ranking="race")
    assert judgments.shape == "ranking"
    assert judgments.rankings().to_lists() == [["a", ["b", "c"]], ["b", "a"]]
    assert "[2 rows" not in str(judgments.rankings())
    assert "a > b = c" in repr(judgments.rankings())  # fewer rankings than are shown


def test_weights_and_points_are_taken_where_they_are_said():
    goals = pd.DataFrame({"model_a": [*"xyx"], "model_b": [*"yxy"], "goals_home": [1, 0, 2], "goals_away": [0, 0, 3]})
    goals = goals.assign(weight=[1.0, 2.0, 3.0])
    judgments = Judgments.from_pandas(goals, score_a="goals_home", score_b="goals_away")
    assert judgments.battles().target.tolist() == [1.0, 0.5, 0.0]
    assert judgments.battles().weight is None
    weighted = Judgments.from_pandas(goals, score_a="goals_home", score_b="goals_away", weight="weight")
    assert weighted.battles().weight.tolist() == [1.0, 2.0, 3.0]
    won = pd.DataFrame({"won": [*"xxy"], "lost": [*"yzz"]})
    assert Judgments.from_pandas(won, winner_model="won", loser_model="lost").battles().n_models == 3


def test_estimators_take_judgments():
    votes = jaxeval.simulate_votes(300, 4, seed=0)
    renamed = votes.rename(columns={"model_a": "left", "model_b": "right", "winner": "choice"})
    judgments = Judgments.from_pandas(renamed, model_a="left", model_b="right", winner="choice")
    assert jaxeval.fit_bradley_terry(judgments).ratings.equals(jaxeval.fit_bradley_terry(votes).ratings)


def test_columns_with_usual_names_keep_them():
    """So that they can be named to group, and to resample."""
    votes = jaxeval.simulate_votes(200, 3, seed=0).rename(columns={"voter": "annotator"}).assign(date=range(200))
    judgments = Judgments.from_pandas(votes)
    assert {"rater": "annotator", "time": "date"}.items() <= judgments.roles.items()
    assert judgments.column("rater").equals(judgments.column("annotator"))
    assert {"annotator", "date", "language"} <= {*judgments.battles().columns}
    boards = jaxeval.bootstrap(judgments, 10, by="language", cluster="annotator", progress=False)
    assert "English" in boards


def test_a_column_of_a_roles_name_stands_beside_it():
    table = GAMES.assign(winner=["x", "x", "x", "x"])
    judgments = Judgments.from_pandas(table, model_a="White", model_b="Black", winner="Result")
    assert judgments.column("winner").tolist() == GAMES["Result"].tolist()
    assert judgments.column("winner_").tolist() == [*"xxxx"]


def write_games(folder):
    GAMES.to_json(folder / "games.jsonl", orient="records", lines=True)
    return folder / "games.jsonl"


def test_files(tmp_path):
    """Of one format or of none; what was read is what the command reads."""
    path = tmp_path / "chess.csv"
    GAMES.to_csv(path, index=False)
    judgments = Judgments.read(path)
    assert judgments.battles().n_battles == 4
    assert "two sides in 'White' and 'Black', results in 'Result'" in run("leaderboard", path, "--resamples", 20).stderr
    alpaca = tmp_path / "annotations.json"
    rows = pd.DataFrame({"generator_1": ["ref", "ref"], "generator_2": [*"xy"], "preference": [1.25, 2.0]})
    rows.to_json(alpaca, orient="records")
    judgments = Judgments.read(alpaca)
    assert judgments.read_as[0].startswith("read as AlpacaEval's annotations")
    assert judgments.battles().target.tolist() == [0.75, 0.0]
    more = tmp_path / "more.csv"
    GAMES.assign(year=1972).to_csv(more, index=False)
    assert Judgments.read([path, write_games(tmp_path)]).battles().n_battles == 8
    with pytest.raises(DataError, match=r"more.csv and chess.csv do not have the same columns: only one .* year"):
        Judgments.read([path, more])
    path.write_text("who,x vs y,x vs z,y vs z\nann,x,z,y\nben,y,x,z\n")
    form = Judgments.read(path)
    assert (form.shape, len(form), form.roles["item"]) == ("pair", 6, "item")
    assert form.read_as[0].startswith("read as a form with a column for each question between two models")
    log = tmp_path / "log.json"
    samples = [{"id": k, "epoch": 1, "scores": {"match": {"value": "CI"[k]}}} for k in range(2)]
    log.write_text(json.dumps({"eval": {"model": "m", "task": "t"}, "samples": samples, "status": "success"}))
    answers = Judgments.read(log)
    assert answers.read_as == ("read as a log of Inspect: epochs are trials, tasks benchmarks",)
    assert "_document" not in answers.table
    assert answers.scores().means["score"].to_dict() == jaxeval.read_scores(log).means["score"].to_dict() == {"m": 0.5}
    log.write_text(json.dumps({"results": {"t": {"acc,none": 0.5}}, "configs": {}, "versions": {}, "n-shot": {}}))
    with pytest.raises(DataError, match=r"^log.json: it holds results of lm-evaluation-harness, and no judgments"):
        Judgments.read(log)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"the columns do not say what is judged; needed are, for pairs: model_a or"):
        Judgments.read(path)


@pytest.mark.parametrize(("table", "roles", "error", "says"), [
    (GAMES, {"model_c": "White"}, ValueError, "no role 'model_c'; .* did you mean 'model_b'"),
    (GAMES, {"shape": "triple"}, ValueError, "shape must be one of 'pair', 'ranking', 'answer', got 'triple'"),
    (GAMES, {"model_a": "Whte"}, DataError, "no column 'Whte' in the table.*did you mean 'White'"),
    (GAMES, {"model_a": "White", "model_b": "White"}, ValueError, "'White' is named for two roles"),
    (GAMES, {"shape": "answer"}, DataError, "needed are, for answers: model or item, and score or judgment"),
    (GAMES[["White"]], {}, DataError, "the table's columns are 'White'"),
    ("votes.csv", {}, TypeError, "expected a pandas DataFrame"),
])  # fmt: skip
def test_what_is_wrong_is_said(table, roles, error, says):
    with pytest.raises(error, match=says):
        Judgments.from_pandas(table, **roles)


def test_a_name_belongs_to_few_roles():
    """A column gets one role: the first whose name it has. No two roles have the same first name."""
    first = [role.names[0] for role in ROLES.values() if role.names]
    assert sorted({name for name in first if first.count(name) > 1}) == ["item"]  # of answers, and of rankings
