import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import jaxeval
from jaxeval.softelo.calibration import SoftEloCalibration

ELO = 400 / np.log(10)
NEW = "model-05"


@pytest.fixture(scope="module")
def pool():
    return jaxeval.simulate_judged_battles(1000, 14, noise=2.0, seed=1)


def of_model(battles, name):
    return (battles.models[battles.model_a] == name) | (battles.models[battles.model_b] == name)


# Most tests take these and 1,000 resamples, and so share compiled code; with other files, too.
METHODS = ("hard", "soft", "smooth:0.8")


@pytest.fixture(scope="module")
def anchored(pool):
    return SoftEloCalibration.fit(pool.subset(~of_model(pool, NEW)), n_resamples=1000, methods=METHODS)


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


@pytest.mark.parametrize("method", METHODS)
def test_a_new_model_is_rated_as_if_it_had_been_held_out(anchored, new, held_out, method):
    held_out = held_out.loc[method, NEW]
    table = anchored.predict(new, 0.9, method)
    row = table.iloc[0]
    assert list(table["model"]) == [NEW]
    assert row["rating"] == pytest.approx(held_out["judge_elo"], abs=1e-4)
    # Two bootstraps of 1,000: their standard errors differ by sqrt(2 / 2,000) of their size.
    assert abs(row["standard_error"] / held_out["standard_error"] - 1) < 4 * np.sqrt(2 / 2000)
    scores = anchored.methods[method].scores
    assert row["quantile"] == jaxeval.conformal_quantile(scores, 0.9) == np.sort(scores)[12]
    np.testing.assert_allclose(row["upper"] - row["rating"], row["quantile"] * row["standard_error"])
    np.testing.assert_allclose(row["rating"] - row["lower"], row["quantile"] * row["standard_error"])
    assert table.attrs["settings"]["expected_coverage"] == 13 / 14


def test_saved_and_loaded_is_the_same(anchored, new, tmp_path):
    path = tmp_path / "calibration.json"
    anchored.save(path)
    loaded = SoftEloCalibration.load(path)
    first, second = anchored.predict(new), loaded.predict(new)
    pd.testing.assert_frame_equal(first, second)
    assert first.attrs == second.attrs
    assert loaded.settings == anchored.settings
    content = json.loads(path.read_text())
    assert (content["format"], content["version"]) == ("jaxeval soft-elo calibration", 1)
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
    calibration = SoftEloCalibration.fit(pool.subset(~mask), n_resamples=1000, methods=METHODS)
    table = calibration.predict(pool.subset(mask & ~both), 0.8)
    assert set(table["model"]) == set(others)
    assert table["rating"].is_monotonic_decreasing
    for name in others:
        alone = calibration.predict(pool.subset(of_model(pool, name) & ~both), 0.8)
        pd.testing.assert_series_equal(table[table["model"] == name].iloc[0], alone.iloc[0], check_names=False)


def test_strata_and_weights_choose_the_quantile(anchored, new):
    scores = anchored.methods["soft"].scores
    family = list(scores.index[:9])
    assert anchored.predict(new, among=family)["quantile"][0] == scores[family].max()
    equal = anchored.predict(new, weights=dict.fromkeys(scores.index, 2.0))
    assert equal["quantile"][0] == anchored.predict(new)["quantile"][0]
    with pytest.raises(ValueError, match=r"8 models support levels up to 0\.8888"):
        anchored.predict(new, among=family[:8])
    with pytest.raises(ValueError, match="among names 1 model that does not calibrate: nobody"):
        anchored.predict(new, among=["nobody"])
    with pytest.raises(ValueError, match="weights lacks 12 of 13"):
        anchored.predict(new, weights={scores.index[0]: 1.0})


