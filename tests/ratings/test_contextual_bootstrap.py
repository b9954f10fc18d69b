"""The bootstrap with covariates and tie models: draws against naive refits, and what must not change a draw."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import log_expit
from styled import FEATURES, M, N, styled

from jaxeval import Battles, DataError, bootstrap, fit_bradley_terry, leaderboard, simulate_battles
from jaxeval.data.features import design
from jaxeval.execution.lanes import LaneRun
from jaxeval.execution.precision import double_precision
from jaxeval.kernels.batch import contextual, refits
from jaxeval.kernels.batch.refits import Solver
from jaxeval.ratings import contextual_boards as contextual_module
from jaxeval.ratings.contextual_boards import contextual_refits, fit_contextual_boards
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.slices import compress
from jaxeval.ratings.vote_groups import vote_groups

ELO = 400 / np.log(10)


@pytest.fixture(scope="module")
def votes():
    return styled()


@pytest.fixture(scope="module")
def battles(votes):
    return Battles.from_pandas(votes)


# As many resamples as a chunk holds, or more: all compile once.
CHUNK = 32
#: Of the boards whose standard errors are compared: each is known to 6 %.
RESAMPLES = 128


@pytest.fixture(scope="module")
def drawn(battles):
    return bootstrap(battles, RESAMPLES, features=FEATURES)


@pytest.fixture(scope="module")
def tied(battles):
    return bootstrap(battles, RESAMPLES, features=FEATURES, ties="davidson")


def weights_of(battles, features, ties, scheme, number, cluster=None, strata=None, seed=0):
    """(C,) weights of the cells in one resample as the bootstrap draws it, and the cells."""
    covariates = design(battles, features, normalize=True)
    cells, cell_of_row = compress(battles, covariates.matrix)(slice(None))
    options = BootstrapOptions(features=features, ties=ties, scheme=scheme)
    (fitted,) = fit_contextual_boards([(battles.models, cells)], covariates, options)
    groups = vote_groups(battles, cluster, strata)(slice(None), cell_of_row)
    plan = contextual_refits(fitted, "", groups, options)
    with double_precision():
        count = np.asarray(
            refits.draw_one(contextual.count_rows, plan.problem, plan.form, np.uint64(seed), np.int64(number))
        )
    rows = plan.problem.data
    used = np.asarray(rows.factor) > 0
    feature, target = np.asarray(rows.feature)[used], np.asarray(rows.target)[used]
    group = np.broadcast_to(np.arange(rows.first.size).reshape(*rows.first.shape, 1), used.shape)[used]
    first, second = rows.first.reshape(-1)[group], rows.second.reshape(-1)[group]
    return (count * np.asarray(rows.factor))[used], first, second, target, feature


def refit(weight, first, second, target, feature, ties):
    d = feature.shape[1]

    def loss(p):
        z = p[first] - p[second] + feature @ p[M : M + d]
        if ties == "half":
            each = target * log_expit(z) + (1 - target) * log_expit(-z)
        else:
            each = np.select([target == 1, target == 0], [z / 2, -z / 2], p[-1])
            each = each - np.logaddexp(np.logaddexp(z / 2, -z / 2), p[-1])
        return -(weight * each).sum()

    found = minimize(loss, np.zeros(M + d + (ties != "half")), method="BFGS", options={"gtol": 1e-5}).x
    return found[:M] - found[:M].mean(), found[M : M + d], found[-1]


@pytest.mark.parametrize(
    ("ties", "scheme", "cluster"),
    [pytest.param("half", "multinomial", None, marks=pytest.mark.slow), ("davidson", "multinomial", None),
     pytest.param("half", "multinomial", "prompt", marks=pytest.mark.slow),
     pytest.param("half", "bayesian", None, marks=pytest.mark.slow)],
)  # fmt: skip
def test_a_draw_is_the_refit_of_its_resample(battles, drawn, tied, ties, scheme, cluster):
    if (scheme, cluster) == ("multinomial", None):
        found = drawn if ties == "half" else tied
    else:
        found = bootstrap(battles, CHUNK, scheme=scheme, cluster=cluster, features=FEATURES, ties=ties)
    assert found.converged.all()
    for number in (0, 5):
        own = weights_of(battles, FEATURES, ties, scheme, number, cluster)
        if scheme == "multinomial" and cluster is None:
            assert own[0].sum() == N
        theta, coefficients, tie = refit(*own, ties)
        assert found.draws[number] - 1000 == pytest.approx(ELO * theta, abs=2e-3)
        assert found.coefficient_draws[number] == pytest.approx(coefficients, abs=1e-5)
        if ties != "half":
            assert found.tie_draws[number] == pytest.approx(tie, abs=1e-5)


@pytest.mark.slow
def test_weights_that_differ_by_many_powers_of_ten():
    """Without its heavy battles, a resample joins two groups by light ones: whole numbers of them are the odds."""
    rng = np.random.default_rng(0)
    pairs = np.repeat([["a", "b"], ["a", "c"], ["b", "c"], ["d", "e"], ["d", "f"], ["e", "f"], ["a", "d"]], 40, axis=0)
    rows = pd.DataFrame(pairs[:251], columns=["model_a", "model_b"])
    rows["winner"] = rng.choice(["model_a", "model_b"], len(rows))
    rows["weight"] = np.where(rows.index < 243, 1.0, 1e-10)
    rows.loc[240:, "winner"] = ["model_a", "model_a", "model_b", *4 * ["model_a"], *4 * ["model_b"]]
    rows["length"] = np.where(rows.index < 240, rng.normal(size=len(rows)), 0.0)  # as long where groups meet
    found = bootstrap(Battles.from_pandas(rows, weight="weight"), 200, features=["length"])
    gap = (found.draws[:, 0] - found.draws[:, 3]) / ELO
    odds = np.log(np.divide.outer(np.arange(1, 40), np.arange(1, 40))).ravel()
    odds = np.concatenate([odds, odds + np.log(1e10), odds - np.log(1e10)])
    known = gap[np.isfinite(gap)]
    assert len(known) > 100
    assert abs(known[:, None] - odds).min(1).max() < 1e-4


def test_clusters_of_one_battle_are_battles(battles, votes, drawn):
    alone = Battles.from_pandas(votes.assign(one=np.random.default_rng(0).permutation(N)))
    found = bootstrap(alone, CHUNK, cluster="one", features=FEATURES)
    np.testing.assert_array_equal(found.draws, drawn.draws[:CHUNK])


class TestErrors:
    """Four standard errors of the ratio of a bootstrap standard error to the sandwich's."""

    AGREE = 4 / np.sqrt(2 * RESAMPLES)

    def test_of_ratings_and_coefficients(self, drawn):
        assert (drawn.standard_errors / drawn.fit.standard_errors).to_numpy() == pytest.approx(1, abs=self.AGREE)
        ratio = drawn.coefficients()["standard_error"] / drawn.fit.coefficients()["standard_error"]
        assert ratio.to_numpy() == pytest.approx(1, abs=self.AGREE)

    def test_of_the_tie_parameter(self, tied):
        ratio = tied.tie_draws.std(ddof=1) / tied.fit.tie_parameter_standard_error
        assert ratio == pytest.approx(1, abs=self.AGREE)
        assert (tied.standard_errors / tied.fit.standard_errors).to_numpy() == pytest.approx(1, abs=self.AGREE)

    def test_intervals_are_quantiles(self, drawn):
        table = drawn.coefficients(level=0.9)
        low, high = np.quantile(drawn.coefficient_draws, [0.05, 0.95], axis=0)
        np.testing.assert_allclose(table["lower"], low, atol=0.1 * table["standard_error"].min())
        np.testing.assert_allclose(table["upper"], high, atol=0.1 * table["standard_error"].min())
        np.testing.assert_array_equal(table["coefficient"], drawn.fit.coefficients()["coefficient"])


