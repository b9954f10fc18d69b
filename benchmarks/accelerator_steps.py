"""What `accelerator.py` measures: each step is a function of the sizes that returns what it found, for JSON."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np
from harness import arena_battles, as_battles, environment, first_and_later, seconds, styled_battles
from jax import lax
from peers import simulate_board
from wide import simulate as simulate_wide

import jaxeval
from jaxeval import Battles
from jaxeval.execution.precision import double_precision
from jaxeval.kernels import squares
from jaxeval.kernels.batch.programs import Program

Found = dict[str, Any]


class Sizes(NamedTuple):
    """How much is measured."""

    boards: tuple[str, ...]  # of `peers.BOARD_SIZES`
    resamples: tuple[int, ...]
    repeats: int  # later calls, of which the median is taken
    arena: tuple[int, int, int, int]  # votes, models, categories, resamples
    soft_elo: tuple[tuple[int, int, int], ...]  # battles, models, resamples
    style: tuple[int, int, int]  # votes, models, resamples
    wide: tuple[int, int, int]  # matches, models, resamples
    chunks: tuple[int, ...]  # lanes of a chunk of the last board
    numbers: tuple[int, ...]  # of the arrays whose copying is timed
    matrix: int  # rows of the matrices


FULL = Sizes(
    boards=("S", "M", "L"),
    resamples=(1000, 10_000),
    repeats=9,
    arena=(7_000_000, 400, 29, 10_000),
    soft_elo=((25_000, 55, 1000), (1_000_000, 300, 1000)),
    style=(2_000_000, 300, 1000),
    wide=(200_000, 5_000, 100),
    chunks=(128, 256, 512, 1024, 2048),
    numbers=(2**17, 2**20, 2**23, 2**26),  # of 1 MB to half a GB
    matrix=8192,
)
SMALL = Sizes(
    boards=("S",),
    resamples=(1000,),
    repeats=2,
    arena=(6000, 20, 3, 64),
    soft_elo=((3000, 12, 256),),
    style=(3000, 20, 64),
    wide=(2000, 300, 20),
    chunks=(64,),
    numbers=(2**14, 2**20),
    matrix=256,
)


class Step(NamedTuple):
    """One thing to measure."""

    run: Callable[[Sizes, Path], Found]
    needs: float  # seconds: it does not start when fewer are left


# --- the machine and its ceilings ---------------------------------------------------------------


def machine(sizes: Sizes, folder: Path) -> Found:
    """The machine, versions, devices and flags."""
    device = jax.devices()[0]
    query = "--query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit"
    smi = shutil.which("nvidia-smi")
    said = smi and subprocess.run([smi, query, "--format=csv,noheader"], capture_output=True, text=True, check=False)
    return {
        **environment(),
        "platform": device.platform,
        "devices": [str(d) for d in jax.devices()],
        "backend": device.client.platform_version,
        "nvidia_smi": said.stdout.strip() if said else None,
        "flags": {name: value for name, value in os.environ.items() if name.startswith(("XLA_", "JAX_"))},
    }


def ceilings(sizes: Sizes, folder: Path) -> Found:
    """What the device can do at most, on random data."""
    if jax.default_backend() == "cpu":  # seconds instead of minutes
        sizes = sizes._replace(numbers=tuple(n for n in sizes.numbers if n <= 2**23), matrix=min(sizes.matrix, 1024))
    rates: Found = {"bytes_per_second": {8 * n: _copying(n) for n in sizes.numbers}}
    with double_precision():
        for kind in ("float64", "float32"):
            matrices = [jax.random.normal(jax.random.key(1), (m, m), kind) for m in (sizes.matrix // 4, sizes.matrix)]
            rates[f"{kind}_product_flops"] = max(2 * len(a) ** 3 / _least(_product, a) for a in matrices)
            arrays = [jax.random.normal(jax.random.key(2), (n,), kind) for n in sizes.numbers]
            rates[f"{kind}_elementwise_flops"] = max(2 * _TERMS * x.size / _least(_polynomials, x) for x in arrays)
        words = [(_ROWS * n / _least(partial(_words, n), jnp.uint64(1))) for n in sizes.numbers]
        rates["random_words_per_second"] = max(words)
        few = jnp.ones(8)
        rates["launch_seconds"] = _least(jax.jit(lambda x: x + 1), few, repeats=99)
        turns = jax.jit(lambda n, x: lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 1.5), (0, x)))
        rates["while_turn_seconds"] = max(_least(turns, 1001, few) - _least(turns, 1, few), 0.0) / 1000
        if jax.default_backend() != "cpu":  # which fetches nothing
            host = np.random.default_rng(0).normal(size=sizes.numbers[-1] // 8)
            rates["bytes_per_second_to_device"] = host.nbytes / _least(jax.device_put, host)
            rates["bytes_per_second_to_host"] = host.nbytes / _fetching(host)
    return rates


_TERMS = 256  # multiplications and additions of a number
_CHAINS = 8  # that do not wait for each other
_ROWS = 3  # words of a column, as packed units have


@jax.jit
def _product(a: jax.Array) -> jax.Array:
    return jnp.matmul(a, a, precision="highest")


@jax.jit
def _polynomials(x: jax.Array) -> jax.Array:
    chains = [x + k for k in range(_CHAINS)]
    for _ in range(_TERMS // _CHAINS):
        chains = [y * x + 0.5 for y in chains]
    return sum(chains[1:], chains[0])


@partial(jax.jit, static_argnums=0)
def _words(n: int, key: jax.Array) -> jax.Array:
    """As the draws of packed units make them: a column's product is shared by its rows."""
    product = jnp.arange(n, dtype=jnp.uint64) * key
    words = [squares.words32_of_product(product + np.uint64(row << 32) * key, key) for row in range(_ROWS)]
    return words[0] ^ words[1] ^ words[2]


