"""Reading battles from tables: labels, errors, the report, and compression to cells."""

from collections import Counter

import house
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jaxeval
from jaxeval import Battles, DataError

VOTES = pd.DataFrame(
    {
        "model_a": ["a", "a", "b", "b", "c"],
        "model_b": ["b", "c", "c", "a", "a"],
        "winner": ["model_a", "model_b", "tie", "model_a", "tie"],
    }
)


def battle_list(battles):
    """Every battle as (model_a, model_b, target, weight)."""
    weight = np.ones(battles.n_battles) if battles.weight is None else battles.weight
    return list(
        zip(
            battles.models[battles.model_a],
            battles.models[battles.model_b],
            battles.target.tolist(),
            weight.tolist(),
            strict=True,
        )
    )


def assert_equal_cells(one, other):
    for name in ("first", "second", "pair", "target", "weight", "count"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


ONE_HOT = VOTES.drop(columns="winner").assign(
    winner_model_a=[1, 0, 0, 1, 0], winner_model_b=[0, 1, 0, 0, 0], winner_tie=[0, 0, 1, 0, 1]
)


@pytest.mark.parametrize(("table", "options"), [
    (ONE_HOT, {}),
    (ONE_HOT.astype({name: bool for name in ONE_HOT if name.startswith("winner")}), {}),
    (VOTES.drop(columns="winner").assign(target=[1.0, 0.0, 0.5, 1.0, 0.5]), {}),
    (VOTES.set_axis(["left", "right", "human"], axis=1), {"model_a": "left", "model_b": "right", "winner": "human"}),
    (pl.from_pandas(VOTES), {}),
    (pl.from_pandas(VOTES).with_columns(pl.all().cast(pl.Categorical)), {}),
    (pa.table(dict(VOTES)), {}),
])  # fmt: skip
def test_the_same_battles_in_other_words_and_tables(table, options):
    battles = Battles.from_pandas(table, **options)
    assert battle_list(battles) == battle_list(Battles.from_pandas(VOTES))
    assert battles.cells.hard
    assert len(battles.columns.columns) == 0


class TestResults:
    @pytest.mark.parametrize(("label", "target"), [
        ("model_a", 1.0),
        ("model_b", 0.0),
        ("tie", 0.5),
        ("tie (bothbad)", 0.5),
        ("tie_bothbad", 0.5),
        ("both_bad", 0.5),
    ])  # fmt: skip
    def test_label_spellings(self, label, target):
        battles = Battles.from_pandas(VOTES.assign(winner=label))
        assert battles.target.tolist() == [target] * 5
        is_both_bad = "bad" in label
        assert battles.report.n_both_bad == (5 if is_both_bad else 0)
        assert battles.report.n_ties == (5 if target == 0.5 else 0)

    def test_battles_are_what_the_rows_say(self):
        assert battle_list(Battles.from_pandas(VOTES)) == [
            ("a", "b", 1.0, 1.0),
            ("a", "c", 0.0, 1.0),
            ("b", "c", 0.5, 1.0),
            ("b", "a", 1.0, 1.0),
            ("c", "a", 0.5, 1.0),
        ]

    def test_soft_target(self):
        soft = VOTES.drop(columns="winner").assign(target=[0.0, 0.25, 0.5, 0.9, 1.0])
        battles = Battles.from_pandas(soft)
        assert battles.target.tolist() == [0.0, 0.25, 0.5, 0.9, 1.0]
        assert battles.report.n_ties == 1
        assert not battles.cells.hard

    def test_naming_one_result_settles_an_ambiguous_table(self):
        both = VOTES.assign(target=0.75)
        assert Battles.from_pandas(both, winner="winner").target.tolist() == [1.0, 0.0, 0.5, 1.0, 0.5]
        assert Battles.from_pandas(both, target="target").target.tolist() == [0.75] * 5


class TestWeightsAndOmissions:
    def test_weights(self):
        battles = Battles.from_pandas(VOTES.assign(w=[1.0, 2.0, 0.5, 1.0, 4.0]), weight="w")
        assert battles.weight.tolist() == [1.0, 2.0, 0.5, 1.0, 4.0]
        assert not battles.cells.hard

    def test_weights_of_one_are_no_weights(self):
        battles = Battles.from_pandas(VOTES.assign(w=1), weight="w")
        assert battles.weight is None
        assert battles.cells.hard

    def test_a_weight_column_is_used_only_when_named(self):
        battles = Battles.from_pandas(VOTES.assign(weight=[1.0, 2.0, 0.5, 1.0, 4.0]))
        assert battles.weight is None

    def test_propensities_weigh_by_their_inverse(self):
        table = VOTES.assign(p=[0.5, 0.25, 0.5, 0.5, 1.0], w=[1.0, 2.0, 1.0, 1.0, 1.0])
        battles = Battles.from_pandas(table, propensity="p")
        assert battles.weight.tolist() == [2.0, 4.0, 2.0, 2.0, 1.0]
        assert battles.report.n_effective == pytest.approx(11**2 / 29)
        assert "count by their inverse propensities, and say about as much as 4 of equal weight" in str(battles.report)
        assert Battles.from_pandas(table, propensity="p", weight="w").weight.tolist() == [2.0, 8.0, 2.0, 2.0, 1.0]
        assert battles.filter(np.arange(5) > 0).report.n_effective == pytest.approx(9**2 / 25)
        assert "p" not in battles.columns
        twice = Battles.from_pandas(table.assign(n=2), propensity="p", count="n")
        assert twice.report.n_effective == pytest.approx(2 * 11**2 / 29)

    def test_equal_propensities_cost_nothing(self):
        report = Battles.from_pandas(VOTES.assign(p=0.2), propensity="p").report
        assert report.n_effective == pytest.approx(5)

    @pytest.mark.parametrize("value", [0.0, -0.1, 1.1, np.nan, np.inf, 1e-60, "often"])
    def test_hostile_propensities(self, value):
        table = VOTES.assign(p=pd.Series([0.5, 0.5, value, 0.5, 0.5], dtype=object))
        with pytest.raises(DataError, match=r"'p'.*"):
            Battles.from_pandas(table, propensity="p")

    def test_weight_zero_is_left_out_and_counted(self):
        battles = Battles.from_pandas(VOTES.assign(w=[1, 0, 3, 0, 1]), weight="w")
        assert [row[2:] for row in battle_list(battles)] == [(1.0, 1.0), (0.5, 3.0), (0.5, 1.0)]
        assert battles.report.n_zero_weight == 2
        assert battles.report.n_battles == 3
        assert battles.report.n_rows == 5

    def test_self_battles_are_left_out_and_counted(self):
        rows = pd.concat([VOTES, VOTES.assign(model_b=VOTES.model_a)], ignore_index=True)
        battles = Battles.from_pandas(rows)
        assert battle_list(battles) == battle_list(Battles.from_pandas(VOTES))
        assert battles.report.n_self_battles == 5
        assert battles.report.n_rows == 10

    def test_a_model_of_self_battles_only_is_named(self):
        rows = pd.concat([VOTES, pd.DataFrame({"model_a": ["z"], "model_b": ["z"], "winner": ["tie"]})])
        battles = Battles.from_pandas(rows)
        assert list(battles.models) == ["a", "b", "c"]
        assert battles.report.models_left_out == ("z",)
        assert battles.report.n_models == 3
        assert "1 model without a usable battle left out: z" in str(battles.report)

    @pytest.mark.parametrize(("policy", "n_battles"), [("half", 5), ("drop", 2)])
    def test_both_bad_policy(self, policy, n_battles):
        winner = ["both_bad", "model_b", "tie (bothbad)", "tie", "tie_bothbad"]
        battles = Battles.from_pandas(VOTES.assign(winner=winner), both_bad=policy)
        assert battles.n_battles == n_battles
        assert battles.report.n_both_bad == 3
        assert battles.report.both_bad == policy
        assert battles.report.n_ties == (4 if policy == "half" else 1)
        assert battles.target.tolist() == ([0.5, 0.0, 0.5, 0.5, 0.5] if policy == "half" else [0.0, 0.5])

    def test_report_text(self):
        rows = pd.DataFrame(
            {
                "model_a": ["a", "a", "b", "b", "z", "y", "c"],
                "model_b": ["b", "c", "c", "a", "z", "a", "a"],
                "winner": ["model_a", "tie", "both_bad", "model_b", "tie", "both_bad", "model_a"],
                "w": [1, 2, 1, 1, 1, 1, 0],
            }
        )
        half = Battles.from_pandas(rows, weight="w").report
        assert str(half).splitlines() == [
            "7 rows: 5 battles between 4 models, 3 of them ties",
            "2 both-bad battles counted as ties",
            "1 battle of a model against itself left out",
            "1 battle of weight 0 left out",
            "1 model without a usable battle left out: z",
        ]
        drop = Battles.from_pandas(rows, weight="w", both_bad="drop").report
        assert str(drop).splitlines() == [
            "7 rows: 3 battles between 3 models, 1 of them a tie",
            "2 both-bad battles left out on request",
            "1 battle of a model against itself left out",
            "1 battle of weight 0 left out",
            "2 models without a usable battle left out: y, z",
        ]

    def test_the_report_of_a_clean_table_is_one_line(self):
        assert str(Battles.from_pandas(VOTES).report) == "5 rows: 5 battles between 3 models, 2 of them ties"

    def test_large_counts_are_grouped(self):
        report = Battles.from_pandas(pd.concat([VOTES] * 250)).report
        assert str(report).startswith("1,250 rows: 1,250 battles between 3 models, 500 of them ties")


class TestTables:
    """What may hold the rows."""

    @pytest.mark.parametrize("kind", ["uint8", "uint32", "int8"])
    def test_arrow_categories(self, kind):
        """Arrow itself makes no pandas of categories by unsigned numbers."""
        names = pa.array(["a", "b"])
        sides = [pa.DictionaryArray.from_arrays(pa.array(codes, kind), names) for codes in ([0, 1, None], [1, 0, 0])]
        table = pa.table({"model_a": sides[0], "model_b": sides[1], "winner": ["tie"] * 3})
        assert battle_list(Battles.from_pandas(table[:2])) == [("a", "b", 0.5, 1.0), ("b", "a", 0.5, 1.0)]
        with pytest.raises(DataError, match="column 'model_a' has 1 missing value"):
            Battles.from_pandas(table)

    def test_pyarrow_dictionaries_and_further_columns(self):
        table = pa.table({c: pa.array(VOTES[c]).dictionary_encode() for c in VOTES} | {"lang": list("xyxyx")})
        battles = Battles.from_pandas(table)
        assert battle_list(battles) == battle_list(Battles.from_pandas(VOTES))
        assert battles.codes("lang")[0].tolist() == [0, 1, 0, 1, 0]

    def test_estimators_take_tables_too(self):
        from_table = jaxeval.fit_bradley_terry(pl.from_pandas(VOTES))
        pd.testing.assert_series_equal(from_table.ratings, jaxeval.fit_bradley_terry(VOTES).ratings)

    def test_categoricals(self):
        # Unused categories, and different ones on the two sides, in no sorted order.
        cats = VOTES.astype("category")
        cats["model_a"] = cats["model_a"].cat.set_categories(["zz", "c", "b", "a"])
        cats["winner"] = cats["winner"].cat.add_categories(["nonsense"])
        battles = Battles.from_pandas(cats)
        assert battle_list(battles) == battle_list(Battles.from_pandas(VOTES))
        assert list(battles.models) == ["a", "b", "c"]

    def test_integers_as_model_names(self):
        numbers = {"a": 10, "b": 9, "c": -1}
        rows = VOTES.assign(model_a=VOTES.model_a.map(numbers), model_b=VOTES.model_b.map(numbers))
        battles = Battles.from_pandas(rows)
        assert battles.models.tolist() == [-1, 9, 10]
        by_name = {numbers[m]: r for m, r in jaxeval.fit_bradley_terry(VOTES).ratings.items()}
        assert jaxeval.fit_bradley_terry(battles).ratings.to_dict() == pytest.approx(by_name, abs=1e-9)

    def test_models_are_sorted_by_name(self):
        battles = Battles.from_pandas(VOTES.iloc[::-1])
        assert battles.models.tolist() == ["a", "b", "c"]
        assert battles.models.name == "model"

    def test_the_index_of_the_frame_does_not_matter(self):
        odd = VOTES.assign(w=[1, 0, 1, 1, 1], lang=list("xyxyy")).set_index(pd.Index([7, 7, 3, 3, 7]))
        battles = Battles.from_pandas(odd, weight="w")
        assert battles.codes("lang")[0].tolist() == [0, 0, 1, 1]
        assert battles.to_pandas().index.tolist() == [0, 1, 2, 3]

    @pytest.mark.parametrize(
        "options", [{}, {"weight": "w"}, {"both_bad": "drop"}, {"cluster": "who"}, {"target": "soft"}]
    )
    def test_the_input_is_never_modified(self, options):
        frame = VOTES.assign(
            w=[1, 0, 2, 1, 1], who=[1, 1, 2, 2, 3], soft=0.3, winner=["tie", "both_bad", "model_a", "tie", "model_b"]
        )
        if "target" not in options:
            frame = frame.drop(columns="soft")
        before = frame.copy(deep=True)
        battles = Battles.from_pandas(frame, **options)
        battles.cells  # noqa: B018
        battles.codes("who")
        result = battles.to_pandas()
        result.loc[:, "target"] = -1.0
        pd.testing.assert_frame_equal(frame, before)

    def test_to_pandas_holds_the_battles_that_take_part(self):
        frame = VOTES.assign(w=[1.0, 0.0, 2.0, 1.0, 1.0], lang=list("xyxyz"))
        again = Battles.from_pandas(frame, weight="w").to_pandas()
        assert again.columns.tolist() == ["model_a", "model_b", "target", "weight", "lang"]
        assert again["lang"].tolist() == ["x", "x", "y", "z"]
        assert battle_list(Battles.from_pandas(again, weight="weight")) == battle_list(
            Battles.from_pandas(frame, weight="w")
        )


NOTHING = VOTES.assign(
    model_b=["a", "c", "b", "a", "a"], winner=["tie", "both_bad", "tie", "tie", "tie"], w=[1, 1, 1, 0, 0]
)


def targets(values):
    return VOTES.drop(columns="winner").assign(target=values)


class TestErrors:
    """Each error names the column, the values, their counts and the remedy."""

    @staticmethod
    def message(frame, **options):
        with pytest.raises(DataError) as caught:
            Battles.from_pandas(frame, **options)
        return str(caught.value)

    @staticmethod
    def contains(message, *fragments):
        missing = [f for f in fragments if f not in message]
        assert not missing, f"{missing} not in: {message}"

    def test_data_errors_are_value_errors(self):
        assert issubclass(DataError, ValueError)

    def test_unknown_labels(self):
        message = self.message(VOTES.assign(winner=["A", "model_a", "A", "Tie", "tie"]))
        self.contains(
            message, "'winner'", "'A' (2)", "'Tie' (1)", "Say what they mean", "--labels 'A=model_a,...'", "target="
        )
        self.contains(message, *(repr(s) for s in ("model_a", "model_b", "tie", "tie (bothbad)", "tie_bothbad")))
        assert "'tie' (1)" not in message

    def test_numeric_labels_are_shown_as_numbers(self):
        message = self.message(VOTES.assign(winner=[0, 1, 0, 1, 2]))
        self.contains(message, "'winner'", "'0' (2)", "'1' (2)", "'2' (1)", "target=")
        assert "int64" not in message

    def test_many_unknown_labels_are_cut_short(self):
        rows = pd.concat([VOTES] * 3, ignore_index=True)
        message = self.message(rows.assign(winner=[f"judge says {k}" for k in range(15)]))
        self.contains(message, "'judge says 0' (1)", "'judge says 9' (1)", "and 5 more")
        assert "judge says 10" not in message

    @pytest.mark.parametrize("column", ["model_a", "model_b", "winner"])
    @pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
    def test_missing_values(self, column, missing):
        frame = VOTES.astype(object)
        frame.loc[[2, 4], column] = missing
        self.contains(
            self.message(frame), repr(column), "2 missing values", "row 2", "fill in values or drop those rows"
        )

    @pytest.mark.parametrize(
        ("column", "options"), [("target", {}), ("w", {"weight": "w", "winner": "winner"}), ("winner_tie", {})]
    )
    def test_missing_numbers(self, column, options):
        frame = VOTES.assign(**{column: [0.5, np.nan, 0.5, 0.5, np.nan]})
        if column == "winner_tie":
            frame = frame.assign(winner_model_a=1, winner_model_b=0)
        if "winner" not in options:
            frame = frame.drop(columns="winner")
        self.contains(self.message(frame, **options), repr(column), "2 missing values", "row 1")

    @pytest.mark.parametrize(("frame", "options", "parts"), [
        (targets(pd.array([1, None, 0, 1, 1], "Int64")), {}, ["'target'", "1 missing value", "row 1"]),
        (targets([0.5, 2.0, -1.0, 1.0, 0.0]), {}, ["[0, 1]", "2 values are wrong", "from -1 to 2", "row 1: 2"]),
        (targets([0.5, np.nextafter(1, 2), 0.1, 1.0, 0.0]), {}, ["'target'", "1 value is wrong", "row 1"]),
        (targets([0.5, 0.1, 0.1, np.inf, 0.0]), {}, ["'target'", "[0, 1]", "row 3: inf"]),
        (targets(["1", "0", "model_a", "1", "0"]), {}, ["'target'", "not numeric", "model_a"]),
        (VOTES.assign(w=[1, -2, 1, -0.5, 0]), {"weight": "w"}, ["'w'", ">= 0", "from -2 to -0.5", "row 1: -2"]),
        (VOTES.assign(w=[1, 1, np.inf, 1, 0]), {"weight": "w"}, ["'w'", "finite", "row 2: inf"]),
        (ONE_HOT.assign(winner_model_a=[1, 1, 0, 0, 0]), {},
         ["winner_model_a, winner_model_b, winner_tie", "one 1", "2 rows do not", "row 1: 1, 1, 0"]),
        (VOTES.iloc[:0], {}, ["no rows"]),
        (VOTES.rename(columns={"winner": "outcome"}), {}, ["'winner'", "winner_tie", "'outcome'", "or scores="]),
        (VOTES.assign(target=0.5), {}, ["winner='winner'", "target='target'"]),
        (VOTES.assign(model_a=["a", 1, "b", "b", "c"]), {}, ["'model_a'", "int (1)", "str (4)", "astype(str)"]),
        (VOTES.assign(model_a=[1, 2, 3, 4, 5]), {}, ["'model_a'", "'model_b'", "int", "str", "astype(str)"]),
        (pd.concat([VOTES, VOTES[["winner"]]], axis=1), {}, ["2 columns", "'winner'"]),
        (NOTHING, {"weight": "w", "both_bad": "drop"}, ["is left of 5 rows", "2 of a model against itself",
                                                       "1 both-bad", "2 of weight 0"]),
    ])  # fmt: skip
    def test_what_is_wrong_is_counted_and_shown(self, frame, options, parts):
        self.contains(self.message(frame, **options), *parts)

    @pytest.mark.parametrize("argument", ["model_a", "model_b", "winner", "target", "weight", "propensity", "cluster"])
    def test_a_named_column_that_is_not_there(self, argument):
        message = self.message(VOTES, **{argument: "nowhere"})
        self.contains(message, "no column 'nowhere'", "'model_a', 'model_b', 'winner'")

    def test_both_named(self):
        with pytest.raises(ValueError, match="give the result once, got winner= and target="):
            Battles.from_pandas(VOTES.assign(target=0.5), winner="winner", target="target")

    def test_a_column_whose_name_is_empty(self):
        """A comma at the end of each line makes one."""
        battles = Battles.from_pandas(VOTES.assign(**{"": "model_b"}), winner="")
        assert (battles.target == 0).all()

    def test_an_unknown_policy(self):
        with pytest.raises(ValueError, match="both_bad must be one of 'half', 'drop', got 'win'"):
            Battles.from_pandas(VOTES, both_bad="win")

    @pytest.mark.parametrize("table", [[("a", "b", "tie")], VOTES["winner"], np.ones((2, 2)), None])
    def test_not_a_table(self, table):
        with pytest.raises(TypeError, match=f"DataFrame.*Arrow.*got {type(table).__name__}"):
            Battles.from_pandas(table)


class TestGroups:
    FRAME = VOTES.assign(lang=["y", "x", "y", "y", "x"], turn=[2, 1, 1, 2, 1], day=pd.Timestamp("2026-01-01"))
    FRAME = FRAME.assign(flag=FRAME.lang == "y", some=pd.Categorical(FRAME.lang, ["z", "y", "x"]))

    @pytest.mark.parametrize(("by", "groups", "codes"), [
        ("lang", ["x", "y"], [1, 0, 1, 1, 0]),
        (["lang"], ["x", "y"], [1, 0, 1, 1, 0]),
        ("some", ["x", "y"], [1, 0, 1, 1, 0]),  # a category that is not used is no group
        ("flag", [False, True], [1, 0, 1, 1, 0]),
        ("turn", [1, 2], [1, 0, 0, 1, 0]),
        ("day", [pd.Timestamp("2026-01-01")], [0] * 5),
        (["lang", "turn"], [("x", 1), ("y", 1), ("y", 2)], [2, 0, 1, 2, 0]),  # only the combinations that occur
        (["turn", "lang"], [(1, "x"), (1, "y"), (2, "y")], [2, 0, 1, 2, 0]),
    ])  # fmt: skip
    def test_columns(self, by, groups, codes):
        found, names = Battles.from_pandas(self.FRAME).codes(by)
        assert list(names) == groups
        assert list(names.names) == (by if isinstance(by, list) and len(by) > 1 else [names.name])
        assert found.tolist() == codes

    def test_groups_of_rows_left_out_are_no_groups(self):
        frame = self.FRAME.assign(w=[1, 0, 1, 1, 0])
        codes, groups = Battles.from_pandas(frame, weight="w").codes("lang")
        assert list(groups) == ["y"]
        assert codes.tolist() == [0, 0, 0]

    def test_missing_groups(self):
        frame = self.FRAME.assign(lang=["y", None, "y", "y", "x"])
        with pytest.raises(DataError, match=r"'lang' has 1 missing value .*row 1"):
            Battles.from_pandas(frame).codes("lang")

    def test_a_group_missing_only_in_a_row_left_out(self):
        frame = self.FRAME.assign(lang=["y", None, "y", "y", "x"], w=[1, 0, 1, 1, 1])
        assert Battles.from_pandas(frame, weight="w").codes("lang")[0].tolist() == [1, 1, 1, 0]

    def test_no_such_column(self):
        with pytest.raises(DataError, match=r"'language'.*'lang', 'turn', 'day'.*keep="):
            Battles.from_pandas(self.FRAME).codes("language")

    def test_values_that_cannot_be_groups(self):
        with pytest.raises(DataError, match="'turns'"):
            Battles.from_pandas(self.FRAME.assign(turns=[[1], [1], [2], [1], [2]])).codes("turns")

    def test_rows_by_group_make_the_cells_of_the_filtered_table(self):
        rng = np.random.default_rng(3)
        frame = pd.DataFrame(
            {
                "model_a": rng.choice(list("abcde"), 400),
                "model_b": rng.choice(list("fghij"), 400),
                "winner": rng.choice(["model_a", "model_b", "tie"], 400),
                "lang": rng.choice(["x", "y", "z"], 400),
            }
        )
        battles = Battles.from_pandas(frame)
        codes, groups = battles.codes("lang")
        seen = 0
        for group, rows in zip(groups, battles.rows_by_group(codes, len(groups)), strict=True):
            cells, cell_of_row = battles.compress(rows)
            own = Battles.from_pandas(frame[frame.lang == group])
            models, local = cells.localise(battles.models)
            assert list(models) == list(own.models)
            assert_equal_cells(local, own.cells)
            np.testing.assert_array_equal(np.bincount(cell_of_row), cells.count)
            assert (frame.lang.to_numpy()[rows] == group).all()
            seen += len(rows)
        assert seen == 400


def naive_cells(battles):
    """{(first, second, target of first, weight): battles}, the lower model index first."""
    weight = np.ones(battles.n_battles) if battles.weight is None else battles.weight
    cells = Counter()
    for i, j, y, w in zip(battles.model_a, battles.model_b, battles.target, weight, strict=True):
        cells[(int(i), int(j), float(y), float(w)) if i < j else (int(j), int(i), float(1 - y), float(w))] += 1
    return cells


def random_votes(kind, n_battles=3000, n_models=9, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.integers(n_models, size=n_battles)
    b = (a + rng.integers(1, n_models, size=n_battles)) % n_models
    frame = pd.DataFrame({"model_a": a, "model_b": b})
    if kind == "hard":
        frame["winner"] = rng.choice(["model_a", "model_b", "tie", "both_bad"], n_battles)
    elif kind == "lattice":
        frame["target"] = rng.integers(0, 9, n_battles) / 8
    else:
        frame["target"] = rng.random(n_battles)
    if kind == "weighted":
        frame["target"] = rng.choice([0, 0.5, 1], n_battles)
        frame["w"] = rng.choice([0.5, 1.0, 3.0], n_battles)
    return Battles.from_pandas(frame, weight="w" if kind == "weighted" else None)


class TestCells:
    @pytest.mark.parametrize("kind", ["hard", "lattice", "continuous", "weighted"])
    def test_compressed_equals_raw(self, kind):
        battles = random_votes(kind)
        cells = battles.cells
        found = Counter()
        for c, pair in enumerate(cells.pair):
            key = int(cells.first[pair]), int(cells.second[pair]), float(cells.target[c]), float(cells.weight[c])
            assert key not in found
            found[key] = int(cells.count[c])
        assert found == naive_cells(battles)

    def test_more_pairs_than_fit_a_dense_count(self):
        battles = random_votes("hard", n_battles=2000, n_models=1100)
        assert battles.n_models**2 * 3 > 4 * battles.n_battles + 1_000_000
        cells, cell_of_row = battles.compress(slice(None))
        pair = cells.pair
        keys = zip(cells.first[pair].tolist(), cells.second[pair].tolist(), cells.target.tolist(), strict=True)
        naive = {key[:3]: count for key, count in naive_cells(battles).items()}
        assert dict(zip(keys, cells.count.tolist(), strict=True)) == naive
        np.testing.assert_array_equal(np.bincount(cell_of_row), cells.count)

    @pytest.mark.parametrize("kind", ["hard", "lattice", "continuous", "weighted"])
    def test_orientation_and_order_are_canonical(self, kind):
        cells = random_votes(kind).cells
        assert (cells.first < cells.second).all()
        pairs = list(zip(cells.first.tolist(), cells.second.tolist(), strict=True))
        assert pairs == sorted(set(pairs))
        order = list(zip(cells.pair.tolist(), cells.target.tolist(), cells.weight.tolist(), strict=True))
        assert order == sorted(set(order))

    @pytest.mark.parametrize("kind", ["hard", "lattice", "weighted"])
    def test_swapped_and_shuffled_battles_give_the_same_cells(self, kind):
        battles = random_votes(kind)
        frame = battles.to_pandas()
        rng = np.random.default_rng(1)
        swap = rng.random(len(frame)) < 0.5
        swapped = frame.assign(
            model_a=frame.model_a.where(~swap, frame.model_b),
            model_b=frame.model_b.where(~swap, frame.model_a),
            target=frame.target.where(~swap, 1 - frame.target),
        ).sample(frac=1, random_state=2)
        again = Battles.from_pandas(swapped, weight="weight" if kind == "weighted" else None)
        assert_equal_cells(battles.cells, again.cells)

    @pytest.mark.parametrize("kind", ["hard", "lattice", "continuous", "weighted"])
    def test_every_row_knows_its_cell(self, kind):
        battles = random_votes(kind)
        cells, cell_of_row = battles.compress(slice(None))
        swap = battles.model_a > battles.model_b
        np.testing.assert_array_equal(cells.target[cell_of_row], np.where(swap, 1 - battles.target, battles.target))
        pair = cells.pair[cell_of_row]
        np.testing.assert_array_equal(cells.first[pair], np.minimum(battles.model_a, battles.model_b))
        np.testing.assert_array_equal(cells.second[pair], np.maximum(battles.model_a, battles.model_b))

    @pytest.mark.parametrize("kind", ["hard", "lattice", "continuous", "weighted"])
    def test_tables_are_the_sums_over_battles(self, kind):
        battles = random_votes(kind)
        n, wins = battles.cells.tables(battles.n_models)
        weight = np.ones(battles.n_battles) if battles.weight is None else battles.weight
        naive_n, naive_wins = np.zeros((2, battles.n_models, battles.n_models))
        for i, j, y, w in zip(battles.model_a, battles.model_b, battles.target, weight, strict=True):
            naive_n[i, j] += w
            naive_n[j, i] += w
            naive_wins[i, j] += w * y
            naive_wins[j, i] += w * (1 - y)
        np.testing.assert_allclose(n, naive_n, rtol=1e-12)
        np.testing.assert_allclose(wins, naive_wins, rtol=1e-12)
        np.testing.assert_allclose(wins + wins.T, n, rtol=1e-12)

    def test_hard_outcomes_make_at_most_three_cells_a_pair(self):
        cells = random_votes("hard", 30_000).cells
        assert cells.hard
        assert len(cells.count) == 3 * 36
        assert cells.count.sum() == 30_000


@pytest.mark.parametrize("weight", [1e-300, 1e300])
def test_weights_whose_squares_have_no_double_are_refused(weight):
    frame = pd.DataFrame({"model_a": ["a", "b"], "model_b": ["b", "a"], "winner": "model_a", "w": [1.0, weight]})
    with pytest.raises(DataError, match="between 1e-100 and 1e100"):
        Battles.from_pandas(frame, weight="w")


def test_a_plain_table_takes_few_steps():
    entered = house.entered_for_a_table()
    assert len(entered) <= 12
    assert len({file for file, _ in entered}) <= 6


def test_standard_labels_mean_the_same_whatever_models_are_called():
    """Where no model's name holds such a word, no other meaning of labels is tried."""
    labels = ["model_a", "model_b", "tie", "both_bad", "tie (bothbad)"]
    plain, held = (Battles.from_pandas(VOTES.replace("a", name).assign(winner=labels)) for name in ("a", "a tied one"))
    assert plain.target.tolist() == held.target.tolist() == [1.0, 0.0, 0.5, 0.5, 0.5]
    assert plain.report.label_families == held.report.label_families
    assert plain.report.n_both_bad == held.report.n_both_bad == 2


def test_a_blank_name_is_a_missing_one():
    frame = pd.DataFrame({"model_a": ["a", " ", ""], "model_b": ["b", "a", "a"], "winner": "model_a"})
    with pytest.raises(DataError, match="'model_a' has 2 missing values"):
        Battles.from_pandas(frame)


class TestNamesByNumbers:
    """Whole numbers in one column, numbers of another type in the other."""

    @staticmethod
    def read(a, b):
        return Battles.from_pandas(pd.DataFrame({"model_a": a, "model_b": b, "winner": "model_a"}))

    def test_that_are_the_same_models(self):
        assert list(self.read([1, 2, 3], [2.0, 3.0, 1.5]).models) == [1, 1.5, 2, 3]
        assert list(self.read([2**53 - 1, 2], [2.0, 3.0]).models) == [2, 3, 2**53 - 1]

    @pytest.mark.parametrize("first", [2**53, 2**53 + 1, -(2**53)])
    @pytest.mark.parametrize("others", [[2.0, 3.0], pd.array([2.0, 3.0], "Float64"), [True, False]])
    def test_that_would_become_other_models(self, first, others):
        """2**53 and 2**53 + 1 are one double: two models became one, or pandas gave up."""
        for numbers in ([first, 3], pd.array([first, 3], "Int64")):
            for columns in ((numbers, others), (others, numbers)):
                with pytest.raises(DataError, match=r"name models by values of different types, whole numbers.*astype"):
                    self.read(*columns)


class TestTargetBesideWinner:
    """A column of targets that is named, and one called "winner" that is then not used."""

    @pytest.fixture
    def frame(self):
        winners = ["model_a", "model_b", "tie", "model_b", "model_a", "both_bad"]
        names = {"model_a": list("abcabc"), "model_b": list("bcabca")}
        return pd.DataFrame({**names, "winner": winners, "confidence": [0.9, 0.8, 0.7, 0.6, 0.4, 0.9]})

    def test_contradictions_are_counted_and_warned_of(self, frame):
        report = Battles.from_pandas(frame, target="confidence").report
        assert (report.target, report.n_opposed, report.n_decided) == ("confidence", 3, 4)
        assert "results are those of column 'confidence'; column 'winner' is not used" in str(report)
        (warning,) = report.warnings
        assert "opposite sides in 3 of 4 battles (75%)" in warning
        assert "--weight confidence" in warning
        assert warning in jaxeval.fit_bradley_terry(Battles.from_pandas(frame, target="confidence"), ridge=1.0).warnings

    def test_targets_that_agree_are_only_reported(self, frame):
        report = Battles.from_pandas(frame.assign(p=[0.9, 0.2, 0.5, 0.4, 0.6, 0.5]), target="p").report
        assert report.warnings == []
        assert report.target == "p"

    @pytest.mark.parametrize("winner", [None, "winner"])
    def test_without_two_columns_nothing_is_said(self, frame, winner):
        options = {"winner": "winner"} if winner else {"target": "confidence"}
        report = Battles.from_pandas(frame if winner else frame.drop(columns="winner"), **options).report
        assert (report.target, report.n_opposed, report.warnings) == (None, 0, [])

    @pytest.mark.parametrize("labels", [[["x"]] * 6, [1, 2, 3, 4, 5, 6], ["gpt"] * 6, [None] * 6])
    def test_winners_that_are_no_labels_contradict_nothing(self, frame, labels):
        report = Battles.from_pandas(frame.assign(winner=labels), target="confidence").report
        assert report.target == "confidence"
        assert (report.n_opposed, report.n_decided) == (0, 0)

    def test_files_states_and_counts_tell_the_same(self, frame, tmp_path):
        frame.to_csv(tmp_path / "votes.csv", index=False)
        read = jaxeval.read_battles(tmp_path / "votes.csv", target="confidence")
        assert read.report == Battles.from_pandas(frame, target="confidence").report
        both = Battles.concat([read, read])
        assert (both.report.target, both.report.n_opposed, both.report.n_decided) == ("confidence", 6, 8)
        both.save(tmp_path / "state.parquet")
        assert Battles.load(tmp_path / "state.parquet").report == both.report
        counted = Battles.from_pandas(frame.assign(n=2), target="confidence", count="n").report
        assert counted.n_opposed == 6


@pytest.mark.parametrize(("options", "columns", "hint"), [
    ({"winner": "winer"}, {}, "did you mean 'winner'?"),
    ({}, {"winner": "the winner"}, "did you mean 'the winner'?"),
    ({"model_a": "modell_a"}, {}, "did you mean 'model_a'"),
    ({"weight": "colour"}, {}, None),
])  # fmt: skip
def test_errors_name_the_near_miss(options, columns, hint):
    frame = pd.DataFrame({"model_a": ["a"], "model_b": ["b"], "winner": ["model_a"]}).rename(columns=columns)
    with pytest.raises(DataError) as error:
        Battles.from_pandas(frame, **options)
    assert hint in str(error.value) if hint else "did you mean" not in str(error.value)


def test_unknown_labels_and_groups_name_the_near_miss():
    frame = pd.DataFrame({"model_a": ["a", "b"], "model_b": ["b", "a"], "winner": ["Model", "tie"], "language": "x"})
    with pytest.raises(DataError, match="did you mean 'model_a'"):
        Battles.from_pandas(frame)
    with pytest.raises(DataError, match="did you mean 'language'"):
        Battles.from_pandas(frame.replace("Model", "model_a")).column("langage")


def test_estimators_say_whose_arguments_an_error_of_a_table_names():
    table = pd.DataFrame({"model_a": ["x", "y", None], "model_b": ["y", "x", "x"], "winner": ["model_a", "tie", "tie"]})
    with pytest.raises(DataError, match=r"missing='drop' .*leaves them out \(arguments of Battles\.from_pandas, "):
        jaxeval.leaderboard(table, missing="drop")
    assert len(jaxeval.leaderboard(Battles.from_pandas(table, missing="drop"), n_resamples=10)) == 2
