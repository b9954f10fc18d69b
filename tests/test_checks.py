"""One rule and one wording for the settings of all functions."""

import inspect
import re
from typing import Literal

import numpy as np
import pytest
from command_line import run
from estimators import ESTIMATORS, RUN

import jaxeval
from jaxeval import MemoryLimitError, checks
from jaxeval.checks import check_choice, check_room, checked_finite, checked_integer, checked_positive

VOTES = jaxeval.simulate_votes(300, 4)
LATE = {"capability_index", "fit_item_response", "goodness_of_fit", "merge_boards"}  # they fit all data first


@pytest.mark.parametrize("check", [checked_integer, checked_finite, checked_positive])
@pytest.mark.parametrize("value", ["1000", True, np.True_, None, [1], 1j])
def test_no_numbers(check, value):
    shown = repr(bool(value) if isinstance(value, np.bool_) else value)
    with pytest.raises(TypeError, match=rf"^x must be an? (integer|number), got {re.escape(shown)}"):
        check("x", value)


def test_values_are_shown_without_types_of_numpy():
    with pytest.raises(TypeError, match=r"got 2\.5$"):
        checked_integer("x", np.float64(2.5))
    with pytest.raises(ValueError, match=r"got -1$"):
        checked_positive("x", np.int64(-1))


def test_numbers_out_of_range():
    for value, least, message in (
        (-1, 0, "at least 0, got -1"),
        (2**63, 0, "from 0 to 2**63 - 1"),
        (1, 2, "at least 2"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            checked_integer("x", value, least)
    for value in (np.nan, np.inf, -1):
        with pytest.raises(ValueError, match=r"x must be finite and >= 0, got .*: why"):
            checked_finite("x", value, 0, ": why")
    for value in (np.nan, np.inf, 0, -1):
        with pytest.raises(ValueError, match=r"x must be finite and > 0, got .*: why"):
            checked_positive("x", value, ": why")
    assert (checked_integer("x", np.int8(3)), checked_finite("x", -2), checked_positive("x", np.float32(0.5))) == (
        3,
        -2,
        0.5,
    )


@pytest.mark.parametrize(("options", "message"), [
    ({"ridge": "x"}, "ridge must be a number, got 'x'"),
    ({"ridge": True}, "ridge must be a number, got True"),
    ({"base": "1000"}, "base must be a number, got '1000'"),
    ({"gauge": ("model-1", "1000")}, "the rating that fixes the gauge must be a number, got '1000'"),
    ({"checkpoint": 5}, "checkpoint must be the path of a folder, got 5"),
])  # fmt: skip
def test_errors_name_the_option(options, message):
    functions = [jaxeval.bootstrap, jaxeval.leaderboard]
    if "checkpoint" not in options:
        functions.append(jaxeval.fit_bradley_terry)
    for function in functions:
        with pytest.raises(TypeError, match=f"^{re.escape(message)}"):
            function(VOTES, **options)


@pytest.mark.parametrize(
    "estimator",
    [pytest.param(x, marks=[pytest.mark.slow] if x.name in LATE else [], id=x.name)
     for x in ESTIMATORS if x.name == x.function],
)  # fmt: skip
def test_every_estimator_checks_its_numbers_and_columns(estimator):
    data, taken = estimator.data(), inspect.signature(getattr(jaxeval, estimator.function)).parameters
    for option, value, error, message in (
        ("seed", True, TypeError, "must be an integer, got True"),
        ("seed", -1, ValueError, "must be at least 0, got -1"),
        ("seed", 2**63, ValueError, r"must be an integer from 0 to 2\*\*63 - 1"),
        ("n_resamples", 2.5, TypeError, r"must be an integer, got 2\.5"),
        ("n_resamples", -1, ValueError, r"must be (0 or )?at least \d+, got -1"),
        ("n_resamples", 10**12, MemoryLimitError, "=1,000,000,000,000: the results would take"),
        ("level", 95, ValueError, "must be .*between 0 and 1, got 95"),
        ("chunk_size", 0, ValueError, "must be at least 1, got 0"),
        ("memory_limit", "1GB", TypeError, "must be an integer, got '1GB'"),
    ):
        if option in taken:
            with pytest.raises(error, match=f"^{option} ?{message}"):
                estimator.call(data, **{**RUN, option: value})
    for option in {"cluster", "by", "strata"} & set(taken):  # strata of items are asked for where models are drawn
        with pytest.raises(ValueError, match=r"nowhere|draws no items"):
            estimator.call(data, **{**RUN, option: "nowhere"})


class TestChoices:
    @pytest.mark.parametrize("known", [Literal["mean", "votes"], ("mean", "votes"), {"mean": 0, "votes": 1}])
    def test_what_may_be_chosen(self, known):
        check_choice("gauge", "votes", known)
        with pytest.raises(ValueError, match=r"^gauge must be one of 'mean', 'votes', got 'vote'; did you mean"):
            check_choice("gauge", "vote", known)
        for value in (None, ["mean"], {}, np.array(["mean", "votes"]), True):
            with pytest.raises(ValueError, match=r"^gauge must be one of 'mean', 'votes' or a pair, got "):
                check_choice("gauge", value, known, " or a pair")

    def test_every_function_names_what_is_spelled_alike(self):
        for call, end in (
            (lambda: jaxeval.Battles.from_pandas(VOTES, missing="drops"), "'drop'"),
            (lambda: jaxeval.bootstrap(VOTES, 10, scheme="multi"), "'multinomial'"),
            (lambda: jaxeval.icc3([[1, 0], [0, 1]], missing="completed"), "'complete'"),
        ):
            with pytest.raises(ValueError, match=f"; did you mean {end}"):
                call()


class TestRoom:
    def test_told_before_any_resample_is_drawn(self, monkeypatch):
        monkeypatch.setattr(checks, "_memory", lambda: 10**9)
        check_room(10**6, 1000)
        message = (
            "n_resamples=1,000,001: the results would take 1,000,001,000 bytes, and this machine has 1,000,000,000"
        )
        with pytest.raises(MemoryLimitError, match=f"{message}; ask for at most 1,000,000 resamples"):
            check_room(10**6 + 1, 1000)

    def test_one(self, monkeypatch):
        monkeypatch.setattr(checks, "_memory", lambda: 1500)
        with pytest.raises(MemoryLimitError, match=r"ask for at most 1 resample$"):
            check_room(2, 1000)

    def test_on_the_command_line(self, tmp_path):
        VOTES.to_csv(tmp_path / "votes.csv")
        result = run("leaderboard", tmp_path / "votes.csv", "--resamples", 10**12)
        assert result.exit_code == 1
        assert "Error: n_resamples=1,000,000,000,000: the results would take" in result.stderr
