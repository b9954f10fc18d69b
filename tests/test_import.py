"""Importing jaxeval changes nothing in the process, and is light; so are parts of the command that compute nothing."""

import json
import os
import subprocess
import sys
from importlib import import_module

import pytest
from stubs import LAZY_PACKAGES, stub_path, stub_text

import jaxeval

#: What takes long to import.
HEAVY = {"jax", "numpy", "pandas", "pyarrow", "matplotlib", "rich", "scipy", "polars", "optax", "fsspec", "aiohttp"}
#: Submodules too: each takes longer than all of jaxeval.
HEAVY_PARTS = {
    "scipy.stats",
    "scipy.optimize",
    "scipy.special",
    "scipy.sparse",
    "scipy.sparse.csgraph",
    "jax.scipy.stats",
}
LOADED = "import json, sys; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
SETTINGS = """
import gc, json
import jax
settings, threshold = dict(jax.config.values), gc.get_threshold()
import jaxeval
for name in jaxeval.__all__:
    getattr(jaxeval, name)
from jax._src import xla_bridge
print(json.dumps({
    "changed": [k for k, v in jax.config.values.items() if k not in settings or settings[k] != v],
    "backends": list(xla_bridge._backends),
    "garbage": gc.get_threshold() == threshold,
}))
"""


def python(*arguments):
    return subprocess.run([sys.executable, "-W", "error", *arguments], capture_output=True, text=True, check=True)


def loaded_by(code):
    """Modules that a process holds at the end."""
    return set(json.loads(python("-c", f"{code}\n{LOADED}").stderr.splitlines()[-1]))


def loaded_by_command(*arguments, code=0):
    """Modules that a process of the command holds at its end, whose exit status must be ``code``."""
    script = f"""
import contextlib, sys
from jaxeval.cli.main import run
sys.argv = {["jaxeval", *map(str, arguments)]!r}
try:
    run()
except SystemExit as end:
    assert end.code == {code}, end.code"""
    return loaded_by(script)


class TestTheLibrary:
    @pytest.fixture(scope="class")
    @classmethod
    def imported(cls):
        result = python("-c", SETTINGS)
        assert result.stderr == ""
        return json.loads(result.stdout)

    def test_the_configuration_of_jax_is_untouched(self, imported):
        assert imported["changed"] == []

    def test_no_device_is_initialised(self, imported):
        assert imported["backends"] == []

    def test_garbage_is_collected_as_before(self, imported):
        """The command collects it less often, in its own process."""
        assert imported["garbage"]

    def test_the_package_alone_loads_nothing(self):
        found = loaded_by("import jaxeval; jaxeval.__version__, dir(jaxeval)")
        assert "jaxeval" in found
        assert not found & HEAVY

    def test_a_leaderboard_needs_jax_and_pandas(self):
        """What else it needs, it imports when it is called."""
        found = loaded_by("from jaxeval import leaderboard")
        assert {"jax", "pandas"} <= found
        more = found - loaded_by("import jax, pandas, jax.scipy.linalg")
        assert not more & (HEAVY_PARTS | HEAVY - {"scipy"}) | {name for name in more if name.startswith("click")}

    def test_figures_wait_for_matplotlib_until_they_are_drawn(self):
        assert "matplotlib" not in loaded_by("import jaxeval.plots; dir(jaxeval.plots)")
        assert "matplotlib" in loaded_by("from jaxeval.plots import plot_leaderboard")


class TestTheCommand:
    @pytest.mark.parametrize(
        ("arguments", "code"),
        [
            (["--help"], 0),
            (["--version"], 0),
            (["leaderboard", "--help"], 0),
            (["soft-elo", "report", "-h"], 0),
            (["leaderboard", "votes.csv", "--resample", "9"], 2),
            (["lederboard"], 2),
            (["judge", "--level", "95"], 2),
        ],
    )
    def test_help_and_errors_load_nothing(self, arguments, code):
        assert not loaded_by_command(*arguments, code=code) & HEAVY

    def test_shell_completion_loads_nothing(self, monkeypatch):
        monkeypatch.setenv("_JAXEVAL_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", "jaxeval leaderboard --feat")
        monkeypatch.setenv("COMP_CWORD", "2")
        assert not loaded_by_command() & HEAVY

    def test_shell_completion_knows_commands_and_options(self):
        """As the script that `_JAXEVAL_COMPLETE=bash_source jaxeval` prints asks for it."""
        for words, found in (
            ("jaxeval lead", "plain,leaderboard"),
            ("jaxeval leaderboard --feature-r", "plain,--feature-ridge"),
        ):
            asked = {"_JAXEVAL_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
            script = "from jaxeval.cli.main import run; run()"
            command = [sys.executable, "-c", f"import sys; sys.argv = ['jaxeval']; {script}"]
            shown = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True, check=True)
            assert shown.stdout.split() == [found]

    def test_a_run_loads_what_it_uses(self, tmp_path):
        votes = tmp_path / "votes.csv"
        votes.write_text("\n".join(["model_a,model_b,winner", *["a,b,model_a", "a,b,model_b"] * 5]))
        found = loaded_by_command("leaderboard", votes, "--resamples", "20")
        assert {"jax", "pandas", "rich"} <= found
        assert not found & {"scipy.stats", "scipy.optimize", "matplotlib", "polars", "optax"}


class TestLazyNames:
    def test_public_names(self):
        promised = {"Battles", "read_battles", "fit_bradley_terry", "bootstrap", "leaderboard", "simulate_battles"}
        assert promised <= set(jaxeval.__all__)

    @pytest.mark.parametrize("package", LAZY_PACKAGES)
    def test_all_are_there(self, package):
        module = import_module(package)
        assert all(hasattr(module, name) for name in module.__all__)
        assert set(module.__all__) <= set(dir(module))

    @pytest.mark.parametrize("package", LAZY_PACKAGES)
    def test_the_stub_has_the_same_names(self, package):
        """Where it has not, write it anew: python tests/stubs.py."""
        assert stub_path(package).read_text() == stub_text(package)

    def test_figures_need_no_import_of_their_own(self):
        found = loaded_by("import jaxeval; assert 'plots' in dir(jaxeval); jaxeval.plots.plot_leaderboard")
        assert "matplotlib" in found
        assert "matplotlib" not in loaded_by("from jaxeval import *")

    def test_unknown_names(self):
        with pytest.raises(AttributeError, match="module 'jaxeval' has no attribute 'lederboard'"):
            jaxeval.lederboard  # noqa: B018


def test_the_version_is_that_of_the_package():
    from importlib.metadata import version

    assert jaxeval.__version__ == version("jaxeval")
