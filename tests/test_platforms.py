"""What can be told of accelerators without their compilers, for which see tests/aot.

Every program of the refits is accepted for CUDA, ROCm and TPU, and products ask for all of their digits.
"""

import ast
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxeval import kernels, simulate_battles
from jaxeval.execution.lanes import LaneRun
from jaxeval.execution.precision import double_precision
from jaxeval.kernels.batch.programs import Chunks
from jaxeval.kernels.batch.refits import refit
from jaxeval.kernels.platforms import by_platform, traced_for
from jaxeval.ratings.boards import fit_boards
from jaxeval.ratings.options import SCHEMES, BootstrapOptions
from jaxeval.ratings.pair_refits import dense_refits
from jaxeval.ratings.vote_groups import VoteGroups

PRODUCTS = {"dot", "einsum", "inner", "matmul", "outer", "tensordot", "vdot", "vecdot"}


#: What is traced alike is traced once. A GPU's branches and a TPU's are apart.
TRACED_ALIKE = [("cuda", "rocm"), ("tpu",)]


@pytest.mark.parametrize("platforms", TRACED_ALIKE, ids="-".join)
@pytest.mark.parametrize(
    "scheme",
    ["multinomial", *(pytest.param(scheme, marks=pytest.mark.slow) for scheme in SCHEMES if scheme != "multinomial")],
)
@pytest.mark.parametrize(
    "solver", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)
def test_refits_lower(monkeypatch, platforms, scheme, solver):
    assert_lowers(monkeypatch, BootstrapOptions(scheme=scheme), solver, platforms)


@pytest.mark.slow
@pytest.mark.parametrize("platforms", TRACED_ALIKE, ids="-".join)
def test_refits_with_a_penalty_lower(monkeypatch, platforms):
    assert_lowers(monkeypatch, BootstrapOptions(penalty="firth"), 0, platforms)


@pytest.mark.parametrize("platform", ["cpu", "cuda", "rocm", "tpu"])
def test_what_differs_is_that_of_the_platform(platform):
    """Of branches traced for it alone, and of all that the compiler chooses from."""

    def kind(x):
        numbers = (("cpu", 1), ("gpu", 2), ("tpu", 3))
        return by_platform(x, default=lambda x: x, **{name: partial(jnp.multiply, k) for name, k in numbers})

    number = {"cpu": 1, "cuda": 2, "rocm": 2, "tpu": 3}[platform]
    with traced_for(platform):
        alone = str(jax.make_jaxpr(lambda x: kind(x))(5.0))
        assert jax.jit(lambda x: kind(x))(5.0) == 5 * number
    assert "platform_index" not in alone
    every = jax.jit(lambda x: kind(x)).trace(5.0)
    assert "platform_index" in str(every.jaxpr)
    assert f"dense<{number}.0" in every.lower(lowering_platforms=(platform,)).as_text()


def test_programs_over_lanes_are_traced_for_their_devices():
    program, arguments = refits(BootstrapOptions(), 0)
    with double_precision():
        assert "platform_index" not in str(program.trace(*arguments).jaxpr)


def refits(options, solver):
    """The program of the refits, not traced yet, and its arguments."""
    battles = simulate_battles(500, 8, seed=0)
    posed = dense_refits(fit_boards([(battles.models, battles.cells)], options), [""], [VoteGroups()], options)
    call = posed.solvers((), LaneRun())[solver].task.call
    n_devices = jax.local_device_count()
    chunks = Chunks(
        np.zeros((n_devices, 2), np.int32), np.zeros((n_devices, 2, 8), np.int64), np.ones(n_devices, np.int32)
    )
    program = jax.jit(refit.__wrapped__, static_argnames=refit.static_argnames)
    return program, (*call.args, chunks)


def assert_lowers(monkeypatch, options, solver, platforms):
    monkeypatch.setattr("jaxeval.kernels.batch.programs.traced_for", lambda _: traced_for(platforms[0]))
    program, arguments = refits(options, solver)
    with double_precision():
        traced = program.trace(*arguments)
        for platform in platforms:
            assert "while" in traced.lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.parametrize("path", sorted(Path(kernels.__path__[0]).rglob("*.py")), ids=lambda path: path.stem)
def test_products_ask_for_all_digits(path):
    """A TPU would multiply in 16 bits, and a GPU in 19."""
    for node in ast.walk(ast.parse(path.read_text())):
        assert not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)), ast.unparse(node)
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in PRODUCTS
        if is_call and ast.unparse(node.func.value) != "np":  # NumPy's, on the host, have all digits
            asked = {word.arg: ast.unparse(word.value) for word in node.keywords}
            assert asked.get("precision") == "'highest'", ast.unparse(node)
