"""Slices: the boards that a bootstrap rates and resamples each on its own, and what their warnings have in common."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.checks import checked_integer
from jaxeval.data.battles import Battles, MissingGroup
from jaxeval.data.cells import Cells, Compress, count_by
from jaxeval.errors import DataError
from jaxeval.ratings.bootstrap_plan import ClusterRows, cluster_rows
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.wording import named

#: Slices beyond which somebody rather named the wrong column.
MOST_SLICES = 500
#: Slices that share a warning are told one by one up to this number.
_FEW_ALIKE = 3


class Slicing(NamedTuple):
    """Which slices are rated."""

    max_slices: int = MOST_SLICES
    min_slice_battles: int = 0
    missing: MissingGroup = "error"

    def checked(self) -> Slicing:
        """The same with integers of Python's.

        Raises:
            TypeError: a number is no integer.
            ValueError: a number is out of range, or ``missing`` is unknown.
        """
        if self.missing not in get_args(MissingGroup):
            raise ValueError(f"missing must be one of {', '.join(get_args(MissingGroup))}, got {self.missing!r}")
        return Slicing(
            checked_integer("max_slices", self.max_slices, 1),
            checked_integer("min_slice_battles", self.min_slice_battles),
            self.missing,
        )


class Bootstraps(dict[Hashable, Bootstrap]):
    """The bootstraps of slices, by group, and what no slice has.

    Attributes:
        by: the columns whose groups the slices are.
        left_out: battles of the slices with too few of them, by group; those are not rated.
        n_missing: battles without a value of ``by``, which are in no slice: ``missing="drop"``.
    """

    def __init__(self, boards: Iterable[tuple[Hashable, Bootstrap]], slices: Slices, settings: Slicing) -> None:
        super().__init__(boards)
        self.by, self.left_out, self.n_missing = slices.by, slices.left_out, slices.n_missing
        self._least = settings.min_slice_battles

    @property
    def warnings(self) -> list[str]:
        """What is in no slice, in words."""
        by, messages = " / ".join(self.by), []
        if self.n_missing:
            are = "battles without a value of {} are" if self.n_missing > 1 else "battle without a value of {} is"
            messages.append(f"{self.n_missing:,} {are.format(by)} in no slice")
        if len(self.left_out):
            shown = [f"{slice_name(group)} ({n:,})" for group, n in self.left_out.items()]
            few = f"{len(shown):,} slices by {by} have" if len(shown) > 1 else f"1 slice by {by} has"
            messages.append(
                f"{few} fewer than {self._least:,} battles and no ratings (battles in brackets): {named(shown)}"
            )
        return messages


class Slices(NamedTuple):
    """The S boards that are resampled."""

    groups: list[Hashable] | None  # None for the one board of all battles
    boards: list[tuple[pd.Index, Cells]]  # models and battles of each
    clusters: list[ClusterRows | None]  # what is drawn together in each
    by: list[str]
    left_out: pd.Series  # battles of the groups with too few
    n_missing: int  # battles without a group

    @property
    def labels(self) -> list[str]:
        """Names of the slices as text, which name their random numbers; the same for 1 of whatever integer type."""
        if self.groups is None:
            return [""]
        return ["\x1f".join(map(str, group)) if isinstance(group, tuple) else str(group) for group in self.groups]


def make_slices(
    battles: Battles, by: str | Sequence[str] | None, cluster: str | None, compressed: Compress, slicing: Slicing
) -> Slices:
    """The whole board, or one for each group of the columns ``by``.

    Raises:
        TypeError: ``by`` is no name and no list of names.
        DataError: there is no such column, values are missing, or there are too many slices, or none of enough battles.
    """
    cluster_codes = None if cluster is None else battles.codes(cluster)[0]

    def clusters_of(rows: slice | NDArray[np.intp], cell: NDArray[np.intp]) -> ClusterRows | None:
        count = None if battles.count is None else battles.count[rows]
        return None if cluster_codes is None else cluster_rows(cluster_codes[rows], cell, count)

    if by is None:
        if slicing != Slicing():
            raise ValueError(
                "max_slices, min_slice_battles and missing are about the slices of by= (on the command line --by), and "
                "there are none"
            )
        nothing = pd.Series(dtype=np.int64)
        if cluster is None and compressed == battles.compress:
            return Slices(None, [(battles.models, battles.cells)], [None], [], nothing, 0)
        cells, cell = compressed(slice(None))
        return Slices(None, [(battles.models, cells)], [clusters_of(slice(None), cell)], [], nothing, 0)
    by = _checked_by(by)
    codes, groups = battles.codes(by, slicing.missing)
    there = codes >= 0
    sizes = count_by(codes[there], None if battles.count is None else battles.count[there], len(groups))
    enough = sizes >= slicing.min_slice_battles
    _check_number(int(enough.sum()), sizes, by, slicing)
    codes = np.where(there, np.where(enough, np.cumsum(enough) - 1, -1)[codes], -1)
    slices, clusters = [], []
    for rows, cells, cell in battles.cells_by_group(codes, int(enough.sum()), compressed):
        slices.append(cells.localise(battles.models))
        clusters.append(clusters_of(rows, cell))
    left_out = pd.Series(sizes[~enough], groups[~enough], name="battles")
    n_missing = battles.n_battles - int(sizes.sum())
    return Slices(list(groups[enough]), slices, clusters, by, left_out, n_missing)


def _checked_by(by: str | Sequence[str]) -> list[str]:
    if isinstance(by, str):
        return [by]
    if not isinstance(by, Sequence) or not all(isinstance(name, str) for name in by):
        raise TypeError(f"by= takes the name of a column or a list of names, got {by!r}")
    if len(by) == 0:
        raise ValueError("by= names no column; leave it out to rate the whole board")
    if len(set(by)) < len(by):
        raise ValueError(f"by= names a column twice: {', '.join(by)}")
    return list(by)


def _check_number(n_slices: int, sizes: NDArray[np.int64], by: Sequence[str], slicing: Slicing) -> None:
    """An error for more slices than anybody wants, or none."""
    column = " / ".join(by)
    if n_slices == 0:
        raise DataError(
            f"none of the {len(sizes):,} slices by {column} has {slicing.min_slice_battles:,} battles, the largest has "
            f"{sizes.max(initial=0):,}: lower min_slice_battles (on the command line --min-slice-battles)"
        )
    if n_slices > slicing.max_slices:
        raise DataError(
            f"there are {n_slices:,} slices by {column}, more than max_slices={slicing.max_slices:,}, each to be rated "
            f"on its own: name a coarser column, rate only slices of min_slice_battles=, or say "
            f"max_slices={n_slices} (on the command line --min-slice-battles N, --max-slices {n_slices})"
        )


def slice_name(group: Hashable) -> Any:
    """A slice's name as one value: the columns' values joined where there are several; None for the whole board."""
    return " / ".join(map(str, group)) if isinstance(group, tuple) else group


def slice_title(name: Any, by: Sequence[str]) -> str:
    """A slice's name for readers, who may not know which column a number or a truth value is of."""
    return f"{' / '.join(by)} = {name}" if by else str(name)


def told_together(names: Sequence[Any], warnings: Sequence[Sequence[str]], boards: Sequence[Bootstrap]) -> list[str]:
    """The warnings of all slices, each with the slice's name.

    Those that differ only in models and numbers are told once where more than three slices have them: the first in
    full, the other slices by name.
    """
    models = sorted({str(model) for board in boards for model in board.models}, key=len, reverse=True)
    # Between letters and digits only: a model "a" must not take the "a" out of words.
    models_or_signs = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, models))})(?!\w)|[\d\W_]|\band [\d,]+ more\b")
    alike: dict[str, list[tuple[int, str]]] = {}
    for s, own in enumerate(warnings):
        for warning in own:
            alike.setdefault(models_or_signs.sub("", warning), []).append((s, warning))
    messages = []
    for found in alike.values():
        others: list[Any] = []
        if len({s for s, _ in found}) > _FEW_ALIKE:
            others = list(dict.fromkeys(names[s] for s, _ in found[1:]))
            found = found[:1]
        rest = f"; likewise in {len(others):,} more slices: {named(others)}" if others else ""
        messages += [f"{slice_title(names[s], boards[s].settings.by)}: {warning}{rest}" for s, warning in found]
    return messages
