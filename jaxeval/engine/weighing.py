"""How the rows of one slice are weighed in resamples, and what each unit is that is drawn."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Float, Int, as_leaf
from jaxeval.data.battles import Battles
from jaxeval.data.cells import Cells
from jaxeval.data.columns import as_frame, factorize_sorted
from jaxeval.data.item_scores import ItemScores
from jaxeval.errors import DataError
from jaxeval.execution.shapes import UNIT_ROWS, Step, padded, padded_columns
from jaxeval.kernels.batch.weighted import Factor, RowForm, WeighedRows
from jaxeval.kernels.resample import DrawScheme
from jaxeval.lazy_names import jax
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.slices import make_slices
from jaxeval.ratings.vote_groups import VoteGroups, unit_members
from jaxeval.resampling.rows import (
    drawn_numbers,
    group_factor,
    pattern_of,
    slots_of_kinds,
    slots_one_by_one,
    stages_factor,
    worth_merging,
)
from jaxeval.resampling.units import checked_strata, pad, small_strata_text, stratum_of_groups, stream_number
from jaxeval.statistics.clusters import effective_clusters, few_clusters_text, freedom_of
from jaxeval.wording import counted, did_you_mean, named

#: Whether equal rows may be drawn together: a statistic to which a row of weight 2 is the row twice.
RowKind = Literal["each", "interchangeable"]
#: Columns of groups that are drawn: one; several in stages, outermost first; or a set of them, drawn side by side.
Cluster = Any
TAKEN = "an array with a row for each observation, several of them as a dict or a tuple, a table, Battles or ItemScores"


class Weighing(NamedTuple):
    """The rows of one slice, N of them, with room for more, which weigh nothing."""

    rows: WeighedRows
    form: RowForm
    data: Any  # what the statistic gets, in the order of the rows: a tree of arrays
    n: int
    full: Float  # (N,) weights in the data
    base: Float  # (N,) weights of what is drawn once
    name: Hashable = None  # of the slice; None for the whole
    unit: Int | None = None  # (N,) number of the unit that each row is drawn with; None where rows have two
    copies: Int = np.ones(0, np.int64)  # (U,) how many equal units each number stands for
    stratum: Int | None = None  # (U,)
    numbers: int = 0  # random numbers of a lane
    freedom: float | None = None  # degrees of freedom of the variance, where clusters are drawn
    warnings: tuple[str, ...] = ()

    @property
    def stacked(self) -> WeighedRows:
        """The rows as the one slice of a run."""
        return jax.tree.map(lambda x: x[None], self.rows)

    def filled(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return ``values`` (n, ...) for all N rows. Empty ones repeat the first, and so hold what a row may hold."""
        return np.concatenate([values, np.broadcast_to(values[:1], (len(self.full) - self.n, *values.shape[1:]))])


class UnitColumns(NamedTuple):
    """The groups that are drawn, by name, and how."""

    names: tuple[str, ...]
    kind: Literal["rows", "clusters", "stages", "crossed"]
    codes: tuple[NDArray[np.intp], ...]
    levels: tuple[pd.Index, ...]

    @classmethod
    def of(cls, table: DataRows, cluster: Cluster) -> UnitColumns:
        """Return what ``cluster`` asks for.

        Raises:
            DataError: a column is not there, or has missing values.
        """
        if cluster is None:
            return cls((), "rows", (), ())
        is_list = isinstance(cluster, list | tuple | set | frozenset) and all(isinstance(x, str) for x in cluster)
        chosen = list(cluster) if is_list else [cluster]
        if isinstance(cluster, set | frozenset):
            chosen = sorted(chosen)
        if not chosen:
            raise DataError("cluster= names no column; leave it out to draw rows one by one")
        groups = [table.groups(column, "cluster") for column in chosen]
        kind: Any = "crossed" if isinstance(cluster, set | frozenset) else "stages"
        names = tuple(column if isinstance(column, str) else "cluster" for column in chosen)
        codes, levels = zip(*groups, strict=True)
        return cls(names, "clusters" if len(chosen) == 1 else kind, tuple(codes), tuple(levels))

    def taken(self, rows: NDArray[np.intp]) -> UnitColumns:
        """Return those of some rows, numbered anew."""
        codes, levels = [], []
        for code, level in zip(self.codes, self.levels, strict=True):
            there, number = np.unique(code[rows], return_inverse=True)
            codes.append(number)
            levels.append(level[there])
        return self._replace(codes=tuple(codes), levels=tuple(levels))


