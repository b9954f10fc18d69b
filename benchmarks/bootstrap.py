"""1,000 bootstrap resamples, each refitted to the maximum likelihood: jaxeval against its peers, looped.

    python benchmarks/bootstrap.py              # boards S, M, L
    python benchmarks/bootstrap.py --boards S   # 25,000 votes, 55 models

jaxeval is timed as its users call it, `jaxeval.bootstrap(battles, 1000)` from battles in memory: plan, draws,
refits, gauge; a few calls between any two peers, so that a busy spell of the machine falls on both sides, and the
median of all counts. Compiling is timed apart. A peer's time for 1,000 resamples is that of as many multinomial draws
and fits as fit in about four seconds, scaled up (the number is in the results). The answers are compared on the same
resampled tables.

arena-rank's users need no resamples: its own intervals follow in closed form (the sandwich) from one fit. That row is
the time of the fit with those intervals, and how wide they are beside the bootstrap's.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from harness import as_battles, environment, peak_memory_mb, save, seconds
from peers import ELO_PER_LOGIT, Board, Peer, arena_rank_sandwich, missing_peers, peers, resample, simulate_board

import jaxeval
from jaxeval.execution.precision import double_precision
from jaxeval.kernels.batch.refits import draw
from jaxeval.ratings.boards import fit_boards
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.pair_refits import dense_refits
from jaxeval.ratings.vote_groups import VoteGroups

N_RESAMPLES = 1000
BUDGET_SECONDS = 4.0


def drawn_tables(battles: jaxeval.Battles, numbers: range) -> list[np.ndarray]:
    """Outcome counts (M, M, 3) of some of jaxeval's resamples (seed 0), as the peers take them.

    Ties count half everywhere, so any losses, ties and wins with the same number of battles and score are the same.
    """
    options = BootstrapOptions()
    boards = fit_boards([(battles.models, battles.cells)], options)
    refits = dense_refits(boards, [""], [VoteGroups()], options)
    tables = []
    for number in numbers:
        with double_precision():
            n, wins = draw(refits.problem, refits.form, np.uint64(0), 0, number)
        n, score = np.asarray(n), np.asarray(wins)
        won = np.floor(score)
        tied = np.round(2 * (score - won))
        m = battles.n_models
        counts = np.triu(np.stack([n - won - tied, tied, won]), 1)[:, :m, :m]
        tables.append(counts.transpose(1, 2, 0).astype(np.int64))
    return tables


def time_peer(peer: Peer, board: Board, tables: list[np.ndarray], draws: np.ndarray) -> dict[str, float]:
    """Seconds of 1,000 draws and fits, scaled from as many as the budget allows; largest difference in Elo."""
    rng = np.random.default_rng(0)
    first = next(iter(resample(board, 1, rng)))
    peer.fit(first)  # compile, cache
    done, start = 0, time.perf_counter()
    while done < N_RESAMPLES and (done < 3 or time.perf_counter() - start < BUDGET_SECONDS):
        for counts in resample(board, 1, rng):
            peer.fit(counts)
        done += 1
    elapsed = time.perf_counter() - start
    compared = tables[: 2 if peer.slow else len(tables)]
    fits = np.stack([peer.fit(counts) for counts in compared]) * ELO_PER_LOGIT
    return {
        "seconds": elapsed / done * N_RESAMPLES,
        "timed_resamples": done,
        "max_difference_elo": float(np.abs(fits - (draws[: len(compared)] - 1000)).max()),
    }


def time_sandwich(board: Board, result: jaxeval.Bootstrap) -> dict[str, float]:
    """Seconds of one fit of arena-rank with its closed-form intervals, beside the bootstrap's ratings and intervals."""
    start = time.perf_counter()
    ratings, lower, upper = arena_rank_sandwich(board.outcome_counts)
    first_call = time.perf_counter() - start
    timed = seconds(lambda: arena_rank_sandwich(board.outcome_counts), 5)
    bounds = result.interval(0.95)
    widths = (upper - lower) / (bounds["upper"] - bounds["lower"]).to_numpy()
    return {
        "seconds": timed["median"],
        "first_call_seconds": first_call,
        "max_difference_elo": float(np.abs(ratings - (result.fit.ratings.to_numpy() - 1000)).max()),
        "median_width_ratio": float(np.median(widths)),
        "least_width_ratio": float(widths.min()),
        "greatest_width_ratio": float(widths.max()),
    }


def run_board(name: str) -> dict[str, object]:
    """Time every tool on one board, one after the other in this process."""
    board = simulate_board(name)
    battles = as_battles(board)
    _ = battles.cells  # compressing is part of reading, benchmarks/reading.py
    start = time.perf_counter()
    result = jaxeval.bootstrap(battles, N_RESAMPLES, progress=False)
    first_call = time.perf_counter() - start
    times: list[float] = []

    def time_ours(repeats: int) -> None:
        time.sleep(0.1)  # the BLAS threads of the tool before us spin on
        jaxeval.bootstrap(battles, N_RESAMPLES, progress=False)  # to fill the caches, as peers have an untimed fit
        for _ in range(repeats):
            start = time.perf_counter()
            jaxeval.bootstrap(battles, N_RESAMPLES, progress=False)
            times.append(time.perf_counter() - start)

    time_ours(9)
    memory = peak_memory_mb()
    print(f"\n{name}: {len(board.target):,} votes, {board.n_models} models, {N_RESAMPLES:,} resamples")
    tables = drawn_tables(battles, range(10))
    timed = []
    for peer in peers():
        timed.append((peer, time_peer(peer, board, tables, result.draws)))
        time_ours(4)
    ours = {"median": statistics.median(times), "min": min(times), "max": max(times), "repeats": len(times)}
    print(f"  {'jaxeval':20s} {ours['median']:9.3f} s   (first call, with compiling, {first_call:.2f} s)")
    rows = {}
    for peer, row in timed:
        row["ratio"] = row["seconds"] / ours["median"]
        rows[peer.name] = {**row, "version": peer.version, "note": peer.note}
        print(
            f"  {peer.name:20s} {row['seconds']:9.3f} s   {row['ratio']:9.1f} times, "
            f"answers within {row['max_difference_elo']:.1e} Elo"
        )
    sandwich = None
    if "arena-rank" not in missing_peers():
        sandwich = time_sandwich(board, result)
        sandwich["ratio"] = sandwich["seconds"] / ours["median"]
        print(
            f"  {'arena-rank sandwich':20s} {sandwich['seconds']:9.3f} s   {sandwich['ratio']:9.1f} times, one fit and "
            f"intervals {sandwich['median_width_ratio']:.3f} times as wide; ratings within "
            f"{sandwich['max_difference_elo']:.1e} Elo"
        )
    return {
        "votes": len(board.target),
        "models": board.n_models,
        "resamples": N_RESAMPLES,
        "jaxeval_seconds": ours,
        "jaxeval_first_call_seconds": first_call,
        "converged": bool(result.converged.all()),
        "mean_steps": float(result.n_steps.mean()),
        "peak_memory_mb": memory,
        "peers": rows,
        "arena_rank_sandwich": sandwich,
        "missing_peers": missing_peers(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--boards", nargs="+", default=["S", "M", "L"], choices=["S", "M", "L"])
    arguments = parser.parse_args()
    print(environment())
    save("bootstrap", {"boards": {name: run_board(name) for name in arguments.boards}})


if __name__ == "__main__":
    main()
