"""Figures of Soft-Elo take names as they are."""

import pandas as pd
import pytest

from jaxeval.plots.soft_elo import plot_held_out, plot_intervals
from jaxeval.plots.style import save_figure

NAMES = ["$\\frac{1$", "a$x$b", "esc\x1b[2J", "plain"]


@pytest.mark.parametrize("plot", [plot_held_out, plot_intervals])
def test_names_are_no_mathematics_and_hold_no_control_characters(plot, tmp_path):
    table = pd.DataFrame({"model": NAMES, "judge": "$\\frac$", "method": "soft", "human_elo": [1.0, 2, 3, 4]})
    table = pd.concat([table, table.assign(judge="other\x07")], ignore_index=True)
    table["judge_elo"] = table["human_elo"] + 1
    table = table.assign(residual=1.0, standard_error=0.5, width=2.0)
    table["lower"], table["upper"] = table["judge_elo"] - 1, table["judge_elo"] + 1
    figure = plot(table)
    save_figure(figure, tmp_path / "x.png", dpi=50)  # draws all text; a glyph that is missing would be a warning
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    assert titles[0].startswith("$\\frac$, soft: ")
    assert titles[1].startswith("other\\x07, soft: ")
    if plot is plot_intervals:
        labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
        assert labels == ["$\\frac{1$", "a$x$b", "esc\\x1b[2J", "plain"]
        assert not any(text.get_parse_math() for text in figure.axes[0].get_yticklabels())
