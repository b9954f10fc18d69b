"""Tables as files: hostile names come back from every format, and nothing in it is obeyed."""

import io
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import FORMULAS, NAMES
from results import RESULTS

import jaxeval
from jaxeval.errors import DataError
from jaxeval.plain_tables import PlainTable, counts_from_one, in_arrow, objects
from jaxeval.show.documents import latex_table, markdown_table
from jaxeval.show.files import FORMATS, format_of, json_digest, table_bytes, write_table, write_text
from jaxeval.wording import visible_line

HARMLESS = ["it's", "'quoted'", "fine", "a=b", ""]
#: As `write_table` documents it.
INVERSE = "^'(?='*[=+\\-@\uff1d\uff0b\uff0d\uff20\t\r\n])"
SHOWN = [visible_line(name) for name in NAMES]


def table(names=NAMES):
    return pd.DataFrame({"model": names, "=head": pd.Categorical(names), "rating": np.arange(len(names)) - 3.0})


class TestNamesComeBack:
    """From every format, and so do headings."""

    def test_csv(self):
        text = table_bytes(table(), "csv").decode()
        read = pd.read_csv(io.StringIO(text), keep_default_na=False, dtype=str)
        assert list(read["model"].str.replace(INVERSE, "", regex=True)) == NAMES
        assert list(read) == ["model", "'=head", "rating"]
        raw = table_bytes(table(), "csv", raw_names=True).decode()
        assert list(pd.read_csv(io.StringIO(raw), keep_default_na=False, dtype=str)["model"]) == NAMES

    def test_parquet(self):
        read = pq.read_table(io.BytesIO(table_bytes(table(), "parquet")))
        assert read["model"].to_pylist() == NAMES

    def test_json(self):
        content = json.loads(table_bytes(table(), "json"))
        assert [row["model"] for row in content["rows"]] == NAMES
        assert [row["=head"] for row in content["rows"]] == NAMES

    def test_html(self):
        cells, tags = read_html(table_bytes(table(), "html", title="<i>Title</i>", notes=["<b>note</b>"]).decode())
        assert [row[0] for row in cells[1:]] == SHOWN
        assert tags <= {"html", "meta", "title", "div", "style", "table", "caption", "thead", "tbody", "tr", "th", "td",
                        "p"}  # fmt: skip

    def test_markdown(self):
        rows = read_markdown(markdown_table(table()))
        assert [row[0] for row in rows] == ["Model", "---", *[name.strip() for name in SHOWN]]
        assert [row[1] for row in rows] == ["=head", "---", *[name.strip() for name in SHOWN]]

    def test_latex(self):
        rows = read_latex(latex_table(table()))
        assert [row[0] for row in rows] == ["Model", *[name.strip() for name in SHOWN]]


def read_html(text):
    """Cells of the rows as a browser has them, and the tags of the page."""

    class Reader(HTMLParser):
        rows, tags, inside = [], set(), False

        def handle_starttag(self, tag, attrs):
            self.tags.add(tag)
            if tag == "tr":
                self.rows.append([])
            if tag in ("td", "th"):
                self.rows[-1].append("")
                self.inside = True

        def handle_endtag(self, tag):
            self.inside = self.inside and tag not in ("td", "th")

        def handle_data(self, data):
            if self.inside:
                self.rows[-1][-1] += data

    reader = Reader(convert_charrefs=True)
    reader.rows, reader.tags = [], set()
    reader.feed(text)
    return reader.rows, reader.tags


