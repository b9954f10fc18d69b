"""Simulated judges: answers with known accuracies; bias, coverage and length of the corrections.

Every study is one batch over all settings and replications, of counts instead of items.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike

from jaxeval.accuracy import influence
from jaxeval.accuracy.calibration_planning import allocate_calibration
from jaxeval.accuracy.estimates import estimates, intervals_of_proportions
from jaxeval.accuracy.influence import Contributions
from jaxeval.accuracy.judged_sums import (
    POOLED,
    Arrays,
    LabelledAnswers,
    RatedAnswers,
    Sums,
    arrays,
    sums,
    weighted_sums,
)
from jaxeval.accuracy.rogan_gladen import rogan_gladen
from jaxeval.arrays import Bool, Float, Int
from jaxeval.checks import broadcast, checked_integer, require, require_share
from jaxeval.data.judged_answers import JudgedAnswers
from jaxeval.errors import DataError
from jaxeval.execution.host import evaluate
from jaxeval.kernels import judge_error
from jaxeval.kernels.judge_error import Doubt, JudgedSums, LabelledSums
from jaxeval.lazy_names import jax
from jaxeval.statistics.quantiles import checked_level, normal_quantile, wilson
from jaxeval.wording import counted


def performance(estimate: Float, lower: Float, upper: Float, truth: Float, axis: int) -> dict[str, Float]:
    """Return bias, its Monte Carlo error, coverage, length and the share of undefined estimates, by name.

    Replications are on ``axis``. Undefined ones (NaN) are left out of bias and length. They cover the truth only if
    their ends do.
    """
    defined = ~(np.isnan(estimate) | np.isnan(lower))
    count = defined.sum(axis)
    error = np.where(defined, estimate - truth, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        bias = error.sum(axis) / count
        variance = np.where(defined, (error - np.expand_dims(bias, axis)) ** 2, 0.0).sum(axis) / count
        return {
            "bias": bias, "bias_se": np.sqrt(variance / count),
            "coverage": np.where(count > 0, ((lower <= truth) & (truth <= upper)).mean(axis), np.nan),
            "length": np.where(defined, upper - lower, 0.0).sum(axis) / count,
            "undefined_share": 1 - count / estimate.shape[axis],
        }  # fmt: skip


def coverage_study(
    theta: ArrayLike, q0: ArrayLike, q1: ArrayLike, n: ArrayLike = 1000, m: ArrayLike = 200, *, pilot: int = 10,
    replications: int = 10_000, level: float = 0.95, seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Give bias, coverage and length of the naive and the Rogan-Gladen interval (arXiv:2511.21140, Figures 5 and 9-16).

    Arguments broadcast to the settings. Every setting is replicated with m / 2 labels of each class. It is replicated
    again with the split of `allocate_calibration`, after a pilot of ``pilot`` labels of each class.

    Returns:
        A row per setting and method ("naive", "rogan_gladen", "rogan_gladen_adaptive"): ``theta, q0, q1, n, m, bias,
        bias_se`` (its Monte Carlo error), ``coverage, length`` of the truncated interval, ``undefined_share,
        length_untruncated, mean_m1``. Undefined replications count as not covering, and are left out of bias and
        lengths. ``length_untruncated`` is infinite where nothing bounds the interval of some replication
        (`rogan_gladen`).
    """
    checked_level(level)
    arrays = broadcast(theta=theta, q0=q0, q1=q1, n=n, m=m)
    require_share(arrays, "theta", "q0", "q1")
    require(arrays, "m", arrays["m"] >= 2 * checked_integer("pilot", pilot, 1), "hold the pilot")
    settings = {name: x.reshape(-1, 1) for name, x in arrays.items()}
    theta, q0, q1, n, m = settings.values()
    draw = _binomial(len(theta), replications, seed)
    p = draw(n, theta * q1 + (1 - theta) * (1 - q0)) / n
    lower, upper = wilson(p, n, level)
    naive = performance(p, lower, upper, theta, axis=1)
    naive |= {"length_untruncated": naive["length"], "mean_m1": np.full(len(theta), np.nan)}

    def corrected(q0: Float, q1: Float, m0: Float, m1: Float) -> dict[str, Float]:
        intervals = rogan_gladen(p, q0, q1, n, m0, m1, level)
        estimate, lower, upper = (np.asarray(x) for x in (intervals.estimate, intervals.lower, intervals.upper))
        length = np.asarray(intervals.upper_untruncated - intervals.lower_untruncated)
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


