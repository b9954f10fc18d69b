"""Rogan-Gladen in closed form: published cases, the printed code, and every way of having no answer."""

import numpy as np
import pytest
import twins
from scipy.stats import binomtest, norm

from jaxeval.accuracy.rogan_gladen import rogan_gladen, youden_j

# Lang and Reiczigel (2014): positives of n, right of m1 and of m0; published interval and its decimals.
PUBLISHED = [
    (4060 / 11284, 11284, 178 / 179, 179, 358 / 359, 359, (0.349, 0.372), 3, 0.3600301849),
    (51 / 2971, 2971, 32 / 33, 33, 20 / 20, 20, (0.0, 0.053), 3, 0.0177023729),
    (0.06, 11862, 0.8, 10, 1.0, 12, (0.0, 0.147), 3, 0.075),
    (259 / 509, 509, 84 / 127, 127, 96 / 109, 109, (0.58, 0.87), 2, 0.7185721634),
    (51 / 509, 509, 23 / 41, 41, 187 / 195, 195, (0.037, 0.195), 3, 0.1138009928),
]
JUDGE = {"p": 0.55, "q0": 0.7, "q1": 0.9, "n": 1000, "m0": 80, "m1": 120}


@pytest.mark.parametrize(("p", "n", "q1", "m1", "q0", "m0", "interval", "decimals", "estimate"), PUBLISHED)
def test_published_cases(p, n, q1, m1, q0, m0, interval, decimals, estimate):
    found = rogan_gladen(p, q0, q1, n, m0, m1)
    assert found.estimate == pytest.approx(estimate, abs=1e-10)
    np.testing.assert_allclose([found.lower, found.upper], interval, atol=0.5001 * 10.0**-decimals)
    assert found.status == "ok"


def test_bias_of_the_naive_share():
    """Of accuracies above (1 - q0) / (2 - q0 - q1) = .75 a raw share shows less, below it more: Figure 2."""
    shares = np.linspace(0.31, 0.89, 59)  # from 1 - q0 to q1
    theta = rogan_gladen(shares, 0.7, 0.9, 1000, 100, 100).estimate
    np.testing.assert_allclose(shares - theta, (2 - 0.7 - 0.9) * (0.75 - theta), atol=1e-12)
    assert rogan_gladen(0.75, 0.7, 0.9, 1000, 100, 100).estimate == pytest.approx(0.75, abs=1e-12)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_printed_code_on_a_grid(level):
    p, q0, q1 = np.meshgrid(np.linspace(0, 1, 7), [0.55, 0.8, 1], [0.6, 0.95, 1])
    found = rogan_gladen(p, q0, q1, 50, 12, 20, level)
    assert found.estimate.shape == p.shape
    for k in np.ndindex(p.shape):
        ends = twins.misclassification_interval(p[k], q0[k], q1[k], 50, 12, 20, 1 - level)
        if found.status[k] == "J near 0":
            ends = -np.inf, np.inf
        raw = twins.misclassification_adjusted(p[k], q0[k], q1[k])
        np.testing.assert_allclose([found.lower_untruncated[k], found.upper_untruncated[k]], ends, atol=1e-12)
        np.testing.assert_allclose([found.lower[k], found.upper[k]], np.clip(ends, 0, 1), atol=1e-12)
        assert found.estimate[k] == pytest.approx(np.clip(raw, 0, 1), abs=1e-12)
        outside, clipped = ends[1] < 0 or ends[0] > 1, raw < -1e-12 or raw > 1 + 1e-12
        near_0 = youden_j(q0[k], q1[k], 12, 20, 0.999).lower <= 0
        expected = "J near 0" if near_0 else "outside" if outside else "clipped" if clipped else "ok"
        assert found.status[k] == expected
        assert found.j[k] == pytest.approx(q0[k] + q1[k] - 1)


def test_tables_6_and_7():
    found = rogan_gladen(0.776, 0.509, 0.887, 500, 100, 100)
    assert isinstance(found.estimate, float)
    assert round(found.estimate, 3) == 0.720


def test_a_share_that_the_rates_do_not_allow_is_outside():
    found = rogan_gladen([0.02, 0.29, 0.5], 0.7, 0.9, 2000, 300, 300)
    assert found.status.tolist() == ["outside", "clipped", "ok"]
    assert (found.lower[0], found.upper[0]) == (0, 0)
    assert found.upper_untruncated[0] < 0


