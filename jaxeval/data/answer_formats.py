"""Scores of answers as applications and data sets write them, read as long tables: "model", "item", "score"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import nan
from typing import Any

import numpy as np

from jaxeval.data.formats import Format, Source
from jaxeval.data.harness_formats import metric_of, with_model
from jaxeval.data.harness_runs import as_score
from jaxeval.data.numbers import reject_values, whole_numbers
from jaxeval.data.remote_names import base_name
from jaxeval.data.roles import PAIR_LABELS, ROLES, USUAL_SIDES
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.wording import counted, named

#: Columns of Ragas that are no metrics.
_RAGAS = ("user_input", "response", "reference", "retrieved_contexts", "reference_contexts", "retrieved_context_ids",
          "reference_context_ids", "multi_responses", "rubrics", "rubric", "model")  # fmt: skip
_COUNTS = ("task_id|task|problem_id|problem|item", "n|n_samples|num_samples", "c|n_correct|num_correct")
_MOST_SAMPLES = 10_000  # of an item
#: Details of lighteval: the task, and a date.
_DETAILS = re.compile(r"details_(.+)_\d{4}-\d\d-\d\dT[\d.:-]+\.parquet")
#: Columns of battles, and of labels: their tables may have those of these formats besides.
_JUDGED = (*USUAL_SIDES, *PAIR_LABELS, *ROLES["judge"].names, *ROLES["judgment"].names, *ROLES["rater"].names)


def _ragas(source: Source) -> pd.DataFrame:
    """Read inputs as items; equal ones are trials."""
    metric = metric_of([name for name in source.names if name not in (*_RAGAS, *source.keep)], source.score)
    frame = source.columns(["user_input", metric, *source.keep], ["model"])
    frame = frame.rename(columns={"user_input": "item", metric: "score"})
    frame = frame.assign(item=frame["item"].map(str), trial=frame.groupby("item").cumcount())
    return with_model(frame, source.name)


def _cases(document: Mapping[str, Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the input of each test case of DeepEval, and its scores by metric."""
    within = document.get("testRunData", document)
    try:
        for number, case in enumerate(within["testCases" if "testCases" in within else "test_results"]):
            data = case.get("metricsData") or case.get("metrics_data") or ()
            yield case.get("input", case.get("name", number)), {x["name"]: x.get("score") for x in data}
    except (AttributeError, LookupError, TypeError) as error:
        raise DataError(
            f"a test case has no input and metricsData ({error}): expected a test run of DeepEval"
        ) from error


def _deepeval(source: Source) -> pd.DataFrame:
    cases = list(_cases(source.document))
    metric = metric_of(_metrics_of(source.document)["--score"], source.score)
    rows = [(str(item), as_score(scores.get(metric))) for item, scores in cases]
    frame = pd.DataFrame(rows, columns=["item", "score"])
    return with_model(frame.assign(trial=frame.groupby("item").cumcount()), source.name)


def _metrics_of(document: Mapping[str, Any]) -> dict[str, list[str]]:
    return {"--score": list(dict.fromkeys(name for _, scores in _cases(document) for name in scores))}


def _counted(source: Source) -> pd.DataFrame:
    """Take each of the n samples of an item as a trial, c of which are right."""
    item, n, c = (next(x for x in mark.split("|") if x in source.names) for mark in _COUNTS)
    frame = source.columns([item, n, c, *source.keep], ["model"])
    times, right = whole_numbers(frame[n], n), whole_numbers(frame[c], c)
    rule = f"an item has 1 to {_MOST_SAMPLES:,} samples"
    reject_values(times.astype(float), (times < 1) | (times > _MOST_SAMPLES), n, rule)
    reject_values(right.astype(float), right > times, c, f"no more samples are right than there are, in column {n!r}")
    row = np.repeat(np.arange(len(frame)), times)
    trial = np.arange(len(row)) - np.repeat(np.cumsum(times) - times, times)
    scored = frame.iloc[row].reset_index(drop=True).assign(trial=trial, score=(trial < right[row]).astype(float))
    return with_model(scored.rename(columns={item: "item"}).drop(columns=[n, c]), source.name)


