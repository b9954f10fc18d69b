"""What one more battle tells, against refits and against loops in plain NumPy."""

import numpy as np
import pandas as pd
import pytest
import twins
from scipy.special import expit
from scipy.stats import norm

import jaxeval
from jaxeval.planning.information import (
    expected_gains,
    information_of,
    information_without_votes,
    planned_battles,
    pseudo_inverse,
)

ELO = 400 / np.log(10)


def votes_of(seed=0, n=400, m=6, ties=0.0, **options):
    return jaxeval.simulate_votes(n, m, tie_rate=ties, seed=seed, **options)[["model_a", "model_b", "winner"]]


def hard(votes):
    return votes.assign(target=votes["winner"].map({"model_a": 1.0, "model_b": 0.0, "tie": 0.5, "both_bad": 0.5}))[
        ["model_a", "model_b", "target"]
    ]


@pytest.fixture(scope="module")
def fit():
    return jaxeval.fit_bradley_terry(hard(votes_of()))


def twin_covariance(times, theta):
    """(M, M) pseudo-inverse of the information, battle by battle, from (M, M) numbers of battles."""
    return np.linalg.pinv(twins.information(theta, times / 2), hermitian=True)


def test_pseudo_inverses_leave_a_common_shift_out():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 5))
    x = x @ x.T
    centring = np.eye(5) - 0.2
    np.testing.assert_allclose(pseudo_inverse(x), np.linalg.pinv(centring @ x @ centring), atol=1e-12)
    assert pseudo_inverse(np.ones((1, 1))).tolist() == [[0.0]]


def test_what_a_fit_tells_is_its_inverse_information(fit):
    known = information_of(fit)
    times = fit._board.cells.tables(6)[0]
    np.testing.assert_allclose(known.covariance(), twin_covariance(times, fit.theta), rtol=1e-8)
    np.testing.assert_allclose(known.scores, known.battles, atol=1e-9)
    assert not known.unrated.any()
    assert not known.prior.any()
    errors = ELO * np.sqrt(np.diag(known.covariance()))
    np.testing.assert_allclose(errors, fit.standard_errors_hessian, rtol=1e-8)


def test_gains_are_those_of_refits_with_one_more_expected_vote(fit):
    """Each of the 15 pairs: the vote has the result that the fit expects."""
    known, gains = information_of(fit), {}
    for models in ((0,), (1, 4), (0, 1, 2, 3, 4, 5)):
        goal = np.zeros((6, 6))
        goal[models, models] = 1.0
        gains[models] = ELO**2 * expected_gains(known.covariance(), goal, known.worth)
    before = fit.standard_errors_hessian**2
    for i in range(6):
        for j in range(i):
            names = fit.ratings.index[[i, j]]
            one = {"model_a": [names[0]], "model_b": [names[1]], "target": [fit.win_probability.iloc[i, j]]}
            more = pd.concat([hard(votes_of()), pd.DataFrame(one)])
            again = jaxeval.fit_bradley_terry(more, start=fit)
            np.testing.assert_allclose(again.ratings, fit.ratings, atol=1e-5)
            less = before - again.standard_errors_hessian**2
            for models, gain in gains.items():
                assert gain[i, j] == pytest.approx(less.iloc[list(models)].sum(), rel=1e-4)
                assert gain[i, j] == pytest.approx(gain[j, i])


def test_battles_are_planned_one_after_the_other(fit):
    """Against pseudo-inverses made anew for every battle."""
    known, goal, times = information_of(fit), np.diag([1.0, 1, 0, 0, 0, 0]), fit._board.cells.tables(6)[0]
    allowed = np.triu(np.ones((6, 6), bool), 1)
    found = planned_battles(known.covariance(), goal, known.worth, allowed, 12)
    assert [step for *_, step in found] == [1] * 12
    for i, j, _ in found:
        best = min(
            (np.trace(goal @ twin_covariance(times + one, fit.theta)), a, b)
            for a in range(6)
            for b in range(a + 1, 6)
            for one in [np.where((np.indices((6, 6)) == np.array([b, a])[:, None, None]).all(0), 1.0, 0.0)]
        )
        assert (i, j) == best[1:]
        times[i, j] += 1
        times[j, i] += 1


def test_many_battles_are_planned_in_few_steps(fit):
    known, allowed = information_of(fit), np.triu(np.ones((6, 6), bool), 1)
    found = planned_battles(known.covariance(), np.eye(6), known.worth, allowed, 10_001)
    assert len(found) <= 256
    assert sum(step for *_, step in found) == 10_001


def test_one_probit_battle():
    fit = jaxeval.fit_bradley_terry(hard(votes_of(n=300, m=4)), link="probit")
    known, z = information_of(fit), fit.strengths.to_numpy()[:, None] - fit.strengths.to_numpy()
    twin = norm.pdf(z) ** 2 / (norm.cdf(z) * norm.cdf(-z))
    np.testing.assert_allclose(known.worth, twin * (1 - np.eye(4)), rtol=1e-9)
    assert known.unit == pytest.approx(1.702 * ELO)


