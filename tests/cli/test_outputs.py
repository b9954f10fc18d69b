"""Tables as files: read back as they were, harmless in spreadsheets, JSON with its settings."""

import io
import json

import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import jaxeval
from jaxeval.cli.main import main
from jaxeval.cli.outputs import write_table, write_text

NAMES = ["=cmd|' /C calc'!A0", "+1", "-x", "@y", "\ttab", "\rcr", "\nlf", "'=q", "''-z", "\uff1dwide", "a\rb", "a,b"]
HARMLESS = ["it's", "'quoted'", "fine", "a=b", ""]
#: As `write_table` documents it.
INVERSE = "^'(?='*[=+\\-@\uff1d\uff0b\uff0d\uff20\t\r\n])"


def table():
    names = [*NAMES, *HARMLESS]
    return pd.DataFrame({"model": names, "=head": pd.Categorical(names), "rating": np.arange(len(names)) - 3.0})


class TestCsv:
    def test_no_text_begins_as_a_formula(self, tmp_path):
        write_table(table(), tmp_path / "x.csv")
        read = pd.read_csv(tmp_path / "x.csv", keep_default_na=False)
        assert list(read) == ["model", "'=head", "rating"]
        for column in ("model", "'=head"):
            assert not read[column].str.match("[=+@\t\r\n-]").any()
            assert list(read[column][-len(HARMLESS) :]) == HARMLESS
        np.testing.assert_array_equal(read["rating"], table()["rating"])  # numbers stay numbers, negative ones too

    def test_names_are_read_back_as_documented(self, tmp_path):
        write_table(table(), tmp_path / "x.csv")
        read = pd.read_csv(tmp_path / "x.csv", keep_default_na=False)
        assert list(read["model"].str.replace(INVERSE, "", regex=True)) == list(table()["model"])

    def test_raw_names(self, tmp_path):
        """Carriage returns are quoted, so that rows stay rows."""
        write_table(table(), tmp_path / "x.csv", raw_names=True)
        read = pd.read_csv(tmp_path / "x.csv", keep_default_na=False)
        assert list(read["model"]) == list(table()["model"])
        assert list(read) == list(table())

    def test_text_of_the_index(self, tmp_path):
        write_table(table().set_index("model"), tmp_path / "x.csv", index=True)
        assert list(pd.read_csv(tmp_path / "x.csv", index_col="model").index[:2]) == [f"'{n}" for n in NAMES[:2]]

    def test_plain_tables_stay_as_they_are(self, tmp_path):
        plain = pd.DataFrame({"model": ["a", "b"], "rating": [1.5, None], "n": pd.array([1, None], "Int64")})
        plain["day"] = pd.to_datetime(["2026-01-01", "2026-01-02"])
        write_table(plain, tmp_path / "x.csv")
        assert (tmp_path / "x.csv").read_text() == plain.to_csv(index=False)

    def test_the_option(self, tmp_path):
        """It is of every command that writes CSV files, and reaches them all."""
        votes = pd.DataFrame({"model_a": ["=a", "b"] * 20, "model_b": ["b", "=a"] * 20, "winner": "model_a"})
        votes.to_parquet(tmp_path / "votes.parquet")
        arguments = ["leaderboard", str(tmp_path / "votes.parquet"), "--resamples", "50"]
        for more, name in (([], "'=a"), (["--raw-names"], "=a")):
            out = tmp_path / "x.csv"
            result = CliRunner().invoke(main, [*arguments, "--out", str(out), *more])
            assert result.exit_code == 0, result.output
            assert name in set(pd.read_csv(out)["model_name"])
        commands = {**main.commands, **main.commands["soft-elo"].commands}
        writing = {"leaderboard", "demo", "judge", "anchored", "meta", "report", "predict"}
        for name in writing:
            assert "--raw-names" in [option for p in commands[name].params for option in p.opts], name


class TestJson:
    def test_null_and_settings(self, tmp_path):
        rows = [("a", "b", "model_a"), ("b", "a", "model_a"), ("a", "c", "model_a")] * 3
        rows += [("b", "c", "model_b")]
        votes, out = tmp_path / "votes.csv", tmp_path / "board.json"
        pd.DataFrame(rows, columns=["model_a", "model_b", "winner"]).to_csv(votes, index=False)
        arguments = ["leaderboard", str(votes), "--resamples", "100", "--seed", "7", "--out", str(out)]
        assert CliRunner().invoke(main, arguments).exit_code == 0
        content = json.loads(out.read_text(), parse_constant=pytest.fail)
        expected = jaxeval.leaderboard(jaxeval.read_battles(votes), n_resamples=100, seed=7)
        board = {row["model_name"]: row for row in content["rows"]}
        assert np.isneginf(expected.set_index("model_name").loc["c", "rating_lower"])
        assert board["c"]["rating_lower"] is None
        assert board["c"]["rating"] == pytest.approx(expected.set_index("model_name").loc["c", "rating"], abs=1e-12)
        assert content["settings"]["seed"] == 7
        assert f"jaxeval {jaxeval.__version__}" in content["settings"]["versions"]
        assert content["settings"]["warnings"] == expected.attrs["warnings"]
        assert content["settings"]["warnings"]
        assert content["settings"]["report"] == expected.attrs["report"]

    def test_infinite_settings_and_other_types(self, tmp_path):
        frame = pd.DataFrame({"x": [1.0, np.inf, -np.inf, np.nan]})
        frame.attrs = {"settings": {"n": np.int64(3), "limit": np.inf, "by": ("a",), "path": tmp_path}}
        write_table(frame, tmp_path / "x.json")
        content = json.loads((tmp_path / "x.json").read_text(), parse_constant=pytest.fail)
        assert content["rows"] == [{"x": 1.0}, {"x": None}, {"x": None}, {"x": None}]
        assert content["settings"] == {"n": 3, "limit": None, "by": ["a"], "path": str(tmp_path)}


def test_texts_show_control_characters(tmp_path):
    write_text("a\x1b[2J\nb\n", tmp_path / "x.md")
    assert (tmp_path / "x.md").read_text() == "a\\x1b[2J\nb\n"


def test_without_a_command_names_are_safe(tmp_path):
    assert click.get_current_context(silent=True) is None
    write_table(pd.DataFrame({"m": ["=1"]}), tmp_path / "x.csv")
    assert pd.read_csv(io.BytesIO((tmp_path / "x.csv").read_bytes()))["m"][0] == "'=1"
