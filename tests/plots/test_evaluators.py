import numpy as np
import pytest
from evaluated import DELTAS, GAPS, GOLD, B, taus

from jaxeval import agreement_by_gap, stratified_rank_change
from jaxeval.plots.evaluators import plot_agreement, plot_rank_change, plot_tau_delta


@pytest.fixture(scope="module")
def table():
    return taus()


def words(figure):
    return [t.get_text() for t in figure.axes[0].texts]


def test_taus_with_their_pairs(table):
    figure = plot_tau_delta(table)
    axis = figure.axes[0]
    labels = [t.get_text() for t in axis.get_xticklabels()]
    assert labels == ["gap under 1.5", "gap under 3", "gap under 6", "all pairs"]
    assert [t.get_text() for t in axis.get_yticklabels()] == ["x", "y"]
    few = table["n_pairs"] < 15
    drawn = np.ma.getmaskarray(axis.images[0].get_array())
    np.testing.assert_array_equal(drawn.reshape(-1), few)
    for text, row, hidden in zip(words(figure), table.itertuples(), few, strict=True):
        assert text.endswith(f"{row.n_pairs} pairs")
        assert (f"{row.tau:+.2f}" in text) == (not hidden)
    assert not np.ma.getmaskarray(plot_tau_delta(table, few_pairs=0).axes[0].images[0].get_array()).any()


def test_one_evaluator_without_resamples(tmp_path):
    figure = plot_tau_delta(taus(GAPS["x"], n_resamples=0))
    assert words(figure)[-1].count("\n") == 1
    figure.savefig(tmp_path / "taus.png")


def test_rank_changes():
    changes = stratified_rank_change(GAPS, GOLD, n_resamples=B)
    figure = plot_rank_change(changes)
    assert figure.axes[0].get_xticklabels()[0].get_text() == "tier 1\n75-100 %"
    np.testing.assert_allclose(figure.axes[0].images[0].get_array().reshape(-1), changes["rank_change"])
    assert words(figure)[0].endswith("(3)")


def test_few_pairs_are_hidden():
    """Five models are ten pairs."""
    board = GAPS.loc[GOLD.nlargest(5).index, ["x"]]
    changes = stratified_rank_change(board, GOLD, 2, n_resamples=B)
    curve = agreement_by_gap(board, GOLD, [2.0, 4.0], n_resamples=B)
    for few, hidden in ((15, True), (0, False)):
        axis = plot_rank_change(changes, few).axes[0]
        assert np.ma.getmaskarray(axis.images[0].get_array()).all() == hidden
        assert all(text.endswith(f"({n})") for text, n in zip(words(axis.figure), changes["n_models"], strict=True))
        line, _, observed = plot_agreement(curve, few_pairs=few).axes[0].lines[:3]
        assert np.isnan(line.get_ydata()).all() == hidden
        assert np.isnan(observed.get_ydata()).all() == hidden


def test_agreement_by_gap(tmp_path):
    names = {"x": "$x_{", "y": "y"}
    curve = agreement_by_gap(GAPS.rename(columns=names), GOLD, DELTAS[:3], n_resamples=B)
    figure = plot_agreement(curve, 0.8)
    axes = [axis for axis in figure.axes if axis.get_visible()]
    assert [axis.get_title(loc="left") for axis in axes] == list(names.values())
    line, below = axes[1].lines[:2]
    own = curve[curve["evaluator"] == "y"]
    np.testing.assert_allclose(line.get_ydata(), own["probability"])
    np.testing.assert_array_equal(np.isnan(below.get_ydata()), own["n_pairs"] < 15)
    figure.savefig(tmp_path / "curve.svg")
