"""How often `jaxeval.goodness_of_fit` rejects honest boards, and finds planted misfit: the table of its docs page.

python benchmarks/misfit_rates.py [--boards 1000] [--only NAME]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

import jaxeval

Rng = np.random.Generator
ALPHA = 0.05


def strengths(rng: Rng, m: int, sd: float = 0.8) -> np.ndarray:
    return rng.normal(0, sd, m)


def votes(rng: Rng, m: int, per_pair: np.ndarray, *, extra: np.ndarray | None = None, ties: str = "none",
          rate: float | np.ndarray = 0.0, theta: np.ndarray | None = None) -> pd.DataFrame:  # fmt: skip
    """A row a vote; ``extra`` (P,) is added to the difference of strengths of each pair."""
    first, second = np.triu_indices(m, 1)
    theta = strengths(rng, m) if theta is None else theta
    gap = theta[first] - theta[second] + (0 if extra is None else extra)
    pair = np.repeat(np.arange(len(first)), per_pair)
    z, u = gap[pair], rng.random(len(pair))
    win, tie = 1 / (1 + np.exp(-z)), np.zeros(len(pair))
    if ties == "rao_kupper":
        win, loss = 1 / (1 + np.exp(0.6 - z)), 1 / (1 + np.exp(0.6 + z))
        tie = 1 - win - loss
    if ties == "davidson":
        total = 1 + np.exp(z / 2) + np.exp(-z / 2)
        win, tie = np.exp(z / 2) / total, 1 / total
    if ties == "own":  # of each pair its own share, with the points of one number per model
        tie = np.minimum(np.broadcast_to(rate, len(first))[pair], 1.8 * np.minimum(win, 1 - win))
        win = win - tie / 2
    return frame(first[pair], second[pair], u < win, u < win + tie, rng)


def frame(a: np.ndarray, b: np.ndarray, won: np.ndarray, not_lost: np.ndarray, rng: Rng) -> pd.DataFrame:
    swap = rng.random(len(a)) < 0.5
    target = np.where(won, 1.0, np.where(not_lost, 0.5, 0.0))
    return pd.DataFrame(
        {
            "model_a": np.where(swap, b, a).astype(str),
            "model_b": np.where(swap, a, b).astype(str),
            "target": np.where(swap, 1 - target, target),
        }
    )


def voters(rng: Rng, m: int, n_voters: int, each: int, sd: float, n_pairs: int) -> pd.DataFrame:
    """Voters with tastes of their own, each of whom sees ``n_pairs`` pairs over and over."""
    theta, taste = strengths(rng, m), rng.normal(0, sd, (n_voters, m))
    a = rng.integers(0, m, (n_voters, n_pairs))
    b = (a + rng.integers(1, m, a.shape)) % m
    voter = np.repeat(np.arange(n_voters), each)
    seen = rng.integers(0, n_pairs, len(voter))
    a, b = a[voter, seen], b[voter, seen]
    z = theta[a] - theta[b] + taste[voter, a] - taste[voter, b]
    won = rng.random(len(z)) < 1 / (1 + np.exp(-z))
    return frame(a, b, won, won, rng).assign(voter=voter)


def planted(rng: Rng, m: int, per_pair: int, cycle: float) -> pd.DataFrame:
    """``cycle`` logits on each edge of a circle of the first three models."""
    extra = np.zeros(m * (m - 1) // 2)
    extra[0], extra[1], extra[m - 1] = cycle, -cycle, cycle  # pairs (0, 1), (0, 2) and (1, 2)
    return votes(rng, m, rng.poisson(per_pair, len(extra)) + 1, extra=extra, theta=np.linspace(0.8, -0.8, m))


def of_pairs(rng: Rng, m: int, low: int, high: int, share: float = 1.0, **more: object) -> pd.DataFrame:
    p = m * (m - 1) // 2
    per_pair = rng.integers(low, high + 1, p) * (rng.random(p) < share)
    return votes(rng, m, per_pair, **more)  # type: ignore[arg-type]


def skewed(rng: Rng, m: int) -> pd.DataFrame:
    p = m * (m - 1) // 2
    return votes(rng, m, np.minimum(1 + (rng.pareto(0.8, p) * 3).astype(int), 400) * (rng.random(p) < 0.9))


def own_ties(rng: Rng, m: int, low: int, high: int) -> pd.DataFrame:
    return of_pairs(rng, m, low, high, ties="own", rate=rng.beta(2, 4, m * (m - 1) // 2))


BOARDS: dict[str, tuple[str | None, Callable[[Rng], pd.DataFrame]]] = {
    "12 models, 60 to 70 votes a pair": (None, lambda r: of_pairs(r, 12, 60, 70)),
    "15 models, 1 to 5 votes a pair": (None, lambda r: of_pairs(r, 15, 1, 5)),
    "15 models, 1 vote a pair": (None, lambda r: of_pairs(r, 15, 1, 1)),
    "30 models, 1 to 3 votes of 40% of the pairs": (None, lambda r: of_pairs(r, 30, 1, 3, 0.4)),
    "12 models, 1 to 400 votes a pair, few many": (None, partial(skewed, m=12)),
    "ties of Davidson, 12 models, 300 votes a pair": (None, lambda r: of_pairs(r, 12, 300, 300, ties="davidson")),
    "ties of each pair's own, 60 to 70 votes a pair": (None, partial(own_ties, m=12, low=60, high=70)),
    "ties of each pair's own, 1 to 5 votes a pair": (None, partial(own_ties, m=12, low=1, high=5)),
    "ties of each pair's own, 1 vote a pair": (None, partial(own_ties, m=12, low=1, high=1)),
    "ties of Rao and Kupper, 12 models, 300 a pair": (None, lambda r: of_pairs(r, 12, 300, 300, ties="rao_kupper")),
    "ties of Rao and Kupper, 12 models, 3,000 a pair": (None, lambda r: of_pairs(r, 12, 3000, 3000, ties="rao_kupper")),
    "voters of 5 votes on 1 pair, taste 1, no cluster": (None, lambda r: voters(r, 12, 1000, 5, 1.0, 1)),
    "voters of 5 votes on 1 pair, taste 1": ("voter", lambda r: voters(r, 12, 1000, 5, 1.0, 1)),
    "voters of 20 votes on 1 pair, taste .5": ("voter", lambda r: voters(r, 12, 250, 20, 0.5, 1)),
    "voters of 20 votes on 3 pairs, taste .5": ("voter", lambda r: voters(r, 12, 250, 20, 0.5, 3)),
    "voters of 20 votes on 10 pairs, taste 1": ("voter", lambda r: voters(r, 12, 250, 20, 1.0, 10)),
    "voters of 3 votes on 1 pair, 3 votes a pair": ("voter", lambda r: voters(r, 15, 105, 3, 0.5, 1)),
    "voters of 2 votes on 2 pairs, 3 votes a pair": ("voter", lambda r: voters(r, 15, 150, 2, 0.5, 2)),
    "planted circle of .3, 100 votes a pair": (None, partial(planted, m=20, per_pair=100, cycle=0.3)),
    "planted circle of .7, 100 votes a pair": (None, partial(planted, m=20, per_pair=100, cycle=0.7)),
    "planted circle of .7, 30 votes a pair": (None, partial(planted, m=20, per_pair=30, cycle=0.7)),
}


def soft(rng: Rng, m: int) -> pd.DataFrame:
    """Targets of a judge: between 0 and 1, and on average what the ratings say."""
    battles = of_pairs(rng, m, 60, 70)
    a, b = (battles[side].astype(int).to_numpy() for side in ("model_a", "model_b"))
    theta = strengths(rng, m)
    mean = 1 / (1 + np.exp(theta[b] - theta[a]))
    return battles.assign(target=rng.beta(3 * mean, 3 * (1 - mean)))


BOARDS["soft targets, 12 models, 60 to 70 votes a pair"] = None, lambda r: soft(r, 12)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boards", type=int, default=1000)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    print("| boards | X2 | deviance | pairs | triads | the planted triad | side |\n|---|---|---|---|---|---|---|")
    for number, (name, (cluster, draw)) in enumerate(BOARDS.items()):
        if asked.only not in name:
            continue
        rows, start = [], time.time()
        for k in range(asked.boards):
            rng = np.random.default_rng([0, number, k])
            battles = jaxeval.Battles.from_pandas(draw(rng))
            found = jaxeval.goodness_of_fit(battles, cluster=cluster, n_resamples=199, seed=k, progress=False)
            circle = found.triads[["model_1", "model_2", "model_3"]].isin(["0", "1", "2"]).all(axis=1)
            rows.append(
                (
                    found.p_value,
                    found.deviance_p_value,
                    found.pairs["p_value"].min(),
                    found.triads["p_value"].min() if len(found.triads) else np.nan,
                    found.triads.loc[circle, "p_value"].min() if "planted" in name else np.nan,
                    found.table["p_value"].iloc[2],
                )
            )
        cells = []
        for p in np.array(rows).T:
            known = p[~np.isnan(p)]
            share = (known <= ALPHA).mean() if len(known) > len(p) / 2 else np.nan
            error = np.sqrt(share * (1 - share) / max(len(known), 1))
            cells.append("" if np.isnan(share) else f"{share:.3f} ({error:.3f})")
        print(f"| {name} | {' | '.join(cells)} |  <!-- {time.time() - start:.0f} s -->", flush=True)


if __name__ == "__main__":
    main()
