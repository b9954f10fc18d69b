"""What can be told of accelerators without one: every program of the refits is accepted for CUDA, ROCm and TPU."""

import jax
import numpy as np
import pytest

from jaxeval import simulate_battles
from jaxeval.execution.precision import double_precision
from jaxeval.kernels import batch
from jaxeval.ratings.boards import fit_boards
from jaxeval.ratings.dense_refits import dense_refits
from jaxeval.ratings.drawn_votes import VoteGroups
from jaxeval.ratings.options import SCHEMES, BootstrapOptions


@pytest.mark.parametrize("platform", ["cuda", "rocm", "tpu"])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("solver", [0, 1, 2])
def test_refits_lower(platform, scheme, solver):
    assert_lowers(BootstrapOptions(scheme=scheme), solver, platform)


@pytest.mark.parametrize("platform", ["cuda", "rocm", "tpu"])
def test_refits_with_a_penalty_lower(platform):
    assert_lowers(BootstrapOptions(penalty="firth"), 0, platform)


def assert_lowers(options, solver, platform):
    battles = simulate_battles(500, 8, seed=0)
    refits = dense_refits(fit_boards([(battles.models, battles.cells)], options), [""], [VoteGroups()], options)
    call = refits.solvers()[solver].task.call
    n_devices = jax.local_device_count()
    chunks = batch.Chunks(
        np.zeros((n_devices, 2), np.int32), np.zeros((n_devices, 2, 8), np.int64), np.ones(n_devices, np.int32)
    )
    with double_precision():
        traced = batch.refit.trace(*call.args, chunks)
        assert "while" in traced.lower(lowering_platforms=(platform,)).as_text()
