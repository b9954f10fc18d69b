"""Battles chosen by conditions and models, and models under other names."""

import duckdb
import numpy as np
import pandas as pd
import pytest

from jaxeval import Battles, count_battles, read_battles
from jaxeval.data.conditions import columns_of, rows_where
from jaxeval.errors import DataError

VOTES = pd.DataFrame(
    {
        "model_a": list("xyzxyx"),
        "model_b": list("yzxzxy"),
        "winner": ["model_a", "model_b", "tie", "model_a", "tie", "?"],
        "language": ["en", "en", "de", None, "en", "fr"],
        "turn": [1, 2, 1, 1, 1, 1],
    }
)
KNOWN = VOTES[:5]


class TestConditions:
    @pytest.mark.parametrize(("condition", "expected"), [
        ("language = 'en'", [1, 1, 0, 0, 1, 0]),
        ("LANGUAGE = 'en' AND turn = 1", [1, 0, 0, 0, 1, 0]),
        ("language IS NULL OR turn > 1", [0, 1, 0, 1, 0, 0]),
        ("model_a IN ('x', 'y') AND NOT winner LIKE 'model%'", [0, 0, 0, 0, 1, 1]),
        ("true -- and nothing else", [1] * 6),
        ("TRUE", [1] * 6),
        ("row_number() OVER (PARTITION BY model_a ORDER BY turn DESC) = 1", [1, 1, 1, 0, 0, 0]),
        ("count(*) OVER (PARTITION BY model_a) = 1", [0, 0, 1, 0, 0, 0]),
    ])  # fmt: skip
    def test_rows(self, condition, expected):
        np.testing.assert_array_equal(rows_where(VOTES, condition), np.array(expected, bool))

    def test_a_column_as_it_is_written_comes_first(self):
        frame = pd.DataFrame({"lang": ["en", "de"], "Lang": ["de", "en"]})
        assert rows_where(frame, "lang = 'en'").tolist() == [True, False]
        assert rows_where(frame[["Lang"]], "LANG = 'en'").tolist() == [False, True]

    def test_columns(self):
        assert columns_of("language = 'en' AND \"a b\" > 1 OR length(language) > 2") == ("language", "a b")

    @pytest.mark.parametrize(("condition", "error"), [
        ("langage = 'en'", "no column 'langage'; there are .*did you mean 'language'"),
        ("language = ", "is no condition in SQL: syntax error"),
        ("1 = 1) FROM battles; DROP TABLE battles --", "is no condition in SQL"),
        ("turn + 1", "is neither true nor false, but int"),
        ("turn = 'one'", "Conversion Error"),
        ("count(*) > 0", "about all rows together"),
        ("unnest([true, false])", "does not give one answer for each row"),
        ("EXISTS (SELECT 1 FROM read_csv('/etc/passwd'))", "Permission Error"),
        ("(SELECT count(*) FROM votes) > 0", "Catalog Error"),
        ("Random() < 0.5", r"random\(\) gives another value each time, whatever the seed: write its value"),
        ("turn = 1 OR length(CAST(uuid() AS VARCHAR)) > 3", r"uuid\(\) gives another value each time"),
        ("today() > DATE '2020-01-01'", r"today\(\) gives another value each time"),
        ("__import__('os').system('true') = 0", "is no condition in SQL|Catalog Error|no column"),
    ])  # fmt: skip
    def test_bad_ones(self, condition, error):
        votes = VOTES  # noqa: F841  # no query finds it
        with pytest.raises(DataError, match=error):
            rows_where(VOTES, condition)


def test_a_column_of_several_types_is_named():
    with pytest.raises(DataError, match="column 'mixed' of the condition mixes values of several types"):
        rows_where(pd.DataFrame({"mixed": [1, "a", None]}), "mixed = 1")


WINDOW = "count(*) OVER (PARTITION BY model_a) > 1"


class TestReading:
    def test_rows_that_stand_for_several_battles_are_not_looked_at_beside_each_other(self, monkeypatch, tmp_path):
        monkeypatch.setattr("jaxeval.data.equal_rows._PIECE_ROWS", 10)  # files of millions of rows are merged
        votes, path = pd.concat([KNOWN] * 1000), tmp_path / "votes.csv"
        votes.to_csv(path, index=False)
        for read in (
            lambda: Battles.from_pandas(KNOWN.assign(n=2), count="n", where=WINDOW),
            lambda: count_battles(duckdb.from_df(votes), where=WINDOW),
            lambda: read_battles(path, where=WINDOW),
            lambda: read_battles(path).filter(WINDOW),
        ):
            with pytest.raises(DataError, match=r"looks at other rows \(OVER\), but equal battles are merged here"):
                read()
        assert Battles.from_pandas(votes, where=WINDOW).n_battles == 5000

    def test_a_condition_comes_before_labels_are_read(self):
        battles = Battles.from_pandas(VOTES, where="winner <> '?'")
        assert (battles.n_battles, battles.report.n_rows, battles.report.n_excluded) == (5, 6, 1)
        assert "1 left out by a condition or the choice of models" in str(battles.report)
        with pytest.raises(DataError, match="unknown labels"):
            Battles.from_pandas(VOTES, where="turn = 1")

    def test_errors_name_rows_of_the_input(self):
        with pytest.raises(DataError, match=r"missing value \(first in row 4"):
            Battles.from_pandas(VOTES.assign(winner=VOTES["winner"].where(VOTES.index != 4)), where="language = 'en'")

    def test_no_row_is_left(self):
        with pytest.raises(DataError, match="no battle is left of 6 rows: none meets the condition"):
            Battles.from_pandas(VOTES, where="turn = 7")

    @pytest.mark.parametrize("ending", ["parquet", "csv"])
    def test_files(self, ending, tmp_path):
        path = tmp_path / f"votes.{ending}"
        VOTES.to_parquet(path) if ending == "parquet" else VOTES.to_csv(path, index=False)
        battles = read_battles(path, where="language = 'en' AND turn = 1", keep=["turn"])
        expected = Battles.from_pandas(VOTES, where="language = 'en' AND turn = 1")
        assert battles.target.tolist() == expected.target.tolist()
        assert (battles.report, list(battles.columns)) == (expected.report, ["turn"])

    def test_columns_that_results_are_read_from(self, tmp_path):
        VOTES.rename(columns={"winner": "Winner", "language": "Language"}).to_csv(tmp_path / "votes.csv", index=False)
        condition = "Winner <> '?' AND LANGUAGE = 'en'"
        battles = read_battles(tmp_path / "votes.csv", where=condition, keep=["language"])
        assert (battles.n_battles, list(battles.columns)) == (3, ["language"])

    def test_keep(self):
        assert list(Battles.from_pandas(KNOWN, keep=["turn"]).columns) == ["turn"]
        assert list(Battles.from_pandas(KNOWN, keep=[], cluster="language", where="language = 'en'").columns) == [
            "language"
        ]
        with pytest.raises(DataError, match="no column 'day'"):
            Battles.from_pandas(KNOWN, keep=["day"])


