"""Figures of horizons, indices and fronts show the numbers of their results."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import jaxeval
from jaxeval import plots
from jaxeval.show.shown import figures_of

DATES = {"agent-1": "2023-01-01", "agent-2": "2024-01-01", "agent-3": "2025-01-01"}


@pytest.fixture(scope="module")
def horizons():
    return jaxeval.time_horizons(jaxeval.simulate_runs(3, 40, 20, 3, seed=4), n_resamples=40, progress=False)


@pytest.fixture(scope="module")
def index():
    return jaxeval.capability_index(
        jaxeval.simulate_benchmark_scores(12, 8, seed=1, observed=0.7), n_resamples=40, progress=False
    )


def lines(axis):
    return {line.get_marker(): line.get_xydata() for line in axis.lines}


def test_curves_cross_the_levels_at_the_horizons(horizons):
    table, points = horizons.table, horizons.curve_points([0.5, 0.8, 0.2])
    whole = points.merge(table, on=["agent", "level"])
    assert len(whole) == 6
    np.testing.assert_allclose(whole["minutes"], whole["horizon"], rtol=1e-6)
    figure = plots.plot_success_curves(horizons, ["agent-2"])
    drawn = lines(figure.axes[0])
    np.testing.assert_allclose(drawn["D"][:, 0], table[table["agent"] == "agent-2"]["horizon"])
    assert [axis.get_title(loc="left") for axis in figure.axes if axis.get_visible()] == ["agent-2"]


def test_dots_are_shares_of_tasks_of_one_length(horizons):
    (one,) = {len(horizons.by_length(1)) // 3}
    assert one == 1
    whole = horizons.by_length(1).set_index("agent")["success"]
    expected = horizons.table.drop_duplicates("agent").set_index("agent")["success"]
    pd.testing.assert_series_equal(whole, expected.loc[whole.index])
    bins = horizons.by_length(4)
    assert bins.groupby("agent")["n_tasks"].agg(["min", "max"]).to_numpy().tolist() == [[10, 10]] * 3


def test_trends(horizons, index):
    figure = plots.plot_over_time(horizons, DATES)
    assert horizons.trend(DATES).answer.sentences[0] in figure.axes[0].get_xlabel()
    assert figure.axes[0].get_yscale() == "log"
    dates = {name: f"20{10 + k}-01-01" for k, name in enumerate(index.joint.names)}
    points = index.trend(dates).loc["points a year"]
    axis = plots.plot_over_time(index, dates).axes[0]
    assert f"{points['estimate']:.1f} points a year ({points['lower']:.1f}" in axis.get_xlabel()
    assert sum(len(line.get_xdata()) for line in axis.lines if line.get_marker() == "o") == 12


def test_an_index_lies_in_its_bar(index):
    """Where the draws of a best model are below its index, the bar ends there: in the figure, and in a front."""
    draws = index.joint
    below = draws.draws.copy()
    below[:, 0] = np.minimum(below[:, 0], draws.estimate[0] - 1 - np.arange(40))
    index = replace(index, joint=replace(draws, draws=below))
    axis = plots.plot_index(index, top=8).axes[0]
    bars, dots = (axis.collections[k].get_paths() if k == 0 else axis.collections[k].get_offsets() for k in (0, 1))
    ends = np.array([bar.vertices[:, 0] for bar in bars])
    assert (ends[:, 0] <= dots[:, 0]).all()
    assert (dots[:, 0] <= ends[:, 1]).all()
    assert (index.table["index"] <= index.table["upper"]).all()
    assert draws.names[0] == index.table["model"][index.table["index"] == index.table["upper"]].iloc[0]
    front = jaxeval.pareto_front(index, dict.fromkeys(draws.names, 1.0)).table
    assert front["quality"].between(front["lower"], front["upper"]).all()
    table = index.table.head(8)
    spans = [f"{a}-{b}" if a < b else str(a) for a, b in zip(table["rank_best"], table["rank_worst"], strict=True)]
    assert [x.get_text() for x in axis.get_yticklabels()] == [
        f"{span}  {model}" for span, model in zip(spans, table["model"], strict=True)
    ]
    assert "4 more models not shown" in axis.get_xlabel()


def test_front(index):
    costs = {name: 1.0 + k for k, name in enumerate(index.joint.names)}
    front = jaxeval.pareto_front(index, costs)
    axis = plots.plot_front(front).axes[0]
    assert axis.get_xscale() == "log"
    drawn = np.concatenate([line.get_ydata() for line in axis.lines if line.get_marker() == "o"])
    np.testing.assert_allclose(np.sort(drawn), np.sort(front.table["quality"]))
    assert sum("%" in text.get_text() for text in axis.texts) == front.table["on_front"].sum()


def test_results_name_their_figures(horizons, index):
    front = jaxeval.pareto_front(index, dict.fromkeys(index.joint.names, 1.0))
    results = horizons, index, front, horizons.trend(DATES), jaxeval.simulate_battles(10, 2)
    assert [list(figures_of(result)) for result in results] == [["horizons"], ["index"], ["front"], ["trend"], []]
