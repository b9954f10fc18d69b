"""Rank correlations of evaluators: published tables, SciPy, resamples one by one, and what must not matter."""

import numpy as np
import pandas as pd
import pytest
import twins
from compilations import compilations
from evaluated import ARENA, DELTAS, GAPS, GOLD, MODELS, SCORES, B, M, drawn_models, settings, taus, wildbench_rewards
from scipy import stats

from jaxeval import (
    DataError,
    ItemScores,
    compare_evaluators,
    kendall_tau,
    kendall_tau_delta,
    rank_agreement,
    separability,
    smallest_gap,
    stratified_rank_change,
)
from jaxeval.evaluators.model_scores import align_scores
from jaxeval.evaluators.rank_correlation import delta_table
from jaxeval.evaluators.resamples import evaluator_table, resampled, resampled_delta_sums
from jaxeval.kernels.rank_agreement import delta_sums, tau_b


@pytest.fixture(scope="module")
def drawn():
    """(B, M) how often every model is in the resamples, models in the order of GAPS."""
    aligned = align_scores(GAPS, GOLD)
    counts = drawn_models(aligned, settings())[1:]
    return counts[:, aligned.models.get_indexer(GAPS.index)]


@pytest.fixture(scope="module")
def table():
    return taus()


def test_models_are_drawn_with_replacement(drawn):
    assert (drawn.sum(1) == M).all()
    assert (np.abs(drawn.mean(0) - 1) < 5 * np.sqrt((1 - 1 / M) / B)).all()
    share = (drawn == 0).mean()
    assert share == pytest.approx((1 - 1 / M) ** M, abs=5 * np.sqrt(0.25 / B / M))


def test_every_tau_and_its_interval_are_those_of_the_resamples_one_by_one(table, drawn):
    assert table.columns.tolist() == [
        "evaluator", "delta", "tau", "n_pairs", "n_models", "n_missing", "status", "lower", "upper", "failed_share",
    ]  # fmt: skip
    assert table["evaluator"].tolist() == ["x"] * 4 + ["y"] * 4
    for row in table.itertuples():
        x = GAPS[row.evaluator].to_numpy()
        one = [twins.tau_delta(x, GOLD.to_numpy(), np.repeat(np.arange(M), c), row.delta) for c in drawn]
        everything = twins.delta_sums(x, GOLD.to_numpy(), np.arange(M), row.delta)
        assert row.tau == pytest.approx(twins.tau_delta(x, GOLD.to_numpy(), np.arange(M), row.delta), abs=1e-14)
        assert row.n_pairs == everything[1]
        failed = np.isnan(one)
        low, high = (np.quantile(np.where(failed, fill, one), q) for fill, q in ((-1, 0.025), (1, 0.975)))
        assert (row.lower, row.upper) == pytest.approx((low, high), abs=1e-14)
        assert row.failed_share == failed.mean()
    assert table["n_models"].tolist() == [12] * 4 + [10] * 4
    assert table["n_missing"].tolist() == [0] * 4 + [2] * 4
    assert "models that lack one of the two scores are left out: 2 of 12 (y)" in table.attrs["warnings"]


