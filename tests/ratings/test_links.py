"""The probit: strengths of Thurstone's Case V, against statsmodels and against plain Newton's method."""

import json

import jax
import numpy as np
import pandas as pd
import pytest
import twins
from command_line import run
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr

from jaxeval import Battles, bootstrap, fit_bradley_terry, leaderboard, read_ratings, simulate_battles
from jaxeval.kernels.batch.refits import draw
from jaxeval.ratings.boards import fit_boards
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.pair_refits import dense_refits
from jaxeval.ratings.vote_groups import VoteGroups

#: Elo per probit.
UNIT = 1.702 * 400 / np.log(10)

#: Wins of the row against the column.
WINS = np.array([[0, 9, 6, 7, 12], [5, 0, 8, 3, 9], [4, 7, 0, 6, 5], [3, 4, 9, 0, 8], [1, 2, 6, 5, 0]])


def votes():
    """A row per battle, with clusters and a covariate."""
    rows = [
        (f"m{i}", f"m{j}", winner)
        for i in range(5)
        for j in range(i + 1, 5)
        for winner, times in (("model_a", WINS[i, j]), ("model_b", WINS[j, i]))
        for _ in range(times)
    ]
    table = pd.DataFrame(rows, columns=["model_a", "model_b", "winner"])
    k = np.arange(len(table))
    return table.assign(group=k % 7, x=(k * 5 % 9 - 4) / 4)


# statsmodels 0.15.0. y is whether side A won, X has rows e_a - e_b, E = vstack([eye(4), -ones(4)]) makes the mean 0.
# theta is E @ params of sm.GLM(y, X @ E, family=sm.families.Binomial(Probit())).fit(tol=1e-14). The errors are those of
# sm.Probit(y, X @ E).fit(method="newton", tol=1e-14): as they are; with cov_type="HC0"; and with cov_type="cluster",
# cov_kwds={"groups": group, "use_correction": False}. With the covariate: sm.Probit(y, np.column_stack([X @ E, x])).
STATSMODELS = {
    "theta": [0.487316138590543, 0.08266645619170118, -0.1463873250624157, 0.02603695753308241, -0.4496322272529109],
    "log_likelihood": -74.54812398966018,
    "hessian": [
        0.15860745240104235,
        0.15132013687799883,
        0.14258947318286735,
        0.15356416445640916,
        0.15633395859494031,
    ],
    "sandwich": [0.1560195882933937, 0.1493149797990744, 0.1486569361112732, 0.15472557737255338, 0.15043080257030292],
    "cluster": [
        0.09108909705360459,
        0.08531702148501037,
        0.08457278054268257,
        0.09045727844902901,
        0.10909800535319815,
    ],
}
STATSMODELS_WITH_X = {
    "theta": [0.4864075649520023, 0.08577881510061873, -0.1490473831315298, 0.029256933280724852, -0.4523959302018161],
    "sandwich": [
        0.15631374631928316,
        0.14917938399544078,
        0.14874070576097614,
        0.15491346408291923,
        0.1505022904447404,
    ],
    "coefficient": -0.0719155770711476,
    "coefficient_error": 0.18199340303484707,
    "log_likelihood": -74.47452890250221,
}


@pytest.mark.parametrize("method", ["dense", pytest.param("sparse", marks=pytest.mark.slow)])
def test_equal_to_a_probit_of_statsmodels(method):
    battles = Battles.from_pandas(votes())
    fit = fit_bradley_terry(battles, link="probit", method=method)
    assert fit.converged
    assert list(fit.strengths.index) == [f"m{i}" for i in range(5)]
    np.testing.assert_allclose(fit.strengths, STATSMODELS["theta"], rtol=0, atol=1e-8)
    np.testing.assert_allclose(fit.ratings, 1000 + UNIT * fit.strengths, rtol=1e-12)
    np.testing.assert_allclose(fit.logits, 1.702 * fit.strengths, rtol=1e-12)
    assert fit.log_likelihood == pytest.approx(STATSMODELS["log_likelihood"], abs=1e-10)
    np.testing.assert_allclose(fit.standard_errors_hessian, UNIT * np.array(STATSMODELS["hessian"]), rtol=1e-7)
    np.testing.assert_allclose(fit.standard_errors, UNIT * np.array(STATSMODELS["sandwich"]), rtol=1e-7)
    clustered = fit_bradley_terry(battles, link="probit", method=method, cluster="group")
    n = clustered.n_clusters  # of equal size
    cluster = np.sqrt(n / (n - 1)) * np.array(STATSMODELS["cluster"])
    np.testing.assert_allclose(clustered.standard_errors, UNIT * cluster, rtol=1e-7)
    difference = fit.strengths.to_numpy()[:, None] - fit.strengths.to_numpy()
    np.testing.assert_allclose(fit.win_probability, ndtr(difference), rtol=1e-12)


