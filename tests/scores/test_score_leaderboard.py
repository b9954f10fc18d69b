import numpy as np
import pandas as pd
import pytest
import scipy
from numpy.testing import assert_allclose
from scored import answers, wide

import jaxeval
from jaxeval import DataError, ItemScores, score_draws, score_leaderboard
from jaxeval.scores.estimates import estimate_scores
from jaxeval.scores.paired_tests import pairwise
from jaxeval.scores.score_leaderboard import score_boards
from jaxeval.statistics.quantiles import exact_share


@pytest.fixture(scope="module")
def table():
    return answers(240, [0.9, 0.7, 0.7, 0.3], seed=1)


@pytest.fixture(scope="module")
def board(table):
    return score_leaderboard(table, n_resamples=400, progress=False)


def test_columns_and_closed_forms(table, board):
    own = wide(table)[board["model"]]
    assert board["rank"].tolist() == [1, 2, 3, 4]
    assert_allclose(board["score"], own.mean())
    assert_allclose(board["standard_error"], own.sem())
    lower, upper = exact_share(own.mean(), 240, 0.95)
    assert_allclose(board[["lower", "upper"]], np.column_stack([lower, upper]))
    assert board["tier"].tolist() == [1, 2, 2, 3]
    assert board[["rank_best", "rank_worst"]].to_numpy().tolist() == [[1, 1], [2, 3], [2, 3], [4, 4]]


def test_draws_are_paired_and_have_the_closed_errors(table):
    draws = score_draws(table, n_resamples=4000, progress=False)
    covariance = np.cov(wide(table).to_numpy().T) / 240
    assert_allclose(np.cov(draws.draws.T), covariance, atol=5 * np.abs(covariance).max() / np.sqrt(4000))


@pytest.mark.parametrize("population", ["items", "benchmarks", "trials"])
def test_errors_do_not_depend_on_resamples(population):
    frame = pd.concat([answers(60, [0.9, 0.6], seed).assign(trial=seed) for seed in range(2)])
    frame["benchmark"] = frame["item"] % 6
    few, many = (
        score_leaderboard(frame, population=population, n_resamples=n, progress=False) for n in (50, 200)
    )  # fmt: skip
    names = ["score", "lower", "upper", "standard_error"]
    pd.testing.assert_frame_equal(pd.DataFrame(few[names]), pd.DataFrame(many[names]))


def test_slices_are_boards_of_their_own(table):
    frame = table.assign(topic=np.where(table["item"] % 2 == 0, "even", "odd"))
    scores = ItemScores.from_pandas(frame, keep=["topic"])
    boards = score_leaderboard(scores, by="topic", n_resamples=100, progress=False)
    assert boards["category"].tolist() == ["even"] * 4 + ["odd"] * 4
    own = score_leaderboard(frame[frame["topic"] == "odd"], n_resamples=100, progress=False)
    names = ["model", "score", "lower", "standard_error", "rank"]
    pd.testing.assert_frame_equal(
        pd.DataFrame(boards[boards["category"] == "odd"][names].reset_index(drop=True)), pd.DataFrame(own[names])
    )
    with pytest.raises(DataError, match=r"no column 'topics' to group by"):
        score_leaderboard(scores, by="topics")


def test_clusters_make_intervals_wider(table):
    frame = table.assign(cluster=table["item"] // 24, score=(table["item"] // 24 % 2).astype(float))
    alone = score_leaderboard(frame.drop(columns="cluster"), n_resamples=50, progress=False)
    together = score_leaderboard(frame, n_resamples=50, progress=False)
    width = [(x["upper"] - x["lower"]).iloc[0] for x in (alone, together)]
    assert width[1] > 4 * width[0]
    assert "only 10 clusters" in together.attrs["warnings"][0]


def test_lopsided_clusters_are_told():
    cluster = np.minimum(np.arange(100), 60)  # 60 alone, and one of 40
    frame = answers(100, [0.9, 0.5]).assign(cluster=lambda x: cluster[x["item"]])
    found = score_leaderboard(frame, n_resamples=50, progress=False)
    assert "61 clusters of such unequal size that they are worth 6 equal ones" in found.attrs["warnings"][0]
    assert found.attrs["settings"]["n_clusters"] == 61
    assert_allclose(found.attrs["settings"]["n_effective_clusters"], 100**2 / (60 + 40**2))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["graded", "right"])
