import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import jaxeval
from jaxeval.planning.information import Aim, information_of
from jaxeval.planning.next_battles import NextBattles, at_random, choose, fewest, information

pytestmark = pytest.mark.usefixtures("all_on_the_host")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def votes():
    return jaxeval.simulate_votes(400, 6, tie_rate=0, seed=0)[["model_a", "model_b", "winner"]]


@pytest.fixture(scope="module")
def fit(votes):
    return jaxeval.fit_bradley_terry(votes)


@pytest.fixture(scope="module")
def unconnected(votes):
    """Five models that met, two others that met each other alone, and one that is undefeated."""
    pairs = [("x", "y"), ("y", "x")] * 5 + [("best", "model-1")] * 3
    table = pd.DataFrame(pairs, columns=["model_a", "model_b"]).assign(winner="model_a")
    fit = jaxeval.fit_bradley_terry(pd.concat([votes[votes["model_a"] != votes["model_b"]], table], ignore_index=True))
    assert fit.standing[["best", "x", "y"]].tolist() == ["undefeated", "not comparable", "not comparable"]
    return fit


@pytest.fixture(scope="module")
def chosen(fit):
    """New votes whose pairs were chosen: by their propensities, and by the inverse of these as weights."""
    new = jaxeval.next_battles(fit, 200, goal="top", top=2).each().assign(winner="model_a")
    weighted = jaxeval.Battles.from_pandas(new.assign(w=1 / new["propensity"]), weight="w")
    return new, jaxeval.Battles.from_pandas(new, propensity="propensity"), weighted


@pytest.fixture(scope="module")
def board(chosen):
    return jaxeval.bootstrap(chosen[1], 20, progress=False)


class TestPropensities:
    @pytest.mark.parametrize("aim", [Aim(), Aim(goal="top", top=2), Aim(newcomer="new")])
    def test_they_are_the_shares_of_many_plans(self, fit, aim):
        """13 battles, 2.6 of them at random: the mean of 200 plans against what they say, in standard errors."""
        known, goal = information(fit, aim)
        plans = [choose(known, goal, 13, 0.2, np.random.default_rng(seed)) for seed in range(200)]
        times = np.array([plan.planned + plan.drawn for plan in plans])
        assert (times.sum((1, 2)) == 13).all()
        assert {int(plan.drawn.sum()) for plan in plans} == {2, 3}
        expected = plans[0].expected
        assert expected.sum() == pytest.approx(13)
        assert (expected[goal.pairs] > 0).all()
        assert not expected[~goal.pairs].any()
        error = np.sqrt((times.var(0) + 0.01) / len(times))
        assert (np.abs(times.mean(0) - expected) < 4 * error).all()
        one = jaxeval.next_battles(fit, 13, goal=aim.goal, top=aim.top, newcomer=aim.newcomer).battles
        i, j = (known.models.get_indexer(one[side]) for side in ("model_a", "model_b"))
        np.testing.assert_allclose(one["propensity"], expected[i, j] / 13)

    def test_weights_are_their_inverse_relative_to_random_pairs(self, fit):
        plan = jaxeval.next_battles(fit, 500, random=0.3).battles
        assert len(plan) == 15
        np.testing.assert_allclose(plan["weight"] * plan["propensity"], 1 / 15)
        assert (500 * plan["propensity"] * plan["weight"]).sum() == pytest.approx(500)
        even = jaxeval.next_battles(fit, 30, random=1).battles
        np.testing.assert_allclose(even["weight"], 1)
        assert even["n_battles"].tolist() == [2] * 15

    def test_fits_take_them(self, chosen, board, votes):
        """New votes whose pairs were chosen, with inverse propensities, beside old ones of random pairs."""
        new, alone, again = chosen
        np.testing.assert_allclose(alone.weight, again.weight)
        assert alone.report.n_effective < 150
        both = jaxeval.Battles.from_pandas(pd.concat([votes.assign(weight=1.0), new]), weight="weight")
        even = jaxeval.Battles.from_pandas(pd.concat([votes.assign(propensity=1 / 15), new]), propensity="propensity")
        found = [jaxeval.fit_bradley_terry(battles).ratings for battles in (both, even)]
        np.testing.assert_allclose(found[0], found[1], atol=1e-6)
        weighted = jaxeval.bootstrap(again, 20, progress=False)
        np.testing.assert_allclose(board.draws, weighted.draws, equal_nan=True)

    def test_without_random_battles_other_pairs_have_none(self, fit):
        plan = jaxeval.next_battles(fit, 5, goal="top", top=2, random=0)
        assert any("no chance to be chosen" in warning for warning in plan.warnings)
        assert "inverse propensities" not in plan.expected.index
        assert plan.answer.sentences[-1] == "Fit the new votes together with the old ones, all with equal weights."

    def test_the_plain_fit_is_advised_and_the_weighted_one_is_a_check(self, fit):
        plan = jaxeval.next_battles(fit, 100, goal="top", top=2)
        width = plan.expected.loc["inverse propensities", "width"]
        assert plan.answer.sentences[-1].startswith(
            "Fit the new votes together with the old ones, all with equal weights. A fit"
        )
        assert (
            f"checks whether the choice of pairs moved the ratings: its intervals would be {width:.1f} wide"
            in (plan.answer.sentences[-1])
        )


