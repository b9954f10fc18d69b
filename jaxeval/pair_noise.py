"""How much wider than tau itself its resamples over models spread, and intervals without that.

The variance of an average over pairs of models is a + b: a from the models, b from what every pair has of its own. A
resample of models gives a pair the product of two counts as its weight, and so has a + 3 b (Owen 2007, "The pigeonhole
bootstrap", DOI 10.1214/07-AOAS122). Of close pairs b is nearly everything. Both are known without resamples: with r the
influence of a pair on tau and R the sum of r over the pairs of a model, sum R^2 estimates a + 2 b, sum r^2 is b, and
their difference is the variance of dyadic data (Aronow, Samii and Assenova 2015, DOI 10.1093/pan/mpv018).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jaxeval.model_scores import ModelScores, Resampling, exact_gaps

Float = NDArray[np.float64]

_NOTHING = 1e-15  # where all pairs agree, or none, rounding leaves less


def without_pair_noise(values: Float, scores: ModelScores, deltas: Float, settings: Resampling) -> Float:
    """(1 + B, E, D) tau, or what is linear in it, its resamples over models nearer to the data's by `spread_scale`.

    Resamples that recompute scores are left as they are.
    """
    if settings.n_resamples == 0 or settings.resample != "models":
        return values
    return np.concatenate([values[:1], values[0] + spread_scale(scores, deltas) * (values[1:] - values[0])])


def spread_scale(scores: ModelScores, deltas: Float) -> Float:
    """(E, D) standard error of tau under every gap over that of its resamples, from 1 / sqrt(3) to 1; 1 without tau."""
    gold_order = np.sign(scores.gold[:, None] - scores.gold)
    found = np.ones((len(scores.scores), len(deltas)))
    for e, own in enumerate(scores.scores):
        known = ~np.isnan(own)
        gap = own[known, None] - own[known]  # (M, M): every pair is there twice
        gold = gold_order[np.ix_(known, known)]
        order = np.sign(gap)
        kinds = np.stack([order * gold, np.abs(order), np.abs(gold)])  # agreeing, told by the evaluator, told by gold
        gap = np.abs(gap)
        for d, delta in enumerate(exact_gaps(deltas)):
            of_model = np.einsum("kij,ij->ki", kinds, (gap < delta).astype(float))  # sums over the model's pairs
            concordance, told, gold_told = of_model.sum(1) / 2
            if told == 0 or gold_told == 0:
                continue
            root, both = np.sqrt(told * gold_told), np.sum(np.abs(kinds[0]), where=gap < delta) / 2
            tau = concordance / root
            # A pair's influence on tau-b is agree / root - tau / 2 (ordered / told + gold ordered / gold_told).
            by_model = of_model[0] / root - tau / 2 * (of_model[1] / told + of_model[2] / gold_told)
            of_models, shares = by_model @ by_model, 1 / told + 1 / gold_told
            of_pairs = both / root**2 + tau**2 / 4 * (shares + 2 * both / root**2) - tau**2 * shares
            if of_pairs > _NOTHING:
                found[e, d] = np.sqrt(max(of_models - of_pairs, of_pairs) / (of_models + of_pairs))
    return found
