"""Allocation, sizes and lengths against the algorithm, the propositions and the interval itself."""

from math import ceil, floor, inf, sqrt

import numpy as np
import pytest
import twins

from jaxeval.accuracy.calibration_planning import (
    allocate_calibration,
    interval_length,
    judge_pays,
    labels_for_length,
    minimum_calibration_size,
    variance_ratio,
)
from jaxeval.accuracy.rogan_gladen import rogan_gladen


def algorithm_1(m, p, q0, q1, pilot):
    """As printed, with its division by p = 0 taken for its limit."""
    q0, q1 = (pilot * q0 + 1) / (pilot + 2), (pilot * q1 + 1) / (pilot + 2)
    kappa = (1 - q0) / (1 - q1)
    star = round(m / (1 + (1 / p - 1) * sqrt(kappa))) if p > 0 else 0
    m1 = min(max(star, pilot), m - pilot)
    return m - m1, m1


def test_allocation_is_algorithm_1():
    grid = [
        (m, p, q0, q1, pilot)
        for m in (20, 57, 200)
        for p in (0, 0.03, 0.3, 0.5, 0.9, 1)
        for q0, q1 in ((0.7, 0.9), (1, 0.6), (1, 1), (0.5, 0.5))
        for pilot in (1, 10)
    ]
    m, p, q0, q1, pilot = np.array(grid).T
    found = allocate_calibration(m, p, q0, q1, pilot)
    expected = np.array([algorithm_1(*row) for row in grid])
    np.testing.assert_array_equal(np.stack([found.m0, found.m1], 1), expected)
    np.testing.assert_array_equal(np.stack([found.more0, found.more1], 1), expected - pilot[:, None])
    assert found.m0.dtype == np.int64


def test_allocation_of_one_study_and_its_advice():
    found = allocate_calibration(200, 0.3, 0.7, 0.9)
    assert (found.m0 + found.m1, found.m0 - found.more0, found.m1 - found.more1) == (200, 10, 10)
    what, follows = found.advice.split("; ")
    assert what == f"label {found.more1} more items that turn out right and {found.more0} more that turn out wrong"
    assert follows.startswith('the calibration is then one "by label"')
    uneven = allocate_calibration(100, 0.5, 0.8, 0.8, 5, 40)
    assert (uneven.m1, uneven.more1) == (max(uneven.m1, 40), uneven.m1 - 40)
    assert allocate_calibration([40, 60], 0.5, 0.8, 0.8).advice.shape == (2,)


def test_the_allocation_is_about_the_shortest():
    for p, q0, q1 in ((0.3, 0.9, 0.95), (0.6, 0.95, 0.9), (0.8, 0.97, 0.92)):
        found = allocate_calibration(200, p, q0, q1, 10)
        m0 = np.arange(10, 191)
        lengths = interval_length(p, q0, q1, inf, m0, 200 - m0, truncated=False)
        assert interval_length(p, q0, q1, inf, found.m0, found.m1, truncated=False) < 1.02 * lengths.min()


@pytest.mark.parametrize(("arguments", "message"), [
    ((19, 0.5, 0.8, 0.8), "m must be no less than the pilot's labels"),
    ((20.5, 0.5, 0.8, 0.8), "m must be a whole number"),
    ((20, 0.5, 0.8, 0.8, -1), "pilot0 must be a whole number"),
    ((20, 1.5, 0.8, 0.8), "p must lie"),
    ((20, 0.5, 0.8, np.nan), "q1 must lie"),
])  # fmt: skip
def test_wrong_allocations(arguments, message):
    with pytest.raises(ValueError, match=message):
        allocate_calibration(*arguments)


def test_proposition_5_1():
    """At that size the second-order bias of the estimator is that of the naive share, at any accuracy."""
    q = np.array([0.6, 0.75, 0.9, 1.0])
    size = minimum_calibration_size(q)
    np.testing.assert_allclose(size, 2 * q / (2 * q - 1) ** 2)
    for theta in (0.1, 0.8):
        bias = (theta - (1 - theta)) * q * (1 - q) / (size / 2) / (2 * q - 1) ** 2
        np.testing.assert_allclose(bias, (2 * theta - 1) * (1 - q), atol=1e-15)
    assert minimum_calibration_size(0.5) == inf
    for wrong in (0.4, 1.1):
        with pytest.raises(ValueError, match="q must lie"):
            minimum_calibration_size(wrong)


def test_lengths_are_those_of_the_interval():
    args = 0.3, 0.7, 0.9, inf, np.array([3, 20, 100]), 50
    found = rogan_gladen(*args)
    np.testing.assert_array_equal(interval_length(*args), found.upper - found.lower)
    free = interval_length(*args, truncated=False)
    np.testing.assert_array_equal(free, found.upper_untruncated - found.lower_untruncated)
    assert free[0] > interval_length(*args)[0]
    assert np.isnan(interval_length(0.3, 0.4, 0.5, inf, 10, 10))


def test_figure_3():
    """q0 .7, q1 .9, p .3: a length of 0.1 needs "about 200", which is so of each class; an adaptive split fewer."""
    equal = labels_for_length(0.1, 0.3, 0.7, 0.9, adaptive=False)
    assert equal / 2 == pytest.approx(200, rel=0.1)
    assert labels_for_length(0.1, 0.3, 0.7, 0.9) < 0.9 * equal