def test_a_level_too_high_names_the_largest_supported(anchored, new):
    with pytest.raises(ValueError, match=r"its 13 models support levels up to 0\.9285.*at least 19 models"):
        anchored.predict(new, 0.95)
    assert np.isfinite(anchored.predict(new, 0.9285)["lower"]).all()


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


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[:40], "no JSON text"),
        (lambda text: "[1, 2]", "does not say 'format'"),
        (lambda text: text.replace('"version": 1,', '"version": 7,', 1), "has version 7.*reads version 1"),
        (lambda text: text.replace('"anchors"', '"ankers"', 1), "broken calibration.*anchors"),
        (lambda text: text.replace('"beta": 0', '"beta": "high", "b": 0', 1), "broken calibration"),
        (
            lambda text: re.sub(r'"beta": 0[.\d]*', '"beta": null', text, count=1),
            "beta of method 'soft' cannot be None",
        ),
        (lambda text: re.sub(r'"beta": 0', '"beta": -0', text, count=1), "beta of method 'soft' cannot be"),
        (lambda text: text.replace('"ridge": 0.01', '"ridge": -1', 1), "ridge must be finite and > 0"),
        (lambda text: text.replace('"ridge": 0.01', '"ridge": null', 1), "ridge must be a number"),
        (lambda text: text.replace('"n_resamples": 1000', '"n_resamples": 2.5', 1), "n_resamples must be an integer"),
        (lambda text: re.sub(r'"residual": [-.\d]*', '"residual": 1.5', text, count=1), "judge_elo minus human_elo"),
        (lambda text: text.replace('"model": "model-01"', '"model": "model-02"', 1), "models must be named once"),
        (lambda text: "[" * 100_000, "no JSON text"),
        (lambda text: text.replace('"human_elo": 1', '"human_elo": null, "h": 1', 1), "missing or not finite"),
    ],
)
def test_damaged_files_are_named(anchored, tmp_path, damage, message):
    path = tmp_path / "calibration.json"
    anchored.save(path)
    text = path.read_text()
    assert damage(text) != text
    path.write_text(damage(text))
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
    assert not anchored.predict(new).attrs["warnings"]


def test_a_new_model_is_on_the_scale_of_the_models_with_votes():
    strengths = jaxeval.simulate_strengths(16, 0.6, seed=3)
    battles = jaxeval.simulate_judged_battles(1000, strengths=strengths, noise=0.5, seed=3)
    voted = np.isin(battles.models, strengths.sort_values().index[-9:])
    name = strengths.sort_values().index[-4]
    among = voted[battles.model_a] & voted[battles.model_b]
    partly = replace(battles, human=np.where(among, battles.human, np.nan))
    of_new = of_model(battles, name)
    calibration = SoftEloCalibration.fit(partly.subset(~of_new), n_resamples=1000, methods=METHODS)
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
            jaxeval.JudgedBattles.from_pandas(frame, score_difference="gap", label_coding="a_wins_1"), n_resamples=50
        )


@pytest.mark.slow
def test_forward_intervals_cover_new_models():
    """One new model a pool, the pool's other models calibrating: the expected coverage within binomial error."""
    pools, n, level, hits = 24, 8, 0.6, 0
    for seed in range(pools):
        strengths = jaxeval.simulate_strengths(n, 0.6, seed=100 + seed)
        battles = jaxeval.simulate_judged_battles(600, strengths=strengths, noise=2.0, seed=seed)
        name = strengths.index[seed % n]
        of_new = of_model(battles, name)
        held_out = jaxeval.soft_elo(battles, n_resamples=0, methods=METHODS).models.set_index("model")
        calibration = SoftEloCalibration.fit(battles.subset(~of_new), n_resamples=200, methods=METHODS)
        row = calibration.predict(battles.subset(of_new), level).iloc[0]
        hits += row["lower"] <= held_out.loc[name, "human_elo"].iloc[0] <= row["upper"]
    expected = 5 / 8  # ceil(0.6 * 8) / 8
    assert abs(hits / pools - expected) < 4 * np.sqrt(expected * (1 - expected) / pools)