def test_weights_count_by_their_mean(fit):
    """Twice the weight of all votes tells nothing; inverse propensities of two batches make errors larger."""
    table = hard(votes_of())
    twice = jaxeval.fit_bradley_terry(jaxeval.Battles.from_pandas(table.assign(w=2.0), weight="w"))
    for name in ("battles", "scores", "worth"):
        np.testing.assert_allclose(getattr(information_of(twice), name), getattr(information_of(fit), name), atol=1e-8)
    assert information_of(twice).dispersion == pytest.approx(information_of(fit).dispersion)
    odd = table.assign(w=np.where(np.arange(400) % 2, 0.2, 1.8))
    known = information_of(jaxeval.fit_bradley_terry(jaxeval.Battles.from_pandas(odd, weight="w")))
    inside, covariance = known.variances(np.arange(6))
    assert inside.all()
    assert np.trace(covariance) > 1.3 * np.trace(known.covariance())  # (sum w^2) / sum w is 1.64


def test_ties_and_clusters_change_the_spread_of_results(fit):
    assert information_of(fit).dispersion == pytest.approx(1, abs=0.1)
    tied = votes_of(n=3000, ties=0.5)
    of_ties = jaxeval.fit_bradley_terry(hard(tied))
    p = of_ties.win_probability.to_numpy()
    codes = [of_ties.ratings.index.get_indexer(tied[side].astype(str)) for side in ("model_a", "model_b")]
    expected = p[codes[0], codes[1]]
    twin = ((hard(tied)["target"] - expected) ** 2).sum() / (expected * (1 - expected)).sum() * 3000 / 2995
    assert information_of(of_ties).dispersion == pytest.approx(twin)
    assert twin < 0.75
    table = pd.concat([hard(votes_of())] * 4, keys=range(4)).reset_index(level=1, names=["", "voter"])
    clustered = jaxeval.fit_bradley_terry(table, cluster="voter")
    assert information_of(clustered).dispersion == pytest.approx(4, rel=0.15)


class TestWithoutRatings:
    def test_a_newcomer_is_like_the_mean(self, fit):
        known = information_of(fit, "new")
        assert known.models[-1] == "new"
        assert known.unrated.tolist() == [False] * 6 + [True]
        assert known.assumed[-1] == pytest.approx(0)
        spread = max(fit.strengths.std(ddof=0), 0.5)
        assert known.covariance()[-1, -1] + 0 == pytest.approx(spread**2 * (6 / 7) ** 2, rel=0.05)
        inside, covariance = known.variances(np.arange(6))
        assert inside.tolist() == [True] * 6 + [False]
        np.testing.assert_allclose(covariance, information_of(fit).covariance(), rtol=1e-8)

    def test_undefeated_models_are_above_and_winless_ones_below(self):
        table = hard(votes_of(n=300))
        best = pd.DataFrame({"model_a": "best", "model_b": ["model-1", "model-2"] * 3, "target": 1.0})
        worst = pd.DataFrame({"model_a": "worst", "model_b": ["model-5", "model-6"] * 3, "target": 0.0})
        fit = jaxeval.fit_bradley_terry(pd.concat([table, best, worst]))
        known = information_of(fit)
        assumed = pd.Series(known.assumed, known.models)
        assert assumed.idxmax() == "best"
        assert assumed.idxmin() == "worst"
        assert known.models[known.unrated].tolist() == ["best", "worst"]
        inside, _ = known.variances(np.arange(8))
        assert inside.all()  # their battles compare them once they have lost and won

    def test_a_board_on_which_nobody_has_one(self):
        fit = jaxeval.fit_bradley_terry(pd.DataFrame({"model_a": ["a", "b"], "model_b": ["b", "c"], "target": 1.0}))
        known = information_of(fit)
        assert known.unrated.all()
        np.testing.assert_allclose(known.gauge, 1 / 3)
        assert np.isfinite(known.covariance()).all()


def test_boards_without_votes():
    known = information_without_votes(4)
    assert known.models.tolist() == ["model-1", "model-2", "model-3", "model-4"]
    np.testing.assert_allclose(known.worth, 0.25 * (1 - np.eye(4)))
    known = information_without_votes(pd.Series({"a": 1000.0, "b": 1200.0}))
    assert known.worth[0, 1] == pytest.approx(expit(200 / ELO) * expit(-200 / ELO))


@pytest.mark.parametrize(("given", "error", "message"), [
    (1, ValueError, "for 2 to 6,000 models"),
    (True, TypeError, "a number of models, got bool"),
    ("a", TypeError, "got str"),
    (pd.Series({"a": 1.0}), ValueError, "got 1 rating"),
    (pd.Series([1.0, 2.0], ["a", "a"]), ValueError, "got a model that is there twice"),
    (pd.Series(["x", "y"]), TypeError, "must be numbers"),
    (pd.Series([1.0, np.nan]), ValueError, "got one that is not finite"),
])  # fmt: skip
def test_hostile_boards_without_votes(given, error, message):
    with pytest.raises(error, match=message):
        information_without_votes(given)
