"""Firth's bias reduction: against closed forms, a naive fit with hat values, and simulated truth."""

import json

import jax
import numpy as np
import pandas as pd
import pytest
import twins
from command_line import run
from scipy.special import expit
from scipy.stats import norm, t

from jaxeval import Battles, bootstrap, fit_bradley_terry, leaderboard, read_ratings, simulate_battles
from jaxeval.kernels import dense_solve
from jaxeval.kernels.batch.refits import draw
from jaxeval.ratings.boards import fit_boards
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.pair_refits import dense_refits
from jaxeval.ratings.vote_groups import VoteGroups


def battles_of(wins, names=None):
    """Battles that make the table (M, M) of ``wins``: those won, and of each pair one battle with what remains."""
    names = np.array([f"m{k}" for k in range(len(wins))] if names is None else names)
    won = np.floor(wins + 1e-9)
    rest = np.triu(np.round(wins - won, 9))
    tables = [
        pd.DataFrame({"model_a": names[i], "model_b": names[j], "target": target, "n": n})
        for where, of in ((won, None), (rest, rest))
        for i, j in (np.nonzero(where),)
        for target, n in ((1.0, won[i, j].astype(int)) if of is None else (of[i, j], 1),)
    ]
    return Battles.from_pandas(pd.concat(tables, ignore_index=True), count="n")


def thin_board(seed, n_models=7, n_battles=20):
    """Few battles, some of which are ties or soft, of models that all met."""
    rng = np.random.default_rng(seed)
    wins = np.zeros((n_models, n_models))
    for k in range(n_models - 1):  # a chain
        wins[k, k + 1] += 1
    for _ in range(n_battles):
        i, j = rng.permutation(n_models)[:2]
        share = rng.choice([0.0, 0.5, 1.0, 0.3], p=[0.3, 0.2, 0.4, 0.1])
        wins[i, j] += share
        wins[j, i] += 1 - share
    return wins


# The maximum.


