"""Small files in exactly the schemas that benchmarks publish."""

import json

import numpy as np
import pytest
from command_line import run
from pandas import read_csv

from jaxeval import Battles, read_battles
from jaxeval.errors import DataError

JUDGE = ["gpt-4", "pair-v2"]


def write(folder, rows, name="file.jsonl"):
    path = folder / name
    path.write_text(json.dumps(rows) if name.endswith(".json") else "\n".join(map(json.dumps, rows)))
    return path


def pair(question, one, two, first, second, turn=1):
    return {
        "question_id": question, "model_1": one, "model_2": two, "g1_winner": first, "g2_winner": second,
        "judge": JUDGE, "turn": turn, "tstamp": 1.5e9,
        "g1_user_prompt": "...", "g1_judgment": "[[A]]", "g2_user_prompt": "...", "g2_judgment": "[[B]]",
    }  # fmt: skip


def single(question, model, score, turn=1):
    return {
        "question_id": question, "model": model, "judge": ["gpt-4", "single-v1"], "user_prompt": "...",
        "judgment": "...", "score": score, "turn": turn, "tstamp": 1.5e9,
    }  # fmt: skip


def battles_of(battles):
    return list(zip(battles.models[battles.model_a], battles.models[battles.model_b], battles.target, strict=True))


def test_mt_bench_pairs(tmp_path):
    rows = [
        pair(81, "x", "y", "model_1", "model_1"),
        pair(81, "x", "z", "model_2", "model_2", turn=2),
        pair(82, "y", "z", "model_1", "model_2"),
        pair(83, "y", "z", "tie", "tie"),
        pair(84, "y", "z", "error", "model_1"),
    ]
    path = write(tmp_path, rows)
    with pytest.raises(DataError, match=r"file.jsonl: column 'winner' has 1 missing value"):
        read_battles(path)
    battles = read_battles(path, missing="drop", keep=["question_id", "turn", "judge"])
    assert battles_of(battles) == [("x", "y", 1.0), ("x", "z", 0.0), ("y", "z", 0.5), ("y", "z", 0.5)]
    assert battles.column("judge").tolist() == ["gpt-4"] * 4
    assert battles.column("turn").tolist() == [1, 2, 1, 1]
    assert battles.report.read_as[0].startswith("read as MT-bench's judgments of pairs: orders that disagree are a tie")


def test_mt_bench_scores(tmp_path):
    rows = [
        single(81, "x", 9),
        single(81, "y", 7.5),
        single(81, "z", 7.45),
        single(81, "x", 3, 2),
        single(81, "y", -1, 2),
    ]
    path = write(tmp_path, rows)
    battles = read_battles(path, missing="drop", keep=["turn"])
    assert battles_of(battles) == [("x", "y", 1.0), ("x", "z", 1.0), ("y", "z", 0.5)]
    assert battles.report.n_missing == 1
    with pytest.raises(DataError, match="1 row scores a model again for the same question_id, turn, judge"):
        read_battles(write(tmp_path, [*rows, rows[0]]))


def test_mt_bench_scores_of_several_files(tmp_path):
    rows = [single(81, "x", 9), single(81, "y", 7.5), single(81, "z", 3)]
    files = [write(tmp_path, rows[:2], "one.jsonl"), write(tmp_path, rows[2:], "two.jsonl")]
    assert battles_of(read_battles(files)) == battles_of(read_battles(write(tmp_path, rows)))
    with pytest.raises(DataError, match="column 'model' has 1 missing value"):
        read_battles(write(tmp_path, [*rows, rows[0] | {"model": None}]))


def test_a_table_of_battles_is_none_of_them(tmp_path):
    row = {"model_a": "x", "model_b": "y", "winner": "tie", "generator_1": "x", "generator_2": "y", "preference": 1}
    assert battles_of(read_battles(write(tmp_path, [row]))) == [("x", "y", 0.5)]


@pytest.mark.parametrize("name", ["annotations.json", "annotations.jsonl"])
def test_alpaca_eval(name, tmp_path):
    rows = [
        {"instruction": f"{k}?", "output_1": "...", "generator_1": "base", "output_2": "...", "generator_2": model,
         "dataset": "koala", "annotator": "gpt4_fn", "preference": preference}
        for k, (model, preference) in enumerate([("x", 2.0), ("y", 1.0), ("x", 1.5), ("y", 0), ("y", 1.25)])
    ]  # fmt: skip
    battles = read_battles(write(tmp_path, rows, name), keep=["item", "judge"])
    np.testing.assert_array_equal([target for *_, target in battles_of(battles)], [0, 1, 0.5, 0.5, 0.75])
    assert battles.models[battles.model_a].unique().tolist() == ["base"]
    assert battles.column("item").tolist() == ["0?", "1?", "2?", "3?", "4?"]
    with pytest.raises(DataError, match="preferences must lie in"):
        read_battles(write(tmp_path, [rows[0] | {"preference": 3}], name))


