"""The capability index: published numbers, a general optimiser, what the table cannot hold, and coverage."""

from dataclasses import replace

import jax
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit

import jaxeval
from jaxeval.capability.capability_index import _fitted, _p_of_equal_models
from jaxeval.capability.columns import benchmark_cells
from jaxeval.engine import draws_of, statistic
from jaxeval.errors import DataError

# Tables have 12 models and 8 benchmarks, so that they share their programs; of other sizes each would take a second.
RUN = {"n_resamples": 40, "progress": False}


@pytest.fixture(scope="module")
def scores():
    return jaxeval.simulate_benchmark_scores(12, 8, seed=3)


@pytest.fixture(scope="module")
def found(scores):
    return jaxeval.capability_index(scores, **RUN)


@pytest.fixture(scope="module")
def published(data):
    return pd.read_parquet(data / "epoch_benchmark_scores_2025_12.parquet")


ANCHORS = {"claude-3-5-sonnet-20241022": 130, "gpt-5-2025-08-07_high": 150}
INDICES = {
    "gpt-5-pro-2025-10-06_high": 150.411, "gpt-5-2025-08-07_high": 150.0, "gpt-5.1_high": 149.981,
    "o3-2025-04-16_high": 145.963, "gpt-5-mini-2025-08-07_high": 145.870, "qwen3-max-2025-09-23": 140.106,
    "claude-opus-4-20250514": 136.417, "mistral-small-2501": 121.328, "Yi-9B": 101.258,
    "stablelm-tuned-alpha-7b": 73.332,
}  # fmt: skip
BENCHMARKS = {
    "PIQA": (31.170, 0.6106), "Lech Mazur Writing": (96.766, 0.9282), "OTIS Mock AIME 2024-2025": (135.483, 5.8104),
    "Balrog": (152.292, 1.2955), "OSUniverse": (208.834, 0.7221),
}  # fmt: skip


def test_what_is_checked_of_other_statistics_holds(found, scores, monkeypatch):
    monkeypatch.setattr(statistic, "_TESTED", "no module")
    n_agreed = len(draws_of._AGREED)
    again = jaxeval.capability_index(scores, **RUN)
    assert len(draws_of._AGREED) == n_agreed + 1
    np.testing.assert_array_equal(again.joint.draws, found.joint.draws)


@pytest.mark.slow
def test_published_scores(published):
    found = jaxeval.capability_index(
        published, model="model", anchors=ANCHORS, easiest="Winogrande", loss="squared", n_resamples=2, progress=False
    )
    assert found.objective == pytest.approx(3.447174, abs=1e-6)
    index = found.table.set_index("model")["index"]
    for name, value in INDICES.items():
        assert index[name] == pytest.approx(value, abs=0.01)
    benchmarks = found.benchmarks.set_index("benchmark")
    for name, (difficulty, slope) in BENCHMARKS.items():
        assert benchmarks.loc[name, "difficulty"] == pytest.approx(difficulty, abs=0.05)
        assert benchmarks.loc[name, "slope"] == pytest.approx(slope, abs=2e-3)


def test_ranks_are_compared_by_student(found, scores):
    """With the median number of scores less one; intervals are those of the draws."""
    freedom = float(scores.groupby("model").size().median() - 1)
    expected = replace(found.joint, freedom=freedom).ranks(found.level)
    table = found.table.set_index("model")
    for name in ("rank_best", "rank_worst", "tier"):
        assert table.loc[expected.index, name].tolist() == expected[name].tolist()
    assert (table.loc[expected.index, "rank_worst"] >= found.joint.ranks(found.level)["rank_worst"]).all()


def naive(scores, easiest, loss, ridge):
    """The smallest loss, and the indices, by a general optimiser."""
    (m, models), (b, benchmarks) = (pd.factorize(scores[name], sort=True) for name in ("model", "benchmark"))
    y, k = scores["score"].clip(1e-3, 1 - 1e-3).to_numpy(), len(benchmarks)
    held = benchmarks.get_loc(easiest)

    def objective(p):
        c, d, a = p[: len(models)], p[len(models) : -k], p[-k:].copy()
        a[held] = 1
        s = expit(a[b] * (c[m] - d[b]))
        each = (s - y) ** 2 / 2 if loss == "squared" else -(y * np.log(s) + (1 - y) * np.log1p(-s))
        return each.sum() + ridge / 2 * ((c**2).sum() + (d**2).sum() + (np.delete(a, held) ** 2).sum())

    start = np.concatenate([np.linspace(-1, 1, len(models)), np.zeros(k), np.ones(k)])
    bounds = [(-10, 10)] * (len(models) + k) + [(0.1, 10)] * k
    best = minimize(objective, start, bounds=bounds, options={"maxiter": 5000, "maxfun": 10**6, "ftol": 1e-14})
    c = best.x[: len(models)]
    return best.fun, 100 + 15 * (c - c.mean()) / c.std()