@pytest.mark.slow
def test_covariates_beside_the_strengths():
    fit = fit_bradley_terry(Battles.from_pandas(votes()), link="probit", features=["x"], normalize=False)
    np.testing.assert_allclose(fit.strengths, STATSMODELS_WITH_X["theta"], rtol=0, atol=1e-8)
    np.testing.assert_allclose(fit.standard_errors, UNIT * np.array(STATSMODELS_WITH_X["sandwich"]), rtol=1e-7)
    row = fit.coefficients().loc["x"]
    assert row["coefficient"] == pytest.approx(STATSMODELS_WITH_X["coefficient"], abs=1e-8)
    assert row["standard_error"] == pytest.approx(STATSMODELS_WITH_X["coefficient_error"], rel=1e-7)
    assert row["elo"] == pytest.approx(UNIT * row["coefficient"])
    assert np.isnan(row["odds_ratio"])
    assert fit.log_likelihood == pytest.approx(STATSMODELS_WITH_X["log_likelihood"], abs=1e-10)
    theta = fit.strengths
    probability = fit.outcome_probabilities("m0", "m4", {"x": 2.0})
    assert probability["win"] == pytest.approx(ndtr(theta["m0"] - theta["m4"] + 2 * row["coefficient"]), rel=1e-12)
    np.testing.assert_allclose(fit.win_probability.loc["m0", "m4"], ndtr(theta["m0"] - theta["m4"]), rtol=1e-12)


@pytest.mark.usefixtures("on_the_host")
def test_a_covariate_that_decides_every_battle_has_no_finite_coefficient():
    table = votes()
    table["x"] = np.where(table["winner"] == "model_a", 1.0, -1.0) + 0.1 * table["x"]
    fit = fit_bradley_terry(Battles.from_pandas(table), link="probit", features=["x"])
    assert fit.coefficients().loc["x", "coefficient"] == np.inf
    assert any("no finite coefficient" in text for text in fit.warnings)


