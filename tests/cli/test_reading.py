"""Options that say how files are read, and which battles count."""

import io
import json
import re
import shlex
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from command_line import run, said
from twins import newton

import jaxeval
from jaxeval.data.file_lists import _standard_input
from jaxeval.data.model_tables import join_metadata, read_metadata, read_names
from jaxeval.errors import DataError
from jaxeval.wording import Noun

VOTES = jaxeval.simulate_votes(400, 4, seed=0)[["model_a", "model_b", "winner", "language"]]
WORDS = {"model_a": "1", "model_b": "2", "tie": "0", "both_bad": "0"}


def board(*arguments, **options):
    """The table that the command writes on standard output."""
    arguments = ["leaderboard", *map(str, arguments), "--resamples", "20", "--out", "-", "--format", "csv"]
    result = run(*arguments, **options)
    assert result.exit_code == 0, result.output
    return pd.read_csv(io.StringIO(result.stdout)).set_index("model")


def message(*arguments):
    result = run("leaderboard", *arguments, "--resamples", "20")
    assert result.exit_code, result.output
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    path = tmp_path_factory.mktemp("votes") / "votes.csv"
    VOTES.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def expected(votes):
    return board(votes)


@pytest.mark.parametrize("options", [["--labels", "1=model_a,2=model_b,0=tie"]])
def test_labels(options, expected, tmp_path):
    path = tmp_path / "votes.csv"
    VOTES.assign(winner=VOTES["winner"].map(WORDS)).to_csv(path, index=False)
    assert "numbers are never guessed" in message(path)
    pd.testing.assert_frame_equal(board(path, *options), expected)
    assert "is not a_wins_1, a_wins_0, labels, names, grades, or a list such as A=model_a" in message(
        path, "--labels", "1:model_a"
    )


def test_codings_of_numbers(expected, tmp_path):
    path = tmp_path / "votes.csv"
    number = VOTES["winner"].map({"model_a": 0, "model_b": 1, "tie": 0.5, "both_bad": 0.5})
    VOTES.assign(winner=number).to_csv(path, index=False)
    pd.testing.assert_frame_equal(board(path, "--labels", "a_wins_0"), expected)


def test_scores_and_winning_models(expected, tmp_path):
    path = tmp_path / "votes.csv"
    points = VOTES["winner"].map({"model_a": 3, "model_b": 0, "tie": 1, "both_bad": 1.5})
    VOTES.drop(columns="winner").assign(home=points, away=1).to_csv(path, index=False)
    pd.testing.assert_frame_equal(board(path, "--scores", "home:away", "--tie-within", "0.5"), expected)
    assert "is not two columns such as home_score:away_score" in message(path, "--scores", "home")

    decided = VOTES[VOTES["winner"].isin(["model_a", "model_b"])]
    a_wins = decided["winner"] == "model_a"
    won, lost = (
        decided["model_a"].where(a_wins, decided["model_b"]),
        decided["model_b"].where(a_wins, decided["model_a"]),
    )
    pd.DataFrame({"won": won, "lost": lost}).to_csv(path, index=False)
    found = board(path, "--winner-model", "won", "--loser-model", "lost")
    decided.to_csv(path, index=False)
    ratings = ["rating", "vote_count"]
    pd.testing.assert_frame_equal(found[ratings], board(path)[ratings])
    assert "go together" in message(path, "--winner-model", "model_a")


def test_rows_without_a_result(expected, tmp_path):
    path = tmp_path / "votes.csv"
    pd.concat([VOTES, VOTES[:5].assign(winner=None)]).to_csv(path, index=False)
    assert "missing" in message(path)
    pd.testing.assert_frame_equal(board(path, "--missing", "drop"), expected)


def test_standard_input(votes, expected):
    pd.testing.assert_frame_equal(board("-", input=votes.read_bytes()), expected)


@pytest.mark.parametrize("words", [("scores", "-"), ("meta", "-", "--gold", "gold"), ("-",)])
def test_standard_input_of_any_command(words):
    """Also where one file is read; the lines to type name it as it was."""
    _standard_input.cache_clear()
    assert "jaxeval leaderboard -" in run(*words, input=VOTES.to_csv(index=False).encode()).output


def test_standard_input_that_has_nothing(monkeypatch):
    _standard_input.cache_clear()
    assert "standard input: the file is empty" in message("-")
    _standard_input.cache_clear()
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match="standard input is closed"):
        jaxeval.read_battles("-")


