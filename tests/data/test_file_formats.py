"""Tables in every format, by their endings and by their content."""

import bz2
import gzip
import io
import json
import re
import shutil
import zipfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from command_line import run

from jaxeval import Battles, read_battles, read_scores
from jaxeval.data.file_formats import FileFormat, Kind, format_of
from jaxeval.data.table_files import column_names, head_names
from jaxeval.errors import DataError

VOTES = pd.DataFrame({"model_a": list("xyzx"), "model_b": list("yzxz"), "winner": ["model_a", "model_b", "tie", "tie"],
                      "turn": [1, 2, 1, 1]})  # fmt: skip
CSV = VOTES.to_csv(index=False)
LINES = VOTES.to_json(orient="records", lines=True)
ARRAY = VOTES.to_json(orient="records", indent=1)


def zstd(text):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(text.encode())
    return sink.getvalue().to_pybytes()


CONTENTS = {
    "csv": CSV.encode(),
    "csv.gz": gzip.compress(CSV.encode()),
    "csv.bz2": bz2.compress(CSV.encode()),
    "tsv": VOTES.to_csv(index=False, sep="\t").encode(),
    "jsonl": LINES.encode(),
    "jsonl.zst": zstd(LINES),
    "json": ARRAY.encode(),
    "json.gz": gzip.compress(ARRAY.encode()),
    "ndjson.bz2": bz2.compress(LINES.encode()),
}


def write(folder, ending, name="votes."):
    path = folder / f"{name}{ending}"
    if ending == "parquet":
        VOTES.to_parquet(path)
    elif ending == "feather":
        VOTES.to_feather(path)
    elif ending == "xlsx":
        VOTES.to_excel(path, index=False)
    else:
        path.write_bytes(CONTENTS[ending])
    return path


@pytest.mark.parametrize("ending", [*CONTENTS, "parquet", "feather", "xlsx"])
def test_endings_and_contents(ending, tmp_path):
    expected = Battles.from_pandas(VOTES, keep=["turn"])
    path = write(tmp_path, ending)
    for file in (path, Path(shutil.copy(path, tmp_path / "no ending at all"))):
        battles = read_battles(file, keep=["turn"])
        pd.testing.assert_frame_equal(battles.to_pandas(), expected.to_pandas())
        assert battles.report == expected.report


