import errno
import os
import subprocess
import sys

import pytest

from jaxeval.execution import atomic_write
from jaxeval.execution.atomic_write import alone, remove_unfinished, try_lock, whole_file
from jaxeval.execution.checkpoints import Checkpoint

KILLED = (
    "import os, signal, sys; from jaxeval.execution.atomic_write import whole_file\n"
    "with whole_file(sys.argv[1]) as file:\n"
    "    file.write(b'half'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
)
HELD = (
    "import pathlib, sys; from jaxeval.execution.atomic_write import alone\n"
    "with alone(pathlib.Path(sys.argv[1]), lambda: None):\n"
    "    print('held', flush=True)\n"
    "    sys.stdin.read()\n"
)


def written(path, content):
    with whole_file(path) as file:
        file.write(content)


class TestUnfinished:
    def test_the_next_to_write_in_the_folder_removes_it(self, tmp_path):
        """After kill -9."""
        subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "a.csv")], check=False)
        assert len(list(tmp_path.glob(".a.csv.*.unfinished"))) == 1
        written(tmp_path / "b.csv", b"whole")
        assert [path.name for path in tmp_path.iterdir()] == ["b.csv"]

    def test_what_another_is_writing_stays(self, tmp_path):
        with whole_file(tmp_path / "a.csv") as first:
            first.write(b"first")
            written(tmp_path / "a.csv", b"second")
            assert (tmp_path / "a.csv").read_bytes() == b"second"
        assert (tmp_path / "a.csv").read_bytes() == b"first"
        assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]

    def test_what_is_written_and_waits_for_its_place_stays(self, tmp_path):
        with whole_file(tmp_path / "a.csv", lambda: written(tmp_path / "b.csv", b"other")) as file:
            file.write(b"whole")
        assert (tmp_path / "a.csv").read_bytes() == b"whole"

    def test_hidden_files_of_others_stay(self, tmp_path):
        for name in (".a.csv.original", "a.unfinished"):
            (tmp_path / name).touch()
        written(tmp_path / "a.csv", b"x")
        remove_unfinished(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == {".a.csv.original", "a.unfinished", "a.csv"}

    def test_a_folder_of_finished_resamples(self, tmp_path):
        (tmp_path / ".lanes.0-0.npz.abcdefgh.unfinished").touch()
        Checkpoint(tmp_path, "digest", {})
        assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_check_that_fails_leaves_the_old_file(tmp_path):
    def check():
        raise RuntimeError("changed")

    written(tmp_path / "a", b"old")
    with pytest.raises(RuntimeError, match="changed"), whole_file(tmp_path / "a", check) as file:
        file.write(b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_is_written_and_stays_one(tmp_path):
    """A file that took the place of /dev/null would stay there."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        written(path, b"whole")
        assert os.read(reader, 10) == b"whole"
    finally:
        os.close(reader)
    assert path.is_fifo()


def test_one_at_a_time(tmp_path):
    """Until the other process ends, however it does."""
    path = tmp_path / ".lock"
    with subprocess.Popen([sys.executable, "-c", HELD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()

        def waiting():
            handle = os.open(path, os.O_RDWR)
            assert not try_lock(handle)
            os.close(handle)
            other.kill()

        with alone(path, waiting):
            other.wait(60)
            assert path.exists()
    assert not path.exists()


def test_nobody_waits_for_what_is_free(tmp_path):
    (tmp_path / ".lock").touch()  # left by a process that was killed
    with alone(tmp_path / ".lock", pytest.fail):
        pass
    assert not list(tmp_path.iterdir())


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def unknown(*_, **__):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(atomic_write, "_lock", unknown)
    with pytest.raises(OSError, match=r"locks no files .Function not implemented"), alone(tmp_path / "x", pytest.fail):
        pass
