"""Residuals and score gaps by strength."""

import numpy as np
import pandas as pd
import pytest
from judged import read, residual_table, two_orders

from jaxeval.softelo import judge_agreement


@pytest.fixture(scope="module")
def battles():
    return read(two_orders())


def test_ramp_by_group():
    table = residual_table()
    ramp = judge_agreement.residual_ramp(table)
    ordered = table.sort_values("human_elo")["residual"].to_numpy()
    np.testing.assert_allclose(ramp["residual"], ordered.reshape(4, 10).mean(1))
    slope, _ = np.polyfit(table["human_elo"], table["residual"], 1)
    np.testing.assert_allclose(ramp["slope"], slope)
    assert ramp["residual"].is_monotonic_increasing


def test_score_gaps_by_strength_are_the_naive_loop(battles):
    elo = pd.Series(np.arange(6.0), [f"m{k}" for k in range(6)])
    table = judge_agreement.score_gap_by_strength(battles, elo, 3)
    group = {f"m{k}": k // 2 + 1 for k in range(6)}
    names = list(battles.models)
    for row in table.itertuples():
        gaps = [
            abs(s)
            for i, j, s in zip(battles.model_a, battles.model_b, battles.score_difference, strict=True)
            if sorted((group[names[i]], group[names[j]])) == [row.weaker, row.stronger]
        ]
        assert (row.median, row.mean, row.n_battles) == (
            pytest.approx(np.median(gaps)), pytest.approx(np.mean(gaps)), len(gaps)
        )  # fmt: skip