def test_few_battles_of_a_tie_model_have_the_outer_ends_of_draws_and_fit(tied, monkeypatch):
    """Of 100 boards of Rao and Kupper's model, with 12 battles that somebody won, draws alone missed .10."""
    draws, fit = (tied.interval(kind=kind) for kind in ("percentile", "wald"))
    pd.testing.assert_frame_equal(tied.interval(), draws)
    monkeypatch.setattr("jaxeval.ratings.bootstrap_result.ENOUGH_BATTLES", np.inf)
    assert tied.interval()["lower"].equals(np.fmin(draws["lower"], fit["lower"]))
    assert tied.interval()["upper"].equals(np.fmax(draws["upper"], fit["upper"]))
    assert not tied.interval().equals(draws)


def test_only_a_tie_model_has_a_tie_parameter(drawn, tied):
    assert drawn.joint_coefficients.names.tolist() == list(drawn.fit.context.features)
    table = drawn.joint_coefficients.table(0.9)
    np.testing.assert_array_equal(table["lower"], drawn.coefficients(0.9)["lower"].loc[table.index])
    assert tied.joint_coefficients.names.tolist() == [*tied.fit.context.features, "tie parameter"]
    np.testing.assert_array_equal(tied.joint_coefficients.draws[:, -1], tied.tie_draws)


