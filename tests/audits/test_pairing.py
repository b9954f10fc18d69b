"""Pairs that follow from results are seen, and random ones raise no alarm."""

import numpy as np
import pandas as pd
import pytest
from command_line import run
from scipy.special import expit
from scipy.stats import t

import jaxeval
from jaxeval.audits.periods import followed

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


def found_in(votes, cluster=None):
    battles = jaxeval.Battles.from_pandas(votes)
    fit = jaxeval.fit_bradley_terry(battles)
    return followed(battles, fit._board, np.arange(len(votes), dtype=float), cluster)


def z_of(votes):
    return found_in(votes)[1]


def sessions(seed, n_voters=40, each=15):
    """Votes of voters in turn: each has a taste, and a few models that are shown to that voter most of the time."""
    rng = np.random.default_rng([5, seed])
    theta, rows = rng.normal(0, 0.7, M), []
    for voter in range(n_voters):
        taste, liked = rng.normal(0, 0.7, M), rng.permutation(np.r_[np.full(3, 0.25), np.full(M - 3, 0.05)])
        for _ in range(each):
            a, b = rng.choice(M, 2, replace=False, p=liked)
            won = float(rng.random() < expit(theta[a] + taste[a] - theta[b] - taste[b]))
            rows.append((f"m{a}", f"m{b}", won, voter))
    return pd.DataFrame(rows, columns=["model_a", "model_b", "target", "voter"])


def test_matched_pairs_are_told_and_random_ones_are_not(tmp_path):
    found = jaxeval.audit(played(0, 1500, matched=True), time="time", parts=["pairing"], progress=False)
    text = found.verdict[0]
    assert text.startswith("Who meets whom follows from the results so far: for every 100 Elo that results put a model")
    assert "Elo stronger (z " in text
    assert "held 87% to 94%" in text
    played(1).to_csv(tmp_path / "votes.csv", index=False)
    line = ["audit", str(tmp_path / "votes.csv"), "--target", "target", "--time", "time", "--parts", "pairing"]
    told = " ".join(run(*line, catch_exceptions=False).output.split())
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
    assert counted[:2] == pytest.approx(doubled[:2])


def test_clusters_count_whole():
    """Clusters of one vote give the error of votes; the audit takes its cluster; one cluster says nothing."""
    votes = sessions(0)
    (slope, z, _), alone = found_in(votes), found_in(votes, np.arange(len(votes)))
    assert alone[0] == slope
    assert alone[1] == pytest.approx(z * np.sqrt(1 - 1 / len(votes)))
    _, z, p_value = found_in(votes, votes["voter"].to_numpy())
    assert p_value == pytest.approx(2 * t.sf(abs(z), 39))
    options = {"time": "time", "parts": ["pairing"], "progress": False}
    timed = votes.assign(time=np.arange(len(votes)))
    found = jaxeval.audit(timed, cluster="voter", **options)
    assert f"z {z:.1f}, p = {p_value:.2g}" in found.verdict[0]
    assert "pairing" in jaxeval.audit(timed.assign(voter=1), cluster="voter", **options).absent


def drifting(seed, m=12, n=2000):
    """Votes of random pairs of models that play unequally often, enter one after the other, drift and jump."""
    rng = np.random.default_rng([6, seed])
    when, entry = np.arange(n)[:, None] / n, np.where(np.arange(m) < m // 3, 0, rng.uniform(0, 0.9, m))
    theta = rng.normal(0, 0.7, m) + rng.normal(0, 0.7, m) * (2 * when - 1) + rng.normal(0, 0.7, m) * (when > 0.5)
    liking = np.where(when >= entry, np.log(rng.dirichlet(np.full(m, 3.0))), -np.inf)
    a, b = np.argsort(-(liking + rng.gumbel(size=(n, m))))[:, :2].T
    won = rng.random(n) < expit(theta[np.arange(n), a] - theta[np.arange(n), b])
    return pd.DataFrame({"model_a": a, "model_b": b, "target": won.astype(float)})


@pytest.mark.slow
def test_how_often_it_alarms():
    """200 boards of random pairs, and 100 of pairs that running ratings chose."""
    random = np.array([z_of(played(seed)) for seed in range(200)])
    assert np.mean(np.abs(random) > 1.96) < 0.05 + 3 * 0.0154
    drifted = np.array([z_of(drifting(seed)) for seed in range(200)])
    assert np.mean(np.abs(drifted) > 1.96) < 0.05 + 3 * 0.0154
    of_voters = np.array([found_in(own, own["voter"].to_numpy())[2] for own in map(sessions, range(200))])
    assert np.mean(of_voters < 0.05) < 0.05 + 3 * 0.0154
    matched = np.array([z_of(played(seed, matched=True)) for seed in range(100)])
    assert np.mean(matched > 1.96) > 0.5
