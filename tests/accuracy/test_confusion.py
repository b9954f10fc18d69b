"""Shares of several classes: the inverse confusion matrix, its errors, and what cannot be inverted."""

import numpy as np
import pandas as pd
import pytest
import twins

from jaxeval import DataError
from jaxeval.accuracy.rogan_gladen import class_shares, corrected_shares, rogan_gladen

CLASSES = ["loss", "tie", "win"]
CONFUSION = np.array([[0.8, 0.2, 0.1], [0.1, 0.7, 0.2], [0.1, 0.1, 0.7]])  # P(judged row | labelled column)
RNG = np.random.default_rng(5)


def judge(labels):
    return np.array([RNG.choice(CLASSES, p=CONFUSION[:, CLASSES.index(label)]) for label in labels])


LABELS = RNG.choice(CLASSES, 120, p=[0.3, 0.3, 0.4])
JUDGMENTS = judge(LABELS)
TEST = judge(RNG.choice(CLASSES, 300, p=[0.5, 0.2, 0.3]))


def test_two_classes_are_rogan_gladen():
    rng = np.random.default_rng(0)
    for _ in range(20):
        y = np.append(rng.integers(0, 2, 30), [0, 1])
        f, g = (np.where(rng.random(len(x)) < 0.8, x, 1 - x) for x in (y, rng.integers(0, 2, 50)))
        found = class_shares(y, f, g)
        rates = twins.judge_rates(y, f)
        assert found.table.loc[1, "unclipped"] == pytest.approx(twins.misclassification_adjusted(g.mean(), *rates[:2]))
        expected = rogan_gladen(g.mean(), rates[0], rates[1], 50, *rates[2:])
        if expected.status == "J <= 0":
            assert found.status == "J <= 0"
            continue
        assert found.table.loc[1, "estimate"] == pytest.approx(expected.estimate, abs=1e-12)
        assert (found.status == "clipped") == (expected.status in ("clipped", "outside"))
        # Eq. 10 with an observation more in each cell, the slopes those of the estimate.
        q0, q1, m0, m1 = rates
        p, theta, j = (g.sum() + 1) / 52, found.table.loc[1, "unclipped"], q0 + q1 - 1
        q0, q1 = ((m * q + 1) / (m + 2) for q, m in ((q0, m0), (q1, m1)))
        variance = p * (1 - p) / 52 + (1 - theta) ** 2 * q0 * (1 - q0) / (m0 + 2) + theta**2 * q1 * (1 - q1) / (m1 + 2)
        np.testing.assert_allclose(found.covariance, variance / j**2 * np.array([[1, -1], [-1, 1]]), rtol=1e-9)


@pytest.mark.parametrize(("labels", "judgments", "status"), [
    ([0] * 4 + [1] * 30, [0] * 4 + [1] * 30, "few labels of a class"),
    ([0] * 40 + [1] * 40, [0, 1] * 20 + [0, 1, 1, 0, 1] * 8, "J near 0"),
    ([0] * 20 + [1] * 3 + [2] * 20, [0] * 20 + [1] * 3 + [2] * 20, "few labels of a class"),
])  # fmt: skip
def test_what_the_labels_do_not_bound_has_the_whole_range(labels, judgments, status):
    found = class_shares(labels, judgments, judgments * 3)
    assert found.status == status
    assert (found.table["lower"] == 0).all()
    assert (found.table["upper"] == 1).all()
    assert found.table["estimate"].sum() == pytest.approx(1)


