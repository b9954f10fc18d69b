"""Distributions of a few values, without SciPy: its special functions take longer to import than a comparison takes.

Functions have the names, arguments and values of those of `scipy.special`, which computes arrays of more than `FEW`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any

import numpy as np

from jaxeval.lazy_names import scipy

#: Values of a call that are computed here. A quantile takes .1 to .4 ms, another value 20 microseconds, and the import
#: of SciPy's functions .15 s: as much as some six calls of so many quantiles, which is more than a small command makes.
FEW = 64
_SMALLEST_SHAPE = 1e-100
#: Terms of binomial sums that are added one by one.
_FEW_TERMS, _FEW_TRIALS = 30, 1000
_FAR = 1e150  # a quantile whose square may overflow: Student's, of a few hundredths of a degree of freedom
_MANY = 1e8  # degrees of freedom, from which on the next term of an expansion in 1 / dof is lost in rounding


def _of_few(own: Callable[..., float], of_many: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Apply a function of numbers to few of them, broadcast; SciPy's of its name, or another, to more."""
    once = lru_cache(own)  # intervals of many rows often ask for the same few values

    @wraps(own)
    def function(*values: Any) -> Any:
        shape = np.broadcast_shapes(*map(np.shape, values))
        if math.prod(shape) > FEW:
            return (of_many or getattr(scipy.special, own.__name__))(*map(np.asarray, values))
        rows = zip(*(np.broadcast_to(x, shape).ravel().tolist() for x in values), strict=True)
        found = [math.nan if any(x != x for x in row) else once(*row) for row in rows]
        return np.array(found, float).reshape(shape)[()]

    return function


def _stirling_error(n: float) -> float:
    """Give log(n!) less Stirling's approximation of it."""
    if n < 15:
        return math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - 0.5 * math.log(2 * math.pi)
    s = 1 / n**2
    return (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s / 1188)))) / n


def _deviance(x: float, mean: float, apart: float) -> float:
    """Give x log(x / mean) + mean - x, exactly also where both are near each other: ``apart`` is x - mean."""
    if abs(apart) >= 0.1 * (x + mean):
        return x * math.log(x / mean) - apart
    v = apart / (x + mean)
    total, term, k = apart * v, 2 * x * v, 1
    while True:
        term *= v * v
        k += 2
        if (more := total + term / k) == total:
            return total
        total = more


def _density(a: float, b: float, x: float, y: float) -> float:
    """Give x^a y^b / B(a, b), with y = 1 - x, by saddle-point expansion (Loader 2000)."""
    n, apart = a + b, a * y - b * x
    log = _stirling_error(n) - _stirling_error(a) - _stirling_error(b)
    log -= _deviance(a, n * x, apart) + _deviance(b, n * y, -apart)
    return math.exp(log) * math.sqrt(a * b / (2 * math.pi * n))


def _shares(a: float, b: float, x: float, y: float) -> tuple[float, float]:
    """Give the incomplete beta function at x, and 1 less it, with y = 1 - x; the smaller one is exact.

    By the continued fraction of Didonato and Morris (1992, DOI 10.1145/131766.131776), which subtracts no like numbers.
    """
    if x <= 0 or y <= 0:
        return (0.0, 1.0) if x <= 0 else (1.0, 0.0)
    apart = a * y - b * x
    if apart < 0:
        return _shares(b, a, y, x)[::-1]
    c = 1 + apart
    over, under, over_before, under_before = 1.0, c / (1 + 1 / a), 0.0, 1.0  # of the fraction and the one before
    share, before, n = over / under, 0.0, 0
    while abs(share - before) > 1e-16 * share and n < 100_000:
        n += 1
        w, s, p = n * (b - n) * x, a + 2 * n - 1, 1 + (n - 1) / a
        alpha = p * (p + b / a) * (a / s) ** 2 * w * x
        beta = n + w / s + (1 + n / a) / (1 + (1 + 2 * n) / a) * (c + n * (1 + y))
        over, over_before = alpha * over_before + beta * over, over
        under, under_before = alpha * under_before + beta * under, under
        before, share = share, over / under
        over, under, over_before, under_before = share, 1.0, over_before / under, under_before / under
    share = min(_density(a, b, x, y) * share, 1.0)
    return share, 1 - share


@_of_few
def betainc(a: float, b: float, x: float) -> float:
    """Give the incomplete beta function."""
    return _shares(a, b, x, 1 - x)[0]


