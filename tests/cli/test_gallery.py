"""Files as benchmarks, harnesses and platforms publish them, through the command: the contract of the gallery."""

import json
import shlex
from pathlib import Path

import gallery
import numpy as np
import pytest
from command_line import run

LOGS = Path(__file__).parents[1] / "data" / "logs"
JSON = ("--resamples", "20", "--out", "-", "--format", "json")
#: The command that `jaxeval FILE` proposes first, the competitors, and how many votes or items there are.
CONTRACT = {
    "AlpacaEval, old": ("leaderboard", ["alpha", "base", "beta", "gamma"], 72),
    "AlpacaEval, weighted": ("leaderboard", ["alpha", "base", "beta", "gamma"], 72),
    "MT-bench, pairs": ("leaderboard", ["alpha", "beta", "gamma"], 72),
    "MT-bench, single": ("leaderboard", ["alpha", "beta", "gamma"], 72),
    "MT-bench, people": ("leaderboard", ["alpha", "beta", "gamma"], 72),
    "Arena-Hard v0.1": ("leaderboard", ["alpha", "base", "beta", "gamma"], 144),
    "Arena-Hard v2": ("leaderboard", ["alpha", "base", "beta", "gamma"], 144),
    "WildVision": ("leaderboard", ["alpha", "base", "beta", "gamma"], 72),
    "WildBench, pairs": ("leaderboard", ["alpha", "base"], 24),
    "WildBench, scores": ("scores", ["alpha"], 24),
    "JudgeBench": ("scores", ["judge-m"], 24),
    "LLMBar": ("scores", ["GPT-4, Swap"], 24),
    "RewardBench 2": ("scores", ["acme/reward-1"], 24),
    "PandaLM": ("leaderboard", ["bloom-7b", "llama-7b", "opt-7b"], 216),
    "ComparIA": ("leaderboard", ["alpha", "beta", "gamma"], 72),
    "METR": ("horizons", ["alpha", "beta", "gamma"], 72),
    "HELM": ("scores", ["acme/alpha"], 24),
    "promptfoo": ("scores", ["openai:alpha", "openai:beta", "openai:gamma"], 24),
    "MLflow": ("scores", ["m-1"], 24),
    "leaderbot": ("leaderboard", ["alpha", "beta", "gamma"], 72),
    "lm-evaluation-harness": ("scores", ["acme/m1", "acme/m2"], None),
    "Inspect": ("scores", None, None),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    made = gallery.written(tmp_path_factory.mktemp("gallery"))
    return made | {"lm-evaluation-harness": LOGS / "lm_eval", "Inspect": LOGS / "inspect"}


def lines(*words):
    """The lines that are proposed, with the blanks of the gallery filled."""
    found = run(*words)
    assert found.exit_code == 0, found.output
    typed = [shlex.split(line)[1:] for line in found.output.splitlines() if line.startswith("  jaxeval ")]
    return [["base" if word == "BASELINE" else word for word in line] for line in typed]


def table(*words):
    found = run(*words, *JSON)
    assert found.exit_code == 0, (words, found.output)
    return json.loads(found.stdout)["rows"]


@pytest.mark.parametrize("name", CONTRACT)
def test_the_command_that_is_proposed_reads_them(name, files):
    command, competitors, n = CONTRACT[name]
    proposed = lines(files[name])
    line = next(words for words in proposed if words[0] == command)
    assert line is proposed[0] or name == "MT-bench, people"
    assert not [word for word in line if "doc." in word]  # a field of samples is no metric
    rows = table(*line)
    names = [row.get("model", row.get("agent")) for row in rows]
    if competitors is not None:
        assert sorted({*names}) == competitors
    if n is not None and command == "leaderboard":
        assert sum(row["vote_count"] for row in rows) == 2 * n
    if n is not None and command == "scores":
        assert {row["n_items"] for row in rows} == {n}


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTRACT)
def test_every_line_that_is_proposed_runs(name, files):
    for words in lines(files[name]):
        found = run(*words, *([] if words[0] in ("next", "compare-scores") else ["--resamples", "20"]))
        assert found.exit_code == 0, (words, found.output)


def test_the_judgments_are_those_that_were_written(files):
    """Each format against its own rows."""
    written = json.loads(files["leaderbot"].read_text())
    pairs = dict(zip(map(tuple, written["X"]), written["Y"], strict=True))
    votes = {row["model"]: row["vote_count"] for row in table("leaderboard", files["leaderbot"])}
    assert votes["beta"] == sum(sum(counts) for pair, counts in pairs.items() if 1 in pair)

    judged = [json.loads(line) for line in files["JudgeBench"].read_text().splitlines()]
    flipped = {"A>B": "B>A", "B>A": "A>B"}
    right = [
        sum(
            (x == row["label"]) - (x != row["label"])
            for x in (row["judgments"][0]["decision"], flipped[row["judgments"][1]["decision"]])
        )
        > 0
        for row in judged
    ]
    (row,) = table("scores", files["JudgeBench"])
    assert row["score"] == pytest.approx(np.mean(right), abs=1e-12)

    (row,) = table("scores", files["LLMBar"])
    judged = json.loads(files["LLMBar"].read_text())
    right = [int(said["winner"]) == one["label"] for one in judged for said in one["results"].values()]
    assert row["score"] == pytest.approx(np.mean(right), abs=1e-12)

    (row,) = table("scores", files["RewardBench 2"])
    assert row["score"] == pytest.approx(np.mean(json.loads(files["RewardBench 2"].read_text())["results"]), abs=1e-12)


def test_a_folder_of_runs_of_helm(files):
    rows = table("scores", files["HELM"].parents[1])
    assert [row["model"] for row in rows] == ["acme/alpha", "acme/beta"]
    told = run("scores", files["HELM"].parents[1], "--resamples", "20").output
    assert "scores of HELM are its exact_match" in told
    assert table("scores", files["HELM"], "--score", "num_references")[0]["score"] == pytest.approx(4)


def test_a_model_that_all_others_met_is_asked_for(files):
    found = run("leaderboard", files["WildVision"])
    assert found.exit_code == 1
    assert "name it with baseline= (--baseline)" in found.stderr


def test_runs_of_promptfoo_that_ended_in_an_error(files, tmp_path):
    written = json.loads(files["promptfoo"].read_text())
    written["results"]["results"][0] |= {"failureReason": 2, "score": 0, "error": "timeout"}
    (tmp_path / "results.json").write_text(json.dumps(written))
    found = run("scores", tmp_path / "results.json")
    assert found.exit_code == 1
    assert "missing" in found.stderr
    assert len(table("scores", tmp_path / "results.json", "--missing", "available")) == 3


@pytest.mark.parametrize("name", ["AlpacaEval, weighted", "Arena-Hard v2", "Arena-Hard v0.1"])
def test_files_with_a_reference_are_anchored(name, files):
    more = ("--baseline", "base") if name.endswith("v0.1") else ()
    rows = table("anchored", files[name], *more)
    assert {"alpha", "beta", "gamma"} <= {row["model"] for row in rows}


@pytest.mark.parametrize("name", ["AlpacaEval, old", "Arena-Hard v2"])
def test_the_same_judgments_in_two_files_count_once(name, files, tmp_path):
    copy = tmp_path / f"copy{files[name].suffix}"
    copy.write_bytes(files[name].read_bytes())
    found = run("leaderboard", files[name], copy, "--resamples", "20")
    assert found.exit_code == 1
    assert f"{copy.name} has the same 72 rows as {files[name].name}: they would count twice" in found.stderr
