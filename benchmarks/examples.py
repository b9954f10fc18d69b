"""Write examples/: small tables of counts from public votes, which examples and pages read.

JAXEVAL_DATA=FOLDER python benchmarks/examples.py

The folder holds the votes themselves; none of them is shipped. examples/README.md says where they come from.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd

HOME = Path(__file__).parents[1] / "examples"
DATA = Path(os.environ.get("JAXEVAL_DATA", "data"))
TAGS = {"is_math": "math", "is_creative": "creative writing", "is_if": "instruction following"}


def arena(votes: pd.DataFrame) -> pd.DataFrame:
    """Votes of LMArena, counted by pair, side and category; the few of a model against itself are left out."""
    votes = votes[votes["model_a"].astype(str) != votes["model_b"].astype(str)]
    tags = votes[list(TAGS)].to_numpy(bool)
    category = np.where(
        tags.sum(1) > 1, "several", np.where(tags.any(1), np.array([*TAGS.values()])[tags.argmax(1)], "other")
    )
    result = votes["winner"].map({"model_a": "wins_a", "model_b": "wins_b", "tie": "ties", "both_bad": "ties"})
    keys = [
        votes["model_a"].astype(str),
        votes["model_b"].astype(str),
        pd.Series(category, votes.index, name="category"),
    ]
    counts = pd.crosstab(keys, result.astype(str))[["wins_a", "ties", "wins_b"]]
    return counts.reset_index()[["model_a", "model_b", "wins_a", "ties", "wins_b", "category"]]


def main() -> None:
    """The command."""
    HOME.mkdir(exist_ok=True)
    arena(pd.read_parquet(DATA / "arena140k_votes.parquet")).to_csv(HOME / "arena.csv", index=False)


if __name__ == "__main__":
    main()
