"""Whether intervals hold that count judges and prompts: of boards of votes, panels, Soft-Elo and others.

    python benchmarks/which_error_boards.py
    python benchmarks/which_error_boards.py --boards 10   # a quick look: nothing is written

Every judge, or prompt, has a taste of its own in models: normal with a standard deviation in logits. The truth is what
the mean of all judges like these would give. Coverage is the mean over models, beside that of intervals without facets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from harness import asked_sizes, save

import jaxeval

ELO = 400 / np.log(10)
QUIET: dict[str, Any] = {"n_resamples": 200, "progress": False}
#: Models, judges, prompts, items, standard deviations of judges' and prompts' tastes; how items meet judges.
BOARDS: list[tuple[tuple[int, int, int, int], tuple[float, float], str]] = [
    ((20, 3, 1, 600), (0.2, 0.0), "crossed"),
    ((20, 3, 1, 600), (0.15, 0.0), "crossed"),
    ((20, 6, 1, 600), (0.1, 0.0), "crossed"),
    ((20, 8, 1, 600), (0.15, 0.0), "crossed"),
    ((20, 4, 3, 150), (0.15, 0.1), "crossed"),
    ((20, 8, 1, 2400), (0.2, 0.0), "a judge an item, unequal shares"),
    ((20, 4, 1, 600), (0.0, 0.0), "crossed"),
]

#: Kinds with more data sets: as many times.
MORE = {"agreement": 10}

Ends = tuple[np.ndarray, np.ndarray, np.ndarray]  # lower, upper, truth


def battles(
    sizes: tuple[int, int, int, int], spreads: tuple[float, float], lie: str, rng: np.random.Generator
) -> tuple[pd.DataFrame, np.ndarray]:
    """Votes of judges on items under prompts, and the strengths that they share, logits."""
    m, judges, prompts, items = sizes
    shared = np.linspace(1, -1, m)
    of_judge, of_prompt = rng.normal(0, spreads[0], (judges, m)), rng.normal(0, spreads[1], (prompts, m))
    a = rng.integers(0, m, items)
    b = (a + rng.integers(1, m, items)) % m
    item, judge, prompt = (x.ravel() for x in np.indices((items, judges, prompts)))
    if lie != "crossed":
        item, prompt = np.arange(items), np.zeros(items, int)
        judge = rng.choice(judges, items, p=np.arange(1, judges + 1) / np.arange(1, judges + 1).sum())
    row = np.arange(len(item))
    strength = shared + of_judge[judge] + of_prompt[prompt]
    won = rng.random(len(item)) < 1 / (1 + np.exp(strength[row, b[item]] - strength[row, a[item]]))
    names = np.array([f"m{k:02d}" for k in range(m)])
    sides = {"model_a": names[a[item]], "model_b": names[b[item]], "winner": np.where(won, "model_a", "model_b")}
    return pd.DataFrame({**sides, "judge": judge, "prompt": prompt, "item": item}), shared


def rated(board: Any, shared: np.ndarray) -> Ends:
    """Ends of the ratings of a board, and the truth."""
    ends = board.interval()
    return ends["lower"].to_numpy(), ends["upper"].to_numpy(), 1000 + ELO * shared


def of_votes(number: int) -> Callable[[int, bool], Ends]:
    """A board of votes of one of the designs."""
    sizes, spreads, lie = BOARDS[number]
    facets = ["judge", "prompt"][: 1 + (sizes[2] > 1)]

    def ends(seed: int, counted: bool) -> Ends:
        table, shared = battles(sizes, spreads, lie, np.random.default_rng([seed, number]))
        cluster = "item" if lie == "crossed" else None
        return rated(jaxeval.bootstrap(table, cluster=cluster, random=facets if counted else (), **QUIET), shared)

    return ends


def of_panel(seed: int, counted: bool) -> Ends:
    """A panel of four judges on 10 models."""
    table, shared = battles((10, 4, 1, 300), (0.2, 0.0), "crossed", np.random.default_rng(seed))
    found = jaxeval.fit_judge_panel(table, item="item", side_bias=False, random="judge" if counted else (), **QUIET)
    return rated(found, shared)


def of_few_votes(seed: int, counted: bool) -> Ends:
    """400 votes on prompts of five kinds, and 3,000 more verdicts of one of four judges each."""
    rng, m = np.random.default_rng(seed), 6
    shared = np.linspace(0.8, -0.8, m)
    of_judge, of_kind = shared + rng.normal(0, 0.3, (4, m)), shared + rng.normal(0, 0.15, (5, m))
    names = np.array([f"m{k}" for k in range(m)])
    tables = []
    for n in (400, 3000):
        a = rng.integers(0, m, n)
        b, kind, judge = (a + rng.integers(1, m, n)) % m, rng.integers(0, 5, n), rng.integers(0, 4, n)
        noise, rows = rng.logistic(size=n), np.arange(n)
        own = np.where(rng.random(n) < 0.5, noise, rng.logistic(size=n))  # judges share half of people's noise
        sides = pd.DataFrame({"model_a": names[a], "model_b": names[b], "kind": kind, "judge": judge})
        for strength, more in ((of_kind[kind], noise), (of_judge[judge], own)):
            won = strength[rows, a] - strength[rows, b] + more > 0
            tables.append(sides.assign(winner=np.where(won, "model_a", "model_b")))
    human, judged, _, unlabelled = tables
    facets = ["kind", "judge"] if counted else ()
    return rated(jaxeval.prediction_powered(human, judged, unlabelled, random=facets, **QUIET), shared)


def of_soft_elo(seed: int, counted: bool) -> Ends:
    """Ratings of eight models held out, by verdicts under four templates."""
    rng, m, n = np.random.default_rng(seed), 8, 1200
    shared = np.linspace(0.8, -0.8, m)
    tastes, rows, template = rng.normal(0, 0.25, (4, m)), np.arange(n), np.arange(n) % 4
    a = rng.integers(0, m, n)
    b = (a + rng.integers(1, m, n)) % m
    gap = shared[a] - shared[b]
    judged = gap + (tastes[template][rows, a] - tastes[template][rows, b])
    names = np.array([f"m{k}" for k in range(m)])
    table = pd.DataFrame({"model_a": names[a], "model_b": names[b], "template": template})
    table["gap"], table["human"] = (rng.random((2, n)) < 1 / (1 + np.exp(-np.stack([judged, gap])))) * 1.0
    data = jaxeval.JudgedBattles.from_pandas(
        table.assign(gap=2 * table["gap"] - 1), score_difference="gap", label_coding="a_wins_1"
    )
    found = jaxeval.soft_elo(data, random="template" if counted else (), **QUIET).models
    found = found[found["method"] == "hard"].sort_values("model")
    half = 1.959964 * found["standard_error"].to_numpy()
    truth = 1500 + ELO * (shared - (shared.sum() - shared) / (m - 1))
    return found["judge_elo"].to_numpy() - half, found["judge_elo"].to_numpy() + half, truth


def of_anchored(seed: int, counted: bool) -> Ends:
    """Four models against a reference, by five judges on 60 prompts."""
    rng = np.random.default_rng(seed)
    shared = np.array([0.8, 0.3, -0.3, -0.8])
    model, judge, item = (x.ravel() for x in np.indices((4, 5, 60)))
    logit = shared[:, None] + rng.normal(0, 0.3, (4, 5))
    words = np.where(rng.random(len(item)) < 1 / (1 + np.exp(-logit[model, judge])), "win", "loss")
    table = pd.DataFrame({"model": model, "judge": judge, "item": item, "verdict": words})
    data = jaxeval.AnchoredVerdicts.from_pandas(table)
    if counted:
        found = jaxeval.anchored_scores(data, "model", random="judge")
        return found["rating_lower"].to_numpy(), found["rating_upper"].to_numpy(), ELO * shared
    ends = jaxeval.joint_scores(data, "model", **QUIET).interval()
    lower, upper = (ELO * np.log(x / (1 - x)) for x in (ends["lower"].to_numpy(), ends["upper"].to_numpy()))
    return lower, upper, ELO * shared


_WIDE = np.random.default_rng(1).normal(1.2, np.hypot(0.8, 0.5), 10**6)
_AGREEMENT = float((1 / (1 + np.exp(-_WIDE))).mean())


def of_agreement(seed: int, counted: bool) -> Ends:
    """Two judges beside people, on 40 items under five prompts each."""
    rng = np.random.default_rng(seed)
    moves, hard, truth = rng.normal(0, 0.8, (2, 5)), rng.normal(0, 0.5, 40), rng.random(40) < 0.5
    item, prompt = (x.ravel() for x in np.indices((40, 5)))
    table = pd.DataFrame({"item": item, "prompt": prompt, "model_a": "x", "model_b": "y"})
    table["human"] = np.where(truth[item], "model_a", "model_b")
    for j in range(2):
        right = rng.random(len(item)) < 1 / (1 + np.exp(-(1.2 + moves[j][prompt] + hard[item])))
        table[f"judge-{j}"] = np.where(truth[item] == right, "model_a", "model_b")
    facets = "prompt" if counted else ()
    found = jaxeval.judge_agreement(table, judges=["judge-0", "judge-1"], random=facets, **QUIET).table.iloc[:2]
    return found["agreement_lower"].to_numpy(), found["agreement_upper"].to_numpy(), np.full(2, _AGREEMENT)


def simulated(ends: Callable[[int, bool], Ends], n: int) -> dict[str, Any]:
    """How often intervals hold the truth with and without facets, and how much longer they are."""
    held: list[list[float]] = [[], []]
    lengths = []
    for seed in range(n):
        each = [ends(seed, counted) for counted in (True, False)]
        for mine, (lower, upper, truth) in zip(held, each, strict=True):
            mine.append(float(np.mean((lower <= truth) & (truth <= upper))))
        lengths.append(float(np.median((each[0][1] - each[0][0]) / (each[1][1] - each[1][0]))))
    error = float(np.std(held[0]) / np.sqrt(n))
    means = {"coverage": float(np.mean(held[0])), "coverage_alone": float(np.mean(held[1]))}
    return {"data_sets": n, **means, "standard_error": error, "length": float(np.mean(lengths))}


def main() -> None:
    """Simulate, print and save."""
    asked = asked_sizes(__doc__, boards=60)
    kinds: dict[str, Callable[[int, bool], Ends]] = {}
    for number, (sizes, spreads, lie) in enumerate(BOARDS):
        words = "votes: {} models, {} judges, {} prompts, {} items".format(*sizes)
        kinds[f"{words}, {lie}, tastes {spreads[0]} and {spreads[1]}"] = of_votes(number)
    kinds |= {"panel": of_panel, "few votes": of_few_votes, "Soft-Elo": of_soft_elo}
    kinds |= {"anchored": of_anchored, "agreement": of_agreement}
    rows = []
    for name, ends in kinds.items():
        rows.append({"what": name, **simulated(ends, MORE.get(name, 1) * asked.boards)})
        print(rows[-1], flush=True)
    if asked.boards >= 60:
        save("which_error_boards", {"level": 0.95, "rows": rows})


if __name__ == "__main__":
    main()