def arena_hard(uid, model, first, second, **more):
    games = [{"score": first, "judgment": "...", "prompt": []}, {"score": second, "judgment": "...", "prompt": []}]
    return {"uid": uid, "category": "hard_prompt", "judge": "gpt-4.1", "model": model, "games": games} | more


def test_arena_hard(tmp_path):
    rows = [arena_hard("a", "x", "A>>B", "B>A", baseline="base"), arena_hard("b", "y", "B>A", "A=B", baseline="base")]
    battles = read_battles(write(tmp_path, rows), keep=["question_id", "category", "game"])
    assert battles_of(battles) == [("base", "x", 1.0), ("base", "y", 0.0), ("x", "base", 0.0), ("y", "base", 0.5)]
    assert battles.weight.tolist() == [3, 1, 1, 1]
    assert battles.column("game").tolist() == [1, 1, 2, 2]
    assert battles.column("question_id").tolist() == ["a", "b", "a", "b"]


def test_arena_hard_without_a_baseline(tmp_path):
    path = write(tmp_path, [arena_hard("a", "x", "A>B", "B>A"), arena_hard("b", "x", "A>B", None)])
    with pytest.raises(
        DataError, match=r"file.jsonl: the file does not name the baseline of Arena-Hard: name it with baseline="
    ):
        read_battles(path)
    battles = read_battles(path, baseline="gpt-4-0314", missing="drop")
    assert battles_of(battles) == [("gpt-4-0314", "x", 1.0), ("gpt-4-0314", "x", 1.0), ("x", "gpt-4-0314", 0.0)]


def test_arena_hard_with_one_game(tmp_path):
    row = arena_hard("a", "x", "A>B", "B>A", baseline="base")
    with pytest.raises(DataError, match=r"column 'games', row 0 .* one in each order"):
        read_battles(write(tmp_path, [row | {"games": row["games"][:1]}]))


def test_columns_that_are_named_win(tmp_path):
    """Whoever names the columns of models says that the file is a table of battles."""
    path = write(tmp_path, [pair(81, "x", "y", "model_1", "model_1"), pair(82, "x", "y", "model_2", "model_2")])
    battles = read_battles(
        path,
        model_a="model_1",
        model_b="model_2",
        winner="g1_winner",
        labels={"model_1": "model_a", "model_2": "model_b"},
    )
    assert battles.target.tolist() == [1, 0]
    assert isinstance(battles, Battles)


def _annotation(question, model, preference):
    return {"instruction": question, "output_1": "...", "generator_1": "base", "output_2": "...", "generator_2": model,
            "dataset": "koala", "annotator": "gpt4_fn", "preference": preference}  # fmt: skip


PUBLISHED = {
    "MT-bench's judgments of pairs": [pair(q, "x", "y", f"model_{1 + q % 2}", f"model_{1 + q % 2}") for q in range(6)],
    "MT-bench's scores of single answers": [
        single(q, model, 5 + (q * k) % 3) for q in range(6) for k, model in enumerate(["x", "y"], 1)
    ],
    "AlpacaEval's annotations": [_annotation(f"{k}?", "xy"[k % 2], 1 + (k % 4 < 2)) for k in range(8)],
    "Arena-Hard's judgments": [
        arena_hard(str(k), "xy"[k % 2], *(("A>B", "A>B") if k % 4 < 2 else ("B>A", "A>B"))) for k in range(8)
    ],
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_command_reads_them(name, tmp_path):
    """It passes all columns by their usual names."""
    path = write(tmp_path, PUBLISHED[name])
    baseline = {"baseline": "base"} if name.startswith("Arena-Hard") else {}
    options = [*(f"--{option}={value}" for option, value in baseline.items()), "--out", str(tmp_path / "board.csv")]
    result = run("leaderboard", path, "--resamples", "20", *options)
    assert result.exit_code == 0, result.output
    expected = read_battles(path, **baseline)
    table = read_csv(tmp_path / "board.csv")
    assert set(table["model_name"]) == set(expected.models)
    assert table["vote_count"].sum() == 2 * len(expected.target)
    assert f"read as {name}" in " ".join(result.output.split())
