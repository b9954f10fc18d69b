"""Files read piece by piece, and several as one: the battles of the rows in memory, or an error that names the file."""

import gzip
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import jaxeval
from jaxeval import Battles, DataError, read_battles
from jaxeval.data import equal_rows, json_lines, table_files
from jaxeval.data.equal_rows import EqualRows

VOTES = jaxeval.simulate_votes(6000, 6, seed=4, popularity_exponent=0.1).astype({"winner": str, "language": str})


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Files of a few thousand rows take many pieces."""
    monkeypatch.setattr(equal_rows, "_PIECE_ROWS", 1000)
    monkeypatch.setattr(table_files, "_PARQUET_ROWS", 300)
    monkeypatch.setattr(json_lines, "_PIECE_BYTES", 40_000)


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, frame.to_dict("records"))))
    else:
        frame.to_csv(path, index=False)
    return path


def assert_same(battles, expected, *groups):
    assert battles.report == expected.report
    assert battles.models.tolist() == expected.models.tolist()
    for name in ("first", "second", "pair", "target", "weight", "count"):
        np.testing.assert_array_equal(getattr(battles.cells, name), getattr(expected.cells, name))
    for group in groups:
        one, other = battles.codes(group), expected.codes(group)
        assert list(one[1]) == list(other[1])
        for k in range(len(one[1])):
            cells = [b.compress(np.flatnonzero(c == k))[0] for b, (c, _) in ((battles, one), (expected, other))]
            np.testing.assert_array_equal(cells[0].count, cells[1].count)
            np.testing.assert_array_equal(cells[0].target, cells[1].target)


def message(path, **options):
    with pytest.raises(DataError) as caught:
        read_battles(path, **options)
    return str(caught.value)


class TestOneFile:
    @pytest.mark.parametrize("ending", ["parquet", "csv", "csv.gz", "jsonl"])
    def test_pieces_are_the_whole(self, ending, tmp_path):
        path = write(VOTES, tmp_path / f"votes.{ending}")
        battles = read_battles(path, keep=["language"])
        assert battles.n_rows < 600
        assert_same(battles, Battles.from_pandas(VOTES), "language")

    @pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
    def test_a_column_that_differs_in_every_row(self, ending, tmp_path):
        rows = VOTES.assign(prompt=range(6000))
        battles = read_battles(write(rows, tmp_path / f"votes.{ending}"), keep=["prompt"])
        assert battles.count is None
        assert_same(battles, Battles.from_pandas(VOTES))
        assert battles.codes("prompt")[0].tolist() == list(range(6000))

    @pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
    def test_weights_targets_and_what_is_left_out(self, ending, tmp_path):
        rng = np.random.default_rng(0)
        rows = VOTES.drop(columns="winner").assign(
            target=rng.choice([0.0, 0.25, 1.0, -0.0], 6000), w=rng.choice([0.0, 0.5, 1.0], 6000)
        )
        rows.loc[::7, "model_b"] = rows["model_a"]
        path = write(rows, tmp_path / f"votes.{ending}")
        assert_same(read_battles(path, weight="w"), Battles.from_pandas(rows, weight="w"))

    def test_row_order_is_kept_where_nothing_is_merged(self, tmp_path):
        path = write(VOTES.iloc[:900], tmp_path / "votes.csv")
        battles = read_battles(path)
        assert battles.rows is None
        np.testing.assert_array_equal(battles.target, Battles.from_pandas(VOTES.iloc[:900]).target)

    def test_rows_are_in_the_order_of_their_first_places(self, tmp_path):
        battles = read_battles(write(VOTES, tmp_path / "votes.parquet"), keep=["language"])
        distinct = VOTES.drop(columns="voter").drop_duplicates()
        np.testing.assert_array_equal(battles.rows.first, distinct.index)
        assert battles.models[battles.model_a].tolist() == distinct["model_a"].tolist()

    @pytest.mark.parametrize("kind", ["string", "large_string", "dictionary", "categories of numbers"])
    def test_types_of_parquet(self, kind, tmp_path):
        table = pa.Table.from_pandas(VOTES.astype(str), preserve_index=False)
        if kind == "dictionary":
            table = pa.table({c: table[c].combine_chunks().dictionary_encode() for c in table.column_names})
        elif kind == "large_string":
            table = table.cast(pa.schema([(c, pa.large_string()) for c in table.column_names]))
        expected = VOTES
        if kind == "categories of numbers":
            names = {m: k for k, m in enumerate(sorted(VOTES["model_a"].unique()))}
            expected = VOTES.assign(model_a=VOTES["model_a"].map(names), model_b=VOTES["model_b"].map(names))
            expected = expected.astype({"model_a": int, "model_b": int})
            table = pa.Table.from_pandas(expected.astype({"model_a": "category"}))
        pq.write_table(table, tmp_path / "votes.parquet")
        assert_same(read_battles(tmp_path / "votes.parquet"), Battles.from_pandas(expected))

    @pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
    @pytest.mark.parametrize("column", ["winner", "model_b"])
    def test_missing_values_are_counted_in_rows_of_the_file(self, ending, column, tmp_path):
        rows = VOTES.astype(object)
        rows.loc[[4321, 4400, 5999], column] = None
        rows[["model_a", "model_b", "winner"]] = rows[["model_a", "model_b", "winner"]]
        found = message(write(rows, tmp_path / f"votes.{ending}"))
        assert f"votes.{ending}: column '{column}' has 3 missing values (first in row 4321;" in found

    def test_other_errors_count_rows_of_the_file(self, tmp_path):
        winner = VOTES["winner"].where(VOTES["winner"] != "tie", "pass")
        path = write(VOTES.assign(winner=winner), tmp_path / "votes.csv")
        assert f"'pass' ({(winner == 'pass').sum():,})" in message(path)
        target = np.where(np.arange(6000) >= 2500, 2.0, 0.5)
        path = write(VOTES.drop(columns="winner").assign(target=target), tmp_path / "target.parquet")
        assert "3,500 values are wrong: 2 (first in row 2500: 2" in message(path)
        path = write(VOTES.assign(lang=np.where(np.arange(6000) == 5000, None, "x")), tmp_path / "lang.parquet")
        with pytest.raises(DataError, match=r"'lang' has 1 missing value \(first in row 5000"):
            read_battles(path, keep=["lang"]).codes("lang")

    @pytest.mark.parametrize("late", ["x-1", "1.5", ""])
    def test_csv_types_that_show_late(self, late, tmp_path):
        """Arrow guesses from the first megabyte."""
        rows = pd.concat([VOTES[["model_a", "model_b", "winner"]].assign(k=7)] * 10, ignore_index=True)
        rows = rows.astype({"k": object})
        rows.loc[59_990, "k"] = late or None
        path = write(rows, tmp_path / "votes.csv")
        assert path.stat().st_size > 1_200_000
        battles = read_battles(path, keep=["k"])
        assert battles.n_battles == 60_000
        values = battles.columns["k"].dropna().unique().tolist()
        assert sorted(map(str, values)) == {"x-1": ["7", "x-1"], "1.5": ["1.5", "7.0"], "": ["7.0"]}[late]

    def test_json_columns_that_come_late(self, tmp_path):
        rows = [{k: v for k, v in row.items() if k != "language"} for row in VOTES[:3000].to_dict("records")]
        rows += VOTES[3000:].to_dict("records")
        path = tmp_path / "votes.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        with pytest.raises(DataError, match=r"'language' has 3,000 missing values \(first in row 0"):
            read_battles(path, keep=["language"]).codes("language")

    def test_counts_in_a_file(self, tmp_path):
        counts = VOTES.groupby(["model_a", "model_b", "winner", "language"], observed=True).size().rename("n")
        path = write(counts.reset_index(), tmp_path / "counts.csv")
        battles = read_battles(path, count="n", keep=["language"])
        assert_same(battles.__class__(**{**vars(battles), "report": None}), _without_report(VOTES), "language")
        assert battles.report.n_battles == 6000

    def test_a_table_of_counts_in_files(self, tmp_path):
        wide = VOTES.assign(
            wins_a=VOTES["winner"] == "model_a",
            ties=~VOTES["winner"].isin(["model_a", "model_b"]),
            wins_b=VOTES["winner"] == "model_b",
        )
        table = wide.groupby(["model_a", "model_b"], observed=True)[["wins_a", "ties", "wins_b"]].sum().reset_index()
        write(table[:10], tmp_path / "part-0.parquet")
        write(table[10:], tmp_path / "part-1.parquet")
        battles = read_battles(tmp_path)
        np.testing.assert_array_equal(battles.cells.count, Battles.from_pandas(VOTES).cells.count)
        assert battles.report.n_rows == len(table)


def _without_report(frame):
    battles = Battles.from_pandas(frame)
    return battles.__class__(**{**vars(battles), "report": None})


class TestManyFiles:
    @pytest.fixture
    def folder(self, tmp_path):
        folder = tmp_path / "votes"
        (folder / "more").mkdir(parents=True)
        write(VOTES[:2500], folder / "a.parquet")
        write(VOTES[2500:2600], folder / "b.csv")
        write(VOTES[2600:], folder / "more" / "c.jsonl")
        (folder / "_SUCCESS").write_text("")
        (folder / ".a.parquet.crc").write_text("x")
        return folder

    def test_a_folder(self, folder):
        battles = read_battles(folder, keep=["language"])
        assert_same(battles, Battles.from_pandas(VOTES), "language")

    def test_a_list_and_a_glob(self, folder):
        files = [folder / "a.parquet", folder / "b.csv", str(folder / "more")]
        expected = Battles.from_pandas(VOTES)
        assert_same(read_battles(files), expected)
        assert_same(
            read_battles([*files, folder / "b.csv"]), expected.reporting("b.csv is named twice, and counts once")
        )
        again = read_battles([folder, folder / "b.csv"])  # by its folder, and by its name
        assert "b.csv is named twice, and counts once" in again.report.read_as
        assert_same(read_battles(f"{folder}/*.[pc]*"), Battles.from_pandas(VOTES[:2600]))
        assert_same(read_battles(f"{folder}/**/*.jsonl"), Battles.from_pandas(VOTES[2600:]))

    def test_small_files_only(self, tmp_path):
        write(VOTES[:300], tmp_path / "a.csv")
        write(VOTES[300:600], tmp_path / "b.csv")
        battles = read_battles(tmp_path)
        assert battles.count is None
        np.testing.assert_array_equal(battles.target, Battles.from_pandas(VOTES[:600]).target)

    def test_each_once_by_whatever_path(self, folder, monkeypatch):
        monkeypatch.chdir(folder)
        (folder / "link.parquet").symlink_to(folder / "a.parquet")
        paths = ["a.parquet", folder / "a.parquet", "more/../a.parquet", "link.parquet"]
        assert read_battles(paths).n_battles == 2500

    def test_a_glob_that_matches_folders(self, folder):
        """As Spark writes them: a folder that is called like a file."""
        (folder / "more").rename(folder / "z.parquet")
        assert_same(read_battles(f"{folder}/[az].parquet"), Battles.from_pandas(VOTES.drop(range(2500, 2600))))
        assert_same(read_battles(f"{folder}/z*"), Battles.from_pandas(VOTES[2600:]))

    def test_hidden_names_in_globs(self, folder):
        for name in ("_old.csv", ".new.csv"):
            write(VOTES[:7], folder / name)
        (folder / "_temporary").mkdir()
        write(VOTES[:9], folder / "_temporary" / "d.csv")
        for pattern, n in (("*.csv", 100), ("**/*.csv", 100), ("_*.csv", 7), (".n*.csv", 7), ("_temp*/*.csv", 9)):
            assert read_battles(f"{folder}/{pattern}").n_battles == n
        with pytest.raises(FileNotFoundError, match="no file matches"):
            read_battles(f"{folder}/?old.csv")

    def test_a_folder_without_a_name(self, folder, monkeypatch):
        (folder / "notes.txt").write_text("x")
        monkeypatch.chdir(folder)
        assert message(".").startswith(".: the folder holds notes.txt")

    def test_errors_name_file_and_row(self, folder):
        bad = VOTES[2500:2600].astype(object)
        bad.loc[2542, "model_a"] = None
        write(bad, folder / "b.csv")
        found = message(folder)
        assert found.startswith("votes: column 'model_a' has 1 missing value (first in row 42 of b.csv;")

    def test_columns_that_are_not_in_every_file(self, folder):
        write(VOTES[:50].drop(columns="language"), folder / "b.csv")
        assert message(folder, keep=["language"]).startswith("b.csv: no column 'language' in the table")
        write(VOTES[:50].drop(columns="winner").assign(target=0.5), folder / "b.csv")
        assert "b.csv: no column 'winner', which a.parquet has: read the files separately" in message(folder)

    def test_columns_of_other_types(self, folder):
        write(VOTES[:50].assign(model_a=3), folder / "b.parquet")
        found = message(folder)
        assert "column 'model_a' holds text in a.parquet and values of type int64 in b.parquet" in found
        assert "write the whole column in one type" in found

    def test_numbers_of_several_types_are_numbers(self, tmp_path):
        rows = VOTES[:40].drop(columns="winner")
        write(rows.assign(target=1), tmp_path / "a.parquet")
        write(rows.assign(target=0.5), tmp_path / "b.parquet")
        write(rows.assign(target=np.float32(0.25)), tmp_path / "c.parquet")
        assert sorted(set(read_battles(tmp_path).target)) == [0.25, 0.5, 1.0]

    def test_nothing_there(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"no file matches .*\*\.parquet"):
            read_battles(tmp_path / "*.parquet")
        with pytest.raises(FileNotFoundError, match="list of files is empty"):
            read_battles([])
        with pytest.raises(FileNotFoundError, match="no such file"):
            read_battles([tmp_path / "a.csv"])
        (tmp_path / "notes.txt").write_text("x")
        found = message(tmp_path)
        assert "holds notes.txt, which is no table" in found
        assert "give a pattern such as" in found


class TestFaults:
    def test_a_truncated_parquet_file(self, tmp_path):
        write(VOTES, tmp_path / "a.parquet")
        path = write(VOTES, tmp_path / "b.parquet")
        path.write_bytes(path.read_bytes()[:-300])
        found = message(tmp_path)
        assert found.startswith("b.parquet: cannot be read: ")
        assert "it may be cut short or damaged: copy or write it again" in found

    def test_a_parquet_file_damaged_in_the_middle(self, tmp_path):
        path = tmp_path / "votes.parquet"
        table = pa.Table.from_pandas(VOTES.astype(str), preserve_index=False)
        pq.write_table(table, path, row_group_size=1000, write_page_checksum=True, compression="none")
        data = bytearray(path.read_bytes())
        at = pq.read_metadata(path).row_group(3).column(0).data_page_offset
        data[at + 100 : at + 110] = b"\7" * 10
        path.write_bytes(bytes(data))
        assert message(path).startswith("votes.parquet: cannot be read: ")

    def test_flipped_bits_of_a_parquet_file(self, tmp_path):
        """Whatever Arrow trips over, what comes out is an error that names the file."""
        whole = write(VOTES[:600], tmp_path / "whole.parquet").read_bytes()
        path, rng = tmp_path / "votes.parquet", np.random.default_rng(0)
        errors = []
        for place, bit in zip(rng.integers(len(whole), size=100), rng.integers(8, size=100), strict=True):
            data = bytearray(whole)
            data[place] ^= 1 << bit
            path.write_bytes(data)
            try:
                read_battles(path, keep=["language"])
            except DataError as error:
                errors.append(str(error))
        assert len(errors) > 10
        assert all(error.startswith("votes.parquet: ") for error in errors)

    def test_csv_lines_that_change_midway(self, tmp_path):
        path = write(VOTES, tmp_path / "votes.csv")
        with path.open("a") as file:
            file.write("a,b,tie,1,2,3\n")
        found = message(path)
        assert found.startswith("votes.csv: cannot be read: ")
        assert "Expected 5 columns, got 6" in found
        assert "give every line as many values as the first" in found

    def test_json_lines_that_break_midway(self, tmp_path):
        path = write(VOTES, tmp_path / "votes.jsonl")
        with path.open("a") as file:
            file.write('\n{"model_a": "x"')
        assert "votes.jsonl: line 6,001 cannot be read as JSON" in message(path)

    def test_json_columns_that_change_type_midway(self, tmp_path):
        rows = VOTES.astype(object)
        rows.loc[5000:, "model_a"] = 3
        found = message(write(rows, tmp_path / "votes.jsonl"))
        assert "column 'model_a'" in found
        assert "type" in found

    def test_gzip_cut_short(self, tmp_path):
        path = tmp_path / "votes.csv.gz"
        path.write_bytes(gzip.compress(VOTES.to_csv(index=False).encode())[:-2000])
        found = message(path)
        assert found.startswith("votes.csv.gz: cannot be read: ")
        assert "cut short" in found

    def test_control_c(self, tmp_path, monkeypatch):
        path = write(VOTES, tmp_path / "votes.csv")

        def interrupted(self, table, source):
            raise KeyboardInterrupt

        monkeypatch.setattr(EqualRows, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            read_battles(path)


class TestEqualRows:
    def test_random_tables(self):
        rng = np.random.default_rng(0)
        frames = []
        rows = EqualRows()
        for _ in range(17):
            n = int(rng.integers(0, 700))
            frame = pd.DataFrame(
                {
                    "text": pd.Series(rng.choice(["a", "b", None], n), dtype=object),
                    "number": rng.choice([0.0, 1.5, np.nan], n),
                    "whole": rng.integers(0, 3, n),
                    "true": rng.random(n) < 0.5,
                }
            )
            frames.append(frame)
            table = pa.table({c: pa.array(frame[c], from_pandas=False) for c in frame} if n else {})
            rows.add(table, "somewhere")
        whole = pd.concat(frames, ignore_index=True)
        expected = whole.groupby(list(whole.columns), dropna=False, sort=False).size()
        table, merged = rows.result()
        assert rows.n_rows == len(whole) == merged.times.sum()
        found = table.to_pandas().astype({"text": object})
        assert len(found) == len(expected)
        np.testing.assert_array_equal(merged.times, expected.to_numpy())
        first = whole.drop_duplicates().index
        np.testing.assert_array_equal(merged.first, first)

    def test_more_combinations_than_fit_a_word(self, monkeypatch):
        rng = np.random.default_rng(1)
        frame = pd.DataFrame({f"c{k}": rng.integers(0, 800, 1200) for k in range(9)})
        frame = pd.concat([frame, frame], ignore_index=True)
        rows = EqualRows()
        rows.add(pa.Table.from_pandas(frame), "somewhere")
        table, merged = rows.result()
        assert (merged.times == 2).all()
        pd.testing.assert_frame_equal(table.to_pandas(), frame[:1200])

    def test_lists_are_left_alone(self):
        rows = EqualRows()
        rows.add(pa.table({"x": [[1], [1]] * 800}), "somewhere")
        assert len(rows.result()[0]) == 1600
