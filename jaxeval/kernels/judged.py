"""Judged battles of one set, and their sums over pairs."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


class Judged(NamedTuple):
    """Judged battles compressed to cells, each of a pair (lower model first) and a label; stacked, a leading axis S."""

    pair: Array  # (C,) int32 sorted
    label: Array  # (C,) int32
    battles: Array  # (C,) how many
    level: Array  # (U,) score difference of each label, first minus second model
    fitting: Array  # (U,) weight of a battle in the temperature's likelihood
    wins: Array  # (U,) that weight times the human target
    position: Array  # (M, M) int32: the pair of (i, j) and (j, i); the last, an empty one, if they never met
    own: Array  # (F, Q) int32: the cells of each fold's model; C where there are fewer


def pair_sums(judged: Judged, per_label: Array, n_pairs: int) -> Array:
    """(M, M) sums of ``per_label`` (U,) over the cells of every pair, symmetric."""
    per_cell = judged.battles * per_label[judged.label]
    per_pair = jax.ops.segment_sum(per_cell, judged.pair, n_pairs, indices_are_sorted=True)
    return per_pair[judged.position]


def pair_wins(judged: Judged, per_label: Array, n: Array, n_pairs: int) -> Array:
    """(M, M) wins of the row against the column, ``per_label`` (U,) being those of the pair's first model."""
    first = pair_sums(judged, per_label, n_pairs)
    i = jnp.arange(len(n))
    return jnp.where(i[:, None] < i, first, n - first)
