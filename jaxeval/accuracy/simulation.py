"""Simulated judges: answers with known accuracies; bias, coverage and length of the corrections.

Every study is one batch over all settings and replications, of counts instead of items.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike, NDArray

from jaxeval.accuracy.calibration_planning import allocate_calibration
from jaxeval.accuracy.rogan_gladen import rogan_gladen
from jaxeval.execution.elementwise import apply, broadcast, require
from jaxeval.execution.precision import double_precision
from jaxeval.kernels import judge_error
from jaxeval.kernels.judge_error import JudgedSums, LabelledSums
from jaxeval.statistics.intervals import wilson
from jaxeval.statistics.quantiles import checked_level

Float = NDArray[np.float64]


def coverage_study(
    theta: ArrayLike,
    q0: ArrayLike,
    q1: ArrayLike,
    n: ArrayLike = 1000,
    m: ArrayLike = 200,
    *,
    pilot: int = 10,
    replications: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Bias, coverage and length of the naive and the Rogan-Gladen interval (arXiv:2511.21140, Figures 5 and 9-16).

    Arguments broadcast to the settings; every setting is replicated with m / 2 labels of each class, and with the split
    of `allocate_calibration` after a pilot of ``pilot`` labels of each.

    Returns:
        A row per setting and method ("naive", "rogan_gladen", "rogan_gladen_adaptive"): ``theta, q0, q1, n, m, bias,
        bias_se`` (its Monte Carlo error), ``coverage, length`` of the truncated interval, ``length_untruncated,
        undefined_share, mean_m1``. Undefined replications count as not covering, and are left out of bias and lengths.
        ``length_untruncated`` is infinite where nothing bounds the interval of some replication (`rogan_gladen`).
    """
    checked_level(level)
    given = broadcast(theta=theta, q0=q0, q1=q1, n=n, m=m)
    for name in ("theta", "q0", "q1"):
        require(given, name, (given[name] >= 0) & (given[name] <= 1), "lie in [0, 1]")
    require(given, "m", given["m"] >= 2 * pilot, "hold the pilot")
    settings = {name: x.reshape(-1, 1) for name, x in given.items()}
    theta, q0, q1, n, m = settings.values()
    rng = np.random.default_rng(seed)
    r = replications

    def draw(size: Any, p: Any) -> Float:
        return rng.binomial(size.astype(np.int64), p, (len(theta), r)).astype(float)

    p = draw(n, theta * q1 + (1 - theta) * (1 - q0)) / n
    m1 = np.broadcast_to(np.floor(m / 2), p.shape)
    m0 = m - m1
    tables = [_method("naive", settings, p, *wilson(p, n, level), theta, np.full_like(p, np.nan))]
    rates = draw(m0, q0) / m0, draw(m1, q1) / m1
    tables.append(_rogan_gladen("rogan_gladen", settings, p, *rates, m0, m1, level))
    pilot0, pilot1 = (draw(np.full_like(theta, pilot), q) for q in (q0, q1))
    split = allocate_calibration(np.broadcast_to(m, p.shape), p, pilot0 / pilot, pilot1 / pilot, pilot)
    m0, m1 = split.m0.astype(float), split.m1.astype(float)
    rates = (pilot0 + draw(m0 - pilot, q0)) / m0, (pilot1 + draw(m1 - pilot, q1)) / m1
    tables.append(_rogan_gladen("rogan_gladen_adaptive", settings, p, *rates, m0, m1, level))
    return pd.concat(tables, ignore_index=True)


def _rogan_gladen(
    name: str, settings: dict[str, Float], p: Float, q0: Float, q1: Float, m0: Float, m1: Float, level: float
) -> pd.DataFrame:
    found = rogan_gladen(p, q0, q1, settings["n"], m0, m1, level)
    table = _method(name, settings, found.estimate, found.lower, found.upper, settings["theta"], m1)
    length = found.upper_untruncated - found.lower_untruncated
    return table.assign(length_untruncated=np.nanmean(length, 1))