def test_conditions_and_models(votes):
    kept = VOTES[(VOTES["language"] == "English") & ~VOTES[["model_a", "model_b"]].isin(["model-4"]).any(axis=1)]
    found = board(votes, "--where", "language = 'English'", "--exclude", "model-4")
    assert found["vote_count"].sum() == 2 * len(kept)
    three = board(votes, "--where", "language = 'English'", *[x for k in (1, 2, 3) for x in ("--models", f"model-{k}")])
    pd.testing.assert_frame_equal(found, three)
    assert "did you mean 'language'" in message(votes, "--where", "langage = 'x'")
    assert "no model 'model-9'" in message(votes, "--exclude", "model-9")
    assert "none meets the condition" in message(votes, "--where", "language = 'Klingon'")


@pytest.mark.parametrize("ending", ["json", "csv"])
def test_other_names(ending, votes, expected, tmp_path):
    path = tmp_path / f"names.{ending}"
    if ending == "json":
        path.write_text(json.dumps({"model-1": "Zoë | <b>"}))
    else:
        pd.DataFrame({"model": ["model-1"], "name": ["Zoë | <b>"]}).to_csv(path, index=False)
    found = board(votes, "--rename", path)
    assert found.loc["Zoë | <b>", "vote_count"] == expected.loc["model-1", "vote_count"]
    path.write_text(json.dumps({"model-1": "model-2"}) if ending == "json" else "model,name\nmodel-1,model-2\n")
    assert "met each other" in message(votes, "--rename", path)


def test_metadata_reach_the_outputs(votes, tmp_path):
    path = tmp_path / "models.csv"
    pd.DataFrame({"Model": ["model-2", "model-1", "other"], "licence": ["open", "closed", "?"]}).to_csv(
        path, index=False
    )
    found = board(votes, "--metadata", path)
    assert found["licence"].dropna().to_dict() == {"model-1": "closed", "model-2": "open"}


class TestModelTables:
    BOARD = pd.DataFrame({"model": ["a", "b"], "rating": [1.0, 2.0]})

    @pytest.mark.parametrize(("metadata", "error"), [
        ({"model": ["a", "a"], "x": [1, 2]}, "names 1 model more than once: a"),
        ({"model": ["q"], "x": [1]}, "have none of the 2 models of the table; they have q"),
        ({"model": ["a"], "rating": [1]}, "columns that the table has, too: rating"),
        ({"name": ["a"]}, "no column 'model'"),
        ({"model": [None], "x": [1]}, "missing"),
    ])  # fmt: skip
    def test_bad_metadata(self, metadata, error):
        with pytest.raises(DataError, match=error):
            join_metadata(self.BOARD, pd.DataFrame(metadata))

    def test_boards_of_players(self):
        board = self.BOARD.copy()
        board.attrs["settings"] = {"competitor": ["player", "players"]}
        known = pd.DataFrame({"Player": ["a", "b"], "elo": [1, 2]})
        tables = known, known.rename(columns={"Player": "model"}), known.set_index("Player").rename_axis("player")
        for table in tables:
            assert join_metadata(board, table)["elo"].tolist() == [1, 2]
        both = known.assign(model=["b", "a"])
        assert join_metadata(board, both)["Player"].tolist() == ["b", "a"]  # as on other boards
        with pytest.raises(DataError, match=r"no column 'model' or 'player' in the table; its columns are 'plays'"):
            join_metadata(board, pd.DataFrame({"plays": ["a"]}))
        with pytest.raises(DataError, match="column 'player' names 1 player more than once: a"):
            join_metadata(board, pd.DataFrame({"player": ["a", "a"]}))
        with pytest.raises(DataError, match="none of the 2 players of the table"):
            join_metadata(board, pd.DataFrame({"player": ["q"]}))
        with pytest.raises(DataError, match="no column 'model' in the table"):
            join_metadata(self.BOARD, known)

    def test_names_in_place_of_players(self, tmp_path):
        path, player = tmp_path / "names.csv", Noun.of("player")
        path.write_text("PLAYER,name\n007,Bond\n")
        assert read_names(path, player) == {"007": "Bond"}
        assert read_metadata(path, "player").index.tolist() == ["007"]
        with pytest.raises(DataError, match="no column 'model' in the table"):
            read_names(path)
        with pytest.raises(DataError, match="no column 'model' or 'team' in the table"):
            read_names(path, Noun.of("team"))
        with pytest.raises(DataError, match="no column 'model' in the table"):
            read_names(path, Noun.of("name"))

    @pytest.mark.parametrize("word", ["model", "player", "name"])
    def test_files(self, word, tmp_path):
        (tmp_path / "models.jsonl").write_text('{"model": "a", "price": 2.5}\n')
        joined = join_metadata(self.BOARD, read_metadata(tmp_path / "models.jsonl", word))
        assert joined["price"].tolist()[0] == 2.5
        assert joined["price"].isna().tolist() == [False, True]

    @pytest.mark.parametrize(
        ("text", "error"),
        [("{", "cannot be read as JSON"), ('{"a": 3}', "must be text"), ('[{"model": "a"}]', "'name'")],
    )
    def test_bad_names(self, text, error, tmp_path):
        (tmp_path / "names.json").write_text(text)
        with pytest.raises(DataError, match=error):
            read_names(tmp_path / "names.json")


