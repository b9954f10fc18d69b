"""A gate with three verdicts: its tests, its sentences, and the reports of the command."""

import json
import os
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from command_line import run, said
from scipy import stats

import jaxeval
from jaxeval.cli.compare_scores import COULD_NOT_RUN
from jaxeval.errors import DataError
from jaxeval.statistics.clusters import changed_effect, degrees_of_freedom, few_clusters_text, widening
from jaxeval.statistics.p_values import p_above


def answers(*tasks):
    """Scores of "new" and "old" on tasks of n items each, of which only_new and only_old are right by one alone."""
    rows = []
    for task, n, only_new, only_old in tasks:
        new, old = np.ones(n, int), np.ones(n, int)
        old[:only_new], new[only_new : only_new + only_old] = 0, 0
        for name, score in (("new", new), ("old", old)):
            rows.append(pd.DataFrame({"model": name, "benchmark": task, "item": range(n), "score": score}))
    return pd.concat(rows, ignore_index=True)


def gate_of(scores, **options):
    return jaxeval.score_gate(scores, "new", "old", **{"margin": 0.02} | options)


@pytest.mark.parametrize(
    ("task", "verdict", "code"),
    [(("t", 500, 0, 0), "PASS", 0), (("t", 500, 0, 40), "FAIL", 1), (("t", 500, 5, 13), "INCONCLUSIVE", 2),
     (("t", 2, 0, 0), "INCONCLUSIVE", 2), (("t", 2, 0, 2), "INCONCLUSIVE", 2)],
)  # fmt: skip
def test_a_verdict_has_its_code_and_sentence(task, verdict, code):
    gate = gate_of(answers(task))
    assert (gate.verdict, gate.exit_code) == (verdict, code)
    assert gate.answer.sentences[0].startswith(verdict)
    (row,) = gate.table.to_dict("records")
    assert (row["p_pass"] <= 0.05, row["p_fail"] <= 0.05) == (verdict == "PASS", verdict == "FAIL")


def test_tests_are_those_of_the_comparison():
    scores = answers(("t", 300, 9, 14))
    (row,) = gate_of(scores).table.to_dict("records")
    found = jaxeval.compare_scores(scores, "new", "old", margin=0.02)
    assert (row["p_pass"], row["p_fail"]) == (found.p_non_inferior, found.p_inferior)
    turned = jaxeval.compare_scores(scores, "old", "new", margin=0.02)
    assert found.p_inferior == pytest.approx(p_above(14, 9, 300, 0.02))
    assert found.p_equivalent == pytest.approx(max(found.p_non_inferior, turned.p_non_inferior))


def test_p_of_a_difference_above_a_null_is_never_below_that_of_an_exact_test():
    for n, b, null in ((10, 2, 0.05), (50, 4, 0.02), (200, 30, 0.1)):
        assert p_above(b, 0, n, null) >= stats.binom.sf(b - 1, n, null) * (1 - 1e-12)
    assert p_above(3, 3, 40, 0.02) == 1


@pytest.mark.parametrize("n", [2, 3, 6, 12, 40])
def test_errors_of_the_first_kind_stay_below_the_level(n):
    """Summed exactly, over all shares of unlike answers: of both tests at the margin."""
    a, b = (x.ravel() for x in np.meshgrid(np.arange(n + 1), np.arange(n + 1)))
    a, b = a[a + b <= n], b[a + b <= n]
    for margin in (0.02, 0.1, 0.2, 0.3):
        passes, fails = (
            np.array([p_above(*own, n, null) <= 0.05 for own in zip(*counts, strict=True)])
            for counts, null in (((a, b), -margin), ((b, a), margin))
        )
        for churn in margin + (1 - margin) * np.array([0, 0.09, 0.23, 0.5, 1]):
            chance = stats.multinomial.pmf(
                np.stack([a, b, n - a - b], 1), n, [(churn - margin) / 2, (churn + margin) / 2, 1 - churn]
            )
            assert chance.sum() == pytest.approx(1)
            assert chance @ passes <= 0.05
            assert chance @ fails <= 0.05


