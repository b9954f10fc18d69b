"""Refits in the browser equal those of Python, of the votes as they are and of votes that somebody changed."""

import numpy as np
import pandas as pd
import pytest

import jaxeval
from jaxeval.pages.votes import pair_data

#: Elo.
CLOSE = 1e-6
TIED = ["tie", "both_bad"]
AS_IT_IS = {"without": [], "ties": "half", "drops": []}
REFIT = """async ([pairs, change, gauge]) => {
  const votes = changedVotes(await unpackPairs(pairs), change);
  const fit = fitVotes(votes, pairs.reweight);
  const { ratings, errors } = ratedBoard(fit, gauge);
  const plain = (x) => (Number.isFinite(x) ? x : String(x));
  return { ratings: ratings.map(plain), errors: Array.from(errors, plain), battles: [...fit.battles],
           standing: fit.standing, component: fit.component, converged: fit.converged };
}"""


def refitted(page, battles, change=None, gauge=None, **options):
    """What the browser makes of a board's votes, by model."""
    fit = jaxeval.fit_bradley_terry(battles, **options)
    pairs = pair_data(battles.cells, range(len(fit.ratings))) | {"reweight": fit.settings.reweight}
    gauge = {"kind": "mean", "model": None, "rating": 1000} | (gauge or {})
    found = page.evaluate(REFIT, [pairs, AS_IT_IS | (change or {}), gauge])
    assert found["converged"]
    table = pd.DataFrame({name: found[name] for name in ("ratings", "errors", "battles", "standing", "component")})
    return table.set_index(fit.ratings.index).astype({"ratings": float, "errors": float})


def assert_equal(found, battles, **options):
    """``found`` is what Python makes of the ``battles``; models without any stand last, and have no rating."""
    fit = jaxeval.fit_bradley_terry(battles, **options)
    own = found.loc[fit.ratings.index]
    np.testing.assert_allclose(own["ratings"], fit.ratings, rtol=0, atol=CLOSE)
    np.testing.assert_allclose(own["errors"], fit.standard_errors, rtol=1e-7, atol=CLOSE)
    assert own["standing"].tolist() == fit.standing.tolist()
    assert own["component"].tolist() == fit.component.tolist()
    assert own["battles"].tolist() == fit.n_battles.tolist()
    rest = found.drop(index=fit.ratings.index)
    assert (rest["battles"] == 0).all()
    assert rest["ratings"].isna().all()


@pytest.fixture(scope="module")
def arena(data):
    votes = pd.read_parquet(data / "arena140k_votes.parquet")
    votes = votes[votes["model_a"] != votes["model_b"]].drop(columns="item")
    return jaxeval.Battles.from_pandas(votes.astype(dict.fromkeys(("model_a", "model_b", "winner"), str)))


SLICES = {"all": None, "math": "is_math", "creative": "is_creative", "if": "is_if"}


@pytest.mark.parametrize(
    "name", ["all", *(pytest.param(name, marks=pytest.mark.slow) for name in SLICES if name != "all")]
)
def test_arena(scripts, arena, name):
    column = SLICES[name]
    battles = arena if column is None else arena.filter(lambda votes: votes[column] == 1)
    page = scripts("refit.js")
    assert_equal(refitted(page, battles), battles)
    best = jaxeval.fit_bradley_terry(battles).ratings.idxmax()
    gauge = {"kind": "model", "model": int(battles.models.get_loc(best)), "rating": 1500}
    assert_equal(refitted(page, battles, gauge=gauge), battles, gauge=(best, 1500.0))
    gauge = {"kind": "votes", "rating": 1200}
    assert_equal(refitted(page, battles, gauge=gauge), battles, gauge="votes", base=1200)


def only(votes, keep):
    return jaxeval.Battles.from_pandas(votes[keep].reset_index(drop=True))


@pytest.fixture(scope="module")
def votes():
    return jaxeval.simulate_votes(3_000, 8, seed=1)


def of_pair(votes, a, b):
    """Which votes are of the pair, and which of them its model ``a`` won."""
    straight = (votes["model_a"] == a) & (votes["model_b"] == b)
    turned = (votes["model_a"] == b) & (votes["model_b"] == a)
    won = (straight & (votes["winner"] == "model_a")) | (turned & (votes["winner"] == "model_b"))
    return straight | turned, won


@pytest.mark.parametrize("options", [{}, {"reweight": True}], ids=["plain", "reweighted"])
def test_changes(scripts, votes, options):
    page = scripts("refit.js")
    battles = jaxeval.Battles.from_pandas(votes)
    place = {name: k for k, name in enumerate(battles.models)}
    both, won = of_pair(votes, "model-5", "model-2")
    tied = votes["winner"].isin(TIED)
    some = votes.index[won][:7]
    touched = votes[["model_a", "model_b"]].isin(["model-3", "model-7"]).any(axis=1)
    drop = {"a": place["model-5"], "b": place["model-2"], "n": None}
    turned = {"a": place["model-2"], "b": place["model-5"], "n": None}
    for change, keep in [
        ({}, ~votes.index.isin([])),
        ({"ties": "drop"}, ~tied),
        ({"without": [place["model-3"], place["model-7"]]}, ~touched),
        ({"drops": [drop | {"what": "votes"}]}, ~both),
        ({"drops": [drop | {"what": "wins"}]}, ~won),
        ({"drops": [turned | {"what": "losses"}]}, ~won),
        ({"drops": [drop | {"what": "losses"}]}, ~(both & ~won & ~tied)),
        ({"drops": [drop | {"what": "ties"}]}, ~(both & tied)),
        ({"drops": [drop | {"what": "wins", "n": 7}]}, ~votes.index.isin(some)),
        ({"drops": [drop | {"what": "wins", "n": 3}, turned | {"what": "losses", "n": 4}]}, ~votes.index.isin(some)),
        (
            {"ties": "drop", "without": [place["model-3"], place["model-7"]], "drops": [drop | {"what": "wins"}]},
            ~(tied | touched | won),
        ),
    ]:
        assert_equal(refitted(page, battles, change, **options), only(votes, keep), **options)


