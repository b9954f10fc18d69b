"""What competes, in a word: as columns are called or somebody says, kept by all that is done with battles."""

import json
import re

import duckdb
import pandas as pd
import pyarrow.parquet as pq
import pytest

import jaxeval
from jaxeval import Battles, DataError, Rankings
from jaxeval.wording import COMPETITOR, MODEL, Noun, competitor_word

PLAYER = Noun("player", "players")
VOTES = jaxeval.simulate_votes(200, 4, seed=0)
GAMES = VOTES.rename(columns={"model_a": "player_1", "model_b": "player_2"})
SIDES = {"model_a": "player_1", "model_b": "player_2"}


@pytest.fixture
def games():
    return Battles.from_pandas(GAMES, **SIDES)


@pytest.mark.parametrize(
    ("a", "b", "word"),
    [
        ("model_a", "model_b", "model"),
        ("model_1", "model_2", "model"),
        ("player_a", "player_b", "player"),
        ("player1", "player2", "player"),
        ("Player A", "player b", "player"),
        ("playerOne", "playerTwo", "player"),
        ("player_name_1", "player_name_2", "player"),
        ("team_1_id", "team_2_id", "team"),
        ("left_image", "right_image", "image"),
        ("image_left", "image_right", "image"),
        ("home_team", "away_team", "team"),
        ("white_player", "black_player", "player"),
        ("winning_team", "losing_team", "team"),
        ("class_a", "class_b", "class"),
        ("chess_engine_a", "chess_engine_b", "chess engine"),
        ("White", "Black", "player"),
        ("white", "black", "player"),
        ("white_name", "black_name", "player"),
        ("HOME", "AWAY", "team"),
        ("home", "away", "team"),
        ("home_id", "away_id", "team"),
        ("home_club", "away_club", "club"),
        # Unclear.
        ("a", "b", "model"),
        ("winner", "loser", "model"),
        ("black", "white", "model"),
        ("red", "blue", "model"),
        ("white", "away", "model"),
        ("left", "right", "model"),
        ("name_a", "name_b", "model"),
        ("side_a", "side_b", "model"),
        ("LLM_A", "LLM_B", "model"),
        ("players_1", "players_2", "model"),
        ("prompt_a", "image_b", "model"),
        ("player_1", "opponent", "model"),
        ("player_b", "player_a", "model"),
        ("x1y_a", "x1y_b", "model"),
        ("w" * 41 + "_a", "w" * 41 + "_b", "model"),
        ("спортсмен_a", "спортсмен_b", "model"),
        ("", "", "model"),
    ],
)
def test_the_word_of_two_columns(a, b, word):
    assert (competitor_word(None, a, b) or MODEL).one == word


def test_what_says_nothing():
    assert competitor_word(None, "model_a", "model_b") is None
    assert competitor_word(None, "Model A", "modelB") is None
    assert competitor_word(None, "winner", "loser") is None
    assert competitor_word(None) is None
    assert competitor_word("model", "model_a", "model_b") == competitor_word(None, "model_1", "model_2") == MODEL


def test_a_given_word_goes_before_the_columns(games):
    assert games.competitor == PLAYER
    given = Battles.from_pandas(GAMES, **SIDES, competitor="city,cities")
    assert given.competitor == ("city", "cities")
    assert Battles.from_pandas(VOTES).competitor == MODEL
    assert Battles.from_pandas(VOTES, competitor=("entry", "entries")).competitor.many == "entries"
    with pytest.raises(ValueError, match="'' is no word"):
        Battles.from_pandas(VOTES, competitor="")
    with pytest.raises(TypeError, match=r"the word for what is rated must be text such as 'player'.*, got 3"):
        Battles.from_pandas(VOTES, competitor=3)
    with pytest.raises(ValueError, match=r"may have 40 characters, and 'p+…p+' has 50"):
        Battles.from_pandas(VOTES, competitor="p" * 50)


def test_winners_and_losers_have_columns_too():
    rows = pd.DataFrame({"winning_team": ["a", "b", "c"], "losing_team": ["b", "c", "a"]})
    found = Battles.from_pandas(rows, winner_model="winning_team", loser_model="losing_team")
    assert found.competitor.many == "teams"


def test_readers_take_it_from_files_and_from_other_tables(tmp_path):
    path = tmp_path / "games.csv"
    GAMES.to_csv(path, index=False)
    assert jaxeval.read_battles(path, **SIDES).competitor == PLAYER
    assert jaxeval.read_battles([path, path], **SIDES, competitor="knight").competitor.many == "knights"
    relation = duckdb.from_df(GAMES.astype({"winner": str}))
    assert jaxeval.count_battles(relation, **SIDES).competitor == PLAYER
    assert jaxeval.count_battles(relation, **SIDES, competitor="knight").competitor.one == "knight"


def test_messages_on_the_battles_have_it(games):
    assert str(games.report).startswith("200 rows: 200 battles between 4 players, ")
    itself = pd.concat([GAMES, GAMES[:1].assign(player_1="model-1", player_2="model-1")])
    assert "1 battle of a player against itself left out" in str(Battles.from_pandas(itself, **SIDES).report)
    left = games.filter(exclude=["model-4"]).report
    assert "left out by a condition or the choice of players" in str(left)
    with pytest.raises(DataError, match="no player 'nobody' among the 4"):
        games.filter(models=["nobody"])
    with pytest.raises(DataError, match="none of the names to replace is a player's: 'nobody'"):
        games.rename({"nobody": "x"})
    assert "players renamed: model-1 is now x" in games.rename({"model-1": "x"}).report.read_as


