"""Leave-one-model-out Soft-Elo: known answers, a naive twin, invariances, the bootstrap, and flags."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import twins
from prompts import prompted
from scipy.special import expit
from scipy.stats import kendalltau, spearmanr

import jaxeval
from jaxeval import JudgedBattles, soft_elo
from jaxeval.lab.held_out_sweeps import label_smoothing_sweep
from jaxeval.plots.soft_elo import plot_smoothing
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.softelo.held_out import hold_out
from jaxeval.softelo.soft_elo import _accuracy
from jaxeval.softelo.temperature import compress


def twin(battles, ridge, constant=0.8):
    """Algorithm 1 row by row: (4, M) ratings by human, hard, soft and smoothed targets, and (M,) temperatures."""
    a, b, d, human = battles.model_a, battles.model_b, battles.score_difference, battles.human
    m = len(battles.models)
    ratings, betas = np.empty((4, m)), np.empty(m)
    for model in range(m):
        fitting = (a != model) & (b != model) & np.isin(human, (0, 1))
        betas[model] = twins.temperature(d[fitting], human[fitting])
        smooth = 0.5 + (2 * constant - 1) * (battles.hard - 0.5)
        for k, y in enumerate((human, battles.hard, expit(betas[model] * d), smooth)):
            known = ~np.isnan(y)
            ratings[k, model] = twins.held_out(a[known], b[known], y[known], m, model, ridge)
    return 1500 + ELO_PER_LOGIT * ratings, betas


def wide(result, column="judge_elo"):
    return result.models.pivot_table(index="model", columns="method", values=column, dropna=False)


THREE = ("hard", "soft", "smooth:0.8")


# Boards of up to 1,023 cells, 512 kinds of them, and 16 models share compiled code, and the resamples of 1 to 8 models,
# or of 9 to 16: so do most tests, at 200 resamples.
@pytest.fixture(scope="module")
def judged():
    return jaxeval.simulate_judged_battles(1000, 8, unlabelled=0.15, tie_rate=0.4, seed=5)


@pytest.fixture(scope="module")
def large():
    return jaxeval.simulate_judged_battles(12_000, 6, seed=4)


@pytest.fixture(scope="module")
def rated(judged):
    return soft_elo(judged, n_resamples=200)


def test_random_templates(judged, rated):
    """A template that a model likes lengthens its error; what does not matter changes little."""
    of_model = judged.models.get_loc("model-3")
    sides = (judged.model_a == of_model).astype(int) - (judged.model_b == of_model)
    template = np.arange(judged.n_battles) % 4
    columns = judged.columns.assign(template=template, one=1, seed=np.arange(judged.n_battles) // 4 % 2)
    moved = replace(judged, score_difference=judged.score_difference + 6 * sides * (template - 1.5), columns=columns)
    options = {"n_resamples": 200}
    found, alone = soft_elo(moved, random="template", **options), soft_elo(moved, **options)
    of_soft = [result.models.query("method == 'soft'").set_index("model") for result in (found, alone)]
    wider = of_soft[0]["standard_error"] / of_soft[1]["standard_error"]
    assert wider.idxmax() == "model-3"
    assert wider.max() > 1.5
    about = "standard errors are for templates and battles like these (4 templates, 1,000 battles) under these seeds"
    assert found.answer.sentences[0] == about
    np.testing.assert_array_equal(found.models["judge_elo"], alone.models["judge_elo"])
    with pytest.raises(jaxeval.DataError, match="one has one level"):
        soft_elo(moved, random="one", **options)
    with pytest.raises(ValueError, match="random takes no strata"):
        soft_elo(moved, random="template", strata="one", **options)
    with pytest.raises(ValueError, match="each judge has ratings of its own"):
        soft_elo({"j1": judged, "j2": judged}, random="judge", **options)


def test_known_answers_of_the_sample(data):
    battles = jaxeval.read_judged_battles(data / "softelo_sample.csv", label_coding="a_wins_0")
    result = soft_elo(battles, ridge=0.005, n_resamples=0)
    summary = result.summary
    assert summary["n_models"].tolist() == [14, 14]
    # The released script stops its optimiser within 0.002 Elo and 2e-6 of each beta.
    np.testing.assert_allclose(summary["mae"], [57.633390, 19.536330], atol=0.002)
    np.testing.assert_allclose(summary["spearman"], [0.960440, 0.969231], atol=5e-7)
    np.testing.assert_allclose(summary["kendall"], [0.868132, 0.912088], atol=5e-7)
    assert summary.loc["soft", "beta"] == pytest.approx(0.655205, abs=2e-6)
    reference = pd.read_csv(data / "softelo_sample_reference.csv")
    both = result.models.merge(reference, on=["model", "method"], suffixes=("", "_reference"))
    assert len(both) == 28
    for column in ("human_elo", "judge_elo"):
        np.testing.assert_allclose(both[column], both[f"{column}_reference"], atol=0.002)
    np.testing.assert_allclose(both["residual"], -both["residual_reference"], atol=0.004)
    soft = both["method"] == "soft"
    np.testing.assert_allclose(both["beta"][soft], both["beta_reference"][soft], atol=2e-6)
    assert both["beta"][~soft].isna().all()
    np.testing.assert_array_equal(both["n_battles"], both["n_target_rows"])


@pytest.mark.parametrize("ridge", [0.01, 1.0])
def test_equals_the_naive_twin(judged, ridge):
    result = soft_elo(judged, ridge=ridge, n_resamples=0, methods=THREE)
    ratings, betas = twin(judged, ridge)
    found = wide(result)
    for k, method in enumerate(THREE, start=1):
        np.testing.assert_allclose(found[method], ratings[k], atol=1e-5)
    np.testing.assert_allclose(wide(result, "human_elo")["hard"], ratings[0], atol=1e-5)
    np.testing.assert_allclose(wide(result, "beta")["soft"], betas, atol=1e-8)
    assert result.warnings == []


def test_sparse_boards_are_finished_by_newton():
    battles = jaxeval.simulate_judged_battles(60, 9, unlabelled=0, tie_rate=0.1, seed=2)
    result = soft_elo(battles, n_resamples=0, methods=THREE)
    ratings, _ = twin(battles, 0.01)
    for k, method in enumerate(THREE, start=1):
        np.testing.assert_allclose(wide(result)[method], ratings[k], atol=1e-4)
    assert not result.models["flags"].str.contains("converged").any()


def test_summary_is_that_of_the_models(rated):
    for method, group in rated.models.groupby("method"):
        row = rated.summary.loc[method]
        assert row["mae"] == pytest.approx(group["residual"].abs().mean())
        assert row["spearman"] == pytest.approx(spearmanr(group["human_elo"], group["judge_elo"]).statistic)
        assert row["kendall"] == pytest.approx(kendalltau(group["human_elo"], group["judge_elo"]).statistic)
        assert row["mae_lower"] < row["mae"] < row["mae_upper"]


def test_accuracy_of_resampled_models_pairs_no_model_with_itself():
    rng = np.random.default_rng(0)
    models = pd.DataFrame(rng.integers(0, 6, (10, 3)).astype(float), columns=["human_elo", "judge_elo", "beta"])
    weights = rng.multinomial(10, np.full(10, 0.1), 20).astype(float)
    found = _accuracy(models, weights)
    for row, weight in zip(found, weights, strict=True):
        which = np.repeat(np.arange(10), weight.astype(int))
        x, y = (models[c].to_numpy()[which] for c in ("human_elo", "judge_elo"))
        assert row[0] == pytest.approx(np.abs(x - y).mean())
        assert row[1] == pytest.approx(spearmanr(x, y).statistic)
        assert row[2] == pytest.approx(kendalltau(x, y).statistic)


@pytest.mark.slow
def test_standard_errors_are_those_of_the_score_equation(large):
    """The bootstrap's variance is sum (y - p)^2 / information^2 to first order, anchors and targets fixed."""
    result = soft_elo(large, n_resamples=2000)
    a, b = large.model_a, large.model_b
    hard = wide(result, "standard_error")["hard"], wide(result)["hard"]
    for i in range(6):
        own = (a == i) | (b == i)
        rest = ~own
        theta = twins.newton(twins.wins_of(a[rest], b[rest], large.hard[rest], 6), 0.01)
        first = a[own] == i
        y = np.where(first, large.hard[own], 1 - large.hard[own])
        strength = twins.one_strength(theta[np.where(first, b[own], a[own])], y, 0.01)
        p = expit(strength - theta[np.where(first, b[own], a[own])])
        expected = ELO_PER_LOGIT * np.sqrt(np.sum((y - p) ** 2)) / np.sum(p * (1 - p))
        error, rating = (column.iloc[i] for column in hard)
        # Second-order terms are of the order of 1 / battles.
        assert abs(error / expected - 1) < 4 / np.sqrt(2 * 2000) + 4 / own.sum() * 10
        draws = result.draws[0, i]
        assert abs(draws.mean() - rating) < 5 * error / np.sqrt(2000) + 0.5


