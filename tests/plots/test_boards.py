"""Leaderboards side by side and from date to date."""

from datetime import date

import numpy as np
import pandas as pd
import pytest

import jaxeval
from jaxeval import plots


@pytest.fixture(scope="module")
def boards():
    votes = jaxeval.simulate_battles(2400, 6, seed=2).to_pandas()
    few = votes[(votes["model_a"] != "model-6") & (votes["model_b"] != "model-6")].head(600)
    return [jaxeval.leaderboard(part, n_resamples=40, progress=False) for part in (few, votes)]


def names(figure):
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def points(figure):
    return [own.get_offsets() for own in figure.axes[0].collections if own.get_offsets().shape[1:] == (2,)]


class TestBoards:
    def test_both_ranks_and_ratings(self, boards):
        few, all_votes = boards
        figure = plots.plot_boards(few, all_votes, ("few", "all"))
        was = few.set_index("model")["rank"]
        expected = [
            f"{now} ({was.get(name, '-')})  {name}"
            for now, name in zip(all_votes["rank"], all_votes["model"], strict=True)
        ]
        assert names(figure) == expected
        assert sum("(-)" in text for text in expected) == 1
        drawn = [own for own in points(figure) if len(own) == 6]
        np.testing.assert_allclose(drawn[0][:, 0], all_votes["rating"])
        legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        assert legend == ["all", "few"]

    def test_the_first_of_them_and_those_of_the_other_board_last(self, boards):
        figure = plots.plot_boards(boards[1], boards[0], top=2)
        assert len(names(figure)) == 2
        assert "4 more models not shown" in figure.axes[0].get_xlabel()
        assert names(plots.plot_boards(boards[1], boards[0]))[-1].startswith("- (")

    def test_boards_of_several_slices_are_refused(self, boards):
        twice = pd.concat([boards[0].assign(category=c) for c in "ab"])
        with pytest.raises(ValueError, match="plot_boards takes leaderboards of one slice"):
            plots.plot_boards(boards[0], twice)


class TestHistory:
    def test_lines_go_through_the_ratings_in_time(self, boards):
        few, all_votes = boards
        figure = plots.plot_history({date(2026, 5, 1): all_votes, date(2026, 1, 1): few})
        lines = figure.axes[0].lines
        assert len(lines) == 6
        for line, name in zip(lines, all_votes["model"], strict=True):
            old, new = (board.set_index("model")["rating"].get(name, np.nan) for board in boards)
            np.testing.assert_allclose(line.get_ydata(), [old, new])
        assert list(lines[0].get_xdata()) == [np.datetime64("2026-01-01"), np.datetime64("2026-05-01")]
        assert {text.get_text() for text in figure.axes[0].texts} == set(all_votes["model"])

    def test_labels_that_are_no_dates_stand_in_their_order(self, boards):
        figure = plots.plot_history({"$v2": boards[1], "v1": boards[0]}, value="rank", top=2)
        figure.draw_without_rendering()
        assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["$v2", "v1"]
        assert figure.axes[0].yaxis_inverted()
        assert "3 more models not shown" in figure.axes[0].get_xlabel()

    def test_names_of_equal_lines_do_not_touch(self, boards):
        last = boards[1].assign(rating=1000.0, lower=990.0, upper=1010.0)
        figure = plots.plot_history({"a": last, "b": last})
        heights = np.sort([text.xyann[1] for text in figure.axes[0].texts])
        inch = np.diff(figure.axes[0].get_ylim())[0] / figure.get_figheight()
        assert np.diff(heights).min() > 7.5 / 72 * inch
        assert heights.mean() == pytest.approx(1000)

    def test_what_it_cannot_show(self, boards):
        with pytest.raises(ValueError, match="this one is empty"):
            plots.plot_history({})
        with pytest.raises(TypeError, match=r"^plot_history takes the table that leaderboard\(\) returns, got .* int"):
            plots.plot_history({"a": 1})
        with pytest.raises(ValueError, match="value must be one of 'rating', 'rank'"):
            plots.plot_history({"a": boards[0]}, value="tier")
        with pytest.raises(ValueError, match="of one slice"):
            plots.plot_history({"a": pd.concat([boards[0]] * 2)})


@pytest.fixture(scope="module")
def comparison():
    votes = jaxeval.simulate_battles(1500, 6, seed=2)
    part = votes.filter(np.arange(1500) < 1300)
    return jaxeval.compare_boards(part, votes, names=("last", "$this"), n_resamples=60)


class TestComparison:
    def test_ratings_and_differences(self, comparison):
        table = comparison.table.sort_values("rating_b", ascending=False)
        figure = plots.plot_comparison(comparison)
        figure.draw_without_rendering()
        assert names(figure) == [
            f"{b} ({a})  {m}" for b, a, m in zip(table["rank_b"], table["rank_a"], table["model"], strict=True)
        ]
        legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        assert legend == ["$this", "last"]
        differences = figure.axes[1]
        drawn = [own.get_offsets() for own in differences.collections if len(own.get_offsets()) == 6]
        np.testing.assert_allclose(drawn[0][:, 0], table["difference"])
        assert "less last (Elo), 95% interval" in differences.get_xlabel()

    def test_the_first_of_them(self, comparison):
        figure = plots.plot_comparison(comparison, top=2)
        assert len(names(figure)) == 2
        assert "4 more models not shown" in figure.axes[0].get_xlabel()

    def test_what_it_takes(self):
        with pytest.raises(
            TypeError, match=r"plot_comparison takes the BoardComparison that compare_boards\(\) returns"
        ):
            plots.plot_comparison(pd.DataFrame())
