"""The engine on whatever device JAX finds, at Arena scale, beside the limits of that device.

    python benchmarks/accelerator.py                    # all cases; the JSON is named after the device
    python benchmarks/accelerator.py --cases S M L      # a quick look: nothing is written

Cases: S, M and L (25,000 votes between 55 models, 200,000 and 130, 2,000,000 and 300) with 1,000 and 10,000 resamples;
`arena`, 7,000,000 votes, 400 models, 29 categories, 10,000 resamples each; `style`, 1,000 style-controlled resamples of
2,000,000 rows; `soft-elo`, the leave-one-model-out study of 25,000 and 1,000,000 judged battles. On a CPU the last
three are cut to sizes that end within minutes, and say so.

Ceilings are measured here: bytes a second of copying a large array, floating-point operations a second of a matrix
product in double and in single precision, and words a second of the counter-based generator. For the refits of votes
the work is counted (`Work`), and each time is given as a multiple of the time that the slowest ceiling would allow.
Single precision runs beside double, and their largest difference is given in Elo.
"""

from __future__ import annotations

import argparse
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from harness import arena_battles, as_battles, environment, save
from peers import Board, simulate_board

import jaxeval
from jaxeval.execution.precision import double_precision
from jaxeval.execution.shapes import padded_size
from jaxeval.kernels import squares

CASES = ("S", "M", "L", "arena", "style", "soft-elo")
CATEGORIES = 29


class Ceilings(NamedTuple):
    """What the device can do at most, as measured."""

    bytes_per_second: float
    float64_flops: float
    float32_flops: float
    random_words_per_second: float


class Work(NamedTuple):
    """Counted work of a batch of refits, at least.

    A lane draws a word for each of K x Q units, writes Q pair words, and a table of M x M words; each step reads the
    table once and takes a product with an (M, M) matrix (2 M^2 operations) and a gradient (about 9 M^2).
    """

    bytes: float
    flops: float
    words: float

    def least_seconds(self, ceilings: Ceilings, flops: float) -> float:
        """Seconds that the slowest of the ceilings allows."""
        return max(
            self.bytes / ceilings.bytes_per_second, self.flops / flops, self.words / ceilings.random_words_per_second
        )


def best_seconds(run: Any, repeats: int = 5) -> float:
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def measured_ceilings() -> Ceilings:
    accelerator = jax.default_backend() != "cpu"
    n, size = (2**28, 8192) if accelerator else (2**25, 1024)
    with double_precision():
        x = jnp.ones(n, jnp.float64)
        copy = jax.jit(lambda x: x + 1)
        moved = 16 * n / best_seconds(lambda: copy(x).block_until_ready())
        flops = []
        for kind in (jnp.float64, jnp.float32):
            a = jnp.ones((size, size), kind)
            product = jax.jit(lambda a: jnp.matmul(a, a, precision="highest"))
            flops.append(2 * size**3 / best_seconds(lambda p=product, a=a: p(a).block_until_ready()))
        number = jnp.arange(n, dtype=jnp.uint64)
        draw = jax.jit(lambda c: jnp.sum(squares.words32(c, jnp.uint64(0x9E3779B97F4A7C15)), dtype=jnp.uint64))
        words = n / best_seconds(lambda: draw(number).block_until_ready())
    return Ceilings(moved, *flops, words)


def work_of(n_models: int, n_pairs: int, lanes: int, mean_steps: float, word: int) -> Work:
    m2 = padded_size(n_models) ** 2
    return Work(
        bytes=lanes * (2 * 4 * n_pairs + 4 * m2 + mean_steps * word * m2),
        flops=lanes * mean_steps * 11 * m2,
        words=lanes * 3 * n_pairs,
    )


def timed(run: Any, repeats: int) -> tuple[Any, float, float]:
    """The result, the seconds of the first call, and the median of the later ones."""
    start = time.perf_counter()
    result = run()
    first = time.perf_counter() - start
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return result, first, float(np.median(times)) if times else first


