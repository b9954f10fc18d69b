"""Tails of sums of chance results are those of the exact distribution."""

from itertools import product

import numpy as np
import pytest
import twins

from jaxeval.audits.points import ChanceSums


def every_value(probability):
    """Sums of the same terms, one for each value that they can have."""
    n = len(probability)
    number = np.repeat(np.arange(n + 1), n)
    return ChanceSums(number, np.tile(probability, n + 1), np.ones(len(number)), np.ones(len(number)), n + 1)


@pytest.mark.parametrize("n", [2, 5, 10, 40, 150])
def test_tails_of_whole_sums_are_within_seven_per_cent(n):
    probability = np.random.default_rng(n).uniform(0.1, 0.9, n)
    exact = twins.sum_of_chances(probability)
    observed = np.arange(n + 1.0)
    sums = every_value(probability)
    upper, lower = exact[::-1].cumsum()[::-1], exact.cumsum()
    for above, tail in ((True, upper), (False, lower)):
        found = sums.tail(observed, np.full(n + 1, above), whole=True)
        known = tail > 1e-12
        np.testing.assert_allclose(found[known], tail[known], rtol=0.07)
    p, two_sided = sums.p_values(observed), np.minimum(2 * np.minimum(upper, lower), 1)
    small = (two_sided < 0.1) & (two_sided > 1e-12)
    np.testing.assert_allclose(p[small], two_sided[small], rtol=0.07)
    assert (p[two_sided >= 0.5] > 0.3).all()


def test_tails_of_weighted_sums_are_those_of_all_their_values():
    """Within a thirtieth; next to an end within a fifth, the error of the formula for so few terms."""
    rng = np.random.default_rng(0)
    n = 11
    probability, weight = rng.uniform(0.2, 0.9, n), rng.uniform(0.1, 1.5, n)
    taken = np.array(list(product([False, True], repeat=n)))
    chance, value = np.where(taken, probability, 1 - probability).prod(1), taken @ weight
    order = value.argsort()
    chance, value = chance[order], value[order]
    at = np.array([0, 20, 200, 1000, 1800, 2030, len(value) - 1])
    k = len(at)
    sums = ChanceSums(np.repeat(np.arange(k), n), np.tile(probability, k), np.tile(weight, k), np.ones(k * n), k)
    below = sums.tail(value[at], np.zeros(k, bool), whole=False)
    above = sums.tail(value[at], np.ones(k, bool), whole=False)
    for tail, exact, near in ((below, chance.cumsum(), 1), (above, chance[::-1].cumsum()[::-1], -2)):
        off = np.abs(tail / exact[at] - 1)
        assert off[near] < 0.2
        assert np.delete(off, near).max() < 0.03
    assert below[0] == pytest.approx(chance[0])
    assert above[-1] == pytest.approx(chance[-1])


def test_a_row_may_stand_for_several_terms_in_any_order():
    one = ChanceSums(np.array([1, 0, 1]), np.array([0.3, 0.5, 0.6]), np.ones(3), np.array([4.0, 6.0, 2.0]), 2)
    group = np.array([0] * 6 + [1] * 6)
    each = ChanceSums(group, np.array([0.5] * 6 + [0.3] * 4 + [0.6] * 2), np.ones(12), np.ones(12), 2)
    observed = np.array([6.0, 5.0])
    np.testing.assert_allclose(one.p_values(observed), each.p_values(observed), rtol=1e-6)
    np.testing.assert_allclose(one.mean, each.mean)
    np.testing.assert_allclose(one.take(np.array([False, True])).p_values(observed[1:]), one.p_values(observed)[1:])


def test_groups_without_terms_are_certain():
    sums = ChanceSums(np.array([1] * 8), np.full(8, 0.5), np.ones(8), np.ones(8), 3)
    assert sums.p_values(np.array([0.0, 8.0, 0.0])).tolist()[::2] == [1, 1]


def test_p_values_hold_their_level():
    rng = np.random.default_rng(1)
    n, groups = 20, 20_000
    probability = rng.uniform(0.2, 0.8, n * groups)
    number = np.repeat(np.arange(groups), n)
    sums = ChanceSums(number, probability, np.ones(n * groups), np.ones(n * groups), groups)
    p = sums.p_values(np.bincount(number, rng.random(n * groups) < probability))
    for level in (0.05, 0.01, 0.001):
        assert (p <= level).mean() <= level + 3 * np.sqrt(level / groups)
