import errno
import json
import os
import re
import subprocess
import sys
import tempfile
from functools import cache, partial
from unittest.mock import Mock

import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from command_line import run
from matplotlib.figure import Figure
from styled import styled as simulated

import jaxeval
from jaxeval.cli import main as cli
from jaxeval.cli import simulate
from jaxeval.cli.main import main
from jaxeval.data import file_formats
from jaxeval.plots.style import save_figure
from jaxeval.show.files import write_table, write_text


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    path = tmp_path_factory.mktemp("votes") / "votes.parquet"
    result = run("simulate", "--battles", "3000", "--models", "8", "--out", path)
    assert result.exit_code == 0, result.output
    return path


def test_simulated_file_is_the_simulation(votes):
    table = pd.read_parquet(votes)
    expected = jaxeval.simulate_votes(3000, 8)
    assert len(table) == 3000
    assert (table["winner"].astype(str) == expected["winner"].astype(str)).all()


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_leaderboard_prints_and_writes_the_same_table(votes, tmp_path, ending):
    out = tmp_path / f"board.{ending}"
    result = run("leaderboard", votes, "--resamples", 200, "--seed", 3, "--out", out)
    assert result.exit_code == 0, result.output
    expected = jaxeval.leaderboard(jaxeval.read_battles(votes), n_resamples=200, seed=3)
    readers = {"csv": pd.read_csv, "parquet": pd.read_parquet}
    read = pd.DataFrame(json.loads(out.read_text())["rows"]) if ending == "json" else readers[ending](out)
    assert list(read["model"]) == list(expected["model"])
    np.testing.assert_allclose(read["rating"], expected["rating"], atol=1e-6)
    np.testing.assert_allclose(read["lower"], expected["lower"], atol=1e-6)
    first = expected.iloc[0]
    assert str(first["model"]) in result.stdout
    assert f"{first['rating']:.1f}" in result.stdout
    assert f"+{first['upper'] - first['rating']:.1f}" in result.stdout
    assert "3,000 battles between 8 models" in result.stdout
    assert "both-bad battles counted as ties" in result.stdout


@pytest.mark.slow
def test_slices_clusters_gauge_and_top(votes):
    result = run(
        "leaderboard",
        votes,
        "--by",
        "language",
        "--cluster",
        "voter",
        "--resamples",
        50,
        "--top",
        2,
        "--gauge",
        "model-1=1234",
        "--level",
        0.9,
        "--full",
    )
    assert result.exit_code == 0, result.output
    assert "English" in result.stdout
    assert "1234.0" in result.stdout  # model-1 is among the best
    assert "... and 6 more models" in result.stdout
    assert "90% percentile intervals" in result.stdout
    assert "cluster resamples of voter" in result.stdout


def test_an_anchor_named_by_a_number(tmp_path):
    frame = pd.DataFrame({"model_a": [1, 2] * 50, "model_b": [2, 1] * 50, "winner": "model_a"})
    frame.to_parquet(tmp_path / "votes.parquet")
    result = run("leaderboard", tmp_path / "votes.parquet", "--gauge", "2=1234", "--resamples", 50)
    assert result.exit_code == 0, result.output
    assert "gauge: 2 = 1234" in result.stdout


def test_too_few_votes_and_simultaneous_ranks(votes, tmp_path):
    """Their models stand at the end without a rank, in the terminal, the file and the figure."""
    out, plot = tmp_path / "board.csv", tmp_path / "board.svg"
    board = jaxeval.bootstrap(jaxeval.read_battles(votes), 50)
    least = int(board.fit.n_battles.median()) + 1
    options = ["--min-votes", least, "--simultaneous-ranks", "--resamples", 50, "--out", out, "--plot", plot]
    result = run("leaderboard", votes, *options)
    assert result.exit_code == 0, result.output
    expected = jaxeval.leaderboard(board, min_battles=least, simultaneous_ranks=True)
    written = pd.read_csv(out, keep_default_na=False, na_values=[""]).fillna({"standing": ""})
    pd.testing.assert_frame_equal(expected, written, check_dtype=False)
    few = expected[expected["standing"] == "too few battles"]
    assert few.index.tolist() == [4, 5, 6, 7]
    for name in few["model"]:
        assert name not in plot.read_text()
        (line,) = (line for line in result.stdout.splitlines() if name in line and "too few battles" in line)
        assert line.split()[0] == name  # no rank and no spread before it
    first = expected.iloc[0]
    assert re.search(rf"^ *1 +{first.rank_best}-{first.rank_worst} +{first.model} ", result.stdout, re.MULTILINE)
    said = " ".join(result.stdout.split())
    assert "rank spread: by differences to all other models, 95% for all models at once" in said
    assert f"models under {least:,} votes take no rank" in said
    assert f"warning: 4 models have fewer than {least:,} battles" in said
    plain = run("leaderboard", votes, "--resamples", 50)
    assert "rank spread: by differences to all other models, 95% for each model by itself\n" in plain.stdout
    none = run("leaderboard", votes, "--min-votes", 99_999, "--resamples", 50)
    assert none.exit_code == 1
    assert none.stderr.startswith("Error: no model has 99,999 battles or more, so that no model takes a rank")


