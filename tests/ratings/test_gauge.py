import numpy as np
import pandas as pd
import pytest

from jaxeval.ratings import gauge as gauge_module
from jaxeval.ratings.gauge import ELO_PER_LOGIT, make_scale

MODELS = pd.Index(["alpha", "beta", "gamma", "delta"], name="model")
BATTLES = np.array([10.0, 20.0, 5.0, 65.0])
ALL = np.ones(4, bool)
THETA = np.array([1.0, -0.5, 0.25, -0.75])
GAUGES = ["mean", "votes", ("beta", 1200.0)]


def scale_of(gauge, identified=ALL, base=1000.0):
    return make_scale(gauge, base, MODELS, BATTLES, identified)


def test_400_points_are_odds_of_ten_to_one():
    ratings = scale_of("mean").ratings(np.array([np.log(10), 0, 0, 0]))
    assert ratings[0] - ratings[1] == pytest.approx(400, rel=1e-14)


def test_each_gauge_holds_what_it_names():
    assert scale_of("mean").ratings(THETA).mean() == pytest.approx(1000)
    assert scale_of("votes", base=1500.0).ratings(THETA) @ BATTLES / 100 == pytest.approx(1500)
    assert scale_of(("beta", 1200.0)).ratings(THETA)[1] == pytest.approx(1200)
    assert [scale_of(g).gauge for g in GAUGES] == [
        "mean rating 1000",
        "mean rating weighted by battles 1000",
        "beta = 1200",
    ]


@pytest.mark.parametrize("gauge", GAUGES)
def test_differences_do_not_depend_on_the_gauge(gauge):
    ratings = scale_of(gauge).ratings(np.stack([THETA, THETA + 7]))
    np.testing.assert_allclose(ratings - ratings[:, :1], np.tile(ELO_PER_LOGIT * (THETA - THETA[0]), (2, 1)), atol=1e-9)
    np.testing.assert_allclose(ratings[1], ratings[0], atol=1e-9)


@pytest.mark.parametrize("gauge", GAUGES)
def test_models_without_a_rating_stay_out_of_the_mean(gauge):
    identified = np.array([True, True, False, False])
    ratings = scale_of(gauge, identified).ratings(np.array([1.0, -0.5, np.inf, np.nan]))
    expected = scale_of(gauge, identified).ratings(np.array([1.0, -0.5, 0.0, 0.0]))
    np.testing.assert_array_equal(ratings[:2], expected[:2])
    assert ratings[2] == np.inf
    assert np.isnan(ratings[3])


@pytest.mark.parametrize("gauge", GAUGES)
def test_covariance_is_that_of_the_linear_map(gauge):
    scale = scale_of(gauge)
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    jacobian = scale.ratings(np.eye(4)).T - scale.ratings(np.zeros(4))[:, None]
    np.testing.assert_allclose(
        scale.covariance(root @ root.T), jacobian @ root @ root.T @ jacobian.T, atol=1e-8 * ELO_PER_LOGIT**2
    )


def aligned_by_hand(scale, draw, theta):
    """The shift of one draw that leaves the weighted mean of its finite models where the estimate has it."""
    finite = [m for m in range(len(draw)) if np.isfinite(draw[m])]
    weight = sum(scale.weights[m] for m in finite)
    if weight == 0:
        return np.full(len(draw), np.nan)
    shift = sum(scale.weights[m] * (draw[m] - theta[m]) for m in finite) / weight
    return scale.ratings(theta) + ELO_PER_LOGIT * (draw - theta - shift)


def degenerate_draws():
    draws = THETA + np.random.default_rng(0).normal(size=(40, 4))
    draws[3, 0], draws[4, 2], draws[5, 3] = np.inf, -np.inf, np.nan
    draws[6, 1] = np.nan  # the anchor
    draws[7, 1:] = np.nan
    draws[8] = np.nan
    return draws


@pytest.mark.parametrize("gauge", GAUGES)
def test_draws_are_aligned_by_the_models_that_have_a_value(gauge):
    scale, draws = scale_of(gauge), degenerate_draws()
    expected = [aligned_by_hand(scale, draw, THETA) for draw in draws]
    np.testing.assert_allclose(scale.aligned_ratings(draws, THETA), expected, atol=1e-9)


@pytest.mark.parametrize("gauge", GAUGES)
def test_a_draw_is_aligned_the_same_whatever_the_other_draws(gauge):
    """Bit for bit: the first 100 of 1,000 resamples are the 100, degenerate ones among the rest or not."""
    scale, draws = scale_of(gauge), degenerate_draws()
    ratings = scale.aligned_ratings(draws, THETA)
    for part in (slice(0, 3), slice(9, 40), slice(9, 10), slice(20, 27)):
        np.testing.assert_array_equal(scale.aligned_ratings(draws[part], THETA), ratings[part])


def test_blocks_of_draws_make_no_difference(monkeypatch):
    scale, draws = scale_of("votes"), degenerate_draws()
    ratings = scale.aligned_ratings(draws, THETA)
    monkeypatch.setattr(gauge_module, "_BLOCK", 12)
    np.testing.assert_array_equal(scale.aligned_ratings(draws, THETA), ratings)


@pytest.mark.parametrize("gauge", ["median", ("alpha",), ("alpha", 1.0, 2.0), None, ["alpha", 1000.0]])
def test_unknown_gauges_are_refused(gauge):
    with pytest.raises(ValueError, match=r"gauge must be 'mean', 'votes' or \(model, rating\), got"):
        scale_of(gauge)


def test_an_unknown_anchor_is_refused_with_a_hint():
    with pytest.raises(ValueError, match=r"'Delt' is not among the 4 models; did you mean 'delta'\?"):
        scale_of(("Delt", 1000.0))
    with pytest.raises(ValueError, match=r"'omega' is not among the 4 models$"):
        scale_of(("omega", 1000.0))


def test_an_anchor_without_a_comparable_rating_is_refused():
    with pytest.raises(ValueError, match="'gamma' has no rating that compares"):
        scale_of(("gamma", 1000.0), np.array([True, True, False, True]))


@pytest.mark.parametrize("level", [1e10, -1e23, 1e308])
def test_a_level_at_which_ratings_are_lost(level):
    with pytest.raises(ValueError, match=r"must lie within 1,000,000,000 of 0, got .*: rounding would hide"):
        scale_of("mean", base=level)
    with pytest.raises(ValueError, match="the rating that fixes the gauge must lie within"):
        scale_of(("beta", level))
