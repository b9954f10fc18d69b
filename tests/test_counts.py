"""Equal battles in one row or in many: every result is the same, bit for bit."""

import numpy as np
import pandas as pd
import pytest
from command_line import said

import jaxeval
from jaxeval import Battles, DataError

GROUPS = ["language", "voter", "length", "turns"]


@pytest.fixture(scope="module")
def votes():
    rng = np.random.default_rng(0)
    frame = jaxeval.simulate_votes(4000, 7, seed=1, popularity_exponent=0.2).astype({"winner": str})
    return frame.assign(
        voter=rng.integers(60, size=len(frame)),
        length=rng.choice([-0.1, 0.3, 0.7], len(frame)),
        turns=rng.integers(1, 3, len(frame)),
        w=rng.choice([0.3, 1.0, 0.0], len(frame), p=[0.4, 0.5, 0.1]),
        soft=rng.choice([0.0, 0.1, 0.7, 1.0], len(frame)),
    )


def merged(frame):
    """Equal rows as one with a column of their number, in an order of its own."""
    counts = frame.groupby(list(frame.columns), observed=True).size().rename("n").reset_index()
    return counts.sample(frac=1, random_state=0)


def both(frame, **options):
    """The battles of the rows, and those of the merged rows."""
    table = merged(frame)
    assert len(table) < len(frame)
    return Battles.from_pandas(frame, **options), Battles.from_pandas(table, count="n", **options)


def assert_same_bootstrap(one, other):
    np.testing.assert_array_equal(one.draws, other.draws)
    np.testing.assert_array_equal(one.fit.ratings, other.fit.ratings)
    np.testing.assert_array_equal(one.fit.standard_errors, other.fit.standard_errors)
    assert one.warnings == other.warnings


class TestReading:
    def test_report(self, votes):
        rows, counted = both(votes[["model_a", "model_b", "winner", "w"]], weight="w")
        assert counted.n_rows < rows.n_rows == rows.n_battles == counted.n_battles
        for name in ("n_battles", "n_models", "n_ties", "n_both_bad", "n_self_battles", "n_zero_weight"):
            assert getattr(rows.report, name) == getattr(counted.report, name)
        assert rows.report.n_zero_weight > 0
        assert counted.report.n_rows == len(merged(votes[["model_a", "model_b", "winner", "w"]]))

    def test_ones_are_no_counts(self, votes):
        battles = Battles.from_pandas(votes.assign(n=1), count="n")
        assert battles.count is None
        assert "n" not in battles.columns

    def test_to_pandas_and_back(self, votes):
        _, counted = both(votes[["model_a", "model_b", "winner", "language"]])
        frame = counted.to_pandas()
        assert frame["count"].sum() == 4000
        again = Battles.from_pandas(frame, count="count")
        np.testing.assert_array_equal(again.cells.count, counted.cells.count)
        assert again.report.n_ties == counted.report.n_ties

    def test_rows_that_count_no_battle(self):
        frame = pd.DataFrame(
            {"model_a": ["a", "b", "z"], "model_b": ["b", "a", "a"], "winner": ["model_a", "model_a", "tie"]}
        )
        battles = Battles.from_pandas(frame.assign(n=[3, 2, 0]), count="n")
        assert battles.n_battles == 5
        assert str(battles.report).splitlines() == [
            "3 rows: 5 battles between 2 models, 0 of them ties",
            "1 row that counts no battle left out",
            "1 model without a usable battle left out: z",
        ]
        with pytest.raises(DataError, match=r"no battle is left of 3 rows.*3 rows count no battle"):
            Battles.from_pandas(frame.assign(n=0), count="n")

    @pytest.mark.parametrize(("counts", "message"), [
        ([1.5, 2, 1], r"'n': counts must come as whole numbers >= 0; 1 value is wrong: 1.5 .first in row 0: 1.5"),
        ([1, -2, -3], r"2 values are wrong, from -3 to -2 \(first in row 1: -2"),
        ([1, np.nan, 1], r"'n' has 1 missing value \(first in row 1"),
        ([1, np.inf, 1], "1 value is wrong: inf"),
        (["1", "x", "1"], "'n' is not numeric"),
    ])  # fmt: skip
    def test_counts_that_are_none(self, counts, message):
        frame = pd.DataFrame({"model_a": ["a", "b", "a"], "model_b": ["b", "a", "b"], "winner": "tie", "n": counts})
        with pytest.raises(DataError, match=message):
            Battles.from_pandas(frame, count="n")

    def test_errors_of_groups_count_battles(self):
        frame = pd.DataFrame({"model_a": ["a", "b"], "model_b": ["b", "a"], "winner": "tie", "lang": ["x", None]})
        with pytest.raises(DataError, match="'lang' has 1 missing value"):
            Battles.from_pandas(frame.assign(n=[2, 3]), count="n").codes("lang")