@pytest.mark.slow
def test_football(data):
    """With goals, and whose home it is: notebooks/style_control.ipynb prints the same."""
    path = data / "football_international_results.parquet"
    found = board(path, "--model-a", "home_team", "--model-b", "away_team", "--scores", "home_score:away_score",
                  "--position", "--neutral", "neutral", "--min-votes", "100")  # fmt: skip
    frame = pd.read_parquet(path)
    winner = (frame["home_score"] - frame["away_score"]).map(
        lambda d: "model_a" if d > 0 else "model_b" if d < 0 else "tie"
    )
    battles = jaxeval.Battles.from_pandas(frame.assign(winner=winner), model_a="home_team", model_b="away_team")
    fit = jaxeval.fit_bradley_terry(battles, features=[jaxeval.position_advantage("neutral")])
    pd.testing.assert_series_equal(found["rating"], fit.ratings.reindex(found.index), check_names=False, rtol=1e-12)


def test_a_pattern_in_quotes_is_read(votes, tmp_path):
    """As if the shell had put the names in its place; where nothing matches, that is said."""
    for k, part in enumerate(np.array_split(np.arange(len(VOTES)), 2)):
        VOTES.iloc[part].to_csv(tmp_path / f"part{k}.csv", index=False)
    names = sorted(tmp_path.glob("part*.csv"))
    pattern = tmp_path / "part*.csv"
    few = ["--resamples", 20]
    assert said("leaderboard", pattern, *few) == said("leaderboard", *names, *few)
    assert said("next", pattern, "--k", 5) == said("next", *names, "--k", 5)
    assert f"jaxeval leaderboard {pattern}" in said(pattern).replace("'", "")
    assert "no file matches" in run("leaderboard", tmp_path / "none*.csv").output
    assert "files, and one is read: name it" in " ".join(run("agreement", pattern).output.split())


def test_numbers_that_are_preferences_are_named_in_the_advice(tmp_path):
    path = tmp_path / "preferences.csv"
    for values, labels in (
        (["1", "1.5", "2"], "1=model_a,1.5=tie,2=model_b"),
        ([0, 1, 2], "1=model_a,0=tie,2=model_b"),
    ):
        pd.DataFrame({"model_a": "x", "model_b": "y", "winner": values}).to_csv(path, index=False)
        shown = " ".join(run("leaderboard", path).output.split())
        assert labels in re.findall(r"--labels ([\d.]+=\S+)", shown)
        said("leaderboard", path, "--labels", labels)
    pd.DataFrame({"model": [*"aab"], "verdict": [1, 2, 1.5]}).to_csv(path, index=False)
    assert "--labels 1=loss,1.5=tie,2=win" in " ".join(run("anchored", path).output.split())
    said("anchored", path, "--labels", "1=loss,1.5=tie,2=win")