def test_shares_solve_the_confusion_matrix():
    found = class_shares(LABELS, JUDGMENTS, TEST)
    confusion = pd.crosstab(JUDGMENTS, LABELS, normalize="columns").to_numpy()
    np.testing.assert_allclose(found.confusion, confusion)
    np.testing.assert_allclose(confusion @ found.table["unclipped"], found.table["judged"])
    np.testing.assert_allclose(found.table["judged"], pd.Series(TEST).value_counts(normalize=True)[CLASSES])
    assert found.table["estimate"].sum() == pytest.approx(1)
    assert found.table["labels"].tolist() == pd.Series(LABELS).value_counts()[CLASSES].tolist()
    assert found.condition == pytest.approx(np.linalg.cond(confusion))
    half = twins.norm.ppf(0.975) * np.sqrt(np.diag(found.covariance))
    np.testing.assert_allclose(found.table["upper"], np.minimum(found.table["unclipped"] + half, 1))
    np.testing.assert_allclose(found.table["lower"], np.maximum(found.table["unclipped"] - half, 0))


def test_covariance_is_that_of_simulated_studies():
    """Multinomial counts around the truth, many items: the delta method's error is of higher order."""
    truth, n_test, labels, repeats = np.array([0.5, 0.2, 0.3]), 4_000, np.array([900, 700, 800]), 4_000
    rng = np.random.default_rng(1)
    judged = rng.multinomial(n_test, CONFUSION @ truth, repeats) / n_test
    columns = [rng.multinomial(m, column, repeats) / m for m, column in zip(labels, CONFUSION.T, strict=True)]
    estimates = np.linalg.solve(np.stack(columns, -1), judged[..., None])[..., 0]
    y = np.repeat(CLASSES, labels)
    f = np.repeat(CLASSES * 3, np.round(CONFUSION.T * labels[:, None]).astype(int).ravel())
    g = np.repeat(CLASSES, np.round(n_test * CONFUSION @ truth).astype(int))
    found = class_shares(y, f, g)
    np.testing.assert_allclose(found.table["unclipped"], truth, atol=1e-12)
    centred = estimates - truth
    product = centred[:, :, None] * centred[:, None]
    error = product.std(0) / np.sqrt(repeats)
    np.testing.assert_array_less(np.abs(product.mean(0) - found.covariance), 5 * error)


def test_the_order_of_the_classes_is_the_callers():
    plain, turned = (class_shares(LABELS, JUDGMENTS, TEST, order) for order in (CLASSES, CLASSES[::-1]))
    assert turned.table.index.tolist() == CLASSES[::-1]
    closed = [c for c in plain.table if not c.startswith("boot")]
    pd.testing.assert_frame_equal(turned.table.loc[CLASSES, closed], plain.table[closed])
    np.testing.assert_allclose(turned.table.loc[CLASSES, "boot_lower"], plain.table["boot_lower"], atol=0.03)
    pd.testing.assert_frame_equal(turned.covariance.loc[CLASSES, CLASSES], plain.covariance)


def test_shares_outside_are_moved_to_the_nearest_point_of_the_simplex():
    found = class_shares(LABELS, JUDGMENTS, np.repeat(CLASSES, [90, 2, 8]))
    assert found.status == "clipped"
    unclipped, estimate = found.table["unclipped"].to_numpy(), found.table["estimate"].to_numpy()
    assert unclipped.min() < 0
    assert estimate.sum() == pytest.approx(1)
    assert estimate.min() >= 0
    grid = np.random.default_rng(0).dirichlet(np.full(3, 0.5), 20_000)
    assert np.linalg.norm(estimate - unclipped) <= np.linalg.norm(grid - unclipped, axis=1).min()


@pytest.mark.parametrize(("labels", "judgments", "classes", "status"), [
    ([0, 0, 1, 1], [0, 1, 0, 1], None, "J <= 0"),
    ([0, 0, 1, 1], [1, 1, 0, 1], None, "J <= 0"),
    ([0, 0, 0, 1, 1, 1, 2, 2, 2], [0, 1, 2] * 3, None, "singular confusion matrix"),
    ([0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 2], "a class has no label"),
    ([0, 0, 0], [0, 1, 1], None, "a class has no label"),
])  # fmt: skip
def test_what_cannot_be_inverted_is_a_status_and_no_number(labels, judgments, classes, status):
    found = class_shares(labels, judgments, [0, 1, 1, 0], classes)
    assert found.status == status
    assert found.table[["estimate", "lower", "upper", "unclipped", "standard_error"]].isna().all(axis=None)
    assert found.table["judged"].sum() == 1


