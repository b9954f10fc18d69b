"""Columns of tables of runs and of scores: by the names that are usual, or those that the caller has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from jaxeval.arrays import Float, Int
from jaxeval.data.columns import as_frame, folded, reject_missing, require_column
from jaxeval.data.labels import SCORES_IN_WORDS
from jaxeval.data.numbers import numbers, numeric_but_for_gaps, reject_values
from jaxeval.data.roles import NO_SCORES, RESULT_COUNTS, usual_column
from jaxeval.errors import ColumnError, DataError
from jaxeval.wording import counted, named, words_of

ScoreUnit = Literal["auto", "share", "percent"]

#: Names that columns have in public files; the first one that is there is read, in any spelling.
USUAL = {
    "agent": ("agent", "alias", "model"),
    "task": ("task", "task_id"),
    "family": ("family", "task_family"),
    "minutes": ("minutes", "human_minutes"),
    "success": ("success", "score_binarized"),
    "model": ("model", "model_name", "model_id"),
    "benchmark": ("benchmark", "benchmark_name", "benchmark_id"),
    "score": ("score", "performance", "share"),
}
#: Options of the command that have another name than in Python.
_FLAGS = {"score": "share"}


def columns_by_role(
    table: Any, names: Mapping[str, str | None], noun: str, optional: tuple[str, ...] = ()
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return a table of ``noun``, and which of its columns has each role: the caller's name of it, or a usual one.

    Roles that are ``optional`` and have no column are left out.
    """
    frame, columns = as_frame(table), {}
    for role, name in names.items():
        column = usual_column(frame, name, USUAL[role])
        if column is not None:
            columns[role] = column
        elif role not in optional:
            flag = _FLAGS.get(role, role)
            raise ColumnError(
                f"no column of the {role}: name it by {role}= (on the command line --{flag}); looked for "
                f"{named(USUAL[role])}, and the columns are {named(frame.columns)}"
            )
    if not len(frame):
        raise DataError(f"the table has no {noun}")
    return frame, columns


_LIKE_MEAN = 0.006  # by how much a mean of the others may differ from it, as published ones are rounded


def by_benchmark(table: Any, names: Mapping[str, str | None], unit: ScoreUnit = "auto") -> tuple[Any, tuple[str, ...]]:
    """Return a row for each model and benchmark of a table with a column for each benchmark, and what is told of it.

    ``names`` are those of `columns_by_role`. Another table is returned as it is, with nothing to say. The ``unit`` of
    all benchmarks is by default that of most of them: per cents may be at most 1 on a hard one.
    """
    frame = as_frame(table)
    model = usual_column(frame, names["model"], USUAL["model"])
    if model is None or any(usual_column(frame, names[x], USUAL[x]) for x in ("benchmark", "score")):
        return frame, ()
    others = [name for name in frame if name != model and folded(name) not in RESULT_COUNTS]
    read = {name: _in_units(frame[name], {"%": 0.01}, {}) for name in others}
    numeric = {name: x.astype(float) for name, x in read.items() if pd.api.types.is_any_real_numeric_dtype(x)}
    found = pd.DataFrame({name: x for name, x in numeric.items() if not any(map(NO_SCORES.fullmatch, words_of(name)))})
    means = [name for name in found if found.shape[1] > 2 and _is_mean(found[name], found.drop(columns=name))]
    found = found.drop(columns=means)
    if found.shape[1] < 2:
        return frame, ()
    plain = found.loc[:, [not _has_signs(frame[name]) for name in found]]
    in_per_cent = unit == "percent" or (unit == "auto" and bool(2 * (plain.max() > 1).sum() > plain.shape[1]))
    most = 100 if in_per_cent else 1
    found[plain.columns] = plain / most
    if odd := list(map(repr, found.columns[((found < 0) | (found > 1)).any()])):
        other, what = ("share", "shares") if in_per_cent else ("percent", "per cents")
        raise DataError(
            f"a row for each model, and columns of numbers that may be benchmarks, but {named(odd)} "
            f"{'is' if len(odd) == 1 else 'are'} not between 0 and {most}: leave out columns that are no shares of "
            f'right answers, or say unit="{other}" (on the command line --unit {other}) if all benchmarks are {what}'
        )
    told = f"a row for each {model!r}, and benchmarks in {named(list(map(repr, found)))}"
    told += ", read as per cents" * in_per_cent
    if in_per_cent and unit == "auto" and (low := list(map(repr, plain.columns[plain.max() <= 1]))):
        told += f", as most are above 1, and so {named(low)}, where no model has more than 1"
    rest = [repr(name) for name in read if name not in found]
    told += f"; not taken as benchmarks: {named(rest)}" if rest else ""
    long = found.assign(**{model: frame[model]}).melt(model, var_name="benchmark", value_name="score")
    return long.dropna(subset="score").reset_index(drop=True), (told,)


def _has_signs(column: pd.Series) -> bool:
    return bool(column.astype(str).str.contains("%").any())


def _is_mean(column: pd.Series, others: pd.DataFrame) -> bool:
    there = others.notna().all(axis=1) & column.notna()
    off = (column - others.mean(axis=1))[there].abs()
    return there.sum() > 2 and bool((off <= _LIKE_MEAN * max(1.0, column.max())).all())


_MINUTES = {"s": 1 / 60, "sec": 1 / 60, "m": 1.0, "min": 1.0, "h": 60.0, "hr": 60.0, "hour": 60.0, "d": 1440.0,
            "day": 1440.0}  # fmt: skip
