"""Tests of chance, as users mark them: pytest runs in this process, on files of its own."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from jaxeval.integrations import pytest_plugin
from jaxeval.integrations.pytest_plugin import Trial
from jaxeval.scores.gate import score_gate

pytest_plugins = ["pytester"]


@pytest.fixture(scope="module", autouse=True)
def imported():
    """Import whatever a verdict needs: modules that a run of pytester imports first are forgotten after it.

    A second pandas would follow, while Arrow keeps the first.
    """
    rows = [(side, str(item), float(item % 3 > 0)) for side in "ab" for item in range(6)]
    score_gate(pd.DataFrame(rows, columns=["model", "item", "score"]), "a", "b", margin=0.1)


@pytest.fixture
def ends(pytester):
    """Run tests of a text; what is printed, and the exit code."""

    def run(text, *options):
        pytester.makepyfile(test_chance=f"import pytest\n{text}")
        found = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", *options)
        return "\n".join(found.outlines), int(found.ret)

    return run


def marked(body, mark, parameters=""):
    names = "jaxeval_trial, q" if parameters else "jaxeval_trial"
    return f"@pytest.mark.jaxeval({mark})\n{parameters}\ndef test_it({names}):\n {body}\n"


@pytest.mark.parametrize(
    ("body", "verdict", "code"),
    [("assert jaxeval_trial", "PASS", 0), ("assert jaxeval_trial < 10", "FAIL", 1),
     ("assert jaxeval_trial % 4", "INCONCLUSIVE", 0)],
)  # fmt: skip
def test_trials_have_one_verdict(ends, body, verdict, code):
    printed, status = ends(marked(body, "trials=40, at_least=0.8"))
    assert f"{verdict} test_chance.py::test_it: " in printed
    assert "of 40 trials pass" in printed
    assert status == code
    assert ends(marked(body, "trials=40, at_least=0.8"), "--jaxeval-strict")[1] == (verdict != "PASS")


def test_p_values_are_exact_for_independent_trials():
    trials = [Trial("t", "", str(k), k < 37) for k in range(40)]
    found = pytest_plugin._verdict("t", trials, {"against": None, "at_least": 0.9, "margin": 0.1, "level": 0.95}, None)
    p = stats.binom.sf(36, 40, 0.8)
    assert found.verdict == ("PASS" if p <= 0.05 else "INCONCLUSIVE")
    assert f"(p {p:.2g})" in found.sentence


def test_items_are_what_would_be_drawn_anew():
    """Ten trials each of items that always pass or always fail tell as much as one each."""
    fixed = [Trial("t", str(item), str(k), item % 3 > 0) for item in range(30) for k in range(10)]
    assert pytest_plugin._effective(fixed)[:2] == (30, 30)
    rng = np.random.default_rng(0)
    loose = [trial._replace(passed=bool(rng.uniform() < 0.6)) for trial in fixed]
    assert 150 < pytest_plugin._effective(loose)[0] <= 300


@pytest.mark.slow
def test_wrong_verdicts_are_few():
    """At the threshold itself, items differ, and each has several trials: few pass, and few fail."""
    rng = np.random.default_rng(0)
    asked = {"against": None, "at_least": 0.8, "margin": 0.0, "level": 0.95}
    for n_items, k in ((1, 40), (20, 1), (20, 5), (60, 3)):
        counts = {"PASS": 0, "FAIL": 0, "INCONCLUSIVE": 0}
        for _ in range(600):
            rates = np.full(1, 0.8) if n_items == 1 else rng.beta(4, 1, n_items)
            trials = [
                Trial("t", str(i), str(j), bool(rng.uniform() < r)) for i, r in enumerate(rates) for j in range(k)
            ]
            counts[pytest_plugin._verdict("t", trials, asked, None).verdict] += 1
        assert max(counts["PASS"], counts["FAIL"]) <= 600 * (0.05 + 3 * np.sqrt(0.05 * 0.95 / 600)), (
            n_items,
            k,
            counts,
        )


def test_runs_are_counted_together(ends, pytester):
    text = marked("assert jaxeval_trial", "trials=10, at_least=0.7")
    assert "INCONCLUSIVE" in ends(text, "--jaxeval-trials", "kept.jsonl")[0]
    assert "PASS test_chance.py::test_it: 36 of 40 trials pass" in [
        ends(text, "--jaxeval-trials", "kept.jsonl")[0] for _ in range(3)
    ][-1].replace("test_chance.py::test_it: 36 of 40 trials pass;", "test_chance.py::test_it: 36 of 40 trials pass")
    lines = [json.loads(line) for line in (pytester.path / "kept.jsonl").read_text().splitlines()]
    assert len(lines) == 40
    assert len({line["trial"] for line in lines}) == 40


@pytest.mark.parametrize(("rule", "verdict"), [("True", "PASS"), ("q % 3", "FAIL"), ("q % 20", "INCONCLUSIVE")])
def test_beside_a_file_of_trials(ends, pytester, rule, verdict):
    before = [Trial("test_chance.py::test_it", str(k), "0.0", True)._asdict() for k in range(40)]
    (pytester.path / "main.jsonl").write_text("\n".join(map(json.dumps, before)))
    parameters = '@pytest.mark.parametrize("q", range(40))'
    printed, status = ends(marked(f"assert {rule}", 'against="main.jsonl", margin=0.1', parameters))
    assert f"{verdict} test_chance.py::test_it: " in printed
    assert "main.jsonl" in printed
    assert status == (verdict == "FAIL")


def test_errors_and_other_tests_are_as_ever(ends):
    printed, status = ends(marked("raise OSError('no model')", "trials=2, at_least=0.5"))
    assert status == 1
    assert "no model" in printed
    assert "tests of chance" not in printed
    printed, status = ends("def test_plain():\n assert 0\n")
    assert status == 1
    assert "1 failed" in printed


@pytest.mark.parametrize(
    ("mark", "told"),
    [("", "needs at_least="), ("at_least=0.9, trials=0", "trials must be"), ("at_lest=0.9", "takes trials, at_least"),
     ("at_least=2", "at_least must be"), ('against="no.jsonl", margin=0.1', "to decide against"),
     ('against="no.jsonl"', "above 0 with against="), ("at_least=0.9, level=1", "level must be")],
)  # fmt: skip
def test_bad_marks(ends, mark, told):
    printed, status = ends(marked("pass", mark))
    assert status != 0
    assert told in printed


def test_a_damaged_file_of_trials(ends, pytester):
    (pytester.path / "main.jsonl").write_text('{"test": "x"}\n')
    printed, status = ends(marked("pass", 'against="main.jsonl", margin=0.1'))
    assert status != 0
    assert "line 1, is no trial of --jaxeval-trials" in printed
