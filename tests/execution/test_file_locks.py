import errno
import os
import subprocess
import sys

import pytest

from jaxeval.execution import file_locks
from jaxeval.execution.file_locks import alone, try_lock

HELD = (
    "import pathlib, sys; from jaxeval.execution.file_locks import alone\n"
    "with alone(pathlib.Path(sys.argv[1]), lambda: None):\n"
    "    print('held', flush=True)\n"
    "    sys.stdin.read()\n"
)


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

    monkeypatch.setattr(file_locks, "_lock", unknown)
    with pytest.raises(OSError, match=r"locks no files .Function not implemented"), alone(tmp_path / "x", pytest.fail):
        pass
