"""Figures of reference-anchored scores: panels, points and what stands in them."""

import pandas as pd
import pytest

from jaxeval.anchored.scores import anchored_scores
from jaxeval.plots.anchored import plot_anchor_swap, plot_anchored


@pytest.fixture(scope="module")
def scores():
    rows = [
        (model, judge, anchor, task, 10 + 3 * i + j + k + 2 * t, 4, 20)
        for i, model in enumerate(("a", "b", "c_$x"))
        for j, judge in enumerate(("x", "y"))
        for k, anchor in enumerate(("r", "s"))
        for t, task in enumerate(("code", "maths", "prose"))
    ]
    names = ["model", "judge", "anchor", "task", "wins", "ties", "losses"]
    return anchored_scores(pd.DataFrame(rows, columns=names))


def test_a_panel_a_reference_and_task(scores):
    figure = plot_anchored(scores, strong=["x"])
    figure.canvas.draw()
    titles = [axis.get_title(loc="left") for axis in figure.axes if axis.get_visible()]
    assert titles == [f"against {a}, {t}" for a in "rs" for t in ("code", "maths", "prose")]
    drawn = figure.axes[4].collections[1].get_offsets()  # the points of judge x against s in maths
    own = scores.query("judge == 'x' and anchor == 's' and task == 'maths'")
    assert sorted(drawn[:, 0]) == pytest.approx(sorted(own["rating"]))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["x", "y (weak)"]


def test_without_tasks_and_judges(scores):
    one = scores.query("judge == 'x' and anchor == 's' and task == 'maths'").drop(columns=["judge", "task"])
    figure = plot_anchored(one)
    figure.canvas.draw()
    (axis,) = figure.axes
    assert axis.get_title(loc="left") == ""
    assert [text.get_text() for text in axis.get_yticklabels()] == ["a", "b", "c_$x"]
    assert not figure.legends


def test_lines_of_models_under_each_reference(scores):
    figure = plot_anchor_swap(scores)
    figure.canvas.draw()
    assert len(figure.axes[0].lines) == 3
    for line in figure.axes[0].lines:
        assert line.get_ydata() == pytest.approx(line.get_ydata()[::-1], abs=15)


def test_models_that_are_not_drawn_are_told():
    table = pd.DataFrame({"model": [f"m{k}" for k in range(50)], "wins": range(50), "losses": range(50, 0, -1)})
    figure = plot_anchored(anchored_scores(table))
    assert figure.get_suptitle() == "the best 40 of 50 models"
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == [f"m{k}" for k in range(10, 50)]
    assert plot_anchored(anchored_scores(table[:40])).get_suptitle() == ""