def test_warnings_are_printed(tmp_path):
    path = tmp_path / "votes.csv"
    rows = ["model_a,model_b,winner", *["a,b,model_a", "a,b,model_b"] * 30, "c,a,model_a", "d,e,tie"]
    path.write_text("\n".join(rows))
    result = run("leaderboard", path, "--resamples", 20)
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert "warning: the models fall into 2 groups that never met" in text
    assert "c: never lost a point to the main group" in text
    assert "unrated" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.parquet"], "There is no file 'missing.parquet'"),
        *(
            (["{votes}", option, given], f"did you mean '{meant}'")
            for option, given, meant in [
                ("--by", "langauge", "language"),
                ("--cluster", "voters", "voter"),
                ("--features", "votr", "voter"),
                ("--gauge", "modle-1=1000", "model-1"),
            ]
        ),
        (["{votes}", "--by", "model_a"], "those of models, results and weights do not count"),
        (["{votes}", "--gauge", "nobody"], "is not mean, votes, or MODEL=RATING"),
        (["{votes}", "--out", "board.txt"], "must end in"),
        (["{votes}", "--plot", "no-such-folder/board.png"], "there is no folder"),
        (["{votes}", "--level", "95"], "is not in the range"),
        (["{votes}", "--cluster", "voter", "--scheme", "poisson"], "leave --scheme out"),
    ],
)
def test_bad_input_is_one_message_and_a_nonzero_exit(votes, arguments, message):
    result = run("leaderboard", *[a.format(votes=votes) for a in arguments])
    assert result.exit_code != 0
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.output


def test_demo_prints_and_draws(tmp_path):
    plot = tmp_path / "demo.png"
    result = run("demo", "--battles", 2000, "--models", 8, "--resamples", 50, "--plot", plot)
    assert result.exit_code == 0, result.output
    assert "model-1" in result.stdout
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_json_has_null_for_what_is_not_known(tmp_path):
    path, out = tmp_path / "votes.csv", tmp_path / "board.json"
    path.write_text("\n".join(["model_a,model_b,winner", *["a,b,model_a", "a,b,model_b"] * 5, "c,a,model_a"]))
    assert run("leaderboard", path, "--resamples", 20, "--out", out).exit_code == 0
    rows = {row["model"]: row for row in json.loads(out.read_text())["rows"]}
    assert rows["c"]["rank"] is None
    assert rows["c"]["lower"] is None


def test_an_encoding_without_bars_costs_neither_table_nor_file(votes, tmp_path):
    out = tmp_path / "board.csv"
    arguments = ["leaderboard", str(votes), "--resamples", "200", "--out", str(out)]
    result = CliRunner(charset="ascii").invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert "Rating" in result.stdout
    assert "?" in result.stdout
    assert len(pd.read_csv(out)) == 8


