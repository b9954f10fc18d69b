"""Coverage of what compares boards, studies references, audits fits, calibrates, and scores items."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from coverage_boards import NAMES, THETA, boards, elo, logit_wins, pairs
from coverage_rows import Row, exact, inside, part, row
from scipy.special import expit
from scipy.stats import binom

import jaxeval


@part(200)
def two_boards(n: int) -> list[Row]:
    """Differences of ratings between two boards, of votes of their own and of votes that they share."""
    later = THETA + np.array([0.3, -0.3, 0, 0, 0, 0, 0.2, -0.2])
    apart, shared = [], []
    for number in range(n):
        rng = np.random.default_rng([71, number])
        first, second = (votes(rng, 400, own) for own in (THETA, later))
        found = jaxeval.compare_boards(first, second, n_resamples=500, progress=False).table.set_index("model")
        apart.append(inside(found, elo(later, found.index) - elo(THETA, found.index), DIFFERENCE))
        # Last week's board, and the same votes with a week's more.
        more = pd.concat([first, votes(rng, 200, THETA)], ignore_index=True)
        more["vote"], first["vote"] = np.arange(len(more)), np.arange(len(first))
        found = jaxeval.compare_boards(first, more, id="vote", n_resamples=500, progress=False)
        shared.append(inside(found.table.set_index("model"), 0.0, DIFFERENCE))
    names = ("compare_boards", "BoardComparison")
    return [
        row(names, "difference of ratings, boards of their own votes", "8 models, 100 votes a model on each", apart),
        row(names, "difference of ratings, shared votes", "8 models, 100 votes a model, half as many more", shared),
    ]


DIFFERENCE = ("difference_lower", "difference_upper")
NOISIER = (
    "with fewer votes it is too short: at 20 a pair .92 and .89 (60 data sets), as votes that vary put models in "
    "disorder, and what they hide no resample shows"
)


def votes(rng: np.random.Generator, n: int, theta: Any) -> pd.DataFrame:
    """Wins and losses of models of strengths ``theta``."""
    a, b = pairs(rng, n)
    return pd.DataFrame({"model_a": NAMES[a], "model_b": NAMES[b], "target": logit_wins(rng, a, b, theta)})


@part(150)
def references(n: int) -> list[Row]:
    """Tau of a ranking by one reference with that of all votes, where pairs deviate from one number a model."""
    a, b = np.triu_indices(8, 1)
    held: dict[str, list[Any]] = {"tau": [], "rank_change": []}
    for number in range(n):
        rng = np.random.default_rng([81, number])
        logit = THETA[a] - THETA[b] + rng.normal(0, 0.4, len(a))
        options: Any = {"budgets": (), "n_repeats": 1, "deltas": (10.0,), "progress": False, "few_pairs": 0}
        sure = jaxeval.reference_study(counts(a, b, expit(logit), 1_000_000), n_resamples=2, **options).by_reference
        seen = rng.binomial(100, expit(logit)) / 100
        found = jaxeval.reference_study(counts(a, b, seen, 100), n_resamples=500, **options).by_reference
        own = found.set_index("reference")
        for name, kept in held.items():
            true = sure.set_index("reference")[name][own.index].to_numpy()
            kept.append(inside(own, true, (f"{name}_lower", f"{name}_upper")))
    case = "8 models, 100 votes a pair, deviations of .4 logits by pair"
    names = ("reference_study", "ReferenceStudy")
    return [
        row(names, "tau of a single reference's ranking", case, held["tau"], note=NOISIER),
        row(names, "rank change by a single reference", case, held["rank_change"], note=NOISIER),
    ]


def counts(a: Any, b: Any, share: Any, n: int) -> jaxeval.Battles:
    """``n`` battles of every pair, of which the first model wins a share."""
    wins = np.round(n * np.asarray(share)).astype(int)
    table = pd.DataFrame(
        {
            "model_a": NAMES[np.tile(a, 2)],
            "model_b": NAMES[np.tile(b, 2)],
            "target": np.repeat([1.0, 0.0], len(a)),
            "count": np.concatenate([wins, n - wins]),
        }
    )
    return jaxeval.Battles.from_pandas(table[table["count"] > 0], target="target", count="count")


@part(1_200)
def honest_boards(n: int) -> list[Row]:
    """How often `goodness_of_fit` lets a board of the model pass at .05, by its p-value."""
    rows = []
    for each in (25, 100):
        passed = []
        for _, table in boards(n, 4 * each, seed=90 + each).groupby("board"):
            found = jaxeval.goodness_of_fit(table, n_resamples=200, progress=False)
            passed.append(found.p_value > 0.05)
        case = f"8 models, {each} votes a model, honest"
        rows.append(
            row(("goodness_of_fit", "GoodnessOfFit"), "no misfit is told at .05", case, np.array(passed, float))
        )
    return rows


@part(20_000)
def conformal(n: int) -> list[Row]:
    """The quantile of calibration scores, for a new one of the same kind."""
    rows, rng = [], np.random.default_rng(8)
    for size, level in ((27, 0.9), (74, 0.68), (9, 0.9), (8, 0.9)):
        scores = np.abs(rng.standard_t(3, size=(n // 10, size + 1)))
        held = [float(own[-1] <= jaxeval.conformal_quantile(own[:-1], str(level))) for own in scores]
        expected = min(-(-(round(100 * level) * (size + 1)) // 100), size + 1) / (size + 1)
        note = (
            "the interval is infinite, as the pool is too small" if expected == 1 else "nominal is what the rank gives"
        )
        case = f"{size} calibration models, level {level:g}"
        rows.append(row(("conformal_quantile", "soft_elo"), "split conformal", case, held, expected, note))
    return rows


@part(1)
def shares(n: int) -> list[Row]:
    """Mean scores of right and wrong answers, over all counts of right ones."""
    rows = []
    for items in (20, 50, 200, 1000):
        right = np.arange(items + 1)
        values = (np.arange(items)[:, None] < right).astype(float)
        scores = jaxeval.ItemScores(
            values[:, None], pd.RangeIndex(items), pd.Index(["s"]), pd.Index([f"{k:04d}" for k in right])
        )
        board = jaxeval.score_leaderboard(scores, n_resamples=2, progress=False).sort_values("model")
        rows += [
            exact("score_leaderboard", "mean score, items new", f"right or wrong, {p:g}, {items} items",
                  inside(board, p, ("lower", "upper")), binom.pmf(right, items, p))
            for p in (0.5, 0.9, 0.98)
        ]  # fmt: skip
    return rows


@part(1200)
def trials(n: int) -> list[Row]:
    """pass@k and pass^k of items whose chances differ."""
    rows = []
    p = np.random.default_rng(0).beta(0.6, 0.6, 4_000_000)
    truth = {("pass_at_k", 3): float((1 - (1 - p) ** 3).mean()), ("pass_hat_k", 3): float((p**3).mean())}
    for items in (30, 100):
        held: dict[str, list[Any]] = {"pass_at_k": [], "pass_hat_k": []}
        for number in range(n):
            rng = np.random.default_rng([items, number])
            right = rng.random((items, 5)) < rng.beta(0.6, 0.6, (items, 1))
            table = pd.DataFrame({"item": np.repeat(range(items), 5), "trial": np.tile(range(5), items), "model": "m"})
            scores = jaxeval.ItemScores.from_pandas(table.assign(score=right.ravel().astype(float)), trial="trial")
            for name, kept in held.items():
                found = getattr(jaxeval, name)(scores, 3)
                kept.append(inside(found, truth[name, 3], ("lower", "upper")))
        for name, kept in held.items():
            title = {"pass_at_k": "pass@3 of 5 trials", "pass_hat_k": "pass^3 of 5 trials"}[name]
            rows.append(row(name, title, f"{items} items of unlike chances", kept))
    return rows


@part(150)
def item_response(n: int) -> list[Row]:
    """Abilities of 12 models, whose true values have mean 0 and standard deviation .94."""
    rows = []
    for kind, items in (("rasch", 30), ("rasch", 100)):
        ability, held = np.linspace(-1.5, 1.5, 12), []
        for number in range(n):
            rng = np.random.default_rng([items, number])
            right = rng.random((items, 12)) < expit(ability - rng.normal(size=(items, 1)))
            scores = jaxeval.ItemScores(
                right.astype(float)[:, None], pd.RangeIndex(items), pd.Index(["s"]), pd.RangeIndex(12)
            )
            found = jaxeval.fit_item_response(scores, kind=kind, n_resamples=2, progress=False)
            own = found.abilities.set_index("model")
            held.append(inside(own, ability[own.index], ("lower", "upper")))
        names = ("fit_item_response", "ItemResponse")
        rows.append(row(names, "ability, Rasch", f"12 models, {items} items", held))
    return rows


@part(400)
def scores_beside_a_baseline(n: int) -> list[Row]:
    """Paired differences to a baseline, as `compare_scores` makes them."""
    z = np.random.default_rng(1).normal(size=2_000_000)
    true = float((expit(1.5 * z + 0.6) - expit(1.5 * z)).mean())
    held = []
    for number in range(n):
        rng = np.random.default_rng([101, number])
        chance = expit(1.5 * rng.normal(size=(100, 1)) + np.array([0.6, 0.0]))
        right = (rng.random((100, 2)) < chance).astype(float)
        scores = jaxeval.ItemScores(right[:, None], pd.RangeIndex(100), pd.Index(["s"]), pd.RangeIndex(2))
        held.append(inside(jaxeval.compare_with_baseline(scores, 1), true))
    names = ("compare_with_baseline", "compare_scores", "ScoreComparison")
    return [row(names, "paired difference of scores", "100 items, right or wrong", held)]