def test_standard_errors_are_those_of_draws(rated):
    np.testing.assert_allclose(rated.models["standard_error"], rated.draws.std(2, ddof=1).T.ravel())


def test_several_judges_are_each_their_own(judged, rated):
    weaker = jaxeval.simulate_judged_battles(1000, 8, temperature=0.2, seed=5)
    both = soft_elo({"one": judged, "two": weaker}, n_resamples=200)
    assert both.draws.shape == (2, 2, 8, 200)
    np.testing.assert_allclose(both.draws[0], rated.draws, atol=1e-6)
    alone = both.models[both.models["judge"] == "one"].drop(columns="judge").reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, rated.models, atol=1e-6)
    assert both.summary.index.names == ["judge", "method"]


def test_flags_leave_rows_out_of_the_averages_and_count_them():
    battles = jaxeval.simulate_judged_battles(800, 6, tie_rate=0, seed=8)
    a, b = battles.models[battles.model_a].tolist(), battles.models[battles.model_b].tolist()
    hub = a[0]
    frame = pd.DataFrame({"model_a": a, "model_b": b, "human": battles.human, "d": battles.score_difference})
    leaf = pd.DataFrame({"model_a": "z-leaf", "model_b": hub, "human": [1.0, 0.0] * 30, "d": [1.0, 2.0] * 30})
    few = pd.DataFrame({"model_a": "z-few", "model_b": frame["model_a"].unique()[:5], "human": 1.0, "d": 1.0})
    unvoted = pd.DataFrame({"model_a": "z-new", "model_b": a[:30], "human": np.nan, "d": 1.0})
    judged = JudgedBattles.from_pandas(
        pd.concat([frame, leaf, few, unvoted]), score_difference="d", label_coding="a_wins_1"
    )
    result = soft_elo(judged, n_resamples=200)
    flags = result.models.query("method == 'hard'").set_index("model")["flags"]
    assert flags[hub] == "anchors fall apart"
    assert flags["z-few"] == "few battles"
    assert flags["z-new"] == "no human labels"
    assert flags["z-leaf"] == ""
    assert result.summary.loc["hard", "n_models"] == 6
    assert result.summary.loc["hard", "n_left_out"] == 3
    new = result.models.query("model == 'z-new'")
    assert new["human_elo"].isna().all()
    assert np.isfinite(new[["judge_elo", "standard_error"]]).all(axis=None)
    assert any("left out of the averages (anchors fall apart)" in w for w in result.warnings)
    alone = soft_elo(JudgedBattles.from_pandas(few[:1], score_difference="d", label_coding="a_wins_1"), n_resamples=20)
    assert alone.models["standard_error"].isna().all()  # draws of one battle are equal but for rounding


