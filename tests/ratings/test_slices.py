import json
import re

import numpy as np
import pandas as pd
import pytest
from arena_votes import FLAGS, arena_votes, flags_of
from command_line import run as command

import jaxeval
from jaxeval import Battles, DataError, arena_style, bootstrap, leaderboard
from jaxeval.options.boards import MOST_SLICES
from jaxeval.ratings.leaderboard import shared_warnings
from jaxeval.ratings.slices import compress
from jaxeval.wording import named

VOTES = jaxeval.simulate_votes(600, 4, seed=1)[["model_a", "model_b", "winner"]].astype(str)
#: 300, 200, 97 and 3 battles.
SIZES = np.repeat(["en", "de", "fr", "la"], [300, 200, 97, 3])


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Runs of many slices with few resamples, of which large chunks would mostly be empty."""
    monkeypatch.setattr("jaxeval.execution.shapes._CHEAP", 0)


def run(*arguments):
    return command("leaderboard", *arguments, "--resamples", "8")


@pytest.mark.usefixtures("on_the_host")
class TestNumber:
    def test_too_many_slices_are_told_before_any_is_rated(self, monkeypatch, tmp_path):
        monkeypatch.setattr("jaxeval.ratings.bootstrap.fit_slices", None)
        votes = pd.concat([VOTES.assign(voter=np.arange(600) + 600 * k) for k in range(2)])
        message = r"there are 1,200 slices by voter, more than max_slices=500, .* max_slices=1200 \(on the command line"
        with pytest.raises(DataError, match=message):
            leaderboard(votes, by="voter")
        with pytest.raises(DataError, match="there are 1,200 slices by voter, more than max_slices=1,199"):
            leaderboard(votes, by="voter", max_slices=1199)
        votes.to_parquet(tmp_path / "votes.parquet")
        result = run(tmp_path / "votes.parquet", "--by", "voter")
        assert result.exit_code == 1
        assert "there are 1,200 slices by voter" in " ".join(result.stderr.split())

    @pytest.mark.slow
    def test_as_many_as_asked_for(self):
        votes = VOTES[:300].assign(part=np.arange(300) % 3)
        assert MOST_SLICES == 500
        assert len(bootstrap(votes, 2, by="part", max_slices=3)) == 3
        with pytest.raises(DataError, match="3 slices by part, more than max_slices=2"):
            bootstrap(votes, 2, by="part", max_slices=2)

    def test_slices_left_out_do_not_count(self):
        k = np.arange(600)
        votes = VOTES.assign(voter=np.where(k < 300, -1 - k % 3, k))
        assert len(bootstrap(votes, 2, by="voter", max_slices=3, min_slice_battles=2)) == 3


@pytest.mark.usefixtures("on_the_host")
class TestFewBattles:
    @pytest.mark.slow
    def test_they_are_listed_and_the_others_stay_as_they_are(self):
        votes = VOTES.assign(language=SIZES, half=np.arange(600) % 2)
        all_of_them, some = (bootstrap(votes, 20, by="language", min_slice_battles=n) for n in (0, 100))
        assert list(all_of_them) == ["de", "en", "fr", "la"]
        assert list(some) == ["de", "en"]
        assert some.left_out.to_dict() == {"fr": 97, "la": 3}
        assert all_of_them.left_out.empty
        for name, board in some.items():
            np.testing.assert_array_equal(board.draws, all_of_them[name].draws)
        message = (
            "2 slices by language have fewer than 100 battles and no ratings (battles in brackets): fr (97), la (3)"
        )
        assert some.warnings == [message]
        assert leaderboard(some).attrs["warnings"][0] == message
        both = bootstrap(votes, 2, by=["language", "half"], min_slice_battles=3)
        assert both.left_out.to_dict() == {("la", 0): 1, ("la", 1): 2}
        assert "la / 0 (1), la / 1 (2)" in both.warnings[0]

    def test_a_row_that_stands_for_several(self):
        counted = pd.DataFrame({"model_a": "a", "model_b": "b", "target": [0.0, 1.0] * 2, "n": [3, 3, 2, 3],
                                "part": ["x", "x", "y", "y"]})  # fmt: skip
        battles = Battles.from_pandas(counted, count="n")
        assert bootstrap(battles, 2, by="part", min_slice_battles=6).left_out.to_dict() == {"y": 5}

    def test_none_is_left(self):
        message = "none of the 4 slices by language has 301 battles, the largest has 300: lower min_slice_battles"
        with pytest.raises(DataError, match=message):
            bootstrap(VOTES.assign(language=SIZES), 2, by="language", min_slice_battles=301)


@pytest.mark.usefixtures("on_the_host")
class TestMissing:
    @pytest.fixture
    def votes(self):
        """Three languages, or four slices with the one of none: one program refits both numbers of slices."""
        gone = np.isin(np.arange(597), [0, 350, 351])
        return VOTES[:597].assign(language=pd.Series(SIZES[:597]).mask(gone), half=np.arange(597) % 2)

    def test_error(self, votes):
        message = r"column 'language' has 3 missing values \(first in row 0; .*choose missing='drop' or missing='label'"
        with pytest.raises(DataError, match=message):
            bootstrap(votes, 2, by="language")

    def test_drop(self, votes):
        found = bootstrap(votes, 2, by="language", missing="drop")
        expected = bootstrap(votes.dropna(), 2, by="language")
        assert list(found) == list(expected)
        assert found.n_missing == 3
        assert found.warnings == ["3 battles without a value of language are in no slice"]
        for name, board in found.items():
            np.testing.assert_array_equal(board.draws, expected[name].draws)
        assert found.warnings[0] in leaderboard(found).attrs["warnings"]

    def test_label(self, votes):
        found = bootstrap(votes, 2, by="language", missing="label")
        expected = bootstrap(votes.fillna("(missing)"), 2, by="language")
        assert list(found) == ["de", "en", "fr", "(missing)"]
        assert found["(missing)"].fit.report.n_battles == 597
        assert found["(missing)"].fit.n_battles.sum() == 2 * 3
        for name, board in found.items():
            np.testing.assert_array_equal(board.draws, expected[name].draws)

    @pytest.mark.parametrize(("missing", "groups"), [
        ("drop", [("x", 1.0), ("y", 2.0), ("y", 3.0)]),
        ("label", [("x", 1.0), ("x", "(missing)"), ("y", 2.0), ("y", 3.0), ("(missing)", 1.0)]),
    ])  # fmt: skip
    def test_several_columns(self, missing, groups):
        votes = VOTES[:6].assign(p=["x", "x", "y", "y", "y", None], q=[1, np.nan, 2, 3, 3, 1])
        assert list(bootstrap(votes, 2, by=["p", "q"], missing=missing)) == groups

    def test_numbers_stay_numbers(self):
        votes = VOTES[:5].assign(turn=pd.array([1, 2, 1, None, 3], "Int64"))
        assert list(bootstrap(votes, 2, by="turn", missing="drop")) == [1, 2, 3]
        assert list(bootstrap(votes, 2, by="turn", missing="label")) == [1, 2, 3, "(missing)"]

    def test_a_value_of_that_name(self):
        votes = VOTES[:3].assign(language=["(missing)", None, "de"])
        with pytest.raises(DataError, match=re.escape("has missing values and the value '(missing)': rename that")):
            bootstrap(votes, 2, by="language", missing="label")

    @pytest.mark.parametrize(("missing", "n_boards"), [("error", None), ("drop", 3), ("label", 4)])
    def test_on_the_command_line(self, votes, tmp_path, missing, n_boards):
        votes.to_parquet(tmp_path / "votes.parquet")
        out = tmp_path / "board.csv"
        result = run(tmp_path / "votes.parquet", "--by", "language", "--missing", missing, "--out", out)
        assert result.exit_code == (n_boards is None), result.output
        if n_boards is not None:
            assert pd.read_csv(out)["category"].nunique() == n_boards
            assert ("3 battles without a value of language are in no slice" in result.stdout) == (missing == "drop")


@pytest.mark.parametrize(("options", "error", "message"), [
    ({"max_slices": 0}, ValueError, "max_slices must be at least 1"),
    ({"max_slices": 2.5}, TypeError, "max_slices must be an integer"),
    ({"min_slice_battles": True}, TypeError, "min_slice_battles must be an integer"),
    ({"missing": "incorrect"}, ValueError, "missing must be one of 'error', 'drop', 'label', got 'incorrect'"),
])  # fmt: skip
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        bootstrap(VOTES, 2, by="model", **options)


def test_options_of_slices_without_slices():
    with pytest.raises(ValueError, match="max_slices, min_slice_battles and missing are about the slices of by="):
        bootstrap(VOTES, 2, missing="drop")


@pytest.mark.usefixtures("on_the_host")
class TestToldTogether:
    @pytest.mark.slow
    def test_walls_of_warnings(self):
        """Twelve slices with a winless model each, under several names, and one with an undefeated one, too."""
        rows = []
        for k in range(12):
            rows += [("a", "b", 1.0, f"s{k:02}"), ("b", "a", 1.0, f"s{k:02}"), ("a", f"new {k % 5}", 1.0, f"s{k:02}")]
        rows.append(("best", "a", 1.0, "s07"))
        table = pd.DataFrame(rows * 30, columns=["model_a", "model_b", "target", "part"])
        warnings = leaderboard(table, n_resamples=100, by="part").attrs["warnings"]
        assert warnings == [
            "part = s00: new 0: never took a point off the main group: no finite rating; likewise in 11 more slices: "
            "s01, s02, s03, s04, s05, s06, s07, s08 and 3 more",
            "part = s07: best: never lost a point to the main group: no finite rating",
        ]

    def test_thousands_of_models_do_not_keep_slices_apart(self):
        boards = list(bootstrap(VOTES.assign(part=np.arange(600) % 4), 2, by="part").values())
        assert named(range(2_008)).endswith("7 and 2,000 more")
        warnings = [[f"{named(['model-1'] * n)}: too few"] for n in (10, 20, 3_000, 40)]
        assert len(shared_warnings([0, 1, 2, 3], warnings, boards)) == 1

    def test_few_slices_are_told_one_by_one(self):
        boards = list(bootstrap(VOTES.assign(part=np.arange(600) % 4), 2, by="part").values())
        three = [["model-1: 3.5% of x"], ["model-2, model-3 and 12 more: 1,000% of x"], ["other"], ["4% of x"]]
        three = [["alike", *own] for own in three]
        assert shared_warnings([0, 1, 2, 3], three, boards) == [
            "alike",
            "part = 0: model-1: 3.5% of x",
            "part = 1: model-2, model-3 and 12 more: 1,000% of x",
            "part = 3: 4% of x",
            "part = 2: other",
        ]


class TestOverlappingCategories:
    """Battles in several slices: each slice is that of its battles alone."""

    VOTES = arena_votes(140)
    BATTLES = Battles.from_pandas(pd.DataFrame(VOTES))
    MATH = np.array(["math" in flags_of(row) for row in VOTES])

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "options",
        [{},
         pytest.param({"cluster": "evaluation_session_id"}, marks=pytest.mark.slow),
         pytest.param({"features": "arena"}, marks=pytest.mark.slow)],
    )  # fmt: skip
    def test_a_slice_is_its_battles_alone(self, options):
        options = {**options, "features": arena_style()} if "features" in options else options
        boards = bootstrap(self.BATTLES, 8, by="category_tag", **options)
        assert list(boards) == ["overall", *sorted(FLAGS)]
        whole = bootstrap(self.BATTLES, 8, **options)
        np.testing.assert_allclose(boards["overall"].draws, whole.draws, rtol=1e-13)
        if "features" not in options:  # whose means are those of all battles
            # Its battles as a slice by a plain column.
            alone = pd.DataFrame(self.VOTES).assign(only=np.where(self.MATH, "math", "others"))
            math = bootstrap(alone, 8, by="only", **options)["math"]
            np.testing.assert_allclose(boards["math"].draws, math.draws, rtol=1e-13)
        n = sum(1 + len(flags_of(row)) for row in self.VOTES)
        assert boards.told == (
            "categories of category_tag overlap: a battle counts in each of its categories and in 'overall'; "
            f"140 battles count {n:,} times in all"
        )

    @pytest.mark.slow
    def test_beside_another_column(self):
        boards = bootstrap(self.BATTLES, 8, by=["language", "category_tag"], min_slice_battles=22)
        by_language = bootstrap(self.BATTLES, 8, by="language")
        for language, board in by_language.items():
            np.testing.assert_allclose(boards[language, "overall"].draws, board.draws, rtol=1e-13)
        assert len(boards) > 2 * len(by_language)
        for (language, name), board in boards.items():
            own = [row for row in self.VOTES if row["language"] == language and name in ["overall", *flags_of(row)]]
            assert int(board.fit.n_battles.sum()) == 2 * len(own)

    @pytest.mark.usefixtures("on_the_host")
    def test_without_a_value(self):
        votes = pd.DataFrame(self.VOTES)
        votes["category_tag"] = votes["category_tag"].where(np.arange(140) % 10 > 0, None)
        with pytest.raises(DataError, match="column 'category_tag' has 14 missing values"):
            bootstrap(votes, 2, by="category_tag")
        boards = bootstrap(votes, 8, by="category_tag", missing="drop")
        assert boards.n_missing == 14
        assert int(boards["overall"].fit.n_battles.sum()) == 2 * 126
        boards = bootstrap(votes, 8, by="category_tag", missing="label")
        assert [int(boards[name].fit.n_battles.sum()) for name in ("overall", "(missing)")] == [280, 28]

    @pytest.mark.usefixtures("on_the_host")
    def test_merged_battles_count_as_often(self):
        votes = pd.DataFrame(self.VOTES)[["model_a", "model_b", "winner", "category_tag"]]
        battles = Battles.from_pandas(pd.concat([votes, votes]))
        merged = Battles.from_pandas(votes.assign(n=2), count="n")
        boards = [bootstrap(b, 8, by="category_tag") for b in (battles, merged)]
        assert boards[0].told == boards[1].told
        np.testing.assert_allclose(*(board["if"].draws for board in boards), rtol=1e-13)

    @pytest.mark.usefixtures("on_the_host")
    def test_the_command(self, tmp_path):
        path = tmp_path / "votes.jsonl"
        path.write_text("\n".join(map(json.dumps, self.VOTES)))
        result = run(path, "--by", "category_tag", "--out", tmp_path / "board.json", "--full")
        assert result.exit_code == 0, result.output
        assert "in 'overall'; 140 battles count" in " ".join(result.stdout.split())
        rows = json.loads((tmp_path / "board.json").read_text())["rows"]
        assert list(dict.fromkeys(row["category"] for row in rows)) == ["overall", *sorted(FLAGS)]
        result = run(path, "--cluster", "category_tag")
        assert result.exit_code == 1
        assert "has overlapping categories" in result.stderr


class TestCellsWithCovariates:
    """Boards of some rows take their cells from those of all rows, which are sorted once."""

    @pytest.fixture
    def battles(self):
        rng = np.random.default_rng(0)
        n, names = 900, np.array(["a", "b", "c", "d"])
        first = rng.integers(4, size=n)
        second = (first + rng.integers(1, 4, n)) % 4
        columns = {"winner": rng.choice(["model_a", "tie", "model_b"], n), "weight": rng.choice([0.5, 1.0, 2.0], n)}
        frame = pd.DataFrame({"model_a": names[first], "model_b": names[second], **columns})
        return Battles.from_pandas(frame, weight="weight")

    @pytest.mark.parametrize("feature", ["few values", "many values", "none"])
    def test_as_of_these_rows_alone(self, battles, feature):
        rng = np.random.default_rng(1)
        few = rng.integers(-1, 2, (battles.n_rows, 2)).astype(float)
        values = {"few values": few, "many values": few + rng.random(few.shape), "none": few[:, :0]}[feature]
        rows = rng.permutation(battles.n_rows)[:300]
        (cells, number), a, b = compress(battles, values)(rows), battles.model_a[rows], battles.model_b[rows]
        target, turned = battles.target[rows], a > b
        target = np.where(turned, 1 - target, target)
        pair = np.stack([np.minimum(a, b), np.maximum(a, b)], 1)
        signed = np.where(turned[:, None], -values[rows], values[rows])
        keys = np.column_stack([pair, target, battles.weight[rows], signed])
        expected, of_row, count = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
        got = np.column_stack([cells.first[cells.pair], cells.second[cells.pair], cells.target, cells.weight])
        np.testing.assert_array_equal(np.column_stack([got, cells.feature]), expected)
        np.testing.assert_array_equal(number, of_row.reshape(-1))
        np.testing.assert_array_equal(cells.count, count)
