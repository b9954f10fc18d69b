"""Sums over the pairs of models whose scores differ by less than each of several gaps, in every resample."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import as_leaf
from jaxeval.evaluators.model_scores import ModelScores
from jaxeval.evaluators.resamples import Resampling, drawn_counts, resampled, run_lanes
from jaxeval.execution.precision import double_precision
from jaxeval.execution.runs import digest_of
from jaxeval.execution.shapes import rounded
from jaxeval.kernels import batch, rank_agreement

Float = NDArray[np.float64]

_ROUNDING = 1e-9  # differences of decimal numbers are exact to about this share of them
_EXACT = 2**24  # whole numbers under this have no rounding in single precision
_COLUMNS = 2**24  # directions of pairs held at a time


def resampled_delta_sums(scores: ModelScores, deltas: Float, settings: Resampling) -> rank_agreement.PairSums:
    """(1 + B, E, D) sums over the pairs under each of ``deltas`` (D,): of the data, then of the resamples."""
    e, m = scores.scores.shape
    # Of decimal numbers that differ by exactly delta, rounding must not bring some under it.
    deltas = np.where(np.isinf(deltas), deltas, deltas * (1 - _ROUNDING))
    if settings.resample != "models":
        return resampled(rank_agreement.delta_sums, scores, (deltas,), settings, 4 * m * m)
    (counts,) = drawn_counts(scores, settings)
    part = max(1, _COLUMNS // max(len(deltas) * m * m // 2, 1))
    parts = []
    for start in range(0, e, part):
        pairs = delta_pairs(scores.scores[start : start + part], scores.gold, deltas, counts.shape[1])
        with double_precision():
            pairs = jax.device_put(pairs)

        program = partial(batch.delta_sums, pairs)
        section = f"deltas-{digest_of((deltas, scores.scores))}-{start}"
        parts.append(run_lanes(program, counts, len(pairs.first), scores.gold, settings, section))
    return jax.tree.map(lambda *x: np.concatenate(x, axis=1), *parts)


def pair_type(n_models: int) -> type:
    """Single precision where it is exact: all pairs of ``n_models`` drawn weigh at most half the square of that."""
    return np.float32 if n_models**2 / 2 < _EXACT else np.float64


def delta_pairs(scores: Float, gold: Float, deltas: Float, width: int) -> rank_agreement.DeltaPairs:
    """What the pairs of ``scores`` (E, M) are to ``deltas`` (D,), for models in ``width`` slots."""
    e, m = scores.shape
    dtype = pair_type(m)
    first, second = np.triu_indices(m, 1)
    gap = scores[:, first] - scores[:, second]
    near = np.abs(gap)[:, None] < deltas[:, None]  # NaN is not
    gold_order = np.sign(gold[first] - gold[second])
    agree = np.nan_to_num(np.sign(gap) * gold_order).astype(np.int8)
    direction = (near * agree[:, None]).reshape(e * len(deltas), -1)
    level = np.flatnonzero(gold_order == 0)
    used = np.flatnonzero((near.any(1) & (agree != 0)).any(0))

    def padded(x: NDArray[Any], rows: NDArray[np.intp], kind: type) -> Any:
        """``x`` (..., P) at ``rows``, filled up: similar tables share compilations."""
        fill = rounded(max(len(rows), 1)) - len(rows)
        return as_leaf(np.pad(x[..., rows], [(0, 0)] * (x.ndim - 1) + [(0, fill)]), kind)

    order = np.full((e, width), width - 1, np.int32)
    end = np.ones((e, 1 + len(deltas), width), np.int32)
    for k, own in enumerate(scores):
        there = np.flatnonzero(~np.isnan(own))
        place = there[np.argsort(own[there], kind="stable")]
        order[k, : len(place)] = place
        gaps = own[place] - own[place][:, None]  # rises along a row: counting says where it ends
        for d, inside in enumerate([gaps <= 0, *(gaps < delta for delta in deltas)]):
            end[k, d, : len(place)] = inside.sum(1)
    return rank_agreement.DeltaPairs(
        first=padded(first, used, np.int32),
        second=padded(second, used, np.int32),
        direction=padded(direction, used, dtype),
        tied_first=padded(first, level, np.int32),
        tied_second=padded(second, level, np.int32),
        tied=padded(near.reshape(direction.shape), level, dtype),
        order=as_leaf(order, np.int32),
        end=as_leaf(end, np.int32),
    )
