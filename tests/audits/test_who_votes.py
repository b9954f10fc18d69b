"""Odd voters are found, honest ones are left alone, and the numbers are those of the plain definitions."""

import numpy as np
import pandas as pd
import pytest

import jaxeval
from jaxeval.audits.points import GroupedVotes, points_of
from jaxeval.errors import DataError

NAMES = np.array([f"m{k}" for k in range(8)])


def simulated(seed=0, n_voters=120, size=50, taste=0.0, ties=0.15, n_models=8):
    rng = np.random.default_rng(seed)
    theta = np.linspace(1, -1, n_models)
    voter = np.repeat(np.arange(n_voters), size)
    a = rng.integers(0, n_models, len(voter))
    b = (a + rng.integers(1, n_models, len(voter))) % n_models
    own = theta + taste * rng.normal(size=(n_voters, n_models))
    won = rng.random(len(voter)) < 1 / (1 + np.exp(own[voter, b] - own[voter, a]))
    winner = np.where(rng.random(len(voter)) < ties, "tie", np.where(won, "model_a", "model_b"))
    when = pd.Timestamp("2026-01-05") + pd.to_timedelta(rng.permutation(len(voter)), unit="min")
    return pd.DataFrame({"model_a": NAMES[a], "model_b": NAMES[b], "winner": winner, "voter": voter, "when": when})


@pytest.fixture(scope="module")
def odd():
    """Voter 0 always chooses m7, voter 1 names the other model than it prefers, voter 2 tosses coins."""
    votes, rng = simulated(), np.random.default_rng(1)
    for side in "ab":
        votes.loc[(votes["voter"] == 0) & (votes[f"model_{side}"] == "m7"), "winner"] = f"model_{side}"
    other = {"model_a": "model_b", "model_b": "model_a", "tie": "tie"}
    votes["winner"] = votes["winner"].where(votes["voter"] != 1, votes["winner"].map(other))
    coins = np.where(rng.random(len(votes)) < 0.5, "model_a", "model_b")
    votes["winner"] = votes["winner"].where(votes["voter"] != 2, coins)
    return votes


@pytest.fixture(scope="module")
def found(odd):
    return jaxeval.who_votes(odd, "voter", time="when", every="hour")


def test_odd_voters_stand_out_and_no_others(found):
    verdicts = found.table.set_index("voter")["verdict"]
    assert set(verdicts.index[verdicts != ""]) <= {0, 1, 2}
    assert verdicts[1] == "agrees with the board less than coins do"
    assert found.n_suspect_votes == 50 * (verdicts != "").sum()
    assert any("voter 1 agrees with the board less than coins do" in f.text for f in found.findings())


def test_a_pull_is_what_the_rating_loses_without_the_voter(odd, found):
    whole = jaxeval.fit_bradley_terry(odd).ratings
    top = found.strongest.iloc[0]
    without = jaxeval.fit_bradley_terry(odd[odd["voter"] != top["voter"]]).ratings
    assert top["pull_refitted"] == pytest.approx((whole - without)[top["pulled"]], abs=1e-6)
    assert top["pull"] == pytest.approx(top["pull_refitted"], rel=0.1)
    suspects = found.table.loc[found.table["verdict"] != "", "voter"]
    clean = jaxeval.fit_bradley_terry(odd[~odd["voter"].isin(suspects)]).ratings
    np.testing.assert_allclose(
        found.without.set_index("model")["rating_without"], clean[found.without["model"]], atol=1e-6
    )


def test_points_are_those_of_the_votes(odd, found):
    decided = odd[odd["winner"] != "tie"]
    fit = jaxeval.fit_bradley_terry(decided)
    row = found.table.set_index("voter").loc[0]
    own = decided[decided["voter"] == 0]
    as_a, as_b = own[own["model_a"] == row["model"]], own[own["model_b"] == row["model"]]
    assert row["n_on_model"] == len(as_a) + len(as_b)
    assert row["points"] == (as_a["winner"] == "model_a").sum() + (as_b["winner"] == "model_b").sum()
    against = [*as_a["model_b"], *as_b["model_a"]]
    expected = fit.win_probability.loc[row["model"], against].sum()
    assert row["expected_points"] == pytest.approx(expected, abs=1e-5)
    higher = fit.ratings[own["model_a"]].to_numpy() > fit.ratings[own["model_b"]].to_numpy()
    assert row["agreement"] == pytest.approx((higher == (own["winner"] == "model_a")).mean())


def test_counted_rows_give_what_single_ones_give(odd, found):
    votes = jaxeval.Battles.from_pandas(odd.drop(columns="when"))
    merged = jaxeval.Battles.concat([votes])
    assert merged.n_rows < votes.n_rows
    again = jaxeval.who_votes(merged, "voter")
    names = ["n_votes", "pull", "points", "p_points", "p_honest", "repeats", "verdict"]
    pd.testing.assert_frame_equal(
        again.table.set_index("voter")[names].sort_index(), found.table.set_index("voter")[names].sort_index()
    )


def test_honest_voters_with_tastes_raise_no_alarm_and_their_tastes_are_told():
    found = jaxeval.who_votes(simulated(3, taste=0.8))
    assert (found.table["verdict"] == "").all()
    assert found.taste.logit == pytest.approx(0.8, abs=0.2)
    assert any("Voters' likings of a model differ by 0." in f.text for f in found.findings())
    plain = jaxeval.who_votes(simulated(4))
    assert plain.taste.logit < 0.3
    assert not any("likings" in f.text for f in plain.findings())


