import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import jaxeval
from jaxeval.show.files import json_digest
from jaxeval.softelo.calibration import SoftEloCalibration
from jaxeval.softelo.own_battles import OwnBattles, strengths

ELO = 400 / np.log(10)
NEW = "model-05"


@pytest.fixture(scope="module")
def pool():
    return jaxeval.simulate_judged_battles(1000, 14, noise=2.0, seed=1)


def of_model(battles, name):
    return (battles.models[battles.model_a] == name) | (battles.models[battles.model_b] == name)


# Most tests take these, and so share compiled code; with other files, too.
METHODS = ("hard", "soft", "smooth:0.8")


@pytest.fixture(scope="module")
def anchored(pool):
    return SoftEloCalibration.fit(pool.subset(~of_model(pool, NEW)), methods=METHODS)


@pytest.fixture(scope="module")
def held_out(pool):
    return jaxeval.soft_elo(pool, n_resamples=1000, methods=METHODS).models.set_index(["method", "model"])


@pytest.fixture(scope="module")
def new(pool):
    battles = pool.subset(of_model(pool, NEW))
    return jaxeval.JudgedBattles.from_pandas(
        pd.DataFrame(
            {
                "model_a": battles.models[battles.model_a],
                "model_b": battles.models[battles.model_b],
                "gap": battles.score_difference,
                "judge": battles.hard,
            }
        ),
        score_difference="gap",
        verdict="judge",
        label_coding="a_wins_1",
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_new_model_is_rated_as_if_it_had_been_held_out(anchored, new, held_out, method):
    held_out = held_out.loc[method, NEW]
    table = anchored.predict(new, 0.9, method)
    row = table.iloc[0]
    assert list(table["model"]) == [NEW]
    assert row["rating"] == pytest.approx(held_out["judge_elo"], abs=1e-4)
    # Against a bootstrap of 1,000, to first order in 1 / battles.
    assert abs(row["standard_error"] / held_out["standard_error"] - 1) < 4 * np.sqrt(1 / 2000) + 0.02
    assert row["upper"] - row["rating"] == pytest.approx(row["rating"] - row["lower"])
    assert table.attrs["settings"]["expected_coverage"] == 13 / 14


@pytest.mark.parametrize("method", METHODS)
def test_the_interval_is_the_naive_median_of_the_kth_smallest(anchored, new, method):
    models, rng = anchored.methods[method].models, np.random.default_rng(0)
    table = anchored.predict(new, 0.9, method, human_votes=30)
    per_vote = np.median(models["human_error"] ** 2 * models["n_human"])
    assert table.attrs["settings"]["human_error"] == pytest.approx(np.sqrt(per_vote / 30))
    variance = table["standard_error"][0] ** 2 + per_vote / 30
    added = np.sqrt(np.maximum(variance - models["residual_error"] ** 2, 0)).to_numpy()
    assert (added > 0).any()
    drawn = np.abs(models["residual"].to_numpy() + added * rng.normal(size=(200_000, 13)))
    half, kth = (table["upper"] - table["lower"])[0] / 2, np.sort(drawn, axis=1)[:, 12]
    # The share of draws under their own median has a standard error of 1 / 2 / sqrt(draws).
    assert abs((kth <= half).mean() - 0.5) < 4 * 0.5 / np.sqrt(200_000)


def test_without_added_noise_the_half_width_is_the_conformal_quantile(anchored, new):
    models = anchored.methods["soft"].models
    quiet = replace(anchored.methods["soft"], models=models.assign(residual_error=1e3))
    calibration = replace(anchored, methods={"soft": quiet})
    table = calibration.predict(new, 0.9)
    half = jaxeval.conformal_quantile(models["residual"].abs(), 0.9)
    assert table["upper"][0] - table["rating"][0] == pytest.approx(half, rel=1e-12)


def test_more_votes_narrow_the_interval_to_that_of_the_true_strength(anchored, new):
    tables = [anchored.predict(new, human_votes=votes) for votes in (10, 100, 1000, np.inf)]
    width = [(t["upper"] - t["lower"])[0] for t in tables]
    assert width == sorted(width, reverse=True)
    assert width[0] > 1.5 * width[-1]
    assert [t.attrs["settings"]["human_error"] > 0 for t in tables] == [True, True, True, False]
    usual = anchored.predict(new).attrs["settings"]["human_votes"]
    assert usual == anchored.methods["soft"].models["n_human"].median()
    for wrong in (0, -1, np.nan):
        with pytest.raises(ValueError, match="human_votes must be > 0"):
            anchored.predict(new, human_votes=wrong)


def test_twenty_times_the_battles_do_not_widen_nor_a_fifth_blow_up_the_interval(anchored, new):
    """The paper's intervals go with 1 / sqrt(battles), though the judge's own error does not."""
    frame = pd.DataFrame(
        {"model_a": new.models[new.model_a], "model_b": new.models[new.model_b], "gap": new.score_difference}
    )
    few = frame.iloc[::5]
    many = pd.concat([frame] * 20)
    once, fifth, twenty = (
        anchored.predict(jaxeval.JudgedBattles.from_pandas(f, score_difference="gap"), 0.9) for f in (frame, few, many)
    )
    width = [(t["upper"] - t["lower"])[0] for t in (once, fifth, twenty)]
    models = anchored.methods["soft"].models
    today = 2 * jaxeval.conformal_quantile(models["residual"].abs() / models["standard_error"], 0.9)
    assert width[2] <= width[0]
    assert width[2] > 3 * today * twenty["standard_error"][0]
    assert width[1] < today * fifth["standard_error"][0]
    assert width[2] / 2 >= np.sort(models["residual"].abs())[12]


def test_saved_and_loaded_is_the_same(anchored, new, tmp_path):
    path = tmp_path / "calibration.json"
    anchored.save(path)
    loaded = SoftEloCalibration.load(path)
    first, second = anchored.predict(new), loaded.predict(new)
    pd.testing.assert_frame_equal(first, second)
    assert first.attrs == second.attrs
    assert loaded.settings == anchored.settings
    content = json.loads(path.read_text())
    assert (content["format"], content["version"]) == ("jaxeval soft-elo calibration", 2)
    assert content["methods"]["soft"]["beta"] == anchored.methods["soft"].beta


def test_sides_and_row_order_change_nothing(anchored, new):
    frame = pd.DataFrame(
        {"model_a": new.models[new.model_b], "model_b": new.models[new.model_a], "gap": -new.score_difference}
    ).sample(frac=1, random_state=0)
    turned = jaxeval.JudgedBattles.from_pandas(frame, score_difference="gap")
    pd.testing.assert_frame_equal(anchored.predict(turned), anchored.predict(new))


def test_several_new_models_are_rated_each_on_its_own(pool, new):
    others = ["model-02", NEW]
    mask = of_model(pool, others[0]) | of_model(pool, others[1])
    both = of_model(pool, others[0]) & of_model(pool, others[1])
    calibration = SoftEloCalibration.fit(pool.subset(~mask), methods=METHODS)
    table = calibration.predict(pool.subset(mask & ~both), 0.8)
    assert set(table["model"]) == set(others)
    assert table["rating"].is_monotonic_decreasing
    for name in others:
        alone = calibration.predict(pool.subset(of_model(pool, name) & ~both), 0.8)
        pd.testing.assert_series_equal(table[table["model"] == name].iloc[0], alone.iloc[0], check_names=False)


def half_width(table):
    return (table["upper"] - table["lower"])[0] / 2


def test_strata_and_weights_choose_the_residuals(anchored, new):
    chosen = anchored.methods["soft"]
    family = list(chosen.models["model"][:9])
    part = replace(anchored, methods={"soft": replace(chosen, models=chosen.models[:9])})
    pd.testing.assert_frame_equal(anchored.predict(new, among=[*family, family[0]]), part.predict(new))
    plain = half_width(anchored.predict(new))
    assert half_width(anchored.predict(new, weights=dict.fromkeys(chosen.models["model"], 2.0))) == plain
    # Under the true strength no noise is added here: the largest residual is the half width, unless it weighs nothing.
    sizes = chosen.models.set_index("model")["residual"].abs().sort_values()
    weights = {m: float(m != sizes.index[-1]) for m in sizes.index}
    assert half_width(anchored.predict(new, human_votes=np.inf)) == pytest.approx(sizes.iloc[-1])
    assert half_width(anchored.predict(new, human_votes=np.inf, weights=weights)) == pytest.approx(sizes.iloc[-2])
    with pytest.raises(ValueError, match=r"8 models support levels up to 0\.8888"):
        anchored.predict(new, 0.9, among=family[:8])
    with pytest.raises(ValueError, match="among names 1 model that does not calibrate: nobody"):
        anchored.predict(new, among=["nobody"])
    for among in ([], "model-01"):
        with pytest.raises(ValueError, match="among must be a list of one calibration model or more"):
            anchored.predict(new, among=among)
    with pytest.raises(ValueError, match="12 of 13 calibration models have no weight"):
        anchored.predict(new, weights={family[0]: 1.0})
    with pytest.raises(ValueError, match="weights names 1 model that does not calibrate: nobody"):
        anchored.predict(new, weights={"nobody": 1.0})
    with pytest.raises(ValueError, match="weights must be finite"):
        anchored.predict(new, weights=dict.fromkeys(chosen.models["model"], 0.0))


def test_a_level_too_high_names_the_largest_supported(anchored, new):
    with pytest.raises(ValueError, match=r"its 13 models support levels up to 0\.9285.*at least 19 models"):
        anchored.predict(new, 0.95)
    assert np.isfinite(anchored.predict(new, 0.9285)["lower"]).all()


def test_a_default_level_is_lowered_to_what_the_pool_supports_and_said(anchored, new):
    names = list(anchored.methods["soft"].models["model"][:6])
    table = anchored.predict(new, among=names)
    assert table.attrs["settings"]["level"] == 0.8571
    assert table.attrs["settings"]["expected_coverage"] == 6 / 7
    assert any("default level of 0.9 is lowered to 0.8571" in w for w in table.attrs["warnings"])
    pd.testing.assert_frame_equal(table, anchored.predict(new, 0.8571, among=names))
    with pytest.raises(ValueError, match="the calibration is too small for level"):
        anchored.predict(new, 0.9, among=names)
    assert anchored.predict(new).attrs["settings"]["level"] == 0.9


def test_what_the_calibration_cannot_vouch_for_is_flagged(anchored):
    models = anchored.methods["soft"].models
    one = pd.DataFrame({"model_a": ["x"] * 27, "model_b": ["model-01"] * 27, "gap": np.tile([-3.0, 1.0, 3.0], 9)})
    row = anchored.predict(jaxeval.JudgedBattles.from_pandas(one, score_difference="gap")).iloc[0]
    assert "only 27 battles" in row["flags"]
    assert "only 1 opponent" in row["flags"]
    assert row["standard_error"] > models["residual_error"].max()
    assert "exceeds the noise of every calibration residual" in row["flags"]
    anchors = list(models["model"][:5])
    strong = pd.DataFrame(
        {"model_a": ["x"] * 500, "model_b": anchors * 100, "gap": np.tile([6.0, 5, 8, 7, 6, 5], 84)[:500]}
    )
    row = anchored.predict(jaxeval.JudgedBattles.from_pandas(strong, score_difference="gap")).iloc[0]
    low, high = models["judge_elo"].min(), models["judge_elo"].max()
    assert row["flags"] == f"outside the range of the calibration models ({low:.0f} to {high:.0f})"


def test_clusters_make_errors_larger_and_are_those_of_the_calibration(pool):
    """Each battle 10 times: without the cluster that names them, errors shrink by sqrt(10)."""
    frame = pd.DataFrame(
        {
            "model_a": pool.models[pool.model_a],
            "model_b": pool.models[pool.model_b],
            "gap": pool.score_difference,
            "human": pool.human,
            "prompt": np.arange(pool.n_battles),
        }
    )
    known = ~of_model(pool, NEW)

    def read(table):
        return jaxeval.JudgedBattles.from_pandas(table, score_difference="gap", label_coding="a_wins_1")

    once = SoftEloCalibration.fit(read(frame[known]), ridge=0.001, methods=METHODS)
    tenfold = pd.concat([frame] * 10, ignore_index=True)
    repeated = read(tenfold[np.tile(known, 10)])
    clustered = SoftEloCalibration.fit(repeated, ridge=0.01, methods=METHODS, cluster="prompt")
    loose = SoftEloCalibration.fit(repeated, ridge=0.01, methods=METHODS)
    columns = ["standard_error", "human_error", "residual_error"]
    ours, theirs, blind = (c.methods["soft"].models[columns].to_numpy() for c in (once, clustered, loose))
    np.testing.assert_allclose(theirs, ours, rtol=1e-6)
    np.testing.assert_allclose(blind, ours / np.sqrt(10), rtol=0.02)
    new = read(tenfold[np.tile(~known, 10)])
    assert clustered.settings.cluster == "prompt"
    alone = once.predict(read(frame[~known]))
    assert clustered.predict(new)["standard_error"][0] == pytest.approx(alone["standard_error"][0], rel=1e-6)
    assert loose.predict(new)["standard_error"][0] < 0.4 * alone["standard_error"][0]
    assert loose.predict(new, cluster="prompt")["standard_error"][0] > 0.9 * alone["standard_error"][0]
    with pytest.raises(jaxeval.DataError, match="sampled by 'prompt', and the new battles have no such column"):
        clustered.predict(read(frame[~known].drop(columns="prompt")))
    holes = frame[known].assign(prompt=frame["prompt"].where(frame["prompt"] != 7))
    with pytest.raises(jaxeval.DataError, match="column 'prompt' has 1 missing value"):
        SoftEloCalibration.fit(read(holes), methods=METHODS, cluster="prompt")


def test_opponents_that_are_no_anchors_are_refused(anchored, new):
    frame = pd.DataFrame({"model_a": ["x", "x", "y"], "model_b": ["model-01", "z", "z"], "gap": [1.0, 2.0, 0.5]})
    strangers = jaxeval.JudgedBattles.from_pandas(frame, score_difference="gap")
    with pytest.raises(jaxeval.DataError, match=r"2 of 3 battles have no anchor on either side.*z \(2\)"):
        anchored.predict(strangers)
    known = frame.assign(model_a="model-02", model_b="model-01")
    with pytest.raises(jaxeval.DataError, match="none of 3 battles is of a new model"):
        anchored.predict(jaxeval.JudgedBattles.from_pandas(known, score_difference="gap"))
    with pytest.raises(ValueError, match="no method 'rank'; it has 'hard', 'soft'"):
        anchored.predict(new, method="rank")


def test_few_battles_are_flagged_and_those_that_do_not_differ_get_no_interval(anchored):
    frame = pd.DataFrame({"model_a": ["x"] * 4, "model_b": ["model-01"] * 4, "gap": 1.0})
    one = jaxeval.JudgedBattles.from_pandas(frame, score_difference="gap")
    row = anchored.predict(one, method="hard").iloc[0]
    assert "only 4 battles" in row["flags"]
    assert "won all its battles" in row["flags"]
    assert np.isnan([row["standard_error"], row["lower"], row["upper"]]).all()
    assert "x: only 4 battles" in " ".join(anchored.predict(one).attrs["warnings"])


def with_digest(text):
    """A file that somebody wrote so: its digest fits to it, if it is a JSON object."""
    try:
        content = json.loads(text)
        return json.dumps(content | {"digest": json_digest(content)})
    except (ValueError, RecursionError, TypeError, AttributeError):
        return text


@pytest.mark.parametrize(("damage", "message"), [
    (lambda text: text[:40], "no JSON text"),
    (lambda text: "[1, 2]", "does not say 'format'"),
    (lambda text: text.replace('"version": 2,', '"version": 1,', 1), "has version 1.*calibrate again"),
    (lambda text: text.replace('"anchors"', '"ankers"', 1), "broken calibration.*anchors"),
    (lambda text: text.replace('"beta": 0', '"beta": "high", "b": 0', 1), "broken calibration"),
    (lambda text: re.sub(r'"beta": 0[.\d]*', '"beta": null', text, count=1), "beta of method 'soft' cannot be None"),
    (lambda text: re.sub(r'"beta": 0', '"beta": -0', text, count=1), "beta of method 'soft' cannot be"),
    (lambda text: text.replace('"ridge": 0.01', '"ridge": -1', 1), "ridge must be finite and > 0"),
    (lambda text: text.replace('"ridge": 0.01', '"ridge": null', 1), "ridge must be a number"),
    (lambda text: text.replace('"labels": "a_wins_1"', '"labels": "a_wins"', 1),
     "labels must be one of .* got 'a_wins'"),
    (lambda text: text.replace('"cluster": null', '"cluster": 3', 1), "cluster must be the name of a column"),
    (lambda text: re.sub(r'"human_error": [.\d]*', '"human_error": -1', text, count=1), "with errors >= 0"),
    (lambda text: re.sub(r'"residual": [-.\d]*', '"residual": 1.5', text, count=1), "judge_elo minus human_elo"),
    (lambda text: text.replace('"model": "model-01"', '"model": "model-02"', 1), "models must be named once"),
    (lambda text: "[" * 100_000, "no JSON text"),
    (lambda text: text.replace('"human_elo": 1', '"human_elo": null, "h": 1', 1), "missing or not finite"),
])  # fmt: skip
def test_damaged_files_are_named(anchored, tmp_path, damage, message):
    path = tmp_path / "calibration.json"
    anchored.save(path)
    text = path.read_text()
    assert damage(text) != text
    path.write_text(with_digest(damage(text)))
    with pytest.raises(jaxeval.DataError, match=message):
        SoftEloCalibration.load(path)


def test_scores_of_another_kind_or_scale_are_told(anchored, new):
    frame = pd.DataFrame(
        {"model_a": new.models[new.model_a], "model_b": new.models[new.model_b], "gap": new.score_difference / 10}
    )
    frame["verdict"] = np.where(frame["gap"] > 0, 1.0, 0.0)
    verdicts = jaxeval.JudgedBattles.from_pandas(frame, verdict="verdict", label_coding="a_wins_1")
    with pytest.raises(jaxeval.DataError, match="on the judge's scores, the new battles hold verdicts only"):
        anchored.predict(verdicts)
    assert np.isfinite(anchored.predict(verdicts, method="hard")["rating"]).all()
    tenth = jaxeval.JudgedBattles.from_pandas(
        frame, score_difference="gap", judge_name="other", label_coding="a_wins_1"
    )
    told = " ".join(anchored.predict(tenth).attrs["warnings"])
    assert "on another scale the temperature means nothing" in told
    assert "the new battles are of 'other'" in told


def test_another_number_of_presentation_orders_is_told(anchored, pool, new):
    """The mean of both orders is free of the judge's favour for a place, and one order is not."""
    both = pool.subset(of_model(pool, NEW))
    told = "made from columns of both presentation orders, the new battles from those of one presentation order"
    assert not anchored.predict(both).attrs["warnings"]
    assert told in anchored.predict(new).attrs["warnings"][0]
    frame = pd.DataFrame({"model_a": pool.models[pool.model_a], "model_b": pool.models[pool.model_b]}).assign(
        human=pool.human, verdict=pool.judge, verdict_swapped=pool.judge
    )
    known = ~of_model(pool, NEW)

    def read(rows, **columns):
        return jaxeval.JudgedBattles.from_pandas(frame[rows], verdict="verdict", label_coding="a_wins_1", **columns)

    of_verdicts = SoftEloCalibration.fit(read(known, verdict_swapped="verdict_swapped"), methods=METHODS)
    for method in ("soft", "hard"):
        assert told in " ".join(of_verdicts.predict(read(~known), method=method).attrs["warnings"])
        same = of_verdicts.predict(read(~known, verdict_swapped="verdict_swapped"), method=method)
        assert "presentation order" not in " ".join(same.attrs["warnings"])


def test_few_clusters_are_told(pool, new):
    """Errors from few clusters are too small, and one cluster shows no error at all."""
    known = pool.subset(~of_model(pool, NEW))

    def in_clusters(battles, n):
        return replace(battles, columns=battles.columns.assign(prompt=np.arange(battles.n_battles) % n))

    with pytest.raises(ValueError, match=r"nothing to calibrate \(all battles of a model lie in one cluster"):
        SoftEloCalibration.fit(in_clusters(known, 1), cluster="prompt")
    calibration = SoftEloCalibration.fit(in_clusters(known, 7), cluster="prompt")
    assert "models whose battles lie in fewer than 30 clusters" in calibration.warnings[0]
    for n, flag in ((1, "its battles lie in one cluster: no standard error, no interval"), (7, "only 7 clusters")):
        table = calibration.predict(in_clusters(new, n))
        assert flag in table["flags"][0]
        assert "do not differ" not in table["flags"][0]
    assert calibration.predict(in_clusters(new, 7).subset(np.arange(20)))["flags"][0].count("only") == 2
    assert table.attrs["settings"]["cluster"] == "prompt"


def test_many_flagged_models_take_one_sentence(anchored):
    frame = pd.DataFrame({"model_a": [f"x{k}" for k in range(5)] * 2, "model_b": ["model-01"] * 10, "gap": 1.0})
    new = jaxeval.JudgedBattles.from_pandas(frame, score_difference="gap")
    warnings = anchored.predict(new).attrs["warnings"]
    assert warnings[-1] == "5 of 5 new models are flagged, see the column flags: x0, x1, x2, x3, x4"
    assert sum("x0" in warning for warning in warnings) == 1


def test_a_new_model_is_on_the_scale_of_the_models_with_votes():
    strengths = jaxeval.simulate_strengths(16, 0.6, seed=3)
    battles = jaxeval.simulate_judged_battles(1000, strengths=strengths, noise=0.5, seed=3)
    voted = np.isin(battles.models, strengths.sort_values().index[-9:])
    name = strengths.sort_values().index[-4]
    among = voted[battles.model_a] & voted[battles.model_b]
    partly = replace(battles, human=np.where(among, battles.human, np.nan))
    of_new = of_model(battles, name)
    calibration = SoftEloCalibration.fit(partly.subset(~of_new), methods=METHODS)
    human = jaxeval.soft_elo(partly, n_resamples=0, methods=METHODS).models.set_index(["method", "model"])["human_elo"]
    row = calibration.predict(battles.subset(of_new), 0.8).iloc[0]
    # The zeros of all models and of those with votes lie more than 100 Elo apart.
    assert abs(row["rating"] - human["soft", name]) < 60


def test_a_judge_without_signal_cannot_be_calibrated():
    rng = np.random.default_rng(3)
    names = np.array(["a", "b", "c", "d"])
    pair = np.array([rng.permutation(4)[:2] for _ in range(400)])
    frame = pd.DataFrame({"model_a": names[pair[:, 0]], "model_b": names[pair[:, 1]], "gap": 1.0, "human": 1.0})
    with pytest.raises(ValueError, match="temperature cannot be fitted on 400"):
        SoftEloCalibration.fit(
            jaxeval.JudgedBattles.from_pandas(frame, score_difference="gap", label_coding="a_wins_1")
        )


def below_by_chance(gap, human):
    """Noise ``gap``, turned so that it falls where people prefer the first side."""
    return -np.sign(gap @ (human - 0.5)) * gap


@pytest.mark.parametrize(("gap", "why"), [
    (lambda rng, human: below_by_chance(rng.normal(size=len(human)), human), r"slope -.*standard error .*no relation"),
    (lambda rng, human: rng.normal(size=len(human)) - human, r"negative slope\): the humans prefer what the judge"),
    (lambda rng, human: np.append([1.0, -1.0], np.zeros(len(human) - 2)), "they do in 2 of them, and 5 are needed"),
])  # fmt: skip
def test_why_no_temperature_is_fitted(gap, why):
    """Chance alone is no reversed judge, and scores that never differ are not too few votes."""
    rng = np.random.default_rng(1)
    human = (rng.random(400) < 0.5).astype(float)
    frame = pd.DataFrame({"model_a": "a", "model_b": "b", "gap": gap(rng, human), "human": human})
    with pytest.raises(ValueError, match=why):
        SoftEloCalibration.fit(
            jaxeval.JudgedBattles.from_pandas(frame, score_difference="gap", label_coding="a_wins_1")
        )


def simulated(rng, slope, strength, error):
    """Scores of a judge that stretches the ruler by ``slope``, and human choices, of such differences of strength."""
    human = (rng.random(strength.shape) < expit(strength)).astype(float)
    score = slope * (strength + error) + 2 * human - 1 + rng.normal(0, 1.2, strength.shape)
    return np.round(6 * score) / 6, human


@pytest.mark.slow
@pytest.mark.parametrize("slope", [0.72, 1.2])
def test_intervals_cover_the_boards_rating_at_any_number_of_battles(slope):
    """20 calibration models of 100 battles; new models with 20, 100 and 1,000. The judge errs by 0.15 logits."""
    pools, n, each, level = 40, 20, 100, 0.9
    ratios, expected = np.repeat([0.2, 1.0, 10.0], 4), 19 / 21
    names, held, paper = np.array([f"m{k:02d}" for k in range(n)]), [], []
    for seed in range(pools):
        rng = np.random.default_rng([seed, 9])
        theta, error = rng.normal(0, 0.8, n), rng.normal(0, 0.15, n)
        a = rng.integers(0, n, n * each // 2)
        b = (a + rng.integers(1, n, len(a))) % n
        gap, human = simulated(rng, slope, theta[a] - theta[b], error[a] - error[b])
        table = pd.DataFrame({"model_a": names[a], "model_b": names[b], "gap": gap, "human": human})
        board = jaxeval.fit_bradley_terry(table.assign(target=human)[["model_a", "model_b", "target"]], 0.01).logits
        anchors = (board[names] - board[names].mean()).to_numpy()[None]
        read = jaxeval.JudgedBattles.from_pandas(table, score_difference="gap", label_coding="a_wins_1")
        calibration = SoftEloCalibration.fit(read, methods=("soft",))

        own, own_error = rng.normal(0, 0.8, len(ratios)), rng.normal(0, 0.15, len(ratios))
        row = np.repeat(np.arange(len(ratios)), (ratios * each).astype(int))
        other = rng.integers(0, n, len(row))
        gap, _ = simulated(rng, slope, own[row] - theta[other], own_error[row] - error[other])
        new = pd.DataFrame({"model_a": np.char.add("new", row.astype(str)), "model_b": names[other], "gap": gap})
        found = calibration.predict(
            jaxeval.JudgedBattles.from_pandas(new, score_difference="gap"), level, human_votes=each
        )
        place = found["model"].str.removeprefix("new").astype(int).to_numpy()
        voted = rng.integers(0, n, (len(ratios), each))
        votes = (rng.random(voted.shape) < expit(own[:, None] - theta[voted])).astype(float)
        battles = [OwnBattles("", o, v[None], anchors, np.zeros(1)) for o, v in zip(voted, votes, strict=True)]
        miss = np.abs(found["rating"].to_numpy() - 1500 - ELO * strengths(battles, 0.01)[place, 0])
        half = (found["upper"] - found["lower"]).to_numpy() / 2
        models = calibration.methods["soft"].models
        scale = jaxeval.conformal_quantile(models["residual"].abs() / models["standard_error"], level)
        for result, limit in ((held, half), (paper, scale * found["standard_error"].to_numpy())):
            inside = np.empty(len(ratios))
            inside[place] = miss <= limit
            result.append(inside.reshape(3, 4).mean(axis=1))
    coverage, error = np.mean(held, axis=0), np.std(held, axis=0, ddof=1) / np.sqrt(pools)
    assert (np.abs(coverage - expected) < 4 * error + [0.05, 0.0, 0.0]).all()
    assert np.mean(paper, axis=0)[2] < 0.6
