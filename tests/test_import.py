"""Importing jaxeval changes nothing in the process, and is light; so are parts of the command that compute nothing."""

import json
import subprocess
import sys
from importlib import import_module

import pytest
from stubs import LAZY_PACKAGES, OPTIONS, stub_path, stub_text

import jaxeval
from jaxeval.lazy_names import called_once, spares_jax

#: What takes long to import.
HEAVY = {"jax", "numpy", "pandas", "pyarrow", "matplotlib", "rich", "scipy", "polars", "optax", "fsspec", "aiohttp"}
#: Submodules too: each takes longer than all of jaxeval.
HEAVY_PARTS = {
    "scipy.stats", "scipy.optimize", "scipy.special", "scipy.sparse", "scipy.sparse.csgraph", "jax.scipy.stats",
}  # fmt: skip
#: One process loads more and more. The modules that it holds are noted after each step.
LIBRARY = """
import gc, json, sys

def note(name):
    steps[name] = sorted(sys.modules)

steps = {}
import jax, pandas, jax.scipy.linalg
note("jax and pandas")
settings, threshold = dict(jax.config.values), gc.get_threshold()
from jaxeval import leaderboard
note("leaderboard")
from jaxeval import *
import jaxeval
for name in jaxeval.__all__:
    getattr(jaxeval, name)
note("all names")
assert "plots" in dir(jaxeval)
dir(jaxeval.plots)
note("names of figures")
jaxeval.plots.plot_leaderboard
note("a figure")
from jax._src import xla_bridge
print(json.dumps({
    "changed": [k for k, v in jax.config.values.items() if k not in settings or settings[k] != v],
    "backends": list(xla_bridge._backends),
    "garbage": gc.get_threshold() == threshold,
    "steps": steps,
}))
"""
#: Of the command, first what should load little: its arguments and its exit status.
LIGHT = [
    (["--help"], 0),
    (["--version"], 0),
    (["leaderboard", "--help"], 0),
    (["soft-elo", "report", "-h"], 0),
    (["leaderboard", "votes.csv", "--resample", "9"], 2),
    (["lederboard"], 2),
    (["judge", "--level", "95"], 2),
]
#: Words before the cursor, and what the shell is told, as the script of `_JAXEVAL_COMPLETE=bash_source jaxeval` asks.
COMPLETED = {"jaxeval lead": "plain,leaderboard", "jaxeval leaderboard --feature-r": "plain,--feature-ridge"}
COMMAND = """
import io, json, os, sys
from contextlib import redirect_stderr, redirect_stdout
import jaxeval
steps = []

def note(name, code, said):
    steps.append([name, code, said, sorted(sys.modules)])

jaxeval.__version__, dir(jaxeval)
note("the package", 0, "")
import jaxeval.plots
dir(jaxeval.plots)
note("the package of figures", 0, "")
from jaxeval.cli.main import run
for arguments, asked in json.loads(sys.stdin.read()):
    sys.argv, code = ["jaxeval", *arguments], 0
    os.environ.update(asked)
    out = io.TextIOWrapper(io.BytesIO(), write_through=True)
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        try:
            run()
        except SystemExit as end:
            code = end.code or 0
    for name in asked:
        del os.environ[name]
    note(" ".join(arguments), code, out.buffer.getvalue().decode())
print(json.dumps(steps))
"""


def said_by(script, given=None):
    """What a process prints, for which warnings are errors."""
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


class TestTheLibrary:
    @pytest.fixture(scope="class")
    @classmethod
    def imported(cls):
        return said_by(LIBRARY)

    def test_the_configuration_of_jax_is_untouched(self, imported):
        assert imported["changed"] == []

    def test_no_device_is_initialised(self, imported):
        assert imported["backends"] == []

    def test_garbage_is_collected_as_before(self, imported):
        """The command collects it less often, in its own process."""
        assert imported["garbage"]

    def test_a_leaderboard_needs_jax_and_pandas(self, imported):
        """What else it needs, it imports when it is called."""
        before, found = (set(imported["steps"][name]) for name in ("jax and pandas", "leaderboard"))
        assert "jaxeval" not in before
        assert "jaxeval.ratings.leaderboard" in found
        more = found - before
        assert not more & (HEAVY_PARTS | HEAVY - {"scipy"}) | {name for name in more if name.startswith("click")}

    def test_figures_wait_for_matplotlib_until_they_are_drawn(self, imported):
        """They need no import of their own."""
        assert "jaxeval.softelo.soft_elo" in imported["steps"]["all names"]
        assert "matplotlib" not in imported["steps"]["all names"]
        assert "matplotlib" not in imported["steps"]["names of figures"]
        assert "matplotlib" in imported["steps"]["a figure"]


