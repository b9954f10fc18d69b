"""Verdicts against a reference from published files, folders and several files, in Python and by the command."""

import json

import numpy as np
import pandas as pd
import pytest
from command_line import run

from jaxeval import DataError, anchored_scores, read_anchored_verdicts

pytestmark = pytest.mark.usefixtures("undrawn")
#: Grades of the games of two prompts, as Arena-Hard writes them: the baseline is A in the first game.
GRADES = {"x": [("B>>A", "A=B"), ("A>B", "A>B")], "y": [("A>>B", "B>>A"), ("A=B", "B>A")]}
#: The outcomes for the model: weighted means, where strong grades weigh 3.
OUTCOMES = {"x": [(3 * 1 + 0.5) / 4, 0.5], "y": [0.0, 0.25]}


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def arena_hard(model, **more):
    return [
        {"question_id": f"q{k}", "model": model, "judge": "j", "games": [{"score": s} for s in pair]} | more
        for k, pair in enumerate(GRADES[model])
    ]


def outcomes(found):
    of = pd.DataFrame({"model": found.levels["model"][found.number["model"]], "outcome": found.outcome})
    return {name: rows["outcome"].tolist() for name, rows in of.groupby("model")}


def anchored(*arguments):
    return run("anchored", *arguments)


def test_files_of_arena_hard_are_read_whatever_their_number(tmp_path):
    folder = tmp_path / "judgments"
    folder.mkdir()
    files = [lines(folder / f"{model}.jsonl", arena_hard(model)) for model in GRADES]
    for path in (folder, files, str(folder / "*.jsonl")):
        found = read_anchored_verdicts(path, baseline="base")
        assert outcomes(found) == OUTCOMES, path
        assert found.levels["anchor"].tolist() == ["base"]
        assert found.levels["judge"].tolist() == ["j"]
    assert any("read as Arena-Hard's judgments, against the reference" in line for line in found.read_as)
    with pytest.raises(DataError, match=r"does not name the baseline of Arena-Hard: name it with baseline="):
        read_anchored_verdicts(files)
    for arguments in ([folder], files):
        result = anchored(*arguments, "--baseline", "base", "--out", "-", "--format", "json")
        assert result.exit_code == 0, result.output
        rows = json.loads(result.stdout)["rows"]
        expected = anchored_scores(found)
        np.testing.assert_allclose([row["rating"] for row in rows], expected["rating"])
        assert [row["model"] for row in rows] == ["x", "y"]
    assert "does not name the baseline" in " ".join(anchored(*files).output.split())


def test_baselines_may_differ_by_category(tmp_path):
    rows = arena_hard("x", baseline="one", category="hard")[:1] + arena_hard("x", baseline="two", category="poem")[1:]
    found = read_anchored_verdicts(lines(tmp_path / "v2.jsonl", rows))
    assert found.levels["anchor"].tolist() == ["one", "two"]
    assert found.levels["task"].tolist() == ["hard", "poem"]
    assert outcomes(found)["x"] == OUTCOMES["x"]


def test_one_game_a_row(tmp_path):
    rows = [
        {"uid": f"q{k}", "model": model, "baseline": "base", "game": game + 1, "judge": "j", "score": score}
        for model, prompts in GRADES.items() for k, pair in enumerate(prompts) for game, score in enumerate(pair)
    ]  # fmt: skip
    pd.DataFrame(rows).to_csv(tmp_path / "games.csv", index=False)
    assert outcomes(read_anchored_verdicts(tmp_path / "games.csv")) == OUTCOMES
    sides = pd.DataFrame(rows).assign(
        verdict=lambda x: x["score"], side=np.where(pd.DataFrame(rows)["game"] == 1, "A", "B")
    )
    sides.rename(columns={"uid": "item"}).drop(columns=["score", "game"]).to_csv(tmp_path / "sides.csv", index=False)
    assert outcomes(read_anchored_verdicts(tmp_path / "sides.csv", reference="side")) == OUTCOMES
    result = anchored(tmp_path / "games.csv")
    assert result.exit_code == 0, result.output