def test_intervals_hold_with_a_cluster_of_two_fifths(kind):
    """Of 50 clusters one holds 40 %: with K / (K - 1) and Student's t of K - 1 degrees, 82 % of the intervals held."""
    rng = np.random.default_rng(7)
    cluster = np.repeat(np.arange(50), [196] + [6] * 49)
    item, held, n = np.arange(len(cluster)), 0, 400
    for _ in range(n):
        score = 0.5 * rng.normal(size=50)[cluster] + rng.normal(size=len(cluster))
        score = score if kind == "graded" else (score > 0).astype(float)
        frame = pd.DataFrame({"item": item, "model": "a", "score": score, "cluster": cluster})
        row = score_leaderboard(frame, n_resamples=2, progress=False).iloc[0]
        held += row["lower"] <= (0.0 if kind == "graded" else 0.5) <= row["upper"]
    assert abs(held / n - 0.95) < 3 * np.sqrt(0.95 * 0.05 / n)


def test_few_items_by_student():
    board = score_leaderboard(answers(25, [0.95, 0.6, 0.1]), n_resamples=100, progress=False)
    again = score_leaderboard(answers(25, [0.95, 0.6, 0.1]), n_resamples=300, seed=5, progress=False)
    pd.testing.assert_frame_equal(pd.DataFrame(board), pd.DataFrame(again))  # by closed forms, ranks too
    assert board["tier"].tolist() == [1, 2, 3]


def test_graded_scores_have_students_interval_or_halls():
    """Of symmetric scores Student's, up to Hall's degree of freedom less; of skewed ones longer to the long side."""
    x = np.linspace(3, 7, 40)
    frame = pd.DataFrame({"item": range(40), "model": "a", "score": x})
    row = score_leaderboard(frame, n_resamples=50, progress=False).iloc[0]
    ends = scipy.stats.t.interval(0.95, 38, x.mean(), scipy.stats.sem(x))
    assert_allclose(row[["lower", "upper"]].to_numpy(float), ends, rtol=1e-6)
    row = score_leaderboard(frame.assign(score=np.exp(x)), n_resamples=50, progress=False).iloc[0]
    lower, upper = scipy.stats.t.interval(0.95, 39, np.exp(x).mean(), scipy.stats.sem(np.exp(x)))
    assert row["lower"] == pytest.approx(lower)
    assert row["upper"] > upper + 0.1 * (upper - lower)


@pytest.mark.parametrize("n_items", [3, 7, 12])
def test_rare_low_scores_that_few_items_do_not_show(n_items):
    """Nine items in ten have .9 to 1, the tenth up to .3: Student's and Hall's intervals missed .18, .45 and .34."""
    rng, shape = np.random.default_rng(0), (200, n_items)
    score = np.where(rng.random(shape) < 0.9, rng.uniform(0.9, 1, shape), rng.uniform(0, 0.3, shape))
    model, item = (x.ravel() for x in np.indices(shape))
    scores = ItemScores.from_pandas(pd.DataFrame({"model": model, "item": item, "score": score.ravel()}))
    lower, upper = estimate_scores(scores, np.ones(n_items, bool)).interval(0.95)
    assert np.mean((lower > 0.87) | (upper < 0.87)) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


def test_skewed_rubric_scores_of_few_items_hold():
    """Student's interval held .88 and .91 of them; those of equal scores are counted."""
    rng = np.random.default_rng(0)
    for n in (10, 30):
        x = rng.choice([1, 0.75, 0.5, 0.25, 0], (n, 600), p=[0.6, 0.2, 0.1, 0.05, 0.05])
        lower, upper = estimate_scores(scores_of(x), np.ones(n, bool)).interval(0.95)
        held = ((lower <= 0.8125) & (upper >= 0.8125)).mean()
        assert held > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 600)
        assert (lower >= 0).all()
        assert (upper <= 1).all()


