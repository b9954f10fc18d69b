"""Where the time of a bootstrap goes, what limits it, and what options cost beside a plain one.

    python benchmarks/limits.py
    python benchmarks/limits.py --repeats 3

Boards are those of `bootstrap.py`, with 1,000 resamples. Times are those of all cores together, so that what else runs
on the machine changes them little. The parts of a warm call are told apart by running its compiled program again: with
no step of the solver, draws and tables are left. Beside them stands what the memory of the machine gives a copy.

A first run of the command is taken apart by what JAX logs: tracing, lowering and compiling of each program. Options are
timed beside the plain bootstrap of the same votes: models of ties, the probit, and a board of 300 models of which eight
have six votes each.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np
from harness import as_battles, asked_sizes, save
from peers import Board, simulate_board
from whole_process import N_RESAMPLES, write_votes

import jaxeval
from jaxeval.execution.precision import double_precision
from jaxeval.kernels.batch.refits import refit

_LOGGED = re.compile(r"Finished (tracing|jaxpr to MLIR module conversion|XLA compilation of)\W+(?:jit\()?(\S+?)\)?"
                     r"(?: for jit| to MLIR.*)? in ([\d.e-]+) sec")  # fmt: skip
_FEW_MODELS, _FEW_VOTES = 8, 6


def cpu_seconds(run: Callable[[], Any], repeats: int) -> float:
    """The least seconds of all cores together that a call takes, after a first one."""
    run()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def copied_gigabytes_per_second(repeats: int) -> float:
    """Bytes read and written by a copy on all cores, for each second of one core."""
    size = 2**26
    halves = [jnp.zeros(size, jnp.float32) for _ in range(2)]
    program = jax.jit(lambda x, y: (x + 1, y + 1), donate_argnums=(0, 1))

    def run() -> None:
        nonlocal halves
        halves = list(jax.block_until_ready(program(*halves)))

    return 2 * 2 * 4 * size / cpu_seconds(run, repeats) / 1e9


def parts_of_a_call(name: str, repeats: int) -> dict[str, Any]:
    """Seconds of all cores: the whole call, its program, and the program without steps of the solver."""
    battles = as_battles(simulate_board(name))
    _ = battles.cells  # compressing is part of reading

    def bootstrap() -> Any:
        return jaxeval.bootstrap(battles, N_RESAMPLES, progress=False)

    calls: list[dict[str, Any]] = []
    called = type(refit).__call__

    def recorded(program: Any, *arguments: Any, **options: Any) -> Any:
        if program is refit:
            calls.append(program.signature.bind(*arguments, **options).arguments)
        return called(program, *arguments, **options)

    with patch.object(type(refit), "__call__", recorded):
        result = bootstrap()

    def program(max_steps: int | None = None) -> Any:
        ends = []
        for call in calls:
            terms = call["terms"]
            terms = terms if max_steps is None else terms._replace(max_steps=np.asarray(max_steps, np.int32))
            ends.append(refit(**{**call, "terms": terms}))
        return jax.block_until_ready(ends)

    with double_precision():
        steps = np.concatenate([_steps(end.n_steps) for end in program()])
        refits = cpu_seconds(program, repeats)
        drawn = cpu_seconds(lambda: program(0), repeats)
    whole = cpu_seconds(bootstrap, repeats)
    size = calls[0]["problems"].start.shape[-1]
    entries = float(steps.sum()) * size**2
    return {
        "votes": battles.n_battles,
        "models": battles.n_models,
        "padded_models": size,
        "cpu_seconds": {"call": whole, "program": refits, "draws_and_tables": drawn, "solver": refits - drawn},
        "draws_nanoseconds_each": 1e9 * drawn / (N_RESAMPLES * len(battles.cells.count)),
        "solver_nanoseconds_per_entry_and_step": 1e9 * (refits - drawn) / entries,
        "steps_run": float(steps.sum() / N_RESAMPLES),
        "steps_needed": float(np.mean(result.n_steps)),
    }


def _steps(n_steps: jax.Array) -> np.ndarray:
    """Steps that the lanes of each chunk run: those of its slowest lane, for all of them."""
    by_chunk = np.asarray(n_steps)
    return by_chunk.max(-1).reshape(-1) * by_chunk.shape[-1]


def first_run(board: str) -> dict[str, dict[str, float]]:
    """Seconds of tracing, lowering and compiling the programs of the command's first run."""
    with tempfile.TemporaryDirectory() as folder:
        votes = Path(folder) / "votes.parquet"
        write_votes(board, votes)
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("JAX", "XLA"))}
        environ |= {"XDG_CACHE_HOME": folder, "JAX_LOG_COMPILES": "1"}
        command = [sys.executable, "-m", "jaxeval", "leaderboard", str(votes), "--resamples", str(N_RESAMPLES)]
        said = subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stderr
    found: dict[str, dict[str, float]] = {}
    for kind, program, seconds in _LOGGED.findall(said):
        own = found.setdefault(program.strip("<>"), {"tracing": 0.0, "lowering": 0.0, "compiling": 0.0})
        own[{"tr": "tracing", "ja": "lowering", "XL": "compiling"}[kind[:2]]] += float(seconds)
    return found


