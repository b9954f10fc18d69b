"""Reading battles from files: every format gives the battles of the same table in memory, or a clear error."""

import gzip
import json
import os
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from jaxeval import Battles, DataError, fit_bradley_terry, read_battles
from jaxeval.data.readers import battles_in
from jaxeval.lazy_names import called_once
from jaxeval.plain_tables import PlainTable

VOTES = pd.DataFrame(
    {
        "model_a": ["gpt", "gpt", "NA", "null", "007"],
        "model_b": ["NA", "null", "null", "gpt", "gpt"],
        "winner": ["model_a", "tie", "both_bad", "model_b", "tie (bothbad)"],
        "language": ["en", "NA", "en", "nan", "None"],
        "turns": [1, 2, 3, 1, 2],
        "w": [1.0, 2.0, 0.5, 1.0, 0.0],
    }
)
FORMATS = ["parquet", "pq", "csv", "csv.gz", "tsv", "tsv.gz", "jsonl", "jsonl.gz", "ndjson", "ndjson.gz"]


def write(frame, path):
    """``frame`` in the format of the ending of ``path``."""
    name = path.name.lower()
    if name.endswith(("parquet", "pq")):
        frame.to_parquet(path)
        return path
    if "json" in name:
        text = frame.to_json(orient="records", lines=True)
    else:
        text = frame.to_csv(index=False, sep="\t" if ".tsv" in name else ",")
    return write_text(text, path)


def write_text(text, path):
    binary = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(binary) if path.name.lower().endswith(".gz") else binary)
    return path


def assert_equal_battles(one, other):
    assert one.models.tolist() == other.models.tolist()
    np.testing.assert_array_equal(one.model_a, other.model_a)
    np.testing.assert_array_equal(one.model_b, other.model_b)
    np.testing.assert_array_equal(one.target, other.target)
    assert (one.weight is None) == (other.weight is None)
    if one.weight is not None:
        np.testing.assert_array_equal(one.weight, other.weight)
    assert one.report == other.report


def message(path, **options):
    with pytest.raises(DataError) as caught:
        read_battles(path, **options)
    return str(caught.value)


class TestFormats:
    @pytest.mark.parametrize("ending", FORMATS)
    def test_round_trip(self, ending, tmp_path):
        path = write(VOTES, tmp_path / f"votes.{ending}")
        battles = read_battles(path, weight="w", keep=["language", "turns"])
        expected = Battles.from_pandas(VOTES, weight="w")
        assert_equal_battles(battles, expected)
        assert battles.columns.columns.tolist() == ["language", "turns"]
        for column in ("language", "turns", ["turns", "language"]):
            codes, groups = battles.codes(column)
            expected_codes, expected_groups = expected.codes(column)
            assert list(groups) == list(expected_groups)
            assert codes.tolist() == expected_codes.tolist()

    def test_options_are_passed_on(self, tmp_path):
        renamed = VOTES.rename(columns={"model_a": "left", "model_b": "right", "winner": "human"})
        path = write(renamed, tmp_path / "votes.csv")
        battles = read_battles(path, model_a="left", model_b="right", winner="human", both_bad="drop", cluster="turns")
        expected = Battles.from_pandas(VOTES, both_bad="drop")
        assert_equal_battles(battles, expected)
        assert battles.cluster == "turns"
        assert battles.codes("turns")[0].tolist() == [0, 1, 0]

    @pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
    def test_soft_targets(self, ending, tmp_path):
        soft = VOTES.drop(columns="winner").assign(target=[0.1, 1 / 3, 0.5, 1.0, 1e-17], judge=[1, 0, 0, 1, 0.25])
        path = write(soft, tmp_path / f"votes.{ending}")
        tolerance = 1e-9 if "json" in ending else 0  # pandas writes ten decimals to JSON
        np.testing.assert_allclose(read_battles(path).target, soft.target, rtol=0, atol=tolerance)
        np.testing.assert_array_equal(read_battles(path, target="judge").target, soft.judge)

    @pytest.mark.parametrize("name", ["VOTES.CSV", "Votes.Parquet", "votes.JSONL", "VOTES.CSV.GZ", "votes.jsonl.GZ"])
    def test_endings_in_capitals(self, name, tmp_path):
        assert_equal_battles(read_battles(write(VOTES, tmp_path / name)), Battles.from_pandas(VOTES))


COMMANDS = [
    {}, {"weight": "w"}, {"count": "turns"}, {"both_bad": "drop"}, {"where": "language = 'en' OR turns = 2"},
    {"missing": "drop"}, {"keep": ["language", "turns"]}, {"model_a": "language", "model_b": "winner", "target": "w"},
]  # fmt: skip


