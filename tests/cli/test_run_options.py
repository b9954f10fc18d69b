"""`--checkpoint`, `--memory` and `--distributed` of every command that resamples."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from command_line import run as run_command
from processes import ended, start_commands

import jaxeval
from jaxeval.execution import host
from jaxeval.execution.checkpoints import Checkpoint
from jaxeval.lab.simulate.verdicts import simulate_anchored_verdicts


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    """Arguments of each command on a small file of its own."""
    folder = tmp_path_factory.mktemp("files")

    def written(name, frame):
        frame.to_csv(folder / name, index=False)
        return str(folder / name)

    votes = written("votes.csv", jaxeval.simulate_votes(300, 5, seed=1))
    judged = jaxeval.simulate_judged_battles(400, 5, seed=2)
    names = judged.models.to_numpy()
    scored = pd.DataFrame({"model_a": names[judged.model_a], "model_b": names[judged.model_b], "human": judged.human,
                           "difference": judged.score_difference})  # fmt: skip
    answers = jaxeval.simulate_judged_answers(n_items=60, seed=3)
    labelled = written("labelled.csv", answers[answers["item"] < 30])
    tested = written("tested.csv", answers[answers["item"] >= 30])
    verdicts = simulate_anchored_verdicts(n_items=20, n_judges=2, seed=4)
    gold = np.random.default_rng(5).normal(size=12)
    scores = {"model": [f"m{k}" for k in range(12)], "people": gold, "one": gold[::-1], "two": gold**2}
    columns = ["--judgment", "judge-1", "--human", "human", "--model", "model", "--item", "item"]
    coded = ["--score-difference", "difference", "--labels", "a_wins_1"]
    return {
        "leaderboard": [votes, "--resamples", "50"],
        "soft-elo": [written("scored.csv", scored), *coded, "--resamples", "50", "--splits", "20"],
        "judge": ["--calibration", labelled, "--test", tested, *columns, "--resamples", "50"],
        "anchored": [written("verdicts.csv", verdicts), "--resamples", "50"],
        "meta": [written("scores.csv", pd.DataFrame(scores)), "--gold", "people", "--resamples", "50"],
        "meta --votes": ["--votes", votes, "--budgets", "3", "--studies", "2", "--resamples", "10"],
    }


SLOW = [pytest.param(command, marks=pytest.mark.slow) for command in ("soft-elo", "judge", "meta", "meta --votes")]


@pytest.mark.parametrize("command", ["leaderboard", "anchored", *SLOW])
def test_finished_resamples_are_kept_and_memory_is_limited(command, commands, tmp_path, monkeypatch):
    def run(*options):
        return run_command(command.split()[0], *commands[command], *options)

    folder = str(tmp_path / "run")
    first = run("--checkpoint", folder, "--memory", "2GB")
    assert first.exit_code == 0, first.output
    monkeypatch.setattr(Checkpoint, "save", None)  # nothing is left to be kept
    again = run("--checkpoint", folder)
    assert again.exit_code == 0, again.output
    assert again.stdout == first.stdout
    other = run("--checkpoint", folder, "--seed", "7")
    assert other.exit_code == 1
    assert "holds resamples of another run (seed 0, not 7)" in other.output
    little = run("--memory", "1KB")
    assert little.exit_code == 1
    assert "memory_limit=1,000 bytes is too small" in little.output
    assert "another part may need more" in " ".join(little.output.split())


@pytest.mark.slow
@pytest.mark.parametrize("command", ["soft-elo", "judge", "meta --votes"])
def test_two_processes_give_the_tables_of_one(command, commands, tmp_path):
    arguments = [command.split()[0], *commands[command]]
    alone = run_command(*arguments, "--out", tmp_path / "alone")
    assert alone.exit_code == 0, alone.output
    codes, printed, errors = ended(
        start_commands(*arguments, "--checkpoint", tmp_path / "run", out=tmp_path / "shared")
    )
    assert codes == [0, 0], errors
    assert printed == [alone.stdout, ""]
    assert "wrote" in errors[0]
    assert "wrote" not in errors[1]
    tables = sorted((tmp_path / "alone").glob("*.csv"))
    assert tables
    for path in tables:
        shared = pd.read_csv(tmp_path / "shared" / path.name)
        pd.testing.assert_frame_equal(shared, pd.read_csv(path), rtol=1e-9, atol=1e-9)


#: The command, with one arguments after the other, and whether JAX was imported by then.
BOARDS = """
import json, sys
from contextlib import suppress
from jaxeval.cli.main import run

for arguments in json.loads(sys.argv[1]):
    sys.argv = ["jaxeval", *arguments]
    with suppress(SystemExit):
        run()
    print("jax" in sys.modules)
"""


def test_small_boards_start_no_jax(tmp_path, monkeypatch):
    """And print what programs give; what NumPy does not know starts it."""
    monkeypatch.setattr(host, "spares_jax", lambda: False)
    cases = [(3000, [], False), (100, ["--by", "half"], False), (100, ["--penalty", "firth"], True)]
    commands = []
    for n, options, _ in cases:
        votes = tmp_path / f"{n}.csv"
        jaxeval.simulate_votes(n, 8, seed=3).assign(half=lambda x: x.index % 2).to_csv(votes, index=False)
        out = str(tmp_path / f"{len(commands)}.csv")
        commands.append(["leaderboard", str(votes), "--resamples", "200", "--out", out, *options])
    done = subprocess.run(
        [sys.executable, "-c", BOARDS, json.dumps(commands)], capture_output=True, text=True, check=True,
        env={**os.environ, "JAXEVAL_CACHE": "off", "JAX_PLATFORMS": "cpu"},
    )  # fmt: skip
    alone = [pd.read_csv(tmp_path / f"{k}.csv") for k in range(3)]
    same = [run_command(*arguments) for arguments in commands]
    said = "".join(f"{board.stdout}{needs_jax}\n" for board, (_, _, needs_jax) in zip(same, cases, strict=True))
    assert (done.stdout, done.stderr) == (said, "".join(board.stderr for board in same))
    for k, table in enumerate(alone):
        pd.testing.assert_frame_equal(table, pd.read_csv(tmp_path / f"{k}.csv"), rtol=0, atol=1e-5)
