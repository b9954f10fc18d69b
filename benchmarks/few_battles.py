"""Do intervals of models with few battles hold? Coverage with and without Firth's penalty, by kind of interval.

    python benchmarks/few_battles.py
    python benchmarks/few_battles.py --boards 20   # a quick look: nothing is written

Boards of 8 models, whose strengths lie evenly between -1 and 1 logits, with 10 to 200 battles a model between pairs
drawn at random. Every board is a slice of one bootstrap. An interval that is not there, as that of an undefeated model
without the penalty, holds nothing; the share of such models is printed beside.

Three designs, in which the expected result is that of the strengths: wins and losses; a fourth of the battles of equals
tied; and prompts of 4 battles, half of which share one random number for all of their results, resampled as clusters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from harness import asked_sizes, save
from scipy.special import expit

import jaxeval
from jaxeval.ratings.gauge import ELO_PER_LOGIT

BATTLES = (10, 20, 50, 200)  # of a model
N_MODELS, LEVEL = 8, 0.95
DESIGNS = ("wins", "ties", "prompts")
METHODS = [("none", "percentile"), ("none", "wald"), ("firth", "percentile"), ("firth", "basic"), ("firth", "wald")]
DEFAULTS = {"boards": 400, "resamples": 400}


def simulated_board(seed: int, design: str, battles: int) -> tuple[pd.DataFrame, pd.Series]:
    """Battles of a board, ``battles`` of each model on average, and its true strengths."""
    rng = np.random.default_rng([seed, battles, DESIGNS.index(design)])
    theta = rng.permutation(np.linspace(-1, 1, N_MODELS))
    n = N_MODELS * battles // 2
    a = rng.integers(0, N_MODELS, n)
    b = (a + rng.integers(1, N_MODELS, n)) % N_MODELS
    prompt, chance, p = np.arange(n) // 4, rng.random(n), expit(theta[a] - theta[b])
    if design == "prompts":
        shares = (rng.random(n) < 0.5)[prompt]
        chance = np.where(shares, rng.random(n)[prompt], chance)
        chance = np.where(shares & (a > b), 1 - chance, chance)  # a prompt favours models of one end of the list
    tied = p * (1 - p) if design == "ties" else 0.0
    target = np.where(chance < p - tied / 2, 1.0, np.where(chance < p + tied / 2, 0.5, 0.0))
    names = np.array([f"model-{k}" for k in range(N_MODELS)])
    table = pd.DataFrame({"model_a": names[a], "model_b": names[b], "target": target, "prompt": prompt, "board": seed})
    return table, pd.Series(theta, names)


def coverage(design: str, battles: int, n_boards: int, n_resamples: int) -> list[dict[str, Any]]:
    """A row for each of the `METHODS`."""
    boards = [simulated_board(seed, design, battles) for seed in range(n_boards)]
    table = pd.concat([board for board, _ in boards], ignore_index=True)
    rows = []
    for penalty in ("none", "firth"):
        fitted = jaxeval.bootstrap(
            table, n_resamples, by="board", penalty=penalty, max_slices=n_boards,
            cluster="prompt" if design == "prompts" else None,
        )  # fmt: skip
        for interval in [kind for own, kind in METHODS if own == penalty]:
            held, none, width, slope = [], [], [], []
            for (_, theta), board in zip(boards, fitted.values(), strict=True):
                rated = np.isfinite(board.fit.ratings)
                truth = theta[board.models]
                truth = 1000 + ELO_PER_LOGIT * (truth - truth[rated].mean())
                bounds = board.interval(LEVEL, interval)
                inside = (bounds["lower"] <= truth) & (truth <= bounds["upper"])
                held.append(inside.sum() / N_MODELS)
                none.append(bounds["lower"].isna().sum() / N_MODELS)
                width.append((bounds["upper"] - bounds["lower"]).median())
                off = truth[rated] - 1000
                slope.append((off * (board.fit.ratings[rated] - 1000)).sum() / (off**2).sum())
            rows.append(
                {
                    "design": design,
                    "battles": battles,
                    "penalty": penalty,
                    "interval": interval,
                    "coverage": np.mean(held),
                    "standard_error": np.std(held, ddof=1) / np.sqrt(n_boards),
                    "without_interval": np.mean(none),
                    "median_width_elo": np.nanmedian(width),
                    "slope": np.nanmean(slope),
                }
            )
    return rows


def main() -> None:
    sizes = asked_sizes(__doc__, **DEFAULTS)
    rows = [row for design in DESIGNS for n in BATTLES for row in coverage(design, n, sizes.boards, sizes.resamples)]
    found = pd.DataFrame(rows)
    for name in ("coverage", "standard_error", "without_interval", "median_width_elo", "slope"):
        print(name)
        print(found.pivot_table(name, ["design", "penalty", "interval"], "battles", sort=False).round(3).to_string())
    if vars(sizes) == DEFAULTS:
        save("few_battles", {"models": N_MODELS, "level": LEVEL, **DEFAULTS, "cells": rows})


if __name__ == "__main__":
    main()