class TestTheCommand:
    @pytest.fixture(scope="class")
    @classmethod
    def steps(cls, tmp_path_factory):
        """What each step ended with, said, and held: the package, light calls, completions, and a run at the end."""
        votes = tmp_path_factory.mktemp("import") / "votes.csv"
        rows = [f"a,{other},{winner}" for other in "bcd" for winner in ("model_a", "model_b")]
        votes.write_text("\n".join(["model_a,model_b,winner", *rows * 40]))  # a alone has 200 battles
        asked = [
            {"_JAXEVAL_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
            for words in COMPLETED
        ]
        calls = [(arguments, {}) for arguments, _ in LIGHT]
        calls += [([], of_shell) for of_shell in asked]
        return said_by(COMMAND, [*calls, (["leaderboard", str(votes), "--resamples", "20"], {"JAX_PLATFORMS": "cpu"})])

    def test_the_package_help_errors_and_completion_load_nothing(self, steps):
        *light, _ = steps
        assert "jaxeval" in light[0][-1]
        assert len(light) == 2 + len(LIGHT) + len(COMPLETED)
        for name, code, _, loaded in light:
            assert not set(loaded) & HEAVY, (name, code)

    def test_exit_codes(self, steps):
        assert [code for _, code, *_ in steps] == [0, 0, *(code for _, code in LIGHT), *(0 for _ in COMPLETED), 0]

    def test_shell_completion_knows_commands_and_options(self, steps):
        assert [said.split() for _, _, said, _ in steps[-1 - len(COMPLETED) : -1]] == [[x] for x in COMPLETED.values()]

    def test_a_run_loads_what_it_uses(self, steps):
        found = set(steps[-1][-1])
        assert "rich" in found
        assert not found & {"jax", "pandas", "scipy.stats", "scipy.optimize", "matplotlib", "polars", "optax"}


class TestLazyNames:
    def test_public_names(self):
        promised = {"Battles", "read_battles", "fit_bradley_terry", "bootstrap", "leaderboard", "simulate_battles"}
        assert promised <= set(jaxeval.__all__)

    @pytest.mark.parametrize("package", LAZY_PACKAGES)
    def test_all_are_there(self, package):
        module = import_module(package)
        assert all(hasattr(module, name) for name in module.__all__)
        assert set(module.__all__) <= set(dir(module))

    @pytest.mark.parametrize("package", [*LAZY_PACKAGES, OPTIONS])
    def test_the_stub_has_the_same_names(self, package):
        """Where it has not, write it anew: python tests/stubs.py."""
        assert stub_path(package).read_text() == stub_text(package)

    def test_unknown_names(self):
        with pytest.raises(AttributeError, match="module 'jaxeval' has no attribute 'lederboard'"):
            jaxeval.lederboard  # noqa: B018


@pytest.mark.parametrize("package", ["jax_plugins", "libtpu"])
def test_jax_is_asked_where_it_may_find_an_accelerator(monkeypatch, tmp_path, package):
    """Else a command on a GPU or a TPU would take shapes and limits of memory as for a CPU."""
    monkeypatch.delitem(sys.modules, "jax")
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    (tmp_path / package).mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    with called_once():
        assert not spares_jax()
        monkeypatch.setenv("JAX_PLATFORMS", "cpu")
        assert spares_jax()


def test_the_version_is_that_of_the_package():
    from importlib.metadata import version

    assert jaxeval.__version__ == version("jaxeval")
