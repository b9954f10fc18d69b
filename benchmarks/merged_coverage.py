"""Does the merged board hold the truth? Coverage on simulated pools, by judge, pool and bias.

    python benchmarks/merged_coverage.py
    python benchmarks/merged_coverage.py --pools 5   # a quick look: nothing is written
    python benchmarks/merged_coverage.py --anchors 1 # anchors alone, which no judge moves: their cells are written anew

The pools are those of forward_coverage.py. New models, with another number of judged battles each, are placed on the
people's board by `jaxeval.merge_boards`. True strengths are held against the intervals of new models and of anchors,
against those of the differences of two models of either kind, and against the rank sets.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from typing import Any

import numpy as np
import pandas as pd
from forward_coverage import BIASES, LEVEL, RIDGE, SLOPES, draw_pool
from harness import RESULTS, asked_sizes, environment, save

import jaxeval
from jaxeval.ratings.gauge import ELO_PER_LOGIT

POOLS, RATIOS, N_NEW, N_RESAMPLES = (10, 20), (0.5, 1.0, 5.0), 4, 1000
DEFAULT_POOLS = 100
CELLS = [(judge, n, bias) for judge in SLOPES for n in POOLS for bias in BIASES]


def one_pool(task: tuple[int, tuple[str, int, float]]) -> dict[str, Any]:
    """What of the truth the merged board of a pool holds, as shares; and median widths of its intervals, Elo."""
    seed, (judge, n, bias) = task
    pool = draw_pool(seed, SLOPES[judge], n, bias, ratio=np.repeat(RATIOS, N_NEW))
    board = jaxeval.merge_boards(
        pool.battles, pool.new, level=LEVEL, n_resamples=N_RESAMPLES, seed=seed, ridge=RIDGE, progress=False
    )
    table = board.table.set_index("model")
    truth = pd.Series(np.concatenate([pool.theta, pool.strength]), [*pool.battles.models, *pool.label])
    truth = 1000 + ELO_PER_LOGIT * (truth - pool.theta.mean())
    names = {"new": pool.label, "anchor": np.asarray(pool.battles.models)}
    found: dict[str, Any] = {"judge": judge, "models": n, "bias": bias, "pool": seed}
    for kind, own_names in names.items():
        own, true = table.loc[own_names], truth[own_names]
        rank = truth.rank(ascending=False)[own_names]
        found[kind] = ((own["lower"] <= true) & (true <= own["upper"])).mean()
        found[f"{kind}, rank set"] = ((own["rank_best"] <= rank) & (rank <= own["rank_worst"])).mean()
        found[f"{kind}, median width, Elo"] = (own["upper"] - own["lower"]).median()
    lower, upper = (bound.loc[truth.index, truth.index] for bound in board.joint.difference_interval(LEVEL))
    difference = truth.to_numpy()[:, None] - truth.to_numpy()
    held = (lower <= difference) & (difference <= upper)
    for one, other in (("new", "new"), ("new", "anchor"), ("anchor", "anchor")):
        block = held.loc[names[one], names[other]].to_numpy()
        found[f"{one} less {other}"] = block[~np.eye(len(block), dtype=bool)].mean() if one == other else block.mean()
    return found


def anchors_alone(task: tuple[int, tuple[str, int, float]]) -> dict[str, Any]:
    """What of `one_pool` is of anchors: their board is that of people's votes, which no judge moves."""
    seed, (judge, n, bias) = task
    pool = draw_pool(seed, SLOPES[judge], n, bias, ratio=np.repeat(RATIOS, N_NEW))
    sides = {name: pool.battles.models[getattr(pool.battles, name)] for name in ("model_a", "model_b")}
    board = jaxeval.bootstrap(pd.DataFrame(sides | {"target": pool.battles.human}), N_RESAMPLES, seed, progress=False)
    ends = board.interval(LEVEL)
    truth = pd.Series(1000 + ELO_PER_LOGIT * (pool.theta - pool.theta.mean()), pool.battles.models)[ends.index]
    rank, sets = truth.rank(ascending=False), board.rank_sets(LEVEL).to_numpy(float)
    lower, upper = (bound.to_numpy() for bound in board.difference_interval(LEVEL))
    difference = truth.to_numpy()[:, None] - truth.to_numpy()
    held = (lower <= difference) & (difference <= upper)
    return {
        "judge": judge, "models": n, "bias": bias, "pool": seed,
        "anchor": ((ends["lower"] <= truth) & (truth <= ends["upper"])).mean(),
        "anchor, rank set": ((sets[:, 0] <= rank) & (rank <= sets[:, 1])).mean(),
        "anchor, median width, Elo": (ends["upper"] - ends["lower"]).median(),
        "anchor less anchor": held[~np.eye(n, dtype=bool)].mean(),
    }  # fmt: skip


def coverage(pools: pd.DataFrame) -> pd.DataFrame:
    """Means over the pools of a cell, and over all, with their standard errors over pools."""
    keys = ["judge", "models", "bias"]
    values = [name for name in pools if name not in (*keys, "pool")]
    whole = pools.assign(judge="all", models=0, bias=0.0).groupby([*keys, "pool"], as_index=False)[values].mean()
    by = pd.concat([pools, whole]).groupby(keys)[values]
    return by.mean().join(by.sem().add_suffix(", standard error"))


def main() -> None:
    arguments = asked_sizes(__doc__, pools=DEFAULT_POOLS, processes=os.cpu_count() or 1, anchors=0)
    start = time.perf_counter()
    simulated = anchors_alone if arguments.anchors else one_pool
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as workers:
        tasks = [(seed, cell) for seed in range(arguments.pools) for cell in CELLS]
        pools = pd.DataFrame(workers.imap(simulated, tasks, len(CELLS)))
    print(f"{arguments.pools} pools of {len(CELLS)} cells: {time.perf_counter() - start:.0f} s")
    cells = coverage(pools)
    print(cells.round(3).T.to_string())
    if arguments.pools == DEFAULT_POOLS and arguments.anchors:
        found = json.loads((RESULTS / "merged_coverage.json").read_text())
        for cell in found["cells"]:
            cell |= cells.loc[cell["judge"], cell["models"], cell["bias"]].to_dict()
            cell["anchors_date"] = environment()["date"]
        (RESULTS / "merged_coverage.json").write_text(json.dumps(found, indent=1) + "\n")
    elif arguments.pools == DEFAULT_POOLS:
        save(
            "merged_coverage",
            {"pools": arguments.pools, "level": LEVEL, "cells": cells.reset_index().to_dict("records")},
        )


if __name__ == "__main__":
    main()
