"""Covariates of a battle: what is read, how it is scaled, and what is refused."""

import json
from operator import itemgetter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arena_votes import arena_votes
from command_line import run

from jaxeval import Battles, DataError
from jaxeval.data.features import (
    Feature,
    arena_style,
    arena_style_columns,
    checked_features,
    design,
    position_advantage,
    relative_difference,
    same_group,
)

VOTES = pd.DataFrame(
    {
        "model_a": ["x", "y", "z", "x", "x"],
        "model_b": ["y", "z", "x", "z", "x"],
        "winner": ["model_a", "tie", "model_b", "both_bad", "model_a"],
        "length": [3.0, -4.0, 0.0, 5.0, 99.0],
        "chars_a": [10, 20, 30, 40, 50],
        "chars_b": [30, 20, 10, 0, 50],
        "maker_a": ["red", "blue", "blue", "red", "red"],
        "maker_b": ["blue", "blue", "red", "green", "red"],
        "judge": ["red", "red", "blue", "green", "red"],
        "home": [True, False, True, True, True],
    }
)


@pytest.fixture(scope="module")
def battles():
    """Without the battle of a model against itself."""
    return Battles.from_pandas(VOTES)


def test_columns_are_divided_by_their_size(battles):
    found = design(battles, ["length", ("chars_a", "chars_b")], normalize=True)
    assert found.names == ("length", "chars_a - chars_b")
    assert found.scale == pytest.approx([np.sqrt(50 / 4), np.sqrt((20**2 + 0 + 20**2 + 40**2) / 4)])
    np.testing.assert_allclose(found.matrix * found.scale, [[3, -20], [-4, 0], [0, 20], [5, 40]])
    np.testing.assert_allclose(np.mean(found.matrix**2, 0), 1)
    np.testing.assert_array_equal(found.unit, found.scale)
    plain = design(battles, ["length"], normalize=False)
    np.testing.assert_array_equal(plain.matrix[:, 0], found.matrix[:, 0])
    assert plain.unit == 1
    assert plain.factor == pytest.approx(1 / np.sqrt(50 / 4))
    huge = Battles.from_pandas(VOTES.assign(length=VOTES["length"] * 1e200))
    np.testing.assert_allclose(design(huge, ["length"], True).matrix, plain.matrix)


def test_both_bad_left_out():
    battles = Battles.from_pandas(VOTES, both_bad="drop")
    found = design(battles, ["length"], normalize=False)
    np.testing.assert_allclose(found.matrix[:, 0] * found.scale, [3, -4, 0])


def test_what_is_computed_keeps_its_scale(battles):
    found = design(
        battles, [position_advantage(), position_advantage("home")._replace(name="away"),
                  same_group("judge", "maker_a", "maker_b")], normalize=True,
    )  # fmt: skip
    assert found.names == ("position", "away", "same judge")
    np.testing.assert_allclose((found.matrix * found.scale).T, [[1, 1, 1, 1], [0, 1, 0, 0], [1, 0, 1, -1]])
    assert (found.unit == 1).all()


def test_a_relative_difference():
    a, b = pd.Series([3, 0, 0]), pd.Series([1, 0, 5])
    assert relative_difference(a, b).tolist() == [0.5, 0.0, -1.0]
    with pytest.raises(DataError, match="not negative"):
        relative_difference(-a, b)


@pytest.mark.parametrize(("features", "error", "message"), [
    (["size"], DataError, "no column 'size' to group battles by or to adjust for; .*'length'"),
    (["maker_a"], DataError, "column 'maker_a' is not numeric"),
    (["length", "length"], DataError, "two features are called 'length'"),
    ([position_advantage("length")], DataError, r"column 'length' must be true or false, got 3\.0$"),
    ([3], TypeError, "a feature must be a column, a pair of columns or a Feature, got 3"),
    ([Feature("none", lambda b: np.zeros(b.n_battles))], DataError, "feature 'none' is 0 in all battles"),
    ([Feature("short", lambda b: np.ones(2))], DataError, "'short' must give a number for each of the 4 rows"),
    ([Feature("far", lambda b: np.full(4, np.inf))], DataError, "'far' has 4 infinite values"),
    ([position_advantage("judge")], DataError, "column 'judge' must be true or false, got 'red'"),
])  # fmt: skip
def test_what_is_refused(battles, features, error, message):
    with pytest.raises(error, match=message):
        design(battles, features, normalize=True)


def test_a_list_of_features():
    assert checked_features(("length", position_advantage), 0.5) == ["length", position_advantage]
    for given, message in (
        ("length", r"features must be a list, got the text 'length': write \['length'\]"),
        (None, "features must be a list of covariates, empty for none, got None"),
        (position_advantage(), r"features must be a list of covariates, empty for none, got Feature\(name='position'"),
    ):
        with pytest.raises(TypeError, match=message):
            checked_features(given, 0.0)
    with pytest.raises(ValueError, match="feature_ridge=1 shrinks the coefficients of features, but there are none"):
        checked_features([], 1)


