"""Fits with covariates and tie models: against general optimisers, published numbers, and what must not change them."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from jaxeval import Battles, DataError, fit_bradley_terry, simulate_votes
from jaxeval.data.features import position_advantage

M = 6
LENGTH, MARKUP, FIRST = 0.5, -0.3, 0.2


def styled(n=3000, seed=1, ties=0.3):
    """Votes between six models, decided by strength, length, markup and who comes first."""
    rng = np.random.default_rng(seed)
    votes = simulate_votes(n, M, seed=seed)[["model_a", "model_b"]].astype(str)
    theta = dict(zip(sorted(set(votes["model_a"])), np.linspace(0.8, -0.8, M), strict=True))
    length, markup = rng.normal(size=n), 3 * rng.integers(-2, 3, size=n)
    z = votes["model_a"].map(theta) - votes["model_b"].map(theta) + LENGTH * length + MARKUP * markup / 3 + FIRST
    u, win, loss = rng.random(n), expit(z - ties), expit(-z - ties)
    winner = np.where(u < win, "model_a", np.where(u > 1 - loss, "model_b", "tie"))
    return votes.assign(winner=winner, length=length, markup=markup, weight=rng.uniform(0.5, 2, n))


@pytest.fixture(scope="module")
def votes():
    return styled()


FEATURES = ["length", "markup", position_advantage()]


def optimum(battles, features, ties, ridge, feature_ridge, pair_weight=1.0):
    """Strengths, coefficients and tie parameter by L-BFGS, from the formulas of the papers."""
    x = np.zeros((battles.n_battles, 0)) if features is None else features
    n, d = battles.n_models, x.shape[1]
    y, w = battles.target, (1.0 if battles.weight is None else battles.weight) * pair_weight

    def loss(p):
        z = p[battles.model_a] - p[battles.model_b] + x @ p[n : n + d]
        if ties == "half":
            each = y * log_expit(z) + (1 - y) * log_expit(-z)
        elif ties == "davidson":
            each = np.select([y == 1, y == 0], [z / 2, -z / 2], p[-1]) - np.logaddexp(
                np.logaddexp(z / 2, -z / 2), p[-1]
            )
        else:
            win, lose = expit(z - p[-1]), expit(-z - p[-1])
            each = np.log(np.select([y == 1, y == 0], [win, lose], 1 - win - lose))
        return -(w * each).sum() + ridge * (p[:n] ** 2).sum() + feature_ridge * (p[n : n + d] ** 2).sum()

    start = np.zeros(n + d + (ties != "half"))
    start[-1] = 0.3 if ties == "rao_kupper" else 0.0
    found = minimize(loss, start, method="BFGS", options={"gtol": 1e-6})
    theta = found.x[:n] - found.x[:n].mean()
    return (
        theta,
        found.x[n : n + d],
        found.x[-1],
        -found.fun + ridge * (found.x[:n] ** 2).sum() + feature_ridge * (found.x[n : n + d] ** 2).sum(),
    )


@pytest.mark.slow
@pytest.mark.parametrize("ridges", [(0.0, 0.0), (2.0, 3.0)])
@pytest.mark.parametrize("ties", ["half", "davidson", "rao_kupper"])
def test_the_maximum_of_the_likelihood(votes, ties, ridges):
    battles = Battles.from_pandas(votes, weight="weight")
    fit = fit_bradley_terry(battles, ridges[0], features=FEATURES, normalize=False, feature_ridge=ridges[1], ties=ties)
    x = np.column_stack([votes["length"], votes["markup"], np.ones(len(votes))])
    theta, coefficients, tie, likelihood = optimum(battles, x, ties, *ridges)
    assert fit.converged
    assert fit.theta == pytest.approx(theta, abs=1e-6)
    assert fit.coefficients()["coefficient"].to_numpy()[:3] == pytest.approx(coefficients, abs=1e-6)
    assert fit.log_likelihood == pytest.approx(likelihood, rel=1e-8)
    if ties == "half":
        assert np.isnan(fit.tie_parameter)
    else:
        assert fit.tie_parameter == pytest.approx(tie, abs=1e-6)


@pytest.mark.slow
def test_without_features_it_is_the_plain_fit(votes):
    """A covariate held at 0 by its ridge, and ties as half a win."""
    plain = fit_bradley_terry(votes, 0.1, reweight=True)
    held = fit_bradley_terry(votes, 0.1, reweight=True, features=["length"], feature_ridge=np.inf)
    assert held.theta == pytest.approx(plain.theta, abs=1e-8)
    assert held.standard_errors.to_numpy() == pytest.approx(plain.standard_errors.to_numpy(), rel=1e-8)
    assert held.standard_errors_hessian.to_numpy() == pytest.approx(plain.standard_errors_hessian.to_numpy(), rel=1e-8)
    assert held.log_likelihood == pytest.approx(plain.log_likelihood)


def test_the_contextual_model_of_arena_rank():
    """Its ratings and coefficients, from version 0.1.1 with all settings at their defaults.

    It maximises the mean of w l - reg / 2 ||c||^2 with reg = 1, w the inverse pair frequencies over their mean, and
    covariates less their mean, over their standard deviation. What it subtracts is a constant times each coefficient,
    which favours side A or B, so that here the covariates come standardised, and the ridge carries the scale.
    """
    k = np.arange(400)
    first = k % 4
    second = (first + 1 + k // 4 % 3) % 4
    x = {"length": np.sin(1.3 * k) + 0.4, "lists": np.round(2 * np.cos(0.7 * k * k))}
    z = 0.5 * (second - first) + 0.6 * x["length"] - 0.3 * x["lists"] + 2.5 * np.sin(2.1 * k * k)
    winner = np.select([z > 0.4, z < -0.4], ["model_a", "model_b"], "tie")
    names = np.array(["w", "x", "y", "z"])
    votes = pd.DataFrame({"model_a": names[first], "model_b": names[second], "winner": winner, **x})
    votes = votes[(k % 5 < 3) | (first + second == 1)]  # the first two meet more often than others
    votes[list(x)] = votes[list(x)].apply(lambda column: (column - column.mean()) / column.std(ddof=0))
    met = votes[["model_a", "model_b"]].apply(frozenset, axis=1).value_counts()
    total_weight = (met / np.maximum(met, 50)).sum()
    fit = fit_bradley_terry(
        votes, features=list(x), normalize=False, feature_ridge=total_weight / 2, reweight=True, base=1000.0
    )
    ratings = [1091.1635216784648, 1013.1747591609839, 1007.3858692006639, 888.2758499598874]
    np.testing.assert_allclose(fit.ratings, ratings, rtol=0, atol=1e-6)
    coefficients = [0.06290743119133706, -0.05947951867321777]
    np.testing.assert_allclose(fit.coefficients()["coefficient"], coefficients, rtol=0, atol=1e-8)


def sandwich(battles, x, fit, hessian=False):
    """Covariance of strengths (mean zero) and coefficients, with all battles' own scores."""
    n, d = battles.n_models, x.shape[1]
    z_of = np.zeros((battles.n_battles, n + d))
    rows = np.arange(battles.n_battles)
    z_of[rows, battles.model_a], z_of[rows, battles.model_b], z_of[:, n:] = 1, -1, x
    p = expit(z_of @ np.concatenate([fit.theta, fit.coefficients()["coefficient"]]))
    inverse = np.linalg.pinv((z_of * (p * (1 - p))[:, None]).T @ z_of, rcond=1e-12)
    own = z_of * (battles.target - p)[:, None]
    return inverse if hessian else inverse @ (own.T @ own) @ inverse


