"""Scores of models on items as evaluation harnesses write them, read as long tables: "model", "item", "score"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np

from jaxeval.data import harness_runs
from jaxeval.data.formats import Format, Source
from jaxeval.data.remote_names import FileName, base_name
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.plain_tables import PlainTable
from jaxeval.wording import counted, did_you_mean, named


def _renamed(columns: Mapping[str, str], further: Mapping[str, str] = {}) -> Callable[[Source], Any]:
    """Return the reader of a table with a row for each score, of ``columns`` and ``further`` ones by their names."""

    def read(source: Source) -> Any:
        frame = source.columns([*columns, *source.keep], [*further], nested=True, plain=True)
        return with_model(frame.rename(columns={**columns, **further}), source.name)

    return read


def with_model(frame: pd.DataFrame, name: FileName) -> pd.DataFrame:
    """Return the table with a column "model": by default the name of the file."""
    if "model" in frame:
        return frame
    return frame.assign(model=re.sub(r"(\.\w+)+$", "", base_name(name)))


def _lm_eval_results(source: Source) -> PlainTable:
    """Read files of results, which have no items: they name the models of samples, see `named_by_results`."""
    return PlainTable({"model": [], "item": [], "score": []}, {"results": source.document})


def _lm_eval_samples(source: Source) -> pd.DataFrame:
    """Read samples of a task; their folder is the model."""
    metric = metric_of(source.names, source.score)
    frame = source.columns(["doc_id", metric], ["filter", "doc_hash"], plain=True)
    frame = frame.rename(columns={"doc_id": "item", metric: "score", "doc_hash": "_document"})
    chosen, filters = source.output_filter, list[str]()
    if "filter" in frame:
        filters = list(dict.fromkeys(x for x in frame["filter"] if x is not None and x == x))
        if chosen is not None:
            wanted, chosen = chosen, harness_runs.first_named(chosen, filters)
            if chosen is None:
                raise DataError(f"no filter {wanted!r}; there are {named(filters)}{did_you_mean(wanted, filters)}")
            frame = frame[frame["filter"] == chosen]
        elif len(filters) > 1:
            raise DataError(f"the samples have the filters {named(filters)}: name one (output_filter=, --filter)")
        frame, chosen = frame.drop(columns="filter"), chosen or next(iter(filters), None)
    folder, task, _ = _source(source.name)
    frame = frame.assign(model=Path(folder).name.replace("__", "/", 1) or "model", benchmark=task)
    if "_document" in frame:
        frame["_document"] = [hash(text) for text in frame["_document"]]
    frame.attrs |= {"samples": True, "metric": metric, "filter": chosen if filters else None}
    return frame


def _lm_eval_choices(rows: pd.DataFrame) -> dict[str, list[str]]:
    filters = list(map(str, rows["filter"].dropna().unique())) if "filter" in rows else []
    return {"--score": metrics_of(list(rows)), "--filter": filters}


def _tau2(source: Source) -> pd.DataFrame:
    try:
        rows = [
            (run.get("task_id"), run.get("trial", 0), (run.get("reward_info") or {}).get("reward"))
            for run in source.document["simulations"]
        ]
        typed = [(str(item), trial, np.nan if score is None else float(score)) for item, trial, score in rows]
        frame = PlainTable.of_rows(typed, ["item", "trial", "score"])
    except (AttributeError, TypeError, ValueError) as error:
        raise DataError(
            "a simulation of the results is no object whose reward_info has a reward, which is a number: the file may "
            "be damaged"
        ) from error
    agent = ((source.document.get("info") or {}).get("agent_info") or {}).get("llm")
    return with_model(frame if agent is None else frame.assign(model=agent), source.name)


def _hal(source: Source) -> pd.DataFrame:
    """Return a run of an agent on a benchmark: tasks are items, right or wrong, or parts of the cost of a run."""
    config, results = source.document["config"], source.document["results"]
    lists = [results.get(name) if isinstance(results, Mapping) else None for name in _HAL_TASKS]
    parts = [part for part in lists if isinstance(part, list)]
    if not isinstance(config, Mapping) or len(parts) < len(lists):
        raise DataError(f"the results of HAL do not list {named(_HAL_TASKS)}: shares alone have no items to compare")
    rows = [(str(task), score) for part, score in zip(parts, (1.0, 0.0), strict=True) for task in part]
    frame = pd.DataFrame(rows, columns=["item", "score"])
    if source.score == "cost":
        spent = source.document.get("total_cost", results.get("total_cost"))
        if not isinstance(spent, int | float):
            raise DataError("the results of HAL have no total_cost, which is the score that was asked for")
        frame["score"] = spent / max(len(frame), 1)
    for column, name in (("model", "agent_name"), ("benchmark", "benchmark_name")):
        if config.get(name) is not None:
            frame[column] = str(config[name])
    return with_model(frame, source.name)


def _swe_bench(source: Source) -> pd.DataFrame:
    """Return the ids that a report names are its items; `score_files` adds the ids that it does not name."""
    resolved = source.document.get("resolved_ids", source.document.get("resolved"))
    lists = [x for x in source.document.values() if isinstance(x, list) and all(isinstance(y, str) for y in x)]
    if not isinstance(resolved, list):
        raise DataError("the report counts resolved items, but does not list their ids: use a report with resolved_ids")
    items = pd.Index(sorted({item for ids in lists for item in ids}))
    frame = pd.DataFrame({"item": items, "score": items.isin(resolved).astype(float)})
    path = Path(str(source.name))
    stem = path.parent.parent.name if path.parent.name == "results" else path.parent.name
    frame = frame.assign(model=stem) if path.stem in ("results", "report") else with_model(frame, source.name)
    frame.attrs["resolved"] = True
    return frame


def _judge_bench(source: Source) -> pd.DataFrame:
    """Read judges as models. The score is 1 where more of their decisions, one in each order, are right than wrong."""
    table = source.columns(["pair_id", "label", "judgments"], ["judge_name", "source"])
    flipped = {"A>B": "B>A", "B>A": "A>B"}
    rows = []
    for judgments, label in zip(table["judgments"], table["label"], strict=True):
        decisions = [None if one is None else one.get("decision") for one in judgments]
        decisions[1:] = [flipped.get(str(decision)) for decision in decisions[1:]]
        points = sum((decision == label) - (decision == flipped.get(str(label))) for decision in decisions)
        names = [
            one["judgment"].get("judge_model") for one in judgments if one and isinstance(one.get("judgment"), dict)
        ]
        rows.append((names[0] if names else None, float(points > 0)))
    judged = pd.DataFrame(rows, columns=["model", "score"])
    table = table.assign(score=judged["score"], model=judged["model"].ffill().bfill())
    if table["model"].isna().any():
        table["model"] = table.get("judge_name", pd.Series(base_name(source.name), table.index))
    return table.rename(columns={"pair_id": "item", "source": "benchmark"}).drop(columns=["label", "judgments"])


def _llm_bar(source: Source) -> pd.DataFrame:
    """Read judges as models, named by their folders. Their score is the share of orders in which they are right."""
    table = source.columns(["label", "results"])
    rows = []
    for results, label in zip(table["results"], table["label"], strict=True):
        last = results if isinstance(results, Mapping) else results[-1]  # of several rounds
        winners = [one.get("winner") for one in last.values() if isinstance(one, Mapping)]
        rows.append(sum(str(winner) == str(label) for winner in winners) / max(len(winners), 1))
    model = ", ".join(Path(str(source.name)).parent.parts[-2:]) or base_name(source.name)
    return pd.DataFrame({"item": table.index, "score": rows, "model": model})


def _reward_bench(source: Source) -> pd.DataFrame:
    try:
        frame = pd.DataFrame({name: source.document[key] for name, key in _OF_REWARDS.items()})
    except ValueError as error:
        raise DataError(f"the lists of ids, subsets and results differ in their lengths: {error}") from error
    return frame.assign(model=source.document["model"])


def _helm(source: Source) -> pd.DataFrame:
    """Read statistics by instance; the run's specification, in the same folder, names model and scenario."""
    table = source.columns(["instance_id", "stats"], ["train_trial_index", "perturbation"])
    if "perturbation" in table:
        table = table[table["perturbation"].isna()]
    scores = [{one["name"]["name"]: one.get("mean") for one in stats} for stats in table["stats"]]
    metrics = dict.fromkeys(name for row in scores for name in row)
    metric = metric_of(list(metrics), source.score or next((name for name in _HELM_METRICS if name in metrics), None))
    frame = table.drop(columns=["stats", "perturbation"], errors="ignore")
    frame = frame.rename(columns={"instance_id": "item", "train_trial_index": "trial"})
    frame["score"] = [row.get(metric) for row in scores]
    spec = harness_runs.document_of(source.paths[0].parent / "run_spec.json", 2**24) or {}
    folder = source.paths[0].parent.name
    frame["model"] = (spec.get("adapter_spec") or {}).get("model") or folder
    frame["benchmark"] = re.split(r",?model(_deployment)?=", str(spec.get("name", folder)))[0].rstrip(":,")
    frame.attrs["notes"] = [f"scores of HELM are its {metric}; --score names another of {named(list(metrics), 20)}"]
    return frame