class TestInvariance:
    """Refits stop within 1e-8 logits of the maximum; 1e-5 Elo is three times that, on either side."""

    @pytest.mark.slow
    def test_of_other_slices(self, votes):
        both = bootstrap(votes, CHUNK, by="half", features=FEATURES)
        alone = bootstrap(votes[votes["half"] == 1], CHUNK, by="half", features=FEATURES, normalize=False)
        unit = both[1].fit.coefficients()["unit"].to_numpy()
        np.testing.assert_allclose(both[1].draws, alone[1].draws, rtol=0, atol=1e-5)
        np.testing.assert_allclose(both[1].coefficient_draws / unit, alone[1].coefficient_draws, rtol=0, atol=1e-7)

    def test_of_a_covariate_without_effect(self, battles, drawn):
        """Held at 0, the same rows give the plain board, in the same resamples."""
        held = bootstrap(battles, CHUNK, features=FEATURES, feature_ridge=np.inf)
        assert not held.coefficient_draws.any()
        plain = fit_bradley_terry(battles)
        np.testing.assert_allclose(held.fit.ratings, plain.ratings, rtol=0, atol=1e-6)


@pytest.fixture(scope="module")
def few():
    """30 votes between six models: resamples without losses, and some without battles."""
    return styled(30, seed=4)


@pytest.mark.slow
def test_sparse_boards(few):
    """Models that a resample cannot place are told, and the others' draws are refits without them."""
    battles = Battles.from_pandas(few)
    found = bootstrap(battles, CHUNK, features=["length"], ridge=0.0)
    assert found.n_by_slower_solvers == CHUNK
    assert found.degenerate_share.max() > 0
    assert any("no finite rating in some resamples" in w for w in found.warnings)
    checked = 0
    for number in np.flatnonzero(found.converged & np.isfinite(found.coefficient_draws).all(1))[:6]:
        weight, first, second, target, feature = weights_of(battles, ["length"], "half", "multinomial", number)
        rated = np.isfinite(found.draws[number])
        both = rated[first] & rated[second]
        theta, coefficients, _ = refit(weight * both, first, second, target, feature, "half")
        own = found.draws_logit[number, rated]
        np.testing.assert_allclose(own - own.mean(), theta[rated] - theta[rated].mean(), atol=1e-4)
        assert found.coefficient_draws[number] == pytest.approx(coefficients, abs=1e-4)
        checked += 1
    assert checked > 2


@pytest.mark.slow
def test_lanes_without_ties(votes):
    """One tie in 2,000 votes: a third of the resamples have none, and are as with ties as half a win."""
    ties = votes.index[votes["winner"] == "tie"]
    rare = Battles.from_pandas(votes.drop(index=ties[1:]).head(2000))
    half = bootstrap(rare, CHUNK, features=FEATURES)
    found = bootstrap(rare, CHUNK, features=FEATURES, ties="davidson")
    none = found.tie_draws == -np.inf
    assert 0 < none.sum() < CHUNK
    assert found.converged.all()
    np.testing.assert_allclose(found.draws[none], half.draws[none], rtol=0, atol=1e-4)
    assert any("of the resamples have no ties" in w for w in found.warnings)


def test_two_models_of_which_one_alone_wins():
    """Beside ties of any frequency nothing ends its lead: draws are infinite, and no steps run out."""
    won = pd.DataFrame({"model_a": "x", "model_b": "y", "winner": ["model_a"] * 4 + ["model_b"] + ["tie"] * 5})
    board = bootstrap(Battles.from_pandas(won), 200, ties="davidson")
    assert board.converged.all()
    lost = 1 - np.isfinite(board.draws[:, 0]).mean()
    one_alone = 0.9**10 + 0.6**10 - 0.5**10  # or nobody
    assert lost == pytest.approx(one_alone, abs=3 * (one_alone * (1 - one_alone) / 200) ** 0.5)
    np.testing.assert_array_equal(np.isnan(board.tie_draws), ~np.isfinite(board.draws[:, 0]))
    assert abs(board.draws_logit).max(where=np.isfinite(board.draws_logit), initial=0) < 3
    with pytest.raises(DataError, match="of two models, each must win a battle"):
        fit_bradley_terry(won.drop(index=4), ties="davidson")


