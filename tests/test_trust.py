"""The page of trust is what its command makes of the committed results, and leaves out no interval, paper or test."""

import importlib.util
import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, binomtest

import jaxeval
from jaxeval.ratings.thin_models import ENOUGH_BATTLES
from jaxeval.scores.estimates import FEW_ITEMS
from jaxeval.statistics.clusters import FEW_CLUSTERS

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def trust():
    """benchmarks/trust.py, which imports a module beside it."""
    folder = str(ROOT / "benchmarks")
    sys.path.insert(0, folder)
    try:
        spec = importlib.util.spec_from_file_location("trust_page", f"{folder}/trust.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(folder)


def test_the_page_is_what_the_command_makes(trust):
    assert trust.PAGE.read_text(encoding="utf-8") == trust.page(), "run python benchmarks/trust.py"


def interval_givers():
    """Public functions that take a level, and classes with a method that takes one or with a field for it."""
    found = set()
    for name in jaxeval.__all__:
        value = getattr(jaxeval, name)
        if inspect.isclass(value):
            methods = [own for own, f in inspect.getmembers(value, inspect.isfunction) if not own.startswith("_")
                       and "level" in inspect.signature(f).parameters]  # fmt: skip
            fields = {"lower", "upper", "level"} & set(getattr(value, "__dataclass_fields__", ()))
            if methods or fields:
                found.add(name)
        elif callable(value) and (
            "level" in inspect.signature(value).parameters or "interval" in (inspect.getdoc(value) or "")
        ):
            found.add(name)
    return found


def test_every_interval_has_a_row_or_a_reason(trust):
    covered = {name for row in trust.rows() for name in row["functions"]}
    assert covered <= set(jaxeval.__all__)
    excused = set(trust.WITHOUT_A_ROW)
    assert covered & excused == set()
    assert interval_givers() - covered - excused == set(), "simulate them in benchmarks/interval_coverage.py"
    assert excused <= interval_givers()


def test_rows_are_shares_of_enough_data_sets(trust):
    for row in trust.rows():
        assert 0 <= row["observed"] <= 1
        assert 0 < row["nominal"] <= 1
        if row["data_sets"] is None:  # summed over all counts
            assert row["standard_error"] == 0
            assert row["intervals"] > 20
            continue
        assert row["standard_error"] > 0 or row["observed"] == row["nominal"]
        assert row["data_sets"] >= 60


def test_verdicts_go_by_the_value(trust):
    """And need two errors; other levels than .95 go by their standard deviation."""
    short, unsettled, said, long = "too short", "not settled", "as said", "longer than needed"
    own = {"nominal": 0.95, "standard_error": 0.01, "case": "8 models"}
    found = [trust.verdict({**own, "observed": x}) for x in (0.90, 0.931, 0.941, 0.974, 0.99)]
    assert found == [short, unsettled, said, said, long]
    assert trust.verdict({**own, "observed": 0.925, "case": "worst of 12 cells"}) == unsettled
    clusters = {**own, "standard_error": 0.001, "method": "Bradley-Terry of clusters, by default"}
    found = [trust.verdict({**clusters, "observed": x}) for x in (0.934, 0.936, 0.969, 0.971)]
    assert found == [short, said, said, long]
    exact = {**own, "standard_error": 0.0}
    found = [trust.verdict({**exact, "observed": x}) for x in (0.939, 0.941, 0.974, 0.976)]
    assert found == [short, said, said, long]
    found = [trust.verdict({**exact, "nominal": 0.9, "observed": x}) for x in (0.885, 0.887, 0.933, 0.936)]
    assert found == [short, said, said, long]


def test_every_paper_is_told_whole(trust):
    """As many tables and figures as each paper numbers."""
    sizes = [{"Table": 17, "Figure": 10}, {"Table": 8, "Figure": 17}, {"Table": 2, "Figure": 16},
             {"Table": 7, "Figure": 3}, {"Table": 9, "Figure": 2}]  # fmt: skip
    papers = trust.published()
    for paper, size in zip(papers, sizes, strict=True):
        expected = {f"{kind} {k + 1}" for kind, n in size.items() for k in range(n)}
        assert set(paper["items"]) == expected
        for name, item in paper["items"].items():
            assert item["status"] in trust.STATUSES, name
            if item["status"] in ("reproduced", "in part", "follows", "direction", "differs"):
                assert item["ours"], name
                assert item["tests"], name


def test_tests_that_are_named_exist(trust):
    named = {test for paper in trust.published() for item in paper["items"].values() for test in item.get("tests", ())}
    assert len(named) > 30
    assert [test for test in sorted(named) if not trust.test_exists(test)] == []
    assert not trust.test_exists("tests/test_trust.py::test_that_is_none")
    assert not trust.test_exists("tests/none.py")


def test_peers_are_compared_in_what_is_saved(trust):
    """Every comparison of agreement.py has been run, and none is far off."""
    source = (ROOT / "benchmarks" / "agreement.py").read_text()
    written = re.findall(r'^@compared\(\s*"([^"]+)",\s*"([^"]+)"', source, re.MULTILINE)
    saved = {(own["peer"], own["what"]): own["largest_difference"] for own in trust.results("agreement")}
    assert set(written) == set(saved)
    assert max(saved.values()) < 0.01


def test_differences_have_a_reason(trust):
    """The page says that peers give the same numbers, except where a note says why."""
    lines = trust.differences()
    far = [line for line in lines if line[3] != "none" and float(line[3].split()[0]) > trust.NEAR]
    assert 5 < len(far) < len(lines) / 2
    assert [line for line in far if not line[4]] == []


def test_notes_of_what_misses(trust):
    """What notes say of warnings, of corrections, and of cases without either."""
    short = [row for row in trust.rows() if trust.verdict(row) == "too short"]
    assert trust.rows.__globals__["FEW_VOTES"] == ENOUGH_BATTLES
    assert trust.rows.__globals__["FEW_ITEMS"] == FEW_ITEMS == FEW_CLUSTERS
    boards = [row for row in trust.rows() if row["source"] == "few_battles"]
    few = [row for row in boards if trust.verdict(row) == "too short"]
    assert all(trust.on_purpose(row) for row in few)
    assert not any("Firth" in row["method"] and "wald" in row["method"] for row in few)
    assert sum("by default" in row["method"] and not trust.on_purpose(row) for row in boards) == 15
    assert not any("by default" in row["method"] for row in few)
    text = trust.coverage()
    own = [row for row in short if not trust.on_purpose(row)]
    assert not own  # no default interval is too short
    assert short
    assert f"{len(own)} cases are too short" in text
    bare = sum(not row["note"] for row in own)
    assert f"{bare} {'case has' if bare == 1 else 'cases have'} no note" in text


def test_hostile_inputs_are_counted(trust):
    """Counts of the page are those of an earlier day: kinds and folders must be there, and hardly fewer tests."""
    now, told = trust.count_hostile(), trust.json.loads(trust.HOSTILE.read_text())
    assert set(now["names"]) == set(trust.KINDS) == set(told["names"])
    assert sum(own["tests"] for own in now["refusals"].values()) > 0.9 * sum(
        own["tests"] for own in told["refusals"].values()
    )


def test_equal_models_have_no_leader(trust):
    """Claims in no cell are more than the level allows, and three errors."""
    cells = trust.results("equal_models")["cells"]
    for cell in cells:
        n = cell["boards"]
        assert cell["claims"] <= 0.05 * n + 3 * np.sqrt(0.05 * 0.95 * n), cell
    for one in trust.results("equal_models")["estimators"]:
        n, allowed = one["boards"], 0.1 if "at .9" in one["estimator"] else 0.05
        assert max(one["leaders"], one["tiers"]) <= allowed * n + 3 * np.sqrt(allowed * (1 - allowed) * n), one
        assert one["rank_sets_missed"] < 1.5 * allowed, one
    assert (
        f"{sum(cell['claims'] for cell in cells)} of {sum(cell['boards'] for cell in cells):,} answers" in trust.page()
    )


@pytest.mark.slow
def test_what_exact_intervals_hold_by_count(trust):
    """Exact rows beside SciPy's intervals, summed: 50 items of which .98 are right, .5 of 200 and .9 of 20."""
    rows = {row["case"]: row["observed"] for row in trust.rows() if row["data_sets"] is None}
    for n, p in ((50, 0.98), (200, 0.5), (20, 0.9)):
        ends = [binomtest(right, n).proportion_ci(method="exact") for right in range(n + 1)]
        inside = np.array([low <= p <= high for low, high in ends])
        held = binom.pmf(np.arange(n + 1), n, p)[inside].sum()
        assert rows[f"right or wrong, {p:g}, {n} items"] == pytest.approx(held, abs=1e-9)
