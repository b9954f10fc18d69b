"""Options that are written once are shown, and checked, in every signature."""

import inspect
from inspect import signature
from operator import attrgetter
from typing import Literal, get_type_hints

import pytest
import stubs

import jaxeval
from jaxeval.execution.signatures import spelled_out
from jaxeval.options.field import Options, option

Kind = Literal["one", "other"]


class Drawn(Options):
    seed: int = option(3, "Seed of --count numbers.", least=0)
    progress: bool | None = option(None, "Show a bar.", flag="")
    kind: "Kind" = option("one", "Which.")


@spelled_out(Drawn, without="kind")
def drawn(n, *, scale=1.0, level=0.9, **options):
    """Draw.

    Args:
        n: how many.
        scale: of them, such as 1.0: of a long line that is
            continued here.

    Returns:
        All.
    """
    return n, scale, options


def test_options_are_named_with_their_defaults():
    shown = inspect.signature(drawn).parameters
    assert list(shown) == ["n", "scale", "level", "seed", "progress"]
    assert [shown[name].default for name in ("scale", "seed", "progress")] == [1.0, 3, None]
    assert shown["seed"].annotation is int
    assert drawn(2, seed=4) == (2, 1.0, {"seed": 4})


def test_docstrings_describe_them_as_they_are_declared():
    assert (
        drawn.__doc__.split("Args:\n")[1]
        == """    n: how many.
    scale: of them, such as 1.0: of a long line that is
        continued here.
    level: confidence level of the intervals, and of what is said with them.
    seed: seed of ``count`` numbers.
    progress: show a bar.

Returns:
    All."""
    )


def test_values_are_checked_as_they_are_declared():
    assert Drawn(seed=5).checked_values() == {"seed": 5}
    for wrong, error, message in [
        ({"seed": 2.5}, TypeError, "seed must be an integer, got 2.5"),
        ({"seed": -1}, ValueError, "seed must be at least 0, got -1"),
        ({"kind": "third"}, ValueError, "kind must be one of 'one', 'other', got 'third'"),
    ]:
        with pytest.raises(error, match=message):
            Drawn(**wrong).checked_values()


def test_what_was_given_is_what_differs():
    assert Drawn().given() == {}
    assert Drawn(seed=4, kind="other").given() == {"seed": "--seed", "kind": "--kind"}
    assert Drawn(seed=4, kind="other").given("kind") == {"kind": "--kind"}


def test_an_unknown_option_is_named():
    with pytest.raises(TypeError, match=r"drawn\(\) got an unexpected keyword argument 'sed'; did you mean 'seed'"):
        drawn(2, sed=4)


@pytest.mark.parametrize("name", ["kendall_tau_delta", "kendall_tau", "rank_agreement", "stratified_rank_change",
                                  "agreement_by_gap", "smallest_gap", "compare_evaluators"])  # fmt: skip
def test_measures_show_the_options_of_their_resamples(name):
    shown = inspect.signature(getattr(jaxeval, name)).parameters
    options = {"n_resamples": 1000, "resample": "models", "level": 0.95, "seed": 0, "memory_limit": None,
               "checkpoint": None, "progress": None}  # fmt: skip
    assert {option: shown[option].default for option in options} == options


@pytest.mark.parametrize(("read", "table"), [
    (jaxeval.read_judged_battles, jaxeval.JudgedBattles),
    (jaxeval.read_judged_answers, jaxeval.JudgedAnswers),
    (jaxeval.read_anchored_verdicts, jaxeval.AnchoredVerdicts),
])  # fmt: skip
def test_readers_of_files_have_the_options_of_tables(read, table):
    of_file, of_table = (list(inspect.signature(f).parameters.values()) for f in (read, table.from_pandas))
    assert of_file[0].name == "path"
    assert of_file[1 : len(of_table)] == of_table[1:]
    assert [own.name for own in of_file[len(of_table) :]] == (["baseline"] if "anchored" in read.__name__ else [])


@pytest.mark.parametrize("name", stubs.WITH_OPTIONS)
def test_types_of_options_are_found_and_unknown_ones_are_told(name):
    function = attrgetter(name)(jaxeval)
    assert set(get_type_hints(function)) - {"return"} <= set(signature(function).parameters)
    with pytest.raises(
        TypeError, match=rf"^{name}\(\) (got an unexpected keyword argument 'nothing'|missing a required)"
    ):
        function(nothing=1)


def test_readers_describe_the_columns_that_they_take():
    assert "    winner: column of labels" in inspect.getdoc(jaxeval.read_battles)
    assert "    winner: column of labels" in inspect.getdoc(jaxeval.count_battles)