def test_a_separable_judge_has_no_temperature_and_no_soft_rating():
    battles = jaxeval.simulate_judged_battles(600, 6, tie_rate=0, seed=9)
    perfect = replace(battles, human=battles.judge)
    result = soft_elo(perfect, n_resamples=200)
    soft = result.models.query("method == 'soft'")
    assert (soft["flags"] == "no temperature: separable").all()
    assert soft["judge_elo"].isna().all()
    assert result.summary.loc["soft", "n_models"] == 0
    assert result.summary.loc["hard", "n_models"] == 6
    assert result.answer.sentences[0].endswith("off the human ratings on average; soft rates none")
    opposite = soft_elo(replace(battles, human=1 - battles.human), n_resamples=0)
    assert (opposite.models.query("method == 'soft'")["flags"] == "negative slope").all()
    assert opposite.summary.loc["soft", "n_models"] == 0
    assert any("check what the labels mean (label_coding=, --labels)" in w for w in opposite.warnings)
    assert not any("check what the labels mean" in w for w in result.warnings)


def test_a_model_met_by_one_other_alone_costs_that_one_nothing():
    battles = jaxeval.simulate_judged_battles(800, 6, tie_rate=0, seed=8)
    a, b = battles.models[battles.model_a].tolist(), battles.models[battles.model_b].tolist()
    frame = pd.DataFrame({"model_a": a, "model_b": b, "human": battles.human, "d": battles.score_difference})
    stray = pd.DataFrame({"model_a": ["z-0", "z-1", "z-2"], "model_b": battles.models[:3], "human": 1.0, "d": 1.0})
    judged = JudgedBattles.from_pandas(pd.concat([frame, stray]), score_difference="d", label_coding="a_wins_1")
    table = soft_elo(judged, n_resamples=0).models.query("method == 'hard'").set_index("model")
    assert (table.loc[battles.models, "flags"] == "").all()
    assert (table.loc[["z-0", "z-1", "z-2"], "flags"] == "few battles").all()