def scipy_probit(wins, ridge=0.0):
    """(M,) strengths of mean zero, by an optimiser that is given the value and the gradient only."""

    def loss(theta):
        z = theta[:, None] - theta
        gained = wins * np.exp(-(z**2) / 2 - np.log(2 * np.pi) / 2 - log_ndtr(z))
        value = (wins * log_ndtr(z)).sum() - ridge * theta @ theta
        return -value, -(gained.sum(1) - gained.sum(0) - 2 * ridge * theta)

    found = minimize(loss, np.zeros(len(wins)), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    return found - found.mean()


@pytest.fixture(scope="module")
def soft():
    """Soft targets with weights, some pairs of which never met."""
    rng = np.random.default_rng(0)
    n = 400
    a, b = rng.integers(0, 7, (2, n))
    table = pd.DataFrame({"model_a": a, "model_b": b, "target": rng.beta(1, 1, n), "weight": rng.uniform(0.5, 2, n)})
    table = table[(a != b) & (a + b != 6)].astype({"model_a": str, "model_b": str})
    return Battles.from_pandas(table, weight="weight")


@pytest.mark.parametrize("method", ["dense", pytest.param("sparse", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("ridge", "reweight"), [(0.0, False), (0.0, True), (0.7, False)])
def test_soft_targets_weights_and_a_ridge(soft, method, ridge, reweight):
    fit = fit_bradley_terry(soft, ridge, link="probit", reweight=reweight, method=method)
    _, wins = soft.cells.tables(soft.n_models)
    if reweight:
        wins = wins / 50  # no pair has more battles
    np.testing.assert_allclose(fit.strengths, twins.newton(wins, ridge, "probit"), rtol=0, atol=1e-9)
    np.testing.assert_allclose(fit.strengths, scipy_probit(wins, ridge), rtol=0, atol=1e-5)
    assert fit.settings.link == "probit"


@pytest.fixture(scope="module")
def often():
    """So many battles that no resample sets a model apart."""
    return Battles.from_pandas(pd.concat([votes()] * 10))


@pytest.mark.parametrize("method", ["dense", pytest.param("sparse", marks=pytest.mark.slow)])
def test_models_without_a_finite_strength_are_the_same_and_tails_hold(method):
    """One model is undefeated, one winless, one lost one battle of 100,000 against a weak one."""
    wins = np.zeros((6, 6))
    wins[:3, :3] = [[0, 30, 20], [10, 0, 25], [15, 12, 0]]
    wins[3, 0], wins[1, 4] = 5, 3
    wins[5, 2], wins[2, 5] = 1e5, 1
    first, second = np.nonzero(wins)
    table = pd.DataFrame({"model_a": first, "model_b": second, "target": 1.0, "weight": wins[first, second]})
    battles = Battles.from_pandas(table.astype({"model_a": str, "model_b": str}), weight="weight")
    fit = fit_bradley_terry(battles, link="probit", method=method)
    expected = fit_bradley_terry(battles)
    assert fit.converged
    pd.testing.assert_series_equal(fit.standing, expected.standing)
    assert fit.strengths[["3", "4"]].tolist() == [np.inf, -np.inf]
    rated = [0, 1, 2, 5]
    twin = twins.newton(wins[np.ix_(rated, rated)], link="probit")
    np.testing.assert_allclose(fit.strengths.iloc[rated], twin, rtol=0, atol=1e-8)
    assert fit.strengths["5"] - fit.strengths["2"] == pytest.approx(4.264, abs=0.01)  # F^-1(1 - 1e-5)


def resamples(battles, numbers, **options):
    """(M, M) wins of the resamples, as the library draws them."""
    own = BootstrapOptions(**options)
    boards = fit_boards([(battles.models, battles.cells)], own)
    refits = dense_refits(boards, [""], [VoteGroups()], own)
    m = battles.n_models
    with jax.enable_x64(True):
        for r in numbers:
            n, wins = draw(refits.problem, refits.form, np.uint64(own.seed), np.int32(0), np.int64(r))
            yield np.asarray(n)[:m, :m], np.asarray(wins)[:m, :m]


@pytest.mark.parametrize(
    ("options", "atol"),
    [({}, 1e-7), pytest.param({"method": "sparse"}, 1e-7, marks=pytest.mark.slow), ({"ridge": 0.3}, 1e-7),
     ({"dtype": "float32"}, 3e-5)],
    ids=["dense", "sparse", "ridge", "single"],
)  # fmt: skip
def test_draws_are_the_naive_refits(often, options, atol):
    battles = often
    result = bootstrap(battles, 40, seed=3, link="probit", progress=False, **options)
    assert result.converged.all()
    assert result.settings.link == "probit"
    ridge = options.get("ridge", 0.0)
    numbers = [0, 7, 39]
    for r, (_, wins) in zip(numbers, resamples(battles, numbers, seed=3), strict=True):
        np.testing.assert_allclose((result.draws[r] - 1000) / UNIT, twins.newton(wins, ridge, "probit"), atol=atol)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["dense", pytest.param("sparse", marks=pytest.mark.slow)])
def test_draws_of_a_thin_board(method):
    """By Newton's method, and with models that a resample separates from the others."""
    battles = simulate_battles(60, 12, seed=2)
    result = bootstrap(battles, 60, link="probit", progress=False, method=method)
    assert result.converged.all()
    assert result.degenerate.to_numpy().any()
    fit = result.fit
    whole, won = battles.cells.tables(12)
    weight = np.where(twins.standing(whole, won) == 0, whole.sum(1), 0)
    for r, (n, wins) in enumerate(resamples(battles, range(20))):
        rated = twins.standing(n, wins, weight) == 0
        np.testing.assert_array_equal(np.isfinite(result.draws_logit[r]), rated & np.isfinite(fit.strengths))
        if rated.any():
            twin = twins.newton(wins[np.ix_(rated, rated)], link="probit")
            own = result.draws_logit[r, rated]
            np.testing.assert_allclose(own - own.mean(), twin, rtol=0, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("n_votes", [3_000, 150])
def test_draws_with_covariates(n_votes):
    """By chord steps, and on a thin board by the other solvers."""
    battles = Battles.from_pandas(votes().sample(n_votes, replace=True, random_state=0))
    options = {"link": "probit", "progress": False}
    held = bootstrap(battles, 60, features=["x"], feature_ridge=np.inf, **options)
    free = bootstrap(battles, 60, features=["x"], **options)
    for result in (held, free):
        assert result.converged.all()
        # A standard deviation of 60 draws is known to 9 %.
        np.testing.assert_allclose(result.standard_errors, result.fit.standard_errors, rtol=5 * 0.09)
    error = free.fit.coefficients()["standard_error"]
    np.testing.assert_allclose(free.coefficients()["standard_error"], error, rtol=5 * 0.09)
    plain = fit_bradley_terry(battles, link="probit")
    np.testing.assert_allclose(held.fit.strengths, plain.strengths, rtol=0, atol=1e-8)


@pytest.mark.slow
def test_slices_have_the_link():
    table = pd.concat([votes()] * 4, ignore_index=True)
    table["language"] = np.where(np.arange(len(table)) % 3 > 0, "en", "de")
    battles = Battles.from_pandas(table)
    boards = bootstrap(battles, 30, by="language", link="probit", progress=False)
    for language, board in boards.items():
        own = Battles.from_pandas(table[table["language"] == language])
        np.testing.assert_allclose(board.fit.strengths, fit_bradley_terry(own, link="probit").strengths, atol=1e-8)


def test_leaderboards_have_the_link(often):
    board = leaderboard(often, n_resamples=40, link="probit", progress=False)
    assert board.attrs["settings"]["link"] == "probit"
    ratings = fit_bradley_terry(often, link="probit").ratings
    np.testing.assert_allclose(board["rating"], ratings[board["model"]], atol=1e-6)


def test_a_start_is_in_elo_whatever_the_link(soft):
    logit, probit = fit_bradley_terry(soft), fit_bradley_terry(soft, link="probit")
    again = fit_bradley_terry(soft, link="probit", start=probit)
    np.testing.assert_allclose(again.strengths, probit.strengths, atol=1e-8)
    assert again.n_steps < probit.n_steps
    other = fit_bradley_terry(soft, link="probit", start=logit)
    np.testing.assert_allclose(other.strengths, probit.strengths, atol=1e-8)
    assert other.n_steps <= probit.n_steps


def test_files_hold_the_link(often, tmp_path):
    fit_bradley_terry(often, link="probit").save(tmp_path / "ratings.json")
    assert read_ratings(tmp_path / "ratings.json").attrs["settings"]["link"] == "probit"


@pytest.mark.slow
def test_the_command_takes_a_link(tmp_path):
    votes().to_csv(tmp_path / "votes.csv", index=False)
    arguments = ["leaderboard", str(tmp_path / "votes.csv"), "--link", "probit", "--resamples", "20"]
    result = run(*arguments, "--out", tmp_path / "board.json")
    assert result.exit_code == 0, result.output
    assert "probit link" in result.output
    assert "Probits" in run(*arguments, "--features", "x").output
    assert json.loads((tmp_path / "board.json").read_text())["settings"]["link"] == "probit"
    other = run(*arguments, "--ties", "davidson")
    assert other.exit_code != 0
    assert "take link='logit', or ties='half'" in other.output


def test_unknown_links_and_tie_models_of_probits_are_errors():
    battles = Battles.from_pandas(votes())
    with pytest.raises(ValueError, match="link must be one of 'logit', 'probit', got 'cloglog'"):
        fit_bradley_terry(battles, link="cloglog")
    with pytest.raises(ValueError, match="ties='rao_kupper' is a model of logits, got link='probit'"):
        bootstrap(battles, 10, link="probit", ties="rao_kupper")
