"""Battles with covariates as rows for the kernels: compressed where they repeat, sorted by pair, cut into blocks."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Float, Int
from jaxeval.data.battles import Battles
from jaxeval.data.cells import Cells, count_by
from jaxeval.execution.shapes import UNIT_ROWS, battle_blocks, padded_units
from jaxeval.kernels import contextual
from jaxeval.ratings.vote_groups import UnitMembers


@dataclass(frozen=True, eq=False)
class ContextualCells(Cells):
    """Cells whose battles also share their covariates, those of `first` less those of `second`."""

    feature: Float  # (C, D)

    @property
    def hard(self) -> bool:
        """Whether a pair has at most one cell for each result: not with covariates."""
        return self.feature.shape[1] == 0 and super().hard


def compress(
    battles: Battles, rows: slice | NDArray[np.intp], feature: Float
) -> tuple[ContextualCells, NDArray[np.intp]]:
    """Cells of some rows by pair, target, weight and ``feature`` (R, D), and the cell of each row.

    The order of the cells, and with it the draws, does not depend on the order of the rows or on which side is A.
    """
    feature = feature[rows]
    if feature.shape[1] == 0:
        plain, cell_of_row = battles.compress(rows)
        return _with_feature(plain, np.zeros((len(plain.count), 0))), cell_of_row
    a, b, target = battles.model_a[rows], battles.model_b[rows], battles.target[rows]
    weight = np.ones_like(target) if battles.weight is None else battles.weight[rows]
    swap = a > b
    target = np.where(swap, 1 - target, target)
    feature = np.where(swap[:, None], -feature, feature) + 0.0  # -0 is 0
    pair = np.where(swap, b, a).astype(np.int64) * battles.n_models + np.where(swap, a, b)
    keys = (pair, target, weight, *feature.T)
    order = np.lexsort(keys[::-1])
    new = np.zeros(len(order), bool)
    new[:1] = True
    for key in keys:
        new[1:] |= key[order[1:]] != key[order[:-1]]
    cell_of_row = np.empty(len(order), np.intp)
    cell_of_row[order] = np.cumsum(new) - 1
    one = order[new]
    pairs, cell_pair = np.unique(pair[one], return_inverse=True)
    first, second = (x.astype(np.int32) for x in divmod(pairs, battles.n_models))
    count = count_by(cell_of_row, None if battles.count is None else battles.count[rows], len(one))
    return ContextualCells(first, second, cell_pair, target[one], weight[one], count, feature[one]), cell_of_row


def _with_feature(cells: Cells, feature: Float) -> ContextualCells:
    return ContextualCells(**{f.name: getattr(cells, f.name) for f in fields(Cells)}, feature=feature)


def unit_columns(members: UnitMembers) -> int:
    """Columns of the grid of units, padded so that similar slices share one compilation."""
    return padded_units(members.units.shape[1])


def make_rows(cells: ContextualCells, members: UnitMembers, pair_weight: Float | None) -> contextual.ContextualRows:
    """The ``members`` of units as rows; NumPy arrays until the call."""
    pair = cells.pair[members.cell]
    shape = battle_blocks(np.bincount(pair))
    order = np.argsort(pair, kind="stable")
    unit, cell, times, pair = (x[order] for x in (members.unit, members.cell, members.times, pair))
    factor = times * cells.weight[cell]
    if pair_weight is not None:
        factor = factor * pair_weight[pair]
    per_pair = np.bincount(pair, minlength=len(cells.first))
    groups = -(-per_pair // shape.rows)
    start = np.cumsum(groups) - groups
    within = np.arange(len(pair)) - (np.cumsum(per_pair) - per_pair)[pair]
    slot = (start[pair] + within // shape.rows) * shape.rows + within % shape.rows
    n_groups = int(groups.sum())

    def place(values: NDArray[Any], dtype: type) -> Any:
        placed = np.zeros((shape.blocks * shape.groups * shape.rows, *values.shape[1:]), dtype)
        placed[slot] = values
        return placed.reshape(*shape, *values.shape[1:])

    def of_group(model: NDArray[np.int32]) -> Any:
        placed = np.zeros(shape.blocks * shape.groups, np.int32)
        placed[:n_groups] = np.repeat(model, groups)
        return placed.reshape(shape.blocks, shape.groups)

    column, row = np.divmod(unit, UNIT_ROWS)
    n_blocks: Any = np.asarray(-(-n_groups // shape.groups), np.int32)
    return contextual.ContextualRows(
        feature=place(cells.feature[cell], np.float64),
        target=place(cells.target[cell], np.float64),
        factor=place(factor, np.float64),
        unit=place(row * unit_columns(members) + column, np.int32),
        first=of_group(cells.first),
        second=of_group(cells.second),
        n_blocks=n_blocks,
    )


def counts_by_row(rows: contextual.ContextualRows, members: UnitMembers, count: Int) -> Float:
    """(T, E, G) battles of every row, from those of the cells (C,), where each cell is a unit; 0 for padding."""
    of_unit = np.zeros((UNIT_ROWS, unit_columns(members)))
    column, row = np.divmod(members.unit, UNIT_ROWS)
    of_unit[row, column] = count[members.cell]
    return np.where(np.asarray(rows.factor) > 0, of_unit.reshape(-1)[np.asarray(rows.unit)], 0.0)