@pytest.mark.slow
def test_a_covariate_of_few_battles(votes):
    """Resamples in which it decides all its battles have an infinite draw, and their ratings count."""
    decided = np.flatnonzero(votes["winner"] != "tie")[:5]
    rare = np.zeros(N)
    rare[decided] = np.where(votes["winner"].iloc[decided] == "model_a", 1.0, -1.0)
    rare[decided[0]] *= -1
    found = bootstrap(votes.assign(rare=rare), CHUNK, features=["rare", "length"])
    assert found.converged.all()
    infinite = np.isinf(found.coefficient_draws[:, 0])
    assert 0 < infinite.sum() < CHUNK
    assert found.coefficients().loc["rare", "upper"] == np.inf
    assert any("'rare' has no finite coefficient in" in w for w in found.warnings)


def test_the_leaderboard_comes_out_the_same_way(battles, drawn):
    table = leaderboard(battles, n_resamples=RESAMPLES, features=FEATURES)
    plain = leaderboard(battles, n_resamples=20)
    assert list(table.columns) == list(plain.columns)
    own = table.set_index("model")["rating"]
    pd.testing.assert_series_equal(own.sort_index(), drawn.fit.ratings.sort_index(), check_names=False, atol=1e-6)
    assert table.attrs["settings"]["features"] == ("length", "markup")
    assert table.attrs["settings"]["ties"] == "half"
    lower, upper = (bound.iloc[0, 1] for bound in drawn.difference_interval())
    assert lower < own.sort_index().iloc[0] - own.sort_index().iloc[1] < upper


@pytest.mark.parametrize(
    ("features", "cluster"),
    [((), None), pytest.param((), "prompt", marks=pytest.mark.slow),
     pytest.param(FEATURES, None, marks=pytest.mark.slow)],
)  # fmt: skip
def test_expected_scores_beside_a_tie_model(battles, features, cluster):
    """Draws, intervals and columns of the leaderboard are those of ties as half a win, from the same resamples."""
    options = {"n_resamples": CHUNK, "features": features, "cluster": cluster}
    found, half = (bootstrap(battles, ties=ties, **options) for ties in ("davidson", "half"))
    np.testing.assert_array_equal(found.expected_score.draws, half.draws)
    pd.testing.assert_series_equal(found.expected_score.fit.ratings, half.fit.ratings)
    pd.testing.assert_series_equal(found.fit.expected_score.ratings, half.fit.ratings)
    table, other = (leaderboard(result).set_index("model") for result in (found, half))
    for end in ("rating", "lower", "upper"):
        expected = other[end]
        pd.testing.assert_series_equal(table[f"expected_score_{end}"], expected[table.index], check_names=False)
    assert "expected_score_rating" not in other
    assert np.ptp(table["rating"]) > 1.1 * np.ptp(table["expected_score_rating"])


@pytest.mark.slow
def test_expected_scores_of_slices_and_from_a_checkpoint(votes, tmp_path):
    """A slice without ties has no tie model, and both of its scales are one."""
    own = votes.assign(winner=votes["winner"].mask((votes["half"] == 1) & (votes["winner"] == "tie"), "model_a"))
    options = {"n_resamples": CHUNK, "by": "half", "ties": "davidson", "features": FEATURES}
    one, again = (bootstrap(own, checkpoint=tmp_path, **options) for _ in range(2))
    half = bootstrap(own, **{**options, "ties": "half"})
    for group, board in one.items():
        np.testing.assert_array_equal(board.expected_score.draws, half[group].draws)
        np.testing.assert_array_equal(board.draws, again[group].draws)
        np.testing.assert_array_equal(board.expected_score.draws, again[group].expected_score.draws)
    np.testing.assert_allclose(one[1].draws, one[1].expected_score.draws, atol=1e-5)


