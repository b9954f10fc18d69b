"""Files on other machines, from a server on 127.0.0.1 that also answers as the hub does."""

import builtins
import errno
import gzip
import io
import logging
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry
from served import REPOSITORY, TOKEN, served

import jaxeval
from jaxeval.data import file_formats, remote_files
from jaxeval.data.file_lists import files_of, local_file, names_of
from jaxeval.data.remote_files import reaching
from jaxeval.data.remote_names import base_name, is_remote, shown
from jaxeval.data.saved_battles import files_to_add
from jaxeval.errors import DataError

N = 2_000
VOTES = jaxeval.simulate_votes(N, 4, seed=0)
CSV = VOTES.to_csv(index=False).encode()
LESS = VOTES.head(N - 1).to_csv(index=False).encode()  # the same rows do not count twice
HUB = f"hf://{REPOSITORY}"


def parquet(**options):
    """Votes in Parquet, with a column of long texts that do not compress."""
    rng, file = np.random.default_rng(0), io.BytesIO()
    texts = [rng.bytes(1_500) for _ in range(N)]
    VOTES.assign(prompt=texts).to_parquet(file, row_group_size=N // 2, **options)
    return file.getvalue()


PARQUET = parquet()


@pytest.fixture
def server(monkeypatch, tmp_path):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(remote_files, "_COPIES", {})
    with served() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        server.files = {"/votes.csv": CSV, "/votes.parquet": PARQUET, "/hub/data/day-1.parquet": PARQUET,
                        "/hub/data/day-2.csv": CSV, "/hub/README.md": b"# votes"}  # fmt: skip
        yield server


@pytest.fixture
def copies(monkeypatch, tmp_path):
    """The files that were fetched in a test."""
    folder = tmp_path / "copies"
    folder.mkdir()
    monkeypatch.setattr(remote_files, "folder_of_copies", lambda: folder)
    return lambda: [path for path in folder.rglob("*") if path.is_file()]


def same(battles, expected):
    assert battles.n_battles == expected.n_battles
    assert list(battles.models) == list(expected.models)
    np.testing.assert_array_equal(battles.target, expected.target)


def test_files_of_the_web_are_read_as_files_here(server):
    expected = jaxeval.Battles.from_pandas(VOTES)
    same(jaxeval.read_battles(f"{server.url}/votes.csv"), expected)
    server.files |= {"/packed.csv.gz": gzip.compress(CSV), "/download": gzip.compress(CSV)}
    same(jaxeval.read_battles(f"{server.url}/packed.csv.gz"), expected)
    same(jaxeval.read_battles(f"{server.url}/download?id=7"), expected)
    server.status["/moved.csv"] = 302, {"Location": "/votes.csv"}
    same(jaxeval.read_battles(f"{server.url}/moved.csv"), expected)


def test_a_signed_address_is_sent_as_it_is(server):
    server.files["/a day.csv"] = CSV
    signed = "/a%20day.csv?X-Amz-Credential=AK%2F2024%2Fs3&sig=a%2Bb%3D%3D%7E"
    for address in (signed, "/a day.csv"):
        assert jaxeval.read_battles(server.url + address).n_battles == N
    assert server.addresses == {signed, "/a%20day.csv"}


def test_a_file_is_fetched_again_only_if_it_has_changed(server):
    address = f"{server.url}/votes.csv"
    first = local_file(address)
    assert local_file(address) == first
    assert len(server.fetched) == 1
    server.files["/votes.csv"] = CSV + CSV.split(b"\n")[1] + b"\n"
    assert jaxeval.read_battles(address).n_battles == N + 1


@pytest.mark.parametrize("place", ["web", "hub"])
def test_of_parquet_only_the_columns_that_are_read_are_fetched(server, place):
    address = f"{server.url}/votes.parquet" if place == "web" else f"{HUB}/data/day-1.parquet"
    same(jaxeval.read_battles(address, keep=["language"]), jaxeval.Battles.from_pandas(VOTES))
    parts = [part for path, part in server.fetched if path.endswith(".parquet")]
    assert None not in parts
    assert sum(end - start for start, end in parts) < 0.1 * len(PARQUET)
    jaxeval.read_battles(address, keep=["language"])
    assert len([part for path, part in server.fetched if path.endswith(".parquet")]) == len(parts)
    # And what is needed besides comes later.
    copy = local_file(address)
    assert copy.read_bytes() != PARQUET
    remote_files.fetch_columns(copy)
    assert copy.read_bytes() == PARQUET


def test_columns_are_found_in_every_layout_of_parquet(server, monkeypatch):
    monkeypatch.setattr(remote_files, "_GAP_BYTES", 0)
    nested = pd.DataFrame({"model_a": ["x", "y", "x"], "model_b": ["y", "z", "z"], "winner": ["model_a", "tie", "tie"],
                           "about": [{"turns": 1, "tags": ["a"]}, {"turns": 2, "tags": []}, {"turns": 3, "tags": None}],
                           "about.turns": [4, 5, 6]})  # fmt: skip
    for options in ({"compression": "zstd"}, {"use_dictionary": False}, {"data_page_version": "2.0"}):
        file = io.BytesIO()
        nested.to_parquet(file, **options)
        server.files["/nested.parquet"] = file.getvalue()
        copy = local_file(f"{server.url}/nested.parquet")
        remote_files.fetch_columns(copy, ["about", "winner"])
        table = pq.read_table(copy, columns=["about", "winner"]).to_pandas()
        assert list(table["winner"]) == list(nested["winner"])
        assert [one["turns"] for one in table["about"]] == [1, 2, 3]


def test_a_long_footer_is_fetched_whole(server, monkeypatch):
    monkeypatch.setattr(remote_files, "_END_BYTES", 100)
    same(jaxeval.read_battles(f"{server.url}/votes.parquet"), jaxeval.Battles.from_pandas(VOTES))
    assert len(server.fetched) == 4  # the end, the rest of the footer, and the columns of two groups of rows


@pytest.mark.parametrize("content", [PARQUET[:-4], b"PAR1 but no more"])
def test_what_is_no_parquet_is_an_error_about_the_file(server, content):
    server.files["/votes.parquet"] = content
    with pytest.raises(DataError, match=r"votes\.parquet: cannot be read"):
        jaxeval.read_battles(f"{server.url}/votes.parquet")


def test_text_is_read_whatever_its_name_says(server):
    server.files["/votes.parquet"] = CSV
    same(jaxeval.read_battles(f"{server.url}/votes.parquet"), jaxeval.Battles.from_pandas(VOTES))


def test_a_server_that_sends_whole_files_only_is_read(server):
    server.whole.add("/votes.parquet")
    same(jaxeval.read_battles(f"{server.url}/votes.parquet"), jaxeval.Battles.from_pandas(VOTES))
    assert ("/votes.parquet", None) in server.fetched


def small_parquet():
    small = io.BytesIO()
    VOTES.head(20).to_parquet(small)
    return small.getvalue()


def test_a_small_file_of_a_server_that_sends_whole_files_only_is_read(server):
    server.files["/votes.parquet"] = small_parquet()
    server.whole.add("/votes.parquet")
    assert jaxeval.read_battles(f"{server.url}/votes.parquet").n_battles == 20
    assert len(server.fetched) == 1  # its end is the whole


def test_a_file_whose_server_sends_no_parts_any_more_is_fetched_whole(server):
    copy = local_file(f"{server.url}/votes.parquet")
    server.whole.add("/votes.parquet")
    remote_files.fetch_columns(copy, ["winner"])
    assert copy.read_bytes() == PARQUET
    assert not remote_files.is_partial(copy)


def test_the_end_of_a_file_that_breaks_is_told(server, copies):
    server.files["/votes.parquet"] = small_parquet()
    server.breaks.add("/votes.parquet")
    with pytest.raises(DataError, match=r"the connection broke before all of [\d,]+ bytes were here"):
        jaxeval.read_battles(f"{server.url}/votes.parquet")
    assert copies() == []


def test_patterns_and_lists_are_one_table(server, tmp_path):
    here = tmp_path / "here.csv"
    here.write_bytes(VOTES.head(N - 2).to_csv(index=False).encode())
    server.files["/hub/data/day-2.csv"] = LESS
    server.files["/votes.csv"] = VOTES.head(N - 3).to_csv(index=False).encode()
    assert names_of(f"{HUB}/data/*") == [f"{HUB}/data/day-1.parquet", f"{HUB}/data/day-2.csv"]
    assert not [path for path, _ in server.fetched if "/resolve/" in path]
    battles = jaxeval.read_battles([f"{HUB}/*/*-?.*", here, f"{server.url}/votes.csv"])
    assert battles.n_battles == 4 * N - 6
    with pytest.raises(FileNotFoundError, match="no file matches hf://"):
        files_of(f"{HUB}/data/*.jsonl")


def test_a_page_of_links_has_files_that_match(server):
    server.files |= {"/days/": b'<a href="1.csv">1</a> <a href="2.csv">2</a> <a href="notes.txt">3</a>',
                     "/days/1.csv": CSV, "/days/2.csv": LESS}  # fmt: skip
    assert jaxeval.read_battles(f"{server.url}/days/*.csv").n_battles == 2 * N - 1


class Bucket(MemoryFileSystem):
    """What fsspec makes of other protocols, in memory."""

    protocol = "s3"
    store, pseudo_dirs = {}, [""]

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.removeprefix("s3:/"))

    def info(self, path, **options):
        if "secret" in path:
            raise PermissionError("Access denied to geheim")
        return super().info(path, **options)


