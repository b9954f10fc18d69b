"""Files that real harnesses wrote, with models that answer at random: Inspect 0.3.285, lm-evaluation-harness 0.4.13."""

import json
import shlex
import shutil
import zipfile
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from command_line import said

from jaxeval import DataError, pass_at_k, read_scores

LOGS = Path(__file__).with_name("logs")
INSPECT, LM_EVAL = LOGS / "inspect", LOGS / "lm_eval"


def means(scores):
    return scores.means.iloc[:, 0].to_dict()


def inspect_log(folder, name, model="m", value="C", status="success", n=2, first=0, **run):
    """Write a log of samples with one score."""
    samples = [{"id": k, "epoch": 1, "scores": {"match": {"value": value}}} for k in range(first, first + n)]
    log = {"status": status, "eval": {"task": "t", "model": model, **run}, "samples": samples}
    path = folder / f"{name}.json"
    path.write_text(json.dumps(log))
    return path


def line_of(path):
    """The line to type for a file or folder, as words."""
    return shlex.split(next(line for line in said(path).splitlines() if line.startswith("  jaxeval ")))[1:]


class TestInspect:
    def test_the_line_of_a_folder_is_of_all_logs(self, tmp_path):
        """One ended in an error, without samples; tasks have scorers of their own."""
        failed = inspect_log(tmp_path, "a", status="error", n=0)
        failed.write_text(json.dumps({k: x for k, x in json.loads(failed.read_text()).items() if k != "samples"}))
        assert "There are no results: the log has no scores of samples." in said(failed)
        inspect_log(tmp_path, "b")
        other = inspect_log(tmp_path, "c", task="u")
        other.write_text(other.read_text().replace('{"match": ', '{"f1": {"value": 0.5}, "exact": '))
        assert line_of(tmp_path)[2:] == ["--score", "match,f1"]
        printed = said(*line_of(tmp_path))
        assert "m has a score of 0.750" in printed
        assert "left out: a.json: the log has no scores of samples (status 'error'" in printed

    def test_a_folder_of_logs(self):
        found = read_scores(INSPECT)
        assert means(found) == {"mockllm/large": pytest.approx(26 / 32), "mockllm/small": pytest.approx(13 / 32)}
        assert (len(found.items), found.benchmark.names.tolist()) == (16, ["products", "sums"])
        assert len(found.trials.score) == 64
        assert found.notes == ("sums, products: the skill of guess differs: 0.8 (mockllm/large), 0.4 (mockllm/small)",)

    def test_the_line_of_a_log_with_an_error_runs(self, tmp_path):
        path = inspect_log(tmp_path, "a", n=4)
        log = json.loads(path.read_text())
        log["samples"][1] = {"id": 1, "epoch": 1, "error": {"message": "time ran out"}}
        path.write_text(json.dumps(log))
        assert line_of(path) == ["scores", str(path), "--missing", "available"]
        printed = said(*line_of(path))
        assert "m has a score of 1.000" in printed
        assert "m, t: 1 sample of 4 ended in an error and has no score" in printed

    @pytest.mark.parametrize(
        "damage", [{"config": [1]}, {"config": "x"}, {"task_version": [1]}, {"task_id": ["a"]}, {"task_args": "shots"}]
    )
    def test_what_a_log_says_of_itself_may_be_of_any_kind(self, damage, tmp_path):
        one = inspect_log(tmp_path, "a", created="1", **damage)
        assert means(read_scores(one)) == {"m": 1}
        inspect_log(tmp_path, "b", value="I", created="2", **damage)
        assert means(read_scores(tmp_path)) == {"m": 0 if "task_id" in damage else 0.5}

    @pytest.mark.parametrize("known", [{}, {"task_id": "a"}])
    def test_a_copy_of_a_log_is_no_trial(self, known, tmp_path):
        for name in "ab":
            inspect_log(tmp_path, name, **known)
        with pytest.raises(DataError, match="two logs of m, t are copies of each other: drop the copies"):
            read_scores(tmp_path)

    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [("model", ["m"], "the model of the log is no name"), ("task", {}, "the task of the log is no name")],
    )
    def test_names_that_are_none(self, name, value, message, tmp_path):
        with pytest.raises(DataError, match=message):
            read_scores(inspect_log(tmp_path, "a", **{name: value}))

    def test_epochs_that_are_no_numbers(self, tmp_path):
        path = inspect_log(tmp_path, "a")
        path.write_text(path.read_text().replace('"epoch": 1', '"epoch": "x"'))
        with pytest.raises(DataError, match="sample 1 of the log has the epoch 'x', which is no number"):
            read_scores(path)

    def test_means_are_those_of_its_results(self):
        """Accuracy by task, as Inspect itself states it in the header: both of the larger model."""
        for path in INSPECT.iterdir():
            with zipfile.ZipFile(path) as archive:
                assert {entry.compress_type for entry in archive.infolist()} == {93}  # Zstandard
        one = next(path for path in sorted(INSPECT.iterdir()) if "_sums_26V" in path.name)
        assert means(read_scores(one)) == {"mockllm/large": 0.875}

    def test_the_commands(self):
        assert said("scores", INSPECT).startswith("mockllm/large is first with 0.812")
        assert "mockllm/large is above mockllm/small: difference +0.406" in said(
            "compare-scores", "mockllm/large", "mockllm/small", INSPECT
        )
        assert f"jaxeval scores {INSPECT}" in said(INSPECT)

    def test_damage(self, tmp_path):
        whole = next(iter(sorted(INSPECT.iterdir()))).read_bytes()
        path, found = tmp_path / "log.eval", 0
        good = means(read_scores(next(iter(sorted(INSPECT.iterdir())))))
        for at in range(500, len(whole), len(whole) // 60):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
            try:
                assert means(read_scores(path)) == good  # where nothing is read
            except DataError as error:
                found += "log.eval" in str(error)
        path.write_bytes(whole[:-3000])
        with pytest.raises(DataError, match=r"log.eval"):
            read_scores(path)
        assert found > 3

    def test_errors_and_stopped_runs_are_told(self, tmp_path):
        log = {
            "status": "cancelled",
            "invalidated": True,
            "eval": {"task": "t", "model": "m", "dataset": {"samples": 4}, "config": {"epochs": 1}},
            "samples": [
                {"id": 1, "epoch": 1, "scores": {"match": {"value": "C"}}},
                {"id": 0, "epoch": 1, "scores": {"match": {"value": "I"}}},
                {"id": 2, "epoch": 1, "scores": {}, "error": {"message": "?"}},
                {"id": 3, "epoch": 1, "scores": None},
            ],
        }
        path = tmp_path / "log.json"
        path.write_text(json.dumps(log))
        found = read_scores(path)
        assert found.n_missing == 2
        assert found.notes == (
            "m, t: the evaluation did not finish (status 'cancelled', 4 of 4 samples)",
            "m, t: 1 sample of 4 ended in an error and has no score",
            "m, t: 1 sample of 4 has no score",
            "m, t: the log is marked as invalidated",
        )
        assert "m, t: 1 sample of 4 ended in an error" in said("scores", path, "--missing", "available", "--full")
        path.write_text(json.dumps({**log, "samples": log["samples"][2:]}))
        with pytest.raises(DataError, match=r"no scores of samples \(status 'cancelled', 2 of 4 samples\)"):
            read_scores(path)

    def test_logs_of_one_task(self, tmp_path):
        """What a later log took up again is left out; other logs are trials; what is unlike is told."""

        write = partial(inspect_log, tmp_path)
        write("1", value="I", status="cancelled", task_id="x", created="2026-11-28T01:00")
        write("2", task_id="x", created="2026-11-28T02:00")
        write("3", value="I", task_id="y", created="2026-11-28T03:00")
        write("4", "other", n=0, status="error")
        write("5", "other", task_version=2)
        found = read_scores(tmp_path)
        assert means(found) == {"m": 0.5, "other": 1.0}
        left = "left out: 4.json: the log has no scores of samples (status 'error', 0 samples): use a log of a finished"
        assert found.notes[0].startswith(left)
        assert found.notes[1:] == (
            "m, t: 1 log left out, of a task that was taken up again in another one",
            "m, t: 2 logs, whose epochs are trials of the samples that they share",
            "t: the version differs: 0 (m), 2 (other)",
        )
        gate = said("compare-scores", "m", "other", tmp_path, "--margin", 0.1, "--gate", code=2)
        assert "warning: t: the version differs: 0 (m), 2 (other)" in gate
        write("3", task_args={"shots": 1})
        with pytest.raises(DataError, match="logs of m, t have the same samples and other task_args"):
            read_scores(tmp_path)

    def test_a_run_that_was_stopped_has_a_journal(self, tmp_path):
        path = tmp_path / "log.eval"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("_journal/start.json", json.dumps({"eval": {"task": "t", "model": "m"}}))
            for k in (1, 2):
                sample = {"id": k, "epoch": 1, "scores": {"match": {"value": "C"}}}
                archive.writestr(f"_journal/summaries/{k}.json", json.dumps([sample]))
        found = read_scores(path)
        assert means(found) == {"m": 1.0}
        assert found.notes == ("m, t: the evaluation did not finish (status 'started', 2 samples)",)

    def test_a_scorer_of_several_values(self, tmp_path):
        value = {"value": {"exact": 1, "partial": 0.5}}
        log = {"eval": {"task": "t", "model": "m"}, "samples": [{"id": 1, "epoch": 1, "scores": {"own": value}}]}
        path = tmp_path / "log.json"
        path.write_text(json.dumps(log))
        with pytest.raises(DataError, match=r"scores by own\.exact, own\.partial: name one scorer"):
            read_scores(path)
        assert means(read_scores(path, score="own.partial")) == {"m": 0.5}
        assert f"jaxeval scores {path} --score own.exact\n" in said(path)

    def test_of_stopped_logs_of_a_task_that_with_most_scores_counts(self, tmp_path):
        write = partial(inspect_log, tmp_path, task_id="x", status="cancelled")
        write("1", value="I", n=10, created="2026-11-28T01:00")
        write("2", n=2, created="2026-11-28T02:00")
        assert means(read_scores(tmp_path)) == {"m": 0.0}
        write("3", n=12, created="2026-11-28T03:00")  # took up the ten
        assert means(read_scores(tmp_path)) == {"m": 1.0}
        write("4", value="P", n=1, created="2026-11-28T00:00", status="success")
        assert means(read_scores(tmp_path)) == {"m": 0.5}

    def test_logs_of_other_samples_are_parts(self, tmp_path):
        inspect_log(tmp_path, "1", created="2026-11-28T01:00")
        inspect_log(tmp_path, "2", first=2, created="2026-11-28T02:00", model_args={"dtype": "half"})
        found = read_scores(tmp_path)
        assert len(found.items) == 4
        assert found.notes == (
            "m, t: 2 logs, parts with samples of their own",
            "t: the model argument dtype differs: none (m), half (m)",
        )

    def test_what_is_unlike(self, tmp_path):
        """Arguments of tasks are compared, versions of any type; a number is like its text."""
        inspect_log(tmp_path, "1", task_version={"b": 1, "a": 2}, task_args={"shots": 1, "order": "1"})
        inspect_log(tmp_path, "2", "other", task_version={"a": 2, "b": 1}, task_args={"shots": 5, "order": 1})
        assert read_scores(tmp_path).notes == ("t: the argument shots differs: 1 (m), 5 (other)",)

    def test_what_models_were_told(self, tmp_path):
        """Solvers, settings and arguments of models are compared; how calls travel, and secrets, are not."""
        prompt = "You are a helpful assistant who answers "
        for name, said_last, hot, arguments in (("a", "briefly.", 0.0, {"api_key": "x"}), ("b", "at length.", 1, {})):
            path = inspect_log(tmp_path, name, name, model_args=arguments, model_generate_config={"temperature": hot})
            log = json.loads(path.read_text())
            steps = [{"solver": "system_message", "params": {"template": prompt + said_last}}, {"solver": "generate"}]
            config = {"max_tokens": 512, "max_connections": hot, "top_p": None}
            asked = {"input": "2 + 2?", "target": "4"}
            samples = [log["samples"][0] | asked, log["samples"][1] | asked | {"input": name}]
            path.write_text(json.dumps(log | {"plan": {"steps": steps, "config": config}, "samples": samples}))
        assert read_scores(tmp_path).notes == (
            "t: the template of system_message differs: ...o answers briefly. (a), ...o answers at length. (b)",
            "t: the setting temperature differs: 0 (a), 1 (b)",
            "t: 1 of 2 samples with one id asks something else, or has another target, in another run: are these runs "
            "of one task?",
        )
        told = said("compare-scores", tmp_path / "a.json", tmp_path / "b.json")
        assert "the setting temperature differs: 0 (a), 1 (b)" in told

    @pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    def test_other_compressions(self, tmp_path, method):
        log = json.loads(inspect_log(tmp_path, "1").read_text())
        path = tmp_path / "log.eval"
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr("header.json", json.dumps({"eval": log["eval"]}))
            archive.writestr("summaries.json", json.dumps(log["samples"]))
        if method == zipfile.ZIP_BZIP2:
            assert means(read_scores(path)) == {"m": 1.0}
        else:
            with pytest.raises(DataError, match=r"header.json is compressed by LZMA, which is not read: pack the log"):
                read_scores(path)


class TestLmEval:
    def test_the_output_folder(self):
        found = read_scores(LM_EVAL, score="acc")
        assert means(found) == {"acme/m1": 0.25, "acme/m2": 0.4375}
        assert found.benchmark.names.tolist() == ["colours", "numbers"]
        assert found.notes == ()

    def test_means_are_those_of_its_results(self):
        for path in LM_EVAL.rglob("results_*.json"):
            stated = json.loads(path.read_text())
            scores = read_scores(path.parent, score="acc_norm").means.iloc[:, 0]
            assert scores.index.tolist() == [stated["model_name"]]
            both = [own["acc_norm,none"] for own in stated["results"].values()]
            assert scores.iloc[0] == pytest.approx(sum(both) / 2)

    def test_what_is_unlike(self, tmp_path):
        shutil.copytree(LM_EVAL, tmp_path / "out")
        (path,) = (tmp_path / "out" / "acme__m1").glob("results_*")
        stated = json.loads(path.read_text())
        stated["n-shot"]["numbers"], stated["configs"]["numbers"]["generation_kwargs"] = 5, {"temperature": 0.7}
        stated["config"]["model_args"] = "pretrained=acme/m1,dtype=half"
        path.write_text(json.dumps(stated | {"system_instruction": "Be brief."}))
        (samples,) = (tmp_path / "out" / "acme__m1").glob("samples_colours_*")
        lines = [json.loads(line) for line in samples.read_text().splitlines()]
        lines[0]["doc_hash"] = "other"
        samples.write_text("\n".join(map(json.dumps, lines)))
        assert read_scores(tmp_path / "out", score="acc").notes == (
            "colours, numbers: the system instruction differs: Be brief. (acme/m1), none (acme/m2)",
            "colours, numbers: the model argument dtype differs: half (acme/m1), none (acme/m2)",
            "numbers: the number of shots differs: 5 (acme/m1), 0 (acme/m2)",
            "numbers: the setting temperature differs: 0.7 (acme/m1), none (acme/m2)",
            f"colours: 1 of {len(lines)} samples with one id asks something else, or has another target, in another "
            "run: are these runs of one task?",
        )

    def test_the_commands(self):
        assert said("scores", LM_EVAL, "--score", "acc_norm,acc").startswith("acme/m1 is first with 0.375")
        assert "acme/m2" in said("compare-scores", "acme/m2", "acme/m1", LM_EVAL, "--score", "acc")
        assert f"jaxeval scores {LM_EVAL}" in said(LM_EVAL)

    def test_the_line_of_tasks_with_other_metrics_and_filters(self, tmp_path):
        shutil.copytree(LM_EVAL, tmp_path / "out")
        (samples,) = (tmp_path / "out" / "acme__m1").glob("samples_numbers*")
        rows = [json.loads(line) for line in samples.read_text().splitlines()]
        for row in rows:
            row["exact_match"] = row.pop("acc") + 0 * row.pop("acc_norm")
        rows = [{**row, "filter": name} for name in ("strict", "loose") for row in rows]
        for model in ("acme__m1", "acme__m2"):
            text = "\n".join(map(json.dumps, rows))
            (tmp_path / "out" / model / samples.name.replace("numbers", "words")).write_text(text)
        assert line_of(tmp_path / "out")[2:] == ["--score", "acc,exact_match", "--filter", "none,strict"]
        assert "3 benchmarks" in said(*line_of(tmp_path / "out"))

    def test_a_task_without_samples_is_told(self, tmp_path):
        shutil.copytree(LM_EVAL / "acme__m1", tmp_path / "out" / "acme__m1")
        for path in (tmp_path / "out").rglob("samples_numbers*"):
            path.unlink()
        found = read_scores(tmp_path / "out", score="acc")
        assert found.benchmark.names.tolist() == ["colours"]
        assert found.notes == (
            "acme/m1, numbers: no samples, only acc 0.125 (standard error 0.125), acc_norm 0.375 (standard error "
            "0.183)",
        )
        for path in (tmp_path / "out").rglob("samples_*"):
            path.unlink()
        with pytest.raises(DataError, match=r"means of tasks and no samples \(acme/m1, colours.*--log_samples"):
            read_scores(tmp_path / "out", score="acc")

    def test_results_without_samples(self, tmp_path):
        """Means and their errors are shown; nothing is compared."""
        for model in ("m1", "m2"):
            (tmp_path / f"acme__{model}").mkdir()
            for path in (LM_EVAL / f"acme__{model}").glob("results_*"):
                shutil.copy(path, tmp_path / f"acme__{model}")
        out = tmp_path / "out.csv"
        said("scores", tmp_path, "--out", out)
        table = pd.read_csv(out).set_index(["model", "benchmark", "metric"])
        assert {*table.index.get_level_values(0)} == {"acme/m1", "acme/m2"}
        row = table.loc["acme/m1", "numbers", "acc"]
        assert (row["score"], row["standard_error"]) == pytest.approx((0.125, 0.125))
        assert row["upper"] == pytest.approx(0.125 + 1.959964 * 0.125)
        out.unlink()
        text = said("scores", tmp_path)
        assert text.startswith("there are no samples: models are not compared, and have no ranks")
        assert "--log_samples" in text
        assert f"jaxeval scores {tmp_path}" in said(tmp_path)

    def test_a_later_run_replaces_an_earlier_one(self, tmp_path):
        shutil.copytree(LM_EVAL / "acme__m1", tmp_path / "acme__m1")
        for path in (tmp_path / "acme__m1").glob("samples_*"):
            later = path.with_name(path.name.replace("T17-17-47", "T18-17-47"))
            later.write_text(path.read_text().replace('"acc": 0.0', '"acc": 1.0'))
        found = read_scores(tmp_path, score="acc")
        assert means(found) == {"acme/m1": 1.0}
        assert found.notes[0].startswith("2 files of samples left out, as a later run")


def test_tests_of_applications(tmp_path):
    """A metric of Ragas, and one of DeepEval, in the files that they write; a file is a model."""
    ragas = pd.DataFrame({"user_input": [*"pqr"], "response": "x", "faithfulness": [1, 0.5, 0], "recall": [1, 1, 0]})
    ragas.to_csv(path := tmp_path / "m.csv", index=False)
    assert line_of(path)[-2:] == ["--score", "faithfulness"]
    assert means(read_scores(path, score="faithfulness")) == {"m": 0.5}
    cases = [{"input": x, "metricsData": [{"name": "G", "score": s}, {"name": "H"}]} for x, s in (("p", 1), ("q", 0))]
    (path := tmp_path / "run.json").write_text(json.dumps({"testCases": cases, "testPassed": 1}))
    assert line_of(path)[-2:] == ["--score", "G"]
    assert means(read_scores(path, score="G")) == {"run": 0.5}
    with pytest.raises(DataError, match="no metric 'F'; the samples have the metrics G, H"):
        read_scores(path, score="F")


def test_lighteval(tmp_path):
    """Details of both ways to write them; its results alone have no samples."""
    folder = tmp_path / "details" / "org" / "m" / "2025-01-01T10-00-00.5"
    folder.mkdir(parents=True)
    rows = [{"doc": {"query": q, "id": q}, "model_response": {"text": ["x"]}, "metric": {"em": s, "f1": 0.5}}
            for q, s in (("p", 1.0), ("q", 0.0))]  # fmt: skip
    pd.DataFrame(rows).to_parquet(path := folder / "details_lighteval|gsm8k|0_2025-01-01T10-00-00.5.parquet")
    assert line_of(tmp_path)[-2:] == ["--score", "em"]
    found = read_scores(path, score="em")
    assert means(found) == {"org/m": 0.5}
    assert [*found.benchmark.names] == ["lighteval|gsm8k|0"]
    rows = [{"example": q, "predictions": ["x"], "metrics": {"em": 1.0}} for q in "pq"]
    pd.DataFrame(rows).to_parquet(path := tmp_path / "details_arc_2024-01-01T10-00-00.5.parquet")
    assert [*means(read_scores(path)).values()] == [1]
    keys = ("config_general", "results", "versions", "config_tasks", "summary_tasks")
    (path := tmp_path / "results.json").write_text(json.dumps({key: {} for key in keys}))
    assert "correct it first: results of lighteval have means of tasks and no samples" in said(path)
    rows = [{"doc": {"id": q}, "model_response": "x", "metric": {"em": 1.0}} for q in "pq"]
    pd.DataFrame(rows).to_parquet(path := tmp_path / "other.parquet")
    with pytest.raises(DataError, match="a doc is no object with a query"):
        read_scores(path)
    rows = [{"model": m, "doc": q, "model_response": "x", "metric": 1} for m in "xy" for q in "pq"]
    pd.DataFrame(rows).to_csv(path := tmp_path / "table.csv", index=False)  # of somebody who names columns so
    assert means(read_scores(path, item="doc", score="metric")) == {"x": 1, "y": 1}


def test_evalplus(tmp_path):
    status = [("pass", "pass"), ("pass", "timeout"), ("fail", "pass")]
    new = {"t": [{"task_id": "t", "solution": "", "base_status": a, "plus_status": b} for a, b in status]}
    old = {"t": {"nfiles": 2, "base": [["success", []], ["failed", []]], "plus": []}}
    for tasks, plus, base in ((new, 1 / 3, 2 / 3), (old, 1 / 2, 1 / 2)):
        (path := tmp_path / "m.json").write_text(json.dumps({"date": "2024", "hash": "h", "eval": tasks}))
        assert line_of(path) == ["scores", str(path)]
        assert means(read_scores(path)) == {"m": pytest.approx(plus)}
        assert means(read_scores(path, score="base")) == {"m": pytest.approx(base)}
    path.write_text(json.dumps({"date": "2024", "hash": "h", "eval": {"t": [{}]}}))
    with pytest.raises(DataError, match="expected results of EvalPlus"):
        read_scores(path)


def test_langfuse(tmp_path):
    kinds = [("right", "BOOLEAN"), ("tone", "CATEGORICAL")]
    rows = [
        {"traceId": f"t{k}", "name": name, "dataType": kind, "value": k % 2, "datasetRunId": ["r1", "r2"][k // 2 % 2]}
        for k in range(8) for name, kind in kinds
    ]  # fmt: skip
    pd.DataFrame(rows).to_csv(path := tmp_path / "scores.csv", index=False)
    assert line_of(path)[2:] == ["--missing", "available"]
    assert means(read_scores(path)) == {"r1": 0.5, "r2": 0.5}
    pd.DataFrame(rows).drop(columns="datasetRunId").to_csv(path, index=False)
    assert line_of(path)[2:] == []
    assert means(read_scores(path)) == {"scores": 0.5}
    of_traces = pd.DataFrame(rows).assign(datasetRunId=None)
    of_runs = of_traces[:2].assign(traceId=None, datasetRunId="r1", name="right", dataType="NUMERIC")
    pd.concat([of_traces, of_runs]).to_csv(path, index=False)  # a score is of a trace, a session or a run
    assert line_of(path)[2:] == []
    assert means(found := read_scores(path)) == {"scores": 0.5}
    assert "left out: 2 scores of sessions or runs, which name no trace" in found.notes


def test_counts_of_right_samples(tmp_path):
    """The estimator of pass@k from n samples and c right ones is that of their trials."""
    table = pd.DataFrame({"task": [*"pqpq"], "model": [*"aabb"], "n": [4, 4, 4, 4], "c": [1, 4, 0, 2]})
    table.to_csv(path := tmp_path / "counts.csv", index=False)
    scores = read_scores(path)
    assert means(scores) == {"a": 0.625, "b": 0.25}
    found = pass_at_k(scores, 2).set_index("model")["score"]
    assert found.to_dict() == pytest.approx({"a": (0.5 + 1) / 2, "b": (0 + 5 / 6) / 2})
    assert "Pass@2" in said("scores", path, "--pass-at", "2")
    table.assign(c=5).to_csv(path, index=False)
    with pytest.raises(DataError, match="no more samples are right than there are, in column 'n'; 4 values are wrong"):
        read_scores(path)


@pytest.mark.parametrize(
    ("marks", "beside"),
    [("user_input,response", "human,judge"), ("task,n,c", "model,item,score"), ("task,n,c", "model_a,model_b,winner")],
)
def test_tables_with_the_columns_of_tests_besides_judgments(tmp_path, marks, beside):
    """They are read by their judgments."""
    names = f"{marks},{beside}".split(",")
    values = {"model_a": "a", "model_b": "b", "winner": "model_a", "model": "m", "n": 4, "c": 2, "response": "x"}
    table = pd.DataFrame({name: [values.get(name, k % 2) for k in range(4)] for name in names})
    table.assign(**{names[0]: range(4)}).to_csv(path := tmp_path / "m.csv", index=False)
    assert "told by" not in said(path)


def test_a_leaderboard_of_win_rates_is_no_judgments(tmp_path):
    path = tmp_path / "leaderboard.csv"
    path.write_text(
        ",win_rate,n_wins,n_wins_base,n_draws,n_total\ngpt,57.4,462,331,12,805\nllama,20.4,160,633,12,805\n"
    )
    assert "It is AlpacaEval's leaderboard: win rates that were counted, without the judgments" in said(path)


def test_further_columns_of_helm(tmp_path):
    """Columns beside the statistics are there for slices, and of perturbed instances none counts."""
    stats = [[{"name": {"name": "exact_match"}, "mean": float(k > 0)}] for k in range(4)]
    rows = [{"instance_id": f"id{k}", "topic": "ab"[k % 2], "stats": stats[k]} for k in range(4)]
    rows[3]["perturbation"] = {"name": "typos"}
    path = tmp_path / "per_instance_stats.json"
    path.write_text(json.dumps(rows))
    scores = read_scores(path, keep=["topic"])
    assert means(scores) == {tmp_path.name: pytest.approx(2 / 3)}
    topics = scores.columns["topic"]
    assert topics.levels[topics.number].tolist() == [*"aba"]


def evals_log(path, model, correct, finished=True, **spec):
    """Write a log of OpenAI's evals; what was asked is text or a list, and one sample has no match."""
    lines = [{"spec": {"completion_fns": [model], "eval_name": "sums.dev.v0", "run_config": {}} | spec}]
    for k, right in enumerate(correct):
        event = {"run_id": "1", "sample_id": f"sums.dev.{k}", "created_by": "", "created_at": "2024-01-02 10:00:00"}
        prompt = "1+1=" if k % 2 else [{"role": "user", "content": "1+1="}]
        lines.append(event | {"event_id": 2 * k, "type": "sampling", "data": {"prompt": prompt, "sampled": ["2"]}})
        if right is not None:
            data = {"correct": right, "expected": "2" if k % 3 else ["2", "two"], "picked": "2" if right else None}
            lines.append(event | {"event_id": 2 * k + 1, "type": "match", "data": data})
    lines += [{"final_report": {"accuracy": 0.5}}] if finished else []
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return path


class TestEvals:
    def test_a_log(self, tmp_path):
        path = evals_log(tmp_path / "a.jsonl", "gpt-4", [True, True, True, False])
        assert line_of(path) == ["scores", str(path)]
        found = read_scores(path)
        assert (means(found), found.benchmark.names.tolist()) == ({"gpt-4": 0.75}, ["sums.dev.v0"])
        assert "gpt-4 has a score of 0.750" in said(*line_of(path))

    def test_a_folder_of_logs_and_a_run_again(self, tmp_path):
        evals_log(tmp_path / "a.jsonl", "x", [True, True], created_at="1")
        evals_log(tmp_path / "b.jsonl", "x", [True, False], created_at="2")
        old = {"completion_fns": None, "model_names": {"completions": ["y"]}, "model_name": "y"}
        evals_log(tmp_path / "c.jsonl", "", [False, False], **old)
        assert line_of(tmp_path) == ["scores", str(tmp_path)]
        found = read_scores(tmp_path)
        assert means(found) == {"x": 0.75, "y": 0}
        assert found.notes == ("x, sums.dev.v0: 2 logs, whose epochs are trials of the samples that they share",)

    def test_a_log_that_was_stopped(self, tmp_path):
        path = evals_log(tmp_path / "a.jsonl", "x", [True, False, None], finished=False)
        assert line_of(path) == ["scores", str(path), "--missing", "available"]
        printed = said(*line_of(path))
        assert "x has a score of 0.500" in printed
        assert "x, sums.dev.v0: the evaluation did not finish: it has no final_report" in printed
        assert "x, sums.dev.v0: 1 of 3 samples has no score" in printed

    def test_metrics_are_chosen(self, tmp_path):
        path = evals_log(tmp_path / "a.jsonl", "x", [True, False])
        event = {"run_id": "1", "event_id": 9, "type": "metrics", "data": {"f1_score": 0.25, "choice": "Y"}}
        more = [json.dumps(event | {"sample_id": f"sums.dev.{k}"}) for k in (0, 1)]
        path.write_text("\n".join([path.read_text().rstrip(), *more]))
        assert line_of(path)[2:] == ["--score", "correct"]
        assert means(read_scores(path, score="f1_score")) == {"x": 0.25}

    def test_no_matches(self, tmp_path):
        path = evals_log(tmp_path / "a.jsonl", "x", [None, None])
        assert "There are no results: the log has no scores of samples." in said(path)
        with pytest.raises(DataError, match=r"a.jsonl: the log of OpenAI's evals has no matches, and no metrics"):
            read_scores(path)

    def test_what_is_damaged(self, tmp_path):
        """A name in place of the list of models, events without a sample or data, and other things called so."""
        path = evals_log(tmp_path / "a.jsonl", "x", [True, False], completion_fns="gpt-4")
        path.write_text(path.read_text() + '{"event_id": 9, "sample_id": null, "type": "match", "data": null}\n')
        assert means(read_scores(path)) == {"gpt-4": 0.5}
        (tmp_path / "b.json").write_text('{"spec": 1, "events": [1, {"type": "match"}]}')
        assert "There are no results" in said(tmp_path / "b.json")
        (tmp_path / "c.jsonl").write_text(path.read_text() + "{broken")
        with pytest.raises(DataError, match=r"c.jsonl: line 8 cannot be read as JSON"):
            read_scores(tmp_path / "c.jsonl")


class TestUltraFeedback:
    @pytest.mark.parametrize(
        ("completions", "message"),
        [
            ([{"response": "..."}], "a completion is no object with a model"),
            ([{"model": "x"}], "no completion has an overall_score"),
        ],
    )
    def test_what_is_damaged(self, completions, message, tmp_path):
        row = {"instruction": "do", "models": ["x"], "completions": completions}
        (tmp_path / "a.jsonl").write_text(json.dumps(row))
        with pytest.raises(DataError, match=message):
            read_scores(tmp_path / "a.jsonl")

    def rows(self):
        def completion(model, overall, helpful):
            aspects = {"helpfulness": {"Rating": helpful, "Type": ["1"]}, "honesty": {"Rating": "3"}}
            return {"model": model, "response": "...", "overall_score": overall, "annotations": aspects}

        return [
            {"instruction": f"do {k}", "models": ["x", "y"], "source": "flan",
             "completions": [completion("x", 8.5, "4"), completion("y" if k else "z", 6.0, "N/A")]}
            for k in (0, 1, 1)
        ]  # fmt: skip

    def test_completions_are_scored(self, tmp_path):
        path = tmp_path / "ultra.jsonl"
        path.write_text("\n".join(map(json.dumps, self.rows())))
        assert line_of(path) == ["scores", str(path), "--missing", "available"]
        assert "x is first with 8.500" in said(*line_of(path))
        found = read_scores(path)
        assert means(found) == {"x": 8.5, "y": 6, "z": 6}
        assert (
            "scores of UltraFeedback are its overall_score; --score names another of overall_score, "
            "helpfulness, honesty" in found.notes
        )
        helpful = read_scores(path, score="helpfulness")
        assert means(helpful)["x"] == 4
        with pytest.raises(DataError, match="no metric 'fun'; the samples have the metrics overall_score"):
            read_scores(path, score="fun")
