"""The daily update: battles saved, loaded and added to are the battles of all votes read together."""

import errno
import json
import os
import subprocess
import sys
from dataclasses import replace

import click
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import run as run_command

import jaxeval
from jaxeval import Battles, DataError
from jaxeval.cli.state import State
from jaxeval.data import saved_battles
from jaxeval.show.files import json_digest

VOTES = jaxeval.simulate_votes(3000, 6, seed=4, popularity_exponent=0.1).astype(
    dict.fromkeys(["model_a", "model_b", "winner", "language"], str)
)


def read(paths, vote_id, known):
    """As the command reads the files that a state lacks."""
    return jaxeval.read_battles(paths)


def assert_same(one, other):
    assert one.report == other.report
    assert one.models.tolist() == other.models.tolist()
    for name in ("first", "second", "pair", "target", "weight", "count"):
        np.testing.assert_array_equal(getattr(one.cells, name), getattr(other.cells, name))


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "board.parquet"
    Battles.from_pandas(VOTES.drop(columns="voter")).save(path)
    return path


class TestConcat:
    @pytest.mark.slow
    def test_days_are_the_whole(self):
        newcomer = VOTES[2000:].replace({"model_a": {"model-3": "a-new-one"}})
        whole = pd.concat([VOTES[:2000], newcomer])
        days = [Battles.from_pandas(part) for part in (VOTES[:1000], VOTES[1000:2000], newcomer)]
        together, expected = Battles.concat(days), Battles.from_pandas(whole)
        assert_same(together, expected)
        one, other = (
            jaxeval.leaderboard(b, n_resamples=8, by="language", cluster="voter") for b in (together, expected)
        )
        pd.testing.assert_frame_equal(one, other, check_exact=True)

    def test_weights_targets_and_what_was_left_out(self):
        rng = np.random.default_rng(0)
        rows = VOTES.drop(columns="winner").assign(target=rng.random(3000).round(1), w=rng.choice([0.0, 0.5], 3000))
        rows.loc[:1000, "w"] = 1.0
        rows.loc[::9, "model_b"] = rows["model_a"]
        rows.loc[5, "model_a"] = "only-weight-0"
        rows.loc[5, "w"] = 0.0
        parts = [Battles.from_pandas(part, weight="w") for part in (rows[:1001], rows[1001:])]
        assert parts[0].weight is None
        assert_same(Battles.concat(parts), Battles.from_pandas(rows, weight="w"))

    def test_models_left_out_one_day_and_rated_another(self):
        rows = VOTES[["model_a", "model_b", "winner"]][:50].assign(
            model_b=VOTES["model_b"].where(VOTES.index != 5, "z")
        )
        first = Battles.from_pandas(rows.assign(w=np.where(rows["model_b"] == "z", 0.0, 1.0)), weight="w")
        assert first.report.models_left_out == ("z",)
        together = Battles.concat([first, Battles.from_pandas(rows)])
        assert together.report.models_left_out == ()
        assert together.report.n_models == 7

    def test_equal_rows_are_merged(self):
        battles = Battles.from_pandas(VOTES.drop(columns=["voter"]))
        twice = Battles.concat([battles, battles])
        assert twice.n_battles == 6000
        assert twice.n_rows == Battles.concat([battles]).n_rows < 1000

    def test_what_does_not_go_together(self):
        battles = Battles.from_pandas(VOTES)
        for other, found in (
            (Battles.from_pandas(VOTES.drop(columns="language")), "have a column 'language' and some do not"),
            (Battles.from_pandas(VOTES, both_bad="drop"), "both-bad battles are counted as ties in some"),
            (
                Battles.from_pandas(VOTES, cluster="voter"),
                "some battles have no column as their cluster, and some 'voter'",
            ),
            (Battles.from_pandas(VOTES.assign(voter="x")), "'voter' holds values of type int64 in batch 0 and text"),
            (Battles.from_pandas(VOTES.assign(model_a=1, model_b=2)), "column 'model_a' holds text in batch 0"),
        ):
            with pytest.raises(DataError, match=found):
                Battles.concat([battles, other])
        with pytest.raises(ValueError, match="the list is empty"):
            Battles.concat([])