class TestAtRandom:
    @pytest.mark.parametrize("m", [2, 5, 6])
    def test_every_model_is_there_as_often_as_any_other(self, m):
        pairs = np.triu(np.ones((m, m), bool), 1)
        for n in range(1, 2 * int(pairs.sum()) + 2):
            found = at_random(pairs, n, np.random.default_rng(n))
            assert found.sum() == n
            assert not found[~pairs].any()
            assert np.ptp(found[pairs]) <= 1
            assert np.ptp(found.sum(0) + found.sum(1)) <= (1 if m % 2 == 0 else 2)

    def test_a_newcomer_meets_all_as_often(self, fit):
        plan = jaxeval.next_battles(fit, 20, newcomer="new", random=1).battles
        assert sorted(plan["n_battles"]) == [3, 3, 3, 3, 4, 4]


class TestExpected:
    def test_widths_are_those_of_fits_of_as_many_votes(self, fit, votes):
        """Refits in which planned battles have the result that is expected; 95 % intervals are 3.92 errors wide."""
        plan = jaxeval.next_battles(fit, 300, goal="top", top=3)
        each = plan.each()
        p = fit.win_probability
        each["target"] = [p.loc[a, b] for a, b in zip(each["model_a"], each["model_b"], strict=True)]
        old = jaxeval.Battles.from_pandas(votes).to_pandas()
        more = jaxeval.fit_bradley_terry(pd.concat([old, each], ignore_index=True)[["model_a", "model_b", "target"]])
        best = fit.ratings.nlargest(3).index
        factor = np.sqrt(information_of(fit).dispersion)
        for own, name in ((fit, "now"), (more, "planned")):
            error = np.sqrt((own.standard_errors_hessian[best] ** 2).mean()) * factor
            assert plan.expected.loc[name, "standard_error"] == pytest.approx(error, rel=0.01)
            assert plan.expected.loc[name, "width"] == pytest.approx(3.92 * error, rel=0.01)
        width = plan.expected["width"]
        assert width["planned"] < width["at random"] < width["now"]
        assert width["planned"] < width["inverse propensities"]
        assert plan.by_model["model"].tolist() == sorted(best)
        assert np.sqrt((plan.by_model["width_planned"] ** 2).mean()) == pytest.approx(width["planned"])

    def test_a_plan_that_saves_next_to_nothing_says_so(self, fit, votes):
        told = "The plan saves so little that pairs at random"
        even = jaxeval.next_battles(fit, 300)
        width = even.expected["width"]
        assert width["planned"] > 0.93 * width["at random"]
        assert any(sentence.startswith(told) for sentence in even.answer.sentences)
        rare = votes["model_a"].isin(["model-1", "model-2"]) | votes["model_b"].isin(["model-1", "model-2"])
        uneven = jaxeval.next_battles(jaxeval.fit_bradley_terry(votes[~rare | (votes.index % 9 == 0)]), 150)
        width = uneven.expected["width"]
        assert width["planned"] < 0.93 * width["at random"]
        assert not any(sentence.startswith(told) for sentence in uneven.answer.sentences)

    @pytest.mark.parametrize("goal", [{}, {"goal": "top", "top": 3}, {"pair": ("model-1", "model-4")}])
    def test_as_many_battles_as_a_width_takes(self, fit, goal):
        now = jaxeval.next_battles(fit, 1, **goal).expected["width"]["now"]
        plan = jaxeval.next_battles(fit, width=now / 2, **goal)
        assert 0.99 * now / 2 < plan.expected["width"]["planned"] <= now / 2

    def test_a_pair_meets_itself(self, fit):
        plan = jaxeval.next_battles(fit, 10, pair=("model-4", "model-2"), random=0)
        assert plan.battles[["model_a", "model_b", "n_battles"]].to_numpy().tolist() == [["model-2", "model-4", 10]]
        assert plan.by_model["n_battles"].tolist() == [10, 10]


