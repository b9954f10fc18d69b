import json
import re
import zipfile

import numpy as np
import pandas as pd
import pytest
from command_line import run, said

import jaxeval
from jaxeval import DataError, read_battles, read_scores

LONG = pd.DataFrame({"model": [*"xxyy"], "item": [1, 2, 1, 2], "score": [1.0, 0.0, 1.0, 1.0]})


def lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def means(scores):
    return scores.means.iloc[:, 0].to_dict()


def test_columns_by_other_names(tmp_path):
    frame = LONG.rename(columns={"model": "system", "item": "id", "score": "acc"}).assign(part="p", seed=0, topic="t")
    frame.to_csv(tmp_path / "own.csv", index=False)
    found = read_scores(
        tmp_path / "own.csv",
        model="system",
        item="id",
        score="acc",
        benchmark="part",
        trial="seed",
        keep=["topic", "part"],
    )
    assert means(found) == {"x": 0.5, "y": 1.0}
    assert set(found.columns) == {"topic", "part"}
    assert found.benchmark.names.tolist() == ["p"]
    assert len(found.trials.score) == 4


def test_a_file_is_a_model_where_none_is_named(tmp_path):
    for model, own in LONG.groupby("model"):
        own.drop(columns="model").to_csv(tmp_path / f"{model}.csv", index=False)
    assert means(read_scores(tmp_path)) == {"x": 0.5, "y": 1.0}


def test_wide_tables(tmp_path):
    pd.DataFrame({"id": [1, 2], "x": [1, 0], "y": [1, 1]}).to_csv(tmp_path / "wide.csv", index=False)
    assert means(read_scores(tmp_path / "wide.csv", wide=True, item="id")) == {"x": 0.5, "y": 1.0}
    pd.DataFrame({"id": ["a", "b"], "x": [1, 0]}).to_csv(tmp_path / "wide.csv", index=False)
    with pytest.raises(DataError, match=r"1 column holds no numbers.*id"):
        read_scores(tmp_path / "wide.csv", wide=True)


def test_a_column_that_sums_up_others_is_no_model(tmp_path):
    (path := tmp_path / "wide.csv").write_text("item,x,y,Average\n1,1,0,0.5\n2,1,1,1\n")
    scores = read_scores(path, wide=True)
    assert [*scores.models] == ["x", "y"]
    assert "not taken as models: 'Average' (rename a column to keep it)" in scores.notes
    path.write_text("item,mean,total\n1,1,0\n2,1,1\n")  # of nothing else
    assert [*read_scores(path, wide=True).models] == ["mean", "total"]
    path.write_text("item,x,median\n1,1,0\n2,1,1\n")  # which forecasters compete with
    assert [*read_scores(path, wide=True).models] == ["median", "x"]


def test_an_item_that_may_sum_up_others_is_told(tmp_path):
    said = "counted as items: 'Grand total'; drop what sums up others"
    (path := tmp_path / "long.csv").write_text("model,item,score,task\nx,q1,1,t\nx,q2,0,t\nx,Grand total,0.5,t\n")
    assert said in read_scores(path).notes
    assert said in read_scores(path, benchmark="task").notes
    (path := tmp_path / "wide.csv").write_text("item,x,y\nq1,1,0\nGrand total,1,0\n")
    assert said in read_scores(path, wide=True).notes
    path.write_text("item,x,y\nq1,1,0\nq2,1,0\n")
    assert read_scores(path, wide=True).notes == ()


def test_wide_tables_of_models_in_rows(tmp_path):
    path = tmp_path / "wide.csv"
    rows = pd.DataFrame({"model": ["x", "y"], "q1": ["yes", "no"], "q2": ["yes", "yes"], "total": [2, 1]})
    rows.to_csv(path, index=False)
    found = read_scores(path, wide=True)
    assert found.means["score"].to_dict() == {"x": 1.0, "y": 0.5}
    assert "not taken as items: 'total'" in found.notes
    rows.rename(columns={"model": "who"}).to_csv(path, index=False)
    assert means(read_scores(path, wide=True, model="who")) == {"x": 1.0, "y": 0.5}
    rows.assign(maker="m").to_csv(path, index=False)
    with pytest.raises(DataError, match=r"each row is a model .*1 column holds no numbers.* no items: maker"):
        read_scores(path, wide=True)
    with pytest.raises(DataError, match=r"no column is of trial, maker"):
        read_scores(path, wide=True, trial="q1", keep=["maker"])
    rows[["model", "total"]].to_csv(path, index=False)
    with pytest.raises(DataError, match="no column holds scores of an item"):
        read_scores(path, wide=True)


