"""Importing jaxeval changes nothing in the process, and is light."""

import json
import subprocess
import sys

import pytest

SCRIPT = """
import json, sys
import jax, pandas, numpy
import scipy.sparse.csgraph, scipy.special
import jax.scipy.linalg, jax.sharding
loaded = set(sys.modules)
settings = dict(jax.config.values)
import jaxeval
from jax._src import xla_bridge
print(json.dumps({
    "changed": [k for k, v in jax.config.values.items() if k not in settings or settings[k] != v],
    "backends": list(xla_bridge._backends),
    "new": sorted({m.partition(".")[0] for m in set(sys.modules) - loaded}),
    "version": jaxeval.__version__,
}))
"""


@pytest.fixture(scope="module")
def imported():
    """What a fresh process says after the import."""
    result = subprocess.run([sys.executable, "-W", "error", "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert result.stderr == ""
    return json.loads(result.stdout)


def test_the_configuration_of_jax_is_untouched(imported):
    assert imported["changed"] == []


def test_no_device_is_initialised(imported):
    assert imported["backends"] == []


def test_heavy_packages_wait_until_they_are_used(imported):
    """matplotlib, rich and the like; pandas may have loaded pyarrow, jaxeval does not."""
    assert "jaxeval" in imported["new"]
    heavy = {"matplotlib", "rich", "pyarrow", "click", "polars", "optax"}
    assert not heavy & set(imported["new"])


def test_public_names():
    import jaxeval

    assert all(hasattr(jaxeval, name) for name in jaxeval.__all__)
    promised = {"Battles", "read_battles", "fit_bradley_terry", "bootstrap", "leaderboard", "simulate_battles"}
    assert promised <= set(jaxeval.__all__)


def test_the_version_is_that_of_the_package(imported):
    from importlib.metadata import version

    assert imported["version"] == version("jaxeval")
