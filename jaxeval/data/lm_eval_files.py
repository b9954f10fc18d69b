"""Logs of Inspect, and what lm-evaluation-harness writes: samples of every task, and files of results."""

from __future__ import annotations

import json
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np

from jaxeval.data.file_formats import entries_of
from jaxeval.data.harness_runs import ARGUMENTS, EvaluationRun, model_arguments, text_of
from jaxeval.data.remote_names import FileName, base_name
from jaxeval.errors import DataError
from jaxeval.lazy_names import pa, pd
from jaxeval.plain_tables import PlainTable
from jaxeval.wording import counted, did_you_mean, named

#: How Arrow calls the compressions that the zip format numbers so; 93 (APPNOTE 6.3.8) Python reads from 3.14 on.
_STREAMS = {93: "zstd", zipfile.ZIP_BZIP2: "bz2"}
_MOST_BYTES = 2**30  # of all that is read of a log
#: Settings of Inspect on how its calls travel, which leave answers as they are.
_TRAFFIC = {
    "max_retries", "timeout", "attempt_timeout", "stream_idle_timeout", "max_connections", "adaptive_connections",
    "cache_prompt", "cache", "batch",
}  # fmt: skip
#: What Inspect writes for scores that are not numbers.
_VALUES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, True: 1.0, False: 0.0, "yes": 1.0, "no": 0.0}


def read_archive(path: Path) -> dict[str, Any]:
    """Read an ``.eval`` archive as the document that Inspect writes as JSON, its samples without their messages.

    The summaries of samples hold all scores, and are a small part of the samples. A log that was stopped has no header
    and no file of all summaries: its journal has both.

    Raises:
        DataError: the archive is no log, is damaged, or is too large.
    """
    try:
        with path.open("rb") as file:
            entries = entries_of(path)
            start = next((name for name in ("header.json", "_journal/start.json") if name in entries), None)
            if start is None:
                raise DataError("the zip archive has no header.json, and so is no log of Inspect")
            journal = sorted(name for name in entries if name.startswith("_journal/summaries/"))
            single = [name for name in entries if name.startswith("samples/") and name.endswith(".json")]
            chosen = ["summaries.json"] if "summaries.json" in entries else journal or single
            if sum(entries[name].file_size for name in (start, *chosen)) > _MOST_BYTES:
                raise DataError("the log is over 1 GiB: write its scores as a table (inspect_ai.analysis.samples_df)")
            header = json.loads(_content(file, entries[start]))
            parts = [json.loads(_content(file, entries[name])) for name in chosen]
    except DataError:
        raise
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, NotImplementedError) as error:
        raise DataError(f"the log cannot be read: {error}; it may be damaged: copy it anew") from error
    if not isinstance(header, dict):
        raise DataError(f"{start} of the log is no object: the log may be damaged")
    samples = parts if chosen is single else [sample for part in parts for sample in part]
    status = header.get("status", "success" if start == "header.json" else "started")
    return {**header, "status": status, "samples": samples}


def _content(file: Any, entry: zipfile.ZipInfo) -> bytes:
    """Return the bytes of a member, of the length and with the checksum that the archive states."""
    file.seek(entry.header_offset)
    header = file.read(30)
    if header[:4] != b"PK\x03\x04":
        raise ValueError(f"{entry.filename} is not where the archive says")
    name_length, extra_length = struct.unpack("<HH", header[26:30])
    file.seek(name_length + extra_length, 1)
    if entry.flag_bits & 1:
        raise DataError(f"{entry.filename} is encrypted, and encrypted logs are not read: pack the log anew without")
    content, most = file.read(entry.compress_size), entry.file_size + 1  # whatever the stream would give
    if entry.compress_type in _STREAMS:
        with pa.CompressedInputStream(pa.BufferReader(content), _STREAMS[entry.compress_type]) as stream:
            content = bytes(stream.read(most))
    elif entry.compress_type == zipfile.ZIP_DEFLATED:
        content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(content, most)
    elif entry.compress_type != zipfile.ZIP_STORED:
        name = {zipfile.ZIP_LZMA: "LZMA"}.get(entry.compress_type, f"method {entry.compress_type} of zip")
        raise DataError(f"{entry.filename} is compressed by {name}, which is not read: pack the log anew by Deflate")
    if len(content) != entry.file_size or zlib.crc32(content) != entry.CRC:
        raise ValueError(f"{entry.filename} has another length or checksum than the archive says")
    return content


def scorers_of(log: Mapping[str, Any]) -> list[str]:
    """Return the scorers of a log, those of several values with the names of these."""
    samples = [sample for sample in log.get("samples") or [] if isinstance(sample, dict)]
    scores = [sample["scores"] for sample in samples if isinstance(sample.get("scores"), dict)]
    return list(dict.fromkeys(name for by_scorer in scores for name, _ in _values(by_scorer)))