def test_rounding_outside_of_the_unit_interval_is_not_clipping():
    q0 = np.linspace(0.6, 0.999, 50)
    found = rogan_gladen(1 - q0, q0, 0.9, 100, 50, 50)
    assert (found.status == "ok").all()
    assert (found.estimate >= 0).all()


@pytest.mark.parametrize(("change", "why"), [
    ({"q0": 0.4, "q1": 0.5}, "before"),
    ({"q0": 0.1, "q1": 0.9}, "exactly 0"),
    ({"q0": 0.9, "q1": 0.1}, "exactly 0"),
    ({"q0": 1.0, "m0": 1, "q1": 0.05, "m1": 20}, "after the adjustment"),
])  # fmt: skip
def test_no_skill_is_a_status_and_no_number(change, why):
    found = rogan_gladen(**{**JUDGE, **change})
    assert found.status == "J <= 0", why
    assert np.isnan([found.estimate, found.lower, found.upper, found.lower_untruncated, found.upper_untruncated]).all()
    assert found.j == pytest.approx(change["q0"] + change["q1"] - 1)


@pytest.mark.parametrize("change", [{"m0": 0, "q0": np.nan}, {"m1": 0, "q1": np.nan}, {"m0": 0, "q0": 1.0}])
def test_one_class_is_a_status_and_no_number(change):
    found = rogan_gladen(**{**JUDGE, **change})
    assert found.status == "labels of one class only"
    assert np.isnan([found.estimate, found.lower, found.upper, found.j]).all()


@pytest.mark.parametrize(("change", "status"), [
    ({"q0": 0.5, "q1": 0.53}, "J near 0"),
    ({"q0": 0.6, "q1": 0.62, "m0": 40, "m1": 40}, "J near 0"),
    ({"q0": 1.0, "m0": 1}, "few labels of a class"),
    ({"q1": 0.75, "m1": 4}, "few labels of a class"),
    ({"q0": 0.8, "m0": 5, "q1": 0.98}, "ok"),
    ({}, "ok"),
])  # fmt: skip
def test_what_the_labels_do_not_bound_has_a_status_and_the_whole_range(change, status):
    found = rogan_gladen(**{**JUDGE, **change})
    assert found.status == status
    assert 0 <= found.estimate <= 1
    ends = [found.lower, found.upper, found.lower_untruncated, found.upper_untruncated]
    assert (ends == [0, 1, -np.inf, np.inf]) == (status != "ok")


def test_one_label_of_a_class_does_not_bound_the_accuracy():
    """Truth 0.91: the interval was [0.964, 1], "ok"."""
    found = rogan_gladen(0.9, 1.0, 0.93, 2000, 1, 59)
    assert (found.status, found.lower, found.upper) == ("few labels of a class", 0, 1)


@pytest.fixture(scope="module")
def replications():
    """By setting: interval and status of 2,000 data sets, truth, J and labels of the rarer class."""
    rng = np.random.default_rng(0)
    labels = [(1, 60), (2, 50), (5, 5), (5, 500), (10, 50), (10, 500), (20, 20), (20, 200), (50, 50), (100, 400)]
    grid = [
        (m0, m1, theta, q0, q1)
        for m0, m1 in labels
        for theta in (0.05, 0.3, 0.7, 0.95)
        for q0 in (0.05, 0.3, 0.5, 0.7, 0.9, 0.98)
        for q1 in (0.1, 0.3, 0.53, 0.7, 0.9, 0.98)
        if q0 + q1 >= 1
    ]
    m0, m1, theta, q0, q1 = np.array(grid).T[:, :, None]
    size = len(grid), 2000
    p = rng.binomial(2000, theta * q1 + (1 - theta) * (1 - q0), size) / 2000
    rates = (rng.binomial(m.astype(int), q, size) / m for m, q in ((m0, q0), (m1, q1)))
    found = rogan_gladen(p, *rates, 2000, m0, m1)
    covered = (found.lower <= theta) & (theta <= found.upper)
    return found, covered, m0[:, 0], (q0 + q1 - 1)[:, 0]


@pytest.mark.slow
def test_an_interval_that_is_ok_is_seldom_wrong(replications):
    """Data sets whose interval is "ok" and misses: 5 of 100 are meant; where J is near 0, hardly any is "ok"."""
    found, covered, m0, j = replications
    ok = np.isin(found.status, ("ok", "clipped", "outside"))
    wrong = (ok & ~covered).mean(1)
    error = np.sqrt(0.11 * 0.89 / 2000)
    assert wrong.max() < 0.11 + 5 * error
    assert np.quantile(wrong, 0.99) < 0.08 + 5 * error
    assert wrong.mean() < 0.05
    assert not ok[m0 < 5].any()
    assert ok[np.abs(j) < 0.04].mean() < 0.01
    assert ok[(j > 0.5) & (m0 >= 20)].mean() > 0.95