class TestOutputs:
    def test_a_full_disk_leaves_the_old_files(self, votes, tmp_path, monkeypatch):
        """And nothing beside them; the message names the one that could not be written."""

        def full(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", full)
        table = pd.DataFrame({"x": [1.0, np.inf]})
        for name, write in (
            ("x.csv", partial(write_table, table)),
            ("x.parquet", partial(write_table, table)),
            ("x.json", partial(write_table, table)),
            ("x.md", partial(write_text, "new")),
            ("x.svg", partial(save_figure, Figure(), dpi=50)),
        ):
            (tmp_path / name).write_text("old")
            message = f"{name} cannot be written (No space left on device): the file is as it was"
            with pytest.raises(OSError, match=re.escape(message)):
                write(tmp_path / name)
            assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]
            (tmp_path / name).unlink()
        (tmp_path / "z.csv").write_text("old")
        result = run("simulate", "--battles", 9, "--out", tmp_path / "z.csv")
        assert result.exit_code == 1
        assert "z.csv cannot be written (No space left on device)" in " ".join(result.stderr.split())
        assert (tmp_path / "z.csv").read_text() == "old"

    def test_help_on_a_full_disk(self, monkeypatch, capsys):
        def full(*_, **__):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(sys, "argv", ["jaxeval", "--help"])
        monkeypatch.setattr(cli.gc, "freeze", list)
        monkeypatch.setattr(click.core, "echo", full)
        monkeypatch.setattr(click.decorators, "echo", full)
        with pytest.raises(SystemExit) as end:
            cli.run()
        assert end.value.code == 1
        assert capsys.readouterr().err.endswith("No space left on device\n")

    @pytest.mark.parametrize("ending", ["png", "svg", "pdf", "PNG"])
    def test_figures_in_the_format_of_their_ending(self, ending, tmp_path):
        save_figure(Figure(), tmp_path / f"x.{ending}", dpi=50)
        start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending.lower()]
        assert (tmp_path / f"x.{ending}").read_bytes().startswith(start)

    @pytest.mark.parametrize(("arguments", "found"), [
        (["{votes}", "--out", "{folder}/../{folder.name}/votes.csv"], "--out: {folder}"),
        (["{folder}", "--out", "{votes}"], "--out: {votes} is the file to read, which would be lost"),
        (["{votes}", "--state", "s.parquet", "--out", "./s.parquet"], "is the file of --out, which would be lost"),
        (["{votes}", "--features", "x", "--plot", "x.png", "--effect", "x.png"], "is the file of --plot"),
    ])  # fmt: skip
    def test_outputs_that_would_overwrite_something(self, votes, tmp_path, monkeypatch, arguments, found):
        monkeypatch.chdir(tmp_path)
        copy = tmp_path / "votes.csv"
        pd.read_parquet(votes).to_csv(copy)
        names = {"votes": copy, "folder": tmp_path}
        result = run("leaderboard", *[a.format(**names) for a in arguments])
        assert result.exit_code == 2
        assert found.format(**names) in " ".join(result.stderr.split())
        assert [path.name for path in tmp_path.iterdir()] == ["votes.csv"]

    def test_outputs_of_calibrations(self, tmp_path):
        (tmp_path / "x.json").write_text("{}")
        (tmp_path / "x.csv").write_text("a,b")
        for arguments in (
            ["predict", tmp_path / "x.json", tmp_path / "x.csv", "--out", tmp_path / "x.csv"],
            ["calibrate", tmp_path / "x.json", "--out", tmp_path / "x.json"],
        ):
            result = run("soft-elo", *arguments)
            assert result.exit_code == 2
            assert "is the file to read, which would be lost" in " ".join(result.stderr.split())


class TestInterruptions:
    @pytest.mark.parametrize("ended_by", [KeyboardInterrupt, click.Abort])
    def test_ctrl_c_ends_the_process_and_removes_copies_of_files(self, monkeypatch, capsys, tmp_path, ended_by):
        def end(code):
            raise RuntimeError(f"ended with {code}")

        def interrupted(*_, **__):
            raise ended_by

        monkeypatch.setattr(simulate.votes, "simulate_votes", interrupted)
        monkeypatch.setattr(sys, "argv", ["jaxeval", "simulate", "--out", "x.csv"])
        monkeypatch.setattr(os, "_exit", end)
        monkeypatch.setattr(file_formats, "_made_folder", cache(partial(tempfile.mkdtemp, dir=tmp_path)))
        copies = file_formats.folder_of_copies()
        with pytest.raises(RuntimeError, match="ended with 130"):
            cli.run()
        assert capsys.readouterr().err.strip() == "Aborted!"
        assert not os.path.exists(copies)

    def test_other_ends_are_those_of_click(self, monkeypatch, capsys, tmp_path):
        out, nowhere = str(tmp_path / "x.csv"), str(tmp_path / "nowhere.csv")
        simulate = ["simulate", "--battles", "9", "--out", out]
        for arguments in (["--version"], [], ["simulate"], simulate, ["leaderboard", nowhere], ["judge", "-h"]):
            monkeypatch.setattr(sys, "argv", ["jaxeval", *arguments])
            ends = []
            for command in (cli.run, main):
                (tmp_path / "x.csv").unlink(missing_ok=True)  # the message is another where a file is replaced
                with pytest.raises(SystemExit) as end:
                    command()
                ends.append((end.value.code, capsys.readouterr()))
            assert ends[0] == ends[1]

    @pytest.mark.parametrize(
        ("error", "told"),
        [
            (
                EOFError("Compressed file ended before the end-of-stream marker"),
                "a file ends too early: Compressed file",
            ),
            (RuntimeError("Unable to initialize backend 'tpu'"), "JAX does not find what JAX_PLATFORMS names"),
        ],
    )
    def test_what_others_raise_is_told(self, monkeypatch, error, told):
        monkeypatch.setattr(simulate.votes, "simulate_votes", Mock(side_effect=error))
        result = run("simulate", "--out", "x.csv")
        assert result.exit_code == 1
        assert f"Error: {told}" in result.stderr
        assert "Aborted" not in result.stderr


