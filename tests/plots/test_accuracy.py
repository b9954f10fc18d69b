"""Figures of judged accuracies show what the tables say."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import jaxeval
from jaxeval import JudgedAnswers
from jaxeval.lab.accuracy_studies import shift_study
from jaxeval.plots import accuracy as judge_plots


@pytest.fixture(scope="module")
def comparison():
    table = jaxeval.simulate_judged_answers(n_items=300, seed=2)
    table["topic"] = np.where(table["item"] % 2, "a", "b")
    answers = JudgedAnswers.from_pandas(
        table, judgment=["judge-1", "judge-2"], model="model", item="item", keep=["topic"]
    )
    return jaxeval.compare_models(*answers.split(0.4), by="topic", n_resamples=400)


def test_accuracy_has_a_panel_a_judge_and_a_bar_an_estimator(comparison):
    figure = judge_plots.plot_accuracy(comparison.accuracy)
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["judge-1", "judge-2"]
    table = comparison.accuracy.table
    row = table[(table["slice"] == "all") & (table["estimator"] == "ppi_plus_plus") & (table["model"] == "model-1")]
    drawn = [line.get_xdata()[0] for line in figure.axes[0].lines if len(line.get_xdata()) == 1]
    assert np.abs(np.array(drawn) - row["median"].iloc[0]).min() == 0
    assert len(figure.axes[0].collections) == 3 * len(judge_plots.FIVE)


def test_other_slices_and_estimators(comparison):
    figure = judge_plots.plot_accuracy(comparison.accuracy, ("naive", "eif"), label="b")
    assert len(figure.axes[0].collections) == 6
    with pytest.raises(ValueError, match="no slice 'c'"):
        judge_plots.plot_accuracy(comparison.accuracy, label="c")


@pytest.mark.parametrize("plot", ["differences", "rates"])
def test_the_others_draw(comparison, plot, tmp_path):
    what = comparison if plot == "differences" else comparison.accuracy
    figure = getattr(judge_plots, f"plot_{plot}")(what)
    figure.savefig(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 5000


def test_planning_figures():
    lengths = judge_plots.plot_interval_length(p=(0.3, 0.7)).axes[0].lines
    assert len(lengths) == 4
    assert all(np.nanmin(np.diff(line.get_ydata())) < 0 for line in lengths)
    regimes = judge_plots.plot_regimes((0.5, 0.9))
    assert len(regimes.axes) == 3


def test_a_study_has_a_line_an_estimator():
    figure = judge_plots.plot_study(
        shift_study([0.4, 0.5], replications=20), "calibration_theta", "bias", "estimator", level=0.0
    )
    assert isinstance(figure, Figure)
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels == ["naive", "labels only", "PPI", "PPI++", "conditional", "EIF", "RG own"]


@pytest.mark.slow
def test_names_are_drawn_as_they_are(tmp_path):
    table = jaxeval.simulate_judged_answers(n_items=300, seed=2)
    table = table.rename(columns={"judge-1": "$\\frac{judge$", "judge-2": "_two"})
    table["model"] = table["model"] + "|$x"
    answers = JudgedAnswers.from_pandas(table, judgment=["$\\frac{judge$", "_two"], model="model", item="item")
    found = jaxeval.compare_models(*answers.split(0.4), n_resamples=400)
    for figure in (
        judge_plots.plot_accuracy(found.accuracy), judge_plots.plot_rates(found.accuracy),
        judge_plots.plot_differences(found),
    ):  # fmt: skip
        figure.savefig(tmp_path / "a.png")
    legend = judge_plots.plot_rates(found.accuracy).axes[2].get_legend()
    assert [text.get_text().strip("\u200b") for text in legend.get_texts()] == ["$\\frac{judge$", "_two"]
    assert found.report().to_markdown()
