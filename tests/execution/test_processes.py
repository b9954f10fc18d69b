"""Runs in several real processes, connected by JAX over the loopback address."""

import json
import signal
import time

import numpy as np
import pandas as pd
import pytest
from command_line import run
from processes import ended, start_commands, start_script

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
from jaxeval.execution import lanes
from jaxeval.execution.processes import gather


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


TOGETHER = """
files = [[folder + "/0.parquet", folder + "/2.parquet"], [folder + "/1.parquet"]][rank]
battles = jaxeval.gather_battles(lambda: jaxeval.read_battles(files, keep=["half", "feature"]))
assert battles.n_processes == 2
plain = jaxeval.bootstrap(battles, 50, chunk_size=8)
styled = jaxeval.bootstrap(battles, 16, features=["feature"], chunk_size=8)
np.savez(f"{folder}/{rank}.npz", plain=plain.draws, styled=styled.draws,
         n_devices=plain.settings.n_devices, n_battles=battles.n_battles)
import dataclasses
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
text = "process 1: ValueError: scheme must be one of"
with fails(*((ValueError, "scheme must be one of") if rank else (jaxeval.ProcessError, text))):
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
    codes, _, errors = ended(start_script(TOGETHER, folder))
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


WHOLE = """
import pandas as pd
gold = pd.Series(np.random.default_rng(4).normal(size=20), [f"m{k}" for k in range(20)])
scores = pd.DataFrame({f"e{k}": gold + np.random.default_rng(k).normal(size=20) for k in (5, 6)})
battles = jaxeval.simulate_battles(500, 6, seed=7)

def taus(n_resamples=200, **options):
    return jaxeval.kendall_tau_delta(scores, gold, [0.5, 2.0], n_resamples=n_resamples, **options)

def study(n_resamples=9, **options):
    options = {"budgets": (5,), "n_repeats": 2, "chunk_size": 2} | options
    return jaxeval.reference_study(battles, n_resamples=n_resamples, **options)
"""

SHARED = (
    WHOLE
    + """
from jaxeval.execution import lanes
run_own, ran = lanes.LaneRun._run_own, []

def counted(self, task, of, which, *rest):
    ran.append(len(which))
    return run_own(self, task, of, which, *rest)

lanes.LaneRun._run_own = counted
unlike = {"seed=1, not 0": {"seed": rank}, "level=0.5, not 0.95": {"level": [0.95, 0.5][rank]},
          "n_resamples=7, not 6": {"n_resamples": 6 + rank}}
with jaxeval.share_resamples():
    for estimator, n, of_each in ((taus, 200, [[200, 100], [200, 101]]), (study, 9, [[4, 5], [5, 5]])):
        ran.clear()
        found = estimator()
        assert ran[-2:] == of_each[rank], ran
        folder_of = f"{folder}/{estimator.__name__}"
        kept = [estimator(n_resamples, checkpoint=folder_of) for n_resamples in (5, n)]
        save, lanes.Checkpoint.save = lanes.Checkpoint.save, None  # nothing is left to be kept
        estimator(checkpoint=folder_of)
        lanes.Checkpoint.save = save
        for text, options in unlike.items():
            with fails(jaxeval.ProcessError, f"process 1 has {text}"):
                estimator(**options)
        if estimator is taus:
            pd.testing.assert_frame_equal(found, kept[1])
            found.to_pickle(f"{folder}/{rank}.pkl")
        else:
            np.testing.assert_array_equal(found.tau_draws, kept[1].tau_draws)
            np.savez(f"{folder}/{rank}.npz", tau=found.tau_draws, budget=found.budget_tau_draws)
            assert found.settings.n_devices == 2
    with fails(jaxeval.ProcessError, "process 1 has other data"):
        jaxeval.kendall_tau(scores + rank * gold.to_numpy()[:, None], gold)
    with fails(jaxeval.ProcessError, "process 1 has other data"):
        jaxeval.kendall_tau(scores, gold - rank)
    battles = jaxeval.simulate_battles(500, 6, seed=rank)
    with fails(jaxeval.ProcessError, "process 1 has other battles"):
        study()