class TestWithoutRatings:
    def test_the_board_is_connected_first(self, unconnected):
        plan = jaxeval.next_battles(unconnected, 10, random=0)
        sides = plan.battles[["model_a", "model_b"]].isin(["x", "y", "best"])
        assert sides.any(axis=1).all()
        assert not plan.battles[["model_a", "model_b"]].isin(["x", "y"]).all(axis=1).any()
        assert "10 battles of this plan connect them with the others" in plan.warnings[0]
        assert plan.warnings[0].startswith("best, x, y have no rating so far")

    def test_undefeated_models_are_of_the_top(self, unconnected):
        plan = jaxeval.next_battles(unconnected, 10, goal="top", top=2, random=0)
        assert "best" in plan.by_model["model"].tolist()
        pair = jaxeval.next_battles(unconnected, 10, pair=("model-1", "model-2"), random=0)
        assert "0 battles of this plan" in pair.warnings[0]
        assert "goal='board' connects all models" in pair.warnings[0]

    def test_one_of_them_as_the_newcomer(self, unconnected):
        plan = jaxeval.next_battles(unconnected, newcomer="x", width=100)
        assert plan.battles[["model_a", "model_b"]].isin(["x"]).any(axis=1).all()
        assert plan.expected["width"]["planned"] == pytest.approx(100, rel=0.02)
        assert "unknown" in plan.answer.sentences[2]

    def test_nobody_has_one(self):
        fit = jaxeval.fit_bradley_terry(pd.DataFrame({"model_a": ["a", "b"], "model_b": ["b", "c"], "target": 1.0}))
        plan = jaxeval.next_battles(fit, 8)
        assert plan.n_battles == 8
        assert "a, b, c have no rating so far" in plan.warnings[0]

    def test_boards_without_votes(self):
        plan = jaxeval.next_battles(5, 40)
        assert np.isinf(plan.expected["width"]["now"])
        assert plan.battles["n_battles"].sum() == 40
        assert len(plan.battles) == 10


def test_a_row_a_battle(fit):
    plan = jaxeval.next_battles(fit, 60)
    each = plan.each()
    pd.testing.assert_frame_equal(each, plan.each())
    sides = np.sort(each[["model_a", "model_b"]].to_numpy().astype(str), axis=1)
    counts = pd.Series(map(tuple, sides)).value_counts()
    assert counts.to_dict() == plan.battles.set_index(["model_a", "model_b"])["n_battles"].to_dict()
    assert 15 < (each["model_a"] < each["model_b"]).sum() < 45
    assert isinstance(plan, NextBattles)


def test_covariates_are_even(votes):
    table = votes.assign(length=np.random.default_rng(0).normal(size=len(votes)))
    fit = jaxeval.fit_bradley_terry(table, features=["length"])
    plan = jaxeval.next_battles(fit, 20)
    error = fit.standard_errors_hessian
    known = information_of(fit)
    ends = known.unit * np.sqrt(np.diag(known.variances(np.arange(6))[1]))
    np.testing.assert_allclose(ends, error, rtol=1e-6)
    assert plan.n_battles == 20


