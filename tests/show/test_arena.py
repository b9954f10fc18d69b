"""Leaderboards in the Arena's columns."""

import io

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import jaxeval
from jaxeval.errors import DataError
from jaxeval.show.exports import ARENA_COLUMNS, arena_table
from jaxeval.show.files import table_bytes


@pytest.fixture(scope="module")
def board():
    return jaxeval.leaderboard(jaxeval.simulate_battles(2_000, 4, seed=0), n_resamples=200)


def test_columns_types_and_values(board):
    about = pd.DataFrame({"organization": ["red"], "license": ["MIT"]}, index=["model-2"])
    read = pq.read_table(io.BytesIO(table_bytes(arena_table(board, "2026-09-13", about), "parquet")))
    assert read.column_names == list(ARENA_COLUMNS)
    kinds = [str(kind).removeprefix("large_") for kind in read.schema.types]
    assert kinds == ["string"] * 3 + ["double"] * 4 + ["int64"] * 2 + ["string"] * 2
    rows = read.to_pylist()
    assert [row["organization"] for row in rows] == [None, "red", None, None]
    assert {row["category"] for row in rows} == {"overall"}
    assert {row["leaderboard_publish_date"] for row in rows} == {"2026-09-13"}
    ours = {"model_name": "model", "rating_lower": "lower", "rating_upper": "upper"}
    for name in (*ours, "rating", "variance", "vote_count", "rank"):
        assert [row[name] for row in rows] == list(board[ours.get(name, name)])


def test_a_further_column_of_the_arenas_name_gives_way(board):
    known = pd.DataFrame({"model": board["model"], "model_name": "x"})
    pd.testing.assert_frame_equal(
        arena_table(jaxeval.join_metadata(board, known), "2026-09-13"), arena_table(board, "2026-09-13")
    )


def test_makers_that_the_table_knows(board):
    twice = pd.concat([board.assign(category=c, organization=["a", "b", None, "d"]) for c in ("x", "y")])
    found = arena_table(twice, "2026-09-13")
    assert found["organization"].fillna("?").tolist() == ["a", "b", "?", "d"] * 2
    assert found["license"].isna().all()


def test_what_is_not_finite_or_has_no_rank_is_null(board):
    table = board.assign(rating=[1.0, np.inf, -np.inf, np.nan], rank=pd.array([1, None, None, None], "Int64"))
    found = arena_table(table.assign(category="de"), "2026-09-13")
    assert found["rating"].isna().tolist() == [False, True, True, True]
    assert found["rank"].isna().tolist() == [False, True, True, True]
    assert set(found["category"]) == {"de"}


def test_what_is_no_leaderboard_or_no_date(board):
    with pytest.raises(DataError, match="it has no columns rating_lower"):
        arena_table(board.drop(columns="lower"), "2026-09-13")
    with pytest.raises(DataError, match="published='yesterday' is no date"):
        arena_table(board, "yesterday")
