"""Two boards refitted on one draw: every vote of their union is drawn once, and counts on each board that has it.

A unit of the draw is a kind of vote: a cell of one board and a cell of the other, or of one of them alone, with the
number of such votes; or a cluster, drawn whole. The boards have the same units and the same random numbers, and each
adds up its own cells. So they are drawn together whatever their models, results or covariates are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Int
from jaxeval.data.battles import Battles
from jaxeval.data.cells import Cells, count_by
from jaxeval.data.columns import factorize_sorted, plain
from jaxeval.data.features import design
from jaxeval.data.shared_votes import SharedVotes
from jaxeval.errors import DataError
from jaxeval.execution.processes import together
from jaxeval.execution.runs import RunOptions, digest_of
from jaxeval.ratings.bootstrap import VoteBoards
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.ratings.drawn_votes import unit_members
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.slices import Slices, make_slices, whole_board_rows
from jaxeval.ratings.vote_groups import GroupCodes, Members
from jaxeval.wording import counted


@dataclass(frozen=True, eq=False)
class Posed:
    """A board that is to be refitted."""

    battles: Battles
    options: BootstrapOptions  # checked
    slices: Slices  # the one of all battles
    cell: NDArray[np.intp]  # (R,) the cell of each row

    @classmethod
    def of(cls, battles: Battles, options: BootstrapOptions) -> Posed:
        """The board of all ``battles``, with the errors of `jaxeval.bootstrap`."""
        own = options.checked(battles)
        covariates = design(battles, own.features, own.normalize)
        return cls(battles, own, make_slices(battles, covariates, own), whole_board_rows(battles, covariates, own))

    @cached_property
    def digest(self) -> tuple[str, str]:
        """Digests of the data, whatever the order of rows, and of how they are fitted: they put two boards in order."""
        return digest_of(self.slices.boards), digest_of(self.options.identity(self.slices.covariates.names)[0])

    def resampled(self, units: Members, how: RunOptions) -> Bootstrap:
        """The board refitted to draws of ``units``."""
        drawn = [groups._replace(shared=units) for groups in self.slices.drawn]
        with together(self.battles.n_processes):
            slices = self.slices._replace(drawn=drawn)
            (found,) = VoteBoards(slices, self.options, self.battles.report).resampled(how)
        return found


def shared_units(one: Posed, other: Posed, votes: SharedVotes) -> tuple[Members, Members]:
    """The units of one draw of the union, with the battles that each board has of them.

    They do not depend on which board is named first, nor on the order of rows. ``votes`` are those on both boards, of
    rows ``a`` of ``one`` and ``b`` of ``other``.

    Raises:
        DataError: a vote is in another cluster, or another stratum, on the other board.
    """
    rows = _union(one.battles, other.battles, votes)
    cells = np.array([np.where(own >= 0, x.cell[own], -1) for x, own in zip((one, other), rows[:2], strict=True)])
    # Which board's cell comes first must not depend on who is named first.
    order = slice(None, None, -1 if other.digest < one.digest else 1)
    kinds, kind = np.unique(cells[order], axis=1, return_inverse=True)
    kinds, kind, times = kinds[order], kind.reshape(-1), rows[2]
    # One pair for all: the grid of units needs no pairs, as every board has its own.
    pair, n_kinds = np.zeros(kinds.shape[1], np.int64), kinds.shape[1]
    count = count_by(kind, times, n_kinds)
    union = Cells(
        first=np.zeros(1, np.int32), second=np.ones(1, np.int32), pair=pair, target=np.full(n_kinds, np.nan),
        weight=np.ones(n_kinds), count=count,
    )  # fmt: skip
    cluster, strata = one.options.cluster, one.options.strata
    of_cluster, names = (None, pd.Index([])) if cluster is None else _of_union(one, other, rows, cluster)
    of_stratum = None if strata is None else _of_union(one, other, rows, strata)[0]
    groups = GroupCodes(of_cluster, names, of_stratum, strata or "").groups(slice(None), kind, times)
    units = unit_members(union, groups)
    return units.of_cells(kinds[0]), units.of_cells(kinds[1])


def _union(a: Battles, b: Battles, votes: SharedVotes) -> Int:
    """(3, U) row of each board, -1 for none, and number of equal battles: all that either board has."""
    left = [np.ones(x.n_rows, np.int64) if x.count is None else x.count.copy() for x in (a, b)]
    for own, shared in zip(left, (votes.a, votes.b), strict=True):
        own -= count_by(shared, votes.times, len(own))
    rows = [np.flatnonzero(own) for own in left]
    nothing = [np.full(len(own), -1) for own in rows]
    return np.array(
        [
            np.concatenate([votes.a, rows[0], nothing[1]]),
            np.concatenate([votes.b, nothing[0], rows[1]]),
            np.concatenate([votes.times, left[0][rows[0]], left[1][rows[1]]]),
        ]
    )


def _of_union(one: Posed, other: Posed, rows: Int, name: str) -> tuple[NDArray[np.intp], pd.Index]:
    """(U,) the group of every vote of the union by a column, and the sorted groups."""
    columns = [x.battles.column(name) for x in (one, other)]
    with _comparing(one.battles, other.battles, name):
        codes, values = factorize_sorted(pd.concat(columns, ignore_index=True), name)
    own, others = codes[rows[0]], codes[len(columns[0]) + rows[1]]
    differ = (rows[0] >= 0) & (rows[1] >= 0) & (own != others)
    if differ.any():
        k = int(differ.argmax())
        groups = [plain(values[code[k]]) for code in (own, others)]
        raise DataError(
            f"column {name!r} differs in {counted(int(differ.sum()), 'vote')} that both boards share (first in row "
            f"{rows[0][k]} of a, {groups[0]!r}, and row {rows[1][k]} of b, {groups[1]!r}; rows count from "
            "0): a shared vote needs one value"
        )
    return np.where(rows[0] >= 0, own, others), values


def common_groups(a: Battles, b: Battles, name: str) -> int:
    """How many groups by a column are on both boards."""
    with _comparing(a, b, name):
        return len(np.intersect1d(*(x.codes(name)[1].to_numpy() for x in (a, b))))


@contextmanager
def _comparing(a: Battles, b: Battles, name: str) -> Iterator[None]:
    """An error about both boards if each can read its own values of a column, but the two cannot be compared."""
    try:
        yield
    except (TypeError, DataError) as error:
        kinds = [pd.api.types.infer_dtype(x.codes(name)[1]) for x in (a, b)]
        raise DataError(
            f"column {name!r} has {kinds[0]} values on board a and {kinds[1]} values on board b, which cannot be "
            "compared: make them one type (in Python by .astype(str))"
        ) from error