def test_other_protocols_are_read_as_fsspec_does(copies, monkeypatch):
    monkeypatch.setitem(_registry, "s3", Bucket)
    system = Bucket()
    for name, content in (("day-1.csv", LESS), ("day-2.parquet", PARQUET)):
        system.pipe_file(f"/bucket/{name}", content)
    assert names_of("s3://bucket/day-*") == ["s3://bucket/day-1.csv", "s3://bucket/day-2.parquet"]
    assert jaxeval.read_battles("s3://bucket/day-*").n_battles == 2 * N - 1
    assert {path.name for path in copies()} == {"day-1.csv", "day-2.parquet"}
    with pytest.raises(FileNotFoundError, match=r"no such file: s3://bucket/day-3.csv; did you mean 'day-1.csv'"):
        jaxeval.read_battles("s3://bucket/day-3.csv")
    with pytest.raises(DataError, match=r"s3://bucket/secret.csv cannot be fetched: its server wants a login"):
        jaxeval.read_battles("s3://bucket/secret.csv")


def test_every_reader_takes_them(server, tmp_path):
    rows = {"rankings.csv": "ranking\na > b > c\nb > a = c\n", "names.csv": "model,name\nmodel-1,one\n",
            "names.json": '{"model-1": "one"}', "models.csv": "model,licence\nmodel-1,open\n",
            "verdicts.csv": "model,item,verdict\nx,1,win\ny,1,loss\n",
            "answers.csv": "model,item,judge-1,human\nx,1,1,1\ny,1,0,1\n",
            "judged.csv": "model_a,model_b,human,scores_a,scores_b\nx,y,model_a,3,2\nx,y,model_b,1,2\n"}  # fmt: skip
    server.files |= {f"/{name}": text.encode() for name, text in rows.items()}
    at = {name: f"{server.url}/{name}?key=1" for name in rows}
    assert jaxeval.read_rankings(at["rankings.csv"]).n_rankings == 2
    assert jaxeval.read_metadata(at["models.csv"])["licence"].to_dict() == {"model-1": "open"}
    names = jaxeval.data.model_tables.read_names
    assert names(at["names.csv"]) == names(at["names.json"]) == {"model-1": "one"}
    assert list(jaxeval.read_anchored_verdicts(at["verdicts.csv"]).levels["model"]) == ["x", "y"]
    assert "2 rows" in str(jaxeval.read_judged_answers(at["answers.csv"], judgment="judge-1").report)
    assert "2 rows" in str(jaxeval.read_judged_battles(at["judged.csv"]).report)


