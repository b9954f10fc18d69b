"""Alias tables (Walker 1977; Vose 1991, DOI 10.1109/32.92917), built for many distributions at once."""

from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from jaxeval.arrays import Float, Int


def _balance(weight: Int, capacity: Int) -> tuple[Int, Int]:
    """Threshold and alias of each column when tables are laid end to end.

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
    """Alias tables of Poisson(rate) for (R,) ``rates`` >= 0; probabilities are multiples of 2**-32.

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
    log_factorial = scipy.special.gammaln(np.arange(value.max(initial=0) + 1) + 1.0)
    mass = value * of_values(np.log(np.maximum(rates, 1e-300))) - of_values(rates) - log_factorial[value]
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
    """(G,) words threshold << 32 | alias of alias tables laid end to end, each proportional to its part of ``count``.

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