def test_runs_as_a_module_and_names_its_version():
    command = [sys.executable, "-m", "jaxeval", "--version"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert jaxeval.__version__ in shown


class TestStyleControl:
    @pytest.fixture(scope="class")
    @classmethod
    def styled(cls, tmp_path_factory):
        """Of the sizes of the votes of other files, whose compiled code they share."""
        rng = np.random.default_rng(0)
        path = tmp_path_factory.mktemp("styled") / "votes.csv"
        votes = simulated()
        makers_of = dict(zip(sorted(set(votes["model_a"])), ["red", "blue"] * 3, strict=True))
        tokens = {side: rng.integers(9, size=len(votes)) for side in "ab"}
        makers = {"judge": "red", **{f"maker_{s}": votes[f"model_{s}"].map(makers_of) for s in "ab"}}
        votes.assign(neutral=rng.random(len(votes)) < 0.3, **tokens, **makers).to_csv(path)
        return path

    @pytest.mark.slow
    def test_a_slice_without_ties_shows_no_interval_of_its_tie_parameter(self, styled, tmp_path):
        battles = pd.read_csv(styled)
        battles["part"] = np.where(battles["winner"].str.startswith("tie") | (battles.index % 2 == 0), "some", "none")
        battles.to_csv(tmp_path / "votes.csv", index=False)
        result = run(
            "leaderboard", tmp_path / "votes.csv", "--by", "part", "--ties", "davidson", "--resamples", 8
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        shown = [line.split() for line in result.stdout.splitlines() if "tie parameter " in line]
        assert ["none", "tie", "parameter", "-inf"] in shown
        assert "nan" not in result.stdout

    @pytest.mark.parametrize(
        "position", [(), pytest.param(("--position", "--neutral", "neutral"), marks=pytest.mark.slow)]
    )
    @pytest.mark.slow
    def test_covariates_and_tie_models(self, styled, tmp_path, position):
        out, effect = tmp_path / "board.json", tmp_path / "effect.png"
        result = run(
            "leaderboard", styled, "--features", "length, a:b", *position, "--ties", "davidson", "--resamples", 32,
            "--out", out, "--effect", effect,
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        n_features = f"{3 if position else 2} normalized features"
        for name in ("length", "a - b", "tie parameter", "By expected score", n_features):
            assert name in result.stdout
        said = " ".join(result.stdout.split())
        assert "ties by Davidson: ratings are log-odds of decisive battles; by expected score: a tie is half" in said
        assert {"expected_score_rating", "expected_score_lower"} <= set(
            pd.DataFrame(json.loads(out.read_text())["rows"])
        )
        assert ("position" in result.stdout) == bool(position)
        assert out.exists()
        assert effect.stat().st_size > 10_000

    @pytest.mark.parametrize(("arguments", "message"), [
        (["--features", "a:b:length"], "columns A,B or pairs of columns A:B"),
        (["--effect", "x.png"], "--effect draws what control does to one board: it needs --features"),
        (["--neutral", "neutral"], "--neutral needs --position: it says where that does not hold"),
        (["--same-group", "judge:maker_a"], "--same-group takes three columns COL:A:B, got 'judge:maker_a'"),
        (["--same-group", "judge:maker_a:maker_b"], "the models and other features determine 'same judge'"),
        (["--raw-features", "--position"], "--raw-features needs --features"),
        (["--features", "winner"], "'winner'"),
    ])  # fmt: skip
    def test_bad_input(self, styled, arguments, message):
        result = run("leaderboard", styled, "--resamples", 32, *arguments)
        assert result.exit_code != 0
        assert message in " ".join(result.stderr.split())
        assert "Traceback" not in result.output