@pytest.mark.parametrize("name", [name for name in jaxeval.__all__ if name.startswith("read_")])
def test_every_function_that_reads_asks_for_the_file(server, name):
    with pytest.raises(FileNotFoundError, match=r"no such file: http://.*/none\.csv$"):
        getattr(jaxeval, name)(f"{server.url}/none.csv")


def test_what_was_saved_is_read_whole(server, tmp_path):
    battles = jaxeval.Battles.from_pandas(VOTES)
    battles.save(tmp_path / "state.parquet")
    server.files["/state.parquet"] = (tmp_path / "state.parquet").read_bytes()
    same(jaxeval.Battles.load(f"{server.url}/state.parquet"), jaxeval.Battles.load(tmp_path / "state.parquet"))
    here = tmp_path / "votes.parquet"
    here.write_bytes(PARQUET)
    assert files_to_add([f"{server.url}/votes.parquet"], {}).added == files_to_add([here], {}).added


ERRORS = {
    "/none.csv": (FileNotFoundError, r"no such file: http://127[.\d:]+/none\.csv$"),
    "/login.csv": (DataError, r"wants a login, or refuses yours \(401\): put user and password in"),
    "/down.csv": (DataError, "its server answers 503; no part of it is kept: try again"),
    "/loop.csv": (DataError, "redirects without end"),
    "/elsewhere.csv": (DataError, "cannot be reached"),
    "/page.csv": (DataError, "is a web page, and no file: name the file itself"),
    "/broken.csv": (DataError, rf"the connection broke (after at least [\d,]+|before all) of {len(CSV):,} bytes"),
    "/short.csv": (DataError, rf"the connection broke after at least {len(CSV):,} of {len(CSV) + 7:,} bytes"),
}