def scores_of(values):
    """Scores (I, M) of models, NaN where there is none."""
    n_items, n_models = values.shape
    return ItemScores(values[:, None], pd.RangeIndex(n_items), pd.Index(["s"]), pd.RangeIndex(n_models))


@pytest.mark.parametrize(("counts", "rate"), [((1, 200), 0.9), ((5, 100), 0.9), ((20, 200), 0.99), ((3, 30), 0.5)])
def test_equal_models_with_items_of_their_own_are_seldom_told_apart(counts, rate):
    """Of 1,000 boards at most .05, at three errors; Student's t told them apart on up to .55."""
    rng, apart = np.random.default_rng(1), 0
    drawn = rng.binomial(counts, rate, (1000, 2))
    seen, times = np.unique(drawn, axis=0, return_counts=True)
    for right, n in zip(seen, times, strict=True):
        x = np.full((sum(counts), 2), np.nan)
        x[: counts[0], 0] = np.arange(counts[0]) < right[0]
        x[counts[0] :, 1] = np.arange(counts[1]) < right[1]
        found = estimate_scores(scores_of(x), np.ones(len(x), bool))
        apart += n * (pairwise(found, found.score).tiers(0.95).max() > 1)
        lower, upper = found.interval(0.95)
        assert ((lower >= 0) & (upper <= 1)).all()
    assert apart / 1000 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1000)


def test_one_right_answer_is_not_above_fifteen_of_thirty():
    frame = pd.concat([answers(30, [0.5]), pd.DataFrame({"item": [0], "model": ["one"], "score": [1.0]})])
    board = score_leaderboard(frame, missing="available", n_resamples=50, progress=False)
    assert board["tier"].tolist() == [1, 1]
    assert board[["rank_best", "rank_worst"]].to_numpy().tolist() == [[1, 2], [1, 2]]
    graded = score_leaderboard(
        frame.assign(score=3 + frame["score"]), missing="available", n_resamples=50, progress=False
    )
    assert graded["tier"].isna().tolist() == [True, False]
    assert graded["flags"][0] == "no observed variance: no interval, rank set or tier"


def test_a_benchmark_of_one_item_counts():
    """Half of the score is one answer: two models that differ in it alone are not told apart."""
    frame = answers(100, [0.9, 0.9]).assign(benchmark="large")
    lone = pd.DataFrame({"item": [100, 100], "model": ["m0", "m1"], "score": [1.0, 0.0], "benchmark": "small"})
    board = score_leaderboard(pd.concat([frame, lone]), n_resamples=50, progress=False)
    assert board["tier"].tolist() == [1, 1]
    assert (board["upper"] - board["lower"]).min() > 0.2
    assert any("1 benchmark has one item only" in text for text in board.attrs["warnings"])


def test_a_reference_without_variance_is_flagged():
    frame = answers(120, [0.8])
    frame = pd.concat([frame, frame.assign(model="reference", score=0.25)])
    board = score_leaderboard(frame, n_resamples=50, progress=False).set_index("model")
    assert board.loc["reference", "flags"] == "no observed variance"
    assert np.isnan(board.loc["reference", "standard_error"])
    lower, upper = board.loc["reference", ["lower", "upper"]]
    rare = 1 - 0.025 ** (1 / 120)  # a share of other scores that would show none of 120 times in 40
    assert_allclose([lower, upper], [0.25 * (1 - rare), 0.25 + 0.75 * rare])
    assert board["tier"].tolist() == [1, 2]


def test_identical_models_share_their_rank():
    frame = answers(200, [0.8, 0.3])
    frame = pd.concat([frame, frame[frame["model"] == "m0"].assign(model="twin")])
    board = score_leaderboard(frame, n_resamples=100, progress=False)
    assert board["rank"].tolist() == [1, 1, 3]
    assert board["tier"].tolist() == [1, 1, 2]
    assert board.attrs["answer"].startswith("m0 and twin are first with 0.")
    assert "not told apart" not in board.attrs["answer"]


