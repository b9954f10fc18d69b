"""Bias, coverage and length over replications, against loops over them."""

import numpy as np

from jaxeval.lab.accuracy_studies import performance


def test_against_a_loop():
    rng = np.random.default_rng(0)
    estimate, truth = rng.normal(size=(50, 3)), np.array([0.0, 0.3, -0.2])
    lower, upper = estimate - 1, estimate + rng.random((50, 3))
    estimate[::7, 1] = np.nan
    lower[::7, 1], upper[::7, 1] = -9, 9  # nothing bounds them
    estimate[::5, 2], lower[::5, 2], upper[::5, 2] = np.nan, np.nan, np.nan
    found = performance(estimate, lower, upper, truth, axis=0)
    turned = performance(estimate.T, lower.T, upper.T, truth[:, None], axis=1)
    for k in range(3):
        rows = [r for r in zip(estimate[:, k], lower[:, k], upper[:, k], strict=True) if not np.isnan(r[0])]
        errors = [value - truth[k] for value, _, _ in rows]
        covered = [a <= truth[k] <= b for a, b in zip(lower[:, k], upper[:, k], strict=True)]
        expected = {
            "bias": np.mean(errors),
            "bias_se": np.std(errors) / np.sqrt(len(rows)),
            "coverage": np.mean(covered),
            "length": np.mean([b - a for _, a, b in rows]),
            "undefined_share": 1 - len(rows) / 50,
        }
        assert expected.keys() == found.keys()
        for name, value in expected.items():
            np.testing.assert_allclose([found[name][k], turned[name][k]], value, rtol=1e-12, err_msg=name)


def test_nothing_is_known_without_an_estimate():
    nothing = np.full((4, 1), np.nan)
    found = performance(nothing, nothing, nothing, np.array([0.5]), axis=0)
    assert found.pop("undefined_share").tolist() == [1.0]
    assert np.isnan(list(found.values())).all()
