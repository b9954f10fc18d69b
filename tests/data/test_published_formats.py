"""Small files in exactly the schemas that benchmarks publish."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import run
from pandas import read_csv

from jaxeval import Battles, Format, formats, read_battles, read_scores
from jaxeval.errors import DataError

DOCS = Path(__file__).parents[2] / "docs"
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
    assert run(path).stdout.count(" --missing drop\n") == 2
    assert "--missing" not in run(write(tmp_path, rows[:4])).stdout
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
    """As WildVision has it: the baseline is shown first."""
    rows = [arena_hard(k, "x", grade, "B>A", baseline="base") for k, grade in enumerate(["A>B", "B>>A"])]
    one = [row | {"games": row["games"][:1]} for row in rows]
    assert battles_of(read_battles(write(tmp_path, one))) == [("base", "x", 1.0), ("base", "x", 0.0)]
    assert len(battles_of(read_battles(write(tmp_path, [rows[0], one[1]])))) == 3
    with pytest.raises(DataError, match=r"column 'games', row 0 .* one in each order"):
        read_battles(write(tmp_path, [rows[0] | {"games": []}]))


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
    assert set(table["model"]) == set(expected.models)
    assert table["vote_count"].sum() == 2 * len(expected.target)
    assert f"read as {name}" in " ".join(result.output.split())


def vote(a, b, chosen=None, equal=False, **further):
    return {"model_a_name": a, "model_b_name": b, "chosen_model_name": chosen, "both_equal": equal,
            "conv_turns": 2, "opening_msg": "Bonjour", **further}  # fmt: skip


def test_comparia(tmp_path):
    """The chosen model, a tie, or neither; further columns are read as they are asked for."""
    category = {"selected_category": "droit", "visitor_id": "v1"}
    rows = [vote("x", "y", "x", **category), vote("y", "x", "x"), vote("y", "z", equal=True), vote("x", "z")]
    path = write(tmp_path, rows)
    with pytest.raises(DataError, match=r"file.jsonl: column 'winner' has 1 missing value \(first in row 3"):
        read_battles(path)
    battles = read_battles(path, missing="drop", keep=["selected_category"], cluster="visitor_id")
    assert battles_of(battles) == [("x", "y", 1.0), ("y", "x", 0.0), ("y", "z", 0.5)]
    assert battles.columns.columns.tolist() == ["visitor_id", "selected_category"]
    later = read_battles(path, missing="drop").column("selected_category")
    assert later.tolist() == battles.column("selected_category").tolist()
    assert battles.report.read_as[0].startswith("read as ComparIA's votes: models that are equal are a tie")
    shown = run(path).stdout
    assert "told by 'model_a_name', 'model_b_name', 'chosen_model_name', 'both_equal'" in shown
    assert shown.count("--missing drop\n") == 2  # of the leaderboard and the audit
    both = r"1 row has a chosen_model_name though both_equal .*row 4"
    for wrong, says in [(vote("x", "y", "x", True), both), (vote("x", "y", "elsewhere"), "'elsewhere'"),
                        (vote("x", "y", None, "maybe"), "both_equal")]:  # fmt: skip
        with pytest.raises(DataError, match=f"^file.jsonl: .*{says}"):
            read_battles(write(tmp_path, [*rows, wrong]), missing="drop")


CODE = """
from jaxeval import Format


def read(source):
    table = source.columns(["left", "right", "better"])
    return table.rename(columns={"left": "model_a", "right": "model_b", "better": "winner"})


votes = Format("the example's votes", ("left", "right", "better|best"), read, about="better is the winner")
scores = Format("the example's scores", ("llm", "task", "points"), lambda source: source.columns(
    ["llm", "task", "points"]).rename(columns={"llm": "model", "task": "item", "points": "score"}), "answer")
notes = Format("the example's notes", (), lambda source: source.columns().rename(
    columns={"one": "model_a", "two": "model_b", "better": "winner"}), fits=lambda rows: "note" in rows)
none = 3
"""
ENTRIES = """[jaxeval.formats]
votes = example_formats:votes
scores = example_formats:scores
notes = example_formats:notes
absent = example_formats_absent:votes
odd = example_formats:none
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package as it is installed: its code and its metadata in a folder of ``sys.path``."""
    (tmp_path / "example_formats.py").write_text(CODE)
    metadata = tmp_path / "example_formats-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: example-formats\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(tmp_path)
    formats.cache_clear()
    with pytest.warns(UserWarning, match=r"absent of .*cannot be imported|odd of .*must be a jaxeval.Format"):
        formats()
    yield tmp_path
    formats.cache_clear()
    sys.modules.pop("example_formats", None)


def test_another_package_adds_formats(package):
    """Its files are read, looked at, and named in the report; what cannot be loaded is left out with a warning."""
    assert list(formats())[-3:] == ["the example's votes", "the example's scores", "the example's notes"]
    rows = [{"left": "x", "right": "y", "better": "left"}, {"left": "y", "right": "x", "better": "tie"}]
    path = write(package, rows)
    assert battles_of(read_battles(path)) == [("x", "y", 1.0), ("y", "x", 0.5)]
    assert read_battles(path).report.read_as[0] == "read as the example's votes: better is the winner"
    assert "the example's votes, told by 'left', 'right', 'better'" in run(path).stdout
    told_by_rows = read_battles(write(package, [{"one": "x", "two": "y", "better": "tie", "note": ""}]))
    assert told_by_rows.report.read_as[0] == "read as the example's notes"
    scores = write(package, [{"llm": "x", "task": 1, "points": 1}, {"llm": "x", "task": 2, "points": 0}])
    assert read_scores(scores).means["score"].to_dict() == {"x": 0.5}


def test_nectar(tmp_path):
    answers = [{"answer": "...", "model": model, "rank": rank} for model, rank in (("x", 2.0), ("y", 1.0), ("z", 3.0))]
    path = write(tmp_path, [{"prompt": "...", "answers": answers, "turns": 1, "source": ["s"], "good_natured": True}])
    battles = read_battles(path, keep=["item"])
    assert battles_of(battles) == [("x", "y", 0.0), ("x", "z", 1.0), ("y", "z", 1.0)]
    assert battles.column("item").tolist() == [0] * 3


def test_formats_are_named_in_the_docs():
    """The page of files names every format of votes, the page of scores those of scores."""
    pages = {shape: (DOCS / f"{name}.md").read_text() for shape, name in (("pair", "files"), ("answer", "scores"))}
    assert [name for name, form in formats().items() if name not in " ".join(pages[form.shape].split())] == []


def test_a_format_holds_together():
    with pytest.raises(ValueError, match="a document holds scores of answers, got shape='pair'"):
        Format("odd", ("a",), lambda source: source.columns(["a"]), is_document=True)
