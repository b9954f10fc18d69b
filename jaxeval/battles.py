"""Battles: who met whom, and with what result, encoded once and compressed to exact sufficient statistics."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterator

BothBad = Literal["half", "drop"]

_TARGET_OF_WINNER = {"model_a": 1.0, "model_b": 0.0, "tie": 0.5}
_BOTH_BAD = ("tie (bothbad)", "tie_bothbad", "both_bad")
ONE_HOT_COLUMNS = ("winner_model_a", "winner_model_b", "winner_tie")


class DataError(ValueError):
    """Input that cannot be read as judgments; the message says what was found, where, and what to do."""


@dataclass(frozen=True)
class DataReport:
    """What was read, what takes part in fits, and what was left out and why (battles unless said otherwise)."""

    n_rows: int  # rows of the input
    n_battles: int  # rows that take part in fits
    n_models: int
    n_ties: int  # targets of exactly 1/2 among n_battles, both-bad ones included
    n_both_bad: int  # both-bad rows found
    both_bad: BothBad  # and what was done with them
    n_self_battles: int  # a model against itself: no information about differences
    n_zero_weight: int  # weight 0: no information at all
    models_left_out: tuple[Hashable, ...] = ()  # models seen in left-out rows only

    def __str__(self) -> str:
        lines = [
            f"{self.n_rows:,} rows: {self.n_battles:,} battles between {self.n_models:,} models, "
            f"{self.n_ties:,} of them ties"
        ]
        if self.n_both_bad:
            done = "counted as ties" if self.both_bad == "half" else "left out on request"
            lines.append(f"{self.n_both_bad:,} both-bad battles {done}")
        if self.n_self_battles:
            lines.append(f"{self.n_self_battles:,} battles of a model against itself left out")
        if self.n_zero_weight:
            lines.append(f"{self.n_zero_weight:,} battles of weight 0 left out")
        if self.models_left_out:
            names = ", ".join(map(str, self.models_left_out))
            lines.append(f"{len(self.models_left_out)} models without a usable battle left out: {names}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Cells:
    """Battles compressed: equal (pair, target, weight) are one cell; pairs are stored once, lower model index first.

    Sorted by pair, then target, then weight. Hard outcomes of weight 1 make at most three cells a pair.
    """

    first: NDArray[np.int32]  # (P,) lower model index of each pair
    second: NDArray[np.int32]  # (P,) higher model index
    pair: NDArray[np.int64]  # (C,) pair of each cell
    target: NDArray[np.float64]  # (C,) probability that `first` wins
    weight: NDArray[np.float64]  # (C,) weight of one battle
    count: NDArray[np.int64]  # (C,) battles

    @property
    def hard(self) -> bool:
        """Whether all targets are 0, 1/2 or 1 and all weights 1."""
        return bool(np.all(self.weight == 1) and np.all(np.isin(self.target, (0.0, 0.5, 1.0))))

    def localise(self, models: pd.Index) -> tuple[pd.Index, Cells]:
        """The models among ``models`` that have battles here, and the cells renumbered to them."""
        present = np.zeros(len(models), bool)
        present[self.first] = present[self.second] = True
        number = (np.cumsum(present) - 1).astype(np.int32)
        local = replace(self, first=number[self.first], second=number[self.second])
        return models[present], local

    def tables(self, n_models: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(M, M) battle weights n_ij, symmetric, and wins y_ij (weight times target of i against j)."""
        total = np.bincount(self.pair, self.count * self.weight, minlength=len(self.first))
        won = np.bincount(self.pair, self.count * self.weight * self.target, minlength=len(self.first))
        n, wins = np.zeros((2, n_models, n_models))
        n[self.first, self.second] = n[self.second, self.first] = total
        wins[self.first, self.second], wins[self.second, self.first] = won, total - won
        return n, wins


