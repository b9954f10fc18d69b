import os
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from command_line import run

import jaxeval
from jaxeval.cli import compiling
from jaxeval.cli.compiling import ExportedPrograms
from jaxeval.execution.precision import double_precision
from jaxeval.kernels.batch.programs import Chunks, kept_in, program


class Scale(NamedTuple):
    """A static argument."""

    factor: int
    function: object = None


traced = []


@program("scale")
def scaled(x, chunks, scale, *, offset=None):
    """A program with a tree among its arguments and results."""
    traced.append(scale.factor)
    value = scale.factor * x if offset is None else scale.factor * x + offset
    return chunks._replace(numbers=value), {"sum": jnp.sum(value)}


CHUNKS = Chunks(np.arange(2), np.arange(3.0), np.int32(1))


@pytest.fixture(autouse=True)
def none_traced():
    traced.clear()


@pytest.fixture
def call(tmp_path):
    """Calls a function as a process of its own would whose programs are kept in ``tmp_path``."""

    def called(function, *arguments, folder=tmp_path, **options):
        scaled.clear_cache()
        with double_precision(), kept_in(ExportedPrograms(folder)):
            return function(*arguments, **options)

    return called


def numbers(found):
    """What `scaled` gives, as NumPy arrays."""
    assert isinstance(found[0], Chunks)
    return np.asarray(found[0].numbers), float(found[1]["sum"])


def test_a_later_run_traces_nothing(call, tmp_path):
    for _ in range(2):
        values, total = numbers(call(scaled, np.arange(4.0), CHUNKS, Scale(3)))
        np.testing.assert_array_equal(values, 3 * np.arange(4.0))
        assert total == 18
    assert traced == [3]
    assert [path.name.split("-")[0] for path in tmp_path.iterdir()] == ["scaled"]
    with double_precision():
        assert numbers(scaled(np.arange(4.0), CHUNKS, Scale(3)))[1] == 18  # without a store
    assert len(traced) == 2


def test_what_else_is_called_has_programs_of_its_own(call, tmp_path, monkeypatch):
    call(scaled, np.arange(4.0), CHUNKS, Scale(3))
    calls = [
        partial(call, scaled, np.arange(4.0), CHUNKS, Scale(2)),
        partial(call, scaled, np.arange(5.0), CHUNKS, Scale(3)),
        partial(call, scaled, np.arange(4, dtype=np.float32), CHUNKS, Scale(3)),
        partial(call, scaled, np.arange(4.0), CHUNKS, Scale(3), offset=np.arange(4.0)),
    ]
    for number, one in enumerate(calls):
        one()
        assert len(list(tmp_path.iterdir())) == number + 2
    assert numbers(calls[-1]())[1] == 18 + 6
    assert numbers(calls[0]())[1] == 12
    assert len(traced) == 5
    for change in ("another version of the kernels", "another option of JAX"):
        monkeypatch.setattr(compiling, "_surroundings", lambda change=change: change)
        call(scaled, np.arange(4.0), CHUNKS, Scale(3))
    assert len(traced) == 7


def test_the_surroundings_are_the_code_of_kernels_and_the_options(tmp_path, monkeypatch):
    surroundings = compiling._surroundings.__wrapped__
    before = surroundings()
    assert surroundings() == before
    with double_precision():
        precise = surroundings()
    if not jax.config.jax_enable_x64:
        assert precise != before
    monkeypatch.setattr(compiling.kernels, "__path__", [str(tmp_path)])
    other = surroundings()
    (tmp_path / "kernel.py").write_text("1")
    assert len({before, other, surroundings()}) == 3


@pytest.mark.parametrize("change", [lambda data: data[:50], lambda data: data[:-1] + b"?", lambda data: b""])
def test_damaged_files_are_written_anew(call, tmp_path, change):
    call(scaled, np.arange(4.0), CHUNKS, Scale(3))
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(change(whole))
    assert numbers(call(scaled, np.arange(4.0), CHUNKS, Scale(3)))[1] == 18
    assert (path.stat().st_size, len(traced)) == (len(whole), 2)
    call(scaled, np.arange(4.0), CHUNKS, Scale(3))
    assert len(traced) == 2


def test_a_folder_that_cannot_be_written(call, tmp_path, monkeypatch):
    for folder in (tmp_path / "none", tmp_path):
        assert numbers(call(scaled, np.arange(4.0), CHUNKS, Scale(3), folder=folder))[1] == 18

        def fails(*paths):
            raise OSError("no space left")

        monkeypatch.setattr(os, "replace", fails)
    assert list(tmp_path.iterdir()) == []


def test_values_without_a_lasting_name_are_not_kept(call, tmp_path):
    assert numbers(call(scaled, np.arange(4.0), CHUNKS, Scale(3, lambda x: x)))[1] == 18
    assert list(tmp_path.iterdir()) == []


def test_shapes_alone(call):
    shape = call(jax.eval_shape, lambda x: scaled(x, CHUNKS, Scale(3)), jax.ShapeDtypeStruct((4,), np.float64))
    assert shape[0].numbers.shape == (4,)


@pytest.mark.slow
def test_a_board_is_the_same(tmp_path):
    """To the last digit, whether its programs are traced, or taken from what an earlier run has kept.

    Programs that nobody keeps are compiled as the library's, longer and to other last digits.
    """
    votes = tmp_path / "votes.csv"
    jaxeval.simulate_votes(3000, 8).to_csv(votes, index=False)
    boards, exports = [], []
    for name, store in [("none", None), ("first", ExportedPrograms(tmp_path)), ("later", ExportedPrograms(tmp_path))]:
        drawn = "--resamples", "20", "--scheme", "bayesian"  # which NumPy does not refit by itself
        arguments = ["leaderboard", str(votes), *drawn, "--out", str(tmp_path / f"{name}.csv")]
        if store is None:
            found = run(*arguments)
        else:
            with kept_in(store):
                found = run(*arguments)
        assert found.exit_code == 0, found.output
        boards.append((tmp_path / f"{name}.csv").read_bytes())
        exports.append({path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*-export")})
    assert boards[1] == boards[2]
    alone, kept = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("none", "first"))
    pd.testing.assert_frame_equal(alone, kept, rtol=0, atol=1e-9)
    assert exports[1] == exports[2]
    one_device = jax.device_count() == 1
    assert {name.split("-")[0] for name in exports[1]} >= ({"refit"} if one_device else set())
