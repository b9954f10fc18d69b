"""Do intervals of models with few battles hold? Coverage with and without Firth's penalty, by kind of interval.

    python benchmarks/few_battles.py
    python benchmarks/few_battles.py --penalty auto   # cells of the default alone; the others stay as they are
    python benchmarks/few_battles.py --boards 20      # a quick look: nothing is written

Boards of 8 models, whose strengths lie evenly between -1 and 1 logits, with 10 to 1,000 battles a model between pairs
drawn at random; "auto" is the default, and the only one that is tried with 1,000. Every
board is a slice of one bootstrap. An interval that is not there, as that of an undefeated model without the penalty,
holds nothing; the share of such models is printed beside.

Three designs, in which the expected result is that of the strengths: wins and losses; a fourth of the battles of equals
tied; and prompts of 4 battles, half of which share one random number for all of their results, resampled as clusters.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import pandas as pd
from harness import RESULTS, environment, save
from scipy.special import expit

import jaxeval
from jaxeval.ratings.gauge import ELO_PER_LOGIT

BATTLES = (10, 20, 50, 200)  # of a model
MANY, TIMES = 1000, 3  # by default alone, on so many times more boards
N_MODELS, LEVEL = 8, 0.95
DESIGNS = ("wins", "ties", "prompts")
METHODS = [
    ("none", "percentile"), ("none", "wald"), ("firth", "percentile"), ("firth", "basic"), ("firth", "wald"),
    ("auto", "auto"),
]  # fmt: skip
PENALTIES = tuple(dict.fromkeys(penalty for penalty, _ in METHODS))
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


def coverage(
    design: str, battles: int, n_boards: int, n_resamples: int, penalties: tuple[str, ...] = PENALTIES
) -> list[dict[str, Any]]:
    """A row for each of the `METHODS` with one of these penalties."""
    boards = [simulated_board(seed, design, battles) for seed in range(n_boards)]
    table = pd.concat([board for board, _ in boards], ignore_index=True)
    rows = []
    for penalty in penalties:
        fitted = jaxeval.bootstrap(
            table, n_resamples, by="board", penalty=penalty, max_slices=n_boards,
            cluster="prompt" if design == "prompts" else None, progress=False,
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
                    "date": environment()["date"],
                    "boards": n_boards,
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


def merged(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Saved cells with these in the place of their like; a cell without a date is of the day of the whole file."""
    path = RESULTS / "few_battles.json"
    saved = json.loads(path.read_text()) if path.exists() else {"cells": []}
    parts = ("design", "battles", "penalty", "interval")
    found = {tuple(cell[name] for name in parts): cell for cell in cells}
    kept = [
        {"date": saved["environment"]["date"], "boards": saved["boards"], **cell}
        for cell in saved["cells"]
        if tuple(cell[name] for name in parts) not in found
    ]
    order = {**{penalty: k for k, penalty in enumerate(PENALTIES)}, **{design: k for k, design in enumerate(DESIGNS)}}
    return sorted([*kept, *cells], key=lambda cell: (order[cell["design"]], cell["battles"], order[cell["penalty"]]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in DEFAULTS.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--penalty", choices=PENALTIES, help="cells with this penalty alone")
    asked = parser.parse_args()
    rows: list[dict[str, Any]] = []
    whole = all(getattr(asked, name) == default for name, default in DEFAULTS.items())
    for design in DESIGNS:
        for n in (*BATTLES, MANY):
            tried = ("auto",) if n == MANY else PENALTIES
            tried = tuple(own for own in tried if asked.penalty in (None, own))
            boards = asked.boards * (TIMES if n == MANY else 1)
            rows += coverage(design, n, boards, asked.resamples, tried) if tried else []
            print(
                *(f"{row['coverage']:.3f} ({row['interval']}, {design}, {n})" for row in rows[-len(tried) :]),
                flush=True,
            )
        if whole:
            save("few_battles", {"models": N_MODELS, "level": LEVEL, **DEFAULTS, "cells": merged(rows)})
    found = pd.DataFrame(rows)
    for name in ("coverage", "standard_error", "without_interval", "median_width_elo", "slope"):
        print(name)
        print(found.pivot_table(name, ["design", "penalty", "interval"], "battles", sort=False).round(3).to_string())


if __name__ == "__main__":
    main()