@pytest.mark.parametrize("path", ERRORS)
def test_what_fails_is_told_and_leaves_no_file(server, copies, path):
    server.status = {"/login.csv": (401, {}), "/down.csv": (503, {}), "/loop.csv": (302, {"Location": "/loop.csv"}),
                     "/elsewhere.csv": (302, {"Location": "file:///etc/passwd"})}  # fmt: skip
    server.files |= {"/page.csv": b" <!DOCTYPE html><html>log in</html>", "/broken.csv": CSV, "/short.csv": CSV}
    server.breaks.add("/broken.csv")
    server.announced = {"/short.csv": len(CSV) + 7}
    kind, text = ERRORS[path]
    with pytest.raises(kind, match=text):
        jaxeval.read_battles(f"{server.url}{path}")
    assert copies() == []


def test_columns_whose_connection_breaks_leave_no_file(server, copies):
    address = f"{server.url}/votes.parquet"
    copy = local_file(address)
    server.breaks.add("/votes.parquet")
    with pytest.raises(DataError, match=r"the connection broke (after at least [\d,]+|before all) of [\d,]+ bytes"):
        jaxeval.read_battles(address)
    assert copies() == []
    server.breaks.clear()
    same(jaxeval.read_battles(address), jaxeval.Battles.from_pandas(VOTES))
    assert local_file(address) != copy


def test_a_file_that_changes_meanwhile_is_no_mixture(server, copies):
    address = f"{server.url}/votes.parquet"
    copy = local_file(address)
    server.files["/votes.parquet"] += PARQUET
    with pytest.raises(DataError, match=r"votes\.parquet was changed while it was fetched: read it again"):
        remote_files.fetch_columns(copy, ["winner"])
    assert copies() == []


def test_a_table_without_the_columns_is_told_before_they_are_fetched(server):
    with pytest.raises(DataError, match=r"^votes\.parquet: no column 'left' in the (file|table); its columns are"):
        jaxeval.read_battles(f"{server.url}/votes.parquet", model_a="left")
    assert len(server.fetched) == 1
    damaged = PARQUET[:-2_000] + bytes(1_900) + PARQUET[-100:]
    server.files["/votes.parquet"] = damaged
    with pytest.raises(DataError, match=r"^votes\.parquet: cannot be read"):
        jaxeval.read_battles(f"{server.url}/votes.parquet")


