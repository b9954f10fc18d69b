"""Whether errors hold that count judges and prompts, and which error it is in two public data sets.

    python benchmarks/which_error.py
    python benchmarks/which_error.py --boards 200   # a quick look: nothing is written

Every design draws differences of two models on items x judges x prompts, whose truth is 0, and asks how often the
interval of `error_budget` holds it, and how long it is beside that over items alone. RewardBench 2's answers are scored
by two judges of one maker under seven prompts, eight times each; battles of two models by three judges.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harness import asked_sizes, save

import jaxeval
from jaxeval.statistics.quantiles import student_quantile
from jaxeval.statistics.variance_components import design_of

LEVEL, AT_ONCE = 0.95, 50
DATA = Path(os.environ.get("JAXEVAL_DATA", Path(__file__).parents[2] / "shared" / "data"))
#: Items, judges, prompts; standard deviations of their effects, and of single scores; how the cells lie.
DESIGNS: list[tuple[tuple[int, int, int], tuple[float, ...], str]] = [
    ((200, 3, 4), (0.4, 0.03, 0.02, 0.5), "crossed"),
    ((200, 5, 5), (0.4, 0.03, 0.02, 0.5), "crossed"),
    ((200, 2, 3), (0.4, 0.05, 0.0, 0.5), "crossed"),
    ((1000, 3, 4), (0.4, 0.03, 0.02, 0.5), "crossed"),
    ((1000, 10, 5), (0.4, 0.03, 0.02, 0.5), "crossed"),
    ((50, 3, 3), (0.4, 0.0, 0.0, 0.5), "crossed"),
    ((1000, 3, 3), (0.4, 0.0, 0.0, 0.5), "crossed"),
    ((2000, 2, 2), (0.4, 0.05, 0.03, 0.5), "crossed"),
    ((500, 6, 1), (0.4, 0.03, 0.0, 0.5), "crossed"),
    ((200, 3, 4), (0.4, 0.03, 0.02, 0.5), "half of the cells missing"),
    ((200, 4, 3), (0.4, 0.04, 0.03, 0.5), "seeds within judges"),
    ((300, 6, 1), (0.4, 0.05, 0.0, 0.5), "one judge has all items, others a third"),
    ((200, 2, 1), (0.4, 0.1, 0.0, 0.5), "crossed"),
]


def simulated(
    sizes: tuple[int, int, int], spreads: tuple[float, ...], lie: str, n: int, rng: np.random.Generator
) -> dict[str, Any]:
    """How often intervals hold 0, and their lengths over those of items alone."""
    i, j, p = np.indices(sizes).reshape(3, -1)
    there = rng.random(len(i)) < {"half of the cells missing": 0.5}.get(lie, 1.0)
    if lie.startswith("one judge"):
        there = (j == 0) | (rng.random(len(i)) < 1 / 3)
    p = j * sizes[2] + p if lie.startswith("seeds") else p
    i, j, p = np.unique(i[there], return_inverse=True)[1], j[there], p[there]
    design = design_of({"item": i, "judge": j, "prompt": p}, 1 / np.bincount(i)[i])
    held, alone, lengths, shortest = [], [], [], []
    for _ in range(n // AT_ONCE):
        values = rng.normal(0, spreads[3], (len(i), AT_ONCE))
        for code, sd in zip((i, j, p), spreads, strict=False):
            values += rng.normal(0, sd, (code.max() + 1, AT_ONCE))[code]
        variance, dof = design.error(design.components(design.squares(values)[:, range(AT_ONCE), range(AT_ONCE)]))
        reach = student_quantile(LEVEL, dof) * np.sqrt(variance)
        means = np.stack([np.bincount(i, own) for own in values.T], 1) / np.bincount(i)[:, None]
        items = student_quantile(LEVEL, len(means) - 1.0) * means.std(0, ddof=1) / np.sqrt(len(means))
        held += list(np.abs(design.weight @ values) <= reach)
        alone += list(np.abs(means.mean(0)) <= items)
        lengths, shortest = [*lengths, *reach], [*shortest, *items]
    return {
        "items": sizes[0], "judges": sizes[1], "prompts": sizes[2], "spreads": list(spreads), "cells": lie,
        "data_sets": len(held), "coverage": float(np.mean(held)), "coverage_items": float(np.mean(alone)),
        "length": float(np.mean(lengths) / np.mean(shortest)),
        "median_length": float(np.median(lengths) / np.median(shortest)),
    }  # fmt: skip


def rewardbench() -> pd.DataFrame | None:
    """Whether judges (the models here) give the chosen answer the highest score, by prompt, run and item."""
    path = DATA / "rb2_judge_k8_runs.parquet"
    if not path.exists():
        return None
    table = pd.read_parquet(path)
    table = table[table["temperature"].isna() & table["judge"].isin(["gpt-5.4", "gpt-5.4-mini"])]
    names = ["judge", "prompt_variant", "item"]
    long = table.melt([*names, "response_idx"], [f"s{k}" for k in range(1, 9)], "run", "points")
    long = long.astype(dict.fromkeys(names, str) | {"points": float})
    points = long.pivot_table("points", [*names, "run"], "response_idx").dropna()
    best = points.eq(points.max(axis=1), axis=0)
    right = (best[0] / best.sum(axis=1)).rename("score").reset_index()  # ties share
    return right.rename(columns={"judge": "model"})


def battles() -> pd.DataFrame | None:
    """What three judges said of the battles of the two models that met most: the share of the win that each has."""
    path = DATA / "arena27k_human_3judges.parquet"
    if not path.exists():
        return None
    table = pd.read_parquet(path)
    pairs = pd.Series([" ".join(sorted(pair)) for pair in zip(table["model_a"], table["model_b"], strict=True)])
    table = table[(pairs == pairs.value_counts().index[0]).to_numpy()]
    long = table.melt(["row", "model_a", "model_b"], ["gpt4_0125", "claude3_opus", "gpt35_turbo"], "judge", "said")
    share = long["said"].map({"model_a": 1.0, "model_b": 0.0}).fillna(0.5)
    sides = [
        pd.DataFrame({"model": long[f"model_{side}"], "item": long["row"], "judge": long["judge"], "score": won})
        for side, won in (("a", share), ("b", 1 - share))
    ]
    return pd.concat(sides, ignore_index=True)


def decomposed(table: pd.DataFrame, random: list[str]) -> dict[str, Any]:
    """The sentences and tables of a budget."""
    found = jaxeval.error_budget(table, random)
    return {
        "sentences": list(found.answer.sentences), "components": found.table.to_dict("records"),
        "differences": found.differences.to_dict("records"), "generalizability": found.generalizability,
    }  # fmt: skip


def main() -> None:
    """Simulate, decompose, print and save."""
    asked = asked_sizes(__doc__, boards=10000, seed=0)
    rows = []
    for number, (sizes, spreads, lie) in enumerate(DESIGNS):
        rng = np.random.default_rng([asked.seed, number])
        rows.append(simulated(sizes, spreads, lie, asked.boards, rng))
        print(rows[-1], flush=True)
    found: dict[str, Any] = {"level": LEVEL, "rows": rows}
    for name, table, random in (
        ("rewardbench", rewardbench(), ["prompt_variant", "run"]), ("battles", battles(), ["judge"]),
    ):  # fmt: skip
        if table is not None:
            found[name] = {"rows": len(table), **decomposed(table, random)}
            print(*found[name]["sentences"], sep="\n")
    if asked.boards >= 10000:
        save("which_error", found)


if __name__ == "__main__":
    main()
