"""Battles compressed to exact sufficient statistics: equal ones are a cell with their number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray


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


#: Cells of some rows, and the cell of each row.
Compress: TypeAlias = Callable[[slice | NDArray[np.intp]], tuple[Cells, NDArray[np.intp]]]


def count_by(number: NDArray[np.intp], times: NDArray[np.int64] | None, n: int) -> NDArray[np.int64]:
    """(n,) battles of each ``number`` (R,), of rows that stand for ``times`` (R,) battles each (None: one)."""
    # As doubles, exact up to 2**53.
    return np.bincount(number, times, n).astype(np.int64)
