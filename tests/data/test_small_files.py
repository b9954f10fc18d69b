"""Small files hold what Arrow and pandas find in them; where Arrow might find other types, they read them."""

import json

import numpy as np
import pandas as pd
import pytest

from jaxeval.data.columns import ALL_COLUMNS, Columns
from jaxeval.data.formats import whole_table
from jaxeval.data.small_files import MOST_BYTES, small_table
from jaxeval.errors import ColumnError

ROWS = {
    "whole": [1, 0, -3, 999_999_999_999_999],
    "numbers": [1.5, 0.25, 1e-7, -2.0],
    "gaps": [1, None, 2, None],
    "holes": [0.5, None, 2, 1],
    "truth": [True, False, False, True],
    "names": ["a,b", 'say "no"', "é ü", "x y"],
    "some": ["7", None, "a", "2024-01-01"],
}
PLAIN = {
    "whole.csv": "model,score\na,1\nb,-20\n\nc,0\n",
    "ends.csv": "model,score\r\na,1.5\r\nb,2\r\n",
    "tabs.tsv": "model\tscore\na\t1e-3\nb\t2.5\n",
    "signs.csv": "model;score\na;1\nb;2\n",
    "mark.csv": "\ufeffmodel,score\na,1\n",
    "truths.csv": "model,score\na,true\nb,False\n",
    "lines.csv": 'model,score\n"a\nb",1\n"",2\nd,3\n',
    "words.csv": "model,score\nnan,1\nx,2\n",
    "gap.csv": "model,score\na,1\nb,\n",
    "late.jsonl": '{"model": "a", "score": 1}\n{"score": 0.5, "more": "x", "model": "b"}\n',
    "digits.jsonl": '{"model": "12", "score": 1}\n{"model": "2024-01-01", "score": 1}\n',
    "list.json": '[{"model": "a", "score": 1},\n {"model": "b", "score": 0.5}]\n',
    "signs2.csv": "model,score\n1_a,1\n007,2\n",
    "array.jsonl": '{"model": "a", "score": 1, "all": [1, {}]}\n\n{"model": "\\u00e9", "score": 0, "all": [2]}\n',
}
OTHERS = {
    "dates.csv": "day\n2024-01-01\n2024-01-02\n",
    "infinite.csv": "score\n1\nnan\n",
    "ids.csv": "item\n007\n012\n",
    "large.csv": "item\n9007199254740993\n1\n",
    "short.csv": "a,b\n1,2\n3\n",
    "twice.csv": "a,a\n1,2\n",
    "empty.csv": "a,b\n,x\n,y\n",
    "header.csv": "a,b\n",
    "broken.csv": 'a,b\n"x"y,2\n',
    "nothing.csv": "",
    "latin.csv": "name\né\n".encode("latin-1"),
    "dates.jsonl": '{"day": "2024-01-01T00:00:00"}\n',
    "mixed.jsonl": '{"x": 1}\n{"x": "a"}\n',
    "nested.jsonl": '{"x": {"y": 1}}\n',
    "large.jsonl": '{"x": 9007199254740993}\n',
    "infinite.jsonl": '{"x": 1}\n{"x": NaN}\n',
    "twice.jsonl": '{"x": 1, "x": 2}\n',
    "half.jsonl": '{"x": "a\\ud800"}\n',
    "half.csv.gz": b"\x1f\x8b",
}


def same(path, needed=ALL_COLUMNS):
    small = small_table(path, needed).frame
    whole = whole_table(path, needed, True)
    assert list(small) == list(whole)
    for name in small:
        # Text may have two types in pandas.
        assert small[name].dtype.kind == whole[name].dtype.kind or whole[name].dtype == "str"
        pd.testing.assert_series_equal(small[name], whole[name], check_dtype=False)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_every_type(tmp_path, form):
    frame, path = pd.DataFrame(ROWS), tmp_path / f"file.{form}"
    if form == "csv":
        frame.to_csv(path, index=False)
    else:
        path.write_text("\n".join(map(json.dumps, pd.DataFrame(ROWS, dtype=object).to_dict("records"))))
    same(path)
    same(path, Columns(("numbers", "whole"), beside=("names", "none")))
    with pytest.raises(ColumnError, match="no column 'score'"):
        small_table(path, Columns(("score",)))


@pytest.mark.parametrize("name", PLAIN)
def test_plain_files(tmp_path, name):
    (path := tmp_path / name).write_bytes(PLAIN[name].encode())
    same(path, Columns(("model", "score")))


@pytest.mark.parametrize("name", OTHERS)
def test_other_files_are_read_by_arrow(tmp_path, name):
    (path := tmp_path / name).write_bytes(OTHERS[name] if isinstance(OTHERS[name], bytes) else OTHERS[name].encode())
    assert small_table(path, ALL_COLUMNS) is None


def test_large_files_are_read_by_arrow(tmp_path):
    row = "x" * 1023 + "\n"
    (path := tmp_path / "large.csv").write_text("a\n" + row * (MOST_BYTES // 1024 - 1) + row[2:])
    assert path.stat().st_size == MOST_BYTES
    assert small_table(path, ALL_COLUMNS).shape == (MOST_BYTES // 1024, 1)
    path.write_text(path.read_text() + "\n")
    assert small_table(path, ALL_COLUMNS) is None


def test_columns_are_arrays_of_their_type(tmp_path):
    (path := tmp_path / "file.csv").write_text("a,b,c,d\n1,0.5,x,true\n2,,y,false\n")
    table = small_table(path, ALL_COLUMNS)
    assert [x.dtype.kind for x in map(table.__getitem__, "abcd")] == ["i", "f", "O", "b"]
    assert np.isnan(table["b"][1])
