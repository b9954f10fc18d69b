"""Units of a bootstrap, each of like battles, clusters or items: their tables, and how far draws may fall short."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from jaxeval.kernels.resample import Singles, Tally, Units
from jaxeval.resampling.alias import Int, category_table, poisson_tables

# Least sizes of arrays, so that small boards share one compilation, which takes far longer than what they add.
_SMALLEST_TOP_UP, _SMALLEST_TABLE, _SMALLEST_CATEGORY = 1024, 8192, 512

# Battles drawn one by one: the total of their Poisson draws in standard deviations under N, at which one resample in
# 30,000 is drawn again; and a battle is drawn more often than this with less than probability 2**-32.
_SINGLES_SHORTFALL, _THRESHOLDS = 4.0, 12

# Units stacked in one column, and the bits of the row in a unit's number. Constants, as all that places a slice's
# units, and thereby names their random numbers, must not depend on the other slices.
UNIT_ROWS, ROW_BITS = 4, 2


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


def top_up_size_of(shortfall: int, least: int = _SMALLEST_TOP_UP) -> int:
    """Draws that a top-up has room for: twice the shortfall, rounded up."""
    return max(-(-2 * shortfall // 128) * 128, least)


def as_leaf(x: Any, dtype: type) -> Any:
    """``x`` as a NumPy array, untyped: the kernels' tuples, written for JAX arrays, hold NumPy ones until the call."""
    return np.asarray(x, dtype)


def stream_number(label: str) -> int:
    """A number for a slice's name, the same on every machine; 0 for the whole board."""
    return int.from_bytes(hashlib.blake2b(label.encode(), digest_size=8).digest()) if label else 0


def rounded(size: int) -> int:
    """``size`` rounded up by at most a sixteenth, so that similar boards share one compilation, and all small ones."""
    step = max(128, 1 << max(size.bit_length() - 5, 0))
    return -(-size // step) * step


def make_units(count: Int, tally: Tally, shortfall: int) -> Units:
    """Units of sizes ``count`` (K, Q), whose Poisson rates fall short of the total by ``shortfall``."""
    which, distinct = pd.factorize(count.reshape(-1), sort=True)  # by hashing: ten times as fast as np.unique
    which = which.reshape(count.shape)
    total = int(count.sum())
    if total >= 2**31:
        raise ValueError(f"a resample draws fewer than {2**31:,} battles or clusters, got {total:,}")
    tables = poisson_tables(distinct.astype(np.float64) * (1 - shortfall / total))
    words = np.zeros(1 << max(len(tables.words) - 1, _SMALLEST_TABLE - 1).bit_length(), np.uint32)
    words[: len(tables.words)] = tables.words
    # Without the padding columns, which depend on the other slices: the picks from this table must not.
    used = count[:, : int(np.flatnonzero(count.sum(0))[-1]) + 1]
    by_number = np.zeros((used.shape[1], 1 << tally.row_bits), np.int64)
    by_number[:, : used.shape[0]] = used.T
    category = np.zeros(rounded(max(by_number.size, _SMALLEST_CATEGORY)), np.uint64)
    category[: by_number.size] = category_table(by_number.reshape(-1))
    return Units(
        size=as_leaf(count, np.int32),
        shift=as_leaf(32 - tables.bits[which], np.uint32),
        offset=as_leaf(tables.offset[which], np.int32),
        first=as_leaf(tables.first[which], np.int32),
        table=as_leaf(words, np.uint32),
        category=as_leaf(category, np.uint64),
        n_categories=as_leaf(by_number.size, np.uint64),
        total=as_leaf(total, np.int32),
        shortfall=as_leaf(shortfall, np.int32),
    )


def make_singles(n: int) -> Singles:
    """N battles, or items, drawn one by one."""
    below = scipy.special.pdtr(np.arange(_THRESHOLDS), 1 - _singles_shortfall(n) / n)
    threshold = np.minimum(np.rint(below * 2.0**32), 2.0**32 - 1)
    return Singles(as_leaf(n, np.int32), as_leaf(_singles_shortfall(n), np.int32), as_leaf(threshold, np.uint32))


def singles_top_up_size(n: int) -> int:
    """Draws that a top-up of ``n`` or fewer battles has room for."""
    return -(-2 * _singles_shortfall(n) // 64) * 64


def _singles_shortfall(n: int) -> int:
    return min(int(np.ceil(_SINGLES_SHORTFALL * np.sqrt(n))), n)


def pad(x: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """``x`` with zeros up to ``shape``."""
    return np.pad(x, [(0, size - have) for size, have in zip(shape, x.shape, strict=True)])