def test_sums_of_fixed_and_of_recomputed_scores_are_the_same():
    aligned = align_scores(GAPS, GOLD)
    fast = resampled_delta_sums(aligned, np.array(DELTAS), settings())
    general = resampled(delta_sums, aligned, (np.array(DELTAS),), settings(), 4 * M * M)
    for a, b in zip(fast, general, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("seed", range(3))
def test_scipy_with_ties(seed):
    rng = np.random.default_rng(seed)
    gold, scores = rng.integers(0, 6, M), rng.integers(0, 4, (M, 2))
    found = rank_agreement(scores, gold, n_resamples=B).set_index(["evaluator", "measure"])["value"]
    for e in range(2):
        assert found[e, "kendall_tau"] == pytest.approx(stats.kendalltau(scores[:, e], gold).statistic, abs=1e-14)
        assert found[e, "spearman"] == pytest.approx(stats.spearmanr(scores[:, e], gold).statistic, abs=1e-14)


def test_a_resample_is_what_scipy_makes_of_the_copies(drawn):
    """A copy is tied with its model on both sides, which tau-b leaves out."""
    sums = resampled_delta_sums(align_scores(GAPS, GOLD), np.array(DELTAS), settings())
    for r, c in enumerate(drawn[:20]):
        rows = np.repeat(np.arange(M), c)
        expected = stats.kendalltau(SCORES["x"].to_numpy()[rows], GOLD.to_numpy()[rows]).statistic
        assert tau_b(sums)[1 + r, 0, 3] == pytest.approx(expected, abs=1e-14)


class TestWhatMustNotMatter:
    def same(self, found, table):
        pd.testing.assert_frame_equal(found.reset_index(drop=True), table, rtol=1e-12)

    def test_models_without_gold_scores(self, table):
        more = pd.concat([GAPS, pd.DataFrame({"x": [3.0], "y": [np.nan]}, ["new"])])
        found = taus(more)
        self.same(found.drop(columns="n_missing"), table.drop(columns="n_missing"))
        assert found["n_missing"].tolist() == [1] * 4 + [2] * 4

    def test_the_unit_of_gold(self, table):
        self.same(taus(gold=np.exp(GOLD / 100)), table)

    def test_the_sign_of_scores(self, table):
        flipped = taus(-GAPS)
        np.testing.assert_array_equal(flipped["tau"], -table["tau"])
        np.testing.assert_allclose(flipped["lower"], -table["upper"], atol=1e-14)


class TestDegenerate:
    def test_constant_scores(self):
        found = taus(GAPS.assign(y=3.0))
        assert found["status"].tolist() == ["ok"] * 4 + ["scores are constant"] * 4
        assert found.loc[4:, ["tau"]].isna().all(axis=None)
        assert (found.loc[4:, "failed_share"] == 1).all()
        measures = rank_agreement(GAPS.assign(y=3.0), GOLD, n_resamples=B)
        assert measures.loc[5:, ["value", "lower"]].isna().all(axis=None)
        assert (measures.loc[5:, "status"] == "scores are constant").all()

    def test_constant_gold(self):
        assert (taus(gold=GOLD * 0)["status"] == "gold scores are constant").all()

    def test_no_pair_under_delta(self):
        found = taus(deltas=[1e-6, 0.9, 6.0, np.inf])
        x = found[found["evaluator"] == "x"].iloc[0]
        ties = (np.diff(np.sort(SCORES["x"])) == 0).sum()
        assert x["status"] == ("all pairs under delta are tied" if ties else "no pair under delta")
        assert np.isnan(x["tau"])
        spread = taus(pd.Series(np.arange(M) * 2.0, MODELS), deltas=[1.0, 2.0, 2.1, np.inf])
        assert spread["status"].tolist() == ["no pair under delta"] * 2 + ["ok"] * 2
        assert spread["n_pairs"].tolist() == [0, 0, M - 1, M * (M - 1) // 2]  # strictly less

    def test_one_model(self):
        found = kendall_tau(pd.DataFrame({"x": [1.0, 2.0], "y": [np.nan, 3.0]}), [4.0, 5.0], n_resamples=B)
        assert found["status"].tolist() == ["ok", "fewer than two models"]
        assert found["n_pairs"].tolist() == [1, 0]
        message = "intervals over fewer than 10 models say little: 2 models (x); 1 model (y)"
        assert message in found.attrs["warnings"]

    def test_top_of_few(self):
        found = rank_agreement(GAPS, GOLD, top=11, n_resamples=B).set_index(["evaluator", "measure"])["status"]
        assert found["x", "top_overlap"] == "ok"
        assert found["y", "top_overlap"] == "fewer models than the top has"


def test_measures_beside_their_definitions():
    found = rank_agreement(GAPS, GOLD, top=4, n_resamples=B).set_index(["evaluator", "measure"])
    assert found["n_pairs"].tolist() == [66] * 5 + [45] * 5
    both = GAPS["y"].dropna().index
    y, gold = GAPS.loc[both, "y"], GOLD[both]
    pairs = twins.pairs_of(range(len(both)))
    accuracy = np.mean([(1 + np.sign(y.iloc[i] - y.iloc[j]) * np.sign(gold.iloc[i] - gold.iloc[j])) / 2
                        for i, j in pairs])  # fmt: skip
    assert found.loc[("y", "pair_accuracy"), "value"] == pytest.approx(accuracy)
    deviation = (y.rank() - gold.rank()).abs().mean()
    assert found.loc[("y", "rank_deviation"), "value"] == pytest.approx(deviation)
    assert (found["lower"] <= found["value"]).all()
    assert (found["value"] <= found["upper"]).all()
    pd.testing.assert_frame_equal(
        kendall_tau(GAPS, GOLD, n_resamples=B).drop(columns="evaluator"),
        taus(deltas=[np.inf]).drop(columns=["evaluator", "delta"]),
    )


@pytest.mark.slow
@pytest.mark.parametrize("n_models", [10, 40])
def test_intervals_over_models_cover(n_models):
    """Of tau-b, models drawn from a population whose tau is known; never less often than they promise."""
    rng = np.random.default_rng(2)
    inside, n = 0, 150
    truth = 2 / np.pi * np.arcsin(0.7)
    for k in range(n):
        x = rng.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], n_models)
        row = kendall_tau(x[:, 0], x[:, 1], n_resamples=200, seed=k).iloc[0]
        inside += row["lower"] <= truth <= row["upper"]
    assert inside / n > 0.95 - 2.5 * np.sqrt(0.05 * 0.95 / n)


