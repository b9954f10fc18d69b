"""Two boards on one scale: what is compared, what is drawn together, and what the result says."""

import re

import numpy as np
import pandas as pd
import pytest
from styled import styled

import jaxeval
from jaxeval import Battles, DataError, bootstrap, compare_boards

pytestmark = pytest.mark.usefixtures("all_on_the_host")

B = 100


@pytest.fixture(scope="module")
def votes():
    table = styled(1200).reset_index(names="vote")
    judge = np.where(np.arange(1200) % 4 == 0, "tie", table["winner"])
    return table.assign(judge=judge, week=np.arange(1200) // 400)


@pytest.fixture(scope="module")
def battles(weeks):
    return Battles.from_pandas(weeks[0])


@pytest.fixture(scope="module")
def weeks(votes):
    """Two thirds of each are on both."""
    return votes[votes["week"] < 2], votes[votes["week"] > 0]


@pytest.fixture(scope="module")
def slices(votes):
    return bootstrap(votes, B, by="week")


@pytest.fixture(scope="module")
def together(weeks):
    return compare_boards(*weeks, id="vote", names=("last", "this"), n_resamples=B)


@pytest.fixture(scope="module")
def apart(weeks):
    return compare_boards(*weeks, shared="none", n_resamples=B)


def by_model(found):
    return found.table.set_index("model").sort_index()


def test_one_scale(weeks, together):
    """Ratings are those of each board, moved so that the models compared have one mean."""
    table = by_model(together)
    for side, week in zip("ab", weeks, strict=True):
        ratings = jaxeval.fit_bradley_terry(week).ratings
        np.testing.assert_allclose(table[f"rating_{side}"], ratings - ratings.mean() + 1000, atol=1e-6)
        assert table[f"rank_{side}"].tolist() == ratings.rank(ascending=False).astype(int).tolist()
    np.testing.assert_allclose(table["difference"], table["rating_b"] - table["rating_a"], atol=1e-9)
    np.testing.assert_allclose(together.difference.draws.sum(1), 0, atol=1e-8)
    assert (table["rank_change"] == table["rank_b"] - table["rank_a"]).all()
    joint = together.joint
    pd.testing.assert_frame_equal(
        (joint.of(board="this") - joint.of(board="last")).interval(), together.difference.interval()
    )


def test_what_is_shared_is_drawn_once(together, apart):
    assert together.pairing.n_shared == 400
    assert together.notes[0] == (
        "800 votes on last and 800 on this, 400 of them on both, known by the column 'vote'; one draw of the union for "
        "both"
    )
    assert apart.notes[0] == "800 votes on a and 800 on b, none known to be on both; independent draws"
    ratio = (together.difference.standard_errors / apart.difference.standard_errors) ** 2
    assert ratio.mean() == pytest.approx(0.5, abs=0.15)  # half the votes are on both
    alone = [own.standard_errors for own in (*together.ratings, *apart.ratings)]
    assert (alone[0] / alone[2]).mean() == pytest.approx(1, abs=0.15)


def test_independent_draws_are_those_of_each_board_alone(weeks, apart):
    """Beside each other they are of different resamples, as both boards used the same random numbers."""
    one, other = (bootstrap(week, B) for week in weeks)
    np.testing.assert_array_equal(apart.boards[0].draws, one.draws)
    np.testing.assert_array_equal(apart.boards[1].draws, other.draws)
    found = compare_boards(one, other)
    np.testing.assert_array_equal(found.difference.draws, apart.difference.draws)
    assert "each keeps its own draws, taken as independent" in found.notes[0]
    same = compare_boards(one, bootstrap(weeks[0], B, seed=1)).difference
    assert np.abs(np.corrcoef(one.draws[:, 0], same.draws[:, 0])[0, 1]) < 0.95
    assert same.standard_errors.mean() == pytest.approx(apart.difference.standard_errors.mean(), rel=0.2)


@pytest.mark.parametrize("shared", ["id", "none"])
def test_swapping_the_boards_changes_signs_alone(weeks, together, apart, shared):
    how = {"id": "vote"} if shared == "id" else {"shared": "none"}
    found, again = together if shared == "id" else apart, compare_boards(*weeks[::-1], n_resamples=B, **how)
    np.testing.assert_array_equal(found.difference.draws, -again.difference.draws)
    one, other = by_model(found), by_model(again)
    for name in ("difference", "rank_change"):
        np.testing.assert_allclose(one[name], -other[name], atol=1e-9)
        np.testing.assert_allclose(one[f"{name}_lower"], -other[f"{name}_upper"], atol=1e-9)
    pd.testing.assert_frame_equal(found.agreement, again.agreement)
    assert one["moved"].replace({"up": "down", "down": "up"}).tolist() == other["moved"].tolist()


@pytest.mark.parametrize("given", ["battles", "table", "bootstrap", "file"])
def test_a_board_beside_itself_does_not_differ(weeks, battles, given, tmp_path):
    votes = weeks[0]
    votes.to_csv(tmp_path / "votes.csv", index=False)
    board = {"battles": battles, "table": votes, "file": tmp_path / "votes.csv"}.get(given) or bootstrap(battles, B) \
        if given != "table" else votes  # fmt: skip
    found = compare_boards(board, board, **({} if given == "bootstrap" else {"n_resamples": B}))
    assert found.identical
    zero = ["difference", "difference_lower", "difference_upper", "rank_change", "rank_change_lower"]
    assert (found.table[zero] == 0).all(axis=None)
    assert (found.agreement == 1).all(axis=None)
    assert found.movers.empty
    assert found.answer.sentences == ("none of 6 models moved: the boards hold the same votes, rated alike",)


def test_a_checkpoint_keeps_both(weeks, tmp_path, monkeypatch):
    monkeypatch.setattr("jaxeval.execution.host.spares_jax", lambda: False)  # a checkpoint is kept by programs alone
    plain = compare_boards(*weeks, id="vote", n_resamples=B)
    for _ in range(2):
        found = compare_boards(*weeks, id="vote", n_resamples=B, checkpoint=tmp_path / "kept")
        np.testing.assert_array_equal(found.difference.draws, plain.difference.draws)
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {"a", "b"}
    with pytest.raises(DataError):
        compare_boards(weeks[0], weeks[1].head(600), id="vote", n_resamples=B, checkpoint=tmp_path / "kept")


def test_people_and_a_judge(weeks):
    people = weeks[0].drop(columns="judge")
    judge = weeks[0].drop(columns="winner").rename(columns={"judge": "winner"}).drop(index=range(10))
    found = compare_boards(people, judge, names=("people", "judge"), shared="index", n_resamples=B)
    assert found.pairing.n_shared == 790
    assert "790 of them on both, known by the labels of the rows (" in found.notes[0]
    assert "have another result on judge); one draw" in found.notes[0]
    table = by_model(found)
    assert (np.sign(table["difference"]) == -np.sign(table["rating_a"] - 1000)).all()  # more ties draw ratings together
    by_cluster = compare_boards(people.head(400), judge.head(400), cluster="prompt", shared="index", n_resamples=20)
    assert "clusters by 'prompt' on both; one draw of the union" in by_cluster.notes[0]


def test_clusters_on_both_boards_are_drawn_together(weeks, apart):
    first, second = (week[week["week"] == k] for k, week in zip((0, 2), weeks, strict=True))
    found = compare_boards(first, second, cluster="prompt", n_resamples=20)
    assert found.pairing.together
    assert found.pairing.n_shared == 0
    assert re.search(r"none known to be on both; \d+ clusters by 'prompt' on both; one draw", found.notes[0])
    alone = compare_boards(first, second, cluster="prompt", shared="none", n_resamples=20)
    assert not alone.pairing.together


def test_a_vote_in_two_clusters_is_an_error(weeks):
    other = weeks[1].assign(prompt=lambda table: table["prompt"] + 1)
    with pytest.raises(DataError, match=r"first in row \d+ of a, \d+, and row \d+ of b, \d+; rows count from 0"):
        compare_boards(weeks[0], other, id="vote", cluster="prompt", n_resamples=20)


@pytest.mark.parametrize("of", ["cluster", "strata"])
def test_groups_of_two_types_are_an_error(weeks, of):
    numbers, texts = weeks[0].assign(voter=1), weeks[1].assign(voter="1")
    wanted = "column 'voter' has integer values on board a and string values on board b"
    with pytest.raises(DataError, match=wanted):
        compare_boards(numbers, texts, id="vote", n_resamples=20, **{of: "voter"})


@pytest.mark.slow
def test_with_and_without_style_control(battles):
    found = compare_boards(battles, battles, options_b={"features": ["length"]}, n_resamples=B)
    effect = jaxeval.style_effect(battles, ["length"], n_resamples=B).set_index("model")
    table = by_model(found)
    np.testing.assert_allclose(table["difference"], effect["shift"].loc[table.index], atol=1e-5)
    width = table["difference_upper"] - table["difference_lower"]
    expected = (effect["shift_upper"] - effect["shift_lower"]).loc[table.index]
    assert (width / expected).mean() == pytest.approx(1, abs=0.2)
    assert found.pairing.n_shared == 800


@pytest.mark.slow
def test_ties_by_different_models_are_compared_by_expected_score(battles):
    found = compare_boards(battles, battles, options_b={"ties": "davidson"}, n_resamples=20)
    np.testing.assert_allclose(found.difference.estimate, 0, atol=1e-5)
    assert "ties by different models: they are compared by expected score" in found.warnings[0]


def test_slices_keep_their_draws(slices):
    found = compare_boards(slices[0], slices[2], names=("first", "third"))
    assert found.boards == (slices[0], slices[2])
    lower = slices[2].contrasts.difference_interval()[0]
    draws = found.ratings[1].draws
    np.testing.assert_allclose(np.quantile(draws[:, 0] - draws[:, 1], 0.025), lower.iloc[0, 1], atol=1e-6)


def test_slices_that_overlap_are_told(votes, slices):
    boards = bootstrap(votes.head(600).assign(tags=[["x"], ["x", "y"], ["y"]] * 200), B, by="tags")
    for pair in (("x", "y"), ("overall", "x")):
        found = compare_boards(*(boards[name] for name in pair))
        assert found.warnings[0].startswith("both boards are slices by tags, whose categories overlap")
        assert "Battles.filter" in found.warnings[0]
    assert not any("overlap" in text for text in compare_boards(slices[0], slices[1]).warnings)


@pytest.fixture(scope="module")
def uneven(votes):
    """Boards with models of their own, one without a rating, and one with few battles."""
    new = pd.DataFrame({"model_a": "new", "model_b": "model-1", "winner": ["model_a", "model_b"] * 10})
    best = pd.DataFrame({"model_a": "best", "model_b": "model-1", "winner": ["model_a"] * 9 + ["tie"]})
    never = best.assign(winner="model_a")
    few = pd.DataFrame({"model_a": "few", "model_b": "model-1", "winner": ["model_a", "model_b"]})
    a = pd.concat([votes.head(600), best, few, new.assign(model_a="old")])
    return compare_boards(a, pd.concat([votes.tail(600), never, few, new]), min_battles=3, n_resamples=B)


class TestModels:
    def test_only_those_on_both_are_compared(self, uneven):
        assert list(uneven.models) == [f"model-{k}" for k in range(1, 7)]
        assert uneven.warnings[:4] == [
            "1 model is on a only, and not compared: old",
            "1 model is on b only, and not compared: new",
            "1 model is not compared, with fewer than 3 battles on a: few",
            "1 model is not compared, without a finite rating on b: best",
        ]
        np.testing.assert_allclose([own.estimate.mean() for own in uneven.ratings], 1000)

    def test_ranks_are_among_them(self, uneven):
        assert sorted(uneven.table["rank_a"]) == sorted(uneven.table["rank_b"]) == [1, 2, 3, 4, 5, 6]
        assert uneven.table["rank_worst_b"].max() == 6


def test_an_anchor_holds_both_boards(weeks, together):
    found = compare_boards(*weeks, id="vote", n_resamples=B, gauge=("model-2", 1200))
    row = by_model(found).loc["model-2"]
    assert row[["rating_a", "rating_b"]].tolist() == [1200, 1200]
    assert row[["difference", "difference_lower", "difference_upper"]].tolist() == [0, 0, 0]
    assert row["moved"] == ""
    pd.testing.assert_frame_equal(
        by_model(found).filter(like="rank"), by_model(together).filter(like="rank"), check_dtype=False
    )


@pytest.fixture(scope="module")
def moved(votes):
    """Model-5 loses to everybody in board b."""
    sides = votes["model_a"].eq("model-5").astype(int) - votes["model_b"].eq("model-5").astype(int)
    winner = votes["winner"].mask(sides > 0, "model_b").mask(sides < 0, "model_a")
    some = np.where(votes["vote"] % 3 == 0, winner, votes["winner"])
    first = votes["week"] < 2
    return compare_boards(votes[first], votes.assign(winner=some)[first], id="vote", n_resamples=B)


def test_who_moved(moved):
    assert moved.table["model"][0] == "model-5"
    assert moved.table["moved"][0] == "down"
    assert moved.movers["moved"].iloc[0] == "down"
    assert re.match(
        r"\d of 6 models moved at the 95% level, for all at once: model-5 -\d+\.\d \(-", moved.answer.sentences[0]
    )
    assert moved.answer.sentences[1].startswith("Kendall's tau between the boards is ")
    apart = moved.difference.apart_from(0, 0.95)
    assert set(moved.movers["model"]) == set(apart.index[apart])


@pytest.mark.slow
def test_other_links_tell_nobody_who_moved(weeks):
    found = compare_boards(weeks[0], weeks[0], shared="index", options_b={"link": "probit"}, n_resamples=B)
    assert found.table["moved"].isna().all()
    assert found.movers.empty
    assert "so that no model is said to have moved" in found.warnings[0]
    assert found.answer.sentences[0].startswith("the links of the boards differ; the largest difference is")


def test_all_models_are_no_top(weeks, together):
    assert "of the first 5 are the same" in together.answer.sentences[1]
    found = compare_boards(*weeks, id="vote", n_resamples=B, top=6)
    assert "are the same" not in found.answer.sentences[1]


def test_rows_of_files_that_look_equal_are_told(weeks, tmp_path):
    files = [tmp_path / name for name in ("a.csv", "b.csv")]
    for file, week in zip(files, weeks, strict=True):
        week.rename(columns={"vote": "vote_id"}).to_csv(file, index=False)
    found = compare_boards(*files, n_resamples=B)
    assert found.warnings[0].startswith("400 of the 800 rows of the smaller board look like rows of the other")
    assert compare_boards(str(files[0]), [files[1]], shared="rows", n_resamples=20).pairing.n_shared == 400


def test_rows_that_look_equal_are_told(weeks):
    found = compare_boards(*weeks, n_resamples=B)
    assert not found.pairing.together
    assert found.warnings[0].startswith("400 of the 800 rows of the smaller board look like rows of the other")
    other = compare_boards(weeks[0], weeks[1].assign(vote=lambda t: t["vote"] + 5000), id="vote", n_resamples=B)
    told = "the boards share no vote: no value of vote is on both (types of columns: int64 and int64)"
    assert other.warnings[0] == told


class TestErrors:
    def test_what_is_no_board(self, weeks, slices):
        with pytest.raises(TypeError, match=r"a board is one slice: pass one of 0, 1, 2, as boards\[0\]"):
            compare_boards(slices, slices)
        with pytest.raises(TypeError, match="one board has draws and the other has none"):
            compare_boards(slices[0], weeks[0])
        with pytest.raises(TypeError, match="both boards have draws already, which id cannot change: pass the battles"):
            compare_boards(slices[0], slices[1], id="vote")
        with pytest.raises(ValueError, match="the boards have 100 and 101 resamples"):
            compare_boards(slices[0], bootstrap(weeks[0], 101))
        rankings = jaxeval.Rankings.from_pandas(pd.DataFrame({"ranking": [["a", "b"], ["b", "a"]]}))
        with pytest.raises(TypeError, match="boards of rankings are compared by their draws"):
            compare_boards(rankings, rankings)

    @pytest.mark.parametrize(("options", "message"), [
        ({"names": ("a", "a")}, "names must be two different names"),
        ({"gauge": "votes"}, "weighs models differently on each board"),
        ({"options_b": {"seed": 3}}, "options_b takes features, .* got 'seed'"),
        ({"gauge": ("model-9", 1000)}, "the anchor model 'model-9' is not among"),
        ({"top": 0}, "top must be"),
    ])  # fmt: skip
    def test_options(self, weeks, options, message):
        with pytest.raises(ValueError, match=message):
            compare_boards(*weeks, **{"n_resamples": 20, **options})

    def test_no_models_in_common(self, weeks):
        other = weeks[0].replace({f"model-{k}": f"other-{k}" for k in range(1, 7)})
        with pytest.raises(DataError, match=r"0 models can be compared.*Battles.rename"):
            compare_boards(weeks[0], other, n_resamples=20)


def test_boards_that_may_rest_on_the_same_votes(battles):
    found = compare_boards(bootstrap(battles, 20), bootstrap(battles, 20, ridge=1.0))
    assert found.warnings[0].startswith("every model has the same number of battles on both boards, and their draws")


@pytest.mark.slow
def test_real_votes(data):
    """Two months that share most votes; the board of all of them in between."""
    votes = pd.read_parquet(data / "arena140k_votes.parquet")
    battles = Battles.from_pandas(votes)
    number = battles.kept
    months = [battles.filter(number < 110_000), battles.filter(number >= 25_000)]
    found = compare_boards(*months, n_resamples=B, min_battles=100)
    apart = compare_boards(*months, shared="none", n_resamples=B, min_battles=100)
    assert found.pairing.n_shared == (number[number < 110_000] >= 25_000).sum()
    assert len(found.models) == 52
    # Of 110,000 votes 85,000 are on both: the variance of a difference is 25 / 110 of that of other votes.
    ratio = (found.difference.standard_errors / apart.difference.standard_errors) ** 2
    assert ratio.mean() == pytest.approx(25 / 110, rel=0.25)
    assert found.agreement.loc["kendall_tau", "value"] > 0.9
    assert len(found.movers) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
def test_intervals_hold_and_false_alarms_are_few(shared):
    """The same strengths on both boards: none moved."""
    rng, n, n_boards = np.random.default_rng(5), 2400, 60
    strength = np.linspace(0.6, -0.6, 8)
    held, alarms = [], []
    for r in range(n_boards):
        a = rng.integers(8, size=n * 3 // 2)
        b = (a + rng.integers(1, 8, size=len(a))) % 8
        won = rng.random(len(a)) < 1 / (1 + np.exp(strength[b] - strength[a]))
        votes = pd.DataFrame({"model_a": a, "model_b": b, "winner": np.where(won, "model_a", "model_b")})
        votes = votes.reset_index(names="id")
        pair = (votes.head(n), votes.tail(n)) if shared else (votes.head(n * 3 // 4), votes.tail(n * 3 // 4))
        found = compare_boards(*pair, n_resamples=400, seed=r, **({"id": "id"} if shared else {"shared": "none"}))
        held.append(((found.table["difference_lower"] <= 0) & (found.table["difference_upper"] >= 0)).mean())
        alarms.append(len(found.movers) > 0)
    assert abs(np.mean(held) - 0.945) < 4 * np.std(held) / np.sqrt(n_boards)
    assert abs(np.mean(alarms) - 0.06) < 4 * np.sqrt(0.05 * 0.95 / n_boards)