def refits(board: Board, n_resamples: int, ceilings: Ceilings, repeats: int) -> dict[str, Any]:
    battles = as_battles(board)
    pairs = len(battles.cells.first)
    rows: dict[str, Any] = {"votes": len(board.target), "models": board.n_models, "resamples": n_resamples}
    draws = {}
    for dtype, word, flops in (("float64", 8, ceilings.float64_flops), ("float32", 4, ceilings.float32_flops)):
        run = lambda dtype=dtype: jaxeval.bootstrap(battles, n_resamples, dtype=dtype, progress=False)  # noqa: E731
        result, first, seconds = timed(run, repeats)
        work = work_of(board.n_models, pairs, n_resamples, float(result.n_steps.mean()), word)
        least = work.least_seconds(ceilings, flops)
        draws[dtype] = result.draws[:1000]
        rows[dtype] = {
            "seconds": seconds, "first_call_seconds": first, "mean_steps": float(result.n_steps.mean()),
            "converged": bool(result.converged.all()), **work._asdict(), "least_seconds": least,
            "times_the_limit": seconds / least,
        }  # fmt: skip
        print(f"  {dtype}: {seconds:.3f} s (first call {first:.1f} s), {seconds / least:.0f} times the limit")
    rows["max_difference_elo"] = float(np.nanmax(np.abs(draws["float64"] - draws["float32"])))
    print(f"  single from double precision: {rows['max_difference_elo']:.4f} Elo at most")
    return rows


def arena(cpu: bool) -> dict[str, Any]:
    n_votes, n_models, n_resamples = (700_000, 200, 1000) if cpu else (7_000_000, 400, 10_000)
    battles = arena_battles(n_votes, n_models, CATEGORIES)
    boards, first, seconds = timed(
        lambda: jaxeval.bootstrap(battles, n_resamples, by="category", progress=False), 0 if cpu else 2
    )
    print(f"  {len(boards)} categories: {seconds:.2f} s (first call {first:.1f} s)")
    return {
        "votes": n_votes, "models": n_models, "categories": CATEGORIES, "resamples": n_resamples, "seconds": seconds,
        "first_call_seconds": first, "converged": all(bool(b.converged.all()) for b in boards.values()),
    }  # fmt: skip


def style(cpu: bool) -> dict[str, Any]:
    n_votes, n_models = (200_000, 130) if cpu else (2_000_000, 300)
    rng = np.random.default_rng(0)
    votes = jaxeval.simulate_votes(n_votes, n_models, seed=0)
    names = ["length", "headers", "lists", "bold"]
    for name in names:
        votes[name] = rng.normal(size=n_votes)
    battles = jaxeval.Battles.from_pandas(votes)
    result, first, seconds = timed(
        lambda: jaxeval.bootstrap(battles, 1000, features=names, progress=False), 0 if cpu else 2
    )
    print(f"  style control: {seconds:.2f} s (first call {first:.1f} s)")
    return {
        "votes": n_votes, "models": n_models, "covariates": 4, "resamples": 1000, "seconds": seconds,
        "first_call_seconds": first, "converged": bool(result.converged.all()),
    }  # fmt: skip


def soft_elo(cpu: bool) -> list[dict[str, Any]]:
    rows = []
    for n_battles, n_models in ((25_000, 55),) if cpu else ((25_000, 55), (1_000_000, 300)):
        judged = jaxeval.simulate_judged_battles(n_battles, n_models, seed=0)
        _, first, seconds = timed(lambda judged=judged: jaxeval.soft_elo(judged), 3)
        print(f"  Soft-Elo of {n_battles:,} battles: {seconds:.2f} s (first call {first:.1f} s)")
        rows.append({"battles": n_battles, "models": n_models, "seconds": seconds, "first_call_seconds": first})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    cases = parser.parse_args().cases
    cpu = jax.default_backend() == "cpu"
    print(environment())
    ceilings = measured_ceilings()
    print(
        f"ceilings: {ceilings.bytes_per_second / 1e9:.0f} GB/s, {ceilings.float64_flops / 1e9:.0f} and "
        f"{ceilings.float32_flops / 1e9:.0f} GFLOP/s (double, single), "
        f"{ceilings.random_words_per_second / 1e9:.1f} billion random words a second"
    )
    results: dict[str, Any] = {}
    for name in cases:
        print(name)
        if name in ("S", "M", "L"):
            board = simulate_board(name)
            sizes = (1000,) if cpu and name == "L" else (1000, 10_000)
            results[name] = [refits(board, b, ceilings, 3 if cpu else 9) for b in sizes]
        else:
            results[name] = {"arena": arena, "style": style, "soft-elo": soft_elo}[name](cpu)
    if tuple(cases) == CASES:
        kind = jax.devices()[0].device_kind.lower().replace(" ", "-")
        save(f"accelerator-{kind}", {"ceilings": ceilings._asdict(), "results": results})


if __name__ == "__main__":
    main()