def test_probabilities_have_intervals(tied):
    found = tied
    a, b = found.models[:2]
    table = found.outcome_probabilities(a, b, {"length": 1.0})
    assert table.index.tolist() == ["win", "tie", "loss", "expected"]
    assert (table["lower"] < table["probability"]).all()
    assert (table["probability"] < table["upper"]).all()
    point = found.fit.outcome_probabilities(a, b, {"length": 1.0})
    assert table["probability"].to_dict() == pytest.approx(point.to_dict())
    z = (
        found.draws_logit[:, 0]
        - found.draws_logit[:, 1]
        + found.coefficient_draws[:, 0] / found.fit.coefficients()["unit"].iloc[0]
    )
    total = np.exp(z / 2) + np.exp(-z / 2) + np.exp(found.tie_draws)
    low = np.quantile(np.exp(z / 2) / total, 0.025)
    assert table.loc["win", "lower"] == pytest.approx(low, abs=0.003)


class TestRefused:
    def test_single_precision(self, battles):
        with pytest.raises(ValueError, match="refits with features or a tie model are in double precision"):
            bootstrap(battles, 8, features=FEATURES, dtype="float32")

    def test_a_ridge_of_nothing(self, battles):
        with pytest.raises(ValueError, match=r"feature_ridge=2\.0 shrinks the coefficients of features, but there are"):
            bootstrap(battles, 8, feature_ridge=2.0)
        with pytest.raises(TypeError, match="features must be a list of covariates, empty for none, got None"):
            bootstrap(battles, 8, features=None)


def solvers(monkeypatch):
    """Lanes that each solver was given, as a dict that runs fill."""
    given = {}
    run = LaneRun.run

    def recorded(self, task, lanes, which, results, section):
        given[section.removeprefix("slice-0-")] = len(which)
        run(self, task, lanes, which, results, section)

    monkeypatch.setattr(LaneRun, "run", recorded)
    return given


class TestFastPaths:
    """They hold where they are tried, and end where Newton's method does."""

    def against_newton(self, monkeypatch, board, features, **options):
        given = solvers(monkeypatch)
        found = bootstrap(board, CHUNK, features=features, **options)
        used = dict(given)
        monkeypatch.setattr(contextual_module, "_MAX_STEPS", {Solver.NEWTON: 60})
        twin = bootstrap(board, CHUNK, features=features, **options)
        assert found.converged.all()
        assert twin.converged.all()
        np.testing.assert_allclose(found.draws, twin.draws, rtol=0, atol=3e-6)
        np.testing.assert_allclose(found.coefficient_draws, twin.coefficient_draws, rtol=0, atol=1e-6)
        return found, used

    @pytest.mark.slow
    def test_a_model_of_two_votes(self, votes, monkeypatch):
        """It lacks a rating in half of the resamples; no lane needs conjugate gradients for that."""
        rare = votes.head(2).assign(model_a="rare", winner=["model_a", "model_b"])
        found, given = self.against_newton(monkeypatch, pd.concat([votes, rare], ignore_index=True), FEATURES)
        assert "chord" not in given
        assert given["scaled-chord"] == CHUNK
        assert given["newton-cg"] == 0
        assert 0.3 < found.degenerate_share["rare"] < 0.9
        assert (found.degenerate_share.drop("rare") == 0).all()

    @pytest.mark.slow
    def test_covariates_that_hardly_differ(self, votes, monkeypatch):
        """Single precision cannot tell them apart; the lanes that it leaves take few steps more."""
        rng = np.random.default_rng(9)
        twins = votes.assign(twin=votes["length"] + 0.003 * rng.normal(size=N))
        found, given = self.against_newton(monkeypatch, twins, ["length", "twin"])
        assert given["newton-cg"] == 0
        ratio = found.coefficients()["standard_error"] / found.fit.coefficients()["standard_error"]
        assert ratio.to_numpy() == pytest.approx(1, abs=4 / np.sqrt(2 * CHUNK))