def test_a_server_that_is_silent_or_away_is_told(server, copies, monkeypatch):
    monkeypatch.setattr(remote_files, "_SECONDS_SILENT", 0.2)
    server.silent.add("/votes.csv")
    with pytest.raises(DataError, match="its server does not answer in time"):
        jaxeval.read_battles(f"{server.url}/votes.csv")
    with pytest.raises(DataError, match="its server cannot be reached"):
        jaxeval.read_battles("http://127.0.0.1:1/votes.csv")
    assert copies() == []


def test_the_hub_says_what_is_wrong(server, copies, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"no such file: hf://.*/day-3.parquet; did you mean 'day-1.parquet'"):
        jaxeval.read_battles(f"{HUB}/data/day-3.parquet")
    with pytest.raises(FileNotFoundError, match=r"no such file: .*; there are data, README.md"):
        jaxeval.read_battles(f"{HUB}/x/y.parquet")
    with pytest.raises(FileNotFoundError, match=r"no such repository: .* HF_TOKEN"):
        jaxeval.read_battles("hf://datasets/people/other/votes.csv")
    with pytest.raises(DataError, match=r"is a folder: .*; there are data/day-1.parquet, data/day-2.csv"):
        jaxeval.read_battles(HUB)
    server.gated = True
    for name in ("day-1.parquet", "day-2.csv"):
        with pytest.raises(DataError, match=r"is gated: accept its conditions .*hf auth login.*HF_TOKEN"):
            jaxeval.read_battles(f"{HUB}/data/{name}")
    assert copies() == []
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert jaxeval.read_battles(f"{HUB}/data/day-2.csv").n_battles == N


def test_a_connection_to_the_hub_that_breaks_leaves_no_file(server, copies, monkeypatch, caplog):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    caplog.set_level(logging.ERROR, logger="huggingface_hub")
    server.breaks |= {"/hub/data/day-1.parquet", "/hub/data/day-2.csv"}
    for name in ("day-1.parquet", "day-2.csv"):
        with pytest.raises(DataError, match=r"hf://.* cannot be fetched: .*no part of it is kept"):
            jaxeval.read_battles(f"{HUB}/data/{name}")
    assert copies() == []


def test_passwords_and_tokens_are_never_told(server, copies, monkeypatch, capsys):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(remote_files, "_LARGE", 0)
    secret = server.url.replace("//", "//me:geheim@")
    battles = jaxeval.read_battles(f"{secret}/votes.csv?token=geheim#geheim")
    told = [repr(battles), str(battles.report), capsys.readouterr().err]
    assert "fetching 0." in told[2]
    server.files["/page.csv"] = b"<html>"
    away = "http://me:geheim@127.0.0.1:1/votes.csv"
    for address in (f"{secret}/none.csv", away, f"{secret}/page.csv", f"{secret}/*.csv", "ftps://me:geheim@x/y.csv"):
        with pytest.raises((DataError, FileNotFoundError)) as caught:
            jaxeval.read_battles(f"{address}?token=geheim")
        told.append(str(caught.value))
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
    with pytest.raises(DataError) as caught:
        jaxeval.read_battles(f"{secret}/votes.csv?token=geheim", winner="none")
    told.append(str(caught.value))
    assert told[-1].startswith("votes.csv: ")
    for text in told:
        assert "geheim" not in text
        assert TOKEN not in text


@pytest.mark.parametrize(
    "name",
    ["file:///etc/passwd", "simplecache::https://x/y.csv", "zip://a.csv::https://x/y.zip", "memory://x",
     "reference://x.json", "local:///etc/passwd", "git://x", "data://text"],
)  # fmt: skip
def test_names_that_reach_into_this_machine_are_refused(name):
    with pytest.raises(DataError, match="the name of a file on another machine begins with one of hf, http, https"):
        jaxeval.read_battles(name)


