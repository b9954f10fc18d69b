"""Tables in every format, by their endings and by their content."""

import bz2
import gzip
import json
import shutil
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from command_line import run

from jaxeval import Battles, read_battles
from jaxeval.data.file_formats import FileFormat, Kind, format_of
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


def test_the_command_reads_values_separated_by_bars(tmp_path):
    path = tmp_path / "votes.csv"
    boards = []
    for sign in ",|":
        path.write_text(VOTES.to_csv(index=False, sep=sign))
        boards.append(run("leaderboard", path, "--resamples", "20", "--out", "-", "--format", "json"))
    assert [board.exit_code for board in boards] == [0, 0], boards[1].output
    rows = [json.loads(board.stdout)["rows"] for board in boards]
    assert rows[0] == rows[1]


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
    ("text", "error"),
    [
        ('[{"model_a": "x"}, 3]', "value 2 of the array is no JSON object, {...}, but int"),
        ("[" * 100_000, "cannot be read as an array of JSON objects"),
        ("[]", "the file is empty"),
        (json.dumps({"model_a": ["x"], "model_b": ["y"], "winner": ["tie"]}), "mixes values|list|no labels|compared"),
    ],
)
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
