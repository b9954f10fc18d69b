"""Categories that borrow: what their boards are made of, and simulated truths."""

from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from twins import borrowed_belief

import jaxeval
from jaxeval import Battles, DataError, leaderboard, small_categories
from jaxeval.ratings.gauge import ELO_PER_LOGIT

M = 6
B = 64


@pytest.fixture(scope="module")
def votes():
    """In two languages, as most tests have two categories: boards of as many share a program."""
    votes = jaxeval.simulate_votes(3_000, M, seed=3).astype({"language": str})
    return votes.assign(language=votes["language"].where(votes["language"] == "German", "English"))


@pytest.fixture(scope="module")
def boards(votes):
    return small_categories(votes, "language", B)


def naive(votes, own, factors):
    """The ratings of the battles ``own`` (a mask), a mean over spreads, by the twin of the kernel."""
    models = sorted(set(votes["model_a"]))
    tables = np.zeros((2, M, M))
    points = votes["winner"].astype(str).map({"model_a": 1.0, "model_b": 0.0}).fillna(0.5)
    for a, b, y, mine in zip(votes["model_a"], votes["model_b"], points, own, strict=True):
        i, j = models.index(a), models.index(b)
        tables[int(not mine), i, j] += y
        tables[int(not mine), j, i] += 1 - y
    spreads = np.linspace(0.002, 2.5, 120)
    found = [borrowed_belief(tables[0] / factors[0], tables[1] / factors[1], spread) for spread in spreads]
    mean, covariance, evidence, borrowed = (np.array(x) for x in zip(*found, strict=True))
    weight = np.exp(evidence - evidence.max() - 0.5 * (spreads * ELO_PER_LOGIT / 100) ** 2)
    weights = [x / x.sum() for x in (weight, weight * spreads)]
    off = (mean - weights[1] @ mean) * np.sqrt(weights[1])[:, None]
    return (
        weights[0] @ mean, np.tensordot(weights[1], covariance, 1) + off.T @ off, weights[0] @ borrowed,
        weights[0] @ spreads, weights[1] @ spreads,
    )  # fmt: skip


def test_a_board_is_the_mean_over_spreads_of_dense_posteriors(votes):
    """To what 32 spreads in place of 120 leave."""
    board = small_categories(votes, "language", 8_000)["German"]
    p = 1 / (1 + np.exp(-np.subtract.outer(*[jaxeval.fit_bradley_terry(votes).strengths.to_numpy()] * 2)))
    battles = Battles.from_pandas(votes)
    expected = p[battles.model_a, battles.model_b]
    residual, spread = (battles.target - expected) ** 2, expected * (1 - expected)
    own = (votes["language"] == "German").to_numpy()
    common = residual.sum() / spread.sum()
    factor = (residual[own].sum() + 100 * residual.mean()) / (spread[own].sum() + 100 * spread.mean())
    np.testing.assert_allclose(board.category()["variance_factor"], factor, rtol=1e-9)
    theta, covariance, borrowed, mean_spread, drawn_spread = naive(votes, own, (factor, common))
    np.testing.assert_allclose(board.fit.theta, theta, atol=0.003)
    np.testing.assert_allclose(board.fit.covariance, ELO_PER_LOGIT**2 * covariance, rtol=0.05, atol=1)
    np.testing.assert_allclose(board.fit.borrowed, borrowed, atol=0.02)
    np.testing.assert_allclose(board.spread, ELO_PER_LOGIT * mean_spread, rtol=0.05)
    np.testing.assert_allclose(board.spread_draws.mean(), ELO_PER_LOGIT * drawn_spread, rtol=0.05)


def test_draws_are_of_what_is_believed(votes):
    """Means, covariances and intervals of many draws, within five standard errors."""
    board = small_categories(votes, "language", 8_000)["German"]
    error = board.fit.standard_errors
    np.testing.assert_allclose(board.draws.mean(0), board.fit.ratings, atol=5 * error.max() / np.sqrt(8_000))
    np.testing.assert_allclose(np.cov(board.draws.T), board.fit.covariance, atol=0.1 * error.max() ** 2)
    ends = board.interval(kind="wald")
    half = (board.interval()["upper"] - board.interval()["lower"]) / (ends["upper"] - ends["lower"])
    assert ((half > 0.9) & (half < 1.1)).all()


