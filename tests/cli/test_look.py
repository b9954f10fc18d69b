"""``jaxeval FILE``: which commands fit a file. Every line that is shown must run."""

import json
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from arena_votes import arena_votes
from click.shell_completion import BashComplete
from command_line import run as command

import jaxeval
from jaxeval.capability.columns import by_benchmark
from jaxeval.cli import file_uses
from jaxeval.cli.file_uses import uses_of
from jaxeval.cli.main import main
from jaxeval.data import found_columns
from jaxeval.data.formats import Head

#: Kinds of `jaxeval simulate`, and the commands whose lines their files must get, the first one first.
KINDS = {
    "votes": ["leaderboard", "leaderboard", "audit", "next"],
    "verdicts": ["leaderboard", "leaderboard", "audit", "next"],
    "judges": ["agreement", "panel", "leaderboard"],
    "panel": ["panel", "leaderboard"],
    "replies": ["soft-elo", "agreement", "panel"],
    "judged": ["soft-elo", "panel"],
    "new": ["panel", "leaderboard"],
    "labelled": ["judge"],
    "answers": ["judge"],
    "families": ["audit", "agreement"],
    "anchored": ["anchored"],
    "evaluators": ["meta"],
    "rankings": ["rankings"],
    "scores": ["scores", "compare-scores"],
}
#: Commands that take many seconds for any file.
LONG = ("audit", "soft-elo")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("example files")  # a space, which lines must quote
    found = command("simulate", "all", "--battles", "150", "--models", "4", "--out", path)
    assert found.exit_code == 0, found.output
    return path


def looked_at(*paths):
    found = command(*paths)
    assert found.exit_code == 0, found.output
    return found.output


def lines(text):
    """The lines to type, as words without the program's name."""
    return [shlex.split(line)[1:] for line in text.splitlines() if line.startswith("  jaxeval ")]


def test_a_long_file_that_begins_with_one_judge(tmp_path):
    """Its first rows cannot tell how many there are."""
    verdicts = jaxeval.simulate_judges(1_200, 4, seed=0)[["item", "model_a", "model_b", "judge-1", "judge-2"]]
    rows = verdicts.melt(["item", "model_a", "model_b"], var_name="judge", value_name="verdict")
    rows.to_csv(tmp_path / "long.csv", index=False)
    found = lines(looked_at(tmp_path / "long.csv"))
    assert found[0] == ["panel", str(tmp_path / "long.csv")]
    rows[:900].to_csv(tmp_path / "one.csv", index=False)
    assert lines(looked_at(tmp_path / "one.csv"))[0][0] == "leaderboard"


def test_a_gap_below_the_first_rows_leaves_scores_numbers(tmp_path):
    rows = [f"m{k // 600},i{k % 600},{k % 3 / 2}" for k in range(1_200)]
    (tmp_path / "scores.csv").write_text("\n".join(["model,item,score", *rows, "m1,i600,NA"]))
    assert [words[0] for words in lines(looked_at(tmp_path / "scores.csv"))] == ["scores", "compare-scores"]