def _least(run: Callable[..., Any], *arguments: Any, repeats: int = 5) -> float:
    """Seconds of the quickest call after a first one: what other work takes is no ceiling."""
    return first_and_later(lambda: jax.block_until_ready(run(*arguments)), repeats)[2]["min"]


def _copying(n: int) -> float:
    """Bytes a second, read and written, of scaling ``n`` doubles again and again; a cache may hold them."""
    turns = max(2**26 // n, 4)
    with double_precision():
        x = jax.random.normal(jax.random.key(0), (n,), "float64")
        again = jax.jit(lambda x, factor: lax.fori_loop(0, turns, lambda _, x: x * factor, x))
        return 16 * n * turns / _least(again, x, 0.999)


def _fetching(host: np.ndarray) -> float:
    """Seconds of copying an array to the host; JAX keeps a copy, so that each one is fetched once."""
    arrays = iter(jax.block_until_ready([jax.device_put(host) + k for k in range(4)]))
    return first_and_later(lambda: np.asarray(next(arrays)), 3)[2]["min"]


# --- calls --------------------------------------------------------------------------------------


class Watched(NamedTuple):
    """The calls of compiled programs in a context."""

    seconds: dict[str, float]  # by program, each call waited for: computing, and sending the arguments
    refits: list[dict[str, Any]]  # arguments of the calls that refit tables of pairs


@contextmanager
def watched() -> Iterator[Watched]:
    """A context in which the host waits for every program, so that its own time can be told from theirs."""
    seen, call = Watched({}, []), Program.__call__

    def timed(self: Program[Any], *args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        found = call(self, *args, **kwargs)
        if any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(found)):
            return found
        jax.block_until_ready(found)
        name = self.__name__
        seen.seconds[name] = seen.seconds.get(name, 0.0) + time.perf_counter() - start
        if name == "refit":
            seen.refits.append(self.signature.bind(*args, **kwargs).arguments)
        return found

    with patch.object(Program, "__call__", timed):
        yield seen


def _waited(run: Callable[[], Any]) -> tuple[float, Watched]:
    """Seconds of a call that waits for every program, and its programs."""
    with watched() as seen:
        return seconds(run, 1)["median"], seen


def measured(run: Callable[[], Any], repeats: int) -> tuple[Any, Found, list[dict[str, Any]]]:
    """The result of ``run``, its times, and the arguments of its refits."""
    result, first, later = first_and_later(run, repeats)
    whole, seen = min((_waited(run) for _ in range(min(repeats, 3))), key=lambda found: found[0])
    apart = {"in_programs": sum(seen.seconds.values()), "outside": whole - sum(seen.seconds.values())}
    times = {"first_call_seconds": first, "seconds": later, "waited_seconds": {**apart, "programs": seen.seconds}}
    return result, times, seen.refits


class Work(NamedTuple):
    """Counted work of refits by chord steps, at least; sizes are those that the programs get, with padding.

    A lane draws a word for each of K x Q units, writes and reads Q words of pairs and writes an (M, M) table. Each of
    its steps reads that table, takes a product with an (M, M) matrix, 2 M^2 operations, and a gradient, 4.75 M^2: 19
    for four entries, whose divisions are one.
    """

    table_bytes: float  # of all lanes of a chunk: what a cache would have to hold
    bytes: float
    product_flops: float
    gradient_flops: float
    words: float

    @classmethod
    def of(cls, refits: list[dict[str, Any]], mean_steps: float, n_resamples: int) -> Work | None:
        """That of ``n_resamples`` refits; None where other solvers or weights were at work."""
        given = refits[0] if refits else None
        if given is None or given["form"].packing.word is None or len({str(r["form"]) for r in refits}) > 1:
            return None
        form, problems = given["form"], given["problems"]
        rows, columns = problems.units.size.shape[-2:]
        entries = problems.data.position.shape[-1] ** 2
        # As `pair_tables.unpacked` keeps counts: in single precision where that is exact, whatever is solved in.
        entry = 4 if form.packing.bits < 24 else np.dtype(form.dtype).itemsize
        word = np.dtype(form.packing.word).itemsize
        return cls(
            table_bytes=float(given["chunks"].numbers.shape[-1] * entry * entries),
            bytes=n_resamples * (2.0 * word * columns + entry * entries * (1 + mean_steps)),
            product_flops=n_resamples * mean_steps * 2 * entries,
            gradient_flops=n_resamples * mean_steps * 4.75 * entries,
            words=float(n_resamples * rows * columns),
        )

    def least_seconds(self, rates: Found, dtype: str) -> dict[str, float]:
        """Seconds that each of the measured ceilings allows."""
        # Tables that a cache holds come at its rate: that of the largest array that is no larger than they are.
        by_size = {int(size): rate for size, rate in rates["bytes_per_second"].items()}
        fits = [rate for size, rate in by_size.items() if size <= self.table_bytes] or [max(by_size.values())]
        return {
            "bytes": self.bytes / fits[-1],
            "product": self.product_flops / rates[f"{dtype}_product_flops"],
            "gradient": self.gradient_flops / rates[f"{dtype}_elementwise_flops"],
            "words": self.words / rates["random_words_per_second"],
        }


@cache
def board(name: str) -> Battles:
    return as_battles(simulate_board(name))


def refits(name: str, n_resamples: int, sizes: Sizes, folder: Path, dtype: str = "float64") -> Found:
    """``n_resamples`` refits of a board."""
    battles = board(name)
    result, times, calls = measured(
        lambda: jaxeval.bootstrap(battles, n_resamples, dtype=dtype, progress=False), sizes.repeats
    )
    steps = float(result.n_steps.mean())
    work = Work.of(calls, steps, n_resamples)
    return {
        "votes": int(battles.n_battles), "models": battles.n_models, "resamples": n_resamples, "dtype": dtype, **times,
        "mean_steps": steps, "most_steps": int(result.n_steps.max()), "converged": bool(result.converged.all()),
        "counted": work and work._asdict(),
    }  # fmt: skip


def arena(sizes: Sizes, folder: Path) -> Found:
    """Every category rated by itself."""
    n_votes, n_models, n_categories, n_resamples = sizes.arena
    battles = arena_battles(n_votes, n_models, n_categories)
    found, times, _ = measured(lambda: jaxeval.bootstrap(battles, n_resamples, by="category", progress=False), 1)
    return {
        "votes": n_votes, "models": n_models, "categories": n_categories, "resamples": n_resamples, **times,
        "converged": all(bool(x.converged.all()) for x in found.values()),
        "by_slower_solvers": int(sum(x.n_by_slower_solvers for x in found.values())),
    }  # fmt: skip


def soft_elo(which: int, sizes: Sizes, folder: Path) -> Found:
    """The leave-one-model-out study; the last sizes where there are fewer."""
    n_battles, n_models, n_resamples = sizes.soft_elo[min(which, len(sizes.soft_elo) - 1)]
    judged = jaxeval.simulate_judged_battles(n_battles, n_models, seed=0)
    _, times, _ = measured(lambda: jaxeval.soft_elo(judged, n_resamples=n_resamples, progress=False), 1)
    return {"battles": n_battles, "models": n_models, "resamples": n_resamples, **times}


def style(sizes: Sizes, folder: Path) -> Found:
    """Style control with four covariates."""
    n_votes, n_models, n_resamples = sizes.style
    battles, names = styled_battles(n_votes, n_models)
    result, times, _ = measured(lambda: jaxeval.bootstrap(battles, n_resamples, features=names, progress=False), 1)
    return {
        "votes": n_votes, "models": n_models, "covariates": len(names), "resamples": n_resamples, **times,
        "mean_steps": float(result.n_steps.mean()), "converged": bool(result.converged.all()),
    }  # fmt: skip


def wide(sizes: Sizes, folder: Path) -> Found:
    """The graph of pairs."""
    n_matches, n_models, n_resamples = sizes.wide
    battles = Battles.from_pandas(simulate_wide(n_matches, n_models))
    run = partial(jaxeval.bootstrap, battles, n_resamples, method="sparse", progress=False)
    result, times, _ = measured(run, 1)
    return {
        "matches": n_matches, "models": n_models, "resamples": n_resamples, **times,
        "mean_steps": float(result.n_steps.mean()), "converged": bool(result.converged.all()),
    }  # fmt: skip


def other_chunks(sizes: Sizes, folder: Path) -> Found:
    """How far draws move with the size of chunks, and from run to run: the largest differences, Elo."""
    found = {}
    for name in sizes.boards:
        run = partial(jaxeval.bootstrap, board(name), 200, progress=False)
        draws = run().draws
        apart = {"other_chunks": run(chunk_size=64).draws, "again": run().draws}
        found[name] = {how: float(np.abs(draws - x).max()) for how, x in apart.items()}
    return found


def in_chunks(size: int, sizes: Sizes, folder: Path) -> Found:
    """The last board in chunks of ``size`` lanes."""
    name, n_resamples = sizes.boards[-1], sizes.resamples[0]
    run = partial(jaxeval.bootstrap, board(name), n_resamples, chunk_size=size, progress=False)
    _, first, later = first_and_later(run, min(sizes.repeats, 3))
    return {
        "board": name, "resamples": n_resamples, "chunk_size": size, "first_call_seconds": first, "seconds": later
    }  # fmt: skip


def profile(sizes: Sizes, folder: Path) -> Found:
    """A trace of one call, ``profile.xplane.pb``, and in which operations its time goes."""
    name, n_resamples = sizes.boards[-1], sizes.resamples[0]
    run = partial(jaxeval.bootstrap, board(name), n_resamples, progress=False)
    run()
    traces, options = folder / "traces", jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with jax.profiler.trace(str(traces), profiler_options=options):
        run()
    (trace,) = traces.rglob("*.xplane.pb")
    kept = trace.replace(folder / "profile.xplane.pb")
    shutil.rmtree(traces)
    return {"board": name, "resamples": n_resamples, "trace": kept.name, **_operations(kept)}


def _operations(trace: Path) -> Found:
    """Number, seconds and the longest of the operations that the device ran.

    A loop of a CPU or TPU counts the operations within it a second time; those of a GPU's streams hold no others.
    """
    planes = list(jax.profiler.ProfileData.from_file(str(trace)).planes)
    devices = [plane for plane in planes if plane.name.startswith("/device:")]
    lines = [line for plane in devices or planes for line in plane.lines]
    if devices:  # a GPU's streams, a TPU's operations; other lines group the same time
        lines = [line for line in lines if line.name.startswith(("Stream", "XLA Ops"))] or lines
    else:
        lines = [line for line in lines if "XLA" in line.name]
    spent, calls = Counter[str](), Counter[str]()
    for line in lines:
        for event in line.events:
            spent[event.name] += event.duration_ns / 1e9
            calls[event.name] += 1
    longest = [{"name": n, "seconds": s, "calls": calls[n]} for n, s in spent.most_common(25)]
    names = sorted({line.name for line in lines})
    return {"lines": names, "calls": sum(calls.values()), "seconds": sum(spent.values()), "longest": longest}


def steps_of(sizes: Sizes) -> dict[str, Step]:
    """The steps that the worker runs, in their order: what takes more memory comes later."""
    steps = {"machine": Step(machine, 5), "ceilings": Step(ceilings, 15)}
    for name in sizes.boards:
        for n in sizes.resamples:
            steps[f"{name}/{n:,}"] = Step(partial(refits, name, n), 15)
    last, n = sizes.boards[-1], sizes.resamples[0]
    sweep = {f"{last}/{n:,} in chunks of {size:,}": Step(partial(in_chunks, size), 15) for size in sizes.chunks}
    return steps | {
        "profile": Step(profile, 15),
        "other chunks": Step(other_chunks, 20),
        "arena": Step(arena, 40),
        "soft-elo": Step(partial(soft_elo, 0), 20),
        "soft-elo, large": Step(partial(soft_elo, 1), 30),
        "style control": Step(style, 40),
        "wide": Step(wide, 40),
        f"{last}/{n:,}, float32": Step(partial(refits, last, n, dtype="float32"), 15),
        **sweep,
    }


def limits(steps: dict[str, Any]) -> Found:
    """Each refit's time beside the least that the ceilings of this device allow."""
    rates = steps.get("ceilings", {}).get("found")
    found = {}
    for name, step in steps.items():
        row = step.get("found", {})
        if rates and row.get("counted"):
            least = Work(**row["counted"]).least_seconds(rates, row["dtype"])
            times = row["seconds"]["median"] / max(least.values())
            found[name] = {"least_seconds": least, "times_the_limit": times}
    return found
