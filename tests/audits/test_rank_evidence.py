import numpy as np
import pandas as pd
import pytest
import scipy

import jaxeval
from jaxeval.audits.parts import NotAnsweredError, Severity
from jaxeval.audits.rank_evidence import _largest_normal
from jaxeval.errors import DataError

pytestmark = pytest.mark.usefixtures("all_on_the_host")


@pytest.fixture(scope="module")
def votes():
    return jaxeval.simulate_votes(1_500, 8, seed=1)


@pytest.fixture(scope="module")
def found(votes):
    families = {"model-1": "A", "model-2": "A", "model-3": "A", "model-4": "B", "model-5": "B", "model-6": "C"}
    return jaxeval.rank_evidence(votes, n_resamples=200, families=families, progress=False)


@pytest.fixture(scope="module")
def board(votes):
    return jaxeval.bootstrap(votes, 200, progress=False)


def test_ranks_are_those_of_the_bootstrap(found, board):
    table = found.table.set_index("model")
    sets = board.rank_sets().loc[table.index]
    assert table["rank_best"].equals(sets["rank_best"])
    assert table["rank_worst"].equals(sets["rank_worst"])
    assert table["tier"].tolist() == board.tiers().loc[table.index].tolist()
    np.testing.assert_allclose(table["lower"], board.interval().loc[table.index, "lower"])


def test_neighbours_are_told_apart_as_tiers_are(found, board):
    pairs, ratings = found.neighbours, board.fit.ratings
    np.testing.assert_allclose(pairs["gap"], ratings[pairs["above"]].to_numpy() - ratings[pairs["below"]].to_numpy())
    drawn = pd.DataFrame(board.draws, columns=board.models)
    error = (drawn[pairs["above"]].to_numpy() - drawn[pairs["below"]].to_numpy()).std(0, ddof=1)
    np.testing.assert_allclose(pairs["standard_error"], error)
    critical = board.differences().critical(0.95)
    assert pairs["told_apart"].tolist() == (pairs["gap"] > critical * error).tolist()
    assert (pairs["told_apart"] <= pairs["told_apart_alone"]).all()


def test_a_pair_at_the_edge_is_told_apart_no_sooner_than_by_tiers():
    """Of 60 votes 37 for one have p .09; the critical value is that of a resample in which both models are equal."""
    votes = pd.DataFrame({"model_a": "x", "model_b": "y", "target": [1.0] * 37 + [0.0] * 23})
    found = jaxeval.rank_evidence(votes, n_resamples=200)
    assert found.table["tier"].tolist() == [1, 1]
    assert not found.neighbours["told_apart"].any()
    assert found.findings()[0].text.startswith("1 of 1 pair of neighbours on the board cannot be told apart at 95%")


def test_pairs_are_told_apart_if_votes_of_a_loud_voter_are_independent():
    votes = pd.DataFrame({"model_a": "x", "model_b": "y", "winner": ["a"] * 70 + ["b"] * 30, "voter": range(100)})
    loud = votes.assign(voter=votes["voter"].clip(lower=40))
    for table, provided in ((votes, ""), (loud, ", if votes of one voter are independent")):
        pairs, first = (finding.text for finding in jaxeval.rank_evidence(table, n_resamples=200).findings()[:2])
        assert pairs.endswith(f"on the board is told apart at 95% for all pairs at once{provided}.")
        assert first == f"Only 1 model may be first at 95%: x{provided}."


def test_what_ratings_rest_on_is_counted(votes, found):
    table = found.table.set_index("model")
    for model in ("model-2", "model-7"):
        own = votes[(votes.model_a == model) | (votes.model_b == model)]
        others = pd.Series(np.where(own.model_a == model, own.model_b.astype(str), own.model_a.astype(str)))
        shares = others.value_counts(normalize=True)
        row = table.loc[model]
        assert (row["vote_count"], row["n_opponents"]) == (len(own), len(shares))
        assert (row["main_opponent"], row["main_share"]) == (shares.index[0], pytest.approx(shares.iloc[0]))
        assert row["n_effective"] == pytest.approx(1 / (shares**2).sum())
        assert row["opponent_rating"] == pytest.approx(table["rating"].loc[others].mean())


def test_models_of_the_latest_first_vote_are_the_newest(votes):
    times = np.arange(len(votes), dtype=float)
    late = ((votes.model_a == "model-3") | (votes.model_b == "model-3")).to_numpy()
    days = pd.Timestamp("2026-01-01") + pd.to_timedelta(times + 2000 * late, "h")
    for column in (times + 2000 * late, days, days.strftime("%Y-%m-%d %H:%M:%S")):
        own = jaxeval.rank_evidence(votes.assign(time=column), time="time", n_newest=1, n_resamples=20, progress=False)
        assert own.table.loc[own.table["newest"], "model"].tolist() == ["model-3"]
        assert any("model-3, the newest model, rests on" in finding.text for finding in own.findings())
    with pytest.raises(DataError, match="no time"):
        jaxeval.rank_evidence(votes, time="language", n_resamples=20, progress=False)


def test_a_rating_that_rests_on_one_opponent_is_serious():
    votes = jaxeval.simulate_votes(1_500, 8, seed=1)
    alone = pd.DataFrame({"model_a": "new", "model_b": "model-1", "winner": ["model_a", "model_b", "tie"] * 10})
    own = jaxeval.rank_evidence(pd.concat([votes, alone]), n_newest=1, n_resamples=50, progress=False)
    (serious,) = [f.text for f in own.findings() if f.severity == Severity.SERIOUS]
    assert (
        "new, the model with the fewest votes, rests on 30 votes against 1 opponent, 100% of them against model-1"
        in serious
    )


