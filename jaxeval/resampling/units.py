"""Units of a bootstrap, each of like battles, clusters or items: their tables, and how far draws may fall short."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from jaxeval.kernels.resample import Singles, Strata, Units
from jaxeval.resampling.alias import Int, category_table, poisson_tables

# Least sizes of arrays, so that small boards share one compilation, which takes far longer than what they add.
_FEWEST_PLACES, _SMALLEST_TABLE, _SMALLEST_CATEGORY = 1024, 8192, 512

# Battles drawn one by one: the total of their Poisson draws in standard deviations under N, at which one resample in
# 30,000 is drawn again; and a battle is drawn more often than this with less than probability 2**-32.
_SINGLES_SHORTFALL, _THRESHOLDS = 4.0, 12

#: Units stacked in one column. A constant, as all that places a slice's units, and thereby names their random numbers,
#: must not depend on the other slices.
UNIT_ROWS = 4


def shortfall_of(total: int) -> int:
    """By how much the Poisson draws of ``total`` battles aim under it.

    Beyond k standard deviations (sqrt(total)) either way the draws of a chunk are repeated, which costs the same on
    every board, as chunks have one size in memory; within, each missing battle costs a random access. The sum is least
    where exp(-k^2 / 2) is proportional to sqrt(total); timings gave the factor (k is 4.0 at 25,000 battles, 3.4 at
    2 million).
    """
    sd = np.sqrt(total)
    k = np.sqrt(2 * np.log(max(4.7e5 / sd, 20.0)))
    return min(int(np.ceil(k * sd)), total)


def as_leaf(x: Any, dtype: type) -> Any:
    """``x`` as a NumPy array, untyped: the kernels' tuples, written for JAX arrays, hold NumPy ones until the call."""
    return np.asarray(x, dtype)


def stream_number(label: str) -> int:
    """A number for a slice's name, the same on every machine; 0 for the whole board."""
    return int.from_bytes(hashlib.blake2b(label.encode(), digest_size=8).digest()) if label else 0


def rounded(size: int) -> int:
    """``size`` rounded up by at most a sixteenth, so that similar boards share one compilation, and all small ones."""
    step = max(128, 1 << max(size.bit_length() - 5, 0))
    return _rounded_up(size, step)


def make_units(count: Int, shortfall: int | None = None, least_places: int = _FEWEST_PLACES) -> Units:
    """Units of sizes ``count`` (K, Q), for resamples of as many battles (or clusters, or items) as there are.

    Args:
        count: of each unit.
        shortfall: by how much the Poisson rates fall short of the total, by default `shortfall_of` it; 0 for draws that
            need no given total.
        least_places: places for single draws that there are at least.
    """
    which, distinct = pd.factorize(count.reshape(-1), sort=True)  # by hashing: ten times as fast as np.unique
    which = which.reshape(count.shape)
    total = int(count.sum())
    if total >= 2**31:
        raise ValueError(f"a resample draws fewer than {2**31:,} battles or clusters, got {total:,}")
    shortfall = shortfall_of(total) if shortfall is None else shortfall
    tables = poisson_tables(distinct.astype(np.float64) * (1 - shortfall / total))
    words = np.zeros(1 << max(len(tables.words) - 1, _SMALLEST_TABLE - 1).bit_length(), np.uint32)
    words[: len(tables.words)] = tables.words
    # Without the padding columns, which depend on the other slices: the picks from this table must not.
    used = count[:, : int(np.flatnonzero(count.sum(0))[-1]) + 1]
    by_number = np.zeros((used.shape[1], 1 << (len(count) - 1).bit_length()), np.int64)
    by_number[:, : len(used)] = used.T
    category = np.zeros(rounded(max(by_number.size, _SMALLEST_CATEGORY)), np.uint64)
    category[: by_number.size] = category_table(by_number.reshape(-1))
    return Units(
        size=as_leaf(count, np.int32),
        shift=as_leaf(32 - tables.bits[which], np.uint32),
        offset=as_leaf(tables.offset[which], np.int32),
        least=as_leaf(tables.first[which], np.int32),
        table=as_leaf(words, np.uint32),
        category=as_leaf(category, np.uint64),
        strata=_one_stratum(total, shortfall, by_number.size, max(_rounded_up(2 * shortfall, 128), least_places)),
    )


def make_singles(n: int, width: int) -> Singles:
    """N battles (or clusters, or items) in ``width`` slots, of arrays of one shape for all N up to that."""
    shortfall = _singles_shortfall(n)
    below = scipy.special.pdtr(np.arange(_THRESHOLDS), 1 - shortfall / n)
    threshold = np.minimum(np.rint(below * 2.0**32), 2.0**32 - 1)
    strata = _one_stratum(n, shortfall, n, _rounded_up(2 * _singles_shortfall(width), 64))
    return Singles(as_leaf(threshold[None], np.uint32), strata)


def _singles_shortfall(n: int) -> int:
    return min(int(np.ceil(_SINGLES_SHORTFALL * np.sqrt(n))), n)


def _rounded_up(size: int, step: int) -> int:
    return -(-size // step) * step


def _one_stratum(total: int, shortfall: int, n_numbers: int, n_places: int) -> Strata:
    """All units in one stratum."""
    return Strata(
        total=as_leaf([total], np.int32),
        limit=as_leaf([min(2 * shortfall, total)], np.int32),
        first=as_leaf([0], np.int32),
        n_numbers=as_leaf([n_numbers], np.uint64),
        place=as_leaf(np.zeros(n_places), np.int32),
    )


def pad(x: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """``x`` with zeros up to ``shape``."""
    return np.pad(x, [(0, size - have) for size, have in zip(shape, x.shape, strict=True)])
