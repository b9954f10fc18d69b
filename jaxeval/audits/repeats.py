"""Repeated votes of one voter, and the busiest hour of each voter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Float, Int
from jaxeval.data.cells import Cells, count_by

_HOUR = 3600


class Repeats(NamedTuple):
    """Votes beyond the first of the same voter, pair and, where there are prompts, prompt."""

    of_voter: Int  # (V,) such votes
    of_row: Int  # (R,) such votes of each row
    alike: float  # pairs of votes that are the same
    alike_by_chance: float  # the same, if every voter's pairs of models were drawn as the board's are


def repeats(voter: Int, cell: Int, cells: Cells, prompt: Int | None, times: Int | None, n_voters: int) -> Repeats:
    """The repeats among rows of ``times`` votes each, with ``voter`` and ``prompt`` (R,), -1 for none, and ``cell``."""
    times = np.ones(len(voter), np.int64) if times is None else times
    own = voter >= 0 if prompt is None else (voter >= 0) & (prompt >= 0)
    pair = cells.pair[cell]
    keys = voter[own].astype(np.int64) * len(cells.first) + pair[own]
    if prompt is not None:
        keys = pd.factorize(keys)[0] * (int(prompt.max()) + 1) + prompt[own]
    number, distinct = pd.factorize(keys)
    total = count_by(number, times[own], len(distinct))
    first = np.zeros(len(number), bool)
    first[np.unique(number, return_index=True)[1]] = True
    of_row = np.zeros(len(voter), np.int64)
    of_row[own] = times[own] - first
    size = count_by(voter[own], times[own], n_voters).astype(float)
    share = np.bincount(pair[own], times[own]) / times[own].sum()
    return Repeats(
        of_voter=count_by(voter[own], of_row[own], n_voters),
        of_row=of_row,
        alike=float((total * (total - 1.0) / 2).sum()),
        alike_by_chance=float((size * (size - 1) / 2).sum() * (share**2).sum()) if prompt is None else np.nan,
    )


def busiest_hours(voter: Int, seconds: Int, times: Int | None, n_voters: int) -> Float:
    """(V,) the most votes that each voter cast within an hour."""
    own = np.flatnonzero(voter >= 0)
    moment = seconds[own] - seconds[own].min()
    span = int(moment.max()) + _HOUR + 1
    order = np.argsort(voter[own] * span + moment, kind="stable")
    key = (voter[own] * span + moment)[order]
    cast = np.concatenate([[0], np.cumsum(np.ones(len(own)) if times is None else times[own][order])])
    within = cast[np.searchsorted(key, key + _HOUR)] - cast[np.arange(len(key))]
    most = np.zeros(n_voters)
    np.maximum.at(most, voter[own][order], within)
    return most


def with_count(cells: Cells, count: NDArray[np.int64]) -> Cells:
    """The cells with another number of battles (C,); those without any are left out."""
    left = count > 0
    pairs, pair = np.unique(cells.pair[left], return_inverse=True)
    return Cells(
        first=cells.first[pairs],
        second=cells.second[pairs],
        pair=pair,
        target=cells.target[left],
        weight=cells.weight[left],
        count=count[left],
    )
