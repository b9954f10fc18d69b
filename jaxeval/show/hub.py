"""Results in the ``.eval_results`` files of the Hugging Face Hub.

A repository of a model on the Hub may hold ``.eval_results/NAME.yaml``; the Hub shows its values on the model's page
and on the leaderboard of the benchmark. The format is that of https://huggingface.co/docs/hub/eval-results ("work in
progress" there) and of ``EvalResultEntry`` in huggingface_hub: a list of entries with ``dataset`` (``id``, ``task_id``
and perhaps ``revision``), ``value``, and perhaps ``date``, ``source`` (``url``, ``name``, ``user`` or ``org``) and
``notes``. The two sources differ on one point, whether ``task_id`` may be left out; it is always written here. A
``verifyToken`` is not written: only who ran the evaluation can sign it. Whether the Hub takes a value is not verified
here: ``id`` must be a data set that is registered there as a benchmark, with a task of that name.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jaxeval.errors import DataError
from jaxeval.execution.atomic_write import whole_file
from jaxeval.wording import named

if TYPE_CHECKING:
    import pandas as pd

#: Bytes of a file's name that every file system accepts, less room for a digest.
_LONGEST_NAME = 180
_DATASET = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


def write_eval_results(
    table: pd.DataFrame,
    folder: str | Path,
    *,
    dataset: str,
    task: str,
    value: str = "rating",
    revision: str | None = None,
    date: str | None = None,
    source: str | None = None,
    notes: str | None = None,
) -> dict[str, Path]:
    """Write ``folder/MODEL/.eval_results/TASK.yaml`` for every model; upload each to its model's repository.

    The notes of an entry end with the interval of its value, where the table has one. Names of models become names of
    folders with signs other than letters, digits, ``.``, ``_`` and ``-`` as in addresses (``meta/llama`` is
    ``meta%2Fllama``), and long ones are cut, with a digest behind.

    Args:
        table: a row for each model, with its name in the column ``model_name`` or ``model``.
        folder: where to write.
        dataset: the benchmark, a data set of the Hub: "organization/name".
        task: the benchmark's name for the task, as its eval.yaml has it.
        value: the column of the values. The interval is that of ``value_lower`` and ``value_upper``, or of ``lower``
            and ``upper``.
        revision: commit of the data set.
        date: day of the evaluation, as "2026-09-13"; by default the Hub takes that of the commit.
        source: address of what the values come from, as the page of the leaderboard.
        notes: how the evaluation was done.

    Returns:
        The file of every model that has a value. Models whose value is missing or infinite have none.

    Raises:
        DataError: there is no such column; a model has several rows; ``dataset`` is no name of a data set.
        OSError: a file cannot be written.

    Examples:
        >>> import pandas as pd
        >>> import jaxeval
        >>> table = pd.DataFrame({"model": ["org/a"], "accuracy": [0.8125], "lower": [0.78], "upper": [0.84]})
        >>> files = jaxeval.write_eval_results(
        ...     table, "results", dataset="org/benchmark", task="default", value="accuracy", notes="PPI++"
        ... )
        >>> files["org/a"].as_posix()
        'results/org%2Fa/.eval_results/default.yaml'
        >>> print(files["org/a"].read_text())
        - dataset:
            id: "org/benchmark"
            task_id: "default"
          value: 0.8125
          notes: "PPI++; interval 0.78 to 0.84"
        <BLANKLINE>
    """
    if not _DATASET.fullmatch(dataset):
        raise DataError(f"dataset={dataset!r} is no data set of the Hub, as organization/name")
    names = [name for name in ("model_name", "model") if name in table]
    if not names or value not in table:
        lacking = f"column {value!r}" if names else "column 'model_name' or 'model'"
        raise DataError(f"the table has no {lacking}; its columns are {named(table.columns)}")
    models = table[names[0]].astype(str)
    if models.duplicated().any():
        raise DataError(
            f"{named(models[models.duplicated()].unique())} has several rows in the table: choose those of one "
            "category, judge or estimator, as a file holds one value of a task"
        )
    ends = next((e for e in ((f"{value}_lower", f"{value}_upper"), ("lower", "upper")) if {*e} <= {*table}), None)
    files = {}
    for model, row in zip(models, table.to_dict("records"), strict=True):
        if not abs(row[value]) < float("inf"):
            continue
        interval = "" if ends is None or row[ends[0]] != row[ends[0]] else _interval(row[ends[0]], row[ends[1]])
        entry = {
            "dataset": _given(id=dataset, task_id=task, revision=revision),
            "value": float(row[value]),
            **_given(date=date),
            **({"source": {"url": source}} if source else {}),
            **_given(notes="; ".join(filter(None, (notes, interval))) or None),
        }
        files[model] = Path(folder) / _file_name(model) / ".eval_results" / f"{_file_name(task)}.yaml"
        files[model].parent.mkdir(parents=True, exist_ok=True)
        with whole_file(files[model]) as file:
            file.write(_yaml(entry).encode())
    return files


def _given(**fields: str | None) -> dict[str, str]:
    return {name: text for name, text in fields.items() if text is not None}


def _interval(lower: float, upper: float) -> str:
    return f"interval {lower:.6g} to {upper:.6g}"


def _file_name(name: str) -> str:
    """A name that every file system accepts, and that cannot lead out of its folder."""
    safe = quote(name, safe="", errors="surrogatepass")
    if not safe.strip("."):
        safe = safe.replace(".", "%2E") or "%00"
    if len(safe) <= _LONGEST_NAME:
        return safe
    return f"{safe[:_LONGEST_NAME]}-{hashlib.sha256(safe.encode()).hexdigest()[:16]}"


def _yaml(entry: dict[str, Any]) -> str:
    """A list of one entry as YAML; values are written as JSON, which YAML can read."""
    lines = []
    for name, value in entry.items():
        if isinstance(value, dict):
            lines += [f"{name}:", *(f"  {part}: {_scalar(text)}" for part, text in value.items())]
        else:
            lines.append(f"{name}: {_scalar(value)}")
    return "".join(f"{'- ' if k == 0 else '  '}{line}\n" for k, line in enumerate(lines))


def _scalar(value: float | str) -> str:
    if isinstance(value, float):
        return repr(value)
    text = json.dumps(value, ensure_ascii=False)
    return "".join(sign if sign.isprintable() else f"\\U{ord(sign):08x}" for sign in text)
