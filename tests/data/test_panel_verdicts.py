"""Verdicts of panels: the same rows from every form that they come in."""

import numpy as np
import pandas as pd
import pytest

import jaxeval
from jaxeval import Battles, DataError
from jaxeval.data.panel_verdicts import ROW, PanelColumns, panel_rows

LONG = jaxeval.simulate_panel(40, 4, discriminations=[1.0, 2.0], seed=0)


def said(rows):
    """Who said what, row by row, whatever the order of rows."""
    a, b = (rows.models[side] for side in (rows.model_a, rows.model_b))
    return sorted(zip(rows.judges[rows.judge], a, b, rows.target.tolist(), strict=True))


def wide():
    """A column of verdicts for each judge."""
    one, two = (LONG[LONG["judge"] == judge].reset_index() for judge in ("judge-1", "judge-2"))
    return one[["item", "model_a", "model_b"]].assign(**{"judge-1": one["verdict"], "judge-2": two["verdict"]})


EXPECTED = said(panel_rows(LONG, PanelColumns()))


class TestTables:
    def test_battles(self):
        rows = panel_rows(Battles.from_pandas(LONG.rename(columns={"verdict": "winner"})), PanelColumns())
        assert said(rows) == EXPECTED
        assert rows.item == "item"
        assert list(rows.judges) == ["judge-1", "judge-2"]

    def test_a_column_for_each_judge(self):
        rows = panel_rows(wide(), PanelColumns(judges=["judge-1", "judge-2"]))
        assert said(rows) == EXPECTED
        assert rows.item == "item"

    def test_rows_are_items_where_a_column_for_each_judge_is_all(self):
        rows = panel_rows(wide().drop(columns="item"), PanelColumns(judges=["judge-1", "judge-2"]))
        assert said(rows) == EXPECTED
        assert rows.item == ROW
        assert rows.codes(ROW)[0].max() == 39

    def test_missing_verdicts_are_told(self):
        table = wide()
        table.loc[:4, "judge-1"] = None
        rows = panel_rows(table, PanelColumns(judges=["judge-1", "judge-2"]))
        assert rows.n_battles == 75
        assert "5 verdicts missing: left out" in str(rows.report)

    def test_both_orders_in_a_row(self):
        table = LONG.rename(columns={"verdict": "verdict_a_first"}).assign(verdict_b_first="tie")
        rows = panel_rows(table, PanelColumns())
        assert rows.n_battles == 160
        ours = rows.target != 0.5
        assert said(panel_rows(rows.filter(ours), PanelColumns())) == EXPECTED
        assert (rows.model_a[~ours] == rows.model_b[ours]).all()

    def test_who_was_shown_first(self):
        swapped = LONG.rename(columns={"model_a": "model_b", "model_b": "model_a"})
        swapped["verdict"] = LONG["verdict"].replace({"model_a": "model_b", "model_b": "model_a"})
        swapped["order"] = "swapped"
        assert said(panel_rows(swapped, PanelColumns(shown_first="order"))) == EXPECTED

    def test_other_names_and_codes(self):
        table = LONG.rename(columns={"judge": "who", "item": "what", "verdict": "winner"})
        table["winner"] = (table["winner"] == "model_a").astype(int)
        rows = panel_rows(table, PanelColumns(judge="who", item="what", label_coding="a_wins_1"))
        assert said(rows) == EXPECTED
        assert rows.item == "what"


class TestJudges:
    def test_what_they_printed(self):
        table = jaxeval.simulate_judge_outputs(30, 4, judge_noise=[0.5, 2.0], seed=1).assign(lang="en")
        outputs = jaxeval.JudgeOutputs.from_pandas(table)
        rows = panel_rows(outputs, PanelColumns())
        assert rows.n_battles == len(outputs.calls) == 120
        assert set(rows.column("lang")) == {"en"}
        first = outputs.calls["shown_first"] == "model_a"
        shown = np.where(first, outputs.calls["model_a"], outputs.calls["model_b"])
        np.testing.assert_array_equal(rows.models[rows.model_a], shown)
        again = panel_rows(outputs.battles, PanelColumns())
        assert said(again) == said(rows)
        judged = {name: outputs.judged(name, hard_label="verdict") for name in outputs.judges}
        assert said(panel_rows(judged, PanelColumns())) == said(rows)

    def test_scores(self):
        battles = jaxeval.simulate_judged_battles(50, 4, seed=0)
        rows = panel_rows(battles, PanelColumns())
        assert rows.n_battles == 2 * 50 if battles.orders is not None else 50
        assert list(rows.judges) == [battles.judge_name]


class TestErrors:
    @pytest.mark.parametrize(("table", "where", "told"), [
        (LONG.drop(columns="judge"), {}, "judges="),
        (LONG.iloc[:0], {}, "no rows"),
        (LONG.assign(judge=None), {}, "'judge'"),
        (LONG.assign(verdict=None), {}, "no verdict"),
        (LONG.assign(verdict="x?"), {}, "'verdict'"),
        (LONG, {"judge": "whom"}, "'whom'"),
        (LONG, {"item": "prompt"}, "'prompt'"),
        (LONG, {"judges": ["verdict", "verdict"]}, "named twice"),
        (LONG, {"judges": []}, "no column of verdicts"),
        (LONG.assign(verdict=1), {}, "label_coding"),
    ])  # fmt: skip
    def test_say_what_helps(self, table, where, told):
        with pytest.raises(DataError, match=told):
            panel_rows(table, PanelColumns(**where))

    def test_of_mappings(self):
        with pytest.raises(TypeError, match="JudgedBattles"):
            panel_rows({"a": LONG}, PanelColumns())
        with pytest.raises(DataError, match="empty"):
            panel_rows({}, PanelColumns())


def test_cells_are_contests():
    rows = panel_rows(pd.concat([LONG, LONG]), PanelColumns())
    cells = rows.cells
    assert cells.count.sum() == 160
    assert len(set(zip(cells.judge, cells.first, cells.second, strict=True))) == len(cells.first)
    plain = Battles.from_pandas(pd.concat([LONG, LONG]).rename(columns={"verdict": "winner"})).cells
    for found, expected in zip(cells.pooled.tables(4), plain.tables(4), strict=True):
        np.testing.assert_array_equal(found, expected)