class TestColumns:
    @pytest.mark.parametrize("options", COMMANDS)
    @pytest.mark.parametrize("ending", ["parquet", "csv"])
    def test_a_command_reads_the_same_without_pandas(self, tmp_path, ending, options):
        voters = VOTES.assign(voter=list("xyxzz"), w=[1.0, 0.0, 0.5, 1.0, 0.0])
        path = write(voters, tmp_path / f"votes.{ending}")
        usual = read_battles(path, **options)
        light = battles_in(path, plain=True, **options)
        with called_once():  # other commands ask for what only pandas has
            assert isinstance(read_battles(path, **options).columns, pd.DataFrame)
        assert isinstance(light.columns, PlainTable)
        assert_equal_battles(light, usual)
        one, other = (battles.to_pandas().astype(object) for battles in (light, usual))
        pd.testing.assert_frame_equal(one, other)
        assert light.column("voter").tolist() == usual.column("voter").tolist()
        assert_equal_battles(light.filter(exclude=[light.models[0]]), usual.filter(exclude=[usual.models[0]]))

    @pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
    def test_columns_that_are_not_needed_are_not_read(self, ending, tmp_path):
        path = write(VOTES, tmp_path / f"votes.{ending}")
        assert read_battles(path).columns.shape[1] == 0
        assert read_battles(path, keep=["turns"]).columns.columns.tolist() == ["turns"]

    @pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
    def test_few_voters_are_told_and_not_kept(self, ending, tmp_path, monkeypatch):
        """A column says that one of 40 voters cast a third of the votes; merged rows do not know their voters."""
        votes = pd.concat([VOTES] * 40, ignore_index=True)
        voter = np.where(np.arange(len(votes)) % 3 == 0, 0, np.arange(len(votes)) % 60)
        votes["User ID"] = [f"user {k}" for k in voter]
        sizes = votes["User ID"].value_counts().to_numpy()
        path = write(votes, tmp_path / f"votes.{ending}")
        battles = read_battles(path)
        assert battles.columns.shape[1] == 0
        column, n, n_effective, _ = battles.report._voters
        assert (column, n) == ("User ID", len(sizes))
        assert n_effective == pytest.approx(sizes.sum() ** 2 / (sizes**2).sum(), rel=0.1)  # some rows hold no battle
        (told,) = [told for told in fit_bradley_terry(battles).warnings if "who voted" in told]
        assert "--cluster 'User ID'" in told
        assert f"worth {n_effective:.0f}" in told
        assert not any("who voted" in told for told in fit_bradley_terry(battles, cluster="User ID").warnings)
        lists = write(votes.assign(**{"User ID": [[k] for k in voter]}), tmp_path / "lists.parquet")
        assert read_battles(lists).report._voters is None
        several = read_battles([path, write(VOTES, tmp_path / "more.csv")])
        assert several.report._voters is None
        monkeypatch.setattr("jaxeval.data.equal_rows._PIECE_ROWS", 50)
        merged = read_battles(path)
        assert merged.report._voters is None
        assert merged.n_rows < battles.n_rows
        assert merged.n_battles == battles.n_battles

    def test_voters_of_odd_types_stop_nothing(self, tmp_path):
        """Json lines in which a column that nobody asked for mixes types."""
        rows = [{**row, "user": {"k": 1} if k % 2 else "x"} for k, row in enumerate(VOTES.to_dict("records"))]
        path = write_text("\n".join(json.dumps(row, default=str) for row in rows), tmp_path / "votes.jsonl")
        assert read_battles(path).n_battles == read_battles(write(VOTES, tmp_path / "votes.csv")).n_battles

    @pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
    def test_a_column_is_read_when_it_is_asked_for(self, ending, tmp_path):
        """From the file that the battles are from, for the rows that are left of them; not of another file."""
        path = write(VOTES, tmp_path / f"votes.{ending}")
        whole = read_battles(path, keep=["language"])
        for battles in (read_battles(path), read_battles(path, keep=["turns"])):
            assert battles.column("language").tolist() == whole.column("language").tolist()
            some = battles.filter(exclude=[battles.models[0]])
            assert (
                some.column("language").tolist()
                == whole.filter(exclude=[battles.models[0]]).column("language").tolist()
            )
        with pytest.raises(DataError, match=r"'langauge' to group battles by"):
            read_battles(path).codes("langauge")
        several, late = read_battles([path, write(VOTES, tmp_path / "more.csv")]), read_battles(path)
        write(VOTES.iloc[::-1], path)  # another file by now
        for battles in (several, late):
            with pytest.raises(DataError, match=r"'language'.*keep="):
                battles.codes("language")

    @pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
    def test_other_columns_of_any_content(self, ending, tmp_path):
        """A conversation, as the dumps hold it, is skipped whatever is in it."""
        odd = VOTES.assign(conversation=[[{"role": "user", "content": 'hi,\n"you"'}]] * 5, empty=None)
        assert_equal_battles(read_battles(write(odd, tmp_path / f"votes.{ending}")), Battles.from_pandas(VOTES))

    def test_json_lines_whose_other_columns_change_type(self, tmp_path):
        rows = VOTES.assign(note=["text", 1, None, [1, 2], {"a": 1}]).to_dict("records")
        path = write_text("\n".join(map(json.dumps, rows)), tmp_path / "votes.jsonl")
        assert_equal_battles(read_battles(path), Battles.from_pandas(VOTES))

    @pytest.mark.parametrize("ending", ["csv", "jsonl", "jsonl.gz"])
    def test_lines_longer_than_a_megabyte(self, ending, tmp_path):
        path = write(
            VOTES.assign(conversation=["short"] * 3 + ["x" * 1_500_000, "short"]), tmp_path / f"votes.{ending}"
        )
        assert_equal_battles(read_battles(path), Battles.from_pandas(VOTES))

    def test_battles_of_a_file_are_pickled_with_their_further_columns(self, tmp_path):
        battles = read_battles(write(VOTES, tmp_path / "votes.csv"))
        battles.column("language")
        for again in (pickle.loads(pickle.dumps(battles)), pickle.loads(pickle.dumps(battles.filter(exclude=[])))):
            assert_equal_battles(again, battles)
            for name in ("language", "turns"):  # one read before, one not
                assert again.column(name).tolist() == battles.column(name).tolist()

    def test_several_files_have_further_columns(self, tmp_path):
        parts = [write(VOTES[:3], tmp_path / "1.csv"), write(VOTES[3:], tmp_path / "2.parquet")]
        for battles in (read_battles(parts), read_battles(tmp_path / "[12].*")):
            assert battles.column("language").tolist() == VOTES["language"].tolist()
            with pytest.raises(DataError, match="no column 'tongue'"):
                battles.column("tongue")

    @pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
    def test_keep_names_a_column_that_is_not_there(self, ending, tmp_path):
        path = write(VOTES, tmp_path / f"votes.{ending}")
        found = message(path, keep=["langauge"])
        assert "'langauge'" in found
        assert "'language'" in found

    def test_keep_must_be_a_list(self, tmp_path):
        with pytest.raises(TypeError, match="list of column names, got the string 'language'"):
            read_battles(write(VOTES, tmp_path / "votes.csv"), keep="language")

    @pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
    @pytest.mark.parametrize(("renamed", "told"), [
        ({"model_a": "Modell"}, ["'model_a'", "(name your own: model_a=, on the command line --model-a)"]),
        ({"winner": "outcome"}, ["no result column: expected 'winner', 'target', the one-hot columns"]),
    ])  # fmt: skip
    def test_a_missing_column_is_told_with_those_of_the_file(self, ending, renamed, told, tmp_path):
        found = message(write(VOTES.rename(columns=renamed), tmp_path / f"votes.{ending}"))
        for part in (f"votes.{ending}", *map(repr, renamed.values()), *told):
            assert part in found

    def test_a_csv_column_that_is_there_twice(self, tmp_path):
        text = "model_a,model_b,winner,winner\na,b,model_a,model_b\n"
        assert "winner" in message(write_text(text, tmp_path / "votes.csv"))

    @pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
    @pytest.mark.parametrize("result", ["winner", "target", "winner_model_a"])
    def test_counts_beside_a_result_must_be_named(self, ending, result, tmp_path):
        results = {
            "winner": {"winner": "tie"},
            "target": {"target": 0.5},
            "winner_model_a": {"winner_model_a": 0, "winner_model_b": 0, "winner_tie": 1},
        }[result]
        frame = pd.DataFrame({"model_a": ["a", "b"], "model_b": ["b", "c"], **results, "count": [3, 4]})
        path = write(frame, tmp_path / f"votes.{ending}")
        found = message(path)
        assert found.startswith(
            f"votes.{ending}: the table has a column 'count' beside '{result}': if it says how many"
        )
        assert "--count count" in found
        assert result == "winner_model_a" or f"{result}='{result}', on the command line --{result} {result}" in found
        assert message(path, keep=["count"]) == found
        with pytest.raises(DataError) as caught:
            Battles.from_pandas(frame)
        assert found == f"votes.{ending}: {caught.value}"
        assert read_battles(path, count="count").n_battles == 7
        if result != "winner_model_a":
            assert read_battles(path, **{result: result}).n_battles == 2

    @pytest.mark.parametrize("index", ["voter", "model_a", ["model_a", "voter"]])
    def test_columns_that_pandas_saved_as_an_index(self, index, tmp_path):
        frame = VOTES.assign(voter=[3, 1, 4, 1, 5])
        frame.set_index(index).to_parquet(tmp_path / "indexed.parquet")
        plain = write(frame, tmp_path / "plain.parquet")
        expected = Battles.from_pandas(pd.concat([frame, frame]), cluster="voter")
        for paths in ([plain, tmp_path / "indexed.parquet"], [tmp_path / "indexed.parquet", plain]):
            battles = read_battles(paths, cluster="voter")
            (said,) = battles.report.read_as
            assert said.endswith(": they count again, which is right for other votes only")
            assert_equal_battles(replace(battles, report=replace(battles.report, read_as=())), expected)
            assert battles.codes("voter")[0].tolist() == expected.codes("voter")[0].tolist()

    def test_tables_are_not_files(self):
        with pytest.raises(TypeError, match=r"reads files, got a DataFrame: Battles\.from_pandas reads tables"):
            read_battles(VOTES)
        with pytest.raises(TypeError, match="got str; read the file first, by read_battles"):
            Battles.from_pandas("votes.parquet")


