"""Small categories: coverage by simulation, held-out log-loss on the Arena's categories, and time.

    python benchmarks/small_categories.py
    python benchmarks/small_categories.py --boards 20 --splits 2   # a quick look: nothing is written

Coverage: 53 models with 60,000 other battles, a quarter of even battles ties, and a category whose strengths differ by
19 Elo, or by 61. "plug-in" takes the most probable spread for certain. With `JAXEVAL_DATA`, a fifth of a category's
battles is held out. They are predicted by the board of all other battles, by that of the category alone (ridge 0.02),
and by the one that borrows; and the same where only 300 battles of the category are known.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harness import asked_sizes, first_and_later, save

import jaxeval
from jaxeval import Battles
from jaxeval.ratings.gauge import ELO_PER_LOGIT

DEFAULTS = {"boards": 100, "splits": 20}
SPREADS = (0.11, 0.35)  # logits
COLUMN = "category"


def coverage(n_own: int, n_boards: int, spread: float) -> dict[str, Any]:
    """How often 95% intervals hold: those of all spreads, and those of the most probable one."""
    inside, plugged, shares, spreads = [], [], [], []
    for seed in range(n_boards):
        rng = np.random.default_rng([seed, n_own])
        theta = jaxeval.simulate_strengths(53, seed=seed)
        own = theta + rng.normal(0, spread, 53)
        others = jaxeval.simulate_votes(60_000, strengths=theta, seed=2 * seed)
        few = jaxeval.simulate_votes(n_own, strengths=own, seed=2 * seed + 1)
        parts = [others.assign(category=None), few.assign(category="own")]
        boards = jaxeval.small_categories(pd.concat(parts), COLUMN, seed=seed, missing="drop")
        board = boards["own"]
        truth = 1000 + ELO_PER_LOGIT * (own - own.mean())[board.models]
        ends = board.interval()
        inside.append(((ends["lower"] <= truth) & (truth <= ends["upper"])).mean())
        values, times = np.unique(board.spread_draws, return_counts=True)
        drawn = board.draws[board.spread_draws == values[times.argmax()]]
        low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
        plugged.append(((low <= truth) & (truth <= high)).mean())
        shares.append(board.borrowed_share)
        spreads.append(board.spread)
    return {
        "battles": n_own,
        "coverage": np.mean(inside),
        "standard_error": np.std(inside, ddof=1) / np.sqrt(n_boards),
        "plug_in": np.mean(plugged),
        "plug_in_standard_error": np.std(plugged, ddof=1) / np.sqrt(n_boards),
        "borrowed": np.mean(shares),
        "spread_elo": np.mean(spreads),
        "true_spread_elo": spread * ELO_PER_LOGIT,
    }


def arena_votes(folder: Path) -> pd.DataFrame:
    """Human votes with a column of overlapping categories."""
    table = pd.read_parquet(folder / "arena140k_votes.parquet")
    table = table[table["model_a"] != table["model_b"]].reset_index(drop=True)
    flags = {name: table[f"is_{name}"] == 1 for name in ("creative", "math", "if")}
    flags["hard"] = table["n_hard_criteria"] >= 6
    of_row = np.stack(list(flags.values()), 1)
    table[COLUMN] = [[name for name, one in zip(flags, row, strict=True) if one] for row in of_row]
    return table[["model_a", "model_b", "winner", COLUMN]]


def log_loss(ratings: pd.Series, table: pd.DataFrame) -> float:
    """Mean over battles, a tie being half a win and half a loss."""
    logit = (ratings[table["model_a"]].to_numpy() - ratings[table["model_b"]].to_numpy()) / ELO_PER_LOGIT
    y = table["winner"].map({"model_a": 1.0, "model_b": 0.0}).fillna(0.5).to_numpy()
    return float(np.mean(np.logaddexp(0, logit) - y * logit))


def held_out(table: pd.DataFrame, name: str, n_splits: int, known: int | None) -> dict[str, Any]:
    """Held-out log-loss of a category's battles by three boards."""
    own = np.flatnonzero([name in of_row for of_row in table[COLUMN]])
    losses = []
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(own)
        test, train = np.split(order, [len(own) // 5])
        forgotten = [] if known is None else train[known:]
        train = train[:known]
        category = np.full(len(table), None, object)
        category[train] = "own"
        rest = np.setdiff1d(np.arange(len(table)), [*test, *forgotten])
        told = Battles.from_pandas(table.assign(**{COLUMN: category}).iloc[rest], keep=[COLUMN])
        slice_ = jaxeval.fit_bradley_terry(told.filter(told.column(COLUMN).notna().to_numpy()), ridge=0.02)
        boards = (
            jaxeval.fit_bradley_terry(told).ratings,
            slice_.ratings.reindex(told.models, fill_value=1000.0),
            jaxeval.small_categories(told, COLUMN, 2, missing="drop")["own"].fit.ratings,
        )
        losses.append([log_loss(ratings, table.iloc[test]) for ratings in boards])
    overall, alone, borrowed = np.mean(losses, 0)
    more = np.array(losses)[:, 2] - np.array(losses)[:, :2].min(1)
    return {
        "category": name,
        "battles": len(own),
        "known": len(train),
        "overall": overall,
        "slice": alone,
        "borrowing": borrowed,
        "more_than_the_better": borrowed - min(overall, alone),
        "standard_error": np.std(more, ddof=1) / np.sqrt(n_splits),
    }


def main() -> None:
    sizes = asked_sizes(__doc__, **DEFAULTS)
    found: dict[str, Any] = {}
    if folder := os.environ.get("JAXEVAL_DATA"):
        table = arena_votes(Path(folder))
        battles = Battles.from_pandas(table)
        _, first, later = first_and_later(lambda: jaxeval.small_categories(battles, COLUMN), 7)
        found["seconds"] = {"first": first, "later": later}
        print(found["seconds"])
        cases = [(name, known) for known in (None, 300) for name in ("creative", "math", "if", "hard")]
        found["arena140k"] = [held_out(table, name, sizes.splits, known) for name, known in cases]
        print(pd.DataFrame(found["arena140k"]).round(5).to_string())
    found["coverage"] = [coverage(n, sizes.boards, spread) for spread in SPREADS for n in (20, 200, 1_000, 4_000)]
    print(pd.DataFrame(found["coverage"]).round(3).to_string())
    if vars(sizes) == DEFAULTS:
        save("small_categories", {**DEFAULTS, **found})


if __name__ == "__main__":
    main()