def _root(tail: Callable[[float], tuple[float, float]], low: float, high: float, start: float) -> float:
    """Return where ``tail`` gives 0; it gives a rising value and its slope. Newton's steps stay between both ends."""
    x = start
    for _ in range(200):
        value, slope = tail(x)
        if value == 0:
            break
        low, high = (low, x) if value > 0 else (x, high)
        following = x - value / slope if slope > 0 else low
        if not low < following < high:
            following = (low + high) / 2
        if abs(following - x) <= 2e-16 * abs(x):
            break
        x = following
    return x


@_of_few
def ndtr(x: float) -> float:
    """Give the normal distribution."""
    return math.erfc(-x / math.sqrt(2)) / 2


@_of_few
def ndtri(p: float) -> float:
    """Give the normal quantile: from Hastings' approximation by Halley's steps."""
    tail = min(p, 1 - p)
    if not tail > 0:
        return math.copysign(math.inf, p - 0.5) if tail == 0 else math.nan
    t = math.sqrt(-2 * math.log(tail))
    x = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
    for _ in range(3):
        step = (math.erfc(x / math.sqrt(2)) / 2 - tail) * math.sqrt(2 * math.pi) * math.exp(x * x / 2)
        x += step / (1 - x * step / 2)
    return math.copysign(x, p - 0.5) if p != 0.5 else 0.0


def _binomial(k: float, n: float, p: float, q: float) -> float:
    if not 0 <= k < n:
        return float(k >= n)
    if k < _FEW_TERMS and n <= _FEW_TRIALS:
        return math.fsum(math.comb(int(n), i) * p**i * q ** (n - i) for i in range(int(k) + 1))
    return _shares(n - k, k + 1, q, p)[0]


def _of_beta(a: Any, b: Any, x: Any) -> Any:
    """Give the incomplete beta function, 1 where a is 0 and 0 where b is."""
    return np.where(a <= 0, 1.0, np.where(b <= 0, 0.0, scipy.special.betainc(np.maximum(a, 1), np.maximum(b, 1), x)))


#: The probabilities of k or fewer of n, and of more. SciPy's own of these names are exact to 1e-10 only.
bdtr = _of_few(lambda k, n, p: _binomial(k, n, p, 1 - p), lambda k, n, p: _of_beta(n - k, k + 1.0, 1 - p))
bdtrc = _of_few(lambda k, n, p: _binomial(n - k - 1, n, 1 - p, p), lambda k, n, p: _of_beta(k + 1.0, n - k, p))


def _student(dof: float, t: float) -> float:
    """Give the probability beyond t > 0."""
    if dof > _MANY:
        return math.erfc(t * (1 - 1 / (4 * dof)) / math.sqrt(2 + t * t / dof)) / 2
    return _shares(dof / 2, 0.5, dof / (dof + t * t), t * t / (dof + t * t))[0] / 2


@_of_few
def stdtr(dof: float, t: float) -> float:
    """Give Student's distribution."""
    beyond = _student(dof, abs(t)) if math.isfinite(t) else 0.0
    return beyond if t < 0 else 1 - beyond


@_of_few
@lru_cache(4096)
def stdtrit(dof: float, p: float) -> float:
    """Give Student's quantile. Tables ask for few of them many times."""
    tail = min(p, 1 - p)
    if not dof > 0:
        return math.nan
    if not 0 < tail < 0.5:
        return 0.0 if tail == 0.5 else math.copysign(math.inf, p - 0.5) if tail == 0 else math.nan

    z = abs(float(ndtri(tail)))
    near = z + (z**3 + z) / (4 * dof)  # from below
    if dof > _MANY:
        return math.copysign(near, p - 0.5)

    def above(t: float) -> tuple[float, float]:
        square = t * t
        return tail - _student(dof, t), _density(dof / 2, 0.5, dof / (dof + square), square / (dof + square)) / t

    while near < _FAR and above(2 * near)[0] < 0:
        near *= 2
    if near >= _FAR:
        return math.copysign(math.inf, p - 0.5)
    return math.copysign(_root(above, 0.0, 2 * near, near), p - 0.5)


@_of_few
def betaincinv(a: float, b: float, p: float) -> float:
    """Give the quantile of a beta distribution."""
    if min(a, b) < _SMALLEST_SHAPE or not 0 < p < 1:
        return 0.0 if (a <= b and p < 1) or p == 0 else 1.0

    def above(x: float) -> tuple[float, float]:
        below, beyond = _shares(a, b, x, 1 - x)
        return (below - p if p < 0.5 else 1 - p - beyond), _density(a, b, x, 1 - x) / (x * (1 - x))

    return _root(above, 0.0, 1.0, min(a / (a + b), 1 - 2.0**-53))
