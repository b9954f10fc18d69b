import os
import subprocess
import sys

import jax
import pytest
from click.testing import CliRunner

from jaxeval.cli.compiling import OF_JAX, CompilingCommand, kept_programs, settings
from jaxeval.cli.main import main

#: A command that compiles a program, and says how often one was taken from the cache.
SCRIPT = """
import click
from jaxeval.cli.compiling import CompilingCommand, kept_programs

@click.command(cls=CompilingCommand)
def double():
    import jax
    events = []
    jax.monitoring.register_event_listener(lambda name, **_: events.append(name))
    print(jax.jit(lambda x: 2 * x)(3.0), events.count("/jax/compilation_cache/cache_hits"))

{before}
double(obj=kept_programs)
"""
FULL_DISK = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))"


def start(folder, *arguments, before="", **variables):
    """A process of the command whose programs are kept in ``folder``."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "JAXEVAL_"))}
    environ |= {"JAXEVAL_CACHE": str(folder), "PYTHONDONTWRITEBYTECODE": "1", **variables}
    command = [sys.executable, "-c", SCRIPT.format(before=before), *arguments]
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(*arguments, **options):
    """What it prints, on standard output and on standard error."""
    process = start(*arguments, **options)
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out.strip(), err.strip()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With a program that a first run has compiled."""
    folder = tmp_path_factory.mktemp("home") / "programs"
    assert run(folder) == ("6.0 0", "")
    return folder


@pytest.fixture
def damaged(folder, tmp_path):
    """A folder of the same program, of which nine bytes are left."""
    (program,) = folder.iterdir()
    copy = tmp_path / "damaged" / program.name
    copy.parent.mkdir()
    copy.write_bytes(program.read_bytes()[:9])
    return copy


@pytest.mark.slow
@pytest.mark.parametrize("size", [pytest.param(0, marks=pytest.mark.slow), 100])
def test_damaged_programs_are_compiled_anew(folder, size):
    """And replaced, without a word; a run after that compiles nothing."""
    (program,) = folder.iterdir()
    whole = program.stat().st_size
    os.truncate(program, size)
    assert run(folder) == ("6.0 0", "")
    assert [path.stat().st_size for path in folder.iterdir()] == [pytest.approx(whole, abs=20)]  # it holds a time
    assert run(folder) == ("6.0 1", "")


@pytest.mark.slow
def test_no_cache_neither_reads_programs_nor_writes_them(damaged):
    """One that it read would be replaced."""
    assert run(damaged.parent, "--no-cache") == ("6.0 0", "")
    assert [path.stat().st_size for path in damaged.parent.iterdir()] == [9]


@pytest.mark.slow
def test_a_cache_of_jax_is_left_alone(damaged, tmp_path):
    """Damaged programs, too."""
    options = settings(damaged.parent)  # which are variables of JAX
    out, err = run(tmp_path / "programs", **options)
    assert out == "6.0 0"
    assert "Error reading persistent compilation cache entry" in err
    assert [path.name for path in tmp_path.iterdir()] == ["damaged"]
    assert [path.stat().st_size for path in damaged.parent.iterdir()] == [9]


@pytest.mark.slow
def test_runs_at_the_same_time(tmp_path):
    processes = [start(tmp_path / "programs") for _ in range(3)]
    found = [process.communicate() for process in processes]
    assert [(out.split()[0], err) for out, err in found] == [("6.0", "")] * 3
    assert run(tmp_path / "programs") == ("6.0 1", "")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no limits")
def test_a_full_disk_costs_a_sentence(tmp_path):
    """And leaves no more than an empty program, which a later run compiles anew as any that is damaged."""
    out, err = run(tmp_path, before=FULL_DISK)
    assert out == "6.0 0"
    assert err.startswith(f"compiled programs cannot be kept in {tmp_path}: OSError: [Errno 27]")
    assert len(err.splitlines()) == 1
    assert {path.stat().st_size for path in tmp_path.iterdir()} <= {0}


@pytest.fixture
def unchanged(monkeypatch):
    """Runs a command where programs are kept, and sees that it changes neither JAX nor the environment."""
    monkeypatch.delenv(OF_JAX, raising=False)

    def ran(cache):
        monkeypatch.setenv("JAXEVAL_CACHE", str(cache))
        options, variables = dict(jax.config.values), dict(os.environ)
        result = CliRunner().invoke(CompilingCommand("nothing", callback=lambda: None), obj=kept_programs)
        assert result.exit_code == 0, result.output
        assert (jax.config.values, dict(os.environ)) == (options, variables)
        return result.output

    return ran


def test_a_folder_that_cannot_be_used_costs_a_sentence(unchanged, monkeypatch, tmp_path):
    monkeypatch.delitem(sys.modules, "jax")  # as at the start of a process
    (tmp_path / "file").write_text("")
    what_to_do = "JAXEVAL_CACHE names another folder, or is off"
    said = f"compiled programs are not kept: {tmp_path / 'file'} is no folder; {what_to_do}"
    assert unchanged(tmp_path / "file").split() == said.split()


def test_a_cache_that_is_off(unchanged, monkeypatch, tmp_path):
    monkeypatch.delitem(sys.modules, "jax")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert unchanged("off") == ""
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_has_imported_jax_keeps_nothing(unchanged, tmp_path):
    """JAX reads the variables once; and its configuration is not the command's."""
    assert unchanged(tmp_path) == ""
    assert list(tmp_path.iterdir()) == []


def test_a_process_of_somebody_else_is_left_alone(monkeypatch, tmp_path):
    """The command keeps programs in a process of its own only."""
    monkeypatch.setenv("JAXEVAL_CACHE", str(tmp_path / "programs"))
    options, variables = dict(jax.config.values), dict(os.environ)
    result = CliRunner().invoke(CompilingCommand("nothing", callback=lambda: None))
    assert result.exit_code == 0, result.output
    assert (jax.config.values, dict(os.environ)) == (options, variables)
    assert list(tmp_path.iterdir()) == []


def test_every_command_that_compiles_has_the_option():
    commands = {**main.commands, **main.commands["soft-elo"].commands}
    without = {name for name, command in commands.items() if not isinstance(command, CompilingCommand)}
    assert without == {"soft-elo", "simulate", "page"}  # a group, NumPy alone, and a browser


#: Draws that NumPy does not refit by itself.
SMALL = ["--resamples", "50", "--scheme", "bayesian"]


@pytest.mark.slow
def test_a_later_leaderboard_compiles_nothing(tmp_path):
    votes, folder = tmp_path / "votes.csv", tmp_path / "programs"
    votes.write_text("\n".join(["model_a,model_b,winner", *["a,b,model_a", "a,b,model_b", "b,c,tie"] * 5]))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    kept = []
    for options in ([], [], ["--no-cache"]):
        out = tmp_path / "board.csv"
        command = [sys.executable, "-m", "jaxeval", "leaderboard", votes, *SMALL, "--out", out, *options]
        subprocess.run(command, env=environ | {"JAXEVAL_CACHE": str(folder)}, check=True, capture_output=True)
        kept.append((out.read_text(), sorted(path.name for path in folder.iterdir())))
    assert kept[0] == kept[1] == kept[2]
    assert any(name.startswith("jit_refit-") for name in kept[0][1])
