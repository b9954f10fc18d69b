"""Compiled programs are bounded: a process that lives long frees the oldest before the kernel's limit ends it."""

import warnings
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from command_line import run

import jaxeval
from jaxeval.kernels.batch import programs
from jaxeval.kernels.batch.programs import program

pytestmark = pytest.mark.skipif(not programs._MAPS.exists(), reason="only Linux limits mappings")

traced = []


@program("times")
def summed(x, times=1):
    traced.append(len(x))
    return times * x.sum()


@pytest.fixture
def budget(monkeypatch, tmp_path):
    """Lowers the limit of mappings, of which half, and some more, are to be taken."""
    jaxeval.free_programs()
    traced.clear()

    def lowered(to):
        (tmp_path / "most").write_text(f"{to}\n")
        monkeypatch.setattr(programs, "_MOST_MAPS", tmp_path / "most")
        monkeypatch.setattr(programs, "_warned", False)

    yield lowered
    jaxeval.free_programs()


@pytest.mark.slow
def test_the_oldest_go_and_the_recent_stay(budget, monkeypatch):
    monkeypatch.setattr(programs, "_RECENT", 3)
    users = jax.jit(lambda x: x + 1)
    users(np.ones(3))
    start = programs._n_maps()
    for size in range(40, 70):
        summed(np.ones(size))
    unbounded = programs._n_maps() - start
    assert unbounded > 60
    assert jaxeval.free_programs() == 30
    start = programs._n_maps()
    most = 2 * (start + unbounded // 3)
    budget(most)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for size in range(2, 40):
            assert summed(np.ones(size)) == size
            assert programs._n_maps() < start + unbounded // 2
            summed(np.ones(2))  # called again and again, and so never the oldest
    (warning,) = told
    assert warning.category is RuntimeWarning
    assert f"over half of the {most:,} mappings" in str(warning.message)
    assert "said once" in str(warning.message)
    n_traced = len(traced)
    assert summed(np.ones(39)) == 39
    assert summed(np.ones(2)) == 2
    assert len(traced) == n_traced
    assert summed(np.ones(3)) == 3  # freed long ago: compiled again
    assert len(traced) == n_traced + 1
    assert users._cache_size() == 1  # never the user's


def test_a_process_whose_other_code_holds_them_has_an_error(budget):
    budget(programs._n_maps())
    with pytest.raises(jaxeval.MemoryLimitError, match=r"holds [\d,]+ mappings .* nothing more can be compiled safely"):
        summed(np.ones(3))
    assert traced == []
    budget(3 * programs._n_maps())
    assert summed(np.ones(3)) == 3


def test_the_command_ends_with_a_sentence(budget, tmp_path):
    votes = tmp_path / "votes.csv"
    jaxeval.simulate_votes(100, 3, seed=0).to_csv(votes, index=False)
    budget(programs._n_maps())
    found = run("leaderboard", votes, "--resamples", "5")
    assert found.exit_code == 1
    assert "Error: this process holds" in found.output
    assert "sysctl vm.max_map_count" in found.output


def test_free_programs_frees_those_of_jaxeval_alone(budget):
    users = jax.jit(lambda x: x + 1)
    users(np.ones(3))
    before = programs._n_maps()
    for size in range(1, 6):
        summed(np.ones(size))
    grown = programs._n_maps() - before
    assert grown > 5
    assert jaxeval.free_programs() == 5
    assert programs._n_maps() - before < grown / 2
    assert (jaxeval.free_programs(), users._cache_size()) == (0, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert summed(np.ones(4)) == 4
    assert summed.eval_shape(np.ones(4)).shape == ()
    assert traced == [1, 2, 3, 4, 5, 4]
    summed.clear_cache()
    assert jaxeval.free_programs() == 0


def test_a_command_compiles_quickly(monkeypatch):
    """Results are those of the usual compilation; where XLA lacks the options, that is taken."""

    @program()
    def halved(x):
        return x / 2

    assert (programs._cpu_options(1) is not None) == (jax.default_backend() == "cpu")
    assert programs.jitted(halved.__wrapped__, halved, 3)(np.float32(3)) == 1.5
    programs._cpu_options.cache_clear()
    monkeypatch.setattr(programs, "_SHORT", {"xla_has_no_such_option": 1})
    assert programs._cpu_options(1) is None
    programs._cpu_options.cache_clear()


def test_a_program_stands_within_others(monkeypatch):
    """Where JAX takes no options of the compiler, which programs have on some CPUs."""
    monkeypatch.setattr(programs, "_cpu_options", lambda: {"xla_cpu_enable_fast_math": False})

    @program()
    def squares(x):
        return (x * x).sum()

    @program()
    def doubled(x):
        return 2 * squares(x)

    x = np.arange(3.0)
    assert squares(x) == 5
    assert doubled(x) == jax.jit(doubled)(x) == 10
    np.testing.assert_array_equal(jax.grad(squares)(x), 2 * x)
    np.testing.assert_array_equal(jax.vmap(squares)(np.stack([x, x])), [5, 5])


@pytest.mark.parametrize("flags", ["avx2 avx512f", "avx2 avx512f avx512_fp16", None, "not to be read"])
def test_vectors_are_as_wide_as_the_cpu_computes_fast(flags, monkeypatch, tmp_path):
    if flags == "not to be read":
        (tmp_path / "cpuinfo").mkdir()
        monkeypatch.setattr(programs, "_MAPS", tmp_path / "cpuinfo")
        programs._make_room()
    elif flags:
        (tmp_path / "cpuinfo").write_text(f"flags\t\t: fpu {flags} amx_bf16\n")
    monkeypatch.setattr(programs, "_CPU", tmp_path / "cpuinfo")
    programs._cpu_options.cache_clear()
    wide = (programs._cpu_options() or {}).get("xla_cpu_prefer_vector_width")
    programs._cpu_options.cache_clear()
    assert wide == (512 if flags and "fp16" in flags and jax.default_backend() == "cpu" else None)


def test_what_runs_briefly_is_compiled_with_least_work(monkeypatch):
    """Unless its arguments are many numbers; what runs long is compiled as in the library."""
    options = []

    def jit(function, compiler_options):
        options.append(compiler_options)
        return jax.jit(function)

    monkeypatch.setattr(programs, "jax", SimpleNamespace(jit=jit, tree=jax.tree))
    monkeypatch.setattr(programs, "_cpu_options", lambda level: level)
    for runs in ("briefly", "often", "long"):
        one = program(runs=runs)(lambda x: x)
        for numbers in (programs._FEW, programs._FEW + 1):
            programs.jitted(one.__wrapped__, one, {"x": np.zeros(numbers)})
    assert options == [0, 1, 1, 1, None, None]