def test_standard_errors(votes):
    battles = Battles.from_pandas(votes)
    fit = fit_bradley_terry(battles, features=FEATURES, normalize=False)
    x = np.column_stack([votes["length"], votes["markup"], np.ones(len(votes))])
    elo = 400 / np.log(10)
    covariance = sandwich(battles, x, fit)
    errors = np.sqrt(np.diag(covariance))
    assert fit.standard_errors.to_numpy() / elo == pytest.approx(errors[:M], rel=1e-6)
    assert fit.coefficients()["standard_error"].to_numpy() == pytest.approx(errors[M:], rel=1e-6)
    hessian = np.sqrt(np.diag(sandwich(battles, x, fit, hessian=True)))
    assert fit.standard_errors_hessian.to_numpy() / elo == pytest.approx(hessian[:M], rel=1e-6)
    gap = np.zeros(M + 3)
    gap[[0, 2]] = 1, -1
    assert fit.difference_standard_errors.iloc[0, 2] / elo == pytest.approx(np.sqrt(gap @ covariance @ gap), rel=1e-6)


def test_a_table_of_coefficients(votes):
    table = fit_bradley_terry(votes, features=FEATURES).coefficients(level=0.9)
    assert table.index.tolist() == ["length", "markup", "position"]
    assert table.loc["markup", "unit"] == pytest.approx(np.sqrt(np.mean(votes["markup"] ** 2)))
    row = table.loc["length"]
    assert row["upper"] - row["coefficient"] == pytest.approx(1.6448536 * row["standard_error"])
    assert row["odds_ratio_lower"] == pytest.approx(np.exp(row["lower"]))
    assert row["elo"] == pytest.approx(400 / np.log(10) * row["coefficient"])
    raw = fit_bradley_terry(votes, features=FEATURES, normalize=False).coefficients(level=0.9)
    np.testing.assert_allclose(table["coefficient"] / table["unit"], raw["coefficient"], rtol=1e-7)