def test_pairs_that_all_agree_leave_tau_open():
    """Its lower end is the tau of which samples agree in all pairs in one of forty cases."""
    found = kendall_tau(np.arange(7.0), np.arange(7.0), n_resamples=50)
    (low,), (reversed_high,) = found["lower"], kendall_tau(np.arange(7.0), -np.arange(7.0), n_resamples=50)["upper"]
    assert found["upper"][0] == 1
    assert reversed_high == pytest.approx(-low)
    rng, rho, n = np.random.default_rng(3), np.sin(np.pi * low / 2), 20_000
    gold = np.sort(rng.normal(size=(n, 7)), axis=1)
    scores = rho * gold + np.sqrt(1 - rho**2) * rng.normal(size=(n, 7))
    share = (np.diff(scores, axis=1) > 0).all(1).mean()
    assert abs(share - 0.025) < 4 * np.sqrt(0.025 * 0.975 / n)
    items = pd.DataFrame(
        {"model": np.repeat([*"abcdefg"], 9), "item": [*range(9)] * 7, "score": np.repeat(range(7), 9) / 10}
    )
    of_items = kendall_tau(ItemScores.from_pandas(items), np.arange(7.0), n_resamples=50, resample="items")
    assert of_items["lower"][0] == 1  # other items for these models, whose order no item disputes