class TestFile:
    def test_round_trip(self, saved):
        battles = Battles.load(saved)
        assert_same(battles, Battles.from_pandas(VOTES))
        assert battles.n_rows < 1000
        again = saved.with_name("again.parquet")
        battles.save(again)
        assert again.read_bytes() == saved.read_bytes()

    def test_any_tool_reads_it(self, saved):
        frame = pd.read_parquet(saved)
        assert frame.columns.tolist() == ["model_a", "model_b", "target", "language", "count"]
        assert frame["count"].sum() == 3000

    def test_names_of_columns_that_are_taken(self, tmp_path):
        rows = VOTES.assign(count=1, model_a_=2).rename(columns={"model_a": "left"}).assign(model_a="x")
        battles = Battles.from_pandas(rows, model_a="left", winner="winner", cluster="language")
        battles.save(tmp_path / "x.parquet")
        loaded = Battles.load(tmp_path / "x.parquet")
        assert_same(loaded, battles)
        assert loaded.cluster == "language"
        assert loaded.columns.columns.tolist() == battles.columns.columns.tolist()

    def test_models_named_by_numbers(self, tmp_path):
        frame = pd.DataFrame({"model_a": [10, 2, 3], "model_b": [2, 3, 10], "winner": "model_a"})
        battles = Battles.from_pandas(frame)
        battles.save(tmp_path / "x.parquet")
        assert Battles.load(tmp_path / "x.parquet").models.tolist() == [2, 3, 10]

    def test_what_cannot_be_saved(self, tmp_path):
        with pytest.raises(DataError, match="'odd' cannot be saved"):
            Battles.from_pandas(VOTES.assign(odd=[object()] * 3000)).save(tmp_path / "x.parquet")
        with pytest.raises(DataError, match=r"columns must be named by text.*got 7"):
            Battles.from_pandas(VOTES.assign(**{"x": 1}).rename(columns={"x": 7})).save(tmp_path / "x.parquet")
        for models in ([2**70, 2**80], [("a", 1), ("b", 1)], [("a", "b"), ("b", "a")]):
            frame = pd.DataFrame({"model_a": models, "model_b": models[::-1], "winner": "tie"}, dtype=object)
            with pytest.raises(DataError, match=r"named by text or numbers to be saved|make them text"):
                Battles.from_pandas(frame).save(tmp_path / "x.parquet")
        with pytest.raises(DataError, match="'odd' cannot be saved"):
            Battles.from_pandas(VOTES.assign(odd=[2**70] * 3000)).save(tmp_path / "x.parquet")
        assert list(tmp_path.iterdir()) == []

    def test_files_that_are_no_saved_battles(self, saved, tmp_path):
        with pytest.raises(FileNotFoundError, match="no such file"):
            Battles.load(tmp_path / "nowhere.parquet")
        VOTES.to_parquet(tmp_path / "votes.parquet")
        with pytest.raises(DataError, match=r"votes\.parquet is a table, but holds no battles that jaxeval saved"):
            Battles.load(tmp_path / "votes.parquet")
        (tmp_path / "text.parquet").write_text("x")
        with pytest.raises(DataError, match=r"text\.parquet is no file of saved battles"):
            Battles.load(tmp_path / "text.parquet")
        saved.write_bytes(saved.read_bytes()[:-100])
        with pytest.raises(DataError, match=r"board\.parquet is no file of saved battles, or a damaged one"):
            Battles.load(saved)

    @pytest.mark.parametrize(("change", "found"), [
        (lambda c: c | {"version": 9}, "has version 9 of the format of saved battles.*reads version 2"),
        (lambda c: c | {"format": "x"}, "holds no battles that jaxeval saved"),
        (lambda c: {k: v for k, v in c.items() if k != "roles"}, "broken file of saved battles: 'roles'"),
        (lambda c: c | {"roles": c["roles"] | {"target": "nowhere"}}, "broken file .*nowhere"),
        (lambda c: c | {"report": {"n_battles": 5}}, "broken file"),
    ])  # fmt: skip
    def test_other_versions_and_broken_files(self, saved, change, found):
        table = pq.read_table(saved)
        content = change(json.loads(table.schema.metadata[b"jaxeval"]))
        del content["digest"]
        signed = content | {"digest": saved_battles._digest(table, content)}
        pq.write_table(table.replace_schema_metadata({b"jaxeval": json.dumps(signed)}), saved)
        with pytest.raises(DataError, match=found):
            Battles.load(saved)

    def test_other_content_than_was_saved(self, saved):
        table = pq.read_table(saved)
        content = json.loads(table.schema.metadata[b"jaxeval"])
        count = table.column_names.index("count")
        for rows, text in (
            (table, content | {"report": content["report"] | {"n_battles": 5}}),
            (table, {name: content[name] for name in content if name != "digest"}),
            (table.set_column(count, "count", pa.array(table["count"].to_numpy()[::-1])), content),
            (table.set_column(0, "model_a", table["model_b"]), content),
            (table[1:], content),
        ):
            pq.write_table(rows.replace_schema_metadata({b"jaxeval": json.dumps(text)}), saved)
            with pytest.raises(DataError, match=r"board\.parquet is damaged: it does not hold what was saved"):
                Battles.load(saved)

    def test_flipped_bits(self, saved):
        whole, battles = saved.read_bytes(), Battles.load(saved)
        rng, refused = np.random.default_rng(0), 0
        for place, bit in zip(rng.integers(len(whole), size=100), rng.integers(8, size=100), strict=True):
            data = bytearray(whole)
            data[place] ^= 1 << bit
            saved.write_bytes(data)
            try:
                found = Battles.load(saved)
            except DataError:
                refused += 1
            else:
                # Text may come back as categories or not.
                pd.testing.assert_frame_equal(found.to_pandas().astype(object), battles.to_pandas().astype(object))
                assert found.report == battles.report
                assert found.files == battles.files
        assert refused > 50

    def test_metadata_nested_beyond_reason(self, saved):
        table = pq.read_table(saved)
        pq.write_table(table.replace_schema_metadata({"jaxeval": "[" * 100_000}), saved)
        with pytest.raises(DataError, match="holds no battles that jaxeval saved"):
            Battles.load(saved)

    def test_columns_of_all_types(self, tmp_path):
        """What comes back has the digest of what was saved, whatever Parquet stores it as."""
        rng = np.random.default_rng(0)
        times = pd.Series(pd.to_datetime(rng.integers(0, 2**30, 3000), unit="s"))
        frame = VOTES.assign(
            seconds=times.astype("datetime64[s]"),
            zoned=times.dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin").astype("datetime64[s, Europe/Berlin]"),
            date=times.dt.date,
            time=times.dt.time,
            took=pd.to_timedelta(rng.integers(0, 99, 3000), unit="s").astype("timedelta64[s]"),
            true=rng.random(3000) < 0.5,
            small=rng.integers(0, 9, 3000).astype(np.int8),
            whole=pd.array(rng.choice([2**60, 2**60 + 1, None], 3000), dtype="Int64"),
            number=rng.choice([0.0, -0.0, 1 / 3, np.nan, np.inf], 3000).astype(np.float32),
            category=pd.Categorical.from_codes(rng.integers(-1, 2, 3000), ["b", "a"]),
            number_category=pd.Categorical(rng.choice([3, 1], 3000)),
            binary=[b"\0" * k for k in rng.integers(0, 3, 3000)],
            empty=None,
        )
        battles = Battles.from_pandas(frame)
        battles.save(tmp_path / "x.parquet")
        loaded = Battles.load(tmp_path / "x.parquet")
        assert_same(loaded, battles)
        assert loaded.column("whole").nunique() == 2
        loaded.save(tmp_path / "y.parquet")
        assert Battles.load(tmp_path / "y.parquet").n_battles == 3000