class TestTablesOfCounts:
    TABLE = pd.DataFrame(
        {
            "model_a": ["a", "a", "b", "c"],
            "model_b": ["b", "c", "c", "a"],
            "language": ["x", "y", "x", "y"],
            "wins_a": [3, 0, 2, 0],
            "ties": [1, 0, 0, 0],
            "wins_b": [2, 4, 2, 0],
        }
    )

    def votes(self):
        """The votes that the table counts."""
        rows = []
        for a, b, language, *counts in self.TABLE.itertuples(index=False):
            for winner, n in zip(("model_a", "tie", "model_b"), counts, strict=True):
                rows += [(a, b, winner, language)] * n
        return Battles.from_pandas(pd.DataFrame(rows, columns=["model_a", "model_b", "winner", "language"]))

    def test_it_is_the_votes(self):
        counted, votes = Battles.from_pandas(self.TABLE), self.votes()
        assert counted.n_battles == votes.n_battles == 14
        for name in ("first", "second", "pair", "target", "count"):
            np.testing.assert_array_equal(getattr(counted.cells, name), getattr(votes.cells, name))
        for one, other in zip(*(b.rows_by_group(b.codes("language")[0], 2) for b in (counted, votes)), strict=True):
            np.testing.assert_array_equal(counted.compress(one)[0].count, votes.compress(other)[0].count)
        assert counted.report.n_empty_rows == 1
        assert counted.report.n_rows == 4
        assert counted.report.n_ties == 1

    def test_its_columns_are_used_up(self):
        assert Battles.from_pandas(self.TABLE).columns.columns.tolist() == ["language"]

    def test_weights_and_self_battles(self):
        table = self.TABLE.assign(w=[2.0, 1.0, 0.0, 1.0], model_b=["b", "c", "c", "c"], model_a=["a", "b", "b", "c"])
        battles = Battles.from_pandas(table.assign(wins_a=[3, 1, 2, 7]), weight="w")
        assert battles.report.n_self_battles == 7
        assert battles.report.n_zero_weight == 4
        assert battles.n_battles == 11
        assert battles.to_pandas()["weight"].tolist() == [2.0, 2.0, 2.0, 1.0, 1.0]

    def test_a_result_comes_first(self):
        battles = Battles.from_pandas(self.TABLE.assign(winner="tie"))
        assert battles.n_battles == 4
        assert battles.columns.columns.tolist() == ["language", "wins_a", "ties", "wins_b"]

    def test_counts_of_counts(self):
        with pytest.raises(ValueError, match="are counts already: leave out count="):
            Battles.from_pandas(self.TABLE.assign(n=2), count="n")

    @pytest.mark.parametrize("column", ["wins_a", "ties", "wins_b"])
    def test_bad_counts(self, column):
        with pytest.raises(DataError, match=f"column {column!r}: counts must come as whole numbers"):
            Battles.from_pandas(self.TABLE.assign(**{column: [1, 2, 0.5, 1]}))
        with pytest.raises(DataError, match=f"column {column!r} has 1 missing value"):
            Battles.from_pandas(self.TABLE.assign(**{column: [1, 2, None, 1]}))
        if column != "ties":  # which a table may lack, as the report says
            with pytest.raises(DataError, match=r"no result column: .*the counts wins_a, ties, wins_b"):
                Battles.from_pandas(self.TABLE.drop(columns=column))


class TestEveryEstimator:
    OPTIONS = {
        "votes": {"winner": "winner"},
        "weighted": {"winner": "winner", "weight": "w"},
        "soft": {"target": "soft"},
    }

    @pytest.fixture(scope="class")
    @classmethod
    def pairs(cls, votes):
        return {
            kind: both(votes[["model_a", "model_b", *options.values(), *GROUPS]], **options)
            for kind, options in cls.OPTIONS.items()
        }

    @pytest.mark.parametrize("kind", list(OPTIONS))
    def test_fit(self, pairs, kind):
        one, other = (jaxeval.fit_bradley_terry(b, gauge="votes") for b in pairs[kind])
        pd.testing.assert_series_equal(one.ratings, other.ratings, check_exact=True)
        pd.testing.assert_series_equal(one.standard_errors, other.standard_errors, check_exact=True)
        pd.testing.assert_series_equal(one.n_battles, other.n_battles)

    @pytest.mark.parametrize(
        ("kind", "scheme"),
        [("votes", "multinomial"), ("soft", "multinomial"), ("votes", "poisson"), ("weighted", "bayesian")],
    )
    def test_bootstrap(self, pairs, kind, scheme):
        assert_same_bootstrap(*(jaxeval.bootstrap(b, 16, seed=3, scheme=scheme) for b in pairs[kind]))

    @pytest.mark.slow
    def test_clusters(self, pairs):
        one, other = (jaxeval.bootstrap(b, 16, cluster="voter") for b in pairs["soft"])
        assert_same_bootstrap(one, other)
        assert one.settings == other.settings

    @pytest.mark.slow
    def test_slices_of_clusters(self, pairs):
        one, other = (jaxeval.bootstrap(b, 8, by=["language", "turns"], cluster="voter") for b in pairs["weighted"])
        assert list(one) == list(other)
        for group in one:
            assert_same_bootstrap(one[group], other[group])

    @pytest.mark.slow
    def test_style_control(self, pairs):
        features = ["length", jaxeval.position_advantage()]
        one, other = (jaxeval.bootstrap(b, 8, features=features, cluster="voter") for b in pairs["weighted"])
        assert_same_bootstrap(one, other)
        pd.testing.assert_frame_equal(one.coefficients(), other.coefficients(), check_exact=True)

    def test_leaderboard(self, pairs):
        one, other = (jaxeval.leaderboard(b, n_resamples=16, rank_at_most=2) for b in pairs["votes"])
        pd.testing.assert_frame_equal(one, other, check_exact=True)


