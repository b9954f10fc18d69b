"""The sweep over label smoothing's constant."""

import numpy as np
import pytest

import jaxeval
from jaxeval.plots.soft_elo import plot_smoothing
from jaxeval.softelo.label_smoothing import label_smoothing_sweep


@pytest.fixture(scope="module")
def judged():
    return jaxeval.simulate_judged_battles(1000, 9, unlabelled=0.15, tie_rate=0.4, seed=5)


@pytest.mark.slow
def test_rows_are_those_of_soft_elo(judged):
    table = label_smoothing_sweep(judged, (0.8,)).set_index("method")
    expected = jaxeval.soft_elo(judged, n_resamples=0, methods=("hard", "soft", "smooth:0.8")).summary
    for column in ("n_models", "mae", "mae_lower", "mae_upper", "spearman", "kendall"):
        np.testing.assert_array_equal(table[column], expected[column])
    assert table["constant"].to_dict() == pytest.approx({"hard": 1, "soft": np.nan, "smooth:0.8": 0.8}, nan_ok=True)


def test_the_ends_are_hard_labels_and_no_labels(judged):
    """c = 1 is Hard-Elo; c = 1/2 calls everyone equal: the error is the spread of the human ratings about the base."""
    table = label_smoothing_sweep(judged, (0.5, 1)).set_index("method")
    human = jaxeval.soft_elo(judged, n_resamples=0).models.query("method == 'hard'")["human_elo"]
    assert table.loc["smooth:1.0", "mae"] == pytest.approx(table.loc["hard", "mae"], abs=1e-6)
    assert table.loc["smooth:0.5", "mae"] == pytest.approx(np.abs(human - 1500).mean(), abs=1e-6)


def test_figure_shows_the_sweep(judged):
    table = label_smoothing_sweep(judged, (0.5, 1))
    (axis,) = plot_smoothing(table).axes
    np.testing.assert_array_equal(axis.lines[0].get_xdata(), [0.5, 1])
    np.testing.assert_array_equal(axis.lines[0].get_ydata(), table["mae"][2:])


def test_constants_out_of_range(judged):
    with pytest.raises(ValueError, match=r"c in \[0.5, 1\]"):
        label_smoothing_sweep(judged, (0.3,))
