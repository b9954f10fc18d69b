"""Agreement of many rankings with one gold ranking, over all pairs of models and over close ones (Kendall's tau-b).

Lanes L are rankings of the same M models; they lie on the last axis, which CPUs and accelerators vectorise.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

# Gold scores that differ by no more are equal, logits: ten times what a refit leaves.
_GOLD_TIE = 1e-7
# Scores that differ by no more are equal, and a gap that falls short of a margin by no more is not under it, by the
# rounding of percentages.
_SCORE_TIE = 1e-9
_FIELD = 2.0**17


class Agreement(NamedTuple):
    """Sums over pairs of models; a pair counts if both have scores and the gold ranking compares them."""

    surplus: Array  # concordant pairs less discordant ones
    pairs: Array
    ordered: Array  # pairs that the scores do not tie
    gold_ordered: Array  # pairs that the gold scores do not tie


def tau_b(sums: Agreement) -> Array:
    """(P - Q) / sqrt((P + Q + T) (P + Q + U)) (DOI 10.1093/biomet/33.3.239); NaN where no pair is ordered by both."""
    product = sums.ordered * sums.gold_ordered
    return jnp.where(product > 0, sums.surplus / jnp.sqrt(jnp.where(product > 0, product, 1.0)), jnp.nan)


def misordered(sums: Agreement) -> Array:
    """Share of the pairs in the wrong order, a tie counting half; NaN without pairs."""
    return jnp.where(sums.pairs > 0, 0.5 - 0.5 * sums.surplus / jnp.where(sums.pairs > 0, sums.pairs, 1.0), jnp.nan)


def _signs(gap: Array, gold_gap: Array) -> tuple[Array, Array, Array]:
    """|gap| (M, L), infinite where not compared, and the signs of both gaps, 0 for equals; ``gold_gap`` is (M,).

    Of two infinite gold scores the gap is NaN, as of a missing one: nothing compares them.
    """
    width = jnp.where(jnp.isnan(gold_gap)[:, None] | jnp.isnan(gap), jnp.inf, jnp.abs(gap))
    sign = jnp.where(width > _SCORE_TIE, jnp.sign(gap), 0.0)
    gold_sign = jnp.where(jnp.abs(gold_gap) > _GOLD_TIE, jnp.sign(gold_gap), 0.0)
    return width, sign, gold_sign[:, None]


def _word(sign: Array, gold_sign: Array) -> Array:
    """A pair as a number that adds up: signed agreement, one pair, and whether gold ties it, 17 bits apart.

    Numbers as wide as those that are compared vectorise best.
    """
    return sign * gold_sign + (_FIELD + jnp.where(gold_sign == 0, _FIELD**2, 0.0))


def _sums(words: Array, tied: Array) -> Agreement:
    """From (..., M, L) sums of words, and of ties of the scores."""
    gold_tied = jnp.round(words / _FIELD**2)
    rest = words - _FIELD**2 * gold_tied
    pairs = jnp.round(rest / _FIELD)
    surplus, pairs, gold_tied, tied = (jnp.sum(x, -2) for x in (rest - _FIELD * pairs, pairs, gold_tied, tied))
    return Agreement(surplus, pairs, pairs - tied, pairs - gold_tied)


def agreement(scores: Array, gold: Array, deltas: Array) -> Agreement:
    """Sums (D, L) of the pairs whose ``scores`` (M, L) differ by less than each of ``deltas`` (D,) > 0.

    A model is left out of a ranking where its score is NaN. ``gold`` (M,) are log-strengths; of infinite ones of the
    same sign and of NaN nothing is known.
    """
    m = gold.shape[0]
    margins = jnp.where(jnp.isinf(deltas), jnp.finfo(scores.dtype).max, deltas - _SCORE_TIE)
    twice, gold_twice = jnp.concatenate([scores, scores]), jnp.concatenate([gold, gold])
    first_half = jnp.arange(m) < m // 2

    def shifted(s: Array, state: tuple[tuple[Array, ...], Array]) -> tuple[tuple[Array, ...], Array]:
        """All pairs of a model and the s-th after it, around the end: each once for s up to M / 2."""
        words, tied = state
        once = jnp.where((2 * s < m) | first_half, gold, jnp.nan)
        gold_gap = once - lax.dynamic_slice_in_dim(gold_twice, s, m)
        width, sign, gold_sign = _signs(scores - lax.dynamic_slice_in_dim(twice, s, m), gold_gap)
        one = _word(sign, gold_sign)
        words = tuple(word + jnp.where(width < margin, one, 0.0) for word, margin in zip(words, margins, strict=True))
        return words, tied + (width <= _SCORE_TIE)

    zero = jnp.zeros(scores.shape)
    words, tied = lax.fori_loop(1, m // 2 + 1, shifted, ((zero,) * len(margins), zero))
    return _sums(jnp.stack(words), tied)


class Stratified(NamedTuple):
    """Rankings by tier of the models ranked."""

    rank_change: Array  # (T, L) mean |rank - gold rank| of the tier's models, ranks being among all models compared
    models: Array  # (T, L)
    inside: Agreement  # (T, L) over the pairs inside a tier


def stratified(scores: Array, gold: Array, member: Array) -> Stratified:
    """Rankings ``scores`` (M, L) against ``gold`` (M,) in the tiers of ``member`` (T, M) bool, as in `agreement`.

    Equals share the mean of their ranks, which makes a rank 1 + sum over the others of (1 - sign) / 2.
    """
    m = gold.shape[0]
    tier = jnp.where(jnp.any(member, 0), jnp.argmax(member, 0), -1)

    def row(i: Array, state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        word, tied, change, partners = state
        gold_gap = jnp.where(jnp.arange(m) == i, jnp.nan, gold[i] - gold)
        width, sign, gold_sign = _signs(scores[i] - scores, gold_gap)
        compared = width < jnp.inf
        inside = compared & (tier[i] == tier)[:, None]
        word = word + jnp.where(inside, _word(sign, gold_sign), 0.0)
        tied = tied + (inside & (width <= _SCORE_TIE))
        change = change + jnp.where(compared, sign - gold_sign, 0.0)
        return word, tied, change, partners + compared

    word, tied, change, partners = lax.fori_loop(0, m, row, (jnp.zeros(scores.shape),) * 4)
    own = member[:, :, None]
    ranked = (partners > 0) & own
    models = jnp.sum(ranked, 1).astype(scores.dtype)
    total = jnp.sum(jnp.where(ranked, 0.5 * jnp.abs(change), 0.0), 1)
    mean = jnp.where(models > 0, total / jnp.maximum(models, 1), jnp.nan)
    inside = _sums(jnp.where(own, word, 0.0), jnp.where(own, tied, 0.0))
    return Stratified(mean, models, Agreement(*(x / 2 for x in inside)))  # every pair is seen from both sides
