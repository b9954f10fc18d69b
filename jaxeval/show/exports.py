"""Results for other programs: MLflow, W&B, OpenTelemetry, Every Eval Ever, and the Hugging Face Hub.

A result says its numbers by `logged_values`, and each logger spells them in its own words. MLflow, W&B and
OpenTelemetry are imported when they are asked for, and by their public calls alone.

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

import contextlib
import hashlib
import importlib
import json
import posixpath
import re
from collections.abc import Callable, Mapping
from datetime import date
from math import inf
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from jaxeval.checks import check_choice
from jaxeval.errors import DataError
from jaxeval.execution.atomic_write import whole_file
from jaxeval.lazy_names import pd
from jaxeval.plain_tables import in_pandas
from jaxeval.show.cells import find_intervals
from jaxeval.show.files import Logger, answer_bytes, plain_values
from jaxeval.show.shown import Answer, Result, settings_line, settings_of
from jaxeval.wording import named

#: Columns with the number of what an estimate rests on.
_COUNTS = ("n_items", "vote_count", "n_battles", "n_test", "n")
_LONGEST_KEY = 120
_PACKAGES = {"mlflow": "mlflow", "wandb": "wandb", "opentelemetry": "opentelemetry-api"}
#: Bytes of a file's name that every file system accepts, less room for a digest.
_LONGEST_NAME = 180
_DATASET = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_ARENA_NUMBERS = ("rating", "rating_lower", "rating_upper", "variance")
_ARENA_COUNTS = ("vote_count", "rank")
_ARENA_NAMES = {"model": "model_name", "lower": "rating_lower", "upper": "rating_upper"}
#: Columns in their order, and their types.
ARENA_COLUMNS = {
    **dict.fromkeys(("model_name", "organization", "license"), "string"), **dict.fromkeys(_ARENA_NUMBERS, "Float64"),
    **dict.fromkeys(_ARENA_COUNTS, "Int64"), **dict.fromkeys(("category", "leaderboard_publish_date"), "string"),
}  # fmt: skip


class LoggedValue(NamedTuple):
    """An estimate of a result, with what is known of its error; what is not known is None."""

    name: str  # of the quantity, as "score"
    of: str  # a model, a pair or a task; empty where there is one value
    value: float
    lower: float | None
    upper: float | None
    standard_error: float | None
    n: int | None
    label: str | None  # a verdict


def logged_values(result: Result | Answer) -> list[LoggedValue]:
    """Return a value for each row of a result's main table that has an estimate with an interval.

    Examples:
        >>> import jaxeval
        >>> from jaxeval.show.exports import logged_values
        >>> board = jaxeval.score_leaderboard(jaxeval.simulate_scores(100, 3, seed=1), n_resamples=100)
        >>> (first, *others) = logged_values(board)
        >>> first.name, first.of, round(first.value, 2), round(first.standard_error, 2), first.n
        ('score', 'model-1', 0.59, 0.05, 100)
    """
    answer = result if isinstance(result, Answer) else result.answer
    table = _main_table(answer)
    intervals = find_intervals(table)
    if not intervals:
        raise DataError(
            f"{answer.title or 'the result'} has no estimate with an interval in its main table, whose columns are "
            f"{', '.join(map(str, table.columns)) or 'none'}: log a board, a comparison or a gate"
        )
    first = intervals[0]
    name = str(table.columns[first.estimate])
    numeric = [pd.api.types.is_numeric_dtype(kind) for kind in table.dtypes]
    texts = [k for k in range(first.estimate) if not numeric[k] and table.columns[k] != "verdict"]
    values = []
    for row in table.itertuples(index=False, name=None):
        if not np.isfinite(value := _number(row[first.estimate], np.nan)):
            continue
        cells = dict(zip(table.columns, row, strict=True))
        error = cells.get("standard_error")
        if error is None and (variance := _number(cells.get("variance"))) is not None:
            error = np.sqrt(variance)
        n = next((_number(cells[name]) for name in _COUNTS if name in cells), None)
        values.append(
            LoggedValue(
                name, "/".join(str(row[j]) for j in texts if not pd.isna(row[j])), value, _number(row[first.lower]),
                _number(row[first.upper]), _number(error), None if n is None else int(n),
                str(cells["verdict"]) if "verdict" in cells else None,
            )
        )  # fmt: skip
    return values


def _main_table(answer: Answer) -> pd.DataFrame:
    table = in_pandas(next(iter(answer.tables.values()), answer.table))
    if table is None:
        return pd.DataFrame()
    named = [name for name in table.index.names if name is not None]
    return pd.DataFrame(table.reset_index() if named else table)


def _number(value: Any, missing: Any = None) -> Any:
    """Return a finite float, or ``missing``."""
    if value is None or pd.isna(value) or not np.isfinite(float(value)):
        return missing
    return float(value)


def opentelemetry_attributes(result: Result | Answer) -> list[dict[str, str | float | int]]:
    """Return the attributes of an event ``gen_ai.evaluation.result`` for each value.

    ``gen_ai.evaluation.name``, ``.score.value``, ``.score.label`` (a verdict) and ``.explanation`` (the first sentence)
    are of OpenTelemetry's semantic conventions; they have no words for errors, which are ``jaxeval.lower``,
    ``jaxeval.upper``, ``jaxeval.level``, ``jaxeval.standard_error``, ``jaxeval.n`` and ``jaxeval.of``.

    Examples:
        >>> import jaxeval
        >>> from jaxeval.show.exports import opentelemetry_attributes
        >>> compared = jaxeval.compare_scores(jaxeval.simulate_scores(100, 3, seed=1), "model-1", "model-2")
        >>> (event,) = opentelemetry_attributes(compared)
        >>> event["gen_ai.evaluation.name"], round(event["gen_ai.evaluation.score.value"], 2)
        ('difference', 0.12)
    """
    answer = result if isinstance(result, Answer) else result.answer
    level = settings_of(answer.settings).get("level")
    return [
        _known(
            {
                "gen_ai.evaluation.name": logged.name, "gen_ai.evaluation.score.value": logged.value,
                "gen_ai.evaluation.score.label": logged.label,
                "gen_ai.evaluation.explanation": next(iter(answer.sentences), None), "jaxeval.of": logged.of or None,
                "jaxeval.lower": logged.lower, "jaxeval.upper": logged.upper, "jaxeval.level": level,
                "jaxeval.standard_error": logged.standard_error, "jaxeval.n": logged.n,
            }
        )
        for logged in logged_values(answer)
    ]  # fmt: skip


def every_eval_ever(result: Result | Answer) -> dict[str, dict[str, Any]]:
    """Return the object ``score_details`` of Every Eval Ever's schema (version 0.2.2) for each model, pair or task.

    It holds the ``score`` and its ``uncertainty``: ``standard_error``, ``confidence_interval`` and ``num_samples``.

    Examples:
        >>> import jaxeval
        >>> from jaxeval.show.exports import every_eval_ever
        >>> board = jaxeval.score_leaderboard(jaxeval.simulate_scores(100, 3, seed=1), n_resamples=100)
        >>> details = every_eval_ever(board)["model-1"]
        >>> round(details["score"], 2), details["uncertainty"]["confidence_interval"]["confidence_level"]
        (0.59, 0.95)
    """
    answer = result if isinstance(result, Answer) else result.answer
    method = f"jaxeval: {settings_line(answer.settings)}"
    level = settings_of(answer.settings).get("level")
    details = {}
    for logged in logged_values(answer):
        uncertainty: dict[str, Any] = {}
        if logged.standard_error is not None:
            uncertainty["standard_error"] = {"value": logged.standard_error, "method": method}
        if logged.lower is not None and logged.upper is not None:
            ends = {"lower": logged.lower, "upper": logged.upper, "confidence_level": level, "method": method}
            uncertainty["confidence_interval"] = _known(ends)
        if logged.n is not None:
            uncertainty["num_samples"] = logged.n
        details[logged.of] = {"score": logged.value, "uncertainty": uncertainty}
    return details


def log_result(result: Result | Answer, logger: Logger) -> None:
    """Write a result to the active run of a logger, or to a run of its own where none is active.

    ======================  ============================================================================================
    ``"mlflow"``            metrics ``score/MODEL``, ``score_lower/MODEL`` and so on; the artifacts ``jaxeval/NAME.md``
                            and ``.csv``; the tag ``jaxeval.answer``
    ``"wandb"``             the same names in the run's summary; the table ``jaxeval/NAME``
    ``"opentelemetry"``     an event ``gen_ai.evaluation.result`` for each value, to the global logger provider
    ======================  ============================================================================================

    Where they are is said to them as to any program, as by ``MLFLOW_TRACKING_URI``, ``MLFLOW_RUN_ID`` or
    ``WANDB_MODE``. Names that MLflow does not take have "_" for other signs and end with a digest; tables hold them as
    they are.

    Raises:
        DataError: the logger's package is not installed, or it does not take the result, as where its server does not
            answer or no provider of OpenTelemetry is set; the result has no estimate with an interval.
        ValueError: there is no such logger.

    Examples:
        >>> import jaxeval
        >>> board = jaxeval.score_leaderboard(jaxeval.simulate_scores(100, 3, seed=1), n_resamples=100)
        >>> jaxeval.log_result(board, "mlflow")  # doctest: +SKIP
    """
    module = logger_module(logger)
    answer = result if isinstance(result, Answer) else result.answer
    values = logged_values(answer)
    try:
        _WRITERS[logger](module, answer, values)
    except Exception as error:  # whatever it meets: its server, its store, its account
        raise DataError(f"{logger} did not take the result: {error}") from error


def logger_module(logger: Logger) -> Any:
    """Import a logger."""
    check_choice("logger", logger, Logger)
    try:
        module = importlib.import_module("opentelemetry._logs" if logger == "opentelemetry" else logger)
    except ImportError as error:
        raise DataError(f"{logger} is not installed: pip install {_PACKAGES[logger]} ({error})") from None
    if logger == "opentelemetry" and type(module.get_logger_provider()).__module__.startswith("opentelemetry._logs"):
        raise DataError(
            "no logger provider of OpenTelemetry is set, so that events would go nowhere: run the command by "
            "opentelemetry-instrument (pip install opentelemetry-distro), or call set_logger_provider first"
        )
    return module


def _metrics(values: list[LoggedValue]) -> dict[str, float]:
    """Return numbers by names that MLflow takes, and whoever is not stricter."""
    metrics = dict[str, float]()
    for logged in values:
        ends = {f"{logged.name}_{end}": getattr(logged, end) for end in ("lower", "upper", "standard_error")}
        known = _known({logged.name: logged.value, **ends})
        metrics |= {_key("/".join(filter(None, [name, logged.of]))): number for name, number in known.items()}
    return metrics


def _key(name: str) -> str:
    safe = re.sub(r"[^\w./ :-]", "_", name, flags=re.ASCII)
    if posixpath.normpath(safe) != safe:
        safe = safe.replace("/", "_").replace(".", "_")
    if safe == name and len(name) <= _LONGEST_KEY:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{safe[:_LONGEST_KEY]}-{digest}"


def _to_mlflow(mlflow: Any, answer: Answer, values: list[LoggedValue]) -> None:
    name = _name(answer)
    with contextlib.nullcontext() if mlflow.active_run() else mlflow.start_run():
        mlflow.log_metrics(_metrics(values))
        for ending in ("md", "csv"):
            mlflow.log_text(answer_bytes(answer, ending).decode(), f"jaxeval/{name}.{ending}")
        if answer.sentences:
            mlflow.set_tags({"jaxeval.answer": answer.sentences[0]})


def _to_wandb(wandb: Any, answer: Answer, values: list[LoggedValue]) -> None:
    started = None if wandb.run is not None else wandb.init(job_type="jaxeval")
    run = wandb.run if started is None else started
    table = _main_table(answer)
    rows = plain_values(table.astype(object).to_numpy().tolist())
    run.log({f"jaxeval/{_name(answer)}": wandb.Table(columns=list(map(str, table.columns)), data=rows)})
    run.summary.update(_metrics(values) | {"jaxeval.answer": "\n".join(answer.sentences)})
    if started is not None:
        started.finish()


def _to_opentelemetry(logs: Any, answer: Answer, values: list[LoggedValue]) -> None:
    logger = logs.get_logger("jaxeval")
    for attributes in opentelemetry_attributes(answer):
        logger.emit(logs.LogRecord(event_name="gen_ai.evaluation.result", attributes=attributes))


_WRITERS: Mapping[str, Callable[[Any, Answer, list[LoggedValue]], None]] = {
    "mlflow": _to_mlflow, "wandb": _to_wandb, "opentelemetry": _to_opentelemetry
}  # fmt: skip


def _name(answer: Answer) -> str:
    return next(iter(answer.tables), "result")


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


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
            "dataset": _known({"id": dataset, "task_id": task, "revision": revision}),
            "value": float(row[value]),
            **_known({"date": date}),
            **({"source": {"url": source}} if source else {}),
            **_known({"notes": "; ".join(filter(None, (notes, interval))) or None}),
        }
        files[model] = Path(folder) / _file_name(model) / ".eval_results" / f"{_file_name(task)}.yaml"
        files[model].parent.mkdir(parents=True, exist_ok=True)
        with whole_file(files[model]) as file:
            file.write(_yaml(entry).encode())
    return files


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
    lacking = [name for name in ("model_name", *_ARENA_NUMBERS, *_ARENA_COUNTS) if name not in table]
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
        **{name: x.where(x.abs() < inf) for name, x in table[list(_ARENA_NUMBERS)].astype(float).items()},
        **{name: table[name] for name in _ARENA_COUNTS},
        "category": table.get("category", "overall"), "leaderboard_publish_date": day.isoformat(),
    }  # fmt: skip
    arena = pd.DataFrame(columns, index=table.index).loc[:, list(ARENA_COLUMNS)].astype(ARENA_COLUMNS)
    arena.attrs = dict(table.attrs)
    return arena
