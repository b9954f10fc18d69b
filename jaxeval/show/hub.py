"""Results for the Hugging Face Hub: its ``.eval_results`` files, and leaderboards in the Arena's columns.

A repository of a model on the Hub may hold ``.eval_results/NAME.yaml``; the Hub shows its values on the model's page
and on the leaderboard of the benchmark. The format is that of https://huggingface.co/docs/hub/eval-results ("work in
progress" there) and of ``EvalResultEntry`` in huggingface_hub: a list of entries with ``dataset`` (``id``, ``task_id``
and perhaps ``revision``), ``value``, and perhaps ``date``, ``source`` (``url``, ``name``, ``user`` or ``org``) and
``notes``. The two sources differ on one point, whether ``task_id`` may be left out; it is always written here. A
``verifyToken`` is not written: only who ran the evaluation can sign it. Whether the Hub takes a value is not verified
here: ``id`` must be a data set that is registered there as a benchmark, with a task of that name.

The columns and types of `arena_table` are those that readers of lmarena-ai/leaderboard-dataset rely on in public code
(as of September 2026): its subsets of ratings ("text", "text_style_control" and so on) have `ARENA_COLUMNS`, with null
where something is unknown, in Parquet files with the splits "full" and "latest". The card of the data set itself could
not be read, so two points are not verified: by which rule the Arena's ``rank`` handles ties (here it is the rank by
rating), and on which scale its ``variance`` is (here Elo^2).
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import date
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jaxeval.errors import DataError
from jaxeval.execution.atomic_write import whole_file
from jaxeval.lazy_names import pd
from jaxeval.wording import named

#: Bytes of a file's name that every file system accepts, less room for a digest.
_LONGEST_NAME = 180
_DATASET = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


def write_eval_results(
    table: pd.DataFrame, folder: str | Path, *, dataset: str, task: str, value: str = "rating",
    revision: str | None = None, date: str | None = None, source: str | None = None, notes: str | None = None,
) -> dict[str, Path]:  # fmt: skip
    """Write ``folder/MODEL/.eval_results/TASK.yaml`` for every model; upload each to its model's repository.

    The notes of an entry end with the interval of its value, where the table has one. Names of models become names of
    folders with signs other than letters, digits, ``.``, ``_`` and ``-`` as in addresses (``meta/llama`` is
    ``meta%2Fllama``), and long ones are cut, with a digest behind.

    Args:
        table: a row for each model, with its name in the column ``model``.
        folder: where to write.
        dataset: the benchmark, a data set of the Hub: "organization/name".
        task: the benchmark's name for the task, as its eval.yaml has it.
        value: the column of the values. The interval is that of ``value_lower`` and ``value_upper``, or of ``lower``
            and ``upper`` where these are the ends of that column, as screens show them.
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
    from jaxeval.show.cells import find_intervals

    for name in ("model", value):
        if name not in table:
            raise DataError(f"the table has no column {name!r}; its columns are {named(table.columns)}")
    models = table["model"].astype(str)
    if models.duplicated().any():
        raise DataError(
            f"{named(models[models.duplicated()].unique())} has several rows in the table: choose those of one "
            "category, judge or estimator, as a file holds one value of a task"
        )
    known = (table.columns[[*interval]] for interval in find_intervals(table))
    ends = next(((lower, upper) for estimate, lower, upper in known if estimate == value), None)
    files = {}
    for model, row in zip(models, table.to_dict("records"), strict=True):
        if not abs(row[value]) < inf:
            continue
        lower, upper = (row[end] for end in ends or (value, value))
        interval = "" if ends is None or lower != lower else f"interval {lower:.6g} to {upper:.6g}"
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


def _file_name(name: str) -> str:
    """Return a name that every file system accepts, and that cannot lead out of its folder."""
    safe = quote(name, safe="", errors="surrogatepass")
    if not safe.strip("."):
        safe = safe.replace(".", "%2E") or "%00"
    if len(safe) <= _LONGEST_NAME:
        return safe
    return f"{safe[:_LONGEST_NAME]}-{hashlib.sha256(safe.encode()).hexdigest()[:16]}"


def _yaml(entry: dict[str, Any]) -> str:
    """Return a list of one entry as YAML; values are written as JSON, which YAML can read."""
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


_NUMBERS = ("rating", "rating_lower", "rating_upper", "variance")
_COUNTS = ("vote_count", "rank")
_ARENA_NAMES = {"model": "model_name", "lower": "rating_lower", "upper": "rating_upper"}
#: Columns in their order, and their types.
ARENA_COLUMNS = {
    **dict.fromkeys(("model_name", "organization", "license"), "string"), **dict.fromkeys(_NUMBERS, "Float64"),
    **dict.fromkeys(_COUNTS, "Int64"), **dict.fromkeys(("category", "leaderboard_publish_date"), "string"),
}  # fmt: skip


def arena_table(table: pd.DataFrame, published: date | str, about: pd.DataFrame | None = None) -> pd.DataFrame:
    """Give a leaderboard in the columns and types of the Arena's data set; the module's docstring names their sources.

    Models without a rating or a rank keep their row, with null there: the Arena's set has no infinite numbers.

    Args:
        table: as `jaxeval.leaderboard` gives it.
        published: the day of the leaderboard, as a date or "2026-09-13".
        about: organizations and licenses: columns ``organization`` and ``license``, by model as the index; by default
            those columns of ``table``, if it has them. Other models get null.

    Raises:
        DataError: the table is no leaderboard; ``published`` is no date.

    Examples:
        >>> import jaxeval
        >>> board = jaxeval.leaderboard(jaxeval.simulate_battles(2_000, 4, seed=0), n_resamples=200)
        >>> rows = jaxeval.arena_table(board, "2026-09-13")
        >>> rows[["model_name", "vote_count", "rank", "category", "leaderboard_publish_date"]].head(2)
          model_name  vote_count  rank category leaderboard_publish_date
        0    model-1         806     1  overall               2026-09-13
        1    model-2        1254     2  overall               2026-09-13
    """
    # Other columns of it are replaced.
    replaced = [arena for name, arena in _ARENA_NAMES.items() if {name, arena} <= {*table.columns}]
    table = table.drop(columns=replaced).rename(columns=_ARENA_NAMES)
    lacking = [name for name in ("model_name", *_NUMBERS, *_COUNTS) if name not in table]
    if lacking:
        raise DataError(f"the table is no leaderboard: it has no columns {', '.join(lacking)}")
    try:
        day = published if isinstance(published, date) else date.fromisoformat(published)
    except ValueError as error:
        raise DataError(f"published={published!r} is no date such as 2026-09-13") from error
    models = table["model_name"]
    makers = table.set_axis(models.astype(str)) if about is None else about.set_axis(about.index.astype(str))
    makers = makers[~makers.index.duplicated()]  # of several categories
    known = [name for name in ("organization", "license") if name in makers]
    columns = {
        "model_name": models, "organization": None, "license": None,
        **{name: models.astype(str).map(makers[name]) for name in known},
        **{name: x.where(x.abs() < inf) for name, x in table[list(_NUMBERS)].astype(float).items()},
        **{name: table[name] for name in _COUNTS},
        "category": table.get("category", "overall"), "leaderboard_publish_date": day.isoformat(),
    }  # fmt: skip
    arena = pd.DataFrame(columns, index=table.index).loc[:, list(ARENA_COLUMNS)].astype(ARENA_COLUMNS)
    arena.attrs = dict(table.attrs)
    return arena
