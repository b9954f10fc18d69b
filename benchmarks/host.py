"""What the host takes beside the device: bootstraps whose compiled programs return at once.

    python benchmarks/host.py                    # S, M and L with 1,000 resamples, and the arena case
    python benchmarks/host.py --repeats 9 --arena 0

Boards are those of `bootstrap.py`. The arena case has 7,000,000 votes between 400 models in 29 categories, each rated
by itself, with 10,000 resamples: 116 million draws. Chunks are those of an accelerator, whose programs (the fit, its
information, the refits) are replaced by ones that return zeros. So the time is what is left when a device takes none:
tables, calls, copies of results, ratings. Memory is the most that the process held beyond what it held before the call.
"""

from __future__ import annotations

import argparse
import gc
import resource
import statistics
import time
from pathlib import Path
from typing import Any

from at_once import at_once
from harness import arena_battles, as_battles, environment, peak_memory_mb, save
from peers import simulate_board

import jaxeval

#: Seconds that the host may take.
GOALS = {"S": 0.003, "M": 0.006, "L": 0.012, "arena": 3.0}
ARENA_GOAL_MB = 2000


def system_seconds() -> float:
    """Of all cores, that the operating system worked for this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_stime


def timed(run: Any, repeats: int) -> dict[str, Any]:
    """Seconds of ``repeats`` calls after a first one; and the least of all cores together, and of these the system's.

    The system's are those of fresh memory. A virtual machine may have to ask its host for it, page by page.
    """
    run()
    wall, cores = [], []
    for _ in range(repeats):
        start, used, of_system = time.perf_counter(), time.process_time(), system_seconds()
        run()
        wall.append(time.perf_counter() - start)
        cores.append((time.process_time() - used, system_seconds() - of_system))
    seconds = {"median": statistics.median(wall), "min": min(wall), "max": max(wall), "repeats": repeats}
    least, of_system = min(cores)
    return {"seconds": seconds, "least_cpu_seconds": least, "system_seconds_of_these": of_system}


def peak_beyond_mb(run: Any) -> float:
    """The most memory that a call held beyond what was held before it, MB; Linux only."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew from what is held
    before = peak_memory_mb()
    run()
    return (peak_memory_mb() - before) * 2**20 / 1e6


def shown(name: str, row: dict[str, Any]) -> dict[str, Any]:
    seconds = row["seconds"]
    row["goal_seconds"] = GOALS[name]
    print(
        f"  {name:6s} {1e3 * seconds['median']:8.1f} ms ({1e3 * seconds['min']:.1f} to {1e3 * seconds['max']:.1f}), "
        f"{1e3 * row['least_cpu_seconds']:.1f} ms of all cores, {1e3 * row['system_seconds_of_these']:.1f} of them the "
        f"system's; the goal is {1e3 * GOALS[name]:.0f} ms"
    )
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=99)
    parser.add_argument("--arena", type=int, default=5, help="repeats of the arena case; 0 leaves it out")
    asked = parser.parse_args()
    print(environment())
    results: dict[str, Any] = {}
    with at_once():
        for name in "SML":
            battles = as_battles(simulate_board(name))
            _ = battles.cells  # compressing is part of reading, benchmarks/reading.py
            run = lambda battles=battles: jaxeval.bootstrap(battles, 1000, progress=False)  # noqa: E731
            results[name] = shown(name, timed(run, asked.repeats))
        if asked.arena:
            battles = arena_battles(7_000_000, 400)
            run = lambda: jaxeval.bootstrap(battles, 10_000, by="category", progress=False)  # noqa: E731
            results["arena"] = shown("arena", timed(run, asked.arena))
            peak = peak_beyond_mb(run)
            results["arena"] |= {"peak_memory_beyond_mb": peak, "goal_mb": ARENA_GOAL_MB}
            print(f"         {peak:.0f} MB beyond the battles; the goal is {ARENA_GOAL_MB}")
            save("host", {"results": results})


if __name__ == "__main__":
    main()