def test_two_models_and_chains_have_closed_forms():
    """Half a point more for either side of every pair, where no pair tells of another."""
    pair = np.array([[0, 9], [3, 0.0]])
    strengths = fit_bradley_terry(battles_of(pair), penalty="firth").strengths
    assert strengths["m0"] - strengths["m1"] == pytest.approx(np.log(9.5 / 3.5), abs=1e-12)
    chain = np.diag([5.0, 3, 1e4], 1) + np.diag([0.0, 4, 0], -1)  # undefeated, even, all but undefeated
    found = fit_bradley_terry(battles_of(chain), penalty="firth").strengths.to_numpy()
    np.testing.assert_allclose(-np.diff(found), np.log([5.5 / 0.5, 3.5 / 4.5, 10_000.5 / 0.5]), atol=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_strengths_are_those_of_a_fit_with_hat_values(seed):
    wins = thin_board(seed)
    fit = fit_bradley_terry(battles_of(wins), penalty="firth")
    assert fit.converged
    np.testing.assert_allclose(fit.strengths, twins.firth(wins), rtol=0, atol=1e-9)
    theta = fit.strengths.to_numpy()
    inverse = np.linalg.pinv(twins.information(theta, wins), hermitian=True)
    np.testing.assert_allclose(fit.standard_errors_hessian, ELO_PER_LOGIT * np.sqrt(np.diag(inverse)), rtol=1e-7)
    n, p = wins + wins.T, 1 / (1 + np.exp(theta - theta[:, None]))  # intervals count the battles that the penalty adds
    added = n * p * (1 - p) * (np.diag(inverse)[:, None] + np.diag(inverse) - 2 * inverse)
    of_penalty = np.diag((added * p * (1 - p)).sum(1)) - added * p * (1 - p)
    inverse = np.linalg.pinv(twins.information(theta, wins) + of_penalty, hermitian=True)
    half = norm.ppf(0.95) * ELO_PER_LOGIT * np.sqrt(fit.dispersion * np.diag(inverse))
    interval = fit.interval(0.9)
    np.testing.assert_allclose(interval["lower"], fit.ratings - half, rtol=1e-9)
    np.testing.assert_allclose(interval["upper"], fit.ratings + half, rtol=1e-9)


def test_the_estimate_maximises_the_penalised_likelihood():
    wins = thin_board(7)
    theta = fit_bradley_terry(battles_of(wins), penalty="firth").strengths.to_numpy()

    def value(theta):
        return twins.log_likelihood(theta, wins) + np.linalg.slogdet(twins.information(theta, wins)[1:, 1:])[1] / 2

    rng = np.random.default_rng(0)
    for _ in range(20):
        assert value(theta + 1e-3 * rng.normal(size=len(wins))) < value(theta)


def test_products_of_leverages():
    """Sums over all pairs of pairs, one by one."""
    rng = np.random.default_rng(0)
    m = 5
    u, c = rng.normal(size=(2, m, m))
    u, c = u - u.T, c + c.T
    b = [(i, j, np.eye(m)[i] - np.eye(m)[j]) for i in range(m) for j in range(i)]
    expected = sum(
        u[i, j] * u[k, h] * (e @ c @ f) ** 2 * np.outer(e, f) for i, j, e in b for k, h, f in b
    )  # fmt: skip
    with jax.enable_x64(True):
        np.testing.assert_allclose(dense_solve._squared_products(u, c), expected, atol=1e-10)


def between(won, lost):
    """The last model won once against a weak one and lost once to a strong one, which ``won`` and ``lost`` so much."""
    wins = np.zeros((3, 3))
    wins[0, 1], wins[1, 0] = won, lost
    wins[2, 1] = wins[0, 2] = 1
    return wins


def test_steps_are_few_where_the_maximum_is_flat():
    for won in (60, 68, 72):
        fit = fit_bradley_terry(battles_of(between(won, 5)), penalty="firth")
        assert fit.converged
        assert fit.n_steps < 15
        np.testing.assert_allclose(fit.strengths, twins.firth(between(won, 5)), rtol=0, atol=1e-7)


def test_a_point_between_two_maxima_is_none():
    """The last model's maximum is near the weak one or near the strong one, both alike: 0 is a saddle."""
    for won in (4000, 6000, 16_000):
        battles = battles_of(between(won, 1))
        fit = fit_bradley_terry(battles, penalty="firth")  # rounding alone leads away from 0
        assert not fit.converged or abs(fit.strengths["m2"]) > 1
        assert fit.converged or any("stopped before converging" in text for text in fit.warnings)
        for near in (1.0, -1.0):
            start = pd.Series([2500.0, -500.0, 1000 + 400 * near], fit.ratings.index)
            fit = fit_bradley_terry(battles, penalty="firth", start=start)
            assert fit.converged
            assert near * fit.strengths["m2"] > 1


def test_any_start_leads_to_the_maximum():
    """Also far away, where the penalty is convex and full steps overshoot."""
    wins = thin_board(3, 10, 60)
    battles = battles_of(wins)
    expected = fit_bradley_terry(battles, penalty="firth").strengths
    for k in range(5):
        start = pd.Series(1000 + 1500 * np.random.default_rng(k).normal(size=10), expected.index)
        fit = fit_bradley_terry(battles, penalty="firth", start=start)
        assert fit.converged
        np.testing.assert_allclose(fit.strengths, expected, rtol=0, atol=1e-8)


def test_more_battles_leave_less_to_reduce():
    battles = simulate_battles(20_000, 6, seed=1)
    plain, reduced = (fit_bradley_terry(battles, penalty=penalty).strengths for penalty in ("none", "firth"))
    assert 0 < (plain - reduced).abs().max() < 0.01
    assert (reduced.abs() < plain.abs()).all()


# What the battles identify.


def test_undefeated_and_winless_models_are_rated_and_named():
    wins = np.zeros((6, 6))
    wins[:3, :3] = [[0, 3, 2], [1, 0, 4], [2, 1, 0]]
    wins[3, 0], wins[1, 4], wins[5, 4] = 5, 3, 2
    battles = battles_of(wins)
    fit = fit_bradley_terry(battles, penalty="firth")
    assert np.isfinite(fit.ratings).all()
    np.testing.assert_allclose(fit.strengths, twins.firth(wins), rtol=0, atol=1e-8)
    assert fit.standing.tolist() == ["", "", "", "undefeated", "winless", "not comparable"]
    assert fit.standing.equals(fit_bradley_terry(battles).standing)
    for model, why in (("m3", "never lost"), ("m4", "never took"), ("m5", "no chain of wins")):
        (text,) = [text for text in fit.warnings if text.startswith(model)]
        assert why in text
        assert text.endswith("(the penalty alone makes it finite)")


def test_groups_that_never_met_stay_unrated():
    wins = np.zeros((6, 6))
    wins[:4, :4] = thin_board(0, 4, 8)
    wins[4, 5] = 3.0
    fit = fit_bradley_terry(battles_of(wins), penalty="firth")
    assert fit.component.tolist() == [1, 1, 1, 1, 2, 2]
    assert np.isnan(fit.ratings[["m4", "m5"]]).all()
    assert fit.interval().loc["m4"].isna().all()
    np.testing.assert_allclose(fit.strengths[:4], twins.firth(wins[:4, :4]), rtol=0, atol=1e-8)
    assert any("groups that never met" in text and "only the first is rated" in text for text in fit.warnings)
    with pytest.raises(ValueError, match="anchor model 'm4' has no rating"):
        fit_bradley_terry(battles_of(wins), penalty="firth", gauge=("m4", 1000.0))


@pytest.mark.slow
def test_a_board_on_which_nobody_took_points_back():
    """The largest group is rated, and its resamples are, though it has no main group; the other one is not."""
    wins = np.zeros((5, 5))
    wins[0, 1], wins[1, 2], wins[3, 4] = 4, 3, 6
    table = pd.DataFrame([(f"m{i}", f"m{j}", "model_a") for i, j in np.argwhere(wins) for _ in range(int(wins[i, j]))])
    battles = Battles.from_pandas(table.set_axis(["model_a", "model_b", "winner"], axis=1))
    result = bootstrap(battles, 50, penalty="firth", progress=False)
    assert np.isfinite(result.fit.ratings).tolist() == [True, True, True, False, False]
    assert any("no model has a finite rating (the penalty alone" in text for text in result.warnings)
    assert np.isnan(result.draws[:, 3:]).all()
    assert np.isfinite(result.draws[:, :3]).any(0).all()


# Invariances.


# Resamples.


def resampled_tables(battles, numbers, **options):
    """(M, M) battles and wins of the resamples, as the library draws them."""
    own = BootstrapOptions(penalty="firth", **options)
    refits = dense_refits(fit_boards([(battles.models, battles.cells)], own), [""], [VoteGroups()], own)
    m = battles.n_models
    with jax.enable_x64(True):
        for r in numbers:
            table = draw(refits.problem, refits.form, np.uint64(own.seed), np.int32(0), np.int64(r))
            yield (np.asarray(x, np.float64)[:m, :m] for x in table)


@pytest.mark.parametrize(
    ("options", "atol"),
    [({}, 1e-7), pytest.param({"scheme": "bayesian"}, 1e-7, marks=pytest.mark.slow),
     pytest.param({"scheme": "poisson"}, 1e-7, marks=pytest.mark.slow),
     pytest.param({"dtype": "float32"}, 1e-4, marks=pytest.mark.slow)],
    ids=["multinomial", "bayesian", "poisson", "single"],
)  # fmt: skip
def test_draws_are_the_naive_refits(options, atol):
    """Of a board so thin that resamples fall apart, and have undefeated models: only who never met is not rated."""
    battles = simulate_battles(40, 8, seed=2)
    result = bootstrap(battles, 60, seed=3, penalty="firth", progress=False, **options)
    assert result.converged.all()
    whole = battles.cells.tables(8)[0].sum(1)
    for r, (n, wins) in enumerate(resampled_tables(battles, range(25), seed=3, **options)):
        met = twins.standing(n, n, whole) == 0
        np.testing.assert_array_equal(np.isfinite(result.draws[r]), met)
        own = result.draws_logit[r, met]
        np.testing.assert_allclose(own - own.mean(), twins.firth(wins[np.ix_(met, met)]), rtol=0, atol=atol)
    assert result.degenerate[["undefeated", "winless"]].to_numpy().sum() == 0
    assert result.n_by_slower_solvers == 0


def test_files_hold_the_penalty(tmp_path):
    fit_bradley_terry(simulate_battles(60, 5, seed=0), penalty="firth").save(tmp_path / "ratings.json")
    assert read_ratings(tmp_path / "ratings.json").attrs["settings"]["penalty"] == "firth"


# Intervals.


def test_wald_intervals_of_tables():
    battles = simulate_battles(60, 5, seed=0)
    board = bootstrap(battles, 20, penalty="firth", progress=False)
    bounds = board.interval(kind="wald")
    pd.testing.assert_frame_equal(bounds, board.fit.interval())
    table = leaderboard(board, interval="wald").set_index("model")
    np.testing.assert_array_equal(table["lower"], bounds["lower"][table.index])
    np.testing.assert_array_equal(table["upper"], bounds["upper"][table.index])
    assert table.attrs["settings"]["interval"] == "wald"
    assert not any("too few for" in text for text in table.attrs["warnings"])
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        board.fit.interval(1.0)
    anchored = fit_bradley_terry(battles, penalty="firth", gauge=("model-1", 1200.0)).interval()
    np.testing.assert_allclose(anchored.loc["model-1"], 1200.0)


def test_wald_intervals_of_clusters_are_no_narrower_than_those_of_battles():
    pairs = np.array([list("ab"), list("bc"), list("ca"), list("da")])
    table = pd.DataFrame(np.repeat(np.tile(pairs, (3, 1)), 5, axis=0), columns=["model_a", "model_b"])
    table["prompt"] = np.arange(60) // 5  # whose battles all end alike
    table["winner"] = np.where(table["prompt"] % 3 > 0, "model_a", "model_b")
    alone = fit_bradley_terry(table, penalty="firth")
    fit = fit_bradley_terry(table, penalty="firth", cluster="prompt")
    assert fit.n_effective_clusters == fit.n_clusters == 12
    assert fit.freedom == pytest.approx(11)
    widest = np.maximum(t.ppf(0.975, 11) * fit.standard_errors, norm.ppf(0.975) * fit.standard_errors_hessian)
    assert (widest > norm.ppf(0.975) * alone.standard_errors_hessian).any()
    np.testing.assert_allclose(fit.interval()["upper"] - fit.ratings, widest)


@pytest.mark.parametrize(
    ("penalty", "weight"),
    [("auto", None), pytest.param("firth", 1.0, marks=pytest.mark.slow),
     pytest.param("auto", 1.0, marks=pytest.mark.slow), pytest.param("firth", None, marks=pytest.mark.slow)],
)  # fmt: skip
def test_a_factor_in_all_weights_changes_nothing(penalty, weight):
    """Weights are no numbers of battles: of equal ones the board is that of none."""
    table = simulate_battles(60, 5, seed=0).to_pandas()
    weight = np.random.default_rng(0).uniform(0.2, 3, len(table)) if weight is None else np.full(len(table), weight)
    boards = [
        bootstrap(Battles.from_pandas(table.assign(w=factor * weight), weight="w"), 40, penalty=penalty)
        for factor in (2, 14, 0.02)
    ]
    if (weight == 1).all():  # what is drawn of battles without weights has another order
        alone = bootstrap(table, 40, penalty=penalty)
        np.testing.assert_allclose(alone.fit.interval(), boards[0].fit.interval(), rtol=1e-6)
    for board in boards[1:]:
        np.testing.assert_allclose(board.interval(), boards[0].interval(), rtol=1e-6)
        np.testing.assert_allclose(board.draws, boards[0].draws, rtol=1e-6)
        assert board.first_sentence() == boards[0].first_sentence()
        assert (board.rank_sets() == boards[0].rank_sets()).all(axis=None)


def test_as_many_equal_battles_as_would_say_as_much():
    """A pair of three battles of weight 3 and one of 1: Kish's number is 100 / 28, and so many are penalised."""
    table = pd.DataFrame({"model_a": "x", "model_b": "y", "target": [1.0, 1, 0, 0], "w": [3.0, 3, 3, 1]})
    found = fit_bradley_terry(Battles.from_pandas(table, weight="w"), penalty="firth").strengths
    n = 100 / 28
    assert found["x"] - found["y"] == pytest.approx(np.log((0.6 * n + 0.5) / (0.4 * n + 0.5)), abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("battles", "published"), [(10, 0.981), (20, 0.960), (50, 0.952), (200, 0.954)])
def test_wald_intervals_hold(battles, published):
    """On 150 boards of 8 models: the share of models whose true rating they hold, as it was found before."""
    rng = np.random.default_rng(battles)
    truth, rows = [], []
    for board in range(150):
        theta = rng.permutation(np.linspace(-1, 1, 8))
        a = rng.integers(0, 8, 4 * battles)
        b = (a + rng.integers(1, 8, len(a))) % 8
        target = (rng.random(len(a)) < expit(theta[a] - theta[b])).astype(float)
        rows.append(pd.DataFrame({"model_a": a, "model_b": b, "target": target, "board": board}))
        truth.append(theta)
    votes = pd.concat(rows).astype({"model_a": str, "model_b": str})
    held = {"none": [], "firth": []}
    # Wald intervals rest on the fit alone.
    for penalty, kind, n_resamples in (("none", "percentile", 200), ("firth", "wald", 2)):
        boards = bootstrap(votes, n_resamples, by="board", penalty=penalty, progress=False)
        for theta, own in zip(truth, boards.values(), strict=True):
            true = theta[own.models.astype(int)]
            rated = np.isfinite(own.fit.ratings)
            true = 1000 + ELO_PER_LOGIT * (true - true[rated].mean())
            bounds = own.interval(0.95, kind)
            held[penalty].append(((bounds["lower"] <= true) & (true <= bounds["upper"])).mean())
    held = {penalty: np.array(shares) for penalty, shares in held.items()}
    error = held["firth"].std(ddof=1) / np.sqrt(150)
    print(f"\n{battles} battles a model: {held['firth'].mean():.3f} (standard error {error:.3f})")
    # The share found before is a mean of 250 boards.
    assert abs(held["firth"].mean() - published) < 4 * np.sqrt(2) * error
    gain = held["firth"] - held["none"]
    assert gain.mean() > (2 * gain.std(ddof=1) / np.sqrt(150) if battles <= 20 else -0.02)


# What it does not go with, and the command.


@pytest.mark.parametrize(("options", "named"), [
    ({"ridge": 0.5}, "ridge=0.5"),
    ({"link": "probit"}, "link='probit'"),
    ({"ties": "davidson"}, "ties='davidson'"),
    ({"features": ["x"]}, "features"),
    ({"method": "sparse"}, "method='sparse'"),
    ({"ridge": 0.5, "link": "probit"}, "ridge=0.5, link='probit'"),
])  # fmt: skip
def test_refused_by_name(options, named):
    table = pd.DataFrame({"model_a": ["a", "b", "c"], "model_b": ["b", "c", "a"], "winner": "model_a", "x": 1.0})
    battles = Battles.from_pandas(table)
    for rate in (fit_bradley_terry, lambda *args, **kwargs: bootstrap(*args, n_resamples=5, **kwargs)):
        with pytest.raises(ValueError, match=rf"penalty='firth' is for plain Bradley-Terry boards.* got {named}:"):
            rate(battles, penalty="firth", **options)


def test_unknown_penalties_and_methods_and_too_many_models_are_errors():
    battles = simulate_battles(60, 5, seed=0)
    with pytest.raises(ValueError, match="method must be one of 'auto', 'dense', 'sparse', got 'exact'"):
        fit_bradley_terry(battles, penalty="firth", method="exact")
    many = pd.DataFrame({"model_a": np.arange(6_001), "model_b": np.arange(1, 6_002), "winner": "tie"}).astype(str)
    with pytest.raises(ValueError, match="inverse that Firth's penalty needs is a table of 6,002 x 6,002 models"):
        fit_bradley_terry(many, penalty="firth")
    with pytest.raises(ValueError, match="penalty must be one of 'auto', 'none', 'firth', got 'jeffreys'"):
        fit_bradley_terry(simulate_battles(60, 5, seed=0), penalty="jeffreys")


def test_the_command(tmp_path):
    rows = [("a", "b", "model_a")] * 4 + [("b", "c", "model_a")] * 3 + [("c", "b", "model_a")] * 2
    pd.DataFrame(rows, columns=["model_a", "model_b", "winner"]).to_csv(tmp_path / "votes.csv", index=False)
    arguments = ["leaderboard", str(tmp_path / "votes.csv"), "--resamples", "40"]
    plain = run(*arguments)
    assert "unrated" in plain.output
    assert "too few games to say who leads: b is first with" in plain.output
    assert "intervals of 3 models under 200 votes are from a penalised fit (Firth)" in " ".join(plain.output.split())
    out = tmp_path / "board.json"
    result = run(*arguments, "--penalty", "firth", "--interval", "wald", "--out", out)
    assert result.exit_code == 0, result.output
    assert "unrated" not in result.output
    assert "95% wald intervals" in result.output
    assert "Firth's penalty" in result.output
    written = json.loads(out.read_text())
    assert written["settings"]["penalty"] == "firth"
    assert all(row["upper"] is not None for row in written["rows"])
    refused = run(*arguments, "--penalty", "firth", "--ridge", "1")
    assert refused.exit_code == 1
    assert "got ridge=1" in refused.output