def weighed_rows(
    table: DataRows, columns: UnitColumns, strata: NDArray[np.intp] | None, scheme: DrawScheme, alike: bool, *,
    label: str, name: Hashable, strata_name: str = "strata",
) -> Weighing:  # fmt: skip
    """Return the rows of a table, drawn with ``scheme`` within ``strata`` (N,), under the random numbers of ``label``.

    Raises:
        DataError: a cluster lies in several strata.
    """
    strata = None if strata is None else checked_strata(strata)
    if columns.kind == "rows":
        return _alone(table, strata, scheme, alike, label, name)
    of_groups = None
    if strata is not None and columns.kind == "clusters":
        of_groups = stratum_of_groups(strata, columns.codes[0], columns.levels[0], strata_name)
    source, times = np.arange(table.n), np.ones(table.n, np.int64)
    if alike:
        joint = np.unique(np.stack(columns.codes), axis=1, return_inverse=True)[1].reshape(-1)
        pattern = pattern_of(table.matrix, joint)
        source, times = np.unique(pattern, return_index=True)[1], np.bincount(pattern)
    if columns.kind == "stages":
        made = [stages_factor([codes[source] for codes in columns.codes], label)]
    else:
        streams = [label] if len(columns.codes) == 1 else [f"{label}\x1f{codes}" for codes in columns.names]
        made = [
            group_factor(codes[source], scheme, stream, of_groups)
            for codes, stream in zip(columns.codes, streams, strict=True)
        ]
    size = padded(len(source) + 1, Step.ITEMS)
    factors = tuple(factor._replace(place=as_leaf(pad(place, (size,)), np.int32)) for factor, _, place in made)
    base = pad(times.astype(float), (size,))
    outer = columns.codes[0]
    crossed = columns.kind == "crossed"
    known = [codes for codes in map(freedom_of, columns.codes[: None if crossed else 1]) if codes is not None]
    warnings = [text for codes in columns.codes[: None if crossed else 1] for text in _few(codes)]
    return Weighing(
        name=name, rows=WeighedRows(factors, as_leaf(base, np.float64), as_leaf(base, np.float64)),
        form=RowForm(scheme, tuple(width for _, width, _ in made)),
        data=jax.tree.map(lambda x: x[source], table.arrays), n=len(source), full=base, base=base,
        unit=None if crossed else pad(outer[source], (size,)), copies=np.ones(int(outer.max()) + 1, np.int64),
        stratum=of_groups, numbers=sum(drawn_numbers(factor) for factor in factors),
        freedom=min(known) if known else None,
        warnings=tuple(warnings + small_strata_text(None if of_groups is None else np.bincount(of_groups), "cluster")),
    )  # fmt: skip


def _few(cluster: NDArray[np.intp]) -> list[str]:
    size = np.bincount(cluster)
    return few_clusters_text(len(size), effective_clusters(size))


def _alone(
    table: DataRows, strata: Int | None, scheme: DrawScheme, alike: bool, label: str, name: Hashable
) -> Weighing:
    """Return rows drawn by themselves, in the order of their values; equal ones together if that is faster."""
    pattern = pattern_of(table.matrix, strata)
    merged = alike and worth_merging(pattern)
    if scheme == DrawScheme.MULTINOMIAL:
        slots = (slots_of_kinds if merged else slots_one_by_one)(pattern, strata)
        source, times, size = slots.source, slots.times, slots.size
        factor, width = Factor(slots.units, as_leaf(stream_number(label), np.uint64), None), slots.size
    else:
        order = np.unique(pattern, return_index=True)[1] if merged else np.argsort(pattern, kind="stable")
        source, times = order, np.bincount(pattern) if merged else np.ones(table.n, np.int64)
        of_kinds = None if strata is None else strata[source]
        factor, width, place = group_factor(np.arange(len(source)), scheme, label, of_kinds, times)
        size = padded(len(source) + 1, Step.ITEMS)
        factor = factor._replace(place=as_leaf(pad(place, (size,)), np.int32))
    there = pad(np.ones(len(source)), (size,))
    full = pad(times.astype(float), (size,))
    return Weighing(
        name=name, rows=WeighedRows((factor,), as_leaf(there, np.float64), as_leaf(full, np.float64)),
        form=RowForm(scheme, (width,)), data=jax.tree.map(lambda x: x[source], table.arrays), n=len(source), full=full,
        base=there, unit=pad(np.arange(len(source)), (size,)), copies=times,
        stratum=None if strata is None else strata[source], numbers=drawn_numbers(factor),
        warnings=tuple(small_strata_text(None if strata is None else np.bincount(strata), "row")),
    )  # fmt: skip


