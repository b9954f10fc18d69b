"""Is a leader named where there is none? Boards of equal models, by how many models, games and ties.

    python benchmarks/equal_models.py
    python benchmarks/equal_models.py --boards 20   # a quick look: nothing is written

Every game is of a pair at random. A claim is an answer with "ahead of all"; at most 5 % of boards may make one.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from harness import asked_sizes, save

import jaxeval

MODELS, GAMES, TIES = (2, 3, 6), (2, 5, 20, 40), (0.0, 0.3, 0.9)
LEVEL = 0.95
DEFAULTS = {"boards": 100, "resamples": 400}


def equal_models(n_models: int, n_games: int, ties: float, n_boards: int) -> pd.DataFrame:
    """A vote per game on each of the boards."""
    rng = np.random.default_rng([n_models, n_games, round(10 * ties)])
    first, second = np.triu_indices(n_models, 1)
    pair = rng.integers(0, len(first), (n_boards, n_games))
    result = rng.choice(["tie", "model_a", "model_b"], pair.shape, p=[ties, (1 - ties) / 2, (1 - ties) / 2])
    columns = {"model_a": first[pair].ravel(), "model_b": second[pair].ravel(), "winner": result.ravel()}
    return pd.DataFrame({"board": np.repeat(np.arange(n_boards), n_games).astype(str), **columns})


def cells(n_models: int, n_boards: int, n_resamples: int) -> list[dict[str, Any]]:
    """How many boards name a leader, by games and ties: all boards are slices of one bootstrap."""
    tables = []
    for n_games, ties in product(GAMES, TIES):
        table = equal_models(n_models, n_games, ties, n_boards)
        tables.append(table.assign(board=f"{n_games} {ties} " + table["board"]))
    n_slices = len(tables) * n_boards
    found = jaxeval.bootstrap(
        pd.concat(tables, ignore_index=True), n_resamples, by="board", min_slice_battles=1, max_slices=n_slices,
        progress=False,
    )  # fmt: skip
    claims = {name: "ahead of all" in board.answer() for name, board in found.items()}
    rows = []
    for n_games, ties in product(GAMES, TIES):
        own = [claim for name, claim in claims.items() if name.startswith(f"{n_games} {ties} ")]
        rows.append({"models": n_models, "games": n_games, "ties": ties, "boards": len(own), "claims": sum(own)})
    return rows


def main() -> None:
    sizes = asked_sizes(__doc__, **DEFAULTS)
    rows = []
    for n_models in MODELS:
        rows += cells(n_models, sizes.boards, sizes.resamples)
        print(pd.DataFrame(rows[-len(GAMES) * len(TIES) :]).to_string(index=False), flush=True)
    if vars(sizes) == DEFAULTS:
        save("equal_models", {"level": LEVEL, **DEFAULTS, "cells": rows})


if __name__ == "__main__":
    main()
