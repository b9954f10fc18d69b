"""``--strata`` of every command that resamples."""

import numpy as np
import pytest
from command_line import run as command

from jaxeval import simulate_judged_answers, simulate_votes

ONE = "1 stratum of one {} does not vary in the resamples"


def run(*arguments):
    return command(*arguments, "--resamples", "5")


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    file = tmp_path_factory.mktemp("votes") / "votes.csv"
    table = simulate_votes(400, 5, seed=0)
    task = np.where(np.arange(400) == 0, "one", np.where(np.arange(400) % 2, "code", "law"))
    table.assign(task=task, pair=np.arange(400) // 2).to_csv(file, index=False)
    return file


@pytest.mark.slow
def test_leaderboard(votes):
    found = run("leaderboard", votes, "--strata", "task")
    assert found.exit_code == 0
    assert "5 multinomial resamples within task" in found.output
    assert ONE.format("battle") in " ".join(found.output.split())


@pytest.mark.parametrize(("options", "sentence"), [
    (["--strata", "task", "--scheme", "poisson"], "--strata fixes how many"),
    (["--strata", "tusk"], "no column 'tusk' in the table"),
    (["--strata", "task", "--cluster", "pair"], "200 clusters lie in several strata of 'task'"),
])  # fmt: skip
def test_errors(votes, options, sentence):
    found = run("leaderboard", votes, *options)
    assert found.exit_code != 0
    assert sentence in " ".join(found.output.split())


@pytest.mark.slow
def test_meta(votes):
    found = run("meta", "--votes", votes, "--strata", "task", "--budgets", "10", "--studies", "1")
    assert found.exit_code == 0
    assert ONE.format("battle") in " ".join(found.output.split())


@pytest.mark.slow
def test_judge(tmp_path):
    table = simulate_judged_answers([0.8, 0.6], q0=[[0.8]], q1=[[0.9]], n_items=200)
    table = table.assign(task=np.where(table["item"] == 0, "one", "rest"))
    for name, part in (("cal", table["item"] < 80), ("test", table["item"] >= 80)):
        table[part].to_csv(tmp_path / f"{name}.csv", index=False)
    files = "--calibration", tmp_path / "cal.csv", "--test", tmp_path / "test.csv"
    found = run("judge", *files, "--judgment", "judge-1", "--model", "model", "--item", "item", "--strata", "task")
    assert found.exit_code == 0
    assert ONE.format("calibration item") in " ".join(found.output.split())


def test_anchored(tmp_path):
    rows = [(m, j, i, r, "one" if i == 0 else "rest", "win" if (i * 7 + r * (i % 3 == 0) + m) % 3 else "loss")
            for m in range(2) for j in range(2) for i in range(30) for r in range(3)]  # fmt: skip
    file = tmp_path / "verdicts.csv"
    file.write_text("model,judge,item,run,task,verdict\n" + "\n".join(",".join(map(str, row)) for row in rows))
    found = run("anchored", file, "--strata", "task")
    assert found.exit_code == 0
    assert ONE.format("prompt") in " ".join(found.output.split())
    counts = tmp_path / "counts.csv"
    counts.write_text("model,wins,ties,losses\nx,3,1,2\n")
    assert "a table of counts has none" in " ".join(run("anchored", counts, "--strata", "task").output.split())


def test_only_ties_and_one_cluster_are_told(tmp_path):
    """With what to do."""
    path = tmp_path / "ties.csv"
    path.write_text("model_a,model_b,winner,voter\n" + "x,y,tie,joe\n" * 3)
    said = " ".join(run("leaderboard", path, "--cluster", "voter").output.split())
    assert "2 models have only ties, which do not show who would win: x, y" in said
    assert "all lies in one cluster" in said
    assert "on the command line --cluster" in said
    path.write_text("model_a,model_b,winner\nx,y,tie\nx,y,model_a\n")
    assert "only ties" not in run("leaderboard", path).output