def read_markdown(text):
    """Cells of the rows of a table, by GitHub's rules: a backslash before a sign of ASCII takes its meaning away."""
    rows = []
    for line in text.splitlines():
        parts = [part.strip() for part in re.findall(r"((?:\\.|[^|\\])*)\|", line)[1:]]
        assert not re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]<>~$]", line), line
        rows.append([re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", part) for part in parts])
    return rows


def read_latex(text):
    """Cells of the rows of a tabular, by the signs that this project writes."""
    words = {"textbackslash": "\\", "textasciicircum": "^", "textasciitilde": "~", "textless": "<", "textgreater": ">",
             "textbar": "|", "textasciigrave": "`", "textquotesingle": "'", "char34": '"'}  # fmt: skip

    def plain(cell):
        sign = re.compile(r"\\(" + "|".join(words) + r")\{\}|\\([{}$&#%_])|\{([\[\]*])\}|([-,!?])\{\}|([\\{}$&#%_^~])")

        def one(found):
            assert not found[5], f"a sign that LaTeX obeys: {cell}"
            return words.get(found[1]) or found[2] or found[3] or found[4]

        return sign.sub(one, cell).strip()

    lines = [line for line in text.splitlines() if line.endswith(r" \\")]
    for line in lines:
        assert not line.startswith(("[", "*"))
    return [[plain(cell) for cell in re.split(r"(?<!\\) & ", line.removesuffix(r" \\"))[:1]] for line in lines]


class TestCsv:
    def test_no_text_begins_as_a_formula(self, tmp_path):
        names = [*FORMULAS, *HARMLESS]
        write_table(table(names), tmp_path / "x.csv")
        read = pd.read_csv(tmp_path / "x.csv", keep_default_na=False)
        for column in ("model", "'=head"):
            assert not read[column].str.match("[=+@\t\r\n-]").any()
            assert list(read[column][-len(HARMLESS) :]) == HARMLESS
        np.testing.assert_array_equal(read["rating"], table(names)["rating"])  # numbers stay numbers, negative ones too

    def test_text_of_the_index(self, tmp_path):
        write_table(table().set_index("model"), tmp_path / "x.csv")
        assert list(pd.read_csv(tmp_path / "x.csv", index_col="model").index[:2]) == [f"'{n}" for n in NAMES[:2]]

    def test_an_index_that_counts_is_no_column(self):
        table = pd.DataFrame({"x": [1, 2, 3]})
        assert table_bytes(table[table["x"] > 1], "csv") == b"x\n2\n3\n"
        assert table_bytes(table.set_axis(["a", "b", "c"]), "csv") == b"index,x\na,1\nb,2\nc,3\n"

    def test_plain_tables_stay_as_they_are(self, tmp_path):
        plain = pd.DataFrame({"model": ["a", "b"], "rating": [1.5, None], "n": pd.array([1, None], "Int64")})
        plain["day"] = pd.to_datetime(["2026-01-01", "2026-01-02"])
        write_table(plain, tmp_path / "x.csv")
        assert (tmp_path / "x.csv").read_text() == plain.to_csv(index=False)


@pytest.mark.parametrize("name", ["JudgeReport", "JudgeAgreement", "ScoreComparison", "ScoreGate"])
def test_a_small_table_is_written_as_pandas_would_be(name):
    """In every format, for all small tables of a result."""
    found = RESULTS[name]()._plain_answer().tables
    plain = [table for table in (*found.values(), small(), small(NAMES)) if isinstance(table, PlainTable)]
    assert len(plain) > 2
    for table in plain:
        for format in set(FORMATS) - {"parquet"}:
            written = table_bytes(alone := table.assign(), format)
            assert written == table_bytes(table.frame, format), format
            assert "frame" not in vars(alone), f"{format} took pandas"


def small(names=("a", "=b")):
    n = np.arange(len(names))
    columns = {"x": np.where(n % 2, 0.1, np.nan), "n": counts_from_one(n), "ok": n > 0, "=head": [None, *names[1:]]}
    return PlainTable({"model": list(names), **columns}, {"settings": {"seed": 0}})


class TestJson:
    def test_settings_of_other_types_and_numbers_that_json_lacks(self, tmp_path):
        frame = pd.DataFrame({"x": [1.0, np.inf, -np.inf, np.nan], "n": pd.array([1, None, 2, 3], "Int64")})
        frame["day"] = pd.to_datetime(["2026-01-01", None, None, None])
        frame.attrs = {"settings": {"n": np.int64(3), "limit": np.inf, "by": ("a",), "path": tmp_path}}
        content = json.loads(table_bytes(frame, "json"), parse_constant=pytest.fail)
        assert content["rows"][:2] == [{"x": 1.0, "n": 1, "day": "2026-01-01 00:00:00"},
                                       {"x": None, "n": None, "day": None}]  # fmt: skip
        assert content["settings"] == {"n": 3, "limit": None, "by": ["a"], "path": str(tmp_path)}

    def test_numbers_are_exact(self):
        values = [0.1 + 0.2, 1e-300, 123456789.123456789]
        content = json.loads(table_bytes(pd.DataFrame({"x": values}), "json"))
        assert [row["x"] for row in content["rows"]] == values

    def test_the_digest_tells_damage(self):
        text = table_bytes(table(), "json").decode()
        content = json.loads(text)
        assert content["digest"] == json_digest(content)
        damaged = json.loads(text.replace('"rating": 1.0', '"rating": 1.5'))
        assert damaged["digest"] != json_digest(damaged)

    def test_settings_that_are_given(self):
        content = json.loads(table_bytes(table(), "json", settings={"seed": 7}))
        assert content["settings"] == {"seed": 7}


def test_parquet_keeps_settings_that_it_could_not_write(tmp_path):
    frame = table()
    frame.attrs = {"settings": {"n": np.int64(3), "path": tmp_path, "limit": np.inf}, "warnings": ["w"]}
    write_table(frame, tmp_path / "x.parquet")
    read = pd.read_parquet(tmp_path / "x.parquet")
    assert read.attrs["settings"] == {"n": 3, "path": str(tmp_path), "limit": None}


class TestDocuments:
    @pytest.fixture(scope="class")
    @classmethod
    def board(cls):
        return jaxeval.leaderboard(jaxeval.simulate_battles(2_000, 4, seed=0), n_resamples=200)

    def test_a_leaderboard_keeps_its_main_columns(self, board):
        heads = read_markdown(table_bytes(board, "md", notes=[]).decode())[0]
        assert heads == ["Rank", "Spread", "Model", "Rating", "Lower", "Upper", "Votes", "Tier"]
        assert read_html(table_bytes(board, "html").decode())[0][0][:4] == ["Rank", "Spread", "Model", "Rating"]

    def test_notes_are_what_was_read_and_the_warnings(self, board):
        warned = board.copy()
        warned.attrs = {**board.attrs, "warnings": ["2 models | met_nobody"]}
        for format in ("md", "tex", "html"):
            text = table_bytes(warned, format).decode()
            assert "2,000" in text.replace("{}", "")
            assert "warning: 2 models" in text
        assert "warning: 2 models \\| met\\_nobody" in table_bytes(warned, "md").decode()

    def test_long_tables_go_on_over_pages(self):
        assert "longtable" in latex_table(table(["a"] * 46), title="Long")
        assert "longtable" not in latex_table(table(["a"] * 45))

    def test_lines_of_notes_are_lines_in_latex(self):
        text = latex_table(table(["a"]), notes=["1 of 2_0\nno \\n of its own", "last"])
        assert re.findall(r"^\\par\\footnotesize (.*)$", text, re.MULTILINE) == [
            r"1 of 2\_0", r"no \textbackslash{}n of its own", "last"
        ]  # fmt: skip

    def test_numbers_of_latex(self):
        text = latex_table(pd.DataFrame({"x": [-12.5, np.inf, -np.inf, np.nan], "n": [-1234, 1, 2, 3]}))
        assert r"$-12.50$ & $-1{,}234$ \\" in text
        assert r"$\infty$" in text
        assert r"$-\infty$" in text


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_is_that_of_its_ending(format, tmp_path):
    write_table(table(), tmp_path / f"x.{format.upper()}")
    write_table(table(), tmp_path / "x.other", format=format)
    written = (tmp_path / f"x.{format.upper()}").read_bytes()
    assert written == (tmp_path / "x.other").read_bytes() == table_bytes(table(), format)


def test_no_such_format(tmp_path):
    with pytest.raises(DataError, match=re.escape("x.txt must end in .csv, .parquet, .json, .md, .tex, .html; or")):
        format_of("x.txt")
    with pytest.raises(DataError, match="format='xls' is none of csv"):
        write_table(table(), tmp_path / "x.csv", format="xls")
    assert list(tmp_path.iterdir()) == []


def test_texts_show_control_characters(tmp_path):
    write_text("a\x1b[2J\nb\n", tmp_path / "x.md")
    assert (tmp_path / "x.md").read_text() == "a\\x1b[2J\nb\n"


def test_offsets_of_text_have_64_bits():
    """A column of more than 2 GiB has larger ones than 32 bits hold."""
    text = in_arrow(objects(["a", None, "é"]))
    assert (text.type, text.to_pylist()) == (pa.large_string(), ["a", None, "é"])
