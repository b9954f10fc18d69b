"""Fields within columns, by their paths, in every format that has them."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from arena_votes import arena_votes

from jaxeval import Battles, JudgedBattles, read_battles
from jaxeval.data.columns import Columns
from jaxeval.data.nested_columns import field_names, fields_of_rows, keys_of, value_at
from jaxeval.data.table_files import pieces
from jaxeval.errors import DataError

VOTES = arena_votes(60)
TURNS = [row["conv_metadata"]["turns"] for row in VOTES]


def parquet(rows, folder):
    pq.write_table(pa.Table.from_pylist(rows), folder / "votes.parquet")
    return folder / "votes.parquet"


def feather(rows, folder):
    pyarrow.feather.write_feather(pa.Table.from_pylist(rows), folder / "votes.feather")
    return folder / "votes.feather"


def lines(rows, folder):
    (folder / "votes.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder / "votes.jsonl"


def array(rows, folder):
    (folder / "votes.json").write_text(json.dumps(rows))
    return folder / "votes.json"


def mixed(rows, folder):
    """Lines that Arrow does not read: a column, of no concern, has values of two types."""
    return lines([{**row, "id": k if k % 2 else "x"} for k, row in enumerate(rows)], folder)


@pytest.fixture(params=[parquet, feather, lines, array, mixed])
def path(request, tmp_path):
    return request.param(VOTES, tmp_path)


def test_paths_of_a_schema():
    kind = pa.schema([("a", pa.struct([("b.c", pa.struct([("d", pa.int8())])), ("b", pa.int8())])), ("a.b", pa.int8())])
    assert field_names(kind) == ["a.b.c", "a.b", "a.b.c.d"]
    assert keys_of(kind, "a.b.c.d") == ["a", "b.c", "d"]
    assert keys_of(kind, "a.b") == ["a.b"]  # a column's own name comes first
    assert keys_of(kind, "a.c") == []
    row = {"a": {"b.c": {"d": 1}, "b": 2}, "a.b": 3}
    assert sorted(fields_of_rows([row])) == sorted(field_names(kind))
    assert [value_at(row, name) for name in ("a.b.c.d", "a.b", "a.c", "x.y")] == [1, 3, None, None]


class TestFiles:
    def test_every_column_may_be_a_field(self, path):
        rows = [{"who": {"a": r["model_a"], "b": r["model_b"]}, "vote": {"winner": r["winner"]}, **r} for r in VOTES]
        rows = [{key: x for key, x in row.items() if key not in ("model_a", "model_b", "winner")} for row in rows]
        written = {".parquet": parquet, ".feather": feather, ".jsonl": lines, ".json": array}[path.suffix]
        nested = read_battles(
            written(rows, path.parent), model_a="who.a", model_b="who.b", winner="vote.winner",
            cluster="conv_metadata.turns", weight="conv_metadata.turns",
        )  # fmt: skip
        flat = Battles.from_pandas(pd.DataFrame(VOTES).assign(turns=TURNS), cluster="turns", weight="turns")
        assert nested.target.tolist() == flat.target.tolist()
        assert nested.weight.tolist() == flat.weight.tolist()
        assert list(nested.models) == list(flat.models)
        assert nested.codes("conv_metadata.turns")[0].tolist() == flat.codes("turns")[0].tolist()

    def test_kept_fields_and_conditions(self, path):
        math = "category_tag.math_v0.1.math"
        where = 'conv_metadata.turns > 1 AND NOT category_tag."math_v0.1".math'
        battles = read_battles(path, keep=["conv_metadata.turns", math], where=where)
        expected = [r["conv_metadata"]["turns"] > 1 and not r["category_tag"]["math_v0.1"]["math"] for r in VOTES]
        assert battles.report.n_excluded == 60 - sum(expected)
        assert battles.column("conv_metadata.turns").tolist() == np.array(TURNS)[expected].tolist()
        assert not battles.column(math).any()
        assert battles.filter('"conv_metadata.turns" = 3').n_battles == np.sum(np.array(TURNS)[expected] == 3)

    def test_a_path_that_leads_nowhere(self, path):
        message = (
            r"no column 'conv_metadata.turn' in the table; its columns are .*; within 'conv_metadata' there are .*"
            r"; did you mean 'conv_metadata.turns'"
        )
        with pytest.raises(DataError, match=message):
            read_battles(path, keep=["conv_metadata.turn"])
        with pytest.raises(DataError, match=r"no column 'language.x' in the table; its columns are .*did you mean"):
            read_battles(path, keep=["language.x"])

    @pytest.mark.parametrize("write", [lines, array, mixed, parquet])
    def test_missing_fields_are_missing_values(self, write, tmp_path):
        rows = [{**row, "conv_metadata": {"turns": 1} if k % 3 else {}} for k, row in enumerate(VOTES)]
        rows[5]["conv_metadata"] = None
        battles = read_battles(write(rows, tmp_path), keep=["conv_metadata.turns"])
        expected = np.arange(60) % 3 == 0
        expected[5] = True
        assert battles.column("conv_metadata.turns").isna().tolist() == expected.tolist()
        with pytest.raises(DataError, match=r"column 'conv_metadata.turns' has 21 missing values"):
            battles.codes("conv_metadata.turns", "error")

    def test_a_name_with_a_dot_comes_before_the_path(self, path):
        rows = [{**row, "conv_metadata.turns": 7} for row in VOTES]
        written = {".parquet": parquet, ".feather": feather, ".jsonl": lines, ".json": array}[path.suffix]
        battles = read_battles(written(rows, path.parent), keep=["conv_metadata.turns"])
        assert set(battles.column("conv_metadata.turns")) == {7}

    def test_other_spellings(self, path):
        battles = read_battles(path, keep=["Conv Metadata.Turns"])
        assert battles.column("Conv Metadata.Turns").tolist() == TURNS
        assert "column 'conv_metadata.turns': read as 'Conv Metadata.Turns'" in battles.report.read_as

    def test_only_the_field_is_read(self, tmp_path, monkeypatch):
        asked = []
        read = pq.ParquetFile.iter_batches
        monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *x, **how: asked.append(how) or read(*x, **how))
        read_battles(parquet(VOTES, tmp_path), keep=["conv_metadata.turns"])
        assert sorted(asked[0]["columns"]) == ["conv_metadata.turns", "model_a", "model_b", "winner"]

    def test_objects_whose_fields_differ_between_pieces(self, tmp_path, monkeypatch):
        monkeypatch.setattr("jaxeval.data.json_lines._PIECE_BYTES", 4096)
        rows = [{**row, "category_tag": {"math_v0.1": {"math": True}} if k > 30 else {}} for k, row in enumerate(VOTES)]
        path = lines(rows, tmp_path)
        assert len(list(pieces(path, Columns(("winner",)), (), {}))) > 1
        battles = read_battles(path, keep=["category_tag"])
        assert np.bincount(battles.members("category_tag").codes).tolist() == [60, 29]


class TestTables:
    def test_objects_of_python(self):
        frame = pd.DataFrame(VOTES)
        battles = Battles.from_pandas(frame, weight="conv_metadata.turns", where="conv_metadata.turns > 1")
        assert battles.weight.tolist() == [n for n in TURNS if n > 1]
        assert Battles.from_pandas(frame, keep=["conv_metadata.turns"]).columns.columns.tolist() == [
            "conv_metadata.turns"
        ]
        with pytest.raises(DataError, match=r"no field 'conv_metadata.turn' in the table; within 'conv_metadata' ther"):
            battles.column("conv_metadata.turn")
        with pytest.raises(DataError, match=r"no field 'category_tag.math' .*did you mean 'category_tag.math_v0.1'"):
            Battles.from_pandas(frame, cluster="category_tag.math")
        with pytest.raises(DataError, match=r"condition 'conv_metadata.turn = 1': no field 'conv_metadata.turn'"):
            battles.filter("conv_metadata.turn = 1")

    def test_saved_and_joined(self, tmp_path):
        battles = read_battles(parquet(VOTES, tmp_path), keep=["conv_metadata", "category_tag"])
        battles.save(tmp_path / "saved.parquet")
        twice = Battles.concat([battles, Battles.load(tmp_path / "saved.parquet")])
        assert twice.n_battles == 120
        assert twice.column("conv_metadata.turns").tolist() == TURNS * 2
        assert twice.members("category_tag").groups.equals(battles.members("category_tag").groups)

    def test_judged_battles(self):
        frame = pd.DataFrame(VOTES).rename(columns={"model_a": "Model A", "winner": "Human"})
        frame = frame.assign(scores=[{"a": 1.0, "b": 2.0}] * 60)
        battles = JudgedBattles.from_pandas(
            frame, scores_a="scores.a", scores_b="scores.b", label_coding="labels"
        )  # fmt: skip
        assert set(battles.score_difference) == {-1.0}
        assert battles.report.n_human == 60
        assert "column 'Model A': read as 'model_a'" in battles.report.read_as
        assert battles.column("conv_metadata.turns").tolist() == TURNS


class TestNaN:
    @pytest.mark.parametrize("kind", [float, "Float64", pd.ArrowDtype(pa.float64())])
    def test_no_condition_holds_for_what_is_no_number(self, kind):
        column = pd.Series(pd.arrays.ArrowExtensionArray(pa.array([1.0, np.nan, None, 3.0] * 15)))
        votes = pd.DataFrame(VOTES).assign(x=column.astype(kind))
        assert Battles.from_pandas(votes, where="x > 2").n_battles == 15
        assert Battles.from_pandas(votes, where="x IS NULL").n_battles == 30
