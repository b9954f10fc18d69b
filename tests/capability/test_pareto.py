"""The front of cost and quality: closed forms, equal models, and bad input."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import jaxeval
from jaxeval.errors import DataError
from jaxeval.statistics.draws import Draws


def normal_draws(truth, sd=1.0, n=4000, seed=0):
    truth = np.asarray(truth, float)
    names = pd.Index([f"m{k}" for k in range(len(truth))])
    return Draws(names, truth, truth + sd * np.random.default_rng(seed).normal(size=(n, len(truth))))


def test_closed_form_of_two():
    found = jaxeval.pareto_front(normal_draws([0.0, 1.0]), {"m0": 1.0, "m1": 2.0})
    above = norm.cdf(1 / np.sqrt(2))
    error = 4 * np.sqrt(above * (1 - above) / 4000)
    assert found.on_front["m1"] == pytest.approx(above, abs=error)
    assert found.on_front["m0"] == 1.0  # the cheapest always is
    assert found.dominates.loc["m0", "m1"] == pytest.approx(1 - above, abs=error)
    assert found.dominates.loc["m1", "m0"] == 0.0
    assert found.best_under(1.5)["model"].tolist() == ["m0"]
    best = found.best_under(2.0).set_index("model")["p_best"]
    assert best["m1"] == pytest.approx(above, abs=error)


def test_shares_are_those_of_a_loop():
    quality = normal_draws([1.0, 1.2, 0.8, 1.1], n=50)
    cost = Draws(quality.names, np.array([1.0, 2.0, 1.0, 2.0]), np.random.default_rng(1).integers(1, 3, (50, 4)) * 1.0)
    found = jaxeval.pareto_front(quality, cost)
    for i in range(4):
        over, beaten = np.zeros(4), 0
        for q, c in zip(quality.draws, cost.draws, strict=True):
            over += [q[i] >= q[j] and c[i] <= c[j] and (q[i] > q[j] or c[i] < c[j]) for j in range(4)]
            beaten += any(q[j] >= q[i] and c[j] <= c[i] and (q[j] > q[i] or c[j] < c[i]) for j in range(4))
        np.testing.assert_allclose(found.dominates.iloc[i], over / 50)
        assert found.on_front.iloc[i] == pytest.approx(1 - beaten / 50)
    front = found.table.set_index("model")["on_front"]
    assert front.to_dict() == {"m0": True, "m1": True, "m2": False, "m3": False}


@pytest.mark.slow
def test_equal_models_are_seldom_beaten():
    """400 sets of five equal models of equal cost: a claim in 5 % at most, in their own standard errors."""
    false = []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        estimate = rng.normal(size=5)
        draws = Draws(pd.Index(list("abcde")), estimate, estimate + rng.normal(size=(400, 5)))
        found = jaxeval.pareto_front(draws, dict.fromkeys("abcde", 1.0))
        false.append(found.claims.to_numpy().any())
    assert np.mean(false) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert np.mean(false) > 0.01  # the claims are able to be made


def test_a_pair_at_the_edge_is_beaten_no_sooner_than_by_tiers():
    """The critical value is that of draws in which both models are equal, up to rounding."""
    estimate, rng = np.array([4 / 37 + 0.3, 0.3]), np.random.default_rng(4)
    draws = np.tile(estimate, (100, 1))
    draws[:90, 0] += rng.normal(0, 0.05, 90)
    draws[90:] = 0.3
    quality = Draws(pd.Index(["a", "b"]), estimate, draws, precision=1e-9)
    assert quality.tiers(0.95).tolist() == [1, 1]
    assert not jaxeval.pareto_front(quality, {"a": 1.0, "b": 1.0}).claims.any(axis=None)


def test_band_and_worth():
    quality = normal_draws([10.0, 20.0, 15.0])
    found = jaxeval.pareto_front(quality, {"m0": 1.0, "m1": 4.0, "m2": 8.0})
    band = found.band()
    assert band["quality"].tolist() == [10.0, 20.0, 20.0]
    assert (band["lower"] <= band["quality"]).all()
    assert found.table["dominated_by"].tolist()[2] == "m1"
    assert [found.worth(value)["model"].iloc[0] for value in (1.0, 0.1)] == ["m1", "m0"]
    assert "m2 is worse than one no dearer" in found.answer.sentences


def test_of_results_and_low_is_better(on_the_host):
    board = jaxeval.bootstrap(jaxeval.simulate_battles(600, 4, seed=0), 50, progress=False)
    names = board.joint.names
    found = jaxeval.pareto_front(board, pd.Series(np.arange(4.0), names))
    assert set(found.table["model"]) == set(names)
    errors = normal_draws([1.0, 5.0])
    low = jaxeval.pareto_front(errors, {"m0": 1.0, "m1": 2.0}, higher_is_better=False)
    assert low.claims.to_numpy().tolist() == [[False, True], [False, False]]


def test_models_without_a_cost_are_told():
    found = jaxeval.pareto_front(normal_draws([1.0, 2.0, 3.0]), {"m0": 1.0, "m1": 2.0})
    assert any("left out: m2" in text for text in found.warnings)


@pytest.mark.parametrize(("cost", "error"), [
    ({"m0": 1.0, "m1": -2.0}, "from 0 on"),
    ({"m0": 1.0, "m1": "free"}, "from 0 on"),
    ({"x": 1.0}, "no cost is that of a model"),
    ({"m0": 1.0}, "two models or more"),
])  # fmt: skip
def test_bad_costs(cost, error):
    with pytest.raises(DataError, match=error):
        jaxeval.pareto_front(normal_draws([1.0, 2.0]), cost)


@pytest.mark.parametrize(("cost", "error"), [
    (pd.Series([1, 2, 3], ["m0", "m0", "m1"]), "'m0' has several costs"),
    (pd.Series(pd.to_datetime(["2024-01-01", "2025-01-01"]), ["m0", "m1"]), "dates"),
    ({"m0": 1j, "m1": 2.0}, "complex"),
])  # fmt: skip
def test_what_is_no_cost(cost, error):
    with pytest.raises(DataError, match=error):
        jaxeval.pareto_front(normal_draws([0.0, 1.0]), cost)


def test_bad_quality():
    with pytest.raises(TypeError, match="must be Draws"):
        jaxeval.pareto_front([1.0, 2.0], {"m0": 1.0})
    with pytest.raises(ValueError, match="value of a point"):
        jaxeval.pareto_front(normal_draws([1.0, 2.0]), {"m0": 1.0, "m1": 2.0}).worth(0)
    with pytest.raises(ValueError, match="no model costs"):
        jaxeval.pareto_front(normal_draws([1.0, 2.0]), {"m0": 1.0, "m1": 2.0}).best_under(0.5)


def test_few_items_make_no_model_sure():
    """Of equal models with 2 to 4 items: by the draws alone, the dearer one is surely on the front in .05 to .2."""
    rng, sure = np.random.default_rng(0), []
    for k in range(30):
        n = 2 + k % 3
        scores = rng.normal(size=(n, 2)) if k < 27 else np.tile([0.0, 1.0], (n, 1))
        drawn = scores[rng.integers(n, size=(100, n))].mean(1)
        quality = Draws(pd.Index(["a", "b"]), scores.mean(0), drawn, freedom=n - 1.0)
        front = jaxeval.pareto_front(quality, {"a": 1.0, "b": 2.0})
        assert front.on_front["a"] == 1.0
        assert front.best_under(1.0)["p_best"].tolist() == [1.0]
        most = max(front.on_front["b"], front.best_under(2.0)["p_best"].max(), front.worth(1e9)["p_best"].max())
        assert most <= 1 - 0.5**n
        sure.append(most > 0.9)
    assert np.mean(sure[:27]) <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 27)