def test_errors_of_reading_have_it():
    alone = GAMES[:2].assign(player_1="x", player_2="x")
    with pytest.raises(DataError, match="no battle is left of 2 rows: 2 of a player against itself"):
        Battles.from_pandas(alone, **SIDES)
    gaps = GAMES[:2].assign(winner=None)
    with pytest.raises(DataError, match="every row lacks a player or a result"):
        Battles.from_pandas(gaps, **SIDES, missing="drop")
    with pytest.raises(DataError, match="1 row lacks an image or a result"):
        Battles.from_pandas(GAMES.assign(player_1=[None] + ["y"] * 199), **SIDES, competitor="image")


def test_it_is_kept(games, tmp_path):
    assert games.filter(exclude=["model-4"]).rename({"model-1": "x"}).competitor == PLAYER
    assert Battles.concat([games, games.filter(models=["model-1", "model-2"])]).competitor == PLAYER
    games.save(tmp_path / "games.parquet")
    assert Battles.load(tmp_path / "games.parquet").competitor == PLAYER
    slices = jaxeval.bootstrap(games, 5, by="language")
    assert slices.competitor == PLAYER
    assert {board.competitor for board in slices.values()} == {PLAYER}


def test_different_words_are_competitors(games):
    teams = Battles.from_pandas(GAMES, **SIDES, competitor="team")
    assert Battles.concat([games, teams]).competitor == COMPETITOR
    models = Battles.from_pandas(VOTES, competitor="model")
    assert models.competitor == MODEL
    assert Battles.concat([games, models]).competitor == Battles.concat([models, games]).competitor == COMPETITOR
    assert Battles.concat([games, teams, games, Battles.from_pandas(VOTES)]).competitor == COMPETITOR


def test_data_without_a_word_take_that_of_the_others(games, tmp_path):
    unsaid = Battles.from_pandas(VOTES)
    assert Battles.concat([games, unsaid]).competitor == Battles.concat([unsaid, games]).competitor == PLAYER
    assert Battles.concat([unsaid, unsaid]).competitor == MODEL
    for name, battles in {"unsaid": unsaid, "models": Battles.from_pandas(VOTES, competitor="model")}.items():
        battles.save(tmp_path / f"{name}.parquet")
    before, models = (Battles.load(tmp_path / f"{name}.parquet") for name in ("unsaid", "models"))
    assert before.competitor == models.competitor == MODEL
    assert Battles.concat([before, games]).competitor == PLAYER
    assert Battles.concat([models, games]).competitor == COMPETITOR


def test_files_keep_what_somebody_says_and_nothing_of_models(games, tmp_path):
    def content_of(battles):
        battles.save(tmp_path / "saved.parquet")
        return json.loads(pq.read_schema(tmp_path / "saved.parquet").metadata[b"jaxeval"])

    assert content_of(Battles.from_pandas(VOTES))["competitor"] is None
    assert Battles.load(tmp_path / "saved.parquet").competitor == MODEL
    assert content_of(games)["competitor"] == ["player", "players"]
    assert "competitor" not in content_of(games)["report"]


def test_results_show_it_over_their_names(games):
    fit = jaxeval.fit_bradley_terry(games)
    for result in (fit, jaxeval.bootstrap(games, 5)):
        assert re.search(r"^player +rank", repr(result), re.MULTILINE)
        assert ">player</th>" in result._repr_html_()
        assert fit.ratings.index.name == "model"  # names in data are an interface
    assert "model " in repr(jaxeval.fit_bradley_terry(Battles.from_pandas(VOTES)))


def test_it_changes_no_number(games):
    models = Battles.from_pandas(VOTES)
    boards = [jaxeval.leaderboard(battles, n_resamples=20) for battles in (games, models)]
    pd.testing.assert_frame_equal(*(pd.DataFrame(board) for board in boards), check_exact=True)
    settings = [dict(board.attrs["settings"]) for board in boards]
    assert settings[0].pop("competitor") == ["player", "players"]
    assert settings[0] == settings[1]


class TestRankings:
    PLACES = pd.DataFrame({"race": [1, 1, 2, 2], "runner": [*"abba"], "rank": [1, 2, 1, 2]})

    def test_the_column_of_items_tells_it(self):
        found = Rankings.from_pandas(self.PLACES, ranking="race", item="runner")
        assert found.competitor == ("runner", "runners")
        assert str(found.report).startswith("4 rows: 2 rankings of 2 runners, ")
        given = Rankings.from_pandas(self.PLACES, ranking="race", item="runner", competitor="athlete")
        assert given.competitor.one == "athlete"

    def test_without_a_clear_word(self, tmp_path):
        path = tmp_path / "lists.csv"
        path.write_text("ranking\na > b\nb > a\n")
        assert jaxeval.read_rankings(path).competitor == MODEL
        assert "2 rankings of 2 items" in str(jaxeval.read_rankings(path).report)
        assert jaxeval.read_rankings(path, competitor="dish").competitor.many == "dishes"
        usual = self.PLACES.rename(columns={"runner": "item", "race": "ranking"})
        assert Rankings.from_pandas(usual).competitor == MODEL

    def test_boards_of_them(self):
        found = Rankings.from_pandas(self.PLACES, ranking="race", item="runner")
        fit = jaxeval.fit_plackett_luce(found)
        assert "of 2 runners" in repr(fit)