class TestFilter:
    battles = Battles.from_pandas(KNOWN)

    @pytest.mark.parametrize(
        "where",
        ["language = 'en'", lambda votes: votes["language"] == "en", np.array([True, True, False, False, True])],
        ids=["SQL", "function", "booleans"],
    )
    def test_conditions(self, where):
        kept = self.battles.filter(where)
        assert kept.target.tolist() == [1, 0, 0.5]
        assert (len(kept), kept.report.n_excluded, kept.report.n_ties) == (3, 2, 1)
        assert kept.column("turn").tolist() == [1, 2, 1]
        twice = kept.filter("turn = 1")
        assert (twice.n_battles, twice.report.n_excluded) == (2, 3)
        assert list(twice.models) == ["x", "y"]

    def test_models(self):
        pairs = self.battles.filter(models=["x", "y"])
        assert (list(pairs.models), pairs.n_battles) == (["x", "y"], 2)
        assert self.battles.filter(exclude=["z"]).report == pairs.report

    def test_counts_are_kept(self):
        battles = Battles.from_pandas(KNOWN.assign(n=[3, 1, 2, 4, 5]), count="n")
        kept = battles.filter("language = 'en'")
        assert (kept.n_battles, kept.report.n_excluded) == (9, 6)
        assert Battles.concat([kept]).n_battles == 9

    @pytest.mark.parametrize(("options", "error"), [
        ({"exclude": ["Z"]}, "no model 'Z' among the 3 models; did you mean 'z'"),
        ({"where": "turn = 7"}, "no battle is left of 5"),
        ({"where": lambda votes: votes["turn"]}, "got int64 of shape"),
        ({"where": np.ones(3, bool)}, r"got bool of shape \(3,\)"),
    ])  # fmt: skip
    def test_bad_ones(self, options, error):
        with pytest.raises(DataError, match=error):
            self.battles.filter(**options)

    def test_head_and_len(self):
        assert len(self.battles) == 5
        pd.testing.assert_frame_equal(self.battles.head(2), self.battles.to_pandas()[:2])
        assert self.battles.filter("language = 'en'").head()["turn"].tolist() == [1, 2, 1]


class TestRename:
    def test_names(self):
        battles = Battles.from_pandas(KNOWN).rename({"x": "w", "unknown": "q"})
        assert list(battles.models) == ["w", "y", "z"]
        assert battles.models[battles.model_a].tolist() == ["w", "y", "z", "w", "y"]
        assert battles.report.read_as == ("models renamed: x is now w",)

    def test_two_models_of_one_name(self):
        battles = Battles.from_pandas(KNOWN.assign(model_a=list("xyvxy"), model_b=list("yzxzx"))).rename({"v": "z"})
        assert (battles.n_models, battles.report.n_models) == (3, 3)

    def test_opponents_are_not_merged(self):
        with pytest.raises(DataError, match="'x' and 'y' met each other, and would both be called 'y': 2 battles are"):
            Battles.from_pandas(KNOWN).rename({"x": "y"})

    @pytest.mark.parametrize("name", [None, np.nan, " "])
    def test_no_new_name(self, name):
        with pytest.raises(DataError, match="the new name of 'x' is missing or blank"):
            Battles.from_pandas(KNOWN).rename({"x": name})

    def test_no_such_name(self):
        with pytest.raises(DataError, match="none of the names to replace is a model's: 'X'; did you mean 'x'"):
            Battles.from_pandas(KNOWN).rename({"X": "y"})


def test_ties_of_chosen_battles_do_not_say_why_they_are():
    """Votes that were read as both-bad are ties like others; only all of them together are counted."""
    votes = pd.DataFrame({"model_a": [*"xyz"], "model_b": [*"yzx"], "winner": ["both_bad", "tie", "both_bad"]})
    battles = Battles.from_pandas(votes)
    assert battles.filter(models=["x", "y", "z"]).report.n_both_bad == 2
    some = battles.filter(models=["x", "y"])
    assert some.report.n_both_bad == 0
    assert "both-bad" not in str(some.report)
    dropped = Battles.from_pandas(votes.assign(winner=["both_bad", "tie", "tie"]), both_bad="drop")
    assert "1 both-bad battle left out on request" in str(dropped.filter(models=["y", "z"]).report)
