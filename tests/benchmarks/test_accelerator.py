"""The check-up of accelerators, in small and on a CPU, and the page that it ends on."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import jaxeval

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

# Stands for the process that runs steps.
WORKER = """
import json, os, pathlib, sys, time
folder = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])

def note(name, **said):
    record = json.loads((folder / "checkup.json").read_text())
    record["steps"][name] = said
    (folder / "new").write_text(json.dumps(record))
    (folder / "new").replace(folder / "checkup.json")

for name in sys.argv[sys.argv.index("--steps") + 1 :]:
    if name == "does not begin":
        sys.exit(3)
    note(name, state="running", began=time.time())
    if name == "aborts":
        os.abort()
    if name == "hangs":
        time.sleep(60)
    if name == "fails":
        note(name, state="failed", why="an error")
        sys.exit()
    note(name, state="done", found={})
"""


@pytest.fixture
def modules(monkeypatch):
    """The modules of the check-up."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    import accelerator
    import accelerator_page
    import accelerator_steps

    return SimpleNamespace(command=accelerator, page=accelerator_page, steps=accelerator_steps)


def run(folder):
    """A small check-up into ``folder``, and what it prints."""
    command = [sys.executable, BENCHMARKS / "accelerator.py", "--small", "--out", folder]
    environ = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(list(map(str, command)), env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "checkup.json").read_text()), done.stdout


def check(record, modules):
    """Every step is done, and what it found is plausible and makes a section of the page."""
    assert {name: step["state"] for name, step in record["steps"].items()} == dict.fromkeys(record["steps"], "done")
    found = {name: step["found"] for name, step in record["steps"].items()}
    assert found["machine"]["platform"] == "cpu"
    assert all(rate > 0 for rate in found["ceilings"]["bytes_per_second"].values())
    assert set(found["equality"]["arrays"].values()) == {0.0}  # both sides are CPUs
    timed = {name: row for name, row in found.items() if "waited_seconds" in row}
    for row in timed.values():
        assert row["waited_seconds"]["in_programs"] > 0
        assert row["waited_seconds"]["outside"] > 0
        assert row.get("converged", True)
    assert found["profile"]["longest"][0]["seconds"] > 0
    assert set(record["limits"]) == {name for name in timed if name.startswith("S/")}
    section = modules.page.section(record)
    assert section.count("\n| ") == 2 + len(timed)  # heads and dashes
    assert ("in chunks of several sizes" in section) == any("chunk_size" in row for row in found.values())
    assert "Without a result" not in section


def test_a_step_is_measured(tmp_path, modules, monkeypatch, capsys):
    """A board smaller than that of a small check-up, in this process."""
    votes = jaxeval.simulate_battles(500, 8, seed=0)
    monkeypatch.setattr(modules.steps, "board", lambda name: votes)
    monkeypatch.setattr(modules.command, "SMALL", modules.steps.SMALL._replace(resamples=(16,)))
    modules.command.work(tmp_path, ["machine", "S/16"], ends=modules.command.time.time() + 60, small=True)
    steps = modules.command.read(tmp_path)["steps"]
    assert [(name, step["state"]) for name, step in steps.items()] == [("machine", "done"), ("S/16", "done")]
    assert "S/16: done" in capsys.readouterr().out
    found = steps["S/16"]["found"]
    assert (found["votes"], found["models"], found["resamples"], found["converged"]) == (500, 8, 16, True)
    assert found["waited_seconds"]["in_programs"] > 0
    assert found["counted"]["words"] > 0


@pytest.mark.slow
def test_all_of_it_in_small(tmp_path, modules):
    record, said = run(tmp_path)
    assert "S/1,000: done" in said
    assert (tmp_path / "profile.xplane.pb").stat().st_size > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkup.json", "profile.xplane.pb"]
    assert set(record["steps"]) == {*modules.steps.steps_of(modules.steps.SMALL), "equality"}
    assert record["steps"]["other chunks"]["found"]["S"] == pytest.approx({"other_chunks": 0, "again": 0}, abs=1e-10)
    check(record, modules)


