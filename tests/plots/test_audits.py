"""Figures of pairs hold the shares of the table, and residuals with the sign of the row's model."""

import numpy as np
import pandas as pd

from jaxeval import plots

PAIRS = pd.DataFrame({
    "model_a": ["x", "x", "y"],
    "model_b": ["y", "z", "z"],
    "votes": [40, 10, 20],
    "share": [0.7, 0.4, 0.55],
    "expected": [0.5, 0.45, 0.5],
    "z": [3.6, -0.3, 0.2],
    "p_value": [0.01, 1.0, 1.0],
})  # fmt: skip


def test_points_are_shares_and_those_that_stick_out_have_a_colour():
    plain, odd = plots.plot_pair_fit(PAIRS).axes[0].collections
    np.testing.assert_allclose(plain.get_offsets(), [[45, 40], [50, 55]])
    np.testing.assert_allclose(odd.get_offsets(), [[50, 70]])
    assert odd.get_sizes()[0] > plain.get_sizes().max()


def test_residuals_change_their_sign_with_the_row():
    (axis, *_) = plots.plot_pair_residuals(PAIRS).axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["x", "y", "z"]
    values = axis.images[0].get_array().filled(np.nan)
    np.testing.assert_allclose(values, [[np.nan, 3.6, -0.3], [-3.6, np.nan, 0.2], [0.3, -0.2, np.nan]])
    assert [text.get_text() for text in axis.texts] == ["", "4", "0", "-4", "", "0", "0", "0", ""]
    figure = plots.plot_pair_residuals(PAIRS, top=2)
    assert "1 more not shown" in figure.axes[0].get_xlabel()