ROWS = {"model": [*"xxyy"], "question": [1, 2, 1, 2], "acc": [1, 0, 1, 1], "f1": [0.5, 0.25, 1, 0]}
LONG = pd.DataFrame(ROWS).melt(["model", "question"], var_name="metric", value_name="score")
ASKED = {
    "several metrics": ("scores", pd.DataFrame(ROWS), "--item question --score acc"),
    "metrics in rows": ("scores", LONG.rename(columns={"question": "item"}), "--where \"metric = 'acc'\""),
    "a column for each model": ("scores", pd.DataFrame({"question": [1, 2], "x": [1, 0], "y": [1, 1]}),
                                "--wide --item question"),
    "an index of pandas": ("scores", pd.DataFrame({"": ["p", "q"], "x": [1, 0], "y": [1, 1]}), "--wide --item ''"),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_an_error_begins_with_the_line_to_type(name, tmp_path):
    command, table, options = ASKED[name]
    table.to_csv(tmp_path / "table.csv", index=False)
    first = run(command, tmp_path / "table.csv").stderr.splitlines()[0]
    assert first == f"Error: say it so: jaxeval {command} {tmp_path / 'table.csv'} {options}"
    said(*shlex.split(first.removeprefix("Error: say it so: jaxeval ")))


def test_an_error_of_two_boards_names_the_line_of_two_boards(tmp_path):
    """With what was typed; the column of groups is no column of results."""
    rows = [("x", "y", result, group) for group in ("en", "fr") for result in ("A", "B", "tie") * 4]
    table = pd.DataFrame(rows, columns=["model_a", "model_b", "verdict", "language"])
    path = tmp_path / "votes.csv"
    table.to_csv(path, index=False)
    asked = ["compare-boards", str(path), "--by", "language", "--slices", "en,fr"]
    first = run(*asked).stderr.splitlines()[0]
    assert first == f"Error: say it so: jaxeval {shlex.join(asked)} --winner verdict"
    said(*shlex.split(first.removeprefix("Error: say it so: jaxeval ")))
    table.drop(columns="verdict").to_csv(path, index=False)
    for words in (asked, ["leaderboard", str(path), "--by", "language"]):
        assert run(*words).stderr.startswith("Error: votes.csv: no result column: expected 'winner'")
    pd.DataFrame({"thing": [*"xy"], "number": [1.5, 0.5], "language": ["en", "fr"]}).to_csv(path, index=False)
    blanks = "--model-a COLUMN --model-b COLUMN --winner COLUMN"
    assert run(*asked).stderr.startswith(f"Error: say it so: jaxeval {shlex.join(asked)} {blanks}\n")


def test_blanks_in_a_form_and_names_within_objects(tmp_path):
    form = {"Email": [*"abcd"], "Model A": [*"xyxz"], "Model B": [*"yzzx"], "Which is better?": ["A", None, "Tie", "B"]}
    pd.DataFrame(form).to_csv(tmp_path / "form.csv", index=False)
    first = run("leaderboard", tmp_path / "form.csv").stderr.splitlines()[0]
    assert first.endswith("form.csv --winner 'Which is better?' --missing drop")
    rows = [{"models": {"a": a, "b": b}, "winner": "model_a"} for a, b in zip("xyxz", "yzzx", strict=True)]
    (tmp_path / "nested.json").write_text(json.dumps(rows))
    assert "--model-a models.a --model-b models.b" in said("leaderboard", tmp_path / "nested.json", "--resamples", "9")
    assert "the file rather fits: jaxeval leaderboard" in run("scores", tmp_path / "nested.json").stderr


def test_folders_and_archives(tmp_path):
    (tmp_path / "README.md").write_text("Scores.")
    (tmp_path / "README.txt").write_text("Scores.")
    wide = {"question": [1, 2, 3], "x": ["0,5", "1", "NA"], "y": ["0,25", "0,75", "1"]}
    pd.DataFrame(wide).to_csv(tmp_path / "scores.csv", index=False, sep=";")
    options = ("--wide", "--item", "question", "--missing", "available")
    assert said("scores", tmp_path, *options) == said("scores", tmp_path / "scores.csv", *options)
    assert "0.750" in said("scores", tmp_path, *options)
    assert "no column" in run("meta", tmp_path, "--gold", "gold").output
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        archive.writestr("header.json", "{}")
    for command in ("rankings", "anchored"):
        assert "it is an archive of header.json, and no table" in run(command, tmp_path / "log.eval").output
    assert "is a folder of 2 files, and one is read: name it" in run("meta", tmp_path, "--gold", "gold").output


QUESTION = "Which answer is better, {} or {}?"
PAIRS = [("x", "y"), ("x", "z"), ("y", "z")]
#: Names of the columns of a form, of which each is of a pair; and its answers.
FORMS = {
    "names in the questions": (QUESTION, lambda a, b: [a, b, a, "Both are equal"]),
    "names in a grid": ("Your choice [{} vs {}]", lambda a, b: ["A", "B", "A", "Tie"]),
    "names in the answers": ("Question {}{}", lambda a, b: [a, b, a, "No preference"]),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_has_a_column_for_each_question(name, tmp_path):
    header, answers = FORMS[name]
    columns = {header.format(*pair): answers(*pair) for pair in PAIRS}
    form = pd.DataFrame({"Timestamp": "today", "Email Address": [*"klmn"], **columns})
    form.to_csv(tmp_path / "form.csv", index=False)
    (line,) = [line for line in said(tmp_path / "form.csv").splitlines() if line.startswith("  jaxeval leaderboard")]
    out = tmp_path / "board.csv"
    shown = said(*shlex.split(line)[1:], "--resamples", "9", "--out", out)
    assert "12 rows: 12 battles between 3 models, 3 of them ties" in shown
    assert "read as a form with a column for each question between two models" in shown
    board = pd.read_csv(out)
    assert [*board["model"]] == [*"xyz"]
    wins = np.array([[0, 2.5, 2.5], [1.5, 0, 2.5], [1.5, 1.5, 0]])
    theta = newton(wins) * 400 / np.log(10)
    np.testing.assert_allclose(board["rating"], 1000 + theta - theta.mean(), atol=1e-4)


def test_questions_that_do_not_say_whose_the_answers_are(tmp_path):
    form = pd.DataFrame({f"Q{k}. Which is better?": ["Answer A", "Answer B"] for k in range(3)})
    form.to_csv(tmp_path / "form.csv", index=False)
    for words in ((), ("leaderboard",)):
        assert "call each of these columns 'MODEL vs MODEL'" in run(*words, tmp_path / "form.csv").output


def test_a_line_with_blanks_for_what_labels_mean(tmp_path):
    path = tmp_path / "table.csv"
    sides = {"foo": [*"xyzxyz"], "bar": [*"yzxzxy"]}
    pd.DataFrame({**sides, "baz": ["k", "m", "A"] * 2}).to_csv(path, index=False)
    line = "--model-a foo --model-b bar --winner baz --labels k=SIDE,m=SIDE,A=model_a"
    assert run("leaderboard", path).stderr.splitlines()[0].endswith(f"say it so: jaxeval leaderboard {path} {line}")
    words = shlex.split(line.replace("k=SIDE,m=SIDE", "k=model_b,m=tie"))
    by_line, by_labels = (said("leaderboard", path, *x, "--resamples", "9") for x in (words, words[-2:]))
    assert by_labels.endswith(by_line)
    pd.DataFrame({**sides, "one": [1, 2, 3] * 2, "two": [3, 2, 1] * 2}).to_csv(path, index=False)
    assert f"leaderboard {path} --model-a foo --model-b bar --scores one:two" in said(path)
    pd.DataFrame({**sides, "won": [1, 2, 3] * 2, "lost": [3, 2, 1] * 2, "tied": 1}).to_csv(path, index=False)
    assert "counts of results in 'won'" in said("leaderboard", path, "--resamples", "9")


@pytest.mark.parametrize(
    ("grades", "labels", "tie"),
    [([-1, 2, 0, 1, -2, 1], "-2=SIDE_1,-1=SIDE_1,0=tie,1=SIDE_2,2=SIDE_2", 0),
     ([1, 4, 1, 3, 2, 4], "1=SIDE_1,2=SIDE_1,3=SIDE_2,4=SIDE_2", None)],
)  # fmt: skip
def test_grades_from_one_side_to_the_other_are_not_guessed(tmp_path, grades, labels, tie):
    path = tmp_path / "votes.csv"
    rows = pd.DataFrame({"model_a": [*"xyzxyz"], "model_b": [*"yzxzxy"], "preference": grades})
    rows.to_csv(path, index=False)
    line = f"jaxeval leaderboard {path} --winner preference --labels {labels}"
    for words in ((), ("leaderboard",)):
        found = run(*words, path)
        assert line in found.output + found.stderr
        assert ("is taken as a tie" in found.output + found.stderr) == (tie is not None)
    words = shlex.split(line.replace("SIDE_1", "model_b").replace("SIDE_2", "model_a"))[1:]
    target = np.select([rows.preference < 0, rows.preference > 0], [0, 1], 0.5) if tie == 0 else rows.preference > 2
    rows.assign(target=target.astype(float)).drop(columns="preference").to_csv(tmp_path / "plain.csv", index=False)
    tables = [said(*x, "--resamples", "9").split("\n\n")[1] for x in (words, ("leaderboard", tmp_path / "plain.csv"))]
    assert tables[0] == tables[1]


def test_counts_that_are_too_large_are_not_answered_by_a_line_without_them(tmp_path):
    rows = pd.DataFrame({"model_a": [*"xy"], "model_b": [*"yx"], "winner": "model_a", "n": [2**53, 1]})
    rows.to_csv(tmp_path / "votes.csv", index=False)
    shown = run("leaderboard", tmp_path / "votes.csv", "--count", "n").stderr
    assert shown.startswith("Error: votes.csv: column 'n': counts must be below 2**53")


def test_scores_take_a_condition(tmp_path):
    path = tmp_path / "scores.csv"
    LONG.to_csv(path, index=False)
    for words, end in ((("scores",), ()), (("compare-scores", "x", "y"), ("--seed", "1"))):
        shown = said(*words, path, "--item", "question", "--where", "metric = 'acc'", *end)
        assert "metric = 'acc': 4 of 8 rows" in shown
    assert (
        "no row of 8 meets the condition" in run("scores", path, "--where", "metric = 'b'", "--item", "question").stderr
    )