@pytest.mark.parametrize("sign", [";", "|"])
def test_other_signs_that_separate_values_are_told(sign, tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(VOTES.to_csv(index=False, sep=sign))
    assert format_of(path) == FileFormat(Kind.CSV, None, sign)
    battles = read_battles(path)
    assert battles.n_battles == 4
    assert battles.report.read_as == (f"values of the file are separated by '{sign}'",)


@pytest.mark.parametrize("text", ["one|name\nx\ny\n", "| a | b |\n|---|---|\n| x | y |\n", "one|name\n"])
def test_bars_that_separate_nothing(text, tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(text)
    assert format_of(path).delimiter == ","


def test_quoted_signs_do_not_separate_values(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(VOTES.rename(columns={"turn": "turn, or page"}).to_csv(index=False, sep=";", quoting=1))
    assert format_of(path).delimiter == ";"
    assert read_battles(path, keep=["turn, or page"]).n_battles == 4


def test_an_array_that_begins_with_a_mark_of_bytes(tmp_path):
    (tmp_path / "votes.json").write_text(ARRAY, encoding="utf-8-sig")
    assert read_battles(tmp_path / "votes.json").n_battles == 4


def test_names_that_look_missing_in_excel(tmp_path):
    VOTES.replace({"x": "NA"}).to_excel(tmp_path / "votes.xlsx", index=False)
    assert list(read_battles(tmp_path / "votes.xlsx").models) == ["NA", "y", "z"]


def test_excel_files_of_several_sheets(tmp_path):
    with pd.ExcelWriter(tmp_path / "votes.xlsx") as writer:
        VOTES.to_excel(writer, sheet_name="May", index=False)
        VOTES.to_excel(writer, sheet_name="June", index=False)
    with pytest.raises(
        DataError, match=r"votes.xlsx: it has 2 sheets with values \('May', 'June'\): save the one to read"
    ):
        read_battles(tmp_path / "votes.xlsx")


def test_a_header_that_lacks_a_name(tmp_path):
    """Not the column is missing, but its name."""
    path = tmp_path / "scores.csv"
    path.write_text("model,item\nx,1,0\ny,1,1\n")
    assert "Expected 2 columns, got 3: x,1,0; give every line as many values as the first" in run("scores", path).output


def test_excel_files_without_values(tmp_path):
    pd.DataFrame().to_excel(tmp_path / "votes.xlsx", index=False)
    with pytest.raises(DataError, match=r"^votes.xlsx: no sheet of the file has values$"):
        read_battles(tmp_path / "votes.xlsx")


def test_headers_that_are_there_twice_in_excel(tmp_path):
    twice = VOTES.assign(n=1, m=2, **{"winner.1": "tie"}).rename(columns={"m": "n"})
    twice.to_excel(tmp_path / "votes.xlsx", index=False)
    assert read_battles(tmp_path / "votes.xlsx", keep=["winner.1"]).n_battles == 4
    with pytest.raises(DataError, match="the table has 2 columns named 'n'; rename or drop all but one"):
        read_battles(tmp_path / "votes.xlsx", keep=["n"])


def test_columns_of_models_are_text_in_excel(tmp_path):
    VOTES.assign(model_a=[1, 2, 3, 1], model_b=[2, 3, 1, 3]).to_excel(tmp_path / "votes.xlsx", index=False)
    assert list(read_battles(tmp_path / "votes.xlsx").models) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("above", "sign", "line"),
    [("Title,,\n", ",", 2), ('"Votes,\nof May"\n\n', ";", 4), ("# made by a tool 1.2\n,,\n", ",", 3)],
)
def test_a_title_above_the_header(above, sign, line, tmp_path):
    (tmp_path / "votes.csv").write_text(above + VOTES.to_csv(index=False, sep=sign))
    read = read_battles(tmp_path / "votes.csv")
    assert read.target.tolist() == Battles.from_pandas(VOTES).target.tolist()
    assert f"the header is in line {line} of the file" in read.report.read_as


@pytest.mark.parametrize("text", [
    "ranking\na,b,c\nb,a,c\n", "item,score\n1,2,3,4\n2,1,3,4\n", "a\n1,2,3\n4,5,6\n",
    "question,answer\nwho,he\nwhat,one,two,three,four\nwhy,so\n",
])  # fmt: skip
def test_a_header_of_rows_that_are_too_long_is_no_title(text, tmp_path):
    (tmp_path / "votes.csv").write_text(text)
    assert format_of(tmp_path / "votes.csv").skipped == 0


def test_rows_that_end_early_are_counted(tmp_path):
    lines = VOTES.assign(note="x").to_csv(index=False).splitlines()
    (tmp_path / "votes.csv").write_text("\n".join([*lines[:3], *(line.removesuffix(",x") for line in lines[3:])]))
    told = "2 rows end early (first in row 2 of votes.csv; rows count from 0): the last values are missing there"
    assert told in read_battles(tmp_path / "votes.csv").report.read_as


@pytest.mark.parametrize(("cut", "where"), [(",", "of votes.csv"), ("", "row 3 of votes.csv; rows count from 0")])
def test_a_last_line_that_is_cut_off_is_told(cut, where, tmp_path):
    """By each command that reads the file, and in the error about the score that is then missing."""
    rows = [f"{model},{item},{item % 2}" for item in range(2) for model in "ab"]
    (tmp_path / "votes.csv").write_text("\n".join(["model,item,score", *rows])[:-2] + cut)
    told = f"the last row ({where}) ends early: its last values are missing; if the file was cut off, write it anew"
    assert read_scores(tmp_path / "votes.csv").notes[0].startswith(told)
    found = run("scores", tmp_path / "votes.csv")
    assert found.exit_code == 1
    assert found.output.startswith("Error: 1 model lacks scores of 1 item, of 2 (most of all 'b', 1 item): missing=")
    assert f"on its own items. What was read: {told}" in found.output
    labels = [f"{item},{item % 2},1" for item in range(8)]
    (tmp_path / "votes.csv").write_text("\n".join(["item,human,judge", *labels])[:-2] + cut)
    where = where.replace("row 3", "row 7")
    shown = run("agreement", tmp_path / "votes.csv", "--full").output
    assert f"the last row ({where}) ends early" in " ".join(shown.split())


@pytest.mark.parametrize(("text", "error"), [
    ('[{"model_a": "x"}, 3]', "value 2 of the array is no JSON object, {...}, but int"),
    ("[" * 100_000, "cannot be read as an array of JSON objects"),
    ("[]", "the file is empty"),
    (json.dumps({"model_a": ["x"], "model_b": ["y", "z"], "winner": ["tie"]}), "mixes values|list|no labels|compared"),
])  # fmt: skip
def test_other_json(text, error, tmp_path):
    (tmp_path / "votes.json").write_text(text)
    with pytest.raises(DataError) as caught:
        read_battles(tmp_path / "votes.json")
    assert any(part in str(caught.value) for part in error.split("|"))


def test_damaged_arrow_files(tmp_path):
    path = write(tmp_path, "feather")
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DataError, match=r"votes.feather: cannot be read: .*copy or write it again"):
        read_battles(path)


def test_folders_hold_tables_of_any_known_ending(tmp_path):
    for ending in ("csv.bz2", "json", "feather"):
        write(tmp_path, ending)
    assert read_battles(tmp_path).n_battles == 12


def wrapped(content, how):
    """The bytes of a table in an archive, compressed, or in another encoding."""
    if how == "zip":
        memory = io.BytesIO()
        with zipfile.ZipFile(memory, "w") as archive:
            archive.writestr("__MACOSX/._votes.csv", b"\0")
            archive.writestr("folder/votes.csv", content)
        return memory.getvalue()
    if how in ("gzip", "zstd"):
        return gzip.compress(content) if how == "gzip" else zstd(content.decode())
    return content.decode().encode(how)


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    return rows(write(tmp_path_factory.mktemp("plain"), "csv"))


def rows(path, *options):
    result = run("leaderboard", path, "--resamples", "20", "--out", "-", "--format", "json", *options)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["rows"]


@pytest.mark.parametrize("how", ["zip", "gzip", "zstd", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "txt"])
def test_the_bytes_say_how_a_file_is_wrapped(how, ending, board, tmp_path):
    path = tmp_path / f"votes.{ending}"
    path.write_bytes(wrapped(CSV.encode(), how))
    assert rows(path) == board


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet.gz", "zip"])
def test_parquet_under_any_name(ending, board, tmp_path):
    content = write(tmp_path, "parquet").read_bytes()
    path = tmp_path / f"votes.{ending}"
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    assert rows(path) == board


@pytest.mark.parametrize("ending", ["csv.gz", "tsv.gz"])
def test_text_that_a_server_has_unpacked(ending, board, tmp_path):
    path = tmp_path / f"votes.{ending}"
    path.write_bytes(CONTENTS[ending[:3]])
    assert rows(path) == board


@pytest.mark.parametrize("how", [lambda x: x, gzip.compress, lambda x: wrapped(x, "zip")])
@pytest.mark.parametrize("ending", ["parquet", "xlsx", "feather"])
def test_text_under_the_name_of_another_kind(how, ending, board, tmp_path):
    path = tmp_path / f"votes.{ending}"
    path.write_bytes(how(CSV.encode()))
    assert rows(path) == board


def test_lines_of_json_under_any_name(board, tmp_path):
    (tmp_path / "votes.csv").write_text(LINES)
    assert rows(tmp_path / "votes.csv") == board


def test_archives_of_several_files(tmp_path):
    with zipfile.ZipFile(tmp_path / "votes.zip", "w") as archive:
        archive.writestr("may.csv", CSV)
        archive.writestr("june.csv", CSV)
    for words in (["leaderboard"], []):
        result = run(*words, tmp_path / "votes.zip")
        assert result.exit_code == 1
        assert "votes.zip is an archive of 2 files: unpack it, and name the file to read" in result.stderr


def test_a_damaged_archive_of_a_table(tmp_path):
    (tmp_path / "votes.zip").write_bytes(wrapped(CSV.encode(), "zip")[:-30])
    result = run("leaderboard", tmp_path / "votes.zip")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: votes.zip: cannot be read: ")


def test_titles_and_blank_rows_in_excel(board, tmp_path):
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    for row in ([], ["Votes of May"], [], [None, *VOTES], *([None, *row] for row in VOTES.to_numpy().tolist())):
        sheet.append(row)
    sheet.insert_rows(6)
    book.save(tmp_path / "votes.xlsx")
    assert rows(tmp_path / "votes.xlsx") == board
    assert "Excel, 4 columns: 'model_a', " in run(tmp_path / "votes.xlsx").output


def test_rows_that_end_early(board, tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(
        'model_a,model_b,winner,turn,note\nx,y,model_a,1,"a, b\ny"\ny,z,model_b\nz,x,tie,1\n\nx,z,tie,1,n\nx,z,tie'
    )
    first = pd.concat([VOTES, pd.DataFrame({"model_a": ["x"], "model_b": ["z"], "winner": ["tie"]})])
    first.to_csv(tmp_path / "whole.csv", index=False)
    assert rows(path) == rows(tmp_path / "whole.csv") != board


@pytest.mark.parametrize("gap", ["NA", "#N/A", "NaN"])
@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_gaps_of_other_programs_in_numbers(gap, ending, tmp_path):
    scores = pd.DataFrame({"model": ["x", "x", "y", "y"], "item": [1, 2, 1, 2], "score": [0.5, 1.0, 0.25, gap]})
    path = tmp_path / f"scores.{ending}"
    scores.to_csv(path, index=False) if ending == "csv" else scores.to_excel(path, index=False)
    result = run("scores", path, "--missing", "available", "--resamples", "20", "--out", "-", "--format", "json")
    assert result.exit_code == 0, result.output
    assert [row["score"] for row in json.loads(result.stdout)["rows"]] == [0.75, 0.25]
    assert "  jaxeval scores" in run(path).output


@pytest.mark.parametrize("names", ["wins_a,ties,wins_b", "win_a,tie,win_b", "Win A,tie,Win B", "first,drawn,second"])
def test_counts_in_other_columns(names, tmp_path):
    path = tmp_path / "votes.csv"
    counts = "x,y,5,1,2\ny,z,3,0,4\nz,x,2,2,2\n"
    (tmp_path / "usual.csv").write_text(f"model_a,model_b,wins_a,ties,wins_b\n{counts}")
    path.write_text(f"model_a,model_b,{names}\n{counts}")
    more = ("--counts", names.replace(",", ":")) if "drawn" in names else ()
    assert rows(path, *more) == rows(tmp_path / "usual.csv")
    if not more:
        assert f"  jaxeval leaderboard {path}\n" in run(path).output


def test_a_column_tie_beside_battles_is_a_column_like_others(tmp_path):
    VOTES.assign(tie=["no", "yes", "no", "yes"]).to_csv(tmp_path / "votes.csv", index=False)
    result = run("leaderboard", tmp_path / "votes.csv", "--by", "tie", "--resamples", "20")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(("content", "says"), [
    (b"\n\r\n\n", "file.csv: the file is empty, or has blank lines only"),
    (b"model_a,m\xf6del,winner\n", "file.csv: line 1 is not UTF-8, the byte 0xf6: save the file as UTF-8"),
    (b"\x82\x00\x1b[31m\n1,2,3\n", "file.csv: line 1 is not UTF-8, the byte 0x82: save the file as UTF-8"),
    (b"x" * 200_000 + b",y\n1,2\n", "file.csv: cannot be read: field larger than field limit"),
    (b"model_a,model_b,winner", "file.csv: cannot be read: CSV parse error: Empty CSV file or block: cannot infer "
     "number of columns; it has a header, and no row below"),
    (b'model_a,"model_b,winner\nx,y,tie\n', "file.csv: cannot be read: unexpected end of data; end every quoted value"),
])  # fmt: skip
def test_a_header_that_names_nothing(tmp_path, content, says):
    (tmp_path / "file.csv").write_bytes(content)
    with pytest.raises(DataError, match=f"^{re.escape(says)}"):
        read_battles(tmp_path / "file.csv")


@pytest.mark.parametrize("command", ["leaderboard", "scores"])
def test_a_small_compressed_file_that_is_cut_short(tmp_path, command):
    (tmp_path / "file.csv.gz").write_bytes(gzip.compress(VOTES.to_csv(index=False).encode())[:-20])
    said = "file.csv.gz: cannot be read: Truncated compressed stream; it may be cut short or damaged: copy or write it"
    assert said in run(command, tmp_path / "file.csv.gz").stderr


def test_a_compressed_file_of_nothing(tmp_path):
    (tmp_path / "file.csv.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(DataError, match="the file is empty, or has blank lines only; it may be cut short or damaged"):
        read_battles(tmp_path / "file.csv.gz")


def test_names_of_rows_that_cannot_be_read(tmp_path):
    """The header alone says them."""
    path = tmp_path / "file.csv"
    path.write_text('"model_a","a, ""b""\nc",winner\na,b\na,b,tie,1\n')
    assert head_names(path) == column_names(path) == ["model_a", 'a, "b"\nc', "winner"]
