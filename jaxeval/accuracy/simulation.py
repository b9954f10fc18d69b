"""Simulated judges: answers with known accuracies; bias, coverage and length of the corrections.

Every study is one batch over all settings and replications, of counts instead of items.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypedDict, Unpack

import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike

from jaxeval.accuracy import influence
from jaxeval.accuracy.calibration_planning import allocate_calibration
from jaxeval.accuracy.influence import Contributions
from jaxeval.accuracy.judged_sums import Arrays, LabelledAnswers, RatedAnswers, Sums
from jaxeval.accuracy.performance import performance
from jaxeval.accuracy.rogan_gladen import rogan_gladen
from jaxeval.arrays import Float, Int
from jaxeval.checks import checked_integer
from jaxeval.execution.elementwise import broadcast, evaluate, require, require_share
from jaxeval.kernels import judge_error
from jaxeval.kernels.judge_error import JudgedSums, LabelledSums
from jaxeval.statistics.quantiles import checked_level, normal_quantile, wilson


class StudyOptions(TypedDict, total=False):
    """How a study is made.

    ``replications``: of every setting; 10,000 by default.
    ``level``: confidence level of intervals; 0.95 by default.
    ``seed``: of all draws; 0 by default.
    """

    replications: int
    level: float
    seed: int


class _Study(NamedTuple):
    """`StudyOptions` with their defaults."""

    replications: int = 10_000
    level: float = 0.95
    seed: int = 0

    @classmethod
    def of(cls, options: StudyOptions) -> _Study:
        """The checked options; a TypeError for an unknown one."""
        study = cls(**options)
        checked_integer("replications", study.replications, 1)
        checked_integer("seed", study.seed)
        checked_level(study.level)
        return study


def coverage_study(
    theta: ArrayLike,
    q0: ArrayLike,
    q1: ArrayLike,
    n: ArrayLike = 1000,
    m: ArrayLike = 200,
    *,
    pilot: int = 10,
    **options: Unpack[StudyOptions],
) -> pd.DataFrame:
    """Bias, coverage and length of the naive and the Rogan-Gladen interval (arXiv:2511.21140, Figures 5 and 9-16).

    Arguments broadcast to the settings. Every setting is replicated with m / 2 labels of each class. It is replicated
    again with the split of `allocate_calibration`, after a pilot of ``pilot`` labels of each class.

    Returns:
        A row per setting and method ("naive", "rogan_gladen", "rogan_gladen_adaptive"): ``theta, q0, q1, n, m, bias,
        bias_se`` (its Monte Carlo error), ``coverage, length`` of the truncated interval, ``undefined_share,
        length_untruncated, mean_m1``. Undefined replications count as not covering, and are left out of bias and
        lengths. ``length_untruncated`` is infinite where nothing bounds the interval of some replication
        (`rogan_gladen`).
    """
    study = _Study.of(options)
    given = broadcast(theta=theta, q0=q0, q1=q1, n=n, m=m)
    require_share(given, "theta", "q0", "q1")
    require(given, "m", given["m"] >= 2 * checked_integer("pilot", pilot, 1), "hold the pilot")
    settings = {name: x.reshape(-1, 1) for name, x in given.items()}
    theta, q0, q1, n, m = settings.values()
    draw = _binomial(len(theta), study)
    p = draw(n, theta * q1 + (1 - theta) * (1 - q0)) / n
    lower, upper = wilson(p, n, study.level)
    naive = performance(p, lower, upper, theta, axis=1)
    naive |= {"length_untruncated": naive["length"], "mean_m1": np.full(len(theta), np.nan)}

    def corrected(q0: Float, q1: Float, m0: Float, m1: Float) -> dict[str, Float]:
        found = rogan_gladen(p, q0, q1, n, m0, m1, study.level)
        estimate, lower, upper = (np.asarray(x) for x in (found.estimate, found.lower, found.upper))
        length = np.asarray(found.upper_untruncated - found.lower_untruncated)
        more = {"length_untruncated": np.nanmean(length, 1), "mean_m1": m1.mean(1)}
        return performance(estimate, lower, upper, theta, axis=1) | more

    m1 = np.broadcast_to(np.floor(m / 2), p.shape)
    m0 = m - m1
    equal = corrected(draw(m0, q0) / m0, draw(m1, q1) / m1, m0, m1)
    pilot0, pilot1 = (draw(np.full_like(theta, pilot), q) for q in (q0, q1))
    split = allocate_calibration(np.broadcast_to(m, p.shape), p, pilot0 / pilot, pilot1 / pilot, pilot)
    m0, m1 = np.asarray(split.m0, float), np.asarray(split.m1, float)
    rates = (pilot0 + draw(m0 - pilot, q0)) / m0, (pilot1 + draw(m1 - pilot, q1)) / m1
    methods = {"naive": naive, "rogan_gladen": equal, "rogan_gladen_adaptive": corrected(*rates, m0, m1)}
    return _table("method", settings, methods)


def _binomial(n_settings: int, study: _Study) -> Callable[[Float, Float], Float]:
    """A function that draws (S, R) binomial counts from sizes and probabilities (S, 1) or (S, R)."""
    rng = np.random.default_rng(study.seed)

    def draw(size: Float, p: Float) -> Float:
        return rng.binomial(size.astype(np.int64), p, (n_settings, study.replications)).astype(float)

    return draw


def _table(kind: str, settings: dict[str, Float], columns: dict[str, dict[str, Float]]) -> pd.DataFrame:
    """A row per setting and name: the name in column ``kind``, the settings, and the ``columns`` (S,) of that name."""
    given = {name: x.reshape(-1) for name, x in settings.items()}
    return pd.concat([pd.DataFrame({kind: name, **given, **own}) for name, own in columns.items()], ignore_index=True)


def shift_study(
    calibration_theta: ArrayLike,
    test_theta: ArrayLike = 0.5,
    q0: ArrayLike = 0.7,
    q1: ArrayLike = 0.9,
    n: ArrayLike = 1000,
    m: ArrayLike = 200,
    **options: Unpack[StudyOptions],
) -> pd.DataFrame:
    """Bias where the calibration has another share of right answers than the test (arXiv:2511.21140, Figure 7).

    A calibration item is right with probability ``calibration_theta``, a test item with probability ``test_theta``.
    Arguments broadcast to the settings.

    Returns:
        A row per setting and estimator: ``calibration_theta, test_theta, q0, q1, n, m, bias, bias_se,
        undefined_share``.
    """
    given = broadcast(calibration_theta=calibration_theta, test_theta=test_theta, q0=q0, q1=q1, n=n, m=m)
    settings = {name: x.reshape(-1, 1) for name, x in given.items()}
    theta_c, theta_t, q0, q1, n, m = settings.values()
    draw = _binomial(len(theta_t), _Study.of(options))
    judged = draw(n, theta_t * q1 + (1 - theta_t) * (1 - q0))
    label = draw(m, theta_c)
    product = draw(label, q1)
    judgment = product + draw(m - label, 1 - q0)
    labelled, test = LabelledSums(m, label, judgment, product, judgment, label), JudgedSums(n, judged, judged)
    found = evaluate(judge_error.by_stratum, labelled, test, np.bool_(True))
    kept = ("bias", "bias_se", "undefined_share")
    studies = {name: performance(x, x, x, theta_t, axis=1) for name, x in found._asdict().items()}
    return _table("estimator", settings, {name: {k: study[k] for k in kept} for name, study in studies.items()})


def comparison_study(
    j_a: ArrayLike,
    delta_j: ArrayLike,
    theta_a: ArrayLike = 0.7,
    theta_b: ArrayLike = 0.75,
    n: int = 1000,
    m: int = 400,
    **options: Unpack[StudyOptions],
) -> pd.DataFrame:
    """Bias and coverage of theta_B - theta_A where the judge errs differently on A and B (arXiv:2605.06939, Figure 1).

    The judge has q0 = q1 = (1 + J) / 2, where J is ``j_a`` on A and ``j_a + delta_j`` on B. Both models answer ``n``
    test items and ``m`` calibration items, independently of each other. "rogan_gladen_shared" uses the labels of A for
    both models. "ppi_plus_plus_half" uses those of both models on half of the calibration items.

    Intervals are normal, with the paired variance from the influence of every item (`influence`). Rogan-Gladen is
    clipped to [0, 1] model by model. Where J <= 0 its interval is [-1, 1].

    Returns:
        A row per setting and estimator: ``j_a, delta_j, theta_a, theta_b, bias, bias_se, coverage, length,
        undefined_share``.
    """
    study = _Study.of(options)
    for name, count in (("n", n), ("m", m)):
        checked_integer(name, count, 1)
    z = normal_quantile(study.level)
    given = broadcast(j_a=j_a, delta_j=delta_j, theta_a=theta_a, theta_b=theta_b)
    settings = {name: x.reshape(-1) for name, x in given.items()}
    rng = np.random.default_rng(study.seed)
    j_a, delta_j, theta_a, theta_b = settings.values()
    q_a, q_b = (1 + j_a) / 2, (1 + j_a + delta_j) / 2
    for name, q in (("j_a", q_a), ("j_a + delta_j", q_b)):
        outside = (q < 0) | (q > 1)
        if outside.any():
            raise ValueError(f"{name} must lie in [-1, 1], got {2 * q[outside][0] - 1:g}")
    # Cells by (right, judged right) of A and of B.
    of_a, of_b = (_cell_shares(theta, q) for theta, q in ((theta_a, q_a), (theta_b, q_b)))
    calibration_cells = (of_a[:, :, :, None, None] * of_b[:, None, None]).reshape(len(j_a), 16)
    test_cells = (of_a.sum(1)[:, :, None] * of_b.sum(1)[:, None]).reshape(len(j_a), 4)
    shape = len(j_a), study.replications
    test = rng.multinomial(n, test_cells[:, None], shape)
    half, rest = (rng.multinomial(k, calibration_cells[:, None], shape) for k in (m // 2, m - m // 2))
    found = [_paired_differences(*counts) for counts in zip(test, half, half + rest, strict=True)]
    truth = (theta_b - theta_a)[:, None]
    studies = {}
    for name in found[0]:
        value, variance = (np.stack(x) for x in zip(*(differences[name] for differences in found), strict=True))
        half_length = z * np.sqrt(variance)
        # Without an estimate the difference may be any.
        lower, upper = np.fmax(value - half_length, -1), np.fmin(value + half_length, 1)
        studies[name] = performance(value, lower, upper, truth, axis=1)
    return _table("estimator", settings, studies)


def _paired_differences(test: Int, half: Int, full: Int) -> dict[str, tuple[Float, Float]]:
    """B minus A and its variance (R,) by estimator, from R counts of alike items.

    A test item is in one of 4 cells, by the verdicts on A and on B; a calibration item in one of 16, by label and
    verdict of A's answer, and of B's. ``half`` of the calibration items are those of "ppi_plus_plus_half".
    """
    replications = len(test)
    verdict, cell = np.array([[0.0, 0, 1, 1], [0, 1, 0, 1]]), np.arange(16)
    y, f = (np.stack([(cell >> k) & 1, (cell >> k - 2) & 1]).astype(float) for k in (3, 2))

    def as_items(values: Float) -> Float:
        """(cells, 2, R): a cell is an item, and a replication takes the place of a judge."""
        return np.broadcast_to(values.T[:, :, None], (values.shape[1], 2, replications))

    answers = LabelledAnswers(as_items(y), as_items(f), as_items(y) >= 0, np.zeros((16, 2), np.int64))
    rated = RatedAnswers(as_items(verdict), as_items(verdict) >= 0, np.zeros((4, 2), np.int64))

    data = Arrays(
        n_strata=1,
        own=answers,
        human=y.T,
        shared=answers,
        shared_labels=np.zeros((2, replications)),
        test=rated,
        answered=np.ones((4, 2), bool),
    )

    def sums(counts: Int, *values: Float) -> list[Float]:
        """(1, 2, R) numbers of items, and sums of each of ``values`` (2, cells) over them."""
        return [(x @ counts.T)[None] for x in (np.ones_like(values[0]), *values)]

    judged, binary = JudgedSums(*sums(test, verdict, verdict)), np.bool_(True)

    def difference(value: Float, items: Contributions, counts: Int) -> tuple[Float, Float]:
        on_test, on_calibration = (x[:, 1] - x[:, 0] for x in items)
        variance = (test.T * on_test**2).sum(0) + (counts.T * on_calibration**2).sum(0)
        return value[0, 1] - value[0, 0], variance

    found = {}
    for name, counts in (("ppi_plus_plus_half", half), ("ppi_plus_plus", full)):
        own = LabelledSums(*sums(counts, y, f, y * f, f, y))
        of_a = LabelledSums(*(x[:, :1] for x in own))
        total, each = Sums(judged, own, of_a), evaluate(judge_error.by_stratum, own, judged, binary)
        weight = evaluate(judge_error.weights, own, judged, binary).ppi_plus_plus
        items = influence.control_variate(data, total, each.ppi_plus_plus, weight)
        found[name] = difference(each.ppi_plus_plus, items, counts)
    with_a = evaluate(judge_error.with_rates_of, of_a, judged, binary)
    corrected, shared = np.clip(each.rogan_gladen, 0, 1), np.clip(with_a, 0, 1)
    return {
        "naive": difference(each.naive, influence.naive(data, total, each.naive), full),
        "ppi_plus_plus": found["ppi_plus_plus"],
        "ppi_plus_plus_half": found["ppi_plus_plus_half"],
        "rogan_gladen": difference(corrected, influence.rogan_gladen(data, total, each.rogan_gladen), full),
        "rogan_gladen_shared": difference(shared, influence.shared_rogan_gladen(data, total, of_a, 0, with_a), full),
    }


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
        q1: (M, J) sensitivity of every judge on every model; broadcasts.
        n_items: number of items. Every model answers all of them.
        correlation: between models, of the latent variables that make an answer right. Above 0, some items are harder
            than others for all models.
        seed: the same seed gives the same answers.

    Returns:
        A row per item and model: ``item, model, human`` and a column ``judge-1``, ... per judge.

    Raises:
        TypeError: ``n_items`` or ``seed`` is no integer.
        ValueError: a share is outside of [0, 1], or shapes do not broadcast.

    Examples:
        >>> simulate_judged_answers([0.8, 0.5], q0=0.7, q1=0.9, n_items=2, seed=3)
           item    model  human  judge-1
        0     0  model-1      0        0
        1     0  model-2      0        1
        2     1  model-1      1        1
        3     1  model-2      1        1
    """
    checked_integer("n_items", n_items, 1)
    share = np.atleast_1d(np.asarray(accuracy, float))
    specificity, sensitivity = (np.atleast_2d(np.asarray(q, float)) for q in (q0, q1))
    shape = np.broadcast_shapes((len(share), 1), specificity.shape, sensitivity.shape)
    given = {"accuracy": share, "q0": specificity, "q1": sensitivity, "correlation": np.asarray(correlation, float)}
    require_share(given, *given)
    rng = np.random.default_rng(checked_integer("seed", seed))
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