class TestSlices:
    """What a slice cannot say, it is flagged for; the others are as without it."""

    @pytest.mark.slow
    def test_a_covariate_that_is_0(self, votes):
        own = votes.assign(length=votes["length"].where(votes["half"] == 0, 0.0))
        found = bootstrap(own, CHUNK, by="half", features=FEATURES, normalize=False)
        message = "the models and other features determine 'length': no battle tells its effect apart"
        assert any(message in w for w in found[1].warnings)
        assert not any(message in w for w in found[0].warnings)
        plain = fit_bradley_terry(own[own["half"] == 1], features=["markup"], normalize=False)
        np.testing.assert_allclose(found[1].fit.ratings, plain.ratings, rtol=0, atol=1e-6)
        table = found[1].coefficients()
        assert table.loc["length", ["coefficient", "standard_error", "lower", "upper"]].isna().all()
        assert table.loc["markup", "lower"] < plain.coefficients().loc["markup", "coefficient"]
        a, b = found[1].models[:2]
        assert found[1].outcome_probabilities(a, b, {"markup": 1.0}).notna().all(axis=None)
        with pytest.raises(DataError, match=message):
            bootstrap(own[own["half"] == 1].assign(length=own["markup"]), CHUNK, features=["markup", "length"])

    @pytest.mark.slow
    def test_the_other_slice_is_as_without_it(self, votes):
        own = votes.assign(length=votes["length"].where(votes["half"] == 0, 0.0))
        found, other = (bootstrap(x, CHUNK, by="half", features=FEATURES, normalize=False) for x in (own, votes))
        np.testing.assert_allclose(found[0].draws, other[0].draws, rtol=0, atol=1e-5)

    @pytest.mark.slow
    def test_no_ties_or_nothing_else(self, votes):
        tied = votes["winner"] == "tie"
        part = np.where(votes["half"] == 0, 0, 1 + tied)
        found = bootstrap(votes.assign(part=part), CHUNK, by="part", features=FEATURES, ties="davidson")
        assert np.isfinite(found[0].fit.tie_parameter)
        assert not any("ties among" in w for w in found[0].warnings)
        for one, limit, kind in ((1, -np.inf, "no"), (2, np.nan, "only")):
            own = found[one]
            assert any(f"{kind} ties among {(part == one).sum():,} battles" in w for w in own.warnings)
            np.testing.assert_equal(own.fit.tie_parameter, limit)
            half = fit_bradley_terry(votes[part == one], features=FEATURES)
            np.testing.assert_allclose(own.fit.ratings, half.ratings, rtol=0, atol=1e-6)
            assert not any("of the resamples have no ties" in w for w in own.warnings)
            assert own.converged.all()
            assert own.coefficients().loc["tie parameter", ["standard_error", "lower", "upper"]].isna().all()


def test_soft_targets_weights_and_pair_weights(votes):
    rng = np.random.default_rng(8)
    soft = votes.assign(target=rng.uniform(0, 1, N).round(2), w=rng.uniform(0.5, 2, N)).drop(columns="winner")
    read = Battles.from_pandas(soft, target="target", weight="w")
    found = bootstrap(read, RESAMPLES, features=FEATURES, reweight=True)
    assert found.converged.all()
    fit = fit_bradley_terry(read, features=FEATURES, reweight=True)
    np.testing.assert_array_equal(found.fit.theta, fit.theta)
    ratio = found.standard_errors / fit.standard_errors
    assert ratio.to_numpy() == pytest.approx(1, abs=4 / np.sqrt(2 * RESAMPLES))


@pytest.mark.slow
def test_coverage_of_coefficients():
    """Intervals of covariates hold their true values in 90 % of simulated boards: percentiles and the sandwich's."""
    truth, boards = {"length": 0.4, "markup": -0.2}, 60  # of the same pairs, which compile once
    held = {"bootstrap": [], "sandwich": []}
    for seed in range(boards):
        drawn = bootstrap(styled(800, seed=100 + seed, tied=0.0, pairs=100), 96, features=FEATURES, normalize=False)
        for name, of in (("bootstrap", drawn), ("sandwich", drawn.fit)):
            table = of.coefficients(level=0.9)
            held[name] += [table.loc[f, "lower"] <= x <= table.loc[f, "upper"] for f, x in truth.items()]
    for name, own in held.items():
        assert np.mean(own) == pytest.approx(0.9, abs=3 * np.sqrt(0.9 * 0.1 / len(own))), name


@pytest.mark.parametrize("ties", ["davidson", pytest.param("rao_kupper", marks=pytest.mark.slow)])
def test_tables_of_pairs_and_rows_lead_to_the_same_refits(ties, monkeypatch):
    """Tie models without covariates are refitted on tables of pairs; the rows hold the same draws."""
    votes = simulate_battles(4_000, 6, seed=0)
    by_pairs = bootstrap(votes, 24, ties=ties)
    monkeypatch.setattr(contextual_module, "pair_problems", lambda *_, **__: None)
    by_rows = bootstrap(votes, 24, ties=ties)
    np.testing.assert_allclose(by_pairs.draws, by_rows.draws, rtol=0, atol=1e-10)
    np.testing.assert_allclose(by_pairs.tie_draws, by_rows.tie_draws, rtol=0, atol=1e-12)