@pytest.mark.parametrize("loss", ["squared", "likelihood"])
def test_optimiser(scores, loss):
    found = jaxeval.capability_index(scores, loss=loss, **RUN)
    least, index = naive(scores, found.settings["easiest"], loss, 0.1 / 27)
    assert found.objective <= least + 1e-9
    assert found.objective == pytest.approx(least, abs=1e-5)
    np.testing.assert_allclose(found.joint.estimate, index, atol=0.1)


def test_a_draw_is_the_fit_of_its_resample(scores):
    """Every score has a random weight, those of a model as many as it has; draws lie farther out by a known factor."""
    found = jaxeval.capability_index(scores, anchors={"model-01": 0, "model-12": 1}, **RUN)
    m, b = (pd.factorize(scores[name], sort=True)[0] for name in ("model", "benchmark"))
    data = {"model": m, "benchmark": b, "share": scores["score"].clip(1e-3, 1 - 1e-3).to_numpy(),
            "questions": np.ones(len(scores))}  # fmt: skip

    def weights(w, d):
        return jax.ops.segment_sum(w, 8 * d["model"] + d["benchmark"], 96)

    drawn = jaxeval.draws_of(weights, data, strata=scores["model"].to_numpy(), scheme="bayesian", **RUN)
    drawn, n = drawn.draws.reshape(40, 12, 8), np.bincount(m)
    np.testing.assert_allclose(drawn.sum(2), np.broadcast_to(n, (40, 12)))
    weighed = drawn[3][found._cells.model, found._cells.benchmark]
    fit, *_ = _fitted(found._cells, weighed, found.settings, None)
    factor = 1 / np.sqrt(np.maximum((1 - 1 / n - 16 / len(scores)) / (1 + 1 / n), 0.2))
    expected = found.joint.estimate + (found._on_scale(fit.capability) - found.joint.estimate) * factor
    np.testing.assert_allclose(found.joint.draws[3], expected, atol=0.01)


def test_shares_of_more_questions_weigh_more(scores):
    odd = scores.assign(n=np.where(scores["benchmark"] == "benchmark-1", 10_000, 1))
    odd.loc[odd.index[odd["benchmark"] == "benchmark-1"][0], "score"] = 0.5
    plain, heavy = (jaxeval.capability_index(odd, n=n, **RUN) for n in (None, "n"))
    at = "model-01", "benchmark-1"
    assert abs(heavy.forecast(*at)["share"] - 0.5) < abs(plain.forecast(*at)["share"] - 0.5)


def test_result(found, scores):
    table = found.table
    assert table["index"].is_monotonic_decreasing
    assert table["model"].iloc[-1] in ("model-01", "model-02")
    assert found.answer.sentences[0].startswith("model-12 has the highest index")
    told = found.forecast("model-06", "benchmark-1")
    assert 0 <= told["lower"] < told["share"] < told["upper"] <= 1
    choices = found.choices()
    np.testing.assert_allclose(choices.loc["as asked"], found.joint.estimate, atol=1e-4)
    seen = set(zip(scores["model"], scores["benchmark"], strict=True))
    telling = found.most_telling(5)
    assert not seen & set(zip(telling["model"], telling["benchmark"], strict=True))
    errors = found.joint.standard_errors
    assert (telling["standard_error"].to_numpy() < errors[telling["model"]].to_numpy()).all()


def test_without_a_benchmark(found, scores):
    left = found.without_each_benchmark()
    left_out = next(name for name in left.index if name != found.settings["easiest"])
    rest = scores[scores["benchmark"] != left_out]
    _, index = naive(rest, found.settings["easiest"], "likelihood", 0.1 / 27)  # of 8 benchmarks, still
    np.testing.assert_allclose(left.loc[left_out], index - found.joint.estimate, atol=0.1)


