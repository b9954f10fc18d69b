"""Joint draws of named quantities, whatever estimator made them."""

import numpy as np
import pandas as pd
import pytest
import twins

from jaxeval.statistics.draws import Draws
from jaxeval.statistics.quantiles import interval_bounds

NAMES = pd.Index(["a", "b", "c", "d"])
TRUTH = np.array([0.2, 0.9, 0.5, 0.48])


@pytest.fixture(scope="module")
def draws():
    noise = 0.04 * np.random.default_rng(0).normal(size=(600, 4))
    return Draws(NAMES, TRUTH, TRUTH + noise)


def test_intervals_and_errors_are_those_of_the_columns(draws):
    lower, upper = interval_bounds(draws.draws, 0.9)
    np.testing.assert_array_equal(draws.interval(0.9), np.column_stack([lower, upper]))
    np.testing.assert_array_equal(draws.interval(0.9, "basic").lower, 2 * TRUTH - upper)
    np.testing.assert_allclose(draws.standard_errors, draws.draws.std(0, ddof=1), rtol=1e-12)
    with pytest.raises(ValueError, match=r"kind must be one of 'percentile', 'basic', .* got 'exact'"):
        draws.interval(0.9, "exact")


def test_comparisons_are_named(draws):
    np.testing.assert_allclose(draws.beat_share, twins.beat_share(draws.draws), rtol=1e-14)
    lower, upper = draws.difference_interval(0.8)
    assert (lower.loc["b", "a"], upper.loc["b", "a"]) == (-upper.loc["a", "b"], -lower.loc["a", "b"])
    assert draws.rank_share(1).sum() == pytest.approx(1)
    assert draws.tiers().to_dict() == {"a": 3, "b": 1, "c": 2, "d": 2}


@pytest.mark.parametrize("freedom", [None, 30.0, np.inf])
def test_draws_that_differ_by_rounding_are_equal(freedom):
    noise = np.random.default_rng(0).normal(size=(200, 1))
    both = np.hstack([noise, noise + 1e-13, noise - 1.0])
    drawn = Draws(NAMES[:3], np.array([0.0, 1e-13, -1.0]), both, precision=1e-9, freedom=freedom)
    assert drawn.beat_share.iloc[0, 1] == drawn.rank_share(1).iloc[0] == drawn.rank_distribution().iloc[1, 0] == 0.5
    assert drawn.beat_share.iloc[0, 2] == 1.0


@pytest.mark.parametrize(("n_units", "without"), [(2, 0.48), (8, 0.1)])
def test_shares_of_few_units_make_one_of_two_equal_models_seldom_sure(n_units, without):
    """Of draws alone .48 and .10 of 400 pairs have a share beyond .975 or .025; .05 may."""
    rng = np.random.default_rng(3)
    sure = []
    for _ in range(200):
        x = rng.normal(size=(n_units, 2))
        drawn = rng.multinomial(n_units, np.full(n_units, 1 / n_units), 300) @ x / n_units
        share = Draws(NAMES[:2], x.mean(0), drawn, freedom=n_units - 1.0).beat_share.iloc[0, 1]
        sure.append(abs(share - 0.5) > 0.475)
    assert np.mean(sure) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200) < without


def test_the_table_is_best_first_and_holds_what_the_methods_give(draws):
    table = draws.table(0.9)
    assert table.index.tolist() == ["b", "c", "d", "a"]
    assert table["rank"].tolist() == [1, 2, 3, 4]
    assert table.tier.tolist() == [1, 2, 2, 3]
    pd.testing.assert_frame_equal(table[["lower", "upper"]], draws.interval(0.9).loc[table.index])
    pd.testing.assert_frame_equal(table[["rank_best", "rank_worst"]], draws.rank_sets(0.9).loc[table.index])


def test_names_left_out_take_no_rank(draws):
    among = np.array([True, False, True, True])
    table = draws.table(among=among)
    assert table.loc["b", ["rank", "rank_best", "rank_worst", "tier"]].isna().all()
    assert table.loc["c", "rank"] == 1
    assert np.isfinite(table.loc["b", "lower"])
    assert np.isnan(draws.rank_share(1, among)["b"])


def test_what_has_no_estimate_and_draws_that_are_missing():
    rng = np.random.default_rng(1)
    some = Draws(NAMES, np.array([0.2, np.nan, 0.5, np.inf]), rng.normal(size=(50, 4)))
    some.draws[:25, 0] = np.nan
    assert some.interval().isna().all(axis=1).tolist() == [False, True, False, True]
    assert some.ranks()["rank"].isna().tolist() == [False, True, False, True]
    assert some.tiers()["c"] == 1
    assert pd.isna(some.tiers()["a"])  # missing in half of the draws


