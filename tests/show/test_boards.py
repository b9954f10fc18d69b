"""Leaderboards for people."""

import pandas as pd
import pytest

import jaxeval
from jaxeval.show.boards import for_people, more_columns, rank_spread, row_notes


def test_the_columns_of_a_screen():
    board = jaxeval.leaderboard(jaxeval.simulate_battles(2_000, 4, seed=0), n_resamples=200)
    main = ["rank", "spread", "model", "rating", "lower", "upper", "vote_count", "tier"]
    assert list(for_people(board)) == main
    flagged = board.assign(preliminary=[True, False, False, False], category="de")
    assert list(for_people(flagged)) == ["category", *main, "notes"]
    assert for_people(flagged)["notes"].tolist() == ["preliminary", "", "", ""]


def test_what_was_joined_or_asked_for_is_shown():
    board = jaxeval.leaderboard(jaxeval.simulate_battles(2_000, 4, seed=0), n_resamples=200, rank_at_most=1)
    assert more_columns(board) == ["p_rank_1"]
    joined = board.assign(organization=["red", None, "blue", "blue"])
    assert list(for_people(joined))[-2:] == ["p_rank_1", "organization"]


def test_other_tables_stay_as_they_are():
    table = pd.DataFrame({"model": ["a"], "rating": [1.0]})
    assert for_people(table) is table


@pytest.mark.parametrize(("best", "worst", "text"), [(1, 3, "1-3"), (pd.NA, pd.NA, "")])
def test_spreads(best, worst, text):
    assert rank_spread({"rank_best": best, "rank_worst": worst}) == text
    assert rank_spread({}) == ""


def test_notes():
    row = {"component": 1, "standing": "", "preliminary": False, "rating": 1.0, "degenerate_share": 0.0}
    assert row_notes(row) == ""
    assert row_notes(row | {"component": 2, "standing": "undefeated"}) == "group 2"
    assert row_notes(row | {"standing": "winless", "preliminary": True}) == "winless, preliminary"
    assert row_notes(row | {"degenerate_share": 0.25}) == "no rating in 25.0% of resamples"
    assert row_notes(row | {"degenerate_share": 0.25, "rating": float("inf")}) == ""