def test_human_and_judge_ratings_have_one_zero_where_few_models_have_votes():
    battles = jaxeval.simulate_judged_battles(1000, 10, seed=6)
    rating = soft_elo(battles, n_resamples=0).models.query("method == 'hard'")["human_elo"].to_numpy()
    strongest = np.argsort(-rating)[:5]
    among = np.isin(battles.model_a, strongest) & np.isin(battles.model_b, strongest)
    partly = replace(battles, human=np.where(among, battles.human, np.nan))
    found = soft_elo(partly, n_resamples=200)
    (folds,) = hold_out([compress(battles)], ("hard", "soft"), 0.01)
    hard = found.models.query("method == 'hard'")
    for i, name in enumerate(battles.models):
        others = [j for j in strongest if j != i]
        expected = 1500 + ELO_PER_LOGIT * (folds.theta[1, i] - folds.anchors[1, i, others].mean())
        row = hard.iloc[i]
        assert row["model"] == name
        assert row["judge_elo"] == pytest.approx(expected, abs=1e-4)
        assert abs(found.draws[0, i].mean() - expected) < row["standard_error"]
    # The stretched ruler leaves residuals, but no common offset.
    residual = hard.loc[hard["averaged"], "residual"]
    assert len(residual) == 5
    assert abs(residual.mean()) < 0.25 * residual.abs().mean()


def test_wrong_arguments(judged):
    for options, text in (
        ({"ridge": 0.0}, "ridge must be"),
        ({"methods": ("hard", "mild")}, "unknown method 'mild'"),
        ({"methods": ("hrad",)}, r"did you mean 'hard'\?"),
        ({"methods": ("smooth:0.3",)}, "unknown method"),
        ({"methods": ()}, "methods must"),
        ({"n_resamples": -1}, "n_resamples"),
        ({"ties": "skip"}, "ties must be"),
    ):
        with pytest.raises(ValueError, match=text):
            soft_elo(judged, **options)
    with pytest.raises(ValueError, match="no judge"):
        soft_elo({})


def with_columns(battles, **columns):
    return replace(battles, columns=battles.columns.assign(**columns))


class TestClusters:
    def test_one_battle_a_cluster_is_the_plain_bootstrap(self, judged, rated):
        names = np.random.default_rng(3).permutation(judged.n_battles)
        alone = soft_elo(with_columns(judged, row=names), n_resamples=200, cluster="row")
        np.testing.assert_array_equal(alone.draws, rated.draws)
        assert (alone.models["n_clusters"] == alone.models["n_battles"]).all()
        assert alone.settings.cluster == "row"
        pd.testing.assert_frame_equal(alone.models.drop(columns="n_clusters"), rated.models)

    def test_every_battle_twice_in_one_cluster_is_the_battle(self, judged, rated):
        """With twice the ridge: resamples of copies that are drawn together are resamples of battles."""
        twice = judged.subset(np.tile(np.arange(judged.n_battles), 2))
        copies = with_columns(twice, battle=np.tile(np.arange(judged.n_battles), 2))
        found = soft_elo(copies, ridge=0.02, n_resamples=200, cluster="battle")
        np.testing.assert_allclose(found.draws, rated.draws, atol=1e-5)

    def test_a_battle_without_a_cluster_is_an_error(self, judged):
        gaps = with_columns(judged, prompt=np.where(np.arange(judged.n_battles) < 3, None, "x"))
        with pytest.raises(jaxeval.DataError, match=r"column 'prompt' has 3 missing values \(first in row 0"):
            soft_elo(gaps, n_resamples=0, cluster="prompt")

    def test_few_clusters_are_named_and_one_has_no_error(self, judged):
        frame = with_columns(judged, prompt=np.arange(judged.n_battles) % 8, one=0)
        few = soft_elo(frame, n_resamples=200, cluster="prompt")
        assert len(few.warnings) == 1
        assert "fewer than 30 clusters" in few.warnings[0]
        assert soft_elo(frame, n_resamples=200, cluster="one").models["standard_error"].isna().all()


def judged_prompts(seed):
    """Prompts favour some models, and on some the judge's scores mean less to people."""
    rng = np.random.default_rng(seed)
    frame, difference = prompted(rng, 0.6)
    gap = np.round(2 * difference + rng.normal(0, 1, len(frame)), 1)
    slope = rng.normal(0.4, 0.25, 60)[frame["prompt"]]
    human = (rng.random(len(frame)) < expit(slope * gap)) * 1.0
    frame = frame.assign(gap=gap, human=human)
    return JudgedBattles.from_pandas(frame, score_difference="gap", label_coding="a_wins_1")


