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


def offset_ratings(votes, offset):
    """Ratings of votes whose logits begin at ``offset`` (side A's), by Newton's method on the rows: mean 1000."""
    names = sorted(set(votes["model_a"]) | set(votes["model_b"]))
    x = np.zeros((len(votes), len(names)))
    for side, sign in (("model_a", 1), ("model_b", -1)):
        x[np.arange(len(votes)), votes[side].map(names.index)] = sign
    points = votes["winner"].astype(str).map({"model_a": 1.0, "model_b": 0.0}).fillna(0.5).to_numpy()
    theta = np.zeros(len(names))
    for _ in range(30):
        p = 1 / (1 + np.exp(-(x @ theta + offset)))
        theta += np.linalg.lstsq((x.T * (p * (1 - p))) @ x, x.T @ (points - p), rcond=1e-10)[0]
    return pd.Series(1000 + 400 / np.log(10) * (theta - theta.mean()), names)


CONTROLLED = """async ([board, change, lever]) => {
  const read = async ({ pairs, offsets }) => {
    const votes = { ...(await unpackPairs(pairs)), offsets: await unpackOffsets(offsets) };
    return { votes, models: pairs.models };
  };
  const whole = await read(board);
  const less = lever ? [{ ...(await read(board.levers[0])), sign: -1 }] : [];
  const { votes } = pooledVotes([{ ...whole, sign: 1 }, ...less]);
  return ratedBoard(fitVotes(changedVotes(votes, change), false), { kind: "mean", rating: 1000 }).ratings;
}"""


def test_a_controlled_board_keeps_its_control(scripts):
    """Refits of some votes are those of Python with the control as it is: offsets travel as means and spreads."""
    votes = jaxeval.simulate_votes(3_000, 6, seed=0, details=True)
    votes[["model_a", "model_b", "winner"]] = votes[["model_a", "model_b", "winner"]].astype(str)
    battles = jaxeval.Battles.from_pandas(votes, keep=["length_a", "length_b"])
    board = jaxeval.leaderboard(battles, features=[("length_a", "length_b")], n_resamples=60, progress=False)
    from jaxeval.pages.page import data_of_page

    data = data_of_page(
        board, title=None, battles=battles, metadata=None, earlier=None, history=None, made=None, ends=None, labels=None
    )
    (own,) = data["boards"]
    assert own["what_if"] is None
    longer = (votes["length_a"] - votes["length_b"]).to_numpy(float)
    (record,) = board.attrs["coefficients"]
    offset = record["coefficient"] * longer / np.sqrt((longer**2).mean())
    assert np.abs(offset).max() > 0.3  # the control says something
    table = board.set_index("model")["rating"]
    shorter = votes[["length_a", "length_b"]].min(axis=1)
    page = scripts("refit.js")
    names = [data["models"][k]["name"] for k in own["pairs"]["models"]]
    for change, lever, keep in [
        ({}, False, np.ones(len(votes), bool)),
        ({"ties": "drop"}, False, ~votes["winner"].isin(TIED).to_numpy()),
        ({}, True, (shorter > shorter.quantile(0.25)).to_numpy()),
    ]:
        found = pd.Series(page.evaluate(CONTROLLED, [own, AS_IT_IS | change, lever]), names)
        expected = offset_ratings(votes[keep], offset[keep])
        off = np.abs(found - expected[found.index])
        assert off.max() < 0.05  # Elo
        assert (np.abs(found - table[found.index]).max() < 0.05) == keep.all()


@pytest.mark.slow
def test_prices_draw_all_ratings_at_once(scripts):
    """Differences of joint draws vary as those of Python's covariance do, to the error of 2,000 draws."""
    battles = jaxeval.Battles.from_pandas(jaxeval.simulate_votes(2_000, 6, seed=0))
    fit = jaxeval.fit_bradley_terry(battles, gauge=("model-1", 1000.0))
    pairs = pair_data(battles.cells, range(6))
    half = 1.959963984540054 * fit.standard_errors.to_numpy()
    rows = [{"model": k, "lower": 1000 - x, "upper": 1000 + x} for k, x in enumerate(half)]
    board = {"pairs": pairs, "reweight": False, "gauge": {"kind": "model", "model": 0, "rating": 1000}, "rows": rows}
    page = scripts("format.js", "refit.js", "heat_maps.js", "prices.js")
    drawn = page.evaluate(
        "async (board) => [...jointDraws(board, await unpackPairs(board.pairs), 0.95)].map(([k, x]) => [...x])", board
    )
    errors = np.array(drawn)
    differences = errors - errors[:1]  # the first model fixes the scale
    expected = np.sqrt(np.diag(fit.covariance))[1:]
    np.testing.assert_allclose(differences.std(1)[1:], expected, rtol=5 / np.sqrt(2 * 2_000))
