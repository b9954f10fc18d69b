"""Item response models, beside the same likelihood maximised by SciPy on a fine grid."""

import numpy as np
import pandas as pd
import pytest
import scipy
from twins import item_response

from jaxeval import DataError, ItemScores, fit_item_response
from jaxeval.data.item_scores import ItemGroups

GRID = np.linspace(-8, 8, 161)  # posteriors are no narrower than .3: sums over them are exact to 1e-9
# Chunks run in full, so that one of the size of a large run would take seconds.
FEW = {"n_resamples": 4, "chunk_size": 4, "progress": False}


def scores_of(values, **further):
    """Scores (M, I)."""
    n_models, n_items = values.shape
    return ItemScores(values.T[:, None], pd.RangeIndex(n_items), pd.Index(["s"]), pd.RangeIndex(n_models), **further)


def planted(n_models, n_items, seed):
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=n_models)
    slope, difficulty = rng.uniform(0.7, 1.8, n_items), rng.normal(size=n_items)
    chance = 1 / (1 + np.exp(-slope * (ability[:, None] - difficulty)))
    return (rng.random((n_models, n_items)) < chance).astype(float), ability, slope, difficulty


@pytest.mark.parametrize("kind", [pytest.param("rasch", marks=pytest.mark.slow), "2pl"])
def test_maximum_is_that_of_scipy(kind):
    values = planted(40, 8, 2)[0]
    values[:6, :3] = np.nan
    n = values.shape[1]

    def loss(x):
        slope = np.full(n, x[0]) if kind == "rasch" else x[:n]
        prior = 0 if kind == "rasch" else ((slope / slope.mean() - 1) ** 2).sum() / (2 * 0.5**2)
        return prior - item_response(values, slope, x[-n:], GRID)[0]

    start = np.concatenate([np.ones(1 if kind == "rasch" else n), np.zeros(n)])
    best = scipy.optimize.minimize(loss, start, method="BFGS", options={"gtol": 1e-4})
    found = fit_item_response(scores_of(values), kind=kind, prior_sd=0.5, **FEW)
    slope = np.full(n, best.x[0]) if kind == "rasch" else best.x[:n]
    np.testing.assert_allclose(found.items["discrimination"], slope, atol=2e-3)
    np.testing.assert_allclose(found.items["difficulty"] * -slope, best.x[-n:], atol=2e-3)
    total, abilities = item_response(values, slope, best.x[-n:], GRID)
    assert found.log_likelihood == pytest.approx(total, abs=2e-3)
    np.testing.assert_allclose(found.joint.estimate, abilities, atol=1e-3)
    assert not any("converge" in text for text in found.warnings)


@pytest.mark.slow
def test_planted_parameters_with_cells_missing():
    values, ability, slope, difficulty = planted(48, 60, 0)
    rng = np.random.default_rng(1)
    values[rng.random(values.shape) < 0.4] = np.nan
    found = fit_item_response(scores_of(values), kind="2pl", **FEW)
    off = (found.joint.estimate - (ability - ability.mean()) / ability.std()) / found.spread
    assert abs(off.mean()) < 0.2
    assert 0.8 < np.sqrt((off**2).mean()) < 1.4  # in posterior deviations, which leave out the items' own errors
    assert scipy.stats.spearmanr(found.items["difficulty"], difficulty, nan_policy="omit").statistic > 0.75
    assert scipy.stats.spearmanr(found.items["discrimination"], slope, nan_policy="omit").statistic > 0.3


@pytest.mark.slow
def test_abilities_on_one_scale_where_models_have_other_items():
    values, ability, _, difficulty = planted(48, 60, 3)
    hard = np.argsort(np.argsort(difficulty)) >= 30
    strong = np.argsort(np.argsort(ability)) >= 24
    values[np.ix_(strong, ~hard)] = np.nan  # the better ones have the hard items, the others all
    found = fit_item_response(scores_of(values), **FEW)
    assert np.corrcoef(found.joint.estimate, ability)[0, 1] > 0.9
    assert np.corrcoef(np.nanmean(values, axis=1), ability)[0, 1] < 0.88


@pytest.mark.slow
def test_discriminations_are_as_alike_as_the_items_show():
    """Abilities are as exact as Rasch's where his model is true, more exact else, and unbiased on harder items."""
    rng = np.random.default_rng(0)
    for log_sd, most in ((0.0, 0.03), (0.5, 0.0)):
        worse, spreads = [], []
        for _ in range(4):
            ability = rng.normal(size=20)
            ability = (ability - ability.mean()) / ability.std()
            slope, difficulty = np.exp(log_sd * rng.normal(size=300)), rng.normal(size=300)
            values = (rng.random((20, 300)) < scipy.special.expit(slope * (ability[:, None] - difficulty))).astype(
                float
            )
            values[np.ix_([0, 1], difficulty < 0)] = np.nan
            found = [fit_item_response(scores_of(values), kind=kind, **FEW) for kind in ("rasch", "2pl")]
            off = [each.joint.estimate - ability for each in found]
            worse.append(np.sqrt((off[1] ** 2).mean()) - np.sqrt((off[0] ** 2).mean()))
            spreads.append(found[1].settings["prior_sd"])
            assert abs(off[1][:2].mean()) < 3 * 0.2
        assert np.mean(worse) < most
        assert (np.mean(spreads) < 0.25) == (log_sd == 0)