def test_wide_tables_of_words(tmp_path):
    words = pd.DataFrame(
        {"item": [1, 2, 3], "x": ["pass", "fail", "fail"], "y": ["pass", "pass", None], "z": [1, 0, 0]}
    )
    words.to_csv(tmp_path / "wide.csv", index=False)
    found = read_scores(tmp_path / "wide.csv", wide=True)
    assert found.means["score"].round(3).to_dict() == {"x": 0.333, "y": 1.0, "z": 0.333}
    assert found.notes == ("2 columns: read 'pass' as 1, 'fail' as 0",)
    words.assign(x="pass").to_csv(tmp_path / "wide.csv", index=False)
    with pytest.raises(DataError, match=r"2 columns hold no numbers.*x, y"):  # one word alone may say anything
        read_scores(tmp_path / "wide.csv", wide=True)


def samples(metrics, filters=("none",)):
    return [
        {"doc_id": i, "doc": {"q": "?"}, "target": "A", "arguments": [["p", "A"]], "resps": [["A"]], "filter": f,
         "filtered_resps": ["A"], "doc_hash": "h", **{name: value[i] for name, value in metrics.items()}}
        for f in filters for i in range(2)
    ]  # fmt: skip


def test_samples_of_lm_evaluation_harness(tmp_path):
    stamp = "2026-01-02T03-04-05.678901"
    for model, acc in (("org__x", [1.0, 0.0]), ("org__y", [1.0, 1.0])):
        lines(tmp_path / model / f"samples_arc_easy_{stamp}.jsonl", samples({"acc": acc, "acc_norm": [0.0, 0.0]}))
        lines(tmp_path / model / f"samples_gsm8k_{stamp}.jsonl", samples({"acc": acc}))
    found = read_scores(tmp_path, score="acc")
    assert means(found) == {"org/x": 0.5, "org/y": 1.0}
    assert found.benchmark.names.tolist() == ["arc_easy", "gsm8k"]
    assert len(found.items) == 4  # doc 0 of two tasks is two items
    with pytest.raises(DataError, match=r"samples_arc_easy.*acc, acc_norm: name one"):
        read_scores(tmp_path)


def test_filters_of_lm_evaluation_harness(tmp_path):
    path = lines(tmp_path / "m" / "samples_gsm8k.jsonl", samples({"exact_match": [1.0, 0.0]}, ("strict", "flexible")))
    with pytest.raises(DataError, match="strict, flexible: name one"):
        read_scores(path)
    with pytest.raises(DataError, match=r"no filter 'strickt'.*did you mean 'strict'"):
        read_scores(path, output_filter="strickt")
    assert means(read_scores(path, output_filter="strict")) == {"m": 0.5}
    lines(tmp_path / "m" / "samples_arc.jsonl", samples({"acc": [1.0, 1.0]}))
    both = read_scores(tmp_path / "m", output_filter="strict,none", score="exact_match,acc")
    assert means(both) == {"m": 0.75}


