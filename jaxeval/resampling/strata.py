"""Strata: groups of battles, clusters or items of which every resample holds as many as the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Int
from jaxeval.data.columns import plain
from jaxeval.errors import DataError
from jaxeval.wording import counted


def stratum_of_groups(
    stratum: NDArray[np.intp],
    group: NDArray[np.intp],
    names: pd.Index,
    strata: str,
    what: str = "cluster",
    kind: str = "strata",
    one: str = "stratum",
) -> Int:
    """Return (K,) the stratum of each group, which is drawn whole: a cluster of battles, or an item.

    Args:
        stratum: (R,) of each row.
        group: (R,) numbers from 0 to K - 1.
        names: (K,) of the groups.
        strata: the column of the strata.
        what: a group is called.
        kind: what the column holds, as its option is named; ``one`` of them.

    Raises:
        DataError: a group has rows in several strata.
    """
    option = "strata" if kind == "strata" else one
    of_group = np.zeros(len(names), np.int64)
    of_group[group] = stratum
    crossing = np.unique(group[of_group[group] != stratum])
    if len(crossing):
        several = counted(len(crossing), f"{what} lies", f"{what}s lie")
        raise DataError(
            f"{several} in several {kind} of {strata!r}, of {counted(len(names), what)} (the first is "
            f"{plain(names[crossing[0]])!r}): each {what} is drawn whole and needs one {one}; name a column whose "
            f"groups hold whole {what}s, or leave out {option}= (on the command line --{option})"
        )
    return of_group


def checked_strata(stratum: Any) -> Int | None:
    """Return (N,) numbers of strata from 0 on, all of which occur; None where there is only one."""
    values, number = np.unique(stratum, return_inverse=True)
    return number if len(values) > 1 else None


#: Errors that are too small by more than this share are reported.
_TOO_SMALL = 0.05


def small_strata_text(size: Int | None, what: str = "battle") -> list[str]:
    """Return sentences on strata of one ``what`` or of a few, from the ``size`` (S,) of all.

    A resample of n units of a stratum has (n - 1) / n of the variance that the data show within it.
    """
    sentences: list[str] = []
    if size is None:
        return sentences
    lone = int((size == 1).sum())
    if lone > 0:
        strata, they = ("stratum", "it contributes") if lone == 1 else ("strata", "they contribute")
        vary = f"of one {what} {'does' if lone == 1 else 'do'} not vary in the resamples"
        sentences.append(f"{lone:,} {strata} {vary}, so the intervals leave out what {they}")
    several = size[size > 1]
    short = 1 - np.sqrt(1 - len(several) / several.sum()) if len(several) else 0.0
    if short > _TOO_SMALL:
        sentences.append(
            f"the {'other ' if lone else ''}strata hold {several.mean():.1f} {what}s on average: resamples vary too "
            f"little within so few, and errors are too small by about {short:.0%}"
        )
    return sentences
