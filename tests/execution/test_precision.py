import subprocess
import sys

import jax
import numpy as np
import pytest
from styled import styled

import jaxeval
from jaxeval.execution.precision import double_precision

FORKED = """
import os, warnings
import jax, jaxeval
from jaxeval.execution.precision import double_precision
warnings.simplefilter("ignore")  # JAX and Python warn of every fork

def total():
    with double_precision():
        return float(jax.numpy.arange(0.1, 4).sum())

def told_by_a_child(compute):
    inlet, outlet = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = str(compute())
        except jaxeval.ProcessError as error:
            text = str(error)
        os.write(outlet, text.encode())
        os._exit(0)
    os.waitpid(child, 0)
    return os.read(inlet, 10_000).decode()

print(told_by_a_child(total))
jax.numpy.zeros(1)  # not by us
print(told_by_a_child(total))
print(total())
"""


@pytest.mark.slow
def test_a_forked_process_says_that_jax_would_hang():
    """But not one that was forked before JAX had started, nor the parent."""
    run = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=120, check=True)
    before, after, parent = run.stdout.splitlines()
    assert float(before) == float(parent)
    assert after.startswith("this process was forked from one in which JAX had started, and JAX would hang in it")
    assert "get_context('spawn')" in after


def test_settings_change_when_the_context_is_entered_and_not_before():
    before = jax.config.jax_enable_x64
    with jax.enable_x64(False):
        context = double_precision()
        assert not jax.config.jax_enable_x64
        with context:
            assert jax.config.jax_enable_x64
        assert not jax.config.jax_enable_x64
    assert jax.config.jax_enable_x64 == before


@pytest.mark.slow
def test_numpy_may_raise_whatever_it_notices():
    votes = styled()
    expected = jaxeval.leaderboard(votes, n_resamples=32, features=["length"], ties="davidson")
    with np.errstate(all="raise"):
        found = jaxeval.leaderboard(votes, n_resamples=32, features=["length"], ties="davidson")
        plain = jaxeval.bootstrap(votes, 32, dtype="float32", method="sparse")
        fit = jaxeval.fit_bradley_terry(votes)
        for result in (fit.win_probability, fit.standard_errors, plain.interval(), plain.tiers()):
            assert len(result) == len(fit.ratings)
    assert found.equals(expected)