def test_a_draw_depends_on_its_number_the_seed_and_the_name_alone(votes, boards):
    more = small_categories(votes, "language", 2 * B)
    for group in boards:
        np.testing.assert_array_equal(more[group].draws[:B], boards[group].draws)
    others = small_categories(votes.assign(language=votes["language"].where(votes["language"] == "German")),
                              "language", B, missing="drop")  # fmt: skip
    np.testing.assert_allclose(others["German"].draws, boards["German"].draws, atol=1e-9)
    reseeded = small_categories(votes, "language", B, seed=1)
    assert not np.allclose(reseeded["German"].draws, boards["German"].draws)
    np.testing.assert_array_equal(reseeded["German"].fit.ratings, boards["German"].fit.ratings)


def test_rows_models_and_gauges(votes, boards):
    """Ratings follow the names, whatever the order of rows; differences do not depend on the gauge."""
    names = {f"model-{k + 1}": f"{9 - k}" for k in range(M)}
    renamed = votes.sample(frac=1, random_state=0).assign(
        model_a=votes["model_a"].map(names), model_b=votes["model_b"].map(names)
    )
    found = small_categories(renamed, "language", B, gauge=("9", 500.0))["German"]
    ratings = found.fit.ratings[[names[m] for m in boards["German"].models]].to_numpy()
    assert found.fit.ratings["9"] == 500
    expected = boards["German"].fit.ratings
    np.testing.assert_allclose(ratings - ratings.mean(), expected - expected.mean(), atol=1e-6)


def test_few_battles_borrow_nearly_all_and_say_so(votes):
    few = np.arange(len(votes)) < 5
    boards = small_categories(votes.assign(kind=np.where(few, "rare", "usual")), "kind", B)
    rare, usual = boards["rare"], boards["usual"]
    assert rare.borrowed_share > 0.9 > usual.borrowed_share
    assert any(text.startswith("all borrowed (9") for text in rare.warnings)
    assert not any("borrowed" in text for text in usual.warnings)
    overall = jaxeval.fit_bradley_terry(votes).ratings
    assert np.abs(rare.fit.ratings - overall).max() < 40
    np.testing.assert_allclose(usual.fit.ratings, overall, atol=4)


def test_disconnected_categories_borrow(votes):
    """Models without a battle here, undefeated ones, and two groups that never met here."""
    first, second = {"model-1", "model-2"}, {"model-3", "model-4"}
    pairs = [{a, b} for a, b in zip(votes["model_a"], votes["model_b"], strict=True)]
    mine = np.array([pair in (first, second) for pair in pairs])
    alone = jaxeval.fit_bradley_terry(votes[mine])
    assert (alone.component == 2).sum() == 2
    board = small_categories(votes.assign(kind=np.where(mine, "split", "rest")), "kind", B)["split"]
    assert np.isfinite(board.draws).all()
    assert list(board.fit.borrowed[["model-5", "model-6"]].round(9)) == [1, 1]
    assert (board.fit.borrowed[["model-1", "model-2"]] < 1).all()
    assert list(board.fit.n_battles[["model-5", "model-6"]]) == [0, 0]


def test_models_that_all_battles_give_no_rating_have_none(votes):
    winner = pd.DataFrame({"model_a": ["winner"] * 3, "model_b": ["model-1"] * 3, "winner": "model_a"})
    table = pd.concat([votes, winner.assign(language="German")])
    board = small_categories(table, "language", B)["German"]
    assert board.fit.ratings["winner"] == np.inf
    assert board.fit.standing["winner"] == "undefeated"
    assert np.isnan(board.fit.borrowed["winner"])
    expected = small_categories(votes, "language", B)["German"]
    np.testing.assert_allclose(board.fit.ratings[expected.models], expected.fit.ratings, atol=1e-4)


def test_all_battles_in_one_category_borrow_nothing(votes):
    board = small_categories(votes.assign(kind="all"), "kind", B)["all"]
    assert board.borrowed_share == pytest.approx(0, abs=1e-9)
    assert np.isnan(board.spread)
    fit = jaxeval.fit_bradley_terry(votes)
    np.testing.assert_allclose(board.fit.ratings, fit.ratings, atol=1e-5)
    np.testing.assert_allclose(board.fit.standard_errors, fit.standard_errors, rtol=0.05)