@pytest.mark.slow
def test_tie_models(votes):
    frame = votes[["model_a", "model_b", "winner", "length"]]
    pair = both(frame)
    assert_same_bootstrap(*(jaxeval.bootstrap(b, 8, features=["length"], ties="davidson") for b in pair))
    one, other = (jaxeval.compare_tie_models(b, features=["length"]) for b in pair)
    pd.testing.assert_frame_equal(one, other, check_exact=True)


@pytest.mark.slow
def test_references(votes):
    rows = votes[["model_a", "model_b", "winner", "voter"]].assign(item=np.arange(len(votes)) % 12)
    for options in ({"cluster": "voter"}, {"item": "item"}):
        one, other = (
            jaxeval.reference_study(b, budgets=[5, 10], n_repeats=3, n_resamples=4, n_tiers=2, **options)
            for b in both(rows)
        )
        for name in ("by_reference", "by_delta", "by_test_tier", "by_tier", "by_budget"):
            pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name), check_exact=True)


#: A hundred million battles in a few rows.
MANY = pd.DataFrame(
    {
        "model_a": ["a", "b", "c"],
        "model_b": ["b", "c", "a"],
        "wins_a": [20_000_000, 20_000_000, 10_000_000],
        "ties": [5_000_000, 5_000_000, 5_000_000],
        "wins_b": [10_000_000, 10_000_000, 15_000_000],
    }
)


def test_a_hundred_million_battles_in_a_few_rows():
    """They are rated as a million: that changes the standard errors alone."""
    counts = ["wins_a", "ties", "wins_b"]
    whole = jaxeval.fit_bradley_terry(MANY)
    part = jaxeval.fit_bradley_terry(MANY.assign(**(MANY[counts] // 100)))
    assert whole.report.n_battles == 100_000_000
    np.testing.assert_allclose(whole.ratings, part.ratings, atol=1e-6)
    np.testing.assert_allclose(10 * whole.standard_errors, part.standard_errors, rtol=1e-6)


#: A quadrillion, of which no table of Poisson draws could be made; one group of them has few.
QUADRILLION = pd.concat(
    [MANY.assign(group="x", **(MANY[["wins_a", "ties", "wins_b"]] * 10_000_000)), MANY.iloc[:, :2].assign(
        group="y", wins_a=[20, 30, 9], ties=[3, 1, 5], wins_b=[11, 8, 14]
    )]
)  # fmt: skip


def test_a_quadrillion_battles_are_drawn_by_rows(tmp_path):
    """In the command, from a checkpoint and in any chunks; and other groups are drawn as they are alone."""
    QUADRILLION.to_csv(tmp_path / "counts.csv", index=False)
    whole = jaxeval.bootstrap(QUADRILLION, 200, by="group")
    for _ in range(2):
        options = ["--resamples", 200, "--checkpoint", tmp_path / "kept", "--out", tmp_path / "board.csv"]
        said("leaderboard", tmp_path / "counts.csv", "--by", "group", *options)
        table = pd.read_csv(tmp_path / "board.csv").set_index(["category", "model"])
        for group, board in whole.items():
            expected = jaxeval.leaderboard(board).set_index("model")["upper"]
            np.testing.assert_array_equal(table.loc[group, "upper"][expected.index], expected)
    alone = jaxeval.bootstrap(QUADRILLION[QUADRILLION.group == "y"], 200, by="group")
    np.testing.assert_array_equal(whole["y"].draws, alone["y"].draws)
    part = jaxeval.bootstrap(QUADRILLION[QUADRILLION.group == "x"], 20, by="group", chunk_size=7)
    np.testing.assert_allclose(part["x"].draws, whole["x"].draws[:20], rtol=0, atol=1e-9)
    error = 1 / np.sqrt(2 * 200)  # of a standard deviation, relative
    np.testing.assert_allclose(whole["x"].standard_errors, whole["x"].fit.standard_errors, rtol=4 * error)


def test_more_battles_than_can_be_counted():
    table = pd.DataFrame({"model_a": "a", "model_b": ["b", "c", "d"], "wins_a": 1, "ties": 2**53 - 1, "wins_b": 1})
    with pytest.raises(DataError, match="more than can be counted"):
        Battles.from_pandas(table)
