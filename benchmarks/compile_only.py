"""What compilers say of every program for a TPU v5e or an H200, neither of which it takes.

    pip install -e '.[test,aot]' 'jax[cuda13]'     # in an environment of its own: several gigabytes
    JAX_PLATFORMS=cpu python benchmarks/compile_only.py cuda
    JAX_PLATFORMS=cpu python benchmarks/compile_only.py tpu --estimates '^[SM],' --programs refit

The calls are those that estimators make there, recorded: a chunk of each has as many lanes as on the real device. It
writes results/compiled_cuda.json or results/compiled_tpu.json: of each program the bytes of a device's memory, those
that `memory_limit` counts with, and the loops and conditionals for which a GPU waits for the host. Nothing is run.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
from harness import RESULTS, as_battles, save, styled_battles
from peers import simulate_board
from wide import simulate as simulate_wide

import jaxeval
from jaxeval import Battles

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from aot.calls import Call, compiled, record
from aot.topologies import DEVICES, what_lacks


def _bootstrap(make: Callable[[], Battles], **options: Any) -> None:
    jaxeval.bootstrap(make(), 1000, progress=False, **options)


def _peers(board: str) -> Battles:
    return as_battles(simulate_board(board))


def _style() -> None:
    battles, names = styled_battles(200_000, 130)
    _bootstrap(lambda: battles, features=names)


def _soft_elo(n_battles: int, n_models: int) -> None:
    judged = jaxeval.simulate_judged_battles(n_battles, n_models, seed=0)
    jaxeval.soft_elo(judged, n_resamples=1000, progress=False)


ESTIMATES: dict[str, Callable[[], None]] = {
    **{
        f"{board}, {dtype}": partial(_bootstrap, partial(_peers, board), dtype=dtype)
        for board in "SML"
        for dtype in ("float64", "float32")
    },
    "M, bayesian": partial(_bootstrap, partial(_peers, "M"), scheme="bayesian"),
    "style control, 200,000 rows of 4 covariates": _style,
    "wide, 5,000 models": partial(_bootstrap, lambda: Battles.from_pandas(simulate_wide(200_000, 5_000))),
    "Soft-Elo, 25,000 battles of 55 models": partial(_soft_elo, 25_000, 55),
    "Soft-Elo, 1,000,000 battles of 300 models": partial(_soft_elo, 1_000_000, 300),
}


def figures_of(call: Call) -> dict[str, Any]:
    """Those of the compiler, and what the call says of its lanes; or why it was not compiled."""
    start = time.perf_counter()
    try:
        found: dict[str, Any] = compiled(call)._asdict()
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"[:400]}
    if call.mesh.devices.flat[0].platform == "tpu":  # which runs its loops without the host
        del found["host_loops"], found["launches"]
    found["seconds"] = round(time.perf_counter() - start, 1)
    if call.lanes is not None:
        found["lanes_of_chunk"] = call.lanes.size
        found["bytes_by_memory_limit"] = call.lanes.bytes_said
        found["returned_by_needed"] = round(call.lanes.returned / call.lanes.needed, 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("platform", choices=DEVICES)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--estimates", default="", help="regular expression of those to record")
    parser.add_argument("--programs", default="", help="regular expression of those to compile")
    arguments = parser.parse_args()
    if lack := what_lacks(arguments.platform):
        parser.error(lack)
    devices = DEVICES[arguments.platform]()[: arguments.devices]
    name, programs = f"compiled_{arguments.platform}", dict[str, Any]()
    if (RESULTS / f"{name}.json").exists():  # other programs stay
        programs = json.loads((RESULTS / f"{name}.json").read_text())["programs"]
    for title, estimate in ESTIMATES.items():
        for call in record(estimate, devices) if re.search(arguments.estimates, title) else []:
            if call.lanes is not None and re.search(arguments.programs, call.name):
                figures = {"compiled_with": f"jax {jax.__version__}", **figures_of(call)}
                print(f"{title}, {call.name}: {figures}", flush=True)
                programs[f"{title}, {call.name}"] = figures
                save(name, {"compiled_for": devices[0].device_kind, "programs": programs})


if __name__ == "__main__":
    main()
