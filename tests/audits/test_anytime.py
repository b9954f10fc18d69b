"""Intervals for those who look every day, in Python and on boards with a state."""

import numpy as np
import pytest
from click.testing import CliRunner

import jaxeval
from jaxeval.audits.over_time import anytime_factor, wider_at_all_looks
from jaxeval.cli.main import main


@pytest.fixture(scope="module")
def fit():
    return jaxeval.fit_bradley_terry(jaxeval.simulate_battles(3_000, 6, seed=1))


def test_intervals_are_the_differences_and_a_multiple_of_their_errors(fit):
    found = jaxeval.anytime_intervals(fit, tuned_for=15)
    assert len(found.table) == 15
    row = found.table.iloc[4]
    assert row["difference"] == pytest.approx(fit.ratings[row["above"]] - fit.ratings[row["below"]])
    error = fit.difference_standard_errors.loc[row["above"], row["below"]]
    half = error * anytime_factor(np.array(error), 15, 0.05)
    assert (row["upper"] - row["lower"]) / 2 == pytest.approx(half)
    assert row["width_ratio"] == pytest.approx(half / (1.959964 * error), rel=1e-6)
    assert (found.table["difference"] >= 0).all()
    assert len(found.neighbours) == 5


def test_pairs_that_share_their_misses_are_wider(fit):
    one, ten, each = (jaxeval.anytime_intervals(fit, comparisons=k).table["width_ratio"] for k in (1, 10, "all"))
    assert (one < ten).all()
    assert (ten < each).all()
    fifteen = jaxeval.anytime_intervals(fit, comparisons=15).table["width_ratio"]
    assert (each == fifteen).all()


def test_a_bootstrap_gives_what_its_fit_gives(fit):
    board = jaxeval.bootstrap(jaxeval.simulate_battles(3_000, 6, seed=1), 20, progress=False)
    assert jaxeval.anytime_intervals(board).table.equals(jaxeval.anytime_intervals(fit).table)


def test_findings_say_how_much_wider_and_what_is_lost(fit):
    (finding,) = jaxeval.anytime_intervals(fit).findings()
    assert "times as wide: they tell" in finding.text
    assert "of 5 pairs of neighbours apart" in finding.text


@pytest.mark.parametrize(("arguments", "told"), [
    ({"level": 95}, "level must be between 0 and 1"),
    ({"tuned_for": 0}, "tuned_for must be finite and > 0, got 0"),
    ({"comparisons": 0}, "comparisons must be at least 1, got 0"),
])  # fmt: skip
def test_what_cannot_be_asked_is_told(fit, arguments, told):
    with pytest.raises(ValueError, match=told):
        jaxeval.anytime_intervals(fit, **arguments)


def test_models_without_a_rating_take_no_part():
    votes = jaxeval.simulate_votes(500, 4, seed=0)
    votes = jaxeval.Battles.from_pandas(votes.assign(winner=votes["winner"].astype(str).where(
        votes["model_a"] != "model-1", "model_a").where(votes["model_b"] != "model-1", "model_b")))  # fmt: skip
    found = jaxeval.anytime_intervals(jaxeval.fit_bradley_terry(votes))
    assert len(found.table) == 3
    assert found.warnings


def test_no_board_has_no_width():
    assert np.isnan(wider_at_all_looks(np.array([np.nan]), np.array([np.nan]), 0.95))


def test_a_state_tells_how_much_wider(tmp_path):
    for day in range(2):
        jaxeval.simulate_votes(800, 6, seed=day).to_csv(tmp_path / f"day-{day}.csv", index=False)
        result = CliRunner().invoke(
            main,
            ["leaderboard", str(tmp_path / f"day-{day}.csv"), "--state", str(tmp_path / "all.parquet"), "--full",
             "--resamples", "100"],
        )  # fmt: skip
        assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())
    assert "this board has 2 files, and each is a look: intervals that hold at all looks at once are 1." in text
    assert "times as wide (jaxeval.anytime_intervals)" in text


@pytest.mark.parametrize(("level", "ratio"), [(0.95, 1.549), (0.99, 1.387)])
def test_they_are_narrowest_where_they_are_tuned(level, ratio):
    from scipy.stats import norm

    z = norm.ppf((1 + level) / 2)
    errors = 10 * np.geomspace(0.1, 10, 401)
    factors = anytime_factor(errors, 10.0, 1 - level) / z
    assert abs(errors[factors.argmin()] / 10 - 1) < 0.03
    assert factors.min() == pytest.approx(ratio, abs=0.01)


def test_they_are_wider_for_more_pairs_and_far_from_where_they_are_tuned():
    near, far = anytime_factor(np.array([10.0, 20.0]), 10.0, 0.05)
    assert far / near == pytest.approx(1.07, abs=0.01)
    assert anytime_factor(np.array([10.0]), 10.0, 0.05 / 100) > near
    assert np.isinf(anytime_factor(np.array([np.inf]), 10.0, 0.05)[0])


def test_they_hold_at_all_looks_where_fixed_ones_do_not():
    rng = np.random.default_rng(0)
    times = np.geomspace(0.1, 100, 200)
    steps = rng.normal(size=(4000, 200)) * np.sqrt(np.diff(times, prepend=0))
    score = np.abs(steps.cumsum(1) / np.sqrt(times))
    missed = (score > anytime_factor(1 / np.sqrt(times), 1.0, 0.05)).any(1).mean()
    assert 0.01 < missed < 0.05
    assert (score > 1.96).any(1).mean() > 0.3