def test_a_perfect_judge_leaves_the_error_of_the_test():
    found = class_shares(LABELS, LABELS, TEST)
    np.testing.assert_allclose(found.table["estimate"], found.table["judged"])
    p = found.table["judged"]
    error = np.sqrt(p * (1 - p) / 300)
    # Errors never seen on 120 labels are not taken for impossible.
    assert (found.table["standard_error"] > error).all()
    assert (found.table["standard_error"] < 1.3 * error).all()


@pytest.mark.parametrize(("arguments", "message"), [
    ((["a", None], ["a", "b"], ["a"]), "calibration_labels: 1 of 2 values are missing"),
    ((["a", "b"], ["a", "b"], []), "test_judgments is empty"),
    ((["a"], ["a", "b"], ["a"]), "as many calibration labels as judgments are needed, got 1 and 2"),
    ((["a", "b"], ["a", "b"], ["c", "c"], ["a", "b"]), r"test_judgments: 'c' \(2\) are none of the .* 'a', 'b'"),
])  # fmt: skip
def test_wrong_arguments(arguments, message):
    with pytest.raises(DataError, match=message):
        class_shares(*arguments)


def test_resamples_agree_with_the_closed_form():
    many = (np.tile(x, 20) for x in (LABELS, JUDGMENTS, TEST))
    found = class_shares(*many, n_resamples=4000).table
    np.testing.assert_allclose(found["boot_lower"], found["lower"], atol=0.006)
    np.testing.assert_allclose(found["boot_upper"], found["upper"], atol=0.006)


def test_batches_are_their_tables():
    rng = np.random.default_rng(3)
    counts, judged = rng.integers(1, 30, (2, 4, 3, 3)), rng.integers(1, 60, (2, 4, 3))
    shares, covariance, status = corrected_shares(counts, judged)
    for index in np.ndindex(2, 4):
        one = corrected_shares(counts[index], judged[index])
        np.testing.assert_allclose(shares[index], one[0])
        np.testing.assert_allclose(covariance[index], one[1])
        assert status[index] == one[2]


def test_intervals_cover_with_few_labels():
    """A class of one in ten, thirty labels: the closed form of every class."""
    rng = np.random.default_rng(4)
    truth, covered = np.array([0.1, 0.4, 0.5]), []
    counts, judged = [], rng.multinomial(1000, CONFUSION @ truth, 2000)
    for labels in rng.multinomial(30, truth, 2000):
        counts.append(np.stack([rng.multinomial(m, column) for m, column in zip(labels, CONFUSION.T, strict=True)], -1))
    shares, covariance, status = corrected_shares(np.array(counts), judged)
    there = np.isin(status, ["ok", "clipped"])
    error = 1.96 * np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
    covered = (np.abs(shares - truth) <= error)[there].mean(0)
    assert (covered > 0.92).all()


def test_labels_of_mixed_types_and_repeated_classes():
    found = "calibration_labels of int; calibration_judgments of str; test_judgments of int"
    with pytest.raises(DataError, match=rf"are of different types \({found}\): make them one type"):
        class_shares([1, 2], ["1", "2"], [1])
    with pytest.raises(ValueError, match="classes repeat: 'a'"):
        class_shares(["a"], ["a"], ["a"], ["a", "a"])
    with pytest.raises(DataError, match="1 of 2 values are missing"):
        class_shares(["win", np.nan], ["win", "tie"], ["win"])


@pytest.mark.parametrize("options", [{"n_resamples": 1}, {"n_resamples": 9.0}, {"seed": True}, {"seed": -1}])
def test_numbers_that_are_none(options):
    with pytest.raises((TypeError, ValueError), match=f"{next(iter(options))} must be"):
        class_shares([0, 1], [0, 1], [0, 1], **options)