def test_rows_below_the_first_ones_count(tmp_path):
    """Of a table of ordinary size; what they lack, and what they repeat."""
    rows = [(m, i, (i * k) % 5 // 3) for k, m in enumerate("xyz", 1) for i in range(500)]
    full = pd.DataFrame(rows, columns=["model", "item", "score"])
    path = file_of(tmp_path, full)
    assert lines(looked_at(path))[0] == ["scores", str(path)]
    path = file_of(tmp_path, full[:-1])
    assert lines(looked_at(path))[0] == ["scores", str(path), "--missing", "available"]
    path = file_of(tmp_path, pd.concat([full, full[-1:]]))
    assert "correct it first: rows repeat a model and an item" in looked_at(path)
    human = full.rename(columns={"score": "grader"}).assign(human=np.where(full["item"] < 9, full["item"] % 2, np.nan))
    assert "correct it first" not in looked_at(file_of(tmp_path, human))
    assert "correct it first" in looked_at(file_of(tmp_path, pd.concat([human, human[-1:]])))
    path = file_of(tmp_path, pd.concat([full.assign(judge=j, version=v) for j in ("j1", "j2") for v in (1, 2)]))
    assert lines(looked_at(path))[0] == ["scores", str(path), "--where", "judge = 'j1' AND version = 1"]
    wide = pd.DataFrame({"item": [f"i{k}" for k in range(1_200)], "x": 0.5, "y": 0.25})
    assert lines(looked_at(file_of(tmp_path, wide)))[0] == ["scores", str(path), "--wide"]
    wide.loc[1_100, "y"], wide.loc[1_199, "item"] = np.nan, "Average"
    found = looked_at(file_of(tmp_path, wide))
    assert lines(found)[0][-2:] == ["--missing", "available"]
    assert "correct it first: 'Average' in 'item' seems to sum up other rows" in found


def test_no_leaderboard_for_each_of_very_many_groups(tmp_path):
    votes = jaxeval.simulate_votes(1_500, 4, seed=0)[["model_a", "model_b", "winner"]]
    for last, options in (("en", [["--by", "language"]]), (None, [])):
        language = [("de", "en")[k % 2] if k < 1_000 else last or f"l{k}" for k in range(1_500)]
        found = lines(looked_at(file_of(tmp_path, votes.assign(language=language))))
        assert [words[2:] for words in found if "--by" in words] == options


def test_runs_of_langsmith_are_scored_by_feedback(tmp_path):
    """Their status says whether they ended."""
    rows = [f"r{k},why?,success,{k % 2},{k % 3}" for k in range(9)]
    head = "id,inputs.question,status,feedback.correctness,feedback.brevity"
    (tmp_path / "runs.csv").write_text("\n".join([head, *rows]))
    shown = looked_at(tmp_path / "runs.csv")
    assert lines(shown) == [["scores", str(tmp_path / "runs.csv"), "--item", "id", "--score", "feedback.correctness"]]
    assert "'feedback.brevity': further scores" in shown


def test_many_judges_are_voters(tmp_path):
    rows = [{"model_a": "x", "model_b": "y", "winner": "tie", "judge": f"arena_user_{k % 30}"} for k in range(60)]
    (tmp_path / "battles.json").write_text(json.dumps(rows))
    board, audit, _ = lines(looked_at(tmp_path / "battles.json"))
    assert board[2:] == ["--cluster", "judge"]
    assert audit[2:] == ["--voter", "judge"]


def of_kind(folder, kind):
    return next(folder.glob(f"{kind}.*"))


def runs(words):
    few = [] if words[0] in ("next", "compare-scores", "error-budget") else ["--resamples", "20"]
    found = command(*words, *few)
    assert found.exit_code == 0, (words, found.output)
    return found.output


def test_sides_are_looked_for_once(monkeypatch):
    asked, look = [], found_columns.sides_of
    for module in (found_columns, file_uses):
        monkeypatch.setattr(module, "sides_of", lambda frame: asked.append(frame) or look(frame))
    votes = jaxeval.simulate_votes(40, 4, seed=0)
    uses = uses_of(Head("CSV", [*votes], votes))
    assert uses[0].words[0] == "leaderboard"
    assert len(asked) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_commands_that_fit(folder, kind):
    found = lines(looked_at(of_kind(folder, kind)))
    assert [words[0] for words in found][: len(KINDS[kind])] == KINDS[kind]


def others(words, folder):
    """Files in place of those that a line leaves open."""
    names = {"OTHER_FILE": "answers", "LABELLED_FILE": "labelled", "VERDICTS_FILE": "replies"}
    return [str(of_kind(folder, names[word])) if word in names else word for word in words]


def quick_lines(folder):
    """Lines of all files in two halves: of each command with the same options the first one, and those that repeat it.

    What is written after a name is not of an option: files, columns and values.
    """
    first, again = {}, []
    for kind in KINDS:
        for words in lines(looked_at(of_kind(folder, kind))):
            if words[0] not in LONG:
                key = (words[0], *(word for word in words if word.startswith("--")))
                if first.setdefault(key, words) is not words:
                    again.append(words)
    return list(first.values()), again


@pytest.mark.slow
def test_every_line_runs(folder):
    found, _ = quick_lines(folder)
    assert {words[0] for words in found} >= {name for names in KINDS.values() for name in names} - {*LONG}
    for words in found:
        runs(others(words, folder))


@pytest.mark.slow
def test_lines_run_on_every_kind_of_file(folder):
    _, found = quick_lines(folder)
    for words in found:
        runs(others(words, folder))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["votes", "judges", "replies", "judged"])
def test_every_long_line_runs(folder, kind):
    for words in lines(looked_at(of_kind(folder, kind))):
        if words[0] in LONG:
            runs(words)


def file_of(tmp_path, table, name="file.csv"):
    table.to_csv(tmp_path / name, index=False)
    return tmp_path / name


def test_other_names_of_columns(tmp_path):
    rng = np.random.default_rng(0)
    teams = np.array(["Ajax", "Feyenoord", "PSV"])
    a, b = rng.integers(0, 3, (2, 60))
    goals = rng.integers(0, 4, (2, 60))
    table = pd.DataFrame({"home_team": teams[a], "away_team": teams[b], "home_score": goals[0], "away_score": goals[1]})
    path = file_of(tmp_path, table[a != b])
    first = lines(looked_at(path))[0]
    assert first == ["leaderboard", str(path), "--model-a", "home_team", "--model-b", "away_team",
                     "--scores", "home_score:away_score"]  # fmt: skip
    runs(first)


@pytest.mark.parametrize(
    "sides", [("TEAM1", "TEAM2"), ("playerX", "playerY"), ("Home", "Away"), ("left-team", "right-team")]
)
def test_names_of_two_sides(tmp_path, sides):
    table = pd.DataFrame({sides[0]: list("pqr"), sides[1]: list("qrp"), "winner": ["p", "q", "r"]})
    path = file_of(tmp_path, table)
    assert lines(looked_at(path))[0][:6] == ["leaderboard", str(path), "--model-a", sides[0], "--model-b", sides[1]]


def test_labels_of_some_answers(tmp_path):
    table = jaxeval.simulate_judged_answers([0.8, 0.6], q0=[[0.8]], q1=[[0.9]], n_items=120)
    table.loc[table["item"] > 60, "human"] = np.nan
    path = file_of(tmp_path, table)
    words, beside = lines(looked_at(path))
    assert words == ["scores", str(path), "--score", "judge-1", "--human", "human"]
    runs(words)
    assert beside == ["agreement", str(path)]
    runs([*beside, "--resamples", "20"])


@pytest.mark.parametrize("kind", ["answers", "labelled"])
def test_models_are_kept_apart(folder, tmp_path, kind):
    """In the line, and by the command that it names."""
    path = of_kind(folder, kind)
    words, *beside = lines(looked_at(path))
    assert [line[0] for line in beside] == (["agreement"] if kind == "labelled" else [])
    assert words[-4:] == ["--model", "model", "--item", "item"]
    runs([*others(words, folder), "--out", str(tmp_path / "out.csv")])
    assert set(pd.read_csv(tmp_path / "out.csv")["model"]) == set(pd.read_csv(path)["model"])


def test_judges_and_runs_in_rows_are_named(folder, tmp_path):
    answers = pd.read_csv(of_kind(folder, "answers"))
    rows = answers.melt(["item", "model"], ["judge-1", "judge-2"], "judge", "judgment")
    path = file_of(tmp_path, pd.concat([rows.assign(run=run) for run in (1, 2)]))
    (words,) = lines(looked_at(path))
    assert words[words.index("--model") :] == ["--model", "model", "--item", "item", "--judge", "judge", "--run", "run"]


def test_experts_are_people(folder, tmp_path):
    path = of_kind(folder, "judges")
    agreement, panel, *_ = lines(looked_at(path))
    judges = ["--judges", "judge-1,judge-2,judge-3"]
    assert agreement == ["agreement", str(path), "--human", "human,expert", *judges]
    assert panel == ["panel", str(path), *judges]
    table = pd.read_csv(path).rename(columns={"judge-1": "Annotator 1", "judge-2": "annotator_2"})
    path = file_of(tmp_path, table)
    first, second, *_ = lines(looked_at(path))
    people = "human,expert,Annotator 1,annotator_2"
    assert first == ["agreement", str(path), "--human", people, "--judges", "judge-3"]
    assert second[0] == "leaderboard"  # a panel has several judges
    runs(first)


def test_a_column_for_labels_that_is_empty(folder, tmp_path):
    path = file_of(tmp_path, pd.read_csv(of_kind(folder, "answers")).assign(human=None))
    (words,) = lines(looked_at(path))
    assert words[:5] == ["judge", "--calibration", "LABELLED_FILE", "--test", str(path)]
    runs(others(words, folder))


@pytest.mark.parametrize("word", ["t", "success"])
def test_one_word_alone_is_no_judgment(tmp_path, word):
    """A topic "t" is no truth."""
    rows = [{"system": s, "id": i, "acc": (i + k) % 2, "topic": word} for i in range(20) for k, s in enumerate("xyz")]
    assert "--judgment topic" not in looked_at(file_of(tmp_path, pd.DataFrame(rows)))


NOTHING = "Its columns do not say which command fits."
RATINGS = np.random.default_rng(0).integers(0, 2, (30, 4))


@pytest.mark.parametrize(("columns", "commands", "said"), [
    # Scores of evaluators with numbers in their names are no two sides.
    ({"model": [*"abcd"], "gold": [1.0, 2, 3, 4], "e1": [3, 7, 8, 9], "e2": [9, 8, 7, 3]}, ["meta"], "'e1', 'e2'"),
    ({"item": range(30), "human": RATINGS[:, 0], "judge_1": RATINGS[:, 1], "judge_2": RATINGS[:, 2]},
     ["judge", "agreement"], "human labels in 'human'"),
    ({"model": [*"xyz"], "mmlu": [0.5, 0.6, 0.7], "gsm8k": [0.4, 0.7, 0.6]}, ["index"],
     "found: a row for each 'model', and benchmarks in 'mmlu', 'gsm8k'"),
    # What is the same of all answers to an item is no judgment.
    ({"model": [*"xyz"] * 12, "item": np.repeat(range(12), 3), "hard": np.repeat(range(12), 3) % 2,
      "lexical": (np.repeat(range(12), 3) + np.tile(range(3), 12)) % 2,
      "human": (np.repeat(range(12), 3) < 9) & (np.tile(range(3), 12) > 0)}, ["judge"],
     "found: judgments in 'lexical', human labels in 'human'"),
    ({"first": [*"xyxz"], "second": [*"yxzx"], "third": [*"zzyy"]}, [], ""),  # places are no results
    ({"model_a": ["x", "y"], "model_b": ["y", "x"], "score": [1.5, -0.5]}, [], NOTHING),  # scores without items
    # Runs of one model are no models, and no benchmarks or evaluators of them.
    ({"item": range(30), **{f"run{k}": RATINGS[:, k] for k in range(3)}}, [],
     "'run0', 'run1', 'run2' seem to be runs of one model: write a row for each"),
    ({"model": [*"wxyz"], **{f"seed_{k}": [0.2, 0.5, 0.4, 0.1 * k] for k in range(3)}}, [], "seem to be runs of one"),
    ({"model": np.repeat(["x run 1", "x run 2", "y"], 10), "item": [*range(10)] * 3, "score": RATINGS[:, 0]},
     ["scores"], "correct it first: 'x run 1' and 'x run 2' seem to be runs of one model"),
    ({"model": np.repeat([*"xyz"], 10), "seed": [0, 1] * 15, "task": np.tile(np.repeat(range(5), 2), 3),
      "accuracy": np.arange(30) / 30}, ["scores"], "--item task --score accuracy --trial seed"),
    # What sums up others is no item, and no model.
    ({"item": [*"abcdefgh", "Total"], "x": [*RATINGS[:8, 0], 5], "y": [*RATINGS[:8, 1], 4]}, ["scores"],
     "correct it first: 'Total' in 'item' seems to sum up other rows: drop it"),
    ({"item": range(30), "x": RATINGS[:, 0], "y": RATINGS[:, 1], "Average": RATINGS[:, :2].mean(1)}, ["scores"],
     "a column of scores for each of 'x' and 'y'; not taken as models: 'Average'"),
    ({"model": [*"xxyy", None], "item": [1, 2, 1, 2, None], "score": [1, 0, 0, 1, None]}, ["scores"],
     "correct it first: a row has no value in 'model'"),
    ({"Modell": np.repeat([*"xyz"], 10), "Frage": [*range(10)] * 3, "Richtig": ["ja", "nein", "nein"] * 10}, ["scores"],
     "--model Modell --item Frage --score Richtig"),
    ({"Modell": np.repeat([*"xyz"], 10), "Frage": [*range(10)] * 3, "Note": np.arange(30) % 11 / 2 + 1}, ["scores"],
     "note: more is taken as better: of grades of which 1 is the best, write 7 - Note first"),
    ({"Datum": range(6), "Heim": [*"xyzxyz"], "Gast": [*"yzxzxy"], "Tore Heim": [*range(6)], "Tore Gast": [1] * 6},
     ["leaderboard"], "scores in 'Tore Heim' and 'Tore Gast': the larger wins"),
    ({"Heim": [*"xyzxyz"], "Gast": [*"yzxzxy"], "Ergebnis": ["2:1", "0:0", "1:3"] * 2}, [],
     "'Ergebnis' holds points of both sides, as '2:1': write two columns"),
    ({"rater": range(6), **{m: np.roll([1, 2, 3] * 2, k) for k, m in enumerate("xyz")}}, ["rankings"], "ranks of"),
    # Rates do not say of how many.
    ({"model_a": [*"xxy"], "model_b": [*"yzz"], "win_rate": ["40%", "55%", "60%"]}, [],
     "multiply it by their number, for counts, as model_a,model_b,wins_a,ties,wins_b"),
    # Ratings of two models are no raters.
    ({"item": range(30), **{f"{name}_rater{k}": RATINGS[:, k + j] for j, name in ((0, "gpt"), (2, "claude"))
                            for k in (0, 1)}}, [], NOTHING),
])  # fmt: skip
def test_what_is_said_of_a_table(columns, commands, said, tmp_path):
    text = looked_at(file_of(tmp_path, pd.DataFrame(columns)))
    assert [line[0] for line in lines(text)][: len(commands) or None] == commands
    assert said in text


@pytest.mark.parametrize(("text", "command", "said"), [
    ("model_a,model_b,wins_a,ties,wins_b\na,b,3,1,2\na,c,4,x,1\nb,c,2,2,2\n", "leaderboard",
     "column 'ties' is not numeric"),
    ("model_a,model_b,winner\nx,y,A\ny,z,b?\nx,z,B\nx,z,c?\ny,z,?\nx,z,-+\n", "leaderboard",
     "column 'winner' has unknown labels"),
    ("model,item,score\nx,1,40%\ny,1,0.5\n", "scores", "column 'score' is not numeric"),
])  # fmt: skip
def test_a_bad_value_is_corrected_first(text, command, said, tmp_path):
    """And no column of counts is taken for results."""
    path = tmp_path / "file.csv"
    path.write_text(text)
    found = looked_at(path)
    assert lines(found) == [[command, str(path)]]
    assert f"correct it first: {said}" in found


def test_prompts_that_are_lists(tmp_path):
    path = tmp_path / "chat.jsonl"
    said = [{"prompt": [{"role": "user", "content": f"{k}"}], "id": k, "model": "m", "score": k % 2} for k in range(9)]
    path.write_text("\n".join(map(json.dumps, said)))
    assert lines(looked_at(path))[0] == ["scores", str(path), "--item", "id"]
    path.write_text("\n".join(json.dumps({**row, "id": row["prompt"], "model": row["prompt"]}) for row in said))
    assert "Its columns do not say which command fits." in looked_at(path)


def test_two_files_of_votes_can_be_compared(folder, tmp_path):
    votes = pd.read_parquet(of_kind(folder, "votes"))
    paths = [file_of(tmp_path, half, f"{k}.csv") for k, half in enumerate((votes.iloc[::2], votes.iloc[1::2]))]
    first = lines(looked_at(*paths))[0]
    assert first == ["compare-boards", *map(str, paths), "--cluster", "voter"]
    runs(first)


def test_voters_are_resampled_whole_where_they_vote_more_than_once(folder, tmp_path):
    votes = pd.read_parquet(of_kind(folder, "votes"))
    once = votes.assign(voter=[f"v{k}" for k in range(len(votes))])
    for table, options in ((votes, ["--cluster", "voter"]), (once, []), (votes.assign(voter="v"), [])):
        path = file_of(tmp_path, table, "votes.csv")
        assert lines(looked_at(path))[0] == ["leaderboard", str(path), *options]


def test_both_of_two_files_are_looked_at(folder, tmp_path):
    votes, scores = of_kind(folder, "votes"), of_kind(folder, "scores")
    text = looked_at(votes, scores)
    assert lines(text) == []
    assert f"{scores}: CSV, " in text
    assert "The two files differ in their columns, and no line fits both: look at each by itself." in text
    one, two = (file_of(tmp_path, pd.read_parquet(votes), f"{k}.csv") for k in (1, 2))
    file_of(tmp_path, pd.read_parquet(votes).assign(winner=None), "2.csv")
    assert lines(looked_at(one, two))[0][0] == "leaderboard"  # the second has no results to compare
    file_of(tmp_path, pd.read_parquet(votes).drop(columns="language"), "2.csv")
    found = lines(looked_at(one, two))
    assert found[0] == ["compare-boards", str(one), str(two), "--cluster", "voter"]
    assert not any("--by" in words for words in found)


def test_labelled_answers_go_with_others(folder):
    labelled, answers = of_kind(folder, "labelled"), of_kind(folder, "answers")
    for files in ((labelled, answers), (answers, labelled)):
        (words,) = lines(looked_at(*files))
        assert words[:5] == ["judge", "--calibration", str(labelled), "--test", str(answers)]
    runs(words)


def test_results_of_football_matches(tmp_path):
    rng = np.random.default_rng(0)
    home, away = rng.permuted(np.tile(list("pqr"), (60, 1)), axis=1)[:, :2].T
    table = {"Date": "14/08/2021", "HomeTeam": home, "AwayTeam": away, "HTR": rng.choice(list("HDA"), 60)}
    path = file_of(tmp_path, pd.DataFrame({**table, "FTR": rng.choice(list("HDA"), 60)}))
    first = lines(looked_at(path))[0]
    assert first == ["leaderboard", str(path), "--model-a", "HomeTeam", "--model-b", "AwayTeam", "--winner", "FTR"]
    runs(first)


def test_a_folder_is_looked_at_by_its_first_file(folder, tmp_path):
    votes = pd.read_parquet(of_kind(folder, "votes"))
    for k in range(2):
        votes.iloc[k::2].to_parquet(tmp_path / f"{k}.parquet")
    text = looked_at(tmp_path)
    assert "the first of 2 files; the others are taken to be like it" in text
    runs(lines(text)[0])


def test_files_that_jaxeval_writes(tmp_path):
    battles = jaxeval.simulate_battles(300, 3, seed=0)
    battles.save(tmp_path / "state.parquet")
    result = jaxeval.bootstrap(battles, n_resamples=20, progress=False)
    jaxeval.save_draws(result.joint, tmp_path / "draws.npz")
    line, added = lines(looked_at(tmp_path / "state.parquet"))
    runs(line)
    assert added[:3] == ["leaderboard", "NEW_FILE", "--state"]
    text = looked_at(tmp_path / "draws.npz")
    (line, *_) = [line.strip() for line in text.splitlines() if line.startswith("  python ")]
    option, code = shlex.split(line)[1:]
    assert option == "-c"
    printed = StringIO()
    with redirect_stdout(printed):
        exec(compile(code, "line", "exec"), {})  # as a process of its own would, without names of this file
    assert "model-1" in printed.getvalue()


def test_columns_that_tell_nothing(tmp_path):
    text = looked_at(file_of(tmp_path, pd.DataFrame({"x": [1.5, 2.5], "y": ["p", "q"]})))
    assert "Its columns do not say which command fits. What each of them reads:" in text
    for name in ("leaderboard", "rankings", "judge", "scores"):
        assert f"\n  {name} " in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model_a,model_b,winner\n", "The table has no rows: nothing to rate."),
        ("model_a,model_b,winner\nx,y,\ny,x,\n", "There are no results: 'winner' is empty in 2 rows."),
        ("home_team,away_team,home_goals,away_goals\nx,y,,\n",
         "There are no results: 'home_goals' and 'away_goals' are empty in 1 row."),
        ("item,model,judgment\n" + "1,x,\n" * 1001,
         "There are no results: 'judgment' is empty in the first 1,000 rows."),
        ("model,accuracy,n\nx,.5,10\ny,.6,10\nz,.7,10\n",
         "There is one number for each model, in 'accuracy': nothing says how sure it is. With a row for each model "
         "and item (model,item,score), jaxeval scores tells models apart; with a column for each benchmark, jaxeval "
         "index puts them on one scale."),
        ("model,win,loss,tie\nx,5,2,1\ny,3,3,1\nz,1,4,0\n",
         "It has how often each model won and lost in all, in 'win', 'loss', 'tie', and not against whom: write a "
         "row for each pair, as model_a,model_b,wins_a,ties,wins_b."),
        ("model,rating,user\nx,5,u1\nx,3,u2\ny,4,u1\n",
         "There are scores in 'rating' of models in 'model', and no column says of which item (a prompt, a question, a "
         "task). Models can be compared where they did the same: add a column item, as in model,item,score."),
    ],
)  # fmt: skip
def test_files_without_results(tmp_path, text, said):
    (tmp_path / "file.csv").write_text(text)
    assert looked_at(tmp_path / "file.csv").splitlines()[2:] == [said]


