"""Rankings read from tables and files, in every form the same; bad ones named with rows and counts; and cells."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from ranked import levels, named, places, simulated, table

import jaxeval
from jaxeval import DataError, Rankings, read_rankings
from jaxeval.data.ranking_places import MOST_TIED

LISTS = simulated(40, seed=1)


def orders(rankings):
    """The rankings as text, in any order."""
    return sorted(map(str, rankings.to_lists()))


@pytest.fixture(scope="module")
def expected():
    return orders(Rankings.from_pandas(table(LISTS)))


class TestForms:
    def test_text_lists_json_and_places(self, expected):
        nested = [[[f"m{item}" for item in level] for level in levels(ranking)] for ranking in LISTS]
        mixed = [[level[0] if len(level) == 1 else tuple(level) for level in ranking] for ranking in nested]
        forms = [
            pd.DataFrame({"ranking": nested}),
            pd.DataFrame({"ranking": mixed}),
            pd.DataFrame({"ranking": [json.dumps(ranking) for ranking in nested]}),
            pa.table({"ranking": nested}),
            pl.DataFrame({"ranking": nested}),
            places(LISTS),
        ]
        for frame in forms:
            assert orders(Rankings.from_pandas(frame)) == expected

    def test_columns_of_other_names(self, expected):
        frame = places(LISTS).rename(columns={"ranking": "vote", "item": "model", "rank": "place"})
        assert orders(Rankings.from_pandas(frame, ranking="vote", item="model", rank="place")) == expected
        assert orders(Rankings.from_pandas(table(LISTS).set_axis(["vote"], axis=1), ranking="vote")) == expected

    def test_ranks_after_a_tie(self):
        frame = pd.DataFrame({"ranking": [1] * 4 + [2] * 4, "item": [*"abcd"] * 2, "rank": [1, 2, 2, 3, 1, 2, 2, 4]})
        one, other = Rankings.from_pandas(frame).to_lists()
        assert one == other == ["a", ["b", "c"], "d"]

    @pytest.mark.parametrize("ending", ["parquet", "jsonl"])
    def test_lists_of_files(self, tmp_path, ending, expected):
        nested = [[[f"m{item}" for item in level] for level in levels(ranking)] for ranking in LISTS]
        frame, path = pd.DataFrame({"ranking": nested}), tmp_path / f"rankings.{ending}"
        frame.to_parquet(path) if ending == "parquet" else frame.to_json(path, orient="records", lines=True)
        assert orders(read_rankings(path)) == expected

    @pytest.mark.parametrize("form", [table, places])
    def test_several_files_share_no_ranking(self, tmp_path, form, expected):
        form(LISTS[:15]).to_csv(tmp_path / "one.csv", index=False)
        form(LISTS[15:]).to_csv(tmp_path / "two.csv", index=False)
        assert orders(read_rankings(tmp_path)) == expected
        assert orders(read_rankings([tmp_path / "two.csv", tmp_path / "one.csv"])) == expected

    def test_items_named_by_numbers_stay_numbers(self):
        assert Rankings.from_pandas(pd.DataFrame({"ranking": [[2, 1], [10, 2]]})).items.tolist() == [1, 2, 10]

    def test_report(self):
        frame = places(LISTS, w=[0.0] * 3 + [1.0] * 37)
        report = Rankings.from_pandas(frame, weight="w").report
        assert (report.n_rows, report.n_battles, report.n_zero_weight) == (len(frame), 37, 3)
        assert report.n_ties == sum(any(isinstance(level, list) for level in ranking) for ranking in LISTS[3:])
        assert str(report).endswith("3 rankings of weight 0 left out")


def long(**columns):
    return pd.DataFrame({"ranking": [*"vvvww"], "item": [*"abcab"], "rank": [1, 2, 3, 1, 2], **columns})


class TestBadInput:
    @pytest.mark.parametrize(("lists", "says"), [
        (["a > b", "a"], "1 of 2 rankings holds fewer than two items (the first is in row 1; rows count from 0)"),
        ([[], [], ["a", "b"]], "2 of 3 rankings hold fewer than two items (the first is in row 0"),
        (["a > b", "a > b > a"], "1 of 2 rankings holds an item twice (the first is in row 1"),
        (["a > b", None], "column 'ranking' has 1 missing value (first in row 1"),
        (["a > b", "a > > b"], "1 of 2 rankings holds a missing item, or an empty name (the first is in row 1"),
        ([["a", "b"], ["a", None]], "1 of 2 rankings holds a missing item"),
        ([["a", "b"], [["a"], [], ["b"]]], "1 of 2 rankings holds a missing item"),
        ([["a", 2]], "mixes values of types int (1), str (1)"),
        ([3, 4], "must hold ordered lists, or text such as 'a > b = c', got 3 in row 0"),
        (["a > b", "[bad"], "holds a list that cannot be read as JSON, in row 1"),
        (["a > b", " = ".join(f"m{k}" for k in range(MOST_TIED + 2))],
         "1 of 2 rankings ties more than 10 items (12) (the first is in row 1; rows count from 0)"),
    ])  # fmt: skip
    def test_lists(self, lists, says):
        with pytest.raises(DataError) as error:
            Rankings.from_pandas(pd.DataFrame({"ranking": lists}))
        assert says in str(error.value)

    @pytest.mark.parametrize(("columns", "says"), [
        ({"rank": [1, 2, 4, 1, 2]}, "1 of 2 rankings has gaps in its ranks (the first, 'v', is in row 0"),
        ({"rank": [1, 2, 3, 2, 3]}, "1 of 2 rankings has gaps in its ranks (the first, 'w', is in row 3"),
        ({"rank": [1, 2, np.nan, 1, 2]}, "column 'rank' has 1 missing value (first in row 2"),
        ({"rank": [0, 1, 2, 1, 2]}, "ranks must be whole numbers from 1 on, where 1 is the best; 1 value is wrong: 0"),
        ({"rank": [1, 2.5, 2.5, 1, 2]},
         "ranks must be whole numbers from 1 on, where 1 is the best; 2 values are wrong: 2.5"),
        ({"rank": [*"12xyz"]}, "column 'rank' is not numeric"),
        ({"item": ["a", None, "b", "a", "b"]}, "column 'item' has 1 missing value (first in row 1"),
        ({"item": ["a", " ", "b", "a", "b"]}, "column 'item' has 1 missing value (first in row 1"),
        ({"item": [*"abaab"]}, "1 of 2 rankings holds an item twice (the first, 'v', is in row 0"),
        ({"ranking": ["v", "v", "v", "w", "x"]}, "2 of 3 rankings hold fewer than two items (the first, 'w', is"),
        ({"ranking": ["v", "v", "v", None, None]}, "column 'ranking' has 2 missing values (first in row 3"),
    ])  # fmt: skip
    def test_places(self, columns, says):
        with pytest.raises(DataError) as error:
            Rankings.from_pandas(long(**columns))
        assert says in str(error.value)

    @pytest.mark.parametrize(("w", "says"), [
        ([1, 1, 2, 1, 1], "column 'w' differs within 1 ranking (the first is 'v')"),
        ([-1] * 5, "weights must be finite and >= 0"),
        ([0] * 5, "no ranking is left of 2 rankings: 2 of weight 0"),
    ])  # fmt: skip
    def test_weights(self, w, says):
        with pytest.raises(DataError) as error:
            Rankings.from_pandas(long(w=w), weight="w")
        assert says in str(error.value)

    @pytest.mark.parametrize("column", ["rank", "item"])
    def test_columns_that_are_not_there(self, column):
        with pytest.raises(DataError, match=f"no column '{column}'"):
            Rankings.from_pandas(long().drop(columns=column), item="item")

    def test_no_rows(self):
        with pytest.raises(DataError, match="no rows"):
            Rankings.from_pandas(table([]))

    def test_tables_are_no_files(self):
        with pytest.raises(TypeError, match=r"Rankings\.from_pandas reads tables"):
            read_rankings(table(LISTS))

    def test_files_are_named(self, tmp_path):
        path = tmp_path / "bad.csv"
        path.write_text("ranking\na > b\na\n")
        with pytest.raises(DataError, match=r"bad\.csv: 1 of 2 rankings"):
            read_rankings(path)
        (tmp_path / "worse.csv").write_text("ranking\na > b\n")
        with pytest.raises(DataError, match=r"bad\.csv and 1 more: 1 of 3 rankings"):
            read_rankings(tmp_path)

    def test_rankings_are_no_battles(self):
        rankings = Rankings.from_pandas(table(LISTS))
        with pytest.raises(TypeError, match="got Rankings"):
            jaxeval.fit_bradley_terry(rankings)
        with pytest.raises(TypeError, match="fit_plackett_luce"):
            jaxeval.fit_bradley_terry(rankings.rows)

    def test_groups_that_differ_within_a_ranking(self):
        rankings = Rankings.from_pandas(long(x=[*"abcde"], y=[*"vvvww"]))
        assert rankings.rows.codes("y")[0].tolist() == [0, 1]
        with pytest.raises(DataError, match=r"column 'x' differs within 2 rankings \(the first is 'v'\)"):
            rankings.rows.codes("x")


class TestCells:
    def test_equal_rankings_are_one(self):
        twice = Rankings.from_pandas(table([*LISTS, *LISTS])).rows.cells
        once = Rankings.from_pandas(table(LISTS)).rows.cells
        counted = Rankings.from_pandas(table(LISTS, n=2), count="n").rows.cells
        np.testing.assert_array_equal(twice.count, 2 * once.count)
        for other in (twice, counted):
            np.testing.assert_array_equal(other.places.item, once.places.item)
            np.testing.assert_array_equal(other.places.level, once.places.level)
        np.testing.assert_array_equal(counted.count, twice.count)

    def test_the_order_of_rows_and_of_items_that_tie_does_not_matter(self):
        shuffled = [[level[::-1] if isinstance(level, list) else level for level in r] for r in reversed(LISTS)]
        one, other = (Rankings.from_pandas(table(lists)).rows.cells for lists in (LISTS, shuffled))
        for a, b in zip(one.places, other.places, strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(one.count, other.count)

    def test_rows_keep_their_cells(self):
        rankings = Rankings.from_pandas(table(LISTS))
        cells, cell = rankings.rows.compress(slice(None))
        again = [
            [rankings.items[cells.places.item[a:b]].tolist(), cells.places.level[a:b].tolist()]
            for a, b in zip(cells.places.start[:-1][cell], cells.places.start[1:][cell], strict=True)
        ]
        for (items, level), ranking in zip(again, LISTS, strict=True):
            assert [sorted(f"m{item}" for item in tied) for tied in levels(ranking)] == [
                [name for name, own in zip(items, level, strict=True) if own == k] for k in range(level[-1] + 1)
            ]
        assert named(LISTS[0])


def test_several_files_of_one_name(tmp_path):
    """Rankings of two files are never one, whatever they are called."""
    paths = []
    for k, items in enumerate(["ab", "cd"]):
        (tmp_path / str(k)).mkdir()
        paths.append(tmp_path / str(k) / "r.csv")
        paths[k].write_text("ranking,item,rank\n" + "".join(f"1,{item},{rank}\n" for rank, item in enumerate(items, 1)))
    assert jaxeval.read_rankings(paths).to_lists() == [["a", "b"], ["c", "d"]]


def test_rankings_in_columns():
    places = pd.DataFrame({"rank2": ["b", "a", "a"], "rank1": ["a", "b", "c"], "Rank 3": ["c", None, "b"]})
    assert Rankings.from_pandas(places).to_lists() == [["a", "b", "c"], ["b", "a"], ["c", "a", "b"]]
    with pytest.raises(DataError, match=r"1 of 3 rankings holds a missing item.* in row 0"):
        Rankings.from_pandas(places.assign(rank2=[None, "a", "a"]))
    ranks = pd.DataFrame({"prompt": [1, 2, 3], "a": [1, 2, 1], "b": [2, 1, 1], "c": [3, np.nan, 3]})
    assert Rankings.from_pandas(ranks).to_lists() == [["a", "b", "c"], ["b", "a"], [["a", "b"], "c"]]
    with pytest.raises(DataError, match="no column 'ranking'"):  # scores, whose greatest may be the best
        Rankings.from_pandas(ranks.assign(a=[1, 2, 5]))
