"""Figures of joint draws: what they show, and what they cannot."""

import numpy as np
import pandas as pd
import pytest

from jaxeval import Draws, plots

PLOTS = (plots.plot_draws, plots.plot_ranks, plots.plot_draw_differences)


def made(names, estimate):
    draws = estimate + np.random.default_rng(0).normal(size=(60, len(names)))
    return Draws(names, np.asarray(estimate, float), draws)


def labels(figure):
    figure.draw_without_rendering()
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


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
