"""Runs in several real processes, connected by JAX over the loopback address."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from jaxeval import Battles, DataError, bootstrap, gather_battles, leaderboard, read_battles, simulate_votes
from jaxeval.cli.main import main
from jaxeval.execution.processes import gather

HEAD = """
import sys, json
import jax
rank, address, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3]
jax.distributed.initialize(address, 2, rank, heartbeat_timeout_seconds=10)
import numpy as np
import jaxeval
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Votes in three files; the models of the last are not those of the first."""
    folder = tmp_path_factory.mktemp("votes")
    votes = simulate_votes(3000, 8, seed=2, popularity_exponent=0.3)
    votes["half"] = np.arange(3000) % 2
    votes["feature"] = np.random.default_rng(0).normal(size=3000)
    late = votes["model_a"].isin(["model-1"]) | votes["model_b"].isin(["model-1"])
    parts = [votes[~late].iloc[:1000], votes[~late].iloc[1000:], votes[late]]
    for k, part in enumerate(parts):
        part.to_parquet(folder / f"{k}.parquet")
    return folder


def _address():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def _start(script, folder):
    address = _address()
    environment = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "PYTEST_XDIST_WORKER")}
    environment |= {"JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", HEAD + script]
    return [
        subprocess.Popen(
            [*command, str(rank), address, str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in (0, 1)
    ]


def _ended(processes):
    """Exit codes, output and errors."""
    said = []
    for process in processes:
        try:
            said.append(process.communicate(timeout=120))
        except subprocess.TimeoutExpired:
            for other in processes:
                other.kill()
            pytest.fail("a process hangs")
    return [p.returncode for p in processes], [out for out, _ in said], [error for _, error in said]


TOGETHER = """
files = [[folder + "/0.parquet", folder + "/2.parquet"], [folder + "/1.parquet"]][rank]
battles = jaxeval.gather_battles(lambda: jaxeval.read_battles(files, keep=["half", "feature"]))
assert battles.n_processes == 2
plain = jaxeval.bootstrap(battles, 50, chunk_size=8)
styled = jaxeval.bootstrap(battles, 16, features=["feature"], chunk_size=8)
np.savez(f"{folder}/{rank}.npz", plain=plain.draws, styled=styled.draws,
         n_devices=plain.settings.n_devices, n_battles=battles.n_battles)
try:
    jaxeval.bootstrap(battles, 50, seed=rank)
except jaxeval.ProcessError as error:
    assert "processes 1 have other battles or settings than process 0" in str(error)
else:
    raise AssertionError("unlike calls must fail")
try:
    jaxeval.gather_battles(lambda: jaxeval.read_battles(folder + "/missing.parquet" if rank else files))
except FileNotFoundError:
    assert rank == 1
except jaxeval.ProcessError as error:
    assert rank == 0 and "process 1: FileNotFoundError: no such file" in str(error)
from jaxeval.execution.processes import together
try:
    with together(2):
        if rank:
            raise OSError("disk full")
except OSError:
    assert rank == 1
except jaxeval.ProcessError as error:
    assert rank == 0 and "process 1: OSError: disk full" in str(error)
kept = [jaxeval.bootstrap(battles, n, chunk_size=8, checkpoint=folder + "/run").draws for n in (30, 50)]
assert np.array_equal(kept[1], plain.draws) and np.array_equal(kept[0], plain.draws[:30])
alone = jaxeval.gather_battles(battles if rank else None)
assert alone.n_battles == battles.n_battles
from jaxeval.execution.processes import gather
sent = gather(lambda: bytes([rank]) * (5 + rank))
assert sent == [bytes(5), bytes([1]) * 6]
"""


@pytest.mark.slow
def test_two_processes_share_files_and_resamples(folder):
    codes, _, errors = _ended(_start(TOGETHER, folder))
    assert codes == [0, 0], errors
    battles = read_battles(sorted(folder.glob("*.parquet")), keep=["half", "feature"])
    here = {
        "plain": bootstrap(battles, 50, chunk_size=8).draws,
        "styled": bootstrap(battles, 16, features=["feature"], chunk_size=8).draws,
    }
    for rank in (0, 1):
        with np.load(folder / f"{rank}.npz") as there:
            assert there["n_devices"] == 2
            assert there["n_battles"] == battles.n_battles
            for name, draws in here.items():
                np.testing.assert_allclose(there[name], draws, rtol=0, atol=4e-6)  # each within 1e-8 logits


STOPPED = """
from jaxeval.execution.processes import gather
def work():
    if rank == 1:
        {what}
    return b"done"