def _promptfoo(source: Source) -> pd.DataFrame:
    """Read providers as models, test cases as items; runs that ended in an error have no score."""
    try:
        rows = [
            (run["testIdx"], run["promptIdx"], run["provider"].get("label") or run["provider"]["id"],
             np.nan if run.get("failureReason") == _PROMPTFOO_ERROR else run["score"])
            for run in source.document["results"]["results"]
        ]  # fmt: skip
    except (AttributeError, LookupError, TypeError) as error:
        raise DataError(
            f"a result has no testIdx, promptIdx, provider and score ({error}): expected promptfoo's"
        ) from error
    frame = pd.DataFrame(rows, columns=["item", "prompt", "model", "score"])
    if frame.groupby("model")["prompt"].nunique().gt(1).any():
        frame["model"] = frame["model"] + ", prompt " + (frame["prompt"] + 1).astype(str)
    frame["trial"] = frame.groupby(["model", "item"]).cumcount()
    return frame.drop(columns="prompt")


def _assessments(entries: Any) -> dict[str, Any]:
    """Return the valid assessments of a trace by name, the last one of each."""
    return {
        str(one.get("assessment_name") or one.get("name")): one["feedback"].get("value")
        for one in (() if entries is None else entries)
        if isinstance(one, Mapping) and one.get("feedback") and one.get("valid") is not False
    }


