"""The data of a statistic: arrays with a row for each observation, and the columns that say what is drawn together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Float
from jaxeval.data.columns import as_frame, factorize_sorted
from jaxeval.data.item_scores import ItemScores
from jaxeval.errors import DataError
from jaxeval.wording import counted, did_you_mean, named

TAKEN = "an array with a row for each observation, several of them as a dict or a tuple, a table, Battles or ItemScores"


class Given(NamedTuple):
    """N rows."""

    arrays: Any  # what the statistic gets: a tree of arrays (N, ...)
    n: int
    columns: Mapping[str, Any]  # (N,) each, which groups may be made of
    names: pd.Index | None = None  # of what it has a column for each, as models
    stream: str = ""  # names the random numbers
    alike: bool = False  # whether equal rows are drawn together

    def groups(self, chosen: Any, option: str) -> tuple[NDArray[np.intp], pd.Index]:
        """(N,) group of each row, and the groups: by the name of a column, or by values for each row.

        Raises:
            DataError: there is no such column, values are missing, or there are not as many as rows.
        """
        if isinstance(chosen, str) or (np.ndim(chosen) == 0 and not isinstance(chosen, set)):
            if chosen not in self.columns:
                have = named(list(self.columns)) if self.columns else "none"
                raise DataError(
                    f"{option}={chosen!r} names no column of the data; there are {have}"
                    f"{did_you_mean(chosen, self.columns)}"
                )
            return factorize_sorted(pd.Series(np.asarray(self.columns[chosen])), str(chosen))
        values = np.asarray(chosen)
        if values.ndim != 1 or len(values) != self.n:
            raise DataError(
                f"{option}= must name a column, or hold a value for each of the {counted(self.n, 'row')}, got an array "
                f"of shape {values.shape}"
            )
        return factorize_sorted(pd.Series(values), option)

    def taken(self, rows: NDArray[np.intp]) -> Given:
        """Some of the rows."""
        columns = {name: np.asarray(x)[rows] for name, x in self.columns.items()}
        return self._replace(arrays=jax.tree.map(lambda x: x[rows], self.arrays), n=len(rows), columns=columns)

    @property
    def matrix(self) -> Float:
        """(N, C) all numbers of each row."""
        parts = [np.asarray(x, float).reshape(self.n, -1) for x in jax.tree.leaves(self.arrays)]
        return np.concatenate(parts, axis=1) if parts else np.zeros((self.n, 0))


def given_rows(data: Any, grouping: Sequence[str]) -> Given:
    """``data`` as rows; columns that are named in ``grouping`` make groups, and are no part of what a statistic gets.

    Raises:
        TypeError: it is of another kind.
        DataError: there are no rows, no numbers, or arrays of different lengths.
    """
    if isinstance(data, ItemScores):
        return _of_scores(data)
    if isinstance(data, pd.DataFrame) or hasattr(data, "__arrow_c_stream__"):
        return _of_table(as_frame(data), grouping)
    if isinstance(data, Mapping):
        kept = {name: x for name, x in data.items() if name not in grouping}
        arrays = {name: _array(x, repr(name)) for name, x in kept.items()}
        columns = {str(name): np.asarray(x) for name, x in data.items() if np.ndim(x) == 1}
        return _checked(arrays, {repr(name): x for name, x in arrays.items()}, columns)
    if isinstance(data, tuple):
        parts = tuple(_array(x, f"number {k}") for k, x in enumerate(data))
        return _checked(parts, {f"number {k}": x for k, x in enumerate(parts)}, {})
    if isinstance(data, str | bytes) or data is None or np.ndim(data) == 0:
        raise TypeError(f"data must be {TAKEN}, got {type(data).__name__}")
    array = _array(data, "data")
    names = pd.Index([data.name]) if isinstance(data, pd.Series) and data.name is not None else None
    return _checked(array, {"data": array}, {})._replace(names=names)


def _of_table(frame: pd.DataFrame, grouping: Sequence[str]) -> Given:
    several = frame.columns[frame.columns.duplicated()]
    if len(several):
        raise DataError(f"the table has several columns called {named(several)}: rename or drop all but one")
    kept = [c for c in frame.columns if c not in grouping and pd.api.types.is_numeric_dtype(frame[c].dtype)]
    if not kept:
        raise DataError(
            f"the table has no column of numbers besides those that make groups; its columns are {named(frame.columns)}"
        )
    array = frame[kept].to_numpy(float, na_value=np.nan)
    columns = {str(c): frame[c].to_numpy() for c in frame.columns}
    return _checked(array, {"the table": array}, columns)._replace(names=pd.Index(kept))


def _of_scores(scores: ItemScores) -> Given:
    """Scores (I, M) of the models on each item; items are drawn as `score_leaderboard` draws them."""
    if len(scores.evaluators) > 1:
        raise DataError(
            f"scores of {counted(len(scores.evaluators), 'evaluator')}: {named(scores.evaluators)}; a statistic takes "
            "those of one: choose its rows, or pass .scores as an array"
        )
    columns: dict[str, Any] = {"item": np.arange(len(scores.items))}
    for own in (scores.cluster, scores.benchmark):
        if own is not None:
            columns[own.column] = np.asarray(own.names)[own.number]
    for name, column in scores.columns.items():
        if len(column.item) == len(scores.items):
            columns[name] = np.asarray(column.levels)[column.number[np.argsort(column.item)]]
    array = scores.scores[:, 0]
    given = _checked(array, {"the scores": array}, columns)
    return given._replace(names=scores.models.rename("model"), stream="scores", alike=True)


def _array(values: Any, what: str) -> NDArray[Any]:
    """``values`` as an array of numbers."""
    if isinstance(values, pd.DataFrame):
        values = values.to_numpy()
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise DataError(f"{what} of the data is no array: {error}") from None
    if array.dtype == object:
        with suppress(TypeError, ValueError):
            array = array.astype(float)
    if array.dtype.kind not in "biuf":
        kind = "text" if array.dtype.kind in "US" else f"values of type {array.dtype}"
        raise DataError(
            f"{what} of the data holds {kind}, and a statistic takes numbers: number its values (pandas.factorize), or "
            "name it as cluster=, strata= or by="
        )
    return array


def _checked(arrays: Any, each: Mapping[str, NDArray[Any]], columns: Mapping[str, Any]) -> Given:
    if not each:
        raise DataError(f"there are no arrays in the data: data must be {TAKEN}")
    flat = [name for name, x in each.items() if x.ndim == 0]
    if flat:
        raise DataError(
            f"{flat[0]} of the data is a single number, and data have a row for each observation: give constants to "
            "the statistic by functools.partial"
        )
    lengths = {name: len(x) for name, x in each.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} has {n:,}" for name, n in lengths.items())
        raise DataError(f"the arrays of the data have different numbers of rows: {told}")
    n = next(iter(lengths.values()))
    if n == 0:
        raise DataError("the data have no rows")
    return Given(arrays, n, {name: x for name, x in columns.items() if len(x) == n})
