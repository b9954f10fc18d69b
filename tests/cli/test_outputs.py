"""Files, standard output and silence: the same options of every command."""

import io
import json
import re

import numpy as np
import pandas as pd
import pytest
from command_line import run
from hostile import NAMES

import jaxeval
from jaxeval.cli.main import main
from jaxeval.show.exports import ARENA_COLUMNS
from jaxeval.show.files import json_digest

#: Options that say what becomes of a result.
SAME = {"--out", "--format", "--raw-names", "--quiet", "--full"}


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    path = tmp_path_factory.mktemp("votes") / "votes.parquet"
    jaxeval.simulate_votes(3000, 8).to_parquet(path)
    return path


@pytest.fixture(scope="module")
def board(votes):
    """Arguments of a command, and what it finds."""
    expected = jaxeval.leaderboard(jaxeval.read_battles(votes), n_resamples=50)
    return ("leaderboard", votes, "--resamples", 50), expected


def test_every_command_has_the_same_options():
    commands = {**main.commands, **main.commands["soft-elo"].commands}
    texts = {}
    for name in ("leaderboard", "demo", "judge", "anchored", "meta", "report", "predict", "next"):
        options = {option: p for p in commands[name].params for option in p.opts}
        assert set(options) >= SAME, name
        texts[name] = [options[option].help for option in sorted(SAME)]
    assert len({tuple(own) for own in texts.values()}) == 1
    for name in ("calibrate", "simulate"):
        assert "--quiet" in [option for p in commands[name].params for option in p.opts]


class TestFiles:
    @pytest.mark.parametrize("ending", ["csv", "parquet", "json", "md", "tex", "html"])
    def test_of_every_ending(self, board, tmp_path, ending):
        """Texts are the same on standard output."""
        out = tmp_path / f"board.{ending}"
        result = run(*board[0], "--out", out)
        assert result.exit_code == 0, result.output
        assert result.stderr.strip() == f"wrote {out}"
        assert b"model" in out.read_bytes()
        if ending in ("json", "md", "tex", "html"):
            assert run(*board[0], "--out", "-", "--format", ending).stdout == out.read_text()

    def test_documents_say_what_they_rest_on(self, board, tmp_path):
        run(*board[0], "--out", tmp_path / "board.md")
        text = (tmp_path / "board.md").read_text()
        assert text.startswith("**Leaderboard**")
        assert "50 multinomial resamples, seed 0; 95% percentile intervals" in text
        assert "3,000 battles between 8 models" in text

    def test_a_folder_takes_all(self, board, tmp_path):
        result = run(*board[0], "--out", tmp_path / "study", "--format", "json")
        assert result.exit_code == 0, result.output
        assert {path.name for path in (tmp_path / "study").iterdir()} == {
            "leaderboard.json", "leaderboard.png", "answer.txt"
        }  # fmt: skip
        assert result.stderr.strip() == f"wrote 1 table, 1 figure and answer.txt to {tmp_path / 'study'}"
        dotted = run(*board[0], "--out", f"{tmp_path}/v1.2/")
        assert dotted.exit_code == 0, dotted.output
        assert (tmp_path / "v1.2" / "leaderboard.csv").exists()

    def test_raw_names(self, tmp_path):
        votes = pd.DataFrame({"model_a": ["=a", "b"] * 20, "model_b": ["b", "=a"] * 20, "winner": "model_a"})
        votes.to_parquet(tmp_path / "votes.parquet")
        arguments = ["leaderboard", tmp_path / "votes.parquet", "--resamples", "20"]
        for more, name in (([], "'=a"), (["--raw-names"], "=a")):
            out = tmp_path / "x.csv"
            result = run(*arguments, "--out", out, *more)
            assert result.exit_code == 0, result.output
            assert name in set(pd.read_csv(out)["model"])


class TestStandardOutput:
    def test_holds_the_table_alone(self, board):
        result = run(*board[0], "--out", "-")
        assert result.exit_code == 0, result.output
        read = pd.read_csv(io.StringIO(result.stdout))
        np.testing.assert_allclose(read["rating"], board[1]["rating"], atol=1e-9)
        assert result.stderr == ""

    def test_parquet(self, board):
        result = run(*board[0], "--out", "-", "--format", "parquet")
        assert len(pd.read_parquet(io.BytesIO(result.stdout_bytes))) == 8


def test_quiet_prints_warnings_alone(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(["model_a,model_b,winner", *["a,b,model_a", "a,b,model_b"] * 30, "c,a,model_a"]))
    result = run("leaderboard", path, "--resamples", 20, "--quiet", "--out", tmp_path / "x.csv")
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert {line.split(": ")[0] for line in result.stderr.splitlines()} == {"warning"}
    assert len(pd.read_csv(tmp_path / "x.csv")) == 3
    loud = run("leaderboard", path, "--resamples", 20)
    assert loud.stderr == ""
    silent = run("simulate", "--battles", 9, "--models", 3, "--quiet", "--out", tmp_path / "votes.parquet")
    assert (silent.exit_code, silent.output) == (0, "")