battles = jaxeval.gather_battles(lambda: jaxeval.read_battles(f"{{folder}}/{{rank}}.parquet"))
gather(work)
"""


def test_an_error_in_one_process_ends_all(folder):
    started = time.monotonic()
    codes, _, errors = _ended(_start(STOPPED.format(what="raise MemoryError('no memory left')"), folder))
    assert 0 not in codes
    assert "ProcessError: 1 of 2 processes failed:\nprocess 1: MemoryError: no memory left" in errors[0]
    assert "MemoryError: no memory left" in errors[1]
    assert time.monotonic() - started < 100


@pytest.mark.slow
def test_a_process_that_is_killed_ends_all(folder):
    kill = f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})"
    codes, _, errors = _ended(_start(STOPPED.format(what=kill), folder))
    assert 0 not in codes
    assert "ProcessError: a process of this run was lost" in errors[0]


@pytest.mark.slow
def test_the_command_line(folder, tmp_path):
    address, files = _address(), sorted(map(str, folder.glob("*.parquet")))
    out = tmp_path / "board.csv"
    command = [sys.executable, "-m", "jaxeval", "leaderboard", *files, "--resamples", "40", "--out", str(out)]
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"} | {"JAX_PLATFORMS": "cpu"}
    processes = [
        subprocess.Popen(
            [*command, "--distributed", f"{rank}/2@{address}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in (0, 1)
    ]
    codes, outputs, errors = _ended(processes)
    assert codes == [0, 0], errors
    assert "model-1" in outputs[0]
    assert "2 x cpu" in outputs[0]
    assert "model-1" not in outputs[1]
    table = leaderboard(read_battles(files), n_resamples=40)
    pd.testing.assert_frame_equal(
        pd.read_csv(out)[["model_name", "rating", "rating_lower"]],
        table[["model_name", "rating", "rating_lower"]],
        check_dtype=False,
        atol=1e-6,
    )


class TestOneProcess:
    def test_it_gathers_its_own(self, folder):
        battles = read_battles(folder / "0.parquet")
        gathered = gather_battles(battles)
        assert gathered.n_processes == 1
        np.testing.assert_array_equal(bootstrap(gathered, 10).draws, bootstrap(battles, 10).draws)
        assert gather(lambda: b"own") == [b"own"]

    def test_nobody_has_battles(self):
        with pytest.raises(DataError, match="no process has any battles"):
            gather_battles(None)

    def test_errors_pass(self):
        with pytest.raises(FileNotFoundError):
            gather_battles(lambda: read_battles("missing.parquet"))

    @pytest.mark.parametrize("text", ["two", "2/2@host:1", "0/2", "0/2@host"])
    def test_addresses_that_are_none(self, folder, text):
        result = CliRunner().invoke(main, ["leaderboard", str(folder / "0.parquet"), "--distributed", text])
        assert result.exit_code == 2
        assert "is not auto or I/N@HOST:PORT" in result.output

    def test_a_size_that_is_none(self, folder):
        result = CliRunner().invoke(main, ["leaderboard", str(folder / "0.parquet"), "--memory", "much"])
        assert result.exit_code == 2
        assert "is not a size such as 500MB or 2GB" in result.output

    def test_sizes(self, folder, tmp_path):
        command = ["leaderboard", str(folder / "0.parquet"), "--resamples", "20", "--checkpoint", str(tmp_path / "run")]
        assert CliRunner().invoke(main, [*command, "--memory", "1.5 GB"]).exit_code == 0
        assert json.loads((tmp_path / "run" / "run.json").read_text())["version"] == 1
        result = CliRunner().invoke(main, [*command[:-2], "--memory", "2kb"])
        assert result.exit_code == 1
        assert "memory_limit=2,000 bytes is too small" in result.output

    def test_battles_of_one_process_by_default(self):
        assert Battles.from_pandas(simulate_votes(50, 3, seed=0)).n_processes == 1
