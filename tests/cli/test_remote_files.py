"""Commands on files of other machines."""

import json
import os
import subprocess
import sys

import click
import pandas as pd
import pytest
from command_line import run
from served import REPOSITORY, TOKEN, served

import jaxeval
from jaxeval.cli.kinds import InputFile
from jaxeval.cli.main import main

MODELS = b"model,licence\nmodel-1,open\n"
VOTES = jaxeval.simulate_votes(400, 5)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with served() as server:
        yield server


@pytest.mark.parametrize(
    "command",
    ["leaderboard URL", "leaderboard FILE --rename URL", "leaderboard URL --state s.parquet", "rankings URL",
     "compare-boards FILE URL", "next URL --k 5",
     "soft-elo URL", "soft-elo calibrate URL --out c.json", "soft-elo predict URL URL",
     "soft-elo REPLIES --one-order keep --human-labels URL", "judge --calibration URL --test URL", "anchored URL",
     "meta URL --gold g", "meta --votes URL", "agreement URL", "agreement FILE --families URL",
     "agreement FILE --human-labels URL", "soft-elo merge URL", "soft-elo merge JUDGED --new URL",
     "soft-elo merge JUDGED --votes URL"],
)  # fmt: skip
def test_every_command_asks_for_the_file(server, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    VOTES.to_csv("votes.csv")
    VOTES.assign(item=range(400), output="[[A]]").to_csv("replies.csv")
    VOTES.assign(scores_a=1, scores_b=2).rename(columns={"winner": "human"}).to_csv("judged.csv")
    at = {"FILE": "votes.csv", "REPLIES": "replies.csv", "JUDGED": "judged.csv"}
    at["URL"] = f"{server.url.replace('//', '//me:geheim@')}/none.csv?token=geheim"
    result = run(*[at.get(word, word) for word in command.split()])
    assert result.exit_code == 1
    assert f"no such file: http://***@127.0.0.1:{server.server_port}/none.csv?..." in result.stderr
    assert "geheim" not in result.output
    assert server.asked
    assert {path.name for path in tmp_path.iterdir()} <= {"votes.csv", "replies.csv", "judged.csv", ".s.parquet.lock"}


def files_to_read(command):
    """The parameters of a command, and of those below it, that are files which must be there."""
    below = [param for own in getattr(command, "commands", {}).values() for param in files_to_read(own)]
    return below + [param for param in command.params if isinstance(param.type, click.Path) and param.type.exists]


def test_every_file_that_a_command_reads_may_be_elsewhere():
    found = files_to_read(main)
    assert len(found) > 10
    assert [param.name for param in found if not isinstance(param.type, InputFile)] == []


def test_help_and_wrong_options_ask_for_nothing(server):
    for options in (["--help"], ["--no-such-option"], ["--by", "x", "--eval-results", "x"]):
        run("leaderboard", f"{server.url}/votes.csv", *options)
    assert server.asked == []


def checked_board(out, said):
    """The board is whole, with what another file says of one model; and no password is told."""
    board = json.loads(out.read_text())
    assert {row["model"] for row in board["rows"]} == set(VOTES["model_a"])
    assert pd.DataFrame(board["rows"])["licence"].notna().sum() == 1
    assert "geheim" not in out.read_text() + said


def with_password(server, name):
    return f"{server.url.replace('//', '//me:geheim@')}/{name}?key=geheim"


def test_a_board_of_files_of_the_web(server, tmp_path):
    server.files = {"/votes.csv": VOTES.to_csv(index=False).encode(), "/models.csv": MODELS}
    out = tmp_path / "board.json"
    options = ["--resamples", "20", "--metadata", with_password(server, "models.csv"), "--out", str(out)]
    result = run("leaderboard", with_password(server, "votes.csv"), *options)
    assert result.exit_code == 0, result.output
    checked_board(out, result.output)


@pytest.mark.slow
def test_a_board_of_a_gated_file_of_the_hub_in_a_process_of_its_own(server, tmp_path):
    VOTES.to_parquet(tmp_path / "day.parquet")
    server.files["/hub/data/day.parquet"] = (tmp_path / "day.parquet").read_bytes()
    server.files["/models.csv"] = MODELS
    server.gated = True
    out, temporary = tmp_path / "board.json", tmp_path / "temporary"
    temporary.mkdir()
    own = {"HF_ENDPOINT": server.url, "HF_TOKEN": TOKEN, "HF_HOME": str(tmp_path), "TMPDIR": str(temporary),
           "no_proxy": "127.0.0.1"}  # fmt: skip
    models = with_password(server, "models.csv")
    command = ["leaderboard", f"hf://{REPOSITORY}/data/*.parquet", "--resamples", "20", "--metadata", models]
    command = [sys.executable, "-m", "jaxeval", *command, "--out", str(out)]
    result = subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    checked_board(out, result.stdout + result.stderr)
    assert TOKEN not in out.read_text() + result.stdout + result.stderr
    assert list(temporary.iterdir()) == []