@dataclass(frozen=True, eq=False)
class Battles:
    """N battles between M models.

    ``models`` are sorted by name. ``target`` in [0, 1] is the probability that side A wins (1, 1/2 and 0 for
    votes), ``weight`` multiplies a battle's log-likelihood. ``columns`` holds further columns of the input, row by
    row with the battles, for ``by=`` and ``cluster=``.
    """

    models: pd.Index
    model_a: NDArray[np.int32]
    model_b: NDArray[np.int32]
    target: NDArray[np.float64]
    weight: NDArray[np.float64] | None
    report: DataReport
    columns: pd.DataFrame = field(repr=False)
    kept: NDArray[np.intp] | None = field(default=None, repr=False)
    cluster: str | None = None

    @classmethod
    def from_pandas(
        cls,
        df: Any,
        *,
        model_a: str = "model_a",
        model_b: str = "model_b",
        winner: str | None = None,
        target: str | None = None,
        weight: str | None = None,
        cluster: str | None = None,
        both_bad: BothBad = "half",
    ) -> Battles:
        """Battles from a DataFrame, or any table with the Arrow interface (polars, pyarrow, DuckDB).

        Args:
            df: one row a battle. The result is taken from ``winner`` (one of model_a, model_b, tie, and three
                spellings of both-bad), from the one-hot columns ``winner_model_a, winner_model_b, winner_tie``, or
                from ``target``, the probability in [0, 1] that side A wins.
            model_a: column of the model on side A.
            model_b: column of the model on side B.
            winner: column of labels; by default "winner" where there is one.
            target: column of soft targets; by default "target" where there is one.
            weight: column of weights >= 0; none by default.
            cluster: column that the cluster bootstrap resamples by default (prompts, voters, sessions).
            both_bad: "half" counts both-bad battles as ties, "drop" leaves them out (counted in the report).

        Raises:
            DataError: a column is missing or ambiguous, a label unknown, a value missing or out of range, or no
                battle is left. The message names the column, the values and their counts.
        """
        if both_bad not in ("half", "drop"):
            raise ValueError(f"both_bad must be 'half' or 'drop', got {both_bad!r}")
        frame = _as_frame(df)
        named = [c for c in (model_a, model_b, winner, target, weight, cluster) if c is not None]
        standard = [c for c in ("winner", "target", *ONE_HOT_COLUMNS) if c in frame.columns]
        if len(frame) == 0:
            raise DataError("the table has no rows: nothing to rate")
        for column in (*named, *standard):
            _require_column(frame, column)
        models, first, second = _encode_models(frame, model_a, model_b)
        targets, is_both_bad = _targets(frame, winner, target)
        weights = None if weight is None else _weights(frame[weight])

        left_out = np.zeros((3, len(frame)), bool)
        left_out[0] = first == second
        if both_bad == "drop":
            left_out[1] = is_both_bad
        if weights is not None:
            left_out[2] = weights == 0
        keep = ~left_out.any(0)
        kept = None if keep.all() else np.flatnonzero(keep)
        if kept is not None:
            first, second, targets = first[kept], second[kept], targets[kept]
            weights = None if weights is None else weights[kept]
        if len(first) == 0:
            raise DataError(
                f"no battle is left of {len(frame):,} rows: {left_out[0].sum():,} of a model against itself, "
                f"{left_out[1].sum():,} both-bad left out, {left_out[2].sum():,} of weight 0"
            )
        met = np.zeros(len(models), bool)
        met[first] = met[second] = True
        recode = (np.cumsum(met) - 1).astype(np.int32)
        report = DataReport(
            n_rows=len(frame),
            n_battles=len(first),
            n_models=int(met.sum()),
            n_ties=int(np.count_nonzero(targets == 0.5)),
            n_both_bad=int(is_both_bad.sum()),
            both_bad=both_bad,
            n_self_battles=int(left_out[0].sum()),
            n_zero_weight=int(left_out[2].sum()),
            models_left_out=tuple(models[~met]),
        )
        if weights is not None and np.all(weights == 1):
            weights = None
        used = {*named, *standard} - {cluster}
        columns = frame[[c for c in frame.columns if c not in used]].copy(deep=False)
        return cls(models[met], recode[first], recode[second], targets, weights, report, columns, kept, cluster)

    @property
    def n_battles(self) -> int:
        """Battles that take part in fits."""
        return len(self.target)

    @property
    def n_models(self) -> int:
        """Models with at least one such battle."""
        return len(self.models)

    def to_pandas(self) -> pd.DataFrame:
        """One row a battle that takes part in fits: model_a, model_b, target, weight, and the further columns."""
        data: dict[str, Any] = {
            "model_a": self.models[self.model_a],
            "model_b": self.models[self.model_b],
            "target": self.target,
        }
        if self.weight is not None:
            data["weight"] = self.weight
        rest = self.columns if self.kept is None else self.columns.iloc[self.kept]
        return pd.concat([pd.DataFrame(data), rest.reset_index(drop=True)], axis=1)

    def codes(self, names: str | Sequence[str]) -> tuple[NDArray[np.intp], pd.Index]:
        """Group number of each battle and the sorted groups of one or several further columns.

        Raises:
            DataError: a column is not there, or has missing values.
        """
        names = [names] if isinstance(names, str) else list(names)
        for name in names:
            if name not in self.columns:
                have = ", ".join(map(repr, self.columns.columns)) or "none"
                raise DataError(
                    f"no column {name!r} to group battles by; besides those of models, results and weights, by which "
                    f"battles cannot be grouped, there are: {have} (read_battles keeps the columns named in keep=)"
                )
            _require_column(self.columns, name)
        parts = [_factorize_sorted(self._column(name), name) for name in names]
        if len(parts) == 1:
            return parts[0]
        joint = np.zeros(self.n_battles, np.intp)
        for codes, values in parts:
            joint = joint * len(values) + codes
        groups, codes = np.unique(joint, return_inverse=True)
        levels = np.unravel_index(groups, [len(values) for _, values in parts])
        index = pd.MultiIndex.from_arrays(
            [values[level] for (_, values), level in zip(parts, levels, strict=True)], names=names
        )
        return codes, index

    def _column(self, name: str) -> pd.Series:
        column = self.columns[name]
        return column if self.kept is None else column.iloc[self.kept]

    @cached_property
    def cells(self) -> Cells:
        """All battles compressed."""
        return self.compress(slice(None))[0]

    def cells_by_group(
        self, codes: NDArray[np.intp], n_groups: int
    ) -> Iterator[tuple[NDArray[np.intp], Cells, NDArray[np.intp]]]:
        """Rows, cells, and each row's cell, for the battles of every group in turn."""
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=n_groups))
        for start, end in zip(np.concatenate([[0], ends[:-1]]), ends, strict=True):
            rows = order[start:end]
            yield rows, *self.compress(rows)

    def compress(self, rows: slice | NDArray[np.intp]) -> tuple[Cells, NDArray[np.intp]]:
        """Cells of some rows, and the cell of each row."""
        a, b, target = self.model_a[rows], self.model_b[rows], self.target[rows]
        swap = a > b
        target = np.where(swap, 1 - target, target)
        pair = np.where(swap, b, a).astype(np.int64) * self.n_models + np.where(swap, a, b)
        twice = (2 * target).astype(np.int64)
        if self.weight is None and np.array_equal(2 * target, twice):
            # Hard outcomes: the label is its own code.
            values, label = np.array([[0.0, 0.5, 1.0], [1.0, 1.0, 1.0]]), twice
        else:
            weight = np.ones_like(target) if self.weight is None else self.weight[rows]
            values, label = np.unique(np.stack([target, weight]), axis=1, return_inverse=True)
        n_labels = values.shape[1]
        key = pair * n_labels + label
        n_keys = self.n_models**2 * n_labels
        if n_keys <= 4 * len(key) + 1_000_000:
            all_counts = np.bincount(key, minlength=n_keys)
            keys = np.flatnonzero(all_counts)
            count = all_counts[keys]
            lookup = np.empty(n_keys, np.intp)
            lookup[keys] = np.arange(len(keys))
            cell_of_row = lookup[key]
        else:
            keys, cell_of_row, count = np.unique(key, return_inverse=True, return_counts=True)
        pairs, cell_pair = np.unique(keys // n_labels, return_inverse=True)
        first, second = (x.astype(np.int32) for x in divmod(pairs, self.n_models))
        target, weight = values[:, keys % n_labels]
        return Cells(first, second, cell_pair, target, weight, count), cell_of_row


def as_battles(battles: Any, cluster: str | None = None) -> Battles:
    """``battles`` itself, or read from a table with the standard column names."""
    if isinstance(battles, Battles):
        return battles
    return Battles.from_pandas(battles, cluster=cluster)


def _as_frame(table: Any) -> pd.DataFrame:
    if isinstance(table, pd.DataFrame):
        return table
    if hasattr(table, "__arrow_c_stream__"):
        import pyarrow as pa

        return pa.table(table).to_pandas()
    raise TypeError(f"expected a pandas DataFrame or a table with the Arrow interface, got {type(table).__name__}")


def _require_column(frame: pd.DataFrame, column: str) -> None:
    times = int((frame.columns == column).sum())
    if times > 1:
        raise DataError(f"the table has {times} columns named {column!r}; rename or drop all but one")
    if times == 0:
        have = ", ".join(map(repr, frame.columns))
        raise DataError(f"no column {column!r} in the table; its columns are {have}")


def _reject_missing(missing: NDArray[np.bool_], column: str) -> None:
    if missing.any():
        raise DataError(
            f"column {column!r} has {missing.sum():,} missing values (first in row {int(missing.argmax())}; rows "
            "count from 0): fill them or drop those rows first"
        )


def _factorize_sorted(column: pd.Series, name: str) -> tuple[NDArray[np.intp], pd.Index]:
    try:
        codes, values = pd.factorize(column)
    except TypeError as error:
        raise DataError(f"column {name!r} holds values that cannot be compared: {error}") from error
    _reject_missing(codes < 0, name)
    values = pd.Index(values)
    if isinstance(values, pd.CategoricalIndex):
        values = pd.Index(values.astype(values.categories.dtype))
    try:
        order = values.argsort()
    except TypeError as error:
        counts = pd.Series(np.bincount(codes, minlength=len(values)))
        kinds = counts.groupby([type(v).__name__ for v in values]).sum()
        found = ", ".join(f"{kind} ({count:,})" for kind, count in kinds.items())
        raise DataError(f"column {name!r} mixes values of types {found}; make them one, by .astype(str)") from error
    rank = np.empty(len(values), np.intp)
    rank[order] = np.arange(len(values))
    return rank[codes], values[order]


def _encode_models(
    frame: pd.DataFrame, model_a: str, model_b: str
) -> tuple[pd.Index, NDArray[np.int32], NDArray[np.int32]]:
    codes_a, values_a = _factorize_sorted(frame[model_a], model_a)
    codes_b, values_b = _factorize_sorted(frame[model_b], model_b)
    for column, codes, values in ((model_a, codes_a, values_a), (model_b, codes_b, values_b)):
        blank = np.array([isinstance(name, str) and not name.strip() for name in values], bool)
        if blank.any():
            _reject_missing(blank[codes], column)
    try:
        models = values_a.union(values_b).sort_values()
    except TypeError as error:
        kinds = " and ".join(type(values[0]).__name__ for values in (values_a, values_b))
        raise DataError(
            f"columns {model_a!r} and {model_b!r} name models by values of different types, {kinds}; make them one, by "
            ".astype(str)"
        ) from error
    models.name = "model"
    first = models.get_indexer(values_a).astype(np.int32)[codes_a]
    second = models.get_indexer(values_b).astype(np.int32)[codes_b]
    return models, first, second


def _targets(
    frame: pd.DataFrame, winner: str | None, target: str | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Target of every row, and whether its label is both-bad."""
    if winner is None and target is None:
        found = [c for c in ("winner", "target") if c in frame.columns]
        if not found and all(c in frame.columns for c in ONE_HOT_COLUMNS):
            return _one_hot_targets(frame), np.zeros(len(frame), bool)
        if len(found) == 2:
            raise DataError(
                "the table has both a 'winner' and a 'target' column: name the one to use, "
                "winner='winner' or target='target'"
            )
        if not found:
            have = ", ".join(map(repr, frame.columns))
            raise DataError(
                f"no result column: expected 'winner', 'target' or the one-hot columns {', '.join(ONE_HOT_COLUMNS)}; "
                f"the table has {have} (name another with winner= or target=)"
            )
        winner, target = ("winner", None) if found == ["winner"] else (None, "target")
    if winner is not None and target is not None:
        raise ValueError("give winner= or target=, not both")
    if target is not None:
        values = _numbers(frame[target], target)
        _reject_values(values, (values < 0) | (values > 1), target, "targets must lie in [0, 1]")
        return values, np.zeros(len(frame), bool)
    return _winner_targets(frame[winner], str(winner))


def _winner_targets(column: pd.Series, name: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    try:
        codes, labels = pd.factorize(column)
    except TypeError as error:
        raise DataError(f"column {name!r} holds values that are no labels: {error}") from error
    _reject_missing(codes < 0, name)
    known = {**_TARGET_OF_WINNER, **dict.fromkeys(_BOTH_BAD, 0.5)}
    unknown = [k for k, label in enumerate(labels) if label not in known]
    if unknown:
        counts = np.bincount(codes, minlength=len(labels))
        found = ", ".join(f"{str(labels[k])!r} ({counts[k]:,})" for k in unknown[:10])
        more = f" and {len(unknown) - 10} more" if len(unknown) > 10 else ""
        raise DataError(
            f"column {name!r} has unknown labels: {found}{more}; known are {', '.join(map(repr, known))}. Map the "
            "labels to these, or give a numeric column as target="
        )
    target_of = np.array([known[label] for label in labels])
    both_bad_of = np.array([label in _BOTH_BAD for label in labels])
    return target_of[codes], both_bad_of[codes]


def _one_hot_targets(frame: pd.DataFrame) -> NDArray[np.float64]:
    values = np.stack([_numbers(frame[c], c) for c in ONE_HOT_COLUMNS])
    bad = ~(np.isin(values, (0, 1)).all(0) & (values.sum(0) == 1))
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"columns {', '.join(ONE_HOT_COLUMNS)} must hold one 1 and two 0s in each row; {bad.sum():,} rows do not "
            f"(rows count from 0; first row {row}: {', '.join(f'{v:g}' for v in values[:, row])})"
        )
    return values[0] + 0.5 * values[2]


def _weights(column: pd.Series) -> NDArray[np.float64]:
    name = str(column.name)
    values = _numbers(column, name)
    _reject_values(values, (values < 0) | np.isinf(values), name, "weights must be finite and >= 0")
    extreme = (values > 0) & ((values < 1e-100) | (values > 1e100))
    _reject_values(values, extreme, name, "weights must lie between 1e-100 and 1e100, or be 0 (only ratios matter)")
    return values


def _numbers(column: pd.Series, name: str) -> NDArray[np.float64]:
    try:
        values = column.to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise DataError(f"column {name!r} is not numeric ({column.dtype}): {error}") from error
    _reject_missing(np.isnan(values), name)
    return values


def _reject_values(values: NDArray[np.float64], bad: NDArray[np.bool_], name: str, rule: str) -> None:
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"column {name!r}: {rule}; {bad.sum():,} do not, from {values[bad].min():.16g} to "
            f"{values[bad].max():.16g} (first in row {row}: {values[row]:.16g}; rows count from 0)"
        )
