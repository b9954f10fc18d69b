"""What lm-evaluation-harness writes into a folder for each model: samples of every task, and a file of results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import pandas as pd

from jaxeval.data.remote_names import FileName, base_name
from jaxeval.errors import DataError
from jaxeval.wording import counted, did_you_mean, named

#: Columns of samples that are not metrics.
_NO_METRICS = {
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash", "prompt_hash",
    "target_hash",
}  # fmt: skip
_HELM_SCORES = "per_instance_stats.json"
_SAMPLES = re.compile(r"samples_(.+?)(?:_(\d{4}-\d{2}-\d{2}T[\d.:-]+))?\.jsonl?")


def are_samples(names: Sequence[str]) -> bool:
    """Whether a table with these columns holds samples."""
    return "doc_id" in names and bool({"filtered_resps", "resps"} & set(names))


def is_results(document: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a file of results."""
    return isinstance(document.get("results"), dict) and {"configs", "versions", "n-shot"} <= document.keys()


def metrics_of(names: Sequence[str]) -> list[str]:
    """The metrics among the columns of samples."""
    return [name for name in names if name not in _NO_METRICS]


def metric_of(names: Sequence[str], asked: str | None) -> str:
    """The metric of samples with the columns ``names``.

    Args:
        names: of the columns.
        asked: a metric, or several with commas between them: the first that the samples have.

    Raises:
        DataError: none of these is there, or there are several and none is named.
    """
    metrics = metrics_of(names)
    if asked is None and len(metrics) == 1:
        return metrics[0]
    wanted = [] if asked is None else [asked, *map(str.strip, asked.split(","))]
    found = next((name for name in wanted if name in metrics), None)
    if found is None:
        wrong = f"no metric {asked!r}; " if asked else ""
        hint = did_you_mean(asked, metrics) if asked else ""
        raise DataError(
            f"{wrong}the samples have the metrics {named(metrics)}{hint}: name one (score=, --score), or several in "
            "the order in which you prefer them, as acc_norm,acc,exact_match"
        )
    return found


def samples_table(frame: pd.DataFrame, name: FileName, output_filter: str | None) -> pd.DataFrame:
    """The long table of samples: "model", "benchmark", "item" and "score".

    Args:
        frame: columns "item" and "score", and "filter" if there are any.
        name: of the file, which holds the task; its folder is the model.
        output_filter: which filter of the model's output; None if there is one.

    Raises:
        DataError: there are several filters and none is named, or there is no such filter.
    """
    if "filter" in frame:
        filters = frame["filter"].dropna().unique()
        if output_filter is not None:
            if output_filter not in filters:
                raise DataError(
                    f"no filter {output_filter!r}; there are {named(filters)}{did_you_mean(output_filter, filters)}"
                )
            frame = frame[frame["filter"] == output_filter]
        elif len(filters) > 1:
            raise DataError(f"the samples have the filters {named(filters)}: name one (output_filter=, --filter)")
        frame = frame.drop(columns="filter")
    folder, task, _ = _source(name)
    return frame.assign(model=Path(folder).name.replace("__", "/", 1) or "model", benchmark=task)


def _source(name: FileName) -> tuple[str, str, str]:
    """The folder, the task and the date of a file of samples."""
    found = _SAMPLES.fullmatch(base_name(name))
    task, date = (found[1], found[2] or "") if found else (Path(base_name(name)).stem, "")
    return str(Path(str(name)).parent), task, date


def newest(files: Sequence[FileName]) -> tuple[list[FileName], list[str]]:
    """The files without those that stand beside others' scores, and a note on samples that a later run replaced.

    Of a folder of HELM only the statistics of instances count, of samples of a task those of the last run.
    """
    of_helm = {_source(file)[0] for file in files if base_name(file) == _HELM_SCORES}
    files = [file for file in files if base_name(file) == _HELM_SCORES or _source(file)[0] not in of_helm]
    last: dict[tuple[str, str], str] = {}
    dated = {file: _source(file) for file in files if _SAMPLES.fullmatch(base_name(file))}
    for folder, task, date in dated.values():
        last[folder, task] = max(date, last.get((folder, task), ""))
    kept = [file for file in files if file not in dated or dated[file][2] == last[dated[file][:2]]]
    n = len(files) - len(kept)
    said = f"{counted(n, 'file')} of samples left out, as a later run of the same model and task is in the same folder"
    return kept, [said] if n else []


def telling_file(files: Sequence[FileName]) -> FileName:
    """The file that says best what a folder holds: one of scores, if there is one."""
    files = newest(files)[0]
    return next((file for file in files if _SAMPLES.fullmatch(base_name(file))), files[0])


def named_by_results(
    tables: Sequence[tuple[FileName, pd.DataFrame]], results: Sequence[tuple[FileName, Mapping[str, Any]]]
) -> list[str]:
    """Give models the names that files of results state, in place; and say which tasks have results and no samples.

    Raises:
        DataError: no task has samples.
    """
    notes = []
    by_folder = {_source(name)[0]: document for name, document in results}
    for name, table in tables:
        own = by_folder.get(_source(name)[0])
        if own is not None and own.get("model_name"):
            table["model"] = str(own["model_name"])
    for name, document in results:
        folder = _source(name)[0]
        have = {task for task_folder, task, _ in (_source(file) for file, _ in tables) if task_folder == folder}
        groups = {group for group, tasks in (document.get("group_subtasks") or {}).items() if tasks}
        for task, values in document["results"].items():
            if task in have or task in groups or not isinstance(values, Mapping):
                continue
            notes.append(
                f"{document.get('model_name') or Path(folder).name}, {task}: no samples, only {_means(values)}"
            )
    if notes and not tables:
        raise DataError(
            f"{base_name(results[0][0])} has means of tasks and no samples ({notes[0]}): run lm_eval with "
            "--log_samples, since items are resampled and compared"
        )
    return notes


def _means(values: Mapping[str, Any]) -> str:
    """The metrics of a task with their errors, in words."""
    said = []
    for name, value in values.items():
        metric, _, output_filter = name.partition(",")
        if not isinstance(value, float) or "_stderr" in metric:
            continue
        error = values.get(f"{metric}_stderr,{output_filter}")
        known = isinstance(error, float) and isfinite(error)
        said.append(f"{metric} {value:.3f}" + (f" (standard error {error:.3f})" if known else ""))
    return named(said, 3) if said else "a mean"
