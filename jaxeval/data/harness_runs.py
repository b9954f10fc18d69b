"""Runs of evaluation harnesses: logs of Inspect; several runs of a model and a task as trials, and how two differ."""

from __future__ import annotations

import json
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxeval.data.file_formats import archived, entries_of
from jaxeval.data.json_lines import rows_of_document
from jaxeval.data.labels import SCORES_IN_WORDS, bare_word
from jaxeval.errors import DataError
from jaxeval.lazy_names import pa, pd
from jaxeval.plain_tables import PlainTable, in_pandas
from jaxeval.wording import counted, did_you_mean, named, visible_line

_LONGEST = 40  # letters of a value that is told
#: Arguments of models that name them.
_NAMES = ("pretrained", "model", "model_path", "peft", "tokenizer", "base_url", "device")
#: Words in names of arguments that nobody should read.
_SECRETS = ("key", "token", "secret", "password")


class EvaluationRun(NamedTuple):
    """What a harness says of an evaluation."""

    model: str
    task: str
    compared: Mapping[str, Any]  # what should be alike in evaluations that are compared
    task_id: str | None = None  # the same in a log of Inspect and in those that took its task up again
    finished: bool = True
    created: str = ""
    arguments: Mapping[str, str] = {}


ARGUMENTS = ("task_args", "model_args", "model_generate_config")


def merge_runs(tables: Sequence[pd.DataFrame]) -> tuple[list[pd.DataFrame], list[str]]:
    """Return tables of which several logs of Inspect on a model and a task are trials, and what is to be known of them.

    Of logs that took up one task again, one counts: the last that finished, or that with most scores.

    Raises:
        DataError: logs of a model and a task have the same samples and other arguments.
    """
    groups: dict[Any, list[pd.DataFrame]] = {}
    for number, table in enumerate(tables):
        run = table.attrs.get("run")
        groups.setdefault(number if run is None else (run.model, run.task), []).append(table)
    notes: list[str] = []
    return [
        table for group in groups.values() for table in (group if len(group) == 1 else _as_trials(group, notes))
    ], notes


def _as_trials(tables: Sequence[pd.DataFrame], notes: list[str]) -> list[pd.DataFrame]:
    """Number the epochs of logs on, of one model and one task, where they have the same samples."""

    def rank(table: pd.DataFrame) -> tuple[bool, int, str]:
        """Rank later runs higher: they took up the samples that were done; one stopped at once has not got to them."""
        run = table.attrs["run"]
        return run.finished, 0 if run.finished else table["score"].count(), run.created

    last: dict[Any, pd.DataFrame] = {}
    in_order = sorted(map(in_pandas, tables), key=rank)
    about = ", ".join(in_order[0].attrs["run"][:2])
    for number, table in enumerate(in_order):
        if number and table.attrs["run"] == in_order[number - 1].attrs["run"] and table.equals(in_order[number - 1]):
            raise DataError(f"two logs of {about} are copies of each other: drop the copies")
        last[table.attrs["run"].task_id or number] = table
    merged: list[pd.DataFrame] = []
    shared = False
    for table in last.values():
        trials = 0
        for other in merged:
            mine, theirs = (log.attrs["run"].arguments for log in (table, other))
            if set(table["item"]) & set(other["item"]):
                if unlike := [name for name in ARGUMENTS if mine[name] != theirs[name]]:
                    raise DataError(
                        f"logs of {about} have the same samples and other {named(unlike)}: name those of one"
                    )
                trials, shared = max(trials, other["trial"].max()), True
        merged.append(table.assign(trial=table["trial"] + trials))
    if n := len(tables) - len(merged):
        notes.append(f"{about}: {counted(n, 'log')} left out, of a task that was taken up again in another one")
    if len(merged) > 1:
        what = "whose epochs are trials of the samples that they share" if shared else "parts with samples of their own"
        notes.append(f"{about}: {len(merged):,} logs, {what}")
    return merged


def unlike_runs(runs: Sequence[EvaluationRun]) -> list[str]:
    """Return what differs between evaluations of a task, as its version or the temperature; alike tasks in one text."""
    tasks_of: dict[str, list[str]] = {}
    for task in dict.fromkeys(run.task for run in runs):
        of_task = [run for run in runs if run.task == task]
        for what in dict.fromkeys(what for run in of_task for what in run.compared):
            models: dict[str, list[str]] = {}
            for run in of_task:
                models.setdefault(text_of(run.compared.get(what)), []).append(run.model)
            if len(models) > 1:
                values = zip(_shortened(list(models)), models.values(), strict=True)
                each = [f"{value} ({named(list(dict.fromkeys(names)))})" for value, names in values]
                tasks_of.setdefault(f"the {what} differs: {', '.join(each)}", []).append(task)
    return [f"{named(tasks, 3)}: {text}" for text, tasks in tasks_of.items()]


