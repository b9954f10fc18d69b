"""A day at an arena: 5 million votes, 350 models, 30 overlapping categories, style control, 1,000 resamples, a page.

    python benchmarks/arena_day.py
    python benchmarks/arena_day.py --votes 300000 --resamples 100   # a quick look: nothing is written

One process from a Parquet file to a table and a page: `jaxeval leaderboard votes.parquet --by categories --features
length,headers,lists,bold --html page.html`. A vote lies in three categories on average, and counts in each of them and
in overall. Wall-clock time, that of all cores, and peak memory are told. Caches of programs start empty.

Where arena-rank is installed, a script reads a smaller file, which the command reads, too, and takes its closed-form
(sandwich) intervals board by board, from one fit each and without its penalty; it draws no resamples, no ranks and no
page. Ratings and widths of the intervals must agree with ours.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from harness import asked_sizes, save
from peers import missing_peers
from whole_process import timed

VOTES, MODELS, CATEGORIES, RESAMPLES = 5_000_000, 350, 30, 1000
FEATURES = ["length", "headers", "lists", "bold"]
COEFFICIENTS = [0.5, 0.1, -0.05, 0.02]
#: Of the file that arena-rank reads, too, if the day has no fewer.
BESIDE = {"votes": 100_000, "models": 100, "categories": 2, "resamples": 100}
#: Largest difference from arena-rank's ratings, which stop at a tolerance of their own, Elo; and of the median width.
TOLERANCE_ELO, TOLERANCE_WIDTH = 1.0, 0.05


def write_votes(path: Path, n: int, n_models: int, n_categories: int) -> None:
    """Votes decided by strength and style; popularity falls as rank^-0.3, sizes of categories as rank^-0.8."""
    rng = np.random.default_rng(0)
    popularity = np.arange(1, n_models + 1) ** -0.3
    a, b = rng.choice(n_models, (2, n), p=popularity / popularity.sum())
    b = np.where(a == b, (a + rng.integers(1, n_models, n)) % n_models, b)
    theta, x = rng.normal(0, 0.5, n_models), rng.normal(size=(n, len(FEATURES)))
    p = 1 / (1 + np.exp(theta[b] - theta[a] - x @ COEFFICIENTS))
    tie, u = 0.5 * p * (1 - p), rng.random(n)
    winner = np.select([u < p - tie, u < p + tie], [0, 1], 2)
    share = np.arange(2, n_categories + 2) ** -0.8
    is_in = rng.random((n, n_categories), np.float32) < np.minimum(3 * share / share.sum(), 0.6)
    ends = np.append(0, np.cumsum(is_in.sum(1)))

    def coded(codes: np.ndarray, words: list[str]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(words))

    models = [f"model-{k:03d}" for k in range(n_models)]
    names = coded(np.nonzero(is_in)[1], [f"category-{k:02d}" for k in range(n_categories)]).cast(pa.string())
    columns = {
        "model_a": coded(a, models),
        "model_b": coded(b, models),
        "winner": coded(winner, ["model_a", "tie", "model_b"]),
        "categories": pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), names),
    }
    pq.write_table(pa.table(columns | dict(zip(FEATURES, x.astype(np.float32).T, strict=True))), path)


def by_arena_rank(votes: Path, out: Path) -> None:
    """Write arena-rank's ratings and closed-form intervals of overall and of every category, one after the other."""
    from arena_rank.models.contextual_bradley_terry import ContextualBradleyTerry
    from arena_rank.utils.data_utils import ContextualPairDataset

    table = pd.read_parquet(votes)
    category = table["categories"].explode()
    boards = {"overall": table} | {str(name): table.loc[rows.index] for name, rows in category.groupby(category)}
    found = []
    for name, board in boards.items():
        data = ContextualPairDataset.from_pandas(board, FEATURES, reweighted=False)
        model = ContextualBradleyTerry(len(data.competitors), len(FEATURES), reg=0.0)
        rated = model.compute_ratings_and_cis(data)
        names = {"rating": "ratings", "lower": "rating_lower", "upper": "rating_upper"}
        columns = {name: np.asarray(rated[theirs]) for name, theirs in names.items()}
        found.append(pd.DataFrame({"category": name, "model": rated["competitors"], **columns}))
    pd.concat(found).to_csv(out, index=False)