class TestFaults:
    """Whatever goes wrong in writing, the old file stays, and nothing is left beside it."""

    def unharmed(self, saved):
        assert [p.name for p in saved.parent.iterdir()] == ["board.parquet"]
        assert Battles.load(saved).n_battles == 3000

    @pytest.mark.parametrize("where", ["write_table", "fsync"])
    def test_a_full_disk(self, saved, monkeypatch, where):
        def full(*_, **__):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(*((pq, "write_table") if where == "write_table" else (os, "fsync")), full)
            with pytest.raises(OSError, match=r"cannot be written \(No space left on device\): the file is as it was"):
                Battles.from_pandas(VOTES[:10]).save(saved)
        self.unharmed(saved)

    def test_control_c(self, saved, monkeypatch):
        def interrupted(table, file, **_):
            file.write(b"half")
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(pq, "write_table", interrupted)
            with pytest.raises(KeyboardInterrupt):
                Battles.from_pandas(VOTES[:10]).save(saved)
        self.unharmed(saved)

    def test_no_folder(self, tmp_path):
        with pytest.raises(OSError, match=r"cannot be written .*the file is not there"):
            Battles.from_pandas(VOTES).save(tmp_path / "nowhere" / "x.parquet")

    @pytest.mark.slow
    def test_a_file_that_grows_beyond_its_limit(self, saved):
        """A real failing write, in a process of its own: files may grow to 4 KB there."""
        code = (
            "import resource, signal, sys, jaxeval\n"
            "b = jaxeval.Battles.from_pandas(jaxeval.simulate_votes(20000, 50))\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
            "b.save(sys.argv[1])\n"
        )
        run = subprocess.run([sys.executable, "-c", code, str(saved)], capture_output=True, text=True)
        assert run.returncode != 0
        assert "cannot be written (" in run.stderr.splitlines()[-1]
        assert "the file is as it was" in run.stderr.splitlines()[-1]
        self.unharmed(saved)

    def test_links_and_permissions_stay(self, saved):
        link = saved.parent / "link.parquet"
        link.symlink_to(saved)
        saved.chmod(0o640)
        Battles.from_pandas(VOTES[:20]).save(link)
        assert link.is_symlink()
        assert saved.stat().st_mode & 0o777 == 0o640
        assert Battles.load(saved).n_battles == 20