class TestRefusals:
    def test_tie_models(self, votes):
        tied = jaxeval.fit_bradley_terry(jaxeval.simulate_battles(400, 4), ties="davidson")
        with pytest.raises(ValueError, match="plan from its expected_score"):
            jaxeval.next_battles(tied, 10)
        assert jaxeval.next_battles(tied.expected_score, 10).n_battles == 10

    def test_what_is_no_fit_of_battles(self, board):
        with pytest.raises(TypeError, match="got DataFrame"):
            jaxeval.next_battles(pd.DataFrame(), 10)
        with pytest.raises(TypeError, match=r"got Bootstrap: give its \.fit"):
            jaxeval.next_battles(board, 10)
        ranked = jaxeval.fit_plackett_luce(jaxeval.Rankings.from_pandas(
            pd.DataFrame({"ranking": [["a", "b"], ["c", "a"], ["b", "a"], ["b", "c"]]})
        ))  # fmt: skip
        with pytest.raises(TypeError, match="got a fit of rankings"):
            jaxeval.next_battles(ranked, 10)

    def test_fits_that_did_not_converge(self, fit):
        with pytest.raises(jaxeval.DataError, match="the fit stopped before converging"):
            jaxeval.next_battles(replace(fit, converged=False, status="stopped before converging"), 10)

    @pytest.mark.parametrize(("options", "message"), [
        ({}, "give either k"),
        ({"k": 5, "width": 10}, "give either k"),
        ({"k": 0}, "k must be at least 1"),
        ({"k": 10**9}, "at most 10,000,000"),
        ({"width": -1}, "width must be finite and > 0"),
        ({"width": 1e4}, "no wider than 10000 Elo already"),
        ({"width": 1e-4}, "no number of battles"),
        ({"k": 5, "random": 1.5}, "random must be a share"),
        ({"k": 5, "level": 1}, "level must be between"),
        ({"k": 5, "goal": "best"}, "goal must be"),
        ({"k": 5, "goal": "pair"}, "need each other"),
        ({"k": 5, "goal": "top", "newcomer": "x"}, "need each other"),
        ({"k": 5, "goal": "board", "top": 3}, "the goal is 'board'"),
        ({"k": 5, "pair": ("model-1", "model-2"), "top": 3}, "the goal is 'pair'"),
        ({"k": 5, "goal": "top", "top": 7}, "top must lie between 2 and 6"),
        ({"k": 5, "pair": ("model-1", "model-1")}, "two different names"),
        ({"k": 5, "pair": "ab"}, "two different names"),
        ({"k": 5, "pair": ("model-1", "model")}, "no model 'model' on the board of 6; did you mean"),
    ])  # fmt: skip
    def test_hostile_options(self, fit, options, message):
        with pytest.raises(ValueError, match=message):
            jaxeval.next_battles(fit, **options)

    def test_a_top_is_a_goal(self, fit):
        plan = jaxeval.next_battles(fit, 5, top=3)
        assert plan.goal == jaxeval.next_battles(fit, 5, goal="top", top=3).goal == "the ratings of the top 3"

    def test_several_newcomers(self, fit):
        with pytest.raises(TypeError, match="newcomer must be one name"):
            jaxeval.next_battles(fit, 5, newcomer=["x", "y"])


@pytest.mark.parametrize("least", [1, 2, 3, 99, 100, 101, 12_345])
def test_the_fewest(least):
    found = fewest(lambda n: n >= least, 100)
    assert least <= found <= least * 1.005


def test_no_number_is_enough():
    assert fewest(lambda n: False, 100) is None


@pytest.fixture
def study(monkeypatch):
    """The benchmark, whose numbers are for boards of other sizes."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location("next_battles_benchmark", BENCHMARKS / "next_battles.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_planned_votes_are_a_third_of_random_ones_or_fewer(study):
    """Of 30 models, the best five; refitted after every batch, from the fit before."""
    sizes = {"n_models": 30, "first": 5_000, "top": 5, "batch": 100}
    planned, steps = study.votes_needed(1, True, **sizes)
    at_random, _ = study.votes_needed(1, False, **sizes)
    assert planned <= 0.3 * at_random
    assert max(steps) <= 5


@pytest.mark.slow
def test_inverse_propensities_mend_the_bias_of_choosing_at_a_price(study):
    """The bias of each rating over 24 boards: its mean square, less that of its own error, over ten models."""
    boards = [study.misfitting_board(seed, 0.5, batches=5) for seed in range(24)]

    def square_of_bias(name):
        errors = np.array([board[name] for board in boards])[:, :10]
        return (errors.mean(0) ** 2 - errors.var(0, ddof=1) / len(boards)).mean()

    assert square_of_bias("inverse propensities") < 0.5 * square_of_bias("plain")
    assert all(board["told_weighted"] > board["told_plain"] for board in boards)


def test_a_pair_that_is_none():
    with pytest.raises(ValueError, match="pair must be two different names, got 5"):
        jaxeval.next_battles(3, 5, pair=5)


def test_inverse_propensities_count_once():
    each = jaxeval.next_battles(5, 40).each().assign(winner="tie")
    with pytest.raises(jaxeval.DataError, match="'weight' is the inverse of column 'propensity'"):
        jaxeval.Battles.from_pandas(each, propensity="propensity", weight="weight")