def test_draws_without_spread_are_no_certainty_but_an_anchor_is():
    draws = np.column_stack([np.full(30, 1.0), np.full(30, 2.0), np.linspace(0, 1, 30), np.linspace(0, 1e-7, 30)])
    anchored = np.array([True, False, False, False])
    found = Draws(NAMES, draws.mean(0), draws, anchored=anchored, precision=1e-6)
    assert found.without_spread.tolist() == [False, True, False, True]
    assert found.interval().isna().any(axis=1).tolist() == [False, True, False, True]
    assert found.standard_errors.isna().tolist() == [False, True, False, True]


def test_estimates_that_differ_by_rounding_share_a_rank():
    draws = np.random.default_rng(2).normal(size=(40, 4))
    estimate = np.array([1.0, 1.0 + 1e-12, 0.0, 2.0])
    assert Draws(NAMES, estimate, draws, precision=1e-6).ranks()["rank"].tolist() == [2, 2, 4, 1]
    assert Draws(NAMES, estimate, draws).ranks()["rank"].tolist() == [3, 2, 4, 1]


def test_tables_of_too_many_names(draws, monkeypatch):
    monkeypatch.setattr("jaxeval.statistics.comparison.MOST_SQUARE", 3)
    with pytest.raises(ValueError, match="the table of shares is a table of 4 x 4 models, beyond the 3"):
        _ = draws.beat_share


def by_judge():
    names = pd.MultiIndex.from_product([["x", "y"], ["a", "b"]], names=["judge", "model"])
    values = np.random.default_rng(3).uniform(size=(50, 4))
    status = np.array(["ok", "few", "ok", "ok"], object)
    return Draws(names, values.mean(0), values, limits=(np.array([0.0, -1.0, 0.0, 0.0]), 1.0), status=status)


def test_quantities_are_picked_by_the_levels_of_their_names():
    draws = by_judge()
    one = draws.of(judge="x")
    assert one.names.tolist() == ["a", "b"]
    assert one.names.name == "model"
    np.testing.assert_array_equal(one.draws, draws.draws[:, :2])
    np.testing.assert_array_equal(one.limits, [[0, -1], [1, 1]])
    assert one.table()["status"].to_dict() == {"a": "ok", "b": "few"}
    assert draws.of(judge="y", model="b").names.tolist() == [("y", "b")]
    assert draws.of().names.equals(draws.names)
    with pytest.raises(ValueError, match="no level 'tier' of names; the levels are judge, model"):
        draws.of(tier=1)
    with pytest.raises(ValueError, match="no model 'A' among the names; there are a, b; did you mean 'a'"):
        draws.of(model="A")


def test_differences_of_draws_are_paired():
    draws = by_judge()
    x, y = draws.of(judge="x"), draws.of(judge="y")
    found = x - y
    np.testing.assert_array_equal(found.draws, draws.draws[:, :2] - draws.draws[:, 2:])
    np.testing.assert_array_equal(found.limits, [[-1, -2], [1, 1]])
    lower, upper = draws.difference_interval(0.8)
    np.testing.assert_allclose(found.interval(0.8).loc["a"], [lower.loc[("x", "a"), ("y", "a")], upper.iloc[0, 2]])
    held = Draws(NAMES, TRUTH, np.tile(TRUTH, (9, 1)), anchored=np.array([True, True, False, False]))
    assert (held - held).interval().isna().any(axis=1).tolist() == [False, False, True, True]
    with pytest.raises(ValueError, match="only draws of the same names in the same resamples have differences"):
        x - draws.of(model="a")


def test_tables_and_sentences_spell_the_kind_of_the_quantity():
    shares = Draws(pd.Index(["a", "b"]), np.array([0.5, 0.25]), np.array([[0.5, 0.25], [0.52, 0.23]]), kind="percent")
    assert "a has the largest estimate, 50% (50% to 52%)" in str(shares)
    assert "a     1       50%      50%, 52%" in repr(shares)
    ratings = Draws(pd.Index(["a"]), np.array([1001.26]), np.array([[1001.26], [1003.0]]), kind="rating")
    assert "1001    1001, 1003" in repr(ratings)
    assert (ratings - ratings).kind == "elo"
    with pytest.raises(ValueError, match="kind must be one of 'number', 'rating'"):
        Draws(pd.Index(["a"]), np.zeros(1), np.zeros((1, 1)), kind="colour")