class TestCommand:
    def run(self, *arguments):
        return run_command("leaderboard", *arguments, "--resamples", "20")

    def test_a_run_that_fails_adds_nothing(self, tmp_path):
        state = tmp_path / "state.parquet"
        VOTES.to_csv(tmp_path / "day.csv")
        result = self.run(tmp_path / "day.csv", "--state", state, "--gauge", "nobody=1000")
        assert result.exit_code == 1
        assert not state.exists()

    @pytest.mark.slow
    def test_times(self, tmp_path):
        """Those of a CSV file are in seconds, those of a state in milliseconds."""
        state = tmp_path / "state.parquet"
        for day in range(2):
            times = pd.date_range(f"2026-01-0{day + 1}", periods=2, freq="12h").repeat(500)
            VOTES[1000 * day : 1000 * (day + 1)].assign(when=times).to_csv(tmp_path / f"{day}.csv", index=False)
        for day in range(2):
            result = self.run(tmp_path / f"{day}.csv", "--state", state, "--by", "when")
            assert result.exit_code == 0, result.output
        assert pd.to_datetime(Battles.load(state).columns["when"]).nunique() == 4

    @pytest.fixture
    def other(self, tmp_path):
        """Battles that take the place of a state while a run adds the votes of ``tmp_path`` to it."""
        VOTES[2000:3000].to_parquet(tmp_path / "day-2.parquet")
        plain = VOTES[["model_a", "model_b", "winner"]]
        Battles.from_pandas(plain[:1000]).save(tmp_path / "state.parquet")
        return Battles.from_pandas(plain[1000:2000])

    def test_two_runs_at_once(self, other, tmp_path, monkeypatch):
        """The second to end would take the first one's battles away."""
        state = tmp_path / "state.parquet"
        with monkeypatch.context() as patch:
            patch.setattr("jaxeval.cli.outputs.show", lambda *_, **__: other.save(state))
            result = self.run(tmp_path / "day-2.parquet", "--state", state)
        assert result.exit_code == 1
        assert "was changed while this run was at work" in " ".join(result.stderr.split())
        assert Battles.load(state).n_battles == other.n_battles

    def test_a_change_at_the_last_moment(self, other, tmp_path, monkeypatch):
        """The state is compared again when all is written: only the rename is left."""
        state, write = tmp_path / "state.parquet", Battles.write

        def write_late(battles, file):
            write(battles, file)
            monkeypatch.setattr(Battles, "write", write)
            other.save(state)

        monkeypatch.setattr(Battles, "write", write_late)
        with (
            pytest.raises(click.ClickException, match="was changed while this run was at work"),
            State.opened(state, [tmp_path / "day-2.parquet"]) as opened,
        ):
            opened.save(opened.with_added(read))
        assert Battles.load(state).n_battles == other.n_battles
        assert sorted(path.name for path in tmp_path.iterdir()) == ["day-2.parquet", "state.parquet"]

    @pytest.mark.slow
    def test_processes_that_race_lose_no_day(self, tmp_path):
        """Each waits for the one before it, whatever it is doing, and adds to what that one left."""
        code = (
            "import sys, time; from pathlib import Path; from jaxeval.cli.state import State\n"
            "from jaxeval.data.readers import read_battles\n"
            "state, day, start = (Path(name) for name in sys.argv[1:])\n"
            "print(flush=True)\n"
            "while not start.exists(): time.sleep(0.01)\n"
            "with State.opened(state, [day]) as opened:\n"
            "    battles = opened.with_added(lambda paths, *_: read_battles(paths))\n"
            "    time.sleep(0.2)\n"
            "    opened.save(battles)\n"
        )
        state, start = tmp_path / "state.parquet", tmp_path / "start"
        runs = []
        for k in range(4):
            VOTES[100 * k : 100 * (k + 1)].to_csv(tmp_path / f"{k}.csv", index=False)
            command = [sys.executable, "-c", code, str(state), str(tmp_path / f"{k}.csv"), str(start)]
            runs.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        for run in runs:
            run.stdout.readline()  # imported
        start.touch()
        told = [run.communicate(timeout=60)[1] for run in runs]
        assert [run.returncode for run in runs] == [0] * 4, told
        assert sum("waiting for another run, which adds to" in text for text in told) == 3
        saved = Battles.load(state)
        assert saved.n_battles == 400
        assert sorted(saved.files.values()) == [f"{k}.csv" for k in range(4)]
        assert not list(tmp_path.glob(".*"))

    @pytest.mark.slow
    def test_a_lock_ends_with_its_process(self, tmp_path):
        """By kill -9, too; so does what it was writing."""
        code = (
            "import os, signal, sys; from pathlib import Path; from jaxeval.cli.state import State\n"
            "from jaxeval.execution.atomic_write import whole_file\n"
            "with State.opened(Path(sys.argv[1]), [Path(sys.argv[2])]), whole_file(sys.argv[1]) as file:\n"
            "    file.write(b'half'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        state, day = tmp_path / "state.parquet", tmp_path / "day.csv"
        VOTES[:100].to_csv(day, index=False)
        subprocess.run([sys.executable, "-c", code, str(state), str(day)], check=False)
        left = sorted(path.name for path in tmp_path.glob(".*"))
        assert sorted(name.split(".")[-1] for name in left) == ["lock", "unfinished"]
        with State.opened(state, [day]) as opened:
            opened.save(opened.with_added(read))
        assert Battles.load(state).n_battles == 100
        assert not list(tmp_path.glob(".*"))

    def test_several_files_and_counts(self, tmp_path):
        counts = VOTES.groupby(["model_a", "model_b", "winner"], observed=True).size().rename("n").reset_index()
        counts[:20].to_csv(tmp_path / "a.csv")
        counts[20:].to_csv(tmp_path / "b.csv")
        result = self.run(tmp_path / "a.csv", tmp_path / "b.csv", "--count", "n")
        assert "3,000 battles between 6 models" in result.stdout


class TestRatings:
    @pytest.fixture(scope="class")
    @classmethod
    def fit(cls):
        return jaxeval.fit_bradley_terry(VOTES)

    def test_warm_start(self, fit, tmp_path):
        fit.save(tmp_path / "ratings.json")
        today = pd.concat([VOTES, VOTES[:60].assign(model_a="new", winner=["model_a", "model_b", "tie"] * 20)])
        cold = jaxeval.fit_bradley_terry(today)
        for start in (fit, jaxeval.read_ratings(tmp_path / "ratings.json")):
            warm = jaxeval.fit_bradley_terry(today, start=start)
            np.testing.assert_allclose(warm.logits, cold.logits, rtol=0, atol=1e-9)
            assert warm.converged
        again = jaxeval.fit_bradley_terry(VOTES, start=fit)
        assert again.n_steps < fit.n_steps
        np.testing.assert_allclose(again.logits, fit.logits, rtol=0, atol=1e-9)

    def test_starts_from_anywhere(self, fit):
        for start in (
            pd.Series(np.inf, fit.ratings.index),
            pd.Series([9000.0], ["model-1"]),
            pd.Series([1.0], ["nobody"]),
            -3 * fit.ratings,
        ):
            warm = jaxeval.fit_bradley_terry(VOTES, start=start)
            np.testing.assert_allclose(warm.logits, fit.logits, rtol=0, atol=1e-9)

    def test_what_is_no_start(self, fit):
        with pytest.raises(TypeError, match="start must be a fit or a Series"):
            jaxeval.fit_bradley_terry(VOTES, start={"model-1": 3.0})
        with pytest.raises(TypeError, match=r"start must hold ratings, which are numbers: .*'high'"):
            jaxeval.fit_bradley_terry(VOTES, start=pd.Series("high", fit.ratings.index))
        with pytest.raises(TypeError, match=r"with each model once: it has 'model-1' more than once$"):
            jaxeval.fit_bradley_terry(VOTES, start=pd.Series([1.0, 2.0], ["model-1", "model-1"]))
        with pytest.raises(ValueError, match="without features and tie models"):
            jaxeval.fit_bradley_terry(VOTES, start=fit, ties="davidson")

    def test_round_trip(self, tmp_path):
        rows = pd.concat([VOTES, VOTES[:1].assign(model_a="best", winner="model_a")])
        fit = jaxeval.fit_bradley_terry(rows, gauge=("model-1", 1234.0))
        fit.save(tmp_path / "x.json")
        ratings = jaxeval.read_ratings(tmp_path / "x.json")
        pd.testing.assert_series_equal(ratings, fit.ratings, check_exact=True, check_index_type=False)
        assert ratings["best"] == np.inf
        assert ratings.attrs["settings"]["gauge"] == fit.settings.gauge

    @pytest.mark.parametrize(("text", "found"), [
        ("{", "it is no JSON text"),
        ("[1]", "does not say 'format'"),
        ('{"format": "jaxeval ratings", "version": 2}', "has version 2"),
        ('{"format": "jaxeval ratings", "version": 1, "ratings": [["a", 1]], "settings": {}}', "is damaged"),
    ])  # fmt: skip
    def test_files_that_are_no_ratings(self, tmp_path, text, found):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(DataError, match=found):
            jaxeval.read_ratings(tmp_path / "x.json")

    @pytest.mark.parametrize(("change", "found"), [
        ({"ratings": [["a", 10**400]]}, r"expected \[model, number\], got \['a', 1000"),
        ({"ratings": [["a", True]]}, "expected"),
        ({"ratings": [["a", "x"]]}, "broken ratings"),
        ({"ratings": [["a", None]]}, "expected"),
        ({"ratings": [["a", 1, 2]]}, "expected"),
        ({"ratings": [[["a"], 1], [["b"], 2]]}, "expected"),
        ({"ratings": [[{"a": 1}, 1]]}, "expected"),
        ({"ratings": [[None, 1]]}, "expected"),
        ({"ratings": ["ab"]}, "expected"),
        ({"ratings": [["a", 1], ["b", 2], ["a", 3]]}, "model 'a' is there more than once"),
        ({"ratings": {"ab": 1}}, "lacks the list 'ratings'"),
        ({"ratings": "ab"}, "lacks the list 'ratings'"),
        ({"ratings": []}, "lacks the list 'ratings'"),
        ({"settings": [["a", 1]]}, "or the 'settings'"),
        ({"settings": None}, "or the 'settings'"),
        ({"version": True}, "has version True"),
    ])  # fmt: skip
    def test_ratings_changed_by_hand(self, tmp_path, change, found):
        content = {"format": "jaxeval ratings", "version": 1, "ratings": [["a", 1]], "settings": {}} | change
        (tmp_path / "x.json").write_text(json.dumps(content | {"digest": json_digest(content)}))
        with pytest.raises(DataError, match=found):
            jaxeval.read_ratings(tmp_path / "x.json")

    def test_damage_is_noticed(self, fit, tmp_path):
        """Whatever a file with another byte, or without its end, gives: it is what was saved, or an error."""
        path = tmp_path / "x.json"
        fit.save(path)
        whole, saved = path.read_bytes(), jaxeval.read_ratings(path)
        rng, n_errors = np.random.default_rng(0), 0
        for case in range(300):
            data = bytearray(whole)
            place = int(rng.integers(len(data)))
            if case % 3 == 0:
                data[place] ^= 1 << int(rng.integers(8))
            elif case % 3 == 1:
                data[place] = int(rng.choice(list(b"0123456789.-e")))
            else:
                del data[place : place + int(rng.integers(1, 40))]
            path.write_bytes(data)
            try:
                found = jaxeval.read_ratings(path)
            except DataError:
                n_errors += 1
                continue
            pd.testing.assert_series_equal(found, saved, check_exact=True)
            assert found.attrs == saved.attrs
        assert n_errors > 240  # blanks between words are all that may change
        content = json.loads(whole)
        content["ratings"][0][1] += 1
        for digest in (content["digest"], None):
            path.write_text(json.dumps(content | {"digest": digest}))
            with pytest.raises(DataError, match=r"x\.json is damaged: it does not hold what was saved; use a copy, or"):
                jaxeval.read_ratings(path)
        del content["digest"]
        path.write_text(json.dumps(content))
        with pytest.raises(DataError, match="is damaged"):
            jaxeval.read_ratings(path)


def test_propensities_are_kept_and_are_of_all_battles_or_of_none(tmp_path):
    own = VOTES.assign(p=np.where(np.arange(3000) % 3, 0.5, 0.1))
    whole = Battles.from_pandas(own, propensity="p")
    parts = [Battles.from_pandas(part, propensity="p") for part in (own[:1000], own[1000:])]
    both = Battles.concat(parts)
    assert both.report.n_effective == pytest.approx(whole.report.n_effective)
    assert_same(replace(both, report=whole.report), Battles.concat([whole]))
    both.save(tmp_path / "votes.parquet")
    assert Battles.load(tmp_path / "votes.parquet").report == both.report
    with pytest.raises(DataError, match="some of the battles have propensities and some do not"):
        Battles.concat([parts[0], Battles.from_pandas(own[1000:])])


def test_a_state_is_not_read_as_votes(saved):
    """Its rows are distinct battles with their numbers, which the columns of votes do not show."""
    with pytest.raises(DataError, match=r"battles that jaxeval saved, not votes: load it with Battles\.load; on"):
        jaxeval.read_battles(saved)
    result = run_command("leaderboard", saved, "--state", saved.with_name("other.parquet"))
    assert result.exit_code == 1
    assert "battles that jaxeval saved, and no votes to add" in result.output
    frame = Battles.load(saved).to_pandas()
    with pytest.raises(DataError, match="a column 'count' beside 'target'"):
        Battles.from_pandas(frame)
    for name in ("first", "second", "pair", "target", "weight", "count"):
        own = getattr(Battles.from_pandas(frame, count="count").cells, name)
        np.testing.assert_array_equal(own, getattr(Battles.load(saved).cells, name))


def test_starts_on_another_scale(saved):
    """From which Newton's method does not come back: the fit is that without a start."""
    battles = Battles.load(saved)
    cold = jaxeval.fit_bradley_terry(battles)
    for factor in (100, 1e6):
        warm = jaxeval.fit_bradley_terry(battles, start=1000 + (cold.ratings - 1000) * factor)
        assert warm.converged
        np.testing.assert_allclose(warm.ratings, cold.ratings, atol=1e-6)


def test_columns_that_cannot_be_compared():
    frame = VOTES.assign(month=pd.period_range("2026-01", periods=len(VOTES), freq="h"))
    with pytest.raises(DataError, match=r"column 'month' holds .*make them text"):
        Battles.concat([Battles.from_pandas(frame)])
    frame = VOTES.assign(part=pd.cut(np.arange(len(VOTES)), 3))
    with pytest.raises(DataError, match="make them text"):
        Battles.concat([Battles.from_pandas(frame)])


def test_nothing_is_unpickled(saved):
    table = pq.read_table(saved)
    assert set(table.schema.metadata) == {b"jaxeval"}
    assert pa.types.is_string(table.schema.field("language").type) or pa.types.is_dictionary(
        table.schema.field("language").type
    )
