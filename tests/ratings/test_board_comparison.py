"""The table of two boards, from draws that are given: each column as loops over the draws have it."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from jaxeval.ratings.board_comparison import BoardComparison, BoardPairing
from jaxeval.statistics.draws import Draws
from jaxeval.wording import MODEL

NAMES = pd.Index(["a", "b", "c", "d"])
B = 99


@pytest.fixture(scope="module")
def found():
    """Model a falls from the first place to the third, c rises, and d stays the last."""
    rng = np.random.default_rng(0)
    ratings, boards = [], []
    for level in ([1100.0, 1050, 1000, 850], [1000.0, 1052, 1130, 848]):
        ratings.append(Draws(NAMES, np.array(level), level + rng.normal(0, 15, (B, 4))))
        fit = SimpleNamespace(n_battles=pd.Series([40, 30, 20, 10], NAMES))
        boards.append(SimpleNamespace(fit=fit, competitor=MODEL, warnings=[]))
    return BoardComparison(
        names=("last", "this"), boards=tuple(boards), ratings=tuple(ratings), identical=False,
        pairing=BoardPairing(100, 100, 0, "", 0, False), only=(NAMES[:0], NAMES[:0]), left_out={}, top=2, level=0.9,
        settings={}, notes=(),
    )  # fmt: skip


def ranks(values):
    return [1 + sum(other > own for other in values) for own in values]


def test_intervals_at_once_decide_who_moved(found):
    """They are estimate -/+ critical value x error, where the critical value is that of the largest statistic."""
    a, b = found.ratings
    draws = b.draws - a.draws
    error = draws.std(axis=0, ddof=1)
    largest = np.sort((np.abs(draws - found.difference.estimate) / error).max(axis=1))
    table = found.table.set_index("model").loc[NAMES]
    width = (table["at_once_upper"] - table["at_once_lower"]).to_numpy() / 2 / error
    np.testing.assert_allclose(width, width[0], rtol=1e-9)
    critical = np.searchsorted(largest, width[0] * (1 - 1e-9))
    assert 0.88 * B <= critical <= 0.95 * B
    holds = (table["at_once_lower"] <= 0) & (table["at_once_upper"] >= 0)
    assert (table["moved"] == "").tolist() == holds.tolist() == [False, True, False, True]


def test_differences_and_changes_of_rank_are_those_of_b_less_a(found):
    a, b = found.ratings
    table = found.table.set_index("model").loc[NAMES]
    assert table["difference"].tolist() == (b.estimate - a.estimate).tolist() == [-100, 2, 130, -2]
    assert table["rank_change"].tolist() == [2, 0, -2, 0]
    assert table["moved"].tolist() == ["down", "", "up", ""]
    gaps = [np.array(of_b) - of_a for of_a, of_b in zip(a.draws, b.draws, strict=True)]
    places = [np.array(ranks(of_b)) - ranks(of_a) for of_a, of_b in zip(a.draws, b.draws, strict=True)]
    for name, draws in (("difference", gaps), ("rank_change", places)):
        ends = np.quantile(draws, [0.05, 0.95], axis=0)
        np.testing.assert_allclose(table[[f"{name}_lower", f"{name}_upper"]].T, ends, rtol=1e-9, atol=1e-9)


def test_movers_come_first_by_the_size_of_the_difference(found):
    assert found.table["model"].tolist() == ["c", "a", "b", "d"]
    assert found.movers["model"].tolist() == ["c", "a"]
    assert found.answer.sentences[0].startswith("2 of 4 models moved at the 90% level, for all at once: c +130.0 (")
