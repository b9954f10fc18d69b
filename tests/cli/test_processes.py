"""Commands in several processes, before they are connected."""

import click
import pandas as pd
import pytest
from command_line import run as run_command
from processes import ended, free_address, start_commands, started

import jaxeval
from jaxeval.cli.processes import Processes

IMPATIENT = """
import sys
from jaxeval.cli import processes
processes._SECONDS_TO_CONNECT, processes._SECONDS_UNTOLD = 4, 0.5
from jaxeval.cli.main import run
run()
"""


@pytest.mark.slow
def test_a_process_that_waits_for_one_that_never_comes_says_so_and_ends(tmp_path):
    votes = tmp_path / "votes.csv"
    votes.write_text("model_a,model_b,winner\nx,y,model_a\nx,y,model_b\n")
    command = ["-c", IMPATIENT, "leaderboard", votes, "--distributed", f"1/2@{free_address()}"]
    (code,), (printed,), (error,) = ended(started(command))
    assert code == 1
    assert printed == ""
    first, second = error.splitlines()
    assert first.startswith("waiting up to 4 s for the other processes")
    assert second.startswith("Error: after 4 s the other processes are not there")


def test_auto_takes_what_the_environment_says(monkeypatch):
    names = ("JAX_COORDINATOR_ADDRESS", "JAX_PROCESS_ID", "JAX_NUM_PROCESSES")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    auto = Processes().convert
    assert auto("auto", None, None) == {}
    monkeypatch.setenv("JAX_COORDINATOR_ADDRESS", "first:29500")
    assert auto("auto", None, None) == {}  # JAX reads it, too, and finds the rest
    monkeypatch.setenv("JAX_NUM_PROCESSES", "4")
    for number in ("", "4", "-1", "one"):
        monkeypatch.setenv("JAX_PROCESS_ID", number)
        with pytest.raises(click.UsageError, match=f"JAX_PROCESS_ID={number}, JAX_NUM_PROCESSES=4: set all three"):
            auto("auto", None, None)
    monkeypatch.setenv("JAX_PROCESS_ID", "3")
    assert auto("auto", None, None) == {"process_id": 3, "num_processes": 4, "coordinator_address": "first:29500",
                                        "cluster_detection_method": "deactivate"}  # fmt: skip


@pytest.mark.slow
def test_two_processes_read_and_choose_as_one_does(tmp_path):
    votes = jaxeval.simulate_votes(3000, 8, seed=2)
    words = {"model_a": "x", "model_b": "o"}
    votes["winner"] = [words.get(label, "-") for label in votes["winner"]]
    votes[:1000].to_csv(tmp_path / "0.csv", index=False)
    votes[1000:].to_parquet(tmp_path / "1.parquet")
    (tmp_path / "names.csv").write_text("model,name\nmodel-1,first\n")
    (tmp_path / "models.csv").write_text("model,licence\nfirst,open\nmodel-2,closed\n")
    arguments = ["leaderboard", tmp_path / "0.csv", tmp_path / "1.parquet", "--labels", "x=model_a,o=model_b,-=tie",
                 "--where", "language <> 'Russian'", "--rename", tmp_path / "names.csv", "--exclude", "model-8",
                 "--metadata", tmp_path / "models.csv", "--by", "language", "--resamples", "20"]  # fmt: skip
    codes, _, errors = ended(start_commands(*arguments, out=tmp_path / "two.csv"))
    assert codes == [0, 0], errors
    alone = run_command(*(*arguments, "--out", tmp_path / "one.csv"))
    assert alone.exit_code == 0, alone.output
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "one.csv"), pd.read_csv(tmp_path / "two.csv"), atol=1e-6)
