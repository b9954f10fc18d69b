"""What can be told of accelerators without their compilers, for which see tests/aot.

Every program of the refits is accepted for CUDA, ROCm and TPU, and products ask for all of their digits.
"""

import ast
from pathlib import Path

import jax
import numpy as np
import pytest

from jaxeval import kernels, simulate_battles
from jaxeval.execution.precision import double_precision
from jaxeval.kernels import batch
from jaxeval.ratings.boards import fit_boards
from jaxeval.ratings.dense_refits import dense_refits
from jaxeval.ratings.drawn_votes import VoteGroups
from jaxeval.ratings.options import SCHEMES, BootstrapOptions

PRODUCTS = {"dot", "einsum", "inner", "matmul", "outer", "tensordot", "vdot", "vecdot"}


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


@pytest.mark.parametrize("path", sorted(Path(kernels.__path__[0]).rglob("*.py")), ids=lambda path: path.stem)
def test_products_ask_for_all_digits(path):
    """A TPU would multiply in 16 bits, and a GPU in 19."""
    for node in ast.walk(ast.parse(path.read_text())):
        assert not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)), ast.unparse(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in PRODUCTS:
            asked = {word.arg: ast.unparse(word.value) for word in node.keywords}
            assert asked.get("precision") == "'highest'", ast.unparse(node)
