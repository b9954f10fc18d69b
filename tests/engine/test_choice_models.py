"""Models by their log-probabilities: beside the fits that have kernels of their own, and what is refused."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from jax.nn import log_sigmoid, log_softmax

import jaxeval
from jaxeval import Battles, ChoiceModel, DataError

ELO = 400 / np.log(10)


def difference(parameter, battle):
    return parameter["strength"][battle["model_a"]] - parameter["strength"][battle["model_b"]]


def plain(parameter, battle):
    z = difference(parameter, battle)
    return log_sigmoid(z), log_sigmoid(-z)


def rao_kupper(parameter, battle):
    z, band = difference(parameter, battle), jnp.exp(parameter["log_band"][0])
    win, loss = log_sigmoid(z - band), log_sigmoid(-z - band)
    return win, jnp.log1p(-jnp.exp(win) - jnp.exp(loss)), loss


def davidson(parameter, battle):
    z = difference(parameter, battle)
    return tuple(log_softmax(jnp.stack([z / 2, jnp.broadcast_to(parameter["t"][0], z.shape), -z / 2]), 0))


def side_advantage(parameter, battle):
    z = difference(parameter, battle) + parameter["side"][0]
    return log_sigmoid(z), log_sigmoid(-z)


PLAIN = ChoiceModel(plain, {"strength": "model"})


@pytest.fixture(scope="module")
def battles():
    table = jaxeval.simulate_votes(1_500, 5, seed=3)
    return Battles.from_pandas(table.assign(voter=np.arange(1_500) // 6))


@pytest.mark.parametrize("groups", [{}, {"cluster": "voter"}, {"strata": "language"}], ids=str)
def test_bradley_terry(battles, groups):
    fit, twin = jaxeval.fit_model(PLAIN, battles, **groups), jaxeval.fit_bradley_terry(battles, **groups)
    np.testing.assert_allclose(fit.parameters, twin.strengths, atol=1e-12)
    np.testing.assert_allclose(ELO * fit.standard_errors, twin.standard_errors, rtol=1e-9)
    assert fit.log_likelihood == pytest.approx(twin.log_likelihood, rel=1e-12)
    assert fit.converged
    assert fit.warnings == []


def test_a_ridge_holds_a_model_that_won_all():
    battles = Battles.from_pandas(
        pd.DataFrame({"model_a": [*"aaab"], "model_b": [*"bccc"], "winner": ["model_a"] * 3 + ["tie"]})
    )
    fit, twin = jaxeval.fit_model(PLAIN, battles, ridge=0.1), jaxeval.fit_bradley_terry(battles, ridge=0.1)
    np.testing.assert_allclose(fit.parameters, twin.strengths, atol=1e-9)
    (warning,) = jaxeval.fit_model(PLAIN, battles).warnings
    assert "has not converged: strength a may have no bound; a ridge > 0" in warning


@pytest.mark.parametrize(
    ("function", "ties", "name", "parameter"),
    [(rao_kupper, "rao_kupper", "log_band", np.exp), (davidson, "davidson", "t", np.asarray)],
    ids=["rao_kupper", "davidson"],
)
def test_tie_models(battles, function, ties, name, parameter):
    model = ChoiceModel(function, {"strength": "model", name: 1})
    fit, twin = jaxeval.fit_model(model, battles), jaxeval.fit_bradley_terry(battles, ties=ties)
    np.testing.assert_allclose(fit.parameters["strength"], twin.strengths, atol=1e-9)
    assert parameter(fit.parameters[name].iloc[0]) == pytest.approx(twin.tie_parameter, abs=1e-9)
    np.testing.assert_allclose(ELO * fit.standard_errors["strength"], twin.standard_errors, rtol=1e-6)
    assert fit.log_likelihood == pytest.approx(twin.log_likelihood, rel=1e-12)


def test_draws_are_those_of_a_panel_of_one_judge():
    """Which draws the same verdicts, and refits them by derivatives that are written by hand."""
    verdicts = jaxeval.simulate_panel(500, 5, discriminations=[1.0], side_biases=[0.4], seed=1)
    panel = jaxeval.fit_judge_panel(verdicts, 40, cluster=False, progress=False)
    model = ChoiceModel(side_advantage, {"strength": "model", "side": 1})
    votes = Battles.from_pandas(verdicts.rename(columns={"verdict": "winner"}))
    draws = jaxeval.bootstrap(votes, 40, model=model, progress=False)
    np.testing.assert_allclose(draws.of(parameter="strength").draws, panel.draws_logit, atol=1e-6)
    np.testing.assert_allclose(draws.draws[:, -1], panel.joint_judges.of(measure="side_bias").draws[:, 0], atol=1e-6)
    assert draws.converged.all()


@pytest.mark.slow
def test_resamples_without_a_fit_are_left_out_and_told(battles):
    thin = battles.filter(lambda table: np.arange(len(table)) < 60)
    draws = jaxeval.bootstrap(thin, 60, model=PLAIN, progress=False)
    twin = jaxeval.bootstrap(thin, 60, progress=False)
    assert 0 < draws.converged.mean() < 1
    assert twin.degenerate.to_numpy().any()
    assert np.isnan(draws.draws[~draws.converged]).all()
    assert np.isfinite(draws.draws[draws.converged]).all()
    assert any("of the resamples have no fit" in warning for warning in draws.warnings)


@pytest.mark.slow
def test_slices_and_columns(battles):
    def by_language(parameter, battle):
        z = difference(parameter, battle) + parameter["side"][battle["language"]] + 0.1 * battle["turn"]
        return log_sigmoid(z), log_sigmoid(-z)

    table = battles.to_pandas().assign(turn=np.arange(battles.n_rows) % 3)
    model = ChoiceModel(by_language, {"strength": "model", "side": "language"}, columns=["turn"])
    fit = jaxeval.fit_model(model, table)
    languages = sorted(table["language"].unique())
    assert list(fit.parameters["side"].index) == languages
    alone = jaxeval.bootstrap(table, 8, model=model, by="language", progress=False)
    assert list(alone) == languages
    own = fit.parameters["side"].index == "German"
    assert np.isfinite(alone["German"].of(parameter="side").estimate).tolist() == own.tolist()
    assert "no battle says anything of" in alone["German"].warnings[0]


def two_levels(parameter, battle):
    z = difference(parameter, battle) + parameter["side"][0] - parameter["other"][0]
    return log_sigmoid(z), log_sigmoid(-z)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (ChoiceModel(two_levels, {"strength": "model", "side": 1, "other": 1}), DataError, "determine side 0, other 0"),
        (ChoiceModel(lambda p, b: (difference(p, b),) * 2, {"strength": "model"}), ValueError, "must add up to 1"),
        (ChoiceModel(lambda p, b: plain(p, b)[:1], {"strength": "model"}), ValueError, "two log-probabilities"),
        (ChoiceModel(plain, {"strength": "model", "side": "sides"}), DataError, "no column 'sides'"),
        (plain, TypeError, "model must be a ChoiceModel"),
    ],
    ids=["open", "sum", "one", "column", "function"],
)
def test_what_is_refused(battles, model, error, message):
    with pytest.raises(error, match=message):
        jaxeval.fit_model(model, battles)


def test_options_that_are_refused(battles):
    with pytest.raises(ValueError, match="ties= is about Bradley-Terry ratings"):
        jaxeval.bootstrap(battles, 10, model=PLAIN, ties="davidson")
    with pytest.raises(ValueError, match="takes 'model', a column, or how many"):
        ChoiceModel(plain, {"strength": 0})
    with pytest.raises(ValueError, match="start names no parameter 'strengths'"):
        ChoiceModel(plain, {"strength": "model"}, start={"strengths": 1.0})
    with pytest.raises(TypeError, match="must be a function"):
        ChoiceModel("plain", {"strength": "model"})
    soft = Battles.from_pandas(pd.DataFrame({"model_a": [*"ab"], "model_b": [*"ba"], "target": [0.3, 0.6]}))
    with pytest.raises(DataError, match="wins, ties and losses"):
        jaxeval.fit_model(ChoiceModel(davidson, {"strength": "model", "t": 1}), soft)
