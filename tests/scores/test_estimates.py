import numpy as np
import pandas as pd
import pytest
import scipy
from numpy.testing import assert_allclose

from jaxeval import DataError, ItemScores
from jaxeval.scores.estimates import estimate_scores, kept_items, of_items


def long(values, **columns):
    """A long table of (I, M) scores, with columns of items."""
    i, m = np.indices(values.shape)
    own = {name: np.asarray(x)[i.reshape(-1)] for name, x in columns.items()}
    frame = pd.DataFrame({"item": i.reshape(-1), "model": m.reshape(-1), "score": values.reshape(-1), **own})
    return ItemScores.from_pandas(frame, **{name: name for name in columns})


def estimates(scores, drawn="items", weights="equal"):
    return estimate_scores(scores, np.ones(len(scores.items), bool), drawn, weights)


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(0).random((60, 3))


def test_items_are_independent(values):
    found = estimates(long(values))
    assert_allclose(found.score, values.mean(0))
    assert_allclose(found.standard_errors, values.std(0, ddof=1) / np.sqrt(60))
    assert_allclose(found.dof, 59)
    differences = values[:, :, None] - values[:, None]
    assert_allclose(
        found.difference_errors(), np.where(np.eye(3) == 1, np.nan, differences.std(0, ddof=1) / np.sqrt(60))
    )


def test_clusters_naively(values):
    """Bell and McCaffrey's variance of a mean and its degrees of freedom, by their matrices."""
    cluster = np.sort(np.random.default_rng(1).choice(12, 60, p=[0.34] + [0.06] * 11))
    found = estimates(long(values, cluster=cluster))
    off_mean = np.eye(60) - 1 / 60
    sums = []
    for c in np.unique(cluster):
        own = cluster == c
        block = scipy.linalg.sqrtm(np.linalg.inv(off_mean[np.ix_(own, own)])).real
        sums.append(block.sum(0) @ off_mean[own] / 60)
    products = np.array(sums) @ np.transpose(sums)
    assert_allclose(found.variance, ((np.array(sums) @ values) ** 2).sum(0))
    assert_allclose(found.dof, np.trace(products) ** 2 / (products**2).sum())
    assert found.n_units == len(sums) > found.n_effective
    lacking = values.copy()
    lacking[cluster == 3, 1] = np.nan  # a model without items of a cluster is as one of the other clusters
    of_others = estimates(long(values[cluster != 3], cluster=cluster[cluster != 3]))
    assert_allclose(estimates(long(lacking, cluster=cluster)).variance[1], of_others.variance[1])
    assert_allclose(estimates(long(lacking, cluster=cluster)).dof[1], of_others.dof[1])


def test_macro_averages_naively(values):
    group = np.repeat([0, 1, 2], [10, 20, 30])
    parts = [values[group == g] for g in range(3)]
    found = estimates(long(values, benchmark=group))
    assert_allclose(found.score, np.mean([x.mean(0) for x in parts], axis=0))
    each = np.array([x.var(0, ddof=1) / len(x) / 9 for x in parts])
    assert_allclose(found.variance, each.sum(0))
    assert_allclose(found.dof, each.sum(0) ** 2 / (each**2 / np.array([9, 19, 29])[:, None]).sum(0))
    by_items = estimates(long(values, benchmark=group), weights="items")
    assert_allclose(by_items.score, values.mean(0))
    told = estimates(long(values, benchmark=group), weights={0: 2.0, 1: 1.0, 2: 1.0})
    assert_allclose(told.score, np.average([x.mean(0) for x in parts], axis=0, weights=[2, 1, 1]))


def test_new_benchmarks_are_a_t_test(values):
    group = np.repeat(np.arange(6), 10)
    found = estimates(long(values, benchmark=group), "benchmarks")
    means = values.reshape(6, 10, 3).mean(1)
    assert_allclose(found.standard_errors, scipy.stats.sem(means))
    assert_allclose(found.dof, 5)
    with pytest.raises(DataError, match=r"4 benchmarks: .* need 5 or more; .*--population items"):
        estimates(long(values[:40], benchmark=group[:40]), "benchmarks")


def test_trials_naively():
    rng = np.random.default_rng(3)
    runs = (rng.random((20, 2, 3)) < 0.6).astype(float)
    i, m, t = (x.reshape(-1) for x in np.indices(runs.shape))
    frame = pd.DataFrame({"item": i, "model": m, "trial": t, "score": runs.reshape(-1)})
    scores = ItemScores.from_pandas(frame, trial="trial")
    found = estimates(scores, "trials")
    assert_allclose(found.variance, (runs.var(2, ddof=1) / 3).sum(0) / 20**2)
    assert_allclose(estimates(scores).variance, runs.mean(2).var(0, ddof=1) / 20)  # items: their means, once
    once = ItemScores.from_pandas(frame[(frame["trial"] == 0) | (frame["item"] > 4)], trial="trial")
    with pytest.raises(DataError, match="10 pairs of a model and an item have one trial only"):
        estimates(once, "trials")
    with pytest.raises(DataError, match="no column of trials"):
        estimates(long(runs[:, :, 0]), "trials")


def test_weights_of_items(values):
    weight = np.random.default_rng(2).uniform(0.5, 2, 60)
    found = estimates(long(values, weight=weight))
    assert_allclose(found.score, np.average(values, axis=0, weights=weight))
    assert_allclose(found.parts.sum(0), found.score)


def test_equal_scores_have_no_variance(values):
    found = estimates(long(np.column_stack([values, np.full(60, 0.1)])))
    assert np.isnan(found.standard_errors[3])
    assert found.influence[:, 3].tolist() == [0.0] * 60
    same = estimates(long(np.column_stack([values[:, 0], values[:, 0]])))
    assert np.isnan(same.difference_errors()).all()


def test_missing_scores(values):
    lacking = values.copy()
    lacking[:4, 0] = np.nan
    lacking[3:5, 1] = np.nan
    scores = long(lacking)
    with pytest.raises(DataError, match=r"2 models lack scores of 5 items, of 60 \(most of all 0, 4 items\).*55 items"):
        kept_items(scores, "error")
    kept, (told,) = kept_items(scores, "complete")
    assert kept.sum() == 55
    assert told.endswith("5 items that some model lacks are left out")
    assert_allclose(estimate_scores(scores, kept).score, values[5:].mean(0))
    available = estimates(scores)
    assert_allclose(available.score, np.nanmean(lacking, axis=0))
    assert_allclose(available.n_items, [56, 58, 60])
    own = of_items(scores, kept)
    assert_allclose(own.scores[:, 0], values[5:])
    none = np.where(np.arange(60)[:, None] % 3 == np.arange(3), np.nan, values)
    with pytest.raises(DataError, match="no item has a score of every model"):
        kept_items(long(none), "complete")


def test_trials_of_some_items():
    frame = pd.DataFrame({"item": [0, 0, 1, 1, 2, 2], "trial": [0, 1] * 3, "model": "m", "score": [1, 0, 1, 1, 0, 0]})
    own = of_items(ItemScores.from_pandas(frame, trial="trial"), np.array([True, False, True]))
    assert own.trials.cell.tolist() == [0, 0, 1, 1]
    assert own.trials.score.tolist() == [1, 0, 0, 0]


def test_clusters_stay_in_their_benchmark(values):
    with pytest.raises(DataError, match="6 clusters lie in several benchmarks"):
        estimates(long(values, cluster=np.arange(60) % 6, benchmark=np.repeat([0, 1], 30)))