@pytest.mark.parametrize("n", [5, 7, 20])
def test_models_that_all_agree_leave_every_measure_open(n):
    """The open ends are what evaluators measure on average who order so many models without a fault in one of forty."""
    found = rank_agreement(np.arange(1.0 * n), np.arange(1.0 * n), top=3, n_resamples=50).set_index("measure")
    assert found["value"].tolist() == pytest.approx([1, 1, 1, 1, 0], rel=4 * np.finfo(float).eps, abs=0)
    low = found["lower"]
    rng, rho, n_samples = np.random.default_rng(4), np.sin(np.pi * low["kendall_tau"] / 2), 10_000
    gold = -np.sort(-rng.normal(size=(n_samples, n)), axis=1)
    scores = rho * gold + np.sqrt(1 - rho**2) * rng.normal(size=gold.shape)
    ranks, places = np.argsort(np.argsort(-scores, axis=1), axis=1), np.arange(n)
    moved = ranks - places
    assert abs((1 - 6 * (moved**2).sum(1) / (n * (n**2 - 1))).mean() - low["spearman"]) < 0.015
    deviation = np.abs(moved).mean()
    assert deviation < found["upper"]["rank_deviation"] < 1.25 * deviation
    assert low["top_overlap"] < (ranks[:, :3] < 3).mean()
    reversed_ = rank_agreement(np.arange(1.0 * n), -np.arange(1.0 * n), top=3, n_resamples=50).set_index("measure")
    np.testing.assert_allclose(reversed_["upper"][["kendall_tau", "spearman"]], -low[["kendall_tau", "spearman"]])
    if n == 20:  # at 5 models the tops overlap in any case
        assert reversed_.loc["top_overlap", ["value", "lower", "upper"]].tolist() == [0, 0, 3 / 20]


def test_warnings_of_many_evaluators_are_one():
    board = pd.DataFrame({f"e{k:02d}": GAPS["x"].iloc[k % 2 :] for k in range(22)})
    odd = ", ".join(f"e{k:02d}" for k in range(1, 16, 2))
    assert taus(board).attrs["warnings"][:1] == [
        f"models that lack one of the two scores are left out: 1 of 12 ({odd} and 3 more)"
    ]
    unnamed = taus(GAPS["y"]).attrs["warnings"]
    assert unnamed[:1] == ["models that lack one of the two scores are left out: 2 of 12"]


def test_few_pairs_are_hidden_in_tables(table):
    shown = delta_table(table, few_pairs=15)
    assert shown.index.tolist() == ["x", "y"]
    hidden = table["n_pairs"].to_numpy().reshape(2, 4) < 15
    assert hidden.any()
    np.testing.assert_array_equal(shown.isna(), hidden)
    assert delta_table(table, few_pairs=0).notna().all(axis=None)


@pytest.mark.parametrize(("options", "message"), [
    ({"deltas": [0.0, 2.0]}, "deltas must be numbers above 0, one or more in a list, in points; got 0.0, 2.0$"),
    ({"deltas": []}, "deltas must be numbers above 0.*got none$"),
    ({"n_resamples": 1}, "n_resamples must be 0 or at least 2"),
    ({"level": np.float64(95)}, "level must be between 0 and 1, got 95.0$"),
    ({"resample": "prompts"}, "resample must be"),
    ({"resample": "items"}, "needs scores by item"),
    ({"gold": GOLD.rename(lambda m: m + "!")}, "no model has both a score and a gold score.*'m00!'"),
    ({"gold": [1.0, 2.0]}, "12 models have scores, but 2 gold scores are given"),
    ({"gold": "elo"}, "no column 'elo' of gold scores; the columns are 'x', 'y'"),
    ({"gold": pd.concat([GOLD, GOLD])}, "model 'm00' has more than one row in gold"),
    ({"gold": pd.Series([1.0, 2.0], [7, 7])}, "model 7 has more than one row in gold"),
    ({"scores": GAPS.assign(name=MODELS)}, "column 'name' is not numeric"),
    ({"scores": GAPS.assign(y=np.inf)}, "column 'y' has 12 infinite scores"),
    ({"scores": GAPS[[]]}, "there is no evaluator"),
])  # fmt: skip
def test_refused(options, message):
    with pytest.raises(ValueError, match=message):
        taus(**options)
    assert issubclass(DataError, ValueError)


def test_what_is_no_integer():
    with pytest.raises(TypeError, match="top must be an integer"):
        rank_agreement(GAPS, GOLD, top=2.5)
    with pytest.raises(ValueError, match="top must be at least 1"):
        rank_agreement(GAPS, GOLD, top=0)


# --- published numbers ---------------------------------------------------------------------------