def _binomial(n_settings: int, replications: int, seed: int) -> Callable[[Float, Float], Float]:
    """Return a function that draws (S, R) binomial counts from sizes and probabilities (S, 1) or (S, R)."""
    shape = n_settings, checked_integer("replications", replications, 1)
    rng = np.random.default_rng(checked_integer("seed", seed))

    def draw(size: Float, p: Float) -> Float:
        return rng.binomial(size.astype(np.int64), p, shape).astype(float)

    return draw


def _table(kind: str, settings: dict[str, Float], columns: dict[str, dict[str, Float]]) -> pd.DataFrame:
    """Return a row per setting and name: the name in column ``kind``, settings, and that name's ``columns`` (S,)."""
    labels = {name: x.reshape(-1) for name, x in settings.items()}
    return pd.concat(
        [pd.DataFrame({kind: name, **labels, **numbers}) for name, numbers in columns.items()], ignore_index=True
    )


def shift_study(
    calibration_theta: ArrayLike, test_theta: ArrayLike = 0.5, q0: ArrayLike = 0.7, q1: ArrayLike = 0.9,
    n: ArrayLike = 1000, m: ArrayLike = 200, *, replications: int = 10_000, level: float = 0.95, seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Return bias where the calibration has another share of right answers than the test (arXiv:2511.21140, Figure 7).

    A calibration item is right with probability ``calibration_theta``, a test item with probability ``test_theta``.
    Arguments broadcast to the settings.

    Returns:
        A row per setting and estimator: ``calibration_theta, test_theta, q0, q1, n, m, bias, bias_se,
        undefined_share``.
    """
    arrays = broadcast(calibration_theta=calibration_theta, test_theta=test_theta, q0=q0, q1=q1, n=n, m=m)
    settings = {name: x.reshape(-1, 1) for name, x in arrays.items()}
    theta_c, theta_t, q0, q1, n, m = settings.values()
    checked_level(level)
    draw = _binomial(len(theta_t), replications, seed)
    judged = draw(n, theta_t * q1 + (1 - theta_t) * (1 - q0))
    label = draw(m, theta_c)
    product = draw(label, q1)
    judgment = product + draw(m - label, 1 - q0)
    labelled, test = LabelledSums(m, label, judgment, product, judgment, label), JudgedSums(n, judged, judged)
    estimates = evaluate(judge_error.by_stratum, labelled, test, np.bool_(True))
    kept = ("bias", "bias_se", "undefined_share")
    studies = {name: performance(x, x, x, theta_t, axis=1) for name, x in estimates._asdict().items()}
    return _table("estimator", settings, {name: {k: study[k] for k in kept} for name, study in studies.items()})


def comparison_study(
    j_a: ArrayLike, delta_j: ArrayLike, theta_a: ArrayLike = 0.7, theta_b: ArrayLike = 0.75, n: int = 1000,
    m: int = 400, *, replications: int = 10_000, level: float = 0.95, seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Estimate bias and coverage of theta_B - theta_A if the judge errs unlike on A and B (arXiv:2605.06939, Figure 1).

    The judge has q0 = q1 = (1 + J) / 2, where J is ``j_a`` on A and ``j_a + delta_j`` on B. Both models answer ``n``
    test items and ``m`` calibration items, independently of each other. "rogan_gladen_shared" uses the labels of A for
    both models. "ppi_plus_plus_half" uses those of both models on half of the calibration items.

    Intervals are normal, with the paired variance from the influence of every item (`influence`). Rogan-Gladen is
    clipped to [0, 1] model by model. Where J <= 0 its interval is [-1, 1].

    Returns:
        A row per setting and estimator: ``j_a, delta_j, theta_a, theta_b, bias, bias_se, coverage, length,
        undefined_share``.
    """
    for name, count in (("n", n), ("m", m), ("replications", replications)):
        checked_integer(name, count, 1)
    z = normal_quantile(level)
    arrays = broadcast(j_a=j_a, delta_j=delta_j, theta_a=theta_a, theta_b=theta_b)
    settings = {name: x.reshape(-1) for name, x in arrays.items()}
    rng = np.random.default_rng(checked_integer("seed", seed))
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
    shape = len(j_a), replications
    test = rng.multinomial(n, test_cells[:, None], shape)
    half, rest = (rng.multinomial(k, calibration_cells[:, None], shape) for k in (m // 2, m - m // 2))
    of_replications = [_paired_differences(*counts) for counts in zip(test, half, half + rest, strict=True)]
    truth = (theta_b - theta_a)[:, None]
    studies = {}
    for name in of_replications[0]:
        value, variance = (
            np.stack(x) for x in zip(*(differences[name] for differences in of_replications), strict=True)
        )
        half_length = z * np.sqrt(variance)
        # Without an estimate the difference may be any.
        lower, upper = np.fmax(value - half_length, -1), np.fmin(value + half_length, 1)
        studies[name] = performance(value, lower, upper, truth, axis=1)
    return _table("estimator", settings, studies)


def _paired_differences(test: Int, half: Int, full: Int) -> dict[str, tuple[Float, Float]]:
    """Return B minus A and its variance (R,) by estimator, from R counts of alike items.

    A test item is in one of 4 cells, by the verdicts on A and on B; a calibration item in one of 16, by label and
    verdict of A's answer, and of B's. ``half`` of the calibration items are those of "ppi_plus_plus_half".
    """
    replications = len(test)
    verdict, cell = np.array([[0.0, 0, 1, 1], [0, 1, 0, 1]]), np.arange(16)
    y, f = (np.stack([(cell >> k) & 1, (cell >> k - 2) & 1]).astype(float) for k in (3, 2))

    def as_items(values: Float) -> Float:
        """Return (cells, 2, R): a cell is an item, and a replication takes the place of a judge."""
        return np.broadcast_to(values.T[:, :, None], (values.shape[1], 2, replications))

    answers = LabelledAnswers(as_items(y), as_items(f), as_items(y) >= 0, np.zeros((16, 2), np.int64))
    rated = RatedAnswers(as_items(verdict), as_items(verdict) >= 0, np.zeros((4, 2), np.int64))

    data = Arrays(
        n_strata=1, own=answers, human=y.T, shared=answers, shared_labels=np.zeros((2, replications)), test=rated,
        answered=np.ones((4, 2), bool),
    )  # fmt: skip

    def sums(counts: Int, *values: Float) -> list[Float]:
        """Return (1, 2, R) numbers of items, and sums of each of ``values`` (2, cells) over them."""
        return [(x @ counts.T)[None] for x in (np.ones_like(values[0]), *values)]

    judged, binary = JudgedSums(*sums(test, verdict, verdict)), np.bool_(True)

    def difference(value: Float, items: Contributions, counts: Int) -> tuple[Float, Float]:
        on_test, on_calibration = (x[:, 1] - x[:, 0] for x in items)
        variance = (test.T * on_test**2).sum(0) + (counts.T * on_calibration**2).sum(0)
        return value[0, 1] - value[0, 0], variance

    control_variates = {}
    for name, counts in (("ppi_plus_plus_half", half), ("ppi_plus_plus", full)):
        labelled = LabelledSums(*sums(counts, y, f, y * f, f, y))
        of_a = LabelledSums(*(x[:, :1] for x in labelled))
        total, each = Sums(judged, labelled, of_a), evaluate(judge_error.by_stratum, labelled, judged, binary)
        weight = evaluate(judge_error.weights, labelled, judged, binary).ppi_plus_plus
        items = influence.control_variate(data, total, each.ppi_plus_plus, weight)
        control_variates[name] = difference(each.ppi_plus_plus, items, counts)
    with_a = evaluate(judge_error.with_rates_of, of_a, judged, binary)
    corrected, shared = np.clip(each.rogan_gladen, 0, 1), np.clip(with_a, 0, 1)
    return {
        "naive": difference(each.naive, influence.naive(data, total, each.naive), full),
        "ppi_plus_plus": control_variates["ppi_plus_plus"],
        "ppi_plus_plus_half": control_variates["ppi_plus_plus_half"],
        "rogan_gladen": difference(corrected, influence.rogan_gladen(data, total, each.rogan_gladen), full),
        "rogan_gladen_shared": difference(shared, influence.shared_rogan_gladen(data, total, of_a, 0, with_a), full),
    }


def _cell_shares(theta: Float, q: Float) -> Float:
    """Return (S, 2, 2) shares of (right, judged right) where both rates are ``q``."""
    right, judged = np.array([0, 1])[:, None], np.array([0, 1])
    agree = right == judged
    prior = np.where(right, theta[:, None, None], 1 - theta[:, None, None])
    return prior * np.where(agree, q[:, None, None], 1 - q[:, None, None])


def split_study(
    answers: JudgedAnswers, calibration_share: float = 1 / 3, n_splits: int = 1000, *, replacement: bool = False,
    level: float = 0.95, seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Estimate bias, coverage and length of all closed-form intervals over random splits of labelled ``answers``.

    Args:
        answers: judged answers with labels. Those without are left out, and counted in ``attrs["n_unlabelled"]``.
        calibration_share: share of the items that calibrate; the others are tested.
        n_splits: how often the items are split.
        replacement: draw calibration and test items with replacement, as if all items were the population. The truth is
            then its mean label, which is what the intervals are for. Without replacement the truth is the mean label of
            the test items, which moves with the split. Estimators that use the judgments of these items then cover it
            more often; those that rest on the labels of others cover it less often.
        level: confidence level.
        seed: of the splits.

    Returns:
        A row per model, judge and estimator: ``bias, bias_se, coverage, length, undefined_share``. Splits without an
        estimate count as not covering and are left out of the rest. Rogan-Gladen's interval is [0, 1] where J is near 0
        or a class has few labels. "rogan_gladen_shared" pools the models' labels.

    Raises:
        TypeError: ``n_splits`` or ``seed`` is no integer.
        ValueError: a number is out of range.
        DataError: no judged answer has a label.
    """
    checked_level(level)
    checked_integer("n_splits", n_splits, 1)
    checked_integer("seed", seed)
    checked_level(calibration_share, "calibration_share")
    judged = answers.judged & ~np.isnan(answers.label)[:, :, None]
    if not judged.any():
        raise DataError("no judged answer has a label: name the column of labels with label=")
    labelled = judged.any(axis=(1, 2))
    weights = _weights(len(answers.items), calibration_share, n_splits, replacement, seed)
    calibration, test = (weight[:, labelled] for weight in weights)
    known = replace(answers, judgment=np.where(judged, answers.judgment, np.nan)).take(np.flatnonzero(labelled))
    data = arrays(known, known, None, POOLED)
    drawn = weighted_sums(data, calibration, test)
    population = sums(data).own if replacement else weighted_sums(data, test, test).own
    with np.errstate(invalid="ignore"):
        truth = (population.label / population.n)[..., 0, :, :]
    products = _item_products(calibration, data.own)
    tables = []
    for name, (value, lower, upper) in _intervals(drawn, products, answers.binary, level).items():
        estimate, lower, upper = (np.clip(x, 0, 1) for x in (value, lower, upper))
        table = performance(estimate, lower, upper, truth, axis=0)
        m, j = table["bias"].shape
        model, judge = np.repeat(answers.models.to_numpy(), j), np.tile(answers.judges.to_numpy(), m)
        labels = {"model": model, "judge": judge, "estimator": name}
        tables.append(pd.DataFrame({**labels, **{key: x.reshape(-1) for key, x in table.items()}}))
    study = pd.concat(tables, ignore_index=True)
    study.attrs["n_unlabelled"] = int((answers.judged & ~judged).any(axis=2).sum())
    return study


def _weights(n: int, share: float, n_splits: int, replacement: bool, seed: int) -> tuple[Float, Float]:
    """Return (R, N) how often each item calibrates and is tested in each split."""
    rng = np.random.default_rng(seed)
    m = round(share * n)
    if not 0 < m < n:
        raise ValueError(f"a share of {share:g} of {counted(n, 'item')} leaves no calibration or no test")
    if replacement:
        equal = np.full(n, 1 / n)
        return rng.multinomial(m, equal, n_splits).astype(float), rng.multinomial(n - m, equal, n_splits).astype(float)
    order = rng.permuted(np.broadcast_to(np.arange(n), (n_splits, n)), axis=1)
    calibration = (order < m).astype(float)
    return calibration, 1 - calibration


def _item_products(weight: Float, answers: LabelledAnswers) -> Float:
    """Return (R, J, 4, 4) sums of products of items' counts: wrong answers, those judged wrong, right, judged right."""
    y, f, used, _ = answers
    counts = np.stack([x.sum(1) for x in (used - y, (used - y) * (1 - f), y, y * f)], axis=-1)  # (N, J, 4)
    return np.einsum("ri,ija,ijb->rjab", weight, counts, counts, optimize=True)


def _intervals(drawn: Sums, products: Float, binary: Bool, level: float) -> dict[str, tuple[Float, ...]]:
    """Return the estimate and untruncated ends (R, M, J) by estimator."""
    values = estimates(drawn, drawn, binary)
    test, labelled_alone, shared = jax.tree.map(lambda x: x[:, 0], drawn)
    z = normal_quantile(level)
    of_scores = scipy.special.stdtrit(np.maximum(labelled_alone.n - 2, 1), (1 + level) / 2)
    quantile = np.where(binary, z, of_scores)
    shifts = evaluate(judge_error.small_sample_shift, labelled_alone, test, binary)._asdict()
    ends: dict[str, tuple[Float, ...]] = {}
    for name, variance in evaluate(judge_error.careful_variances, labelled_alone, test, binary)._asdict().items():
        half, centre = quantile * np.sqrt(variance), values[name] + shifts[name]
        ends[name] = centre - half, centre + half
    of_verdicts = intervals_of_proportions(labelled_alone, test, labelled_alone, level)
    excess = evaluate(judge_error.rates_excess, shared, test)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = test.judgment / test.n
        half = of_scores * np.sqrt(np.maximum(test.judgment_square / test.n - p**2, 0) / (test.n - 1))
        naive = zip(of_verdicts["naive"], (p - half, p + half), strict=True)
        ends |= of_verdicts | {"naive": tuple(np.where(binary, x, y) for x, y in naive)}
        # The models' labels on an item go together: contributions by item, see `influence`.
        q0, q1, m0, m1 = judge_error.rates(shared)
        theta = values["rogan_gladen_shared"]
        weight = np.stack([-(1 - theta) * q0 / m0, (1 - theta) / m0, theta * q1 / m1, -theta / m1], axis=-1)
        calibrating = np.einsum("rmja,rjab,rmjb->rmj", weight, products, weight)
        half = z * np.sqrt((p * (1 - p) / test.n + calibrating) / (q0 + q1 - 1) ** 2 + excess)
        ends["rogan_gladen_shared"] = theta - half, theta + half
    for name, labelled in (("rogan_gladen", labelled_alone), ("rogan_gladen_shared", shared)):
        doubt = evaluate(judge_error.doubt_of_sums, labelled, np.ones_like(labelled.n))
        undefined = np.isnan(values[name]) | (doubt > Doubt.FEW_OF_CLASS)
        lower, upper = (np.where(undefined, np.nan, end) for end in ends[name])
        unbounded = ~undefined & (doubt != Doubt.OK)
        ends[name] = np.where(unbounded, -np.inf, lower), np.where(unbounded, np.inf, upper)
    return {name: (value, *ends[name]) for name, value in values.items()}
