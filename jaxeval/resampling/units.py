"""Units of a bootstrap, each of like battles, clusters or items: their tables, and how far draws may fall short."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Float, Int, as_leaf, distinct, map_tree
from jaxeval.data.columns import plain
from jaxeval.errors import DataError
from jaxeval.execution.shapes import BATTLE_PLACES, padded_few, padded_places, padded_table, power_of_two
from jaxeval.kernels.resample import ROUND_SHORTFALL, ROUNDS, DrawScheme, Packing, RateTables, Singles, Strata, Units
from jaxeval.lazy_names import pd, scipy
from jaxeval.wording import counted


def stratum_of_groups(
    stratum: NDArray[np.intp], group: NDArray[np.intp], names: pd.Index, strata: str, what: str = "cluster",
    kind: str = "strata", one: str = "stratum",
) -> Int:  # fmt: skip
    """Return (K,) the stratum of each group, which is drawn whole: a cluster of battles, or an item.

    Rows have a stratum (R,) and a group (R,), numbered from 0; a group with rows in several strata is a DataError. It
    says ``what`` a group is, and which ``kind`` of things the column ``strata`` holds, ``one`` of them.
    """
    option = {"strata": "strata", "clusters": "cluster"}.get(kind, "random")
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


# For battles that are drawn one by one: by how many standard deviations their Poisson draws aim under N, so that one
# resample in 30,000 exceeds N and is drawn again.
_SINGLES_SHORTFALL = 4.0
# Words of Poisson tables from which on units are drawn without any. So many take half a second to make, more take
# gigabytes; draws without tables take 2 us a unit, in place of some 10 ns and a share of the single draws.
_MOST_WORDS = 2**22
_FEW_BATTLES = 2**23  # whose tables have fewer words in any case
# Places of single draws from which on units are drawn without tables: of each unit, whose draw without tables takes
# the time of so many; and of all, which take a gigabyte in the lanes of a chunk.
_MOST_PLACES_OF_UNIT, _MOST_PLACES = 64, 2**16
_MOST_BATTLES = 2**53 - 1  # doubles count them
# A battle is drawn more often than this with a probability under 2**-32.
_THRESHOLDS = 12
_FEW_VALUES = 1000


def shortfall_of(total: Int) -> Int:
    """Return by how much the Poisson draws of ``total`` (S,) battles aim under the total.

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
    """Return a number for a slice's name, the same on every machine; 0 for the whole board."""
    return int.from_bytes(hashlib.blake2b(label.encode(), digest_size=8).digest()) if label else 0


def without_tables(count: Int, given_total: bool = True) -> bool:
    """Return whether units of sizes ``count`` are so large that they are drawn without tables.

    Draws follow from it, so it depends on nothing but the sizes, and whether resamples have a given total. Without
    tables, the cost of a resample follows the units; with them, it also grows with the root of the battles.
    """
    total = int(count.sum())
    if total < _FEW_BATTLES:
        return False
    places = 2 * int(shortfall_of(np.array(total))) * given_total
    if places > min(_MOST_PLACES_OF_UNIT * int(np.count_nonzero(count)), _MOST_PLACES):
        return True
    return total >= 2**31 or _words(np.unique(count)).sum() > _MOST_WORDS


def _left_by_rounds(total: Int) -> Int:
    """Return how many of ``total`` (S,) battles draws in rounds leave at most, but for one resample in 100,000."""
    left = total.astype(float)
    for _ in range(ROUNDS):
        left = np.minimum(left, 2 * ROUND_SHORTFALL * np.sqrt(left))
    return np.ceil(left).astype(np.int64)


def _words(rates: NDArray[Any]) -> Float:
    """Return about how many values the tables of Poisson ``rates`` hold."""
    return 2 * (7.2 * np.sqrt(rates) + 14)