def _mlflow_choices(rows: pd.DataFrame) -> dict[str, list[str]]:
    return {"--score": list(dict.fromkeys(name for entries in rows["assessments"] for name in _assessments(entries)))}


def _mlflow(source: Source) -> pd.DataFrame:
    """Read traces that ask the same as one item; the last valid assessment of a name is the score."""
    table = source.columns(["trace_id", "assessments"], ["request", "trace_metadata"])
    scores = [_assessments(entries) for entries in table["assessments"]]
    metric = metric_of(list(dict.fromkeys(name for row in scores for name in row)), source.score)
    items = table["request"] if "request" in table else table["trace_id"]
    about = table["trace_metadata"] if "trace_metadata" in table else [{}] * len(table)
    models = [one.get("mlflow.modelId") if isinstance(one, Mapping) else None for one in about]
    frame = pd.DataFrame(
        {"item": items.map(str), "score": [harness_runs.as_score(row.get(metric)) for row in scores], "model": models}
    )
    frame["trial"] = frame.groupby(["model", "item"], dropna=False).cumcount()
    return frame if frame["model"].notna().all() else with_model(frame.drop(columns="model"), source.name)


def _events(log: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the events of a log of OpenAI's evals that are about a sample."""
    every = log["events"] if isinstance(log["events"], list) else []
    return [x for x in every if isinstance(x, Mapping) and x.get("sample_id") is not None and "type" in x]


def _in_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scores in an event: whether the answer matched, and metrics that are numbers."""
    data = event["data"] if isinstance(event.get("data"), Mapping) else {}
    if event["type"] == "metrics":
        return {name: value for name, value in data.items() if isinstance(value, bool | int | float)}
    return {"correct": data.get("correct")} if event["type"] == "match" else {}


def _evals_choices(log: Mapping[str, Any]) -> dict[str, list[str]]:
    return {"--score": list(dict.fromkeys(name for event in _events(log) for name in _in_event(event)))}


def _evals(source: Source) -> pd.DataFrame:
    """Read a sample as an item, each of its events with the score as a trial; without any its score is missing."""
    log, names = source.document, _evals_choices(source.document)["--score"]
    if not names:
        raise harness_runs.NoScoresError("the log of OpenAI's evals has no matches, and no metrics that are numbers")
    metric = metric_of(names, source.score)
    events = _events(log)
    scored = [(str(x["sample_id"]), harness_runs.as_score(values[metric])) for x in events
              if metric in (values := _in_event(x))]  # fmt: skip
    without = {str(x["sample_id"]) for x in events} - {item for item, _ in scored}
    frame = pd.DataFrame([*scored, *((item, np.nan) for item in sorted(without))], columns=["item", "score"])
    spec = harness_runs.object_in(log, "spec")
    models = spec.get("completion_fns") or harness_runs.object_in(spec, "model_names").get("completions")
    models = models if isinstance(models, list) and models else [models or spec.get("model_name")]
    model, task = ", ".join(map(str, models)), str(spec.get("eval_name"))
    frame = frame.assign(model=model, benchmark=task, trial=frame.groupby("item").cumcount() + 1)
    frame.attrs["run"] = harness_runs.EvaluationRun(
        model, task, {}, finished="final_report" in log, created=str(spec.get("created_at")),
        arguments=dict.fromkeys(harness_runs.ARGUMENTS, ""),
    )  # fmt: skip
    notes = ["the evaluation did not finish: it has no final_report"] if "final_report" not in log else []
    n = len(frame["item"].unique())
    notes += (
        [f"{len(without):,} of {counted(n, 'sample')} {'has' if len(without) == 1 else 'have'} no score"]
        if without
        else []
    )
    frame.attrs["notes"] = [f"{model}, {task}: {note}" for note in notes]
    return frame


#: Why a run of promptfoo failed: an error, and no wrong answer.
_PROMPTFOO_ERROR = 2
#: Lists of tasks in results of HAL: what succeeded, and what failed.
_HAL_TASKS = ("successful_tasks", "failed_tasks")
#: Metrics of HELM's scenarios, the one that is taken first.
_HELM_METRICS = ("exact_match", "quasi_exact_match", "final_number_exact_match", "math_equiv_chain_of_thought",
                 "f1_score")  # fmt: skip
_OF_REWARDS = {"item": "id", "benchmark": "subset", "score": "results"}
_table, _document = partial(Format, shape="answer"), partial(Format, shape="answer", is_document=True)
#: The formats of evaluation harnesses, and of benchmarks that score answers.
ANSWERS = (
    _document("results of promptfoo", ("evalId", "results", "config"), _promptfoo,
              about="providers are models, and several prompts of one are models of their own"),
    _document("RewardBench 2's scores", ("id", "subset", "results", "scores", "model"), _reward_bench,
              about="subsets are benchmarks"),
    _table("HELM's statistics of instances", ("instance_id", "stats"), _helm, about="a run is a model and a benchmark"),
    _table("WildBench's scores", ("session_id", "model_test", "score"),
           _renamed({"session_id": "item", "model_test": "model", "score": "score"})),
    _table("JudgeBench's judgments", ("pair_id", "label", "judgments"), _judge_bench,
           about="judges are models, and right where more of their decisions are than wrong"),
    _table("LLMBar's results", ("input", "output_1", "output_2", "label", "results"), _llm_bar,
           about="judges are models; the score is the share of both orders in which they are right"),
    _table("MLflow's traces", ("trace_id", "assessments"), _mlflow, about="requests are items",
           hint="there are several assessments, and the first is taken", one_of=_mlflow_choices),
    _document("results of lm-evaluation-harness", ("results", "configs", "versions", "n-shot"), _lm_eval_results,
              about="they name the models of samples, and tasks without samples are told"),
    _document("a log of Inspect", ("eval", "samples|status"),
              lambda source: harness_runs.inspect_table(source.document, source.score),
              about="epochs are trials, tasks benchmarks", hint="there are several scorers, and the first is taken",
              one_of=lambda log: {"--score": harness_runs.scorers_of(log)}),
    _document("a log of OpenAI's evals", ("spec", "events"), _evals, about="samples are items, evaluations benchmarks",
              hint="there are several scores, and the first is taken", one_of=_evals_choices),
    _document("results of HAL", ("config", "results", "raw_eval_results"), _hal,
              about="agents are models; the score cost is the part of a task in the cost of its run"),
    _document("results of tau2-bench", ("simulations",), _tau2),
    _document("a report of SWE-bench", ("resolved_ids|resolved",), _swe_bench,
              about="a file, or the folder it is in, is a model"),
    _table("samples of lm-evaluation-harness", ("doc_id", "filtered_resps|resps"), _lm_eval_samples,
           about="a folder is a model, a task a benchmark", one_of=_lm_eval_choices,
           hint="there are several metrics or filters, and the first is taken"),
    _table("Every Eval Ever", ("evaluation_name", "sample_id", "model_id", "evaluation"),
           _renamed({"model_id": "model", "sample_id": "item", "evaluation_name": "benchmark",
                     "evaluation.score": "score"}), about="evaluations are benchmarks"),
    _table("results of tau-bench", ("task_id", "reward"),
           _renamed({"task_id": "item", "reward": "score"}, {"trial": "trial", "model": "model"})),
)  # fmt: skip
#: Columns of samples that are not metrics.
_NO_METRICS = {
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash", "prompt_hash",
    "target_hash",
}  # fmt: skip
_HELM_SCORES = "per_instance_stats.json"
_SAMPLES = re.compile(r"samples_(.+?)(?:_(\d{4}-\d{2}-\d{2}T[\d.:-]+))?\.jsonl?")


def metrics_of(names: Sequence[str]) -> list[str]:
    """Return the metrics among the columns of samples, and no fields of other columns."""
    return [name for name in names if name.partition(".")[0] not in _NO_METRICS]


def metric_of(names: Sequence[str], metric: str | None) -> str:
    """Return the metric of samples with the columns ``names``; of several with commas between them the first there."""
    metrics = metrics_of(names)
    if not metrics:
        raise DataError("the samples have no metric, and no other score")
    if metric is None and len(metrics) == 1:
        return metrics[0]
    first = harness_runs.first_named(metric, metrics)
    if first is None:
        wrong = f"no metric {metric!r}; " if metric else ""
        hint = did_you_mean(metric, metrics) if metric else ""
        raise DataError(
            f"{wrong}the samples have the metrics {named(metrics)}{hint}: name one (score=, --score), or several in "
            "the order in which you prefer them, as acc_norm,acc,exact_match"
        )
    return first


def _source(name: FileName) -> tuple[str, str, str]:
    """Return the folder, the task and the date of a file of samples."""
    match = _SAMPLES.fullmatch(base_name(name))
    task, date = (match[1], match[2] or "") if match else (Path(base_name(name)).stem, "")
    return str(Path(str(name)).parent), task, date


#: What Inspect writes beside the logs of an eval set, or of a folder that is shown.
_LISTS_OF_LOGS = ("eval-set.json", "logs.json", "listing.json")


def newest(files: Sequence[FileName]) -> tuple[list[FileName], list[str]]:
    """Return the files without those that stand beside others' scores, and a note on samples that a later run replaced.

    Of a folder of HELM only the statistics of instances count, of samples of a task those of the last run. Inspect's
    lists of logs hold no scores.
    """
    files = [file for file in files if base_name(file) not in _LISTS_OF_LOGS] or list(files)
    of_helm = {_source(file)[0] for file in files if base_name(file) == _HELM_SCORES}
    files = [file for file in files if base_name(file) == _HELM_SCORES or _source(file)[0] not in of_helm]
    last: dict[tuple[str, str], str] = {}
    dated = {file: _source(file) for file in files if _SAMPLES.fullmatch(base_name(file))}
    for folder, task, date in dated.values():
        last[folder, task] = max(date, last.get((folder, task), ""))
    kept = [file for file in files if file not in dated or dated[file][2] == last[dated[file][:2]]]
    n = len(files) - len(kept)
    note = f"{counted(n, 'file')} of samples left out, as a later run of the same model and task is in the same folder"
    return kept, [note] if n else []


def telling_file(files: Sequence[FileName]) -> FileName:
    """Return the file that says best what a folder holds: one of scores, if there is one."""
    files = newest(files)[0]
    return next((file for file in files if _SAMPLES.fullmatch(base_name(file))), files[0])


def named_by_results(
    tables: Sequence[tuple[FileName, pd.DataFrame]], results: Sequence[tuple[FileName, Mapping[str, Any]]]
) -> list[str]:
    """Give models the names that files of results state, in place; and say which tasks have results and no samples."""
    notes, means = [], []
    by_folder = {_source(name)[0]: document for name, document in results}
    for name, table in tables:
        stated = by_folder.get(_source(name)[0])
        if stated is not None and stated.get("model_name"):
            table["model"] = str(stated["model_name"])
        model, task = (str(next(iter(table[column]), "")) for column in ("model", "benchmark"))
        compared = {what: table.attrs.get(what) for what in ("metric", "filter")} | _said(stated or {}, task)
        table.attrs["run"] = harness_runs.EvaluationRun(model, task, compared)
    for name, document in results:
        folder = _source(name)[0]
        have = {task for task_folder, task, _ in (_source(file) for file, _ in tables) if task_folder == folder}
        groups = {group for group, tasks in (document.get("group_subtasks") or {}).items() if tasks}
        model = str(document.get("model_name") or Path(folder).name)
        for task, values in document["results"].items():
            if task in have or task in groups or not isinstance(values, Mapping):
                continue
            rows = list(_means(values))
            shown = [f"{metric} {mean:.3f}" + (f" (standard error {error:.3f})" if isfinite(error) else "")
                    for metric, _, mean, error in rows]  # fmt: skip
            notes.append(f"{model}, {task}: no samples, only {named(shown, 3) if shown else 'a mean'}")
            means += [(model, task, *row) for row in rows]
    if notes and not tables:
        raise MeansOnlyError(
            f"{base_name(results[0][0])} has means of tasks and no samples ({notes[0]}): run lm_eval with "
            "--log_samples, since items are resampled and compared",
            pd.DataFrame(means, columns=["model", "benchmark", "metric", "filter", "score", "standard_error"]),
        )
    return notes


def _said(document: Mapping[str, Any], task: str) -> dict[str, Any]:
    """Return what results say of how a task was run, and should be alike in evaluations that are compared."""
    config, own = (
        harness_runs.object_in(document, "config"),
        harness_runs.object_in(harness_runs.object_in(document, "configs"), task),
    )
    arguments = config.get("model_args")
    if isinstance(arguments, str):
        arguments = dict(part.partition("=")[::2] for part in arguments.split(",") if part)
    return {
        "version": harness_runs.object_in(document, "versions").get(task),
        "number of shots": harness_runs.object_in(document, "n-shot").get(task),
        "number of repeats": own.get("repeats"),
        "version of lm_eval": document.get("lm_eval_version"), "system instruction": document.get("system_instruction"),
        "chat template": document.get("chat_template"),
        "few-shot examples as turns": document.get("fewshot_as_multiturn"), "kind of model": config.get("model"),
        **{f"setting {name}": value for name, value in harness_runs.object_in(own, "generation_kwargs").items()},
        **harness_runs.model_arguments(arguments if isinstance(arguments, dict) else {}),
    }  # fmt: skip


def stated_by_results(name: FileName, document: Mapping[str, Any]) -> pd.DataFrame:
    """Return what a file of results states of tasks and of groups of tasks.

    ``model``, ``benchmark`` (a task or a group), ``tasks`` (those of a group, else the one), ``metric``,
    ``filter``, ``stated_score`` and ``stated_standard_error``.
    """
    model = str(document.get("model_name") or Path(_source(name)[0]).name)
    within = {group: tasks for group, tasks in (document.get("group_subtasks") or {}).items() if tasks}

    def tasks_of(task: str, above: tuple[str, ...] = ()) -> list[str]:
        if task not in within or task in above:
            return [task]
        return [leaf for part in within[task] for leaf in tasks_of(str(part), (*above, task))]

    rows = [
        (model, task, tuple(tasks_of(task)), *row)
        for stated in (document["results"], document.get("groups") or {})
        for task, values in stated.items()
        if isinstance(values, Mapping)
        for row in _means(values)
    ]
    columns = ["model", "benchmark", "tasks", "metric", "filter", "stated_score", "stated_standard_error"]
    return pd.DataFrame(rows, columns=columns).drop_duplicates(["benchmark", "metric", "filter"])


class MeansOnlyError(DataError):
    """Files have means of tasks and no scores of items; ``means`` is a table of them, with their errors."""

    def __init__(self, message: str, means: pd.DataFrame) -> None:
        super().__init__(message)
        self.means = means


def _means(values: Mapping[str, Any]) -> Iterator[tuple[str, str, float, float]]:
    """Yield metric, filter, mean and standard error of a task; an error that is not known is NaN."""
    for name, mean in values.items():
        metric, _, output_filter = name.partition(",")
        if isinstance(mean, float) and "_stderr" not in metric:
            error = values.get(f"{metric}_stderr,{output_filter}")
            yield metric, output_filter, mean, error if isinstance(error, float) else nan
