"""Coverage on labelled data: repeated calibration and test samples of it, and how often intervals hold the truth."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pandas as pd
import scipy

from jaxeval.accuracy.estimates import estimates, intervals_of_proportions
from jaxeval.accuracy.judged_sums import POOLED, LabelledAnswers, Sums, arrays, sums, weighted_sums
from jaxeval.accuracy.performance import performance
from jaxeval.arrays import Bool, Float
from jaxeval.checks import checked_integer
from jaxeval.data.judged_answers import JudgedAnswers
from jaxeval.errors import DataError
from jaxeval.execution.elementwise import evaluate
from jaxeval.kernels import judge_error
from jaxeval.kernels.judge_error import Doubt
from jaxeval.statistics.quantiles import checked_level, normal_quantile
from jaxeval.wording import counted


def split_study(
    answers: JudgedAnswers,
    calibration_share: float = 1 / 3,
    n_splits: int = 1000,
    *,
    replacement: bool = False,
    level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Bias, coverage and length of every closed-form interval over random splits of labelled ``answers``, in one batch.

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
    if not 0 < calibration_share < 1:
        raise ValueError(f"calibration_share must be between 0 and 1, got {calibration_share!r}")
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
        labels = {
            "model": np.repeat(answers.models.to_numpy(), j),
            "judge": np.tile(answers.judges.to_numpy(), m),
            "estimator": name,
        }
        tables.append(pd.DataFrame({**labels, **{key: x.reshape(-1) for key, x in table.items()}}))
    study = pd.concat(tables, ignore_index=True)
    study.attrs["n_unlabelled"] = int((answers.judged & ~judged).any(axis=2).sum())
    return study


def _weights(n: int, share: float, n_splits: int, replacement: bool, seed: int) -> tuple[Float, Float]:
    """(R, N) how often each item calibrates and is tested in each split."""
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
    """(R, J, 4, 4) sums over items of products of an item's answers wrong, those judged wrong, right, judged right."""
    y, f, used, _ = answers
    counts = np.stack([x.sum(1) for x in (used - y, (used - y) * (1 - f), y, y * f)], axis=-1)  # (N, J, 4)
    return np.einsum("ri,ija,ijb->rjab", weight, counts, counts, optimize=True)


def _intervals(drawn: Sums, products: Float, binary: Bool, level: float) -> dict[str, tuple[Float, ...]]:
    """Estimate and untruncated ends (R, M, J) by estimator."""
    values = estimates(drawn, drawn, binary)
    test, own, shared = jax.tree.map(lambda x: x[:, 0], drawn)
    z = normal_quantile(level)
    of_scores = scipy.special.stdtrit(np.maximum(own.n - 2, 1), (1 + level) / 2)
    quantile = np.where(binary, z, of_scores)
    shifts = evaluate(judge_error.small_sample_shift, own, test, binary)._asdict()
    ends: dict[str, tuple[Float, ...]] = {}
    for name, variance in evaluate(judge_error.careful_variances, own, test, binary)._asdict().items():
        half, centre = quantile * np.sqrt(variance), values[name] + shifts[name]
        ends[name] = centre - half, centre + half
    of_verdicts = intervals_of_proportions(own, test, own, level)
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
    for name, labelled in (("rogan_gladen", own), ("rogan_gladen_shared", shared)):
        doubt = evaluate(judge_error.doubt_of_sums, labelled, np.ones_like(labelled.n))
        undefined = np.isnan(values[name]) | (doubt > Doubt.FEW_OF_CLASS)
        lower, upper = (np.where(undefined, np.nan, end) for end in ends[name])
        unbounded = ~undefined & (doubt != Doubt.OK)
        ends[name] = np.where(unbounded, -np.inf, lower), np.where(unbounded, np.inf, upper)
    return {name: (value, *ends[name]) for name, value in values.items()}
