"""Few human votes and many verdicts: coverage, what a judge is worth, equality with ppi-python, and time.

    python benchmarks/few_votes.py
    python benchmarks/few_votes.py --boards 20   # a quick look: nothing is written

Coverage and worth: boards of 8 models, 500 human votes and 6,000 verdicts of a judge who repeats the human outcome with
probability 0.6 and else follows a taste of its own, with the pairs of both samples equally frequent, and not. Time:
55 models, 1,500 human votes and 23,500 verdicts, beside a plain bootstrap of 25,000 battles. ppi-python gives the point
estimate of the pooled form by gradient steps on rows. With `JAXEVAL_DATA`, what three judges are worth on the Arena's
real votes, of which 1,500 are taken as labelled.
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

DEFAULTS = {"boards": 800, "resamples": 400}
JUDGES = ("gpt4_0125", "claude3_opus", "gpt35_turbo")


def coverage(samples: str, equal: bool, n_boards: int, n_resamples: int) -> dict[str, Any]:
    """How often intervals hold, over the boards' ratings; errors, widths and the judge's worth."""
    strengths = jaxeval.simulate_strengths(8, seed=5)
    truth = 1000 + ELO_PER_LOGIT * strengths.to_numpy()
    inside, errors, spread, worth, bounds = [], [], [], [], []
    for seed in range(n_boards):
        human, judged, others = jaxeval.simulate_verdicts(500, 6_000, strengths=strengths, seed=seed, taste=0.5)
        if not equal:
            u, both = np.random.default_rng(seed).random(6_000), (others.model_a < 4) & (others.model_b < 4)
            others = others.filter(both | (u < 0.3))
        if samples == "people alone":
            board: Any = jaxeval.bootstrap(human, n_resamples, seed)
        else:
            board = jaxeval.prediction_powered(human, judged, others, None, n_resamples, seed, samples=samples)
            worth.append(board.worth)
            bounds.append(board.worth_interval())
        ends = board.interval()
        inside.append(((ends["lower"] <= truth) & (truth <= ends["upper"])).mean())
        errors.append(board.fit.ratings - truth)
        spread.append(board.standard_errors)
    noise = np.std(errors, axis=0)
    row = {
        "samples": samples,
        "equal_pairs": equal,
        "coverage": np.mean(inside),
        "standard_error": np.std(inside, ddof=1) / np.sqrt(n_boards),
        "largest_bias_elo": np.abs(np.mean(errors, axis=0)).max(),
        "error_elo": noise.mean(),
        "told_error_elo": np.mean(spread),
    }
    if worth:
        low, high = np.array(bounds).T
        row |= {
            "worth": np.mean(worth),
            "worth_in_interval": np.mean((low <= np.mean(worth)) & (np.mean(worth) <= high)),
        }
    return row


def against_ppi_python() -> dict[str, float]:
    """Largest difference of ratings at lam = 0.6, wins and losses only."""
    from ppi_py import ppi_logistic_pointestimate

    samples = jaxeval.simulate_verdicts(3_000, 20_000, 10, tie_rate=0.0, seed=1)
    rows = []
    for battles in samples:
        x = np.zeros((battles.n_rows, 10))
        x[np.arange(len(x)), battles.model_a] = 1
        x[np.arange(len(x)), battles.model_b] -= 1
        keep = battles.target != 0.5
        rows.append((x[:, 1:], battles.target, keep))
    (x, y, one), (_, f, two), (others, g, three) = rows
    both = one & two
    options = {"ftol": 1e-15, "gtol": 1e-12, "maxiter": 5000}
    found = ppi_logistic_pointestimate(
        x[both], y[both], f[both], others[three], g[three], lam=0.6, optimizer_options=options
    )
    found = np.r_[0, found]
    ours = jaxeval.prediction_powered(
        samples[0].filter(both), samples[1].filter(both), samples[2].filter(three), 0.6, 1, samples="pooled"
    )
    return {"largest_difference_elo": ELO_PER_LOGIT * np.abs(found - found.mean() - ours.fit.theta).max()}


def speed() -> dict[str, Any]:
    """Seconds of 1,000 resamples, beside those of plain battles."""
    samples = jaxeval.simulate_verdicts(1_500, 23_500, 55, seed=0)
    plain = jaxeval.simulate_battles(25_000, 55, seed=0)
    _, first, ours = first_and_later(lambda: jaxeval.prediction_powered(*samples, progress=False), 7)
    _, _, theirs = first_and_later(lambda: jaxeval.bootstrap(plain, progress=False), 7)
    return {
        "seconds": ours,
        "first_seconds": first,
        "plain_seconds": theirs,
        "ratio": ours["median"] / theirs["median"],
    }


def arena(folder: Path, n_splits: int = 20) -> list[dict[str, Any]]:
    """What the judges of arena27k are worth beside 1,500 votes, over random choices of these."""
    table = pd.read_parquet(folder / "arena27k_human_3judges.parquet")
    rows = []
    for judge in JUDGES:
        worth = []
        for seed in range(n_splits):
            order = np.random.default_rng(seed).permutation(len(table))
            parts = [(order[:1500], "human"), (order[:1500], judge), (order[1500:], judge)]
            frames = [
                table.iloc[rows][["model_a", "model_b"]].assign(winner=table[column].to_numpy()[rows])
                for rows, column in parts
            ]
            worth.append(jaxeval.prediction_powered(*map(Battles.from_pandas, frames), n_resamples=2).worth)
        rows.append({"judge": judge, "worth": np.mean(worth), "least": min(worth), "most": max(worth)})
    return rows


def main() -> None:
    sizes = asked_sizes(__doc__, **DEFAULTS)
    found: dict[str, Any] = {"speed": speed()}
    print(found["speed"])
    cases = [("by pair", True), ("by pair", False), ("pooled", True), ("pooled", False), ("people alone", True)]
    found["coverage"] = [coverage(*case, sizes.boards, sizes.resamples) for case in cases]
    print(pd.DataFrame(found["coverage"]).round(3).to_string())
    try:
        found["ppi_python"] = against_ppi_python()
        print(found["ppi_python"])
    except ImportError:
        print("ppi-python is not installed: no comparison")
    if folder := os.environ.get("JAXEVAL_DATA"):
        found["arena27k"] = arena(Path(folder))
        print(pd.DataFrame(found["arena27k"]).round(1).to_string())
    if vars(sizes) == DEFAULTS:
        save("few_votes", {**DEFAULTS, **found})


if __name__ == "__main__":
    main()
