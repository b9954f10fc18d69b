"""Whole processes from the shell, from a file of votes to a file of ratings with intervals, side by side.

    python benchmarks/whole_process.py                     # boards S, M, L
    python benchmarks/whole_process.py --boards S --repeats 3

What a person at a terminal waits for: the interpreter, imports, reading, compiling, 1,000 resamples, writing. One after
the other, in turns, so that a busy spell of the machine falls on all:

* `jaxeval leaderboard votes.parquet --resamples 1000`;
* a script that reads the votes with pandas and loops choix over 1,000 multinomial tables;
* a script that reads them with arena-rank and takes its closed-form (sandwich) intervals from one fit.

Nothing is left over from earlier runs: caches of compiled code that a tool keeps start empty. The first turn is told by
itself; later turns have what the tool has kept. The ratings must agree, and so must the widths of the intervals.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from peers import ELO_PER_LOGIT, simulate_board

N_RESAMPLES = 1000
LEVEL = 0.95
#: Largest difference of ratings from jaxeval's that is expected, Elo.
TOLERANCE_ELO = {"choix": 0.01, "arena-rank": 1.0}
#: Of the median width of the intervals: percentiles of 1,000 draws are noisy, and the sandwich is an approximation.
TOLERANCE_WIDTH = 0.05


def write_votes(name: str, path: Path) -> None:
    """A simulated board as a file of votes."""
    board = simulate_board(name)
    names = np.array([f"model-{k:03d}" for k in range(board.n_models)])
    winners = np.array(["model_b", "tie", "model_a"])
    votes = {
        "model_a": names[board.model_a],
        "model_b": names[board.model_b],
        "winner": winners[np.rint(2 * board.target).astype(int)],
    }
    pd.DataFrame(votes).to_parquet(path)


def run_choix(votes: Path, out: Path) -> None:
    """The script that a user of choix would write: count, draw multinomial tables, fit each, take percentiles."""
    import choix

    frame = pd.read_parquet(votes)
    codes, names = pd.factorize(pd.concat([frame["model_a"], frame["model_b"]]), sort=True)
    first, second = codes[: len(frame)], codes[len(frame) :]
    outcome = frame["winner"].map({"model_b": 0, "tie": 1, "model_a": 2}).to_numpy()
    n_models = len(names)
    counts = np.bincount((first * n_models + second) * 3 + outcome, minlength=n_models**2 * 3)
    cells = np.flatnonzero(counts)
    pair, result = np.divmod(cells, 3)
    i, j = np.divmod(pair, n_models)

    won, lost = i * n_models + j, j * n_models + i

    def fit(numbers: np.ndarray) -> np.ndarray:
        wins = np.bincount(won, numbers * result / 2, n_models**2)
        wins += np.bincount(lost, numbers * (1 - result / 2), n_models**2)
        return 1000 + ELO_PER_LOGIT * choix.ilsr_pairwise_dense(wins.reshape(n_models, n_models), tol=1e-6)

    rng = np.random.default_rng(0)
    share = counts[cells] / len(frame)
    draws = np.stack([fit(rng.multinomial(len(frame), share)) for _ in range(N_RESAMPLES)])
    lower, upper = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    _write(names, fit(counts[cells]), lower, upper, out)


def run_arena_rank(votes: Path, out: Path) -> None:
    """What arena-rank's users call: one fit, and intervals in closed form."""
    from arena_rank.models.bradley_terry import BradleyTerry
    from arena_rank.utils.data_utils import PairDataset

    dataset = PairDataset.from_pandas(pd.read_parquet(votes))
    model = BradleyTerry(len(dataset.competitors))
    found = model.compute_ratings_and_cis(dataset, significance_level=1 - LEVEL)
    columns = (np.asarray(found[name]) for name in ("ratings", "rating_lower", "rating_upper"))
    _write(found["competitors"], *columns, out)


def _write(names: Any, ratings: np.ndarray, lower: np.ndarray, upper: np.ndarray, out: Path) -> None:
    table = pd.DataFrame({"model": names, "rating": ratings, "lower": lower, "upper": upper})
    table.sort_values("rating", ascending=False).to_csv(out, index=False)


_SCRIPTS = {"choix": run_choix, "arena-rank": run_arena_rank}


def command(tool: str, votes: Path, out: Path) -> list[str]:
    """The command line of a tool's process."""
    if tool == "jaxeval":
        arguments = ["leaderboard", str(votes), "--resamples", str(N_RESAMPLES), "--level", str(LEVEL)]
        return [sys.executable, "-m", "jaxeval", *arguments, "--out", str(out)]
    return [sys.executable, __file__, "--run", tool, str(votes), str(out)]