def test_a_step_that_ends_its_process_or_hangs_leaves_the_others(tmp_path, modules, monkeypatch):
    (tmp_path / "worker.py").write_text(WORKER)
    monkeypatch.setattr(modules.command, "__file__", str(tmp_path / "worker.py"))
    names = ["first", "aborts", "fails", "hangs", "does not begin", "last"]
    modules.command.write(tmp_path, {"steps": {}})
    modules.command.run_steps(tmp_path, names, ends=modules.command.time.time() + 60, most=0.5, small=True)
    steps = modules.command.read(tmp_path)["steps"]
    assert [steps[name]["state"] for name in names] == ["done", "cut", "failed", "cut", "cut", "done"]
    assert steps["aborts"]["why"] == "its process ended with exit code -6"
    assert "0 s of this deadline" in steps["hangs"]["why"]
    assert steps["does not begin"]["why"] == "its process ended with exit code 3"


def test_an_error_is_noted_and_ends_the_process_of_the_step(tmp_path, modules, monkeypatch, capsys):
    def fails(sizes, folder):
        raise ValueError("no such device")

    steps = {name: modules.steps.Step(fails, 1) for name in ("fails", "next")}
    monkeypatch.setattr(modules.command, "steps_of", lambda sizes: steps)
    modules.command.work(tmp_path, list(steps), ends=modules.command.time.time() + 60, small=True)
    found = modules.command.read(tmp_path)["steps"]
    assert list(found) == ["fails"]
    assert (found["fails"]["state"], found["fails"]["why"]) == ("failed", "ValueError: no such device")
    assert "no such device" in capsys.readouterr().err


def test_what_does_not_fit_is_skipped_and_said_so(tmp_path, modules, monkeypatch, capsys):
    (tmp_path / "worker.py").write_text(WORKER)
    monkeypatch.setattr(modules.command, "__file__", str(tmp_path / "worker.py"))
    modules.command.work(tmp_path, ["machine", "S/1,000"], ends=modules.command.time.time() + 3, small=True)
    modules.command.compare_with_cpu(tmp_path, ends=modules.command.time.time() + 3, most=1, small=True)
    steps = modules.command.read(tmp_path)["steps"]
    assert [step["state"] for step in steps.values()] == ["skipped"] * 3
    assert "before the deadline, and it starts with 15 at least" in steps["S/1,000"]["why"]
    assert capsys.readouterr().out.count("skipped") == 3
    # They run when there is time, and what is done does not run again.
    modules.command.check_up(tmp_path, ["machine"], deadline=30, small=True)
    assert modules.command.read(tmp_path)["steps"]["machine"]["state"] == "done"
    monkeypatch.setattr(modules.command, "__file__", "nowhere.py")
    modules.command.check_up(tmp_path, ["machine"], deadline=30, small=True)
    assert modules.command.read(tmp_path)["steps"]["machine"]["state"] == "done"
    with pytest.raises(SystemExit, match="other sizes"):
        modules.command.check_up(tmp_path, ["machine"], deadline=30, small=False)


def test_the_end_of_the_deadline_ends_what_runs(tmp_path, modules, monkeypatch):
    (tmp_path / "worker.py").write_text(WORKER)
    monkeypatch.setattr(modules.command, "__file__", str(tmp_path / "worker.py"))
    modules.command.write(tmp_path, {"steps": {}})
    monkeypatch.setattr(modules.command, "steps_of", lambda sizes: {"last": modules.steps.Step(len, 5)})
    modules.command.run_steps(tmp_path, ["hangs", "last"], modules.command.time.time() + 0.7, most=60, small=True)
    steps = modules.command.read(tmp_path)["steps"]
    assert (steps["hangs"]["state"], steps["hangs"]["why"]) == ("cut", "the deadline had passed")
    assert steps["last"]["state"] == "skipped"
    assert steps["last"]["why"] == "0 s were left before the deadline, and it starts with 5 at least"


def test_arrays_are_compared_as_finely_as_their_precision(tmp_path, modules):
    device, cpu = tmp_path / "device", tmp_path / "cpu"
    arrays = {
        "votes.plain.draws": ([1.0, np.nan, np.inf], [1.0 + 5e-7, np.nan, np.inf]),
        "votes.single.draws": ([1.0], [1.04]),
        "votes.ridge.draws": ([1.0], [1.0 + 2e-6]),
        "votes.thin.draws": ([1.0], [np.inf]),
        "votes.poisson.draws": ([1.0], None),
    }
    for place, k in ((device, 0), (cpu, 1)):
        place.mkdir()
        for name, values in arrays.items():
            if values[k] is not None:
                np.save(place / f"{name}.npy", values[k])
    (device / "whole").touch()
    (device / "sparse.failed").write_text("ValueError: no")
    found = modules.command._compared(device, cpu)
    assert found["too_far"] == ["votes.ridge.draws", "votes.thin.draws"]
    assert found["only_on_one"] == ["votes.poisson.draws"]
    assert found["failed"] == {"device, sparse": "ValueError: no", "cpu": "it did not come to its end"}