def test_a_failure_at_the_margin_is_as_rare():
    """The score alone would fail .054 of these, of 500 items of which 7 % differ."""
    a, b = (x.ravel() for x in np.mgrid[:24, 10:56])
    chance = stats.multinomial.pmf(np.stack([a, b, 500 - a - b], 1), 500, [0.01, 0.06, 0.93])
    assert chance.sum() > 0.9999
    assert chance @ [p_above(*own, 500, 0.05) <= 0.05 for own in zip(b, a, strict=True)] <= 0.05


def test_clusters_that_change_as_a_whole():
    """Few seen changes do not show what a cluster more would cost; clusters without a sum are no division by zero."""
    scores = answers(("t", 1000, 0, 8)).drop(columns="benchmark")
    assert gate_of(scores, margin=0.03).verdict == "PASS"
    assert gate_of(scores.assign(cluster=scores["item"] % 50), margin=0.03).verdict == "INCONCLUSIVE"
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(16):
        whole, alone = rng.random(50) < 0.02, rng.random(1000) < 0.02
        new = np.where(rng.random(50) < 0.5, 1, 0).repeat(20)
        lost = np.where(new == 1, whole.repeat(20), alone)
        table = {"item": range(1000), "cluster": np.arange(50).repeat(20), "new": 1 - lost, "old": 1}
        wrong += (
            gate_of(pd.DataFrame(table).melt(["item", "cluster"], ["new", "old"], "model", "score")).verdict == "PASS"
        )
    assert wrong == 0
    both = answers(("t", 20, 1, 1)).drop(columns="benchmark")
    assert 0 < gate_of(both.assign(cluster=both["item"] // 10)).table["p_pass"][0] < 1


def test_correlation_within_clusters_does_not_hang_on_which_sizes_changed():
    sizes = np.repeat([1, 2, 5, 20, 72], 20)
    cluster, share = np.arange(100).repeat(sizes), np.full(2000, 1 / 2000)
    kish = np.sum(sizes**2) / 2000
    for size in (2, 5, 20, 72):  # ten of these change as a whole
        lost = np.isin(cluster, np.flatnonzero(sizes == size)[:10])
        assert changed_effect((lost - lost.mean()) * share, share, cluster) == pytest.approx(kish, rel=0.1)
    assert changed_effect(0 * share, share, cluster) == pytest.approx(kish)
    alone = np.random.default_rng(0).random(2000) < 0.1
    assert changed_effect((alone - alone.mean()) * share, share, cluster) < 1 + 0.4 * (kish - 1)
    half = np.where(cluster % 2 == 1, np.isin(cluster, cluster[-1] - np.arange(0, 6, 2)), alone)
    r = (changed_effect((half - half.mean()) * share, share, cluster) - 1) / (kish - 1)
    assert 216 / half.sum() < r < 0.85  # 216 changed as wholes
    weight = np.where(cluster % 2, 3.0, 1.0)  # as clusters of three times as many items
    copied = np.repeat(np.arange(2000), np.where(cluster % 2, 3, 1))
    whole = cluster % 7 == 0
    own = [changed_effect((whole[i] - 0.1) * w, w, cluster[i]) for i, w in (
        (np.arange(2000), weight / weight.sum()), (copied, np.full(len(copied), 1 / len(copied)))
    )]  # fmt: skip
    assert own[0] * np.sum((weight / weight.sum()) ** 2) == pytest.approx(own[1] / len(copied), rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("whole", "churn", "margin"), [(0.5, 0.02, 0.02), (0.5, 0.05, 0.05), (1, 0.02, 0.02)])
@pytest.mark.parametrize("equal", [False, True])
def test_wrong_verdicts_of_clusters_are_few(whole, churn, margin, equal):
    """Of 5,000 items in 1,000 clusters, some of which change as a whole. By their squares alone .09 passed wrongly."""
    rng = np.random.default_rng(0)
    draws, sizes = 2000, rng.lognormal(0, 0 if equal else 1, 1000)
    sizes = np.full(1000, 5) if equal else 1 + rng.multinomial(4000, sizes / sizes.sum())
    cluster, share = np.arange(1000).repeat(sizes), np.full(5000, 1 / 5000)
    passed = failed = 0
    for _ in range(draws):
        together = (rng.random(1000) < whole)[cluster]
        lost = np.where(together, rng.random(1000)[cluster], rng.random(5000)) < churn
        effect = changed_effect((lost - lost.mean()) * share, share, cluster)
        n = 5000 / (effect * widening(degrees_of_freedom(sizes), 0.95) ** 2)
        passed += p_above(0, n * lost.mean(), n, -margin) <= 0.05
        failed += p_above(n * lost.mean(), 0, n, margin) <= 0.05
    for wrong in (passed, failed):
        assert wrong / draws <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / draws)


@pytest.mark.parametrize("graded", [False, True])
def test_one_cluster_shows_nothing(graded):
    rng = np.random.default_rng(0)
    scores = answers(("t", 40, 4, 12)).drop(columns="benchmark").assign(cluster="c")
    scores["score"] *= rng.random(len(scores)) if graded else 1
    (text,) = few_clusters_text(1)
    gate = gate_of(scores, margin=0.1)
    assert list(gate.answer.sentences) == [f"INCONCLUSIVE: there is no p-value ({text})"]
    assert gate.table["items_more"].isna().all()
    found = jaxeval.compare_scores(scores, "new", "old", margin=0.1)
    assert np.isnan([found.lower, found.upper, found.p_non_inferior, found.p_inferior]).all()
    assert found.status[1:] == (text,)
    assert jaxeval.compare_with_baseline(scores, "old")["flags"].tolist() == [text]


def equal_grades(n, **columns):
    grades = np.linspace(0.1, 0.9, n)
    table = pd.DataFrame({"item": range(n), "new": grades, "old": grades, **columns})
    return table.melt(["item", *columns], ["new", "old"], "model", "score")


def test_equal_grades_need_as_many_items_as_their_p_value_says():
    for n in (10, 40):
        gate = gate_of(equal_grades(n), margin=0.1)
        needed = n + gate.table["items_more"][0]
        assert gate.verdict == "INCONCLUSIVE"
        assert gate_of(equal_grades(needed), margin=0.1).verdict == "PASS"
        assert needed < 70  # 50 are open


@pytest.mark.parametrize("columns", [{"weight": np.linspace(1, 2, 20)}, {"cluster": np.arange(20) // 2}])
def test_no_p_value_of_equal_grades_is_above_1(columns):
    (row,) = gate_of(equal_grades(20, **columns), margin=0.1).table.to_dict("records")
    assert 0.05 < row["p_pass"] < row["p_fail"] == 1
    least = equal_grades(20, **columns).assign(score=lambda x: 5.0 * (x["model"] == "old"))
    assert gate_of(least, margin=0.1, bounds=(0, 5)).verdict == "FAIL"


def test_graded_scores_fail_and_pass():
    rng = np.random.default_rng(0)
    old = rng.uniform(0, 0.8, 400)
    for shift, verdict in ((0.05, "PASS"), (-0.1, "FAIL")):
        new = np.clip(old + shift + rng.normal(0, 0.05, 400), 0, 1)
        scores = pd.DataFrame({"item": range(400), "new": new, "old": old}).melt(
            "item", ["new", "old"], "model", "score"
        )
        assert gate_of(scores).verdict == verdict
        assert gate_of(scores, peek=True).verdict == verdict


def test_a_gate_of_tasks_fails_by_holm_and_passes_if_all_do():
    good, open_, bad = ("good", 500, 0, 0), ("open", 500, 5, 13), ("bad", 500, 0, 40)
    found = gate_of(answers(good, open_, bad))
    assert found.verdict == "FAIL"
    assert found.table.set_index("task")["verdict"].to_dict() == {
        "bad": "FAIL", "good": "PASS", "open": "INCONCLUSIVE"
    }  # fmt: skip
    assert found.table["p_fail_holm"].min() == pytest.approx(3 * found.table["p_fail"].min())
    assert "1 of 3 tasks: bad" in found.answer.sentences[0]
    assert gate_of(answers(good, open_)).verdict == "INCONCLUSIVE"
    near = [(f"near {k}", 500, 2, 5) for k in range(5)]  # p .02 each, which Holm's steps would leave open
    found = gate_of(answers(*near))
    assert found.verdict == "PASS"
    assert (found.table["p_pass_holm"] > 0.05).all()


def test_a_task_that_one_side_lacks_stays_open():
    scores = answers(("a", 500, 0, 0), ("b", 500, 0, 0))
    scores = scores[(scores["benchmark"] == "a") | (scores["model"] == "old")]
    found = gate_of(scores)
    assert found.verdict == "INCONCLUSIVE"
    assert "1 task cannot be compared: b (only old has it)" in found.warnings
    assert len(found.answer.sentences) == 1  # more items would not help


def test_as_many_items_more_decide():
    (row,) = gate_of(answers(("t", 500, 5, 13))).table.to_dict("records")
    n = 500 + row["items_more"]
    scaled = [round(x * n / 500) for x in (5, 13)]
    rng = np.random.default_rng(0)
    only_new, only_old, _ = rng.multinomial(n, [0.01, 0.026, 0.964], 300).T
    passed = np.mean([p_above(a, b, n, -0.02) <= 0.05 for a, b in zip(only_new, only_old, strict=True)])
    assert abs(passed - 0.8) < 0.1  # by a normal approximation
    assert gate_of(answers(("t", n, *scaled))).verdict == "PASS"
    at_margin = gate_of(answers(("t", 100, 0, 2)))
    assert at_margin.table["items_more"].isna().all()
    assert "no feasible number of items" in at_margin.answer.sentences[0]


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 1000])
def test_wrong_verdicts_are_few(n):
    """Of equal models that fail, and of models that are worse by the margin on every task and pass."""
    rng = np.random.default_rng(n)
    for churn in (0.0, 0.02, 0.05, 0.1):
        for tasks in (1, 20):
            draws = 200 // tasks
            for worse in (0.0, 0.02)[: 1 + (churn >= 0.02)]:
                shares = [(churn - worse) / 2, (churn + worse) / 2, 1 - churn]
                x = rng.multinomial(n, shares, (draws, tasks))[..., :2]
                verdicts = [gate_of(answers(*((f"t{k}", n, *own) for k, own in enumerate(data)))).verdict for data in x]
                wrong = np.mean([v == ("PASS" if worse else "FAIL") for v in verdicts])
                assert wrong <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / draws)


@pytest.mark.slow
def test_runs_of_one_judge_seldom_fail_beside_each_other(data):
    """Repeated runs of real judges are equal models: of each prompt, half of the runs are compared with the others."""
    runs = pd.read_parquet(data / "rb2_judge_k8_runs.parquet")
    names = [f"s{k}" for k in range(1, 9)]
    pairs = failed = 0
    for _, own in runs.groupby(["collection", "judge", "prompt_variant", "temperature"], dropna=False):
        best = own.groupby("item")[names].transform("max")
        chosen = own["is_chosen"].to_numpy() == 1
        right = (own[names] == best)[chosen].astype(float).assign(item=own["item"][chosen])
        table = right.melt("item", names, "model", "score")
        for a, b in zip(names[::2], names[1::2], strict=True):
            failed += jaxeval.score_gate(table, a, b, margin=0.02).verdict == "FAIL"
            pairs += 1
    assert pairs > 20
    assert failed <= 0.05 * pairs


class TestCommand:
    @pytest.fixture
    def file(self, tmp_path):
        path = tmp_path / "scores.csv"
        table = answers(("good", 500, 0, 0), ("<bad>", 500, 0, 40), ("open", 500, 5, 13), ("alone", 500, 0, 0))
        table[(table["benchmark"] != "alone") | (table["model"] == "old")].to_csv(path, index=False)
        return path

    def test_reports(self, file, tmp_path):
        names = {name: tmp_path / name for name in ("summary", "junit", "gate.json")}
        options = [f"--{name.split('.')[-1]}" for name in names]
        written = [x for pair in zip(options, names.values(), strict=True) for x in pair]
        said("compare-scores", "new", "old", file, "--margin", 0.02, "--gate", *written, code=1)
        gate = gate_of(pd.read_csv(file))
        summary = names["summary"].read_text()
        assert gate.answer.sentences[0].replace("<bad>", r"\<bad\>") in summary
        assert summary.count("| INCONCLUSIVE |") == 2
        suite = ElementTree.fromstring(names["junit"].read_text())
        assert suite.attrib == {"name": "jaxeval gate", "tests": "4", "failures": "1", "errors": "2"}
        assert "nan" not in names["junit"].read_text()
        assert {case.get("name"): [x.tag for x in case] for case in suite.iter("testcase")} == {
            "<bad>": ["failure"], "alone": ["error"], "good": [], "open": ["error"]
        }  # fmt: skip
        told = json.loads(names["gate.json"].read_text())
        assert told == gate.to_dict()
        assert (told["format"], told["version"], told["exit_code"]) == ("jaxeval gate", 1, 1)
        assert [row["items_more"] for row in told["tasks"]][:3] == [None] * 3

    def test_two_files_of_one_model_each(self, tmp_path):
        table = answers(("t", 500, 0, 0)).drop(columns="benchmark")
        for name, own in table.groupby("model"):
            own.drop(columns="model").to_csv(tmp_path / f"{name}.csv", index=False)
            (tmp_path / name).mkdir()
            own.assign(model="m").to_csv(tmp_path / name / "run.csv", index=False)
        files = tmp_path / "new.csv", tmp_path / "old.csv"
        assert "PASS: new is not worse than old" in said("compare-scores", *files, "--margin", 0.02, "--gate")
        assert "new and old are not told apart" in said("compare-scores", *files)
        folders = tmp_path / "new", tmp_path / "old"  # both of model m
        assert "m (new) is not worse than m (old)" in said("compare-scores", *folders, "--margin", 0.02, "--gate")
        table.to_csv(tmp_path / "both.csv", index=False)
        twice = run("compare-scores", files[0], files[0])
        assert "new.csv is named twice: name the results of two models, or of two runs" in twice.output
        refused = run("compare-scores", files[0], tmp_path / "both.csv")
        assert refused.exit_code == 1
        assert "both.csv has 2 models: new, old; name the two before the files" in refused.output

    def test_errors_are_no_verdict(self, file, tmp_path, monkeypatch):
        for arguments in (
            ["new", "x", file, "--margin", 0.1],
            ["new", "old", file, "--margin", 5],
            ["new", "old", tmp_path / "no.csv"],
            ["new", "old", file],
        ):
            assert run("compare-scores", *arguments, "--gate").exit_code == COULD_NOT_RUN
        refused = run("compare-scores", "new", "old", file, "--junit", "x.xml")
        assert refused.exit_code == 2
        assert "--junit needs --gate" in refused.output
        monkeypatch.setattr("jaxeval.scores.gate.score_gate", lambda *_, **options: 1 / 0)  # a defect
        broken = run("compare-scores", "new", "old", file, "--margin", 0.1, "--gate")
        assert broken.exit_code == COULD_NOT_RUN
        assert "ZeroDivisionError" in broken.output

    def test_a_reader_that_stops_changes_no_verdict(self, file):
        arguments = ["compare-scores", "new", "old", str(file), "--gate", "--margin", "0.1"]
        expected = run(*arguments).exit_code
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([sys.executable, "-m", "jaxeval", *arguments], stdout=write, check=False)
        os.close(write)
        assert done.returncode == expected


def test_bad_input():
    scores = answers(("t", 10, 1, 1))
    with pytest.raises(ValueError, match="margin"):
        gate_of(scores, margin=0)
    with pytest.raises(DataError, match="no model is called 'ne'"):
        jaxeval.score_gate(scores, "ne", "old", margin=0.1)