def test_long_work_shows_how_far_it_is(votes, monkeypatch):
    done = []

    @contextmanager
    def bar(total, unit, enabled):
        done.append((total, unit, enabled))
        yield done.append

    monkeypatch.setattr("jaxeval.ratings.small_categories.progress_bar", bar)
    boards = jaxeval.small_categories(votes, by="language", n_resamples=10, progress=True)
    assert done == [(len(boards), "categories", True), *[1] * len(boards)]


def test_overlapping_categories_and_their_overall(votes):
    tags = [["math"] * (k % 2 == 0) + ["code"] * (k % 3 == 0) for k in range(len(votes))]
    boards = small_categories(votes.assign(tags=tags), "tags", B)
    assert list(boards) == ["overall", "code", "math"]
    assert "overlap" in boards.told
    math = votes.assign(kind=["math" if "math" in t else None for t in tags])
    alone = small_categories(math, "kind", B, missing="drop")["math"]
    np.testing.assert_allclose(boards["math"].draws, alone.draws, atol=1e-9)


def test_repeated_votes_in_clusters_are_no_more_than_the_votes(votes):
    """Each voter's vote five times over: without clusters five times the evidence, by clusters that of one."""
    few = votes.assign(voter=np.arange(len(votes)))
    table = pd.concat([few] * 5)
    once, plain = (small_categories(x, "language", B)["German"] for x in (few, table))
    clustered = small_categories(table, "language", B, cluster="voter")["German"]
    factor = [board.category()["variance_factor"] for board in (clustered, plain)]
    n = (few["language"] == "German").sum()  # clusters of equal size
    assert 5 * factor[1] < factor[0] < 5 * factor[1] * n / (n - 1)
    np.testing.assert_allclose(clustered.fit.ratings, once.fit.ratings, atol=0.1)
    np.testing.assert_allclose(clustered.fit.standard_errors, once.fit.standard_errors, rtol=0.01)
    assert (plain.fit.standard_errors < 0.8 * clustered.fit.standard_errors).all()


def test_the_leaderboard_has_the_shares(boards):
    table = leaderboard(boards)
    german = table[table["category"] == "German"].set_index("model")
    np.testing.assert_array_equal(german["borrowed"], boards["German"].fit.borrowed[german.index])
    assert {"rank_best", "rank_worst", "tier", "preliminary"} <= set(table)
    records = pd.DataFrame(table.attrs["categories"]).set_index("category")
    pd.testing.assert_frame_equal(records, boards.table(), check_names=False)
    assert not any("firth" in text for text in table.attrs["warnings"])
    assert boards["German"].joint.tiers().notna().all()


def test_they_are_not_compared_as_independent(boards):
    with pytest.raises(TypeError, match="pass the battles of both categories"):
        jaxeval.compare_boards(boards["German"], boards["English"])


@pytest.mark.parametrize(("options", "error", "told"), [
    ({"by": None}, TypeError, "by= takes"),
    ({"by": "tongue"}, DataError, "no column 'tongue'"),
    ({"by": "language", "prior_spread": 0}, ValueError, "prior_spread"),
    ({"by": "language", "prior_spread": np.inf}, ValueError, "prior_spread"),
    ({"by": "language", "prior_spread": 1_001}, ValueError, "at most 1,000 Elo"),
    ({"by": "language", "max_slices": 1}, DataError, "max_slices"),
    ({"by": "language", "min_slice_battles": 10**6}, DataError, "min_slice_battles"),
    ({"by": "language", "ridge": 1}, TypeError, "ridge"),
    ({"by": "language", "gauge": ("nobody", 1)}, ValueError, "nobody"),
])  # fmt: skip
def test_what_is_refused(votes, options, error, told):
    with pytest.raises(error, match=told):
        small_categories(votes, n_resamples=B, **options)


@pytest.mark.slow
@pytest.mark.parametrize(("n_own", "least", "most"), [(200, 0.97, 1.0), (1_000, 0.93, 0.99), (4_000, 0.91, 0.97)])
def test_intervals_hold(n_own, least, most, monkeypatch):
    """Where the spread is integrated over, of 53 models and a spread of 19 Elo."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    found = import_module("small_categories").coverage(n_own, 30, 0.11)
    margin = 3 * found["standard_error"]
    assert least - margin < found["coverage"] <= most + margin  # all of them may hold
    assert found["plug_in"] < found["coverage"] or found["coverage"] == 1
