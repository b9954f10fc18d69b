"""Results as the Hub's .eval_results files."""

import ast
import re

import numpy as np
import pandas as pd
import pytest
from hostile import NAMES

import jaxeval
from jaxeval.errors import DataError
from jaxeval.show.exports import _yaml, write_eval_results


def test_fields_and_notes(tmp_path):
    table = pd.DataFrame({"model": ["org/a", "b"], "rating": [1012.25, np.inf], "lower": [1000.0, np.nan],
                          "upper": [1020.5, np.nan]})  # fmt: skip
    files = write_eval_results(table, tmp_path, dataset="o/bench", task="elo", revision="abc", date="2026-09-13",
                               source="https://x.example/board", notes='a "quoted": note\n')  # fmt: skip
    assert files == {"org/a": tmp_path / "org%2Fa" / ".eval_results" / "elo.yaml"}
    assert files["org/a"].read_text() == (
        '- dataset:\n    id: "o/bench"\n    task_id: "elo"\n    revision: "abc"\n  value: 1012.25\n'
        '  date: "2026-09-13"\n  source:\n    url: "https://x.example/board"\n'
        '  notes: "a \\"quoted\\": note\\n; interval 1000 to 1020.5"\n'
    )


@pytest.mark.parametrize(("value", "noted"), [("rating", True), ("vote_count", False), ("expected_score_rating", True)])
def test_an_interval_is_of_its_value(value, noted, tmp_path):
    table = pd.DataFrame({"model": ["a"], "rating": [1000.0], "lower": [990.0], "upper": [1010.0], "vote_count": [159],
                          "expected_score_rating": [7.0], "expected_score_lower": [6.0],
                          "expected_score_upper": [8.0]})  # fmt: skip
    written = write_eval_results(table, tmp_path, dataset="o/b", task="t", value=value)["a"].read_text()
    ends = "6 to 8" if value == "expected_score_rating" else "990 to 1010"
    assert (f'notes: "interval {ends}"' in written) == noted == ("notes" in written)


def test_hostile_names_stay_in_the_folder(tmp_path):
    names = [*dict.fromkeys(NAMES), "..", ".", "../../x", "/etc/passwd", "CON"]
    table = pd.DataFrame({"model": names, "value": 0.5})
    files = jaxeval.write_eval_results(table, tmp_path / "out", dataset="o/b", task="../t", value="value")
    assert list(files) == names
    assert len(set(files.values())) == len(names)
    written = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(written) == len(names)
    assert {path.name for path in written} == {"..%2Ft.yaml"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("text", NAMES)
def test_text_of_yaml(text):
    """In double quotes, with escapes that Python and YAML share."""
    written = _yaml({"notes": text, "value": 0.5})
    notes, value = written.split("\n")[:2]
    assert written.replace("\n", "").isprintable()
    assert ast.literal_eval(notes.removeprefix("- notes: ")) == text
    assert value == "  value: 0.5"


@pytest.mark.parametrize(("table", "options", "message"), [
    ({"model": ["a", "a"], "x": [1.0, 2.0]}, {}, "a has several rows in the table"),
    ({"model": ["a"], "y": [1.0]}, {}, "the table has no column 'x'; its columns are model, y"),
    ({"name": ["a"], "x": [1.0]}, {}, "no column 'model'"),
    ({"model": ["a"], "x": [1.0]}, {"dataset": "bench"}, "dataset='bench' is no data set of the Hub"),
])  # fmt: skip
def test_what_cannot_be_written(table, options, message, tmp_path):
    with pytest.raises(DataError, match=re.escape(message)):
        write_eval_results(pd.DataFrame(table), tmp_path, **{"dataset": "o/b", "task": "t", "value": "x", **options})
    assert list(tmp_path.iterdir()) == []
