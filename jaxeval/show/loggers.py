"""Results for what tracks experiments: MLflow, W&B, OpenTelemetry and Every Eval Ever.

A result says its numbers by `logged_values`, and each logger spells them in its own words. MLflow, W&B and
OpenTelemetry are imported when they are asked for, and by their public calls alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import posixpath
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from jaxeval.checks import check_choice
from jaxeval.errors import DataError
from jaxeval.plain_tables import in_pandas
from jaxeval.show.cells import find_intervals
from jaxeval.show.files import Logger, answer_bytes, plain_values
from jaxeval.show.shown import Answer, Result, settings_line, settings_of

#: Columns with the number of what an estimate rests on.
_COUNTS = ("n_items", "vote_count", "n_battles", "n_test", "n")
_LONGEST_KEY = 120
_PACKAGES = {"mlflow": "mlflow", "wandb": "wandb", "opentelemetry": "opentelemetry-api"}


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
        >>> from jaxeval.show.loggers import logged_values
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
        >>> from jaxeval.show.loggers import opentelemetry_attributes
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
        >>> from jaxeval.show.loggers import every_eval_ever
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
