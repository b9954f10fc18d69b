"""Timing, machine and versions, and JSON results, shared by the benchmarks."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import resource
import statistics
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np
import pandas as pd
from peers import Board

from jaxeval import Battles, simulate_votes

T = TypeVar("T")

RESULTS = Path(__file__).parent / "results"
_PACKAGES = (
    "jaxeval",
    "jax",
    "jaxlib",
    "numpy",
    "pandas",
    "scipy",
    "choix",
    "evalica",
    "leaderbot",
    "scikit-learn",
    "arena-rank",
    "ppi-python",
    "pingouin",
    "pyarrow",
    "duckdb",
    "polars",
    "narwhals",
)


def seconds(run: Callable[[], Any], repeats: int) -> dict[str, float]:
    """Median, least and greatest wall-clock seconds of ``repeats`` calls; ``run`` returns finished (host) results."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return {"median": statistics.median(times), "min": min(times), "max": max(times), "repeats": repeats}


def first_and_later(run: Callable[[], T], repeats: int) -> tuple[T, float, dict[str, float]]:
    """What the first call of ``run`` returns, the seconds it takes, and the `seconds` of ``repeats`` later ones."""
    start = time.perf_counter()
    found = run()
    return found, time.perf_counter() - start, seconds(run, repeats)


def asked_sizes(doc: str, **defaults: int) -> argparse.Namespace:
    """Sizes of a benchmark with that ``doc``, each an option of the command line; prints the `environment`."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    print(environment())
    return asked


def environment() -> dict[str, Any]:
    """Machine and versions."""
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "load_average": os.getloadavg(),  # of 1, 5 and 15 minutes: whether others were at work
        "device": jax.devices()[0].device_kind,
        "python": platform.python_version(),
        "versions": found,
    }


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def peak_memory_mb() -> float:
    """Peak resident memory of this process so far, MB."""
    try:
        # Of this program alone: getrusage starts from that of the process that forked it.
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def save(name: str, result: dict[str, Any]) -> None:
    """Write ``result`` with the environment to results/<name>.json, and say so."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"environment": environment(), **result}, indent=1) + "\n")
    print(f"wrote {path.relative_to(Path(__file__).parent.parent)}")


def as_battles(board: Board) -> Battles:
    """A peer's board as jaxeval reads it."""
    names = np.array([f"model-{k:03d}" for k in range(board.n_models)])
    votes = {
        "model_a": pd.Categorical.from_codes(board.model_a, names),
        "model_b": pd.Categorical.from_codes(board.model_b, names),
        "target": board.target,
    }
    return Battles.from_pandas(pd.DataFrame(votes))


def arena_battles(n_votes: int, n_models: int, n_categories: int = 29) -> Battles:
    """Battles with a column ``category``, the k-th of which has a k-th of the votes of the first."""
    rng = np.random.default_rng(0)
    votes = simulate_votes(n_votes, n_models, seed=0, popularity_exponent=0.3)
    share = np.arange(1, n_categories + 1) ** -1.0
    votes["category"] = rng.choice(n_categories, n_votes, p=share / share.sum())
    return Battles.from_pandas(votes)


def styled_battles(n_votes: int, n_models: int) -> tuple[Battles, list[str]]:
    """Battles with four covariates, and the names of these."""
    votes, rng = simulate_votes(n_votes, n_models, seed=0), np.random.default_rng(0)
    names = ["length", "headers", "lists", "bold"]
    for name in names:
        votes[name] = rng.normal(size=n_votes)
    return Battles.from_pandas(votes), names


def compared(ours: dict[str, float], first: float, **theirs: float) -> dict[str, Any]:
    """Our seconds, those of compiling by the ``first`` call, and of each of ``theirs`` the seconds and the ratio."""
    found: dict[str, Any] = {"jaxeval_seconds": ours, "compile_seconds": first - ours["median"]}
    for name, elapsed in theirs.items():
        found |= {f"{name}_seconds": elapsed, f"{name}_ratio": elapsed / ours["median"]}
    return found
