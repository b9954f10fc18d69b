"""How few votes decide: against all single and double changes, public refits, and planted voters."""

from itertools import combinations_with_replacement

import numpy as np
import pandas as pd
import pytest
from scipy.sparse.csgraph import connected_components

import jaxeval
from jaxeval.audits.fewest_votes import fewest_votes

pytestmark = pytest.mark.usefixtures("all_on_the_host")

WAYS = ["dropped", "flipped", "added"]
# A search asks for a few boards at a time, and a chunk always runs in full.
RUN = {"n_resamples": 20, "chunk_size": 32, "progress": False}


def fitted(wins):
    """(B, M) log-strengths of (B, M, M) wins by plain Newton steps, NaN where some model has no finite rating."""
    n = wins + wins.transpose(0, 2, 1)
    m = n.shape[1]
    theta = np.zeros(n.shape[:2])
    for _ in range(30):
        p = 1 / (1 + np.exp(theta[:, None, :] - theta[:, :, None]))
        w = n * p * (1 - p)
        h = np.eye(m) * w.sum(2)[:, None] - w + 1 / m + 1e-12 * np.eye(m)
        step = np.linalg.solve(h, (wins.sum(2) - (n * p).sum(2))[..., None])[..., 0]
        theta = np.clip(theta + np.clip(step, -2, 2), -40, 40)
    rated = np.array([connected_components(x > 0, connection="strong")[0] == 1 for x in wins])
    return np.where(rated[:, None], theta - theta.mean(1, keepdims=True), np.nan)


def all_changes(wins, way, k):
    """(B, M, M) wins after all ways to change ``k`` decisive votes."""
    pairs = [(i, j) for i in range(len(wins)) for j in range(len(wins)) if i != j]
    found = []
    for chosen in combinations_with_replacement(pairs, k):
        own = wins.copy()
        for i, j in chosen:
            if way != "added":
                own[i, j] -= 1
            if way != "dropped":
                own[(j, i) if way == "flipped" else (i, j)] += 1
        taken = {pair: chosen.count(pair) for pair in chosen}
        if way == "added" or all(wins[pair] >= times for pair, times in taken.items()):
            found.append(own)
    return np.array(found)


def small_board(rng, m, n):
    """Wins of a board on which all models have finite ratings."""
    theta = rng.normal(0, 0.4, m)
    while True:
        i = rng.integers(m, size=n)
        j = (i + rng.integers(1, m, n)) % m
        first = rng.random(n) < 1 / (1 + np.exp(theta[j] - theta[i]))
        wins = np.zeros((m, m))
        np.add.at(wins, (np.where(first, i, j), np.where(first, j, i)), 1)
        if not np.isnan(fitted(wins[None])).any():
            return wins


def as_battles(wins):
    i, j = np.nonzero(wins)
    table = {"model_a": i, "model_b": j, "winner": "model_a", "count": wins[i, j].astype(int)}
    return jaxeval.Battles.from_pandas(pd.DataFrame(table), count="count")


@pytest.mark.slow
def test_brute_force_finds_no_fewer_but_seldom():
    """Of all single and double changes; and what is proved is never more than what some change does."""
    rng = np.random.default_rng(0)
    n_best = n_known = n_proved = 0
    for number in range(8):
        wins = small_board(rng, 4, (24, 60)[number % 2])
        table = fewest_votes(as_battles(wins), top=[1], **RUN).table
        for way in WAYS:
            truth = np.full(3, np.inf)
            for k in (2, 1):
                theta = fitted(all_changes(wins, way, k))
                swapped = (theta[:, table["below"]] > theta[:, table["above"]] + 1e-6).any(0)
                truth = np.where(swapped, k, truth)
            found = table[way].to_numpy(float, na_value=np.inf)
            assert (found >= np.minimum(truth, 3)).all()
            assert (table[f"{way}_at_least"].to_numpy() <= truth).all()
            n_known += np.isfinite(truth).sum()
            n_best += (found == truth).sum()
            n_proved += (table[f"{way}_at_least"].to_numpy() > 1).sum()
    assert n_known > 30
    assert n_best >= 0.95 * n_known
    assert n_proved > 10


