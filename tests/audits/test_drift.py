"""Ratings that change are found where they change, and steady ones are left alone."""

import numpy as np
import pandas as pd
import pytest
import twins

import jaxeval
from jaxeval.audits.periods import fit_timed, step_test, timed_votes
from jaxeval.errors import DataError

START = pd.Timestamp("2026-01-05")
THETA = pd.Series([0.8, 0.4, 0.1, 0.0, -0.2, -0.4, -0.6, -0.8], [f"m{k}" for k in range(8)])
ELO = np.log(10) / 400


def simulated(*steps, seed=0, n=600, weeks=12):
    """Votes of weeks, with ``steps`` (model, week, Elo)."""
    parts = []
    for week in range(weeks):
        own = THETA.copy()
        for model, first, by in steps:
            own[model] += ELO * by * (week >= first)
        part = jaxeval.simulate_votes(n, strengths=own, seed=1000 * seed + week)
        parts.append(part.assign(when=START + pd.Timedelta(weeks=week, hours=5)))
    return pd.concat(parts, ignore_index=True)


def test_a_step_is_found_where_it_is_and_its_opponents_are_left_alone():
    found = jaxeval.drift(simulated(("m2", 7, 120)), "when")
    row = found.changes.iloc[0]
    assert len(found.changes) == 1
    assert row[["model", "period"]].tolist() == ["m2", "2026-02-23"]
    assert row["lower"] < 120 < row["upper"]
    assert row["difference"] == pytest.approx(row["after"] - row["before"])
    text = found.findings()[0].text
    assert text.startswith("The ratings of 1 of 8 models over 12 weeks changed: m2 by +")


def test_the_difference_is_that_of_a_fit_in_which_the_model_is_two():
    votes = simulated(("m2", 7, 120))
    drift = jaxeval.drift(votes, "when")
    found = drift.changes.iloc[0]
    late = votes["when"] >= pd.Timestamp(found["period"])
    for side in ("model_a", "model_b"):
        votes[side] = votes[side].astype(str).where(~late | (votes[side] != "m2"), "late")
    fit = jaxeval.fit_bradley_terry(votes)
    assert found["difference"] == pytest.approx(fit.ratings["late"] - fit.ratings["m2"], abs=1e-6)
    error = fit.difference_standard_errors.loc["late", "m2"]
    assert found["upper"] - found["difference"] == pytest.approx(drift.critical * error, rel=1e-6)
    assert drift.critical > 3  # of all models and weeks, and not of one that was known before


@pytest.mark.slow
def test_intervals_of_steps_that_were_chosen_hold_them():
    """100 boards with a step of 60 Elo. With 1.96 errors, .86 of these intervals would hold."""
    held, ratio = [], []
    for seed in range(100):
        found = jaxeval.drift(simulated(("m2", 4, 60), seed=seed, n=330), "when", seed=seed).changes
        own = found[found["model"] == "m2"]
        held += ((own["lower"] <= 60) & (own["upper"] >= 60)).tolist()
        ratio += (own["difference"] / 60).tolist()
    assert len(held) > 20
    assert np.mean(held) >= 0.95
    assert np.mean(ratio) > 1.2  # as its docstring says


def test_two_steps_of_a_model_and_one_of_another():
    found = jaxeval.drift(simulated(("m2", 4, 150), ("m2", 8, -150), ("m5", 6, -150)), "when").changes
    rows = sorted(found[["model", "period"]].itertuples(index=False, name=None))
    assert rows == [("m2", "2026-02-02"), ("m2", "2026-03-02"), ("m5", "2026-02-16")]
    by_row = found.set_index(["model", "period"])["difference"].round(-1)
    assert (by_row - np.where(by_row > 0, 150, -150)).abs().max() <= 60
    own = found[found["model"] == "m2"].sort_values("period")
    assert own["after"].iloc[0] == pytest.approx(own["before"].iloc[1])


def test_steady_ratings_raise_no_alarm_and_the_size_of_a_visible_step_is_told():
    found = jaxeval.drift(simulated(seed=1), "when")
    assert len(found.changes) == 0
    assert (found.table["p_adjusted"] >= found.table["p_value"]).all()
    finding = found.findings()[0]
    assert finding.text.startswith("No rating of 8 models over 12 weeks changed: the largest |z| is ")
    assert 20 < found.table["detectable"].median() < 80
    again = jaxeval.drift(simulated(seed=1), "when")
    pd.testing.assert_frame_equal(found.table, again.table)