class TestProbabilities:
    def test_they_are_those_of_the_formulas(self, votes):
        fit = fit_bradley_terry(votes, features=FEATURES, ties="davidson")
        a, b = fit.ratings.index[[0, 3]]
        raw = fit.coefficients()["coefficient"] / fit.coefficients()["unit"]
        z = fit.logits[a] - fit.logits[b] + 2 * raw["length"] + raw["position"]
        found = fit.outcome_probabilities(a, b, {"length": 2.0, "position": 1.0})
        total = np.exp(z / 2) + np.exp(-z / 2) + np.exp(fit.tie_parameter)
        assert found["win"] == pytest.approx(np.exp(z / 2) / total)
        assert found["tie"] == pytest.approx(np.exp(fit.tie_parameter) / total)
        assert found["expected"] == pytest.approx(found["win"] + found["tie"] / 2)
        half = fit_bradley_terry(votes, features=FEATURES)
        assert half.outcome_probabilities(a, b)["expected"] == pytest.approx(half.win_probability.loc[a, b])

    def test_unknown_names(self, votes):
        fit = fit_bradley_terry(votes, features=FEATURES)
        a, b = fit.ratings.index[:2]
        with pytest.raises(ValueError, match="no covariate 'size'; the fit has 'length', 'markup', 'position'"):
            fit.outcome_probabilities(a, b, {"size": 1})
        with pytest.raises(ValueError, match=r"feature 'length' must be finite, got inf$"):
            fit.outcome_probabilities(a, b, {"length": np.inf})
        with pytest.raises(ValueError, match="no model 'nobody' on the board of 6"):
            fit.outcome_probabilities("nobody", b)