def test_best_of_a_family_gains_what_the_draws_say(found, board):
    rows = found.families.set_index("family")
    assert sorted(rows.index) == ["A", "B"]
    noise = pd.DataFrame(board.draws - board.fit.ratings.to_numpy(), columns=board.models)
    noise = noise[["model-1", "model-2", "model-3"]]
    gains = [max(row) - sum(row) / 3 for row in noise.to_numpy()]
    assert rows.loc["A", "gain"] == pytest.approx(np.mean(gains))
    assert rows.loc["A", ["n_models", "best"]].tolist() == [3, "model-1"]


@pytest.mark.slow
def test_best_of_equal_models_is_rated_too_high_by_the_gain():
    """Twelve boards of equal models: what the best has too much is the gain that each board tells, on average."""
    equal = jaxeval.simulate_strengths(4, 0.0)
    excess, gains = [], []
    for seed in range(12):
        votes = jaxeval.simulate_battles(600, 4, strengths=equal, popularity_exponent=0, seed=seed)
        own = jaxeval.rank_evidence(votes, families=dict.fromkeys(equal.index, "A"), n_resamples=100, progress=False)
        excess.append(own.table["rating"].max() - 1000)
        gains.append(own.families["gain"].iloc[0])
    assert abs(np.mean(excess) - np.mean(gains)) < 3 * np.std(excess) / np.sqrt(12)


@pytest.mark.parametrize("n", [1, 2, 27])
def test_largest_of_normal_numbers(n):
    x = np.linspace(-10, 10, 20_001)
    density = n * scipy.stats.norm.pdf(x) * scipy.stats.norm.cdf(x) ** (n - 1)
    assert _largest_normal(n) == pytest.approx(np.trapezoid(x * density, x), abs=1e-6)


def test_so_many_votes_are_needed():
    """The next votes between two models give the planned power: .8, within the error of 400 simulations."""
    votes = jaxeval.simulate_battles(600, 2, strengths=pd.Series([0.05, -0.05], ["a", "b"]), tie_rate=0, seed=2)
    pair = jaxeval.rank_evidence(votes, n_resamples=1000, progress=False).neighbours.iloc[0]
    p = 1 / (1 + 10 ** (-pair["gap"] / 400))
    n = 600 + round(pair["votes_needed"])
    won = np.random.default_rng(0).binomial(n, p, 2000) / n
    z = np.log(won / (1 - won)) * np.sqrt(n * won * (1 - won))
    assert np.mean(z > 1.96) == pytest.approx(0.8, abs=0.04)


def test_sentences_hold_their_numbers(found):
    texts = [finding.text for finding in found.findings()]
    untold = (~found.neighbours["told_apart"]).sum()
    assert texts[0].startswith(f"{untold} of 7 pairs of neighbours on the board cannot be told apart at 95% for all")
    assert "was chosen for being first: its interval is" in " ".join(texts)
    assert "Were the 3 models of A equally good" in " ".join(texts)
    assert list(found.tables) == ["", "neighbours", "winner", "families", "variants"]


def test_models_with_too_few_votes_are_not_said_to_be_first():
    votes = jaxeval.simulate_votes(1_500, 8, seed=1)
    thin = pd.DataFrame({"model_a": "thin", "model_b": ["model-1", "model-2"], "winner": ["model_a", "model_b"]})
    own = jaxeval.rank_evidence(pd.concat([votes, thin]), n_resamples=100, progress=False)
    (first,) = [f.text for f in own.findings() if "may be first" in f.text]
    assert "1 more model has too few votes to say" in first
    assert "thin" not in first


def test_a_model_that_hardly_ever_lost_is_first():
    """Draws without its three lost battles give it no rating, and the penalised fit tells it apart."""
    votes = pd.DataFrame({"model_a": "a", "model_b": "b", "winner": ["model_a"] * 297 + ["model_b"] * 3})
    found = jaxeval.rank_evidence(votes, n_resamples=1000, progress=False)
    texts = [finding.text for finding in found.findings()]
    assert texts[:2] == [
        "The only pair of neighbours on the board is told apart at 95% for all pairs at once.",
        "Only 1 model may be first at 95%: a.",
    ]
    even = votes.head(60).assign(winner=["model_a", "model_b"] * 30)
    texts = [finding.text for finding in jaxeval.rank_evidence(even, n_resamples=100, progress=False).findings()]
    assert texts[0].startswith("1 of 1 pair of neighbours on the board cannot be told apart")


def test_one_that_may_be_first_beside_unknown_ones_is_not_the_only_one():
    """Twenty games of four equal models: the resamples rate one of them always, and the others too seldom to say."""
    rng = np.random.default_rng(9)
    a, b = rng.integers(0, 4, 20), rng.integers(1, 4, 20)
    votes = pd.DataFrame({"model_a": a, "model_b": (a + b) % 4, "target": rng.integers(0, 2, 20).astype(float)})
    found = jaxeval.rank_evidence(votes.astype({"model_a": str, "model_b": str}), n_resamples=100)
    (first,) = [x for x in found.findings() if "may be first" in x.text]
    assert first.text == "1 model may be first at 95%: 2; 3 more models have too few votes to say."
    assert first.severity is Severity.CAUTION


def test_what_cannot_be_answered_says_why(votes):
    with pytest.raises(DataError, match="families has none of the 8 models"):
        jaxeval.rank_evidence(votes, families={"gpt": "A"}, n_resamples=20, progress=False)
    one_sided = pd.DataFrame({"model_a": ["a"] * 4, "model_b": ["b"] * 4, "winner": ["model_a"] * 4})
    with pytest.raises(NotAnsweredError, match="no ranks"):
        jaxeval.rank_evidence(one_sided, n_resamples=20, progress=False)
