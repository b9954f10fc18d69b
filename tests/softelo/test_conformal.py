from fractions import Fraction

import numpy as np
import pytest
from twins import conformal_quantile as naive_quantile

from jaxeval.softelo.calibrated_methods import (
    chosen_level,
    conformal_quantile,
    conformal_rank,
    conformity_scores,
    expected_coverage,
    smallest_calibration,
)


def test_rank_is_exact_where_floats_are_not():
    # 0.68 * 75 is 51, and 51.00000000000001 in floats.
    assert 0.68 * 75 > 51
    assert conformal_rank(74, 0.68) == 51
    assert conformal_quantile(np.arange(1, 75), 0.68) == 51
    assert conformal_rank(27, 0.9) == 26
    assert expected_coverage(27, 0.9) == 26 / 28
    assert conformal_rank(9, np.float64(0.9)) == conformal_rank(9, "0.9") == conformal_rank(9, Fraction(9, 10)) == 9


@pytest.mark.parametrize("level", [0.1, 0.5, 0.68, 0.9, 0.95, 0.975])
def test_quantile_is_the_sorted_lists(level):
    rng = np.random.default_rng(1)
    for n in [0, 1, 2, 8, 9, 10, 18, 19, 20, 39, 74, 200]:
        scores = rng.exponential(size=n)
        assert conformal_quantile(scores, level) == naive_quantile(scores, level)


def test_infinite_exactly_when_the_rank_exceeds_n():
    assert conformal_quantile(np.ones(8), 0.9) == np.inf
    assert conformal_quantile(np.ones(9), 0.9) == 1
    assert smallest_calibration(0.9) == 9
    assert smallest_calibration("0.95") == 19
    for n in range(1, 300):
        assert np.isfinite(conformal_quantile(np.ones(n), Fraction(n, n + 1)))
        assert np.isinf(conformal_quantile(np.ones(n), Fraction(n, n + 1) + Fraction(1, 10**9)))
        assert smallest_calibration(Fraction(n, n + 1)) == n


def test_coverage_is_the_expected_one_on_average():
    rng = np.random.default_rng(2)
    trials = 8_000
    for n, level in [(27, 0.9), (9, 0.9), (54, 0.68)]:
        scores = np.abs(rng.standard_t(3, (trials, n + 1)))
        covered = np.mean([row[-1] <= conformal_quantile(row[:-1], level) for row in scores])
        expected = expected_coverage(n, level)
        assert abs(covered - expected) < 4 * np.sqrt(expected * (1 - expected) / trials)


def test_integer_weights_repeat_scores():
    rng = np.random.default_rng(4)
    scores, weights = rng.exponential(size=12), rng.integers(0, 5, 12)
    repeated = np.repeat(scores, weights)
    for level in [k / 20 for k in range(1, 20)]:
        assert conformal_quantile(scores, level, weights, 1.0) == naive_quantile(repeated, level)


def test_weights_restore_coverage_under_a_known_shift():
    # Scores grow with x; calibration has x uniform, new models favour large x with density 2x.
    rng = np.random.default_rng(5)
    trials, n, level = 1500, 40, 0.8
    hits = np.zeros(2)
    for _ in range(trials):
        x, new_x = rng.random(n), np.sqrt(rng.random())
        scores, new = x * rng.exponential(size=n), new_x * rng.exponential()
        hits += [new <= conformal_quantile(scores, level), new <= conformal_quantile(scores, level, 2 * x, 2 * new_x)]
    plain, weighted = hits / trials
    error = np.sqrt(level * (1 - level) / trials)
    assert plain < level - 4 * error
    assert level - 4 * error < weighted < level + 2 / n + 4 * error


def test_scores_without_spread():
    np.testing.assert_array_equal(
        conformity_scores([3, -3, 0, np.nan, 1], [2, 0, 0, 1, np.nan]), [1.5, np.inf, 0, np.nan, np.nan]
    )


@pytest.mark.parametrize(("call", "message"), [
    (lambda: conformal_quantile([1.0], 1), "strictly between 0 and 1, got 1"),
    (lambda: conformal_quantile([1.0], 95), "got 95"),
    (lambda: conformal_quantile([1.0], "high"), "got 'high'"),
    (lambda: conformal_quantile([1.0, np.nan], 0.5), "1 of 2 scores are NaN"),
    (lambda: conformal_quantile([[1.0]], 0.5), "one-dimensional"),
    (lambda: conformal_quantile([1.0], 0.5, [1.0, 2.0]), "as many weights"),
    (lambda: conformal_quantile([1.0], 0.5, [-1.0]), "1 of 1 are not, the first is -1"),
    (lambda: conformal_quantile([1.0, 2.0], 0.5, [0.0, 0.0]), "weights must not all be zero"),
    (lambda: conformal_quantile([1.0], 0.5, new_weight=1.0), "only together with weights"),
])  # fmt: skip
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_given_level_stays():
    assert chosen_level(None, 9, "") == (Fraction(9, 10), [])
    assert chosen_level(0.95, 3, "") == (Fraction("0.95"), [])


def test_lowered_levels_are_supported_up_to_the_last_model():
    for n in range(1, 9):
        level, (sentence,) = chosen_level(None, n, "splits")
        assert conformal_rank(n, level) == n
        assert str(n) in sentence