def inspect_log(values, scorers=("match",)):
    rows = [
        {"id": k // 2, "epoch": 1 + k % 2, "scores": {s: {"value": v} for s in scorers}} for k, v in enumerate(values)
    ]
    return {"version": 2, "eval": {"task": "tasks/gpqa", "model": "openai/gpt"}, "samples": rows}


@pytest.mark.parametrize("archive", [False, True])
def test_logs_of_inspect(tmp_path, archive):
    log = inspect_log(["C", "I", "P", 1, "C", None])
    path = tmp_path / ("log.eval" if archive else "log.json")
    if archive:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("header.json", json.dumps({"eval": log["eval"]}))
            for k, sample in enumerate(log["samples"]):
                file.writestr(f"samples/{k}.json", json.dumps(sample))
    else:
        path.write_text(json.dumps(log, indent=1))
    found = read_scores(path)
    assert means(found) == {"openai/gpt": pytest.approx((0.5 + 0.75 + 1) / 3)}
    assert found.n_missing == 1
    assert len(found.trials.score) == 5


def test_scorers_of_inspect(tmp_path):
    path = tmp_path / "log.json"
    path.write_text(json.dumps(inspect_log(["C", "I"], ("match", "model_graded"))))
    with pytest.raises(DataError, match="match, model_graded: name one"):
        read_scores(path)
    assert means(read_scores(path, score="match")) == {"openai/gpt": 0.5}
    path.write_text(json.dumps(inspect_log(["fine"])))
    with pytest.raises(DataError, match="'fine', which is neither a number nor"):
        read_scores(path)


def test_every_eval_ever(tmp_path):
    rows = [
        {"schema_version": "0.2.1", "evaluation_id": "e", "model_id": model, "evaluation_name": name,
         "sample_id": str(i), "interaction_type": "single_turn", "input": {"raw": "?", "reference": ["A"]},
         "output": {"raw": ["A"]}, "answer_attribution": [], "evaluation": {"score": score, "is_correct": bool(score)}}
        for model, score in (("x", 0.0), ("y", 1.0))
        for name in ("a", "b")
        for i in range(3)
    ]  # fmt: skip
    found = read_scores(lines(tmp_path / "instances.jsonl", rows))
    assert means(found) == {"x": 0.0, "y": 1.0}
    assert found.benchmark.names.tolist() == ["a", "b"]


def test_reports_of_swe_bench(tmp_path):
    for model, resolved, not_resolved in (("x", ["a", "b"], ["c"]), ("y", ["a"], ["d"])):
        report = {"total_instances": 4, "resolved_ids": resolved, "unresolved_ids": not_resolved, "error_ids": []}
        (tmp_path / f"{model}.run.json").write_text(json.dumps(report))
    found = read_scores([tmp_path / "x.run.json", tmp_path / "y.run.json"])
    assert means(found) == {"x": 0.5, "y": 0.25}
    assert "3 scores of items that a report does not name" in found.notes[0]
    old = tmp_path / "20240101_agent" / "results" / "results.json"
    old.parent.mkdir(parents=True)
    old.write_text(json.dumps({"no_generation": ["c"], "no_logs": [], "resolved": ["a", "b"]}))
    assert means(read_scores(old)) == {"20240101_agent": pytest.approx(2 / 3)}


def test_results_of_tau_bench(tmp_path):
    path = tmp_path / "gpt-4o.json"
    rewards = [{"task_id": t, "trial": k, "reward": float(t <= k), "info": {}} for t in (0, 1) for k in (0, 1)]
    path.write_text(json.dumps(rewards))
    found = read_scores(path)
    assert means(found) == {"gpt-4o": 0.75}
    assert jaxeval.pass_hat_k(found, 2)["score"].item() == 0.5
    runs = [
        {"task_id": "a", "trial": 0, "reward_info": {"reward": 1.0}},
        {"task_id": "b", "trial": 0, "reward_info": None},
    ]
    path.write_text(json.dumps({"info": {"agent_info": {"llm": "claude"}}, "simulations": runs}))
    found = read_scores(path)
    assert means(found) == {"claude": 1.0}
    assert found.n_missing == 1


def test_results_of_hal(tmp_path):
    for agent, done, missed, cost in (("agent x", ["t1", "t2"], ["t3"], 6.0), ("agent y", ["t1"], ["t2", "t3"], None)):
        config = {"agent_name": agent, "benchmark_name": "gaia"}
        results = {"accuracy": len(done) / 3, "successful_tasks": done, "failed_tasks": missed, "total_cost": cost}
        document = {"config": config, "results": results, "raw_eval_results": {}}
        (tmp_path / f"{agent[-1]}.json").write_text(json.dumps(document))
    found = read_scores([tmp_path / "x.json", tmp_path / "y.json"])
    assert means(found) == {"agent x": pytest.approx(2 / 3), "agent y": pytest.approx(1 / 3)}
    assert [*found.benchmark.names] == ["gaia"]
    costs = read_scores(tmp_path / "x.json", score="cost")
    assert means(costs) == {"agent x": 2.0}
    with pytest.raises(DataError, match=r"y.json: .*no total_cost"):
        read_scores(tmp_path / "y.json", score="cost")
    (tmp_path / "x.json").write_text(json.dumps({"config": {}, "results": {"accuracy": 1}, "raw_eval_results": {}}))
    with pytest.raises(DataError, match=r"x.json: the results of HAL do not list successful_tasks, failed_tasks"):
        read_scores(tmp_path / "x.json")


@pytest.mark.parametrize("sample", [7, {"id": 1, "scores": 3}, {"id": 1, "scores": {"match": 1}}])
def test_damaged_logs_of_inspect(tmp_path, sample):
    log = inspect_log(["C", "I"])
    log["samples"].append(sample)
    (tmp_path / "log.json").write_text(json.dumps(log))
    with pytest.raises(DataError, match=r"log.json: sample 3 of the log is no object with scores"):
        read_scores(tmp_path / "log.json")


@pytest.mark.parametrize("simulation", [7, {"reward_info": 3}, {"reward_info": {"reward": "much"}}])
def test_damaged_results_of_tau_bench(tmp_path, simulation):
    (tmp_path / "tau.json").write_text(json.dumps({"simulations": [simulation]}))
    with pytest.raises(DataError, match=r"tau.json: a simulation of the results is no object"):
        read_scores(tmp_path / "tau.json")


def test_other_documents_are_refused(tmp_path):
    path = tmp_path / "odd.json"
    path.write_text(json.dumps({"results": {"arc": 0.5}}))
    with pytest.raises(DataError, match=r"odd.json: .*keys results, which no known harness writes"):
        read_scores(path)
    path = tmp_path / "odd.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a.txt", "?")
    with pytest.raises(DataError, match="unknown file type"):
        read_scores(path)
    LONG.drop(columns="score").to_csv(tmp_path / "none.csv", index=False)
    with pytest.raises(DataError, match=r"none.csv: no column 'score'"):
        read_scores(tmp_path / "none.csv")


