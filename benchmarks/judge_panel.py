"""Panels of judges: coverage of all intervals, time, and what three judges say of the Arena's votes.

    python benchmarks/judge_panel.py
    python benchmarks/judge_panel.py --panels 10   # a quick look: nothing is written

Coverage: 8 models 2/7 logits apart, discriminations from e^-.6 to e^.6, side biases from -.5 to .5; 3 judges of 1,500
items and 10 of 300, who err independently, or who decide .7 of the items by a chance that they share. Time: 10 judges,
10,000 verdicts each, 1,000 resamples of items, with 20 and with 60 models. With `JAXEVAL_DATA`, three judges of the
Arena's 27,000 votes beside people: root mean square errors of ratings, and Kendall's tau.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.stats
from harness import asked_sizes, save

import jaxeval
from jaxeval import Battles
from jaxeval.ratings.gauge import ELO_PER_LOGIT

DEFAULTS = {"panels": 100, "resamples": 500}
JUDGES = ("gpt4_0125", "claude3_opus", "gpt35_turbo")


def coverage(n_judges: int, n_items: int, together: float, by: str, n_panels: int, n_resamples: int) -> dict[str, Any]:
    """Shares of intervals of 95 % that hold the truth, with their standard errors over panels."""
    strengths = pd.Series(np.linspace(-1, 1, 8), [f"model-{k}" for k in range(8)])
    truth, g = ELO_PER_LOGIT * strengths.to_numpy(), np.exp(np.linspace(-0.6, 0.6, n_judges))
    scale = np.sqrt(np.mean(g**2))  # that of the ratings
    truth, g = scale * truth, g / scale
    strengths *= scale
    first, second = np.triu_indices(8, 1)
    inside: dict[str, list[float]] = {"difference": [], "discrimination": [], "side_bias": []}
    for seed in range(n_panels):
        b = np.random.default_rng(seed).permutation(np.linspace(-0.5, 0.5, n_judges))
        verdicts = jaxeval.simulate_panel(
            n_items, discriminations=g, side_biases=b, together=together, strengths=strengths, seed=seed
        )
        panel: Any = jaxeval.fit_judge_panel(
            verdicts, n_resamples, seed, cluster=None if by == "items" else False, progress=False
        )
        lower, upper = (x.to_numpy()[first, second] for x in panel.difference_interval())
        difference = truth[first] - truth[second]
        inside["difference"].append(np.mean((lower <= difference) & (difference <= upper)))
        table = panel.judges().loc[[f"judge-{k + 1}" for k in range(n_judges)]]
        for measure, true in (("discrimination", g), ("side_bias", b)):
            ends = table[f"{measure}_lower"], table[f"{measure}_upper"]
            inside[measure].append(np.mean((ends[0] <= true) & (true <= ends[1])))
    row: dict[str, Any] = {"judges": n_judges, "items": n_items, "together": together, "drawn": by}
    for name, shares in inside.items():
        row[name] = float(np.mean(shares))
        row[f"{name}_se"] = float(np.std(shares, ddof=1) / np.sqrt(n_panels))
    return row


def speed(n_models: int) -> dict[str, Any]:
    """Seconds and processor seconds of 1,000 resamples, compiled; the least of some runs."""
    g, b = np.linspace(0.5, 1.5, 10), np.linspace(-0.4, 0.4, 10)
    verdicts = jaxeval.simulate_panel(10_000, n_models, discriminations=g, side_biases=b, together=0.5)
    times = []
    for _ in range(4):
        start = time.perf_counter(), time.process_time()
        jaxeval.fit_judge_panel(verdicts, progress=False)
        times.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    seconds, processor = np.min(times[1:], axis=0)
    return {"models": n_models, "seconds": seconds, "processor_seconds": processor, "first_seconds": times[0][0]}


def arena(folder: Path) -> list[dict[str, Any]]:
    """Errors of ratings beside people's, of the panel and of each judge."""
    table = pd.read_parquet(folder / "arena27k_human_3judges.parquet")
    sides = table[["model_a", "model_b"]]

    def plain(name: str) -> pd.Series:
        return jaxeval.fit_bradley_terry(Battles.from_pandas(sides.assign(winner=table[name]))).ratings

    people = plain("human")
    boards = {name: plain(name) for name in JUDGES}
    panel: Any = jaxeval.fit_judge_panel(table.drop(columns="human"), 2, judges=JUDGES, progress=False)
    rows = []
    for name, ratings in {"panel": panel.ratings, **boards}.items():
        error, tau = np.sqrt(((ratings - people) ** 2).mean()), scipy.stats.kendalltau(ratings, people)[0]
        # Its scale apart, which no panel knows.
        scaled = (ratings - 1000) * people.std() / ratings.std() + 1000
        rows.append(
            {"ratings": name, "error": error, "error_scaled": np.sqrt(((scaled - people) ** 2).mean()), "tau": tau}
        )
    return rows


def main() -> None:
    sizes = asked_sizes(__doc__, **DEFAULTS)
    found: dict[str, Any] = {"speed": [speed(n) for n in (20, 60)]}
    print(pd.DataFrame(found["speed"]).round(2).to_string())
    if folder := os.environ.get("JAXEVAL_DATA"):
        found["arena27k"] = arena(Path(folder))
        print(pd.DataFrame(found["arena27k"]).round(3).to_string())
    cases = [(3, 1500, 0.0, "items"), (10, 300, 0.0, "items"), (3, 1500, 0.7, "items"), (3, 1500, 0.7, "verdicts"),
             (10, 300, 0.7, "items"), (10, 300, 0.7, "verdicts")]  # fmt: skip
    found["coverage"] = []
    for case in cases:
        found["coverage"].append(coverage(*case, sizes.panels, sizes.resamples))
        print(pd.DataFrame(found["coverage"][-1:]).round(3).to_string(), flush=True)
    if vars(sizes) == DEFAULTS:
        save("judge_panel", {**DEFAULTS, **found})


if __name__ == "__main__":
    main()
