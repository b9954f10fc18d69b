"""How few votes decide: against all single and double changes, public refits, and planted voters."""

from itertools import combinations_with_replacement

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import connected_components

import jaxeval
from jaxeval.audits.fewest_votes import fewest_votes

WAYS = ["dropped", "flipped", "added"]


def fitted(wins):
    """(B, M) log-strengths of (B, M, M) wins by plain Newton steps, NaN where some model has no finite rating."""
    n = wins + wins.transpose(0, 2, 1)
    m = n.shape[1]
    theta = np.zeros(n.shape[:2])
    for _ in range(30):
        p = 1 / (1 + np.exp(theta[:, None, :] - theta[:, :, None]))
        w = n * p * (1 - p)
        h = np.eye(m) * w.sum(2)[:, None] - w + 1 / m + 1e-12 * np.eye(m)
        step = np.linalg.solve(h, (wins.sum(2) - (n * p).sum(2))[..., None])[..., 0]
        theta = np.clip(theta + np.clip(step, -2, 2), -40, 40)
    rated = np.array([connected_components(x > 0, connection="strong")[0] == 1 for x in wins])
    return np.where(rated[:, None], theta - theta.mean(1, keepdims=True), np.nan)


def all_changes(wins, way, k):
    """(B, M, M) wins after all ways to change ``k`` decisive votes."""
    pairs = [(i, j) for i in range(len(wins)) for j in range(len(wins)) if i != j]
    found = []
    for chosen in combinations_with_replacement(pairs, k):
        own = wins.copy()
        for i, j in chosen:
            if way != "added":
                own[i, j] -= 1
            if way != "dropped":
                own[(j, i) if way == "flipped" else (i, j)] += 1
        taken = {pair: chosen.count(pair) for pair in chosen}
        if way == "added" or all(wins[pair] >= times for pair, times in taken.items()):
            found.append(own)
    return np.array(found)


def small_board(rng, m, n):
    """Wins of a board on which all models have finite ratings."""
    theta = rng.normal(0, 0.4, m)
    while True:
        i = rng.integers(m, size=n)
        j = (i + rng.integers(1, m, n)) % m
        first = rng.random(n) < 1 / (1 + np.exp(theta[j] - theta[i]))
        wins = np.zeros((m, m))
        np.add.at(wins, (np.where(first, i, j), np.where(first, j, i)), 1)
        if not np.isnan(fitted(wins[None])).any():
            return wins


def as_battles(wins):
    i, j = np.nonzero(wins)
    table = {"model_a": i, "model_b": j, "winner": "model_a", "count": wins[i, j].astype(int)}
    return jaxeval.Battles.from_pandas(pd.DataFrame(table), count="count")


def test_brute_force_finds_no_fewer_but_seldom():
    """Of all single and double changes; and what is proved is never more than what some change does."""
    rng = np.random.default_rng(0)
    n_best = n_known = n_proved = 0
    for number in range(14):
        wins = small_board(rng, 4, (24, 60)[number % 2])
        table = fewest_votes(as_battles(wins), n_resamples=20, top=[1], progress=False).table
        for way in WAYS:
            truth = np.full(3, np.inf)
            for k in (2, 1):
                theta = fitted(all_changes(wins, way, k))
                swapped = (theta[:, table["below"]] > theta[:, table["above"]] + 1e-6).any(0)
                truth = np.where(swapped, k, truth)
            found = table[way].to_numpy(float, na_value=np.inf)
            assert (found >= np.minimum(truth, 3)).all()
            assert (table[f"{way}_at_least"].to_numpy() <= truth).all()
            n_known += np.isfinite(truth).sum()
            n_best += (found == truth).sum()
            n_proved += (table[f"{way}_at_least"].to_numpy() > 1).sum()
    assert n_known > 40
    assert n_best >= 0.95 * n_known
    assert n_proved > 10
