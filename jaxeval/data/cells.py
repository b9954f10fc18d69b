"""Battles compressed to exact sufficient statistics: equal battles are one cell with their number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Float, Int
from jaxeval.data.columns import renumbered
from jaxeval.lazy_names import pd


@dataclass(frozen=True, eq=False)
class Cells:
    """Battles compressed: those of one (pair, target, weight) are a cell; a pair is stored once, lower index first.

    Cells are sorted by pair, then target, then weight. Hard outcomes of weight 1 make at most three cells per pair.
    """

    first: NDArray[np.int32]  # (P,) lower model index of each pair
    second: NDArray[np.int32]  # (P,) higher model index
    pair: Int  # (C,) pair of each cell
    target: Float  # (C,) probability that `first` wins
    weight: Float  # (C,) weight of one battle
    count: Int  # (C,) number of battles

    @cached_property
    def hard(self) -> bool:
        """Whether all targets are 0, 1/2 or 1 and all weights 1."""
        return bool(np.all(self.weight == 1) and np.all(np.isin(self.target, (0.0, 0.5, 1.0))))

    @cached_property
    def battles(self) -> Float:
        """(P,) number of battles of each pair, whatever their weight."""
        return np.asarray(np.bincount(self.pair, self.count, len(self.first)))

    def localise(self, models: pd.Index) -> tuple[pd.Index, Cells]:
        """Return the models among ``models`` that have battles here, and the cells renumbered to them."""
        present, (first, second) = renumbered(len(models), self.first, self.second)
        return models[present], replace(self, first=first, second=second)

    def pair_sums(self) -> tuple[Float, Float]:
        """Return (P,) weight of each pair's battles, and the part that `first` won (weight times target)."""
        weight = self.count * self.weight
        total = np.bincount(self.pair, weight, minlength=len(self.first))
        won = np.bincount(self.pair, weight * self.target, minlength=len(self.first))
        return np.asarray(total, np.float64), np.asarray(won, np.float64)

    def tables(self, n_models: int) -> tuple[Float, Float]:
        """Return (M, M) battle weights n_ij, symmetric, and wins y_ij (weight times target of i against j)."""
        n, wins = np.zeros((2, n_models, n_models))
        self.fill_tables(*self.pair_sums(), n, wins)
        return n, wins

    def positions(self, size: int, nothing: int) -> NDArray[np.int64]:
        """Return (size, size) numbers of the pairs of all models, ``nothing`` for those that never met."""
        position = np.full((size, size), nothing)
        position[self.first, self.second] = position[self.second, self.first] = np.arange(len(self.first))
        return position

    def fill_tables(self, total: Float, won: Float, n: Float, wins: Float) -> None:
        """Write sums by pair (P,), such as those of `pair_sums`, into contiguous tables of at least M models."""
        size = len(n)
        above = self.first.astype(np.intp) * size + self.second
        below = self.second.astype(np.intp) * size + self.first
        n, wins = n.reshape(-1), wins.reshape(-1)  # one axis is three times as fast as two
        n[above] = n[below] = total
        wins[above], wins[below] = won, total - won


#: Cells of some rows, and the cell of each row.
Compress: TypeAlias = Callable[[slice | NDArray[np.intp]], tuple[Cells, NDArray[np.intp]]]


def compressed(
    n_models: int, model_a: NDArray[np.int32], model_b: NDArray[np.int32], target: Float, weight: Float | None,
    times: Int | None,
) -> tuple[Cells, NDArray[np.intp]]:  # fmt: skip
    """Return cells of rows (R,) of battles, and the cell of each row; without ``weight`` or ``times`` these are 1."""
    swap = model_a > model_b
    target = np.where(swap, 1 - target, target)
    pair = np.where(swap, model_b, model_a).astype(np.int64) * n_models + np.where(swap, model_a, model_b)
    pairs, fields, cell_of_row = cells_by_group(pair, n_models**2, target, weight, times)
    first, second = (x.astype(np.int32) for x in divmod(pairs, n_models))
    return Cells(first=first, second=second, **fields), cell_of_row


def cells_by_group(
    group: Int, n_groups: int, target: Float, weight: Float | None, times: Int | None
) -> tuple[Int, dict[str, Any], NDArray[np.intp]]:
    """Return the groups (R,) of rows that occur, fields of cells by group, target and weight, and each row's cell."""
    twice = (2 * target).astype(np.int64)
    if weight is None and np.array_equal(2 * target, twice):
        # Hard outcomes: the label is its own code.
        values, label = np.array([[0.0, 0.5, 1.0], [1.0, 1.0, 1.0]]), twice
    else:
        weight = np.ones_like(target) if weight is None else weight
        values, label = np.unique(np.stack([target, weight]), axis=1, return_inverse=True)
    n_labels = values.shape[1]
    key = group * n_labels + label.reshape(-1)
    n_keys = n_groups * n_labels
    if n_keys <= 4 * len(key) + 1_000_000:
        all_counts = count_by(key, times, n_keys)
        keys = np.flatnonzero(all_counts)
        count = all_counts[keys]
        lookup = np.empty(n_keys, np.intp)
        lookup[keys] = np.arange(len(keys))
        cell_of_row = lookup[key]
    else:
        keys, cell_of_row = np.unique(key, return_inverse=True)
        count = count_by(cell_of_row, times, len(keys))
    groups, place = np.unique(keys // n_labels, return_inverse=True)
    target, weight = values[:, keys % n_labels]
    return groups, {"pair": place, "target": target, "weight": weight, "count": count}, cell_of_row


def count_by(number: NDArray[np.intp], times: Int | None, n: int) -> Int:
    """Count battles (n,) that have each ``number`` (R,); a row stands for ``times`` (R,) battles (None: one each)."""
    # As doubles, exact up to 2**53.
    return np.bincount(number, times, n).astype(np.int64)