text = "column 'x' is not numeric"
errors = [(jaxeval.DataError, text), (jaxeval.ProcessError, f"process 0: DataError: {text}")]
with fails(*errors[rank]), jaxeval.share_resamples():
    jaxeval.kendall_tau(scores if rank else scores.assign(x="text"), gold)
with fails(jaxeval.ProcessError, "process 1 makes another call"), jaxeval.share_resamples():
    study() if rank else taus()
if rank:  # alone
    assert len(taus()) == 4
"""
)


@pytest.mark.slow
def test_two_processes_share_the_resamples_of_whole_data(tmp_path):
    codes, _, errors = ended(start_script(SHARED, tmp_path))
    assert codes == [0, 0], errors
    here: dict = {}
    exec("import jaxeval, numpy as np" + WHOLE, here)
    study = here["study"]()
    for rank in (0, 1):
        pd.testing.assert_frame_equal(pd.read_pickle(tmp_path / f"{rank}.pkl"), here["taus"]())
        with np.load(tmp_path / f"{rank}.npz") as there:
            np.testing.assert_allclose(there["tau"], study.tau_draws, rtol=0, atol=1e-12)
            np.testing.assert_allclose(there["budget"], study.budget_tau_draws, rtol=0, atol=1e-12)


STOPPED = """
from jaxeval.execution.processes import gather
def work():
    if rank == 1:
        {what}
    return b"done"
battles = jaxeval.gather_battles(lambda: jaxeval.read_battles(f"{{folder}}/{{rank}}.parquet"))
gather(work)
"""


@pytest.mark.slow
def test_an_error_in_one_process_ends_all(folder):
    started = time.monotonic()
    codes, _, errors = ended(start_script(STOPPED.format(what="raise MemoryError('no memory left')"), folder))
    assert 0 not in codes
    assert "ProcessError: 1 of 2 processes failed: process 1: MemoryError: no memory left" in errors[0]
    assert "MemoryError: no memory left" in errors[1]
    assert time.monotonic() - started < 100


@pytest.mark.slow
def test_a_process_that_is_killed_ends_all(folder):
    kill = f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})"
    codes, _, errors = ended(start_script(STOPPED.format(what=kill), folder))
    assert 0 not in codes
    assert "ProcessError: a process of this run was lost" in errors[0]


INTERRUPTED = """
import time
from jaxeval.execution import lanes
from jaxeval.ratings import pair_refits
store = lanes._store
if rank == 1:  # while it refits, the first process waits for it
    pair_refits.REFITS = pair_refits.REFITS._replace(chunks_per_call=1)
    lanes._store = lambda *args: (time.sleep(0.5), store(*args))[1]
