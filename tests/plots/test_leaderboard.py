from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from results import N_RESAMPLES, RESULTS, battles, board

import jaxeval
from jaxeval import Draws, plots
from jaxeval.plots.boards import JUDGE_ALONE, plot_leaderboard
from jaxeval.plots.style import save_figure

PLOTS = (plots.plot_draws, plots.plot_ranks, plots.plot_draw_differences)


@pytest.fixture(scope="module")
def table():
    return jaxeval.leaderboard(board())


def test_points_and_intervals_are_the_tables(table):
    axis = plot_leaderboard(table).axes[0]
    points = axis.collections[-1].get_offsets()
    np.testing.assert_allclose(points[:, 0], table["rating"])
    segments = next(c for c in axis.collections if hasattr(c, "get_segments")).get_segments()
    np.testing.assert_allclose([s[:, 0].min() for s in segments], table["lower"])
    np.testing.assert_allclose([s[:, 0].max() for s in segments], table["upper"])
    labels = [t.get_text() for t in axis.get_yticklabels()]
    assert labels[0] == f"1  {table['model'][0]}"


def test_the_scale_of_a_tie_model_is_named(table):
    note = "scale is not that of expected scores"
    with_ties = jaxeval.leaderboard(RESULTS["ContextualBootstrap"]())
    assert note in plot_leaderboard(with_ties).axes[0].get_xlabel()
    assert note not in plot_leaderboard(table).axes[0].get_xlabel()


def test_the_longest_names_leave_room_for_the_axes(table):
    """Where they do not, Matplotlib warns, and a warning is an error here."""
    long = table.assign(model=[f"{k}{'L' * 300}" for k in range(len(table))])
    figure = plot_leaderboard(long)
    figure.draw_without_rendering()
    assert figure.axes[0].get_position().width > 0.3


def test_top_limits_the_models_shown(table):
    figure = plot_leaderboard(table, top=3)
    assert len(figure.axes[0].get_yticks()) == 3


def test_models_with_too_few_battles_are_left_out():
    table = jaxeval.leaderboard(battles(), n_resamples=N_RESAMPLES, min_battles=350)
    ranked = table[table["rank"].notna()]
    axis = plot_leaderboard(table).axes[0]
    assert 0 < len(ranked) == len(axis.get_yticks()) < 8
    assert f"{8 - len(ranked)} more models not shown" in axis.get_xlabel()


@pytest.mark.slow
def test_one_panel_a_category():
    boards = jaxeval.leaderboard(jaxeval.simulate_battles(2000, 4), n_resamples=20, by="language")
    titles = [axis.get_title(loc="left") for axis in plot_leaderboard(boards).axes]
    assert [t for t in titles if t] == list(boards["category"].unique())


def test_many_categories_are_limited_to_those_with_most_votes(table):
    names = ["x", "y", "z", "w"]
    boards = [
        table.assign(category=c, vote_count=k * table["vote_count"]) for c, k in zip(names, [3, 1, 4, 2], strict=True)
    ]
    boards = pd.concat(boards, ignore_index=True)
    votes = boards.groupby("category")["vote_count"].sum()
    figure = plot_leaderboard(boards, panels=2)
    assert {axis.get_title(loc="left") for axis in figure.axes} == set(votes.nlargest(2).index)
    assert f"{len(votes) - 2} more are not shown" in figure.get_suptitle()


def test_names_are_no_formulas(tmp_path):
    frame = pd.DataFrame({"model_a": "$\\frac{1$", "model_b": "b_$x", "winner": ["model_a", "model_b"] * 20})
    table = jaxeval.leaderboard(frame.assign(kind="$^$"), by="kind", n_resamples=50)
    save_figure(plot_leaderboard(table), tmp_path / "board.svg", dpi=50)
    assert (tmp_path / "board.svg").exists()


