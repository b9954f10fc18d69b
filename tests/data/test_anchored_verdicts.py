"""Verdicts against a reference: what is read, what is one prompt, and what is refused."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from jaxeval.data.anchored_verdicts import AnchoredVerdicts, read_anchored_verdicts
from jaxeval.errors import DataError
from jaxeval.lab.simulate.verdicts import simulate_anchored_verdicts

TABLE = pd.DataFrame(
    {
        "model": ["a", "a", "b", "b"],
        "judge": ["x", "y", "x", "y"],
        "item": [7, 7, 7, 8],
        "verdict": ["win", "tie", "loss", "win"],
    }
)


def test_labels_are_outcomes():
    found = AnchoredVerdicts.from_pandas(TABLE)
    np.testing.assert_array_equal(found.outcome, [1, 0.5, 0, 1])
    np.testing.assert_array_equal(found.number["judge"], [0, 1, 0, 1])
    assert list(found.levels["item"]) == [7, 8]
    assert list(found.levels["anchor"]) == ["(one anchor)"]
    assert (found.n_rows, found.n_missing) == (4, 0)
    assert str(found) == "4 rows: 4 verdicts; 2 models, 2 judges, 2 items"


@pytest.mark.parametrize("dtype", [float, "Float64", "float32"])
def test_numbers_are_outcomes(dtype):
    table = TABLE.assign(verdict=pd.Series([1, 0.5, 0.25, 0], dtype=dtype))
    np.testing.assert_array_equal(AnchoredVerdicts.from_pandas(table).outcome, [1, 0.5, 0.25, 0])


def test_other_names_and_other_tables():
    renamed = pa.Table.from_pandas(TABLE.rename(columns={"model": "m", "judge": "j", "item": "q", "verdict": "v"}))
    found = AnchoredVerdicts.from_pandas(renamed, verdict="v", model="m", judge="j", item="q")
    np.testing.assert_array_equal(found.number["model"], [0, 0, 1, 1])
    np.testing.assert_array_equal(found.number["item"], [0, 0, 0, 1])
    categories = TABLE.astype({"model": "category", "verdict": "category"})
    np.testing.assert_array_equal(AnchoredVerdicts.from_pandas(categories).outcome, [1, 0.5, 0, 1])


def test_rows_are_prompts_without_items():
    found = AnchoredVerdicts.from_pandas(pd.concat([TABLE.drop(columns="item")] * 2))
    assert len(np.unique(found.number["item"])) == 8


def test_items_are_told_apart_by_task():
    table = TABLE.assign(task=["t", "t", "u", "t"])
    found = AnchoredVerdicts.from_pandas(table)
    np.testing.assert_array_equal(found.number["item"], [0, 0, 2, 1])
    assert list(found.levels["item"]) == ["t / 7", "t / 8", "u / 7"]
    assert str(found) == "4 rows: 4 verdicts; 2 models, 2 judges, 2 tasks, 3 items"


class TestMissing:
    TABLE = TABLE.assign(verdict=["win", None, "loss", np.nan])

    def test_it_is_an_error(self):
        with pytest.raises(DataError, match=r"'verdict' has 2 missing values \(first in row 1; .*missing='drop'"):
            AnchoredVerdicts.from_pandas(self.TABLE)

    def test_it_is_counted(self):
        found = AnchoredVerdicts.from_pandas(self.TABLE, missing="drop")
        np.testing.assert_array_equal(found.outcome, [1, 0])
        np.testing.assert_array_equal(found.number["model"], [0, 1])
        assert (found.n_rows, found.n_missing) == (4, 2)
        assert str(found).splitlines() == [
            "4 rows: 2 verdicts; 2 models, 2 judges, 2 items",
            "2 missing verdicts left out",
        ]

    def test_nothing_is_left(self):
        with pytest.raises(DataError, match="no verdict is left of 4 rows"):
            AnchoredVerdicts.from_pandas(TABLE.assign(verdict=np.nan), missing="drop")


class TestGroups:
    @pytest.mark.parametrize("roles", [["model"], ["judge", "model"], ["item", "run", "judge"]])
    def test_they_are_those_of_pandas(self, roles):
        table = simulate_anchored_verdicts(n_items=6, n_judges=3, n_runs=2).sample(frac=0.6, random_state=0)
        number, groups = AnchoredVerdicts.from_pandas(table).groups(roles)
        np.testing.assert_array_equal(number, table.groupby(roles).ngroup())
        pd.testing.assert_frame_equal(groups, table[roles].drop_duplicates().sort_values(roles, ignore_index=True))

    def test_unknown_roles(self):
        with pytest.raises(ValueError, match=r"roles are 'model', 'judge', .* got 'prompt'"):
            AnchoredVerdicts.from_pandas(TABLE).groups(["model", "prompt"])

    def test_levels_stay_in_a_part(self):
        part = AnchoredVerdicts.from_pandas(TABLE).take(np.array([False, False, True, True]))
        assert list(part.levels["model"]) == ["a", "b"]
        assert list(part.groups(["model"])[1]["model"]) == ["b"]


class TestErrors:
    @pytest.mark.parametrize(("table", "options", "message"), [
        (TABLE.iloc[:0], {}, "the table has no rows"),
        (TABLE, {"judge": "grader"}, "no column 'grader'"),
        (TABLE, {"verdict": "outcome"}, "no column 'outcome'"),
        (TABLE.assign(verdict=["win", "lose", "Tie", "lose"]), {},
         r"unknown labels: 'lose' \(2\); known are 'win', 'tie' and 'loss' of the model"),
        (TABLE.assign(verdict=[1.0, -1.0, 0.0, 2.0]), {},
         r"2 values lie outside \[0, 1\], from -1 to 2 \(first in row 1; .*1 for a win, 0.5 for a tie, 0 for a"),
        (TABLE.assign(judge=["x", None, "x", "y"]), {}, "column 'judge' has 1 missing value"),
    ])  # fmt: skip
    def test_no_verdicts(self, table, options, message):
        with pytest.raises(DataError, match=message):
            AnchoredVerdicts.from_pandas(table, **options)

    def test_missing_is_error_or_drop(self):
        with pytest.raises(ValueError, match="missing must be one of 'error', 'drop', got 'ignore'"):
            AnchoredVerdicts.from_pandas(TABLE, missing="ignore")

    def test_repeats(self):
        twice = pd.concat([TABLE, TABLE.iloc[[2]]])
        message = r"1 verdict repeats .* model, judge, item \(first in row 4: model 'b', judge 'x', item .*\): "
        with pytest.raises(DataError, match=message + "name the column that numbers runs with run= .*--run.*, or drop"):
            AnchoredVerdicts.from_pandas(twice)
        with pytest.raises(DataError, match="a judge judges an answer once in each run, or drop the duplicates"):
            AnchoredVerdicts.from_pandas(twice.assign(run=1))
        assert len(AnchoredVerdicts.from_pandas(twice.assign(run=[1, 1, 1, 1, 2])).levels["run"]) == 2


class TestFiles:
    def test_errors_name_the_file(self, tmp_path):
        path = tmp_path / "verdicts.csv"
        TABLE.to_csv(path, index=False)
        with pytest.raises(DataError, match=r"verdicts\.csv: no column 'preference'"):
            read_anchored_verdicts(path, verdict="preference")
        with pytest.raises(FileNotFoundError):
            read_anchored_verdicts(tmp_path / "none.csv")

    def test_numbers_are_names(self, tmp_path):
        """Models named by numbers are names in a file."""
        path = tmp_path / "verdicts.csv"
        TABLE.assign(model=[1, 1, 2, 2], run=[0, 1, 0, 1]).to_csv(path, index=False)
        found = read_anchored_verdicts(path)
        assert list(found.levels["model"]) == ["1", "2"]
        assert list(found.levels["run"]) == [0, 1]


def test_a_judgment_retried_is_no_repeat_once_the_missing_one_is_dropped():
    rows = [("q", None), ("q", "win"), ("r", "loss"), ("s", "win"), ("s", "tie")]
    frame = pd.DataFrame(rows, columns=["item", "verdict"])
    found = AnchoredVerdicts.from_pandas(frame[:3], missing="drop")
    assert (found.outcome.tolist(), found.n_missing) == ([1.0, 0.0], 1)
    with pytest.raises(DataError, match=r"1 verdict repeats another .*first in row 4: item 's'"):
        AnchoredVerdicts.from_pandas(frame, missing="drop")


def test_numbers_in_a_column_of_objects():
    table = pd.DataFrame({"verdict": pd.Series([1, 0.5, None], dtype=object)})
    assert AnchoredVerdicts.from_pandas(table, missing="drop").outcome.tolist() == [1.0, 0.5]
    mixed = pd.DataFrame({"verdict": ["win", 1]})
    with pytest.raises(DataError, match=r"unknown labels: '1' \(1\).*numbers may not be mixed with labels"):
        AnchoredVerdicts.from_pandas(mixed)


@pytest.mark.parametrize("values", [
    pd.Series([1.0, 0.5, 0.25, 0.0]).astype("category"),
    pd.Series([Decimal("1"), Decimal("0.5"), Decimal("0.25"), Decimal("0")]),
    pd.Series([Decimal("1"), Decimal("0.5"), Decimal("0.25"), Decimal("0")], dtype=pd.ArrowDtype(pa.decimal128(4, 2))),
    pd.Series([Decimal("1"), 0.5, np.float32(0.25), 0], dtype=object),
])  # fmt: skip
def test_numbers_of_other_types(values):
    found = AnchoredVerdicts.from_pandas(TABLE.assign(verdict=values))
    np.testing.assert_array_equal(found.outcome, [1, 0.5, 0.25, 0])


def test_what_is_neither_label_nor_number():
    with pytest.raises(DataError, match=r"these are numbers as text: write them without quotes .* by .astype\(float\)"):
        AnchoredVerdicts.from_pandas(TABLE.assign(verdict=["1", "0.5", "0", "1"]))
    with pytest.raises(DataError, match="column 'verdict' holds values that are no labels"):
        AnchoredVerdicts.from_pandas(TABLE.assign(verdict=[["win"], ["tie"], ["win"], ["loss"]]))


def test_runs_without_prompts():
    table = TABLE.drop(columns="item").assign(run=[0, 1, 0, 1])
    message = r"column 'run' numbers repeated runs, but no column names their prompts: name it with item= \(on the .*"
    with pytest.raises(DataError, match=message):
        AnchoredVerdicts.from_pandas(table)
    assert AnchoredVerdicts.from_pandas(TABLE.assign(run=0)).named_items
    assert not AnchoredVerdicts.from_pandas(TABLE.drop(columns="item")).named_items


def test_repeats_for_want_of_a_column_of_models():
    table = TABLE.rename(columns={"model": "name"}).assign(item=np.arange(4) // 2, judge="x")
    message = (
        r"first in row 1: judge 'x', item 0; rows .* name the column of models with model= \(on the command line --mo"
    )
    with pytest.raises(DataError, match=message):
        AnchoredVerdicts.from_pandas(table)


class TestOtherWords:
    TABLE = pd.DataFrame({"Model": [*"xxyy"], "Item": [1, 2, 1, 2], "Verdict": ["good", "bad", "same", "good"]})

    def test_labels_say_what_they_mean(self):
        found = AnchoredVerdicts.from_pandas(self.TABLE, labels={"good": "win", "bad": "loss", "same": "tie"})
        assert found.outcome.tolist() == [1, 0, 0.5, 1]
        assert found.read_as == (
            "column 'Verdict': read as 'verdict'", "column 'Model': read as 'model'", "column 'Item': read as 'item'",
            "column 'verdict': read 'good' as win, 'bad' as loss, 'same' as tie",
        )  # fmt: skip
        assert all(sentence in str(found) for sentence in found.read_as)
        assert len(found.levels["item"]) == 2
        assert found.named_items

    def test_codings_of_numbers_and_words_in_another_case(self):
        numbers = self.TABLE.assign(Verdict=[0, 1, 0.5, 0])
        assert AnchoredVerdicts.from_pandas(numbers, labels="a_wins_0").outcome.tolist() == [1, 0, 0.5, 1]
        cased = self.TABLE.assign(Verdict=["Win", "LOSS", "Tie", "win"])
        assert AnchoredVerdicts.from_pandas(cased).outcome.tolist() == [1, 0, 0.5, 1]

    def test_what_they_do_not_know(self):
        with pytest.raises(DataError, match=r"unknown labels: .* on the command line --labels 'good=win,...'"):
            AnchoredVerdicts.from_pandas(self.TABLE)
        with pytest.raises(DataError, match=r"unknown labels: 'bad' \(1\), 'same' \(1\); labels= maps 'good'"):
            AnchoredVerdicts.from_pandas(self.TABLE, labels={"good": "win"})
        with pytest.raises(ValueError, match=r"labels must map each label to one of 'win', 'tie', 'loss', got 'great'"):
            AnchoredVerdicts.from_pandas(self.TABLE, labels={"good": "great"})
        with pytest.raises(ValueError, match=r"labels must map each label to one of 'win', .*, got an empty mapping"):
            AnchoredVerdicts.from_pandas(self.TABLE, labels={})
