"""Long runs: finished resamples outlive an interruption, files are whole or absent, memory keeps to its limit."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from jaxeval import DataError, bootstrap, simulate_battles
from jaxeval.errors import MemoryLimitError
from jaxeval.execution.checkpoints import Checkpoint
from jaxeval.ratings.refits import RESULT_BYTES


@pytest.fixture(scope="module")
def battles():
    return simulate_battles(150, 10, seed=3)  # few battles: two solvers, and degenerate resamples


@pytest.fixture(scope="module")
def whole(battles):
    return bootstrap(battles, 60, chunk_size=8)


def _same(one, other):
    np.testing.assert_array_equal(one.draws, other.draws)
    np.testing.assert_array_equal(one.n_steps, other.n_steps)
    np.testing.assert_array_equal(one.degenerate, other.degenerate)


class TestResuming:
    def test_a_run_of_a_version_without_an_option_is_refused(self, tmp_path):
        Checkpoint(tmp_path, "x", {"seed": 0, "ridge": 0.0})
        said = r"another run \(ridge 0.0, not 1.0; of another estimator or version, without the settings link, strata\)"
        with pytest.raises(DataError, match=said):
            Checkpoint(tmp_path, "y", {"seed": 0, "ridge": 1.0, "link": "logit", "strata": None})

    def test_other_battles_are_refused(self, battles, tmp_path):
        bootstrap(battles, 10, checkpoint=tmp_path)
        frame = battles.to_pandas()
        frame.loc[0, "target"] = 1 - frame.loc[0, "target"] / 2
        with pytest.raises(DataError, match="of other battles"):
            bootstrap(frame, 10, checkpoint=tmp_path)

    def test_a_folder_of_other_things_is_refused(self, battles, tmp_path):
        (tmp_path / "thesis.tex").write_text("")
        with pytest.raises(DataError, match="no finished resamples"):
            bootstrap(battles, 10, checkpoint=tmp_path)
        (tmp_path / "run.json").write_text('{"format": "something else"}')
        with pytest.raises(DataError, match="does not describe a run"):
            bootstrap(battles, 10, checkpoint=tmp_path)

    def test_a_later_version_is_refused(self, battles, tmp_path):
        bootstrap(battles, 10, checkpoint=tmp_path)
        about = tmp_path / "run.json"
        about.write_text(about.read_text().replace('"version": 1', '"version": 9'))
        with pytest.raises(DataError, match="version 9"):
            bootstrap(battles, 10, checkpoint=tmp_path)

    def test_a_damaged_file_is_named(self, battles, tmp_path):
        bootstrap(battles, 10, checkpoint=tmp_path)
        (part,) = tmp_path.glob("*.npz")
        part.write_bytes(part.read_bytes()[:100])
        with pytest.raises(DataError, match=rf"{part.name} is damaged"):
            bootstrap(battles, 10, checkpoint=tmp_path)
        part.unlink()
        bootstrap(battles, 10, checkpoint=tmp_path)

    def test_odd_files_are_named(self, battles, whole, tmp_path):
        bootstrap(battles, 60, chunk_size=8, checkpoint=tmp_path)
        (path,) = tmp_path.glob("*.npz")
        with np.load(path) as file:
            part = dict(file)
        odd = {
            "'slice' is": {"slice": part["slice"][:, None]},
            "'number' is float64": {"number": part["number"].astype(float)},
            "'theta' is": {"theta": part["theta"][:, :1]},  # would broadcast
            "'status' has codes": {"status": part["status"] + np.int8(9)},
            "'standing' has codes": {"standing": part["standing"] - np.int8(1)},
            "a resample twice": {"number": part["number"] * 0},
            "it holds": {"other": part["theta"]},
            "allow_pickle": {"slice": np.array([{}] * 60, object)},
        }

        def refused(said):
            with pytest.raises(DataError, match=rf"{path.name} is damaged \(.*{said}.*remove it"):
                bootstrap(battles, 60, chunk_size=8, checkpoint=tmp_path)

        for said, arrays in odd.items():
            np.savez(path, **{**part, **arrays})
            refused(said)
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
        refused("one array")
        path.write_bytes(b"")
        refused("")
        path.unlink()
        _same(bootstrap(battles, 60, chunk_size=8, checkpoint=tmp_path), whole)

    def test_a_description_that_is_none(self, battles, tmp_path):
        about = tmp_path / "run.json"
        text = {"format": "jaxeval run", "version": 1, "digest": "", "settings": {}}
        odd = [
            {**text, "settings": None},
            {**text, "settings": []},
            {**text, "digest": 1},
            {**text, "version": "1"},
            [],
        ]
        for content in [b"", b"\xff", *(json.dumps(x).encode() for x in odd)]:
            about.write_bytes(content)
            with pytest.raises(DataError, match=r"run.json does not describe a run of jaxeval.*remove this one"):
                bootstrap(battles, 10, checkpoint=tmp_path)
        about.unlink()
        about.mkdir()
        with pytest.raises(DataError, match=r"run\.json does not describe a run"):
            bootstrap(battles, 10, checkpoint=tmp_path)

    @pytest.mark.slow
    def test_sigint_leaves_whole_files(self, tmp_path):
        script = """
from jaxeval.cli.main import run
from jaxeval.execution import lanes
from jaxeval.ratings import pair_refits
pair_refits.REFITS, lanes._SECONDS_BETWEEN_SAVES = pair_refits.REFITS._replace(chunks_per_call=1), 0.0
run()
"""
        options = ["--battles", "150", "--models", "10", "--resamples", "1000000", "--checkpoint"]
        command = [sys.executable, "-c", script, "demo", *options, str(tmp_path / "run")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            for _ in range(600):
                if len(list((tmp_path / "run").glob("*.npz"))) >= 3:
                    break
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=60)
        assert process.returncode == 130
        assert error.endswith(b"Aborted!\n")
        assert error.count(b"Aborted!") == 1
        files = list((tmp_path / "run").iterdir())
        assert len(files) >= 4
        for file in files:
            if file.suffix == ".npz":
                with np.load(file) as part:
                    assert len(part["theta"]) == len(part["number"])
            else:
                assert file.name == "run.json"


class TestWriting:
    def test_a_full_disk_in_a_run_is_told(self, battles, tmp_path, monkeypatch):
        bootstrap(battles, 5, checkpoint=tmp_path)

        def full(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            bootstrap(battles, 10, checkpoint=tmp_path)
        assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


class TestMemory:
    @pytest.mark.slow
    def test_results_take_what_is_counted(self):
        battles = simulate_battles(240, 16, seed=3)  # so many models have no padding, which is counted too
        bootstrap(battles, 2000, chunk_size=8)  # compiles
        tracemalloc.start()
        n = bootstrap(battles, 2000, chunk_size=8).draws.size
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1.1 * n * RESULT_BYTES + 100_000

    @pytest.mark.slow
    def test_results_of_a_tie_model_are_counted(self, battles):
        with pytest.raises(MemoryLimitError, match="would do"):
            bootstrap(battles, 2_000, ties="davidson", memory_limit=1_000_000)


def test_paths_may_be_text(battles, tmp_path):
    bootstrap(battles, 5, checkpoint=str(tmp_path / "a" / "b"))
    assert Path(tmp_path / "a" / "b" / "run.json").exists()
