"""A file of 100 million votes to a leaderboard with 1,000 resamples, and its memory; DuckDB and pandas beside it.

python benchmarks/streaming.py [--votes 100_000_000] [--csv-votes 10_000_000]

Every reader runs in a process of its own, whose peak memory is its own, too. The files go to a temporary folder.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from harness import environment, peak_memory_mb, save
from pyarrow import csv

import jaxeval

N_MODELS, N_RESAMPLES, PIECE = 300, 1000, 2_000_000
COLUMNS = ["model_a", "model_b", "winner"]
REDUCTION = "SELECT model_a, model_b, winner, count(*) AS n FROM '{}' GROUP BY ALL"


def votes(n: int) -> Iterator[pa.Table]:
    """Simulated votes of fixed strengths, piece by piece, as a dump has them: text, and columns nobody asked for."""
    strengths = jaxeval.simulate_strengths(N_MODELS)
    for k, start in enumerate(range(0, n, PIECE)):
        frame = jaxeval.simulate_votes(min(PIECE, n - start), strengths=strengths, seed=k)
        table = pa.Table.from_pandas(frame, preserve_index=False)
        text = pa.dictionary(pa.int32(), pa.string())
        names = [c for c in table.column_names if c != "voter"]
        fields = [pa.field(c, text if c in names else pa.int64()) for c in table.column_names]
        yield table.cast(pa.schema(fields)).replace_schema_metadata(None)


def write(path: Path, n: int) -> None:
    writer: Any = None
    for table in votes(n):
        if path.suffix == ".csv":
            plain = [(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in table.schema]
            table = table.cast(pa.schema(plain))
        if writer is None:
            make = csv.CSVWriter if path.suffix == ".csv" else pq.ParquetWriter
            writer = make(path, table.schema)
        writer.write_table(table)
    writer.close()


def jaxeval_leaderboard(path: Path) -> dict[str, Any]:
    start = time.perf_counter()
    battles = jaxeval.read_battles(path, progress=False)
    read = time.perf_counter()
    read_peak = peak_memory_mb()
    board = jaxeval.leaderboard(battles, n_resamples=N_RESAMPLES, progress=False)
    end = time.perf_counter()
    return {
        "read": read - start,
        "read_peak_memory_mb": read_peak,
        "leaderboard_with_compiling": end - read,
        "battles": battles.n_battles,
        "distinct_rows": battles.n_rows,
        "cells": len(battles.cells.count),
        "best": str(board["model"][0]),
        "ratings": board.set_index("model")["rating"].sort_index().round(9).tolist(),
    }


def counted(frame: pd.DataFrame, start: float) -> dict[str, Any]:
    read = time.perf_counter() - start
    fit = jaxeval.fit_bradley_terry(jaxeval.Battles.from_pandas(frame, count="n"))
    return {"read": read, "ratings": fit.ratings.sort_index().round(9).tolist()}


def duckdb_reduction(path: Path) -> dict[str, Any]:
    import duckdb

    start = time.perf_counter()
    duckdb.sql("SET threads = 2")
    return counted(duckdb.sql(REDUCTION.format(path)).df(), start)


def pandas_reduction(path: Path) -> dict[str, Any]:
    start = time.perf_counter()
    if path.suffix == ".csv":
        frame = pd.read_csv(path, usecols=COLUMNS)
    else:
        # As categories, without which 100 million votes do not fit this machine.
        frame = pq.read_table(path, columns=COLUMNS, read_dictionary=COLUMNS).to_pandas()
    return counted(frame.groupby(COLUMNS, observed=True).size().rename("n").reset_index(), start)


READERS = {"jaxeval": jaxeval_leaderboard, "duckdb": duckdb_reduction, "pandas": pandas_reduction}


def measured(reader: str, path: Path) -> dict[str, Any]:
    """What a fresh process says, and its peak memory."""
    run = subprocess.run(
        [sys.executable, __file__, "--reader", reader, "--path", str(path)], capture_output=True, text=True, check=False
    )
    if run.returncode:
        return {"failed": run.stderr.strip().splitlines()[-1:], "exit": run.returncode}
    return json.loads(run.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--votes", type=int, default=100_000_000)
    parser.add_argument("--csv-votes", type=int, default=10_000_000)
    parser.add_argument("--reader", choices=list(READERS))
    parser.add_argument("--path", type=Path)
    options = parser.parse_args()
    if options.reader:
        before = peak_memory_mb()
        found = READERS[options.reader](options.path)
        print(json.dumps({**found, "peak_memory_mb": peak_memory_mb(), "imports_mb": before}))
        return
    print(environment())
    result: dict[str, Any] = {"models": N_MODELS, "resamples": N_RESAMPLES}
    for ending, n in (("parquet", options.votes), ("csv", options.csv_votes)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"votes.{ending}"
            start = time.perf_counter()
            write(path, n)
            size = path.stat().st_size / 1e6
            print(f"{n:,} votes, {size:,.0f} MB of {ending}, written in {time.perf_counter() - start:.0f} s")
            rows = {reader: measured(reader, path) for reader in READERS}
        ratings = {reader: np.array(row.pop("ratings")) for reader, row in rows.items() if "ratings" in row}
        for reader, row in rows.items():
            if reader in ratings:
                row["largest_rating_difference"] = float(np.abs(ratings[reader] - ratings["jaxeval"]).max())
            print(f"  {reader:8s} {row}")
        result[ending] = {"votes": n, "file_mb": size, "readers": rows}
    save("streaming", result)


if __name__ == "__main__":
    main()