class TestRefused:
    @pytest.mark.slow
    def test_what_the_models_decide(self, votes):
        own = votes["model_a"].str[-1].astype(float) - votes["model_b"].str[-1].astype(float)
        with pytest.raises(DataError, match="the models and other features determine 'own'"):
            fit_bradley_terry(votes.assign(own=own), features=["length", "own"])
        ridge = fit_bradley_terry(votes.assign(own=own), features=["own"], feature_ridge=1.0)
        assert ridge.converged

    @pytest.mark.slow
    def test_tie_models_need_ties_and_votes(self, votes):
        with pytest.raises(ValueError, match="ties must be one of 'half', 'davidson', 'rao_kupper', got 'drop'"):
            fit_bradley_terry(votes, ties="drop")
        decided = votes[votes["winner"] != "tie"]
        with pytest.raises(DataError, match=r"no ties among [\d,]+ battles of rated models: no tie model fits"):
            fit_bradley_terry(decided, ties="davidson")
        soft = votes.assign(target=np.linspace(0, 1, len(votes))).drop(columns="winner")
        with pytest.raises(DataError, match=r"targets are neither 0, 1/2 nor 1 \(first in row 1; rows count from 0\)"):
            fit_bradley_terry(soft, ties="rao_kupper")
        assert fit_bradley_terry(soft, features=["length"]).converged

    def test_a_covariate_twice(self, votes):
        with pytest.raises(DataError, match="the models and other features determine 'markup'"):
            fit_bradley_terry(votes.assign(markup=2 * votes["length"]), features=FEATURES)

    def test_ridges(self, votes):
        with pytest.raises(ValueError, match="feature_ridge must be >= 0, got -1"):
            fit_bradley_terry(votes, features=["length"], feature_ridge=-1)


def test_models_that_the_data_cannot_place(votes):
    """An undefeated model and one that nobody met, beside a group with a covariate."""
    more = pd.DataFrame(
        {
            "model_a": ["hero", "hero", "hermit"],
            "model_b": [votes["model_a"][0], votes["model_b"][0], "other"],
            "winner": ["model_a", "model_a", "tie"],
            "length": [0.3, -2.0, 1.0],
            "markup": [0, 3, -3],
        }
    )
    fit = fit_bradley_terry(pd.concat([votes, more], ignore_index=True), features=FEATURES, normalize=False)
    alone = fit_bradley_terry(votes, features=FEATURES, normalize=False)
    assert fit.ratings["hero"] == np.inf
    assert fit.ratings[["hermit", "other"]].isna().all()
    group = fit.logits.drop(["hero", "hermit", "other"])
    np.testing.assert_allclose(group, alone.logits, atol=1e-8)
    np.testing.assert_allclose(fit.coefficients()["coefficient"], alone.coefficients()["coefficient"], atol=1e-8)
    assert any("hero" in w for w in fit.warnings)


@pytest.mark.parametrize(
    "name", [pytest.param("food", marks=pytest.mark.slow), pytest.param("simple", marks=pytest.mark.slow), "llmfao"]
)
def test_davidson_is_newmans_model(data, name):
    """Scores of the published runs are exp(theta), their tie parameter v is nu / 2."""
    table = pd.read_csv(data / f"evalica_{name}.csv.gz")
    golden = (
        pd.read_csv(data / f"evalica_{name}_golden.csv.gz").query("algorithm == 'newman'").set_index("item")["score"]
    )
    table = table.rename(columns={"left": "model_a", "right": "model_b"})
    table["winner"] = table["winner"].map({"left": "model_a", "right": "model_b", "tie": "tie"})
    fit = fit_bradley_terry(table[["model_a", "model_b", "winner"]], ties="davidson")
    twin = np.log(golden)[fit.ratings.index.astype(golden.index.dtype)].to_numpy()
    assert fit.theta == pytest.approx(twin - twin.mean(), abs=2e-5)
    assert np.exp(fit.tie_parameter) / 2 == pytest.approx(
        {"simple": 3.461, "food": 0.0786, "llmfao": 0.7399}[name], abs=1e-3
    )


@pytest.mark.usefixtures("on_the_host")
def test_the_expected_result_of_every_pair(votes):
    fit = fit_bradley_terry(votes, ties="davidson")
    a, b = fit.ratings.index[[0, 4]]
    assert fit.win_probability.loc[a, b] == pytest.approx(fit.outcome_probabilities(a, b)["expected"])
    np.testing.assert_allclose(fit.win_probability + fit.win_probability.T, 1)


