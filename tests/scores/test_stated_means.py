"""Means and errors that lm-evaluation-harness states, beside those of the samples that it wrote."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from command_line import said

from jaxeval import read_scores
from jaxeval.data.score_files import stated_means
from jaxeval.scores.score_leaderboard import beside_stated

LOGS = Path(__file__).parents[1] / "data" / "logs" / "lm_eval"


def test_errors_are_those_that_are_stated():
    found = beside_stated(read_scores(LOGS, score="acc"), stated_means(LOGS), "acc")
    assert found[["model", "benchmark"]].to_numpy().tolist() == [
        [f"acme/m{m}", task] for m in (1, 2) for task in ("colours", "numbers")
    ]
    np.testing.assert_allclose(found["score"], found["stated_score"])
    np.testing.assert_allclose(found["standard_error"], found["stated_standard_error"])
    assert (found["n_items"] == 8).all()


def test_groups_weigh_tasks_by_their_items(tmp_path):
    folder = shutil.copytree(LOGS, tmp_path / "logs")
    for path in folder.rglob("results_*.json"):
        document = json.loads(path.read_text())
        mean = np.mean([document["results"][task]["acc,none"] for task in ("colours", "numbers")])
        document["groups"] = {"both": {"acc,none": mean, "acc_stderr,none": 0.125}}
        document["group_subtasks"] = {"both": ["inner"], "inner": ["colours", "numbers"], "colours": []}
        path.write_text(json.dumps(document))
    scores = read_scores(folder, score="acc")
    found = beside_stated(scores, stated_means(folder), "acc,exact_match").set_index(["model", "benchmark"])
    values = scores.scores[:, 0, scores.models.get_loc("acme/m2")]
    row = found.loc[("acme/m2", "both")]
    assert row["score"] == pytest.approx(row["stated_score"]) == pytest.approx(values.mean())
    assert row["standard_error"] == pytest.approx(values.std(ddof=1) / np.sqrt(16))
    assert (row["stated_standard_error"], row["n_items"]) == (0.125, 16)


def test_command():
    printed = said("scores", LOGS, "--score", "acc", "--resamples", 20, "--full")
    assert "Stated standard error" in printed
    assert printed.count("colours") == 2
    assert stated_means(next((LOGS / "acme__m1").glob("samples_c*"))) is None
