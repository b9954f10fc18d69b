"""The check-up of a GPU or TPU: one command that measures all there is to measure, in less than ten minutes.

    python benchmarks/accelerator.py --out checkup                   # on the device that JAX finds
    python benchmarks/accelerator.py --out checkup --deadline 200 --steps ceilings 'L/1,000' profile
    python benchmarks/accelerator.py --out checkup --small           # a quick look, on any machine
    python benchmarks/accelerator_page.py checkup                    # the table of benchmarks/README.md

The steps, in their order:

* `machine`: the machine, versions, devices. `ceilings`: bytes, operations and random words a second at most, on random
  data; what a launch and a turn of a loop take.
* `equality`: what every estimator gives (`unchanged.py`) beside a CPU, whose process runs at the same time. Ratings and
  draws may differ by 1e-6 Elo, those in single precision by 0.05.
* `S/1,000` to `L/10,000`: bootstraps of the boards of `bootstrap.py`: first call, median, time in compiled programs and
  outside of them, memory, and the work that was counted. `L/1,000, float32`: the same in single precision.
* `profile`: a trace of L/1,000, and its longest operations. `other chunks`: how far draws move in chunks of another
  size, and in another run. `L/1,000 in chunks of 128`, and of more.
* `arena`: 7,000,000 votes between 400 models in 29 categories, 10,000 resamples each. `soft-elo`: 25,000 battles of 55
  models; `soft-elo, large`: 1,000,000 of 300. `style control`: 2,000,000 rows with 4 covariates. `wide`: 200,000
  matches between 5,000 competitors.

`checkup.json` in the folder is written anew after every step. A step that raises an error leaves the others. So does
one that ends its process or takes longer than a third of the deadline: the others go on in a new process. A step that
no longer fits before the deadline is skipped, and the file says so. The same command goes on with what is not there
yet; to measure again, name another folder. The time of every bootstrap is compared with the least time that the
ceilings allow for the work that was counted.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import jax
import numpy as np
import unchanged
from accelerator_steps import FULL, SMALL, limits, steps_of
from harness import peak_memory_mb

from jaxeval.execution.atomic_write import whole_file

FILE = "checkup.json"
EQUALITY = "equality"
TOLERANCE, SINGLE_TOLERANCE = 1e-6, 0.05  # Elo
MOST_OF_DEADLINE = 1 / 3  # that one step may take
EQUALITY_NEEDS = 60.0  # seconds

Record = dict[str, Any]


def read(folder: Path) -> Record:
    """What the folder holds so far."""
    path = folder / FILE
    empty: Record = {"steps": {}}
    return json.loads(path.read_text()) if path.exists() else empty


def note(folder: Path, name: str, **said: Any) -> None:
    """Add to the folder what is known of a step."""
    record = read(folder)
    record["steps"][name] = said
    write(folder, record)


def write(folder: Path, record: Record) -> None:
    """Write what the folder holds, whole or not at all."""
    record["limits"] = limits(record["steps"])
    with whole_file(folder / FILE) as file:
        file.write((json.dumps(_plain(record), indent=1, allow_nan=False) + "\n").encode())


def _plain(x: Any) -> Any:
    """``x`` for JSON, without numbers that JSON does not have."""
    if isinstance(x, dict):
        return {str(key): _plain(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [_plain(value) for value in x]
    if isinstance(x, float | np.floating):
        return float(x) if math.isfinite(x) else None
    return x


def device_peak() -> int:
    """Most bytes of the device's memory that this process held so far; 0 where the device does not tell."""
    return (jax.local_devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0)