@pytest.mark.parametrize(("items", "ids", "rank", "options"), [
    ("item", "ranking", "rank", []),
    ("player", "ranking", "rank", ["--item", "player"]),
    ("Driver", "race", "Position", ["--item", "Driver", "--rank", "Position", "--ranking", "race"]),
    ("model", "item", "rank", ["--item", "model", "--ranking", "item"]),
    ("model", "query", "rank", ["--item", "model", "--ranking", "query"]),
    ("system", "question", "place", ["--item", "system", "--rank", "place", "--ranking", "question"]),
    ("model", "prompt_id", "Rank", ["--item", "model", "--rank", "Rank", "--ranking", "prompt_id"]),
])  # fmt: skip
def test_rankings_of_anything(tmp_path, items, ids, rank, options):
    """A position beside a score is the order of what was shown."""
    ranks = np.concatenate([np.random.default_rng(k).permutation(4) for k in range(30)]) + 1
    table = pd.DataFrame({ids: np.repeat(np.arange(30), 4), items: np.tile(list("pqrs"), 30), rank: ranks})
    path = file_of(tmp_path, table)
    text = looked_at(path)
    assert lines(text)[0] == ["rankings", str(path), *options]
    assert ("the order in which answers were shown" in text) == (rank == "Position")
    assert f"say it so: jaxeval {shlex.join(lines(text)[0])}\n" in command("rankings", path).output or not options
    found = command("leaderboard", path, "--resamples", 20)
    rated = "these files are rated by another command" in found.output
    assert rated == (not found.exit_code) == (rank != "Position")
    if rated:
        assert f"now: jaxeval rankings {path} --resamples 20 {shlex.join(options)}".rstrip() in found.output
    else:
        runs(lines(text)[0])
    path = file_of(tmp_path, table.assign(score=np.linspace(0, 1, 120)))
    assert ("jaxeval rankings" in looked_at(path)) == (rank not in ("Position", "place"))