def test_trend(found):
    released = {f"model-{k:02d}": f"20{12 + k}-01-01" for k in range(1, 13)}
    trend = found.trend(released, frontier=False, at=["2026-01-01"])
    days = (pd.to_datetime(list(released.values())) - pd.Timestamp("2013-01-01")).days.to_numpy(float)
    slope, start = np.polyfit(days, found.joint.estimate, 1)
    assert trend.loc["points a year", "estimate"] == pytest.approx(365.25 * slope)
    assert trend.loc["2026-01-01", "estimate"] == pytest.approx(start + slope * 4748)
    assert (trend["lower"] < trend["estimate"]).all()
    with pytest.raises(DataError, match="must be one such as 2025-12-31, got 'soon'"):
        found.trend({"model-01": "soon", "model-02": "2024-01-01"})


def test_anchors_have_no_error(scores):
    found = jaxeval.capability_index(scores, anchors={"model-01": 100, "model-12": 150}, **RUN).table.set_index("model")
    assert found.loc["model-12", ["index", "lower", "upper"]].tolist() == pytest.approx([150.0] * 3)


@pytest.mark.parametrize(("change", "options", "error"), [
    (lambda t: t.assign(score=t["score"] * 100), {}, "share between 0 and 1; divide per cents by 100"),
    (lambda t: pd.concat([t, t.head(1)]), {}, "has several scores on"),
    (lambda t: t, {"anchors": {"nobody": 1, "model-01": 2}}, "no scores of nobody"),
    (lambda t: t, {"easiest": "x"}, "no benchmark 'x'"),
    (lambda t: t.drop(columns="benchmark"), {}, "no column of the benchmark"),
    (lambda t: t.head(2), {}, "needs 3 models|parts that share nothing"),
    (lambda t: pd.concat([t, pd.DataFrame({"model": ["x", "y"], "benchmark": "z", "score": 0.5})]), {},
     "2 parts that share nothing: x, y and z"),
])  # fmt: skip
def test_bad_data(scores, change, options, error):
    with pytest.raises(DataError, match=error):
        jaxeval.capability_index(change(scores), **options, **RUN)


def test_a_model_of_one_score_leads_nobody(scores):
    """Its resamples are all alike, and show no error. A benchmark of one model is told, too."""
    rows = {"model": ["solo", "model-01"], "benchmark": ["benchmark-1", "lonely"], "score": [1.0, 0.5]}
    others = scores[(scores["model"] != "model-06") & (scores["benchmark"] != "benchmark-2")]
    found = jaxeval.capability_index(pd.concat([others, pd.DataFrame(rows)]), **RUN)
    assert [text for text in found.warnings if "benchmark with one model" in text and text.endswith("lonely")]
    row = found.table.set_index("model").loc["solo"]
    assert row["flag"] == "1 benchmark"
    assert any("1 model has fewer than 4 benchmarks" in text for text in found.warnings)
    assert row[["lower", "upper", "rank_best", "rank_worst"]].isna().all()
    assert found.table["model"].iloc[-1] == "solo"
    assert found.answer.sentences[0].startswith("model-12 has the highest index")
    assert "solo" not in found.answer.sentences[0]
    (alone,) = [text for text in found.warnings if "one score" in text]
    assert alone.endswith("no interval and no rank: solo")
    assert found.table["rank_worst"].max() == 11
    assert np.isnan(found.forecast("solo", "benchmark-3")["upper"])
    rising = dict(zip(found.joint.names, pd.date_range("2024-01-01", periods=12), strict=True))
    assert np.isfinite(found.trend(rising).to_numpy()).all()
    front = jaxeval.pareto_front(found, dict.fromkeys(found.joint.names, 1.0))
    assert "solo" not in front.table["model"].to_list()


def test_names_of_columns_may_have_capital_letters(scores):
    plain, capital = (jaxeval.capability_index(t, **RUN).joint for t in (scores, scores.rename(columns=str.title)))
    np.testing.assert_array_equal(plain.draws, capital.draws)


