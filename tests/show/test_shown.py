"""Every result and every kind of data shows itself: shortly, with bars, and harmlessly whatever names it holds."""

import inspect
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from results import HOSTILE, OBEYED, RESULTS

import jaxeval
from jaxeval.show.cells import find_intervals, with_kinds
from jaxeval.show.documents import text_width
from jaxeval.show.shown import Answer, Html, Result, Shown, settings_line
from jaxeval.show.table import Table

pytestmark = pytest.mark.usefixtures("all_on_the_host")


def public_classes():
    found = {name: getattr(jaxeval, name) for name in jaxeval.__all__}
    return {name: value for name, value in found.items() if inspect.isclass(value) and not issubclass(value, Exception)}


def takes_any(member):
    return inspect.isfunction(member) and len(inspect.signature(member).parameters) > 1


@pytest.fixture(params=sorted(RESULTS))
def name(request):
    return request.param


def test_every_public_class_is_among_them():
    assert set(public_classes()) - {"Format"} <= set(RESULTS)  # which is an entry of a list


def test_reprs_are_short_and_say_what_it_is(name):
    text = repr(result := RESULTS[name]())
    lines = text.splitlines()
    assert isinstance(result, Shown)
    assert type(result).__name__ == name
    assert name == "Table" or len(lines) <= 12  # tables show as many rows as pandas does
    assert max(map(text_width, lines)) <= 80
    assert name == "Table" or lines[0].startswith(name)
    assert not set(OBEYED) & set(text)


def test_notebooks_show_a_table_in_which_names_are_text(name):
    html = RESULTS[name]()._repr_html_()
    assert html.count("<table>") == html.count("</table>") == 1
    assert "<script" not in html
    assert "<i>" not in html
    assert not set(OBEYED) & set(html)


def test_all_of_it_is_printed_and_written_when_asked(name, capsys):
    result = RESULTS[name]()
    assert result.show() is None
    shown = capsys.readouterr().out
    assert not set(OBEYED) & set(shown)
    assert repr(result).splitlines()[0][:20] in shown
    plain, few = result.styled(bars=False), result.styled(rows=1)
    assert "gradient" not in plain
    assert len(few) <= len(result.styled())
    assert plain._repr_html_() == str(plain)


@pytest.mark.parametrize("name", ["BradleyTerryFit", "Bootstrap", "Draws", "JudgeAccuracy", "SoftElo", "JudgeScreen"])
def test_the_best_stand_first(name):
    table = RESULTS[name]()._shown().table
    column = next(c for c in ("rating", "estimate", "judge_elo", "average") if c in table)
    assert table[column].is_monotonic_decreasing


@pytest.mark.parametrize("name", ["Bootstrap", "Draws", "JudgeAccuracy", "ModelComparison", "JudgeScreen", "Table"])
def test_intervals_are_bars(name):
    html = RESULTS[name]()._repr_html_()
    assert html.count('class="bar" style=') >= 2


@pytest.mark.parametrize(("columns", "estimate", "between"), [
    (["model", "cost", "quality", "lower", "upper"], "quality", "cost"),
    (["cost", "rating", "variance", "lower", "upper"], "rating", "cost"),
    (["rating", "rating_lower", "rating_upper", "share", "lower", "upper"], "share", None),
])  # fmt: skip
def test_intervals_need_not_hold_their_estimate(columns, estimate, between):
    """Nor does a number that chance puts between the ends take them, if the table says whose they are."""
    cells = {"model": "a", "cost": 5.0, "variance": 0.1, "lower": 4.0, "upper": 6.0, "share": 0.5}
    frame = pd.DataFrame({name: [cells.get(name, 9.0)] for name in columns})

    def found(table):
        return [columns[one.estimate] for one in find_intervals(table) if columns[one.lower] == "lower"]

    assert found(frame) == [between] * (between is not None)
    assert found(with_kinds(frame.copy(), ends_of=estimate)) == [estimate]
    assert found(with_kinds(frame, share=columns[-3])) == [columns[-3]]


def test_slices_count_their_own_battles():
    boards = RESULTS["Bootstraps"]()
    assert boards._shown().table["n_battles"].tolist() == [750, 750]
    assert "60 resamples of 750 battles between 8 models" in repr(next(iter(boards.values())))


def test_a_member_is_a_property_everywhere_or_a_method_everywhere():
    kinds = {}
    for owner in public_classes().values():
        # What takes arguments must be a method, as the table of draws at a level.
        methods = {name: inspect.isfunction(member) for name, member in vars(owner).items() if not takes_any(member)}
        held = dict.fromkeys(getattr(owner, "__annotations__", {}), False)
        for name, is_method in {**methods, **held}.items():
            if not name.startswith("_") and not isinstance(vars(owner).get(name), classmethod):
                kinds.setdefault(name, set()).add(is_method)
    assert {name for name, found in kinds.items() if len(found) > 1} == set()
    shared = {"win_probability", "beat_share", "standard_errors", "means", "covariance", "joint", "warnings", "report"}
    assert {name for name in shared if True in kinds[name]} == set()


