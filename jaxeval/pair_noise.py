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


def without_pair_noise(values: Float, scores: ModelScores, deltas: Float, settings: Resampling) -> Float:
    """(1 + B, E, D) tau, or what is linear in it, its resamples over models nearer to the data's by `spread_scale`.

    Resamples that recompute scores are left as they are.
    """
    if settings.n_resamples == 0 or settings.resample != "models":
        return values
    return np.concatenate([values[:1], values[0] + spread_scale(scores, deltas) * (values[1:] - values[0])])


def spread_scale(scores: ModelScores, deltas: Float) -> Float:
    """(E, D) standard error of tau under every gap over that of its resamples, from 1 / sqrt(3) to 1; 1 without tau."""
    m = len(scores.gold)
    first, second = np.triu_indices(m, 1)
    gold_order = np.sign(scores.gold[first] - scores.gold[second])
    found = np.ones((len(scores.scores), len(deltas)))
    for e, own in enumerate(scores.scores):
        gap = own[first] - own[second]
        known = np.flatnonzero(~np.isnan(gap))
        gap, gold, i, j = gap[known], gold_order[known], first[known], second[known]
        order = np.sign(gap)
        for d, delta in enumerate(exact_gaps(deltas)):
            near = np.abs(gap) < delta
            told, gold_told = (np.count_nonzero(x[near]) for x in (order, gold))
            if told == 0 or gold_told == 0:
                continue
            agree = order[near] * gold[near] / np.sqrt(told * gold_told)
            ordered = (order[near] != 0) / told + (gold[near] != 0) / gold_told
            influence = agree - agree.sum() * ordered / 2  # of the pair on tau-b; sums to 0
            by_model = np.bincount(i[near], influence, m) + np.bincount(j[near], influence, m)
            of_models, of_pairs = by_model @ by_model, influence @ influence
            if of_pairs > 0:
                found[e, d] = np.sqrt(max(of_models - of_pairs, of_pairs) / (of_models + of_pairs))
    return found