@pytest.mark.parametrize(("word", "dtype", "entry"), [("uint32", "float64", 4), ("uint64", "float64", 8),
                                                      ("uint64", "float32", 4)])  # fmt: skip
def test_bytes_are_counted_by_the_precision_of_the_tables(modules, word, dtype, entry):
    """Counts in 32-bit words are exact in single precision, whatever is solved in."""
    from jaxeval.kernels.resample import Packing

    form = SimpleNamespace(packing=Packing(np.dtype(word).type), dtype=np.dtype(dtype).type)
    problems = SimpleNamespace(
        units=SimpleNamespace(size=np.zeros((1, 3, 7))), data=SimpleNamespace(position=np.zeros((1, 8, 8)))
    )
    call = {"form": form, "problems": problems, "chunks": SimpleNamespace(numbers=np.zeros((1, 2, 16)))}
    work = modules.steps.Work.of([call], mean_steps=5.0, n_resamples=32)
    assert work == modules.steps.Work(
        table_bytes=16 * 64 * entry,
        bytes=32 * (2 * 7 * np.dtype(word).itemsize + 64 * entry * 6),
        product_flops=32 * 5 * 2 * 64,
        gradient_flops=32 * 5 * 4.75 * 64,
        words=32 * 21,
    )
    rates = {"bytes_per_second": {"1000": 8.0, "3000": 4.0, "100000": 1.0}, "random_words_per_second": 2.0,
             f"{dtype}_product_flops": 2.0, f"{dtype}_elementwise_flops": 4.0}  # fmt: skip
    least = work.least_seconds(rates, dtype)
    assert least["bytes"] == work.bytes / 4  # of the largest array that is no larger than the tables
    assert (least["product"], least["words"]) == (work.product_flops / 2, work.words / 2)


def test_the_page_has_rows_of_what_was_measured_alone(modules):
    row = {
        "votes": 25_000, "models": 55, "resamples": 1000, "first_call_seconds": 2.5, "seconds": {"median": 0.0032},
        "waited_seconds": {"in_programs": 0.001, "outside": 0.002},
    }  # fmt: skip
    record = {
        "steps": {
            "S/1,000": {"state": "done", "found": row, "peak_device_bytes": 34_000_000},
            "arena": {"state": "cut", "why": "the deadline had passed"},
            "M/1,000": {"state": "skipped", "why": "no time"},
        },
        "limits": {"S/1,000": {"times_the_limit": 3.21}},
    }
    section = modules.page.section(record)
    assert (
        "| S/1,000 | 25,000 votes, 55 models, 1,000 resamples | 2.50 s | 3.2 ms | 1.0 ms | 2.0 ms | 34 MB | 3.2 |\n"
        in section
    )
    assert section.count("\n| ") == 2 + 1
    assert section.endswith("Without a result: arena (cut), M/1,000 (skipped).")


def test_the_readme_has_the_page_of_the_results(modules):
    readme = modules.page.README.read_text()
    records = [json.loads(path.read_text()) for path in sorted(modules.page.RESULTS.glob("accelerator_*.json"))]
    assert modules.page.with_page(readme, modules.page.page(records)) == readme
    with pytest.raises(SystemExit, match="has no lines"):
        modules.page.with_page("no markers", "text")


def test_results_are_kept_by_device(tmp_path, modules, monkeypatch):
    monkeypatch.setattr(modules.page, "RESULTS", tmp_path)
    machine = {"state": "done", "found": {"device": "NVIDIA H200"}}
    (tmp_path / "checkup.json").write_text(json.dumps({"small": False, "steps": {"machine": machine}}))
    assert modules.page.kept(tmp_path) == tmp_path / "accelerator_nvidia-h200.json"
    for record, why in (({"small": True, "steps": {}}, "in small"), ({"small": False, "steps": {}}, "which device")):
        (tmp_path / "checkup.json").write_text(json.dumps(record))
        with pytest.raises(SystemExit, match=why):
            modules.page.kept(tmp_path)