def test_preferences_between_1_and_2(tmp_path):
    table = pd.DataFrame(
        {"model": [*"xxyy"], "item": [1, 2, 1, 2], "reference": "r", "preference": [2, 1.5, 1.0, 1.25]}
    )
    table.to_csv(tmp_path / "preferences.csv", index=False)
    found = read_anchored_verdicts(tmp_path / "preferences.csv")
    assert outcomes(found) == {"x": [1, 0.5], "y": [0, 0.25]}
    assert found.levels["anchor"].tolist() == ["r"]
    annotations = [
        {"instruction": f"i{k}", "output_1": "o", "generator_1": "r", "output_2": "p", "generator_2": model,
         "annotator": "weighted", "preference": p}
        for model, k, p in [("x", 1, 2), ("x", 2, 0), ("y", 1, 1.0), ("y", 2, 1.25)]
    ]  # fmt: skip
    (tmp_path / "annotations.json").write_text(json.dumps(annotations))
    assert outcomes(read_anchored_verdicts(tmp_path / "annotations.json")) == {"x": [1, 0.5], "y": [0, 0.25]}
    for name in ("preferences.csv", "annotations.json"):
        result = anchored(tmp_path / name)
        assert result.exit_code == 0, result.output


def test_pairs_of_mt_bench_need_a_reference_that_all_met(tmp_path):
    rows = [
        {"question_id": k, "model_1": "r", "model_2": m, "g1_winner": a, "g2_winner": b, "judge": ["gpt-4", "pair"],
         "turn": 1}
        for m, k, a, b in [("x", 1, "model_2", "model_2"), ("x", 2, "model_1", "model_2"), ("y", 1, "model_1", "tie")]
    ]  # fmt: skip
    path = lines(tmp_path / "pairs.jsonl", rows)
    assert outcomes(read_anchored_verdicts(path)) == {"x": [1, 0.5], "y": [0.5]}
    other = lines(tmp_path / "more.jsonl", [*rows, rows[0] | {"model_1": "y", "question_id": 7}])
    with pytest.raises(DataError, match=r"more\.jsonl: no model is in every battle.*baseline="):
        read_anchored_verdicts(other)
    found = read_anchored_verdicts(other, baseline="r")
    assert "1 battle without the reference left out" in found.read_as
    with pytest.raises(DataError, match="no battle has the reference 'z'"):
        read_anchored_verdicts(other, baseline="z")


def test_several_tables_are_one_and_must_have_the_same_columns(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(f"model,item,verdict\n{name},1,win\n{name},2,loss\n")
    found = read_anchored_verdicts([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert found.levels["model"].tolist() == ["a", "b"]
    result = anchored(tmp_path / "a.csv", tmp_path / "b.csv")
    assert "4 rows: 4 verdicts; 2 models" in result.output
    (tmp_path / "b.csv").write_text("model,prompt,verdict\nb,1,win\n")
    wrong = anchored(tmp_path / "a.csv", tmp_path / "b.csv")
    assert wrong.exit_code == 1
    assert "b.csv and a.csv do not have the same columns: only one of them has item, prompt" in " ".join(
        wrong.output.split()
    )
    with pytest.raises(DataError, match="is for published formats"):
        read_anchored_verdicts(tmp_path / "a.csv", baseline="x")


def test_few_verdicts_that_are_there_twice_are_told(tmp_path):
    for name in ("monday.csv", "tuesday.csv"):
        (tmp_path / name).write_text("model,verdict\nx,win\nx,loss\ny,win\ny,tie\n")
    shown = run("anchored", tmp_path / "monday.csv", tmp_path / "tuesday.csv", "--resamples", "20").output
    assert "tuesday.csv has the same 4 rows as monday.csv: they count again" in shown