_QUANTITY = re.compile(r"([\d.]+(?:e[+-]?\d+)?) *(%|[a-z]+?)s?")


def shares(frame: pd.DataFrame, name: str) -> Float:
    """Return shares, where they may be written as 40% or as pass and fail."""
    return numbers(_in_units(frame[name], {"%": 0.01}, SCORES_IN_WORDS), name)


def minutes_of(frame: pd.DataFrame, name: str) -> Float:
    """Return lengths in minutes, where they may have a unit: 90 s, 5 min, 1.5h, 2 days."""
    return numbers(_in_units(frame[name], _MINUTES, {}), name)


def _in_units(column: pd.Series, units: Mapping[str, float], words: Mapping[str, float]) -> pd.Series:
    """Return a column of text as numbers, if all of it can be read as such; else the column itself."""
    if column.dtype == bool or not pd.api.types.is_string_dtype(column):
        return column
    if "%" in units and (numeric := numeric_but_for_gaps(column)) is not column:
        return numeric
    read: dict[Any, float] = {}
    for value in column.dropna().unique():
        text = str(value).strip().casefold()
        match = _QUANTITY.fullmatch(text)
        if text in words:
            read[value] = words[text]
        elif match is not None and match[2] in units:
            read[value] = float(match[1]) * units[match[2]]
        else:
            try:
                read[value] = float(text)
            except ValueError:
                return column
    return column.map(read)


def texts(frame: pd.DataFrame, column: str) -> pd.Series:
    """Return the names in a column, as text."""
    reject_missing(frame[column].isna().to_numpy(), column)
    return frame[column].astype(str).reset_index(drop=True)


def of_each(table: Any, name: str | None, role: str, column: str) -> dict[str, Any]:
    """Return the value of ``column`` that each agent or model has, by its name."""
    frame, columns = columns_by_role(table, {role: name}, "rows")
    require_column(frame, column)
    key = columns[role]
    values = frame.dropna(subset=[column]).groupby(frame[key].astype(str))[column]
    several = values.nunique()
    if several.max() > 1:
        raise DataError(f"{several.idxmax()!r} has several values of {column!r}, and each {key} has one")
    each: dict[str, Any] = values.first().to_dict()
    return each


class BenchmarkCells(NamedTuple):
    """Shares of models on benchmarks, one for each pair that is there."""

    models: pd.Index
    benchmarks: pd.Index
    model: Int
    benchmark: Int
    share: Float
    questions: Float
    told: tuple[str, ...]


def benchmark_cells(
    table: Any, columns: Mapping[str, str | None], n: str | None, unit: ScoreUnit = "auto"
) -> BenchmarkCells:
    """Return the shares of a table in the ``columns`` of these roles; ``n`` is that of the numbers of questions."""
    frame, told = by_benchmark(table, columns, unit) if n is None else (table, ())
    frame, names = columns_by_role(frame, columns, "scores")
    of_model, of_benchmark = (texts(frame, names[role]) for role in ("model", "benchmark"))
    share, wanted = shares(frame, names["score"]), "a per cent between 0 and 100"
    most = 100 if unit == "percent" and not told and not _has_signs(frame[names["score"]]) else 1
    if most == 1:
        wanted = 'a share between 0 and 1; divide per cents by 100, or say unit="percent" (--unit percent)'
    reject_values(share, (share < 0) | (share > most), names["score"], wanted)
    share = share / most
    questions = np.ones(len(frame))
    if n is not None:
        require_column(frame, n)
        questions = numbers(frame[n], n)
        reject_values(questions, ~(questions > 0), n, "above 0")
        questions = questions / questions.mean()
    model, models = pd.factorize(of_model, sort=True)
    benchmark, benchmarks = pd.factorize(of_benchmark, sort=True)
    pairs = pd.DataFrame({"model": model, "benchmark": benchmark})
    if pairs.duplicated().any():
        one = pairs[pairs.duplicated()].iloc[0]
        raise DataError(
            f"{models[one['model']]!r} has several scores on {benchmarks[one['benchmark']]!r}: keep one, or give each "
            "setting a name of its own"
        )
    _check_connected(model, benchmark, pd.Index(models), pd.Index(benchmarks))
    return BenchmarkCells(
        pd.Index(models, name="model"), pd.Index(benchmarks), model, benchmark, share, questions, told
    )


def _check_connected(model: Int, benchmark: Int, models: pd.Index, benchmarks: pd.Index) -> None:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(models) + len(benchmarks)
    graph = coo_array((np.ones(len(model)), (model, len(models) + benchmark)), shape=(n, n))
    n_parts, part = connected_components(graph, directed=False)
    if n_parts > 1:
        smallest = int(np.argmin(np.bincount(part)))
        apart = part == smallest
        raise DataError(
            f"models and benchmarks fall into {n_parts} parts that share nothing: "
            f"{named(models[apart[: len(models)]])} and {named(benchmarks[apart[len(models) :]])} meet none of the "
            "others, so no scale holds both; leave them out, or rate them by themselves"
        )
    if len(models) < 3 or len(benchmarks) < 2:
        raise DataError(
            f"an index needs 3 models and 2 benchmarks, got {counted(len(models), 'model')} and "
            f"{counted(len(benchmarks), 'benchmark')}"
        )