def make_units(
    count: Int, stratum: Int | None = None, shortfall: int | None = None, least_places: int = BATTLE_PLACES,
    large: bool | None = None,
) -> Units:  # fmt: skip
    """Return units of sizes ``count`` (K, Q), for resamples of as many battles (or clusters, or items) as there are.

    Args:
        count: of each unit; further columns may be empty.
        stratum: (C,) ascending, from 0: strata of the first C columns, all that are not empty; None for one stratum.
        shortfall: by how much the Poisson rates fall short of each stratum's total, by default `shortfall_of` it; 0 for
            draws that need no given total.
        least_places: fewest places for single draws.
        large: whether they are drawn without tables; `without_tables` by default.
    """
    by_column = count.sum(0)
    if int(by_column.sum()) > _MOST_BATTLES:
        raise ValueError(f"a resample can draw at most {_MOST_BATTLES:,} battles or clusters, got {by_column.sum():,}")
    # Without the padding columns, which depend on the other slices: what is drawn must not.
    stratum_of_column = np.zeros(int(np.flatnonzero(by_column)[-1]) + 1, np.int64) if stratum is None else stratum
    n = len(stratum_of_column)
    total = np.bincount(stratum_of_column, by_column[:n]).astype(np.int64)
    large = without_tables(count, shortfall is None) if large is None else large
    short = shortfall_of(total) if shortfall is None else np.minimum(shortfall, total)
    limit = _left_by_rounds(total) if large else 2 * short
    by_number = np.zeros((n, power_of_two(len(count))), np.int64)
    by_number[:, : len(count)] = count[:, :n].T
    n_numbers = np.bincount(stratum_of_column) * by_number.shape[1]
    category = np.zeros(count.shape[1] * by_number.shape[1], np.uint64)
    if large:  # products of a stratum's size and the number of units are to stay under 2**62
        bits = np.ceil(np.log2(np.maximum(total, 1) * float(by_number.size))).astype(np.int64)
        by_number >>= np.maximum(bits - 61, 0)[stratum_of_column, None]
    category[: by_number.size] = category_tables(by_number.reshape(-1), n_numbers)
    share = _share(short, total)[stratum_of_column]
    return Units(
        size=as_leaf(count, np.float64 if large else np.int32),
        tables=None if large else _rate_tables(count, share),
        category=as_leaf(category, np.uint64),
        strata=_strata(total, limit, n_numbers, least_places, stratum, count.shape[1], np.int64 if large else np.int32),
    )


def _rate_tables(count: Int, share: Float) -> RateTables:
    """Return the tables of units (K, Q) at a ``share`` (n,) of their sizes in the first n columns."""
    rate = np.zeros(count.shape)
    rate[:, : len(share)] = count[:, : len(share)] * share
    which, rates = distinct(rate.reshape(-1))
    which = which.reshape(count.shape)
    tables = poisson_tables(rates)
    return RateTables(
        shift=as_leaf(32 - tables.bits, np.uint32)[which],
        offset=as_leaf(tables.offset, np.int32)[which],
        least=as_leaf(tables.first, np.int32)[which],
        words=as_leaf(pad(tables.words, (padded_table(len(tables.words)),)), np.uint32),
    )


def make_singles(n: int, width: int, stratum: Int | None = None) -> Singles:
    """Put N battles (or clusters, or items) in ``width`` slots; arrays have the same shapes for all N up to ``width``.

    ``stratum`` (N,) is the stratum of each, ascending from 0; None for one stratum.
    """
    total = np.array([n]) if stratum is None else np.bincount(stratum)
    short = _singles_shortfall(total)
    rate, count = _share(short, total)[:, None], np.arange(_THRESHOLDS)
    # SciPy's function takes longer to import than a small command computes. Of totals up to 300,000 no word differs.
    below = np.cumsum(np.exp(-rate) * rate**count / list(map(math.factorial, range(_THRESHOLDS))), 1)
    threshold = np.minimum(np.rint(below * 2.0**32), 2.0**32 - 1)
    strata = _strata(total, 2 * short, total, 2 * int(_singles_shortfall(np.array(width))), stratum, width)
    return Singles(as_leaf(threshold, np.uint32), strata)


def _share(shortfall: Int, total: Int) -> Float:
    """Return the rate at which Poisson counts take each battle of the strata (S,), which may be empty."""
    return np.asarray(1 - shortfall / np.maximum(total, 1))


def _singles_shortfall(n: Int) -> Int:
    return np.minimum(np.ceil(_SINGLES_SHORTFALL * np.sqrt(n)).astype(np.int64), n)


