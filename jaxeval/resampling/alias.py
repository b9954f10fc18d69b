"""Alias tables (Walker 1977; Vose 1991, DOI 10.1109/32.92917), built for many distributions at once."""

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from jaxeval.arrays import Float, Int


def _balance(weight: Int, capacity: Int) -> tuple[Int, Int]:
    """Threshold and alias of each column when tables are laid end to end.

    In every table the weights sum to the number of columns times its capacity. Columns under capacity (light) are
    filled by those over it (heavy) in order; with running sums of deficits and excesses, two binary searches say who
    fills whom. The sums meet at every table's end, so no column borrows across tables.
    """
    threshold, alias = capacity.copy(), np.arange(len(weight))
    light, heavy = np.flatnonzero(weight < capacity), np.flatnonzero(weight >= capacity)
    deficit = np.concatenate([[0], np.cumsum((capacity - weight)[light])])
    excess = np.cumsum((weight - capacity)[heavy])
    # How many sums of deficits each sum of excesses exceeds, and how many of the latter are within each of the former.
    filled = np.searchsorted(deficit, excess, side="left")
    used_up = np.cumsum(np.bincount(filled, minlength=len(deficit)))
    threshold[light] = weight[light]
    alias[light] = heavy[used_up[: len(light)]]
    # A heavy column ends under capacity by what its last light column took too much; the next heavy one fills that.
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

    Values further than 7 standard deviations from the mean have less mass than that and are left out.
    """
    mean = np.maximum(rates, 1e-300)
    half_width = np.ceil(7.2 * np.sqrt(rates) + 14).astype(np.int64)
    smallest = np.maximum(np.floor(rates).astype(np.int64) - half_width, 0)
    n_values = np.floor(rates).astype(np.int64) + half_width + 2 - smallest
    start = np.cumsum(n_values) - n_values
    table = np.repeat(np.arange(len(rates)), n_values)
    value = np.arange(n_values.sum()) - start[table] + smallest[table]
    log_mass = value * np.log(mean)[table] - rates[table] - scipy.special.gammaln(value + 1.0)
    with np.errstate(under="ignore"):  # masses that round to 0
        mass = np.where(rates[table] > 0, np.exp(log_mass), value == 0)
        mass /= np.add.reduceat(mass, start)[table]
    fixed = np.rint(mass * 2.0**32).astype(np.int64)
    mode = start + np.floor(rates).astype(np.int64) - smallest
    fixed[mode] += 2**32 - np.add.reduceat(fixed, start)

    keep = fixed > 0
    first = np.minimum.reduceat(np.where(keep, value, np.iinfo(np.int64).max), start)
    n_kept = np.add.reduceat(keep.astype(np.int64), start)
    # At least two columns: a shift by all 32 bits is not defined.
    bits = np.maximum(1, np.ceil(np.log2(n_kept)).astype(np.int64))
    n_columns = 1 << bits
    offset = np.cumsum(n_columns) - n_columns
    weight = np.zeros(n_columns.sum(), np.int64)
    weight[(offset[table] + value - first[table])[keep]] = fixed[keep]
    owner = np.repeat(np.arange(len(rates)), n_columns)
    capacity = (np.int64(1) << (32 - bits))[owner]
    threshold, alias = _balance(weight, capacity)
    alias -= offset[owner]
    # A full column cannot say "always": its threshold has one bit too many. It aliases itself instead.
    column = np.arange(len(weight)) - offset[owner]
    full = threshold == capacity
    threshold, alias = np.where(full, 0, threshold), np.where(full, column, alias)
    words = ((threshold << bits[owner]) | alias).astype(np.uint32)
    return PoissonTables(bits, offset, first, words)


def category_tables(count: Int, table: Int) -> NDArray[np.uint64]:
    """(G,) words threshold << 32 | alias of alias tables laid end to end, each proportional to its part of ``count``.

    ``table`` (G,) ascending, from 0, says which table a column is of; aliases are columns of their own table.
    """
    n_columns = np.bincount(table)
    total = np.bincount(table, count).astype(np.int64)[table]
    threshold, alias = _balance(count * n_columns[table], total)
    alias -= (np.cumsum(n_columns) - n_columns)[table]
    column = np.arange(len(count)) - (np.cumsum(n_columns) - n_columns)[table]
    full = threshold == total
    alias = np.where(full, column, alias)
    fraction = np.where(full, 0, np.floor(threshold / np.maximum(total, 1) * 2.0**32)).astype(np.uint64)
    return (fraction << np.uint64(32)) | alias.astype(np.uint64)
