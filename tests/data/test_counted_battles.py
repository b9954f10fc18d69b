import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from counted import READINGS, assert_same_battles, assert_same_draws, counted_and_read, write_votes

import jaxeval
from jaxeval import DataError, count_battles
from jaxeval.errors import NoRowsError

ENGINES = {
    "duckdb": lambda path: duckdb.read_parquet(str(path)),
    "polars": pl.scan_parquet,
    "ibis": lambda path: ibis.duckdb.connect().read_parquet(path),
}
VOTES = pd.DataFrame({"model_a": [*"xyzx"], "model_b": [*"yzxy"], "winner": ["model_a", "tie", "model_b", "model_a"]})


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("votes") / "votes.parquet"
    write_votes(path)
    return path


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # Ibis 12 asks DuckDB 2 in an old way
@pytest.mark.parametrize("engine", ENGINES)
class TestAsRead:
    @pytest.mark.parametrize("reading", READINGS)
    def test_battles(self, path, engine, reading):
        assert_same_battles(*counted_and_read(ENGINES[engine](path), path, **READINGS[reading]))

    @pytest.mark.slow
    def test_draws(self, path, engine):
        assert_same_draws(*counted_and_read(ENGINES[engine](path), path, keep=["language", "tags", "flags", "voter"]))

    def test_missing_results(self, path, engine):
        with pytest.raises(DataError, match=r"column 'some' has \d\d\d missing values: fill in values"):
            count_battles(ENGINES[engine](path), winner="some")

    def test_unknown_labels(self, path, engine):
        labels = pl.read_parquet(path)["language"].value_counts()
        n = dict(labels.iter_rows())["German"]
        with pytest.raises(DataError, match=rf"'language' has unknown labels: .*'German' \({n:,}\)"):
            count_battles(ENGINES[engine](path), winner="language")

    def test_no_such_column(self, path, engine):
        with pytest.raises(DataError, match=r"no column 'langauge' in the table.*did you mean 'language'"):
            count_battles(ENGINES[engine](path), by="langauge")


@pytest.mark.slow
def test_draws_of_one_engine(path):
    assert_same_draws(*counted_and_read(pl.scan_parquet(path), path, keep=["tags", "voter"]), by=["tags"])


def test_the_order_of_rows_does_not_matter(path):
    votes = pl.read_parquet(path)
    one, other = (count_battles(table, by="language") for table in (votes, votes.sample(fraction=1, shuffle=True)))
    pd.testing.assert_frame_equal(one.to_pandas(), other.to_pandas())
    assert str(one.report) == str(other.report)


def test_columns_by_one_name_or_several():
    votes = VOTES.assign(language="en", turn=1)
    assert list(count_battles(pl.from_pandas(votes), by="turn").columns) == ["turn"]
    assert list(count_battles(pl.from_pandas(votes), by=("turn", "language")).columns) == ["turn", "language"]
    assert list(count_battles(pl.from_pandas(votes), by=None).columns) == []


def test_tables_of_counts():
    table = pd.DataFrame({"model_a": [*"xyx"], "model_b": [*"yzy"], "wins_a": 2, "ties": [0, 1, 0], "wins_b": 3})
    counted, read = (make(pl.from_pandas(table)) for make in (count_battles, jaxeval.Battles.from_pandas))
    assert counted.n_battles == read.n_battles == 16
    np.testing.assert_array_equal(counted.cells.count, read.cells.count)
    assert counted.report == read.report