def test_a_leaderboard_of_two_models_holds_no_judgments(tmp_path):
    table = pd.DataFrame({"model": ["x", "y"], "rating": [1010.5, 989.5], "tier": [1, 1], "preliminary": [True, False]})
    assert "judge --calibration" not in looked_at(file_of(tmp_path, table))


@pytest.mark.parametrize("column", ["epoch", "fold", "truncated", "open_weights"])
def test_a_column_of_two_numbers_is_no_judgment_by_itself(tmp_path, column):
    """Nor a judge's label, where it says which run or fold a row is of; beside labels, other words may be a judge's."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"model": np.repeat(["a", "b"], 40), "item": [*range(40)] * 2, column: rng.integers(0, 2, 80)})
    assert "judge --calibration" not in command(file_of(tmp_path, table)).output
    table["human"] = rng.integers(0, 2, 80)
    text = command(file_of(tmp_path, table)).output
    may_be = column in ("truncated", "open_weights")
    assert ("judge --calibration" in text) == ("jaxeval agreement " in text) == may_be


def test_names_are_input(tmp_path):
    table = pd.DataFrame({"model_a": ["a", "b"] * 4, "model_b": ["b", "a"] * 4, "winner": ["model_a", "tie"] * 4})
    table["$(touch owned)\x1b[31m"] = 1
    path = tmp_path / "votes; touch owned.csv"
    table.to_csv(path, index=False)
    text = looked_at(path)
    assert "\x1b" not in text
    assert lines(text)[0] == ["leaderboard", str(path)]


@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe garbage", b"[]", b"{}", b"not a table"])
def test_what_cannot_be_read_is_one_message(tmp_path, content):
    for ending in ("csv", "json", "jsonl", "parquet"):
        path = tmp_path / f"file.{ending}"
        path.write_bytes(content)
        found = command(path)
        assert found.exit_code in (0, 1), found.output
        assert found.exception is None or isinstance(found.exception, SystemExit), found.exception


def test_large_files_are_read_at_their_heads(tmp_path):
    """A line that no reader takes stands far below what is looked at."""
    row = json.dumps({"model_a": "a", "model_b": "b", "winner": "model_a"})
    back = json.dumps({"model_a": "b", "model_b": "a", "winner": "model_a"})
    path = tmp_path / "votes.jsonl"
    path.write_text(f"{row}\n{back}\n" * 100_000 + "no json\n")
    assert lines(looked_at(path))[0] == ["leaderboard", str(path)]


def refused(*words):
    found = command(*words)
    assert found.exit_code == 2, found.output
    return found.stderr


def test_a_path_that_leads_nowhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "votes.csv").write_text("")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "games.csv").write_text("")
    (tmp_path / "broken").symlink_to("gone")
    for text, said in {
        "votess.csv": "There is no file 'votess.csv'; did you mean 'votes.csv'?",
        "sub/game.csv": "There is no file 'game.csv' in 'sub'; did you mean 'games.csv'?",
        "sup/game.csv": "There is no folder 'sup'",
        "none*.csv": "There is no file 'none*.csv', and none that matches it",
        "broken": "'broken' is a link to 'gone', which does not exist",
        "foo": "There is no command 'foo'",
    }.items():
        assert refused(text).splitlines()[-1] == f"Error: {said}"


def test_options_belong_to_commands(tmp_path):
    path = file_of(tmp_path, pd.DataFrame({"x": [1]}), "two words.csv")
    text = refused(path, "--out", "x")
    assert "No such option '--out': a file without a command is only looked at." in text
    (line,) = [line for line in text.splitlines() if line.startswith("Try ")]
    shown = shlex.split(line.removeprefix("Try '").removesuffix("' for help."))
    assert shown[1:] == [str(path), "--help"]
    assert "which commands fit it" in looked_at(*shown[1:])


def test_files_of_the_arena(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "arena.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in arena_votes(120)))
    found = lines(looked_at(path))
    for more in (["--by", "category_tag"], ["--style", "arena"], ["--html", "board.html"]):
        words = ["leaderboard", str(path), *more]
        assert words in found
        runs(words)
    assert (tmp_path / "board.html").stat().st_size > 0


def test_annotations_of_which_some_lack_a_preference(tmp_path):
    rows = [{"generator_1": "x", "generator_2": "y", "preference": value} for value in (1, 2, None, 1.5)]
    path = file_of(tmp_path, pd.DataFrame(rows))
    assert "annotations without a preference are left out" in looked_at(path)
    assert "4 rows: 3 battles" in run_first(path)[1]


def test_people_are_no_judges(tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.permuted(np.tile(list("pqr"), (60, 1)), axis=1)[:, :2].T
    table = pd.DataFrame({"model_a": a, "model_b": b, "winner": rng.choice(["model_a", "model_b"], 60)})
    people = table.assign(judge=[f"expert_{k % 5}" for k in range(60)])
    users = table.assign(judge=[f"arena_user_{k % 5}" for k in range(60)])
    columns = table.drop(columns="winner").assign(
        **{f"annotator_{k}": rng.choice(["model_a", "model_b"], 60) for k in (1, 2)}
    )
    assert lines(looked_at(file_of(tmp_path, users)))[0][2:] == ["--cluster", "judge"]
    for frame in (people, users, columns):
        found = lines(looked_at(file_of(tmp_path, frame)))
        # Where each person labelled each battle, a panel stacks the columns, and resamples battles whole.
        assert [words[0] for words in found] == (
            ["panel", "agreement"] if frame is columns else ["leaderboard", "audit", "next"]
        )
        # What follows from the columns of users is what follows from those of experts; the next test runs a panel.
        for words in found if frame is people else found[1:] if frame is columns else ():
            if words[0] not in LONG:
                runs(words)


@pytest.mark.parametrize(("names", "values", "beside"), [
    (["annotator_1", "annotator_2", "annotator_3"], ["model_a", "model_b"], []),
    (["Rater A", "Rater B"], ["left", "right"], []),
    (["annotator_1_winner", "annotator_2_winner"], ["A", "B"], ["majority"]),
    (["human1", "human2", "human3"], [1, 2], []),
])  # fmt: skip
def test_votes_of_several_people_in_columns_are_stacked(names, values, beside, tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.permuted(np.tile(list("pqr"), (60, 1)), axis=1)[:, :2].T
    table = pd.DataFrame({"system_1": a, "system_2": b, **{name: rng.choice(values, 60) for name in names + beside}})
    path = file_of(tmp_path, table)
    panel, agreement, *more = lines(looked_at(path))
    coding = ["--labels", "1=model_a,2=model_b,0=tie"] if values == [1, 2] else []
    sides = ["--model-a", "system_1", "--model-b", "system_2"]
    assert panel == ["panel", str(path), *sides, "--judges", ",".join(names), *coding]
    assert agreement[4:] == ["--model-b", "system_2", "--human", ",".join(names[1:]), "--judges", names[0], *coding]
    assert {words[-1] for words in more if words[0] == "leaderboard"} == {*beside}
    if coding:  # a panel's programs take seconds to compile
        assert f"typical judge of {', '.join(names)}" in command(*panel, "--resamples", 20).output


def test_what_does_not_count_of_votes_is_told(tmp_path):
    votes = pd.DataFrame({"id": range(20), "model_a": [*"xy"] * 10, "model_b": [*"yz"] * 10, "winner": ["A", "B"] * 10})
    assert "note:" not in looked_at(file_of(tmp_path, votes))
    told = looked_at(file_of(tmp_path, votes.assign(weight=votes["id"] / 10, order=["ab", "ab", "ba", "ba"] * 5)))
    assert "'weight' does not count: say --weight weight if it should" in told
    assert "'order' does not count: results are taken to be about 'model_a' and 'model_b', whichever" in told
    doubled = pd.concat([votes, votes.head(3)])
    assert "note: 3 rows repeat another in all columns, 'id' too: drop copies" in looked_at(file_of(tmp_path, doubled))
    assert "repeat" not in looked_at(file_of(tmp_path, doubled.drop(columns="id")))


def test_what_is_known_of_models_is_no_evaluator(tmp_path):
    """Neither a rank nor a cost says how good a model is, beside its score."""
    board = pd.DataFrame({"Rank": [1, 2, 3, 4], "Model": [*"wxyz"], "Arena Elo": [1100, 1050, 1000, 900]})
    for frame in (board, board.rename(columns={"Rank": "cost"}), board.assign(rating_q025=[1, 2, 3, 4])):
        assert "There is one number for each model, in 'Arena Elo'" in looked_at(file_of(tmp_path, frame))
    # Two of the models have both.
    frame = board.drop(columns="Rank").assign(MMLU=[0.8, 0.7, None, None], GSM=[0.9, 0.5, 0.6, 0.4])
    found = looked_at(file_of(tmp_path, frame))
    assert "scores in 'GSM'\n" in found


def test_shares_with_decimal_commas(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("Model;MMLU;GSM8K\na;53,2 %;71 %\nb;45,4 %;60 %\nc;60,5 %;75,5 %\n")
    assert lines(looked_at(path))[0] == ["index", str(path), "--model", "Model"]
    names = {"model": "Model", "benchmark": None, "score": None}
    long, _ = by_benchmark(pd.read_csv(path, sep=";"), names)  # as the command reads it
    np.testing.assert_allclose(long["score"], [0.532, 0.454, 0.605, 0.71, 0.6, 0.755])


def test_winners_and_losers_in_german(tmp_path):
    found = lines(looked_at(file_of(tmp_path, pd.DataFrame({"Sieger": [*"xyx"], "Verlierer": [*"yxz"]}))))
    assert found[0][2:] == ["--winner-model", "Sieger", "--loser-model", "Verlierer"]


def test_a_word_among_scores_that_is_none_is_told(tmp_path):
    grades = pd.DataFrame({"question": range(6), "grade": ["CORRECT", "INCORRECT", "NOT_ATTEMPTED"] * 2})
    told = looked_at(file_of(tmp_path, grades))
    assert "note: correct it first: column 'grade' holds 'NOT_ATTEMPTED' beside 'CORRECT', 'INCORRECT'" in told
    instructed = pd.DataFrame({"prompt": range(6), "follow_all_instructions": [True, False, True] * 2})
    assert lines(looked_at(file_of(tmp_path, instructed)))[0][2:] == [
        "--item", "prompt", "--score", "follow_all_instructions",
    ]  # fmt: skip


def test_a_look_with_a_condition_says_nothing_else(tmp_path):
    """DuckDB, which reads conditions, has nothing to complain of at the end of the process."""
    rows = pd.DataFrame({"model": [*"xxyy"], "item": [1, 1, 1, 1], "metric": ["f1", "em"] * 2, "score": range(4)})
    path = file_of(tmp_path, rows)
    done = subprocess.run([sys.executable, "-m", "jaxeval", path], capture_output=True, text=True, check=True)
    assert "--where" in done.stdout
    assert done.stderr == ""


def test_long_scores_may_have_gaps_below_the_first_rows(tmp_path):
    rows = pd.DataFrame({"model": np.repeat([*"xyz"], 400), "item": np.tile(range(400), 3), "score": 1.0})
    path = file_of(tmp_path, rows[:-1])
    found = looked_at(path)
    assert lines(found)[0] == ["scores", str(path), "--missing", "available"]
    assert "a model that lacks items is scored on those it has" in found
    assert not command(*lines(found)[0]).exit_code


def test_what_judges_printed_is_no_label(tmp_path):
    votes = pd.DataFrame({"model_a": [*"xy"] * 10, "model_b": [*"yz"] * 10})
    for replies in (['{"winner": "A"}', '{"winner": "B"}'], ["My verdict is: [[A]]", "My verdict is: [[B]]"]):
        found = lines(looked_at(file_of(tmp_path, votes.assign(reply=replies * 10))))
        assert [words[0] for words in found] == ["panel"]
    found = lines(looked_at(file_of(tmp_path, votes.assign(a_is_better=["yes", "no"] * 10))))
    assert found[0][2:] == ["--winner", "a_is_better", "--labels", "yes=SIDE,no=SIDE"]


def test_tables_that_no_line_of_scores_fits(tmp_path):
    rows = [{"model": m, "question": k, "score": k / 4} for m in "xy" for k in range(3)]
    scores = pd.DataFrame(rows)
    assert not lines(looked_at(file_of(tmp_path, scores[scores["question"] == 1])))
    total = pd.concat([scores, pd.DataFrame([{"model": "Total"}])])
    assert "correct it first: a row has no value in 'question'" in looked_at(file_of(tmp_path, total))
    fractions = scores.assign(score=[f"{k % 3}/4" for k in range(6)])
    assert "'0/4' (first in row 0; rows count from 0): write 0 for 0/4" in looked_at(file_of(tmp_path, fractions))
    judged = pd.DataFrame({"item": range(9), "judge_1": [1, 4, 2] * 3, "judge_2": [2, 5, 2] * 3})
    assert "scores" not in [words[0] for words in lines(looked_at(file_of(tmp_path, judged)))]
    liked = judged.rename(columns={"item": "participant", "judge_1": "x", "judge_2": "y"})
    assert lines(looked_at(file_of(tmp_path, liked)))[0][2:] == ["--wide", "--item", "participant"]


def test_what_is_no_table_is_said(tmp_path):
    for text, said in (
        ("version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12\n", "It is a pointer of Git LFS"),
        ("<!DOCTYPE html>\n<html></html>\n", "It is a page of HTML, and no table"),
    ):
        (tmp_path / "votes.csv").write_text(text)
        assert said in looked_at(tmp_path / "votes.csv")


def test_several_columns_of_scores(tmp_path):
    table = pd.DataFrame({"model": [*"xxyy"], "item": [1, 2] * 2, "rouge": [0.5, 0.25] * 2, "bleu": [0.75, 0.5] * 2})
    found = looked_at(file_of(tmp_path, table))
    assert lines(found)[0][2:] == ["--score", "rouge"]
    assert "'rouge' is taken as the score: name another by --score, 'bleu'" in found
    counts = pd.DataFrame({"judge": [0, 0, 1, 1], "human": [0, 1, 0, 1], "count": [30, 5, 8, 57]})
    assert "correct it first: 'count' does not count here: write a row for each" in looked_at(file_of(tmp_path, counts))


def test_words_for_the_sides(tmp_path):
    votes = pd.DataFrame(
        {"Model A": [*"xyz"] * 4, "Model B": [*"yzx"] * 4, "who won": ["Model A", "Model B", "tie"] * 4}
    )
    (first, *_) = lines(looked_at(file_of(tmp_path, votes)))
    assert first[2:] == ["--winner", "who won"]
    assert not command(*first, "--resamples", 20).exit_code
    verdicts = votes.assign(**{"who won": ["[[A]]", "[[B]]", "[[C]]"] * 4})
    assert lines(looked_at(file_of(tmp_path, verdicts)))[0][-1] == "[[A]]=model_a,[[B]]=model_b,[[C]]=tie"


def test_whole_answers_are_no_models(tmp_path):
    said = [f"It is {k % 4}." for k in range(40)]
    frame = pd.DataFrame({"question": range(40), "answer_a": said, "answer_b": said[::-1], "winner": ["A", "B"] * 20})
    assert not [words for words in lines(looked_at(file_of(tmp_path, frame))) if "--model-a" in words]


def test_help_is_a_word_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert looked_at("help") == looked_at("--help")
    assert looked_at("help", "rankings") == looked_at("rankings", "--help")
    (tmp_path / "help").write_text("model_a,model_b,winner\nx,y,tie\n")
    assert "help: CSV, 3 columns" in looked_at("help")


@pytest.mark.parametrize(
    ("typed", "found"),
    [("leaderboard {} --by ", {"model_a", "model_b", "winner", "two words", "topic"}),
     ("leaderboard {} --cluster to", {"topic"}),
     ("leaderboard --resamples 20 {} --winner wi", {"winner"}),
     ("scores {} --item t", {"two words", "topic"}),
     ("leaderboard {} --scores model_a:t", {"model_a:two words", "model_a:topic"}),
     ("leaderboard none.csv --by ", set())],
)  # fmt: skip
def test_the_shell_completes_names_of_columns(typed, found, tmp_path):
    path = file_of(
        tmp_path, pd.DataFrame({"model_a": ["x"], "model_b": "y", "winner": "tie", "two words": 1, "topic": 2})
    )
    before, _, last = typed.rpartition(" ")
    words = shlex.split(before.format(path))
    shell = BashComplete(main, {}, "jaxeval", "_JAXEVAL_COMPLETE")
    assert {item.value for item in shell.get_completions(words, last)} == found


def run_first(path):
    """The first line that is shown of a file, and what it prints."""
    line = lines(looked_at(path))[0]
    return line, runs(line)


@pytest.mark.parametrize(("text", "words"), [
    ("model_a,model_b,wins_a,wins_b\nx,y,3,1\ny,z,2,2\nx,z,4,1\n", []),
    ("Model A,Model B,A wins,Draws,B wins\nx,y,3,0,1\ny,z,2,1,2\nx,z,4,1,1\n", []),
    ("model_a,model_b,score\nx,y,1\ny,z,0.5\nx,z,0\n", ["--winner", "score", "--labels", "a_wins_1"]),
    ("model_a,model_b,a_wins\nx,y,True\ny,z,False\nz,x,True\n", ["--winner", "a_wins", "--labels", "a_wins_1"]),
    ("model_a,model_b,result\nx,y,1\ny,z,0\nx,z,-1\n",
     ["--winner", "result", "--labels", "1=model_a,-1=model_b,0=tie"]),
    ("model_a,model_b,verdict\nx,y,A is clearly better\ny,z,Tie\nx,z,A slightly better\n", ["--winner", "verdict"]),
    ("prompt,chosen_model,rejected_model\n1,x,y\n2,x,z\n3,y,z\n",
     ["--winner-model", "chosen_model", "--loser-model", "rejected_model"]),
])  # fmt: skip
def test_results_as_people_write_them(tmp_path, text, words):
    (tmp_path / "votes.csv").write_text(text)
    line, printed = run_first(tmp_path / "votes.csv")
    assert line == ["leaderboard", str(tmp_path / "votes.csv"), *words]
    assert "3 rows: " in printed


@pytest.mark.parametrize(("text", "words"), [
    ("model,question,rating\nx,1,5\nx,2,4\ny,1,3\ny,2,1\n", ["--item", "question", "--score", "rating"]),
    ("model,task,passed\nx,1,True\nx,2,True\ny,1,False\ny,2,True\n", ["--item", "task", "--score", "passed"]),
    ("model,task_id,passed\nx,1,1\nx,2,1\ny,1,0\ny,2,1\n", ["--item", "task_id", "--score", "passed"]),
    ("model,test,status\nx,1,pass\nx,2,fail\ny,1,fail\ny,2,fail\n", ["--item", "test", "--score", "status"]),
])  # fmt: skip
def test_scores_as_people_call_them(tmp_path, text, words):
    (tmp_path / "scores.csv").write_text(text)
    line, printed = run_first(tmp_path / "scores.csv")
    assert line == ["scores", str(tmp_path / "scores.csv"), *words]
    assert printed.startswith("x is first")


@pytest.mark.parametrize(("text", "said"), [
    ("x,y,A\nx,z,B\ny,z,A\nx,y,A\nz,x,B\nz,y,A\ny,x,A\n", "The first line seems to be no header, but a row: 'x', 'y',"),
    (",x,y\nx,,3\ny,1,\n", "It is a table of models by models: write a row for each pair"),
])  # fmt: skip
def test_tables_that_are_no_votes(tmp_path, text, said):
    """The first vote was the header, and the numbers were scores, without a word."""
    path = tmp_path / "votes.csv"
    path.write_text(text)
    assert said in looked_at(path)
    assert not lines(looked_at(path))
    refused = command("leaderboard", path)
    assert refused.exit_code == 1
    assert said in refused.output


def test_a_mistyped_file_of_a_command(tmp_path):
    file_of(tmp_path, pd.DataFrame({"model": ["x"], "a": [1], "b": [2]}), "votes.csv")
    for words in (["leaderboard"], ["meta", "--gold", "a"]):
        assert "There is no file 'vote.csv' in" in command(*words, tmp_path / "vote.csv").output
        assert "did you mean 'votes.csv'?" in command(*words, tmp_path / "vote.csv").output


def test_shares_of_tasks_items_of_names_and_probabilities(tmp_path):
    rows = [(model, task, score) for model in "xyz" for task, score in (("mmlu", 0.5), ("gsm8k", 0.7))]
    path = file_of(tmp_path, pd.DataFrame(rows, columns=["model", "task", "accuracy"]), "tasks.csv")
    assert f"jaxeval index {path} --benchmark task --share accuracy\n" in command(path).output
    path = file_of(tmp_path, pd.DataFrame({"name": [*"xyz"], "q1": [0, 1, 1], "q2": [1, 1, 0]}), "names.csv")
    assert f"jaxeval scores {path} --wide --model name\n" in command(path).output
    votes = {"model_a": [*"xyzx"], "model_b": [*"yzxz"], "prob_a": [0.25, 0.8, 0.4, 0.9]}
    path = file_of(tmp_path, pd.DataFrame(votes), "probabilities.csv")
    assert f"jaxeval leaderboard {path} --target prob_a\n" in command(path).output
    for name in ("prob_b", "problem_difficulty", "probe", "software_share", "prob_ties"):
        path = file_of(tmp_path, pd.DataFrame(votes).rename(columns={"prob_a": name}), f"{name}.csv")
        assert "--target" not in command(path).output
    path = file_of(tmp_path, pd.DataFrame(votes).assign(prob_tie=0.1), "with_ties.csv")
    assert "--target" not in command(path).output


def test_scores_of_tasks_say_of_what_they_are(tmp_path):
    for name in ("task", "benchmark"):
        rows = [(model, task, score) for model, score in zip("xyz", (2, 7, 5), strict=True) for task in "pq"]
        path = file_of(tmp_path, pd.DataFrame(rows, columns=["model", name, "rating"]), f"{name}.csv")
        assert "no column says of which item" not in command(path).output


def test_german_headers_of_scores(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("Modell;Frage;Punkte\na;q1;0,5\nb;q1;1,0\na;q2;0,25\nb;q2;0,75\n")
    assert f"jaxeval scores {path} --model Modell --item Frage --score Punkte" in command(path).output


def test_rows_within_an_object(tmp_path):
    rows = [{"item": 1, "score": 1}, {"item": 2, "score": 0}]
    (tmp_path / "scores.json").write_text(json.dumps({"model": "x", "results": rows}))
    line, printed = run_first(tmp_path / "scores.json")
    assert line[0] == "scores"
    assert printed.startswith("x has a score of 0.500")


@pytest.mark.parametrize(("column", "words"), [
    ("run", ["--trial", "run"]), ("task", ["--benchmark", "task"]), ("rater", ["--random", "rater"]), (None, []),
])  # fmt: skip
def test_scores_that_repeat_a_model_and_an_item(column, words, tmp_path):
    """Every line runs, those that errors name, too; or says what is to be corrected."""
    rows = [(m, i, k, (i + k * len(m)) % 3) for m in ("x", "yy") for i in range(6) for k in (1, 2)]
    table = pd.DataFrame(rows, columns=["model", "item", column or "score", "score" if column else "rest"])
    path = file_of(tmp_path, table if column else table.drop(columns="rest"))
    found = looked_at(path)
    assert ("correct it first: rows repeat" in found) == (column is None)
    board = next(line for line in lines(found) if line[0] == "scores")
    assert board == ["scores", str(path), *words]
    for asked in (["compare-scores", "yy", "x"], ["plan-scores"]) if column else ():
        said = command(*asked, path).stderr.splitlines()[0].removeprefix("Error: say it so: jaxeval ")
        assert shlex.split(said) == [*asked, str(path), *words]
        assert command(*shlex.split(said)).exit_code == 0
    for line in lines(found) if column else ():
        assert command(*line).exit_code == 0, line


def test_scores_of_which_some_are_missing(tmp_path):
    table = pd.DataFrame({"model": [*"xxxyyy"], "item": [1, 2, 3] * 2, "score": [1, 0, None, 1, 1, 0]})
    found = looked_at(file_of(tmp_path, table))
    assert "rows without a score are left out" in found
    for line in lines(found):
        assert command(*line).exit_code == 0, line


def test_a_table_of_right_and_wrong_words(tmp_path):
    """A column for each model: two of them, alike in their words, are no sides of battles."""
    answers = {"gpt": "ccwcc", "claude": "wccww", "llama": "cwwww"}
    words = {"c": "correct", "w": "incorrect"}
    table = pd.DataFrame({model: [words[x] for x in text] for model, text in answers.items()})
    line, found = run_first(file_of(tmp_path, table.rename_axis("item").reset_index()))
    assert line[0] == "scores"
    assert line[2:] == ["--wide"]
    assert found.startswith("gpt is first with 0.800")


def test_a_file_that_is_not_utf_8(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_bytes("model_a,model_b,winner\na,b,model_a\nGroß,b,model_b\n".encode("latin-1"))
    found = command(path)
    assert found.exit_code == 1
    assert found.output.startswith(
        "Error: votes.csv: line 3 is not UTF-8, the byte 0xdf: save the file as UTF-8, as by"
    )


def test_a_doubled_column(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("model_a,model_b,winner,winner\na,b,model_a,model_a\nb,a,model_b,model_b\n")
    assert "Several columns are called 'winner': rename or drop all but one." in looked_at(path)
    path.write_text("model_a,model_a,winner\na,b,A\nb,a,B\n")
    assert "Several columns are called 'model_a': rename or drop all but one." in looked_at(path)
    path.write_text("model_a,model_b,winner,note,note\na,b,model_a,1,2\nb,a,model_b,1,2\na,b,tie,1,2\n")
    assert run_first(path)[0] == ["leaderboard", str(path)]


def test_raters_none_of_whom_is_called_a_judge(tmp_path):
    path = tmp_path / "labels.csv"
    rng = np.random.default_rng(0)
    labels = [f"{i},{rater},{rng.choice(['good', 'bad'])}" for i in range(40) for rater in ("anna", "bert", "cleo")]
    path.write_text("\n".join(["item,annotator,label", *labels]))
    assert run_first(path)[0] == ["agreement", str(path), "--judges", "anna"]
    assert "no rater is called a judge, and 'anna' stands for one" in looked_at(path)
    assert "Where all are people, one of them may stand for a judge" in command("agreement", path).output


@pytest.mark.parametrize(("names", "options"), [
    (["rater1", "rater2"], ["--judges", "rater1"]),
    (["annotator_1", "annotator_2", "annotator_3"], ["--judges", "annotator_1"]),
    (["human_label", "judge_label"], []), (["human_1", "human_2", "llm_label"], []),
])  # fmt: skip
def test_columns_of_raters(names, options, tmp_path):
    """Where all are people, one of them stands for a judge; judge_label is no person's."""
    labels = np.random.default_rng(0).choice(["good", "bad"], (30, len(names)))
    path = file_of(tmp_path, pd.DataFrame(labels, columns=names).rename_axis("item").reset_index())
    line = ["agreement", str(path), *options]
    assert line in lines(looked_at(path))
    assert command(*line).output.startswith(f"Good enough? Not known: {names[0] if options else names[-1]} agrees")
    if options:
        assert command(*line[:2]).stderr.startswith(f"Error: say it so: jaxeval {shlex.join(line)}\n")


