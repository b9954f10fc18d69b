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

from jaxeval import (
    Battles,
    DataError,
    ProcessError,
    bootstrap,
    gather_battles,
    leaderboard,
    read_battles,
    simulate_votes,
)
from jaxeval.cli.main import main
from jaxeval.execution import lanes
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
import contextlib, dataclasses
@contextlib.contextmanager
def fails(error, text):
    try:
        yield
    except error as caught:
        assert text in str(caught), caught
    else:
        raise AssertionError(f"no error with {text}")
unlike = {
    "seed=1, not 0": {"seed": rank}, "gauge='votes', not 'mean'": {"gauge": ["mean", "votes"][rank]},
    "base=1.0, not 0.0": {"base": rank}, "checkpoint=False, not True": {"checkpoint": [folder + "/no", None][rank]},
    "by=['half'], not []": {"by": [None, "half"][rank]}, "chunk_size=9, not 8": {"chunk_size": 8 + rank},
}
for text, options in unlike.items():
    with fails(jaxeval.ProcessError, f"process 1 has {text}"):
        jaxeval.bootstrap(battles, 50, **options)
with fails(jaxeval.ProcessError, "process 1 has other battles"):
    jaxeval.bootstrap(dataclasses.replace(battles, target=1 - battles.target) if rank else battles, 50)
with fails(jaxeval.ProcessError, "process 1 has level=0.5, not 0.95"):
    jaxeval.leaderboard(battles, n_resamples=50, level=[0.95, 0.5][rank])
text = "process 1: ValueError: unknown scheme"
with fails(*((ValueError, "unknown scheme") if rank else (jaxeval.ProcessError, text))):
    jaxeval.bootstrap(battles, 50, scheme=["poisson", "no"][rank])
with fails(jaxeval.DataError, "no process has any battles"):
    jaxeval.gather_battles(None)
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
    assert "ProcessError: 1 of 2 processes failed: process 1: MemoryError: no memory left" in errors[0]
    assert "MemoryError: no memory left" in errors[1]
    assert time.monotonic() - started < 100


@pytest.mark.slow
def test_a_process_that_is_killed_ends_all(folder):
    kill = f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})"
    codes, _, errors = _ended(_start(STOPPED.format(what=kill), folder))
    assert 0 not in codes
    assert "ProcessError: a process of this run was lost" in errors[0]


INTERRUPTED = """
import time
from jaxeval.execution import lanes
from jaxeval.ratings import dense_refits
store = lanes._store
if rank == 1:  # while it refits, the first process waits for it
    dense_refits.REFITS = dense_refits.REFITS._replace(chunks_per_call=1)
    lanes._store = lambda *args: (time.sleep(0.5), store(*args))[1]
battles = jaxeval.gather_battles(lambda: jaxeval.read_battles(f"{folder}/{rank}.parquet"))
jaxeval.bootstrap(battles, 2000, chunk_size=8, checkpoint=folder + "/interrupted")
"""


@pytest.mark.slow
def test_an_interrupt_ends_all(folder):
    processes = _start(INTERRUPTED, folder)
    while not list((folder / "interrupted").glob("*.0-0.npz")) and processes[0].poll() is None:
        time.sleep(0.2)
    time.sleep(1)
    processes[0].send_signal(signal.SIGINT)
    started = time.monotonic()
    codes, _, errors = _ended(processes)
    assert codes == [130, 1], errors
    assert time.monotonic() - started < 15
    assert errors[0].endswith("KeyboardInterrupt\n")
    assert "ProcessError: a process of this run was lost" in errors[1]
    assert "Process 0 was interrupted" in errors[1]
    assert list((folder / "interrupted").glob("*.0-1000.npz"))  # of the second process


@pytest.mark.slow
def test_the_command_line(folder, tmp_path):
    for name in ("a.csv", "b.csv"):  # all that the second process gets
        (tmp_path / name).write_text("model_a,model_b,winner\n")
    files = [str(folder / "0.parquet"), str(tmp_path / "a.csv"), str(folder / "1.parquet"), str(tmp_path / "b.csv")]
    address, files = _address(), [*files, str(folder / "2.parquet")]
    out = tmp_path / "board.csv"
    command = [sys.executable, "-m", "jaxeval", "leaderboard", *files, "--resamples", "40"]
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"} | {"JAX_PLATFORMS": "cpu"}
    processes = [
        subprocess.Popen(
            [*command, "--distributed", f"{rank}/2@{address}", *([] if rank else ["--out", str(out)])],
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

    def test_files_without_rows_are_as_good_as_none(self, tmp_path):
        file = tmp_path / "none.csv"
        file.write_text("model_a,model_b,winner\n")
        with pytest.raises(DataError, match=r"no process has any battles; none\.csv: the table has no rows"):
            gather_battles(lambda: read_battles([file]))
        file.write_text("model_a,winner\n")
        with pytest.raises(DataError, match=r"none\.csv: no column 'model_b'"):
            gather_battles(lambda: read_battles([file]))

    def test_a_lost_process_is_one_line_of_the_command(self, folder, monkeypatch):
        def lose(*_, **__):
            raise ProcessError("a process of this run was lost")

        monkeypatch.setattr("jaxeval.data.readers.read_battles", lose)
        result = CliRunner().invoke(main, ["leaderboard", str(folder / "0.parquet")])
        assert result.exit_code == 1
        assert result.output == "Error: a process of this run was lost\n"

    @pytest.mark.parametrize("sent", [b"", b"other"])
    def test_results_that_are_none(self, sent):
        with pytest.raises(ProcessError, match="process 1 sent something else than results"):
            lanes._unpack(sent, (np.zeros(3),), 1)

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
