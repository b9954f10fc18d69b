"""Statistics of one's own: `draws_of` beside the same statistic in a loop of NumPy, and beside SciPy's bootstrap.

    python benchmarks/draws_of.py
    python benchmarks/draws_of.py --resamples 500   # a quick look: nothing is written

Each statistic is computed for every column, and its errors are compared. Loops are timed for a part of the resamples,
of which the seconds of all follow. SciPy's bootstrap gets the statistic vectorised, in batches that fit the cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from harness import asked_sizes, first_and_later, save
from numpy.typing import NDArray

from jaxeval import draws_of

Array = NDArray[np.float64]
FULL = (10_000, 1_000, 20)
_LOOPED = 50  # parts of the resamples that a loop is timed for


class Case(NamedTuple):
    """One statistic in two forms."""

    weighted: Callable[..., Any]
    of_rows: Callable[[Array], Array]  # of the rows of a resample, with a leading axis for SciPy's batches
    data: Callable[[Array], Array] = lambda x: x


def mean(weights: jax.Array, x: jax.Array) -> jax.Array:
    """Means."""
    return weights @ x / weights.sum()


def trimmed_mean(weights: jax.Array, x: jax.Array, share: float = 0.1) -> jax.Array:
    """Means without the largest and the smallest tenth: one pass over the sorted rows, in all resamples at once."""
    order = jnp.argsort(x, axis=0)
    x, weights = jnp.take_along_axis(x, order, 0), weights / weights.sum()

    def add(sums: tuple[jax.Array, jax.Array], row: tuple[jax.Array, jax.Array]) -> tuple[Any, None]:
        upto = sums[0] + weights[row[0]]
        return (upto, sums[1] + jnp.clip(upto, share, 1 - share) * row[1]), None

    none = jnp.zeros(x.shape[1])
    (_, below), _ = jax.lax.scan(add, (none, none), (order[:-1], jnp.diff(x, axis=0)))
    return ((1 - share) * x[-1] - share * x[0] - below) / (1 - 2 * share)


def correlation(weights: jax.Array, x: jax.Array) -> jax.Array:
    """Correlations of all columns with the first, from sums of products: each is one product of matrices."""
    x = x - x.mean(0)  # of all rows: only rounding depends on it
    mean, square, cross = (weights @ y / weights.sum() for y in (x, x**2, x * x[:, :1]))
    variance = square - mean**2
    return (cross - mean * mean[0]) / jnp.sqrt(variance * variance[0])


def correlation_of_rows(x: Array) -> Array:
    """The same of the rows that were drawn."""
    away = x - x.mean(-2, keepdims=True)
    cross = np.swapaxes(away, -1, -2) @ away
    diagonal = np.diagonal(cross, axis1=-2, axis2=-1)
    return cross[..., 0, :] / np.sqrt(diagonal[..., :1] * diagonal)


def slope(weights: jax.Array, x: jax.Array) -> jax.Array:
    """Logistic slopes of right answers, in each column, over the first column."""
    design = jnp.stack([jnp.ones(len(x)), x[:, 0]], 1)
    right = (x > 0.5).astype(float)

    def newton(_: int, b: jax.Array) -> jax.Array:
        p = jax.nn.sigmoid(design @ b)
        weight = weights[:, None] * p * (1 - p)
        information = jnp.einsum("nc,ne,nm->mce", design, design, weight)
        gradient = design.T @ (weights[:, None] * (right - p))
        return b + jnp.linalg.solve(information, gradient.T[:, :, None])[:, :, 0].T

    return jax.lax.fori_loop(0, 8, newton, jnp.zeros((2, x.shape[1])))[1]


def slope_of_rows(x: Array) -> Array:
    """The same of the rows that were drawn."""
    design = np.stack([np.ones(len(x)), x[:, 0]], 1)
    right, b = (x > 0.5).astype(float), np.zeros((2, x.shape[1]))
    for _ in range(8):
        p = scipy.special.expit(design @ b)
        weight = p * (1 - p)
        information = np.einsum("nc,ne,nm->mce", design, design, weight, optimize=True)
        b = b + np.linalg.solve(information, (design.T @ (right - p)).T[:, :, None])[:, :, 0].T
    return b[1]


CASES = {
    "mean": Case(mean, partial(np.mean, axis=-2)),
    "trimmed mean": Case(trimmed_mean, lambda x: scipy.stats.trim_mean(x, 0.1, axis=-2)),
    "correlation": Case(correlation, correlation_of_rows),
    "logistic slope": Case(slope, slope_of_rows),
}


class Clocks:
    """Seconds of the wall and of the processor that a block takes; the latter do not count other work."""

    def __enter__(self) -> Clocks:
        self.start = np.array([time.perf_counter(), time.process_time()])
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = np.array([time.perf_counter(), time.process_time()]) - self.start


def by_loop(of_rows: Callable[[Array], Array], x: Array, n_resamples: int) -> tuple[Array, Array]:
    """Seconds (wall, processor) of a loop over resamples, and the errors that it gives."""
    rng, n = np.random.default_rng(0), len(x)
    with Clocks() as clocks:
        draws = np.stack([of_rows(x[rng.integers(0, n, n)]) for _ in range(n_resamples)])
    return clocks.seconds, draws.std(0, ddof=1)


def by_scipy(of_rows: Callable[[Array], Array], x: Array, n_resamples: int) -> Array | None:
    """Seconds of SciPy's bootstrap; None for a statistic that takes one resample at a time."""

    def statistic(rows: Array, axis: int) -> Array:
        found = of_rows(x[np.moveaxis(rows, axis, -1)])
        return np.moveaxis(found, 0, -1) if rows.ndim > 1 else found  # SciPy joins batches along the last axis

    if of_rows is slope_of_rows:
        return None
    with Clocks() as clocks:
        scipy.stats.bootstrap(
            (np.arange(len(x)),), statistic, n_resamples=n_resamples, batch=20, method="percentile", vectorized=True
        )
    return clocks.seconds