def test_a_block_of_voters_with_few_votes_each_divides_one_model():
    votes = simulated(5, n_voters=1200, size=8)
    for side in "ab":
        votes.loc[(votes["voter"] < 150) & (votes[f"model_{side}"] == "m4"), "winner"] = f"model_{side}"
    found = jaxeval.who_votes(votes)
    first = found.blocks.iloc[0]
    assert first[["model", "lean"]].tolist() == ["m4", "for"]
    assert first["p_adjusted"] < 0.05 < found.blocks["p_adjusted"][1]
    assert len(found.table) == 0  # nobody has ten votes
    assert any("no voter can be tested" in f.text for f in found.findings())


def test_repeats_and_busiest_hours():
    votes = simulated(6, n_voters=40)
    votes["prompt"] = votes.index.where(votes.index % 7 != 5)  # some are not known
    known = votes[(votes["voter"] == 3) & votes["prompt"].notna()]
    votes = pd.concat([votes, known.head(5)], ignore_index=True)
    votes.loc[votes["voter"] == 4, "when"] = pd.Timestamp("2026-01-05 10:00")
    found = jaxeval.who_votes(votes, time="when", prompt="prompt")
    own = found.table.set_index("voter")
    assert own["repeats"].to_dict() == {voter: 5 * (voter == 3) for voter in range(40)}
    assert own.loc[4, "busiest_hour"] == 50
    assert own["busiest_hour"].drop(4).max() < 10
    (text,) = [f.text for f in found.findings() if "repeat" in f.text]
    assert text.startswith("5 votes repeat an earlier one of the same voter, pair and prompt (0.2%); ratings move by ")
    whole, without = (jaxeval.fit_bradley_terry(own).ratings for own in (votes, votes.iloc[:-5]))
    change = found.without.set_index("model")["change_without_repeats"]
    np.testing.assert_allclose(change[whole.index], without - whole, atol=1e-6)
    assert found.repeats.of_row[-5:].tolist() == [1] * 5


def test_a_burst_for_a_model_is_told():
    votes = simulated(7, n_voters=100, n_models=4)
    late = votes["when"] >= votes["when"].max() - pd.Timedelta("4h")
    for side in "ab":
        votes.loc[late & (votes[f"model_{side}"] == "m3"), "winner"] = f"model_{side}"
    first = jaxeval.who_votes(votes, time="when", every="day").bursts.iloc[0]
    assert first["model"] == "m3"
    assert first["p_adjusted"] < 0.01
    assert first["points"] > first["expected"]


def test_squares_by_pair_are_those_of_a_plain_loop():
    rng = np.random.default_rng(0)
    votes = jaxeval.Battles.from_pandas(simulated(8, n_voters=5, size=30, n_models=4))
    cells, cell = votes.compress(slice(None))
    board = jaxeval.fit_bradley_terry(votes)._board
    grouped = GroupedVotes.of(cells, board, votes.codes("voter")[0], cell, None, 5)
    points = points_of(grouped, np.zeros(5, bool), 4)
    k = int(rng.integers(len(points.group)))
    own = [e for e in range(len(grouped.group)) if grouped.group[e] == points.group[k]]
    spread = grouped.times * grouped.spread
    by_other = dict.fromkeys(range(4), 0.0)
    for e in own:
        sides = [grouped.first[e], grouped.second[e]]
        if points.model[k] in sides:
            by_other[sides[1 - sides.index(points.model[k])]] += spread[e]
    total = sum(by_other.values())
    assert points.variance[k] == pytest.approx(total)
    assert points.taste_variance[k] == pytest.approx(total**2 + sum(x**2 for x in by_other.values()))


@pytest.mark.parametrize(("change", "arguments", "told"), [
    ({"voter": None}, {}, "column 'voter' is empty in all of"),
    ({"winner": "tie"}, {}, "battles are ties: nobody prefers any model"),
    ({}, {"voter": "who"}, "no column 'who'"),
    ({}, {"alpha": 2.0}, "alpha must be between 0 and 1, got 2.0"),
    ({}, {"correction": "none"}, "correction must be one of 'benjamini-hochberg', 'holm', got 'none'"),
    ({}, {"min_votes": 1}, "min_votes must be at least 2, got 1"),
])  # fmt: skip
def test_what_cannot_be_asked_is_told(change, arguments, told):
    with pytest.raises(ValueError, match=told):
        jaxeval.who_votes(simulated(n_voters=20).assign(**change), **arguments)


def test_a_board_of_one_voter_says_so():
    found = jaxeval.who_votes(simulated(n_voters=20).assign(voter="me"))
    assert [f.text for f in found.findings()][
        1
    ] == f"Without the 1,000 votes of voter me, {found.strongest['pulled'][0]} has no rating."


def test_soft_results_are_refused_and_votes_without_a_voter_counted():
    votes = simulated(n_voters=20)
    soft = votes.drop(columns="winner").assign(target=0.7)
    with pytest.raises(DataError, match="1,000 rows have soft targets"):
        jaxeval.who_votes(soft)
    votes["voter"] = votes["voter"].astype(float).where(votes["voter"] > 0)
    found = jaxeval.who_votes(votes)
    assert (found.n_voters, found.n_votes, found.n_left_out) == (19, 950, 50)
    assert found.warnings == ["50 votes have no voter, and take no part"]
