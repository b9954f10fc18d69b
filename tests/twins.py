"""Naive float64 NumPy twins of the fast code, one definition each; slow, plain, and kept to test against."""

from fractions import Fraction
from math import ceil

import numpy as np
from scipy.special import expit
from scipy.stats import norm

#: Smallest p-value that a fixed-seed test of fit may have: that of five standard errors.
FIVE_SE = 2 * norm.sf(5)

MASK = 2**64 - 1
IDENTIFIED, ABOVE, BELOW, INCOMPARABLE = range(4)


# Random words, in integers of any size.


def stream_key(*parts):
    """Odd key of SplitMix64 finalisers chained over ``parts``."""
    key, golden = 0, 0x9E3779B97F4A7C15
    for part in parts:
        x = (key * golden + part + golden) & MASK
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
        key = x ^ (x >> 31)
    return key | 1


def squares32(counter, key):
    """Four rounds of arXiv:2004.06278."""
    x = y = counter * key & MASK
    z = y + key & MASK
    for add in (y, z, y):
        x = x * x + add & MASK
        x = (x >> 32) | (x << 32 & MASK)
    return (x * x + z & MASK) >> 32


def squares64(counter, key):
    """Five rounds of arXiv:2004.06278."""
    x = y = counter * key & MASK
    z = y + key & MASK
    for add in (y, z, y, z):
        t = x = x * x + add & MASK
        x = (x >> 32) | (x << 32 & MASK)
    return t ^ ((x * x + y & MASK) >> 32)


# Bradley-Terry: (M, M) wins, sum of weight * target of the row against the column.


def log_likelihood(theta, wins, ridge=0.0):
    total = -ridge * sum(t**2 for t in theta)
    for i, j in np.argwhere(wins):
        total -= wins[i, j] * np.logaddexp(0, theta[j] - theta[i])
    return total


def gradient(theta, wins, ridge=0.0):
    grad = -2 * ridge * np.asarray(theta)
    for i, j in np.argwhere(wins):
        surprise = wins[i, j] * expit(theta[j] - theta[i])
        grad[i] += surprise
        grad[j] -= surprise
    return grad


def information(theta, wins, ridge=0.0):
    """(M, M) negative Hessian."""
    result = 2 * ridge * np.eye(len(theta))
    for i, j in np.argwhere(wins):
        v = wins[i, j] * expit(theta[i] - theta[j]) * expit(theta[j] - theta[i])
        result[[i, j], [i, j]] += v
        result[[i, j], [j, i]] -= v
    return result


def newton(wins, ridge=0.0):
    """(M,) log-strengths of mean zero that maximise the likelihood; 0 for models without battles."""
    theta, last = np.zeros(len(wins)), np.inf
    for _ in range(100):
        step = np.linalg.pinv(information(theta, wins, ridge), hermitian=True) @ gradient(theta, wins, ridge)
        size = np.abs(step).max()
        if size < 1e-13 or last <= size < 1e-6:  # rounding is left
            return theta
        last = size
        while np.abs(step).max() > 1e-6 and log_likelihood(theta + step, wins, ridge) < log_likelihood(
            theta, wins, ridge
        ):
            step = step / 2
        theta = theta + step
    raise AssertionError("the naive Newton iteration did not converge")


# Graphs.


def closure(edge):
    """(M, M) whether a path leads from the row to the column, every node reaching itself (Warshall 1962)."""
    reach = np.asarray(edge, bool) | np.eye(len(edge), dtype=bool)
    for k in range(len(reach)):
        reach |= reach[:, k, None] & reach[k]
    return reach


def standing(n, wins, weight=None):
    """(M,) standing of every model next to the group of most ``weight`` (battles); without one, next to all others."""
    m = len(n)
    weight = n.sum(1) if weight is None else weight
    reach = closure(wins > 0)
    groups = {tuple(np.flatnonzero(reach[i] & reach[:, i])) for i in range(m)}
    groups = sorted((-weight[list(g)].sum(), g) for g in groups if len(g) > 1 and weight[list(g)].any())
    if not groups:
        lost, took = (wins > 0).any(0), (wins > 0).any(1)
        return np.where(~(lost | took) | (lost & took), INCOMPARABLE, np.where(took, ABOVE, BELOW))
    member = groups[0][1][0]
    kinds = {(True, True): IDENTIFIED, (True, False): ABOVE, (False, True): BELOW, (False, False): INCOMPARABLE}
    return np.array([kinds[bool(reach[i, member]), bool(reach[member, i])] for i in range(m)])


# Draws.


def quantile(values, q):
    """Linear interpolation between the order statistics of ``values`` that are not NaN; NaN if none is left."""
    ordered = sorted(v for v in values if not np.isnan(v))
    if not ordered:
        return np.nan
    position = q * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    below, above = ordered[low], ordered[high]
    share = position - low
    if share == 0 or below == above:
        return below
    if np.isinf(below):
        return below if np.isfinite(above) else np.nan
    return below + share * (above - below)


def beat_share(draws):
    m = draws.shape[1]
    share = np.full((m, m), np.nan)
    for i in range(m):
        for j in range(m):
            points = [1.0 if a > b else 0.5 if a == b else 0.0 for a, b in draws[:, [i, j]] if a == a and b == b]
            if i != j and points:
                share[i, j] = np.mean(points)
    return share


def rank_at_most_share(draws, k):
    """A model tied with t - 1 others below a higher ones has the places a + 1 .. a + t with equal chances."""
    shares = []
    for i in range(draws.shape[1]):
        inside = []
        for row in draws[~np.isnan(draws[:, i])]:
            higher, tied = sum(row > row[i]), sum(row == row[i])
            inside.append(min(max(k - higher, 0), tied) / tied)
        shares.append(np.mean(inside) if inside else np.nan)
    return np.array(shares)


def simultaneous_halfwidth(draws, estimate, level):
    m = draws.shape[1]
    error = np.array([[np.std(draws[:, i] - draws[:, j], ddof=1) for j in range(m)] for i in range(m)])
    largest = []
    for row in draws - estimate:
        largest.append(max([abs(row[i] - row[j]) / error[i, j] for i in range(m) for j in range(i)], default=0.0))
    critical = sorted(largest)[ceil(Fraction(str(level)) * len(draws)) - 1]
    return critical * error