battles = jaxeval.gather_battles(lambda: jaxeval.read_battles(f"{folder}/{rank}.parquet"))
jaxeval.bootstrap(battles, 2000, chunk_size=8, checkpoint=folder + "/interrupted")
"""


@pytest.mark.slow
def test_an_interrupt_ends_all(folder):
    processes = start_script(INTERRUPTED, folder)
    while not list((folder / "interrupted").glob("*.0-0.npz")) and processes[0].poll() is None:
        time.sleep(0.2)
    time.sleep(1)
    processes[0].send_signal(signal.SIGINT)
    started = time.monotonic()
    codes, _, errors = ended(processes)
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
    files.append(str(folder / "2.parquet"))
    out = tmp_path / "board.csv"
    processes = start_commands("leaderboard", *files, "--resamples", "40", out=out)
    codes, outputs, errors = ended(processes)
    assert codes == [0, 0], errors
    assert "model-1" in outputs[0]
    assert "2 x cpu" in outputs[0]
    assert "model-1" not in outputs[1]
    table = leaderboard(read_battles(files), n_resamples=40)
    columns = ["model", "rating", "lower"]
    pd.testing.assert_frame_equal(table[columns], pd.read_csv(out)[columns], check_dtype=False, atol=1e-6)


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

    @pytest.mark.parametrize(("words", "error"), [
        ((["A", "B"], ["B", "tie"], ["tie"]), None),
        ((["a", "d"], ["h", "a"]), None),
        ((["A", "B"], ["h", "a"]), "some hold the sides A and B, and some home and away.*"),
        ((["x", "y"], ["left", "right"]), "some hold names of the winners.*, and some the sides left and right"),
    ])  # fmt: skip
    def test_the_words_of_all_processes_are_of_one_family(self, words, error, tmp_path, monkeypatch):
        packed = []
        for k, own in enumerate(words):
            votes = pd.DataFrame({"model_a": ["x", "y"], "model_b": ["y", "x"], "winner": (own * 2)[:2]})
            with monkeypatch.context() as patch:
                patch.setattr("jaxeval.data.readers.gather", lambda pack: packed.append(pack()) or packed[-1:])
                gather_battles(lambda votes=votes: Battles.from_pandas(votes))
            assert len(packed) == k + 1
        monkeypatch.setattr("jaxeval.data.readers.gather", lambda _: packed)
        if error is None:
            assert gather_battles(None).n_battles == 2 * len(words)
            return
        with pytest.raises(DataError, match=f"{error}. Say what the labels mean: labels=.*--labels 'A=model_a,...'"):
            gather_battles(None)

    def test_the_same_votes_in_two_processes_count_once(self, folder, monkeypatch):
        packed = []
        monkeypatch.setattr("jaxeval.data.readers.gather", lambda pack: packed.append(pack()) or packed)
        for name in ("0.parquet", "1.parquet"):
            gather_battles(lambda name=name: read_battles(folder / name))
        packed[1] = packed[0]
        monkeypatch.setattr("jaxeval.data.readers.gather", lambda _: packed)
        with pytest.raises(DataError, match=r"process 1 has the same .* as process 0: they would"):
            gather_battles(None)

    def test_a_lost_process_is_one_line_of_the_command(self, folder, monkeypatch):
        def lose(*_, **__):
            raise ProcessError("a process of this run was lost")

        monkeypatch.setattr("jaxeval.data.readers.battles_in", lose)
        result = run("leaderboard", folder / "0.parquet")
        assert result.exit_code == 1
        assert result.output == "Error: a process of this run was lost\n"

    @pytest.mark.parametrize("sent", [b"", b"other"])
    def test_results_that_are_none(self, sent):
        with pytest.raises(ProcessError, match="process 1 sent something other than results"):
            lanes._unpack(sent, (np.zeros(3),), 1)

    def test_errors_pass(self):
        with pytest.raises(FileNotFoundError):
            gather_battles(lambda: read_battles("missing.parquet"))

    @pytest.mark.parametrize("text", ["two", "2/2@host:1", "0/2", "0/2@host"])
    def test_addresses_that_are_none(self, folder, text):
        result = run("leaderboard", folder / "0.parquet", "--distributed", text)
        assert result.exit_code == 2
        assert "is not auto or I/N@HOST:PORT" in result.output

    def test_a_size_that_is_none(self, folder):
        result = run("leaderboard", folder / "0.parquet", "--memory", "much")
        assert result.exit_code == 2
        assert "is not a size such as 500MB or 2GB" in result.output

    def test_sizes(self, folder, tmp_path):
        command = ["leaderboard", str(folder / "0.parquet"), "--resamples", "20", "--checkpoint", str(tmp_path / "run")]
        assert run(*command, "--memory", "1.5 GB").exit_code == 0
        assert json.loads((tmp_path / "run" / "run.json").read_text())["version"] == 1
        result = run(*command[:-2], "--memory", "2kb")
        assert result.exit_code == 1
        assert "memory_limit=2,000 bytes is too small" in result.output

    def test_battles_of_one_process_by_default(self):
        assert Battles.from_pandas(simulate_votes(50, 3, seed=0)).n_processes == 1
