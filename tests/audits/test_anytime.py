"""Intervals for those who look every day, in Python and on boards with a state."""

import numpy as np
import pytest
from click.testing import CliRunner

import jaxeval
from jaxeval.audits.anytime import wider_at_all_looks
from jaxeval.cli.main import main
from jaxeval.statistics.confidence_sequences import anytime_factor


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


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"level": 95}, "level must be between 0 and 1"),
        ({"tuned_for": 0}, "tuned_for must be finite and > 0, got 0"),
        ({"comparisons": 0}, "comparisons must be at least 1, got 0"),
    ],
)
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