@pytest.fixture(scope="module")
def votes():
    frame = jaxeval.simulate_votes(1_500, 8, seed=1)
    rng = np.random.default_rng(0)
    return frame.assign(voter=rng.integers(400, size=len(frame)))


@pytest.fixture(scope="module")
def found(votes):
    return fewest_votes(votes, voter="voter", top=[1, 3], **RUN)


def test_the_votes_that_are_named_swap_the_models(votes, found):
    cells = jaxeval.Battles.from_pandas(votes).to_pandas()
    for (above, below, change), own in found.changes.groupby(["above", "below", "change"]):
        n = int(own["votes"].sum())
        row = found.table.query("above == @above and below == @below").iloc[0]
        assert n == row[change]
        table = pd.concat([cells.assign(count=1), _changed(own, change)], ignore_index=True)
        a_first = table["model_a"] < table["model_b"]
        table["target"] = np.where(a_first, table["target"], 1 - table["target"])
        pair = (
            np.where(a_first, table["model_a"], table["model_b"]),
            np.where(a_first, table["model_b"], table["model_a"]),
        )
        table["model_a"], table["model_b"] = pair
        sums = table.groupby(["model_a", "model_b", "target"], as_index=False)["count"].sum()
        assert (sums["count"] >= 0).all()
        fit = jaxeval.fit_bradley_terry(jaxeval.Battles.from_pandas(sums[sums["count"] > 0], count="count"))
        assert fit.ratings[below] > fit.ratings[above]
        assert n >= row[f"{change}_at_least"]


def _changed(own, change):
    """Votes more and less."""
    votes = own.rename(columns={"result": "target", "votes": "count"})[["model_a", "model_b", "target", "count"]]
    if change == "added":
        return votes
    less = votes.assign(count=-votes["count"])
    return less if change == "dropped" else pd.concat([less, votes.assign(target=1 - votes["target"])])


def test_borders_are_those_of_the_closest_pairs(found):
    table, borders = found.table, found.borders.set_index("border")
    assert borders.loc["#1", "top"] == 1
    for way in [*WAYS, "voters"]:
        assert borders.loc["#1", way] <= table[way].iloc[0]
        assert borders.loc["top 3", way] <= table[way].iloc[2]
    assert set(borders["dropped_for"]) <= set(table["below"])


def test_voters_are_dropped_with_all_their_votes(votes, found):
    """A planted one with many votes for the second model decides #1 alone; and voters are fewer than votes."""
    first, second = found.table["above"].iloc[0], found.table["below"].iloc[0]
    assert (found.table["voters"] <= found.table["dropped"]).mean() > 0.8
    n = 2 * int(found.table["added"].iloc[0])
    more = pd.DataFrame({"model_a": [second] * n, "model_b": first, "winner": "model_a", "voter": 1_000})
    planted = fewest_votes(pd.concat([votes, more], ignore_index=True), voter="voter", top=[1], **RUN)
    assert planted.table["above"].iloc[0] == second
    assert planted.table["voters"].iloc[0] == 1
    assert "Without 1 voter" in planted.findings()[1].text


def test_a_model_removed_is_a_board_without_it(votes, found):
    battles = jaxeval.Battles.from_pandas(votes)
    full = jaxeval.fit_bradley_terry(battles).ratings.sort_values(ascending=False).index
    for row in found.models.to_dict("records"):
        others = full.drop(row["removed"])
        own = jaxeval.fit_bradley_terry(battles.filter(exclude=[row["removed"]])).ratings[others].to_numpy()
        assert row["first"] == others[own.argmax()]
        assert row["swapped"] == (np.triu(own[:, None] < own, 1)).sum()
        change = np.argsort(np.argsort(-own)) - np.arange(len(others))
        assert abs(row["rank_change"]) == np.abs(change).max()
    swapped = found.table["without"] != ""
    for row in found.table[swapped].to_dict("records"):
        fit = jaxeval.fit_bradley_terry(battles.filter(exclude=[row["without"]]))
        assert fit.ratings[row["below"]] > fit.ratings[row["above"]]


def test_findings_are_sentences_with_numbers(found):
    findings = found.findings()
    assert all(finding.text.endswith(".") and any(sign.isdigit() for sign in finding.text) for finding in findings)
    assert f"{found.borders['dropped'].iloc[0]} dropped vote" in findings[0].text


