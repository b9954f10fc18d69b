"""What a bootstrap on accelerators returns, by the compiler's word, and how it is shared among devices.

    python benchmarks/transfer.py

Boards S, M and L of `bootstrap.py`, with 1,000 and 10,000 resamples, on 1, 2, 6 and 8 devices: a process for each
number of devices, which are virtual. The calls are recorded in chunks of the sizes that an accelerator gets, and the
program is compiled, for the CPU. Its output bytes times its calls are compared with the bytes of the results; and the
lanes that the busiest device runs with its share of the resamples.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import jax
import numpy as np
from at_once import at_once
from harness import as_battles, environment, save
from peers import simulate_board

import jaxeval
from jaxeval.execution.precision import double_precision

DEVICES = (1, 2, 6, 8)
RESAMPLES = (1000, 10_000)
GOAL = 1.5  # bytes returned over those of the results


def recorded(refit: Any, calls: list[tuple[Any, Any]], n_resamples: int) -> dict[str, Any]:
    """The bytes that the ``calls`` of ``refit``, arguments and results, return, and the lanes that they run."""
    args, results = calls[0]
    with double_precision():
        compiled = refit.lower(*args).compile()
    n_devices = jax.local_device_count()
    returned = compiled.memory_analysis().output_size_in_bytes * n_devices * len(calls)
    of_lane = sum(x.nbytes // int(np.prod(x.shape[:3])) for x in jax.tree.leaves(results))
    chunks = np.sum([np.asarray(args[-1].n_chunks) for args, _ in calls], axis=0)
    lanes = chunks * args[-1].numbers.shape[-1]
    return {
        "resamples": n_resamples,
        "calls": len(calls),
        "returned_bytes": returned,
        "times_the_results": returned / (of_lane * n_resamples),
        "lanes_of_devices": lanes.tolist(),
        "busiest_times_its_share": int(lanes.max()) * n_devices / n_resamples,
    }


def on_these_devices() -> dict[str, list[dict[str, Any]]]:
    """Every board, on the devices of this process."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for name in "SML":
        battles = as_battles(simulate_board(name))
        for n_resamples in RESAMPLES:
            calls: list[tuple[Any, Any]] = []
            with at_once() as programs:
                programs["refit"].note = lambda *call, calls=calls: calls.append(call)
                jaxeval.bootstrap(battles, n_resamples, progress=False)
            rows.setdefault(name, []).append(recorded(programs["refit"].program, calls, n_resamples))
    return rows


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(on_these_devices()))
        return
    print(environment())
    found = {}
    for n_devices in DEVICES:
        flags = f"--xla_force_host_platform_device_count={n_devices}"
        environ = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
        command = [sys.executable, __file__, "here"]
        output = subprocess.run(command, env=environ, check=True, stdout=subprocess.PIPE, text=True).stdout
        found[str(n_devices)] = json.loads(output)
        for name, rows in found[str(n_devices)].items():
            for row in rows:
                busy = sum(lanes > 0 for lanes in row["lanes_of_devices"])
                print(
                    f"  {name}, {row['resamples']:6,} resamples, {n_devices} devices: "
                    f"{row['returned_bytes'] / 1e6:6.1f} MB, {row['times_the_results']:.2f} times the results; "
                    f"{busy} devices at work, the busiest with {row['busiest_times_its_share']:.2f} times its share"
                )
    save("transfer", {"goal_times_the_results": GOAL, "devices": found})


if __name__ == "__main__":
    main()
