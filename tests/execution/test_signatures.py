"""Options that are written once are shown, and checked, in every signature."""

import inspect
from typing import TypedDict, Unpack

import pytest

import jaxeval
from jaxeval.execution.signatures import spelled_out


class Options(TypedDict, total=False):
    progress: bool | None
    seed: int


class Defaults:
    seed = 3


@spelled_out(Defaults)
def drawn(n, *, scale=1.0, **options: Unpack[Options]):
    return n, scale, options


def test_options_are_named_with_their_defaults():
    shown = inspect.signature(drawn).parameters
    assert list(shown) == ["n", "scale", "seed", "progress"]
    assert [shown[name].default for name in ("scale", "seed", "progress")] == [1.0, 3, None]
    assert shown["seed"].annotation is int
    assert drawn(2, seed=4) == (2, 1.0, {"seed": 4})


def test_an_unknown_option_is_named():
    with pytest.raises(TypeError, match=r"drawn\(\) got an unexpected keyword argument 'sed'"):
        drawn(2, sed=4)


@pytest.mark.parametrize("name", ["kendall_tau_delta", "kendall_tau", "rank_agreement", "stratified_rank_change",
                                  "agreement_by_gap", "smallest_gap", "compare_evaluators"])  # fmt: skip
def test_measures_show_the_options_of_their_resamples(name):
    shown = inspect.signature(getattr(jaxeval, name)).parameters
    options = {"n_resamples": 1000, "resample": "models", "level": 0.95, "seed": 0, "memory_limit": None,
               "checkpoint": None, "progress": None}  # fmt: skip
    assert {option: shown[option].default for option in options} == options


@pytest.mark.parametrize(
    ("read", "table"),
    [
        (jaxeval.read_judged_battles, jaxeval.JudgedBattles),
        (jaxeval.read_judged_answers, jaxeval.JudgedAnswers),
        (jaxeval.read_anchored_verdicts, jaxeval.AnchoredVerdicts),
    ],
)
def test_readers_of_files_have_the_options_of_tables(read, table):
    of_file, of_table = (list(inspect.signature(f).parameters.values()) for f in (read, table.from_pandas))
    assert of_file[0].name == "path"
    assert of_file[1 : len(of_table)] == of_table[1:]
    assert [own.name for own in of_file[len(of_table) :]] == (["baseline"] if "anchored" in read.__name__ else [])