def test_what_is_refused(table):
    with pytest.raises(DataError, match=r"240 rows repeat a model and an item.*trial="):
        score_leaderboard(pd.concat([table, table[table["model"] == "m0"]]))
    with pytest.raises(DataError, match="one item only"):
        score_leaderboard(table[table["item"] == 0])
    with pytest.raises(ValueError, match="population must be one of 'items', 'trials', 'benchmarks', got 'models'"):
        score_leaderboard(table, population="models")
    both = pd.concat([table.assign(judge="j"), table.assign(judge="k")])
    with pytest.raises(DataError, match="scores of 2 evaluators: j, k"):
        score_leaderboard(ItemScores.from_pandas(both, evaluator="judge"))
    with pytest.raises(ValueError, match="benchmark_weights need a column of benchmarks"):
        score_leaderboard(table, benchmark_weights={"a": 1.0})
    own = table.assign(benchmark=np.where(table["item"] < 100, "arc", "gsm8k"))
    with pytest.raises(ValueError, match=r"no benchmark is called 'gsmk'.*did you mean 'gsm8k'"):
        score_leaderboard(own, benchmark_weights={"arc": 1.0, "gsmk": 1.0})
    with pytest.raises(ValueError, match="1 benchmark has no weight: gsm8k"):
        score_leaderboard(own, benchmark_weights={"arc": 1.0})
    with pytest.raises(ValueError, match="must be finite and above 0, got arc 1, gsm8k -2"):
        score_leaderboard(own, benchmark_weights={"gsm8k": -2.0, "arc": 1.0})
    numbered = table.assign(benchmark=np.where(table["item"] < 100, 1, 2))
    first = numbered[(numbered["model"] != "m0") | (numbered["benchmark"] == 1)]
    with pytest.raises(DataError, match="model 'm0' has no score in benchmark 2: leave it out"):
        score_leaderboard(first, missing="available")


@pytest.mark.slow
def test_ten_equal_models_are_seldom_told_apart():
    """Of ten equal models on 40 items some two are told apart on fewer than 5 % of the boards, at four errors."""
    rng, apart, n = np.random.default_rng(0), 0, 300
    for _ in range(n):
        values = (rng.random((40, 10)) < 0.6).astype(float)
        scores = ItemScores(values[:, None], pd.RangeIndex(40), pd.Index(["s"]), pd.RangeIndex(10))
        asked = {"by": None, "population": "items", "benchmark_weights": "equal", "missing": "error"}
        (own,) = score_boards(scores, **asked, level=0.95, n_resamples=2, seed=0, progress=False).values()
        apart += own.ranks(0.95, True)["tier"].max() > 1
    assert apart / n < 0.05 + 4 * np.sqrt(0.05 * 0.95 / n)


def test_alpaca_eval_2(data):
    """The published win rates and standard errors of 57 models, to the digits that are there."""
    votes = pd.read_parquet(data / "alpacaeval_item_preferences.parquet")
    own = votes[votes["annotator"] == "weighted_alpaca_eval_gpt4_turbo"].assign(score=votes["preference"] - 1)
    published = pd.read_parquet(data / "alpacaeval_leaderboards.parquet")
    published = published[published["board"] == "alpacaeval2"].set_index("model")
    board = jaxeval.score_leaderboard(own, missing="available", n_resamples=20, progress=False).set_index("model")
    shared = board.index.intersection(published.index)
    assert len(shared) == 57
    assert_allclose(100 * board.loc[shared, "score"], published.loc[shared, "win_rate"], rtol=0, atol=2e-5)
    error = 100 * board.loc[shared, "standard_error"].fillna(0.0)
    assert_allclose(error, published.loc[shared, "standard_error"], rtol=0, atol=2e-5)


def test_draws_of_few_items_tell_no_equal_models_apart():
    """Graded scores of six models: without degrees of freedom 35 of 40 boards of two items had tiers, and 10 of ten."""
    for n in (2, 10):
        apart = 0
        for seed in range(40):
            rng = np.random.default_rng([seed, n])
            wide = pd.DataFrame(rng.normal(size=(n, 1)) + rng.normal(size=(n, 6))).rename_axis("item").reset_index()
            rows = wide.melt("item", var_name="model", value_name="score")
            apart += (score_draws(rows, n_resamples=200, seed=seed, progress=False).tiers() > 1).any()
        assert apart <= 2 + 3 * np.sqrt(40 * 0.05 * 0.95)