def run(n_resamples: int, n_rows: int, n_columns: int) -> dict[str, Any]:
    """All statistics."""
    x = np.random.default_rng(0).standard_t(4, size=(n_rows, n_columns))
    x[:, 1:] += 0.5 * x[:, :1]
    found: dict[str, Any] = {}
    for name, case in CASES.items():
        call = partial(draws_of, case.weighted, x, n_resamples=n_resamples, progress=False)
        draws, first, later = first_and_later(call, 3)
        with Clocks() as clocks:
            call()
        of_processor = clocks.seconds[1]
        part = max(n_resamples // _LOOPED, 2)
        loop, errors = by_loop(case.of_rows, x, part)
        scipys = by_scipy(case.of_rows, x, part)
        times = n_resamples / part
        apart = np.abs(draws.standard_errors.to_numpy() / np.where(errors > 0, errors, np.nan) - 1)
        found[name] = {
            "first_call_seconds": first,
            "seconds": later,
            "processor_seconds": of_processor,
            "loop_seconds": loop[0] * times,
            "loop_ratio": loop[0] * times / later["median"],
            "loop_processor_ratio": loop[1] * times / of_processor,
            "scipy_seconds": None if scipys is None else scipys[0] * times,
            "scipy_ratio": None if scipys is None else scipys[0] * times / later["median"],
            "scipy_processor_ratio": None if scipys is None else scipys[1] * times / of_processor,
            "errors_apart": float(np.nanmax(apart)),
        }
        print(name, found[name])
    return found


def main() -> None:
    """Run, and save a full run."""
    asked = asked_sizes(__doc__, resamples=FULL[0], rows=FULL[1], columns=FULL[2])
    sizes = asked.resamples, asked.rows, asked.columns
    statistics = run(*sizes)
    if sizes == FULL:
        named = dict(zip(("resamples", "rows", "columns"), FULL, strict=True))
        save("draws_of", {"sizes": named, "statistics": statistics})


if __name__ == "__main__":
    main()