def test_votes_of_a_pair_are_seen_from_either_side(scripts, votes):
    page = scripts("refit.js")
    battles = jaxeval.Battles.from_pandas(votes)
    pairs = pair_data(battles.cells, range(8))
    both, won = of_pair(votes, "model-5", "model-2")
    tied = int((both & (votes["winner"].isin(TIED))).sum())
    own = [int(won.sum()), tied, int(both.sum()) - tied - int(won.sum())]
    ask = "async ([pairs, a, b]) => votesOfPair(await unpackPairs(pairs), a, b)"
    a, b = (int(battles.models.get_loc(name)) for name in ("model-5", "model-2"))
    assert page.evaluate(ask, [pairs, a, b]) == own
    assert page.evaluate(ask, [pairs, b, a]) == own[::-1]
    assert page.evaluate(ask, [pairs, b, b]) == [0, 0, 0]


@pytest.mark.slow
def test_weights(scripts, votes):
    rng = np.random.default_rng(0)
    weighted = votes.assign(weight=rng.choice([0.1, 1.0, 2.5, 1 / 3], len(votes)))
    battles = jaxeval.Battles.from_pandas(weighted, weight="weight")
    page = scripts("refit.js")
    for options in ({}, {"reweight": True}):
        assert_equal(refitted(page, battles, **options), battles, **options)
        left = jaxeval.Battles.from_pandas(weighted[~weighted["winner"].isin(TIED)], weight="weight")
        assert_equal(refitted(page, battles, {"ties": "drop"}, **options), left, **options)


def board(*results):
    """Battles by (winner, loser, times)."""
    rows = [(a, b, "model_a") for a, b, times in results for _ in range(times)]
    return jaxeval.Battles.from_pandas(pd.DataFrame(rows, columns=["model_a", "model_b", "winner"]))


GROUP = [("a", "b", 3), ("b", "a", 2), ("b", "c", 4), ("c", "a", 1)]
SMALL = {
    "a group": GROUP,
    "undefeated": [*GROUP, ("top", "a", 2), ("best", "top", 1)],
    "winless": [*GROUP, ("a", "low", 2), ("low", "lowest", 1)],
    "apart": [*GROUP, ("x", "y", 1), ("y", "x", 1)],
    "apart and larger": [*GROUP, ("x", "y", 20), ("y", "x", 30)],
    "through two": [*GROUP, ("top", "a", 1), ("top", "low", 1), ("b", "low", 3)],
    "not comparable": [*GROUP, ("top", "a", 1), ("top", "low", 1)],
    "no group": [("a", "b", 1), ("b", "c", 1), ("a", "d", 1), ("e", "d", 2)],
    "nearly apart": [("a", "b", 100_000), ("b", "a", 1), ("b", "c", 50_000), ("c", "b", 1)],
    "a circle": [("a", "b", 1_000), ("b", "c", 1_000), ("c", "d", 1_000), ("d", "a", 1)],
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if place else []) for place, name in enumerate(SMALL)]
)
def test_what_votes_cannot_say(scripts, name):
    battles = board(*SMALL[name])
    assert_equal(refitted(scripts("refit.js"), battles), battles)


def test_boards_that_changes_break(scripts):
    """Without b nothing leads from c to a; the rest is named and has no number."""
    page, battles = scripts("refit.js"), board(*GROUP, ("d", "c", 2), ("c", "d", 2))
    found = refitted(page, battles, {"without": [1]})
    assert_equal(found, board(("c", "a", 1), ("d", "c", 2), ("c", "d", 2)))
    assert found.loc["a", "standing"] == "winless"
    assert refitted(page, battles, {"without": [0, 1, 2, 3]})["ratings"].isna().all()


@pytest.mark.slow
def test_many_models(scripts):
    battles = jaxeval.simulate_battles(60_000, 300, seed=3)
    assert_equal(refitted(scripts("refit.js"), battles), battles)


def test_pooled(scripts, votes):
    """Categories add up, and one can be taken off the whole; models need not be the same in all."""
    page = scripts("refit.js")
    short = votes[~((votes["language"] == "German") & votes[["model_a", "model_b"]].eq("model-4").any(axis=1))]
    names = sorted(set(short["model_a"]) | set(short["model_b"]))
    place = {name: k for k, name in enumerate(names)}

    def part(table, sign):
        battles = jaxeval.Battles.from_pandas(table.reset_index(drop=True))
        pairs = pair_data(battles.cells, [place[name] for name in battles.models])
        return {"pairs": pairs, "models": pairs["models"], "sign": sign}

    pooled = """async (parts) => {
      for (const part of parts) part.votes = await unpackPairs(part.pairs);
      const { models, votes } = pooledVotes(parts);
      return [models, ratedBoard(fitVotes(votes, false), { kind: "mean", rating: 1000 }).ratings];
    }"""
    german, english = (short[short["language"] == name] for name in ("German", "English"))
    for parts, left in [
        ([part(german, 1), part(english, 1)], pd.concat([german, english])),
        ([part(short, 1), part(english, -1)], short[short["language"] != "English"]),
    ]:
        models, ratings = page.evaluate(pooled, parts)
        fit = jaxeval.fit_bradley_terry(jaxeval.Battles.from_pandas(left.reset_index(drop=True)))
        found = pd.Series(ratings, [names[k] for k in models])
        np.testing.assert_allclose(found[fit.ratings.index], fit.ratings, rtol=0, atol=CLOSE)