def test_a_name_of_raters_without_a_column_of_labels(tmp_path):
    path = tmp_path / "said.csv"
    rows = [f"{i},{rater},{i % 3 - 1.5}" for i in range(9) for rater in "xy"]
    path.write_text("\n".join(["item,annotator,said", *rows]))
    found = command("agreement", path)
    assert "column 'annotator' seems to name who gave the label of each row" in found.output


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        (
            "alpacaeval_item_preferences.parquet",
            ["scores", "--score", "preference", "--missing", "available", "--where",
             "annotator = 'weighted_alpaca_eval_gpt4_turbo' AND reference = 'gpt4_1106_preview'"],
            "NullModel is first with 1.769",
        ),
        (
            "llmbar_human_vs_judges.parquet",
            ["agreement", "--where", "prompt = 'CoT' AND sample = 0"],
            "Good enough? No: the panel of 6 judges",
        ),
        (
            "wildbench_pairwise_counts.csv.gz",
            ["leaderboard", "--model-a", "model", "--model-b", "opponent", "--counts", "win:tie:lose", "--where",
             "length_margin_K = -1"],
            "yi-large-preview is first",
        ),
        (
            "wildbench_item_scores.parquet",
            ["scores", "--missing", "available", "--where", "judge = 'gpt-4-turbo-2024-04-09' AND version = 'v2.0522'"],
            "Qwen1.5-72B-Chat-greedy is first with 7.797",
        ),
        (
            "benchbench_leaderboards_long.parquet",
            ["scores", "--item", "metric", "--where", "file = 'helm_airbench_240916_safety'", "--missing", "available"],
            "databricks/dbrx-instruct is first with 0.845",
        ),
    ],
)  # fmt: skip
def test_real_files_of_several_judges_prompts_and_metrics(name, words, said, data):
    """The lines name one of them, as all of them together would count answers several times."""
    line, found = run_first(data / name)
    assert [word for word in line if word != str(data / name)] == words
    assert found.startswith(said)