def test_missing_scores_stay_missing(tmp_path):
    LONG.assign(score=[1.0, np.nan, 1.0, 1.0]).to_csv(tmp_path / "s.csv", index=False)
    assert read_scores(tmp_path / "s.csv").n_missing == 1


@pytest.mark.parametrize("text", ["model,item,score\nälpha,1,1\n", "mödel,item,score\nx,1,1\n"])
def test_a_file_that_is_not_utf_8(tmp_path, text):
    path = tmp_path / "scores.csv"
    path.write_bytes(text.encode("latin-1"))
    told = rf"scores.csv: line {2 - ('ö' in text)} is not UTF-8, the byte 0x\w\w: save the file as UTF-8, as by iconv"
    with pytest.raises(DataError, match=told):
        read_scores(path)
    for command in ("scores", "agreement"):
        found = run(command, path)
        assert found.exit_code == 1
        assert re.match(f"Error: {told}", found.output)


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ([[1], [0], [1], [1]], r"[1] (first in row 0; rows count from 0): write one number"),
        ([None, [0], [], [1, 2]], r"[0] (first in row 1; rows count from 0): write one number"),
        ([{"acc": 1}] * 4, "{'acc': 1} (first in row 0; rows count from 0): write one number, or name a field of the "
         "objects in a file by its path, COLUMN.acc"),
    ],
)  # fmt: skip
def test_scores_that_are_lists_or_objects(tmp_path, scores, words):
    path = lines(
        tmp_path / "s.jsonl", [{**row, "score": x} for row, x in zip(LONG.to_dict("records"), scores, strict=True)]
    )
    for command in (["scores"], ["compare-scores", "x", "y"]):
        found = said(*command, path, code=1)
        assert "s.jsonl: column 'score' is not numeric" in found
        assert words in found


def test_a_field_of_objects_in_a_small_file_is_a_score(tmp_path):
    rows = [{"model": row.model, "item": row.item, "result": {"acc": row.score}} for row in LONG.itertuples()]
    path = lines(tmp_path / "s.jsonl", rows)
    assert means(read_scores(path, score="result.acc")) == {"x": 0.5, "y": 1.0}
    assert "within 'result' there are 'result.acc'" in said("scores", path, "--score", "result.ac", code=1)


@pytest.mark.parametrize("name", ["NULL", "None", "NA", "nan"])
def test_words_for_gaps_are_names_of_models(name, tmp_path):
    rows = [{"model": model, "item": item, "score": item % 2} for model in (name, "x") for item in range(4)]
    pd.DataFrame(rows).to_csv(csv := tmp_path / "scores.csv", index=False)
    pd.DataFrame(rows).to_parquet(parquet := tmp_path / "scores.parquet")
    (lines := tmp_path / "scores.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for path in (csv, parquet, lines):
        assert {*read_scores(path).models} == {name, "x"}
    pd.DataFrame([(name, "x", "A"), ("x", name, "B")], columns=["model_a", "model_b", "winner"]).to_csv(
        csv, index=False
    )
    assert {*read_battles(csv).models} == {name, "x"}
    csv.write_text("model,item,score\n,1,1\nx,1,0\n")
    with pytest.raises(DataError, match="column 'model' has 1 missing value"):
        read_scores(csv)
