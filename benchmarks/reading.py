"""From a Parquet file of 2 million votes to a fit, against pandas' own reading of the file.

python benchmarks/reading.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pandas as pd
from harness import environment, peak_memory_mb, save, seconds

import jaxeval

N_VOTES, N_MODELS = 2_000_000, 300


def main() -> None:
    print(environment())
    votes = jaxeval.simulate_votes(N_VOTES, N_MODELS)[["model_a", "model_b", "winner"]].astype(str)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "votes.parquet"
        votes.to_parquet(path, index=False)
        jaxeval.fit_bradley_terry(jaxeval.read_battles(path))  # compile
        rows = {
            "pandas.read_parquet": seconds(lambda: pd.read_parquet(path), 5),
            "read_battles": seconds(lambda: jaxeval.read_battles(path), 5),
            "read_battles + compress + fit": seconds(
                lambda: jaxeval.fit_bradley_terry(jaxeval.read_battles(path)).ratings, 5
            ),
            "Battles.from_pandas (strings) + compress + fit": seconds(
                lambda: jaxeval.fit_bradley_terry(jaxeval.Battles.from_pandas(votes)).ratings, 5
            ),
            "pandas.factorize of both columns (strings)": seconds(
                lambda: (pd.factorize(votes["model_a"]), pd.factorize(votes["model_b"])), 5
            ),
        }
    for name, row in rows.items():
        print(f"  {name:50s} {row['median']:7.3f} s")
    save("reading", {"votes": N_VOTES, "models": N_MODELS, "seconds": rows, "peak_memory_mb": peak_memory_mb()})


if __name__ == "__main__":
    main()