TABLE_5 = {  # deltas 2, 5, 10, 20, 30, 50, infinity
    "reward": [0.455, 0.579, 0.538, 0.713, 0.790, 0.867, 0.900],
    "gpt4t": [-0.333, 0.100, 0.442, 0.606, 0.721, 0.814, 0.852],
    "haiku": [0.000, 0.368, 0.543, 0.676, 0.742, 0.845, 0.890],
    "llama": [-0.429, 0.091, 0.333, 0.591, 0.693, 0.809, 0.852],
}
TABLE_1 = {  # deltas 0.3, 0.5, 1, 2, 5, 10, infinity; cut, not rounded
    "LC AlpacaEval 2.0": [0.230, 0.263, 0.280, 0.196, 0.517, 0.730, 0.869],
    "AlpacaEval 2.0": [0.294, 0.083, 0.116, 0.319, 0.616, 0.763, 0.815],
    "AlpacaEval 1.0": [-0.547, -0.617, -0.087, -0.140, 0.235, 0.336, 0.583],
}
FEB_2 = "Arena Elo [Feb 2, 2024]"


def notebook(data):
    return pd.read_csv(data / "alpacaeval_notebook_benchmarks.csv.gz").dropna(subset="Model").set_index("Model")


def test_table_5(data):
    board = wildbench_rewards(data)
    assert len(board) == 21
    found = delta_table(taus(board, pd.Series(ARENA, dtype=float), [2, 5, 10, 20, 30, 50, np.inf], 0), few_pairs=0)
    assert found.index.tolist() == list(TABLE_5)
    np.testing.assert_array_equal(found.round(3), list(TABLE_5.values()))


def test_table_1(data):
    board = notebook(data)[[*TABLE_1, FEB_2]]
    found = delta_table(taus(board, FEB_2, [0.3, 0.5, 1, 2, 5, 10, np.inf], 0), few_pairs=0)
    np.testing.assert_array_equal(np.trunc(found * 1000 + 1e-9 * np.sign(found)) / 1000, list(TABLE_1.values()))


def test_correlations_of_many_boards(data):
    board = notebook(data)
    names = {"LC AlpacaEval 2.0": (0.975, 37), "AlpacaEval 2.0": (0.931, 37), "MT-bench (multi-turn)": (0.933, 33),
             "MMLU (5-shot)": (0.864, 42)}  # fmt: skip
    found = rank_agreement(board.drop(columns=FEB_2), board[FEB_2], n_resamples=0)
    for (evaluator, measure), row in found.set_index(["evaluator", "measure"]).iterrows():
        both = board[[evaluator, FEB_2]].dropna()
        assert row["n_models"] == len(both)
        if measure in ("spearman", "kendall_tau"):
            theirs = stats.spearmanr if measure == "spearman" else stats.kendalltau
            assert row["value"] == pytest.approx(theirs(both[evaluator], both[FEB_2]).statistic, abs=1e-12)
        if measure == "spearman" and evaluator in names:
            assert (round(row["value"], 3), row["n_models"]) == names[evaluator]


def test_wildbench_boards(data):
    board = pd.read_csv(data / "wildbench_all_stat.csv.gz").set_index("model")
    expected = {"WB_Elo": (0.960, None), "Arena-Hard v0.1": (0.887, 23), "AE2.0 LC": (0.862, 16),
                "WB_score": (0.792, None), "Length": (0.317, 35)}  # fmt: skip
    gold = board["Arena Elo (hard-en) - 2024-07-16"]
    found = kendall_tau(board[list(expected)], gold, n_resamples=0).set_index("evaluator")
    for name, (tau, n) in expected.items():
        assert round(found.loc[name, "tau"], 3) == tau
        assert n is None or found.loc[name, "n_models"] == n