#: Scores of UltraFeedback that are not of one aspect, the one that is taken first.
_OVERALL = ("overall_score", "fine-grained_score")


def _ultra_feedback(source: Source) -> pd.DataFrame:
    """Read scores of an instruction's completions; ratings of an aspect that does not apply (N/A) are missing."""
    table = source.columns(["instruction", "completions"], ["source"])
    every = zip(table["instruction"], table["completions"], strict=True)
    try:
        rows = [
            (item, one["model"], {**_aspects(one.get("annotations")), **one})
            for item, completions in every
            for one in (() if completions is None else completions)
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"a completion is no object with a model ({error}): expected UltraFeedback's") from error
    names = [name for name in _OVERALL if any(name in one for *_, one in rows)]
    names += list(dict.fromkeys(name for *_, one in rows for name in _aspects(one.get("annotations"))))
    if not names:
        raise DataError("no completion has an overall_score, a fine-grained_score or a Rating in its annotations")
    metric = metric_of(names, source.score or names[0])
    scored = [(item, model, _number(one.get(metric))) for item, model, one in rows]
    frame = pd.DataFrame(scored, columns=["item", "model", "score"])
    frame["trial"] = frame.groupby(["model", "item"]).cumcount() + 1
    frame.attrs["notes"] = [f"scores of UltraFeedback are its {metric}; --score names another of {named(names, 20)}"]
    return frame


def _aspects(annotations: Any) -> dict[str, Any]:
    of_all = annotations.items() if isinstance(annotations, Mapping) else ()
    return {name: one.get("Rating") for name, one in of_all if isinstance(one, Mapping)}


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return nan


def _lighteval(source: Source) -> pd.DataFrame:
    """Read details of a task; equal queries are trials, and the folder of the date is in that of the model."""
    now = {"doc", "metric"} <= {*source.names}
    frame = source.columns(("doc", "metric") if now else ("example", "metrics"))
    queries, every = frame.iloc[:, 0], [x if isinstance(x, Mapping) else {} for x in frame.iloc[:, 1]]
    metric = metric_of(list(dict.fromkeys(name for one in every for name in one)), source.score)
    try:
        items = [str(x["query"]) for x in queries] if now else list(map(str, queries))
    except (LookupError, TypeError) as error:
        raise DataError(f"a doc is no object with a query ({error}): expected details of lighteval") from error
    frame = pd.DataFrame({"item": items, "score": [as_score(one.get(metric)) for one in every]})
    frame["trial"] = frame.groupby("item").cumcount()
    file = _DETAILS.fullmatch(base_name(source.name))
    folders = str(source.name).replace("\\", "/").split("/")[:-1]
    model = folders[folders.index("details") + 1 : -1] if "details" in folders else folders[-1:]
    task = file[1] if file else base_name(source.name)
    return frame.assign(benchmark=task, model="/".join(model) or task)


def _lighteval_metrics(rows: pd.DataFrame) -> dict[str, list[str]]:
    values = rows["metric" if "metric" in rows else "metrics"]
    return {"--score": list(dict.fromkeys(name for one in values if isinstance(one, Mapping) for name in one))}


def _lighteval_means(source: Source) -> pd.DataFrame:
    raise DataError(
        "results of lighteval have means of tasks and no samples: run lighteval with --save-details, and give the "
        "files details_*.parquet, since items are resampled and compared"
    )


def _evalplus(source: Source) -> pd.DataFrame:
    """Read each solution of a task as a trial; with the extra tests, those of the base must pass, too."""
    metric = metric_of(["plus", "base"], source.score or "plus")
    rows = []
    try:
        for task, samples in source.document["eval"].items():
            if isinstance(samples, Mapping):  # of early versions: lists of a status and its details
                both = zip(samples["base"], samples["plus"] or samples["base"], strict=True)
                samples = [{"base_status": base[0], "plus_status": plus[0]} for base, plus in both]
            for trial, one in enumerate(samples):
                # Without the extra tests, their status is none.
                tests = ("base", "plus") if metric == "plus" and one.get("plus_status") else ("base",)
                rows.append((task, trial, float(all(one[f"{x}_status"] in ("pass", "success") for x in tests))))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise DataError(
            f"a task has no base_status of its solutions ({error}): expected results of EvalPlus"
        ) from error
    return with_model(pd.DataFrame(rows, columns=["item", "trial", "score"]), source.name)