def work(folder: Path, names: list[str], ends: float, small: bool) -> None:
    """Run the steps in this process."""
    sizes = SMALL if small else FULL
    steps = steps_of(sizes)
    for name in names:
        left = ends - time.time()
        if left < steps[name].needs:
            skip(folder, name, left, steps[name].needs)
            continue
        note(folder, name, state="running", began=time.time())
        start = time.perf_counter()
        try:
            before = device_peak()
            found = steps[name].run(sizes, folder)
        except Exception as error:
            traceback.print_exc()
            why = f"{type(error).__name__}: {error}"[:1000]
            note(folder, name, state="failed", why=why, took_seconds=time.perf_counter() - start)
            print(f"{name}: failed after {time.perf_counter() - start:.1f} s", flush=True)
            return  # the device may be of no more use to this process
        took, peak = time.perf_counter() - start, device_peak()
        # Both peaks are of the process: one that did not rise tells only that the step took no more.
        peaks = {"peak_device_bytes": peak if peak > before else None, "peak_host_mb": peak_memory_mb()}
        note(folder, name, state="done", found=found, **peaks, took_seconds=took)
        print(f"{name}: done after {took:.1f} s", flush=True)


def skip(folder: Path, name: str, left: float, needs: float) -> None:
    """Say that a step of ``needs`` seconds does not fit into those that are ``left``."""
    why = f"{max(left, 0):.0f} s were left before the deadline, and it starts with {needs:.0f} at least"
    note(folder, name, state="skipped", why=why)
    print(f"{name}: skipped, {why}", flush=True)


def run_steps(folder: Path, names: list[str], ends: float, most: float, small: bool) -> None:
    """Run the steps in processes of their own: in a single one, unless a step fails or has to be cut."""
    while names:
        options = ["--worker", str(ends), "--out", str(folder), *(["--small"] if small else []), "--steps", *names]
        worker = subprocess.Popen([sys.executable, __file__, *options])
        why = _ended(worker, folder, ends, most)
        steps = read(folder)["steps"]
        cut = [name for name in names if steps.get(name, {}).get("state") == "running"]
        if names[0] not in steps and time.time() < ends:  # the process did not begin
            cut = names[:1]
        for name in cut:
            began = steps.get(name, {}).get("began", time.time())
            note(folder, name, state="cut", why=why, took_seconds=time.time() - began)
            print(f"{name}: cut, {why}", flush=True)
        names = [name for name in names if name not in read(folder)["steps"]]
        if time.time() >= ends:
            for name in names:
                skip(folder, name, 0, steps_of(SMALL if small else FULL)[name].needs)
            return


def _ended(worker: subprocess.Popen[bytes], folder: Path, ends: float, most: float) -> str:
    """Wait for the end of a process, or end it where it must; why it ended."""
    try:
        while worker.poll() is None:
            time.sleep(0.1)
            running = [s["began"] for s in read(folder)["steps"].values() if s["state"] == "running"]
            if time.time() > ends:
                return "the deadline had passed"
            if running and time.time() - running[0] > most:
                return f"a step gets {most:.0f} s of this deadline"
    finally:
        worker.kill()
        worker.wait()
    return f"its process ended with exit code {worker.returncode}"


def draw(folder: Path, small: bool) -> None:
    """Save what every estimator gives on this process's device, array by array, as far as it gets."""
    for estimator in unchanged.BOARDS[: 1 if small else None]:
        try:
            for k, (name, x) in enumerate(estimator()):
                with whole_file(folder / f"{estimator.__name__}.{name.replace('/', '.')}.npy") as file:
                    np.save(file, np.asarray(x, float))
                if small and k == 1:
                    break
        except Exception as error:
            traceback.print_exc()
            (folder / f"{estimator.__name__}.failed").write_text(f"{type(error).__name__}: {error}"[:500])
    (folder / "whole").touch()


def equality(folder: Path, seconds: float, small: bool) -> Record:
    """What estimators give on the device and on a CPU, side by side, as far as both get in these ``seconds``."""
    with tempfile.TemporaryDirectory() as kept:
        places = {"device": Path(kept) / "device", "cpu": Path(kept) / "cpu"}
        environ = {**os.environ, "JAXEVAL_DATA": kept}  # simulated boards alone
        started = []
        try:
            for name, place in places.items():
                place.mkdir()
                command = [sys.executable, __file__, "--draw", str(place), *(["--small"] if small else [])]
                platform = {"JAX_PLATFORMS": "cpu"} if name == "cpu" else {}
                started.append(subprocess.Popen(command, env={**environ, **platform}))
            ends = time.time() + seconds
            while time.time() < ends and any(process.poll() is None for process in started):
                time.sleep(0.1)
        finally:
            for process in started:
                process.kill()
                process.wait()
        return _compared(places["device"], places["cpu"])