def process(arguments: list[str], cache: Path) -> dict[str, float]:
    """Seconds and peak memory of a process; its peak is that of the largest process so far, ours first."""
    wall, cpu = timed(arguments, cache)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {"seconds": wall, "cpu_seconds": cpu, "peak_memory_mb": peak}


def compared(ours: Path, theirs: Path) -> dict[str, float]:
    """How far ratings and widths of arena-rank are from ours, on all boards.

    Raises:
        SystemExit: farther than expected.
    """
    keys = ["category", "model"]
    own, found = (pd.read_csv(path).set_index(keys).sort_index() for path in (ours, theirs))
    found = found.loc[own.index]
    centred = [table["rating"] - table["rating"].groupby(level=0).transform("mean") for table in (own, found)]
    widths = [table["upper"] - table["lower"] for table in (own, found)]
    result = {
        "max_difference_elo": float((centred[0] - centred[1]).abs().max()),
        "median_width_ratio": float((widths[1] / widths[0]).median()),
    }
    if result["max_difference_elo"] > TOLERANCE_ELO or abs(result["median_width_ratio"] - 1) > TOLERANCE_WIDTH:
        raise SystemExit(f"arena-rank does not agree with jaxeval: {result}")
    return result


def day(folder: Path, sizes: dict[str, int]) -> dict[str, Any]:
    """Time the command on votes of these ``sizes``, which it leaves in the ``folder`` beside its table and page."""
    votes, out, page = (folder / name for name in ("votes.parquet", "board.csv", "page.html"))
    write_votes(votes, sizes["votes"], sizes["models"], sizes["categories"])
    board = [sys.executable, "-m", "jaxeval", "leaderboard", str(votes), "--by", "categories"]
    board += ["--features", ",".join(FEATURES), "--resamples", str(sizes["resamples"])]
    row: dict[str, Any] = sizes | process([*board, "--out", str(out), "--html", str(page)], folder / "cache")
    row |= {"page_kb": page.stat().st_size / 1000, "rows": sizes["votes"] + len(_memberships(votes))}
    row["cpu_nanoseconds_per_row_and_resample"] = 1e9 * row["cpu_seconds"] / row["rows"] / sizes["resamples"]
    return row


def main() -> None:
    """Time the day, and arena-rank on a smaller one."""
    if sys.argv[1:2] == ["--arena-rank"]:
        by_arena_rank(Path(sys.argv[2]), Path(sys.argv[3]))
        return
    asked = asked_sizes(__doc__, votes=VOTES, models=MODELS, categories=CATEGORIES, resamples=RESAMPLES)
    sizes = {name: getattr(asked, name) for name in ("votes", "models", "categories", "resamples")}
    row = {}
    if any(name.startswith("arena-rank") for name in missing_peers()):
        print("arena-rank is not installed: nothing to compare with")
    else:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            theirs = folder / "arena-rank.csv"
            ours = day(folder, {name: min(size, sizes[name]) for name, size in BESIDE.items()})
            script = [sys.executable, __file__, "--arena-rank", str(folder / "votes.parquet"), str(theirs)]
            peer = process(script, folder / "cache") | compared(folder / "board.csv", theirs)
            row["beside_arena_rank"] = ours | {"arena_rank": peer}
            print(row["beside_arena_rank"])
    with tempfile.TemporaryDirectory() as name:
        row = day(Path(name), sizes) | row
    print(", ".join(f"{key} {value:,.1f}" for key, value in row.items() if key != "beside_arena_rank"))
    if sizes == {"votes": VOTES, "models": MODELS, "categories": CATEGORIES, "resamples": RESAMPLES}:
        save("arena_day", row)


def _memberships(votes: Path) -> pa.Array:
    """Each category of each vote."""
    return pq.read_table(votes, columns=["categories"])["categories"].combine_chunks().flatten()


if __name__ == "__main__":
    main()
