"""PPI and PPI++ of a mean, from labels and judgments item by item (DOI 10.1126/science.adi6000, arXiv:2311.01453).

Items are on the last axis. Leading axes broadcast.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from jaxeval.kernels import judge_error
from jaxeval.kernels.judge_error import JudgedSums, LabelledSums


class MeanLabel(NamedTuple):
    """The mean label of the test items."""

    estimate: Array
    centre: Array  # of its interval
    variance: Array
    weight: Array  # lambda
    spread: Array  # of the judgments; 0 where lambda cannot be estimated


class Kind(NamedTuple):
    """What kind of values the items have; booleans of the leading axes."""

    zero_one: ArrayLike  # judgments are 0 or 1
    verdicts: ArrayLike  # labels, too
    pooled: ArrayLike  # do as the package ppi-python does, whatever the values are


def mean_label(y: Array, f: Array, g: Array, kind: Kind, given: Array | None) -> MeanLabel:
    """Mean label from labels ``y`` (..., n), their judgments ``f`` and those of the test ``g`` (..., N).

    ``given`` is the weight lambda; None to estimate it.
    """
    whole, whole_test = _sums(y, f, g)
    # Centred on the labelled judgments: sums of squares of scores far from 0 would cancel.
    centre_y, centre_f = jnp.mean(y, -1, keepdims=True), jnp.mean(f, -1, keepdims=True)
    labelled, test = _sums(y - centre_y, f - centre_f, g - centre_f)
    moments = judge_error.slopes(labelled, test)
    spread = moments.labelled_variance + moments.test_variance
    if given is not None:
        weight = given + 0 * labelled.label
    else:
        total = labelled.n + test.n
        mean = (labelled.judgment + test.judgment) / total
        variance = (labelled.judgment_square + test.judgment_square - total * mean**2) / (total - 1)
        slope = moments.covariance / jnp.where(spread > 0, (1 + labelled.n / test.n) * variance, 1.0)
        of_both = jnp.clip(jnp.where(spread > 0, slope, 0.0), 0.0, 1.0)
        best = judge_error.ppi_weight(labelled, test, jnp.where(kind.zero_one, 1.0, jnp.inf))
        weight = jnp.where(kind.pooled, of_both, best)
    estimate = centre_y[..., 0] + judge_error.ppi(labelled, test, weight)
    # Observations are added to verdicts as they are.
    true, false = jnp.array(True), jnp.array(False)
    shift = judge_error.careful_ppi(whole, whole_test, weight, true) - judge_error.ppi(whole, whole_test, weight)
    careful = jnp.where(
        kind.verdicts,
        judge_error.careful_ppi_variance(whole, whole_test, weight, true),
        judge_error.careful_ppi_variance(labelled, test, weight, false),
    )
    return MeanLabel(
        estimate=estimate,
        centre=estimate + jnp.where(jnp.logical_and(kind.verdicts, jnp.logical_not(kind.pooled)), shift, 0.0),
        variance=jnp.where(kind.pooled, judge_error.ppi_variance(labelled, test, weight), careful),
        weight=weight,
        spread=spread,
    )


def _sums(y: Array, f: Array, g: Array) -> tuple[LabelledSums, JudgedSums]:
    y, f = jnp.broadcast_arrays(y, f)
    products = (jnp.sum(x, -1) for x in (y, f, y * f, f * f, y * y))
    return (
        LabelledSums(jnp.float64(f.shape[-1]), *products),
        JudgedSums(jnp.float64(g.shape[-1]), jnp.sum(g, -1), jnp.sum(g * g, -1)),
    )