def timed(arguments: list[str], cache: Path, code: int = 0) -> tuple[float, float]:
    """Wall-clock seconds, and those of all cores, of a process with no caches but those in ``cache``.

    Raises:
        SystemExit: it does not end with ``code``.
    """
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "JAXEVAL_", "XLA_"))}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages have theirs
    environ["XDG_CACHE_HOME"] = str(cache)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    ended = subprocess.run(arguments, env=environ, check=False, capture_output=True, text=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode != code:
        raise SystemExit(f"{arguments} ended with {ended.returncode}: {ended.stderr}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def in_turns(
    commands: dict[str, list[str]], cache: Path, repeats: int, codes: dict[str, int] | None = None
) -> dict[str, dict[str, Any]]:
    """Times of the ``commands`` in turns: of each the first run, and all later ones."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, arguments in commands.items():
            times[name].append(timed(arguments, cache, (codes or {}).get(name, 0)))
    rows = {}
    for name, runs in times.items():
        wall, cpu = map(list, zip(*runs, strict=True))
        later = wall[1:] or wall
        rows[name] = {
            "first_seconds": wall[0],
            "seconds": {
                "median": statistics.median(later), "min": min(later), "max": max(later), "repeats": len(later),
            },
            "cpu_seconds": statistics.median(cpu[1:] or cpu),
        }  # fmt: skip
    return rows


def compared(tool: str, found: pd.DataFrame, ours: pd.DataFrame) -> dict[str, float]:
    """How far ratings and widths of intervals are from jaxeval's.

    Raises:
        SystemExit: farther than expected.
    """
    found = found.set_index("model").loc[ours["model"]]
    own = ours.set_index("model")
    ratings, expected = (table["rating"] - table["rating"].mean() for table in (found, own))
    widths = (found["upper"] - found["lower"]) / (own["upper"] - own["lower"])
    result = {
        "max_difference_elo": float((ratings - expected).abs().max()),
        "median_width_ratio": float(widths.median()),
        "least_width_ratio": float(widths.min()),
        "greatest_width_ratio": float(widths.max()),
    }
    far = result["max_difference_elo"] > TOLERANCE_ELO[tool]
    if far or abs(result["median_width_ratio"] - 1) > TOLERANCE_WIDTH:
        raise SystemExit(f"{tool} does not agree with jaxeval: {result}")
    return result


def run_board(name: str, tools: list[str], repeats: int) -> dict[str, Any]:
    """All tools on one board, in turns."""
    with tempfile.TemporaryDirectory() as folder:
        votes = Path(folder) / "votes.parquet"
        write_votes(name, votes)
        outs = {tool: Path(folder) / f"{tool}.csv" for tool in tools}
        commands = {tool: command(tool, votes, outs[tool]) for tool in tools}
        rows = in_turns(commands, Path(folder) / "cache", repeats)
        tables = {tool: pd.read_csv(out) for tool, out in outs.items()}
    print(f"\n{name}: {repeats} turns of whole processes, {N_RESAMPLES:,} resamples")
    ours = rows["jaxeval"]
    for tool, row in rows.items():
        first, later = row["first_seconds"], row["seconds"]["median"]
        text = f"  {tool:12s} first {first:7.2f} s, later {later:7.2f} s   (all cores {row['cpu_seconds']:.2f} s)"
        if tool != "jaxeval":
            agreement = compared(tool, tables[tool], tables["jaxeval"])
            ratios = {"first_ratio": first / ours["first_seconds"], "ratio": later / ours["seconds"]["median"]}
            row |= {**agreement, **ratios}
            text += (
                f"   {ratios['first_ratio']:6.2f} and {ratios['ratio']:6.2f} times jaxeval's, ratings within "
                f"{agreement['max_difference_elo']:.1e} Elo, intervals {agreement['median_width_ratio']:.3f} times as "
                "wide"
            )
        print(text)
    return rows


def installed_tools() -> tuple[list[str], list[str]]:
    """Jaxeval and the peers that are installed, and those that are missing."""
    from peers import missing_peers

    missing = [tool for tool in _SCRIPTS if any(name.startswith(tool) for name in missing_peers())]
    return ["jaxeval", *(tool for tool in _SCRIPTS if tool not in missing)], missing


def main() -> None:
    """Time all boards; or, with --run, be the process of one tool."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--boards", nargs="+", default=["S", "M", "L"], choices=["S", "M", "L"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--run", nargs=3, metavar=("TOOL", "VOTES", "OUT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        tool, votes, out = arguments.run
        _SCRIPTS[tool](Path(votes), Path(out))
        return
    from harness import environment, save

    print(environment())
    tools, missing = installed_tools()
    boards = {name: run_board(name, tools, arguments.repeats) for name in arguments.boards}
    save("whole_process", {"resamples": N_RESAMPLES, "level": LEVEL, "boards": boards, "missing_peers": missing})


if __name__ == "__main__":
    main()
