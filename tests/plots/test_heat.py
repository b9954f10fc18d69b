"""Heat maps say what the tables say, best first, in names that can be read."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from results import N_RESAMPLES, board, votes

import jaxeval
from jaxeval import plots

NAMES = [f"model-of-some-length-2026-{k:02d}" for k in range(52)]
SLICES = ["English", "Chinese", "coding", "long questions", "creative writing", "vision"]


def cells(figure):
    """The texts of the cells, row by row."""
    (axis, *_) = figure.axes
    image = axis.images[0].get_array()
    return np.reshape([text.get_text() for text in axis.texts], image.shape)


def names(figure, of="y"):
    return [label.get_text() for label in getattr(figure.axes[0], f"get_{of}ticklabels")()]


@pytest.fixture(scope="module")
def plain():
    return jaxeval.bootstrap(jaxeval.simulate_battles(1500, 5, seed=1), N_RESAMPLES, progress=False)


@pytest.fixture(scope="module")
def large():
    """A leaderboard of 6 slices and 52 models."""
    rank = np.tile(np.arange(1, 53), 6)
    table = pd.DataFrame({"model": NAMES * 6, "category": np.repeat(SLICES, 52), "rank": rank})
    table["rating"] = 1300.0 - 10 * rank
    return table.assign(
        lower=table["rating"] - 9, upper=table["rating"] + 9, tier=1 + rank // 5, vote_count=900,
        preliminary=False, degenerate_share=0.0,
    )  # fmt: skip


class TestWinProbability:
    def test_of_a_fit_and_of_its_bootstrap(self, plain):
        figure = plots.plot_win_probability(plain.fit)
        order = plain.fit.ratings.sort_values(ascending=False).index
        assert names(figure) == names(figure, "x") == list(order)
        shown = cells(figure)
        expected = 100 * plain.fit.win_probability.loc[order, order].to_numpy()
        for i, j in np.ndindex(5, 5):
            assert shown[i, j] == ("" if i == j else f"{expected[i, j]:.0f}")
        assert (cells(plots.plot_win_probability(plain)) == shown).all()
        assert (cells(plots.plot_win_probability(plain.fit.win_probability.loc[order, order])) == shown).all()

    def test_of_draws(self, plain):
        figure = plots.plot_win_probability(plain.joint, top=3)
        best = names(figure)
        share = plain.beat_share.loc[best, best]
        assert cells(figure)[0, 1] == f"{100 * share.iloc[0, 1]:.0f}"
        assert figure.axes[0].get_xlabel() == "2 more not shown"
        assert "draws" in figure.axes[0].get_title(loc="left")

    def test_other_tables_are_refused(self, plain):
        with pytest.raises(ValueError, match="this one is empty"):
            plots.plot_win_probability(plain.fit.win_probability.iloc[:0, :0])
        with pytest.raises(ValueError, match="the same names for rows and columns"):
            plots.plot_win_probability(plain.fit.win_probability.iloc[:2])
        with pytest.raises(ValueError, match="values below 0 or above 1"):
            plots.plot_win_probability(plain.fit.difference_standard_errors)


def test_counts_are_those_of_the_votes():
    frame = votes()
    figure = plots.plot_battle_counts(jaxeval.Battles.from_pandas(frame))
    shown = cells(figure)
    met = pd.crosstab(frame["model_a"], frame["model_b"])
    both = met.add(met.T, fill_value=0)
    most = both.sum().sort_values(ascending=False, kind="stable").index
    for i, j in np.ndindex(8, 8):
        n = both.loc[most[i], most[j]]
        assert shown[i, j] == ("" if i == j or n == 0 else f"{n:.0f}")
    few = plots.plot_battle_counts(jaxeval.Battles.from_pandas(frame), top=2)
    assert few.axes[0].get_xlabel() == "6 more not shown"
    one = pd.DataFrame({"model_a": ["a"], "model_b": ["b"], "winner": ["model_a"]})
    assert cells(plots.plot_battle_counts(jaxeval.Battles.from_pandas(one))).tolist() == [["", "1"], ["1", ""]]


@pytest.mark.parametrize(("n", "shown"), [(999, "999"), (1000, "1.0k"), (9949, "9.9k"), (12_345, "12k")])
def test_large_counts_are_short(n, shown):
    frame = pd.DataFrame({"model_a": ["a", "a"], "model_b": "b", "winner": ["model_a", "model_b"], "n": [n - 1, 1]})
    assert cells(plots.plot_battle_counts(jaxeval.Battles.from_pandas(frame, count="n")))[0, 1] == shown


def test_ranks_are_the_shares_of_the_draws(plain):
    figure = plots.plot_rank_distribution(plain.joint)
    share = plain.joint.rank_distribution().loc[names(figure)]
    np.testing.assert_allclose(share.sum(axis=1), 1)
    shown = cells(figure)
    for i, j in np.ndindex(shown.shape):
        assert shown[i, j] == (f"{100 * share.iloc[i, j]:.0f}" if share.iloc[i, j] > 0.005 else "")


class TestSlices:
    def test_models_stand_by_their_mean_rank(self, large):
        assert names(plots.plot_slices(large.sample(frac=1, random_state=0))) == NAMES
        assert cells(plots.plot_slices(large))[3].tolist() == ["1260"] * 6
        assert cells(plots.plot_slices(large, "rank"))[3].tolist() == ["4"] * 6

    def test_a_model_without_a_rank_has_an_empty_cell(self, large):
        table = large.assign(rank=large["rank"].astype("Int64"))
        table.loc[0, "rank"] = pd.NA
        figure = plots.plot_slices(table.drop(index=1))
        assert cells(figure)[names(figure).index(NAMES[0]), 0] == ""
        assert cells(figure)[names(figure).index(NAMES[1]), 0] == ""

    def test_what_it_cannot_show(self, large):
        with pytest.raises(ValueError, match="value must be one of 'rating', 'rank', got 'tier'"):
            plots.plot_slices(large, "tier")
        with pytest.raises(ValueError, match="lacks the columns category"):
            plots.plot_slices(jaxeval.leaderboard(board()))


@pytest.mark.slow
@pytest.mark.parametrize("plot", [plots.plot_slices, lambda table: plots.plot_leaderboard(table, top=None)])
def test_names_are_legible_at_6_slices_of_52_models(large, plot):
    figure = plot(large)
    figure.draw_without_rendering()
    shown = [axis for axis in figure.axes if axis.get_visible() and axis.get_yticks().size == 52]
    boxes = [[label.get_window_extent() for label in axis.get_yticklabels()] for axis in shown]
    assert len(boxes) in (1, 6)
    for axis, own in zip(shown, boxes, strict=True):
        heights = sorted(box.y0 for box in own)
        assert min(np.diff(heights)) >= max(box.height for box in own)
        assert min(box.x0 for box in own) >= 0
        assert axis.get_yticklabels()[0].get_fontsize() >= 8
        others = [other.get_window_extent() for other in shown if other is not axis]
        assert not any(box.overlaps(other) for box in own for other in others)


@pytest.mark.parametrize("n", [14, pytest.param(52, marks=pytest.mark.slow)])
def test_columns_of_names_do_not_touch(large, n):
    one = large.head(n).set_index("model")["rating"]
    figure = plots.plot_win_probability(1 / (1 + np.exp((one.to_numpy() - one.to_numpy()[:, None]) / 170)) * named(one))
    figure.draw_without_rendering()
    left = [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
    assert all(a.x1 <= b.x0 for a, b in pairwise(left))


def named(ratings):
    return pd.DataFrame(1.0, ratings.index, ratings.index.rename(None))
