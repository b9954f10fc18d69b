"""Sums over the pairs of models whose scores differ by less than each of several gaps, in every resample."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Float, as_leaf
from jaxeval.evaluators.model_scores import ModelScores
from jaxeval.evaluators.resamples import Resampling, drawn_counts, resampled, run_lanes
from jaxeval.execution.precision import double_precision
from jaxeval.execution.runs import digest_of
from jaxeval.execution.shapes import Step, padded, power_of_two
from jaxeval.kernels import batch, rank_agreement
from jaxeval.resampling.units import pad

_ROUNDING = 1e-9  # differences of decimal numbers are exact to about this share of them
_EXACT = 2**24  # whole numbers under this have no rounding in single precision
_COLUMNS = 2**24  # directions of pairs held at a time
_PAIRS = 256  # of a block: so few that their weights stay in the cache, so many that little of a block is padding


def resampled_delta_sums(scores: ModelScores, deltas: Float, settings: Resampling) -> rank_agreement.PairSums:
    """(1 + B, E, D) sums over the pairs under each of ``deltas`` (D,): of the data, then of the resamples."""
    e, m = scores.scores.shape
    # Two decimal numbers may differ by exactly delta: rounding must not bring their difference under it.
    deltas = np.where(np.isinf(deltas), deltas, deltas * (1 - _ROUNDING))
    if settings.resample != "models":
        return resampled(rank_agreement.delta_sums, scores, (deltas,), settings, 4 * m * m)
    (counts,) = drawn_counts(scores, settings)
    part = max(1, _COLUMNS // max(len(deltas) * m * m // 2, 1))
    parts = []
    for start in range(0, e, part):
        own = scores.scores[start : start + part]
        pairs = delta_pairs(own, scores.gold, deltas, counts.shape[1])
        with double_precision():
            pairs = jax.device_put(pairs)
        program = partial(batch.delta_sums, pairs)
        section = f"deltas-{digest_of((deltas, scores.scores))}-{start}"
        size = _PAIRS + 3 * len(pairs.end) + 2 * pairs.order.shape[1]
        found = run_lanes(program, counts, size, scores.gold, settings, section)
        n = len(own) * len(deltas)
        parts.append(jax.tree.map(lambda x: x[:, :n].reshape(len(x), -1, len(deltas)), found))  # noqa: B023
    return jax.tree.map(lambda *x: np.concatenate(x, axis=1), *parts)


def pair_type(n_models: int) -> type:
    """float32 where sums are exact in it, else float64: all pairs of M drawn models weigh at most M^2 / 2 together."""
    return np.float32 if n_models**2 / 2 < _EXACT else np.float64


def delta_pairs(scores: Float, gold: Float, deltas: Float, width: int) -> rank_agreement.DeltaPairs:
    """The pairs of ``scores`` (E, M) under each of ``deltas`` (D,), as the kernel takes them.

    Models have ``width`` slots, the last of which is empty.
    """
    e, m = scores.shape
    dtype = pair_type(m)
    first, second = np.triu_indices(m, 1)
    gap = scores[:, first] - scores[:, second]
    near = np.abs(gap)[:, None] < deltas[:, None]  # False for NaN
    gold_order = np.sign(gold[first] - gold[second])
    agree = np.nan_to_num(np.sign(gap) * gold_order).astype(np.int8)
    direction = (near * agree[:, None]).reshape(e * len(deltas), -1)
    level = np.flatnonzero(gold_order == 0)
    used = np.flatnonzero((near.any(1) & (agree != 0)).any(0))

    size, slots = padded(len(direction), Step.PAIR_ROWS), padded(m, Step.MODELS)
    most = -(-slots * (slots - 1) // (2 * _PAIRS))

    def blocks(pairs: NDArray[np.intp], rows: NDArray[Any], n_blocks: int) -> rank_agreement.PairBlocks:
        shape = n_blocks, _PAIRS
        sign = pad(rows[:, pairs], (size, n_blocks * _PAIRS)).reshape(size, *shape).swapaxes(0, 1)
        return rank_agreement.PairBlocks(
            first=as_leaf(pad(first[pairs], (n_blocks * _PAIRS,)).reshape(shape), np.int32),
            second=as_leaf(pad(second[pairs], (n_blocks * _PAIRS,)).reshape(shape), np.int32),
            sign=as_leaf(sign, dtype),
            n_blocks=as_leaf(-(-len(pairs) // _PAIRS), np.int32),
        )

    n_ends = 1 + len(deltas)
    order = np.full((size, slots), width - 1, np.int32)
    end = np.ones((2 * size, slots), np.int32)
    for k, own in enumerate(scores):
        there = np.flatnonzero(~np.isnan(own))
        place = there[np.argsort(own[there], kind="stable")]
        order[k, : len(place)] = place
        gaps = own[place] - own[place][:, None]  # rises along a row, so a count says where the pairs under a gap end
        for d, inside in enumerate([gaps <= 0, *(gaps < delta for delta in deltas)]):
            end[k * n_ends + d, : len(place)] = inside.sum(1)
    row = np.arange(e * len(deltas))
    ties, gap = row // len(deltas) * n_ends, row // len(deltas) * n_ends + 1 + row % len(deltas)
    return rank_agreement.DeltaPairs(
        ordered=blocks(used, direction, most),
        tied=blocks(level, near.reshape(direction.shape), min(most, power_of_two(-(-len(level) // _PAIRS)))),
        n_evaluators=as_leaf(e, np.int32),
        n_ends=as_leaf(n_ends, np.int32),
        order=as_leaf(order, np.int32),
        end=as_leaf(end, np.int32),
        end_of_ties=as_leaf(pad(ties, (size,)), np.int32),
        end_of_gap=as_leaf(pad(gap, (size,)), np.int32),
    )