def _strata(
    total: Int, limit: Int, n_numbers: Int, least_places: int, stratum: Int | None, n_columns: int,
    kind: type = np.int32,
) -> Strata:  # fmt: skip
    """Make strata (S,) of units numbered one stratum after the other, in ``n_columns``, of which some are empty."""
    limit = np.minimum(limit, total)
    place = np.repeat(np.arange(len(total)), limit)
    size = (padded_few(len(total)),)
    return Strata(
        total=as_leaf(pad(total, size), kind),
        limit=as_leaf(pad(limit, size), np.int32),
        first=as_leaf(pad(np.cumsum(n_numbers) - n_numbers, size), np.int32),
        n_numbers=as_leaf(pad(n_numbers, size), np.uint64),
        place=as_leaf(pad(place, (padded_places(len(place), least_places),)), np.int32),
        column=None if stratum is None else as_leaf(pad(stratum, (n_columns,)), np.int32),
    )


def stacked(parts: Sequence[Any], size: int | None = None) -> Any:
    """Give trees of arrays, stacked on a new leading axis; each array is padded with zeros to the largest of its kind.

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
            place: tuple[int | slice, ...] = (k, *map(slice, x.shape))
            together[place] = x
        return together

    return map_tree(stack, *parts)


def pad(x: NDArray[Any], shape: tuple[int, ...], filler: float = 0) -> NDArray[Any]:
    """Return ``x`` with zeros, or another ``filler``, up to ``shape``."""
    if x.shape == shape:
        return x
    padded = np.full(shape, filler, x.dtype)
    padded[tuple(map(slice, x.shape))] = x
    return padded


def _balance(weight: Int, capacity: Int) -> tuple[Int, Int]:
    """Return the threshold and alias of each column when tables are laid end to end.

    In every table the weights sum to the number of columns times its capacity. Columns under capacity (light) are
    filled by those over it (heavy) in order; with running sums of deficits and excesses, two binary searches say which
    column fills which. The sums meet at every table's end, so no column borrows across tables.
    """
    over = weight - capacity
    light, heavy = np.flatnonzero(over < 0), np.flatnonzero(over >= 0)
    threshold, alias = np.minimum(weight, capacity), np.arange(len(weight))
    deficit = np.zeros(len(light) + 1, np.int64)
    np.cumsum(-over[light], out=deficit[1:])
    excess = np.cumsum(over[heavy])
    # How many sums of deficits lie below each sum of excesses; and how many heavy columns have no excess left when the
    # turn of each light one comes.
    filled = np.searchsorted(deficit, excess, side="left")
    used_up = np.cumsum(np.bincount(filled, minlength=len(deficit)))
    alias[light] = heavy[used_up[: len(light)]]
    # The last light column of a heavy one may take more than its excess: the next heavy column makes that good.
    overdrawn = deficit[filled] - excess
    threshold[heavy] -= overdrawn
    short = np.flatnonzero(overdrawn > 0)
    alias[heavy[short]] = heavy[short + 1]
    return threshold, alias


class PoissonTables(NamedTuple):
    """One alias table per rate: 2**bits columns from ``offset``, values ``first``, first + 1, ..."""

    bits: Int  # (R,)
    offset: Int  # (R,)
    first: Int  # (R,)
    words: NDArray[np.uint32]  # threshold << bits | alias


def poisson_tables(rates: Float) -> PoissonTables:
    """Return alias tables of Poisson(rate) for (R,) ``rates`` >= 0; probabilities are multiples of 2**-32.

    Values further than 7 standard deviations from the mean have less mass than 2**-32 and are left out.
    """
    half_width = np.ceil(7.2 * np.sqrt(rates) + 14).astype(np.int64)
    whole = np.floor(rates).astype(np.int64)
    smallest = np.maximum(whole - half_width, 0)
    n_values = whole + half_width + 2 - smallest
    start = np.cumsum(n_values) - n_values

    def of_values(x: NDArray[Any]) -> NDArray[Any]:
        return np.repeat(x, n_values)

    value = np.arange(n_values.sum()) + of_values(smallest - start)
    most = int(value.max(initial=0))
    if most < max(len(value), _FEW_VALUES):  # else a table of all would be longer than what is read of it
        whole_numbers = np.arange(most + 1) + 1.0  # of few, SciPy's special functions are not imported
        of_each = list(map(math.lgamma, whole_numbers)) if most < _FEW_VALUES else scipy.special.gammaln(whole_numbers)
        log_factorial = np.asarray(of_each)[value]
    else:
        log_factorial = scipy.special.gammaln(value + 1.0)
    mass = value * of_values(np.log(np.maximum(rates, 1e-300))) - of_values(rates) - log_factorial
    with np.errstate(under="ignore"):  # masses that round to 0, as those of all values but 0 at rate 0
        np.exp(mass, out=mass)
        mass /= of_values(np.add.reduceat(mass, start))
    fixed = np.rint(mass * 2.0**32).astype(np.int64)
    fixed[start + whole - smallest] += 2**32 - np.add.reduceat(fixed, start)

    keep = fixed > 0
    first = np.minimum.reduceat(np.where(keep, value, np.iinfo(np.int64).max), start)
    n_kept = np.add.reduceat(keep.astype(np.int64), start)
    # At least two columns: a shift by all 32 bits is not defined.
    bits = np.maximum(1, np.ceil(np.log2(n_kept)).astype(np.int64))
    n_columns = 1 << bits
    offset = np.cumsum(n_columns) - n_columns

    def of_columns(x: Int) -> Int:
        return np.repeat(x, n_columns)

    weight = np.zeros(n_columns.sum(), np.int64)
    weight[(value + of_values(offset - first))[keep]] = fixed[keep]
    capacity = of_columns(np.int64(1) << (32 - bits))
    threshold, alias = _balance(weight, capacity)
    # A full column cannot say "always": its threshold has one bit too many. It is its own alias instead.
    threshold[threshold == capacity] = 0
    words = ((threshold << of_columns(bits)) | (alias - of_columns(offset))).astype(np.uint32)
    return PoissonTables(bits, offset, first, words)


def category_tables(count: Int, n_columns: Int) -> NDArray[np.uint64]:
    """Make (G,) words threshold << 32 | alias of alias tables laid end to end, each proportional to its ``count``.

    ``n_columns`` (T,) are the numbers of columns of the tables and sum to G; aliases are columns of their own table.
    """

    def of_columns(x: Int) -> Int:
        return np.repeat(x, n_columns)

    end = np.cumsum(n_columns)
    total = of_columns(np.diff(np.append(0, np.cumsum(count))[np.append(0, end)]))
    threshold, alias = _balance(count * of_columns(n_columns), total)
    alias -= of_columns(end - n_columns)
    # As in Poisson tables: a full column is its own alias.
    threshold[threshold == total] = 0
    fraction = np.floor(threshold / np.maximum(total, 1) * 2.0**32).astype(np.int64)
    words: NDArray[np.uint64] = ((fraction << 32) | alias).view(np.uint64)  # casts to unsigned integers are slow
    return words


class UnitDraw(NamedTuple):
    """What is resampled; NumPy arrays until the call. Resample r is a function of the draw, the seed and r alone.

    Multinomial, Poisson and Bayesian draws take battles, items or judgments as units. Clusters are units of their own,
    drawn whole. Equal units share an entry of a table; its size says how many they are. Of the units of a stratum,
    every resample holds the same number.

    Two levels, such as calibration and test items, are two draws. Each has a stream of its own, and resample r of a
    result takes the r-th of both.
    """

    scheme: DrawScheme  # static to a compiled program, like ``packing``
    units: Units  # the sizes of the entries, their strata, and the tables that their draws come from
    stream: np.uint64  # number of the stream of random numbers: each slice has its own
    packing: Packing  # how the draws of a column of entries are kept


def unit_draw(
    sizes: Int,
    scheme: DrawScheme,
    label: str,
    packing: Packing,
    stratum: Int | None = None,
    least_places: int = BATTLE_PLACES,
) -> UnitDraw:
    """Make the draw from entries of ``sizes`` (K, Q) units for the slice ``label``; the rest is as in `make_units`."""
    shortfall = None if scheme == DrawScheme.MULTINOMIAL else 0
    units = make_units(sizes, stratum, shortfall=shortfall, least_places=least_places)
    return UnitDraw(scheme, units, np.uint64(stream_number(label)), packing)