def test_what_is_shown_takes_the_settings_in_words():
    given = {
        "n_resamples": 200,
        "level": 0.9,
        "seed": 1,
        "cluster": "\x1b",
        "ties": "davidson",
        "gauge": "mean rating 1000",
    }
    words = r"200 resamples, 90% intervals, seed 1, clusters by \x1b, mean rating 1000, ties davidson"
    assert settings_line(given) == words
    assert settings_line(None) == settings_line({"level": None}) == ""
    assert settings_line({"n_resamples": 0, "level": 0.95, "seed": 1}) == "no resamples"


def test_warnings_are_counted_in_the_repr_and_told_when_asked(capsys):
    class Two(Shown):
        def _shown(self):
            return Answer("Two things", pd.DataFrame({"a": range(9)}), "seed 1", ["one\x1b", "two"])

    assert repr(Two()).splitlines()[-2:] == ["(4 more rows)", "2 warnings: see warnings"]
    Two().show(3)
    assert capsys.readouterr().out.splitlines()[-3:] == ["(6 more rows)", r"warning: one\x1b", "warning: two"]
    assert "<p>warning: two</p>" in Two()._repr_html_()
    assert isinstance(Two().styled(), Html)


class TestTable:
    @pytest.fixture
    def board(self):
        return RESULTS["Table"]()

    @pytest.mark.parametrize("longest", [8, 40, 300])
    def test_the_rating_is_seen_at_80_columns(self, board, longest):
        named = board.assign(model=[name.ljust(longest, "n") for name in board["model"]])
        lines = repr(named).splitlines()
        assert "rating" in lines[0].split()
        assert max(map(len, lines)) <= 80
        assert f"{board['rating'][0]:.0f}" in lines[1].split()
        assert lines[0].split()[:3] == ["category", "rank", "model"]
        assert "(columns not shown: " in repr(named)

    def test_what_fits_prints_as_ever(self, board):
        few = board[["rating", "rank"]].head(3)
        assert repr(few) == repr(pd.DataFrame(few))
        assert repr(few.iloc[:0]) == repr(pd.DataFrame(few.iloc[:0]))
        assert repr(board[["model"]]).isprintable() is False
        assert not set(OBEYED) & set(repr(board[["model"]]))

    def test_wider_screens_show_more(self, board):
        with pd.option_context("display.width", 400):
            assert "degenerate_share" in repr(board).splitlines()[0]
        with pd.option_context("display.max_rows", 4):
            assert "more rows" in repr(board)

    def test_whatever_is_made_of_it_can_be_shown(self, board):
        wide = board.pivot_table(index="model", columns="category", values=["rating", "rank"])
        for table in (wide, wide[["rating"]], board.T, board.groupby("tier").mean(numeric_only=True), board * 1):
            assert repr(table)
            assert table._repr_html_().startswith("<div")

    def test_it_stays_a_table_and_a_frame(self, board, tmp_path):
        assert type(board.head()) is type(board.sort_values("rating")) is Table
        assert board.head()._title == board._title == f"Leaderboard of {len(HOSTILE)} models"
        assert board.head().attrs["settings"]["seed"] == 0
        board.to_pickle(tmp_path / "board.pkl")
        again = pd.read_pickle(tmp_path / "board.pkl")
        assert type(again) is Table
        pd.testing.assert_frame_equal(again, board)
        assert again.attrs == board.attrs


def test_a_result_on_top_of_draws_is_shown_as_ours_are(tmp_path):
    @dataclass(frozen=True, repr=False)
    class Mine(Result):
        joint: jaxeval.Draws

    draws = np.random.default_rng(0).normal([3.0, 1.0], 0.1, (50, 2))
    joint = jaxeval.Draws(pd.Index(["a", "b"]), np.array([3.0, 1.0]), draws)
    found = Mine(joint)
    assert found.answer.sentences == joint.answer.sentences
    assert list(found.answer.figures()) == list(joint.answer.figures()) == ["estimates"]
    assert found.answer.sentences[0].startswith("a has the largest estimate, 3.000 (")
    assert str(found).startswith(found.answer.sentences[0])
    pd.testing.assert_frame_equal(found.answer.table, joint.answer.table)
    assert "<table>" in found._repr_html_()
    jaxeval.page(found, tmp_path / "page.html")
    assert "a has the largest estimate" in (tmp_path / "page.html").read_text()