def _shortened(values: list[str]) -> list[str]:
    """Return values for one line; of long ones a part, from where they differ."""
    alike = next((k for k, letters in enumerate(zip(*values, strict=False)) if len(set(letters)) > 1), 0)
    start = max(alike - _LONGEST // 4, 0) if max(map(len, values)) > _LONGEST else 0
    return [
        visible_line(("..." if start else "") + value[start : start + _LONGEST]
                     + ("..." if len(value) > start + _LONGEST else "")) or "(nothing)"
        for value in values
    ]  # fmt: skip


def unlike_documents(table: Any) -> list[str]:
    """Return how many samples of a task ask something else, or have another target, in another run."""
    asked, unlike = dict[tuple[str, Any], int](), set[tuple[str, Any]]()
    for task, item, document in zip(table["benchmark"], table["item"], table["_document"], strict=True):
        if document == document and asked.setdefault((task, item), document) != document:
            unlike.add((task, item))
    counts = Counter(task for task, _ in unlike), Counter(task for task, _ in asked)
    return [
        f"{task}: {n:,} of {counted(counts[1][task], 'sample')} with one id {'asks' if n == 1 else 'ask'} something "
        f"else, or {'has' if n == 1 else 'have'} another target, in another run: are these runs of one task?"
        for task, n in counts[0].items()
    ]


def model_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of a model to compare: not those that name it, and no secrets."""
    return {
        f"model argument {name}": value
        for name, value in arguments.items()
        if name not in _NAMES and not any(word in name.lower() for word in _SECRETS)
    }


def text_of(value: Any) -> str:
    """Return a value as it is told: a number and the text of it are alike."""
    if value is None:
        return "none"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


#: How Arrow calls the compressions that the zip format numbers so; 93 (APPNOTE 6.3.8) Python reads from 3.14 on.
_STREAMS = {93: "zstd", zipfile.ZIP_BZIP2: "bz2"}
_MOST_BYTES = 2**30  # of all that is read of a log
_SPEC = re.compile(rb"\s*\{\s*\"spec\"\s*:")  # the beginning of a log of OpenAI's evals
#: Settings of Inspect on how its calls travel, which leave answers as they are.
_TRAFFIC = {
    "max_retries", "timeout", "attempt_timeout", "stream_idle_timeout", "max_connections", "adaptive_connections",
    "cache_prompt", "cache", "batch",
}  # fmt: skip


def document_of(path: Path, most_bytes: int = 2**30) -> dict[str, Any] | None:
    """Read the object that a JSON file is, the log in an archive of Inspect's, or the lines of one of OpenAI's evals.

    None for tables, lists, other lines of JSON, and larger files of JSON.

    Raises:
        DataError: an archive is no log, or a damaged one.
    """
    if not path.is_file():
        return None
    if archived(path):
        return read_archive(path)
    if path.stat().st_size > most_bytes:
        return None
    if (log := _events_of(path)) is not None:
        return log
    if path.suffix.lower() != ".json":
        return None
    text = path.read_bytes()
    if text.lstrip()[:1] == b"[":
        return None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None  # lines of JSON, or a damaged file, which is reported when it is read as a table
    return document if isinstance(document, dict) and rows_of_document(document) is None else None


def _events_of(path: Path) -> dict[str, Any] | None:
    """Read a log of OpenAI's evals: its first line says what was run, its last one what came out; events are between.

    Their data mix texts and lists, so that they make no table.
    """
    with path.open("rb") as file:
        if not _SPEC.match(file.read(64)):
            return None
    try:
        lines = [json.loads(line) for line in path.read_bytes().splitlines() if line.strip()]
    except (ValueError, RecursionError):
        return None  # a line is broken, which is named when the file is read as a table
    if not all(isinstance(line, dict) for line in lines) or not isinstance(lines[0]["spec"], dict):
        return None
    events = [line for line in lines if {"event_id", "sample_id", "type"} <= line.keys()]
    ends = [line for line in lines if "final_report" in line]
    return {"spec": lines[0]["spec"], "events": events, **(ends[-1] if ends else {})} if events or ends else None


def read_archive(path: Path) -> dict[str, Any]:
    """Read an ``.eval`` archive as the document that Inspect writes as JSON, its samples without their messages.

    The summaries of samples hold all scores, and are a small part of the samples. A log that was stopped has no header
    and no file of all summaries: its journal has both.
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


def first_named(wanted: str | None, there: Sequence[str]) -> str | None:
    """Return the first of what is ``wanted``, one name or several with commas between them, that is ``there``."""
    names = [] if wanted is None else [wanted, *map(str.strip, wanted.split(","))]
    return next((name for name in names if name in there), None)


def scorers_of(log: Mapping[str, Any]) -> list[str]:
    """Return the scorers of a log, those of several values with the names of these."""
    samples = [sample for sample in log.get("samples") or [] if isinstance(sample, dict)]
    scores = [sample["scores"] for sample in samples if isinstance(sample.get("scores"), dict)]
    return list(dict.fromkeys(name for by_scorer in scores for name, _ in _values(by_scorer)))


def inspect_table(log: Mapping[str, Any], scorer: str | None) -> PlainTable:
    """Return the long table of a log: "model", "benchmark", "item", "trial" and "score", with notes on it.

    Epochs are trials. A sample that ended in an error, or that nobody scored, has a missing score. The ``scorer`` may
    be None if there is one; the values of one that gives several are "scorer.value".
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
    chosen = first_named(scorer, list(scorers)) if scorer else next(iter(scorers)) if len(scorers) == 1 else None
    if chosen is None:
        hint = did_you_mean(scorer, scorers) if scorer else ""
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
    # What a sample asks, and its target. Messages have ids of their own.
    asked = [x if isinstance(x := sample.get("input"), str) else "" for sample in samples]
    frame["_document"] = [
        hash((text, text_of(sample.get("target")))) for text, sample in zip(asked, samples, strict=True)
    ]
    frame.attrs["run"] = EvaluationRun(
        str(run.get("model")), str(run.get("task")), _compared(log, run, chosen),
        text_of(run["task_id"]) if run.get("task_id") else None, log.get("status", "success") == "success",
        str(run.get("created")), {name: text_of(run.get(name)) for name in ARGUMENTS},
    )  # fmt: skip
    frame.attrs["notes"] = [f"{about}: {note}" for note in notes]
    return frame


def _compared(log: Mapping[str, Any], run: Mapping[str, Any], scorer: str) -> dict[str, Any]:
    """Return what should be alike in evaluations that are compared: what a model was asked, and how."""
    plan = object_in(log, "plan")
    settings = object_in(run, "model_generate_config") | {
        name: value for name, value in object_in(plan, "config").items() if value is not None
    }
    steps = [step for step in plan.get("steps") or () if isinstance(step, dict)]
    return {
        "version": run.get("task_version", 0), "scorer": scorer,
        "number of epochs": object_in(run, "config").get("epochs") or 1,
        "version of Inspect": object_in(run, "packages").get("inspect_ai"),
        **{f"argument {name}": value for name, value in object_in(run, "task_args").items()},
        "list of solvers": [step.get("solver") for step in steps],
        **{f"{name} of {step.get('solver')}": value
           for step in steps for name, value in object_in(step, "params").items()},
        **{f"setting {name}": value for name, value in settings.items() if name not in _TRAFFIC},
        **model_arguments(object_in(run, "model_args")),
    }  # fmt: skip


class NoScoresError(DataError):
    """A log has no scores of samples."""


def object_in(run: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object of a log; nothing where a damaged one has something else there."""
    value = run.get(name)
    return value if isinstance(value, dict) else {}


def _epoch(sample: Mapping[str, Any], number: int) -> int:
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
    planned = object_in(log["eval"], "dataset").get("samples")
    epochs = object_in(log["eval"], "config").get("epochs") or 1
    of = f" of {planned * epochs:,}" if isinstance(planned, int) and isinstance(epochs, int) else ""
    return f" (status {status!r}, {len(samples):,}{of} samples)"


def _values(scores: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield scores by their scorer; of a scorer with several values, by "scorer.value"."""
    for scorer, score in scores.items():
        value = score.get("value")
        if isinstance(value, dict):
            yield from ((f"{scorer}.{name}", part) for name, part in value.items())
        else:
            yield scorer, value


def as_score(value: Any) -> float:
    """Return a score as harnesses write it: a number, a truth value, yes or no, or one of the letters C, P, I and N."""
    if isinstance(value, list | dict):
        raise DataError("a score of the log is a list: name another scorer (score=, --score), of numbers or letters")
    if value is None:
        return np.nan
    if isinstance(value, str) and bare_word(value) in SCORES_IN_WORDS:
        return SCORES_IN_WORDS[bare_word(value)]
    try:
        return float(value)
    except ValueError as error:
        raise DataError(
            f"a score of the log is {value!r}, which is neither a number nor C, I, P or N: name another "
            "scorer (score=, --score)"
        ) from error