@pytest.mark.slow
def test_draws_do_not_depend_on_clusters_of_one():
    values = planted(48, 60, 4)[0]
    own = fit_item_response(scores_of(values), **FEW)
    alone = fit_item_response(scores_of(values, cluster=ItemGroups("c", pd.RangeIndex(60), np.arange(60))), **FEW)
    np.testing.assert_allclose(own.joint.draws, alone.joint.draws, atol=1e-9)


@pytest.mark.parametrize("n_models", [40, pytest.param(60, marks=pytest.mark.slow)])
def test_what_is_flagged(n_models):
    values = planted(n_models, 50, 6)[0]
    order = np.argsort(values.mean(1))
    values[:, 0], values[:, 1] = 0.0, 1.0
    values[:, 2] = values.mean(1) > np.median(values.mean(1))
    values[:, 3] = 1 - values[:, 2]
    values[order[-1], 1:] = 1.0
    values[order[-1], 3] = 1.0
    found = fit_item_response(scores_of(values), kind="2pl", **FEW)
    flag = found.items["flag"].tolist()
    assert flag[:2] == ["dead", "saturated"]
    assert flag[3] == ("" if n_models < 50 else "negative")
    assert np.isnan(found.items["difficulty"][:2]).all()
    assert found.abilities["flags"][0] == "solves all items: held by the prior"
    assert any(text.startswith("1 item dead:") for text in found.warnings)
    none = found.abilities[["lower", "standard_error", "tier"]].isna().all(axis=None)
    assert none == any("no intervals" in text for text in found.warnings) == (n_models < 50)


@pytest.mark.slow
def test_groups_without_a_shared_item_are_told():
    values = planted(40, 60, 7)[0]
    values[:20, :30], values[20:, 30:] = np.nan, np.nan
    found = fit_item_response(scores_of(values), **FEW)
    assert any("2 groups that share no item" in text for text in found.warnings)


@pytest.mark.slow
def test_equal_models_are_fitted_and_told_so():
    rng = np.random.default_rng(0)
    chance = 1 / (1 + np.exp(rng.normal(size=300)))
    found = fit_item_response(scores_of((rng.random((12, 300)) < chance).astype(float)), **FEW)
    assert not any("converge" in warning for warning in found.warnings)
    assert (found.abilities["tier"] == 1).all()


@pytest.mark.parametrize(("values", "kind", "text"), [
    (np.array([[0.0, 1.0]] * 2), "rasch", "2 models only.*needs 3"),
    (planted(9, 20, 0)[0], "2pl", "9 models only.*needs 10 or more; 'rasch' needs 3"),
    (planted(9, 20, 0)[0] * 5, "rasch", "above 1"),
    (np.ones((5, 20)), "rasch", "0 items tell models apart, of 20"),
    (np.array([[1, 1, 0], [1, 0, 1], [1, np.nan, np.nan]]), "rasch", r"1 model has no item .*the first is 2\)"),
])  # fmt: skip
def test_refused(values, kind, text):
    with pytest.raises(DataError, match=text):
        fit_item_response(scores_of(values), kind=kind)


def test_shares_count_by_their_questions():
    """Those of n questions are n right and wrong answers of one item."""
    rng = np.random.default_rng(0)
    ability, difficulty = rng.normal(size=12), rng.normal(size=9)
    chance = 1 / (1 + np.exp(difficulty - ability[:, None]))
    right = rng.random((20, *chance.shape)) < chance
    number, model, item = (x.ravel() for x in np.indices(right.shape))
    trials = pd.DataFrame({"model": model, "item": item, "trial": number, "score": right.ravel().astype(float)})
    shares = trials.groupby(["model", "item"], as_index=False)["score"].mean().assign(questions=20)
    found = [fit_item_response(trials, **FEW), fit_item_response(shares, n="questions", **FEW)]
    np.testing.assert_allclose(found[0].joint.estimate, found[1].joint.estimate, atol=1e-12)
    off = found[1].joint.estimate - (ability - ability.mean()) / ability.std()
    assert np.sqrt((off**2).mean()) < 2 / np.sqrt(20 * 9 * 0.2)  # two binomial errors
    with pytest.raises(DataError, match=r"lie between 0 and 1 .*name the column"):
        fit_item_response(shares.drop(columns="questions"), **FEW)
    with pytest.raises(DataError, match=r"finite number from 1, got 0"):
        fit_item_response(shares.assign(questions=0), n="questions", **FEW)
    with pytest.raises(DataError, match=r"have several numbers of questions"):
        fit_item_response(shares.assign(questions=shares["model"] + 1), n="questions", **FEW)


def test_options_refused():
    for options in ({"kind": "3pl"}, {"prior_sd": 0}, {"level": 1.0}, {"n_resamples": 1}):
        with pytest.raises(ValueError, match=next(iter(options))):
            fit_item_response(scores_of(planted(9, 20, 0)[0]), **options)


@pytest.mark.slow
def test_intervals_of_abilities_hold():
    """8 boards of 20 models and 40 items; docs/scores.md has more."""
    rng = np.random.default_rng(0)
    held = []
    for _ in range(8):
        ability = rng.normal(size=20)
        ability = (ability - ability.mean()) / ability.std()
        chance = 1 / (1 + np.exp(-1.2 * (ability[:, None] - rng.normal(size=40))))
        values = (rng.random(chance.shape) < chance).astype(float)
        table = fit_item_response(scores_of(values), n_resamples=100, chunk_size=20, progress=False).abilities
        truth = ability[table["model"]]
        held.append(((table["lower"] <= truth) & (truth <= table["upper"])).mean())
    assert 0.88 < np.mean(held) < 0.98  # few items: a little under .95