@pytest.mark.parametrize("address", ["https://x/y.csv", "hf://datasets/x/y/z.csv"])
def test_a_missing_extra_is_named(monkeypatch, address):
    own = builtins.__import__

    def without(name, *rest, **options):
        if name.split(".")[0] in ("fsspec", "aiohttp", "huggingface_hub"):
            raise ImportError(f"No module named {name!r}")
        return own(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"the extra jaxeval\[remote\]: pip install 'fsspec"):
        jaxeval.read_battles(address)


def test_too_large_a_file_is_refused_before_it_is_fetched(server, copies, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 1_000})())
    with pytest.raises(DataError, match=r"fetching it takes 0\.1 MB, but .* has 0\.0 MB free: .* set TMPDIR"):
        jaxeval.read_battles(f"{server.url}/votes.csv")
    assert server.fetched == []
    assert copies() == []


def test_a_full_disk_is_named():
    message = r"no space is left in .* after at least 5 of 9 bytes; no part of it is kept: .* TMPDIR"
    with pytest.raises(DataError, match=message), reaching("https://x/votes.csv", done=lambda: (5, 9)):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_path_is_no_address():
    with pytest.raises(FileNotFoundError, match="give an address as text: a Path drops one of its slashes"):
        jaxeval.read_battles(Path("hf://datasets/a/b/c.csv"))


def test_protocols_in_capitals(server):
    expected = jaxeval.Battles.from_pandas(VOTES)
    same(jaxeval.read_battles(server.url.replace("http", "HTTP") + "/votes.csv"), expected)
    same(jaxeval.read_battles(HUB.replace("hf", "HF") + "/data/*.csv"), expected)


def test_an_address_that_is_none_is_named():
    with pytest.raises(DataError, match=r"http://\[::1/a.csv is no address: Invalid IPv6 URL"):
        jaxeval.read_battles("http://[::1/a.csv")


def test_names_are_told_apart_and_shown_without_secrets():
    assert is_remote("hf://datasets/a/b/c.csv")
    assert is_remote("simplecache::s3://a/b")
    assert not is_remote("votes/a::b.csv")
    assert not is_remote("C:/votes.csv")
    assert not is_remote(Path("votes.csv"))
    assert shown("https://me:p@ss@host:8/a/b.csv?c=d&e") == "https://***@host:8/a/b.csv?..."
    assert shown("hf://datasets/a/b@main/c.csv") == "hf://datasets/a/b@main/c.csv"
    assert base_name("https://host/a%20b.csv?c=/d.parquet") == "a b.csv"
    assert base_name("https://host/a%2F..%2Fb.csv") == "a_.._b.csv"
    assert base_name("https://host/a/%2e%2e") == base_name("https://host") == "file"
    assert len(base_name(f"https://host/{'x' * 999}.csv")) < 200
    assert base_name("hf://datasets/a/b/c.csv") == "c.csv"


def test_threads_share_one_folder_of_copies(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(file_formats, "_remove_left", partial(time.sleep, 0.05))
    monkeypatch.setattr(file_formats, "_made_folder", cache(file_formats._made_folder.__wrapped__))
    with ThreadPoolExecutor(4) as pool:
        folders = {future.result() for future in [pool.submit(file_formats.folder_of_copies) for _ in range(4)]}
    assert {*tmp_path.iterdir()} == folders
    assert len(folders) == 1


HOLDS = """
import time
from jaxeval.data import file_formats
print(file_formats.folder_of_copies(), flush=True)
time.sleep(60)
"""


def test_copies_of_a_process_that_was_killed_are_removed_by_the_next(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", HOLDS], stdout=subprocess.PIPE, text=True, env=own) as process:
        folder = Path(process.stdout.readline().strip())
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o077 == 0
        file_formats._remove_left()
        assert folder.exists()
        process.kill()
    file_formats._remove_left()
    assert not folder.exists()
