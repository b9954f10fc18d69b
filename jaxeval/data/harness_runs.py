"""Runs of evaluation harnesses: several of a model and a task as its trials, and what differs between those of two."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.plain_tables import in_pandas
from jaxeval.wording import counted, named, visible_line

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
        """Later ones took up the samples that were done; one that was stopped at once has not got to them."""
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
