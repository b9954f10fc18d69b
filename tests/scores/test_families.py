"""Pairs of models told apart by a test each: naive loops over the pairs, and over all ways to deal answers."""

from itertools import combinations, product

import numpy as np
import pytest
import scipy

from jaxeval.scores.paired_tests import PairwiseDifferences, units_that_differ
from jaxeval.statistics.p_values import p_of_equal_shares

LEVEL = 0.95


@pytest.fixture(scope="module")
def differences():
    """Five models, and p-values of their pairs."""
    estimate = np.array([0.9, 0.5, 0.6, 0.3, 0.1])
    error = np.full((5, 5), 0.05) + 0.01 * np.abs(np.subtract.outer(range(5), range(5)))
    p = 2 * scipy.stats.norm.sf(np.abs(np.subtract.outer(estimate, estimate)) / error / 2.2)
    np.fill_diagonal(p, np.nan)
    return PairwiseDifferences(estimate, p, np.ones(5, bool))


def p_of(found, a, b):
    return found.p_values[a, b]


def apart(found, pairs):
    """Of some pairs, those that Holm's steps tell apart."""
    kept = set()
    for k, pair in enumerate(sorted(pairs, key=lambda pair: p_of(found, *pair))):
        if p_of(found, *pair) * (len(pairs) - k) > 1 - LEVEL:
            break
        kept.add(pair)
    return kept


def test_tiers_and_ranks_all_at_once(differences):
    told = apart(differences, list(combinations(range(5), 2)))
    assert 0 < len(told) < 10
    best, worst = differences.rank_sets(LEVEL, simultaneous=True)
    for model in range(5):
        others = [(a if b == model else b) for a, b in told if model in (a, b)]
        above = sum(differences.estimate[other] > differences.estimate[model] for other in others)
        assert (best[model], worst[model]) == (1 + above, 5 - (len(others) - above))
    tier, leader = {}, None
    for model in np.argsort(-differences.estimate):
        if leader is None or tuple(sorted((leader, model))) in told:
            leader, number = model, len(set(tier.values())) + 1
        tier[model] = number
    assert differences.tiers(LEVEL).tolist() == [tier[model] for model in range(5)]


def test_ranks_of_each_model(differences):
    best, worst = differences.rank_sets(LEVEL)
    for model in range(5):
        told = [other for _, other in apart(differences, [(model, other) for other in range(5) if other != model])]
        above = sum(differences.estimate[other] > differences.estimate[model] for other in told)
        assert (best[model], worst[model]) == (1 + above, 5 - (len(told) - above))


def test_equal_shares_are_tested_exactly():
    """Beside all equally likely ways to deal right answers: which model is right alone, and on which items."""
    only_a, only_b, right_a, n_a, right_b, n_b = 3, 1, 2, 3, 1, 4
    right = right_a + right_b
    dealt = [
        sum(coins) + sum(item < n_a for item in items)
        for coins in product((0, 1), repeat=only_a + only_b)
        for items in combinations(range(n_a + n_b), right)
    ]
    seen = only_a + right_a
    tails = np.mean(np.array(dealt) >= seen), np.mean(np.array(dealt) <= seen)
    assert p_of_equal_shares(only_a, only_b, right_a, n_a, right_b, n_b) == pytest.approx(min(1, 2 * min(tails)))
    fisher = scipy.stats.fisher_exact([[5, 0], [1, 8]], "greater").pvalue
    assert p_of_equal_shares(0, 0, 5, 5, 1, 9) == pytest.approx(2 * fisher)
    assert p_of_equal_shares(9, 2, 0, 0, 0, 0) == pytest.approx(scipy.stats.binomtest(9, 11).pvalue)


def test_units_that_differ():
    parts = np.random.default_rng(0).integers(0, 2, (3000, 4)).astype(float)
    parts[:, 1] = parts[:, 0]
    parts[5, 1] += 1
    n = units_that_differ(parts)
    assert n[0, 1] == n[1, 0] == 1
    assert n[0, 0] == 0
    assert (n[2, [0, 1, 3]] >= 64).all()
