"""Pairs of models told apart by Student's t: naive loops over the pairs."""

from itertools import combinations

import numpy as np
import pytest
import scipy

from jaxeval.scores.families import StudentDifferences

LEVEL = 0.95


@pytest.fixture(scope="module")
def differences():
    """Five models with degrees of freedom of their own, as where they have different items."""
    error = np.full((5, 5), 0.05) + 0.01 * np.abs(np.subtract.outer(range(5), range(5)))
    np.fill_diagonal(error, np.nan)
    return StudentDifferences(np.array([0.9, 0.5, 0.6, 0.3, 0.1]), error, np.array([4.0, 60.0, 9.0, 25.0, 6.0]))


def p_of(found, a, b):
    """Of the fewer degrees of freedom of the two."""
    gap = abs(found.estimate[a] - found.estimate[b])
    return 2 * scipy.stats.t.sf(gap / found.error[a, b], min(found.dof[a], found.dof[b]))


def apart(found, pairs):
    """Of some pairs, those that Holm's steps tell apart."""
    kept = set()
    for k, pair in enumerate(sorted(pairs, key=lambda pair: p_of(found, *pair))):
        if p_of(found, *pair) * (len(pairs) - k) > 1 - LEVEL:
            break
        kept.add(pair)
    return kept


def test_p_values_are_students(differences):
    for a, b in combinations(range(5), 2):
        assert differences.p_values[a, b] == differences.p_values[b, a] == pytest.approx(p_of(differences, a, b))


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
