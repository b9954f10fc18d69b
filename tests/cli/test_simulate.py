"""Example files: they are the simulations, alike between kinds, and every command reads its own."""

import json

import numpy as np
import pandas as pd
import pytest
from command_line import run as command

import jaxeval
from jaxeval.cli.simulate import KINDS


def run(*arguments):
    result = command(*arguments)
    assert result.exit_code == 0, result.output
    return result


def read(path):
    readers = {".csv": pd.read_csv, ".parquet": pd.read_parquet, ".jsonl": lambda path: pd.read_json(path, lines=True)}
    return readers[path.suffix](path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All kinds, of 300 battles or items."""
    folder = tmp_path_factory.mktemp("examples")
    run("simulate", "all", "--battles", 300, "--models", 7, "--out", folder / "new")
    return folder / "new"


def test_all_kinds_are_written(folder):
    assert {path.stem for path in folder.iterdir()} == set(KINDS)
    assert all(path.suffix == KINDS[path.stem].ending for path in folder.iterdir())
    assert all(len(read(path)) for path in folder.iterdir())


def test_the_same_seed_writes_the_same_files(folder, tmp_path):
    run("simulate", "all", "--battles", 300, "--models", 7, "--out", tmp_path)
    assert all((tmp_path / path.name).read_bytes() == path.read_bytes() for path in folder.iterdir())
    run("simulate", "all", "--battles", 300, "--models", 7, "--seed", 1, "--out", tmp_path)
    same = {path.stem for path in folder.iterdir() if (tmp_path / path.name).read_bytes() == path.read_bytes()}
    assert same == {"families"}


def repeated(line):
    """A line much like one that is shown for such a file, or of a command that `test_look` or `test_soft_elo` runs."""
    return pytest.param(line, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    "arguments",
    [
        repeated("leaderboard votes.parquet --resamples 20 --features length_a:length_b"),
        "leaderboard votes.parquet --judged verdicts.parquet --item prompt --resamples 20",
        "audit votes.parquet --parts board,who_votes,drift --voter voter --time time --lengths length_a:length_b "
        "--families families.csv --resamples 20",
        "next votes.parquet --k 20",
        repeated("agreement judges.csv --human human,expert --judges judge-1,judge-2,judge-3 --resamples 20"),
        repeated("panel panel.parquet --resamples 20"),
        repeated("agreement replies.jsonl --resamples 20"),
        repeated("soft-elo merge judged.csv --new new.csv --level 0.8 --resamples 20"),
        repeated("judge --calibration labelled.csv --test answers.csv --judgment judge-1 --judgment judge-2 "
                 "--model model --item item --resamples 20"),
        repeated("anchored anchored.csv --resamples 20"),
        repeated("meta evaluators.csv --gold arena --resamples 20"),
        repeated("rankings rankings.csv --resamples 20"),
        repeated("scores scores.csv --cluster passage --resamples 20"),
    ],
)  # fmt: skip
def test_commands_read_them_as_they_are(folder, monkeypatch, arguments):
    monkeypatch.chdir(folder)
    assert run(*arguments.split(), "--out", "-").output


def test_verdicts_are_of_the_votes_and_of_other_battles(folder):
    key = ["prompt", "model_a", "model_b"]
    votes, verdicts = (read(folder / f"{name}.parquet").astype({"model_a": str, "model_b": str})
                       for name in ("votes", "verdicts"))  # fmt: skip
    assert len(verdicts) == 11 * len(votes)
    pairs = pd.DataFrame(np.sort(verdicts[["model_a", "model_b"]].to_numpy(), axis=1), columns=["x", "y"])
    assert not pairs.assign(prompt=verdicts["prompt"]).duplicated().any()
    both = votes.merge(verdicts, on=key, suffixes=("", "_judge"))
    assert len(both) == len(votes)
    # .6 are repeated, and some of the others agree by chance
    agree = (both["winner"].astype(str) == both["winner_judge"].astype(str)).mean()
    assert 0.65 < agree < 0.9


def test_a_new_model_is_in_no_labelled_battle(folder):
    judged, new = read(folder / "judged.csv"), read(folder / "new.csv")
    assert (new[["model_a", "model_b"]] == "new-model").sum(axis=1).eq(1).all()
    assert "new-model" not in {*judged["model_a"], *judged["model_b"]}
    assert "human" not in new
    assert len(judged) + len(new) == 600  # both orders
    assert set(judged["item"]).isdisjoint(new["item"])


def test_labelled_answers_are_of_other_items(folder):
    labelled, answers = read(folder / "labelled.csv"), read(folder / "answers.csv")
    assert set(labelled["item"]) == set(range(60))
    assert set(answers["item"]) == set(range(60, 300))
    assert "human" not in answers


def test_votes_without_a_kind(tmp_path):
    """As ever."""
    for arguments, over in (([], ""), (["votes"], ", in place of an older file")):
        told = run("simulate", *arguments, "--battles", 50, "--models", 4, "--out", tmp_path / "x.csv")
        assert told.stderr == f"wrote 50 votes between 4 models to {tmp_path / 'x.csv'}{over}\n"
        expected = jaxeval.simulate_votes(50, 4)
        found = pd.read_csv(tmp_path / "x.csv")
        assert found[expected.columns].astype(str).equals(expected.astype(str))
    lines = tmp_path / "x.jsonl"
    run("simulate", "--battles", 5, "--out", lines)
    assert len([json.loads(line) for line in lines.read_text().splitlines()]) == 5


def test_votes_on_a_plan(folder, tmp_path):
    plan = tmp_path / "plan"
    run("next", folder / "votes.parquet", "--k", 400, "--out", plan)
    each = pd.read_csv(plan / "each.csv")
    run("simulate", "--of", plan / "each.csv", "--models", 7, "--ties", 0, "--out", tmp_path / "more.csv")
    more = pd.read_csv(tmp_path / "more.csv")
    pd.testing.assert_frame_equal(more[each.columns], each)
    strengths = jaxeval.simulate_strengths(7)
    p = 1 / (1 + np.exp(strengths[more["model_b"]].to_numpy() - strengths[more["model_a"]].to_numpy()))
    won = (more["winner"] == "model_a").sum()
    assert abs(won - p.sum()) < 4 * np.sqrt((p * (1 - p)).sum())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["votes", "scores", "--out", "x.csv"], "is one file, and votes, scores are several: name a folder"),
        (["votez", "--out", "x.csv"], "'votez' is not one of"),
        (["--out", "x.txt"], "must end in .parquet, .csv, .jsonl"),
        (["scores", "--of", "{plan}", "--out", "x.csv"], "--of is for votes"),
        (["--of", "{plan}", "--battles", "3", "--out", "x.csv"], "leave other KINDs and --battles out"),
        (["--of", "{plan}", "--out", "{plan}"], "would be lost"),
        (["--of", "{plan}", "--models", "4", "--out", "x.csv"], "'model-1x' is no simulated model; did you mean"),
        (["--of", "{other}", "--out", "x.csv"], "no column 'model_a' in the table; its columns are a"),
    ],
)  # fmt: skip
def test_what_cannot_be_written(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = {"plan": tmp_path / "plan.csv", "other": tmp_path / "other.csv"}
    files["plan"].write_text("model_a,model_b\nmodel-1x,model-2\n")
    files["other"].write_text("a\n1\n")
    result = command("simulate", *(text.format(**files) for text in arguments))
    assert result.exit_code in (1, 2)
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "x.csv").exists()