def weighed_battles(battles: Battles, options: Mapping[str, Any]) -> tuple[list[Weighing], list[str]]:
    """Return the votes of every slice as `bootstrap` draws them, equal ones together; and the columns of the slices.

    The statistic gets ``model_a`` and ``model_b``, numbers of the models of all battles, and ``target``, what side A
    won. Weights of votes multiply what is drawn.

    Raises:
        DataError, ValueError: as `bootstrap`.
    """
    options_checked = BootstrapOptions(**options).checked(battles)
    slices = make_slices(battles, options_checked)
    groups = slices.groups or [None]
    made = [
        _votes(battles.models, *board, drawn, options_checked.drawn, label, name)
        for board, drawn, label, name in zip(slices.boards, slices.drawn, slices.labels, groups, strict=True)
    ]
    return made, slices.by


def _votes(
    all_models: pd.Index, models: pd.Index, cells: Cells, drawn: VoteGroups, scheme: DrawScheme, label: str,
    name: Hashable,
) -> Weighing:  # fmt: skip
    members = unit_members(cells, drawn)
    n_columns = padded_columns(members.units.shape[1])
    draw, place = members.drawn(n_columns, scheme, label)
    size_of_unit = pad(members.units, (UNIT_ROWS, n_columns)).reshape(-1)
    size = padded(len(members.cell) + 1, Step.ITEMS)
    weight = members.times * cells.weight[members.cell]
    base, full = (pad(x, (size,)) for x in (weight, weight * size_of_unit[place]))
    factor = Factor(draw.units, as_leaf(draw.stream, np.uint64), as_leaf(pad(place, (size,)), np.int32))
    number, pair = all_models.get_indexer(models), cells.pair[members.cell]
    used, unit = np.unique(place, return_inverse=True)
    clusters = drawn.repeating
    stratum = None if members.stratum is None else pad(members.stratum, (n_columns,))[used % n_columns]
    return Weighing(
        name=name,
        rows=WeighedRows((factor,), as_leaf(base, np.float64), as_leaf(full, np.float64)),
        form=RowForm(scheme, (0,)),
        data={
            "model_a": number[cells.first[pair]],
            "model_b": number[cells.second[pair]],
            "target": cells.target[members.cell],
        },
        n=len(members.cell),
        full=full,
        base=base,
        unit=pad(unit, (size,)),
        copies=size_of_unit[used],
        stratum=stratum,
        numbers=UNIT_ROWS * n_columns,
        freedom=None if clusters is None else freedom_of(np.repeat(np.arange(len(clusters.size)), clusters.size)),
        warnings=tuple(
            [] if clusters is None else few_clusters_text(len(clusters.size), effective_clusters(clusters.size))
        ),
    )


def sliced(table: DataRows, by: Sequence[Any]) -> list[tuple[Hashable, str, NDArray[np.intp]]]:
    """Return the slices of columns: name, label of the random numbers, and rows of each."""
    groups = [table.groups(column, "by") for column in by]
    joint = np.stack([codes for codes, _ in groups])
    keys, number = np.unique(joint, axis=1, return_inverse=True)
    number = number.reshape(-1)
    slices: list[tuple[Hashable, str, NDArray[np.intp]]] = []
    for k, key in enumerate(keys.T):
        parts = tuple(levels[code] for (_, levels), code in zip(groups, key, strict=True))
        slices.append((parts if len(by) > 1 else parts[0], "\x1f".join(map(str, parts)), np.flatnonzero(number == k)))
    return slices