@pytest.mark.slow
def test_many_leaderboards(data):
    """Every metric of the largest board against one of them: 1,756 models, ties, missing cells."""
    long = pd.read_parquet(data / "benchbench_leaderboards_long.parquet")
    own = long[long["file"] == "old/hf_open_llm_v1_240829_frozen"]
    board = own.pivot_table(index="model", columns="metric", values="score")
    assert board.shape == (1756, 7)
    gold = board.columns[0]
    found = kendall_tau(board, gold, n_resamples=7)
    for row in found.itertuples():
        both = board[[gold, row.evaluator]].dropna()
        expected = stats.kendalltau(both[gold], both[row.evaluator]).statistic
        assert row.tau == pytest.approx(expected, abs=1e-12)
        assert row.lower <= row.upper
    assert (found["n_pairs"] > 1_000_000).all()


def test_frames_of_other_libraries():
    """A column of text names the models; without one they are matched by position."""
    polars = pytest.importorskip("polars")
    table = polars.from_pandas(GAPS.reset_index(names="model"))
    pd.testing.assert_frame_equal(taus(table, GOLD.sample(frac=1, random_state=0)), taus())
    pd.testing.assert_frame_equal(taus(table.drop("model"), GOLD), taus())
    with_gold = table.with_columns(polars.Series("people", GOLD.to_numpy()))
    pd.testing.assert_frame_equal(taus(with_gold, "people"), taus())
    one = taus(table["x"], polars.Series(GOLD.to_numpy()))
    assert one["tau"].tolist() == taus()["tau"].tolist()[:4]


def test_no_models():
    with pytest.raises(DataError, match="there is no model"):
        taus([], [])


def test_rounding_brings_no_pair_under_the_gap():
    """0.3 - 0.1 is a little less than 0.2 in binary."""
    found = kendall_tau_delta([0.3, 0.1, 0.7, 0.5, 0.9], [1, 2, 3, 4, 5], [0.2, 0.4], n_resamples=0)
    assert found["n_pairs"].tolist() == [0, 4]
    rng = np.random.default_rng(1)
    tenths = rng.integers(0, 100, 60)
    found = kendall_tau_delta(tenths / 10, np.arange(60.0), [0.3, 1.1], n_resamples=0)
    gap = np.abs(tenths[:, None] - tenths)[np.triu_indices(60, 1)]
    assert found["n_pairs"].tolist() == [(gap < 3).sum(), (gap < 11).sum()]


def test_an_estimate_outside_its_interval_is_told():
    aligned = align_scores(GAPS, GOLD)
    columns = {"tau": np.array([0.5, 0.1]), "lower": np.array([0.0, 0.2]), "upper": np.array([1.0, 0.9])}
    found = evaluator_table(aligned, [], columns, settings())
    assert "1 number lies outside its own interval, of 2: resamples are biased there" in found.attrs["warnings"]


@pytest.mark.slow
def test_other_numbers_of_models_evaluators_gaps_and_resamples_compile_nothing():
    """Of every measure; regressions take slots for pairs of models, in finer steps."""

    def run(n_models, n_evaluators, deltas, n_resamples):
        rng = np.random.default_rng(0)
        gold = rng.normal(size=n_models)
        scores = gold[:, None] + rng.normal(size=(n_models, n_evaluators))
        options = {"n_resamples": n_resamples, "progress": False}
        kendall_tau_delta(scores, gold, deltas, **options)
        rank_agreement(scores, gold, top=4, **options)
        compare_evaluators(scores, gold, **options)
        stratified_rank_change(scores, gold, **options)
        separability(scores, gold, standard_error=0.5 + 0 * scores, **options)
        smallest_gap(scores, gold, **options)

    run(44, 3, [0.5, np.inf], 100)
    with compilations() as count:
        for sizes in ((45, 3, [0.5, np.inf], 120), (41, 4, [0.5, 1.0, np.inf], 60), (43, 2, [0.3], 100)):
            run(*sizes)
    assert count.programs == []


def changes(scores=GAPS, gold=GOLD, **options):
    return stratified_rank_change(scores, gold, n_resamples=B, **options)


