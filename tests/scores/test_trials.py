from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy
from numpy.testing import assert_allclose

from jaxeval import DataError, ItemScores, pass_at_k, pass_hat_k


def runs(successes, n=4):
    """A long table of n trials of items with so many successes."""
    rows = [("m", i, t, int(t < c)) for i, c in enumerate(successes) for t in range(n)]
    return pd.DataFrame(rows, columns=["model", "item", "trial", "score"])


def test_tau_bench_57():
    """50 tasks of 4 trials, of which 14, 12, 10, 4 and 10 have 0 to 4 successes: pass^k .420 .273 .220 .200."""
    table = runs(np.repeat(range(5), [14, 12, 10, 4, 10]))
    found = [round(pass_hat_k(table, k)["score"].item(), 3) for k in (1, 2, 3, 4)]
    assert found == [0.420, 0.273, 0.220, 0.200]


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_naively_over_all_subsets_of_trials(k):
    rng = np.random.default_rng(0)
    table = runs(rng.integers(0, 6, 8), 5)
    x = table["score"].to_numpy().reshape(8, 5)
    subsets = [x[:, list(chosen)] for chosen in combinations(range(5), k)]
    some, every = np.mean([s.any(1) for s in subsets], axis=0), np.mean([s.all(1) for s in subsets], axis=0)
    for found, value in ((pass_at_k(table, k), some), (pass_hat_k(table, k), every)):
        assert found["score"].item() == pytest.approx(value.mean())
        assert found["standard_error"].item() == pytest.approx(scipy.stats.sem(value)) or np.ptp(value) == 0


def test_numbers_of_trials_may_differ():
    table = pd.concat([runs([2, 1], 3), runs([4], 6).assign(item=9)])
    found = pass_at_k(table, 3)
    assert found["score"].item() == pytest.approx((1 + 1 + 1) / 3)
    assert found["fewest_trials"].item() == 3


def test_intervals_are_of_items():
    """Without trials that differ they are of Beta's distribution; of many items like normal ones."""
    alike = pass_at_k(runs([0, 4, 4, 4, 4, 4, 4, 4]), 1)
    beta = scipy.stats.beta.ppf([0.025, 0.975], [7.0, 7.5], [1.5, 1.0])
    assert_allclose(alike[["lower", "upper"]].to_numpy()[0], beta, atol=0.02)
    assert alike.attrs["warnings"] == []
    table = runs([0, 4, 3, 2, 1, 2] * 40)
    x = np.array([0, 4, 3, 2, 1, 2] * 40) / 4
    lower, upper = scipy.stats.norm.interval(0.9, x.mean(), scipy.stats.sem(x))
    assert_allclose(pass_at_k(table, 1, level=0.9)[["lower", "upper"]].to_numpy()[0], [lower, upper], atol=0.003)


def test_intervals_hold_where_few_items_are_seldom_solved():
    """One item in ten is solved in a tenth of the trials, the others in .9: those of graded scores missed in .2."""
    rng = np.random.default_rng(1)
    chance = np.where(rng.random((200, 12, 1)) < 0.9, 0.9, 0.1)
    model, item, trial = (x.reshape(-1) for x in np.indices((200, 12, 8)))
    solved = (rng.random((200, 12, 8)) < chance).astype(float).reshape(-1)
    found = pass_at_k(pd.DataFrame({"model": model, "item": item, "trial": trial, "score": solved}), 2)
    truth = 0.9 * 0.99 + 0.1 * 0.19
    held = ((found["lower"] <= truth) & (truth <= found["upper"])).mean()
    assert held >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 200)


def test_what_is_refused():
    table = runs([1, 2, 3])
    with pytest.raises(DataError, match=r"k = 5 is more than the trials of 3 pairs .* the fewest are 4 \(m\)"):
        pass_at_k(table, 5)
    with pytest.raises(DataError, match="no column of trials"):
        pass_at_k(table[table["trial"] == 0].drop(columns="trial"), 1)
    with pytest.raises(DataError, match=r"12 scores are neither 0 nor 1 \(the first is 3.5\)"):
        pass_at_k(table.assign(score=table["score"] * 2 + 1.5), 1)
    with pytest.raises(DataError, match="1 row repeats a trial of a model on an item"):
        ItemScores.from_pandas(pd.concat([table, table.iloc[:1]]), trial="trial")
    with pytest.raises(ValueError, match="k must be"):
        pass_at_k(table, 0)


def test_intervals_hold():
    """95 % intervals of pass@3 and pass^3 of 150 items with 5 trials, of 300 models; at four standard errors."""
    rng = np.random.default_rng(0)
    chance = rng.beta(2, 2, (300, 150))
    solved = rng.random((300, 150, 5)) < chance[..., None]
    model, item, trial = (x.reshape(-1) for x in np.indices(solved.shape))
    table = pd.DataFrame({"model": model, "item": item, "trial": trial, "score": solved.reshape(-1).astype(float)})
    scores = ItemScores.from_pandas(table, trial="trial")
    for k_trials, truth in ((pass_at_k, 0.8), (pass_hat_k, 0.2)):  # of Beta(2, 2): E p^3 = 2 3 4 / (4 5 6)
        found = k_trials(scores, 3)
        assert len(found) == 300
        held = ((found["lower"] <= truth) & (truth <= found["upper"])).mean()
        assert abs(held - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 300)


def test_items_that_are_all_alike_have_a_flag():
    table = pd.DataFrame({"model": "a", "item": np.repeat(range(20), 2), "trial": [0, 1] * 20, "score": 1.0})
    row = pass_hat_k(table, 2).iloc[0]
    assert row["score"] == 1
    assert row["lower"] == pytest.approx(0.025 ** (1 / 20))  # as of 20 right answers of 20
    assert row["flags"] == "no observed variance"
