"""Every option stands once: in the signature, in the options, and for type checkers."""

import inspect
from dataclasses import MISSING, fields

import numpy as np
import pytest

from jaxeval import bootstrap, fit_bradley_terry, simulate_battles
from jaxeval.execution.runs import RunOptions
from jaxeval.ratings.options import BootstrapOptions, FitOptions


@pytest.mark.parametrize(("function", "options", "others"), [
    (fit_bradley_terry, FitOptions, {"battles", "start"}),
    (bootstrap, BootstrapOptions, {"battles", "model", "random", *RunOptions.__annotations__}),
])  # fmt: skip
def test_signatures_and_options_agree(function, options, others):
    parameters = inspect.signature(function).parameters
    assert set(parameters) - others == {option.name for option in fields(options)}
    for option in fields(options):
        assert option.default is not MISSING
        assert parameters[option.name].default == option.default, option.name


def test_docstrings_name_every_option():
    for option in fields(BootstrapOptions):
        assert f" {option.name}: " in bootstrap.__doc__ or f"``{option.name}``" in bootstrap.__doc__, option.name


def test_options_of_a_call_are_python_values():
    battles = simulate_battles(50, 4, seed=0)
    given = BootstrapOptions(n_resamples=np.int64(7), ridge=np.float32(0.5), by="language", features=["length"])
    found = given.checked(battles)
    assert (type(found.n_resamples), type(found.ridge)) == (int, float)
    assert found.by == ["language"]
    assert found.features == ("length",)


def test_what_decides_the_draws_and_what_does_not():
    deciding, shown = BootstrapOptions(features=["length"]).identity(("length",))
    assert set(shown) == {"n_resamples", "gauge", "base", "interval", "max_slices", "min_slice_battles", "missing"}
    assert deciding["features"] == ["length"]
    assert {"seed", "scheme", "cluster", "strata", "ridge", "by", "ties", "link", "penalty"} <= set(deciding)