class TestText:
    """What CSV readers like to guess wrong."""

    def test_numbers_as_model_names_stay_text(self, tmp_path):
        text = "model_a,model_b,winner\n1,01,model_a\n1.0,1,tie\n1e3,true,model_b\n2024-01-01,1,tie\n"
        battles = read_battles(write_text(text, tmp_path / "votes.csv"))
        assert battles.models.tolist() == ["01", "1", "1.0", "1e3", "2024-01-01", "true"]

    def test_named_label_columns_stay_text(self, tmp_path):
        text = "left,right,verdict\n1,2,0\n2,1,1\n"
        found = message(write_text(text, tmp_path / "votes.csv"), model_a="left", model_b="right", winner="verdict")
        assert "'0' (1), '1' (1)" in found

    def test_numbers_in_json_stay_numbers(self, tmp_path):
        rows = VOTES.assign(model_a=[1, 2, 3, 10, 2], model_b=[2, 3, 1, 2, 10])
        assert read_battles(write(rows, tmp_path / "votes.jsonl")).models.tolist() == [1, 2, 3, 10]

    @pytest.mark.parametrize("numbers", [[2**63, 2**63 + 1, 2**63 + 2], [2**53, 2**53 + 1, 0.5]])
    def test_numbers_that_doubles_do_not_tell_apart(self, numbers, tmp_path):
        rows = VOTES[:3].assign(voter=[str(number) for number in numbers])
        battles = read_battles(write(rows, tmp_path / "votes.csv"), keep=["voter"])
        assert list(battles.codes("voter")[1]) == sorted(rows["voter"])
        lines = [json.dumps(row | {"voter": n}) for row, n in zip(rows.to_dict("records"), numbers, strict=True)]
        found = message(write_text("\n".join(lines), tmp_path / "votes.jsonl"), keep=["voter"])
        assert "column 'voter'" in found
        assert "write them as text" in found

    def test_large_whole_numbers_beside_missing_ones(self, tmp_path):
        rows = VOTES.assign(voter=pd.array([2**53, 2**53 + 1, 2**53, None, 1], dtype="Int64"))
        path = write(rows[["model_a", "model_b", "winner", "voter"]], tmp_path / "votes.parquet")
        assert read_battles(path, keep=["voter"]).column("voter").nunique() == 3

    def test_names_that_look_like_dates(self, tmp_path):
        """Only in the column of models, and whatever else is there."""
        names = ["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-02", "2024-01-01"]
        rows = VOTES.assign(model_a=names, language=3)
        path = write(rows.assign(note="winner"), tmp_path / "votes.jsonl")
        assert read_battles(path).models.tolist() == sorted({*names, *VOTES["model_b"]})
        rows = rows.drop(columns="winner").assign(target=0.5, note="winner")
        assert read_battles(write(rows, tmp_path / "votes.jsonl")).report.n_ties == 5

    def test_quoted_commas_quotes_and_newlines(self, tmp_path):
        names = ["a,b", "line\nbreak", 'say "hi"', "tab\there", "plain"]
        rows = pd.DataFrame({"model_a": names, "model_b": names[1:] + names[:1], "winner": "tie"})
        for ending in ("csv", "tsv", "jsonl", "parquet"):
            battles = read_battles(write(rows, tmp_path / f"votes.{ending}"))
            assert battles.models.tolist() == sorted(names)
            assert battles.n_battles == 5

    @pytest.mark.parametrize("empty", ["", '""'])
    def test_an_empty_field_is_missing(self, empty, tmp_path):
        text = f"model_a,model_b,winner\na,b,tie\nb,{empty},model_a\nb,a,model_a\n"
        found = message(write_text(text, tmp_path / "votes.csv"))
        assert "'model_b' has 1 missing value (first in row 1; rows count from 0)" in found
        assert found.startswith("votes.csv: ")