def test_soft_and_weighted_votes_are_changed_by_what_they_count():
    rng = np.random.default_rng(0)
    frame = jaxeval.simulate_votes(600, 4, seed=0)[["model_a", "model_b"]]
    frame = frame.assign(target=rng.choice([0.2, 0.9, 0.4], len(frame)), weight=rng.choice([1.0, 2.5], len(frame)))
    table = fewest_votes(jaxeval.Battles.from_pandas(frame, weight="weight"), top=[1], **RUN).table
    assert table[WAYS].notna().all().all()
    assert (table[[f"{way}_at_least" for way in WAYS]].to_numpy() <= table[WAYS].to_numpy()).all()


@pytest.mark.parametrize("options", [{"ties": "davidson"}, {"features": [jaxeval.position_advantage()]}])
def test_models_of_other_kinds_are_refused(votes, options):
    with pytest.raises(ValueError, match="ties as half a win"):
        fewest_votes(votes, progress=False, **options)


def test_a_board_without_an_order_is_refused():
    won = pd.DataFrame({"model_a": ["a", "b"], "model_b": ["b", "c"], "winner": "model_a"})
    with pytest.raises(ValueError, match="fewer than two models"):
        fewest_votes(won, progress=False)


def test_equal_models_need_one_vote():
    sides = pd.DataFrame({"model_a": [*"abc"], "model_b": [*"bca"]})
    votes = pd.concat([sides.assign(winner=winner) for winner in ("model_a", "model_b") for _ in range(3)])
    found = fewest_votes(votes, top=[1], **RUN)
    assert found.table["gap"].abs().max() < 1e-6
    assert (found.table[WAYS] == 1).all().all()


def test_a_wide_board_is_refused(votes, monkeypatch):
    monkeypatch.setattr("jaxeval.audits.fewest_votes._WIDEST", 7)
    assert (
        "7 models or fewer, got 8"
        in jaxeval.audit(votes, parts=["fewest_votes"], progress=False).absent["fewest_votes"]
    )


def test_an_interrupted_search_goes_on_with_the_same_numbers(votes, found, tmp_path, monkeypatch):
    options = {"voter": "voter", "top": [1, 3], "checkpoint": tmp_path / "kept", **RUN}

    def interrupted(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("jaxeval.audits.fewest_votes.without_each_model", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fewest_votes(votes, **options)
    for name, table in fewest_votes(votes, **options).tables.items():
        pd.testing.assert_frame_equal(table, found.tables[name])


def test_two_models_alone():
    votes = pd.DataFrame({"model_a": "a", "model_b": "b", "winner": ["model_a"] * 6 + ["model_b"] * 3})
    found = fewest_votes(votes, **RUN)
    assert found.table[WAYS].to_numpy().tolist() == [[4, 2, 4]]
    assert len(found.models) == 0
    assert "#1 stays" not in " ".join(finding.text for finding in found.findings())


@pytest.mark.slow
def test_the_arenas_first_places(data):
    """At or below what was found before, and at or above what is proved."""
    votes = jaxeval.read_battles(data / "arena140k_votes.parquet")
    table = fewest_votes(votes, top=[1], **RUN).table
    assert (table["dropped"].head(6) <= [62, 13, 54, 14, 20, 2]).all()
    assert (table["dropped_at_least"].head(6) >= [35, 10, 32, 11, 15, 2]).all()
    assert (table["dropped_at_least"].head(6) <= [62, 13, 54, 14, 20, 2]).all()


def test_one_vote_of_many_is_told_in_words_that_fit_it():
    votes = pd.DataFrame(
        {"model_a": [*"abab"], "model_b": [*"baba"], "winner": "model_a", "count": [30_001, 30_000, 1, 1]}
    )
    found = jaxeval.fewest_votes(jaxeval.Battles.from_pandas(votes, count="count"), **RUN)
    assert found.findings()[0].text == (
        "It takes 2 dropped votes of 60,003 (less than 0.01%) to put b ahead of #1, a, or 1 flipped vote (b), or 2 "
        "added votes (b)."
    )