class TestExpectedScores:
    """Ratings of tie models are on other scales than that of expected scores."""

    @pytest.mark.usefixtures("on_the_host")
    def test_rao_and_kuppers_are_those_of_the_slightest_advantage(self, votes):
        fit = fit_bradley_terry(votes, ties="rao_kupper")
        one = fit.outcome_probabilities("model-1", "model-4")
        elo, t = fit.ratings["model-1"] - fit.ratings["model-4"], fit.tie_parameter
        assert one["win"] == pytest.approx(expit(elo * np.log(10) / 400 - t))
        assert one["loss"] == pytest.approx(expit(-elo * np.log(10) / 400 - t))

    @pytest.mark.usefixtures("on_the_host")
    def test_davidsons_expected_scores_are_closest_to_them(self, votes):
        """The plain fit to the expected scores of Davidson's model, as often as models met, is that of ties as half."""
        fit = fit_bradley_terry(votes, ties="davidson", gauge=("model-2", 1100.0))
        expected = fit.win_probability
        soft = votes.assign(
            target=[expected.loc[a, b] for a, b in zip(votes["model_a"], votes["model_b"], strict=True)]
        )
        projected = fit_bradley_terry(Battles.from_pandas(soft, target="target"), gauge=("model-2", 1100.0))
        np.testing.assert_allclose(fit.expected_score.ratings, projected.ratings, atol=1e-5)
        assert np.ptp(fit.ratings) > 1.1 * np.ptp(fit.expected_score.ratings)

    @pytest.mark.parametrize(("ties", "features"), [("davidson", ()), ("rao_kupper", FEATURES)])
    def test_they_are_those_of_ties_as_half_a_win(self, votes, ties, features):
        options = {"features": features, "ridge": 0.5, "gauge": "votes", "base": 1200.0, "reweight": True}
        fit = fit_bradley_terry(votes, ties=ties, **options)
        half = fit_bradley_terry(votes, **options)
        pd.testing.assert_series_equal(fit.expected_score.ratings, half.ratings)
        pd.testing.assert_series_equal(fit.expected_score.standard_errors, half.standard_errors)
        if features:
            assert half.expected_score is half


class TestScale:
    """Where covariates are raw, in millimetres or in miles."""

    @pytest.mark.parametrize("unit", [1e-6, 1e6])
    def test_of_a_raw_covariate(self, votes, unit):
        names = ["length", "markup", "weight"]  # three, as the other fits have
        one = fit_bradley_terry(votes, features=names, normalize=False, feature_ridge=0.5)
        own = votes.assign(**votes[names] * unit)
        other = fit_bradley_terry(own, features=names, normalize=False, feature_ridge=0.5 * unit**2)
        assert other.converged
        assert other.theta == pytest.approx(one.theta, abs=1e-7)
        for name in ("coefficient", "standard_error", "lower", "upper"):
            np.testing.assert_allclose(other.coefficients()[name] * unit, one.coefficients()[name], rtol=1e-6)


@pytest.mark.usefixtures("on_the_host")
@pytest.mark.parametrize(("winners", "n"), [(["model_a", "model_b"], 5), (["model_a"], 1)])
def test_a_covariate_that_decides_its_battles(votes, winners, n):
    """All are won by the side that has it: no finite coefficient; the ratings are those of the others."""
    decided = np.flatnonzero(votes["winner"].isin(winners))[:n]
    rare = np.zeros(len(votes))
    rare[decided] = np.where(votes["winner"].iloc[decided] == "model_a", 1.0, -1.0)
    fit = fit_bradley_terry(votes.assign(rare=rare), features=["length", "markup", "rare"])
    row = fit.coefficients().loc["rare"]
    assert row["coefficient"] == np.inf
    assert row[["standard_error", "lower", "upper"]].isna().all()
    assert any("'rare': the side that has more of it won all its battles" in w for w in fit.warnings)
    rest = fit_bradley_terry(votes.drop(index=decided), features=["length", "markup"])
    assert fit.theta == pytest.approx(rest.theta, abs=1e-6)