def with_a_sparse_part(board: Board) -> Board:
    """The board without the votes of its last models, but for a few of each."""
    few = np.arange(board.n_models - _FEW_MODELS, board.n_models)
    of_few = [np.flatnonzero((board.model_a == k) | (board.model_b == k))[:_FEW_VOTES] for k in few]
    others = ~np.isin(board.model_a, few) & ~np.isin(board.model_b, few)
    kept = np.union1d(np.flatnonzero(others), np.concatenate(of_few))
    return replace(board, model_a=board.model_a[kept], model_b=board.model_b[kept], target=board.target[kept])


def options(repeats: int) -> dict[str, float]:
    """Processor time of bootstraps with an option, divided by that of the plain one."""

    def timed(battles: Any, **asked: Any) -> float:
        return cpu_seconds(lambda: jaxeval.bootstrap(battles, N_RESAMPLES, progress=False, **asked), repeats)

    small, large = as_battles(simulate_board("S")), simulate_board("L")
    plain = timed(small)
    found = {
        "ties davidson, S": timed(small, ties="davidson") / plain,
        "ties rao_kupper, S": timed(small, ties="rao_kupper") / plain,
        "link probit, S": timed(small, link="probit") / plain,
    }
    sparse = timed(as_battles(with_a_sparse_part(large)))
    return found | {"a sparse part, L": sparse / timed(as_battles(large))}


def main() -> None:
    """Measure all."""
    repeats = asked_sizes(__doc__, repeats=7).repeats
    memory = copied_gigabytes_per_second(repeats)
    print(f"a copy moves {memory:.0f} GB for each second of a core")
    boards = {}
    for name in "SML":
        boards[name] = row = parts_of_a_call(name, repeats)
        own = {part: round(1e3 * seconds, 1) for part, seconds in row["cpu_seconds"].items()}
        each, entry = row["draws_nanoseconds_each"], row["solver_nanoseconds_per_entry_and_step"]
        print(
            f"{name}: milliseconds of all cores {own}; a draw {each:.2f} ns, an entry of a table {entry:.2f} ns a step"
        )
        print(f"   {row['steps_run']:.1f} steps run for {row['steps_needed']:.1f} needed")
    compiled = first_run("S")
    for program, own in compiled.items():
        print(f"first run, {program}: {', '.join(f'{kind} {seconds:.2f} s' for kind, seconds in own.items())}")
    costs = options(repeats)
    for name, ratio in costs.items():
        print(f"{name}: {ratio:.1f} times the plain bootstrap")
    save(
        "limits",
        {"copy_gigabytes_per_core_second": memory, "boards": boards, "first_run_s": compiled, "options": costs},
    )


if __name__ == "__main__":
    main()