class TestBadFiles:
    def test_pipes(self, tmp_path):
        """They were told to be empty, or were waited for."""
        os.mkfifo(tmp_path / "votes.csv")
        with pytest.raises(DataError, match=r"^votes.csv is a pipe, which cannot be read twice: write its content"):
            read_battles(tmp_path / "votes.csv")
        with pytest.raises(DataError, match="null is a device or a socket, which cannot be read twice"):
            read_battles("/dev/null")

    @pytest.mark.parametrize("name", ["votes", "votes.csv.zip"])
    def test_unknown_content(self, name, tmp_path):
        found = message(write_text("what is this?\n", tmp_path / name))
        for fragment in (name, "unknown file type", ".parquet", ".csv", ".gz", ".jsonl"):
            assert fragment in found

    @pytest.mark.parametrize("ending", FORMATS)
    def test_empty_file_and_garbage(self, ending, tmp_path):
        found = message(write_text("", tmp_path / f"votes.{ending}"))
        assert f"votes.{ending}" in found
        assert "empty" in found.lower() or "0 bytes" in found
        garbage = np.random.default_rng(0).bytes(5000)
        assert f"votes.{ending}" in message(write_text(garbage, tmp_path / f"votes.{ending}"))

    @pytest.mark.parametrize("ending", ["csv", "jsonl", "jsonl.gz"])
    def test_blank_lines_only(self, ending, tmp_path):
        assert f"votes.{ending}" in message(write_text("\n\n\n", tmp_path / f"votes.{ending}"))

    @pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "parquet"])
    def test_header_only(self, ending, tmp_path):
        found = message(write(VOTES.iloc[:0], tmp_path / f"votes.{ending}"))
        assert found == f"votes.{ending}: the table has no rows: nothing to rate"

    def test_rows_of_different_lengths(self, tmp_path):
        found = message(write_text("model_a,model_b,winner\na,b,tie\na,b\n", tmp_path / "votes.csv"))
        assert "1 row lacks a model or a result" in found
        found = message(write_text("model_a,model_b,winner\na,b,tie\na,b,tie,1\n", tmp_path / "votes.csv"))
        assert "Expected 3 columns, got 4" in found

    def test_the_line_that_is_no_json_is_named(self, tmp_path):
        lines = ['{"model_a": "a", "model_b": "b", "winner": "tie", "id": 1}'] * 3
        lines += ['{"model_a": "a", "model_b": "b", "winner": "tie", "id": "x"}', '{"model_a": "a", "mod']
        found = message(write_text("\n".join(lines), tmp_path / "votes.jsonl"))
        assert "votes.jsonl: line 5 cannot be read as JSON" in found

    def test_names_of_several_types_in_json_lines(self, tmp_path):
        lines = ['{"model_a": "a", "model_b": "b", "winner": "tie"}', '{"model_a": 1, "model_b": "b", "winner": "tie"}']
        found = message(write_text("\n".join(lines), tmp_path / "votes.jsonl"))
        assert "column 'model_a' mixes values of types str (1), int (1)" in found

    def test_a_quote_that_does_not_end(self, tmp_path):
        text = 'model_a,model_b,winner\n"a,b,tie\n' + "a,b,tie\n" * 500_000
        assert "a quoted value does not end" in message(write_text(text, tmp_path / "votes.csv"))
        assert "end every quoted value" in message(write_text(text[:100], tmp_path / "votes.csv"))

    def test_the_ending_alone_tells_tabs(self, tmp_path):
        assert read_battles(write_text(VOTES.to_csv(index=False), tmp_path / "x.tsv.copy.csv")).n_battles == 5

    @pytest.mark.parametrize("ending", ["csv", "parquet"])
    def test_a_folder(self, ending, tmp_path):
        (tmp_path / f"votes.{ending}").mkdir()
        with pytest.raises(DataError, match="the folder holds no file; known endings are"):
            read_battles(tmp_path / f"votes.{ending}")
        with pytest.raises(DataError, match="is a folder, and no file: name a file in it"):
            Battles.load(tmp_path / f"votes.{ending}")
