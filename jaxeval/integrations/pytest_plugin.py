"""Tests whose outcome is chance: their trials are counted, and one verdict is given at the end.

Loaded by pytest itself (entry point ``pytest11``), in every run of everybody who has jaxeval: nothing but the standard
library and pytest is imported before a test asks for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

_MARK, _TRIAL, _PROPERTY = "jaxeval", "jaxeval_trial", "jaxeval"
_NUMBERED = re.compile(r"(?:(?<=\[)|-)" + _TRIAL + r"(\d+)")
_OPTIONS = ("trials", "at_least", "margin", "against", "level")
_HELP = (
    f"{_MARK}(trials=1, at_least=None, margin=0.0, against=None, level=0.95): count failed assertions as trials, and "
    "decide at the end whether the share that passes is at least `at_least`, or not worse than in the trials of the "
    "file `against`, by the margin"
)


class Trial(NamedTuple):
    """One run of a marked test."""

    test: str  # its function
    item: str  # the values of its parameters
    trial: str
    passed: bool


@dataclass(frozen=True)
class Verdict:
    """What is said of a marked test at the end."""

    test: str
    verdict: str  # PASS, FAIL or INCONCLUSIVE
    sentence: str


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("jaxeval", "tests of chance")
    group.addoption(
        "--jaxeval-trials", metavar="FILE", help="count the trials in this file, too, and add those of this run to it"
    )
    group.addoption(
        "--jaxeval-strict", action="store_true", help="end with status 1 where a verdict is INCONCLUSIVE, too"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, and what counts."""
    config.addinivalue_line("markers", _HELP)
    if not hasattr(config, "workerinput"):  # with xdist, one process counts
        config.pluginmanager.register(_Counter(config), "jaxeval-counter")


@pytest.fixture
def jaxeval_trial(request: pytest.FixtureRequest) -> int:
    """Return the number of the trial, from 0."""
    return int(getattr(request, "param", 0))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a marked test as many times as it asks for."""
    mark = metafunc.definition.get_closest_marker(_MARK)
    if mark is None:
        return
    options = _asked(mark, metafunc.definition.nodeid)
    if options["against"] is not None:
        path = metafunc.config.rootpath / options["against"]
        if not path.exists():
            raise pytest.UsageError(
                f"there is no {path} to decide against: make it by --jaxeval-trials {options['against']}"
            )
        _read(path)
    if _TRIAL not in metafunc.fixturenames:
        metafunc.fixturenames.append(_TRIAL)
    numbers = range(options["trials"])
    metafunc.parametrize(_TRIAL, numbers, indirect=True, ids=[f"{_TRIAL}{k}" for k in numbers])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Note the outcome of a trial. A failed assertion is an outcome; any other error stays one."""
    report: Any = yield
    mark = item.get_closest_marker(_MARK)
    if mark is not None and report.when == "call" and report.outcome != "skipped":
        is_outcome = call.excinfo is None or call.excinfo.errisinstance((AssertionError, pytest.fail.Exception))
        if is_outcome:
            number = _NUMBERED.search(item.nodeid)
            base = _NUMBERED.sub("", item.nodeid).replace("[-", "[").removesuffix("[]")
            test, bracket, values = base.partition("[")
            options = {name: str(x) if isinstance(x, Path) else x for name, x in _asked(mark, test).items()}
            noted = {
                "test": test, "item": (bracket + values).strip("[]"), "trial": number[1] if number else "0",
                "passed": call.excinfo is None, "asked": options,
            }  # fmt: skip
            report.user_properties.append((_PROPERTY, noted))
            report.outcome = "passed"
    return report


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Show failed trials as such, and not as failed tests."""
    noted = _noted(report)
    if noted is None or noted["passed"]:
        return None
    return "failed trials", "f", "TRIAL FAILED"


def _noted(report: Any) -> dict[str, Any] | None:
    if getattr(report, "when", None) != "call":
        return None
    return next((value for name, value in report.user_properties if name == _PROPERTY), None)


def _asked(mark: pytest.Mark, test: str) -> dict[str, Any]:
    """Return the options of a mark, checked."""
    unknown = [name for name in mark.kwargs if name not in _OPTIONS]
    if mark.args or unknown:
        what = f"{unknown[0]!r}" if unknown else "an argument without a name"
        raise pytest.UsageError(f"{test}: @pytest.mark.jaxeval takes {', '.join(_OPTIONS)}; got {what}")
    options = {"trials": 1, "at_least": None, "margin": 0.0, "against": None, "level": 0.95} | dict(mark.kwargs)
    if (options["at_least"] is None) == (options["against"] is None):
        raise pytest.UsageError(
            f"{test}: @pytest.mark.jaxeval needs at_least=, or against= with a margin=; one of them"
        )
    if not (isinstance(options["trials"], int) and options["trials"] >= 1):
        raise pytest.UsageError(f"{test}: trials must be a whole number from 1 on, got {options['trials']!r}")
    if not 0 <= options["margin"] < 1 or (options["against"] is not None and not options["margin"]):
        raise pytest.UsageError(f"{test}: margin must be a share below 1, and above 0 with against=")
    if options["at_least"] is not None and not options["margin"] < options["at_least"] <= 1:
        raise pytest.UsageError(f"{test}: at_least must be a share above the margin, got {options['at_least']!r}")
    if not 0 < options["level"] < 1:
        raise pytest.UsageError(f"{test}: level must be between 0 and 1, got {options['level']!r}")
    return options


class _Counter:
    """What counts the trials of a run, in the one process that reports."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.trials: list[Trial] = []
        self.asked: dict[str, dict[str, Any]] = {}
        self.verdicts: list[Verdict] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        noted = _noted(report)
        if noted is not None:
            self.asked.setdefault(noted["test"], noted["asked"])
            self.trials.append(Trial(**{name: noted[name] for name in Trial._fields}))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not self.trials:
            return
        kept, root = self.config.getoption("jaxeval_trials"), self.config.rootpath
        before = _read(root / kept) if kept and (root / kept).exists() else []
        for test, options in self.asked.items():
            of_test = [trial for trial in [*before, *self.trials] if trial.test == test]
            self.verdicts.append(_verdict(test, of_test, options, root))
        if kept:
            n_runs = len({trial.trial.partition(".")[0] for trial in before})
            with open(root / kept, "a", encoding="utf-8") as file:
                for trial in self.trials:
                    file.write(json.dumps(trial._replace(trial=f"{n_runs}.{trial.trial}")._asdict()) + "\n")
        bad = {"FAIL", "INCONCLUSIVE"} if self.config.getoption("jaxeval_strict") else {"FAIL"}
        if session.exitstatus == 0 and any(of_test.verdict in bad for of_test in self.verdicts):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.verdicts:
            return
        terminalreporter.section("tests of chance")
        colours: Mapping[str, Any] = {"PASS": {"green": True}, "FAIL": {"red": True}}
        for verdict in self.verdicts:
            style = colours.get(verdict.verdict, {"yellow": True})
            terminalreporter.line(f"{verdict.verdict} {verdict.test}: {verdict.sentence}", **style)