def test_missing_values():
    battles = Battles.from_pandas(VOTES.assign(length=[1, np.nan, 2, 3, 4], judge=["red", None, "blue", "red", "red"]))
    with pytest.raises(DataError, match="column 'length' has 1 missing value"):
        design(battles, ["length"], normalize=True)
    with pytest.raises(DataError, match="column 'judge' has 1 missing value"):
        design(battles, [same_group("judge", "maker_a", "maker_b")], normalize=True)


class TestArenaStyle:
    """The Arena's covariates against the same made by hand: the columns of its own program."""

    VOTES = pd.DataFrame(arena_votes(400))

    def by_hand(self):
        columns = {}
        for name in ("sum_assistant_tokens", "header_count", "list_count", "bold_count"):
            of_side = name.replace("assistant", "assistant_{}") if "assistant" in name else f"{name}_{{}}"
            counts = [self.VOTES["conv_metadata"].map(itemgetter(of_side.format(side))) for side in "ab"]
            a, b = (x.map(lambda count: sum(count.values()) if isinstance(count, dict) else count) for x in counts)
            raw = (a - b) / (a + b).replace(0, 1)
            columns[name] = (raw - raw.mean()) / raw.std(ddof=0)
        return pd.DataFrame(columns)

    def test_values(self):
        expected = self.by_hand()
        found = design(Battles.from_pandas(self.VOTES), arena_style(), normalize=True)
        assert found.names == tuple(expected)
        np.testing.assert_allclose(found.matrix * found.scale, expected, atol=1e-12)
        np.testing.assert_array_equal(found.unit, 1)
        assert "minus its mean, divided by its standard deviation" in found.told[0]
        assert design(Battles.from_pandas(self.VOTES), [position_advantage()], normalize=True).told == ()

    def test_columns_without_the_object(self):
        flat = self.VOTES.join(pd.DataFrame(self.VOTES["conv_metadata"].tolist())).drop(columns="conv_metadata")
        one, other = (design(Battles.from_pandas(x), arena_style(), normalize=True) for x in (self.VOTES, flat))
        np.testing.assert_array_equal(one.matrix, other.matrix)
        assert arena_style_columns(list(self.VOTES)) == ["conv_metadata"]
        assert len(arena_style_columns(list(flat))) == 8
        with pytest.raises(DataError, match=r"--style arena\) need its column 'conv_metadata', or .*the table has 'x'"):
            arena_style_columns(["x"])

    def test_merged_battles_count_as_often(self):
        twice = pd.concat([self.VOTES, self.VOTES[:100]])
        merged = self.VOTES.assign(n=np.where(np.arange(400) < 100, 2, 1))
        one = design(Battles.from_pandas(twice), arena_style(), normalize=True)
        other = design(Battles.from_pandas(merged, count="n"), arena_style(), normalize=True)
        np.testing.assert_allclose(one.matrix[:400], other.matrix, rtol=1e-14)

    def test_missing_and_impossible_counts(self):
        def broken(**fields):
            own = [{**row, **(fields if k == 3 else {})} for k, row in enumerate(self.VOTES["conv_metadata"])]
            return Battles.from_pandas(self.VOTES.assign(conv_metadata=own))

        for fields, message in (
            ({"header_count_a": None}, "column 'conv_metadata.header_count_a' has 1 missing value"),
            ({"sum_assistant_b_tokens": -1}, "column 'conv_metadata.sum_assistant_b_tokens': counts must be >= 0"),
        ):
            with pytest.raises(DataError, match=message):
                design(broken(**fields), arena_style(), normalize=True)
        without = Battles.from_pandas(self.VOTES.drop(columns="conv_metadata"))
        with pytest.raises(DataError, match=r"no column 'conv_metadata.sum_assistant_a_tokens' to group"):
            design(without, arena_style(), normalize=True)

    @pytest.mark.slow
    def test_the_command_gives_the_numbers_of_columns_made_by_hand(self, tmp_path):
        pq.write_table(pa.Table.from_pylist(self.VOTES.to_dict("records")), tmp_path / "arena.parquet")
        hand = self.by_hand()
        self.VOTES[["model_a", "model_b", "winner"]].join(hand).to_csv(tmp_path / "hand.csv", index=False)
        boards, screens = [], []
        for name, options in (("arena.parquet", ["--style", "arena"]), ("hand.csv", ["--features", ",".join(hand)])):
            out = tmp_path / f"{name}.json"
            arguments = ["leaderboard", tmp_path / name, *options, "--resamples", "20", "--out", out, "--full"]
            result = run(*arguments)
            assert result.exit_code == 0, result.output
            screens.append(" ".join(result.stdout.split()))
            boards.append(json.loads(out.read_text()))
        one, other = (pd.DataFrame(board["rows"]) for board in boards)
        pd.testing.assert_frame_equal(one, other, rtol=1e-9)
        one, other = (pd.DataFrame(board["coefficients"]) for board in boards)
        pd.testing.assert_frame_equal(one, other, rtol=1e-9)
        said = "no mean is subtracted from other covariates"
        assert [said in screen for screen in screens] == [True, False]