def test_scores_of_steps_are_those_of_a_plain_loop():
    votes = jaxeval.Battles.from_pandas(simulated(("m2", 2, 200), n=120, weeks=4))
    period = votes.codes("when")[0]
    timed = timed_votes(
        votes.model_a, votes.model_b, votes.target, None, None, period, None, n_periods=4, n_models=8
    )  # fmt: skip
    board = fit_timed(timed)
    test = step_test(timed, board, 1, 400, np.random.default_rng(0))
    rows = list(zip(period, votes.model_a, votes.model_b, votes.target, strict=True))
    for split, unit in ((0, 2), (2, 5)):
        score, effective, step = twins.step_score(board.theta, rows, unit, split + 1)
        assert test.step[split, unit] == pytest.approx(step, rel=1e-6)
        spread = test.step_error[split, unit] * effective
        assert test.z[split, unit] == pytest.approx(score / spread, rel=1e-6)
        # Draws have the variance of the residuals, which ties make smaller than the information.
        assert 0.5 * effective < spread**2 < 1.15 * effective


def test_what_a_change_takes_is_the_quantile_of_the_largest_z_without_one():
    """Of boards without a change, a share alpha at most has as large a |z|."""
    votes = jaxeval.Battles.from_pandas(simulated(n=120, weeks=4))
    found = jaxeval.drift(votes, "when", alpha=0.1, n_draws=200, min_votes=5, seed=3)
    timed = timed_votes(
        votes.model_a, votes.model_b, votes.target, None, None, votes.codes("when")[0], None, n_periods=4, n_models=8
    )  # fmt: skip
    test = step_test(timed, fit_timed(timed), 5, 200, np.random.default_rng(3))
    assert np.mean(test.largest >= found.critical) <= 0.1
    assert found.critical == sorted(test.largest)[int(np.ceil(0.9 * (200 - 1)))]
    table = found.table.set_index("model").reindex(votes.models)
    np.testing.assert_array_equal(table["z"], np.take_along_axis(test.z, np.abs(test.z).argmax(0)[None], 0)[0])
    np.testing.assert_array_equal(
        table["p_value"], [(1 + np.sum(of >= abs(z))) / 201 for of, z in zip(test.of_unit, table["z"], strict=True)]
    )
    np.testing.assert_array_equal(table["p_adjusted"], [(1 + np.sum(test.largest >= abs(z))) / 201 for z in table["z"]])
    np.testing.assert_allclose(table["detectable"], found.critical * test.step_error.min(0) / ELO)


def test_clusters_widen_what_is_no_change():
    votes = simulated(seed=2, n=200)
    rng = np.random.default_rng(0)
    votes["voter"] = rng.integers(0, 30, len(votes)) + 30 * (votes["when"] - START).dt.days // 7
    copies = pd.concat([votes] * 4, ignore_index=True)  # each vote four times, as one voter
    copies["vote"] = np.tile(np.arange(len(votes)), 4)
    plain, clustered = (jaxeval.drift(copies, "when", cluster=c).table.set_index("model") for c in (None, "vote"))
    ratio = (plain["z"] / clustered["z"]).median()
    assert ratio == pytest.approx(2, rel=0.1)


def test_clusters_of_unequal_size_count_as_few():
    votes = simulated(seed=2, n=200)
    voter = np.where(np.arange(len(votes)) % 3 == 0, 0, np.arange(len(votes)) % 60)  # one casts a third
    found = jaxeval.drift(votes.assign(voter=voter), "when", cluster="voter")
    assert "clusters, of such unequal size that they are worth" in found.warnings[0]


def test_ratings_by_period_are_those_of_its_votes():
    votes = simulated(seed=3)
    found = jaxeval.drift(votes, "when").ratings
    week = votes[votes["when"].dt.normalize() == START + pd.Timedelta(weeks=3)]
    own = found[found["period"] == "2026-01-26"].set_index("model")
    fit = jaxeval.fit_bradley_terry(week)
    gap = own["rating"] - fit.ratings
    assert gap.max() - gap.min() < 1e-6
    whole = jaxeval.fit_bradley_terry(votes).ratings
    assert np.average(own["rating"] - whole, weights=own["n_battles"]) == pytest.approx(0, abs=1e-6)
    assert own["n_battles"].sum() == 2 * len(week)


@pytest.mark.parametrize(("arguments", "told"), [
    ({"every": "year"}, "all votes fall into one period .every='year', from 2026-01-01.: take a shorter one"),
    ({"every": 1}, "every must be at least 2, got 1"),
    ({"n_draws": 10}, "n_draws must be at least 100, got 10"),
    ({"alpha": 1.5}, "alpha must be between 0 and 1, got 1.5"),
])  # fmt: skip
def test_what_cannot_be_asked_is_told(arguments, told):
    with pytest.raises(ValueError, match=told):
        jaxeval.drift(simulated(n=100, weeks=3), "when", **arguments)


def test_too_many_periods_and_too_few_votes_are_told(monkeypatch):
    votes = simulated(n=20, weeks=3)
    assert "drift cannot be seen" in jaxeval.drift(votes, "when").findings()[0].text
    monkeypatch.setattr("jaxeval.audits.over_time._MOST_NUMBERS", 100)
    with pytest.raises(DataError, match="3 periods of 8 models are too many to compare: take longer periods"):
        jaxeval.drift(votes, "when")
