"""Do intervals of scores hold? Coverage by simulation, for every regime, small cases too.

    python benchmarks/score_coverage.py
    python benchmarks/score_coverage.py --boards 200   # a quick look: nothing is written

Every case draws boards of one model (or of two, for differences), whose truth is known, and asks how often the interval
of `score_leaderboard` or `compare_scores` holds it. Beside it stands what a bootstrap by percentiles holds on the same
boards, where one is in use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from harness import asked_sizes, save
from numpy.typing import NDArray

from jaxeval import ItemScores, compare_scores
from jaxeval.data.item_scores import ItemGroups, Trials
from jaxeval.scores.estimates import Population, estimate_scores

LEVEL, N_DRAWS = 0.95, 400
Array = NDArray[Any]


def scores_of(values: Array, **further: Any) -> ItemScores:
    """Scores (I, M) of models."""
    n_items, n_models = values.shape
    return ItemScores(values[:, None], pd.RangeIndex(n_items), pd.Index(["s"]), pd.RangeIndex(n_models), **further)


def groups(number: Array) -> ItemGroups:
    """Groups by their number."""
    return ItemGroups("group", pd.RangeIndex(int(number.max()) + 1), number)


def interval(scores: ItemScores, drawn: Population) -> tuple[float, float]:
    """The interval of the first model on a board."""
    ends = estimate_scores(scores, np.ones(len(scores.items), bool), drawn).interval(LEVEL)
    return float(ends["lower"].iloc[0]), float(ends["upper"].iloc[0])


def percentiles(units: Array, size: Array | None, rng: np.random.Generator) -> tuple[float, float]:
    """Of means of ``units`` (U,) drawn with replacement, or of ratios to their ``size``."""
    drawn = rng.multinomial(len(units), np.full(len(units), 1 / len(units)), N_DRAWS)
    means = drawn @ units / (len(units) if size is None else drawn @ size)
    return tuple(np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))


Case = tuple[dict[str, Any], Callable[[np.random.Generator], tuple[float, ItemScores, Population, Any]]]


def shares(n: int, p: float) -> Case:
    """Right and wrong answers to independent items."""

    def make(rng: np.random.Generator) -> tuple[float, ItemScores, Population, Any]:
        x = (rng.random((n, 1)) < p).astype(float)
        return p, scores_of(x), "items", (x[:, 0], None)

    return {"regime": "items", "scores": f"right or wrong, {p:g}", "units": n}, make


def graded(n: int, shape: str) -> Case:
    """Graded scores: about symmetric, or close to their upper end."""
    a, b = {"beta(2, 2)": (2, 2), "beta(8, .5)": (8, 0.5)}[shape]

    def make(rng: np.random.Generator) -> tuple[float, ItemScores, Population, Any]:
        x = rng.beta(a, b, (n, 1))
        return a / (a + b), scores_of(x), "items", (x[:, 0], None)

    return {"regime": "items", "scores": f"graded, {shape}", "units": n}, make


def clusters(n: int, size: int, kind: str) -> Case:
    """Clusters of 1 to 2 ``size`` - 1 items, which share half of what makes items hard."""

    def make(rng: np.random.Generator) -> tuple[float, ItemScores, Population, Any]:
        sizes = rng.integers(1, 2 * size, n)
        number = np.repeat(np.arange(n), sizes)
        chance = np.clip(0.7 + 0.25 * rng.uniform(-1, 1, n), 0, 1)[number]
        right, noise = rng.random(len(number)) < chance, rng.normal(0, 0.2, len(number))
        x = right.astype(float) if kind == "right or wrong" else chance + noise
        sums = np.bincount(number, x)
        return 0.7, scores_of(x[:, None], cluster=groups(number)), "items", (sums, sizes)

    return {"regime": "items", "scores": f"{kind}, clusters of {size}", "units": n}, make


def within_benchmarks(n_benchmarks: int, n: int) -> Case:
    """Macro averages: the same benchmarks, new items."""

    def make(rng: np.random.Generator) -> tuple[float, ItemScores, Population, Any]:
        p = np.linspace(0.3, 0.9, n_benchmarks)
        number = np.repeat(np.arange(n_benchmarks), n)
        x = (rng.random(len(number)) < p[number]).astype(float)
        return float(p.mean()), scores_of(x[:, None], benchmark=groups(number)), "items", None

    return {"regime": "items", "scores": f"macro average of {n_benchmarks} benchmarks", "units": n_benchmarks * n}, make


def new_benchmarks(n: int, spread: str) -> Case:
    """Benchmarks drawn anew, of 200 items each."""

    def make(rng: np.random.Generator) -> tuple[float, ItemScores, Population, Any]:
        own = rng.normal(0, 0.1, n) if spread == "normal" else 0.1 - rng.exponential(0.1, n)
        p = np.clip(0.6 + own, 0.02, 0.98)
        number = np.repeat(np.arange(n), 200)
        x = (rng.random(len(number)) < p[number]).astype(float)
        means = x.reshape(n, 200).mean(1)
        return 0.6, scores_of(x[:, None], benchmark=groups(number)), "benchmarks", (means, None)

    return {"regime": "benchmarks", "scores": f"benchmarks' means {spread}", "units": n}, make


def trials(n: int, k: int, drawn: Population) -> Case:
    """K trials of items whose chances differ: Beta(.6, .6)."""

    def make(rng: np.random.Generator) -> tuple[float, ItemScores, Population, Any]:
        p = rng.beta(0.6, 0.6, n)
        x = (rng.random((n, k)) < p[:, None]).astype(float)
        own = Trials(np.repeat(np.arange(n), k), x.reshape(-1))
        truth = 0.5 if drawn == "items" else float(p.mean())
        means = x.mean(1)
        return truth, scores_of(means[:, None], trials=own), drawn, (means, None) if drawn == "items" else None

    return {"regime": drawn.value, "scores": f"{k} trials", "units": n}, make


def cases() -> Iterator[Case]:
    """All of them."""
    yield from (shares(n, p) for p in (0.5, 0.9, 0.98) for n in (20, 50, 200, 1000))
    yield from (graded(n, shape) for shape in ("beta(2, 2)", "beta(8, .5)") for n in (10, 30, 100))
    yield from (clusters(n, 5, kind) for kind in ("right or wrong", "graded") for n in (5, 10, 30, 100))
    yield from (within_benchmarks(g, n) for g, n in ((3, 30), (10, 50)))
    yield from (new_benchmarks(n, spread) for spread in ("normal", "skew") for n in (5, 10, 20))
    yield from (trials(n, k, "trials") for n in (20, 50, 200) for k in (2, 4))
    yield from (trials(n, k, "items") for n, k in ((50, 2), (200, 4)))


def differences(n: int, kind: str, n_boards: int, seed: int) -> dict[str, Any]:
    """Paired differences of two models that solve items of unequal difficulty."""
    rng = np.random.default_rng([seed, n, len(kind)])
    held, z = [], np.linspace(-8, 8, 4001)
    weight = np.exp(-(z**2) / 2) / np.exp(-(z**2) / 2).sum()
    truth = float(weight @ (1 / (1 + np.exp(-1.5 * z - 0.6)) - 1 / (1 + np.exp(-1.5 * z))))
    for _ in range(n_boards):
        hard = 1.5 * rng.normal(size=(n, 1))
        p = 1 / (1 + np.exp(-hard - np.array([0.6, 0.0])))
        x = (rng.random((n, 2)) < p).astype(float) if kind == "right or wrong" else p + rng.normal(0, 0.1, (n, 2))
        found = compare_scores(scores_of(x), 0, 1)
        held.append(found.lower <= truth <= found.upper)
    row = {"regime": "difference", "scores": kind, "units": n, "coverage": float(np.mean(held))}
    return {**row, "error": float(np.sqrt(np.mean(held) * (1 - np.mean(held)) / n_boards))}


def main() -> None:
    """Prints the table; a whole run writes it."""
    asked = asked_sizes(__doc__, boards=1000, seed=0)
    rows = []
    for number, (row, make) in enumerate(cases()):
        rng = np.random.default_rng([asked.seed, number])
        held, by_percentiles, width = [], [], []
        for _ in range(asked.boards):
            truth, scores, drawn, units = make(rng)
            lower, upper = interval(scores, drawn)
            held.append(lower <= truth <= upper)
            width.append(upper - lower)
            if units is not None:
                low, high = percentiles(*units, rng)
                by_percentiles.append(low <= truth <= high)
        share = float(np.mean(held))
        found = {"coverage": share, "error": float(np.sqrt(share * (1 - share) / asked.boards))}
        found["percentiles"] = float(np.mean(by_percentiles)) if by_percentiles else None
        rows.append({**row, **found, "width": float(np.nanmean(width))})
        print(rows[-1], flush=True)
    for kind in ("right or wrong", "graded"):
        for n in (30, 100, 500):
            rows.append(differences(n, kind, asked.boards // 2, asked.seed))
            print(rows[-1], flush=True)
    print(pd.DataFrame(rows).to_string(index=False, float_format="{:.3f}".format))
    if asked.boards >= 1000:
        save("score_coverage", {"level": LEVEL, "rows": rows})


if __name__ == "__main__":
    main()