def inspect_table(log: Mapping[str, Any], scorer: str | None) -> tuple[PlainTable, list[str]]:
    """Return the long table of a log ("model", "benchmark", "item", "trial", "score"), and what is to be known of it.

    Epochs are trials. A sample that ended in an error, or that nobody scored, has a missing score.

    Args:
        log: as Inspect writes it.
        scorer: whose scores; None if there is one. Values of a scorer that gives several are "scorer.value".

    Raises:
        DataError: the log is damaged, has no scores, or has scores by several scorers and none is named.
    """
    run = log["eval"]
    if not isinstance(run, dict):
        raise DataError("eval of the log is no object: the log may be damaged")
    if wrong := [name for name in ("model", "task") if isinstance(run.get(name), list | dict)]:
        raise DataError(f"the {wrong[0]} of the log is no name: the log may be damaged")
    rows, scorers, without = [], dict[str, None](), []
    samples = log.get("samples") or []
    for number, sample in enumerate(samples, 1):
        scores = (sample.get("scores") or {}) if isinstance(sample, dict) else None
        if not isinstance(scores, dict) or not all(isinstance(scored, dict) for scored in scores.values()):
            raise DataError(f"sample {number:,} of the log is no object with scores: the log may be damaged")
        values = dict(_values(scores))
        scorers |= dict.fromkeys(values)
        rows.append((sample.get("id"), _epoch(sample, number), values))
        if not values:
            without.append("error" if sample.get("error") else "unscored")
    if not scorers:
        raise NoScoresError(
            f"the log has no scores of samples{_ended(log, samples)}: use a log of a finished and scored evaluation"
        )
    chosen = scorer or (next(iter(scorers)) if len(scorers) == 1 else None)
    if chosen is None or chosen not in scorers:
        hint = did_you_mean(chosen, scorers) if chosen else ""
        raise DataError(f"the log has scores by {named(sorted(scorers))}{hint}: name one scorer (score=, --score)")
    scored = [(str(item), epoch, as_score(values.get(chosen))) for item, epoch, values in rows]
    frame = PlainTable.of_rows(scored, ["item", "trial", "score"])
    notes = []
    if log.get("status", "success") != "success":
        notes.append(f"the evaluation did not finish{_ended(log, samples)}")
    if n := without.count("error"):
        notes.append(f"{counted(n, 'sample')} of {len(samples):,} ended in an error and {_have(n)} no score")
    if n := without.count("unscored"):
        notes.append(f"{counted(n, 'sample')} of {len(samples):,} {_have(n)} no score")
    if log.get("invalidated"):
        notes.append("the log is marked as invalidated")
    about = f"{run.get('model')}, {run.get('task')}"
    frame = frame.assign(model=run.get("model"), benchmark=run.get("task"))
    frame["_document"] = [hash(_asked(sample)) for sample in samples]
    frame.attrs["run"] = EvaluationRun(
        str(run.get("model")), str(run.get("task")), _compared(log, run, chosen),
        text_of(run["task_id"]) if run.get("task_id") else None, log.get("status", "success") == "success",
        str(run.get("created")), {name: text_of(run.get(name)) for name in ARGUMENTS},
    )  # fmt: skip
    return frame, [f"{about}: {note}" for note in notes]


def _compared(log: Mapping[str, Any], run: Mapping[str, Any], scorer: str) -> dict[str, Any]:
    """Return what should be alike in evaluations that are compared: what a model was asked, and how."""
    plan = _object(log, "plan")
    settings = _object(run, "model_generate_config") | {
        name: value for name, value in _object(plan, "config").items() if value is not None
    }
    steps = [step for step in plan.get("steps") or () if isinstance(step, dict)]
    return {
        "version": run.get("task_version", 0), "scorer": scorer,
        "number of epochs": _object(run, "config").get("epochs") or 1,
        "version of Inspect": _object(run, "packages").get("inspect_ai"),
        **{f"argument {name}": value for name, value in _object(run, "task_args").items()},
        "list of solvers": [step.get("solver") for step in steps],
        **{f"{name} of {step.get('solver')}": value
           for step in steps for name, value in _object(step, "params").items()},
        **{f"setting {name}": value for name, value in settings.items() if name not in _TRAFFIC},
        **model_arguments(_object(run, "model_args")),
    }  # fmt: skip


def _asked(sample: Mapping[str, Any]) -> tuple[str, str]:
    """Return what a sample asks, and its target. Messages have ids of their own."""
    asked = sample.get("input")
    return asked if isinstance(asked, str) else "", text_of(sample.get("target"))


class NoScoresError(DataError):
    """A log has no scores of samples."""


