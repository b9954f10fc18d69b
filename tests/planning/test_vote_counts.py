import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import norm

import jaxeval

ELO = 400 / np.log(10)


@pytest.fixture(scope="module")
def fit():
    return jaxeval.fit_bradley_terry(jaxeval.simulate_battles(400, 6, tie_rate=0, seed=0))


@pytest.mark.parametrize(("level", "power"), [(0.95, 0.8), (0.9, 0.5)])
def test_two_models_alone(level, power):
    """n = ((z_level + z_power) / difference)^2 / (p (1 - p)) of a Wald test, to 1 in 200."""
    for gap in (0.0, 150.0):
        ratings, p = pd.Series({"a": 1000 + gap, "b": 1000.0}), expit(gap / ELO)
        found = jaxeval.plan_votes(ratings, pair=("a", "b"), difference=40, width=30, level=level, power=power)
        z = norm.ppf((1 + level) / 2)
        twin = [(2 * z * ELO / 30) ** 2 / (p * (1 - p)), ((z + norm.ppf(power)) * ELO / 40) ** 2 / (p * (1 - p))]
        assert found["asked"].tolist() == ["width 30", "difference 40"]
        np.testing.assert_allclose(found["votes"], twin, rtol=0.005, atol=1)
        np.testing.assert_allclose(found["votes_at_random"], found["votes"], rtol=0.005, atol=1)


def test_the_power_is_that_of_simulated_votes():
    """4,000 boards of the number of votes that a difference of 60 Elo takes; wins and losses."""
    n = int(jaxeval.plan_votes(2, difference=60)["votes"][0])
    rng, gap = np.random.default_rng(0), 60 / ELO
    share = rng.binomial(n, expit(gap), 4000) / n
    found = np.log(share / (1 - share)) / np.sqrt(1 / (n * share * (1 - share))) > norm.ppf(0.975)
    assert abs(found.mean() - 0.8) < 3 * np.sqrt(0.8 * 0.2 / 4000) + 0.01  # and 0.01 for votes of unequal models


def test_random_votes_on_a_board_of_equals():
    """N votes of M equal models: the variance of a rating is (M - 1)^2 / (2 N w M), w = 1/4."""
    found = jaxeval.plan_votes(8, votes=2_000, random=1)
    twin = ELO * np.sqrt(7**2 / (2 * 2_000 * 0.25 * 8))
    assert found["width"][0] == pytest.approx(2 * norm.ppf(0.975) * twin)
    error = ELO * np.sqrt(2 * 7 / (2 * 2_000 * 0.25))
    assert found["difference"][0] == pytest.approx((norm.ppf(0.975) + norm.ppf(0.8)) * error)
    assert found["votes_at_random"][0] == pytest.approx(2_000, rel=0.005)


@pytest.mark.parametrize("goal", [{}, {"goal": "top", "top": 3}, {"pair": ("model-1", "model-3")}, {"newcomer": "x"}])
def test_questions_and_answers_fit(fit, goal):
    votes = jaxeval.plan_votes(fit, votes=800, **goal)
    asked = {name: float(votes[name][0]) for name in ("width", "difference")}
    again = jaxeval.plan_votes(fit, **asked, **goal)
    assert again["votes"].astype(float).tolist() == pytest.approx([800, 800], rel=0.03)
    plan = jaxeval.next_battles(fit, 800, **goal)
    assert plan.expected["width"]["planned"] == pytest.approx(asked["width"])
    if goal.get("pair"):
        assert votes["votes_at_random"][0] > 2_000


def test_what_is_known_takes_no_votes_and_what_nothing_reaches_has_none(fit):
    found = jaxeval.plan_votes(fit, width=[1e4, 1e-3])
    assert found["votes"][0] == found["votes_at_random"][0] == 0
    assert found["width"][0] < 1e4
    assert found["votes"].isna().tolist() == found["votes_at_random"].isna().tolist() == [False, True]


def test_votes_are_counted():
    assert jaxeval.plan_votes(2, votes=[1, 2_000])["asked"].tolist() == ["1 vote", "2,000 votes"]


def test_numbers_of_votes_are_looked_at_where_nothing_is_asked(fit):
    found = jaxeval.plan_votes(fit)
    assert found["votes"].tolist() == [100, 300, 1_000, 3_000, 10_000]
    assert found["width"].is_monotonic_decreasing
    assert found.attrs["settings"]["power"] == 0.8


@pytest.mark.parametrize(("options", "message"), [
    ({"width": 0}, "width must be finite and > 0"),
    ({"difference": [10, np.nan]}, "difference must be"),
    ({"votes": 2.5}, "whole numbers"),
    ({"votes": 0}, "whole numbers"),
    ({"power": 1.0}, "between 0 and 1"),
    ({"random": -0.1}, "share from 0 to 1"),
])  # fmt: skip
def test_hostile_questions(fit, options, message):
    with pytest.raises(ValueError, match=message):
        jaxeval.plan_votes(fit, **options)


def test_words_are_no_numbers(fit):
    with pytest.raises(TypeError, match="width must be numbers"):
        jaxeval.plan_votes(fit, width="wide")


def test_a_power_that_is_none():
    with pytest.raises(ValueError, match="power must be between 0 and 1, got 1"):
        jaxeval.plan_votes(2, power=1.5)