def test_a_board_without_ratings_is_drawn(tmp_path):
    frame = pd.DataFrame({"model_a": ["a"], "model_b": ["b"], "winner": ["model_a"]})
    table = jaxeval.leaderboard(frame, n_resamples=50)
    save_figure(plot_leaderboard(table), tmp_path / "board.png", dpi=50)
    assert "no model takes a rank" in [t.get_text() for t in plot_leaderboard(table).axes[0].texts]


def test_unrated_models_and_infinite_bounds_can_be_drawn(tmp_path):
    rows = [("a", "b", "model_a"), ("b", "a", "model_a"), ("b", "c", "model_a"), ("c", "a", "model_a")]
    rows += [("d", "a", "model_a")]
    votes = pd.DataFrame(rows, columns=["model_a", "model_b", "winner"])
    table = jaxeval.leaderboard(votes, n_resamples=50, interval="percentile", min_battles=0)
    assert np.isinf(table["upper"]).any()
    save_figure(plot_leaderboard(table), tmp_path / "board.svg", dpi=50)
    text = (tmp_path / "board.svg").read_text()
    assert "<svg" in text


def test_models_that_only_a_judge_has_seen_stand_out(table):
    axis = plot_leaderboard(table.assign(rests_on=["people", "judge", "both", "judge"] * 2)).axes[0]
    colours = [to_hex(colour) for colour in axis.collections[-1].get_facecolors()]
    assert [colour == JUDGE_ALONE for colour in colours] == [False, True] * 4
    assert "red: from a judge's scores alone" in axis.get_xlabel()


def made(names, estimate):
    draws = estimate + np.random.default_rng(0).normal(size=(60, len(names)))
    return Draws(names, np.asarray(estimate, float), draws)


def labels(figure):
    figure.draw_without_rendering()
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def test_draws_to_one_side_of_an_estimate_are_told():
    draws = made(pd.Index(["a", "b"]), [4.0, 0.0])
    told = "dots beside bars: draws lie to one side of the estimate"
    assert told not in plots.plot_draws(draws).axes[0].get_xlabel()
    assert told in plots.plot_draws(replace(draws, estimate=np.array([9.0, 0.0]))).axes[0].get_xlabel()


def test_quantities_without_a_finite_estimate_are_left_out():
    draws = made(pd.Index(["a", "b", "c"]), [np.inf, 4.0, 0.0])
    assert labels(plots.plot_draws(draws)) == labels(plots.plot_ranks(draws)) == ["1  b", "2  c"]
    figure = plots.plot_draw_differences(draws)
    assert labels(figure) == ["2  c"]
    assert figure.axes[0].get_xlabel().startswith("difference from b")
    for against in ("a", "d"):
        with pytest.raises(ValueError, match=f"no quantity '{against}' with a finite estimate among the names"):
            plots.plot_draw_differences(draws, against)
    with pytest.raises(ValueError, match="no quantity has a finite estimate"):
        plots.plot_draw_differences(made(pd.Index(["a", "b"]), [np.nan, np.nan]))


def test_differences_are_from_a_whole_name():
    draws = made(pd.MultiIndex.from_product([["x", "y"], ["a", "b"]]), [0.0, 1.0, 2.0, 3.0])
    assert labels(plots.plot_draw_differences(draws, ("x", "a"))) == ["1  y, b", "2  y, a", "3  x, b"]
    with pytest.raises(ValueError, match="no quantity 'x' with a finite estimate"):
        plots.plot_draw_differences(draws, "x")


@pytest.mark.parametrize("plot", PLOTS)
def test_one_quantity_and_names_that_no_figure_may_print(plot, tmp_path):
    labels(plot(made(pd.Index(["a"]), [0.5])))
    draws = made(pd.Index(["\x1b[31mred", "$\\frac$", "x\ny"]), [0.0, 1.0, 2.0])
    figure = plot(draws)
    figure.savefig(tmp_path / "figure.svg")
    assert "\x1b" not in (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert len(labels(figure)) == 3 - (plot is plots.plot_draw_differences)