class TestTypes:
    """Types that DuckDB and Polars have, and pandas has not."""

    def test_duckdb(self):
        with duckdb.connect() as connection:
            connection.execute("CREATE TYPE result AS ENUM ('tie', 'model_b', 'model_a')")
            relation = connection.sql(
                "SELECT model_a::HUGEINT AS model_a, (7 - model_a)::UBIGINT AS model_b, 'model_a'::result AS winner, "
                "1.5::DECIMAL(3, 1) AS w, uuid() AS voter FROM range(1, 4) AS votes(model_a)"
            )
            battles = count_battles(relation, weight="w", cluster="voter")
        assert [int(model) for model in battles.models] == [1, 2, 3, 4, 5, 6]
        assert battles.weight.tolist() == [1.5, 1.5, 1.5]
        assert len(battles.codes("voter")[1]) == 3

    def test_times_are_those_of_the_file(self, path):
        read = jaxeval.read_battles(path, keep=["day"])
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'Asia/Kathmandu'")
            counted = count_battles(connection.read_parquet(str(path)), by="day")
        assert list(map(str, counted.codes("day")[1])) == list(map(str, read.codes("day")[1]))

    def test_polars(self):
        results = pl.Enum(["tie", "model_b", "model_a"])
        votes = pl.from_pandas(VOTES).cast({"model_a": pl.Categorical, "winner": results}).lazy()
        assert count_battles(votes).to_pandas()["count"].tolist() == [2, 1, 1]


class TestNames:
    def test_columns_of_one_name(self):
        with duckdb.connect() as connection:
            votes = connection.sql(
                "SELECT *, 'tie' AS winner FROM (SELECT 'x' AS model_a, 'y' AS model_b, 'tie' AS winner)"
            )
            with pytest.raises(DataError, match="the table has 2 columns named 'winner'"):
                count_battles(votes)

    def test_columns_that_differ_in_case(self):
        votes = pl.from_pandas(VOTES.assign(Winner="tie"))
        assert count_battles(votes).report.n_ties == 1
        assert count_battles(votes, winner="Winner").report.n_ties == 4

    @pytest.mark.parametrize("name", ["times", "column_0", "a.b", 'quo"te', "; DROP TABLE votes", "é 模型\n"])
    def test_any_names(self, name):
        votes = pa.table(VOTES.rename(columns={"winner": name}))
        with duckdb.connect() as connection:
            for relation in (connection.from_arrow(votes), pl.from_arrow(votes).lazy()):
                assert count_battles(relation, winner=name, by=name).n_battles == 4


class TestWhatFails:
    @pytest.mark.parametrize("table", [3, "votes.parquet", pd.Series([1]), None])
    def test_no_table(self, table):
        with pytest.raises(TypeError, match=f"a DuckDB relation.*got {type(table).__name__}; read_battles reads files"):
            count_battles(table)

    def test_no_rows(self):
        with pytest.raises(NoRowsError, match="the table has no rows"):
            count_battles(pl.from_pandas(VOTES).filter(pl.col("winner") == "?").lazy())

    def test_plans(self, tmp_path):
        cast = pl.from_pandas(VOTES).lazy().with_columns(pl.col("model_a").cast(pl.Int64))
        with pytest.raises(
            DataError, match=r"polars cannot count rows by 'model_a', .*: InvalidOperationError: conversion from"
        ):
            count_battles(cast)
        with pytest.raises(DataError, match="polars cannot list its columns: FileNotFoundError"):
            count_battles(pl.scan_parquet(tmp_path / "none.parquet"))
        with duckdb.connect() as connection:
            relation = connection.sql(
                "SELECT 'x' AS model_a, 'y' AS model_b, error('no ' || range) AS winner FROM range(3)"
            )
            with pytest.raises(DataError, match=r"duckdb cannot count rows by .*: \w+Exception: .*no \d"):
                count_battles(relation)
        with pytest.raises(DataError, match=r"duckdb cannot .*: ConnectionException"):
            count_battles(relation)

    def test_one_hot_columns_that_are_none(self):
        hot = {"winner_model_a": [1, 1, 0], "winner_model_b": [0, 1, 0], "winner_tie": [0, 0, 1]}
        votes = pl.DataFrame({"model_a": [*"xyx"], "model_b": [*"yzy"], **hot})
        with pytest.raises(DataError, match=r"in each row; 1 row does not \(the first is 1, 1, 0\)$"):
            count_battles(votes)

    def test_without_narwhals(self, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "narwhals.stable.v2", None)
        with pytest.raises(ImportError, match=r"the extra jaxeval\[counting\]: pip install narwhals"):
            count_battles(VOTES)

    def test_other_options(self):
        with pytest.raises(TypeError, match="keyword argument 'keep'"):
            count_battles(pl.from_pandas(VOTES), keep=["winner"])
