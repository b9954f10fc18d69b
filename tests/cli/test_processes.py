"""Commands in several processes, before they are connected."""

import click
import pytest
from processes import ended, free_address, started

from jaxeval.cli.processes import Processes

IMPATIENT = """
import sys
from jaxeval.cli import processes
processes._SECONDS_TO_CONNECT, processes._SECONDS_UNTOLD = 4, 0.5
from jaxeval.cli.main import run
run()
"""


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