def test_every_line_of_battles_with_scores_and_numbered_labels_says_what_these_mean(data):
    shown = lines(looked_at(data / "softelo_sample.csv"))
    assert {"soft-elo", "panel"} <= {line[0] for line in shown}
    assert all(line[-2:] == ["--labels", "a_wins_1"] or "--k" in line for line in shown)
    assert "is first with" in command("panel", *shown[1][1:], "--resamples", 20).output


def test_conditions_hold_numbers_whole_and_quote_words_of_sql(tmp_path):
    labels = tmp_path / "labels.csv"
    rng = np.random.default_rng(0)
    rows = [f"q{i},{rng.choice(['a', 'b'])},{rng.choice(['a', 'b'])},{version}"
            for i in range(40) for version in (20240115, 20240220)]  # fmt: skip
    labels.write_text("\n".join(["item,human,gpt,version", *rows]))
    assert run_first(labels)[0][-2:] == ["--where", "version = 20240115"]
    counts = tmp_path / "counts.csv"
    rows = [
        f"{m},base,{10 + i},{20 + i},{i},{12 + i},{g}" for i, (m, g) in enumerate((m, g) for m in "abcd" for g in "xy")
    ]
    counts.write_text("\n".join(["model,opponent,n_votes,wins,ties,losses,group", *rows]))
    shown = looked_at(counts)
    assert """--where "\\"group\\" = 'x'"\n""" in shown
    (line,) = (line for line in lines(shown) if "--where" in line)
    assert line[-2:] == ["--where", "\"group\" = 'x'"]
    assert command(*line).exit_code == 0


