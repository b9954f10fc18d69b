"""How time and memory grow with the votes, the models, the resamples and the devices.

    python benchmarks/scaling.py

Each point runs in a process of its own, which measures its peak memory; the second of two calls is timed. Devices are
virtual ones that share the cores, so they show what sharing costs, not what more hardware would gain. Writes
`results/scaling.json` and the figure `scaling.png`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness import environment, save

# Every other quantity is held at: 200,000 votes, 130 models, 1,000 resamples, one device.
BASE = {"votes": 200_000, "models": 130, "resamples": 1000, "devices": 1}
SWEEPS = {
    "votes": [20_000, 63_000, 200_000, 630_000, 2_000_000, 6_300_000],
    "models": [16, 32, 64, 130, 260, 520, 900],
    "resamples": [100, 316, 1000, 3160, 10_000, 31_600],
    "devices": [1, 2, 4, 8],
}
POINT = """
import json, sys, time
import jaxeval
from harness import peak_memory_mb
from jaxeval.data.simulated_votes import simulate_battles
votes, models, resamples = map(int, sys.argv[1:])
battles = simulate_battles(votes, models, seed=0, popularity_exponent=0.3)
battles.cells
before = peak_memory_mb()
seconds = []
for _ in range(3):
    start = time.perf_counter()
    result = jaxeval.bootstrap(battles, resamples, progress=False)
    seconds.append(time.perf_counter() - start)
print(json.dumps({"seconds": min(seconds[1:]), "first_call_seconds": seconds[0], "peak_memory_mb": peak_memory_mb(),
                  "peak_memory_before_mb": before, "converged": bool(result.converged.all()),
                  "by_slower_solvers": result.n_by_slower_solvers}))
"""


def measure(votes: int, models: int, resamples: int, devices: int) -> dict[str, Any]:
    flags = f"--xla_force_host_platform_device_count={devices}" if devices > 1 else ""
    environ = {**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": _path()}
    command = [sys.executable, "-c", POINT, str(votes), str(models), str(resamples)]
    return json.loads(subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout)


def _path() -> str:
    return os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])


def draw(sweeps: dict[str, list[dict[str, Any]]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(sweeps), figsize=(11, 5), sharey="row", sharex="col", layout="constrained")
    for column, (name, points) in zip(axes.T, sweeps.items(), strict=True):
        x = [p[name] for p in points]
        for axis, key, style in ((column[0], "seconds", "o-"), (column[1], "peak_memory_mb", "s-")):
            axis.plot(x, [p[key] for p in points], style, color="#20558a")
            if name != "devices":
                axis.set_xscale("log")
            axis.grid(alpha=0.3)
        column[0].set_yscale("log")
        column[1].set_ylim(bottom=0)
        column[1].set_xlabel(name)
    axes[0, 0].set_ylabel("seconds of a bootstrap")
    axes[1, 0].set_ylabel("peak memory, MB")
    figure.savefig(path, dpi=120)


def main() -> None:
    print(environment())
    sweeps: dict[str, list[dict[str, Any]]] = {}
    for name, values in SWEEPS.items():
        sweeps[name] = []
        for value in values:
            setting = {**BASE, name: value}
            point = {**setting, **measure(**setting)}
            sweeps[name].append(point)
            print(f"  {name} {value:>9,}: {point['seconds']:8.3f} s, {point['peak_memory_mb']:6.0f} MB", flush=True)
    save("scaling", {"base": BASE, "sweeps": sweeps})
    draw(sweeps, Path(__file__).parent / "scaling.png")


if __name__ == "__main__":
    main()
