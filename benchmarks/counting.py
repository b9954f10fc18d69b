"""Votes in Parquet files counted by DuckDB and by Polars (`count_battles`), against reading a part of them all.

python benchmarks/counting.py [--votes 100_000_000] [--part 10_000_000]

Every way runs in a process of its own, whose peak memory is its own, too. The files go to a temporary folder.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
from harness import asked_sizes, peak_memory_mb, save

import jaxeval

N_MODELS = 300
#: Votes between models of which the later ones are the stronger, and the first ones meet more often.
VOTES = f"""
    SELECT
        printf('model-%03d', a) AS model_a,
        printf('model-%03d', b) AS model_b,
        CASE WHEN tied < 0.15 THEN 'tie' WHEN tied < 0.25 THEN 'tie (bothbad)'
            WHEN won < 1 / (1 + exp((b - a) / 100.0)) THEN 'model_a' ELSE 'model_b' END AS winner,
        CASE WHEN language < 0.5 THEN 'English' WHEN language < 0.8 THEN 'Chinese' ELSE 'German' END AS language,
        floor(100000 * random())::INTEGER AS voter
    FROM (
        SELECT floor({N_MODELS} * random() * random())::INTEGER AS a, floor({N_MODELS} * random())::INTEGER AS b,
            random() AS tied, random() AS won, random() AS language
        FROM range({{}})
    )
"""
WAYS = {
    "duckdb": lambda files, by: jaxeval.count_battles(duckdb.read_parquet(files), by=by),
    "polars": lambda files, by: jaxeval.count_battles(pl.scan_parquet(files), by=by),
    "read_battles": lambda files, by: jaxeval.read_battles(files, keep=by, progress=False),
}


def measured(way: str, files: str, by: list[str]) -> dict[str, Any]:
    """What a fresh process takes; processor time is that of all its threads."""
    before, start, start_cpu = peak_memory_mb(), time.perf_counter(), time.process_time()
    battles = WAYS[way](files, by)
    found = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - start_cpu}
    cells = battles.cells
    digest = hashlib.sha256(b"".join(x.tobytes() for x in (cells.pair, cells.target, cells.count))).hexdigest()
    found |= {"peak_memory_mb": peak_memory_mb(), "imports_mb": before, "rows": battles.n_rows, "cells_sha256": digest}
    return found | {"battles": battles.n_battles}


def main() -> None:
    asked = asked_sizes(__doc__, votes=100_000_000, part=10_000_000)
    result: dict[str, Any] = {"votes": asked.votes, "part_votes": asked.part, "models": N_MODELS}
    duckdb.sql("SET enable_progress_bar = false")
    with tempfile.TemporaryDirectory() as folder:
        for k, start in enumerate(range(0, asked.votes, asked.part)):
            votes = VOTES.format(min(asked.part, asked.votes - start))
            duckdb.sql(f"COPY ({votes}) TO '{folder}/{k:03d}.parquet'")
        result["file_mb"] = sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e6
        print(f"{asked.votes:,} votes, {result['file_mb']:,.0f} MB of Parquet")
        for name, files, ways in (("all", "*", ["duckdb", "polars"]), ("part", "000", list(WAYS))):
            for by in ([], ["language"]):
                rows = {}
                for way in ways:
                    with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
                        rows[way] = fresh.submit(measured, way, f"{folder}/{files}.parquet", by).result()
                    print(f"  {name:4s} {' '.join(by):8s} {way:12s} {rows[way]}")
                if len({(row["cells_sha256"], row["battles"]) for row in rows.values()}) > 1:
                    raise AssertionError("the cells differ")
                result[" by ".join([name, *by])] = rows
    save("counting", result)


if __name__ == "__main__":
    main()
