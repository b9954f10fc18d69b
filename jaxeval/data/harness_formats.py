"""Scores of models on items as evaluation harnesses write them, read as long tables: "model", "item", "score"."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from jaxeval.data.formats import Format, Source
from jaxeval.data.inspect_logs import inspect_table
from jaxeval.data.lm_eval_files import metric_of, samples_table
from jaxeval.data.remote_names import FileName, base_name
from jaxeval.errors import DataError


def with_model(frame: pd.DataFrame, name: FileName) -> pd.DataFrame:
    """The table with a column "model": by default the name of the file."""
    if "model" in frame:
        return frame
    return frame.assign(model=re.sub(r"(\.\w+)+$", "", base_name(name)))


def _lm_eval_results(source: Source) -> pd.DataFrame:
    """Files of results have no items: they name the models of samples, see `lm_eval_files.named_by_results`."""
    frame = pd.DataFrame({"model": [], "item": [], "score": []})
    frame.attrs["results"] = source.document
    return frame


def _lm_eval_samples(source: Source) -> pd.DataFrame:
    metric = metric_of(source.names, source.score)
    frame = source.columns(["doc_id", metric], ["filter"]).rename(columns={"doc_id": "item", metric: "score"})
    frame = samples_table(frame, source.name, source.output_filter)
    frame.attrs["samples"] = True
    return frame


def _inspect(source: Source) -> pd.DataFrame:
    assert source.document is not None
    frame, notes = inspect_table(source.document, source.score)
    frame.attrs["notes"] = notes
    return frame


def _every_eval_ever(source: Source) -> pd.DataFrame:
    columns = {"model_id": "model", "sample_id": "item", "evaluation_name": "benchmark", "evaluation.score": "score"}
    return source.columns([*columns, *source.keep], nested=True).rename(columns=columns)


def _tau(source: Source) -> pd.DataFrame:
    frame = source.columns(["task_id", "reward"], ["trial", "model"])
    return with_model(frame.rename(columns={"task_id": "item", "reward": "score"}), source.name)


def _tau2(source: Source) -> pd.DataFrame:
    assert source.document is not None
    try:
        rows = [
            (run.get("task_id"), run.get("trial", 0), (run.get("reward_info") or {}).get("reward"))
            for run in source.document["simulations"]
        ]
        frame = pd.DataFrame(rows, columns=["item", "trial", "score"]).astype({"item": str, "score": float})
    except (AttributeError, TypeError, ValueError) as error:
        raise DataError(
            "a simulation of the results is no object whose reward_info has a reward, which is a number: the file may "
            "be damaged"
        ) from error
    agent = ((source.document.get("info") or {}).get("agent_info") or {}).get("llm")
    return with_model(frame if agent is None else frame.assign(model=agent), source.name)


def _swe_bench(source: Source) -> pd.DataFrame:
    """The ids that a report names are its items; `score_files` adds the ids that it does not name."""
    assert source.document is not None
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


#: The formats of evaluation harnesses.
ANSWERS = (
    Format(
        "results of lm-evaluation-harness",
        ("results", "configs", "versions", "n-shot"),
        _lm_eval_results,
        shape="answer",
        is_document=True,
        about="they name the models of samples, and tasks without samples are told",
    ),
    Format(
        "a log of Inspect",
        ("eval", "samples"),
        _inspect,
        shape="answer",
        is_document=True,
        about="epochs are trials, tasks benchmarks",
    ),
    Format("results of tau2-bench", ("simulations",), _tau2, shape="answer", is_document=True),
    Format(
        "a report of SWE-bench",
        ("resolved_ids|resolved",),
        _swe_bench,
        shape="answer",
        is_document=True,
        about="a file, or the folder it is in, is a model",
    ),
    Format(
        "samples of lm-evaluation-harness",
        ("doc_id", "filtered_resps|resps"),
        _lm_eval_samples,
        shape="answer",
        about="a folder is a model, a task a benchmark",
        hint="of several metrics or filters, name one: --score NAME, --filter NAME",
    ),
    Format(
        "Every Eval Ever",
        ("evaluation_name", "sample_id", "model_id", "evaluation"),
        _every_eval_ever,
        shape="answer",
        about="evaluations are benchmarks",
    ),
    Format("results of tau-bench", ("task_id", "reward"), _tau, shape="answer"),
)
