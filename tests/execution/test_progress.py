import re
import time

import jax
import pytest

from jaxeval.execution import progress
from jaxeval.execution.progress import announce, progress_bar


@pytest.mark.parametrize(
    ("enabled", "done", "last"),
    [
        (True, [], "compiling, then resamples 0/10"),
        (True, [0], "compiling, then resamples 0/10"),  # nothing was kept in a checkpoint
        (None, [0, 3], "resamples 3/10"),
        (True, [3, "compile"], "compiling, then resamples 3/10"),  # another program
        (True, [3, "compile", 2], "resamples 5/10"),
    ],
)
def test_it_says_that_it_compiles_until_something_is_done(enabled, done, last, capsys, monkeypatch):
    monkeypatch.setattr(progress, "_DELAY_SECONDS", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress_bar(10, "resamples", enabled) as advance:
        for n in done:
            if n == "compile":
                jax.jit(lambda x: x + 1).lower(1.0).compile()
            else:
                advance(n)
        time.sleep(0.3)  # it appears in another thread
    text = re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", capsys.readouterr().err)  # without colours
    *_, shown = re.findall(r"(compiling, then )?(resamples) \S+ +(\d+/10)", text)
    assert f"{shown[0]}{shown[1]} {shown[2]}" == last


@pytest.mark.parametrize(("enabled", "delay"), [(False, 0.0), (True, 0.7)])
def test_it_is_not_shown_where_it_is_not_wanted_or_work_is_short(enabled, delay, capsys, monkeypatch):
    monkeypatch.setattr(progress, "_DELAY_SECONDS", delay)
    with progress_bar(10, "resamples", enabled) as advance:
        advance(10)
    assert not capsys.readouterr().err.strip()


@pytest.mark.parametrize(("enabled", "lines"), [(None, ["2", "5"]), (False, [])])
def test_a_log_gets_a_line_a_minute(enabled, lines, capsys, monkeypatch):
    """Not one for each step, and none at the end; none at all where none is wanted."""
    clock = iter([0.0, 1.0, 61.0, 62.0, 125.0, 200.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress_bar(6, "resamples", enabled) as advance:
        for n in (1, 1, 1, 2, 1):
            advance(n)
    told = capsys.readouterr().err.splitlines()
    assert told == [f"resamples: {n} of 6 after {minutes} min" for n, minutes in zip(lines, [1, 2], strict=False)]


def test_long_work_is_announced_where_no_bar_is_shown(capsys, monkeypatch):
    for enabled in (True, False, None):
        announce(f"fetching {enabled}", enabled)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    announce("fetching on a terminal", None)
    assert capsys.readouterr().err == "fetching None\n"