def _method(
    name: str, settings: dict[str, Float], estimate: Float, lower: Float, upper: Float, truth: Float, m1: Float
) -> pd.DataFrame:
    defined = ~np.isnan(estimate)
    count = defined.sum(1)
    error = np.where(defined, estimate - truth, 0.0)
    bias = error.sum(1) / count
    spread = np.sqrt(np.where(defined, (error - bias[:, None]) ** 2, 0.0).sum(1) / count)
    length = np.where(defined, upper - lower, 0.0).sum(1) / count
    return pd.DataFrame(
        {
            "method": name,
            **{key: x[:, 0] for key, x in settings.items()},
            "bias": bias,
            "bias_se": spread / np.sqrt(count),
            "coverage": ((lower <= truth) & (truth <= upper)).mean(1),
            "length": length,
            "length_untruncated": length,
            "undefined_share": 1 - count / estimate.shape[1],
            "mean_m1": m1.mean(1),
        }
    )


def shift_study(
    calibration_theta: ArrayLike,
    test_theta: ArrayLike = 0.5,
    q0: ArrayLike = 0.7,
    q1: ArrayLike = 0.9,
    n: ArrayLike = 1000,
    m: ArrayLike = 200,
    *,
    replications: int = 10_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Bias where the calibration has another share of right answers than the test (arXiv:2511.21140, Figure 7).

    Labels come as they are: a calibration item is right with probability ``calibration_theta``. Arguments broadcast.

    Returns:
        A row per setting and estimator: ``calibration_theta, test_theta, q0, q1, n, m, bias, bias_se,
        undefined_share``.
    """
    given = broadcast(calibration_theta=calibration_theta, test_theta=test_theta, q0=q0, q1=q1, n=n, m=m)
    settings = {name: x.reshape(-1, 1) for name, x in given.items()}
    theta_c, theta_t, q0, q1, n, m = settings.values()
    rng = np.random.default_rng(seed)

    def draw(size: Any, p: Any) -> Float:
        return rng.binomial(np.asarray(size).astype(np.int64), p, (len(theta_t), replications)).astype(float)

    judged = draw(n, theta_t * q1 + (1 - theta_t) * (1 - q0))
    label = draw(m, theta_c)
    product = draw(label, q1)
    judgment = product + draw(m - label, 1 - q0)
    whole = np.broadcast_to(m, label.shape).astype(float)
    found = apply(_by_counts, whole, label, judgment, product, np.broadcast_to(n, label.shape).astype(float), judged)
    tables = []
    for name, value in found._asdict().items():
        table = _method(name, settings, value, value, value, theta_t, value)
        keep = [*settings, "bias", "bias_se", "undefined_share"]
        tables.append(table.rename(columns={"method": "estimator"})[["estimator", *keep]])
    return pd.concat(tables, ignore_index=True)


@jax.jit
def _by_counts(m: Any, label: Any, judgment: Any, product: Any, n: Any, judged: Any) -> Any:
    labelled = LabelledSums(m, label, judgment, product, judgment, label)
    return judge_error.by_stratum(labelled, JudgedSums(n, judged, judged), jnp.array(True))


def comparison_study(
    j_a: ArrayLike,
    delta_j: ArrayLike,
    theta_a: ArrayLike = 0.7,
    theta_b: ArrayLike = 0.75,
    n: int = 1000,
    m: int = 400,
    *,
    replications: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Bias and coverage of theta_B - theta_A where the judge errs differently on A and B (arXiv:2605.06939, Figure 1).

    The judge has q0 = q1 = (1 + J) / 2, J = ``j_a`` on A and ``j_a + delta_j`` on B; ``n`` test items and ``m``
    calibration items are answered by both models, rightly or not independently. "rogan_gladen_shared" uses the labels
    of A for both models; "ppi_plus_plus_half" those of both models on half of the calibration items.

    Intervals are normal, with the paired variance from the influence of every item (`influence`); Rogan-Gladen is
    clipped to [0, 1] model by model, and where J <= 0 its interval is [-1, 1].

    Returns:
        A row per setting and estimator: ``j_a, delta_j, theta_a, theta_b, bias, bias_se, coverage, length,
        undefined_share``.
    """
    z = scipy.special.ndtri((1 + checked_level(level)) / 2)
    given = broadcast(j_a=j_a, delta_j=delta_j, theta_a=theta_a, theta_b=theta_b)
    settings = {name: x.reshape(-1) for name, x in given.items()}
    rng = np.random.default_rng(seed)
    j_a, delta_j, theta_a, theta_b = settings.values()
    q_a, q_b = (1 + j_a) / 2, (1 + j_a + delta_j) / 2
    if ((q_b > 1) | (q_a < 0)).any():
        raise ValueError("j_a and j_a + delta_j must lie in [-1, 1]")
    # Cells by (right, judged right) of A and of B.
    of_a, of_b = (_cell_shares(theta, q) for theta, q in ((theta_a, q_a), (theta_b, q_b)))
    calibration_cells = (of_a[:, :, :, None, None] * of_b[:, None, None]).reshape(len(j_a), 16)
    test_cells = (of_a.sum(1)[:, :, None] * of_b.sum(1)[:, None]).reshape(len(j_a), 4)
    draws = {
        "test": rng.multinomial(n, test_cells[:, None], (len(j_a), replications)),
        "first": rng.multinomial(m // 2, calibration_cells[:, None], (len(j_a), replications)),
        "second": rng.multinomial(m - m // 2, calibration_cells[:, None], (len(j_a), replications)),
    }
    counts = {name: x.reshape(-1, x.shape[-1]).astype(float) for name, x in draws.items()}
    with double_precision():
        found = jax.device_get(_compared(counts["test"], counts["first"], counts["first"] + counts["second"]))
    truth = (theta_b - theta_a)[:, None]
    tables = []
    for name, (value, variance) in found.items():
        value, half = (np.asarray(x).reshape(len(j_a), -1) for x in (value, z * np.sqrt(variance)))
        undefined = np.isnan(value)
        lower = np.where(undefined, -1.0, np.maximum(value - half, -1))
        upper = np.where(undefined, 1.0, np.minimum(value + half, 1))
        table = _method(name, {k: x[:, None] for k, x in settings.items()}, value, lower, upper, truth, value)
        tables.append(table.drop(columns=["length_untruncated", "mean_m1"]).rename(columns={"method": "estimator"}))
    return pd.concat(tables, ignore_index=True)


def simulate_judged_answers(
    accuracy: ArrayLike = (0.75, 0.7, 0.6),
    q0: ArrayLike = ((0.8, 0.6), (0.8, 0.7), (0.8, 0.8)),
    q1: ArrayLike = ((0.9, 0.9), (0.9, 0.85), (0.9, 0.95)),
    n_items: int = 1000,
    *,
    correlation: float = 0.5,
    seed: int = 0,
) -> pd.DataFrame:
    """Answers of M models to the same items, labelled by people and judged by J judges.

    Args:
        accuracy: (M,) share of right answers.
        q0: (M, J) specificity of every judge on every model; broadcasts.
        q1: (M, J) sensitivity.
        n_items: items, answered by all.
        correlation: of the latent variables that make a model right on an item, as some items are harder for all.
        seed: the same seed gives the same answers.

    Returns:
        A row per item and model: ``item, model, human`` and a column ``judge-1``, ... per judge.
    """
    share = np.atleast_1d(np.asarray(accuracy, float))
    specificity, sensitivity = (np.atleast_2d(np.asarray(q, float)) for q in (q0, q1))
    shape = np.broadcast_shapes((len(share), 1), specificity.shape, sensitivity.shape)
    given = {"accuracy": share, "q0": specificity, "q1": sensitivity, "correlation": np.asarray(correlation, float)}
    for name, x in given.items():
        require(given, name, (x >= 0) & (x <= 1), "lie in [0, 1]")
    rng = np.random.default_rng(seed)
    common, own = rng.standard_normal((n_items, 1)), rng.standard_normal((n_items, len(share)))
    latent = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
    right = latent < scipy.special.ndtri(share)
    yes = np.where(right[:, :, None], np.broadcast_to(sensitivity, shape), 1 - np.broadcast_to(specificity, shape))
    verdict = rng.random((n_items, *shape)) < yes
    answers = pd.DataFrame(
        {
            "item": np.repeat(np.arange(n_items), len(share)),
            "model": np.tile([f"model-{k + 1}" for k in range(len(share))], n_items),
            "human": right.reshape(-1).astype(int),
        }
    )
    for k in range(shape[1]):
        answers[f"judge-{k + 1}"] = verdict[:, :, k].reshape(-1).astype(int)
    return answers


def _cell_shares(theta: Float, q: Float) -> Float:
    """(S, 2, 2) shares of (right, judged right) where both rates are ``q``."""
    right, judged = np.array([0, 1])[:, None], np.array([0, 1])
    agree = right == judged
    prior = np.where(right, theta[:, None, None], 1 - theta[:, None, None])
    return prior * np.where(agree, q[:, None, None], 1 - q[:, None, None])


@jax.jit
def _compared(test: Any, half: Any, full: Any) -> dict[str, tuple[Any, Any]]:
    """Difference B - A and its variance by estimator, from counts (R, 4) and (R, 16) of cells."""
    judged = jnp.array([[0.0, 0, 1, 1], [0, 1, 0, 1]])  # of A and B
    bits = [(jnp.arange(16) >> k) & 1 for k in (3, 2, 1, 0)]
    y, f = jnp.stack([bits[0], bits[2]]).astype(float), jnp.stack([bits[1], bits[3]]).astype(float)

    def labelled(count: Any) -> LabelledSums:
        total = jnp.broadcast_to(count.sum(-1)[:, None], (len(count), 2))
        products = (count @ x.T for x in (y, f, y * f, f, y))
        return LabelledSums(total, *products)

    n = jnp.broadcast_to(test.sum(-1)[:, None], (len(test), 2))
    shown = test @ judged.T
    sums = JudgedSums(n, shown, shown)
    p = shown / n

    def difference(value: Any, on_test: Any, count: Any, on_calibration: Any) -> tuple[Any, Any]:
        """From contributions (R, 2, cells) of one item of each cell."""
        spread = (test * (on_test[:, 1] - on_test[:, 0]) ** 2).sum(-1)
        spread += (count * (on_calibration[:, 1] - on_calibration[:, 0]) ** 2).sum(-1)
        return value[:, 1] - value[:, 0], spread

    def with_weight(count: Any, weight: Any) -> tuple[Any, Any]:
        own = labelled(count)
        mean = (own.label - weight * own.judgment) / own.n
        residual = (y - weight[..., None] * f - mean[..., None]) / own.n[..., None]
        on_test = weight[..., None] * (judged - p[..., None]) / n[..., None]
        return difference(judge_error.ppi(own, sums, weight), on_test, count, residual)

    def with_rates(own: LabelledSums, y: Any, f: Any) -> tuple[Any, Any]:
        value = judge_error.with_rates_of(own, sums, jnp.array(True))
        q0, q1, m0, m1 = (x[..., None] for x in judge_error.rates(own))
        theta, j = value[..., None], q0 + q1 - 1
        on_calibration = ((1 - theta) * (1 - y) * (1 - f - q0) / m0 - theta * y * (f - q1) / m1) / j
        return difference(jnp.clip(value, 0, 1), (judged - p[..., None]) / n[..., None] / j, full, on_calibration)

    everything = labelled(full)
    a = LabelledSums(*(jnp.broadcast_to(x[:, :1], x.shape) for x in everything))
    naive = difference(p, (judged - p[..., None]) / n[..., None], full, jnp.zeros((1, 2, 16)))
    return {
        "naive": naive,
        "rogan_gladen_shared": with_rates(a, y[:1], f[:1]),
        "rogan_gladen": with_rates(everything, y, f),
        "ppi_plus_plus_half": with_weight(half, judge_error.ppi_weight(labelled(half), sums, 1.0)),
        "ppi_plus_plus": with_weight(full, judge_error.ppi_weight(everything, sums, 1.0)),
    }
