"""Units of a bootstrap, each of like battles, clusters or items: their tables, and how far draws may fall short."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from jaxeval.arrays import Float, Int, as_leaf
from jaxeval.execution.shapes import BATTLE_PLACES, padded_few, padded_places, padded_table, power_of_two
from jaxeval.kernels.resample import Singles, Strata, Units
from jaxeval.resampling.alias import category_tables, poisson_tables

# For battles that are drawn one by one: by how many standard deviations their Poisson draws aim under N, so that one
# resample in 30,000 exceeds N and is drawn again.
_SINGLES_SHORTFALL = 4.0
# A battle is drawn more often than this with a probability under 2**-32.
_THRESHOLDS = 12


def shortfall_of(total: Int) -> Int:
    """By how much the Poisson draws of ``total`` (S,) battles aim under the total.

    They aim k standard deviations (sqrt(total)) under it. If they miss the aim by more than that, either way, the draws
    of a chunk are repeated; this costs the same on every board, because chunks have one size in memory. Otherwise each
    battle that is missing from the total costs a random access. The sum of both costs is least where exp(-k^2 / 2) is
    proportional to sqrt(total); timings gave the factor (k is 4.0 at 25,000 battles, 3.4 at 2 million). Of about 20
    battles or fewer, all are drawn one by one.
    """
    sd = np.sqrt(np.maximum(total, 1))
    k = np.sqrt(2 * np.log(np.maximum(4.7e5 / sd, 20.0)))
    return np.minimum(np.ceil(k * sd).astype(np.int64), total)


def stream_number(label: str) -> int:
    """A number for a slice's name, the same on every machine; 0 for the whole board."""
    return int.from_bytes(hashlib.blake2b(label.encode(), digest_size=8).digest()) if label else 0


def make_units(
    count: Int, stratum: Int | None = None, shortfall: int | None = None, least_places: int = BATTLE_PLACES
) -> Units:
    """Units of sizes ``count`` (K, Q), for resamples of as many battles (or clusters, or items) as there are.

    Args:
        count: of each unit; further columns may be empty.
        stratum: (C,) ascending, from 0: strata of the first C columns, all that are not empty; None for one stratum.
        shortfall: by how much the Poisson rates fall short of each stratum's total, by default `shortfall_of` it; 0 for
            draws that need no given total.
        least_places: fewest places for single draws.
    """
    by_column = count.sum(0)
    if int(by_column.sum()) >= 2**31:
        raise ValueError(f"a resample can draw at most {2**31 - 1:,} battles or clusters, got {by_column.sum():,}")
    # Without the padding columns, which depend on the other slices: what is drawn must not.
    own = np.zeros(int(np.flatnonzero(by_column)[-1]) + 1, np.int64) if stratum is None else stratum
    n = len(own)
    total = np.bincount(own, by_column[:n]).astype(np.int64)
    short = shortfall_of(total) if shortfall is None else np.minimum(shortfall, total)
    rate = np.zeros(count.shape)
    rate[:, :n] = count[:, :n] * _share(short, total)[own]
    which, distinct = pd.factorize(rate.reshape(-1), sort=True)  # by hashing: ten times as fast as np.unique
    which = which.reshape(count.shape)
    tables = poisson_tables(distinct)
    by_number = np.zeros((n, power_of_two(len(count))), np.int64)
    by_number[:, : len(count)] = count[:, :n].T
    n_numbers = np.bincount(own) * by_number.shape[1]
    category = np.zeros(count.shape[1] * by_number.shape[1], np.uint64)
    category[: by_number.size] = category_tables(by_number.reshape(-1), n_numbers)
    return Units(
        size=as_leaf(count, np.int32),
        shift=as_leaf(32 - tables.bits, np.uint32)[which],
        offset=as_leaf(tables.offset, np.int32)[which],
        least=as_leaf(tables.first, np.int32)[which],
        table=as_leaf(pad(tables.words, (padded_table(len(tables.words)),)), np.uint32),
        category=as_leaf(category, np.uint64),
        strata=_strata(total, 2 * short, n_numbers, least_places, stratum, count.shape[1]),
    )


def make_singles(n: int, width: int, stratum: Int | None = None) -> Singles:
    """N battles (or clusters, or items) in ``width`` slots; the arrays have the same shapes for all N up to ``width``.

    ``stratum`` (N,) is the stratum of each, ascending from 0; None for one stratum.
    """
    total = np.array([n]) if stratum is None else np.bincount(stratum)
    short = _singles_shortfall(total)
    below = scipy.special.pdtr(np.arange(_THRESHOLDS), _share(short, total)[:, None])
    threshold = np.minimum(np.rint(below * 2.0**32), 2.0**32 - 1)
    strata = _strata(total, 2 * short, total, 2 * int(_singles_shortfall(np.array(width))), stratum, width)
    return Singles(as_leaf(threshold, np.uint32), strata)


def _share(shortfall: Int, total: Int) -> Float:
    """The rate at which Poisson counts take each battle of the strata (S,), which may be empty."""
    return np.asarray(1 - shortfall / np.maximum(total, 1))


def _singles_shortfall(n: Int) -> Int:
    return np.minimum(np.ceil(_SINGLES_SHORTFALL * np.sqrt(n)).astype(np.int64), n)


def _strata(total: Int, limit: Int, n_numbers: Int, least_places: int, stratum: Int | None, n_columns: int) -> Strata:
    """Strata (S,) of units that are numbered one stratum after the other, in ``n_columns``, of which some are empty."""
    limit = np.minimum(limit, total)
    place = np.repeat(np.arange(len(total)), limit)
    size = (padded_few(len(total)),)
    return Strata(
        total=as_leaf(pad(total, size), np.int32),
        limit=as_leaf(pad(limit, size), np.int32),
        first=as_leaf(pad(np.cumsum(n_numbers) - n_numbers, size), np.int32),
        n_numbers=as_leaf(pad(n_numbers, size), np.uint64),
        place=as_leaf(pad(place, (padded_places(len(place), least_places),)), np.int32),
        column=None if stratum is None else as_leaf(pad(stratum, (n_columns,)), np.int32),
    )


def stacked(parts: Sequence[Any], size: int | None = None) -> Any:
    """Trees of arrays, stacked on a new leading axis; each array is padded with zeros to the largest of its kind.

    The leading axis is padded to ``size``, if given.
    """

    def stack(*leaves: NDArray[Any]) -> NDArray[Any]:
        arrays = [np.asarray(leaf) for leaf in leaves]
        shape = tuple(map(max, zip(*(x.shape for x in arrays), strict=True)))
        n = size or len(arrays)
        if n == 1:
            return arrays[0][None]
        together = np.zeros((n, *shape), arrays[0].dtype)
        for k, x in enumerate(arrays):
            own: tuple[int | slice, ...] = (k, *map(slice, x.shape))
            together[own] = x
        return together

    return jax.tree.map(stack, *parts)


def pad(x: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """``x`` with zeros up to ``shape``."""
    if x.shape == shape:
        return x
    padded = np.zeros(shape, x.dtype)
    padded[tuple(map(slice, x.shape))] = x
    return padded
