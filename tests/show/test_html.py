"""Tables as HTML: every name is escaped, every number is there, and bars stand where the numbers are."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from jaxeval.show.documents import html_table

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "$x^2$ & \\(y\\)",
    "=HYPERLINK(1)",
    "\x1b[31mred\r\n",
    "\u202egpj.exe",
    "שלום",
    "x" * 300,
    "",
]


class Cells(HTMLParser):
    """The tags of a page, and the text of its cells row by row; a tag that is not closed fails."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.rows, self.open = [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


@pytest.fixture
def ratings():
    rating = np.linspace(1100, 900, len(HOSTILE))
    return pd.DataFrame({"rating": rating, "lower": rating - 20, "upper": rating + 15.5}, HOSTILE)


def test_hostile_names_are_text(ratings):
    html = html_table(ratings, title=HOSTILE[0], notes=HOSTILE)
    page = Cells(html)
    assert set(page.tags) == {"div", "style", "table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
    names = [row[0] for row in page.rows[1:]]
    assert names[:4] == HOSTILE[:4]
    assert names[4:6] == ["\\x1b[31mred\\r\\n", "\\u202egpj.exe"]
    assert names[6:] == HOSTILE[6:]
    assert "mathjax_ignore" in html


def test_an_interval_takes_a_cell_of_its_own(ratings):
    page = Cells(html := html_table(ratings))
    assert page.rows[0] == ["", "rating", "lower", "upper", ""]
    assert page.rows[1][1:] == ["1100", "1080", "1116", ""]
    starts = [float(x) for x in re.findall(r"90deg,transparent ([\d.]+)%,rgba", html)]
    assert starts == sorted(starts, reverse=True)
    assert starts[-1] == 2
    assert "gradient" not in html_table(ratings, bars=False)


def test_missing_and_infinite_values_break_no_bar():
    frame = pd.DataFrame({"x": [1.0, np.inf, np.nan], "x_lower": [0.5, 1, np.nan], "x_upper": [np.inf, np.inf, np.nan]})
    page = Cells(html := html_table(frame))
    assert [row[:3] for row in page.rows[1:]] == [["1.000", "0.500", "inf"], ["inf", "1.000", "inf"], ["-"] * 3]
    assert html.count("linear-gradient") == 2
    assert "gradient" not in html_table(frame * np.nan)
    assert html_table(frame[1:2]).count("linear-gradient") == 1


def test_shares_and_counts_have_bars_behind_them():
    frame = pd.DataFrame({"share": [0.25, 1.0], "n_battles": [10, 40], "seed": [10, 40], "gap": [-0.5, 0.5]})
    assert re.findall(r"([\d.]+)%,transparent \1%", html_table(frame)) == ["25.0", "25.0", "100.0", "100.0"]
    beside = frame.assign(x=0.5, x_lower=0.4, x_upper=0.6).rename(columns={"share": "value"})
    assert html_table(beside).count('"background:linear') == 2


def test_ends_belong_to_the_nearest_number_between_them():
    frame = pd.DataFrame({"rating": [5.0], "quantile": [9.0], "standard_error": [4.5], "lower": [4.0], "upper": [6.0]})
    html = html_table(frame)
    assert html.count('class="bar"') == 1
    assert html.index('class="bar"') > html.index(">6<")
    edges = pd.DataFrame({"lower": [0.0, 2.0], "upper": [2.0, 4.0], "agreement": [0.6, 0.7]})
    assert 'class="bar"' not in html_table(edges)


def test_every_kind_of_frame():
    several = pd.MultiIndex.from_tuples([("j", "<a>"), ("k", "b")], names=["judge", "model"])
    frame = pd.DataFrame(
        {
            "n": pd.array([1, None], "Int64"), "sure": pd.array([True, None], "boolean"), "flag": [True, False],
            "day": pd.to_datetime(["2026-01-02", None]), "what": [None, ("a", 1)], "kind": pd.Categorical(["<u>", "v"]),
        },
        several,
    )  # fmt: skip
    page = Cells(html_table(frame))
    assert page.rows[0] == ["judge", "model", "n", "sure", "flag", "day", "what", "kind"]
    assert page.rows[1] == ["j", "<a>", "1", "yes", "yes", "2026-01-02 00:00:00", "-", "<u>"]
    assert page.rows[2] == ["k", "b", "-", "-", "no", "-", "('a', 1)", "v"]
    square = pd.DataFrame([[np.nan, 0.7], [0.3, np.nan]], several, several)
    assert Cells(html_table(square)).rows[0] == ["judge", "model", "j, <a>", "k, b"]
    assert Cells(html_table(frame.iloc[:0])).rows == [page.rows[0]]
    assert Cells(html_table(pd.DataFrame())).rows == [[]]
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    assert Cells(html_table(twice)).rows[1] == ["1", "2"]


def test_rows_that_are_left_out_are_counted():
    frame = pd.DataFrame({"a": range(5)})
    page = html_table(frame, most_rows=3, notes=["seed 1"])
    assert len(Cells(page).rows) == 4
    assert "<p>seed 1</p><p>2 more rows</p>" in page


def test_headings_are_made_of_names():
    assert "<th class" not in (page := html_table(pd.DataFrame({"n_x": [1.5]}), heading=lambda name: name[2:]))
    assert Cells(page).rows[0] == ["x"]
