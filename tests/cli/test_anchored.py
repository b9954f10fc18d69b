"""The command ``jaxeval anchored``: verdicts and counts, the screen, and what it refuses."""

import json

import pandas as pd
import pytest
from command_line import run

from jaxeval import anchored_elo
from jaxeval.lab.simulate.verdicts import simulate_anchored_verdicts

pytestmark = pytest.mark.usefixtures("undrawn")


def anchored(*arguments):
    return run("anchored", *arguments)


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    path = tmp_path_factory.mktemp("anchored") / "verdicts.csv"
    frame = simulate_anchored_verdicts((1.0, 0.0, -0.5), 40, 4, 3, run_sd=(0.2, 0.3, 0.3, 3.0), seed=3)
    frame.drop(columns=["score", "reference_score"]).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    path = tmp_path_factory.mktemp("anchored") / "counts.csv"
    rows = [
        (m, a, w, 4, 96 - w) for a, shift in (("r", 0), ("s", 30)) for m, w in (("a", 60), ("b", 40), ("c", 9 + shift))
    ]
    pd.DataFrame(rows, columns=["name", "anchor", "wins", "ties", "losses"]).to_csv(path, index=False)
    return path


def test_verdicts_are_rated_screened_and_pooled(verdicts, tmp_path):
    result = anchored(verdicts, "--resamples", 20, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "1,440 rows: 1,440 verdicts; 3 models, 4 judges, 40 items, 3 runs" in result.output
    assert "(one anchor)" not in result.output.split("Reliability")[0]
    said = " ".join(result.output.split())
    assert "95% Beta intervals; those of the mean over judges are by the prompts' own variance; link logit" in said
    judges = pd.read_csv(tmp_path / "out" / "judges.csv", index_col="judge")
    assert not judges["strong"]["judge-4"]
    assert judges["strong"]["judge-1"]
    scores = pd.read_csv(tmp_path / "out" / "scores.csv")
    row = scores[(scores["model"] == "model-2") & (scores["judge"] == "judge-1")].iloc[0]
    expected = anchored_elo(row["wins"], row["ties"], row["losses"])
    assert row["rating"] == pytest.approx(expected.rating)
    assert row["rating_lower"] == pytest.approx(expected.rating_lower)
    pooled = pd.read_csv(tmp_path / "out" / "pooled.csv")
    assert list(pooled["n_judges"]) == [int(judges["strong"].sum())] * 3
    assert {"scores.png", "judges.png"} <= {path.name for path in (tmp_path / "out").iterdir()}


def test_one_run_says_that_reliability_cannot_be_told(verdicts, tmp_path):
    path = tmp_path / "one.csv"
    pd.read_csv(verdicts).query("run == 0").to_csv(path, index=False)
    result = anchored(path)
    assert result.exit_code == 0, result.output
    assert "one run only" in result.output
    assert "Reliability" not in result.output


def test_judges_that_are_strong_by_chance_are_unsure(verdicts, tmp_path):
    path = tmp_path / "few.csv"
    pd.read_csv(verdicts).query("item < 3").to_csv(path, index=False)
    assert "0 of 4 judges repeat themselves reliably; unsure: judge-" in anchored(path).output


def test_random_judges(verdicts, counts):
    result = anchored(verdicts, "--random", "judge", "--resamples", 20)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("for judges and items like these (")
    assert "Mean over the strong judges" not in result.output
    assert "--random is about single verdicts" in anchored(counts, "--model", "name", "--random", "judge").output
    assert "random must be one of" in anchored(verdicts, "--random", "nobody").output


def test_no_strong_judge(verdicts):
    result = anchored(verdicts, "--min-icc", 1, "--resamples", 20)
    assert result.exit_code == 0, result.output
    assert "no judge reaches an ICC(3,k) of 1" in result.output
    assert "Mean over the strong judges" not in result.output


def test_counts_under_two_references(counts, tmp_path):
    result = anchored(counts, "--model", "name", "--prior", 1, "--link", "probit", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "6 rows of counts" in result.output
    scores = pd.read_csv(tmp_path / "out" / "scores.csv")
    expected = anchored_elo(scores["wins"], scores["ties"], scores["losses"], prior=1.0, link="probit")
    assert scores["rating"].to_numpy() == pytest.approx(expected.rating)
    swap = pd.read_csv(tmp_path / "out" / "anchor_swap.csv")
    assert swap[["anchor_a", "anchor_b", "n_models"]].iloc[0].tolist() == ["r", "s", 3]
    assert swap["kendall"][0] == pytest.approx(1.0)
    assert "reference r: 67% of 3 probabilities lie in [0.2, 0.8]" in " ".join(result.output.split())
    assert (tmp_path / "out" / "anchor_swap.png").exists()


@pytest.mark.parametrize(("arguments", "message"), [
    (["--model", "nobody"], "no column 'nobody'"),
    (["--model", "name", "--run", "ties"], "--run has no meaning"),
    (["--model", "name", "--by-task"], "--by-task has no meaning"),
    (["--model", "name", "--missing", "drop"], "--missing drop has no meaning"),
    (["--model", "name", "--pool-size", "10"], "pool_size must be no less"),
])  # fmt: skip
def test_bad_input_is_one_message(counts, arguments, message):
    result = anchored(counts, *arguments)
    assert result.exit_code == 1
    assert message in result.output
    assert "Traceback" not in result.output


def test_missing_verdicts_need_a_policy(verdicts, tmp_path):
    path = tmp_path / "missing.csv"
    frame = pd.read_csv(verdicts)
    frame.loc[5, "verdict"] = None
    frame.to_csv(path, index=False)
    assert "has 1 missing value (first in row 5" in anchored(path).output
    result = anchored(path, "--missing", "drop", "--resamples", 20)
    assert result.exit_code == 0, result.output
    assert "1 missing verdict left out" in result.output


def test_counts_beside_verdicts_must_be_chosen(tmp_path):
    path = tmp_path / "both.csv"
    pd.DataFrame({"model": ["a", "a", "b"], "verdict": ["win", "loss", "tie"], "wins": 1, "losses": 2}).to_csv(path)
    result = anchored(path)
    assert result.exit_code == 1
    assert "both.csv has counts (columns 'wins' and 'losses') and a column 'verdict'" in result.output
    result = anchored(path, "--verdict", "verdict")
    assert result.exit_code == 0, result.output
    assert "3 rows: 3 verdicts; 2 models" in result.output


def test_tasks_apart(verdicts, tmp_path):
    path = tmp_path / "tasks.csv"
    frame = pd.read_csv(verdicts)
    frame.assign(task=frame["item"] % 2).to_csv(path, index=False)
    result = anchored(path, "--by-task", "--resamples", 20, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert len(pd.read_csv(tmp_path / "out" / "scores.csv")) == 3 * 4 * 2


def test_models_that_are_their_own_references(tmp_path):
    path = tmp_path / "own.csv"
    pd.DataFrame({"model": ["a"], "anchor": ["a"], "wins": [3], "losses": [2]}).to_csv(path)
    result = anchored(path)
    assert result.exit_code == 0, result.output
    assert "every model here is its own reference" in " ".join(result.output.split())


def table_of(output, title):
    """Header and rows of a printed table, in words."""
    lines = output.split(title, 1)[1].splitlines()[1:]
    rows = [line.split() for line in lines[: lines.index("")]]
    return rows[0], rows[1:]


def test_ties_and_the_number_of_prompts_are_shown(verdicts, counts):
    header, rows = table_of(anchored(verdicts, "--resamples", 20).output, "Ratings above the reference")
    assert header == ["Model", "Rating", "+/-", "Judge", "Probability", "Wins", "Ties", "Losses", "N"]
    assert rows[0][-1] == "40"
    header, rows = table_of(anchored(counts, "--model", "name").output, "Ratings above the reference")
    assert header == ["Model", "Rating", "+/-", "Anchor", "Probability", "Wins", "Ties", "Losses", "N"]
    assert rows[0][0] == "a"
    assert rows[0][-4:] == ["60", "4", "36", "100"]


def test_references_without_a_judge_in_common(verdicts, tmp_path):
    path = tmp_path / "apart.csv"
    frame = pd.read_csv(verdicts)
    pd.concat([frame.assign(anchor="x"), frame.assign(anchor="y", judge=frame["judge"] + "-y")]).to_csv(
        path, index=False
    )
    result = anchored(path, "--resamples", 20, "--full", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    assert "no figure of the references against each other: no two references have a model in common" in said
    assert "references x and y have no model in common by the same judges and tasks" in said
    assert "nan" not in said
    assert not (tmp_path / "out" / "anchor_swap.png").exists()


def test_verdicts_of_several_models_without_their_names(verdicts, tmp_path):
    path = tmp_path / "nobody.csv"
    pd.read_csv(verdicts).drop(columns="model").to_csv(path, index=False)
    result = anchored(path)
    assert result.exit_code == 1
    said = " ".join(result.output.split())
    assert "(first in row 480: judge 'judge-1', item '0', run 0; rows count from 0)" in said
    assert "name the column of models with model= (on the command line --model), or drop the duplicates" in said
    pd.read_csv(verdicts).drop(columns="item").to_csv(path, index=False)
    assert "name it with item= (on the command line --item)" in " ".join(anchored(path).output.split())


def test_what_judges_printed_and_tables_beside_the_scores(tmp_path):
    frame = simulate_anchored_verdicts(n_items=20, n_judges=2, n_runs=2, run_sd=0.3, seed=1)
    letter = frame["verdict"].map({"win": "B", "tie": "C", "loss": "A"})
    said = frame.drop(columns=["verdict", "score", "reference_score"]).assign(
        output=[json.dumps({"score": s, "confidence": 0.8}) for s in letter]
    )
    said.to_json(tmp_path / "said.jsonl", orient="records", lines=True)
    frame.to_csv(tmp_path / "verdicts.csv", index=False)
    unsaid = anchored(tmp_path / "said.jsonl", "--resamples", 20)
    assert unsaid.exit_code == 1
    assert "nothing says which side is the reference" in unsaid.output
    options = ("--resamples", 20, "--out")
    first = anchored(tmp_path / "said.jsonl", "--reference", "A", "--min-confidence", 0.7, *options, tmp_path / "a")
    second = anchored(tmp_path / "verdicts.csv", *options, tmp_path / "b", "--full")
    assert (first.exit_code, second.exit_code) == (0, 0), first.output + second.output
    for name in ("scores", "kappas", "summary", "prior"):
        assert (tmp_path / "a" / f"{name}.csv").read_text() == (tmp_path / "b" / f"{name}.csv").read_text()
    assert "Direct and anchored scores, with and without such answers" in second.stdout
    assert {"guarded", "dispersion", "direct_agreement"} <= {file.stem for file in (tmp_path / "b").glob("*.csv")}


def test_labels(verdicts, counts, tmp_path):
    frame = pd.read_csv(verdicts).query("run == 0 and item < 20")
    frame.to_csv(tmp_path / "plain.csv", index=False)
    frame.assign(verdict=frame["verdict"].map({"win": "good", "tie": "same", "loss": "bad"})).to_csv(
        tmp_path / "words.csv", index=False
    )
    words = anchored(tmp_path / "words.csv", "--labels", "good=win,bad=loss,same=tie", "--resamples", 20, "--out", "-")
    plain = anchored(tmp_path / "plain.csv", "--resamples", 20, "--out", "-")
    assert words.exit_code == 0, words.output
    assert words.stdout == plain.stdout
    assert "so --labels has no meaning" in anchored(counts, "--model", "name", "--labels", "a_wins_1").output