def test_draws_without_a_value_count_as_the_limits_in_intervals():
    values = np.linspace(0.4, 0.6, 21)[:, None].repeat(2, 1)
    values[:2, 1] = np.nan
    draws = Draws(pd.Index(["a", "b"]), values[-1], values, limits=(0.0, 1.0))
    bounds = draws.interval(0.9)
    np.testing.assert_allclose(bounds.loc["a"], [0.41, 0.59])
    np.testing.assert_allclose(bounds.loc["b"], [0.0, 1.0])
    assert draws.difference_interval(0.9)[0].loc["a", "b"] == -1.0


def test_shapes_are_checked():
    with pytest.raises(ValueError, match="there are no draws: ask the estimator for resamples"):
        Draws(NAMES, TRUTH, np.empty((0, 4)))
    with pytest.raises(ValueError, match=r"4 names need as many estimates .* got arrays of shapes \(4,\) and \(9, 3\)"):
        Draws(NAMES, TRUTH, np.zeros((9, 3)))
    with pytest.raises(ValueError, match=r"status must be an array of shape \(4,\), got one of shape \(2,\)"):
        Draws(NAMES, TRUTH, np.zeros((9, 4)), status=np.array(["ok", "few"], object))
    with pytest.raises(ValueError, match=r"converged must be an array of shape \(9,\), got one of shape \(4,\)"):
        Draws(NAMES, TRUTH, np.zeros((9, 4)), converged=np.ones(4, bool))
    for limits in (np.zeros((3, 4)), (0.0, np.ones(2)), (0.0,)):
        with pytest.raises(ValueError, match=r"limits must be two numbers or arrays of shape \(4,\), got shapes"):
            Draws(NAMES, TRUTH, np.zeros((9, 4)), limits=limits)


def test_two_quantities_of_one_name_are_refused():
    with pytest.raises(ValueError, match="every quantity needs a name of its own, but several are called a"):
        Draws(pd.Index(["a", "b", "a", "c"]), TRUTH, np.zeros((9, 4)))


def test_infinite_estimates_have_no_interval_of_either_kind():
    draws = np.random.default_rng(3).normal(size=(50, 4))
    draws[:, 0] = np.inf
    found = Draws(NAMES, np.array([np.inf, 0.0, np.nan, 0.0]), draws)
    for kind in ("percentile", "basic"):
        assert found.interval(kind=kind).isna().all(axis=1).tolist() == [True, False, True, False]


class TestApartFromANumber:
    @pytest.fixture
    def draws(self):
        rng = np.random.default_rng(0)
        return rng.normal(size=(400, 12)) @ (np.eye(12) + 0.3)

    def test_against_a_naive_search(self, draws):
        """By steps down: what is beyond the critical value leaves, and the rest have one of their own."""
        estimate = np.array([0, 0.5, -2, 3.5, 5, -6, 1, 0, 4.4, 9, 0.1, -3.4])
        statistic = np.abs(draws) / (error := draws.std(0, ddof=1))
        left = np.ones(12, bool)
        while True:
            critical = np.sort(statistic[:, left].max(1))[int(np.ceil(0.95 * 400)) - 1]
            away = left & (np.abs(estimate - 1) / error > critical)
            if not away.any():
                break
            left &= ~away
        own = Draws(pd.RangeIndex(12), estimate, estimate + draws).apart_from(1.0)
        assert own.tolist() == (~left).tolist()
        assert 0 < own.sum() < 12

    def test_what_is_held_or_fails_is_not_told_apart(self, draws):
        estimate = np.full(12, 50.0)
        shown = estimate + draws
        shown[:, 0] = 50.0
        shown[:20, 1] = np.nan
        shown[-3:] = np.nan
        own = Draws(pd.RangeIndex(12), estimate, shown).apart_from()
        assert own.tolist() == [False, False, *[True] * 10]

    def test_all_at_once(self):
        """Twelve that have the number: some is told apart in 5 of 100 samples."""
        rng = np.random.default_rng(1)
        false = [Draws(pd.RangeIndex(12), x := rng.normal(size=12), x + rng.normal(size=(200, 12))).apart_from().any()
                 for _ in range(300)]  # fmt: skip
        assert abs(np.mean(false) - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 300)


def test_a_difference_of_failed_draws_has_failed():
    """They say nothing, and do not count as draws without a value."""
    rng = np.random.default_rng(0)
    names, draws = pd.Index(["a", "b"]), np.array([5.0, -5.0]) + 0.1 * rng.normal(size=(100, 2))
    ended = np.arange(100) >= 3
    first = Draws(names, np.array([5.0, -5.0]), np.where(ended[:, None], draws, np.nan), converged=ended)
    second = Draws(names, np.zeros(2), 0.1 * rng.normal(size=(100, 2)))
    for difference in (first - second, second - first):
        assert (difference.converged == ended).all()
        assert difference.apart_from(0).all()
    assert (second - second).converged is None