def equal_length(m, p, q0, q1, n):
    low, high = twins.misclassification_interval(p, q0, q1, n, m / 2, m / 2)
    return high - low


@pytest.mark.parametrize("n", [5_000.0, 1e12])
@pytest.mark.parametrize("target", [0.3, 0.1, 0.06])
def test_the_fewest_labels_are_enough_and_one_fewer_is_not(target, n):
    rates = 0.6, 0.8, 0.75
    m = labels_for_length(target, *rates, n, adaptive=False, truncated=False)
    assert equal_length(m, *rates, n) <= target < equal_length(m - 1, *rates, n)


def test_the_fewest_labels_of_the_adaptive_split():
    length = np.array([0.3, 0.1, 0.05])
    m = labels_for_length(length, 0.4, 0.85, 0.95, truncated=False)

    def shortest(m):
        """Over all splits of m labels: no allocation can do better."""
        m0 = np.arange(1, m)
        return np.nanmin(interval_length(0.4, 0.85, 0.95, inf, m0, m - m0, truncated=False))

    for target, labels in zip(length, m, strict=True):
        assert shortest(int(labels)) <= target
        assert shortest(floor(labels / 1.1)) > target  # within 10 % of the best that there is


@pytest.mark.parametrize("p", [0.0, 0.01, 1.0])
def test_no_more_labels_are_used_than_said(p):
    """Also where the judge calls all wrong, or right, each class needs one."""
    m = int(labels_for_length(0.35, p, 0.9, 0.9, truncated=False))
    m0 = np.arange(1, m)
    assert np.nanmin(interval_length(p, 0.9, 0.9, inf, m0, m - m0, truncated=False)) <= 0.35


def test_lengths_out_of_reach_need_infinitely_many_labels():
    alone = interval_length(0.5, 0.8, 0.8, 100, 1e12, 1e12)
    found = labels_for_length([alone * 0.99, alone * 1.01], 0.5, 0.8, 0.8, 100)
    assert found[0] == inf
    assert found[1] < 1e6
    assert labels_for_length(0.1, 0.5, 0.5, 0.5) == inf
    assert labels_for_length(1.5, 0.5, 0.8, 0.8) < ceil(10)
    with pytest.raises(ValueError, match="length must be positive"):
        labels_for_length(0, 0.5, 0.8, 0.8)


def test_variance_ratio_is_eq_14_over_the_binomial():
    theta, q0, q1 = 0.3, 0.8, 0.9
    m = 1e6
    p = theta * q1 + (1 - theta) * (1 - q0)
    corrected = twins.misclassification_variance(p, inf, q0, q1, (1 - theta) * m, theta * m)
    assert variance_ratio(theta, q0, q1) == pytest.approx(corrected / (theta * (1 - theta) / m))


@pytest.mark.parametrize("q", [0.86, 0.9, 0.99])
def test_variance_ratio_is_one_on_the_border_of_proposition_6_1(q):
    half = sqrt(0.5 - 0.25 / (2 * q - 1) ** 2)
    border = np.array([0.5 - half, 0.5 + half])
    np.testing.assert_allclose(variance_ratio(border, q, q), 1, rtol=1e-9)
    inwards = np.array([1e-6, -1e-6])
    assert judge_pays(border + inwards, q).all()
    assert not judge_pays(border - inwards, q).any()


def test_edges_of_the_variance_ratio():
    found = variance_ratio([0.5, 0.5, 0, 0, 1, 0.4], [0.5, 1, 0.8, 1, 1, 0.2], [0.5, 1, 0.9, 0.8, 0.9, 0.3])
    np.testing.assert_array_equal(found, [inf, 0, inf, 0, inf, inf])
    with pytest.raises(ValueError, match="theta must lie"):
        variance_ratio(-0.1, 0.8, 0.8)


def test_what_pays_with_some_labels_pays_with_unlimited_ones():
    theta, q, m = np.meshgrid(np.linspace(0, 1, 21), np.linspace(0.4, 1, 25), [5, 50, 1e3, 1e5, inf])
    pays = judge_pays(theta, q, m)
    assert (pays[..., :-1] <= pays[..., 1:]).all()
    assert pays.any((0, 1)).tolist() == [False, True, True, True, True]
    for k in np.argwhere(np.isfinite(m) & (theta * (1 - theta) > 0))[::7]:
        t, r, e = theta[tuple(k)], q[tuple(k)], sqrt(np.log(40) / (2 * m[tuple(k)]))
        expected = (
            r > 0.5
            and e < min(t, 1 - t)
            and t * (1 - t) >= r * (1 - r) / (2 * r - 1) ** 2 * (1 + (1 - t) * e / (1 - t - e) + t * e / (t - e))
        )
        assert pays[tuple(k)] == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((0.5, 0.9, 0), "m must be positive"), ((0.5, 1.1), "q must lie"), ((0.5, 0.9, 10, 1.0), "delta must be between")],
)
def test_wrong_arguments_of_judge_pays(arguments, message):
    with pytest.raises(ValueError, match=message):
        judge_pays(*arguments)
