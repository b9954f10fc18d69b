"""Battles: who met whom, and with what result, encoded once and compressed to exact sufficient statistics."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval import outcomes
from jaxeval.columns import DataError, as_frame, encode_models, factorize_sorted, numbers, reject_values, require_column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    #: Cells of some rows, and the cell of each row.
    Compress = Callable[[slice | NDArray[np.intp]], tuple["Cells", NDArray[np.intp]]]

BothBad = Literal["half", "drop"]


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

    def pair_sums(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(P,) weight of each pair's battles, and what `first` took of it (weight times target)."""
        weight = self.count * self.weight
        total = np.bincount(self.pair, weight, minlength=len(self.first))
        won = np.bincount(self.pair, weight * self.target, minlength=len(self.first))
        return np.asarray(total, np.float64), np.asarray(won, np.float64)

    def tables(self, n_models: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(M, M) battle weights n_ij, symmetric, and wins y_ij (weight times target of i against j)."""
        total, won = self.pair_sums()
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
        frame = as_frame(df)
        named = [c for c in (model_a, model_b, winner, target, weight, cluster) if c is not None]
        standard = [c for c in ("winner", "target", *outcomes.ONE_HOT_COLUMNS) if c in frame.columns]
        if len(frame) == 0:
            raise DataError("the table has no rows: nothing to rate")
        for column in (*named, *standard):
            require_column(frame, column)
        models, first, second = encode_models(frame, model_a, model_b)
        targets, is_both_bad = outcomes.targets(frame, winner, target)
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
        parts = [factorize_sorted(self.column(name), name) for name in names]
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

    def column(self, name: str) -> pd.Series:
        """A further column of the input, for the battles that take part in fits.

        Raises:
            DataError: it is not there, or there twice.
        """
        if name not in self.columns:
            have = ", ".join(map(repr, self.columns.columns)) or "none"
            raise DataError(
                f"no column {name!r} to group battles by or to adjust for; besides those of models, results and "
                f"weights, by which battles cannot be grouped, there are: {have} (read_battles keeps the columns named "
                "in keep=)"
            )
        require_column(self.columns, name)
        column = self.columns[name]
        return column if self.kept is None else column.iloc[self.kept]

    @cached_property
    def cells(self) -> Cells:
        """All battles compressed."""
        return self.compress(slice(None))[0]

    def cells_by_group(
        self, codes: NDArray[np.intp], n_groups: int, compress: Compress | None = None
    ) -> Iterator[tuple[NDArray[np.intp], Cells, NDArray[np.intp]]]:
        """Rows, cells, and each row's cell, for the battles of every group in turn; by `compress` unless given."""
        compress = compress or self.compress
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=n_groups))
        for start, end in zip(np.concatenate([[0], ends[:-1]]), ends, strict=True):
            rows = order[start:end]
            yield rows, *compress(rows)

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


def _weights(column: pd.Series) -> NDArray[np.float64]:
    name = str(column.name)
    values = numbers(column, name)
    reject_values(values, (values < 0) | np.isinf(values), name, "weights must be finite and >= 0")
    extreme = (values > 0) & ((values < 1e-100) | (values > 1e100))
    reject_values(values, extreme, name, "weights must lie between 1e-100 and 1e100, or be 0 (only ratios matter)")
    return values