class DataRows(NamedTuple):
    """N rows."""

    arrays: Any  # what the statistic gets: a tree of arrays (N, ...)
    n: int
    columns: Mapping[str, Any]  # (N,) each, which groups may be made of
    names: pd.Index | None = None  # of what it has a column for each, as models
    stream: str = ""  # names the random numbers
    alike: bool = False  # whether equal rows are drawn together

    def groups(self, chosen: Any, option: str) -> tuple[NDArray[np.intp], pd.Index]:
        """Return (N,) group of each row, and the groups: by the name of a column, or by values for each row.

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

    def taken(self, rows: NDArray[np.intp]) -> DataRows:
        """Return some of the rows."""
        columns = {name: np.asarray(x)[rows] for name, x in self.columns.items()}
        return self._replace(arrays=jax.tree.map(lambda x: x[rows], self.arrays), n=len(rows), columns=columns)

    @property
    def matrix(self) -> Float:
        """(N, C) all numbers of each row."""
        parts = [np.asarray(x, float).reshape(self.n, -1) for x in jax.tree.leaves(self.arrays)]
        return np.concatenate(parts, axis=1) if parts else np.zeros((self.n, 0))


def rows_of_data(data: Any, grouping: Sequence[str]) -> DataRows:
    """Return ``data`` as rows; columns named in ``grouping`` make groups, and are no part of what a statistic gets."""
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


def rows_of_battles(battles: Battles, grouping: Sequence[str]) -> DataRows:
    """Return votes one by one."""
    if battles.count is not None or battles.weight is not None:
        raise DataError(
            "votes with weights, or counted votes, are drawn alone or in clusters of one column: name one column, or "
            "read the votes without them"
        )
    arrays = {"model_a": battles.model_a, "model_b": battles.model_b, "target": battles.target}
    columns = {name: battles.column(name).to_numpy() for name in grouping}
    return DataRows(arrays, len(battles.target), columns, battles.models)


def without_groups(table: DataRows, number: Int, full: Float) -> Weighing:
    """Return rows of which the groups ``number`` (N, G) are left out in turn."""
    size = len(full) + 1
    padded_full = np.append(full, 0.0)
    groups = np.vstack([number, np.full((1, number.shape[1]), -2)])
    rows = WeighedRows((), None, as_leaf(padded_full, np.float64), as_leaf(groups, np.int32))
    return Weighing(rows, RowForm(), table.arrays, size - 1, padded_full, padded_full)


def _of_table(frame: pd.DataFrame, grouping: Sequence[str]) -> DataRows:
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


def _of_scores(scores: ItemScores) -> DataRows:
    """Return scores (I, M) of the models on each item; items are drawn as `score_leaderboard` draws them."""
    if len(scores.evaluators) > 1:
        raise DataError(
            f"scores of {counted(len(scores.evaluators), 'evaluator')}: {named(scores.evaluators)}; a statistic takes "
            "those of one: choose its rows, or pass .scores as an array"
        )
    columns: dict[str, Any] = {"item": np.arange(len(scores.items))}
    for group in (scores.cluster, scores.benchmark):
        if group is not None:
            columns[group.column] = np.asarray(group.names)[group.number]
    for name, column in scores.columns.items():
        if len(column.item) == len(scores.items):
            columns[name] = np.asarray(column.levels)[column.number[np.argsort(column.item)]]
    array = scores.scores[:, 0]
    rows = _checked(array, {"the scores": array}, columns)
    return rows._replace(names=scores.models.rename("model"), stream="scores", alike=True)


def _array(values: Any, what: str) -> NDArray[Any]:
    """Return ``values`` as an array of numbers."""
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
            "name it as cluster=, strata=, by= or random="
        )
    return array


def _checked(arrays: Any, each: Mapping[str, NDArray[Any]], columns: Mapping[str, Any]) -> DataRows:
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
        sizes = ", ".join(f"{name} has {n:,}" for name, n in lengths.items())
        raise DataError(f"the arrays of the data have different numbers of rows: {sizes}")
    n = next(iter(lengths.values()))
    if n == 0:
        raise DataError("the data have no rows")
    return DataRows(arrays, n, {name: x for name, x in columns.items() if len(x) == n})
