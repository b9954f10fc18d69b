"""Models with few battles: penalised intervals, who takes a rank, and who is said to lead."""

import dataclasses
import inspect

import numpy as np
import pandas as pd
import pytest
from command_line import run as command
from scipy.stats import norm, t

import jaxeval
from jaxeval.ratings.thin_models import ENOUGH_BATTLES, nearby, penalised

#: What programs give instead is told elsewhere, but for boards on the graph of pairs, which have no other way.
pytestmark = pytest.mark.usefixtures("all_on_the_host")

ELO = 400 / np.log(10)


def plays(rng, theta, first, second, ties=0.0):
    """Targets of battles of pairs; a battle of equals is a tie in ``ties`` of cases."""
    p = 1 / (1 + np.exp(theta[second] - theta[first]))
    half = ties * 2 * p * (1 - p)
    u = rng.random(len(p))
    return np.where(u < p - half, 1.0, np.where(u < p + half, 0.5, 0.0))


def board_of(rng, theta, n, ties=0.0):
    """Battles of all models, ``n`` each or so."""
    m = len(theta)
    first = rng.integers(0, m, m * n // 2)
    second = (first + rng.integers(1, m, len(first))) % m
    names = np.array([f"m{k}" for k in range(m)])
    return pd.DataFrame(
        {"model_a": names[first], "model_b": names[second], "target": plays(rng, theta, first, second, ties)}
    )


@pytest.fixture(scope="module")
def few():
    return board_of(np.random.default_rng(1), np.linspace(0.8, -0.8, 6), 30, ties=0.5)


@pytest.fixture(scope="module")
def rich():
    """Six models of some 400 battles, one of 40 and one of 3."""
    rng = np.random.default_rng(2)
    table = board_of(rng, np.linspace(0.8, -0.8, 6), 400)
    thin = [("new", f"m{k % 6}", k % 3 == 0) for k in range(40)] + [("newest", f"m{k}", k == 1) for k in range(3)]
    return pd.concat([table, pd.DataFrame(thin, columns=["model_a", "model_b", "target"]).astype({"target": float})])


def test_defaults_are_auto():
    for function in (jaxeval.fit_bradley_terry, jaxeval.bootstrap, jaxeval.leaderboard):
        parameters = inspect.signature(function).parameters
        assert parameters["interval"].default == parameters["penalty"].default == "auto"


def test_the_penalised_fit_is_that_of_the_kernel(few):
    fit, firth = jaxeval.fit_bradley_terry(few), jaxeval.fit_bradley_terry(few, penalty="firth")
    theta, covariance = penalised(*fit._board.rated_tables(), fit.theta)
    np.testing.assert_allclose(theta, firth.theta, atol=1e-6)
    n, p = fit._board.rated_tables()[0], firth.win_probability.to_numpy()
    plain = firth._model_based  # without the battles of the penalty: five, one less than models
    added = n * p * (1 - p) * (np.diag(plain)[:, None] + np.diag(plain) - 2 * plain)
    assert np.triu(added, 1).sum() == pytest.approx(5)
    v = (n + added) * p * (1 - p)
    np.testing.assert_allclose(covariance, np.linalg.pinv(np.diag(v.sum(1)) - v), atol=1e-6)
    np.testing.assert_allclose(fit.interval(), firth.interval(), atol=1e-3)
    assert fit.thin.all()
    assert np.abs(fit.interval(kind="wald") - fit.interval()).max(axis=None) > 1


def test_no_maximum_is_found_where_there_is_none():
    apart = np.array([[0.0, 5, 0, 0], [5, 0, 0, 0], [0, 0, 0, 5], [0, 0, 5, 0]])  # two groups that never met
    assert penalised(apart, apart / 2, np.array([3.0, 3, -3, -3])) is None


def test_the_dispersion_is_that_of_ties(few):
    fit = jaxeval.fit_bradley_terry(few)
    p = (fit.win_probability.to_numpy())[tuple(fit.ratings.index.get_indexer(few[x]) for x in ("model_a", "model_b"))]
    n, n_ties = len(few), (few["target"] == 0.5).sum()
    assert fit.dispersion == pytest.approx(1 - n_ties / 4 / (p * (1 - p)).sum() * n / (n + 3))
    decided = few[few["target"] != 0.5]
    assert jaxeval.fit_bradley_terry(decided).dispersion == 1
    ties = jaxeval.fit_bradley_terry(few.assign(target=0.5))
    assert ties.dispersion == pytest.approx(3 / (n + 3))
    assert (ties.interval()["upper"] - ties.interval()["lower"] > 10).all()  # no certainty


def test_each_model_has_the_interval_that_suits_it(rich):
    board = jaxeval.bootstrap(rich, 200)
    ends, percentile = board.interval(), board.interval(kind="percentile")
    thin = board.models[board.fit.thin]
    assert list(thin) == list(board.models[board.fit.n_battles < ENOUGH_BATTLES]) == ["new", "newest"]
    pd.testing.assert_frame_equal(ends.drop(thin), percentile.drop(thin))
    firth = jaxeval.fit_bradley_terry(rich, penalty="firth").interval()
    np.testing.assert_allclose(ends.loc[thin], firth.loc[thin], atol=2)
    assert ends.loc["newest", "upper"] - ends.loc["newest", "lower"] > 600
    plain = jaxeval.bootstrap(rich, 200, penalty="none")
    pd.testing.assert_frame_equal(plain.interval(), percentile)
    np.testing.assert_array_equal(plain.draws, board.draws)
    asked = jaxeval.leaderboard(jaxeval.bootstrap(rich, 200, interval="basic"))
    assert asked.attrs["settings"]["interval"] == "basic"


def test_the_variance_is_that_of_the_interval(rich):
    board = jaxeval.bootstrap(rich, 200)
    table = jaxeval.leaderboard(board).set_index("model")
    thin = pd.Series(board.fit.thin, board.models)
    assert 0 < thin.sum() < len(thin)
    half = (table["upper"] - table["lower"]) / 2
    of_draws = board.standard_errors.where(~thin, half / 1.959964)
    pd.testing.assert_series_equal(table["variance"] ** 0.5, of_draws[table.index], check_names=False, rtol=1e-6)


def test_boards_of_many_battles_are_as_they_were():
    battles = board_of(np.random.default_rng(3), np.linspace(0.8, -0.8, 6), 500)
    auto, none = (jaxeval.leaderboard(battles, n_resamples=100, penalty=x) for x in ("auto", "none"))
    pd.testing.assert_frame_equal(pd.DataFrame(auto), pd.DataFrame(none), check_exact=True)


def test_where_the_penalty_does_not_go_there_is_none(rich):
    for options in ({"ridge": 0.1}, {"ties": "davidson"}, {"link": "probit"}, {"reweight": True}):
        table = (
            rich if "ties" not in options else rich.assign(target=np.where(np.arange(len(rich)) % 9, rich.target, 0.5))
        )
        assert not jaxeval.fit_bradley_terry(table, **options).thin.any(), options


def test_who_takes_a_rank(rich):
    table = jaxeval.leaderboard(rich, n_resamples=200).set_index("model")
    assert table.index[-1] == "newest"
    assert table["rank"].isna().tolist() == [False] * 7 + [True]
    assert table.loc["newest", "standing"] == "too few battles"
    assert table.loc["newest", "vote_count"] == 3
    assert table["rank_worst"].max() <= 7
    assert any("1 model has too few battles for a rank" in text for text in table.attrs["warnings"])
    everybody = jaxeval.leaderboard(rich, n_resamples=200, min_battles=0).set_index("model")
    assert everybody["rank"].notna().all()
    only = jaxeval.leaderboard(rich, n_resamples=200, min_battles=100).set_index("model")
    assert only["rank"].isna().sum() == 2


def test_a_model_that_beat_all_has_a_rank_and_one_of_five_votes_has_none():
    """Where the penalty rates all models: of 50 wins much is known, of 5 little; ranks do not depend on the gauge."""
    rng = np.random.default_rng(4)
    rows = [board_of(rng, np.zeros(4), 100)]
    for name, n in (("fifty", 50), ("five", 5)):
        rows.append(pd.DataFrame({"model_a": name, "model_b": [f"m{k % 4}" for k in range(n)], "target": 1.0}))
    for gauge in ("mean", ("five", 1000.0)):
        board = jaxeval.bootstrap(pd.concat(rows), 20, penalty="firth", gauge=gauge)
        assert list(board.models[board.too_few()]) == ["five"]


def test_weights_make_no_leader_of_four_battles():
    """Of inverse propensities, say: a weight of 5 is not five battles."""
    rows = {"model_a": [*"aaaa", *"bc" * 20], "model_b": [*"bcbc", *"cb" * 20], "winner": ["model_a"] * 44}
    votes = pd.DataFrame(rows).assign(weight=[5.0] * 4 + [0.5] * 40)
    board = jaxeval.bootstrap(jaxeval.Battles.from_pandas(votes, weight="weight"), 60)
    assert "leads" not in board.first_sentence()


def test_draws_that_few_battles_moved_are_reflected(few):
    """Two models of more than 200 battles, whose draws lie 0, 20 and 300 Elo above their ratings, and four of 30."""
    often = pd.DataFrame({"model_a": "m0", "model_b": "m1", "target": np.arange(200) % 2})
    board = jaxeval.bootstrap(pd.concat([few, often]), 200)
    many, thin = board.models.get_indexer(["m0", "m1"]), board.models.difference(["m0", "m1"])
    centred = board.draws - (np.median(board.draws, axis=0) - board.fit.ratings.to_numpy())
    for shift, n in ((0, 0), (20, 2), (300, 2)):
        draws = centred.copy()
        draws[:, many] += shift
        moved = dataclasses.replace(board, draws=draws)
        found, percentile = moved.interval(), moved.interval(kind="percentile")
        assert moved.n_reflected == n
        assert any("most of the mean rating 1000 and err together" in text for text in moved.warnings) == (n > 0)
        assert found.loc[["m0", "m1"]].equals(percentile.loc[["m0", "m1"]]) == (shift == 0)
        ratings = board.fit.ratings
        assert ((found["lower"] <= ratings) & (ratings <= found["upper"])).all()
        pd.testing.assert_frame_equal(found.loc[thin], board.interval().loc[thin])
        if n:
            lower = 2 * ratings - percentile["upper"]
            np.testing.assert_allclose(found["lower"].iloc[many], lower.iloc[many])
            upper = np.maximum(2 * ratings - percentile["lower"], ratings)
            np.testing.assert_allclose(found["upper"].iloc[many], upper.iloc[many])


@pytest.mark.parametrize(("gauge", "told"), [
    ("mean", ["most of the mean rating 1000 and err together"]),
    ("votes", ["most of the mean rating weighted by battles 1000 and err together"]),
    (("m5", 1000.0), ["the anchor m5 has fewer than 200 battles"]),
    (("m0", 1000.0), []),
])  # fmt: skip
def test_what_a_gauge_of_few_battles_is_told(gauge, told):
    """Two models of more than 200 battles, and four of 150, which have most of the votes."""
    often = pd.DataFrame({"model_a": "m0", "model_b": "m1", "target": np.arange(80) % 2})
    table = pd.concat([board_of(np.random.default_rng(1), np.zeros(6), 150), often])
    board = jaxeval.bootstrap(table, 200, gauge=gauge)
    draws = board.draws + np.where(board.fit.n_battles >= ENOUGH_BATTLES, 300.0, 0.0)
    moved = dataclasses.replace(board, draws=draws)
    assert moved.n_reflected == 2
    said = [text for text in moved.warnings if "Differences do not depend on it" in text]
    assert len(said) == len(told)
    assert all(x in text for x, text in zip(told, said, strict=True))


def test_differences_of_few_battles_are_penalised(few, rich):
    """By hand from the penalised fit; pairs of models with many battles have percentiles."""
    board, firth = jaxeval.bootstrap(few, 100), jaxeval.fit_bradley_terry(few, penalty="firth")
    lower, upper = board.difference_interval(0.9)
    error = firth.dispersion * firth._of_battles
    a, b = 1, 4
    half = norm.ppf(0.95) * np.sqrt(error[a, a] + error[b, b] - 2 * error[a, b])
    centre = firth.theta[a] - firth.theta[b]
    np.testing.assert_allclose(
        [lower.iloc[a, b], upper.iloc[a, b]], ELO * np.array([centre - half, centre + half]), 1e-5
    )
    assert np.isnan(np.diag(lower)).all()
    np.testing.assert_allclose(lower, -upper.T)
    board = jaxeval.bootstrap(rich, 100)
    differs = board.difference_interval()[0] != board.contrasts.difference_interval()[0]
    assert differs.loc["new", "m0"]
    assert not differs.drop(["new", "newest"]).drop(columns=["new", "newest"]).to_numpy()[~np.eye(6, dtype=bool)].any()


class TestTheAnswer:
    def test_it_names_the_models_whose_difference_holds_0(self):
        rng, seen = np.random.default_rng(5), set()
        for k in range(12):
            board = jaxeval.bootstrap(board_of(rng, np.linspace(0.5, -0.5, 6) * (k % 4), 100), 200)
            lower, _ = board.difference_interval()
            order = board.fit.ratings.sort_values(ascending=False).index
            tied = [name for name in order[1:] if lower.loc[order[0], name] <= 0]
            answer = board.first_sentence()
            seen.add(min(len(tied), 2))
            if not tied:
                assert answer.startswith(f"{order[0]} leads with ")
                assert answer.endswith("ahead of all others at the 95% level")
            else:
                named = answer.partition("; statistically tied with ")[2].removesuffix(" at the 95% level")
                more = f" and {len(tied) - 3} more" if len(tied) > 4 else ""
                assert named == ", ".join(tied[: 3 if more else None]) + more or len(tied) == 4
        assert seen == {0, 1, 2}

    def test_python_and_the_command_say_the_same(self, few, tmp_path):
        few.to_csv(tmp_path / "few.csv", index=False)
        table = jaxeval.leaderboard(few, n_resamples=60)
        run = command("leaderboard", tmp_path / "few.csv", "--resamples", "60")
        said = table.attrs["answer"]
        assert said == jaxeval.bootstrap(few, 60).first_sentence()
        assert run.output.splitlines()[0] == said
        assert said in table._repr_html_()
        jaxeval.page(table, tmp_path / "board.html")
        assert said in (tmp_path / "board.html").read_text()

    def test_each_category_has_one(self, few):
        table = jaxeval.leaderboard(few.assign(half=np.arange(len(few)) % 2), n_resamples=60, by="half")
        lines = table.attrs["answer"].splitlines()
        assert [line.partition(":")[0] for line in lines] == ["half = 0", "half = 1"]

    def test_of_one_and_of_none(self):
        won = pd.DataFrame({"model_a": ["x"], "model_b": ["y"], "target": 1.0})
        none = "no model can be ranked: no two models took points off each other, directly or through others"
        assert jaxeval.bootstrap(won, 20).first_sentence() == none

    @pytest.mark.parametrize(("results", "starts"), [
        ([1.0, 0.5], "too few games to say who leads: x is first with "),
        ([1.0] * 19 + [0.0], "x leads with "),
        ([1.0] * 299 + [0.0], "x leads with "),
        ([1.0] * 8, "no model can be ranked"),
        ([1.0] * 9, "x leads: undefeated in 9 battles, so that it has no finite rating, and ahead of all others"),
        ([0.5] * 20, "x and y are level, first with 1000.0 ("),
        ([1.0, 0.0], "too few games to say who leads: x and y are level, first with "),
        ([1.0] * 14 + [0.0] * 4, "x leads with "),
        ([1.0] * 13 + [0.0] * 5, "x is first with "),
        ([1.0] * 60 + [0.0] * 40, "x leads with "),
    ])  # fmt: skip
    def test_of_two_models(self, results, starts):
        """Two votes are too few; of 300 battles, 299 won are not, though two in five resamples have no loss.

        Ranks and tiers say the same as the sentence.
        """
        table = pd.DataFrame({"model_a": "x", "model_b": "y", "target": results})
        board = jaxeval.bootstrap(table, 100)
        assert board.first_sentence().startswith(starts)
        assert board.ranked().any() == starts.endswith(("x leads with ", "1000.0 (")) or starts == "x is first with "
        sets = board.rank_sets()
        if starts == "x leads with ":
            assert sets.loc["x"].tolist() == [1, 1]
            assert board.tiers().tolist() == [1, 2]
            assert jaxeval.bootstrap(table, 100, interval="percentile").first_sentence().startswith(starts)
            assert np.isfinite(board.interval()).all(axis=None)

    def test_nobody_is_first_of_one(self):
        """Votes tell no rank 1 where no other model has a rank and another may be better."""
        pairs = ["ab"] * 5 + ["ba"] * 3 + ["ac"] * 5 + ["ca"] * 3
        votes = pd.DataFrame(map(list, pairs), columns=["model_a", "model_b"]).assign(target=1.0)
        board = jaxeval.bootstrap(votes)
        assert (~board._loose).tolist() == [True, False, False]
        assert board.first_sentence().startswith("too few games to say who leads: a is first with ")
        assert board.rank_sets().isna().all(axis=None)
        assert board.tiers().isna().all()
        known = pd.DataFrame({"model_a": "d", "model_b": ["a", "b", "c"] * 30, "target": [0.0, *[1.0] * 89]})
        with_best = jaxeval.bootstrap(pd.concat([votes, known]), 200)
        assert with_best.first_sentence().startswith("d leads with ")

    def test_an_undefeated_model_beside_rated_ones(self):
        """It leads where it is ahead of each; else who is first of the others is ahead of those with a rank alone."""
        rng = np.random.default_rng(7)
        table = board_of(rng, np.array([1.5, 0.0, 0.0]), 200)
        rest = pd.DataFrame({"model_a": "new", "model_b": ["m0"] * 30, "target": 1.0})
        assert (
            jaxeval.bootstrap(pd.concat([table, rest]), 50)
            .first_sentence()
            .startswith("new leads: undefeated in 30 battles")
        )
        answer = jaxeval.bootstrap(pd.concat([table, rest.head(2)]), 50).first_sentence()
        assert answer.startswith("m0 leads with ")
        assert answer.endswith("ahead of all others with a rank, at the 95% level; undefeated, without a rank: new")

    def test_an_undefeated_model_above_few_battles_is_named(self):
        won = pd.DataFrame({"model_a": ["a", "a", "b"], "model_b": ["b", "c", "c"], "target": [1.0, 1.0, 0.5]})
        answer = jaxeval.bootstrap(won, 50).first_sentence()
        assert answer.startswith("too few games to say who leads: b and c are level, first with 1000.0 ")
        assert answer.endswith(" of those with a rating; undefeated: a")

    def test_a_model_without_a_rank_may_be_rated_higher(self):
        table = board_of(np.random.default_rng(8), np.zeros(4), 300)
        new = pd.DataFrame({"model_a": "new", "model_b": "m0", "target": [1.0, 1.0, 0.0]})
        board = jaxeval.bootstrap(pd.concat([table, new]), 100)
        assert board.fit.ratings.idxmax() == "new"
        assert not board.ranked()["new"]
        assert " of those with a rank; statistically tied with " in board.first_sentence()

    def test_one_voter_shows_nothing(self):
        """An undefeated model's clusters count as one battle each, and one cluster has no interval."""
        won = pd.DataFrame({"model_a": "x", "model_b": "y", "target": 1.0, "voter": np.arange(30) % 5})
        assert "leads" not in jaxeval.bootstrap(won, 50, cluster="voter").first_sentence()
        assert "x leads" in jaxeval.bootstrap(won.assign(voter=np.arange(30)), 50, cluster="voter").first_sentence()
        mixed = won.assign(target=np.arange(30) % 6 > 0, voter=1).astype({"target": float})
        board = jaxeval.bootstrap(mixed, 50, cluster="voter")
        assert "statistically tied with y" in board.first_sentence()
        assert board.interval().isna().all(axis=None)

    def test_the_arena(self, data):
        votes = pd.read_parquet(data / "arena140k_votes.parquet")
        table = jaxeval.leaderboard(votes, n_resamples=300)
        assert table.attrs["answer"].startswith("gemini-2.5-pro leads with 1123.8 (")
        last = table.iloc[-1]
        assert (last["model"], last["vote_count"]) == ("qwen3-coder-480b-a35b-instruct", 2)
        assert pd.isna(last["rank"])
        assert last["upper"] - last["lower"] > 600


def test_errors_of_one_loud_voter():
    """Of 60 voters one casts a third of the votes: by hand, with the factors and degrees of freedom of a mean."""
    rng = np.random.default_rng(6)
    table = board_of(rng, np.zeros(4), 675)
    table["voter"] = np.r_[np.zeros(450, int), 1 + np.arange(900) % 59]
    fit = jaxeval.fit_bradley_terry(table, cluster="voter")
    size = np.bincount(table["voter"])
    assert fit.n_effective_clusters == pytest.approx(1350**2 / (size**2).sum())
    assert fit.n_clusters == 60
    assert 7 < fit.freedom < fit.n_effective_clusters
    assert any("60 clusters, of such unequal size that they are worth 8 equal ones" in x for x in fit.warnings)
    half = fit.interval()["upper"] - fit.ratings
    robust, plain = t.ppf(0.975, fit.freedom) * fit.standard_errors, norm.ppf(0.975) * fit.standard_errors_hessian
    np.testing.assert_allclose(half, np.maximum(robust, plain * np.sqrt(fit.dispersion)))
    board = jaxeval.bootstrap(table, 200, cluster="voter")
    pd.testing.assert_frame_equal(board.interval(), fit.interval())  # of the fit, as clusters are few
    lower, upper = board.difference_interval()
    c = fit.dispersion * ELO**2 * fit._model_based
    plain = norm.ppf(0.975) * np.sqrt(np.diag(c) + c[0, 0] - 2 * c[0])[1:]
    robust = t.ppf(0.975, fit.freedom) * fit.difference_standard_errors.to_numpy()[0, 1:]
    np.testing.assert_allclose((upper - lower).to_numpy()[0, 1:] / 2, np.maximum(plain, robust))
    widened = board.interval(kind="percentile")["upper"] - fit.ratings
    own = np.quantile(board.draws, 0.975, axis=0) - fit.ratings
    times = t.ppf(0.975, fit.freedom) / norm.ppf(0.975) * np.sqrt(1 + 1 / fit.freedom)
    np.testing.assert_allclose(widened, own * times)
    assert jaxeval.fit_bradley_terry(table).n_effective_clusters is None


@pytest.fixture(scope="module")
def both():
    """Ten models of some 300 battles, and five of 5 to 13, rated by both methods."""
    rng = np.random.default_rng(8)
    table, rows = board_of(rng, np.linspace(1, -1, 10), 300), []
    for k in range(5):
        rows += [(f"new{k}", f"m{rng.integers(10)}", float(j == 0)) for j in range(5 + 2 * k)]
    table = pd.concat([table, pd.DataFrame(rows, columns=["model_a", "model_b", "target"])])
    return [jaxeval.bootstrap(table, 200, method=method) for method in ("dense", "sparse")]


class TestManyModels:
    """Boards on the graph of pairs, which have no table of all models."""

    @pytest.mark.slow
    def test_models_of_few_battles_are_penalised_alone(self, both):
        dense, sparse = both
        new = np.flatnonzero(dense.models.str.startswith("new"))
        close = dense.contrasts.closed_form(new, 0.95), sparse.contrasts.closed_form(new, 0.95)
        old = np.setdiff1d(np.arange(15), new)
        np.testing.assert_allclose(close[1][0][:, old], close[0][0][:, old], atol=15)
        np.testing.assert_allclose(close[1][1][:, old], close[0][1][:, old], rtol=0.05)

    @pytest.mark.slow  # `test_who_takes_a_rank` has boards with such a table
    def test_they_take_the_worst_ranks_from_nobody(self, both):
        for board in both:
            sets, best = board.rank_sets(min_battles=0), board.fit.ratings.idxmax()
            assert sets.loc[best, "rank_worst"] <= 5
            assert board.rank_sets(min_battles=0, simultaneous=True).loc[best, "rank_worst"] < 15
            assert np.isfinite(board.interval()).all(axis=None)
            assert not board.ranked()[board.models.str.startswith("new")].any()

    @pytest.mark.parametrize("weight", [1.0, 5.0])
    def test_a_chain_has_no_less_than_its_error(self, weight):
        """Known - b - a, one tie each, of information 1/4, by hand, and no more of weight 5: a weight is no number.

        v = 3/8 and 1/2: x_a = 2 + x_b and x_b = (8 + 4 x_a) / 7, where the true errors are 4 and 2.
        """
        table = pd.DataFrame({"model_a": ["k", "b"], "model_b": ["b", "a"], "target": 0.5, "weight": weight})
        fit = jaxeval.fit_bradley_terry(jaxeval.Battles.from_pandas(table, weight="weight"), method="sparse")
        assert not fit.thin.any()  # which a board with a table has of so few battles
        order = fit.ratings.index.get_indexer(["k", "b", "a"])
        theta, variance = nearby(fit._board, fit.ratings.index != "k", np.zeros(3))
        np.testing.assert_allclose(theta, 0, atol=1e-6)
        np.testing.assert_allclose(variance[order], [0, 16 / 3, 22 / 3], rtol=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("ties", [0.0, 0.5])
@pytest.mark.parametrize("n", [10, 20, 50, 200, 1000])
def test_default_intervals_hold_what_they_promise(n, ties):
    """Eight models; 150 boards make a standard error of .007 or so. Undefeated models have no interval."""
    votes, strengths, held = [], [], []
    for seed in range(150):
        rng = np.random.default_rng([n, seed])
        strengths.append(rng.permutation(np.linspace(-1, 1, 8)))
        votes.append(board_of(rng, strengths[-1], n, ties).assign(board=seed))
    boards = jaxeval.bootstrap(pd.concat(votes), 300, by="board", max_slices=150, progress=False)
    for theta, board in zip(strengths, boards.values(), strict=True):
        truth = 1000 + ELO * pd.Series(theta - theta.mean(), [f"m{k}" for k in range(8)])
        rated = np.isfinite(board.fit.ratings)
        ends = board.interval()[rated]
        truth = truth[ends.index] - truth[ends.index].mean() + 1000
        held += ((ends["lower"] <= truth) & (truth <= ends["upper"])).tolist()
    assert 0.94 - 0.012 < np.mean(held) < (0.985 if n == 10 else 0.975) + 0.012
