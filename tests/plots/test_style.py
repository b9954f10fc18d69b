import inspect

import pandas as pd
import pytest
from matplotlib import rc_context
from matplotlib.text import Text
from results import FIGURES, OBEYED, board, intervals, votes

import jaxeval
from jaxeval import plots
from jaxeval.plots.style import drawable, shown_name

WITHOUT_DATA = {"plot_interval_length", "plot_regimes"}


@pytest.mark.parametrize(
    ("name", "shown"), [("model-1", "model-1"), ("x" * 40, "x" * 40), (7, "7"), ("a\nb\x1b", r"a\nb\x1b")]
)
def test_names_are_shown(name, shown):
    assert shown_name(name) == shown


def test_long_names_keep_both_ends():
    assert shown_name("meta-llama/" + "x" * 300 + "-2026-11-22") == "meta-llama/xxxxxxxxx…xxxxxxxx-2026-11-22"
    assert len(shown_name("y" * 300)) == 40


@pytest.fixture(params=sorted(FIGURES))
def name(request):
    return request.param


def labels(figure):
    return {own.get_gid(): own for own in figure.texts if own.get_gid()}


def caption(figure):
    return labels(figure)["caption"].get_text().replace("\n", " ")


def test_every_figure_is_among_them():
    assert set(FIGURES) == set(plots.__all__)
    assert jaxeval.plots is plots


def test_names_are_drawn_unharmed_between_a_title_and_a_caption_unless_none_is_wanted(name):
    plot, of = getattr(plots, name), FIGURES[name]()
    figure, none = plot(*of, caption="Arena, 2026-11-22"), plot(*of, title="", caption="")
    figure.draw_without_rendering()  # a glyph that is missing would be a warning, and so an error
    above, below = labels(figure).values()
    assert above.get_text()
    assert below.get_text().startswith("Arena, 2026-11-22")
    assert not above.get_parse_math()
    assert not any(set(OBEYED) & set(text.get_text()) for text in figure.findobj(Text))
    assert not labels(none)
    assert figure.get_figheight() > none.get_figheight()


def test_it_says_what_it_takes(name):
    plot = getattr(plots, name)
    assert {"title", "caption"} <= set(inspect.signature(plot).parameters)
    if name in WITHOUT_DATA:
        return
    _, *others = FIGURES[name]()
    with pytest.raises(TypeError, match=rf"^{name} takes a?.*, got an object of type int"):
        plot(1, *others)
    (what,) = {line.split(". ")[0] for line in inspect.getdoc(plot).splitlines() if line.startswith("It takes ")}
    assert len(what) > len("It takes ")
    with pytest.raises((TypeError, ValueError), match=rf"^{name} (takes|finds) "):
        plot(pd.DataFrame({"x": [1.0]}), *others)
    with pytest.raises(TypeError, match="unexpected keyword argument 'titel'"):
        plot(*FIGURES[name](), titel="")


def test_the_way_to_what_it_takes_is_told():
    with pytest.raises(
        TypeError, match=r"^plot_draws takes Draws.*, got an object of type jaxeval.Bootstrap; pass its \.joint$"
    ):
        plots.plot_draws(board())
    with pytest.raises(
        ValueError, match=r"plot_leaderboard takes the table that leaderboard\(\) returns; this table lacks"
    ):
        plots.plot_leaderboard(intervals())
    with pytest.raises(ValueError, match=r"plot_calibration takes .*, with r in its attrs"):
        plots.plot_calibration(by_gap_without_settings(), FIGURES["plot_calibration"]()[1])


def by_gap_without_settings():
    table = FIGURES["plot_calibration"]()[0].copy()
    table.attrs = {}
    return table


def test_the_caption_knows_votes_and_resamples():
    assert (
        caption(plots.plot_leaderboard(jaxeval.leaderboard(board())))
        == f"{len(votes()):,} votes · 60 resamples, 95% intervals, seed 0, mean rating 1000"
    )
    assert caption(plots.plot_win_probability(board())).startswith("1,500 votes · 60 resamples")
    assert "in the largest slice" in caption(plots.plot_slices(*FIGURES["plot_slices"]()))
    assert "60 resamples" in caption(plots.plot_history(*FIGURES["plot_history"]()))
    assert "50 resamples" in caption(plots.plot_judge_agreement(*FIGURES["plot_judge_agreement"]()))


def test_long_titles_are_folded_within_the_figure():
    figure = plots.plot_draws(board().joint, title="long $x " * 60, caption="words " * 90)
    figure.draw_without_rendering()
    assert labels(figure)["title"].get_text().split() == ["long", "$x"] * 60
    width = figure.get_window_extent().width
    assert all(own.get_window_extent().x1 <= width for own in labels(figure).values())
    top = max(axis.get_tightbbox().y1 for axis in figure.axes)
    assert top <= labels(figure)["title"].get_window_extent().y0 + 1


def test_signs_that_the_font_lacks_are_escapes():
    assert drawable("a\n你 שלום é Ж") == "a\n\\u4f60 שלום é Ж"
    assert drawable("\x1b🦙") == "\\x1b\\U0001f999"
    with rc_context({"font.family": ["STIXGeneral"]}):
        assert drawable("你שé") == "\\u4f60\\u05e9é"