@pytest.mark.parametrize(("arguments", "message"), [
    (["--out", "v1.2"], "v1.2 must end in .csv, .parquet, .json, .md, .tex, .html, or in / where it is"),
    (["--out", "x.csv", "--format", "json"], "--format needs --out with a folder or -"),
    (["--format", "json"], "--format needs --out with a folder or -"),
    (["--out", "no-such-folder/x.csv"], "there is no folder no-such-folder"),
    (["--eval-results", "x"], "--eval-results and --eval-benchmark need each other"),
    (["--eval-results", "x", "--eval-benchmark", "o/b"], "--eval-benchmark takes ORG/DATASET:TASK"),
    (["--eval-results", "x", "--eval-benchmark", "o/b:t", "--by", "day"], "--eval-results and --by do not go together"),
    (["--publish-date", "yesterday"], "does not match"),
])  # fmt: skip
def test_bad_options_are_one_message(votes, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    result = run("leaderboard", votes, *arguments)
    assert result.exit_code == 2
    assert message in " ".join(re.sub("[│╭╮╰╯─]", " ", result.stderr).split())
    assert list(tmp_path.iterdir()) == []


class TestPublishing:
    def test_the_columns_of_the_arena(self, board, tmp_path):
        out = tmp_path / "arena.parquet"
        result = run(*board[0], "--schema", "arena", "--publish-date", "2026-09-13", "--out", out)
        assert result.exit_code == 0, result.output
        read = pd.read_parquet(out)
        assert list(read) == list(ARENA_COLUMNS)
        assert set(read["leaderboard_publish_date"]) == {"2026-09-13"}
        assert list(read["rating"]) == list(board[1]["rating"])

    def test_results_of_the_hub(self, board, tmp_path):
        folder = tmp_path / "hub"
        result = run(*board[0], "--eval-results", folder, "--eval-benchmark", "org/votes:elo")
        assert result.exit_code == 0, result.output
        assert result.stderr.strip() == f"wrote results of 8 models to {folder}"
        text = (folder / "model-1" / ".eval_results" / "elo.yaml").read_text()
        assert text.startswith('- dataset:\n    id: "org/votes"\n    task_id: "elo"\n  value: ')
        assert "95% intervals, 50 resamples" in text


class TestJson:
    def test_null_and_settings(self, tmp_path):
        rows = [("a", "b", "model_a"), ("b", "a", "model_a"), ("a", "c", "model_a")] * 3
        rows += [("b", "c", "model_b")]
        votes, out = tmp_path / "votes.csv", tmp_path / "board.json"
        pd.DataFrame(rows, columns=["model_a", "model_b", "winner"]).to_csv(votes, index=False)
        arguments = ["leaderboard", str(votes), "--resamples", "20", "--seed", "7", "--out", str(out)]
        assert run(*arguments, "--interval", "percentile").exit_code == 0
        content = json.loads(out.read_text(), parse_constant=pytest.fail)
        expected = jaxeval.leaderboard(jaxeval.read_battles(votes), n_resamples=20, seed=7, interval="percentile")
        board = {row["model"]: row for row in content["rows"]}
        assert np.isneginf(expected.set_index("model").loc["c", "lower"])
        assert board["c"]["lower"] is None
        assert board["c"]["rating"] == pytest.approx(expected.set_index("model").loc["c", "rating"], abs=1e-12)
        assert content["settings"]["seed"] == 7
        assert f"jaxeval {jaxeval.__version__}" in content["settings"]["versions"]
        assert content["settings"]["warnings"] == expected.attrs["warnings"]
        assert content["settings"]["warnings"]
        assert content["settings"]["report"] == expected.attrs["report"]
        assert content["digest"] == json_digest(content)

    def test_of_commands_whose_tables_have_no_settings(self, tmp_path):
        names = [*dict.fromkeys(name for name in NAMES if name)]
        scores = pd.DataFrame({"model": names, "gold": np.arange(len(names)) % 7, "x": np.arange(len(names)) % 5})
        scores.to_parquet(tmp_path / "scores.parquet")
        arguments = ("meta", tmp_path / "scores.parquet", "--gold", "gold", "--resamples", 20, "--out")
        result = run(*arguments, tmp_path / "x.json")
        assert result.exit_code == 0, result.output
        settings = json.loads((tmp_path / "x.json").read_text())["settings"]
        assert settings["n_resamples"] == 20
        assert f"jaxeval {jaxeval.__version__}" in settings["versions"]
        assert f"{len(names)} models" in settings["report"]