@pytest.mark.parametrize("within", [False, True])
def test_every_change_and_its_interval_are_those_of_the_resamples_one_by_one(within):
    found = changes(within_tier=within)
    assert found.columns.tolist() == [
        "evaluator", "tier", "rank_change", "n_models", "n_pairs", "n_missing", "status", "lower", "upper",
        "failed_share",
    ]  # fmt: skip
    aligned = align_scores(GAPS, GOLD)
    counts = drawn_models(aligned, settings())[1:]
    for e, name in enumerate(GAPS):
        own = found[found["evaluator"] == name]
        x, gold = aligned.scores[e], aligned.gold
        change, number = twins.tier_changes(x, gold, np.arange(M), 4, within)
        np.testing.assert_allclose(own["rank_change"], change)
        np.testing.assert_array_equal(own["n_models"], number)
        number = np.array(number)
        others = 0 if within else np.sum(~np.isnan(x)) - number
        np.testing.assert_array_equal(own["n_pairs"], number * (number - 1) / 2 + number * others)
        draws = np.array([twins.tier_changes(x, gold, np.repeat(np.arange(M), c), 4, within)[0] for c in counts])
        for end, q, fill in (("lower", 0.025, 0.0), ("upper", 0.975, M - 1.0)):
            expected = np.quantile(np.where(np.isnan(draws), fill, draws), q, axis=0)
            # No model moves by more than all the others that the evaluator scored.
            expected = np.minimum(expected, np.sum(~np.isnan(x)) - 1.0)
            np.testing.assert_allclose(own[end], expected, atol=1e-12)
        np.testing.assert_allclose(own["failed_share"], np.isnan(draws).mean(0))


def test_by_hand():
    """Ranks 2 1 | 3 5 | 4 6: changes of 1 1, 0 1, 1 0."""
    found = stratified_rank_change([5.0, 6, 4, 2, 3, 1], [60.0, 50, 40, 30, 20, 10], 3, n_resamples=0)
    assert found["rank_change"].tolist() == [1.0, 0.5, 0.5]
    assert found["n_models"].tolist() == [2, 2, 2]
    assert "lower" not in found


def test_perfect_and_reversed_evaluators():
    board = pd.DataFrame({"same": GOLD, "other": -GOLD})
    found = changes(board).set_index(["evaluator", "tier"])
    assert (found.loc["same", ["rank_change", "lower", "upper"]] == 0).all(axis=None)
    assert found.loc["other", "rank_change"].tolist() == [9.0, 3.0, 3.0, 9.0]


def test_degenerate():
    found = changes(GAPS.assign(y=1.0))
    assert found["status"].tolist() == ["ok"] * 4 + ["scores are constant"] * 4
    assert found.loc[4:, ["rank_change", "lower", "upper"]].isna().all(axis=None)
    top = GOLD.nlargest(3).index
    found = changes(GAPS.assign(y=GAPS["y"].drop(top)))
    assert found["status"].tolist() == ["ok"] * 4 + ["no model of the tier is scored"] + ["ok"] * 3
    assert (changes(gold=GOLD * 0)["status"] == "gold scores are constant").all()


def test_refused_changes():
    with pytest.raises(ValueError, match="n_tiers must be at least 1"):
        changes(n_tiers=0)
    with pytest.raises(TypeError, match="n_tiers must be an integer"):
        changes(n_tiers=2.5)
    with pytest.raises(DataError, match="12 models cannot be split into 13 tiers"):
        changes(n_tiers=13)


def test_published_tiers(data):
    """Table 9 of the method: 6, 5, 5 and 5 of the 21 models; two share tier 2's lowest score."""
    found = stratified_rank_change(wildbench_rewards(data), pd.Series(ARENA, dtype=float), n_resamples=0)
    assert found["n_models"].tolist() == [6, 5, 5, 5] * 4
    assert found.loc[:3, "rank_change"].tolist() == pytest.approx([1 / 3, 1.4, 1.0, 0.8])
