"""The page on SQL engines does what it says."""

import re
from pathlib import Path

import numpy as np
import pytest

import jaxeval

PAGE = Path(__file__).parents[1] / "notebooks" / "sql_reduction.md"


def test_duckdb(tmp_path, monkeypatch):
    pytest.importorskip("duckdb", reason="duckdb is not installed: pip install 'jaxeval[test]'")
    (code,) = re.findall(r"```python\n(import duckdb.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    # Boards of the size of those in test_bootstrap.py, whose compiled code they share.
    votes = jaxeval.simulate_votes(12_000, 12, seed=5, popularity_exponent=0.3)
    votes["language"] = np.where(np.arange(len(votes)) % 2, "English", "German")
    (tmp_path / "votes").mkdir()
    for k in range(2):
        votes[6000 * k : 6000 * (k + 1)].to_parquet(tmp_path / "votes" / f"{k}.parquet")
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(code, names)
    board = names["board"]
    assert names["battles"].n_battles == 12_000
    expected = jaxeval.leaderboard(votes, by="language")  # of as many resamples
    assert board["category"].tolist() == expected["category"].tolist()
    for name in ("rating", "rating_lower", "rating_upper", "vote_count"):
        np.testing.assert_array_equal(board[name], expected[name])
    names["counts"].write_parquet("counts.parquet")
    again = jaxeval.read_battles("counts.parquet", keep=["language"])
    np.testing.assert_array_equal(again.cells.count, names["battles"].cells.count)
