"""Coverage on labelled data: repeated calibration and test samples of it, and how often intervals hold the truth."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import scipy
from jax import Array
from numpy.typing import NDArray

from jaxeval.accuracy.estimates import estimates
from jaxeval.accuracy.judged_sums import Sums
from jaxeval.data.judged_answers import JudgedAnswers
from jaxeval.errors import DataError
from jaxeval.execution.precision import double_precision
from jaxeval.kernels import batch, judge_error
from jaxeval.kernels.judge_error import JudgedSums, LabelledSums
from jaxeval.statistics.intervals import wilson
from jaxeval.statistics.quantiles import checked_level
from jaxeval.wording import counted

Float = NDArray[np.float64]


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
        answers: judged answers with labels; those without are left out, and counted in ``attrs["n_unlabelled"]``.
        calibration_share: share of the items that calibrate; the others are tested.
        n_splits: how often the items are split.
        replacement: draw calibration and test items with replacement from all items instead, as if these were the
            population, whose mean label is then the truth: what the intervals are for. Without replacement the truth is
            the mean label of the test items, which moves with the split: estimators that use the judgments of these
            very items cover it more often, those that rest on the labels of others less often.
        level: confidence level.
        seed: of the splits.

    Returns:
        A row per model, judge and estimator: ``bias, bias_se, coverage, length, undefined_share``. Splits without an
        estimate count as not covering and are left out of the rest; Rogan-Gladen's interval is [0, 1] where J is near
        0 or a class has few labels. "rogan_gladen_shared" pools the models' labels.

    Raises:
        DataError: no judged answer has a label.
    """
    z = scipy.special.ndtri((1 + checked_level(level)) / 2)
    if not 0 < calibration_share < 1:
        raise ValueError(f"calibration_share must be between 0 and 1, got {calibration_share!r}")
    judged = answers.judged & ~np.isnan(answers.label)[:, :, None]
    if not judged.any():
        raise DataError("no judged answer has a label: name their column with label=")
    calibration, test = _weights(len(answers.items), calibration_share, n_splits, replacement, seed)
    y = np.where(judged, np.nan_to_num(answers.label)[:, :, None], 0.0)
    f = np.where(judged, answers.judgment, 0.0)
    own = _labelled(calibration, judged, y, f)
    pooled = LabelledSums(*(x.sum(1, keepdims=True) for x in own))
    n, g, gg = (_times(test, x) for x in (judged.astype(float), f, f * f))
    with np.errstate(invalid="ignore"):
        truth = y.sum(0) / judged.sum(0) if replacement else _times(test, y) / n
    sums = Sums(JudgedSums(n, g, gg), own, pooled)
    products = _item_products(calibration, judged, y, f)
    tables = []
    for name, (value, lower, upper) in _intervals(sums, products, answers.binary, z, level).items():
        defined = ~np.isnan(value) & ~np.isnan(lower)
        count = defined.sum(0)
        error = np.where(defined, np.clip(value, 0, 1) - truth, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            bias = error.sum(0) / count
            spread = np.where(defined, (error - bias) ** 2, 0.0).sum(0) / count
            length = np.where(defined, np.clip(upper, 0, 1) - np.clip(lower, 0, 1), 0.0).sum(0) / count
            table = {
                "bias": bias,
                "bias_se": np.sqrt(spread / count),
                "coverage": np.where(count > 0, (defined & (lower <= truth) & (truth <= upper)).mean(0), np.nan),
                "length": length,
                "undefined_share": 1 - count / n_splits,
            }
        m, j = count.shape
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


def _times(weight: Float, values: Float) -> Float:
    """(R, M, J) sums of ``values`` (N, M, J) under weights (R, N)."""
    return (weight @ values.reshape(len(values), -1)).reshape(len(weight), *values.shape[1:])


def _labelled(weight: Float, used: NDArray[np.bool_], y: Float, f: Float) -> LabelledSums:
    f = np.where(used, f, 0.0)
    n, label, judgment, product, square = (_times(weight, x) for x in (used.astype(float), y, f, y * f, f * f))
    return LabelledSums(n, label, judgment, product, square, label)


def _item_products(weight: Float, used: NDArray[np.bool_], y: Float, f: Float) -> Float:
    """(R, J, 4, 4) sums over items of products of an item's answers wrong, those judged wrong, right, judged right."""
    wrong, right = (used & (y == 0)).astype(float), (used & (y == 1)).astype(float)
    counts = np.stack([x.sum(1) for x in (wrong, wrong * (1 - f), right, right * f)], axis=-1)  # (N, J, 4)
    products = counts[..., :, None] * counts[..., None, :]
    return (weight @ products.reshape(len(products), -1)).reshape(len(weight), *products.shape[1:])


@jax.jit
def _control_variates(
    own: LabelledSums, test: JudgedSums, binary: Array, most: Array
) -> dict[str, tuple[Array, Array]]:
    """(R, M, J) variance, and where the interval is centred less the estimate, by estimator."""
    weights = {
        "calibration_only": jnp.zeros_like(own.n),
        "difference": jnp.ones_like(own.n),
        "ppi_plus_plus": judge_error.ppi_weight(own, test, most),
        "conditional": judge_error.conditional_weight(own, test),
        "eif": judge_error.eif_weight(own, test),
    }
    return {
        name: (
            judge_error.careful_ppi_variance(own, test, weight, binary),
            judge_error.careful_ppi(own, test, weight, binary) - judge_error.ppi(own, test, weight),
        )
        for name, weight in weights.items()
    }


def _intervals(
    sums: Sums, products: Float, binary: NDArray[np.bool_], z: float, level: float
) -> dict[str, tuple[Float, Float, Float]]:
    """Estimate and untruncated ends (R, M, J) by estimator."""
    in_one = Sums(*(type(x)(*(leaf[:, None] for leaf in x)) for x in sums))  # type: ignore[arg-type]
    values = estimates(in_one, in_one, binary)
    test, own, shared = sums
    with np.errstate(invalid="ignore", divide="ignore"), double_precision():
        p = test.judgment / test.n
        most = np.where(binary, 1.0, np.inf)
        ends: dict[str, tuple[Float, Float]] = {}
        scores = scipy.special.stdtrit(np.maximum(own.n - 2, 1), scipy.special.ndtr(z))
        for name, (variance, shift) in jax.device_get(_control_variates(own, test, binary, most)).items():
            half = np.where(binary, z, scores) * np.sqrt(variance)
            centre = values[name] + shift
            ends[name] = centre - half, centre + half
        half = scores * np.sqrt(np.maximum(test.judgment_square / test.n - p**2, 0) / (test.n - 1))
        score = wilson(p, test.n, level)
        ends["naive"] = np.where(binary, score[0], p - half), np.where(binary, score[1], p + half)
        ends["calibration_only"] = wilson(own.label / own.n, own.n, level)
        lower, upper = batch.rogan_gladen_interval(p, test.n, judge_error.rates(own), z)
        ends["rogan_gladen"] = np.asarray(lower), np.asarray(upper)
        # The models' labels on an item go together: contributions by item, see `influence`.
        q0, q1, m0, m1 = judge_error.rates(shared)
        theta = values["rogan_gladen_shared"]
        weight = np.stack([-(1 - theta) * q0 / m0, (1 - theta) / m0, theta * q1 / m1, -theta / m1], axis=-1)
        calibrating = np.einsum("rmja,rjab,rmjb->rmj", weight, products, weight)
        excess = np.asarray(batch.rates_excess(shared, test))
        half = z * np.sqrt((p * (1 - p) / test.n + calibrating) / (q0 + q1 - 1) ** 2 + excess)
        ends["rogan_gladen_shared"] = theta - half, theta + half
        for name, labelled in (("rogan_gladen", own), ("rogan_gladen_shared", shared)):
            doubt = np.asarray(batch.doubt(judge_error.rates(labelled)))
            undefined = np.isnan(values[name]) | (doubt == judge_error.NO_SKILL)
            lower, upper = (np.where(undefined, np.nan, end) for end in ends[name])
            unbounded = ~undefined & (doubt != judge_error.FINE)
            ends[name] = np.where(unbounded, -np.inf, lower), np.where(unbounded, np.inf, upper)
    return {name: (value, *ends[name]) for name, value in values.items()}
