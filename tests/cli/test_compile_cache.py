import os
import sys
from pathlib import Path

import pytest

from jaxeval.cli import compiling
from jaxeval.cli.compiling import program_folder, remove_programs


@pytest.fixture
def home(monkeypatch, tmp_path):
    """Of a user without variables: ``tmp_path``."""
    for name in ("JAXEVAL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def named(home, monkeypatch):
    """The folder of programs by its name."""

    def folder(path):
        monkeypatch.setenv("JAXEVAL_CACHE", str(path))
        return program_folder()

    return folder


class TestTheFolder:
    def test_is_the_users_own(self, home, tmp_path):
        folder = program_folder()
        assert folder == tmp_path / ".cache" / "jaxeval"
        assert folder.stat().st_mode & 0o777 == 0o700

    def test_lies_where_the_system_keeps_caches(self, home, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        assert compiling._usual_folder() == tmp_path / ".cache"
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
        assert compiling._usual_folder() == tmp_path / "x"
        monkeypatch.setattr(sys, "platform", "darwin")
        assert compiling._usual_folder() == tmp_path / "Library" / "Caches"
        monkeypatch.setattr(sys, "platform", "win32")
        monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
        assert compiling._usual_folder() == tmp_path / "local"

    def test_may_be_named(self, named, tmp_path):
        assert named(tmp_path / "a" / "named") == tmp_path / "a" / "named"

    def test_may_be_named_in_the_home_folder(self, named, tmp_path):
        """Neither Python nor most files of settings put it in place of ``~``, as shells do."""
        assert named("~/named") == tmp_path / "named"

    def test_none_if_it_is_off(self, named, tmp_path):
        assert named("off") is None
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.skipif(sys.platform == "win32", reason="no modes")
    @pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
    def test_refused_if_others_may_write_to_it(self, named, tmp_path, mode):
        """They could put programs there, which this process would run."""
        tmp_path.chmod(mode)
        with pytest.raises(PermissionError, match=f"has mode {mode:04o}, and programs are only kept"):
            named(tmp_path)

    @pytest.mark.skipif(sys.platform == "win32", reason="no numbers of users")
    def test_refused_if_it_is_anothers(self, named, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
        with pytest.raises(PermissionError, match=f"belongs to user {tmp_path.stat().st_uid} and"):
            named(tmp_path)

    def test_refused_if_it_is_none(self, named, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(NotADirectoryError, match="file is no folder"):
            named(tmp_path / "file")
        with pytest.raises(OSError, match="file"):
            named(tmp_path / "file" / "below")

    def test_no_home(self, home, monkeypatch):
        def unknown(path):
            raise RuntimeError("Could not determine home directory.")

        monkeypatch.setattr(Path, "expanduser", unknown)
        with pytest.raises(OSError, match="this user has no home folder"):
            program_folder()


class TestThePrograms:
    def test_not_used_for_longest_go_first(self, named, tmp_path, monkeypatch):
        monkeypatch.setattr(compiling, "_MOST_BYTES", 250)
        for k, (read, written) in enumerate([(1, 1), (9, 2), (3, 3), (4, 4)]):
            path = tmp_path / (f"jit_{k}-cache" if k < 3 else f"{k}-export")
            path.write_bytes(b"x" * 100)
            os.utime(path, (read, written))
        (tmp_path / "notes.txt").write_text("y" * 1000)  # a user's own, which is neither counted nor removed
        named(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == {"jit_1-cache", "3-export", "notes.txt"}

    def test_of_a_name_are_removed(self, tmp_path):
        for name in ("jit_refit-1-cache", "jit_refit-2-cache", "jit_refit_all-3-cache"):
            (tmp_path / name).write_text("")
        remove_programs(tmp_path, "jit_refit")
        assert [path.name for path in tmp_path.iterdir()] == ["jit_refit_all-3-cache"]
