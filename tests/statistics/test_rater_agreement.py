"""Krippendorff's alpha: published examples, a naive twin, and what is undefined."""

import json

import numpy as np
import pandas as pd
import pytest

from jaxeval.statistics.rater_agreement import coincidences, krippendorff_alpha, label_counts

#: Four observers, twelve units, 0 for none (Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability").
RATINGS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
    [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
]


def alpha(codes, n_labels):
    return krippendorff_alpha(coincidences(label_counts(codes, n_labels)).sum(0))


def naive(codes):
    """Disagreements of ordered pairs within units, weighted 1 / (m - 1), over those of all ordered pairs of labels."""
    within, labels = [], []
    for unit in codes:
        own = [c for c in unit if c >= 0]
        if len(own) > 1:
            labels += own
            within += [
                (a != b) / (len(own) - 1) for i, a in enumerate(own) for j, b in enumerate(own) if i != j
            ]  # fmt: skip
    between = [a != b for i, a in enumerate(labels) for j, b in enumerate(labels) if i != j]
    return 1 - (sum(within) / len(labels)) / np.mean(between)


def test_the_published_example():
    codes = np.array(RATINGS).T - 1
    assert alpha(codes, 5) == pytest.approx(0.743, abs=5e-4)
    assert alpha(codes, 5) == pytest.approx(904 / 1216)
    assert alpha(codes, 5) == pytest.approx(naive(codes))


def test_examples_of_the_data_folder(data):
    for case in json.loads((data / "fixtures.json").read_text())["krippendorff_alpha"]["cases"]:
        codes = pd.factorize(np.array(case["ratings"], object).ravel())[0].reshape(np.shape(case["ratings"])).T
        assert alpha(codes, codes.max() + 1) == pytest.approx(case["alpha"], abs=1e-7)


def test_missing_labels_and_units_with_one_label_add_nothing():
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 3, (40, 4))
    assert alpha(codes, 3) == pytest.approx(naive(codes))
    single = np.vstack([codes, [[2, -1, -1, -1], [-1, -1, -1, -1]]])
    assert alpha(single, 3) == alpha(codes, 3)


def test_one_label_has_no_alpha():
    assert np.isnan(alpha(np.zeros((9, 3), int), 3))
    assert np.isnan(alpha(np.full((9, 3), -1), 3))