@pytest.mark.slow
def test_errors_of_prompts_used_forty_times_are_the_spread_over_simulations():
    """Soft ratings also vary with the temperature, which resamples of a model's own battles hold fixed."""
    rated, fitted = {None: [], "prompt": []}, {None: [], "prompt": []}
    n = 50
    for seed in range(n):
        battles = judged_prompts(seed)
        for cluster, results in rated.items():
            results.append(soft_elo(battles, n_resamples=100, cluster=cluster).models)
            codes = None if cluster is None else battles.columns[cluster]
            fitted[cluster].append(jaxeval.fit_temperature(battles.score_difference, battles.human, cluster=codes))
    ratio, of_beta = {}, {}
    for cluster, results in rated.items():
        spread = pd.concat(results).groupby(["method", "model"])["judge_elo"].std()
        square = pd.concat(results).assign(square=lambda t: t["standard_error"] ** 2)
        mean = np.sqrt(square.groupby(["method", "model"])["square"].mean())
        ratio[cluster] = (mean / spread).groupby("method").mean()
        errors = np.array([fit.standard_error for fit in fitted[cluster]])
        of_beta[cluster] = np.sqrt(np.mean(errors**2)) / np.std([fit.beta for fit in fitted[cluster]], ddof=1)
    tolerance = 4 / np.sqrt(2 * n)
    assert abs(ratio["prompt"]["hard"] - 1) < tolerance / 2  # a mean over eight models
    assert abs(of_beta["prompt"] - 1) < tolerance
    assert 0.7 < ratio["prompt"]["soft"] < 1.1
    assert (ratio[None] < 0.65).all()
    assert of_beta[None] < 0.65


def test_the_settings_say_what_the_hard_label_is(data):
    sample = jaxeval.read_judged_battles(data / "softelo_sample.csv", label_coding="a_wins_0")
    assert soft_elo(sample, ridge=0.005, n_resamples=0).settings.hard_label == ("verdict",)
    asked = jaxeval.read_judged_battles(data / "softelo_sample.csv", label_coding="a_wins_0", hard_label="scores")
    by_scores = soft_elo({"scores": asked, "verdict": sample}, ridge=0.005, n_resamples=0)
    assert by_scores.settings.hard_label == ("scores", "verdict")
    # The sample holds averaged scores, which hide the flips.
    assert by_scores.summary.loc[("scores", "hard"), "mae"] == pytest.approx(95.4, abs=0.05)
    assert by_scores.summary.loc[("verdict", "hard"), "mae"] == pytest.approx(57.633390, abs=0.002)


@pytest.fixture(scope="module")
def smoothed():
    return jaxeval.simulate_judged_battles(1000, 9, unlabelled=0.15, tie_rate=0.4, seed=5)


class TestLabelSmoothing:
    @pytest.mark.slow
    def test_rows_are_those_of_soft_elo(self, smoothed):
        table = label_smoothing_sweep(smoothed, (0.8,)).set_index("method")
        expected = jaxeval.soft_elo(smoothed, n_resamples=0, methods=("hard", "soft", "smooth:0.8")).summary
        for column in ("n_models", "mae", "mae_lower", "mae_upper", "spearman", "kendall"):
            np.testing.assert_array_equal(table[column], expected[column])
        assert table["constant"].to_dict() == pytest.approx({"hard": 1, "soft": np.nan, "smooth:0.8": 0.8}, nan_ok=True)

    def test_the_ends_are_hard_labels_and_no_labels(self, smoothed):
        """c = 1 is Hard-Elo; c = 1/2 calls all equal: the error is the spread of the human ratings about the base."""
        table = label_smoothing_sweep(smoothed, (0.5, 1)).set_index("method")
        human = jaxeval.soft_elo(smoothed, n_resamples=0).models.query("method == 'hard'")["human_elo"]
        assert table.loc["smooth:1.0", "mae"] == pytest.approx(table.loc["hard", "mae"], abs=1e-6)
        assert table.loc["smooth:0.5", "mae"] == pytest.approx(np.abs(human - 1500).mean(), abs=1e-6)

    def test_the_figure_shows_the_sweep(self, smoothed):
        table = label_smoothing_sweep(smoothed, (0.5, 1))
        (axis,) = plot_smoothing(table).axes
        np.testing.assert_array_equal(axis.lines[0].get_xdata(), [0.5, 1])
        np.testing.assert_array_equal(axis.lines[0].get_ydata(), table["mae"][2:])

    def test_constants_out_of_range(self, smoothed):
        with pytest.raises(ValueError, match=r"c in \[0.5, 1\]"):
            label_smoothing_sweep(smoothed, (0.3,))
