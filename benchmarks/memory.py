"""Peak memory and time of 10,000 resamples of 2 million votes between 300 models.

python benchmarks/memory.py
"""

from __future__ import annotations

import time

from harness import as_battles, environment, peak_memory_mb, save
from peers import simulate_board

import jaxeval

N_RESAMPLES = 10_000


def main() -> None:
    print(environment())
    battles = as_battles(simulate_board("L"))
    before = peak_memory_mb()
    start = time.perf_counter()
    result = jaxeval.bootstrap(battles, N_RESAMPLES, progress=False)
    elapsed = time.perf_counter() - start
    peak = peak_memory_mb()
    print(f"  {elapsed:.2f} s with compiling, peak {peak:.0f} MB ({before:.0f} MB before: votes, imports)")
    save(
        "memory",
        {
            "resamples": N_RESAMPLES,
            "seconds_with_compiling": elapsed,
            "peak_memory_mb": peak,
            "peak_memory_before_mb": before,
            "converged": bool(result.converged.all()),
        },
    )


if __name__ == "__main__":
    main()
