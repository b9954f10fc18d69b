"""Groups of rows: of plain columns, of lists, of flags, and of several columns together."""

import numpy as np
import pandas as pd
import pytest
from arena_votes import arena_votes, flags_of

from jaxeval import Battles
from jaxeval.data.columns import Rows
from jaxeval.data.groups import crossed, members_by
from jaxeval.errors import DataError

TAGS = [["q", "p", "q"], [], None, ["r"]]


def rows_by_group(members):
    """The rows of every group, by name."""
    rows = members.rows(slice(None))
    return {name: rows[members.codes == k].tolist() for k, name in enumerate(members.groups)}


@pytest.mark.parametrize("kind", [list, tuple, set, np.array])
def test_lists_of_every_kind(kind):
    column = pd.Series([None if tags is None else kind(tags) for tags in TAGS])
    found = members_by(column, "tags", "drop")
    assert rows_by_group(found) == {"overall": [0, 1, 3], "p": [0], "q": [0], "r": [3]}
    found = members_by(column, "tags", "label")
    assert rows_by_group(found) == {"overall": [0, 1, 2, 3], "p": [0], "q": [0], "r": [3], "(missing)": [2]}
    for missing in (None, "error"):
        with pytest.raises(DataError, match=r"column 'tags' has 1 missing value \(first in row 2; .*missing='drop'"):
            members_by(column, "tags", missing)


def test_flags():
    votes = arena_votes(40)
    found = members_by(pd.Series([row["category_tag"] for row in votes]), "category_tag", "error")
    expected = {"overall": list(range(40))}
    for name in sorted({name for row in votes for name in flags_of(row)}):
        expected[name] = [k for k, row in enumerate(votes) if name in flags_of(row)]
    assert rows_by_group(found) == expected


def test_flags_of_one_name_are_told_by_their_paths():
    column = pd.Series([{"a": {"x": True, "y": None}, "b": {"x": True}}, {"a": {"x": False, "y": True}, "b": None}])
    assert rows_by_group(members_by(column, "tags", None)) == {"overall": [0, 1], "a.x": [0], "b.x": [0], "y": [1]}


def test_lists_of_nothing():
    assert rows_by_group(members_by(pd.Series([[], []]), "tags", None)) == {"overall": [0, 1]}


@pytest.mark.parametrize("missing", ["drop", "label"])
@pytest.mark.parametrize("names", [["tags", "lang"], ["lang", "tags"], ["tags", "tags"], ["lang", "turn"]])
def test_columns_together(names, missing):
    frame = pd.DataFrame({"tags": TAGS * 3, "lang": ["en", None, "de"] * 4, "turn": [1, 2, 1, 1] * 3})
    parts = [members_by(frame[name], name, missing) for name in names]
    found = crossed(parts, names, 12)
    single = [rows_by_group(part) for part in parts]
    for pair, rows in rows_by_group(found).items():
        expected = np.intersect1d(single[0][pair[0]], single[1][pair[1]])
        assert rows == expected.tolist()
        assert len(rows)
    pairs = sum(len(np.intersect1d(one, other)) > 0 for one in single[0].values() for other in single[1].values())
    assert len(found.groups) == pairs
    assert (found.row is None) == (names == ["lang", "turn"])


@pytest.mark.parametrize(("values", "error"), [
    ([["overall"], []], "has overlapping categories and the value 'overall': rename that value"),
    ([["(missing)"], None], r"has missing values and the value '\(missing\)': rename that value"),
    ([[1], ["a"]], "mixes values of several types"),
    ([["a"], "b"], "mixes values of several types"),
    ([["a", None], []], r"has 1 missing value \(first in row 0"),
    ([{"x": 1}, None], "holds objects without flags .true or false. .*name one of its fields 'tags.x'"),
    ([[{"x": 1}], None], "holds values that cannot be compared"),
])  # fmt: skip
def test_bad_ones(values, error):
    with pytest.raises(DataError, match=f"column 'tags' {error}"):
        members_by(pd.Series(values, name="tags"), "tags", "label")


def test_errors_name_rows_of_the_input():
    rows = Rows(np.array([2, 3]), np.array([4, 9]))
    with pytest.raises(DataError, match=r"3 missing values \(first in row 9; "):
        members_by(pd.Series([["a"], ["b", None]]), "tags", None, rows)


def test_clusters_do_not_overlap():
    votes = pd.DataFrame(arena_votes(20)).assign(tags=[["a"]] * 20)
    battles = Battles.from_pandas(votes)
    with pytest.raises(DataError, match="column 'tags' has overlapping categories, so that a battle would be"):
        battles.codes("tags")
