"""Commands in several processes, before they are connected."""

from processes import ended, free_address, started

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