def _read(path: Path) -> list[Trial]:
    trials, number = [], 0
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            number += 1
            if line.strip():
                values = json.loads(line)
                test, item, trial = (str(values[name]) for name in ("test", "item", "trial"))
                trials.append(Trial(test, item, trial, bool(values["passed"])))
    except (ValueError, KeyError, TypeError) as error:
        raise pytest.UsageError(
            f"{path}, line {number}, is no trial of --jaxeval-trials ({error!r}): name another file"
        ) from error
    return trials


def _verdict(test: str, trials: Sequence[Trial], options: Mapping[str, Any], root: Path) -> Verdict:
    """Decide by trials of several items, each perhaps tried several times."""
    if options["against"] is not None:
        return _against(test, trials, options, root)
    from scipy.special import bdtr, bdtrc

    n, n_items, share = _effective(trials)
    least, most = options["at_least"] - options["margin"], 1 - options["level"]
    p_pass = float(bdtrc(floor(share * n + 1e-9) - 1, n, least)) if share * n >= 1 - 1e-9 else 1.0
    p_fail = float(bdtr(ceil(share * n - 1e-9), n, least))
    verdict = "PASS" if p_pass <= most else "FAIL" if p_fail <= most else "INCONCLUSIVE"
    of = f" on {n_items:,} items, as telling as {n:,} independent ones" if n_items > 1 and n < len(trials) else ""
    passed = f"{sum(trial.passed for trial in trials):,} of {len(trials):,} trials pass{of}"
    claim = {
        "PASS": f"the share is above {least:g}",
        "FAIL": f"the share is below {least:g}",
        "INCONCLUSIVE": f"whether the share is {least:g} or more is not shown",
    }[verdict]
    return Verdict(test, verdict, f"{passed}; {claim} (p {min(p_pass, p_fail):.2g})")


def _effective(trials: Sequence[Trial]) -> tuple[int, int, float]:
    """Return how many independent trials these are worth, of how many items, and the share that passes, by item.

    Trials of one item are independent. With several items, these are what would be drawn anew: the variance of their
    means says how many trials they are worth, at least one each. Where all pass, or none, nothing says more.
    """
    of_item: dict[str, list[bool]] = {}
    for trial in trials:
        of_item.setdefault(trial.item, []).append(trial.passed)
    means = [sum(outcomes) / len(outcomes) for outcomes in of_item.values()]
    n, share = len(means), sum(means) / len(means)
    if n == 1:
        return len(trials), 1, share
    variance = sum((mean - share) ** 2 for mean in means) / (n - 1) / n
    spread = share * (1 - share)
    worth = n if not spread else len(trials) if not variance else spread / variance
    return round(min(max(worth, n), len(trials))), n, share


def _against(test: str, trials: Sequence[Trial], options: Mapping[str, Any], root: Path) -> Verdict:
    """Decide beside the trials of a file, item by item; trials of one item are paired in their order."""
    from jaxeval.scores.gate import score_gate

    before = [trial for trial in _read(root / options["against"]) if trial.test == test]
    shared = {trial.item for trial in trials} & {trial.item for trial in before}
    sides = {"this run": trials, str(options["against"]): before}
    if len(shared) > 1:
        each_side = [(name, trial) for name, side in sides.items() for trial in side if trial.item in shared]
        rows = [(name, trial.item, trial.passed) for name, trial in each_side]
    else:
        each = {name: [side_trial for side_trial in side if side_trial.item in shared] for name, side in sides.items()}
        n = min(map(len, each.values()))
        rows = [
            (name, str(k), side_trial.passed) for name, side in each.items() for k, side_trial in enumerate(side[:n])
        ]
    if len({item for _, item, _ in rows}) < 2:
        return Verdict(test, "INCONCLUSIVE", f"{options['against']} has fewer than two trials of it")
    import pandas as pd

    table = pd.DataFrame(rows, columns=["model", "item", "score"]).astype({"score": float})
    gate = score_gate(table, *sides, margin=options["margin"], level=options["level"])
    left = len({trial.item for trial in [*trials, *before]} - shared)
    more = f" ({left:,} items that one of the two lacks are left out)" if left else ""
    return Verdict(test, gate.verdict, gate.answer.sentences[0].removeprefix(f"{gate.verdict}: ") + more)
