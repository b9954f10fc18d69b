"""Scores of models on items in files: long and wide tables, and what evaluation harnesses write."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from jaxeval.data.columns import frame_of, require_column
from jaxeval.data.file_lists import names_of, whole_local_file
from jaxeval.data.inspect_logs import inspect_table, read_archive
from jaxeval.data.item_scores import ItemScores
from jaxeval.data.lm_eval_files import are_samples, is_results, metric_of, named_by_results, newest, samples_table
from jaxeval.data.needed_columns import ALL_COLUMNS, NeededColumns
from jaxeval.data.remote_names import FileName, base_name
from jaxeval.data.table_files import head_names, naming, pieces, with_types
from jaxeval.errors import DataError
from jaxeval.wording import counted, named

#: Names of columns of a long table that are taken if the user names no others.
_USUAL = ("trial", "cluster", "benchmark", "weight")
_MOST_BYTES = 2**30  # of a JSON document that is read at once


class ScoreColumns(NamedTuple):
    """The columns that the user named, by what they hold."""

    model: str | None = None
    item: str | None = None
    score: str | None = None
    trial: str | None = None
    cluster: str | None = None
    benchmark: str | None = None
    weight: str | None = None
    keep: Sequence[str] = ()
    wide: bool = False
    output_filter: str | None = None


def read_scores(
    path: FileName | Sequence[FileName],
    *,
    model: str | None = None,
    item: str | None = None,
    score: str | None = None,
    trial: str | None = None,
    cluster: str | None = None,
    benchmark: str | None = None,
    weight: str | None = None,
    keep: Sequence[str] = (),
    wide: bool = False,
    output_filter: str | None = None,
) -> ItemScores:
    """Scores of models on items from files of evaluations, whose format is recognised by their content.

    - Long tables: a row for each model and item (and trial), with the columns "model", "item" and "score", or those
      that are named. Without a column of models, each file is a model, and its name is the model's.
    - Wide tables (``wide=True``): a row for each item, and a column of scores for each model.
    - Output of lm-evaluation-harness: samples of tasks (samples_TASK_DATE.jsonl), or the whole folder. A folder is a
      model, a task a benchmark. ``score`` chooses the metric and ``output_filter`` the filter, if there are several;
      "acc_norm,acc" takes the first metric that a task has. Files of results name the models, and tasks without samples
      are told.
    - Logs of Inspect (.json, and .eval archives), or a folder of them: epochs are trials, tasks benchmarks; ``score``
      chooses the scorer. Letters count as Inspect counts them: C 1, P 1/2, I and N 0. Samples with an error have a
      missing score, and these, and evaluations that did not finish, are told.
    - Every Eval Ever's instance-level JSON lines: evaluations are benchmarks.
    - Reports of SWE-bench (resolved_ids, and the other ids): a file, or the folder it is in, is a model.
    - Results of tau-bench (a list with task_id, trial and reward) and tau2-bench (simulations).

    Args:
        path: a file, a folder, a glob or a list of those. Several files are read as one table.
        model: column of models.
        item: column of items.
        score: column of scores; or the metric or scorer of a harness.
        trial: column of trials; "trial" if it is there.
        cluster: column of clusters of items; "cluster" if it is there.
        benchmark: column of benchmarks; "benchmark" if it is there.
        weight: column of weights of items; "weight" if it is there.
        keep: further columns of items, for slices.
        wide: whether a table has a column of scores for each model.
        output_filter: the filter of lm-evaluation-harness, such as "strict-match".

    Raises:
        DataError: a file is in none of these forms, or its scores cannot be read; the error begins with its name.
        FileNotFoundError: there is no such file.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> rows = {"model": [*"xxyy"], "item": [1, 2, 1, 2], "score": [1, 0, 1, 1]}
        >>> pd.DataFrame(rows).to_csv("scores.csv", index=False)
        >>> jaxeval.read_scores("scores.csv").means["score"].to_dict()
        {'x': 0.5, 'y': 1.0}
    """
    asked = ScoreColumns(model, item, score, trial, cluster, benchmark, weight, keep, wide, output_filter)
    frame, label, notes = score_table(path, asked)
    further = {role: role for role in _USUAL if role in frame}
    with naming(label):
        return replace(ItemScores.from_pandas(frame, keep=keep, **further), notes=tuple(notes))


def score_table(path: FileName | Sequence[FileName], asked: ScoreColumns) -> tuple[pd.DataFrame, str, list[str]]:
    """The long table of all files ("model", "item", "score", and other roles of `ScoreColumns`), a name, and notes."""
    files, notes = newest(names_of(path))
    tables, samples, results = [], [], []
    for name in files:
        with naming(name):
            found = _table_of(whole_local_file(name), name, asked)
        if isinstance(found, Mapping):
            results.append((name, found))
            continue
        tables.append(found)
        if found.attrs.get("samples"):
            samples.append((name, found))
    notes += [note for table in tables for note in table.attrs.get("notes", ())]
    notes += named_by_results(samples, results)
    if not tables:
        raise DataError(f"{base_name(files[0])} has no scores of items")
    reports = [table for table in tables if table.attrs.get("resolved")]
    tables = [table for table in tables if not table.attrs.get("resolved")]
    notes += _complete(reports)
    label = base_name(path) if isinstance(path, str | Path) else f"{base_name(files[0])} and others"
    return pd.concat([*tables, *reports], ignore_index=True), label, notes


def _table_of(path: Path, name: FileName, asked: ScoreColumns) -> pd.DataFrame | Mapping[str, Any]:
    """The long table of a file: "model", "item", "score", and its other columns; or results without items, as read."""
    if zipfile.is_zipfile(path) and path.suffix.lower() not in (".xlsx", ".parquet"):
        return _inspect(read_archive(path), asked)
    document = _document(path)
    if document is not None and is_results(document):
        return document
    if isinstance(document, dict):
        return _of_document(document, name, asked)
    names = head_names(path)
    if are_samples(names):
        return _lm_eval(path, name, names, asked)
    if {"evaluation_name", "sample_id", "model_id", "evaluation"} <= set(names):
        return _every_eval_ever(path, asked)
    if {"task_id", "reward"} <= set(names):
        own = _columns_of(path, ["task_id", "reward"], ["trial", "model"])
        return _with_model(own.rename(columns={"task_id": "item", "reward": "score"}), name)
    return _plain_table(path, name, names, asked)


def _columns_of(path: Path, named_columns: Sequence[str], beside: Sequence[str] = ()) -> pd.DataFrame:
    needed = NeededColumns(named=tuple(named_columns), results=(), beside=tuple(beside))
    return with_types(path, partial(_pieces, path, needed))


def _pieces(path: Path, needed: NeededColumns, widened: dict[str, Any]) -> pd.DataFrame:
    return pd.concat([frame_of(piece, nested=True) for piece in pieces(path, needed, (), widened)], ignore_index=True)


def _plain_table(path: Path, name: FileName, names: Sequence[str], asked: ScoreColumns) -> pd.DataFrame:
    if asked.wide:
        return _wide_table(path, asked)
    roles = {"model": asked.model, "item": asked.item, "score": asked.score}
    wanted = {role: own or role for role, own in roles.items()}
    lone = asked.model is None and "model" not in names
    named_columns = [own for role, own in wanted.items() if not (lone and role == "model")]
    further = [own for own in (getattr(asked, role) for role in _USUAL) if own is not None]
    usual = [role for role in _USUAL if getattr(asked, role) is None]
    frame = _columns_of(path, [*named_columns, *further, *asked.keep], usual)
    renamed = {own: role for role, own in wanted.items()}
    renamed |= {own: role for role in _USUAL if (own := getattr(asked, role)) is not None}
    frame = frame.rename(columns={own: role for own, role in renamed.items() if own not in asked.keep})
    for own, role in renamed.items():  # a column with a role may also be one of ``keep``
        if own in asked.keep and own in frame:
            frame[role] = frame[own]
    return _with_model(frame, name) if lone else frame


def _wide_table(path: Path, asked: ScoreColumns) -> pd.DataFrame:
    frame = with_types(path, partial(_pieces, path, ALL_COLUMNS))
    item = asked.item or ("item" if "item" in frame else None)
    about = [x for x in (item, asked.cluster, asked.benchmark, asked.weight, *asked.keep) if x is not None]
    about += [x for x in ("cluster", "benchmark", "weight") if x in frame and x not in about]
    for column in about:
        require_column(frame, column)
    models = [x for x in frame if x not in about and pd.api.types.is_numeric_dtype(frame[x])]
    texts = [x for x in frame if x not in about and x not in models]
    if texts:
        raise DataError(
            f"{counted(len(texts), 'column holds', 'columns hold')} no numbers, so that they are no models: "
            f"{named(texts)}. Name the columns of items and slices (item= and keep=; on the command line --item and "
            "--by), or drop them"
        )
    if item is None:
        frame, about, item = frame.assign(item=np.arange(len(frame))), ["item", *about], "item"
    long = frame.melt(about, models, var_name="model", value_name="score")
    roles = {own: role for role in ("item", *_USUAL) if (own := getattr(asked, role)) is not None}
    return long.rename(columns=roles)


def _with_model(frame: pd.DataFrame, name: FileName) -> pd.DataFrame:
    """The table with a column "model": by default the name of the file."""
    if "model" in frame:
        return frame
    return frame.assign(model=re.sub(r"(\.\w+)+$", "", base_name(name)))


def _lm_eval(path: Path, name: FileName, names: Sequence[str], asked: ScoreColumns) -> pd.DataFrame:
    metric = metric_of(names, asked.score)
    frame = _columns_of(path, ["doc_id", metric], ["filter"]).rename(columns={"doc_id": "item", metric: "score"})
    frame = samples_table(frame, name, asked.output_filter)
    frame.attrs["samples"] = True
    return frame


def _every_eval_ever(path: Path, asked: ScoreColumns) -> pd.DataFrame:
    columns = {"model_id": "model", "sample_id": "item", "evaluation_name": "benchmark", "evaluation.score": "score"}
    return _columns_of(path, [*columns, *asked.keep]).rename(columns=columns)


def _document(path: Path) -> Any:
    """The object that a JSON file holds; None for lists, lines of JSON and other files."""
    if path.suffix.lower() != ".json" or path.stat().st_size > _MOST_BYTES:
        return None
    with path.open("rb") as file:
        text = file.read()
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None  # lines of JSON, or a damaged file, which is reported when it is read as a table
    return found if isinstance(found, dict) else None


def _of_document(document: dict[str, Any], name: FileName, asked: ScoreColumns) -> pd.DataFrame:
    if isinstance(document.get("eval"), dict) and "samples" in document:
        return _inspect(document, asked)
    if isinstance(document.get("simulations"), list):
        return _tau2(document, name)
    if "resolved_ids" in document or "resolved" in document:
        return _swe_bench(document, name)
    if {"item", "score"} <= document.keys() or {asked.item, asked.score} <= document.keys():
        return _with_model(pd.DataFrame([document]), name)
    raise DataError(
        f"the file is a JSON object with the keys {named(list(document))}, which no known harness writes: expected a "
        "log of Inspect (eval, samples), results of lm-evaluation-harness, a report of SWE-bench (resolved_ids), "
        "results of tau2-bench (simulations), or a table"
    )


def _inspect(log: Mapping[str, Any], asked: ScoreColumns) -> pd.DataFrame:
    frame, notes = inspect_table(log, asked.score)
    frame.attrs["notes"] = notes
    return frame


def _tau2(document: Mapping[str, Any], name: FileName) -> pd.DataFrame:
    try:
        rows = [
            (own.get("task_id"), own.get("trial", 0), (own.get("reward_info") or {}).get("reward"))
            for own in document["simulations"]
        ]
        frame = pd.DataFrame(rows, columns=["item", "trial", "score"]).astype({"item": str, "score": float})
    except (AttributeError, TypeError, ValueError) as error:
        raise DataError(
            "a simulation of the results is no object whose reward_info has a reward, which is a number: the file may "
            "be damaged"
        ) from error
    agent = ((document.get("info") or {}).get("agent_info") or {}).get("llm")
    return _with_model(frame if agent is None else frame.assign(model=agent), name)


def _swe_bench(document: Mapping[str, Any], name: FileName) -> pd.DataFrame:
    """The ids that a report names are its items; `_complete` adds the ids that it does not name."""
    resolved = document.get("resolved_ids", document.get("resolved"))
    lists = [own for key, own in document.items() if isinstance(own, list) and all(isinstance(x, str) for x in own)]
    if not isinstance(resolved, list):
        raise DataError("the report counts resolved items, but does not list their ids: use a report with resolved_ids")
    items = pd.Index(sorted({x for own in lists for x in own}))
    frame = pd.DataFrame({"item": items, "score": items.isin(resolved).astype(float)})
    path = Path(str(name))
    stem = path.parent.parent.name if path.parent.name == "results" else path.parent.name
    frame = frame.assign(model=stem) if path.stem in ("results", "report") else _with_model(frame, name)
    frame.attrs["resolved"] = True
    return frame


def _complete(reports: list[pd.DataFrame]) -> list[str]:
    """Add to every report the items that only other reports name, as not resolved; and say in words how many."""
    items = sorted(set().union(*(report["item"] for report in reports)))
    added = 0
    for number, report in enumerate(reports):
        lacking = pd.Index(items).difference(report["item"])
        added += len(lacking)
        rest = pd.DataFrame({"item": lacking, "score": 0.0, "model": report["model"].iloc[0]})
        reports[number] = pd.concat([report, rest], ignore_index=True)
    if not reports:
        return []
    return [
        f"reports of SWE-bench name {counted(len(items), 'item')}; {counted(added, 'score')} of items that a report "
        "does not name count as not resolved, and items that no report names do not count"
    ]