def _compared(device: Path, cpu: Path) -> Record:
    found: Record = {"arrays": {}, "only_on_one": [], "too_far": [], "failed": {}}
    for place in (device, cpu):
        found["failed"] |= {f"{place.name}, {path.stem}": path.read_text() for path in place.glob("*.failed")}
        if not (place / "whole").exists():
            found["failed"][place.name] = "it did not come to its end"
    both = [{path.stem for path in place.glob("*.npy")} for place in (device, cpu)]
    found["only_on_one"] = sorted(both[0] ^ both[1])
    for name in sorted(both[0] & both[1]):
        x, y = (np.load(place / f"{name}.npy") for place in (device, cpu))
        farthest = unchanged.how_far(x, y) if x.shape == y.shape else math.nan
        most = SINGLE_TOLERANCE if ".single." in name else TOLERANCE
        found["arrays"][name] = farthest
        found["too_far"] += [] if farthest <= most else [name]
    return found


def compare_with_cpu(folder: Path, ends: float, most: float, small: bool) -> None:
    """The step `equality`, whose two processes are not the worker's."""
    left, start = ends - time.time(), time.perf_counter()
    if left < EQUALITY_NEEDS:
        skip(folder, EQUALITY, left, EQUALITY_NEEDS)
        return
    found = equality(folder, min(left, most), small)
    state = (
        "done" if found["arrays"] and not (found["failed"] or found["too_far"] or found["only_on_one"]) else "failed"
    )
    why = {} if state == "done" else {"why": f"too far: {found['too_far']}; failed: {found['failed']}"}
    note(folder, EQUALITY, state=state, **why, found=found, took_seconds=time.perf_counter() - start)
    print(f"{EQUALITY}: {len(found['arrays'])} arrays, {len(found['too_far'])} too far apart", flush=True)


def check_up(folder: Path, asked: list[str], deadline: float, small: bool) -> None:
    """Run all steps that were ``asked`` for and that the folder does not hold yet."""
    folder.mkdir(parents=True, exist_ok=True)
    record = read(folder)
    if record.setdefault("small", small) != small:
        raise SystemExit(f"{folder / FILE} holds a check-up of other sizes (--small): name another folder")
    ends, most = time.time() + deadline, MOST_OF_DEADLINE * deadline
    again = ("skipped", "running")  # what a check-up that was killed was at
    names = [name for name in asked if record["steps"].get(name, {}).get("state", "skipped") in again]
    for name in names:
        record["steps"].pop(name, None)
    write(folder, record)
    before = [name for name in names if name in ("machine", "ceilings")]
    run_steps(folder, before, ends, most, small)
    if EQUALITY in names:
        compare_with_cpu(folder, ends, most, small)
    run_steps(folder, [name for name in names if name not in (*before, EQUALITY)], ends, most, small)
    for name, row in read(folder)["limits"].items():
        print(f"{name}: {row['times_the_limit']:.1f} times the least that the ceilings allow")
    print(f"wrote {folder / FILE}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder of what is found")
    parser.add_argument("--deadline", type=float, default=540.0, help="seconds, after which nothing runs any more")
    parser.add_argument("--small", action="store_true", help="everything in small")
    parser.add_argument("--steps", nargs="+", metavar="STEP", help="these alone")
    parser.add_argument("--worker", type=float, help=argparse.SUPPRESS)  # run steps here, until then
    parser.add_argument("--draw", type=Path, help=argparse.SUPPRESS)  # save what estimators give here
    given = parser.parse_args()
    if given.draw:
        draw(given.draw, given.small)
        return
    if given.out is None:
        parser.error("--out FOLDER is needed")
    known = [*steps_of(SMALL if given.small else FULL), EQUALITY]
    asked = given.steps or known
    if unknown := [name for name in asked if name not in known]:
        parser.error(f"no such step: {'; '.join(unknown)}. There are {'; '.join(known)}")
    if given.worker:
        work(given.out, asked, given.worker, given.small)
    else:
        check_up(given.out, asked, given.deadline, given.small)


if __name__ == "__main__":
    main()