@pytest.mark.slow
def test_without_the_limits_intervals_mislead():
    """By the formula alone, with one label of a class, and with a judge of J = 0.03."""
    rng = np.random.default_rng(1)
    for m0, m1, theta, q0, q1, least in ((1, 500, 0.3, 0.98, 0.98, 0.9), (20, 200, 0.3, 0.05, 0.98, 0.3)):
        p = rng.binomial(2000, theta * q1 + (1 - theta) * (1 - q0), 2000) / 2000
        rates = [rng.binomial(m, q, 2000) / m for m, q in ((m0, q0), (m1, q1))]
        there = rates[0] + rates[1] > 1
        ends = np.array([twins.misclassification_interval(*row, 2000, m0, m1) for row in zip(p, *rates, strict=True)])
        missed = there & ~((ends[:, 0] <= theta) & (theta <= ends[:, 1]))
        assert missed.mean() > least


def test_infinite_tests_are_the_limit():
    limit, near = rogan_gladen(**{**JUDGE, "n": np.inf}), rogan_gladen(**{**JUDGE, "n": 1e13})
    np.testing.assert_allclose([limit.lower, limit.upper], [near.lower, near.upper], rtol=1e-6)
    assert limit.upper - limit.lower < rogan_gladen(**JUDGE).upper - rogan_gladen(**JUDGE).lower


def test_arguments_broadcast_and_nothing_is_an_answer_too():
    found = rogan_gladen(np.full((2, 1), 0.5), [0.7, 0.8, 0.9], 0.9, 100, 50, [[20], [30]])
    assert found.status.shape == found.lower.shape == (2, 3)
    one = rogan_gladen(0.5, 0.8, 0.9, 100, 50, 30)
    assert (one.lower, one.upper) == pytest.approx((found.lower[1, 1], found.upper[1, 1]))
    assert rogan_gladen([], 0.7, 0.9, 100, 50, 50).estimate.shape == (0,)


@pytest.mark.parametrize(("change", "message"), [
    ({"p": 1.2}, r"p must lie in \[0, 1\]; 1 of 1 does not, the first is 1.2"),
    ({"p": [0.1, np.nan]}, "the first is nan"),
    ({"q0": -0.1}, "q0 must lie"),
    ({"q1": np.nan}, "q1 must lie"),
    ({"n": 0}, "n must be positive"),
    ({"m1": -1}, "m1 must not be negative"),
    ({"p": "half"}, "p must be numeric, got 'half'"),
    ({"p": [0.1, 0.2], "q0": [0.7] * 3}, r"do not broadcast: p \(2,\), q0 \(3,\)"),
    ({"level": 95}, "level must be between 0 and 1"),
])  # fmt: skip
def test_wrong_arguments(change, message):
    with pytest.raises(ValueError, match=message):
        rogan_gladen(**{**JUDGE, **change})


def test_youden_j_is_agresti_and_caffo_and_the_rates_are_wilson():
    found = youden_j(15 / 20, 27 / 30, 20, 30)
    a, b, z = 16 / 22, 28 / 32, norm.ppf(0.975)
    half = z * np.sqrt(a * (1 - a) / 22 + b * (1 - b) / 32)
    assert (found.estimate, found.status) == (pytest.approx(0.65), "ok")
    assert (found.lower, found.upper) == pytest.approx((a + b - 1 - half, a + b - 1 + half))
    for ends, count, n in (((found.q0_lower, found.q0_upper), 15, 20), ((found.q1_lower, found.q1_upper), 27, 30)):
        assert ends == pytest.approx(binomtest(count, n).proportion_ci(method="wilson"))


def test_statuses_of_youden_j():
    found = youden_j([1.0, 0.6, 0.1, 0.4, 0.7], [1.0, 0.5, 0.9, 0.5, 0.7], [5, 20, 20, 20, 0], [5, 20, 20, 20, 9])
    assert found.status.tolist() == ["ok", "includes 0", "J <= 0", "J <= 0", "labels of one class only"]
    assert found.lower[0] < 0.75  # five right of five are not a perfect judge
    assert np.isnan(found.estimate[4])
    with pytest.raises(ValueError, match="q1 must lie"):
        youden_j(0.5, 1.5, 10, 10)
