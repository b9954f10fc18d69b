"""Differences in accuracy between two models that answered the same items, from counts of items alike.

A test item is in one of 4 cells by the verdicts on A and on B; a calibration item in one of 16, by label and verdict of
A's answer and label and verdict of B's. The last of them varies fastest. Leading axes broadcast.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from jaxeval.kernels import judge_error
from jaxeval.kernels.judge_error import JudgedSums, LabelledSums


class Difference(NamedTuple):
    """B minus A."""

    value: Array
    variance: Array  # from the contribution of every item


class Differences(NamedTuple):
    """By estimator."""

    naive: Difference
    ppi_plus_plus: Difference
    ppi_plus_plus_half: Difference  # with half of the calibration items
    rogan_gladen: Difference
    rogan_gladen_shared: Difference  # with the labels of A


def differences(test: Array, half: Array, full: Array) -> Differences:
    """Differences from test items (..., 4), and from half and all of the calibration items (..., 16)."""
    verdict = jnp.array([[0.0, 0, 1, 1], [0, 1, 0, 1]])  # on A and on B
    y_a, f_a, y_b, f_b = (((jnp.arange(16) >> k) & 1).astype(float) for k in (3, 2, 1, 0))
    y, f = jnp.stack([y_a, y_b]), jnp.stack([f_a, f_b])

    def labelled(count: Array) -> LabelledSums:
        products = [count @ x.T for x in (y, f, y * f, f, y)]
        return LabelledSums(jnp.broadcast_to(count.sum(-1, keepdims=True), products[0].shape), *products)

    passed = test @ verdict.T
    n = jnp.broadcast_to(test.sum(-1, keepdims=True), passed.shape)
    judged, p = JudgedSums(n, passed, passed), passed / n

    def difference(value: Array, on_test: Array, count: Array, on_calibration: Array) -> Difference:
        """From contributions (..., 2, cells) of one item of each cell."""
        variance = (test * (on_test[..., 1, :] - on_test[..., 0, :]) ** 2).sum(-1)
        variance += (count * (on_calibration[..., 1, :] - on_calibration[..., 0, :]) ** 2).sum(-1)
        return Difference(value[..., 1] - value[..., 0], variance)

    def with_weight(count: Array) -> Difference:
        own = labelled(count)
        weight = judge_error.ppi_weight(own, judged, 1.0)
        mean = (own.label - weight * own.judgment) / own.n
        residual = (y - weight[..., None] * f - mean[..., None]) / own.n[..., None]
        on_test = weight[..., None] * (verdict - p[..., None]) / n[..., None]
        return difference(judge_error.ppi(own, judged, weight), on_test, count, residual)

    def with_rates(own: LabelledSums, y: Array, f: Array) -> Difference:
        value = judge_error.with_rates_of(own, judged, jnp.array(True))
        q0, q1, m0, m1 = (x[..., None] for x in judge_error.rates(own))
        theta, j = value[..., None], q0 + q1 - 1
        on_calibration = ((1 - theta) * (1 - y) * (1 - f - q0) / m0 - theta * y * (f - q1) / m1) / j
        return difference(jnp.clip(value, 0, 1), (verdict - p[..., None]) / n[..., None] / j, full, on_calibration)

    own = labelled(full)
    of_a = LabelledSums(*(jnp.broadcast_to(x[..., :1], x.shape) for x in own))
    return Differences(
        naive=difference(p, (verdict - p[..., None]) / n[..., None], full, jnp.zeros((2, 16))),
        ppi_plus_plus=with_weight(full),
        ppi_plus_plus_half=with_weight(half),
        rogan_gladen=with_rates(own, y, f),
        rogan_gladen_shared=with_rates(of_a, y[:1], f[:1]),
    )
