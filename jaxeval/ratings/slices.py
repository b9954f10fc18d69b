"""Compress the boards that a bootstrap rates and resamples to cells; battles with covariates become rows of kernels."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Float, Int
from jaxeval.data.battle_rows import n_battles_of
from jaxeval.data.battles import Battles
from jaxeval.data.cells import Cells, Compress, count_by
from jaxeval.data.features import Design, design
from jaxeval.data.groups import OVERALL, told_overlap
from jaxeval.errors import DataError, MemoryLimitError
from jaxeval.execution.precision import in_threads
from jaxeval.execution.shapes import UNIT_ROWS, battle_blocks, padded_units
from jaxeval.kernels.batch import contextual
from jaxeval.lazy_names import pd
from jaxeval.ratings.options import BootstrapOptions, FitOptions
from jaxeval.ratings.vote_groups import GroupCodes, UnitMembers, VoteGroups, vote_groups


@dataclass(frozen=True, eq=False)
class ContextualCells(Cells):
    """Cells whose battles also share their covariates, those of `first` less those of `second`."""

    known: Float  # (K, D) covariates of the cells of all boards, which share them
    row: NDArray[np.int32]  # (C,) that of each cell

    @property
    def feature(self) -> Float:
        """(C, D) covariates of each cell; made when asked for, as they are large."""
        return self.known[self.row]

    @property
    def n_features(self) -> int:
        """D."""
        return int(self.known.shape[1])

    @cached_property
    def widest(self) -> Float:
        """(D,) largest size of each covariate."""
        return np.abs(self.feature).max(0, initial=0.0)

    @property
    def hard(self) -> bool:
        """Whether a pair has at most one cell for each result: not with covariates."""
        return self.n_features == 0 and super().hard


def compress(battles: Battles, feature: Float) -> Compress:
    """Return what makes cells of some rows by pair, target, weight and ``feature`` (R, D).

    The order of the cells, and with it the draws, does not depend on the order of the rows or on which side is A. All
    rows are sorted once: boards of some of them take their cells from those of all.
    """
    if feature.shape[1] == 0:
        return partial(_without_covariates, battles, feature[:1])
    whole, cell_of_row = _all_cells(battles, feature)

    def of_rows(rows: slice | NDArray[np.intp]) -> tuple[ContextualCells, NDArray[np.intp]]:
        if isinstance(rows, slice) and rows == slice(None):
            return whole, cell_of_row
        number = cell_of_row[rows]
        count = count_by(number, None if battles.count is None else battles.count[rows], len(whole.count))
        there = np.flatnonzero(count)
        pairs, pair = np.unique(whole.pair[there], return_inverse=True)
        cells = ContextualCells(
            first=whole.first[pairs], second=whole.second[pairs], pair=pair, target=whole.target[there],
            weight=whole.weight[there], count=count[there], known=whole.known, row=there.astype(np.int32),
        )  # fmt: skip
        return cells, (np.cumsum(count > 0) - 1)[number]

    return of_rows


def _without_covariates(
    battles: Battles, known: Float, rows: slice | NDArray[np.intp]
) -> tuple[ContextualCells, NDArray[np.intp]]:
    cells, cell_of_row = battles.compress(rows)
    return ContextualCells(**vars(cells), known=known, row=np.zeros(len(cells.count), np.int32)), cell_of_row


def _all_cells(battles: Battles, feature: Float) -> tuple[ContextualCells, NDArray[np.intp]]:
    a, b, target, weight = battles.model_a, battles.model_b, battles.target, battles.weight
    swap = a > b
    target = np.where(swap, 1 - target, target)
    feature = np.where(swap[:, None], -feature, feature) + 0.0  # -0 is 0
    pair = np.where(swap, b, a).astype(np.int64) * battles.n_models + np.where(swap, a, b)
    keys = (pair, target, *(() if weight is None else (weight,)), *feature.T)
    order = _sorted(keys)
    new = np.zeros(len(order), bool)
    new[:1] = True
    for key in keys:
        new[1:] |= key[order[1:]] != key[order[:-1]]
    cell_of_row = np.empty(len(order), np.intp)
    cell_of_row[order] = np.cumsum(new) - 1
    one = order[new]
    pairs, cell_pair = np.unique(pair[one], return_inverse=True)
    first, second = (x.astype(np.int32) for x in divmod(pairs, battles.n_models))
    cells = ContextualCells(
        first, second, cell_pair, target[one], np.ones(len(one)) if weight is None else weight[one],
        count_by(cell_of_row, battles.count, len(one)), feature[one], np.arange(len(one), dtype=np.int32),
    )  # fmt: skip
    return cells, cell_of_row


def _sorted(keys: Sequence[NDArray[Any]]) -> NDArray[np.intp]:
    """Return the order of rows by keys (R,), the first one first; keys after the third sort those alone that tie."""
    order = np.lexsort(keys[2::-1])
    tied = np.zeros(len(order) + 1, bool)
    tied[1:-1] = np.all([key[order[1:]] == key[order[:-1]] for key in keys[:3]], 0)
    some = np.flatnonzero(tied[1:] | tied[:-1])
    rows = order[some]
    order[some] = rows[np.lexsort([key[rows] for key in keys[::-1]])]
    return order


def unit_columns(members: UnitMembers) -> int:
    """Return columns of the grid of units, padded so that similar slices share one compilation."""
    return padded_units(members.units.shape[1])


def make_rows(cells: ContextualCells, members: UnitMembers, pair_weight: Float | None) -> contextual.ContextualRows:
    """Return the ``members`` of units as rows; NumPy arrays until the call."""
    pair = cells.pair[members.cell]
    shape = battle_blocks(np.bincount(pair))
    unit, cell, times = members.unit, members.cell, members.times
    if (pair[1:] < pair[:-1]).any():
        order = np.argsort(pair, kind="stable")
        unit, cell, times, pair = (x[order] for x in (unit, cell, times, pair))
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
        feature=place(cells.feature[cell], np.float64), target=place(cells.target[cell], np.float64),
        factor=place(factor, np.float64), unit=place(row * unit_columns(members) + column, np.int32),
        first=of_group(cells.first), second=of_group(cells.second), n_blocks=n_blocks,
    )  # fmt: skip


def counts_by_row(rows: contextual.ContextualRows, members: UnitMembers, count: Int) -> Float:
    """Return (T, E, G) battles of every row, from those of the cells (C,), where each cell is a unit; 0 for padding."""
    of_unit = np.zeros((UNIT_ROWS, unit_columns(members)))
    column, row = np.divmod(members.unit, UNIT_ROWS)
    of_unit[row, column] = count[members.cell]
    return np.where(np.asarray(rows.factor) > 0, of_unit.reshape(-1)[np.asarray(rows.unit)], 0.0)


class Slices(NamedTuple):
    """The S boards that are resampled."""

    groups: list[Hashable] | None  # None for the one board of all battles
    boards: list[tuple[pd.Index, Cells]]  # models and battles of each
    drawn: list[VoteGroups]  # what is drawn together in each, and within which strata
    covariates: Design
    by: list[str]
    left_out: Mapping[Hashable, int]  # battles of the groups with too few; of pandas
    n_missing: int  # battles without a group
    overlapping: tuple[str, ...] = ()  # columns whose groups overlap: a battle may be in several
    told: str = ""  # how often battles count in overlapping groups, in words

    @contextmanager
    def naming(self, s: int) -> Iterator[None]:
        """Let errors about a slice name it."""
        try:
            yield
        except ValueError as error:
            if self.groups is None:
                raise
            kind = type(error) if isinstance(error, DataError | MemoryLimitError) else ValueError
            raise kind(f"{' / '.join(self.by)} = {slice_name(self.groups[s])!r}: {error}") from error

    @property
    def labels(self) -> list[str]:
        """Names of the slices as text, which choose their random numbers; the same for 1 of whatever integer type.

        "overall" of overlapping categories is left out: its draws are those of the board without the column.
        """
        if self.groups is None:
            return [""]
        all_parts = [group if isinstance(group, tuple) else (group,) for group in self.groups]
        return [
            "\x1f".join(
                str(part)
                for part, column in zip(parts, self.by, strict=True)
                if not (part == OVERALL and column in self.overlapping)
            )
            for parts in all_parts
        ]


def make_slices(battles: Battles, options: BootstrapOptions) -> Slices:
    """Return the whole board, or one for each group of the columns ``by``, compressed to cells.

    Raises:
        DataError: there is no such column, values are missing, there are too many slices, or none has enough battles.
    """
    covariates = design(battles, options.features, options.normalize)
    if options.by is None:
        cells, drawn = whole_board(battles, options, covariates)
        return Slices(
            groups=None, boards=[(battles.models, cells)], drawn=[drawn], covariates=covariates, by=[],
            left_out={}, n_missing=0,
        )  # fmt: skip
    compressed, groups_of = _compressed(battles, options, covariates)
    by = list(options.by)
    members = battles.members(by, options.missing)
    codes, groups, there = members.codes, members.groups, members.codes >= 0
    of_group = members.rows(there)
    sizes = count_by(codes[there], None if battles.count is None else battles.count[of_group], len(groups))
    enough = sizes >= options.min_slice_battles
    _check_number(int(enough.sum()), sizes, by, options)
    codes = np.where(there, np.where(enough, np.cumsum(enough) - 1, -1)[codes], -1)

    def slice_of(rows: NDArray[np.intp]) -> tuple[tuple[pd.Index, Cells], VoteGroups]:
        cells, cell = compressed(rows)
        return cells.localise(battles.models), groups_of(rows, cell)

    of_slice = [members.rows(entries) for entries in battles.rows_by_group(codes, int(enough.sum()))]
    parts = in_threads(slice_of, of_slice)
    n_grouped = n_battles_of(np.bincount(of_group, minlength=battles.n_rows) > 0, battles.count)
    return Slices(
        groups=list(groups[enough]), boards=[board for board, _ in parts], drawn=[drawn for _, drawn in parts],
        covariates=covariates, by=by, left_out=pd.Series(sizes[~enough], groups[~enough], name="battles"),
        n_missing=battles.n_battles - n_grouped, overlapping=members.overlapping,
        told=told_overlap(members.overlapping, n_grouped, int(sizes.sum())),
    )  # fmt: skip


def whole_board(battles: Battles, options: FitOptions, covariates: Design | None = None) -> tuple[Cells, VoteGroups]:
    """Return the cells of all battles, and which of them are drawn together, and within which strata."""
    if options.cluster is None and options.strata is None and not options.contextual:
        return battles.cells, VoteGroups()
    compressed, groups_of = _compressed(battles, options, covariates)
    cells, cell = compressed(slice(None))
    return cells, groups_of(slice(None), cell)


def whole_board_rows(battles: Battles, options: FitOptions, covariates: Design) -> NDArray[np.intp]:
    """Return (R,) the cell of `whole_board` that each row belongs to."""
    return _compressed(battles, options, covariates)[0](slice(None))[1]


def _compressed(battles: Battles, options: FitOptions, covariates: Design | None) -> tuple[Compress, GroupCodes]:
    """Return two functions: one turns rows into cells, the other says which rows, in which cells, belong together."""
    compressed: Compress = battles.compress
    if options.contextual and covariates is not None:
        compressed = compress(battles, covariates.matrix)
    return compressed, vote_groups(battles, options.cluster, options.strata)


def _check_number(n_slices: int, sizes: Int, by: Sequence[str], options: BootstrapOptions) -> None:
    """Raise an error for more slices than anybody wants, or none."""
    column = " / ".join(by)
    if n_slices == 0:
        raise DataError(
            f"none of the {len(sizes):,} slices by {column} has {options.min_slice_battles:,} battles, the largest has "
            f"{sizes.max(initial=0):,}: lower min_slice_battles (on the command line --min-slice-battles)"
        )
    if n_slices > options.max_slices:
        raise DataError(
            f"there are {n_slices:,} slices by {column}, more than max_slices={options.max_slices:,}, each to be rated "
            f"on its own: name a coarser column, rate only larger slices (min_slice_battles=N), or say "
            f"max_slices={n_slices} (on the command line --min-slice-battles N, --max-slices {n_slices})"
        )


def slice_name(group: Hashable) -> Hashable:
    """Return a slice's name as one value, joined from the values of several columns; None for the whole board."""
    return " / ".join(map(str, group)) if isinstance(group, tuple) else group
