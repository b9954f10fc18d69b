"""The bootstrap over items: every resample's sums of many columns in one batched call."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pandas as pd
from jax.sharding import Mesh
from numpy.typing import NDArray

from jaxeval.kernels import batch
from jaxeval.kernels.resample import Tally
from jaxeval.precision import double_precision
from jaxeval.progress import Advance
from jaxeval.resampling import make_units, rounded, shortfall_of, stream_number, top_up_size_of

Float = NDArray[np.float64]

_TALLY = Tally(None, 0)
_CHUNK_WORDS = {"cpu": 2**18}  # lanes x units that fit the cache of a core
_ACCELERATOR_WORDS = 2**26
_MOST_LANES = 512
_CALL_LANES = 4096  # between two steps of the progress bar


def resampled_sums(
    columns: Float,
    n_resamples: int,
    seed: int,
    stream: str,
    advance: Advance = lambda n: None,
    subsets: NDArray[np.intp] | None = None,
    chunk_size: int | None = None,
) -> Float:
    """(B, K) column sums of resamples of the N rows (items) of ``columns`` (N, K).

    Resample r draws N rows with replacement, as a function of (seed, stream, r) and the set of rows alone: not of
    their order, of B, of the chunks or of the devices.

    Args:
        subsets: (H, n) row numbers: resample r draws n rows of subset r mod H instead.
    """
    values, inverse = _distinct_columns(columns)
    pattern = _pattern(values)
    first = np.unique(pattern, return_index=True)[1]
    counts = [np.bincount(pattern[rows], minlength=len(first)) for rows in _sets(subsets, len(columns))]
    width = rounded(len(first))
    n_drawn = int(counts[0].sum())
    shortfall = shortfall_of(n_drawn)
    padded = np.zeros((width, -(-values.shape[1] // 8) * 8))
    padded[: len(first), : values.shape[1]] = values[first]
    units = [make_units(np.pad(count, (0, width - len(first)))[None], _TALLY, shortfall) for count in counts]
    stacked = _stacked(units)
    numbers = _numbers(n_resamples, len(counts))
    lanes = chunk_size or _chunk_size(numbers.shape[1], width)
    mesh = Mesh(np.array(jax.local_devices()), ("lanes",))
    per_call = max(_CALL_LANES // lanes, 1) * lanes * mesh.size
    sums = np.empty((*numbers.shape, padded.shape[1]))
    streams = np.full(len(counts), stream_number(stream), np.uint64)
    for start in range(0, numbers.shape[1], per_call):
        part = numbers[:, start : start + per_call]
        n_chunks = -(-part.shape[1] // (lanes * mesh.size))
        filled = np.pad(part, [(0, 0), (0, n_chunks * lanes * mesh.size - part.shape[1])], mode="edge")
        shaped = filled.reshape(len(counts), mesh.size, n_chunks, lanes).transpose(1, 0, 2, 3)
        with double_precision():
            found = np.asarray(
                batch.item_sums(stacked, padded, mesh, np.uint64(seed), streams, shaped, top_up_size_of(shortfall))
            )
        found = found.transpose(1, 0, 2, 3, 4).reshape(len(counts), -1, padded.shape[1])
        sums[:, start : start + per_call] = found[:, : part.shape[1]]
        advance(part.size)
    # Resample r is the (r // H)-th of subset r mod H.
    return sums.transpose(1, 0, 2).reshape(-1, padded.shape[1])[:n_resamples][:, inverse]


def halves(n: int, n_halves: int, seed: int) -> NDArray[np.intp]:
    """(H, n // 2) sorted row numbers of random halves of n rows."""
    rng = np.random.default_rng([seed, n, 2])
    return np.stack([np.sort(rng.permutation(n)[: n // 2]) for _ in range(n_halves)])


def _sets(subsets: NDArray[np.intp] | None, n: int) -> NDArray[np.intp]:
    return np.arange(n)[None] if subsets is None else subsets


def _numbers(n_resamples: int, n_sets: int) -> NDArray[np.int64]:
    """(P, R) numbers of the resamples of each set; the last column may go beyond B."""
    per_set = -(-n_resamples // n_sets)
    return np.arange(per_set * n_sets).reshape(per_set, n_sets).T


def _distinct_columns(columns: Float) -> tuple[Float, NDArray[np.intp]]:
    """(N, D) distinct columns and, for each of the K, which of them it is: binary judgments are their own squares."""
    seen: dict[bytes, int] = {}
    inverse = np.array([seen.setdefault(column.tobytes(), len(seen)) for column in np.ascontiguousarray(columns.T)])
    return columns[:, np.unique(inverse, return_index=True)[1]], inverse


def _pattern(values: Float) -> NDArray[np.int64]:
    """(N,) number of each row among the distinct rows, which are in the order of their values."""
    number = np.zeros(len(values), np.int64)
    for column in values.T:
        codes, levels = pd.factorize(column, sort=True)
        number, _ = pd.factorize(number * len(levels) + codes, sort=True)
    return number


def _chunk_size(n_lanes: int, width: int) -> int:
    """Lanes of a chunk, a multiple of 8, which XLA vectorises best."""
    words = _CHUNK_WORDS.get(jax.default_backend(), _ACCELERATOR_WORDS)
    most = int(np.clip(words // width, 8, _MOST_LANES)) // 8 * 8
    return min(most, -(-n_lanes // 8) * 8)


def _stacked(units: list[Any]) -> Any:
    def stack(*leaves: NDArray[Any]) -> NDArray[Any]:
        longest = max(np.shape(leaf)[-1] if np.ndim(leaf) else 0 for leaf in leaves)
        return np.stack([np.pad(x, (0, longest - len(x))) if np.ndim(x) == 1 else x for x in leaves])

    return jax.tree.map(stack, *units)