def test_conditions_pass_over_an_empty_column(tmp_path):
    """As that of a temperature which nobody set."""
    rows = [(item, prompt, None, item % 2, (item + (prompt == "b")) % 2) for item in range(9) for prompt in "ab"]
    path = tmp_path / "prompts.csv"
    columns = ["item", "prompt", "temperature", "human", "verdict"]
    pd.DataFrame(rows, columns=columns).to_csv(path, index=False)
    assert f"jaxeval agreement {path} --where" in looked_at(path)


def test_keys_of_an_object_are_no_columns(tmp_path):
    path = tmp_path / "names.json"
    path.write_text('{"model-1": "Model 1"}')
    assert command("leaderboard", path).output.rstrip().endswith("its keys are 'model-1'")


@pytest.mark.parametrize("kind", ["rankings", pytest.param("panel", marks=pytest.mark.slow)])
def test_a_leaderboard_takes_judgments_of_another_shape(folder, kind):
    shown, direct = (command(name, of_kind(folder, kind), "--resamples", 20) for name in ("leaderboard", kind))
    assert shown.stdout == direct.stdout
    assert f"these files are rated by another command, which runs now: jaxeval {kind} " in shown.stderr
    assert "No such option '--features'" in command("leaderboard", of_kind(folder, kind), "--features", "x").output


