"""Tiers and sets of ranks: their definitions in loops, csranks' output, awkward draws, and what they cover."""

import numpy as np
import pytest
import twins

from jaxeval.ratings.differences import MOST_NOT_FINITE, differences


def compared(draws, estimate, noise=0.0):
    """Differences of all models that have an estimate."""
    return differences(draws, estimate, np.isfinite(estimate), noise)


def tiers(draws, estimate, level, noise=0.0):
    return compared(draws, estimate, noise).tiers(level)


def rank_sets(draws, estimate, level, **options):
    return list(zip(*compared(draws, estimate).rank_sets(level, **options), strict=True))


def simultaneous_halfwidth(draws, estimate, level):
    """(M, M) half-widths from what is told apart: twice as far, half as far, until it is not."""
    found = compared(draws, estimate)
    errors = np.zeros((len(estimate),) * 2)
    errors[np.ix_(found.models, found.models)] = found.errors(slice(None))
    return errors