def test_scores_that_make_no_scale(scores):
    with pytest.raises(DataError, match="equally good"):
        jaxeval.capability_index(scores.assign(score=0.5), **RUN)
    full = pd.DataFrame([(m, b) for m in range(12) for b in range(8)], columns=["model", "benchmark"])
    for share in (0.15, 0.32, 0.4):  # whose fits differ in the last digits
        with pytest.raises(DataError, match="equally good"):
            jaxeval.capability_index(full.assign(score=share + 0.05 * full["benchmark"]), **RUN)
    with pytest.raises(DataError, match="model-01 is not better than model-12"):
        jaxeval.capability_index(scores, anchors={"model-12": 100, "model-01": 150}, **RUN)
    with pytest.raises(ValueError, match="the anchor of model-01"):
        jaxeval.capability_index(scores, anchors={"model-12": 100, "model-01": np.nan}, **RUN)


@pytest.mark.parametrize(
    "options",
    [{"loss": "absolute"}, {"resample": "models"}, {"clip": 0.5}, {"anchors": {"model-01": 1}}, {"ridge": -1.0}],
)
def test_bad_options(scores, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        jaxeval.capability_index(scores, **options, **RUN)


@pytest.mark.slow
def test_coverage():
    """Of 90 % intervals, under the model: 12 sets of 40 models, without the anchors."""
    anchors = {"model-10": 100.0, "model-35": 150.0}
    c = np.linspace(-2, 2, 40)
    truth = 100 + 50 * (c - c[9]) / (c[34] - c[9])
    inside = []
    for seed in range(12):
        scores = jaxeval.simulate_benchmark_scores(40, 20, observed=0.4, seed=seed)
        found = jaxeval.capability_index(scores, anchors=anchors, n_resamples=200, progress=False)
        ends = found.joint.interval(0.9).to_numpy()
        inside.append(np.delete((ends[:, 0] <= truth) & (truth <= ends[:, 1]), [9, 34]).mean())
    error = np.std(inside, ddof=1) / np.sqrt(len(inside))
    assert 0.88 - 3 * error < np.mean(inside) < 0.92 + 3 * error


@pytest.mark.parametrize("unit", [pytest.param(1, marks=pytest.mark.slow), 100])
def test_a_column_for_each_benchmark(scores, found, unit):
    """Means by name or by value, and what is known of models, are no benchmarks; what may be one is asked for."""
    wide = unit * scores.pivot_table("score", "model", "benchmark")
    table = wide.assign(**{"Params (B)": 7.0, "License": "mit", "Average": 50.0}).reset_index()
    same = jaxeval.capability_index(table, **RUN)
    np.testing.assert_allclose(same.joint.estimate, found.joint.estimate, rtol=1e-6)
    (told,) = same.answer.notes
    assert ("read as per cents" in told) == (unit == 100)
    assert told.split("not taken as benchmarks: ")[1].startswith("'Params (B)', 'License', 'Average'")
    whole = wide.fillna(wide.mean())
    (told,) = jaxeval.capability_index(whole.assign(q=whole.mean(axis=1)).reset_index(), **RUN).answer.notes
    assert told.endswith("not taken as benchmarks: 'q'")
    with pytest.raises(
        DataError, match=f"but 'parts' is not between 0 and {unit}: leave out columns that are no shares"
    ):
        jaxeval.capability_index(table.assign(parts=np.arange(len(table)) * 60), **RUN)
    long = found._cells
    cells = pd.DataFrame(
        {"model": long.models[long.model], "benchmark": long.benchmarks[long.benchmark], "score": long.share * unit}
    )
    cells = benchmark_cells(cells, dict.fromkeys(("model", "benchmark", "score")), None, ["share", "percent"][unit > 1])
    np.testing.assert_allclose(cells.share, long.share)


def test_a_hard_benchmark_in_per_cents(scores):
    """The unit is that of most columns, unless the caller says another, or a column has per cent signs."""
    none = dict.fromkeys(("model", "benchmark", "score"))
    wide = 100 * scores.pivot_table("score", "model", "benchmark").reset_index()
    signed = wide["benchmark-2"].map("{:.9f}%".format).where(wide["benchmark-2"].notna())
    cells = benchmark_cells(wide.assign(hard=np.linspace(0, 1, len(wide)), **{"benchmark-2": signed}), none, None)
    (told,) = cells.told
    assert "read as per cents, as most are above 1, and so 'hard', where no model has more than 1" in told
    share = pd.Series(cells.share).groupby(cells.benchmarks[cells.benchmark]).max()
    assert share["hard"] == 0.01
    assert share["benchmark-2"] == pytest.approx(wide["benchmark-2"].max() / 100)
    with pytest.raises(
        DataError, match=r"'benchmark-1', .* are not between 0 and 1.*\(on the command line --unit percent"
    ):
        benchmark_cells(wide.assign(hard=0.5), none, None, "share")
    with pytest.raises(DataError, match=r"but 'many' is not between 0 and 100: .* or say unit=\"share\""):
        benchmark_cells(wide.assign(many=500), none, None)
    two = wide[["model", "benchmark-1"]].assign(hard=0.01 * wide["benchmark-2"].fillna(1))
    with pytest.raises(DataError, match=r"but 'benchmark-1' is not between 0 and 1: .* unit=\"percent\""):
        benchmark_cells(two, none, None)
    assert benchmark_cells(two, none, None, "percent").share.max() <= 1


def test_shares_that_are_called_per_cents(scores):
    warning = "per cent: leave out unit= (--unit) for shares"
    for table in (scores, scores.pivot_table("score", "model", "benchmark").fillna(0.5).reset_index()):
        found = jaxeval.capability_index(table, unit="percent", **RUN)
        assert any(warning in text for text in found.warnings)
    assert found.choices().loc["clip=0.01"].isna().all()
    percent = jaxeval.capability_index(scores.assign(score=100 * scores["score"]), unit="percent", **RUN)
    assert not any(warning in text for text in percent.warnings)


def test_equal_models_have_no_rank(found):
    """P-values of equal models are uniform, and where they do not reject, the answer, the ranks and a front say so."""
    rng = np.random.default_rng(0)

    def table():
        share = rng.binomial(100, rng.uniform(0.2, 0.9, 8), (12, 8)) / 100
        cells = [(f"model-{m:02d}", f"b{b}", share[m, b]) for m in range(12) for b in range(8)]
        return pd.DataFrame(cells, columns=["model", "benchmark", "score"])

    none = {"model": None, "benchmark": None, "score": None}
    p = np.array([_p_of_equal_models(benchmark_cells(table(), none, None), 0) for _ in range(50)])
    assert abs(p.mean() - 0.5) < 3 * p.std() / np.sqrt(len(p))
    assert (p <= 0.1).mean() < 0.1 + 3 * np.sqrt(0.09 / len(p))
    equal = jaxeval.capability_index(table(), **RUN)
    assert equal.p_equal > 0.1
    assert "do not tell the 12 models apart (p = " in equal.answer.sentences[0]
    assert (equal.table["rank_best"] == 1).all()
    assert (equal.table["rank_worst"] == 12).all()
    assert (equal.table["tier"] == 1).all()
    assert found.p_equal == 0.001
    costs = dict.fromkeys(equal.joint.names, 1.0)
    assert jaxeval.pareto_front(equal.joint, costs, level=0.9).claims.any(axis=None)
    assert not jaxeval.pareto_front(equal, costs, level=0.9).claims.any(axis=None)


def test_an_index_lies_in_its_interval(found):
    """The best of few models is below its own index in nearly all resamples."""
    best = np.argmax(found.joint.estimate)
    draws = found.joint.draws.copy()
    draws[:, best] -= 50
    below = replace(found, joint=replace(found.joint, draws=draws))
    quantiles = replace(below.joint, holds_estimate=False).interval(found.level)
    assert (quantiles["upper"] < found.joint.estimate).tolist() == (np.arange(12) == best).tolist()
    assert (below.joint.interval(found.level)["upper"] >= found.joint.estimate).all()
    assert below.table["index"].between(below.table["lower"], below.table["upper"]).all()


def test_models_of_equal_scores_lead_together():
    base = np.random.default_rng(0).uniform(0.2, 0.8, 6)
    shares = pd.DataFrame(np.vstack([base + d for d in (-0.15, 0.0, 0.15, 0.15)]), list("wxyz")).rename_axis("model")
    found = jaxeval.capability_index(shares.rename(columns="b{}".format).reset_index(), n_resamples=50, progress=False)
    assert found._sentences()[0].startswith("y, z have the highest index, ")
    assert found._sentences()[0].endswith("above all others at the 90% level")