def test_a_leaderboard_with_a_wrong_option_stays_one(folder, tmp_path):
    frame = pd.DataFrame(jaxeval.simulate_judges(100, 4, seed=0))[["item", "model_a", "model_b", "judge-1", "judge-2"]]
    votes = frame.melt(["item", "model_a", "model_b"], var_name="judge", value_name="winner")
    path = tmp_path / "votes.csv"
    votes.to_csv(path, index=False)
    votes.assign(winner=votes["winner"].mask(votes.index == 3)).to_csv(tmp_path / "gap.csv", index=False)
    for said, *words in (
        ("no column 'nope'", of_kind(folder, "panel"), "--winner=nope"),
        ("no column 'nope'", path, "--by", "nope"),
        ("--missing drop", tmp_path / "gap.csv"),
    ):
        found = command("leaderboard", *words)
        assert found.exit_code == 1
        assert said in found.output
        assert "which runs now" not in found.output


def test_a_row_for_each_model_and_a_column_for_each_item(tmp_path):
    table = pd.DataFrame({"model": ["x", "y"], "q1": [1, 0], "q2": ["yes", "no"], "q3": [0.5, None], "total": [1, 2]})
    found = looked_at(file_of(tmp_path, table))
    assert [line[0] for line in lines(found)] == ["scores", "compare-scores"]
    for line in lines(found):
        assert line[-3:] == ["--wide", "--missing", "available"]
        assert not command(*line).exit_code
    benchmarks = looked_at(file_of(tmp_path, pd.DataFrame({"model": [*"xyz"], "mmlu": [0, 1, 1], "human": [1, 0, 1]})))
    assert "scores" not in [line[0] for line in lines(benchmarks)]


OF_FOUR = ["Item1", "Item2", "Item3", "Item4"]


@pytest.mark.parametrize(("shown", "ends", "said"), [
    (OF_FOUR, ["BestItem", "WorstItem"], "name"),
    (["option1", "option2", "option3", "option4"], ["best", "worst"], "number"),
    (["model_a", "model_b", "model_c", "model_d"], ["Best", "Worst"], "letter"),
    (OF_FOUR, ["most", "least"], "column"),
])  # fmt: skip
def test_best_and_worst_of_those_shown(shown, ends, said, tmp_path):
    rows = [([*"wxyz"], 0, 3), ([*"zyxw"], 3, 1), ([*"xwzy"], 1, 3)] * 6
    names = {"number": [1, 2, 3, 4], "letter": [*"ABCD"], "column": shown}
    table = pd.DataFrame([row for row, *_ in rows], columns=shown)
    for end, column in zip(ends, (1, 2), strict=True):
        table[end] = [row[0][row[column]] if said == "name" else names[said][row[column]] for row in rows]
    path = file_of(tmp_path, table.assign(worker=[f"p{k % 5}" for k in range(len(table))]))
    first = lines(looked_at(path))[0]
    assert first == ["rankings", str(path), "--cluster", "worker"]
    rankings = jaxeval.read_rankings(path)
    assert rankings.to_lists()[:3] == [["w", ["x", "y"], "z"], ["w", ["x", "z"], "y"], ["w", ["x", "z"], "y"]]
    assert "; undefeated, without a rank: w\n" in command(*first, "--resamples", 20).output


def test_a_best_one_that_was_not_shown_is_told(tmp_path):
    rows = [[*"wxyz", "w", "z"], [*"wxyz", "v", "z"]]
    path = file_of(tmp_path, pd.DataFrame(rows, columns=[*OF_FOUR, "best", "worst"]))
    wrong = "column 'best' has 'v' in row 1 (rows count from 0), which is none of those shown: w, x, y, z"
    assert f"note: correct it first: {wrong}" in looked_at(path)
    refused = command("leaderboard", path).stderr
    assert refused.endswith(f"the file rather fits: jaxeval rankings {path}\n")
    assert "COLUMN" not in refused
    assert wrong in command("rankings", path).output
    listed = pd.DataFrame({"items": [list("wxyz")] * 2, "best": ["w", None], "worst": [None, "z"]})
    assert jaxeval.Rankings.from_pandas(listed).to_lists() == [["w", ["x", "y", "z"]], [["w", "x", "y"], "z"]]


@pytest.mark.parametrize("table", [
    pd.DataFrame([list("xyz"), list("yxz"), list("xzy")], columns=["rank1", "rank2", "rank3"]),
    pd.DataFrame({"prompt": [1, 2, 3], "x": [1, 2, 1], "y": [2, 1, 3], "z": [3, 3, 2]}),
    pd.DataFrame([list("xyz"), list("yxz"), list("xzy")], columns=["1st", "2nd", "3rd"]),
])  # fmt: skip
def test_rankings_in_columns(table, tmp_path):
    first = lines(looked_at(file_of(tmp_path, table)))[0]
    assert first[0] == "rankings"
    runs(first)
