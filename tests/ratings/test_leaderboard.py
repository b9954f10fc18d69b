"""The table: its columns, order, ranks and flags, against their definitions."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
import twins
from scipy.stats import norm

from jaxeval import Battles, DataError, bootstrap, fit_bradley_terry, leaderboard, simulate_votes
from jaxeval.ratings.leaderboard import plain_leaderboard
from jaxeval.show.boards import leaderboard_answer
from jaxeval.show.files import table_bytes
from jaxeval.show.screens import columns_of
from jaxeval.show.shown import part_of

pytestmark = pytest.mark.usefixtures("all_on_the_host")

M = 11  # with the five of `fitted` 16, which are as many as programs for small boards have room for
COLUMNS = [
    "model", "rating", "lower", "upper", "variance", "vote_count", "rank", "rank_best", "rank_worst", "tier",
    "component", "standing", "preliminary", "degenerate_share",
]  # fmt: skip


@pytest.fixture(scope="module")
def votes():
    """6,000 votes between 11 models, two of them with under 300."""
    votes = simulate_votes(6000, M, seed=8, popularity_exponent=1.2)
    return votes.assign(half=np.where(np.arange(6000) % 2, "odd", "even"))


@pytest.fixture(scope="module")
def board(votes):
    return bootstrap(votes, 400)


@pytest.fixture(scope="module")
def table(board):
    return leaderboard(board, rank_at_most=[1, 3])


@pytest.fixture(scope="module")
def odd_votes(votes):
    """With an undefeated model, a winless one, and two that met nobody else."""
    rows = votes[["model_a", "model_b", "winner"]].astype(str)
    extra = pd.DataFrame(
        {
            "model_a": ["unbeaten"] * 20 + ["hopeless"] * 20 + ["island"] * 4,
            "model_b": ["model-01"] * 40 + ["islet"] * 4,
            "winner": ["model_a"] * 20 + ["model_b"] * 20 + ["tie"] * 3 + ["model_a"],
        }
    )
    return pd.concat([rows, extra], ignore_index=True)


@pytest.fixture(scope="module")
def odd_table(odd_votes):
    return leaderboard(odd_votes, n_resamples=100)


@pytest.fixture(scope="module")
def fitted(odd_votes):
    """With a thin model that may be first or last: no finite rating in many resamples."""
    thin = pd.DataFrame({"model_a": "thin", "model_b": ["model-01"] * 3 + ["model-02"] * 2, "winner": "model_a"})
    thin.loc[4, "winner"] = "model_b"
    return bootstrap(pd.concat([odd_votes, thin], ignore_index=True), 200)


@pytest.fixture(scope="module")
def everyone(fitted):
    return leaderboard(fitted, rank_at_most=1, min_battles=0, interval="percentile")


@pytest.fixture(scope="module")
def few(fitted):
    return leaderboard(fitted, rank_at_most=1, min_battles=21, interval="percentile")


class TestColumns:
    def test_names_and_order(self, table):
        at = COLUMNS.index("component")
        assert table.columns.tolist() == [*COLUMNS[:at], "p_rank_1", "p_rank_3", *COLUMNS[at:]]
        assert len(table) == M
        assert table.index.tolist() == list(range(M))

    def test_what_the_arena_publishes_comes_first(self, votes):
        table = leaderboard(votes, n_resamples=20, by="half")
        arena = ["model", "rating", "lower", "upper", "variance", "vote_count", "rank", "category"]
        assert table.columns[:8].tolist() == arena

    def test_screens_and_files_are_the_same_without_pandas(self, board, table, odd_votes, odd_table):
        boards = [(board, table, {"rank_at_most": [1, 3]}), (bootstrap(odd_votes, 100), odd_table, {})]
        for resampled, usual, options in boards:
            plain = plain_leaderboard(resampled, **options)
            columns = [
                list(map(columns_of, (*answer.grids, *map(part_of, answer.tables, answer.tables.values()))))
                for answer in map(leaderboard_answer, (plain, usual))
            ]
            assert columns[0] == columns[1]
            for kind in ("csv", "json", "md", "html", "parquet"):
                assert table_bytes(plain, kind) == table_bytes(usual, kind)

    def test_best_first(self, table):
        assert table.rating.is_monotonic_decreasing
        assert table["rank"].tolist() == list(range(1, M + 1))
        assert table["rank"].dtype == "Int64"

    def test_the_rating_is_the_full_fit(self, votes, board, table):
        """Never the median of the draws."""
        fit = fit_bradley_terry(votes)
        by_model = table.set_index("model")
        np.testing.assert_array_equal(by_model.rating[fit.ratings.index], fit.ratings)
        median = pd.Series(np.median(board.draws, axis=0), board.models)
        assert (by_model.rating - median).abs().max() > 0.1

    def test_intervals_variance_and_votes(self, board, table):
        by_model = table.set_index("model").loc[board.models]
        interval = board.interval(0.95)
        np.testing.assert_array_equal(by_model.lower, interval.lower)
        np.testing.assert_array_equal(by_model.upper, interval.upper)
        np.testing.assert_allclose(by_model.variance, board.draws.var(0, ddof=1), rtol=1e-12)
        np.testing.assert_array_equal(by_model.vote_count, board.fit.n_battles)
        assert by_model.vote_count.sum() == 12_000

    @pytest.mark.parametrize("kind", ["percentile", "basic"])
    def test_level_and_kind(self, board, kind):
        by_model = leaderboard(board, level=0.8, interval=kind).set_index("model").loc[board.models]
        np.testing.assert_array_equal(by_model.lower, board.interval(0.8, kind).lower)
        np.testing.assert_array_equal(by_model.upper, board.interval(0.8, kind).upper)

    def test_rank_spread_from_its_definition(self, board, table):
        expected = pd.DataFrame(twins.rank_sets(board.draws, board.fit.ratings.to_numpy(), 0.95, M), board.models)
        found = table.set_index("model").loc[board.models]
        np.testing.assert_array_equal(found[["rank_best", "rank_worst"]].astype(int), expected)
        assert (table.rank_best <= table["rank"]).all()
        assert (table["rank"] <= table.rank_worst).all()
        assert (table.rank_best < table.rank_worst).any()
        assert (table.rank_best > 1).any()

    def test_rank_spreads_at_once(self, board, table):
        sets = board.rank_sets(0.95, simultaneous=True)
        wide = leaderboard(board, simultaneous_ranks=True)
        assert wide.rank_best.tolist() == sets.rank_best[table.model].tolist()
        assert wide.rank_worst.tolist() == sets.rank_worst[table.model].tolist()
        assert (wide.rank_best <= table.rank_best).all()
        assert (wide.rank_worst >= table.rank_worst).all()
        assert (wide.rank_worst - wide.rank_best).sum() > (table.rank_worst - table.rank_best).sum()
        assert wide.tier.equals(table.tier)
        assert wide.attrs["settings"]["simultaneous_ranks"] is True
        assert table.attrs["settings"]["simultaneous_ranks"] is False

    @pytest.mark.parametrize("gauge", ["votes", (f"model-{M}", 1234.5)])
    def test_what_depends_on_the_gauge(self, votes, table, gauge):
        """The ratings, their bounds and their variance; nothing else, to the last digit. The second anchor is thin."""
        ratings = ["rating", "lower", "upper", "variance"]
        other = leaderboard(votes, n_resamples=400, rank_at_most=[1, 3], gauge=gauge)
        pd.testing.assert_frame_equal(other.drop(columns=ratings), table.drop(columns=ratings), check_exact=True)
        for column in ratings:
            assert (other[column] != table[column]).all(), column

    def test_equal_models_share_a_rank_under_every_gauge(self):
        """Twins with the same results: their ratings are equal up to rounding, in every gauge otherwise."""
        rng = np.random.default_rng(0)
        for _ in range(2):
            outcomes = [(m, w) for m in ["one", "two", "three"] for w in rng.choice(["model_a", "model_b"], 9)]
            rows = [(twin, m, w) for m, w in outcomes for twin in ("left", "right")]
            votes = pd.DataFrame(rows, columns=["model_a", "model_b", "winner"])
            tables = [leaderboard(votes, n_resamples=5, gauge=g) for g in ("mean", ("left", 333.3), ("three", 0.1))]
            for table in tables:
                assert table.model.tolist() == tables[0].model.tolist()
                assert table["rank"].tolist() == tables[0]["rank"].tolist()
            ranks = tables[0].set_index("model")["rank"]
            assert ranks["left"] == ranks["right"]

    def test_shares_of_ranks(self, board, table):
        higher = board.draws[:, :, None] < board.draws[:, None, :]
        rank = pd.DataFrame(1 + higher.sum(2), columns=board.models)
        for k in (1, 3):
            expected = (rank <= k).mean()[table.model]
            np.testing.assert_allclose(table[f"p_rank_{k}"], expected, rtol=0, atol=1e-12)
            assert table[f"p_rank_{k}"].sum() == pytest.approx(k)
        assert 0 < table.p_rank_3.iloc[3] < 1

    def test_one_share_may_be_a_number(self, board, table):
        one = leaderboard(board, rank_at_most=3)
        np.testing.assert_array_equal(one.p_rank_3, table.p_rank_3)
        assert "p_rank_1" not in one

    def test_tiers(self, board, table):
        assert table.tier.tolist() == board.tiers(0.95)[table.model].tolist()
        assert table.tier.iloc[0] == 1
        assert table.tier.is_monotonic_increasing
        assert 1 < table.tier.max() < M
        assert set(table.tier) == set(range(1, table.tier.max() + 1))

    def test_preliminary_is_under_300_votes(self, votes):
        counts = pd.concat([votes.model_a.astype(str), votes.model_b.astype(str)]).value_counts()
        rare = counts.index[counts >= 300][-1]
        others = votes[(votes.model_a != rare) & (votes.model_b != rare)]
        with_rare = votes.drop(others.index)
        for n, expected in ((299, True), (300, False)):
            table = leaderboard(pd.concat([others, with_rare.iloc[:n]]), n_resamples=5).set_index("model")
            assert table.vote_count[rare] == n
            assert table.preliminary[rare] == expected
            assert table.preliminary.drop(rare).equals(table.vote_count.drop(rare) < 300)

    def test_a_healthy_board_has_no_flags(self, table):
        assert (table.component == 1).all()
        assert (table.standing == "").all()
        assert table.attrs["warnings"] == []


class TestUnrated:
    def test_they_come_last_without_a_rank(self, odd_table):
        assert odd_table.model.tolist()[-4:] == ["unbeaten", "island", "islet", "hopeless"]
        last = odd_table.iloc[-4:]
        for column in ("rank", "rank_best", "rank_worst", "tier", "variance"):
            assert last[column].isna().all(), column
            assert odd_table[column].iloc[:-4].notna().all(), column
        assert last["lower"].iloc[0] > 1000  # the penalised fit knows that it is no weak one
        assert last["upper"].iloc[-1] < last["lower"].iloc[0]
        assert [last["upper"].iloc[0], last["lower"].iloc[-1]] == [np.inf, -np.inf]
        assert last[["lower", "upper"]].iloc[1:3].isna().all(axis=None)

    def test_their_rating_says_why(self, odd_table):
        last = odd_table.iloc[-4:].set_index("model")
        assert last.rating["unbeaten"] == np.inf
        assert last.rating["hopeless"] == -np.inf
        assert last.rating[["island", "islet"]].isna().all()
        assert last.standing.tolist() == ["undefeated", "not comparable", "not comparable", "winless"]
        assert last.component.tolist() == [1, 2, 2, 1]
        assert last.vote_count.tolist() == [20, 4, 4, 20]
        assert last.preliminary.all()
        assert (last.degenerate_share == 1).all()

    def test_ranks_count_rated_models(self, odd_table):
        assert odd_table["rank"].iloc[:M].tolist() == list(range(1, M + 1))

    def test_a_ridge_ranks_them(self, odd_votes):
        table = leaderboard(odd_votes, n_resamples=100, ridge=0.1)
        assert table["rank"].tolist() == list(range(1, M + 5))
        assert np.isfinite(table[["rating", "lower", "upper"]]).all(axis=None)
        assert any("ridge of 0.1 alone" in w for w in table.attrs["warnings"])
        assert table.attrs["settings"]["ridge"] == 0.1


class TestTooFewBattles:
    """Models with fewer battles than ``min_battles``."""

    def test_they_stand_at_the_end_without_ranks(self, few):
        assert few.model.tolist()[M:] == ["thin", "unbeaten", "island", "islet", "hopeless"]
        last = few.iloc[M:]
        assert (last.standing == "too few battles").all()
        assert (last.vote_count < 21).all()
        assert last[["rank", "rank_best", "rank_worst", "tier", "p_rank_1"]].isna().all(axis=None)
        assert few["rank"].iloc[:M].tolist() == list(range(1, M + 1))
        assert (few.standing.iloc[:M] == "").all()

    def test_they_stand_below_unrated_models_with_more(self, fitted):
        table = leaderboard(fitted, min_battles=5)
        assert table.model.tolist()[M + 1 :] == ["unbeaten", "hopeless", "island", "islet"]
        assert table.standing.tolist()[M + 1 :] == ["undefeated", "winless", "too few battles", "too few battles"]

    def test_they_are_rated_with_the_others(self, everyone, few):
        ratings = ["rating", "lower", "upper", "variance", "vote_count", "degenerate_share"]
        by_model = few.set_index("model").loc[everyone.model]
        pd.testing.assert_frame_equal(by_model[ratings].reset_index(drop=True), everyone[ratings], check_exact=True)

    def test_the_others_are_compared_among_themselves(self, fitted, few):
        ranked = few.model.iloc[:M].tolist()
        places = fitted.models.get_indexer(ranked)
        sets = twins.rank_sets(fitted.draws[:, places], fitted.fit.ratings[ranked].to_numpy(), 0.95, M)
        found = few[["rank_best", "rank_worst"]].iloc[:M].astype(int)
        assert [tuple(row) for row in found.to_numpy().tolist()] == sets
        assert few.tier.iloc[:M].tolist() == fitted.tiers(min_battles=21)[ranked].tolist()
        assert few.p_rank_1.iloc[:M].sum() == pytest.approx(1)

    def test_a_model_with_an_infinite_bound_is_compared_by_the_penalised_fit(self, fitted, everyone, few):
        """By hand: a part of the level for each of its differences, and the rest for those of draws."""
        both = everyone.set_index("model").join(few.set_index("model").add_suffix("_few"))
        assert np.isinf(both.upper["thin"])
        others = both[both.rank_few.notna()]
        thin, places = fitted.models.get_loc("thin"), fitted.models.get_indexer(others.index)
        difference, error = (x[0, places] for x in fitted.fit.penalised_differences(np.array([thin])))
        apart = np.abs(difference) > norm.ppf(1 - 0.025 / M) * error
        assert 0 < apart.sum() < M
        assert both.loc["thin", "rank_best"] == 1 + (apart & (difference < 0)).sum()
        assert both.loc["thin", "rank_worst"] == M + 1 - (apart & (difference > 0)).sum()
        sets = twins.rank_sets(
            fitted.draws[:, places], fitted.fit.ratings.iloc[places].to_numpy(), 1 - 0.05 * (M - 1) / M, M
        )
        best = [own for own, _ in sets] + (apart & (difference > 0))
        worst = [own for _, own in sets] + ~(apart & (difference < 0))
        assert others.rank_best.tolist() == best.tolist()
        assert others.rank_worst.tolist() == worst.tolist()
        assert others.tier.equals(others.tier_few)

    def test_warnings(self, everyone, few):
        text = " ".join(everyone.attrs["warnings"])
        assert "1 model has no finite rating in more than 1% of the resamples, too often to be compared by" in text
        assert "by these: thin. Their rank spread is that of a penalised fit, and they have no tier" in text
        text = " ".join(few.attrs["warnings"])
        # Of the five, only one has a rating.
        assert "5 models have fewer than 21 battles: at the end of the table without a rank: hopeless" in text
        assert "compared by" not in text

    def test_settings(self, everyone, few):
        assert everyone.attrs["settings"]["min_battles"] == 0
        assert few.attrs["settings"]["min_battles"] == 21

    def test_nobody_is_left(self, fitted):
        message = r"no model has 9,000 battles or more, so that no model takes a rank. model-0\d has the most, [\d,]+"
        with pytest.raises(DataError, match=message):
            leaderboard(fitted, min_battles=9000)

    def test_a_slice_in_which_nobody_is_left(self, votes):
        sliced = votes.assign(half=np.where(np.arange(6000) < 5990, "most", "rest"))
        table = leaderboard(sliced, by="half", n_resamples=50, min_battles=30)
        rest = table[table.category == "rest"]
        assert rest["rank"].isna().all()
        assert (rest.standing == "too few battles").all()
        assert table.loc[table.category == "most", "rank"].notna().all()
        assert any(w.startswith(f"half = rest: {len(rest)} models have fewer than") for w in table.attrs["warnings"])

    @pytest.mark.parametrize(("value", "error"), [(-1, ValueError), (2.5, TypeError), (True, TypeError)])
    def test_bad_numbers(self, board, value, error):
        with pytest.raises(error, match="min_battles must be"):
            leaderboard(board, min_battles=value)


class TestSlices:
    def test_a_board_for_each_category(self, votes):
        table = leaderboard(votes, n_resamples=50, by="half")
        assert table.category.tolist() == ["even"] * M + ["odd"] * M
        for half, part in table.groupby("category"):
            assert part.rating.is_monotonic_decreasing
            assert part["rank"].tolist() == list(range(1, M + 1))
            fit = fit_bradley_terry(votes[votes.half == half])
            np.testing.assert_allclose(part.set_index("model").rating[fit.ratings.index], fit.ratings, atol=1e-8)

    def test_several_columns_make_one_category(self, votes):
        table = leaderboard(votes.assign(part=1), n_resamples=5, by=["half", "part"])
        assert table.category.unique().tolist() == ["even / 1", "odd / 1"]

    def test_values_that_hold_the_separator(self, votes):
        odd = votes.assign(p=np.where(np.arange(len(votes)) % 2, "x / y", "x"), q="z")
        odd.loc[odd.p == "x", "q"] = "y / z"
        names = leaderboard(odd, n_resamples=20, by=["p", "q"]).category.unique().tolist()
        assert names == ["('x', 'y / z')", "('x / y', 'z')"]

    def test_warnings_carry_the_category(self, votes):
        rows = votes[["model_a", "model_b", "winner", "half"]].astype(str)
        rows = rows[(rows.model_a != "model-05") & (rows.model_b != "model-05")]
        extra = pd.DataFrame({"model_a": ["new"] * 9, "model_b": "model-01", "winner": "model_a", "half": "odd"})
        table = leaderboard(pd.concat([rows, extra]), n_resamples=5, by="half")
        assert any(w.startswith("half = odd: new: never lost a point") for w in table.attrs["warnings"])
        assert not any(w.startswith("half = even: new") for w in table.attrs["warnings"])

    def test_names_that_somebody_may_have_meant_as_one(self, votes):
        renamed = votes.assign(model_a=votes["model_a"].astype(str).replace("model-01", "Model-01 "))
        but_for = "blanks, case, kinds of dashes or invisible characters"
        warning = f"names that differ only in {but_for} are taken as different models: 'Model-01 ' and 'model-01'"
        assert warning in leaderboard(renamed, n_resamples=5).attrs["warnings"]

    def test_no_such_column(self, votes):
        with pytest.raises(DataError, match="no column 'lang'"):
            leaderboard(votes, by="lang")


class TestInputs:
    def test_all_kinds(self, votes, board, table):
        battles = Battles.from_pandas(votes)
        for given in (votes, battles, pl.from_pandas(votes)):
            pd.testing.assert_frame_equal(leaderboard(given, n_resamples=400, rank_at_most=[1, 3]), table)
        np.testing.assert_array_equal(leaderboard(board).rating, table.rating)

    def test_bootstraps_of_slices(self, votes):
        boards = bootstrap(votes, 50, by="half")
        given = leaderboard(boards)
        pd.testing.assert_frame_equal(given, leaderboard(votes, n_resamples=50, by="half"))

    def test_each_board_has_its_own_kind_of_interval(self, votes):
        boards = {kind: bootstrap(votes, 50, interval=kind) for kind in ("wald", "percentile")}
        for kind, table in leaderboard(boards).groupby("category"):
            np.testing.assert_array_equal(table["lower"], leaderboard(boards[kind])["lower"])

    def test_no_slices(self):
        with pytest.raises(ValueError, match="no board"):
            leaderboard({})

    def test_options_reach_the_bootstrap(self, votes, monkeypatch):
        passed = {}

        def spy(battles, n_resamples, seed, scheme, **options):
            passed.update(n_resamples=n_resamples, seed=seed, scheme=scheme, **options)
            return bootstrap(battles, 5)

        monkeypatch.setattr("jaxeval.ratings.leaderboard.bootstrap", spy)
        options = {"n_resamples": 50, "seed": 5, "scheme": "cluster", "cluster": "voter", "by": None, "ridge": 0.1}
        options |= {"gauge": ("model-02", 1200.0), "base": 1500.0, "reweight": True, "progress": False}
        leaderboard(votes, **options)
        assert {name: passed[name] for name in options} == options

    def test_an_anchor_that_a_slice_lacks(self, votes):
        only = votes.assign(part=np.where((votes.model_a == "model-1") | (votes.model_b == "model-1"), "x", "y"))
        with pytest.raises(ValueError, match="part = 'y': the anchor model 'model-1' is not among"):
            leaderboard(only, by="part", gauge=("model-1", 1000.0), n_resamples=5)


class TestAttributes:
    def test_report_and_settings(self, table):
        assert table.attrs["report"].startswith("6,000 rows: 6,000 battles between 11 models")
        settings = table.attrs["settings"]
        assert settings["n_resamples"] == 400
        assert settings["seed"] == 0
        assert settings["scheme"] == "multinomial"
        assert settings["level"] == 0.95
        assert settings["interval"] == "auto"
        assert settings["n_penalised"] == 0
        assert settings["gauge"] == "mean rating 1000"
        assert settings["dtype"] == "float64"

    @pytest.mark.parametrize(("n_resamples", "level", "enough"), [(39, 0.95, 40), (40, 0.95, None), (150, 0.99, 200)])
    def test_too_few_resamples_for_the_level(self, votes, n_resamples, level, enough):
        warnings = leaderboard(votes, n_resamples=n_resamples, level=level).attrs["warnings"]
        if enough is None:
            assert warnings == []
        else:
            (warning,) = warnings
            assert warning.startswith(f"{n_resamples} resamples are too few for {100 * level:g}% intervals")
            assert warning.endswith(f"take {enough} or more")

    def test_they_are_json(self, votes, odd_table):
        assert json.loads(json.dumps(odd_table.attrs)) == odd_table.attrs
        numpy_numbers = leaderboard(votes, n_resamples=np.int64(5), seed=np.int64(3), ridge=np.float64(0.5))
        assert json.loads(json.dumps(numpy_numbers.attrs))["settings"]["seed"] == 3

    def test_they_survive_a_file(self, odd_table, tmp_path):
        odd_table.to_parquet(tmp_path / "board.parquet")
        again = pd.read_parquet(tmp_path / "board.parquet")
        assert again.attrs == odd_table.attrs
        pd.testing.assert_frame_equal(pd.DataFrame(odd_table), again, check_dtype=False)


def test_options_of_resamples_that_are_there():
    """They would be ignored."""
    votes = simulate_votes(300, 3)
    for result in (bootstrap(votes, 20), {"all": bootstrap(votes, 20)}):
        with pytest.raises(TypeError, match=r"takes no gauge, n_resamples: pass these options to bootstrap"):
            leaderboard(result, gauge="votes", n_resamples=5)


@pytest.mark.slow
def test_rank_spread_of_real_votes(data):
    """52 models of the Arena; by intervals, an anchor with few votes widens the mean spread from 10.4 to 28.4 ranks."""
    votes = pd.read_parquet(data / "arena140k_votes.parquet", columns=["model_a", "model_b", "winner"]).astype(str)
    tables = {}
    for gauge in ("mean", ("gemini-2.0-flash-thinking-exp-01-21", 1000.0)):
        tables[gauge] = leaderboard(votes, n_resamples=1000, gauge=gauge, min_battles=300)
    one, other = tables.values()
    for column in ("model", "rank", "rank_best", "rank_worst", "tier"):
        assert one[column].equals(other[column]), column
    assert (one.rank_worst - one.rank_best + 1).mean() == pytest.approx(9.9, abs=0.3)