def _langfuse(source: Source) -> pd.DataFrame:
    """Read scores of one name; runs of a data set are models."""
    frame = source.columns(["traceId", "name", "dataType", "value", *source.keep], ["datasetRunId"])
    metric = metric_of(_langfuse_choices(frame)["--score"], source.score)
    frame = frame[frame["name"] == metric]
    no_trace = int(frame["traceId"].isna().sum())
    frame = frame[frame["traceId"].notna()].reset_index(drop=True)
    frame = frame.rename(columns={"traceId": "item", "value": "score", "datasetRunId": "model"})
    if "model" in frame and frame["model"].isna().all():
        frame = frame.drop(columns="model")
    trial = frame.groupby(["item", *(["model"] if "model" in frame else [])]).cumcount()
    frame = with_model(frame.drop(columns=["name", "dataType"]).assign(trial=trial), source.name)
    if no_trace:
        frame.attrs["notes"] = [f"left out: {counted(no_trace, 'score')} of sessions or runs, which name no trace"]
    return frame


def _langfuse_choices(rows: pd.DataFrame) -> dict[str, list[str]]:
    numbers = (rows["dataType"] != "CATEGORICAL") & rows["traceId"].notna()
    return {"--score": rows.loc[numbers, "name"].dropna().unique().tolist()}


def _n_runs(rows: pd.DataFrame) -> int:
    """Return how many runs of data sets the scores of traces name."""
    return int(rows.loc[rows["traceId"].notna(), "datasetRunId"].nunique()) if "datasetRunId" in rows else 0


#: The formats of applications, and of data sets of scored answers.
APPLICATIONS = (
    Format("Ragas's scores", ("user_input", "response"), _ragas, shape="answer",
           about="inputs are items, and a file is a model", hint="there are several metrics, and the first is taken",
           one_of=lambda rows: {"--score": [x for x in rows.select_dtypes("number") if x not in _RAGAS]},
           unless=_JUDGED),
    Format("a test run of DeepEval", ("testCases|testRunData|test_results",), _deepeval, shape="answer",
           is_document=True, about="inputs are items, and a file is a model",
           hint="there are several metrics, and the first is taken", one_of=_metrics_of),
    Format("counts of samples and of right ones", _COUNTS, _counted, shape="answer",
           about="each sample is a trial of its item, as --pass-at K takes them",
           unless=(*_JUDGED, *ROLES["score"].names)),
    Format("UltraFeedback", ("instruction", "models", "completions"), _ultra_feedback, shape="answer",
           about="instructions are items",
           hint="each instruction was given to some models only, and each model is scored on its own",
           asks=lambda rows: ("--missing", "available")),
    Format("details of lighteval", ("doc|example", "metric|metrics", "model_response|predictions"), _lighteval,
           shape="answer", about="a folder is a model, a task a benchmark", one_of=_lighteval_metrics,
           hint="there are several metrics, and the first is taken",
           unless=(*_JUDGED, *ROLES["score"].names, *ROLES["model"].names)),
    Format("results of lighteval", ("config_general", "results", "config_tasks", "summary_tasks"), _lighteval_means,
           shape="answer", is_document=True),
    Format("results of EvalPlus", ("date", "hash", "eval"), _evalplus, shape="answer", is_document=True,
           about="tasks are items, solutions trials, and a file is a model; --score base leaves out the extra tests"),
    Format("scores of Langfuse", ("traceId", "name", "dataType", "value"), _langfuse, shape="answer",
           about="traces are items, and a run of a data set, or else a file, is a model", one_of=_langfuse_choices,
           hint="there are several scores, and the first is taken",
           asks=lambda rows: ("--missing", "available") if _n_runs(rows) > 1 else ()),
)  # fmt: skip
