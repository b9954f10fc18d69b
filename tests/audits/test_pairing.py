"""Pairs that follow from results are seen, and random ones raise no alarm."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy.special import expit

import jaxeval
from jaxeval.audits.pairing import followed
from jaxeval.cli.main import main

M = 8
ELO = np.log(10) / 400


def played(seed, n=600, matched=False, exponent=1.0):
    """Votes in time, of random pairs of models that play unequally often, or matched by running Elo ratings."""
    rng = np.random.default_rng([4, seed])
    theta = rng.normal(0, 0.7, M)
    share = rng.permutation(np.arange(1.0, M + 1) ** -exponent)
    rating, rows = np.zeros(M), []
    for _ in range(n):
        a = rng.choice(M, p=share / share.sum())
        near = share * (np.exp(-(((rating - rating[a]) / 100) ** 2) / 2) + 1e-9 if matched else 1.0)
        near[a] = 0
        b = rng.choice(M, p=near / near.sum())
        won = float(rng.random() < expit(theta[a] - theta[b]))
        step = 24 * (won - expit(ELO * (rating[a] - rating[b])))
        rating[a], rating[b] = rating[a] + step, rating[b] - step
        rows.append((f"m{a}", f"m{b}", won))
    votes = pd.DataFrame(rows, columns=["model_a", "model_b", "target"])
    return votes.assign(time=pd.Timestamp("2026-01-05") + pd.to_timedelta(np.arange(n), unit="h"))


def z_of(votes):
    battles = jaxeval.Battles.from_pandas(votes)
    fit = jaxeval.fit_bradley_terry(battles)
    return followed(battles, fit._board, np.arange(len(votes), dtype=float)).z


def test_matched_pairs_are_told_and_random_ones_are_not(tmp_path):
    found = jaxeval.audit(played(0, 1500, matched=True), time="time", parts=["pairing"], progress=False)
    text = found.verdict[0]
    assert text.startswith("Who meets whom follows from the results so far: for every 100 Elo that results put a model")
    assert "Elo stronger (z " in text
    assert "held 87% to 94%" in text
    played(1).to_csv(tmp_path / "votes.csv", index=False)
    line = ["audit", str(tmp_path / "votes.csv"), "--target", "target", "--time", "time", "--parts", "pairing"]
    told = " ".join(CliRunner().invoke(main, line, catch_exceptions=False).output.split())
    assert "Who meets whom does not visibly follow from the results so far" in told


def test_votes_at_one_time_have_no_results_before_them():
    votes = played(0, 300).assign(time="2026-01-05")
    found = jaxeval.audit(votes, time="time", parts=["pairing"], progress=False)
    assert "no votes came after others" in found.absent["pairing"]


def test_equal_votes_may_be_counted():
    votes = played(2, 300).assign(time=np.arange(300) // 100, n=1)
    twice = votes.assign(n=2)
    found = [
        jaxeval.Battles.from_pandas(own[["model_a", "model_b", "target", "n"]], count="n") for own in (votes, twice)
    ]
    plain = jaxeval.Battles.from_pandas(pd.concat([votes, votes])[["model_a", "model_b", "target"]])
    times = votes["time"].to_numpy(float)
    counted = followed(found[1], jaxeval.fit_bradley_terry(found[1])._board, times)
    doubled = followed(plain, jaxeval.fit_bradley_terry(plain)._board, np.tile(times, 2))
    assert counted.slope == pytest.approx(doubled.slope)
    assert counted.z == pytest.approx(doubled.z)


@pytest.mark.slow
def test_how_often_it_alarms():
    """200 boards of random pairs, and 100 of pairs that running ratings chose."""
    random = np.array([z_of(played(seed)) for seed in range(200)])
    assert np.mean(np.abs(random) > 1.96) < 0.05 + 3 * 0.0154
    matched = np.array([z_of(played(seed, matched=True)) for seed in range(100)])
    assert np.mean(matched > 1.96) > 0.5