def _object(run: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object of a log; nothing where a damaged one has something else there."""
    value = run.get(name)
    return value if isinstance(value, dict) else {}


def _epoch(sample: Mapping[str, Any], number: int) -> int:
    """Return the epoch of a sample, 1 where there is none."""
    try:
        return int(sample.get("epoch") or 1)
    except (TypeError, ValueError):
        raise DataError(
            f"sample {number:,} of the log has the epoch {sample['epoch']!r}, which is no number: the log may be "
            "damaged"
        ) from None


def _have(n: int) -> str:
    return "has" if n == 1 else "have"


def _ended(log: Mapping[str, Any], samples: Sequence[Any]) -> str:
    """Return how an evaluation ended that was not a success, and with how many samples."""
    status = log.get("status", "success")
    if status == "success":
        return ""
    planned = _object(log["eval"], "dataset").get("samples")
    epochs = _object(log["eval"], "config").get("epochs") or 1
    of = f" of {planned * epochs:,}" if isinstance(planned, int) and isinstance(epochs, int) else ""
    return f" (status {status!r}, {len(samples):,}{of} samples)"


def _values(scores: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Scores by their scorer; of a scorer with several values, by "scorer.value"."""
    for scorer, score in scores.items():
        value = score.get("value")
        if isinstance(value, dict):
            yield from ((f"{scorer}.{name}", part) for name, part in value.items())
        else:
            yield scorer, value


def as_score(value: Any) -> float:
    """Return a score as harnesses write it: a number, a truth value, yes or no, or one of the letters C, P, I and N.

    Raises:
        DataError: it is none of these.
    """
    if isinstance(value, list | dict):
        raise DataError("a score of the log is a list: name another scorer (score=, --score), of numbers or letters")
    if value is None:
        return np.nan
    if isinstance(value, str | bool) and value in _VALUES:
        return _VALUES[value]
    try:
        return float(value)
    except ValueError as error:
        raise DataError(
            f"a score of the log is {value!r}, which is neither a number nor C, I, P or N: name another "
            "scorer (score=, --score)"
        ) from error


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
    """Return the metric of samples with the columns ``names``.

    Args:
        names: of the columns.
        metric: a metric, or several with commas between them: the first that the samples have.

    Raises:
        DataError: none of these is there, or there are several and none is named.
    """
    metrics = metrics_of(names)
    if metric is None and len(metrics) == 1:
        return metrics[0]
    wanted = [] if metric is None else [metric, *map(str.strip, metric.split(","))]
    first = next((name for name in wanted if name in metrics), None)
    if first is None:
        wrong = f"no metric {metric!r}; " if metric else ""
        hint = did_you_mean(metric, metrics) if metric else ""
        raise DataError(
            f"{wrong}the samples have the metrics {named(metrics)}{hint}: name one (score=, --score), or several in "
            "the order in which you prefer them, as acc_norm,acc,exact_match"
        )
    return first


def samples_table(frame: pd.DataFrame, name: FileName, output_filter: str | None) -> pd.DataFrame:
    """Return the long table of samples: "model", "benchmark", "item" and "score".

    Args:
        frame: columns "item" and "score", and "filter" if there are any.
        name: of the file, which holds the task; its folder is the model.
        output_filter: which filter of the model's output; None if there is one.

    Raises:
        DataError: there are several filters and none is named, or there is no such filter.
    """
    chosen = None
    if "filter" in frame:
        filters = list(dict.fromkeys(x for x in frame["filter"] if x is not None and x == x))
        if output_filter is not None:
            if output_filter not in filters:
                raise DataError(
                    f"no filter {output_filter!r}; there are {named(filters)}{did_you_mean(output_filter, filters)}"
                )
            frame = frame[frame["filter"] == output_filter]
        elif len(filters) > 1:
            raise DataError(f"the samples have the filters {named(filters)}: name one (output_filter=, --filter)")
        chosen = output_filter or next(iter(filters), None)
        frame = frame.drop(columns="filter")
    folder, task, _ = _source(name)
    frame = frame.assign(model=Path(folder).name.replace("__", "/", 1) or "model", benchmark=task)
    frame.attrs["filter"] = chosen
    return frame


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
    """Give models the names that files of results state, in place; and say which tasks have results and no samples.

    Raises:
        MeansOnlyError: no task has samples.
    """
    notes, means = [], []
    by_folder = {_source(name)[0]: document for name, document in results}
    for name, table in tables:
        stated = by_folder.get(_source(name)[0])
        if stated is not None and stated.get("model_name"):
            table["model"] = str(stated["model_name"])
        model, task = (str(next(iter(table[column]), "")) for column in ("model", "benchmark"))
        compared = {what: table.attrs.get(what) for what in ("metric", "filter")} | _said(stated or {}, task)
        table.attrs["run"] = EvaluationRun(model, task, compared)
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
    config, own = _object(document, "config"), _object(_object(document, "configs"), task)
    arguments = config.get("model_args")
    if isinstance(arguments, str):
        arguments = dict(part.partition("=")[::2] for part in arguments.split(",") if part)
    return {
        "version": _object(document, "versions").get(task), "number of shots": _object(document, "n-shot").get(task),
        "number of repeats": own.get("repeats"), "version of lm_eval": document.get("lm_eval_version"),
        "system instruction": document.get("system_instruction"), "chat template": document.get("chat_template"),
        "few-shot examples as turns": document.get("fewshot_as_multiturn"), "kind of model": config.get("model"),
        **{f"setting {name}": value for name, value in _object(own, "generation_kwargs").items()},
        **model_arguments(arguments if isinstance(arguments, dict) else {}),
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
